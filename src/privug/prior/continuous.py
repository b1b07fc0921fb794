"""Continuous distributions. The second parameter of a normal is given by name: `sd=` or `var=`."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy

from privug.errors import PriorError
from privug.model.node import Array, ConstantValue
from privug.model.variable import RandomVariable
from privug.prior.family import NUMPY, draw
from privug.prior.scalar import (
    EXTENDED,
    NO_PREDICTIVE,
    POSITIVE,
    REAL,
    Constraint,
    Fitted,
    Kernel,
    ScalarFamily,
    check_spread,
    deviation,
    middle_and_width,
    positive_number,
    scale_of,
    scaled,
)
from privug.prior.standard import Located, StandardNormal, StandardUniform

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


LOG_TWO = math.log(2.0)
LARGEST_LOGARITHM = 230.0  # of a mean of 1e100, more than anything that is counted or measured


UNIFORM = ScalarFamily(
    "Uniform",
    (("low", REAL), ("high", REAL)),
    lambda rng, size, low, high: scaled(rng.random(size), low, high - low),
    lambda low, high: Located(StandardUniform(), high - low, low),
    ordered=("low", "high"),
    ends=("low", "high"),
    finite_at_ends=True,
    log_concave=True,
    quantiles=lambda xp, z, low, high: low + (high - low) * xp.ndtr(z),
    location_scale=True,
    kernel=Kernel.BOX,
    pymc=lambda low, high: ("Uniform", {"lower": low, "upper": high}),
    numpyro=lambda low, high: ("Uniform", {"low": low, "high": high}),
    fitted=lambda numbers: _fitted_uniform(numbers),
)
NORMAL = ScalarFamily(
    "Normal",
    (("mean", REAL), ("sd", POSITIVE)),
    lambda rng, size, mean, sd: scaled(rng.standard_normal(size), mean, sd),
    lambda mean, sd: Located(StandardNormal(), sd, mean),
    placed=("mean", "sd"),
    gaussian=True,
    log_concave=True,
    quantiles=lambda xp, z, mean, sd: mean + sd * z,
    log_densities=lambda values, mean, sd: Located(StandardNormal(), sd, mean).logpdf(values),
    location_scale=True,
    pymc=lambda mean, sd: ("Normal", {"mu": mean, "sigma": sd}),
    numpyro=lambda mean, sd: ("Normal", {"loc": mean, "scale": sd}),
    fitted=lambda numbers: _fitted_normal(numbers),
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
    lambda rng, size, mean, sd: np.exp(scaled(rng.standard_normal(size), mean, sd)),
    lambda mean, sd: scipy.stats.lognorm(sd, scale=np.exp(mean)),
    ends=(0.0, math.inf),
    quantiles=lambda xp, z, mean, sd: xp.exp(mean + sd * z),
    pymc=lambda mean, sd: ("LogNormal", {"mu": mean, "sigma": sd}),
    numpyro=lambda mean, sd: ("LogNormal", {"loc": mean, "scale": sd}),
    data=Constraint(lambda x: x > 0, "positive numbers"),
    fitted=lambda numbers: _fitted_normal(np.log(numbers), LogNormal)._replace(predictive=NO_PREDICTIVE),
)
STUDENT_T = ScalarFamily(
    "StudentT",
    (("df", POSITIVE), ("loc", REAL), ("scale", POSITIVE)),
    lambda rng, size, df, loc, scale: scaled(rng.standard_t(df, size), loc, scale),
    lambda df, loc, scale: scipy.stats.t(df, loc, scale),
    placed=("loc", "scale"),
    order=lambda df, loc, scale: df,
    pymc=lambda df, loc, scale: ("StudentT", {"nu": df, "mu": loc, "sigma": scale}),
    numpyro=lambda df, loc, scale: ("StudentT", {"df": df, "loc": loc, "scale": scale}),
    stretched=lambda xp, z, df, loc, scale: (loc + scale * z, xp.broadcast_to(xp.log(scale), xp.shape(z))),
    start=lambda x: (5.0, *middle_and_width(x)),
)
CAUCHY = ScalarFamily(
    "Cauchy",
    (("loc", REAL), ("scale", POSITIVE)),
    lambda rng, size, loc, scale: scaled(rng.standard_cauchy(size), loc, scale),
    lambda loc, scale: scipy.stats.cauchy(loc, scale),
    placed=("loc", "scale"),
    quantiles=lambda xp, *numbers: _cauchy_quantiles(xp, *numbers),
    by_levels=True,
    order=lambda *_: 1.0,
    location_scale=True,
    pymc=lambda loc, scale: ("Cauchy", {"alpha": loc, "beta": scale}),
    numpyro=lambda loc, scale: ("Cauchy", {"loc": loc, "scale": scale}),
    start=middle_and_width,
)
LAPLACE = ScalarFamily(
    "Laplace",
    (("loc", REAL), ("scale", POSITIVE)),
    lambda rng, size, loc, scale: rng.laplace(loc, scale, size),
    lambda loc, scale: scipy.stats.laplace(loc, scale),
    placed=("loc", "scale"),
    log_concave=True,
    log_linear_tails=True,
    quantiles=lambda xp, z, loc, scale: loc - xp.sign(z) * scale * (LOG_TWO + xp.log_ndtr(-xp.abs(z))),
    by_levels=True,
    # SciPy takes the log of a density that is zero beyond 745 scales.
    log_densities=lambda values, loc, scale: -np.abs(values - loc) / scale - np.log(2 * scale),
    location_scale=True,
    kinks=lambda loc, scale: (float(loc),),
    kernel=Kernel.TWO_SIDED_EXPONENTIAL,
    pymc=lambda loc, scale: ("Laplace", {"mu": loc, "b": scale}),
    numpyro=lambda loc, scale: ("Laplace", {"loc": loc, "scale": scale}),
    fitted=lambda numbers: _fitted_laplace(numbers),
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
    data=Constraint(lambda x: (x > 0) & (x < 1), "numbers between 0 and 1, both excluded"),
    start=lambda numbers: _moments_of_beta(numbers),
)
TRIANGULAR = ScalarFamily(
    "Triangular",
    (("low", REAL), ("mode", REAL), ("high", REAL)),
    lambda rng, size, low, mode, high: rng.triangular(low, mode, high, size),
    lambda low, mode, high: scipy.stats.triang((mode - low) / (high - low), low, high - low),
    ordered=("low", "high"),
    at_most=(("low", "mode"), ("mode", "high")),
    ends=("low", "high"),
    quantiles=lambda xp, *numbers: _triangular_quantiles(xp, *numbers),
    location_scale=True,
    kinks=lambda low, mode, high: (float(mode),),
    pymc=lambda low, mode, high: ("Triangular", {"lower": low, "c": mode, "upper": high}),
    formula=lambda xp, *numbers: _triangular_formula(xp, *numbers),
    fitted=lambda numbers, low=None, high=None: _fitted_triangular(numbers, low, high),
    given=("low", "high"),
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


def _stretched_beta(xp: Any, z: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Put beta numbers where normal log-odds of the same mean and deviation lie."""
    spread = xp.sqrt(xp.polygamma(1, a) + xp.polygamma(1, b))
    value = xp.clip(xp.expit(xp.digamma(a) - xp.digamma(b) + spread * z), 1e-300, 1.0 - 1e-16)
    return value, xp.log(value) + xp.log1p(-value) + xp.log(spread)


def _truncated_normal(mean: Any, sd: Any, low: Any, high: Any) -> Any:
    return scipy.stats.truncnorm((low - mean) / sd, (high - mean) / sd, loc=mean, scale=sd)


def _triangular_quantiles(xp: Any, z: Any, low: Any, mode: Any, high: Any) -> Any:
    width = high - low
    # Where a side has no width its slope would be infinite, though it is not used.
    up = xp.sqrt(xp.maximum(xp.ndtr(z) * width * (mode - low), 1e-300))
    down = xp.sqrt(xp.maximum(xp.ndtr(-z) * width * (high - mode), 1e-300))
    return xp.where(xp.ndtr(z) * width < mode - low, low + up, high - down)


def _triangular_formula(xp: Any, value: Any, low: Any, mode: Any, high: Any) -> Any:
    up = (value - low) / xp.maximum(mode - low, 1e-300)
    down = (high - value) / xp.maximum(high - mode, 1e-300)
    side = xp.where(value < mode, up, xp.where(value > mode, down, 1.0))
    return xp.where(side > 0, xp.log(xp.maximum(side, 1e-300)) + xp.log(2.0 / (high - low)), -np.inf)


def _fitted_triangular(numbers: Array, low: Any, high: Any) -> Fitted:
    if not all(isinstance(end, int | float) and np.isfinite(end) for end in (low, high)):
        raise PriorError("fit: Triangular needs low= and high=, the smallest and the largest possible value")
    if not low < numbers.min() <= numbers.max() < high:
        raise PriorError(f"fit: Triangular needs data between low={low:g} and high={high:g}, both excluded")
    # Between two neighbouring values the likelihood is convex in the mode: the best one is among the values.
    logs = [_triangular_formula(NUMPY, numbers, low, mode, high).sum() for mode in numbers]
    mode = float(numbers[int(np.argmax(logs))])
    return Fitted(lambda: Triangular(low, mode, high), "its mode has no such posterior; write uncertainty=False")


def _fitted_normal(numbers: Array, family: Callable[..., RandomVariable] | None = None) -> Fitted:
    made = family or Normal
    check_spread(made.__name__, numbers)
    count, mean, squares = len(numbers), float(numbers.mean()), float(((numbers - numbers.mean()) ** 2).sum())
    spread = float(np.sqrt(squares / (count - 1)))

    def random() -> RandomVariable:
        # The reference posterior; the data's scale is kept apart, so that none overflows.
        sd = spread / np.sqrt(Gamma((count - 1) / 2, rate=(count - 1) / 2))
        return made(Normal(mean, sd=sd / np.sqrt(count)), sd=sd)

    def predictive() -> RandomVariable:
        return StudentT(count - 1, mean, spread * float(np.sqrt(1 + 1 / count)))

    return Fitted(lambda: made(mean, sd=float(np.sqrt(squares / count))), random, predictive)


def _fitted_uniform(numbers: Array) -> Fitted:
    check_spread("Uniform", numbers)
    low, width = float(numbers.min()), float(np.ptp(numbers))

    def random() -> RandomVariable:
        # With the reference prior 1 / (high - low), the share of the range that the data covers has a beta
        # distribution, and the rest falls to both sides uniformly.
        true_width = width / Beta(len(numbers) - 1, 2)
        start = low - Uniform(0, 1) * (true_width - width)
        return Uniform(start, start + true_width)

    return Fitted(lambda: Uniform(low, low + width), random)


def _fitted_laplace(numbers: Array) -> Fitted:
    check_spread("Laplace", numbers)
    middle, count = float(np.median(numbers)), len(numbers)
    scale = float(np.abs(numbers - middle).mean())

    def random() -> RandomVariable:
        # Its Fisher information is 1 / scale^2 for both the location and the scale.
        width = scale * np.exp(Normal(0, sd=1 / np.sqrt(count)))
        return Laplace(Normal(middle, sd=scale / np.sqrt(count)), width)

    return Fitted(lambda: Laplace(middle, scale), random)


def _moments_of_beta(numbers: Array) -> Sequence[float]:
    mean, var = float(numbers.mean()), float(numbers.var())
    total = max(mean * (1 - mean) / var - 1, 0.1)
    return mean * total, (1 - mean) * total


def Uniform(low: Any, high: Any) -> RandomVariable:
    """Every number between `low` and `high` equally likely.

    >>> import privug as pv
    >>> age = pv.Attack(lambda x: x, prior={"x": pv.Uniform(0, 100)}, secret="x").run().prior
    >>> round(age.probability(lambda x: x < 18).value, 4)
    0.18
    """
    return draw(UNIFORM, (low, high))


def Normal(mean: Any, *unnamed: Any, sd: Any = None, var: Any = None) -> RandomVariable:
    """A normal (Gaussian) quantity, by its standard deviation or its variance.

    >>> import privug as pv
    >>> pv.Normal(55.2, var=3.5)
    <RandomVariable: continuous float64>
    """
    return draw(NORMAL, (mean, deviation("Normal", sd, var, unnamed)))


def TruncatedNormal(
    mean: Any, *, sd: Any = None, var: Any = None, low: Any = -np.inf, high: Any = np.inf
) -> RandomVariable:
    """A normal quantity known to lie between `low` and `high`; mean and sd are those before truncation.

    >>> import privug as pv
    >>> adult = pv.TruncatedNormal(40, sd=20, low=18, high=90)
    >>> age = pv.Attack(lambda x: x, prior={"x": adult}, secret="x").run().prior
    >>> round(age.probability(lambda x: x < 40).value, 4)
    0.4246
    """
    return draw(TRUNCATED_NORMAL, (mean, deviation("TruncatedNormal", sd, var), low, high))


class LogNormal:
    """A quantity whose natural logarithm is normal with this mean and deviation.

    `LogNormal.of_mean` takes mean and deviation of the quantity itself.

    >>> import privug as pv
    >>> pv.LogNormal(10.7, sd=0.4)
    <RandomVariable: continuous float64>
    """

    def __new__(cls, mean: Any, *unnamed: Any, sd: Any = None, var: Any = None) -> RandomVariable:  # type: ignore[misc]
        """Make the random variable."""
        made = draw(LOG_NORMAL, (mean, deviation("LogNormal", sd, var, unnamed)))
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
        50,000 (exact)
        """
        named = ("mean", mean), ("sd", deviation("LogNormal.of_mean", sd, var, unnamed))
        center, spread = (positive_number("LogNormal.of_mean", *one) for one in named)
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
    """Student's t with `df` degrees of freedom, shifted and scaled.

    >>> import privug as pv
    >>> change = pv.Attack(lambda x: x, prior={"x": pv.StudentT(3)}, secret="x").run().prior
    >>> round(change.probability(lambda x: abs(x) > 3).value, 4)
    0.0577
    """
    return draw(STUDENT_T, (df, loc, scale))


def Cauchy(loc: Any = 0.0, scale: Any = 1.0) -> RandomVariable:
    """The Cauchy distribution, which has no mean.

    >>> import privug as pv
    >>> x = pv.Attack(lambda x: x, prior={"x": pv.Cauchy(0, 1)}, secret="x").run().prior
    >>> round(x.probability(lambda x: abs(x) < 1).value, 4)
    0.5
    """
    return draw(CAUCHY, (loc, scale))


def Laplace(loc: Any, scale: Any) -> RandomVariable:
    """The two-sided exponential distribution of differential privacy's noise.

    >>> import privug as pv
    >>> noise = pv.Attack(lambda x: x, prior={"x": pv.Laplace(0, scale=2)}, secret="x").run().prior
    >>> round(noise.probability(lambda x: abs(x) > 2).value, 4)
    0.3679
    """
    return draw(LAPLACE, (loc, scale))


def Beta(a: Any, b: Any) -> RandomVariable:
    """The beta distribution on the numbers between 0 and 1.

    >>> import privug as pv
    >>> share = pv.Attack(lambda x: x, prior={"x": pv.Beta(2, 6)}, secret="x").run().prior
    >>> round(share.mean().value, 4)
    0.25
    """
    return draw(BETA, (a, b))


def Triangular(low: Any, mode: Any, high: Any) -> RandomVariable:
    """A number between `low` and `high`, most likely near `mode`; the mean is (low + mode + high) / 3.

    >>> import privug as pv
    >>> cost = pv.Attack(lambda x: x, prior={"x": pv.Triangular(10, 20, 60)}, secret="x").run().prior
    >>> round(cost.mean().value, 4)
    30.0
    """
    return draw(TRIANGULAR, (low, mode, high))
