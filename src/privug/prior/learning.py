"""Distributions and tables learned from data, with what the data leaves open about their parameters."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy

from privug.arguments import LARGEST, as_names, is_number, is_one_of, naming, plain_number, shown
from privug.errors import PriorError
from privug.model.node import Array
from privug.model.table import Row
from privug.model.variable import RandomVariable
from privug.prior import continuous, discrete, mixture
from privug.prior import continuous as positive
from privug.prior.choice import Choice, ChoiceFamily
from privug.prior.continuous import Gamma
from privug.prior.family import draw
from privug.prior.frame import Column, Frame, frame_of, is_missing
from privug.prior.mixture import MvNormal
from privug.prior.population import (
    Population,
    TreeOfColumns,
    gaussian_copula,
    independent,
    observed_rows,
    tree_of_columns,
)
from privug.prior.scalar import JEFFREYS, Fitted, ScalarFamily, check_spread, fitting_families, middle_and_width

STEP = 1e-3  # of the differences that the curvature is computed by, on the scale of a parameter
MOST_STEPS = 4000


_FREE: dict[str, Callable[[float], float]] = {
    "own": lambda v: v,
    "log": lambda v: float(np.log(v)),
    "logit": lambda v: float(scipy.special.logit(v)),
}
_OF_FREE: dict[str, Callable[[Any], Any]] = {
    "own": lambda v: v,
    "log": np.exp,
    "logit": lambda v: 1 / (1 + np.exp(-v)),
}


@dataclass(frozen=True)
class Point:
    """Parameters of a family on the scale where each may be any number, such as logarithms of the positive ones."""

    family: ScalarFamily
    free: Array

    def parameters(self, free: Any = None) -> list[Any]:
        """Return the parameters themselves; of numbers or of random variables."""
        values = self.free if free is None else free
        return [_OF_FREE[limits.free](values[k]) for k, (_, limits) in enumerate(self.family.parameters)]

    def distribution(self) -> RandomVariable:
        """Return the distribution with these parameters."""
        return draw(self.family, [float(value) for value in self.parameters()])

    @property
    def is_allowed(self) -> bool:
        """Whether all parameters are within their limits: a search that goes on without end leaves them."""
        limits = [constraint for _, constraint in self.family.parameters]
        return all(one.holds(np.asarray(value)) for one, value in zip(limits, self.parameters(), strict=True))

    def scales(self, numbers: Array) -> Array:
        """Return by how much each free parameter must change to matter."""
        width = middle_and_width(numbers)[1]
        return np.array([width if limits.free == "own" else 1.0 for _, limits in self.family.parameters])


def most_likely(family: ScalarFamily, numbers: Array) -> Point:
    """Return the parameters under which the data is most likely."""
    assert family.start is not None
    begin = zip(family.start(numbers), family.parameters, strict=True)
    free = np.array([_FREE[limits.free](value) for value, (_, limits) in begin])
    scales = Point(family, free).scales(numbers)
    simplex = np.vstack([free, free + 0.2 * np.diag(scales)])
    options: Any = {"initial_simplex": simplex, "maxfev": MOST_STEPS, "xatol": 1e-9 * scales.min(), "fatol": 1e-12}
    # Averages, so that the tolerance does not depend on how much data there is.
    minimize: Any = scipy.optimize.minimize  # its overloads know no function of one argument
    found = minimize(
        lambda x: _cost(Point(family, x), numbers) / len(numbers), free, method="Nelder-Mead", options=options
    )
    point = Point(family, found.x)
    if not found.success or np.abs((found.x - free) / scales).max() > 30 or not point.is_allowed:
        raise PriorError(f"fit: {family.name}: the likelihood has no maximum on this data; choose another family")
    return point


def _cost(point: Point, numbers: Array) -> float:
    with np.errstate(all="ignore"):
        cost = -float(point.family.log_density(numbers, point.parameters()).sum())
    return cost if np.isfinite(cost) else 1e300


def uncertain(point: Point, numbers: Array) -> RandomVariable:
    """Return the distribution whose parameters are spread by the curvature of the likelihood around the most likely."""
    scales = point.scales(numbers)
    curvature = _curvature(lambda x: _cost(Point(point.family, x * scales), numbers), point.free / scales)
    values = np.linalg.eigvalsh(curvature)
    if not (np.isfinite(values).all() and values.min() > 1e-8 * values.max() > 0):
        raise PriorError(
            f"fit: {point.family.name}: the data leaves the parameters open; write uncertainty=False, or choose "
            "another family"
        )
    covariance = np.linalg.inv(curvature) * np.outer(scales, scales)
    free = MvNormal(point.free, (covariance + covariance.T) / 2)
    return draw(point.family, point.parameters(free))


def _curvature(function: Callable[[Array], float], at: Array) -> Array:
    """Return the second derivatives of a function by central differences."""
    size = len(at)
    steps = STEP * np.eye(size)
    result = np.empty((size, size))
    for i in range(size):
        for j in range(i + 1):
            corners = [(a, b, function(at + a * steps[i] + b * steps[j])) for a in (1, -1) for b in (1, -1)]
            result[i, j] = result[j, i] = sum(a * b * value for a, b, value in corners) / (4 * STEP**2)
    return result


Uncertainty = bool | Literal["predictive"]
MODULES = (continuous, mixture, discrete, positive)
"""Where families are that may be asked for by name: they are known once their module is imported."""
LARGEST_DATUM, SMALLEST = 1e152, 1e-152  # of data whose squares are still numbers


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
    if not all(abs(cell) <= LARGEST_DATUM for cell in cells):
        raise PriorError(f"fit: the data must be finite, of size up to {LARGEST_DATUM:g}; scale it")
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


MODELS = ("independent", "rows", "tree", "copula")


def population_table(
    data: Any,
    *,
    size: Any,
    model: str,
    target: Row | Mapping[str, Any] | None,
    position: int,
    columns: Sequence[str] | None,
    labels: Sequence[str],
    missing: str,
    **options: Any,
) -> tuple[Any, Row | Callable[[], Row], Row | None]:
    """Return the size of a table of the population, what its rows are like or are drawn by, and the target's row."""
    frame = frame_of(data, columns, labels, missing)
    population = learned(frame, model, **options)
    wanted = len(frame) if size is None else size
    if target is None:
        return wanted, population.template or population.row, None
    named = target._asdict() if isinstance(target, Row) else target
    if not isinstance(named, Mapping):
        raise PriorError(f"from_frame: target must be a pv.Row of what is known, not {shown(target)}")
    belief = {name: value.item() if isinstance(value, np.generic) else value for name, value in named.items()}
    frame.check_names(belief, "target")
    most = wanted if isinstance(wanted, int) else position + 1
    if isinstance(position, bool) or not isinstance(position, int | np.integer) or not 0 <= position < most:
        raise PriorError(f"from_frame: position must be that of a row of the table, not {shown(position)}")
    # Copying conditional tables is quicker than making them again; single columns are not.
    everyone = population.template if isinstance(population, TreeOfColumns) else None
    return wanted, everyone or population.row, _believed(population, belief)


def _believed(population: Population, belief: Mapping[str, Any]) -> Row:
    """Return a row of which some columns are known and of some a distribution; others are drawn given the known."""
    known = {name: value for name, value in belief.items() if not isinstance(value, RandomVariable)}
    row = population.row(known)
    return Row(**{**row._asdict(), **belief})


def all_but_one(
    data: Any,
    position: int,
    *,
    unknown: Sequence[str] | None,
    model: str,
    columns: Sequence[str] | None,
    labels: Sequence[str],
    missing: str,
    **options: Any,
) -> tuple[int, Callable[[int], Row]]:
    """Return the size and the rows of a table of which all is known but (some columns of) one row."""
    frame = frame_of(data, columns, labels, missing)
    if isinstance(position, bool) or not isinstance(position, int | np.integer) or not 0 <= position < len(frame):
        raise PriorError(f"knows_all_but: row must be a position from 0 to {len(frame) - 1}, not {shown(position)}")
    if len(frame) < 2:
        raise PriorError("knows_all_but: the data must have more than one row, to learn from the others")
    hidden = frame.names if unknown is None else unknown
    if not as_names("knows_all_but: unknown", hidden, PriorError):
        raise PriorError("knows_all_but: unknown must name at least one column")
    frame.check_names(hidden, "unknown")
    population = learned(frame.without(position), model, **options)
    truth = frame.row(position)
    known = {name: truth[name] for name in frame.names if name not in hidden}
    row = population.row(known)
    if not population.allows(truth, hidden):
        raise PriorError(_impossible(truth, position, hidden))
    return len(frame), lambda place: row if place == position else frame.row(place)


def _impossible(truth: Row, position: int, hidden: Sequence[str]) -> str:
    told = ", ".join(f"{name}={shown(truth[name])}" for name in hidden)
    return (
        f"knows_all_but: to an attacker who learns from the other rows, row {position} ({told}) is impossible; write "
        "smoothing=1 with values= for what a column may hold, or families= for columns of numbers"
    )


def learned(
    frame: Frame,
    model: str,
    *,
    smoothing: float = 0.0,
    values: Mapping[str, Sequence[Any]] | None = None,
    families: Mapping[str, Any] | None = None,
    uncertainty: bool = False,
) -> Population:
    """Learn a model of the population that a data set is a sample of."""
    if not is_one_of(model, MODELS):
        raise PriorError(f"from_frame: model must be one of {', '.join(map(repr, MODELS))}, not {shown(model)}")
    if not is_number(smoothing) or not 0 <= smoothing <= LARGEST:
        raise PriorError(f"from_frame: smoothing must be a number of observations, 0 or more, not {shown(smoothing)}")
    smoothing = plain_number(smoothing)
    for name, given in (("values", values), ("families", families)):
        if given is not None and not isinstance(given, Mapping):
            raise PriorError(f"from_frame: {name} must map names of columns to what they hold, not {shown(given)}")
    if (smoothing or values) and model not in ("independent", "tree"):
        raise PriorError(f"from_frame: smoothing and values need model='independent' or 'tree', not {model!r}")
    if families and model != "independent":
        raise PriorError(f"from_frame: families need model='independent', not {model!r}")
    if values and not smoothing:
        raise PriorError("from_frame: values= are possible only with smoothing=, such as smoothing=1")
    wide = frame.extended(values) if values else frame
    if model == "rows":
        return observed_rows(wide)
    if model == "tree":
        return tree_of_columns(wide, smoothing)
    if model == "copula":
        return gaussian_copula(wide)
    wide.check_names(families or {}, "families")
    fitted = {n: fit(family, frame[n].cells(), uncertainty=uncertainty) for n, family in (families or {}).items()}
    return independent(wide, smoothing, fitted)
