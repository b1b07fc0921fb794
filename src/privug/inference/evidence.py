"""How likely an observation is, from samples that agree with it or are weighted by it."""

import numpy as np

from privug.estimate import Estimate
from privug.inference.case_plan import Kept
from privug.inference.intervals import mean_estimate, proportion_estimate
from privug.model.node import Array


def log_weights_of(blocks: list[Kept]) -> Array | None:
    """Return the log weights of the samples in some blocks; None if they agree with what was seen, or do not."""
    if all(kept.log_weights is None for kept in blocks):
        return None
    # For some sizes of the tables agreement may have been waited for, for others not.
    logs = [np.zeros(len(k.positions)) if k.log_weights is None else k.log_weights for k in blocks]
    return np.concatenate(logs)


def probability_of_observation(log_weights: Array | None, accepted: int, draws: int, unit: str) -> Estimate:
    """Return the probability of the observation, or its density where samples are weighted by one."""
    if log_weights is None:
        return proportion_estimate(accepted / draws, draws, f"n={draws}")
    largest = float(log_weights.max())
    # Of draws moved onto the observation, more may be left than there are draws on which the program does not fail.
    weights = np.zeros(max(draws, len(log_weights)))
    weights[: len(log_weights)] = np.exp(log_weights - largest)
    scaled, scale = mean_estimate(weights, None, binary=False), float(np.exp(largest)) * len(weights) / draws
    low = max(0.0, scaled.low) * scale
    return Estimate(scaled.value * scale, low, scaled.high * scale, unit, f"n={draws}")
