"""The parts of a policy together: whether all of it holds, after each output by itself."""

from collections.abc import Callable, Hashable, Mapping, Sequence

from privug.policy.bounded import Bounded
from privug.policy.findings import Finding
from privug.policy.policies import Both, Clause, Either, Policy
from privug.policy.suprema import over_all_outputs
from privug.policy.verdict import Status, all_of

Findings = Mapping[Clause, Sequence[Finding]]


def overall(policy: Policy, findings: Findings, allowed: float) -> tuple[Status, str]:
    """Return whether a policy holds after every output, but for some of the probability that is allowed, and a remark.

    Outputs that break it are those after which all of `a | b` or one of `a & b` is broken, for one person or the other.
    """
    everything = [finding for several in findings.values() for finding in several]
    status, reason = Status.UNDECIDED, ""
    if all(finding.lists_outputs for finding in everything):
        status, reason = _listed(policy, findings, allowed)
    if status is not Status.UNDECIDED or all(
        finding.bounded is None and not finding.somewhere for finding in everything
    ):
        return status, reason
    if len(everything) == 1:
        return everything[0].status, ""
    proven, remark = over_all_outputs(policy, _parts(findings), allowed)
    if proven is not Status.UNDECIDED:
        return proven, remark
    return _by_parts(policy, findings), reason or remark


def _listed(policy: Policy, findings: Findings, allowed: float) -> tuple[Status, str]:
    """Judge outputs that are listed, one by one."""
    probabilities: dict[Hashable, float] = {}
    for several in findings.values():
        for finding in several:
            probabilities.update(finding.probabilities)

    def at(output: Hashable) -> Callable[[Clause], Status]:
        return lambda clause: all_of([finding.status_at(output) for finding in findings[clause]])

    if not probabilities:
        return policy.judge(lambda clause: all_of([finding.status for finding in findings[clause]])), ""
    judged = {output: policy.judge(at(output)) for output in probabilities}
    status = all_of(list(judged.values()))
    if status is Status.HOLDS or not allowed:
        return status, ""
    broken = sum(probabilities[output] for output, one in judged.items() if one is Status.VIOLATED)
    doubtful = sum(probabilities[output] for output, one in judged.items() if one is Status.UNDECIDED)
    if broken > allowed:
        return Status.VIOLATED, f"outputs of probability {broken:.3g} break it"
    if broken + doubtful > allowed:
        return Status.UNDECIDED, ""
    return Status.HOLDS, f"but for outputs of probability {broken + doubtful:.3g}"


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
