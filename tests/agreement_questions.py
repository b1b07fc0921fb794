"""Random small questions: a program, a prior, a secret and what was seen, all from a number."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import privug as pv


@dataclass(frozen=True)
class Posed:
    """An attack and what is seen of its output, if anything."""

    attack: pv.Attack
    observation: Any


def posed(number: int) -> Posed:
    rng = np.random.default_rng([20, number])
    kind = KINDS[number % len(KINDS)]
    attack, continuous_values = kind(rng)
    return Posed(attack, _observation(attack, rng, continuous_values))


def _observation(attack: pv.Attack, rng: np.random.Generator, continuous_values: bool) -> Any:
    """Choose what was seen such that it can be seen: from outputs that the program gave."""
    outputs = attack.run(engine="sample", samples=400, seed=int(rng.integers(1000))).prediction
    values = outputs.batch.numbers()
    if values is None:
        return pv.equals(outputs.batch.values()[0])
    values = np.asarray(values, float)
    low, middle, high = np.quantile(values, [0.2, 0.5, 0.85])
    spread = float(values.std()) or 1.0
    value = values[0]
    choices = [None, pv.between(low - 0.01, high + 0.01), pv.near(value, within=0.3 * spread)]
    choices += [pv.noisy(float(value), sd=0.4 * spread), pv.such_that(lambda o: o >= middle)]
    if continuous_values or len(np.unique(values)) < 100:
        choices += [pv.equals(value.item())] * 2
    return choices[rng.integers(len(choices))]


def discrete(rng: np.random.Generator) -> Any:
    half = float(rng.uniform(0.1, 0.9))
    makers: list[Callable[[], Any]] = [
        lambda: pv.Bernoulli(half),
        lambda: pv.Binomial(int(rng.integers(1, 7)), half),
        lambda: pv.DiscreteUniform(int(rng.integers(-3, 1)), int(rng.integers(1, 5))),
        lambda: pv.Poisson(float(rng.uniform(0.3, 3))),
        lambda: pv.Geometric(0.3 + 0.6 * half),
        lambda: pv.Choice([-1.5, 0.0, 2.25], p=[0.25, 0.75 - half / 2, half / 2]),
        lambda: pv.DiscreteLaplace(float(rng.uniform(0.3, 1.5))),
        lambda: pv.Mixture([pv.Constant(0), pv.DiscreteUniform(1, 4)], [half, 1 - half]),
    ]
    return makers[rng.integers(len(makers))]()


def binary(rng: np.random.Generator) -> Any:
    return pv.Bernoulli(float(rng.uniform(0.1, 0.9)))


def continuous(rng: np.random.Generator) -> Any:
    scale = float(rng.uniform(0.3, 3))
    makers: list[Callable[[], Any]] = [
        lambda: pv.Uniform(-scale, 2 * scale),
        lambda: pv.Normal(float(rng.normal()), sd=scale),
        lambda: pv.Laplace(float(rng.normal()), scale),
        lambda: pv.Exponential(scale=scale),
        lambda: pv.Gamma(float(rng.uniform(1, 4)), scale=scale),
        lambda: pv.TruncatedNormal(0, sd=scale, low=-scale, high=2 * scale),
        lambda: pv.Beta(2, 3),
    ]
    return makers[rng.integers(len(makers))]()


def scalar_expressions(rng: np.random.Generator) -> tuple[pv.Attack, bool]:
    """Any expression of a few discrete quantities, one of which may depend on another."""
    prior = {"a": discrete(rng), "b": discrete(rng), "c": discrete(rng)}
    if rng.random() < 0.4:
        prior["b"] = pv.given(pv.Bernoulli(0.4), {0: discrete(rng), 1: discrete(rng)})
    if rng.random() < 0.3:
        prior["c"] = pv.Binomial(4, 0.2 + 0.5 * pv.Bernoulli(0.5))
    weight = int(rng.integers(-3, 4))
    programs = [
        lambda a, b, c: a + weight * b - c,
        lambda a, b, c: max(a, b) * c,
        lambda a, b, c: a if b > c else b - a,
        lambda a, b, c: (a > b) + (b > c) + (a > c),
        lambda a, b, c: abs(a - b) // 2 + c,
        lambda a, b, c: min(a, 2) + (b == c),
        lambda a, b, c: (a + b + c) / 3,
        lambda a, b, c: round(a * 0.7 + b, 1),
    ]
    return pv.Attack(programs[rng.integers(len(programs))], prior, _scalar_secret(rng)), False


def _scalar_secret(rng: np.random.Generator) -> Any:
    secrets = ["a", "a", "b", lambda a: 2 * a + 3, lambda a: -a, lambda a: a + 0.5, lambda a: a > 0]
    return secrets[rng.integers(len(secrets))]


def gaussians(rng: np.random.Generator) -> tuple[pv.Attack, bool]:
    """Affine functions of normal quantities."""
    mean = pv.Normal(float(rng.normal()), sd=float(rng.uniform(0.5, 2)))
    w = rng.normal(size=3)
    prior = {
        "a": mean,
        "b": pv.Normal(mean if rng.random() < 0.5 else 1.0, sd=1.5),
        "c": pv.Array(pv.Normal(2, sd=0.7), 4),
    }
    programs = [
        lambda a, b, c: w[0] * a + w[1] * b + w[2] * c.sum(),
        lambda a, b, c: (a - b) / 2 + c[1] - c[2],
        lambda a, b, c: c.mean() - a,
    ]
    secrets = ["a", "b", lambda c: c[1], lambda a: 3 - 2 * a, lambda a, b: a + b]
    secret = secrets[rng.integers(len(secrets))]
    return pv.Attack(programs[rng.integers(len(programs))], prior, secret), True


def sums(rng: np.random.Generator) -> tuple[pv.Attack, bool]:
    """Weighted sums of independent quantities of any family."""
    w = np.round(rng.normal(size=3), 2)
    prior = {
        "a": continuous(rng) if rng.random() < 0.6 else discrete(rng),
        "b": continuous(rng) if rng.random() < 0.7 else discrete(rng),
        "c": continuous(rng) if rng.random() < 0.5 else discrete(rng),
        "d": pv.Array(continuous(rng) if rng.random() < 0.5 else discrete(rng), int(rng.integers(2, 30))),
    }
    programs = [
        lambda a, b, c, d: a + w[1] * b + w[2] * c + 0 * d[0],
        lambda a, b, c, d: a - b + d.sum(),
        lambda a, b, c, d: (a + d.sum() / 2) / 3 + c,
        lambda a, b, c, d: d.mean() + c,
    ]
    secrets = ["a", "a", "c", lambda a: 2 * a + 3, lambda a: -a, lambda a: a + 0.5, lambda d: d[1]]
    return pv.Attack(programs[rng.integers(len(programs))], prior, secrets[rng.integers(len(secrets))]), False


def _counted(records, limit):
    total = 0
    for r in records:
        if r.x > limit and r.flag:
            total += 1
    return total


def _weighed(records):
    total = 0
    for r in records:
        if r.flag:
            total += 2 * r.x
        else:
            total -= 1
    return total


def _several(records, limit):
    few, many = 0, 0
    for r in records:
        if r.x <= limit:
            few += 1
            continue
        many += r.flag
    return few, many


def _mean_of_some(records):
    chosen = [r.x for r in records if r.flag]
    return sum(chosen) / len(chosen) if chosen else -1.0


def table_programs(limit: int, k: int) -> list[Callable[..., Any]]:
    return [
        lambda records: sum(r.x for r in records),
        lambda records: sum(r.x for r in records) / len(records),
        lambda records: sum(1 for r in records if r.x > limit),
        lambda records: _counted(records, limit),
        lambda records: _weighed(records),
        lambda records: any(r.x > limit + 1 and r.flag for r in records),
        lambda records: all(r.x < limit + 3 for r in records),
        lambda records: pv.count(records, lambda r: r.flag and r.x != limit),
        lambda records: len([r for r in records if r.x == records[k].x]),
        lambda records: _several(records, limit),
        lambda records: max(r.x for r in records),
        lambda records: _mean_of_some(records),
        lambda records: sum(r.x for r in records) - 3 * sum(r.flag for r in records),
        lambda records: sum(r.x * r.flag for r in records) / 2,
        lambda records: np.mean([r.flag for r in records]),
        lambda records: sum((r.x for r in records if not r.flag), start=1),
        lambda records: pv.forall(records, lambda r: r.flag, then=lambda r: r.x > -5),
    ]


def _rows(
    rng: np.random.Generator, special: int, cell: Callable[[np.random.Generator], Any]
) -> Callable[[int], pv.Row]:
    state = rng.bit_generator.state
    chance = float(rng.uniform(0.05, 0.9))
    depends = rng.random() < 0.25

    def row(i: int) -> pv.Row:
        again = np.random.default_rng()
        again.bit_generator.state = state
        if i == special:
            return pv.Row(x=pv.DiscreteUniform(0, 6), flag=pv.Bernoulli(0.5))
        x = cell(again)
        return pv.Row(x=x, flag=pv.Bernoulli(chance + (1 - chance) * (x > 1)) if depends else pv.Bernoulli(chance))

    return row


def tables(rng: np.random.Generator) -> tuple[pv.Attack, bool]:
    """Many equal rows and a different one."""
    few = rng.random() < 0.3
    size = 9 if few else int(rng.integers(28, 40))  # what cannot be summed is either listed quickly or not at all
    special = int(rng.choice([0, 0, size // 2, size - 1]))
    programs = table_programs(int(rng.integers(0, 3)), special)
    prior = {"records": pv.Records(size, _rows(rng, special, binary if few else discrete))}
    secrets = [lambda records: records[special].x] * 3 + [
        lambda records: records[5].x,
        lambda records: records[-1].flag,
    ]
    secrets += [lambda records: records[special].x * 2 + 3]
    secret = secrets[rng.integers(len(secrets))]
    return pv.Attack(programs[rng.integers(len(programs))], prior, secret), False


def tables_of_numbers(rng: np.random.Generator) -> tuple[pv.Attack, bool]:
    """Sums and means over rows with continuous cells, noise added or not."""
    size = int(rng.integers(8, 40))
    special = int(rng.choice([0, size - 1]))
    noise = pv.Laplace(0, float(rng.uniform(0.2, 3))) if rng.random() < 0.6 else pv.Normal(0, sd=0.5)
    prior = {"records": pv.Records(size, _rows(rng, special, continuous)), "noise": noise}
    programs = [
        lambda records, noise: sum(r.x for r in records) + noise,
        lambda records, noise: sum(r.x for r in records) / len(records) + noise,
        lambda records, noise: np.mean([r.x for r in records]) - noise,
        lambda records, noise: sum(2 * r.x - r.flag for r in records) + 0 * noise,
        lambda records, noise: sum(r.flag for r in records) + noise,
        lambda records, noise: sum(1 for r in records if r.flag) + noise,
    ]
    secrets = [lambda records: records[special].x, lambda records: records[3].x, lambda records: -records[special].x]
    return pv.Attack(programs[rng.integers(len(programs))], prior, secrets[rng.integers(len(secrets))]), False


def tables_of_random_size(rng: np.random.Generator) -> tuple[pv.Attack, bool]:
    """A table of unknown size with one row that is always there."""
    few = rng.random() < 0.4
    size = (int(rng.integers(1, 4)) if few else 28) + pv.Binomial(int(rng.integers(1, 5)), 0.5)
    cell = continuous if rng.random() < 0.4 else binary if few else discrete
    programs = [
        lambda records: sum(r.x for r in records) / len(records),
        lambda records: sum(r.x for r in records),
        lambda records: sum(1 for r in records if r.flag),
        lambda records: any(r.flag for r in records[1:]),
        lambda records: len(records) + records[0].x,
    ]
    secrets = [lambda records: records[0].x, lambda records: records[0].x, len]
    prior = {"records": pv.Records(size, _rows(rng, 0, cell))}
    return pv.Attack(programs[rng.integers(len(programs))], prior, secrets[rng.integers(len(secrets))]), False


def shared(rng: np.random.Generator) -> tuple[pv.Attack, bool]:
    """Rows that have a random quantity in common, or are compared with one."""
    common = pv.Choice([0.1, 0.4, 0.8], p=[0.5, 0.3, 0.2])
    place = pv.DiscreteUniform(0, 3)
    rows = pv.Records(8, lambda i: pv.Row(x=pv.Bernoulli(0.6), ill=pv.Bernoulli(common)))
    size = int(rng.integers(28, 40))
    known = pv.Records(size, lambda i: pv.Row(x=pv.DiscreteUniform(0, 3), ill=pv.Bernoulli(0.3)))
    prior = {"records": rows if rng.random() < 0.4 else known, "common": common, "place": place}
    programs = [
        lambda records, common, place: sum(r.ill for r in records),
        lambda records, common, place: sum(1 for r in records if r.x == place),
        lambda records, common, place: sum(1 for r in records if r.x == place and r.ill) + 0 * place,
        lambda records, common, place: all(r.ill for r in records if r.x == place),
        lambda records, common, place: (sum(r.x > place for r in records), sum(r.x >= place for r in records)),
    ]
    secrets = ["common", "place", lambda place: place == 2, lambda records: records[1].ill]
    return pv.Attack(programs[rng.integers(len(programs))], prior, secrets[rng.integers(len(secrets))]), False


KINDS = (scalar_expressions, gaussians, sums, tables, tables_of_numbers, tables_of_random_size, shared, tables)
