"""The numbers that a policy can limit: beliefs, their changes, the best guess, the width of intervals."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from privug import leakage
from privug.arguments import InnerProbability, check_kind, is_number, is_truth, kinds_checked, shown
from privug.errors import ArgumentError
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.joint import Joint
from privug.inference.measure.curve import Curve
from privug.leakage.finite import Pairs, shares_of
from privug.leakage.register import measure_of_change
from privug.model.node import Array, Kind
from privug.policy import policies
from privug.policy.clause_questions import FAILURE
from privug.policy.policies import Clause, Levels, error_allowed
from privug.policy.verdict import Limit

STEPS = 129  # places at which an interval of a curve may begin
ROUNDS = 5  # how often the grid of these places is made finer: each time by a factor of 64
TINY, EPSILON = 1e-300, 1e-16


def shortest_interval(belief: Belief, probability: float, relative: bool = False) -> Estimate:
    """Return the width of the shortest interval that holds a number with the given probability.

    `relative` divides it by the size of the interval's middle. Of samples the interval covers the truth because the
    empirical distribution function lies within a band around the true one (Dvoretzky, Kiefer and Wolfowitz; Massart
    1990): the shortest interval of the truth is no shorter than that of a little less, and no longer than that of a
    little more of the samples.

    >>> print(shortest_interval(Belief.of([1, 2, 3, 10], probabilities=[0.25] * 4), 0.7))
    2 (exact)
    """
    if belief.curve is not None:
        return Estimate.exactly(_of_curve(belief.curve, probability, relative), method=belief.method)
    numbers = belief.batch.numbers()
    if numbers is None or numbers.dtype.kind not in "bif":
        raise ArgumentError("bounds: the secret must be a number")
    order = np.argsort(numbers, kind="stable")
    values = numbers[order].astype(float)
    weights = np.full(len(values), 1 / len(values)) if belief.weights is None else belief.weights[order]
    cumulated = np.cumsum(weights) / weights.sum()
    if belief.exact:
        return Estimate.exactly(_of_steps(values, cumulated, probability, relative), method=belief.method)
    band = 2 * math.sqrt(math.log(2 / error_allowed()) / (2 * belief.effective_samples))
    wide = probability + band
    high = _of_steps(values, cumulated, wide, relative) if wide <= 1 else math.inf
    low = _of_steps(values, cumulated, max(probability - band, 0.0), relative)
    value = _of_steps(values, cumulated, probability, relative)
    return Estimate(value, min(low, value), max(high, value), method=belief.method)


def _of_steps(values: Array, cumulated: Array, probability: float, relative: bool) -> float:
    """Return the least width of an interval between two of the values."""
    before = np.append(0.0, cumulated[:-1])
    ends = np.searchsorted(cumulated, before + probability - 1e-12)
    fits = ends < len(values)
    return float(np.min(_width(values[fits], values[ends[fits]], relative), initial=math.inf))


def _of_curve(curve: Curve, probability: float, relative: bool) -> float:
    """Return the least width of an interval of a curve: where it may begin is searched on finer and finer grids."""
    low, high = 0.0, 1.0 - probability
    best = math.inf
    for _ in range(ROUNDS):
        starts = np.linspace(low, high, STEPS)
        ends = np.clip(np.concatenate([starts, starts + probability]), TINY, 1 - EPSILON)
        begin, end = np.split(curve.quantiles(ends), 2)
        widths = _width(begin, end, relative)
        place = int(np.argmin(widths))
        low, high = starts[max(place - 1, 0)], starts[min(place + 1, STEPS - 1)]
        best = min(best, float(widths[place]))
    return best


def _width(low: Array, high: Array, relative: bool) -> Array:
    if not relative:
        return high - low
    middle = np.abs(low + high) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(high == low, 0.0, (high - low) / middle)


Predicate = Callable[[Any], Any]
OF_ONE_OUTPUT = tuple(leakage.measures("beliefs"))
"""Measures that compare the beliefs before and after an observation."""
NO_TRUTH = "the predicate of a policy must return True or False for every secret"


def _is_true(value: Any) -> bool:
    return bool(value)


def _believed(belief: Belief) -> Estimate:
    """Return the probability that a statement is true, given a belief about whether it is."""
    if belief.kind is Kind.DISCRETE:
        truths(shares_of(belief).values)
    elif (numbers := belief.batch.numbers()) is None or numbers.dtype.kind not in "bi":
        raise ArgumentError(f"{NO_TRUTH}, not numbers with fractions")
    return belief.probability(_is_true)


def truths(values: Sequence[Any]) -> Array:
    """Return the answers of a predicate, or refuse them if they are none."""
    for value in values:
        if not is_truth(value):
            raise ArgumentError(f"{NO_TRUTH}; for some it gives {_told(value)}")
    return np.array([bool(value) for value in values], bool)


def _told(answer: Any) -> str:
    """Return what an answer is that is none, without showing it: it may be a secret."""
    is_failure = isinstance(answer, str) and answer.startswith(FAILURE)
    return answer if is_failure else "None" if answer is None else f"a value of the type {type(answer).__name__}"


@dataclass(frozen=True, eq=False)
class BeliefClause(Clause):
    """The probability that the attacker gives to a statement about the secret."""

    statement: Predicate = bool
    claim: str = "the statement"

    @property
    def about(self) -> str:
        return f"the belief in {self.claim}"

    def predicate(self) -> Predicate | None:
        return self.statement

    def after(self, prior: Belief, posterior: Belief) -> Estimate:
        return _believed(posterior)

    def levels(self, pairs: Pairs, prior: Belief, error: float = 0.0) -> Levels | None:
        return policies.share_of(truths(pairs.secrets), pairs, error)

    def between(self, low: Array, high: Array, secrets: Sequence[Any], prior: Belief) -> Levels | None:
        wanted = np.flatnonzero(truths(secrets))
        least, most = low[:, wanted].sum(axis=1), np.minimum(high[:, wanted].sum(axis=1), 1.0)
        return Levels(most, least, most)


@dataclass(frozen=True, eq=False)
class ChangeClause(BeliefClause):
    """By how much an output changes the probability that the attacker gives to a statement."""

    by: str = "difference"

    @property
    def about(self) -> str:
        change = "change" if self.by == "difference" else "factor of change"
        return f"the {change} of the belief in {self.claim}"

    def after(self, prior: Belief, posterior: Belief) -> Estimate:
        before, now = _believed(prior), _believed(posterior)
        seen = Levels(*(np.array([end]) for end in (now.value, now.low, now.high)))
        value, low, high = (float(end[0]) for end in self._change(seen, before))
        return Estimate(value, low, high, method=now.method, exact=now.exact and before.exact)

    def levels(self, pairs: Pairs, prior: Belief, error: float = 0.0) -> Levels | None:
        after = BeliefClause.levels(self, pairs, prior, error)
        assert after is not None
        return self._change(after, _believed(prior))

    def between(self, low: Array, high: Array, secrets: Sequence[Any], prior: Belief) -> Levels | None:
        after = BeliefClause.between(self, low, high, secrets, prior)
        assert after is not None
        return self._change(after, _believed(prior))

    def _change(self, after: Levels, before: Estimate) -> Levels:
        return (policies.difference if self.by == "difference" else policies.factor)(after, before)


@dataclass(frozen=True, eq=False)
class MaxBeliefClause(Clause):
    """The probability of the value that the attacker holds likeliest."""

    counts_secrets_alike = True

    @property
    def about(self) -> str:
        return "the belief in the likeliest value of the secret"

    def after(self, prior: Belief, posterior: Belief) -> Estimate:
        return leakage.bayes_vulnerability(posterior)

    def levels(self, pairs: Pairs, prior: Belief, error: float = 0.0) -> Levels | None:
        return policies.largest_share(pairs, error)

    def between(self, low: Array, high: Array, secrets: Sequence[Any], prior: Belief) -> Levels | None:
        return Levels(high.max(axis=1), low.max(axis=1), high.max(axis=1))


@dataclass(frozen=True, eq=False)
class BoundsClause(Clause):
    """How wide the shortest interval is that holds the secret with a given probability."""

    probability: float = 0.95
    relative: bool = False

    @property
    def is_spread(self) -> bool:  # type: ignore[override]
        return not self.relative

    @property
    def about(self) -> str:
        relative = " as a share of its middle" if self.relative else ""
        return f"the width of the shortest {self.probability:.0%} credible interval of the secret{relative}"

    def after(self, prior: Belief, posterior: Belief) -> Estimate:
        return shortest_interval(posterior, self.probability, self.relative)


@dataclass(frozen=True, eq=False)
class MeasureClause(Clause):
    """A measure of `pv.leakage`: on average over outputs, or of what one of them changes."""

    measure: str = "mutual_information"

    @property
    def on_average(self) -> bool:  # type: ignore[override]
        return self.measure not in OF_ONE_OUTPUT

    @property
    def about(self) -> str:
        return f"the {self.measure.replace('_', ' ')}"

    def after(self, prior: Belief, posterior: Belief) -> Estimate:
        return measure_of_change(self.measure, prior, posterior)

    def average(self, joint: Joint) -> Estimate:
        estimate: Estimate = getattr(leakage, self.measure)(joint)
        return estimate


@kinds_checked
def belief(
    predicate: Predicate,
    at_most: float | None = None,
    at_least: float | None = None,
    *,
    for_each: Callable[..., Any] | None = None,
    claim: str = "",
    name: str = "",
) -> Clause:
    """Limit the probability that the attacker may come to give to a statement about the secret.

    `predicate` takes the secret and says whether the statement is true of it; `claim` is the statement in words, for
    messages. `for_each` lists the secrets of several people, as a function of the program's inputs.

    >>> import privug as pv
    >>> print(pv.policy.belief(lambda age: age < 18, at_most=0.5, claim="Alice is under 18"))
    the belief in 'Alice is under 18' must be at most 0.5
    """
    limit = _limit("belief", at_most, at_least, 0.0, 1.0)
    return BeliefClause(limit, for_each, name, _function("belief", predicate), _claim(claim, predicate))


@kinds_checked
def change(
    predicate: Predicate,
    at_most: float,
    *,
    by: Literal["difference", "factor"] = "difference",
    for_each: Callable[..., Any] | None = None,
    claim: str = "",
    name: str = "",
) -> Clause:
    """Limit how far an output may move the probability of a statement, up or down.

    By `"difference"` that is |after - before|; by `"factor"` it is after / before or before / after, whichever is
    larger, so that 1 is no change and a belief that falls to zero has changed by an infinite factor.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda a, b: a + b, {"a": pv.Bernoulli(0.5), "b": pv.Bernoulli(0.5)}, secret="a")
    >>> limit = pv.policy.change(lambda a: a == 1, at_most=0.3, claim="the first said yes")
    >>> pv.policy.check(attack, limit).worst.value
    0.5
    """
    limit = _limit("change", at_most, None, 0.0 if by == "difference" else 1.0, 1.0 if by == "difference" else np.inf)
    return ChangeClause(limit, for_each, name, _function("change", predicate), _claim(claim, predicate), by)


@kinds_checked
def max_belief(at_most: float, *, for_each: Callable[..., Any] | None = None, name: str = "") -> Clause:
    """Limit how sure the attacker may become of any value of the secret (Mardziel, Magill, Hicks, Srivatsa 2013).

    >>> import privug as pv
    >>> attack = pv.Attack(lambda a, b: a + b, {"a": pv.Bernoulli(0.5), "b": pv.Bernoulli(0.5)}, secret="a")
    >>> pv.policy.check(attack, pv.policy.max_belief(at_most=0.8), observe=pv.equals(1)).status.value
    'holds'
    """
    return MaxBeliefClause(_limit("max_belief", at_most, None, 0.0, 1.0), for_each, name)


@kinds_checked
def bounds(
    interval_width_at_least: float,
    *,
    relative: bool = False,
    probability: InnerProbability = 0.95,
    for_each: Callable[..., Any] | None = None,
    name: str = "",
) -> Clause:
    """Demand that no number becomes known too precisely: a magnitude rule.

    The shortest credible interval of the given probability must be that wide; with `relative`, as a
    share of its middle: known to within 10 % is a width of 20 % of the middle.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda pay: pay, prior={"pay": pv.Uniform(0, 100)}, secret="pay")
    >>> limit = pv.policy.bounds(interval_width_at_least=20)
    >>> pv.policy.check(attack, limit, observe=pv.near(50, within=5)).status.value
    'violated'
    """
    limit = _limit("bounds", None, interval_width_at_least, 0.0, np.inf, at_least="interval_width_at_least")
    return BoundsClause(limit, for_each, name, probability, relative)


@kinds_checked
def measure(
    name: str,
    at_most: float | None = None,
    at_least: float | None = None,
    *,
    for_each: Callable[..., Any] | None = None,
) -> Clause:
    """Limit a measure of `pv.leakage`, by its name: on average over outputs, such as the mutual information.

    Measures of the beliefs before and after, such as `kl_divergence`, are limited for every output by itself.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda a, b: a + b, {"a": pv.Bernoulli(0.5), "b": pv.Bernoulli(0.5)}, secret="a")
    >>> pv.policy.check(attack, pv.policy.measure("mutual_information", at_most=0.1)).worst.value
    0.5
    """
    known = [*OF_ONE_OUTPUT, *leakage.measures("joint"), *leakage.measures("channel")]
    if name not in known:
        raise ArgumentError(f"measure: {shown(name)} is none of those that a policy can limit: {', '.join(known)}")
    limit = _limit("measure", at_most, at_least, -np.inf, np.inf)
    return MeasureClause(limit, for_each, "", name)


def _limit(what: str, at_most: Any, least: Any, low: float, high: float, *, at_least: str = "at_least") -> Limit:
    if at_most is None and least is None:
        raise ArgumentError(f"{what}: a limit is needed, such as at_most=0.5")
    for name, end in (("at_most", at_most), (at_least, least)):
        if end is not None and not (is_number(end) and low <= float(end) <= high):
            within = f"between {low:g} and {high:g}" if np.isfinite(high) else f"from {low:g} on"
            raise ArgumentError(f"{what}: {name} must be a number {within}, not {shown(end)}")
    if at_most is not None and least is not None and least > at_most:
        raise ArgumentError(f"{what}: at_least={least:g} is more than at_most={at_most:g}")
    return Limit(None if at_most is None else float(at_most), None if least is None else float(least))


def _function(what: str, predicate: Any) -> Predicate:
    if not callable(predicate):
        raise ArgumentError(f"{what}: a predicate on the secret is needed, not {shown(predicate)}")
    check_kind(what, "predicate", predicate, (Callable,))
    function: Predicate = predicate
    return function


def _claim(claim: str, predicate: Any) -> str:
    if claim:
        return repr(claim)
    name = getattr(predicate, "__name__", "the statement")
    return "the statement" if name == "<lambda>" else name
