"""Dominators of a model graph: single numbers through which all randomness of a result goes."""

import heapq
from collections.abc import Iterator, Sequence

from privug.model.node import Node, ancestors


def dominators(targets: Sequence[Node]) -> Iterator[Node]:
    """Yield the single numbers of which all targets are functions, nearest first.

    Going back from the targets, a node is one of them if nothing else is left to go back through when it is met.
    """
    order = ancestors(targets)
    places = {node: place for place, node in enumerate(order)}
    random: set[Node] = set()
    for node in order:
        if node.operation.random or not random.isdisjoint(node.parents):
            random.add(node)
    pending = {places[target] for target in targets if target in random}
    heap = [-place for place in pending]
    heapq.heapify(heap)
    while heap:
        place = -heapq.heappop(heap)
        pending.discard(place)
        node = order[place]
        if not heap and not node.shape:
            yield node
        if node.operation.random:
            return  # nothing further back has this randomness behind it
        for parent in node.parents:
            if parent in random and places[parent] not in pending:
                pending.add(places[parent])
                heapq.heappush(heap, -places[parent])
