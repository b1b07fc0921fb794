"""The most likely parameters of a family, and the normal distribution around them that likelihoods tend to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from privug.errors import PriorError
from privug.model.node import Array
from privug.model.variable import RandomVariable
from privug.prior.continuous import BETA, CAUCHY, GAMMA, STUDENT_T
from privug.prior.discrete import DISCRETE_LAPLACE
from privug.prior.family import draw
from privug.prior.mixture import MvNormal
from privug.prior.scalar import REAL, ScalarFamily

STEP = 1e-3  # of the differences that the curvature is computed by, on the scale of a parameter
MOST_STEPS = 4000


def _moments_of_gamma(numbers: Array) -> Sequence[float]:
    mean, var = float(numbers.mean()), float(numbers.var())
    return mean**2 / var, var / mean


def _moments_of_beta(numbers: Array) -> Sequence[float]:
    mean, var = float(numbers.mean()), float(numbers.var())
    total = max(mean * (1 - mean) / var - 1, 0.1)
    return mean * total, (1 - mean) * total


def _middle_and_width(numbers: Array) -> tuple[float, float]:
    low, middle, high = (float(q) for q in np.quantile(numbers, [0.25, 0.5, 0.75]))
    return middle, (high - low) / 2 or float(numbers.std())


FAMILIES: dict[str, tuple[ScalarFamily, Callable[[Array], Sequence[float]]]] = {
    "Beta": (BETA, _moments_of_beta),
    "Cauchy": (CAUCHY, _middle_and_width),
    "DiscreteLaplace": (DISCRETE_LAPLACE, lambda x: (float(np.abs(x).mean()) + 0.1,)),
    "Gamma": (GAMMA, _moments_of_gamma),
    "StudentT": (STUDENT_T, lambda x: (5.0, *_middle_and_width(x))),
}
"""Each family with where the search for its parameters begins."""


@dataclass(frozen=True)
class Point:
    """Parameters of a family on the scale where each may be any number: logarithms of the positive ones."""

    family: ScalarFamily
    free: Array

    @property
    def _are_logs(self) -> list[bool]:
        return [constraint is not REAL for _, constraint in self.family.parameters]

    def parameters(self, free: Any = None) -> list[Any]:
        """Return the parameters themselves; of numbers or of random variables."""
        values = self.free if free is None else free
        return [np.exp(values[k]) if log else values[k] for k, log in enumerate(self._are_logs)]

    def distribution(self) -> RandomVariable:
        """Return the distribution with these parameters."""
        return draw(self.family, [float(value) for value in self.parameters()])

    def scales(self, numbers: Array) -> Array:
        """Return by how much each free parameter must change to matter."""
        width = _middle_and_width(numbers)[1]
        return np.array([1.0 if log else width for log in self._are_logs])


def most_likely(name: str, numbers: Array) -> Point:
    """Return the parameters under which the data is most likely."""
    family, begin = FAMILIES[name]
    start = Point(family, np.array(begin(numbers), float))
    free = np.array([np.log(v) if log else v for v, log in zip(start.free, start._are_logs, strict=True)])
    scales = start.scales(numbers)
    simplex = np.vstack([free, free + 0.2 * np.diag(scales)])
    options: Any = {"initial_simplex": simplex, "maxfev": MOST_STEPS, "xatol": 1e-9 * scales.min(), "fatol": 1e-12}
    # Averages, so that the tolerance does not depend on how much data there is.
    minimize: Any = scipy.optimize.minimize  # its overloads know no function of one argument
    found = minimize(
        lambda x: _cost(Point(family, x), numbers) / len(numbers), free, method="Nelder-Mead", options=options
    )
    if not found.success or np.abs((found.x - free) / scales).max() > 30:
        raise PriorError(f"fit: {name}: the likelihood has no maximum on this data; choose another family")
    return Point(family, found.x)


def _cost(point: Point, numbers: Array) -> float:
    with np.errstate(all="ignore"):
        cost = -float(point.family.log_density(numbers, point.parameters()).sum())
    return cost if np.isfinite(cost) else 1e300


def uncertain(point: Point, numbers: Array) -> RandomVariable:
    """Return the distribution whose parameters are spread by the curvature of the likelihood around the most likely."""
    scales = point.scales(numbers)
    curvature = _curvature(lambda x: _cost(Point(point.family, x * scales), numbers), point.free / scales)
    values = np.linalg.eigvalsh(curvature)
    if not (np.isfinite(values).all() and values.min() > 1e-8 * values.max() > 0):
        raise PriorError(
            f"fit: {point.family.name}: the data leaves the parameters open; write uncertainty=False, or choose "
            "another family"
        )
    covariance = np.linalg.inv(curvature) * np.outer(scales, scales)
    free = MvNormal(point.free, (covariance + covariance.T) / 2)
    return draw(point.family, point.parameters(free))


def _curvature(function: Callable[[Array], float], at: Array) -> Array:
    """Return the second derivatives of a function by central differences."""
    size = len(at)
    steps = STEP * np.eye(size)
    result = np.empty((size, size))
    for i in range(size):
        for j in range(i + 1):
            corners = [(a, b, function(at + a * steps[i] + b * steps[j])) for a in (1, -1) for b in (1, -1)]
            result[i, j] = result[j, i] = sum(a * b * value for a, b, value in corners) / (4 * STEP**2)
    return result
