"""What users hand in: numbers of any kind, functions by how many arguments they take, values as messages show them."""

import inspect
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from privug.errors import ArgumentError
from privug.model.node import Array

LONGEST = 60
"""How much of a value a message shows."""


def shown(value: Any) -> str:
    """Return a value as a message shows it: cut short, and never an error of its own.

    >>> shown(10**5000)
    'a whole number of about 5000 digits'
    """
    if isinstance(value, int) and value.bit_length() > 200:
        return f"a whole number of about {int(value.bit_length() * 0.30103)} digits"
    try:
        text = repr(value)
    except Exception:  # a value of the user's own class, which may do anything
        text = f"<{type(value).__name__}>"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 4]} ..."


def plain_number(value: Any) -> Any:
    """Return a number of NumPy, `fractions` or `decimal` as Python's own; whole ones stay whole, others are floats.

    What is no number is returned as it is.
    """
    match value:
        case np.generic():
            return value.item()
        case Fraction() | Decimal():
            try:
                return int(value) if value == int(value) else float(value)
            except (ArithmeticError, ValueError):  # NaN, infinite, or beyond the floats
                return float(value) if isinstance(value, Decimal) and not value.is_snan() else value
        case _:
            return value


def as_floats(values: Any) -> Array:
    """Return numbers of any kind, listed or in rows, as floats; TypeError or ValueError if some are none."""
    listed = values if isinstance(values, np.ndarray) or not isinstance(values, Iterator) else list(values)
    array = np.asarray(listed)
    if array.dtype.kind in "biuf":
        return array.astype(float)
    if array.dtype != object or any(not isinstance(value, int | float) for value in map(plain_number, array.flat)):
        raise TypeError(f"numbers are needed, not {shown(values)}")
    try:
        return array.astype(float)
    except OverflowError:
        raise ValueError(f"{shown(values)} holds numbers beyond the floats") from None


def is_code(value: Any) -> bool:
    """Say whether a value is a function or a class, which stands for what it makes and is no value itself."""
    return isinstance(value, type | FunctionType | BuiltinFunctionType | MethodType | np.ufunc)


def refuse_code(what: str, value: Any, error: type[ArgumentError] = ArgumentError) -> None:
    """Refuse a function or a class where a value is needed: most likely its parentheses were forgotten."""
    if is_code(value):
        name = getattr(value, "__name__", type(value).__name__)
        home = "pv." if str(getattr(value, "__module__", "")).startswith("privug.") else ""
        kind = "class" if isinstance(value, type) else "function"
        raise error(
            f"{what} is the {kind} {home}{name}, not a value: call it, such as {home}{name}(...); "
            "a function that the program needs belongs into the program"
        )


def check_takes(
    what: str, function: Callable[..., Any], count: int, error: type[ArgumentError] = ArgumentError
) -> None:
    """Refuse a function that cannot be called with so many arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions do not tell
        return
    try:
        signature.bind(*(None,) * count)
    except TypeError:
        needed = "one argument" if count == 1 else f"{count} arguments"
        raise error(f"{what} must take {needed}, but it is written as {_name(function)}{signature}") from None


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__)).replace("<lambda>", "lambda")
