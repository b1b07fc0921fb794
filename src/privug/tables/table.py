"""A published table: its dimensions, and what the text of each cell says about the figure behind it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from privug.report.grid import grid_html, grid_text

TOTAL = "Total"
Labels = tuple[str | None, ...]
"""The category of each dimension; None is the total."""
Kind = Literal["published", "rounded", "suppressed"]


@dataclass(frozen=True)
class PublishedCell:
    """One cell as it was published: its text, and the range in which that text puts the figure.

    >>> import privug as pv
    >>> table = pv.tables.read([["region", "people"], ["North", "<5"], ["South", "30"], ["Total", "34"]])
    >>> cell = table.cells["North",]
    >>> cell.kind, cell.low, cell.high
    ('suppressed', 0, 4)
    """

    text: str
    low: float
    high: float
    kind: Kind
    value: float | None = None
    """The figure that was printed, if one was."""
    base: int | None = None
    """What the figure was rounded to at random, if it was."""


@dataclass(frozen=True)
class Dimension:
    """A way in which a table divides people: its categories, and which of them others are the parts of.

    >>> import privug as pv
    >>> table = pv.tables.read([["region", "people"], ["North", "4"], ["South", "30"], ["Total", "34"]])
    >>> table.dimensions[0].name, table.dimensions[0].categories
    ('region', ('North', 'South'))
    """

    name: str
    categories: tuple[str, ...]
    parts: Mapping[str | None, tuple[str, ...]]
    """The parts of the total, which is None, and of every category that has some."""
    total: str = TOTAL
    """What the table calls the total."""
    named: bool = True
    """Whether the table names the dimension; if not, it is linked by its categories."""

    @property
    def nodes(self) -> tuple[str | None, ...]:
        """The total, the categories, and what categories are part of without being in the table."""
        return tuple(dict.fromkeys([None, *self.parts, *self.categories]))


@dataclass(frozen=True)
class Table:
    """A table as it was published: `str()` shows it; `cells` maps the labels of a cell to what its text says.

    >>> import privug as pv
    >>> table = pv.tables.read([["region", "people"], ["North", "<5"], ["South", "30"], ["Total", "34"]])
    >>> print(table)
    table: 3 cells, 1 suppressed
    <BLANKLINE>
      region   people
     ─────────────────
      North        <5
      South        30
      Total        34
    """

    name: str
    dimensions: tuple[Dimension, ...]
    cells: Mapping[Labels, PublishedCell]
    magnitude: bool = False
    heading: str = ""

    def title(self, labels: Labels) -> str:
        """Return the name of a cell, such as 'North x women'."""
        named = [
            dimension.total if label is None else label
            for dimension, label in zip(self.dimensions, labels, strict=True)
        ]
        return " x ".join(named)

    def grid(self, texts: Mapping[Labels, str]) -> tuple[list[str], list[list[str]]]:
        """Return the header and the rows of the table with other texts in its cells; the last dimension goes across."""
        down = self.dimensions[:-1] or self.dimensions
        across = self.dimensions[-1] if len(self.dimensions) > 1 else None
        tops: list[Any] = [*across.categories, None] if across is not None else [()]
        rows = []
        for head in product(*([*dimension.categories, None] for dimension in down)):
            cells = [texts.get((*head, top) if across is not None else head) for top in tops]
            if any(cell is not None for cell in cells):
                names = [d.total if label is None else label for d, label in zip(down, head, strict=True)]
                rows.append([*names, *("" if cell is None else cell for cell in cells)])
        titles = [self.heading] if across is None else [*across.categories, across.total]
        if across is not None and all(row[-1] == "" for row in rows):
            rows, titles = [row[:-1] for row in rows], titles[:-1]
        return [*(dimension.name for dimension in down), *titles], rows

    def _content(self) -> tuple[str, list[str], list[list[str]], list[str]]:
        hidden = sum(cell.kind == "suppressed" for cell in self.cells.values())
        header, rows = self.grid({labels: cell.text for labels, cell in self.cells.items()})
        return f"{self.name}: {len(self.cells):,} cells, {hidden:,} suppressed", header, rows, []

    def __str__(self) -> str:
        return grid_text(*self._content())

    def _repr_html_(self) -> str:
        return grid_html(*self._content())


def figure(number: float) -> str:
    """Return a figure as a table shows it.

    >>> figure(1234), figure(0.1 + 0.2), figure(12.0)
    ('1,234', '0.3', '12')
    """
    if math.isinf(number):
        return "any number"
    return f"{number:,}" if isinstance(number, int) else f"{number:,.10g}"


def range_text(low: float, high: float) -> str:
    """Return the range of a figure in words.

    >>> range_text(3, 3), range_text(0, 4), range_text(2, math.inf)
    ('3', '0 to 4', '2 or more')
    """
    if low == high:
        return figure(low)
    return f"{figure(low)} or more" if math.isinf(high) else f"{figure(low)} to {figure(high)}"
