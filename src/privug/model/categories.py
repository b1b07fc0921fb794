"""Categories, values that are strings, enums, tuples or anything else hashable, and their operators.

A batch of a category holds codes into its levels; functions of it are tables over the levels.
"""

import operator
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from privug.arguments import shown
from privug.errors import ArgumentError, is_own
from privug.model.failures import fails_where, told
from privug.model.node import CODE_DTYPE, Array, ConstantValue, Kind, Node, Whole, fallible, path_condition, refuse
from privug.model.operations import Elementwise, constant, elementwise, lookup
from privug.model.traits import Role, traits_of

PAIR_TABLE_LIMIT = 1_000_000


class Encoded(NamedTuple):
    """Plain values as an array of numbers, or as codes and the levels they stand for."""

    array: Array
    levels: tuple[Any, ...] | None = None
    whole: Whole = frozenset()
    """Which of floats are whole numbers to a program."""


def encode(values: Sequence[Any], *, keep_types: bool = False) -> Encoded:
    """Turn plain values into an array of numbers, or into codes and the levels they stand for.

    Whole numbers among floats are floats in the array, and named as `whole`. Those that no float equals make a
    category of all, and so do values that are there both as a whole number and as a float, where types are kept.
    """
    numbers = _as_numbers(values)
    if numbers is not None:
        whole = _whole_among_floats(values) if numbers.dtype.kind == "f" else frozenset()
        if not keep_types or whole.isdisjoint(value for value in values if isinstance(value, float)):
            return Encoded(numbers, None, whole)
    if set(map(type, values)) == {str}:
        known = {value: code for code, value in enumerate(dict.fromkeys(values))}
        return Encoded(np.fromiter(map(known.__getitem__, values), CODE_DTYPE, len(values)), tuple(known))
    codes: dict[Any, int] = {}
    try:
        array = np.fromiter((codes.setdefault(_key(value), len(codes)) for value in values), CODE_DTYPE, len(values))
    except TypeError as error:
        raise ArgumentError(f"values must be numbers, strings, enums or tuples: {error}") from None
    return Encoded(array, tuple(value for _, value in codes))


def _whole_among_floats(values: Sequence[Any]) -> frozenset[float]:
    return frozenset(float(value) for value in values if isinstance(value, int | np.integer))


def _key(value: Any) -> tuple[type, Any]:
    """Keep 1, True and 1.0 apart inside a category, where they would otherwise be one dictionary key."""
    return (type(value), value)


def _as_numbers(values: Sequence[Any]) -> Array | None:
    if not all(isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating) for value in values):
        return None
    are_bools = [isinstance(value, bool | np.bool_) for value in values]
    if any(are_bools) and not all(are_bools):
        return None
    array = np.asarray(values)
    if array.dtype.kind == "f" and any(isinstance(v, int | np.integer) and float(v) != v for v in values):
        return None  # whole numbers beyond 2**53, which NumPy would round
    if array.dtype.kind == "b":
        return array
    if array.dtype.kind in "iu" and array.dtype.itemsize <= 8 and array.dtype != np.uint64:
        return array.astype(np.int64)
    return array.astype(np.float64) if array.dtype.kind == "f" else None


def constant_category(value: Any) -> Node:
    """Make the node of one fixed value that is not a number."""
    try:
        hash(value)
    except TypeError:
        raise ArgumentError(f"{shown(value)} cannot be one of the values of a random quantity; write a tuple") from None
    return Node(ConstantValue(np.zeros(1, CODE_DTYPE)), (), (), CODE_DTYPE, (value,), Kind.DISCRETE)


def map_levels(node: Node, function: Callable[[Any], Any]) -> Node:
    """Apply a plain function to a category by applying it to each level."""
    assert node.levels is not None
    return tabulated(node, *outcomes(function, node.levels))


def tabulated(codes: Node, results: Sequence[Any], errors: Sequence[Exception | None], *, called: bool = False) -> Node:
    """Make the node of the plain values that belong to codes; for some codes there may be an error instead."""
    table, levels, whole = encode(results)
    return looked_up(codes, table, levels, errors, whole, called=called)


def looked_up(
    node: Node,
    table: Array,
    levels: tuple[Any, ...] | None = None,
    errors: Sequence[Exception | None] = (),
    whole: Whole = frozenset(),
    *,
    called: bool = False,
) -> Node:
    """Make the node of `table[node]`, which fails where there are errors if the code at hand runs there.

    Where it was plain code that was `called` for the entries, it is not known how far it rounds.
    """
    if all(error is None for error in errors):
        return lookup(node, table, levels, whole=whole, called=called)
    if node.shape == ():
        _tell_of_levels(node, errors)
    path, fine = path_condition.get(), constant(errors.index(None))
    if path is not None:  # where this code does not run, a level will do on which nothing goes wrong
        node = elementwise(Elementwise("where", np.where), [path.node, node, fine])
    made = lookup(node, table, levels, tuple(errors), whole, called)
    return told(made) if node.shape == () else made


def _tell_of_levels(node: Node, errors: Sequence[Exception | None]) -> None:
    """Tell for which levels of a category a function fails."""
    for error in {type(error): error for error in errors if error is not None}.values():
        failing = np.array([type(other) is type(error) for other in errors])
        fails_where(partial(lookup, node, failing), error)


def outcomes(function: Callable[[Any], Any], levels: Sequence[Any]) -> tuple[list[Any], tuple[Exception | None, ...]]:
    """Call a function on each level; while a program is traced, it may fail on some."""
    results: list[Any] = []
    errors: list[Exception | None] = []
    for level in levels:
        try:
            results.append(function(level))
            errors.append(None)
        except Exception as error:
            errors.append(error)
            if is_own(error) or fallible.get() is None:
                raise
    if not results and levels:
        raise next(error for error in errors if error is not None)
    succeeded = iter(results)
    return [results[0] if error is not None else next(succeeded) for error in errors], tuple(errors)


def recode(node: Node, levels: tuple[Any, ...]) -> Node:
    """Express a category in other levels that include its own."""
    if node.levels == levels:
        return node
    positions = {_key(level): code for code, level in enumerate(levels)}
    table = np.array([positions[_key(level)] for level in node.levels or ()], CODE_DTYPE)
    return lookup(node, table, levels)


def common_levels(nodes: Iterable[Node]) -> tuple[Any, ...]:
    """Return the union of the levels, in the order in which they appear."""
    return tuple(value for _, value in dict.fromkeys(_key(level) for node in nodes for level in node.levels or ()))


def unify(nodes: Sequence[Node]) -> list[Node]:
    """Bring nodes that may be chosen between to common levels; leave numbers alone."""
    if all(node.levels is None for node in nodes):
        return list(nodes)
    if any(node.levels is None for node in nodes):
        nodes = [node if node.levels is not None else _number_as_category(node) for node in nodes]
    levels = common_levels(nodes)
    return [recode(node, levels) for node in nodes]


def _number_as_category(node: Node) -> Node:
    if isinstance(node.operation, ConstantValue) and node.shape == ():
        return constant_category(node.operation.array[0].item())
    raise ArgumentError("a random number and a random string cannot be alternatives of one quantity")


def compare_equal(left: Node, right: Node) -> Node:
    """Make the node of `left == right` for two categories."""
    left, right = unify([left, right])
    return elementwise(Elementwise("equal", np.equal), [left, right])


def map_pairs(left: Node, right: Node, function: Callable[[Any, Any], Any]) -> Node:
    """Apply a plain function of two categories by applying it to each pair of levels."""
    assert left.levels is not None
    assert right.levels is not None
    if len(left.levels) * len(right.levels) > PAIR_TABLE_LIMIT:
        raise ArgumentError("these two categories have too many pairs of values to tabulate")
    table, levels, whole = encode([function(a, b) for a in left.levels for b in right.levels])
    width = elementwise(Elementwise("multiply", np.multiply), [left, constant(len(right.levels))])
    return lookup(elementwise(Elementwise("add", np.add), [width, right]), table, levels, whole=whole)


def on_categories(name: str, nodes: Sequence[Node]) -> Node:
    """Apply an operator to categories, or to a category and a constant, level by level."""
    traits = traits_of(name)
    if not traits.python or len(nodes) != 2:
        refuse(f"'{name}' on strings or other categories")
    left, right = nodes
    function = getattr(operator, traits.python)
    if left.levels is not None and isinstance(right.operation, ConstantValue) and right.shape == ():
        plain = _plain_constant(right)
        return map_levels(left, lambda level: function(level, plain))
    if right.levels is not None and isinstance(left.operation, ConstantValue) and left.shape == ():
        plain = _plain_constant(left)
        return map_levels(right, lambda level: function(plain, level))
    if left.levels is None or right.levels is None:
        refuse(f"'{name}' between a random string and a random number")
    alike = len({type(level) for level in (*left.levels, *right.levels)}) == 1
    if traits.role is Role.COMPARISON and not traits.direction and alike:
        same = compare_equal(left, right)
        return same if 0 in traits.signs else elementwise(Elementwise("logical_not", np.logical_not), [same])
    return map_pairs(left, right, function)


def _plain_constant(node: Node) -> Any:
    assert isinstance(node.operation, ConstantValue)
    value = node.operation.array[0]
    return node.levels[value] if node.levels is not None else value.item()
