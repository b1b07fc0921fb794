"""Traced group-bys of pandas, tables by two keys, and rows of several tables together."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from privug.model.variable import RandomVariable, refuse
from privug.program.traced.frames import reductions
from privug.program.traced.frames.cells import Cell, cell_of, chosen, computed, kind, surely_known
from privug.program.traced.frames.columns import Column, comparison, divided, masks_of, with_methods
from privug.program.traced.frames.dialects import PANDAS
from privug.program.traced.frames.pandas.series import Series, labelled
from privug.program.traced.frames.pandas.values import native
from privug.program.traced.frames.relations import Groups, Relation, can_look_up, joined, joined_by_lookup
from privug.program.traced.frames.relations import stacked as one_after_the_other
from privug.program.traced.frames.rows import Axis, Rows, renumbered
from privug.program.traced.masks import Mask, MaskedList, Standing, any_of, both, fail_where, negated, truth, under

_FUNCTIONS = {"len": "size", "amin": "min", "amax": "max"}


class FrameGroups(Groups):
    """The groups of a frame, in a known order."""

    def __init__(self, keys: Sequence[Column], rows: Rows, observed: bool, ordered: bool) -> None:
        super().__init__(PANDAS, keys, rows, not observed and any(key.levels is not None for key in keys))
        self.ordered = ordered

    @cached_property
    def as_rows(self) -> Rows:
        """The groups as rows of a result."""
        labels, names = tuple(label for label, _ in self.members), tuple(key.name for key in self.keys)
        by_first = not self.ordered and not any(key.levels is not None for key in self.keys)
        bands = tuple(key.levels for key in self.keys)
        axis = Axis(
            (None,) * len(labels), labels, names, self.ordered, ascending=True, bands=bands,
            ranks=self.first_places if by_first else None,
        )  # fmt: skip
        there = tuple(self.everything or one for one in self.there)
        return Rows(axis, there, self._is_never_empty)

    @property
    def _is_never_empty(self) -> bool:
        """Whether there is a group for sure."""
        return any(
            there is True
            and not (plate and plate.is_ragged)
            and all(key.cells[place].known is True for key in self.keys)
            for place, (there, plate) in enumerate(self.rows.segments)
        )


class GroupBy(Standing):
    """The groups of a frame by the values of some columns."""

    kind = "GroupBy"

    def __init__(
        self, frame: Any, keys: Sequence[Column], by_list: bool, *, observed: bool = True, ordered: bool = True
    ) -> None:
        if not observed and len(keys) > 1 and any(key.levels is not None for key in keys):
            refuse("groups by several keys, of which some need not occur")
        self.frame = frame
        self.keys = list(keys)
        self.by_list = by_list
        self.observed = observed
        self.ordered = ordered
        self.selected: Any = None
        self.numbered = False

    def _with(self, **changes: Any) -> "GroupBy":
        made = GroupBy(self.frame, self.keys, self.by_list, observed=self.observed, ordered=self.ordered)
        vars(made).update({"selected": self.selected, "numbered": self.numbered, **changes})
        return made

    def renumbered(self) -> "GroupBy":
        """Return the group-by whose results have keys as columns."""
        return self._with(numbered=True)

    def __getitem__(self, key: Any) -> "GroupBy":
        return self._with(selected=key)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "frame" not in vars(self) or name not in self.frame.data:
            return super().__getattr__(name)
        return self[name]

    @cached_property
    def by_keys(self) -> "FrameGroups":
        """The groups; results of other group-bys by the same keys are about the same ones."""
        own = [self.frame.rows, *(part for key in self.keys for part in (key.cells, key.known_hits))]
        options = tuple(key.name for key in self.keys), self.observed, self.ordered
        known = vars(self.frame).setdefault("_grouped", [])
        for parts, others, found in known:
            if others == options and len(parts) == len(own) and all(map(operator.is_, parts, own)):
                return found  # type: ignore[no-any-return]
        found = FrameGroups(self.keys, self.frame.rows, self.observed, self.ordered)
        known.append((own, options, found))
        return found

    @property
    def rows(self) -> Rows:
        """The groups as rows of a result."""
        return self.by_keys.as_rows

    @property
    def _parts(self) -> list[tuple[Any, Rows, Mask]]:
        """The groups: the label, the rows and the condition of each."""
        return [(*pair, there) for pair, there in zip(self.by_keys.members, self.rows.there, strict=True)]

    @property
    def names(self) -> list[Any]:
        """The columns that are summarised."""
        if self.selected is not None:
            return self.selected if isinstance(self.selected, list) else [self.selected]
        data = self.frame.data
        keys = {key.name for key in self.keys if key.name in data and key.cells is data[key.name].cells}
        own = {key.name for key in self.keys}
        return [name for name in data if name not in keys and name not in own]

    def listing(self) -> Any:
        """Return the groups with their labels, as a loop over a group-by gives them."""
        if not self.ordered:
            refuse("groups in the order of their first rows")
        return MaskedList.of_pairs(
            (((label,) if self.by_list and len(self.keys) == 1 else label, self._part(rows)), there)
            for label, rows, there in self._parts
        )

    def _part(self, rows: Rows) -> Any:
        part = self.frame.made(self.frame.data, rows)
        return part if self.selected is None else part[self.selected]

    def length(self) -> Any:
        return self.rows.count

    @property
    def ngroups(self) -> Any:
        """How many groups there are."""
        return native(Cell(self.rows.count))

    # Summaries.
    def summaries(self, name: Any, how: Any, *arguments: Any, **options: Any) -> list[Cell]:
        """Return what a column comes to in each group."""
        column = self.frame.column(name)
        if callable(how):
            known = getattr(how, "__name__", "")
            how = _FUNCTIONS.get(known, known) if _is_of_library(how) else how
        if isinstance(how, str):
            return [column.on(rows).summary(how, *arguments, **options) for _, rows in self.by_keys.members]
        return self._called(lambda rows: how(column.on(rows)))

    def _called(self, function: Callable[[Rows], Any]) -> list[Cell]:
        found = []
        for _, rows, there in self._parts:
            with under(there):
                found.append(computed(function(rows)))
        return found

    def result(self, data: Mapping[Any, Sequence[Cell]], single: bool) -> Any:
        """Return summaries of groups as a column or a frame."""
        if self.numbered:
            return self.frame.of_cells(data, self.rows).reset_index()
        if single:
            ((name, cells),) = data.items()
            return Series(Column(cells, self.rows, name))
        return self.frame.of_cells(data, self.rows)

    def _summary(self, how: str, *arguments: Any, **options: Any) -> Any:
        numeric_only = options.pop("numeric_only", False)
        names = [name for name in self.names if not numeric_only or self.frame.column(name).is_numeric]
        data = {name: self.summaries(name, how, *arguments, **options) for name in names}
        return self.result(data, self._is_of_one_column)

    def size(self) -> Any:
        counts = {"size": [Cell(rows.count) for _, rows in self.by_keys.members]}
        return self.result(counts, False) if self.numbered else self.result(counts, True).rename(None)

    @property
    def _is_of_one_column(self) -> bool:
        return self.selected is not None and not isinstance(self.selected, list)

    def agg(self, spec: Any = None, **named: Any) -> Any:
        single = False
        if named:
            pairs = {name: one if isinstance(one, tuple) else (self.selected, one) for name, one in named.items()}
            wanted = [(name, *pair) for name, pair in pairs.items()]
        elif isinstance(spec, Mapping):
            several = any(isinstance(how, list) for how in spec.values())
            listed = [(name, one) for name, how in spec.items() for one in (how if isinstance(how, list) else [how])]
            wanted = [((name, _name(how)) if several else name, name, how) for name, how in listed]
        elif isinstance(spec, list):
            listed = [(name, how) for name in self.names for how in spec]
            wanted = [(_name(how) if self._is_of_one_column else (name, _name(how)), name, how) for name, how in listed]
        elif isinstance(spec, str) or callable(spec):
            wanted, single = [(name, name, spec) for name in self.names], self._is_of_one_column
        else:
            self.unknown("agg()")
        return self.result({key: self.summaries(name, how) for key, name, how in wanted}, single)

    aggregate = agg

    def apply(self, function: Any, include_groups: bool = False) -> Any:
        """Call a function on each group."""
        if self.selected is None and not self.rows.inhabited:
            refuse("apply() where there may be no groups")
        found: list[Any] = []
        for _, rows, there in self._parts:
            part = self._part(rows)
            if self.selected is None:
                part = part[self.names]
            with under(there):
                found.append(function(part))
        if found and all(isinstance(one, Series) for one in found):
            labels = found[0].rows.axis.labels
            if labels is None or any(one.rows.axis.labels != labels or not one.rows.are_all for one in found):
                refuse("apply() with columns of different labels")
            return self.result({label: [one.cells[k] for one in found] for k, label in enumerate(labels)}, False)
        if any(isinstance(one, Standing) for one in found):
            refuse("apply() with a result that is a frame")
        return self.result({None: [computed(one) for one in found]}, True)

    def transform(self, how: Any) -> Series:
        """Give each row what its group comes to."""
        if self.selected is None or isinstance(self.selected, list):
            self.unknown("transform() of several columns")
        cells = self.summaries(self.selected, how)
        whole = all(cell.known is True for cell in cells) and all(key.is_known for key in self.keys)
        spread = self.by_keys.spread([cells] * len(self.by_keys.hits), whole)
        return Series(Column(spread, self.frame.rows, self.selected))

    def filter(self, function: Any) -> Any:
        """Return the rows of those groups for which a function holds."""
        verdicts = [truth(cell.value) for cell in self._called(lambda rows: function(self._part(rows)))]
        pairs = [(label, verdict) for (label, _), verdict in zip(self.by_keys.members, verdicts, strict=True)]
        spread = [any_of([both(hits.get(label, False), v) for label, v in pairs]) for hits in self.by_keys.hits]
        return self.frame.made(self.frame.data, self.frame.rows.among(spread))

    def get_group(self, label: Any) -> Any:
        """Return the rows of one group; an error where there are none."""
        for own, rows, there in self._parts:
            if own == label:
                fail_where(negated(there), KeyError(label))
                return self._part(rows)
        raise KeyError(label)

    def tabled(self, values: Any = None, aggfunc: Any = "mean", single: bool = False) -> Any:
        """Return a table of one column, or that column, with a row for each group."""
        if isinstance(values, list) and len(values) == 1 and not single:
            (values,) = values
        if not isinstance(values, str) or not (isinstance(aggfunc, str) or callable(aggfunc)):
            refuse("pivot_table() of several values")
        cells = self.summaries(values, aggfunc)
        if not all(surely_known(cell, there) for cell, there in zip(cells, self.rows.there, strict=True)):
            refuse("pivot_table() of what may be missing, which pandas leaves out")
        return self.result({values: cells}, single)


def unstacked(column: Series, fill_value: Any = None) -> tuple[dict[Any, list[Cell]], Rows, dict[Any, Mask]]:
    """Return a column with labels in pairs as a table: rows by the first, columns by the second."""
    axis = column.rows.axis
    labels = axis.labels or ()
    if not labels or any(not isinstance(label, tuple) or len(label) != 2 for label in labels):
        refuse("unstack() of labels that are no pairs")
    if not axis.sorted or len(axis.bands) != 2:
        refuse("unstack() of anything but groups in the order of their keys")
    outer = list(dict.fromkeys(label[0] for label in labels))
    second, bands = {label[1] for label in labels}, axis.bands[1]
    inner = sorted(second) if bands is None else [band for band in bands if band in second]
    there = dict(zip(labels, column.rows.there, strict=True))
    cells = dict(zip(labels, column.cells, strict=True))
    filling = cell_of(fill_value)
    data: dict[Any, list[Cell]] = {
        name: [chosen(there.get((row, name), False), cells.get((row, name), filling), filling) for row in outer]
        for name in inner
    }
    rows = tuple(any_of([there.get((row, name), False) for name in inner]) for row in outer)
    present = {name: any_of([there.get((row, name), False) for row in outer]) for name in inner}
    made = replace(axis, plates=(None,) * len(outer), labels=tuple(outer), names=axis.names[:1], ranks=None)
    return data, Rows(made, rows, column.rows.inhabited), present


def _name(how: Any) -> Any:
    return how if isinstance(how, str) else getattr(how, "__name__", "<lambda>")


def _is_of_library(function: Any) -> bool:
    named = getattr(function, "__name__", "")
    known = _FUNCTIONS.get(named, named) in reductions.REDUCTIONS
    return known and (function in (len, sum, min, max) or getattr(np, named, None) is function)


def _summary(name: str) -> Any:
    return lambda self, *arguments, **options: self._summary(name, *arguments, **options)


with_methods(GroupBy, {name: _summary(name) for name in (*reductions.SUMMARIES, "first", "last")})


Crossed = tuple[dict[Any, list[Cell]], Rows, dict[Any, Mask]]
"""The columns of a table, its rows, and when columns are there."""

_SKIPPING = {"sum", "mean", "count", "min", "max", "median", "std", "var", "nunique"}
"""What makes nothing of missing values: margins leave out rows in which any is missing."""


def pivoted(frame: Any, values: Any, keys: Sequence[str], aggfunc: Any, fill_value: Any, total: str | None) -> Crossed:
    """Return a table of what a column comes to, by the values of two others; if it is named, with a total."""
    crossed = unstacked(frame.groupby(list(keys)).tabled(values, aggfunc, single=True), fill_value)
    if total is None:
        return crossed
    column = frame.column(values)
    if aggfunc not in _SKIPPING or not column.is_known:
        refuse("pivot_table() with margins of such values")
    return with_margins(crossed, frame, keys, lambda rows: column.on(rows).summary(aggfunc), total)


def with_margins(
    crossed: Crossed, frame: Any, keys: Sequence[Any], summary: Callable[[Rows], Cell], total: str
) -> Crossed:
    """Return a table with a row and a column more, of what the others come to together."""
    data, rows, present = crossed
    pairs = zip(*(frame.column(key).cells for key in keys), strict=True)
    known = frame.made(frame.data, frame.rows.among([both(one.known, two.known) for one, two in pairs]))
    if isinstance(known.rows.count, RandomVariable) or not known.rows.count:
        refuse("margins of a table that may have no rows")
    labels = rows.axis.labels or ()
    if total in labels or total in data:
        refuse("margins under a name that is taken")
    by_row, by_column = ({label: summary(own) for label, own in known.groupby(key).by_keys.members} for key in keys)
    made = {name: [*cells, by_column[name]] for name, cells in data.items()}
    made[total] = [*(by_row[label] for label in labels), summary(known.rows)]
    axis = Axis((None,) * (len(labels) + 1), (*labels, total), rows.axis.names)
    return made, Rows(axis, (*rows.there, True)), {**present, total: True}


def cross_counted(frame: Any, normalize: Any, total: str | None) -> Crossed:
    """Return how often the values of two columns, called 0 and 1, occur together; as shares, or with margins."""
    crossed = unstacked(frame.groupby([0, 1], observed=True).size(), 0)
    if total is None:
        return crossed if normalize is False else _as_shares(crossed, normalize)
    if normalize is not False:
        refuse("pd.crosstab of shares with margins")
    return with_margins(crossed, frame, (0, 1), lambda rows: Cell(rows.count), total)


def _as_shares(crossed: Crossed, normalize: Any) -> Crossed:
    """Return counts as shares of all, of their row or of their column."""
    data, rows, present = crossed
    if normalize is True or normalize == "all":
        whole = _sum([cell for cells in data.values() for cell in cells])
        parts = {name: [(whole, any_of(rows.there))] * len(cells) for name, cells in data.items()}
    elif normalize in ("columns", 1):
        parts = {name: [(_sum(cells), present[name])] * len(cells) for name, cells in data.items()}
    elif normalize in ("index", 0):
        by_row = [*zip(map(_sum, zip(*data.values(), strict=True)), rows.there, strict=True)]
        parts = dict.fromkeys(data, by_row)
    else:
        refuse("such shares of a cross table")
    return {
        name: [divided(PANDAS, cell, *part) for cell, part in zip(cells, parts[name], strict=True)]
        for name, cells in data.items()
    }, rows, present  # fmt: skip


def _sum(cells: Sequence[Cell]) -> Cell:
    total: Any = 0
    for cell in cells:
        total = total + cell.value
    return Cell(total)


def merged(left: Any, right: Any, on: str, how: str, suffixes: tuple[str, str]) -> Relation:
    """Return the rows of two frames that have the same key, side by side; `left` keeps those that have no partner."""
    key, other = left.column(on).column, right.column(on).column
    shared = left.data.keys() & right.data.keys() - {on}
    columns = {f"{name}{suffixes[0]}" if name in shared else name: column for name, column in left.data.items()}
    others = {f"{name}{suffixes[1]}" if name in shared else name: column for name, column in right.data.items()}
    del others[on]
    if other.is_known and can_look_up(key, other):
        found, rows = joined_by_lookup((columns, left.rows), (others, right.rows), key, other, how)
        return found, renumbered(rows)
    if not key.is_known or not other.is_known or right.rows.has_plates or not right.rows.axis.sorted:
        refuse("merge() with many rows, or by keys that may be missing")
    equal = comparison(PANDAS, np.equal)
    pairs = (columns, left.rows), ({**others, "#": other}, right.rows)
    found, rows = joined(*pairs, lambda at, _: masks_of(equal(at[on], at["#"])), how)
    del found["#"]
    return found, replace(rows, axis=replace(rows.axis, anonymous=True, renumbered=True))


def stacked(frames: Sequence[Any]) -> Relation:
    """Return the rows of several frames, one below the other."""
    if not frames or any(set(frame.data) != set(frames[0].data) for frame in frames):
        refuse("pd.concat() of frames with different columns")
    if any(frame.present or frame.lost or any(one.levels for one in frame.held.values()) for frame in frames):
        refuse("pd.concat() of such frames")
    columns, rows = one_after_the_other([(frame.data, frame.rows) for frame in frames])
    in_turn = all(frame.rows.axis.sorted for frame in frames)
    return columns, replace(rows, axis=replace(rows.axis, anonymous=True, sorted=in_turn))


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
