"""Sums in a model: maximal chains of additions, each as a constant and weighted terms."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from privug.model.graph import rewritten
from privug.model.node import ConstantValue, Node, ancestors
from privug.model.numpy_functions import as_addition
from privug.model.operations import Elementwise
from privug.model.traits.traits import Role
from privug.prior.choice import constant_value
from privug.prior.family import Draw


@dataclass
class Terms:
    """A constant plus weighted terms."""

    constant: float = 0.0
    weights: dict[Node, float] = field(default_factory=dict)


class LinearChains:
    """The topmost sums of at least so many terms, and the roots that are needed for anything else than these."""

    def __init__(self, targets: Sequence[Node], given: set[Node], fewest: int) -> None:
        self.sums: dict[Node, Terms] = {}
        self.outside: set[Node] = set()
        self._targets = set(targets)
        self._given = given
        self._fewest = fewest
        self._consumers: dict[Node, set[Node]] = {}
        for node in ancestors(targets):
            for parent in node.parents:
                self._consumers.setdefault(parent, set()).add(node)
        self._look(targets)

    def _look(self, targets: Sequence[Node]) -> None:
        frontier, seen = list(targets), set[Node]()
        while frontier:
            node = frontier.pop()
            if node in seen:
                continue
            seen.add(node)
            if isinstance(node.operation, Draw):
                self.outside.add(node)
            if node in self._given:
                continue
            terms = self._flattened(node) if linear_parts(node) else None
            if terms is not None and len(terms.weights) >= self._fewest:
                self.sums[node] = terms
            else:
                frontier.extend(node.parents)

    def _flattened(self, top: Node) -> Terms:
        terms = Terms()
        frontier: list[tuple[Node, float]] = [(top, 1.0)]
        while frontier:
            node, weight = frontier.pop()
            parts = linear_parts(node) if node is top or self._is_inner(node) else None
            if parts is not None:
                frontier.extend((part, weight * factor) for part, factor in reversed(parts))
            elif isinstance(node.operation, ConstantValue):
                terms.constant += weight * float(constant_value(node))
            else:
                terms.weights[node] = terms.weights.get(node, 0.0) + weight
        terms.weights = {node: weight for node, weight in terms.weights.items() if weight}
        return terms

    def _is_inner(self, node: Node) -> bool:
        """Say whether nothing but the sum at hand needs a node."""
        return len(self._consumers[node]) == 1 and node not in self._targets and node not in self._given


def linear_parts(node: Node) -> list[tuple[Node, float]] | None:
    """Return what a number is the weighted sum of; None if it is no sum."""
    operation, parents = node.operation, node.parents
    if not isinstance(operation, Elementwise) or node.shape or node.levels is not None or node.dtype.kind not in "if":
        return None
    if operation.traits.weights is not None:
        return list(zip(parents, operation.traits.weights, strict=True))
    if operation.traits.factor == 1:
        for factor, other in (parents, parents[::-1]):
            if isinstance(factor.operation, ConstantValue) and other.dtype.kind in "if":
                return [(other, float(constant_value(factor)))]
    return None


def with_additions(targets: Sequence[Node], given: set[Node]) -> list[Node]:
    """Write `a + d if c else a` as `a + (d if c else 0)`, for whole numbers: a loop that counts becomes a chain."""
    return rewritten(targets, _added, {node: node for node in given})


def _added(node: Node, parents: Sequence[Node]) -> Node | None:
    operation = node.operation
    chooses = isinstance(operation, Elementwise) and operation.traits.role is Role.CHOICE and node.dtype.kind == "i"
    return as_addition(*parents) if chooses and node.levels is None else None
