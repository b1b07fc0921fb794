"""Whether chains agree with each other: R-hat, effective draws and divergences, and the refusal of those that fail.

What is judged, and the limits (Vehtari, Gelman, Simpson, Carpenter and Bürkner, Bayesian Analysis 16, 2021):

* rank-normalised split R-hat at most 1.01, or what chance alone gives chains of so few effective draws;
* bulk and tail effective sample size at least 100 for each chain;
* at most one divergent transition in a hundred draws.

Passing is necessary, not sufficient: chains may agree on a part of the posterior that none of them left.
"""

import importlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtri

from privug.errors import NotConverged
from privug.model.batch import Batch, Column
from privug.model.node import Array

LARGEST_R_HAT = 1.01
CHANCE = 1e-3
"""How often chains that agree may be refused for an R-hat above what chance gives."""
FEWEST_PER_CHAIN = 100
LARGEST_SHARE_OF_DIVERGENCES = 0.01
ROUNDING = 1e-11
MOST_PARTS = 12  # of an array, judged in place of all


@dataclass(frozen=True)
class Diagnosis:
    """How well chains agree, over all quantities judged: the worst of each."""

    chains: int
    draws: int
    r_hat: float
    bulk_ess: float
    tail_ess: float
    divergences: int
    worst: str
    """The quantity with the largest R-hat."""
    numbers: int = 1
    """How many numbers were judged."""

    @property
    def r_hat_by_chance(self) -> float:
        """What R-hat may be by chance, of the worst of so many numbers.

        R-hat of chains that agree exceeds 1 by half the variance of the means of their m halves, in units of the
        variance of a draw: by m / (2 ESS) times chi-squared over its m - 1 degrees of freedom.
        """
        halves = 2 * self.chains
        spread = float(chdtri(halves - 1, CHANCE / self.numbers)) / (halves - 1)
        return 1 + spread * halves / 2 / max(min(self.bulk_ess, self.tail_ess), 1.0)


def diagnose(quantities: Mapping[str, Array], divergences: int = 0) -> Diagnosis:
    """Judge draws by quantity, each an array of chains by draws by whatever shape one value has."""
    seam = importlib.import_module("privug.inference.chains.arviz_seam")
    parts = [(name, part) for name, array in quantities.items() for part in parts_of(array)]
    shape = parts[0][1].shape if parts else (0, 0)
    varied = [(name, part) for name, part in parts if varies(part)]
    rated = [(_or_infinite(seam.r_hat(part)), name) for name, part in varied]
    worst = max(rated, default=(1.0, ""))
    whole = float(math.prod(shape))
    bulk = min((_or_zero(seam.bulk_ess(part)) for _, part in varied), default=whole)
    # A tail that is one value, as of a truth value, varies in no tail.
    tails = [seam.tail_ess(part) for _, part in varied]
    tail = min((one for one in tails if not math.isnan(one)), default=whole)
    return Diagnosis(shape[0], shape[1], worst[0], bulk, tail, divergences, worst[1], max(1, len(varied)))


def judged(diagnosis: Diagnosis, engine: str, advice: Sequence[str] = ()) -> Diagnosis:
    """Return a diagnosis that is good enough, or raise NotConverged with what is wrong and what to try."""
    complaint = _complaint(diagnosis)
    if complaint is None:
        return diagnosis
    tries = [*advice, "raise samples=", "choose another engine, such as engine='rare'"]
    raise NotConverged(f"engine={engine!r}: {complaint}, so no answer is given; " + ", or ".join(tries))


def _complaint(diagnosis: Diagnosis) -> str | None:
    chains, draws = diagnosis.chains, diagnosis.chains * diagnosis.draws
    fewest = min(FEWEST_PER_CHAIN * chains, draws / 2)
    if diagnosis.divergences > LARGEST_SHARE_OF_DIVERGENCES * draws:
        return f"{diagnosis.divergences:,} of {draws:,} draws are divergent: the posterior is too sharp for these steps"
    if diagnosis.r_hat > max(LARGEST_R_HAT, diagnosis.r_hat_by_chance) or diagnosis.bulk_ess < fewest:
        return (
            f"the {chains} chains do not agree about {diagnosis.worst} (R-hat {diagnosis.r_hat:.3g}, {draws:,} draws "
            f"worth {diagnosis.bulk_ess:.0f} independent ones)"
        )
    if diagnosis.tail_ess < fewest:
        return f"{draws:,} draws are worth only {diagnosis.tail_ess:.0f} independent ones in the tails"
    return None


def numbers_of(name: str, batch: Batch, chains: int) -> dict[str, Array]:
    """Return a quantity as numbers by chains by draws: categories by their codes, structured values part by part."""
    columns = {name if len(batch.columns) == 1 else f"{name}[{k}]": c for k, c in enumerate(batch.columns)}
    return {label: _numbers(column, chains) for label, column in columns.items()}


def _numbers(column: Column, chains: int) -> Array:
    array = column.array if column.array.dtype.kind in "bif" else column.distinct()[0]
    return np.asarray(array, float).reshape(chains, -1, *array.shape[1:])


def varies(*parts: Array) -> bool:
    """Say whether a number is not the same in all draws, up to rounding: an output that was seen exactly is."""
    low, high = min(part.min() for part in parts), max(part.max() for part in parts)
    return bool(high - low > ROUNDING * max(abs(low), abs(high)))


def parts_of(array: Array) -> list[Array]:
    """Return single numbers out of an array of them, evenly spread if there are many."""
    flat = np.asarray(array, float).reshape(*array.shape[:2], -1)
    if not flat.size:
        return []
    chosen = np.unique(np.linspace(0, flat.shape[2] - 1, MOST_PARTS).round().astype(int))
    return [_bounded(flat[:, :, place]) for place in chosen]


def _bounded(part: Array) -> Array:
    """Return a part with infinite values as very large ones: ranks are all that matters."""
    return part if np.all(np.isfinite(part)) else np.nan_to_num(part, nan=0.0, posinf=1e300, neginf=-1e300)


def _or_infinite(value: float) -> float:
    return math.inf if math.isnan(value) else value


def _or_zero(value: Any) -> float:
    return 0.0 if math.isnan(value) else float(value)
