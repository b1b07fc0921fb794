"""Combinations of the values of independent roots, each known by its number: made when they are asked for."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privug.inference.belief import Belief
from privug.inference.case_plan import Quantity
from privug.inference.exact.finite.states import Roots
from privug.model.batch import Batch, DeferredBatch
from privug.model.node import Array, ConstantValue, Kind, Node
from privug.model.plan import Plan
from privug.prior.support import Support


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
        return Belief(self.batch(), weights, True, spread=Kind.DISCRETE, error=error)

    def _made(self, numbers: Array) -> Batch:
        arrays, width = {}, len(self)
        for root, several in self.supports:
            columns = []
            for one in several:
                width //= len(one.values)
                columns.append(one.values[numbers // width % len(one.values)])
            stacked = np.stack(columns, axis=1).reshape(len(numbers), *root.shape) if root.shape else columns[0]
            arrays[root] = stacked.astype(root.dtype, copy=False)
        rng = np.random.Generator(np.random.SFC64(0))
        values = Plan(self.quantity.nodes, self.roots.nodes).run(len(numbers), rng, arrays)
        return self.quantity.batch(values, len(numbers))


def _ascends(support: Support) -> bool:
    """Say whether each value comes once, and in order."""
    values = support.values
    return bool(np.all(values[1:] > values[:-1])) and not np.any(values != values)


def _are_told_apart(node: Node) -> bool:
    """Say whether different codes of a category stand for values that Python holds different, as 1 and True are not."""
    return node.levels is None or len(set(node.levels)) == len(node.levels)
