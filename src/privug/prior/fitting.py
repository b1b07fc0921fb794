"""Distributions learned from data, with what the data leaves open about their parameters."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal

import numpy as np

from privug.arguments import is_one_of, naming, shown
from privug.errors import PriorError
from privug.model.node import Array
from privug.model.variable import RandomVariable
from privug.prior import continuous, counts, discrete, positive
from privug.prior.choice import Choice, ChoiceFamily
from privug.prior.fitted import JEFFREYS, Fitted, check_spread
from privug.prior.frame import Column, is_missing
from privug.prior.maximum_likelihood import most_likely, uncertain
from privug.prior.positive import Gamma
from privug.prior.scalar import ScalarFamily, fitting_families

Uncertainty = bool | Literal["predictive"]
MODULES = (continuous, counts, discrete, positive)
"""Where families are that may be asked for by name: they are known once their module is imported."""
LARGEST, SMALLEST = 1e152, 1e-152  # of data whose squares are still numbers


def fit(family: Any, data: Any, *, uncertainty: Uncertainty = True, **known: Any) -> RandomVariable:
    """Return the distribution of a family that data comes from: a constructor such as `pv.Normal`, or its name.

    With `uncertainty=True` its parameters are random variables, spread as the data leaves them open: by the posterior
    of Jeffreys', the reference or a uniform prior where it has a closed form; for Laplace, Gamma, Weibull, Beta,
    StudentT, Cauchy, NegativeBinomial and DiscreteLaplace by the normal distribution around the most likely parameters
    that likelihoods tend to. Copies that Array or Records make share these parameters. With `uncertainty=False` the
    parameters are the most likely ones. With `uncertainty="predictive"` they are averaged out (Normal, Bernoulli,
    Choice): right for a single further value, and open to exact inference. Binomial must be told `n=`, Hypergeometric
    `population=` and `drawn=`, Triangular `low=` and `high=`.

    References: Bernardo and Smith, Bayesian Theory, appendix A; Gelman et al., Bayesian Data Analysis, chapter 3.

    >>> import privug as pv
    >>> from privug.prior.family import describe
    >>> describe(fit(pv.Normal, [54, 55, 59], uncertainty=False).node)
    'Normal(mean=56, sd=2.16025)'
    >>> describe(fit(pv.Bernoulli, [0, 1, 1], uncertainty="predictive").node)
    'Bernoulli(p=0.625)'
    """
    name = family if isinstance(family, str) else getattr(family, "__name__", shown(family))
    if not is_one_of(uncertainty, (True, False, "predictive")):
        raise PriorError(f"fit: uncertainty must be True, False or 'predictive', not {shown(uncertainty)}")
    families = fitting_families()
    if name not in families and name != ChoiceFamily.name:
        known_names = ", ".join(sorted([*families, ChoiceFamily.name]))
        raise PriorError(f"fit: family must be one of {known_names}, such as pv.Normal, not {shown(family)}")
    cells = _cells(data)
    entry = families.get(name)
    if unknown := known.keys() - set(entry.given if entry else ("values",)):
        raise PriorError(f"fit: {name} takes no {unknown.pop()!r} besides the data")
    if entry is None:
        fitted = _choice(cells, known.get("values", ()))
    else:
        numbers = _numbers(entry, cells)
        fitted = entry.fitted(numbers, **known) if entry.fitted else _by_likelihood(entry, numbers)
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
            raise PriorError(f"fit: the data must be single numbers or labels, not {shown(cell)}")
    if any(map(is_missing, cells)):
        raise PriorError("fit: the data has missing values; leave them out, as in column.dropna()")
    return cells


def _numbers(family: ScalarFamily, cells: Sequence[Any]) -> Array:
    if not all(isinstance(cell, bool | int | float) for cell in cells):
        wrong = next(cell for cell in cells if not isinstance(cell, bool | int | float))
        raise PriorError(f"fit: {family.name} needs numbers, not {shown(wrong)}; write pv.Choice for labels")
    if not all(abs(cell) <= LARGEST for cell in cells):
        raise PriorError(f"fit: the data must be finite, of size up to {LARGEST:g}; scale it")
    if 0 < max(map(abs, cells)) < SMALLEST:
        raise PriorError(f"fit: the data is too small, nothing above {SMALLEST:g}; scale it")
    numbers = np.array(cells, float)
    if family.data is not None and not np.all(family.data.holds(numbers)):
        wrong = numbers[~family.data.holds(numbers)][0]
        raise PriorError(f"fit: {family.name} needs {family.data.words}, not {wrong:g}")
    return numbers


def _choice(cells: list[Any], possible: Iterable[Any]) -> Fitted:
    if not isinstance(possible, Iterable) or isinstance(possible, str):
        raise PriorError(f"fit: values must be a list of what the data may hold, not {shown(possible)}")
    with naming("fit: values", PriorError):
        column = Column.of("data", cells, possible)
    values, counts = list(column.values), column.counts

    def random() -> RandomVariable:
        # Gamma variables divided by their sum have the Dirichlet distribution.
        parts: Any = Gamma(counts + JEFFREYS, rate=1.0)
        return Choice(values, parts / parts.sum())

    average = (counts + JEFFREYS) / (counts + JEFFREYS).sum()
    return Fitted(lambda: Choice(values, counts / counts.sum()), random, lambda: Choice(values, average))


def _by_likelihood(family: ScalarFamily, numbers: Array) -> Fitted:
    check_spread(family.name, numbers)
    point = most_likely(family, numbers)
    return Fitted(lambda: point.distribution(), lambda: uncertain(point, numbers))
