"""What a distribution is to every engine: how it is drawn, its density, support, range and moments."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy

from privug.arguments import plain_number, refuse_code, shown
from privug.errors import PriorError, UnsuitableEngine
from privug.model.node import Array, ConstantValue, Context, Kind, Node, Operation, Shape, Whole
from privug.model.operations import aligned
from privug.model.variable import RandomVariable, as_node, stack_values


class Support(NamedTuple):
    """Values with their probabilities; `owner` is the row of parameters that each belongs to."""

    owner: Array
    values: Array
    probabilities: Array

    def possible(self) -> "Support":
        """Return the values of positive probability."""
        there = self.probabilities > 0
        return self if there.all() else Support(*(part[there] for part in self))


class Reach(NamedTuple):
    """The range of a quantity, and its moments: E|x|^p is finite for all p below `least`, and for none from `most` on.

    >>> Reach(0.0, 1.0, math.inf).has(2), Reach().has(1), Reach(most=1.0).has(1)
    (True, None, False)
    """

    low: float = -math.inf
    high: float = math.inf
    least: float = 0.0
    most: float = math.inf
    core: tuple[float, float] = (-math.inf, math.inf)
    """The range if each endless tail ended in its middle: jackpots and other cases lie there; infinite if unknown."""

    @property
    def is_bounded(self) -> bool:
        """Whether the quantity has a least and a largest value."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def has(self, order: int) -> bool | None:
        """Say whether a moment is finite; None if that is not known."""
        if self.least > order:
            return True
        return False if self.most <= order else None

    def given(self) -> "Reach":
        """Return what is left of it after an observation: its range may shrink, its tails almost never get heavier."""
        return Reach(least=self.least)


UNKNOWN = Reach()


def either(parts: Sequence[Reach]) -> Reach:
    """Return the reach of a quantity that is one of several."""
    lows, highs, least, *_ = zip(*parts, strict=True)
    return Reach(min(lows), max(highs), min(least), parts[0].most if len(parts) == 1 else math.inf)


def of_numbers(numbers: Array) -> Reach:
    """Return the reach of a quantity that is one of some numbers."""
    if numbers.dtype.kind not in "bif" or not numbers.size:
        return UNKNOWN
    return Reach(float(numbers.min()), float(numbers.max()), math.inf)


Parameter = TypeVar("Parameter")
Call = tuple[str, dict[str, Any]]
"""The name of a distribution in a library, and its parameters by their names there."""


class Functions:
    """NumPy's functions, and SciPy's special ones, by their names."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name) if hasattr(np, name) else getattr(scipy.special, name)


NUMPY = Functions()


class Family(ABC):
    """A family of distributions, such as the normal ones. Parameters are arrays, one row a sample.

    All that engines ask about a distribution is asked here; none knows a family by its name.
    """

    name: str
    kind: Kind
    dtype: np.dtype[Any]
    levels: tuple[Any, ...] | None = None
    whole: Whole = False
    """Which of the values, if they are floats, a program gets as whole numbers."""
    latents: int = 0
    """How many standard normal numbers stand behind a value; none if values can only be drawn."""
    names: tuple[str, ...] = ()
    """What the parameters are called, if each is a number for each value."""
    ends: tuple[float | str, float | str] = (-math.inf, math.inf)
    """Where the values begin and end: numbers, or the names of parameters."""
    finite_at_ends: bool = False
    """Whether the density is neither zero nor infinite at its ends."""
    gaussian: bool = False
    """Whether values are the first parameter plus the second times a standard normal number."""
    log_concave: bool = False
    """Whether the logarithm of the density, or of the probabilities of whole numbers, is concave."""
    log_linear_tails: bool = False
    """Whether that logarithm is a straight line on either side of its largest value."""
    factor: Array | None = None
    """A matrix: values are the first parameter plus its product with standard normal numbers."""
    table: Array | None = None
    """The values, if they are listed."""
    families: "tuple[Family, ...]" = ()
    """Those of which a value comes from one, chosen by weights that are the first parameter."""
    lost: float = 0.0
    """How much probability is misplaced."""

    @property
    def has_ends(self) -> bool:
        """Whether the values begin or end somewhere."""
        return self.ends != (-math.inf, math.inf)

    @property
    def chooses(self) -> bool:
        """Whether the first parameter, if there is one, is the vector of probabilities that values are chosen by."""
        return self.table is not None or bool(self.families)

    @property
    def listable(self) -> bool:
        """Whether the values can be listed, far tails aside."""
        return self.table is not None

    @abstractmethod
    def draw(self, rng: np.random.Generator, samples: int, shape: Shape, parameters: Sequence[Array]) -> Array:
        """Draw a batch: `samples` independent values of the given shape."""

    def log_density(self, values: Array, parameters: Sequence[Array]) -> Array:
        """Return the log of the density, or of the probability of a discrete value, element by element."""
        return np.asarray(self.formula(NUMPY, values, *parameters))

    def of_normals(self, normals: Array, parameters: Sequence[Array]) -> Array:
        """Return the values that standard normal numbers stand for: the larger the number, the larger the value.

        Of families with several latents, those come last in the shape of the numbers.
        """
        return np.asarray(self.quantiles(NUMPY, normals, *parameters))

    def check(self, parameters: Sequence[Array]) -> None:  # noqa: B027
        """Raise PriorError if a parameter is out of its range."""

    def check_known(self, parameters: Sequence[Array | None], rank: int) -> None:
        """Raise PriorError if a parameter that is known is out of its range; values have so many axes in a batch."""
        known = [array for array in parameters if array is not None]
        if len(known) == len(parameters):
            self.check(known)

    def bound(self, parameters: Sequence[Array] | None) -> int | None:
        """Return how far whole numbers lie from zero at most, if that follows from what is known of the parameters."""
        return None

    def parts(self, parameters: Sequence[Parameter]) -> "list[tuple[Family, Sequence[Parameter]]]":
        """Return each family that a value may come from, with its own parameters."""
        return [(self, parameters)]

    def ends_of(self, parameters: Sequence[Parameter]) -> tuple[Parameter | float, Parameter | float]:
        """Return where the values begin and end: numbers or parameters."""
        low, high = (parameters[self.names.index(end)] if isinstance(end, str) else end for end in self.ends)
        return low, high

    def reach(self, parameters: Sequence[tuple[Array | None, Reach]]) -> Reach:
        """Return the range of the values and the moments they have, from the parameters that are known and theirs."""
        return UNKNOWN

    def is_cut(self, parameters: Sequence[Array | None]) -> bool:
        """Say whether far tails are left out where the values are listed; parameters may be unknown."""
        return False

    def sizes(self, parameters: Sequence[Array], exponent: float) -> Array:
        """Return how many values are possible for each row of parameters, but for a probability of exp(-exponent)."""
        raise NotImplementedError(f"the values of {self.name} are not listed")

    def support(self, parameters: Sequence[Array], rows: int, exponent: float) -> Support:
        """List the possible values for each row of parameters, which hold one row for all or one for each."""
        raise NotImplementedError(f"the values of {self.name} are not listed")

    def possible(self, parameters: Sequence[Array | None], exponent: float, most: int) -> Array | None:
        """Return all values, in order; None if they are more than `most` or follow from parameters not known."""
        return None

    def pymc(self, *parameters: Any) -> Call | None:
        """Return the distribution in PyMC, if it is there."""
        return None

    def numpyro(self, *parameters: Any) -> Call | None:
        """Return the distribution in NumPyro, if it is there."""
        return None

    def formula(self, xp: Any, value: Any, *parameters: Any) -> Any:
        """Return the log density in the functions of an array library, by NumPy's names; None if it is not known."""
        return None

    def quantiles(self, xp: Any, normals: Any, *parameters: Any) -> Any:
        """Return the values that standard normal numbers stand for, in the functions of an array library, or None."""
        return None

    def stretched(self, xp: Any, normals: Any, *parameters: Any) -> tuple[Any, Any] | None:
        """Return increasing functions of normal numbers that lie as the values do, and the log of their slopes."""
        return None


@dataclass(frozen=True, slots=True)
class Draw(Operation):
    """A root of the model graph: a fresh random quantity, given its parameters."""

    family: Family
    shape: Shape

    random = True

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        parameters = at_rank(arguments, len(self.shape) + 1)
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
        parameters = at_rank(others, len(self.root.shape) + 1)
        if any(len(argument) > 1 for argument in others):
            self.root.family.check(parameters)
        return self.root.family.of_normals(normals, parameters)

    def kind(self, parents: Sequence[Node]) -> Kind:
        return self.root.family.kind


def at_rank(arguments: Sequence[Any], rank: int) -> Sequence[Any]:
    """Return arrays with at least so many axes, the first of which is that of the samples."""
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
        return self.family.log_density(values, at_rank(parameters, values.ndim))


PLAIN = {int, float}


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
    names = family.names or ["p"] * len(parameters)
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
    family.check_known(known, len(shape) + 1)
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


def possible_values(root: Node, values: Sequence[int]) -> list[int]:
    """Return those of some values that a root of single numbers with known parameters can have."""
    known = [parent.operation.array for parent in root.parents if isinstance(parent.operation, ConstantValue)]
    if not isinstance(root.operation, Draw) or root.levels is not None or len(known) < len(root.parents):
        return []
    if root.operation.family.table is not None:
        return [value for value in values if value in root.operation.family.table]
    with np.errstate(all="ignore"):
        logs = np.atleast_1d(root.operation.family.log_density(np.array(values), known))
    return [value for value, log in zip(values, logs, strict=True) if log > -np.inf]


def family_of(root: Node) -> Family:
    """Return the family that a root of the model graph is drawn from."""
    if not isinstance(root.operation, Draw):  # a sum over rows, say, that parameters of a draw are computed from
        raise UnsuitableEngine(
            "engine='exact' cannot answer this: a distribution depends on a sum over rows; engine='sample' can"
        )
    return root.operation.family


class Composed(RandomVariable):
    """A distribution made of several roots: `again` makes another of it, `parameters` are the nodes it depends on."""

    __slots__ = ("again", "parameters")

    def __init__(self, node: Node, again: Callable[[], RandomVariable], parameters: tuple[Node, ...]) -> None:
        super().__init__(node)
        self.again = again
        self.parameters = parameters


def is_distribution(value: Any) -> bool:
    """Say whether a value came straight from a distribution's constructor."""
    made = isinstance(value, RandomVariable) and isinstance(value.node.operation, Draw)
    return made or isinstance(value, Composed)


def parameters_of(distribution: RandomVariable) -> tuple[Node, ...]:
    """Return the nodes of a distribution's parameters."""
    return distribution.parameters if isinstance(distribution, Composed) else distribution.node.parents


def replicate(distribution: RandomVariable, shape: Shape = ()) -> RandomVariable:
    """Make a new, independent quantity with the same distribution, or an array of them; parameters are shared."""
    if isinstance(distribution, Composed):
        parts = [replicate(distribution, shape[1:]) for _ in range(shape[0])] if shape else []
        return RandomVariable(stack_values(parts)) if parts else distribution.again()
    node = distribution.node
    assert isinstance(node.operation, Draw)
    return RandomVariable(draw_node(node.operation.family, node.parents, (*shape, *node.shape)))


def describe(node: Node) -> str | None:
    """Return a distribution in words, such as 'Uniform(low=0, high=100)'; None if its parameters are not fixed."""
    if not isinstance(node.operation, Draw) or not node.operation.family.names or node.shape:
        return None
    values = []
    for name, parent in zip(node.operation.family.names, node.parents, strict=True):
        if not isinstance(parent.operation, ConstantValue):
            return None
        values.append(f"{name}={parent.operation.array[0]:g}")
    return f"{node.operation.family.name}({', '.join(values)})"
