"""A table of counts by zip code: privug explore examples/explore_table.py

Cases of an illness are published by zip code; small counts are suppressed. Which threshold keeps what is known of a
person who lives in the first zip code below a limit?
"""

import privug as pv

ZIPS = ("2300", "8000")
threshold = pv.parameter("suppress counts under", 0, 8, default=3)
share = pv.parameter("share of the ill", 0.05, 0.6, default=0.2)


def cases_by_zip(people):
    counts = {}
    for place in ZIPS:
        ill = sum(1 for person in people if person.ill and person.zip == place)
        counts[place] = ill if ill >= threshold else 0
    return counts


def person(position):
    return pv.Row(zip="2300" if position == 0 else pv.Choice(ZIPS), ill=pv.Bernoulli(share))


attack = pv.Attack(
    cases_by_zip,
    {"people": pv.Records(12, person)},
    secret=lambda people: people[0].ill,
    observe={"2300": pv.equals(4), "8000": pv.equals(0)},
    questions={"the first person is ill": lambda ill: ill},
    name="cases by zip code",
)
limit = pv.policy.belief(lambda ill: ill, at_most=0.8, claim="the first person is ill")

if __name__ == "__main__":
    print(attack.run())
