"""What is known of a row, of what all rows share, or of the whole table, given what was seen."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product

import numpy as np

from privug.errors import ImpossibleObservation
from privug.inference.exact.finite.states import Roots
from privug.inference.exact.rows.cells import (
    FLAT,
    Cell,
    CellCounts,
    Memory,
    Partition,
    Row,
    SeveralContinuous,
    Term,
    curve_of,
    quadrature,
    rows_of,
    tallied,
)
from privug.inference.exact.rows.likelihood import Constraint, Outcomes, Preimage, Reaching, RowLikelihood
from privug.inference.exact.rows.order_statistics import (
    AlikeRows,
    Crowd,
    Orders,
    Pick,
    RankedRows,
    crowd_of,
    expectation,
    families_of,
    own_law,
    ranked,
)
from privug.inference.exact.rows.regrouping import NotCounted, NotRows, Regrouping, placeholders_behind, row_key
from privug.inference.graph.conditions import is_known, specialised, value_of
from privug.inference.measure.curve import Curve
from privug.inference.measure.density import followed, panel_nodes, resolved
from privug.model.node import Array, Node, ancestors, reached
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
        found = Regrouping([*likelihood.nodes, *outputs], asked, facts)
        told = len(found.targets) - len(outputs)
        self.likelihood, self.outputs = likelihood.about(found.targets[:told]), found.targets[told:]
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
    def preimage(self) -> Preimage:
        """What was seen, as functions of the sums alone."""
        return Preimage(self.likelihood, self.sum_nodes, {})

    def is_of_table(self, asked: Sequence[Node]) -> bool:
        """Say whether some quantities are functions of sums over rows."""
        return bool(placeholders_behind(asked))

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
        states = Roots([], order=listed).listed(MOST_SHARED)
        if states is None:
            raise NotRows("what its rows share has too many values")
        for weight, known in states.one_by_one():
            yield weight, ConditionalModel(self, known, endless[0] if endless else None)


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
            self._tallies[aside] = tallied(rows, len(self.model.sums), self.model.memory)
        return self._tallies[aside]

    @cached_property
    def discrete(self) -> list[int]:
        """The sums to which every row adds one number in each of its cells."""
        moving = {j for row in self.model.rows for cell in self.cells(row) for j in cell.moving}
        return [j for j in range(len(self.model.sums)) if j not in moving]

    @cached_property
    def preimage(self) -> Preimage:
        """What was seen, as functions of the sums."""
        if not set(self.known).isdisjoint(self.model.told):
            return Preimage(self.model.likelihood, self.model.sum_nodes, self.known)
        return self.model.preimage

    @cached_property
    def outputs(self) -> list[Node]:
        """The outputs, as functions of the sums."""
        return specialised(self.model.outputs, self.known)

    def outcomes(self, tally: CellCounts, cells: Sequence[Cell], nodes: Sequence[Node] | None = None) -> Outcomes:
        """Return the outputs, or other functions of the sums, that follow from tallied rows and one in some cells."""
        nodes = self.outputs if nodes is None else nodes
        return Outcomes(nodes, self.model.sum_nodes, self.discrete, Reaching(tally, cells).reach)

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
        constant = one.constant
        if constant is not None or cell.curve is None:
            share = float(one(np.zeros(1))[0]) if constant is None else constant
            if share > 0:
                yield BeliefPiece(cell.weight * share, cell, cell.curve, one.density)
            continue
        share, posterior = cell.curve.reweighted(one, one.kinks())
        if posterior is not None and share > 0:
            off = posterior.error + one.error(share) / share
            yield BeliefPiece(cell.weight * share, cell, replace(posterior, error=min(1.0, off)), one.density)
        crossings = [(x, weight) for x, weight in one.crossings() if weight > 0]
        if crossings:
            places, weights = np.array(crossings).T
            weights = weights * cell.curve.pdf(places)
            if weights.sum() > 0:
                points = Curve.discrete(places, weights)
                yield BeliefPiece(cell.weight * float(weights.sum()), cell, points, one.density)


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


SAME = 1e-12  # how near a value that was seen must be to one that has a probability


class CountedRow:
    """One row of those that an order statistic is picked from."""

    def __init__(self, given: ConditionalModel, family: RankedRows, row: Row, asked: Sequence[Node]) -> None:
        self._given = given
        self._family = family
        self._row = row
        self._stand_in = family.stand_ins[0]
        self._place = family.picks[0][0]
        self._cells = given.cells(row, asked)
        self._tally = given.tally(self._stand_in)
        self._whole = given.cells(self._stand_in)
        self._reach = Reaching(self._tally, self._whole).reach

    def pieces(self) -> Iterator[BeliefPiece]:
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
        return RowLikelihood(self._tally, cell, given.preimage, given.discrete, self._reach)

    def _mixed(self, cell: Cell) -> Iterator[BeliefPiece]:
        """Yield a cell in which the row's number itself is not asked for."""
        for picked in self._given.orders.picked(self._stand_in, self._row, own_law(cell, self._place)):
            if picked.curve is None and len(self._values):
                if np.isclose(self._values, picked.terms[self._place].start, rtol=SAME, atol=0.0).any():
                    yield BeliefPiece(cell.weight * picked.weight, cell, cell.curve)
                continue
            for piece in conditioned(picked, self._likelihood(picked)):
                curve = cell.curve
                if curve is not None and piece.curve is not None:
                    curve = replace(curve, error=max(curve.error, piece.curve.error))
                yield BeliefPiece(cell.weight * piece.weight, cell, curve, piece.density)

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

    def _passed(self, cell: Cell, way: Pick) -> Iterator[BeliefPiece]:
        """Yield a cell whose number is asked for, as far as it is passed over, and where it is what was seen."""
        for likelihood in self._likelihood(self._law).by_order():
            yield from self._given_likelihood(cell, way, likelihood)
            for value, weight in likelihood.crossings():
                yield from self._value(cell, way, value, weight, likelihood.density)

    def _given_likelihood(self, cell: Cell, way: Pick, likelihood: RowLikelihood) -> Iterator[BeliefPiece]:
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
            yield BeliefPiece(cell.weight * share, cell, replace(found, error=off), likelihood.density)

    def _value(self, cell: Cell, way: Pick, value: float, weight: float, density: int) -> Iterator[BeliefPiece]:
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
                yield BeliefPiece(cell.weight * share, cell, found, order)
        if not np.isclose(term.at(place), value, rtol=1e-12, atol=0.0)[0]:
            return
        own = float((curve.pdf(place) / slope * way.itself(at))[0]) * weight
        if own > 0:
            yield BeliefPiece(cell.weight * own, cell, Curve.point(float(place[0])), density)


BESIDE = "several order statistics of the same rows were seen, and something else beside them"
MOST_STATES = 50_000


@dataclass(frozen=True)
class Event:
    """The row of a rank lies in a window; `value` says that the window is one value, of which a density is meant."""

    rank: int
    low: float
    high: float
    value: bool = False


class SumStretches:
    """The line cut at the ends of what was seen: how many rows may be up to the end of each stretch.

    `ends` are the last numbers of stretches; `points` says which are single values, where just one row is, with its
    density.
    """

    def __init__(self, events: Sequence[Event], size: int) -> None:
        cuts = {float(np.nextafter(event.low, -np.inf)) for event in events} | {event.high for event in events}
        ends = self.ends = np.array(sorted({*cuts, np.inf} - {-np.inf}))
        values = {event.low for event in events if event.value}
        self.points = np.array([end in values for end in ends])
        self._least, self._most = np.zeros(len(ends), int), np.full(len(ends), size)
        for event in events:
            before = np.searchsorted(ends, np.nextafter(event.low, -np.inf)) if np.isfinite(event.low) else None
            if before is not None:
                self._most[before] = min(self._most[before], event.rank)
            after = np.searchsorted(ends, event.high)
            self._least[after] = max(self._least[after], event.rank + 1)

    def shares(self, curve: Curve) -> Array:
        """Return the probability, or density, of each stretch."""
        starts = np.concatenate([[-np.inf], np.nextafter(self.ends[:-1], np.inf)])
        masses = curve.mass(starts, self.ends)
        return np.where(self.points, curve.pdf(np.where(self.points, self.ends, 0.0)), masses)

    def likelihood(self, crowd: Crowd, own: int | None) -> float:
        """Return how likely what was seen is, if one more row is in a given stretch."""
        states: dict[tuple[int, ...], float] = {(0,) * len(self.ends): 1.0}
        if own is not None:
            states = {tuple(int(place == own) for place in range(len(self.ends))): 1.0}
        for curve, count in crowd.groups:
            shares = self.shares(curve)
            for _ in range(count):
                states = self._placed(states, shares)
        return sum(weight for state, weight in states.items() if self._allowed(state))

    def _placed(self, states: dict[tuple[int, ...], float], shares: Array) -> dict[tuple[int, ...], float]:
        found: dict[tuple[int, ...], float] = {}
        for state, weight in states.items():
            for place in np.flatnonzero(shares):
                changed = (*state[:place], state[place] + 1, *state[place + 1 :])
                if self._possible(changed):
                    found[changed] = found.get(changed, 0.0) + weight * float(shares[place])
        if len(found) > MOST_STATES:
            raise NotCounted("several order statistics of many rows were seen")
        return found

    def _possible(self, state: tuple[int, ...]) -> bool:
        total = np.cumsum(state)
        return bool(np.all(total <= self._most) and np.all(np.array(state)[self.points] <= 1))

    def _allowed(self, state: tuple[int, ...]) -> bool:
        total = np.cumsum(state)
        there = np.array(state)[self.points] == 1
        return bool(np.all((total >= self._least) & (total <= self._most)) and np.all(there))


class Several:
    """What several order statistics of a family of rows tell about one of them, or about none."""

    def __init__(self, given: ConditionalModel, asked: Sequence[Node]) -> None:
        model = given.model
        if len(model.families) > 1 or len(model.rows) > len(model.families[0].stand_ins):
            raise NotCounted(BESIDE)
        self._family: RankedRows = model.families[0]
        if any(len(ranks) > 1 for _, ranks in self._family.picks):
            raise NotCounted(
                "order statistics were seen together with a range, or a quantile between two rows, of them"
            )
        exposed = model.exposed(asked)
        self._row = exposed if exposed is not None and self._family.has(exposed) else None
        self._place = self._family.picks[0][0]
        self._all = crowd_of(given.orders.others(self._family, None))
        self._groups: list[AlikeRows] = given.orders.others(self._family, self._row)
        empty = [Cell(1.0, (FLAT,) * len(model.sums))]
        self._cells = empty if exposed is None else given.cells(exposed, asked)
        self._seen = given.preimage.at((), self._reach)

    def _reach(self, weights: Array) -> tuple[float, float]:
        found = [(j, ranks) for j, ranks in self._family.picks if weights[j]]
        if len(found) != 1:
            raise NotCounted("the output depends on several order statistics of the same rows at once")
        curve = ranked(self._all, found[0][1][0][0])
        ends = np.concatenate([curve.edges[[0, -1]] if curve.parts else np.empty(0), curve.atoms])
        reach = np.sort(weights[found[0][0]] * np.array([ends.min(), ends.max()]))
        return float(reach[0]), float(reach[1])

    def pieces(self) -> Iterator[BeliefPiece]:
        """Yield the cells of the row with weights, and the number in each."""
        if not self._seen.factor:
            return
        for chosen in product(*(self._options(one) for one in self._seen.constraints)):
            events = [event for event, _ in chosen]
            weight = self._seen.factor * float(np.prod([share for _, share in chosen]))
            values = [event.low for event in events if event.value]
            if len(set(values)) < len(values):
                raise NotCounted("the same value was seen of several order statistics")
            cut = SumStretches(events, self._all.size)
            for cell in self._cells:
                yield from self._cell(cell, cut, weight)

    def _options(self, one: Constraint) -> list[tuple[Event, float]]:
        moved = [(j, ranks) for j, ranks in self._family.picks if one.weights[j]]
        if len(moved) != 1 or one.sd:
            raise NotCounted(BESIDE)
        scale, rank = float(one.weights[moved[0][0]]), moved[0][1][0][0]
        found = []
        for (low, high), share in zip(one.ranges, one.chances or (1.0,) * len(one.ranges), strict=True):
            first, last = sorted(((low - one.constant) / scale, (high - one.constant) / scale))
            found.append((Event(rank, first, last), share))
        for place, share in one.places:
            value = (place - one.constant) / scale
            dense = not np.any(self._all.atoms == value)
            found.append((Event(rank, value, value, dense), share / abs(scale) if dense else 1.0))
        return found

    def _cell(self, cell: Cell, cut: SumStretches, weight: float) -> Iterator[BeliefPiece]:
        """Yield a cell of the row: how likely what was seen is only depends on the stretch in which its number lies."""
        density, term, others = int(cut.points.sum()), cell.terms[self._place], crowd_of(self._groups)
        if self._row is None or cell.curve is None or term.is_flat:
            own = None if self._row is None else int(np.searchsorted(cut.ends, term.start))
            share = weight * cut.likelihood(others, own)
            if share > 0:
                yield BeliefPiece(cell.weight * share, cell, cell.curve, density)
            return
        table = np.array([0.0 if at else cut.likelihood(others, k) for k, at in enumerate(cut.points)])
        bends = term.solved(cut.ends[:-1])[0]
        share, found = cell.curve.reweighted(
            lambda s: table[np.searchsorted(cut.ends, term.at(s))], bends[np.isfinite(bends)]
        )
        if found is not None and share > 0:
            yield BeliefPiece(cell.weight * weight * share, cell, found, density)
        for k in np.flatnonzero(cut.points):
            place, slope = term.solved(cut.ends[k : k + 1])
            own_density = float(own_law(cell, self._place).pdf(cut.ends[k]))
            share = weight * cut.likelihood(others, int(k)) * own_density
            if share > 0 and slope[0] > 0:
                yield BeliefPiece(cell.weight * share, cell, Curve.point(float(place[0])), density)


def posterior(given: ConditionalModel, asked: Sequence[Node]) -> Iterator[BeliefPiece]:
    """Yield what is known of a row, given what was seen: its cells with weights, and the number in each."""
    if given.unknown is not None:
        return _over_unknown(given, asked)
    if given.model.is_of_table(asked):
        return _of_table(given, asked)
    if any(len(family.picks) > 1 for family in given.model.families):
        return Several(given, asked).pieces()
    row = given.model.exposed(asked)
    family = None if row is None else given.orders.family(row)
    if row is not None and family is not None:
        return CountedRow(given, family, row, asked).pieces()
    return _of_row(given, row, asked)


def _of_row(given: ConditionalModel, row: Row | None, asked: Sequence[Node]) -> Iterator[BeliefPiece]:
    try:
        cells = [given.alone(asked)] if row is None else given.cells(row, asked)
    except SeveralContinuous as problem:
        yield from _one_by_one(given, asked, problem)
        return
    tally = given.tally(row)
    reach = Reaching(tally, cells).reach
    for cell in cells:
        likelihood = RowLikelihood(tally, cell, given.preimage, given.discrete, reach)
        yield from conditioned(cell, likelihood)


def _one_by_one(given: ConditionalModel, asked: Sequence[Node], problem: SeveralContinuous) -> Iterator[BeliefPiece]:
    """Yield what is known of a row with several continuous quantities, one of which is then taken as known."""
    behind = [node for node in ancestors(asked) if node.is_random and node not in given.known]
    endless = [root for root in behind if not family_of(root).listable]
    if len(behind) != 1 or not endless or not all(map(is_known, endless[0].parents)):
        raise NotRows(str(problem), problem.node)
    yield from posterior(ConditionalModel(given.model, given.known, endless[0]), asked)


def _of_table(given: ConditionalModel, asked: Sequence[Node]) -> Iterator[BeliefPiece]:
    """Yield what is known of a function of the whole table."""
    tally, cell = given.tally(None), given.alone(())
    reach = Reaching(tally, [cell]).reach
    likelihood = RowLikelihood(tally, cell, given.preimage, given.discrete, reach, by_key=True)
    outcomes = given.outcomes(tally, [cell], specialised(asked, given.known))
    for one in likelihood.by_order():
        for group, weight in one.by_group():
            if weight > 0:
                yield BeliefPiece(weight, replace(cell, asked=outcomes.at(group.key).terms), None, one.density)


def _over_unknown(given: ConditionalModel, asked: Sequence[Node]) -> Iterator[BeliefPiece]:
    """Yield what is known if rows share a continuous quantity, which is integrated over or asked for."""
    assert given.unknown is not None
    if _uses(asked, given.unknown):
        row = Row((), (given.unknown,), 1)
        for cell in given.cells(row, asked):
            assert cell.curve is not None
            if not given.model.told:
                yield BeliefPiece(cell.weight, cell, cell.curve)
                continue
            share, found = cell.curve.reweighted(lambda values: _evidence(given, values))
            if found is not None and share > 0:
                yield BeliefPiece(cell.weight * share, cell, found)
        return
    for weight, inner in integrated(given):
        for piece in posterior(inner, asked):
            yield replace(piece, weight=weight * piece.weight)


def _uses(asked: Sequence[Node], root: Node) -> bool:
    """Say whether quantities are functions of a root, and not only of others that are drawn by it."""
    return root in reached(asked, lambda node: node.is_random)


def _evidence(given: ConditionalModel, values: Array) -> Array:
    """Return the probability of what was seen for some values of the continuous quantity that rows share."""
    return np.array([sum(piece.weight for piece in posterior(given.at(float(v)), ())) for v in values])


def integrated(given: ConditionalModel) -> list[tuple[float, ConditionalModel]]:
    """Return the model for values of the continuous quantity that rows share, and what each stands for."""
    if given.unknown is None:
        return [(1.0, given)]
    parameters = specialised(given.unknown.parents, given.known)
    curve = curve_of(family_of(given.unknown), parameters)
    if not given.model.told:
        return [(float(w), given.at(float(x))) for x, w in zip(*quadrature(curve), strict=True)]
    found = []
    for share, part in curve.parts:
        edges, _, _ = resolved(partial(_weighted_evidence, given, part.pdf), followed(part, part.breaks))
        grid, steps = (some.reshape(-1) for some in panel_nodes(edges))
        weights = part.pdf(grid) * steps
        found += [(share * float(w), given.at(float(x))) for x, w in zip(grid, weights, strict=True) if w > UNLIKELY]
    return found


def _weighted_evidence(given: ConditionalModel, density: Callable[[Array], Array], values: Array) -> Array:
    """Return the density of a continuous quantity that rows share, together with what was seen."""
    return _evidence(given, values) * density(values)
