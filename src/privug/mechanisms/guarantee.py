"""Guarantee: what a mechanism promises about any one person, and how promises add up."""

import math
from dataclasses import dataclass

from privug.arguments import kinds_checked
from privug.errors import ArgumentError
from privug.inference.joint import Joint
from privug.mechanisms.checks import check_number, check_whole
from privug.mechanisms.conversion import epsilon_of


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
        check_number("Guarantee", "epsilon", self.epsilon, 0.0, math.inf)
        if self.rho is not None:
            check_number("Guarantee", "rho", self.rho, 0.0, math.inf)
        check_number("Guarantee", "delta", self.delta, 0.0, 1.0)

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
    def at(self, delta: float) -> "Guarantee":
        """Return the best promise of the form (epsilon, delta) for a given delta.

        >>> print(Guarantee(rho=0.5).at(delta=1e-6))
        (5.22153, 1e-06)-differentially private, 0.5-zCDP
        """
        check_number("at", "delta", delta, 0.0, 1.0)
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
    def repeated(self, times: int) -> "Guarantee":
        """Return what many such releases about the same people promise together.

        With `at(delta)`, the total grows with the square root of their number rather than with the number itself.

        >>> print(Guarantee(epsilon=0.1).repeated(100).at(delta=1e-6))
        (5.22153, 1e-06)-differentially private, 0.5-zCDP
        """
        check_whole("repeated", "times", times)
        rho = None if self._concentrated is None else times * self._concentrated
        return Guarantee(times * self.epsilon, min(1.0, times * self.delta), rho)

    @kinds_checked
    def group(self, size: int) -> "Guarantee":
        """Return what is promised to a group of people who stay or go together.

        >>> print(Guarantee(epsilon=0.5).group(4))
        2-differentially private
        """
        check_whole("group", "size", size)
        delta = 0.0
        if self.delta > 0:
            delta = min(1.0, self.delta * _geometric_sum(self.epsilon, size))
        return Guarantee(size * self.epsilon, delta, None if self.rho is None else size**2 * self.rho)

    @kinds_checked
    def sampled(self, rate: float) -> "Guarantee":
        """Return the stronger promise if each person's data is used with this probability only.

        >>> print(Guarantee(epsilon=1).sampled(0.1))
        0.158565-differentially private
        """
        check_number("sampled", "rate", rate, 0.0, 1.0)
        epsilon = math.log1p(rate * math.expm1(self.epsilon)) if self.epsilon < 700 else self.epsilon
        return Guarantee(epsilon, rate * self.delta, self.rho)

    @kinds_checked
    def worst_case(self, prior: float = 0.5) -> Joint:
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
        check_number("worst_case", "prior", prior, 0.0, 1.0)
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
