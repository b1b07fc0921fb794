"""What clusters of terms add to sums: those that differ in constants alone are computed side by side."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from privug.errors import PriorError, ProgramError
from privug.inference.exact.finite.counting import SumLaw, sum_law
from privug.inference.exact.finite.ordering import schedule
from privug.inference.exact.finite.rounds import eliminated
from privug.inference.exact.finite.states import States
from privug.inference.support import is_truncated, lost_in_each
from privug.model.node import Array, ConstantValue, Node
from privug.model.operations import constant
from privug.prior.plating import operation_signature

MOST_STATES = 2e7  # of all clusters that are computed side by side
PARTS = 8  # of a whole number: sums of these are exact, whatever the order

_CLASS = constant(0)  # stands beside the nodes for the number of a cluster and the class of what is shared


@dataclass
class Cluster:
    """Terms that have random roots in common: with what weight each is added to which sum.

    `nodes` are those behind the terms that depend on these roots, in order; `shared` is what else they depend on.
    """

    terms: list[tuple[Node, float, Node]] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    shared: tuple[Node, ...] = ()

    def pattern(self) -> tuple[Hashable, list[Node]]:
        """Return what is equal for clusters that differ in constants alone, and the constants."""
        places = {node: place for place, node in enumerate(self.nodes)}
        constants: dict[Node, int] = {}
        made: list[Hashable] = []
        for node in self.nodes:
            parents: list[Hashable] = []
            for parent in node.parents:
                if parent in places:
                    parents.append(places[parent])
                elif isinstance(parent.operation, ConstantValue):
                    number = constants.setdefault(parent, len(constants))
                    parents.append(("constant", number, parent.shape, parent.dtype.str, parent.levels))
                else:
                    parents.append(parent)
            made.append((operation_signature(node, True) or node, node.levels, tuple(parents)))
        terms = tuple((places[term], weight, owner) for term, weight, owner in self.terms)
        return (tuple(made), terms), list(constants)


def cluster_laws(
    clusters: Sequence[Cluster], shared: Mapping[Node, Array], classes: int, group: Sequence[Node], most: float
) -> list[list[SumLaw]] | None:
    """Return for each class of shared values the laws of what clusters add to each sum, equal ones put together.

    `shared` holds the values of what the clusters share in each class. None if the laws cannot be had, or have more
    values than there may be at `most`.
    """
    patterns: dict[Hashable, list[tuple[Cluster, list[Node]]]] = {}
    for cluster in clusters:
        pattern, constants = cluster.pattern()
        patterns.setdefault(pattern, []).append((cluster, constants))
    laws: list[list[SumLaw]] = [[] for _ in range(classes)]
    for alike in patterns.values():
        try:
            found = _side_by_side(alike, shared, classes, group, most)
        except (ProgramError, PriorError):  # for a combination of shared values that may never come up
            return None
        if found is None:
            return None
        for own, more in zip(laws, found, strict=True):
            own.extend(more)
    return laws


def _side_by_side(
    alike: Sequence[tuple[Cluster, list[Node]]],
    shared: Mapping[Node, Array],
    classes: int,
    group: Sequence[Node],
    most: float,
) -> list[list[SumLaw]] | None:
    """Return the laws of clusters that differ in constants alone, for each class."""
    template, constants = alike[0]
    values = [np.array([own[place].operation.array[0] for _, own in alike]) for place in range(len(constants))]  # type: ignore[attr-defined]
    first, counts = _distinct(values, len(alike))
    varying = {
        node: np.repeat(column[first], classes, axis=0)
        for node, column in zip(constants, values, strict=True)
        if np.any(column != column[:1])
    }
    numbers = np.arange(len(first) * classes)
    arrays = {**varying, **{node: np.tile(v, len(first)) for node, v in shared.items()}, _CLASS: numbers}
    plan = schedule([*dict.fromkeys(term for term, _, _ in template.terms), _CLASS], arrays, len(numbers))
    if plan.peak > MOST_STATES:
        return None
    states, lost = eliminated(States(arrays, np.ones(len(numbers))), plan)
    truncated = sum(one.root is not None and is_truncated(one.root) for one in plan.rounds)
    laws = _laws(states, template, group, lost + truncated * lost_in_each())
    if laws is None or len(laws) < len(numbers):
        return None
    powers = [_power(law, int(counts[k // classes]), most) for k, law in enumerate(laws)]
    if any(law is None for law in powers):
        return None
    return [[law for law in powers[number::classes] if law is not None] for number in range(classes)]


def _power(law: SumLaw, count: int, most: float) -> SumLaw | None:
    """Return the law of the sum of some clusters of one law."""
    total = law if count == 1 else sum_law(law.values, law.probabilities, count, most)
    return total if total is None or count == 1 else total._replace(lost=total.lost + count * law.lost)


def _distinct(columns: Sequence[Array], clusters: int) -> tuple[Array, Array]:
    """Return the first cluster of each kind, and how many there are of it."""
    if not columns:
        return np.zeros(1, np.intp), np.array([clusters])
    kinds: dict[bytes, list[int]] = {}
    for number in range(clusters):
        kinds.setdefault(b"".join(column[number].tobytes() for column in columns), []).append(number)
    return np.array([some[0] for some in kinds.values()]), np.array([len(some) for some in kinds.values()])


def _laws(states: States, template: Cluster, group: Sequence[Node], lost: float) -> list[SumLaw] | None:
    """Return the law of each class; None if a cluster adds something else than parts of whole numbers."""
    added = np.zeros((len(states), len(group)))
    for term, weight, owner in template.terms:
        added[:, group.index(owner)] += weight * PARTS * states.arrays[term]
    whole = np.rint(added)
    if not np.array_equal(whole, added) or np.abs(whole).max() > 2**50:
        return None
    lines = np.column_stack([states.arrays[_CLASS], whole.astype(np.int64)])
    order = np.lexsort(lines.T[::-1])
    lines, weights = lines[order], states.weights[order]
    new = np.concatenate([[True], np.any(lines[1:] != lines[:-1], axis=1)])
    starts = np.flatnonzero(new)
    lines, weights = lines[starts], np.add.reduceat(weights, starts)
    ends = np.flatnonzero(np.diff(lines[:, 0])) + 1
    parts = zip(np.split(lines[:, 1:], ends), np.split(weights, ends), strict=True)
    return [SumLaw(values, chances / chances.sum(), lost) for values, chances in parts]
