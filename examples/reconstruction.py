"""Harmless numbers that give people away: two means, a median with a mean, and a table of small margins.

Every posterior here is exact.
"""

import privug as pv
from privug import mechanisms


def mean(ages):
    """The mean of some ages."""
    return sum(ages) / len(ages)


def means_before_and_after(group, newcomer):
    """The mean of a group, released before somebody joins it and again after."""
    return [mean(group), mean([*group, newcomer])]


def differencing():
    """Return the attack of somebody who sees both means, and knows nothing but that ages go from 20 to 49."""
    prior = {"group": pv.Array(pv.DiscreteUniform(20, 49), 3), "newcomer": pv.DiscreteUniform(20, 49)}
    seen = [pv.near(31.67, within=0.005), pv.near(35.0, within=0.005)]
    return pv.Attack(means_before_and_after, prior, secret="newcomer", observe=seen, name="two means")


def visits_of_users(users):
    """What a dashboard shows of a small group: the median and the mean, to two digits."""
    visits = sorted(user.visits for user in users)
    middle = len(visits) // 2
    median = visits[middle] if len(visits) % 2 else (visits[middle - 1] + visits[middle]) / 2
    return {"median": float(median), "mean": round(sum(visits) / len(visits), 2)}


def small_group():
    """Return the attack of somebody who sees median 1 and mean 1.33 of fewer than 5 users, each of 1 to 9 visits."""
    users = pv.Records(pv.DiscreteUniform(1, 4), pv.Row(visits=pv.DiscreteUniform(1, 9)))
    return pv.Attack(
        visits_of_users,
        prior={"users": users},
        secret=lambda users: tuple(sorted(user.visits for user in users)),
        observe={"median": 1.0, "mean": 1.33},
        name="fewer than 5 users, median 1, mean 1.33",
    )


ORIGINS = ["A", "B", "C"]


def census(households):
    """The margins of a block of houses: by origin, by origin among owners, and by size."""
    return {
        "origin": [sum(home.origin == o for home in households) for o in ORIGINS],
        "owners": [sum(home.owned and home.origin == o for home in households) for o in ORIGINS],
        "size": [sum(home.size == s for home in households) for s in (1, 2, 3)],
    }


def household(position):
    """What is known of a house: who lives in the first owns it, as the land register says."""
    return pv.Row(
        owned=True if position == 0 else pv.Bernoulli(0.5) == 1,
        origin=pv.Choice(ORIGINS, p=[0.8, 0.15, 0.05]),
        size=pv.DiscreteUniform(1, 3),
    )


def block(program, seen):
    """Return the attack on the household in the first of four houses."""
    return pv.Attack(
        program,
        prior={"households": pv.Records(4, household)},
        secret=lambda households: households[0].origin,
        observe=seen,
        name="one household of a block",
    )


def main():
    result = differencing().run(engine="exact")
    (age, probability), *_ = result.posterior.distribution().items()
    print(f"Two means of ages:        the newcomer is {age}, P = {probability.value:g} (before: {1 / 30:.3g})")
    result = small_group().run(engine="exact")
    (visits, probability), *_ = result.posterior.distribution().items()
    print(f"Median 1 and mean 1.33:   the visits are {visits}, P = {probability.value:g}")
    table = {"origin": [3, 0, 1], "owners": [0, 0, 1], "size": [2, 1, 1]}
    hidden = {"origin": [3, 0, 0], "owners": [0, 0, 0], "size": [2, 0, 0]}
    for name, program, seen in (
        ("A table of margins:     ", census, table),
        ("Counts below 2 left out:", mechanisms.suppressed(census, fewer_than=2), hidden),
    ):
        result = block(program, seen).run(engine="exact")
        before, after = (
            belief.probability(lambda origin: origin == "C") for belief in (result.prior, result.posterior)
        )
        print(f"{name}  the owner's origin is C, P = {after.value:.4f} (before: {before.value:g})")


if __name__ == "__main__":
    main()
