"""Counts of the values in a random array: `np.bincount` and `np.unique`."""

from typing import Any

import numpy as np

from privug.model.operations import Stack
from privug.model.variable import RandomVariable, as_node, refuse, stack_values
from privug.program.traced.keys import possible_values
from privug.program.traced.selections import Selection

MOST_ELEMENTS = 1024
"""How many elements of an array are asked for their values."""


def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """Count how often each number from zero on occurs; so many that their number is the same for all samples."""
    array, values = _values("bincount", x)
    if array.node.dtype.kind != "i" or values[0] < 0 or type(minlength) is not int or values[-1] >= minlength:
        refuse("np.bincount without a minlength that is above all values")
    if weights is None:
        return _stacked([(array == value).sum() for value in range(minlength)])
    shape = weights.shape if isinstance(weights, RandomVariable) else np.shape(weights)
    if shape != array.shape:
        refuse("np.bincount with weights of another length")
    totals = [np.where(array == value, weights, 0.0).sum() for value in range(minlength)]
    return _stacked(totals).astype(float)


def unique(ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """Return the values that occur, in ascending order, and how often each does."""
    if return_index or return_inverse:
        refuse("np.unique with the places of values")
    array, values = _values("unique", ar)
    counts = [(array == value).sum() for value in values]
    there = _stacked([count > 0 for count in counts])
    found = Selection(RandomVariable(as_node(np.array(values))), there)
    return (found, Selection(_stacked(counts), there)) if return_counts else found


def _values(name: str, items: Any) -> tuple[RandomVariable, list[Any]]:
    """Return an array, and the numbers that its elements may be in ascending order."""
    array = items if isinstance(items, RandomVariable) else RandomVariable(stack_values(list(items)))
    if len(array.shape) != 1 or not array.shape[0] or array.node.levels is not None:
        refuse(f"np.{name} of anything but some numbers")
    stacked = isinstance(array.node.operation, Stack)
    if stacked and array.shape[0] > MOST_ELEMENTS:
        refuse(f"np.{name} of more than {MOST_ELEMENTS:,} numbers that are not a column")
    # What is known of the values of a column holds for each of its elements.
    elements = [RandomVariable(part) for part in array.node.parents] if stacked else [array[0]]
    return array, sorted({value for element in elements for value in possible_values(element)})


def _stacked(values: list[Any]) -> RandomVariable:
    return RandomVariable(stack_values(values))
