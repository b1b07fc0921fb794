"""A person in a plain table: everything is counted in it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privug.arguments import shown
from privug.digits import how_many
from privug.errors import ArgumentError, ImpossibleObservation
from privug.inference.belief import Belief
from privug.mechanisms.tables import cell, checked_columns, column, rows_of
from privug.model.distinct import ranked
from privug.model.node import Array
from privug.model.variable import RandomVariable
from privug.reidentification.laws import Coding
from privug.reidentification.people import ListedPeople, belief_of
from privug.reidentification.scenes import Person
from privug.reidentification.singled_out import UniqueRow, UniqueRows


class CountedRows(ListedPeople):
    """A person in a table of plain values: one row, or any of several rows with equal probability."""

    impossible = "matching: nobody has {} matching rows"

    def __init__(self, records: Any, person: Person) -> None:
        self._rows = rows_of(records)
        self.method = f"exact, counted in {how_many(len(self._rows), 'row')}"
        if not self._rows:
            raise ArgumentError("records must hold at least one row")
        self._coding = Coding()
        self._codes: dict[tuple[str, ...], Array] = {(): np.zeros(len(self._rows), np.int64)}
        self._people = self._chosen(person)

    def _chosen(self, person: Person) -> Array:
        if isinstance(person, Mapping):
            checked_columns(self._rows, tuple(person), "person")
            agrees = np.ones(len(self._rows), bool)
            for name, value in person.items():
                if isinstance(value, RandomVariable):
                    raise ArgumentError(f"person: in a table of plain values {name!r} must be known, not random")
                agrees &= np.array([other == value for other in column(self._rows, name)], bool)
            if not agrees.any():
                raise ImpossibleObservation(f"person: no row has {shown(dict(person))}")
            return np.flatnonzero(agrees)
        if not isinstance(person, int):
            return np.arange(len(self._rows))
        if not -len(self._rows) <= person < len(self._rows):
            raise ArgumentError(
                f"person must be the position of a row: the table has {how_many(len(self._rows), 'row')}"
            )
        return np.array([person % len(self._rows)])

    def _classes(self, columns: Sequence[str]) -> Array:
        """Return a number for each row that is the same for rows that agree in the columns."""
        key = tuple(sorted(columns))
        if key not in self._codes:
            if len(key) == 1:
                self._codes[key] = self._coding.codes(key[0], column(self._rows, key[0]))
            else:
                last = self._classes(key[-1:])
                self._codes[key] = ranked(self._classes(key[:-1]) * (int(last.max()) + 1) + last)[0]
        return self._codes[key]

    def _numbers(self, columns: Sequence[str]) -> Array:
        """Return how many rows agree with each of the people in the columns."""
        classes = self._classes(columns)
        return np.asarray(np.bincount(classes)[classes[self._people]])

    def singled_out(self, columns: Sequence[str]) -> UniqueRows:
        """Return the people whom no other row is like in the columns."""
        found = self._people[self._numbers(columns) == 1].tolist()
        rows = [UniqueRow(place, {name: cell(self._rows[place], name) for name in columns}) for place in found]
        return UniqueRows(columns, rows, len(self._people))

    def listed(self, columns: Sequence[str], secret: str | None = None) -> tuple[Array, Array, None]:
        """Return the numbers of rows that match each of the people, and that share the secret as well."""
        return self._numbers(columns), self._numbers(columns if secret is None else [*columns, secret]), None

    def posterior(self, columns: Sequence[str], secret: str, seen: Mapping[Any, int]) -> Belief:
        """Return the secrets of the people whose matching rows have the seen values."""
        classes, secrets = self._classes(columns), column(self._rows, secret)
        agrees = np.bincount(classes) == sum(seen.values())
        for value, count in seen.items():
            held = np.array([other == value for other in secrets], bool)
            agrees &= np.bincount(classes[held], minlength=len(agrees)) == count
        people = self._people[agrees[classes[self._people]]]
        if not len(people):
            raise ImpossibleObservation(f"seen: nobody has matching rows with {shown(dict(seen))}")
        return belief_of([secrets[position] for position in people])
