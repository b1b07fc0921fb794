"""Shannon capacity: the greatest mutual information over all priors, with a certificate."""

import math
from typing import NamedTuple

import numpy as np
import scipy

from privug.estimate import Estimate
from privug.inference.joint import Joint
from privug.leakage.channel import Channel, as_channel
from privug.leakage.ranges import Of, capacity_in_bits_range, measure
from privug.leakage.strategy import TELLING_DIGITS
from privug.model.node import Array

GAP = 1e-13  # in nats; below it rounding decides
ARIMOTO_STEPS = 30
MOST_ARIMOTO_STEPS = 5_000
NEWTON_STEPS = 100
MOST_NEWTON_ROWS = 1_500
ROUNDING = 1e-14
RIDGE = 1e-15


class Certified(NamedTuple):
    """A prior, the information it gives, and a bound on what any prior gives; in nats."""

    prior: Array
    low: float
    high: float

    @property
    def gap(self) -> float:
        """How far the information may be below the capacity."""
        return self.high - self.low


@measure(Of.CHANNEL, capacity_in_bits_range)
def shannon_capacity(channel: Channel | Joint) -> Estimate:
    """The greatest mutual information of secret and output over all priors.

    C = max_prior I(S; O) = min_q max_s D(P(. | s) || q), in bits, from 0 to the logarithm of the number of secrets or
    outputs. The prior found gives the low end and its output distribution the high end, so the interval is sure to
    hold the truth; exact where it is narrower than 1e-9. Arimoto and Blahut, IEEE Trans. Inf. Theory 18 (1972);
    interior-point steps finish what their algorithm begins.

    >>> print(shannon_capacity(Channel([[0.9, 0.1], [0.1, 0.9]])))
    0.531 bit (exact)
    """
    found = capacity_achieving(as_channel(channel, every_secret=False).distinct_rows())
    low, high = sorted(nats / math.log(2) for nats in found[1:])
    low, value, high = (max(0.0, bits) for bits in (low - ROUNDING, (low + high) / 2, high + ROUNDING))
    return Estimate(value, low, high, "bit", f"certified within {high - low:.0e}", exact=high - low < TELLING_DIGITS)


def capacity_achieving(rows: Array) -> Certified:
    """Return the prior on different rows of a channel that gives the most information, and a bound on any prior's."""
    if len(rows) == 1:
        return Certified(np.ones(1), 0.0, 0.0)
    found = _arimoto(rows, ARIMOTO_STEPS)
    if found.gap > GAP and min(rows.shape) > MOST_NEWTON_ROWS:
        return _arimoto(rows, MOST_ARIMOTO_STEPS)
    return found if found.gap <= GAP else _few_rows(rows, found)


def _few_rows(rows: Array, found: Certified) -> Certified:
    """Solve with a few rows and add those whose divergence exceeds the solution, until none does.

    No more rows than outputs are needed.
    """
    start = min(len(rows), 2 * rows.shape[1] + 10)
    chosen = np.sort(np.argsort(-found.prior, kind="stable")[:start])
    for _ in range(len(rows)):
        inner = _newton(rows[chosen])
        prior = np.zeros(len(rows))
        prior[chosen] = inner.prior
        divergences = _divergences(rows, prior)
        candidate = Certified(prior, inner.low, max(inner.high, float(divergences.max())))
        if candidate.gap < found.gap:
            found = candidate
        worse = np.flatnonzero(divergences > inner.high + GAP)
        worse = worse[np.argsort(-divergences[worse])][: len(chosen)]
        fresh = np.setdiff1d(worse, chosen)
        if found.gap <= GAP or not len(fresh):
            return found
        chosen = np.union1d(chosen, fresh)
    return found


def _divergences(rows: Array, prior: Array) -> Array:
    """Return the divergence of each row from the distribution of outputs under the prior."""
    marginal = prior @ rows
    with np.errstate(divide="ignore"):
        logs = np.log(marginal)
    possible = np.isfinite(logs)
    # An output that the prior makes impossible is infinitely telling.
    beyond = rows[:, ~possible].any(axis=1)
    within: Array = scipy.special.xlogy(rows, rows).sum(axis=1) - rows @ np.where(possible, logs, 0.0)
    return np.where(beyond, math.inf, within)


def _certified(rows: Array, prior: Array) -> tuple[Certified, Array]:
    divergences = _divergences(rows, prior)
    return Certified(prior, float(prior @ divergences), float(divergences.max())), divergences


def _arimoto(rows: Array, steps: int) -> Certified:
    """Multiply each probability of the prior by the exponential of its row's divergence."""
    prior = np.full(len(rows), 1 / len(rows))
    best, divergences = _certified(rows, prior)
    for _ in range(steps):
        if best.gap <= GAP:
            break
        prior = prior * np.exp(divergences - divergences.max())
        prior /= prior.sum()
        found, divergences = _certified(rows, prior)
        best = Certified(found.prior, max(best.low, found.low), min(best.high, found.high))
    return best


def _newton(rows: Array) -> Certified:
    """Solve the optimality conditions by a primal-dual interior-point method.

    Unknown are the prior p, the capacity c, and slacks z with divergence + z = c and p z = mu -> 0.
    """
    prior = np.full(len(rows), 1 / len(rows))
    best, divergences = _certified(rows, prior)
    capacity = best.high + 0.1
    slack = capacity - divergences
    for _ in range(NEWTON_STEPS):
        if best.gap <= GAP or float(prior @ slack) < GAP / 100:
            break
        target = 0.1 * float(prior @ slack) / len(rows)
        # Scaled by the root of the prior, the matrix has no entry above one but for the slacks.
        root = np.sqrt(prior)
        scaled = root[:, np.newaxis] * rows / np.sqrt(prior @ rows)
        system = scaled @ scaled.T + np.diag(slack + RIDGE)
        right = np.stack((root * (divergences - capacity) + target / root, root), axis=1)
        try:
            solved = scipy.linalg.cho_solve(scipy.linalg.cho_factor(system, lower=True), right)
        except np.linalg.LinAlgError:
            break
        rise = float(root @ solved[:, 0]) / float(root @ solved[:, 1])
        step = root * (solved[:, 0] - rise * solved[:, 1])
        slack_step = (target - slack * step) / prior - slack
        length = 0.99 / max(0.99, float(np.max(-step / prior)), float(np.max(-slack_step / slack)))
        prior = prior + length * step
        prior /= prior.sum()
        slack, capacity = slack + length * slack_step, capacity + length * rise
        found, divergences = _certified(rows, prior)
        if found.gap < best.gap:
            best = found
    return best
