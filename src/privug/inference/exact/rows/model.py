"""One question about sums over rows: beliefs about a row, about the whole table, and how likely the observation is."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from privug.errors import ImpossibleObservation
from privug.inference.exact.finite.states import Roots
from privug.inference.exact.rows.cells import FLAT, Cell, Partition, Row, Term, rows_of
from privug.inference.exact.rows.likelihood import RowLikelihood
from privug.inference.exact.rows.order_statistics import Orders, families_of
from privug.inference.exact.rows.pullback import Pullback
from privug.inference.exact.rows.regrouping import NotRows, Placeholder, Regrouping, row_key
from privug.inference.exact.rows.tally import CellCounts, PowersOfClasses, tallied
from privug.inference.graph.simplification import is_known, specialised, value_of
from privug.inference.measure.curve import Curve
from privug.model.node import Node, ancestors
from privug.observation.likelihood import Likelihood
from privug.prior.family import family_of

MOST_SHARED = 2000
UNLIKELY = 1e-30
NOTHING_LEFT = "this observation has probability zero, or one too small to be told from it"


@dataclass(frozen=True, eq=False)
class BeliefPiece:
    """A share of a belief: its weight, the cell, and the row's number in it, given what was seen."""

    weight: float
    cell: Cell
    curve: Curve | None
    density: int = 0
    """How many densities the weight is a product of: beside one of lower order, it weighs nothing."""


@dataclass(frozen=True, eq=False)
class Memory:
    """What models for several sizes of the same tables have in common: cells of rows, and sums of what they add."""

    cells: dict[Hashable, list[Cell]] = field(default_factory=dict)
    powers: PowersOfClasses = field(default_factory=dict)


class Model:
    """A question given the sizes of its tables: targets as functions of sums over rows.

    Of the conditions of the likelihood, the first so many are `facts`. Each of the quantities that are `asked` for is a
    function of one row, of what all rows share, or of the whole table.
    """

    def __init__(
        self,
        likelihood: Likelihood,
        outputs: Sequence[Node],
        asked: Sequence[Sequence[Node]],
        facts: int = 0,
        memory: Memory | None = None,
    ) -> None:
        self.memory = Memory() if memory is None else memory
        told = likelihood.nodes
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
        rows, self.shared = rows_of(found.sums, found.counts, behind)
        self.families = families_of(rows, found.sums)
        self.counted = [row for family in self.families for row in family.rows]
        self.rows = [row for row in rows if row not in self.counted]
        self.rows += [row for family in self.families for row in family.stand_ins]

    def _row_of(self, root: Node) -> Row | None:
        return next((row for row in (*self.rows, *self.counted) if root in row.roots), None)

    @cached_property
    def sum_nodes(self) -> list[Node]:
        """The nodes that stand for the sums."""
        return [one.node for one in self.sums]

    @cached_property
    def told(self) -> set[Node]:
        """What the observation is a function of."""
        return set(ancestors(self.likelihood.nodes))

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

    def settings(self) -> Iterator[tuple[float, "ConditionalModel"]]:
        """Yield the model for each combination of discrete values that rows share, with its probability."""
        listed = [root for root in self.shared if family_of(root).listable]
        endless = [root for root in self.shared if root not in listed]
        if len(endless) > 1:
            raise NotRows("its rows share several continuous quantities", endless[1])
        if not listed:
            yield 1.0, ConditionalModel(self, {}, endless[0] if endless else None)
            return
        roots = Roots([], order=listed)
        if roots.count(MOST_SHARED) > MOST_SHARED:
            raise NotRows("what its rows share has too many values")
        states = next(iter(roots.blocks()))
        for position in range(len(states)):
            known = {node: array[position] for node, array in states.arrays.items()}
            yield float(states.weights[position]), ConditionalModel(self, known, endless[0] if endless else None)


@dataclass(eq=False)
class ConditionalModel:
    """A model in which what rows share is known, but for one continuous quantity that may be left."""

    model: Model
    known: Mapping[Node, object]
    unknown: Node | None = None
    _cells: dict[Row, list[Cell]] = field(default_factory=dict)
    _tallies: dict[tuple[tuple[int, Node], ...], CellCounts] = field(default_factory=dict)
    _inner: dict[float, "ConditionalModel"] = field(default_factory=dict)

    def cells(self, row: Row, asked: Sequence[Node] = ()) -> list[Cell]:
        """Return the cells of a row."""
        if not asked and row in self._cells:
            return self._cells[row]
        if not asked and row in self.model.rows and self.orders.family(row) is not None:
            found = self.orders.picked(row)
        else:
            found = self._cut(row, asked)
        return found if asked else self._cells.setdefault(row, found)

    def _cut(self, row: Row, asked: Sequence[Node]) -> list[Cell]:
        """Cut a row into cells; tables of several sizes have the same rows."""
        count, cells = len(self.model.sums), self.model.memory.cells
        terms = [*row.terms, *((-1, node) for node in asked)]
        key = None if self.known else row_key(terms)
        if key is None or (count, key) not in cells:
            cut = list(Partition(count, row, asked, self.known).cells())
            return cut if key is None else cells.setdefault((count, key), cut)
        return cells[count, key]

    @cached_property
    def orders(self) -> Orders:
        """The order statistics of rows."""
        return Orders(self.model.families, len(self.model.sums), self.cells, self.model.shared)

    def tally(self, without: Row | None) -> CellCounts:
        """Return what all rows add, one row left aside."""
        aside = () if without is None else without.terms
        if aside not in self._tallies:
            rows = []
            for row in self.model.rows:
                left = row.count - (bool(aside) and set(row.terms) <= set(aside))
                if left:
                    rows.append((self.cells(row), left))
            self._tallies[aside] = tallied(rows, len(self.model.sums), self.model.memory.powers)
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

    def at(self, value: float) -> "ConditionalModel":
        """Return the model for a value of the continuous quantity that rows share."""
        assert self.unknown is not None
        if value not in self._inner:
            self._inner[value] = ConditionalModel(self.model, {**self.known, self.unknown: value})
        return self._inner[value]

    def alone(self, asked: Sequence[Node]) -> Cell:
        """Return the cell that stands for no row; what is asked for is known."""
        nodes = specialised(asked, self.known)
        if not all(map(is_known, nodes)):
            raise NotRows("the secret depends on more than one row")
        return Cell(1.0, (FLAT,) * len(self.model.sums), None, tuple(Term(0.0, float(value_of(n))) for n in nodes))


def conditioned(cell: Cell, likelihood: RowLikelihood) -> Iterator[BeliefPiece]:
    """Yield a cell given what was seen."""
    for one in likelihood.by_order():
        yield from _conditioned(cell, one)


def _conditioned(cell: Cell, likelihood: RowLikelihood) -> Iterator[BeliefPiece]:
    constant = likelihood.constant
    if constant is not None or cell.curve is None:
        share = float(likelihood(np.zeros(1))[0]) if constant is None else constant
        if share > 0:
            yield BeliefPiece(cell.weight * share, cell, cell.curve, likelihood.density)
        return
    share, posterior = cell.curve.reweighted(likelihood, likelihood.kinks())
    if posterior is not None and share > 0:
        off = posterior.error + likelihood.error(share) / share
        yield BeliefPiece(cell.weight * share, cell, replace(posterior, error=min(1.0, off)), likelihood.density)
    crossings = [(x, weight) for x, weight in likelihood.crossings() if weight > 0]
    if crossings:
        places, weights = np.array(crossings).T
        weights = weights * cell.curve.pdf(places)
        if weights.sum() > 0:
            points = Curve.discrete(places, weights)
            yield BeliefPiece(cell.weight * float(weights.sum()), cell, points, likelihood.density)


def settled(pieces: Sequence[BeliefPiece]) -> list[BeliefPiece]:
    """Return the pieces of the lowest order: a value with a probability counts alone."""
    lowest = min((piece.density for piece in pieces), default=0)
    return [piece for piece in pieces if piece.density == lowest]


def evidence(pieces: Sequence[BeliefPiece]) -> float:
    """Return the probability or density of what was seen."""
    total = float(sum(piece.weight for piece in pieces))
    if not total > 0:
        raise ImpossibleObservation(NOTHING_LEFT)
    return total
