"""Questions about order statistics: rows that are only counted stand behind one quantity, as if it were a row."""

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from privug.inference.curve import Curve
from privug.inference.exact.rows.cells import FLAT, Cell, Row, Term
from privug.inference.exact.rows.order.pairs import TwoRanks, paired
from privug.inference.exact.rows.order.ranks import Ranks
from privug.inference.exact.rows.order.statistics import Crowd, Function, Group, OneRank, crowd_of, ranked
from privug.inference.exact.rows.reductions import NotCounted
from privug.inference.exact.rows.regrouping import RowSum, placeholder, row_key
from privug.model.node import Array, Node

MIXED = "order statistics and sums of the same rows are used together"
UNLIKE = "order statistics of different choices of the same rows are used together"
LOOKS = np.array([0.03, 0.31, 0.52, 0.77, 0.98])
MOST_STEPS = 400


@dataclass(frozen=True, eq=False)
class Family:
    """Rows that are only counted, and the order statistics of them that are used: positions of sums, with ranks."""

    rows: tuple[Row, ...]
    picks: tuple[tuple[int, Ranks], ...]

    @cached_property
    def stand_ins(self) -> list[Row]:
        """Rows that stand for the order statistics."""
        return [Row(((j, node),), (node,), 1) for j, _ in self.picks for node in (placeholder(),)]

    def has(self, row: Row) -> bool:
        """Say whether a row is one of them."""
        return any(row.terms == one.terms for one in self.rows)

    def mixes(self, row: Row) -> bool:
        """Say whether a row was put together of one of them and others."""
        return not self.has(row) and any(set(one.terms) & set(row.terms) for one in self.rows)


def families_of(rows: Sequence[Row], sums: Sequence[RowSum]) -> list[Family]:
    """Return the order statistics that are used, and the rows of each."""
    found: dict[tuple[int, ...], list[Row]] = {}
    for row in rows:
        places = tuple(sorted(j for j, _ in row.terms))
        picking = [bool(sums[j].ranks) for j in places]
        if any(picking):
            if not all(picking):
                raise NotCounted(MIXED)
            if len({node for _, node in row.terms}) > 1 or len(set(places)) < len(places):
                raise NotCounted(UNLIKE)
            found.setdefault(places, []).append(row)
    taken = [j for places in found for j in places]
    if len(set(taken)) < len(taken):
        raise NotCounted(UNLIKE)
    families = [Family(tuple(own), tuple((j, sums[j].ranks) for j in places)) for places, own in found.items()]
    for family in families:
        if any(len(ranks) > 2 for _, ranks in family.picks):
            raise NotCounted("it puts more than two order statistics of the same rows together")
    return families


class Orders:
    """The order statistics of a question, given what rows share: their distributions, and what rows tell."""

    def __init__(
        self,
        families: Sequence[Family],
        sums: int,
        cells: Callable[[Row], Sequence[Cell]],
        shared: Collection[Node] = (),
    ) -> None:
        self._families = families
        self._shared = shared
        self._sums = sums
        self._cells = cells
        self._laws: dict[Hashable, Curve] = {}

    def family(self, row: Row) -> Family | None:
        """Return the family that a row, or a row that stands for an order statistic, belongs to."""
        if any(one.mixes(row) for one in self._families):
            raise NotCounted("the secret is made of several rows, of which some are only ranked")
        return next((one for one in self._families if one.has(row) or row in one.stand_ins), None)

    def law(self, family: Family, row: Row) -> Curve:
        """Return the distribution of the number by which a row is ranked."""
        key = row_key([(0, row.terms[0][1])], self._shared) or row
        if key not in self._laws:
            self._laws[key] = _number(self._cells(row), family.picks[0][0])
        return self._laws[key]

    def others(self, family: Family, without: Row | None) -> list[Group]:
        """Return rows with how many there are, one left aside."""
        return [
            (self.law(family, row), row.count - (without is not None and row.terms == without.terms))
            for row in family.rows
        ]

    def picked(self, stand_in: Row, row: Row | None = None, own: Curve | None = None) -> list[Cell]:
        """Return the cells of a row that stands for an order statistic; one row may have a distribution of its own."""
        family = self.family(stand_in)
        assert family is not None
        j, ranks = family.picks[family.stand_ins.index(stand_in)]
        groups = self.others(family, row)
        crowd = crowd_of(groups if own is None else [*groups, (own, 1)])
        return cells_of(law_of(crowd, ranks), j, self._sums)

    def given(self, family: Family, row: Row) -> "Way":
        """Return an order statistic, given the number of a row."""
        return conditional(crowd_of(self.others(family, row)), family.picks[0][1])


@dataclass(frozen=True, eq=False)
class Signed:
    """The negative of a quantity."""

    inner: TwoRanks
    smooth: bool = field(default=True)

    def itself(self, own: Array) -> Array:
        """Return the probability that the quantity is the number of the row."""
        return self.inner.itself(own)

    def mass(self, low: Array, high: Array, own: Array) -> Array:
        """Return the probability of intervals, ends included, given numbers of the row."""
        return self.inner.mass(-np.asarray(high), -np.asarray(low), own)

    def density(self, y: Array, own: Array) -> Array:
        """Return the density at some values."""
        return self.inner.density(-np.asarray(y), own)

    def expected(self, function: Function, breaks: Array, error: float) -> tuple[Function, float]:
        """Refuse, as the quantity does."""
        return self.inner.expected(function, breaks, error)

    def bends(self, kinks: Array) -> Array:
        """Return numbers of the row at which probabilities of intervals with some ends are not smooth."""
        return self.inner.bends(-kinks)

    def off(self, own: Array) -> float:
        """Return by how much the probability of everything is off."""
        return self.inner.off(own)


Way = OneRank | TwoRanks | Signed


def conditional(crowd: Crowd, ranks: Ranks) -> Way:
    """Return an order statistic, or two that are put together, given the number of a row besides others."""
    if len(ranks) == 1:
        return OneRank(crowd, ranks[0][0])
    if len(crowd.atoms):
        raise NotCounted("it puts two order statistics together of rows that have some numbers with a probability")
    (lower, first), (upper, second) = ranks
    if second > 0:
        return TwoRanks(crowd, lower, upper, first, second)
    return Signed(TwoRanks(crowd, lower, upper, -first, -second))


def law_of(crowd: Crowd, ranks: Ranks) -> Curve:
    """Return the distribution of an order statistic, or of two that are put together."""
    if len(ranks) == 1:
        return ranked(crowd, ranks[0][0])
    two = conditional(crowd, ranks)
    if isinstance(two, Signed):
        return paired(two.inner).affine(-1.0, 0.0)
    assert isinstance(two, TwoRanks)
    return paired(two)


def _number(cells: Sequence[Cell], j: int) -> Curve:
    curves = [own_law(cell, j) for cell in cells]
    return curves[0] if len(curves) == 1 else Curve.mixture([cell.weight for cell in cells], curves)


def own_law(cell: Cell, j: int) -> Curve:
    """Return the distribution of what a cell of a row adds to a sum."""
    term = cell.terms[j]
    if term.is_flat or cell.curve is None:
        return Curve.point(term.start)
    return term.law(cell.curve)


def cells_of(curve: Curve, j: int, sums: int) -> list[Cell]:
    """Return a quantity as cells of a row: one for what has a density, one for each number with a probability."""

    def terms(own: Term) -> tuple[Term, ...]:
        return tuple(own if place == j else FLAT for place in range(sums))

    found = [Cell(float(m), terms(Term(0.0, float(a)))) for a, m in zip(curve.atoms, curve.masses, strict=True)]
    share = curve.continuous_share
    if curve.parts:
        parts = tuple((weight / share, part) for weight, part in curve.parts)
        found.append(Cell(share, terms(Term(1.0, 0.0)), Curve(parts, error=curve.error)))
    return found


def stepped(function: Function, kinks: Array, low: float, high: float) -> list[tuple[float, float, float]] | None:
    """Return a function as steps between its kinks, with their values; None if it is none."""
    inner = np.unique(kinks[(kinks > low) & (kinks < high)])
    if len(inner) > MOST_STEPS:
        return None
    edges = np.concatenate([[low], inner, [high]])
    points = edges[:-1, np.newaxis] + np.diff(edges)[:, np.newaxis] * LOOKS
    values = function(points.reshape(-1)).reshape(points.shape)
    if np.any(values != values[:, :1]):
        return None
    edges[0], edges[-1] = -np.inf, np.inf
    steps = zip(edges[:-1].tolist(), edges[1:].tolist(), values[:, 0].tolist(), strict=True)
    return [step for step in steps if step[2] != 0]


def expectation(way: Way, likelihood: Function, kinks: Array, curve: Curve, error: float) -> tuple[Function, float]:
    """Return the likelihood of what was seen of an order statistic, as a function of the number of a row."""
    ends = curve.edges[[0, -1]] if curve.parts else np.array([curve.atoms.min(), curve.atoms.max()])
    steps = stepped(likelihood, kinks, float(ends[0]), float(ends[1])) if way.smooth else None
    if steps is None:
        return way.expected(likelihood, kinks, error)
    if not steps:
        return lambda own: np.zeros(own.shape), 0.0
    low, high, values = np.array(steps).T

    def at(own: Array) -> Array:
        return np.asarray(way.mass(low[:, np.newaxis], high[:, np.newaxis], own[np.newaxis]).T @ values)

    return at, error + way.off(curve.quantiles(LOOKS)) * float(values.max())
