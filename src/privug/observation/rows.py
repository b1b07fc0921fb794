"""What was seen of lists whose items may be absent: which of the items those are that were seen."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

from privug.arguments import shown
from privug.errors import ObservationError
from privug.model.sparse import SparseDict, SparseFrame, SparseList, values_in
from privug.model.variable import RandomVariable
from privug.observation.likelihood import Likelihood, of_lacking, of_order, of_present

MOST_WAYS = 1_000
"""In how many ways what was seen may be found among the items that there may be."""

Matching = Callable[[Any, Any], Likelihood]
"""What it says of an item that something was seen of it."""


def of_items(items: SparseList, seen: Sequence[Any], matching: Matching) -> Likelihood:
    """Return what it says that these items were seen, in their order, and no others."""
    ways = []
    for way in _ways(items, list(seen), matching):
        ways.append(way)
        if len(ways) > MOST_WAYS:
            raise ObservationError(
                "what was seen may be any of very many rows; have the program publish what tells its rows apart"
            )
    if not ways:
        return Likelihood(impossible=f"the output never is such a list of {len(seen)}")
    return ways[0] if len(ways) == 1 else _any_of(ways)


def _ways(items: list[Any], seen: list[Any], matching: Matching) -> Iterator[Likelihood]:
    """Yield the ways in which items are those that were seen: each is the next one that was, or is not there."""
    if len(seen) > len(items):
        return
    if not items:
        yield Likelihood()
        return
    if seen:
        found = _there(items[0]) & matching(items[0], seen[0])
        if found.impossible is None:
            yield from (found & rest for rest in _ways(items[1:], seen[1:], matching))
    lacking = of_lacking(values_in(items[0])[0])
    if lacking.impossible is None:
        yield from (lacking & rest for rest in _ways(items[1:], seen, matching))


def _there(item: Any) -> Likelihood:
    value = values_in(item)[0]
    absent = isinstance(value, RandomVariable) and SparseDict.is_absent(value)
    return of_present(value, lambda _: Likelihood()) if absent else Likelihood()


def _any_of(ways: list[Likelihood]) -> Likelihood:
    if any(way.points or way.log_weights for way in ways):
        raise ObservationError(
            "what was seen may be one or another of several rows with continuous values; have the program publish what "
            "tells its rows apart"
        )
    joined = [reduce(lambda one, other: one & other, map(RandomVariable, way.conditions)) for way in ways]
    return Likelihood(conditions=(reduce(lambda one, other: one | other, joined).node,))


def of_frame(
    frame: SparseFrame, seen: Mapping[str, Sequence[Any]], matching: Matching, value: Callable[[Any], Any] = lambda x: x
) -> Likelihood:
    """Return what it says that these columns were seen, in rows in their order, or in any if that means nothing.

    `value` gives the plain value that was seen, if that is known, by which rows are told apart.
    """
    names = [name for name in frame if name in seen]
    if len({len(seen[name]) for name in names}) > 1:
        return Likelihood(impossible="the columns of the output have as many rows as each other")
    wanted = list(zip(*(seen[name] for name in names), strict=True))
    if frame.order is not None:
        known = frame.order.columns
        if not set(known) <= set(names):
            which = f"rows that are equal in {', '.join(frame.order.keys)}" if frame.order.keys else "the rows"
            raise ObservationError(f"{which} have no order: say what was seen of {', '.join(known)}, too")
        told = [tuple(value(part) for part in row) for row in zip(*(seen[name] for name in known), strict=True)]
        wanted = [wanted[row] for row in frame.order.order(told)]
    rows = SparseList(zip(*(frame[name] for name in names), strict=True))

    def of_row(row: Any, parts: Any) -> Likelihood:
        return reduce(lambda one, other: one & other, map(matching, row, parts))

    return of_items(rows, wanted, of_row)


def of_whole_frame(frame: SparseFrame, seen: Any, matching: Matching) -> Likelihood:
    """Return what it says that just these columns were seen: those that have no rows may be left out."""
    if not isinstance(seen, Mapping) or not frame.keys() - frame.optional <= seen.keys() <= frame.keys():
        return Likelihood(impossible=f"the output is a frame of the columns {list(frame)}, not {shown(seen)}")
    if not all(isinstance(column, list | tuple) for column in seen.values()):
        return Likelihood(impossible=f"the columns of the output are lists, not {shown(seen)}")
    lacking = Likelihood()
    for name in frame.keys() - seen.keys():
        for value in frame[name]:
            lacking = lacking & of_lacking(value)
    in_order = Likelihood() if frame.is_open else of_order(frame, list(seen))
    return lacking & of_frame(frame, seen, matching) & in_order
