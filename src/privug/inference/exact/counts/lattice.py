"""Count vectors: how many rows fall into which class, gone through class by class as far as they fit what was seen.

Rows that are alike are exchangeable, so a table depends on how many of them are in each class: a multinomial. Classes
are placed one after the other. A state holds how many rows are left and what each sum has come to so far; states that
agree in all that is still needed are merged (variable elimination). What was seen bounds the sums from the start: a
count that no completion can bring into its range is never tried.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from privug.inference.exact.finite.states import States
from privug.inference.measure.lattice_law import sum_law, total_law
from privug.inference.workload import spend
from privug.model.batch import combined, digits, first_places, repeated
from privug.model.node import Array
from privug.prior.standard import log_binomial

CHUNK = 1 << 20  # states that are computed at a time
MOST_STATES = 20_000_000
MOST_CONVOLVED = 8e6  # combinations of values of sums
MOST_LAWS = 2000  # laws that are convolved one by one
MOST_CLASSES = 1000  # of rows that are counted class by class
MOST_TABLED = 4_000_000  # values of a sum that are looked at beforehand
MOST_COMPARED = 300  # steps: beyond so many, they are taken as they come
ROUNDS_OF_BOUNDS = 20
COST_OF_STEP = 2e5  # in elementary operations
COST_OF_CELL = 15.0
HOPEFUL = 2.5e9  # elementary operations that are spent on what may be too many count vectors: some two seconds
EXCESS, MOST_COST = 3.0, 1e11  # the same where they are known to be fewer
WIDEST = 600.0  # logarithms of weights that far apart are still added in floats


class TooManyCounts(Exception):
    """More count vectors fit what was seen than can be gone through."""


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Independent rows that are alike: what a row of each class adds to each sum, and how likely each class is.

    `values` are integers from zero on, a line for each class; `chances` has a line for each combination of what the
    rows share.
    """

    values: Array
    chances: Array
    count: int
    lost: float = 0.0
    """How much probability a transform may have misplaced."""


@dataclass(frozen=True, eq=False)
class Reading:
    """What is read off sums once they are complete: a factor of the likelihood, or a quantity to keep.

    `evaluate` takes the values of the sums, and returns logarithms of the factor, or the quantity that is kept.
    """

    sums: tuple[int, ...]
    evaluate: Callable[[Sequence[Array]], Array]
    keeps: bool = False


ColumnKey = tuple[str, int]
"""A column of states: what rows share, ("total", j), ("left", block), ("class", block) or ("kept", reading)."""
SHARED: ColumnKey = ("shared", 0)


def condensed(blocks: Sequence[RowBlock], exposed: Sequence[int]) -> list[RowBlock]:
    """Put rows whose classes need not be told apart together: the law of what they add is a convolution.

    That pays where rows have more classes than the sums that they add to can tell, and where rows that are not alike
    add to the same sums. Blocks whose class is kept stay where they are.
    """
    found = list(blocks)
    groups: dict[tuple[int, ...], list[int]] = {}
    for number, block in enumerate(blocks):
        if number not in exposed:
            groups.setdefault(tuple(np.flatnonzero(block.values.any(axis=0)).tolist()), []).append(number)
    for touched, numbers in groups.items():
        some = [blocks[number] for number in numbers]
        if not touched:
            continue
        if len(some) == 1 and (some[0].count == 1 or len(some[0].values) <= len(touched) + 1):
            continue
        made = _convolved(some, list(touched))
        if made is not None:
            found[numbers[0]] = made
            for number in numbers[1:]:
                found[number] = RowBlock(
                    np.zeros((1, made.values.shape[1]), np.int64), np.ones((len(made.chances), 1)), 1
                )
    return found


def _convolved(blocks: Sequence[RowBlock], touched: list[int]) -> RowBlock | None:
    """Return what all rows of some blocks add together as one row; None if that has too many values."""
    reach = np.sum([block.count * block.values.max(axis=0)[touched] for block in blocks], axis=0)
    classes = len(blocks[0].chances)
    if classes * float(np.prod(reach + 1.0)) > MOST_CONVOLVED or classes * len(blocks) > MOST_LAWS:
        return None
    laws = []
    for number in range(classes):
        powers = [sum_law(block.values[:, touched], block.chances[number], block.count) for block in blocks]
        law = total_law([power for power in powers if power is not None])
        if law is None or any(power is None for power in powers):
            return None
        laws.append(law)
    lines = np.concatenate([law.values for law in laws])
    keys = np.ravel_multi_index(tuple(lines.T), tuple(reach + 1)) if touched else np.zeros(len(lines), np.intp)
    first, codes = np.unique(keys, return_index=True, return_inverse=True)[1:]
    values = np.zeros((len(first), blocks[0].values.shape[1]), np.int64)
    values[:, touched] = lines[first]
    chances = np.zeros((classes, len(first)))
    owner = np.repeat(np.arange(classes), [len(law.values) for law in laws])
    chances[owner, codes.reshape(-1)] = np.concatenate([law.probabilities for law in laws])
    return RowBlock(values, chances, 1, sum(block.lost for block in blocks) + max(law.lost for law in laws))


class Step(NamedTuple):
    """A class of a block that is placed, or the only row of a block."""

    block: int
    number: int


class Lattice:
    """Blocks of rows, what is read off their sums, and the blocks whose class is kept: a problem of counting.

    `shared` holds the logarithms of the probabilities of what rows share; `final` says about how many states there are
    in the end.
    """

    def __init__(
        self, blocks: Sequence[RowBlock], readings: Sequence[Reading], exposed: Sequence[int], shared: Array
    ) -> None:
        self.blocks, self.readings, self.exposed, self.shared = condensed(blocks, exposed), readings, exposed, shared
        if any(block.count > 1 and len(block.values) > MOST_CLASSES for block in self.blocks):
            raise TooManyCounts
        self.sums = self.blocks[0].values.shape[1] if self.blocks else 0
        self._most = sum((b.count * b.values.max(axis=0) for b in self.blocks), np.zeros(self.sums, np.int64))
        self._tables: dict[int, Array] = {}
        self.low, self.high = np.zeros(self.sums, np.int64), self._most.copy()
        self.apart = [r for r, one in enumerate(self.readings) if not self._tabled(one)]
        self._class_low = [np.zeros(len(b.values), np.int64) for b in self.blocks]
        self._class_high = [np.full(len(b.values), b.count, np.int64) for b in self.blocks]
        self.is_possible = bool(np.all(self.low <= self.high)) and self._bounded()
        plan = self._arranged() if self.is_possible else None
        self.steps, self.cost, self.final = ([], 0.0, 1.0) if plan is None else (plan.steps, plan.cost, plan.states)

    def _tabled(self, reading: Reading) -> bool:
        """Look at all values of a reading of one sum beforehand, if these are not too many."""
        if reading.keeps or len(reading.sums) != 1 or self._most[reading.sums[0]] >= MOST_TABLED:
            return False
        j = reading.sums[0]
        logs = reading.evaluate([np.arange(self._most[j] + 1)])
        self._tables[j] = self._tables[j] + logs if j in self._tables else logs
        fitting = np.flatnonzero(self._tables[j] > -math.inf)
        self.low[j], self.high[j] = (fitting[0], fitting[-1]) if len(fitting) else (1, 0)
        return True

    def _bounded(self) -> bool:
        """Bound how often each class comes up by what its sums may come to; say whether anything is left."""
        for _ in range(ROUNDS_OF_BOUNDS):
            before = [bounds.copy() for bounds in (*self._class_low, *self._class_high)]
            ranges = [self._range(number) for number in range(len(self.blocks))]
            least = sum((low for low, _ in ranges), np.zeros(self.sums, np.int64))
            most = sum((high for _, high in ranges), np.zeros(self.sums, np.int64))
            for number, (block, (low, high)) in enumerate(zip(self.blocks, ranges, strict=True)):
                if not self._bound(number, block, self.low - (most - high), self.high - (least - low)):
                    return False
            after = (*self._class_low, *self._class_high)
            if all(np.array_equal(a, b) for a, b in zip(before, after, strict=True)):
                break
        return True

    def _range(self, number: int) -> tuple[Array, Array]:
        """Return between which numbers a block adds to each sum: by its classes, and by how many rows it has."""
        block, low, high = self.blocks[number], self._class_low[number], self._class_high[number]
        values = block.values
        free = high > low
        left = block.count - low.sum()
        start = low @ values
        least = start + (left * values[free].min(axis=0) if free.any() else 0)
        most = np.minimum(high @ values, start + (left * values[free].max(axis=0) if free.any() else 0))
        return least, most

    def _bound(self, number: int, block: RowBlock, least: Array, most: Array) -> bool:
        """Bound the classes of a block that adds to each sum between some numbers."""
        low, high, values = self._class_low[number], self._class_high[number], block.values
        if block.count == 1:
            high[np.any((values > most) | (values < least), axis=1)] = 0
            return bool(high.any())
        for k, line in enumerate(values):
            touched = np.flatnonzero(line)
            others_low, others_high = low @ values - low[k] * line, high @ values - high[k] * line
            if len(touched):
                step = line[touched]
                high[k] = min(high[k], ((most - others_low)[touched] // step).min())
                low[k] = max(low[k], (-((others_high - least)[touched] // step)).max())
            high[k] = min(high[k], block.count - (low.sum() - low[k]))
            low[k] = max(low[k], block.count - (high.sum() - high[k]))
            if low[k] > high[k]:
                return False
        return True

    def _arranged(self) -> "_LatticeArrangement":
        """Order the steps such that few states have to be remembered at any time."""
        exposed = [Step(b, 0) for b in self.exposed]
        waiting = [
            Step(b, k)
            for b, one in enumerate(self.blocks)
            for k in range(len(one.values) if one.count > 1 else 1)
            if b not in self.exposed and one.values.any()
        ]
        plan = _LatticeArrangement(self, waiting + exposed)
        for step in exposed:
            plan.place(step)
        while waiting:
            best = min(waiting, key=plan.score) if len(waiting) <= MOST_COMPARED else waiting[0]
            waiting.remove(best)
            plan.place(best)
        return plan

    def added(self, step: Step) -> tuple[Array, Array]:
        """Return the least and the most that a step adds to each sum."""
        block = self.blocks[step.block]
        if block.count > 1:
            line = block.values[step.number]
            low, high = self.bounds(step)
            return low * line, high * line
        possible = block.values[self.possible(step.block)]
        return possible.min(axis=0), possible.max(axis=0)

    def branches(self, step: Step) -> float:
        """Return how many ways there are to make a step, at most."""
        if self.blocks[step.block].count == 1:
            return float(np.count_nonzero(self.possible(step.block)))
        low, high = self.bounds(step)
        return float(high - low + 1)

    def partial(self, sums: Array, placed: tuple[Array, Array], rest: tuple[Array, Array]) -> Array:
        """Return how many values some sums can have come to, given the bounds of what was placed and of the rest."""
        low = np.maximum(placed[0][sums], self.low[sums] - rest[1][sums])
        high = np.minimum(placed[1][sums], self.high[sums] - rest[0][sums])
        return np.asarray(np.maximum(1, high - low + 1))

    def states(self) -> States:
        """Return the states that are left once all rows are placed, of which columns that are kept and the weights."""
        start = States({SHARED: np.arange(len(self.shared))}, self.shared)
        if not self.is_possible:
            return start.take(slice(0, 0))
        walk = _Walk(self)
        found = walk.started(start)
        for step in self.steps:
            found = walk.made(found, step)
        return found

    def log_factor(self, j: int, values: Array) -> Array:
        """Return the logarithm of how likely what was seen of a sum by itself is, given its values."""
        return self._tables[j][values] if j in self._tables else np.zeros(len(values))

    @property
    def lost(self) -> float:
        """How much probability may be misplaced."""
        return sum(block.lost for block in self.blocks)

    def bounds(self, step: Step) -> tuple[int, int]:
        """Return how often a class comes up, at least and at most."""
        return int(self._class_low[step.block][step.number]), int(self._class_high[step.block][step.number])

    def possible(self, block: int) -> Array:
        """Return which classes of a block can come up at all."""
        return self._class_high[block] > 0


class _LatticeArrangement:
    """The steps placed so far, and what would have to be remembered after a further one."""

    def __init__(self, lattice: Lattice, steps: Sequence[Step]) -> None:
        self._lattice = lattice
        self._added = {step: lattice.added(step) for step in steps}
        self._touched = {step: np.flatnonzero(high) for step, (_, high) in self._added.items()}
        zero = np.zeros(lattice.sums, np.int64)
        self._placed = (zero, zero)
        self._rest = tuple(sum((bounds[side] for bounds in self._added.values()), zero) for side in (0, 1))
        self._waiting = sum((high > 0 for _, high in self._added.values()), zero)
        self._readings = [set(lattice.readings[r].sums) for r in lattice.apart]
        self._keeping = {j for one in lattice.readings if one.keeps for j in one.sums}
        self._kept_classes = self._rows = 0.0
        self._left = {b: len(one.values) for b, one in enumerate(lattice.blocks) if one.count > 1}
        self._open: set[int] = set()
        self.states = float(len(lattice.shared))
        self.steps: list[Step] = []
        self.cost = 0.0

    def _after(self, step: Step) -> tuple[set[int], float]:
        """Return the sums that are open after a step, and how many combinations of values these have."""
        waiting = self._waiting.copy()
        waiting[self._touched[step]] -= 1
        live = self._open | set(self._touched[step].tolist())
        needed = [some for some in self._readings if not some.isdisjoint(live) and any(waiting[j] for j in some)]
        kept = {j for j in live if waiting[j]}.union(live & self._keeping, *(some & live for some in needed))
        low, high = self._added[step]
        placed = self._placed[0] + low, self._placed[1] + high
        rest = self._rest[0] - low, self._rest[1] - high
        sums = np.array(sorted(kept), np.intp)
        room = self._kept_classes + math.fsum(np.log(self._lattice.partial(sums, placed, rest)))
        for block, classes in self._left.items():
            left = classes - (block == step.block)
            if 0 < left < len(self._lattice.blocks[block].values):
                lows, highs = self._lattice._class_low[block], self._lattice._class_high[block]
                room += math.log(1 + min(self._lattice.blocks[block].count, int((highs - lows).sum())))
        return kept, room

    def _vectors(self, step: Step, branches: float) -> float:
        """Return how many count vectors of the classes placed so far there are, a step included, at most."""
        if step.block not in self._left:
            self._rows += math.log(branches)
        total = self._rows + math.log(len(self._lattice.shared))
        for block, waiting in self._left.items():
            one = self._lattice.blocks[block]
            placed = len(one.values) - waiting + (block == step.block)
            free = min(placed, len(one.values) - 1)  # the last class has what is left
            total += math.lgamma(one.count + free + 1) - math.lgamma(one.count + 1) - math.lgamma(free + 1)
        return math.exp(min(700.0, total))

    def score(self, step: Step) -> float:
        """Return the logarithm of how many states there may be after a step."""
        return self._after(step)[1]

    def place(self, step: Step) -> None:
        """Take a step."""
        branches = self._lattice.branches(step)
        if step.block in self._lattice.exposed:
            self._kept_classes += math.log(branches)
        self._open, room = self._after(step)
        if self._left.get(step.block) == 1:
            branches = 1.0  # what is left
        grown = min(self.states * branches, self._vectors(step, branches))
        self.cost += COST_OF_STEP + COST_OF_CELL * grown * (2 + len(self._open))
        self.states = min(grown, math.exp(min(700.0, room)) * len(self._lattice.shared))
        low, high = self._added[step]
        self._placed = self._placed[0] + low, self._placed[1] + high
        self._rest = self._rest[0] - low, self._rest[1] - high
        self._waiting[self._touched[step]] -= 1
        if step.block in self._left:
            self._left[step.block] -= 1
        self.steps.append(step)


class _Walk:
    """Goes through the steps of a lattice, forgetting what is no longer needed."""

    def __init__(self, lattice: Lattice) -> None:
        self._lattice = lattice
        added = [lattice.added(step) for step in lattice.steps]
        zero = np.zeros(lattice.sums, np.int64)
        self._rest = [sum((bounds[side] for bounds in added), zero) for side in (0, 1)]
        self._waiting = sum((high > 0 for _, high in added), zero)
        self._unread = set(lattice.apart)
        self._remaining = [list(range(len(block.values))) for block in lattice.blocks]
        self._work, self._most_work = 0.0, max(HOPEFUL, EXCESS * lattice.cost if lattice.cost < MOST_COST else 0.0)

    def _spend(self, cells: float) -> None:
        spend(COST_OF_CELL * cells)
        self._work += COST_OF_CELL * cells
        if self._work > self._most_work:
            raise TooManyCounts

    def started(self, states: States) -> States:
        """Return the states before the first step, weighed by what was seen of sums to which nothing is added."""
        return self._settled(states, np.flatnonzero(self._waiting == 0).tolist())

    def made(self, states: States, step: Step) -> States:
        """Return the states after a step, a chunk of them at a time."""
        low, high = self._lattice.added(step)
        self._rest = [self._rest[0] - low, self._rest[1] - high]
        self._waiting = self._waiting - (high > 0)
        completed = np.flatnonzero((self._waiting == 0) & (high > 0)).tolist()
        single = self._lattice.blocks[step.block].count == 1
        if not single:
            self._remaining[step.block].remove(step.number)
        first, counts = self._ways(states, step)
        ends = np.cumsum(counts)
        if len(ends) and ends[-1] > MOST_STATES:
            raise TooManyCounts
        grow = self._with_row if single else self._with_class
        parts = []
        for begin, end in _chunks(ends):
            part = slice(begin, end)
            self._spend(float(counts[part].sum()) * (2 + len(states.arrays)))
            owner, more = repeated(counts[part])
            grown = grow(states.take(part).take(owner), first[part][owner] + more, step)
            parts.append(self._settled(grown, completed))
        self._unread -= set(self._ready())
        return parts[0] if len(parts) == 1 else _merged(States.concatenated(parts))

    def _room(self, states: States, j: int) -> tuple[Array, Array]:
        """Return between which numbers a step may add to a sum."""
        low, high = int(self._lattice.low[j]), int(self._lattice.high[j])
        now = states.arrays.get(("total", j), np.zeros(len(states), np.int64))
        return low - self._rest[1][j] - now, high - self._rest[0][j] - now

    def _ways(self, states: States, step: Step) -> tuple[Array, Array]:
        """Return the least count of a class in each state, and how many counts are possible from there on."""
        lattice, block = self._lattice, self._lattice.blocks[step.block]
        if block.count == 1:
            return np.zeros(len(states), np.int64), np.full(len(states), len(block.values))
        left = states.arrays.get(("left", step.block), np.full(len(states), block.count))
        later = [lattice.bounds(Step(step.block, k)) for k in self._remaining[step.block]]
        low, high = lattice.bounds(step)
        least = np.maximum(low, left - sum(most for _, most in later))
        most = np.minimum(high, left - sum(fewest for fewest, _ in later))
        line = block.values[step.number]
        for j in np.flatnonzero(line).tolist() if high else ():  # a class that never comes up adds to no sum
            start, stop = self._room(states, j)
            least, most = np.maximum(least, -(-start // line[j])), np.minimum(most, stop // line[j])
        return least, np.maximum(0, most - least + 1)

    def _with_class(self, states: States, times: Array, step: Step) -> States:
        """Place so many rows of a class."""
        block, others = self._lattice.blocks[step.block], self._remaining[step.block]
        columns, logs = dict(states.arrays), states.weights
        left = columns.pop(("left", step.block), np.full(len(states), block.count))
        if others:
            own = block.chances[:, step.number]
            rest = block.chances[:, others].sum(axis=1)
            share = np.divide(own, own + rest, out=np.zeros(len(own)), where=own + rest > 0)
            logs = logs + log_binomial(times, left, np.minimum(share[columns[SHARED]], 1.0))
            columns["left", step.block] = left - times
        self._add(columns, times, block.values[step.number])
        return States(columns, logs)

    def _with_row(self, states: States, number: Array, step: Step) -> States:
        """Place the only row of a block in each of its classes."""
        block = self._lattice.blocks[step.block]
        possible = self._lattice.possible(step.block)
        chances = np.where(possible, block.chances, 0.0)
        columns, logs = dict(states.arrays), states.weights + _logs(chances)[states.arrays[SHARED], number]
        fits = logs > -math.inf
        for j in np.flatnonzero(block.values[possible].any(axis=0)).tolist():
            added = block.values[number, j]
            start, stop = self._room(states, j)
            fits &= (added >= start) & (added <= stop)
            columns["total", j] = columns.get(("total", j), 0) + added
        if step.block in self._lattice.exposed:
            columns["class", step.block] = number
        return States(columns, logs).take(fits)

    def _add(self, columns: dict[ColumnKey, Array], times: Array, line: Array) -> None:
        for j in np.flatnonzero(line).tolist():
            columns["total", j] = columns.get(("total", j), 0) + line[j] * times

    def _ready(self) -> list[int]:
        """Return the readings all of whose sums are complete."""
        return [r for r in sorted(self._unread) if not self._waiting[list(self._lattice.readings[r].sums)].any()]

    def _settled(self, states: States, completed: Sequence[int]) -> States:
        """Read off what can be read, forget what is no longer needed, and merge what is then equal."""
        logs, zero = states.weights, np.zeros(len(states), np.int64)
        for j in completed:
            logs = logs + self._lattice.log_factor(j, states.arrays.get(("total", j), zero))
        states = States(states.arrays, logs).take(logs > -math.inf)
        ready = self._ready()
        for r in ready:
            states = self._read(states, r)
        needed = {j for r in self._unread.difference(ready) for j in self._lattice.readings[r].sums}
        live = needed.union(np.flatnonzero(self._waiting).tolist())
        columns = {key: column for key, column in states.arrays.items() if key[0] != "total" or key[1] in live}
        return _merged(States(columns, states.weights))

    def _read(self, states: States, r: int) -> States:
        reading, zero = self._lattice.readings[r], np.zeros(len(states), np.int64)
        values = reading.evaluate([states.arrays.get(("total", j), zero) for j in reading.sums])
        if reading.keeps:
            return States({**states.arrays, ("kept", r): values}, states.weights)
        logs = states.weights + values
        return States(states.arrays, logs).take(logs > -math.inf)


def _logs(chances: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(chances))


def _chunks(ends: Array) -> list[tuple[int, int]]:
    """Return ranges of states that grow to no more than a chunk each, unless one does by itself."""
    found, begin, done = [], 0, 0
    while begin < len(ends):
        end = max(begin + 1, int(np.searchsorted(ends, done + CHUNK, side="right")))
        found.append((begin, end))
        begin, done = end, int(ends[end - 1])
    return found or [(0, 0)]


def _merged(states: States) -> States:
    """Add up the weights of states that agree in all columns."""
    if len(states) < 2:
        return states
    codes = combined(digits(column) for column in states.arrays.values())
    first = first_places(codes)
    count = len(first)
    if count == len(states):
        return states
    top = states.weights.max()
    if top - states.weights.min() < WIDEST:
        logs = top + np.log(np.bincount(codes, np.exp(states.weights - top), count))
    else:
        logs = np.full(count, -math.inf)
        np.logaddexp.at(logs, codes, states.weights)
    return States({key: column[first] for key, column in states.arrays.items()}, logs)
