"""A person among rows that the attacker knows: only the person's own row is in doubt."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privug.arguments import shown
from privug.errors import ArgumentError, ImpossibleObservation
from privug.inference.belief import Belief
from privug.model.node import Array
from privug.prior.plating import nodes_of
from privug.prior.table import Records
from privug.reidentification.laws import Block, Coding, NoClosedForm, RowLaw
from privug.reidentification.people import ListedPeople, belief_of
from privug.reidentification.scenes import Person


class KnownRows(ListedPeople):
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

    def listed(self, columns: Sequence[str], secret: str | None = None) -> tuple[Array, Array, Array]:
        """Return the numbers of rows that match, and that share the secret as well, for whatever the person may be."""
        values, told = self._values(columns, secret)
        return self._numbers(values, columns), self._numbers(values, told), values.probabilities

    def _values(self, columns: Sequence[str], secret: str | None) -> tuple[Block, tuple[str, ...]]:
        """Return what the person may be in the columns and the secret, and these."""
        told = tuple(dict.fromkeys([*columns, *([] if secret is None else [secret])]))
        return self._law.joint(told, self._coding), told

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

    def posterior(self, columns: Sequence[str], secret: str, seen: Mapping[Any, int]) -> Belief:
        """Return the belief about the person's secret, given how many matching rows have each value."""
        if secret in self._law.fresh:
            raise ArgumentError(f"seen: the values of {secret!r} have a density: none can be seen twice")
        values, _ = self._values(columns, secret)
        own = values.codes[:, values.columns.index(secret)]
        agrees = self._numbers(values, columns) == sum(seen.values())
        for value, count in seen.items():
            code = self._coding.code(secret, value)
            having = Block(values.columns, values.codes.copy(), values.probabilities)
            having.codes[:, values.columns.index(secret)] = code
            agrees &= self._numbers(having, (*columns, secret)) - 1 + (own == code) == count
        held = self._coding.values(secret)
        if not values.probabilities[agrees].any():
            raise ImpossibleObservation(f"seen: {shown(dict(seen))} has probability zero")
        return belief_of([held[code] for code in own[agrees]], values.probabilities[agrees])
