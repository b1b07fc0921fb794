"""Variables of a loop that is traced once for many rows: what each row adds to them, and nothing else."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NoReturn

import numpy as np

from privug.model.graph import substitute
from privug.model.maybe import where_present
from privug.model.node import ConstantValue, ancestors
from privug.model.plates import Pending, Plate, current_pass, fold
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
    """A number and what the row at hand adds to it; `origin` is equal for what one variable was and became."""

    def __init__(self, base: Any, origin: Hashable, terms: tuple[Any, ...] = ()) -> None:
        self.base = base
        self.origin = origin
        self.terms = terms

    def __add__(self, term: Any) -> "Accumulator":
        return Accumulator(self.base, self.origin, (*self.terms, _number(term)))

    __radd__ = __add__

    def __sub__(self, term: Any) -> "Accumulator":
        return Accumulator(self.base, self.origin, (*self.terms, -_number(term)))

    def __rsub__(self, other: Any) -> Any:
        return self._refused()

    def total(self, plate: Plate) -> Any:
        """Return the number after all rows of the plate."""
        return sum((fold(plate, "sum", resolved(term)) for term in self.terms), self.base)


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
    if new.origin != old.origin or len(new.terms) < kept or not same:
        refuse("a variable that some of many rows set anew")
    grown = (*old.terms, *(term_where(mask, term) for term in new.terms[kept:]))
    return Accumulator(old.base, old.origin, grown)


def term_where(mask: Any, term: Any) -> Any:
    """Return what is added where the mask holds: the mask itself where that is one."""
    if mask is True:
        return term
    if isinstance(term, RandomVariable) and term.node.dtype == bool and term.node.levels is None:
        return mask & term
    return mask if is_one(term) else where(mask, term, 0)


def resolved(value: Any) -> Any:
    """Return a value with what it says of earlier rows as what that turned out to mean."""
    if not isinstance(value, RandomVariable):
        return value
    open_ones = [node for node in ancestors([value.node]) if isinstance(node.operation, Pending)]
    if not open_ones:
        return value
    meanings = {node: node.operation.meaning() for node in open_ones if isinstance(node.operation, Pending)}
    return RandomVariable(substitute([value.node], meanings)[0])


def is_one(value: Any) -> bool:
    """Say whether a term is the whole number one."""
    if not isinstance(value, RandomVariable):
        return type(value) is int and value == 1
    operation = value.node.operation
    return isinstance(operation, ConstantValue) and operation.array.dtype == np.int64 and bool(operation.array[0] == 1)


def carried(values: Sequence[Callable[[], Any]]) -> tuple[Any, ...]:
    """Return variables as a loop over many rows may use them: as numbers that grow, or not at all."""
    return tuple(_carried(value, place) for place, value in enumerate(values))


def _carried(value: Callable[[], Any], place: int) -> Any:
    try:
        plain = value()
    except NameError:
        return FORBIDDEN
    numeric = isinstance(plain, int | float) and not isinstance(plain, bool)
    random = isinstance(plain, RandomVariable) and plain.node.levels is None and plain.node.shape == ()
    grows = numeric or (random and plain.node.dtype.kind in "if")
    return Accumulator(plain, (current_pass.get(), place)) if grows else FORBIDDEN


def folded(values: Sequence[Callable[[], Any]], plate: Plate) -> tuple[Any, ...]:
    """Return variables after the loop: those that grew by what all rows add; the others are lost."""
    totals = []
    for place, value in enumerate(values):
        last = value()
        own = isinstance(last, Accumulator) and last.origin == (current_pass.get(), place)
        totals.append(last.total(plate) if own else LOST)
    return tuple(totals)
