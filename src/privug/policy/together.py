"""The parts of a policy together: whether all of it holds, after each output by itself."""

from collections.abc import Callable, Hashable, Mapping, Sequence

from privug.policy.bounded import Bounded
from privug.policy.findings import SHOWN, Finding
from privug.policy.policies import Both, Clause, Either, Policy
from privug.policy.suprema import Whole, over_all_outputs
from privug.policy.verdict import Evidence, Status, all_of

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
