"""Conditions under which traced code runs: plain truth values where they are known, random ones elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from privug.model.categories import map_levels
from privug.model.table import Row
from privug.model.variable import RandomVariable, path_condition, refuse
from privug.program.logic import where

Mask = Any  # True, False, or a random variable of truth values


class MaskedList(list[Any]):
    """A list of which each item is there or not, depending on a random condition.

    The items are those that may be there; `masks` says when. Only code that knows about masks
    (loops, `sum`, `len`, ...) may use it: anything that needs one plain list is refused.
    """

    def __init__(self, items: Any = ()) -> None:
        super().__init__(items)
        self.masks: list[Mask] = [True] * list.__len__(self)

    @property
    def is_certain(self) -> bool:
        """Whether all items are there for sure."""
        return all(mask is True for mask in self.masks) and len(self.masks) == list.__len__(self)

    def add(self, item: Any, mask: Mask) -> None:
        """Append an item that is there under a condition."""
        list.append(self, item)
        self.masks.append(mask)

    def append(self, item: Any) -> None:
        self.add(item, True)

    def pairs(self) -> list[tuple[Any, Mask]]:
        """Return the items with their conditions."""
        if len(self.masks) != list.__len__(self):  # some other method of lists changed it
            self.masks = [True] * list.__len__(self)
        return list(zip(list.__iter__(self), self.masks, strict=True))

    def _plain(self) -> None:
        if any(mask is not True for mask in self.masks):
            refuse("a list of random length")

    def __len__(self) -> int:
        self._plain()
        return list.__len__(self)

    def __iter__(self) -> Iterator[Any]:
        self._plain()
        return list.__iter__(self)

    def __getitem__(self, key: Any) -> Any:
        self._plain()
        return list.__getitem__(self, key)

    def __eq__(self, other: object) -> bool:
        self._plain()
        return list.__eq__(self, other)

    __hash__ = None

    def __add__(self, other: Any) -> Any:
        joined = MaskedList()
        for part in (self, other):
            for item, mask in part.pairs() if isinstance(part, MaskedList) else ((item, True) for item in part):
                joined.add(item, mask)
        return joined


def truth(value: Any) -> Mask:
    """Return the truth value of anything, random or plain."""
    if isinstance(value, RandomVariable):
        if value.node.levels is not None:
            return RandomVariable(map_levels(value.node, bool))
        if value.node.shape != ():
            refuse("the truth of an array")
        return value if value.node.dtype == np.dtype(bool) else value != 0
    if isinstance(value, MaskedList) and not value.is_certain:
        return any_of(value.masks)
    return bool(value)


def both(left: Mask, right: Mask) -> Mask:
    """Return the conjunction of two masks."""
    if isinstance(left, bool):
        return right if left else False
    if isinstance(right, bool):
        return left if right else False
    return left & right


def either(left: Mask, right: Mask) -> Mask:
    """Return the disjunction of two masks."""
    if isinstance(left, bool):
        return True if left else right
    if isinstance(right, bool):
        return True if right else left
    return left | right


def negated(mask: Mask) -> Mask:
    """Return the negation of a mask."""
    return not mask if isinstance(mask, bool) else ~mask


def any_of(masks: list[Mask]) -> Mask:
    """Return whether any of several masks holds."""
    total: Mask = False
    for mask in masks:
        total = either(total, mask)
    return total


def current() -> Mask:
    """Return the condition under which the code being traced runs."""
    path = path_condition.get()
    return True if path is None else path


@contextmanager
def under(mask: Mask) -> Iterator[None]:
    """Run code under a further condition."""
    token = path_condition.set(None if both(current(), mask) is True else both(current(), mask))
    try:
        yield
    finally:
        path_condition.reset(token)


class Undefined:
    """Stands for a variable that has no value yet."""


UNDEFINED = Undefined()


def select(mask: Mask, new: Any, old: Any) -> Any:
    """Return `new` where the mask holds and `old` elsewhere, for any values of equal structure."""
    if new is old or mask is True or old is UNDEFINED:
        return new
    if mask is False or new is UNDEFINED:
        return old
    if _is_single(new) and _is_single(old):
        return _select_single(mask, new, old)
    if isinstance(new, MaskedList) and isinstance(old, MaskedList):
        return _select_lists(mask, new, old)
    if type(new) is type(old) and isinstance(new, list | tuple) and len(new) == len(old):
        parts = [select(mask, a, b) for a, b in zip(new, old, strict=True)]
        if isinstance(new, Row):
            return Row(**dict(zip(new.keys(), parts, strict=True)))
        return type(new)(parts)
    if isinstance(new, dict) and isinstance(old, dict) and new.keys() == old.keys():
        return {key: select(mask, new[key], old[key]) for key in new}
    return refuse("a choice between values of different structure")


def _is_single(value: Any) -> bool:
    return (
        isinstance(value, RandomVariable | bool | int | float | str | np.generic)
        or value is None
        or not hasattr(value, "__iter__")
    )


def _select_single(mask: Mask, new: Any, old: Any) -> Any:
    if (
        not isinstance(new, RandomVariable)
        and not isinstance(old, RandomVariable)
        and type(new) is type(old)
        and new == old
    ):
        return new
    grown = _added_to(old, new)
    # A counting loop becomes a sum of independent terms: where(p, c + t, c) is c + where(p, t, 0).
    return where(mask, new, old) if grown is None else old + where(mask, grown, 0)


def _added_to(old: Any, new: Any) -> Any:
    """Return t if `new` is `old + t`, else None."""
    if not isinstance(new, RandomVariable) or new.node.levels is not None or new.node.shape != ():
        return None
    operation, parents = new.node.operation, new.node.parents
    if getattr(operation, "name", "") != "add" or not isinstance(old, RandomVariable) or len(parents) != 2:
        return None
    if parents[0] is old.node:
        return RandomVariable(parents[1])
    return RandomVariable(parents[0]) if parents[1] is old.node else None


def _select_lists(mask: Mask, new: MaskedList, old: MaskedList) -> MaskedList:
    merged = MaskedList()
    for item, there in new.pairs():
        merged.add(item, both(there, mask))
    for item, there in old.pairs():
        merged.add(item, both(there, negated(mask)))
    return merged


item_mask: ContextVar[Mask] = ContextVar("item_mask", default=True)
"""Inside a comprehension over a list of random length: whether the item at hand is there."""


def items(values: Any) -> Iterator[Any]:
    """Yield the items of anything iterable inside a comprehension, each under its own condition."""
    if not isinstance(values, MaskedList):
        yield from values
        return
    for item, there in values.pairs():
        token = item_mask.set(both(item_mask.get(), there))
        try:
            with under(there):
                yield item
        finally:
            item_mask.reset(token)


def without_masks(value: Any) -> Any:
    """Return a traced output with the program's own lists as plain ones; lists of random length are refused."""
    if isinstance(value, MaskedList):
        return [without_masks(item) for item in value]
    if type(value) in (list, tuple):
        return type(value)(without_masks(item) for item in value)
    if type(value) is dict:
        return {key: without_masks(item) for key, item in value.items()}
    return value
