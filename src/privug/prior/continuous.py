"""Continuous distributions. The second parameter of a normal is given by name: `sd=` or `var=`."""

import math
from typing import Any

import numpy as np
import scipy

from privug.arguments import shown
from privug.errors import PriorError
from privug.model.node import Array, ConstantValue
from privug.model.variable import RandomVariable
from privug.prior.family import draw, parameter_node
from privug.prior.scalar import EXTENDED, POSITIVE, REAL, Kernel, ScalarFamily
from privug.prior.standard_normal import StandardNormal
from privug.prior.standard_uniform import StandardUniform

LOG_TWO = math.log(2.0)
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
    ends=("low", "high"),
    finite_at_ends=True,
    quantiles=lambda xp, z, low, high: low + (high - low) * xp.ndtr(z),
    standard=lambda low, high: (StandardUniform(), high - low, low),
    location_scale=True,
    characteristic=lambda t, low, high: np.exp(0.5j * t * (low + high)) * np.sinc(t * (high - low) / (2 * np.pi)),
    envelope=lambda t, low, high: 2 / (t * (high - low)),
    kernel=Kernel.BOX,
    pymc=lambda low, high: ("Uniform", {"lower": low, "upper": high}),
    numpyro=lambda low, high: ("Uniform", {"low": low, "high": high}),
)
NORMAL = ScalarFamily(
    "Normal",
    (("mean", REAL), ("sd", POSITIVE)),
    lambda rng, size, mean, sd: _scaled(rng.standard_normal(size), mean, sd),
    lambda mean, sd: scipy.stats.norm(mean, sd),
    placed=("mean", "sd"),
    gaussian=True,
    quantiles=lambda xp, z, mean, sd: mean + sd * z,
    log_densities=lambda values, mean, sd: np.asarray(scipy.stats.norm.logpdf(values, mean, sd)),
    standard=lambda mean, sd: (StandardNormal(), sd, mean),
    location_scale=True,
    pymc=lambda mean, sd: ("Normal", {"mu": mean, "sigma": sd}),
    numpyro=lambda mean, sd: ("Normal", {"loc": mean, "scale": sd}),
)
TRUNCATED_NORMAL = ScalarFamily(
    "TruncatedNormal",
    (("mean", REAL), ("sd", POSITIVE), ("low", EXTENDED), ("high", EXTENDED)),
    lambda rng, size, mean, sd, low, high: _truncated_normal(mean, sd, low, high).ppf(rng.random(size)),
    lambda mean, sd, low, high: _truncated_normal(mean, sd, low, high),
    ordered=("low", "high"),
    placed=("mean", "sd"),
    ends=("low", "high"),
    finite_at_ends=True,
    quantiles=lambda xp, *numbers: _truncated_normal_quantiles(xp, *numbers),
    by_levels=True,
    pymc=lambda mean, sd, low, high: ("TruncatedNormal", {"mu": mean, "sigma": sd, "lower": low, "upper": high}),
    numpyro=lambda mean, sd, low, high: ("TruncatedNormal", {"loc": mean, "scale": sd, "low": low, "high": high}),
)
LOG_NORMAL = ScalarFamily(
    "LogNormal",
    (("mean", REAL), ("sd", POSITIVE)),
    lambda rng, size, mean, sd: np.exp(_scaled(rng.standard_normal(size), mean, sd)),
    lambda mean, sd: scipy.stats.lognorm(sd, scale=np.exp(mean)),
    ends=(0.0, math.inf),
    quantiles=lambda xp, z, mean, sd: xp.exp(mean + sd * z),
    pymc=lambda mean, sd: ("LogNormal", {"mu": mean, "sigma": sd}),
    numpyro=lambda mean, sd: ("LogNormal", {"loc": mean, "scale": sd}),
)
STUDENT_T = ScalarFamily(
    "StudentT",
    (("df", POSITIVE), ("loc", REAL), ("scale", POSITIVE)),
    lambda rng, size, df, loc, scale: _scaled(rng.standard_t(df, size), loc, scale),
    lambda df, loc, scale: scipy.stats.t(df, loc, scale),
    placed=("loc", "scale"),
    order=lambda df, loc, scale: df,
    pymc=lambda df, loc, scale: ("StudentT", {"nu": df, "mu": loc, "sigma": scale}),
    numpyro=lambda df, loc, scale: ("StudentT", {"df": df, "loc": loc, "scale": scale}),
    stretched=lambda xp, z, df, loc, scale: (loc + scale * z, xp.broadcast_to(xp.log(scale), xp.shape(z))),
)
CAUCHY = ScalarFamily(
    "Cauchy",
    (("loc", REAL), ("scale", POSITIVE)),
    lambda rng, size, loc, scale: _scaled(rng.standard_cauchy(size), loc, scale),
    lambda loc, scale: scipy.stats.cauchy(loc, scale),
    placed=("loc", "scale"),
    quantiles=lambda xp, *numbers: _cauchy_quantiles(xp, *numbers),
    by_levels=True,
    order=lambda *_: 1.0,
    location_scale=True,
    pymc=lambda loc, scale: ("Cauchy", {"alpha": loc, "beta": scale}),
    numpyro=lambda loc, scale: ("Cauchy", {"loc": loc, "scale": scale}),
)
LAPLACE = ScalarFamily(
    "Laplace",
    (("loc", REAL), ("scale", POSITIVE)),
    lambda rng, size, loc, scale: rng.laplace(loc, scale, size),
    lambda loc, scale: scipy.stats.laplace(loc, scale),
    placed=("loc", "scale"),
    quantiles=lambda xp, z, loc, scale: loc - xp.sign(z) * scale * (LOG_TWO + xp.log_ndtr(-xp.abs(z))),
    by_levels=True,
    log_densities=lambda values, loc, scale: np.asarray(scipy.stats.laplace.logpdf(values, loc, scale)),
    location_scale=True,
    kinks=lambda loc, scale: (float(loc),),
    characteristic=lambda t, loc, scale: np.exp(1j * t * loc) / (1 + (scale * t) ** 2),
    far=lambda exponent, loc, scale: exponent * scale,
    tail_scales=lambda loc, scale: (scale, scale),
    kernel=Kernel.TWO_SIDED_EXPONENTIAL,
    pymc=lambda loc, scale: ("Laplace", {"mu": loc, "b": scale}),
    numpyro=lambda loc, scale: ("Laplace", {"loc": loc, "scale": scale}),
)
EXPONENTIAL = ScalarFamily(
    "Exponential",
    (("scale", POSITIVE),),
    lambda rng, size, scale: _scaled(rng.standard_exponential(size), 0.0, scale),
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
)
GAMMA = ScalarFamily(
    "Gamma",
    (("shape", POSITIVE), ("scale", POSITIVE)),
    lambda rng, size, shape, scale: _scaled(rng.standard_gamma(shape, size), 0.0, scale),
    lambda shape, scale: scipy.stats.gamma(shape, scale=scale),
    ends=(0.0, math.inf),
    characteristic=lambda t, shape, scale: (1 - 1j * scale * t) ** -shape,
    far=lambda exponent, shape, scale: (exponent + 8 * math.sqrt(shape * exponent)) * scale,
    tail_scales=lambda shape, scale: (0.0, scale),
    pymc=lambda shape, scale: ("Gamma", {"alpha": shape, "beta": 1.0 / scale}),
    numpyro=lambda shape, scale: ("Gamma", {"concentration": shape, "rate": 1.0 / scale}),
    stretched=lambda xp, *numbers: _stretched_gamma(xp, *numbers),
)
BETA = ScalarFamily(
    "Beta",
    (("a", POSITIVE), ("b", POSITIVE)),
    lambda rng, size, a, b: rng.beta(a, b, size),
    lambda a, b: scipy.stats.beta(a, b),
    ends=(0.0, 1.0),
    pymc=lambda a, b: ("Beta", {"alpha": a, "beta": b}),
    numpyro=lambda a, b: ("Beta", {"concentration1": a, "concentration0": b}),
    stretched=lambda xp, *numbers: _stretched_beta(xp, *numbers),
)


def _truncated_normal_quantiles(xp: Any, z: Any, mean: Any, sd: Any, low: Any, high: Any) -> Any:
    start, end = (low - mean) / sd, (high - mean) / sd
    # In the upper tail the mirror image is computed, where small probabilities stay apart.
    mirrored = start > 0
    left, right = xp.where(mirrored, -end, start), xp.where(mirrored, -start, end)
    share = xp.ndtr(xp.where(mirrored, -z, z))
    standard = xp.ndtri(xp.ndtr(left) + share * (xp.ndtr(right) - xp.ndtr(left)))
    return mean + sd * xp.where(mirrored, -standard, standard)


def _cauchy_quantiles(xp: Any, z: Any, loc: Any, scale: Any) -> Any:
    far = xp.abs(z) > 1
    tail = xp.sign(z) / xp.tan(math.pi * xp.ndtr(-xp.where(far, xp.abs(z), 1.0)))
    return loc + scale * xp.where(far, tail, xp.tan(math.pi * (xp.ndtr(xp.where(far, 0.0, z)) - 0.5)))


def _stretched_gamma(xp: Any, z: Any, shape: Any, scale: Any) -> tuple[Any, Any]:
    """Put gamma numbers where log-normal ones of the same mean and deviation of the logarithm lie."""
    spread = xp.sqrt(xp.polygamma(1, shape))
    value = scale * xp.exp(xp.digamma(shape) + spread * z)
    return value, xp.log(value * spread)


def _stretched_beta(xp: Any, z: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Put beta numbers where normal log-odds of the same mean and deviation lie."""
    spread = xp.sqrt(xp.polygamma(1, a) + xp.polygamma(1, b))
    value = xp.clip(xp.expit(xp.digamma(a) - xp.digamma(b) + spread * z), 1e-300, 1.0 - 1e-16)
    return value, xp.log(value) + xp.log1p(-value) + xp.log(spread)


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
