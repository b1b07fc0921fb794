"""Policies: limits on what may be learned, as values that combine by `&` and `|`; beliefs by output."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn

import numpy as np

from privug.arguments import shown
from privug.errors import ArgumentError
from privug.estimate import CONFIDENCE, Estimate
from privug.inference.belief import Belief
from privug.inference.joint import Joint
from privug.leakage.finite import Pairs, share_intervals
from privug.leakage.vulnerability import RARE
from privug.model.node import Array, Kind
from privug.policy.verdict import Limit, Status, all_of, any_of
from privug.scoping import holding

_error: ContextVar[float] = ContextVar("error", default=1 - CONFIDENCE)


def error_allowed() -> float:
    """Return the probability with which some of the intervals that are looked at together may be wrong."""
    return _error.get()


def allowing(error: float) -> holding[float]:
    """Make the intervals inside a `with` block wrong with at most this probability, all of them together.

    >>> with allowing(0.01):
    ...     error_allowed()
    0.01
    """
    return holding(_error, error)


class Levels(NamedTuple):
    """One number for each output, with an interval; all intervals hold together with the stated confidence."""

    value: Array
    low: Array
    high: Array

    def at(self, place: int, pairs: Pairs) -> Estimate:
        """Return the number for one output."""
        value, low, high = (float(numbers[place]) for numbers in self)
        method = "exact" if pairs.exact else f"{pairs.method}, all outputs together"
        return Estimate(value, low, high, method=method, exact=pairs.exact)

    def clipped(self) -> "Levels":
        """Return the same levels, each within its own interval."""
        return Levels(self.value, np.minimum(self.low, self.value), np.maximum(self.high, self.value))


def posterior_after(pairs: Pairs, place: int) -> Belief:
    """Return what is believed after one output of an exact finite joint."""
    own = slice(pairs.starts[place], None if place + 1 == len(pairs.starts) else pairs.starts[place + 1])
    shares = pairs.probability[own]
    return Belief.of([pairs.secrets[k] for k in pairs.secret[own]], probabilities=shares / shares.sum())


def share_of(wanted: Array, pairs: Pairs, error: float = 0.0) -> Levels:
    """Return the probability of some of the secrets given each output: `wanted` says for each secret whether it counts.

    Of samples the intervals are those of Clopper and Pearson on the effective number of samples behind each output,
    divided among the outputs (Bonferroni). An `error` of exact probabilities counts the more the rarer an output is.
    """
    hits = np.bincount(pairs.output, pairs.probability * wanted[pairs.secret], len(pairs.outputs))
    return _with_interval(hits / pairs.marginal, pairs, error, len(pairs.outputs), len(pairs.outputs))


def largest_share(pairs: Pairs, error: float = 0.0) -> Levels:
    """Return the probability of the likeliest secret given each output.

    The low end allows for having chosen the likeliest of all pairs; the high end need not, as the likeliest secret in
    truth was seen at most as often.
    """
    largest = np.maximum.reduceat(pairs.probability, pairs.starts) / pairs.marginal
    return _with_interval(largest, pairs, error, len(pairs.secret), len(pairs.outputs))


def _with_interval(share: Array, pairs: Pairs, error: float, looks_below: int, looks_above: int) -> Levels:
    return Levels(*share_intervals(share, pairs, error, (looks_below, looks_above), error_allowed() / 2))


def difference(after: Levels, before: Estimate) -> Levels:
    """Return by how much each output changes a probability, up or down."""
    value = np.abs(after.value - before.value)
    high = np.maximum(after.high - before.low, before.high - after.low)
    low = np.maximum(np.maximum(after.low - before.high, before.low - after.high), 0.0)
    return Levels(value, low, high).clipped()


def factor(after: Levels, before: Estimate) -> Levels:
    """Return by which factor each output changes a probability, up or down: 1 where it stays, infinite to or from 0."""
    return Levels(
        np.maximum(_ratio(after.value, before.value), _ratio(before.value, after.value)),
        np.maximum(np.maximum(_ratio(after.low, before.high), _ratio(before.low, after.high)), 1.0),
        np.maximum(_ratio(after.high, before.low), _ratio(before.high, after.low)),
    ).clipped()


def _ratio(numerator: Array | float, denominator: Array | float) -> Array:
    """Divide probabilities; none by none is no change."""
    top, bottom = np.broadcast_arrays(np.asarray(numerator, float), np.asarray(denominator, float))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((top == 0) & (bottom == 0), 1.0, top / bottom)


class Policy(ABC):
    """A limit on what an attacker may learn.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda a, b: a + b, {"a": pv.Bernoulli(0.5), "b": pv.Bernoulli(0.5)}, secret="a")
    >>> limit = pv.policy.max_belief(at_most=0.8) & pv.policy.measure("mutual_information", at_most=0.1)
    >>> pv.policy.check(attack, limit).status.value
    'violated'
    """

    @abstractmethod
    def clauses(self) -> Iterator["Clause"]:
        """Yield the single limits that this policy is made of."""

    def parts(self) -> Iterator["Policy"]:
        """Yield this policy and all that it is made of."""
        yield self

    @abstractmethod
    def judge(self, statuses: Callable[["Clause"], Status]) -> Status:
        """Return whether the policy holds, given whether each of its clauses does."""

    @abstractmethod
    def excess(self, of: Callable[["Clause"], Any]) -> Any:
        """Return by how much the policy is broken, a number or an array, given by how much each of its clauses is."""

    def __bool__(self) -> NoReturn:
        raise ArgumentError(
            "a policy is neither true nor false by itself, and `and`, `or` and `not` would lose a part of it: write "
            "p & q or p | q, and pv.policy.check(attack, policy).holds to ask whether it holds"
        )

    def __and__(self, other: "Policy") -> "Policy":
        return Both(self, _checked(other, "&"))

    def __or__(self, other: "Policy") -> "Policy":
        return Either(self, _checked(other, "|"))


def _checked(policy: Any, operator: str) -> Policy:
    if not isinstance(policy, Policy):
        raise ArgumentError(f"{operator} joins two policies such as pv.policy.belief(...), not {shown(policy)}")
    return policy


@dataclass(frozen=True)
class _TwoPolicies(Policy):
    """Two policies together."""

    left: Policy
    right: Policy

    def clauses(self) -> Iterator["Clause"]:
        yield from self.left.clauses()
        yield from self.right.clauses()

    def parts(self) -> Iterator[Policy]:
        yield self
        yield from self.left.parts()
        yield from self.right.parts()


@dataclass(frozen=True)
class Both(_TwoPolicies):
    """A policy that holds where two others do."""

    def judge(self, statuses: Callable[["Clause"], Status]) -> Status:
        return all_of([self.left.judge(statuses), self.right.judge(statuses)])

    def excess(self, of: Callable[["Clause"], Any]) -> Any:
        return np.maximum(self.left.excess(of), self.right.excess(of))

    def __str__(self) -> str:
        return f"{self.left}, and {self.right}"


@dataclass(frozen=True)
class Either(_TwoPolicies):
    """A policy that holds after every output after which one of two others does."""

    def judge(self, statuses: Callable[["Clause"], Status]) -> Status:
        return any_of([self.left.judge(statuses), self.right.judge(statuses)])

    def excess(self, of: Callable[["Clause"], Any]) -> Any:
        return np.minimum(self.left.excess(of), self.right.excess(of))

    def __str__(self) -> str:
        return f"either {self.left}, or {self.right}"


@dataclass(frozen=True, eq=False)
class Clause(Policy):
    """One number that must lie within a limit, after each output or on average.

    `for_each` is a function of the program's inputs that lists the secrets of several people; None asks about the
    attack's own secret.
    """

    limit: Limit
    for_each: Callable[..., Any] | None = None
    name: str = ""

    on_average = False
    """Whether the number is one for all outputs together."""
    counts_secrets_alike = False
    """Whether secrets that are equally likely and treated alike need not be told apart."""
    is_spread = False
    """Whether the number stays the same if the posterior is moved to another place."""

    def clauses(self) -> Iterator["Clause"]:
        yield self

    def judge(self, statuses: Callable[["Clause"], Status]) -> Status:
        return statuses(self)

    def excess(self, of: Callable[["Clause"], Any]) -> Any:
        return of(self)

    def named(self, name: str) -> "Clause":
        """Return the same limit under a name of its own."""
        return replace(self, name=name)

    @property
    @abstractmethod
    def about(self) -> str:
        """What the number is, in words that 'is 0.5' may follow."""

    def predicate(self) -> Callable[[Any], Any] | None:
        """Return what of the secret matters: a yes or no about it; None if all of it does."""
        return None

    @abstractmethod
    def after(self, prior: Belief, posterior: Belief) -> Estimate:
        """Return the number after one observation."""

    def levels(self, pairs: Pairs, prior: Belief, error: float = 0.0) -> Levels | None:
        """Return the number after each output of a finite joint; None if a sampled joint does not determine it.

        `error` bounds the error of exact probabilities: after outputs that are too rare for them nothing is known.
        """
        if not pairs.exact or pairs.copies is not None or prior.kind is not Kind.DISCRETE or not prior.exact:
            return None
        values = np.array([self.after(prior, posterior_after(pairs, k)).value for k in range(len(pairs.outputs))])
        known = pairs.marginal > RARE * error
        return Levels(values, np.where(known, values, -np.inf), np.where(known, values, np.inf))

    def between(self, low: Array, high: Array, secrets: Sequence[Any], prior: Belief) -> Levels | None:
        """Return bounds of the number, given bounds of the posterior: a row for each, a column for each secret.

        None if bounds do not follow from these.
        """
        return None

    def average(self, joint: Joint) -> Estimate:
        """Return the number for all outputs together, where it is such a one."""
        raise NotImplementedError

    def __str__(self) -> str:
        people = " for everyone" if self.for_each is not None else ""
        return self.name or f"{self.about} must be {self.limit}{people}"
