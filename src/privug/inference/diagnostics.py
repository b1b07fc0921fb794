"""How a run went: what was drawn, what was kept, and how much the kept samples are worth."""

from dataclasses import dataclass, field

import numpy as np

from privug.estimate import Estimate
from privug.model.node import Array


@dataclass(frozen=True)
class Diagnostics:
    """What an engine can say about the trustworthiness of its answer."""

    draws: int
    accepted: int
    effective_samples: float
    evidence: Estimate
    """The probability of the observation; its density where it was weighted by one."""
    budget: int
    excluded: int = 0
    seconds: float = 0.0
    remarks: tuple[str, ...] = field(default=())

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
