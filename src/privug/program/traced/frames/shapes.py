"""Small columns made of others: labelled summaries, counts of values, rows in another order."""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privug.model.operations import ArrayFunction, array_function, gather
from privug.model.variable import RandomVariable, as_node, refuse
from privug.program.traced.frames.cells import Cell, cell_of, compared, divided, hits_of
from privug.program.traced.frames.reductions import positive
from privug.program.traced.frames.rows import Axis, Rows
from privug.program.traced.frames.series import Series
from privug.program.traced.masks import Mask, any_of, both, truth
from privug.program.traced.selections import Selection

MOST_SORTED = 200


def observes_by_default() -> bool:
    """Say whether groups that do not occur are left out unless it is said otherwise, as pandas does from 3.0 on."""
    return int(str(importlib.import_module("pandas").__version__).partition(".")[0]) >= 3


def labelled(labels: Sequence[Any], cells: Sequence[Cell], name: Any = None) -> Series:
    """Return a column of cells under fixed labels."""
    if len(set(labels)) < len(labels):
        refuse("labels that stand for several cells")
    return Series(cells, Rows.all_of(Axis((None,) * len(labels), tuple(labels))), name)


class Index(Series):
    """The labels of rows."""

    kind = "Index"

    def __init__(self, rows: Rows) -> None:
        super().__init__([cell_of(label) for label in rows.axis.called()], rows)
        if rows.axis.anonymous:
            refuse("the labels of rows in a random order")

    def __getitem__(self, key: Any) -> Any:
        return self.filtered(key) if isinstance(key, Series) else self.iloc[key]

    def contains(self, item: Any) -> Mask:
        hits = [both(there, truth(compared(np.equal, cell, cell_of(item)).value)) for cell, there in self._pairs()]
        return any_of(hits)

    def _pairs(self) -> Any:
        if any(plate is not None for plate in self.rows.axis.plates):
            refuse("a look for a label among many rows")
        return zip(self.cells, self.rows.there, strict=True)


def hits_in(columns: Sequence[Series], rows: Rows) -> list[dict[Any, Mask]]:
    """Return for each segment of rows the values that columns may have there, each with its condition."""
    per_column = [column.hits or [hits_of(cell) for cell in column.cells] for column in columns]
    if len(columns) == 1:
        return per_column[0]
    found = []
    for several in zip(*per_column, strict=True):
        joined: dict[Any, Mask] = {(): True}
        for hits in several:
            joined = {(*a, b): both(m, n) for a, m in joined.items() for b, n in hits.items()}
        found.append({label: mask for label, mask in joined.items() if mask is not False})
    return found


def all_labels(columns: Sequence[Series], several: Sequence[Mapping[Any, Mask]]) -> list[Any]:
    """Return all values in ascending order; those of pd.cut in the order of its bins."""
    labels = list(dict.fromkeys(label for hits in several for label in hits))
    try:
        if len(columns) == 1 and columns[0].hits is not None:
            return sorted(labels, key=list(columns[0].hits[0]).index)
        return sorted(labels)
    except (TypeError, ValueError):
        return refuse("groups whose order is not known")


def counted_values(columns: Sequence[Series], rows: Rows, normalize: bool) -> Series:
    """Return how often each value occurs; in descending order, which is random."""
    several = hits_in(columns, rows)
    labels = all_labels(columns, several)
    counts = [rows.among([hits.get(label, False) for hits in several]).count for label in labels]
    everything = len(columns) == 1 and columns[0].categorical
    possible = [everything or isinstance(number, RandomVariable) or number > 0 for number in counts]
    kept = [pair for pair, one in zip(zip(labels, counts, strict=True), possible, strict=True) if one]
    there: list[Mask] = [everything or positive(number) for _, number in kept]
    axis = Axis((None,) * len(kept), tuple(label for label, _ in kept), tuple(c.name for c in columns), sorted=False)
    total = rows.count if all(cell.known is True for column in columns for cell in column.cells) else None
    if normalize and total is None:
        total = rows.among([any_of(list(hits.values())) for hits in several]).count
    cells = [
        divided(Cell(number), Cell(total), one) if normalize else Cell(number)
        for (_, number), one in zip(kept, there, strict=True)
    ]
    return Series(cells, Rows(axis, tuple(there)), "proportion" if normalize else "count")


def described(column: Series) -> Series:
    """Return the eight numbers of describe()."""
    cells = [column.summary(how) for how in ("count", "mean", "std", "min")]
    cells += [column.summary("quantile", q) for q in (0.25, 0.5, 0.75)]
    labels = ("count", "mean", "std", "min", "25%", "50%", "75%", "max")
    return labelled(labels, [*cells, column.summary("max")], column.name)


def sorted_rows(
    data: Mapping[Any, Sequence[Cell]], rows: Rows, by: Sequence[Cell], ascending: bool, most: int | None
) -> tuple[dict[Any, list[Cell]], Rows]:
    """Return rows in the order of a column, equal ones as they stood; some of the first."""
    axis = rows.axis
    if axis.size > MOST_SORTED or not axis.sorted or any(cell.known is not True for cell in by):
        refuse("an order of so many rows, or of missing values")
    key = axis.whole([cell.value for cell in by])
    if key.node.levels is not None:
        refuse("an order of texts")
    key = key if ascending else -key
    if not rows.are_all:
        key = Selection(key.astype(float), rows.mask).filled(np.inf)
    places = RandomVariable(array_function(ArrayFunction("argsort", _stable_order), [key.node]))
    size = axis.size if most is None else min(most, axis.size)
    number = rows.count
    there = tuple(True if not isinstance(number, RandomVariable) else number > place for place in range(size))
    found = {name: _gathered(cells, axis, places, size) for name, cells in data.items()}
    return found, Rows(Axis((None,) * size, tuple(range(size)), anonymous=True), there)


def _stable_order(keys: Any) -> Any:
    return np.argsort(keys, axis=-1, kind="stable")


def _gathered(cells: Sequence[Cell], axis: Axis, places: Any, size: int) -> list[Cell]:
    values = axis.whole([cell.value for cell in cells])
    known = None
    if any(cell.known is not True for cell in cells):
        known = axis.whole([RandomVariable(as_node(cell.known)) for cell in cells])
    found = []
    for place in range(size):
        position = places[place].node
        mask: Mask = True if known is None else RandomVariable(gather(known.node, position))
        found.append(Cell(RandomVariable(gather(values.node, position)), mask))
    return found
