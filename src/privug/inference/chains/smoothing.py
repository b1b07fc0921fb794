"""An observation made smooth: as log weights of random roots that chains can move through.

Exact values and windows of continuous outputs are solved for roots (`solving`, `windows`); where that cannot be done,
or the solved root has a distribution with ends, a slope stands outside of the wall and draws behind it are dropped.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from privug.errors import ObservationError
from privug.inference.chains.windows import as_point, is_smooth, slope_width
from privug.inference.graph.conditions import Window, merged, windows_of
from privug.inference.solving import solve
from privug.model.graph import substitute
from privug.model.node import ConstantValue, Kind, Node, ancestors
from privug.model.operations import constant
from privug.model.variable import RandomVariable, as_node
from privug.observation.likelihood import Likelihood
from privug.prior.choice import constant_value
from privug.prior.family import LogDensity

INSIDE = 1e-9
"""How far inside its ends a density is looked at that may be zero or infinite there, relative to their distance."""


@dataclass
class Smoothed:
    """What is left of an observation: log weights, conditions that hold or not, and checks of draws afterwards."""

    log_weights: list[Node] = field(default_factory=list)
    conditions: list[Node] = field(default_factory=list)
    checks: list[Node] = field(default_factory=list)
    targets: list[Node] = field(default_factory=list)
    places: list[Node] = field(default_factory=list)
    """The roots that say where in a window an output lies."""
    densities: int = 0
    """How many exact values were seen of continuous outputs."""

    def move(self, seen: Likelihood, others: Sequence[Node]) -> list[Node]:
        """Solve what was seen, in everything that is there; return the other nodes given it."""
        bundle = [*self.log_weights, *self.conditions, *self.checks, *self.targets, *others]
        solved, images = solve(seen, bundle, smooth=True)
        following = iter(images)
        self.log_weights = [next(following) for _ in self.log_weights] + list(solved.log_weights)
        # That a solved root is within its ends is a wall too, which its density gets a slope for.
        ends = [condition for condition in solved.conditions if _smooth_windows(condition) is not None]
        others_seen = [condition for condition in solved.conditions if condition not in ends]
        self.conditions = [next(following) for _ in self.conditions] + others_seen
        self.checks = [next(following) for _ in self.checks] + ends
        self.targets = [next(following) for _ in self.targets]
        return list(following)


def _smooth_windows(condition: Node) -> list[Window] | None:
    """Return the windows that a condition is, if the numbers in them move with continuous roots."""
    found = windows_of(condition)
    return found if found is not None and all(is_smooth(window.number) for window in found) else None


def smooth(likelihood: Likelihood, targets: Sequence[Node]) -> Smoothed:
    """Return the likelihood in a form that chains can follow, and the targets given it."""
    smoothed = Smoothed(list(likelihood.log_weights), targets=list(targets))
    windows: list[Window] = []
    for condition in likelihood.conditions:
        found = _smooth_windows(condition)
        if found is None:
            smoothed.conditions.append(condition)
        else:
            windows += found
    windows = merged(windows)
    _check_width(windows)
    numbers = [window.number for window in windows]
    points = list(likelihood.points)
    while points:
        before = len(smoothed.log_weights)
        point = points.pop(0)
        images = smoothed.move(Likelihood(points=(point,)), [*(node for node, _ in points), *numbers])
        points = [(node, value) for node, (_, value) in zip(images, points, strict=False)]
        numbers = images[len(points) :]
        smoothed.densities += len(smoothed.log_weights) - before
    while numbers:
        window = windows[-len(numbers)]
        numbers = _through(smoothed, Window(numbers[0], window.low, window.high), numbers[1:])
    _without_walls(smoothed)
    return smoothed


def _check_width(windows: Sequence[Window]) -> None:
    for window in windows:
        if window.low == window.high and window.number.kind is Kind.CONTINUOUS:
            raise ObservationError(
                f"the output is continuous, so it is exactly {window.low:g} with probability zero; write "
                f"pv.near({window.low:g}, within=...), or pv.equals({window.low:g}) to weight by its density"
            )


def _through(smoothed: Smoothed, window: Window, others: Sequence[Node]) -> list[Node]:
    """Take a window into account; return the other numbers given it."""
    placed = as_point(window)
    if placed is not None:
        point, place, log_weights = placed
        try:
            left = smoothed.move(Likelihood(points=(point,)), others)
        except ObservationError:  # what it could be solved for went into an observation before
            pass
        else:
            smoothed.log_weights += log_weights
            smoothed.places.append(place)
            return left
    _add_slope(smoothed, window)
    return list(others)


def _add_slope(smoothed: Smoothed, window: Window) -> None:
    number, width = RandomVariable(window.number), slope_width(window)
    for end, sign in ((window.low, 1.0), (window.high, -1.0)):
        if math.isfinite(end):
            beyond = np.maximum((end - number) * (sign / width), 0.0)
            smoothed.log_weights.append(as_node(beyond * beyond * -0.5))
            smoothed.checks.append((number >= end if sign > 0 else number <= end).node)


def _without_walls(smoothed: Smoothed) -> None:
    """Let densities with ends go on beyond them, on a slope."""
    replacements: dict[Node, Node] = {}
    windows: list[Window] = []
    for node in ancestors(smoothed.log_weights):
        if isinstance(node.operation, LogDensity) and not node.parents[0].is_random:
            family = node.operation.family
            if family.kind is Kind.CONTINUOUS and family.has_ends:
                low, high = (constant(e) if isinstance(e, float) else e for e in family.ends_of(node.parents[1:]))
                replacements[node] = _extended(node, low, high)
                windows += _between(node.parents[0], low, high)
    smoothed.log_weights = substitute(smoothed.log_weights, replacements)
    for window in windows:
        _add_slope(smoothed, window)


def _extended(density: Node, low: Node, high: Node) -> Node:
    operation = density.operation
    assert isinstance(operation, LogDensity)
    margin = 0.0 if operation.family.finite_at_ends else INSIDE
    value = RandomVariable(density.parents[0])
    held = np.minimum(np.maximum(value, RandomVariable(low) + margin), RandomVariable(high) - margin)
    return Node(
        density.operation, (as_node(held), *density.parents[1:]), density.shape, density.dtype, kind=density.kind
    )


def _between(number: Node, low: Node, high: Node) -> list[Window]:
    if isinstance(low.operation, ConstantValue) and isinstance(high.operation, ConstantValue):
        return [Window(number, float(constant_value(low)), float(constant_value(high)))]
    value = RandomVariable(number)
    return [
        Window((value - RandomVariable(low)).node, 0.0, math.inf),
        Window((RandomVariable(high) - value).node, 0.0, math.inf),
    ]
