"""Checking a policy: against one observation, or against every output that the program can give."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privug.arguments import check_kind, is_number, kinds_checked, shown
from privug.attack import Attack, Result
from privug.errors import ArgumentError, InferenceError, UnsuitableEngine
from privug.inference.workload import TooMuchWork
from privug.leakage.finite import alike_pairs, pairs_of
from privug.model.node import Kind
from privug.observation.observations import Observation
from privug.observation.structured import as_observation
from privug.policy.asking import asked
from privug.policy.confidence import allowing, error_allowed
from privug.policy.findings import AVERAGE, EVERY, ONE, SEEN, Finding, no_answer, of_levels, of_number
from privug.policy.people import people_apart
from privug.policy.policies import Clause, Either, Policy
from privug.policy.single_outputs import one_by_one
from privug.policy.suprema import over_continuous_outputs, over_endless_outputs
from privug.policy.together import overall
from privug.policy.verdict import Status, Verdict
from privug.progress import ProgressMeter

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
