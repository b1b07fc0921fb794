"""Dropping names is not enough: how many rows look like the governor's, and do they give away that he is ill?"""

from itertools import combinations

import privug as pv
from privug import reidentification

COLUMNS = ("zip", "day", "sex")
SUBSETS = [subset for size in (1, 2, 3) for subset in combinations(COLUMNS, size)]
ZIPS = [f"{2000 + k}" for k in range(200)]
GOVERNOR = {"zip": "2042", "day": 17, "sex": "male", "diagnosis": "ill"}

patient = pv.Row(
    zip=pv.Choice(ZIPS),
    day=pv.DiscreteUniform(0, 99),
    sex=pv.Choice(["female", "male"]),
    diagnosis=pv.Choice(["ill", "healthy"], p=[0.2, 0.8]),
)


def patients(position):
    """The same as a function of the position, for programs of one's own: the first row is the governor's."""
    if position == 0:
        return pv.Row(**GOVERNOR)
    diagnosis = pv.Choice(["ill", "healthy"], p=[0.2, 0.8])
    return pv.Row(
        zip=pv.Choice(ZIPS), day=pv.DiscreteUniform(0, 99), sex=pv.Choice(["female", "male"]), diagnosis=diagnosis
    )


def everyone_who_matches_is_ill(records):
    """The question as an ordinary program, for all seven sets of columns."""
    governor = records[0]
    verdicts = []
    for columns in SUBSETS:
        verdicts.append(all(r.diagnosis == "ill" for r in records if all(r[c] == governor[c] for c in columns)))
    return verdicts


def histogram(belief, width=40):
    """The likeliest numbers of matching rows as bars."""
    shares = {n: share.value for n, share in belief.distribution().items() if share.value >= 0.01}
    if len(shares) > 16 or not shares:
        return f"    {belief.interval(0.9)}"
    return "\n".join(f"    {n:>4} {share:6.3f} {'#' * round(width * share)}" for n, share in sorted(shares.items()))


if __name__ == "__main__":
    for rows in (1_000, 14_000):
        table = pv.Records(rows, patient)
        print(f"{rows:,} rows, exactly:")
        print(reidentification.quasi_identifiers(table, COLUMNS, "diagnosis", person=GOVERNOR), "\n")

    table = pv.Records(1_000, patient)
    print("How many of 1,000 rows match the governor's:")
    for subset in SUBSETS:
        belief = reidentification.matching_rows(table, subset, person=GOVERNOR)
        print(f"  {' + '.join(subset)}: {belief.mean().value:.3g} on average\n{histogram(belief)}")

    for rows, samples in ((1_000, 2_000), (14_000, 300)):
        prior = {"records": pv.Records(rows, patients)}
        attack = pv.Attack(everyone_who_matches_is_ill, prior, secret=lambda records: records[1].sex)
        verdicts = attack.run(engine="sample", samples=samples, seed=1).prediction
        print(f"\nAll matching rows are ill, by running the program on {samples:,} tables of {rows:,} rows:")
        for place, subset in enumerate(SUBSETS):
            print(f"  {' + '.join(subset):<16} {verdicts.probability(lambda all_ill, place=place: all_ill[place])}")

    five = reidentification.sharing_rows(table, "zip", "diagnosis", matching=5, person=GOVERNOR)
    print("\nFive rows share his zip. That many of them are ill, and the belief that he is:")
    for ill, share in sorted(five.distribution().items()):
        print(f"  {ill}  with probability {share.value:.4f}  belief {ill / 5:.1f}")
