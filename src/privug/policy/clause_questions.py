"""The question that one clause asks of an attack: the same program and prior, about what of the secret matters."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from privug.arguments import NumberRange
from privug.attack import Attack, Result
from privug.errors import QuestionError, UnsuitableEngine
from privug.inference.question import Question, argument_names
from privug.inference.workload import TooMuchWork
from privug.model.plan import Plan
from privug.model.structure import random_leaves
from privug.model.variable import RandomVariable
from privug.observation.observations import Observation
from privug.policy.policies import Clause
from privug.program.calls import Opaque
from privug.program.staged import called

SAMPLES = 100_000
ExceptProbability = Annotated[float, NumberRange(0, 1, below=True)]


@dataclass(frozen=True)
class RunOptions:
    """How attacks are run for a policy: the engine and its options."""

    engine: str = "auto"
    samples: int = SAMPLES
    seed: int = 0
    seconds: float | None = None

    def run(self, attack: Attack, observation: Observation | None) -> Result:
        """Run an attack: exactly if that is possible, because a worst case over samples is worth little."""
        options: Any = {"samples": self.samples, "seed": self.seed, "seconds": self.seconds}
        if self.engine != "auto":
            return attack.run(observation, engine=self.engine, **options)
        try:
            result = attack.run(observation, engine="exact", **options)
            if observation is None:
                _ = result.joint
            return result
        except (UnsuitableEngine, TooMuchWork):
            return attack.run(observation, engine="sample" if observation is None else "auto", **options)


MOST_PEOPLE = 10_000
FAILURE = "a failure with"
"""How the answer of a predicate begins that has none."""


def asked(attack: Attack, clause: Clause, person: int | None = None) -> Attack:
    """Return the attack whose secret is what a clause asks about, of one person if it lists several."""
    secret = secret_of(attack, clause, person)
    predicate = clause.predicate()
    if predicate is None:
        return about(attack, secret)
    stated = about(attack, _composed(attack.question, predicate, secret))
    if not attack.question.exclude_errors or not _can_fail(stated.question):
        return stated
    # Inputs on which the program fails are left out. Those on which the predicate does must not be lost with them.
    return about(attack, _composed(attack.question, predicate, secret, telling=True))


def _can_fail(question: Question) -> bool:
    secret = question.case(question.typical_sizes).secret
    return Plan([leaf.node for leaf in random_leaves(secret)]).can_fail


def secret_of(attack: Attack, clause: Clause, person: int | None) -> Any:
    """Return the secret that a clause is about: the attack's own, or that of one person."""
    return attack.question.secret if person is None else _of_person(attack.question, clause, person)


def about(attack: Attack, secret: Any) -> Attack:
    """Return the same attack with another secret."""
    return attack.replace(secret=secret, observe=None, questions=None)


def number_of_people(attack: Attack, clause: Clause) -> int:
    """Return of how many people a clause lists the secrets."""
    assert clause.for_each is not None
    if attack.question.random_tables:
        raise QuestionError("for_each: the people in a table of random size cannot be told apart; give it a fixed size")
    listed = listed_people(attack.question, clause.for_each)
    if len(listed) > MOST_PEOPLE:
        raise QuestionError(f"for_each lists {len(listed):,} people; at most {MOST_PEOPLE:,} are looked at")
    return len(listed)


def listed_people(question: Question, for_each: Callable[..., Any]) -> list[Any]:
    """Return the secrets of all people that a function of the inputs lists, as random variables."""
    found = question.query(question.case(), for_each)
    if isinstance(found, RandomVariable) and found.node.shape:
        return [found[place] for place in range(found.node.shape[0])]
    if not isinstance(found, list | tuple) or not found:
        raise QuestionError("for_each must return a list or a column, one secret for each person")
    return list(found)


def _of_person(question: Question, clause: Clause, person: int) -> Callable[..., Any]:
    for_each = clause.for_each
    assert for_each is not None

    def secret_of_person(*inputs: Any) -> Any:
        return called(for_each, *inputs)[person]

    return with_inputs(secret_of_person, argument_names(for_each, question.prior, "for_each"))


def _composed(
    question: Question, predicate: Callable[[Any], Any], secret: Any, telling: bool = False
) -> Callable[..., Any]:
    """Return a predicate on the secret as a function of the inputs, which may tell errors of the predicate."""
    names = [secret] if isinstance(secret, str) else list(secret) if not callable(secret) else None
    of_inputs: Callable[..., Any] = secret if names is None else _itself if isinstance(secret, str) else _all
    if names is None:
        names = argument_names(secret, question.prior, "secret")

    def statement(*inputs: Any) -> Any:
        return called(predicate, called(of_inputs, *inputs))

    return with_inputs(_Told(of_inputs, predicate) if telling else statement, names)


def _itself(value: Any) -> Any:
    return value


def _all(*values: Any) -> Any:
    return values


class _Told(Opaque):
    """A statement that tells errors of its predicate instead of raising them, for clauses to refuse."""

    hides_randomness = False

    def __init__(self, secret: Callable[..., Any], predicate: Callable[[Any], Any]) -> None:
        self.secret = secret
        self.predicate = predicate

    def __call__(self, *inputs: Any) -> Any:
        secret = self.secret(*inputs)
        try:
            return self.predicate(secret)
        except Exception as error:
            return f"{FAILURE} {type(error).__name__}"


def with_inputs(function: Callable[..., Any], names: list[str]) -> Callable[..., Any]:
    """Give a function parameters of the names that its inputs have."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    function.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])  # type: ignore[attr-defined]
    return function
