"""Tables of counts as statistical offices publish them, with an oracle that knows nothing of Privug.

Rows that are alike are exchangeable: the oracle goes through how many rows have which values, makes a plain table of
each such count vector, and calls the program on it. Multinomial coefficients are those of `math.comb`.
"""

import math
from collections import Counter, namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

import privug as pv

Values = dict[Any, float]
"""The values of a row, or of one of its columns, with their probabilities."""

ZIP: Values = {"A": 0.5, "B": 0.3, "C": 0.2}
ILL: Values = {0: 0.7, 1: 0.3}
AGE: Values = {20: 0.4, 40: 0.35, 60: 0.25}
SCORE: Values = {0: 0.2, 1: 0.3, 2: 0.4, 5: 0.1}

Columns = dict[str, Values]


def rows_of(columns: Columns) -> Values:
    """Return the values of a row whose columns are independent."""
    made: Values = {(): 1.0}
    for values in columns.values():
        made = {(*row, value): p * q for row, p in made.items() for value, q in values.items()}
    return made


def column(values: Values) -> Any:
    """Return the distribution of a column as an attacker would write it."""
    return pv.Choice(list(values), list(values.values()))


@dataclass(frozen=True)
class Group:
    """So many rows that are alike; `made` writes the prior of one of them where columns are not independent."""

    count: int
    columns: Columns
    values: Values | None = None
    made: Callable[[], Any] | None = None

    def prior(self) -> Any:
        """Return the prior of a row."""
        return pv.Row(**{name: column(v) for name, v in self.columns.items()}) if self.made is None else self.made()

    def rows(self) -> Values:
        """Return the values of a row."""
        return rows_of(self.columns) if self.values is None else self.values


@dataclass(frozen=True)
class CountTable:
    """A release of counts: the program, who is in the table, and what is asked about them.

    The first row is the one that is asked about, unless `secret` is a function of all rows. `noise` is a further input
    with its probabilities; `cases` are other tables that might have been counted, with their probabilities.
    """

    program: Callable[..., Any]
    groups: tuple[Group, ...] = (Group(9, {"zip": ZIP, "ill": ILL}),)
    secret: Callable[..., Any] = field(default=lambda rows: rows[0].ill)
    assume: Callable[..., Any] | None = None
    noise: Values | None = None
    noise_prior: Callable[[], Any] | None = None
    frame: str | None = None
    seed: int = 1
    size: Callable[[], Any] | None = None
    sizes: Values | None = None

    @property
    def names(self) -> list[str]:
        """The columns of the table."""
        return list(self.groups[0].columns)

    def attack(self) -> pv.Attack:
        """Return the question as a user asks it."""
        kinds = [group for group in self.groups for _ in range(group.count)]
        if len(self.groups) == 1:
            rows = pv.Records(self.size() if self.size else len(kinds), self.groups[0].prior())
        else:
            rows = pv.Records(len(kinds), lambda i: kinds[i].prior())
        prior = {"rows": rows if self.frame is None else rows.as_frame(self.frame)}
        if self.noise is not None:
            prior["noise"] = column(self.noise) if self.noise_prior is None else self.noise_prior()
        secret = self.secret if self.noise is None else lambda rows, noise: self.secret(rows)
        facts = {} if self.assume is None else {"assume": self.assume}
        if self.noise is not None and self.assume is not None:
            facts = {"assume": lambda rows, noise: self.assume(rows)}
        if self.frame is not None:
            secret = frame_secret
        return pv.Attack(self.program, prior, secret, **facts)

    def table(self, rows: list[tuple[Any, ...]]) -> Any:
        """Return rows as the program takes them."""
        if self.frame == "pandas":
            return pd.DataFrame(rows, columns=self.names)
        if self.frame == "polars":
            return pl.DataFrame(rows, schema=self.names, orient="row")
        row = namedtuple("Row", self.names)
        return [row(*values) for values in rows]

    def worlds(self) -> Iterator[tuple[float, list[tuple[Any, ...]]]]:
        """Yield every table that matters, the first row apart, with its probability."""
        for size, share in (self.sizes or {None: 1.0}).items():
            groups = [(group.count if size is None else size, group.rows()) for group in self.groups]
            (count, values), *others = groups
            for first, chance in values.items():
                for weight, rest in _filled([(count - 1, values), *others]):
                    yield share * chance * weight, [first, *rest]

    def outcomes(self) -> Iterator[tuple[float, Any, Any]]:
        """Yield the probability, the secret and the output of every table."""
        for weight, rows in self.worlds():
            if not weight:
                continue
            table = self.table(rows)
            if self.assume is not None and not self.assume(table):
                continue
            secret = self.secret(table) if self.frame is None else rows[0][self.names.index("ill")]
            for noise, chance in (self.noise or {None: 1.0}).items():
                output = self.program(table) if noise is None else self.program(table, noise)
                yield weight * chance, secret, settled(output)

    def observed(self) -> Any:
        """Return what was published of a table that was drawn."""
        rng = np.random.default_rng(self.seed)
        rows = []
        for group in self.groups:
            values = group.rows()
            size = group.count if self.sizes is None else list(self.sizes)[-1]
            picks = rng.choice(len(values), size, p=np.array(list(values.values())))
            rows += [list(values)[k] for k in picks]
        table = self.table(rows)
        if self.noise is None:
            return self.program(table)
        return self.program(table, list(self.noise)[int(rng.integers(len(self.noise)))])


def frame_secret(rows):
    return rows["ill"][0]


def _filled(groups: list[tuple[int, Values]]) -> Iterator[tuple[float, list[tuple[Any, ...]]]]:
    """Yield how rows of several groups can be filled, and how likely each way is."""
    if not groups:
        yield 1.0, []
        return
    (count, values), *others = groups
    for weight, rows in _counted(count, list(values.items())):
        for inner, rest in _filled(others):
            yield weight * inner, [*rows, *rest]


def _counted(count: int, values: list[tuple[Any, float]]) -> Iterator[tuple[float, list[tuple[Any, ...]]]]:
    (value, chance), *others = values
    if not others:
        yield chance**count, [value] * count
        return
    for times in range(count + 1):
        share = math.comb(count, times) * chance**times
        for weight, rows in _counted(count - times, others):
            yield share * weight, [value] * times + rows


def settled(output: Any) -> Any:
    """Return an output as something that can be compared and used as a key."""
    if isinstance(output, pd.Series):
        return settled(output.to_dict())
    if isinstance(output, pd.DataFrame):
        return settled({name: output[name].to_dict() for name in output})
    if isinstance(output, pl.DataFrame):
        return settled(output.to_dicts())
    if isinstance(output, np.ndarray):
        return settled(output.tolist())
    if isinstance(output, dict):
        return tuple((settled(key), settled(value)) for key, value in output.items())
    if isinstance(output, list | tuple):
        return tuple(map(settled, output))
    if isinstance(output, np.generic):
        return settled(output.item())
    if isinstance(output, float):
        return "not a number" if output != output else round(output, 9)
    return output


@dataclass(frozen=True)
class Answer:
    """What the oracle says: P(seen), beliefs about the secret given that, and the mutual information in bits."""

    probability: float
    posterior: dict[Any, float]
    information: float


def answer(table: CountTable, seen: Any) -> Answer:
    """Go through every table."""
    joint: Counter[tuple[Any, Any]] = Counter()
    for weight, secret, output in table.outcomes():
        joint[secret, output] += weight
    total = sum(joint.values())
    shares = {pair: weight / total for pair, weight in joint.items()}
    secrets, outputs = Counter(), Counter()
    for (secret, output), share in shares.items():
        secrets[secret] += share
        outputs[output] += share
    information = sum(s * math.log2(s / secrets[a] / outputs[b]) for (a, b), s in shares.items() if s > 0)
    fits = {secret: share for (secret, output), share in shares.items() if output == settled(seen)}
    probability = sum(fits.values())
    return Answer(probability, {secret: share / probability for secret, share in fits.items()}, information)


# The programs.


def counts(rows):
    return {z: sum(1 for r in rows if r.zip == z) for z in "ABC"}


def cases(rows):
    found = dict.fromkeys("ABC", 0)
    for r in rows:
        if r.ill:
            found[r.zip] += 1
    return found


def two_way(rows):
    return {(z, i): sum(r.zip == z and r.ill == i for r in rows) for z in "ABC" for i in (0, 1)}


def two_way_with_margins(rows):
    table = two_way(rows)
    by_zip = {z: table[z, 0] + table[z, 1] for z in "ABC"}
    by_ill = [sum(table[z, i] for z in "ABC") for i in (0, 1)]
    return [{k: (v if v >= 2 else "*") for k, v in table.items()}, by_zip, by_ill, len(rows)]


def margins_alone(rows):
    return [sum(r.zip == z for r in rows) for z in "ABC"], sum(r.ill for r in rows)


def suppressed_with_total(rows):
    found = cases(rows)
    shown = {z: (n if n >= 3 else "<3") for z, n in found.items()}
    return shown, sum(found.values())


def suppressed_without_total(rows):
    return ["<2" if n < 2 else n for n in cases(rows).values()]


def rounded_to(base):
    def rounded(rows):
        return [base * round(n / base) for n in cases(rows).values()]

    return rounded


def top_coded(rows):
    return {z: ("4 and more" if n >= 4 else n) for z, n in counts(rows).items()}


def rates(rows):
    found = []
    for z in "ABC":
        size = sum(r.zip == z for r in rows)
        ill = sum(r.zip == z and r.ill == 1 for r in rows)
        found.append(round(100 * ill / size) if size else None)
    return found


def shares(rows):
    ill = sum(r.ill for r in rows)
    return [round(n / ill, 2) if ill else None for n in cases(rows).values()]


def mean_score(rows):
    found = {}
    for z in "ABC":
        scores = [r.score for r in rows if r.zip == z]
        found[z, "size"] = len(scores)
        found[z, "mean"] = round(sum(scores) / len(scores), 1) if len(scores) >= 2 else None
    return found


def size_and_mean_of_the_ill(rows):
    scores = [r.score for r in rows if r.ill]
    return len(scores), (round(sum(scores) / len(scores)) if scores else None)


def largest(rows):
    return max(counts(rows).values())


def smallest(rows):
    return min(sum(r.zip == z for r in rows) for z in "ABC")


def mode(rows):
    found = counts(rows)
    best = "A"
    for z in "BC":
        if found[z] > found[best]:
            best = z
    return best


def ranks(rows):
    found = list(counts(rows).values())
    return [1 + sum(other > n for other in found) for n in found]


def distinct(rows):
    return len({(r.zip, r.ill) for r in rows})


def unique(rows):
    return sum(n == 1 for n in two_way(rows).values())


def smallest_group(rows):
    sizes = [n for n in two_way(rows).values() if n > 0]
    return min(sizes)


def with_counter(rows):
    found = Counter(r.zip for r in rows if r.ill)
    return [found["A"], found["B"], found["C"]]


def twice(rows):
    return cases(rows[1:]), cases(rows)


def linked(rows):
    by_zip = [sum(r.zip == z and r.ill for r in rows) for z in "ABC"]
    by_age = [sum(r.age == a and r.ill for r in rows) for a in AGE]
    return [n if n >= 2 else "*" for n in by_zip], [n if n >= 2 else "*" for n in by_age], sum(by_zip)


def linked_thrice(rows):
    both = [sum(r.zip == z and r.age == a for r in rows) for z in "AB" for a in AGE]
    return [n if n >= 2 else "*" for n in both], [sum(r.age == a for r in rows) for a in AGE]


def with_noise(rows, noise):
    return sum(r.ill for r in rows) + noise


def with_noise_clipped(rows, noise):
    return max(0, sum(r.ill and r.zip == "A" for r in rows) + noise)


def noise_then_threshold(rows, noise):
    ill = sum(r.ill for r in rows)
    return [sum(r.zip == "A" for r in rows), ill + noise if ill + noise >= 2 else "*"]


def share_of_ill(rows):
    return round(100 * sum(r.ill for r in rows) / len(rows)) if len(rows) else 0


def in_bins(rows):
    return list(np.histogram([r.score for r in rows], bins=[0, 1, 2, 6])[0])


def numpy_counts(rows):
    return np.bincount([r.score for r in rows], minlength=6)


def numpy_sums(rows):
    ill = np.array([r.ill for r in rows])
    old = np.array([r.age >= 40 for r in rows])
    return [int(np.sum(ill * old)), int(np.sum(ill * ~old)), int(old.sum())]


def any_and_all(rows):
    return any(r.ill and r.zip == "C" for r in rows), all(r.ill or r.zip != "A" for r in rows), sum(r.ill for r in rows)


def difference(rows):
    return sum(r.zip == "A" for r in rows) - sum(r.zip == "B" for r in rows), sum(r.ill for r in rows) % 3


def true_count(rows):
    return sum(r.ill and r.zip == "C" for r in rows)


def no_cell_of_one(rows):
    return all(n != 1 for n in cases(rows).values())


def pandas_crosstab(rows: pd.DataFrame):
    return pd.crosstab(rows.zip, rows.ill)


def pandas_sizes(rows: pd.DataFrame):
    table = rows.groupby(["zip", "ill"]).size().unstack(fill_value=0)
    return table


def pandas_value_counts(rows: pd.DataFrame):
    found = rows[rows.ill == 1].zip.value_counts().sort_index()
    return found[found >= 2]


def pandas_rates(rows: pd.DataFrame):
    return rows.groupby("zip").ill.mean().round(1)


def polars_counts(rows: pl.DataFrame):
    found = rows.group_by("zip").agg(n=pl.len(), ill=pl.col("ill").sum()).sort("zip")
    return found.filter(pl.col("n") >= 2)


GIVEN: Values = {("A", 0): 0.45, ("A", 1): 0.05, ("B", 0): 0.18, ("B", 1): 0.12, ("C", 0): 0.05, ("C", 1): 0.15}


def illness_by_zip():
    zip_code = column(ZIP)
    chances = {"A": 0.1, "B": 0.4, "C": 0.75}
    return pv.Row(zip=zip_code, ill=pv.given(zip_code, {z: pv.Bernoulli(p) for z, p in chances.items()}))


BOTH = {"zip": ZIP, "ill": ILL}
SCORED = (Group(7, {"zip": ZIP, "score": SCORE}),)
ILL_SCORED = (Group(6, {"ill": ILL, "score": SCORE}),)
AGED = (Group(5, {"zip": ZIP, "age": AGE, "ill": ILL}),)
ALICE = {"zip": {"A": 1.0}, "ill": {0: 0.9, 1: 0.1}}
LAPLACE: Values = {k: math.tanh(0.5) * math.exp(-abs(k)) for k in range(-45, 46)}
SMALL = (Group(5, BOTH),)

TABLES: dict[str, CountTable] = {
    "counts by zip": CountTable(counts),
    "cases by zip": CountTable(cases),
    "two-way table": CountTable(two_way),
    "two-way table with margins, small cells suppressed": CountTable(two_way_with_margins),
    "margins alone": CountTable(margins_alone),
    "suppressed with total": CountTable(suppressed_with_total),
    "suppressed without total": CountTable(suppressed_without_total),
    "rounded to base 3": CountTable(rounded_to(3)),
    "rounded to base 5": CountTable(rounded_to(5)),
    "rounded to base 10": CountTable(rounded_to(10), (Group(10, BOTH),)),
    "top-coded": CountTable(top_coded),
    "rates in per cent by group": CountTable(rates),
    "shares of all cases": CountTable(shares),
    "size and mean of a score by group": CountTable(mean_score, SCORED, lambda rows: rows[0].score),
    "size and rounded mean of a subgroup": CountTable(size_and_mean_of_the_ill, ILL_SCORED, seed=3),
    "the largest of three counts": CountTable(largest, secret=lambda rows: rows[0].zip),
    "the smallest of three counts": CountTable(smallest, secret=lambda rows: rows[0].zip),
    "the mode": CountTable(mode, secret=lambda rows: rows[0].zip),
    "ranks of counts": CountTable(ranks, secret=lambda rows: rows[0].zip == "C"),
    "number of distinct rows": CountTable(distinct, secret=lambda rows: (rows[0].zip, rows[0].ill)),
    "number of unique rows": CountTable(unique),
    "size of the smallest group": CountTable(smallest_group),
    "by Counter": CountTable(with_counter),
    "published twice with one person more": CountTable(twice),
    "linked by zip and by age": CountTable(linked, AGED),
    "linked, one table within the other": CountTable(linked_thrice, AGED, seed=4),
    "discrete Laplace noise": CountTable(
        with_noise, noise=LAPLACE, noise_prior=lambda: pv.DiscreteLaplace(1.0), groups=SMALL, seed=45
    ),
    "noise clipped at zero": CountTable(
        with_noise_clipped, noise=LAPLACE, noise_prior=lambda: pv.DiscreteLaplace(1.0), groups=SMALL, seed=46
    ),
    "noise, then a threshold": CountTable(noise_then_threshold, noise={-1: 0.25, 0: 0.5, 1: 0.25}),
    "a named person beside a crowd": CountTable(two_way, (Group(1, ALICE), Group(7, BOTH))),
    "two regions with rates of their own": CountTable(
        suppressed_with_total,
        (Group(3, BOTH), Group(3, {"zip": {"A": 0.1, "B": 0.1, "C": 0.8}, "ill": {0: 0.4, 1: 0.6}})),
    ),
    "columns that depend on each other": CountTable(
        two_way_with_margins, (Group(8, BOTH, GIVEN, illness_by_zip),), secret=lambda rows: rows[0].zip
    ),
    "a fact: two people are ill": CountTable(suppressed_with_total, assume=lambda rows: sum(r.ill for r in rows) >= 2),
    "a fact about one person": CountTable(
        cases,
        (Group(1, BOTH), Group(1, BOTH), Group(7, BOTH)),
        assume=lambda rows: rows[1].zip == "A" or rows[1].ill == 0,
    ),
    "a table of random size": CountTable(
        suppressed_with_total,
        (Group(0, BOTH),),
        size=lambda: pv.DiscreteUniform(3, 6),
        sizes={3: 0.25, 4: 0.25, 5: 0.25, 6: 0.25},
    ),
    "share of a table of random size": CountTable(
        share_of_ill,
        (Group(0, BOTH),),
        size=lambda: pv.DiscreteUniform(2, 7),
        sizes=dict.fromkeys(range(2, 8), 1 / 6),
    ),
    "a histogram": CountTable(in_bins, ILL_SCORED, lambda rows: rows[0].score),
    "sums of arrays": CountTable(numpy_sums, AGED),
    "any, all and how many": CountTable(any_and_all),
    "a difference, and a count modulo 3": CountTable(difference),
    "the true count behind its suppression": CountTable(suppressed_with_total, secret=true_count),
    "a question about all cells": CountTable(suppressed_with_total, secret=no_cell_of_one),
    "pandas crosstab": CountTable(pandas_crosstab, SMALL, frame="pandas"),
    "pandas groupby by two keys": CountTable(pandas_sizes, SMALL, frame="pandas"),
    "pandas value_counts, small ones left out": CountTable(pandas_value_counts, SMALL, frame="pandas", seed=2),
    "pandas rates": CountTable(pandas_rates, SMALL, frame="pandas"),
    "polars group_by": CountTable(polars_counts, SMALL, frame="polars"),
}
