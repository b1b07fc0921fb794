"""The solver for normal variables: affine functions of them, conditioned in closed form, and their joint."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privug.errors import ImpossibleObservation, UnsuitableEngine
from privug.estimate import Estimate
from privug.inference.answer import ExactAnswer
from privug.inference.belief import Belief
from privug.inference.exact.gaussian.model import (
    Conditioned,
    Form,
    Normal,
    NotAffine,
    affine_form,
    aligned,
    length,
    product,
)
from privug.inference.exact.request import Obstacle, Offer, Request, exact_answer
from privug.inference.graph.conditions import Restriction, Unreadable, Value, read
from privug.inference.joint import Joint
from privug.inference.measure.curve import Curve
from privug.inference.question import Case
from privug.model.batch import Batch
from privug.model.node import Array, Kind
from privug.model.structure import flatten
from privug.model.variable import as_node

REACH = 8.5  # deviations: 2e-17 lies beyond
# Sums over an even grid of step h are exact but for exp(-2 (pi sd / h)^2) for a normal density: 1e-15 here.
STEP = 0.75
LARGEST_STEP = 0.5
MOST_CELLS = 2_000_000
DETERMINED = 1e-14

FUNCTION_OF_SECRET = (
    "infinite: the output is a function of the secret alone, and both are continuous, so an output seen to all its "
    "digits gives the secret away"
)


def gaussian_joint(secret: Normal, output: Normal) -> Joint:
    """Return the joint of secret and output; `information` is minus the log of the root of 1 - correlation squared."""
    if secret.sd == 0 or output.sd == 0:
        return _with_a_constant(secret, output)
    left, right = secret.weights / secret.sd, output.weights / output.sd
    correlation = product(left, right)
    independence = min(1.0, length(left - correlation * right))
    if independence <= DETERMINED:
        places = np.arange(-REACH, REACH + LARGEST_STEP, LARGEST_STEP)
        cells = places, math.copysign(1.0, correlation) * places, np.exp(-0.5 * places**2)
        return _joint_of_cells(secret, output, cells, Estimate.exactly(math.inf, "bit", FUNCTION_OF_SECRET))
    information = max(0.0, -math.log2(independence))
    cells = _cells(correlation, independence)
    return _joint_of_cells(secret, output, cells, Estimate.exactly(information, "bit", "exact"))


def _cells(correlation: float, independence: float) -> tuple[Array, Array, Array]:
    """Return pairs of standardised values with their densities, on an even grid, where there is any probability."""
    step = min(LARGEST_STEP, STEP * independence)
    reach = math.ceil(REACH * independence / step) + 1
    # Beyond so many cells the grid stays wider than the density: sums over it are rough, the closed form is not.
    step = max(step, 2 * REACH * (2 * reach + 1) / MOST_CELLS)
    count = math.ceil(REACH / step)
    rows = np.arange(-count, count + 1)
    columns = np.rint(correlation * rows)[:, np.newaxis] + np.arange(-reach, reach + 1)
    u = step * columns
    t = np.broadcast_to(step * rows[:, np.newaxis], u.shape)
    inside = np.abs(columns) <= count
    independence = max(independence, step / STEP)
    logs = -0.5 * ((u - correlation * t) / independence) ** 2 - 0.5 * t**2
    return t[inside], u[inside], np.exp(logs[inside])


def _joint_of_cells(secret: Normal, output: Normal, cells: tuple[Array, Array, Array], information: Estimate) -> Joint:
    t, u, density = cells
    weights = density / density.sum()
    return Joint(_side(secret, t, weights), _side(output, u, weights), information)


def _side(quantity: Normal, places: Array, weights: Array) -> Belief:
    curve = Curve.normal(quantity.mean, quantity.sd)
    values = Batch.of_values(quantity.mean + quantity.sd * places)
    if not curve.parts:
        return Belief.listed(values, weights)
    return Belief(values, weights, True, spread=Kind.CONTINUOUS, curve=curve)


def _with_a_constant(secret: Normal, output: Normal) -> Joint:
    places = np.arange(-REACH, REACH + LARGEST_STEP, LARGEST_STEP)
    cells = places, places, np.exp(-0.5 * places**2)
    return _joint_of_cells(secret, output, cells, Estimate.exactly(0.0, "bit", "exact"))


MOST_WEIGHTS = 50_000_000
COST_OF_NODE = 1500.0  # of going back through one node, in elementary operations
COST_OF_NORMAL = 10.0  # of drawing a normal number


def prepare_gaussian(request: Request) -> Offer | Obstacle:
    """Find out whether secret, query and observation are affine in normal variables, and at what cost."""
    started = time.perf_counter()
    if request.question.size_nodes:
        return Obstacle("its tables have random sizes", vague=True)
    if request.question.exclude_errors:
        return Obstacle("inputs on which it fails are to be excluded", vague=True)
    case = request.case()
    if case.lifting.tier in ("python", "external"):
        return Obstacle(f"the program is called sample by sample ({case.lifting.reason or case.lifting.tier})")
    try:
        forms = _forms(request, case)
    except (NotAffine, Unreadable) as problem:
        return Obstacle(str(problem))
    if forms.size * len(forms.everything) > MOST_WEIGHTS:
        return Obstacle("too many values of too many normal variables were seen at once")
    try:
        conditioned, asked = _conditioned(forms)
    except Unreadable as problem:
        return Obstacle(str(problem))
    numbers = sum(form.numbers for form in forms.everything)
    cost = COST_OF_NODE * sum(form.nodes for form in forms.everything) + numbers * (1 + len(forms.seen))
    per_sample = max(form.numbers for form in forms.everything) + COST_OF_NORMAL * forms.size
    return Offer(cost, per_sample, lambda: _run(request, case, forms, conditioned, asked, started))


@dataclass(frozen=True)
class Forms:
    """The affine forms of what is asked for (secret, output, query) and of what was seen."""

    secret: Form
    output: Form | None
    query: Form | None
    seen: Sequence[Form]
    constraints: Sequence[Restriction]

    @property
    def asked(self) -> list[Form]:
        """The forms asked for, those that there are."""
        return [form for form in (self.secret, self.output, self.query) if form is not None]

    @property
    def everything(self) -> list[Form]:
        """All forms, those with noise last."""
        return [*self.asked, *self.seen]

    @property
    def size(self) -> int:
        """How many normal variables there are."""
        roots = {root: weight for form in self.everything for root, weight in form.weights.items()}
        return sum(math.prod(root.shape) for root in roots)


def _forms(request: Request, case: Case) -> Forms:
    likelihood = case.likelihood(request.observation)
    if likelihood.impossible is not None:
        raise ImpossibleObservation(f"this observation is impossible: {likelihood.impossible}")
    secret = _form("the secret", case.secret)
    query = None if request.extra is None else _form("the query", request.query(case))
    # Values first, then ranges: a range is integrated given all values.
    constraints = sorted(read(likelihood), key=lambda constraint: not isinstance(constraint, Value))
    seen = [_form("the output", constraint.node) for constraint in constraints]
    output = None
    if request.observation is None and _is_single(case.output):
        output = _form("the output", case.output)
    elif request.observation is None:
        for node in map(as_node, flatten(case.output)[1]):
            if not node.shape:
                _form("a part of the output", node)
    return Forms(secret, output, query, seen, constraints)


def _is_single(value: Any) -> bool:
    leaves = flatten(value)[1]
    return len(leaves) == 1 and as_node(leaves[0]).shape == ()


def _form(what: str, value: Any) -> Form:
    node = value if hasattr(value, "operation") else None
    if node is None:
        leaves = flatten(value)[1]
        if not _is_single(value):
            raise NotAffine(f"{what} has several parts, which have no single curve")
        node = as_node(leaves[0])
    try:
        return affine_form(node)
    except NotAffine as problem:
        raise NotAffine(f"{what} is not an affine function of normal variables: {problem}") from None


def _conditioned(forms: Forms) -> tuple[Conditioned, list[Normal]]:
    noise = [constraint.sd if isinstance(constraint, Value) else 0.0 for constraint in forms.constraints]
    normals = aligned(forms.everything, noise)
    conditioned = Conditioned()
    for quantity, constraint in zip(normals[len(forms.asked) :], forms.constraints, strict=True):
        if isinstance(constraint, Value):
            conditioned.see(quantity, constraint.value)
        else:
            conditioned.confine(quantity, constraint.ranges)
    return conditioned, normals[: len(forms.asked)]


def _run(
    request: Request, case: Case, forms: Forms, conditioned: Conditioned, asked: Sequence[Normal], started: float
) -> ExactAnswer:
    beliefs = iter([Belief.of_curve(conditioned.curve(quantity)) for quantity in asked])
    present = [form is not None for form in (forms.secret, forms.output, forms.query)]
    answers = tuple(next(beliefs) if there else None for there in present)
    evidence = Estimate.exactly(
        math.exp(conditioned.log_evidence), "density" if conditioned.is_density else "", "exact"
    )
    if case.facts:
        evidence = evidence.divided_by(_probability_of_facts(request, case))
    source, seconds = f"closed form of {forms.size:,} normal variables", time.perf_counter() - started
    return exact_answer("gaussian", source, answers, lambda: _joint(case, forms), evidence, (0, 0, 0), seconds)


def _probability_of_facts(request: Request, case: Case) -> Estimate:
    try:
        assumed, _ = _conditioned(_forms(replace(request, observation=None), case))
    except Unreadable:  # ranges of two quantities, which what was seen has made one
        assert request.question.probability_of_facts is not None
        return request.question.probability_of_facts
    return Estimate.exactly(math.exp(assumed.log_evidence))


def _joint(case: Case, forms: Forms) -> Joint:
    if case.facts:
        raise UnsuitableEngine("engine='exact' has no joint of normal quantities given a fact; engine='sample' has")
    try:
        output = forms.output or _form("the output", case.output)
    except NotAffine as problem:
        raise UnsuitableEngine(f"engine='exact' cannot give the joint: {problem}; engine='sample' can") from None
    return gaussian_joint(*aligned([forms.secret, output]))
