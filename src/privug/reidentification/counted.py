"""A person in a plain table: everything is counted in it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privug.errors import ArgumentError, ImpossibleObservation
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.mechanisms.tables import checked_columns, column, rows_of
from privug.model.batch import Batch
from privug.model.distinct import ranked
from privug.model.node import Array, Kind
from privug.model.variable import RandomVariable
from privug.reidentification.laws import Coding
from privug.reidentification.scenes import Person


class CountedRows:
    """A person in a table of plain values: one row, or any of several rows with equal probability."""

    def __init__(self, records: Any, person: Person) -> None:
        self._rows = rows_of(records)
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
                raise ImpossibleObservation(f"person: no row has {dict(person)!r}")
            return np.flatnonzero(agrees)
        if not isinstance(person, int):
            return np.arange(len(self._rows))
        if not -len(self._rows) <= person < len(self._rows):
            raise ArgumentError(f"person must be the position of a row: the table has {len(self._rows)} rows")
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

    def _share(self, values: Array, unit: str = "") -> Estimate:
        return Estimate.exactly(float(values.mean()), unit, f"exact, counted in {len(self._rows)} rows")

    def unique(self, columns: Sequence[str]) -> Estimate:
        """Return the share of people whom no other row matches."""
        return self._share(self._numbers(columns) == 1)

    def expected(self, columns: Sequence[str]) -> Estimate:
        """Return the average number of matching rows."""
        return self._share(self._numbers(columns), "rows")

    def linked(self, columns: Sequence[str]) -> Estimate:
        """Return the average of one over the number of matching rows."""
        return self._share(1 / self._numbers(columns))

    def disclosed(self, columns: Sequence[str], secret: str) -> Estimate:
        """Return the share of people whose secret all matching rows have."""
        return self._share(self._numbers(columns) == self._numbers([*columns, secret]))

    def guessed(self, columns: Sequence[str], secret: str) -> Estimate:
        """Return the average share of matching rows that have the person's secret."""
        return self._share(self._numbers([*columns, secret]) / self._numbers(columns))

    def matching(self, columns: Sequence[str]) -> Belief:
        """Return the number of matching rows."""
        return belief_of(self._numbers(columns))

    def sharing(self, columns: Sequence[str], secret: str, matching: int | None) -> Belief:
        """Return the number of matching rows with the person's secret."""
        numbers, sharing = self._numbers(columns), self._numbers([*columns, secret])
        chosen = np.ones(len(numbers), bool) if matching is None else numbers == matching
        if not chosen.any():
            raise ImpossibleObservation(f"matching: nobody has {matching} matching rows")
        return belief_of(sharing[chosen])

    def posterior(self, columns: Sequence[str], secret: str, seen: Mapping[Any, int]) -> Belief:
        """Return the secrets of the people whose matching rows have the seen values."""
        classes, secrets = self._classes(columns), column(self._rows, secret)
        agrees = np.bincount(classes) == sum(seen.values())
        for value, count in seen.items():
            held = np.array([other == value for other in secrets], bool)
            agrees &= np.bincount(classes[held], minlength=len(agrees)) == count
        people = self._people[agrees[classes[self._people]]]
        if not len(people):
            raise ImpossibleObservation(f"seen: nobody has matching rows with {dict(seen)!r}")
        return belief_of([secrets[position] for position in people])


def belief_of(values: Any) -> Belief:
    """Make the exact belief of equally likely values."""
    codes, distinct = Batch.of_values(values).factorized()
    weights = np.bincount(codes, minlength=len(distinct)) / len(codes)
    return Belief(Batch.of_values(distinct), weights, True, spread=Kind.DISCRETE)
