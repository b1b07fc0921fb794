"""Continuous outputs: the one after which a policy is broken most, by branch and bound, with a certificate.

Given each value of that quantity, a location, the output has a density that is the same log-concave curve at another
place. The ratio of two such densities is monotone in the output (monotone likelihood ratio), so between two outputs
every ratio lies between its values at both; and so the posterior lies between bounds that close in on each other as the
outputs do.

On stretches of outputs a number lies between bounds that close in on each other as the stretches are halved. Stretches
whose upper bound is below what was already found elsewhere are dropped, the others are halved.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from privug.attack import Attack, Result
from privug.errors import InferenceError, PrivugError, UnsuitableEngine
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.engines import ENGINES
from privug.inference.question import AddedNoise, QuestionOfLocation, added_noise
from privug.leakage.finite import Pairs, pairs_of
from privug.model.node import Array, Kind
from privug.model.values import key_of
from privug.observation.observations import Equals
from privug.policy.policies import Clause, Levels, Policy
from privug.policy.verdict import Evidence, Limit, Status, all_of
from privug.progress import ProgressMeter

SAME = 1e-12
"""How far apart locations may lie, relative to the largest, that differ by rounding only."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """Secrets and locations with their probabilities, and the noise that is added to the location."""

    noise: AddedNoise
    location: Array
    secret: Array
    weight: Array
    secrets: int

    @classmethod
    def of(cls, noise: AddedNoise, pairs: Pairs) -> "Mixture":
        """Make the mixture of the joint of the secret and the output without noise."""
        locations = _without_rounding(np.array([float(value) for value in pairs.outputs]))
        return cls(noise, locations[pairs.output], pairs.secret, pairs.probability, len(pairs.secrets))

    def aligned(self, other: "Mixture") -> "Mixture | None":
        """Return this mixture with another one's locations, which differ by rounding only; None if they differ more."""
        own, places = np.unique(self.location, return_inverse=True)
        wanted = np.unique(other.location)
        if len(own) != len(wanted) or np.any(np.abs(own - wanted) > SAME * np.abs(wanted).max()):
            return None
        return replace(self, location=wanted[places])

    def breaks(self) -> Array:
        """Return the outputs at which some density is not smooth, begins or ends; at least one."""
        smooth = [float(kink) * self.noise.factor for kink in self.noise.family.kinks(*self.noise.parameters)]  # type: ignore[attr-defined]
        places = [place for place in (*smooth, *self.noise.ends()) if math.isfinite(place)] or [0.0]
        return np.unique(np.add.outer(np.unique(self.location), places))

    def stretches(self) -> tuple[Array, Array]:
        """Return the beginnings and ends of stretches of possible outputs, cut where densities are not smooth."""
        breaks, (low, high) = self.breaks(), self.noise.ends()
        outer = [-math.inf] if math.isinf(low) else [], [math.inf] if math.isinf(high) else []
        edges = np.concatenate([outer[0], breaks, outer[1]])
        begin, end = edges[:-1], edges[1:]
        possible = np.isfinite(self.log_weights(self.inside(begin, end))).any(axis=1)
        return begin[possible], end[possible]

    def inside(self, begin: Array, end: Array) -> Array:
        """Return an output inside of each stretch, a whole number where the noise is one."""
        places = between(begin, end)
        return np.round(places) if self.noise.family.kind is Kind.DISCRETE else places

    def points(self, begin: Array, end: Array) -> list[Array]:
        """Return outputs of stretches at which posteriors are computed; on edges of densities they mean nothing."""
        inside = [self.inside(begin, end)]
        return inside if any(map(math.isfinite, self.noise.ends())) else [*inside, begin, end]

    def log_weights(self, output: Array) -> Array:
        """Return the log of the probability of each component times its density, a row for each output."""
        return self._weighted(output[:, np.newaxis] - self.location)

    def _weighted(self, distance: Array) -> Array:
        return np.log(self.weight) + self.noise.log_density(distance)

    def shares(self, output: Array) -> Array:
        """Return the posterior of each secret, a row for each output; not a number where there is no density."""
        logs = self.log_weights(output)
        top = logs.max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            sums = self._by_secret(np.exp(logs - top))
            found: Array = sums / sums.sum(axis=1, keepdims=True)
        return found

    def _by_secret(self, numbers: Array) -> Array:
        order = np.argsort(self.secret, kind="stable")
        starts = np.flatnonzero(np.diff(self.secret[order], prepend=-1))
        found = np.zeros((len(numbers), self.secrets))
        found[:, self.secret[order][starts]] = np.add.reduceat(numbers[:, order], starts, axis=1)
        return found

    def bounds(self, begin: Array, end: Array) -> tuple[Array, Array]:
        """Return bounds of the posterior of each secret on each stretch, which no edge of a density lies in."""
        alive = np.isfinite(self.log_weights(self.inside(begin, end)))
        at_begin, at_end = self._ratios(begin, end, alive, 0), self._ratios(begin, end, alive, 1)
        low, high = np.minimum(at_begin, at_end), np.maximum(at_begin, at_end)
        top = high.max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            least, most = (self._by_secret(np.exp(part - top)) for part in (low, high))
            others = most.sum(axis=1, keepdims=True) - most, least.sum(axis=1, keepdims=True) - least
            lower, upper = least / (least + np.maximum(others[0], 0.0)), most / (most + np.maximum(others[1], 0.0))
        return np.nan_to_num(lower, nan=0.0), np.nan_to_num(upper, nan=0.0)

    def mass(self, begin: Array, end: Array) -> Array:
        """Return the probability that the output lies in each stretch."""
        law = self.noise.family.frozen(*self.noise.parameters)  # type: ignore[attr-defined]
        edges = [(edge[:, np.newaxis] - self.location) / self.noise.factor for edge in (begin, end)]
        low, high = np.minimum(*edges), np.maximum(*edges)
        # In the upper tail the distribution function has no digits left.
        upper = law.cdf(low) > 0.5
        shares = np.where(upper, law.sf(low) - law.sf(high), law.cdf(high) - law.cdf(low))
        masses: Array = shares @ self.weight
        return masses

    def _ratios(self, begin: Array, end: Array, alive: Array, side: int) -> Array:
        """Return the log of each component's weight over that of a component that is there all along, at one end."""
        rows = np.arange(len(begin))
        # Towards an end that is not there, the component that lies furthest out is the one that is left.
        outward = self.location * np.where(np.isinf(end), 1.0, -1.0)[:, np.newaxis]
        reference = np.argmax(np.where(alive, outward, -np.inf), axis=1)
        place = np.where(np.isfinite((begin, end)[side]), (begin, end)[side], (end, begin)[side])
        low, high = self.noise.ends()
        distance = np.clip(place[:, np.newaxis] - self.location, low, high)  # which rounding may put outside
        logs = np.where(alive, self._weighted(distance), -np.inf)
        ratios: Array = logs - logs[rows, reference][:, np.newaxis]
        if not self.noise.family.log_linear_tails:  # there a ratio falls on, how far is not known
            falling = np.isinf((begin, end)[side])[:, np.newaxis] & (
                self.location != self.location[reference][:, np.newaxis]
            )
            ratios = np.where(falling, -np.inf, ratios)
        return ratios


def _without_rounding(locations: Array) -> Array:
    """Return numbers that differ by rounding as one: 0.1 + 0.2 and 0.3 are the same place."""
    order = np.argsort(locations, kind="stable")
    new = np.diff(locations[order], prepend=-np.inf) > SAME * np.abs(locations).max(initial=0.0)
    found = np.empty(len(locations))
    found[order] = locations[order][np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))]
    return found


def between(begin: Array, end: Array) -> Array:
    """Return an output inside of each stretch: its middle, or one beyond the end that there is."""
    span = np.abs(np.where(np.isfinite(begin), begin, end)) + 1.0
    low, high = np.where(np.isinf(begin), end - span, begin), np.where(np.isinf(end), begin + span, end)
    low, high = np.where(np.isinf(low), -1.0, low), np.where(np.isinf(high), 1.0, high)
    middle: Array = low / 2 + high / 2
    return middle


UNKNOWN: Mapping[Status, tuple[float, float]] = {
    Status.HOLDS: (-np.inf, -np.inf),
    Status.VIOLATED: (np.inf, np.inf),
    Status.UNDECIDED: (-np.inf, np.inf),
}
"""Bounds of by how much a part is broken after each output, of which no more than its status is known."""


@dataclass(frozen=True, eq=False)
class Bounded:
    """The number of a clause after outputs that are a finite quantity plus noise; times -1 if it is turned around."""

    clause: Clause
    mixture: Mixture
    secrets: Sequence[Any]
    prior: Belief
    sign: int = 1

    @property
    def size(self) -> int:
        """How many densities are computed for one output."""
        return len(self.mixture.location)

    @property
    def turned(self) -> Self:
        """The same number times -1."""
        return replace(self, sign=-self.sign)

    def on(self, begin: Array, end: Array) -> Levels:
        """Return bounds of the number on each stretch of outputs."""
        return self._between(*self.mixture.bounds(begin, end))

    def at(self, outputs: Array) -> Levels:
        """Return the number at each output; not a number where the output cannot be."""
        shares = self.mixture.shares(outputs)
        there = np.isfinite(shares).all(axis=1)
        found = Levels(*(np.full(len(outputs), np.nan) for _ in range(3)))
        for numbers, known in zip(found, self._between(shares[there], shares[there]), strict=True):
            numbers[there] = known
        return found

    def _between(self, low: Array, high: Array) -> Levels:
        levels = self.clause.between(low, high, self.secrets, self.prior)
        assert levels is not None
        return levels if self.sign > 0 else Levels(-levels.value, -levels.high, -levels.low)


def bounded(question: Attack, clause: Clause, result: Result, kind: Kind) -> Bounded | None:
    """Return the number of a clause with its bounds, where the output is a finite quantity plus noise of a kind."""
    noise = added_noise(question.question, kind)
    if noise is None:
        return None
    try:
        answer = ENGINES["exact"](QuestionOfLocation.of(question.question, noise), None, samples=1, seed=0)
        pairs = pairs_of(answer.joint())
    except (InferenceError, UnsuitableEngine):
        return None
    anything = np.ones((1, len(pairs.secrets)))
    if clause.between(anything, anything, pairs.secrets, result.prior) is None:
        return None
    return Bounded(clause, Mixture.of(noise, pairs), pairs.secrets, result.prior)


@dataclass(frozen=True, eq=False)
class Excess:
    """By how much a policy of several parts is broken after each output: not positive where it is kept.

    Of each clause there is a part for each person: its number with bounds, or its status, where that is the same after
    all outputs.
    """

    policy: Policy
    parts: Mapping[Clause, Sequence[Bounded | Status]]
    mixture: Mixture

    @classmethod
    def of(cls, policy: Policy, parts: Mapping[Clause, Sequence[Bounded | Status]]) -> Self | None:
        """Join the parts of a policy; None if there are no bounds of any, or if they are about different outputs."""
        known = [part for several in parts.values() for part in several if isinstance(part, Bounded)]
        if not known:
            return None
        first = known[0].mixture
        if any(part.mixture.aligned(first) is None for part in known):
            return None
        return cls(policy, {clause: [_aligned(part, first) for part in parts[clause]] for clause in parts}, first)

    @property
    def size(self) -> int:
        """How many densities are computed for one output."""
        return sum(part.size for several in self.parts.values() for part in several if isinstance(part, Bounded))

    def on(self, begin: Array, end: Array) -> Levels:
        """Return bounds of the excess on each stretch of outputs."""
        return self._joined(lambda part: part.on(begin, end), len(begin))

    def at(self, outputs: Array) -> Levels:
        """Return bounds of the excess at each output; not a number where the output cannot be."""
        return self._joined(lambda part: part.at(outputs), len(outputs))

    def _joined(self, levels: Callable[[Bounded], Levels], count: int) -> Levels:
        found = {clause: [_beyond(part, levels, count) for part in several] for clause, several in self.parts.items()}
        least = self.policy.excess(lambda clause: reduce(np.maximum, [low for low, _ in found[clause]]))
        most = self.policy.excess(lambda clause: reduce(np.maximum, [high for _, high in found[clause]]))
        return Levels(least, least, most)


def _aligned(part: Bounded | Status, mixture: Mixture) -> Bounded | Status:
    if isinstance(part, Status):
        return part
    own = part.mixture.aligned(mixture)
    assert own is not None
    return replace(part, mixture=own)


def _beyond(part: Bounded | Status, levels: Callable[[Bounded], Levels], count: int) -> tuple[Array, Array]:
    if isinstance(part, Status):
        least, most = UNKNOWN[part]
        return np.full(count, least), np.full(count, most)
    found = levels(part)
    return part.clause.limit.beyond(found.low, found.high)


GAP = 1e-9
"""How far the bounds of the largest number may lie apart in the end."""
MOST_ROUNDS = 200
MOST_NUMBERS = 20_000_000
"""How many densities are computed in all, at most."""
MOST_AT_ONCE = 2_000_000


class Supremum(NamedTuple):
    """The largest number found, at which output, and what no output exceeds."""

    output: float
    value: float
    ceiling: float
    stretches: int


class Surface(Protocol):
    """A number that depends on the output: its bounds on stretches of outputs, and what it is at single ones."""

    @property
    def mixture(self) -> Mixture:
        """The distribution of the output."""

    @property
    def size(self) -> int:
        """How many densities are computed for one output."""

    def on(self, begin: Array, end: Array) -> Levels:
        """Return bounds of the number on each stretch."""

    def at(self, outputs: Array) -> Levels:
        """Return the number at each output, or bounds of it; not a number where the output cannot be."""


def supremum(surface: Surface, enough: Callable[[float, float], bool]) -> Supremum:
    """Return the largest number over all outputs, once its bounds are close, or `enough` is known of them."""
    mixture = surface.mixture
    begin, end = mixture.stretches()
    best, value, computed, looked = between(begin, end)[0], -math.inf, 0, 0
    ceiling, dropped = math.inf, -math.inf
    step = max(1, MOST_AT_ONCE // len(mixture.location))
    for _ in range(MOST_ROUNDS):
        upper = np.empty(len(begin))
        for start in range(0, len(begin), step):
            part = slice(start, start + step)
            upper[part] = surface.on(begin[part], end[part]).high
            for points in mixture.points(begin[part], end[part]):
                found = _best_of(surface, points)
                if found is not None and found[1] > value:
                    best, value = found
        computed += 6 * len(begin) * surface.size
        looked += len(begin)
        ceiling = max(value, dropped, float(upper.max(initial=-math.inf)))
        going_on = upper > value + GAP
        dropped = max(dropped, float(upper[~going_on].max(initial=-math.inf)))
        begin, end = begin[going_on], end[going_on]
        if not len(begin) or computed > MOST_NUMBERS or enough(value, ceiling):
            break
        middle = between(begin, end)
        begin, end = np.concatenate([begin, middle]), np.concatenate([middle, end])
    return Supremum(float(best), value, ceiling, looked)


def lattice_supremum(surface: Surface, enough: Callable[[float, float], bool]) -> Supremum | None:
    """Return the largest number over all outputs where noise and what it is added to are whole numbers.

    Outputs up to a place are looked at one by one, and all beyond it together. None if they are no whole numbers.
    """
    mixture = surface.mixture
    if abs(mixture.noise.factor) != 1 or np.any(mixture.location != np.round(mixture.location)):
        return None
    ends, best, value = mixture.noise.ends(), 0.0, -math.inf
    reach = 8.0
    while reach * surface.size <= MOST_AT_ONCE:
        first = mixture.location.min() + (ends[0] if math.isfinite(ends[0]) else -reach)
        last = mixture.location.max() + (ends[1] if math.isfinite(ends[1]) else reach)
        found = _best_of(surface, np.arange(first, last + 1))
        if found is not None and found[1] > value:
            best, value = found
        beyond = [(-math.inf, first)] * math.isinf(ends[0]) + [(last, math.inf)] * math.isinf(ends[1])
        begin, end = (np.array(side) for side in zip(*beyond, strict=True))
        ceiling = max(value, float(surface.on(begin, end).high.max()))
        if ceiling - value <= GAP or enough(value, ceiling):
            break
        reach *= 2
    return Supremum(best, value, ceiling, int(last - first) + 3)


def mass_above(surface: Surface, limit: float, allowed: float) -> tuple[float, float]:
    """Return bounds of the probability of outputs after which a number exceeds a limit.

    They are made narrower until it is known whether they are on the same side of what is allowed, or nearly equal.
    """
    mixture = surface.mixture
    begin, end = mixture.stretches()
    above = computed = 0.0
    for _ in range(MOST_ROUNDS):
        levels = surface.on(begin, end)
        masses = mixture.mass(begin, end)
        sure, open_still = levels.low > limit, (levels.low <= limit) & (levels.high > limit)
        above += float(masses[sure].sum())
        doubtful = float(masses[open_still].sum())
        computed += 4 * len(begin) * surface.size
        if above > allowed or above + doubtful <= allowed or computed > MOST_NUMBERS:
            break
        begin, end = begin[open_still], end[open_still]
        middle = between(begin, end)
        begin, end = np.concatenate([begin, middle]), np.concatenate([middle, end])
    return above, above + doubtful


def _best_of(surface: Surface, points: Array) -> tuple[float, float] | None:
    points = points[np.isfinite(points)]
    values = surface.at(points).value if len(points) else np.empty(0)
    there = ~np.isnan(values)
    if not there.any():
        return None
    place = int(np.argmax(values[there]))
    return float(points[there][place]), float(values[there][place])


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


SEARCHED = (1e-9, 1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.15, 0.3)
"""Tails of the output's distribution at which posteriors are computed where nothing is proven."""
REFINEMENTS = 8
NORMAL = "exact (gaussian)"

NO_CERTIFICATE = "nothing proves that no other output breaks it: only additive noise on discrete inputs can be bounded"


def over_continuous_outputs(question: Attack, clause: Clause, result: Result, allowed: float) -> Finding:
    """Return the finding of a clause over all values of a continuous output, whose density is known exactly.

    Outputs of the probability that is allowed may break it.
    """
    number = bounded(question, clause, result, Kind.CONTINUOUS)
    if number is None:
        return _searched(question, clause, result)
    proven = _proven(number, supremum)
    assert proven is not None
    status, worst = proven
    found = Finding(clause, status, EVERY, worst.level, (worst,), engine=result.engine, bounded=number)
    if not allowed or status is Status.HOLDS:
        return found
    excess = Excess.of(clause, {clause: [number]})
    assert excess is not None
    status, reason = but_for(excess, allowed)
    return replace(found, status=status, reason=reason, excepts=status is Status.HOLDS)


def over_endless_outputs(question: Attack, clause: Clause, result: Result, listed: Finding, allowed: float) -> Finding:
    """Return the finding of a clause where whole numbers without an end are added, however rare the outputs far out.

    `listed` is what is known of the outputs that are not that rare; it is returned if that is all there is.
    """
    number = bounded(question, clause, result, Kind.DISCRETE)
    if number is None or all(map(math.isfinite, number.mixture.noise.ends())):
        return listed
    found = replace(listed, bounded=number)
    proven = _proven(number, lattice_supremum) if listed.status is Status.UNDECIDED else None
    if proven is None or (allowed and proven[0] is not Status.HOLDS):
        return found
    status, worst = proven
    return replace(found, status=status, worst=worst.level, evidence=(worst,), reason="", needed=None)


class Whole(NamedTuple):
    """Whether a policy of several parts holds, a remark, and outputs that break all of it: evidence for some part."""

    status: Status
    reason: str = ""
    evidence: tuple[tuple[Clause, Evidence], ...] = ()


def over_all_outputs(policy: Policy, parts: Mapping[Clause, Sequence[Bounded | Status]], allowed: float) -> Whole:
    """Say whether a policy of several parts holds after outputs that cannot be listed, and how likely others are.

    What counts is the whole policy after one and the same output: of `a | b` both must be broken by it, and outputs
    that break several parts are left out once.
    """
    excess = Excess.of(policy, parts)
    if excess is None:
        return Whole(Status.UNDECIDED)
    whole_numbers = excess.mixture.noise.family.kind is Kind.DISCRETE
    found = (lattice_supremum if whole_numbers else supremum)(excess, partial(_is_settled, 0.0))
    if found is None:
        return Whole(Status.UNDECIDED)
    if found.ceiling <= 0:
        return Whole(Status.HOLDS)
    if allowed:
        return Whole(Status.UNDECIDED) if whole_numbers else Whole(*but_for(excess, allowed))
    if found.value <= 0:
        return Whole(Status.UNDECIDED)
    return Whole(Status.VIOLATED, evidence=_at_output(excess, found))


def _at_output(excess: Excess, found: Supremum) -> tuple[tuple[Clause, Evidence], ...]:
    """Return what each part that an output breaks says of it, the one that it breaks most first."""
    told = []
    method = f"branch and bound, {found.stretches:,} stretches of outputs"
    for several in excess.parts.values():
        for part in several:
            if isinstance(part, Bounded):
                value = float(part.at(np.array([found.output])).value[0])
                told.append((part.clause, Evidence(found.output, Estimate.exactly(value, method=method))))
    broken = [one for one in told if one[0].limit.judge(one[1].level) is Status.VIOLATED]
    return tuple(sorted(broken, key=lambda one: -one[0].limit.excess(one[1].level.value)))


def but_for(excess: Excess, allowed: float) -> tuple[Status, str]:
    """Say whether a policy holds but for outputs of the probability that is allowed, and how likely these are."""
    least, most = mass_above(excess, 0.0, allowed)
    reason = f"outputs of probability {least:.3g} to {most:.3g} break it"
    if most <= allowed:
        return Status.HOLDS, reason
    return (Status.VIOLATED if least > allowed else Status.UNDECIDED), reason


def _proven(number: Bounded, largest: Callable[..., Supremum | None]) -> tuple[Status, Evidence] | None:
    """Bound the number from both sides, for each end of its limit."""
    limit, found = number.clause.limit, []
    for sign, end in ((1, limit.at_most), (-1, limit.at_least)):
        if end is not None:
            highest = largest(number if sign > 0 else number.turned, partial(_is_decided, sign * end))
            if highest is None:
                return None
            found.append(_judged(sign, end, highest))
    status = all_of([one for one, _ in found])
    return status, max((one for other, one in found if other is status), key=lambda one: limit.excess(one.level.value))


def _is_settled(limit: float, value: float, ceiling: float) -> bool:
    """Say whether it is known on which side of its limit the largest number lies."""
    return value > limit or ceiling <= limit


def _is_decided(limit: float, value: float, ceiling: float) -> bool:
    """Say whether it is known on which side of its limit the largest number lies, and what it is to some digits."""
    return _is_settled(limit, value, ceiling) and ceiling - value <= 1e-6 * max(1.0, abs(value))


def _judged(sign: int, limit: float, found: Supremum) -> tuple[Status, Evidence]:
    low, high = sorted((sign * found.value, sign * max(found.value, found.ceiling)))
    method = f"branch and bound, {found.stretches:,} stretches of outputs"
    level = Estimate(sign * found.value, low, high, method=method, exact=high - low <= 10 * GAP or high == low)
    one_sided = Limit(at_most=limit) if sign > 0 else Limit(at_least=limit)
    return one_sided.judge(level), Evidence(found.output, level)


def _searched(question: Attack, clause: Clause, result: Result) -> Finding:
    """Look for an output that breaks the limit, without a proof that there is none."""
    output = result.prediction
    if output.batch.numbers() is None:
        reason = "the output is made of several continuous numbers: look at one observation, or publish them rounded"
        return Finding(clause, Status.UNDECIDED, EVERY, reason=reason, engine=result.engine)
    levels = [*SEARCHED, 0.5, *(1 - tail for tail in reversed(SEARCHED))]
    places = sorted({output.quantile(level).value for level in levels})
    tried: dict[float, Evidence] = {}
    with ProgressMeter("searching outputs", len(places) + REFINEMENTS) as meter:
        for place in places:
            _try(question, clause, result, place, tried)
            meter.update(len(tried), "")
        for _ in range(REFINEMENTS if tried else 0):
            if clause.limit.excess(_worst(clause, tried).level.value) > 0:
                break
            found = [_try(question, clause, result, place, tried) for place in _beside(clause, tried)]
            if not any(found):
                break
            meter.update(len(tried), "")
    if not tried:
        return Finding(clause, Status.UNDECIDED, EVERY, reason="no posterior can be computed", engine=result.engine)
    worst = _worst(clause, tried)
    status, reason = clause.limit.judge(worst.level), ""
    if status is not Status.VIOLATED and not _is_the_same_for_all(clause, result, tried):
        status, reason = (
            Status.UNDECIDED,
            f"none of {len(tried)} outputs that were tried breaks it, but {NO_CERTIFICATE}",
        )
    same = status is Status.HOLDS
    return Finding(
        clause, status, EVERY, worst.level, (worst,), reason=reason, engine=result.engine, somewhere=not same
    )


def _try(question: Attack, clause: Clause, result: Result, place: float, tried: dict[float, Evidence]) -> bool:
    if place in tried or not math.isfinite(place):
        return False
    try:
        given = question.run(Equals(place), engine="exact")
        level = clause.after(result.prior, given.posterior)
    except PrivugError:  # of an output that cannot be, or that cannot be computed so far out
        return False
    if not math.isnan(level.value):
        tried[place] = Evidence(place, level, None, given.posterior)
    return True


def _is_the_same_for_all(clause: Clause, result: Result, tried: dict[float, Evidence]) -> bool:
    """Say whether the number cannot depend on the output: the spread of a normal posterior does not."""
    if not clause.is_spread or result.engine != NORMAL:
        return False
    found = [one.level.value for one in tried.values()]
    return max(found) - min(found) <= 1e-9 * max(found)


def _worst(clause: Clause, tried: dict[float, Evidence]) -> Evidence:
    return max(tried.values(), key=lambda one: clause.limit.excess(one.level.value))


def _beside(clause: Clause, tried: dict[float, Evidence]) -> list[float]:
    """Return the outputs half-way from the worst one found to its neighbours."""
    places = sorted(tried)
    at = places.index(_worst(clause, tried).output)
    neighbours = places[max(at - 1, 0) : at] + places[at + 1 : at + 2]
    return [(places[at] + other) / 2 for other in neighbours if abs(places[at] - other) > GAP * max(1.0, abs(other))]
