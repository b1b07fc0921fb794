"""A row of the table of operations: everything that is known of one of them.

What a row does not say is not known, and whoever asks goes the careful way. Nothing is imported for the names in other
libraries: the back end that needs one looks it up.
"""

import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from privug.model.traits.error_rules import ArrayErrorRule, ErrorRule, error_of_array, error_of_unknown
from privug.model.traits.sizes import SizeRule

Array = npt.NDArray[Any]
Interval = tuple[float, float]
BackendName = str | Callable[..., Any] | None
"""A function of another library by its name, or written with the library at hand, the first argument; None if not."""

REALS: Interval = (-math.inf, math.inf)


class Scope(Enum):
    """Which numbers an operation puts together."""

    ELEMENTWISE = "element by element"
    FOLD = "all elements along some axes to one"
    SCAN = "each element with those before it"
    ARRAY = "a whole array"
    LOOKUP = "numbers at given places, as they are"
    DRAW = "none: it is random"


class Role(Enum):
    """What an operation is for."""

    SUM = "a weighted sum with known weights"
    PRODUCT = "a product or a ratio"
    POWER = "one number to the power of another"
    COMPARISON = "a comparison of two numbers"
    LOGIC = "a condition put together of others"
    CHOICE = "one of two numbers, as a condition says"
    ORDER = "by which numbers are larger than others, or than zero"
    MOVE = "the same numbers at other places"
    FUNCTION = "anything else"


class Connective(Enum):
    """How a condition is put together of others."""

    AND = "and"
    OR = "or"
    NOT = "not"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Traits:
    """What is known of an operation."""

    name: str
    scope: Scope = Scope.ELEMENTWISE
    role: Role = Role.FUNCTION

    weights: tuple[float, ...] | None = None
    """It is the sum of its arguments, each times its weight."""
    factor: int = 0
    """One if it is the first argument times the second, minus one if divided by it; linear in the first."""
    folds: str | None = None
    """The operation that puts one element after another together, for folds and scans."""
    flattens: bool = False
    """Whether it takes all axes as one if none is named."""
    joins: bool = False
    """Whether it takes a list of arrays."""
    reshapes: bool = False
    """Whether it is told the shape of its result."""
    averages: bool = False
    """Whether the sum is divided by how many there are."""

    steps: bool = False
    """Whether it is constant between places at which it jumps."""
    continuous: bool = False
    """Whether continuous arguments give a continuous result."""
    chooses: int | None = None
    """The result is one of the arguments from this one on."""
    extreme: int = 0
    """One if it is the largest of its arguments or elements, minus one if it is the smallest."""
    ranks: bool = False
    """Whether it is an element of a rank, something between two neighbours in rank, or the range of all."""
    neutral: float | None = None
    """What changes nothing, put together with anything by it."""
    turns: tuple[tuple[float, ...] | None, ...] = ()
    """For each argument, the others fixed: between which values of it the result is monotone, if that is known."""
    jumps: Callable[..., Any] | None = None
    """A function of the arguments whose value changes where this operation jumps, if it does besides at its turns."""
    domain: Interval = REALS
    """Where it has a value, if it has one argument."""
    codomain: Interval = REALS
    """Between which numbers its results lie, whatever the arguments."""
    positive: bool | None = None
    """Whether results are positive: always (True), or if all arguments are (False)."""

    preimage: Callable[[float, float], Interval] | None = None
    """Between which numbers the argument lies, given the value of a rounded number and the unit it is rounded to."""
    decimals: bool = False
    """Whether it rounds to a number of decimals, which its function knows."""

    signs: frozenset[int] = frozenset()
    """A comparison holds if the left side minus the right one has one of these signs."""
    connective: Connective | None = None
    """How a condition is put together of others."""
    truth: bool = False
    """Whether its arguments count as true or false."""

    derivative: Callable[[Sequence[Array], Sequence[Array]], Array] | None = None
    """The slope of the result, given the arguments and their slopes."""
    inverse: Callable[..., tuple[Any, Any]] | None = None
    """Where it has a value, and the logarithm of the slope of that; constant arguments come after the value."""
    inverse_in: int = 0
    """The argument that the inverse returns."""

    size: SizeRule | None = None
    """How large whole numbers get, given how large those of the arguments are."""
    grows: bool = False
    """Whether they may become larger than all arguments, so that 64 bits may not hold them."""
    keeps_whole: bool = False
    """Whether whole numbers give a whole number in Python."""
    divides: bool = False
    """Whether Python fails if the second argument is zero."""
    takes_bools: bool = False
    """Whether Python takes truth values as they are, and not as the numbers zero and one."""
    on_bools: str | None = None
    """The operation that it is on truth values, in NumPy."""

    error: ErrorRule = error_of_unknown
    """How far rounding moves the result, if it is element by element."""
    array_error: ArrayErrorRule = error_of_array
    """The same of other forms."""

    python: str = ""
    """Its name in the `operator` module, if strings may have it or sums are made of it."""
    math: str = ""
    """Its name in the `math` module."""
    numpy: str = ""
    """Where the function is found, if not in NumPy under its name."""
    pytensor: BackendName = None
    """Its name in `pytensor.tensor`."""
    jax: BackendName = ""
    """Its name in `jax`, if it is not that of NumPy in `jax.numpy`."""

    @property
    def adds_up(self) -> bool:
        """Whether it is the sum of elements, or their mean."""
        return self.scope is Scope.FOLD and self.role is Role.SUM

    @property
    def totals(self) -> bool:
        """Whether it is the sum of elements as they are."""
        return self.adds_up and not self.averages

    @property
    def is_partial(self) -> bool:
        """Whether it has no value for some numbers."""
        return self.domain != REALS

    @property
    def direction(self) -> int:
        """One if a comparison says that the left side is larger, minus one if smaller, zero if it is none of these."""
        return sum(self.signs) if len(self.signs & {-1, 1}) == 1 else 0

    @property
    def function(self) -> Callable[..., Any]:
        """The function on arrays."""
        return _found(self.numpy or f"numpy.{self.name}")

    def slope(self, arguments: Sequence[Array], slopes: Sequence[Array]) -> Array | None:
        """Return the slope of the result, given the arguments and their slopes; None if it is not known."""
        if self.steps:
            return np.zeros_like(slopes[0])
        if self.weights is not None:
            return np.asarray(sum(weight * slope for weight, slope in zip(self.weights, slopes, strict=True)))
        return None if self.derivative is None else np.asarray(self.derivative(arguments, slopes))

    def image(self, *intervals: Interval) -> Interval:
        """Return between which numbers results lie if each argument lies in its interval.

        Between turning points an operation is monotone in each argument, so that its extremes lie at the corners.
        """
        chosen = self.chooses or 0
        if self.role is Role.CHOICE:
            return min(low for low, _ in intervals[chosen:]), max(high for _, high in intervals[chosen:])
        turns = [places for places in self.turns if places is not None]
        if len(turns) != len(intervals):
            return self.codomain
        corners = list(product(*(self._places(*pair) for pair in zip(intervals, turns, strict=True))))
        with np.errstate(all="ignore"):
            values = self.function(*np.array(corners, float).T).tolist()
        if self.factor == 1:
            values = [0.0 if value != value else value for value in values]  # infinite ends are never reached
        elif self.weights is not None:
            values = [value for value in values if value == value]
        if not values or any(value != value for value in values):
            return self.codomain
        return max(self.codomain[0], min(values)), min(self.codomain[1], max(values))

    def _places(self, interval: Interval, turns: Sequence[float]) -> Iterator[float]:
        """Go through the ends of an interval and the turning points inside, at zero from both sides."""
        low, high = max(interval[0], self.domain[0]), min(interval[1], self.domain[1])
        yield low + 0.0  # never minus zero
        yield -0.0 if high == 0 > low else high
        for turn in turns:
            if low < turn < high:
                yield turn
                yield -turn if turn == 0 else turn


@cache
def _found(path: str) -> Callable[..., Any]:
    module, _, name = path.rpartition(".")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found
