"""Trials: an attacker's strategy, learned from some samples, is tried on others.

The strategy learned from samples is at best as good as the best one, so what it earns on samples that it was not
learned from is too little on average; what it earns on the samples that it was learned from is too much on average.
The truth lies between the two expectations, whatever the distribution: together they give an interval.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from privug.estimate import CONFIDENCE, Estimate
from privug.inference.belief import NEGLIGIBLE
from privug.inference.intervals import proportion_estimate
from privug.leakage.strategy import Strategy
from privug.model.node import Array

FOLDS = 5

# Strategies learned on overlapping samples agree by chance. Where two secrets tie, that multiplies the variance by
# 1 + (FOLDS - 1) 0.45 / sqrt(FOLDS - 2) = 2.04, elsewhere by less, often by 1. With 1.5 the lower end is above the
# truth in 4.7 % of cases for a tie and in 0.8 % for none.
SHARED_LEARNING = 1.5
TAIL = (1 - CONFIDENCE) / 2
TELLING_DIGITS = 1e-9  # an error from which on a number is not called exact

ONE, HELD_OUT, HINDSIGHT, OPTIMISTIC, PRIOR_HELD_OUT, PRIOR_HINDSIGHT = range(6)


@dataclass(frozen=True)
class Trial:
    """What guesses earned, after seeing the output and without seeing it.

    `mean` holds the averages of six quantities: one; what is earned on samples not learned from, in hindsight, and by
    guesses that differ from those without the output wherever that may be better; and the first two without the output.
    `second` holds their second moments under the squared weights of the samples, so that every linear combination has
    its standard error. `unusual` bounds the probability of all outputs but the commonest, without which nothing leaks:
    the output then adds at most that probability to the chance of a guess.
    """

    mean: Array
    second: Array
    samples: float
    method: str
    gain: Strategy
    error: float = 0.0
    unusual: float = 1.0

    @classmethod
    def exactly(cls, after: float, before: float, gain: Strategy, error: float = 0.0) -> "Trial":
        """Make a trial of guesses known to be the best; `error` bounds the error of what they earn."""
        method = "exact" if error <= NEGLIGIBLE else f"exact to {error:.0e}"
        mean = np.array([1.0, after, after, after, before, before])
        return cls(mean, np.zeros((6, 6)), math.inf, method, gain, error)

    @property
    def exact(self) -> bool:
        """Whether the best strategy is known."""
        return math.isinf(self.samples)

    @property
    def after(self) -> float:
        """What guesses earn after the output was seen."""
        return float(self.mean[HELD_OUT])

    @property
    def before(self) -> float:
        """What guesses earn without the output."""
        return float(self.mean[PRIOR_HELD_OUT])

    def vulnerability(self) -> Estimate:
        """Return what the best strategy earns on average."""
        if self.exact:
            return self._known(lambda after, before: after)
        low, high = self._end(HELD_OUT, lower=True), self._end(HINDSIGHT, lower=False)
        return self.estimate(max(self.after, self.before, self.gain.certain), low, high, "lower")

    def difference(self) -> Estimate:
        """Return how much more is earned with the output than without it; never less than nothing."""
        if self.exact:
            return self._known(lambda after, before: max(0.0, after - before))
        low, high = (
            self.mean[a] - self.mean[b] + sign * self.half_width({a: 1.0, b: -1.0}, self.gain.span)
            for a, b, sign in ((HELD_OUT, PRIOR_HINDSIGHT, -1), (HINDSIGHT, PRIOR_HELD_OUT, 1))
        )
        value = self.after - self.before
        return self.estimate(max(0.0, value), max(0.0, low), min(max(0.0, high), self._most), "lower")

    def ratio(self) -> Estimate:
        """Return how many times as much is earned with the output as without it; never less than one."""
        if self.exact:
            return self._known(multiplied)
        low, high = self._scaled(HELD_OUT, PRIOR_HINDSIGHT, -1), self._scaled(HINDSIGHT, PRIOR_HELD_OUT, 1)
        value = self.after / self.before if self.before > 0 else low
        least = self._end(PRIOR_HELD_OUT, lower=True)
        high = min(high, 1 + self._most / least if least > 0 else math.inf)
        return self.estimate(max(1.0, value), max(1.0, low), max(1.0, high), "lower")

    def security(self) -> Estimate:
        """Return which share of the wrong guesses stay wrong once the output is seen."""
        if self.exact:
            return self._known(remaining)
        low, high = self._surviving(HINDSIGHT, PRIOR_HELD_OUT, -1), self._surviving(HELD_OUT, PRIOR_HINDSIGHT, 1)
        wrong = 1 - self._end(PRIOR_HINDSIGHT, lower=False)
        low = max(low, 1 - self._most / wrong if wrong > 0 else 0.0)
        return self.estimate(remaining(self.after, self.before), low, high, "upper")

    @property
    def _most(self) -> float:
        """The most that seeing the output can be worth."""
        return self.gain.span * self.unusual

    def half_width(self, coefficients: dict[int, float], span: float) -> float:
        """Return the half-width of the interval of a linear combination whose values differ by at most `span`.

        It allows for what no sample has shown yet: a share of 3.7 / n is missed by n samples in one of 40 cases. The
        best guesses in truth may vary more than those that are best in hindsight, such as where these ignore the
        output: then the optimistic ones say how much.
        """
        optimistic = {OPTIMISTIC if position == HINDSIGHT else position: c for position, c in coefficients.items()}
        variance = max(self._variance(coefficients), self._variance(optimistic)) * self.samples / (self.samples - 1)
        variance *= SHARED_LEARNING if HELD_OUT in coefficients else 1.0
        student = float(scipy.special.stdtrit(max(self.samples - 1, 1.0), 1 - TAIL))
        return math.hypot(student * math.sqrt(variance), span * math.log(TAIL) / self.samples)

    def estimate(self, value: float, low: float, high: float, bound: str) -> Estimate:
        """Return an estimate that says if it is rather a bound, because the best guesses could not be learned."""
        method = f"held-out guesses, {self.method}"
        if self.mean[HINDSIGHT] - self.half_width({HINDSIGHT: 1.0}, self.gain.span) > self.mean[HELD_OUT]:
            method = f"{bound} bound: too few samples to learn the best guesses, {self.method}"
        low, high = min(low, high), max(low, high)
        return Estimate(min(max(value, low), high), low, high, method=method)

    def _known(self, measure: Callable[[float, float], float]) -> Estimate:
        value = measure(self.after, self.before)
        if self.error <= NEGLIGIBLE:
            return Estimate.exactly(value)
        ends = [measure(self.after + sign * self.error, self.before - sign * self.error) for sign in (-1, 1)]
        exact = self.error < TELLING_DIGITS
        return Estimate(value, min(value, *ends), max(value, *ends), method=self.method, exact=exact)

    def _variance(self, coefficients: dict[int, float]) -> float:
        centred = np.zeros(len(self.mean))
        for position, coefficient in coefficients.items():
            centred[position] = coefficient
        centred[ONE] -= centred @ self.mean
        return max(0.0, float(centred @ self.second @ centred))

    def _end(self, which: int, *, lower: bool) -> float:
        mean = float(self.mean[which])
        if not self.gain.binary:
            half = self.half_width({which: 1.0}, self.gain.span)
            return max(mean - half, self.gain.certain) if lower else min(mean + half, self.gain.highest)
        mean = min(max(mean, 0.0), 1.0)
        variance = self._variance({which: 1.0})
        samples = min(self.samples, mean * (1 - mean) / variance) if variance > 0 else self.samples
        interval = proportion_estimate(mean, samples / (SHARED_LEARNING if lower else 1.0), "")
        return interval.low if lower else interval.high

    def _surviving(self, after: int, before: int, sign: int) -> float:
        wrong, wrong_before = 1 - float(self.mean[after]), 1 - float(self.mean[before])
        if wrong_before <= 0:
            return 0.0 if sign < 0 else 1.0
        share = wrong / wrong_before
        half = self.half_width({after: -1 / wrong_before, before: share / wrong_before}, 1 / wrong_before)
        return min(1.0, max(0.0, share + sign * half))

    def _scaled(self, above: int, below: int, sign: int) -> float:
        """Return an end of the interval of a ratio, found on its logarithm."""
        over, under = float(self.mean[above]), float(self.mean[below])
        if over <= 0 or under <= 0:
            return 1.0 if sign < 0 or over <= 0 else math.inf
        half = self.half_width({above: 1 / over, below: -1 / under}, self.gain.span / min(over, under))
        return over / under * math.exp(min(sign * half, 700.0))


def multiplied(after: float, before: float) -> float:
    """Return how many times the earnings before seeing an output those after it are, if never less."""
    return max(1.0, after / before) if before > 0 else math.inf


def remaining(after: float, before: float) -> float:
    """Return which share of the wrong guesses before seeing an output are wrong after it, if never more."""
    return min(1.0, max(0.0, 1 - after) / (1 - before)) if before < 1 else 1.0
