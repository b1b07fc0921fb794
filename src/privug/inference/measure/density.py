"""Densities of real numbers that are known exactly: families that SciPy knows, and piecewise polynomials.

A panel is an interval on which the density is smooth. On it, the density is known by its values at the
nodes of Gauss and Legendre, and so are its polynomial, its integral and every expectation of a smooth function.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from privug.inference.workload import COST_OF_CALL, COST_OF_POINT, spend
from privug.model.batch import repeated
from privug.model.node import Array
from privug.prior.scalar import density_of

CHUNK = 1 << 13  # points whose intermediate values stay in the processor's cache

Function = Callable[[Array], Array]
Fine = tuple[float, float]
"""A probability p is right to within the first number times p plus the second; both are infinite if that is unknown."""
UNKNOWN: Fine = (math.inf, math.inf)


def legendre_values(columns: Array, piece: Array, t: Array) -> Array:
    """Return the values of polynomials at places of their pieces' own coordinate, from -1 to 1, by Clenshaw's rule.

    `columns` holds the coefficients, a row for each degree and a column for each piece.
    """
    spend(COST_OF_CALL + COST_OF_POINT * len(t))
    result = np.empty(len(t))
    for start in range(0, len(t), CHUNK):
        part = slice(start, start + CHUNK)
        result[part] = clenshaw(partial(_coefficient, columns, piece[part]), len(columns) - 1, t[part])
    return result


def _coefficient(columns: Array, piece: Array, degree: int) -> Array:
    return np.asarray(columns[degree][piece])


def clenshaw(row: Callable[[int], Array], degree: int, t: Array) -> Array:
    """Return the values of polynomials, of which `row` gives the Legendre coefficients of each degree."""
    above, below, scaled = np.empty_like(t), np.empty_like(t), np.empty_like(t)
    above[...], below[...] = row(degree), row(degree - 1)
    for k in range(degree, 1, -1):
        np.multiply(above, t, out=scaled)
        scaled *= (2 * k - 1) / k
        scaled += below
        above *= -(k - 1) / k
        above += row(k - 2)
        below, above, scaled = above, scaled, below
    return np.asarray(below + above * t)


NODES = 24
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(NODES)
# Values at the nodes to coefficients of Legendre polynomials: c_k = (2k + 1) / 2 sum_j w_j P_k(x_j) f(x_j).
ANALYSIS = ((np.arange(NODES) + 0.5) * np.polynomial.legendre.legvander(POINTS, NODES - 1)).T * WEIGHTS
DEEPEST = 200
MOST_PANELS = 1 << 14
RELATIVE = 1e-13
ABSOLUTE = 1e-17
FEW = 16  # steps into a tail that are looked at first
COST_OF_ROUND = 5e5  # elementary operations
FARTHEST = 1e-40  # the probability beyond which tails are not followed


def panel_nodes(edges: Array) -> tuple[Array, Array]:
    """Return the nodes and weights of Gauss and Legendre on each panel, a row for each."""
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    return middle[:, np.newaxis] + half[:, np.newaxis] * POINTS, half[:, np.newaxis] * WEIGHTS


def rounding_of_nodes(low: Array, high: Array) -> Array:
    """Return by how much the nodes of panels are rounded, relative to the panels: values are not known any better."""
    return np.asarray(4 * np.finfo(float).eps * np.maximum(np.abs(low), np.abs(high)) / (high - low))


def panel_nodes_between(low: Array, high: Array) -> Array:
    """Return the nodes on panels that need not be neighbours."""
    return np.asarray(((low + high) / 2)[:, np.newaxis] + ((high - low) / 2)[:, np.newaxis] * POINTS)


def split_panels(edges: Array, counts: Array) -> Array:
    """Return the edges of panels each of which is cut into so many equal parts."""
    which, number = repeated(counts)
    return np.append(edges[:-1][which] + number * (np.diff(edges) / counts)[which], edges[-1])


def located(edges: Array, x: Array) -> tuple[Array, Array]:
    """Return in which panel numbers lie, and where in its own coordinate, from -1 to 1."""
    panel = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)
    low, high = edges[panel], edges[panel + 1]
    return panel, np.clip((2 * x - low - high) / (high - low), -1.0, 1.0)


def integrals(edges: Array, values: Array) -> Array:
    """Return the integral over each panel of a function by its values at the nodes."""
    return np.asarray((values @ WEIGHTS) * np.diff(edges) / 2)


def coefficients(values: Array) -> Array:
    """Return the coefficients of Legendre polynomials on each panel of a function by its values at the nodes."""
    return np.asarray(values @ ANALYSIS.T)


Judged = Callable[[Array, Array, int], tuple[Array, Array]]
"""Takes the ends of panels and how often they were halved; says which are done, and what is found on each."""


def halved(judged: Judged, edges: Array) -> tuple[Array, Array]:
    """Halve panels until all are done; return the edges and what was found on each panel."""
    low, high = edges[:-1], edges[1:]
    lows, tables = [], []
    for depth in itertools.count():
        done, found = judged(low, high, depth)
        lows.append(low[done])
        tables.append(found[done])
        if done.all():
            break
        middle = ((low + high) / 2)[~done]
        low, high = np.concatenate([low[~done], middle]), np.concatenate([middle, high[~done]])
    starts = np.concatenate(lows)
    order = np.argsort(starts, kind="stable")
    return np.append(starts[order], edges[-1]), np.concatenate(tables)[order]


def resolved(function: Callable[[Array], Array], edges: Any) -> tuple[Array, Array, float]:
    """Split panels until a function is a polynomial on each but for rounding.

    Returns the edges, the values at the nodes (a row for each panel), and a bound on the error of the integral
    where that could not be reached.
    """
    total = error = 0.0

    def judged(low: Array, high: Array, depth: int) -> tuple[Array, Array]:
        nonlocal total, error
        spend(COST_OF_ROUND + COST_OF_POINT * NODES * len(low))
        points = panel_nodes_between(low, high)
        values = np.asarray(function(points.reshape(-1)), float).reshape(points.shape)
        values[~(np.abs(values) < 1e300)] = 0.0  # a singular end, met because nodes are rounded
        shares = np.abs(values) @ WEIGHTS * (high - low) / 2
        sizes = np.abs(coefficients(values))
        tails, rounding = sizes[:, -3:].max(axis=1), rounding_of_nodes(low, high)
        rough = tails > np.maximum(RELATIVE, rounding) * sizes.max(axis=1)
        rough &= tails * (high - low) > ABSOLUTE * (total + shares.sum())
        done = ~rough | (rounding > 0.5) | (depth == DEEPEST - 1) | (len(low) > MOST_PANELS)
        error += float((tails * (high - low))[done & rough].sum())
        total += float(shares[done].sum())
        return done, values

    return *halved(judged, np.unique(np.asarray(edges, float))), error


class Inversion(NamedTuple):
    """How far a distribution function is inverted: steps, by how much a level may be missed, and spacings apart."""

    most_steps: int
    slack: float = 0.0
    closest: float = -1.0
    """Ends that are so many spacings of floats apart are near enough; negative if they never are."""


PANELS = Inversion(80)
SLACK = 1e-15  # by which a probability may miss a level, for rounding
LAST_STEP = 1e-14  # of a search for a quantile, relative to the values


def inverted(
    p: Array, split: Callable[[Array], tuple[Array, Array]], pdf: Function, low: Array, high: Array, until: Inversion
) -> Array:
    """Return quantiles that lie between known ends: by Newton's steps, halving where those leave the range.

    `split` returns the probabilities below and above some values.
    """
    x, width = low / 2 + high / 2, high - low
    for _ in range(until.most_steps):
        below, above = split(x)
        excess = np.where(p > 0.5, (1 - p) - above, below - p)
        reached = excess >= -until.slack
        low, high = np.where(reached, low, x), np.where(reached, x, high)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            density = pdf(x)
            step = x - excess / density
        found = _is_settled(x, step, excess, width, density, pdf)
        inside = (step > low) & (step < high)
        before, x = x, np.where(found, x, np.where(inside, step, low / 2 + high / 2))
        closed = high - low <= until.closest * np.spacing(np.maximum(np.abs(low), np.abs(high)))
        if np.all(found | closed | (np.abs(x - before) <= np.spacing(np.abs(x)))):
            break
    return np.asarray(x)


def _is_settled(x: Array, step: Array, excess: Array, width: Array, density: Array, pdf: Function) -> Array:
    """Say where Newton's next step follows no more than the rounding of a probability.

    The density must go on below x: where it does not, the smallest value with this probability lies before a gap.
    """
    near = LAST_STEP * np.maximum(np.abs(x), width)
    moved = np.abs(step - x)
    settled = (moved <= 2 * np.spacing(np.abs(x))) | ((np.abs(excess) <= SLACK) & (moved <= near))
    if settled.any():
        settled[settled] = np.asarray(pdf((x - near)[settled])) > np.asarray(density)[settled] / 2
    return np.asarray(settled)


@dataclass(frozen=True, eq=False)
class Analytic:
    """A distribution that SciPy knows, stretched, shifted and cut to an interval.

    `frozen` has `pdf, logpdf, cdf, sf, ppf, isf, support, mean, std` as SciPy's frozen distributions do; `kinks` are
    the points between which its density is smooth, in its own coordinate.
    """

    frozen: Any
    scale: float = 1.0
    shift: float = 0.0
    low: float = -math.inf
    high: float = math.inf
    kinks: tuple[float, ...] = ()

    @cached_property
    def support(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        ends = sorted(self.shift + self.scale * float(end) for end in self.frozen.support())
        return max(self.low, ends[0]), min(self.high, ends[1])

    @cached_property
    def is_cut(self) -> bool:
        """Whether the interval leaves out values that the whole distribution can take."""
        ends = sorted(self.shift + self.scale * float(end) for end in self.frozen.support())
        return self.support != (ends[0], ends[1])

    @cached_property
    def _middle(self) -> float:
        return float(self.frozen.ppf(0.5))

    @cached_property
    def total(self) -> float:
        """The probability of the interval in the whole distribution."""
        if not self._is_partial:
            return 1.0
        return float(self._between(np.array([self.low]), np.array([self.high]))[0])

    def _between(self, low: Array, high: Array) -> Array:
        """Return probabilities in the whole distribution, from whichever tail keeps their digits."""
        spend(COST_OF_CALL + COST_OF_POINT * np.size(low))
        with np.errstate(over="ignore"):  # a number that is beyond all is infinite in other units
            start, end = (low - self.shift) / self.scale, (high - self.shift) / self.scale
        if self.scale < 0:
            start, end = end, start
        above, share = start > self._middle, np.zeros(np.shape(start))
        if above.any():
            share = self.frozen.sf(start) - self.frozen.sf(end)
        if not above.all():
            share = np.where(above, share, self.frozen.cdf(end) - self.frozen.cdf(start))
        return np.asarray(np.maximum(share, 0.0))

    def pdf(self, x: Array) -> Array:
        """Return the density."""
        places = np.subtract(x, self.shift)
        places /= self.scale
        density = density_of(self.frozen, places)
        density /= abs(self.scale) * self.total  # in place: tables of pairs ask for millions
        if self.low == -math.inf and self.high == math.inf:
            return density
        return np.where((x >= self.low) & (x <= self.high), density, 0.0)

    def logpdf(self, x: Array) -> Array:
        """Return the natural logarithm of the density, which does not vanish where the density underflows."""
        inside = (x >= self.low) & (x <= self.high)
        logs = self.frozen.logpdf((x - self.shift) / self.scale) - math.log(abs(self.scale)) - math.log(self.total)
        return np.where(inside, logs, -np.inf)

    def mass(self, low: Array, high: Array) -> Array:
        """Return the probability of the interval from `low` to `high`."""
        start, end = np.clip(low, *self.support), np.clip(high, *self.support)
        return np.clip(self._between(start, np.maximum(start, end)) / self.total, 0.0, 1.0)

    def quantile(self, p: Array) -> Array:
        """Return the value that is not exceeded with probability p."""
        frozen, p = self.frozen, np.asarray(p, float)
        ends = [(end - self.shift) / self.scale for end in (self.low, self.high)]
        upward = self.scale > 0
        start = ends[0] if upward else ends[1]
        if start > self._middle:
            found = frozen.isf(float(frozen.sf(start)) - (p if upward else 1 - p) * self.total)
        else:
            found = frozen.ppf(float(frozen.cdf(start)) + (p if upward else 1 - p) * self.total)
        return np.asarray(np.clip(self.shift + self.scale * found, *self.support))

    def mean(self) -> float | None:
        """Return the expected value if it is known in closed form; NaN or infinity if there is none."""
        return None if self.is_cut or not self._has_moments else self.shift + self.scale * float(self.frozen.mean())

    def std(self) -> float | None:
        """Return the standard deviation if it is known in closed form."""
        return None if self.is_cut or not self._has_moments else abs(self.scale) * float(self.frozen.std())

    @property
    def _has_moments(self) -> bool:
        return hasattr(self.frozen, "mean")

    @cached_property
    def breaks(self) -> Array:
        """The points between which the density is smooth, infinite ends included."""
        inner = [self.shift + self.scale * kink for kink in self.kinks]
        low, high = self.support
        return np.unique([low, *(kink for kink in inner if low < kink < high), high])

    @cached_property
    def edges(self) -> Array:
        """The panels on which the density is a polynomial but for rounding, as far out as there is probability."""
        return resolved(self.pdf, self.track)[0] if self._is_partial else self._placed(_whole_edges)

    @cached_property
    def track(self) -> Array:
        """Finite edges from which to resolve the density."""
        return followed(self, self.breaks) if self._is_partial else self._placed(_whole_track)

    @property
    def _is_partial(self) -> bool:
        return self.low > -math.inf or self.high < math.inf

    def _placed(self, found: Callable[[Any, tuple[float, ...]], Array]) -> Array:
        """Return points that are found once for all scales and shifts of a distribution."""
        with np.errstate(over="ignore"):
            points = self.shift + self.scale * found(self.frozen, self.kinks)
        return np.unique(points[np.isfinite(points)])

    def affine(self, scale: float, shift: float) -> "Analytic":
        """Return the distribution of a linear function."""
        ends = sorted(shift + scale * end for end in (self.low, self.high))
        return replace(
            self, scale=self.scale * scale, shift=shift + scale * self.shift, low=float(ends[0]), high=float(ends[1])
        )

    def restricted(self, low: float, high: float) -> "Analytic | None":
        """Return the distribution given an interval; None if that has no probability."""
        low, high = max(low, self.low), min(high, self.high)
        if not low < high:
            return None
        part = replace(self, low=low, high=high)
        return part if part.total > 0 and part.support[0] < part.support[1] else None


@lru_cache(maxsize=256)
def _whole_track(frozen: Any, kinks: tuple[float, ...]) -> Array:
    whole = Analytic(frozen, kinks=kinks)
    return followed(whole, whole.breaks)


@lru_cache(maxsize=256)
def _whole_edges(frozen: Any, kinks: tuple[float, ...]) -> Array:
    return resolved(Analytic(frozen, kinks=kinks).pdf, _whole_track(frozen, kinks))[0]


def followed(density: Any, breaks: Array) -> Array:
    """Return finite edges from which to resolve a density: its breaks, some quantiles, and steps into its tails."""
    body = np.asarray(density.quantile(np.array([0.01, 0.1, 0.5, 0.9, 0.99])), float)
    width = max(float(body[-1] - body[0]), np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        steps = width * 2.0 ** np.arange(-1, 1000)
    edges = [*body, *breaks[np.isfinite(breaks)]]
    if np.isinf(breaks[0]):
        edges.extend(_tail(body[0] - steps, lambda x: density.mass(np.full(len(x), -np.inf), x)))
    if np.isinf(breaks[-1]):
        edges.extend(_tail(body[-1] + steps, lambda x: density.mass(x, np.full(len(x), np.inf))))
    return np.unique(edges)


def apart(points: Array) -> Array:
    """Return different points in order; those that only rounding tells apart are one."""
    ordered = np.unique(points)
    noise = 64 * np.spacing(np.abs(ordered).max(initial=0.0))
    return np.asarray(ordered[np.diff(ordered, prepend=-math.inf) > noise])


def united(tracks: Sequence[Array]) -> Array:
    """Return the edges of several densities together, one or two within twice the narrowest panel of any.

    So no density falls between two edges, and those of many that overlap do not crowd.
    """
    ordered = apart(np.concatenate(tracks).astype(float))
    widths = np.concatenate([np.diff(track) for track in tracks]).astype(float)
    narrowest = float(widths[widths > 64 * np.spacing(np.abs(ordered).max())].min(initial=math.inf))
    cells = np.floor((ordered - ordered[0]) / (2 * narrowest))
    return np.asarray(ordered[np.diff(cells, prepend=-1.0) > 0])


def _tail(steps: Array, beyond: Callable[[Array], Array]) -> Array:
    steps = steps[np.abs(steps) < 1e300]
    for first in (steps[:FEW], steps):  # heavy tails alone go on for long
        left = beyond(first) > FARTHEST
        if not left.all():
            return first[: int(np.argmin(left)) + 1]
    return steps


@dataclass(frozen=True, eq=False)
class Tabulated:
    """A density by its values at the nodes of panels, a row of values for each; made to integrate to one.

    `kinks` are the edges at which the density itself is not smooth; `open_ends` says whether it goes on beyond the
    first and the last panel.
    """

    edges: Array
    values: Array
    kinks: tuple[float, ...] = ()
    open_ends: tuple[bool, bool] = (False, False)

    @cached_property
    def _coefficients(self) -> Array:
        raw = coefficients(self.values)
        return np.asarray(raw / (np.diff(self.edges) @ raw[:, 0]))

    @cached_property
    def _columns(self) -> Array:
        return np.ascontiguousarray(self._coefficients.T)

    @cached_property
    def _integrals(self) -> Array:
        """The coefficients of the integral of each panel from its left end, a column for each panel."""
        c = self._coefficients
        shares = c / (2 * np.arange(NODES) + 1)
        result = np.zeros((len(c), NODES + 1))
        result[:, 1:] += shares
        result[:, 0] += c[:, 0]
        result[:, : NODES - 1] -= shares[:, 1:]
        return np.ascontiguousarray((result * (np.diff(self.edges) / 2)[:, np.newaxis]).T)

    @cached_property
    def _panel_mass(self) -> Array:
        return np.asarray(np.diff(self.edges) * self._coefficients[:, 0])

    @cached_property
    def _before(self) -> Array:
        return np.concatenate([[0.0], np.cumsum(self._panel_mass)])

    @cached_property
    def _after(self) -> Array:
        return np.concatenate([np.cumsum(self._panel_mass[::-1])[::-1], [0.0]])

    @property
    def support(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        return float(self.edges[0]), float(self.edges[-1])

    @property
    def breaks(self) -> Array:
        """The points between which the density is smooth, infinite ends included."""
        low, high = np.where(self.open_ends, (-math.inf, math.inf), self.support)
        return np.unique([low, *(kink for kink in self.kinks if self.edges[0] < kink < self.edges[-1]), high])

    @property
    def track(self) -> Array:
        """Finite edges from which to resolve the density."""
        return self.edges

    def pdf(self, x: Array) -> Array:
        """Return the density."""
        x = np.asarray(x, float)
        inside = (x >= self.edges[0]) & (x <= self.edges[-1])
        density = np.zeros(x.shape)
        density[inside] = np.maximum(legendre_values(self._columns, *located(self.edges, x[inside])), 0.0)
        return density

    def logpdf(self, x: Array) -> Array:
        """Return the natural logarithm of the density."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.pdf(x)))

    def mass(self, low: Array, high: Array) -> Array:
        """Return the probability of the interval from `low` to `high`."""
        (before, after), (until, beyond) = self._split(np.asarray(low, float)), self._split(np.asarray(high, float))
        return np.clip(np.where(before > 0.5, after - beyond, until - before), 0.0, 1.0)

    def _split(self, x: Array) -> tuple[Array, Array]:
        """Return the probabilities below and above x."""
        flat = np.clip(x, self.edges[0], self.edges[-1]).reshape(-1)
        panel, t = located(self.edges, flat)
        inner = legendre_values(self._integrals, panel, t)
        below, above = self._before[panel] + inner, self._after[panel + 1] + (self._panel_mass[panel] - inner)
        return below.reshape(x.shape), above.reshape(x.shape)

    def quantile(self, p: Array) -> Array:
        """Return the value that is not exceeded with probability p."""
        p = np.asarray(p, float)
        panel = np.clip(np.searchsorted(self._before, p, side="left") - 1, 0, len(self.edges) - 2)
        return inverted(p, self._split, self.pdf, self.edges[panel], self.edges[panel + 1], PANELS)

    def mean(self) -> float | None:
        """Return the expected value; nothing if the tails go on, for which the panels must be asked."""
        return None if any(self.open_ends) else self._moments[0]

    def std(self) -> float | None:
        """Return the standard deviation; nothing if the tails go on."""
        return None if any(self.open_ends) else self._moments[1]

    @cached_property
    def _moments(self) -> tuple[float, float]:
        nodes, weights = panel_nodes(self.edges)
        masses = np.maximum(self.values, 0.0) * weights
        masses /= masses.sum()
        mean = float(np.sum(masses * nodes))
        unit = float(self.edges[-1] - self.edges[0])  # so that squares neither overflow nor vanish
        return mean, unit * math.sqrt(float(np.sum(masses * ((nodes - mean) / unit) ** 2)))

    def affine(self, scale: float, shift: float) -> "Tabulated":
        """Return the distribution of a linear function."""
        edges, values, ends = self.edges * scale + shift, self.values / abs(scale), self.open_ends
        kinks = tuple(shift + scale * kink for kink in self.kinks)
        if scale < 0:
            return Tabulated(edges[::-1], values[::-1, ::-1], kinks, (ends[1], ends[0]))
        return Tabulated(edges, values, kinks, ends)

    def restricted(self, low: float, high: float) -> "Tabulated | None":
        """Return the distribution given an interval; None if that has no probability."""
        low, high = max(low, self.support[0]), min(high, self.support[1])
        if not low < high or float(self.mass(np.array([low]), np.array([high]))[0]) <= 0:
            return None
        inner = self.edges[(self.edges > low) & (self.edges < high)]
        edges = np.concatenate([[low], inner, [high]])
        nodes = panel_nodes(edges)[0]
        ends = (self.open_ends[0] and low == self.edges[0], self.open_ends[1] and high == self.edges[-1])
        return Tabulated(edges, self.pdf(nodes.reshape(-1)).reshape(nodes.shape), self.kinks, ends)


def tabulate(
    function: Callable[[Array], Array],
    edges: Sequence[float] | Array,
    kinks: Sequence[float] = (),
    open_ends: tuple[bool, bool] = (False, False),
) -> tuple[float, float, Tabulated | None]:
    """Return the integral of a function that is not negative, a bound on its error, and the density it gives."""
    grid, values, error = resolved(function, edges)
    values = np.maximum(values, 0.0)
    total = float(integrals(grid, values).sum())
    return total, error, Tabulated(grid, values, tuple(kinks), open_ends) if total > 0 else None
