"""Conditions read as what they say about numbers, and graphs simplified given known values of some nodes."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from privug.errors import ImpossibleObservation, PrivugError
from privug.model.graph import remade, rewritten
from privug.model.integers import largest
from privug.model.node import Array, ConstantValue, Context, Kind, Node
from privug.model.numpy_functions import Cast
from privug.model.operations import ArrayFunction, Elementwise, SampleFailure, Stack, decimals, index
from privug.model.traits import Connective, Role, Traits, traits_of
from privug.model.variable import RandomVariable
from privug.observation.likelihood import CloseTo, Likelihood
from privug.prior.choice import constant_value
from privug.prior.conditional import Choose
from privug.prior.family import LogDensity
from privug.program.traced.conditions import Checked

MOST_ELEMENTS = 64
ON_GRID = 1e-9  # relative: how far rounded numbers may be off for their own rounding

Range = tuple[float, float]

EVERYTHING: tuple[Range, ...] = ((-math.inf, math.inf),)


class Unreadable(Exception):
    """A condition says something else than that numbers lie in ranges."""


@dataclass(frozen=True)
class Region:
    """A number lies in one of some ranges, which are apart and in order."""

    node: Node
    ranges: tuple[Range, ...]


@dataclass(frozen=True)
class Window:
    """A number and the ends between which it lies; one of them may be infinite."""

    number: Node
    low: float
    high: float


def windows_of(condition: Node) -> list[Window] | None:
    """Return the windows that all together are a condition; None if it is no such thing.

    Comparisons of two quantities are read as windows of their difference, values of rounded numbers as windows of
    what was rounded.
    """
    found: list[Window] = []
    for clause in clauses(condition):
        if clause.shape:
            return None
        window = _half_window(clause) or _rounded(clause)
        if window is None:
            return None
        found.append(window)
    return found


def merged(parts: Sequence[Window]) -> list[Window]:
    """Return one window for each number; ends that leave nothing between them are refused."""
    found: dict[Node, Window] = {}
    for window in parts:
        known = found.get(window.number, window)
        found[window.number] = replace(window, low=max(known.low, window.low), high=min(known.high, window.high))
    for window in found.values():
        if window.low > window.high:
            raise ImpossibleObservation("no number lies above the upper and below the lower end of the observation")
    return list(found.values())


def clauses(condition: Node) -> list[Node]:
    """Return the conditions that must all hold for one to hold."""
    traits, parents = _traits(condition), condition.parents
    if traits.connective is Connective.AND and isinstance(condition.operation, Elementwise) and not condition.shape:
        return [clause for parent in parents for clause in clauses(parent)]
    if traits.connective is Connective.AND and not condition.shape:
        return [clause for element in _elements(parents[0]) for clause in clauses(element)]
    if traits.connective is Connective.NOT and not condition.shape:
        return _denied(condition, parents[0])
    if _is_truth(condition, traits):
        return clauses(parents[0])
    return _of_choice(condition, traits) or [condition]


def by_clauses(likelihood: Likelihood) -> Likelihood:
    """Return a likelihood whose conditions are taken apart into those that must all hold."""
    return replace(likelihood, conditions=tuple(part for one in likelihood.conditions for part in clauses(one)))


def _of_choice(condition: Node, traits: Traits) -> list[Node] | None:
    """Return the conditions for a number to equal a value that it can have only where something holds.

    So it is for `where(c, x, 0) == 3`, and for `c * x == 3`.
    """
    if traits.role is not Role.COMPARISON or traits.signs != {0} or condition.shape:
        return None
    number, value = condition.parents
    if not isinstance(value.operation, ConstantValue) or not isinstance(number.operation, Elementwise):
        return None
    if value.levels is not None or number.levels is not None:
        return None
    for held, chosen, otherwise in _choices(number):
        if otherwise != constant_value(value):
            return [*clauses(held), *clauses(remade(condition, [chosen, value]))]
    return None


def _choices(number: Node) -> list[tuple[Node, Node, object]]:
    """Return conditions under which a number is another one, with the known value that it has elsewhere."""
    parents = number.parents
    if any(parent.shape for parent in parents):
        return []
    match _traits(number).role:
        case Role.CHOICE if len(parents) == 3 and isinstance(parents[2].operation, ConstantValue):
            return [(parents[0], parents[1], constant_value(parents[2]))]
        case Role.PRODUCT if _traits(number).factor == 1:
            pairs = (parents, parents[::-1])
            return [(held, chosen, 0) for held, chosen in pairs if held.dtype == np.bool_ and chosen.dtype.kind == "i"]
    return []


def _denied(condition: Node, inner: Node) -> list[Node]:
    """Return the conditions that must all hold for another one not to hold."""
    traits = _traits(inner)
    if inner.dtype != np.bool_ or not isinstance(inner.operation, Elementwise):
        return [condition]
    if traits.connective is Connective.OR:
        return [clause for parent in inner.parents for clause in _denied(remade(condition, [parent]), parent)]
    return clauses(inner.parents[0]) if traits.connective is Connective.NOT else [condition]


def _traits(node: Node) -> Traits:
    return traits_of(node.operation.name if isinstance(node.operation, Elementwise | ArrayFunction) else "")


def _is_truth(condition: Node, traits: Traits) -> bool:
    """Say whether a condition only asks whether another one holds, as `b != 0` does."""
    parents = condition.parents
    if traits.role is not Role.COMPARISON or traits.signs != {-1, 1} or parents[0].dtype != np.bool_:
        return False
    return isinstance(parents[1].operation, ConstantValue) and not parents[1].shape and not constant_value(parents[1])


def _elements(array: Node) -> list[Node]:
    """Return the elements of an array of conditions, each computed by itself."""
    if isinstance(array.operation, Stack):
        return list(array.parents)
    if len(array.shape) != 1 or array.shape[0] > MOST_ELEMENTS or not isinstance(array.operation, Elementwise):
        return [array]
    return [_element(array, position) for position in range(array.shape[0])]


def _element(array: Node, position: int) -> Node:
    def at(parent: Node) -> Node:
        logic = isinstance(parent.operation, Elementwise) and parent.dtype == np.bool_
        return parent if not parent.shape else _element(parent, position) if logic else index(parent, position)

    return remade(array, [at(parent) for parent in array.parents], ())


def _half_window(comparison: Node) -> Window | None:
    """Read a comparison of two numbers, one of which may be known."""
    traits, parents = _traits(comparison), comparison.parents
    ordered = traits.role is Role.COMPARISON and (1 in traits.signs) is not (-1 in traits.signs)
    if not ordered or any(parent.levels is not None for parent in parents):
        return None
    large, small = parents if 1 in traits.signs else parents[::-1]
    if isinstance(small.operation, ConstantValue):
        return Window(large, float(constant_value(small)), math.inf)
    if isinstance(large.operation, ConstantValue):
        return Window(small, -math.inf, float(constant_value(large)))
    return Window((RandomVariable(large) - RandomVariable(small)).node, 0.0, math.inf)


def _rounded(comparison: Node) -> Window | None:
    """Read that a number, rounded, is a value: it lies within the reach of that value."""
    if _traits(comparison).role is not Role.COMPARISON or _traits(comparison).signs != {0}:
        return None
    left, right = comparison.parents
    if isinstance(left.operation, ConstantValue):
        left, right = right, left
    if not isinstance(right.operation, ConstantValue) or right.levels is not None or left.levels is not None:
        return None
    while isinstance(left.operation, Checked | Cast) and left.parents[0].kind is Kind.DISCRETE:
        left = left.parents[0]
    operation = left.operation
    if left.kind is not Kind.DISCRETE and not isinstance(operation, Cast):
        return None
    traits = traits_of("trunc") if isinstance(operation, Cast) else _traits(left)
    if traits.preimage is None:
        return None
    unit = 10.0 ** -decimals(operation.function) if traits.decimals and isinstance(operation, Elementwise) else 1.0
    value = float(constant_value(right))
    if abs(value / unit - round(value / unit)) > ON_GRID * max(1.0, abs(value / unit)):
        return None  # no number is rounded to it
    return Window(left.parents[0], *traits.preimage(value, unit))


def region(condition: Node) -> Region:
    """Return where a condition on one number holds, or raise Unreadable."""
    traits, parents = _traits(condition), condition.parents
    if traits.connective is Connective.NOT:
        inner = region(parents[0])
        return Region(inner.node, _elsewhere(inner.ranges))
    if traits.connective is not None and isinstance(condition.operation, Elementwise):
        join = both if traits.connective is Connective.AND else _either
        return _combined(region(parents[0]), region(parents[1]), join)
    if _is_truth(condition, traits):
        return region(parents[0])
    window = None if condition.shape else _half_window(condition)
    if window is None:
        raise Unreadable("the observation is no value and no range of the output")
    if window.number not in parents or window.number.shape:
        raise Unreadable("the observation compares random quantities")
    return Region(window.number, ((window.low, window.high),))


def _combined(left: Region, right: Region, join: Callable[..., tuple[Range, ...]]) -> Region:
    if left.node is not right.node:
        raise Unreadable("the observation is a condition on two quantities together")
    return Region(left.node, join(left.ranges, right.ranges))


def both(left: Sequence[Range], right: Sequence[Range]) -> tuple[Range, ...]:
    """Return the ranges that are in both of two regions."""
    pairs = [(max(a, c), min(b, d)) for a, b in left for c, d in right]
    return tuple(sorted((low, high) for low, high in pairs if low <= high))


def _elsewhere(ranges: Sequence[Range]) -> tuple[Range, ...]:
    bounds = [-math.inf, *np.array(ranges).reshape(-1).tolist(), math.inf]
    return tuple((low, high) for low, high in zip(bounds[::2], bounds[1::2], strict=True) if low < high)


def _either(left: Sequence[Range], right: Sequence[Range]) -> tuple[Range, ...]:
    return _elsewhere(both(_elsewhere(left), _elsewhere(right)))


@dataclass(frozen=True)
class Value:
    """A number was seen, exactly or through normal noise."""

    node: Node
    value: float
    sd: float = 0.0


Restriction = Value | Region


def read(likelihood: Likelihood) -> list[Restriction]:
    """Return what a likelihood says about numbers, or raise Unreadable."""
    found: list[Restriction] = [Value(node, value) for node, value in likelihood.points]
    for node in likelihood.log_weights:
        found.extend(_noisy_values(node))
    regions: dict[Node, tuple[Range, ...]] = {}
    for condition in likelihood.conditions:
        for clause in clauses(condition):
            if isinstance(clause.operation, CloseTo):
                raise Unreadable("the observation asks for an exact value that may have a probability")
            if not isinstance(clause.operation, ConstantValue) or clause.shape or not constant_value(clause):
                held = region(clause)
                regions[held.node] = both(regions.get(held.node, EVERYTHING), held.ranges)
    return [*found, *(Region(node, ranges) for node, ranges in regions.items())]


def _noisy_values(node: Node) -> list[Restriction]:
    operation = node.operation
    if isinstance(operation, ArrayFunction) and operation.traits.totals and node.shape == ():
        inner = node.parents[0]
        if isinstance(inner.operation, LogDensity) and len(inner.shape) == 1:
            value, seen, sd = inner.parents
            parts = [index(seen, position) for position in range(inner.shape[0])]
            return [Value(part, _number(value), _number(sd)) for part in parts]
    if isinstance(operation, LogDensity) and operation.family.gaussian and node.shape == ():
        value, seen, sd = node.parents
        return [Value(seen, _number(value), _number(sd))]
    raise Unreadable("the observation weighs outputs by something else than normal noise")


def _number(node: Node) -> float:
    if not isinstance(node.operation, ConstantValue) or node.shape != ():
        raise Unreadable("the observation compares random quantities")
    return float(constant_value(node))


_CONTEXT = Context(1, np.random.Generator(np.random.SFC64(0)))


def known_node(node: Node, value: object) -> Node:
    """Return a constant that stands for a node whose value is known."""
    return _constant(node, np.asarray(value).astype(node.dtype, copy=False)[np.newaxis])


def _constant(node: Node, array: Array) -> Node:
    known = Node(ConstantValue(array), (), node.shape, node.dtype, node.levels, Kind.DISCRETE)
    if node.dtype.kind == "i":
        known.bound = largest(array)
    return known


def is_known(node: Node) -> bool:
    """Say whether a node is a constant."""
    return isinstance(node.operation, ConstantValue)


def value_of(node: Node) -> Array:
    """Return the value of a constant, categories as codes."""
    assert isinstance(node.operation, ConstantValue)
    return node.operation.array[0]  # type: ignore[no-any-return]


def specialised(targets: Sequence[Node], values: Mapping[Node, object]) -> list[Node]:
    """Return targets with known values in the place of some nodes, simplified."""
    return rewritten(targets, simpler, {node: known_node(node, value) for node, value in values.items()})


def simpler(node: Node, parents: tuple[Node, ...]) -> Node | None:
    """Return what a node comes down to where some of its parents are known; None if to nothing simpler."""
    operation = node.operation
    if operation.random or operation.opaque or not parents:
        return None
    if all(map(is_known, parents)):
        return _evaluated(node, parents)
    if isinstance(operation, Checked):
        failing = parents[1 : 1 + len(operation.errors)]
        ruled_out = all(is_known(condition) and not value_of(condition).any() for condition in failing)
        return parents[0] if ruled_out else None
    if isinstance(operation, Elementwise | Choose) and not node.shape:
        return _chosen(node, parents) or _connected(node, parents) or _counted(node, parents)
    return None


def _evaluated(node: Node, parents: Sequence[Node]) -> Node | None:
    arrays = [parent.operation.array for parent in parents if isinstance(parent.operation, ConstantValue)]
    try:
        with np.errstate(all="ignore"):
            array = np.asarray(remade(node, parents).operation.evaluate(arrays, _CONTEXT))
    except (SampleFailure, PrivugError, ArithmeticError, ValueError, IndexError):
        return None  # a failure counts only where its value is asked for
    return _constant(node, array)


def _chosen(node: Node, parents: Sequence[Node]) -> Node | None:
    """Return the branch of a choice whose condition, or position, is known."""
    is_choice = isinstance(node.operation, Choose) or node.operation.traits.role is Role.CHOICE
    if not is_choice or not is_known(parents[0]):
        return None
    chosen = int(value_of(parents[0])) if isinstance(node.operation, Choose) else int(not value_of(parents[0]))
    branch = parents[1 + chosen]
    if branch.dtype == node.dtype and branch.levels == node.levels:
        return branch
    if branch.levels is not None or node.levels is not None:
        return None
    return known_node(node, value_of(branch)) if is_known(branch) else Node(Cast(node.dtype), (branch,), (), node.dtype)


def _connected(node: Node, parents: Sequence[Node]) -> Node | None:
    """Return what a condition comes down to if one of those it is put together of is known."""
    connective = node.operation.traits.connective
    if connective not in (Connective.AND, Connective.OR) or any(parent.dtype != np.bool_ for parent in parents):
        return None
    for one, other in (parents, parents[::-1]):
        if is_known(one):
            settles = bool(value_of(one)) is (connective is Connective.OR)
            return known_node(node, value_of(one)) if settles else other
    return None


def _counted(node: Node, parents: Sequence[Node]) -> Node | None:
    """Return a whole number times a truth that is known: the number itself, or zero."""
    if node.operation.traits.factor != 1 or node.dtype.kind != "i":
        return None
    for truth, number in (parents, parents[::-1]):
        if is_known(truth) and truth.dtype == np.bool_ and number.dtype == node.dtype:
            return number if value_of(truth) else known_node(node, 0)
    return None
