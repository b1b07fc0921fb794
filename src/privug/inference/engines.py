"""The engines by name, the choice among them, and a question prepared for one: prior, joint, posteriors.

What does not depend on an observation is found out once for a question, and serves all observations of it: the models
for the sizes of its tables, the outputs of a program that is called, the belief about the secret before anything is
seen, and the exact joint of secret and output.
"""

import importlib
import importlib.util
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple, Protocol, TypeVar, Unpack

import numpy as np

from privug import interruption, settings
from privug.arguments import LARGEST, MOST_SAMPLES, check_takes, is_number, is_truth, naming, shown
from privug.errors import (
    ArgumentError,
    ImpossibleObservation,
    InferenceError,
    NotConverged,
    OutOfTime,
    PrivugError,
    QuestionError,
    TooFewSamples,
    UnsuitableEngine,
)
from privug.estimate import Estimate
from privug.inference import sampling, workload
from privug.inference.answer import (
    QUERY,
    SECRET,
    UNDEFINED,
    Answer,
    Options,
    SampledAnswer,
    definition_of,
    merged_prior,
)
from privug.inference.belief import Belief
from privug.inference.case_plan import CasePlan, Quantity
from privug.inference.chains.problem import is_differentiable
from privug.inference.chains.sizes import prepare
from privug.inference.exact import engine as exact
from privug.inference.exact.request import Obstacle, Offer, Request
from privug.inference.joint import Joint
from privug.inference.question import Question, QuestionOfFacts, QuestionOfSecret
from privug.inference.workload import OPERATIONS, enough_samples, pilot_samples, random_nodes
from privug.model.node import Kind, Node, ancestors
from privug.model.operations import SampleFailure
from privug.model.plan import Plan
from privug.model.structure import random_leaves
from privug.observation.observations import Equals, Observation, StatedFact
from privug.progress import ProgressMeter, tell
from privug.runtime.critical import quietly

Predicate = Callable[[Any], Any]
TRIED = 8
"""On how many secrets a question is tried."""


def as_claims(questions: Any) -> dict[str, Predicate]:
    """Return the questions of an attack, if they are such."""
    if questions is None:
        return {}
    if not isinstance(questions, Mapping) or not all(callable(predicate) for predicate in questions.values()):
        raise QuestionError("questions must map claims in words to predicates on the secret")
    for claim, predicate in questions.items():
        check_takes(f"questions: {claim!r}", predicate, 1, QuestionError)
    return dict(questions)


def check_answers(claims: Mapping[str, Predicate], question: Question) -> None:
    """Refuse a question that answers something else than yes or no on a few secrets.

    One that fails is left to be told with its answer: these secrets may contradict what is assumed.
    """
    for secret in _some_secrets(question) if claims else ():
        for claim, predicate in claims.items():
            try:
                verdict = predicate(secret)
            except Exception:
                continue
            if not is_truth(verdict):
                hint = "is a return missing?" if verdict is None else "compare it, such as secret > 18"
                raise QuestionError(
                    f"questions: {claim!r} must return True or False, but it returned {shown(verdict)} for the secret "
                    f"{shown(secret)}; {hint}"
                )


def _some_secrets(question: Question) -> list[Any]:
    """Return a few secrets as the prior has them; none if that takes more than drawing them."""
    try:
        secret = Quantity.of(question.case(question.typical_sizes).secret)
        arrays = Plan(secret.nodes).run(TRIED, np.random.Generator(np.random.SFC64(0)))
    except (PrivugError, SampleFailure):  # which the run tells
        return []
    return secret.batch(arrays, TRIED).values()


def probability_of(claim: str, predicate: Predicate, belief: Belief) -> Estimate:
    """Return the answer to a question; what is wrong with it is told with its name."""
    try:
        return belief.probability(predicate)
    except ArgumentError as error:
        raise QuestionError(f"questions: {claim!r}: {error}") from error


def checked_options(*, samples: Any, seed: Any, budget: Any) -> dict[str, Any]:
    """Return what every engine is told, as plain whole numbers."""
    checked_whole("samples", samples, 1, MOST_SAMPLES)
    checked_whole("seed", seed, 0)
    if budget is not None:
        checked_whole("budget", budget, 1)
    return {"samples": int(samples), "seed": int(seed), "budget": budget}


def checked_whole(label: str, number: Any, least: int, most: float = math.inf) -> int:
    """Return a whole number within limits."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or not least <= number <= most:
        limits = f"{least} or more" if most == math.inf else f"from {least} to {most:,}"
        raise ArgumentError(f"{label} must be a whole number, {limits}, not {shown(number)}")
    return int(number)


def positive(name: str, value: Any, example: str) -> float | None:
    """Return a positive number, if one was given."""
    if value is None:
        return None
    if not is_number(value) or not 0 < value <= LARGEST:
        raise ArgumentError(f"{name} must be a positive number, such as {example}, not {shown(value)}")
    return float(value)


def checked_facts(assume: Any) -> tuple[Callable[..., Any], ...]:
    """Return predicates on the inputs, of which there may be one, or some with a claim in words each."""
    facts = (assume,) if callable(assume) else assume
    predicates = list(facts.values()) if isinstance(facts, Mapping) else facts
    if not isinstance(predicates, list | tuple) or not all(callable(fact) for fact in predicates):
        raise QuestionError(
            "assume must be a predicate on the inputs, a list of them, or a dict of claims in words with their "
            f"predicates, not {shown(assume)}"
        )
    if not isinstance(facts, Mapping):
        return tuple(facts)
    unnamed = [claim for claim in facts if not isinstance(claim, str) or not claim.strip()]
    if unnamed:
        raise QuestionError(f"assume: a claim is a sentence, such as 'the CEO earns most', not {shown(unnamed[0])}")
    return tuple(StatedFact(words, predicate) for words, predicate in facts.items())


class Tried:
    """What was tried so far, how long it took and why it gave no answer."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._attempts: list[str] = []

    @contextmanager
    def attempt(self, engine: str, share: float, excused: type[InferenceError] = InferenceError) -> Iterator[None]:
        """Let an engine try in a share of the time left; an excused refusal, and no answer in time, are noted."""
        started, left = time.monotonic(), interruption.seconds_left()
        try:
            with interruption.within(None if left is None else share * left):
                yield
        except excused as error:
            self._note(engine, started, str(error))
        except interruption.TimeIsUp as error:
            self._note(engine, started, _no_answer(error))
            if interruption.is_time_up():
                raise OutOfTime(self._refusal()) from None

    @contextmanager
    def last_attempt(self, engine: str) -> Iterator[None]:
        """Let an engine try in all of the time left: what it refuses is refused."""
        started = time.monotonic()
        try:
            yield
        except interruption.TimeIsUp as error:
            self._note(engine, started, _no_answer(error))
            raise OutOfTime(self._refusal()) from None

    def tell(self, what: str) -> None:
        """Say what is tried next, in a run that takes its time."""
        left = interruption.seconds_left()
        tell(self._started, f"auto: now {what}" + ("" if left is None else f"; at most {left:.0f} s more"))

    def _note(self, engine: str, started: float, reason: str) -> None:
        self._attempts.append(f"'{engine}' gave up after {time.monotonic() - started:.0f} s: {reason}")

    def _refusal(self) -> str:
        return f"time was up before any engine had an answer ({'; '.join(self._attempts)}); {MORE_TIME}"

    def __str__(self) -> str:
        """The attempts that failed, to go with the reason for the engine that served."""
        return "".join(f"; {attempt}" for attempt in self._attempts)


MORE_TIME = "give more seconds=, or ask for fewer samples="


@contextmanager
def bounded(engine: str, seconds: float | None) -> Iterator[None]:
    """Refuse, after so many seconds, a question that an engine has no answer to by then."""
    try:
        with interruption.within(seconds):
            yield
    except interruption.TimeIsUp as error:
        if seconds is None:  # it is the time of a run around this one
            raise
        why = f"seconds={seconds:g} were over before engine={engine!r} had an answer: {_no_answer(error)}"
        raise OutOfTime(f"{why}; {MORE_TIME}") from None


def _no_answer(error: interruption.TimeIsUp) -> str:
    where = interruption.unanswered(error)
    return "it had no answer by then" if where is None else f"the program had not returned yet {where}"


PILOT_SAMPLES = 1024
COST_OF_PRIOR = 1e8  # in elementary operations: what may be spent on knowing the prior of the secret exactly
JOINT_EXCESS = 20.0  # times that patience for all outputs together
MOST_EXCESS = 3.0  # times the work that an exact answer was expected to take
COST_OF_SAMPLING = 5e6  # of starting and judging a run, in elementary operations
SAMPLES_OF_FACTS = 10_000
SEARCH_FOR_FACTS: Any = {"samples": 2000, "budget": 1_000_000}
EARLY_SHARE = 0.5  # of the time left that an engine may take if there is another one to ask
MANY_DIMENSIONS = 20  # from which on following gradients pays for compiling the model


class Engine(Protocol):
    """Draws or computes secret, output and one further quantity given an observation."""

    def __call__(self, question: Question, observation: Observation | None, **options: Unpack[Options]) -> Answer:
        """Answer the question."""


class _Elsewhere(NamedTuple):
    """An engine that is loaded when it is first asked for: its module, the libraries that this needs, its samplers."""

    module: str
    needs: tuple[str, ...] = ()
    samplers: tuple[str, ...] = ()

    @property
    def is_installed(self) -> bool:
        return all(importlib.util.find_spec(library) is not None for library in self.needs)


PYMC_SAMPLERS = ("nutpie", "nuts", "metropolis", "smc")
ENGINES: dict[str, Engine] = {"exact": exact.infer, "sample": sampling.draw}
_LOADED_LATER = {
    "rare": _Elsewhere("privug.inference.rare.engine"),
    "pymc": _Elsewhere("privug.inference.chains.pymc_engine", ("pymc", "arviz"), PYMC_SAMPLERS),
    "numpyro": _Elsewhere("privug.inference.chains.numpyro_engine", ("numpyro", "jax", "arviz"), ("nuts",)),
}
GRADIENTS = ("numpyro", "pymc")
NAMES = ("auto", *ENGINES, *_LOADED_LATER)


def choose(name: str) -> tuple[str, Engine]:
    """Return the engine of that name, with a way of sampling after a colon; 'auto' is the best one for the question."""
    if not isinstance(name, str) or name.partition(":")[0] not in NAMES:
        raise ArgumentError(f"engine must be one of {', '.join(map(repr, NAMES))}, not {shown(name)}")
    base, _, sampler = name.partition(":")
    if sampler and base not in GRADIENTS:
        raise ArgumentError(f"engine={name!r}: only 'pymc' and 'numpyro' have samplers to choose; write {base!r}")
    if sampler and sampler not in _LOADED_LATER[base].samplers:  # known before the library, which takes its time
        listed = ", ".join(repr(f"{base}:{one}") for one in _LOADED_LATER[base].samplers)
        raise ArgumentError(f"engine must be {base!r}, or with its sampler {listed}, not {shown(name)}")
    if base == "auto":
        return name, automatic
    if base in ENGINES:
        return name, ENGINES[base]
    return name, _searching_engine(base, **({"sampler": sampler} if sampler else {}))


def loaded(name: str) -> Any:
    """Load the module of an engine, or say what to install for it."""
    place = _LOADED_LATER[name]
    if not place.is_installed:
        raise UnsuitableEngine(f"engine={name!r} needs more: pip install 'privug[{name}]'; engine='rare' needs nothing")
    with _silent():
        importlib.import_module("privug.inference.chains.arviz_seam")
        return importlib.import_module(place.module)


@contextmanager
def _silent() -> Iterator[None]:
    """Keep PyTensor from warning that there is no C compiler, which engines do without, and ArviZ of its future."""
    logger = logging.getLogger("pytensor.configdefaults")
    with quietly():
        level = logger.level
        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.setLevel(level)


def _searching_engine(name: str, **options: Any) -> Engine:
    return partial(_given_facts, partial(loaded(name).infer, **options))


def _given_facts(engine: Engine, question: Question, observation: Observation | None, **options: Any) -> Answer:
    """Ask an engine that tells how likely observation and facts are together; make it that of the observation alone."""
    run = engine(question, observation, **options)
    together = run.diagnostics.evidence
    if not question.facts or together is None:
        return run
    evidence: Estimate | None = Estimate.exactly(1.0)
    if observation is not None:  # on inputs that contradict a fact the program may fail too: that is not known
        evidence = None if question.exclude_errors else together.divided_by(check_facts(question))
    return run.noting(evidence=evidence)


def check_facts(question: Question) -> Estimate:
    """Return how likely the facts are before they are assumed; refuse those that cannot be."""
    if question.probability_of_facts is None:
        try:
            run = _facts_found(QuestionOfFacts.of(question), samples=SAMPLES_OF_FACTS, seed=0)
        except (ImpossibleObservation, NotConverged, TooFewSamples):
            raise QuestionError(
                "assume: under the prior, what is assumed never holds, or too seldom to be found; a fact that two "
                "continuous quantities are equal has probability zero: use one random variable in both places"
            ) from None
        question.probability_of_facts = run.diagnostics.evidence
    assert question.probability_of_facts is not None
    return question.probability_of_facts


def _facts_found(question: QuestionOfFacts, **options: Any) -> Answer:
    """Find out how likely facts are: exactly, by draws, or by a search that ends soon where there is nothing."""
    request = Request(question, Equals(True))
    prepared = exact.prepare(request)
    if not isinstance(prepared, Obstacle):
        try:
            with workload.limited(_patience()):
                return exact.answer(request, prepared)
        except UnsuitableEngine:
            pass
    try:
        return sampling.draw(question, Equals(True), abandon=True, **options)
    except (TooFewSamples, NotConverged):
        options |= SEARCH_FOR_FACTS
        loaded("rare").scout(question, Equals(True), **options)
        run: SampledAnswer = loaded("rare").infer(question, Equals(True), **options)
        return run


def known_prior(question: Question) -> Belief | None:
    """Return what is believed about the secret before anything is seen, if that can be computed at little cost.

    Where inputs are left out on which the program fails, that depends on the program too.
    """
    if question.exclude_errors:
        return None
    try:
        alone = QuestionOfSecret.of(question)
        request = Request(alone)
        prepared = exact.prepare(request)
        if isinstance(prepared, Obstacle) or prepared.cost > (_patience() if alone.sized else COST_OF_PRIOR):
            return None
        with workload.limited(_patience()):
            return exact.answer(request, prepared).beliefs[SECRET]
    except PrivugError:  # of a prior or a secret that only samples can be drawn of
        return None


def before(name: str) -> Engine:
    """Return the engine that draws secret and output before an observation, for one that is made for observations."""
    return automatic if name.partition(":")[0] in _LOADED_LATER else choose(name)[1]


def _patience() -> float:
    """Return how many elementary operations `auto` waits for an exact answer."""
    return settings.current().exact_seconds * OPERATIONS


def effort_of_joint(name: str) -> AbstractContextManager[Any]:
    """Bound the work of an exact joint, which may take longer than a posterior, unless exactness was asked for."""
    return workload.limited(None if name == "exact" else JOINT_EXCESS * _patience())


def automatic(question: Question, observation: Observation | None, **options: Unpack[Options]) -> Answer:
    """Answer exactly where that takes some seconds at most, or no more than the samples asked for; else by sampling.

    Where a pilot run shows that draws from the prior are not worth enough, an engine that searches for the observation
    takes over: by gradients for many continuous inputs, else by levels that come nearer and nearer.
    """
    tried = Tried()
    patience = _patience()
    with tried.attempt("exact", EARLY_SHARE, UnsuitableEngine), workload.limited(MOST_EXCESS * patience) as attempt:
        request = Request(question, observation, options.get("extra"))
        prepared = exact.prepare(request)
        if not isinstance(prepared, Obstacle) and _is_worth(prepared, question, observation, options["samples"]):
            attempt.limit = MOST_EXCESS * max(patience, prepared.cost)
            return _because(exact.answer(request, prepared), "the answer can be computed without sampling", "exact")
    return _sampled(question, observation, tried, **options)


def _is_worth(prepared: Offer, question: Question, observation: Observation | None, samples: int) -> bool:
    """Say whether an exact answer is soon there, or sooner than the samples asked for."""
    if prepared.cost <= _patience():
        return True
    affordable = (prepared.cost - COST_OF_SAMPLING) / max(1.0, prepared.cost_of_sample)
    return affordable <= samples or affordable <= samples * _draws_per_sample(question, observation)


def _sampled(question: Question, observation: Observation | None, tried: Tried, **options: Any) -> Answer:
    if observation is None and not question.facts:
        with tried.last_attempt("sample"):
            run = sampling.draw(question, None, **options)
        return _because(run, f"nothing was observed: draws from the prior are the answer{tried}", "sample")
    try:
        with tried.last_attempt("sample"):
            run = sampling.draw(question, observation, abandon=True, **options)
    except (TooFewSamples, NotConverged) as error:
        found = _searched(question, observation, str(error), tried, **options)
        if found is not None:
            return found
        tried.tell("draws from the prior, up to the whole budget")
        with tried.last_attempt("sample"):
            run = sampling.draw(question, observation, **options)
        return _because(run, f"no other engine could answer, though draws from the prior seldom fit{tried}", "sample")
    kept = f"{run.diagnostics.draws:,} draws from the prior are worth {run.diagnostics.effective_samples:,.0f} samples"
    return _because(run, f"{kept}{tried}", "sample")


def _searched(
    question: Question, observation: Observation | None, obstacle: str, tried: Tried, **options: Any
) -> Answer | None:
    """Ask the engines that need no draw from the prior to fit, the likeliest to succeed first."""
    names = list(_searching(question, observation, options["seed"], options["samples"]))
    for name in names:
        tried.tell(f"'{name}', because {obstacle}")
        with tried.attempt(name, 1.0 if name == names[-1] else EARLY_SHARE):
            run = _searching_engine(name)(question, observation, **options)
            return _because(run, f"{obstacle}{tried}", name)
    return None


def _searching(question: Question, observation: Observation | None, seed: int, samples: int) -> Iterator[str]:
    """Yield engines by name, those first that lead to the observation; one that follows gradients stands for all."""
    gradients = [name for name in GRADIENTS if _LOADED_LATER[name].is_installed]
    dimensions = _dimensions(question)
    if dimensions is None:
        yield "rare"
    elif dimensions < MANY_DIMENSIONS or not _has_gradients(question, observation, seed, samples):
        yield from ("rare", *gradients)
    else:
        yield from (*gradients[:1], "rare", *gradients[1:])


def _has_gradients(question: Question, observation: Observation | None, seed: int, samples: int) -> bool:
    """Say whether gradients lead to the observation, rather than a wall that chains would have to run against."""
    try:
        return is_differentiable(prepare(question, observation, seed, samples))
    except (InferenceError, SampleFailure):
        return False


def _dimensions(question: Question) -> int | None:
    """Return of how many continuous numbers the output is made; None if gradients do not tell the way."""
    if question.size_nodes:
        return None
    nodes = ancestors([variable.node for variable in random_leaves(question.case().output)])
    roots: list[Node] = [node for node in nodes if node.is_random]
    if any(node.operation.opaque for node in nodes) or any(root.kind is not Kind.CONTINUOUS for root in roots):
        return None
    return sum(math.prod(root.shape) for root in roots)


def _because(answer: Answer, reason: str, engine: str) -> Answer:
    return answer.served_by(engine).noting(chosen_because=reason)


def _draws_per_sample(question: Question, observation: Observation | None) -> float:
    """Return how many draws one sample that agrees with the observation takes, as far as a pilot run can tell."""
    if observation is None or question.size_nodes:
        return 1.0
    try:
        case = question.case()
        samples = pilot_samples(random_nodes(case), PILOT_SAMPLES)
        plan = CasePlan(case, observation, None, [], question.exclude_errors, points_only=False)
        kept = plan.run(sampling.generator(0, 0), np.arange(samples), {})
    except (SampleFailure, PrivugError):  # what is wrong shows again when the samples are drawn
        return 1.0
    return samples / max(1, len(kept.positions))


FIRST_SAMPLES = 1_000
MOST_ADAPTIVE_SAMPLES = 20_000_000

Outcome = TypeVar("Outcome")


def until_precise(
    run: Callable[[int], Outcome],
    measure: Callable[[Outcome], Estimate],
    precision: float,
    remarked: Callable[[Outcome, str], Outcome],
    first: int = FIRST_SAMPLES,
    most: int = MOST_ADAPTIVE_SAMPLES,
) -> Outcome:
    """Run with more and more samples until the interval of a measure is no wider than the precision on either side.

    Intervals shrink as one over the root of the samples: the next run has as many as that rule asks for. If that is
    interrupted, or out of time, the latest outcome is returned, with a remark.
    """
    samples, best = first, math.inf
    latest: Outcome | None = None
    with ProgressMeter("tightening", 1.0) as meter:
        while True:
            # A measure may refuse few samples; then there is no interval yet.
            try:
                interruption.check()
                attempt = _attempt(run, measure, samples)
            except (KeyboardInterrupt, OutOfTime):
                if latest is None:
                    raise
                return remarked(latest, interruption.taken_note(f"the interval is still {best:.3g} to either side"))
            half = math.inf if attempt is None else attempt[1]
            if attempt is not None and half <= precision:
                return attempt[0]
            best = min(best, half)
            latest = latest if attempt is None else attempt[0]
            if interruption.is_time_up() and latest is not None:
                return remarked(latest, f"the interval is still {best:.3g} to either side")
            if samples >= most:
                raise TooFewSamples(
                    f"precision={precision:g} was not reached with {samples:,} samples: the interval is still "
                    f"{best:.3g} to either side; ask for less precision, or raise budget="
                )
            meter.update(min(1.0, (precision / half) ** 2), f"± {half:.3g} with {samples:,} samples")
            growth = 4.0 if not math.isfinite(half) else min(8.0, max(1.5, 1.1 * (half / precision) ** 2))
            samples = min(most, math.ceil(samples * growth))


def _attempt(
    run: Callable[[int], Outcome], measure: Callable[[Outcome], Estimate], samples: int
) -> tuple[Outcome, float] | None:
    try:
        outcome = run(samples)
        with naming("measure"):
            estimate = measure(outcome)
    except TooFewSamples:
        return None
    if not isinstance(estimate, Estimate):
        raise ArgumentError(
            "measure must return an estimate, whose interval is to become small, such as "
            f"pv.leakage.bayes_risk(result.joint), not {shown(estimate)}"
        )
    if estimate.exact or math.isinf(estimate.value):
        return outcome, 0.0
    return outcome, max(estimate.high - estimate.value, estimate.value - estimate.low)


BEFORE = 1 << 64  # added to the seed: the prior must not reuse the draws that the posterior was chosen from


class PreparedQuestion:
    """A question and the engine that answers it.

    `options` are samples, seed and budget; `section` names the part of a run that the engine is asked in.
    """

    def __init__(
        self,
        question: Question,
        engine: str,
        options: Mapping[str, Any],
        section: Callable[..., AbstractContextManager[Any]] = lambda *_: nullcontext(),
    ) -> None:
        self.question = question
        self.engine, self._serve = choose(engine)
        self._options = options
        self._section = section

    def condition(self, observation: Observation | None, query: Callable[..., Any] | None = None) -> Answer:
        """Return what the engine finds, given an observation."""
        return self._asked(self._serve, observation, {} if query is None else {"extra": query})

    def _asked(self, serve: Engine, observation: Observation | None, changes: Mapping[str, Any]) -> Answer:
        """Ask an engine; what it computes without an observation is computed once."""
        options = {**self._options, **changes}

        def asked() -> Answer:
            with self._section(observation is not None, sorted(options.items(), key=itemgetter(0))):
                answer = serve(self.question, observation, **options)
            return answer.merged(self.question, options.get("extra"))

        if observation is not None or "extra" in options:
            return asked()
        known = settings.current()
        what = "before", serve, options["samples"], known.rounding, known.exact_seconds
        return self.question.once(what, asked, lambda answer: answer.is_exact)  # samples differ from seed to seed

    def before(self, engine: str | None = None) -> Answer:
        """Return the answer without an observation, on enough samples where samples are drawn."""
        samples = enough_samples(self.question, self._options["samples"])
        changes = {"samples": samples, "budget": None, "seed": self._options["seed"] + BEFORE}
        return self._asked(before(engine or self.engine), None, changes)

    def prior(self) -> Belief | None:
        """Return what is believed about the secret before anything is seen, where that can be computed."""
        known = settings.current()

        def found() -> Belief | None:
            belief = known_prior(self.question)
            return None if belief is None else merged_prior(belief, self.question)

        return self.question.once(("prior", known.rounding, known.exact_seconds), found)

    def joint(self, before: Answer) -> Joint:
        """Return secret and output together: of an answer without an observation, or of samples if that has none."""
        sides = definition_of(self.question, "secret"), definition_of(self.question, "output")
        try:
            with effort_of_joint(self.engine):
                return before.joint(*sides, self.prior)
        except UnsuitableEngine:
            if self.engine == "exact" or not before.is_exact:
                raise
        return self.before("sample").joint(*sides, self.prior)

    def belief(self, answer: Answer, observation: Observation | None, query: Callable[..., Any]) -> Belief:
        """Return the belief about any function of inputs and output: on the samples of an answer, or asked anew."""
        belief = answer.further(query, self.question)
        if belief is not None:
            return belief
        try:
            found = self.condition(observation, query)
        except UnsuitableEngine:
            found = self._asked(ENGINES["sample"], observation, {"extra": query})
        belief = found.belief(QUERY, UNDEFINED)
        assert belief is not None
        is_exception = answer.is_exact and not found.is_exact
        return replace(belief, label="sampled, though the posterior is exact, ") if is_exception else belief
