"""Whether two quantities are made in the same way: by the same operations on the same inputs, in the same order."""

import dataclasses
import types
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from privug.model.node import Node, ancestors
from privug.model.plates import Fold
from privug.model.structure import flatten
from privug.model.variable import RandomVariable


def everything_behind(nodes: Iterable[Node]) -> list[Node]:
    """Return nodes and all they are made of, what is computed for each row of a table included, in order."""
    order: dict[Node, None] = {}
    for node in ancestors(nodes):
        if isinstance(node.operation, Fold):
            order.update(dict.fromkeys(ancestors([node.operation.term])))
        order[node] = None
    return list(order)


def is_made_alike(left: Any, right: Any) -> bool:
    """Compare two nested values; where it cannot be told whether operations are the same, they count as different."""
    (structure, leaves), (other, others) = flatten(left), flatten(right)
    if structure != other:
        return False
    before, after = (
        everything_behind(leaf.node for leaf in side if isinstance(leaf, RandomVariable)) for side in (leaves, others)
    )
    if len(before) != len(after):
        return False
    images = dict(zip(before, after, strict=True))
    return _equal(leaves, others, images) and all(
        old is new or _are_alike(old, new, images) for old, new in images.items()
    )


def _are_alike(old: Node, new: Node, images: Mapping[Node, Node]) -> bool:
    described = [(node.shape, node.dtype, node.levels, node.parents, node.operation) for node in (old, new)]
    return _equal(described[0], described[1], images)


def _equal(old: Any, new: Any, images: Mapping[Node, Node]) -> bool:
    if isinstance(old, RandomVariable) and isinstance(new, RandomVariable):
        old, new = old.node, new.node
    if isinstance(old, Node):
        return images.get(old, old) is new
    if old is new:
        return True
    if type(old) is not type(new):
        return False
    if isinstance(old, np.ndarray):
        same = old.dtype == new.dtype and old.shape == new.shape
        return same and bool(np.array_equal(old, new, equal_nan=old.dtype.kind == "f"))
    if isinstance(old, tuple | list):
        return len(old) == len(new) and all(_equal(*pair, images) for pair in zip(old, new, strict=True))
    if isinstance(old, types.FunctionType):
        return old.__code__ is new.__code__ and _equal(_surroundings(old), _surroundings(new), images)
    if dataclasses.is_dataclass(old):
        names = [field.name for field in dataclasses.fields(old)]
        return all(_equal(getattr(old, name), getattr(new, name), images) for name in names)
    try:
        return bool(old == new)
    except (TypeError, ValueError):
        return False


def _surroundings(function: types.FunctionType) -> tuple[Any, ...]:
    cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
    return function.__defaults__, cells
