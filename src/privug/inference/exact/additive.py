"""Sums of independent quantities of any family: the secret adds a shift to the rest, whose distribution is known.

Given the size of its tables, the output is b + a s + W with the secret's root s and a sum W of all else. What was
seen of the output is then a likelihood of s: the posterior is one-dimensional. Random sizes are mixed.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from privug.errors import ImpossibleObservation, UnsuitableEngine
from privug.estimate import Estimate
from privug.inference.answer import Exact
from privug.inference.belief import Belief
from privug.inference.curve import Curve
from privug.inference.diagnostics import Diagnostics
from privug.inference.exact.constraints import Constraint, Unreadable, Value, read
from privug.inference.exact.convolution import Component, Sum, mixture_curve, sum_curve
from privug.inference.exact.enumeration import nodes_of, table_sizes
from privug.inference.exact.linear import Form, NotAffine, Weight, affine_form
from privug.inference.exact.request import Obstacle, Prepared, Request
from privug.inference.exact.shifts import Shift, cells, conditioned, information, output_given
from privug.inference.exact.support import is_finite
from privug.inference.joint import Joint
from privug.inference.sampling import Run
from privug.model.batch import Batch, Column
from privug.model.node import Array, ConstantValue, Kind, Node, ancestors
from privug.model.plan import Plan
from privug.model.structure import LEAF, flatten
from privug.prior.continuous import NORMAL
from privug.prior.family import Draw, family_of

COST_OF_CASE = 2e4  # building the case is left out: sampling has to do that too
COST_OF_NORMAL = 10.0
ENTROPY_ERROR = 1e-10  # of entropies whose densities are polynomials but for rounding, with room to spare
KINK_ERROR = 1e-3  # of an information whose cells have kinks in them
NEGLIGIBLE = 1e-17  # a probability of sizes of the tables that changes nothing

Slot = tuple[Node, tuple[int, ...]]
"""One number of a root: the root, and its position if the root is an array."""


def prepare_additive(request: Request) -> Prepared | Obstacle:
    """Find out whether the output is a sum to which the secret's root adds a shift."""
    if request.question.exclude_errors:
        return Obstacle("inputs on which it fails are to be excluded", vague=True)
    groups = table_sizes(request)
    if isinstance(groups, Obstacle):
        return groups
    try:
        likely = [(sizes, float(start.weights.sum())) for sizes, start in groups]
        models = [_model(request, sizes, chance) for sizes, chance in likely if chance > NEGLIGIBLE]
        return _prepared(models)
    except (NotAffine, Unreadable, _Unsummable) as problem:
        return Obstacle(str(problem))


class _Unsummable(Exception):
    """The distribution of a sum could not be had; the message says why."""


@dataclass(frozen=True)
class _Model:
    """One case: the output, the secret and the query in terms of roots, and how likely the case is."""

    probability: float
    output: Form
    seen: Constraint | None
    asked: tuple["_Asked", ...]
    """Secret and query."""


@dataclass(frozen=True)
class _Asked:
    """A function of one number of a root: `weight` times the number plus `constant`, or any other `image` of it."""

    slot: Slot
    weight: float = 1.0
    constant: float = 0.0
    image: Node | None = None

    def belief(self, curve: Curve) -> Belief:
        """Return the belief about the function, given that about the number."""
        if not curve.parts:
            return Belief(self.values(curve.atoms), curve.masses, True, spread=Kind.DISCRETE, error=curve.error)
        if self.image is None:
            return Belief.of_curve(curve.affine(self.weight, self.constant))
        true = curve.probability(lambda x: bool(self.values(np.array([x])).columns[0].array[0]))
        if true is None:
            raise UnsuitableEngine("engine='exact' cannot follow where this condition changes; engine='sample' can")
        values = Batch.of_values(np.array([False, True]))
        return Belief(values, np.array([1 - true, true]), True, spread=Kind.DISCRETE, error=curve.error)

    def values(self, numbers: Array) -> Batch:
        """Return the function's values at some numbers."""
        root = self.slot[0]
        if self.image is None:
            scaled = numbers * self.weight + self.constant
            whole = root.dtype.kind in "bi" and self.weight == 1.0 and self.constant.is_integer()
            return Batch.of_values(np.rint(scaled).astype(np.int64) if whole else scaled)
        known = {root: numbers.astype(root.dtype)}
        array = Plan([self.image], [root]).run(len(numbers), np.random.Generator(np.random.SFC64(0)), known)[0]
        return Batch(LEAF, (Column(array, self.image.levels),), len(numbers))


def _asked(node: Node) -> _Asked:
    """Find the one number of a root that a quantity depends on."""
    try:
        return _Asked(*_one_root(affine_form(node, any_family=True)))
    except NotAffine:
        roots = [other for other in ancestors([node]) if other.is_random]
        if len(roots) != 1 or roots[0].shape or node.shape or not isinstance(roots[0].operation, Draw):
            raise
        _parameters((roots[0], ()))
        if not is_finite(family_of(roots[0])) and node.dtype != bool:
            raise
        return _Asked((roots[0], ()), image=node)


def _model(request: Request, sizes: tuple[int, ...], probability: float) -> _Model:
    case = request.case(sizes)
    node = _single("the output", case.output)
    output = affine_form(node, any_family=True)
    seen = None
    if request.observation is not None:
        likelihood = request.observation.likelihood(case.output)
        if likelihood.impossible is not None:
            raise ImpossibleObservation(f"this observation is impossible: {likelihood.impossible}")
        constraints = read(likelihood)
        if len(constraints) != 1 or constraints[0].node is not node:
            raise Unreadable("the observation is more than one value or range of the output")
        seen = constraints[0]
    if not _has_density(output) and not (isinstance(seen, Value) and seen.sd > 0):
        raise NotAffine("all values of the output have probabilities of their own")
    quantities = [case.secret] if request.extra is None else [case.secret, request.query(case)]
    asked = tuple(_asked(_single("the secret", value)) for value in quantities)
    return _Model(probability, output, seen, asked)


def _has_density(form: Form) -> bool:
    return bool(form.weights) or not all(is_finite(family_of(root)) for root in form.others)


def _constants(root: Node) -> tuple[Array, ...]:
    return tuple(p.operation.array[0] for p in root.parents if isinstance(p.operation, ConstantValue))


def _single(what: str, value: Any) -> Node:
    nodes, leaves = nodes_of(value), flatten(value)[1]
    if len(nodes) != 1 or len(leaves) != 1:
        raise NotAffine(f"{what} is not one random number")
    return nodes[0]


def _one_root(form: Form) -> tuple[Slot, float, float]:
    """Return the one number of a root that a quantity depends on."""
    places: list[tuple[Slot, float]] = [
        ((root, ()), float(weight)) for root, weight in _weighted(form) if not root.shape
    ]
    for root, weight in _weighted(form):
        if root.shape:
            positions = np.argwhere(np.broadcast_to(weight, root.shape))
            places += [((root, tuple(map(int, at))), float(np.asarray(weight)[tuple(at)])) for at in positions[:2]]
    if len(places) != 1:
        raise NotAffine("the secret is made of several random quantities")
    (slot, weight), constant = places[0], form.constant
    if family_of(slot[0]) is NORMAL:  # the form's weight is of the standard normal variable behind the root
        mean, sd = _parameters(slot)
        return slot, weight / sd, constant - weight / sd * mean
    return slot, weight, constant


def _weighted(form: Form) -> list[tuple[Node, Weight]]:
    return [*form.weights.items(), *form.others.items()]


def _parameters(slot: Slot) -> list[Any]:
    """Return the parameters of one number of a root, which must be known."""
    root, at = slot
    known = []
    for parent in root.parents:
        if not isinstance(parent.operation, ConstantValue):
            raise NotAffine("the distribution of the secret depends on other random quantities")
        array = parent.operation.array[0]
        known.append(np.broadcast_to(array, root.shape)[at] if root.shape and array.shape == root.shape else array)
    return [float(p) if np.ndim(p) == 0 else p for p in known]


def _components(form: Form, aside: Slot | None) -> tuple[float, list[Component]]:
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


def _curve(sd: float, parts: Sequence[Component], shift: float) -> Curve:
    made = sum_curve(sd, parts)
    if isinstance(made, Obstacle):
        raise _Unsummable(made.reason)
    return made.affine(1.0, shift)


def _slope(form: Form, slot: Slot) -> tuple[float, float]:
    """Return with what weight a number of a root enters, and what it adds to the constant."""
    root, at = slot
    if root in form.weights:
        weight = float(np.broadcast_to(form.weights[root], root.shape)[at]) if root.shape else float(form.weights[root])
        mean, sd = _parameters(slot)
        return weight / sd, -weight / sd * mean
    weight = form.others.get(root, 0.0)
    return (float(np.broadcast_to(weight, root.shape)[at]) if root.shape else float(weight)), 0.0


def _prepared(models: Sequence[_Model]) -> Prepared:
    slots = {asked.slot for model in models for asked in model.asked}
    if len({model.asked[0] for model in models}) > 1 or len(slots) > len(models[0].asked):
        raise NotAffine("the secret is another quantity for other sizes of the tables")
    numbers = max(sum(math.prod(root.shape) for root, _ in _weighted(model.output)) for model in models)
    shifts = [_shifts(models, asked.slot) for asked in models[0].asked]
    return Prepared(COST_OF_CASE * len(models), COST_OF_NORMAL * numbers, partial(_run, models, shifts, _whole(models)))


def _shifts(models: Sequence[_Model], slot: Slot) -> list[Shift]:
    shifts = []
    for model in models:
        sd, parts = _components(model.output, slot)
        slope, offset = _slope(model.output, slot)
        noise = model.seen.sd if isinstance(model.seen, Value) else 0.0
        rest = _curve(math.hypot(sd, noise), parts, 0.0)
        shifts.append(Shift(model.probability, model.output.constant + offset, slope, rest))
    return shifts


def _whole(models: Sequence[_Model]) -> Curve:
    """Return the distribution of the output."""
    sums = []
    for model in models:
        sd, parts = _components(model.output, None)
        sums.append(Sum(model.probability, model.output.constant, sd, tuple(parts)))
    made = mixture_curve(sums)
    if isinstance(made, Obstacle):
        raise _Unsummable(made.reason)
    return made


def _prior(slot: Slot) -> Curve:
    return Component(family_of(slot[0]), tuple(_parameters(slot)), 1.0, 1).curve


def _run(models: Sequence[_Model], all_shifts: Sequence[Sequence[Shift]], whole: Curve) -> Run:
    started = time.perf_counter()
    seen = models[0].seen
    beliefs: list[Belief] = []
    evidence = 1.0
    for asked, shifts in zip(models[0].asked, all_shifts, strict=True):
        known = _prior(asked.slot)
        if seen is not None:
            evidence, known = conditioned(known, shifts, seen)
        beliefs.append(asked.belief(known))
    beliefs.insert(1, Belief.of_curve(output_given(whole, seen)))
    estimate = Estimate.exactly(evidence, "density" if isinstance(seen, Value) else "", "exact")
    count = len(models)
    diagnostics = Diagnostics(count, count, math.inf, estimate, 0, 0, time.perf_counter() - started)
    source = "sums of independent quantities" + (f", for {count} sizes of tables" if count > 1 else "")
    return Run((), None, diagnostics, exact=Exact("sums", source, tuple(beliefs), partial(_joint, models, whole)))


def _joint(models: Sequence[_Model], whole: Curve) -> Joint:
    """Return secret and output together as cells of quadrature."""
    asked = models[0].asked[0]
    prior = _prior(asked.slot)
    if not _has_density(models[0].output):
        raise UnsuitableEngine("engine='exact' knows this output only through noise; engine='sample' has the joint")
    if prior.parts and asked.image is not None:
        raise UnsuitableEngine("engine='exact' has no joint of this condition and the output; engine='sample' has")
    shifts = _shifts([replace(model, seen=None) for model in models], asked.slot)
    output, secret = Belief.of_curve(whole), asked.belief(prior)
    if prior.parts and any(shift.slope and not shift.rest.parts for shift in shifts):
        reason = "given the output, only values with a probability of their own are left for the secret"
        return Joint(secret, output, Estimate.exactly(math.inf, "bit", reason))
    s, o, probabilities = cells(prior, shifts)
    rows = asked.values(s).take(np.repeat(np.arange(len(s)), len(o)))
    weights = probabilities.reshape(-1)
    pairs = (
        Belief(rows, weights, True, spread=secret.kind, curve=secret.curve),
        Belief(Batch.of_values(np.tile(o, len(s))), weights, True, spread=Kind.CONTINUOUS, curve=output.curve),
    )
    return Joint(*pairs, None if asked.image is not None else _information(prior, shifts, output, probabilities))


def _information(prior: Curve, shifts: Sequence[Shift], output: Belief, probabilities: Array) -> Estimate:
    """Return the mutual information: of one shift, what the entropy of the output exceeds that of the rest by."""
    if len(shifts) == 1 and shifts[0].slope and output.curve is not None:
        whole, rest = output.curve.differential_entropy(), shifts[0].rest.differential_entropy()
        exact, off = max(0.0, whole - rest), ENTROPY_ERROR
    else:
        exact = information(probabilities)
        off = abs(exact - information(cells(prior, shifts, 2.0)[2]))
        if prior.parts and any(np.isfinite(shift.rest.breaks).any() for shift in shifts):
            off = max(off, KINK_ERROR)
    method = "exact" if off < 1e-12 else f"exact to {off:.0e}"
    return Estimate(exact, max(0.0, exact - off), exact + off, "bit", method, exact=True)
