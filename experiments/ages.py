"""The mean age of a table and the attackers who see it, with what they believe computed by quadrature."""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy import optimize, stats

import privug as pv

MEAN, SEEN, WITHIN = 55.2, 55.3, 0.005
NODES = 120  # of Gauss and Legendre: what is integrated over Alice's age is as smooth as a normal density
NEGLIGIBLE = 1e-17


_gauss = cache(np.polynomial.legendre.leggauss)


def mean_age(records):
    return sum(row.age for row in records) / len(records)


def result(size, others) -> pv.Result:
    """Run the attack of somebody who knows how many rows there are, and the other ages."""

    def row(position):
        return pv.Row(age=pv.Uniform(0, 100) if position == 0 else others())

    attack = pv.Attack(mean_age, {"records": pv.Records(size, row)}, secret=lambda records: records[0].age)
    return attack.run(observe=pv.near(SEEN, within=WITHIN), seed=1)


@cache
def knows_a_lot() -> pv.Result:
    """Four rows, all other ages known."""
    return result(4, lambda: MEAN)


@cache
def knows_a_bit(var: float, share: float = 0.3) -> pv.Result:
    """About ninety rows of which the ages are normal."""
    return result(pv.Binomial(300, share), lambda: pv.Normal(MEAN, var=var))


@dataclass(frozen=True)
class KnowsABit:
    """What the second attacker believes of Alice's age: by Bayes' rule for each number of rows, and quadrature."""

    var: float
    share: float = 0.3

    @cached_property
    def _sizes(self) -> tuple[np.ndarray, np.ndarray]:
        sizes = np.arange(2, 301)  # fewer rows have a probability of 1e-44
        shares = stats.binom.pmf(sizes, 300, self.share)
        likely = shares > NEGLIGIBLE
        return sizes[likely], shares[likely]

    def _likelihood(self, ages: np.ndarray) -> np.ndarray:
        """Return how likely the mean is to be seen, given Alice's age: her age is what the other ages leave."""
        sizes, shares = self._sizes
        sums = stats.norm(MEAN * (sizes - 1), np.sqrt(self.var * (sizes - 1)))
        left = [sums.cdf(sizes * (SEEN + side * WITHIN) - np.asarray(ages)[..., None]) for side in (-1, 1)]
        return ((left[1] - left[0]) * shares).sum(-1)

    def _integral(self, function, low: float = 0.0, high: float = 100.0) -> float:
        nodes, weights = _gauss(NODES)
        ages = low + (high - low) * (nodes + 1) / 2
        return float((weights * function(ages)).sum() * (high - low) / 2)

    @cached_property
    def _total(self) -> float:
        return self._integral(self._likelihood)

    def density(self, ages: np.ndarray) -> np.ndarray:
        """Return the density of Alice's age after the mean was seen."""
        return self._likelihood(ages) / self._total

    def below(self, age: float) -> float:
        """Return the probability that Alice is younger."""
        return self._integral(self.density, 0.0, age)

    def quantile(self, level: float) -> float:
        """Return the age that is not exceeded with a probability."""
        return float(optimize.brentq(lambda age: self.below(age) - level, 0, 100, xtol=1e-10))

    @property
    def mean(self) -> float:
        """The expected age."""
        return self._integral(lambda ages: ages * self.density(ages))

    @property
    def sd(self) -> float:
        """The standard deviation of the age."""
        return self._integral(lambda ages: (ages - self.mean) ** 2 * self.density(ages)) ** 0.5

    @property
    def entropy(self) -> float:
        """The differential entropy of the age, in bits."""
        return self._integral(lambda ages: -self.density(ages) * np.log2(self.density(ages)))

    @property
    def mutual_information(self) -> float:
        """I(age; mean) in bits: the entropy of the mean less that of the mean given the age."""
        sizes, shares = self._sizes
        nodes, weights = _gauss(NODES)
        means = np.arange(48.0, 62.0, 0.02)  # normal densities that are wider than 0.1, summed on a grid: no error left
        given = np.zeros((len(nodes), len(means)))
        for size, share in zip(sizes, shares, strict=True):
            centres = (50 * (nodes + 1) + MEAN * (size - 1)) / size
            sd = np.sqrt(self.var * (size - 1)) / size
            given += share * stats.norm.pdf((means - centres[:, None]) / sd) / sd

        def entropies(densities):
            return -np.where(densities > 0, densities * np.log2(np.maximum(densities, 1e-300)), 0).sum(-1) * 0.02

        return float(entropies((weights / 2) @ given) - (weights / 2) @ entropies(given))
