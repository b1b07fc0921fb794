"""Rows cut into cells, on which all that is asked is one number or a line; tallies of cells over all rows.

A row's discrete quantities are listed; its continuous one is cut at every threshold, rounding step and bend. What all
rows add up then only depends on how many rows fell into which cell, and on the numbers inside.

Cells that add the same numbers, and move the same sums in the same proportions, form a class. A tally lists vectors of
whole numbers, flat contributions in units of each sum and how many rows fell into each moving class, with their
probabilities. Given such a vector, the moving parts of the sums are sums of independent curves.
"""

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.special

from privug.inference.exact.finite.states import CERTAIN, Roots, States
from privug.inference.exact.rows.regrouping import Addend, NotRows, RowSum, row_key
from privug.inference.graph.conditions import is_known, specialised, value_of
from privug.inference.graph.support import support
from privug.inference.measure.convolution import Powers, added
from privug.inference.measure.curve import Curve, Density, discrete_part, smooth_part
from privug.inference.measure.density import Tabulated, panel_nodes
from privug.inference.measure.lattice_law import SumLaw, sum_law, total_law
from privug.inference.measure.piecewise_map import PiecewiseMap, PiecewiseMaps, ScalarFunction, Unfollowed
from privug.inference.workload import spend
from privug.model.batch import grouped
from privug.model.node import Array, Node, ancestors
from privug.model.operations import Elementwise, constant, elementwise
from privug.model.plan import computed
from privug.prior.family import Family, family_of
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


RootsBehind = Mapping[Node, frozenset[Node]]


def roots_behind(nodes: Sequence[Node], roots: Collection[Node]) -> RootsBehind:
    """Return which of some roots each node behind others is made of, parents before children."""
    behind: dict[Node, frozenset[Node]] = {}
    for node in ancestors(nodes):
        own = frozenset([node] if node in roots else ())
        behind[node] = own.union(*(behind[parent] for parent in node.parents))
    return behind


def meeting(nodes: Sequence[Node], roots: Collection[Node]) -> Node | None:
    """Return the first thing that is computed of several random quantities."""
    return next((node for node, own in roots_behind(nodes, roots).items() if len(own) > 1), None)


def alone(nodes: Sequence[Node], root: Node, behind: RootsBehind) -> list[Node]:
    """Return the functions of one root alone through which it enters everything else."""
    used = {parent for node, own in behind.items() if own != {root} for parent in node.parents}
    return [node for node, own in behind.items() if own == {root} and (node in used or node in nodes)]


MOST_STATES = 200_000
COST_OF_STATE = 1.7e6  # of a row, in elementary operations
MOST_ROOTS = 100_000  # of all addends together
MOST_CUT = 4000  # states of a row whose continuous quantity has to be cut for each
SAME_SHARE = 1e-10  # by how much two quadratures of one probability may differ, relative to it
ROUNDING = 1e-15
TOGETHER = "a row has several continuous quantities that are put together"
LOOKS = np.array([1e-6, 0.01, 0.25, 0.5, 0.75, 0.99, 1 - 1e-6])

_TIMES = Elementwise("multiply", np.multiply, python=True)
_ADD = Elementwise("add", np.add, python=True)


_Added = tuple[int, Addend, list[Node]]
"""The number of a sum, what a row adds to it, and the roots behind that."""


class SeveralContinuous(NotRows):
    """A row that is asked about has several continuous quantities: one of them must be known first."""


@dataclass(frozen=True, eq=False)
class Row:
    """So many independent rows that are alike: what each adds to which sum.

    Such a row may have `members` that share some of its roots, as a household has.
    """

    terms: tuple[tuple[int, Node], ...]
    roots: tuple[Node, ...]
    count: int
    members: tuple["Row", ...] = ()


@dataclass(frozen=True, eq=False)
class Term:
    """A quantity as a function of the row's number x within a cell: `slope * x + start`, or a monotone piece."""

    slope: float = 0.0
    start: float = 0.0
    image: PiecewiseMap | None = None
    piece: int = 0

    @property
    def is_flat(self) -> bool:
        """Whether it is one number."""
        return self.image is None and self.slope == 0

    def at(self, x: Array) -> Array:
        """Return the values at some numbers."""
        if self.image is not None:
            return np.asarray(self.image.values(x), float)
        return self.slope * x + self.start

    def law(self, curve: Curve) -> Curve:
        """Return the distribution of the quantity, given that of the number."""
        if self.image is not None:
            return self.image.curve(curve)
        return curve.affine(self.slope, self.start)

    def solved(self, y: Array) -> tuple[Array, Array]:
        """Return the numbers at which it takes some values, and how steep it is there."""
        if self.image is not None:
            x = self.image.inverse(self.piece, np.asarray(y, float).reshape(-1)).reshape(np.shape(y))
            return x, np.abs(self.image.slope(x.reshape(-1))).reshape(np.shape(y))
        with np.errstate(divide="ignore", invalid="ignore"):
            return (np.asarray(y) - self.start) / self.slope, np.full(np.shape(y), abs(self.slope))


FLAT = Term()


@dataclass(frozen=True, eq=False)
class Cell:
    """A piece of a row: its probability, the distribution of the row's number in it, and what it adds to each sum."""

    weight: float
    terms: tuple[Term, ...]
    curve: Curve | None = None
    asked: tuple[Term, ...] = ()
    """Further quantities; categories as codes."""

    @cached_property
    def moving(self) -> tuple[int, ...]:
        """The sums to which it adds more than one number."""
        return tuple(j for j, term in enumerate(self.terms) if not term.is_flat)

    @cached_property
    def flats(self) -> Array:
        """What it adds to each sum besides what depends on the row's number."""
        return np.array([term.start if term.is_flat else 0.0 for term in self.terms])


def rows_of(
    sums: Sequence[RowSum], counts: Mapping[Node, int], asked: Collection[Node], *, local: bool = False
) -> tuple[list[Row], list[Node]]:
    """Return independent rows, and the roots that they share; rows that are asked about stay by themselves.

    With `local`, what only some of the rows of a sum share, as members of a household do, makes one row of them.
    """
    addends, numbers = [], 0
    for j, one in enumerate(sums):
        for addend in one.addends:
            addends.append((j, addend, _own_roots(addend)))
            numbers += len(addends[-1][2])
            if numbers > MOST_ROOTS:
                raise NotRows("it puts too many quantities together in too many ways")
    shared = _shared(addends, counts, asked if local else None)
    rows: dict[object, Row] = {}
    for group in _connected(addends, shared):
        row = _row(group, counts, shared)
        key = (row_key(row.terms, shared), tuple(member.count for member in row.members))
        if key[0] is None or row.count > 1 or any(root in asked for root in row.roots):
            rows[row] = row
        else:
            known = rows.get(key)
            rows[key] = row if known is None else replace(known, count=known.count + 1)
    return list(rows.values()), list(shared)


def _row(group: Sequence[_Added], counts: Mapping[Node, int], shared: Mapping[Node, None]) -> Row:
    """Return the row of addends that have roots in common; with members where some of these are not the row's own."""
    roots = {root: None for _, _, behind in group for root in behind if root not in shared}
    terms = tuple(_weighted(j, addend) for j, addend, _ in group)
    count = max((counts.get(root, 1) for root in roots), default=1)
    common = {root: None for root in roots if counts.get(root, 1) < count}
    if count == 1 or not common:
        return Row(terms, tuple(roots), count)
    members = [_row(some, counts, {**shared, **common}) for some in _connected(group, {**shared, **common})]
    return Row(terms, tuple(roots), 1, tuple(members))


def _own_roots(addend: Addend) -> list[Node]:
    return [node for node in ancestors([addend.node]) if node.is_random]


def _weighted(j: int, addend: Addend) -> tuple[int, Node]:
    if addend.weight == 1.0:
        return j, addend.node
    factor = int(addend.weight) if addend.weight.is_integer() else addend.weight
    return j, elementwise(_TIMES, [addend.node, constant(factor)])


def _shared(addends: Sequence[_Added], counts: Mapping[Node, int], asked: Collection[Node] | None) -> dict[Node, None]:
    """Return the roots behind several rows, those that others depend on first.

    If it is said what is `asked` about, a root that only some of the rows of a sum have in common is not one of them.
    """
    users: Counter[tuple[int, Node]] = Counter()
    rows: Counter[int] = Counter()
    uses = Counter((j, root) for j, _, behind in addends for root in behind)
    for j, addend, behind in addends:
        rows[j] += addend.count
        if addend.count > 1:
            users.update({(j, root): addend.count for root in behind if root not in counts})
        elif any(uses[j, root] == 1 for root in behind):
            users.update((j, root) for root in behind if uses[j, root] > 1)
    shared = {
        root: None
        for (j, root), several in users.items()
        if several > 1 and (asked is None or root in asked or several > rows[j] / 2)
    }
    return {root: None for root in ancestors(shared) if root in shared or (root.is_random and shared)} if shared else {}


def _connected(addends: Sequence[_Added], shared: Mapping[Node, None]) -> list[list[_Added]]:
    """Put addends that have a root in common into one group each."""
    groups: dict[int, list[_Added]] = {}
    of_root: dict[Node, int] = {}
    for number, one in enumerate(addends):
        mine = [one]
        for other in {of_root[root] for root in one[2] if root in of_root}:
            mine = groups.pop(other) + mine
        groups[number] = mine
        for _, _, behind in mine:
            of_root.update((root, number) for root in behind if root not in shared)
    return list(groups.values())


class Partition:
    """Cuts rows into cells, as far as sums and further quantities ask about them."""

    def __init__(self, sums: int, row: Row, asked: Sequence[Node], known: Mapping[Node, object]) -> None:
        self._sums = sums
        given = [node for node in row.roots if node not in known]
        added = added_terms(row.terms)
        terms = [*added.values(), *asked]
        targets = specialised([*terms, *given], known) if known else [*terms, *given]
        self._nodes = targets[: len(terms)]
        self._places = list(added)
        self._roots = [node for node in ancestors(targets) if node.is_random]
        self._continuous = [root for root in self._roots if not family_of(root).listable]

    def cells(self) -> Iterator[Cell]:
        """Yield the cells of a row."""
        if not self._continuous:
            yield from self._listed()
            return
        behind = set(self._continuous)
        early = [root for root in self._roots if root not in behind and behind.isdisjoint(ancestors([root]))]
        states = _states(early)
        if len(states) > MOST_CUT:
            raise NotRows(f"a row has {len(states):,} combinations of values, and a continuous quantity beside them")
        for weight, values in states.one_by_one():
            yield from self._of_state(weight, specialised(self._nodes, values))

    def _of_state(self, weight: float, nodes: Sequence[Node]) -> Iterator[Cell]:
        """Yield the cells of a row whose discrete quantities are known, but for those that follow from others."""
        spend(COST_OF_STATE)
        roots = [node for node in ancestors(nodes) if node.is_random]
        first = [root for root in roots if all(map(is_known, root.parents)) and not family_of(root).listable]
        late = [root for root in roots if root not in first]
        if not roots:
            yield self._cell(weight, [Term(0.0, float(value_of(node))) for node in nodes], None)
        elif len(first) == 1 and len(late) <= 1:
            root = first[0]
            curve = curve_of(family_of(root), root.parents)
            if late:
                yield from self._with_late(weight, curve, root, late[0], nodes)
            else:
                yield from self._cut(weight, curve, root, nodes)
        elif first:
            yield from self._by_stretches(weight, first, nodes)
        else:
            raise NotRows("the quantities of a row depend on each other in a way that is not followed", roots[0])

    def _by_stretches(self, weight: float, roots: Sequence[Node], nodes: Sequence[Node]) -> Iterator[Cell]:
        """Yield the cells of a row with several continuous quantities: one that only is compared is cut there."""
        behind = roots_behind(nodes, [node for node in ancestors(nodes) if node.is_random])
        for root in roots:
            curve = curve_of(family_of(root), root.parents)
            edges = _steps(curve, root, alone(nodes, root, behind))
            if edges is None:
                continue
            for start, stop, share, part in _stretches(curve, edges):
                values = {root: _inside(start, stop, part)}
                yield from self._of_state(weight * share, specialised(nodes, values))
            return
        yield from self._integrated(weight, roots, nodes)

    def _integrated(self, weight: float, roots: Sequence[Node], nodes: Sequence[Node]) -> Iterator[Cell]:
        """Yield the cells of a row with several continuous quantities, one of which is integrated out."""
        is_asked = len(nodes) > len(self._places)
        asked = set(ancestors(nodes[len(self._places) :]))
        roots = sorted(roots, key=lambda root: root not in asked)
        other, curves = roots[-1], [curve_of(family_of(root), root.parents) for root in roots]
        kinks = np.concatenate([curve.breaks for curve in curves])
        found: list[dict[tuple[float, ...], float]] = []
        for halvings in (1, 0):
            totals: dict[tuple[float, ...], float] = {}
            for value, share in zip(*quadrature(curves[-1], kinks, halvings), strict=True):
                for cell in self._of_state(weight * float(share), specialised(nodes, {other: value})):
                    if not all(term.is_flat for term in cell.asked):
                        raise SeveralContinuous("the secret is a function of several continuous quantities", other)
                    if not is_asked and cell.moving and np.isfinite(cell.curve.breaks if cell.curve else 0.0).any():
                        raise NotRows(TOGETHER, meeting(nodes, roots))
                    key = (*np.round(cell.flats, 9).tolist(), *map(float, cell.moving))
                    totals[key] = totals.get(key, 0.0) + cell.weight
                    if halvings == 0:
                        yield cell
            found.append(totals)
        if any(abs(found[0].get(key, 0.0) - x) > SAME_SHARE * x + ROUNDING * weight for key, x in found[1].items()):
            raise NotRows(TOGETHER, meeting(nodes, roots))

    def _listed(self) -> Iterator[Cell]:
        states = _states(self._roots)
        arrays = computed(self._nodes, states.arrays, len(states))
        table = np.stack([np.broadcast_to(array, len(states)).astype(float) for array in arrays], axis=1)
        for line, weight in zip(*grouped(table, states.weights), strict=True):
            if weight > 0:
                yield self._cell(float(weight), [Term(0.0, float(value)) for value in line], None)

    def _cell(self, weight: float, terms: Sequence[Term], curve: Curve | None) -> Cell:
        sums = [FLAT] * self._sums
        for j, term in zip(self._places, terms, strict=False):
            sums[j] = term
        return Cell(weight, tuple(sums), curve, tuple(terms[len(self._places) :]))

    def _with_late(self, weight: float, curve: Curve, root: Node, drawn: Node, nodes: Sequence[Node]) -> Iterator[Cell]:
        """Cut the continuous quantity of a row on which the chances of a discrete one depend."""
        family = family_of(drawn)
        if not family.listable:
            raise NotRows("a continuous quantity of a row depends on another one", drawn)
        parameters = [ScalarFunction(parent, root) for parent in drawn.parents]
        for value in _possible(family, parameters, curve):
            share, posterior = curve.reweighted(partial(_chance, family, drawn.dtype, parameters, value))
            if posterior is not None and share > 0:
                yield from self._cut(weight * share, posterior, root, specialised(nodes, {drawn: value}))

    def _cut(self, weight: float, curve: Curve, root: Node, nodes: Sequence[Node]) -> Iterator[Cell]:
        if all(map(is_known, nodes)):
            yield self._cell(weight, [Term(0.0, float(value_of(node))) for node in nodes], curve)
            return
        if curve.parts and len(curve.atoms):  # values with a probability are cells of their own
            share = curve.continuous_share
            yield from self._cut(weight * (1 - share), discrete_part(curve), root, nodes)
            yield from self._cut(weight * share, smooth_part(curve), root, nodes)
            return
        images = PiecewiseMaps(curve)
        found = [None if is_known(node) else images.of(node, root) for node in nodes]
        if not curve.parts:
            for atom, mass in zip(curve.atoms, curve.masses, strict=True):
                values = [_at(image, node, atom) for image, node in zip(found, nodes, strict=True)]
                yield self._cell(weight * float(mass), [Term(0.0, v) for v in values], Curve.point(float(atom)))
            return
        edges = np.unique(np.concatenate([image.edges[1:-1] for image in found if isinstance(image, PiecewiseMap)]))
        for start, stop, share, part in _stretches(curve, edges):
            inside = _inside(start, stop, part)
            terms = [_term(image, node, inside) for image, node in zip(found, nodes, strict=True)]
            yield self._cell(weight * share, terms, part)


def added_terms(terms: Sequence[tuple[int, Node]]) -> dict[int, Node]:
    """Return what a row adds to each sum."""
    added: dict[int, Node] = {}
    for j, node in terms:
        added[j] = elementwise(_ADD, [added[j], node]) if j in added else node
    return added


def _stretches(curve: Curve, edges: Array) -> Iterator[tuple[float, float, float, Curve]]:
    """Yield the stretches between edges with their probabilities, and the distribution in each."""
    low = np.concatenate([[-np.inf], edges])
    high = np.concatenate([np.nextafter(edges, -np.inf), [np.inf]])
    for start, stop in zip(low.tolist(), high.tolist(), strict=True):
        share, part = curve.restricted(start, stop)
        if part is not None and share > 0:
            yield start, stop, share, part


def _steps(curve: Curve, root: Node, functions: Sequence[Node]) -> Array | None:
    """Return where functions of a number jump, if they are constant elsewhere."""
    images = PiecewiseMaps(curve)
    try:
        found = [images.of(node, root) for node in functions]
    except Unfollowed:
        return None
    steps = [image.edges[1:-1] for image in found if isinstance(image, PiecewiseMap) and image.is_discrete]
    return np.unique(np.concatenate(steps)) if steps and len(steps) == len(found) else None


def _inside(start: float, stop: float, part: Curve) -> float:
    """Return a number inside of a stretch."""
    return float(part.quantile(0.5)) if not (math.isfinite(start) and math.isfinite(stop)) else start / 2 + stop / 2


def _at(image: PiecewiseMap | ScalarFunction | None, node: Node, x: float) -> float:
    if image is None:
        return float(value_of(node))
    return float((image.values if isinstance(image, PiecewiseMap) else image)(np.array([x]))[0])


def _term(image: PiecewiseMap | ScalarFunction | None, node: Node, inside: float) -> Term:
    if image is None:
        return Term(0.0, float(value_of(node)))
    assert isinstance(image, PiecewiseMap)
    piece = int(np.clip(np.searchsorted(image.edges, inside, side="right") - 1, 0, len(image.edges) - 2))
    if image.steps[piece]:
        return Term(0.0, float(image.middles[piece]))
    line = image.line(piece)
    return Term(*line) if line is not None else Term(1.0, 0.0, image, piece)


def _states(roots: Sequence[Node]) -> States:
    if not roots:
        return CERTAIN
    states = Roots([], order=roots).listed(MOST_STATES)
    if states is None:
        raise NotRows("a row has too many combinations of values to list")
    return states


def _possible(family: Family, parameters: Sequence[ScalarFunction], curve: Curve) -> Array:
    """Return the values of a discrete quantity whose parameters follow from a row's number."""
    x = curve.quantiles(LOOKS)
    return np.unique(support(family, [np.asarray(parameter(x)) for parameter in parameters], len(x)).values)


def _chance(
    family: Family, dtype: np.dtype[Any], parameters: Sequence[ScalarFunction], value: float, x: Array
) -> Array:
    """Return how likely a value is, given the row's number."""
    if not len(x):
        return np.empty(0)
    known = [np.asarray(parameter(x)) for parameter in parameters]
    with np.errstate(all="ignore"):
        logs = family.log_density(np.full(len(x), value, dtype), known)
    return np.asarray(np.exp(np.nan_to_num(logs, nan=-np.inf, neginf=-np.inf)))


MOST_DENOMINATOR = 10**6
MOST_UNITS = 10**7
LARGEST = 2.0**53  # of whole numbers that floats tell apart
LATTICE = 1e-11  # how far from a multiple of a unit a number may be, relative to its size, for rounding
MOST_VECTORS = 400_000


MOST_REMEMBERED, MOST_NUMBERS = 10_000, 4_000_000


@dataclass(frozen=True, eq=False)
class Memory:
    """What models of the same rows have in common, whatever is seen and for any sizes of their tables.

    Cells of rows by what they add; sums of what classes of cells add, by the cells, which are kept, and by their
    probabilities; and weighted sums of those. All of it follows from its key alone.
    """

    cells: dict[Hashable, list[Cell]] = field(default_factory=dict)
    powers: dict[tuple[float, ...], tuple[Powers, list[Cell]]] = field(default_factory=dict)
    laws: dict[tuple[tuple[int, float, int], ...], Curve] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """Whether it holds so much that it is better begun anew."""
        curves = [*self.laws.values(), *(law for powers, _ in self.powers.values() for law in powers.known)]
        numbers = sum(len(curve.atoms) + sum(_numbers(part) for _, part in curve.parts) for curve in curves)
        entries = len(self.cells) + len(self.powers) + len(self.laws)
        return entries > MOST_REMEMBERED or numbers > MOST_NUMBERS


def _numbers(part: Density) -> int:
    return part.values.size if isinstance(part, Tabulated) else 0


@dataclass(frozen=True, eq=False)
class MovingClass:
    """Cells that move sums along one direction: the distribution of the first moving sum, and the others' ratios."""

    direction: tuple[float, ...]
    powers: Powers


@dataclass(frozen=True, eq=False)
class CellCounts:
    """What rows add to sums: a line of `flats` for each vector, how many rows are in each class, and probabilities."""

    flats: Array
    counts: Array
    probabilities: Array
    classes: tuple[MovingClass, ...]
    lost: float = 0.0
    _memory: Memory = field(default_factory=Memory, repr=False)
    _laws: dict[tuple[tuple[float, ...], tuple[int, ...]], Curve] = field(default_factory=dict, repr=False)

    @property
    def laws(self) -> list[Curve]:
        """The distributions that were asked for."""
        return list(self._laws.values())

    def law(self, weights: Sequence[float] | Array, counts: Sequence[int]) -> Curve:
        """Return the distribution of weighted moving parts of the sums, given how many rows are in each class."""
        scales = tuple(float(np.dot(weights, one.direction)) for one in self.classes)
        used = tuple(int(k) if scale else 0 for k, scale in zip(counts, scales, strict=True))
        key = scales, used
        if key not in self._laws:
            self._laws[key] = self._summed(scales, used)
        return self._laws[key]

    def _summed(self, scales: Sequence[float], counts: Sequence[int]) -> Curve:
        used = [one for one in zip(self.classes, scales, counts, strict=True) if one[2]]
        key = tuple((id(one.powers), scale, count) for one, scale, count in used)  # powers stay as long as the memory
        if key not in self._memory.laws:
            total: Curve | None = None
            for one, scale, count in used:
                part = one.powers.sum(count).affine(scale, 0.0)
                total = part if total is None else added(total, part)
            self._memory.laws[key] = Curve.point(0.0) if total is None else total
        return self._memory.laws[key]


def unit_of(values: Array) -> float | None:
    """Return a unit of which all numbers are multiples, but for rounding; None if there is none to be seen."""
    sizes = np.abs(values[values != 0])
    plain = _unit(values)
    if not len(sizes) or (plain is not None and sizes.max() / plain < LARGEST):
        return plain
    smallest = float(sizes.min())
    relative = _unit(values / smallest)
    return smallest * relative if relative is not None and sizes.max() / smallest / relative < LARGEST else None


def _unit(values: Array) -> float | None:
    """Return one over a whole number of which all numbers are multiples."""
    denominator = 1
    for value in np.unique(values):
        if value == math.floor(value):
            continue
        fraction = Fraction(float(value)).limit_denominator(MOST_DENOMINATOR)
        if abs(float(fraction) - value) > LATTICE * abs(value):
            return None
        denominator = math.lcm(denominator, fraction.denominator)
        if denominator > MOST_UNITS:
            return None
    return 1 / denominator


def direction_of(cell: Cell) -> tuple[float, ...]:
    """Return by how much each sum moves if the first that moves does by one."""
    moving = cell.moving
    if len(moving) == 1:
        return tuple(float(j == moving[0]) for j in range(len(cell.terms)))
    if any(cell.terms[j].image is not None for j in moving):
        raise NotRows("several sums depend on one quantity of a row in ways that are not proportional")
    first = cell.terms[moving[0]].slope
    return tuple(term.slope / first if j in moving else 0.0 for j, term in enumerate(cell.terms))


def first_law(cell: Cell) -> tuple[Curve, Array]:
    """Return the distribution of the first sum that a cell moves, and what it adds to all sums besides."""
    assert cell.curve is not None
    first = cell.moving[0]
    flats = cell.flats.copy()
    for j in cell.moving[1:]:
        ratio = cell.terms[j].slope / cell.terms[first].slope
        flats[j] += cell.terms[j].start - ratio * cell.terms[first].start
    return cell.terms[first].law(cell.curve), flats


@dataclass(eq=False)
class _Class:
    direction: tuple[float, ...]
    flats: Array
    weights: list[float] = field(default_factory=list)
    laws: list[Curve] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    absorbed: list[float] = field(default_factory=list)


def _classified(cells: Iterable[Cell], sums: int) -> tuple[Array, Array, list[_Class]]:
    """Return the flat cells as a table with probabilities, and the classes of moving ones."""
    flat: dict[tuple[float, ...], float] = {}
    classes: dict[tuple[tuple[float, ...], tuple[float, ...]], _Class] = {}
    for cell in cells:
        if not cell.moving:
            key = tuple(cell.flats.tolist())
            flat[key] = flat.get(key, 0.0) + cell.weight
            continue
        direction = tuple(round(ratio, 12) for ratio in direction_of(cell))
        law, flats = first_law(cell)
        one = classes.setdefault((direction, tuple(flats.tolist())), _Class(direction, flats))
        one.weights.append(cell.weight)
        one.laws.append(law)
        one.cells.append(cell)
    _absorb(flat, list(classes.values()))
    values = np.array(list(flat)).reshape(len(flat), sums)
    return values, np.array(list(flat.values())), list(classes.values())


def _absorb(flat: dict[tuple[float, ...], float], classes: Sequence[_Class]) -> None:
    """Make flat cells that differ from a moving class in its own sum alone atoms of that class."""
    for one in classes:
        moved = [j for j, ratio in enumerate(one.direction) if ratio]
        if len(moved) > 1:
            continue
        rest = np.delete(one.flats, moved[0])
        for key in [key for key in flat if np.array_equal(np.delete(np.array(key), moved[0]), rest)]:
            one.weights.append(flat.pop(key))
            one.laws.append(Curve.point(key[moved[0]]))
            one.absorbed.append(key[moved[0]])


def tallied(rows: Sequence[tuple[Sequence[Cell], int]], sums: int, memory: Memory | None = None) -> CellCounts:
    """Tally rows, each given by its cells and how many are alike."""
    memory = Memory() if memory is None else memory
    parts = [(_classified(cells, sums), count) for cells, count in rows]
    lines = [np.concatenate([values, *(one.flats[np.newaxis] for one in classes)]) for (values, _, classes), _ in parts]
    coded = _Coordinates(lines, [count for _, count in parts], sums)
    moving = [(number, one) for number, ((_, _, classes), _) in enumerate(parts) for one in classes]
    laws = []
    for number, ((values, weights, classes), count) in enumerate(parts):
        marks = np.zeros((len(lines[number]), len(moving)), np.int64)
        for place, (owner, one) in enumerate(moving):
            if owner == number:
                marks[len(values) + [c is one for c in classes].index(True), place] = 1
        vectors = np.concatenate([coded.of(number), marks], axis=1)
        shares = np.concatenate([weights, [sum(one.weights) for one in classes]])
        law = sum_law(vectors, shares / shares.sum(), count, MOST_VECTORS)
        if law is None or len(law.values) > MOST_VECTORS:
            raise NotRows("too many combinations of cells that rows can fall into")
        laws.append(law)
    whole = _total(laws, coded.width + len(moving))
    made = tuple(MovingClass(one.direction, _powers(one, memory)) for _, one in moving)
    flats, counts = coded.decoded(whole.values[:, : coded.width]), whole.values[:, coded.width :]
    return CellCounts(flats, counts, whole.probabilities, made, whole.lost, memory)


class _Coordinates:
    """What rows add to sums as whole numbers: multiples of units, or how often each came up where there is none."""

    def __init__(self, lines: Sequence[Array], counts: Sequence[int], sums: int) -> None:
        self._lines = lines
        columns = np.concatenate([np.zeros((1, sums)), *lines]).T
        units = [unit_of(column) for column in columns]
        self._loose = [j for j, unit in enumerate(units) if unit is None]
        self._units = np.array([1.0 if unit is None else unit for unit in units])
        self._single = [count == 1 for count in counts]
        widths = [
            (1 if single else len(some)) if self._loose else 0 for some, single in zip(lines, self._single, strict=True)
        ]
        self._starts = np.cumsum([sums, *widths]).tolist()

    @property
    def width(self) -> int:
        """How many coordinates there are."""
        return int(self._starts[-1])

    def of(self, number: int) -> Array:
        """Return the vectors of what one kind of row can add."""
        lines, (start, stop) = self._lines[number], self._starts[number : number + 2]
        vectors = np.zeros((len(lines), self.width), np.int64)
        vectors[:, : len(self._units)] = np.rint(lines / self._units)
        vectors[:, self._loose] = 0
        if stop > start:
            vectors[:, start:stop] = (
                np.arange(len(lines))[:, np.newaxis] if self._single[number] else np.eye(len(lines))
            )
        return vectors

    def decoded(self, vectors: Array) -> Array:
        """Return what all rows add to sums."""
        flats = vectors[:, : len(self._units)] * self._units
        for number, lines in enumerate(self._lines if self._loose else ()):
            own = vectors[:, self._starts[number] : self._starts[number + 1]]
            added = lines[own[:, 0]] if self._single[number] else own @ lines
            flats[:, self._loose] += added[:, self._loose]
        return np.asarray(flats)


def _powers(one: _Class, memory: Memory) -> Powers:
    """Return the sums of what a class adds, for any number of rows."""
    key = (*(id(cell) for cell in one.cells), *one.absorbed, *one.weights)
    if key not in memory.powers:
        law = one.laws[0] if len(one.laws) == 1 else Curve.mixture(one.weights, one.laws)
        memory.powers.setdefault(key, (Powers(law), one.cells))  # the same for threads that ask at once
    return memory.powers[key][0]


def _total(laws: Sequence[SumLaw], width: int) -> SumLaw:
    if not laws:
        return SumLaw(np.zeros((1, width), np.int64), np.ones(1))
    whole = laws[0]
    for law in sorted(laws[1:], key=lambda one: len(one.values)):
        if len(whole.values) * len(law.values) <= 4 * MOST_VECTORS:
            sums = (whole.values[:, np.newaxis] + law.values[np.newaxis]).reshape(-1, width)
            chances = np.multiply.outer(whole.probabilities, law.probabilities).reshape(-1)
            whole = SumLaw(*grouped(sums, chances), whole.lost + law.lost)
        else:
            both = total_law([whole, law])
            if both is None:
                raise NotRows("too many combinations of cells that rows can fall into")
            whole = both
    return whole
