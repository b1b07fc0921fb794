"""OpenDP's Context API as a program: a noisy mean with a budget, and what it tells of one income.

The context, with its budget, is made for every release: one release is what the attacker sees.
"""

import opendp.prelude as dp

import privug as pv
from privug import mechanisms

PEOPLE = 20


def context_of(incomes, **options):
    """Return OpenDP's context of some incomes from 0 to 100, for whoever replaces one of 20 known records."""
    return dp.Context.compositor(
        data=[float(income) for income in incomes],
        privacy_unit=dp.unit_of(contributions=2),  # one record out, another in
        privacy_loss=dp.loss_of(epsilon=2.0),
        domain=dp.vector_domain(dp.atom_domain(bounds=(0.0, 100.0), nan=False), size=PEOPLE),
        **options,
    )


def mean_with_budget():
    """Return the release. How much noise the budget asks for does not depend on the data, and is found once."""
    dp.enable_features("contrib")
    scale = context_of([0.0] * PEOPLE, split_evenly_over=1).query().mean().laplace().param()
    return lambda incomes: context_of(incomes).query().mean().laplace(scale).release()


program = mechanisms.from_factory(mean_with_budget, parameters=["incomes"], guarantee=mechanisms.Guarantee(epsilon=2.0))
attack = pv.Attack(
    program,
    prior={"incomes": pv.Array(pv.Uniform(0, 100), PEOPLE)},
    secret=lambda incomes: incomes[0],
    observe=pv.near(60, within=10),
    questions={"the income is above 80": lambda income: income > 80},
    name="a mean released by OpenDP",
)

if __name__ == "__main__":
    pv.configure(progress=False)
    result = attack.run(samples=100, seed=1)
    print(f"program: {result.lifting.tier}; promised: {program.guarantee}")
    after = result.posterior.probability(lambda income: income > 80)
    print(f"P(income > 80): 0.2 before, {after} after seeing a mean of about 60")
