"""Entropies and informations of continuous samples from distances to nearest neighbours, on plain arrays.

Every estimator takes one row for each sample (a plain array, or one with a column for each coordinate) and returns its
value in bits with each sample's contribution, whose mean it is. Distances are maximum norms over coordinates. What
does not change under shifts and changes of scale is computed on coordinates of deviation one, so units do not matter.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy

from privug import settings
from privug.arguments import shown
from privug.errors import ArgumentError, TooFewSamples
from privug.inference.intervals import student
from privug.model.node import Array

Contributions = tuple[float, Array]
LEAF = 16  # points in a leaf of a search tree; with boxes split in the middle the fastest, measured on a million


def point_information(left: Array, right: Array, k: int) -> Contributions:
    """Mutual information of quantities with atoms and densities at once (Gao, Kannan, Oh and Viswanath, 2017).

    I = log n + mean(psi(k) - psi(n_x + 1) - psi(n_y + 1)), where n_x and n_y count the samples that are closer on the
    left, or on the right, than the k-th neighbour on both; a sample whose k-th neighbour is equal to it counts its
    equals instead of k. Without atoms that is the first estimator of Kraskov, Stögbauer and Grassberger (Phys. Rev. E
    69, 066138, 2004) but for log n in the place of psi(n). May come out below zero. Its bias is towards zero (safer
    than the truth) when the relation is finer than the distance between samples. Coordinates are taken as they stand,
    a row for each sample. Advances in Neural Information Processing Systems 30.

    >>> rng = np.random.default_rng(0)
    >>> x, noise = rng.normal(size=(2, 20_000, 1))
    >>> value, _ = point_information(x, x + noise, 3)  # a half bit
    >>> abs(value - 0.5) < 0.02
    True
    """
    radius, equals = neighbour_distance(np.hstack((left, right)), k)
    reach = np.where(radius == 0, equals, k)
    psi = scipy.special.digamma
    terms = psi(reach) + math.log(len(left)) - psi(closer(left, radius)) - psi(closer(right, radius))
    return _in_bits(terms)


def labelled_information(labels: Array, y: Array, k: int = 3) -> Contributions:
    """Mutual information of a discrete and a continuous quantity (Ross, 2014).

    I = psi(n) + mean(psi(k_i) - psi(n_i) - psi(m_i)): n_i samples share the label, m_i lie closer than the k_i-th
    neighbour among them. Labels that occur once say nothing and are left out. PLoS ONE 9(2), e87357.
    """
    codes = np.unique(labels, return_inverse=True)[1].reshape(-1)
    points = _standardised(y)
    _check(points, k, fewest=2)
    if len(codes) != len(points):
        raise ArgumentError(f"the two sides must come in pairs, but there are {len(codes)} and {len(points)} samples")
    counts = np.bincount(codes)[codes]
    kept = counts > 1
    if not kept.any():
        raise TooFewSamples("labelled_information: no label occurs twice, so nothing can be said of its neighbours")
    codes, points, counts = codes[kept], points[kept], counts[kept]
    reach = np.minimum(k, counts - 1)
    radius = _distance_within(codes, points, reach)
    psi = scipy.special.digamma
    terms = psi(len(codes)) + psi(reach) - psi(counts) - psi(closer(points, radius))
    return _in_bits(terms)


def kozachenko_leonenko(x: Array, k: int = 3) -> Contributions:
    """Differential entropy from the distance to the k-th neighbour (Kozachenko and Leonenko, 1987).

    h = psi(n) - psi(k) + d mean(log(2 r)) for distances r in d dimensions; minus infinite if some value occurs more
    than k times, as an atom has no density. Its bias is upwards near sharp edges. Probl. Inf. Transm. 23, 95.

    >>> rng = np.random.default_rng(1)
    >>> value, _ = kozachenko_leonenko(rng.uniform(0, 8, 20_000))  # three bits
    >>> abs(value - 3) < 0.02
    True
    """
    points, scales = _normalised(x)
    _check(points, k)
    radius, _ = neighbour_distance(points, k)
    with np.errstate(divide="ignore"):
        logarithms = points.shape[1] * np.log(2 * radius) + scales.sum() * math.log(2)
    psi = scipy.special.digamma
    return _in_bits(psi(len(points)) - psi(k) + logarithms)


def knn_divergence(p_samples: Array, q_samples: Array, k: int = 5) -> Contributions:
    """Kullback-Leibler divergence D(P || Q) from samples of both (Wang, Kulkarni and Verdú, 2009).

    D = d mean(log(s / r)) + log(m / (n - 1)) for the distances r and s of each sample of P to its k-th neighbour in P
    and in Q. A sample at an atom compares the shares of its equals: infinite if Q has none. May come out below zero;
    too small (safer than the truth) where Q has hardly any samples. IEEE Trans. Inf. Theory 55, 2392.
    """
    first, second = _columns(p_samples), _columns(q_samples)
    if first.shape[1] != second.shape[1]:
        raise ArgumentError(
            f"knn_divergence: both sides need as many coordinates, not {first.shape[1]} and {second.shape[1]}"
        )
    _check(first, k)
    _check(second, k, fewest=k)
    both = _standardised(np.vstack((first, second)))
    inner, outer = both[: len(first)], both[len(first) :]
    own, equals = neighbour_distance(inner, k)
    foreign, matches = _distance_to(inner, outer, k)
    atom = (own == 0) | (foreign == 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        density = first.shape[1] * np.log(foreign / own) + math.log(len(second) / (len(first) - 1))
        shares = np.log(equals / matches * (len(second) / len(first)))
    return _in_bits(np.where(atom, shares, density))


def neighbour_distance(points: Array, k: int) -> tuple[Array, Array]:
    """Return each row's distance to its k-th nearest other row, and how many rows equal it, itself included."""
    if points.shape[1] == 1:
        return _distance_on_line(points[:, 0], k)
    distinct, inverse, counts = _distinct_rows(points)
    if len(distinct) < len(points):
        distance, rows = _nearest(distinct, distinct, range(1, min(k + 1, len(distinct)) + 1))
        return _passing(distance, counts[rows], k + 1)[inverse], counts[inverse]
    return _nearest(distinct, distinct, [k + 1])[0][inverse, 0], counts


def closer(points: Array, radius: Array) -> Array:
    """Return how many rows lie closer to each row than its radius, or equal it; itself included."""
    within = np.nextafter(radius, 0)
    if points.shape[1] > 1:
        tree = scipy.spatial.cKDTree(points)
        workers = settings.current().workers
        return np.asarray(tree.query_ball_point(points, within, p=np.inf, return_length=True, workers=workers))
    line = points[:, 0]
    order = np.argsort(line)
    centres = line[order]
    values, before = _steps(centres)
    counts = np.empty(len(line), np.int64)
    counts[order] = _reached(values, before, centres, within[order])
    return counts


def _reached(values: Array, before: Array, centres: Array, within: Array) -> Array:
    """Count by two binary searches for the ends, set right where rounding misplaced an end."""
    low = np.searchsorted(values, centres - within, "left")
    high = np.searchsorted(values, centres + within, "right")
    last = len(values) - 1
    while len(wrong := np.flatnonzero((low > 0) & (centres - values[np.maximum(low - 1, 0)] <= within))):
        low[wrong] -= 1
    while len(wrong := np.flatnonzero(centres - values[np.minimum(low, last)] > within)):
        low[wrong] += 1
    while len(wrong := np.flatnonzero((high <= last) & (values[np.minimum(high, last)] - centres <= within))):
        high[wrong] += 1
    while len(wrong := np.flatnonzero(values[high - 1] - centres > within)):
        high[wrong] -= 1
    return np.asarray(before[high] - before[low])


def _steps(ordered: Array) -> tuple[Array, Array]:
    """Return the distinct values of a sorted array and how many entries stand before each, and in all."""
    new = np.flatnonzero(np.diff(ordered, prepend=-np.inf))
    return ordered[new], np.append(new, len(ordered))


def _distance_on_line(line: Array, k: int) -> tuple[Array, Array]:
    """Nearest neighbours in one dimension stand next to each other in the sorted array."""
    order = np.argsort(line)
    nearest = _window_distance(line[order], np.zeros(len(line), np.int64), k)
    _, before = _steps(line[order])
    sizes = np.diff(before)
    distance, equals = np.empty(len(line)), np.empty(len(line), np.int64)
    distance[order], equals[order] = nearest, np.repeat(sizes, sizes)
    return distance, equals


def _window_distance(ordered: Array, groups: Array, k: int) -> Array:
    """Return the distance to the k-th neighbour in the same group, for values sorted by group and value.

    The k neighbours and the value itself fill a window of k + 1: of those that hold the value, the tightest.
    """
    samples = len(ordered)
    distance = np.full(samples, np.inf)
    starts = np.flatnonzero(groups[k:] == groups[: samples - k])
    for offset in range(k + 1):
        centre = ordered[starts + offset]
        reach = np.maximum(centre - ordered[starts], ordered[starts + k] - centre)
        distance[starts + offset] = np.minimum(distance[starts + offset], reach)
    return distance


def _distance_within(codes: Array, points: Array, reach: Array) -> Array:
    """Return the distance to the neighbour among rows of the same code whose place `reach` gives, a row at a time."""
    radius = np.empty(len(codes))
    if points.shape[1] > 1:
        # Codes apart by more than any distance keep the neighbours of each code together.
        apart = 4 * float(np.ptp(points, axis=0).max()) + 1
        spread = np.column_stack((codes * apart, points))
        for place in np.unique(reach):
            chosen = reach == place
            radius[chosen] = neighbour_distance(spread[chosen], int(place))[0]
        return radius
    order = np.lexsort((points[:, 0], codes))
    line, groups, places = points[order, 0], codes[order], reach[order]
    for place in np.unique(places):
        chosen = places == place
        radius[order[chosen]] = _window_distance(line[chosen], groups[chosen], int(place))
    return radius


def _distinct_rows(points: Array) -> tuple[Array, Array, Array]:
    """Return the distinct rows in order of the first coordinate, each row's place among them, and their counts.

    The order keeps neighbours together in memory, which makes a search tree twice as fast.
    """
    order = np.argsort(points[:, 0])
    if not np.any(np.diff(points[order, 0]) == 0):
        inverse = np.empty(len(points), np.int64)
        inverse[order] = np.arange(len(points))
        return points[order], inverse, np.ones(len(points), np.int64)
    order = np.lexsort(points.T[::-1])
    ordered = points[order]
    new = np.append(True, np.any(ordered[1:] != ordered[:-1], axis=1))
    inverse = np.empty(len(points), np.int64)
    inverse[order] = np.cumsum(new) - 1
    return ordered[new], inverse, np.bincount(inverse)


def _distance_to(points: Array, others: Array, k: int) -> tuple[Array, Array]:
    """Return each row's distance to its k-th nearest other, and how many of the others equal it."""
    distinct, _, counts = _distinct_rows(others)
    distance, rows = _nearest(distinct, points, range(1, min(k, len(distinct)) + 1))
    return _passing(distance, counts[rows], k), np.where(distance[:, 0] == 0, counts[rows[:, 0]], 0)


def _nearest(rows: Array, points: Array, wanted: Sequence[int]) -> tuple[Array, Array]:
    """Return the distances from each point to the wanted ones of its nearest rows, and which they are."""
    tree = scipy.spatial.cKDTree(rows, LEAF, compact_nodes=False, balanced_tree=False)
    distance, which = tree.query(points, wanted, p=np.inf, workers=settings.current().workers)
    return np.asarray(distance), np.asarray(which)


def _passing(distance: Array, counts: Array, k: int) -> Array:
    """Return the distance at which the samples counted so far reach k."""
    place = np.argmax(np.cumsum(counts, axis=1) >= k, axis=1)[:, np.newaxis]
    return np.asarray(np.take_along_axis(distance, place, axis=1)[:, 0])


def _columns(values: Array) -> Array:
    array = np.asarray(values, float)
    points = array.reshape(len(array), -1)
    if not np.all(np.isfinite(points)):
        raise ArgumentError("distances need finite numbers, but some samples are infinite or not a number")
    return points


def check_neighbours(k: Any, what: str = "") -> None:
    """Refuse what is no number of neighbours."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ArgumentError(f"{what}k must be a positive whole number of neighbours, not {shown(k)}")


def _check(points: Array, k: int, fewest: int | None = None) -> None:
    check_neighbours(k)
    needed = k + 1 if fewest is None else fewest
    if len(points) < needed:
        raise TooFewSamples(f"{k} neighbours need at least {needed} samples, but there are {len(points)}")


def _standardised(values: Array) -> Array:
    return _normalised(values)[0]


def _normalised(values: Array) -> tuple[Array, Array]:
    """Return coordinates with median zero and deviation one, and the logarithms of the scales taken out.

    Powers of two go first: they change no digit and keep squares from overflowing or vanishing.
    """
    points, first = _unit_size(_columns(values))
    points, second = _unit_size(points - np.median(points, axis=0))
    deviation = np.where(np.any(points != 0, axis=0), points.std(axis=0), 1.0)
    return points / deviation, first + second + np.log2(deviation)


def _unit_size(points: Array) -> tuple[Array, Array]:
    exponents = np.frexp(np.abs(points).max(axis=0))[1]
    return np.ldexp(points, -exponents), exponents


def _in_bits(nats: Array) -> Contributions:
    bits = nats / math.log(2)
    return float(bits.mean()), bits


Estimator = Callable[[int], Contributions]
"""From a number of neighbours to a value and each sample's contribution."""

# Measured on normal, uniform, exponential and Cauchy quantities with noise, from independent to correlation 0.999.
DRIFT = 3.0  # variance of the change from k to 4k neighbours, times k and samples, in squared bits: 2.4 to 3.4
LABEL_DRIFT = 1.0  # the same among samples of one label: 0.2 to 1.9
OVERLAP = 4 / 3  # contributions vary together, by this part of what their variance falls from k to 4k neighbours
TAILS = 0.25  # bias in tails that no drift shows, relative to the information times the root of k over samples
MORE = 8  # times the least number of neighbours that are tried
ROOM = 40  # samples for each neighbour that are needed to try more
WORK = 600_000  # samples times neighbours up to which more are tried


@dataclass(frozen=True)
class Settled:
    """A value with its interval, the number of neighbours that was settled on, and the contributions there."""

    value: float
    low: float
    high: float
    k: int
    terms: Array


def settled(
    estimator: Estimator, least: int, samples: int, *, dimension: int = 2, more: int = MORE, noise: float = DRIFT
) -> Settled:
    """Take as many neighbours as show no drift, from least to so many times more; give value and 95 % interval.

    `noise` is the variance of the drift where there is none, times neighbours and samples.
    """
    at = cache(estimator)

    def drift(neighbours: int) -> float:
        return at(neighbours)[0] - at(4 * neighbours)[0]

    def steady(neighbours: int) -> bool:
        return abs(drift(neighbours)) <= 1.5 * math.sqrt(noise / (neighbours * samples))

    k, most = least * more, min(samples // ROOM, WORK // samples)
    while k > least and (k > most or not steady(k)):
        k //= 2
    value, terms = at(k)
    fall = max(0.0, float(terms.var()) - float(at(4 * k)[1].var()))
    variance = (float(terms.var()) + OVERLAP * fall) / samples + (TAILS * value) ** 2 * k / samples
    stretch = 1 / (4 ** (1 / dimension) - 1)
    reach, near = drift(k) * stretch, student(samples - 1) * math.sqrt(variance)
    far = student(samples - 1) * math.sqrt(variance + noise / (k * samples) * stretch**2)
    middle = value if steady(k) else value + reach / 2
    low, high = min(value - near, value + reach - far), max(value + near, value + reach + far)
    return Settled(middle, min(low, middle), max(high, middle), k, terms)


def finest(k: int, samples: int) -> float:
    """Return about the most information that neighbours can show: that of an increasing function, in bits."""
    psi = scipy.special.digamma
    return float(psi(samples) - psi(np.float64(k))) / math.log(2)
