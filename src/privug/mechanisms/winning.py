"""How likely each of several noisy scores is the largest, or the first above a threshold."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from privug.arguments import shown
from privug.errors import ProgramError
from privug.model.node import Array, Context, Node, Operation
from privug.model.structure import flatten
from privug.model.variable import RandomVariable, stack_values

REACH = 40.0  # scales beyond which Laplace noise lies with a probability of 2e-18
WIDTH = 2.0  # panels of so many scales: with 12 nodes each, the integrals have all digits
BLOCK = 1 << 21  # numbers in an array of intermediate results

Probabilities = Callable[[Array], Array]


def gumbel(scores: Array) -> Array:
    """Return the probability of each score with Gumbel noise of scale one: the exponential mechanism.

    >>> gumbel(np.log([[1.0, 3.0]]))
    array([[0.25, 0.75]])
    """
    odds = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=-1, keepdims=True))


def exponential(scores: Array) -> Array:
    """Return the probability that each score with exponential noise of scale one is the largest.

    With odds p_j = exp(score_j - largest score): p_i times the integral over t from 0 to 1 of the product of
    1 - t p_j over the others. The integrand is a polynomial, which Gauss' rule integrates without error.
    McKenna and Sheldon, Permute-and-Flip, NeurIPS 2020; Ding et al., 2021.

    >>> exponential(np.log([[1.0, 2.0]]))
    array([[0.25, 0.75]])
    """
    odds = np.exp(scores - scores.max(axis=-1, keepdims=True))
    points, weights = _rule(scores.shape[-1] // 2 + 1)
    times = (points + 1) / 2
    survival = 1 - times[:, np.newaxis] * odds[..., np.newaxis, :]
    found = odds * np.einsum("m,...mi->...i", weights / 2, _products_of_others(survival))
    return np.asarray(found / found.sum(axis=-1, keepdims=True))


def laplace(scores: Array) -> Array:
    """Return the probability that each score with Laplace noise of scale one is the largest."""
    highest = scores.max(axis=-1, keepdims=True)
    points, weights = _panels(highest, scores)
    distance = points[..., np.newaxis] - scores[..., np.newaxis, :]
    density, below = 0.5 * np.exp(-np.abs(distance)), _laplace_below(distance)
    found = np.einsum("...m,...mi->...i", weights, density * _products_of_others(below))
    return np.asarray(found / found.sum(axis=-1, keepdims=True))


def first_above(scores: Array) -> Array:
    """Return the probability of each score being the first above zero, and of none being so.

    The threshold has Laplace noise of scale one, the scores of scale two.
    """
    points, weights = _panels(np.zeros((len(scores), 1)), scores)
    below = _laplace_below((points[..., np.newaxis] - scores[..., np.newaxis, :]) / 2)
    before = np.cumprod(below, axis=-1)
    reached = np.concatenate([np.ones_like(before[..., :1]), before], axis=-1)
    stops = np.concatenate([1 - below, np.ones_like(below[..., :1])], axis=-1)
    density = 0.5 * np.exp(-np.abs(points)) * weights
    found = np.einsum("...m,...mi->...i", density, reached * stops)
    return np.asarray(found / found.sum(axis=-1, keepdims=True))


def _laplace_below(distance: Array) -> Array:
    tail = 0.5 * np.exp(-np.abs(distance))
    return np.where(distance < 0, tail, 1 - tail)


@lru_cache(maxsize=64)
def _rule(nodes: int) -> tuple[Array, Array]:
    points, weights = np.polynomial.legendre.leggauss(nodes)
    return points, weights


def _panels(centre: Array, kinks: Array) -> tuple[Array, Array]:
    """Return nodes and weights around a centre, in narrow panels that end wherever the integrand has a kink."""
    grid = centre + np.arange(-REACH, REACH + WIDTH / 2, WIDTH)
    edges = np.sort(np.concatenate([grid, np.clip(kinks, grid[..., :1], grid[..., -1:])], axis=-1), axis=-1)
    points, weights = _rule(12)
    half = np.diff(edges, axis=-1)[..., np.newaxis] / 2
    middle = (edges[..., 1:, np.newaxis] + edges[..., :-1, np.newaxis]) / 2
    shape = (*edges.shape[:-1], -1)
    return (middle + half * points).reshape(shape), (half * weights).reshape(shape)


def _products_of_others(factors: Array) -> Array:
    """Return for each position of the last axis the product of all other factors."""
    ones = np.ones_like(factors[..., :1])
    before = np.concatenate([ones, np.cumprod(factors[..., :-1], axis=-1)], axis=-1)
    after = np.concatenate([ones, np.cumprod(factors[..., :0:-1], axis=-1)], axis=-1)[..., ::-1]
    return np.asarray(before * after)


NODES: dict[Probabilities, int] = {gumbel: 1, exponential: 8, laplace: 700, first_above: 700}


@dataclass(frozen=True, slots=True)
class Weighed(Operation):
    """Probabilities of the choices that follow from scores."""

    probabilities: Probabilities
    rate: float
    shift: float

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        scores = np.asarray((arguments[0] - self.shift) * self.rate, float)
        rows = max(1, BLOCK // (NODES.get(self.probabilities, 700) * scores.shape[-1]))
        parts = [self.probabilities(scores[start : start + rows]) for start in range(0, len(scores), rows)]
        return np.concatenate(parts)


def weighed(scores: Any, probabilities: Probabilities, *, rate: float, shift: float = 0.0, more: int = 0) -> Any:
    """Return the probabilities of choices, plain or random, from plain or random scores times a rate.

    There are `more` choices than scores.
    """
    values = _listed(scores)
    operation = Weighed(probabilities, rate, shift)
    if isinstance(values, RandomVariable):
        shape = (values.shape[0] + more,)
        return RandomVariable(Node(operation, (values.node,), shape, np.dtype(np.float64)))
    return operation.evaluate([values[np.newaxis]], Context(1, np.random.Generator(np.random.SFC64(0))))[0]


def _listed(scores: Any) -> Any:
    """Return scores as one array, plain or random."""
    if isinstance(scores, RandomVariable) and scores.ndim == 1 and scores.node.dtype.kind in "bif":
        return scores
    leaves = flatten(scores)[1]
    if any(isinstance(leaf, RandomVariable) for leaf in leaves) and not isinstance(scores, RandomVariable):
        stacked = RandomVariable(stack_values(leaves))
        if stacked.ndim == 1 and stacked.node.dtype.kind in "bif":
            return stacked
    elif not isinstance(scores, RandomVariable):
        array = np.asarray(scores if isinstance(scores, np.ndarray) else leaves)
        if array.ndim == 1 and array.size and array.dtype.kind in "biuf" and np.all(np.isfinite(array)):
            return array.astype(float)
    raise ProgramError(f"a list of finite scores is needed, but the program returned {shown(scores)}")
