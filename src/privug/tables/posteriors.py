"""Exact posteriors of suppressed counts, by sum-product over what is left of each total.

The counts of a component are taken one after the other. A state is what is left of each total that is begun and not
finished; states that agree are merged, so that the work is that of the states, not of the tables. A forward and a
backward pass give the distribution of every count at once. Weights are logarithms throughout. The number of steps from
one layer to the next is known before they are made: a component that needs more than `MOST_WORK` is refused.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privug.tables.system import Terms

MOST_WORK = 20_000_000
CHUNK = 1_000_000
_LARGEST_CODE = 2**62
Floats = npt.NDArray[np.float64]
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
class _Step:
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


def _forward(sums: _Sums, order: Sequence[int], weights: Sequence[Floats]) -> tuple[list[_Layer], list[_Step]]:
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


def _step(sums: _Sums, count: int, layer: _Layer, after: _Layer, least: Sequence[int], most: Sequence[int]) -> _Step:
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
    return _Step(source, low[source], (high - low + 1)[source], base[source], slope)


def _merged(layer: _Layer, step: _Step, empty: _Layer, weights: Floats) -> _Layer:
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
    layer: _Layer, step: _Step, after: _Layer, later: Floats, weights: Floats, total: float
) -> tuple[Floats, Floats]:
    """Return the distribution of a count, and the weight of what may follow each state before it."""
    shares = np.zeros(len(weights))
    before, follows = layer.logs[step.source], np.full(len(layer.codes), -np.inf)
    for rows, values, codes, starts in step.parts():
        logs = weights[values] + later[np.searchsorted(after.codes, codes)]
        shares += np.bincount(values, np.exp(before[rows] + logs - total), len(weights))
        follows[step.source[rows[starts]]] = _log_sums(logs, starts)
    return shares, follows
