"""From one way to state a promise of privacy to another: rho, epsilon and delta, and the distance of normal outputs."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

LARGEST_ORDER = 1e8
STEPS = 200  # halvings of an interval, more than doubles have digits


def epsilon_of(rho: float, delta: float) -> float:
    """Return an epsilon so that rho-zCDP implies (epsilon, delta)-differential privacy.

    The least over all orders alpha of alpha rho + (ln(1 / delta) + alpha ln(1 - 1 / alpha) - ln(alpha - 1)) /
    (alpha - 1). Every order gives a valid one: an inaccurate search errs on the safe side.
    Canonne, Kamath and Steinke, NeurIPS 2020, proposition 12.
    """
    if rho == 0:
        return 0.0

    def bound(order_less_one: Any) -> Any:
        order = order_less_one + 1
        logs = -math.log(delta) + order * (np.log(order_less_one) - np.log(order)) - np.log(order_less_one)
        return np.maximum(0.0, order * rho + logs / order_less_one)

    low, high = math.log(1e-6), math.log(LARGEST_ORDER)
    for _ in range(8):  # each search is some hundred times finer than the one before
        logs = np.linspace(low, high, 401)
        best = int(np.argmin(bound(np.exp(logs))))
        low, high = float(logs[max(0, best - 1)]), float(logs[min(400, best + 1)])
    return float(bound(np.exp(logs)).min())


def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest rho for which rho-zCDP implies (epsilon, delta)-differential privacy."""
    return largest(lambda rho: epsilon_of(rho, delta) <= epsilon, 0.0, epsilon + 1.0)


def gaussian_delta(distance: float, epsilon: float) -> float:
    """Return the least delta for two normal outputs of deviation one whose means are so far apart.

    Phi(d / 2 - epsilon / d) - exp(epsilon) Phi(-d / 2 - epsilon / d); Balle and Wang, ICML 2018, theorem 8.
    """
    if distance == 0:
        return 0.0
    with np.errstate(over="ignore"):
        first, second = scipy.special.log_ndtr([distance / 2 - epsilon / distance, -distance / 2 - epsilon / distance])
    return float(max(0.0, math.exp(first) * -math.expm1(min(0.0, second + epsilon - first))))


def gaussian_distance(epsilon: float, delta: float) -> float:
    """Return how many deviations apart normal outputs may be for an (epsilon, delta) promise."""
    return largest(lambda distance: gaussian_delta(distance, epsilon) <= delta, 0.0, 100.0 + 2 * math.sqrt(epsilon))


def largest(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the largest number for which a condition holds that holds at `low` and, once broken, stays so."""
    if holds(high):
        return high
    for _ in range(STEPS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
