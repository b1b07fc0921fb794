"""Small columns made of others: labelled summaries, counts of values."""

import importlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from privug.model.variable import RandomVariable, refuse
from privug.program.traced.frames.cells import Cell, cell_of, compared, divided, kind, with_gaps
from privug.program.traced.frames.handing import native
from privug.program.traced.frames.ordering import all_labels, hits_in
from privug.program.traced.frames.reductions import first_places, positive
from privug.program.traced.frames.rows import Axis, Rows
from privug.program.traced.frames.series import Series
from privug.program.traced.masks import Mask, any_of, both, truth


def observes_by_default() -> bool:
    """Say whether groups that do not occur are left out unless it is said otherwise, as pandas does from 3.0 on."""
    return int(str(importlib.import_module("pandas").__version__).partition(".")[0]) >= 3


def labelled(
    labels: Sequence[Any], cells: Sequence[Cell], name: Any = None, there: Sequence[Mask] | None = None
) -> Series:
    """Return a column of cells under fixed labels, all of which are there unless it is said when each is."""
    if len(set(labels)) < len(labels):
        refuse("labels that stand for several cells")
    axis = Axis((None,) * len(labels), tuple(labels))
    return Series(cells, Rows.all_of(axis) if there is None else Rows(axis, tuple(there)), name)


def one_below_another(columns: Sequence[Series]) -> Series:
    """Return columns of different labels as one."""
    if not all(isinstance(column, Series) for column in columns):
        refuse("pd.concat of columns and something else")
    axes = [column.rows.axis for column in columns]
    if any(axis.labels is None or axis.anonymous or not axis.sorted for axis in axes):
        refuse("pd.concat of columns without fixed labels")
    names = {column.name for column in columns}
    made = labelled(
        [label for axis in axes for label in axis.labels or ()],
        [cell for column in columns for cell in column.cells],
        names.pop() if len(names) == 1 else None,
        [there for column in columns for there in column.rows.there],
    )
    kinds = {kind(cell.value) for cell in made.cells}
    return made if len(kinds) == 1 else refuse("pd.concat of columns of different types")


class Index(Series):
    """The labels of rows."""

    kind = "Index"

    def __init__(self, rows: Rows) -> None:
        super().__init__([cell_of(label) for label in rows.axis.called()], rows)
        if rows.axis.anonymous:
            refuse("the labels of rows in a random order")

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, Series):
            return self.filtered(key)
        found = self.iloc[key]
        return found if self.rows.axis.labels is not None or isinstance(key, slice) else native(cell_of(found))

    def contains(self, item: Any) -> Mask:
        hits = [both(there, truth(compared(np.equal, cell, cell_of(item)).value)) for cell, there in self._pairs()]
        return any_of(hits)

    def _pairs(self) -> Any:
        if any(plate is not None for plate in self.rows.axis.plates):
            refuse("a look for a label among many rows")
        return zip(self.cells, self.rows.there, strict=True)


def counted_values(columns: Sequence[Series], rows: Rows, normalize: bool, descending: bool = True) -> Series:
    """Return how often each value occurs, in a random order: the descending one, if not another that is not known."""
    several = hits_in(columns, rows)
    labels = all_labels(columns, several)
    counts = [rows.among([hits.get(label, False) for hits in several]).count for label in labels]
    everything = len(columns) == 1 and columns[0].categorical
    possible = [everything or isinstance(number, RandomVariable) or number > 0 for number in counts]
    kept = [pair for pair, one in zip(zip(labels, counts, strict=True), possible, strict=True) if one]
    there: list[Mask] = [everything or positive(number) for _, number in kept]
    names, kept_labels = tuple(column.name for column in columns), tuple(label for label, _ in kept)
    turns = None
    if len(columns) == 1 and not everything and descending:
        turns = partial(_turns, kept, several, rows)
    axis = Axis((None,) * len(kept), kept_labels, names, sorted=False, ascending=True, ranks=turns)
    total = rows.count if all(cell.known is True for column in columns for cell in column.cells) else None
    if normalize and total is None:
        total = rows.among([any_of(list(hits.values())) for hits in several]).count
    cells = [
        divided(Cell(number), Cell(total), one) if normalize else Cell(number)
        for (_, number), one in zip(kept, there, strict=True)
    ]
    return Series(cells, Rows(axis, tuple(there)), "proportion" if normalize else "count")


def _turns(counts: Sequence[tuple[Any, Any]], several: Sequence[Mapping[Any, Mask]], rows: Rows) -> list[Any]:
    """Return numbers by which values stand in turn: the most frequent first, of equally many the first to be seen."""
    firsts = first_places([rows.among([hits.get(label, False) for hits in several]) for label, _ in counts])
    size = rows.axis.size
    return [np.minimum(first, size) - number * (size + 1) for first, (_, number) in zip(firsts, counts, strict=True)]


def described(column: Series) -> Series:
    """Return the eight numbers of describe(), all of them floats."""
    cells = [column.summary(how) for how in ("count", "mean", "std", "min")]
    cells += [column.summary("quantile", q) for q in (0.25, 0.5, 0.75)]
    labels = ("count", "mean", "std", "min", "25%", "50%", "75%", "max")
    return labelled(labels, [with_gaps(cell) for cell in (*cells, column.summary("max"))], column.name)
