"""Random questions about rows: programs written at random, with an oracle that only calls them.

Rows of few values are listed: every table there can be is handed to the program, as what the program wants. Rows of
continuous numbers are drawn, by SciPy, and the program is called on each table.
"""

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.stats

import privug as pv
from spellings import made

DRAWS = 20_000
DRAWS_OF_FRAMES = 1_500

LISTED = (
    ((0, 1), (0.7, 0.3)),
    ((-1, 0, 2), (0.2, 0.5, 0.3)),
    ((1, 2, 3), (0.5, 0.25, 0.25)),
    ((0.5, 1.5, 4.0), (0.1, 0.3, 0.6)),
)
DRAWN: tuple[tuple[Callable[[], Any], Callable[[int, Any], Any]], ...] = (
    (lambda: pv.Normal(1, sd=1), lambda n, rng: scipy.stats.norm(1, 1).rvs(n, random_state=rng)),
    (lambda: pv.Uniform(-1, 3), lambda n, rng: scipy.stats.uniform(-1, 4).rvs(n, random_state=rng)),
    (lambda: pv.Exponential(scale=1.5), lambda n, rng: scipy.stats.expon(scale=1.5).rvs(n, random_state=rng)),
    (lambda: pv.Laplace(1, 1), lambda n, rng: scipy.stats.laplace(1, 1).rvs(n, random_state=rng)),
    (
        lambda: pv.Mixture([pv.Normal(0, sd=0.5), pv.Normal(3, sd=0.5)], [0.6, 0.4]),
        lambda n, rng: np.where(rng.random(n) < 0.6, rng.normal(0, 0.5, n), rng.normal(3, 0.5, n)),
    ),
)
VALUES = {
    "list": "rows",
    "array": "rows",
    "records": "[row.x for row in rows]",
    "pandas": "rows.x",
    "polars": 'rows["x"]',
}
CELLS = (
    "v",
    "min(max(v, 0), 2)",
    "abs(v)",
    "v * v",
    "max(v - 1, 0)",
    "2 * v + 1",
    "(v if v > 1 else 0)",
    "min(v, 2.5)",
)
TOTALS = (
    "sum({some})",
    "sum({some}) / N",
    "max({some})",
    "min({some})",
    "sorted({some})[N // 2]",
    "statistics.median({some})",
    "sum(c > 1 for c in {some})",
    "len([c for c in {some} if c > 0.5])",
    "any(c > 2 for c in {some})",
    "all(c < 3 for c in {some})",
    "max({some}) - min({some})",
)
WHOLE = ("sum(c > 1", "len(", "any(", "all(")
"""Totals of continuous rows that are discrete as they are."""
FINISHED = ("round({total}, 1)", "round({total})", "int({total} > 1.5)", "round(min(max({total}, 0), 2), 1)")


@dataclass(frozen=True)
class RandomQuestion:
    """A program, its rows, and an output that was seen."""

    source: str
    form: str
    size: int
    values: tuple[Any, ...] = ()
    chances: tuple[float, ...] = ()
    draw: int = 0
    seed: int = 0
    secret: str = "above one"
    known: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def is_listed(self) -> bool:
        return bool(self.values)

    @property
    def program(self) -> Callable[[Any], Any]:
        if "program" not in self.known:
            self.known["program"] = made(self.source)
        return self.known["program"]

    def attack(self) -> pv.Attack:
        """Return it as an attack on whether the first row is above one."""
        make = (lambda: pv.Choice(list(self.values), list(self.chances))) if self.is_listed else DRAWN[self.draw][0]
        rows: Any = [make() for _ in range(self.size)]
        if self.form == "array":
            rows = pv.Array(make(), self.size)
        elif self.form != "list":
            rows = pv.Records(self.size, pv.Row(x=make()))
            rows = rows if self.form == "records" else rows.as_frame(self.form)
        first = {"list": lambda rows: rows[0] > 1, "array": lambda rows: rows[0] > 1}
        frames = {"pandas": lambda rows: rows.x.iloc[0] > 1, "polars": lambda rows: rows["x"][0] > 1}
        return pv.Attack(
            self.program, {"rows": rows}, {**first, **frames, "records": lambda rows: rows[0].x > 1}[self.form]
        )

    def called(self, row: Sequence[Any]) -> Any:
        """Call the program on plain rows, in the form that it wants."""
        if self.form in ("list", "array"):
            return self.program(np.array(row) if self.form == "array" else list(row))
        if self.form == "records":
            return self.program([pv.Row(x=value) for value in row])
        library = __import__(self.form)
        return self.program(library.DataFrame({"x": list(row)}))

    def tables(self) -> Iterator[tuple[tuple[Any, ...], float]]:
        """Yield tables with their probabilities: all of them, or equally likely draws."""
        if self.is_listed:
            for places in itertools.product(range(len(self.values)), repeat=self.size):
                chance = float(np.prod([self.chances[place] for place in places]))
                yield tuple(self.values[place] for place in places), chance
            return
        draws = DRAWS if self.form in ("list", "array", "records") else DRAWS_OF_FRAMES
        rng = np.random.default_rng(self.seed)
        drawn = np.asarray(DRAWN[self.draw][1](draws * self.size, rng)).reshape(draws, self.size)
        for row in drawn.tolist():
            yield tuple(row), 1 / draws

    def outputs(self) -> list[tuple[Any, bool, float]]:
        """Return each output with the secret and a probability."""
        if "outputs" not in self.known:
            self.known["outputs"] = [(plain(self.called(row)), row[0] > 1, chance) for row, chance in self.tables()]
        return self.known["outputs"]

    def seen(self) -> Any:
        """Return an output that is not too rare."""
        shares: dict[Any, float] = {}
        for output, _, chance in self.outputs():
            shares[output] = shares.get(output, 0.0) + chance
        ranked = sorted(shares, key=lambda output: (-shares[output], repr(output)))
        return ranked[min(self.seed % 3, len(ranked) - 1)]

    def truth(self, seen: Any) -> tuple[float, float, int]:
        """Return P(output), P(secret given the output), and how many draws tell that; 0 if all tables were listed."""
        agreeing = [(secret, chance) for output, secret, chance in self.outputs() if same(output, seen)]
        total = sum(chance for _, chance in agreeing)
        share = sum(chance for secret, chance in agreeing if secret) / total
        return total, share, 0 if self.is_listed else len(self.outputs())


def plain(value: Any) -> Any:
    """Return an output as Python's own values that can be keys."""
    if isinstance(value, tuple | list):
        return tuple(map(plain, value))
    if isinstance(value, dict):
        return tuple((key, plain(part)) for key, part in value.items())
    return value.item() if isinstance(value, np.generic) else value


def same(left: Any, right: Any) -> bool:
    """Say whether two outputs are equal but for rounding."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) or isinstance(right, float):
        return type(left) is not str and type(right) is not str and abs(left - right) <= 1e-9
    return bool(left == right)


def written(seed: int) -> RandomQuestion:
    """Return a question written at random."""
    rng = random.Random(seed)
    form = rng.choice(("list", "list", "array", "records", "pandas", "polars"))
    is_listed = rng.random() < 0.5
    size = rng.choice((1, 2, 3, 4, 5))
    cell, finish = rng.choice(CELLS), rng.choice(FINISHED)
    some = f"[{cell} for v in {VALUES[form]}]"
    totals = [rng.choice(TOTALS).format(some="some") for _ in range(rng.choice((1, 1, 2)))]
    parts = [total if total.startswith(WHOLE) else finish.format(total=total) for total in totals]
    output = (
        parts[0] if len(parts) == 1 else rng.choice(("({}, {})", "[{}, {}]", "{{'a': {}, 'b': {}}}")).format(*parts)
    )
    if len(parts) == 1 and rng.random() < 0.2:
        output = f"f'{{{parts[0]}}} in all'"
    source = f"def program(rows):\n    N = {size}\n    some = {some}\n    return {output}\n"
    if is_listed:
        values, chances = rng.choice(LISTED)
        return RandomQuestion(source, form, size, values, chances, seed=seed)
    return RandomQuestion(source, form, size, draw=rng.randrange(len(DRAWN)), seed=seed)


def restored(seen: Any, source: str) -> Any:
    """Return an output that was seen as an observation of it."""
    if isinstance(seen, tuple) and "{'a'" in source:
        return pv.equals(dict(seen))
    return pv.equals(seen)
