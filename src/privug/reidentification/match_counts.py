"""One person and the other rows: the chances of matching, where all rows are independent of one another.

Let x be the chance that another row matches the person's. It is a product of independent factors, one for each
block of columns, so that E[x^-s] is a product too. A function h(x) with h(0) = 1 is the integral

    h(x) = 1 + 1/(2 pi i) * integral over Re s = -1/2 of K(s) x^-s ds

with the Mellin transform K of h - 1. So E[h(x)] needs no list of all combinations of values: the integrand falls off
exponentially along the line, and the trapezoidal rule has all digits. Where combinations are few they are listed.
"""

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from itertools import pairwise
from typing import Any

import numpy as np
import scipy

from privug.digits import how_many
from privug.errors import ArgumentError
from privug.inference.exact.finite.states import CERTAIN, Roots
from privug.model.node import Array, Node, ancestors
from privug.model.plan import Plan
from privug.model.table import Row
from privug.model.variable import RandomVariable
from privug.prior.plating import nodes_of
from privug.prior.standard import binomial
from privug.prior.table import Records
from privug.reidentification.row_distributions import Coding, ColumnBlock, NoClosedForm, RowDistribution

MOST_KINDS = 400
MOST_SIZES = 100_000

Person = int | Mapping[str, Any] | str | None


@dataclass(frozen=True, eq=False)
class Scene:
    """A person and the kinds of the other rows.

    A line of `counts` says how many others there are of each kind, and `chances` how likely that is.
    """

    weight: float
    person: RowDistribution
    kinds: tuple[RowDistribution, ...]
    counts: Array
    chances: Array


def scenes_of(records: Records, person: Person, coding: Coding) -> list[Scene]:
    """Return the scenes of a table that together make up the attacker's prior, with their probabilities as weights."""
    sizes, chances = _sizes(records)
    first = person if isinstance(person, int) else 0
    there = sizes > first
    if not there.any():
        raise ArgumentError(
            f"person must be the position of a row: the table has at most {how_many(sizes.max(), 'row')}"
        )
    sizes, chances = sizes[there], chances[there] / chances[there].sum()
    kinds, kind_of_row = _kinds(records, int(sizes.max()), coding)
    counts = np.zeros((len(sizes), len(kinds)), np.int64)
    for line, size in enumerate(sizes):
        if kind_of_row is None:
            counts[line, 0] = size
        else:
            counts[line] = np.bincount(kind_of_row[:size], minlength=len(kinds))
    if person == "anyone":
        if len(kinds) > MOST_KINDS // 4:
            raise NoClosedForm(f"its rows have more than {MOST_KINDS // 4} different distributions")
        return _anyone(kinds, counts, chances)
    own = 0 if kind_of_row is None else int(kind_of_row[first])
    counts[:, own] -= 1
    law = kinds[own].knowing(person, coding) if isinstance(person, Mapping) else kinds[own]
    return [_scene(1.0, law, kinds, counts, chances)]


def _scene(
    weight: float, person: RowDistribution, kinds: tuple[RowDistribution, ...], counts: Array, chances: Array
) -> Scene:
    """Make a scene of those kinds of rows that there are."""
    there: Array = np.asarray(counts.any(axis=0))
    there[0] |= not there.any()
    kept = tuple(kind for kind, is_there in zip(kinds, there, strict=True) if is_there)
    return Scene(weight, person, kept, counts[:, there], chances)


def _anyone(kinds: tuple[RowDistribution, ...], counts: Array, chances: Array) -> list[Scene]:
    """Return a scene for each kind that a person taken at random can be of."""
    shares = chances[:, None] * counts / counts.sum(axis=1, keepdims=True)
    scenes = []
    for own, law in enumerate(kinds):
        weight = float(shares[:, own].sum())
        possible = shares[:, own] > 0
        others = counts[possible].copy()
        others[:, own] -= 1
        scenes.append(_scene(weight, law, kinds, others, shares[possible, own] / weight))
    return scenes


def _sizes(records: Records) -> tuple[Array, Array]:
    if not isinstance(records.size, RandomVariable):
        return np.array([records.size]), np.ones(1)
    node = records.size.node
    roots = Roots([node])
    if roots.endless is not None or roots.count(MOST_SIZES) > MOST_SIZES:
        raise NoClosedForm("the size of the table has too many values to list")
    found: Counter[int] = Counter()
    for states in roots.blocks(CERTAIN, MOST_SIZES + 1):
        values = Plan([node], roots.nodes).run(len(states), np.random.Generator(np.random.SFC64(0)), states.arrays)[0]
        for value, weight in zip(values.tolist(), states.weights.tolist(), strict=True):
            found[value] += weight
    return np.array(list(found)), np.array(list(found.values()))


def _kinds(records: Records, size: int, coding: Coding) -> tuple[tuple[RowDistribution, ...], Array | None]:
    """Return the distinct distributions of rows, and which of them each row has; None if there is only one."""
    if records.template is not None:
        two = Records(2, records.template)
        _check_independence(records, two.alike().share_roots, two.table()[0])
        return (RowDistribution.of(two.table()[0], coding),), None
    rows = records.table(size)
    likeness = records.alike(size)
    numbers: dict[Hashable, int] = {}
    kind_of_row = np.empty(size, np.int64)
    examples: list[Row] = []
    for position, (row, signature) in enumerate(zip(rows, likeness.signatures, strict=False)):
        key: Hashable = (signature if signature is not None or not nodes_of(row) else position, _plain_cells(row))
        if key not in numbers:
            numbers[key] = len(numbers)
            examples.append(row)
        kind_of_row[position] = numbers[key]
    if len(examples) > MOST_KINDS:
        raise NoClosedForm(f"its rows have more than {MOST_KINDS} different distributions")
    _check_independence(records, likeness.share_roots, *examples)
    return tuple(RowDistribution.of(row, coding) for row in examples), kind_of_row


def _plain_cells(row: Row) -> Hashable:
    return tuple(value for value in row if not isinstance(value, RandomVariable))


def _check_independence(records: Records, share_roots: bool, *rows: Row) -> None:
    sized_by: list[Node] = [records.size.node] if isinstance(records.size, RandomVariable) else []
    behind_size = {id(node) for node in ancestors(sized_by) if node.is_random}
    behind_rows = {id(node) for row in rows for node in ancestors(nodes_of(row)) if node.is_random}
    if share_roots or not behind_size.isdisjoint(behind_rows):
        raise NoClosedForm("its rows depend on one another")


STEP = 0.06  # images of the trapezoidal rule are smaller by exp(-pi / STEP)
NODES = np.arange(500) * STEP
LINE = -0.5 + 1j * NODES
FEWEST_ROWS = 100  # with fewer, the transform falls off too slowly
MOST_AT_ONCE = 2_000
MOST_LISTED = 4_000_000
MOST_TERMS = 200_000_000


@dataclass(frozen=True, eq=False)
class ValueFactor:
    """Values of a block of columns: how likely the person has them, and the chance that a row of each kind does."""

    weights: Array
    chances: Array  # a line for each value, a column for each kind of rows

    def merged(self) -> "ValueFactor":
        """Return the factor with values of equal chances taken together, up to rounding."""
        if len(self.weights) == 1 or self.chances.shape[1] > 4:
            return self
        mantissa, exponent = np.frexp(self.chances)
        rounded = np.ldexp(np.round(mantissa * 2.0**40), exponent)
        if rounded.shape[1] == 1:
            rounded = rounded[:, 0]
        _, first, inverse = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
        return ValueFactor(np.bincount(inverse.reshape(-1), self.weights, len(first)), self.chances[first])

    @cached_property
    def moments(self) -> Array:
        """E[x^-s] along the line of integration, for one kind of rows."""
        x = self.chances[:, 0]
        held = x > 0
        logs = np.log(x[held])
        total = np.zeros(len(LINE), complex)
        for start in range(0, len(logs), 4096):
            part = slice(start, start + 4096)
            total += (self.weights[held][part] * np.exp(0.5 * logs[part])) @ np.exp(-1j * np.outer(logs[part], NODES))
        return total

    @cached_property
    def mean(self) -> Array:
        """The expected chance, for each kind of rows."""
        return np.asarray(self.weights @ self.chances)


def product(factors: Sequence[ValueFactor]) -> ValueFactor:
    """Return all combinations of the values of some factors."""
    kinds = factors[0].chances.shape[1]
    if math.prod(len(factor.weights) for factor in factors) * kinds > MOST_LISTED * 2:
        raise NoClosedForm("the columns have too many combinations of values to list")

    def both(left: ValueFactor, right: ValueFactor) -> ValueFactor:
        weights = np.multiply.outer(left.weights, right.weights).reshape(-1)
        chances = left.chances[:, None, :] * right.chances[None, :, :]
        return ValueFactor(weights, chances.reshape(len(weights), -1)).merged()

    return reduce(both, factors)


class Response(ABC):
    """A function of how many rows there are of each kind and of their chances to match; one where these are zero."""

    @abstractmethod
    def of_chances(self, counts: Array, chances: Array) -> Array:
        """Return its values for lines of chances, all kinds of rows together."""

    @abstractmethod
    def transform(self, rows: int) -> Array:
        """Return its Mellin transform, less one, along the line, for a number of rows of one kind."""

    def expected(self, factors: Sequence[ValueFactor], counts: Array, chances: Array) -> float:
        """Return its expected value over the person's values and the numbers of rows."""
        combinations = math.prod(len(factor.weights) for factor in factors)
        if combinations > MOST_AT_ONCE and counts.shape[1] == 1 and int(counts.min()) >= FEWEST_ROWS:
            return self._by_transform(factors, counts[:, 0], chances)
        if combinations * counts.size > MOST_TERMS:
            raise NoClosedForm("the columns have too many combinations of values to list")
        everything = product(factors)
        values = [
            chance * self.of_chances(line, everything.chances) for line, chance in zip(counts, chances, strict=True)
        ]
        return min(1.0, float(everything.weights @ np.sum(values, axis=0)))

    def _by_transform(self, factors: Sequence[ValueFactor], rows: Array, chances: Array) -> float:
        kernel = np.sum([chance * self.transform(int(n)) for n, chance in zip(rows, chances, strict=True)], axis=0)
        integrand = (kernel * np.prod([factor.moments for factor in factors], axis=0)).real
        total = float(np.prod([factor.weights.sum() for factor in factors]))
        return min(1.0, max(0.0, total + STEP / math.pi * float(integrand.sum() - integrand[0] / 2)))


class NoneMatches(Response):
    """The probability that none of the rows matches: the product of (1 - x)^n over the kinds."""

    def of_chances(self, counts: Array, chances: Array) -> Array:
        return np.asarray(np.exp(scipy.special.xlog1py(counts, -chances).sum(axis=1)))

    def transform(self, rows: int) -> Array:
        return _beta(0, rows + 1)


class OneOfMatching(Response):
    """The expected value of 1 / (1 + m) for m matching rows: (1 - (1 - x)^(n + 1)) / ((n + 1) x) for one kind."""

    def of_chances(self, counts: Array, chances: Array) -> Array:
        if counts.size > 1:
            return self._integrated(counts, chances)
        n, x = int(counts[0]), chances[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            values = -np.expm1(scipy.special.xlog1py(n + 1, -x)) / ((n + 1) * x)
        return np.where(x > 0, values, 1.0)

    @staticmethod
    def _integrated(counts: Array, chances: Array) -> Array:
        """Integrate the probability generating function of the number of matching rows from 0 to 1."""
        return np.asarray(sum(weight * _generating(z, counts, chances) for z, weight in _quadrature()))

    def transform(self, rows: int) -> Array:
        return -_beta(-1, rows + 2) / (rows + 1)


@lru_cache(maxsize=512)
def _beta(shift: int, n: int) -> Array:
    """Return the beta function B(s + shift, n) along the line, for n of 100 or more."""
    # The difference of two log gamma functions of large numbers would have few digits.
    s = LINE + shift
    drop = (n - 0.5) * scipy.special.log1p(s / n) + s * np.log(n + s) - s + _stirling(n + s) - _stirling(n)
    return np.asarray(np.exp(scipy.special.loggamma(s) - drop))


def _stirling(z: Array | int) -> Array:
    """Return what Stirling's formula leaves out of the log gamma function."""
    inverse = 1.0 / np.asarray(z)
    return inverse * (1 / 12 - inverse**2 * (1 / 360 - inverse**2 * (1 / 1260 - inverse**2 / 1680)))


def expected_share(counts: Array, matches: Array, shares: Array) -> Array:
    """Return the expected share of matching rows that have the person's secret, for lines of chances of each kind.

    The person's own row counts. With k of the others of one kind sharing the secret, E[k / (1 + m)] is the integral of
    z times the generating function of the rest.
    """
    total = np.zeros(len(matches))
    for z, weight in _quadrature():
        others = np.where(counts > 0, shares / (1 - matches * (1 - z)), 0.0) @ counts
        total += weight * _generating(z, counts, matches) * (1 + z * others)
    return np.minimum(total, 1.0)


def _generating(z: float, counts: Array, chances: Array) -> Array:
    """Return E[z^m] for m matching rows."""
    return np.asarray(np.exp(scipy.special.xlog1py(counts, -(1 - z) * chances).sum(axis=1)))


@lru_cache(maxsize=1)
def _quadrature() -> tuple[tuple[float, float], ...]:
    """Return nodes and weights from 0 to 1, in panels that halve towards 1, where a function of many rows is steep."""
    points, weights = np.polynomial.legendre.leggauss(24)
    edges = [0.0, *(1 - 0.5 ** np.arange(1, 36)), 1.0]
    return tuple(
        (float(low + (high - low) * (point + 1) / 2), float(weight * (high - low) / 2))
        for low, high in pairwise(edges)
        for point, weight in zip(points, weights, strict=True)
    )


MOST_CELLS = 100_000_000
TOGETHER = 64  # chances whose binomial numbers are computed at a time
TAIL = math.log(4e16)
MOST_CONVOLVED = 20_000


@dataclass(frozen=True, eq=False)
class Detail:
    """Values of some columns and the secret: their weights, and the chances that a row of each kind has them.

    `matches` is the chance to agree in the columns, `shares` to agree in the secret as well.
    """

    values: ColumnBlock
    matches: Array
    shares: Array

    def factor(self, what: str) -> ValueFactor:
        """Return one of the chances as a factor."""
        return ValueFactor(*_CHANCES[what](self))


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


class MatchCounts:
    """One scene, with the factors that were worked out of it."""

    def __init__(self, scene: Scene, coding: Coding) -> None:
        self.weight = scene.weight
        self._scene = scene
        self._coding = coding
        self._groups = _joined([scene.person, *scene.kinds])
        self._fresh = scene.person.fresh.union(*(kind.fresh for kind in scene.kinds))
        self._known: dict[tuple[Any, ...], ValueFactor] = {}

    def factors(self, columns: Sequence[str], secret: str | None = None, what: str = "matches") -> list[ValueFactor]:
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
    def _constant(alive: Sequence[bool]) -> ValueFactor:
        """Return a factor that is one or zero for each kind of rows, whatever the person's values."""
        return ValueFactor(np.ones(1), np.array([alive], float))

    def _alive(self, columns: Sequence[str], twice: bool) -> ValueFactor:
        """Return a factor that is zero for kinds of rows that cannot agree in a column with a density."""
        person = self._scene.person.fresh
        alive = [(person | kind.fresh).isdisjoint(columns) for kind in self._scene.kinds]
        return self._constant(alive * 2 if twice else alive)

    def _detail(self, own: tuple[str, ...], secret: str | None) -> Detail:
        told = own if secret is None or secret in own else (*own, secret)
        values = self._scene.person.joint(told, self._coding)
        return Detail(values, self._chances(values, own), self._chances(values, told))

    def _chances(self, values: ColumnBlock, columns: Sequence[str]) -> Array:
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

    def expected(self, response: Response, factors: Sequence[ValueFactor]) -> float:
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

    def distribution(self, factors: Sequence[ValueFactor]) -> Array:
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
        rows = binomial(others, self._scene.counts[:, :1], x[None]) if others >= 0 else np.zeros((1, 1))
        weights = both.weights * (self._scene.chances @ rows)
        odds = np.divide(same, x, out=np.zeros(len(x)), where=x > 0)
        numbers = np.arange(max(others, 0) + 1)
        return np.asarray(weights @ binomial(numbers, others, np.minimum(odds, 1.0)[:, None]))

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

    def _observed(self, weights: Array, logs: Array, matches: Array, rest: ValueFactor, others: int) -> float:
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


def _replaced(values: ColumnBlock, place: int, code: int) -> ColumnBlock:
    codes = values.codes.copy()
    codes[:, place] = code
    return ColumnBlock(values.columns, codes, values.probabilities)


def _joined(laws: Sequence[RowDistribution]) -> list[tuple[str, ...]]:
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


def _sums(counts: Array, chances: ValueFactor) -> Array:
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
        parts = [binomial(np.arange(n + 1), n, x) for n, x in drawn]
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
        probabilities = binomial(np.arange(low, high + 1), rows, x[part][:, None])
        total[low : high + 1] += weights[order][part] @ probabilities
    return total
