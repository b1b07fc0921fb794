"""Models of one row, learned from a data set: what the attacker expects of a person of that population."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privug.arguments import shown
from privug.errors import PriorError
from privug.model.batch import Column as BatchColumn
from privug.model.categories import Encoded, encode
from privug.model.node import Array, Node
from privug.model.operations import lookup
from privug.model.table import Row
from privug.model.variable import RandomVariable
from privug.prior.choice import Choice, Constant
from privug.prior.frame import Column, Frame

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
