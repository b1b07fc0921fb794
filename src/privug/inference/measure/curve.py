"""Curve: the distribution of one real number, known exactly or to a stated error.

It has densities, which may be those of monotone functions of other quantities (`Pushforward`), and atoms.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy

from privug.errors import ArgumentError, UnsuitableEngine
from privug.inference.measure.density import (
    SLACK,
    UNKNOWN,
    Analytic,
    Fine,
    Function,
    Inversion,
    Tabulated,
    followed,
    integrals,
    inverted,
    panel_nodes,
    resolved,
    tabulate,
    united,
)
from privug.model.batch import Batch, grouped
from privug.model.node import Array
from privug.prior.scalar import ScalarFamily
from privug.prior.standard import Located, StandardNormal
from privug.program.predicates import holds

INNER = 15  # points put between two that differ, in each round
MOST_CHANGES = 20_000
MOST_NUMBERS = 24

Interval = tuple[float, float]


def true_intervals(
    predicate: Callable[[Any], Any], grid: Array, checks: Array, ends: Interval
) -> list[Interval] | None:
    """Return the intervals on which a predicate holds, or None if it changes too often to be followed.

    `grid` are the points to start from, in order; `checks` are further points at which the answer must be right.
    All values lie between the `ends`.
    """
    points, verdicts = _start(predicate, grid, ends)
    for _ in range(64):
        changes = np.flatnonzero(verdicts[1:] != verdicts[:-1])
        if len(changes) > MOST_CHANGES:
            return None
        gaps = points[changes + 1] - points[changes]
        wide = changes[gaps > 4 * np.spacing(np.maximum(np.abs(points[changes]), np.abs(points[changes + 1])))]
        if not len(wide):
            break
        shares = np.arange(1, INNER + 1) / (INNER + 1)
        inner = points[wide, np.newaxis] + (points[wide + 1] - points[wide])[:, np.newaxis] * shares
        points, verdicts = _merged(points, verdicts, inner.reshape(-1), _judged(predicate, inner.reshape(-1)))
    predicted = verdicts[np.clip(np.searchsorted(points, checks) - 1, 0, len(points) - 1)]
    settled = np.isin(checks, points)
    if np.any((predicted != _judged(predicate, checks)) & ~settled):
        return None
    return _intervals(points, verdicts)


def _judged(predicate: Callable[[Any], Any], points: Array) -> Array:
    return holds(predicate, Batch.of_values(points))


def _start(predicate: Callable[[Any], Any], grid: Array, ends: Interval) -> tuple[Array, Array]:
    """Evaluate the predicate on the grid and around the numbers it names, unless it fails at those."""
    named = _named_points(predicate, *ends)
    try:
        points = np.unique(np.concatenate([grid, named]))
        return points, _judged(predicate, points)
    except ArgumentError:
        if not len(named):
            raise
        return grid, _judged(predicate, grid)


def _named_points(predicate: Callable[[Any], Any], low: float, high: float) -> Array:
    """Return the numbers that stand in a predicate, their sums and differences, and points between them."""
    numbers = np.unique(_numbers(predicate))[:MOST_NUMBERS]
    sums = [a + sign * b for a, b in itertools.product(numbers, repeat=2) for sign in (1.0, -1.0)]
    known = np.unique([*numbers, *sums]) if len(numbers) else np.empty(0)
    known = known[(known > low) & (known < high)]
    around = [known, np.nextafter(known, -math.inf), np.nextafter(known, math.inf)]
    return np.concatenate([*around, (known[1:] + known[:-1]) / 2])


def _numbers(predicate: Callable[[Any], Any]) -> list[float]:
    code = getattr(predicate, "__code__", None)
    if code is None:
        return []
    outer = getattr(predicate, "__globals__", {})
    cells = [cell.cell_contents for cell in getattr(predicate, "__closure__", None) or () if _is_filled(cell)]
    candidates = [*code.co_consts, *cells, *(outer.get(name) for name in code.co_names)]
    numbers = [float(value) for value in candidates if isinstance(value, int | float) and not isinstance(value, bool)]
    return [number for number in numbers if math.isfinite(number)]


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _merged(points: Array, verdicts: Array, new: Array, judged: Array) -> tuple[Array, Array]:
    everything, first = np.unique(np.concatenate([points, new]), return_index=True)
    return everything, np.concatenate([verdicts, judged])[first]


def _intervals(points: Array, verdicts: Array) -> list[Interval]:
    changes = np.flatnonzero(verdicts[1:] != verdicts[:-1])
    bounds = [-math.inf, *((points[changes] + points[changes + 1]) / 2), math.inf]
    held = [bool(verdicts[0]), *(bool(verdict) for verdict in verdicts[changes + 1])]
    return [(float(low), float(high)) for low, high, yes in zip(bounds, bounds[1:], held, strict=False) if yes]


FARTHEST = 1e100  # values beyond are those of an endless tail
SAME_POWER = 1e-6  # by which the powers that a tail follows at two places may differ
STEEPER = 1e-3  # than 1 / x: that a tail must be to be sure of its integral
FADED = 1e-12  # a density times the width of its range that is as good as none


class NoSuchMoment(ArgumentError):
    """An expected value that does not exist."""


def beyond(function: Function, end: float) -> float:
    """Return the integral of a function beyond a far end, where it falls like a power of the distance from zero."""
    values = np.asarray(function(end * 0.5 ** np.arange(3)), float)
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = np.log2(np.abs(values[:-1] / values[1:]))
    if not (abs(powers[0] - powers[1]) < SAME_POWER and powers[0] < -1 - STEEPER):
        raise NoSuchMoment("this expected value does not exist: the tails are too heavy; ask for median()")
    return float(abs(end) * values[0] / (-1 - powers[0]))


@dataclass(frozen=True, eq=False)
class Pushforward:
    """The distribution of an increasing or decreasing function of a quantity, which has a density.

    `inverse` takes values of the function back; `slope` is its derivative at values of the quantity. The result is
    stretched by `scale`, which may be negative, and shifted.
    """

    base: "Analytic | Tabulated"
    function: Function
    inverse: Function
    slope: Function
    rising: bool
    scale: float = 1.0
    shift: float = 0.0

    @property
    def _upward(self) -> bool:
        return self.rising == (self.scale > 0)

    def _image(self, x: Array) -> Array:
        low, high = self.base.edges[0], self.base.edges[-1]
        return self.shift + self.scale * self.function(np.clip(x, low, high))

    def _back(self, y: Array) -> Array:
        return self.inverse((y - self.shift) / self.scale)

    @cached_property
    def support(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        low, high = np.sort(self._image(np.array([self.base.edges[0], self.base.edges[-1]])))
        return float(low), float(high)

    def pdf(self, y: Array) -> Array:
        """Return the density."""
        with np.errstate(over="ignore"):  # a density may be infinite at an end
            return np.asarray(np.exp(self.logpdf(y)))

    def logpdf(self, y: Array) -> Array:
        """Return the natural logarithm of the density."""
        flat = np.asarray(y, float).reshape(-1)
        inside = (flat >= self.support[0]) & (flat <= self.support[1])
        logs = np.full(flat.shape, -np.inf)
        x = self._back(flat[inside])
        with np.errstate(divide="ignore"):
            found = self.base.logpdf(x) - np.log(np.abs(self.slope(x) * self.scale))
        logs[inside] = np.where(np.isnan(found), -np.inf, found)
        return logs.reshape(np.shape(y))

    def mass(self, low: Array, high: Array) -> Array:
        """Return the probability of the interval from `low` to `high`."""
        start, end = np.broadcast_arrays(np.asarray(low, float), np.asarray(high, float))
        ends = [self._back(np.clip(side, *self.support).reshape(-1)) for side in (start, end)]
        first, last = ends if self._upward else ends[::-1]
        share = np.where((end < start).reshape(-1), 0.0, self.base.mass(first, np.maximum(first, last)))
        return np.asarray(share.reshape(start.shape))

    def quantile(self, p: Array) -> Array:
        """Return the value that is not exceeded with probability p."""
        p = np.asarray(p, float)
        return self._image(np.asarray(self.base.quantile(p if self._upward else 1 - p)))

    def mean(self) -> float | None:
        """Return nothing: the mean follows from the panels."""
        return None

    def std(self) -> float | None:
        """Return nothing: the standard deviation follows from the panels."""
        return None

    @cached_property
    def breaks(self) -> Array:
        """The points between which the density is smooth, infinite ends included."""
        inner = np.unique(self._image(self.base.breaks))
        ends = self.base.edges[[0, -1]]
        # A table that has faded at its end stands for a tail that goes on: moments need not exist.
        faded = self.base.pdf(ends) * (ends[1] - ends[0]) < FADED
        endless = (np.isinf(self.base.breaks[[0, -1]]) | faded)[:: 1 if self._upward else -1]
        first, last = -np.inf if endless[0] else inner[0], np.inf if endless[1] else inner[-1]
        return np.array([first, *inner[1:-1], last])

    @property
    def track(self) -> Array:
        """Finite edges from which to resolve the density."""
        return followed(self, self.breaks)

    @cached_property
    def edges(self) -> Array:
        """The panels on which the density is a polynomial but for rounding."""
        known = np.unique(self._image(self.base.edges))
        around = known[np.abs(known) < FARTHEST]
        ends = np.where(np.abs(self.support) < FARTHEST, self.support, [-np.inf, np.inf])
        if np.isfinite(ends).all():
            return resolved(self.pdf, around)[0]
        return resolved(self.pdf, np.union1d(around, followed(self, np.array([ends[0], *around, ends[1]]))))[0]

    def affine(self, scale: float, shift: float) -> "Pushforward":
        """Return the distribution of a linear function."""
        return replace(self, scale=self.scale * scale, shift=shift + scale * self.shift)

    def restricted(self, low: float, high: float) -> "Pushforward | None":
        """Return the distribution given an interval; None if that has no probability."""
        low, high = max(low, self.support[0]), min(high, self.support[1])
        if not low < high:
            return None
        start, end = sorted(float(x) for x in self._back(np.array([low, high])))
        base = self.base.restricted(start, end)
        return None if base is None else replace(self, base=base)


Density = Analytic | Tabulated | Pushforward


MIXED = Inversion(1100, SLACK, 2.0)  # enough steps to halve any range of doubles to its last bit

Parts = Sequence[tuple[float, Density]]


def quantiles(parts: Parts, atoms: Array, masses: Array, p: Array) -> Array:
    """Return the smallest values that are not exceeded with the given probabilities.

    Between two atoms, what the atoms before have is certain: the rest is a quantile of the densities alone.
    """
    if not len(atoms):
        return _of_densities(parts, p)
    before = np.concatenate([[0.0], np.cumsum(masses)])
    below = np.maximum.accumulate(_below(parts, atoms))
    place = np.searchsorted(below + before[1:], p - SLACK)
    here = np.minimum(place, len(atoms) - 1)
    if not parts:
        return np.asarray(atoms[here])
    on_atom = (place < len(atoms)) & (below[here] + before[here] < p - SLACK)
    share = sum(weight for weight, _ in parts)
    between = _of_densities(parts, np.clip((p - before[place]) / share, 0.0, 1.0))
    bounds = np.concatenate([[-np.inf], atoms, [np.inf]])
    return np.where(on_atom, atoms[here], np.clip(between, bounds[place], bounds[place + 1]))


def _below(parts: Parts, x: Array) -> Array:
    endless = np.full(x.shape, -np.inf)
    return sum((weight * part.mass(endless, x) for weight, part in parts), np.zeros(x.shape))


def _above(parts: Parts, x: Array) -> Array:
    endless = np.full(x.shape, np.inf)
    return sum((weight * part.mass(x, endless) for weight, part in parts), np.zeros(x.shape))


def _of_densities(parts: Parts, p: Array) -> Array:
    """Return quantiles of a mixture: by Newton's steps, halving where those leave the range."""
    if len(parts) == 1:
        return np.asarray(parts[0][1].quantile(p), float)
    in_order = _one_after_another(parts)
    if in_order is not None:
        return _of_neighbours(in_order, p)
    ends = [np.asarray(part.quantile(p), float) for _, part in parts]
    low, high = np.min(ends, axis=0), np.max(ends, axis=0)
    known = (p <= 0) | (p >= 1) | (low == high)
    found: Array = np.where(p >= 1, high, low)
    if not known.all():
        found[~known] = _solved(parts, p[~known], low[~known], high[~known])
    return found


def _one_after_another(parts: Parts) -> Parts | None:
    """Return parts by where they lie; None if some of them overlap."""
    ordered = sorted(parts, key=lambda one: one[1].support)
    spans = [part.support for _, part in ordered]
    return ordered if all(one[1] <= other[0] for one, other in itertools.pairwise(spans)) else None


def _of_neighbours(parts: Parts, p: Array) -> Array:
    """Return quantiles of parts that do not overlap, which are quantiles of one part each."""
    shares = np.array([weight for weight, _ in parts])
    shares /= shares.sum()
    ends = np.concatenate([[0.0], np.cumsum(shares[:-1]), [1.0]])
    last = len(parts) - 1
    place = np.where(p < 1, np.clip(np.searchsorted(ends, p - SLACK) - 1, 0, last), last)
    below, above = ((p - ends[place]) / shares[place], (ends[place + 1] - p) / shares[place])
    level = np.clip(np.where(below < above, below, 1 - above), 0.0, 1.0)  # from the nearer end, which keeps its digits
    found = np.empty(p.shape)
    for number in np.unique(place):
        some = place == number
        found[some] = parts[number][1].quantile(level[some])
    return found


def _solved(parts: Parts, p: Array, low: Array, high: Array) -> Array:
    share = sum(weight for weight, _ in parts)

    def split(x: Array) -> tuple[Array, Array]:
        return _below(parts, x) / share, _above(parts, x) / share

    def density(x: Array) -> Array:
        return sum((weight * part.pdf(x) for weight, part in parts), np.zeros(x.shape)) / share

    return inverted(p, split, density, low, high, MIXED)


MOST_PARTS = 8
GRID = 4096
CHECKS = 2048
CLOSEST = 200  # how often the distance from an end of the values is halved
NOTHING = 1e-13  # a probability that quadrature cannot tell from zero
UNRESOLVED = 1e-6  # a probability that quadrature must not lose
TOO_NARROW = "a quantity has peaks too narrow and too many to be followed; engine='sample' can serve"
FAR_FROM_ZERO = 1e4  # times the width of the values
HEAVY = 1e-9  # a share of an integral in the outermost panel from which on what lies beyond it counts


def _nothing() -> Array:
    return np.empty(0)


@dataclass(frozen=True, eq=False)
class Curve:
    """The distribution of one real number: densities with their shares, and atoms with theirs.

    Shares and masses sum to one. `error` bounds the absolute error of every probability; with `fine`, a pair, a
    probability p is also right to within the first number times p plus the second.

    >>> curve = Curve.normal(40.0, 3.0)
    >>> round(curve.probability(lambda x: x < 34), 6), round(curve.quantile(0.975), 4)
    (0.02275, 45.8799)
    """

    parts: tuple[tuple[float, Density], ...] = ()
    atoms: Array = field(default_factory=_nothing)
    masses: Array = field(default_factory=_nothing)
    error: float = 0.0
    fine: Fine = UNKNOWN

    @classmethod
    def point(cls, value: float) -> "Curve":
        """Make the distribution that is certain of one value."""
        return cls((), np.array([float(value)]), np.ones(1))

    @classmethod
    def discrete(cls, values: Any, probabilities: Any, error: float = 0.0) -> "Curve":
        """Make a distribution of atoms alone."""
        atoms, masses = grouped(np.asarray(values, float), np.asarray(probabilities, float))
        return cls((), atoms[masses > 0], masses[masses > 0] / masses.sum(), error)

    @classmethod
    def normal(cls, mean: float, sd: float) -> "Curve":
        """Make a normal distribution; a deviation of zero gives a point."""
        return cls(((1.0, Analytic(StandardNormal(), float(sd), float(mean))),)) if sd > 0 else cls.point(mean)

    @classmethod
    def of_family(cls, family: ScalarFamily, *parameters: float) -> "Curve":
        """Make a distribution of a continuous family with known parameters."""
        frozen = family.frozen(*map(float, parameters))
        if isinstance(frozen, Located):
            return cls(((1.0, Analytic(frozen.standard, frozen.scale, frozen.shift)),))
        return cls(((1.0, Analytic(frozen, kinks=family.kinks(*parameters))),))

    @classmethod
    def mixture(cls, weights: Any, curves: "Sequence[Curve]") -> "Curve":
        """Make the distribution of a quantity that follows one of several curves, chosen by weights."""
        shares = np.asarray(weights, float) / np.sum(weights)
        chosen = [(float(share), curve) for share, curve in zip(shares, curves, strict=True) if share > 0]
        parts = tuple((share * weight, part) for share, curve in chosen for weight, part in curve.parts)
        atoms = np.concatenate([curve.atoms for _, curve in chosen])
        masses = np.concatenate([share * curve.masses for share, curve in chosen])
        error = sum(share * curve.error for share, curve in chosen)
        merged = cls(parts, *grouped(atoms, masses), error)
        return merged if len(parts) <= MOST_PARTS else merged._compressed()

    def _compressed(self) -> "Curve":
        """Put many densities into one table."""
        kinks = np.unique(np.concatenate([part.breaks for _, part in self.parts]))
        inner = kinks[np.isfinite(kinks)]
        ends = (bool(np.isinf(kinks[0])), bool(np.isinf(kinks[-1])))
        tracks = [part.track for _, part in self.parts]
        spans = np.array([track[[0, -1]] for track in tracks])
        edges = np.concatenate([united(tracks), inner, [spans.min(), spans.max()]])
        total, error, table = tabulate(partial(_added, self.parts, spans), edges, inner, ends)
        missed = abs(total / self.continuous_share - 1)
        if table is None or not missed < UNRESOLVED:
            raise UnsuitableEngine(TOO_NARROW)
        return replace(self, parts=((self.continuous_share, table),), error=self.error + max(error / total, missed))

    @cached_property
    def continuous_share(self) -> float:
        """The probability of the part that has a density."""
        return float(sum(weight for weight, _ in self.parts))

    @property
    def support(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        ends = [part.support for _, part in self.parts] + [(float(atom), float(atom)) for atom in self.atoms]
        return min(low for low, _ in ends), max(high for _, high in ends)

    @cached_property
    def breaks(self) -> Array:
        """The points between which the density is smooth, infinite ends included."""
        return np.unique(np.concatenate([part.breaks for _, part in self.parts])) if self.parts else _nothing()

    @cached_property
    def edges(self) -> Array:
        """The panels on which the density is a polynomial but for rounding."""
        return np.unique(np.concatenate([part.edges for _, part in self.parts])) if self.parts else _nothing()

    def pdf(self, x: Any) -> Array:
        """Return the density of the part that has one; it integrates to `continuous_share`."""
        points = np.asarray(x, float)
        total = np.zeros(points.shape)
        for weight, part in self.parts:
            density = part.pdf(points)
            density *= weight
            total += density
        return total

    def logpdf(self, x: Any) -> Array:
        """Return the natural logarithm of the density, which does not vanish where the density underflows."""
        points = np.asarray(x, float)
        if not self.parts:
            return np.full(points.shape, -np.inf)
        logs = [math.log(weight) + part.logpdf(points) for weight, part in self.parts]
        return np.asarray(scipy.special.logsumexp(logs, axis=0)) if len(logs) > 1 else logs[0]

    def cdf(self, x: Any) -> Array:
        """Return the probability of values up to x."""
        points = np.asarray(x, float)
        return np.asarray(self.mass(np.full(points.shape, -np.inf), points))

    def mass(self, low: Any, high: Any, *, closed: bool = True) -> Array:
        """Return the probability of the interval from `low`, which is included, to `high`, which is if `closed`."""
        start, end = np.asarray(low, float), np.asarray(high, float)
        total = sum((weight * part.mass(start, end) for weight, part in self.parts), np.zeros(start.shape))
        if len(self.atoms):
            below = np.concatenate([[0.0], np.cumsum(self.masses)])
            first = np.searchsorted(self.atoms, start, side="left")
            last = np.searchsorted(self.atoms, end, side="right" if closed else "left")
            total = total + below[np.maximum(last, first)] - below[first]
        return np.clip(total, 0.0, 1.0)

    def quantile(self, p: float) -> float:
        """Return the smallest value that is not exceeded with probability p."""
        if p not in self._quantiles:
            self._quantiles[p] = float(self.quantiles(np.array([p]))[0])
        return self._quantiles[p]

    @cached_property
    def _quantiles(self) -> dict[float, float]:
        """The quantiles that were asked for: a report asks for the same ones several times."""
        return {}

    def quantiles(self, p: Array) -> Array:
        """Return the smallest values that are not exceeded with the given probabilities."""
        return quantiles(self.parts, self.atoms, self.masses, np.asarray(p, float))

    def cells(self) -> tuple[Array, Array]:
        """Return values and probabilities that stand for the distribution in sums: nodes of quadrature, and atoms."""
        values, weights = [self.atoms], [self.masses]
        for share, part in self.parts:
            nodes, widths = panel_nodes(part.edges)
            density = _on_nodes(part.pdf, part.edges) * widths
            exact, sums = part.mass(part.edges[:-1], part.edges[1:]), density.sum(axis=1)
            scale = np.divide(exact, sums, out=np.zeros_like(sums), where=sums > 0)
            values.append(nodes.reshape(-1))
            weights.append((share * density * scale[:, np.newaxis]).reshape(-1))
        everything, probabilities = np.concatenate(values), np.concatenate(weights)
        kept = probabilities > 0
        return everything[kept], probabilities[kept] / probabilities.sum()

    def probability(self, predicate: Callable[[Any], Any]) -> float | None:
        """Return the probability that a predicate holds; None if it changes too often to be followed.

        Where it changes is found on a fine grid, at the numbers that stand in it, and by bisection.
        """
        total = float(self.masses[holds(predicate, Batch.of_values(self.atoms))].sum()) if len(self.atoms) else 0.0
        if self.parts:
            checks = self._continuous.sample(CHECKS, np.random.default_rng(0))
            ends = [part.support for _, part in self.parts]
            inside = min(low for low, _ in ends), max(high for _, high in ends)
            intervals = true_intervals(predicate, self._grid(inside), checks, inside)
            if intervals is None:
                return None
            low, high = np.array(intervals).reshape(-1, 2).T
            total += math.fsum(weight * math.fsum(part.mass(low, high)) for weight, part in self.parts)
        return min(1.0, total)

    def _grid(self, ends: tuple[float, float]) -> Array:
        """Return points all over the panels and ever closer to the ends; these need not make sense to a predicate."""
        edges = self.edges
        each = max(2, GRID // (len(edges) - 1))
        shares = (np.arange(each) + 0.5) / each
        points = (edges[:-1, np.newaxis] + np.diff(edges)[:, np.newaxis] * shares).reshape(-1)
        closer = (edges[-1] - edges[0]) * 0.5 ** np.arange(1, CLOSEST)
        finite = [(end, sign) for end, sign in zip(ends, (1, -1), strict=True) if math.isfinite(end)]
        near = np.concatenate([_nothing(), *(end + sign * closer for end, sign in finite)])
        return np.unique(np.concatenate([points, near[(near > ends[0]) & (near < ends[1])]]))

    def expectation(self, function: Callable[[Array], Array], breaks: Any = ()) -> float:
        """Return the expected value of a function of arrays, which is smooth between the panels and `breaks`."""
        total = float(self.masses @ np.asarray(function(self.atoms), float)) if len(self.atoms) else 0.0
        for weight, part in self.parts:
            edges = np.unique(np.concatenate([part.edges, np.asarray(breaks, float)]))
            inside = edges[(edges >= part.edges[0]) & (edges <= part.edges[-1])]
            integrand = partial(_weighted, function, part.pdf)
            grid, values, _ = resolved(integrand, inside)
            total += weight * self._beyond(part, integrand, integrals(grid, np.abs(values)))
            # The distribution function knows what a singular density has in its last panels; quadrature does not.
            known, found = part.mass(grid[:-1], grid[1:]), integrals(grid, _on_nodes(part.pdf, grid))
            scale = np.divide(known, found, out=np.ones_like(found), where=found > 0)
            total += weight * math.fsum(integrals(grid, values) * scale)
        return total

    @staticmethod
    def _beyond(part: Density, integrand: Callable[[Array], Array], shares: Array) -> float:
        """Return what lies beyond the panels if the outermost one of an endless tail still contributes."""
        heavy = np.isinf(part.breaks[[0, -1]]) & (shares[[0, -1]] > HEAVY * shares.sum())
        return sum(beyond(integrand, float(end)) for end in part.edges[[0, -1]][heavy])

    def mean(self) -> float:
        """Return the expected value."""
        return self._mean

    @cached_property
    def _mean(self) -> float:
        centre = self._centre

        def closed(part: Density) -> float | None:
            known = part.mean()
            return None if known is None else known - centre

        return centre + self._moment(closed, lambda x: x - centre)

    @property
    def _centre(self) -> float:
        """A number among the values if they lie so far from zero that rounding would show, else zero."""
        ends = self.edges[[0, -1]] if self.parts else np.zeros(2)
        middle, width = float(ends.mean()), float(ends[1] - ends[0])
        return middle if abs(middle) > FAR_FROM_ZERO * width else 0.0

    def std(self) -> float:
        """Return the standard deviation."""
        return self._std

    @cached_property
    def _std(self) -> float:
        mean = self.mean()
        if len(self.parts) == 1 and not len(self.atoms):
            known = self.parts[0][1].std()
            if known is not None:
                return known if math.isfinite(known) else math.inf
        unit = self.quantile(0.9) - self.quantile(0.1) or 1.0  # so that squares neither overflow nor vanish
        return unit * math.sqrt(self.expectation(lambda x: ((x - mean) / unit) ** 2))

    def _moment(self, known: Callable[[Density], float | None], function: Callable[[Array], Array]) -> float:
        closed = [known(part) for _, part in self.parts]
        if any(value is not None and not math.isfinite(value) for value in closed):
            raise NoSuchMoment("the mean does not exist; ask for median() or quantile()")
        total = float(self.masses @ function(self.atoms)) if len(self.atoms) else 0.0
        for (weight, part), value in zip(self.parts, closed, strict=True):
            total += weight * (Curve(((1.0, part),)).expectation(function) if value is None else value)
        return total

    def differential_entropy(self) -> float:
        """Return the differential entropy in bits: minus the expected logarithm of the density."""
        if len(self.atoms):
            raise ArgumentError("a quantity with point masses has no differential entropy")
        return -self.expectation(self._safe_log, self.edges) / math.log(2)

    def _safe_log(self, x: Array) -> Array:
        """Return the log density, and zero where the density vanishes: such points have no weight."""
        logs = self.logpdf(x)
        return np.where(np.isfinite(logs), logs, 0.0)

    def kl_to(self, other: "Curve") -> float:
        """Return the Kullback-Leibler divergence to another distribution in bits; infinite where that has nothing."""
        total = 0.0
        if len(self.atoms):
            if not np.isin(self.atoms, other.atoms).all():
                return math.inf
            shared = other.masses[np.searchsorted(other.atoms, self.atoms)]
            total = float(self.masses @ np.log2(self.masses / shared))
        if not self.parts:
            return max(0.0, total)
        continuous = self._continuous
        values, weights = continuous.cells()
        if self.continuous_share * weights[np.isneginf(other.logpdf(values))].sum() > NOTHING:
            return math.inf
        breaks = np.union1d(self.edges, other.edges)
        ratio = continuous.expectation(lambda x: self._safe_log(x) - other._safe_log(x), breaks)
        return max(0.0, total + ratio / math.log(2))

    @cached_property
    def _continuous(self) -> "Curve":
        return replace(self, atoms=_nothing(), masses=_nothing())

    def affine(self, scale: float, shift: float) -> "Curve":
        """Return the distribution of `scale * x + shift`."""
        if scale == 0:
            return Curve.point(shift)
        parts = tuple((weight, part.affine(scale, shift)) for weight, part in self.parts)
        order = slice(None, None, 1 if scale > 0 else -1)
        return replace(self, parts=parts, atoms=(self.atoms * scale + shift)[order], masses=self.masses[order])

    def restricted(self, low: float, high: float) -> "tuple[float, Curve | None]":
        """Return the probability of an interval, ends included, and the distribution given it, if it has one."""
        probability = float(self.mass(low, high))
        inside = (self.atoms >= low) & (self.atoms <= high)
        ends = np.array(low, float), np.array(high, float)
        parts = [(weight * float(part.mass(*ends)), part.restricted(low, high)) for weight, part in self.parts]
        error = self.error_of(probability)
        return self._conditioned(probability, parts, self.atoms[inside], self.masses[inside], error)

    def error_of(self, probability: float) -> float:
        """Return a bound on the error of a probability."""
        return min(self.error, self.fine[0] * float(probability) + self.fine[1])

    def reweighted(
        self, likelihood: Callable[[Array], Array], breaks: Any = (), error: float = 0.0
    ) -> "tuple[float, Curve | None]":
        """Return the expected likelihood and the posterior distribution, if there is one.

        `likelihood` takes arrays, is not negative, and is smooth between `breaks`; `error` bounds its own error.
        """
        masses = self.masses * np.asarray(likelihood(self.atoms), float) if len(self.atoms) else self.masses
        parts, failed = [], 0.0
        for weight, part in self.parts:
            kinks = np.union1d(part.breaks, np.asarray(breaks, float))
            inner = kinks[np.isfinite(kinks) & (kinks > part.edges[0]) & (kinks < part.edges[-1])]
            ends = (bool(np.isinf(part.breaks[0])), bool(np.isinf(part.breaks[-1])))
            total, missed, table = tabulate(
                partial(_weighted, likelihood, part.pdf), np.union1d(part.edges, inner), inner, ends
            )
            parts.append((weight * total, table))
            failed += weight * missed
        probability = float(sum(share for share, _ in parts) + masses.sum())
        return self._conditioned(probability, parts, self.atoms, masses, self.error + failed + error)

    @staticmethod
    def _conditioned(
        probability: float, parts: "Sequence[tuple[float, Density | None]]", atoms: Array, masses: Array, error: float
    ) -> "tuple[float, Curve | None]":
        if not probability > 0:
            return 0.0, None
        left = tuple((share / probability, part) for share, part in parts if part is not None and share > 0)
        there = masses > 0
        return probability, Curve(left, atoms[there], masses[there] / probability, min(1.0, error / probability))

    def sample(self, samples: int, rng: np.random.Generator) -> Array:
        """Draw independent values."""
        shares = np.array([*(weight for weight, _ in self.parts), *self.masses])
        chosen = rng.choice(len(shares), samples, p=shares / shares.sum())
        values, uniform = np.empty(samples), rng.random(samples)
        for position, (_, part) in enumerate(self.parts):
            values[chosen == position] = part.quantile(uniform[chosen == position])
        from_atoms = chosen >= len(self.parts)
        values[from_atoms] = self.atoms[chosen[from_atoms] - len(self.parts)]
        return values


def _added(parts: Sequence[tuple[float, Density]], spans: Array, x: Array) -> Array:
    """Return the sum of weighted densities, each of which is asked within its span only."""
    order = np.argsort(x)
    points, total = x[order], np.zeros(len(x))
    starts, stops = np.searchsorted(points, spans[:, 0]), np.searchsorted(points, spans[:, 1], side="right")
    for (weight, part), start, stop in zip(parts, starts, stops, strict=True):
        if start < stop:
            total[start:stop] += weight * part.pdf(points[start:stop])
    found = np.empty(len(x))
    found[order] = total
    return found


def _weighted(function: Callable[[Array], Array], density: Callable[[Array], Array], x: Array) -> Array:
    return np.asarray(function(x), float) * density(x)


def _on_nodes(density: Callable[[Array], Array], edges: Array) -> Array:
    nodes = panel_nodes(edges)[0]
    values = density(nodes.reshape(-1)).reshape(nodes.shape)
    return np.where(np.isfinite(values), values, 0.0)


def smooth_part(curve: Curve) -> Curve:
    """Return the distribution given that the value is none of those with a probability."""
    if not len(curve.atoms):
        return curve
    parts = tuple((weight / curve.continuous_share, part) for weight, part in curve.parts)
    return replace(curve, parts=parts, atoms=np.empty(0), masses=np.empty(0))


def discrete_part(curve: Curve) -> Curve:
    """Return the distribution given that the value is one of those with a probability."""
    return Curve((), curve.atoms, curve.masses / curve.masses.sum())
