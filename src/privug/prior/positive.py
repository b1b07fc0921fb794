"""Continuous distributions of positive numbers."""

import math
from typing import Any

import scipy

from privug.errors import PriorError
from privug.model.node import Array
from privug.model.variable import RandomVariable
from privug.prior.family import draw
from privug.prior.fitted import Fitted
from privug.prior.parameters import POSITIVE, Constraint, scale_of, scaled
from privug.prior.scalar import ScalarFamily

EXPONENTIAL = ScalarFamily(
    "Exponential",
    (("scale", POSITIVE),),
    lambda rng, size, scale: scaled(rng.standard_exponential(size), 0.0, scale),
    lambda scale: scipy.stats.expon(scale=scale),
    ends=(0.0, math.inf),
    finite_at_ends=True,
    quantiles=lambda xp, z, scale: -scale * xp.log_ndtr(-z),
    by_levels=True,
    location_scale=True,
    characteristic=lambda t, scale: 1 / (1 - 1j * scale * t),
    far=lambda exponent, scale: exponent * scale,
    tail_scales=lambda scale: (0.0, scale),
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
    characteristic=lambda t, shape, scale: (1 - 1j * scale * t) ** -shape,
    far=lambda exponent, shape, scale: (exponent + 8 * math.sqrt(shape * exponent)) * scale,
    tail_scales=lambda shape, scale: (0.0, scale),
    pymc=lambda shape, scale: ("Gamma", {"alpha": shape, "beta": 1.0 / scale}),
    numpyro=lambda shape, scale: ("Gamma", {"concentration": shape, "rate": 1.0 / scale}),
    stretched=lambda xp, *numbers: _stretched_gamma(xp, *numbers),
    data=Constraint(lambda x: x > 0, "positive numbers"),
    start=lambda x: (float(x.mean()) ** 2 / float(x.var()), float(x.var()) / float(x.mean())),
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


def Exponential(*, scale: Any = None, rate: Any = None) -> RandomVariable:
    """The exponential distribution, by its mean (`scale`) or the inverse of it (`rate`)."""
    return draw(EXPONENTIAL, (scale_of("Exponential", scale, rate),))


def Gamma(shape: Any, *, scale: Any = None, rate: Any = None) -> RandomVariable:
    """The gamma distribution, by its shape and its scale or rate."""
    return draw(GAMMA, (shape, scale_of("Gamma", scale, rate)))
