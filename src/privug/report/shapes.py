"""The shapes of beliefs and joints, as pictures draw them: densities, values with probabilities, cells of pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.inference.belief import Belief
from privug.inference.joint import Joint
from privug.model.node import Array, Kind

CELLS = 40
MOST_LISTED = 12
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
    """Return whether a belief is about a yes or no."""
    (column, *others) = belief.batch.columns
    return not others and column.array.dtype.kind == "b" and column.array.ndim == 1


def shown_range(beliefs: Sequence[Belief]) -> tuple[float, float]:
    """Return the range that holds nearly all of each belief, of heavy tails only the beginning."""
    ends = []
    for belief in beliefs:
        levels = (TAIL, 0.05, 0.95, 1 - TAIL)
        if belief.curve is None:
            found = np.array([belief.quantile(level).value for level in levels])
        else:
            found = belief.curve.quantiles(np.array(levels))
        first, low, high, last = np.nan_to_num(found, posinf=1e300)
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


@dataclass(frozen=True, eq=False)
class JointSide:
    """One side of a joint in cells: the cell of each pair, the edges of the cells, and names where they have some."""

    codes: Array
    edges: Array
    values: Sequence[Any]
    """What stands in the middle of each cell; the last may stand for all others."""
    numeric: bool
    spread: Array | None = None
    """Where pairs stand for ranges of values: how each range, which `codes` then tell, is spread over the cells."""

    def onto_cells(self, shares: Array) -> Array:
        """Return the shares of cells, given those that `codes` tell apart, along the first axis."""
        return shares if self.spread is None else self.spread.T @ shares

    @property
    def size(self) -> int:
        """How many places `codes` tell apart."""
        return len(self.edges) - 1 if self.spread is None else len(self.spread)


def _side(belief: Belief, weights: Array) -> JointSide:
    numbers = belief.batch.numbers()
    if numbers is None or is_truth(belief):
        return _categories(belief, weights)
    numbers = numbers.astype(float)
    values = np.unique(numbers[np.isfinite(numbers)])
    if belief.kind is Kind.DISCRETE and len(values) <= CELLS:
        gap = float(np.diff(values).min()) if len(values) > 1 else 1.0
        if np.allclose(np.diff(values) / gap, np.round(np.diff(values) / gap)) and np.ptp(values) / gap < CELLS:
            edges = np.arange(values[0] - gap / 2, values[-1] + gap, gap)
            return JointSide(_placed(numbers, edges), edges, (edges[:-1] + gap / 2).tolist(), True)
        edges = np.arange(len(values) + 1) - 0.5
        return JointSide(np.searchsorted(values, numbers), edges, values.tolist(), False)
    edges = np.linspace(*shown_range([belief]), CELLS + 1)
    if belief.exact and belief.kind is not Kind.DISCRETE:
        return _of_ranges(numbers, weights, edges, belief)
    return JointSide(_placed(numbers, edges), edges, ((edges[1:] + edges[:-1]) / 2).tolist(), True)


def _of_ranges(numbers: Array, weights: Array, edges: Array, belief: Belief) -> JointSide:
    """Spread values that stand for ranges of a density, each of as much probability as it has, over the cells."""
    values, codes = np.unique(numbers, return_inverse=True)
    held = np.bincount(codes.reshape(-1), weights, len(values))
    ends = np.concatenate([[0.0], np.cumsum(held)]) / held.sum()
    if belief.curve is not None:
        below = belief.curve.cdf(edges)
    else:  # each value stands for what is nearer to it than to others
        below = np.interp(edges, (values[1:] + values[:-1]) / 2, ends[1:-1], 0.0, 1.0)
    common = np.minimum(ends[1:, None], below[None, 1:]) - np.maximum(ends[:-1, None], below[None, :-1])
    spread = np.maximum(common, 0.0) / np.maximum(np.diff(ends), 1e-300)[:, None]
    return JointSide(codes.reshape(-1), edges, ((edges[1:] + edges[:-1]) / 2).tolist(), True, spread)


def _placed(numbers: Array, edges: Array) -> Array:
    codes = np.searchsorted(edges, numbers, side="right") - 1
    return np.where((codes < 0) | (codes >= len(edges) - 1), -1, codes)


def _categories(belief: Belief, weights: Array) -> JointSide:
    """Return a cell for each of the likeliest values, and one for all others."""
    codes, support = belief.batch.factorized()
    order = np.argsort(-np.bincount(codes, weights, len(support)), kind="stable")
    many = len(support) > MOST_LISTED
    listed = order[: MOST_LISTED - 1] if many else order
    places = np.full(len(support), len(listed))
    places[listed] = np.arange(len(listed))
    values = [support[place] for place in listed] + ([f"{len(support) - len(listed):,} others"] if many else [])
    return JointSide(places[codes], np.arange(len(values) + 1) - 0.5, values, False)


def cells_of(joint: Joint) -> tuple[JointSide, JointSide, Array]:
    """Return the cells of the output, those of the secret, and how likely secret (rows) and output are together."""
    weights, samples = joint.weights, len(joint.secret.batch)
    weights = np.full(samples, 1 / samples) if weights is None else weights
    across, up = _side(joint.output, weights), _side(joint.secret, weights)
    inside = (across.codes >= 0) & (up.codes >= 0)
    flat = np.bincount((up.codes * across.size + across.codes)[inside], weights[inside], up.size * across.size)
    return across, up, across.onto_cells(up.onto_cells(flat.reshape(up.size, across.size)).T).T
