"""A normal quantity, given that another one, jointly normal with it, lies in some ranges."""

import math
from collections.abc import Sequence

import numpy as np
import scipy

from privug.inference.conditions import Range
from privug.inference.curve import Curve
from privug.inference.density import tabulate
from privug.model.node import Array

REACH = 9.5  # deviations beyond which a normal density is left out: 2e-21 lies there
NARROW = 2.0  # half a range's width times its distance: up to here 24 nodes integrate a normal density to all digits
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def log_mass(ranges: Sequence[Range], shift: Array, scale: float) -> Array:
    """Return the log of the probability of some ranges for normal variables of the given means and one deviation."""
    if not ranges:
        return np.full(shift.shape, -np.inf)
    logs = [_log_mass(part, shift, scale) for part in ranges]
    return np.asarray(scipy.special.logsumexp(logs, axis=0)) if len(logs) > 1 else logs[0]


def _log_mass(part: Range, shift: Array, scale: float) -> Array:
    low, high = part
    middle, half = ((low / 2 + high / 2) - shift) / scale, (high - low) / 2 / scale
    narrow = half * (1 + np.abs(middle)) <= NARROW
    logs = _wide(part, shift, scale) if not narrow.all() else np.empty(shift.shape)
    if narrow.any():
        logs[narrow] = _narrow(middle[narrow], half)
    return logs


def _wide(part: Range, shift: Array, scale: float) -> Array:
    low, high = part
    start, end = (low - shift) / scale, (high - shift) / scale
    flipped = start > 0  # to the tail in which the distribution function has its digits
    start, end = np.where(flipped, -end, start), np.where(flipped, -start, end)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = scipy.special.log_ndtr(start) - scipy.special.log_ndtr(end)
        return np.asarray(scipy.special.log_ndtr(end) + np.log(-np.expm1(ratio)))


def _narrow(middle: Array, half: float) -> Array:
    """Integrate the density over a narrow range, where the difference of two distribution functions has few digits."""
    if half <= 0:
        return np.full(middle.shape, -np.inf)
    steps = half * _POINTS
    exponents = -np.multiply.outer(middle, steps) - steps**2 / 2
    bends = scipy.special.logsumexp(exponents, b=_WEIGHTS, axis=-1)
    return np.asarray(bends + math.log(half) - middle**2 / 2 - 0.5 * math.log(2 * math.pi))


def truncated(mean: float, sd: float, correlation: float, independence: float, ranges: Sequence[Range]) -> Curve:
    """Return the distribution of a normal quantity, given ranges of a standard normal one.

    `independence` is the root of one minus the squared correlation, which has more digits than that would.
    With t the standardised quantity, its density is that of a standard normal one times
    the probability of the ranges for a mean of `correlation * t` and a deviation of `independence`.
    """
    if correlation == 0 or sd == 0:
        return Curve.normal(mean, sd)
    if independence < 1e-14:
        scaled = [sorted(end / math.copysign(1.0, correlation) for end in part) for part in ranges]
        parts = [Curve.normal(0.0, 1.0).restricted(low, high) for low, high in scaled]
        shares, curves = zip(*((share, curve) for share, curve in parts if curve is not None), strict=True)
        return Curve.mixture(shares, curves).affine(sd, mean)
    edges = np.unique(np.concatenate([_edges(part, correlation, independence) for part in ranges]))

    def log_density(t: Array) -> Array:
        return -0.5 * t**2 + log_mass(ranges, correlation * t, independence)

    largest = float(log_density(np.linspace(edges[0], edges[-1], 4096)).max())
    total, error, table = tabulate(lambda t: np.exp(log_density(t) - largest), edges, (), (True, True))
    assert table is not None
    return Curve(((1.0, table),), error=error / total).affine(sd, mean)


def _edges(part: Range, correlation: float, independence: float) -> Array:
    """Return where to look for a quantity, given a range of the other: panels as wide as its own spread there."""
    low, high = (float(end) for end in part)
    # Within the range, the other quantity stays near the end closer to zero: its density falls off quickly.
    nearest = min(max(0.0, low), high)
    depth = REACH**2 / max(REACH, abs(nearest)) + 1.0
    low, high = max(low, nearest - depth), min(high, nearest + depth)
    ends = sorted(correlation * end for end in (low, high))
    start, stop = ends[0] - REACH * independence, ends[1] + REACH * independence
    inner = [end + k * independence for end in ends for k in (-REACH, -3.0, 0.0, 3.0, REACH)]
    return np.unique([*np.linspace(start, stop, 17), *inner])
