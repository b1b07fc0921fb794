"""A traced column with what pandas does cell by cell and row by row: the stand-in of a Series, and its accessors."""

import importlib
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from privug.model.variable import RandomVariable, refuse
from privug.prior.frame import is_missing
from privug.program.traced.frames import cells as of_cells
from privug.program.traced.frames.cells import (
    Cell,
    cell_of,
    chosen,
    compared,
    divided,
    hits_of,
    kind,
    mapped,
    rounded,
    with_gaps,
)
from privug.program.traced.frames.pandas.column import (
    Column,
    beside_timestamps,
    missing_ones,
    native,
    of_one_type,
)
from privug.program.traced.frames.relations import Groups
from privug.program.traced.frames.rows import Axis, Rows, called, renumbered, total_of
from privug.program.traced.keys import alternatives
from privug.program.traced.masks import Mask, MaskedList, OfStanding, Standing, any_of, both, either, negated, truth

MOST_COMPARED = 32
"""How many rows may be compared with each other, each with all."""


def few_rows(rows: Rows, what: str) -> None:
    """Refuse rows that are too many to be compared with each other, or stand for many."""
    if rows.has_plates or len(rows.there) > MOST_COMPARED:
        refuse(f"{what}() of many rows")


def same_cell(left: Cell, right: Cell) -> Mask:
    """Return whether two cells are alike; missing ones are."""
    missing = both(negated(left.known), negated(right.known))
    return either(missing, truth(compared(np.equal, left, right).value))


def repeated(columns: Sequence[Sequence[Cell]], rows: Rows, keep: Any) -> list[Mask]:
    """Return for each row whether it is like one before, or one behind, or (`keep=False`) any other."""
    few_rows(rows, "duplicated")
    if keep not in ("first", "last") and keep is not False:
        refuse("duplicated() that keeps something else")
    places = range(len(rows.there))
    found = []
    for place in places:
        others = [k for k in places if k != place and (keep is False or (k < place) is (keep == "first"))]
        found.append(any_of([both(rows.there[k], _alike(columns, k, place)) for k in others]))
    return found


def _alike(columns: Sequence[Sequence[Cell]], one: int, two: int) -> Mask:
    alike: Mask = True
    for cells in columns:
        alike = both(alike, same_cell(cells[one], cells[two]))
    return alike


def shifted(cells: Sequence[Cell], rows: Rows, periods: int) -> list[Cell]:
    """Return the cells some rows further down; where nothing comes from, they are missing."""
    if not isinstance(periods, int) or not rows.are_all or not rows.axis.sorted:
        refuse("shift() of a random number of rows")
    if rows.has_plates:
        refuse("shift() of many rows")
    size = len(cells)
    cells = [with_gaps(cell) for cell in cells] if periods else cells
    return [cells[k - periods] if 0 <= k - periods < size else cell_of(None) for k in range(size)]


def ranked(cells: Sequence[Cell], rows: Rows, method: str, ascending: bool, pct: bool) -> list[Cell]:
    """Return the rank of each cell among those that are known: one for the first, equal ones alike."""
    few_rows(rows, "rank")
    if method not in ("average", "min", "max"):
        refuse(f"rank() by {method!r}")
    before = np.less if ascending else np.greater
    known = [both(there, cell.known) for cell, there in zip(cells, rows.there, strict=True)]
    number = total_of(known)
    found = []
    for cell in cells:
        smaller = total_of([both(k, truth(compared(before, o, cell).value)) for o, k in zip(cells, known, strict=True)])
        equal = total_of([both(k, truth(compared(np.equal, o, cell).value)) for o, k in zip(cells, known, strict=True)])
        rank = {"min": smaller + 1, "max": smaller + equal, "average": smaller + (equal + 1) / 2}[method]
        rank = rank / where_positive(number) if pct else rank * 1.0
        found.append(Cell(rank, cell.known))
    return found


def where_positive(number: Any) -> Any:
    """Return a number, or one where it is zero."""
    return max(number, 1) if isinstance(number, int) else np.maximum(number, 1)


MOST_PAIRS = 1024
"""How many pairs of rows of two tables are looked at."""

Columns = dict[Any, list[Cell]]


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


def merged(left: Any, right: Any, on: str, how: str, suffixes: tuple[str, str]) -> tuple[Columns, Rows]:
    """Return the rows of two frames that have the same key, side by side; `left` keeps those that have no partner."""
    if on not in left.data or on not in right.data:
        raise KeyError(on)
    names = [name for name in right.data if name != on]
    both_have = {name for name in names if name in left.data}
    of_left = {name: f"{name}{suffixes[0]}" if name in both_have else name for name in left.data}
    of_right = {name: f"{name}{suffixes[1]}" if name in both_have else name for name in names}
    keys = [cell.value for cell in right.data[on]]
    if right.rows.axis.sorted and _are_distinct(right, on):
        found = {of_right[n]: looked_up(left.data[on], keys, right.data[n], right.rows.there) for n in names}
        partner = looked_up(left.data[on], keys, [Cell(True)] * len(keys), right.rows.there)
        rows = renumbered(left.rows) if how == "left" else renumbered(left.rows.among([one.known for one in partner]))
        return {**{of_left[n]: cells for n, cells in left.data.items()}, **found}, rows
    return _in_pairs(left, right, on, how, of_left, of_right)


def _are_distinct(right: Any, on: str) -> bool:
    cells = right.data[on]
    if any(isinstance(cell.value, RandomVariable) or cell.known is not True for cell in cells):
        return False
    return len({cell.value for cell in cells}) == len(cells) and not right.rows.has_plates


def _in_pairs(
    left: Any, right: Any, on: str, how: str, of_left: dict[Any, Any], of_right: dict[Any, Any]
) -> tuple[Columns, Rows]:
    """Join every row of one frame with every row of another, where keys agree."""
    size = len(right.rows.there)
    if right.rows.has_plates or len(left.rows.there) * (size + 1) > MOST_PAIRS or not right.rows.axis.sorted:
        refuse("merge() with a table of many rows")
    if any(cell.known is not True for frame in (left, right) for cell in frame.data[on]):
        refuse("merge() by keys that may be missing")
    data: Columns = {name: [] for name in (*of_left.values(), *of_right.values())}
    plates, there = [], []
    for place, plate in enumerate(left.rows.axis.plates):
        key, here = left.data[on][place], left.rows.there[place]
        hits = [
            both(mask, truth(compared(np.equal, key, other).value))
            for other, mask in zip(right.data[on], right.rows.there, strict=True)
        ]
        alone = [negated(any_of(hits))] if how == "left" else []
        for k, hit in enumerate([*hits, *alone]):
            for name, new in of_left.items():
                data[new].append(left.data[name][place])
            for name, new in of_right.items():
                data[new].append(right.data[name][k] if k < size else cell_of(None))
            plates.append(plate)
            there.append(both(here, hit))
    return data, Rows(Axis(tuple(plates), anonymous=True, renumbered=True, sorted=left.rows.axis.sorted), tuple(there))


def stacked(frames: Sequence[Any]) -> tuple[Columns, Rows]:
    """Return the rows of several frames, one below the other."""
    if not frames or any(set(frame.data) != set(frames[0].data) for frame in frames):
        refuse("pd.concat() of frames with different columns")
    if any(frame.hits or frame.present or frame.lost for frame in frames):
        refuse("pd.concat() of such frames")
    data = {name: [cell for frame in frames for cell in frame.data[name]] for name in frames[0].data}
    plates = tuple(plate for frame in frames for plate in frame.rows.axis.plates)
    in_order = all(frame.rows.axis.sorted for frame in frames)
    return data, Rows(
        Axis(plates, anonymous=True, sorted=in_order), tuple(mask for frame in frames for mask in frame.rows.there)
    )


def is_frame(value: Any) -> bool:
    """Say whether a value is a frame, plain or standing for one."""
    return getattr(value, "kind", "") == "DataFrame" if isinstance(value, Standing) else hasattr(value, "columns")


class Series(Column):
    """A column of a frame, or one by itself."""

    def made(self, cells: Sequence[Cell], rows: Rows, name: Any = None) -> Any:
        return Series(cells, rows, name)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options or ufunc.nout != 1:
            refuse(f"np.{ufunc.__name__}.{method} of a Series")
        if ufunc in (np.true_divide, np.divide) and len(inputs) == 2:
            return self / inputs[1] if inputs[0] is self else inputs[0] / self
        if len(inputs) == 2 and ufunc in _COMPARING:
            other, swapped = (inputs[1], False) if inputs[0] is self else (inputs[0], True)
            return self.combined(lambda a, b: compared(ufunc, b, a) if swapped else compared(ufunc, a, b), other)
        columns = [self.beside(one, exactly=True) for one in inputs]
        if ufunc.__name__ in _SEEING_GAPS and not self.is_known:
            refuse(f"np.{ufunc.__name__} of missing values")
        made = [of_cells.applied(ufunc, *several) for several in zip(*columns, strict=True)]
        return self.with_cells([of_cells.without_nan(cell) for cell in made])

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        if function is np.where and len(arguments) == 3 and not options:
            mask, yes, no = arguments
            column = next(one for one in arguments if isinstance(one, Series))
            sides = [column.beside(one, exactly=True) for one in (mask, yes, no)]
            picked = [chosen(verdict(m), a, b) for m, a, b in zip(*sides, strict=True)]
            return _array_like(column.with_cells(picked))
        if function.__name__ in _SAME_AS_METHODS and arguments[0] is self:
            if function.__name__ in ("median", "quantile") and not self.is_known:
                refuse(f"np.{function.__name__} of missing values")
            if function.__name__ in ("std", "var"):
                options = {"ddof": 0, **options}
            return getattr(self, function.__name__)(*arguments[1:], **options)
        return super().__array_function__(function, types, arguments, options)

    def __truediv__(self, other: Any) -> Any:
        one, two = self.aligned(other)
        triples = zip(one.cells, one.beside(two, exactly=True), one.rows.there, strict=True)
        return one.with_cells([of_cells.divided(a, b, there) for a, b, there in triples])

    def __rtruediv__(self, other: Any) -> Any:
        one, two = self.aligned(other)
        triples = zip(one.cells, one.beside(two, exactly=True), one.rows.there, strict=True)
        return one.with_cells([of_cells.divided(b, a, there) for a, b, there in triples])

    def __invert__(self) -> Any:
        if any(of_cells.was_filled(cell) for cell in self.cells):
            refuse("~ of truth values that had gaps, which are objects")
        return self.with_cells([Cell(negated(mask)) for mask in self.masks()])

    def __neg__(self) -> Any:
        return self.each(lambda cell: of_cells.applied(np.negative, cell))

    def __abs__(self) -> Any:
        return self.each(lambda cell: of_cells.applied(np.absolute, cell))

    abs = __abs__

    def __round__(self, digits: int = 0) -> Any:
        return self.round(digits)

    def round(self, decimals: int = 0) -> Any:
        return self.each(lambda cell: rounded(cell, decimals))

    div = truediv = divide = __truediv__

    def where(self, condition: Any, other: Any = None) -> Any:
        triples = zip(self.masks_of(condition), self.cells, self.beside(other), strict=True)
        return self.with_cells([chosen(mask, yes, no) for mask, yes, no in triples])

    def mask(self, condition: Any, other: Any = None) -> Any:
        triples = zip(self.masks_of(condition), self.cells, self.beside(other), strict=True)
        return self.with_cells([chosen(mask, no, yes) for mask, yes, no in triples])

    def masks_of(self, condition: Any) -> list[Mask]:
        """Return a condition on the same rows, or a function that gives one, as conditions."""
        column = condition(self) if callable(condition) else condition
        if not isinstance(column, Series):
            refuse("a condition that is not a Series")
        self.beside(column)
        return column.masks()

    def clip(self, lower: Any = None, upper: Any = None) -> Any:
        found = self
        if lower is not None:
            found = np.maximum(found, lower)
        return found if upper is None else np.minimum(found, upper)

    def between(self, left: Any, right: Any, inclusive: str = "both") -> Any:
        low = self >= left if inclusive in ("both", "left") else self > left
        return low & (self <= right if inclusive in ("both", "right") else self < right)

    def isin(self, values: Any) -> Any:
        listed = list(values.plain() if isinstance(values, MaskedList) else values)
        wanted = [cell_of(value) for value in listed]
        if any(isinstance(one.known, RandomVariable) for one in wanted):
            refuse("isin() of values that may be missing")

        def among(cell: Cell) -> Cell:
            hits = [truth(compared(np.equal, cell, one).value) for one in wanted]
            return Cell(any_of([*hits, negated(cell.known)] if missing_ones(cell, listed) else hits))

        return self.each(among)

    def isna(self) -> Any:
        return self.each(lambda cell: Cell(negated(cell.known)))

    def notna(self) -> Any:
        return self.each(lambda cell: Cell(cell.known))

    isnull, notnull = isna, notna

    def fillna(self, value: Any) -> Any:
        cells, others = of_one_type(self.cells), self.beside(value)
        if any(of_cells.kind(cell.value) == "f" for cell in cells):
            others = [of_cells.with_gaps(other) for other in others]
        pairs = zip(cells, others, strict=True)
        return self.with_cells([chosen(cell.known, Cell(cell.value), other) for cell, other in pairs])

    def dropna(self) -> Any:
        return Series(self.cells, self.rows.among([cell.known for cell in self.cells]), self.name)

    def map(self, function: Any, na_action: Any = None) -> Any:
        if isinstance(function, Series):
            axis = function.rows.axis
            if axis.labels is None or axis.anonymous:
                refuse("map() by a Series without fixed labels")
            return self.with_cells(looked_up(self.cells, axis.labels, function.cells, function.rows.there))
        if isinstance(function, Mapping):
            table = self._of_known_keys(function)
            return self.each(lambda cell: mapped(table.get, cell))
        if na_action is not None and not self.is_known:
            refuse("map() that leaves missing values as they are")
        return self.apply(function)

    def _of_known_keys(self, table: Mapping[Any, Any]) -> dict[Any, Any]:
        if not self.is_known and any(map(is_missing, table)):
            refuse("other values in the place of missing ones, by a table")
        return dict(table)

    def replace(self, old: Any, new: Any = None) -> Any:
        table = self._of_known_keys(old if isinstance(old, Mapping) else {old: new})
        return self.each(lambda cell: mapped(lambda value: table.get(value, value), cell))

    def apply(self, function: Any) -> Any:
        """Call a function on each value; it is traced once for rows that are alike."""
        return self.with_cells(called(function, of_one_type(self.cells), self.rows, native))

    def astype(self, dtype: Any) -> Any:
        return self.each(lambda cell: of_cells.converted(cell, dtype))


_COMPARING = {np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal}
_SEEING_GAPS = {"isnan", "isfinite", "isinf", "signbit", "logical_not", "logical_and", "logical_or", "logical_xor",
                "fmax", "fmin"}  # fmt: skip
_SAME_AS_METHODS = {
    "sum",
    "mean",
    "min",
    "max",
    "amin",
    "amax",
    "std",
    "var",
    "median",
    "quantile",
    "any",
    "all",
    "round",
}


def _computed(function: np.ufunc, left: Cell, right: Cell) -> Cell:
    return of_cells.without_nan(of_cells.applied(function, of_cells.harmless(left), of_cells.harmless(right)))


def _operator(function: np.ufunc) -> tuple[Any, Any]:
    def first(self: Series, other: Any) -> Any:
        return self.combined(lambda a, b: _computed(function, a, b), other)

    def second(self: Series, other: Any) -> Any:
        return self.combined(lambda a, b: _computed(function, b, a), other)

    return first, second


def _comparison(function: np.ufunc) -> Any:
    def method(self: Series, other: Any) -> Any:
        read = beside_timestamps(self.cells, other)
        return self.combined(lambda a, b: compared(function, a, b), read, alike=True)

    return method


def _array_like(column: Series) -> Any:
    """Return a column as an array of NumPy is: without labels, and without a mark for what is missing."""
    axis = column.rows.axis
    if not column.is_known:
        return column.to_numpy() if column.is_numeric and column.rows.are_all else refuse("an array with gaps")
    if axis.labels is None:
        return column
    return Series(column.cells, Rows(Axis(axis.plates, anonymous=True, sorted=axis.sorted), column.rows.there))


def verdict(cell: Cell) -> Mask:
    """Return a cell of truth values as a condition."""
    if cell.known is not True or not of_cells.is_truth(cell.value):
        refuse("logic of anything but truth values that are known")
    return truth(cell.value)


def _connective(function: Callable[[Mask, Mask], Mask]) -> Any:
    def cell(left: Cell, right: Cell) -> Cell:
        if not of_cells.is_truth(left.value) and not of_cells.is_truth(right.value):
            refuse("logic of numbers, bit by bit")
        return Cell(function(_bit(left), _bit(right)))

    return lambda self, other: self.combined(cell, other)


def _bit(cell: Cell) -> Mask:
    """Return a truth value, or a number that is zero or one, as a condition: what pandas has in logic beside others."""
    if of_cells.is_truth(cell.value) or cell.known is not True or of_cells.kind(cell.value) != "i":
        return verdict(cell)
    if not set(alternatives(cell.value)) <= {0, 1}:
        refuse("logic of numbers other than zero and one")
    return truth(cell.value == 1)


for _name, _function, _method in (
    ("add", np.add, "add"), ("sub", np.subtract, "sub"), ("mul", np.multiply, "mul"), ("pow", np.power, "pow"),
    ("floordiv", np.floor_divide, "floordiv"), ("mod", np.remainder, "mod"),
):  # fmt: skip
    _first, _second = _operator(_function)
    setattr(Series, f"__{_name}__", _first)
    setattr(Series, f"__r{_name}__", _second)
    setattr(Series, _method, _first)
for _plain, _comparing in (
    (operator.eq, np.equal), (operator.ne, np.not_equal), (operator.lt, np.less), (operator.le, np.less_equal),
    (operator.gt, np.greater), (operator.ge, np.greater_equal),
):  # fmt: skip
    setattr(Series, f"__{_plain.__name__}__", _comparison(_comparing))
    setattr(Series, _plain.__name__, _comparison(_comparing))
for _name, _joining in (
    ("and", both),
    ("or", either),
    ("xor", lambda a, b: either(both(a, negated(b)), both(negated(a), b))),
):
    setattr(Series, f"__{_name}__", _connective(_joining))
    setattr(Series, f"__r{_name}__", _connective(_joining))
Series.__hash__ = None  # type: ignore[assignment]


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
        if self.rows.has_plates:
            refuse("a look for a label among many rows")
        return zip(self.cells, self.rows.there, strict=True)


def counted_values(columns: Sequence[Series], rows: Rows, normalize: bool, descending: bool = True) -> Series:
    """Return how often each value occurs, in a random order: the descending one, if not another that is not known."""
    everything = len(columns) == 1 and columns[0].categorical
    groups = Groups(columns, rows, everything)
    there: list[Mask] = [everything or one for one in groups.there]
    turns = None
    if len(columns) == 1 and not everything and descending:
        turns = partial(_turns, groups)
    labels, names = tuple(label for label, _ in groups.members), tuple(column.name for column in columns)
    axis = Axis((None,) * len(labels), labels, names, sorted=False, ascending=True, ranks=turns)
    total = rows.count if all(cell.known is True for column in columns for cell in column.cells) else None
    if normalize and total is None:
        total = rows.among([any_of(list(hits.values())) for hits in groups.hits]).count
    counts = [Cell(own.count) for _, own in groups.members]
    cells = [divided(n, Cell(total), one) for n, one in zip(counts, there, strict=True)] if normalize else counts
    return Series(cells, Rows(axis, tuple(there)), "proportion" if normalize else "count")


def _turns(groups: Groups) -> list[Any]:
    """Return numbers by which values stand in turn: the most frequent first, of equally many the first to be seen."""
    size = groups.rows.axis.size
    pairs = zip(groups.first_places(), groups.members, strict=True)
    return [np.minimum(first, size) - rows.count * (size + 1) for first, (_, rows) in pairs]


def described(column: Series) -> Series:
    """Return the eight numbers of describe(), all of them floats."""
    cells = [column.summary(how) for how in ("count", "mean", "std", "min")]
    cells += [column.summary("quantile", q) for q in (0.25, 0.5, 0.75)]
    labels = ("count", "mean", "std", "min", "25%", "50%", "75%", "max")
    return labelled(labels, [with_gaps(cell) for cell in (*cells, column.summary("max"))], column.name)


_TEXTS: dict[str, Callable[..., Any]] = {
    "upper": str.upper, "lower": str.lower, "strip": str.strip, "title": str.title, "capitalize": str.capitalize,
    "lstrip": str.lstrip, "rstrip": str.rstrip, "zfill": str.zfill, "startswith": str.startswith,
    "isdigit": str.isdigit, "endswith": str.endswith, "len": len, "removeprefix": str.removeprefix,
    "isnumeric": str.isnumeric,
    "removesuffix": str.removesuffix, "find": str.find, "ljust": str.ljust, "rjust": str.rjust,
}  # fmt: skip
_VERDICTS = {"startswith", "endswith", "isdigit", "isnumeric"}
_DATES = {"year", "month", "day", "hour", "minute", "second"}


def _is_pattern(part: str) -> bool:
    return any(letter in part for letter in ".^$*+?{}[]\\|()")


def _part(text: str, key: Any) -> Any:
    """Return a letter, which may be missing, or a part of a text."""
    return None if isinstance(key, int) and not -len(text) <= key < len(text) else text[key]


class Texts(OfStanding):
    """`series.str`: methods of texts, on each of the texts that a cell may be."""

    def __init__(self, column: Series) -> None:
        self._column = column

    def __getitem__(self, key: Any) -> Any:
        return self._column.each(lambda cell: mapped(lambda text: _part(text, key), cell))

    def slice(self, start: Any = None, stop: Any = None, step: Any = None) -> Any:
        return self[slice(start, stop, step)]

    def contains(self, part: str, regex: bool = True, case: bool = True) -> Any:
        if regex and _is_pattern(part):
            refuse("str.contains() of a pattern")
        return self._verdicts(lambda text: part in text if case else part.lower() in text.lower())

    def _verdicts(self, function: Callable[[str], bool]) -> Any:
        """Say what holds of texts: of a missing one nothing does, from pandas 3.0 on."""
        if not self._column.is_known and not observes_by_default():
            refuse("a look into missing texts")
        verdicts = [mapped(function, cell) for cell in self._column.cells]
        return self._column.with_cells([Cell(both(cell.known, truth(cell.value))) for cell in verdicts])

    def replace(self, old: str, new: str, regex: bool = False) -> Any:
        if regex:
            refuse("str.replace() of a pattern")
        return self._column.each(lambda cell: mapped(lambda text: text.replace(old, new), cell))

    def count(self, part: str) -> Any:
        if _is_pattern(part):
            refuse("str.count() of a pattern")
        return self._column.each(lambda cell: mapped(lambda text: text.count(part), cell))

    def __getattr__(self, name: str) -> Any:
        if name not in _TEXTS:
            refuse(f"Series.str.{name}")
        function = _TEXTS[name]
        column = self._column
        if name in _VERDICTS:
            return lambda *arguments: self._verdicts(lambda text: function(text, *arguments))
        return lambda *arguments: column.each(lambda cell: mapped(lambda text: function(text, *arguments), cell))


class Dates(OfStanding):
    """`series.dt`: parts of dates."""

    def __init__(self, column: Series) -> None:
        self._column = column

    def __getattr__(self, name: str) -> Any:
        column = self._column
        if name == "quarter":
            return column.each(lambda cell: mapped(lambda date: (date.month + 2) // 3, cell))
        if name in ("dayofweek", "weekday"):
            return column.each(lambda cell: mapped(lambda date: date.weekday(), cell))
        if name in _DATES:
            return column.each(lambda cell: mapped(lambda date: getattr(date, name, 0), cell))
        return refuse(f"Series.dt.{name}")
