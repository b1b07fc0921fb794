"""The joint of two normal quantities as cells of quadrature, with their mutual information in closed form."""

import math

import numpy as np

from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.curve import Curve
from privug.inference.exact.gaussian.conditioning import Normal, length, product
from privug.inference.joint import Joint
from privug.model.batch import Batch
from privug.model.node import Array, Kind

REACH = 8.5  # deviations: 2e-17 lies beyond
# Sums over an even grid of step h are exact but for exp(-2 (pi sd / h)^2) for a normal density: 1e-15 here.
STEP = 0.75
LARGEST_STEP = 0.5
MOST_CELLS = 2_000_000
DETERMINED = 1e-14

FUNCTION_OF_SECRET = (
    "infinite: the output is a function of the secret alone, and both are continuous, so an output seen to all its "
    "digits gives the secret away"
)


def gaussian_joint(secret: Normal, output: Normal) -> Joint:
    """Return the joint of secret and output; `information` is minus the log of the root of 1 - correlation squared."""
    if secret.sd == 0 or output.sd == 0:
        return _with_a_constant(secret, output)
    left, right = secret.weights / secret.sd, output.weights / output.sd
    correlation = product(left, right)
    independence = min(1.0, length(left - correlation * right))
    if independence <= DETERMINED:
        places = np.arange(-REACH, REACH + LARGEST_STEP, LARGEST_STEP)
        cells = places, math.copysign(1.0, correlation) * places, np.exp(-0.5 * places**2)
        return _joint(secret, output, cells, Estimate.exactly(math.inf, "bit", FUNCTION_OF_SECRET))
    information = max(0.0, -math.log2(independence))
    cells = _cells(correlation, independence)
    return _joint(secret, output, cells, Estimate.exactly(information, "bit", "exact"))


def _cells(correlation: float, independence: float) -> tuple[Array, Array, Array]:
    """Return pairs of standardised values with their densities, on an even grid, where there is any probability."""
    step = min(LARGEST_STEP, STEP * independence)
    reach = math.ceil(REACH * independence / step) + 1
    # Beyond so many cells the grid stays wider than the density: sums over it are rough, the closed form is not.
    step = max(step, 2 * REACH * (2 * reach + 1) / MOST_CELLS)
    count = math.ceil(REACH / step)
    rows = np.arange(-count, count + 1)
    columns = np.rint(correlation * rows)[:, np.newaxis] + np.arange(-reach, reach + 1)
    u = step * columns
    t = np.broadcast_to(step * rows[:, np.newaxis], u.shape)
    inside = np.abs(columns) <= count
    independence = max(independence, step / STEP)
    logs = -0.5 * ((u - correlation * t) / independence) ** 2 - 0.5 * t**2
    return t[inside], u[inside], np.exp(logs[inside])


def _joint(secret: Normal, output: Normal, cells: tuple[Array, Array, Array], information: Estimate) -> Joint:
    t, u, density = cells
    weights = density / density.sum()
    return Joint(_side(secret, t, weights), _side(output, u, weights), information)


def _side(quantity: Normal, places: Array, weights: Array) -> Belief:
    curve = Curve.normal(quantity.mean, quantity.sd)
    values = Batch.of_values(quantity.mean + quantity.sd * places)
    if not curve.parts:
        return Belief(values, weights, True, spread=Kind.DISCRETE)
    return Belief(values, weights, True, spread=Kind.CONTINUOUS, curve=curve)


def _with_a_constant(secret: Normal, output: Normal) -> Joint:
    places = np.arange(-REACH, REACH + LARGEST_STEP, LARGEST_STEP)
    cells = places, places, np.exp(-0.5 * places**2)
    return _joint(secret, output, cells, Estimate.exactly(0.0, "bit", "exact"))
