"""Mechanism: a program, how its output is released, and what that promises; releases of other libraries."""

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

from privug.arguments import check_kind, check_takes, naming, shown
from privug.errors import ArgumentError
from privug.mechanisms.guarantee import NO_GUARANTEE, Guarantee
from privug.program.calls import Opaque
from privug.program.staged import Staged, Transparent, called

Constructor = TypeVar("Constructor", bound=Callable[..., "Mechanism"])


def remakeable(constructor: Constructor) -> Constructor:
    """Let the mechanisms that a constructor makes be made again with other numbers: they remember how they were."""

    @functools.wraps(constructor)
    def made(*positional: Any, **named: Any) -> "Mechanism":
        mechanism = constructor(*positional, **named)
        mechanism.making = functools.partial(made, *positional, **named)
        return mechanism

    return cast(Constructor, made)


class Mechanism(Staged):
    """A program whose output is released in a way that protects people, together with what is promised.

    It is called like the program it protects, on plain values or on random ones, and stands wherever a program does.

    >>> import privug as pv
    >>> from privug.mechanisms import laplace
    >>> private = laplace(lambda ages: sum(ages) / len(ages), sensitivity=1, epsilon=0.5)
    >>> print(private.guarantee)
    0.5-differentially private
    """

    def __init__(
        self, program: Callable[..., Any], release: Callable[[Any], Any], guarantee: Guarantee, words: str
    ) -> None:
        check_kind("Mechanism", "words", words, (str,))
        check_kind("Mechanism", "guarantee", guarantee, (Guarantee,))
        super().__init__(program, release)
        self.guarantee = guarantee
        self.words = words
        self.making: functools.partial[Mechanism] | None = None
        """The call that made this, whose first argument is the program, if a constructor did."""
        self.__name__ = f"{getattr(program, '__name__', 'program')} with {words}"

    @remakeable
    def then(self, function: Callable[[Any], Any]) -> "Mechanism":
        """Return the mechanism whose output goes through one more function, which costs no privacy."""
        if not callable(function):
            raise ArgumentError(f"then: a function of the output is needed, not {shown(function)}")
        name = getattr(function, "__name__", "a function")
        return Mechanism(self, function, self.guarantee, "its output changed" if name == "<lambda>" else name)

    def __repr__(self) -> str:
        return f"<Mechanism {self.__name__!r}: {self.guarantee}>"


def promised(program: Callable[..., Any]) -> Guarantee:
    """Return what a program promises: nothing, unless it is a mechanism."""
    return program.guarantee if isinstance(program, Mechanism) else NO_GUARANTEE


class _Together(Transparent):
    """Several programs on the same inputs."""

    def __init__(self, programs: Sequence[Callable[..., Any]]) -> None:
        functools.update_wrapper(self, programs[0])
        self.programs = tuple(programs)
        self.__name__ = " and ".join(getattr(program, "__name__", "program") for program in programs)

    def __call__(self, *positional: Any, **named: Any) -> tuple[Any, ...]:
        return tuple(called(program, *positional, **named) for program in self.programs)


def together(*mechanisms: Mechanism) -> Mechanism:
    """Release the outputs of several mechanisms about the same inputs, as a tuple; what they promise adds up.

    >>> import privug as pv
    >>> from privug.mechanisms import laplace
    >>> total, size = laplace(sum, sensitivity=100, epsilon=0.5), laplace(len, sensitivity=1, epsilon=0.1)
    >>> print(together(total, size).guarantee)
    0.6-differentially private
    """
    if not mechanisms or not all(isinstance(mechanism, Mechanism) for mechanism in mechanisms):
        raise ArgumentError("together: mechanisms are needed, such as those that pv.mechanisms.laplace makes")
    total = functools.reduce(lambda left, right: left + right, (mechanism.guarantee for mechanism in mechanisms))
    return Mechanism(_Together(mechanisms), unchanged, total, "both released" if len(mechanisms) > 1 else "no change")


def unchanged(value: Any) -> Any:
    """Release an output as it is."""
    return value


class FactoryMade(Opaque):
    """A program that a factory makes in each process that needs it, when it is first called there."""

    def __init__(self, factory: Callable[[], Callable[..., Any]], parameters: Sequence[str]) -> None:
        self.factory = factory
        self.parameters = tuple(parameters)
        self.__name__ = getattr(factory, "__name__", "program")
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in self.parameters]
        )
        self._made: tuple[int, Callable[..., Any]] | None = None

    @property
    def made(self) -> Callable[..., Any]:
        """The program of this process."""
        if self._made is None or self._made[0] != os.getpid():
            program = self.factory()
            if not callable(program):
                raise ArgumentError(f"from_factory: the factory must return something to call, not {shown(program)}")
            self._made = os.getpid(), program
        return self._made[1]

    def __call__(self, *positional: Any, **named: Any) -> Any:
        return self.made(*positional, *(named[name] for name in self.parameters[len(positional) :] if name in named))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": None}


def from_factory(
    factory: Callable[[], Callable[..., Any]],
    *,
    parameters: Sequence[str] = ("data",),
    guarantee: Guarantee | Callable[[Any], Guarantee] | None = None,
) -> Mechanism:
    """Make a program of what a factory returns: an OpenDP measurement, a mechanism of diffprivlib, anything to call.

    It is made anew in each process. `parameters` names its inputs, which a prior is given for. `guarantee` is what it
    promises, or a function that reads that off the object made. Its noise is hidden in the library: outputs
    are sampled, so observe them with `pv.near`, and audit them with `pv.mechanisms.audit`.

    >>> def coarse_total():
    ...     return lambda data: 10 * round(sum(data) / 10)
    >>> from_factory(coarse_total)([12, 30, 51])
    90
    """
    if not callable(factory):
        raise ArgumentError(f"from_factory: a function that makes the program is needed, not {shown(factory)}")
    names = (
        [parameters] if isinstance(parameters, str) else list(parameters if isinstance(parameters, Iterable) else ())
    )
    if not names or not all(isinstance(name, str) and name.isidentifier() for name in names):
        raise ArgumentError(f"from_factory: parameters must be names, such as ['data'], not {shown(parameters)}")
    program = FactoryMade(factory, names)
    if callable(guarantee):
        check_takes("from_factory: guarantee", guarantee, 1)
    with naming("from_factory: guarantee"):
        promise = guarantee(program.made) if callable(guarantee) else guarantee
    if promise is not None and not isinstance(promise, Guarantee):
        raise ArgumentError(
            f"from_factory: guarantee must be a Guarantee or a function that gives one, not {shown(promise)}"
        )
    return Mechanism(program, unchanged, promise or NO_GUARANTEE, "its own noise")
