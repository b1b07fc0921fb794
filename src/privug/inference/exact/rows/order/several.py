"""Several order statistics of the same rows, all of them seen: rows are counted between the ends of what was seen.

That the row of rank k lies in a window says that at most k rows are before it, and more than k up to its end. That it
has just one value says that k rows are before and that one row is there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from privug.inference.curve import Curve
from privug.inference.exact.rows.cells import FLAT, Cell, Row
from privug.inference.exact.rows.model import Given, Piece
from privug.inference.exact.rows.order.families import Family, own_law
from privug.inference.exact.rows.order.statistics import Crowd, Group, crowd_of, ranked
from privug.inference.exact.rows.pullback import Constraint
from privug.inference.exact.rows.reductions import NotCounted
from privug.model.node import Array, Node

BESIDE = "several order statistics of the same rows were seen, and something else beside them"
MOST_STATES = 50_000


@dataclass(frozen=True)
class Event:
    """The row of a rank lies in a window; `value` says that the window is one value, of which a density is meant."""

    rank: int
    low: float
    high: float
    value: bool = False


@dataclass(frozen=True, eq=False)
class Stretches:
    """The line cut at the ends of what was seen: how many rows may be up to the end of each stretch."""

    ends: Array
    """The last number of each stretch."""
    points: Array
    """Whether a stretch is a single value, where just one row is, with its density."""
    least: Array
    most: Array

    @classmethod
    def of(cls, events: Sequence[Event], size: int) -> "Stretches":
        """Cut the line at the ends of events."""
        cuts = {float(np.nextafter(event.low, -np.inf)) for event in events} | {event.high for event in events}
        ends = np.array(sorted({*cuts, np.inf} - {-np.inf}))
        values = {event.low for event in events if event.value}
        least, most = np.zeros(len(ends), int), np.full(len(ends), size)
        for event in events:
            before = np.searchsorted(ends, np.nextafter(event.low, -np.inf)) if np.isfinite(event.low) else None
            if before is not None:
                most[before] = min(most[before], event.rank)
            after = np.searchsorted(ends, event.high)
            least[after] = max(least[after], event.rank + 1)
        return cls(ends, np.array([end in values for end in ends]), least, most)

    def shares(self, curve: Curve) -> Array:
        """Return the probability, or density, of each stretch."""
        starts = np.concatenate([[-np.inf], np.nextafter(self.ends[:-1], np.inf)])
        masses = curve.mass(starts, self.ends)
        return np.where(self.points, curve.pdf(np.where(self.points, self.ends, 0.0)), masses)

    def likelihood(self, crowd: Crowd, own: int | None) -> float:
        """Return how likely what was seen is, if one more row is in a given stretch."""
        states: dict[tuple[int, ...], float] = {(0,) * len(self.ends): 1.0}
        if own is not None:
            states = {tuple(int(place == own) for place in range(len(self.ends))): 1.0}
        for curve, count in crowd.groups:
            shares = self.shares(curve)
            for _ in range(count):
                states = self._placed(states, shares)
        return sum(weight for state, weight in states.items() if self._allowed(state))

    def _placed(self, states: dict[tuple[int, ...], float], shares: Array) -> dict[tuple[int, ...], float]:
        found: dict[tuple[int, ...], float] = {}
        for state, weight in states.items():
            for place in np.flatnonzero(shares):
                changed = (*state[:place], state[place] + 1, *state[place + 1 :])
                if self._possible(changed):
                    found[changed] = found.get(changed, 0.0) + weight * float(shares[place])
        if len(found) > MOST_STATES:
            raise NotCounted("several order statistics of many rows were seen")
        return found

    def _possible(self, state: tuple[int, ...]) -> bool:
        total = np.cumsum(state)
        return bool(np.all(total <= self.most) and np.all(np.array(state)[self.points] <= 1))

    def _allowed(self, state: tuple[int, ...]) -> bool:
        total = np.cumsum(state)
        there = np.array(state)[self.points] == 1
        return bool(np.all((total >= self.least) & (total <= self.most)) and np.all(there))


class Several:
    """What several order statistics of a family of rows tell about one of them, or about none."""

    def __init__(self, given: Given, asked: Sequence[Node]) -> None:
        model = given.model
        if len(model.families) > 1 or len(model.rows) > len(model.families[0].stand_ins):
            raise NotCounted(BESIDE)
        self._family: Family = model.families[0]
        if any(len(ranks) > 1 for _, ranks in self._family.picks):
            raise NotCounted(
                "order statistics were seen together with a range, or a quantile between two rows, of them"
            )
        self._row: Row | None = model.exposed(asked)
        if self._row is not None and not self._family.has(self._row):
            self._row = None
        self._place = self._family.picks[0][0]
        self._all = crowd_of(given.orders.others(self._family, None))
        self._groups: list[Group] = given.orders.others(self._family, self._row)
        exposed = model.exposed(asked)
        empty = [Cell(1.0, (FLAT,) * len(model.sums))]
        self._cells = empty if exposed is None else given.cells(exposed, asked)
        self._seen = given.pullback.at((), self._reach)

    def _reach(self, weights: Array) -> tuple[float, float]:
        found = [(j, ranks) for j, ranks in self._family.picks if weights[j]]
        if len(found) != 1:
            raise NotCounted("the output depends on several order statistics of the same rows at once")
        curve = ranked(self._all, found[0][1][0][0])
        ends = np.concatenate([curve.edges[[0, -1]] if curve.parts else np.empty(0), curve.atoms])
        reach = np.sort(weights[found[0][0]] * np.array([ends.min(), ends.max()]))
        return float(reach[0]), float(reach[1])

    def pieces(self) -> Iterator[Piece]:
        """Yield the cells of the row with weights, and the number in each."""
        if not self._seen.factor:
            return
        for chosen in product(*(self._options(one) for one in self._seen.constraints)):
            events = [event for event, _ in chosen]
            weight = self._seen.factor * float(np.prod([share for _, share in chosen]))
            values = [event.low for event in events if event.value]
            if len(set(values)) < len(values):
                raise NotCounted("the same value was seen of several order statistics")
            cut = Stretches.of(events, self._all.size)
            for cell in self._cells:
                yield from self._cell(cell, cut, weight)

    def _options(self, one: Constraint) -> list[tuple[Event, float]]:
        moved = [(j, ranks) for j, ranks in self._family.picks if one.weights[j]]
        if len(moved) != 1 or one.sd:
            raise NotCounted(BESIDE)
        scale, rank = float(one.weights[moved[0][0]]), moved[0][1][0][0]
        found = []
        for (low, high), share in zip(one.ranges, one.chances or (1.0,) * len(one.ranges), strict=True):
            first, last = sorted(((low - one.constant) / scale, (high - one.constant) / scale))
            found.append((Event(rank, first, last), share))
        for place, share in one.places:
            value = (place - one.constant) / scale
            dense = not np.any(self._all.atoms == value)
            found.append((Event(rank, value, value, dense), share / abs(scale) if dense else 1.0))
        return found

    def _cell(self, cell: Cell, cut: Stretches, weight: float) -> Iterator[Piece]:
        """Yield a cell of the row: how likely what was seen is only depends on the stretch in which its number lies."""
        density, term, others = int(cut.points.sum()), cell.terms[self._place], crowd_of(self._groups)
        if self._row is None or cell.curve is None or term.is_flat:
            own = None if self._row is None else int(np.searchsorted(cut.ends, term.start))
            share = weight * cut.likelihood(others, own)
            if share > 0:
                yield Piece(cell.weight * share, cell, cell.curve, density)
            return
        table = np.array([0.0 if at else cut.likelihood(others, k) for k, at in enumerate(cut.points)])
        bends = term.solved(cut.ends[:-1])[0]
        share, found = cell.curve.reweighted(
            lambda s: table[np.searchsorted(cut.ends, term.at(s))], bends[np.isfinite(bends)]
        )
        if found is not None and share > 0:
            yield Piece(cell.weight * weight * share, cell, found, density)
        for k in np.flatnonzero(cut.points):
            place, slope = term.solved(cut.ends[k : k + 1])
            own_density = float(own_law(cell, self._place).pdf(cut.ends[k]))
            share = weight * cut.likelihood(others, int(k)) * own_density
            if share > 0 and slope[0] > 0:
                yield Piece(cell.weight * share, cell, Curve.point(float(place[0])), density)
