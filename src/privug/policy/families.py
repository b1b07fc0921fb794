"""Families of attackers: all priors, those near a given one, those that parameters make."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from privug.arguments import is_number, kinds_checked, shown
from privug.errors import ArgumentError


class Family:
    """A set of attackers to be searched for the worst one.

    >>> import privug as pv
    >>> isinstance(pv.policy.any_prior(), pv.policy.Family)
    True
    """


@dataclass(frozen=True)
class AnyPrior(Family):
    """All priors on the values of the secret that the attack holds possible."""

    def __str__(self) -> str:
        return "all priors on the secret"


@dataclass(frozen=True)
class Within(Family):
    """All priors on those values within a total-variation distance of the attack's own."""

    total_variation: float

    def __str__(self) -> str:
        return f"priors within a total variation of {self.total_variation:g} of the attacker's"


@dataclass(frozen=True, eq=False)
class Box(Family):
    """Priors that a function makes of parameters, each of which lies in a range."""

    prior: Callable[..., Mapping[str, Any]]
    ranges: Mapping[str, tuple[float, float]]

    def __str__(self) -> str:
        ends = [f"{name} from {low:g} to {high:g}" for name, (low, high) in self.ranges.items()]
        return f"priors with {', '.join(ends)}"


def any_prior() -> Family:
    """All priors on the values of the secret that the attack holds possible.

    What is not secret is distributed, given the secret, as in the attack: the channel is the same for all.

    >>> import privug as pv
    >>> print(pv.policy.any_prior())
    all priors on the secret
    """
    return AnyPrior()


@kinds_checked
def within(total_variation: float) -> Family:
    """All priors on the secret within a total-variation distance of the attack's own.

    That is half the sum of the absolute differences of probabilities: the share of belief that is moved.

    >>> import privug as pv
    >>> print(pv.policy.within(total_variation=0.1))
    priors within a total variation of 0.1 of the attacker's
    """
    if not is_number(total_variation) or not 0 <= total_variation <= 1:
        raise ArgumentError(f"within: total_variation must lie between 0 and 1, not {shown(total_variation)}")
    return Within(float(total_variation))


@kinds_checked
def box(prior: Callable[..., Any], **ranges: tuple[float, float]) -> Family:
    """Make a family of the priors that a function returns for parameters, each of which lies in a range.

    >>> import privug as pv
    >>> print(box(lambda p: {"x": pv.Bernoulli(p)}, p=(0.1, 0.5)))
    priors with p from 0.1 to 0.5
    """
    if not ranges:
        raise ArgumentError("box: name the parameters with their ranges, such as p=(0.1, 0.5)")
    for name, ends in ranges.items():
        if not (isinstance(ends, list | tuple) and len(ends) == 2 and all(map(is_number, ends)) and ends[0] < ends[1]):
            raise ArgumentError(
                f"box: {name} must be a range such as (0.1, 0.5), the lower end first, not {shown(ends)}"
            )
    return Box(prior, {name: (float(low), float(high)) for name, (low, high) in ranges.items()})
