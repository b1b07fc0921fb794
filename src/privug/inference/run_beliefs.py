"""The beliefs that a finished run gives about its quantities."""

import numpy as np

from privug.inference.belief import Belief
from privug.inference.reach import Definition
from privug.inference.sampling import Run
from privug.model.node import Array


def belief_of(run: Run, position: int, known: Definition) -> Belief:
    """Return the belief about one of the quantities of a run."""
    exact = None if run.exact is None else run.exact.beliefs[position]
    if exact is not None:
        return exact.named(known.quantity)
    weights = normalised(run.log_weights)
    return Belief(run.quantities[position], weights, groups=run.groups, **known._asdict())


def normalised(log_weights: Array | None) -> Array | None:
    """Return weights that sum to one, from their logarithms; None if all are equal."""
    if log_weights is None:
        return None
    weights = np.exp(log_weights - log_weights.max())
    normalised: Array = weights / weights.sum()
    return normalised
