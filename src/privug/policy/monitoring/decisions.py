"""Deciding whether a query may be answered: the policy must hold after every answer that is possible by now."""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from privug.attack import Attack
from privug.errors import InferenceError, ProgramError, UnsuitableEngine
from privug.inference.belief import Belief
from privug.inference.engines import check_facts
from privug.inference.exact.gaussian import DETERMINED, NotAffine, affine_form, aligned, length, product
from privug.inference.workload import TooMuchWork
from privug.leakage.finite import shares_of
from privug.model.maybe import is_maybe
from privug.model.node import Kind
from privug.model.structure import flatten
from privug.model.values import key_of
from privug.model.variable import as_node
from privug.observation.likelihood import equal_values
from privug.observation.observations import Equals, SeenAnswer
from privug.policy.checking import verdict_of
from privug.policy.clause_questions import RunOptions
from privug.policy.clauses import BoundsClause
from privug.policy.monitoring.clause_tasks import ClauseTask, tasks_of
from privug.policy.monitoring.exact_answers import NotNormal, form_of_answer, is_determined, knowing
from privug.policy.monitoring.queries import Answered, MonitoredQuery
from privug.policy.monitoring.sampled_decisions import SamplingPlan
from privug.policy.output_levels import EVERY, ConstantLevel, OutputLevels, one_by_one, output_levels
from privug.policy.policies import Clause, Policy
from privug.policy.verdict import Status, Verdict

MOST_OUTPUTS = 32
"""For how many outputs posteriors are computed one by one, where the joint of secret and output is not known."""


@dataclass(frozen=True)
class Decision:
    """Whether a query may be answered, and why: nothing in it depends on the true data."""

    verdict: Verdict
    foreseen: Collection[Hashable] | None = field(default=None, repr=False)
    """The answers that were judged, as keys; None if the output is continuous."""
    draws: SamplingPlan | None = None
    """How it was sampled, if it was."""

    @property
    def accepted(self) -> bool:
        """Whether the query may be answered."""
        return self.verdict.holds

    def as_foreseen(self, value: Any) -> list[Any]:
        """Return an answer as it was judged, or nothing if it was not.

        What was judged as one value is handed out as one: the last bits of a sum, or whether there is True or 1, may
        depend on more than the attacker is thought to see.
        """
        if self.foreseen is None:
            return [value]
        own = key_of(value)
        if own not in self.foreseen:
            return [_like(key, value) for key in self.foreseen if equal_values(_like(key, value), value)][:1]
        return [_like(next(key for key in self.foreseen if key == own), value)]


@dataclass(frozen=True)
class Judge:
    """The attacker's prior, the secret and the policy: what every decision of a monitor rests on."""

    prior: Mapping[str, Any]
    secret: Any
    policy: Policy
    facts: tuple[Callable[..., Any], ...] = ()
    seconds: float | None = None

    def attack(self, query: MonitoredQuery, history: Sequence[Answered]) -> Attack:
        """Return the attack by a query of an attacker who knows earlier answers."""
        prior = knowing(self.prior, _exact_values(history))
        seen = [SeenAnswer(one.query.release, one.value) for one in history if not one.continuous]
        return Attack(query.release, prior, self.secret, assume=[*self.facts, *seen], name=query.name)

    def belief(self, history: Sequence[Answered]) -> Belief:
        """Return what the attacker believes about the secret after some answers."""
        return self._of_nothing(history).run(None, seconds=self.seconds).prior

    def check(self) -> None:
        """Refuse a prior and a secret that do not fit, and facts that cannot be."""
        question = self._of_nothing([]).question
        if self.facts:
            check_facts(question)

    def _of_nothing(self, history: Sequence[Answered]) -> Attack:
        return self.attack(MonitoredQuery.of(_nothing, list(self.prior)), history)

    def decide(self, query: MonitoredQuery, history: Sequence[Answered], draws: SamplingPlan) -> Decision:
        """Decide exactly if that is possible, else by samples; what cannot be decided is not accepted."""
        try:
            attack = self.attack(query, history)
            start = self.attack(query, []) if history else None
            tasks = tasks_of(self.policy, attack, start)
            try:
                return self._exactly(query, history, tasks)
            except (UnsuitableEngine, TooMuchWork) as problem:
                return self._by_samples(attack, tasks, draws, problem)
        except (InferenceError, ProgramError) as error:
            return self._undecided(_in_words(error))

    def _exactly(self, query: MonitoredQuery, history: Sequence[Answered], tasks: Sequence[ClauseTask]) -> Decision:
        self._check_that_it_can_be_remembered(query, tasks[0].question)
        found: dict[Clause, list[OutputLevels]] = {task.clause: [] for task in tasks}
        options = RunOptions("exact", seconds=self.seconds)
        is_known = is_determined(query, self.prior, _exact_values(history))
        for task in tasks:
            found[task.clause].append(_known_already(task, options) if is_known else _exact_levels(task, options))
        everything = [one for several in found.values() for one in several]
        if any(one.scope != EVERY or _is_estimated(one) for one in everything):
            raise UnsuitableEngine("not all of its answers are judged exactly")
        verdict = verdict_of(self.policy, found, 0.0)
        listed = [one for one in everything if one.probabilities]
        foreseen = list(listed[0].probabilities) if listed else None
        if verdict.undecided:
            raise UnsuitableEngine(verdict.reason or "it cannot be decided exactly")
        return Decision(verdict, foreseen)

    def _check_that_it_can_be_remembered(self, query: MonitoredQuery, attack: Attack) -> None:
        """Refuse answers that later decisions could not take into account."""
        if not _has_density(attack):
            return
        try:
            form_of_answer(query, self.prior)
        except NotNormal as problem:
            raise UnsuitableEngine(
                f"its answers are exact values of a continuous quantity, and no later query could take them into "
                f"account, as it is not affine in normal inputs ({problem}): round the answer"
            ) from None

    def _by_samples(
        self, attack: Attack, tasks: Sequence[ClauseTask], draws: SamplingPlan, problem: Exception
    ) -> Decision:
        if _has_density(attack):
            return self._undecided(f"its answers are exact values of a continuous quantity: {problem}; round them")
        try:
            for look in draws.looks():
                foreseen = look.foresee(attack, self.seconds)
                verdict = verdict_of(self.policy, look.judge(tasks, foreseen, self.seconds), 0.0)
                if verdict.violated:
                    break
            return Decision(verdict, list(foreseen), draws)
        except (InferenceError, ProgramError) as error:  # it was a try all the same, with a share of the error
            return self._undecided(_in_words(error), draws)

    def _undecided(self, reason: str, draws: SamplingPlan | None = None) -> Decision:
        return Decision(Verdict(Status.UNDECIDED, str(self.policy), EVERY, reason=reason), draws=draws)


def _in_words(error: InferenceError | ProgramError) -> str:
    fails = isinstance(error, ProgramError)
    return f"the query fails on inputs that are possible, and a failure would tell: {error}" if fails else str(error)


def _nothing() -> int:
    """Be a query that tells nothing."""
    return 0


def _exact_values(history: Sequence[Answered]) -> list[tuple[MonitoredQuery, float]]:
    return [(one.query, float(one.value)) for one in history if one.continuous]


def _exact_levels(task: ClauseTask, options: RunOptions) -> OutputLevels:
    """Find the number of a clause after every output, exactly, or raise UnsuitableEngine."""
    clause, question = task.since_the_start(), task.question
    shifted = _of_shifted_posteriors(task, clause, options)
    if shifted is not None:
        return shifted
    result = options.run(question, None)
    try:
        return output_levels(question, clause, result, options)
    except UnsuitableEngine:
        outputs = result.prediction
        if outputs.kind is not Kind.DISCRETE or not outputs.exact or len(shares_of(outputs)) > MOST_OUTPUTS:
            raise
        return one_by_one(question, clause, result, options)


def _known_already(task: ClauseTask, options: RunOptions) -> ConstantLevel:
    """Judge an answer that follows from earlier ones: nothing changes."""
    result, clause = options.run(task.question, None), task.since_the_start()
    return ConstantLevel.of(clause, clause.after(result.prior, result.prior), EVERY, result.engine, float("inf"))


def _of_shifted_posteriors(task: ClauseTask, clause: Clause, options: RunOptions) -> ConstantLevel | None:
    """Judge one posterior for all where secret and output are normal together: outputs only shift it, if anything."""
    case = task.question.question.case() if not task.question.question.size_nodes else None
    leaves = [] if case is None else [*flatten(case.secret)[1], *flatten(case.output)[1]]
    if case is None or case.facts or len(leaves) != 2 or case.lifting.tier != "traced":
        return None
    try:
        secret, output = aligned([affine_form(as_node(leaf)) for leaf in leaves])
    except NotAffine:
        return None
    if output.sd == 0:
        return None
    share = product(secret.weights, output.weights) / output.sd**2
    tells = length(share * output.weights) > DETERMINED * secret.sd
    if tells and not (isinstance(clause, BoundsClause) and not clause.relative):
        return None
    result = options.run(task.question, Equals(output.mean))
    return ConstantLevel.of(clause, clause.after(result.prior, result.posterior), EVERY, result.engine, float("inf"))


def _is_estimated(found: OutputLevels) -> bool:
    levels = [found.worst, *(one.level for one in found.evidence)]
    return any(level is not None and not level.exact for level in levels)


def _has_density(attack: Attack) -> bool:
    """Return whether some answers may be exact values of a continuous quantity, which have no probability."""
    question = attack.question
    nodes = [as_node(leaf) for leaf in flatten(question.case(question.typical_sizes).output)[1]]
    numbers = [node.parents[1] if is_maybe(node) else node for node in nodes]
    return any(node.dtype.kind == "f" and node.kind is not Kind.DISCRETE for node in numbers)


def _like(key: Any, value: Any) -> Any:
    """Return what a key stands for, in the form of a value: numbers are the key's, containers the value's."""
    match key:
        case (kind, tuple() as parts) if kind is type(value) and isinstance(value, list | tuple):
            made = [_like(part, own) for part, own in zip(parts, value, strict=False)]
            whole = len(made) == len(value) == len(parts)
            return (getattr(kind, "_make", kind)(made)) if whole else None
        case (kind, tuple() as items) if kind is dict and isinstance(value, dict):
            same = [name for name, _ in items] == list(value)
            return {name: _like(part, value[name]) for name, part in items} if same else None
        case None | bool() | int() | float() | str():
            return key
        case _:
            return value if key_of(value) == key else None
