"""Order statistics of rows: how many rows lie below and above a value, and the law of the one of a given rank."""

import math
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy

from privug.inference.exact.rows.cells import FLAT, Cell, Row, Term
from privug.inference.exact.rows.regrouping import NotCounted, Ranks, RowSum, placeholder, row_key
from privug.inference.measure.curve import Curve
from privug.inference.measure.density import Analytic, Function, panel_nodes, tabulate
from privug.model.node import Array, Node

LARGEST = 1e290  # beyond which numbers of choices are known by their logarithms
HALVINGS = 200
NEAR_ONE = 1 - 1e-6
LEVELS = np.array([1e-30, 1e-15, 1e-6, 0.01, 0.3, 0.7, 0.99, 1 - 1e-6])

AlikeRows = tuple[Curve, int]


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

    groups: tuple[AlikeRows, ...]

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
    """The row of a rank among rows without atoms, with the methods of SciPy's frozen distributions but for moments."""

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


def ranked(crowd: Crowd, rank: int) -> Curve:
    """Return the distribution of the row of a rank, counted from the smallest."""
    error = sum(count * curve.error for curve, count in crowd.groups)
    if not len(crowd.atoms):
        return Curve(((1.0, Analytic(Rank(crowd, rank), kinks=tuple(crowd.breaks.tolist()))),), error=error)
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
        passed = _mass(self.lower, -endless, np.nextafter(own, -np.inf))
        passed = passed + _mass(self.upper, np.nextafter(own, np.inf), endless)
        return np.asarray(np.clip(1 - passed, 0.0, 1.0))

    def mass(self, low: Array, high: Array, own: Array) -> Array:
        """Return the probability of intervals, ends included, given numbers of the row."""
        low, high, own = np.broadcast_arrays(low, high, own)
        here = (low <= own) & (own <= high)
        total = np.where(here, self.itself(own), 0.0)
        total = total + _mass(self.lower, low, np.minimum(high, np.nextafter(own, -np.inf)))
        return np.asarray(total + _mass(self.upper, np.maximum(low, np.nextafter(own, np.inf)), high))

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
            total = total + low * _mass(lower, -endless, np.nextafter(own, -np.inf))
            return np.asarray(total + high * _mass(upper, np.nextafter(own, np.inf), endless))

        return at, float(off)


def _mass(curve: Curve | None, low: Array, high: Array) -> Array:
    if curve is None:
        return np.zeros(np.broadcast_shapes(np.shape(low), np.shape(high)))
    return np.where(low <= high, curve.mass(low, np.maximum(low, high)), 0.0)


def crowd_of(groups: Sequence[AlikeRows]) -> Crowd:
    """Return rows as a crowd; those of one and the same distribution are put together."""
    found: dict[int, AlikeRows] = {}
    for curve, count in groups:
        if count:
            found[id(curve)] = curve, count + found.get(id(curve), (curve, 0))[1]
    return Crowd(tuple(found.values()))


PAIR_LEVELS = np.array([1e-25, 1e-16, 1e-10, 1e-6, 1e-3, 0.03, 0.2, 0.5])
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

    The weight of the upper one is positive; `is_negative` says that the negative of the sum is meant. Without numbers
    of a row, the crowd is all there is.
    """

    crowd: Crowd
    lower: int
    upper: int
    first: float
    second: float
    is_negative: bool = False

    smooth = True

    def itself(self, own: Array) -> Array:
        """Return the probability that the quantity is the number of the row, which is none."""
        return np.zeros(own.shape)

    def expected(self, function: Function, breaks: Array, error: float) -> tuple[Function, float]:
        """Refuse: this would take an integral more."""
        raise NotCounted("noise is added to a range, a quantile or a median between two rows")

    def bends(self, kinks: Array) -> Array:
        """Return numbers of the row at which probabilities of intervals with some ends are not smooth."""
        at, kinks = self.crowd.breaks, -kinks if self.is_negative else kinks
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
            found += [law.ppf(PAIR_LEVELS), law.isf(PAIR_LEVELS), np.array(law.support())]
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
        ends = (-np.asarray(high), -np.asarray(low)) if self.is_negative else (low, high)
        cases = np.broadcast_arrays(*ends, *(() if own is None else (own,)))
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
        cases = np.broadcast_arrays(-np.asarray(y) if self.is_negative else y, *(() if own is None else (own,)))
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
    ends = [np.concatenate([law.ppf(PAIR_LEVELS), law.isf(PAIR_LEVELS)]) for law in (lower, upper)]
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


MIXED = "order statistics and sums of the same rows are used together"
UNLIKE = "order statistics of different choices of the same rows are used together"
LOOKS = np.array([0.03, 0.31, 0.52, 0.77, 0.98])
MOST_STEPS = 400


@dataclass(frozen=True, eq=False)
class RankedRows:
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


def families_of(rows: Sequence[Row], sums: Sequence[RowSum]) -> list[RankedRows]:
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
    families = [RankedRows(tuple(own), tuple((j, sums[j].ranks) for j in places)) for places, own in found.items()]
    for family in families:
        if any(len(ranks) > 2 for _, ranks in family.picks):
            raise NotCounted("it puts more than two order statistics of the same rows together")
    return families


class Orders:
    """The order statistics of a question, given what rows share: their distributions, and what rows tell."""

    def __init__(
        self,
        families: Sequence[RankedRows],
        sums: int,
        cells: Callable[[Row], Sequence[Cell]],
        shared: Collection[Node] = (),
    ) -> None:
        self._families = families
        self._shared = shared
        self._sums = sums
        self._cells = cells
        self._laws: dict[Hashable, Curve] = {}

    def family(self, row: Row) -> RankedRows | None:
        """Return the family that a row, or a row that stands for an order statistic, belongs to."""
        if any(one.mixes(row) for one in self._families):
            raise NotCounted("the secret is made of several rows, of which some are only ranked")
        return next((one for one in self._families if one.has(row) or row in one.stand_ins), None)

    def law(self, family: RankedRows, row: Row) -> Curve:
        """Return the distribution of the number by which a row is ranked."""
        key = row_key([(0, row.terms[0][1])], self._shared) or row
        if key not in self._laws:
            self._laws[key] = _number(self._cells(row), family.picks[0][0])
        return self._laws[key]

    def others(self, family: RankedRows, without: Row | None) -> list[AlikeRows]:
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

    def given(self, family: RankedRows, row: Row) -> "Pick":
        """Return an order statistic, given the number of a row."""
        return conditional(crowd_of(self.others(family, row)), family.picks[0][1])


Pick = OneRank | TwoRanks


def conditional(crowd: Crowd, ranks: Ranks) -> Pick:
    """Return an order statistic, or two that are put together, given the number of a row besides others."""
    if len(ranks) == 1:
        return OneRank(crowd, ranks[0][0])
    if len(crowd.atoms):
        raise NotCounted("it puts two order statistics together of rows that have some numbers with a probability")
    (lower, first), (upper, second) = ranks
    sign = math.copysign(1.0, second)
    return TwoRanks(crowd, lower, upper, sign * first, sign * second, second < 0)


def law_of(crowd: Crowd, ranks: Ranks) -> Curve:
    """Return the distribution of an order statistic, or of two that are put together."""
    if len(ranks) == 1:
        return ranked(crowd, ranks[0][0])
    two = conditional(crowd, ranks)
    assert isinstance(two, TwoRanks)
    return paired(replace(two, is_negative=False)).affine(-1.0, 0.0) if two.is_negative else paired(two)


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


def expectation(way: Pick, likelihood: Function, kinks: Array, curve: Curve, error: float) -> tuple[Function, float]:
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


NOISY = "what a continuous secret has in common with an order statistic to which noise was added is not known"
SLOW = "what a continuous secret has in common with a range, or a quantile between two rows, is not known"


@dataclass(frozen=True, eq=False)
class CountedLaw:
    """A multiple of an order statistic plus an independent quantity, given the number of a row."""

    way: Pick
    term: Term
    """By what the row is ranked, as a function of its number."""
    scale: float
    rest: Curve
    places: Array
    """Numbers between which the order statistic has a simple distribution."""

    @cached_property
    def _shift(self) -> float | None:
        """What is added, if it is one number."""
        return float(self.rest.atoms[0]) if len(self.rest.atoms) == 1 and not self.rest.parts else None

    def listed(self, x: Array) -> Iterator[tuple[Array, Array]]:
        """Yield values with their probabilities for some numbers of the row: where it is that number, and elsewhere.

        Elsewhere, values stand for those around them; for what is infinite anyway they need not be finer.
        """
        if self._shift is None:
            raise NotCounted(NOISY)
        if not isinstance(self.way, OneRank):
            raise NotCounted(SLOW)
        own = self.term.at(x)
        itself = self.way.itself(own)
        yield self.scale * own + self._shift, np.diag(itself)
        atoms = self.way.atoms
        points = np.where(atoms == own[:, np.newaxis], 0.0, self.way.mass(atoms, atoms, own[:, np.newaxis]))
        yield np.array([float(f"{value:.12g}") for value in self.scale * atoms + self._shift]), points
        nodes, steps = (part.reshape(-1) for part in panel_nodes(self.places))
        table = self.way.density(nodes[np.newaxis], own[:, np.newaxis]) * steps
        totals = table.sum(axis=1)
        left = np.maximum(1 - itself - points.sum(axis=1), 0.0)
        shares = np.divide(left, totals, out=np.zeros_like(totals), where=totals > 0)
        yield self.scale * nodes + self._shift, table * shares[:, np.newaxis]

    def bends(self, steps: tuple[Array, Array, list[Any]] | None) -> Array:
        """Return numbers of the row at which probabilities of steps of the output are not smooth."""
        edges = np.empty(0) if self._shift is None or steps is None else steps[0][1:] - self._shift
        kinks = edges / self.scale
        bends = self.term.solved(self.way.bends(kinks))[0]
        return np.asarray(bends[np.isfinite(bends)])

    def given(self, x: Array) -> Callable[[Array, Array], Array]:
        """Return the probabilities of intervals, a column for each, for some numbers of the row, a line for each."""
        own = self.term.at(x)[:, np.newaxis]
        return lambda low, high: self._mass(low[:1], high[:1], own)

    def _mass(self, low: Array, high: Array, own: Array) -> Array:
        if self._shift is not None:
            ends = np.sort([(low - self._shift) / self.scale, (high - self._shift) / self.scale], axis=0)
            return self.way.mass(ends[0], ends[1], own)
        columns = []
        for start, stop in zip(low.reshape(-1), high.reshape(-1), strict=True):
            finite = [end for end in (start, stop) if np.isfinite(end)]
            points = np.concatenate([self.rest.breaks, self.rest.atoms])
            kinks = np.subtract.outer(finite, points[np.isfinite(points)]).reshape(-1) / self.scale
            function, _ = self.way.expected(partial(self._between, start, stop), kinks, 0.0)
            columns.append(function(own[:, 0]))
        return np.stack(columns, axis=1)

    def _between(self, low: float, high: float, y: Array) -> Array:
        return self.rest.mass(low - self.scale * y, high - self.scale * y)
