"""k-anonymity by masking columns: nobody is singled out any more, and little is left to look at."""

import privug as pv
from privug.mechanisms.anonymisers import k_ano

COLUMNS = ("zip", "day", "sex")
ZIPS = [f"{2000 + k}" for k in range(200)]
GOVERNOR = pv.Row(name="the governor", zip="2042", day=17, sex="male", diagnosis="ill")


def patients(position):
    """What the attacker knows: the governor's row, and how the others are distributed."""
    if position == 0:
        return GOVERNOR
    diagnosis = pv.Choice(["ill", "healthy"], p=[0.2, 0.8])
    sex = pv.Choice(["female", "male"])
    return pv.Row(name="somebody", zip=pv.Choice(ZIPS), day=pv.DiscreteUniform(0, 99), sex=sex, diagnosis=diagnosis)


def matching(released, columns):
    """The diagnoses of the released rows that show the governor's values."""
    return [row.diagnosis for row in released if all(row[column] == GOVERNOR[column] for column in columns)]


def released_with(records):
    """What of a 2-anonymous release tells something about the governor."""
    released = k_ano(records, 2, COLUMNS)
    masked = tuple(column for column in COLUMNS if released[0][column] == "*")
    same_sex = matching(released, ["sex"])
    found = any(matching(released, columns) for columns in (["zip"], ["day"], ["zip", "day"], COLUMNS))
    return masked, len(same_sex), found or (bool(same_sex) and set(same_sex) == {"ill"})


attack = pv.Attack(
    released_with,
    prior={"records": pv.Records(500, patients)},
    secret=lambda records: records[1].diagnosis,
    name="k_ano",
)

if __name__ == "__main__":
    seen = attack.run(engine="sample", samples=1_000, seed=1).prediction
    print("500 rows, k = 2, 1,000 tables:")
    for column in COLUMNS:
        print(f"  {column + ' masked':<28} {seen.probability(lambda release, c=column: c in release[0])}")
    print(f"  {'sex is all that is shown':<28} {seen.probability(lambda release: release[0] == ('zip', 'day'))}")
    print(f"  {'the diagnosis is disclosed':<28} {seen.probability(lambda release: release[2])}")
