"""A model of a row of numbers that keeps each column's distribution and how the columns move together."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from privug.arguments import shown
from privug.errors import PriorError
from privug.model.node import Array
from privug.model.operations import Elementwise, elementwise, lookup
from privug.model.table import Row
from privug.model.variable import RandomVariable
from privug.prior.frame import Column, Frame
from privug.prior.mixture import MvNormal
from privug.prior.population import Population

MOST_TIED = 0.5
"""Up to what share of repeated values a column is taken for one of measurements, between which others are possible."""


@dataclass(frozen=True, eq=False)
class Margin:
    """One column: its sorted numbers and the normal scores they stand at."""

    name: str
    scores: Array
    values: Array
    whole: bool
    """Whether only the values of the data are possible."""

    @cached_property
    def operation(self) -> Elementwise:
        """What takes normal scores to values, or to positions of values if only those of the data are possible."""
        return Elementwise(f"quantile of {self.name}", self._positions if self.whole else self._values)

    def _positions(self, scores: Array) -> Array:
        return np.searchsorted(self.scores, scores)

    def _values(self, scores: Array) -> Array:
        return np.interp(scores, self.scores, self.values)

    def score(self, value: float) -> float:
        """Return the normal score of a value; of a repeated one, the middle of its range."""
        if not self.whole:
            return float(np.interp(value, self.values, self.scores))
        place = int(np.searchsorted(self.values, value))
        edges = np.concatenate([[-np.inf], self.scores, [np.inf]])
        shares = scipy.special.ndtr(edges[place : place + 2])
        return float(scipy.special.ndtri(shares.mean()))

    def holds(self, value: Any) -> bool:
        """Say whether a value is possible."""
        if self.whole:
            return bool(np.any(self.values == value))
        return bool(self.values[0] <= value <= self.values[-1])


@dataclass(frozen=True, eq=False)
class GaussianCopula(Population):
    """Jointly normal scores, turned into the columns by their quantile functions."""

    margins: tuple[Margin, ...]
    correlation: Array

    def row(self, known: Mapping[str, Any] | None = None) -> Row:
        fixed = dict(known or {})
        mean, covariance = self._given(fixed)
        free = [margin for margin in self.margins if margin.name not in fixed]
        if not free:
            return Row(**fixed)
        scores = MvNormal(mean.tolist(), covariance)
        cells = {margin.name: _at(margin, scores[place]) for place, margin in enumerate(free)}
        return Row(**{margin.name: fixed.get(margin.name, cells.get(margin.name)) for margin in self.margins})

    def _given(self, known: Mapping[str, Any]) -> tuple[Array, Array]:
        """Return mean and covariance of the scores of the other columns: the Schur complement."""
        inside = [place for place, margin in enumerate(self.margins) if margin.name in known]
        outside = [place for place, margin in enumerate(self.margins) if margin.name not in known]
        for place in inside:
            margin = self.margins[place]
            if isinstance(known[margin.name], str) or not margin.holds(known[margin.name]):
                low, high = margin.values[[0, -1]]
                raise PriorError(
                    f"target: {margin.name}={shown(known[margin.name])} is outside the data, from {low:g} to {high:g}"
                )
        scores = np.array([self.margins[place].score(float(known[self.margins[place].name])) for place in inside])
        across = self.correlation[np.ix_(outside, inside)]
        weights = across @ np.linalg.pinv(self.correlation[np.ix_(inside, inside)])
        covariance = self.correlation[np.ix_(outside, outside)] - weights @ across.T
        return weights @ scores, (covariance + covariance.T) / 2

    def allows(self, row: Row, drawn: Any) -> bool:
        return all(margin.holds(row[margin.name]) for margin in self.margins if margin.name in drawn)


def _at(margin: Margin, score: RandomVariable) -> RandomVariable:
    found = elementwise(margin.operation, [score.node])
    return RandomVariable(lookup(found, margin.values) if margin.whole else found)


def gaussian_copula(frame: Frame) -> GaussianCopula:
    """Learn a Gaussian copula: the columns' own distributions, and the correlation of their normal scores.

    Columns most of whose values repeat have only the values of the data; others anything between. Between columns with
    many ties the copula is a little less correlated than the data, so that it never claims more than the data shows.
    """
    for column in frame.columns:
        if not column.is_number:
            raise PriorError(
                f"from_frame: model='copula' needs numbers, but column {column.name!r} holds "
                f"{shown(column.values[0])}; leave it out by columns=, or write model='tree'"
            )
        if len(column.values) < 2:
            raise PriorError(f"from_frame: model='copula': column {column.name!r} has one value only; leave it out")
    scores = np.column_stack([_normal_scores(column) for column in frame.columns])
    return GaussianCopula(tuple(map(_margin, frame.columns)), np.atleast_2d(np.corrcoef(scores, rowvar=False)))


def _normal_scores(column: Column) -> Array:
    before = np.concatenate([[0.0], np.cumsum(column.counts)])
    middles = (before[:-1] + before[1:]) / 2 / len(column.codes)
    scores: Array = scipy.special.ndtri(middles)[column.codes]
    return scores


def _margin(column: Column) -> Margin:
    values = np.array(column.values)
    shares = np.cumsum(column.counts) / len(column.codes)
    whole = len(values) < (1 - MOST_TIED) * len(column.codes)
    if whole:
        return Margin(column.name, scipy.special.ndtri(shares[:-1]), values, True)
    middles = shares - column.counts / len(column.codes) / 2
    return Margin(column.name, scipy.special.ndtri(middles), values.astype(float), False)
