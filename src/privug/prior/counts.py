"""Counts that vary more, or less, than those of independent trials."""

import math
from typing import Any

import numpy as np
import scipy

from privug.arguments import shown
from privug.errors import PriorError
from privug.model.node import Array, Kind
from privug.model.variable import RandomVariable
from privug.prior.choice import Choice
from privug.prior.discrete import COUNTS, likely_successes
from privug.prior.family import draw
from privug.prior.fitted import Fitted
from privug.prior.parameters import Constraint, deviation, positive_number
from privug.prior.scalar import ScalarFamily

MODERATE_NUMBER = Constraint(lambda x: (x > 0) & (x <= 1e8), "a positive number up to 1e8")
MODERATE_PROBABILITY = Constraint(lambda x: (x >= 1e-8) & (x <= 1), "a probability of 1e-8 or more, at most 1", "logit")
PEOPLE = Constraint(lambda x: (x >= 0) & (x == np.floor(x)) & (x < 1e9), "a whole number from 0 to 999,999,999")
SOMEBODY = Constraint(lambda x: (x >= 1) & (x == np.floor(x)) & (x < 1e9), "a whole number from 1 to 999,999,999")
MOST_LISTED = 100_000  # people, of which each number may be the marked ones

NEGATIVE_BINOMIAL = ScalarFamily(
    "NegativeBinomial",
    (("n", MODERATE_NUMBER), ("p", MODERATE_PROBABILITY)),
    lambda rng, size, n, p: rng.negative_binomial(n, p, size),
    lambda n, p: scipy.stats.nbinom(n, p),
    Kind.DISCRETE,
    ends=(0, math.inf),
    pymc=lambda n, p: ("NegativeBinomial", {"n": n, "p": p}),
    formula=lambda xp, value, n, p: (
        xp.gammaln(value + n) - xp.gammaln(n) - xp.gammaln(value + 1) + n * xp.log(p) + xp.xlog1py(value, -p)
    ),
    data=COUNTS,
    start=lambda numbers: _start_of_negative_binomial(numbers),
)
HYPERGEOMETRIC = ScalarFamily(
    "Hypergeometric",
    (("population", SOMEBODY), ("marked", PEOPLE), ("drawn", PEOPLE)),
    lambda rng, size, population, marked, drawn: rng.hypergeometric(
        *(np.asarray(count, np.int64) for count in (marked, population - marked, drawn)), size
    ),
    lambda population, marked, drawn: scipy.stats.hypergeom(population, marked, drawn),
    Kind.DISCRETE,
    at_most=(("marked", "population"), ("drawn", "population")),
    ends=(0, "drawn"),
    largest=lambda population, marked, drawn: drawn,
    likely=lambda exponent, population, marked, drawn: _likely_marked(exponent, population, marked, drawn),
    trials="drawn",
    pymc=lambda population, marked, drawn: ("HyperGeometric", {"N": population, "k": marked, "n": drawn}),
    formula=lambda xp, value, population, marked, drawn: (
        _log_choose(xp, marked, value)
        + _log_choose(xp, population - marked, drawn - value)
        - _log_choose(xp, population, drawn)
    ),
    data=COUNTS,
    fitted=lambda numbers, population=None, drawn=None: _fitted_hypergeometric(numbers, population, drawn),
    given=("population", "drawn"),
)


def _likely_marked(exponent: float, population: Array, marked: Array, drawn: Array) -> tuple[Array, Array]:
    # Without replacement counts lie closer to their mean than with it (Hoeffding, 1963, section 6).
    low, high = likely_successes(exponent, drawn, marked / np.maximum(population, 1))
    return np.maximum(low, drawn + marked - population), np.minimum(high, marked)


def _log_choose(xp: Any, n: Any, k: Any) -> Any:
    """Return the log of a binomial coefficient, which is zero where there are fewer than k, or fewer than none."""
    inside = (k >= 0) & (k <= n)
    taken = xp.where(inside, k, 0)
    return xp.where(inside, xp.gammaln(n + 1.0) - xp.gammaln(taken + 1.0) - xp.gammaln(n - taken + 1.0), -np.inf)


def _start_of_negative_binomial(numbers: Array) -> tuple[float, float]:
    mean, extra = float(numbers.mean()), max(float(numbers.var() - numbers.mean()), 1e-3 * float(numbers.mean()))
    return mean**2 / extra, mean / (mean + extra)


def _fitted_hypergeometric(numbers: Array, population: Any, drawn: Any) -> Fitted:
    known = [isinstance(count, int) and not isinstance(count, bool) for count in (population, drawn)]
    if not all(known) or not numbers.max() <= drawn <= population <= MOST_LISTED:
        raise PriorError(
            f"fit: Hypergeometric needs population=, a whole number up to {MOST_LISTED}, and drawn=, one up to it and "
            f"no smaller than the data, not {shown(population)} and {shown(drawn)}"
        )
    marked = np.arange(population + 1)
    values, counts = np.unique(numbers, return_counts=True)
    logs = scipy.stats.hypergeom(population, marked[:, np.newaxis], drawn).logpmf(values) @ counts
    chances = scipy.special.softmax(logs)
    possible = chances > 0
    return Fitted(
        lambda: Hypergeometric(population, int(marked[np.argmax(logs)]), drawn),
        lambda: Hypergeometric(population, Choice(marked[possible].tolist(), chances[possible]), drawn),
    )


class NegativeBinomial:
    """The number of failures before the n-th success, in independent trials of probability `p`: 0, 1, 2, ...

    The mean is n (1 - p) / p; `n` need not be whole. `NegativeBinomial.of_mean` takes mean and deviation instead.

    >>> import privug as pv
    >>> pv.NegativeBinomial(3, 0.5)
    <RandomVariable: discrete int64>
    """

    def __new__(cls, n: Any, p: Any) -> RandomVariable:  # type: ignore[misc]
        """Make the random variable."""
        return draw(NEGATIVE_BINOMIAL, (n, p))

    @staticmethod
    def of_mean(mean: Any, *unnamed: Any, sd: Any = None, var: Any = None) -> RandomVariable:
        """Make counts of this mean and deviation, which is larger than that of a Poisson count of the same mean.

        >>> import privug as pv
        >>> visits = pv.NegativeBinomial.of_mean(4, sd=3)
        >>> print(pv.Attack(lambda x: x, prior={"x": visits}, secret="x").run(engine="exact").prior.mean())
        4 (exact)
        """
        name = "NegativeBinomial.of_mean"
        center = positive_number(name, "mean", mean)
        spread = positive_number(name, "sd", deviation(name, sd, var, unnamed))
        extra = spread * spread - center
        if not isinstance(extra, RandomVariable) and not np.all(extra > 0):
            raise PriorError(f"{name}: the variance must be larger than the mean; write pv.Poisson for equal ones")
        return NegativeBinomial(center * center / extra, center / (center + extra))


def Hypergeometric(population: Any, marked: Any, drawn: Any) -> RandomVariable:
    """How many of `drawn` people are marked, if they are drawn without replacement from a population.

    `marked` of the `population` are; the mean is drawn * marked / population.

    >>> import privug as pv
    >>> smokers = pv.Attack(lambda x: x, prior={"x": pv.Hypergeometric(10, 3, 2)}, secret="x").run().prior
    >>> round(smokers.probability(lambda x: x == 0).value, 4)
    0.4667
    """
    return draw(HYPERGEOMETRIC, (population, marked, drawn))
