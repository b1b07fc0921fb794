"""The order in which to go through a model step by step, so that little has to be remembered at any time.

A round brings one random root in and computes all that can then be computed. What no later round needs is forgotten.
Rounds are chosen greedily: next comes what makes the number of combinations to remember grow least.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from privug.inference.exact.finite.spans import MOST, Span, spans_of
from privug.model.node import Array, Node, ancestors
from privug.prior.family import Draw

MOST_COMPARED = 4096  # roots: beyond so many, they are taken as they come
MOST_CANDIDATES = 4  # for the next round, of those that need the same quantity
MOST_AT_ONCE = 64  # roots that are brought in for one quantity's sake
MOST_EXPECTED = 1e10  # combinations of values to be remembered at once: far more than that will not turn out to be few
HOPELESS = math.log(1e13)  # so many combinations that no later round need be looked at
COST_OF_ROUND = 1.5e5  # in elementary operations
COST_OF_CELL = 6.0


@dataclass(frozen=True)
class Round:
    """A root that is brought in, if any, what is computed then, and what must be remembered afterwards."""

    root: Node | None
    computed: tuple[Node, ...]
    kept: tuple[Node, ...]


@dataclass(frozen=True)
class Schedule:
    """All rounds; how many combinations there are at most, at any time and at the end, and what all rounds cost."""

    rounds: tuple[Round, ...]
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
    needed: set[Node] = set()
    frontier = list(targets)
    while frontier:
        node = frontier.pop()
        if node not in needed:
            needed.add(node)
            frontier.extend(() if node in known else node.parents)
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

    def rounds(self) -> list[Round]:
        """Place everything, unless there is no hope before its end."""
        self._bits = {root: 1 << place for place, root in enumerate(self._roots)} if self._greedy else {}
        start = [node for node in self._random if node in self._known]
        rounds = [Round(None, tuple(self._place(start)), tuple(self._live))]
        following = iter(self._roots)
        combinations = 0.0
        while len(self._placed) < len(self._random) and combinations <= HOPELESS:
            candidate = self._next()
            if candidate is None:
                candidate = [next(root for root in following if root not in self._placed)]
            for root in candidate:
                computed = self._place([root])
                rounds.append(Round(root, tuple(computed), tuple(self._live)))
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
                roots = [self._roots[place] for place in _places(missing)]
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


def _places(mask: int) -> list[int]:
    places = []
    while mask:
        lowest = mask & -mask
        places.append(lowest.bit_length() - 1)
        mask ^= lowest
    return places


def _costed(rounds: Sequence[Round], spans: Mapping[Node, Span], combinations: int) -> Schedule:
    rows, peak, cost = float(combinations), 1.0, 0.0
    busiest: tuple[Node, ...] = ()
    for one in rounds:
        grown = rows * (spans[one.root].size if one.root is not None else 1.0)
        cost += COST_OF_ROUND + COST_OF_CELL * min(grown, MOST) * (len(one.computed) + 2 * len(one.kept) + 2)
        rows = min(grown, math.prod(min(spans[node].size, 1e30) for node in one.kept))
        if grown >= peak:
            peak, busiest = grown, (*((one.root,) if one.root is not None else ()), *one.computed)
    return Schedule(tuple(rounds), peak, rows, cost, busiest)
