"""Sums and extremes of independent quantities of any family, and functions of one of them.

Given the size of its tables, the output is a function of one number: of b + a s + W with the secret's root s and a sum
W of all else, or of the largest or smallest of independent quantities, s among them. What was seen of the output is
then a likelihood of s: the posterior is one-dimensional. Random sizes are mixed.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import repeat
from typing import TypeVar

from privug.errors import ImpossibleObservation, UnsuitableEngine
from privug.estimate import Estimate
from privug.inference.answer import Exact
from privug.inference.belief import NEGLIGIBLE, Belief
from privug.inference.conditions import Unreadable
from privug.inference.curve import Curve
from privug.inference.diagnostics import Diagnostics
from privug.inference.exact.core import Asked, Core, Images, asked, core_of, curve_of_core, mixed, single
from privug.inference.exact.enumeration import table_sizes
from privug.inference.exact.extremes import Extreme
from privug.inference.exact.image import Image, Listed, blended
from privug.inference.exact.joints import Outward, joint_of
from privug.inference.exact.linear import Form, NotAffine
from privug.inference.exact.pieces import Unfollowed
from privug.inference.exact.request import Obstacle, Prepared, Request
from privug.inference.exact.shifts import Kernel, Places, Ranges, Seen, conditioned, given, weighed
from privug.inference.exact.sight import noise_of, seen_of
from privug.inference.exact.terms import Slot, Unsummable, prior_of
from privug.inference.joint import Joint
from privug.inference.mapped import NoSuchMoment
from privug.inference.sampling import Run
from privug.model.graph import signature
from privug.model.node import Node
from privug.observation.likelihood import Likelihood

Answer = TypeVar("Answer")

COST_OF_CASE = 2e4  # building the case is left out: sampling has to do that too
COST_OF_NORMAL = 10.0
UNLIKELY = 1e-17  # a probability of sizes of the tables that changes nothing


def prepare_additive(request: Request) -> Prepared | Obstacle:
    """Find out whether the output is a function of a sum or an extreme that the secret's root goes into."""
    if request.question.exclude_errors:
        return Obstacle("inputs on which it fails are to be excluded", vague=True)
    groups = table_sizes(request)
    if isinstance(groups, Obstacle):
        return groups
    cores: list[Core] = []
    try:
        likely = [(sizes, float(start.weights.sum())) for sizes, start in groups]
        cases = [_case(request, sizes, chance, cores) for sizes, chance in likely if chance > UNLIKELY]
        return _prepared(_Problem.of(cases))
    except (NotAffine, Unreadable, Unsummable, Unfollowed, UnsuitableEngine) as problem:
        understood = bool(cores) and cores[0].has_density
        node = problem.node if isinstance(problem, Unfollowed) else None
        return Obstacle(str(problem), precise=understood, node=node)


@dataclass(frozen=True, eq=False)
class _Case:
    """One size of the tables: how likely it is, the output, what it is made of, and what was seen of it."""

    probability: float
    output: Node
    core: Core
    likelihood: Likelihood | None
    quantities: tuple[tuple[Slot, float, float, Node | None, Node], ...]
    """Secret and query: a number of a root, its weight and constant, and the node of what is not affine in it."""

    @property
    def noise(self) -> float:
        """The deviation of normal noise through which the sum itself was seen."""
        return 0.0 if self.likelihood is None else noise_of(self.likelihood, self.core)


def _case(request: Request, sizes: tuple[int, ...], probability: float, cores: list[Core]) -> _Case:
    """Return the case of some sizes of the tables; the sum or extreme in it is noted as soon as it is known."""
    case = request.case(sizes)
    single("the output", case.output)
    output, core = core_of(case.output)
    cores.append(core)
    node = single("the output", output)
    if case.facts:
        raise NotAffine("what is assumed ties its inputs together")
    likelihood = None if request.observation is None else request.observation.likelihood(output)
    if likelihood is not None and likelihood.impossible is not None and not sizes:
        raise ImpossibleObservation(f"this observation is impossible: {likelihood.impossible}")
    values = [case.secret] if request.extra is None else [case.secret, request.query(case)]
    nodes = [single(what, value) for what, value in zip(("the secret", "the query"), values, strict=False)]
    found = _Case(probability, node, core, likelihood, tuple((*asked(one), one) for one in nodes))
    if isinstance(core.form, Form) and not core.has_density and not found.noise:
        raise NotAffine("all values of the output have probabilities of their own")
    return found


@dataclass(frozen=True, eq=False)
class _Problem:
    """All sizes of the tables together: the sum or extreme behind the output, and what the output is of it."""

    cases: tuple[_Case, ...]
    whole: Curve
    outers: tuple[Image | Listed | None, ...]
    """The output as a function of the sum or extreme in each case; None where it is that itself."""
    seen: tuple[Seen, ...]
    """What was seen, in each case; nothing if there was no observation."""
    asked: tuple[Asked, ...]

    @classmethod
    def of(cls, cases: Sequence[_Case]) -> "_Problem":
        """Put cases together."""
        whole = mixed([case.core for case in cases], [case.probability for case in cases])
        images = Images(whole)
        outers = tuple(_outer(case, whole, images) for case in cases)
        seen = [seen_of(case.likelihood, case.core, whole, images) for case in cases if case.likelihood is not None]
        if any(isinstance(sight, Ranges) for sight in seen):  # a value with a probability of its own counts alone
            seen = [sight if isinstance(sight, Ranges) else Ranges(()) for sight in seen]
        return cls(tuple(cases), whole, outers, tuple(seen), _quantities(cases))

    @cached_property
    def kernels(self) -> list[list[Kernel]]:
        """How the number behind the secret, and that behind the query, determine the sum or extreme."""
        return [[case.core.kernel(one.slot, case.probability, case.noise) for case in self.cases] for one in self.asked]

    def output(self) -> Belief:
        """Return the belief about the output, given what was seen."""
        if len({id(outer) for outer in self.outers}) == 1 and len(set(self.seen)) <= 1:
            return _pushed(given(self.whole, self.seen[0] if self.seen else None), self.outers[0])
        curves = [curve_of_core(case.core) for case in self.cases]
        shares, parts = [], []
        for case, curve, outer, sight in zip(self.cases, curves, self.outers, self.seen or repeat(None), strict=False):
            share, known = weighed(curve, sight)
            if known is not None:
                shares.append(case.probability * share)
                parts.append(_pushed(known, outer))
        return blended(shares, parts)


def _outer(case: _Case, whole: Curve, images: Images) -> Image | Listed | None:
    same = case.output is case.core.node
    return None if same and whole.parts else images.of(case.output, case.core.node)


def _pushed(curve: Curve, outer: Image | Listed | None) -> Belief:
    return Belief.of_curve(curve) if outer is None else outer.pushed(curve)


def _quantities(cases: Sequence[_Case]) -> tuple[Asked, ...]:
    """Return what is asked for, which must be the same in all cases."""
    found: list[Asked] = []
    for position, (slot, weight, constant, argument, node) in enumerate(cases[0].quantities):
        for case in cases:
            other = case.quantities[position]
            same = other[:3] == (slot, weight, constant) and (other[3] is None) == (argument is None)
            if not same or (argument is not None and other[4] is not node and not _alike(other, node, argument)):
                raise NotAffine("the secret is another quantity for other sizes of the tables")
        image = None
        if argument is not None:
            image = Images(prior_of(slot).affine(weight, constant)).of(node, argument)
        found.append(Asked(slot, weight, constant, image))
    return tuple(found)


def _alike(other: tuple[Slot, float, float, Node | None, Node], node: Node, argument: Node) -> bool:
    key = signature(node, argument)
    return key is not None and other[3] is not None and signature(other[4], other[3]) == key


def _prepared(problem: _Problem) -> Prepared:
    problem.kernels  # noqa: B018  # what stands in the way shows here
    numbers = max(case.core.numbers for case in problem.cases)
    return Prepared(COST_OF_CASE * len(problem.cases), COST_OF_NORMAL * numbers, partial(_followed, _run, problem))


def _followed(step: Callable[[_Problem], Answer], problem: _Problem) -> Answer:
    """Do a step; what cannot be followed is a question for another engine."""
    try:
        return step(problem)
    except (Unfollowed, Unsummable, NotAffine, NoSuchMoment) as obstacle:
        raise UnsuitableEngine(f"engine='exact' cannot answer this: {obstacle}; engine='sample' can") from None


def _run(problem: _Problem) -> Run:
    started = time.perf_counter()
    beliefs: list[Belief] = []
    evidence, error = 1.0, 0.0
    for quantity, kernels in zip(problem.asked, problem.kernels, strict=True):
        known = prior_of(quantity.slot)
        if problem.seen:
            evidence, known = conditioned(known, kernels, problem.seen)
            error = known.error * evidence
        beliefs.append(quantity.belief(known))
    beliefs.insert(1, problem.output())
    count = len(problem.cases)
    estimate = _evidence(problem, evidence, error)
    diagnostics = Diagnostics(count, count, math.inf, estimate, 0, 0, time.perf_counter() - started)
    what = "extremes" if any(isinstance(case.core.form, Extreme) for case in problem.cases) else "sums"
    source = f"{what} of independent quantities" + (f", for {count} sizes of tables" if count > 1 else "")
    return Run((), None, diagnostics, exact=Exact(what, source, tuple(beliefs), partial(_followed, _joint, problem)))


def _evidence(problem: _Problem, evidence: float, error: float) -> Estimate:
    unit = "density" if any(isinstance(sight, Places) or sight.weights for sight in problem.seen) else ""
    if error <= NEGLIGIBLE * evidence:
        return Estimate.exactly(evidence, unit, "exact")
    low, high = max(0.0, evidence - error), evidence + error
    return Estimate(evidence, low, high, unit, f"exact to {error:.0e}", exact=True)


def _joint(problem: _Problem) -> Joint:
    cases, secret = problem.cases, problem.asked[0]
    if not all(case.core.has_density or isinstance(case.core.form, Extreme) for case in cases):
        raise UnsuitableEngine("engine='exact' knows this output only through noise; engine='sample' has the joint")
    kernels = [case.core.kernel(secret.slot, case.probability, 0.0) for case in cases]
    output = replace(problem, seen=()).output()
    return joint_of(prior_of(secret.slot), secret, Outward(kernels, problem.outers), output)
