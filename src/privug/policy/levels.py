"""What the attacker believes after each output: one number for each, with intervals that hold for all of them."""

from typing import NamedTuple

import numpy as np
import scipy

from privug.estimate import ROUNDING, UNDERFLOW, Estimate
from privug.leakage.finite import Pairs
from privug.model.node import Array
from privug.policy.confidence import error_allowed


class Levels(NamedTuple):
    """One number for each output, with an interval; all intervals hold together with the stated confidence."""

    value: Array
    low: Array
    high: Array

    def at(self, place: int, pairs: Pairs) -> Estimate:
        """Return the number for one output."""
        value, low, high = (float(numbers[place]) for numbers in self)
        method = "exact" if pairs.exact else f"{pairs.method}, all outputs together"
        return Estimate(value, low, high, method=method, exact=pairs.exact)

    def clipped(self) -> "Levels":
        """Return the same levels, each within its own interval."""
        return Levels(self.value, np.minimum(self.low, self.value), np.maximum(self.high, self.value))


def share_of(wanted: Array, pairs: Pairs, error: float = 0.0) -> Levels:
    """Return the probability of some of the secrets given each output: `wanted` says for each secret whether it counts.

    Of samples the intervals are those of Clopper and Pearson on the effective number of samples behind each output,
    divided among the outputs (Bonferroni). An `error` of exact probabilities counts the more the rarer an output is.
    """
    hits = np.bincount(pairs.output, pairs.probability * wanted[pairs.secret], len(pairs.outputs))
    return _with_interval(hits / pairs.marginal, pairs, error, len(pairs.outputs), len(pairs.outputs))


def largest_share(pairs: Pairs, error: float = 0.0) -> Levels:
    """Return the probability of the likeliest secret given each output.

    The low end allows for having chosen the likeliest of all pairs; the high end need not, as the likeliest secret in
    truth was seen at most as often.
    """
    largest = np.maximum.reduceat(pairs.probability, pairs.starts) / pairs.marginal
    return _with_interval(largest, pairs, error, len(pairs.secret), len(pairs.outputs))


def _with_interval(share: Array, pairs: Pairs, error: float, looks_below: int, looks_above: int) -> Levels:
    share = np.clip(share, 0.0, 1.0)
    if pairs.exact:
        lost = UNDERFLOW / pairs.marginal
        doubt = 2 * (error / pairs.marginal + np.where(lost > ROUNDING, lost, 0.0))  # elsewhere zero is zero
        return Levels(share, np.maximum(share - doubt, 0.0), np.minimum(share + doubt, 1.0))
    samples = pairs.marginal**2 / np.add.reduceat(pairs.squares, pairs.starts)
    hits, misses, tail = share * samples, (1 - share) * samples, error_allowed() / 2
    low = np.where(hits > 0, scipy.special.betaincinv(np.maximum(hits, 1e-300), misses + 1, tail / looks_below), 0.0)
    above = scipy.special.betaincinv(hits + 1, np.maximum(misses, 1e-300), 1 - tail / looks_above)
    return Levels(share, low, np.where(misses > 0, above, 1.0)).clipped()


def difference(after: Levels, before: Estimate) -> Levels:
    """Return by how much each output changes a probability, up or down."""
    value = np.abs(after.value - before.value)
    high = np.maximum(after.high - before.low, before.high - after.low)
    low = np.maximum(np.maximum(after.low - before.high, before.low - after.high), 0.0)
    return Levels(value, low, high).clipped()


def factor(after: Levels, before: Estimate) -> Levels:
    """Return by which factor each output changes a probability, up or down: 1 where it stays, infinite to or from 0."""
    return Levels(
        np.maximum(_ratio(after.value, before.value), _ratio(before.value, after.value)),
        np.maximum(np.maximum(_ratio(after.low, before.high), _ratio(before.low, after.high)), 1.0),
        np.maximum(_ratio(after.high, before.low), _ratio(before.high, after.low)),
    ).clipped()


def _ratio(numerator: Array | float, denominator: Array | float) -> Array:
    """Divide probabilities; none by none is no change."""
    top, bottom = np.broadcast_arrays(np.asarray(numerator, float), np.asarray(denominator, float))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((top == 0) & (bottom == 0), 1.0, top / bottom)
