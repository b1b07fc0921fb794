"""Names for the random roots of a model, after the inputs that they are part of."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from privug.model.framed import Framed
from privug.model.node import Node
from privug.model.plated_table import PlatedTable
from privug.model.plates import Plate
from privug.model.table import Row
from privug.model.variable import RandomVariable
from privug.prior.family import family_of


def named_roots(roots: Sequence[Node], inputs: Mapping[str, Any]) -> list[str]:
    """Return a name for each root, all of them different: 'records[0].age', or its family if it is no input itself."""
    found: dict[int, str] = {}
    for name, value in inputs.items():
        for path, node in _leaves(value, name):
            found.setdefault(id(node), path)
    taken: dict[str, int] = {}
    return [_unused(found.get(id(root), family_of(root).name.lower()), taken) for root in roots]


def _unused(name: str, taken: dict[str, int]) -> str:
    taken[name] = taken.get(name, 0) + 1
    return name if taken[name] == 1 else _unused(f"{name}_{taken[name]}", taken)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Node]]:
    match value:
        case RandomVariable():
            yield path, value.node
        case Row():
            for key, cell in value._asdict().items():
                yield from _leaves(cell, f"{path}.{key}")
        case Framed():
            yield from _leaves(value.table, path)
        case PlatedTable():
            yield from _segments(value, path)
        case Plate():
            for key, cell in zip(value.names, value.cells, strict=True):
                yield from _leaves(cell, f"{path}.{key}")
        case list() | tuple():
            for position, item in enumerate(value):
                yield from _leaves(item, f"{path}[{position}]")
        case dict():
            for key, item in value.items():
                yield from _leaves(item, f"{path}.{key}")


def _segments(table: PlatedTable, path: str) -> Iterator[tuple[str, Node]]:
    start = 0
    for segment in table.segments:
        size = segment.size if isinstance(segment, Plate) else 1
        place = f"{start}:{start + size}" if isinstance(segment, Plate) else f"{start}"
        yield from _leaves(segment, f"{path}[{place}]")
        start += size
