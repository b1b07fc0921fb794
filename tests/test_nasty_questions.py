"""Questions that a stranger would type and that ask for far too much: each is answered or refused before long."""

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import privug as pv
from privug.errors import LiftingWarning, PrivugError
from tiers import tiered


class Nasty(NamedTuple):
    """An attack, and what is seen of its output."""

    attack: pv.Attack
    observation: Any = None


def first(xs):
    return xs[0]


def first_age(records):
    return records[0].age


def mean_age(records):
    return sum(row.age for row in records) / len(records)


def mean_and_variance(records):
    mean = sum(row.age for row in records) / len(records)
    return round(mean, 1), round(sum((row.age - mean) ** 2 for row in records) / len(records), 1)


def equal_pairs(xs):
    return sum(1 for i in range(len(xs)) for j in range(i) if xs[i] == xs[j])


def smaller_before(xs):
    return sum(a < b for i, a in enumerate(xs) for b in xs[:i])


def most_frequent(xs):
    counts = {}
    for x in xs:
        counts[x] = counts.get(x, 0) + 1
    return max(counts.values())


def counts_by_place(records):
    groups = {}
    for row in records:
        groups[row.age] = groups.get(row.age, 0) + 1
    return groups


def factorial(n):
    return 1 if n <= 1 else n * factorial(n - 1)


def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def counted_down(n):
    total = 0
    while n > 0:
        total += n
        n -= 3
    return total


def walk_to_the_end(x):
    steps = 0
    while x < 100:
        x += pv.sample(pv.Uniform(0, 1))
        steps += 1
    return steps


def bubbles(xs):
    xs = list(xs)
    for i in range(len(xs)):
        for j in range(len(xs) - 1 - i):
            if xs[j] > xs[j + 1]:
                xs[j], xs[j + 1] = xs[j + 1], xs[j]
    return xs[0]


def edit_distance(a, b):
    before = list(range(len(b) + 1))
    for i in range(1, len(a) + 1):
        row = [i]
        for j in range(1, len(b) + 1):
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a[i - 1] != b[j - 1])))
        before = row
    return before[-1]


def correlation(xs, ys):
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    covariance = sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True))
    return covariance / math.sqrt(sum((x - mx) ** 2 for x in xs) * sum((y - my) ** 2 for y in ys))


def list_of(distribution: Callable[[], Any], size: int) -> dict[str, Any]:
    """Return a prior of so many quantities in a list."""
    return {"xs": [distribution() for _ in range(size)]}


def table_of(size: Any, age: Any) -> dict[str, Any]:
    """Return a prior of a table of rows that are alike."""
    return {"records": pv.Records(size, pv.Row(age=age))}


def die(low: int = 0, high: int = 100) -> Any:
    """Return one of so many whole numbers."""
    return pv.DiscreteUniform(low, high)


def normal() -> Any:
    """Return a standard normal number."""
    return pv.Normal(0, sd=1)


NAMES = pv.Choice(["Bob", "Carol", "Dave"])

QUICK: dict[str, Callable[[], Nasty]] = {
    "a string of 200 bits": lambda: Nasty(
        pv.Attack(lambda xs: "".join(str(x) for x in xs), list_of(lambda: pv.Bernoulli(0.5), 200), first),
        pv.equals("01" * 100),
    ),
    "a string of 24 names": lambda: Nasty(
        pv.Attack(lambda xs: "".join(xs), list_of(lambda: pv.Choice(["a", "b"]), 24), first),
        pv.equals("ab" * 12),
    ),
    "a string of 100,000 letters": lambda: Nasty(
        pv.Attack(lambda s: s.upper() * 100_000, {"s": pv.Choice(["a", "b"])}, "s"), pv.equals("A" * 100_000)
    ),
    "names in a row": lambda: Nasty(
        pv.Attack(lambda records: ", ".join(row.age for row in records), table_of(100, NAMES), first_age)
    ),
    "a dictionary of 100,000 keys": lambda: Nasty(
        pv.Attack(most_frequent, {"xs": pv.Array(die(0, 10**6), 100_000)}, first), pv.equals(3)
    ),
    "numbers up to a trillion": lambda: Nasty(pv.Attack(lambda n: n % 10, {"n": die(0, 10**12)}, "n"), pv.equals(5)),
    "the middle of 1000 sorted numbers": lambda: Nasty(
        pv.Attack(lambda xs: sorted(xs)[500], list_of(normal, 1000), first), pv.near(0, within=0.1)
    ),
    "a product of matrices": lambda: Nasty(
        pv.Attack(lambda a: (a @ a).sum(), {"a": pv.Array(normal(), (100, 100))}, lambda a: a[0, 0]),
        pv.near(0, within=10),
    ),
    "a loop with a random end": lambda: Nasty(pv.Attack(walk_to_the_end, {"x": pv.Uniform(0, 1)}, "x"), pv.equals(200)),
    "a histogram of 10,000": lambda: Nasty(
        pv.Attack(lambda xs: np.histogram(xs, bins=10)[0], {"xs": pv.Array(normal(), 10_000)}, first)
    ),
    "a product of 200": lambda: Nasty(pv.Attack(lambda xs: math.prod(xs), list_of(lambda: die(1), 200), first)),
    "factorials": lambda: Nasty(pv.Attack(factorial, {"n": die(0, 900)}, "n"), pv.equals(24)),
    "an output of 300,000 numbers": lambda: Nasty(
        pv.Attack(lambda x: x + np.arange(300_000), {"x": die(0, 10**6)}, "x")
    ),
}

SLOW: dict[str, Callable[[], Nasty]] = {
    "a wide sum with Laplace noise": lambda: Nasty(
        pv.Attack(lambda xs: sum(xs) + pv.sample(pv.Laplace(0, 10)), list_of(lambda: die(0, 10**5), 200), first),
        pv.near(10**7, within=100),
    ),
    "a wide sum with normal noise": lambda: Nasty(
        pv.Attack(lambda xs: sum(xs) + pv.sample(pv.Normal(0, sd=10)), list_of(lambda: die(0, 10**5), 200), first),
        pv.near(10**7, within=100),
    ),
    "the first ten of 1000 sorted dice": lambda: Nasty(
        pv.Attack(lambda xs: sorted(xs)[:10], list_of(die, 1000), first)
    ),
    "a mixture of 1000": lambda: Nasty(
        pv.Attack(
            lambda x, y: x + y,
            {"x": pv.Mixture([pv.Normal(i, sd=1) for i in range(1000)]), "y": pv.Uniform(0, 1)},
            "x",
        ),
        pv.near(500, within=1),
    ),
    "200 values in pairs": lambda: Nasty(pv.Attack(equal_pairs, list_of(die, 200), first), pv.equals(190)),
    "200 numbers in pairs": lambda: Nasty(
        pv.Attack(smaller_before, list_of(normal, 200), first), pv.between(9000, 9100)
    ),
    "a string of 20 bits": lambda: Nasty(
        pv.Attack(lambda xs: "".join(str(x) for x in xs), list_of(lambda: pv.Bernoulli(0.5), 20), first),
        pv.equals("01" * 10),
    ),
    "mean and variance of a table of random size": lambda: Nasty(
        pv.Attack(mean_and_variance, table_of(pv.Binomial(300, 0.3), die(18, 90)), first_age),
        [pv.equals(55.3), pv.equals(20.1)],
    ),
    "a table of some 100,000 rows": lambda: Nasty(
        pv.Attack(mean_age, table_of(pv.Poisson(1e5), die()), first_age), pv.near(50, within=0.1)
    ),
    "a choice of a million": lambda: Nasty(
        pv.Attack(lambda x: x % 10, {"x": pv.Choice(range(10**6))}, "x"), pv.equals(3)
    ),
    "a million data and noise": lambda: Nasty(
        pv.Attack(lambda x, y: x + y, {"x": pv.Empirical(np.linspace(0, 1, 10**6)), "y": normal()}, "x"),
        pv.near(0.3, within=0.1),
    ),
    "ten mixtures of 1000": lambda: Nasty(
        pv.Attack(
            lambda xs: sum(xs), list_of(lambda: pv.Mixture([pv.Normal(i, sd=1) for i in range(1000)]), 10), first
        ),
        pv.near(5000, within=1),
    ),
    "a count of a million": lambda: Nasty(
        pv.Attack(lambda records: sum(row.age for row in records), table_of(10**6, pv.Bernoulli(0.1)), first_age),
        pv.equals(100_000),
    ),
    "a thousand groups": lambda: Nasty(
        pv.Attack(counts_by_place, table_of(50, die(0, 999)), first_age), {7: pv.equals(2)}
    ),
    "a thousand counts": lambda: Nasty(
        pv.Attack(lambda xs: [sum(x == g for x in xs) for g in range(1000)], list_of(lambda: die(0, 999), 50), first)
    ),
    "60 values sorted by swaps": lambda: Nasty(pv.Attack(bubbles, list_of(die, 60), first), pv.equals(3)),
    "Collatz": lambda: Nasty(pv.Attack(collatz, {"n": die(1, 10**5)}, "n"), pv.equals(20)),
    "counting down": lambda: Nasty(pv.Attack(counted_down, {"n": pv.Poisson(1000)}, "n"), pv.between(10**5, 2 * 10**5)),
    "how far words are apart": lambda: Nasty(
        pv.Attack(
            edit_distance,
            {"a": [die(0, 3) for _ in range(30)], "b": [die(0, 3) for _ in range(30)]},
            lambda a: a[0],
        ),
        pv.equals(15),
    ),
    "a correlation of 500": lambda: Nasty(
        pv.Attack(correlation, {"xs": list_of(normal, 500)["xs"], "ys": list_of(normal, 500)["xs"]}, lambda xs: xs[0]),
        pv.near(0.1, within=0.01),
    ),
    "all orders of eight": lambda: Nasty(
        pv.Attack(
            lambda xs: min(sum(abs(p[i] - p[i + 1]) for i in range(7)) for p in itertools.permutations(xs)),
            list_of(die, 8),
            first,
        ),
        pv.equals(90),
    ),
}


def answered_or_refused(nasty: Nasty) -> str:
    """Return what is believed of the secret, or why there is no exact answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LiftingWarning)
        try:
            return str(nasty.attack.run(nasty.observation, engine="exact").posterior)
        except PrivugError as refusal:
            return str(refusal)


TABLE = {**QUICK, **SLOW}


@pytest.mark.parametrize("name", tiered(TABLE, SLOW.__contains__))
def test_a_nasty_question_is_answered_or_refused(name: str) -> None:
    assert len(answered_or_refused(TABLE[name]())) > 20
