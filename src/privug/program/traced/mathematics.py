"""The math module in rewritten programs: Python's numbers, and its errors on the inputs that they are raised on."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from privug.model.diverting import fails, fails_where, told
from privug.model.maybe import where_present
from privug.model.operations import Elementwise, elementwise, fail_samples
from privug.model.traits.table import traits_of
from privug.model.traits.traits import Role, Traits
from privug.model.variable import RandomVariable, as_node, path_condition
from privug.program.logic import where


def checked_math(traits: Traits) -> Callable[..., Any]:
    """A function of the math module: an error of its domain is an error on that input, as in Python."""
    array_function = traits.function

    def evaluate(*arrays: Any) -> Any:
        arrays = tuple(array.astype(float) for array in arrays)
        result = array_function(*arrays)
        finite = functools.reduce(np.logical_and, map(np.isfinite, arrays))
        beyond = np.isinf(result) & finite  # at the end of a logarithm's domain, or by the size of the result
        wrong = np.isnan(result) & ~functools.reduce(np.logical_or, map(np.isnan, arrays))
        at_pole = traits.is_partial or (traits.role is Role.POWER and arrays[0] == 0)
        fail_samples(wrong | (beyond & at_pole), ValueError("math domain error"))
        fail_samples(beyond, OverflowError("math range error"))
        return result

    operation = Elementwise(traits.name, evaluate)

    def lifted(*values: Any) -> Any:
        values = tuple(RandomVariable(where_present(as_node(value))) for value in values)
        _tell_of_domain(operation, values)
        path = path_condition.get()
        # Where this code does not run, any argument will do: one at which nothing goes wrong.
        safe = [value if path is None else where(path, value, 1.0) for value in values]
        made = told(elementwise(operation, [as_node(value) for value in safe]))
        made.numpy = False  # the math module gives Python's floats, whatever goes in
        return RandomVariable(made)

    return lifted


def _tell_of_domain(operation: Elementwise, values: Sequence[RandomVariable]) -> None:
    """Tell for which arguments a function of the math module fails."""
    traits, error = operation.traits, ValueError("math domain error")
    if traits.is_partial:
        (value,), start = values, traits.domain[0]
        with np.errstate(all="ignore"):
            included = np.isfinite(traits.function(start))
        fails_where(lambda: (value < start if included else value <= start).node, error)
        return
    for kind in (error, OverflowError("math range error")):
        fails(operation, [value.node for value in values], kind)


def logarithm(value: Any, base: Any = math.e) -> Any:
    """Return a logarithm, as `math.log` does."""
    natural = checked_math(traits_of("log"))
    return natural(value) if base == math.e else natural(value) / math.log(base)
