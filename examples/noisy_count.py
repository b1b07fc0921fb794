"""A count with Laplace noise: what does seeing 3.4 say about one person's answer?"""

import privug as pv

EPSILON = 0.5


def noisy_count(answers):
    """The released program: a sum with noise of scale 1/epsilon, for differential privacy."""
    return sum(answers) + pv.sample(pv.Laplace(0, 1 / EPSILON))


attack = pv.Attack(
    noisy_count,
    prior={"answers": pv.Array(pv.Bernoulli(0.5), 5)},
    secret=lambda answers: answers[0],
    observe=pv.equals(3.4),  # the noise has a density, so an exact value is fine
    questions={"the first person said yes": lambda answer: answer == 1},
)

if __name__ == "__main__":
    print(attack.run(seed=1))
