"""Continuous outputs: the one after which a policy is broken most, with a certificate where there can be one."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from privug.attack import Attack, Result
from privug.errors import PrivugError
from privug.estimate import Estimate
from privug.model.node import Kind
from privug.observation.observations import Equals
from privug.policy.bounded import Bounded, Excess, bounded
from privug.policy.branch_and_bound import GAP, Supremum, lattice_supremum, mass_above, supremum
from privug.policy.findings import EVERY, Finding
from privug.policy.policies import Clause, Policy
from privug.policy.verdict import Evidence, Limit, Status, all_of
from privug.progress import ProgressMeter

SEARCHED = (1e-9, 1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.15, 0.3)
"""Tails of the output's distribution at which posteriors are computed where nothing is proven."""
REFINEMENTS = 8
NORMAL = "exact (gaussian)"

NO_CERTIFICATE = "nothing proves that no other output breaks it: only additive noise on discrete inputs can be bounded"


def over_continuous_outputs(question: Attack, clause: Clause, result: Result, allowed: float) -> Finding:
    """Return the finding of a clause over all values of a continuous output, whose density is known exactly.

    Outputs of the probability that is allowed may break it.
    """
    number = bounded(question, clause, result, Kind.CONTINUOUS)
    if number is None:
        return _searched(question, clause, result)
    proven = _proven(number, supremum)
    assert proven is not None
    status, worst = proven
    found = Finding(clause, status, EVERY, worst.level, (worst,), engine=result.engine, bounded=number)
    if not allowed or status is Status.HOLDS:
        return found
    excess = Excess.of(clause, {clause: [number]})
    assert excess is not None
    status, reason = but_for(excess, allowed)
    return replace(found, status=status, reason=reason, excepts=status is Status.HOLDS)


def over_endless_outputs(question: Attack, clause: Clause, result: Result, listed: Finding, allowed: float) -> Finding:
    """Return the finding of a clause where whole numbers without an end are added, however rare the outputs far out.

    `listed` is what is known of the outputs that are not that rare; it is returned if that is all there is.
    """
    number = bounded(question, clause, result, Kind.DISCRETE)
    if number is None or all(map(math.isfinite, number.mixture.noise.ends())):
        return listed
    found = replace(listed, bounded=number)
    proven = _proven(number, lattice_supremum) if listed.status is Status.UNDECIDED else None
    if proven is None or (allowed and proven[0] is not Status.HOLDS):
        return found
    status, worst = proven
    return replace(found, status=status, worst=worst.level, evidence=(worst,), reason="", needed=None)


class Whole(NamedTuple):
    """Whether a policy of several parts holds, a remark, and outputs that break all of it: evidence for some part."""

    status: Status
    reason: str = ""
    evidence: tuple[tuple[Clause, Evidence], ...] = ()


def over_all_outputs(policy: Policy, parts: Mapping[Clause, Sequence[Bounded | Status]], allowed: float) -> Whole:
    """Say whether a policy of several parts holds after outputs that cannot be listed, and how likely others are.

    What counts is the whole policy after one and the same output: of `a | b` both must be broken by it, and outputs
    that break several parts are left out once.
    """
    excess = Excess.of(policy, parts)
    if excess is None:
        return Whole(Status.UNDECIDED)
    whole_numbers = excess.mixture.noise.family.kind is Kind.DISCRETE
    found = (lattice_supremum if whole_numbers else supremum)(excess, partial(_is_settled, 0.0))
    if found is None:
        return Whole(Status.UNDECIDED)
    if found.ceiling <= 0:
        return Whole(Status.HOLDS)
    if allowed:
        return Whole(Status.UNDECIDED) if whole_numbers else Whole(*but_for(excess, allowed))
    if found.value <= 0:
        return Whole(Status.UNDECIDED)
    return Whole(Status.VIOLATED, evidence=_at_output(excess, found))


def _at_output(excess: Excess, found: Supremum) -> tuple[tuple[Clause, Evidence], ...]:
    """Return what each part that an output breaks says of it, the one that it breaks most first."""
    told = []
    method = f"branch and bound, {found.stretches:,} stretches of outputs"
    for several in excess.parts.values():
        for part in several:
            if isinstance(part, Bounded):
                value = float(part.at(np.array([found.output])).value[0])
                told.append((part.clause, Evidence(found.output, Estimate.exactly(value, method=method))))
    broken = [one for one in told if one[0].limit.judge(one[1].level) is Status.VIOLATED]
    return tuple(sorted(broken, key=lambda one: -one[0].limit.excess(one[1].level.value)))


def but_for(excess: Excess, allowed: float) -> tuple[Status, str]:
    """Say whether a policy holds but for outputs of the probability that is allowed, and how likely these are."""
    least, most = mass_above(excess, 0.0, allowed)
    reason = f"outputs of probability {least:.3g} to {most:.3g} break it"
    if most <= allowed:
        return Status.HOLDS, reason
    return (Status.VIOLATED if least > allowed else Status.UNDECIDED), reason


def _proven(number: Bounded, largest: Callable[..., Supremum | None]) -> tuple[Status, Evidence] | None:
    """Bound the number from both sides, for each end of its limit."""
    limit, found = number.clause.limit, []
    for sign, end in ((1, limit.at_most), (-1, limit.at_least)):
        if end is not None:
            highest = largest(number if sign > 0 else number.turned, partial(_is_decided, sign * end))
            if highest is None:
                return None
            found.append(_judged(sign, end, highest))
    status = all_of([one for one, _ in found])
    return status, max((one for other, one in found if other is status), key=lambda one: limit.excess(one.level.value))


def _is_settled(limit: float, value: float, ceiling: float) -> bool:
    """Say whether it is known on which side of its limit the largest number lies."""
    return value > limit or ceiling <= limit


def _is_decided(limit: float, value: float, ceiling: float) -> bool:
    """Say whether it is known on which side of its limit the largest number lies, and what it is to some digits."""
    return _is_settled(limit, value, ceiling) and ceiling - value <= 1e-6 * max(1.0, abs(value))


def _judged(sign: int, limit: float, found: Supremum) -> tuple[Status, Evidence]:
    low, high = sorted((sign * found.value, sign * max(found.value, found.ceiling)))
    method = f"branch and bound, {found.stretches:,} stretches of outputs"
    level = Estimate(sign * found.value, low, high, method=method, exact=high - low <= 10 * GAP or high == low)
    one_sided = Limit(at_most=limit) if sign > 0 else Limit(at_least=limit)
    return one_sided.judge(level), Evidence(found.output, level)


def _searched(question: Attack, clause: Clause, result: Result) -> Finding:
    """Look for an output that breaks the limit, without a proof that there is none."""
    output = result.prediction
    if output.batch.numbers() is None:
        reason = "the output is made of several continuous numbers: look at one observation, or publish them rounded"
        return Finding(clause, Status.UNDECIDED, EVERY, reason=reason, engine=result.engine)
    levels = [*SEARCHED, 0.5, *(1 - tail for tail in reversed(SEARCHED))]
    places = sorted({output.quantile(level).value for level in levels})
    tried: dict[float, Evidence] = {}
    with ProgressMeter("searching outputs", len(places) + REFINEMENTS) as meter:
        for place in places:
            _try(question, clause, result, place, tried)
            meter.update(len(tried), "")
        for _ in range(REFINEMENTS if tried else 0):
            if clause.limit.excess(_worst(clause, tried).level.value) > 0:
                break
            found = [_try(question, clause, result, place, tried) for place in _beside(clause, tried)]
            if not any(found):
                break
            meter.update(len(tried), "")
    if not tried:
        return Finding(clause, Status.UNDECIDED, EVERY, reason="no posterior can be computed", engine=result.engine)
    worst = _worst(clause, tried)
    status, reason = clause.limit.judge(worst.level), ""
    if status is not Status.VIOLATED and not _is_the_same_for_all(clause, result, tried):
        status, reason = (
            Status.UNDECIDED,
            f"none of {len(tried)} outputs that were tried breaks it, but {NO_CERTIFICATE}",
        )
    same = status is Status.HOLDS
    return Finding(
        clause, status, EVERY, worst.level, (worst,), reason=reason, engine=result.engine, somewhere=not same
    )


def _try(question: Attack, clause: Clause, result: Result, place: float, tried: dict[float, Evidence]) -> bool:
    if place in tried or not math.isfinite(place):
        return False
    try:
        given = question.run(Equals(place), engine="exact")
        level = clause.after(result.prior, given.posterior)
    except PrivugError:  # of an output that cannot be, or that cannot be computed so far out
        return False
    if not math.isnan(level.value):
        tried[place] = Evidence(place, level, None, given.posterior)
    return True


def _is_the_same_for_all(clause: Clause, result: Result, tried: dict[float, Evidence]) -> bool:
    """Say whether the number cannot depend on the output: the spread of a normal posterior does not."""
    if not clause.is_spread or result.engine != NORMAL:
        return False
    found = [one.level.value for one in tried.values()]
    return max(found) - min(found) <= 1e-9 * max(found)


def _worst(clause: Clause, tried: dict[float, Evidence]) -> Evidence:
    return max(tried.values(), key=lambda one: clause.limit.excess(one.level.value))


def _beside(clause: Clause, tried: dict[float, Evidence]) -> list[float]:
    """Return the outputs half-way from the worst one found to its neighbours."""
    places = sorted(tried)
    at = places.index(_worst(clause, tried).output)
    neighbours = places[max(at - 1, 0) : at] + places[at + 1 : at + 2]
    return [(places[at] + other) / 2 for other in neighbours if abs(places[at] - other) > GAP * max(1.0, abs(other))]
