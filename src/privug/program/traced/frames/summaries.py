"""What a traced column or frame comes to, under the names of pandas."""

from typing import Any

from privug.model.variable import refuse
from privug.program.traced.frames import reductions
from privug.program.traced.frames.cells import Cell, refuse_mixed, with_gaps
from privug.program.traced.frames.handing import are_floats, element, native, number
from privug.program.traced.frames.rows import Rows
from privug.program.traced.masks import Standing, fail_where, negated

_OF_ITS_TYPE = {"sum", "min", "max", "first", "last"}
"""What is a number of the column's own type."""


class Summaries(Standing):
    """The summaries of a column."""

    cells: list[Cell]
    rows: Rows

    def summary(self, how: str, *arguments: Any, **options: Any) -> Cell:
        """Return what the column comes to, by a name of pandas."""
        if how not in ("count", "size"):
            refuse_mixed(*(cell.value for cell in self.cells))
        reduction = reductions.REDUCTIONS.get(how)
        if reduction is None:
            self.unknown(f"{how}()")
        if options.pop("skipna", True) is not True or options.pop("numeric_only", False):
            self.unknown(f"{how}() with options")
        try:
            found = reduction(self.cells, self.rows, *arguments, **options)
        except TypeError:
            self.unknown(f"{how}() with options")
        return with_gaps(found) if how in _OF_ITS_TYPE and are_floats(self.cells) else found

    def idxmax(self) -> Any:
        return self._place(1)

    def idxmin(self) -> Any:
        return self._place(-1)

    def argmax(self) -> Any:
        return self._position(1)

    def argmin(self) -> Any:
        return self._position(-1)

    def _position(self, sign: int) -> Any:
        if not self.rows.are_all or not self.rows.axis.sorted or any(cell.known is not True for cell in self.cells):
            refuse("argmax() or argmin() of a random number of rows")
        return reductions.place_of_extreme(self.cells, self.rows, sign)[0]

    def _place(self, sign: int) -> Any:
        axis = self.rows.axis
        if not axis.sorted or axis.anonymous:
            refuse("idxmax() or idxmin() among equals whose order is random")
        place, known = reductions.place_of_extreme(self.cells, self.rows, sign)
        fail_where(negated(known), ValueError("attempt to get argmax of an empty sequence"))
        if axis.labels is None:
            return native(Cell(place))
        from_labels: Any = axis.whole(list(axis.labels))[place]
        return from_labels

    @property
    def size(self) -> Any:
        """How many cells there are, missing ones too."""
        return native(Cell(self.rows.count))

    @property
    def shape(self) -> tuple[Any, ...]:
        """How many cells there are."""
        return (self.size,)

    @property
    def empty(self) -> Any:
        """Whether no cell is there."""
        return negated(reductions.positive(self.rows.count))

    def length(self) -> Any:
        return self.rows.count

    def to_numpy(self) -> Any:
        """Return the column as an array, or as some elements of one."""
        if not self.rows.axis.sorted:
            refuse("an array of rows in a random order")
        if all(cell.known is True for cell in self.cells):
            if self.rows.are_all:
                return self.rows.axis.whole([cell.value for cell in self.cells])
            return reductions.selection(self.cells, self.rows)
        whole = [number(cell) for cell in self.cells]
        return reductions.selection([Cell(value) for value in whole], self.rows)

    @property
    def values(self) -> Any:
        """The column as an array."""
        return self.to_numpy()

    @property
    def array(self) -> Any:
        """The column as an array."""
        return self.to_numpy()


def _summary(name: str) -> Any:
    def method(self: Summaries, *arguments: Any, **options: Any) -> Any:
        given = native if name == "nunique" else element
        return given(self.summary(name, *arguments, **options))

    method.__name__ = name
    return method


for _name in reductions.REDUCTIONS:
    if _name not in ("size", "average", "first", "last"):
        setattr(Summaries, _name, _summary(_name))
