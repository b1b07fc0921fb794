"""One question about sums over rows: beliefs about a row, about the whole table, and how likely the observation is."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from privug.errors import ImpossibleObservation
from privug.inference.curve import Curve
from privug.inference.density import followed, panel_nodes, resolved
from privug.inference.exact.rows.cells import (
    FLAT,
    Cell,
    Partition,
    Row,
    SeveralContinuous,
    Term,
    curve_of,
    quadrature,
    rows_of,
)
from privug.inference.exact.rows.likelihood import Reaching, RowLikelihood
from privug.inference.exact.rows.outcomes import Outcomes
from privug.inference.exact.rows.pullback import Pullback
from privug.inference.exact.rows.reductions import NotRows
from privug.inference.exact.rows.regrouping import Placeholder, Regrouping
from privug.inference.exact.rows.specialisation import is_known, specialised, value_of
from privug.inference.exact.rows.tally import Tally, tallied
from privug.inference.exact.states import Roots
from privug.model.node import Array, Node, ancestors
from privug.observation.likelihood import Likelihood
from privug.prior.family import family_of

MOST_SHARED = 2000
UNLIKELY = 1e-30
NOTHING_LEFT = "this observation has probability zero, or one too small to be told from it"


@dataclass(frozen=True, eq=False)
class Piece:
    """A share of a belief: its weight, the cell, and the row's number in it, given what was seen."""

    weight: float
    cell: Cell
    curve: Curve | None
    density: bool = False
    """Whether the weight is a density, which weighs nothing beside a probability."""


class Model:
    """A question given the sizes of its tables: targets as functions of sums over rows.

    Of the conditions of the likelihood, the first so many are `facts`. Each of the quantities that are `asked` for is a
    function of one row, of what all rows share, or of the whole table.
    """

    def __init__(
        self, likelihood: Likelihood, outputs: Sequence[Node], asked: Sequence[Sequence[Node]], facts: int = 0
    ) -> None:
        told = [*likelihood.conditions, *(node for node, _ in likelihood.points), *likelihood.log_weights]
        found = Regrouping([*told, *outputs], asked, facts).found
        conditions = len(found.targets) - len(told) + len(likelihood.conditions) - len(outputs)
        count = len(told) - len(likelihood.conditions)
        told, self.outputs = found.targets[: conditions + count], found.targets[conditions + count :]
        points = zip(told[conditions:], likelihood.points, strict=False)
        self.likelihood = replace(
            likelihood,
            conditions=tuple(told[:conditions]),
            points=tuple((node, value) for node, (_, value) in points),
            log_weights=tuple(told[conditions + len(likelihood.points) :]),
            distances=(),
        )
        self.asked = found.asked
        self.sums = found.sums
        behind = {node for some in found.asked for node in ancestors(some) if node.is_random}
        self.rows, self.shared = rows_of(found.sums, found.counts, behind)
        if any(one.rank is not None for one in found.sums):
            raise NotRows("it picks a row by its rank")

    def _row_of(self, root: Node) -> Row | None:
        return next((row for row in self.rows if root in row.roots), None)

    @cached_property
    def sum_nodes(self) -> list[Node]:
        """The nodes that stand for the sums."""
        return [one.node for one in self.sums]

    @cached_property
    def told(self) -> set[Node]:
        """What the observation is a function of."""
        seen = self.likelihood
        return set(ancestors([*seen.conditions, *(node for node, _ in seen.points), *seen.log_weights]))

    @cached_property
    def pullback(self) -> Pullback:
        """What was seen, as functions of the sums alone."""
        return Pullback(self.likelihood, self.sum_nodes, {})

    def is_of_table(self, asked: Sequence[Node]) -> bool:
        """Say whether some quantities are functions of sums over rows."""
        return any(isinstance(node.operation, Placeholder) for node in ancestors(asked))

    def exposed(self, asked: Sequence[Node]) -> Row | None:
        """Return the row that some quantities are functions of; None if they are of none."""
        roots = [node for node in ancestors(asked) if node.is_random and node not in self.shared]
        rows = {id(row): row for row in (self._row_of(root) for root in roots) if row is not None}
        if not rows:
            return Row((), tuple(roots), 1) if roots else None
        if any(row.count > 1 for row in rows.values()) and len(rows) > 1:
            raise NotRows("the secret is made of several rows")
        several = list(rows.values())
        missing = [root for root in roots if not any(root in row.roots for row in several)]
        if len(several) == 1 and not missing:
            return several[0]
        terms = tuple(term for row in several for term in row.terms)
        return Row(terms, (*(root for row in several for root in row.roots), *missing), 1)

    def settings(self) -> Iterator[tuple[float, "Given"]]:
        """Yield the model for each combination of discrete values that rows share, with its probability."""
        listed = [root for root in self.shared if family_of(root).listable]
        endless = [root for root in self.shared if root not in listed]
        if len(endless) > 1:
            raise NotRows("its rows share several continuous quantities", endless[1])
        if not listed:
            yield 1.0, Given(self, {}, endless[0] if endless else None)
            return
        roots = Roots([], order=listed)
        if roots.count(MOST_SHARED) > MOST_SHARED:
            raise NotRows("what its rows share has too many values")
        states = next(iter(roots.blocks()))
        for position in range(len(states)):
            known = {node: array[position] for node, array in states.arrays.items()}
            yield float(states.weights[position]), Given(self, known, endless[0] if endless else None)


@dataclass(eq=False)
class Given:
    """A model in which what rows share is known, but for one continuous quantity that may be left."""

    model: Model
    known: Mapping[Node, object]
    unknown: Node | None = None
    _cells: dict[Row, list[Cell]] = field(default_factory=dict)
    _tallies: dict[tuple[tuple[int, Node], ...], Tally] = field(default_factory=dict)
    _inner: dict[float, "Given"] = field(default_factory=dict)

    def cells(self, row: Row, asked: Sequence[Node] = ()) -> list[Cell]:
        """Return the cells of a row."""
        count = len(self.model.sums)
        if asked:
            return list(Partition(count, row, asked, self.known).cells())
        if row not in self._cells:
            self._cells[row] = list(Partition(count, row, (), self.known).cells())
        return self._cells[row]

    def tally(self, without: Row | None) -> Tally:
        """Return what all rows add, one row left aside."""
        aside = () if without is None else without.terms
        if aside not in self._tallies:
            rows = []
            for row in self.model.rows:
                left = row.count - (bool(aside) and set(row.terms) <= set(aside))
                if left:
                    rows.append((self.cells(row), left))
            self._tallies[aside] = tallied(rows, len(self.model.sums))
        return self._tallies[aside]

    @cached_property
    def discrete(self) -> list[int]:
        """The sums to which every row adds one number in each of its cells."""
        moving = {j for row in self.model.rows for cell in self.cells(row) for j in cell.moving}
        return [j for j in range(len(self.model.sums)) if j not in moving]

    @cached_property
    def pullback(self) -> Pullback:
        """What was seen, as functions of the sums."""
        if not set(self.known).isdisjoint(self.model.told):
            return Pullback(self.model.likelihood, self.model.sum_nodes, self.known)
        return self.model.pullback

    @cached_property
    def outputs(self) -> list[Node]:
        """The outputs, as functions of the sums."""
        return specialised(self.model.outputs, self.known)

    def at(self, value: float) -> "Given":
        """Return the model for a value of the continuous quantity that rows share."""
        assert self.unknown is not None
        if value not in self._inner:
            self._inner[value] = Given(self.model, {**self.known, self.unknown: value})
        return self._inner[value]

    def posterior(self, asked: Sequence[Node]) -> Iterator[Piece]:
        """Yield what is known of a row, given what was seen: its cells with weights, and the number in each."""
        if self.unknown is not None:
            yield from self._over_unknown(asked)
            return
        if self.model.is_of_table(asked):
            yield from self._of_table(asked)
            return
        row = self.model.exposed(asked)
        try:
            cells = [self.alone(asked)] if row is None else self.cells(row, asked)
        except SeveralContinuous as problem:
            yield from self._one_by_one(asked, problem)
            return
        tally = self.tally(row)
        reach = Reaching(tally, cells).reach
        for cell in cells:
            likelihood = RowLikelihood(tally, cell, self.pullback, self.discrete, reach)
            yield from conditioned(cell, likelihood)

    def _one_by_one(self, asked: Sequence[Node], problem: SeveralContinuous) -> Iterator[Piece]:
        """Yield what is known of a row with several continuous quantities, one of which is then taken as known."""
        behind = [node for node in ancestors(asked) if node.is_random and node not in self.known]
        endless = [root for root in behind if not family_of(root).listable]
        if len(behind) != 1 or not endless or not all(map(is_known, endless[0].parents)):
            raise NotRows(str(problem), problem.node)
        yield from Given(self.model, self.known, endless[0]).posterior(asked)

    def alone(self, asked: Sequence[Node]) -> Cell:
        """Return the cell that stands for no row; what is asked for is known."""
        nodes = specialised(asked, self.known)
        if not all(map(is_known, nodes)):
            raise NotRows("the secret depends on more than one row")
        return Cell(1.0, (FLAT,) * len(self.model.sums), None, tuple(Term(0.0, float(value_of(n))) for n in nodes))

    def _of_table(self, asked: Sequence[Node]) -> Iterator[Piece]:
        """Yield what is known of a function of the whole table."""
        tally, cell = self.tally(None), self.alone(())
        reach = Reaching(tally, [cell]).reach
        likelihood = RowLikelihood(tally, cell, self.pullback, self.discrete, reach, by_key=True)
        outcomes = Outcomes(specialised(asked, self.known), self.model.sum_nodes)
        density = likelihood.is_density and not likelihood.has_atom
        for group, weight in likelihood.by_group():
            if weight > 0:
                outcome = outcomes.at(group.key, reach)
                if not outcome.is_certain:
                    raise NotRows("the secret is a continuous function of the whole table")
                terms = tuple(Term(0.0, float(value)) for value in outcome.label)  # type: ignore[arg-type]
                yield Piece(weight, replace(cell, asked=terms), None, density)

    def _over_unknown(self, asked: Sequence[Node]) -> Iterator[Piece]:
        """Yield what is known if rows share a continuous quantity, which is integrated over or asked for."""
        assert self.unknown is not None
        if self.unknown in ancestors(asked):
            row = Row((), (self.unknown,), 1)
            for cell in self.cells(row, asked):
                assert cell.curve is not None
                share, posterior = cell.curve.reweighted(self.evidence)
                if posterior is not None and share > 0:
                    yield Piece(cell.weight * share, cell, posterior)
            return
        for weight, given in self.integrated():
            for piece in given.posterior(asked):
                yield replace(piece, weight=weight * piece.weight)

    def evidence(self, values: Array) -> Array:
        """Return the probability of what was seen for some values of the continuous quantity that rows share."""
        return np.array([sum(piece.weight for piece in self.at(float(v)).posterior(())) for v in values])

    def integrated(self) -> list[tuple[float, "Given"]]:
        """Return the model for values of the continuous quantity that rows share, and what each stands for."""
        if self.unknown is None:
            return [(1.0, self)]
        parameters = specialised(self.unknown.parents, self.known)
        curve = curve_of(family_of(self.unknown), parameters)
        if (
            not self.model.likelihood.conditions + self.model.likelihood.log_weights
            and not self.model.likelihood.points
        ):
            return [(float(w), self.at(float(x))) for x, w in zip(*quadrature(curve), strict=True)]
        found = []
        for share, part in curve.parts:
            weighted = _Weighted(self, part.pdf)
            edges, _, _ = resolved(weighted, followed(part, part.breaks))
            found += [(share * weight, self.at(x)) for x, weight in weighted.nodes(edges)]
        return found


@dataclass(frozen=True, eq=False)
class _Weighted:
    """The density of a continuous quantity that rows share, together with what was seen."""

    given: Given
    density: Callable[[Array], Array]

    def __call__(self, values: Array) -> Array:
        return self.given.evidence(values) * self.density(values)

    def nodes(self, edges: Array) -> Iterator[tuple[float, float]]:
        """Yield the nodes of panels with the probabilities that they stand for."""
        grid, steps = panel_nodes(edges)
        weights = self.density(grid.reshape(-1)) * steps.reshape(-1)
        for x, weight in zip(grid.reshape(-1), weights, strict=True):
            if weight > UNLIKELY:
                yield float(x), float(weight)


def conditioned(cell: Cell, likelihood: RowLikelihood) -> Iterator[Piece]:
    """Yield a cell given what was seen."""
    density = likelihood.is_density and not likelihood.has_atom
    constant = likelihood.constant
    if constant is not None or cell.curve is None:
        share = float(likelihood(np.zeros(1))[0]) if constant is None else constant
        if share > 0:
            yield Piece(cell.weight * share, cell, cell.curve, density)
        return
    share, posterior = cell.curve.reweighted(likelihood, likelihood.kinks())
    if posterior is not None and share > 0:
        off = posterior.error + likelihood.error(share) / share
        yield Piece(cell.weight * share, cell, replace(posterior, error=min(1.0, off)), density)
    crossings = [] if likelihood.has_atom else [(x, weight) for x, weight in likelihood.crossings() if weight > 0]
    if crossings:
        places, weights = np.array(crossings).T
        weights = weights * cell.curve.pdf(places)
        if weights.sum() > 0:
            points = Curve.discrete(places, weights)
            yield Piece(cell.weight * float(weights.sum()), cell, points, True)


def settled(pieces: Sequence[Piece]) -> list[Piece]:
    """Return pieces of probability if there are some: a value with a probability counts alone."""
    likely = [piece for piece in pieces if not piece.density]
    return likely or list(pieces)


def evidence(pieces: Sequence[Piece]) -> float:
    """Return the probability or density of what was seen."""
    total = float(sum(piece.weight for piece in pieces))
    if not total > 0:
        raise ImpossibleObservation(NOTHING_LEFT)
    return total
