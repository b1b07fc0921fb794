"""Guarantee: what a mechanism promises about any one person, how promises add up, and ways to state them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy

from privug.arguments import Count, NumberRange, Probability, check_kind, kinds_checked
from privug.errors import ArgumentError
from privug.inference.joint import Joint

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


@dataclass(frozen=True)
class Guarantee:
    """A promise of differential privacy: (epsilon, delta), rho of zero-concentrated privacy, or both.

    For any two neighbouring inputs and any set of outputs, P(output | one) <= exp(epsilon) P(output | other) + delta.
    With rho, Rényi's divergence of any order alpha > 1 between the outputs is at most rho * alpha nats.
    Dwork and Roth, Algorithmic Foundations of Differential Privacy, 2014; Bun and Steinke, TCC 2016.

    >>> print(Guarantee(epsilon=0.5) + Guarantee(epsilon=1))
    1.5-differentially private
    >>> print(Guarantee(rho=0.5))
    0.5-zCDP
    """

    epsilon: float = math.inf
    delta: float = 0.0
    rho: float | None = None

    def __post_init__(self) -> None:
        level = Annotated[float, NumberRange(0)]
        check_kind("Guarantee", "epsilon", self.epsilon, (level,))
        check_kind("Guarantee", "rho", self.rho, (level, type(None)))
        check_kind("Guarantee", "delta", self.delta, (Probability,))

    @property
    def is_empty(self) -> bool:
        """Whether this promises nothing at all."""
        return (math.isinf(self.epsilon) or self.delta >= 1) and self._concentrated is None

    @property
    def _concentrated(self) -> float | None:
        """The rho that is known, or follows from pure differential privacy."""
        known = [rho for rho in (self.rho,) if rho is not None and math.isfinite(rho)]
        if self.delta == 0 and math.isfinite(self.epsilon):
            known.append(self.epsilon**2 / 2)
        return min(known, default=None)

    @kinds_checked
    def at(self, delta: Probability) -> "Guarantee":
        """Return the best promise of the form (epsilon, delta) for a given delta.

        >>> print(Guarantee(rho=0.5).at(delta=1e-6))
        (5.22153, 1e-06)-differentially private, 0.5-zCDP
        """
        epsilon = self.epsilon if delta >= self.delta else math.inf
        if self._concentrated is not None and delta > 0:
            epsilon = min(epsilon, epsilon_of(self._concentrated, delta))
        return Guarantee(epsilon, delta, self.rho)

    def __add__(self, other: "Guarantee") -> "Guarantee":
        """Return what two releases about the same people promise together."""
        if not isinstance(other, Guarantee):
            return NotImplemented
        parts = self._concentrated, other._concentrated
        keeps = (self.rho is not None or other.rho is not None) and None not in parts
        rho = sum(part for part in parts if part is not None) if keeps else None
        return Guarantee(self.epsilon + other.epsilon, min(1.0, self.delta + other.delta), rho)

    @kinds_checked
    def repeated(self, times: Count) -> "Guarantee":
        """Return what many such releases about the same people promise together.

        With `at(delta)`, the total grows with the square root of their number rather than with the number itself.

        >>> print(Guarantee(epsilon=0.1).repeated(100).at(delta=1e-6))
        (5.22153, 1e-06)-differentially private, 0.5-zCDP
        """
        rho = None if self._concentrated is None else times * self._concentrated
        return Guarantee(times * self.epsilon, min(1.0, times * self.delta), rho)

    @kinds_checked
    def group(self, size: Count) -> "Guarantee":
        """Return what is promised to a group of people who stay or go together.

        >>> print(Guarantee(epsilon=0.5).group(4))
        2-differentially private
        """
        delta = 0.0
        if self.delta > 0:
            delta = min(1.0, self.delta * _geometric_sum(self.epsilon, size))
        return Guarantee(size * self.epsilon, delta, None if self.rho is None else size**2 * self.rho)

    @kinds_checked
    def sampled(self, rate: Probability) -> "Guarantee":
        """Return the stronger promise if each person's data is used with this probability only.

        >>> print(Guarantee(epsilon=1).sampled(0.1))
        0.158565-differentially private
        """
        epsilon = math.log1p(rate * math.expm1(self.epsilon)) if self.epsilon < 700 else self.epsilon
        return Guarantee(epsilon, rate * self.delta, self.rho)

    @kinds_checked
    def worst_case(self, prior: Probability = 0.5) -> Joint:
        """Return the most that a mechanism with this promise can tell of which of two neighbouring inputs it had.

        With probability delta it tells the input outright, else it tells the truth with odds of exp(epsilon) to one.
        Every mechanism with the same promise is a coarser version of this one (Kairouz, Oh and Viswanath, ICML 2015),
        so that each measure of leakage between neighbours is at most what it is here.

        >>> from privug.leakage import min_entropy_leakage
        >>> print(min_entropy_leakage(Guarantee(epsilon=math.log(3)).worst_case()))
        0.585 bit (exact)
        """
        if math.isinf(self.epsilon):
            raise ArgumentError("worst_case: the promise has no epsilon; write guarantee.at(delta=1e-6).worst_case()")
        truth = 1.0 / (1.0 + math.exp(-self.epsilon))
        right, wrong = (1 - self.delta) * truth, (1 - self.delta) * (1 - truth)
        matrix = [[self.delta, right, wrong, 0.0], [0.0, wrong, right, self.delta]]
        return Joint.from_channel([1 - prior, prior], matrix, outputs=["surely 0", "0", "1", "surely 1"])

    def __str__(self) -> str:
        if self.is_empty:
            return "no guarantee"
        shown = []
        if math.isfinite(self.epsilon):
            number = f"{self.epsilon:g}" if self.delta == 0 else f"({self.epsilon:.6g}, {self.delta:g})"
            shown.append(f"{number}-differentially private")
        if self.rho is not None and math.isfinite(self.rho):
            shown.append(f"{self.rho:g}-zCDP")
        return ", ".join(shown)


def _geometric_sum(epsilon: float, size: int) -> float:
    """Return 1 + exp(epsilon) + ... + exp((size - 1) * epsilon)."""
    if epsilon == 0 or size == 1:
        return float(size)
    return math.expm1(size * epsilon) / math.expm1(epsilon) if size * epsilon < 700 else math.inf


NO_GUARANTEE = Guarantee()
