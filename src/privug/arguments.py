"""What users hand in: arguments of the kind that annotations say, numbers of any kind, values as messages show them."""

import difflib
import functools
import inspect
import math
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from privug.errors import ArgumentError, PrivugError

LONGEST = 60
"""How much of a value a message shows."""
MOST_NAMES = 30
"""How many names a message lists."""
LARGEST = sys.float_info.max
"""The largest float; integers in Python can be larger."""
MOST_SAMPLES = 10**9
"""How many samples may be asked for: those of one number take eight gigabytes."""


@dataclass(frozen=True)
class NumberRange:
    """The range of a number that an argument may be, for annotations: `Annotated[float, Between(0, 1)]`."""

    low: float
    high: float = math.inf
    above: bool = False
    """Whether the number must lie above the low end."""
    below: bool = False
    """Whether the number must lie below the high end."""

    def __contains__(self, number: Any) -> bool:
        least = number > self.low if self.above else number >= self.low
        return bool(least and (number < self.high if self.below else number <= self.high))

    def of(self, kind: str) -> str:
        """Return in words what an argument of a kind, such as 'a number', must be."""
        if not (self.above or self.below or math.isinf(self.high)):
            return f"{kind} from {self.low:g} to {self.high:g}"
        finite = math.isinf(self.high) and self.below
        kind = kind.replace("a ", "a finite ", 1) if finite else kind
        least = f"{kind} above {self.low:g}" if self.above else f"{kind}, {self.low:g} or more"
        end = "" if math.isinf(self.high) else f" and {'below' if self.below else 'at most'} {self.high:g}"
        return least + end


Probability = Annotated[float, NumberRange(0, 1)]
InnerProbability = Annotated[float, NumberRange(0, 1, above=True, below=True)]
PositiveProbability = Annotated[float, NumberRange(0, 1, above=True)]
Positive = Annotated[float, NumberRange(0, above=True, below=True)]
Count = Annotated[int, NumberRange(1)]
Size = Annotated[int, NumberRange(0)]
NotNegative = Annotated[float, NumberRange(0, below=True)]

_PLAIN = {bool: "True or False", int: "an integer", float: "a number", str: "a text"}
_GENERIC: dict[Any, str] = {Callable: "a function", Mapping: "a dict", Sequence: "a list", Iterable: "a list"}
Function = TypeVar("Function", bound=Callable[..., Any])


def is_truth(value: Any) -> bool:
    """Return whether a value is an answer of yes or no: True or False, or an integer, of which zero is no."""
    return isinstance(value, bool | int | np.bool_ | np.integer)


class Random:
    """What stands for values that are not known yet, where a program is given random quantities."""

    __slots__ = ()


def shown(value: Any) -> str:
    """Return a value as a message shows it: cut short, and never an error of its own.

    >>> shown(10**5000)
    'an integer of about 5000 digits'
    """
    if isinstance(value, int) and value.bit_length() > 200:
        return f"an integer of about {int(value.bit_length() * 0.30103)} digits"
    text = represented(value).replace("\n", " ")
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 4]} ..."


def represented(value: Any, how: Callable[[Any], str] = repr) -> str:
    """Return a value as text; the name of its class where that cannot say it."""
    try:
        return how(value)
    except Exception:  # a value of the user's own class, which may do anything
        return f"<{type(value).__name__}>"


@contextmanager
def naming(what: str, error: type[PrivugError] = ArgumentError) -> Iterator[None]:
    """Raise what a function of the user's raises as an error of Privug's that names the function and the cause."""
    try:
        yield
    except PrivugError:
        raise
    except Exception as cause:
        raise error(f"{what} failed with {said(cause)}") from cause


def said(error: BaseException) -> str:
    """Return the kind of an error and its message, if there is one.

    >>> said(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero'
    """
    return f"{type(error).__name__}: {represented(error, str)}".rstrip(": ")


def listed_names(names: Iterable[str], wanted: str) -> str:
    """Return the names there are, and the one of them that was probably meant.

    >>> listed_names(["age", "sex"], "agee")
    "age, sex; did you mean 'age'?"
    """
    known = list(names)
    near = difflib.get_close_matches(wanted, known, 1)
    few = known if len(known) <= MOST_NAMES else [*known[:MOST_NAMES], "..."]
    return f"{', '.join(few)}{f'; did you mean {near[0]!r}?' if near else ''}"


def shortened(value: Any, limit: int = 200) -> str:
    """Return the representation of an input or output of a program, cut to a readable length."""
    text = represented(value)
    return text if len(text) <= limit else f"{text[:limit]}..."


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


def is_number(value: Any) -> bool:
    """Return whether a value is one real number of any kind; booleans and not-a-number are none."""
    if type(value) is float:
        return value == value
    kinds = int | float | np.integer | np.floating | Fraction | Decimal
    if isinstance(value, bool) or not isinstance(value, kinds):
        return False
    return not (value.is_nan() if isinstance(value, Decimal) else value != value)


def is_one_of(value: Any, choices: Iterable[Any]) -> bool:
    """Return whether a value is one of some texts and booleans; what answers `==` with something else is none."""
    return isinstance(value, str | bool | types.NoneType) and value in choices


def as_names(what: str, names: Any, error: type[ArgumentError] = ArgumentError) -> tuple[str, ...]:
    """Return a list of names; `what` begins the sentence that refuses anything else."""
    try:
        listed = None if isinstance(names, str) else tuple(names)
    except TypeError:
        listed = None
    if listed is None or not all(isinstance(name, str) for name in listed):
        raise error(f"{what} must be a list of names, not {shown(names)}")
    return listed


def refuse_masked(values: Any, error: type[ArgumentError] = ArgumentError) -> None:
    """Refuse a masked array of NumPy's some cells of which are missing: as numbers they would be what they hide."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise error(f"{shown(values)} has masked cells; write array.compressed() or array.filled(...)")


def as_floats(values: Any) -> npt.NDArray[Any]:
    """Return numbers of any kind, listed or in rows, as floats; TypeError or ValueError if some are none."""
    listed = values if isinstance(values, np.ndarray) or not isinstance(values, Iterator) else list(values)
    refuse_masked(listed)
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
    """Return whether a value is a function or a class, which stands for what it makes and is no value itself."""
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


def kinds_checked(function: Function) -> Function:
    """Make a function refuse arguments that are not of the kind that its annotations say.

    That holds for numbers, with the bounds that `Annotated` gives, for booleans, strings, lists, dicts, functions and
    `Literal`; which objects of Privug it takes, and where
    to get them, a function says itself. What a number may be beyond that is for the function too; it gets those of
    `fractions` and `decimal` as Python's own. Random numbers, which a program has while it is traced, are left to it.
    """

    @functools.wraps(function)
    def careful(*arguments: Any, **named: Any) -> Any:
        signature, kinds = _expected(function)
        try:
            bound = signature.bind(*arguments, **named)
        except TypeError:
            return function(*arguments, **named)  # Python says what is wrong with the call
        for name, value in bound.arguments.items():
            if name in kinds and value is not signature.parameters[name].default:
                if isinstance(value, Random) and not {int, float, bool}.isdisjoint(kinds[name]) and name != "seed":
                    continue
                check_kind(function.__name__, name, value, kinds[name])
                if isinstance(value, Fraction | Decimal):
                    bound.arguments[name] = plain_number(value)
        return function(*bound.args, **bound.kwargs)

    return typing.cast(Function, careful)


@functools.lru_cache(maxsize=1024)
def _expected(function: Callable[..., Any]) -> tuple[inspect.Signature, Mapping[str, tuple[Any, ...]]]:
    """Return the signature of a function, and for each parameter that can be checked what it may be."""
    signature, hints = inspect.signature(function), typing.get_type_hints(function, include_extras=True)
    single = {name for name, p in signature.parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    alternatives = {name: _alternatives(hint) for name, hint in hints.items() if name in single}
    return signature, {name: kinds for name, kinds in alternatives.items() if all(map(_is_checkable, kinds))}


def _alternatives(hint: Any) -> tuple[Any, ...]:
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return typing.get_args(hint) if is_union else (hint,)


def _is_checkable(kind: Any) -> bool:
    origin = typing.get_origin(kind)
    return _base(kind) in _PLAIN or kind is type(None) or origin in _GENERIC or origin is Literal


def _base(kind: Any) -> Any:
    """Return what a bounded kind of number is a kind of."""
    return kind.__origin__ if typing.get_origin(kind) is Annotated else kind


def check_kind(where: str, name: str, value: Any, kinds: tuple[Any, ...]) -> None:
    """Raise unless a value is of one of the kinds, and small enough if it is a number."""
    if not any(_is_of(value, kind) for kind in kinds):
        if any(_is_of(value, _base(kind)) for kind in kinds):
            check_size(where, name, value)
        wanted = " or ".join(dict.fromkeys(_described(kind) for kind in kinds if kind is not type(None)))
        if all(isinstance(kind, type) and kind not in _PLAIN for kind in kinds):
            raise ArgumentError(f"{where} needs {wanted} as {name}, not {shown(value)}")
        raise ArgumentError(f"{where}: {name} must be {wanted}, not {shown(value)}")
    if is_number(value) and any(_base(kind) is float for kind in kinds):
        check_size(where, name, value)
    if name == "samples" and value is not None and value > MOST_SAMPLES:
        raise ArgumentError(f"{where}: samples must be an integer up to {MOST_SAMPLES:,}, not {shown(value)}")
    if name == "seed" and value is not None and value < 0:
        raise ArgumentError(f"{where}: seed must be an integer, 0 or more, not {shown(value)}")
    if (
        any(_base(kind) is int for kind in kinds)
        and isinstance(value, int)
        and abs(value) >= 1 << 63
        and name != "seed"
    ):
        raise ArgumentError(f"{where}: {name} is too large; it must be below 2**63")


def check_size(where: str, name: str, value: Any) -> None:
    """Refuse a number that is finite, but beyond the floats."""
    number = plain_number(value)
    if not isinstance(number, float | np.floating) and abs(number) > LARGEST:
        raise ArgumentError(f"{where}: {name} is too large; it must be at most {LARGEST:g}")


def _is_of(value: Any, kind: Any) -> bool:
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    if kind is int:
        return isinstance(value, int | np.integer) and not isinstance(value, bool)
    if kind is float:
        return is_number(value)
    match typing.get_origin(kind):
        case origin if origin is Annotated:
            return _is_of(value, kind.__origin__) and all(value in bounds for bounds in kind.__metadata__)
        case origin if origin is Literal:
            return is_one_of(value, typing.get_args(kind))
        case None:
            return isinstance(value, kind)
        case origin if origin is Callable:
            return callable(value)
        case origin if origin is Mapping:
            return isinstance(value, Mapping)
        case origin:
            needed = ("__len__", "__getitem__") if origin is Sequence else ("__iter__",)
            is_text = isinstance(value, str | bytes) and typing.get_args(kind) != (Any,)  # letters may be anything
            is_single = is_text or isinstance(value, Mapping) or getattr(value, "shape", None) == ()
            return not is_single and all(hasattr(type(value), name) for name in needed)


def _described(kind: Any) -> str:
    if _base(kind) in _PLAIN:
        bounds: tuple[NumberRange, ...] = getattr(kind, "__metadata__", ())
        return bounds[0].of(_PLAIN[kind.__origin__]) if bounds else _PLAIN[kind]
    if typing.get_origin(kind) is Literal:
        *others, last = map(repr, typing.get_args(kind))
        return f"{', '.join(others)} or {last}"
    return f"a {kind.__name__}" if isinstance(kind, type) else _GENERIC[typing.get_origin(kind)]
