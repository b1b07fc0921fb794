"""Which Python types the values of a quantity have in a program that gets or computes them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from privug.model.node import ConstantValue, Node, Whole, ancestors, of_numpy
from privug.model.traits.table import traits_of
from privug.model.traits.traits import Role

_OF_KIND: dict[str, type] = {"b": bool, "i": int, "f": float}
_OF_NUMPY: dict[str, type] = {"b": np.bool_, "i": np.int64, "f": np.float64}


def follows_numpy(name: str, nodes: Sequence[Node]) -> bool:
    """Say whether an operator does other than on Python's numbers: division by zero, sums of truth values."""
    if of_numpy(name, nodes) is not True:
        return False
    traits = traits_of(name)
    if traits.divides:
        return not (isinstance(nodes[1].operation, ConstantValue) and nodes[1].operation.array.all())
    if traits.role is Role.POWER:
        return any(node.dtype.kind == "f" for node in nodes)
    return all(node.dtype.kind == "b" for node in nodes)


def number_types(number: Node) -> set[type]:
    """Return the types that a single number can have: batches hold floats where only some are whole numbers."""
    if number.numpy is not False:
        own: set[type] = {_OF_KIND[number.dtype.kind]} if number.numpy is None else set()
        return own | {_OF_NUMPY[number.dtype.kind]}
    found: dict[Node, set[type]] = {}
    for node in ancestors([number]) if number.dtype.kind == "f" else [number]:
        types: set[type] = {_OF_KIND.get(node.dtype.kind, object)}
        operation = node.operation
        if node.dtype.kind == "f" and node.whole:
            types.add(int)
        elif node.dtype.kind == "f" and operation.traits.role is Role.CHOICE:
            types = types.union(*(found[parent] for parent in node.parents[1:]))
        elif node.dtype.kind == "f" and operation.traits.keeps_whole:
            types |= {int} if all(found[parent] & {int, bool} for parent in node.parents) else set()
        found[node] = types
    return found[number]


def retyped(numbers: list[float], whole: Whole) -> list[Any]:
    """Return floats with those that are whole numbers to a program as such."""
    if isinstance(whole, bool):
        return [int(number) if whole and number.is_integer() else number for number in numbers]
    return [int(number) if number in whole else number for number in numbers]
