"""Continuous outputs: the one after which a policy is broken most, with a certificate where there can be one."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from privug.attack import Attack, Result
from privug.errors import InferenceError, PrivugError, UnsuitableEngine
from privug.estimate import Estimate
from privug.inference.added_noise import QuestionOfLocation, added_noise
from privug.inference.engines import ENGINES
from privug.leakage.finite import pairs_of
from privug.model.node import Array, Kind
from privug.observation.observations import Equals
from privug.policy.branch_and_bound import GAP, Judge, Mixture, Supremum, broken_mass, lattice_supremum, supremum
from privug.policy.findings import EVERY, Finding
from privug.policy.levels import Levels
from privug.policy.policies import Clause
from privug.policy.verdict import Evidence, Limit, Status, all_of
from privug.progress import ProgressMeter

SEARCHED = (1e-9, 1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.15, 0.3)
"""Tails of the output's distribution at which posteriors are computed where nothing is proven."""
REFINEMENTS = 8
NORMAL = "exact (gaussian)"

Search = Callable[[Mixture, Judge, Callable[[float, float], bool]], Supremum | None]
NO_CERTIFICATE = "nothing proves that no other output breaks it: only additive noise on discrete inputs can be bounded"


def over_continuous_outputs(question: Attack, clause: Clause, result: Result, allowed: float) -> Finding:
    """Return the finding of a clause over all values of a continuous output, whose density is known exactly.

    Outputs of the probability that is allowed may break it.
    """
    mixture, secrets = _as_mixture(question, Kind.CONTINUOUS)
    if mixture is not None and _has_bounds(clause, secrets, result):
        proven = _proven(clause, result, mixture, secrets, allowed)
        if proven is not None:
            return proven
    return _searched(question, clause, result)


def over_endless_outputs(question: Attack, clause: Clause, result: Result) -> Finding | None:
    """Return the finding of a clause where whole numbers without an end are added, however rare the outputs far out.

    None if nothing like that is published.
    """
    mixture, secrets = _as_mixture(question, Kind.DISCRETE)
    ends = [] if mixture is None else mixture.noise.ends()
    if mixture is None or all(map(math.isfinite, ends)) or not _has_bounds(clause, secrets, result):
        return None
    return _proven(clause, result, mixture, secrets, 0.0, lattice_supremum)


def _has_bounds(clause: Clause, secrets: Sequence[Any], result: Result) -> bool:
    """Say whether bounds of the posterior give bounds of the number."""
    anything = np.ones((1, len(secrets)))
    return clause.between(anything, anything, secrets, result.prior) is not None


def _as_mixture(question: Attack, kind: Kind) -> tuple[Mixture | None, Sequence[Any]]:
    """Return the output as a mixture of shifted densities, with the values of the secret."""
    noise = added_noise(question.question, kind)
    if noise is None:
        return None, []
    try:
        answer = ENGINES["exact"](QuestionOfLocation.of(question.question, noise), None, samples=1, seed=0).exact
        assert answer is not None
        pairs = pairs_of(answer.joint_before())
    except (InferenceError, UnsuitableEngine):
        return None, []
    return Mixture.of(noise, pairs), pairs.secrets


def _proven(
    clause: Clause,
    result: Result,
    mixture: Mixture,
    secrets: Sequence[Any],
    allowed: float,
    largest: Search = supremum,
) -> Finding | None:
    """Bound the number from both sides, for each end of its limit."""
    found, reasons = [], []
    for sign, limit in ((1, clause.limit.at_most), (-1, clause.limit.at_least)):
        if limit is None:
            continue

        def judge(low: Array, high: Array, sign: int = sign) -> Levels:
            levels = clause.between(low, high, secrets, result.prior)
            assert levels is not None
            return levels if sign > 0 else Levels(-levels.value, -levels.high, -levels.low)

        known = partial(_is_decided, sign * limit)
        highest = largest(mixture, judge, known)
        if highest is None:
            return None
        status, worst = _judged(sign, limit, highest)
        if allowed and status is not Status.HOLDS:
            least, most = broken_mass(mixture, judge, sign * limit, allowed)
            status = _of_mass(least, most, allowed)
            reasons.append(f"outputs of probability {least:.3g} to {most:.3g} break it")
        found.append((status, worst))
    status = all_of([one for one, _ in found])
    worst = max((one for other, one in found if other is status), key=lambda one: clause.limit.excess(one.level.value))
    return Finding(clause, status, EVERY, worst.level, (worst,), reason="; ".join(reasons), engine=result.engine)


def _of_mass(least: float, most: float, allowed: float) -> Status:
    if most <= allowed:
        return Status.HOLDS
    return Status.VIOLATED if least > allowed else Status.UNDECIDED


def _is_decided(limit: float, value: float, ceiling: float) -> bool:
    """Say whether it is known on which side of its limit the largest number lies, and what it is to some digits."""
    return (value > limit or ceiling <= limit) and ceiling - value <= 1e-6 * max(1.0, abs(value))


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
    return Finding(clause, status, EVERY, worst.level, (worst,), reason=reason, engine=result.engine)


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
