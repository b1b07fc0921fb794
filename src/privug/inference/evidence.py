"""How likely an observation is, from samples that agree with it or are weighted by it."""

import math
from collections.abc import Callable

import numpy as np
import scipy

from privug.estimate import CONFIDENCE, Estimate
from privug.inference.case_plan import Kept
from privug.inference.intervals import proportion_estimate
from privug.inference.question import Question
from privug.model.node import Array

ALIKE = 1e-13  # of the mean's square: a variance that is only rounding


def log_weights_of(blocks: list[Kept]) -> Array | None:
    """Return the log weights of the samples in some blocks; None if they agree with what was seen, or do not."""
    if all(kept.log_weights is None for kept in blocks):
        return None
    # For some sizes of the tables agreement may have been waited for, for others not.
    logs = [np.zeros(len(k.positions)) if k.log_weights is None else k.log_weights for k in blocks]
    return np.concatenate(logs)


def probability_of_observation(
    log_weights: Array | None, accepted: int, draws: int, unit: str, confidence: float = CONFIDENCE
) -> Estimate:
    """Return the probability of the observation, or its density where samples are weighted by one."""
    if log_weights is None:
        return proportion_estimate(accepted / draws, draws, f"n={draws}", confidence)
    scale = float(log_weights.max())
    weights = np.exp(log_weights - scale)
    sums = float(weights.sum()), float((weights**2).sum())
    return probability_of_sums(scale, *sums, len(weights), draws, unit, confidence)


def probability_of_sums(
    scale: float, total: float, squares: float, kept: int, draws: int, unit: str, confidence: float = CONFIDENCE
) -> Estimate:
    """Return the same from the sums of the weights and of their squares, all divided by e to the power of `scale`."""
    # Of draws moved onto the observation, more may be left than there are draws on which the program does not fail.
    samples = max(draws, kept)
    mean = total / samples
    variance = squares / samples - mean**2
    if samples < 2:
        return Estimate(total * math.exp(scale), 0.0, math.inf, unit, f"n={draws}")
    if variance <= ALIKE * mean**2:
        variance = 0.0
    half = float(scipy.special.stdtrit(samples - 1, 0.5 + confidence / 2)) * math.sqrt(variance / (samples - 1))
    value, reach = (number * float(np.exp(scale)) * samples / draws for number in (mean, half))
    return Estimate(value, max(0.0, value - reach), value + reach, unit, f"n={draws}")


def among_possible(
    probability: Callable[[int], Estimate],
    question: Question,
    draws: int,
    excluded: int,
    contradicting: int,
    *,
    moved: bool,
) -> Estimate:
    """Return a probability, told by so many draws, given that the program does not fail and that all facts hold.

    Where draws are moved onto the observation, those that contradict a fact are among what it was told by.
    """
    valid = max(1, draws - excluded - contradicting)
    if contradicting and moved:
        known = None if question.exclude_errors else question.probability_of_facts
        return probability(draws).divided_by(known or proportion_estimate(valid / draws, draws, ""))
    return probability(valid)
