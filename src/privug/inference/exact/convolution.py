"""The distribution of a weighted sum of independent quantities, through their characteristic functions."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from privug.inference.curve import Curve
from privug.inference.density import panel_nodes
from privug.inference.exact.inversion import ERROR, Shape, inverted
from privug.inference.exact.request import Obstacle
from privug.inference.support import support
from privug.model.node import Array
from privug.prior.family import Family
from privug.prior.scalar import Kernel, ScalarFamily

VANISHING = 1e-15  # a characteristic function below this does not show in the density
MOST_TERMS = 30_000_000  # of a characteristic function: half a gigabyte
MOST_FREQUENCIES = 4096
MOST_ATOMS = 4096
WIDE = 1.0  # noise at least so many times as wide as the rest is better added to it than multiplied into its transform
FAR = 42.0  # exponential tails beyond so many scales hold less than 1e-18

Transform = Callable[[Array], Array]


@dataclass(frozen=True)
class Component:
    """Some independent quantities of one distribution, each multiplied by the same weight."""

    family: Family
    parameters: tuple[float | Array, ...]
    weight: float
    count: int

    @property
    def key(self) -> Any:
        """What is equal for equal components."""
        numbers = tuple(np.asarray(parameter).tobytes() for parameter in self.parameters)
        return self.family, numbers, self.weight, self.count

    @property
    def _scalar(self) -> ScalarFamily | None:
        return self.family if isinstance(self.family, ScalarFamily) else None

    @property
    def kernel(self) -> Kernel | None:
        """What adding one of them does to a density."""
        return self._scalar.kernel if self._scalar is not None else None

    @cached_property
    def curve(self) -> Curve:
        """The distribution of one of them, weighted."""
        if self.family.listable:
            listed = support(self.family, [np.asarray(p, float)[np.newaxis] for p in self.parameters], 1)
            return Curve.discrete(listed.values, listed.probabilities).affine(self.weight, 0.0)
        assert isinstance(self.family, ScalarFamily)
        return Curve.of_family(self.family, *(float(p) for p in self.parameters)).affine(self.weight, 0.0)

    @cached_property
    def reach(self) -> float | None:
        """How far from its mean one of them can be, but for a negligible probability; None if endlessly far."""
        far = self._scalar.far if self._scalar is not None else None
        if far is not None:
            return far(FAR, *(float(np.max(p)) for p in self.parameters)) * abs(self.weight)
        low, high = self.curve.support
        if not math.isfinite(high - low):
            return None
        mean = self.curve.mean()
        return max(high - mean, mean - low)

    @property
    def transform(self) -> Transform | None:
        """The characteristic function of one of them; None if it is not known."""
        if not self.curve.parts:
            return lambda t: np.exp(1j * np.multiply.outer(t, self.curve.atoms)) @ self.curve.masses
        known = self._scalar.characteristic if self._scalar is not None else None
        if known is None:
            return None
        numbers = [float(p) for p in self.parameters]
        return lambda t: known(t * self.weight, *numbers)

    @property
    def tail_scales(self) -> tuple[float, float]:
        """The scales of exponential tails below and above, zero if it is lighter."""
        if self._scalar is None or self._scalar.tail_scales is None:
            return 0.0, 0.0
        below, above = (abs(self.weight) * s for s in self._scalar.tail_scales(*map(float, self.parameters)))
        return (below, above) if self.weight > 0 else (above, below)

    def bound(self, t: float) -> float:
        """The largest modulus of the characteristic function from a frequency on; values on a lattice never fade."""
        if not self.curve.parts or self.transform is None:
            return 1.0
        if self._scalar is not None and self._scalar.envelope is not None:
            numbers = [float(p) for p in self.parameters]
            return min(1.0, self._scalar.envelope(t * abs(self.weight), *numbers))
        return float(np.abs(self.transform(np.array([t])))[0])


NEAR = 0.8  # how near to the end of the range in which moments exist tilting goes

MOST_RECENT = 64
_recent: dict[Any, Curve | Obstacle] = {}
"""Sums computed lately: belief, joint and report of one question ask for the same ones."""


def sum_curve(sd: float, components: Sequence[Component]) -> Curve | Obstacle:
    """Return the distribution of a normal variable of mean zero plus independent components."""
    key = sd, tuple(component.key for component in components)
    made = _recent.get(key)
    if made is None:
        made = _sum_curve(sd, components)
        if len(_recent) >= MOST_RECENT:
            _recent.clear()
        _recent[key] = made
    return made


def _sum_curve(sd: float, components: Sequence[Component]) -> Curve | Obstacle:
    if not components:
        return Curve.normal(0.0, sd)
    if len(components) == 1 and components[0].count == 1 and sd == 0:
        return components[0].curve
    atoms = [c for c in components if not c.curve.parts]
    if sd == 0 and len(atoms) < len(components):
        single = [c for c in components if c.curve.parts]
        mixed = _shifted(single[0].curve, atoms) if len(single) == 1 and single[0].count == 1 else None
        if mixed is not None:
            return mixed
    wide = [c for c in components if c.kernel is Kernel.TWO_SIDED_EXPONENTIAL and c.count == 1]
    if len(wide) == 1:
        others = [c for c in components if c is not wide[0]]
        narrow = math.sqrt(sd**2 + sum(c.count * c.curve.std() ** 2 for c in others))
        scale = abs(wide[0].weight) * float(wide[0].parameters[1])
        inner = sum_curve(sd, others) if scale > WIDE * narrow else None
        if isinstance(inner, Curve) and inner.parts and not len(inner.atoms):
            return _blurred(inner, scale).affine(1.0, wide[0].weight * float(wide[0].parameters[0]))
    made = _smooth_sum(sd, components)
    flat = next((c for c in components if c.kernel is Kernel.BOX), None)
    if isinstance(made, Obstacle) and flat is not None:
        left = [replace(flat, count=flat.count - 1)] if flat.count > 1 else []
        rest = sum_curve(sd, [*(c for c in components if c is not flat), *left])
        return rest if isinstance(rest, Obstacle) else _spread(rest, *flat.curve.support)
    if isinstance(made, Obstacle) and atoms:
        smooth = sum_curve(sd, [c for c in components if c.curve.parts])
        return made if isinstance(smooth, Obstacle) else _shifted(smooth, atoms) or made
    return made


def _spread(curve: Curve, low: float, high: float) -> Curve:
    """Add a uniform quantity: the density is a difference of the distribution function."""
    if not curve.parts:
        flat = Curve.of_density(lambda x: np.ones_like(x), [low, high])
        return Curve.mixture(curve.masses, [flat.affine(1.0, float(atom)) for atom in curve.atoms])
    kinks = [end + kink for end in (low, high) for kink in (*curve.breaks[np.isfinite(curve.breaks)], *curve.atoms)]
    edges = np.unique(np.concatenate([curve.edges + low, curve.edges + high, kinks]))
    return Curve.of_density(lambda x: curve.mass(x - high, x - low) / (high - low), edges, kinks=kinks)


def _blurred(curve: Curve, scale: float) -> Curve:
    """Add Laplace noise of a scale that is wide beside the curve.

    The density at w is (e^(-w/b) E[e^(X/b); X <= w] + e^(w/b) E[e^(-X/b); X > w]) / 2b.
    """
    middle = curve.mean()
    rising, left = curve.reweighted(lambda x: np.exp((x - middle) / scale))
    falling, right = curve.reweighted(lambda x: np.exp((middle - x) / scale))
    assert left is not None
    assert right is not None
    low, high = curve.edges[0], curve.edges[-1]
    tail = scale * np.linspace(0.0, FAR, 16)[1:]
    edges = np.concatenate([low - tail[::-1], curve.edges, high + tail])
    nodes = panel_nodes(edges)[0].reshape(-1)
    below = rising * left.cdf(nodes) * np.exp((middle - nodes) / scale)
    above = falling * right.mass(nodes, np.full(nodes.shape, np.inf)) * np.exp((nodes - middle) / scale)
    return Curve.of_panels(edges, ((below + above) / (2 * scale)).reshape(len(edges) - 1, -1), error=ERROR)


def _shifted(curve: Curve, atoms: Sequence[Component]) -> Curve | None:
    """Add finitely many values to a quantity with a density."""
    values: Array = np.zeros(1)
    masses: Array = np.ones(1)
    for component in atoms:
        for _ in range(component.count):
            if len(values) * len(component.curve.atoms) > MOST_ATOMS**2:
                return None
            sums = np.add.outer(values, component.curve.atoms).reshape(-1)
            weights = np.multiply.outer(masses, component.curve.masses).reshape(-1)
            unit = float(np.abs(sums).max()) or 1.0
            _, first, codes = np.unique(np.round(sums / unit, 13), return_index=True, return_inverse=True)
            values, masses = sums[first], np.bincount(codes.reshape(-1), weights, len(first))
            if len(values) > MOST_ATOMS:
                return None
    return Curve.mixture(masses, [curve.affine(1.0, float(value)) for value in values])


@dataclass(frozen=True)
class Sum:
    """A constant, a normal variable of mean zero and independent components, with a probability in a mixture."""

    probability: float
    constant: float
    sd: float
    components: tuple[Component, ...]

    @cached_property
    def mean(self) -> float:
        """The expected value."""
        return self.constant + sum(component.count * component.curve.mean() for component in self.components)

    @cached_property
    def variance(self) -> float:
        """The squared deviation."""
        return self.sd**2 + sum(component.count * component.curve.std() ** 2 for component in self.components)

    def curve(self) -> Curve | Obstacle:
        """The distribution of this sum alone."""
        made = sum_curve(self.sd, self.components)
        return made if isinstance(made, Obstacle) else made.affine(1.0, self.constant)

    def transform(self, t: Array) -> Array:
        """The characteristic function."""
        total = np.exp(-0.5 * (self.sd * t) ** 2 + 1j * t * self.constant)
        for component in self.components:
            known = component.transform
            assert known is not None
            total = total * known(t) ** component.count
        return total

    def bound(self, t: float) -> float:
        """The largest modulus of the characteristic function from a frequency on, at most."""
        faded = (component.bound(t) ** component.count for component in self.components)
        return math.prod(faded, start=math.exp(-0.5 * (self.sd * t) ** 2))


def mixture_curve(sums: Sequence[Sum]) -> Curve | Obstacle:
    """Return the distribution of one of several sums, chosen by their probabilities."""
    if len(sums) > 2 and all(one.components for one in sums):
        smooth = _smooth_mixture(sums)
        if isinstance(smooth, Curve):
            return smooth
    curves = []
    for one in sums:
        made = one.curve()
        if isinstance(made, Obstacle):
            return made
        curves.append(made)
    return Curve.mixture([one.probability for one in sums], curves)


def _smooth_sum(sd: float, components: Sequence[Component]) -> Curve | Obstacle:
    return _smooth_mixture([Sum(1.0, 0.0, sd, tuple(components))])


def _smooth_mixture(sums: Sequence[Sum]) -> Curve | Obstacle:
    components = [component for one in sums for component in one.components]
    if any(component.transform is None or component.reach is None for component in components):
        names = ", ".join(sorted({component.family.name for component in components}))
        return Obstacle(f"the distribution of a sum is not known for these families: {names}")
    total = sum(one.probability for one in sums)
    mean = sum(one.probability * one.mean for one in sums) / total
    radius = max(_radius(one) + abs(one.mean - mean) for one in sums)

    def transform(t: Array) -> Array:
        parts = sum((one.probability / total * one.transform(t) for one in sums), np.zeros(len(t), complex))
        return parts * np.exp(-1j * t * mean)

    step = np.pi / radius
    values = max((len(component.curve.atoms) for component in components), default=0)
    for frequencies in (64, 128, 256, 512, 1024, 2048, MOST_FREQUENCIES):
        if frequencies * values > MOST_TERMS:
            return Obstacle(f"a quantity with {values:,} values is too much to be added to continuous ones")
        if max(one.bound(step * frequencies / 2) for one in sums) < VANISHING:
            spread = math.sqrt(sum(one.probability / total * one.variance for one in sums))
            ends = [_support(one) for one in sums]
            within = min(low for low, _ in ends) - mean, max(high for _, high in ends) - mean
            shape = Shape(spread, within, _limits(components))
            return inverted(transform, frequencies // 2, radius, shape).affine(1.0, mean)
    return Obstacle("the output is a sum of too few continuous quantities to be smooth")


def _radius(one: Sum) -> float:
    """Return how far from its mean the sum can be, but for a negligible probability, by Bernstein's inequality."""
    reaches = [(component.count, component.reach or 0.0) for component in one.components]
    variance = one.variance - one.sd**2
    everywhere, largest = sum(count * reach for count, reach in reaches), max(reach for _, reach in reaches)
    bernstein = FAR * largest / 3 + math.sqrt((FAR * largest / 3) ** 2 + 2 * FAR * variance)
    return 1.05 * min(everywhere, bernstein) + 9.5 * one.sd


def _support(one: Sum) -> tuple[float, float]:
    """Return the smallest and the largest value of a sum."""
    if one.sd:
        return -math.inf, math.inf
    ends = [(part.count * part.curve.support[0], part.count * part.curve.support[1]) for part in one.components]
    return one.constant + sum(low for low, _ in ends), one.constant + sum(high for _, high in ends)


def _limits(components: Sequence[Component]) -> tuple[float, float]:
    """Return between what exponents the moments of a sum exist, with some room."""
    low, high = -math.inf, math.inf
    for component in components:
        below, above = component.tail_scales
        high = min(high, NEAR / above) if above else high
        low = max(low, -NEAR / below) if below else low
    return low, high
