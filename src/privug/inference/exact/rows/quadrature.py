"""Distributions of roots whose parameters are known, and numbers that stand for them in sums."""

from collections.abc import Sequence

import numpy as np
import scipy.special

from privug.inference.curve import Curve
from privug.inference.density import panel_nodes
from privug.inference.exact.rows.reductions import NotRows
from privug.inference.exact.rows.specialisation import is_known, value_of
from privug.inference.support import support
from privug.model.node import Array, Node
from privug.prior.family import Family
from privug.prior.scalar import ScalarFamily

DEVIATIONS = scipy.special.ndtr(np.array([-7.9, -5.0, -2.5, 0.0, 2.5, 5.0, 7.9]))
MOST_PANELS = 64


def curve_of(family: Family, parameters: Sequence[Node]) -> Curve:
    """Return the distribution of a root whose parameters are known."""
    if not all(map(is_known, parameters)):
        raise NotRows("the distribution of a row's quantity depends on another continuous one")
    values = [value_of(node) for node in parameters]
    if family.families:
        parts = family.parts(parameters)
        weights = values[0]
        return Curve.mixture(weights, [curve_of(part, list(own)) for part, own in parts])
    if family.listable:
        listed = support(family, [np.asarray(value)[np.newaxis] for value in values], 1)
        return Curve.discrete(listed.values, listed.probabilities)
    if not isinstance(family, ScalarFamily) or any(np.ndim(value) for value in values):
        raise NotRows(f"the distribution of {family.name} is not known in the way that is needed")
    return Curve.of_family(family, *(float(value) for value in values))


def quadrature(curve: Curve, kinks: Array | None = None, halvings: int = 0) -> tuple[Array, Array]:
    """Return numbers with probabilities that stand for a smooth distribution in sums: few if few are enough."""
    if not curve.parts:
        return curve.atoms, curve.masses
    inner = curve.breaks if kinks is None else np.union1d(curve.breaks, kinks)
    edges = np.unique(curve.quantiles(DEVIATIONS))
    steps = np.array([1.0, 3.0])  # far tails count where what is asked for is rare
    further = np.concatenate([edges[0] - steps * (edges[1] - edges[0]), edges[-1] + steps * (edges[-1] - edges[-2])])
    edges = np.unique(np.clip(np.concatenate([edges, further]), curve.edges[0], curve.edges[-1]))
    edges = np.union1d(edges, inner[(inner > edges[0]) & (inner < edges[-1])])
    for _ in range(halvings):
        edges = np.union1d(edges, (edges[1:] + edges[:-1]) / 2)
    if len(curve.atoms) or len(edges) > MOST_PANELS:
        return curve.cells()
    nodes, steps = panel_nodes(edges)
    weights = curve.pdf(nodes.reshape(-1)) * steps.reshape(-1)
    if not abs(weights.sum() - 1) < 1e-12:
        return curve.cells()
    return nodes.reshape(-1)[weights > 0], weights[weights > 0] / weights.sum()
