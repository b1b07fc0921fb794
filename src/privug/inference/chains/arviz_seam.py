"""The one place that speaks to ArviZ: convergence of chains, and results as InferenceData (ArviZ 0.x)."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from privug.model.node import Array
from privug.runtime.critical import quietly

try:
    import arviz
except FileNotFoundError:  # ArviZ notes its first import of a day in a file, which another process moved meanwhile
    import arviz


@contextmanager
def _quietly() -> Iterator[None]:
    """Chains that never moved make ArviZ divide by zero; what it returns then, not a number, says enough."""
    with quietly(), np.errstate(all="ignore"):
        yield


def r_hat(draws: Array) -> float:
    """Return the rank-normalised split R-hat of one number, given as an array of chains by draws."""
    with _quietly():
        return float(arviz.rhat(draws, method="rank"))


def bulk_ess(draws: Array) -> float:
    """Return how many independent draws tell as much about the middle of the distribution."""
    with _quietly():
        return float(arviz.ess(draws, method="bulk"))


def tail_ess(draws: Array) -> float:
    """Return how many independent draws tell as much about its 5 % and 95 % quantiles."""
    with _quietly():
        return float(arviz.ess(draws, method="tail", prob=(0.05, 0.95)))


def inference_data(groups: Mapping[str, Mapping[str, Array]], observed: Mapping[str, Array]) -> Any:
    """Return draws by group and name, each an array of chains by draws, as ArviZ's InferenceData."""
    with _quietly():
        return arviz.from_dict(
            **{group: dict(arrays) for group, arrays in groups.items()}, observed_data=dict(observed) or None
        )
