"""Distributions by the logarithms of their probabilities: of a range, and once more after each value got a weight.

That is all that independent quantities need which are compared with each other: eliminating one gives the others a
weight, and what is weighted is such a distribution again. Integrals keep all relative digits however small they are:
panels of Gauss-Legendre nodes begin at kinks and are halved until two rules agree.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy

from privug.model.node import Array, Node
from privug.prior.choice import constant_value
from privug.prior.family import Family, family_of
from privug.prior.scalar import Kernel, ScalarFamily

NODES = 24
SAME = 1e-13  # by how much two rules on one panel may differ, relative to it
NEGLIGIBLE = 50.0  # a panel whose logarithm lies so far below that of the largest one is left as it is
MOST_PANELS = 40_000
DOUBLINGS = 64  # of the distance to the outermost kink: beyond 1e16 scales even Cauchy's tails are gone

LogFunction = Callable[[Array], Array]


class Unintegrable(Exception):
    """An integral takes more panels than can be afforded."""


@lru_cache(maxsize=1)
def _rule() -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return (nodes + 1) / 2, np.log(weights / 2)


def log_sum(logs: Array, axis: int = -1) -> Array:
    """Return the logarithm of a sum of numbers given by their logarithms; that of nothing is minus infinity."""
    largest = np.max(logs, axis=axis, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logs - shift).sum(axis=axis)) + np.squeeze(shift, axis))


def log_difference(large: Array, small: Array) -> Array:
    """Return the logarithm of the difference of two numbers given by their logarithms, zero where it is negative."""
    with np.errstate(divide="ignore", invalid="ignore"):
        less = np.where(np.isneginf(small), 0.0, np.exp(np.minimum(small - large, 0.0)))
        return np.asarray(np.where(np.isneginf(large), -np.inf, large + np.log1p(-less)))


def log_integrals(function: LogFunction, low: Array, high: Array) -> Array:
    """Return the logarithms of the integrals over some stretches, each by one rule; empty ones have none."""
    nodes, log_weights = _rule()
    width = np.maximum(high - low, 0.0)
    points = low[:, np.newaxis] + width[:, np.newaxis] * nodes
    logs = function(points.reshape(-1)).reshape(points.shape)
    with np.errstate(divide="ignore"):
        return np.asarray(log_sum(logs + log_weights) + np.log(width))


@dataclass(frozen=True)
class IntegrationRange:
    """Where a function is integrated: its kinks, its ends, which may be infinite, and how wide its features are.

    Panels go so far out that what is left out is smaller by a factor of exp(-reach), and at least as far as the places
    to `cover`. What is smaller than the largest panel by a factor of exp(-negligible) is not looked at any closer.
    """

    kinks: Array
    ends: tuple[float, float]
    scale: float
    cover: tuple[float, ...] = ()
    reach: float = 2 * NEGLIGIBLE
    negligible: float = NEGLIGIBLE

    def edges(self, function: LogFunction) -> Array:
        """Return the kinks between the ends, and edges at growing distances from the outermost ones."""
        inner = np.unique(np.clip(self.kinks[np.isfinite(self.kinks)], *self.ends))
        steps = self.scale * 2.0 ** np.arange(-1, DOUBLINGS)
        below, above = inner[0] - steps, inner[-1] + steps
        edges = np.unique(np.concatenate([below, inner, above, self.ends, self.cover]))
        edges = edges[np.isfinite(edges) & (edges >= self.ends[0]) & (edges <= self.ends[1])]
        with np.errstate(divide="ignore"):
            heights = function(np.concatenate([edges, edges[:-1] + np.diff(edges) / 2]))
            at, between = heights[: len(edges)], heights[len(edges) :]
            sizes = np.maximum(np.maximum(at[:-1], at[1:]), between) + np.log(np.diff(edges))
        there = np.flatnonzero(sizes >= np.max(sizes) - self.reach)
        needed = np.clip(np.concatenate([inner, self.cover]), *self.ends)
        first = min(there[0] - 1, np.searchsorted(edges, needed.min()))
        last = max(there[-1] + 2, np.searchsorted(edges, needed.max()))
        return np.asarray(edges[max(0, first) : last + 1])


def panels(function: LogFunction, outline: IntegrationRange) -> tuple[Array, Array]:
    """Return the edges of panels, and the logarithms of the integrals over them."""
    edges = outline.edges(function)
    low, high = edges[:-1], edges[1:]
    whole = log_integrals(function, low, high)
    starts, logs, largest = [np.empty(0)], [np.empty(0)], -np.inf
    while len(low):
        middle = low + (high - low) / 2
        left, right = log_integrals(function, low, middle), log_integrals(function, middle, high)
        both = np.logaddexp(left, right)
        largest = max(largest, float(np.max(both)))
        with np.errstate(invalid="ignore"):
            fine = np.abs(whole - both) <= SAME + 4 * np.spacing(np.abs(both))
        fine |= (both < largest - outline.negligible) | np.isneginf(both)
        fine |= high - low <= 8 * np.spacing(np.maximum(np.abs(low), np.abs(high)))
        starts.append(low[fine])
        logs.append(both[fine])
        low, high = np.concatenate([low[~fine], middle[~fine]]), np.concatenate([middle[~fine], high[~fine]])
        whole = np.concatenate([left[~fine], right[~fine]])
        if sum(map(len, starts)) + len(low) > MOST_PANELS:
            raise Unintegrable("quantities that are compared lie too far apart, or have too many steps")
    order = np.argsort(np.concatenate(starts))
    return np.append(np.concatenate(starts)[order], edges[-1]), np.concatenate(logs)[order]


EXPONENT = 700.0  # values rarer than exp(-700) are left out: doubles end there
MOST_VALUES = 200_000
FEWEST_DIGITS = 60.0  # of the exponent, if so many values would be too many
FAR = 1e-300
DIGITS = 30.0  # of an exponent: what is left out beyond is negligible beside what is not
QUARTERS = np.array([0.25, 0.5, 0.75])

Ends = tuple[float, float]


class LogLaw(ABC):
    """A finite measure on numbers."""

    listed: bool
    """Whether single numbers have a probability."""
    trusted: float = -np.inf
    """The logarithm of a probability below which it may be wrong, because far tails are left out or underflow."""

    @property
    @abstractmethod
    def kinks(self) -> Array:
        """The numbers at which the probability of a range is not smooth in its ends."""

    @abstractmethod
    def log_mass(self, low: Array, high: Array) -> Array:
        """Return the logarithms of the measures of closed ranges."""

    @abstractmethod
    def restricted(self, low: float, high: float) -> "LogLaw":
        """Return the measure inside a closed range alone."""

    @abstractmethod
    def weighted(self, log_weight: LogFunction, kinks: Array, cover: tuple[float, ...] = ()) -> "LogLaw":
        """Return the measure times a function that has kinks; ranges are to be told from within `cover` at least."""

    @property
    @abstractmethod
    def ends(self) -> Ends:
        """Where the numbers begin and end."""

    @property
    def log_total(self) -> float:
        """The logarithm of the measure of all numbers."""
        return float(self.log_mass(np.array([-np.inf]), np.array([np.inf]))[0])


@dataclass(frozen=True, eq=False)
class ListedLogLaw(LogLaw):
    """Numbers in order, each with the logarithm of its probability."""

    values: Array
    logs: Array
    trusted: float = -np.inf
    listed = True

    @property
    def ends(self) -> Ends:
        if not len(self.values):
            return math.inf, -math.inf
        # Beyond values as rare as these, others were left out.
        low, high = self.logs[[0, -1]] < self.trusted
        return -math.inf if low else float(self.values[0]), math.inf if high else float(self.values[-1])

    @property
    def kinks(self) -> Array:
        return self.values

    @cached_property
    def _sums(self) -> tuple[Array, Array]:
        below = np.concatenate([[-np.inf], np.logaddexp.accumulate(self.logs)])
        above = np.concatenate([np.logaddexp.accumulate(self.logs[::-1])[::-1], [-np.inf]])
        return below, above

    def log_mass(self, low: Array, high: Array) -> Array:
        first, last = np.searchsorted(self.values, low, "left"), np.searchsorted(self.values, high, "right")
        below, above = self._sums
        last = np.maximum(first, last)
        upper = above[first] < below[last]
        parts = np.where(upper, log_difference(above[first], above[last]), log_difference(below[last], below[first]))
        return np.asarray(parts)

    def restricted(self, low: float, high: float) -> "ListedLogLaw":
        return self.chosen((self.values >= low) & (self.values <= high))

    def chosen(self, there: Array) -> "ListedLogLaw":
        """Return the measure of some of the numbers alone."""
        return ListedLogLaw(self.values[there], self.logs[there], self.trusted)

    def weighted(self, log_weight: LogFunction, kinks: Array, cover: tuple[float, ...] = ()) -> "ListedLogLaw":
        return ListedLogLaw(self.values, self.logs + log_weight(self.values), self.trusted)


@dataclass(frozen=True, eq=False)
class Known(LogLaw):
    """A distribution with a density that SciPy knows, between two ends."""

    distribution: Any
    bends: tuple[float, ...]
    support: Ends
    between: Ends
    scale: float
    far: Ends
    """Where all but a probability of 1e-300 on each side lies."""
    trusted: float = -np.inf
    listed = False

    @property
    def ends(self) -> Ends:
        return self.between

    @property
    def kinks(self) -> Array:
        return np.array([*self.bends, *self.ends])

    def log_density(self, x: Array) -> Array:
        """Return the logarithm of the density."""
        with np.errstate(divide="ignore"):
            logs = np.asarray(self.distribution.logpdf(x))
        return np.where((x >= self.ends[0]) & (x <= self.ends[1]), logs, -np.inf)

    def log_mass(self, low: Array, high: Array) -> Array:
        low, high = np.maximum(low, self.ends[0]), np.minimum(high, self.ends[1])
        with np.errstate(divide="ignore"):
            if np.all(low == self.support[0]):
                return np.where(low < high, self.distribution.logcdf(high), -np.inf)
            if np.all(high == self.support[1]):
                return np.where(low < high, self.distribution.logsf(low), -np.inf)
            up_to, from_ = self.distribution.logcdf(high), self.distribution.logsf(low)
            # From the nearer end, so that small probabilities keep their digits.
            above = log_difference(from_, self.distribution.logsf(high))
            below = log_difference(up_to, self.distribution.logcdf(low))
        return np.where(low < high, np.where(from_ < up_to, above, below), -np.inf)

    def restricted(self, low: float, high: float) -> "Known":
        return replace(self, between=(max(low, self.ends[0]), min(high, self.ends[1])))

    def weighted(self, log_weight: LogFunction, kinks: Array, cover: tuple[float, ...] = ()) -> LogLaw:
        if not self.ends[0] < self.ends[1]:
            return ListedLogLaw(np.empty(0), np.empty(0))
        return Panelled(
            lambda x: self.log_density(x) + log_weight(x),
            IntegrationRange(np.concatenate([self.kinks, kinks]), self.ends, self.scale, cover),
        )


@dataclass(frozen=True, eq=False)
class Panelled(LogLaw):
    """A density that is integrated on panels."""

    log_density: LogFunction
    outline: IntegrationRange
    listed = False

    @property
    def ends(self) -> Ends:
        return self.outline.ends

    @property
    def kinks(self) -> Array:
        return self.outline.kinks

    @cached_property
    def _panels(self) -> tuple[Array, Array]:
        return panels(self.log_density, self.outline)

    @cached_property
    def _closely(self) -> tuple[Array, Array, Array]:
        """The edges of panels with the measures below and above each; far tails have their digits, too."""
        edges, logs = panels(self.log_density, replace(self.outline, reach=2 * EXPONENT, negligible=math.inf))
        below = np.concatenate([[-np.inf], np.logaddexp.accumulate(logs)])
        above = np.concatenate([np.logaddexp.accumulate(logs[::-1])[::-1], [-np.inf]])
        return edges, below, above

    @property
    def log_total(self) -> float:
        return float(log_sum(self._panels[1]))

    def log_mass(self, low: Array, high: Array) -> Array:
        edges = self._closely[0]
        low, high = (np.clip(end, edges[0], edges[-1]) for end in (low, high))
        if np.all(low == edges[0]):
            return np.where(low < high, self._below(high), -np.inf)
        if np.all(high == edges[-1]):
            return np.where(low < high, self._above(low), -np.inf)
        above = log_difference(self._above(low), self._above(high))
        below = log_difference(self._below(high), self._below(low))
        return np.where(low < high, np.where(self._above(low) < self._below(high), above, below), -np.inf)

    def _below(self, x: Array) -> Array:
        edges, below, _ = self._closely
        panel = np.clip(np.searchsorted(edges, x, "right") - 1, 0, len(edges) - 2)
        return np.logaddexp(below[panel], log_integrals(self.log_density, edges[panel], x))

    def _above(self, x: Array) -> Array:
        edges, _, above = self._closely
        panel = np.clip(np.searchsorted(edges, x, "right") - 1, 0, len(edges) - 2)
        return np.logaddexp(above[panel + 1], log_integrals(self.log_density, x, edges[panel + 1]))

    def restricted(self, low: float, high: float) -> LogLaw:
        raise NotImplementedError  # what is known of a quantity alone is known before it is weighted

    def weighted(self, log_weight: LogFunction, kinks: Array, cover: tuple[float, ...] = ()) -> "Panelled":
        raise NotImplementedError  # all weights of a quantity come at once


@dataclass(frozen=True)
class Laplace:
    """Laplace's distribution with all digits of far tails, by SciPy's names."""

    loc: float
    scale: float

    def logpdf(self, x: Array) -> Array:
        """Return the log of the density."""
        return np.asarray(-np.abs(x - self.loc) / self.scale - np.log(2 * self.scale))

    def logcdf(self, x: Array) -> Array:
        """Return the log of the probability of values up to some."""
        z = (x - self.loc) / self.scale
        return np.where(z < 0, z - np.log(2), np.log1p(-0.5 * np.exp(-np.maximum(z, 0.0))))

    def logsf(self, x: Array) -> Array:
        """Return the log of the probability of values above some."""
        return self.logcdf(2 * self.loc - x)


@dataclass(frozen=True)
class FarNormal:
    """The normal distribution with all digits of far tails, by SciPy's names."""

    mean: float
    sd: float

    def logpdf(self, x: Array) -> Array:
        """Return the log of the density."""
        return np.asarray(-0.5 * ((x - self.mean) / self.sd) ** 2 - np.log(self.sd * np.sqrt(2 * np.pi)))

    def logcdf(self, x: Array) -> Array:
        """Return the log of the probability of values up to some."""
        return np.asarray(scipy.special.log_ndtr((x - self.mean) / self.sd))

    def logsf(self, x: Array) -> Array:
        """Return the log of the probability of values above some."""
        return np.asarray(scipy.special.log_ndtr((self.mean - x) / self.sd))


def law_of(draw: Node) -> LogLaw | None:
    """Return the distribution of a draw of single numbers whose parameters are known; None if there is none."""
    if draw.shape or any(parent.is_random or parent.parents for parent in draw.parents):
        return None
    family, parameters = family_of(draw), [constant_value(parent) for parent in draw.parents]
    if family.listable:
        return _listed(family, [np.asarray(parameter)[np.newaxis] for parameter in parameters])
    return _known(family, *map(float, parameters)) if isinstance(family, ScalarFamily) else None


def _listed(family: Family, parameters: list[Array]) -> ListedLogLaw | None:
    exponent = EXPONENT
    while family.sizes(parameters, exponent).max() > MOST_VALUES:
        exponent /= 2
        if exponent < FEWEST_DIGITS:
            return None
    support = family.support(parameters, 1, exponent)
    order = np.argsort(support.values, kind="stable")
    with np.errstate(divide="ignore"):
        logs = np.log(support.probabilities[order])
    trusted = DIGITS - exponent if family.is_cut(parameters) else -np.inf
    return ListedLogLaw(support.values[order].astype(float), logs, trusted)


@lru_cache(maxsize=1024)
def _known(family: ScalarFamily, *parameters: float) -> Known:
    distribution = family.frozen(*parameters)
    low, middle, high = (float(x) for x in distribution.ppf(QUARTERS))
    first, last = (float(end) for end in distribution.support())
    far = float(distribution.ppf(FAR)), float(distribution.isf(FAR))
    exact = family.gaussian or family.kernel is Kernel.TWO_SIDED_EXPONENTIAL
    if exact:
        distribution = FarNormal(*parameters) if family.gaussian else Laplace(*parameters)
    # Where the density begins and ends with a jump, no probability is too small for floats.
    exact = exact or (family.finite_at_ends and math.isfinite(last - first))
    trusted = -np.inf if exact else DIGITS - EXPONENT
    bends = middle, *family.kinks(*parameters)
    return Known(distribution, bends, (first, last), (first, last), (high - low) / 2, far, trusted)
