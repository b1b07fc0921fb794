"""What order statistics tell about a row: the row's number is passed over by the count, or is itself what was seen."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from privug.inference.curve import Curve
from privug.inference.exact.rows.cells import Cell, Row, Term
from privug.inference.exact.rows.likelihood import RowLikelihood
from privug.inference.exact.rows.model import Given, Piece, conditioned
from privug.inference.exact.rows.order.families import Family, Way, expectation, own_law
from privug.inference.exact.rows.reaching import Reaching
from privug.inference.exact.rows.reductions import NotCounted
from privug.model.node import Array, Node

SAME = 1e-12  # how near a value that was seen must be to one that has a probability


class Counted:
    """One row of those that an order statistic is picked from."""

    def __init__(self, given: Given, family: Family, row: Row, asked: Sequence[Node]) -> None:
        self._given = given
        self._family = family
        self._row = row
        self._stand_in = family.stand_ins[0]
        self._place = family.picks[0][0]
        self._cells = given.cells(row, asked)
        self._tally = given.tally(self._stand_in)
        self._whole = given.cells(self._stand_in)
        self._reach = Reaching(self._tally, self._whole).reach

    def pieces(self) -> Iterator[Piece]:
        """Yield the cells of the row with weights, and the number in each."""
        way = None
        for cell in self._cells:
            moving = not cell.terms[self._place].is_flat and cell.curve is not None
            if moving and (len(self._family.picks[0][1]) > 1 or not all(term.is_flat for term in cell.asked)):
                way = way or self._given.orders.given(self._family, self._row)
                yield from self._passed(cell, way)
            else:
                yield from self._mixed(cell)

    def _likelihood(self, cell: Cell) -> RowLikelihood:
        given = self._given
        return RowLikelihood(self._tally, cell, given.pullback, given.discrete, self._reach)

    def _mixed(self, cell: Cell) -> Iterator[Piece]:
        """Yield a cell in which the row's number itself is not asked for."""
        for picked in self._given.orders.picked(self._stand_in, self._row, own_law(cell, self._place)):
            if picked.curve is None and len(self._values):
                if np.isclose(self._values, picked.terms[self._place].start, rtol=SAME, atol=0.0).any():
                    yield Piece(cell.weight * picked.weight, cell, cell.curve)
                continue
            for piece in conditioned(picked, self._likelihood(picked)):
                curve = cell.curve
                if curve is not None and piece.curve is not None:
                    curve = replace(curve, error=max(curve.error, piece.curve.error))
                yield Piece(cell.weight * piece.weight, cell, curve, piece.density)

    @cached_property
    def _values(self) -> Array:
        """The values that were seen of the order statistic itself, none if a range of it was."""
        values = np.array([value for value, _ in self._likelihood(self._law).crossings()])
        mixed = any(cell.curve is None for cell in self._whole) and len(self._whole) > 1
        if len(values) and mixed and len(self._tally.probabilities) > 1:
            raise NotCounted(
                "an order statistic that has some values with a probability was seen with something beside it"
            )
        return values

    @cached_property
    def _law(self) -> Cell:
        """Return the order statistic as one cell, whatever it is made of."""
        terms = [*self._whole[-1].terms]
        terms[self._place] = Term(1.0, 0.0)
        points = [Curve.point(cell.terms[self._place].start) for cell in self._whole if cell.curve is None]
        curves = [*points, *(cell.curve for cell in self._whole if cell.curve is not None)]
        return Cell(1.0, tuple(terms), Curve.mixture([cell.weight for cell in self._whole], curves))

    def _passed(self, cell: Cell, way: Way) -> Iterator[Piece]:
        """Yield a cell whose number is asked for, as far as it is passed over, and where it is what was seen."""
        for likelihood in self._likelihood(self._law).by_order():
            yield from self._given_likelihood(cell, way, likelihood)
            for value, weight in likelihood.crossings():
                yield from self._value(cell, way, value, weight, likelihood.density)

    def _given_likelihood(self, cell: Cell, way: Way, likelihood: RowLikelihood) -> Iterator[Piece]:
        """Yield a cell whose number is passed over, given what was seen of the order statistic."""
        term, curve, law = cell.terms[self._place], cell.curve, self._law.curve
        assert law is not None
        assert curve is not None
        kinks = likelihood.kinks()
        function, error = expectation(way, likelihood, kinks, law, 0.0)
        bends = term.solved(way.bends(kinks))[0]
        share, found = curve.reweighted(lambda s: function(term.at(s)), bends[np.isfinite(bends)], error)
        if found is not None and share > 0:
            off = min(1.0, found.error + likelihood.error(share) / share)
            yield Piece(cell.weight * share, cell, replace(found, error=off), likelihood.density)

    def _value(self, cell: Cell, way: Way, value: float, weight: float, density: int) -> Iterator[Piece]:
        """Yield what a value says that was seen of the order statistic itself; its own density is one of them."""
        term, curve, at = cell.terms[self._place], cell.curve, np.array([value])
        assert curve is not None
        place, slope = term.solved(at)

        def likely(s: Array) -> Array:
            return np.asarray(way.mass(at, at, term.at(s)))

        def dense(s: Array) -> Array:
            return np.asarray(weight * way.density(at, term.at(s)))

        probable = not way.smooth or len(curve.atoms) > 0
        for function, order in ((likely, density - 1), (dense, density)) if probable else ((dense, density),):
            bends = term.solved(way.bends(at))[0]
            share, found = curve.reweighted(function, bends[np.isfinite(bends)])
            if found is not None and share > 0:
                yield Piece(cell.weight * share, cell, found, order)
        if not np.isclose(term.at(place), value, rtol=1e-12, atol=0.0)[0]:
            return
        own = float((curve.pdf(place) / slope * way.itself(at))[0]) * weight
        if own > 0:
            yield Piece(cell.weight * own, cell, Curve.point(float(place[0])), density)
