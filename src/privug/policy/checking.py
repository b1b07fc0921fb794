"""Checking a policy: against one observation, or against every output that the program can give."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from privug.arguments import check_kind, kinds_checked
from privug.attack import Attack
from privug.errors import InferenceError
from privug.estimate import Estimate
from privug.model.node import Kind
from privug.observation.observations import Observation, as_observation
from privug.policy.clause_questions import SAMPLES, ExceptProbability, RunOptions, asked
from privug.policy.noisy_outputs import Bounded, Excess, Supremum, is_settled, lattice_supremum, supremum
from privug.policy.output_levels import (
    EVERY,
    ONE,
    SHOWN,
    ConstantLevel,
    OutputLevels,
    except_for,
    no_answer,
    output_levels,
)
from privug.policy.people import people_apart
from privug.policy.policies import Both, Clause, Either, Policy, allowing, error_allowed
from privug.policy.verdict import Evidence, Status, Verdict, all_of
from privug.progress import ProgressMeter

Found = Mapping[Clause, Sequence[OutputLevels]]
"""What was found of each clause, for each kind of people."""


class Overall(NamedTuple):
    """Whether a policy of several parts holds, a remark, and outputs that break all of it: evidence for some part."""

    status: Status
    reason: str = ""
    evidence: tuple[tuple[Clause, Evidence], ...] = ()


def overall(policy: Policy, found: Found, allowed: float) -> Overall:
    """Return whether a policy holds after every output, except for some of the probability that is allowed.

    Outputs that break it are those after which all of `a | b` or one of `a & b` is broken, for one person or the other.
    """
    everything = [one for several in found.values() for one in several]
    whole = Overall(Status.UNDECIDED)
    if all(one.is_listed for one in everything):
        whole = _listed(policy, found, allowed)
    if whole.status is not Status.UNDECIDED or all(one.is_listed and not _has_bounds(one) for one in everything):
        return whole
    if len(everything) == 1:
        return Overall(everything[0].status)
    parts = {clause: [one.everywhere for one in several] for clause, several in found.items()}
    proven = _over_all_outputs(policy, parts, allowed)
    if proven.status is not Status.UNDECIDED:
        return proven
    return Overall(_by_parts(policy, found), whole.reason or proven.reason)


def _has_bounds(one: OutputLevels) -> bool:
    return isinstance(one.everywhere, Bounded)


def _listed(policy: Policy, found: Found, allowed: float) -> Overall:
    """Judge outputs that are listed, one by one."""
    probabilities: dict[Hashable, float] = {}
    for several in found.values():
        for one in several:
            probabilities.update(one.probabilities)

    def at(output: Hashable) -> Callable[[Clause], Status]:
        return lambda clause: all_of([one.status_at(output) for one in found[clause]])

    if not probabilities:
        return Overall(policy.judge(lambda clause: all_of([one.status for one in found[clause]])))
    judged = {output: policy.judge(at(output)) for output in probabilities}
    status = all_of(list(judged.values()))
    if status is Status.HOLDS:
        return Overall(status)
    broken = [output for output, one in judged.items() if one is Status.VIOLATED]
    broken.sort(key=lambda output: -probabilities[output])
    evidence = tuple(one for output in broken[:SHOWN] for one in _at_output(found, output)[:1])
    if not allowed:
        return Overall(status, evidence=evidence)
    sure = sum(probabilities[output] for output in broken)
    doubtful = sum(probabilities[output] for output, one in judged.items() if one is Status.UNDECIDED)
    if sure > allowed:
        return Overall(Status.VIOLATED, f"outputs of probability {sure:.3g} break it", evidence)
    if sure + doubtful > allowed:
        return Overall(Status.UNDECIDED)
    return Overall(Status.HOLDS, f"except for outputs of probability {sure + doubtful:.3g}")


def _at_output(found: Found, output: Hashable) -> list[tuple[Clause, Evidence]]:
    """Return the evidence of each part that an output breaks, the one that it breaks most first."""
    everything = [one for several in found.values() for one in several]
    told = [(one.clause, one.at(output)) for one in everything if one.status_at(output) is Status.VIOLATED]
    return _most_broken_first([(clause, evidence) for clause, evidence in told if evidence is not None])


def _most_broken_first(told: list[tuple[Clause, Evidence]]) -> list[tuple[Clause, Evidence]]:
    return sorted(told, key=lambda one: -one[0].limit.excess(one[1].level.value))


def _over_all_outputs(policy: Policy, parts: Mapping[Clause, Sequence[Bounded | Status]], allowed: float) -> Overall:
    """Return whether a policy of several parts holds after outputs that cannot be listed, and how likely others are.

    What counts is the whole policy after one and the same output: of `a | b` both must be broken by it, and outputs
    that break several parts count once.
    """
    excess = Excess.of(policy, parts)
    if excess is None:
        return Overall(Status.UNDECIDED)
    is_discrete = excess.mixture.noise.family.kind is Kind.DISCRETE
    found = (lattice_supremum if is_discrete else supremum)(excess, partial(is_settled, 0.0))
    if found is None:
        return Overall(Status.UNDECIDED)
    if found.ceiling <= 0:
        return Overall(Status.HOLDS)
    if allowed:
        return Overall(Status.UNDECIDED) if is_discrete else Overall(*except_for(excess, allowed))
    if found.value <= 0:
        return Overall(Status.UNDECIDED)
    return Overall(Status.VIOLATED, evidence=_at_supremum(excess, found))


def _at_supremum(excess: Excess, found: Supremum) -> tuple[tuple[Clause, Evidence], ...]:
    """Return the evidence of each part that the worst output breaks, the one that it breaks most first."""
    told = []
    for several in excess.parts.values():
        for part in several:
            if isinstance(part, Bounded):
                value = float(part.at(np.array([found.output])).value[0])
                told.append((part.clause, Evidence(found.output, Estimate.exactly(value, method=found.method))))
    return tuple(_most_broken_first([one for one in told if one[0].limit.judge(one[1].level) is Status.VIOLATED]))


def _by_parts(policy: Policy, found: Found) -> Status:
    """Judge a policy by its parts, each over all outputs: those that break them need not be the same."""
    match policy:
        case Both(left, right):
            return all_of([_by_parts(left, found), _by_parts(right, found)])
        case Either(left, right):
            holds = Status.HOLDS in (_by_parts(left, found), _by_parts(right, found))
            return Status.HOLDS if holds else Status.UNDECIDED
    assert isinstance(policy, Clause)
    status = all_of([one.status for one in found[policy]])
    strict = all(one.holds_strictly for one in found[policy])
    return status if status is not Status.HOLDS or strict else Status.UNDECIDED


@kinds_checked
def check(
    attack: Attack,
    policy: Policy,
    *,
    observe: Any = None,
    engine: str = "auto",
    samples: int = SAMPLES,
    seed: int = 0,
    seconds: float | None = None,
    except_probability: ExceptProbability = 0.0,
) -> Verdict:
    """Decide whether a policy holds: after one observation, or after every output that the program can give.

    Without `observe` the worst output decides, so that the verdict does not depend on any true secret. Answers are
    exact wherever that is possible; otherwise `samples` are drawn, and the verdict is about the outputs seen. It is
    wrong in at most 5 % of cases, and 'undecided' if an interval contains a limit.

    Args:
        attack: The program, the attacker's prior and the secret.
        policy: The limits, such as `pv.policy.max_belief(at_most=0.5)`.
        observe: One observation; None checks every output.
        engine: The inference engine; "auto" prefers the exact one.
        samples: How many samples are drawn where no exact answer is possible.
        seed: Seeds the samples.
        seconds: Limits the time of each run.
        except_probability: The total probability of outputs that may break the policy.

    Returns:
        The verdict, with the worst outputs as evidence.

    Raises:
        ArgumentError: An argument is not of its kind or out of its range.
        UnsuitableEngine: `engine="exact"` was asked for, and no exact answer is possible.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda x, y: x + y, secret="x",
    ...                    prior={"x": pv.DiscreteUniform(0, 2), "y": pv.DiscreteUniform(0, 2)})
    >>> print(check(attack, pv.policy.max_belief(at_most=0.6)).status)
    violated
    """
    check_kind("check", "attack", attack, (Attack,))
    check_kind("check", "policy", policy, (Policy,))
    observation = None if observe is None else as_observation(observe)
    clauses = list(dict.fromkeys(policy.clauses()))
    people = {clause: people_apart(attack, clause) for clause in clauses}
    found: dict[Clause, list[OutputLevels]] = {clause: [] for clause in clauses}
    total = sum(map(len, people.values()))
    options = RunOptions(engine, samples, seed, seconds)
    with ProgressMeter("checking", total) as meter, allowing(error_allowed() / total):
        for clause in clauses:
            for person in people[clause]:
                found[clause].append(_found(attack, clause, person, observation, options, except_probability))
                meter.update(sum(map(len, found.values())), f"{clause}")
    return verdict_of(policy, found, except_probability)


def _found(
    attack: Attack,
    clause: Clause,
    person: int | None,
    observation: Observation | None,
    options: RunOptions,
    allowed: float,
) -> OutputLevels:
    """Find the number of one clause, for one person."""
    question = asked(attack, clause, person)
    try:
        result = options.run(question, observation if not clause.on_average else None)
        return output_levels(question, clause, result, options, allowed)
    except InferenceError as error:
        if options.engine == "exact":
            raise
        reason, details = no_answer(error)
        scope = EVERY if observation is None else ONE
        return ConstantLevel(clause, Status.UNDECIDED, scope, reason=reason, details=details)


def verdict_of(policy: Policy, found: Found, except_probability: float) -> Verdict:
    """Join what was found of the clauses into a verdict about the policy."""
    everything = [one for several in found.values() for one in several]
    whole = overall(policy, found, except_probability)
    status, reason = whole.status, whole.reason
    decisive = [one for one in everything if one.status is status] or everything
    worst = max(decisive, key=_badness)
    if status is not worst.status and not reason:
        reason = "after each output one of the limits is satisfied"
    number, decided_by, evidence = worst.worst, worst.clause, worst.evidence
    if whole.evidence and any(isinstance(part, Either) for part in policy.parts()):
        # The worst output of one part may satisfy another: what counts are outputs that break the whole.
        decided_by, first = whole.evidence[0]
        number = first.level
        evidence = tuple(one for own, one in whole.evidence if own is decided_by)
    parts = tuple(_part(one) for one in everything) if len(everything) > 1 else ()
    return Verdict(
        status, str(policy), worst.scope, number, decided_by.about, evidence, reason or worst.reason, worst.engine,
        worst.needed if status is Status.UNDECIDED else None, parts, worst.details, decided_by.limit,
    )  # fmt: skip


def _badness(one: OutputLevels) -> tuple[int, float]:
    rank = (Status.HOLDS, Status.UNDECIDED, Status.VIOLATED).index(one.status)
    return rank, -1e300 if one.worst is None else one.clause.limit.excess(one.worst.value)


def _part(one: OutputLevels) -> Verdict:
    return Verdict(
        one.status, str(one.clause), one.scope, one.worst, one.clause.about, one.evidence, one.reason, one.engine,
        one.needed, details=one.details, limit=one.clause.limit,
    )  # fmt: skip
