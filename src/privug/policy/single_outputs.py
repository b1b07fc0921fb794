"""Outputs one by one: a run for each, where the secret is continuous or a number needs a whole posterior."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from privug.attack import Attack, Result
from privug.errors import InferenceError
from privug.estimate import Estimate
from privug.leakage.finite import shares_of
from privug.model.keys import key_of
from privug.observation.observations import Equals, Observation
from privug.policy.findings import EVERY, SEEN, SHOWN, Finding, no_answer, samples_needed
from privug.policy.policies import Clause
from privug.policy.verdict import Evidence, Status, all_of
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
