"""Checking a policy: against one observation, or against every output that the program can give."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from privug.arguments import check_kind, is_number, kinds_checked, shown
from privug.attack import Attack, Result
from privug.errors import ArgumentError, InferenceError, UnsuitableEngine
from privug.estimate import Estimate
from privug.inference.workload import TooMuchWork
from privug.leakage.finite import alike_pairs, pairs_of, shares_of
from privug.model.node import Kind
from privug.model.values import key_of
from privug.observation.observations import Equals, Observation, as_observation
from privug.policy.asking import asked
from privug.policy.people import people_apart
from privug.policy.policies import Both, Clause, Either, Policy, allowing, error_allowed
from privug.policy.suprema import (
    AVERAGE,
    EVERY,
    ONE,
    SEEN,
    SHOWN,
    Bounded,
    Finding,
    Whole,
    no_answer,
    of_levels,
    of_number,
    over_all_outputs,
    over_continuous_outputs,
    over_endless_outputs,
    samples_needed,
)
from privug.policy.verdict import Evidence, Status, Verdict, all_of
from privug.progress import ProgressMeter

MOST_OUTPUTS = 500

Runner = Callable[[Attack, Observation | None], Result]


def one_by_one(question: Attack, clause: Clause, result: Result, run: Runner) -> Finding:
    """Return the finding of a clause by conditioning on each output that the program can give."""
    known = shares_of(result.prediction)
    if len(known) > MOST_OUTPUTS:
        reason = f"there are {len(known):,} outputs, each of which would need a run of its own; round the output"
        return Finding(clause, Status.UNDECIDED, EVERY, reason=reason, engine=result.engine)
    evidence: list[Evidence] = []
    shares = dict(zip(map(key_of, known.values), map(float, known.probability), strict=True))
    reason, details = "", ""
    with ProgressMeter("outputs", len(known)) as meter:
        for done, (output, probability) in enumerate(zip(known.values, map(float, known.probability), strict=True)):
            share = Estimate.exactly(probability) if known.exact else None
            try:
                given = run(question, Equals(output))
                evidence.append(Evidence(output, clause.after(given.prior, given.posterior), share, given.posterior))
            except InferenceError as error:
                reason, details = no_answer(error)
                evidence.append(Evidence(output, Estimate.undefined(reason), share))
            meter.update(done + 1, "")
    return replace(_joined(clause, evidence, shares, result), reason=reason, details=details)


def _joined(clause: Clause, evidence: list[Evidence], shares: Mapping[Any, float], result: Result) -> Finding:
    judged = {key_of(one.output): clause.limit.judge(one.level) for one in evidence}
    rank = [Status.VIOLATED, Status.UNDECIDED, Status.HOLDS]
    worst = sorted(evidence, key=lambda one: (rank.index(judged[key_of(one.output)]), -_excess(clause, one)))[:SHOWN]
    status, number = all_of(list(judged.values())), worst[0].level
    needed = samples_needed(clause, number, result.posterior.effective_samples) if status is Status.UNDECIDED else None
    scope = EVERY if result.prediction.exact else SEEN
    by_key = {key_of(one.output): one for one in evidence}
    return Finding(clause, status, scope, number, tuple(worst), judged, shares, "", result.engine, needed,
                   evidence_at=by_key.__getitem__)  # fmt: skip


def _excess(clause: Clause, one: Evidence) -> float:
    value = clause.limit.excess(one.level.value)
    return value if value == value else 0.0


Findings = Mapping[Clause, Sequence[Finding]]


def overall(policy: Policy, findings: Findings, allowed: float) -> Whole:
    """Return whether a policy holds after every output, but for some of the probability that is allowed.

    Outputs that break it are those after which all of `a | b` or one of `a & b` is broken, for one person or the other.
    """
    everything = [finding for several in findings.values() for finding in several]
    whole = Whole(Status.UNDECIDED)
    if all(finding.lists_outputs for finding in everything):
        whole = _listed(policy, findings, allowed)
    unlisted = any(finding.bounded is not None or finding.somewhere for finding in everything)
    if whole.status is not Status.UNDECIDED or not unlisted:
        return whole
    if len(everything) == 1:
        return Whole(everything[0].status)
    proven = over_all_outputs(policy, _parts(findings), allowed)
    if proven.status is not Status.UNDECIDED:
        return proven
    return Whole(_by_parts(policy, findings), whole.reason or proven.reason)


def _listed(policy: Policy, findings: Findings, allowed: float) -> Whole:
    """Judge outputs that are listed, one by one."""
    probabilities: dict[Hashable, float] = {}
    for several in findings.values():
        for finding in several:
            probabilities.update(finding.probabilities)

    def at(output: Hashable) -> Callable[[Clause], Status]:
        return lambda clause: all_of([finding.status_at(output) for finding in findings[clause]])

    if not probabilities:
        return Whole(policy.judge(lambda clause: all_of([finding.status for finding in findings[clause]])))
    judged = {output: policy.judge(at(output)) for output in probabilities}
    status = all_of(list(judged.values()))
    if status is Status.HOLDS:
        return Whole(status)
    broken = [output for output, one in judged.items() if one is Status.VIOLATED]
    broken.sort(key=lambda output: -probabilities[output])
    evidence = tuple(one for output in broken[:SHOWN] for one in _at_output(findings, output)[:1])
    if not allowed:
        return Whole(status, evidence=evidence)
    sure = sum(probabilities[output] for output in broken)
    doubtful = sum(probabilities[output] for output, one in judged.items() if one is Status.UNDECIDED)
    if sure > allowed:
        return Whole(Status.VIOLATED, f"outputs of probability {sure:.3g} break it", evidence)
    if sure + doubtful > allowed:
        return Whole(Status.UNDECIDED)
    return Whole(Status.HOLDS, f"but for outputs of probability {sure + doubtful:.3g}")


def _at_output(findings: Findings, output: Hashable) -> list[tuple[Clause, Evidence]]:
    """Return what each part that an output breaks says of it, the one that it breaks most first."""
    everything = [finding for several in findings.values() for finding in several]
    broken = [
        (finding.clause, finding.evidence_at(output))
        for finding in everything
        if finding.evidence_at is not None and finding.status_at(output) is Status.VIOLATED
    ]
    return sorted(broken, key=lambda one: -one[0].limit.excess(one[1].level.value))


def _parts(findings: Findings) -> dict[Clause, list[Bounded | Status]]:
    """Return of each part what is known of it after each output: bounds of its number, or its status."""
    return {
        clause: [finding.bounded or _everywhere(finding) for finding in several] for clause, several in findings.items()
    }


def _everywhere(finding: Finding) -> Status:
    """Return whether a clause holds after whichever output: it does not need to be broken by all if it is by one."""
    differs = finding.statuses is not None or finding.somewhere or finding.excepts
    return finding.status if not differs or _holds_strictly(finding) else Status.UNDECIDED


def _holds_strictly(finding: Finding) -> bool:
    return finding.status is Status.HOLDS and not finding.excepts


def _by_parts(policy: Policy, findings: Findings) -> Status:
    """Judge a policy by its parts, each over all outputs: those that break them need not be the same."""
    match policy:
        case Both(left, right):
            return all_of([_by_parts(left, findings), _by_parts(right, findings)])
        case Either(left, right):
            holds = Status.HOLDS in (_by_parts(left, findings), _by_parts(right, findings))
            return Status.HOLDS if holds else Status.UNDECIDED
    assert isinstance(policy, Clause)
    found = all_of([finding.status for finding in findings[policy]])
    strict = all(map(_holds_strictly, findings[policy]))
    return found if found is not Status.HOLDS or strict else Status.UNDECIDED


SAMPLES = 100_000


@dataclass(frozen=True)
class Effort:
    """How a check goes about it: the engine and its options."""

    engine: str = "auto"
    samples: int = SAMPLES
    seed: int = 0
    seconds: float | None = None
    allowed: float = 0.0
    """Of what probability outputs may break the policy."""

    def run(self, attack: Attack, observation: Observation | None) -> Result:
        """Run an attack: exactly if that can be done at all, because a worst case over samples is worth little."""
        options: Any = {"samples": self.samples, "seed": self.seed, "seconds": self.seconds}
        if self.engine != "auto":
            return attack.run(observation, engine=self.engine, **options)
        try:
            result = attack.run(observation, engine="exact", **options)
            if observation is None:
                _ = result.joint
            return result
        except (UnsuitableEngine, TooMuchWork):
            return attack.run(observation, engine="sample" if observation is None else "auto", **options)


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
    except_probability: float = 0.0,
) -> Verdict:
    """Say whether a policy holds: after one observation, or after every output that the program can give.

    Without `observe`, what decides is the worst output, so that the verdict does not depend on any true secret; outputs
    of a total probability of at most `except_probability` may break the policy all the same. Answers are exact wherever
    that is possible; else `samples` are drawn, and the verdict is about the outputs seen. It is wrong in at most 5 % of
    cases, and 'undecided' where an interval lies on both sides of a limit.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda x, y: x + y, secret="x",
    ...                    prior={"x": pv.DiscreteUniform(0, 2), "y": pv.DiscreteUniform(0, 2)})
    >>> print(check(attack, pv.policy.max_belief(at_most=0.6)).status)
    violated
    """
    check_kind("check", "attack", attack, (Attack,))
    check_kind("check", "policy", policy, (Policy,))
    if not is_number(except_probability) or not 0 <= except_probability < 1:
        raise ArgumentError(f"check: except_probability must lie between 0 and 1, not {shown(except_probability)}")
    observation = None if observe is None else as_observation(observe)
    clauses = list(dict.fromkeys(policy.clauses()))
    people = {clause: people_apart(attack, clause) for clause in clauses}
    findings: dict[Clause, list[Finding]] = {clause: [] for clause in clauses}
    total = sum(map(len, people.values()))
    effort = Effort(engine, samples, seed, seconds, except_probability)
    with ProgressMeter("checking", total) as meter, allowing(error_allowed() / total):
        for clause in clauses:
            for person in people[clause]:
                findings[clause].append(_found(attack, clause, person, observation, effort))
                meter.update(sum(map(len, findings.values())), f"{clause}")
    return verdict_of(policy, findings, except_probability)


def _found(
    attack: Attack, clause: Clause, person: int | None, observation: Observation | None, effort: Effort
) -> Finding:
    """Find out about one clause, for one person."""
    question = asked(attack, clause, person)
    try:
        result = effort.run(question, observation if not clause.on_average else None)
        return judged(question, clause, result, effort)
    except InferenceError as error:
        if effort.engine == "exact":
            raise
        reason, details = no_answer(error)
        scope = EVERY if observation is None else ONE
        return Finding(clause, Status.UNDECIDED, scope, reason=reason, details=details)


def judged(question: Attack, clause: Clause, result: Result, effort: Effort) -> Finding:
    """Find out about one clause from a result for the question it asks."""
    if clause.on_average:
        joint = result.joint
        return of_number(clause, clause.average(joint), AVERAGE, result.engine, joint.effective_samples)
    if result.observation is not None:
        number = clause.after(result.prior, result.posterior)
        return of_number(clause, number, ONE, result.engine, result.posterior.effective_samples)
    joint = result.joint
    if joint.output.kind is not Kind.DISCRETE:
        if joint.exact:
            return over_continuous_outputs(question, clause, result, effort.allowed)
        reason = "the output is continuous, and its density is not known exactly: round it, or look at one observation"
        return Finding(clause, Status.UNDECIDED, SEEN, reason=reason, engine=result.engine)
    collected = alike_pairs if clause.counts_secrets_alike else pairs_of
    pairs = collected(joint) if joint.secret.kind is Kind.DISCRETE else None
    error = max(joint.secret.error, joint.output.error)
    found = None if pairs is None else clause.levels(pairs, result.prior, error)
    if pairs is None or found is None:
        return one_by_one(question, clause, result, effort.run)
    finding = of_levels(clause, found, pairs, result.engine, error)
    return over_endless_outputs(question, clause, result, finding, effort.allowed) if error else finding


def verdict_of(policy: Policy, findings: Mapping[Clause, list[Finding]], except_probability: float) -> Verdict:
    """Join what was found of the clauses into a verdict about the policy."""
    everything = [finding for several in findings.values() for finding in several]
    whole = overall(policy, findings, except_probability)
    status, reason = whole.status, whole.reason
    decisive = [finding for finding in everything if finding.status is status] or everything
    worst = max(decisive, key=_badness)
    if status is not worst.status and not reason:
        reason = "after each output one of the limits is kept"
    number, decided_by, evidence = worst.worst, worst.clause, worst.evidence
    if whole.evidence and any(isinstance(part, Either) for part in policy.parts()):
        # The worst output of one part may keep another: what counts are outputs that break the whole.
        decided_by, first = whole.evidence[0]
        number = first.level
        evidence = tuple(one for own, one in whole.evidence if own is decided_by)
    parts = tuple(_part(finding) for finding in everything) if len(everything) > 1 else ()
    return Verdict(
        status, str(policy), worst.scope, number, decided_by.about, evidence, reason or worst.reason, worst.engine,
        worst.needed if status is Status.UNDECIDED else None, parts, worst.details, decided_by.limit,
    )  # fmt: skip


def _badness(finding: Finding) -> tuple[int, float]:
    rank = (Status.HOLDS, Status.UNDECIDED, Status.VIOLATED).index(finding.status)
    return rank, -1e300 if finding.worst is None else finding.clause.limit.excess(finding.worst.value)


def _part(finding: Finding) -> Verdict:
    return Verdict(
        finding.status, str(finding.clause), finding.scope, finding.worst, finding.clause.about, finding.evidence,
        finding.reason, finding.engine, finding.needed, details=finding.details,
        limit=finding.clause.limit,
    )  # fmt: skip
