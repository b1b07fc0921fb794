"""Order statistics: the row of a given rank lies below a number if enough rows do, so that rows need only be counted.

A `Crowd` counts independent rows below a number. An order statistic of all rows then has a distribution, and given the
number of one row another one (`OneRank`): that row is passed over, or it is the order statistic itself. Weighted sums
of two order statistics (a range, the middle between two neighbours) follow by an integral over the lower one (`pairs`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from privug.inference.curve import Curve
from privug.inference.density import Analytic, tabulate
from privug.model.node import Array

LARGEST = 1e290  # beyond which numbers of choices are known by their logarithms
HALVINGS = 200
NEAR_ONE = 1 - 1e-6
LEVELS = np.array([1e-30, 1e-15, 1e-6, 0.01, 0.3, 0.7, 0.99, 1 - 1e-6])

Group = tuple[Curve, int]
Function = Callable[[Array], Array]


def chances(p: Array, q: Array, n: int, k: int) -> Array:
    """Return the probability that k of n rows lie where a row does with probability p, and not with probability q."""
    if not 0 <= k <= n:
        return np.zeros(np.shape(p))
    ways = math.comb(n, k)
    if ways < LARGEST:
        return np.asarray(float(ways) * np.power(p, k) * np.power(q, n - k))
    return np.exp(math.log(ways) + scipy.special.xlogy(k, p) + scipy.special.xlogy(n - k, q))


def at_least(p: Array, n: int, k: int) -> Array:
    """Return the probability that at least k of n rows lie where a row does with probability p."""
    if k <= 0 or k > n:
        return np.full(np.shape(p), float(k <= 0))
    return np.asarray(scipy.special.betainc(k, n - k + 1, np.clip(p, 0.0, 1.0)))


@dataclass(frozen=True, eq=False)
class Crowd:
    """Independent rows: distributions, each with how many rows follow it."""

    groups: tuple[Group, ...]

    @cached_property
    def size(self) -> int:
        """How many rows there are."""
        return sum(count for _, count in self.groups)

    @cached_property
    def atoms(self) -> Array:
        """The numbers that a row has with a probability of its own."""
        return np.unique(np.concatenate([np.empty(0), *(curve.atoms for curve, _ in self.groups)]))

    @cached_property
    def breaks(self) -> Array:
        """The numbers at which a density of a row is not smooth."""
        points = np.unique(np.concatenate([np.empty(0), *(curve.breaks for curve, _ in self.groups)]))
        return np.asarray(points[np.isfinite(points)])

    def ends(self, rank: int) -> tuple[float, float]:
        """Return the smallest and the largest number that the row of a rank can have."""
        counts = [count for _, count in self.groups]
        low, high = np.array([curve.support for curve, _ in self.groups]).T
        return float(np.sort(np.repeat(low, counts))[rank]), float(np.sort(np.repeat(high, counts))[rank])

    def _tails(self, x: Array) -> list[tuple[Array, Array, int]]:
        after, endless = np.nextafter(x, np.inf), np.full(x.shape, np.inf)
        return [(curve.cdf(x), curve.mass(after, endless), count) for curve, count in self.groups]

    def below(self, x: Array) -> Array:
        """Return how likely each number of rows up to x is: a line for each number."""
        total = np.ones((1, *x.shape))
        for p, q, count in self._tails(x):
            own = np.stack([chances(p, q, count, k) for k in range(count + 1)])
            few, many = (total, own) if len(total) < len(own) else (own, total)
            total = np.zeros((len(few) + len(many) - 1, *x.shape))
            for k, line in enumerate(few):
                total[k : k + len(many)] += line * many
        return total

    def at_least(self, k: int, x: Array) -> Array:
        """Return the probability that at least k rows are up to x."""
        if len(self.groups) == 1:
            return at_least(self._tails(x)[0][0], self.size, k)
        return np.asarray(self.below(x)[max(k, 0) :].sum(axis=0))

    def fewer(self, k: int, x: Array) -> Array:
        """Return the probability that fewer than k rows are up to x."""
        if len(self.groups) == 1:
            return at_least(self._tails(x)[0][1], self.size, self.size - k + 1)
        return np.asarray(self.below(x)[: max(k, 0)].sum(axis=0))

    def exactly(self, k: int, x: Array) -> Array:
        """Return the probability that k rows are up to x."""
        if len(self.groups) == 1:
            p, q, count = self._tails(x)[0]
            return chances(p, q, count, k)
        return self.below(x)[k] if 0 <= k <= self.size else np.zeros(x.shape)

    def without(self, place: int) -> "Crowd":
        """Return the crowd with one row of a group less."""
        changed = [(curve, count - (number == place)) for number, (curve, count) in enumerate(self.groups)]
        return Crowd(tuple((curve, count) for curve, count in changed if count))

    def density(self, rank: int, x: Array) -> Array:
        """Return the density of the row of a rank, as far as it has one."""
        total = np.zeros(x.shape)
        for place, (curve, count) in enumerate(self.groups):
            if curve.parts:
                others = self.without(place)
                rest = others.exactly(rank, x) if others.groups else np.full(x.shape, float(rank == 0))
                density = np.nan_to_num(curve.pdf(x), posinf=0.0)
                total += count * density * rest
        return total


@dataclass(frozen=True, eq=False)
class Rank:
    """The row of a rank among rows without atoms, with the methods of SciPy's frozen distributions."""

    crowd: Crowd
    rank: int

    def pdf(self, x: Any) -> Array:
        return self.crowd.density(self.rank, np.asarray(x, float))

    def logpdf(self, x: Any) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self.pdf(x))

    def cdf(self, x: Any) -> Array:
        return self.crowd.at_least(self.rank + 1, np.asarray(x, float))

    def sf(self, x: Any) -> Array:
        return self.crowd.fewer(self.rank + 1, np.asarray(x, float))

    def ppf(self, p: Any) -> Array:
        p = np.asarray(p, float)
        if len(self.crowd.groups) == 1:
            share = np.asarray(scipy.special.betaincinv(self.rank + 1, self.crowd.size - self.rank, p))
            found = self.crowd.groups[0][0].quantiles(share.reshape(-1)).reshape(p.shape)
            far = (share > NEAR_ONE) & (p < 1)  # where a row's share is rounded, and may be one
            return np.where(far, self.isf(1 - p), found) if far.any() else found
        return self._solved(p, self.cdf, 1)

    def isf(self, p: Any) -> Array:
        return self._solved(np.asarray(p, float), self.sf, -1)

    def support(self) -> tuple[float, float]:
        return self.crowd.ends(self.rank)

    @cached_property
    def _between(self) -> tuple[float, float]:
        edges = [curve.edges for curve, _ in self.crowd.groups]
        low, high = self.support()
        return max(low, min(float(e[0]) for e in edges)), min(high, max(float(e[-1]) for e in edges))

    def _solved(self, p: Array, function: Function, direction: int) -> Array:
        low, high = (np.full(p.shape, end) for end in self._between)
        for _ in range(HALVINGS):
            middle = low / 2 + high / 2
            short = direction * (function(middle) - p) < 0
            low, high = np.where(short, middle, low), np.where(short, high, middle)
            if np.all(high - low <= 2 * np.spacing(np.maximum(np.abs(low), np.abs(high)))):
                break
        return np.where(p == 0, self.support()[direction < 0], np.where(p == 1, self.support()[direction > 0], high))


class RankDensity(Analytic):
    """The density of a `Rank`, whose moments are known by quadrature alone."""

    def mean(self) -> float | None:
        """Return nothing: there is no closed form."""
        return None

    def std(self) -> float | None:
        """Return nothing: there is no closed form."""
        return None


def ranked(crowd: Crowd, rank: int) -> Curve:
    """Return the distribution of the row of a rank, counted from the smallest."""
    error = sum(count * curve.error for curve, count in crowd.groups)
    if not len(crowd.atoms):
        return Curve(((1.0, RankDensity(Rank(crowd, rank), kinks=tuple(crowd.breaks.tolist()))),), error=error)
    atoms, before = crowd.atoms, np.nextafter(crowd.atoms, -np.inf)
    low, high = crowd.at_least(rank + 1, before), crowd.at_least(rank + 1, atoms)
    upper = crowd.fewer(rank + 1, before) - crowd.fewer(rank + 1, atoms)
    masses = np.maximum(np.where(low > 0.5, upper, high - low), 0.0)
    if all(not curve.parts for curve, _ in crowd.groups):
        return Curve.discrete(atoms, masses, error)
    edges = np.unique(np.concatenate([atoms, crowd.breaks, *(c.edges for c, _ in crowd.groups if c.parts)]))
    inner = [curve.quantiles(LEVELS) for curve, _ in crowd.groups]
    edges = np.unique(np.concatenate([edges, *inner]))
    total, off, table = tabulate(lambda x: crowd.density(rank, x), edges, [*atoms, *crowd.breaks])
    there = masses > 0
    if table is None or total < 1e-15:
        return Curve.discrete(atoms, masses, error + off)
    share = 1.0 - float(masses.sum())
    return Curve(((share, table),), atoms[there], masses[there], error + off + abs(share - total))


class OneRank:
    """The row of a rank among all rows, given the number of one of them: `crowd` are the others.

    If that row is at or above the same rank of the others, it is passed over from above; if it is at or below the rank
    before, from below; otherwise it is the order statistic itself.
    """

    def __init__(self, crowd: Crowd, rank: int) -> None:
        self._crowd = crowd
        self._rank = rank
        self.lower = ranked(crowd, rank) if rank < crowd.size else None
        self.upper = ranked(crowd, rank - 1) if rank > 0 else None

    @property
    def smooth(self) -> bool:
        """Whether no other row has a number with a probability of its own."""
        return not len(self.atoms)

    @property
    def atoms(self) -> Array:
        """The numbers that another row has with a probability of its own."""
        return self._crowd.atoms

    def bends(self, kinks: Array) -> Array:
        """Return numbers of the row at which probabilities of intervals with some ends are not smooth."""
        return np.unique(np.concatenate([kinks, self._crowd.breaks, self._crowd.atoms]))

    def off(self, own: Array) -> float:
        """Return by how much the probability of everything is off."""
        endless = np.full(own.shape, np.inf)
        return float(np.abs(self.mass(-endless, endless, own) - 1).max())

    def itself(self, own: Array) -> Array:
        """Return the probability that the quantity is the number of the row."""
        if not self._crowd.groups:
            return np.ones(own.shape)
        if self.smooth:
            return self._crowd.exactly(self._rank, own)
        endless = np.full(own.shape, np.inf)
        passed = _mass(self.lower, -endless, _before(own)) + _mass(self.upper, _after(own), endless)
        return np.asarray(np.clip(1 - passed, 0.0, 1.0))

    def mass(self, low: Array, high: Array, own: Array) -> Array:
        """Return the probability of intervals, ends included, given numbers of the row."""
        low, high, own = np.broadcast_arrays(low, high, own)
        here = (low <= own) & (own <= high)
        total = np.where(here, self.itself(own), 0.0)
        total = total + _mass(self.lower, low, np.minimum(high, _before(own)))
        return np.asarray(total + _mass(self.upper, np.maximum(low, _after(own)), high))

    def density(self, y: Array, own: Array) -> Array:
        """Return the density at some values, but for the probability that the row itself is the quantity."""
        y, own = np.broadcast_arrays(np.asarray(y, float), np.asarray(own, float))
        none = np.zeros(y.shape)
        lower = none if self.lower is None else self.lower.pdf(y)
        upper = none if self.upper is None else self.upper.pdf(y)
        return np.where(y < own, lower, np.where(y > own, upper, 0.0))

    def expected(self, function: Function, breaks: Array, error: float) -> tuple[Function, float]:
        """Return the expected value of a function as a function of the row's number, and a bound on its error."""
        sides = [
            (0.0, None) if curve is None else curve.reweighted(function, breaks, error)
            for curve in (self.lower, self.upper)
        ]
        off = sum(share * curve.error for share, curve in sides if curve is not None) + error

        def at(own: Array) -> Array:
            endless = np.full(own.shape, np.inf)
            total = function(own) * self.itself(own)
            (low, lower), (high, upper) = sides
            total = total + low * _mass(lower, -endless, _before(own))
            return np.asarray(total + high * _mass(upper, _after(own), endless))

        return at, float(off)


def _before(x: Array) -> Array:
    return np.nextafter(x, -np.inf)


def _after(x: Array) -> Array:
    return np.nextafter(x, np.inf)


def _mass(curve: Curve | None, low: Array, high: Array) -> Array:
    if curve is None:
        return np.zeros(np.broadcast_shapes(np.shape(low), np.shape(high)))
    return np.where(low <= high, curve.mass(low, np.maximum(low, high)), 0.0)


def crowd_of(groups: Sequence[Group]) -> Crowd:
    """Return rows as a crowd; those of one and the same distribution are put together."""
    found: dict[int, Group] = {}
    for curve, count in groups:
        if count:
            found[id(curve)] = curve, count + found.get(id(curve), (curve, 0))[1]
    return Crowd(tuple(found.values()))
