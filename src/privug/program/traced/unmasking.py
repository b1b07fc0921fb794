"""Traced outputs: the program's own containers as plain ones."""

from typing import Any

from privug.model.categories import map_levels
from privug.model.variable import RandomVariable, refuse
from privug.prior.frame import MISSING_TYPES
from privug.program.outputs import settled
from privug.program.traced.accumulators import Accumulator, Lost
from privug.program.traced.failures import with_failures
from privug.program.traced.masks import Mask, Masked, MaskedList, Merged, any_of, both, holds, negated, one_of

MOST_BRANCHES = 8
"""Of which one appends to a list at a time."""


def without_masks(value: Any) -> Any:
    """Return a traced output with the program's own containers as plain ones; those of random size are refused."""
    return with_failures(_unmasked(value))


def _unmasked(value: Any) -> Any:
    if isinstance(value, Accumulator | Lost):
        refuse("the last row's value of a variable, after a loop over many rows,")
    if type(value) is MaskedList and not value.is_certain:
        items = in_turn(value.pairs())
        return _unmasked(value.plain() if items is None else items)
    if isinstance(value, Masked):
        return _unmasked(value.released())
    if type(value) in (list, tuple):
        return type(value)(_unmasked(item) for item in value)
    if type(value) in (dict, Merged):
        return {key: _unmasked(item) for key, item in value.items()}
    if isinstance(value, RandomVariable) and any(
        type(level).__name__ in MISSING_TYPES for level in value.node.levels or ()
    ):
        return RandomVariable(map_levels(value.node, settled))
    return value


def in_turn(pairs: list[tuple[Any, Mask]]) -> list[Any] | None:
    """Return a list to which one of several branches appends at a time; None if its length is random.

    Items that follow each other, and of which exactly one is there, are one item of the list.
    """
    items: list[Any] = []
    waiting: list[tuple[Mask, Any]] = []
    for item, there in pairs:
        overlapping = any(not holds(negated(both(there, other))) for other, _ in waiting)
        if overlapping or len(waiting) == MOST_BRANCHES:
            return None
        waiting.append((there, item))
        if holds(any_of([mask for mask, _ in waiting])):
            items.append(one_of(waiting))
            waiting = []
    return None if waiting else items
