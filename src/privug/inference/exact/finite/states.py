"""All combinations of values that discrete roots of the model can take, a block at a time, or each by its number."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privug.errors import PrivugError
from privug.inference.belief import Belief
from privug.inference.case_plan import Quantity
from privug.inference.graph.support import is_truncated, lost_in_tails, support, support_sizes
from privug.model.batch import Batch, DeferredBatch
from privug.model.node import Array, ConstantValue, Node, ancestors
from privug.model.operations import SampleFailure, aligned
from privug.model.plan import computed
from privug.prior.family import Draw, Family, Support, family_of
from privug.program.calls import functions_only

LARGEST_BLOCK, EVERYTHING = 1 << 18, 1 << 40
BLOCK_BYTES = 64 << 20
MOST_LOOKED_AT = 100_000  # combinations of other roots looked at to see how many values a root can take


@dataclass(frozen=True)
class States:
    """Some combinations of values: an array for each root that has been given values, and their probabilities.

    The states of a table of counts have columns of other kinds, and the logarithms of their weights.
    """

    arrays: Mapping[Any, Array]
    weights: Array

    def __len__(self) -> int:
        return len(self.weights)

    def take(self, which: Array | slice) -> "States":
        """Return some of the combinations."""
        return States({root: array[which] for root, array in self.arrays.items()}, self.weights[which])

    def one_by_one(self) -> Iterator[tuple[float, dict[Any, Any]]]:
        """Yield the probability of each combination, and its values."""
        for position, weight in enumerate(self.weights.tolist()):
            yield weight, {root: array[position] for root, array in self.arrays.items()}

    @staticmethod
    def concatenated(parts: "Sequence[States]") -> "States":
        """Return the combinations of several parts, which have values for the same roots."""
        arrays = {root: np.concatenate([part.arrays[root] for part in parts]) for root in parts[0].arrays}
        return States(arrays, np.concatenate([part.weights for part in parts]))


CERTAIN = States({}, np.ones(1))


class Roots:
    """The discrete roots behind some quantities, those behind the first quantities first."""

    def __init__(
        self, targets: Sequence[Node], known: Sequence[Node] = (), order: Sequence[Node] | None = None
    ) -> None:
        given = set(known)
        behind = ancestors(targets) if order is None else order
        self.nodes = [node for node in behind if type(node.operation) is Draw and node not in given]
        self._constant: dict[Node, Support] = {}
        self._known_sizes: dict[Node, Array] = {}

    @property
    def endless(self) -> Node | None:
        """A root whose values cannot be listed, if there is one."""
        return next((root for root in self.nodes if not family_of(root).listable), None)

    @cached_property
    def lost(self) -> float:
        """The probability that is left out or misplaced, because some distributions had to be cut or transformed."""
        families = [family_of(root) for root in self.nodes]
        truncated = sum(math.prod(root.shape) for root in self.nodes if is_truncated(root))
        return lost_in_tails(truncated) + sum(family.lost for family in families)

    def count(self, limit: float) -> float:
        """Return how many combinations there are, at most; infinite as soon as they are more than the limit."""
        total = 1.0
        for root in self.nodes:
            elements = math.prod(root.shape)
            sizes = self._sizes(root)
            if not elements:
                continue
            powers = np.log(np.maximum(sizes, 1.0)) * (elements / sizes.size)
            total *= math.exp(min(700.0, float(powers.sum())))
            if total > limit * 1.0001:
                return math.inf
        return total

    def listed(self, most: int) -> States | None:
        """Return all combinations at once; None if they are more than so many."""
        if self.endless is not None or self.count(most) > most:
            return None
        return next(iter(self.blocks(CERTAIN, EVERYTHING)))

    def fixed(self, root: Node) -> list[Support] | None:
        """Return the values of each element of a root, if these are the same in all states."""
        supports = [self._fixed(root, element) for element in np.ndindex(root.shape)]
        return None if any(one is None for one in supports) else [one for one in supports if one is not None]

    def _sizes(self, root: Node) -> Array:
        """Return how many values each element of a root can take, at most; one number may stand for all of them."""
        if root not in self._known_sizes:
            self._known_sizes[root] = self._looked_up(root)
        return self._known_sizes[root]

    @staticmethod
    def _looked_up(root: Node) -> Array:
        if all(isinstance(parent.operation, ConstantValue) for parent in root.parents):
            parameters = [p.operation.array for p in root.parents if isinstance(p.operation, ConstantValue)]
        else:
            states = Roots(root.parents).listed(MOST_LOOKED_AT)
            if states is None:
                return np.array([math.inf])
            parameters = _values(root.parents, states)
        family = family_of(root)
        if family.chooses:
            return np.array([float(support_sizes(family, parameters).max())])
        sizes = support_sizes(family, parameters)
        return np.asarray(sizes.max(axis=0).reshape(-1) if sizes.ndim > 1 else sizes.max(keepdims=True))

    def blocks(self, start: States = CERTAIN, block: int = LARGEST_BLOCK) -> Iterator[States]:
        """Yield all combinations, about a block at a time; those of the first roots stay together."""
        steps = [(root, element) for root in self.nodes for element in np.ndindex(root.shape)]
        yield from self._grown(_room(start, self.nodes), steps, block)

    def _grown(self, states: States, steps: Sequence[tuple[Node, tuple[int, ...]]], block: int) -> Iterator[States]:
        if not steps:
            yield states
            return
        (root, element), later = steps[0], steps[1:]
        fixed = self._fixed(root, element)
        expected = len(fixed.values) if fixed is not None else max(1.0, float(self._sizes(root).max()))
        step = max(1, int(block // expected))
        for begin in range(0, len(states), step):
            part = states.take(slice(begin, begin + step)) if step < len(states) else states
            yield from self._grown(_extended(part, root, element, fixed), later, block)

    def _fixed(self, root: Node, element: tuple[int, ...]) -> Support | None:
        """Return the values of a root's element if its parameters are constants."""
        if not all(isinstance(parent.operation, ConstantValue) for parent in root.parents):
            return None
        parameters = [p.operation.array for p in root.parents if isinstance(p.operation, ConstantValue)]
        if any(array.ndim > 1 for array in parameters) and not family_of(root).chooses:
            return support(family_of(root), _of_element(root, element, parameters), 1)
        if root not in self._constant:
            self._constant[root] = support(family_of(root), _of_element(root, element, parameters), 1)
        return self._constant[root]


def _room(states: States, roots: Sequence[Node]) -> States:
    """Make room for the values of roots that have several elements."""
    arrays = dict(states.arrays)
    for root in roots:
        if root.shape:
            arrays[root] = np.zeros((len(states), *root.shape), root.dtype)
    return States(arrays, states.weights)


def _extended(states: States, root: Node, element: tuple[int, ...], fixed: Support | None) -> States:
    """Combine each state with every value of one element of a root."""
    arrays, values, weights = crossed(
        states, family_of(root), fixed, lambda: _of_element(root, element, _values(root.parents, states))
    )
    if root.shape:
        arrays[root].reshape(len(values), -1)[:, np.ravel_multi_index(element, root.shape)] = values
    else:
        arrays[root] = values.astype(root.dtype, copy=False)
    return States(arrays, weights)


def crossed(
    states: States, family: Family, fixed: Support | None, parameters: Callable[[], Sequence[Array]]
) -> tuple[dict[Node, Array], Array, Array]:
    """Combine each state with every value of a quantity: the arrays of the states, the values, and the weights.

    The values are the `fixed` ones, or follow from parameters that differ from state to state.
    """
    if fixed is not None:
        count, rows = len(fixed.values), len(states)
        arrays = {node: np.repeat(array, count, axis=0) for node, array in states.arrays.items()}
        weights = np.multiply.outer(states.weights, fixed.probabilities).reshape(-1)
        return arrays, np.tile(fixed.values, rows), weights
    known = parameters()
    family.check(known)
    found = support(family, known, len(states))
    arrays = {node: array[found.owner] for node, array in states.arrays.items()}
    return arrays, found.values, states.weights[found.owner] * found.probabilities


def _values(nodes: Sequence[Node], states: States) -> list[Array]:
    try:
        with functions_only():
            return computed(nodes, states.arrays, len(states))
    except SampleFailure as failure:
        if isinstance(failure.cause, PrivugError):  # such as that a program draws random numbers of its own
            raise failure.cause from None
        raise


def _of_element(root: Node, element: tuple[int, ...], parameters: Sequence[Array]) -> list[Array]:
    """Return the parameters of one element of a root, one row for all states or one for each."""
    if not root.shape or family_of(root).chooses:
        return list(parameters)
    frame = np.empty((1,) * (len(root.shape) + 1))
    chosen = []
    for array in parameters:
        full = aligned([frame, array])[1]
        rows = np.broadcast_to(full, (len(full), *root.shape)).reshape(len(full), -1)
        chosen.append(rows[:, np.ravel_multi_index(element, root.shape)])
    return chosen


@dataclass(frozen=True)
class Combinations:
    """The values of a quantity that tells the values of all roots behind it, each of which has one distribution.

    Every combination of the roots' values is then a value of its own. They are numbered as `Roots` lists them: the
    values of the last root change first.
    """

    quantity: Quantity
    roots: Roots
    supports: tuple[tuple[Node, tuple[Support, ...]], ...]

    @staticmethod
    def of(quantity: Quantity, roots: Roots) -> "Combinations | None":
        """Return the combinations of the roots behind a quantity, if it tells them and they can be listed once each."""
        told, listed = set(quantity.nodes), []
        for root in roots.nodes:
            supports = roots.fixed(root)
            if root not in told or supports is None or not _are_told_apart(root):
                return None
            if not all(map(_ascends, supports)):
                return None
            listed.append((root, tuple(supports)))
        return Combinations(quantity, roots, tuple(listed)) if listed else None

    @property
    def are_inputs(self) -> bool:
        """Whether the values are made of those of the roots and of nothing else, so that nothing need be computed."""
        roots = {root for root, _ in self.supports}
        return all(node in roots or isinstance(node.operation, ConstantValue) for node in self.quantity.nodes)

    def __len__(self) -> int:
        return math.prod(len(one.values) for _, several in self.supports for one in several)

    @cached_property
    def weights(self) -> Array:
        """The probability of each combination."""
        weights = np.ones(1)
        for _, several in self.supports:
            for one in several:
                weights = np.multiply.outer(weights, one.probabilities).reshape(-1)
        return weights

    def batch(self, there: Array | None = None) -> Batch:
        """Return the values, or those that a mask chooses."""
        numbers = None if there is None else np.flatnonzero(there)

        def made(which: Array | None) -> Batch:
            if numbers is None:
                return self._made(np.arange(len(self)) if which is None else which)
            return self._made(numbers if which is None else numbers[which])

        samples = len(self) if numbers is None else len(numbers)
        return DeferredBatch(self.quantity.structure, samples, made, each_once=True)

    def belief(self, error: float) -> Belief:
        """Return the belief about the quantity, as long as nothing was seen."""
        weights = self.weights / self.weights.sum()
        return Belief.listed(self.batch(), weights, error)

    def _made(self, numbers: Array) -> Batch:
        arrays, width = {}, len(self)
        for root, several in self.supports:
            columns = []
            for one in several:
                width //= len(one.values)
                columns.append(one.values[numbers // width % len(one.values)])
            stacked = np.stack(columns, axis=1).reshape(len(numbers), *root.shape) if root.shape else columns[0]
            arrays[root] = stacked.astype(root.dtype, copy=False)
        return self.quantity.batch(computed(self.quantity.nodes, arrays, len(numbers)), len(numbers))


def _ascends(support: Support) -> bool:
    """Say whether each value comes once, and in order."""
    values = support.values
    return bool(np.all(values[1:] > values[:-1])) and not np.any(values != values)


def _are_told_apart(node: Node) -> bool:
    """Say whether different codes of a category stand for values that Python holds different, as 1 and True are not."""
    return node.levels is None or len(set(node.levels)) == len(node.levels)
