"""Parameters of distributions: what they may be, and the several ways to give them."""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from privug.arguments import shown
from privug.errors import PriorError
from privug.model.node import Array, ConstantValue
from privug.model.variable import RandomVariable
from privug.prior.family import parameter_node


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
