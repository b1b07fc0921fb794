"""Random dictionary keys and set elements: the plain values they may have, and when."""

import itertools
import math
from typing import Any

import numpy as np

from privug.errors import ProgramError
from privug.model.categories import constant_category, map_levels, map_pairs
from privug.model.node import ConstantValue, Node
from privug.model.numpy_functions import Cast
from privug.model.operations import Elementwise, Index, Lookup, SampleFailure
from privug.model.plates import Fold, Lane
from privug.model.variable import RandomVariable, as_node, refuse
from privug.prior.conditional import finite_support
from privug.prior.family import Draw, draw_node
from privug.prior.plating import RaggedDraw
from privug.program.logic import where
from privug.program.traced.masks import Mask, either

MOST_KEYS = 64


def has_random(value: Any) -> bool:
    """Say whether a key is random or a tuple with something random in it."""
    return isinstance(value, RandomVariable) or (isinstance(value, tuple) and any(map(has_random, value)))


def alternatives(key: Any) -> dict[Any, Mask]:
    """Return the plain values a key may have, each with the condition under which it has it."""
    if not has_random(key):
        return {key: True}
    category = _category(key)
    hits: dict[Any, Mask] = {}
    for value in possible_values(category):
        hits[value] = either(hits.get(value, False), category == value)
    return hits


def possible_values(value: RandomVariable) -> list[Any]:
    """Return the plain values that a quantity may have."""
    support = _support(value.node)
    if support is None:
        refuse("a random dictionary key or set element whose possible values are not known")
    if any(one != one for one in support):
        refuse("NaN as a dictionary key or set element")
    return support


def positioned(key: Any, position: int, length: int) -> Mask:
    """Return when a random subscript means a position, counted from either end."""
    return (key == position) | (key == position - length)


def _support(node: Node) -> list[Any] | None:
    """Return the values a quantity can take, if they are known and few."""
    operation = node.operation
    if isinstance(operation, Lane):
        return _support(_one_of_many(operation.column))
    if node.shape != () and not isinstance(operation, Draw):
        return None
    support: list[Any] | None = None
    if node.levels is not None or isinstance(operation, Draw):
        support = finite_support(node)
    elif isinstance(operation, ConstantValue):
        support = [operation.array[0].item()]
    elif node.dtype == np.dtype(bool):
        support = [False, True]
    elif isinstance(operation, Index) and isinstance(node.parents[0].operation, ConstantValue):
        support = [node.parents[0].operation.array[(0, *operation.key)].item()]
    elif isinstance(operation, Index):
        support = _support(_one_of_many(node.parents[0]))
    elif isinstance(operation, Lookup) and operation.table.ndim == 1:
        support = list(dict.fromkeys(operation.table.tolist()))
    elif isinstance(operation, Cast):
        inner = _support(node.parents[0])
        support = None if inner is None else list(dict.fromkeys(np.array(inner).astype(node.dtype).tolist()))
    elif isinstance(operation, Elementwise):
        support = _image(operation, [_support(parent) for parent in node.parents])
    return support if support is not None and len(support) <= MOST_KEYS else None


def _one_of_many(column: Node) -> Node:
    """Return what one element of a column is like."""
    operation = column.operation
    if isinstance(operation, RaggedDraw):
        return operation.single(column.parents) or column
    drawn = isinstance(operation, Draw) and column.levels is None and len(column.shape) == 1
    if drawn and all(parent.shape == () for parent in column.parents):
        assert isinstance(operation, Draw)
        return draw_node(operation.family, column.parents, ())
    return operation.term if isinstance(operation, Fold) and operation.keeps_rows else column


def _image(operation: Elementwise, supports: list[list[Any] | None]) -> list[Any] | None:
    """Return the values of an operation on all combinations of its arguments' values."""
    known = [support for support in supports if support is not None]
    if len(known) < len(supports) or math.prod(len(support) for support in known) > MOST_KEYS**2:
        return None
    columns = [np.array(column) for column in zip(*itertools.product(*known), strict=True)]
    if any(column.dtype.kind not in "bif" for column in columns):
        return None
    try:
        with np.errstate(all="ignore"):
            values = operation.evaluate_into(columns, None)
    except (SampleFailure, ProgramError):
        return None
    return list(dict.fromkeys(values.tolist()))


def _category(key: Any) -> RandomVariable:
    """Return a random key as one quantity: tuples as the category of all their combinations."""
    if isinstance(key, RandomVariable):
        return key
    joined = as_node(())
    for part in key:
        node = _as_single(_category(part)) if has_random(part) else as_node((part,))
        joined = map_pairs(joined, node, lambda left, right: (*left, *right))
    return RandomVariable(joined)


def _as_single(part: RandomVariable) -> Node:
    """Return a part of a tuple as a category of tuples of one: of a number, those of the values that it may have."""
    if part.node.levels is not None:
        return map_levels(part.node, lambda level: (level,))
    first, *others = possible_values(part)
    found = RandomVariable(constant_category((first,)))
    for value in others:
        found = where(part == value, RandomVariable(constant_category((value,))), found)
    return found.node
