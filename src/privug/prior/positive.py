"""Continuous distributions of positive numbers."""

import math
from typing import Any

import numpy as np
import scipy

from privug.errors import PriorError
from privug.model.node import Array
from privug.model.variable import RandomVariable
from privug.prior.family import draw
from privug.prior.fitted import Fitted, check_spread
from privug.prior.parameters import POSITIVE, Constraint, scale_of, scaled
from privug.prior.scalar import ScalarFamily

POSITIVE_NUMBERS = Constraint(lambda x: x > 0, "positive numbers")
# Below, values would be beyond the largest float; above, all would be one number.
STEEPNESS = Constraint(lambda x: (x >= 0.1) & (x <= 1e12), "a number between 0.1 and 1e12")

EXPONENTIAL = ScalarFamily(
    "Exponential",
    (("scale", POSITIVE),),
    lambda rng, size, scale: scaled(rng.standard_exponential(size), 0.0, scale),
    lambda scale: scipy.stats.expon(scale=scale),
    ends=(0.0, math.inf),
    finite_at_ends=True,
    log_concave=True,
    log_linear_tails=True,
    quantiles=lambda xp, z, scale: -scale * xp.log_ndtr(-z),
    by_levels=True,
    location_scale=True,
    pymc=lambda scale: ("Exponential", {"scale": scale}),
    numpyro=lambda scale: ("Exponential", {"rate": 1.0 / scale}),
    data=Constraint(lambda x: x >= 0, "numbers from 0 on"),
    fitted=lambda numbers: _fitted_exponential(numbers),
)
GAMMA = ScalarFamily(
    "Gamma",
    (("shape", POSITIVE), ("scale", POSITIVE)),
    lambda rng, size, shape, scale: scaled(rng.standard_gamma(shape, size), 0.0, scale),
    lambda shape, scale: scipy.stats.gamma(shape, scale=scale),
    ends=(0.0, math.inf),
    pymc=lambda shape, scale: ("Gamma", {"alpha": shape, "beta": 1.0 / scale}),
    numpyro=lambda shape, scale: ("Gamma", {"concentration": shape, "rate": 1.0 / scale}),
    stretched=lambda xp, *numbers: _stretched_gamma(xp, *numbers),
    data=POSITIVE_NUMBERS,
    start=lambda x: (float(x.mean()) ** 2 / float(x.var()), float(x.var()) / float(x.mean())),
)
WEIBULL = ScalarFamily(
    "Weibull",
    (("shape", STEEPNESS), ("scale", POSITIVE)),
    lambda rng, size, shape, scale: scaled(rng.weibull(shape, size), 0.0, scale),
    lambda shape, scale: scipy.stats.weibull_min(shape, scale=scale),
    ends=(0.0, math.inf),
    quantiles=lambda xp, z, shape, scale: scale * (-xp.log_ndtr(-z)) ** (1.0 / shape),
    pymc=lambda shape, scale: ("Weibull", {"alpha": shape, "beta": scale}),
    numpyro=lambda shape, scale: ("Weibull", {"concentration": shape, "scale": scale}),
    data=POSITIVE_NUMBERS,
    start=lambda numbers: _start_of_weibull(numbers),
)
PARETO = ScalarFamily(
    "Pareto",
    (("shape", STEEPNESS), ("low", POSITIVE)),
    lambda rng, size, shape, low: scaled(np.exp(rng.standard_exponential(size) / shape), 0.0, low),
    lambda shape, low: scipy.stats.pareto(shape, scale=low),
    ends=("low", math.inf),
    finite_at_ends=True,
    quantiles=lambda xp, z, shape, low: low * xp.exp(-xp.log_ndtr(-z) / shape),
    order=lambda shape, low: shape,
    pymc=lambda shape, low: ("Pareto", {"alpha": shape, "m": low}),
    numpyro=lambda shape, low: ("Pareto", {"alpha": shape, "scale": low}),
    data=POSITIVE_NUMBERS,
    fitted=lambda numbers: _fitted_pareto(numbers),
)


def _stretched_gamma(xp: Any, z: Any, shape: Any, scale: Any) -> tuple[Any, Any]:
    """Put gamma numbers where log-normal ones of the same mean and deviation of the logarithm lie."""
    spread = xp.sqrt(xp.polygamma(1, shape))
    value = scale * xp.exp(xp.digamma(shape) + spread * z)
    return value, xp.log(value * spread)


def _fitted_exponential(numbers: Array) -> Fitted:
    total, count = float(numbers.sum()), len(numbers)
    if not total > 0:
        raise PriorError("fit: Exponential needs at least one positive number")
    return Fitted(lambda: Exponential(scale=total / count), lambda: Exponential(rate=Gamma(count, rate=total)))


def _start_of_weibull(numbers: Array) -> tuple[float, float]:
    """Match mean and deviation of the logarithms, which are those of Gumbel's distribution."""
    logs = np.log(numbers)
    shape = math.pi / math.sqrt(6) / float(logs.std())
    return shape, math.exp(float(logs.mean()) + np.euler_gamma / shape)


def _fitted_pareto(numbers: Array) -> Fitted:
    check_spread(PARETO.name, numbers)
    low, count = float(numbers.min()), len(numbers)
    total = float(np.log(numbers / low).sum())

    def random() -> RandomVariable:
        # With the reference prior 1 / (shape * low), the smallest value is a Pareto number of shape count * shape.
        shape = Gamma(count - 1, rate=total)
        return Pareto(shape, low * np.exp(-Exponential(rate=count * shape)))

    return Fitted(lambda: Pareto(count / total, low), random)


def Exponential(*, scale: Any = None, rate: Any = None) -> RandomVariable:
    """The exponential distribution, by its mean (`scale`) or the inverse of it (`rate`).

    >>> import privug as pv
    >>> wait = pv.Attack(lambda x: x, prior={"x": pv.Exponential(scale=10)}, secret="x").run().prior
    >>> round(wait.probability(lambda x: x > 10).value, 4)
    0.3679
    """
    return draw(EXPONENTIAL, (scale_of("Exponential", scale, rate),))


def Gamma(shape: Any, *, scale: Any = None, rate: Any = None) -> RandomVariable:
    """The gamma distribution, by its shape and its scale or rate.

    >>> import privug as pv
    >>> wait = pv.Attack(lambda x: x, prior={"x": pv.Gamma(3, scale=10)}, secret="x").run().prior
    >>> round(wait.mean().value, 4)
    30.0
    """
    return draw(GAMMA, (shape, scale_of("Gamma", scale, rate)))


def Weibull(shape: Any, scale: Any) -> RandomVariable:
    """Times until something fails: P(X > x) = exp(-(x / scale)**shape); the mean is scale * gamma(1 + 1 / shape).

    >>> import privug as pv
    >>> life = pv.Attack(lambda x: x, prior={"x": pv.Weibull(2, 10)}, secret="x").run().prior
    >>> round(life.probability(lambda x: x > 10).value, 4)
    0.3679
    """
    return draw(WEIBULL, (shape, scale))


def Pareto(shape: Any, low: Any) -> RandomVariable:
    """Incomes and fortunes from `low` on: P(X > x) = (low / x)**shape.

    The mean is shape * low / (shape - 1); for a shape of 1 or less there is none.

    >>> import privug as pv
    >>> income = pv.Attack(lambda x: x, prior={"x": pv.Pareto(2, 20_000)}, secret="x").run().prior
    >>> round(income.probability(lambda x: x > 40_000).value, 4)
    0.25
    """
    return draw(PARETO, (shape, low))
