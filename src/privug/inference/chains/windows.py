"""Windows without walls: a number lies between two others.

A window is a wall for a sampler that follows gradients. Where the number is affine in continuous roots there need be
none: the place in the window becomes a random quantity of its own, and a root is solved for it, which is an exact and
smooth change of variables. Elsewhere the wall becomes a slope on its outside, and draws that end up there are dropped.
"""

import math

import numpy as np

from privug.inference.graph.affine import affine_roots
from privug.inference.graph.conditions import Window
from privug.model.node import Kind, Node, ancestors
from privug.model.operations import constant
from privug.model.plan import Plan
from privug.model.variable import RandomVariable, as_node
from privug.prior.continuous import Uniform
from privug.prior.positive import Exponential

PILOT_SAMPLES = 512
SLOPE = 0.15
"""How far the slope outside a wall reaches, relative to the window or to how much the number varies."""


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
