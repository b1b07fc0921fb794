"""What an output is made of: a sum or an extreme of independent quantities, and a function of that one number."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from privug.inference.belief import Belief
from privug.inference.curve import Curve
from privug.inference.exact.convolution import Sum, mixture_curve
from privug.inference.exact.enumeration import nodes_of
from privug.inference.exact.extremes import Extreme, extreme_form
from privug.inference.exact.image import Image, Listed
from privug.inference.exact.linear import Form, NotAffine, affine_form
from privug.inference.exact.narrows import narrows
from privug.inference.exact.pieces import Unfollowed
from privug.inference.exact.request import Obstacle
from privug.inference.exact.shifts import Kernel, Largest, Shift
from privug.inference.exact.terms import (
    Slot,
    Unsummable,
    components,
    curve_of,
    has_density,
    one_root,
    parameters,
    slope_of,
    weighted,
)
from privug.model.batch import Batch
from privug.model.graph import deduplicated, signature
from privug.model.node import Array, Kind, Node, ancestors
from privug.model.structure import flatten
from privug.model.variable import RandomVariable
from privug.prior.family import Draw, family_of

MOST_NARROWS = 200
TAIL = 1e-15  # the probability of tails that functions need not be followed into
WIDE = 10.0  # how many times as wide as the rest far tails may be to be followed


@dataclass(frozen=True, eq=False)
class Core:
    """A number that is a sum or an extreme of independent quantities."""

    node: Node
    form: Form | Extreme

    @property
    def numbers(self) -> int:
        """How many random numbers go into it."""
        if isinstance(self.form, Extreme):
            return self.form.numbers
        return sum(math.prod(root.shape) for root, _ in weighted(self.form))

    @property
    def is_sum(self) -> bool:
        """Whether it is a sum."""
        return isinstance(self.form, Form)

    @property
    def has_density(self) -> bool:
        """Whether some of its values have no probability of their own."""
        if isinstance(self.form, Extreme):
            return any(has_density(entry.form) for entry in self.form.entries)
        return has_density(self.form)

    def kernel(self, slot: Slot, probability: float, noise: float) -> Kernel:
        """Return how a number of a root determines it, with normal noise of a deviation on top."""
        if isinstance(self.form, Form):
            sd, parts = components(self.form, slot)
            slope, offset = slope_of(self.form, slot)
            rest = curve_of(math.hypot(sd, noise), parts)
            return Shift(probability, self.form.constant + offset, slope, rest)
        found = self.form.apart(slot)
        if found is None:
            return Shift(probability, 0.0, 0.0, self.form.curve)
        start, slope, own, others = found
        if others is None:
            return Shift(probability, start, slope, own)
        sign = self.form.sign
        return Largest(probability, sign * start, sign * slope, own.affine(sign, 0.0), others.affine(sign, 0.0), sign)


def core_of(output: Any) -> tuple[Any, Core]:
    """Return the sum or extreme that an output is a function of, or raise NotAffine.

    The output comes first, with what the program computed more than once computed once.
    """
    node = single("the output", output)
    try:
        return output, Core(node, affine_form(node, any_family=True))
    except NotAffine as problem:
        reason = problem
    node = deduplicated(node)
    for narrow in islice(narrows([node]), MOST_NARROWS):
        found = _sum_or_extreme(narrow)
        if found is not None:
            return flatten(output)[0].build([RandomVariable(node)]), Core(narrow, found)
    raise reason


def _sum_or_extreme(node: Node) -> Form | Extreme | None:
    if node.levels is not None:
        return None
    try:
        return affine_form(node, any_family=True)
    except NotAffine:
        pass
    try:
        found = extreme_form(node)
    except NotAffine:
        return None
    random = sum(entry.count for entry in found.entries if weighted(entry.form))
    return found if random > 1 else None  # a single quantity that is cut off is better followed as such


def mixed(cores: Sequence[Core], probabilities: Sequence[float]) -> Curve:
    """Return the distribution of one of several numbers, chosen by probabilities."""
    if any(isinstance(core.form, Extreme) for core in cores):
        return Curve.mixture(probabilities, [curve_of_core(core) for core in cores])
    sums = []
    for core, probability in zip(cores, probabilities, strict=True):
        assert isinstance(core.form, Form)
        sd, parts = components(core.form, None)
        sums.append(Sum(probability, core.form.constant, sd, tuple(parts)))
    made = mixture_curve(sums)
    if isinstance(made, Obstacle):
        raise Unsummable(made.reason)
    return made


def curve_of_core(core: Core) -> Curve:
    """Return the distribution of a sum or an extreme."""
    if isinstance(core.form, Extreme):
        return core.form.curve
    return curve_of(*components(core.form, None), core.form.constant)


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


@dataclass(frozen=True)
class Asked:
    """A function of one number of a root: `weight` times the number plus `constant`, or an `image` of that."""

    slot: Slot
    weight: float = 1.0
    constant: float = 0.0
    image: Image | Listed | None = None

    def belief(self, curve: Curve) -> Belief:
        """Return the belief about the function, given that about the number."""
        if self.image is not None:
            return self.image.pushed(curve.affine(self.weight, self.constant))
        if curve.parts:
            return Belief.of_curve(curve.affine(self.weight, self.constant))
        return Belief(self.values(curve.atoms), curve.masses, True, spread=Kind.DISCRETE, error=curve.error)

    def values(self, numbers: Array) -> Batch:
        """Return the function's values at some numbers."""
        scaled = numbers * self.weight + self.constant
        if self.image is not None:
            return self.image.batch(self.image.values(scaled))
        whole = self.slot[0].dtype.kind in "bi" and self.weight == 1.0 and self.constant.is_integer()
        return Batch.of_values(np.rint(scaled).astype(np.int64) if whole else scaled)

    @property
    def edges(self) -> Array:
        """The numbers at which the function changes its course."""
        if not isinstance(self.image, Image):
            return np.empty(0)
        return np.sort((self.image.edges - self.constant) / self.weight)


def single(what: str, value: Any) -> Node:
    """Return the node of a value that is one random number."""
    nodes, leaves = nodes_of(value), flatten(value)[1]
    if len(nodes) != 1 or len(leaves) != 1:
        raise NotAffine(f"{what} is not one random number")
    return nodes[0]


def asked(node: Node) -> tuple[Slot, float, float, Node | None]:
    """Find the one number of a root that a quantity depends on: weight, constant, and the node if not affine in it."""
    try:
        return *one_root(affine_form(node, any_family=True)), None
    except NotAffine as problem:
        reason = problem
    for narrow in islice(narrows([node]), MOST_NARROWS):
        if isinstance(narrow.operation, Draw) and family_of(narrow).listable:
            parameters((narrow, ()))
            return (narrow, ()), 1.0, 0.0, narrow
        if narrow.levels is None:
            try:
                return *one_root(affine_form(narrow, any_family=True)), narrow
            except NotAffine:
                continue
    roots = [other for other in ancestors([node]) if other.is_random]
    raise NotAffine("the secret is made of several random quantities") if len(roots) > 1 else reason
