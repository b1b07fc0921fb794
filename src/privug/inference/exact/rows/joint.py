"""The joint of a secret and an output: one row's number, or what is asked about it, and what all rows give together.

Secrets are rows of a table, listed or nodes of quadrature; outputs are columns, certain ones with labels, others at
nodes of panels, which begin where each secret's density begins and are halved until nothing is left to resolve.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import scipy.special

from privug.errors import UnsuitableEngine
from privug.estimate import Estimate
from privug.inference.exact.rows.cells import FLAT, Cell, CellCounts, Row, Term, tallied
from privug.inference.exact.rows.likelihood import Group, Label, Outcome, Outcomes, Own, groups_of
from privug.inference.exact.rows.order_statistics import CountedLaw, Pick, RankedRows, own_law
from privug.inference.exact.rows.posterior import ConditionalModel
from privug.inference.exact.rows.regrouping import NotCounted, NotRows
from privug.inference.measure.curve import Curve, smooth_part
from privug.inference.measure.density import (
    NODES,
    apart,
    coefficients,
    followed,
    halved,
    panel_nodes,
    panel_nodes_between,
    resolved,
    rounding_of_nodes,
    split_panels,
    united,
)
from privug.inference.measure.piecewise_map import PiecewiseMap
from privug.model.node import Array, Node

NEGLIGIBLE = 1e-17

RestLaw = Curve | CountedLaw


@dataclass(eq=False)
class Formula:
    """One way in which the output follows from a weighted sum, and the law of what other rows add to that."""

    outcome: Outcome
    weights: list[float] = field(default_factory=list)
    laws: list[Curve] = field(default_factory=list)

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
    formulas: list[tuple[Outcome, float, RestLaw]]


def sources(settings: Sequence[tuple[float, ConditionalModel]], asked: Sequence[Node]) -> Iterator[Source]:
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
        outcomes = given.outcomes(tally, cells)
        for cell in cells:
            yield _of_cell(weight, cell, tally, outcomes)


def _of_cell(weight: float, cell: Cell, tally: CellCounts, outcomes: Outcomes) -> Source:
    """Return what outputs follow from a cell of the secret's row, if other rows are tallied."""
    found = _Found()
    outcomes.settle(tally.flats + cell.flats)
    for group in groups_of(tally, cell.flats, outcomes.discrete):
        found.add(outcomes.at(group.key), tally, group)
    return found.source(weight, cell)


def _of_table(weight: float, given: ConditionalModel, asked: Sequence[Node]) -> Iterator[Source]:
    """Yield what outputs follow from each value of a function of the whole table."""
    tally, cell = given.tally(None), given.alone(())
    outcomes, secrets = given.outcomes(tally, [cell]), given.outcomes(tally, [cell], asked)
    found: dict[Label, tuple[tuple[Term, ...], _Found]] = {}
    for group in groups_of(tally, cell.flats, given.discrete):
        secret = secrets.at(group.key)
        found.setdefault(secret.label, (secret.terms, _Found()))[1].add(outcomes.at(group.key), tally, group)
    for terms, one in found.values():
        if one.total > 0:
            yield one.source(weight, replace(cell, asked=terms))


class _Found:
    """Outputs that follow from one cell, as far as they have been gone through."""

    def __init__(self) -> None:
        self._certain: dict[Label, float] = {}
        self._formulas: dict[tuple[object, ...], Formula] = {}

    def add(self, outcome: Outcome, tally: CellCounts, group: Group) -> None:
        """Add what a group of vectors gives."""
        if outcome.weights is None:
            share = float(group.probabilities.sum())
            self._certain[outcome.label] = self._certain.get(outcome.label, 0.0) + share
            return
        if not np.any(group.probabilities > NEGLIGIBLE):
            return
        shared = all(image is None for _, image in outcome.images)
        key = (outcome.label, tuple(outcome.weights.tolist()), outcome.constant if shared else id(outcome))
        formula = self._formulas.setdefault(key, Formula(outcome))
        law = tally.law(outcome.weights, group.counts)
        for line, chance in zip(group.flats, group.probabilities, strict=True):
            if chance > NEGLIGIBLE:
                formula.weights.append(float(chance))
                formula.laws.append(law.affine(1.0, float(line @ outcome.weights) + outcome.constant))

    @property
    def total(self) -> float:
        """The probability of all that was found."""
        return math.fsum(self._certain.values()) + math.fsum(one.total for one in self._formulas.values())

    def source(self, weight: float, cell: Cell) -> Source:
        """Return what was found, given the cell."""
        total = self.total
        certain = {label: share / total for label, share in self._certain.items()}
        formulas: list[tuple[Outcome, float, RestLaw]] = [
            (one.outcome, one.total / total, one.law()) for one in self._formulas.values()
        ]
        return Source(
            weight * cell.weight * (1.0 if cell.curve is not None else min(1.0, total)), cell, certain, formulas
        )


def _counted(
    weight: float, given: ConditionalModel, family: RankedRows, row: Row, asked: Sequence[Node]
) -> Iterator[Source]:
    """Yield what outputs follow from each cell of the secret's row, if rows are counted to find one by its rank."""
    stand_in, (place, _) = family.stand_ins[0], family.picks[0]
    outcomes = given.outcomes(given.tally(stand_in), given.cells(stand_in))
    others = [(given.cells(one), one.count) for one in given.model.rows if one is not stand_in]
    way = None
    for cell in given.cells(row, asked):
        moving = not cell.terms[place].is_flat and cell.curve is not None
        if moving and not all(term.is_flat for term in cell.asked):
            way = way or given.orders.given(family, row)
            yield _telling(weight, given, cell, place, way, outcomes)
            continue
        picked = given.orders.picked(stand_in, row, own_law(cell, place))
        tally = tallied([*others, (picked, 1)], len(cell.terms))
        still = replace(cell, terms=tuple(FLAT if j == place else term for j, term in enumerate(cell.terms)))
        yield _of_cell(weight, still, tally, outcomes)


def _telling(weight: float, given: ConditionalModel, cell: Cell, place: int, way: Pick, outcomes: Outcomes) -> Source:
    """Return what outputs follow from a cell whose number may be the order statistic itself."""
    stand_in = next(one for one in given.model.rows if one.terms[0][0] == place)
    tally, curves = given.tally(stand_in), [one.curve for one in given.cells(stand_in) if one.curve is not None]
    spread = np.unique(np.concatenate([np.empty(0), *(curve.edges for curve in curves)]))
    certain: dict[Label, float] = {}
    formulas: list[tuple[Outcome, float, RestLaw]] = []
    for group in groups_of(tally, np.zeros(len(cell.terms)), given.discrete):
        outcome = outcomes.at(group.key)
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
        return split_panels(edges, pieces.astype(int))

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

    def unresolved(self, table: Array) -> float:
        """Return by how much the information may be off because of the panels; infinite if they cannot tell.

        They can where each row is a node of one panel: the coefficients of what a panel's nodes tell have to fall off.
        """
        if not self.is_continuous or len(self.values) != (len(self._edges) - 1) * NODES:
            return math.inf
        order = np.argsort(self.values[:, 0], kind="stable")
        steps = panel_nodes(self._edges)[1]
        bits = _bits_of_rows(table)[order].reshape(steps.shape) / steps
        return float((_tails(bits)[0] * np.diff(self._edges)).sum())


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
        if isinstance(law, CountedLaw):
            found.append(law.bends(outcome.steps))
            continue
        own, edges = outcome.own(one.cell), np.empty(0) if outcome.steps is None else outcome.steps[0][1:]
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
        own = outcome.own(one.cell)
        if isinstance(law, CountedLaw) or own.is_flat or not law.parts:
            continue
        width = WIDTH * min(Curve(((1.0, part),)).std() for _, part in law.parts)
        moved = np.abs(np.diff(own.at(np.clip(edges, curve.edges[0], curve.edges[-1]))))
        np.maximum(pieces, np.where(inside, np.ceil(moved / width), 1.0), out=pieces)
    return pieces


ENTROPY_ERROR = 1e-10  # of entropies whose densities are polynomials but for rounding, with room to spare
EXACT = 1e-10  # an error in bits that is not worth a word


def shift_information(found: Sequence[Source], output: Curve | None) -> Estimate | None:
    """Return the mutual information of a continuous secret and an output whose distribution it shifts.

    Nothing if it is no such secret and output, or if values of the secret leave several ways to the output.
    """
    if output is None or not output.parts:
        return None
    given = [_given(one) for one in found]
    if not _are_apart(found) or any(curve is None for curve in given):
        return None
    weights = np.array([one.weight for one in found])
    left = sum(weight * _entropy(curve) for weight, curve in zip(weights, given, strict=True) if curve is not None)
    error = ENTROPY_ERROR + output.error + max(curve.error for curve in given if curve is not None)
    return approximately(max(0.0, _entropy(output) - left / float(weights.sum())), error)


def approximately(value: float, off: float) -> Estimate:
    """Return an information that is known but for an error."""
    method = "exact" if off <= EXACT else f"exact to {off:.0e}"
    return Estimate(value, max(0.0, value - off), value + off, "bit", method, exact=True)


def _given(one: Source) -> Curve | None:
    """Return the distribution of the output given a number of the row in a cell, but for where it lies."""
    curve, terms = one.cell.curve, one.cell.asked
    if curve is None or len(curve.atoms) or len(terms) != 1 or terms[0].is_flat or one.certain or not one.formulas:
        return None
    laws = []
    for outcome, _, law in one.formulas:
        same = outcome.weights is not None and np.array_equal(outcome.weights, one.formulas[0][0].weights)  # type: ignore[arg-type]
        if not same or len(outcome.label) > 1 or outcome.images[0][1] is not None or not isinstance(law, Curve):
            return None
        if outcome.own(one.cell).is_flat or len(law.atoms):
            return None
        laws.append(law)
    return laws[0] if len(laws) == 1 else Curve.mixture([chance for _, chance, _ in one.formulas], laws)


def _are_apart(found: Sequence[Source]) -> bool:
    """Say whether each number of the row lies in one cell only, and no two of them ask for the same value."""
    edges = sorted(
        tuple(np.sort(one.cell.asked[0].at(one.cell.curve.edges[[0, -1]])).tolist())
        for one in found
        if one.cell.curve is not None
    )
    return all(first[1] <= second[0] for first, second in pairwise(edges))


def _entropy(curve: Curve) -> float:
    """Return the entropy of a density, and of values with probabilities, in bits."""
    share = curve.continuous_share
    smooth_bits = share * (smooth_part(curve).differential_entropy() - math.log2(share))
    return smooth_bits + float(scipy.special.entr(curve.masses).sum()) / math.log(2)


DEEPEST = 60
RELATIVE = 1e-13
ABSOLUTE = 1e-15  # of a probability
BISECTIONS = 60
TIE = 1e-14  # the probability by which one secret must be likelier than another
GEOMETRIC = 1e-8  # relative size of last coefficients from which on they fall geometrically


def refined(densities: Callable[[Array], Array], prior: Array, edges: Array, most: int) -> tuple[Array, float]:
    """Split panels, up to so many pairs of secret and node, and return their edges and the error of the information.

    `densities` gives the density of outputs together with each secret, a row for each; `prior` has their probabilities.
    """
    error, held = 0.0, 0

    def judged(low: Array, high: Array, depth: int) -> tuple[Array, Array]:
        nonlocal error, held
        values = _on_panels(densities, low, high)
        widths, rounding = high - low, rounding_of_nodes(low, high)
        rough, tails = np.zeros(len(low), bool), np.zeros(len(low))
        for function in (*values, _information(values, prior)):
            tails, last, largest = _tails(function)
            rough |= (last > np.maximum(RELATIVE, rounding) * largest) & (last * widths > ABSOLUTE)
        held += values.size
        done = ~rough | (rounding > 0.5) | (depth == DEEPEST - 1) | (held > most)
        error += float(np.nan_to_num(tails * widths)[done].sum())
        return done, low

    return halved(judged, edges)[0], error


def _tails(values: Array) -> tuple[Array, Array, Array]:
    """Return what a polynomial on each panel leaves out of a function, its last coefficients, and its largest."""
    found = np.abs(coefficients(values))
    last, largest = found[:, -3:].max(axis=1), found.max(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(last < GEOMETRIC * largest, last**2 / largest, last), last, largest


def _on_panels(densities: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Return densities at the nodes of separate panels: secrets, panels, nodes."""
    nodes = panel_nodes_between(low, high)
    return densities(nodes.reshape(-1)).reshape(-1, *nodes.shape)


def _information(values: Array, prior: Array) -> Array:
    """Return what each output adds to the information, in bits."""
    whole = values.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        shares = (row * (np.log2(row) - np.log2(whole) - np.log2(p)) for row, p in zip(values, prior, strict=True))
        return sum((np.nan_to_num(share) for share in shares), np.zeros(whole.shape))


def best_guess_changes(densities: Callable[[Array], Array], nodes: Array) -> Array:
    """Return the outputs at which another secret becomes the likeliest: the best guess has a kink there."""
    points = np.sort(nodes.reshape(-1))
    known = densities(points)
    guesses = np.argmax(known, axis=0)
    place = np.flatnonzero(np.diff(guesses))
    # Secrets that are equally likely but for rounding take turns without a kink.
    left, right = guesses[place], guesses[place + 1]
    gaps = known[left, place] - known[right, place], known[right, place + 1] - known[left, place + 1]
    place = place[np.maximum(*gaps) * (points[place + 1] - points[place]) > TIE]
    low, high, before = points[place], points[place + 1], guesses[place]
    for _ in range(BISECTIONS if len(place) else 0):
        middle = (low + high) / 2
        same = np.argmax(densities(middle), axis=0) == before
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return np.asarray(high)


MOST_PAIRS = 20_000_000
CHUNK, FEWEST_COLUMNS = 1 << 15, 64  # pairs whose densities stay in the processor's cache
MOST_LOOKED_AT = 24
MOST_MISSED = 1e-3  # the probability that sums over outputs may miss, and say so
FEW_KINKS = 12
MOST_KINKS = 16_384
MOST_STARTS = 24  # panels of outputs to begin with, kinks aside
ITSELF = "given the output, only values with a probability of their own are left for the secret"
SOMETIMES = "with some probability the output gives the secret away to the last digit"

Dense = tuple[int, Outcome, float, Curve]
"""The number of a source, and one way in which outputs that have a density follow from it."""


@dataclass(frozen=True, eq=False)
class PairTable:
    """Secrets as rows, outputs as columns: certain ones with labels, others at nodes of panels; and probabilities."""

    secrets: Array
    """A line for each row: the row's number, or the values of what is asked."""
    probabilities: Array
    labels: list[Label]
    """What each column stands for; the part that moves is filled in."""
    information: float
    error: float
    """Of the information, as far as the table tells."""
    missed: float
    """The probability by which sums over outputs missed that of the secrets."""
    infinite: str | None = None
    unresolved: float = math.inf
    """By how much the information may be off because of the panels of the secret, if these tell."""


def tabulated(found: Sequence[Source], asked: int, halvings: int) -> PairTable:
    """Return secrets and outputs as a table; panels of a continuous secret are halved so many times."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _Tabulation(SecretGrid(found, asked, halvings)).table()


class _Tabulation:
    def __init__(self, grid: SecretGrid) -> None:
        self._grid = grid
        self._columns: dict[Label, Array] = {}
        self._densities: dict[Label, list[Dense]] = {}
        self._telling: list[str | None] = []

    def table(self) -> PairTable:
        """Return the table."""
        for number, one in enumerate(self._grid.found):
            _, weights = self._grid.points[number]
            for label, chance in one.certain.items():
                self._put(label, number, weights * chance)
            for outcome, chance, law in one.formulas:
                self._add(number, outcome, chance, law)
        labels, tables = list(self._columns), [column[:, np.newaxis] for column in self._columns.values()]
        error = 0.0
        for label, several in self._densities.items():
            nodes, table, off = self._with_density(several)
            place = several[0][1].images[0][0]
            labels += [(*label[:place], float(node), *label[place + 1 :]) for node in nodes]
            tables.append(table)
            error += off
        return self._checked(labels, np.concatenate(tables, axis=1), error)

    def _checked(self, labels: list[Label], whole: Array, error: float) -> PairTable:
        if not np.isfinite(whole).all():
            raise UnsuitableEngine(TOO_FINE)
        apart = float(np.abs(whole.sum(axis=1) - self._grid.priors).sum())
        # Given one value of a continuous secret a density may have kinks inside of panels; on average that is little.
        missed = abs(float(whole.sum()) - 1) if self._grid.is_continuous else apart
        if any(self._telling):
            told = ITSELF if set(self._telling) == {ITSELF} else SOMETIMES
            return PairTable(*self._grid.spread(whole / whole.sum()), labels, 0.0, error, 0.0, told)
        if not missed <= MOST_MISSED:
            raise UnsuitableEngine(f"engine='exact' missed {missed:.0e} of the joint; engine='sample' can serve")
        whole = whole / whole.sum()
        off = apart * (1 + math.log2(whole.shape[0]))  # what is missed might have told the secret
        bits, unresolved = information(whole), self._grid.unresolved(whole)
        return PairTable(*self._grid.spread(whole), labels, bits, max(error, off), missed, unresolved=unresolved)

    def _add(self, number: int, outcome: Outcome, chance: float, law: RestLaw) -> None:
        """Take down outputs that follow from a source in one way."""
        one, (x, weights) = self._grid.found[number], self._grid.points[number]
        own = outcome.own(one.cell)
        if outcome.steps is not None:
            low, high, labels = outcome.steps
            mass = law.mass if isinstance(law, Curve) else law.given(x)
            self._put_ranges(number, low, high, labels, own.at(x), weights * chance, mass)
        elif isinstance(law, CountedLaw):
            self._telling.append(SOMETIMES)
            for values, shares in law.listed(x):
                self._put_listed(outcome, number, values, (weights * chance)[:, np.newaxis] * shares)
        else:
            self._telling.append(self._put_atoms(outcome, number, own, weights * chance, law))
            if law.parts:
                self._put_flats(outcome, number, own.at(x), weights * chance, law)
            if law.parts or (len(law.atoms) and not own.is_flat and not self._grid.is_continuous):
                self._densities.setdefault(outcome.label, []).append((number, outcome, chance, law))

    def _put(self, label: Label, number: int, weights: Array) -> None:
        column = self._columns.setdefault(label, np.zeros(len(self._grid.values)))
        np.add.at(column, self._grid.codes[number], weights)
        if len(self._columns) * len(column) > MOST_PAIRS:
            raise UnsuitableEngine(TOO_FINE)

    def _put_ranges(
        self, number: int, low: Array, high: Array, labels: Sequence[Label], own: Array, weights: Array,
        mass: Callable[[Array, Array], Array],
    ) -> None:  # fmt: skip
        """Put outputs that are certain on ranges of the weighted sum behind them."""
        shift = own[:, np.newaxis]
        masses = mass(low[np.newaxis] - shift, high[np.newaxis] - shift) * weights[:, np.newaxis]
        for column in np.flatnonzero(masses.sum(axis=0) > 0):
            self._put(labels[int(column)], number, masses[:, column])

    def _put_flats(self, outcome: Outcome, number: int, own: Array, weights: Array, law: Curve) -> None:
        """Put outputs that are certain on some ranges and have a density elsewhere, as far as they are certain."""
        place, image = outcome.images[0]
        if image is None or not image.steps.any():
            return
        ends = [image.piece_ends(int(piece)) for piece in np.flatnonzero(image.steps)]
        labels = [_filled(outcome.label, place, float(value)) for value in image.middles[image.steps]]
        low, high = np.array(ends).T
        if image.steps[0]:
            low[0] = -np.inf
        if image.steps[-1]:
            high[-1] = np.inf
        self._put_ranges(number, low, high, labels, own, weights * law.continuous_share, smooth_part(law).mass)

    def _put_listed(self, outcome: Outcome, number: int, values: Array, told: Array) -> None:
        """Put outputs of the one part that moves, a column for each."""
        place, image = outcome.images[0]
        seen = values if image is None else image.values(values)
        for column, value in enumerate(seen.tolist()):
            self._put((*outcome.label[:place], value, *outcome.label[place + 1 :]), number, told[:, column])

    def _put_atoms(self, outcome: Outcome, number: int, own: Own, weights: Array, law: Curve) -> str | None:
        """Put outputs that have a probability of their own; say so if they tell the secret."""
        (place, image), (x, _) = outcome.images[0], self._grid.points[number]
        for atom, mass in zip(law.atoms, law.masses, strict=True):
            if own.is_flat:
                value = atom if image is None else image.values(np.array([atom]))[0]
                self._put(_filled(outcome.label, place, float(value)), number, weights * float(mass))
            elif self._grid.is_continuous:
                self._put_listed(outcome, number, own.at(x) + atom, np.diag(weights * float(mass)))
            elif image is not None:
                raise NotRows("the output is, with some probability, a function of the secret's row alone")
        if not len(law.atoms) or own.is_flat or not self._grid.is_continuous:
            return None
        return SOMETIMES if law.parts else ITSELF

    def _density(self, formula: Dense, y: Array, some: Array | None) -> tuple[Array, Array]:
        """Return rows, and the density of outputs together with each."""
        number, outcome, chance, law = formula
        (x, weights), codes = self._grid.points[number], self._grid.codes[number]
        if some is not None:
            chosen = np.isin(codes, some)
            x, weights, codes = x[chosen], weights[chosen], codes[chosen]
        moved = outcome.own(self._grid.found[number].cell)
        shift = moved.at(x[:1] if moved.is_flat else x)
        own = outcome.density(law, y[np.newaxis], shift[:, np.newaxis])
        weights = (chance * weights)[:, np.newaxis]
        return codes, np.multiply(own, weights, out=own if len(own) == len(weights) else None)

    def _crossing(self, formula: Dense, y: Array) -> Array:
        """Return the density that the row's number gives outputs all by itself."""
        number, outcome, chance, law = formula
        cell = self._grid.found[number].cell
        own, total = outcome.own(cell), np.zeros(len(y))
        if own.is_flat or cell.curve is None:
            return total
        for atom, mass in zip(law.atoms, law.masses, strict=True):
            place, slope = own.solved(y - atom)
            there = np.abs(own.at(place) + atom - y) <= 1e-9 * np.abs(y)
            total += np.where(there, mass * cell.curve.pdf(place) / slope, 0.0)
        return self._grid.found[number].weight * chance * total

    def _with_density(self, several: Sequence[Dense]) -> tuple[Array, Array, float]:
        """Return the nodes of outputs that have a density, and the table of probabilities there."""
        grid = self._grid

        def densities(y: Array, some: Array | None = None) -> Array:
            rows = len(grid.values) if some is None else len(some)
            width = max(FEWEST_COLUMNS, CHUNK // rows)
            blocks = [self._densities_at(several, y[start : start + width], some) for start in range(0, len(y), width)]
            return np.concatenate(blocks, axis=1)

        some = self._looked_at()
        edges, error = refined(lambda y: densities(y, some), grid.priors[some], self._start(several), MOST_PAIRS)
        if not grid.is_continuous:
            edges = np.union1d(edges, best_guess_changes(densities, panel_nodes(edges)[0]))
        places, steps = panel_nodes(edges)
        nodes = places.reshape(-1)
        if len(nodes) * len(grid.values) > MOST_PAIRS:
            raise UnsuitableEngine(TOO_FINE)
        return nodes, densities(nodes) * steps.reshape(-1), error

    def _densities_at(self, several: Sequence[Dense], y: Array, some: Array | None) -> Array:
        """Return the density of a few outputs together with each secret, or with some of them."""
        grid = self._grid
        table, every = np.zeros((len(grid.values), len(y))), np.arange(len(grid.values))
        for formula in several:
            codes, part = self._density(formula, y, some)
            if np.array_equal(codes, every):
                table += part
            elif len(np.unique(codes)) == len(codes):
                table[codes] += part
            else:
                np.add.at(table, codes, part)
            if not grid.is_continuous and len(formula[3].atoms):
                table[grid.codes[formula[0]][0]] += self._crossing(formula, y)
        return table if some is None else table[some]

    def _looked_at(self) -> Array:
        """Return the rows by which panels of outputs are judged: all, or some from all over."""
        priors = self._grid.priors
        if not self._grid.is_continuous or len(priors) <= MOST_LOOKED_AT:
            return np.arange(len(priors))
        shares = np.cumsum(priors) / priors.sum()
        return np.unique(np.searchsorted(shares, (np.arange(MOST_LOOKED_AT) + 0.5) / MOST_LOOKED_AT))

    def _start(self, several: Sequence[Dense]) -> Array:
        """Return edges to refine panels of outputs from: some from all over, and where densities are not smooth."""
        tracks: list[Array] = []
        kinks: list[Array] = [np.empty(0)]
        for number, outcome, _, law in several:
            curve, image = self._grid.found[number].cell.curve, outcome.images[0][1]
            own = outcome.own(self._grid.found[number].cell)
            shifts = _quantiles(own.at(self._grid.points[number][0]), self._grid.points[number][1])
            breaks = law.breaks[np.isfinite(law.breaks)]
            breaks = breaks[: FEW_KINKS if self._grid.is_continuous else MOST_KINKS // len(several)]
            found = [(tracks, edges) for edges in np.add.outer(shifts, law.edges) if len(edges)]
            found += [(kinks, edges) for edges in np.add.outer(shifts, breaks)]
            if len(law.atoms) and curve is not None and curve.parts and not own.is_flat:
                found += [(tracks, np.sort(edges)) for edges in np.add.outer(law.atoms, own.at(curve.edges))]
            for where, edges in found:
                where.append(edges if image is None else _moved(image, edges))
            if image is not None:
                kinks.append(image.values(np.concatenate([image.edges[:-1], np.nextafter(image.edges[1:], -np.inf)])))
        edges = united(tracks)
        if self._grid.is_continuous:
            edges = np.append(edges[:: max(1, len(edges) // MOST_STARTS)], edges[-1])
        return apart(np.concatenate([edges, *kinks]))


def _filled(label: Label, place: int, value: float) -> Label:
    """Return a label with the part that moves filled in; what only rounding tells apart is one."""
    return (*label[:place], float(f"{value:.12g}"), *label[place + 1 :])


def _quantiles(values: Array, weights: Array) -> Array:
    """Return the ends, the middle, and something in between."""
    order = np.argsort(values)
    places = np.searchsorted(np.cumsum(weights[order]) / weights.sum(), [0.0, 0.1, 0.5, 0.9, 1.0])
    return np.unique(values[order][np.clip(places, 0, len(values) - 1)])


def _moved(image: PiecewiseMap, edges: Array) -> Array:
    """Return edges of outputs, in order, for edges of the weighted sum that they are a function of."""
    return np.unique(image.values(np.clip(edges, *image.edges[[0, -1]])))


def information(probabilities: Array) -> float:
    """Return the mutual information of rows and columns in bits."""
    return max(0.0, float(_bits_of_rows(probabilities).sum()))


def _bits_of_rows(probabilities: Array) -> Array:
    """Return what each row adds to the mutual information of rows and columns, in bits."""
    rows, columns = (
        np.log2(side, where=side > 0, out=np.zeros_like(side))
        for side in (probabilities.sum(axis=1), probabilities.sum(axis=0))
    )
    bits = np.empty(len(probabilities))
    for number, row in enumerate(probabilities):  # a row at a time stays in the processor's cache
        # Logarithms apart: the product of two small probabilities would vanish.
        bits[number] = (row * (np.log2(row, where=row > 0, out=np.zeros_like(row)) - rows[number] - columns)).sum()
    return bits
