"""What is to be found out for a decision: each clause of the policy, for each kind of people."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from privug.attack import Attack
from privug.errors import UnsuitableEngine
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.leakage.finite import Pairs
from privug.model.node import Array
from privug.policy.clause_questions import asked
from privug.policy.clauses import ChangeClause, MeasureClause
from privug.policy.people import people_apart
from privug.policy.policies import Clause, Levels, Policy


@dataclass(frozen=True, eq=False)
class SinceTheStart(Clause):
    """A clause that compares what is believed now with what was before the first answer, not before the latest."""

    clause: Clause = field(kw_only=True)
    origin: Belief = field(kw_only=True)

    @property
    def about(self) -> str:
        return self.clause.about

    def predicate(self) -> Any:
        return self.clause.predicate()

    def after(self, prior: Belief, posterior: Belief) -> Estimate:
        return self.clause.after(self.origin, posterior)

    def levels(self, pairs: Pairs, prior: Belief, error: float = 0.0) -> Levels | None:
        return self.clause.levels(pairs, self.origin, error)

    def between(self, low: Array, high: Array, secrets: Sequence[Any], prior: Belief) -> Levels | None:
        return self.clause.between(low, high, secrets, self.origin)


@dataclass(frozen=True, eq=False)
class ClauseTask:
    """A clause and the question that it asks of an attack; `start` is the attack without any answer yet."""

    clause: Clause
    question: Attack
    start: Attack | None

    def since_the_start(self) -> Clause:
        """Return the clause as it is judged after earlier answers: changes count from the very beginning."""
        if self.start is None or not self.compares:
            return self.clause
        own = self.clause
        return SinceTheStart(own.limit, own.for_each, own.name, clause=own, origin=self.origin)

    @property
    def compares(self) -> bool:
        """Whether the clause compares with what was believed before."""
        return isinstance(self.clause, ChangeClause | MeasureClause)

    @property
    def origin(self) -> Belief:
        """What was believed before the first answer, which must be known exactly."""
        belief = (self.start or self.question).run(None, engine="sample", samples=100).prior
        if not belief.exact:
            raise UnsuitableEngine("what is believed before any answer is not known exactly, to compare with")
        return belief


def tasks_of(policy: Policy, attack: Attack, start: Attack | None) -> list[ClauseTask]:
    """Return what a policy asks of an attack; `start` is the attack before any answer."""
    found = []
    for clause in dict.fromkeys(policy.clauses()):
        for person in people_apart(attack, clause):
            first = None if start is None else asked(start, clause, person)
            found.append(ClauseTask(clause, asked(attack, clause, person), first))
    return found
