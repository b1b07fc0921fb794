"""Questions about a person in a table: how many rows look like theirs, and what these give away."""

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from privug.arguments import Count, Size, check_kind, kinds_checked, shown
from privug.attack import Attack, Result
from privug.digits import how_many
from privug.errors import ArgumentError, ImpossibleObservation
from privug.escaping import inert
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.mechanisms.plain_rows import cell, checked_columns, column, listed_names, names_of, rows_of
from privug.model.batch import Batch, ranked
from privug.model.node import Array
from privug.model.table import Row, row_maker
from privug.model.variable import RandomVariable
from privug.observation.observations import equals, such_that
from privug.prior.discrete import DiscreteUniform
from privug.prior.plating import nodes_of
from privug.prior.reading import read_columns
from privug.prior.table import Records
from privug.program.logic import count
from privug.reidentification.match_counts import MatchCounts, NoneMatches, OneOfMatching, Person, ValueFactor, scenes_of
from privug.reidentification.row_distributions import Coding, ColumnBlock, NoClosedForm, RowDistribution
from privug.report.text import as_frame

MOST_SHOWN = 10


def plain_table(records: Any, labels: Sequence[str] = ()) -> Any:
    """Return the rows of a CSV or Parquet file if its path is given; anything else as it is.

    The cells of the columns named as `labels` are not read as numbers.
    """
    if not isinstance(records, str | Path):
        return records
    columns = read_columns(records, labels=labels)
    listed = [cells if isinstance(cells, list) else cells.tolist() for cells in columns.values()]
    return list(map(row_maker(tuple(columns)), zip(*listed, strict=True)))


def rows_at_hand(records: Any, labels: Sequence[str] = ()) -> list[Any]:
    """Return the rows of a plain table, of a frame, or of the file that has a path."""
    return rows_of(plain_table(records, labels))


@dataclass(frozen=True)
class UniqueRow:
    """A row that no other row is like: its position in the table, from 0, and its values in the columns.

    >>> from privug import reidentification
    >>> found = reidentification.unique_rows([{"zip": 2300}, {"zip": 2300}, {"zip": 2400}], "zip")
    >>> found[0].position, found[0].values
    (2, {'zip': 2400})
    """

    position: int
    values: Mapping[str, Any]

    def __str__(self) -> str:
        return f"row {self.position}: " + ", ".join(f"{inert(name)} {shown(v)}" for name, v in self.values.items())


class UniqueRows(Sequence[UniqueRow]):
    """The rows of a table that some columns single out. All are in it; printed are the first ones.

    >>> from privug import reidentification
    >>> found = reidentification.unique_rows([{"zip": 2300}, {"zip": 2300}, {"zip": 2400}], "zip")
    >>> len(found)
    1
    """

    def __init__(self, columns: Sequence[str], rows: Sequence[UniqueRow], looked_at: int) -> None:
        self.columns, self.looked_at = tuple(columns), looked_at
        self._rows = list(rows)

    def __getitem__(self, position: Any) -> Any:
        return self._rows[position]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[UniqueRow]:
        return iter(self._rows)

    @property
    def positions(self) -> list[int]:
        """The positions of the rows in the table."""
        return [row.position for row in self._rows]

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the rows as plain values, a dict for each."""
        return [{"position": row.position, **row.values} for row in self._rows]

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        return as_frame(self.to_dict())

    def __str__(self) -> str:
        known = inert(" + ".join(self.columns))
        lines = [f"{len(self)} of {self.looked_at} rows are unique by {known}", *(f"  {r}" for r in self[:MOST_SHOWN])]
        return "\n".join([*lines, *([f"  ... and {len(self) - MOST_SHOWN} more"] if len(self) > MOST_SHOWN else [])])


class People(Protocol):
    """A person among the rows of a table. The person's own row counts as matching."""

    def matching(self, columns: Sequence[str]) -> Belief:
        """Return the number of rows that have the person's values in the columns."""

    def expected(self, columns: Sequence[str]) -> Estimate:
        """Return the expected number of matching rows."""

    def unique(self, columns: Sequence[str]) -> Estimate:
        """Return the probability that no other row matches."""

    def linked(self, columns: Sequence[str]) -> Estimate:
        """Return the probability that a matching row taken at random is the person's."""

    def disclosed(self, columns: Sequence[str], secret: str) -> Estimate:
        """Return the probability that all matching rows have the person's secret."""

    def guessed(self, columns: Sequence[str], secret: str) -> Estimate:
        """Return the probability that a matching row taken at random has the person's secret."""

    def sharing(self, columns: Sequence[str], secret: str, matching: int | None) -> Belief:
        """Return the number of matching rows with the person's secret, given the number of matching rows."""

    def posterior(self, columns: Sequence[str], secret: str, seen: Mapping[Any, int]) -> Belief:
        """Return the belief about the person's secret, given how many matching rows have each value."""


class ListedPeople(ABC):
    """A person who may be one of several, which are listed; the rows that match each of these are counted."""

    method = "exact"
    impossible = "matching: {} rows has probability zero"
    """What is said of a number of matching rows that nobody has."""

    @abstractmethod
    def listed(self, columns: Sequence[str], secret: str | None = None) -> tuple[Array, Array, Array | None]:
        """Return the numbers of rows that match each, and that share the secret as well, and how likely each is.

        The latter is None if all are equally likely.
        """

    def _mean(
        self,
        measure: Callable[[Array, Array], Array],
        columns: Sequence[str],
        secret: str | None = None,
        unit: str = "",
    ) -> Estimate:
        matching, sharing, weights = self.listed(columns, secret)
        numbers = measure(matching, sharing)
        return Estimate.exactly(float(numbers.mean() if weights is None else weights @ numbers), unit, self.method)

    def unique(self, columns: Sequence[str]) -> Estimate:
        """Return the probability that no other row matches."""
        return self._mean(lambda matching, _: matching == 1, columns)

    def expected(self, columns: Sequence[str]) -> Estimate:
        """Return the expected number of matching rows."""
        return self._mean(lambda matching, _: matching, columns, unit="rows")

    def linked(self, columns: Sequence[str]) -> Estimate:
        """Return the expected value of one over the number of matching rows."""
        return self._mean(lambda matching, _: 1 / matching, columns)

    def disclosed(self, columns: Sequence[str], secret: str) -> Estimate:
        """Return the probability that all matching rows have the person's secret."""
        return self._mean(lambda matching, sharing: matching == sharing, columns, secret)

    def guessed(self, columns: Sequence[str], secret: str) -> Estimate:
        """Return the expected share of matching rows that have the person's secret."""
        return self._mean(lambda matching, sharing: sharing / matching, columns, secret)

    def matching(self, columns: Sequence[str]) -> Belief:
        """Return the number of matching rows."""
        matching, _, weights = self.listed(columns)
        return belief_of(matching, weights)

    def sharing(self, columns: Sequence[str], secret: str, matching: int | None) -> Belief:
        """Return the number of matching rows with the person's secret."""
        numbers, sharing, weights = self.listed(columns, secret)
        agrees = np.ones(len(numbers), bool) if matching is None else numbers == matching
        if not (agrees if weights is None else weights[agrees]).any():
            raise ImpossibleObservation(self.impossible.format(matching))
        return belief_of(sharing[agrees], None if weights is None else weights[agrees])


def belief_of(values: Any, weights: Array | None = None) -> Belief:
    """Make the exact belief of values with weights; without, all are equally likely."""
    codes, distinct = Batch.of_values(values).factorized()
    total = np.bincount(codes, weights, len(distinct))
    there = np.flatnonzero(total > 0)
    batch = Batch.of_values([distinct[place] for place in there])
    return Belief.listed(batch, total[there] / total.sum())


class DrawnRows:
    """A person in any table, by an attack that counts the rows that match: exact where an engine is, else sampled."""

    def __init__(self, records: Records, person: Person, samples: int, seed: int) -> None:
        if isinstance(person, Mapping):
            raise ArgumentError(
                "person: this table has no closed form, so what is known of the person must be in the prior: "
                "put it into row 0 of pv.Records and write person=0"
            )
        if person == "anyone" and not records.is_fixed:
            raise ArgumentError("person='anyone' of a table without closed form needs a fixed number of rows")
        size = records.size if isinstance(records.size, int) else 0
        place = DiscreteUniform(0, size - 1) if person == "anyone" else person
        self._prior = {"records": records, "place": place}
        self._options: dict[str, Any] = {"samples": samples, "seed": seed}
        self._results: dict[Any, Result] = {}

    def _result(self, columns: Sequence[str], secret: str | None) -> Result:
        """Return the numbers of rows that match, and of those among them that have the person's secret."""
        key = (tuple(columns), secret)
        if key not in self._results:
            self._results[key] = self._attack(columns, secret).run(**self._options)
        return self._results[key]

    def _attack(self, columns: Sequence[str], secret: str | None) -> Attack:
        matched, shared = tuple(columns), (*columns, *([] if secret is None else [secret]))

        def numbers(records: Any, place: Any) -> Any:
            me = records[place]
            return count(records, lambda row: _agree(row, me, matched)), count(
                records, lambda row: _agree(row, me, shared)
            )

        return Attack(numbers, self._prior, lambda records, place: records[place][shared[-1]] if shared else 0)

    def unique(self, columns: Sequence[str]) -> Estimate:
        """Return the probability that no other row matches."""
        return self._result(columns, None).prediction.probability(lambda numbers: numbers[0] == 1)

    def disclosed(self, columns: Sequence[str], secret: str) -> Estimate:
        """Return the probability that all matching rows have the person's secret."""
        return self._result(columns, secret).prediction.probability(lambda numbers: numbers[0] == numbers[1])

    def expected(self, columns: Sequence[str]) -> Estimate:
        """Return the expected number of matching rows."""
        return self.matching(columns).mean()

    def linked(self, columns: Sequence[str]) -> Estimate:
        """Return the expected value of one over the number of matching rows."""
        return self._result(columns, None).belief(lambda output: 1 / output[0]).mean()

    def guessed(self, columns: Sequence[str], secret: str) -> Estimate:
        """Return the expected share of matching rows that have the person's secret."""
        return self._result(columns, secret).belief(lambda output: output[1] / output[0]).mean()

    def matching(self, columns: Sequence[str]) -> Belief:
        """Return the number of matching rows."""
        return self._result(columns, None).belief(lambda output: output[0])

    def sharing(self, columns: Sequence[str], secret: str, matching: int | None) -> Belief:
        """Return the number of matching rows with the person's secret."""
        observation = None if matching is None else such_that(lambda numbers: numbers[0] == matching)
        result = self._attack(columns, secret).run(observation, **self._options)
        return result.belief(lambda output: output[1])

    def posterior(self, columns: Sequence[str], secret: str, seen: Mapping[Any, int]) -> Belief:
        """Return the belief about the person's secret, given how many matching rows have each value."""
        matched, values = tuple(columns), tuple(seen)

        def numbers(records: Any, place: Any) -> Any:
            me = records[place]
            having = [count(records, partial(_has, me=me, columns=matched, secret=secret, value=v)) for v in values]
            return [count(records, lambda row: _agree(row, me, matched)), *having]

        attack = Attack(numbers, self._prior, lambda records, place: records[place][secret])
        return attack.run(equals([sum(seen.values()), *seen.values()]), **self._options).posterior


def _agree(row: Any, me: Any, columns: Sequence[str]) -> Any:
    return reduce(operator.and_, (row[name] == me[name] for name in columns), True)


def _has(row: Any, me: Any, columns: Sequence[str], secret: str, value: Any) -> Any:
    return _agree(row, me, columns) & (row[secret] == value)


METHOD = "exact"


class IndependentRows:
    """A person in a table whose rows are independent.

    Given the person's own values, every other row matches them independently of the rest, so that the number of
    matching rows is a sum of binomial numbers; this is averaged over what the person's values may be.
    """

    def __init__(self, records: Records, person: Person) -> None:
        self._coding = Coding()
        self._crowds = [MatchCounts(scene, self._coding) for scene in scenes_of(records, person, self._coding)]

    def unique(self, columns: Sequence[str]) -> Estimate:
        """Return the probability that no other row matches."""
        return self._average(lambda crowd: crowd.expected(NoneMatches(), crowd.factors(columns)))

    def disclosed(self, columns: Sequence[str], secret: str) -> Estimate:
        """Return the probability that no other row matches and has another secret."""
        return self._average(lambda crowd: crowd.expected(NoneMatches(), crowd.factors(columns, secret, "differs")))

    def linked(self, columns: Sequence[str]) -> Estimate:
        """Return the expected value of one over the number of matching rows."""
        return self._average(lambda crowd: crowd.expected(OneOfMatching(), crowd.factors(columns)))

    def guessed(self, columns: Sequence[str], secret: str) -> Estimate:
        """Return the expected share of matching rows that have the person's secret."""
        return self._average(lambda crowd: crowd.share(columns, secret))

    def expected(self, columns: Sequence[str]) -> Estimate:
        """Return the expected number of matching rows."""
        return self._average(lambda crowd: 1.0 + crowd.mean(columns), "rows")

    def _average(self, answer: Callable[[MatchCounts], float], unit: str = "") -> Estimate:
        value = float(sum(crowd.weight * answer(crowd) for crowd in self._crowds))
        return Estimate.exactly(value if unit else min(1.0, max(0.0, value)), unit, METHOD)

    def matching(self, columns: Sequence[str]) -> Belief:
        """Return the number of matching rows."""
        return self._counted(lambda crowd: crowd.factors(columns))

    def sharing(self, columns: Sequence[str], secret: str, matching: int | None) -> Belief:
        """Return the number of matching rows with the person's secret."""
        if matching is None:
            return self._counted(lambda crowd: crowd.factors(columns, secret, "shares"))
        parts = [crowd.weight * crowd.sharing(columns, secret, matching - 1) for crowd in self._crowds]
        return _belief(np.sum(parts, axis=0), f"{matching} matching rows")

    def _counted(self, factors: Callable[[MatchCounts], list[ValueFactor]]) -> Belief:
        parts = [crowd.weight * crowd.distribution(factors(crowd)) for crowd in self._crowds]
        total = np.zeros(max(map(len, parts)))
        for part in parts:
            total[: len(part)] += part
        return _belief(total, "that many rows")

    def posterior(self, columns: Sequence[str], secret: str, seen: Mapping[Any, int]) -> Belief:
        """Return the belief about the person's secret."""
        numbers = {self._coding.code(secret, value): count for value, count in seen.items()}
        parts = [crowd.weight * crowd.posterior(columns, secret, numbers) for crowd in self._crowds]
        weights = np.sum(parts, axis=0)
        if weights.sum() <= 0:
            raise ImpossibleObservation(f"seen: {shown(dict(seen))} has probability zero")
        there = np.flatnonzero(weights > 0)
        values = self._coding.values(secret)
        batch = Batch.of_values([values[place] for place in there])
        return Belief.listed(batch, weights[there] / weights.sum())


def _belief(probabilities: Array, what: str) -> Belief:
    """Make the belief about one plus a number from the probabilities of 0, 1, and so on."""
    total = float(probabilities.sum())
    if total <= 0:
        raise ImpossibleObservation(f"matching: {what} have probability zero")
    there = np.flatnonzero(probabilities > 0)
    return Belief.listed(Batch.of_values(there + 1), probabilities[there] / total)


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
        for value, rows in seen.items():
            held = np.array([other == value for other in secrets], bool)
            agrees &= np.bincount(classes[held], minlength=len(agrees)) == rows
        people = self._people[agrees[classes[self._people]]]
        if not len(people):
            raise ImpossibleObservation(f"seen: nobody has matching rows with {shown(dict(seen))}")
        return belief_of([secrets[position] for position in people])


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
        law = RowDistribution.of(rows[place], self._coding)
        self._law = law.knowing(person, self._coding) if isinstance(person, Mapping) else law

    def listed(self, columns: Sequence[str], secret: str | None = None) -> tuple[Array, Array, Array]:
        """Return the numbers of rows that match, and that share the secret as well, for whatever the person may be."""
        values, told = self._values(columns, secret)
        return self._numbers(values, columns), self._numbers(values, told), values.probabilities

    def _values(self, columns: Sequence[str], secret: str | None) -> tuple[ColumnBlock, tuple[str, ...]]:
        """Return what the person may be in the columns and the secret, and these."""
        told = tuple(dict.fromkeys([*columns, *([] if secret is None else [secret])]))
        return self._law.joint(told, self._coding), told

    def _numbers(self, values: ColumnBlock, columns: Sequence[str]) -> Array:
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
        for value, rows in seen.items():
            code = self._coding.code(secret, value)
            having = ColumnBlock(values.columns, values.codes.copy(), values.probabilities)
            having.codes[:, values.columns.index(secret)] = code
            agrees &= self._numbers(having, (*columns, secret)) - 1 + (own == code) == rows
        held = self._coding.values(secret)
        if not values.probabilities[agrees].any():
            raise ImpossibleObservation(f"seen: {shown(dict(seen))} has probability zero")
        return belief_of([held[code] for code in own[agrees]], values.probabilities[agrees])


Answer = TypeVar("Answer")


class Asked:
    """A table, a person in it, and the best way to answer questions about them."""

    def __init__(self, records: Any, person: Person, samples: Count = 10_000, seed: int = 0) -> None:
        records = self._records = plain_table(records)
        self._person = _checked_person(records, person)
        self._options = {"samples": samples, "seed": seed}
        self._names = _names(records)
        self._drawn: DrawnRows | None = None
        self._ways: list[Callable[[Any, Person], People]] = (
            [KnownRows, IndependentRows] if isinstance(records, Records) else [CountedRows]
        )
        self._people: dict[int, People] = {}

    def answer(self, question: Callable[[People], Answer]) -> Answer:
        """Ask in closed form; where there is none, ask an engine."""
        for way in range(len(self._ways)):
            try:
                if way not in self._people:
                    self._people[way] = self._ways[way](self._records, self._person)
                return question(self._people[way])
            except NoClosedForm:
                continue
        if self._drawn is None:
            self._drawn = DrawnRows(self._records, self._person, **self._options)
        return question(self._drawn)

    def singled_out(self, columns: Sequence[str]) -> UniqueRows | None:
        """Return the rows of a plain table that no other is like; a prior has none yet."""
        return (
            None
            if isinstance(self._records, Records)
            else CountedRows(self._records, self._person).singled_out(columns)
        )

    def columns(self, columns: Any, secret: str | None = None) -> tuple[str, ...]:
        """Check the names of some columns, by default all but the secret."""
        if columns is None:
            return tuple(name for name in self._names if name != secret)
        names = tuple(dict.fromkeys(listed_names(columns)))
        for name in names:
            if name not in self._names:
                raise ArgumentError(
                    f"columns: there is no column {shown(name)}; the table has {', '.join(map(str, self._names))}"
                )
        return names

    def secret(self, secret: str) -> str:
        """Check the name of the column that holds the secret."""
        if secret not in self._names:
            raise ArgumentError(
                f"secret: there is no column {secret!r}; the table has {', '.join(map(str, self._names))}"
            )
        return secret


def _names(records: Any) -> tuple[str, ...]:
    if not isinstance(records, Records):
        rows = rows_of(records)
        if not rows:
            raise ArgumentError("records must hold at least one row")
        return names_of(rows[0])
    return (records.template or records.table(1)[0]).keys()


def _checked_person(records: Any, person: Any) -> Person:
    if person is None:
        return 0 if isinstance(records, Records) else "anyone"
    if isinstance(person, int) and not isinstance(person, bool):
        if person < 0 and isinstance(records, Records):
            raise ArgumentError(f"person must be the position of a row, 0 or more, not {person}")
        return person
    if isinstance(person, str) and person == "anyone":
        return "anyone"
    if isinstance(person, Row):
        return person._asdict()
    if isinstance(person, Mapping):
        return dict(person)
    raise ArgumentError(
        f"person must be the position of a row, a dict of what is known of the person, or 'anyone', not {shown(person)}"
    )


@kinds_checked
def matching_rows(
    records: Any, columns: Any, *, person: Person = None, samples: Count = 10_000, seed: int = 0
) -> Belief:
    """Return the belief about how many rows have the person's values in the columns, the person's own row included.

    `records` is a `pv.Records` prior, a plain table (a frame or a list of rows) or the path of a CSV or Parquet file
    that holds one. `person` is the position of a row, a dict of what is known of
    the person, or "anyone"; by default the first row of a prior, and anyone in a plain table. The answer is exact where
    the rows are independent of one another or the table is plain: given the person's values, the number of other
    matching rows is binomial. `samples` and `seed` serve where it has to be sampled.

    >>> import privug as pv
    >>> table = pv.Records(3, pv.Row(sex=pv.Choice(["f", "m"])))
    >>> print(matching_rows(table, ["sex"]).distribution()[3])
    0.25 (exact)
    """
    asked = Asked(records, person, samples, seed)
    names = asked.columns(columns)
    return asked.answer(lambda people: people.matching(names)).named("number of matching rows")


@kinds_checked
def uniqueness(
    records: Any, columns: Any, *, person: Person = None, samples: Count = 10_000, seed: int = 0
) -> Estimate:
    """Return the probability that no other row has the person's values in the columns.

    It is E[(1 - x)^n] for n other rows, each of which matches the person's values with probability x; from 0
    to 1, where 1 means that the columns always single the person out. The arguments are those of `matching_rows`.

    >>> import privug as pv
    >>> table = pv.Records(3, pv.Row(sex=pv.Choice(["f", "m"])))
    >>> print(uniqueness(table, "sex"))
    0.25 (exact)
    """
    asked = Asked(records, person, samples, seed)
    names = asked.columns(columns)
    return asked.answer(lambda people: people.unique(names))


@kinds_checked
def unique_rows(records: Any, columns: Any, *, person: Person = None) -> UniqueRows:
    """List the rows of a table that no other row is like in the columns: who is it?

    `records` is a plain table or the path of a CSV or Parquet file. Each row has its position, from 0, and its values
    in the columns; when printed, there are the first ten.

    >>> print(unique_rows([{"zip": 2300, "sex": "f"}, {"zip": 2300, "sex": "f"}, {"zip": 2400, "sex": "m"}], "zip"))
    1 of 3 rows are unique by zip
      row 2: zip 2400
    """
    if isinstance(records, Records):
        raise ArgumentError("unique_rows: a prior has no rows yet; give a table, or ask for uniqueness(...)")
    asked = Asked(records, person)
    found = asked.singled_out(asked.columns(columns))
    assert found is not None
    return found


@kinds_checked
def positive_disclosure(
    records: Any, columns: Any, secret: str, *, person: Person = None, samples: Count = 10_000, seed: int = 0
) -> Estimate:
    """Return the probability that all rows with the person's values in the columns also have the person's secret.

    Whoever knows those values then knows the secret, without knowing which row is the person's (Machanavajjhala and
    others, 2007). From 0 to 1, and never below `uniqueness`.

    >>> import privug as pv
    >>> table = pv.Records(3, pv.Row(sex=pv.Choice(["f", "m"]), ill=pv.Bernoulli(0.5)))
    >>> print(positive_disclosure(table, "sex", "ill"))
    0.5625 (exact)
    """
    asked = Asked(records, person, samples, seed)
    names = asked.columns(columns)
    asked.secret(secret)
    return asked.answer(lambda people: people.disclosed(names, secret))


@kinds_checked
def sharing_rows(
    records: Any,
    columns: Any,
    secret: str,
    *,
    matching: Count | None = None,
    person: Person = None,
    samples: Count = 10_000,
    seed: int = 0,
) -> Belief:
    """Return the belief about how many of the matching rows have the person's secret, the person's own row included.

    With `matching`, so many rows are known to match: then k of them with the person's secret let an attacker
    who takes each for equally likely believe the truth with probability k / matching.

    >>> import privug as pv
    >>> table = pv.Records(100, pv.Row(zip=pv.Choice(range(20)), ill=pv.Bernoulli(0.5)))
    >>> print(sharing_rows(table, "zip", "ill", matching=3).distribution()[3])
    0.25 (exact)
    """
    asked = Asked(records, person, samples, seed)
    names = asked.columns(columns)
    asked.secret(secret)
    belief = asked.answer(lambda people: people.sharing(names, secret, matching))
    return belief.named(f"number of matching rows with the person's {secret}")


@kinds_checked
def secret_posterior(
    records: Any,
    columns: Any,
    secret: str,
    seen: Mapping[Any, int],
    *,
    person: Person = None,
    samples: Count = 10_000,
    seed: int = 0,
) -> Belief:
    """Return the belief about the person's secret after seeing how many matching rows have each value of it.

    `seen` maps values of the secret to numbers of rows, the person's own among them. For rows that are all alike
    the belief in a value is its share of the matching rows; what is known of the person beforehand changes that.

    >>> import privug as pv
    >>> table = pv.Records(100, pv.Row(zip=pv.Choice(range(20)), ill=pv.Choice(["yes", "no"], p=[0.2, 0.8])))
    >>> print(secret_posterior(table, "zip", "ill", {"yes": 3, "no": 1}).distribution()["yes"])
    0.75 (exact)
    """
    asked = Asked(records, person, samples, seed)
    names = asked.columns(columns)
    asked.secret(secret)
    if not isinstance(seen, Mapping) or not seen:
        raise ArgumentError(f"seen must map values of {secret!r} to numbers of rows, not {shown(seen)}")
    for value, rows in seen.items():
        check_kind("secret_posterior", f"seen[{shown(value)}]", rows, (Size,))
    return asked.answer(lambda people: people.posterior(names, secret, seen)).named(secret)
