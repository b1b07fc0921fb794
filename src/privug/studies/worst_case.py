"""The worst case: the largest belief that any output leads to, found, proven, or promised by the mechanism."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from privug.attack import Attack, Result
from privug.estimate import Estimate
from privug.leakage.finite import alike_pairs, pairs_of
from privug.leakage.pointwise import RARE, max_posterior_belief
from privug.leakage.vulnerability import bayes_vulnerability
from privug.model.node import Kind
from privug.policy import clauses
from privug.policy.asking import asked
from privug.policy.checking import Effort
from privug.policy.findings import EVERY, Finding
from privug.policy.policies import Clause
from privug.policy.suprema import over_continuous_outputs, over_endless_outputs
from privug.policy.verdict import Status
from privug.studies.promises import promised_belief


def worst_belief(attack: Attack, predicate: Callable[[Any], Any], options: Mapping[str, Any]) -> Estimate:
    """Return the largest probability that an attacker can come to give to a statement about the secret.

    That is the maximum over all outputs of P(statement | output). It is exact, or proven to some digits, where the
    posteriors of all outputs are known. Elsewhere what was found is a lower bound, and what the mechanism promises an
    upper one: then the interval reaches from the one to the other, and the value is its upper end.
    """
    clause = clauses.belief(predicate, at_most=1.0)
    question = asked(attack, clause)
    result = Effort(**options).run(question, None)
    before = result.prior.probability(bool)
    return _with_promise(question, _found(question, clause, result), before)


def worst_guess(attack: Attack, options: Mapping[str, Any]) -> Estimate:
    """Return the largest probability that an attacker can come to give to any single value of the secret."""
    result = Effort(**options).run(attack, None)
    if result.joint.secret.kind is Kind.CONTINUOUS:
        return max_posterior_belief(result.joint)
    before = bayes_vulnerability(result.prior)
    return _with_promise(attack, _found(attack, clauses.max_belief(at_most=1.0), result), before)


def _found(question: Attack, clause: Clause, result: Result) -> Estimate:
    """Return the largest number that was found, up to what it may be at most."""
    joint = result.joint
    if joint.output.kind is not Kind.DISCRETE:
        if not joint.exact:
            return Estimate(0.0, 0.0, 1.0, method="not known: the output is continuous, and its density is not known")
        finding = over_continuous_outputs(question, clause, result, 0.0)
        if finding.worst is None:
            return Estimate(0.0, 0.0, 1.0, method=f"not known: {finding.reason}")
        if finding.status is Status.HOLDS:
            return finding.worst
        return _lower_bound(finding.worst, "other outputs may tell more")
    error = max(joint.secret.error, joint.output.error)
    if error:
        proven = over_endless_outputs(question, clause, result, Finding(clause, Status.UNDECIDED, EVERY), 0.0)
        if proven.worst is not None:
            return proven.worst
    pairs = (alike_pairs if clause.counts_secrets_alike else pairs_of)(joint)
    levels = clause.levels(pairs, result.prior, error)
    assert levels is not None
    if not pairs.exact:
        return _lower_bound(levels.at(int(levels.low.argmax()), pairs), "outputs seldom seen may tell more")
    seen = pairs.marginal > RARE * error
    place = int(np.where(seen, levels.value, -1.0).argmax())
    found = levels.at(place, pairs)
    if not error:
        return found
    return _lower_bound(found, f"outputs of probability below {RARE * error:.0e} may tell more")


def _lower_bound(found: Estimate, why: str) -> Estimate:
    return Estimate(found.value, found.low, 1.0, method=f"lower bound: {why}")


def _with_promise(question: Attack, found: Estimate, before: Estimate) -> Estimate:
    """Return the estimate with the upper end that the mechanism promises, unless that is known to be false."""
    if found.high < 1.0 or found.exact:
        return found
    # On average over outputs the belief stays what it was, so that some output leaves it at least as large.
    found = replace(found, value=max(found.value, before.value), low=max(found.low, before.low))
    bound = promised_belief(question, before.high)
    if bound >= 1.0:
        return found
    if found.low > bound:
        told = f"{found.method}, and more than the mechanism promises ({bound:.4g}): check its sensitivity"
        return replace(found, method=told)
    return Estimate(bound, found.low, bound, method="upper bound: what the mechanism promises")
