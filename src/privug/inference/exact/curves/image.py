"""A function of one number on its monotone pieces: what becomes of distributions and of what was seen."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from privug.inference.belief import Belief
from privug.inference.conditions import Range
from privug.inference.curve import Curve
from privug.inference.density import Analytic, Tabulated
from privug.inference.exact.curves.crossing import Crossing
from privug.inference.exact.curves.derivative import Derivative
from privug.inference.exact.curves.pieces import Evaluation, Unfollowed, cut, inner_ends
from privug.inference.mapped import Density, Mapped
from privug.model.batch import Batch, Column
from privug.model.graph import signature
from privug.model.node import Array, Kind, Node
from privug.model.structure import LEAF

TAIL = 1e-15  # the probability of tails that functions need not be followed into
WIDE = 10.0  # how many times as wide as the rest far tails may be to be followed
MOST_BRANCHES = 64  # of a function with a density: each is a part of its own
LOOKS = (np.arange(33) + 0.5) / 33  # where on a piece to look whether it is a straight line
STRAIGHT = 1e-15  # how far, relative to their size, the values of a straight line are off for rounding
SAME = 1e-13  # outputs that differ by less, relative to their size, are equal but for rounding


@dataclass(frozen=True, eq=False)
class Image:
    """A function of a number that lies between the outermost `edges`: monotone and continuous between them."""

    node: Node
    argument: Node
    edges: Array

    @classmethod
    def of(cls, node: Node, argument: Node, low: float, high: float) -> "Image":
        """Cut a function into pieces, or raise Unfollowed."""
        image = cls(node, argument, cut(node, argument, low, high))
        image.steps, image.middles  # noqa: B018  # a function without a value shows here
        return image

    @cached_property
    def _evaluation(self) -> Evaluation:
        return Evaluation(self.node, self.argument)

    def values(self, x: Array) -> Array:
        """Return the function's values, categories as codes."""
        return self._evaluation(x)

    def batch(self, values: Array) -> Batch:
        """Return values as a batch of what they stand for."""
        return Batch(LEAF, (Column.of(self.node, values),), len(values))

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        low, high = inner_ends(self.edges)
        return self.values(low), self.values(high)

    @cached_property
    def steps(self) -> Array:
        """Which pieces have one value only."""
        return np.asarray(self._ends[0] == self._ends[1])

    @cached_property
    def middles(self) -> Array:
        """The value on each piece, which is its only one if it is a step."""
        low, high = inner_ends(self.edges)
        return self.values(low / 2 + high / 2)

    @cached_property
    def is_discrete(self) -> bool:
        """Whether the function takes a value of its own on each piece."""
        return bool(self.steps.all())

    @cached_property
    def folds(self) -> bool:
        """Whether numbers on different pieces that are no steps may give the same value."""
        ends = np.stack([np.asarray(end, float)[~self.steps] for end in self._ends])
        low, high = np.sort(ends, axis=0)
        order = np.argsort(low)
        return bool(np.any(high[order][:-1] > low[order][1:]))

    @property
    def is_injective(self) -> bool:
        """Whether different numbers always give different values."""
        return not self.folds and not self.steps.any()

    def inverse(self, piece: int, y: Array) -> Array:
        """Return the numbers within one piece at which the function takes some values, or its nearest end."""
        if piece not in self._inverses:
            low, high = (float(end[piece]) for end in inner_ends(self.edges))
            self._inverses[piece] = Crossing(self.values, low, high)
        return self._inverses[piece](y)

    @cached_property
    def _inverses(self) -> dict[int, Crossing]:
        return {}

    def piece_ends(self, piece: int) -> tuple[float, float]:
        """Return numbers at the beginning and at the end of a piece."""
        low, high = inner_ends(self.edges)
        return float(low[piece]), float(high[piece])

    def _inside(self, piece: int, x: Array) -> Array:
        low, high = inner_ends(self.edges)
        return np.clip(x, low[piece], high[piece])

    def _on(self, piece: int, x: Array) -> Array:
        return self.values(self._inside(piece, x))

    def _slope_on(self, piece: int, x: Array) -> Array:
        return self.slope(self._inside(piece, x))

    def slope(self, x: Array) -> Array:
        """Return the derivative."""
        return self._derivative(x)

    @cached_property
    def _derivative(self) -> Derivative:
        return Derivative(self.node, self.argument)

    def line(self, piece: int) -> tuple[float, float] | None:
        """Return slope and constant of a piece on which the function is a straight line, or nothing."""
        low, high = (end[piece] for end in inner_ends(self.edges))
        x = low + (high - low) * LOOKS
        try:
            slopes = self.slope(x)
        except Unfollowed:
            return None
        slope, values = float(slopes[0]), np.asarray(self.values(x), float)
        if not np.isfinite(slope) or slope == 0 or not np.isfinite(values).all() or np.any(slopes != slope):
            return None
        constant = float(values[0] - slope * x[0])
        size = np.abs(slope * x).max() + np.abs(values).max()
        return (slope, constant) if np.abs(values - slope * x - constant).max() <= STRAIGHT * size else None

    def where(self, chosen: Array) -> tuple[Range, ...]:
        """Return the ranges made up of some pieces, those next to each other joined."""
        starts = np.flatnonzero(chosen & ~np.append(False, chosen[:-1]))
        stops = np.flatnonzero(chosen & ~np.append(chosen[1:], False))
        low, high = self.bounds
        return tuple((float(low[a]), float(high[b])) for a, b in zip(starts, stops, strict=True))

    def branches(self, value: float) -> list[tuple[float, float]]:
        """Return the numbers at which the function takes a value, and how its density there follows from theirs."""
        low, high = np.sort(np.stack([np.asarray(end, float) for end in self._ends]), axis=0)
        found = []
        for piece in np.flatnonzero((low <= value) & (value <= high) & ~self.steps):
            x = self.inverse(int(piece), np.array([value]))
            found.append((float(x[0]), 1 / abs(float(self.slope(x)[0]))))
        return found

    def atom(self, value: float) -> Array:
        """Return which pieces have just this value, but for rounding."""
        scale = max(abs(value), float(np.abs(self.middles).max(initial=0.0)))
        return self.steps & (np.abs(self.middles - value) <= SAME * scale)

    def pushed(self, curve: Curve) -> Belief:
        """Return the belief about the function's value, given that about the number."""
        if not self.is_discrete and curve.parts:
            return Belief.of_curve(self.curve(curve))
        if not curve.parts:
            return tallied(self, self.values(curve.atoms), curve.masses, curve.error)
        masses = curve.mass(*self.bounds) - self._atoms_inside(curve)
        values = np.concatenate([self.middles, self.values(curve.atoms)])
        return tallied(self, values, np.concatenate([masses, curve.masses]), curve.error)

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """The first and the last number of each piece; the outermost pieces are endless."""
        low, high = self.edges[:-1].copy(), np.nextafter(self.edges[1:], -np.inf)
        low[0], high[-1] = -np.inf, np.inf
        return low, high

    def _atoms_inside(self, curve: Curve) -> Array:
        low, high = self.bounds
        below = np.concatenate([[0.0], np.cumsum(curve.masses)])
        until = below[np.searchsorted(curve.atoms, high, side="right")]
        return np.asarray(until - below[np.searchsorted(curve.atoms, low)])

    def curve(self, curve: Curve) -> Curve:
        """Return the distribution of a function with numbers as values, some of which may have a density."""
        moving = np.flatnonzero(~self.steps)
        if len(moving) > MOST_BRANCHES:
            raise Unfollowed(f"the output has a density that jumps at more than {MOST_BRANCHES} places")
        parts: list[tuple[float, Density]] = []
        for weight, part in curve.parts:
            assert not isinstance(part, Mapped)
            for piece in moving:
                low, high = self.edges[piece], self.edges[piece + 1]
                inner = part.restricted(float(low), float(high))
                share = weight * float(part.mass(np.array(low), np.array(high)))
                if inner is not None and share > 0:
                    parts.append((share, self._mapped(int(piece), inner)))
        flat = np.where(self.steps, curve.mass(*self.bounds) - self._atoms_inside(curve), 0.0)
        atoms = np.concatenate([self.middles, self.values(curve.atoms)]).astype(float)
        masses = np.concatenate([flat, curve.masses])
        values, codes = np.unique(atoms[masses > 0], return_inverse=True)
        total = sum(share for share, _ in parts) + masses.sum()
        found = np.bincount(codes.reshape(-1), masses[masses > 0], len(values))
        shares = tuple((share / total, part) for share, part in parts)
        return Curve(shares, values, found / total, curve.error + abs(1 - float(total)))

    def _mapped(self, piece: int, density: Analytic | Tabulated) -> Density:
        """Return what becomes of a density that lies within one piece."""
        line = self.line(piece)
        if line is not None:
            return density.affine(*line)
        rising = bool(self._ends[1][piece] > self._ends[0][piece])
        on, back, slope = (partial(function, piece) for function in (self._on, self.inverse, self._slope_on))
        return Mapped(density, on, back, slope, rising)


@dataclass(frozen=True, eq=False)
class Listed:
    """A function of a number that takes finitely many values, the `atoms`."""

    node: Node
    argument: Node
    atoms: Array

    is_discrete = True
    folds = False

    @cached_property
    def middles(self) -> Array:
        """The function's value at each atom."""
        return self.values(self.atoms)

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Ranges that hold one atom each."""
        slack = SAME * np.maximum(1.0, np.abs(self.atoms))
        return self.atoms - slack, self.atoms + slack

    @cached_property
    def _evaluation(self) -> Evaluation:
        return Evaluation(self.node, self.argument)

    def values(self, x: Array) -> Array:
        """Return the function's values, categories as codes."""
        return self._evaluation(x)

    def where(self, chosen: Array) -> tuple[Range, ...]:
        """Return the ranges of some atoms."""
        low, high = self.bounds
        return tuple(zip(low[chosen].tolist(), high[chosen].tolist(), strict=True))

    def batch(self, values: Array) -> Batch:
        """Return values as a batch of what they stand for."""
        return Batch(LEAF, (Column.of(self.node, values),), len(values))

    def pushed(self, curve: Curve) -> Belief:
        """Return the belief about the function's value, given that about the number."""
        return tallied(self, self.values(curve.atoms), curve.masses, curve.error)


def tallied(image: Image | Listed, values: Array, masses: Array, error: float) -> Belief:
    """Return the belief of a discrete quantity from values that may repeat, each with a probability."""
    distinct, codes = np.unique(values, return_inverse=True)
    shares = np.bincount(codes.reshape(-1), np.maximum(masses, 0.0), len(distinct))
    there = shares > 0
    total = shares.sum()
    off = error + abs(1 - float(total))
    return Belief(image.batch(distinct[there]), shares[there] / total, True, spread=Kind.DISCRETE, error=off)


def blended(weights: Sequence[float], beliefs: Sequence[Belief]) -> Belief:
    """Return the belief about a quantity that follows one of several beliefs, chosen by weights."""
    if all(belief.curve is not None for belief in beliefs):
        return Belief.of_curve(Curve.mixture(weights, [b.curve for b in beliefs if b.curve is not None]))
    if any(belief.curve is not None for belief in beliefs):
        raise Unfollowed("the output has a density for some sizes of the tables only")
    shares = np.asarray(weights, float) / np.sum(weights)
    batch = Batch.concatenate([belief.batch for belief in beliefs])
    masses = np.concatenate(
        [share * b.weights for share, b in zip(shares, beliefs, strict=True) if b.weights is not None]
    )
    codes, values = batch.factorized()
    error = max(belief.error for belief in beliefs)
    merged = np.bincount(codes, masses, len(values))
    first = np.array([int(np.argmax(codes == code)) for code in range(len(values))])
    return Belief(batch.take(first), merged, True, spread=Kind.DISCRETE, error=error)


class Images:
    """Functions of numbers of a known distribution; those that are the same are followed once."""

    def __init__(self, curve: Curve) -> None:
        self._curve = curve
        self._known: dict[Hashable, Image | Listed] = {}

    def of(self, node: Node, argument: Node) -> Image | Listed:
        """Return a function of a number, or raise Unfollowed."""
        key = signature(node, argument)
        if key is None or key not in self._known:
            made = self._made(node, argument)
            if key is None:
                return made
            self._known[key] = made
        return self._known[key]

    def _made(self, node: Node, argument: Node) -> Image | Listed:
        if not self._curve.parts:
            return Listed(node, argument, self._curve.atoms)
        near = _ends(self._curve)
        far = (min(near[0], float(self._curve.edges[0])), max(near[1], float(self._curve.edges[-1])))
        if far[1] - far[0] <= WIDE * (near[1] - near[0]):
            try:
                return Image.of(node, argument, *far)
            except Unfollowed:
                pass  # the far tails may hold values for which the program fails, or too many steps
        return Image.of(node, argument, *near)


def _ends(curve: Curve) -> tuple[float, float]:
    """Return between what numbers a quantity lies, but for negligible tails."""
    low, high = curve.support
    if not math.isfinite(low) or not math.isfinite(high):
        below, above = curve.quantiles(np.array([TAIL, 1 - TAIL]))
        low, high = max(low, float(below)), min(high, float(above))
    slack = 1e-9 * (high - low) or 1.0
    return low - slack if curve.atoms.size else low, high + slack if curve.atoms.size else high
