"""Distributions that depend on another quantity, and what an attack accepts as a prior."""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from privug.arguments import check_takes, naming, plain_number, refuse_code, shown
from privug.errors import ArgumentError, PriorError, QuestionError, RepeatedQuantityWarning
from privug.model.categories import encode, map_levels, unify
from privug.model.node import Array, ConstantValue, Context, Kind, Node, Operation, Whole, ancestors
from privug.model.operations import SampleFailure, aligned, lookup
from privug.model.plan import Plan
from privug.model.table import Row
from privug.model.variable import RandomVariable, as_node, refusals
from privug.prior.choice import Constant, constant_value
from privug.prior.family import Draw, is_distribution
from privug.prior.scalar import ScalarFamily
from privug.runtime.pickling import portable
from privug.scoping import holding

ENUMERATION_LIMIT = 1000
EXAMPLES = 64
"""How many values a function is called on to see what kind of quantity it returns."""


@dataclass(frozen=True, slots=True)
class Match(Operation):
    """The position of a number among given keys."""

    keys: Array = field(compare=False)

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        order = np.argsort(self.keys)
        found = np.minimum(np.searchsorted(self.keys, arguments[0], sorter=order), len(self.keys) - 1)
        positions: Array = order[found]
        missing = self.keys[positions] != arguments[0]
        if missing.any():
            raise PriorError(f"given: the table has no entry for the value {arguments[0][missing].flat[0]!s}")
        return positions


@dataclass(frozen=True, slots=True)
class Choose(Operation):
    """One of several quantities, by position."""

    selects = True

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        position, *choices = aligned(arguments)
        shape = np.broadcast_shapes(position.shape, *(choice.shape for choice in choices))
        result = np.empty(shape, np.result_type(*choices))
        for number, choice in enumerate(choices):
            np.copyto(result, choice, where=position == number)
        return result

    def kind(self, parents: Sequence[Node]) -> Kind:
        kinds = {parent.kind for parent in parents[1:]}
        return kinds.pop() if len(kinds) == 1 else Kind.MIXED

    def whole(self, parents: Sequence[Node]) -> Whole:
        return either_whole([whole_values(choice) for choice in parents[1:]])


def whole_values(node: Node) -> Whole:
    """Say which of a quantity's values are whole numbers to a program that gets it beside floats."""
    if node.dtype.kind == "f":
        return node.whole
    support = finite_support(node) if node.dtype.kind == "i" else []
    return True if support is None or len(support) > ENUMERATION_LIMIT else frozenset(map(float, support))


def either_whole(parts: Sequence[Whole]) -> Whole:
    """Say which values are whole numbers of a quantity that is one of several."""
    listed = [part for part in parts if not isinstance(part, bool)]
    return True if any(part is True for part in parts) else frozenset().union(*listed)


def given(x: Any, table: Mapping[Any, Any]) -> Any:
    """Return the quantity whose distribution depends on the value of `x`: a conditional table.

    Entries may be distributions, plain values, or rows of them.

    >>> import privug as pv
    >>> ill = pv.Bernoulli(0.2)
    >>> pv.given(ill, {0: pv.Normal(36.8, sd=0.3), 1: pv.Normal(38.5, sd=0.7)})
    <RandomVariable: continuous float64>
    """
    if not isinstance(table, Mapping) or not table:
        raise PriorError("given: the table must be a dict from values to distributions, and not empty")
    entries = list(table.values())
    if all(isinstance(entry, Row) for entry in entries):
        if len({entry.keys() for entry in entries}) > 1:
            raise PriorError("given: all rows of the table must have the same columns")
        columns = {}
        for name in entries[0]._fields:
            columns[name] = given(x, {key: entry[name] for key, entry in table.items()})
        return Row(**columns)
    position = _position(as_node(x), list(table))
    for key, entry in table.items():
        refuse_code(f"given: the entry for {shown(key)}", entry, PriorError)
    if not any(isinstance(entry, RandomVariable | list | np.ndarray) for entry in entries):
        array, levels, whole = encode([plain_number(entry) for entry in entries], keep_types=True)
        return RandomVariable(lookup(position, array, levels, whole=whole))
    try:
        nodes = unify([as_node(entry) for entry in entries])
    except ArgumentError as error:
        raise PriorError(f"given: the entries of the table do not fit together: {error}") from None
    if len({node.shape for node in nodes}) > 1:
        raise PriorError("given: all entries of the table must have the same shape")
    dtype = np.result_type(*{node.dtype for node in nodes})
    return RandomVariable(Node(Choose(), (position, *nodes), nodes[0].shape, dtype, nodes[0].levels))


def _position(x: Node, keys: list[Any]) -> Node:
    if x.shape != () or x.kind is not Kind.DISCRETE:
        raise PriorError("given: x must be one discrete quantity; for a continuous one use pv.bind or a parameter")
    if x.levels is not None:
        places = {key: place for place, key in enumerate(keys)}  # by hash: not all values tell whether they are equal
        missing = [level for level in x.levels if level not in places]
        if missing:
            raise PriorError(f"given: the table has no entry for the value {shown(missing[0])}")
        return map_levels(x, places.__getitem__)
    array, levels, _ = encode(keys)
    if levels is not None:
        raise PriorError("given: x is a number, so the table's keys must be numbers")
    return Node(Match(array), (x,), (), np.dtype(np.int64))


@dataclass(frozen=True, slots=True)
class BindDraw(Operation):
    """The bind of the monad by plain calls: for each distinct value, the distribution that the function returns.

    The first parent is the quantity; the others are `outer`: random quantities that were there before the function was
    called and that it uses. Those keep their values.
    """

    function: Callable[[Any], Any]
    outer: tuple[Node, ...]

    random = True
    opaque = True

    def __reduce__(self) -> tuple[Any, ...]:
        return BindDraw, (portable("what pv.bind gave", self.function), self.outer)

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        values, inverse = np.unique(arguments[0], return_inverse=True)
        if len(arguments[0]) == 1:
            inverse = np.zeros(context.samples, np.int64)
        parts = []
        for position, value in enumerate(values.tolist()):
            chosen = inverse == position
            known = {node: array[chosen] for node, array in zip(self.outer, arguments[1:], strict=True)}
            target, outer = _number_and_outer(self.function, value)
            if not known.keys() >= set(outer):
                raise PriorError(
                    f"bind: for the value {value} the function uses a random quantity from outside, as it does for few "
                    "others; make that quantity inside the function or write pv.where"
                )
            parts.append(Plan([target], self.outer).run(int(chosen.sum()), context.rng, known)[0])
        result = np.empty((context.samples, *parts[0].shape[1:]), np.result_type(*parts))
        for position, part in enumerate(parts):
            result[inverse == position] = part
        return result


def _number_and_outer(function: Callable[[Any], Any], value: Any) -> tuple[Node, list[Node]]:
    """Return the distribution for a value and the random quantities from outside that it uses: two calls share them."""
    target, again = as_node(_applied(function, value)), as_node(_applied(function, value))
    if target.levels is not None:
        raise PriorError(
            "bind: a function that branches on a quantity whose values cannot be listed must return numbers: which "
            "texts there are could not be known; write pv.where(x < 1, 'a', 'b')"
        )
    shared = set(ancestors([again]))
    return target, [node for node in ancestors([target]) if node.is_random and node in shared]


def _by_plain_calls(variable: RandomVariable, function: Callable[[Any], Any]) -> RandomVariable:
    values = np.unique(Plan([variable.node]).run(EXAMPLES, np.random.default_rng(0))[0]).tolist()
    targets, outers = zip(*(_number_and_outer(function, value) for value in values), strict=True)
    if len({target.shape for target in targets}) > 1:
        raise PriorError("bind: the function must return quantities of one shape")
    outer = tuple(dict.fromkeys(node for nodes in outers for node in nodes))
    kinds = {target.kind for target in targets}
    kind = kinds.pop() if len(kinds) == 1 else Kind.MIXED
    dtype = np.result_type(*(target.dtype for target in targets))
    return RandomVariable(Node(BindDraw(function, outer), (variable.node, *outer), targets[0].shape, dtype, kind=kind))


def bind(x: Any, function: Callable[[Any], Any]) -> Any:
    """Return the quantity drawn from `function(value of x)`: the bind of the monad of distributions.

    The function gets a value and returns a distribution. It is called once on `x` itself where it
    only computes parameters; on each possible value where those are few; else value by value.

    >>> import privug as pv
    >>> boxes = pv.DiscreteUniform(1, 3)
    >>> prior = {"boxes": boxes, "prizes": pv.bind(boxes, lambda count: pv.Binomial(count, 0.5))}
    >>> attack = pv.Attack(lambda boxes, prizes: prizes, prior, secret="boxes")
    >>> attack.run(pv.equals(3)).posterior.distribution()[3].value
    1.0
    """
    if not callable(function):
        raise PriorError("bind: the second argument must be a function from a value to a distribution")
    check_takes("bind: the function from a value to a distribution", function, 1, PriorError)
    variable = x if isinstance(x, RandomVariable) else Constant(x)
    if isinstance(variable.node.operation, ConstantValue):
        return _lifted(_applied(function, constant_value(variable.node)))
    noted: list[str] = []
    try:
        with holding(refusals, noted):
            distribution = function(variable)
    except Exception:  # what is really wrong shows again below, on a plain value
        noted.append("it failed")
    if not noted:
        return _lifted(distribution)
    support = finite_support(variable.node)
    if support is not None and len(support) <= ENUMERATION_LIMIT:
        return given(variable, {value: _applied(function, value) for value in support})
    if variable.node.levels is not None or variable.node.shape != ():
        raise PriorError("bind: this function cannot be applied to a quantity of so many values")
    return _by_plain_calls(variable, function)


def _applied(function: Callable[[Any], Any], value: Any) -> Any:
    """Return what the function of a bind gives for a value."""
    with naming(f"bind: the function, called with {shown(value)},", PriorError):
        return function(value)


def _lifted(value: Any) -> Any:
    return value if isinstance(value, RandomVariable | Row | list | tuple | dict) else Constant(value)


def finite_support(node: Node) -> list[Any] | None:
    """Return the values a quantity can take, if they are finitely many and known from its definition."""
    if node.levels is not None:
        return list(node.levels)
    operation = node.operation
    if not node.shape and isinstance(operation, ConstantValue):
        return [constant_value(node)]
    if not node.shape and node.dtype.kind == "b":
        return [False, True]
    if not node.shape and isinstance(operation, Choose):
        return _union([finite_support(choice) for choice in node.parents[1:]], node.dtype)
    if not isinstance(operation, Draw):
        return _computed(node)
    if node.kind is not Kind.DISCRETE:
        return None
    if operation.family.table is not None:
        return list(dict.fromkeys(operation.family.table.tolist()))
    if not isinstance(operation.family, ScalarFamily) or node.shape:
        return None
    if not all(isinstance(parent.operation, ConstantValue) for parent in node.parents):
        possible = operation.family.possible([None] * len(node.parents), np.inf, ENUMERATION_LIMIT)
        return None if possible is None else list(possible.tolist())
    low, high = operation.family.frozen(*(constant_value(parent) for parent in node.parents)).support()
    if not np.isfinite([low, high]).all() or high - low > 10**7:
        return None
    return list(range(int(low), int(high) + 1))


def _computed(node: Node) -> list[Any] | None:
    """Return the values of a quantity that is computed from few others of few values each."""
    order = ancestors([node])
    roots = [one for one in order if one.is_random]
    if node.shape or any(root.shape for root in roots) or any(one.operation.opaque for one in order):
        return None
    supports = [finite_support(root) if root.levels is None else list(range(len(root.levels))) for root in roots]
    known = [support for support in supports if support]
    if len(known) < len(roots) or math.prod(map(len, known)) > ENUMERATION_LIMIT:
        return None
    states = {
        root: np.array(column, root.dtype)
        for root, column in zip(roots, zip(*product(*known), strict=True), strict=True)
    }
    try:
        values = Plan([node], roots).run(math.prod(map(len, known)), np.random.default_rng(0), states)[0]
    except SampleFailure:
        return None
    return list(np.unique(values).tolist())


def _union(supports: Sequence[list[Any] | None], dtype: np.dtype[Any]) -> list[Any] | None:
    known = [np.array(support, dtype) for support in supports if support is not None]
    return np.unique(np.concatenate(known)).tolist() if len(known) == len(supports) else None


def unit(value: Any) -> Any:
    """Return the distribution that is certain of one value: the unit of the monad.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda x: x + 1, prior={"x": pv.unit(41)}, secret="x")
    >>> attack.run().prediction.distribution()[42].value
    1.0
    """
    return _lifted(value)


def check_prior(name: str, value: Any) -> None:
    """Refuse functions and classes in the prior of a parameter; warn of a list that holds one quantity several times.

    One object is one quantity wherever it stands, and to use it in two inputs says that they share it. But what is
    written as `[pv.DiscreteUniform(18, 90)] * 20` means twenty people, and is one person twenty times.
    """
    parts = list(_parts(f"prior[{name!r}]", value))
    for place, part in parts:
        refuse_code(place, part, QuestionError)
    if not isinstance(value, list | tuple | dict) or isinstance(value, Row):
        return
    times = Counter(id(part.node) for _, part in parts if is_distribution(part))
    most = max(times.values(), default=0)
    if most > 1:
        warnings.warn(
            f"prior[{name!r}] holds one random quantity {most} times, so that these are always equal; for independent "
            f"ones write pv.Array(distribution, {most}), or make each anew: "
            f"[pv.DiscreteUniform(18, 90) for _ in range({most})]",
            RepeatedQuantityWarning,
            stacklevel=5,
        )


def _parts(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what stands in lists, tuples and dictionaries, and where."""
    if isinstance(value, dict):
        items: Any = value.items()
    elif isinstance(value, list | tuple) and not isinstance(value, Row):
        items = enumerate(value)
    else:
        yield place, value
        return
    for key, part in items:
        yield from _parts(f"{place}[{key!r}]", part)
