"""The paper's own examples with their exact answers; several of the numbers it prints are wrong.

Every function builds the attack as a user would write it; `EXACT` holds the closed forms.
"""

import privug as pv

NAMES = ["Bob", "Carol", "Dave", "Erin"]


def mean_age(records):
    return sum(row.age for row in records) / len(records)


def _table(size, others):
    def row(position):
        if position == 0:
            return pv.Row(name="Alice", age=pv.Uniform(0, 100))
        return pv.Row(name=pv.Choice(NAMES), age=others())

    return pv.Records(size, row)


def aggregate(size, others) -> pv.Attack:
    """The mean age is published; Alice is the first row."""
    return pv.Attack(
        mean_age,
        prior={"records": _table(size, others)},
        secret=lambda records: records[0].age,
        observe=pv.near(55.3, within=0.005),
    )


def knows_a_lot() -> pv.Attack:
    return aggregate(4, lambda: pv.Constant(55.2))


def knows_a_bit(p, **spread) -> pv.Attack:
    return aggregate(pv.Binomial(300, p), lambda: pv.Normal(55.2, **spread))


# attack, posterior mean, posterior sd, P(age < 18)
AGGREGATES = {
    "knows a lot": (knows_a_lot, 55.6, 0.011547005383792516, 0.0),
    "knows a bit, variance 3.5, p=0.3": (lambda: knows_a_bit(0.3, var=3.5), 63.307, 16.673, 0.00447),
    "knows a bit, sd 3.5, p=0.3": (lambda: knows_a_bit(0.3, sd=3.5), 57.815, 24.138, 0.0658),
    "knows a bit, variance 3.5, p=1/3": (lambda: knows_a_bit(1 / 3, var=3.5), 63.892, 17.258, 0.00563),
}


def four_ages(**spread) -> pv.Attack:
    """The second figure: four ages with normal priors, their mean seen exactly."""

    def row(position):
        own = {name: value[position > 0] for name, value in spread.items()}
        return pv.Row(name=["Alice", *NAMES][position], age=pv.Normal(40 if position == 0 else 23, **own))

    return pv.Attack(
        mean_age,
        prior={"records": pv.Records(4, row)},
        secret=lambda records: records[0].age,
        observe=pv.equals(29.25),
    )


# attack, posterior mean of Alice's age, its variance
FOUR_AGES = {
    "variances": (lambda: four_ages(var=(3, 10)), 40 + 0.75 * 8 / (33 / 16) / 4, 3 - 9 / 33),
    "deviations": (lambda: four_ages(sd=(3, 10)), 40 + 9 / 4 * 2 / (309 / 16), 9 - 81 / 309),
}


def noisy_mean(sd_secret, sd_others) -> pv.Attack:
    """P(sd_secret, sd_others): the mean of one secret and 200 others, all normal."""
    return pv.Attack(
        lambda s, *p: (s + sum(p)) / (1 + len(p)),
        prior={"s": pv.Normal(42, sd=sd_secret), "p": pv.Array(pv.Normal(55, sd=sd_others), 200)},
        secret="s",
    )


# P(o < 55)
NOISY_MEANS = {(8, 1): 0.7881720316663294, (20, 20): 0.5182840865310744}
