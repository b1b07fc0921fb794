"""All combinations of values of some quantities, where of a conditional table only the chosen entry is drawn."""

from collections.abc import Sequence

import numpy as np

from privug.inference.exact.finite.states import CERTAIN, States
from privug.inference.graph.support import support, support_sizes
from privug.model.node import Array, ConstantValue, Node, ancestors
from privug.model.plan import Plan
from privug.prior.conditional import Choose
from privug.prior.family import Draw, family_of

Place = tuple[Node, int]  # an entry of a conditional table: the table and its position


class TooManyStates(Exception):
    """The combinations are too many to list, or cannot be listed."""


def listed(targets: Sequence[Node], most: int) -> tuple[list[Array], Array]:
    """Return the values of the targets in all combinations that are possible, and their probabilities."""
    return _Listing(targets, most).result()


class _Listing:
    def __init__(self, targets: Sequence[Node], most: int) -> None:
        self._targets, self._most = list(targets), most
        self._scopes: dict[Place | None, list[Node]] = {}
        order = ancestors(targets)
        places = _places(order, targets)
        for node in order:
            self._scopes.setdefault(places[node], []).append(node)

    def result(self) -> tuple[list[Array], Array]:
        states = self._grown(CERTAIN, None)
        return _values(self._targets, states), states.weights

    def _grown(self, states: States, scope: Place | None) -> States:
        """Combine states with the values of all random quantities of a scope."""
        for node in self._scopes.get(scope, ()):
            if isinstance(node.operation, Draw):
                states = self._drawn(states, node)
            elif isinstance(node.operation, Choose):
                states = self._chosen(states, node)
            elif node.is_random:
                raise TooManyStates
        return states

    def _drawn(self, states: States, root: Node) -> States:
        family = family_of(root)
        if root.shape or not family.listable:
            raise TooManyStates
        parameters = [
            parent.operation.array if isinstance(parent.operation, ConstantValue) else _values([parent], states)[0]
            for parent in root.parents
        ]
        if float(np.max(support_sizes(family, parameters))) * len(states) > self._most:
            raise TooManyStates
        family.check(parameters)
        found = support(family, parameters, len(states))
        arrays = {node: array[found.owner] for node, array in states.arrays.items()}
        arrays[root] = found.values.astype(root.dtype, copy=False)
        return States(arrays, states.weights[found.owner] * found.probabilities)

    def _chosen(self, states: States, table: Node) -> States:
        """Draw in each state only the entry of a conditional table that is chosen there."""
        position = _values(table.parents[:1], states)[0]
        parts = []
        for place, entry in enumerate(table.parents[1:]):
            here = states.take(np.flatnonzero(position == place))
            if not len(here):
                continue
            grown = self._grown(here, (table, place))
            kept = {node: grown.arrays[node] for node in states.arrays}
            kept[table] = _values([entry], grown)[0].astype(table.dtype, copy=False)
            parts.append(States(kept, grown.weights))
        if sum(map(len, parts)) > self._most:
            raise TooManyStates
        arrays = {node: np.concatenate([part.arrays[node] for part in parts]) for node in parts[0].arrays}
        return States(arrays, np.concatenate([part.weights for part in parts]))


def _places(order: Sequence[Node], targets: Sequence[Node]) -> dict[Node, Place | None]:
    """Return for each node the entry of a conditional table that alone needs it; None if more does."""
    uses: dict[Node, set[Place | None]] = {node: set() for node in order}
    for target in targets:
        uses[target].add(None)
    places: dict[Node, Place | None] = {}
    for node in reversed(order):
        places[node] = next(iter(uses[node])) if len(uses[node]) == 1 else None
        for position, parent in enumerate(node.parents):
            is_entry = isinstance(node.operation, Choose) and position > 0
            uses[parent].add((node, position - 1) if is_entry else places[node])
    return places


def _values(nodes: Sequence[Node], states: States) -> list[Array]:
    known = dict(states.arrays)
    return Plan(nodes, list(known)).run(len(states), np.random.Generator(np.random.SFC64(0)), known)
