"""The linear-Gaussian part: affine functions of normal variables, conditioned in closed form."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from privug.errors import ImpossibleObservation, UnsuitableEngine
from privug.estimate import Estimate
from privug.inference.answer import Exact
from privug.inference.belief import Belief
from privug.inference.conditions import Unreadable
from privug.inference.diagnostics import Diagnostics
from privug.inference.exact.constraints import Constraint, Value, read
from privug.inference.exact.gaussian.conditioning import Conditioned, Normal, aligned
from privug.inference.exact.gaussian.joint import gaussian_joint
from privug.inference.exact.gaussian.linear import Form, NotAffine, affine_form
from privug.inference.exact.request import Obstacle, Prepared, Request
from privug.inference.joint import Joint
from privug.inference.question import Case
from privug.inference.sampling import Run
from privug.model.structure import flatten
from privug.model.variable import as_node

MOST_WEIGHTS = 50_000_000
COST_OF_NODE = 1500.0  # of going back through one node, in elementary operations
COST_OF_NORMAL = 10.0  # of drawing a normal number


def prepare_gaussian(request: Request) -> Prepared | Obstacle:
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
    return Prepared(cost, per_sample, lambda: _run(request, case, forms, conditioned, asked, started))


@dataclass(frozen=True)
class Forms:
    """The affine forms of what is asked for (secret, output, query) and of what was seen."""

    secret: Form
    output: Form | None
    query: Form | None
    seen: Sequence[Form]
    constraints: Sequence[Constraint]

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
) -> Run:
    beliefs = iter([Belief.of_curve(conditioned.curve(quantity)) for quantity in asked])
    present = [form is not None for form in (forms.secret, forms.output, forms.query)]
    answers = tuple(next(beliefs) if there else None for there in present)
    evidence = Estimate.exactly(
        math.exp(conditioned.log_evidence), "density" if conditioned.is_density else "", "exact"
    )
    if case.facts:
        evidence = evidence.divided_by(_probability_of_facts(request, case))
    diagnostics = Diagnostics(0, 0, math.inf, evidence, 0, seconds=time.perf_counter() - started)
    source = f"closed form of {forms.size:,} normal variables"
    return Run((), None, diagnostics, exact=Exact("gaussian", source, answers, lambda: _joint(case, forms)))


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
