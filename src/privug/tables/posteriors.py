"""Exact posteriors of suppressed counts by sum-product, their priors, and rules for dominated amounts.

The counts of a component are taken one after the other. A state is what is left of each total that is begun and not
finished; states that agree are merged, so that the work is that of the states, not of the tables. A forward and a
backward pass give the distribution of every count at once. Weights are logarithms throughout. The number of steps from
one layer to the next is known before they are made: a component that needs more than `MOST_WORK` is refused.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from privug.arguments import LARGEST, is_number, shown
from privug.errors import ArgumentError
from privug.tables.published_table import System, Terms

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


MOST_WORK = 20_000_000
CHUNK = 1_000_000
_LARGEST_CODE = 2**62
Codes = npt.NDArray[np.int64]


class TooLarge(Exception):
    """The states of a component are too many for an exact posterior."""


@dataclass(frozen=True)
class _Sums:
    """Equations in which the least value of each count is taken away: coefficients, right sides, and widths."""

    of: list[list[tuple[int, int]]]
    """The equations of each count, with coefficients."""
    terms: list[list[tuple[int, int]]]
    right: list[int]
    widths: list[int]


@dataclass
class _Layer:
    """The states before one count: what is left of each open equation in mixed radix, and the weight of each state."""

    columns: list[int]
    least: list[int]
    spans: list[int]
    codes: Codes
    logs: Floats

    def left(self, equation: int, right: int) -> Codes:
        """Return what is left of an equation in every state."""
        if equation not in self.columns:
            return np.full(len(self.codes), right, np.int64)
        place = self.columns.index(equation)
        stride = math.prod(self.spans[:place])
        return (self.codes // stride) % self.spans[place] + self.least[place]


@dataclass
class _CountStep:
    """How states go on for each value of a count: from the rows in `source`, over the values from `low` on."""

    source: Codes
    low: Codes
    sizes: Codes
    base: Codes
    slope: int

    def parts(self) -> Iterator[tuple[Codes, Codes, Codes, Codes]]:
        """Yield the rows, values and following states of some transitions at a time, and where each row starts."""
        ends = np.cumsum(self.sizes)
        first = 0
        while first < len(self.source):
            before = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, before + CHUNK, side="right")))
            sizes = self.sizes[first:last]
            starts = np.cumsum(sizes) - sizes
            inside = np.repeat(np.arange(first, last), sizes)
            values = self.low[inside] + np.arange(len(inside)) - np.repeat(starts, sizes)
            yield inside, values, self.base[inside] + self.slope * values, starts
            first = last


def marginals(
    low: Sequence[int], high: Sequence[int], rows: Sequence[tuple[Terms, int]], weights: Sequence[Floats]
) -> list[Floats]:
    """Return the distribution of each count over low..high, given equations and log weights of each count's values.

    Raises:
        TooLarge: The states are too many.
    """
    sums = _shifted(low, high, rows)
    order = _order(sums)
    layers, steps = _forward(sums, order, weights)
    found: list[Floats] = [np.zeros(0)] * len(low)
    later = np.zeros(len(layers[-1].codes))
    total = float(layers[-1].logs[0])
    for count, layer, step, after in reversed([*zip(order, layers[:-1], steps, layers[1:], strict=True)]):
        found[count], later = _backward(layer, step, after, later, weights[count], total)
    return [shares / shares.sum() for shares in found]


def _shifted(low: Sequence[int], high: Sequence[int], rows: Sequence[tuple[Terms, int]]) -> _Sums:
    of: list[list[tuple[int, int]]] = [[] for _ in low]
    for equation, (terms, _) in enumerate(rows):
        for count, sign in terms:
            of[count].append((equation, sign))
    right = [value - sum(sign * low[count] for count, sign in terms) for terms, value in rows]
    widths = [b - a for a, b in zip(low, high, strict=True)]
    return _Sums(of, [list(terms) for terms, _ in rows], right, widths)


def _order(sums: _Sums) -> list[int]:
    """Return an order of the counts that keeps few equations open: next comes what adds the least to the states."""
    spans = [math.log1p(sum(sums.widths[count] for count, _ in terms)) for terms in sums.terms]
    missing = [len(terms) for terms in sums.terms]
    remaining, order = set(range(len(sums.of))), []
    begun: set[int] = set()

    def growth(count: int) -> tuple[float, float, int]:
        opened = sum(spans[e] for e, _ in sums.of[count] if e not in begun and missing[e] > 1)
        closed = sum(spans[e] for e, _ in sums.of[count] if e in begun and missing[e] == 1)
        touched = any(e in begun for e, _ in sums.of[count])
        return (0.0 if touched or not begun else 1e9) + opened - closed, sums.widths[count], count

    while remaining:
        count = min(remaining, key=growth)
        remaining.remove(count)
        order.append(count)
        for equation, _ in sums.of[count]:
            missing[equation] -= 1
            begun.add(equation)
        begun = {e for e in begun if missing[e]}
    return order


def _forward(sums: _Sums, order: Sequence[int], weights: Sequence[Floats]) -> tuple[list[_Layer], list[_CountStep]]:
    least = [sum(-sums.widths[c] for c, sign in terms if sign < 0) for terms in sums.terms]
    most = [sum(sums.widths[c] for c, sign in terms if sign > 0) for terms in sums.terms]
    missing = [len(terms) for terms in sums.terms]
    layers, steps, work = [_Layer([], [], [], np.zeros(1, np.int64), np.zeros(1))], [], 0
    for count in order:
        for equation, sign in sums.of[count]:
            missing[equation] -= 1
            least[equation] += sums.widths[count] if sign < 0 else 0
            most[equation] -= sums.widths[count] if sign > 0 else 0
        touched = [e for e, _ in sums.of[count]]
        columns = [e for e in dict.fromkeys([*layers[-1].columns, *touched]) if missing[e]]
        spans = [most[e] - least[e] + 1 for e in columns]
        if math.prod(spans) * max(1, len(weights[count])) > _LARGEST_CODE:
            raise TooLarge
        empty = _Layer(columns, [least[e] for e in columns], spans, np.zeros(0, np.int64), np.zeros(0))
        step = _step(sums, count, layers[-1], empty, least, most)
        work += int(step.sizes.sum())
        if work > MOST_WORK:
            raise TooLarge
        layers.append(_merged(layers[-1], step, empty, weights[count]))
        steps.append(step)
    return layers, steps


def _step(
    sums: _Sums, count: int, layer: _Layer, after: _Layer, least: Sequence[int], most: Sequence[int]
) -> _CountStep:
    """Return which values each state allows: what is then left must be what the other counts can sum to."""
    low = np.zeros(len(layer.codes), np.int64)
    high = np.full(len(layer.codes), sums.widths[count], np.int64)
    for equation, sign in sums.of[count]:
        left = layer.left(equation, sums.right[equation])
        bottom, top = left - most[equation], left - least[equation]
        low = np.maximum(low, bottom if sign > 0 else -top)
        high = np.minimum(high, top if sign > 0 else -bottom)
    source = np.flatnonzero(low <= high)
    signs = dict(sums.of[count])
    base, slope, stride = np.zeros(len(layer.codes), np.int64), 0, 1
    for equation, start, span in zip(after.columns, after.least, after.spans, strict=True):
        base += (layer.left(equation, sums.right[equation]) - start) * stride
        slope -= signs.get(equation, 0) * stride
        stride *= span
    return _CountStep(source, low[source], (high - low + 1)[source], base[source], slope)


def _merged(layer: _Layer, step: _CountStep, empty: _Layer, weights: Floats) -> _Layer:
    """Return the next layer: the states that steps lead to, each with the sum of the weights that lead there."""
    before = layer.logs[step.source]
    found = [_grouped(after, before[rows] + weights[values]) for rows, values, after, _ in step.parts()]
    codes, logs = np.concatenate([codes for codes, _ in found]), np.concatenate([logs for _, logs in found])
    codes, logs = _grouped(codes, logs) if len(found) > 1 else (codes, logs)
    return _Layer(empty.columns, empty.least, empty.spans, codes, logs)


def _grouped(codes: Codes, logs: Floats) -> tuple[Codes, Floats]:
    """Return the different codes in order, and for each the logarithm of the sum of its weights."""
    order = np.argsort(codes, kind="stable")
    codes, logs = codes[order], logs[order]
    starts = np.flatnonzero(np.concatenate(([True], codes[1:] != codes[:-1])))
    return codes[starts], _log_sums(logs, starts)


def _log_sums(logs: Floats, starts: Codes) -> Floats:
    """Return the logarithms of the sums of weights in groups that begin at given places."""
    top = np.maximum.reduceat(logs, starts)
    top = np.where(np.isfinite(top), top, 0.0)
    sizes = np.diff(np.append(starts, len(logs)))
    with np.errstate(divide="ignore"):
        sums: Floats = np.log(np.add.reduceat(np.exp(logs - np.repeat(top, sizes)), starts)) + top
    return sums


def _backward(
    layer: _Layer, step: _CountStep, after: _Layer, later: Floats, weights: Floats, total: float
) -> tuple[Floats, Floats]:
    """Return the distribution of a count, and the weight of what may follow each state before it."""
    shares = np.zeros(len(weights))
    before, follows = layer.logs[step.source], np.full(len(layer.codes), -np.inf)
    for rows, values, codes, starts in step.parts():
        logs = weights[values] + later[np.searchsorted(after.codes, codes)]
        shares += np.bincount(values, np.exp(before[rows] + logs - total), len(weights))
        follows[step.source[rows[starts]]] = _log_sums(logs, starts)
    return shares, follows


@dataclass(frozen=True)
class Rules:
    """When an amount is sensitive: `p` of the p % rule, `dominance` of the (n, k) rule."""

    p: float | None = None
    dominance: tuple[int, float] | None = None


@dataclass(frozen=True)
class Contributions:
    """The largest contributions to a cell, in descending order, and the amount of the cell.

    >>> Contributions((60.0, 30.0, 5.0, 5.0), 100.0).second_estimate
    70.0
    """

    largest: tuple[float, ...]
    amount: float

    @property
    def first(self) -> float:
        """The largest contribution."""
        return self.largest[0]

    @property
    def second(self) -> float:
        """The second largest contribution, zero if there is none."""
        return self.largest[1] if len(self.largest) > 1 else 0.0

    @property
    def second_estimate(self) -> float:
        """What the second largest contributor knows the largest to be at most, if the amount is known."""
        return self.amount - self.second

    def broken_rules(self, rules: Rules) -> list[str]:
        """Return the rules by which the cell is sensitive, each with the numbers.

        p % rule: sensitive if X - x1 - x2 < p / 100 x1, because the second largest contributor then knows the largest
        to within p %. (n, k) rule: sensitive if the n largest are more than k % of X.

        >>> Contributions((60.0, 30.0, 5.0, 5.0), 100.0).broken_rules(Rules(p=20))
        ['p % rule: the second largest contributor knows the largest to within 16.7 %, less than 20 %']
        >>> Contributions((60.0, 20.0, 20.0), 100.0).broken_rules(Rules(p=20, dominance=(2, 80)))
        []
        """
        told = []
        if rules.p is not None and (rest := self.amount - self.first - self.second) < rules.p / 100 * self.first:
            told.append(
                f"p % rule: the second largest contributor knows the largest to within "
                f"{100 * max(0.0, rest) / self.first:.3g} %, less than {rules.p:g} %"
            )
        if rules.dominance is not None:
            n, k = rules.dominance
            if (top := sum(self.largest[:n])) > k / 100 * self.amount:
                share = 100 * top / self.amount
                told.append(f"({n}, {k:g}) rule: the {n} largest contribute {share:.3g} %, more than {k:g} %")
        return told

    def protection(self, rules: Rules) -> float:
        """Return how far beyond the amount, on either side, the feasible interval of the suppressed cell must reach.

        For the p % rule that is p / 100 x1 - (X - x1 - x2), for the (n, k) rule 100 / k (x1 + ... + xn) - X: with as
        much uncertainty in place of X the cell would not be sensitive.

        >>> Contributions((60.0, 30.0, 5.0, 5.0), 100.0).protection(Rules(p=20))
        2.0
        """
        levels = [0.0]
        if rules.p is not None:
            levels.append(rules.p / 100 * self.first - (self.amount - self.first - self.second))
        if rules.dominance is not None:
            n, k = rules.dominance
            levels.append(100 / k * sum(self.largest[:n]) - self.amount)
        return max(levels)


def contributions(largest: Sequence[float], amount: float | None) -> Contributions:
    """Return contributions in descending order; without an amount they are all there are."""
    ordered = tuple(sorted((float(number) for number in largest), reverse=True))
    return Contributions(ordered, float(sum(ordered) if amount is None else amount))
