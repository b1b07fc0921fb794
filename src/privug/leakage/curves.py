"""Divergences between beliefs whose densities are known exactly."""

import math

import numpy as np

from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.measure.curve import Curve
from privug.model.node import Array

POINTS_PER_PANEL = 64
HALVINGS = 60


def curve_of(belief: Belief) -> Curve | None:
    """Return the distribution of an exact belief about a number; None if it is not exact or not a number."""
    if belief.curve is not None or not belief.exact:
        return belief.curve
    numbers = belief.batch.numbers()
    if numbers is None or not np.all(np.isfinite(numbers)):
        return None
    weights = np.full(len(numbers), 1 / len(numbers)) if belief.weights is None else belief.weights
    return Curve.discrete(numbers, weights, belief.error)


def kl_of_curves(posterior: Curve, prior: Curve) -> Estimate:
    """Return the Kullback-Leibler divergence in bits."""
    value = posterior.kl_to(prior)
    if math.isinf(value):
        return Estimate(
            value, value, value, "bit", "infinite: the posterior allows what the prior rules out", exact=True
        )
    return _estimate(value, _bits(posterior, prior), "bit", posterior, prior)


def js_of_curves(posterior: Curve, prior: Curve) -> Estimate:
    """Return the Jensen-Shannon divergence in bits."""
    middle = Curve.mixture([0.5, 0.5], [posterior, prior])
    value = min(1.0, (posterior.kl_to(middle) + prior.kl_to(middle)) / 2)
    return _estimate(value, _bits(posterior, prior), "bit", posterior, prior)


def tv_of_curves(posterior: Curve, prior: Curve) -> Estimate:
    """Return the total variation: the difference in probability of where the posterior has more density."""
    atoms = np.union1d(posterior.atoms, prior.atoms)
    gained = _masses(posterior, atoms) - _masses(prior, atoms)
    total = float(np.maximum(gained, 0.0).sum())
    edges = np.union1d(posterior.edges, prior.edges)
    if len(edges) > 1:
        grid = np.append(np.unique(np.linspace(edges[:-1], edges[1:], POINTS_PER_PANEL, endpoint=False)), edges[-1])
        ends = _with_crossings(posterior, prior, grid)
        densities = [sum(w * part.mass(ends[:-1], ends[1:]) for w, part in curve.parts) for curve in (posterior, prior)]
        total += float(np.maximum(np.asarray(densities[0] - densities[1]), 0.0).sum())
        total += _outside(posterior, edges)
    return _estimate(min(1.0, total), posterior.error + prior.error, "", posterior, prior)


def _with_crossings(posterior: Curve, prior: Curve, grid: Array) -> Array:
    """Add to a grid the points between its own where the two densities cross."""

    def more(x: Array) -> Array:
        return np.asarray(posterior.pdf(x) > prior.pdf(x))

    before = more(grid[:-1])
    places = np.flatnonzero(before != more(grid[1:]))
    low, high, side = grid[places], grid[places + 1], before[places]
    for _ in range(HALVINGS):
        middle = low / 2 + high / 2
        same = more(middle) == side
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return np.union1d(grid, high)


def _masses(curve: Curve, atoms: Array) -> Array:
    """Return the probability of each single value."""
    masses = np.zeros(len(atoms))
    masses[np.searchsorted(atoms, curve.atoms)] = curve.masses
    return masses


def _outside(curve: Curve, edges: Array) -> float:
    """Return the probability of a density beyond the panels, where next to nothing is."""
    inside = sum(weight * float(part.mass(edges[:1], edges[-1:])[0]) for weight, part in curve.parts)
    return max(0.0, curve.continuous_share - inside)


def _bits(posterior: Curve, prior: Curve) -> float:
    """Return how far off a divergence in bits may be where probabilities are known to an error."""
    return sum(error * -math.log2(error) for error in (posterior.error, prior.error) if error > 0)


def _estimate(value: float, off: float, unit: str, posterior: Curve, prior: Curve) -> Estimate:
    error = max(posterior.error, prior.error)
    method = "exact" if error <= 1e-12 else f"exact to {error:.0e}"
    return Estimate(value, value - off, value + off, unit, method, exact=True)
