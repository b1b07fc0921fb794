"""Feasible intervals: the least and largest value of a figure over all tables that agree with what was published.

Counts are integer programs, amounts linear ones, solved by HiGHS component by component. A solution of HiGHS is in
floating point, so every extreme is checked: the rounded solution must satisfy all sums in integers, and the bound that
HiGHS proved must lie within one half of it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix

from privug.errors import InferenceError
from privug.progress import ProgressMeter
from privug.tables.system import Component, System

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

    def __init__(self, component: Component, low: Sequence[float], high: Sequence[float], integral: bool) -> None:
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
