"""The running example to move: privug explore examples/explore_running_example.py

The mean age of a table is published. Move what is seen, how finely, and how many rows there are: when does the mean
stop telling how old Alice is?
"""

import privug as pv

UNDER_18 = {"Alice is under 18": lambda age: age < 18}


def mean_age(records):
    return sum(row.age for row in records) / len(records)


def knows_all_others(position):
    return pv.Row(age=pv.Uniform(0, 100) if position == 0 else 55.2)


def knows_their_distribution(position):
    return pv.Row(age=pv.Uniform(0, 100) if position == 0 else pv.Normal(55.2, sd=1.9))


def alice(records):
    return records[0].age


seen = pv.near(55.3, within=0.005)
lot = pv.Attack(
    mean_age, {"records": pv.Records(4, knows_all_others)}, alice, observe=seen, questions=UNDER_18, name="knows a lot"
)
bit = pv.Attack(
    mean_age,
    {"records": pv.Records(90, knows_their_distribution)},
    alice,
    observe=seen,
    questions=UNDER_18,
    name="knows a bit",
)
no_certainty = pv.policy.belief(lambda age: age < 18, at_most=0.5, claim="Alice is under 18")

if __name__ == "__main__":
    print(lot.run())
