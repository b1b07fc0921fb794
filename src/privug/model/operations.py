"""The deterministic operations of the model graph, `round`, and what stands where a column is extreme."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from privug.arguments import refuse_masked, shown
from privug.errors import ArgumentError, ProgramError
from privug.model.integers import INTEGER_LIMIT, Comparison, can_wrap, exact_comparison, largest, refuse_overflow
from privug.model.node import Array, ConstantValue, Context, Kind, Node, Operation, Shape, Whole, of_numpy
from privug.model.traits import Role, Traits, traits_of


def constant(value: Any) -> Node:
    """Make a node of a number or an array of numbers."""
    refuse_masked(value)
    array = np.asarray(value)
    if array.dtype == np.uint64 and array.size and array.max() > INTEGER_LIMIT:
        raise ArgumentError(f"whole numbers must fit into 64 bits, which {array.max()} does not; write a float")
    if isinstance(value, int) and array.dtype == object:
        raise ArgumentError(f"whole numbers must fit into 64 bits, which {shown(value)} does not; write a float")
    if array.dtype.kind == "u" or (array.dtype.kind == "i" and array.dtype.itemsize < 8):
        array = array.astype(np.int64)
    elif array.dtype.kind == "f" and array.dtype != np.float64:
        array = array.astype(np.float64)
    if array.dtype.kind not in "bif":
        raise ArgumentError(f"a number or an array of numbers is needed here, not {shown(value)}")
    node = Node(ConstantValue(array[np.newaxis]), (), array.shape, array.dtype, kind=Kind.DISCRETE)
    if array.dtype.kind == "i":
        node.bound = largest(array)
    return node


def kind_of_result(traits: Traits, parents: Sequence[Node]) -> Kind:
    """Say how probability is spread over the result of a numeric operation."""
    kinds = {parent.kind for parent in parents}
    if traits.steps or kinds == {Kind.DISCRETE}:
        return Kind.DISCRETE
    if Kind.MIXED in kinds:
        return Kind.MIXED
    if traits.factor:
        return Kind.CONTINUOUS if all(almost_never_zero(parent) for parent in parents) else Kind.MIXED
    chosen = () if traits.chooses is None else parents[traits.chooses :]
    picked = bool(chosen) and all(parent.kind is Kind.CONTINUOUS for parent in chosen)
    return Kind.CONTINUOUS if traits.continuous or picked else Kind.MIXED


def almost_never_zero(node: Node) -> bool:
    """Say whether a quantity is zero with probability zero."""
    if isinstance(node.operation, ConstantValue):
        return bool(np.all(node.operation.array != 0))
    return node.kind is Kind.CONTINUOUS


def aligned(arrays: Sequence[Array]) -> list[Array]:
    """Insert axes after the sample axis so that arrays of different rank broadcast as their values would."""
    rank = max(array.ndim for array in arrays)
    return [
        array if array.ndim == rank else array.reshape(array.shape[:1] + (1,) * (rank - array.ndim) + array.shape[1:])
        for array in arrays
    ]


@dataclass(frozen=True, slots=True)
class Elementwise(Operation):
    """A NumPy function applied element by element.

    `python` marks operators on single numbers, which follow Python where NumPy differs: bools
    are numbers, whole numbers never wrap around, division by zero is an error.
    """

    name: str
    function: Callable[..., Any]
    python: bool = False
    may_overflow: bool = True

    @property
    def traits(self) -> Traits:
        return traits_of(self.name)

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        return self.evaluate_into(arguments, None)

    def evaluate_into(self, arguments: Sequence[Array], out: Array | None) -> Array:
        """Compute, writing into `out` if that is given and the function can."""
        rank = arguments[0].ndim
        if any(argument.ndim != rank for argument in arguments):
            arguments = aligned(arguments)
        traits = self.traits
        if self.python:
            arguments = _as_python_numbers(traits, arguments)
        if self.may_overflow and can_wrap(traits, [argument.dtype for argument in arguments]):
            refuse_overflow(traits, arguments)
        if self.python and traits.role is Role.POWER:
            return _checked_power(*arguments)
        if out is not None:
            result: Array = self.function(*arguments, out=out)
        else:
            result = self.function(*arguments)
        return result

    def can_fail(self, parents: Sequence[Node]) -> bool:
        if self.python and self.traits.divides:
            return not (isinstance(parents[1].operation, ConstantValue) and almost_never_zero(parents[1]))
        checked = not isinstance(self.function, np.ufunc | Comparison) and self.function is not np.where
        return checked or (self.python and self.traits.role is Role.POWER)

    def is_bare(self, parents: Sequence[Node]) -> bool:
        """Say whether the function alone will do: nothing to line up, to convert or to look for in the arrays."""
        dtypes = [parent.dtype for parent in parents]
        if not isinstance(self.function, np.ufunc) or len({len(parent.shape) for parent in parents}) > 1:
            return False
        traits = self.traits
        if self.python and (traits.divides or traits.role is Role.POWER or _are_converted(traits, dtypes)):
            return False
        return not (self.may_overflow and can_wrap(traits, dtypes))

    def kind(self, parents: Sequence[Node]) -> Kind:
        return kind_of_result(self.traits, parents)


def _are_converted(traits: Traits, dtypes: Sequence[np.dtype[Any]]) -> bool:
    """Say whether bools among the arguments are to be made numbers, as Python takes them."""
    bools = sum(dtype.kind == "b" for dtype in dtypes)
    if len(dtypes) == 2 and (traits.weights is not None or traits.factor == 1):
        return bools == len(dtypes)  # NumPy takes a bool beside a number as the number it is
    return bools > 0 and not traits.takes_bools


def _as_python_numbers(traits: Traits, arguments: Sequence[Array]) -> Sequence[Array]:
    if _are_converted(traits, [argument.dtype for argument in arguments]):
        arguments = [a.astype(np.int64) if a.dtype.kind == "b" else a for a in arguments]
    if traits.divides and not np.all(arguments[1]):
        fail_samples(arguments[1] == 0, ZeroDivisionError("division by zero"))
    return arguments


def _checked_power(base: Array, exponent: Array) -> Array:
    """Fail where Python fails; what leaves the real numbers is refused."""
    whole = exponent == np.floor(exponent)
    if not np.all(whole & (exponent >= 0)):
        fail_samples((base == 0) & (exponent < 0), ZeroDivisionError("zero cannot be raised to a negative power"))
        beyond = np.isfinite(base) & (base < 0) & ~whole & np.isfinite(exponent)
        fail_samples(beyond, ProgramError("a negative number to a fractional power is complex, which is not supported"))
    result: Array = np.power(base, exponent)
    if result.dtype.kind == "f" and not np.isfinite(result).all():
        beyond = np.isfinite(base) & np.isfinite(exponent) & ~np.isfinite(result)
        fail_samples(beyond, OverflowError("numerical result out of range"))
    return result


def fail_samples(failing: Array, cause: Exception) -> None:
    """Fail for the samples in which a condition holds, for any of their elements."""
    if failing.any():
        samples: Array = np.logical_or.reduce(failing.reshape(len(failing), -1), axis=1)
        raise SampleFailure(int(samples.argmax()), cause, failing=samples)


def whole_numbers(array: Array) -> Array:
    """Return numbers as whole ones, cut off towards zero; what has no 64-bit whole number is refused."""
    if array.dtype.kind == "f":
        outside = ~(np.abs(array) < 2.0**63)
        if outside.any():
            fail_samples(np.isnan(array), ValueError("cannot convert float NaN to integer"))
            fail_samples(np.isinf(array), OverflowError("cannot convert float infinity to integer"))
            raise ProgramError("whole numbers in the program leave the 64-bit range; keep these numbers as floats")
    return array.astype(np.int64)


class SampleFailure(Exception):
    """Some samples of the batch made the program fail; `index` is the position of the first.

    `failing` marks them all, if they are known; a single mark stands for every sample.
    """

    def __init__(
        self, index: int, cause: BaseException, label: str = "the program", failing: Array | None = None
    ) -> None:
        super().__init__(index, cause, label)
        self.index = index
        self.cause = cause
        self.label = label
        self._failing = failing

    def failing(self, samples: int) -> Array:
        """Return a mark for each sample of the batch that failed."""
        if self._failing is not None:
            return np.broadcast_to(self._failing, samples)
        failing = np.zeros(samples, np.bool_)
        failing[self.index] = True
        return failing


@lru_cache(maxsize=4096)
def _elementwise_dtype(operation: Elementwise, dtypes: tuple[str, ...]) -> np.dtype[Any]:
    result: Array = np.asarray(operation.evaluate_into([np.ones(1, dtype=d) for d in dtypes], None))
    return result.dtype


def elementwise(operation: Elementwise, parents: Sequence[Node]) -> Node:
    """Make the node of an element-by-element operation."""
    if operation.traits.role is Role.COMPARISON and {parent.dtype.kind for parent in parents} == {"i", "f"}:
        exact, parents = exact_comparison(operation.name, parents)
        operation = operation if exact is None else replace(operation, function=exact)
    dtype = _elementwise_dtype(operation, tuple(parent.dtype.str for parent in parents))
    shape = parents[0].shape
    if any(parent.shape != shape for parent in parents):
        shape = np.broadcast_shapes(*(parent.shape for parent in parents))
    operation, bound = with_range(operation, parents, dtype)
    node = Node(operation, tuple(parents), shape, dtype)
    node.bound, node.numpy = bound, of_numpy(operation.name, parents)
    return node


def with_range(operation: Elementwise, parents: Sequence[Node], dtype: np.dtype[Any]) -> tuple[Elementwise, int | None]:
    """Return how large whole numbers of an operation on some nodes can get, and the operation that looks if it must."""
    if dtype.kind != "i":
        return operation, 1 if dtype.kind == "b" else None
    bound = _bound(operation.traits, [parent.bound for parent in parents])
    may_overflow = bound is None
    return operation if operation.may_overflow is may_overflow else replace(operation, may_overflow=may_overflow), bound


def _bound(traits: Traits, bounds: Sequence[int | None]) -> int | None:
    """Return how large the whole numbers of a result can get, if that is known and they fit into 64 bits."""
    known = [bound for bound in bounds if bound is not None]
    if traits.size is None or len(known) < len(bounds):
        return None
    bound = traits.size(known, 1, 1)
    return bound if isinstance(bound, int) and bound <= INTEGER_LIMIT else None


@dataclass(frozen=True, slots=True)
class ArrayFunction(Operation):
    """A NumPy function of whole arrays, applied to each sample's array: sum, sort, median, ..."""

    name: str
    function: Callable[..., Any]
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def traits(self) -> Traits:
        return traits_of(self.name)

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        if can_wrap(self.traits, [argument.dtype for argument in arguments]):
            refuse_overflow(self.traits, arguments, self.options)
        result: Array = np.asarray(self.function(*arguments, **dict(self.options)))
        return result

    def kind(self, parents: Sequence[Node]) -> Kind:
        return kind_of_result(self.traits, parents)


def array_function(operation: ArrayFunction, parents: Sequence[Node]) -> Node:
    """Make the node of a function of whole arrays; the result's shape is read off an example."""
    example = operation.evaluate([np.ones((1, *p.shape), p.dtype) for p in parents], Context(1, None))  # type: ignore[arg-type]
    levels = parents[0].levels if operation.traits.role is Role.MOVE else None
    return Node(operation, tuple(parents), example.shape[1:], example.dtype, levels)


@dataclass(frozen=True, slots=True)
class Index(Operation):
    """A constant subscript of each sample's array."""

    key: tuple[Any, ...]

    fresh = False

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        result: Array = arguments[0][(slice(None), *self.key)]
        return result

    def kind(self, parents: Sequence[Node]) -> Kind:
        return parents[0].kind

    def whole(self, parents: Sequence[Node]) -> Whole:
        return parents[0].whole


def index(parent: Node, key: Any) -> Node:
    """Make the node of `parent[key]` for a constant key."""
    keys = key if isinstance(key, tuple) else (key,)
    if any(k is Ellipsis for k in keys):
        missing = len(parent.shape) - sum(k is not None and k is not Ellipsis for k in keys)
        at = keys.index(Ellipsis)
        keys = keys[:at] + (slice(None),) * missing + keys[at + 1 :]
    example = np.broadcast_to(np.zeros((), bool), parent.shape)[keys]
    return Node(Index(keys), (parent,), example.shape, parent.dtype, parent.levels)


@dataclass(frozen=True, slots=True)
class Gather(Operation):
    """A random subscript: element `index` of each sample's array, counted as Python counts."""

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        array, position = arguments
        length = array.shape[1]
        fail_samples((position < -length) | (position >= length), IndexError("list index out of range"))
        samples = max(len(array), len(position))
        array = np.broadcast_to(array, (samples, *array.shape[1:]))
        result: Array = array[np.arange(samples), np.broadcast_to(position, (samples,))]
        return result

    def can_fail(self, parents: Sequence[Node]) -> bool:
        return True

    def kind(self, parents: Sequence[Node]) -> Kind:
        return parents[0].kind

    def whole(self, parents: Sequence[Node]) -> Whole:
        return parents[0].whole


def gather(parent: Node, position: Node) -> Node:
    """Make the node of `parent[position]` for a random position."""
    return Node(Gather(), (parent, position), parent.shape[1:], parent.dtype, parent.levels)


@dataclass(frozen=True, slots=True)
class Stack(Operation):
    """Several quantities side by side as one array."""

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        samples = max(len(argument) for argument in arguments)
        shape = (samples, len(arguments), *arguments[0].shape[1:])
        result = np.empty(shape, np.result_type(*arguments))
        for position, argument in enumerate(arguments):
            result[:, position] = argument
        return result

    def kind(self, parents: Sequence[Node]) -> Kind:
        kinds = {parent.kind for parent in parents}
        return kinds.pop() if len(kinds) == 1 else Kind.MIXED


def stack(parents: Sequence[Node]) -> Node:
    """Make the node of an array whose elements are the given nodes, all of one shape."""
    dtype = np.result_type(*{parent.dtype for parent in parents})
    return Node(Stack(), tuple(parents), (len(parents), *parents[0].shape), dtype, parents[0].levels)


@dataclass(frozen=True, slots=True)
class Lookup(Operation):
    """A table indexed by codes: how any function of a category is computed; for some codes it may fail."""

    table: Array = field(compare=False)
    errors: tuple[Exception | None, ...] = field(default=(), compare=False)
    listed_whole: Whole = field(default=False, compare=False)
    called: bool = field(default=False, compare=False)
    """Whether plain code computed the entries: how far it rounds is not known."""

    def whole(self, parents: Sequence[Node]) -> Whole:
        return self.listed_whole

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        if self.errors:
            failing = np.array([error is not None for error in self.errors])[arguments[0]]
            if failing.any():
                error = self.errors[arguments[0][failing].flat[0]]
                assert error is not None
                fail_samples(failing, error)
        if self.table.dtype == bool and self.table.ndim == 1:
            return self._told(arguments[0])
        result: Array = np.take(self.table, arguments[0], axis=0)
        return result

    def _told(self, codes: Array) -> Array:
        """Look truth values up; to compare with the only code for which they are true, or false, is a lot quicker."""
        for only in (True, False):
            places = np.flatnonzero(self.table == only)
            if len(places) == 1:
                told: Array = codes == places[0] if only else codes != places[0]
                return told
        return np.take(self.table, codes)

    def can_fail(self, parents: Sequence[Node]) -> bool:
        return bool(self.errors)


def lookup(
    codes: Node,
    table: Array,
    levels: tuple[Any, ...] | None = None,
    errors: tuple[Exception | None, ...] = (),
    whole: Whole = False,
    called: bool = False,
) -> Node:
    """Make the node of `table[codes]`; with `errors`, of which some are None, the codes of the others fail."""
    shape: Shape = codes.shape + table.shape[1:]
    node = Node(Lookup(table, errors, whole, called), (codes,), shape, table.dtype, levels, Kind.DISCRETE)
    if levels is None and table.dtype.kind == "i":
        node.bound = largest(table)
    return node


EXACT_DIGITS = 22  # powers of ten up to here are exact as floats


@dataclass(frozen=True)
class NumpyRound:
    """Rounds as NumPy rounds its own numbers: by scaling, which moves values such as 46.15 onto a tie."""

    digits: int

    def __call__(self, array: Array) -> Array:
        result: Array = np.round(array, self.digits)
        return result


@dataclass(frozen=True)
class PythonRound:
    """Rounds arrays exactly as `round(x, digits)` rounds numbers.

    NumPy scales by a power of ten before it rounds, which moves values such as 0.15 onto a tie.
    Only values next to a tie can differ, and those are rounded one by one.
    """

    digits: int | None

    def __call__(self, array: Array) -> Array:
        digits = self.digits
        if array.dtype.kind in "bi" and (digits is None or digits >= 0):
            return array.astype(np.int64)
        if digits is not None and abs(digits) > EXACT_DIGITS:
            return np.array([round(value, digits) for value in array.ravel().tolist()]).reshape(array.shape)
        result: Array = np.round(array, digits or 0)
        with np.errstate(all="ignore"):
            scaled = array * 10.0 ** (digits or 0)
            near_tie = np.abs(scaled - np.floor(scaled) - 0.5) < 1e-6 * np.maximum(1.0, np.abs(scaled) * 1e-6)
        if digits and near_tie.any():
            result[near_tie] = [round(value, digits) for value in array[near_tie].tolist()]
        return whole_numbers(result) if digits is None or array.dtype.kind in "bi" else result


def decimals(function: Callable[..., Any]) -> int:
    """Return how many decimals a rounding function keeps, NumPy's or Python's."""
    if isinstance(function, partial):
        return int(function.keywords["decimals"])
    assert isinstance(function, NumpyRound | PythonRound)
    return function.digits or 0


@dataclass(frozen=True, slots=True)
class AtExtreme(Operation):
    """The element of one array that stands where another, the keys, is largest or smallest: first or last among equals.

    The parents are the keys and the values. If it has `started` there are a key to beat and a value in case that no key
    does. If it is `guarded`, a last parent says which places count; without a start, one of them must.
    """

    largest: bool
    last: bool
    started: bool = False
    guarded: bool = False

    selects = True

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        keys, values, *others = arguments
        counting = others[-1] if self.guarded else None
        places = self._places(keys, counting)
        samples = max(map(len, arguments))
        every = np.arange(samples)
        places = np.broadcast_to(places, (samples,))
        picked: Array = np.broadcast_to(values, (samples, *values.shape[1:]))[every, places]
        if not self.started:
            return picked
        start, before = others[:2]
        wins = self.beats.function(np.broadcast_to(keys, (samples, keys.shape[1]))[every, places], start)
        if counting is not None:
            wins &= np.broadcast_to(counting, (samples, counting.shape[1]))[every, places]
        return np.where(wins.reshape(-1, *(1,) * (picked.ndim - 1)), picked, before)

    def _places(self, keys: Array, counting: Array | None) -> Array:
        """Return the place of the extreme for each sample."""
        if counting is None:
            return self._first(keys, np.argmax if self.largest else np.argmin)
        possible = np.where(counting, keys, _beyond(keys.dtype, self.largest))
        top = possible.max(axis=1) if self.largest else possible.min(axis=1)
        # What does not count may have the same number: it is never taken all the same.
        return self._first((keys == top[:, np.newaxis]) & counting, np.argmax)

    def _first(self, array: Array, search: Callable[..., Any]) -> Array:
        if not self.last:
            return np.asarray(search(array, axis=1))
        return np.asarray(array.shape[1] - 1 - search(array[:, ::-1], axis=1))

    @property
    def beats(self) -> Elementwise:
        """The comparison by which one key takes the place of the best so far."""
        if self.largest:
            return Elementwise("greater_equal", np.greater_equal) if self.last else Elementwise("greater", np.greater)
        return Elementwise("less_equal", np.less_equal) if self.last else Elementwise("less", np.less)

    def kind(self, parents: Sequence[Node]) -> Kind:
        kinds = {parent.kind for parent in self.possible(parents)}
        return kinds.pop() if len(kinds) == 1 else Kind.MIXED

    def whole(self, parents: Sequence[Node]) -> Whole:
        return parents[1].whole if not self.started else False

    def possible(self, parents: Sequence[Node]) -> list[Node]:
        """Return the values that may be picked."""
        return [parents[1], parents[3]] if self.started else [parents[1]]


def _beyond(dtype: np.dtype[Any], largest: bool) -> Any:
    """Return a number that is not taken as long as there is another one."""
    if dtype.kind == "f":
        return -np.inf if largest else np.inf
    if dtype.kind == "b":
        return not largest
    limits = np.iinfo(dtype)
    return limits.min if largest else limits.max


def at_extreme(
    keys: Node, values: Node, start: tuple[Node, Node] | None, counting: Node | None, *, largest: bool, last: bool
) -> Node:
    """Make the node of the value that stands where the keys are extreme; the start is a key to beat and a value."""
    operation = AtExtreme(largest, last, start is not None, counting is not None)
    parents = (keys, values, *(start or ()), *(() if counting is None else (counting,)))
    node = Node(operation, parents, values.shape[1:], values.dtype, values.levels, operation.kind(parents))
    possible = operation.possible(parents)
    bounds = [one.bound for one in possible if one.bound is not None]
    node.bound = max(bounds) if len(bounds) == len(possible) else None
    node.numpy = possible[0].numpy if len({one.numpy for one in possible}) == 1 else None
    return node
