"""Which Python types the values of a quantity have in a program that gets or computes them."""

from privug.model.node import Node, ancestors
from privug.model.operations import Elementwise

# These give a whole number if all that goes in is one.
_KEEPING = {
    "add", "subtract", "multiply", "negative", "positive", "absolute", "floor_divide", "remainder", "power", "minimum",
    "maximum",
}  # fmt: skip
_OF_KIND: dict[str, type] = {"b": bool, "i": int, "f": float}


def number_types(number: Node) -> set[type]:
    """Return the types that a single number can have: batches hold floats where only some are whole numbers."""
    found: dict[Node, set[type]] = {}
    for node in ancestors([number]) if number.dtype.kind == "f" else [number]:
        types: set[type] = {_OF_KIND.get(node.dtype.kind, object)}
        operation = node.operation
        if node.dtype.kind == "f" and node.whole:
            types.add(int)
        elif node.dtype.kind == "f" and isinstance(operation, Elementwise) and operation.name == "where":
            types = types.union(*(found[parent] for parent in node.parents[1:]))
        elif node.dtype.kind == "f" and isinstance(operation, Elementwise) and operation.name in _KEEPING:
            types |= {int} if all(found[parent] & {int, bool} for parent in node.parents) else set()
        found[node] = types
    return found[number]
