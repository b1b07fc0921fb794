"""Questions about a person in a table: how many rows look like theirs, and what these give away."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from privug.arguments import kinds_checked, shown
from privug.errors import ArgumentError
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.mechanisms.tables import checked_size, listed_names, names_of, rows_of
from privug.model.table import Row
from privug.prior.table import Records
from privug.reidentification.counted import CountedRows
from privug.reidentification.drawn import DrawnRows
from privug.reidentification.independent import IndependentRows
from privug.reidentification.known import KnownRows
from privug.reidentification.laws import NoClosedForm
from privug.reidentification.people import People
from privug.reidentification.scenes import Person
from privug.reidentification.singled_out import UniqueRows, plain_table

Answer = TypeVar("Answer")


class Asked:
    """A table, a person in it, and the best way to answer questions about them."""

    def __init__(self, records: Any, person: Person, samples: int = 10_000, seed: int = 0) -> None:
        records = self._records = plain_table(records)
        self._person = _checked_person(records, person)
        self._options = {"samples": checked_size(samples, "samples"), "seed": checked_size(seed, "seed", 0)}
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
def matching_rows(records: Any, columns: Any, *, person: Person = None, samples: int = 10_000, seed: int = 0) -> Belief:
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
def uniqueness(records: Any, columns: Any, *, person: Person = None, samples: int = 10_000, seed: int = 0) -> Estimate:
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
    records: Any, columns: Any, secret: str, *, person: Person = None, samples: int = 10_000, seed: int = 0
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
    matching: int | None = None,
    person: Person = None,
    samples: int = 10_000,
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
    if matching is not None:
        checked_size(matching, "matching")
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
    samples: int = 10_000,
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
    for value, count in seen.items():
        checked_size(count, f"seen[{shown(value)}]", 0)
    return asked.answer(lambda people: people.posterior(names, secret, seen)).named(secret)
