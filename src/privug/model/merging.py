"""Values that differ only by the rounding of arithmetic are one value.

Distinct numbers in ascending order are linked where the error of both spans the gap between them. A group of linked
numbers is one value only if it is no wider than that either: in a chain of numbers each next to the last nothing tells
rounding from real differences, and they stay apart. So do numbers of few digits if nothing is known of the arithmetic
behind them. The value is the number that is shortest to write.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from privug import settings
from privug.model.batch import Batch, Column, DeferredBatch
from privug.model.node import Array, Kind, Node
from privug.model.roundoff import UNTRACED, Roundoff, roundoffs, untraced
from privug.model.structure import flatten, random_leaves

ROOM = 2.0  # how many times the error that was found a value may have: other orders of a sum round otherwise
SHORT = 10  # digits that a number has at most if it is not what rounding left
WRITTEN = 4 * 2.0**-52  # how far, relative to it, a number that a person wrote down may be from the one that is meant


class Merged(NamedTuple):
    """A batch whose values differ by more than rounding, and how many numbers were how many before."""

    batch: Batch
    before: int = 0
    after: int = 0


def keeps_bits() -> bool:
    """Say whether values that differ only by rounding are to be kept apart."""
    return settings.current().rounding == "bits"


def merged(batch: Batch, nodes: Sequence[Node] | None = None, *, sampled: bool = True) -> Merged:
    """Merge the values of a quantity that differ only by rounding; `nodes` are those that its columns come from.

    Of samples that may come from a density, numbers that all were drawn just once are kept apart: they lie next to each
    other by chance.
    """
    if keeps_bits() or (isinstance(batch, DeferredBatch) and nodes is not None and not any(map(_has_fractions, nodes))):
        return Merged(batch)
    known = nodes if nodes is not None and len(nodes) == len(batch.columns) else [None] * len(batch.columns)
    chosen = [place for place, node in enumerate(known) if _may_be_rounded(batch.columns[place], node)]
    if not chosen:
        return Merged(batch)
    traced = [node for place in chosen if (node := known[place]) is not None]
    found = dict(zip(traced, roundoffs(traced), strict=True))
    columns, before, after = list(batch.columns), 0, 0
    for place in chosen:
        node = known[place]
        roundoff = None if node is None else found[node]
        ties = sampled and (node is None or node.kind is not Kind.DISCRETE)
        one = _merged_column(columns[place], roundoff, ties)
        if one is not None:
            columns[place], many, few = one
            before, after = before + many, after + few
    if not before:
        return Merged(batch)
    return Merged(Batch(batch.structure, tuple(columns), len(batch)), before, after)


def _has_fractions(node: Node) -> bool:
    return node.levels is None and node.dtype.kind not in "biu"


def _may_be_rounded(column: Column, node: Node | None) -> bool:
    if node is not None and (node.kind is Kind.CONTINUOUS or (node.levels is not None)):
        return False
    return column.array.dtype.kind == "f" or column.array.dtype == object or column.levels is not None


def _merged_column(column: Column, roundoff: Roundoff | None, ties: bool) -> tuple[Column, int, int] | None:
    """Return a column with its values merged, and how many distinct numbers there were and are; None if they are."""
    if column.levels is None and column.array.dtype.kind == "f":
        return _merged_numbers(column.array, roundoff, ties)
    return _merged_values(column)


def _merged_numbers(array: Array, roundoff: Roundoff | None, ties: bool) -> tuple[Column, int, int] | None:
    if roundoff is not None and roundoff.is_exact:
        return None
    flat = array.reshape(len(array), -1)
    result: Array | None = None
    before = after = 0
    for place, part in enumerate(flat.T):
        codes, numbers, counts = _ranked(part, ties)
        table = representatives(numbers, roundoff, counts)
        if table is not None:
            result = flat.copy() if result is None else result
            result[:, place] = table[codes]
            before, after = before + len(numbers), after + len(np.unique(table))
    return None if result is None else (Column(result.reshape(array.shape)), before, after)


def _ranked(part: Array, ties: bool) -> tuple[Array, Array, Array | None]:
    codes, column = Column(part).distinct()
    return codes, column.array, np.bincount(codes, minlength=len(column.array)) if ties else None


def _merged_values(column: Column) -> tuple[Column, int, int] | None:
    """Merge the numbers inside of the values that a program called sample by sample returned, part by part."""
    codes, distinct = column.distinct()
    values = distinct.decoded()
    taken = [flatten(value) for value in values]
    places: dict[Any, list[tuple[int, int]]] = {}
    for row, (structure, leaves) in enumerate(taken):
        for position, leaf in enumerate(leaves):
            if isinstance(leaf, float):
                places.setdefault((structure, position), []).append((row, position))
    changed = False
    for cells in places.values():
        numbers, among = np.unique([taken[row][1][position] for row, position in cells], return_inverse=True)
        table = representatives(numbers, None)
        if table is not None:
            changed = True
            for (row, position), place in zip(cells, among.reshape(-1), strict=True):
                taken[row][1][position] = float(table[place])
    if not changed:
        return None
    made = np.empty(len(values), object)
    made[:] = [structure.build(leaves) for structure, leaves in taken]
    column = Batch.of_values(list(made[codes])).columns[0]
    return column, len(values), len(column.distinct()[1].array)


def representatives(numbers: Array, roundoff: Roundoff | None, counts: Array | None = None) -> Array | None:
    """Return the value that each of some ascending numbers stands for; None if each stands for itself.

    With `counts`, how often each was drawn, only groups are merged of which some number was drawn repeatedly.
    """
    if len(numbers) < 2:
        return None
    slack = (untraced(numbers) if roundoff is None else roundoff.at(numbers)) * (1.0 if roundoff is None else ROOM)
    with np.errstate(invalid="ignore"):
        linked = np.diff(numbers) <= slack[:-1] + slack[1:]
    if not linked.any():
        return None
    starts = np.flatnonzero(np.append(True, ~linked))
    stops = np.append(starts[1:], len(numbers))
    table = numbers.copy()
    for start, stop in zip(starts, stops, strict=True):
        if stop - start < 2 or numbers[stop - 1] - numbers[start] > 2 * slack[start:stop].max():
            continue
        if roundoff is None and sum(map(_is_short, numbers[start:stop].tolist())) > 1:
            continue  # beside a sentinel such as 1e300 all other numbers lie close together
        if counts is None or counts[start:stop].max() > 1:
            table[start:stop] = _shortest(numbers[start:stop])
    return None if np.array_equal(table, numbers) else table


def _is_short(number: float) -> bool:
    """Say whether a number has so few digits that no rounding made it."""
    return float(f"{number:.{SHORT}g}") == number


def _shortest(numbers: Array) -> float:
    """Return the number that is shortest to write; of several, the one nearest to the middle."""
    middle = float(numbers[0]) / 2 + float(numbers[-1]) / 2
    listed: list[float] = numbers.tolist()
    return min(listed, key=lambda number: (len(repr(abs(number))), abs(number - middle), number))


def tolerance(node: Node, value: float) -> float | None:
    """Return how far a computed number may be from one that was written down, to be the same; None if not known."""
    if keeps_bits():
        return 0.0
    found = roundoffs([node])[0]
    return None if found is None else found.around(value, ROOM) + WRITTEN * abs(value)


def within_rounding(node: Node, value: float) -> float:
    """Return how far a computed number may lie from a value just because of rounding; zero if nothing was rounded."""
    found = roundoffs([node])[0]
    error = 2 * UNTRACED * abs(value) if found is None else found.around(value, ROOM)
    return error + WRITTEN * abs(value) if error else 0.0


def analyse(value: Any) -> None:
    """Look at the arithmetic behind all parts of a nested value at once, which costs less than part by part."""
    if not keeps_bits():
        roundoffs([leaf.node for leaf in random_leaves(value)])
