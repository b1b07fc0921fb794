"""The search for quasi-identifiers: sets of columns that single a person out."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

from privug.arguments import Count, PositiveProbability, check_kind, kinds_checked
from privug.errors import ArgumentError
from privug.escaping import inert
from privug.estimate import Estimate
from privug.pictures import plots
from privug.reidentification.match_counts import Person
from privug.reidentification.questions import Asked, People, UniqueRows
from privug.report.text import as_frame


def as_lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows under their heads: the first column to the left, the others to the right."""
    head, rows = [*map(inert, head)], [[*map(inert, row)] for row in rows]
    widths = [max(map(len, cells)) for cells in zip(head, *rows, strict=True)]
    lines = []
    for row in (head, *rows):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


MOST_SETS = 100_000
MOST_SHOWN = 20
LIKELY = 0.5


@dataclass(frozen=True)
class QuasiIdentifier:
    """A set of columns with the probability that it singles the person out.

    `matching` is the expected number of rows that match, and `disclosed` the probability that all of these have the
    person's secret, if one was named.

    >>> from privug import reidentification
    >>> released = [{"zip": "2300", "sex": "F"}, {"zip": "2300", "sex": "M"}]
    >>> best = reidentification.quasi_identifiers(released)[0]
    >>> str(best), best.unique.value
    ('sex', 1.0)
    """

    columns: tuple[str, ...]
    unique: Estimate
    matching: Estimate
    disclosed: Estimate | None = None

    def __str__(self) -> str:
        return inert(" + ".join(self.columns))


class QuasiIdentifiers(Sequence[QuasiIdentifier]):
    """Sets of columns, those that most likely single the person out first and small ones before large ones.

    >>> from privug import reidentification
    >>> released = [{"zip": "2300", "sex": "F"}, {"zip": "2300", "sex": "M"}]
    >>> [str(one) for one in reidentification.quasi_identifiers(released).smallest()]
    ['sex']
    """

    def __init__(
        self,
        found: Sequence[QuasiIdentifier],
        singled_out: Callable[[Sequence[str]], UniqueRows | None] = lambda columns: None,
    ) -> None:
        self._singled_out = singled_out
        # Equal probabilities that were computed in different ways may differ in their last digits.
        self._found = sorted(found, key=lambda one: (-float(f"{one.unique.value:.10g}"), len(one.columns), one.columns))

    def __getitem__(self, position: Any) -> Any:
        return self._found[position]

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[QuasiIdentifier]:
        return iter(self._found)

    def of(self, *columns: str) -> QuasiIdentifier:
        """Return what was found about one set of columns."""
        for name in columns:
            check_kind("of", "columns", name, (str,))
        for one in self._found:
            if set(one.columns) == set(columns):
                return one
        raise ArgumentError(f"of: the columns {', '.join(columns)} were not looked at together")

    def unique_rows(self, *columns: str) -> UniqueRows:
        """Return the rows of a table at hand that one set of columns singles out: who is it?"""
        found = self._singled_out(self.of(*columns).columns)
        if found is None:
            raise ArgumentError("unique_rows: a prior has no rows yet; ask for unique rows of a table")
        return found

    @kinds_checked
    def smallest(self, probability: PositiveProbability = LIKELY) -> list[QuasiIdentifier]:
        """Return the sets that single the person out with some probability and of which no part does."""
        kept: list[QuasiIdentifier] = []
        for one in sorted(self._found, key=lambda one: len(one.columns)):
            inside = any(set(other.columns) <= set(one.columns) for other in kept)
            if not inside and one.unique.value >= probability - 1e-12:
                kept.append(one)
        return kept

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the table as plain values, a dict for each set of columns."""
        return [
            {
                "columns": list(one.columns),
                "unique": one.unique.value,
                "unique_low": one.unique.low,
                "unique_high": one.unique.high,
                "matching_rows": one.matching.value,
                **({} if one.disclosed is None else {"disclosed": one.disclosed.value}),
                "method": one.unique.method,
            }
            for one in self._found
        ]

    def to_frame(self) -> Any:
        """Return the table as a pandas DataFrame."""
        return as_frame(self.to_dict())

    def plot(self, ax: Any = None) -> Any:
        """Draw how likely each set of columns singles the person out; `ax` is matplotlib axes or a path."""
        return plots().bars([(str(one), one.unique) for one in self._found], ax, "probability of being unique")

    def __str__(self) -> str:
        shown = self._found[:MOST_SHOWN]
        with_secret = any(one.disclosed is not None for one in shown)
        head = ["columns", "P(unique)", "matching rows", *(["P(secret disclosed)"] if with_secret else [])]
        lines = as_lines(head, [_cells(one) for one in shown])
        rest = f"\n... and {len(self) - len(shown)} more" if len(shown) < len(self) else ""
        smallest = self.smallest()
        named = "; ".join(map(str, smallest[:MOST_SHOWN])) if smallest else "none"
        rows = self._singled_out(smallest[0].columns) if smallest else None
        who = "" if rows is None else f"\n{rows}"
        return f"{lines}{rest}\nsmallest sets that are unique with probability {LIKELY} or more: {named}{who}"


def _cells(one: QuasiIdentifier) -> list[str]:
    numbers = [one.unique, one.matching, *([] if one.disclosed is None else [one.disclosed])]
    return [str(one), *(_short(estimate) for estimate in numbers)]


def _short(estimate: Estimate) -> str:
    return f"{estimate.value:.5g}" if estimate.exact and abs(estimate.value) >= 1e-6 else _tiny(estimate)


def _tiny(estimate: Estimate) -> str:
    return f"{estimate.value:.1e}" if estimate.exact and estimate.value else estimate.number()


@kinds_checked
def quasi_identifiers(
    records: Any,
    columns: Any = None,
    secret: str | None = None,
    *,
    person: Person = None,
    largest: Count | None = None,
    samples: Count = 10_000,
    seed: int = 0,
) -> QuasiIdentifiers:
    """Look at all sets of columns and rank them by how likely they single the person out.

    `columns` are those that an attacker may know, by default all but the secret; `largest` bounds how many are taken
    together. The other arguments are those of `matching_rows`. The answers are exact where the rows are independent of
    one another or the table is plain; for a prior the time does then not depend on the number of rows.

    >>> import privug as pv
    >>> row = pv.Row(zip=pv.Choice(range(200)), day=pv.DiscreteUniform(0, 99), sex=pv.Choice(["f", "m"]))
    >>> print(quasi_identifiers(pv.Records(1000, row), largest=2))
    columns     P(unique)  matching rows
    zip + day     0.95128           1.05
    zip + sex    0.082034         3.4975
    zip         0.0066874          5.995
    day + sex   0.0066874          5.995
    day        4.3607e-05          10.99
    sex          1.9e-301          500.5
    smallest sets that are unique with probability 0.5 or more: zip + day
    """
    asked = Asked(records, person, samples, seed)
    if secret is not None:
        asked.secret(secret)
    names = asked.columns(columns, secret)
    most = len(names) if largest is None else min(largest, len(names))
    sets = sum(math.comb(len(names), size) for size in range(1, most + 1))
    if not names or sets > MOST_SETS:
        raise ArgumentError(
            f"quasi_identifiers: {len(names)} columns have {sets:,} sets to look at (the most is {MOST_SETS:,}); "
            "name fewer columns, or give the size of the largest sets as largest="
        )
    chosen = [subset for size in range(1, most + 1) for subset in combinations(names, size)]
    found = [asked.answer(partial(_looked_at, columns=one, secret=secret)) for one in chosen]
    return QuasiIdentifiers(found, asked.singled_out)


def _looked_at(people: People, columns: tuple[str, ...], secret: str | None) -> QuasiIdentifier:
    disclosed = None if secret is None else people.disclosed(columns, secret)
    return QuasiIdentifier(columns, people.unique(columns), people.expected(columns), disclosed)
