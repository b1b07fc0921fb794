"""The model graph in the terms of another library: each node becomes a symbolic expression there.

Our arrays carry the samples along their first axis; expressions stand for one sample and have no such axis. A back end
says how each kind of operation is written in its library; the walk over the graph is the same for all.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from privug.model.node import Array, ConstantValue, Node, ancestors, reached
from privug.model.numpy_functions import Cast
from privug.model.operations import ArrayFunction, Elementwise, Gather, Index, Lookup, Stack, decimals
from privug.model.plates import Fold, Lane
from privug.model.traits import BackendName, Role, traits_of
from privug.observation.likelihood import ROUNDING, CloseTo
from privug.prior.conditional import Choose, Match
from privug.prior.family import Family, LogDensity
from privug.program.traced.conditions import Checked
from privug.program.traced.sorting import SortingKey

MOST_SPELLED_OUT = 256
"""How many rows are written out one by one where a term cannot be written for all rows at once."""


class Untranslatable(Exception):
    """An operation has no counterpart in the other library; the message names it."""


def resolved(name: BackendName, operation: str, library: Any) -> Callable[..., Any]:
    """Return a function of a library by its name there, or one that is written with it."""
    found: Any = library
    if callable(name):
        return partial(name, library)
    for part in (name or "").split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise Untranslatable(f"np.{operation}")
    function: Callable[..., Any] = found
    return function


class Functions:
    """The functions of a library by NumPy's names, as formulas of families are written in."""

    def __init__(self, find: Callable[[str], Callable[..., Any]]) -> None:
        self._find = find

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._find(name)


class Backend(ABC):
    """How expressions for one sample are written in another library. Values are the library's own.

    Names of functions are NumPy's, and so is their meaning, broadcasting included. What the library does not have
    raises Untranslatable. Expressions have subscripts as arrays do.
    """

    formulas: ClassVar[Functions]
    """What formulas of families are written in."""

    @abstractmethod
    def constant(self, array: Array | float) -> Any:
        """Return fixed numbers as an expression."""

    @abstractmethod
    def cast(self, value: Any, dtype: np.dtype[Any]) -> Any:
        """Return the numbers in another type: bool, int32, int64 or float64; floats are cut off towards zero."""

    @abstractmethod
    def function(self, name: str) -> Callable[..., Any]:
        """Return the library's function of a name."""

    @abstractmethod
    def own_density(self, family: Family, value: Any, parameters: Sequence[Any]) -> Any | None:
        """Return the log density of a family as the library has it; None if it does not have that family."""

    def elementwise(self, name: str, arguments: Sequence[Any]) -> Any:
        """Apply a function element by element: 'add', 'true_divide', 'where', 'less', 'logical_and', 'exp', ..."""
        return self.function(name)(*arguments)

    def array_function(self, name: str, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """Apply a function of whole arrays: 'sum', 'mean', 'sort', 'cumsum', 'argmax', 'dot', ...

        Axes are counted within one value. 'concatenate' and 'stack' take several arguments and the option 'axis';
        'reshape' has the option 'shape'; 'argsort' sorts stably by its arguments, the first one being most significant.
        """
        return self.function(name)(*([list(arguments)] if traits_of(name).joins else arguments), **options)

    def log_density(self, family: Family, value: Any, parameters: Sequence[Any]) -> Any:
        """Return the log density, or log probability, of a family that is no mixture, element by element."""
        log = self.own_density(family, value, parameters)
        if log is None:
            log = family.formula(self.formulas, value, *parameters)
        if log is None:
            raise Untranslatable(f"the density of {family.name}")
        return log


def translate(targets: Sequence[Node], backend: Backend, values: dict[Node, Any]) -> list[Any]:
    """Return the targets as expressions, given those of the random roots; `values` gains all nodes on the way."""
    needed = set(reached(targets, values.__contains__)).difference(values)
    for node in ancestors(targets) if needed else ():  # parents before children; nothing behind the known ones
        if node not in needed:
            continue
        if node.is_random:
            raise Untranslatable(_named(node))
        values[node] = _expression(node, backend, values)
    return [values[target] for target in targets]


def log_density(backend: Backend, family: Family, value: Any, parameters: Sequence[Any]) -> Any:
    """Return the log density of any family; that of a mixture from those of its components."""
    if not family.families:
        return backend.log_density(family, value, parameters)
    logs = [
        backend.elementwise(
            "add", [log_density(backend, part, value, own), backend.elementwise("log", [parameters[0][..., k]])]
        )
        for k, (part, own) in enumerate(family.parts(parameters))
    ]
    return combined(backend, "logaddexp", logs)


def combined(backend: Backend, name: str, values: Sequence[Any]) -> Any:
    """Combine several expressions by a function of two."""
    total = values[0]
    for value in values[1:]:
        total = backend.elementwise(name, [total, value])
    return total


def _expression(node: Node, backend: Backend, values: Mapping[Node, Any]) -> Any:
    arguments = [values[parent] for parent in node.parents]
    match node.operation:
        case ConstantValue(array=array):
            return backend.constant(array[0])
        case Elementwise():
            return _elementwise(node, backend, arguments)
        case ArrayFunction():
            return _array_function(node, backend, arguments)
        case Fold():
            return _fold(node.operation, backend, arguments)
        case LogDensity(family=family):
            return log_density(backend, family, arguments[0], arguments[1:])
        case Stack():
            alike = [backend.cast(value, node.dtype) for value in arguments]
            return backend.array_function("stack", alike, {"axis": 0})
        case Index(key=key):
            return arguments[0][key]
        case _:
            return _selection(node, backend, arguments)


def _selection(node: Node, backend: Backend, arguments: Sequence[Any]) -> Any:
    match node.operation:
        case Gather():
            length = node.parents[0].shape[0]
            low, high = backend.constant(np.array(-length)), backend.constant(np.array(length - 1))
            inside = backend.elementwise("minimum", [backend.elementwise("maximum", [arguments[1], low]), high])
            return arguments[0][inside]
        case Lookup(table=table):
            return backend.constant(table)[arguments[0]]
        case Cast(dtype=dtype):
            return backend.cast(arguments[0], dtype)
        case Checked():
            return arguments[0]
        case Choose():
            return _chosen(node, backend, arguments)
        case Match(keys=keys):
            found = backend.elementwise("equal", [arguments[0][..., None], backend.constant(keys)])
            return backend.array_function("argmax", [found], {"axis": -1})
        case CloseTo(value=value, tolerance=tolerance):
            return _close(backend, arguments[0], value, tolerance)
    raise Untranslatable(_named(node))


def _named(node: Node) -> str:
    operation = node.operation
    calls = getattr(operation, "calls", None)
    if calls is not None:
        return f"what the program calls: {calls.name}"
    label = getattr(operation, "label", None) or getattr(operation, "name", None)
    return f"{type(operation).__name__} of {label}" if label else type(operation).__name__


def _close(backend: Backend, number: Any, value: float, tolerance: float | None) -> Any:
    distance = backend.elementwise("absolute", [backend.elementwise("subtract", [number, backend.constant(value)])])
    if tolerance is not None:
        return backend.elementwise("less_equal", [distance, backend.constant(tolerance)])
    size = backend.elementwise("maximum", [backend.elementwise("absolute", [number]), backend.constant(abs(value))])
    slack = backend.elementwise("multiply", [size, backend.constant(ROUNDING)])
    return backend.elementwise("less_equal", [distance, slack])


def _chosen(node: Node, backend: Backend, arguments: Sequence[Any]) -> Any:
    position, *choices = arguments
    result = backend.cast(choices[-1], node.dtype)
    for number, choice in reversed(list(enumerate(choices[:-1]))):
        is_that = backend.elementwise("equal", [position, backend.constant(np.array(number))])
        result = backend.elementwise("where", [is_that, backend.cast(choice, node.dtype), result])
    return result


def _elementwise(node: Node, backend: Backend, arguments: Sequence[Any]) -> Any:
    """Write a function of elements; truth values are numbers wherever NumPy or Python takes them as such."""
    operation = node.operation
    assert isinstance(operation, Elementwise)
    traits, dtypes = operation.traits, [parent.dtype for parent in node.parents]
    if isinstance(operation.function, SortingKey):
        return _sorting_key(operation.function, backend, arguments[0], dtypes[0])
    if traits.decimals:
        return _rounded(node, operation.function, backend, arguments[0])
    if traits.truth or (node.dtype.kind == "b" and all(dtype.kind == "b" for dtype in dtypes)):
        return backend.elementwise(traits.on_bools or traits.name, _as_bools(backend, arguments))
    if traits.role is Role.CHOICE:
        condition, *choices = arguments
        alike = [backend.cast(choice, node.dtype) for choice in choices]
        return backend.elementwise("where", [*_as_bools(backend, [condition]), *alike])
    if node.dtype.kind == "f":
        arguments = [backend.cast(value, node.dtype) for value in arguments]
    elif not traits.takes_bools or len({dtype.kind for dtype in dtypes}) > 1:
        number: np.dtype[Any] = np.dtype(np.int64)
        arguments = [
            backend.cast(value, number) if dtype.kind == "b" else value
            for value, dtype in zip(arguments, dtypes, strict=True)
        ]
    return backend.elementwise(traits.name, list(arguments))


def _as_bools(backend: Backend, values: Sequence[Any]) -> list[Any]:
    return [backend.cast(value, np.dtype(bool)) for value in values]


def _sorting_key(key: SortingKey, backend: Backend, value: Any, dtype: np.dtype[Any]) -> Any:
    number = backend.cast(value, np.dtype(np.int64)) if dtype.kind == "b" else value
    return backend.elementwise("negative", [number]) if key.descending else number


def _rounded(node: Node, function: Callable[..., Any], backend: Backend, value: Any) -> Any:
    """Round to a number of decimals, up to the values right at a tie that NumPy and Python round differently."""
    digits = decimals(function)
    number = backend.cast(value, np.dtype(np.float64))
    if digits:
        scale = backend.constant(10.0**digits)
        scaled = backend.elementwise("rint", [backend.elementwise("multiply", [number, scale])])
        return backend.cast(backend.elementwise("true_divide", [scaled, scale]), node.dtype)
    return backend.cast(backend.elementwise("rint", [number]), node.dtype)


def _array_function(node: Node, backend: Backend, arguments: Sequence[Any]) -> Any:
    operation = node.operation
    assert isinstance(operation, ArrayFunction)
    traits, options = operation.traits, dict(operation.options)
    if "axis" in options:
        axis = options["axis"]
        options["axis"] = tuple(one - 1 for one in axis) if isinstance(axis, tuple) else axis - 1
    if traits.joins:
        options["axis"] = operation.function.args[1] if isinstance(operation.function, partial) else 0
        arguments = [backend.cast(value, node.dtype) for value in arguments]
    elif traits.reshapes:
        options["shape"] = node.shape
    elif node.dtype.kind != "b" and not (traits.steps or traits.role is Role.MOVE):
        wide = node.dtype if node.dtype.kind == "f" else np.dtype(np.int64)
        arguments = [backend.cast(value, wide) for value in arguments]
    return backend.array_function(traits.name, list(arguments), options)


_SIDE_BY_SIDE = (Elementwise, Lookup, Choose, Match, Cast, Checked, CloseTo, LogDensity, Lane)


def _fold(fold: Fold, backend: Backend, arguments: Sequence[Any]) -> Any:
    """Write a term for all rows at once: in place of each row's cell stands the column."""
    rows = dict(zip((*fold.lanes, *fold.shared), arguments, strict=True))
    if not _are_side_by_side(fold):
        terms = _spelled_out(fold, backend, rows)
    else:
        terms = translate([fold.term], backend, rows)[0]
    if fold.how == "map":
        return terms
    if fold.traits.totals and fold.term.dtype.kind == "b":
        terms = backend.cast(terms, np.dtype(np.int64))
    return backend.array_function(fold.how, [terms], {"axis": 0})


def _are_side_by_side(fold: Fold) -> bool:
    """Say whether a term consists of functions of single numbers, which do not mind that there are many."""
    outside = {id(node) for node in ancestors(fold.shared)}
    inner = [node for node in ancestors([fold.term]) if id(node) not in outside]
    single = all(node.shape == () for node in [*inner, *fold.shared])
    return single and all(isinstance(node.operation, (*_SIDE_BY_SIDE, ConstantValue)) for node in inner)


def _spelled_out(fold: Fold, backend: Backend, rows: Mapping[Node, Any]) -> Any:
    if fold.size > MOST_SPELLED_OUT:
        raise Untranslatable(f"a loop over {fold.size} rows whose cells are arrays")
    terms = []
    for position in range(fold.size):
        own = {node: value[position] if isinstance(node.operation, Lane) else value for node, value in rows.items()}
        terms.append(translate([fold.term], backend, own)[0])
    return backend.array_function("stack", terms, {"axis": 0})
