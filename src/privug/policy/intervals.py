"""The shortest interval that holds a number with a given probability."""

import math

import numpy as np

from privug.errors import ArgumentError
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.measure.curve import Curve
from privug.model.node import Array
from privug.policy.confidence import error_allowed

STEPS = 129  # places at which an interval of a curve may begin
ROUNDS = 5  # how often the grid of these places is made finer: each time by a factor of 64
TINY, EPSILON = 1e-300, 1e-16


def shortest_interval(belief: Belief, probability: float, relative: bool = False) -> Estimate:
    """Return the width of the shortest interval that holds a number with the given probability.

    `relative` divides it by the size of the interval's middle. Of samples the interval covers the truth because the
    empirical distribution function lies within a band around the true one (Dvoretzky, Kiefer and Wolfowitz; Massart
    1990): the shortest interval of the truth is no shorter than that of a little less, and no longer than that of a
    little more of the samples.

    >>> print(shortest_interval(Belief.of([1, 2, 3, 10], probabilities=[0.25] * 4), 0.7))
    2 (exact)
    """
    if belief.curve is not None:
        return Estimate.exactly(_of_curve(belief.curve, probability, relative), method=belief.method)
    numbers = belief.batch.numbers()
    if numbers is None or numbers.dtype.kind not in "bif":
        raise ArgumentError("bounds: the secret must be a number")
    order = np.argsort(numbers, kind="stable")
    values = numbers[order].astype(float)
    weights = np.full(len(values), 1 / len(values)) if belief.weights is None else belief.weights[order]
    cumulated = np.cumsum(weights) / weights.sum()
    if belief.exact:
        return Estimate.exactly(_of_steps(values, cumulated, probability, relative), method=belief.method)
    band = 2 * math.sqrt(math.log(2 / error_allowed()) / (2 * belief.effective_samples))
    wide = probability + band
    high = _of_steps(values, cumulated, wide, relative) if wide <= 1 else math.inf
    low = _of_steps(values, cumulated, max(probability - band, 0.0), relative)
    value = _of_steps(values, cumulated, probability, relative)
    return Estimate(value, min(low, value), max(high, value), method=belief.method)


def _of_steps(values: Array, cumulated: Array, probability: float, relative: bool) -> float:
    """Return the least width of an interval between two of the values."""
    before = np.append(0.0, cumulated[:-1])
    ends = np.searchsorted(cumulated, before + probability - 1e-12)
    fits = ends < len(values)
    return float(np.min(_width(values[fits], values[ends[fits]], relative), initial=math.inf))


def _of_curve(curve: Curve, probability: float, relative: bool) -> float:
    """Return the least width of an interval of a curve: where it may begin is searched on finer and finer grids."""
    low, high = 0.0, 1.0 - probability
    best = math.inf
    for _ in range(ROUNDS):
        starts = np.linspace(low, high, STEPS)
        ends = np.clip(np.concatenate([starts, starts + probability]), TINY, 1 - EPSILON)
        begin, end = np.split(curve.quantiles(ends), 2)
        widths = _width(begin, end, relative)
        place = int(np.argmin(widths))
        low, high = starts[max(place - 1, 0)], starts[min(place + 1, STEPS - 1)]
        best = min(best, float(widths[place]))
    return best


def _width(low: Array, high: Array, relative: bool) -> Array:
    if not relative:
        return high - low
    middle = np.abs(low + high) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(high == low, 0.0, (high - low) / middle)
