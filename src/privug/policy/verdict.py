"""What a check finds: whether a policy holds, and the outputs that speak against it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np

from privug.arguments import shown
from privug.digits import how_many
from privug.escaping import inert
from privug.estimate import ROUNDING, Estimate
from privug.inference.belief import Belief
from privug.markup import paragraphs
from privug.model.node import Array
from privug.output import as_json
from privug.pictures import plots


class Status(StrEnum):
    """Whether a policy certainly holds, is certainly violated, or is undecided.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda a, b: a + b, {"a": pv.Bernoulli(0.5), "b": pv.Bernoulli(0.5)}, secret="a")
    >>> pv.policy.check(attack, pv.policy.max_belief(at_most=0.8)).status is pv.policy.Status.VIOLATED
    True
    """

    HOLDS = "holds"
    VIOLATED = "violated"
    UNDECIDED = "undecided"


def all_of(statuses: Sequence[Status]) -> Status:
    """Return whether all of several claims hold."""
    if Status.VIOLATED in statuses:
        return Status.VIOLATED
    return Status.UNDECIDED if Status.UNDECIDED in statuses else Status.HOLDS


def any_of(statuses: Sequence[Status]) -> Status:
    """Return whether one of several claims holds."""
    if Status.HOLDS in statuses:
        return Status.HOLDS
    return Status.UNDECIDED if Status.UNDECIDED in statuses else Status.VIOLATED


@dataclass(frozen=True)
class Limit:
    """The range in which a number must lie."""

    at_most: float | None = None
    at_least: float | None = None

    @property
    def bound(self) -> float | None:
        """The number that the limit names; the upper one of two."""
        return self.at_least if self.at_most is None else self.at_most

    def judge(self, number: Estimate) -> Status:
        """Return whether the whole interval of an estimate lies within the limit, or all of it outside."""
        if math.isnan(number.value):
            return Status.UNDECIDED
        return all_of([self._one(end, sign, number) for end, sign in ((self.at_most, 1), (self.at_least, -1))])

    def _one(self, end: float | None, sign: int, number: Estimate) -> Status:
        if end is None:
            return Status.HOLDS
        slack = _slack(end) if number.exact else 0.0
        worst, best = (number.high, number.low) if sign > 0 else (-number.low, -number.high)
        if worst <= sign * end + slack:
            return Status.HOLDS
        return Status.VIOLATED if best > sign * end + slack else Status.UNDECIDED

    def excess(self, value: float) -> float:
        """Return by how much a number lies outside; negative for one that lies within."""
        beyond = [-math.inf]
        beyond += [] if self.at_most is None else [value - self.at_most]
        beyond += [] if self.at_least is None else [self.at_least - value]
        return max(beyond)

    def told_apart(self, number: Estimate) -> Estimate:
        """Return a number that is shown finely enough to be seen on its side of the limit.

        >>> print(Limit(0.4).told_apart(Estimate.exactly(0.40031)))
        0.4003 (exact)
        """
        gap = abs(self.excess(number.value))
        close = number.exact and 0 < gap < 0.005 * abs(number.value)
        return replace(number, resolution=gap / 2) if close else number

    def beyond(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Return bounds of by how much exact numbers lie outside, beyond rounding, given bounds of each number."""
        least, most = np.full(len(low), -np.inf), np.full(len(low), -np.inf)
        with np.errstate(invalid="ignore"):
            if (end := self.at_most) is not None and end < math.inf:
                least, most = np.maximum(least, low - end - _slack(end)), np.maximum(most, high - end - _slack(end))
            if (end := self.at_least) is not None and end > -math.inf:
                least, most = np.maximum(least, end - high - _slack(end)), np.maximum(most, end - low - _slack(end))
        return least, most

    def __str__(self) -> str:
        ends = [("at most", self.at_most), ("at least", self.at_least)]
        return " and ".join(f"{word} {end:g}" for word, end in ends if end is not None)


def _slack(end: float) -> float:
    """Return by how much an exact number may exceed a limit: by the rounding of what it was computed with."""
    return ROUNDING * max(1.0, abs(end)) if math.isfinite(end) else 0.0


@dataclass(frozen=True)
class Evidence:
    """One output: how likely it is, the number that the policy limits, and what the attacker believes after it.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda a, b: a + b, {"a": pv.Bernoulli(0.5), "b": pv.Bernoulli(0.5)}, secret="a")
    >>> worst = pv.policy.check(attack, pv.policy.max_belief(at_most=0.8)).evidence[0]
    >>> worst.output, worst.level.value, worst.probability.value
    (0, 1.0, 0.25)
    """

    output: Any
    level: Estimate
    probability: Estimate | None = None
    posterior: Belief | None = field(default=None, repr=False)

    def __str__(self) -> str:
        likely = "" if self.probability is None else f", of probability {self.probability.number()}"
        return inert(
            f"{self.level.number()} {self.level.unit}".rstrip() + f" after output {shown(self.output)}{likely}"
        )


@dataclass(frozen=True)
class Verdict:
    """The answer of a check.

    `status` is 'holds', 'violated' or 'undecided'; `claim` is the policy in words; `worst` is the number it limits,
    for the output that comes nearest to breaking it or breaks it most; `evidence` are the worst outputs. `scope` says
    what was looked at: every output, the outputs seen in samples, one observation, or the average over outputs.
    `needed` is how many samples would probably decide what is undecided. A policy of several parts has a verdict for
    each in `parts`. `reason` names no values of secrets or outputs; `details`, which an engine gave, may. A verdict is
    true, as in `assert check(...)`, only if the policy certainly holds; it is false if it is violated or undecided.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda a, b: a + b, {"a": pv.Bernoulli(0.5), "b": pv.Bernoulli(0.5)}, secret="a")
    >>> verdict = pv.policy.check(attack, pv.policy.max_belief(at_most=0.8))
    >>> verdict.violated, verdict.worst.value, verdict.evidence[0].output
    (True, 1.0, 0)
    """

    status: Status
    claim: str
    scope: str
    worst: Estimate | None = None
    about: str = ""
    evidence: tuple[Evidence, ...] = ()
    reason: str = ""
    engine: str = ""
    needed: int | None = None
    parts: tuple["Verdict", ...] = ()
    details: str = ""
    limit: Limit | None = None
    """The range in which the worst number must lie, if it is one number that is limited."""

    def __bool__(self) -> bool:
        return self.holds

    @property
    def holds(self) -> bool:
        """Whether the policy certainly holds."""
        return self.status is Status.HOLDS

    @property
    def violated(self) -> bool:
        """Whether the policy is certainly violated."""
        return self.status is Status.VIOLATED

    @property
    def undecided(self) -> bool:
        """Whether it is not known if the policy holds."""
        return self.status is Status.UNDECIDED

    @property
    def worst_output(self) -> Any:
        """The output that comes nearest to breaking the policy, or breaks it most."""
        return self.evidence[0].output if self.evidence else None

    def to_dict(self, *, secrets: bool = False) -> dict[str, Any]:
        """Return the verdict as plain values; outputs that were found are shown only if `secrets` are asked for."""
        plain: dict[str, Any] = {"status": str(self.status), "claim": self.claim, "scope": self.scope}
        plain |= {"reason": self.reason, "engine": self.engine, "samples_needed": self.needed}
        if self.worst is not None:
            plain["worst"] = {**self.worst.to_dict(), "about": self.about}
        if secrets:
            plain["details"] = self.details
            plain["evidence"] = [
                {
                    "output": shown(one.output),
                    "level": one.level.value,
                    "probability": None if one.probability is None else one.probability.value,
                }
                for one in self.evidence
            ]
        if self.parts:
            plain["parts"] = [part.to_dict(secrets=secrets) for part in self.parts]
        return plain

    def to_json(self, *, secrets: bool = False) -> str:
        """Return the verdict as JSON."""
        return as_json(self.to_dict(secrets=secrets), 2)

    def plot(self, ax: Any = None) -> Any:
        """Draw the worst numbers that were found against their limits; `ax` is matplotlib axes or a path to write to.

        Of a policy of several parts there is a bar for each, else one for each of the worst outputs.
        """
        rows = [(part.about, part.worst, part.bound) for part in self.parts if part.worst is not None]
        if not rows:
            rows = [(f"after {shown(one.output)}", one.level, self.bound) for one in self.evidence]
        if not rows and self.worst is not None:
            rows = [(self.scope, self.worst, self.bound)]
        return plots().bars(rows, ax, "" if self.parts else self.about)

    @property
    def bound(self) -> float | None:
        """The number that the limit names."""
        return None if self.limit is None else self.limit.bound

    def sentence(self, *, secrets: bool = True) -> str:
        """Return in one sentence what was found."""
        name = f"{self.about} " if self.parts else ""
        worst = self.worst if self.worst is None or self.limit is None else self.limit.told_apart(self.worst)
        found = "" if worst is None else f"; {name}at worst {worst}"
        reason = f"; {self.reason}" if self.reason else ""
        reason += f": {self.details}" if secrets and self.details else ""
        return inert(f"{self.status}: {self.claim}, {self.scope}{found}{reason}")

    def lines(self, *, secrets: bool = True) -> list[str]:
        """Return the verdict and what speaks for it, line by line."""
        lines = [self.sentence(secrets=secrets)]
        if self.needed is not None:
            lines.append(f"  some {how_many(self.needed, 'sample')} would probably decide it")
        if secrets and not self.parts:
            lines += [f"  {one}" for one in self.evidence]
        for part in self.parts:
            lines += [f"  {line}" for line in part.lines(secrets=secrets)]
        return lines

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        return paragraphs(self.lines())
