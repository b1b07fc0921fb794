"""The linking attack, and the three risks by which the Article 29 Working Party judges anonymisation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privug.arguments import Count, kinds_checked
from privug.errors import ArgumentError
from privug.escaping import inert
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.mechanisms.plain_rows import cell, checked_columns, groups, labels_of, names_of
from privug.pictures import plots
from privug.reidentification.match_counts import Person
from privug.reidentification.questions import Asked, People, UniqueRows, belief_of, rows_at_hand
from privug.reidentification.search import as_lines

MOST_SHOWN = 20


@dataclass(frozen=True, eq=False)
class Link:
    """What the released table says about one person of the public table.

    `matching` is how many released rows have the person's values, and `rivals` how many people of the public table
    have them. `probability` is that of pointing at the person's row, and `secret` the belief about the person's
    secret if the person is in the table; None if no row matches.

    >>> from privug import reidentification
    >>> released = [{"zip": "2300", "ill": True}, {"zip": "2100", "ill": False}]
    >>> alice = reidentification.link(released, [{"name": "Alice", "zip": "2300"}], "zip", "ill")["Alice"]
    >>> alice.matching, alice.disclosed
    (1, True)
    """

    person: Any
    matching: int
    rivals: int
    secret: Belief | None

    @property
    def probability(self) -> Estimate:
        """The probability that a matching row taken at random is the person's; zero if no row matches."""
        value = 1 / max(self.matching, self.rivals) if self.matching else 0.0
        return Estimate.exactly(value, method="exact")

    @property
    def is_found(self) -> bool:
        """Whether one released row matches, and this person alone."""
        return self.matching == self.rivals == 1

    @property
    def disclosed(self) -> Any:
        """The person's secret if all matching rows agree on it and there is one for everyone; else None."""
        if self.secret is None or self.rivals > self.matching or len(self.secret.batch) > 1:
            return None
        return self.secret.batch.values()[0]


class LinkedTable(Sequence[Link]):
    """The people of a public table, linked with a released one.

    >>> from privug import reidentification
    >>> released = [{"zip": "2300", "ill": True}, {"zip": "2100", "ill": False}]
    >>> people = [{"name": "Alice", "zip": "2300"}, {"name": "Eve", "zip": "2400"}]
    >>> len(reidentification.link(released, people, "zip", "ill").found)
    1
    """

    def __init__(self, links: Sequence[Link], name: str) -> None:
        self._links, self._name = list(links), name

    def __getitem__(self, position: Any) -> Any:
        """Return a link by its position, or by the person's name."""
        if not isinstance(position, str):
            return self._links[position]
        for link in self._links:
            if cell(link.person, self._name) == position:
                return link
        raise KeyError(position)

    def __len__(self) -> int:
        return len(self._links)

    def __iter__(self) -> Iterator[Link]:
        return iter(self._links)

    @property
    def found(self) -> list[Link]:
        """The people whose row is known."""
        return [link for link in self._links if link.is_found]

    @property
    def disclosed(self) -> list[Link]:
        """The people whose secret is known, whether or not their row is."""
        return [link for link in self._links if link.disclosed is not None]

    def plot(self, ax: Any = None) -> Any:
        """Draw how likely each person's row is found, the likeliest first; `ax` is matplotlib axes or a path."""
        ordered = sorted(self._links, key=lambda link: -link.probability.value)
        rows = [(str(cell(link.person, self._name)), link.probability) for link in ordered]
        return plots().bars(rows, ax, "probability that a row is theirs")

    def __str__(self) -> str:
        rows = [
            [str(cell(link.person, self._name)), str(link.matching), link.probability.number(), _shown(link.secret)]
            for link in self._links[:MOST_SHOWN]
        ]
        lines = as_lines([self._name, "matching rows", "P(row is theirs)", "belief about the secret"], rows)
        rest = f"\n... and {len(self) - MOST_SHOWN} more" if len(self) > MOST_SHOWN else ""
        counted = f"{len(self.found)} of {len(self)} people found, the secrets of {len(self.disclosed)} disclosed"
        return f"{lines}{rest}\n{counted}"


def _shown(secret: Belief | None) -> str:
    if secret is None:
        return "-"
    return ", ".join(f"{value}: {share.value:.3g}" for value, share in list(secret.distribution().items())[:3])


@kinds_checked
def link(released: Any, public: Any, columns: Any, secret: str, *, name: str | None = None) -> LinkedTable:
    """Join a released table with a public one on some columns: the linking attack (Sweeney, 2002).

    Both are frames, lists of rows, or paths of CSV or Parquet files.
    Everyone in the public table is taken to be in the released one, unless more people than rows have the same values.
    Rows that agree in the columns cannot be told apart, so each is equally likely the person's. `name` is the column
    of the public table that says who somebody is, by default its first one.

    >>> released = [{"zip": 2300, "sex": "f", "ill": True}, {"zip": 2300, "sex": "m", "ill": False}]
    >>> public = [{"name": "Alice", "zip": 2300, "sex": "f"}]
    >>> print(link(released, public, ["zip", "sex"], "ill")["Alice"].disclosed)
    True
    """
    rows, people = rows_at_hand(released), rows_at_hand(public)
    if not rows or not people:
        raise ArgumentError("link: the released and the public table must hold at least one row each")
    names = checked_columns(rows, columns)
    checked_columns(people, names)
    checked_columns(rows, secret, "secret")
    rows, people = _comparable((released, rows), (public, people), names)
    if name is not None:
        checked_columns(people, name, "name")
    found, rivals = groups(rows, names), groups(people, names)
    links = []
    for person in people:
        key = tuple(labels_of([cell(person, column)], column)[0] for column in names)
        secrets = [cell(rows[position], secret) for position in found.get(key, ())]
        links.append(Link(person, len(secrets), len(rivals[key]), belief_of(secrets) if secrets else None))
    return LinkedTable(links, name or names_of(people[0])[0])


def _comparable(
    one: tuple[Any, list[Any]], other: tuple[Any, list[Any]], names: Sequence[str]
) -> tuple[list[Any], list[Any]]:
    """Return the rows of two tables; a column that is text in one and numbers in the other is read anew as text.

    As 2300 is not "2300", such columns would match nobody.
    """
    differing = [name for name in names if _is_text(one[1], name) != _is_text(other[1], name)]
    first, second = (
        rows_at_hand(given, differing) if differing and isinstance(given, str | Path) else rows
        for given, rows in (one, other)
    )
    for name in differing:
        if _is_text(first, name) != _is_text(second, name):
            raise ArgumentError(
                f"link: column {name!r} is text in one table and numbers in the other, which never match; "
                "make both text, such as by frame.astype({" + repr(name) + ": str})"
            )
    return first, second


def _is_text(rows: Sequence[Any], name: str) -> bool:
    return any(isinstance(cell(row, name), str) for row in rows)


@dataclass(frozen=True)
class Risks:
    """What someone who knows some columns of a person's row can do with a released table.

    `singling_out` is the probability that the person's row is the only one that matches; `linkability` that a
    matching row taken at random is the person's; `inference` that such a row has the person's secret, and
    `inference_before` that any row of the table has it; `disclosure` that all matching rows have it.

    >>> from privug import reidentification
    >>> released = [{"zip": "2300", "ill": True}, {"zip": "2300", "ill": False}, {"zip": "2100", "ill": False}]
    >>> risks = reidentification.three_risks(released, ["zip"], "ill")
    >>> round(risks.singling_out.value, 4), round(risks.linkability.value, 4)
    (0.3333, 0.6667)
    """

    columns: tuple[str, ...]
    secret: str
    singling_out: Estimate
    linkability: Estimate
    inference: Estimate
    inference_before: Estimate
    disclosure: Estimate
    unique_rows: UniqueRows | None = None
    """The rows that are singled out, of a table at hand; a prior has none yet."""

    def to_dict(self) -> dict[str, Any]:
        """Return the risks as plain values."""
        names = ("singling_out", "linkability", "inference", "inference_before", "disclosure")
        numbers = {name: getattr(self, name) for name in names}
        return {
            "columns": list(self.columns),
            "secret": self.secret,
            **{name: estimate.to_dict() for name, estimate in numbers.items()},
            **({} if self.unique_rows is None else {"unique_rows": self.unique_rows.to_dict()}),
        }

    def plot(self, ax: Any = None) -> Any:
        """Draw the risks as bars; `ax` is matplotlib axes or the path of a picture to write."""
        names = ("singling_out", "linkability", "inference", "inference_before", "disclosure")
        words = ("singling out", "linkability", "inference", "inference by base rate", "inference with certainty")
        rows = [(said, getattr(self, name)) for said, name in zip(words, names, strict=True)]
        return plots().bars(rows, ax, f"probability, knowing {' + '.join(self.columns)}")

    def __str__(self) -> str:
        known, secret = inert(" + ".join(self.columns)), inert(self.secret)
        lines = [
            ("singling out", self.singling_out, "no other row matches"),
            ("linkability", self.linkability, "a matching row taken at random is the person's"),
            ("inference", self.inference, f"a matching row taken at random has the person's {secret}"),
            ("  by base rate", self.inference_before, f"any row taken at random has the person's {secret}"),
            ("  with certainty", self.disclosure, f"all matching rows have the person's {secret}"),
        ]
        width = max(len(estimate.number()) for _, estimate, _ in lines)
        shown = [(f"{name:<16}  {estimate.number():>{width}}", f"  {meaning}") for name, estimate, meaning in lines]
        rows = [] if self.unique_rows is None else [str(self.unique_rows)]
        return "\n".join([f"known of the person: {known}", *(number + meaning for number, meaning in shown), *rows])


@kinds_checked
def three_risks(
    records: Any, columns: Any, secret: str, *, person: Person = None, samples: Count = 10_000, seed: int = 0
) -> Risks:
    """Return the risks of singling out, linkability and inference for a person whose values in the columns are known.

    The arguments are those of `matching_rows`. With m other matching rows, linkability is E[1 / (1 + m)] and inference
    is E[k / (1 + m)], where k of the matching rows have the person's secret. All are probabilities, from 0 to 1;
    an attacker who knows more about the person than the prior says can do better than these numbers.

    >>> import privug as pv
    >>> table = pv.Records(2, pv.Row(sex=pv.Choice(["f", "m"]), ill=pv.Bernoulli(0.5)))
    >>> risks = three_risks(table, "sex", "ill")
    >>> print(risks.singling_out, risks.linkability, risks.inference)
    0.5 (exact) 0.75 (exact) 0.875 (exact)
    """
    asked = Asked(records, person, samples, seed)
    names = asked.columns(columns)
    asked.secret(secret)

    def risks(people: People) -> Risks:
        return Risks(
            names,
            secret,
            people.unique(names),
            people.linked(names),
            people.guessed(names, secret),
            people.guessed((), secret),
            people.disclosed(names, secret),
            asked.singled_out(names),
        )

    return asked.answer(risks)
