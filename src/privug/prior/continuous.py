"""Continuous distributions. The second parameter of a normal is given by name: `sd=` or `var=`."""

from typing import Any

import numpy as np
import scipy

from privug.arguments import shown
from privug.errors import PriorError
from privug.model.node import Array, ConstantValue
from privug.model.variable import RandomVariable
from privug.prior.family import EXTENDED, POSITIVE, REAL, ScalarFamily, draw, parameter_node

LARGEST_LOGARITHM = 230.0  # of a mean of 1e100, more than anything that is counted or measured


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
    placed=("mean", "sd"),
    shaped=lambda normals, mean, sd: mean + sd * normals,
    log_densities=lambda values, mean, sd: np.asarray(scipy.stats.norm.logpdf(values, mean, sd)),
)
TRUNCATED_NORMAL = ScalarFamily(
    "TruncatedNormal",
    (("mean", REAL), ("sd", POSITIVE), ("low", EXTENDED), ("high", EXTENDED)),
    lambda rng, size, mean, sd, low, high: _truncated_normal(mean, sd, low, high).ppf(rng.random(size)),
    lambda mean, sd, low, high: _truncated_normal(mean, sd, low, high),
    ordered=("low", "high"),
    placed=("mean", "sd"),
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
    placed=("loc", "scale"),
)
CAUCHY = ScalarFamily(
    "Cauchy",
    (("loc", REAL), ("scale", POSITIVE)),
    lambda rng, size, loc, scale: _scaled(rng.standard_cauchy(size), loc, scale),
    lambda loc, scale: scipy.stats.cauchy(loc, scale),
    placed=("loc", "scale"),
)
LAPLACE = ScalarFamily(
    "Laplace",
    (("loc", REAL), ("scale", POSITIVE)),
    lambda rng, size, loc, scale: rng.laplace(loc, scale, size),
    lambda loc, scale: scipy.stats.laplace(loc, scale),
    placed=("loc", "scale"),
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
    return convert(_positive(name, *second))


def _positive(distribution: str, name: str, value: Any) -> Any:
    """Return a parameter to compute others from: a number, an array of numbers or a random variable, none negative."""
    node = parameter_node(distribution, name, value)
    if not isinstance(node.operation, ConstantValue):
        return RandomVariable(node)
    array = node.operation.array[0]
    if not np.all(POSITIVE.holds(array)):
        raise PriorError(f"{distribution}: {name} must be {POSITIVE.words}, not {shown(value)}")
    return array if node.shape else float(array)


def _deviation(name: str, sd: Any, var: Any, unnamed: tuple[Any, ...] = ()) -> Any:
    if unnamed:
        raise PriorError(
            f"{name}: is {shown(unnamed[0])} a deviation or a variance? "
            f"Write sd={shown(unnamed[0])} or var={shown(unnamed[0])}"
        )
    return _one_of(name, ("sd", sd), ("var", var), np.sqrt)


def _scale(name: str, scale: Any, rate: Any) -> Any:
    return _one_of(name, ("scale", scale), ("rate", rate), lambda r: 1.0 / r)


def Uniform(low: Any, high: Any) -> RandomVariable:
    """Every number between `low` and `high` equally likely."""
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


class LogNormal:
    """A quantity whose natural logarithm is normal with this mean and deviation.

    `LogNormal.of_mean` takes mean and deviation of the quantity itself.

    >>> import privug as pv
    >>> pv.LogNormal(10.7, sd=0.4)
    <RandomVariable: continuous float64>
    """

    def __new__(cls, mean: Any, *unnamed: Any, sd: Any = None, var: Any = None) -> RandomVariable:  # type: ignore[misc]
        """Make the random variable."""
        deviation = _deviation("LogNormal", sd, var, unnamed)
        made = draw(LOG_NORMAL, (mean, deviation))
        known = [parent.operation.array for parent in made.node.parents if isinstance(parent.operation, ConstantValue)]
        if len(known) == 2:
            _check_logarithm(*known)
        return made

    @staticmethod
    def of_mean(mean: Any, *unnamed: Any, sd: Any = None, var: Any = None) -> RandomVariable:
        """Make a log-normal quantity of this mean and deviation, both of the quantity itself.

        >>> import privug as pv
        >>> income = pv.LogNormal.of_mean(50_000, sd=20_000)
        >>> print(pv.Attack(lambda x: x, prior={"x": income}, secret="x").run(engine="exact").prior.mean())
        50000 (exact)
        """
        deviation = _deviation("LogNormal.of_mean", sd, var, unnamed)
        center, spread = (_positive("LogNormal.of_mean", *named) for named in (("mean", mean), ("sd", deviation)))
        variance = np.log1p(np.square(spread / center))
        return LogNormal(np.log(center) - variance / 2, sd=np.sqrt(variance))


def _check_logarithm(mean: Array, sd: Array) -> None:
    """Refuse what is surely meant otherwise: the parameters are those of the logarithm, and `exp` grows fast."""
    with np.errstate(over="ignore"):
        expected = mean + np.square(sd, dtype=float) / 2
    if np.any(expected > LARGEST_LOGARITHM) or np.any(mean < -LARGEST_LOGARITHM):
        raise PriorError(
            f"LogNormal: mean={mean.flat[0]:g} and sd={sd.flat[0]:g} are of the logarithm, so that the quantity is "
            f"about exp({mean.flat[0]:g}); for the mean and the deviation of the quantity itself write "
            "pv.LogNormal.of_mean(mean, sd=...)"
        )


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
