"""Variables of a loop that is traced once for many rows: what each row adds to them, and nothing else."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from privug.model.maybe import where_present
from privug.model.node import ConstantValue
from privug.model.plates import Plate, fold
from privug.model.variable import RandomVariable, refuse
from privug.program.logic import where


class _Guarded:
    """A value that may not be looked at."""

    def __bool__(self) -> bool:
        return bool(self._refused())

    def __iter__(self) -> Any:
        return self._refused()

    def _refused(self, *_: Any) -> NoReturn:
        refuse("a variable that one row of many hands on to the next")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refused
    __floordiv__ = __mod__ = __pow__ = __neg__ = __abs__ = __getitem__ = __len__ = __call__ = __hash__ = _refused
    __float__ = __int__ = __index__ = __round__ = __and__ = __or__ = __invert__ = __contains__ = _refused


class Lost(_Guarded):
    """Stands for a variable whose value would be another row's."""

    __add__ = __radd__ = __sub__ = __rsub__ = _Guarded._refused


LOST = Lost()
"""A variable that each row assigns before it reads it, outside that row."""

FORBIDDEN = Lost()
"""A variable that a row may find as another row left it, and that is no number that grows."""


class Accumulator(_Guarded):
    """A number and what the row at hand adds to it."""

    def __init__(self, base: Any, terms: tuple[Any, ...] = ()) -> None:
        self.base = base
        self.terms = terms

    def __add__(self, term: Any) -> "Accumulator":
        return Accumulator(self.base, (*self.terms, _number(term)))

    __radd__ = __add__

    def __sub__(self, term: Any) -> "Accumulator":
        return Accumulator(self.base, (*self.terms, -_number(term)))

    def __rsub__(self, other: Any) -> Any:
        return self._refused()

    def total(self, plate: Plate) -> Any:
        """Return the number after all rows of the plate."""
        return sum((fold(plate, "sum", term) for term in self.terms), self.base)


def _number(term: Any) -> Any:
    if isinstance(term, RandomVariable) and term.node.levels is None and term.node.shape == ():
        return RandomVariable(where_present(term.node))
    if isinstance(term, int | float | np.number) and not isinstance(term, bool):
        return term
    return refuse("something else than a number added for each of many rows")


def selected(mask: Any, new: Any, old: Any) -> Accumulator:
    """Return the accumulator that grew only where the mask holds."""
    if not (isinstance(new, Accumulator) and isinstance(old, Accumulator)):
        refuse("a variable that some of many rows set anew")
    kept = len(old.terms)
    same = all(a is b for a, b in zip(new.terms, old.terms, strict=False))
    if new.base is not old.base or len(new.terms) < kept or not same:
        refuse("a variable that some of many rows set anew")
    return Accumulator(old.base, (*old.terms, *(term_where(mask, term) for term in new.terms[kept:])))


def term_where(mask: Any, term: Any) -> Any:
    """Return what is added where the mask holds: the mask itself where that is one."""
    return mask if is_one(term) else where(mask, term, 0)


def is_one(value: Any) -> bool:
    """Say whether a term is the whole number one."""
    if not isinstance(value, RandomVariable):
        return type(value) is int and value == 1
    operation = value.node.operation
    return isinstance(operation, ConstantValue) and operation.array.dtype == np.int64 and bool(operation.array[0] == 1)


def carried(values: Sequence[Callable[[], Any]]) -> tuple[Any, ...]:
    """Return variables as a loop over many rows may use them: as numbers that grow, or not at all."""
    return tuple(_carried(value) for value in values)


def _carried(value: Callable[[], Any]) -> Any:
    try:
        plain = value()
    except NameError:
        return FORBIDDEN
    numeric = isinstance(plain, int | float) and not isinstance(plain, bool)
    random = isinstance(plain, RandomVariable) and plain.node.levels is None and plain.node.shape == ()
    return Accumulator(plain) if numeric or (random and plain.node.dtype.kind in "if") else FORBIDDEN


def folded(values: Sequence[Callable[[], Any]], plate: Plate) -> tuple[Any, ...]:
    """Return variables after the loop: those that grew by what all rows add; the others are lost."""
    totals = []
    for value in values:
        last = value()
        totals.append(last.total(plate) if isinstance(last, Accumulator) else LOST)
    return tuple(totals)


def carry_items(container: Any) -> None:
    """Let the numbers in a list or dictionary grow."""
    for key in _keys(container):
        container[key] = _carried(lambda key=key: container[key])  # type: ignore[misc]


def fold_items(container: Any, plate: Plate) -> None:
    """Put the numbers in a list or dictionary that grew back as what they are after all rows."""
    for key in _keys(container):
        container[key] = folded([lambda key=key: container[key]], plate)[0]  # type: ignore[misc]


def _keys(container: Any) -> Any:
    if isinstance(container, list):
        return range(len(container))
    return list(container) if type(container) is dict else refuse("a container that many rows change")
