"""Models of one row, learned from a data set: independent columns, a tree of Chow and Liu, or a copula."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from privug.arguments import shown
from privug.errors import PriorError
from privug.model.batch import Column as BatchColumn
from privug.model.categories import Encoded, encode
from privug.model.node import Array, Node
from privug.model.operations import Elementwise, elementwise, lookup
from privug.model.table import Row
from privug.model.variable import RandomVariable
from privug.prior.choice import Choice, Constant
from privug.prior.conditional import given
from privug.prior.frame import Column, Frame
from privug.prior.mixture import MvNormal

MOST_VALUES = 200
"""How many different values a column of a conditional table may have."""


class Population(ABC):
    """How a row of the population is drawn."""

    @abstractmethod
    def row(self, known: Mapping[str, Any] | None = None) -> Row:
        """Draw a new row; `known` columns have these plain values, and the others are drawn given them."""

    @abstractmethod
    def allows(self, row: Row, drawn: Sequence[str]) -> bool:
        """Say whether plain values are possible for the columns that are drawn, given the others."""

    @property
    def template(self) -> Row | None:
        """A row of which all others are copies, if there is such a one."""
        return None


def weights_of(column: Column, smoothing: float) -> Array:
    """Return the share of each value of a column, with so many observations added to each."""
    weights = column.counts + smoothing
    shares: Array = weights / weights.sum()
    return shares


def chosen(column: Column, weights: Array) -> RandomVariable:
    """Return a value of the column, drawn with the given weights; values of no weight are left out."""
    kept = np.flatnonzero(weights > 0)
    values = [column.values[place] for place in kept]
    if len(values) == 1:
        fixed: RandomVariable = Constant(values[0])
        return fixed
    return Choice(values, weights[kept] / weights[kept].sum())


@dataclass(frozen=True, eq=False)
class IndependentColumns(Population):
    """Every column is drawn by itself."""

    frame: Frame
    distributions: Mapping[str, RandomVariable]
    smoothing: float

    @property
    def template(self) -> Row | None:
        return Row(**self.distributions)

    def row(self, known: Mapping[str, Any] | None = None) -> Row:
        fixed = known or {}
        return Row(**{n: fixed[n] if n in fixed else _again(d) for n, d in self.distributions.items()})

    def allows(self, row: Row, drawn: Sequence[str]) -> bool:
        listed = [self.frame[name] for name in drawn if _is_listed(self.distributions[name])]
        return all(_weight(column, row[column.name], self.smoothing) > 0 for column in listed)


def _weight(column: Column, value: Any, smoothing: float) -> float:
    code = column.code_of(value)
    return 0.0 if code is None else float(weights_of(column, smoothing)[code])


def _is_listed(distribution: RandomVariable) -> bool:
    """Say whether a distribution is over the values of the data, and not one fitted to them."""
    return getattr(getattr(distribution.node.operation, "family", None), "name", "Choice") == "Choice"


def _again(distribution: RandomVariable) -> RandomVariable:
    """Return a new quantity of the same distribution; the operation is shared, by which tables see rows alike."""
    node = distribution.node
    if not node.is_random:
        return distribution
    another = Node(node.operation, node.parents, node.shape, node.dtype, node.levels, node.kind)
    another.bound = node.bound
    return RandomVariable(another)


def independent(frame: Frame, smoothing: float, fitted: Mapping[str, RandomVariable]) -> IndependentColumns:
    """Learn a model in which columns do not depend on each other; some are `fitted` families."""
    listed = {c.name: chosen(c, weights_of(c, smoothing)) for c in frame.columns if c.name not in fitted}
    return IndependentColumns(frame, {name: {**listed, **fitted}[name] for name in frame.names}, smoothing)


@dataclass(frozen=True, eq=False)
class ObservedRows(Population):
    """Every row is one of the observed ones, all equally likely: the bootstrap."""

    frame: Frame
    distinct: Array
    """The different rows, as positions of values."""
    counts: Array

    def row(self, known: Mapping[str, Any] | None = None) -> Row:
        return self._everyone.drawn() if not known else self._agreeing(known).drawn(known)

    @cached_property
    def _everyone(self) -> "Urn":
        return self._agreeing({})

    def _agreeing(self, known: Mapping[str, Any]) -> "Urn":
        fits = self._fitting(known)
        if not fits.any():
            raise PriorError(f"target: no row of the data has {_told(known)}; leave out what is unusual")
        return Urn.of(self.frame.columns, self.distinct[fits], self.counts[fits])

    def _fitting(self, known: Mapping[str, Any]) -> Array:
        fits = np.ones(len(self.distinct), bool)
        for place, column in enumerate(self.frame.columns):
            if column.name in known:
                fits &= self.distinct[:, place] == column.code_of(known[column.name])
        return fits

    def allows(self, row: Row, drawn: Sequence[str]) -> bool:
        return bool(self._fitting(row._asdict()).any())


@dataclass(frozen=True, eq=False)
class Urn:
    """Rows to draw one of: which one, and the values of each column."""

    position: RandomVariable | None
    tables: Mapping[str, Encoded]

    @classmethod
    def of(cls, columns: Sequence[Column], codes: Array, weights: Array) -> "Urn":
        """Make an urn of rows, given as positions of the columns' values, and how likely each is."""
        tables = {}
        for column, places in zip(columns, codes.T, strict=True):
            encoded = encode(column.values, keep_types=True)
            tables[column.name] = encoded._replace(array=encoded.array[places])
        several = len(weights) > 1
        return cls(Choice(range(len(weights)), weights / weights.sum()) if several else None, tables)

    def drawn(self, known: Mapping[str, Any] | None = None) -> Row:
        """Return one of the rows, drawn anew."""
        fixed = known or {}
        if self.position is None:
            only = {name: BatchColumn(*table).decoded()[0] for name, table in self.tables.items()}
            return Row(**{**only, **fixed})
        place = _again(self.position).node
        cells = {
            name: RandomVariable(lookup(place, table.array, table.levels, whole=table.whole))
            for name, table in self.tables.items()
        }
        return Row(**{**cells, **fixed})


def _told(known: Mapping[str, Any]) -> str:
    return " and ".join(f"{name}={shown(value)}" for name, value in known.items())


def observed_rows(frame: Frame) -> ObservedRows:
    """Learn the model that repeats the rows of the data."""
    codes = np.column_stack([column.codes for column in frame.columns])
    distinct, counts = np.unique(codes, axis=0, return_counts=True)
    return ObservedRows(frame, distinct, counts.astype(float))


MOST_ROWS = 20_000
"""Up to how many possible rows are listed, which exact inference takes best, instead of drawn column by column."""


@dataclass(frozen=True, eq=False)
class Branch:
    """A column, the column that it depends on, if any, and its probabilities: a row for each value of that."""

    column: Column
    parent: int | None
    table: Array


@dataclass(frozen=True, eq=False)
class TreeOfColumns(Population):
    """Conditional tables along a tree; branches stand after the ones they depend on."""

    names: tuple[str, ...]
    branches: tuple[Branch, ...]

    @property
    def template(self) -> Row | None:
        return self._conditional_tables(self.branches) if self._everyone is None else None

    def row(self, known: Mapping[str, Any] | None = None) -> Row:
        if not known:
            return self._conditional_tables(self.branches) if self._everyone is None else self._everyone.drawn()
        branches = self._conditioned(known)
        urn = self._urn(branches)
        row = self._conditional_tables(branches) if urn is None else urn.drawn()
        return Row(**{**row._asdict(), **known})

    @cached_property
    def _everyone(self) -> Urn | None:
        return self._urn(self.branches)

    def _urn(self, branches: Sequence[Branch]) -> Urn | None:
        """Return all rows that are possible with their probabilities, if they are not too many to list."""
        codes, weights = np.zeros((1, 0), np.int64), np.ones(1)
        for branch in branches:
            above = 0 if branch.parent is None else codes[:, branch.parent]
            spread = weights[:, np.newaxis] * np.broadcast_to(branch.table[above], (len(codes), branch.table.shape[1]))
            rows, values = np.nonzero(spread)
            if len(rows) > MOST_ROWS:
                return None
            codes, weights = np.column_stack([codes[rows], values]), spread[rows, values]
        columns = [branch.column for branch in branches]
        order = [[column.name for column in columns].index(name) for name in self.names]
        return Urn.of([columns[place] for place in order], codes[:, order], weights)

    def _conditional_tables(self, branches: Sequence[Branch]) -> Row:
        """Return a row in which every column is drawn given the one that it depends on."""
        cells: list[Any] = []
        reached: list[Array] = []
        for branch in branches:
            above = np.array([0]) if branch.parent is None else reached[branch.parent]
            reached.append(np.flatnonzero((branch.table[above] > 0).any(axis=0)))
            cells.append(_drawn(branch, above, branches, cells))
        drawn = {branch.column.name: cell for branch, cell in zip(branches, cells, strict=True)}
        return Row(**{name: drawn[name] for name in self.names})

    def _conditioned(self, known: Mapping[str, Any]) -> Sequence[Branch]:
        """Return the tree given known values: messages from the leaves reweigh the tables on the way to the root."""
        evidence = [np.ones(len(branch.column.values)) for branch in self.branches]
        conditioned: list[Branch] = []
        for place in reversed(range(len(self.branches))):
            branch = self.branches[place]
            weighed = branch.table * evidence[place] * _agreeing(branch.column, known)
            message = weighed.sum(axis=1)
            if branch.parent is not None:
                evidence[branch.parent] = evidence[branch.parent] * message
            elif not message[0] > 0:
                told = " and ".join(f"{name}={shown(value)}" for name, value in known.items())
                raise PriorError(
                    f"target: the data does not allow {told}; write smoothing=1, with values= for values "
                    "that no row has, or leave out what is unusual"
                )
            with np.errstate(invalid="ignore"):
                table = np.where(message[:, np.newaxis] > 0, weighed / message[:, np.newaxis], 0.0)
            conditioned.append(Branch(branch.column, branch.parent, table))
        return conditioned[::-1]

    def allows(self, row: Row, drawn: Sequence[str]) -> bool:
        codes = [branch.column.code_of(row[branch.column.name]) for branch in self.branches]
        for branch, code in zip(self.branches, codes, strict=True):
            above = 0 if branch.parent is None else codes[branch.parent]
            if code is None or above is None or not branch.table[above, code] > 0:
                return False
        return True


def _agreeing(column: Column, known: Mapping[str, Any]) -> Array:
    agrees = np.ones(len(column.values))
    if column.name in known:
        code = column.code_of(known[column.name])
        agrees[:] = 0.0
        if code is not None:
            agrees[code] = 1.0
    return agrees


def _drawn(branch: Branch, above: Array, branches: Sequence[Branch], cells: Sequence[Any]) -> Any:
    """Return the quantity of a branch, given the values that the column it depends on may have."""
    if branch.parent is None or len(above) == 1:
        return chosen(branch.column, branch.table[above[0]])
    values = branches[branch.parent].column.values
    entries = {values[code]: chosen(branch.column, branch.table[code]) for code in above}
    return given(cells[branch.parent], entries)


def tree_of_columns(frame: Frame, smoothing: float) -> TreeOfColumns:
    """Learn the tree whose pairs of columns tell most about each other (Chow and Liu, 1968)."""
    for column in frame.columns:
        if len(column.values) > MOST_VALUES:
            raise PriorError(
                f"from_frame: column {column.name!r} has {len(column.values)} different values, too many for a "
                "conditional table; round it, leave it out by columns=, or write model='copula'"
            )
    order = _spanning_tree([[_information(a, b) for b in frame.columns] for a in frame.columns])
    places = {child: place for place, (child, _) in enumerate(order)}
    branches = []
    for child, parent in order:
        own = frame.columns[child]
        above = None if parent is None else frame.columns[parent]
        branches.append(Branch(own, None if parent is None else places[parent], _table(own, above, smoothing)))
    return TreeOfColumns(frame.names, tuple(branches))


def _information(one: Column, other: Column) -> float:
    """Return the mutual information of two columns in the data, in nats."""
    if one is other:
        return -1.0
    joint = _counted(one, other) / len(one.codes)
    independent = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    seen = joint > 0
    return float((joint[seen] * np.log(joint[seen] / independent[seen])).sum())


def _counted(one: Column, other: Column) -> Array:
    pairs = np.bincount(one.codes * len(other.values) + other.codes, minlength=len(one.values) * len(other.values))
    return pairs.reshape(len(one.values), len(other.values)).astype(float)


def _spanning_tree(weights: Sequence[Sequence[float]]) -> list[tuple[int, int | None]]:
    """Return the heaviest spanning tree from the first place on: every place with the one that it hangs on."""
    order: list[tuple[int, int | None]] = [(0, None)]
    while len(order) < len(weights):
        inside = [place for place, _ in order]
        outside = [place for place in range(len(weights)) if place not in inside]
        new, old = max(((n, o) for n in outside for o in inside), key=lambda pair: weights[pair[0]][pair[1]])
        order.append((new, old))
    return order


def _table(column: Column, above: Column | None, smoothing: float) -> Array:
    """Return the probabilities of a column's values for each value of the column that it depends on.

    Smoothing adds as many observations as to the column by itself, spread as that is: where little is known about a
    value of the other column, the column is as it is everywhere.
    """
    overall = weights_of(column, smoothing)
    if above is None:
        return overall[np.newaxis, :]
    weights = _counted(above, column) + smoothing * len(column.values) * overall
    totals = weights.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        shares: Array = np.where(totals > 0, weights / totals, 0.0)
    return shares


MOST_TIED = 0.5
"""Up to what share of repeated values a column is taken for one of measurements, between which others are possible."""


@dataclass(frozen=True, eq=False)
class Margin:
    """One column: its sorted numbers and the normal scores they stand at."""

    name: str
    scores: Array
    values: Array
    whole: bool
    """Whether only the values of the data are possible."""

    @cached_property
    def operation(self) -> Elementwise:
        """What takes normal scores to values, or to positions of values if only those of the data are possible."""
        return Elementwise(f"quantile of {self.name}", self._positions if self.whole else self._values)

    def _positions(self, scores: Array) -> Array:
        return np.searchsorted(self.scores, scores)

    def _values(self, scores: Array) -> Array:
        return np.interp(scores, self.scores, self.values)

    def score(self, value: float) -> float:
        """Return the normal score of a value; of a repeated one, the middle of its range."""
        if not self.whole:
            return float(np.interp(value, self.values, self.scores))
        place = int(np.searchsorted(self.values, value))
        edges = np.concatenate([[-np.inf], self.scores, [np.inf]])
        shares = scipy.special.ndtr(edges[place : place + 2])
        return float(scipy.special.ndtri(shares.mean()))

    def holds(self, value: Any) -> bool:
        """Say whether a value is possible."""
        if self.whole:
            return bool(np.any(self.values == value))
        return bool(self.values[0] <= value <= self.values[-1])


@dataclass(frozen=True, eq=False)
class GaussianCopula(Population):
    """Jointly normal scores, turned into the columns by their quantile functions."""

    margins: tuple[Margin, ...]
    correlation: Array

    def row(self, known: Mapping[str, Any] | None = None) -> Row:
        fixed = dict(known or {})
        mean, covariance = self._given(fixed)
        free = [margin for margin in self.margins if margin.name not in fixed]
        if not free:
            return Row(**fixed)
        scores = MvNormal(mean.tolist(), covariance)
        cells = {margin.name: _at(margin, scores[place]) for place, margin in enumerate(free)}
        return Row(**{margin.name: fixed.get(margin.name, cells.get(margin.name)) for margin in self.margins})

    def _given(self, known: Mapping[str, Any]) -> tuple[Array, Array]:
        """Return mean and covariance of the scores of the other columns: the Schur complement."""
        inside = [place for place, margin in enumerate(self.margins) if margin.name in known]
        outside = [place for place, margin in enumerate(self.margins) if margin.name not in known]
        for place in inside:
            margin = self.margins[place]
            if isinstance(known[margin.name], str) or not margin.holds(known[margin.name]):
                low, high = margin.values[[0, -1]]
                raise PriorError(
                    f"target: {margin.name}={shown(known[margin.name])} is outside the data, from {low:g} to {high:g}"
                )
        scores = np.array([self.margins[place].score(float(known[self.margins[place].name])) for place in inside])
        across = self.correlation[np.ix_(outside, inside)]
        weights = across @ np.linalg.pinv(self.correlation[np.ix_(inside, inside)])
        covariance = self.correlation[np.ix_(outside, outside)] - weights @ across.T
        return weights @ scores, (covariance + covariance.T) / 2

    def allows(self, row: Row, drawn: Any) -> bool:
        return all(margin.holds(row[margin.name]) for margin in self.margins if margin.name in drawn)


def _at(margin: Margin, score: RandomVariable) -> RandomVariable:
    found = elementwise(margin.operation, [score.node])
    return RandomVariable(lookup(found, margin.values) if margin.whole else found)


def gaussian_copula(frame: Frame) -> GaussianCopula:
    """Learn a Gaussian copula: the columns' own distributions, and the correlation of their normal scores.

    Columns most of whose values repeat have only the values of the data; others anything between. Between columns with
    many ties the copula is a little less correlated than the data, so that it never claims more than the data shows.
    """
    for column in frame.columns:
        if not column.is_number:
            raise PriorError(
                f"from_frame: model='copula' needs numbers, but column {column.name!r} holds "
                f"{shown(column.values[0])}; leave it out by columns=, or write model='tree'"
            )
        if len(column.values) < 2:
            raise PriorError(f"from_frame: model='copula': column {column.name!r} has one value only; leave it out")
    scores = np.column_stack([_normal_scores(column) for column in frame.columns])
    return GaussianCopula(tuple(map(_margin, frame.columns)), np.atleast_2d(np.corrcoef(scores, rowvar=False)))


def _normal_scores(column: Column) -> Array:
    before = np.concatenate([[0.0], np.cumsum(column.counts)])
    middles = (before[:-1] + before[1:]) / 2 / len(column.codes)
    scores: Array = scipy.special.ndtri(middles)[column.codes]
    return scores


def _margin(column: Column) -> Margin:
    values = np.array(column.values)
    shares = np.cumsum(column.counts) / len(column.codes)
    whole = len(values) < (1 - MOST_TIED) * len(column.codes)
    if whole:
        return Margin(column.name, scipy.special.ndtri(shares[:-1]), values, True)
    middles = shares - column.counts / len(column.codes) / 2
    return Margin(column.name, scipy.special.ndtri(middles), values.astype(float), False)
