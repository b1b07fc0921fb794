"""The law of a quantity that is an order statistic, and perhaps noise, given the number of a row."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from privug.inference.curve import Curve
from privug.inference.density import panel_nodes
from privug.inference.exact.rows.cells import Term
from privug.inference.exact.rows.order.families import Way
from privug.inference.exact.rows.order.statistics import OneRank
from privug.inference.exact.rows.reductions import NotCounted
from privug.model.node import Array

NOISY = "what a continuous secret has in common with an order statistic to which noise was added is not known"
SLOW = "what a continuous secret has in common with a range, or a quantile between two rows, is not known"


@dataclass(frozen=True, eq=False)
class CountedLaw:
    """A multiple of an order statistic plus an independent quantity, given the number of a row."""

    way: Way
    term: Term
    """By what the row is ranked, as a function of its number."""
    scale: float
    rest: Curve
    places: Array
    """Numbers between which the order statistic has a simple distribution."""

    @cached_property
    def _shift(self) -> float | None:
        """What is added, if it is one number."""
        return float(self.rest.atoms[0]) if len(self.rest.atoms) == 1 and not self.rest.parts else None

    def listed(self, x: Array) -> Iterator[tuple[Array, Array]]:
        """Yield values with their probabilities for some numbers of the row: where it is that number, and elsewhere.

        Elsewhere, values stand for those around them; for what is infinite anyway they need not be finer.
        """
        if self._shift is None:
            raise NotCounted(NOISY)
        if not isinstance(self.way, OneRank):
            raise NotCounted(SLOW)
        own = self.term.at(x)
        itself = self.way.itself(own)
        yield self.scale * own + self._shift, np.diag(itself)
        atoms = self.way.atoms
        points = np.where(atoms == own[:, np.newaxis], 0.0, self.way.mass(atoms, atoms, own[:, np.newaxis]))
        yield np.array([float(f"{value:.12g}") for value in self.scale * atoms + self._shift]), points
        nodes, steps = (part.reshape(-1) for part in panel_nodes(self.places))
        table = self.way.density(nodes[np.newaxis], own[:, np.newaxis]) * steps
        totals = table.sum(axis=1)
        left = np.maximum(1 - itself - points.sum(axis=1), 0.0)
        shares = np.divide(left, totals, out=np.zeros_like(totals), where=totals > 0)
        yield self.scale * nodes + self._shift, table * shares[:, np.newaxis]

    def bends(self, steps: tuple[Array, Array, list[Any]] | None) -> Array:
        """Return numbers of the row at which probabilities of steps of the output are not smooth."""
        edges = np.empty(0) if self._shift is None or steps is None else steps[0][1:] - self._shift
        kinks = edges / self.scale
        bends = self.term.solved(self.way.bends(kinks))[0]
        return np.asarray(bends[np.isfinite(bends)])

    def at(self, x: Array) -> "Bound":
        """Return the law for some numbers of the row, a line for each."""
        return Bound(self, self.term.at(x)[:, np.newaxis])

    def mass(self, low: Array, high: Array, own: Array) -> Array:
        """Return the probability of intervals, a column for each."""
        if self._shift is not None:
            ends = np.sort([(low - self._shift) / self.scale, (high - self._shift) / self.scale], axis=0)
            return self.way.mass(ends[0], ends[1], own)
        columns = []
        for start, stop in zip(low.reshape(-1), high.reshape(-1), strict=True):
            finite = [end for end in (start, stop) if np.isfinite(end)]
            points = np.concatenate([self.rest.breaks, self.rest.atoms])
            kinks = np.subtract.outer(finite, points[np.isfinite(points)]).reshape(-1) / self.scale
            function, _ = self.way.expected(partial(self._between, start, stop), kinks, 0.0)
            columns.append(function(own[:, 0]))
        return np.stack(columns, axis=1)

    def _between(self, low: float, high: float, y: Array) -> Array:
        return self.rest.mass(low - self.scale * y, high - self.scale * y)


@dataclass(frozen=True, eq=False)
class Bound:
    """The law for some numbers of the row, a line for each."""

    law: CountedLaw
    own: Array

    def mass(self, low: Array, high: Array) -> Array:
        """Return the probability of intervals, a column for each."""
        return self.law.mass(low[:1], high[:1], self.own)
