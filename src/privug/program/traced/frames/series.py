"""A traced column with what pandas does cell by cell: the stand-in of a Series."""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from privug.model.variable import RandomVariable, refuse
from privug.prior.frame import is_missing
from privug.program.traced.frames import cells as of_cells
from privug.program.traced.frames import handing
from privug.program.traced.frames.cells import Cell, cell_of, chosen, compared, mapped
from privug.program.traced.frames.column import Column
from privug.program.traced.frames.dates import beside_timestamps, missing_ones
from privug.program.traced.frames.joins import looked_up
from privug.program.traced.frames.rows import Axis, Rows
from privug.program.traced.keys import alternatives
from privug.program.traced.masks import Mask, MaskedList, any_of, both, either, negated, truth


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
        return self.each(lambda cell: cell if cell.known is False else _rounded(cell, decimals))

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
        cells, others = handing.of_one_type(self.cells), self.beside(value)
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
        return self.with_cells(handing.called(function, handing.of_one_type(self.cells), self.rows))

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


def _rounded(cell: Cell, decimals: int) -> Cell:
    value = np.round(cell.value, decimals)
    return Cell(value.item() if isinstance(value, np.generic) else value, cell.known)


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
