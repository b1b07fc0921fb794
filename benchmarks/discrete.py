"""Discrete measures: all of them on ten million pairs, which should cost little more than sorting the data once."""

from collections.abc import Callable
from functools import partial

import numpy as np
from measuring import Bar, Outcome, compare

import privug as pv
from privug import leakage

SAMPLES = 10_000_000
SECRETS, NOISE = 100, 101  # so there are 200 outputs

OF_JOINTS: tuple[Callable[[pv.Joint], object], ...] = (
    leakage.mutual_information,
    leakage.conditional_entropy,
    leakage.bayes_vulnerability,
    leakage.bayes_risk,
    leakage.min_entropy_leakage,
    leakage.multiplicative_leakage,
    leakage.additive_leakage,
    leakage.bayes_security,
    leakage.posterior_guessing_entropy,
    leakage.max_posterior_belief,
)
OF_BELIEFS: tuple[Callable[[pv.Belief], object], ...] = (
    leakage.entropy,
    leakage.min_entropy,
    leakage.guessing_entropy,
    partial(leakage.renyi_entropy, order=2),
)


def drawn(divisors: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """Draw whole numbers, or fractions that repeat."""
    rng = np.random.default_rng(0)
    secrets = rng.integers(0, SECRETS, SAMPLES)
    outputs = secrets + rng.integers(0, NOISE, SAMPLES)
    if divisors == (1, 1):
        return secrets, outputs
    return secrets / divisors[0], outputs / divisors[1]


def measured(name: str, divisors: tuple[int, int]) -> Outcome:
    secrets, outputs = drawn(divisors)

    def measure() -> None:
        joint = pv.Joint.from_samples(secrets, outputs)
        for of_joint in OF_JOINTS:
            of_joint(joint)
        for of_belief in OF_BELIEFS:
            of_belief(joint.secret)

    timing = compare(measure, lambda: (np.sort(secrets), np.sort(outputs)), rounds=5)
    kind = "whole numbers" if divisors == (1, 1) else "floats that repeat"
    count = len(OF_JOINTS) + len(OF_BELIEFS)
    detail = f"{count} measures of {SAMPLES:,} pairs of {kind}, against np.sort of both columns; {timing}"
    return Outcome(name, timing.ratio, Bar(3), detail)


BENCHMARKS = {
    "discrete-integers": lambda: measured("discrete-integers", (1, 1)),
    "discrete-floats": lambda: measured("discrete-floats", (3, 7)),
}
