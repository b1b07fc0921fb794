"""The number that a clause limits, after every output that a program can give.

`output_levels` is the one place that finds it, in one of four ways: one number for all outputs (`Constant`), a number
for each of finitely many (`Listed`), bounds by branch and bound where noise was added to a finite quantity (`Noisy`),
or the worst output that a search came across (`Searched`). Each says what it is after one output (`at`, `status_at`),
what it is at most over all of them (`sup`), and with what probability it breaks the limit (`mass_above`).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from privug.attack import Attack, Result
from privug.errors import InferenceError, PrivugError
from privug.estimate import Estimate
from privug.leakage.finite import Pairs, alike_pairs, pairs_of, shares_of
from privug.leakage.vulnerability import RARE
from privug.model.node import Array, Kind
from privug.model.values import key_of
from privug.observation.observations import Equals
from privug.policy.clause_questions import RunOptions
from privug.policy.noisy_outputs import (
    GAP,
    Bounded,
    Excess,
    bounded,
    is_settled,
    lattice_supremum,
    mass_above,
    supremum,
)
from privug.policy.policies import Clause, Levels, posterior_after
from privug.policy.verdict import Evidence, Limit, Status, all_of
from privug.progress import ProgressMeter

SHOWN = 3
"""How many of the worst outputs are shown as evidence."""
EVERY = "after every output"
SEEN = "after the outputs seen in samples"
ONE = "after this observation"
AVERAGE = "on average over outputs"

MOST_OUTPUTS = 500
"""For how many outputs posteriors are computed one by one, each by a run of its own."""

CONTINUOUS = "the output is continuous, and its density is not known exactly: round it, or look at one observation"
SEVERAL = "the output is made of several continuous numbers: look at one observation, or publish them rounded"


@dataclass(frozen=True, eq=False)
class OutputLevels(ABC):
    """The number that a clause limits after every output: the worst of them, and whether it satisfies the limit.

    `scope` says which outputs were looked at, and `evidence` shows the worst of them. `reason` says why a status is
    undecided, without values of secrets or outputs; `details` may contain such values.
    """

    clause: Clause
    status: Status
    scope: str
    worst: Estimate | None = None
    evidence: tuple[Evidence, ...] = ()
    reason: str = ""
    engine: str = ""
    needed: int | None = None
    details: str = ""

    @property
    def probabilities(self) -> Mapping[Hashable, float]:
        """The probabilities of the outputs that are listed, by their keys."""
        return {}

    @property
    def is_listed(self) -> bool:
        """Whether the status after each output is known by itself."""
        return True

    @property
    def holds_strictly(self) -> bool:
        """Whether the clause holds after every output, without any exception."""
        return self.status is Status.HOLDS

    @property
    def everywhere(self) -> Bounded | Status:
        """What is known after whichever output: bounds of the number, or a status."""
        return self.status if self.holds_strictly else Status.UNDECIDED

    def at(self, output: Hashable) -> Evidence | None:
        """Return the number after an output, by its key; None if that is not known by itself."""
        return None

    def status_at(self, output: Hashable) -> Status:
        """Return whether the clause holds after an output, by its key."""
        return self.status

    @abstractmethod
    def sup(self) -> Estimate:
        """Return the largest number after any output; its interval reaches up to what is not ruled out."""


@dataclass(frozen=True, eq=False)
class ConstantLevel(OutputLevels):
    """One number for all outputs, such as an average or the number after one observation; or why there is none."""

    @classmethod
    def of(cls, clause: Clause, number: Estimate, scope: str, engine: str, samples: float) -> "ConstantLevel":
        """Judge one number."""
        status = clause.limit.judge(number)
        needed = samples_needed(clause, number, samples) if status is Status.UNDECIDED else None
        reason = number.method if math.isnan(number.value) else ""
        return cls(clause, status, scope, number, reason=reason, engine=engine, needed=needed)

    @property
    def everywhere(self) -> Status:
        return self.status

    def sup(self) -> Estimate:
        return Estimate(0.0, 0.0, 1.0, method=f"not known: {self.reason}") if self.worst is None else self.worst


@dataclass(frozen=True, eq=False)
class ListedLevels(OutputLevels):
    """A number for each of finitely many outputs, by the keys of these."""

    levels: Mapping[Hashable, Estimate] = field(kw_only=True)
    shares: Mapping[Hashable, float] = field(kw_only=True)
    evidence_at: Callable[[Hashable], Evidence] = field(kw_only=True)
    error: float = 0.0
    """Bounds the error of exact probabilities."""

    @classmethod
    def of_pairs(cls, clause: Clause, found: Levels, pairs: Pairs, engine: str, error: float = 0.0) -> "ListedLevels":
        """Judge a number after each output of a finite joint."""
        levels = [found.at(place, pairs) for place in range(len(pairs.outputs))]
        keys = [key_of(output) for output in pairs.outputs]
        evidence = tuple(_evidence(place, found, pairs) for place in _worst_first(clause, found, pairs)[:SHOWN])
        status, number = all_of(list(map(clause.limit.judge, levels))), evidence[0].level
        needed = samples_needed(clause, number, pairs.samples) if status is Status.UNDECIDED else None
        scope, reason = (EVERY, "") if pairs.exact else (SEEN, unseen(pairs))
        if status is Status.UNDECIDED and error:
            reason = (
                f"probabilities are known to within {error:.1g}, which leaves rare outputs open; see except_probability"
            )
        places = dict(zip(keys, range(len(keys)), strict=True))
        return cls(
            clause, status, scope, number, evidence, reason, engine, needed, error=error,
            levels=dict(zip(keys, levels, strict=True)),
            shares=dict(zip(keys, map(float, pairs.marginal), strict=True)),
            evidence_at=lambda output: _evidence(places[output], found, pairs),
        )  # fmt: skip

    @classmethod
    def of_evidence(
        cls, clause: Clause, scope: str, evidence: Sequence[Evidence], shares: Iterable[float], engine: str
    ) -> "ListedLevels":
        """Judge the number after each of some outputs, all of which are given as evidence."""
        by_key = {key_of(one.output): one for one in evidence}
        judged = {key: clause.limit.judge(one.level) for key, one in by_key.items()}
        worst = sorted(by_key, key=lambda key: (RANK.index(judged[key]), -_excess(clause, by_key[key])))[:SHOWN]
        return cls(
            clause, all_of(list(judged.values())), scope, by_key[worst[0]].level, tuple(by_key[key] for key in worst),
            engine=engine,
            levels={key: one.level for key, one in by_key.items()},
            shares=dict(zip(by_key, shares, strict=True)),
            evidence_at=by_key.__getitem__,
        )  # fmt: skip

    @property
    def probabilities(self) -> Mapping[Hashable, float]:
        return self.shares

    def at(self, output: Hashable) -> Evidence | None:
        return self.evidence_at(output)

    def status_at(self, output: Hashable) -> Status:
        return self.clause.limit.judge(self.levels[output]) if output in self.levels else Status.UNDECIDED

    def sup(self) -> Estimate:
        if self.scope != EVERY:
            return lower_bound(max(self.levels.values(), key=lambda one: one.low), "outputs seldom seen may tell more")
        likely = [one for key, one in self.levels.items() if self.shares[key] > RARE * self.error]
        found = max(likely or self.levels.values(), key=lambda one: one.value)
        if not self.error:
            return found
        return lower_bound(found, f"outputs of probability below {RARE * self.error:.0e} may tell more")

    def with_missing(self, keys: Iterable[Hashable]) -> "ListedLevels":
        """Return the same levels with further outputs, after which the number is not known."""
        missing = [key for key in keys if key not in self.levels]
        if not missing:
            return replace(self, reason="")
        reason = "some outputs came up too rarely to be judged"
        return replace(
            self,
            status=all_of([self.status, Status.UNDECIDED]),
            levels={**self.levels, **dict.fromkeys(missing, Estimate.undefined(reason))},
            shares={**self.shares, **dict.fromkeys(missing, 0.0)},
            reason=reason,
        )


@dataclass(frozen=True, eq=False)
class NoisyLevels(OutputLevels):
    """Bounds of the number after every output of a finite quantity plus noise.

    Of discrete noise, outputs that are not too rare are `listed` as well.
    """

    bounded: Bounded = field(kw_only=True)
    listed: ListedLevels | None = None
    excepts: bool = False
    """Whether the clause holds except for outputs of the probability that is allowed."""

    @property
    def probabilities(self) -> Mapping[Hashable, float]:
        return {} if self.listed is None else self.listed.probabilities

    @property
    def is_listed(self) -> bool:
        return self.listed is not None

    @property
    def holds_strictly(self) -> bool:
        return self.status is Status.HOLDS and not self.excepts

    @property
    def everywhere(self) -> Bounded:
        return self.bounded

    def at(self, output: Hashable) -> Evidence | None:
        return None if self.listed is None else self.listed.at(output)

    def status_at(self, output: Hashable) -> Status:
        return self.status if self.listed is None else self.listed.status_at(output)

    def sup(self) -> Estimate:
        if self.listed is None:
            assert self.worst is not None
            return self.worst
        proven = _proven(self.bounded)
        return self.listed.sup() if proven is None else proven[1].level

    def mass_above(self, allowed: float) -> tuple[Status, str]:
        """Return whether the clause holds except for outputs of a probability of at most `allowed`."""
        excess = Excess.of(self.clause, {self.clause: [self.bounded]})
        assert excess is not None
        return except_for(excess, allowed)


@dataclass(frozen=True, eq=False)
class SearchedLevels(OutputLevels):
    """The worst of the outputs that were tried, where nothing is known about the others."""

    @property
    def is_listed(self) -> bool:
        return False

    def sup(self) -> Estimate:
        assert self.worst is not None
        return lower_bound(self.worst, "other outputs may tell more")


RANK = (Status.VIOLATED, Status.UNDECIDED, Status.HOLDS)


def output_levels(
    question: Attack, clause: Clause, result: Result, options: RunOptions, allowed: float = 0.0
) -> OutputLevels:
    """Return the number that a clause limits after every output, from a result for the question that it asks.

    Outputs of a probability of at most `allowed` may break the limit.
    """
    if clause.on_average:
        joint = result.joint
        return ConstantLevel.of(clause, clause.average(joint), AVERAGE, result.engine, joint.effective_samples)
    if result.observation is not None:
        number = clause.after(result.prior, result.posterior)
        return ConstantLevel.of(clause, number, ONE, result.engine, result.posterior.effective_samples)
    joint = result.joint
    if joint.output.kind is not Kind.DISCRETE:
        if joint.exact:
            return _of_continuous_outputs(question, clause, result, allowed)
        return ConstantLevel(clause, Status.UNDECIDED, SEEN, reason=CONTINUOUS, engine=result.engine)
    collected = alike_pairs if clause.counts_secrets_alike else pairs_of
    pairs = collected(joint) if joint.secret.kind is Kind.DISCRETE else None
    error = max(joint.secret.error, joint.output.error)
    found = None if pairs is None else clause.levels(pairs, result.prior, error)
    if pairs is None or found is None:
        return one_by_one(question, clause, result, options)
    listed = ListedLevels.of_pairs(clause, found, pairs, result.engine, error)
    return _of_endless_outputs(question, clause, result, listed, allowed) if error else listed


def one_by_one(question: Attack, clause: Clause, result: Result, options: RunOptions) -> OutputLevels:
    """Return the number of a clause by conditioning on each output that the program can give."""
    known = shares_of(result.prediction)
    if len(known) > MOST_OUTPUTS:
        reason = f"there are {len(known):,} outputs, each of which would need a run of its own; round the output"
        return ConstantLevel(clause, Status.UNDECIDED, EVERY, reason=reason, engine=result.engine)
    evidence: list[Evidence] = []
    shares = [float(share) for share in known.probability]
    reason, details = "", ""
    with ProgressMeter("outputs", len(known)) as meter:
        for done, (output, probability) in enumerate(zip(known.values, shares, strict=True)):
            share = Estimate.exactly(probability) if known.exact else None
            try:
                given = options.run(question, Equals(output))
                evidence.append(Evidence(output, clause.after(given.prior, given.posterior), share, given.posterior))
            except InferenceError as error:
                reason, details = no_answer(error)
                evidence.append(Evidence(output, Estimate.undefined(reason), share))
            meter.update(done + 1, "")
    scope = EVERY if result.prediction.exact else SEEN
    found = ListedLevels.of_evidence(clause, scope, evidence, shares, result.engine)
    assert found.worst is not None
    undecided = found.status is Status.UNDECIDED
    needed = samples_needed(clause, found.worst, result.posterior.effective_samples) if undecided else None
    return replace(found, needed=needed, reason=reason, details=details)


def _excess(clause: Clause, one: Evidence) -> float:
    value = clause.limit.excess(one.level.value)
    return value if value == value else 0.0


def no_answer(error: InferenceError) -> tuple[str, str]:
    """Return that an engine has no answer, and its message, which may contain values of secrets and outputs."""
    message = "; ".join(line.strip() for line in str(error).splitlines())
    return f"no trustworthy answer came out ({type(error).__name__})", message


def lower_bound(found: Estimate, why: str) -> Estimate:
    """Return a number that is found, as one that others may exceed."""
    return Estimate(found.value, found.low, 1.0, method=f"lower bound: {why}")


def _worst_first(clause: Clause, found: Levels, pairs: Pairs) -> list[int]:
    """Return the outputs, those first that surely break the limit most, then those that may."""
    sure, maybe = clause.limit.beyond(found.low, found.high)
    broken = np.where(sure > 0, sure, -np.inf)
    places: list[int] = np.lexsort((-pairs.marginal, -maybe, -broken)).tolist()
    return places


def _evidence(place: int, found: Levels, pairs: Pairs) -> Evidence:
    probability = float(pairs.marginal[place])
    share = Estimate.exactly(probability) if pairs.exact else _share_seen(probability, pairs)
    posterior = None if pairs.copies is not None or not pairs.exact else posterior_after(pairs, place)
    return Evidence(pairs.outputs[place], found.at(place, pairs), share, posterior)


def _share_seen(share: float, pairs: Pairs) -> Estimate:
    share = min(share, 1.0)  # a sum of shares, which rounding may have put above it
    off = 1.96 * math.sqrt(share * (1 - share) / pairs.samples)
    return Estimate(share, max(0.0, share - off), min(1.0, share + off), method=pairs.method)


def unseen(pairs: Pairs) -> str:
    """Return how likely an unseen output is: by Good and Turing, with the bound of McAllester and Schapire."""
    counts: Array = pairs.marginal**2 / np.add.reduceat(pairs.squares, pairs.starts)
    once = float(np.sum(counts <= 1.5)) / pairs.samples
    bound = min(1.0, once + (2 * math.sqrt(2) + math.sqrt(3)) * math.sqrt(math.log(3 / 0.05) / pairs.samples))
    return f"outputs that were not seen may break it; their probability is below {bound:.1g}"


def samples_needed(clause: Clause, number: Estimate, samples: float) -> int | None:
    """Return how many samples would probably show on which side of its limit a number lies."""
    if number.exact or not math.isfinite(samples) or math.isnan(number.value):
        return None
    limits = [end for end in (clause.limit.at_most, clause.limit.at_least) if end is not None]
    near = min(limits, key=lambda end: abs(end - number.value))
    gap = abs(near - number.value)
    width = number.high - number.value if near >= number.value else number.value - number.low
    if gap == 0 or not math.isfinite(width):
        return None
    return math.ceil(samples * max((width / gap) ** 2, 1.0) * 1.2)


def _of_continuous_outputs(question: Attack, clause: Clause, result: Result, allowed: float) -> OutputLevels:
    """Return the number after all values of a continuous output, whose density is known exactly."""
    number = bounded(question, clause, result, Kind.CONTINUOUS)
    if number is None:
        return _searched(question, clause, result)
    proven = _proven(number)
    assert proven is not None
    status, worst = proven
    found = NoisyLevels(clause, status, EVERY, worst.level, (worst,), engine=result.engine, bounded=number)
    if not allowed or status is Status.HOLDS:
        return found
    status, reason = found.mass_above(allowed)
    return replace(found, status=status, reason=reason, excepts=status is Status.HOLDS)


def _of_endless_outputs(
    question: Attack, clause: Clause, result: Result, listed: ListedLevels, allowed: float
) -> OutputLevels:
    """Return the number where integers without an end are added, however rare the outputs far out.

    `listed` is what is known of the outputs that are not that rare; it is returned if that is all there is.
    """
    number = bounded(question, clause, result, Kind.DISCRETE)
    if number is None or all(map(math.isfinite, number.mixture.noise.ends())):
        return listed
    found = NoisyLevels(
        clause, listed.status, listed.scope, listed.worst, listed.evidence, listed.reason, listed.engine,
        listed.needed, bounded=number, listed=listed,
    )  # fmt: skip
    proven = _proven(number) if listed.status is Status.UNDECIDED else None
    if proven is None or (allowed and proven[0] is not Status.HOLDS):
        return found
    status, worst = proven
    return replace(found, status=status, worst=worst.level, evidence=(worst,), reason="", needed=None)


def except_for(excess: Excess, allowed: float) -> tuple[Status, str]:
    """Return whether a policy holds except for outputs of the probability that is allowed, and how likely these are."""
    least, most = mass_above(excess, 0.0, allowed)
    reason = f"outputs of probability {least:.3g} to {most:.3g} break it"
    if most <= allowed:
        return Status.HOLDS, reason
    return (Status.VIOLATED if least > allowed else Status.UNDECIDED), reason


def _proven(number: Bounded) -> tuple[Status, Evidence] | None:
    """Bound the number from both sides, for each end of its limit."""
    largest = lattice_supremum if number.mixture.noise.family.kind is Kind.DISCRETE else supremum
    limit, found = number.clause.limit, []
    for sign, end in ((1, limit.at_most), (-1, limit.at_least)):
        if end is not None:
            highest = largest(number if sign > 0 else number.turned, partial(_is_decided, sign * end))
            if highest is None:
                return None
            low, high = sorted((sign * highest.value, sign * max(highest.value, highest.ceiling)))
            is_exact = high - low <= 10 * GAP or high == low
            level = Estimate(sign * highest.value, low, high, method=highest.method, exact=is_exact)
            one_sided = Limit(at_most=end) if sign > 0 else Limit(at_least=end)
            found.append((one_sided.judge(level), Evidence(highest.output, level)))
    status = all_of([one for one, _ in found])
    return status, max((one for other, one in found if other is status), key=lambda one: limit.excess(one.level.value))


def _is_decided(limit: float, value: float, ceiling: float) -> bool:
    """Return whether it is known on which side of its limit the largest number lies, and what it is to some digits."""
    return is_settled(limit, value, ceiling) and ceiling - value <= 1e-6 * max(1.0, abs(value))


TAILS = (1e-9, 1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.15, 0.3)
"""Tails of the output's distribution at which posteriors are computed where nothing is proven."""
REFINEMENTS = 8
NORMAL = "exact (gaussian)"

NO_CERTIFICATE = "nothing proves that no other output breaks it: only additive noise on discrete inputs can be bounded"


def _searched(question: Attack, clause: Clause, result: Result) -> OutputLevels:
    """Search for an output that breaks the limit, without a proof that there is none."""
    output = result.prediction
    if output.batch.numbers() is None:
        return ConstantLevel(clause, Status.UNDECIDED, EVERY, reason=SEVERAL, engine=result.engine)
    levels = [*TAILS, 0.5, *(1 - tail for tail in reversed(TAILS))]
    search = _OutputSearch(question, clause, result)
    places = sorted({output.quantile(level).value for level in levels})
    with ProgressMeter("searching outputs", len(places) + REFINEMENTS) as meter:
        for place in places:
            search.look_at(place)
            meter.update(len(search.tried), "")
        for _ in range(REFINEMENTS if search.tried else 0):
            if clause.limit.excess(search.worst.level.value) > 0:
                break
            found = [search.look_at(place) for place in search.beside()]
            if not any(found):
                break
            meter.update(len(search.tried), "")
    if not search.tried:
        return ConstantLevel(
            clause, Status.UNDECIDED, EVERY, reason="no posterior can be computed", engine=result.engine
        )
    worst = search.worst
    status = clause.limit.judge(worst.level)
    if status is not Status.VIOLATED and search.finds_the_same_everywhere():
        return ConstantLevel(clause, status, EVERY, worst.level, (worst,), engine=result.engine)
    reason = ""
    if status is not Status.VIOLATED:
        status = Status.UNDECIDED
        reason = f"none of {len(search.tried)} outputs that were tried breaks it, but {NO_CERTIFICATE}"
    return SearchedLevels(clause, status, EVERY, worst.level, (worst,), reason=reason, engine=result.engine)


@dataclass(frozen=True, eq=False)
class _OutputSearch:
    """Continuous outputs that are tried one by one."""

    question: Attack
    clause: Clause
    result: Result
    tried: dict[float, Evidence] = field(default_factory=dict)

    def look_at(self, place: float) -> bool:
        """Compute the number after an output; False if it is not new, or cannot be computed."""
        if place in self.tried or not math.isfinite(place):
            return False
        try:
            given = self.question.run(Equals(place), engine="exact")
            level = self.clause.after(self.result.prior, given.posterior)
        except PrivugError:  # of an output that is impossible, or that cannot be computed so far out
            return False
        if not math.isnan(level.value):
            self.tried[place] = Evidence(place, level, None, given.posterior)
        return True

    @property
    def worst(self) -> Evidence:
        """The output that breaks the limit most, or comes nearest to it."""
        return max(self.tried.values(), key=lambda one: self.clause.limit.excess(one.level.value))

    def beside(self) -> list[float]:
        """Return the outputs half-way from the worst one found to its neighbours."""
        places = sorted(self.tried)
        at = places.index(self.worst.output)
        neighbours = places[max(at - 1, 0) : at] + places[at + 1 : at + 2]
        return [
            (places[at] + other) / 2 for other in neighbours if abs(places[at] - other) > GAP * max(1.0, abs(other))
        ]

    def finds_the_same_everywhere(self) -> bool:
        """Return whether the number cannot depend on the output: the spread of a normal posterior does not."""
        if not self.clause.is_spread or self.result.engine != NORMAL:
            return False
        found = [one.level.value for one in self.tried.values()]
        return max(found) - min(found) <= 1e-9 * max(found)
