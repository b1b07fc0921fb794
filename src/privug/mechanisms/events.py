"""How far apart the outputs for two inputs are at least, found out from samples of them.

Half of the samples serve to choose an event, a set of outputs that is much likelier for one input than for the other.
The other half says how likely it is, with intervals of Clopper and Pearson. Whatever the event, the result is a lower
bound that holds with the stated confidence. As in Bichsel et al., DP-Sniper, IEEE S&P 2021; Ding et al., CCS 2018.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from privug.estimate import Estimate
from privug.model.batch import Batch, Column
from privug.model.node import Array

MOST_VALUES = 2000  # up to so many distinct values, sets of them are events
BINS = 100


@dataclass(frozen=True)
class Feature:
    """Something to tell outputs by: a number or a code for each sample of either input."""

    words: str
    one: Array
    other: Array
    listed: bool
    """Whether sets of single values are events."""


@dataclass(frozen=True)
class Event:
    """A set of outputs: those whose feature lies in one of some bins, or is one of some values."""

    feature: Feature
    edges: Array
    chosen: Array
    single: bool

    def share(self, values: Array) -> tuple[int, int]:
        """Return how many values lie in the event, and how many there are."""
        return int(self.chosen[_places(self.edges, values, self.single)].sum()), len(values)


def _places(edges: Array, values: Array, single: bool) -> Array:
    """Return which bin each value lies in; of single values the last bin holds those that were never seen."""
    if not single:
        return np.searchsorted(edges, values, side="right")
    places = np.minimum(np.searchsorted(edges, values), len(edges) - 1)
    return np.where(edges[places] == values, places, len(edges))


def lower_bound(one: Sequence[Column], other: Sequence[Column], delta: float, confidence: float) -> Estimate:
    """Return an epsilon that the smallest one for this delta is not below, with the given confidence."""
    half = len(one[0].array) // 2
    level = (1 - confidence) / 4  # two inputs may be the likelier one, and each needs two intervals
    best = Estimate(0.0, 0.0, math.inf, "nat", "no event tells them apart")
    for first, second in ((one, other), (other, one)):
        event = _best_event(_features(first, second), half, delta, level)
        if event is None:
            continue
        counts = event.share(event.feature.one[half:]), event.share(event.feature.other[half:])
        found = _bound(*counts[0], *counts[1], delta, level)
        if found > best.value:
            rates = f"{counts[0][0] / counts[0][1]:.3g} and {counts[1][0] / counts[1][1]:.3g}"
            method = f"{event.feature.words}: probabilities {rates}"
            best = Estimate(found, found, math.inf, "nat", method, confidence=confidence)
    return best


def _features(one: Sequence[Column], other: Sequence[Column]) -> Iterator[Feature]:
    """Yield ways to tell outputs apart: each number, its last digits, and the output as a whole."""
    whole = _codes(one, other)
    if whole is not None:
        yield Feature("the output's value", *whole, listed=True)
    for position, (left, right) in enumerate(zip(one, other, strict=True)):
        if left.levels is not None or left.array.dtype.kind not in "bif":
            continue
        name = f"number {position + 1} of the output" if len(one) > 1 else "the output"
        for element, (a, b) in enumerate(zip(_flat(left.array).T, _flat(right.array).T, strict=True)):
            label = f"{name}[{element}]" if left.array.ndim > 1 else name
            yield Feature(f"the size of {label}", a.astype(float), b.astype(float), listed=False)
            if left.array.dtype.kind == "f":
                yield Feature(f"the last digit of {label}", _last_bit(a), _last_bit(b), listed=True)


def _flat(array: Array) -> Array:
    return np.asarray(array.reshape(len(array), -1))


def _codes(one: Sequence[Column], other: Sequence[Column]) -> tuple[Array, Array] | None:
    """Return codes for outputs as a whole, if there are few enough of them."""
    if any(column.array.dtype.kind in "bif" and len(np.unique(column.array)) > MOST_VALUES for column in one):
        return None
    values = [list(zip(*(_keys(column) for column in side), strict=True)) for side in (one, other)]
    codes, distinct = Batch.of_values([repr(value) for side in values for value in side]).factorized()
    if len(distinct) > MOST_VALUES:
        return None
    return codes[: len(values[0])], codes[len(values[0]) :]


def _keys(column: Column) -> list[Any]:
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in column.decoded()]


def _last_bit(values: Array) -> Array:
    """Return the power of two that the last binary digit of a number stands for, which betrays how it was rounded."""
    mantissas, exponents = np.frexp(np.where(np.isfinite(values), values, 0.0))
    whole = np.abs(np.ldexp(mantissas, 53)).astype(np.int64)
    lowest = np.where(whole == 0, 1, whole & -whole)
    return np.asarray((exponents - 53 + np.log2(lowest).astype(np.int64)) * (whole != 0))


def _best_event(features: Iterator[Feature], half: int, delta: float, level: float) -> Event | None:
    best, chosen = 0.0, None
    for feature in features:
        for event in _events(feature, half):
            counts = event.share(feature.one[:half]), event.share(feature.other[:half])
            found = _bound(*counts[0], *counts[1], delta, level)
            if found > best:
                best, chosen = found, event
    return chosen


def _events(feature: Feature, half: int) -> Iterator[Event]:
    """Yield sets of values or bins, by how much likelier they are for one input than for the other."""
    a, b = feature.one[:half], feature.other[:half]
    pooled = np.concatenate([a, b])
    values = np.unique(pooled)
    single = feature.listed or len(values) <= BINS
    edges = values if single else np.unique(np.quantile(pooled, np.linspace(0, 1, BINS + 1)))
    counts = [np.bincount(_places(edges, side, single), minlength=len(edges) + 1) for side in (a, b)]
    order = np.argsort((counts[1] + 1) / (counts[0] + 1), kind="stable")
    order = order[order < len(edges)] if single else order
    chosen = np.zeros(len(edges) + 1, np.bool_)
    sizes = set(np.unique(np.geomspace(1, len(order), 40).astype(int)).tolist())
    for size, place in enumerate(order, start=1):
        chosen[place] = True
        if size in sizes:
            yield Event(feature, edges, chosen.copy(), single)


def _bound(hits: int, samples: int, other_hits: int, other_samples: int, delta: float, level: float) -> float:
    """Return what the logarithm of the ratio of two probabilities is at least."""
    low = float(scipy.special.betaincinv(hits, samples - hits + 1, level)) if hits else 0.0
    missed = other_samples - other_hits
    high = float(scipy.special.betaincinv(other_hits + 1, missed, 1 - level)) if missed else 1.0
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0
