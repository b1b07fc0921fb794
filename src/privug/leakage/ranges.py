"""The range that a measure has in theory: what rounding carries out of it is brought back."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from privug.errors import InferenceError
from privug.estimate import Estimate

NUMERICAL_ERROR = 1e-9  # of exact measures, with room to spare: they are sums of up to millions of terms

Arguments = ParamSpec("Arguments")
Measure = Callable[Arguments, Estimate]


def ranging(low: float, high: float) -> Callable[[Measure[Arguments]], Measure[Arguments]]:
    """Return a decorator that keeps a measure within its range; a value far out of it is a mistake, not rounding.

    >>> @ranging(0.0, 1.0)
    ... def risk(right):
    ...     return Estimate.exactly(1 - right)
    >>> print(risk(1 + 3e-15))
    0 (exact)
    """

    def decorated(measure: Measure[Arguments]) -> Measure[Arguments]:
        @wraps(measure)
        def kept(*arguments: Arguments.args, **options: Arguments.kwargs) -> Estimate:
            found = measure(*arguments, **options)
            if found.exact and not low - NUMERICAL_ERROR <= found.value <= high + NUMERICAL_ERROR:
                raise InferenceError(
                    f"{measure.__name__} came out as {found.value:g}, which it cannot be: please report this as a "
                    "mistake of Privug's, with the attack"
                )
            return found.clipped(low, high)

        return kept

    return decorated
