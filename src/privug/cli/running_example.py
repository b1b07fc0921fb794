"""The running example: the mean age of a table is published. What does that say about Alice?

Two attackers know that Alice is in the table and nothing about her age. One knows the other three ages
exactly; the other knows only that there are about ninety people of about 55 years.
"""

import privug as pv

NAMES = ["Bob", "Carol", "Dave", "Erin", "Frank"]


def mean_age(records):  # type: ignore[no-untyped-def]
    """The program whose output is published: ordinary Python that knows nothing of Privug."""
    return sum(row.age for row in records) / len(records)


def knows_a_lot(position: int) -> pv.Row:
    """Four rows, and all ages known but Alice's."""
    if position == 0:
        return pv.Row(name="Alice", age=pv.Uniform(0, 100))
    return pv.Row(name=pv.Choice(NAMES), age=55.2)


def knows_a_bit(position: int) -> pv.Row:
    """About ninety rows, and ages around 55 with a variance of 3.5."""
    if position == 0:
        return pv.Row(name="Alice", age=pv.Uniform(0, 100))
    return pv.Row(name=pv.Choice(NAMES), age=pv.Normal(55.2, var=3.5))


def _attack(name: str, records: pv.Records) -> pv.Attack:
    return pv.Attack(
        mean_age,
        prior={"records": records},
        secret=lambda records: records[0].age,
        observe=pv.near(55.3, within=0.005),
        questions={"Alice is under 18": lambda age: age < 18},
        name=name,
    )


lot = _attack("knows a lot", pv.Records(4, knows_a_lot))
bit = _attack("knows a bit", pv.Records(pv.Binomial(300, 0.3), knows_a_bit))
