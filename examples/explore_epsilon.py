"""Choosing epsilon by looking: privug explore examples/explore_epsilon.py

A survey publishes its mean income with Laplace noise; incomes are clamped first. Which epsilon still hides whether
somebody earns more than 60,000, and what does it cost?
"""

import privug as pv

PEOPLE = 10
epsilon = pv.parameter("epsilon", 0.05, 10, default=1, scale="log")
most = pv.parameter("largest income", 50, 300, default=120, unit="thousand")


def mean_income(incomes):
    return sum(min(max(income, 0), most) for income in incomes) / PEOPLE


private_mean = pv.mechanisms.laplace(mean_income, sensitivity=most / PEOPLE, epsilon=epsilon)
attack = pv.Attack(
    private_mean,
    {"incomes": pv.Array(pv.Normal(45, sd=20), PEOPLE)},
    secret=lambda incomes: incomes[0],
    observe=pv.near(52.0, within=0.5),
    questions={"the first person earns over 60,000": lambda income: income > 60},
    name="mean income",
)

if __name__ == "__main__":
    print(attack.run())
