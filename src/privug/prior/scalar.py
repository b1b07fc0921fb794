"""Distributions of single numbers: parameters, standard forms, and the entry that holds all that engines ask."""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy

from privug.arguments import shown
from privug.errors import PriorError
from privug.model.integers import apart
from privug.model.node import Array, ConstantValue, Kind, Shape
from privug.model.variable import RandomVariable
from privug.prior.family import NUMPY, UNKNOWN, Call, Family, Reach, Support, at_rank, parameter_node


class Constraint(NamedTuple):
    """What a parameter must satisfy, as a test on arrays and in words."""

    holds: Callable[[Array], Any]
    words: str
    free: str = "log"
    """The scale on which it may be any number: 'log', 'logit' or the parameter's 'own'."""


LARGEST = 2.0**62

REAL = Constraint(np.isfinite, "a finite number", "own")
POSITIVE = Constraint(lambda x: np.isfinite(x) & (x > 0), "a positive number")
PROBABILITY = Constraint(lambda x: (x >= 0) & (x <= 1), "a probability between 0 and 1", "logit")
# Draws of a scale up to here stay within 64 bits but for a chance of exp(-400).
POSITIVE_PROBABILITY = Constraint(
    lambda x: (x >= 1e-16) & (x <= 1), "a probability of 1e-16 or more, at most 1", "logit"
)
MODERATE = Constraint(lambda x: (x > 0) & (x <= 1e16), "a positive number up to 1e16")
COUNT = Constraint(lambda x: (x >= 0) & (x == np.floor(x)) & (x <= LARGEST), "a whole number from 0 to 2**62")
WHOLE = Constraint(lambda x: (np.abs(x) <= LARGEST) & (x == np.floor(x)), "a whole number between -2**62 and 2**62")
EXTENDED = Constraint(lambda x: ~np.isnan(x), "a number or infinity")


def scaled(array: Array, loc: Any, scale: Any) -> Array:
    """Stretch and move standard draws, in place."""
    if not isinstance(scale, float) or scale != 1.0:
        array *= scale
    if not isinstance(loc, float) or loc != 0.0:
        array += loc
    return array


def one_of(name: str, first: tuple[str, Any], second: tuple[str, Any], convert: Any) -> Any:
    """Return the first parameter; the second, converted, if that was given instead."""
    if (first[1] is None) == (second[1] is None):
        raise PriorError(f"{name} needs exactly one of {first[0]}= and {second[0]}=, given by name")
    if first[1] is not None:
        return first[1]
    converted = convert(positive_number(name, *second))
    return float(converted) if isinstance(converted, np.floating) else converted


def positive_number(distribution: str, name: str, value: Any) -> Any:
    """Return a parameter to compute others from: a number, an array of numbers or a random variable, none negative."""
    if type(value) in (int, float) and 0 < value <= sys.float_info.max:  # as in every row of a table
        return float(value)
    node = parameter_node(distribution, name, value)
    if not isinstance(node.operation, ConstantValue):
        return RandomVariable(node)
    array = node.operation.array[0]
    if not np.all(POSITIVE.holds(array)):
        raise PriorError(f"{distribution}: {name} must be {POSITIVE.words}, not {shown(value)}")
    return array if node.shape else float(array)


def deviation(name: str, sd: Any, var: Any, unnamed: tuple[Any, ...] = ()) -> Any:
    """Return the standard deviation, given as such or as a variance, by name."""
    if unnamed:
        raise PriorError(
            f"{name}: is {shown(unnamed[0])} a deviation or a variance? "
            f"Write sd={shown(unnamed[0])} or var={shown(unnamed[0])}"
        )
    return one_of(name, ("sd", sd), ("var", var), np.sqrt)


def scale_of(name: str, scale: Any, rate: Any) -> Any:
    """Return the scale, given as such or as a rate."""
    return one_of(name, ("scale", scale), ("rate", rate), lambda r: 1.0 / r)


JEFFREYS = 0.5
NO_PREDICTIVE = "no distribution here is its average over the parameters; write uncertainty=True or False"


class Fitted(NamedTuple):
    """Ways to make a distribution that data comes from, or why there is none."""

    most_likely: Callable[[], RandomVariable]
    random: Callable[[], RandomVariable] | str
    """Its parameters are random variables, spread as the data leaves them open."""
    predictive: Callable[[], RandomVariable] | str = NO_PREDICTIVE
    """It has the parameters averaged out."""


def check_spread(name: str, numbers: Array) -> None:
    """Refuse data of which all values are the same."""
    if len(numbers) < 2 or np.ptp(numbers) == 0:
        raise PriorError(f"fit: {name} needs at least two different values; write pv.Constant for a fixed one")


def middle_and_width(numbers: Array) -> tuple[float, float]:
    """Return the median, and half the distance of the quartiles."""
    low, middle, high = (float(q) for q in np.quantile(numbers, [0.25, 0.5, 0.75]))
    return middle, (high - low) / 2 or float(numbers.std())


def density_of(distribution: Any, values: Array) -> Array:
    """Return the density of one of SciPy's distributions, infinite where it is too large for a float."""
    try:
        return np.asarray(distribution.pdf(values))
    except OverflowError:  # raised for betas that are nearly all at their ends
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(distribution.logpdf(values)))


FEWEST_STEPS = 100  # of floats in the width of a distribution: with fewer it is no longer continuous
MOST_TABULATED = 1_000_000  # of whole numbers whose probabilities are tabulated
FURTHEST = 8.0  # standard deviations: beyond, one minus the level of a whole number rounds to one

MOST_TRIALS = 1000  # beyond so many, the far tails of a binomial are left out too


class Kernel(Enum):
    """What a family does to a density that it is added to, where there is a closed form for that."""

    BOX = "box"
    """The density is a difference of the distribution function, over the width; between the family's ends."""
    TWO_SIDED_EXPONENTIAL = "two-sided exponential"
    """The density is a sum of two exponential filters; parameters are the location and the scale."""


def _unknown(*_: Any) -> Any:
    """Stand for what is not known of a family."""
    return None


@dataclass(frozen=True)
class ScalarFamily(Family):
    """A family of distributions of single numbers that SciPy and NumPy know."""

    name: str
    parameters: tuple[tuple[str, Constraint], ...]
    sampler: Callable[..., Array] = field(compare=False)
    frozen: Callable[..., Any] = field(compare=False)
    """Returns SciPy's frozen distribution for given parameters."""
    kind: Kind = Kind.CONTINUOUS
    ordered: tuple[str, str] | None = None
    """Two parameters of which the first must lie below the second."""
    at_most: tuple[tuple[str, str], ...] = ()
    """Pairs of parameters of which the first must be at most the second."""
    placed: tuple[str, str] | None = None
    """The parameters that say where the values lie and how far they spread."""
    ends: tuple[float | str, float | str] = (-math.inf, math.inf)
    finite_at_ends: bool = False
    gaussian: bool = False
    log_concave: bool = False
    log_linear_tails: bool = False

    quantiles: Callable[..., Any] = field(default=_unknown, compare=False)
    by_levels: bool = False
    """Whether NumPy's numbers come from SciPy's quantiles all the same."""
    log_densities: Callable[..., Array] | None = field(default=None, compare=False)
    """The log of the density at some values; SciPy takes a millisecond to freeze a distribution."""

    order: Callable[..., Any] | None = field(default=None, compare=False)
    """The order from which on moments are infinite; None if all are finite."""
    location_scale: bool = False
    """Whether parameters move and stretch the values, and do nothing else; the order of moments needs none then."""

    kinks: Callable[..., tuple[float, ...]] = field(default=lambda *_: (), compare=False)
    """Where the density is not smooth, between its ends."""
    kernel: Kernel | None = None

    largest: Callable[..., float] | None = field(default=None, compare=False)
    """How large the whole numbers of a family can get, from its parameters."""
    likely: Callable[..., tuple[Array, Array]] | None = field(default=None, compare=False)
    """The numbers outside of which there is a probability of exp(-exponent) on each side, if quicker than SciPy."""
    trials: str | None = None
    """The parameter from whose size on far tails are left out, of a family that has ends."""
    shaped: Callable[..., Array] | None = field(default=None, compare=False)
    """How standard normal numbers become whole numbers, where that is simpler than SciPy's quantiles."""
    mass: Callable[..., Array] | None = field(default=None, compare=False)
    """The probabilities of whole numbers that are possible, where they are simpler than SciPy's."""

    pymc: Callable[..., Call | None] = field(default=_unknown, compare=False)
    numpyro: Callable[..., Call | None] = field(default=_unknown, compare=False)
    formula: Callable[..., Any] = field(default=_unknown, compare=False)
    stretched: Callable[..., tuple[Any, Any] | None] = field(default=_unknown, compare=False)

    data: Constraint | None = None
    """What data must be to come from the family; None if it may be any number."""
    fitted: Callable[..., Fitted] | None = field(default=None, compare=False)
    """The distributions that data may come from."""
    given: tuple[str, ...] = ()
    """What must be known besides data."""
    start: Callable[[Array], Sequence[float]] | None = field(default=None, compare=False)
    """Where the search for the most likely parameters begins, where there is no closed form of them."""

    latents = 1

    def __post_init__(self) -> None:
        _families[self.name] = self

    def __reduce__(self) -> tuple[Any, ...]:
        return scalar_family, (self.name,)

    def __hash__(self) -> int:
        return hash(self.name)  # roots are looked up by their family, thousands of times

    @cached_property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(name for name, _ in self.parameters)

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return np.dtype(np.float64 if self.kind is Kind.CONTINUOUS else np.int64)

    def draw(self, rng: np.random.Generator, samples: int, shape: Shape, parameters: Sequence[Array]) -> Array:
        return self.sampler(rng, (samples, *shape), *(p.item() if p.size == 1 else p for p in parameters))

    def log_density(self, values: Array, parameters: Sequence[Array]) -> Array:
        if self.log_densities is not None:
            return self.log_densities(values, *parameters)
        distribution = self.frozen(*parameters)
        log = distribution.logpdf if self.kind is Kind.CONTINUOUS else distribution.logpmf
        return np.asarray(log(values))

    def of_normals(self, normals: Array, parameters: Sequence[Array]) -> Array:
        if self.shaped is not None:
            return self.shaped(normals, *parameters)
        if self.quantiles is not _unknown and not self.by_levels:
            return np.asarray(self.quantiles(NUMPY, normals, *parameters))
        if self.kind is Kind.DISCRETE:
            normals = np.clip(normals, -FURTHEST, FURTHEST)
            steps = _steps(self, *(p.item() for p in parameters)) if all(p.size == 1 for p in parameters) else None
            if steps is not None:
                return steps[0] + np.searchsorted(steps[1], normals)
        result = np.empty(np.broadcast_shapes(normals.shape, *(p.shape for p in parameters)), self.dtype)
        upper = np.broadcast_to(normals > 0, result.shape)
        # Levels close to one are told from below: one minus a small number forgets most of its digits.
        for where, sign, name in ((~upper, 1.0, "ppf"), (upper, -1.0, "isf")):
            own = [p if p.size == 1 else np.broadcast_to(p, result.shape)[where] for p in parameters]
            levels = scipy.special.ndtr(sign * np.broadcast_to(normals, result.shape)[where])
            distribution = self.frozen(*(p.item() if p.size == 1 else p for p in own))
            # SciPy's geometric of probability one has the quantile zero, which it never takes.
            result[where] = np.clip(getattr(distribution, name)(levels), *distribution.support())
        return result

    def bound(self, parameters: Sequence[Array] | None) -> int | None:
        return None if self.largest is None or parameters is None else int(np.max(self.largest(*parameters)))

    def check(self, parameters: Sequence[Array | None]) -> None:
        for (name, constraint), array in zip(self.parameters, parameters, strict=True):
            if array is not None and not np.all(constraint.holds(array)):
                wrong = np.asarray(array)[~np.asarray(constraint.holds(array), bool)].flat[0]
                raise PriorError(f"{self.name}: {name} must be {constraint.words}, not {wrong!s}")
        for pair in (*([self.ordered] if self.ordered is not None else ()), *self.at_most):
            low, high = (parameters[self.names.index(name)] for name in pair)
            strict = self.kind is Kind.CONTINUOUS and pair is self.ordered
            if low is not None and high is not None and not np.all(low < high if strict else low <= high):
                raise PriorError(f"{self.name}: {pair[0]} must be {'below' if strict else 'at most'} {pair[1]}")

    def check_known(self, parameters: Sequence[Array | None], rank: int) -> None:
        known = at_rank(parameters, rank)
        self.check(known)
        self._check_resolution(known)

    def _check_resolution(self, parameters: Sequence[Array | None]) -> None:
        """Raise PriorError if floats are too coarse where the values lie: they would all be a few numbers."""
        ends = self.placed or (self.ordered if self.kind is Kind.CONTINUOUS else None)
        if ends is None:
            return
        place, spread = (parameters[self.names.index(name)] for name in ends)
        if place is None or spread is None:
            return
        with np.errstate(all="ignore"):
            width = spread if self.placed else spread - place
            furthest = np.abs(place) if self.placed else np.maximum(np.abs(place), np.abs(spread))
            step = np.spacing(np.where(np.isfinite(furthest), furthest, 0.0).astype(float))
        if not self.placed and np.any(np.isinf(width) & np.isfinite(place) & np.isfinite(spread)):
            raise PriorError(f"{self.name}: {ends[1]} must be a finite number at a finite distance from {ends[0]}")
        if np.any(width < FEWEST_STEPS * step):
            where, told = (np.asarray(array).flat[0] for array in (place, spread))
            raise PriorError(
                f"{self.name}: {ends[1]}={told:g} vanishes beside {ends[0]}={where:g}, where floats lie "
                f"{step.flat[0]:.2g} apart; count from another origin or in another unit, or write pv.Constant"
            )

    def reach(self, parameters: Sequence[tuple[Array | None, Reach]]) -> Reach:
        arrays = [array for array, _ in parameters if array is not None]
        if len(arrays) < len(parameters):
            order = math.inf if self.order is None or not self.location_scale else self.order()
            least = min((reach.least for _, reach in parameters), default=0.0)
            return Reach(least=min(least, order)) if self.location_scale else UNKNOWN
        if any(isinstance(end, str) for end in self.ends):
            low, high = self.frozen(*arrays).support()
        else:  # SciPy takes a millisecond to freeze a distribution
            low, high = self.ends
        order = math.inf if self.order is None else float(np.min(self.order(*arrays)))
        return Reach(float(np.min(low)), float(np.max(high)), order, order)

    @property
    def listable(self) -> bool:
        return self.kind is Kind.DISCRETE

    @property
    def _is_endless(self) -> bool:
        return -math.inf in self.ends or math.inf in self.ends

    def is_cut(self, parameters: Sequence[Array | None]) -> bool:
        trials = None if self.trials is None else parameters[self.names.index(self.trials)]
        return self._is_endless if self.trials is None else trials is None or bool(np.any(trials > MOST_TRIALS))

    def range(self, parameters: Sequence[Array], exponent: float) -> tuple[Array, Array]:
        """Return the smallest and the largest whole number for each row of parameters, far tails left out."""
        if self.likely is None and not self._is_endless:  # whole numbers, maybe beyond what floats tell apart
            low, high = (np.asarray(end) for end in self.ends_of(parameters))
            return low, high
        numbers = [np.asarray(parameter, float) for parameter in parameters]
        if self.likely is None:
            level, distribution = math.exp(-exponent), self.frozen(*numbers)
            low, high = distribution.ppf(level), distribution.isf(level)
        else:
            low, high = self.likely(exponent, *numbers)
        return np.floor(low), np.ceil(high)

    def sizes(self, parameters: Sequence[Array], exponent: float) -> Array:
        low, high = self.range(parameters, exponent)
        return apart(high, low) + 1

    def support(self, parameters: Sequence[Array], rows: int, exponent: float) -> Support:
        low, high = (np.broadcast_to(end, (rows,)) for end in self.range(parameters, exponent))
        counts = (apart(high, low) + 1).astype(np.int64)
        owner = np.repeat(np.arange(rows), counts)
        starts = np.cumsum(counts) - counts
        values = np.arange(len(owner)) - starts[owner] + low[owner].astype(np.int64)
        own = [p if p.size == 1 else p[owner] for p in parameters]
        mass = self.mass or (lambda whole, *parameters: np.asarray(self.frozen(*parameters).pmf(whole)))
        return Support(owner, values, mass(values, *own)).possible()

    def possible(self, parameters: Sequence[Array | None], exponent: float, most: int) -> Array | None:
        if not self.listable:
            return None
        known = [array for array in parameters if array is not None]
        if any(isinstance(end, str) for end in self.ends) or self._is_endless:
            if len(known) < len(parameters):
                return None
            lowest, highest = self.range(known, exponent)
            low, high = int(lowest.min()), int(highest.max())
        else:
            low, high = (int(end) for end in self.ends)
        return np.arange(low, high + 1) if high - low < most else None


_families: dict[str, "ScalarFamily"] = {}


def scalar_family(name: str) -> ScalarFamily:
    """Return the family of that name."""
    return _families[name]


def fitting_families() -> dict[str, ScalarFamily]:
    """Return the families that can be fitted to data, by their names."""
    return {name: family for name, family in _families.items() if family.fitted or family.start}


@lru_cache(maxsize=256)
def _steps(family: ScalarFamily, *parameters: float) -> tuple[int, Array] | None:
    """Return the least whole number of a family and the normal numbers at which it steps to the next; None if many."""
    distribution = family.frozen(*parameters)
    tail = float(scipy.special.ndtr(-FURTHEST))
    low = int(max(distribution.support()[0], distribution.ppf(tail)))
    high = int(min(distribution.support()[1], distribution.isf(tail)))
    if high - low > MOST_TABULATED:
        return None
    values = np.arange(low, high)
    below, above = distribution.cdf(values), distribution.sf(values)
    return low, np.where(below < above, scipy.special.ndtri(below), -scipy.special.ndtri(above))
