"""Calls of what cannot be traced, as single quantities of the model: whatever is around them stays traced.

A call whose arguments take finitely many values together is made once for each of them: the results are a table, as
exact as any operation. Any other call of a function is made sample by sample, which only engines that draw can use.
What is no function of its arguments is refused: then the program as a whole is called.
"""

import datetime
import decimal
import enum
import fractions
import io
import ipaddress
import math
import operator
import re
import time
import types
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import Any

import numpy as np

from privug.arguments import shown
from privug.errors import PrivugError, ProgramError, Untraceable, is_own
from privug.model.batch import Column, combined, digits
from privug.model.categories import looked_up, outcomes, tabulated
from privug.model.conditions import Mask
from privug.model.failures import diversions
from privug.model.integers import INTEGER_LIMIT
from privug.model.node import (
    CODE_DTYPE,
    Array,
    ConstantValue,
    Context,
    Kind,
    Node,
    Operation,
    ancestors,
    path_condition,
    trace_budget,
)
from privug.model.operations import Elementwise, SampleFailure, constant, elementwise, index
from privug.model.plan import Plan
from privug.model.plates import Lane
from privug.model.structure import Structure, flatten
from privug.model.table import Table
from privug.model.text import FormattedText, formatted
from privug.model.variable import Columns, RandomVariable, refuse
from privug.prior.conditional import Match
from privug.prior.family import Draw
from privug.program.logic import where
from privug.program.outputs import is_same
from privug.program.reachable import Memory, reached
from privug.program.traced.conditions import Notes
from privug.program.traced.listing import PossibleValues
from privug.program.traced.masks import CallOnly, Masked, MaskedList, unmasked
from privug.runtime.critical import quietly
from privug.runtime.pickling import portable

MOST_ENTRIES = 10_000  # of a table
MOST_CALLED = 200_000  # plain calls that are made while a program is traced
SECONDS = 20.0  # of processor time that these may take
AGAIN = 1_000  # calls that are made a second time, in another order, to see whether they give the same
EXAMPLES = 64  # calls that show what kind of values there are, where there is no table

_ACTING = {
    "posix", "nt", "os", "sys", "io", "_io", "logging", "warnings", "signal", "_signal", "subprocess", "shutil",
    "socket", "_socket", "ctypes", "multiprocessing", "faulthandler", "time", "threading", "_thread", "random",
    "secrets", "sqlite3", "http", "urllib", "requests", "asyncio", "tempfile", "atexit", "gc", "inspect", "weakref",
    "privug", "pandas", "polars", "itertools", "collections", "contextlib", "queue", "pickle", "shelve", "importlib",
}  # fmt: skip
"""Modules whose functions act on the system, remember, draw, or return what can be read once only."""
_NEVER = {
    "print", "input", "open", "exec", "eval", "compile", "next", "iter", "setattr", "delattr", "__import__", "id",
    "breakpoint", "exit", "quit", "globals", "locals", "vars", "dir", "hash", "super", "object", "memoryview",
    "reversed", "zip", "map", "filter", "enumerate", "range", "list", "dict", "set", "isinstance", "issubclass",
    "type", "callable", "staticmethod", "classmethod", "property", "bytearray",
}  # fmt: skip
"""Built-in functions that are not called on plain values in place of random ones."""
_WITHOUT_TRIAL = {
    "re", "_sre", "json", "hashlib", "_hashlib", "_sha1", "_sha2", "_sha3", "_md5", "_blake2", "hmac", "datetime",
    "_datetime", "base64", "binascii", "zlib", "textwrap", "unicodedata", "decimal", "fractions", "calendar", "math",
    "ipaddress", "struct",
}  # fmt: skip
"""Modules whose functions never work on random variables: to try is of no use."""
_VALUES = (
    str, bytes, int, float, complex, bool, type(None), np.generic, enum.Enum, datetime.date, datetime.time,
    datetime.timedelta, datetime.tzinfo, decimal.Decimal, fractions.Fraction, uuid.UUID, range, PurePath, re.Match,
    re.Pattern, ipaddress.IPv4Address, ipaddress.IPv6Address,
)  # fmt: skip
"""Types of values that never change."""
_CHANGING = (
    io.IOBase, np.random.Generator, np.random.RandomState, np.ndarray, list, dict, set, deque, bytearray, memoryview,
    RandomVariable, Masked, Columns,
)  # fmt: skip
"""Types of objects whose methods change them, or are traced."""
_HASHES = ("_hashlib", "_sha1", "_sha2", "_sha3", "_md5", "_blake2")


class _NoTable(Exception):
    """A call cannot be made a table."""


class NoCall(Exception):
    """A call cannot be a quantity of the model."""


@dataclass(frozen=True)
class Digest:
    """What a hash of the library comes to; nothing can be added to it."""

    name: str
    value: bytes

    def digest(self) -> bytes:
        """Return it as bytes."""
        return self.value

    def hexdigest(self) -> str:
        """Return it in hexadecimal digits."""
        return self.value.hex()


def is_value(value: Any) -> bool:
    """Say whether something is a value that never changes."""
    if isinstance(value, tuple | frozenset):
        return all(map(is_value, value))
    return isinstance(value, _VALUES) or type(value) is Digest


def _settled(value: Any) -> Any:
    """Return the result of a call as one that cannot change, or a container of such."""
    if type(value).__module__ in _HASHES and getattr(value, "digest_size", False):
        return Digest(value.name, value.digest())
    containers = type(value) in (list, tuple, dict) or isinstance(value, np.ndarray)
    if not containers and not is_value(value):
        raise NoCall
    return value


@dataclass(frozen=True, slots=True)
class PlainCalls:
    """A function to be called for each of many arguments, with what these are made of."""

    function: Callable[..., Any]
    structure: Structure
    leaves: tuple[Any, ...]

    @property
    def nodes(self) -> list[Node]:
        """The random quantities among the arguments."""
        return list(dict.fromkeys(leaf.node for leaf in self.leaves if isinstance(leaf, RandomVariable)))

    @property
    def name(self) -> str:
        """What is called."""
        function = self.function.func if isinstance(self.function, partial) else self.function
        if function is _formatted:
            return "text formatting"
        if function is _method_of and isinstance(self.function, partial):
            return f"{self.function.args[0]}()"
        owner = getattr(function, "__self__", None)
        whose = "" if owner is None or isinstance(owner, types.ModuleType) else f"{type(owner).__name__}."
        return f"{whose}{getattr(function, '__name__', type(function).__name__)}()"

    def arguments(self, arrays: Sequence[Array], samples: int) -> Iterator[Any]:
        """Yield the plain arguments of each call, given the values of the random ones."""
        values = dict(zip(self.nodes, arrays, strict=True))
        return self.structure.build_each((self._column(leaf, values, samples) for leaf in self.leaves), samples)

    @staticmethod
    def _column(leaf: Any, values: Mapping[Node, Array], samples: int) -> Iterable[Any]:
        if not isinstance(leaf, RandomVariable):
            return [leaf.copy() if isinstance(leaf, np.ndarray) else leaf for _ in range(samples)]
        array = values[leaf.node]
        array = np.repeat(array, samples, axis=0) if len(array) != samples else array
        if array.ndim == 1 and leaf.node.levels is None and leaf.node.numpy is True:
            return list(array)  # numbers of NumPy, as the program has them
        return Column.of(leaf.node, array.copy() if array.ndim > 1 else array)

    def outcomes(self, arrays: Sequence[Array], samples: int) -> Iterator[tuple[Any, Exception | None]]:
        """Yield what each call returns, or the error that it raises."""
        with np.errstate(all="ignore"), quietly():
            for positional, named in self.arguments(arrays, samples):
                try:
                    yield _settled(self.function(*positional, **named)), None
                except NoCall:
                    raise
                except Exception as error:
                    if is_own(error):
                        raise
                    yield None, error

    def checked(self, arrays: Sequence[Array], samples: int) -> tuple[list[Any], list[Exception | None]]:
        """Return the outcomes of calls that are a function of their arguments, which they leave as they are."""
        memory, results, errors = Memory(reached(self.function)), [], list[Exception | None]()
        spending = _spending(samples + min(samples, AGAIN))
        for result, error in self.outcomes(arrays, samples):
            results.append(result)
            errors.append(error)
            next(spending)
        order = np.random.Generator(np.random.SFC64(0)).permutation(samples)[:AGAIN]
        again = self.outcomes([array if len(array) == 1 else array[order] for array in arrays], len(order))
        for place, (result, error) in zip(order, again, strict=True):
            next(spending)
            if type(error) is not type(errors[place]) or not _is_alike(results[place], result):
                raise NoCall
        if memory.has_changed() or self._changes_arguments(arrays, min(samples, EXAMPLES)):
            raise NoCall
        return results, errors

    def _changes_arguments(self, arrays: Sequence[Array], samples: int) -> bool:
        """Say whether calls change what they are given."""
        if self.structure.children[0].leaves == self.structure.leaves == len(self.structure.children[0].children):
            return False
        few = [array if len(array) == 1 else array[:samples] for array in arrays]
        used, fresh = list(self.arguments(few, samples)), self.arguments(few, samples)
        with np.errstate(all="ignore"), quietly():
            for positional, named in used:
                try:
                    self.function(*positional, **named)
                except Exception as error:
                    if is_own(error):
                        raise
        return not all(
            is_same([*now, *options.values()], [*before, *others.values()])
            for (now, options), (before, others) in zip(used, fresh, strict=True)
        )


def _spending(calls: int) -> Iterator[None]:
    """Count calls against what tracing a program may take, and the time that each of them takes."""
    budget = trace_budget.get()
    if budget is None:
        raise NoCall
    budget.called += calls
    if budget.called > MOST_CALLED:
        raise _NoTable
    last = time.process_time()
    while True:
        yield
        now = time.process_time()
        budget.called_seconds, last = budget.called_seconds + now - last, now
        if budget.called_seconds > SECONDS:
            raise _NoTable


def _is_alike(left: Any, right: Any) -> bool:
    """Say whether two results are the same; matches of a regular expression are compared by what they found."""
    if isinstance(left, re.Match) and isinstance(right, re.Match):
        return left.regs == right.regs and left.string == right.string
    return is_same(left, right)


@dataclass(frozen=True, slots=True)
class OpaqueCall(Operation):
    """A call of a function for each sample; if it is `guarded`, the first parent says where the call is made at all."""

    calls: PlainCalls
    guarded: bool
    wanted: tuple[str, tuple[int, ...]]
    """The kind of numbers that it returns, or objects, and the shape."""

    opaque = True

    def __reduce__(self) -> tuple[Any, ...]:
        calls = self.calls
        function = portable(f"a program that calls {calls.name}", calls.function)
        return _restored, (function, calls.structure, calls.leaves, self.guarded, self.wanted)

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        samples = max(map(len, arguments)) if arguments else 1
        where_called, arrays = np.ones(samples, np.bool_), list(arguments)
        if self.guarded:
            where_called = np.broadcast_to(arrays.pop(0), samples)
        places = np.flatnonzero(where_called)
        kind, shape = self.wanted
        made = np.full((samples, *shape), None, object) if kind == "O" else np.zeros((samples, *shape), kind)
        arrays = [array if len(array) == 1 else array[places] for array in arrays]
        arrays, inverse = _distinct(arrays, len(places))
        number = len(places) if inverse is None else int(inverse.max(initial=-1)) + 1
        results, failing, first = np.empty((number, *shape), made.dtype), np.zeros(number, np.bool_), None
        for place, (result, error) in enumerate(self.calls.outcomes(arrays, number)):
            if error is None:
                results[place] = self._fitting(result)
            else:
                failing[place], first = True, first or error
        if first is not None:
            failed = np.zeros(samples, np.bool_)
            failed[places] = failing if inverse is None else failing[inverse]
            raise SampleFailure(int(failed.argmax()), first, failing=failed)
        made[places] = results if inverse is None else results[inverse]
        return made

    def _fitting(self, result: Any) -> Any:
        kind, shape = self.wanted
        if kind == "O" or (_kind_of([result]) == (kind, shape)):
            return result
        raise ProgramError(f"{self.calls.name} returned {shown(result)}, unlike in other calls: it cannot be traced")

    def can_fail(self, parents: Sequence[Node]) -> bool:
        return True

    def kind(self, parents: Sequence[Node]) -> Kind:
        return Kind.DISCRETE if all(parent.kind is Kind.DISCRETE for parent in parents) else Kind.MIXED


def _restored(
    function: Any, structure: Structure, leaves: tuple[Any, ...], guarded: bool, wanted: tuple[str, tuple[int, ...]]
) -> OpaqueCall:
    return OpaqueCall(PlainCalls(function, structure, leaves), guarded, wanted)


def _distinct(arrays: Sequence[Array], samples: int) -> tuple[list[Array], Array | None]:
    """Return the distinct rows of whole numbers, and which each sample has; None where they are not told apart."""
    if not arrays or not samples or any(array.ndim > 1 or array.dtype.kind not in "bi" for array in arrays):
        return list(arrays), None
    full = [np.broadcast_to(array, samples) for array in arrays]
    codes = combined(map(digits, full))
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return [array[first] for array in full], inverse.reshape(-1)


def _kind_of(results: Sequence[Any]) -> tuple[str, tuple[int, ...]]:
    """Return the kind of some results and their shape: of numbers where all are of one, or objects."""
    if all(isinstance(result, np.ndarray) for result in results):
        kinds, shapes = {result.dtype.kind for result in results}, {result.shape for result in results}
        if len(shapes) == len(kinds) == 1 and kinds <= {"b", "i", "f"}:
            return {"b": "?", "i": "i8", "f": "f8"}[kinds.pop()], shapes.pop()
        raise NoCall
    if all(isinstance(result, bool | np.bool_) for result in results):
        return "?", ()
    if any(isinstance(result, bool | np.bool_) for result in results):
        return "O", ()
    if all(isinstance(result, int | np.signedinteger) and abs(int(result)) <= INTEGER_LIMIT for result in results):
        return "i8", ()
    return ("f8" if all(isinstance(result, float | np.floating) for result in results) else "O"), ()


class _Calling(CallOnly):
    """A value that functions are applied to by plain calls."""

    def applied(self, function: Any, *others: Any) -> Any:
        return applied(function, self, *others)

    def chosen(self, mask: Mask, new: Any, old: Any) -> Any:
        return _chosen(mask, new, old)


class Unlisted(_Calling):
    """A value that is no number, of which there are more than can be listed."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def released(self) -> Any:
        return RandomVariable(self.node)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return partial(method, self, name)


class Text(FormattedText, _Calling):
    """A text whose fields are random numbers: what is asked of it is asked of the texts that it may be."""

    __hash__ = None  # type: ignore[assignment]

    def released(self) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(str, name):
            raise AttributeError(name)
        return partial(method, self, name)


def _operators(kind: type) -> None:
    """Let Python's operators on values of a type be calls on the plain ones."""

    def in_turn(function: Any) -> Any:
        return lambda self, other: applied(function, self, other)

    def reflected(function: Any) -> Any:
        return lambda self, other: applied(function, other, self)

    for function in (operator.add, operator.sub, operator.mul, operator.mod, operator.truediv, operator.floordiv):
        setattr(kind, f"__{function.__name__}__", in_turn(function))
        setattr(kind, f"__r{function.__name__}__", reflected(function))
    for function in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.getitem):
        setattr(kind, f"__{function.__name__}__", in_turn(function))


_operators(Unlisted)
_operators(Text)


def joined_text(parts: Sequence[tuple[Any, str]]) -> Any:
    """Return the text that parts make together, each with its format: with fields where that can be."""
    notes = Notes()
    try:
        made = formatted(parts)
    except Untraceable:
        noted_again = notes.undo()
    else:
        return Text(made.template, made.values)
    try:
        return called(partial(_formatted, tuple(form for _, form in parts)), [value for value, _ in parts], {})
    except (NoCall, Untraceable):
        notes.undo()
        noted_again()
    return refuse("text formatting")


def _formatted(forms: tuple[str, ...], *values: Any) -> str:
    return "".join(map(format, values, forms))


def _concatenated(left: Any, right: Any) -> Any:
    if all(isinstance(side, str | Text) for side in (left, right)):
        return joined_text([(left, ""), (right, "")])
    return applied(operator.add, left, right)


Text.__add__ = _concatenated  # type: ignore[assignment]
Text.__radd__ = lambda self, other: _concatenated(other, self)  # type: ignore[misc]


def method(owner: Any, name: str, *positional: Any, **named: Any) -> Any:
    """Call a method of a value that only plain calls know."""
    return applied(partial(_method_of, name), owner, *positional, **named)


def _method_of(name: str, owner: Any, *positional: Any, **named: Any) -> Any:
    return getattr(owner, name)(*positional, **named)


def applied(function: Any, *positional: Any, **named: Any) -> Any:
    """Return what a function gives that cannot be traced, or refuse."""
    try:
        return called(function, positional, named)
    except NoCall:
        refuse(f"{getattr(function, '__name__', 'a call')}() of a random value")


def tried(function: Any, own: Any, positional: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Call a function on random variables; where that fails, let it be a quantity of the model, if it can be one."""
    owner = getattr(function, "__self__", None)
    given = [owner, *positional, *named.values()]
    if not any(map(_is_random, given)) or not may_be_called(function):
        return own(*positional, **named)
    notes = Notes()
    if (
        _library(function) in _WITHOUT_TRIAL
        or isinstance(owner, str | bytes)
        or any(isinstance(one, CallOnly) for one in given)
    ):
        try:
            return called(function, positional, named)
        except (NoCall, Untraceable):
            notes.undo()
        return own(*positional, **named)
    if diversions.get() is not None:
        return own(*positional, **named)
    try:
        return own(*positional, **named)
    except Exception as error:
        if isinstance(error, PrivugError) and not isinstance(error, Untraceable):
            raise
        failure, noted_again = error, notes.undo()
    try:
        return called(function, positional, named)
    except (NoCall, Untraceable):
        notes.undo()
        noted_again()
    raise failure


def _library(function: Any) -> str:
    owner = getattr(function, "__self__", None)
    module = getattr(function, "__module__", None)
    if owner is not None and not isinstance(owner, types.ModuleType):
        module = (owner if isinstance(owner, type) else type(owner)).__module__
    return (module or "").partition(".")[0]


def may_be_called(function: Any) -> bool:
    """Say whether a function may be called on plain values while a program is traced: it might do more than return."""
    owner, library = getattr(function, "__self__", None), _library(function)
    if library in _ACTING or (library == "builtins" and getattr(function, "__name__", "") in _NEVER):
        return False
    if isinstance(owner, _CHANGING) or hasattr(owner, "__next__"):
        return False
    return library != "numpy" and not _hides_random(function)


def _hides_random(function: Any, seen: frozenset[int] = frozenset()) -> bool:
    """Say whether a function stands inside another one and may reach something random there."""
    while isinstance(function, partial | types.MethodType):
        function = function.func if isinstance(function, partial) else function.__func__
    if not isinstance(function, types.FunctionType) or id(function) in seen:
        return False
    for cell in function.__closure__ or ():
        try:
            leaves = flatten(cell.cell_contents)[1]
        except ValueError:  # it is empty
            continue
        if any(_is_random(leaf) or _hides_random(leaf, seen | {id(function)}) for leaf in leaves):
            return True
    return False


def _is_random(value: Any) -> bool:
    if isinstance(value, RandomVariable | CallOnly):
        return True
    if isinstance(value, dict):
        return any(map(_is_random, value.values()))
    if isinstance(value, Table):
        return False
    if isinstance(value, MaskedList):
        return any(map(_is_random, list.__iter__(value))) or not value.is_certain
    return isinstance(value, Masked) or (isinstance(value, list | tuple) and any(map(_is_random, value)))


def called(function: Any, positional: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Return the result of a plain function of random arguments as quantities of the model."""
    calls = _calls(function, positional, named)
    try:
        return _tabled(calls)
    except _NoTable:
        return _sampled(calls)


def _calls(function: Any, positional: Sequence[Any], named: Mapping[str, Any]) -> PlainCalls:
    structure, leaves = flatten((unmasked(list(positional)), unmasked(dict(named))))
    for leaf in leaves:
        if isinstance(leaf, Masked | Columns | CallOnly) or hasattr(leaf, "__next__"):
            raise NoCall
        if isinstance(leaf, RandomVariable) and (leaf.node.operation.by_rows or leaf.node.numpy is None):
            raise NoCall
        if callable(leaf) and _hides_random(leaf):
            raise NoCall
    return PlainCalls(function, structure, tuple(leaves))


def listed(value: Any) -> RandomVariable | None:
    """Return a value that only plain calls know as a category, if it is one of finitely many."""
    try:
        found = _tabled(_calls(_itself, [value], {}))
    except (_NoTable, NoCall):
        return None
    return found if isinstance(found, RandomVariable) else None


def _itself(value: Any) -> Any:
    return value


def _chosen(mask: Mask, new: Any, old: Any) -> Any:
    """Return one of two values, of which at least one is known to plain calls only."""
    sides = [listed(value) if isinstance(value, CallOnly) else value for value in (new, old)]
    if any(side is None and value is not None for side, value in zip(sides, (new, old), strict=True)):
        return applied(_either, mask, new, old)
    return where(mask, *sides)


def _either(mask: Any, new: Any, old: Any) -> Any:
    return new if mask else old


def of_levels(category: Node, function: Callable[[Any], Any]) -> Any:
    """Return what a function gives for each level of a category, as quantities of the model."""
    results, errors = outcomes(function, category.levels or ())
    try:
        return _quantities(category, list(map(_settled, results)), list(errors))
    except NoCall:
        refuse("a method of a random value whose results are no plain values")


# Tables.


@dataclass(frozen=True)
class _Digit:
    """A quantity that arguments follow from: its values, and the node that says which of them it has."""

    node: Node
    values: Array

    @property
    def places(self) -> int:
        """How many elements it has."""
        return math.prod(self.node.shape)

    def codes(self) -> list[Node]:
        """Return the places of its elements among the values."""
        if not self.node.shape:
            return [_code(self.node, self.values)]
        return [_code(index(self.node, place), self.values) for place in range(self.places)]


def _code(node: Node, values: Array) -> Node:
    if node.levels is not None:
        return Node(_Codes(), (node,), node.shape, CODE_DTYPE)
    if node.dtype.kind == "f" or (len(values) > 1 and np.any(np.diff(values.astype(np.int64)) != 1)):
        return Node(Match(values), (node,), (), np.dtype(np.int64))
    low = int(values[0])
    return elementwise(Elementwise("subtract", np.subtract, True), [node, constant(low)])


@dataclass(frozen=True, slots=True)
class _Codes(Operation):
    """The codes of a category as numbers."""

    fresh = False

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        return arguments[0]


def _tabled(calls: PlainCalls) -> Any:
    """Return the result of calls as what belongs to each combination of values that their arguments can have."""
    listing = PossibleValues()
    found = [_determining(calls.nodes, listing, only_roots) for only_roots in (False, True)]
    ways = [way for way in found if way is not None and _combinations(way) <= MOST_ENTRIES]
    if not ways:
        raise _NoTable
    way = min(ways, key=_combinations)
    samples = _combinations(way)
    arrays = _columns(way)
    failed = np.zeros(samples, np.bool_)
    known = {digit.node: array for digit, array in zip(way, arrays, strict=True)}
    plan = Plan(calls.nodes, list(known))
    made = plan.run(samples, np.random.Generator(np.random.SFC64(0)), known, failed=failed)
    fine = np.flatnonzero(~failed)
    if not len(fine):
        raise _NoTable
    results, errors = calls.checked([array if len(array) == 1 else array[fine] for array in made], len(fine))
    if all(error is not None for error in errors):
        raise NoCall
    place = np.zeros(samples, np.int64)  # where the arguments cannot be had, nobody asks for the result
    place[fine] = np.arange(len(fine))
    widths = [len(digit.values) for digit in way for _ in range(digit.places)]
    codes = _joined([code for digit in way for code in digit.codes()], widths)
    return _quantities(codes, [results[k] for k in place], [errors[k] for k in place])


def _combinations(way: Sequence[_Digit]) -> int:
    return math.prod(int(len(digit.values) ** digit.places) for digit in way)


def _columns(way: Sequence[_Digit]) -> list[Array]:
    """Return all combinations of values of some quantities, the last one changing fastest."""
    axes = [digit.values for digit in way for _ in range(digit.places)]
    columns = [column.reshape(-1) for column in np.meshgrid(*axes, indexing="ij")]
    arrays: list[Array] = []
    for digit in way:
        own, columns = columns[: digit.places], columns[digit.places :]
        arrays.append(np.stack(own, axis=-1).reshape(-1, *digit.node.shape) if digit.node.shape else own[0])
    return arrays


def _joined(codes: Sequence[Node], widths: Sequence[int]) -> Node:
    total = codes[0]
    for code, width in zip(codes[1:], widths[1:], strict=True):
        scaled = elementwise(Elementwise("multiply", np.multiply, True), [total, constant(width)])
        total = elementwise(Elementwise("add", np.add, True), [scaled, code])
    return total


def _determining(nodes: Sequence[Node], listing: PossibleValues, only_roots: bool) -> list[_Digit] | None:
    """Return quantities of finitely many values from which others follow: these, or what is behind them."""
    digits_found: dict[Node, _Digit] = {}
    waiting, seen = list(reversed(nodes)), set[Node]()
    while waiting:
        node = waiting.pop()
        operation = node.operation
        if node in seen or isinstance(operation, ConstantValue):
            continue
        seen.add(node)
        if isinstance(operation, Draw | Lane) or not (node.shape or only_roots):
            values = listing.values(node) if not node.shape or isinstance(operation, Draw) else None
            if values is not None and len(values) <= MOST_ENTRIES and not _has_two_zeros(values):
                digits_found[node] = _Digit(node, values)
                continue
        if operation.random or operation.opaque or operation.by_rows or not node.parents or len(seen) > MOST_ENTRIES:
            return None
        waiting.extend(reversed(node.parents))
    return list(digits_found.values()) or None


def _has_two_zeros(values: Array) -> bool:
    zeros = values[values == 0]
    return len(zeros) > 1


def _quantities(codes: Node, results: list[Any], errors: list[Exception | None]) -> Any:
    """Return what belongs to codes: numbers, categories, or containers of such."""
    good = next(place for place, error in enumerate(errors) if error is None)
    results = [results[good] if error is not None else result for result, error in zip(results, errors, strict=True)]
    kinds = set(map(type, results))
    if kinds == {np.ndarray}:
        return RandomVariable(_array(codes, results, errors))
    if len(kinds) == 1 and kinds <= {list, tuple, dict}:
        return _containers(kinds.pop(), codes, results, errors)
    if kinds & {list, dict, np.ndarray} or not all(map(is_value, results)):
        raise NoCall
    node = tabulated(codes, results, errors, called=True)
    of_numpy = [isinstance(result, np.generic) for result in results]
    node.numpy = True if all(of_numpy) else None if any(of_numpy) else False
    return RandomVariable(node)


def _array(codes: Node, results: list[Any], errors: list[Exception | None]) -> Node:
    """Return arrays of one shape."""
    kinds, shapes = {result.dtype.kind for result in results}, {result.shape for result in results}
    if len(shapes) > 1 or len(kinds) > 1 or not kinds <= {"b", "i", "f", "U"}:
        raise NoCall
    table = np.stack(results)
    if kinds == {"U"}:
        levels, places = np.unique(table, return_inverse=True)
        names = tuple(levels.tolist())
        return looked_up(codes, places.reshape(table.shape).astype(CODE_DTYPE), names, errors)
    numbers = table.astype({"b": bool, "i": np.int64, "f": np.float64}[kinds.pop()])
    return looked_up(codes, numbers, None, errors, called=True)


def _containers(kind: type, codes: Node, results: list[Any], errors: list[Exception | None]) -> Any:
    """Return lists, tuples or dictionaries, item by item; lists may be of several lengths."""
    if kind is dict:
        if len({tuple(result) for result in results}) > 1:
            raise NoCall
        return {key: _quantities(codes, [result[key] for result in results], errors) for key in results[0]}
    lengths = [len(result) for result in results]
    if len(set(lengths)) == 1:
        items = [_quantities(codes, [result[k] for result in results], errors) for k in range(lengths[0])]
        return MaskedList(items) if kind is list else tuple(items)
    if kind is tuple:
        raise NoCall
    pairs: list[tuple[Any, Mask]] = []
    for place in range(max(lengths)):
        longest = results[lengths.index(max(lengths))]
        item = _quantities(codes, [(result if len(result) > place else longest)[place] for result in results], errors)
        pairs.append((item, RandomVariable(tabulated(codes, [length > place for length in lengths], errors))))
    return MaskedList.of_pairs(pairs)


# Calls sample by sample.


def _sampled(calls: PlainCalls) -> Any:
    """Return the result of calls that are made sample by sample."""
    nodes = calls.nodes
    if diversions.get() is not None or any(isinstance(node.operation, Lane) for node in ancestors(nodes)):
        raise NoCall
    path = path_condition.get()
    condition = [] if path is None else [path.node]
    known = Plan([*nodes, *condition]).run(EXAMPLES, np.random.Generator(np.random.SFC64(0)), forgiving=True)
    if condition:
        there = np.broadcast_to(known.pop(), EXAMPLES)
        known = [array if len(array) == 1 else array[there] for array in known]
    number = int(there.sum()) if condition else EXAMPLES
    if not number:
        raise NoCall
    try:
        results, errors = calls.checked(known, number)
    except _NoTable:
        raise NoCall from None
    fine = [result for result, error in zip(results, errors, strict=True) if error is None]
    if not fine:
        raise NoCall
    kind, shape = _kind_of(fine)
    if kind == "O" and not all(map(is_value, fine)):
        raise NoCall
    operation = OpaqueCall(calls, bool(condition), (kind, shape))
    node = Node(operation, (*condition, *nodes), shape, np.dtype(kind))
    if kind == "O":
        return Unlisted(node)
    node.numpy = isinstance(fine[0], np.generic) and not shape
    return RandomVariable(node)
