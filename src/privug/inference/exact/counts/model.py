"""A question about discrete rows as one of counting: blocks of rows that are alike, and what is read off their sums.

Rows are classed by what they add to the sums that the program, the facts and the secret read; everything else about a
row is summed out. Rows that the secret is about stand apart: their class is kept. A cell of a row that enters only
through functions of itself and of shared quantities, such as `row.zip == governor.zip`, matters only through their
values: two, not two hundred. Continuous noise on a sum of integers is a factor of each integer.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from privug.inference.case_plan import Quantity
from privug.inference.exact.counts.lattice import MOST_LAWS, SHARED, Lattice, Reading, RowBlock
from privug.inference.exact.finite.elimination import eliminated, full, schedule, value_of
from privug.inference.exact.finite.solver import parts_of
from privug.inference.exact.finite.states import CERTAIN, States
from privug.inference.exact.rows.cells import (
    Partition,
    RootsBehind,
    Row,
    added_terms,
    alone,
    curve_of,
    quadrature,
    roots_behind,
    rows_of,
)
from privug.inference.exact.rows.likelihood import Constraint, Preimage
from privug.inference.exact.rows.regrouping import (
    Addend,
    NotRows,
    Regrouping,
    RowSum,
    check_followed,
    placeholder,
    placeholders_behind,
)
from privug.inference.graph.conditions import by_clauses
from privug.inference.graph.support import is_truncated, support, support_sizes
from privug.inference.measure.curve import Curve
from privug.inference.measure.lattice_law import SumLaw, sum_law, total_law
from privug.model.batch import combined, digits, first_places, repeated
from privug.model.node import Array, ConstantValue, Node, ancestors, reached
from privug.model.operations import Index, constant
from privug.model.plan import Plan, computed
from privug.observation.likelihood import Likelihood
from privug.prior.conditional import finite_support
from privug.prior.family import Draw, family_of
from privug.prior.scalar import ScalarFamily

FAR = np.array([1e-15, 1 - 1e-15])  # quantiles of noise between which functions of noisy sums are followed
WIDER = 10.0  # times as far, for noise that is rarely met

Ranges = list[tuple[float, float]]


class ContinuousRows(NotRows):
    """Rows that are alike have a continuous quantity, which no observation changes."""

    def __init__(self) -> None:
        super().__init__("a row has a continuous quantity")


class NoisySum:
    """A sum of integers to which one row adds noise, and what was seen of it; values have a density."""

    def __init__(self, place: int, node: Node, row: Row, sums: int, likelihood: Likelihood) -> None:
        self._node, self._likelihood = node, likelihood
        cells = list(Partition(sums, row, (), {}).cells())
        laws = [Curve.point(0.0) if one.curve is None else one.terms[place].law(one.curve) for one in cells]
        self._noise = laws[0] if len(laws) == 1 else Curve.mixture([one.weight for one in cells], laws)
        self.has_density = False

    def log_factor(self, values: Array) -> Array:
        """Return the logarithm of how likely what was seen is for some values of the sum."""
        low, high = self._noise.quantiles(FAR)
        wide = WIDER * (high - low)
        ends = float(values.min() + low - wide), float(values.max() + high + wide)
        preimage = Preimage(self._likelihood, [self._node], {})
        seen = preimage.at(
            (), lambda weights: (min(weights[0] * end for end in ends), max(weights[0] * end for end in ends))
        )
        ranges, places = _together(seen.constraints)
        factor = np.zeros(len(values))
        if places is None:
            factor += sum(self._noise.mass(low - values, high - values) for low, high in ranges)
        else:
            factor += sum(weight * self._noise.pdf(place - values) for place, weight in places)
        self.has_density = places is not None
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(seen.factor * factor, 0.0)))


def _together(constraints: Sequence[Constraint]) -> tuple[Ranges, Ranges | None]:
    """Return the ranges in which a number lies by all that is known of it, or its values with their weights."""
    ranges: Ranges = [(-math.inf, math.inf)]
    places: Ranges | None = None
    for one in constraints:
        scale, start = float(one.weights[0]), one.constant
        if one.sd or one.chances or (places is not None and one.places):
            raise NotRows("what was seen of a noisy sum is more than a value or ranges")
        if one.places and not one.ranges:
            places = [((place - start) / scale, weight / abs(scale)) for place, weight in one.places]
            continue
        own = [sorted(((low - start) / scale, (high - start) / scale)) for low, high in one.ranges]
        both = [(max(a, low), min(b, high)) for a, b in ranges for low, high in own]
        ranges = [(a, b) for a, b in both if a <= b]
    if places is not None:
        places = [(place, weight) for place, weight in places if any(a <= place <= b for a, b in ranges)]
    return ranges, places


MOST_COMBINATIONS = 4_000_000
MOST_VALUES = 10_000


@dataclass(frozen=True)
class RowLaw:
    """The joint distribution of what one row adds to several sums, for each class of shared values.

    `values` has a line for each possible vector of terms; `probabilities` one for each class. `classes` holds the
    class of each combination of the `shared` quantities' values, whose axes are in the order of `supports`.
    """

    values: Array
    probabilities: Array
    shared: tuple[Node, ...]
    supports: tuple[Array, ...]
    classes: Array


@dataclass(frozen=True)
class _Cell:
    """What matters of one cell: the nodes through which it enters, their values, and the chances of these."""

    nodes: tuple[Node, ...]
    values: tuple[Array, ...]
    chances: Array
    """The probability of each value, for each class."""
    shared: tuple[Node, ...]
    classes: Array
    """The class of each combination of values of what is shared."""


def row_law(terms: Sequence[Node], roots: Sequence[Node]) -> RowLaw:
    """Return the joint distribution of terms that are computed from the roots of one row, its cells."""
    behind = roots_behind(terms, roots)
    return _combined(terms, [_cell(root, alone(terms, root, behind), behind) for root in roots], behind)


def _shared_parents(nodes: Sequence[Node], behind: RootsBehind) -> tuple[Node, ...]:
    """Return the quantities that nodes need and that no cell enters, constants aside."""
    found = reached(nodes, lambda node: not behind[node])
    return tuple(node for node in found if not behind[node] and not isinstance(node.operation, ConstantValue))


def listed_values(node: Node) -> Array | None:
    """Return the values that a quantity can take, as they stand in a batch; None if they cannot be listed."""
    if node.shape:
        return None
    if node.levels is not None:
        return np.arange(len(node.levels), dtype=node.dtype)
    known = finite_support(node)
    return None if known is None or len(known) > MOST_VALUES else np.sort(np.asarray(known, node.dtype))


def _cell(root: Node, frontier: list[Node], behind: RootsBehind) -> _Cell:
    operation = root.operation
    if not isinstance(operation, Draw) or not all(isinstance(p.operation, ConstantValue) for p in root.parents):
        raise NotRows("the columns of its table depend on each other")
    if not operation.family.listable:
        raise NotRows("a column of its table has more values than can be listed")
    parameters = [p.operation.array for p in root.parents if isinstance(p.operation, ConstantValue)]
    if support_sizes(operation.family, parameters).max() > MOST_COMBINATIONS:
        raise NotRows("a column of its table has more values than can be listed")
    possible = support(operation.family, parameters, 1)
    shared = _shared_parents(frontier, behind)
    lists = [listed_values(node) for node in shared]
    if any(values is None for values in lists):
        raise NotRows("its rows share a quantity with more values than can be listed")
    sizes = [len(values) for values in lists if values is not None]
    count, states = int(np.prod(sizes, dtype=float)), len(possible.values)
    if count * states > MOST_COMBINATIONS:
        raise NotRows(f"a column and what its rows share have {count * states:,} combinations of values")
    grids = np.meshgrid(*[v for v in lists if v is not None], indexing="ij")
    known = {node: np.repeat(grid.reshape(-1), states) for node, grid in zip(shared, grids, strict=True)}
    known[root] = np.tile(possible.values, count)
    arrays = computed(frontier, known, count * states)
    codes, values = _distinct(arrays)
    owner = np.repeat(np.arange(count), states)
    flat = np.bincount(owner * len(values[0]) + codes, np.tile(possible.probabilities, count), count * len(values[0]))
    chances, classes = np.unique(flat.reshape(count, -1), axis=0, return_inverse=True)
    return _Cell(tuple(frontier), values, chances, shared, classes.reshape([len(v) for v in lists if v is not None]))


def _distinct(arrays: Sequence[Array]) -> tuple[Array, tuple[Array, ...]]:
    """Return a code for each line of several arrays, and the arrays' values for each code."""
    codes = np.zeros(len(arrays[0]), np.int64)
    for array in arrays:
        inner = np.unique(array, return_inverse=True)[1].reshape(-1)
        codes = np.unique(codes * (int(inner.max()) + 1) + inner, return_inverse=True)[1].reshape(-1)
    first = np.unique(codes, return_index=True)[1]
    return codes, tuple(array[first] for array in arrays)


def _combined(terms: Sequence[Node], cells: Sequence[_Cell], behind: RootsBehind) -> RowLaw:
    """Combine the cells of a row: the values of the terms for all combinations of what matters of each cell."""
    parents = dict.fromkeys(parent for node, own in behind.items() if len(own) > 1 for parent in node.parents)
    direct = tuple(p for p in parents if not behind[p] and not isinstance(p.operation, ConstantValue))
    shared = tuple(dict.fromkeys([*direct, *(node for cell in cells for node in cell.shared)]))
    lists = [listed_values(node) for node in shared]
    if any(values is None for values in lists):
        raise NotRows("its rows share a quantity with more values than can be listed")
    supports = tuple(values for values in lists if values is not None)
    free = [supports[shared.index(node)] for node in direct]
    axes = [np.arange(len(cell.values[0])) for cell in cells] + free
    if np.prod([float(len(axis)) for axis in axes]) > MOST_COMBINATIONS:
        raise NotRows("what one row adds depends on too many combinations of values")
    grids = [grid.reshape(-1) for grid in np.meshgrid(*axes, indexing="ij")]
    known: dict[Node, Array] = {}
    for cell, codes in zip(cells, grids, strict=False):
        known.update((node, values[codes]) for node, values in zip(cell.nodes, cell.values, strict=True))
    known.update(zip(direct, grids[len(cells) :], strict=True))
    arrays = computed(terms, known, len(grids[0]))
    codes, values = _distinct([np.asarray(array) + np.zeros(len(grids[0]), array.dtype) for array in arrays])
    return _law(np.stack(values, axis=1), codes, cells, direct, shared, supports)


def _law(
    values: Array,
    codes: Array,
    cells: Sequence[_Cell],
    direct: tuple[Node, ...],
    shared: tuple[Node, ...],
    supports: tuple[Array, ...],
) -> RowLaw:
    """Put the classes of the cells and the values of what is shared directly together to classes of rows."""
    free = [len(supports[shared.index(node)]) for node in direct]
    table = codes.reshape(*(len(cell.values[0]) for cell in cells), *free)
    choices = [range(len(cell.chances)) for cell in cells] + [range(size) for size in free]
    if np.prod([float(len(choice)) for choice in choices]) > MOST_VALUES:
        raise NotRows("what one row adds has too many different distributions")
    lines: list[Array] = []
    for chosen in itertools.product(*choices):
        weights = np.ones(())
        for cell, k in zip(cells, chosen, strict=False):
            weights = np.multiply.outer(weights, cell.chances[k])
        place: tuple[Any, ...] = (..., *chosen[len(cells) :])
        part = table[place] if free else table
        lines.append(np.bincount(part.reshape(-1), np.asarray(weights).reshape(-1), len(values)))
    probabilities, merged = np.unique(np.array(lines), axis=0, return_inverse=True)
    numbers = merged.reshape([len(choice) for choice in choices])
    positions = [_along(cell.classes, cell.shared, shared) for cell in cells]
    positions += [_along(np.arange(size), (node,), shared) for size, node in zip(free, direct, strict=True)]
    classes = numbers[tuple(np.broadcast_arrays(*positions))] if shared else numbers.reshape(())
    full = np.broadcast_to(classes, [len(values_) for values_ in supports])
    return RowLaw(values, probabilities, shared, supports, full)


def _along(array: Array, own: tuple[Node, ...], shared: tuple[Node, ...]) -> Array:
    """Lay an array over the values of some shared quantities out along the axes of all."""
    order = sorted(range(len(own)), key=lambda k: shared.index(own[k]))
    moved = np.transpose(array, order) if array.ndim else array
    shape = [moved.shape[order.index(own.index(node))] if node in own else 1 for node in shared]
    return moved.reshape(shape)


MOST_SHARED = 1e6
MOST_ROW_STATES = 5e6
MOST_PARTS = 2000
MOST_NOISY = 20_000  # values of a sum with continuous noise
DYADIC = 8  # sums of multiples of one eighth are exact, whatever the order
EXACT_VALUE = 1e-13
COST_OF_STATE = 200.0
MOST_CHECKED = 5e8  # elementary operations to see whether the program fails

_COMBINATION = constant(0)  # stands beside nodes for the number of a combination of what rows share
_GROUP, _STATE = constant(0), constant(0)  # the same for the number of a group of them, and of a state of the lattice


@dataclass(frozen=True, eq=False)
class Law:
    """What one row adds to each sum, a line for each class, and how likely each class is in each combination.

    `states` lists the values of what is `asked` about the row; `codes` tell their combinations and classes.
    """

    values: Array
    chances: Array
    asked: Sequence[Node] = ()
    states: States = CERTAIN
    codes: Array = field(default_factory=partial(np.zeros, 0, np.intp))


@dataclass(frozen=True, eq=False)
class Scale:
    """Which coordinate of the lattice a sum is, and what its integers stand for: numbers at equal steps, or any."""

    coordinate: int
    start: float
    step: float
    values: Array | None = None

    def decoded(self, node: Node, integers: Array) -> Array:
        """Return the values of a sum, with the type that it has in the program."""
        numbers = self.start + self.step * integers if self.values is None else self.values[integers]
        return numbers.astype(node.dtype) if node.dtype.kind == "f" else np.rint(numbers).astype(node.dtype)


class CountModel:
    """The lattice of one case of a question, and how quantities are read off its states.

    Of the quantities, the first `outputs` are functions of sums over rows; the others may be about single rows.
    """

    def __init__(
        self, likelihood: Likelihood, quantities: Sequence[Quantity], outputs: int, start: States, halvings: int = 1
    ) -> None:
        """Make ready; panels over a continuous quantity that rows share are halved so many times.

        Raises NotRows where the question is none of sums over independent, discrete rows.
        """
        self._start, self.quantities, self._halvings = start, quantities, halvings
        likelihood = by_clauses(likelihood)
        told = likelihood.nodes
        self._parts = [_scalars(one.nodes) for one in quantities]
        check_followed([*told, *(part for some in self._parts for part in some)])
        whole = [part for some in self._parts[:outputs] for part in some]
        found = Regrouping([*told, *whole], self._parts[outputs:])
        if any(one.ranks for one in found.sums):
            raise NotRows("it puts its rows in order")
        self._seen, images = likelihood.about(found.targets[: len(told)]), iter(found.targets[len(told) :])
        self._told = self._seen.nodes
        self._images = [[next(images) for _ in some] for some in self._parts[:outputs]] + found.asked
        self._tests: list[Callable[[Array], Array]] = [_holds] * len(likelihood.conditions)
        self._tests += [partial(_equals, value) for _, value in likelihood.points]
        self._tests += [_weighs] * len(likelihood.log_weights)
        self._sums = [one.node for one in found.sums]
        self._behind = {node for some in found.asked for node in ancestors(some) if isinstance(node.operation, Draw)}
        alone = [RowSum(placeholder(root), (Addend(root),)) for root in self._behind]  # may be in no sum
        self._rows, self._shared = rows_of([*found.sums, *alone], found.counts, self._behind, local=True)
        adding = Counter(j for row in self._rows for j in {j for j, _ in row.terms})
        self.sums_up = max(adding.values(), default=0) > 1 or any(row.count > 1 for row in self._rows)
        self._noisy = self._noise()
        self._rows = self._rows or [Row((), (), 1)]  # nobody is in the table: one row that adds nothing

    def _noise(self) -> dict[int, NoisySum]:
        """Return the sums to which one row adds continuous noise of its own, with what was seen of them."""
        found: dict[int, NoisySum] = {}
        for row in [row for row in self._rows if not all(family_of(root).listable for root in row.roots)]:
            if row.count > 1:
                raise ContinuousRows
            (place, *others) = {j for j, _ in row.terms if j < len(self._sums)} or (-1,)
            scalar = all(isinstance(family_of(root), ScalarFamily) for root in row.roots)
            if others or place < 0 or place in found or not scalar or self._behind.intersection(row.roots):
                raise NotRows("a row has a continuous quantity")
            own = {node for node in self._told if placeholders_behind([node]) == [self._sums[place]]}
            seen = self._seen.where(own.__contains__)
            found[place] = NoisySum(place, self._sums[place], row, len(self._sums), seen)
            self._rows.remove(row)
        noisy = {self._sums[place] for place in found}
        images = [node for some in self._images for node in some]
        several = [node for node in self._told if len(placeholders_behind([node])) > 1]
        if not noisy.isdisjoint(placeholders_behind([*images, *several])):
            raise NotRows("noisy sums are put together")
        return found

    @property
    def truncated(self) -> int:
        """How many distributions were cut in their far tails."""
        rows = sum(row.count * sum(map(is_truncated, row.roots)) for row in self._rows)
        return rows + sum(map(is_truncated, self._shared))

    @property
    def continuous(self) -> Node | None:
        """The continuous quantity that rows share, if there is one."""
        return next((root for root in self._shared if not family_of(root).listable), None)

    @cached_property
    def _combinations(self) -> States:
        """The values of what rows share, and of what the sizes of tables follow from."""
        start, root = self._start, self.continuous
        if root is not None:
            images = [node for some in self._images for node in some]
            if start.arrays or root in reached(images, lambda node: node.is_random):
                raise NotRows("its rows share a continuous quantity that is asked for")
            values, weights = quadrature(curve_of(family_of(root), root.parents), None, self._halvings)
            start = States({root: values.astype(root.dtype)}, weights)
        known = start.arrays
        shared = [one for one in self._shared if one not in known]
        if any(not family_of(one).listable for one in shared):
            raise NotRows("its rows share several continuous quantities")
        plan = schedule([*shared, *known], known, len(start))
        if plan.peak > MOST_SHARED:
            raise NotRows("what its rows share has too many values")
        states, _ = eliminated(start, plan)
        return States({node: full(array, len(states)) for node, array in states.arrays.items()}, states.weights)

    @cached_property
    def lattice(self) -> Lattice:
        """The problem of counting."""
        first = np.unique(self._classes, return_index=True)[1]
        blocks = [
            RowBlock(values, law.chances[first], row.count)
            for values, law, row in zip(self._scaled[1], self._laws, self._rows, strict=True)
        ]
        shared = np.log(np.bincount(self._classes, self._combinations.weights))
        self._check_failures(blocks, shared)
        noisy = {self._sums[place]: one for place, one in self._noisy.items()}
        most = sum(block.count * block.values.max(axis=0) for block in blocks) if blocks else np.zeros(0)
        if any(most[self._scaled[0][place].coordinate] > MOST_NOISY for place in self._noisy):
            raise NotRows("a sum with noise has too many values")
        factors = [
            self._reading(node, test)
            for node, test in zip(self._told, self._tests, strict=True)
            if noisy.keys().isdisjoint(placeholders_behind([node]))
        ]
        factors += [self._reading(node, one.log_factor) for node, one in noisy.items()]
        self._factors = len(factors)
        kept = [self._reading(node, None) for node in self._kept]
        exposed = [number for number, law in enumerate(self._laws) if law.asked]
        return Lattice(blocks, [*factors, *kept], exposed, shared)

    @property
    def density(self) -> int:
        """How many densities what was seen is a product of, as values of noisy sums have one."""
        return self._tests.count(_weighs) + sum(one.has_density for one in self._noisy.values())

    @property
    def cost(self) -> float:
        """About how many elementary operations an answer takes."""
        apart = math.prod(max(1.0, len(self._apart(law)[0]) / law.chances.size) for law in self._laws if law.asked)
        shared = (int(self._groups.max()) + 1) / len(self.lattice.shared)
        return self.lattice.cost + COST_OF_STATE * self.lattice.final * apart * shared

    @cached_property
    def _kept(self) -> list[Node]:
        """The functions of sums that quantities are made of."""
        images = dict.fromkeys(node for some in self._images for node in some)
        return [node for node in images if placeholders_behind([node])]

    @cached_property
    def _laws(self) -> list[Law]:
        return [self._law(row) for row in self._rows]

    @cached_property
    def _classes(self) -> Array:
        """The class of each combination of what rows share: in one class, all rows have the same distribution."""
        if len(self._combinations) == 1:
            return np.zeros(1, np.intp)
        chances = np.concatenate([law.chances for law in self._laws], axis=1)
        return np.unique(chances, axis=0, return_inverse=True)[1].reshape(-1)

    def _law(self, row: Row) -> Law:
        if any(not family_of(root).listable for root in row.roots):
            raise NotRows("a row has a continuous quantity")
        asked = [root for root in row.roots if root in self._behind]
        if asked and row.count > 1:
            raise NotRows("the secret is about one of several rows that are alike")
        if row.members:
            return self._of_members(row)
        added = self._added(row)
        found = None if asked else self._by_cells(row, added)
        return self._by_elimination(asked, added, self._combinations) if found is None else found

    def _added(self, row: Row) -> dict[int, Node]:
        return added_terms([(j, node) for j, node in row.terms if j < len(self._sums)])

    def _by_cells(self, row: Row, added: Mapping[int, Node]) -> Law | None:
        """Return the law of a row whose cells are independent: one that is only compared has few values."""
        roots = set(row.roots)
        if not roots or not all(roots.intersection(ancestors([node])) for node in added.values()):
            return None
        try:
            law = row_law(list(added.values()), row.roots)
        except NotRows:
            return None
        known, count = self._combinations.arrays, len(self._combinations)
        shared = computed(law.shared, known, count)
        places = tuple(np.searchsorted(values, array) for values, array in zip(law.supports, shared, strict=True))
        classes = np.broadcast_to(law.classes[places], count)
        values = np.zeros((len(law.values), len(self._sums)))
        values[:, list(added)] = law.values
        return Law(values, law.probabilities[classes])

    def _by_elimination(self, asked: Sequence[Node], added: Mapping[int, Node], given: States) -> Law:
        """Return the law of any row, for each combination that is given."""
        known = {**given.arrays, _COMBINATION: np.arange(len(given))}
        plan = schedule([*dict.fromkeys(added.values()), *asked, _COMBINATION], known, len(given))
        if plan.peak > MOST_ROW_STATES:
            raise NotRows("a row has too many combinations of values to list")
        states, _ = eliminated(States(known, np.ones(len(given))), plan)
        table = np.zeros((len(states), len(self._sums)))
        for j, node in added.items():
            table[:, j] = full(value_of(node, states.arrays), len(states))
        values, classes = np.unique(table, axis=0, return_inverse=True)
        combinations, classes = states.arrays[_COMBINATION], classes.reshape(-1)
        chances = np.zeros((len(given), len(values)))
        np.add.at(chances, (combinations, classes), states.weights)
        return Law(values, chances, asked, states, combinations * len(values) + classes)

    def _of_members(self, row: Row) -> Law:
        """Return the law of what the members of a row add together, given what they have in common, mixed over that."""
        own = {root for member in row.members for root in member.roots}
        known = {**self._combinations.arrays, _COMBINATION: np.arange(len(self._combinations))}
        common = [root for root in row.roots if root not in own]
        plan = schedule([*common, *known], known, len(self._combinations))
        if plan.peak * len(row.members) > MOST_LAWS or any(member.members for member in row.members):
            raise NotRows("what its rows share has too many values")
        given, _ = eliminated(States(known, np.ones(len(self._combinations))), plan)
        laws = [self._by_elimination((), self._added(member), given) for member in row.members]
        found: list[tuple[int, SumLaw]] = []
        for number, combination in enumerate(full(given.arrays[_COMBINATION], len(given)).tolist()):
            powers = [_power(law, number, member.count) for law, member in zip(laws, row.members, strict=True)]
            total = total_law(powers)
            if total is None:
                raise NotRows("what rows add together has too many values")
            found.append((combination, total._replace(probabilities=total.probabilities * given.weights[number])))
        lines = np.concatenate([law.values for _, law in found])
        values, codes = np.unique(lines, axis=0, return_inverse=True)
        owner = np.repeat([combination for combination, _ in found], [len(law.values) for _, law in found])
        chances = np.zeros((len(self._combinations), len(values)))
        np.add.at(chances, (owner, codes.reshape(-1)), np.concatenate([law.probabilities for _, law in found]))
        return Law(values / DYADIC, chances)

    @cached_property
    def _scaled(self) -> tuple[list[Scale], list[Array]]:
        """Return what the integers of each sum stand for, and what each class of each row adds in them."""
        scales: list[Scale] = []
        columns: dict[bytes, tuple[int, list[Array]]] = {}
        for j in range(len(self._sums)):
            start, step, values, added = _integers([law.values[:, j] for law in self._laws], self._rows)
            key = b"|".join(one.tobytes() for one in added)
            coordinate, _ = columns.setdefault(key, (len(columns), added))
            scales.append(Scale(coordinate, start, step, values))
        found = [[added[number] for _, added in columns.values()] for number in range(len(self._rows))]
        lines = [np.zeros(len(law.values), np.int64) for law in self._laws]
        return scales, [np.stack(some or [line], axis=1) for some, line in zip(found, lines, strict=True)]

    def _reading(self, node: Node, test: Callable[[Array], Array] | None, *, fails: bool = False) -> Reading:
        """Return how a function of sums is read off them: as it is, as the logarithm of a factor, or if it fails."""
        nodes = placeholders_behind([node])
        places = {one: place for place, one in enumerate(self._sums)}
        scales = [self._scaled[0][places[one]] for one in nodes]
        coordinates = tuple(dict.fromkeys(scale.coordinate for scale in scales))
        plan = Plan([node], nodes)

        def evaluate(integers: Sequence[Array]) -> Array:
            known = dict(zip(coordinates, integers, strict=True))
            values = {one: s.decoded(one, known[s.coordinate]) for one, s in zip(nodes, scales, strict=True)}
            count = len(integers[0]) if len(integers) else 1
            failed = np.zeros(count, np.bool_)
            (found,) = plan.run(count, np.random.Generator(np.random.SFC64(0)), values, failed=failed)
            if fails:
                return _holds(failed)
            return full(found, count) if test is None else np.where(failed, -math.inf, test(full(found, count)))

        return Reading(coordinates, evaluate, keeps=test is None and not fails)

    def _check_failures(self, blocks: Sequence[RowBlock], shared: Array) -> None:
        """Refuse a program that fails for values that its sums can take: what was seen must not hide that."""
        images = [node for some in self._images for node in some]
        failing = [node for node in ancestors([*self._told, *images]) if node.operation.can_fail(node.parents)]
        for node in failing:
            reading = self._reading(node, None, fails=True)
            lattice = Lattice([_projected(block, reading.sums) for block in blocks], [reading], (), shared)
            if lattice.cost > MOST_CHECKED or len(lattice.states()):
                raise NotRows("the program may fail for some of the values that sums can take", node)

    @cached_property
    def _groups(self) -> Array:
        """The group of each combination of what rows share: in one group, class and all that is asked for are equal."""
        if sum(bool(law.asked) for law in self._laws) > 1:
            return np.arange(len(self._combinations))
        return combined(digits(column) for column in (self._classes, *self._asked_of_shared.values()))

    @property
    def _asked_of_shared(self) -> dict[Node, Array]:
        """The values of those of the shared quantities that are asked for, in each combination."""
        asked = reached([node for some in self._images for node in some], lambda node: node.is_random)
        return {node: array for node, array in self._combinations.arrays.items() if node in asked}

    def read(self, counted: States) -> tuple[list[list[Array]], Array]:
        """Return the arrays of each quantity, and logarithms of weights, for all states that are left."""
        first, shared = first_places(self._groups), counted.arrays[SHARED]
        known = {node: array[first] for node, array in self._asked_of_shared.items()} | {_GROUP: np.arange(len(first))}
        shares = np.bincount(self._groups, self._combinations.weights)
        classes = self._classes[first]
        states = States({_STATE: np.arange(len(counted))}, counted.weights)
        states = _joined(states, shared, classes, known, np.log(shares / np.bincount(classes, shares)[classes]))
        for number, law in enumerate(self._laws):
            if law.asked:
                own = counted.arrays["class", number][states.arrays[_STATE]]
                wanted = states.arrays[_GROUP] * len(law.values) + own
                states = _joined(states, wanted, *self._apart(law))
        known = dict(states.arrays)
        for place, node in enumerate(self._kept):
            known[node] = counted.arrays["kept", self._factors + place][known[_STATE]]
        found = [
            _evaluated(quantity.nodes, images, known, len(states))
            for quantity, images in zip(self.quantities, self._images, strict=True)
        ]
        return found, states.weights

    def _apart(self, law: Law) -> tuple[Array, dict[Node, Array], Array]:
        """Return the codes, values and logarithms of shares of the states of a row that stands apart."""
        combinations, classes = law.codes // len(law.values), law.codes % len(law.values)
        codes = self._groups[combinations] * len(law.values) + classes
        asked = {root: full(law.states.arrays[root], len(codes)) for root in law.asked}
        merged = combined(digits(column) for column in (codes, *asked.values()))
        first = first_places(merged)
        weights = np.bincount(merged, law.states.weights * self._combinations.weights[combinations])
        codes = codes[first]
        return codes, {n: c[first] for n, c in asked.items()}, np.log(weights / np.bincount(codes, weights)[codes])


def _joined(states: States, wanted: Array, codes: Array, arrays: Mapping[Node, Array], logs: Array) -> States:
    """Put each state beside all lines whose code it wants; weights are logarithms."""
    order = np.argsort(codes, kind="stable")
    first, last = (np.searchsorted(codes[order], wanted, side=side) for side in ("left", "right"))
    owner, more = repeated(last - first)
    place = order[first[owner] + more]
    taken = states.take(owner)
    return States({**taken.arrays, **{n: array[place] for n, array in arrays.items()}}, taken.weights + logs[place])


def _scalars(nodes: Sequence[Node]) -> list[Node]:
    """Return the single numbers that a quantity is made of."""
    parts = [part for node in nodes for part in parts_of(node)]
    if sum(math.prod(part.shape) for part in parts) > MOST_PARTS:
        raise NotRows("secret and output are made of too many numbers")
    return [
        part if not part.shape else Node(Index(at), (part,), (), part.dtype, part.levels, part.kind)
        for part in parts
        for at in np.ndindex(part.shape)
    ]


def _evaluated(nodes: Sequence[Node], images: Sequence[Node], known: dict[Node, Array], count: int) -> list[Array]:
    """Return the values of the nodes of a quantity from those of what its scalars became."""
    scalars = iter([full(array, count) for array in computed(images, known, count)])
    parts: dict[Node, Array] = {}
    for part in [part for node in nodes for part in parts_of(node)]:
        table = np.stack([next(scalars) for _ in np.ndindex(part.shape)], axis=1)
        parts[part] = table.reshape(count, *part.shape)
    return [full(array, count) for array in computed(nodes, parts, count)]


def _projected(block: RowBlock, sums: Sequence[int]) -> RowBlock:
    """Return a block with the classes that some of the sums tell apart."""
    lines = np.zeros_like(block.values)
    lines[:, list(sums)] = block.values[:, list(sums)]
    values, codes = np.unique(lines, axis=0, return_inverse=True)
    chances = np.zeros((len(block.chances), len(values)))
    np.add.at(chances.T, codes.reshape(-1), block.chances.T)
    return RowBlock(values, chances, block.count)


def _holds(found: Array) -> Array:
    return np.where(found, 0.0, -math.inf)


def _equals(value: float, found: Array) -> Array:
    return np.where(np.abs(found - value) <= EXACT_VALUE * max(1.0, abs(value)), 0.0, -math.inf)


def _weighs(found: Array) -> Array:
    return np.nan_to_num(found, nan=-math.inf, neginf=-math.inf)


def _power(law: Law, number: int, count: int) -> SumLaw:
    """Return the law of what so many alike rows add, in one combination of what they share."""
    parts = DYADIC * law.values
    whole = np.rint(parts)
    found = sum_law(whole.astype(np.int64), law.chances[number], count) if np.array_equal(whole, parts) else None
    if found is None:
        raise NotRows("its sums are not of integers, or have too many values")
    return found


def _integers(columns: Sequence[Array], rows: Sequence[Row]) -> tuple[float, float, Array | None, list[Array]]:
    """Return what rows add to a sum as integers from zero on, and what those stand for."""
    lows = [float(column.min()) for column in columns]
    above = [DYADIC * (column - low) for column, low in zip(columns, lows, strict=True)]
    start = sum(row.count * low for row, low in zip(rows, lows, strict=True))
    if all(np.array_equal(np.rint(one), one) and one.max() < 2**50 for one in above) and math.isfinite(start):
        unit = max(1, int(np.gcd.reduce(np.concatenate(above).astype(np.int64))))
        return start, unit / DYADIC, None, [one.astype(np.int64) // unit for one in above]
    moving = [number for number, one in enumerate(above) if one.any()]
    if len(moving) > 1 or rows[moving[0]].count > 1:
        raise NotRows("its sums are not of integers")
    values, codes = np.unique(columns[moving[0]], return_inverse=True)
    rest = start - lows[moving[0]]
    added = [np.zeros(len(column), np.int64) for column in columns]
    added[moving[0]] = codes.reshape(-1).astype(np.int64)
    return 0.0, 1.0, values + rest, added
