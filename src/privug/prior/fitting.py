"""Distributions learned from data, with what the data leaves open about their parameters."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Literal

import numpy as np

from privug.arguments import is_one_of, shown
from privug.errors import PriorError
from privug.model.node import Array
from privug.model.variable import RandomVariable
from privug.prior.choice import Choice
from privug.prior.continuous import Beta, Exponential, Gamma, Laplace, LogNormal, Normal, StudentT, Uniform
from privug.prior.discrete import Bernoulli, Binomial, DiscreteUniform, Geometric, Poisson
from privug.prior.frame import Column, is_missing
from privug.prior.maximum_likelihood import FAMILIES, most_likely, uncertain

Uncertainty = bool | Literal["predictive"]
Fitted = tuple[Callable[[], RandomVariable], Callable[[], RandomVariable] | str, Callable[[], RandomVariable] | str]
"""The most likely distribution; the one whose parameters are random; the one that has them averaged out."""

JEFFREYS = 0.5
LARGEST, SMALLEST = 1e152, 1e-152  # of data whose squares are still numbers
NO_PREDICTIVE = "no distribution here is its average over the parameters; write uncertainty=True or False"


def fit(family: Any, data: Any, *, uncertainty: Uncertainty = True, **known: Any) -> RandomVariable:
    """Return the distribution of a family that data comes from: a constructor such as `pv.Normal`, or its name.

    With `uncertainty=True` its parameters are random variables, spread as the data leaves them open: by the posterior
    of Jeffreys' or the reference prior for Normal, LogNormal, Uniform, Exponential, Bernoulli, Binomial (with `n=`),
    Poisson, Geometric and Choice; for Laplace, Gamma, Beta, StudentT, Cauchy and DiscreteLaplace by the normal
    distribution around the most likely parameters that likelihoods tend to. Copies that Array or Records make share
    these parameters. With `uncertainty=False` the parameters are the most likely ones. With `uncertainty="predictive"`
    they are averaged out (Normal, Bernoulli, Choice): right for a single further value, and open to exact inference.

    References: Bernardo and Smith, Bayesian Theory, appendix A; Gelman et al., Bayesian Data Analysis, chapter 3.

    >>> from privug.prior.family import describe
    >>> describe(fit(Normal, [54, 55, 59], uncertainty=False).node)
    'Normal(mean=56, sd=2.16025)'
    >>> describe(fit(Bernoulli, [0, 1, 1], uncertainty="predictive").node)
    'Bernoulli(p=0.625)'
    """
    name = family if isinstance(family, str) else getattr(family, "__name__", shown(family))
    if not is_one_of(uncertainty, (True, False, "predictive")):
        raise PriorError(f"fit: uncertainty must be True, False or 'predictive', not {shown(uncertainty)}")
    if name not in _CONJUGATE and name not in FAMILIES:
        known_names = ", ".join(sorted([*_CONJUGATE, *FAMILIES]))
        raise PriorError(f"fit: family must be one of {known_names}, such as pv.Normal, not {shown(family)}")
    cells = _cells(data)
    wanted = {"Binomial": {"n"}, "Choice": {"values"}}.get(name, set())
    if unknown := known.keys() - wanted:
        raise PriorError(f"fit: {name} takes no {unknown.pop()!r} besides the data")
    if name == "Choice":
        fitted = _choice(cells, known.get("values", ()))
    else:
        numbers = _numbers(name, cells)
        fitted = _CONJUGATE[name](numbers, **known) if name in _CONJUGATE else _by_likelihood(name, numbers)
    made = fitted[{False: 0, True: 1, "predictive": 2}[uncertainty]]
    if isinstance(made, str):
        raise PriorError(f"fit: {name}: {made}")
    return made()


def _cells(data: Any) -> list[Any]:
    if hasattr(data, "to_list"):
        data = data.to_list()
    elif isinstance(data, np.ndarray):
        data = data.tolist()
    if isinstance(data, str) or not isinstance(data, Iterable):
        raise PriorError(f"fit: data must be a list, an array or a column of a data frame, not {shown(data)}")
    cells = [cell.item() if isinstance(cell, np.generic) else cell for cell in data]
    if not cells:
        raise PriorError("fit: the data must not be empty")
    for cell in cells:
        if not isinstance(cell, Hashable):
            raise PriorError(f"fit: the data must be single numbers or labels, not {cell!r}")
    if any(map(is_missing, cells)):
        raise PriorError("fit: the data has missing values; leave them out, as in column.dropna()")
    return cells


def _numbers(name: str, cells: Sequence[Any]) -> Array:
    if not all(isinstance(cell, bool | int | float) for cell in cells):
        wrong = next(cell for cell in cells if not isinstance(cell, bool | int | float))
        raise PriorError(f"fit: {name} needs numbers, not {wrong!r}; write pv.Choice for labels")
    if not all(abs(cell) <= LARGEST for cell in cells):
        raise PriorError(f"fit: the data must be finite, of size up to {LARGEST:g}; scale it")
    if 0 < max(map(abs, cells)) < SMALLEST:
        raise PriorError(f"fit: the data is too small, nothing above {SMALLEST:g}; scale it")
    numbers = np.array(cells, float)
    within, words = _RANGES.get(name, (lambda x: x == x, ""))
    if not np.all(within(numbers)):
        raise PriorError(f"fit: {name} needs {words}, not {numbers[~within(numbers)][0]:g}")
    return numbers


_RANGES: dict[str, tuple[Callable[[Array], Any], str]] = {
    "LogNormal": (lambda x: x > 0, "positive numbers"),
    "Exponential": (lambda x: x >= 0, "numbers from 0 on"),
    "Gamma": (lambda x: x > 0, "positive numbers"),
    "Beta": (lambda x: (x > 0) & (x < 1), "numbers between 0 and 1, both excluded"),
    "Bernoulli": (lambda x: (x == 0) | (x == 1), "values 0 and 1, or booleans"),
    "Binomial": (lambda x: (x >= 0) & (x == np.floor(x)), "whole numbers from 0 on"),
    "Poisson": (lambda x: (x >= 0) & (x == np.floor(x)), "whole numbers from 0 on"),
    "Geometric": (lambda x: (x >= 1) & (x == np.floor(x)), "whole numbers from 1 on"),
    "DiscreteUniform": (lambda x: x == np.floor(x), "whole numbers"),
    "DiscreteLaplace": (lambda x: x == np.floor(x), "whole numbers"),
}


def _spread(name: str, numbers: Array) -> None:
    if len(numbers) < 2 or np.ptp(numbers) == 0:
        raise PriorError(f"fit: {name} needs at least two different values; write pv.Constant for a fixed one")


def _normal(numbers: Array, family: Callable[..., RandomVariable] = Normal) -> Fitted:
    _spread(family.__name__, numbers)
    count, mean, squares = len(numbers), float(numbers.mean()), float(((numbers - numbers.mean()) ** 2).sum())
    deviation = float(np.sqrt(squares / (count - 1)))

    def random() -> RandomVariable:
        # The reference posterior; the data's scale is kept apart, so that none overflows.
        sd = deviation / np.sqrt(Gamma((count - 1) / 2, rate=(count - 1) / 2))
        return family(Normal(mean, sd=sd / np.sqrt(count)), sd=sd)

    def predictive() -> RandomVariable:
        return StudentT(count - 1, mean, deviation * float(np.sqrt(1 + 1 / count)))

    return lambda: family(mean, sd=float(np.sqrt(squares / count))), random, predictive


def _log_normal(numbers: Array) -> Fitted:
    most, random, _ = _normal(np.log(numbers), LogNormal)
    return most, random, NO_PREDICTIVE


def _uniform(numbers: Array) -> Fitted:
    _spread("Uniform", numbers)
    low, width = float(numbers.min()), float(np.ptp(numbers))

    def random() -> RandomVariable:
        # With the reference prior 1 / (high - low), the share of the range that the data covers has a beta
        # distribution, and the rest falls to both sides uniformly.
        true_width = width / Beta(len(numbers) - 1, 2)
        start = low - Uniform(0, 1) * (true_width - width)
        return Uniform(start, start + true_width)

    return lambda: Uniform(low, low + width), random, NO_PREDICTIVE


def _exponential(numbers: Array) -> Fitted:
    total = float(numbers.sum())
    if not total > 0:
        raise PriorError("fit: Exponential needs at least one positive number")
    count = len(numbers)
    return (
        lambda: Exponential(scale=total / count),
        lambda: Exponential(rate=Gamma(count, rate=total)),
        NO_PREDICTIVE,
    )


def _poisson(numbers: Array) -> Fitted:
    total, count = float(numbers.sum()), len(numbers)

    def most() -> RandomVariable:
        if not total > 0:
            raise PriorError("fit: Poisson with a rate of 0: every value is 0; write uncertainty=True")
        return Poisson(total / count)

    return most, lambda: Poisson(Gamma(total + JEFFREYS, rate=count)), NO_PREDICTIVE


def _bernoulli(numbers: Array) -> Fitted:
    ones, count = float(numbers.sum()), len(numbers)
    return (
        lambda: Bernoulli(ones / count),
        lambda: Bernoulli(Beta(ones + JEFFREYS, count - ones + JEFFREYS)),
        lambda: Bernoulli((ones + JEFFREYS) / (count + 2 * JEFFREYS)),
    )


def _binomial(numbers: Array, n: Any = None) -> Fitted:
    if isinstance(n, bool) or not isinstance(n, int) or n < 1 or numbers.max() > n:
        raise PriorError(f"fit: Binomial needs n=, a whole number of trials no smaller than the data, not {n!r}")
    ones, trials = float(numbers.sum()), len(numbers) * n
    return (
        lambda: Binomial(n, ones / trials),
        lambda: Binomial(n, Beta(ones + JEFFREYS, trials - ones + JEFFREYS)),
        NO_PREDICTIVE,
    )


def _geometric(numbers: Array) -> Fitted:
    trials, count = float(numbers.sum()), len(numbers)
    return (
        lambda: Geometric(count / trials),
        lambda: Geometric(Beta(count, trials - count + JEFFREYS)),
        NO_PREDICTIVE,
    )


def _discrete_uniform(numbers: Array) -> Fitted:
    low, high = int(numbers.min()), int(numbers.max())
    return lambda: DiscreteUniform(low, high), "its ends have no such posterior; write uncertainty=False", NO_PREDICTIVE


def _laplace(numbers: Array) -> Fitted:
    _spread("Laplace", numbers)
    middle, count = float(np.median(numbers)), len(numbers)
    scale = float(np.abs(numbers - middle).mean())

    def random() -> RandomVariable:
        # Its Fisher information is 1 / scale^2 for both the location and the scale.
        width = scale * np.exp(Normal(0, sd=1 / np.sqrt(count)))
        return Laplace(Normal(middle, sd=scale / np.sqrt(count)), width)

    return lambda: Laplace(middle, scale), random, NO_PREDICTIVE


def _choice(cells: list[Any], possible: Iterable[Any]) -> Fitted:
    column = Column.of("data", cells, possible)
    values, counts = list(column.values), column.counts

    def random() -> RandomVariable:
        # Gamma variables divided by their sum have the Dirichlet distribution.
        parts: Any = Gamma(counts + JEFFREYS, rate=1.0)
        return Choice(values, parts / parts.sum())

    average = (counts + JEFFREYS) / (counts + JEFFREYS).sum()
    return lambda: Choice(values, counts / counts.sum()), random, lambda: Choice(values, average)


def _by_likelihood(name: str, numbers: Array) -> Fitted:
    _spread(name, numbers)
    point = most_likely(name, numbers)
    return lambda: point.distribution(), lambda: uncertain(point, numbers), NO_PREDICTIVE


_CONJUGATE: dict[str, Callable[..., Fitted]] = {
    "Bernoulli": _bernoulli,
    "Binomial": _binomial,
    "Choice": _choice,
    "DiscreteUniform": _discrete_uniform,
    "Exponential": _exponential,
    "Geometric": _geometric,
    "Laplace": _laplace,
    "LogNormal": _log_normal,
    "Normal": _normal,
    "Poisson": _poisson,
    "Uniform": _uniform,
}
