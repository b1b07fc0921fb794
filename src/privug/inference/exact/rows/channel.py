"""The joint of a secret and an output: one row's number, or what is asked about it, and what all rows give together."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from privug.inference.curve import Curve
from privug.inference.exact.rows.cells import FLAT, Cell, Row, Term
from privug.inference.exact.rows.likelihood import Group, groups_of
from privug.inference.exact.rows.model import Given
from privug.inference.exact.rows.order.families import Family, Way, own_law
from privug.inference.exact.rows.order.law import CountedLaw
from privug.inference.exact.rows.outcomes import Label, Outcome, Outcomes
from privug.inference.exact.rows.pullback import Reach
from privug.inference.exact.rows.reaching import Reaching
from privug.inference.exact.rows.reductions import NotCounted, NotRows
from privug.inference.exact.rows.tally import Tally, tallied
from privug.model.node import Array, Node

NEGLIGIBLE = 1e-17

Law = Curve | CountedLaw


@dataclass(eq=False)
class Formula:
    """One way in which the output follows from a weighted sum, and the law of what other rows add to that."""

    outcome: Outcome
    weights: list[float] = field(default_factory=list)
    laws: list[Curve] = field(default_factory=list)

    def add(self, weight: float, law: Curve) -> None:
        """Add a way in which other rows can be."""
        self.weights.append(weight)
        self.laws.append(law)

    @property
    def total(self) -> float:
        """The probability of all ways."""
        return math.fsum(self.weights)

    def law(self) -> Curve:
        """Return the law of all ways together."""
        return self.laws[0] if len(self.laws) == 1 else Curve.mixture(self.weights, self.laws)


@dataclass(frozen=True, eq=False)
class Source:
    """A cell of the secret's row under one setting: its probability, certain outputs, and formulas of others."""

    weight: float
    cell: Cell
    certain: dict[Label, float]
    formulas: list[tuple[Outcome, float, Law]]


def sources(settings: Sequence[tuple[float, Given]], asked: Sequence[Node]) -> Iterator[Source]:
    """Yield what outputs follow from each cell of the secret's row."""
    for weight, given in settings:
        if given.model.is_of_table(asked):
            yield from _of_table(weight, given, asked)
            continue
        if any(len(one.picks) > 1 for one in given.model.families):
            raise NotCounted("the output has several order statistics of the same rows")
        row = given.model.exposed(asked)
        family = None if row is None else given.orders.family(row)
        if row is not None and family is not None:
            yield from _counted(weight, given, family, row, asked)
            continue
        cells, tally = [given.alone(asked)] if row is None else given.cells(row, asked), given.tally(row)
        outcomes, reach = Outcomes(given.outputs, given.model.sum_nodes), Reaching(tally, cells).reach
        for cell in cells:
            yield _of_cell(weight, cell, tally, given.discrete, outcomes, reach)


def _of_cell(
    weight: float, cell: Cell, tally: Tally, discrete: Sequence[int], outcomes: Outcomes, reach: Reach
) -> Source:
    """Return what outputs follow from a cell of the secret's row, if other rows are tallied."""
    found = _Found()
    outcomes.settle(tally.flats + cell.flats, discrete)
    for group in groups_of(tally, cell.flats, discrete):
        found.add(outcomes.at(group.key, reach), tally, group)
    return found.source(weight, cell)


def _of_table(weight: float, given: Given, asked: Sequence[Node]) -> Iterator[Source]:
    """Yield what outputs follow from each value of a function of the whole table."""
    tally, cell = given.tally(None), given.alone(())
    reach = Reaching(tally, [cell]).reach
    outcomes, secrets = Outcomes(given.outputs, given.model.sum_nodes), Outcomes(asked, given.model.sum_nodes)
    found: dict[Label, _Found] = {}
    for group in groups_of(tally, cell.flats, given.discrete):
        secret = secrets.at(group.key, reach)
        if not secret.is_certain:
            raise NotRows("the secret is a continuous function of the whole table")
        found.setdefault(secret.label, _Found()).add(outcomes.at(group.key, reach), tally, group)
    for label, one in found.items():
        if one.total <= 0:
            continue
        terms = tuple(Term(0.0, float(value)) for value in label)  # type: ignore[arg-type]
        yield one.source(weight, replace(cell, asked=terms))


class _Found:
    """Outputs that follow from one cell, as far as they have been gone through."""

    def __init__(self) -> None:
        self._certain: dict[Label, float] = {}
        self._formulas: dict[tuple[object, ...], Formula] = {}

    def add(self, outcome: Outcome, tally: Tally, group: Group) -> None:
        """Add what a group of vectors gives."""
        if outcome.is_certain:
            share = float(group.probabilities.sum())
            self._certain[outcome.label] = self._certain.get(outcome.label, 0.0) + share
        else:
            _add(self._formulas, outcome, tally, group)

    @property
    def total(self) -> float:
        """The probability of all that was found."""
        return math.fsum(self._certain.values()) + math.fsum(one.total for one in self._formulas.values())

    def source(self, weight: float, cell: Cell) -> Source:
        """Return what was found, given the cell."""
        total = self.total
        certain = {label: share / total for label, share in self._certain.items()}
        formulas: list[tuple[Outcome, float, Law]] = [
            (one.outcome, one.total / total, one.law()) for one in self._formulas.values()
        ]
        return Source(
            weight * cell.weight * (1.0 if cell.curve is not None else min(1.0, total)), cell, certain, formulas
        )


def _add(formulas: dict[tuple[object, ...], Formula], outcome: Outcome, tally: Tally, group: Group) -> None:
    assert outcome.weights is not None
    if not np.any(group.probabilities > NEGLIGIBLE):
        return
    shared = all(image is None for _, image in outcome.images)
    key = (outcome.label, tuple(outcome.weights.tolist()), outcome.constant if shared else id(outcome))
    formula = formulas.setdefault(key, Formula(outcome))
    law = tally.law(outcome.weights, group.counts)
    for line, chance in zip(group.flats, group.probabilities, strict=True):
        if chance > NEGLIGIBLE:
            formula.add(float(chance), law.affine(1.0, float(line @ outcome.weights) + outcome.constant))


def _counted(weight: float, given: Given, family: Family, row: Row, asked: Sequence[Node]) -> Iterator[Source]:
    """Yield what outputs follow from each cell of the secret's row, if rows are counted to find one by its rank."""
    stand_in, (place, _) = family.stand_ins[0], family.picks[0]
    outcomes = Outcomes(given.outputs, given.model.sum_nodes)
    reach = Reaching(given.tally(stand_in), given.cells(stand_in)).reach
    others = [(given.cells(one), one.count) for one in given.model.rows if one is not stand_in]
    way = None
    for cell in given.cells(row, asked):
        moving = not cell.terms[place].is_flat and cell.curve is not None
        if moving and not all(term.is_flat for term in cell.asked):
            way = way or given.orders.given(family, row)
            yield _telling(weight, given, cell, place, way, outcomes, reach)
            continue
        picked = given.orders.picked(stand_in, row, own_law(cell, place))
        tally = tallied([*others, (picked, 1)], len(cell.terms))
        still = replace(cell, terms=tuple(FLAT if j == place else term for j, term in enumerate(cell.terms)))
        yield _of_cell(weight, still, tally, given.discrete, outcomes, reach)


def _telling(weight: float, given: Given, cell: Cell, place: int, way: Way, outcomes: Outcomes, reach: Reach) -> Source:
    """Return what outputs follow from a cell whose number may be the order statistic itself."""
    stand_in = next(one for one in given.model.rows if one.terms[0][0] == place)
    tally, spread = given.tally(stand_in), _spread(given.cells(stand_in))
    certain: dict[Label, float] = {}
    formulas: list[tuple[Outcome, float, Law]] = []
    for group in groups_of(tally, np.zeros(len(cell.terms)), given.discrete):
        outcome = outcomes.at(group.key, reach)
        if outcome.weights is None:
            certain[outcome.label] = certain.get(outcome.label, 0.0) + float(group.probabilities.sum())
            continue
        rest, scale = tally.law(outcome.weights.tolist(), group.counts), float(outcome.weights[place])
        if not scale:
            raise NotCounted("some outputs do not depend on the order statistic that others are")
        still = replace(outcome, weights=np.where(np.arange(len(cell.terms)) == place, 0.0, outcome.weights))
        for line, chance in zip(group.flats, group.probabilities, strict=True):
            shifted = rest.affine(1.0, float(line @ outcome.weights) + outcome.constant)
            formulas.append((still, float(chance), CountedLaw(way, cell.terms[place], scale, shifted, spread)))
    return Source(weight * cell.weight, cell, certain, formulas)


def _spread(cells: Sequence[Cell]) -> Array:
    return np.unique(np.concatenate([np.empty(0), *(cell.curve.edges for cell in cells if cell.curve is not None)]))
