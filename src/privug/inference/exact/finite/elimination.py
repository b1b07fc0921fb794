"""Variable elimination: states of a model round by round, forgetting what is not needed and merging what is equal.

A count over sixty people has 2^60 states behind it; but after each person only the count so far matters, of which there
are sixty at most. The same goes for every program that uses its inputs one after the other: sums, counts, extremes,
loops with conditions, rows whose columns depend on each other or on what all rows share. The order of the rounds is
greedy; how many values a quantity can take, at most, says beforehand what they cost.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from privug.errors import UnsuitableEngine
from privug.inference.case_plan import failure_of_program
from privug.inference.exact.finite.elements import Elements
from privug.inference.exact.finite.states import States, crossed
from privug.inference.graph.support import exponent, is_truncated, lost_in_tails, support, support_sizes
from privug.inference.workload import spend
from privug.model.batch import ranked
from privug.model.node import Array, ConstantValue, Context, Node, ancestors, reached
from privug.model.numpy_functions import Cast
from privug.model.operations import Elementwise, Lookup, SampleFailure
from privug.model.traits import Traits
from privug.prior.conditional import Choose, Match
from privug.prior.family import Draw, Support, family_of
from privug.prior.scalar import ScalarFamily

MOST = 1e100  # as good as endless
DENOMINATORS = (1, 2, 4, 8, 10, 20, 100, 1000, 10_000, 100_000, 1_000_000)


@dataclass(frozen=True)
class Span:
    """How many values at most, between which numbers, and of what unit all are multiples; zero if that is not known."""

    size: float
    low: float = -math.inf
    high: float = math.inf
    unit: float = 0.0

    def limited(self) -> "Span":
        """Return the same with no more values than the unit leaves room for."""
        if self.unit > 0 and math.isfinite(self.high - self.low):
            return Span(min(self.size, (self.high - self.low) / self.unit + 1), self.low, self.high, self.unit)
        return Span(min(self.size, MOST), self.low, self.high, self.unit)


TRUTH = Span(2.0, 0.0, 1.0, 1.0)


def spans_of(order: Sequence[Node], given: Mapping[Node, Array]) -> dict[Node, Span]:
    """Return the span of each node; parents come before their children, and some nodes have given values."""
    spans = {node: _of_values(values) for node, values in given.items()}
    known: dict[tuple[object, ...], Span] = {}
    for node in order:
        if node in spans:
            continue
        if isinstance(node.operation, Draw):
            # Thousands of roots may have the same parameters.
            key = node.operation, *node.parents
            if key not in known:
                known[key] = _of_root(node, spans)
            spans[node] = known[key]
        else:
            spans[node] = _span(node, spans).limited()
    return spans


def _span(node: Node, spans: Mapping[Node, Span]) -> Span:
    operation, parents = node.operation, [spans[parent] for parent in node.parents]
    if isinstance(operation, ConstantValue):
        return _of_numbers(operation.array.reshape(-1) if not node.shape else np.zeros(0))
    if node.dtype == bool and not node.shape:
        return TRUTH
    combinations = math.prod(min(parent.size, MOST) for parent in parents)
    if isinstance(operation, Elementwise) and node.levels is None and not node.shape:
        return _of_operator(operation.traits, parents, combinations)
    if isinstance(operation, Choose) and node.levels is None and not node.shape:
        return _either(parents[1:])
    if isinstance(operation, Lookup) and operation.table.ndim == 1 and operation.table.dtype.kind in "bif":
        listed = _of_numbers(operation.table)
        return Span(min(combinations, listed.size), listed.low, listed.high, listed.unit)
    if isinstance(operation, Match):
        return Span(min(combinations, len(operation.keys)), 0, len(operation.keys) - 1, 1)
    if isinstance(operation, Cast) and operation.dtype.kind == "f":
        return parents[0]
    if node.levels is not None and not node.shape:
        return Span(min(combinations, len(node.levels)))
    return Span(combinations)


def _of_operator(traits: Traits, parents: Sequence[Span], combinations: float) -> Span:
    if traits.weights is not None:
        first, *others = (_scaled(span, weight) for span, weight in zip(parents, traits.weights, strict=True))
        for other in others:
            unit = _common(first.unit, other.unit)
            first = Span(combinations, first.low + other.low, first.high + other.high, unit)
        return first
    if traits.factor:
        left, right = parents
        if right.size == 1 and math.isfinite(right.low) and right.low:
            return _scaled(left, right.low if traits.factor == 1 else 1 / right.low)
        if traits.factor == 1:
            low, high = traits.image((left.low, left.high), (right.low, right.high))
            return Span(combinations, low, high, left.unit * right.unit)
    return Span(combinations) if traits.chooses is None else _either(parents[traits.chooses :])


def _scaled(span: Span, factor: float) -> Span:
    ends = sorted(end * factor if end else 0.0 for end in (span.low, span.high))
    return Span(span.size, ends[0], ends[1], span.unit * abs(factor))


def _either(spans: Sequence[Span]) -> Span:
    unit = spans[0].unit
    for other in spans[1:]:
        unit = _common(unit, other.unit)
    return Span(sum(s.size for s in spans), min(s.low for s in spans), max(s.high for s in spans), unit)


def _of_values(values: Array) -> Span:
    return _of_numbers(values) if values.ndim == 1 and values.dtype.kind in "bif" else Span(float(len(values)))


def _of_numbers(numbers: Array) -> Span:
    finite = np.unique(numbers[np.isfinite(numbers)].astype(float))
    if not len(finite):
        return Span(max(1.0, len(numbers)))
    return Span(float(len(finite)), float(finite[0]), float(finite[-1]), _unit(finite))


def _unit(numbers: Array) -> float:
    """Return a number of which all are multiples; zero if there is none of moderate size."""
    if np.abs(numbers).max() > 2**40:
        return 0.0
    for denominator in DENOMINATORS:
        scaled = numbers * denominator
        if np.abs(scaled - np.rint(scaled)).max() <= 1e-9:
            whole = int(np.gcd.reduce(np.rint(scaled).astype(np.int64)))
            return whole / denominator if whole else math.inf
    return 0.0


def _common(left: float, right: float) -> float:
    """Return a number of which all multiples of two others are multiples; all there is may be zero."""
    if not left or not right:
        return 0.0
    if math.isinf(left) or math.isinf(right):
        return min(left, right)
    return _unit(np.array([left, right]))


def _of_root(root: Node, spans: Mapping[Node, Span]) -> Span:
    family = family_of(root)
    if family.table is not None:
        listed = _of_numbers(family.table) if family.levels is None else Span(MOST)
        return Span(float(len(family.table)), listed.low, listed.high, listed.unit)
    if not isinstance(family, ScalarFamily):
        known = [p.operation.array for p in root.parents if isinstance(p.operation, ConstantValue)]
        return Span(float(np.max(support_sizes(family, known))) if len(known) == len(root.parents) else MOST)
    corners = list(product(*((spans[parent].low, spans[parent].high) for parent in root.parents)))
    if not np.all(np.isfinite(corners)):
        return Span(MOST)
    ends = [family.range([np.array(number) for number in corner], exponent()) for corner in corners]
    low, high = min(float(low) for low, _ in ends), max(float(high) for _, high in ends)
    return Span(high - low + 1, low, high, 1.0)


MOST_COMPARED = 4096  # roots: beyond so many, they are taken as they come
MOST_CANDIDATES = 4  # for the next round, of those that need the same quantity
MOST_AT_ONCE = 64  # roots that are brought in for one quantity's sake
MOST_EXPECTED = 1e10  # combinations of values to be remembered at once: far more than that will not turn out to be few
HOPELESS = math.log(1e13)  # so many combinations that no later round need be looked at
COST_OF_ROUND = 1.5e5  # in elementary operations
COST_OF_CELL = 6.0


@dataclass(frozen=True)
class EliminationRound:
    """A root that is brought in, if any, what is computed then, and what must be remembered afterwards."""

    root: Node | None
    computed: tuple[Node, ...]
    kept: tuple[Node, ...]


@dataclass(frozen=True)
class Schedule:
    """All rounds; how many combinations there are at most, at any time and at the end, and what all rounds cost."""

    rounds: tuple[EliminationRound, ...]
    peak: float
    final: float
    cost: float
    busiest: tuple[Node, ...]
    """What the round has to do with that makes the most combinations."""


def schedule(targets: Sequence[Node], known: Mapping[Node, Array], combinations: int) -> Schedule:
    """Arrange what some targets are made of; the values of some nodes are known, in so many combinations."""
    order = _needed(targets, set(known))
    spans = spans_of(order, known)
    return _costed(_Arrangement(order, targets, set(known), spans).rounds(), spans, combinations)


def _needed(targets: Sequence[Node], known: set[Node]) -> list[Node]:
    """Return the targets and all they are made of, not looking behind what is known; parents come first."""
    needed = set(reached(targets, known.__contains__))
    return [node for node in ancestors(targets) if node in needed]


class _Arrangement:
    """What has been placed so far, and what waits for it."""

    def __init__(
        self, order: Sequence[Node], targets: Sequence[Node], known: set[Node], spans: Mapping[Node, Span]
    ) -> None:
        self._targets = set(targets)
        self._known = known
        self._weight = {node: math.log(max(1.0, min(spans[node].size, MOST))) for node in order}
        self._random: dict[Node, None] = {}
        self._consumers: dict[Node, list[Node]] = {}
        self._pending: dict[Node, int] = {}
        self._uses: dict[Node, int] = {}
        for node in order:
            waits = () if node in known else [p for p in dict.fromkeys(node.parents) if p in self._random]
            if node in known or isinstance(node.operation, Draw) or waits:
                self._random[node] = None
                self._pending[node] = len(waits)
                self._uses[node] = 0
                self._consumers[node] = []
                for parent in waits:
                    self._consumers[parent].append(node)
                    self._uses[parent] += 1
        self._roots = [n for n in self._random if isinstance(n.operation, Draw) and n not in known]
        self._greedy = len(self._roots) <= MOST_COMPARED
        self._masks = self._behind() if self._greedy else {}
        self._placed_roots = 0
        self._placed: set[Node] = set()
        self._live: dict[Node, None] = {}

    def _behind(self) -> dict[Node, int]:
        """Return for each node the roots that it needs, as the bits of a number."""
        bits = {root: 1 << place for place, root in enumerate(self._roots)}
        masks: dict[Node, int] = {}
        for node in self._random:
            mask = bits.get(node, 0)
            if node not in self._known:
                for parent in node.parents:
                    mask |= masks.get(parent, 0)
            masks[node] = mask
        return masks

    def rounds(self) -> list[EliminationRound]:
        """Place everything, unless there is no hope before its end."""
        self._bits = {root: 1 << place for place, root in enumerate(self._roots)} if self._greedy else {}
        start = [node for node in self._random if node in self._known]
        rounds = [EliminationRound(None, tuple(self._place(start)), tuple(self._live))]
        following = iter(self._roots)
        combinations = 0.0
        while len(self._placed) < len(self._random) and combinations <= HOPELESS:
            candidate = self._next()
            if candidate is None:
                candidate = [next(root for root in following if root not in self._placed)]
            for root in candidate:
                computed = self._place([root])
                rounds.append(EliminationRound(root, tuple(computed), tuple(self._live)))
                kept = sum(self._weight[node] for node in self._live)
                combinations = min(combinations + self._weight[root], kept)
        return rounds

    def _place(self, nodes: Sequence[Node]) -> list[Node]:
        """Place nodes and all that can then be computed; return the latter."""
        computed: list[Node] = []
        frontier = list(nodes)
        for node in frontier:
            self._placed.add(node)
            self._live[node] = None
            if node not in self._known:
                for parent in dict.fromkeys(node.parents):
                    self._use(parent)
            for consumer in self._consumers[node]:
                self._pending[consumer] -= 1
                if not self._pending[consumer] and not isinstance(consumer.operation, Draw):
                    frontier.append(consumer)
                    computed.append(consumer)
            if self._bits:
                self._placed_roots |= self._bits.get(node, 0)
            self._forget(node)
        return computed

    def _use(self, node: Node) -> None:
        if node in self._uses:
            self._uses[node] -= 1
            self._forget(node)

    def _forget(self, node: Node) -> None:
        if not self._uses[node] and node not in self._targets:
            self._live.pop(node, None)

    def _next(self) -> list[Node] | None:
        """Return the roots after whose rounds the fewest combinations are to be remembered."""
        if not self._greedy:
            return None
        best: tuple[float, int] | None = None
        chosen: list[Node] | None = None
        seen: set[int] = set()
        for node in self._live:
            waiting = [c for c in self._consumers[node] if c not in self._placed][:MOST_CANDIDATES]
            for consumer in waiting:
                missing = self._masks[consumer] & ~self._placed_roots
                if missing in seen:
                    continue
                seen.add(missing)
                count = missing.bit_count()
                if count > (MOST_AT_ONCE if best is None else 8):
                    continue
                roots = [self._roots[place] for place in _bits_of(missing)]
                score = self._growth(roots), count
                if best is None or score < best:
                    best, chosen = score, roots
        return chosen

    def _growth(self, roots: Sequence[Node]) -> float:
        """Return the log of the factor by which the combinations grow once some roots are placed."""
        pending: dict[Node, int] = {}
        uses: dict[Node, int] = {}
        frontier = list(roots)
        for node in frontier:
            for parent in dict.fromkeys(node.parents):
                if parent in self._uses:
                    uses[parent] = uses.get(parent, self._uses[parent]) - 1
            for consumer in self._consumers[node]:
                pending[consumer] = pending.get(consumer, self._pending[consumer]) - 1
                if not pending[consumer] and not isinstance(consumer.operation, Draw):
                    frontier.append(consumer)
        new = sum(self._weight[node] for node in frontier if node in self._targets or uses.get(node, self._uses[node]))
        gone = (
            self._weight[node]
            for node, left in uses.items()
            if not left and node in self._live and node not in self._targets
        )
        return new - sum(gone)


def _bits_of(mask: int) -> list[int]:
    places = []
    while mask:
        lowest = mask & -mask
        places.append(lowest.bit_length() - 1)
        mask ^= lowest
    return places


def _costed(rounds: Sequence[EliminationRound], spans: Mapping[Node, Span], combinations: int) -> Schedule:
    rows, peak, cost = float(combinations), 1.0, 0.0
    busiest: tuple[Node, ...] = ()
    for one in rounds:
        grown = rows * (spans[one.root].size if one.root is not None else 1.0)
        cost += COST_OF_ROUND + COST_OF_CELL * min(grown, MOST) * (len(one.computed) + 2 * len(one.kept) + 2)
        rows = min(grown, math.prod(min(spans[node].size, 1e30) for node in one.kept))
        if grown >= peak:
            peak, busiest = grown, (*((one.root,) if one.root is not None else ()), *one.computed)
    return Schedule(tuple(rounds), peak, rows, cost, busiest)


BLOCK = 1 << 20  # combinations of values that are computed at a time
MOST_COMBINATIONS = 20_000_000
MOST_WORK = 8e9  # cells computed in all rounds, where there are no more than so many for sure
HOPEFUL_WORK = 1e8  # where equal states must turn out to be many
MANY = 1 << 17  # combinations, beyond which those of negligible probability are left out
NEGLIGIBLE = 1e-17  # the probability that one round may leave out
TOO_MANY = (
    "engine='exact' cannot answer this: too many combinations of values matter to the output at once; "
    "engine='sample' can"
)


def eliminated(start: States, plan: Schedule) -> tuple[States, float]:
    """Go through all rounds; return the states that are left and how much probability was left out."""
    states, lost, work = start, 0.0, 0.0
    most = MOST_WORK if plan.cost <= COST_OF_CELL * MOST_WORK else HOPEFUL_WORK
    supports: dict[tuple[object, ...], Support] = {}
    for one in plan.rounds:
        parts: list[States] = []
        fixed = None if one.root is None else _fixed(one.root, states, supports)
        values = 64 if fixed is None else len(fixed.values)
        step = BLOCK if one.root is None else max(1, BLOCK // max(1, values))
        cells = len(one.computed) + len(one.kept) + 1
        if fixed is not None and work + len(states) * len(fixed.values) * cells > most:
            raise UnsuitableEngine(TOO_MANY)
        for begin in range(0, len(states), step):
            part = states if len(states) <= step else states.take(slice(begin, begin + step))
            grown = part if one.root is None else _brought_in(part, one.root, fixed)
            work += len(grown) * cells
            spend(COST_OF_CELL * len(grown) * cells)
            parts.append(_merged(_computed(grown, one), one.kept))
            if sum(map(len, parts)) > MOST_COMBINATIONS or work > most:
                raise UnsuitableEngine(TOO_MANY)
        states = parts[0] if len(parts) == 1 else _merged(States.concatenated(parts), one.kept)
        states, cut = _without_negligible(states)
        lost += cut
    return states, lost


def _fixed(root: Node, states: States, supports: dict[tuple[object, ...], Support]) -> Support | None:
    """Return the values of a root whose parameters are the same in all states."""
    parameters = [p.operation.array for p in root.parents if isinstance(p.operation, ConstantValue)]
    if len(parameters) < len(root.parents) or any(parent in states.arrays for parent in root.parents):
        return None
    key = root.operation, *root.parents
    if key not in supports:
        supports[key] = support(family_of(root), parameters, 1)
    return supports[key]


def _brought_in(states: States, root: Node, fixed: Support | None) -> States:
    """Combine each state with every value of a root."""
    arrays, values, weights = crossed(
        states, family_of(root), fixed, lambda: [value_of(parent, states.arrays) for parent in root.parents]
    )
    arrays[root] = values.astype(root.dtype, copy=False)
    return States(arrays, weights)


def value_of(node: Node, arrays: Mapping[Node, Array]) -> Array:
    """Return the values of a node, one for all where it is certain."""
    found = arrays.get(node)
    if found is not None:
        return found
    if isinstance(node.operation, ConstantValue):
        return node.operation.array
    return _certain(node)


def _certain(node: Node) -> Array:
    """Return the value of a node that is made of constants."""
    values: dict[Node, Array] = {}
    for inner in ancestors([node]):
        arguments = [values[parent] for parent in inner.parents]
        values[inner] = inner.operation.evaluate(arguments, _context(1))
    return values[node]


def _context(samples: int) -> Context:
    return Context(samples, np.random.Generator(np.random.SFC64(0)))


def _computed(states: States, one: EliminationRound) -> States:
    """Compute the nodes of a round."""
    if not one.computed:
        return states
    arrays, context = dict(states.arrays), _context(len(states))
    try:
        with np.errstate(all="ignore"):
            for node in one.computed:
                arguments = [value_of(parent, arrays) for parent in node.parents]
                arrays[node] = node.operation.evaluate(arguments, context)
    except SampleFailure as failure:
        raise failure_of_program(failure) from failure.cause
    return States(arrays, states.weights)


def full(array: Array, rows: int) -> Array:
    """Return one value for each row."""
    return array if len(array) == rows else np.repeat(array, rows, axis=0)


def _merged(states: States, kept: Sequence[Node]) -> States:
    """Forget all but some nodes, and add up the probabilities of what is then equal."""
    rows = len(states)
    arrays = {node: full(states.arrays[node], rows) for node in kept}
    codes, span = np.zeros(rows, np.intp), 1
    for array in arrays.values():
        for column in array.reshape(rows, -1).T if array.ndim > 1 else (array,):
            places, count = _places(column)
            if span * count >= 1 << 62:
                codes, distinct = ranked(codes)
                span = len(distinct)
            codes = places if span == 1 else codes * count + places
            span *= count
    if span > 4 * rows + 1024:
        codes, distinct = ranked(codes)
        span = len(distinct)
    weights = np.bincount(codes, states.weights, span)
    one_of = np.empty(span, np.intp)
    one_of[codes] = np.arange(rows)
    possible = np.flatnonzero(weights)
    return States({node: array[one_of[possible]] for node, array in arrays.items()}, weights[possible])


def _places(column: Array) -> tuple[Array, int]:
    """Return whole numbers from zero on that are equal where the column is, and a number above them all."""
    if column.dtype.kind in "bi" and len(column):
        low, high = int(column.min()), int(column.max())
        if high - low < 4 * len(column) + 1024:
            return np.subtract(column, low, dtype=np.intp), high - low + 1
    places, distinct = ranked(column)
    return places, max(1, len(distinct))


def _without_negligible(states: States) -> tuple[States, float]:
    if len(states) <= MANY:
        return states, 0.0
    kept = states.weights > NEGLIGIBLE / len(states)
    lost = float(states.weights[~kept].sum())
    return (states.take(kept), lost) if lost else (states, 0.0)


class Elimination:
    """The states of some targets alone, in the place of those of all roots behind them."""

    def __init__(self, targets: Sequence[Node], start: States) -> None:
        self.nodes = [node for node in dict.fromkeys(targets) if not isinstance(node.operation, ConstantValue)]
        self._start = start
        elements = Elements(self.nodes, list(start.arrays))
        self._parts = {node: elements.all_of(node) for node in self.nodes}
        self._single = list(dict.fromkeys(part for parts in self._parts.values() for part in parts))
        self._cut = 0.0

    @cached_property
    def roots(self) -> list[Node]:
        """The roots that are brought in."""
        return [one.root for one in self.schedule.rounds if one.root is not None]

    @cached_property
    def schedule(self) -> Schedule:
        """The rounds."""
        return schedule(self._single, self._start.arrays, len(self._start))

    @property
    def endless(self) -> Node | None:
        """A root whose values cannot be listed, if there is one."""
        behind = (node for node in ancestors(self._single) if isinstance(node.operation, Draw))
        return next((root for root in behind if not family_of(root).listable), None)

    @property
    def lost(self) -> float:
        """The probability that is left out or misplaced."""
        families = [family_of(root) for root in self.roots]
        cut = lost_in_tails(sum(map(is_truncated, self.roots))) + self._cut
        return cut + sum(family.lost for family in families)

    def blocks(self, block: int) -> Iterator[States]:
        """Yield the states of the targets, a block at a time."""
        states = self.states
        for begin in range(0, len(states), block):
            yield states.take(slice(begin, begin + block))

    @cached_property
    def states(self) -> States:
        """All states of the targets, and how likely each is."""
        final, self._cut = eliminated(self._start, self.schedule)
        arrays = {node: self._joined(node, final) for node in self.nodes}
        return States(arrays, final.weights)

    def _joined(self, node: Node, final: States) -> Array:
        parts = [full(value_of(part, final.arrays), len(final)) for part in self._parts[node]]
        if not node.shape:
            return parts[0].astype(node.dtype, copy=False)
        return np.stack(parts, axis=1).reshape(len(final), *node.shape).astype(node.dtype, copy=False)
