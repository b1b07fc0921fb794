"""The linking attack: a released table without names is joined with a public one that has them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privug.arguments import kinds_checked
from privug.errors import ArgumentError
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.mechanisms.tables import cell, checked_columns, groups, labels_of, names_of
from privug.pictures import plots
from privug.reidentification.people import belief_of
from privug.reidentification.singled_out import rows_at_hand
from privug.reidentification.text import as_lines

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
