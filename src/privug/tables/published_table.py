"""A published table, and the sums that tables obey as one system of equations."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

from privug.errors import ArgumentError
from privug.report.text import grid_html, grid_text

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


Key = frozenset[tuple[str, str]]
Terms = tuple[tuple[int, int], ...]
"""Variables with coefficients of 1 or -1."""
MOST_PASSES = 30
ROUNDOFF = 1e-9
"""Relative to the largest figure: by how much sums of amounts may be off."""


@dataclass(frozen=True)
class Variable:
    """A figure that tables are about, whether it is printed or not."""

    name: str
    key: Key
    low: float = 0
    high: float = math.inf
    cells: tuple[tuple[str, PublishedCell], ...] = ()
    """The cells that show it, each with the name of its table."""
    where: tuple[tuple[str, Labels], ...] = ()
    """The tables that show it, and the labels it has there."""

    @property
    def protected(self) -> bool:
        """Whether some table suppresses or rounds it."""
        return any(cell.kind != "published" for _, cell in self.cells)

    @property
    def suppressed(self) -> bool:
        """Whether some table suppresses it."""
        return any(cell.kind == "suppressed" for _, cell in self.cells)

    @property
    def hidden(self) -> tuple[tuple[str, PublishedCell], ...]:
        """The cells that would be left if every table kept back what some table does."""
        kinds = {cell.kind for _, cell in self.cells}
        kept = "suppressed" if "suppressed" in kinds or kinds == {"rounded"} else "rounded"
        return tuple((table, cell) for table, cell in self.cells if cell.kind == kept)

    def without(self) -> "Variable":
        """Return the variable if it was suppressed in every table, or where one rounds it and another does not."""
        low = max((cell.low for _, cell in self.hidden), default=0)
        high = min((cell.high for _, cell in self.hidden), default=math.inf)
        return replace(self, low=low, high=high, cells=self.hidden)

    @property
    def value(self) -> float | None:
        """The figure that some table prints, if one does."""
        return next((cell.value for _, cell in self.cells if cell.value is not None), None)


class System:
    """The variables of linked tables, and the sums that hold between them.

    `sums` lists the terms of each equation, which sum to zero: a total and, with coefficients of -1, its parts.
    """

    def __init__(self, tables: Sequence[Table]) -> None:
        self.magnitude = tables[0].magnitude
        self.tables = tables
        self.variables: list[Variable] = []
        self.sums: list[Terms] = []
        self._index: dict[Key, int] = {}
        names = _dimension_names(tables)
        for table, dimensions in zip(tables, names, strict=True):
            self._add(table, dimensions)
        for table, dimensions in zip(tables, names, strict=True):
            self._link(table, dimensions)
        self.leaves = self._leaves()
        known = [abs(end) for v in self.variables for end in (v.low, v.high) if math.isfinite(end)]
        self.slack = ROUNDOFF * max([1.0, *known]) if self.magnitude else 0.0

    def _leaves(self) -> list[bool]:
        parents = {terms[0][0] for terms in self.sums}
        return [index not in parents for index in range(len(self.variables))]

    def without(self, hidden: Iterable[int]) -> "System":
        """Return the system if further cells were suppressed, without a hint about their figures."""
        other: System = object.__new__(System)
        other.__dict__.update(self.__dict__)
        away = set(hidden)
        other.variables = [v.without() if place in away else v for place, v in enumerate(self.variables)]
        return other

    def at(self, key: Key) -> int | None:
        """Return the index of the variable with a key."""
        return self._index.get(key)

    def _add(self, table: Table, names: Sequence[str]) -> None:
        for labels, cell in table.cells.items():
            place = self._variable(table, names, labels)
            known = self.variables[place]
            low, high = max(known.low, cell.low), min(known.high, cell.high)
            if cell.low > cell.high:
                shown = " (zeros=True says that zeros are shown)" if cell.high == 0 else ""
                raise ArgumentError(f"{table.title(labels)} is {cell.text} in {table.name}: no figure is that{shown}")
            if low > high:
                other, before = known.cells[-1]
                raise ArgumentError(
                    f"{table.title(labels)} is {cell.text} in {table.name}, but {before.text} in {other}: the tables "
                    "are not about the same people, or figures are rounded (base=)"
                )
            cells, where = (*known.cells, (table.name, cell)), (*known.where, (table.name, labels))
            self.variables[place] = replace(known, low=low, high=high, cells=cells, where=where)

    def _variable(self, table: Table, names: Sequence[str], labels: Labels) -> int:
        key = frozenset((name, label) for name, label in zip(names, labels, strict=True) if label is not None)
        if key not in self._index:
            self._index[key] = len(self.variables)
            self.variables.append(Variable(table.title(labels), key))
        return self._index[key]

    def _link(self, table: Table, names: Sequence[str]) -> None:
        nodes = [dimension.nodes for dimension in table.dimensions]
        known = set(self.sums)
        for place, dimension in enumerate(table.dimensions):
            for parent, parts in dimension.parts.items():
                for rest in product(*(nodes[:place] + nodes[place + 1 :])):
                    cells = [(*rest[:place], node, *rest[place:]) for node in (parent, *parts)]
                    whole, *shares = (self._variable(table, names, cell) for cell in cells)
                    terms = ((whole, 1), *((share, -1) for share in shares))
                    if terms not in known:
                        known.add(terms)
                        self.sums.append(terms)

    def check(self) -> None:
        """Raise an error that names a total which its parts cannot sum to."""
        low, high = self.bounds()
        for terms in self.sums:
            (whole, _), *shares = terms
            least, most = sum(low[place] for place, _ in shares), sum(high[place] for place, _ in shares)
            if least > high[whole] + self.slack or most < low[whole] - self.slack:
                parts = " + ".join(f"{_shown(self.variables[place])}" for place, _ in shares[:8])
                more = f" + {len(shares) - 8} more" if len(shares) > 8 else ""
                exact = all(cell.kind != "rounded" for _, cell in self.variables[whole].cells)
                rounded = "; if figures are rounded, say base=" if exact else ""
                found = figure(least) if least == most else f"{figure(least)} to {figure(most)}"
                raise ArgumentError(
                    f"{' and '.join(table.name for table in self.tables)}: {self.variables[whole].name} is "
                    f"{_shown(self.variables[whole])}, but its parts sum to {found}: {parts}{more}{rounded}"
                )

    def bounds(self) -> tuple[list[float], list[float]]:
        """Return the least and largest value of each variable by its own text."""
        return [v.low for v in self.variables], [v.high for v in self.variables]

    def tightened(self, low: list[float], high: list[float]) -> tuple[list[float], list[float]]:
        """Return bounds that each sum implies by itself, starting from given ones.

        Raises:
            ArgumentError: No table agrees with all of them.
        """
        low, high = [*low], [*high]
        for _ in range(MOST_PASSES):
            if sum(self._tighten(terms, low, high) for terms in self.sums) == 0:
                break
        for place, (bottom, top) in enumerate(zip(low, high, strict=True)):
            if bottom < top <= bottom + 2 * self.slack:
                high[place] = bottom
        return low, high

    def _tighten(self, terms: Terms, low: list[float], high: list[float]) -> bool:
        """Tighten the bounds of one sum's variables; say whether that changed any."""
        ends = [(low[i], high[i]) if sign > 0 else (-high[i], -low[i]) for i, sign in terms]
        least, most = _Total(end for end, _ in ends), _Total(end for _, end in ends)
        changed = False
        for (place, sign), (bottom, top) in zip(terms, ends, strict=True):
            up, down = -least.without(bottom), -most.without(top)
            new_low, new_high = (down, up) if sign > 0 else (-up, -down)
            if new_low > low[place] + self.slack:
                low[place], changed = new_low, True
            if new_high < high[place] - self.slack:
                high[place], changed = new_high, True
            if low[place] > high[place]:
                if low[place] > high[place] + 2 * self.slack:
                    raise self.contradiction(self.variables[place].name)
                low[place] = high[place]
        return changed

    def contradiction(self, name: str) -> ArgumentError:
        """Return the error that says that no table agrees with what was published."""
        kind = "amounts" if self.magnitude else "counts"
        return ArgumentError(
            f"no table of {kind} agrees with what was published: the figures around {name} contradict each other; see "
            "whether figures are rounded (base=), zeros are published (zeros=), or marks mean something else"
        )

    def components(self, low: Sequence[float], high: Sequence[float]) -> "Iterator[SystemComponent]":
        """Yield the parts of the system that have no open variable in common."""
        root = list(range(len(self.variables)))

        def find(place: int) -> int:
            while root[place] != place:
                root[place] = root[root[place]]
                place = root[place]
            return place

        open_terms = [[(i, sign) for i, sign in terms if low[i] < high[i]] for terms in self.sums]
        for terms in open_terms:
            for place, _ in terms[1:]:
                root[find(place)] = find(terms[0][0])
        members: dict[int, list[int]] = {}
        for place in range(len(self.variables)):
            if low[place] < high[place]:
                members.setdefault(find(place), []).append(place)
        rows: dict[int, list[tuple[Terms, float]]] = {}
        for whole, terms in zip(self.sums, open_terms, strict=True):
            if terms:
                fixed = sum(sign * low[i] for i, sign in whole if low[i] >= high[i])
                rows.setdefault(find(terms[0][0]), []).append((tuple(terms), -fixed))
        for first, places in members.items():
            yield SystemComponent(tuple(places), tuple(dict.fromkeys(rows.get(first, ()))))


@dataclass(frozen=True)
class SystemComponent:
    """Open variables, and the equations between them: terms, and what they sum to."""

    places: tuple[int, ...]
    rows: tuple[tuple[Terms, float], ...]


class _Total:
    """A sum from which one term is taken away exactly, infinite ones too."""

    def __init__(self, terms: Iterable[float]) -> None:
        listed = [*terms]
        self.infinite = [term for term in listed if math.isinf(term)]
        self.finite = sum(term for term in listed if not math.isinf(term))

    def without(self, term: float) -> float:
        if math.isinf(term):
            return self.finite if len(self.infinite) == 1 else self.infinite[0]
        return self.infinite[0] if self.infinite else self.finite - term


def _shown(variable: Variable) -> str:
    texts = [cell.text for _, cell in sorted(variable.cells, key=lambda item: item[1].value is None)]
    return f"{texts[0] if texts else 'unpublished'} ({variable.name})"


def _dimension_names(tables: Sequence[Table]) -> list[list[str]]:
    """Return the names of the dimensions; those that have none are called as one with the same categories is."""
    known = {frozenset(d.categories): d.name for table in tables for d in table.dimensions if d.named}
    return [
        [d.name if d.named else known.get(frozenset(d.categories), d.name) for d in table.dimensions]
        for table in tables
    ]
