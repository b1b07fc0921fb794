"""A person among rows that the attacker knows: only the person's own row is in doubt."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privug.errors import ArgumentError, ImpossibleObservation
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.model.batch import Batch
from privug.model.node import Array, Kind
from privug.prior.plating import nodes_of
from privug.prior.table import Records
from privug.reidentification.laws import Block, Coding, NoClosedForm, RowLaw
from privug.reidentification.scenes import Person


class KnownRows:
    """A person in a table all other rows of which are known: what the person may be is listed, and the rest counted."""

    def __init__(self, records: Records, person: Person) -> None:
        place = person if isinstance(person, int) else 0
        if records.template is not None or not records.is_fixed or person == "anyone" or place >= len(records):
            raise NoClosedForm("its rows are not known")
        rows = list(records.table())
        others = rows[:place] + rows[place + 1 :]
        if any(nodes_of(row) for row in others):
            raise NoClosedForm("its rows are not known")
        self._coding = Coding()
        names = rows[place].keys()
        self._codes = {name: self._coding.codes(name, [row[name] for row in others]) for name in names}
        law = RowLaw.of(rows[place], self._coding)
        self._law = law.knowing(person, self._coding) if isinstance(person, Mapping) else law

    def _listed(self, columns: Sequence[str], secret: str | None = None) -> tuple[Block, Array, Array]:
        """Return what the person may be, with the numbers of rows that match, and that share the secret as well."""
        told = tuple(dict.fromkeys([*columns, *([] if secret is None else [secret])]))
        values = self._law.joint(told, self._coding)
        return values, self._numbers(values, columns), self._numbers(values, told)

    def _numbers(self, values: Block, columns: Sequence[str]) -> Array:
        if not self._law.fresh.isdisjoint(columns):
            return np.ones(len(values.codes), np.int64)
        names = [name for name in values.columns if name in columns]
        known = np.stack([self._codes[name] for name in names], axis=1) if names else self._everyone()
        asked = values.codes[:, [values.columns.index(name) for name in names]]
        own, wanted = self._coding.keys(names, known, asked)
        distinct, counts = np.unique(own, return_counts=True)
        if not len(distinct):
            return np.ones(len(wanted), np.int64)
        found = np.minimum(np.searchsorted(distinct, wanted), len(distinct) - 1)
        return 1 + np.where(distinct[found] == wanted, counts[found], 0)

    def _everyone(self) -> Array:
        return np.zeros((len(next(iter(self._codes.values()))), 0), np.int64)

    @staticmethod
    def _mean(values: Block, numbers: Array, unit: str = "") -> Estimate:
        return Estimate.exactly(float(values.probabilities @ numbers), unit, "exact")

    def unique(self, columns: Sequence[str]) -> Estimate:
        """Return the probability that no other row matches."""
        values, matching, _ = self._listed(columns)
        return self._mean(values, matching == 1)

    def expected(self, columns: Sequence[str]) -> Estimate:
        """Return the expected number of matching rows."""
        values, matching, _ = self._listed(columns)
        return self._mean(values, matching, "rows")

    def linked(self, columns: Sequence[str]) -> Estimate:
        """Return the expected value of one over the number of matching rows."""
        values, matching, _ = self._listed(columns)
        return self._mean(values, 1 / matching)

    def disclosed(self, columns: Sequence[str], secret: str) -> Estimate:
        """Return the probability that all matching rows have the person's secret."""
        values, matching, sharing = self._listed(columns, secret)
        return self._mean(values, matching == sharing)

    def guessed(self, columns: Sequence[str], secret: str) -> Estimate:
        """Return the expected share of matching rows that have the person's secret."""
        values, matching, sharing = self._listed(columns, secret)
        return self._mean(values, sharing / matching)

    def matching(self, columns: Sequence[str]) -> Belief:
        """Return the number of matching rows."""
        values, matching, _ = self._listed(columns)
        return _belief(matching, values.probabilities, "")

    def sharing(self, columns: Sequence[str], secret: str, matching: int | None) -> Belief:
        """Return the number of matching rows with the person's secret."""
        values, numbers, sharing = self._listed(columns, secret)
        agrees = np.ones(len(numbers), bool) if matching is None else numbers == matching
        return _belief(sharing[agrees], values.probabilities[agrees], f"matching: {matching} rows")

    def posterior(self, columns: Sequence[str], secret: str, seen: Mapping[Any, int]) -> Belief:
        """Return the belief about the person's secret, given how many matching rows have each value."""
        if secret in self._law.fresh:
            raise ArgumentError(f"seen: the values of {secret!r} have a density: none can be seen twice")
        values, matching, _ = self._listed(columns, secret)
        own = values.codes[:, values.columns.index(secret)]
        agrees = matching == sum(seen.values())
        for value, count in seen.items():
            code = self._coding.code(secret, value)
            having = Block(values.columns, values.codes.copy(), values.probabilities)
            having.codes[:, values.columns.index(secret)] = code
            agrees &= self._numbers(having, (*columns, secret)) - 1 + (own == code) == count
        held = self._coding.values(secret)
        return _belief([held[code] for code in own[agrees]], values.probabilities[agrees], f"seen: {dict(seen)!r}")


def _belief(values: Any, weights: Array, what: str) -> Belief:
    if not len(weights) or weights.sum() <= 0:
        raise ImpossibleObservation(f"{what} has probability zero")
    codes, distinct = Batch.of_values(values).factorized()
    total = np.bincount(codes, weights, len(distinct))
    there = np.flatnonzero(total > 0)
    batch = Batch.of_values([distinct[place] for place in there])
    return Belief(batch, total[there] / total.sum(), True, spread=Kind.DISCRETE)
