"""Rows by the values of keys, rows of several tables together, rows in an order, and what stands before each row."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from privug.model.operations import ArrayFunction, array_function, gather
from privug.model.variable import RandomVariable, as_node, refuse
from privug.program.traced.frames import reductions
from privug.program.traced.frames.cells import (
    MISSING,
    Cell,
    applied,
    cell_of,
    chosen,
    converted,
    hits_of,
    is_truth,
    mapped,
)
from privug.program.traced.frames.columns import Column, are_alike, compared, refuse_nan
from privug.program.traced.frames.dialects import Dialect
from privug.program.traced.frames.reductions import positive
from privug.program.traced.frames.rows import Axis, Rows, counted, singled_out, total_of
from privug.program.traced.masks import Mask, any_of, both, either, negated, truth
from privug.program.traced.selections import Selection


class Groups:
    """Rows by the values of keys, in ascending order of the keys; those that may be empty as well, if so asked."""

    def __init__(self, dialect: Dialect, keys: Sequence[Column], rows: Rows, everything: bool = False) -> None:
        if any(not key.single and not key.rows.same_as(rows) for key in keys):
            refuse("groups by columns of other rows")
        self.keys, self.rows, self.everything = [key.on(rows) for key in keys], rows, everything
        self._dialect = dialect

    @cached_property
    def hits(self) -> list[dict[Any, Mask]]:
        """For each segment of rows, the groups its rows may be in."""
        per_column = [key.hits(self._dialect.null_is_key) for key in self.keys]
        if len(per_column) == 1:
            return per_column[0]
        found = []
        for several in zip(*per_column, strict=True):
            joined: dict[Any, Mask] = {(): True}
            for hits in several:
                joined = {(*a, b): both(m, n) for a, m in joined.items() for b, n in hits.items()}
            found.append({label: mask for label, mask in joined.items() if mask is not False})
        return found

    @cached_property
    def members(self) -> list[tuple[Any, Rows]]:
        """The groups, each with its rows: by the value of the key, or the values of several."""
        every = self.keys[0].levels or () if self.everything and len(self.keys) == 1 else ()
        labels = list(dict.fromkeys([*every, *(label for hits in self.hits for label in hits)]))
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
        places = [Cell(place) for place in self.rows.axis.positions()]
        return [reductions.smallest(Column(places, rows)).value for _, rows in self.members]

    def spread(self, cells: Sequence[Sequence[Cell]], whole: bool) -> list[Cell]:
        """Return for each segment of rows the cell of its group; `cells` are those of the groups, for each segment."""
        found = []
        for own, several in zip(self.hits, cells, strict=True):
            total = Cell(several[0].value if several else 0.0, False)
            for (label, _), cell in zip(self.members, several, strict=True):
                total = chosen(own.get(label, False), cell, total)
            found.append(Cell(total.value) if whole and several else total)
        return found

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
        if any(not p.single and not p.rows.same_as(rows) for p, (_, rows) in zip(parts, self.members, strict=True)):
            refuse("over() of an expression that gives other rows")
        whole = all(part.is_known for part in parts)
        found = self.spread(list(zip(*(part.on(self.rows).cells for part in parts), strict=True)), whole)
        return Column(found, self.rows, parts[0].name, largest=largest_of(parts))


def largest_of(parts: Sequence[Column]) -> int | None:
    """Return the largest number that columns of groups can hold, if all are counts."""
    tops = [part.largest for part in parts]
    return None if None in tops else max((top for top in tops if top is not None), default=None)


Columns = Mapping[Any, Column]
Relation = tuple[dict[Any, Column], Rows]
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
LOOKED_UP = ("inner", "left", "semi", "anti")
"""Joins that find at most one row of a table of plain, distinct keys for each row."""


def looked_up(cells: Sequence[Cell], keys: Sequence[Any], values: Sequence[Cell], there: Sequence[Mask]) -> list[Cell]:
    """Return for each cell what stands at it in a table of distinct keys; missing where nothing does."""
    table = {key: (value, mask) for key, value, mask in zip(keys, values, there, strict=True)}
    if all(mask is True and not isinstance(one.value, RandomVariable) for one, mask in table.values()):
        plain = {key: one.value for key, (one, _) in table.items() if one.known is True}
        return [mapped(plain.get, cell) for cell in cells]
    found = []
    for cell in cells:
        total = MISSING
        for level, hit in hits_of(cell).items():
            if level in table:
                value, mask = table[level]
                total = chosen(both(hit, mask), value, total)
        found.append(total)
    return found


def can_look_up(key: Column, other: Column) -> bool:
    """Say whether a row of a table is found by its key: by plain values that differ, and are no floats."""
    if not other.is_fixed or other.rows.has_plates or not are_alike(key, other):
        return False
    known = [cell.value for cell in other.cells if cell.known]
    return len(set(known)) == len(known) and not any(isinstance(value, float) for value in known)


def joined_by_lookup(left: Relation, right: Relation, key: Column, other: Column, how: str) -> Relation:
    """Return rows with those of another table that have their key; a missing key is like no other."""
    (columns, rows), (others, other_rows) = left, right
    known = [place for place, cell in enumerate(other.cells) if cell.known]
    keys, there = [other.cells[k].value for k in known], [other_rows.there[k] for k in known]
    partner = [one.known for one in looked_up(key.cells, keys, [Cell(True)] * len(keys), there)]
    kept = rows if how == "left" else rows.among([negated(one) for one in partner] if how == "anti" else partner)
    found = {name: column.on(kept) for name, column in columns.items()}
    for name, column in others.items() if how in ("inner", "left") else ():
        found[name] = column.moved(looked_up(key.cells, keys, [column.cells[k] for k in known], there), kept)
    return found, kept


def joined(left: Relation, right: Relation, held: Callable[[Columns, Rows], Sequence[Mask]], how: str) -> Relation:
    """Return the pairs of rows for which a condition is held; outer joins add rows that have no partner.

    `semi` and `anti` give those rows of the first table that have a partner, or none.
    """
    if left[1].has_plates and right[1].has_plates:
        right = unrolled(*right)
    (columns, rows), (_, other_rows) = left, right
    size, number = len(rows.there), len(other_rows.there)
    if size * number > MOST_PAIRS:
        refuse(f"a join of more than {MOST_PAIRS} pairs of rows")
    places = [(one, two) for one in range(size) for two in range(number)]
    there = [both(rows.there[one], other_rows.there[two]) for one, two in places]
    pairs = _at_places(left, right, places, there)
    hits = [both(mask, hit) for mask, hit in zip(there, held(*pairs), strict=True)]
    by_left = [hits[place * number : (place + 1) * number] for place in range(size)]
    met = [_any(one, plate, other_rows) for one, plate in zip(by_left, rows.axis.plates, strict=True)]
    alone = [both(there, negated(mask)) for there, mask in zip(rows.there, met, strict=True)]
    if how in ("semi", "anti"):
        kept = rows.among(met) if how == "semi" else Rows(rows.axis, tuple(alone))
        return {name: column.on(kept) for name, column in columns.items()}, kept
    found: list[tuple[Pair, Mask]] = []
    for one in range(size):  # in the order of the first table
        found += zip(places[one * number : (one + 1) * number], by_left[one], strict=True)
        found += [((one, None), alone[one])] if how in ("left", "full") else []
    if how in ("right", "full"):
        for two, (mask, plate) in enumerate(other_rows.segments):
            found.append(((None, two), both(mask, negated(_any(hits[two::number], plate, rows)))))
    found = [(place, mask) for place, mask in found if mask is not False]
    return _at_places(left, right, [place for place, _ in found], [mask for _, mask in found])


Pair = tuple[int | None, int | None]
"""The positions of a row of each of two tables, if there is one."""


def _at_places(left: Relation, right: Relation, places: Sequence[Pair], there: Sequence[Mask]) -> Relation:
    """Return pairs of rows of two tables."""
    (columns, rows), (others, other_rows) = left, right
    plates = tuple(
        (None if one is None else rows.axis.plates[one]) or (None if two is None else other_rows.axis.plates[two])
        for one, two in places
    )
    in_turn = (
        rows.axis.sorted and other_rows.axis.sorted and not any(plates) and all(one is not None for one, _ in places)
    )
    made = Rows(Axis(plates, sorted=in_turn), tuple(there))
    first = {name: column.taken([one for one, _ in places], made) for name, column in columns.items()}
    return first | {name: column.taken([two for _, two in places], made) for name, column in others.items()}, made


def _any(hits: Sequence[Mask], plate: Any, others: Rows) -> Mask:
    """Return whether a row has a partner among others, which may be many."""
    return any_of(hits) if plate is not None else positive(counted(hits, others.axis.plates))


# In an order.
MOST_SORTED = 200


def in_fixed_order(columns: Columns, rows: Rows, keys: Sequence[Key]) -> Relation:
    """Return rows in the order of columns of plain values; equal ones are in a known order only if they were before."""
    order = list(range(len(rows.there)))
    for key, down, last in reversed(keys):
        values = [cell.value if cell.known else None for cell in key.cells]
        order.sort(key=lambda place: key.place_of(values[place]), reverse=down)
        order.sort(key=lambda place: (values[place] is None) == last)
    labels = {tuple(key.cells[place] for key, _, _ in keys) for place in order}
    axis = Axis((None,) * len(order), sorted=rows.axis.sorted or len(labels) == len(order))
    made = Rows(axis, tuple(rows.there[place] for place in order))
    return {name: column.taken(order, made) for name, column in columns.items()}, made


def in_order(columns: Columns, rows: Rows, keys: Sequence[Key]) -> Relation:
    """Return rows in the order of columns, random or plain."""
    fixed = all(key.is_fixed for key, _, _ in keys) and not rows.has_plates
    return (in_fixed_order if fixed else in_random_order)(columns, rows, keys)


def in_random_order(columns: Columns, rows: Rows, keys: Sequence[Key], most: int | None = None) -> Relation:
    """Return rows in the order of random columns, equal ones as they stand; some of the first."""
    axis = rows.axis
    if axis.size > MOST_SORTED:
        refuse("an order of so many rows")
    by = [_numbers(*key).whole for key in keys]
    if not rows.are_all:
        by[0] = Selection(by[0].astype(float), rows.mask).filled(np.inf)
    order = _stable_order if len(by) == 1 else _lexical_order
    places = RandomVariable(array_function(ArrayFunction("argsort", order), [key.node for key in by]))
    size = axis.size if most is None else min(most, axis.size)
    there = tuple(truth(rows.count > place) for place in range(size))
    made = Rows(Axis((None,) * size, leading=there), there)
    return {name: column.moved(_gathered(column, places, size), made) for name, column in columns.items()}, made


def _numbers(key: Column, descending: bool, nulls_last: bool) -> Column:
    """Return numbers that are in the order of a column: missing values before or behind all others."""
    refuse_nan(key, "an order")
    cells = key.cells
    if key.is_text:
        values = {value for hits in key.hits(False) for value in hits}
        if len(set(map(type, values))) > 1:
            refuse("an order of texts and other values")
        ranks = {value: place for place, value in enumerate(sorted(values, key=key.place_of))}
        cells = [mapped(ranks.__getitem__, cell) for cell in cells]
    sign, last = Cell(-1 if descending else 1), Cell(np.finfo(float).max if nulls_last else -np.inf)
    unsigned = not descending and not any(is_truth(cell.value) for cell in cells)
    found = [cell if cell.known is False or unsigned else applied(np.multiply, cell, sign) for cell in cells]
    if not all(cell.known is True for cell in found):
        found = [
            last if cell.known is False else chosen(cell.known, converted(Cell(cell.value), float), last)
            for cell in found
        ]
    return Column(found, key.rows)


def _lexical_order(*keys: Any) -> Any:
    return np.lexsort(np.broadcast_arrays(*reversed(keys)), axis=-1)


def _stable_order(keys: Any) -> Any:
    return np.argsort(keys, axis=-1, kind="stable")


def _gathered(column: Column, places: Any, size: int) -> list[Cell]:
    values, known = column.whole, None
    if not column.is_known:
        known = column.rows.axis.whole([RandomVariable(as_node(cell.known)) for cell in column.cells])
    found = []
    for place in range(size):
        position = places[place].node
        mask: Mask = True if known is None else RandomVariable(gather(known.node, position))
        found.append(Cell(RandomVariable(gather(values.node, position)), mask))
    return found


# Among others.
def is_among(dialect: Dialect, column: Column, others: Column) -> Column:
    """Say which values are among those of another column: unknown if one that is missing might be the same."""
    some = any_of(list(others.rows.there))
    gaps = any_of([both(t, negated(cell.known)) for cell, t in zip(others.cells, others.rows.there, strict=True)])

    def within(cell: Cell) -> Cell:
        pairs = zip(others.cells, others.rows.there, strict=True)
        alike = [(compared(dialect, np.equal, cell, other), there) for other, there in pairs]
        found = any_of([both(there, both(one.known, truth(one.value))) for one, there in alike])
        unknown = either(gaps, both(negated(cell.known), some))
        return Cell(found, either(found, negated(unknown)))

    return column.each(within)


@dataclass(frozen=True, eq=False)
class RowSequence:
    """Rows in the order of keys, within those that are alike in other columns: each row compared with all."""

    dialect: Dialect
    rows: Rows
    partition: Sequence[Column]
    keys: Sequence[Key] = ()

    def __post_init__(self) -> None:
        if self.rows.has_plates or len(self.rows.there) > MOST_RANKED:
            refuse(f"an order among more than {MOST_RANKED} rows")

    @property
    def _places(self) -> range:
        return range(len(self.rows.there))

    def _same(self, left: Cell, right: Cell) -> Mask:
        """Return whether two cells are alike; missing ones are."""
        verdict = compared(self.dialect, np.equal, left, right)
        missing = both(negated(left.known), negated(right.known))
        return either(missing, both(verdict.known, truth(verdict.value)))

    def _alike(self, one: int, two: int) -> Mask:
        return reduce(both, (self._same(key.cells[one], key.cells[two]) for key in self.partition), True)

    def _ahead(self, left: Cell, right: Cell, descending: bool, nulls_last: bool) -> Mask:
        """Return whether one cell stands before another in an order."""
        verdict = compared(self.dialect, np.greater if descending else np.less, left, right)
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
