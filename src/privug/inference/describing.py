"""What a belief is described by: ranges that hold most of it, histograms, its mean, spread and likeliest values."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.arguments import represented
from privug.errors import PrivugError
from privug.estimate import Estimate
from privug.model.node import Array

MOST_LISTED = 6


@dataclass(frozen=True)
class CredibleInterval:
    """The range that holds the quantity with the given probability, with equal tails."""

    low: Estimate
    high: Estimate
    probability: float

    def __iter__(self) -> Any:
        return iter((self.low, self.high))

    def __str__(self) -> str:
        return f"{self.probability:.0%} between {self.low.number()} and {self.high.number()}"


@dataclass(frozen=True)
class Histogram:
    """The probability of each bin, the last one closed on both sides."""

    edges: Array
    probabilities: tuple[Estimate, ...]

    @property
    def densities(self) -> Array:
        """Probability divided by the width of the bin."""
        return np.array([float(p) for p in self.probabilities]) / np.diff(self.edges)


def described(belief: Any) -> list[tuple[str, str]]:
    """Return what is to be said of a belief that stands alone, each with its name."""
    lines: list[tuple[str, str]] = []
    if belief.batch.numbers() is not None:
        lines = [("mean", belief.mean().number()), ("standard deviation", belief.std().number())]
        low, high = belief.interval(0.9)
        lines.append(("90 % of belief lies in", f"{low.number()} to {high.number()}"))
    if belief.curve is None and (not lines or belief.batch.distinct() <= MOST_LISTED):
        try:
            likeliest = list(belief.distribution().items())[:MOST_LISTED]
        except PrivugError:  # too many to be listed
            return lines
        lines += [(f"P({represented(value)})", share.number()) for value, share in likeliest]
    return lines
