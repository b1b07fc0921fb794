"""Affine forms taken apart: one number of a root set aside, and the distribution of all else."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from privug.inference.curve import Curve
from privug.inference.exact.convolution import Component, sum_curve
from privug.inference.exact.linear import Form, NotAffine, Weight
from privug.inference.exact.request import Obstacle
from privug.model.node import Array, ConstantValue, Node
from privug.prior.family import family_of

Slot = tuple[Node, tuple[int, ...]]
"""One number of a root: the root, and its position if the root is an array."""


class Unsummable(Exception):
    """The distribution of a sum could not be had; the message says why."""


def has_density(form: Form) -> bool:
    """Say whether a sum has a density: some of its terms do."""
    return bool(form.weights) or not all(family_of(root).listable for root in form.others)


def weighted(form: Form) -> list[tuple[Node, Weight]]:
    """Return all roots of a form with their weights."""
    return [*form.weights.items(), *form.others.items()]


def one_root(form: Form) -> tuple[Slot, float, float]:
    """Return the one number of a root that a quantity depends on, its weight, and what is added to it."""
    places: list[tuple[Slot, float]] = [
        ((root, ()), float(weight)) for root, weight in weighted(form) if not root.shape
    ]
    for root, weight in weighted(form):
        if root.shape:
            positions = np.argwhere(np.broadcast_to(weight, root.shape))
            places += [((root, tuple(map(int, at))), float(np.asarray(weight)[tuple(at)])) for at in positions[:2]]
    if len(places) != 1:
        raise NotAffine("the secret is made of several random quantities")
    (slot, weight), constant = places[0], form.constant
    if family_of(slot[0]).gaussian:  # the form's weight is of the standard normal variable behind the root
        mean, sd = parameters(slot)
        return slot, weight / sd, constant - weight / sd * mean
    return slot, weight, constant


def parameters(slot: Slot) -> list[Any]:
    """Return the parameters of one number of a root, which must be known."""
    root, at = slot
    known = []
    for parent in root.parents:
        if not isinstance(parent.operation, ConstantValue):
            raise NotAffine("the distribution of the secret depends on other random quantities")
        array = parent.operation.array[0]
        known.append(np.broadcast_to(array, root.shape)[at] if root.shape and array.shape == root.shape else array)
    return [float(p) if np.ndim(p) == 0 else p for p in known]


def prior_of(slot: Slot) -> Curve:
    """Return the distribution of one number of a root."""
    return Component(family_of(slot[0]), tuple(parameters(slot)), 1.0, 1).curve


def components(form: Form, aside: Slot | None) -> tuple[float, list[Component]]:
    """Return the deviation of all normal parts together and the other parts, one number left aside."""
    variance = 0.0
    for root, weight in form.weights.items():
        variance += float(np.sum(_without(root, weight, aside) ** 2))
    parts: list[Component] = []
    for root, weight in form.others.items():
        left = np.reshape(_without(root, weight, aside), -1)
        if any(
            p.operation.array.size > 1 for p in root.parents if isinstance(p.operation, ConstantValue) and root.shape
        ):
            raise NotAffine("the elements of an array have different distributions")
        values, counts = np.unique(left[left != 0], return_counts=True)
        parts += [
            Component(family_of(root), _constants(root), float(value), int(count))
            for value, count in zip(values, counts, strict=True)
        ]
    return math.sqrt(variance), _merged(parts)


def _constants(root: Node) -> tuple[Array, ...]:
    return tuple(p.operation.array[0] for p in root.parents if isinstance(p.operation, ConstantValue))


def _without(root: Node, weight: Weight, aside: Slot | None) -> Array:
    left = np.array(np.broadcast_to(weight, root.shape), float)
    if aside is not None and root is aside[0]:
        left[aside[1]] = 0.0
    return left


def _merged(parts: Sequence[Component]) -> list[Component]:
    """Put equal components together: a loop over rows gives one for each row."""
    groups: dict[Any, list[Component]] = {}
    for part in parts:
        groups.setdefault(part.key[:-1], []).append(part)
    return [replace(some[0], count=sum(part.count for part in some)) for some in groups.values()]


def curve_of(sd: float, parts: Sequence[Component], shift: float = 0.0) -> Curve:
    """Return the distribution of a shift, a normal variable of mean zero and independent parts together."""
    made = sum_curve(sd, parts)
    if isinstance(made, Obstacle):
        raise Unsummable(made.reason)
    return made.affine(1.0, shift)


def slope_of(form: Form, slot: Slot) -> tuple[float, float]:
    """Return with what weight a number of a root enters, and what it adds to the constant."""
    root, at = slot
    if root in form.weights:
        weight = float(np.broadcast_to(form.weights[root], root.shape)[at]) if root.shape else float(form.weights[root])
        mean, sd = parameters(slot)
        return weight / sd, -weight / sd * mean
    weight = form.others.get(root, 0.0)
    return (float(np.broadcast_to(weight, root.shape)[at]) if root.shape else float(weight)), 0.0
