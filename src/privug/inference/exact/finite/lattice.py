"""Sums of many independent whole numbers: found in a model whatever way they were written, and made roots of their own.

The terms of a sum are put into clusters: terms of one cluster share random roots, terms of two clusters do not. What a
cluster adds has a distribution that follows from few roots; that of all clusters together is their convolution, given
what is shared with the rest of the model, such as a rate of all rows. What the secret adds stays apart.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from privug.inference.exact.finite.clusters import MOST_STATES, PARTS, Cluster, cluster_laws
from privug.inference.exact.finite.counting import MOST_CELLS, total_law
from privug.inference.exact.finite.linear_chains import LinearChains, Terms, with_additions
from privug.inference.exact.finite.ordering import MOST_EXPECTED, schedule
from privug.inference.exact.finite.plate_terms import listed_values
from privug.inference.exact.finite.rounds import eliminated
from privug.inference.exact.finite.spans import spans_of
from privug.inference.exact.finite.states import CERTAIN
from privug.inference.exact.finite.sum_roots import Shared, image_of, sum_root
from privug.model.graph import substitute
from privug.model.node import Array, ConstantValue, Node, ancestors
from privug.model.operations import Elementwise, constant, elementwise
from privug.prior.family import Draw

FEWEST_CLUSTERS = 4
MOST_SUMS = 3
MOST_CLASSES = 4096
MOST_BEHIND = 100  # nodes behind a term, on average

_ADD = Elementwise("add", np.add, python=True)


def with_sums(targets: Sequence[Node], known: Iterable[Node], fewest: int = FEWEST_CLUSTERS) -> list[Node]:
    """Return the targets in terms of new roots for sums of at least so many independent parts behind them."""
    given = set(known)
    targets = with_additions(targets, given)
    chains = LinearChains(targets, given, fewest)
    if not chains.sums:
        return list(targets)
    hubs = _hubs(chains.sums, given)
    if hubs is None:
        return list(targets)
    shared = chains.outside | hubs | given
    clusters = _clusters(chains.sums, _inside(targets, shared))
    replacements: dict[Node, Node] = {}
    for group in _groups(chains.sums, clusters, fewest):
        sums = {node: chains.sums[node] for node in group}
        replacements.update(_images(group, sums, clusters, fewest, _room(sums, set(targets))))
    return substitute(targets, replacements)


def _room(sums: Mapping[Node, Terms], targets: set[Node]) -> float:
    """Return how many values sums may have at most: each comes with every value of the roots that are asked for."""
    beside = dict.fromkeys(term for terms in sums.values() for term in terms.weights if term in targets)
    spans = spans_of(ancestors(beside), {})
    combinations = math.prod(min(spans[term].size, MOST_CELLS) for term in beside)
    return min(MOST_CELLS, 2.0 ** len(sums) * MOST_EXPECTED / combinations)  # ranges are estimated generously


def _hubs(sums: Mapping[Node, Terms], given: set[Node]) -> set[Node] | None:
    """Return the roots that many terms have in common; None if the terms have too much in common to be told apart."""
    counts: Counter[Node] = Counter()
    seen, terms_in_all = 0, sum(len(terms.weights) for terms in sums.values())
    for terms in sums.values():
        for term in terms.weights:
            behind = _behind(term, given)
            seen += len(behind)
            if seen > MOST_BEHIND * (terms_in_all + 10):
                return None
            counts.update(node for node in behind if isinstance(node.operation, Draw))
    return {node for node, count in counts.items() if count > 3 * len(sums) + 5}


def _behind(term: Node, given: set[Node]) -> set[Node]:
    """Return what a term is made of, not looking behind what is given."""
    found: set[Node] = set()
    frontier = [term]
    while frontier:
        node = frontier.pop()
        if node not in found:
            found.add(node)
            frontier.extend(() if node in given else node.parents)
    return found


def _own(term: Node, inside: set[Node]) -> list[Node]:
    """Return the nodes behind a term that depend on roots which are not shared."""
    found: dict[Node, None] = {term: None}
    for node in (frontier := [term]):
        for parent in node.parents:
            if parent in inside and parent not in found:
                found[parent] = None
                frontier.append(parent)
    return list(found)


def _inside(targets: Sequence[Node], shared: set[Node]) -> set[Node]:
    """Return the nodes that depend on roots which are not shared."""
    inside: set[Node] = set()
    for node in ancestors(targets):
        own = isinstance(node.operation, Draw) and node not in shared
        if own or (node not in shared and not inside.isdisjoint(node.parents)):
            inside.add(node)
    return inside


def _clusters(sums: Mapping[Node, Terms], inside: set[Node]) -> list[Cluster]:
    """Put the terms that share roots together; terms that depend on shared roots alone are in no cluster."""
    owner: dict[Node, int] = {}
    clusters: dict[int, Cluster] = {}
    for sum_node, terms in sums.items():
        for term, weight in terms.weights.items():
            if term not in inside:
                continue
            nodes = _own(term, inside)
            met = {owner[node] for node in nodes if node in owner}
            number = min(met) if met else len(owner)
            cluster = clusters.setdefault(number, Cluster())
            for other in met - {number}:
                merged = clusters.pop(other)
                cluster.terms += merged.terms
                owner.update(dict.fromkeys(merged.nodes, number))
                cluster.nodes += merged.nodes
            cluster.terms.append((term, weight, sum_node))
            cluster.nodes += [node for node in nodes if node not in owner]
            owner.update(dict.fromkeys(nodes, number))
    return [_arranged(cluster) for cluster in clusters.values()]


def _arranged(cluster: Cluster) -> Cluster:
    """Put the nodes of a cluster in order and find out what it shares with the rest."""
    own = set(cluster.nodes)
    cluster.nodes = [node for node in ancestors([term for term, _, _ in cluster.terms]) if node in own]
    outside = dict.fromkeys(parent for node in cluster.nodes for parent in node.parents if parent not in own)
    cluster.shared = tuple(node for node in outside if not isinstance(node.operation, ConstantValue))
    return cluster


def _groups(sums: Mapping[Node, Terms], clusters: Sequence[Cluster], fewest: int) -> list[list[Node]]:
    """Return the sums that have clusters in common, those of many clusters only."""
    group_of = {node: {node} for node in sums}
    sizes: Counter[Node] = Counter()
    for cluster in clusters:
        owners = list(dict.fromkeys(owner for _, _, owner in cluster.terms))
        sizes.update(owners)
        joined = set().union(*(group_of[owner] for owner in owners))
        if len(joined) > len(group_of[owners[0]]):
            group_of.update(dict.fromkeys(joined, joined))
    groups = list({id(group): [node for node in sums if node in group] for group in group_of.values()}.values())
    return [g for g in groups if len(g) <= MOST_SUMS and max(sizes[node] for node in g) >= fewest]


def _images(
    group: Sequence[Node], sums: Mapping[Node, Terms], clusters: Sequence[Cluster], fewest: int, most: float
) -> dict[Node, Node]:
    """Return the images of sums that have clusters in common; none if their distributions cannot be had."""
    owned = [cluster for cluster in clusters if cluster.terms[0][2] in sums]
    buckets: dict[tuple[Node, ...], list[Cluster]] = {}
    for cluster in owned:
        buckets.setdefault(cluster.shared, []).append(cluster)
    parts: dict[Node, list[Node]] = {node: [] for node in group}
    inner: set[Node] = set()
    for shared, alike in buckets.items():
        if len(alike) < fewest:  # as well gone through one by one
            continue
        found = _bucket(alike, shared, group, most)
        if found is None:
            return {}
        for node, root in zip(group, found, strict=True):
            parts[node].append(root)
        inner |= {term for cluster in alike for term, _, _ in cluster.terms}
    if not inner:
        return {}
    return {node: _put_together(node, sums[node], parts[node], inner) for node in group}


def _put_together(node: Node, terms: Terms, roots: Sequence[Node], inner: set[Node]) -> Node:
    """Return the sum of new roots and of the terms that stayed as they are."""
    total = constant(_number(terms.constant, node))
    times = Elementwise("multiply", np.multiply, python=True)
    for term, weight in terms.weights.items():
        if term not in inner:
            own = term if weight == 1 else elementwise(times, [term, constant(_number(weight, node))])
            total = elementwise(_ADD, [total, own])
    for root in roots:
        total = elementwise(_ADD, [total, root])
    return total


def _number(value: float, node: Node) -> int | float:
    return int(value) if node.dtype.kind == "i" else float(value)


def _bucket(
    clusters: Sequence[Cluster], shared: tuple[Node, ...], group: Sequence[Node], most: float
) -> list[Node] | None:
    """Return new roots for what clusters that share the same quantities add to each sum."""
    supports = [_values_of(node) for node in shared]
    known = tuple(values for values in supports if values is not None)
    classes = int(np.prod([float(len(values)) for values in known]))
    if len(known) < len(shared) or classes > MOST_CLASSES:
        return None
    grids = [grid.reshape(-1) for grid in np.meshgrid(*known, indexing="ij")] if shared else []
    laws = cluster_laws(clusters, dict(zip(shared, grids, strict=True)), classes, group, most)
    totals = [] if laws is None else [law for law in map(total_law, laws) if law is not None]
    if len(totals) < classes:
        return None
    where = np.arange(classes).reshape([len(values) for values in known])
    root, everything = sum_root(totals, Shared(shared, known, where))
    return [image_of(root, _numbers(everything[:, k], node)) for k, node in enumerate(group)]


def _numbers(parts: Array, node: Node) -> Array:
    return parts // PARTS if node.dtype.kind == "i" else parts / PARTS


def _values_of(node: Node) -> Array | None:
    """Return the values that a quantity can take, if they can be listed."""
    if node.levels is not None or node.shape:
        return listed_values(node)
    plan = schedule([node], {}, 1)
    if plan.peak > MOST_STATES:
        return None
    return np.unique(eliminated(CERTAIN, plan)[0].arrays[node])
