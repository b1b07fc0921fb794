"""A traced frame of pandas: its columns, rows, order, groups and summaries."""

import ast
import io
import operator
import tokenize
from collections.abc import Callable, Container, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from privug.model.node import Kind
from privug.model.sparse import SparseColumns, SparseDict
from privug.model.table import row_maker
from privug.model.variable import RandomVariable, refuse
from privug.program.traced.frames.cells import MISSING, Cell, cell_of, chosen, is_truth, kind
from privug.program.traced.frames.columns import COMPARISONS, Column, compared, with_methods
from privug.program.traced.frames.dialects import PANDAS
from privug.program.traced.frames.pandas.group import GroupBy, merged, pivoted, unstacked
from privug.program.traced.frames.pandas.series import (
    Index,
    Series,
    columns_of,
    counted_values,
    labelled,
    observes_by_default,
    repeated,
    sorted_rows,
)
from privug.program.traced.frames.pandas.values import (
    Found,
    Labels,
    are_timestamps,
    as_rows,
    demanded,
    element,
    filled,
    found_at,
    native,
    no_text_beside_timestamps,
    of_one_type,
    renamed,
)
from privug.program.traced.frames.reductions import SUMMARIES, positive
from privug.program.traced.frames.relations import unrolled
from privug.program.traced.frames.rows import (
    Axis,
    Rows,
    as_list,
    called,
    counted,
    first_of,
    leaf,
    renumbered,
    same_mask,
)
from privug.program.traced.masks import (
    Mask,
    MaskedList,
    OfStanding,
    Standing,
    both,
    current,
    fail_where,
    negated,
    truth,
    under,
)

_COMPARED: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.In: lambda one, many: one.isin(many), ast.NotIn: lambda one, many: ~one.isin(many),
}  # fmt: skip
_COMPUTED: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip


def queried(expression: str, names: Container[Any], column: Callable[[Any], Any]) -> Any:
    """Return the column of truth values that an expression of columns and constants stands for."""
    try:
        tree = ast.parse(_spelled_out(expression.strip()), mode="eval").body
    except (SyntaxError, tokenize.TokenError):
        return refuse("query() of variables of the program")

    def value(node: ast.expr) -> Any:
        match node:
            case ast.Constant():
                return node.value
            case ast.Name() if node.id in names:
                return column(node.id)
            case ast.List() | ast.Tuple():
                return [value(part) for part in node.elts]
            case ast.BoolOp():
                joining = operator.and_ if isinstance(node.op, ast.And) else operator.or_
                return reduce(joining, map(value, node.values))
            case ast.UnaryOp(op=ast.Not() | ast.Invert()):
                return ~value(node.operand)
            case ast.UnaryOp(op=ast.USub()):
                return -value(node.operand)
            case ast.BinOp() if type(node.op) in _COMPUTED:
                return _COMPUTED[type(node.op)](value(node.left), value(node.right))
            case ast.Compare():
                sides = [value(side) for side in (node.left, *node.comparators)]
                return reduce(operator.and_, map(_verdict, node.ops, sides, sides[1:]))
        return refuse(f"query() with {ast.unparse(node)!r}")

    return value(tree)


def _spelled_out(expression: str) -> str:
    """Return an expression with words for `&` and `|`, which bind as weakly as those in query()."""
    words = {"&": "and", "|": "or"}
    tokens = tokenize.generate_tokens(io.StringIO(expression).readline)
    named = [(tokenize.NAME, words[one.string]) if one.string in words else (one.type, one.string) for one in tokens]
    return tokenize.untokenize(named).strip()


def _verdict(comparison: ast.cmpop, left: Any, right: Any) -> Any:
    no_text_beside_timestamps(left, right)
    how: type[ast.cmpop] = type(comparison)
    if isinstance(right, list):
        how = {ast.Eq: ast.In, ast.NotEq: ast.NotIn}.get(how, how)
    function = _COMPARED.get(how) or refuse("query() with such a comparison")
    return function(left, right)


_BY_ROWS = {"sum", "mean", "count", "min", "max", "any", "all"}
"""What rows come to as columns do."""


class Frame(Standing):
    """Columns of the same rows, some of which may not be there."""

    kind = "DataFrame"

    def __init__(self, columns: Mapping[Any, Column], rows: Rows, present: Mapping[Any, Mask] | None = None) -> None:
        self.present = {name: mask for name, mask in (present or {}).items() if mask is not True}
        """Columns that are there under a condition."""
        there = {name: column for name, column in columns.items() if self.present.get(name) is not False}
        self.held = {name: column.on(rows).named(name) for name, column in there.items()}
        """The columns, those that may be absent as well."""
        self.rows = rows
        self.lost: frozenset[Any] = frozenset()
        """Columns of which it is not known from which of equal rows pandas takes them."""

    @staticmethod
    def of_cells(data: Mapping[Any, Sequence[Cell]], rows: Rows, present: Mapping[Any, Mask] | None = None) -> "Frame":
        """Return the frame of some cells."""
        return Frame(columns_of(data, rows), rows, present)

    def made(self, columns: Mapping[Any, Column], rows: Rows, present: Mapping[Any, Mask] | None = None) -> Any:
        made = Frame(columns, rows, present)
        made.lost = self.lost & made.held.keys()
        return made

    @property
    def data(self) -> dict[Any, Column]:
        """The columns, all of which are there for sure: who knows of others looks at those that are held."""
        return refuse("a table of which some columns may be absent") if self.present else self.held

    def listing(self) -> Any:
        return MaskedList.of_pairs((name, self.present.get(name, True)) for name in self.held)

    def contains(self, name: Any) -> Mask:
        return name in self.held and self.present.get(name, True)

    def length(self) -> Any:
        return self.rows.count

    def plain(self) -> Any:
        self.whole()
        if not self.present:
            return {name: self[name].plain() for name in self.data}
        if not self.rows.axis.sorted:
            refuse("a table whose rows are in a random order")
        columns = {}
        for name, column in self.held.items():
            there = [both(one, self.present.get(name, True)) for one in self.rows.there]
            leaves = [leaf(cell, mask) for cell, mask in zip(column.cells, there, strict=True)]
            columns[name] = SparseDict(zip(self.rows.axis.called(), leaves, strict=True))
        return SparseColumns(columns)

    @property
    def columns(self) -> Any:
        """The names of the columns."""
        return self.listing()

    @columns.setter
    def columns(self, names: Any) -> None:
        listed = list(names)
        if len(listed) != len(self.data) or len(set(listed)) < len(listed) or current() is not True:
            refuse("such names of columns")
        new = dict(zip(self.data, listed, strict=True))
        self.held = {new[name]: column.named(new[name]) for name, column in self.data.items()}

    @property
    def shape(self) -> tuple[Any, ...]:
        """How many rows and columns there are."""
        there = [self.present.get(name, True) for name in self.held]
        return native(Cell(self.length())), native(Cell(counted(there, (None,) * len(there))))

    empty: Any = property(lambda self: negated(positive(self.rows.count)))
    """Whether there are no rows."""
    index: Any = property(lambda self: Index(self.rows))
    """The labels of the rows."""

    def column(self, name: Any) -> Series:
        """Return a column; an error where it is not there."""
        fail_where(negated(self.contains(name)), KeyError(name))
        return self.kept(name)

    def kept(self, name: Any) -> Series:
        """Return a column that means nothing where it is not there."""
        if name in self.lost:
            refuse("another column after sort_values() by one, where equal rows stand in any order (kind='stable'),")
        return Series(self.held[name])

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, Series):
            self.alike(key)
            return self.made(self.data, self.rows.among(key.masks()))
        if isinstance(key, list):
            return self.made({name: self.column(name).column for name in key}, self.rows)
        if isinstance(key, slice):
            return self.iloc[key]
        return self.column(key)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "held" not in vars(self) or name not in self.held:
            return super().__getattr__(name)
        fail_where(negated(self.contains(name)), AttributeError(name))
        return self.kept(name)

    def whole(self) -> None:
        """Refuse a frame of which some columns are not known."""
        for name in self.lost:
            self.column(name)

    def alike(self, column: Series) -> None:
        """Refuse a column of other rows."""
        Series(Column((), self.rows)).beside_rows(column)

    def column_from(self, value: Any) -> Column:
        """Return what is to be a column as one."""
        cells = Series(Column([Cell(0)] * len(self.rows.there), self.rows)).beside(value)
        return value.column.on(self.rows) if isinstance(value, Series) else Column(cells, self.rows)

    def __setitem__(self, name: Any, value: Any) -> None:
        if current() is not True:
            refuse("a new column under a random condition")
        if not isinstance(name, str):
            refuse("an assignment to several columns or rows")
        self.lost -= {name}
        columns = self.data if name in self.present or not self.rows.never_empty else self.held
        columns[name] = self.column_from(value).named(name)

    def put_below(self, label: Any, row: Series) -> None:
        """Put a row of a label of its own below the others, from a column under the names of the columns."""
        self.whole()
        if row.rows.axis.labels != tuple(self.data) or not row.rows.are_all or not self.rows.axis.sorted:
            refuse("a new row of anything but a value for each column")
        columns = {name: self.kept(name) for name in self.data}
        for column, cell in zip(columns.values(), row.cells, strict=True):
            column[label] = element(cell)
        self.rows = self.rows.with_label(label)
        self.held = {name: column.column.on(self.rows) for name, column in columns.items()}

    def assign(self, **columns: Any) -> Any:
        made = self.copy()
        for name, value in columns.items():
            made[name] = value(made) if callable(value) else value
        return made

    def drop(self, labels: Any = None, *, columns: Any = None, axis: Any = 0) -> Any:
        names = columns if columns is not None else labels if axis in (1, "columns") else refuse("drop() of rows")
        dropped = names if isinstance(names, list) else [names]
        return self[[name for name in self.data if name not in dropped]]

    def rename(self, *, columns: Any = None, index: Any = None) -> Any:
        if columns is None and index is None:
            self.unknown("rename()")
        self.whole()
        names = renamed(self.held, {} if columns is None else columns)
        rows = self.rows
        if index is not None:
            rows = rows.called_otherwise(renamed(rows.axis.labels or (), index))
        present = {names[name]: mask for name, mask in self.present.items()}
        return self.made({names[name]: column for name, column in self.held.items()}, rows, present)

    def reindex(
        self, labels: Any = None, *, index: Any = None, columns: Any = None, axis: Any = 0, fill_value: Any = None
    ) -> Any:
        """Return the cells at some labels of rows and columns, and another value where there are none."""
        if labels is not None:
            index, columns = (labels, columns) if axis in (0, "index") else (index, labels)
        self.whole()
        filling, found = cell_of(fill_value), self
        if columns is not None:
            found = self._at_columns(Labels.of(columns), filling)
        return found if index is None else found.at_rows(Labels.of(index), lambda cells: filled(cells, filling))

    def at_rows(self, labels: Labels, taken: Callable[[Found], list[Cell]]) -> Any:
        """Return what is taken of the cells found at some labels of rows."""
        if self.present and not self.rows.never_empty:
            refuse("some rows of a table that may have no columns")
        self.whole()
        data = {name: taken(found_at(labels, column.cells, self.rows)) for name, column in self.held.items()}
        rows = labels.rows(self.rows.axis.names)
        return self.made(columns_of(data, rows), rows, self.present)

    def _at_columns(self, labels: Labels, filling: Cell) -> Any:
        names, size = list(self.held), len(self.rows.there)
        data = {}
        for label, place in zip(labels.listed, labels.places_in(names), strict=True):
            there = False if place is None else self.present.get(names[place], True)
            cells = [filling] * size if place is None else self.held[names[place]].cells
            data[label] = [chosen(there, cell, filling) for cell in cells]
        return self.made(columns_of(data, self.rows), self.rows)

    def each(self, function: Callable[[Series], Series]) -> Any:
        """Return a frame whose columns are computed of these."""
        return self.made({name: function(self.kept(name)).column for name in self.held}, self.rows, self.present)

    def round(self, decimals: Any = 0) -> Any:
        if isinstance(decimals, Mapping):
            return self.each(lambda column: column.round(decimals[column.name]) if column.name in decimals else column)
        return self.each(lambda column: column.round(decimals) if column.is_numeric else column)

    def fillna(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return self.each(lambda column: column.fillna(value[column.name]) if column.name in value else column)
        return self.each(lambda column: column.fillna(value))

    def astype(self, dtype: Any) -> Any:
        if isinstance(dtype, Mapping):
            changed = {name: self.column(name).astype(to).column for name, to in dtype.items()}
            return self.made({**self.held, **changed}, self.rows, self.present)
        return self.each(lambda column: column.astype(dtype))

    def query(self, expression: str) -> Any:
        found: Any = self[queried(expression, self.data, self.column)]
        return found

    def dropna(self, subset: Any = None) -> Any:
        names = list(self.data) if subset is None else subset if isinstance(subset, list) else [subset]
        for name in names:
            self.column(name)
        masks: list[Mask] = [True] * len(self.rows.there)
        for name in names:
            masks = [both(mask, cell.known) for mask, cell in zip(masks, self.data[name].cells, strict=True)]
        return self.made(self.data, self.rows.among(masks))

    def head(self, n: int = 5) -> Any:
        if self.rows.are_all:
            found: Any = self.iloc[:n]
            return found
        return self.made(self.data, first_of(self.rows, n))

    loc: Any = property(lambda self: Locations(self, by_label=True))
    """Rows and cells by their labels and by masks."""
    iloc: Any = property(lambda self: Locations(self, by_label=False))
    """Rows and cells by their positions."""
    at, iat = loc, iloc

    def itertuples(self, index: bool = True, name: Any = "Pandas") -> Any:
        """Return the rows as tuples, one for rows that are alike."""
        self.whole()
        names = (*(("Index",) if index else ()), *self.data)
        called = [self.rows.axis.called()] if index else []
        columns = [*called, *([native(cell) for cell in of_one_type(one.cells)] for one in self.data.values())]
        return as_list([*map(row_maker(names), zip(*columns, strict=True))], self.rows)

    def iterrows(self) -> Any:
        """Return the rows with their labels."""
        return as_list([*zip(self.rows.axis.called(), self.single_rows(), strict=True)], self.rows)

    def single_rows(self) -> list[Any]:
        """Return for each segment its row as the Series that pandas makes of it: of NumPy's numbers, or of objects."""
        self.whole()
        columns, alike = as_rows(self.data.values())
        given = element if alike else native
        values = zip(*([given(cell) for cell in cells] for cells in columns), strict=True)
        return [*map(row_maker(tuple(self.data)), values)]

    def row_at(self, label: Any) -> Any:
        """Return the row at a label as a column of its own, under the names of the columns."""
        columns, alike = as_rows(self.data.values())
        if not alike:
            refuse("a row of values of different types")
        labels = Labels.of([label])
        cells = [demanded(labels, found_at(labels, column, self.rows))[0] for column in columns]
        return labelled(list(self.data), cells, label)

    def sort_values(self, by: Any, ascending: Any = True, kind: str = "quicksort") -> Any:
        names = by if isinstance(by, list) else [by]
        upwards = list(ascending) if isinstance(ascending, list) else [ascending] * len(names)
        if len(upwards) != len(names):
            raise ValueError(f"{len(upwards)} directions for {len(names)} columns")
        keys = [self.column(name).column for name in names]
        self.whole()
        made = Frame(*sorted_rows(self.data, self.rows, keys, upwards))
        if len(keys) == 1 and kind not in ("stable", "mergesort") and not _all_differ(keys[0].cells):
            made.lost = frozenset(self.data) - {names[0]}
        return made

    def _extremes(self, n: int, by: Any, ascending: bool) -> Any:
        self.whole()
        return Frame(*sorted_rows(self.data, self.rows, [self.column(by).column], [ascending], n))

    def reset_index(self, drop: bool = False) -> Any:
        self.whole()
        axis, keys = self.rows.axis, {}
        if axis.labels is None and self.rows.are_all and drop:
            return self.copy()
        for place, name in enumerate(() if drop else axis.names):
            parts = [label[place] if len(axis.names) > 1 else label for label in axis.labels or ()]
            keys[name] = Column([Cell(part) for part in parts], self.rows)
        if axis.labels is None or None in keys or not axis.sorted:
            refuse("reset_index() of such rows")
        return Frame({**keys, **self.data}, renumbered(self.rows))

    def set_index(self, key: str) -> Any:
        self.whole()
        labels = [cell.value for cell in self.column(key).cells]
        if any(isinstance(label, RandomVariable) for label in labels) or len(set(labels)) < len(labels):
            refuse("set_index() of a random column")
        if self.rows.has_plates:
            refuse("set_index() of many rows")
        axis = Axis(self.rows.axis.plates, tuple(labels), (key,), sorted=self.rows.axis.sorted)
        return Frame({name: one for name, one in self.data.items() if name != key}, Rows(axis, self.rows.there))

    def duplicated(self, subset: Any = None, keep: Any = "first") -> Series:
        names = list(self.data) if subset is None else subset if isinstance(subset, list) else [subset]
        again = repeated([self.column(name).column for name in names], self.rows, keep)
        return Series(Column([Cell(mask) for mask in again], self.rows, None))

    def _chosen(self, how: str, condition: Any, other: Any) -> Any:
        told = condition(self) if callable(condition) else condition
        if isinstance(told, Frame) and isinstance(other, Standing):
            refuse(f"{how}() with other values that differ from cell to cell")
        return self.beside(told, lambda column, part: getattr(column, how)(part, other), by_row=True)

    def beside(self, other: Any, function: Callable[[Series, Any], Series], by_row: bool = False) -> Any:
        """Return a frame whose columns are computed of these, each with what stands beside it.

        That is a column of a frame of the same labels, a value for each column or, if so asked, for each row, or one
        value for all.
        """
        if isinstance(other, Frame):
            masks = [(self.present.get(name, True), other.present.get(name, True)) for name in self.held]
            alike = list(self.held) == list(other.held) and all(same_mask(*pair) for pair in masks)
            if not alike or not self.rows.same_as(other.rows):
                refuse("two frames of different labels together")
            parts: dict[Any, Any] = {name: other.kept(name) for name in other.held}
        elif isinstance(other, Series) and not by_row:
            there = [self.present.get(name, True) for name in self.held]
            if other.rows.axis.labels != tuple(self.held) or not all(map(same_mask, other.rows.there, there)):
                refuse("a frame with a column of other labels than those of its columns")
            parts = dict(zip(self.held, map(element, of_one_type(other.cells)), strict=True))
        else:
            if isinstance(other, Series):
                self.alike(other)
            elif getattr(other, "shape", ()) or not isinstance(other, RandomVariable | np.generic | str | int | float):
                refuse("a frame with a list or an array")
            parts = dict.fromkeys(self.held, other)
        return self.each(lambda column: function(column, parts[column.name]))

    def clip(self, lower: Any = None, upper: Any = None) -> Any:
        if any(isinstance(bound, Standing) for bound in (lower, upper)):
            refuse("clip() with bounds that differ from cell to cell")
        return self.each(lambda column: column.clip(lower, upper))

    @staticmethod
    def _unstacked(column: Series, fill_value: Any) -> "Frame":
        """Return a column with labels in pairs as a table."""
        return Frame.of_cells(*unstacked(column, fill_value))

    @property
    def T(self) -> Any:
        """The frame with its rows as columns."""
        labels, cells = self._of_one_type("T")
        if not self.rows.never_empty:
            refuse("T of a table that may have no rows")
        axis = Axis((None,) * len(self.held), tuple(self.held))
        rows = Rows(axis, tuple(self.present.get(name, True) for name in self.held), inhabited=True)
        columns = dict(zip(labels, zip(*cells, strict=True), strict=True))
        return Frame.of_cells(columns, rows, dict(zip(labels, self.rows.there, strict=True)))

    def stack(self) -> Series:
        """Return the cells one after the other, row by row, under pairs of labels."""
        labels, cells = self._of_one_type("stack()")
        if not observes_by_default() and any(cell.known is not True for column in cells for cell in column):
            refuse("stack() of missing values")
        there = [both(mask, self.present.get(name, True)) for mask in self.rows.there for name in self.held]
        pairs = [(label, name) for label in labels for name in self.held]
        return labelled(pairs, [cell for row in zip(*cells, strict=True) for cell in row], there=there)

    def to_numpy(self) -> Any:
        """Return the cells as an array of rows and columns."""
        self.whole()
        columns, alike = as_rows(self.data.values())
        if not alike or not self.rows.are_all or not self.rows.axis.sorted:
            refuse("an array of a random number of rows, or of values of different types")
        return np.stack([Series(Column(cells, self.rows)).to_numpy() for cells in columns], axis=1)

    values = property(to_numpy)
    """The cells as an array."""

    def _of_one_type(self, what: str) -> tuple[tuple[Any, ...], list[list[Cell]]]:
        """Return the labels of rows and the columns, if all cells are of one type."""
        self.whole()
        axis = self.rows.axis
        columns, alike = as_rows(self.held.values())
        if axis.labels is None or axis.anonymous or not axis.sorted or not alike:
            refuse(f"{what} of rows without fixed labels, or of values of different types")
        return axis.labels, columns

    def apply(self, function: Any, axis: Any = 0) -> Any:
        """Call a function on each column, or on each row: once for rows that are alike."""
        if axis in (0, "index"):
            found = self._called(list(self.held), function)
            if any(isinstance(one, Series) for one in found):
                if not all(isinstance(one, Series) and self.rows.same_as(one.rows) for one in found):
                    refuse("apply() with columns of other labels")
                data = {name: one.column for name, one in zip(self.held, found, strict=True)}
                return self.made(data, self.rows, self.present)
            there = [self.present.get(name, True) for name in self.held]
            return labelled(list(self.held), [cell_of(one) for one in found], there=there)
        cells = [Cell(row) for row in self.single_rows()]
        return Series(Column(called(function, cells, self.rows, lambda cell: cell.value), self.rows, None))

    def to_dict(self, orient: str = "dict") -> Any:
        if orient == "list":
            return {name: self.column(name).tolist() for name in self.data}
        if orient == "dict":
            return {name: self.column(name).to_dict() for name in self.data}
        if orient != "records" or self.rows.has_plates:
            self.unknown(f"to_dict({orient!r})")
        rows = self.itertuples(index=False).pairs()
        return MaskedList.of_pairs((row._asdict(), there) for row, there in rows)

    def groupby(
        self, by: Any, *, sort: bool = True, as_index: bool = True, observed: Any = None, dropna: bool = True
    ) -> GroupBy:
        keys = by if isinstance(by, list) else [by]
        columns = [key if isinstance(key, Series) else self.column(key) for key in keys]
        for column in columns:
            self.alike(column)
        if not dropna:
            refuse("groupby() of missing keys")
        seen = observes_by_default() if observed is None else observed
        keyed = [key.column for key in columns]
        found = GroupBy(self, keyed, isinstance(by, list), observed=seen, ordered=sort)
        return found if as_index else found.renumbered()

    def value_counts(self, subset: Any = None, normalize: bool = False) -> Series:
        columns = [self.column(name).column for name in (subset or list(self.data))]
        return counted_values(columns, self.rows, normalize)

    def agg(self, spec: Any) -> Any:
        if isinstance(spec, Mapping):
            return labelled(list(spec), [self.column(name).summary(how) for name, how in spec.items()])
        if isinstance(spec, str):
            return self._summaries(spec)
        data = {name: [self.column(name).summary(how) for how in spec] for name in self.data}
        return Frame.of_cells(data, Rows.all_of(Axis((None,) * len(spec), tuple(spec))))

    aggregate = agg

    def describe(self) -> Any:
        if any(is_truth(cell.value) or are_timestamps(cell) for one in self.data.values() for cell in one.cells):
            refuse("describe() of truth values or dates")
        columns = {name: self.column(name).describe() for name in self.data if self.column(name).is_numeric}
        if not columns:
            refuse("describe() of texts")
        return Frame({name: one.column for name, one in columns.items()}, next(iter(columns.values())).rows)

    def _summaries(self, how: str, **options: Any) -> Series:
        numeric_only = options.pop("numeric_only", False)
        names = [name for name in self.held if not numeric_only or self.kept(name).is_numeric]
        there = [self.present.get(name, True) for name in names]
        if options.pop("axis", 0) in (1, "columns"):
            return self._by_rows(how, names, there, **options)
        return labelled(names, self._called(names, lambda column: column.summary(how, **options)), there=there)

    def _by_rows(self, how: str, names: Sequence[Any], there: Sequence[Mask], **options: Any) -> Series:
        """Return what each row comes to."""
        if how not in _BY_ROWS or not names:
            refuse(f"{how}() of rows")
        self.whole()
        columns, alike = as_rows([self.held[name] for name in names])
        if not alike:
            refuse(f"{how}() of rows of values of different types")
        across = Rows(Axis((None,) * len(names), tuple(names)), tuple(there))
        rows = [Series(Column(cells, across)).summary(how, **options) for cells in zip(*columns, strict=True)]
        return Series(Column(rows, self.rows, None))

    def _called(self, names: Sequence[Any], function: Callable[[Series], Any]) -> list[Any]:
        """Return what a function makes of each column, where that is there."""
        found = []
        for name in names:
            with under(self.present.get(name, True)):
                found.append(function(self.kept(name)))
        return found

    def _extreme_labels(self, how: str, better: np.ufunc, axis: Any) -> Any:
        """Return at which row each column is the largest, or at which column each row is: the first of equal ones."""
        if axis not in (1, "columns"):
            return self.apply(lambda column: getattr(column, how)())
        self.whole()
        columns, alike = as_rows(self.data.values())
        if not alike or any(cell.known is not True for cells in columns for cell in cells):
            refuse(f"{how}() of rows of values of different types, or of missing ones")
        found = []
        for cells in zip(*columns, strict=True):
            best, label = cells[0], Cell(next(iter(self.data)))
            for name, cell in zip(self.data, cells, strict=True):
                ahead = truth(compared(PANDAS, better, cell, best).value)
                best, label = chosen(ahead, cell, best), chosen(ahead, Cell(name), label)
            found.append(label)
        return Series(Column(found, self.rows, None))

    def pivot_table(
        self,
        values: Any = None,
        index: Any = None,
        columns: Any = None,
        aggfunc: Any = "mean",
        fill_value: Any = None,
        margins: bool = False,
        margins_name: str = "All",
    ) -> Any:
        if values is None and aggfunc in ("size", len) and columns is not None and not margins:
            return self.groupby([index, columns]).size().unstack(fill_value)
        if columns is None and not margins and isinstance(index, str | list):
            return self.groupby(index).tabled(values, aggfunc)  # a fill value has nothing to fill
        if not isinstance(index, str) or not isinstance(columns, str):
            refuse("pivot_table() by anything but one column for rows and one for columns")
        total = margins_name if margins else None
        return Frame.of_cells(*pivoted(self, values, (index, columns), aggfunc, fill_value, total))

    def merge(self, right: Any, how: str = "inner", on: Any = None, suffixes: Any = ("_x", "_y")) -> Any:
        """Join another table, fixed or random, by one column."""
        if not isinstance(on, str) or how not in ("inner", "left"):
            refuse("merge() with anything but a table, on one column")
        return Frame(*merged(self, fixed(right), on, how, tuple(suffixes)))

    def join(self, other: Any, on: Any = None) -> Any:
        """Add columns that have this frame's values of a key as labels."""
        columns = {other.name: other} if isinstance(other, Series) else {n: other.column(n) for n in other.data}
        if not isinstance(on, str) or set(columns) & set(self.data) or None in columns:
            refuse("join() with anything but columns of other names, on one column")
        return self.assign(**{name: self.column(on).map(column) for name, column in columns.items()})


with_methods(Frame, {
    "pipe": lambda self, function, *arguments, **named: function(self, *arguments, **named),
    "copy": lambda self, deep=True: self.made(self.held, self.rows, self.present),
    "nlargest": lambda self, n, columns: self._extremes(n, columns, False),
    "nsmallest": lambda self, n, columns: self._extremes(n, columns, True),
    "sort_index": lambda self: self if self.rows.axis.sorted else refuse("sort_index()"),
    "drop_duplicates": lambda self, subset=None, keep="first": self[~self.duplicated(subset, keep)],
    "where": lambda self, condition, other=None: self._chosen("where", condition, other),
    "mask": lambda self, condition, other=None: self._chosen("mask", condition, other),
    "map": lambda self, function: self.each(lambda column: column.apply(function)),
    "idxmax": lambda self, axis=0: self._extreme_labels("idxmax", np.greater, axis),
    "idxmin": lambda self, axis=0: self._extreme_labels("idxmin", np.less, axis),
})  # fmt: skip


def _fit(new: Sequence[Cell], old: Sequence[Cell]) -> bool:
    """Say whether a column can hold other cells without a change of its type."""
    kinds = {kind(cell.value) for cell in old if cell.known is not False}
    gaps = any(cell.known is not True for cell in old)
    for cell in new:
        if cell.known is not True and not gaps and kinds <= {"i", "b"}:
            return False
        if cell.known is not False and {kind(cell.value)} - kinds - ({"i"} if kinds == {"f"} else set()):
            return False
    return len(kinds) == 1


class Locations(OfStanding):
    """Rows and cells of a frame: `df.loc` and `df.iloc`."""

    def __init__(self, frame: Frame, by_label: bool) -> None:
        self._frame = frame
        self._by_label = by_label

    def __getitem__(self, key: Any) -> Any:
        rows, columns = key if isinstance(key, tuple) and len(key) == 2 else (key, slice(None))
        frame = self._frame
        if not (isinstance(columns, slice) and columns == slice(None)):
            chosen_names = columns if self._by_label else self._names(columns)
            frame_or_column: Any = frame[chosen_names]
            if isinstance(frame_or_column, Series):
                everything = isinstance(rows, slice) and rows == slice(None)
                place = frame_or_column.loc if self._by_label else frame_or_column.iloc
                return frame_or_column if everything else place[rows]
            frame = frame_or_column
        if isinstance(rows, Series):
            return frame[rows]
        if isinstance(rows, slice):
            return frame if rows == slice(None) else self._sliced(frame, rows)
        if isinstance(rows, list) and self._by_label:
            labels = Labels.of(rows)
            return frame.at_rows(labels, lambda found: demanded(labels, found))
        return self._row(frame, rows)

    def _names(self, columns: Any) -> Any:
        names = list(self._frame.data)
        return names[columns] if isinstance(columns, int) else [names[k] for k in columns]

    def _sliced(self, frame: Frame, rows: slice) -> Any:
        if self._by_label or not frame.rows.are_all or not frame.rows.axis.sorted:
            refuse("a slice of rows")
        made = Rows.all_of(frame.rows.axis.sliced(rows))
        columns, _ = unrolled(frame.data, frame.rows)
        places = range(frame.rows.axis.size)[rows]
        return frame.made({name: column.taken(places, made) for name, column in columns.items()}, made)

    def _row(self, frame: Frame, key: Any) -> Any:
        frame.whole()
        if self._by_label and frame.rows.axis.labels is not None and isinstance(key, str | int):
            return frame.row_at(key)
        columns = [Series(Column(cells, frame.rows)) for cells in as_rows(frame.data.values())[0]]
        values = [(column.loc if self._by_label else column.iloc)[key] for column in columns]
        return row_maker(tuple(frame.data))(values)

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._by_label and isinstance(key, str) and isinstance(value, Series):
            self._frame.put_below(key, value)
            return
        if not (isinstance(key, tuple) and len(key) == 2 and isinstance(key[0], Series) and isinstance(key[1], str)):
            refuse("an assignment to rows by anything but a mask and a column")
        mask, name = key
        frame = self._frame
        frame.alike(mask)
        frame.whole()
        before = frame.data[name].cells if name in frame.data else [MISSING] * len(mask.cells)
        new = frame.column_from(value).cells
        if name in frame.data and not _fit(new, before):
            refuse("an assignment to rows of a value of another type")
        cells = [chosen(m, a, b) for m, a, b in zip(mask.masks(), new, before, strict=True)]
        frame[name] = Series(Column(cells, frame.rows))


def _all_differ(cells: Sequence[Cell]) -> bool:
    """Say whether no two cells are equal, with probability one."""
    random = [isinstance(cell.value, RandomVariable) for cell in cells]
    if not any(random):
        return len({cell.value for cell in cells}) == len(cells)
    return all(random) and all(cell.value.node.kind is Kind.CONTINUOUS for cell in cells)


def fixed(table: Any) -> Frame:
    """Return a plain frame of pandas as one of constants; one that is not plain as it is."""
    if isinstance(table, Frame):
        return table
    if isinstance(table, Standing) or not hasattr(table, "columns"):
        refuse("merge() with anything but a table, on one column")
    cells = {name: [cell_of(value) for value in table[name].tolist()] for name in table.columns}
    return Frame.of_cells(cells, Rows.all_of(Axis((None,) * len(table))))


def _summary(name: str) -> Any:
    return lambda self, **options: self._summaries(name, **options)


def _by_column(name: str) -> Any:
    """Return an operator or method of whole frames: that of their columns, each with what stands beside it."""

    def method(self: Frame, other: Any, axis: Any = "columns") -> Any:
        return self.beside(other, lambda column, part: getattr(column, name)(part), by_row=axis in (0, "index"))

    return method


def _of_each(name: str) -> Any:
    return lambda self: self.each(lambda column: getattr(column, name)())


_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
_ALIASES = ("div", "divide", "rdiv", "subtract", "multiply")
_NAMES = [f"__{one}__" for one in (*_ARITHMETIC, *COMPARISONS, "and", "or", "xor")]
_NAMES += [f"__r{one}__" for one in (*_ARITHMETIC, "and", "or", "xor")]
with_methods(
    Frame,
    {
        name: _by_column(name)
        for name in (*_NAMES, *_ARITHMETIC, *(f"r{one}" for one in _ARITHMETIC), *_ALIASES, *COMPARISONS)
    },
)
with_methods(Frame, {name: _of_each(name) for name in (
    "__invert__", "__neg__", "__abs__", "abs", "isna", "isnull", "notna", "notnull")})  # fmt: skip
with_methods(Frame, {name: _summary(name) for name in SUMMARIES})
Series.frame = Frame
Frame.__hash__ = None  # type: ignore[assignment]
