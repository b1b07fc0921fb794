"""A traced frame as such: its columns and rows, and where they are found."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from privug.model.sparse import SparseColumns, SparseDict
from privug.model.table import row_maker
from privug.model.variable import refuse
from privug.program.traced.frames import reductions
from privug.program.traced.frames.cells import Cell, cell_of, chosen, kind
from privug.program.traced.frames.handing import as_rows, element, native, of_one_type
from privug.program.traced.frames.labels import Found, Labels, demanded, filled, found_at, renamed
from privug.program.traced.frames.queries import queried
from privug.program.traced.frames.released import leaf, singled_out
from privug.program.traced.frames.rows import Rows, counted, first_of
from privug.program.traced.frames.series import Series
from privug.program.traced.frames.shapes import Index, labelled
from privug.program.traced.iteration import PlatedList
from privug.program.traced.masks import Mask, MaskedList, OfStanding, Standing, both, current, fail_where, negated


class Table(Standing):
    """Columns of the same rows, some of which may not be there."""

    kind = "DataFrame"

    @abstractmethod
    def made(self, data: Mapping[Any, Sequence[Cell]], rows: Rows, present: Mapping[Any, Mask] | None = None) -> Any:
        """Return another frame."""

    def __init__(
        self, data: Mapping[Any, Sequence[Cell]], rows: Rows, present: Mapping[Any, Mask] | None = None
    ) -> None:
        self.present = {name: mask for name, mask in (present or {}).items() if mask is not True}
        """Columns that are there under a condition."""
        self.held = {name: list(cells) for name, cells in data.items() if self.present.get(name) is not False}
        """The columns, those that may be absent as well."""
        self.rows = rows
        self.lost: frozenset[Any] = frozenset()
        """Columns of which it is not known from which of equal rows pandas takes them."""
        self.hits: dict[Any, Any] = {}
        """Of columns made by pd.cut, when cells have each of their values."""

    @property
    def data(self) -> dict[Any, list[Cell]]:
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
        for name, cells in self.held.items():
            there = [both(one, self.present.get(name, True)) for one in self.rows.there]
            leaves = [leaf(cell, mask) for cell, mask in zip(cells, there, strict=True)]
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
        self.held = {new[name]: cells for name, cells in self.data.items()}
        self.hits = {new[name]: hits for name, hits in self.hits.items()}

    @property
    def index(self) -> Index:
        """The labels of the rows."""
        return Index(self.rows)

    @property
    def shape(self) -> tuple[Any, ...]:
        """How many rows and columns there are."""
        there = [self.present.get(name, True) for name in self.held]
        return native(Cell(self.length())), native(Cell(counted(there, (None,) * len(there))))

    @property
    def empty(self) -> Any:
        """Whether there are no rows."""
        return negated(reductions.positive(self.rows.count))

    def column(self, name: Any) -> Series:
        """Return a column; an error where it is not there."""
        fail_where(negated(self.contains(name)), KeyError(name))
        return self.kept(name)

    def kept(self, name: Any) -> Series:
        """Return a column that means nothing where it is not there."""
        if name in self.lost:
            refuse("another column after sort_values() by one, where equal rows stand in any order (kind='stable'),")
        made = Series(self.held[name], self.rows, name)
        made.hits, made.categorical = self.hits.get(name, (None, False))
        return made

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, Series):
            self.alike(key)
            return self.made(self.data, self.rows.among(key.masks()))._with_hits(self)
        if isinstance(key, list):
            return self.made({name: self.column(name).cells for name in key}, self.rows)._with_hits(self)
        if isinstance(key, slice):
            return self.iloc[key]
        return self.column(key)

    def _with_hits(self, other: "Table") -> Any:
        self.hits = {name: hits for name, hits in other.hits.items() if name in self.held}
        self.lost = other.lost & self.held.keys()
        return self

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
        Series([], self.rows).beside_rows(column)

    def cells_of(self, value: Any) -> list[Cell]:
        """Return what is to be a column as cells."""
        return Series([Cell(0)] * len(self.rows.there), self.rows).beside(value)

    def __setitem__(self, name: Any, value: Any) -> None:
        if current() is not True:
            refuse("a new column under a random condition")
        if not isinstance(name, str):
            refuse("an assignment to several columns or rows")
        self.hits.pop(name, None)
        self.lost -= {name}
        if isinstance(value, Series) and value.hits is not None:
            self.hits[name] = value.hits, value.categorical
        columns = self.data if name in self.present or not self.rows.never_empty else self.held
        columns[name] = self.cells_of(value)

    def put_below(self, label: Any, row: Series) -> None:
        """Put a row of a label of its own below the others, from a column under the names of the columns."""
        self.whole()
        if row.rows.axis.labels != tuple(self.data) or not row.rows.are_all or not self.rows.axis.sorted:
            refuse("a new row of anything but a value for each column")
        columns = {name: self.kept(name) for name in self.data}
        for column, cell in zip(columns.values(), row.cells, strict=True):
            column[label] = element(cell)
        self.held = {name: column.cells for name, column in columns.items()}
        self.rows = self.rows.with_label(label)

    def assign(self, **columns: Any) -> Any:
        made = self.copy()
        for name, value in columns.items():
            made[name] = value(made) if callable(value) else value
        return made

    def copy(self, deep: bool = True) -> Any:
        return self.made(self.held, self.rows, self.present)._with_hits(self)

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
        return self.made({names[name]: cells for name, cells in self.held.items()}, rows, present)

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
        data = {name: taken(found_at(labels, cells, self.rows)) for name, cells in self.held.items()}
        return self.made(data, labels.rows(self.rows.axis.names), self.present)

    def _at_columns(self, labels: Labels, filling: Cell) -> Any:
        names, size = list(self.held), len(self.rows.there)
        data = {}
        for label, place in zip(labels.listed, labels.places_in(names), strict=True):
            there = False if place is None else self.present.get(names[place], True)
            cells = [filling] * size if place is None else self.held[names[place]]
            data[label] = [chosen(there, cell, filling) for cell in cells]
        return self.made(data, self.rows)

    def each(self, function: Callable[[Series], Series]) -> Any:
        """Return a frame whose columns are computed of these."""
        return self.made({name: function(self.kept(name)).cells for name in self.held}, self.rows, self.present)

    def round(self, decimals: Any = 0) -> Any:
        if isinstance(decimals, Mapping):
            return self.each(lambda column: column.round(decimals[column.name]) if column.name in decimals else column)
        return self.each(lambda column: column.round(decimals) if column.is_numeric else column)

    def fillna(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return self.each(lambda column: column.fillna(value[column.name]) if column.name in value else column)
        return self.each(lambda column: column.fillna(value))

    def isna(self) -> Any:
        return self.each(Series.isna)

    isnull = isna

    def notna(self) -> Any:
        return self.each(Series.notna)

    def astype(self, dtype: Any) -> Any:
        if isinstance(dtype, Mapping):
            changed = {name: self.column(name).astype(to).cells for name, to in dtype.items()}
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
            masks = [both(mask, cell.known) for mask, cell in zip(masks, self.data[name], strict=True)]
        return self.made(self.data, self.rows.among(masks))._with_hits(self)

    def head(self, n: int = 5) -> Any:
        if self.rows.are_all:
            found: Any = self.iloc[:n]
            return found
        return self.made(self.data, first_of(self.rows, n))._with_hits(self)

    @property
    def loc(self) -> "Locations":
        """Rows and cells by their labels and by masks."""
        return Locations(self, by_label=True)

    @property
    def iloc(self) -> "Locations":
        """Rows and cells by their positions."""
        return Locations(self, by_label=False)

    at, iat = loc, iloc

    def itertuples(self, index: bool = True, name: Any = "Pandas") -> Any:
        """Return the rows as tuples, one for rows that are alike."""
        self.whole()
        names = (*(("Index",) if index else ()), *self.data)
        called = [self.rows.axis.called()] if index else []
        columns = [*called, *([native(cell) for cell in of_one_type(cells)] for cells in self.data.values())]
        return self._listed([*map(row_maker(names), zip(*columns, strict=True))])

    def iterrows(self) -> Any:
        """Return the rows with their labels."""
        return self._listed([*zip(self.rows.axis.called(), self.single_rows(), strict=True)])

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

    @property
    def _has_plates(self) -> bool:
        return any(plate is not None for plate in self.rows.axis.plates)

    def _listed(self, items: list[Any]) -> Any:
        if self._has_plates:
            return PlatedList(list(zip(items, self.rows.there, self.rows.axis.plates, strict=True)))
        return MaskedList.of_pairs(zip(items, self.rows.there, strict=True))

    def pipe(self, function: Any, *arguments: Any, **named: Any) -> Any:
        return function(self, *arguments, **named)


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

    def __init__(self, frame: Table, by_label: bool) -> None:
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

    def _sliced(self, frame: Table, rows: slice) -> Any:
        if self._by_label or not frame.rows.are_all or not frame.rows.axis.sorted:
            refuse("a slice of rows")
        cut = {name: singled_out(cells, frame.rows)[0][rows] for name, cells in frame.data.items()}
        return frame.made(cut, Rows.all_of(frame.rows.axis.sliced(rows)))

    def _row(self, frame: Table, key: Any) -> Any:
        frame.whole()
        if self._by_label and frame.rows.axis.labels is not None and isinstance(key, str | int):
            return frame.row_at(key)
        columns = [Series(cells, frame.rows) for cells in as_rows(frame.data.values())[0]]
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
        before = frame.data.get(name, [Cell(0.0, False)] * len(mask.cells))
        new = frame.cells_of(value)
        if name in frame.data and not _fit(new, before):
            refuse("an assignment to rows of a value of another type")
        frame[name] = Series([chosen(m, a, b) for m, a, b in zip(mask.masks(), new, before, strict=True)], frame.rows)
