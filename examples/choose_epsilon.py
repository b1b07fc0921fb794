"""What epsilon should I choose? The mean of 200 incomes with Laplace noise, and the income of one new employee.

The incomes of 195 employees are known to lie between 80 and 90 (thousands); nothing is known about five new ones. The
largest epsilon is found for which an output tells at most 0.01 bit about a new employee's income, and for which the
belief in an income above 150 stays below 0.3, should the mean come out as 88. All numbers are exact.
"""

import privug as pv


def mean_income(records):
    """The program without protection."""
    return sum(row.income for row in records) / len(records)


def employee(i):
    return pv.Row(income=pv.Uniform(10, 200) if i < 5 else pv.Uniform(80, 90))


def attack_for(epsilon):
    def released(records):
        return mean_income(records) + pv.sample(pv.Laplace(0, 1 / epsilon))

    return pv.Attack(
        released,
        prior={"records": pv.Records(200, employee)},
        secret=lambda records: records[0].income,
        name="released",
    )


def belief_in_a_high_income(result):
    return result.posterior.probability(lambda income: income > 150)


if __name__ == "__main__":
    print(
        pv.sweep(attack_for, epsilon=[0.05, 0.1, 0.5, 1.0, 5.0], measures=["mutual_information"], utility=mean_income)
    )
    print()
    print(pv.calibrate(attack_for, measure="mutual_information", at_most=0.01, epsilon=(0.1, 5), grid=4))
    print(
        pv.calibrate(
            attack_for, measure=belief_in_a_high_income, at_most=0.3, observe=pv.equals(88.0), epsilon=(0.1, 5), grid=4
        )
    )
