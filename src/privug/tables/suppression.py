"""Feasible intervals of cells, and the fewest further cells to suppress so that others are protected.

Counts are integer programs, amounts linear ones, solved by HiGHS component by component. A solution of HiGHS is in
floating point, so every extreme is checked: the rounded solution must satisfy all sums in integers, and the bound that
HiGHS proved must lie within one half of it.

An integer program with a binary variable for each published cell. For every cell that gives way it holds two tables
that agree with what would still be published and whose figures in that cell lie far enough apart, as in the attacker
problems of Fischetti and Salazar (2001). The tables are written as differences from one that agrees with everything
published, so that the largest counts do not matter. The tables inside the program are real-valued and only bounded
differences are tried; a pattern is accepted only when an exact audit of it holds, and the patterns are tried in order
of their cost.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp
from scipy.sparse import csr_matrix

from privug.errors import InferenceError
from privug.progress import ProgressMeter
from privug.tables.published_table import System, SystemComponent

OPTIMAL, INFEASIBLE, UNBOUNDED, UNCLEAR = 0, 2, 3, 4
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Intervals:
    """Bounds of every variable, exact for those that were asked for, and one table that agrees with all."""

    low: list[float]
    high: list[float]
    least_present: dict[int, float | None]
    """For counts that may be zero: the least one that is not, or None if there is none."""
    example: list[float]


class Program:
    """One component as an integer or linear program; solutions that were found are kept."""

    def __init__(self, component: SystemComponent, low: Sequence[float], high: Sequence[float], integral: bool) -> None:
        self.places, self.integral = component.places, integral
        self.where = {place: column for column, place in enumerate(self.places)}
        self.low, self.high = [low[place] for place in self.places], [high[place] for place in self.places]
        self.rows = [([(self.where[i], sign) for i, sign in terms], right) for terms, right in component.rows]
        entries = [(row, i, sign) for row, (terms, _) in enumerate(self.rows) for i, sign in terms]
        row, column, sign = zip(*entries, strict=True) if entries else ((), (), ())
        shape = (len(self.rows), len(self.places))
        self.matrix = csr_matrix((np.array(sign, float), (np.array(row, int), np.array(column, int))), shape=shape)
        self.right = np.array([right for _, right in self.rows], float)
        self.solutions: list[list[float]] = []

    def solve(self, column: int | None, sign: int = 1, at_least: float | None = None) -> float | None:
        """Return the least value of sign times a variable, minus infinity, or None if nothing is feasible."""
        low = np.array(self.low, float)
        if column is not None and at_least is not None:
            low[column] = max(low[column], at_least)
        goal = np.zeros(len(self.places))
        if column is not None:
            goal[column] = sign
        found = milp(
            goal,
            bounds=Bounds(low, np.array(self.high, float)),
            constraints=[LinearConstraint(self.matrix, self.right, self.right)] if self.rows else (),
            integrality=np.full(len(self.places), int(self.integral)),
            options={"mip_rel_gap": 0.0},
        )
        if found.status == INFEASIBLE or (found.status == UNCLEAR and (column is None or at_least is not None)):
            return None
        if found.status in (UNBOUNDED, UNCLEAR) and self.solutions:
            return -math.inf
        if found.status != OPTIMAL or found.x is None:
            raise InferenceError(f"HiGHS could not bound a figure: {found.message}")
        self._keep(found.x)
        value = 0.0 if column is None else sign * self.solutions[-1][column]
        if self.integral and column is not None and abs(value - found.mip_dual_bound) > 0.5:
            raise InferenceError("HiGHS could not prove a feasible interval; the counts are too large for it")
        return value

    def _keep(self, solution: Floats) -> None:
        """Keep a solution that satisfies every sum; of counts exactly, in integers."""
        if not self.integral:
            self.solutions.append([*map(float, solution)])
            return
        whole = [round(number) for number in solution.tolist()]
        fine = all(sum(sign * whole[i] for i, sign in terms) == right for terms, right in self.rows)
        if not fine or any(not a <= b <= c for a, b, c in zip(self.low, whole, self.high, strict=True)):
            raise InferenceError("HiGHS found no table in exact integers; the counts are too large for it")
        self.solutions.append([*whole])

    def interval(self, column: int) -> tuple[float, float]:
        """Return the least and largest value of a variable; extremes that some solution attains are not solved for."""
        return self._extreme(column, 1, self.low[column]), -self._extreme(column, -1, -self.high[column])

    def _extreme(self, column: int, sign: int, bound: float) -> float:
        if any(sign * solution[column] == bound for solution in self.solutions):
            return bound
        found = self.solve(column, sign)
        assert found is not None  # there is a solution
        return found

    def least_present(self, column: int) -> float | None:
        """Return the least value that is not zero."""
        if any(solution[column] == 1 for solution in self.solutions):
            return 1
        return self.solve(column, at_least=1)


def feasible_intervals(system: System, targets: Iterable[int], presence: bool = True) -> Intervals:
    """Return the feasible intervals of some variables, and with `presence` their least value that is not zero.

    Raises:
        ArgumentError: No table agrees with what was published.
    """
    low, high = system.tightened(*system.bounds())
    wanted, example = set(targets), [*low]
    present = {place: low[place] if low[place] else None for place in wanted if low[place] >= high[place]}
    components = [*system.components(low, high)]
    total = max(1, sum(len(component.places) for component in components))
    with ProgressMeter("feasible intervals", total) as meter:
        done = 0
        for component in components:
            program = Program(component, low, high, not system.magnitude)
            if program.solve(None) is None:
                raise system.contradiction(system.variables[component.places[0]].name)
            for column, place in enumerate(component.places):
                example[place] = program.solutions[0][column]
                done += 1
                if place in wanted:
                    low[place], high[place] = _snapped(*program.interval(column), system.slack)
                    if presence and not system.magnitude:
                        present[place] = low[place] or program.least_present(column)
                meter.update(done, f"{done:,} of {total:,} open cells")
    return Intervals(low, high, present, example)


def _snapped(low: float, high: float, slack: float) -> tuple[float, float]:
    """Return an interval of amounts without the solver's rounding: a point where it is one."""
    if not slack or math.isinf(high):
        return low, high
    low, high = (max(0.0, float(f"{end:.12g}")) for end in (low, high))
    return (low, high) if high - low > 4 * slack else (low, low)


SECONDS = 60.0
MOST_PATTERNS = 60
FEW_NEEDS = 4
REACHES = (4.0, 200.0)
"""How far the tables inside the program may be from the published one, in widths that are needed."""
REACH_OF_NETWORKS = 1.0
"""The same for tables whose sums are a network: differences are sums of circuits, whose entries are 1, 0 and -1."""


@dataclass(frozen=True)
class Need:
    """What the feasible interval of a cell must be: so wide, and reaching so far on either side."""

    width: float
    above: float | None = None
    below: float | None = None

    def distance(self, here: float) -> float:
        """Return how far a table must be from one with a given figure, at most."""
        ends = [abs(end - here) for end in (self.above, self.below) if end is not None]
        return max(1.0, self.width, *ends)


@dataclass(frozen=True)
class SuppressionPattern:
    """Further cells to suppress, and whether it is proved that no cheaper pattern holds."""

    places: tuple[int, ...]
    minimal: bool


Judge = Callable[[frozenset[int]], tuple[str, list[int]]]
"""Says of a pattern whether it 'holds', leaves some interval 'narrow', or some belief too 'sure', and which cells."""


def smallest_suppression(
    system: System, needs: Mapping[int, Need], example: Sequence[float], judge: Judge, by: str
) -> SuppressionPattern | None:
    """Return the cheapest further suppression that holds, or None if none was found.

    Cells with a figure of zero stay as they are; totals are suppressed only if other cells do not suffice.
    """
    if any(system.variables[place].high - system.variables[place].low < need.width for place, need in needs.items()):
        return None  # what stands in the cell tells too much by itself, whatever else is suppressed
    published = [
        place
        for place, v in enumerate(system.variables)
        if v.cells and not v.suppressed and example[place] > 0 and (v.low == v.high or v.protected)
    ]
    interior = [place for place in published if system.leaves[place]]
    reaches = (REACH_OF_NETWORKS,) if _is_network(system) else REACHES
    until = time.monotonic() + SECONDS
    with ProgressMeter("secondary suppression", 1, SECONDS) as meter:
        for candidates in dict.fromkeys((tuple(interior), tuple(published))):
            for reach in reaches:
                search = _PatternSearch(system, needs, example, candidates, reach, by)
                found = search.cheapest(judge, until, meter)
                if found is not None:
                    return found
    return None


def _is_network(system: System) -> bool:
    """Return whether the sums are those of one table of two dimensions at most, of which one may have a hierarchy."""
    first, *others = system.tables
    hierarchies = sum(len(dimension.parts) > 1 for dimension in first.dimensions)
    return not others and len(first.dimensions) <= 2 and hierarchies <= 1


@dataclass(frozen=True)
class _PatternSearch:
    """The patterns of some candidates in order of their cost, until an exact audit accepts one.

    The program begins with the tables of few needs; those of others follow when a pattern leaves them unmet, so that
    the cost of a pattern is never more than that of the cheapest one that holds.
    """

    system: System
    needs: Mapping[int, Need]
    example: Sequence[float]
    candidates: Sequence[int]
    reach: float
    by: str

    def cheapest(self, judge: Judge, until: float, meter: ProgressMeter) -> SuppressionPattern | None:
        """Return the cheapest pattern that holds, or None if there is none or time is up."""
        active = dict([*self.needs.items()][:FEW_NEEDS])
        excluded: list[tuple[frozenset[int], bool]] = []
        for tried in range(MOST_PATTERNS):
            left = until - time.monotonic()
            if left <= 0:
                return None
            program = _Program(self, active)
            for chosen, with_parts in excluded:
                program.exclude(chosen, with_parts)
            found = program.solve(left)
            if found.x is None:
                return None
            numbers = frozenset(np.flatnonzero(found.x[: len(self.candidates)] > 0.5).tolist())
            places = frozenset(self.candidates[number] for number in numbers)
            verdict, failing = judge(places)
            meter.update(tried / MOST_PATTERNS, f"{tried + 1} patterns tried")
            if verdict == "holds":
                return SuppressionPattern(tuple(sorted(places)), found.status == 0)
            excluded.append((numbers, verdict == "narrow"))
            unmet = [place for place in failing if place in self.needs and place not in active]
            active |= {place: self.needs[place] for place in unmet}
        return None


class _Program:
    """The integer program: a column for each candidate, and for each need two tables as differences."""

    def __init__(self, search: _PatternSearch, needs: Mapping[int, Need]) -> None:
        system, example, candidates = search.system, search.example, search.candidates
        self.system, self.example, self.candidates = system, example, candidates
        self.reach = search.reach * max(need.distance(example[place]) for place, need in search.needs.items())
        known = set(candidates)
        self.active = [i for i, v in enumerate(system.variables) if i in known or v.low < v.high]
        self.column = {place: number for number, place in enumerate(self.active)}
        self.entries: list[tuple[int, int, float]] = []
        self.low: list[float] = []
        self.high: list[float] = []
        for number, (place, need) in enumerate(needs.items()):
            for side in (2 * number, 2 * number + 1):
                self._table(side)
            self._apart(place, need, 2 * number)
        self._never_alone(search.needs)
        self.size = len(candidates) + 2 * len(needs) * len(self.active)
        values = np.array([example[place] for place in candidates], float)
        self.cost = 1 + values / (1 + values.sum()) if search.by == "cells" else values

    def _row(self, terms: Sequence[tuple[int, float]], low: float, high: float) -> None:
        self.entries += [(len(self.low), column, factor) for column, factor in terms]
        self.low.append(low)
        self.high.append(high)

    def _at(self, side: int, place: int) -> int:
        return len(self.candidates) + side * len(self.active) + self.column[place]

    def _table(self, side: int) -> None:
        """Add a table: differences that keep every sum, and leave what stays published as it is."""
        for terms in self.system.sums:
            kept = [(self._at(side, place), float(sign)) for place, sign in terms if place in self.column]
            if kept:
                self._row(kept, 0.0, 0.0)
        for number, place in enumerate(self.candidates):
            down, up = self._room(place)
            here = self._at(side, place)
            self._row([(here, 1.0), (number, -self.reach)], -np.inf, up)
            self._row([(here, 1.0), (number, min(self.reach, self.example[place] - down))], -down, np.inf)

    def _room(self, place: int) -> tuple[float, float]:
        """Return how far a figure may be below and above the example by its own text."""
        variable, here = self.system.variables[place], self.example[place]
        return min(self.reach, here - variable.low), min(self.reach, variable.high - here)

    def _apart(self, place: int, need: Need, side: int) -> None:
        upper, lower, here = self._at(side, place), self._at(side + 1, place), self.example[place]
        self._row([(upper, 1.0), (lower, -1.0)], need.width, np.inf)
        if need.above is not None:
            self._row([(upper, 1.0)], need.above - here, np.inf)
        if need.below is not None:
            self._row([(lower, 1.0)], -np.inf, need.below - here)

    def _never_alone(self, needs: Mapping[int, Need]) -> None:
        """Add what a cheapest pattern satisfies, to save time: a cell that alone is open in a sum is known exactly."""
        number = {place: column for column, place in enumerate(self.candidates)}
        for terms in self.system.sums:
            inside = [number[place] for place, _ in terms if place in number]
            open_ones = [
                place for place, _ in terms if self.system.variables[place].low < self.system.variables[place].high
            ]
            if len(open_ones) == 1 and open_ones[0] in needs:
                self._row([(column, 1.0) for column in inside], 1.0, np.inf)
            for column in inside if not open_ones else ():
                others = [(other, 1.0) for other in inside if other != column]
                self._row([*others, (column, -1.0)], 0.0, np.inf)

    def exclude(self, chosen: frozenset[int], with_parts: bool) -> None:
        """Exclude a pattern; if it leaves an interval too narrow, every part of it does, too."""
        terms = [(number, 1.0) for number in range(len(self.candidates)) if number not in chosen]
        if not with_parts:
            terms += [(number, -1.0) for number in chosen]
        self._row(terms, 1.0 - (0 if with_parts else len(chosen)), np.inf)

    def solve(self, seconds: float) -> OptimizeResult:
        row, column, factor = zip(*self.entries, strict=True)
        matrix = csr_matrix((factor, (row, column)), shape=(len(self.low), self.size))
        binary = len(self.candidates)
        low, high = np.zeros(self.size), np.ones(self.size)
        for place, here in self.column.items():
            is_candidate = place in self.candidates
            down, up = (self.reach, self.reach) if is_candidate else self._room(place)
            low[binary + here :: len(self.active)], high[binary + here :: len(self.active)] = -down, up
        goal = np.zeros(self.size)
        goal[:binary] = self.cost
        kinds = np.zeros(self.size, int)
        kinds[:binary] = 1
        limits = LinearConstraint(matrix, np.array(self.low), np.array(self.high))
        return milp(
            goal,
            integrality=kinds,
            bounds=Bounds(low, high),
            constraints=[limits],
            options={"mip_rel_gap": 0.0, "time_limit": seconds},
        )
