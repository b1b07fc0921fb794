"""One person and the others around: the chances of matching for any columns, and what follows from them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import scipy

from privug.model.node import Array
from privug.reidentification.laws import Block, Coding, NoClosedForm, RowLaw
from privug.reidentification.responses import Factor, OneOfMatching, Response, expected_share, product
from privug.reidentification.scenes import Scene

MOST_CELLS = 100_000_000
TOGETHER = 64  # chances whose binomial numbers are computed at a time
TAIL = math.log(4e16)
MOST_CONVOLVED = 20_000


@dataclass(frozen=True, eq=False)
class Detail:
    """Values of some columns and the secret: their weights, and the chances that a row of each kind has them.

    `matches` is the chance to agree in the columns, `shares` to agree in the secret as well.
    """

    values: Block
    matches: Array
    shares: Array

    def factor(self, what: str) -> Factor:
        """Return one of the chances as a factor."""
        return Factor(*_CHANCES[what](self))


def _unsure(detail: Detail) -> tuple[Array, Array]:
    """Weigh each value with the chance that a matching row has another secret."""
    odds = np.divide(detail.shares, detail.matches, out=np.zeros_like(detail.shares), where=detail.matches > 0)
    return detail.values.probabilities * (1 - odds[:, 0]), detail.matches


_CHANCES: dict[str, Callable[[Detail], tuple[Array, Array]]] = {
    "matches": lambda detail: (detail.values.probabilities, detail.matches),
    "shares": lambda detail: (detail.values.probabilities, detail.shares),
    "differs": lambda detail: (detail.values.probabilities, np.maximum(detail.matches - detail.shares, 0.0)),
    "unsure": _unsure,
    "both": lambda detail: (detail.values.probabilities, np.concatenate([detail.matches, detail.shares], axis=1)),
}


class Crowd:
    """One scene, with the factors that were worked out of it."""

    def __init__(self, scene: Scene, coding: Coding) -> None:
        self.weight = scene.weight
        self._scene = scene
        self._coding = coding
        self._groups = _joined([scene.person, *scene.kinds])
        self._fresh = scene.person.fresh.union(*(kind.fresh for kind in scene.kinds))
        self._known: dict[tuple[Any, ...], Factor] = {}

    def factors(self, columns: Sequence[str], secret: str | None = None, what: str = "matches") -> list[Factor]:
        """Return factors of a chance that a row has: 'matches', or also 'shares' or 'differs' in the secret."""
        factors = [] if self._fresh.isdisjoint(columns) else [self._alive(columns, what == "both")]
        for group in self._groups:
            own = tuple(column for column in group if column in columns)
            told = secret if secret in group else None
            if told is None and not own:
                continue
            key = (own, told, "matches" if told is None and what != "both" else what)
            if key not in self._known:
                self._known[key] = self._detail(own, told).factor(key[2]).merged()
            factors.append(self._known[key])
        if what in ("shares", "both") and secret in self._scene.person.fresh:
            factors.append(self._constant([what == "both"] * self._kinds + [False] * self._kinds * (what == "both")))
        return factors or [self._constant([True] * self._kinds * (2 if what == "both" else 1))]

    @property
    def _kinds(self) -> int:
        return len(self._scene.kinds)

    @staticmethod
    def _constant(alive: Sequence[bool]) -> Factor:
        """Return a factor that is one or zero for each kind of rows, whatever the person's values."""
        return Factor(np.ones(1), np.array([alive], float))

    def _alive(self, columns: Sequence[str], twice: bool) -> Factor:
        """Return a factor that is zero for kinds of rows that cannot agree in a column with a density."""
        person = self._scene.person.fresh
        alive = [(person | kind.fresh).isdisjoint(columns) for kind in self._scene.kinds]
        return self._constant(alive * 2 if twice else alive)

    def _detail(self, own: tuple[str, ...], secret: str | None) -> Detail:
        told = own if secret is None or secret in own else (*own, secret)
        values = self._scene.person.joint(told, self._coding)
        return Detail(values, self._chances(values, own), self._chances(values, told))

    def _chances(self, values: Block, columns: Sequence[str]) -> Array:
        """Return the chance that a row of each kind has the values of the person in some columns."""
        chances = np.ones((len(values.codes), self._kinds))
        for place, kind in enumerate(self._scene.kinds):
            for block in kind.blocks:
                if not set(block.columns).isdisjoint(columns):
                    part = block.marginal(columns, self._coding)
                    chances[:, place] *= part.chances(values.columns, values.codes, self._coding)
            if not kind.fresh.isdisjoint(columns):
                chances[:, place] = 0.0
        return chances

    def expected(self, response: Response, factors: Sequence[Factor]) -> float:
        """Return the expected value of a response."""
        return response.expected(factors, self._scene.counts, self._scene.chances)

    def mean(self, columns: Sequence[str]) -> float:
        """Return how many other rows are expected to match."""
        chances = np.prod([factor.mean for factor in self.factors(columns)], axis=0)
        return float(self._scene.chances @ (self._scene.counts @ chances))

    def share(self, columns: Sequence[str], secret: str) -> float:
        """Return the expected share of matching rows, the person's own among them, that have the person's secret."""
        if self._kinds > 1:
            both = product(self.factors(columns, secret, "both"))
            matches, shares = both.chances[:, : self._kinds], both.chances[:, self._kinds :]
            parts = [expected_share(counts, matches, shares) for counts in self._scene.counts]
            return float(self._scene.chances @ np.array(parts) @ both.weights)
        # Given m other matching rows, the share is (1 + m q) / (1 + m) = q + (1 - q) / (1 + m) on average.
        unsure = self.factors(columns, secret, "unsure")
        sure = 1.0 - float(np.prod([factor.weights.sum() for factor in unsure]))
        return sure + self.expected(OneOfMatching(), unsure)

    def _demand_one_kind(self) -> None:
        if self._kinds > 1:
            raise NoClosedForm("its rows have several distributions")

    def distribution(self, factors: Sequence[Factor]) -> Array:
        """Return the probabilities of 0, 1, ... rows that have a chance which is the product of these factors."""
        everything = product(factors)
        total = np.zeros(int(self._scene.counts.sum(axis=1).max()) + 1)
        for counts, chance in zip(self._scene.counts, self._scene.chances, strict=True):
            part = _sums(counts, everything)
            total[: len(part)] += chance * part
        return total

    def sharing(self, columns: Sequence[str], secret: str, others: int) -> Array:
        """Return the probabilities that so many other rows match and 0, 1, ... of them have the person's secret."""
        self._demand_one_kind()
        both = product(self.factors(columns, secret, "both"))
        x, same = both.chances[:, 0], both.chances[:, 1]
        rows = scipy.stats.binom.pmf(others, self._scene.counts[:, :1], x[None]) if others >= 0 else np.zeros((1, 1))
        weights = both.weights * (self._scene.chances @ rows)
        odds = np.divide(same, x, out=np.zeros(len(x)), where=x > 0)
        numbers = np.arange(max(others, 0) + 1)
        return np.asarray(weights @ scipy.stats.binom.pmf(numbers, others, np.minimum(odds, 1.0)[:, None]))

    def posterior(self, columns: Sequence[str], secret: str, seen: Mapping[int, int]) -> Array:
        """Return the probability of each secret together with the numbers of matching rows that have each value.

        The others' numbers are multinomial, given the person's values: the person's own row is taken out of `seen`.
        """
        self._demand_one_kind()
        group = next((group for group in self._groups if secret in group), None)
        if group is None or not self._scene.kinds[0].fresh.isdisjoint({*columns, secret}):
            raise NoClosedForm(f"the values of {secret} cannot be listed")
        own = tuple(column for column in group if column in columns and column != secret)
        detail = self._detail(own, secret)
        rest = product(self.factors([column for column in columns if column not in group]))
        place = detail.values.columns.index(secret)
        chances = [self._chances(_replaced(detail.values, place, value), (*own, secret))[:, 0] for value in seen]
        weights = np.zeros(len(self._coding.values(secret)))
        for mine in seen:
            numbers = np.array([count - (value == mine) for value, count in seen.items()])
            if (numbers < 0).any():
                continue
            held = detail.values.codes[:, place] == mine
            logs = scipy.special.xlogy(numbers[:, None], np.array(chances)[:, held]).sum(axis=0)
            logs = logs - scipy.special.gammaln(numbers + 1).sum()
            weights[mine] = self._observed(
                detail.values.probabilities[held], logs, detail.matches[held, 0], rest, int(numbers.sum())
            )
        return weights

    def _observed(self, weights: Array, logs: Array, matches: Array, rest: Factor, others: int) -> float:
        """Return the probability of values with their secrets' numbers, over all numbers of rows."""
        total = 0.0
        outside = rest.chances[:, 0]
        for (rows,), chance in zip(self._scene.counts, self._scene.chances, strict=True):
            if rows < others:
                continue
            ways = scipy.special.gammaln(rows + 1) - scipy.special.gammaln(rows - others + 1)
            missed = scipy.special.xlog1py(rows - others, -np.minimum(1.0, np.multiply.outer(outside, matches)))
            inside = np.exp(ways + scipy.special.xlogy(others, outside)[:, None] + missed + logs[None])
            total += chance * float(rest.weights @ inside @ weights)
        return total


def _replaced(values: Block, place: int, code: int) -> Block:
    codes = values.codes.copy()
    codes[:, place] = code
    return Block(values.columns, codes, values.probabilities)


def _joined(laws: Sequence[RowLaw]) -> list[tuple[str, ...]]:
    """Return the columns in groups such that no block of any law reaches over two of them."""
    groups: list[tuple[str, ...]] = []
    known = {column for block in laws[0].blocks for column in block.columns}
    for law in laws:
        for block in law.blocks:
            columns = [column for column in block.columns if column in known]
            touched = [group for group in groups if not set(group).isdisjoint(columns)]
            merged = tuple(dict.fromkeys([*(column for group in touched for column in group), *columns]))
            groups = [group for group in groups if group not in touched] + ([merged] if merged else [])
    return groups


def _sums(counts: Array, chances: Factor) -> Array:
    """Return the probabilities of sums of binomial numbers, averaged over the lines of chances."""
    if counts.size == 1:
        return _binomial_mixture(int(counts[0]), chances.weights, chances.chances[:, 0])
    unsure = (chances.chances > 0) & (chances.chances < 1)
    if int(unsure.sum()) > MOST_CONVOLVED:
        raise NoClosedForm("the columns have too many combinations of values to list")
    total = np.zeros(int(counts.sum()) + 1)
    for weight, line, open_ones in zip(chances.weights, chances.chances, unsure, strict=True):
        certain = int(counts[line >= 1].sum())
        drawn = zip(counts[open_ones], line[open_ones], strict=True)
        parts = [scipy.stats.binom.pmf(np.arange(n + 1), n, x) for n, x in drawn]
        law = reduce(np.convolve, parts, np.ones(1))
        total[certain : certain + len(law)] += weight * law
    return total


def _binomial_mixture(rows: int, weights: Array, chances: Array) -> Array:
    """Return the probabilities of a binomial number whose chance is random, far tails of less than 1e-16 left out."""
    order = np.argsort(chances)
    x = np.minimum(chances[order], 1.0)
    # Bernstein's inequality.
    reach = TAIL / 3 + np.sqrt(TAIL**2 / 9 + 2 * TAIL * rows * x * (1 - x))
    lowest = np.maximum(0, np.floor(rows * x - reach)).astype(np.int64)
    highest = np.minimum(rows, np.ceil(rows * x + reach)).astype(np.int64)
    parts = [slice(start, start + TOGETHER) for start in range(0, len(x), TOGETHER)]
    if sum(len(x[part]) * float(highest[part].max() - lowest[part].min() + 1) for part in parts) > MOST_CELLS:
        raise NoClosedForm("the columns have too many combinations of values to list")
    total = np.zeros(rows + 1)
    for part in parts:
        low, high = int(lowest[part].min()), int(highest[part].max())
        probabilities = scipy.stats.binom.pmf(np.arange(low, high + 1), rows, x[part][:, None])
        total[low : high + 1] += weights[order][part] @ probabilities
    return total
