"""Weighted sums of two order statistics of the same rows: a range, the middle between two neighbours, a quantile.

Where the lower one lies, the rows above it are counted up to where the upper one may lie, so that one integral over the
lower one is left.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privug.inference.curve import Curve
from privug.inference.density import panel_nodes, tabulate
from privug.inference.exact.rows.order.statistics import Crowd, Function, Rank, at_least, chances
from privug.inference.exact.rows.reductions import NotCounted
from privug.model.node import Array

LEVELS = np.array([1e-25, 1e-16, 1e-10, 1e-6, 1e-3, 0.03, 0.2, 0.5])
MOST_UNLIKE = 24
AT_ONCE = 1 << 19  # nodes of integrals that are computed together
FIRST_EDGES = 12


class Counts:
    """Rows counted below a number x, between x and y, and above y."""

    def __init__(self, crowd: Crowd, x: Array, y: Array) -> None:
        if len(crowd.groups) > 1 and crowd.size > MOST_UNLIKE:
            raise NotCounted("it puts two order statistics of many rows together that are not alike")
        endless, end = np.full(x.shape, np.inf), np.maximum(x, y)
        self._shares = [
            (curve.mass(-endless, x), curve.mass(x, end), curve.mass(end, endless), count)
            for curve, count in crowd.groups
        ]
        self._size = crowd.size
        self._shape = x.shape

    def _listed(self, below: int) -> Array:
        """Return how likely so many rows below and each number of rows between are: a line for each number."""
        table = np.zeros((below + 1, self._size + 1, *self._shape))
        table[0, 0] = 1.0
        for low, middle, high, count in self._shares:
            for _ in range(count):
                last = table
                table = last * high
                table[1:] += last[:-1] * low
                table[:, 1:] += last[:, :-1] * middle
        return np.asarray(table[below])

    def _alike(self, below: int) -> tuple[Array, Array, Array, int]:
        low, middle, high, count = self._shares[0]
        with np.errstate(invalid="ignore", divide="ignore"):
            inside = np.nan_to_num(middle / (middle + high))
            outside = np.nan_to_num(high / (middle + high), nan=1.0)
        return chances(low, middle + high, count, below), inside, outside, count - below

    def reached(self, below: int, needed: int) -> tuple[Array, Array]:
        """Return how likely so many rows below are with at least so many between, and with fewer."""
        none = np.zeros(self._shape)
        if not 0 <= below <= self._size:
            return none, none
        if len(self._shares) == 1:
            share, inside, outside, left = self._alike(below)
            return share * at_least(inside, left, needed), share * at_least(outside, left, left - needed + 1)
        if not self._shares:
            return none + (needed <= 0), none + (needed > 0)
        table = self._listed(below)
        return table[max(0, needed) :].sum(axis=0), table[: max(0, needed)].sum(axis=0)

    def exactly(self, below: int, between: int) -> Array:
        """Return how likely so many rows below and so many between are."""
        if min(below, between) < 0 or below + between > self._size:
            return np.zeros(self._shape)
        if len(self._shares) == 1:
            share, inside, outside, left = self._alike(below)
            return share * chances(inside, outside, left, between)
        return self._listed(below)[between] if self._shares else np.ones(self._shape)


@dataclass(frozen=True, eq=False)
class TwoRanks:
    """A weighted sum of two order statistics, given the number of one row: `crowd` are the others.

    The weight of the upper one is positive. Without numbers of a row, the crowd is all there is.
    """

    crowd: Crowd
    lower: int
    upper: int
    first: float
    second: float

    smooth = True

    def itself(self, own: Array) -> Array:
        """Return the probability that the quantity is the number of the row, which is none."""
        return np.zeros(own.shape)

    def expected(self, function: Function, breaks: Array, error: float) -> tuple[Function, float]:
        """Refuse: this would take an integral more."""
        raise NotCounted("noise is added to a range, a quantile or a median between two rows")

    def bends(self, kinks: Array) -> Array:
        """Return numbers of the row at which probabilities of intervals with some ends are not smooth."""
        at = self.crowd.breaks
        found = [at, *(np.subtract.outer(kinks, a * at).reshape(-1) / b for a, b in self._both)]
        if self.first + self.second:
            found.append(kinks / (self.first + self.second))
        return np.unique(np.concatenate(found))

    @property
    def _both(self) -> tuple[tuple[float, float], tuple[float, float]]:
        return (self.first, self.second), (self.second, self.first)

    def off(self, own: Array) -> float:
        """Return by how much the probability of everything is off."""
        endless = np.full(own.shape, np.inf)
        return float(np.abs(self.mass(-endless, endless, own) - 1).max())

    @cached_property
    def _edges(self) -> Array:
        """Numbers between which the lower order statistic lies, and its distribution is simple."""
        found = [self.crowd.breaks]
        for rank in {self.lower, self.lower - 1} & set(range(self.crowd.size)):
            law = Rank(self.crowd, rank)
            found += [law.ppf(LEVELS), law.isf(LEVELS), np.array(law.support())]
        points = np.unique(np.concatenate(found))
        return np.asarray(points[np.isfinite(points)])

    def _nodes(self, ends: list[Array], own: Array | None) -> tuple[Array, Array]:
        """Return places of the lower order statistic, a line for each case, and their weights."""
        more = [] if own is None else [own]
        with np.errstate(all="ignore"):
            for end in ends:
                inner = [(end - self.second * point) / self.first for point in (*more[:1], *self.crowd.breaks)]
                more += [*inner, end / (self.first + self.second)]
        base = self._edges
        extra = np.stack([np.nan_to_num(one, nan=base[0]) for one in more], axis=1)
        whole = np.concatenate([np.broadcast_to(base, (len(extra), len(base))), extra.clip(base[0], base[-1])], axis=1)
        edges = np.sort(whole, axis=1)
        found = [panel_nodes(line) for line in edges]
        return np.stack([x.reshape(-1) for x, _ in found]), np.stack([w.reshape(-1) for _, w in found])

    def _picked(self, crowd: Crowd, x: Array) -> Iterator[tuple[Array, Crowd]]:
        """Yield the density of one row of each kind, and the rest."""
        for place, (curve, count) in enumerate(crowd.groups):
            yield count * np.nan_to_num(curve.pdf(x), posinf=0.0), crowd.without(place)

    def mass(self, low: Array, high: Array, own: Array | None) -> Array:
        """Return the probability of intervals, ends included, given numbers of the row."""
        cases = np.broadcast_arrays(low, high, *(() if own is None else (own,)))
        return _blockwise(self._mass, cases, len(self._edges))

    def _mass(self, low: Array, high: Array, own: Array | None = None) -> Array:
        x, steps = self._nodes([low, high], own)
        total = np.zeros(x.shape)
        number = None if own is None else own[:, np.newaxis]
        for density, rest in self._picked(self.crowd, x):
            total += density * self._window(rest, x, low[:, np.newaxis], high[:, np.newaxis], number)
        found = np.asarray((total * steps).sum(axis=1))
        return found if own is None else found + self._window(self.crowd, own, low, high, None)

    def _window(self, rest: Crowd, x: Array, low: Array, high: Array, own: Array | None) -> Array:
        """Return the probability that other rows let the lower one be at x, and the upper one in the window."""
        ends = [(end - self.first * x) / self.second for end in (low, high)]
        needed = self.upper - self.lower
        sides = []
        for y in ends:
            counts = Counts(rest, x, np.broadcast_to(y, x.shape))
            reached, missed = counts.reached(self.lower, needed)
            if own is not None:
                sooner = counts.reached(self.lower, needed - 1)
                passed = counts.reached(self.lower - 1, needed)
                picks = [own < x, own <= y]
                reached = np.select(picks, [passed[0], sooner[0]], reached)
                missed = np.select(picks, [passed[1], sooner[1]], missed)
            sides.append((reached, missed))
        (start, after), (stop, beyond) = sides
        return np.maximum(np.where(start > after, after - beyond, stop - start), 0.0)

    def density(self, y: Array, own: Array | None) -> Array:
        """Return the density at some values."""
        cases = np.broadcast_arrays(y, *(() if own is None else (own,)))
        return _blockwise(self._density, cases, len(self._edges))

    def _density(self, value: Array, own: Array | None = None) -> Array:
        x, steps = self._nodes([value], own)
        y = (value[:, np.newaxis] - self.first * x) / self.second
        gap, total = self.upper - self.lower - 1, np.zeros(x.shape)
        for density, others in self._picked(self.crowd, x):
            for upper, rest in self._picked(others, y):
                counts = Counts(rest, x, y)
                found = counts.exactly(self.lower, gap)
                if own is not None:
                    number = own[:, np.newaxis]
                    inner = counts.exactly(self.lower, gap - 1), counts.exactly(self.lower - 1, gap)
                    found = np.where(number < x, inner[1], np.where(number < y, inner[0], found))
                total += np.where(y > x, density * upper * found, 0.0)
        result = np.asarray((total * steps).sum(axis=1)) / self.second
        return result if own is None else result + self._with_own(value, own)

    def _with_own(self, value: Array, own: Array) -> Array:
        """Return the density where the row itself is one of the two."""
        gap, total = self.upper - self.lower - 1, np.zeros(value.shape)
        upper, lower = (value - self.first * own) / self.second, (value - self.second * own) / self.first
        for density, rest in self._picked(self.crowd, upper):
            there = Counts(rest, own, upper).exactly(self.lower, gap)
            total += np.where(upper > own, density * there / self.second, 0.0)
        for density, rest in self._picked(self.crowd, lower):
            there = Counts(rest, lower, own).exactly(self.lower, gap)
            total += np.where(lower < own, density * there / abs(self.first), 0.0)
        return total


def _blockwise(function: Callable[..., Array], cases: Sequence[Array], panels: int) -> Array:
    shape, flat = cases[0].shape, [np.asarray(one, float).reshape(-1) for one in cases]
    step = max(1, AT_ONCE // (24 * (panels + 8)))
    parts = [function(*(one[k : k + step] for one in flat)) for k in range(0, len(flat[0]), step)]
    return np.concatenate([np.empty(0), *parts]).reshape(shape)


def _ends(two: TwoRanks, lower: tuple[float, float], upper: tuple[float, float]) -> tuple[float, float]:
    """Return the smallest and the largest value of a weighted sum of two order statistics."""
    high = two.first * lower[two.first > 0] + two.second * upper[1]
    if two.first > 0:
        return two.first * lower[0] + two.second * upper[0], high
    together = two.first + two.second
    equal = together * np.array([max(lower[0], upper[0]), min(lower[1], upper[1])]) if together else np.zeros(1)
    return float(equal.min()), high


def paired(two: TwoRanks) -> Curve:
    """Return the distribution of a weighted sum of two order statistics of a crowd."""
    if len(two.crowd.atoms):
        raise NotCounted(
            "it puts two order statistics of rows together some of which have numbers of their own probability"
        )
    lower, upper = Rank(two.crowd, two.lower), Rank(two.crowd, two.upper)
    ends = [np.concatenate([law.ppf(LEVELS), law.isf(LEVELS)]) for law in (lower, upper)]
    values = np.add.outer(two.first * ends[0], two.second * ends[1])[ends[0][:, np.newaxis] <= ends[1][np.newaxis]]
    low, high = _ends(two, lower.support(), upper.support())
    at = two.crowd.breaks
    kinks = np.add.outer(two.first * at, two.second * at)[at[:, np.newaxis] <= at[np.newaxis]]
    finite = [end for end in (low, high) if np.isfinite(end)]
    kinks = np.unique([*kinks[(kinks >= low) & (kinks <= high)], *finite])
    inner = np.quantile(values.clip(low, high), np.linspace(0, 1, FIRST_EDGES))
    open_ends = bool(np.isinf(low)), bool(np.isinf(high))
    total, error, table = tabulate(lambda y: two.density(y, None), np.union1d(inner, kinks), [*kinks], open_ends)
    if table is None or abs(total - 1) > 1e-7:
        raise NotCounted(
            "a range, a quantile or a median between two rows has a distribution that could not be followed"
        )
    return Curve(((1.0, table),), error=error + abs(total - 1) + two.crowd.groups[0][0].error)
