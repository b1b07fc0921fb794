"""A model of a row in which every column depends on one other: the tree of Chow and Liu."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privug.arguments import shown
from privug.errors import PriorError
from privug.model.node import Array
from privug.model.table import Row
from privug.prior.conditional import given
from privug.prior.frame import Column, Frame
from privug.prior.population import MOST_VALUES, Population, Urn, chosen, weights_of

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
