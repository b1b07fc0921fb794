"""The two sides of a sampled joint as points between which distances mean something.

Information does not change when a quantity is relabelled. So numbers become normal scores: the place of each among all
as a quantile of the normal distribution, which no unit, outlier or infinite value disturbs. A discrete quantity with
many ordered values becomes continuous by a uniform random number within its step (information does not change: the
step tells the value). Other discrete values stand farther apart than any two numbers.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from privug.inference.belief import Belief
from privug.leakage.equal_values import distinct_values
from privug.model.batch import Batch, Column
from privug.model.node import Array, Kind

APART = 1000.0  # normal scores of any number of samples lie within 40 of zero
FEWEST_STEPS = 16  # ordered values from which a quantity may be seen as a rough continuous one


@dataclass(frozen=True)
class Side:
    """One side: a code for each sample's value if discrete, else its coordinates; a row for each sample.

    `raw` holds the coordinates that vary continuously, as they were but for a factor. `steps` are the values of a
    discrete side that is a single number.
    """

    kind: Kind
    codes: Array
    points: Array
    raw: Array
    steps: Array | None = None
    dithered: bool = False

    @property
    def levels(self) -> int:
        """How many distinct values there are."""
        return int(self.codes.max()) + 1

    def take(self, which: Array) -> "Side":
        """Return the chosen samples."""
        codes = np.unique(self.codes[which], return_inverse=True)[1].reshape(-1)
        steps = None if self.steps is None else self.steps[which]
        return replace(self, codes=codes, points=self.points[which], raw=self.raw[which], steps=steps)

    def as_continuous(self, rng: np.random.Generator) -> "Side":
        """Return a discrete side of ordered values as a continuous one."""
        assert self.steps is not None
        ranks = np.unique(self.steps, return_inverse=True)[1].reshape(-1)
        points = normal_scores(ranks + rng.random(len(ranks)))
        return replace(self, kind=Kind.CONTINUOUS, points=points[:, np.newaxis], dithered=True)


def is_discrete(belief: Belief) -> bool:
    """Say whether all parts of a quantity are discrete."""
    return set(_kinds(belief, _all_parts(belief))) <= {Kind.DISCRETE}


def _all_parts(belief: Belief) -> list[tuple[Array, bool]]:
    return [part for column in belief.batch.columns for part in _parts(column, len(belief.batch))]


def _kinds(belief: Belief, parts: list[tuple[Array, bool]]) -> list[Kind]:
    spread = None if belief.spread is Kind.MIXED else belief.spread
    batch = belief.batch if belief.batch.numbers() is not None else None
    return [Kind.DISCRETE if labels else spread or _kind(x, batch or Batch.of_values(x)) for x, labels in parts]


def side_of(belief: Belief) -> Side:
    """Describe one side of a sampled joint."""
    parts = _all_parts(belief)
    kinds = _kinds(belief, parts)
    if set(kinds) <= {Kind.DISCRETE}:
        numbers = belief.batch.numbers()
        codes = distinct_values(belief.batch)[0]
        return Side(Kind.DISCRETE, codes, _scattered(codes)[:, np.newaxis], np.zeros((len(codes), 0)), numbers)
    kind = Kind.CONTINUOUS if set(kinds) == {Kind.CONTINUOUS} else Kind.MIXED
    points = [_scattered(x) if labels else normal_scores(x) for x, labels in parts]
    raw = [x for (x, _), kind in zip(parts, kinds, strict=True) if kind is not Kind.DISCRETE]
    codes = np.arange(len(belief.batch))
    return Side(kind, codes, np.column_stack(points), np.column_stack([_of_unit_size(x) for x in raw]))


def _parts(column: Column, samples: int) -> list[tuple[Array, bool]]:
    """Return the single quantities that a column is made of, and whether each is a label rather than a number."""
    levels = column.levels
    if levels and column.array.ndim == 1 and all(isinstance(x, tuple) and len(x) == len(levels[0]) for x in levels):
        return [_part(values, column.array) for values in zip(*levels, strict=True)]
    if levels is not None or column.array.dtype.kind not in "bif":
        return [(column.distinct()[0], True)]
    return [(part, False) for part in column.array.reshape(samples, -1).T]


def _part(values: tuple[Any, ...], codes: Array) -> tuple[Array, bool]:
    """Return one place of tuples, of which codes name one for each sample."""
    if all(isinstance(value, int | float) for value in values):
        return np.array(values)[codes], False
    places: dict[Any, int] = {}
    return np.array([places.setdefault(value, len(places)) for value in values])[codes], True


def _kind(values: Array, batch: Batch) -> Kind:
    """Say how numbers are spread: values that occur once, and hardly any that occur twice, come from a density."""
    if values.dtype.kind != "f" or batch.distinct() < max(2, 0.1 * len(values)):
        return Kind.DISCRETE
    counts = batch.counts()
    if len(counts) == len(values):
        return Kind.CONTINUOUS
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    return Kind.MIXED if once >= 0.1 * len(values) and twice <= 0.02 * once else Kind.DISCRETE


def _scattered(codes: Array) -> Array:
    return APART * codes.astype(float)


def _of_unit_size(values: Array) -> Array:
    """Return numbers divided by a power of two, so that no difference overflows."""
    numbers = values.astype(float)
    largest = np.abs(numbers[np.isfinite(numbers)]).max(initial=1.0)
    scaled: Array = np.ldexp(numbers, -int(np.frexp(largest)[1]))
    return scaled


def normal_scores(values: Array) -> Array:
    """Return the normal quantile of each value's place among all; equal values share the middle of their places."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = (np.cumsum(counts) - counts / 2) / len(values)
    scores: Array = scipy.special.ndtri(middle)[inverse.reshape(-1)]
    return scores


def thinned(weights: Array) -> Array:
    """Return positions of samples that count equally and are all different, as many as the weights allow.

    Each sample is kept with a probability proportional to its weight, up to one. What the heaviest then lack stays
    below a twentieth of the random error; repeating them instead would tie points and feign dependence.
    """
    size = 1 / float(weights.max())
    most = 1 / float((weights**2).sum())
    while 2 * size <= most and float(np.maximum(0, weights - 0.5 / size).sum()) <= 0.05 / (2 * size) ** 0.5:
        size *= 2
    return np.flatnonzero(np.random.default_rng(0).random(len(weights)) < size * weights)
