"""What is found of one clause: its number after each output that there is, or that was seen."""

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

import numpy as np

from privug.errors import InferenceError
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.leakage.finite import Pairs
from privug.model.keys import key_of
from privug.model.node import Array
from privug.policy.bounded import Bounded
from privug.policy.levels import Levels
from privug.policy.policies import Clause
from privug.policy.verdict import Evidence, Status, all_of

SHOWN = 3
"""How many of the worst outputs are told as evidence."""
EVERY = "after every output"
SEEN = "after the outputs seen in samples"
ONE = "after this observation"
AVERAGE = "on average over outputs"


@dataclass(frozen=True)
class Finding:
    """Whether a clause holds after each output, the worst of them, and how that was found out.

    `statuses` tells outputs apart by their keys; None says that the status is the same for all, unless it is that of
    the worst output (`somewhere`) or there are bounds of the number after every output (`bounded`). `excepts` says that
    it holds but for outputs of the probability that is allowed. `evidence_at` tells the evidence of any output listed.
    """

    clause: Clause
    status: Status
    scope: str
    worst: Estimate | None = None
    evidence: tuple[Evidence, ...] = ()
    statuses: Mapping[Hashable, Status] | None = None
    probabilities: Mapping[Hashable, float] = field(default_factory=dict)
    reason: str = ""
    engine: str = ""
    needed: int | None = None
    details: str = ""
    bounded: Bounded | None = None
    somewhere: bool = False
    excepts: bool = False
    evidence_at: Callable[[Hashable], Evidence] | None = field(default=None, repr=False)

    @property
    def lists_outputs(self) -> bool:
        """Whether it is known of each output by itself, or of all alike, whether the clause holds after it."""
        return self.statuses is not None or (self.bounded is None and not self.somewhere)

    def status_at(self, output: Hashable) -> Status:
        """Return whether the clause holds after an output, by its key."""
        return self.status if self.statuses is None else self.statuses.get(output, Status.UNDECIDED)


def no_answer(error: InferenceError) -> tuple[str, str]:
    """Return that an engine has no answer, and what it said, which may name values of secrets and outputs."""
    said = "; ".join(line.strip() for line in str(error).splitlines())
    return f"no trustworthy answer came out ({type(error).__name__})", said


def of_number(clause: Clause, number: Estimate, scope: str, engine: str, samples: float, reason: str = "") -> Finding:
    """Return the finding of a clause that limits one number."""
    status = clause.limit.judge(number)
    needed = samples_needed(clause, number, samples) if status is Status.UNDECIDED else None
    return Finding(clause, status, scope, number, reason=reason or undefined(number), engine=engine, needed=needed)


def undefined(number: Estimate) -> str:
    """Say why a number is none, if it is none."""
    return number.method if math.isnan(number.value) else ""


def of_levels(clause: Clause, found: Levels, pairs: Pairs, engine: str, error: float = 0.0) -> Finding:
    """Return the finding of a clause that limits a number after each of finitely many outputs."""
    judged = [clause.limit.judge(found.at(place, pairs)) for place in range(len(pairs.outputs))]
    keys = [key_of(output) for output in pairs.outputs]
    worst = order_of_outputs(clause, found, pairs)
    evidence = tuple(_evidence(place, found, pairs) for place in worst[:SHOWN])
    status, number = all_of(judged), evidence[0].level
    needed = samples_needed(clause, number, pairs.samples) if status is Status.UNDECIDED else None
    scope, reason = (EVERY, "") if pairs.exact else (SEEN, unseen(pairs))
    if status is Status.UNDECIDED and error:
        reason = (
            f"probabilities are known to within {error:.1g}, which leaves rare outputs open; see except_probability"
        )
    shares = dict(zip(keys, map(float, pairs.marginal), strict=True))
    statuses = dict(zip(keys, judged, strict=True))
    places = dict(zip(keys, range(len(keys)), strict=True))
    return Finding(clause, status, scope, number, evidence, statuses, shares, reason, engine, needed,
                   evidence_at=lambda output: _evidence(places[output], found, pairs))  # fmt: skip


def order_of_outputs(clause: Clause, found: Levels, pairs: Pairs) -> list[int]:
    """Return the outputs, those first that surely break the limit most, then those that may."""
    sure, maybe = clause.limit.beyond(found.low, found.high)
    broken = np.where(sure > 0, sure, -np.inf)
    places: list[int] = np.lexsort((-pairs.marginal, -maybe, -broken)).tolist()
    return places


def _evidence(place: int, found: Levels, pairs: Pairs) -> Evidence:
    probability = float(pairs.marginal[place])
    told = Estimate.exactly(probability) if pairs.exact else _share_seen(probability, pairs)
    level = found.at(place, pairs)
    if pairs.copies is not None or not pairs.exact:
        return Evidence(pairs.outputs[place], level, told)
    of_output = pairs.output == place
    shares = pairs.probability[of_output]
    secrets = [pairs.secrets[k] for k in pairs.secret[of_output]]
    posterior = Belief.of(secrets, probabilities=list(shares / shares.sum()))
    return Evidence(pairs.outputs[place], level, told, posterior)


def _share_seen(share: float, pairs: Pairs) -> Estimate:
    share = min(share, 1.0)  # a sum of shares, which rounding may have put above it
    off = 1.96 * math.sqrt(share * (1 - share) / pairs.samples)
    return Estimate(share, max(0.0, share - off), min(1.0, share + off), method=pairs.method)


def unseen(pairs: Pairs) -> str:
    """Say how likely an output is that no sample had: by Good and Turing, with the bound of McAllester and Schapire."""
    once = float(np.sum(_counts(pairs) <= 1.5)) / pairs.samples
    bound = min(1.0, once + (2 * math.sqrt(2) + math.sqrt(3)) * math.sqrt(math.log(3 / 0.05) / pairs.samples))
    return f"outputs that were not seen may break it; their probability is below {bound:.1g}"


def _counts(pairs: Pairs) -> Array:
    samples: Array = pairs.marginal**2 / np.add.reduceat(pairs.squares, pairs.starts)
    return samples


def samples_needed(clause: Clause, number: Estimate, samples: float) -> int | None:
    """Return how many samples would probably tell on which side of its limit a number lies."""
    if number.exact or not math.isfinite(samples) or math.isnan(number.value):
        return None
    limits = [end for end in (clause.limit.at_most, clause.limit.at_least) if end is not None]
    near = min(limits, key=lambda end: abs(end - number.value))
    gap = abs(near - number.value)
    width = number.high - number.value if near >= number.value else number.value - number.low
    if gap == 0 or not math.isfinite(width):
        return None
    return math.ceil(samples * max((width / gap) ** 2, 1.0) * 1.2)
