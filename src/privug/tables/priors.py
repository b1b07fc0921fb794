"""What an attacker takes for likely before the table is seen: weights of the counts of each cell."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from privug.arguments import LARGEST, is_number, shown
from privug.errors import ArgumentError
from privug.tables.system import System

Prior = Literal["uniform", "poisson", "multinomial"]
PRIORS = ("uniform", "poisson", "multinomial")
Floats = npt.NDArray[np.float64]


class Weights:
    """The log weight of every value of a variable.

    Only the finest cells have a prior; totals are the sums of them. "uniform": all tables alike. "poisson": independent
    counts with given rates, or all with the mean of the finest cells that are published. "multinomial": given the
    totals, the table is multinomial with the probabilities that one-way margins imply if dimensions are independent;
    its weight is the product of p^c / c!, that of independent Poisson counts given their totals. A margin that is not
    published is taken at the middle of its feasible interval. A figure that was rounded at random has in addition the
    probability of being rounded to what was printed.
    """

    def __init__(
        self, system: System, prior: str, rates: Mapping[int, float], rate: float | None, low: Any, high: Any
    ) -> None:
        self.system, self.prior, self.rates, self.low, self.high = system, prior, rates, low, high
        self.rate = rate if rate is not None else self._mean()

    def _mean(self) -> float:
        leaves = zip(self.system.variables, self.system.leaves, strict=True)
        shown_ones = [v.value for v, leaf in leaves if leaf and v.value is not None]
        return max(1.0, sum(shown_ones) / len(shown_ones)) if shown_ones else 1.0

    def expected(self, place: int) -> float:
        """Return the expected count of a finest cell."""
        if self.prior == "poisson":
            return self.rates.get(place, self.rate)
        key = self.system.variables[place].key
        total = self._middle(frozenset())
        if len(key) < 2:
            names = {name for name, _ in key}
            leaves = zip(self.system.variables, self.system.leaves, strict=True)
            return max(total, 1.0) / sum(leaf and {name for name, _ in v.key} == names for v, leaf in leaves)
        margins = [self._middle(frozenset([part])) for part in key]
        return math.prod(margins) / max(total, 1.0) ** (len(key) - 1)

    def _middle(self, key: Any) -> float:
        place = self.system.at(key)
        if place is None or math.isinf(self.high[place]):
            raise ArgumentError(
                "the multinomial prior needs totals that are published or bounded; give prior='poisson'"
            )
        value = self.system.variables[place].value
        return (self.low[place] + self.high[place]) / 2 if value is None else value

    def of(self, place: int) -> Floats:
        """Return the log weights of the values from the least to the largest feasible one."""
        values = np.arange(self.low[place], self.high[place] + 1, dtype=float)
        weights = np.zeros(len(values))
        if self.prior != "uniform" and self.system.leaves[place]:
            rate = max(self.expected(place), 1e-300)
            weights += values * math.log(rate) - gammaln(values + 1)
        for _, cell in self.system.variables[place].cells:
            if cell.base is not None and cell.value is not None:
                with np.errstate(divide="ignore"):
                    weights += np.log(np.maximum(0.0, 1 - np.abs(values - cell.value) / cell.base))
        return weights


def checked_rates(rate: Any, find: Any) -> tuple[float | None, dict[int, float]]:
    """Return the rate of all cells, and those of cells that have one of their own."""
    given: Sequence[Any] = [*rate.values()] if isinstance(rate, Mapping) else [] if rate is None else [rate]
    for number in given:
        if not is_number(number) or not 0 < number < LARGEST:
            raise ArgumentError(f"audit: rate must be a positive number, or one for each cell, not {shown(number)}")
    if isinstance(rate, Mapping):
        return None, {find("rate", cell): float(number) for cell, number in rate.items()}
    return None if rate is None else float(rate), {}
