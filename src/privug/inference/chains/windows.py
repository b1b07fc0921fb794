"""Conditions read as windows: a number lies between two others.

A window is a wall for a sampler that follows gradients. Where the number is affine in continuous roots there need be
none: the place in the window becomes a random quantity of its own, and a root is solved for it, which is an exact and
smooth change of variables. Elsewhere the wall becomes a slope on its outside, and draws that end up there are dropped.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from privug.errors import ImpossibleObservation
from privug.inference.affine import affine_roots
from privug.inference.chains.translation import decimals
from privug.model.node import ConstantValue, Kind, Node, ancestors
from privug.model.numpy_functions import Cast
from privug.model.operations import ArrayFunction, Elementwise, Stack, constant, index
from privug.model.plan import Plan
from privug.model.variable import RandomVariable, as_node
from privug.prior.choice import constant_value
from privug.prior.continuous import Uniform
from privug.prior.positive import Exponential
from privug.program.traced.failures import Checked

MOST_ELEMENTS = 64
PILOT_SAMPLES = 512
SLOPE = 0.15
"""How far the slope outside a wall reaches, relative to the window or to how much the number varies."""


@dataclass(frozen=True)
class Window:
    """A number and the ends between which it lies; one of them may be infinite."""

    number: Node
    low: float
    high: float


def read(condition: Node) -> list[Window] | None:
    """Return the windows that all together are a condition; None if it is no such thing."""
    operation, parents = condition.operation, condition.parents
    match operation:
        case Elementwise(name="bitwise_and" | "logical_and") if condition.shape == ():
            return _together(read(parent) for parent in parents)
        case Elementwise(name="not_equal") if parents[0].dtype.kind == "b" and _is_number(parents[1], 0.0):
            return read(parents[0])
        case ArrayFunction(name="all") if condition.shape == ():
            return _together(read(element) for element in _elements(parents[0]))
        case Elementwise(name="greater" | "greater_equal") if condition.shape == ():
            return _above(*parents)
        case Elementwise(name="less" | "less_equal") if condition.shape == ():
            return _above(*reversed(parents))
        case Elementwise(name="equal") if condition.shape == ():
            return _rounded_to(*parents)
    return None


def _together(parts: Iterable[list[Window] | None]) -> list[Window] | None:
    found: list[Window] = []
    for part in parts:
        if part is None:
            return None
        found += part
    return found


def _elements(array: Node) -> list[Node]:
    """Return the elements of an array of conditions, each computed by itself."""
    if isinstance(array.operation, Stack):
        return list(array.parents)
    if len(array.shape) != 1 or array.shape[0] > MOST_ELEMENTS or not isinstance(array.operation, Elementwise):
        return [array]
    return [_element(array, position) for position in range(array.shape[0])]


def _element(array: Node, position: int) -> Node:
    parents = tuple(
        parent if not parent.shape else _element(parent, position) if _is_logic(parent) else index(parent, position)
        for parent in array.parents
    )
    return Node(array.operation, parents, (), array.dtype, array.levels, array.kind)


def _is_logic(node: Node) -> bool:
    return isinstance(node.operation, Elementwise) and node.dtype.kind == "b"


def _is_number(node: Node, value: float) -> bool:
    return isinstance(node.operation, ConstantValue) and node.shape == () and constant_value(node) == value


def _above(large: Node, small: Node) -> list[Window] | None:
    if large.levels is not None or small.levels is not None:
        return None
    if isinstance(small.operation, ConstantValue):
        return [Window(large, float(constant_value(small)), math.inf)]
    if isinstance(large.operation, ConstantValue):
        return [Window(small, -math.inf, float(constant_value(large)))]
    return [Window((RandomVariable(large) - RandomVariable(small)).node, 0.0, math.inf)]


def _rounded_to(left: Node, right: Node) -> list[Window] | None:
    """Read that a number, rounded, is a value: it lies within the reach of that value."""
    if isinstance(left.operation, ConstantValue):
        left, right = right, left
    if not isinstance(right.operation, ConstantValue) or right.levels is not None or left.levels is not None:
        return None
    value = float(constant_value(right))
    while isinstance(left.operation, Checked | Cast) and left.parents[0].kind is Kind.DISCRETE:
        left = left.parents[0]
    inner = left.parents[0] if left.parents else left
    if left.kind is not Kind.DISCRETE and not isinstance(left.operation, Cast):
        return None
    match left.operation:
        case Elementwise(name="floor"):
            return [Window(inner, value, value + 1)]
        case Elementwise(name="ceil"):
            return [Window(inner, value - 1, value)]
        case Elementwise(name="rint"):
            return [Window(inner, value - 0.5, value + 0.5)]
        case Elementwise(name="round", function=function):
            half = 0.5 * 10.0 ** -decimals(function)
            return [Window(inner, value - half, value + half)]
        case Elementwise(name="trunc") | Cast():
            return [Window(inner, value - (value <= 0), value + (value >= 0))]
    return None


def merged(windows: Sequence[Window]) -> list[Window]:
    """Return one window for each number; ends that leave nothing between them are refused."""
    found: dict[Node, Window] = {}
    for window in windows:
        known = found.get(window.number, window)
        found[window.number] = replace(window, low=max(known.low, window.low), high=min(known.high, window.high))
    for window in found.values():
        if window.low > window.high:
            raise ImpossibleObservation("no number lies above the upper and below the lower end of the observation")
    return list(found.values())


def as_point(window: Window) -> tuple[tuple[Node, float], Node, list[Node]] | None:
    """Return the place in a window as a point to solve for, the root that it hangs on, and log weights of it.

    The number minus the place is exactly zero. None if no continuous root can be solved for.
    """
    if window.low == window.high or window.number.kind is Kind.DISCRETE or not affine_roots(window.number):
        return None
    number = RandomVariable(window.number)
    if math.isfinite(window.low) and math.isfinite(window.high):
        root = Uniform(0.0, 1.0)
        # The magnitude of a number is nothing that an observation could be solved for: the root itself must not be.
        place = window.low + (window.high - window.low) * np.absolute(root)
        return ((number - place).node, 0.0), root.node, [constant(math.log(window.high - window.low))]
    scale = spread(window.number) or 1.0
    root = Exponential(scale=1.0)
    distance = np.absolute(root)
    place = window.low + scale * distance if math.isfinite(window.low) else window.high - scale * distance
    return ((number - place).node, 0.0), root.node, [as_node(distance + math.log(scale))]


def spread(number: Node) -> float:
    """Return how much a number varies, from a few draws."""
    failed = np.zeros(PILOT_SAMPLES, np.bool_)
    values = Plan([number]).run(PILOT_SAMPLES, np.random.Generator(np.random.SFC64(0)), failed=failed)[0]
    values = values[~failed & np.isfinite(values)]
    low, high = np.quantile(values, [0.16, 0.84]) if len(values) else (0.0, 1.0)
    return float(high - low) / 2


def is_smooth(number: Node) -> bool:
    """Say whether a number moves when continuous roots do: what is discrete has no slope."""
    return number.kind is not Kind.DISCRETE and any(
        node.is_random and node.kind is not Kind.DISCRETE for node in ancestors([number])
    )


def slope_width(window: Window) -> float:
    """Return the width of the slope outside a window that stands where there can be no wall."""
    width = min(window.high - window.low, spread(window.number))
    return SLOPE * width if 0 < width < math.inf else SLOPE
