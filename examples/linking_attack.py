"""Dropping names is not anonymisation: a public table finds Alice's diagnosis in the released one."""

import privug as pv

PROFILES = [
    ("2300", "15.06.1954", "F"),
    ("2305", "15.06.1954", "M"),
    ("2300", "09.10.1925", "F"),
    ("2310", "01.01.2000", "M"),
    ("2450", "30.09.1977", "M"),
    ("2870", "24.12.1985", "F"),
]
ALICE = PROFILES[0]  # from a public table with names


def anonymise(records):
    """The released program: everything but the name."""
    return [(row.zip, row.birthday, row.sex, row.diagnosis) for row in records]


place = pv.DiscreteUniform(0, 3)  # the attacker does not know which row is Alice's


def person(position):
    zip_code, birthday, sex = pv.where(place == position, pv.Constant(ALICE), pv.Choice(PROFILES))
    diagnosis = pv.Choice(["ill", "healthy"], p=[0.2, 0.8])
    return pv.Row(name="?", zip=zip_code, birthday=birthday, sex=sex, diagnosis=diagnosis)


attack = pv.Attack(
    lambda records, place: anonymise(records),
    prior={"records": pv.Records(4, person), "place": place},
    secret=lambda records, place: records[place].diagnosis,
    observe=pv.equals(
        [
            ("2300", "15.06.1954", "F", "ill"),
            ("2305", "15.06.1954", "M", "healthy"),
            ("2300", "09.10.1925", "F", "healthy"),
            ("2310", "01.01.2000", "M", "ill"),
        ]
    ),
    questions={"Alice is ill": lambda diagnosis: diagnosis == "ill"},
    name="linking attack",
)

if __name__ == "__main__":
    print(attack.run(samples=300, seed=1))
