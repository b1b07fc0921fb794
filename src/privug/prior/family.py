"""What a distribution is: how to draw it (NumPy), its density and moments (SciPy), what its parameters may be."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy

from privug.arguments import plain_number, refuse_code, shown
from privug.errors import PriorError
from privug.model.node import Array, ConstantValue, Context, Kind, Node, Operation, Shape, Whole
from privug.model.operations import aligned
from privug.model.variable import RandomVariable, as_node


class Constraint(NamedTuple):
    """What a parameter must satisfy, as a test on arrays and in words."""

    holds: Callable[[Array], Any]
    words: str


LARGEST = 2.0**62
PLAIN = {int, float}

REAL = Constraint(np.isfinite, "a finite number")
POSITIVE = Constraint(lambda x: np.isfinite(x) & (x > 0), "a positive number")
PROBABILITY = Constraint(lambda x: (x >= 0) & (x <= 1), "a probability between 0 and 1")
# Draws of a scale up to here stay within 64 bits but for a chance of exp(-400).
POSITIVE_PROBABILITY = Constraint(lambda x: (x >= 1e-16) & (x <= 1), "a probability of 1e-16 or more, at most 1")
MODERATE = Constraint(lambda x: (x > 0) & (x <= 1e16), "a positive number up to 1e16")
COUNT = Constraint(lambda x: (x >= 0) & (x == np.floor(x)) & (x <= LARGEST), "a whole number from 0 to 2**62")
WHOLE = Constraint(lambda x: (np.abs(x) <= LARGEST) & (x == np.floor(x)), "a whole number between -2**62 and 2**62")
EXTENDED = Constraint(lambda x: ~np.isnan(x), "a number or infinity")
FEWEST_STEPS = 100  # of floats in the width of a distribution: with fewer it is no longer continuous
MOST_STEPS = 1_000_000  # of whole numbers whose probabilities are tabulated
FURTHEST = 8.0  # standard deviations: beyond, one minus the level of a whole number rounds to one


class Family(ABC):
    """A family of distributions, such as the normal ones. Parameters are arrays, one row a sample."""

    name: str
    kind: Kind
    dtype: np.dtype[Any]
    levels: tuple[Any, ...] | None = None
    whole: Whole = False
    """Which of the values, if they are floats, a program gets as whole numbers."""
    latents: int = 0
    """How many standard normal numbers stand behind a value; none if values can only be drawn."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, samples: int, shape: Shape, parameters: Sequence[Array]) -> Array:
        """Draw a batch: `samples` independent values of the given shape."""

    @abstractmethod
    def log_density(self, values: Array, parameters: Sequence[Array]) -> Array:
        """Return the log of the density, or of the probability of a discrete value, element by element."""

    def of_normals(self, normals: Array, parameters: Sequence[Array]) -> Array:
        """Return the values that standard normal numbers stand for: the larger the number, the larger the value.

        Of families with several latents, those come last in the shape of the numbers.
        """
        raise NotImplementedError(f"{self.name} has no quantiles")

    def check(self, parameters: Sequence[Array]) -> None:  # noqa: B027
        """Raise PriorError if a parameter is out of its range."""

    def bound(self, parameters: Sequence[Array] | None) -> int | None:
        """Return how far whole numbers lie from zero at most, if that follows from what is known of the parameters."""
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
    largest: Callable[..., float] | None = field(default=None, compare=False)
    """How large the whole numbers of a family can get, from its parameters."""
    shaped: Callable[..., Array] | None = field(default=None, compare=False)
    """How standard normal numbers become values, where that is simpler than SciPy's quantiles."""

    placed: tuple[str, str] | None = None
    """The parameters that say where the values lie and how far they spread."""

    log_densities: Callable[..., Array] | None = field(default=None, compare=False)
    """The log of the density at some values; SciPy takes a millisecond to freeze a distribution."""

    latents = 1

    def __post_init__(self) -> None:
        _families[self.name] = self

    def __reduce__(self) -> tuple[Any, ...]:
        return _family_named, (self.name,)

    def __hash__(self) -> int:
        return hash(self.name)  # roots are looked up by their family, thousands of times

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
        if self.ordered is not None:
            names = [name for name, _ in self.parameters]
            low, high = (parameters[names.index(name)] for name in self.ordered)
            strict = self.kind is Kind.CONTINUOUS
            if low is not None and high is not None and not np.all(low < high if strict else low <= high):
                relation = "below" if strict else "at most"
                raise PriorError(f"{self.name}: {self.ordered[0]} must be {relation} {self.ordered[1]}")

    def check_resolution(self, parameters: Sequence[Array | None]) -> None:
        """Raise PriorError if floats are too coarse where the values lie: they would all be a few numbers."""
        names = [name for name, _ in self.parameters]
        ends = self.placed or (self.ordered if self.kind is Kind.CONTINUOUS else None)
        if ends is None:
            return
        place, spread = (parameters[names.index(name)] for name in ends)
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


_families: dict[str, "ScalarFamily"] = {}


def _family_named(name: str) -> ScalarFamily:
    return _families[name]


@lru_cache(maxsize=256)
def _steps(family: ScalarFamily, *parameters: float) -> tuple[int, Array] | None:
    """Return the least whole number of a family and the normal numbers at which it steps to the next; None if many."""
    distribution = family.frozen(*parameters)
    tail = float(scipy.special.ndtr(-FURTHEST))
    low = int(max(distribution.support()[0], distribution.ppf(tail)))
    high = int(min(distribution.support()[1], distribution.isf(tail)))
    if high - low > MOST_STEPS:
        return None
    values = np.arange(low, high)
    below, above = distribution.cdf(values), distribution.sf(values)
    return low, np.where(below < above, scipy.special.ndtri(below), -scipy.special.ndtri(above))


@dataclass(frozen=True, slots=True)
class Draw(Operation):
    """A root of the model graph: a fresh random quantity, given its parameters."""

    family: Family
    shape: Shape

    random = True

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        parameters = _at_rank(arguments, len(self.shape) + 1)
        # Fixed parameters were checked when the distribution was made; a lone sample of a random one looks like them.
        if context.samples == 1 or any(len(argument) > 1 for argument in arguments):
            self.family.check(parameters)
        return self.family.draw(context.rng, context.samples, self.shape, parameters)

    def kind(self, parents: Sequence[Node]) -> Kind:
        return self.family.kind

    def whole(self, parents: Sequence[Node]) -> Whole:
        return self.family.whole


@dataclass(frozen=True, slots=True)
class OfNormals(Operation):
    """The value of a root that standard normal numbers stand for; they come before its parameters."""

    root: Draw

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        normals, *others = arguments
        parameters = _at_rank(others, len(self.root.shape) + 1)
        if any(len(argument) > 1 for argument in others):
            self.root.family.check(parameters)
        return self.root.family.of_normals(normals, parameters)

    def kind(self, parents: Sequence[Node]) -> Kind:
        return self.root.family.kind


def _at_rank(arguments: Sequence[Any], rank: int) -> Sequence[Any]:
    if all(argument is None or argument.ndim >= rank for argument in arguments):
        return arguments
    frame = np.empty((1,) * rank)
    return [None if argument is None else aligned([frame, argument])[1] for argument in arguments]


@dataclass(frozen=True, slots=True)
class LogDensity(Operation):
    """The log density of a family at given values."""

    family: Family

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        values, *parameters = arguments
        return self.family.log_density(values, _at_rank(parameters, values.ndim))


def draw(family: Family, parameters: Sequence[Any], shape: Shape | None = None) -> RandomVariable:
    """Make the random variable of a family with parameters that may be numbers, arrays or random variables."""
    if shape is None and PLAIN.issuperset(map(type, parameters)):
        return RandomVariable(another(_root(family, *parameters)))
    return RandomVariable(_checked_root(family, parameters, shape))


def another(root: Node) -> Node:
    """Return an independent root of the same distribution as one of a single value."""
    node = Node(root.operation, root.parents, (), root.dtype, root.levels, root.kind)
    node.bound = root.bound
    return node


@lru_cache(maxsize=4096, typed=True)
def _root(family: Family, *parameters: float) -> Node:
    """Return a root that others with the same parameters are copies of: tables have thousands of them."""
    return _checked_root(family, parameters, None)


def _checked_root(family: Family, parameters: Sequence[Any], shape: Shape | None) -> Node:
    names = [name for name, _ in family.parameters] if isinstance(family, ScalarFamily) else ["p"] * len(parameters)
    nodes = tuple(parameter_node(family.name, *named) for named in zip(names, parameters, strict=True))
    if shape is None:
        try:
            shape = np.broadcast_shapes(*(node.shape for node in nodes))
        except ValueError:
            shapes = ", ".join(f"{name} {node.shape}" for name, node in zip(names, nodes, strict=True))
            raise PriorError(f"{family.name}: the shapes of the parameters do not fit together: {shapes}") from None
    if 0 in shape:
        raise PriorError(f"{family.name}: the parameters must hold at least one number each")
    known = [node.operation.array if isinstance(node.operation, ConstantValue) else None for node in nodes]
    if isinstance(family, ScalarFamily):
        family.check(_at_rank(known, len(shape) + 1))
        family.check_resolution(_at_rank(known, len(shape) + 1))
    elif all(array is not None for array in known):
        family.check([array for array in known if array is not None])
    return draw_node(family, nodes, shape)


def parameter_node(distribution: str, name: str, value: Any) -> Node:
    """Return the node of a parameter, which must be a number, an array of numbers or a random variable."""
    refuse_code(f"{distribution}: {name}", value, PriorError)
    try:
        node = as_node(plain_number(value))
    except (TypeError, ValueError) as error:
        raise PriorError(f"{distribution}: {name} must be a number or numbers, not {shown(value)} ({error})") from None
    if node.levels is not None:
        raise PriorError(f"{distribution}: {name} must be a number, not {_described(node)}")
    return node


def draw_node(family: Family, parameters: tuple[Node, ...], shape: Shape) -> Node:
    """Make the root node of a family."""
    node = Node(Draw(family, shape), parameters, shape, family.dtype, family.levels, family.kind)
    if node.dtype.kind == "i" and node.levels is None:
        known = [p.operation.array for p in parameters if isinstance(p.operation, ConstantValue)]
        node.bound = family.bound(known) if len(known) == len(parameters) else family.bound(None)
    return node


def _described(node: Node) -> str:
    return shown(node.levels[0]) if node.levels and len(node.levels) == 1 else "a category"


def family_of(root: Node) -> Family:
    """Return the family that a root of the model graph is drawn from."""
    assert isinstance(root.operation, Draw)
    return root.operation.family


def is_distribution(value: Any) -> bool:
    """Say whether a value came straight from a distribution's constructor."""
    return isinstance(value, RandomVariable) and isinstance(value.node.operation, Draw)


def replicate(distribution: RandomVariable, shape: Shape = ()) -> RandomVariable:
    """Make a new, independent quantity with the same distribution, or an array of them; parameters are shared."""
    node = distribution.node
    assert isinstance(node.operation, Draw)
    return RandomVariable(draw_node(node.operation.family, node.parents, (*shape, *node.shape)))


def describe(node: Node) -> str | None:
    """Return a distribution in words, such as 'Uniform(low=0, high=100)'; None if its parameters are not fixed."""
    if not isinstance(node.operation, Draw) or not isinstance(node.operation.family, ScalarFamily) or node.shape:
        return None
    values = []
    for (name, _), parent in zip(node.operation.family.parameters, node.parents, strict=True):
        if not isinstance(parent.operation, ConstantValue):
            return None
        values.append(f"{name}={parent.operation.array[0]:g}")
    return f"{node.operation.family.name}({', '.join(values)})"
