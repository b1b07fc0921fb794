"""The shape of a belief about a number: where it is drawn, its density there, and the values that have probability."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privug.inference.belief import Belief
from privug.model.node import Array, Kind

POINTS = 400
BINS = 40
MOST_ATOMS = 150
"""How many values of a number are told apart; of more there is a histogram."""
LIKELY = 0.02  # a probability from which on a value stands out of many others
TAIL = 0.001
REACH = 1.5  # times the middle 90 %: how far out tails are drawn
JUMP = 1e-9  # of the width: how near to a jump of a density it is looked at from both sides


@dataclass(frozen=True, eq=False)
class Shape:
    """A density as a line, of which `xs` and `heights` are empty if there is none, and values with probabilities."""

    xs: Array
    heights: Array
    atoms: Array
    masses: Array

    @property
    def has_density(self) -> bool:
        """Whether there is a density to draw."""
        return len(self.xs) > 0


def is_truth(belief: Belief) -> bool:
    """Say whether a belief is about a yes or no."""
    (column, *others) = belief.batch.columns
    return not others and column.array.dtype.kind == "b" and column.array.ndim == 1


def shown_range(beliefs: Sequence[Belief]) -> tuple[float, float]:
    """Return the range that holds nearly all of each belief, of heavy tails only the beginning."""
    ends = []
    for belief in beliefs:
        levels = (TAIL, 0.05, 0.95, 1 - TAIL)
        first, low, high, last = np.nan_to_num([belief.quantile(level).value for level in levels], posinf=1e300)
        beyond = REACH * (high - low) if high > low else np.inf
        ends += [max(first, low - beyond), min(last, high + beyond)]
    smallest, largest = float(min(ends)), float(max(ends))
    width = largest - smallest
    margin = 0.04 * width if width > 0 else max(0.5, 0.05 * abs(largest))
    return smallest - margin, largest + margin


def shape_of(belief: Belief, low: float, high: float, marks: Sequence[float] = ()) -> Shape:
    """Return the shape of a belief about a number within a range, with the density at given marks among its points."""
    curve = belief.curve
    if curve is None:
        return _of_values(belief, low, high)
    inner = [b for b in (*curve.breaks, *marks) if low < b < high]
    beside = [b + side * JUMP * (high - low) for b in inner for side in (-1, 0, 1)]
    own = np.clip(curve.quantiles(np.linspace(TAIL, 1 - TAIL, POINTS // 2)), low, high)  # a narrow peak has points too
    xs = np.unique(np.concatenate([np.linspace(low, high, POINTS), beside, own]))
    heights = np.where(np.isfinite(found := curve.pdf(xs)), found, np.nan)
    return Shape(xs, heights, curve.atoms, curve.masses)


def _of_values(belief: Belief, low: float, high: float) -> Shape:
    """Return the shape of values with weights: a histogram, and bars of those that come up again and again."""
    values, shares, counts = _distinct(belief)
    single = np.zeros(len(values), bool)
    if belief.kind is Kind.DISCRETE and int(((values >= low) & (values <= high)).sum()) <= MOST_ATOMS:
        single[:] = True
    elif belief.kind is not Kind.CONTINUOUS:
        single = (shares >= LIKELY) & ((counts > 1) | belief.exact)
    nothing = np.empty(0)
    rest = ~single & np.isfinite(values)
    if not rest.any():
        return Shape(nothing, nothing, values[single], shares[single])
    inside = rest & (values >= low) & (values <= high)
    first, last = values[inside].min(), values[inside].max()
    edges = np.linspace(first, last, BINS + 1) if last > first else np.array([low, high])
    heights = np.histogram(values[inside], edges, weights=shares[inside])[0] / np.diff(edges)
    xs = np.concatenate([[edges[0]], np.repeat(edges, 2)[1:-1], [edges[-1]]])
    return Shape(xs, np.concatenate([[0.0], np.repeat(heights, 2), [0.0]]), values[single], shares[single])


def _distinct(belief: Belief) -> tuple[Array, Array, Array]:
    """Return the values of a belief about a number, their probabilities, and how often each is listed."""
    numbers = belief.batch.numbers()
    assert numbers is not None
    weights = np.full(len(numbers), 1 / len(numbers)) if belief.weights is None else belief.weights
    values, codes, counts = np.unique(numbers.astype(float), return_inverse=True, return_counts=True)
    return values, np.bincount(codes.reshape(-1), weights, len(values)), counts
