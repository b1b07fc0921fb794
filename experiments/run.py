"""The paper's numbers, the exact ones and Privug's, side by side: `make reproduce`."""

import sys

from rich.console import Console
from rich.table import Table

import privug as pv


def mean_age(records):
    return sum(row.age for row in records) / len(records)


def aggregate(size, others) -> pv.Result:
    def row(position):
        return pv.Row(age=pv.Uniform(0, 100) if position == 0 else others())

    attack = pv.Attack(mean_age, {"records": pv.Records(size, row)}, secret=lambda records: records[0].age)
    return attack.run(observe=pv.near(55.3, within=0.005), samples=10_000, seed=1)


def four_ages(**spread) -> pv.Result:
    def row(position):
        own = {name: value[min(position, 1)] for name, value in spread.items()}
        return pv.Row(age=pv.Normal(40 if position == 0 else 23, **own))

    attack = pv.Attack(mean_age, {"records": pv.Records(4, row)}, secret=lambda records: records[0].age)
    return attack.run(observe=pv.equals(29.25), samples=10_000, seed=1)


def mean_of_many(sd_secret, sd_others) -> pv.Result:
    prior = {"s": pv.Normal(42, sd=sd_secret), "p": pv.Array(pv.Normal(55, sd=sd_others), 200)}
    return pv.Attack(lambda s, p: (s + p.sum()) / (1 + len(p)), prior, secret="s").run(samples=100_000, seed=1)


def posterior_lines(name, result, exact, printed):
    posterior = result.posterior
    answers = (posterior.mean(), posterior.std(), posterior.probability(lambda age: age < 18))
    for what, answer, truth, paper in zip(("mean", "sd", "P(age < 18)"), answers, exact, printed, strict=True):
        yield f"{name}: {what}", answer, truth, paper


def lines():
    yield from posterior_lines(
        "knows a lot", aggregate(4, lambda: 55.2), (55.6, 0.011547, 0.0), ("55.60", "0.01", "0.00")
    )
    rows = pv.Binomial(300, 0.3)
    yield from posterior_lines(
        "knows a bit, variance 3.5",
        aggregate(rows, lambda: pv.Normal(55.2, var=3.5)),
        (63.307, 16.673, 0.00447),
        ("64.0", "14.0", "0.004"),
    )
    yield from posterior_lines(
        "knows a bit, sd 3.5",
        aggregate(pv.Binomial(300, 0.3), lambda: pv.Normal(55.2, sd=3.5)),
        (57.815, 24.138, 0.0658),
        ("", "", ""),
    )
    for reading, spread, mean, variance in (
        ("variances", {"var": (3, 10)}, 40.7273, 2.7273),
        ("deviations", {"sd": (3, 10)}, 40.2330, 8.7379),
    ):
        result = four_ages(**spread)
        yield f"four ages as {reading}: mean", result.posterior.mean(), mean, "41"
        yield f"four ages as {reading}: sd", result.posterior.std(), variance**0.5, "2.5 (a variance)"
    for (secret, others), exact in {(8, 1): 0.788172, (20, 20): 0.518284}.items():
        answer = mean_of_many(secret, others).prediction.probability(lambda o: o < 55)
        yield f"P({secret},{others}): P(o < 55)", answer, exact, ""


def main() -> int:
    table = Table("quantity", "Privug", "exact", "paper prints", "covered")
    missed = 0
    for name, answer, exact, printed in lines():
        covered = exact in answer.widened(2)
        missed += not covered
        table.add_row(name, answer.number(), f"{exact:g}", printed, "yes" if covered else "NO")
    Console(width=110).print(table)
    print("'covered': the exact value lies within twice the 95 % interval.")
    print("The paper prints estimates without errors: its sd of 14.0 and the N(41, 2.5) of its second figure are off.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
