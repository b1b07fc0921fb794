"""Roots put where they agree with an observation, and the weight of the sample: one function for each way."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from typing import Any, cast

import numpy as np
import scipy

from privug.inference.affine import Coefficient, Section, inverse
from privug.inference.conditions import Window
from privug.model.node import Array, ConstantValue, Context, Kind, Node, Operation
from privug.model.operations import aligned, constant
from privug.model.variable import RandomVariable, as_node
from privug.prior.choice import constant_value
from privug.prior.continuous import NORMAL, Uniform
from privug.prior.family import Family, LogDensity, family_of
from privug.prior.scalar import ScalarFamily

_FLOAT = np.dtype(np.float64)
WHOLE = 1e-6  # how close to a whole number what should be one must be


@dataclass(frozen=True)
class Solution:
    """Roots replaced by values that agree with the observation, and the log weight of the sample.

    Where the conditions do not hold, the weight is zero.
    """

    replacements: dict[Node, Node]
    log_weight: Node
    conditions: tuple[Node, ...] = ()


def solve_for(node: Node, value: Any, root: Node, slope: Coefficient) -> Solution:
    """Set one root to the value that explains the observation."""
    return through_functions(value, [Section(node, slope, root)])


def through_functions(value: Any, way: Sequence[Section]) -> Solution:
    """Set the root at the end of a way to the value that explains the observation."""
    log_slope: Any = 0.0
    for section in way[:-1]:
        value, log_slope = _at_end(section, value), log_slope - np.log(np.abs(section.slope))
        value, steepness = inverse(section.end, value)
        log_slope = log_slope + steepness
    last, root = way[-1], way[-1].end
    solved = _at_end(last, value)
    density = _log_density(family_of(root), solved.node, root.parents)
    log_weight = density + log_slope - np.log(np.abs(last.slope))
    reached = () if len(way) == 1 else (np.isfinite(cast(Any, solved)).node,)
    return Solution({root: solved.node}, log_weight.node, (*reached, *_within_support(root, solved)))


def _at_end(section: Section, value: Any) -> RandomVariable:
    """Return what the end of a section must be for its top to have a value."""
    end: RandomVariable = RandomVariable(section.end) + (value - RandomVariable(section.top)) * (1.0 / section.slope)
    return end


def _within_support(root: Node, solved: RandomVariable) -> tuple[Node, ...]:
    """Return the condition that a value can be one of a root's: a search for it is led by its distance."""
    family = family_of(root)
    if not family.has_ends:
        return ()
    low, high = family.ends_of([RandomVariable(parent) for parent in root.parents])
    return (((solved >= low) & (solved <= high)).node,)


def at_whole_number(node: Node, value: float, root: Node, slope: Coefficient) -> Solution:
    """Set a root of whole numbers to the one that explains the observation, where there is one."""
    drawn, output = RandomVariable(root).astype(float), RandomVariable(node).astype(float)
    exact = drawn + (value - output) * (1.0 / slope)
    whole = np.rint(exact)
    solved = Node(_Whole(), (whole.node,), (), np.dtype(np.int64), kind=Kind.DISCRETE)
    density = _log_density(family_of(root), solved, root.parents)
    return Solution({root: solved}, density.node, ((np.abs(exact - whole) < WHOLE).node,))


class _Whole(Operation):
    """Whole numbers held as floats, as whole numbers; what has none is zero, and of no weight."""

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        numbers = arguments[0]
        return np.where(np.abs(numbers) < 2.0**62, numbers, 0.0).astype(np.int64)


def condition_normals(node: Node, value: Any, roots: dict[Node, Coefficient]) -> Solution:
    """Draw normal roots from their joint distribution given the value of a node."""
    spread = _Spread.of(node, roots)
    log_weight = _log_density(NORMAL, as_node(value), (spread.mean.node, spread.sd))
    return Solution(spread.moved_to(value), log_weight.node)


@dataclass(frozen=True)
class _Spread:
    """A number as a normal quantity by some normal roots, given all others: mean, deviation, and how to move it."""

    output: RandomVariable
    roots: dict[Node, Coefficient]
    mean: RandomVariable
    sd: Node
    relative: dict[Node, Any] = field(repr=False)
    total: Any = field(repr=False)

    @classmethod
    def of(cls, node: Node, roots: dict[Node, Coefficient]) -> "_Spread":
        output = RandomVariable(node)
        means = {root: _parameter(root, 0) for root in roots}
        deviations = {root: _parameter(root, 1) for root in roots}
        # Variances relative to the largest known deviation neither overflow nor vanish.
        unit = max((float(np.max(sd)) for sd in deviations.values() if not isinstance(sd, RandomVariable)), default=1.0)
        relative = {root: (deviations[root] * (1.0 / unit)) ** 2 for root in roots}
        total = reduce(_plus, (_sum(relative[root] * (slope * slope), root) for root, slope in roots.items()))
        offsets = reduce(_plus, (_sum((RandomVariable(root) - means[root]) * a, root) for root, a in roots.items()))
        return cls(output, roots, output - offsets, as_node(total**0.5 * unit), relative, total)

    def moved_to(self, value: Any) -> dict[Node, Node]:
        """Return each root moved by its share of what the number is to be moved by."""
        share = (value - self.output) * (1.0 / self.total)
        return {
            root: (RandomVariable(root) + share * (self.relative[root] * slope)).node
            for root, slope in self.roots.items()
        }


def _parameter(root: Node, position: int) -> Any:
    """Return a parameter as a plain number where it is one: coefficients must be known not to vanish."""
    node = root.parents[position]
    return constant_value(node) if isinstance(node.operation, ConstantValue) else RandomVariable(node)


def _plus(left: Any, right: Any) -> Any:
    return left + right


def _sum(value: Any, root: Node) -> Any:
    """Sum over the elements of an array root; a scalar coefficient stands for each of them."""
    if isinstance(value, RandomVariable):
        return value.sum() if value.ndim else value
    return float(np.sum(np.broadcast_to(value, root.shape)))


def normals_in_window(window: Window, roots: dict[Node, Coefficient]) -> Solution:
    """Draw normal roots from their joint distribution given that a number lies in a window."""
    spread = _Spread.of(window.number, roots)
    ends = constant(window.low), constant(window.high)
    place, log_weight = _drawn_between(NORMAL, ends, (spread.mean.node, spread.sd))
    return Solution(spread.moved_to(place), log_weight)


def in_window(window: Window, root: Node, slope: Coefficient) -> Solution:
    """Draw one root from its distribution between the ends that put a number into a window."""
    ends: list[Any] = [_at_end(Section(window.number, slope, root), end) for end in (window.low, window.high)]
    family = family_of(root)
    assert isinstance(family, ScalarFamily)
    low, high = np.minimum(*ends), np.maximum(*ends)
    place, log_weight = _drawn_between(family, (low.node, high.node), root.parents)
    return Solution({root: place.node}, log_weight)


def _drawn_between(
    family: ScalarFamily, ends: tuple[Node, Node], parameters: tuple[Node, ...]
) -> tuple[RandomVariable, Node]:
    """Return a quantity of a family between two ends, and the log of the probability to be there."""
    uniform = Uniform(0.0, 1.0).node
    place = Node(_Between(family), (uniform, *ends, *parameters), (), _FLOAT, kind=Kind.CONTINUOUS)
    return RandomVariable(place), Node(_LogMass(family), (*ends, *parameters), (), _FLOAT, kind=Kind.MIXED)


def _tails(family: ScalarFamily, parameters: Sequence[Array]) -> tuple[Any, Any, Any, Any]:
    """Return the probabilities below and above a value, and their inverses."""
    if family.gaussian:
        mean, sd = parameters
        return (
            lambda x: scipy.special.ndtr((x - mean) / sd),
            lambda x: scipy.special.ndtr((mean - x) / sd),
            lambda p: mean + sd * scipy.special.ndtri(p),
            lambda p: mean - sd * scipy.special.ndtri(p),
        )
    if all(parameter.size == 1 for parameter in parameters):
        distribution = _frozen(family.frozen, *(parameter.item() for parameter in parameters))
    else:
        distribution = family.frozen(*parameters)
    return distribution.cdf, distribution.sf, distribution.ppf, distribution.isf


@lru_cache(maxsize=64)
def _frozen(make: Callable[..., Any], *parameters: float) -> Any:
    """Return SciPy's distribution of some parameters, which takes longer to make than to ask."""
    return make(*parameters)


@dataclass(frozen=True, slots=True)
class _LogMass(Operation):
    """The log of the probability that a quantity lies between two numbers, small as it may be."""

    family: ScalarFamily

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        low, high, *parameters = aligned(arguments)
        below, above, _, _ = _tails(self.family, parameters)
        # The smaller tail tells a small probability to more digits.
        start, end = below(low), above(high)
        masses = np.where(start > end, above(low) - end, below(high) - start)
        return np.asarray(np.log(np.maximum(masses, 0.0)))


@dataclass(frozen=True, slots=True)
class _Between(Operation):
    """A quantity between two numbers, from a uniform number: the quantile of that share of the probability there."""

    family: ScalarFamily

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        share, low, high, *parameters = aligned(arguments)
        below, above, quantile, from_above = _tails(self.family, parameters)
        start, end = below(low), above(high)
        lower = start + share * (below(high) - start)
        upper = end + (1 - share) * (above(low) - end)
        # Of two tails the smaller one is told to more digits.
        place = np.where(lower < upper, quantile(lower), from_above(upper))
        return np.asarray(np.clip(np.where(np.isnan(place), low, place), low, high))


def _log_density(family: Family, at: Node, parameters: tuple[Node, ...]) -> RandomVariable:
    return RandomVariable(Node(LogDensity(family), (at, *parameters), (), _FLOAT, kind=Kind.MIXED))
