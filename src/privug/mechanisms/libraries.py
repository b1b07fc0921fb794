"""Releases made by other libraries, such as OpenDP, whose objects cannot be sent from one process to another."""

import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from privug.arguments import check_takes, naming, shown
from privug.errors import ArgumentError
from privug.mechanisms.guarantee import NO_GUARANTEE, Guarantee
from privug.mechanisms.mechanism import Mechanism, unchanged
from privug.program.repetition import Opaque


class Made(Opaque):
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
    program = Made(factory, names)
    if callable(guarantee):
        check_takes("from_factory: guarantee", guarantee, 1)
    with naming("from_factory: guarantee"):
        promise = guarantee(program.made) if callable(guarantee) else guarantee
    if promise is not None and not isinstance(promise, Guarantee):
        raise ArgumentError(
            f"from_factory: guarantee must be a Guarantee or a function that gives one, not {shown(promise)}"
        )
    return Mechanism(program, unchanged, promise or NO_GUARANTEE, "its own noise")
