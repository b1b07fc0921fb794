"""What was seen of an output, taken back to the sum or extreme that it is a function of."""

import math

import numpy as np

from privug.errors import ImpossibleObservation
from privug.inference.conditions import Range, Region, Unreadable
from privug.inference.curve import Curve
from privug.inference.exact.constraints import Value, read
from privug.inference.exact.core import Core, Images
from privug.inference.exact.image import Image
from privug.inference.exact.pieces import Unfollowed
from privug.inference.exact.shifts import Places, Ranges, Seen
from privug.model.node import Array, Node
from privug.observation.likelihood import Likelihood

EXACT_VALUE = 1e-13  # how near an atom an exact value must be, relative to it


def noise_of(likelihood: Likelihood, core: Core) -> float:
    """Return the deviation of normal noise through which a sum itself was seen; zero if there was none."""
    if not core.is_sum:
        return 0.0
    try:
        found = read(likelihood)
    except Unreadable:
        return 0.0
    if len(found) == 1 and isinstance(found[0], Value) and found[0].node is core.node:
        return found[0].sd
    return 0.0


def seen_of(likelihood: Likelihood, core: Core, whole: Curve, images: Images) -> Seen:
    """Return what a likelihood says about a sum or an extreme, or raise Unreadable or Unfollowed."""
    node = core.node
    if likelihood.impossible is not None:
        raise ImpossibleObservation(f"this observation is impossible: {likelihood.impossible}")
    try:
        found = read(likelihood)
    except Unreadable:
        found = []
    own = found[0] if len(found) == 1 and found[0].node is node else None
    if isinstance(own, Value) and own.sd > 0 and core.is_sum:
        return Places(((own.value, 1.0),), own.sd)
    if isinstance(own, Value) and own.sd == 0 and whole.parts:
        return _value(own.value, whole)
    if isinstance(own, Region) and whole.parts:
        return Ranges(own.ranges)
    return _through_images(likelihood, node, whole, images)


def _value(value: float, whole: Curve) -> Seen:
    """Return what an exact value means: where it has a probability, that is what counts."""
    atoms = whole.atoms[np.abs(whole.atoms - value) <= EXACT_VALUE * max(1.0, abs(value))]
    if len(atoms):
        slack = EXACT_VALUE * max(1.0, abs(value))
        return Ranges(((float(atoms[0]) - slack, float(atoms[-1]) + slack),))
    return Places(((value, 1.0),))


def _through_images(likelihood: Likelihood, node: Node, whole: Curve, images: Images) -> Seen:
    held: tuple[Range, ...] = ((-math.inf, math.inf),)
    for condition in likelihood.conditions:
        try:
            image = images.of(condition, node)
        except Unfollowed as problem:
            raise Unreadable(f"the condition that was seen cannot be followed: {problem}") from None
        held = _both(held, image.where(image.middles.astype(bool)))
    told = _told(likelihood)
    if not told:
        return Ranges(held)
    if len(told) > 1 or len(likelihood.conditions) > 0:
        raise Unreadable("the observation is more than one value or range of the output")
    return _of_value(told[0], node, whole, images)


def _told(likelihood: Likelihood) -> list[Value]:
    return [f for f in read(Likelihood((), likelihood.log_weights, likelihood.points)) if isinstance(f, Value)]


def _of_value(told: Value, node: Node, whole: Curve, images: Images) -> Seen:
    """Return what a value of a function of a number says about the number."""
    image = images.of(told.node, node)
    if told.sd > 0:
        if not image.is_discrete:
            raise Unreadable("the observation has noise on a function that is no step function")
        low, high = image.bounds
        weights = _normal(told.value, told.sd, image.middles.astype(float))
        return Ranges(tuple(zip(low.tolist(), high.tolist(), strict=True)), tuple(weights.tolist()))
    if not isinstance(image, Image):
        return Ranges(image.where(np.abs(image.middles - told.value) <= EXACT_VALUE * max(1.0, abs(told.value))))
    alone = image.where(image.atom(told.value))
    inside = [part for part in alone if float(whole.mass(*part)) > 0]
    own = whole.atoms[np.abs(image.values(whole.atoms) - told.value) <= EXACT_VALUE * max(1.0, abs(told.value))]
    if inside or len(own):
        return Ranges(_either(tuple(inside), own))
    return Places(tuple(image.branches(told.value)))


def _normal(value: float, sd: float, x: Array) -> Array:
    return np.exp(-0.5 * ((x - value) / sd) ** 2) / (sd * math.sqrt(2 * math.pi))


def _both(left: tuple[Range, ...], right: tuple[Range, ...]) -> tuple[Range, ...]:
    pairs = [(max(a, c), min(b, d)) for a, b in left for c, d in right]
    return tuple(sorted((low, high) for low, high in pairs if low <= high))


def _either(ranges: tuple[Range, ...], atoms: Array) -> tuple[Range, ...]:
    """Add atoms to ranges that do not hold them."""
    others = [float(atom) for atom in atoms if not any(low <= atom <= high for low, high in ranges)]
    return tuple(sorted([*ranges, *((atom, atom) for atom in others)]))
