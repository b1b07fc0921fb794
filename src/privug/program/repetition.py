"""Whether a program is a function of its inputs: it is called again for the same inputs, in other orders.

Nothing can be known for sure of a program that is only called. But what draws random numbers moves a generator, what
remembers earlier calls answers otherwise in another order, and what comes from elsewhere differs sooner or later.
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from privug.arguments import shortened
from privug.errors import UnsuitableEngine
from privug.model.node import Array
from privug.scoping import holding

FEWEST_PASSES, MOST_PASSES = 3, 8
ENOUGH_CALLS = 64  # in all: with few inputs, each is tried more often

_functions_only: ContextVar[bool] = ContextVar("functions_only", default=False)


class Opaque:
    """A program that nothing is known of but what it returns: it is never traced."""

    hides_randomness = True
    """Whether it may draw random numbers that nothing tells of."""

    def __call__(self, *positional: Any, **named: Any) -> Any:
        raise NotImplementedError


def functions_only() -> holding[bool]:
    """Have every program that is called refuse, here, unless it is a function of its inputs."""
    return holding(_functions_only, True)


def must_be_function() -> bool:
    """Say whether a program may only be called as a function of its inputs."""
    return _functions_only.get()


def not_a_function(what: str) -> UnsuitableEngine:
    """Make the error of a program that cannot be enumerated."""
    return UnsuitableEngine(f"engine='exact' cannot answer this: {what}; engine='sample' can")


def repeated(
    outputs: Callable[[Sequence[Array], np.random.Generator], Array],
    arguments: Sequence[Array],
    samples: int,
    *,
    label: str,
    shown: Callable[[int], str],
    same: Callable[[Any, Any], bool],
) -> Array:
    """Return the outputs of a program that gives the same ones in every pass over its inputs, or raise.

    `outputs` are those of one pass, `shown` tells the input of one sample, `same` compares two outputs.
    """
    passes = min(MOST_PASSES, max(FEWEST_PASSES, -(-ENOUGH_CALLS // max(1, samples))))
    first = outputs(arguments, np.random.Generator(np.random.SFC64(0)))
    for number in range(1, passes):
        rng = np.random.Generator(np.random.SFC64(number))
        order = rng.permutation(samples)
        again = outputs([array[order] if len(array) > 1 else array for array in arguments], rng)
        for position, answer in zip(order, again, strict=True):
            if not same(first[position], answer):
                raise not_a_function(
                    f"{label} is not a function of its inputs: for {shown(int(position))} it answered "
                    f"{shortened(first[position])}, then {shortened(answer)}"
                )
    return first


def is_same(left: Any, right: Any) -> bool:
    """Say whether two outputs are the same value to the last bit."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, int | str):
        return bool(left == right)
    if isinstance(left, np.ndarray) and left.dtype != object:
        same = left.dtype == right.dtype and left.shape == right.shape
        return same and bool(np.array_equal(left, right, equal_nan=left.dtype.kind == "f"))
    if isinstance(left, dict):
        return list(left) == list(right) and all(is_same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(is_same, left, right))
    try:
        return bool(left == right) or (left != left and right != right)
    except (TypeError, ValueError):  # an object that compares part by part
        return repr(left) == repr(right)
