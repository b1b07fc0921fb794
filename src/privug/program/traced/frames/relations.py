"""Rows by the values of keys, rows of several tables together, and what stands before each row."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from privug.model.variable import RandomVariable, refuse
from privug.program.traced.frames import reductions
from privug.program.traced.frames.cells import Cell, cell_of, chosen, hits_of, is_category, kind
from privug.program.traced.frames.columns import Column, compared
from privug.program.traced.frames.reductions import positive
from privug.program.traced.frames.rows import Axis, Rows, counted, hits_in, singled_out, total_of
from privug.program.traced.masks import Mask, any_of, both, either, negated, truth


class Groups:
    """Rows by the values of keys, in ascending order of the keys; those that may be empty as well, if so asked."""

    def __init__(self, keys: Sequence[Any], rows: Rows, everything: bool = False) -> None:
        self.keys, self.rows, self.everything = list(keys), rows, everything

    @cached_property
    def hits(self) -> list[dict[Any, Mask]]:
        """For each segment of rows, the groups its rows may be in."""
        return hits_in(self.keys, self.rows)

    @cached_property
    def members(self) -> list[tuple[Any, Rows]]:
        """The groups, each with its rows: by the value of the key, or the values of several."""
        labels = list(dict.fromkeys(label for hits in self.hits for label in hits))
        try:
            labels.sort(key=lambda label: [*map(lambda key, part: key.place_of(part), self.keys, self.parts(label))])
        except (TypeError, ValueError):
            refuse("groups whose order is not known")
        found = [(label, self.rows.among([hits.get(label, False) for hits in self.hits])) for label in labels]
        return [pair for pair in found if self.everything or isinstance(pair[1].count, RandomVariable) or pair[1].count]

    def parts(self, label: Any) -> tuple[Any, ...]:
        """Return the value of each key in a group."""
        return label if len(self.keys) > 1 else (label,)

    @cached_property
    def there(self) -> tuple[Mask, ...]:
        """Which groups have rows."""
        return tuple(positive(rows.count) for _, rows in self.members)

    def first_places(self) -> list[Any]:
        """Return where each group begins; somewhere behind all rows if it has none."""
        if not all(rows.axis.sorted for _, rows in self.members):
            refuse("groups in the order of their first rows, whose own order is not known")
        return [reductions.smallest([Cell(k) for k in rows.axis.positions()], rows).value for _, rows in self.members]

    def spread(self, cells: Sequence[Sequence[Cell]], whole: bool) -> list[Cell]:
        """Return for each segment of rows the cell of its group; `cells` are those of the groups, for each segment."""
        found = []
        for own, several in zip(self.hits, cells, strict=True):
            total = Cell(several[0].value if several else 0.0, False)
            for (label, _), cell in zip(self.members, several, strict=True):
                total = chosen(own.get(label, False), cell, total)
            found.append(Cell(total.value) if whole and several else total)
        return found


class ColumnGroups(Groups):
    """The groups of a relation, which come in any order, by the values of columns, of which missing is one."""

    def __init__(self, keys: Sequence[Column], rows: Rows) -> None:
        if any(not key.single and not key.rows.same_as(rows) for key in keys):
            refuse("groups by columns of other rows")
        super().__init__([key.beside_rows(rows) for key in keys], rows)

    @cached_property
    def as_rows(self) -> Rows:
        """The groups as rows of a relation."""
        return Rows(Axis((None,) * len(self.there), sorted=False), self.there)

    def key_columns(self) -> list[Column]:
        """Return the keys as columns of that relation."""
        found = []
        for place, key in enumerate(self.keys):
            values = [self.parts(label)[place] for label, _ in self.members]
            filling = next((value for value in values if value is not None), 0.0)
            found.append(key.moved([Cell(filling, False) if v is None else cell_of(v) for v in values], self.as_rows))
        return found

    def over(self, parts: Sequence[Column]) -> Column:
        """Return for each row what an expression gave in its group."""
        whole = all(cell.known is True for part in parts for cell in part.cells)
        if any(not p.single and not p.rows.same_as(rows) for p, (_, rows) in zip(parts, self.members, strict=True)):
            refuse("over() of an expression that gives other rows")
        in_rows = [(part if part.single else part.on(self.rows)).beside_rows(self.rows) for part in parts]
        found = self.spread(list(zip(*(part.cells for part in in_rows), strict=True)), whole)
        return Column(tuple(found), self.rows, parts[0].name, largest=largest_of(parts))


def largest_of(parts: Sequence[Column]) -> int | None:
    """Return the largest number that columns of groups can hold, if all are counts."""
    tops = [part.largest for part in parts]
    return None if None in tops else max((top for top in tops if top is not None), default=None)


Columns = Mapping[str, Column]
Relation = tuple[dict[str, Column], Rows]
"""Columns and the rows that they are of."""
Key = tuple[Column, bool, bool]
"""What rows are sorted by, whether downwards, and whether missing values are last."""
MOST_PAIRS = 4096
"""How many pairs of rows of two tables are looked at."""
MOST_RANKED = 64
"""How many rows may be put in an order by comparing each with all."""


def unrolled(columns: Columns, rows: Rows) -> Relation:
    """Return every row by itself."""
    if not rows.has_plates:
        return dict(columns), rows
    there = tuple(singled_out([Cell(0)] * len(rows.there), rows)[1])
    made = Rows(Axis((None,) * len(there), sorted=rows.axis.sorted), there)
    return {name: column.moved(singled_out(column.cells, rows)[0], made) for name, column in columns.items()}, made


def stacked(relations: Sequence[tuple[Columns, Rows]]) -> Relation:
    """Return the rows of several tables with the same columns, in any order."""
    plates = tuple(plate for _, rows in relations for plate in rows.axis.plates)
    made = Rows(Axis(plates, sorted=False), tuple(mask for _, rows in relations for mask in rows.there))
    first = relations[0][0]
    return {
        name: column.moved([cell for columns, _ in relations for cell in columns[name].cells], made)
        for name, column in first.items()
    }, made


# Joins.
def looked_up(cells: Sequence[Cell], keys: Sequence[Any], values: Sequence[Cell], there: Sequence[Mask]) -> list[Cell]:
    """Return for each cell what stands at it in a table of distinct keys; missing where nothing does."""
    table = {key: (value, mask) for key, value, mask in zip(keys, values, there, strict=True)}
    found = []
    for cell in cells:
        total = cell_of(None)
        for level, hit in hits_of(cell).items():
            if level in table:
                value, mask = table[level]
                total = chosen(both(hit, mask), value, total)
        found.append(total)
    return found


def joined(
    left: tuple[Columns, Rows], right: tuple[Columns, Rows], held: Callable[[Columns, Rows], Sequence[Mask]], how: str
) -> Relation:
    """Return the pairs of rows for which a condition is held; outer joins add rows that have no partner.

    `semi` and `anti` give those rows of the first table that have a partner, or none.
    """
    if left[1].has_plates and right[1].has_plates:
        right = unrolled(*right)
    (columns, rows), (others, other_rows) = left, right
    number = len(other_rows.there)
    if len(rows.there) * number > MOST_PAIRS:
        refuse(f"a join of more than {MOST_PAIRS} pairs of rows")
    places = [(one, two) for one in range(len(rows.there)) for two in range(number)]
    pairs = _paired(left, right, places)
    hits = [both(there, mask) for there, mask in zip(pairs[1].there, held(*pairs), strict=True)]
    by_left = [hits[place * number : (place + 1) * number] for place in range(len(rows.there))]
    if how in ("semi", "anti"):
        met = [_any(one, plate, other_rows) for one, plate in zip(by_left, rows.axis.plates, strict=True)]
        kept = rows.among(met if how == "semi" else [negated(mask) for mask in met])
        return {name: column.on(kept) for name, column in columns.items()}, kept
    parts: list[Relation] = [_present(pairs[0], Rows(pairs[1].axis, tuple(hits)))]
    if how in ("left", "full"):
        met = [_any(one, plate, other_rows) for one, plate in zip(by_left, rows.axis.plates, strict=True)]
        alone = rows.among([negated(mask) for mask in met])
        parts.append(_present({**_placed(columns, alone), **_missing(others, alone)}, alone))
    if how in ("right", "full"):
        met = [_any(hits[k::number], plate, rows) for k, plate in enumerate(other_rows.axis.plates)]
        alone = other_rows.among([negated(mask) for mask in met])
        parts.append(_present({**_missing(columns, alone), **_placed(others, alone)}, alone))
    return stacked(parts)


def _paired(left: tuple[Columns, Rows], right: tuple[Columns, Rows], places: Sequence[tuple[int, int]]) -> Relation:
    (columns, rows), (others, other_rows) = left, right
    plates = tuple(rows.axis.plates[one] or other_rows.axis.plates[two] for one, two in places)
    there = tuple(both(rows.there[one], other_rows.there[two]) for one, two in places)
    made = Rows(Axis(plates, sorted=False), there)
    first = {name: column.moved([column.cells[one] for one, _ in places], made) for name, column in columns.items()}
    second = {name: column.moved([column.cells[two] for _, two in places], made) for name, column in others.items()}
    return first | second, made


def _any(hits: Sequence[Mask], plate: Any, others: Rows) -> Mask:
    """Return whether a row has a partner among others, which may be many."""
    return any_of(hits) if plate is not None else positive(counted(hits, others.axis.plates))


def _placed(columns: Columns, rows: Rows) -> dict[str, Column]:
    return {name: column.on(rows) for name, column in columns.items()}


def _missing(columns: Columns, rows: Rows) -> dict[str, Column]:
    """Return columns of which nothing is known, but the kind."""
    return {
        name: column.moved([Cell(_example(column), False)] * len(rows.there), rows) for name, column in columns.items()
    }


def _example(column: Column) -> Any:
    """Return a plain value of the kind of a column."""
    value: Any = next((cell.value for cell in column.cells if cell.known is not False), 0.0)
    if is_category(value):
        return value.node.levels[0]
    return {"b": False, "i": 0, "f": 0.0}[kind(value)] if isinstance(value, RandomVariable) else value


def _present(columns: Columns, rows: Rows) -> Relation:
    """Return rows without those that are never there."""
    kept = [place for place, mask in enumerate(rows.there) if mask is not False]
    axis = Axis(tuple(rows.axis.plates[place] for place in kept), sorted=False)
    made = Rows(axis, tuple(rows.there[place] for place in kept))
    return {name: one.moved([one.cells[place] for place in kept], made) for name, one in columns.items()}, made


# Among others.
def is_among(column: Column, others: Column) -> Column:
    """Say which values are among those of another column: unknown if one that is missing might be the same."""
    some = any_of(list(others.rows.there))
    gaps = any_of([both(t, negated(cell.known)) for cell, t in zip(others.cells, others.rows.there, strict=True)])

    def within(cell: Cell) -> Cell:
        pairs = zip(others.cells, others.rows.there, strict=True)
        alike = [(compared(np.equal, cell, other), there) for other, there in pairs]
        found = any_of([both(there, both(one.known, truth(one.value))) for one, there in alike])
        unknown = either(gaps, both(negated(cell.known), some))
        return Cell(found, either(found, negated(unknown)))

    return column.each(within)


@dataclass(frozen=True, eq=False)
class RowSequence:
    """Rows in the order of keys, within those that are alike in other columns: each row compared with all."""

    rows: Rows
    partition: tuple[Column, ...]
    keys: tuple[Key, ...]
    compare: Callable[[np.ufunc, Cell, Cell], Cell] = compared

    def __post_init__(self) -> None:
        if self.rows.has_plates or len(self.rows.there) > MOST_RANKED:
            refuse(f"an order among more than {MOST_RANKED} rows")

    @property
    def _places(self) -> range:
        return range(len(self.rows.there))

    def _same(self, left: Cell, right: Cell) -> Mask:
        """Return whether two cells are alike; missing ones are."""
        verdict = self.compare(np.equal, left, right)
        missing = both(negated(left.known), negated(right.known))
        return either(missing, both(verdict.known, truth(verdict.value)))

    def _alike(self, one: int, two: int) -> Mask:
        return reduce(both, (self._same(key.cells[one], key.cells[two]) for key in self.partition), True)

    def _ahead(self, left: Cell, right: Cell, descending: bool, nulls_last: bool) -> Mask:
        """Return whether one cell stands before another in an order."""
        verdict = self.compare(np.greater if descending else np.less, left, right)
        known = both(verdict.known, truth(verdict.value))
        gap = both(left.known, negated(right.known)) if nulls_last else both(negated(left.known), right.known)
        return either(known, gap)

    @cached_property
    def together(self) -> list[list[Mask]]:
        """For each row, which rows are there and in its part."""
        return [
            [both(self.rows.there[other], self._alike(place, other)) for other in self._places]
            for place in self._places
        ]

    @cached_property
    def _compared(self) -> list[list[tuple[Mask, Mask]]]:
        return [[self._order(one, two) for two in self._places] for one in self._places]

    def _order(self, one: int, two: int) -> tuple[Mask, Mask]:
        """Return whether a row stands before another, and whether the keys do not tell."""
        before: Mask = False
        equal: Mask = True
        for key, descending, last in self.keys:
            before = either(before, both(equal, self._ahead(key.cells[one], key.cells[two], descending, last)))
            equal = both(equal, self._same(key.cells[one], key.cells[two]))
        return before, equal

    @cached_property
    def ahead(self) -> list[list[Mask]]:
        """For each row, the rows of its part whose keys are before its own."""
        return self._around(0)

    @cached_property
    def peers(self) -> list[list[Mask]]:
        """For each row, the rows of its part of equal keys, itself among them."""
        return self._around(1)

    def _around(self, which: int) -> list[list[Mask]]:
        places = self._places
        return [[both(self.together[k][other], self._compared[other][k][which]) for other in places] for k in places]

    @cached_property
    def numbers(self) -> list[Any]:
        """The number of each row within its part, from one on: rows with equal keys as they stand."""
        return [
            total_of([either(a, both(p, other < place)) for other, (a, p) in enumerate(zip(*pair, strict=True))]) + 1
            for place, pair in enumerate(zip(self.ahead, self.peers, strict=True))
        ]

    @property
    def sizes(self) -> list[Any]:
        """How many rows the part of each row has."""
        return [total_of(masks) for masks in self.together]

    def ranks(self) -> list[Any]:
        """Return the rank of each row: equal ones have the same, and leave a gap behind them."""
        return [total_of(masks) + 1 for masks in self.ahead]

    def dense_ranks(self) -> list[Any]:
        """Return the rank of each row without gaps."""
        first = [negated(any_of(self.peers[place][:place])) for place in self._places]
        return [total_of([both(a, f) for a, f in zip(masks, first, strict=True)]) + 1 for masks in self.ahead]

    def at(self, cells: Sequence[Cell], numbers: Sequence[Any], otherwise: Sequence[Cell]) -> list[Cell]:
        """Return for each row the cell of that row of its part that has a number, or else another cell."""
        found = []
        for place, (number, cell) in enumerate(zip(numbers, otherwise, strict=True)):
            for other in self._places:
                hit = truth(self.numbers[other] == number)
                cell = chosen(both(self.together[place][other], hit), cells[other], cell)
            found.append(cell)
        return found

    def between(self, place: int, first: int | None, last: int | None) -> list[Mask]:
        """Return the rows of a part from some rows before a row on to some behind it."""
        own = self.numbers[place]
        found = []
        for other in self._places:
            inside: Mask = self.together[place][other]
            if first is not None:
                inside = both(inside, truth(self.numbers[other] >= own + first))
            if last is not None:
                inside = both(inside, truth(self.numbers[other] <= own + last))
            found.append(inside)
        return found
