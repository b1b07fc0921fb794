"""The values that discrete distributions can take, with their probabilities, for many parameters at once."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import numpy as np

from privug.inference.exact.counting import SumFamily
from privug.model.node import Array, ConstantValue, Kind, Node
from privug.model.whole_numbers import apart
from privug.prior.choice import ChoiceFamily
from privug.prior.discrete import DISCRETE_UNIFORM
from privug.prior.family import Family, ScalarFamily, family_of
from privug.prior.mixture import MixtureFamily, PointFamily

LOST = 1e-15  # the probability that distributions without a largest value lose together
MOST_TRIALS = 1000  # beyond so many, the far tails of a binomial are left out too
_lost: ContextVar[float] = ContextVar("lost", default=LOST)


@contextmanager
def longer_tails(lost: float) -> Iterator[None]:
    """List values so far out that only so much probability is lost."""
    token = _lost.set(lost)
    try:
        yield
    finally:
        _lost.reset(token)


def lost_in_tails(truncated: int) -> float:
    """Return the probability that so many distributions lose together."""
    return _lost.get() * math.ceil(truncated / 1000)


def lost_in_each() -> float:
    """Return the probability that one of them loses, on both sides together."""
    return _lost.get() / 500


def _exponent() -> float:
    return math.log(1e3 / _lost.get())  # a thousand truncated distributions lose no more than that together


class Support(NamedTuple):
    """Values with their probabilities; `owner` is the row of parameters that each belongs to."""

    owner: Array
    values: Array
    probabilities: Array

    def possible(self) -> "Support":
        """Return the values of positive probability."""
        there = self.probabilities > 0
        return self if there.all() else Support(*(part[there] for part in self))


def is_finite(family: Family) -> bool:
    """Say whether a family's values can be listed, far tails aside."""
    if isinstance(family, MixtureFamily):
        return all(is_finite(component) for component in family.families)
    return family.kind is Kind.DISCRETE and (
        isinstance(family, ChoiceFamily | PointFamily)
        or (isinstance(family, ScalarFamily) and (family is DISCRETE_UNIFORM or family.name in _RANGES))
    )


def is_truncated(root: Node) -> bool:
    """Say whether far tails are left out of the values of a root."""
    trials = root.parents[0].operation if root.parents else None
    if family_of(root).name == "Binomial" and isinstance(trials, ConstantValue):
        return bool(np.any(trials.array > MOST_TRIALS))
    return _has_tails(family_of(root))


def _has_tails(family: Family) -> bool:
    if isinstance(family, MixtureFamily):
        return any(map(_has_tails, family.families))
    return family.name in ("Poisson", "Geometric", "DiscreteLaplace", "DiscreteGaussian", "Binomial")


def support_sizes(family: Family, parameters: Sequence[Array]) -> Array:
    """Return how many values are possible for each row of parameters, at most."""
    if isinstance(family, MixtureFamily):
        sizes = [support_sizes(inner, own) for inner, own in family.parts(parameters)]
        return np.asarray(np.sum(np.broadcast_arrays(*sizes), axis=0))
    if isinstance(family, ChoiceFamily):
        return np.full(1, float(len(family.table)))
    if isinstance(family, PointFamily):
        return np.ones(1)
    low, high = support_range(family, parameters)
    return apart(high, low) + 1


def support(family: Family, parameters: Sequence[Array], rows: int) -> Support:
    """List the possible values for each row of parameters, which hold one row for all or one for each."""
    if isinstance(family, MixtureFamily):
        return _mixed(family, parameters, rows)
    if isinstance(family, ChoiceFamily):
        return _listed(family, parameters, rows)
    if isinstance(family, PointFamily):
        return Support(np.arange(rows), np.broadcast_to(parameters[0], (rows,)), np.ones(rows))
    assert isinstance(family, ScalarFamily)
    low, high = (np.broadcast_to(end, (rows,)) for end in support_range(family, parameters))
    counts = (apart(high, low) + 1).astype(np.int64)
    owner = np.repeat(np.arange(rows), counts)
    starts = np.cumsum(counts) - counts
    values = np.arange(len(owner)) - starts[owner] + low[owner].astype(np.int64)
    own = [p if p.size == 1 else p[owner] for p in parameters]
    return Support(owner, values, _mass(family, values, own)).possible()


def _mass(family: ScalarFamily, values: Array, parameters: Sequence[Array]) -> Array:
    """Return probabilities; the commonest families need not wait for SciPy's distributions."""
    if family.name == "Bernoulli":
        return np.where(values == 1, parameters[0], 1 - parameters[0])
    if family is DISCRETE_UNIFORM:
        return np.broadcast_to(1.0 / (apart(parameters[1], parameters[0]) + 1.0), values.shape).copy()
    return np.asarray(family.frozen(*parameters).pmf(values))


def support_range(family: Family, parameters: Sequence[Array]) -> tuple[Array, Array]:
    """Return the smallest and the largest value for each row of parameters, far tails left out."""
    if family is DISCRETE_UNIFORM:  # whole numbers, which may lie beyond what floats tell apart
        low, high = (np.asarray(parameter) for parameter in parameters)
        return low, high
    low, high = _RANGES[family.name](*(np.asarray(parameter, float) for parameter in parameters))
    return np.floor(low), np.ceil(high)


def _poisson(rate: Array) -> tuple[Array, Array]:
    # Bernstein's inequality: P(X >= rate + t) <= exp(-t^2 / (2 rate + 2 t / 3)), and t / 3 less below.
    exponent = _exponent()
    above = exponent / 3 + np.sqrt(exponent**2 / 9 + 2 * exponent * rate)
    return np.maximum(0.0, rate - np.sqrt(2 * exponent * rate)), rate + above


def _binomial(n: Array, p: Array) -> tuple[Array, Array]:
    exponent = _exponent()
    spread = exponent / 3 + np.sqrt(exponent**2 / 9 + 2 * exponent * n * p * (1 - p))
    few = n <= MOST_TRIALS
    return np.where(few, 0.0, np.maximum(0.0, n * p - spread)), np.where(few, n, np.minimum(n, n * p + spread))


def _geometric(p: Array) -> tuple[Array, Array]:
    with np.errstate(divide="ignore"):
        return np.ones_like(p), np.maximum(1.0, _exponent() / -np.log1p(-p))


def _discrete_laplace(scale: Array) -> tuple[Array, Array]:
    return -scale * (_exponent() + 1), scale * (_exponent() + 1)


def _discrete_gaussian(sd: Array) -> tuple[Array, Array]:
    reach = sd * math.sqrt(2 * _exponent()) + 1
    return -reach, reach


_RANGES: dict[str, Callable[..., tuple[Array, Array]]] = {
    "Bernoulli": lambda p: (np.where(p < 1, 0.0, 1.0), np.where(p > 0, 1.0, 0.0)),
    "Binomial": _binomial,
    "Poisson": _poisson,
    "Geometric": _geometric,
    "DiscreteLaplace": _discrete_laplace,
    "DiscreteGaussian": _discrete_gaussian,
}


def _listed(family: ChoiceFamily, parameters: Sequence[Array], rows: int) -> Support:
    count = len(family.table)
    if isinstance(family, SumFamily):
        probabilities = np.broadcast_to(family.weights(parameters), (rows, count)).reshape(-1)
        return Support(np.repeat(np.arange(rows), count), np.tile(family.table, rows), probabilities).possible()
    weights = (
        parameters[0] / parameters[0].sum(axis=-1, keepdims=True) if parameters else np.full((1, count), 1 / count)
    )
    probabilities = np.broadcast_to(weights, (rows, count)).reshape(-1)
    return Support(np.repeat(np.arange(rows), count), np.tile(family.table, rows), probabilities).possible()


def _mixed(family: MixtureFamily, parameters: Sequence[Array], rows: int) -> Support:
    weights = np.broadcast_to(parameters[0], (rows, len(family.families)))
    parts = [support(inner, own, rows) for inner, own in family.parts(parameters)]
    shares = [part.probabilities * weights[part.owner, k] for k, part in enumerate(parts)]
    owner = np.concatenate([part.owner for part in parts])
    order = np.argsort(owner, kind="stable")
    values = np.concatenate([part.values for part in parts])
    return Support(owner[order], values[order], np.concatenate(shares)[order]).possible()
