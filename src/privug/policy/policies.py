"""Policies: limits on what may be learned, as values that can be combined by `&` and `|`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from privug.arguments import shown
from privug.errors import ArgumentError
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.joint import Joint
from privug.leakage.finite import Pairs
from privug.model.node import Array
from privug.policy.levels import Levels
from privug.policy.verdict import Limit, Status, all_of, any_of


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
        """Say whether the policy holds, given whether each of its clauses does."""

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
class _Pair(Policy):
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
class Both(_Pair):
    """A policy that holds where two others do."""

    def judge(self, statuses: Callable[["Clause"], Status]) -> Status:
        return all_of([self.left.judge(statuses), self.right.judge(statuses)])

    def excess(self, of: Callable[["Clause"], Any]) -> Any:
        return np.maximum(self.left.excess(of), self.right.excess(of))

    def __str__(self) -> str:
        return f"{self.left}, and {self.right}"


@dataclass(frozen=True)
class Either(_Pair):
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
        """Return the number after each output of a finite joint; None if posteriors are needed one by one.

        `error` bounds the error of exact probabilities.
        """
        return None

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
