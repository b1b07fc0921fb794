"""The groups of rows by the values of some columns, of which missing is one."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from privug.model.variable import RandomVariable, refuse
from privug.program.traced.frames import reductions
from privug.program.traced.frames.cells import Cell, cell_of, chosen
from privug.program.traced.frames.ordering import hits_in
from privug.program.traced.frames.polars.column import Column, beside
from privug.program.traced.frames.reductions import positive
from privug.program.traced.frames.rows import Axis, Rows
from privug.program.traced.masks import Mask


class Groups:
    """Rows by the values of keys, in ascending order of the keys."""

    def __init__(self, keys: Sequence[Column], rows: Rows) -> None:
        if any(not key.single and not key.rows.same_as(rows) for key in keys):
            refuse("groups by columns of other rows")
        size = len(rows.there)
        self.keys = [key if not key.single else Column(key.cells * size, rows, key.name) for key in keys]
        self.rows = rows

    @cached_property
    def hits(self) -> list[dict[Any, Mask]]:
        """For each segment of rows, the groups its rows may be in."""
        return hits_in(self.keys, self.rows)

    @cached_property
    def members(self) -> list[tuple[tuple[Any, ...], Rows]]:
        """The values of the keys in each group, and its rows."""
        labels = list(dict.fromkeys(label for hits in self.hits for label in hits))
        several = [(label, self._values(label)) for label in labels]
        try:
            several.sort(key=lambda pair: tuple(k.rank(v) for k, v in zip(self.keys, pair[1], strict=True)))
        except TypeError:
            refuse("groups whose order is not known")
        found = [(values, self.rows.among([hits.get(label, False) for hits in self.hits])) for label, values in several]
        return [(values, rows) for values, rows in found if isinstance(rows.count, RandomVariable) or rows.count]

    def _values(self, label: Any) -> tuple[Any, ...]:
        return label if len(self.keys) > 1 else (label,)

    @cached_property
    def as_rows(self) -> Rows:
        """The groups as rows of a frame, in an order that polars leaves open."""
        there = tuple(positive(rows.count) for _, rows in self.members)
        return Rows(Axis((None,) * len(there), sorted=False), there)

    def key_columns(self) -> list[Column]:
        """Return the keys as columns of that frame."""
        found = []
        for place, key in enumerate(self.keys):
            values = [values[place] for values, _ in self.members]
            filling = next((value for value in values if value is not None), 0.0)
            cells = tuple(Cell(filling, False) if value is None else cell_of(value) for value in values)
            found.append(Column(cells, self.as_rows, key.name, levels=key.levels, largest=key.largest))
        return found

    def first_places(self) -> list[Cell]:
        """Return where in the frame each group begins."""
        return [Cell(first) for first in reductions.first_places([rows for _, rows in self.members])]

    def spread(self, parts: Sequence[Column]) -> Column:
        """Return for each row what an expression gave in its group."""
        whole = all(cell.known is True for part in parts for cell in part.cells)
        if any(not p.single and not p.rows.same_as(rows) for p, (_, rows) in zip(parts, self.members, strict=True)):
            refuse("over() of an expression that gives other rows")
        rows_of_parts = [part if part.single else part.on(self.rows) for part in parts]
        rows, _, cells = beside(*rows_of_parts, Column((Cell(0),) * len(self.rows.there), self.rows))
        found = []
        for hits, several in zip(self.hits, zip(*cells[:-1], strict=True), strict=True):
            total = Cell(several[0].value if several else 0.0, False)
            for (values, _), cell in zip(self.members, several, strict=True):
                label = values if len(self.keys) > 1 else values[0]
                total = chosen(hits.get(label, False), cell, total)
            found.append(Cell(total.value) if whole and several else total)
        first = parts[0]
        tops = [part.largest for part in parts]
        largest = None if None in tops else max(top for top in tops if top is not None)
        return Column(tuple(found), rows, first.name, largest=largest)
