"""A trap in OpenDP: the mean of a data set of known size, with `contributions=1`, is released without noise.

With a known size, no record can be added or taken away: inputs at distance 1 do not exist, and OpenDP finds that the
mean is as good as constant between them. What a person's data changes is at distance 2: one record out, another in.
Privug sees it from outside: it asks what the output tells.
"""

import opendp.prelude as dp

import privug as pv
from privug import mechanisms

INCOMES = [30.0, 45.0, 52.0, 61.0]  # the four that the attacker knows
EPSILON = 1.0


def private_mean(contributions):
    """Return a factory of OpenDP measurements: the mean of five incomes from 0 to 100, for this privacy unit."""

    def mean_of_five():
        dp.enable_features("contrib")
        incomes = dp.vector_domain(dp.atom_domain(bounds=(0.0, 100.0), nan=False), size=5)
        mean = (incomes, dp.symmetric_distance()) >> dp.t.then_mean()
        return dp.binary_search_chain(lambda scale: mean >> dp.m.then_laplace(scale), contributions, EPSILON)

    return mean_of_five


def released(contributions):
    """Return the program: what OpenDP releases, and what it promises to one who contributes so many records."""
    promise = mechanisms.Guarantee(epsilon=EPSILON)
    return mechanisms.from_factory(private_mean(contributions), parameters=["incomes"], guarantee=promise)


def main():
    for contributions in (1, 2):
        program = released(contributions)
        print(f"contributions={contributions}")
        print(mechanisms.audit(program, [([*INCOMES, 20.0], [*INCOMES, 95.0])], samples=300))
        attack = pv.Attack(
            program,
            prior={"incomes": [*INCOMES, pv.Uniform(0, 100)]},
            secret=lambda incomes: incomes[-1],
            observe=pv.near(50, within=2),  # it is 62 if the mean is 50
        )
        posterior = attack.run(samples=40, seed=1).posterior
        print(f"  posterior mean {posterior.mean().number()}, standard deviation {posterior.std().number()}\n")


if __name__ == "__main__":
    pv.configure(progress=False)
    main()
