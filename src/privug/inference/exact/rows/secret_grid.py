"""Values of a secret that stand for all of it in sums: those it can take, or nodes of quadrature."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from privug.errors import UnsuitableEngine
from privug.inference.curve import Curve
from privug.inference.density import apart, followed, panel_nodes, resolved
from privug.inference.exact.rows.channel import Source
from privug.inference.exact.rows.likelihood import Own
from privug.inference.exact.rows.order.law import CountedLaw
from privug.inference.exact.rows.reductions import NotRows
from privug.model.node import Array

MOST_PANELS = 1000
MOST_BENDS = 4096
FARTHEST = 1e-15  # the probability of tails without an end that are left out
SETTLED = 1e-12  # by how much quadrature of a density may be off
WIDTH = 6.0  # deviations of what other rows add that a panel may span
TOO_FINE = "engine='exact' would need too fine a grid for the joint of secret and output; engine='sample' can serve"


class SecretGrid:
    """The rows of a table of secrets and outputs: `values`, a line each, and their probabilities."""

    def __init__(self, found: Sequence[Source], asked: int, halvings: int) -> None:
        self.found = found
        self.is_continuous = any(not term.is_flat for one in found for term in one.cell.asked)
        if self.is_continuous and asked != 1:
            raise NotRows("the secret has several parts, and one of them is continuous")
        self._edges = self._panels(halvings)
        self._nodes = [self._nodes_of(one) for one in found]
        ends = np.array([(x.min(), x.max()) if len(x) else (math.inf, -math.inf) for x, _ in self._nodes])
        self.points = [
            (nodes[0][:1], np.array([nodes[1].sum()])) if not one.cell.moving and _is_apart(ends, number) else nodes
            for number, (one, nodes) in enumerate(zip(found, self._nodes, strict=True))
        ]
        """For each source numbers of the row with probabilities; one for all of a cell in which nothing moves."""
        self._number()

    def _panels(self, halvings: int) -> Array:
        """Return edges between which the distribution of the row's number, and all that follows, are smooth."""
        curves = [one.cell.curve for one in self.found if one.cell.curve is not None and one.cell.curve.parts]
        if not curves:
            return np.empty(0)
        edges = apart(np.concatenate([_edges(curve) for curve in curves]))
        bends = np.concatenate([bends_of(one) for one in self.found])
        edges = apart(np.concatenate([edges, bends[(bends > edges[0]) & (bends < edges[-1])]]))
        pieces = np.ones(len(edges) - 1)
        for one in self.found:
            np.maximum(pieces, _pieces(one, edges), out=pieces)
        pieces *= 2**halvings
        if not pieces.sum() <= MOST_PANELS:
            raise UnsuitableEngine(TOO_FINE)
        parts = [
            np.linspace(low, high, int(count), endpoint=False)
            for (low, high), count in zip(pairwise(edges), pieces, strict=True)
        ]
        return np.append(np.concatenate(parts), edges[-1])

    def _nodes_of(self, one: Source) -> tuple[Array, Array]:
        """Return numbers of the row with the probabilities that they stand for."""
        curve = one.cell.curve
        if curve is None:
            return np.zeros(1), np.array([one.weight])
        x, weights = [curve.atoms], [curve.masses * one.weight]
        if curve.parts:
            grid, steps = panel_nodes(self._edges)
            density = curve.pdf(grid.reshape(-1)) * steps.reshape(-1)
            if density.sum() > 0:
                density *= one.weight * curve.continuous_share / density.sum()
            x.append(grid.reshape(-1))
            weights.append(density)
        numbers, shares = np.concatenate(x), np.concatenate(weights)
        return numbers[shares > 0], shares[shares > 0]

    def _is_stand_in(self, number: int) -> bool:
        return self.is_continuous and len(self.points[number][0]) < len(self._nodes[number][0])

    def _number(self) -> None:
        """Number the rows of the table."""
        parts = []
        for number, (one, (x, _)) in enumerate(zip(self.found, self.points, strict=True)):
            mark = float(number) if self._is_stand_in(number) else -1.0
            asked = np.stack([term.at(x) for term in one.cell.asked], axis=1)
            parts.append(np.column_stack([np.full(len(x), mark), asked]))
        rows, codes = np.unique(np.concatenate(parts), axis=0, return_inverse=True)
        self.values = rows[:, 1:]
        bounds = np.cumsum([0, *(len(part) for part in parts)])
        self.codes = [codes.reshape(-1)[start:stop] for start, stop in pairwise(bounds)]
        """For each source the rows of its points."""
        self.priors = np.zeros(len(self.values))
        for code, (_, weights) in zip(self.codes, self.points, strict=True):
            np.add.at(self.priors, code, weights)

    def spread(self, table: Array) -> tuple[Array, Array]:
        """Return secrets and a table with a row for each secret that another stood for."""
        secrets, rows = [], []
        alone = np.ones(len(table), bool)
        for number, (one, (x, weights)) in enumerate(zip(self.found, self._nodes, strict=True)):
            if self._is_stand_in(number):
                code = self.codes[number][0]
                alone[code] = False
                secrets.append(np.stack([term.at(x) for term in one.cell.asked], axis=1))
                rows.append(np.multiply.outer(weights / weights.sum(), table[code]))
        return np.concatenate([self.values[alone], *secrets]), np.concatenate([table[alone], *rows])


def _edges(curve: Curve) -> Array:
    """Return edges of panels at whose nodes a density sums to what it has to, but for the farthest tails."""
    nodes, steps = panel_nodes(curve.edges)
    edges = curve.edges
    if not abs(float((curve.pdf(nodes) * steps).sum()) - curve.continuous_share) <= SETTLED:
        edges = np.concatenate([resolved(part.pdf, followed(part, part.breaks))[0] for _, part in curve.parts])
    low, high = curve.quantiles(np.array([FARTHEST, 1 - FARTHEST]))
    ends = [end if math.isfinite(end) else far for end, far in zip(curve.support, (low, high), strict=True)]
    return np.unique(np.clip(edges, ends[0], ends[1]))


def _is_apart(ends: Array, number: int) -> bool:
    """Say whether no other cell has numbers of the row in common with one."""
    low, high = ends[number]
    others = np.delete(ends, number, axis=0)
    return bool(low <= high and np.all((others[:, 0] > high) | (others[:, 1] < low)))


def bends_of(one: Source) -> Array:
    """Return numbers of the row at which outputs do not follow smoothly."""
    found = [np.empty(0)]
    for outcome, _, law in one.formulas:
        assert outcome.weights is not None
        if isinstance(law, CountedLaw):
            found.append(law.bends(outcome.steps))
            continue
        own, edges = Own(one.cell, outcome.weights), outcome.step_edges
        points = np.concatenate([law.breaks[np.isfinite(law.breaks)], law.atoms])
        if not own.is_flat and 0 < len(edges) * len(points) <= MOST_BENDS:
            found.append(own.solved(np.subtract.outer(edges, points).reshape(-1))[0])
    bends = np.concatenate(found)
    return np.unique(bends[np.isfinite(bends)])


def _pieces(one: Source, edges: Array) -> Array:
    """Return into how many parts panels have to be cut for what other rows add to the number to be smooth on each."""
    pieces = np.ones(len(edges) - 1)
    curve = one.cell.curve
    if curve is None or not curve.parts:
        return pieces
    inside = (edges[1:] > curve.edges[0]) & (edges[:-1] < curve.edges[-1])
    for outcome, _, law in one.formulas:
        assert outcome.weights is not None
        own = Own(one.cell, outcome.weights)
        if isinstance(law, CountedLaw) or own.is_flat or not law.parts:
            continue
        width = WIDTH * min(Curve(((1.0, part),)).std() for _, part in law.parts)
        moved = np.abs(np.diff(own.at(np.clip(edges, curve.edges[0], curve.edges[-1]))))
        np.maximum(pieces, np.where(inside, np.ceil(moved / width), 1.0), out=pieces)
    return pieces
