"""How a run went: what was drawn, what was kept, and how much the kept samples are worth."""

import math
from dataclasses import dataclass, field

import numpy as np

from privug.errors import NotConverged
from privug.estimate import Estimate
from privug.model.node import Array

LARGEST_PARETO_K = 0.7
FEWEST_IN_TAIL = 20


@dataclass(frozen=True)
class Diagnostics:
    """What an engine can say about the trustworthiness of its answer."""

    draws: int
    accepted: int
    effective_samples: float
    evidence: Estimate | None
    """The probability of the observation; its density where it was weighted by one. None: this engine cannot tell."""
    budget: int
    excluded: int = 0
    seconds: float = 0.0
    remarks: tuple[str, ...] = field(default=())
    merged: tuple[str, ...] = ()
    """Of which quantities values were merged that differ only by the rounding of arithmetic."""
    chains: int | None = None
    """How many chains or populations were run."""
    r_hat: float | None = None
    """The largest rank-normalised split R-hat of any quantity; 1 where chains agree."""
    bulk_ess: float | None = None
    """How many independent draws tell as much about the middle of the least known quantity."""
    tail_ess: float | None = None
    """How many independent draws tell as much about its tails."""
    divergences: int | None = None
    pareto_k: float | None = None
    """The shape of the tail of the importance weights; above 0.7 their averages cannot be trusted."""
    chosen_because: str = ""
    """Why 'auto' chose the engine that served."""

    @property
    def acceptance_rate(self) -> float:
        """The share of draws that agree with the observation."""
        return self.accepted / self.draws if self.draws else 0.0


def effective_sample_size(log_weights: Array | None, samples: int) -> float:
    """Return how many equally weighted samples the weighted ones are worth: (sum w)^2 / sum w^2."""
    if log_weights is None or samples == 0:
        return float(samples)
    weights = np.exp(log_weights - log_weights.max())
    return float(weights.sum() ** 2 / (weights**2).sum())


def pareto_k(log_weights: Array | None) -> float | None:
    """Return the shape of the generalised Pareto distribution that the largest weights follow; None for too few.

    Below 0.5 averages converge as usual, below 0.7 slowly, above that hardly: a few samples decide. A mistake looks
    safer than the truth where the prior never came near the posterior. The tail is that of the samples that matter,
    not of all: those of nearly no weight have no say. Vehtari, Simpson, Gelman, Yao and Gabry, JMLR 25 (2024).

    >>> places = (np.arange(10_000) + 0.5) / 10_000
    >>> heavy = -0.9 * np.log(places)  # P(weight > w) = w^(-1 / 0.9)
    >>> pareto_k(heavy) > 0.7
    True
    """
    if log_weights is None:
        return None
    log_weights = log_weights[log_weights > -np.inf]
    if not len(log_weights):
        return None
    return pareto_k_of_largest(log_weights, len(log_weights), _perplexity(log_weights))


def pareto_k_of_largest(log_weights: Array, samples: int, relevant: float) -> float | None:
    """Return the same from the largest of so many log weights, which are spread over the `relevant` samples."""
    tail = math.ceil(min(0.2 * relevant, 3 * math.sqrt(relevant)))
    tail = min(max(tail, min(FEWEST_IN_TAIL, samples // 5)), len(log_weights) - 1)
    if tail < FEWEST_IN_TAIL:
        return None
    largest = np.partition(log_weights, len(log_weights) - tail - 1)[-tail - 1 :]
    weights = np.sort(np.exp(largest - largest.max()))
    if weights[0] > 0.5:  # largest weights that are much the same, or tied, are no tail
        return -math.inf
    return tail_shape(weights[1:] - weights[0])


def refuse_heavy(pareto_k: float | None, what: str, instead: str) -> None:
    """Refuse weights of which a few decide."""
    if pareto_k is not None and pareto_k > LARGEST_PARETO_K:
        raise NotConverged(
            f"{what} hold most of the weight (Pareto k {pareto_k:.2f}, more than {LARGEST_PARETO_K}){instead}"
        )


def _perplexity(log_weights: Array) -> float:
    """Return over how many samples the weights are spread: e to the entropy of the weights."""
    weights = np.exp(log_weights - log_weights.max())
    total = float(weights.sum())
    return total * math.exp(-float(weights @ (log_weights - log_weights.max())) / total)


def tail_shape(excess: Array) -> float:
    """Fit the shape of a generalised Pareto distribution to ascending excesses (Zhang and Stephens, 2009)."""
    excess = excess[excess > 0]
    count = len(excess)
    if count < FEWEST_IN_TAIL // 2 or excess[-1] - excess[0] <= 1e-12 * excess[-1]:
        return -math.inf  # equal weights
    grid = 30 + int(math.sqrt(count))
    quarter = excess[int(count / 4 + 0.5) - 1]
    rates = 1 / excess[-1] + (1 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))) / (3 * quarter)
    shapes = np.log1p(-rates[:, np.newaxis] * excess).mean(axis=1)
    profile = count * (np.log(-rates / shapes) - shapes - 1)
    weights = np.exp(profile - profile.max())
    rate = float(weights @ rates / weights.sum())
    shape = float(np.log1p(-rate * excess).mean())
    return (shape * count + 0.5 * 10) / (count + 10)  # a weak prior towards one half, as for few it must be
