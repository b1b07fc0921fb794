"""Mechanism: a program, how its output is released, and what that promises."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from privug.arguments import check_kind, shown
from privug.errors import ArgumentError
from privug.mechanisms.guarantee import NO_GUARANTEE, Guarantee
from privug.program.staged import Staged, Transparent, called


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
        self.__name__ = f"{getattr(program, '__name__', 'program')} with {words}"

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
