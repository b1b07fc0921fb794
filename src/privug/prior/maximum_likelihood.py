"""The most likely parameters of a family, and the normal distribution around them that likelihoods tend to."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from privug.errors import PriorError
from privug.model.node import Array
from privug.model.variable import RandomVariable
from privug.prior.family import draw
from privug.prior.fitted import middle_and_width
from privug.prior.mixture import MvNormal
from privug.prior.scalar import ScalarFamily

STEP = 1e-3  # of the differences that the curvature is computed by, on the scale of a parameter
MOST_STEPS = 4000


_FREE: dict[str, Callable[[float], float]] = {
    "own": lambda v: v,
    "log": lambda v: float(np.log(v)),
    "logit": lambda v: float(scipy.special.logit(v)),
}
_OF_FREE: dict[str, Callable[[Any], Any]] = {
    "own": lambda v: v,
    "log": np.exp,
    "logit": lambda v: 1 / (1 + np.exp(-v)),
}


@dataclass(frozen=True)
class Point:
    """Parameters of a family on the scale where each may be any number, such as logarithms of the positive ones."""

    family: ScalarFamily
    free: Array

    def parameters(self, free: Any = None) -> list[Any]:
        """Return the parameters themselves; of numbers or of random variables."""
        values = self.free if free is None else free
        return [_OF_FREE[limits.free](values[k]) for k, (_, limits) in enumerate(self.family.parameters)]

    def distribution(self) -> RandomVariable:
        """Return the distribution with these parameters."""
        return draw(self.family, [float(value) for value in self.parameters()])

    @property
    def is_allowed(self) -> bool:
        """Whether all parameters are within their limits: a search that goes on without end leaves them."""
        limits = [constraint for _, constraint in self.family.parameters]
        return all(one.holds(np.asarray(value)) for one, value in zip(limits, self.parameters(), strict=True))

    def scales(self, numbers: Array) -> Array:
        """Return by how much each free parameter must change to matter."""
        width = middle_and_width(numbers)[1]
        return np.array([width if limits.free == "own" else 1.0 for _, limits in self.family.parameters])


def most_likely(family: ScalarFamily, numbers: Array) -> Point:
    """Return the parameters under which the data is most likely."""
    assert family.start is not None
    begin = zip(family.start(numbers), family.parameters, strict=True)
    free = np.array([_FREE[limits.free](value) for value, (_, limits) in begin])
    scales = Point(family, free).scales(numbers)
    simplex = np.vstack([free, free + 0.2 * np.diag(scales)])
    options: Any = {"initial_simplex": simplex, "maxfev": MOST_STEPS, "xatol": 1e-9 * scales.min(), "fatol": 1e-12}
    # Averages, so that the tolerance does not depend on how much data there is.
    minimize: Any = scipy.optimize.minimize  # its overloads know no function of one argument
    found = minimize(
        lambda x: _cost(Point(family, x), numbers) / len(numbers), free, method="Nelder-Mead", options=options
    )
    point = Point(family, found.x)
    if not found.success or np.abs((found.x - free) / scales).max() > 30 or not point.is_allowed:
        raise PriorError(f"fit: {family.name}: the likelihood has no maximum on this data; choose another family")
    return point


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
