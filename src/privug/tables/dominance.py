"""Sensitive amounts: the p % rule and the (n, k) dominance rule, and the protection that a suppressed cell needs."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """When an amount is sensitive: `p` of the p % rule, `dominance` of the (n, k) rule."""

    p: float | None = None
    dominance: tuple[int, float] | None = None


@dataclass(frozen=True)
class Contributions:
    """The largest contributions to a cell, in descending order, and the amount of the cell.

    >>> Contributions((60.0, 30.0, 5.0, 5.0), 100.0).second_estimate
    70.0
    """

    largest: tuple[float, ...]
    amount: float

    @property
    def first(self) -> float:
        """The largest contribution."""
        return self.largest[0]

    @property
    def second(self) -> float:
        """The second largest contribution, zero if there is none."""
        return self.largest[1] if len(self.largest) > 1 else 0.0

    @property
    def second_estimate(self) -> float:
        """What the second largest contributor knows the largest to be at most, if the amount is known."""
        return self.amount - self.second

    def broken_rules(self, rules: Rules) -> list[str]:
        """Return the rules by which the cell is sensitive, each with the numbers.

        p % rule: sensitive if X - x1 - x2 < p / 100 x1, because the second largest contributor then knows the largest
        to within p %. (n, k) rule: sensitive if the n largest are more than k % of X.

        >>> Contributions((60.0, 30.0, 5.0, 5.0), 100.0).broken_rules(Rules(p=20))
        ['p % rule: the second largest contributor knows the largest to within 16.7 %, less than 20 %']
        >>> Contributions((60.0, 20.0, 20.0), 100.0).broken_rules(Rules(p=20, dominance=(2, 80)))
        []
        """
        told = []
        if rules.p is not None and (rest := self.amount - self.first - self.second) < rules.p / 100 * self.first:
            told.append(
                f"p % rule: the second largest contributor knows the largest to within "
                f"{100 * max(0.0, rest) / self.first:.3g} %, less than {rules.p:g} %"
            )
        if rules.dominance is not None:
            n, k = rules.dominance
            if (top := sum(self.largest[:n])) > k / 100 * self.amount:
                share = 100 * top / self.amount
                told.append(f"({n}, {k:g}) rule: the {n} largest contribute {share:.3g} %, more than {k:g} %")
        return told

    def protection(self, rules: Rules) -> float:
        """Return how far beyond the amount, on either side, the feasible interval of the suppressed cell must reach.

        For the p % rule that is p / 100 x1 - (X - x1 - x2), for the (n, k) rule 100 / k (x1 + ... + xn) - X: with as
        much uncertainty in place of X the cell would not be sensitive.

        >>> Contributions((60.0, 30.0, 5.0, 5.0), 100.0).protection(Rules(p=20))
        2.0
        """
        levels = [0.0]
        if rules.p is not None:
            levels.append(rules.p / 100 * self.first - (self.amount - self.first - self.second))
        if rules.dominance is not None:
            n, k = rules.dominance
            levels.append(100 / k * sum(self.largest[:n]) - self.amount)
        return max(levels)


def contributions(largest: Sequence[float], amount: float | None) -> Contributions:
    """Return contributions in descending order; without an amount they are all there are."""
    ordered = tuple(sorted((float(number) for number in largest), reverse=True))
    return Contributions(ordered, float(sum(ordered) if amount is None else amount))
