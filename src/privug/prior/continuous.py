"""Continuous distributions. The second parameter of a normal is given by name: `sd=` or `var=`."""

from math import isinf
from typing import Any

import numpy as np
import scipy

from privug.errors import PriorError
from privug.model.node import Array, ConstantValue
from privug.model.variable import RandomVariable
from privug.prior.family import EXTENDED, POSITIVE, REAL, ScalarFamily, draw, parameter_node


def _scaled(array: Array, loc: Any, scale: Any) -> Array:
    if not isinstance(scale, float) or scale != 1.0:
        array *= scale
    if not isinstance(loc, float) or loc != 0.0:
        array += loc
    return array


UNIFORM = ScalarFamily(
    "Uniform",
    (("low", REAL), ("high", REAL)),
    lambda rng, size, low, high: _scaled(rng.random(size), low, high - low),
    lambda low, high: scipy.stats.uniform(low, high - low),
    ordered=("low", "high"),
    shaped=lambda normals, low, high: low + (high - low) * scipy.special.ndtr(normals),
)
NORMAL = ScalarFamily(
    "Normal",
    (("mean", REAL), ("sd", POSITIVE)),
    lambda rng, size, mean, sd: _scaled(rng.standard_normal(size), mean, sd),
    lambda mean, sd: scipy.stats.norm(mean, sd),
    shaped=lambda normals, mean, sd: mean + sd * normals,
    log_densities=lambda values, mean, sd: np.asarray(scipy.stats.norm.logpdf(values, mean, sd)),
)
TRUNCATED_NORMAL = ScalarFamily(
    "TruncatedNormal",
    (("mean", REAL), ("sd", POSITIVE), ("low", EXTENDED), ("high", EXTENDED)),
    lambda rng, size, mean, sd, low, high: _truncated_normal(mean, sd, low, high).ppf(rng.random(size)),
    lambda mean, sd, low, high: _truncated_normal(mean, sd, low, high),
    ordered=("low", "high"),
)
LOG_NORMAL = ScalarFamily(
    "LogNormal",
    (("mean", REAL), ("sd", POSITIVE)),
    lambda rng, size, mean, sd: np.exp(_scaled(rng.standard_normal(size), mean, sd)),
    lambda mean, sd: scipy.stats.lognorm(sd, scale=np.exp(mean)),
    shaped=lambda normals, mean, sd: np.exp(mean + sd * normals),
)
STUDENT_T = ScalarFamily(
    "StudentT",
    (("df", POSITIVE), ("loc", REAL), ("scale", POSITIVE)),
    lambda rng, size, df, loc, scale: _scaled(rng.standard_t(df, size), loc, scale),
    lambda df, loc, scale: scipy.stats.t(df, loc, scale),
)
CAUCHY = ScalarFamily(
    "Cauchy",
    (("loc", REAL), ("scale", POSITIVE)),
    lambda rng, size, loc, scale: _scaled(rng.standard_cauchy(size), loc, scale),
    lambda loc, scale: scipy.stats.cauchy(loc, scale),
)
LAPLACE = ScalarFamily(
    "Laplace",
    (("loc", REAL), ("scale", POSITIVE)),
    lambda rng, size, loc, scale: rng.laplace(loc, scale, size),
    lambda loc, scale: scipy.stats.laplace(loc, scale),
    log_densities=lambda values, loc, scale: np.asarray(scipy.stats.laplace.logpdf(values, loc, scale)),
)
EXPONENTIAL = ScalarFamily(
    "Exponential",
    (("scale", POSITIVE),),
    lambda rng, size, scale: _scaled(rng.standard_exponential(size), 0.0, scale),
    lambda scale: scipy.stats.expon(scale=scale),
)
GAMMA = ScalarFamily(
    "Gamma",
    (("shape", POSITIVE), ("scale", POSITIVE)),
    lambda rng, size, shape, scale: _scaled(rng.standard_gamma(shape, size), 0.0, scale),
    lambda shape, scale: scipy.stats.gamma(shape, scale=scale),
)
BETA = ScalarFamily(
    "Beta",
    (("a", POSITIVE), ("b", POSITIVE)),
    lambda rng, size, a, b: rng.beta(a, b, size),
    lambda a, b: scipy.stats.beta(a, b),
)


def _truncated_normal(mean: Any, sd: Any, low: Any, high: Any) -> Any:
    return scipy.stats.truncnorm((low - mean) / sd, (high - mean) / sd, loc=mean, scale=sd)


def _one_of(name: str, first: tuple[str, Any], second: tuple[str, Any], convert: Any) -> Any:
    """Return the first parameter; the second, converted, if that was given instead."""
    if (first[1] is None) == (second[1] is None):
        raise PriorError(f"{name} needs exactly one of {first[0]}= and {second[0]}=, given by name")
    if first[1] is not None:
        return first[1]
    node = parameter_node(name, second[0], second[1])
    if isinstance(node.operation, ConstantValue) and not np.all(POSITIVE.holds(node.operation.array)):
        raise PriorError(f"{name}: {second[0]} must be {POSITIVE.words}, not {second[1]}")
    return convert(RandomVariable(node) if isinstance(second[1], RandomVariable | list | tuple) else second[1])


def _deviation(name: str, sd: Any, var: Any, unnamed: tuple[Any, ...] = ()) -> Any:
    if unnamed:
        raise PriorError(
            f"{name}: is {unnamed[0]!r} a deviation or a variance? Write sd={unnamed[0]!r} or var={unnamed[0]!r}"
        )
    return _one_of(name, ("sd", sd), ("var", var), np.sqrt)


def _scale(name: str, scale: Any, rate: Any) -> Any:
    return _one_of(name, ("scale", scale), ("rate", rate), lambda r: 1.0 / r)


def Uniform(low: Any, high: Any) -> RandomVariable:
    """Every number between `low` and `high` equally likely."""
    if isinstance(low, int | float) and isinstance(high, int | float) and isinf(high - low) and not isinf(low):
        raise PriorError(f"Uniform: high must be a finite number at a finite distance from low, not {high}")
    return draw(UNIFORM, (low, high))


def Normal(mean: Any, *unnamed: Any, sd: Any = None, var: Any = None) -> RandomVariable:
    """A normal (Gaussian) quantity, by its standard deviation or its variance.

    >>> import privug as pv
    >>> pv.Normal(55.2, var=3.5)
    <RandomVariable: continuous float64>
    """
    return draw(NORMAL, (mean, _deviation("Normal", sd, var, unnamed)))


def TruncatedNormal(
    mean: Any, *, sd: Any = None, var: Any = None, low: Any = -np.inf, high: Any = np.inf
) -> RandomVariable:
    """A normal quantity known to lie between `low` and `high`; mean and sd are those before truncation."""
    return draw(TRUNCATED_NORMAL, (mean, _deviation("TruncatedNormal", sd, var), low, high))


def LogNormal(mean: Any, *unnamed: Any, sd: Any = None, var: Any = None) -> RandomVariable:
    """A quantity whose natural logarithm is normal with this mean and deviation."""
    return draw(LOG_NORMAL, (mean, _deviation("LogNormal", sd, var, unnamed)))


def StudentT(df: Any, loc: Any = 0.0, scale: Any = 1.0) -> RandomVariable:
    """Student's t with `df` degrees of freedom, shifted and scaled."""
    return draw(STUDENT_T, (df, loc, scale))


def Cauchy(loc: Any = 0.0, scale: Any = 1.0) -> RandomVariable:
    """The Cauchy distribution, which has no mean."""
    return draw(CAUCHY, (loc, scale))


def Laplace(loc: Any, scale: Any) -> RandomVariable:
    """The two-sided exponential distribution of differential privacy's noise."""
    return draw(LAPLACE, (loc, scale))


def Exponential(*, scale: Any = None, rate: Any = None) -> RandomVariable:
    """The exponential distribution, by its mean (`scale`) or the inverse of it (`rate`)."""
    return draw(EXPONENTIAL, (_scale("Exponential", scale, rate),))


def Gamma(shape: Any, *, scale: Any = None, rate: Any = None) -> RandomVariable:
    """The gamma distribution, by its shape and its scale or rate."""
    return draw(GAMMA, (shape, _scale("Gamma", scale, rate)))


def Beta(a: Any, b: Any) -> RandomVariable:
    """The beta distribution on the numbers between 0 and 1."""
    return draw(BETA, (a, b))
