"""Adaptive runs: more samples until an estimate is as precise as asked."""

import math
from collections.abc import Callable
from typing import TypeVar

from privug import interruption
from privug.arguments import naming, shown
from privug.errors import ArgumentError, OutOfTime, TooFewSamples
from privug.estimate import Estimate
from privug.progress import ProgressMeter

FIRST_SAMPLES = 1_000
MOST_SAMPLES = 20_000_000

Outcome = TypeVar("Outcome")


def until_precise(
    run: Callable[[int], Outcome],
    measure: Callable[[Outcome], Estimate],
    precision: float,
    remarked: Callable[[Outcome, str], Outcome],
    first: int = FIRST_SAMPLES,
    most: int = MOST_SAMPLES,
) -> Outcome:
    """Run with more and more samples until the interval of a measure is no wider than the precision on either side.

    Intervals shrink as one over the root of the samples: the next run has as many as that rule asks for. If that is
    interrupted, or out of time, the latest outcome is returned, with a remark.
    """
    samples, best = first, math.inf
    latest: Outcome | None = None
    with ProgressMeter("tightening", 1.0) as meter:
        while True:
            # A measure may refuse few samples; then there is no interval yet.
            try:
                interruption.check()
                attempt = _attempt(run, measure, samples)
            except (KeyboardInterrupt, OutOfTime):
                if latest is None:
                    raise
                return remarked(latest, interruption.taken_note(f"the interval is still {best:.3g} to either side"))
            half = math.inf if attempt is None else attempt[1]
            if attempt is not None and half <= precision:
                return attempt[0]
            best = min(best, half)
            latest = latest if attempt is None else attempt[0]
            if interruption.is_time_up() and latest is not None:
                return remarked(latest, f"the interval is still {best:.3g} to either side")
            if samples >= most:
                raise TooFewSamples(
                    f"precision={precision:g} was not reached with {samples:,} samples: the interval is still "
                    f"{best:.3g} to either side; ask for less precision, or raise budget="
                )
            meter.update(min(1.0, (precision / half) ** 2), f"± {half:.3g} with {samples:,} samples")
            growth = 4.0 if not math.isfinite(half) else min(8.0, max(1.5, 1.1 * (half / precision) ** 2))
            samples = min(most, math.ceil(samples * growth))


def _attempt(
    run: Callable[[int], Outcome], measure: Callable[[Outcome], Estimate], samples: int
) -> tuple[Outcome, float] | None:
    try:
        outcome = run(samples)
        with naming("measure"):
            estimate = measure(outcome)
    except TooFewSamples:
        return None
    if not isinstance(estimate, Estimate):
        raise ArgumentError(
            "measure must return an estimate, whose interval is to become small, such as "
            f"pv.leakage.bayes_risk(result.joint), not {shown(estimate)}"
        )
    if estimate.exact or math.isinf(estimate.value):
        return outcome, 0.0
    return outcome, max(estimate.high - estimate.value, estimate.value - estimate.low)
