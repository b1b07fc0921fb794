"""The mean of 200 incomes with Laplace noise: what it is still good for, and what it tells of a new colleague's income.

195 incomes are known to lie between 80 and 90 thousand, 5 are of new colleagues and may be anything from 10 to 200.
Nobody earns more than 200, so one person can move the mean by at most 200 / 200 = 1. Everything here is exact.
"""

import privug as pv
from privug import mechanisms

EPSILONS = [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10]
SEEN = 85.0


def person(position):
    """What the attacker knows about a row: the first five are the new colleagues."""
    return pv.Row(income=pv.Uniform(10, 200) if position < 5 else pv.Uniform(80, 90))


def mean_income(records):
    """The released program, before noise."""
    return sum(row.income for row in records) / len(records)


def attack_on(program):
    """The attacker wants the income of one of the new colleagues."""
    return pv.Attack(program, {"records": pv.Records(200, person)}, secret=lambda records: records[0].income)


def study(epsilon):
    """Return utility and leakage for one epsilon."""
    noisy = mechanisms.laplace(mean_income, sensitivity=200 / 200, epsilon=epsilon)
    result = attack_on(noisy).run(observe=pv.equals(SEEN), engine="exact")
    noiseless = attack_on(mean_income).run(engine="exact").prediction
    return {
        "epsilon": epsilon,
        "expected error": 1 / epsilon,
        "KL": pv.leakage.kl_divergence(noiseless, result.prediction).value,
        "mutual information": pv.leakage.mutual_information(result.joint).value,
        "mean": result.posterior.mean().value,
        "sd": result.posterior.std().value,
        "P(income < 50)": result.posterior.probability(lambda income: income < 50).value,
    }


def main():
    print("              utility                leakage            one new income, having seen 85")
    print("epsilon   error   KL (bit)   information (bit)     mean       sd   P(below 50)")
    for epsilon in EPSILONS:
        row = study(epsilon)
        print(
            f"{row['epsilon']:7g} {row['expected error']:7.2f} {row['KL']:10.4f} {row['mutual information']:19.6f}"
            f" {row['mean']:8.3f} {row['sd']:8.3f} {row['P(income < 50)']:13.4f}"
        )
    baseline = attack_on(mean_income).run(observe=pv.equals(SEEN), engine="exact")
    information = pv.leakage.mutual_information(baseline.joint).value
    below = baseline.posterior.probability(lambda income: income < 50).value
    print(
        f"no noise    0.00     0.0000 {information:19.6f} {baseline.posterior.mean().value:8.3f}"
        f" {baseline.posterior.std().value:8.3f} {below:13.4f}"
    )
    print(f"before     prior {'':29} {105:8.3f} {baseline.prior.std().value:8.3f} {40 / 190:13.4f}")


if __name__ == "__main__":
    main()
