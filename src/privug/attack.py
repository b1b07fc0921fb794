"""The five steps together: an Attack asks the question, a Result holds the answer."""

import importlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from operator import methodcaller
from pathlib import Path
from typing import Any, ClassVar

from privug import settings
from privug.arguments import check_kind, is_one_of, kinds_checked, shown
from privug.checkpoints.checkpoint import Checkpoint, checkpoint_of, section_of
from privug.digits import how_many
from privug.errors import ArgumentError
from privug.escaping import inert
from privug.estimate import Estimate
from privug.inference import engines
from privug.inference.answer import OUTPUT, QUERY, SECRET, UNDEFINED, Answer, ExactAnswer, SampledAnswer, definition_of
from privug.inference.belief import Belief
from privug.inference.diagnostics import Diagnostics
from privug.inference.engines import (
    PreparedQuestion,
    as_claims,
    bounded,
    check_answers,
    checked_facts,
    checked_options,
    positive,
    until_precise,
)
from privug.inference.joint import Joint
from privug.inference.question import Question
from privug.inference.workload import FEWEST_OF_PRIOR, TooMuchWork
from privug.leakage.information import mutual_information
from privug.leakage.register import LeakageTable, leakage_of_observation, leakage_table
from privug.model.batch import Batch
from privug.model.node import Array
from privug.observation.observations import Observation, as_observation
from privug.output import as_json
from privug.pictures import plots
from privug.program.lifting import Lifting
from privug.report.draws import chain_by_chain, drawn_from, observed_values, that_input
from privug.report.files import FORMATS, written
from privug.report.summary import ReportSummary, plain_values, summary_of
from privug.report.text import as_frame, as_text, attack_html, result_html
from privug.runtime.pickling import Portable, Unchanging
from privug.tallies import Tallied


class Attack(Tallied, Portable):
    """A program, what an attacker knows about its inputs, and the secret that they want to learn.

    Args:
        program: The program whose output is released; an ordinary function, `pv.sql(...)` or `pv.External(...)`.
        prior: Maps the program's parameters to distributions, tables or plain values.
        secret: A function of the inputs, the name of an input, or a list of names.
        observe: What the attacker sees of the output, unless `run` is given another observation.
        questions: Maps claims in words to predicates on the secret, for the report.
        assume: Facts that relate inputs and that the attacker knows, such as who earns most: a predicate on the
            inputs, a list of predicates, or a dict from claims in words to predicates. They are part of the prior.
        name: The title of reports; the program's name if it is empty.
        on_error: "exclude" excludes and counts inputs on which the program raises; "raise" raises.

    Raises:
        ArgumentError: An argument is not of its kind.
        QuestionError: The parts do not fit, such as a parameter of the program without a prior.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda x, y: x + y, secret="x",
    ...                    prior={"x": pv.DiscreteUniform(0, 10), "y": pv.DiscreteUniform(0, 10)})
    >>> result = attack.run(observe=pv.equals(20), samples=1000, seed=1)
    >>> result.posterior.distribution()[10].value
    1.0
    """

    found_again: ClassVar[Mapping[str, Callable[[], Any]]] = {"_latest": type(None)}

    def __init__(
        self,
        program: Callable[..., Any],
        prior: Mapping[str, Any],
        secret: Any,
        *,
        observe: Any = None,
        questions: Mapping[str, Callable[[Any], Any]] | None = None,
        assume: Callable[..., Any] | Sequence[Callable[..., Any]] | Mapping[str, Callable[..., Any]] = (),
        name: str = "",
        on_error: str = "raise",
    ) -> None:
        check_kind("Attack", "name", name, (str,))
        if not is_one_of(on_error, ("raise", "exclude")):
            raise ArgumentError(f"on_error must be 'raise' or 'exclude', not {shown(on_error)}")
        facts = checked_facts(assume)
        self.question = Question(program, prior, secret, exclude_errors=on_error == "exclude", facts=facts)
        self.observe = None if observe is None else as_observation(observe)
        self.questions = as_claims(questions)
        self.name = name or _name_of(program)
        self._latest: Lifting | None = None

    @property
    def lifting(self) -> Lifting:
        """How the program was lifted in the latest run; with tables of random size, at typical sizes."""
        return self._latest or self.question.lifting()

    def run(
        self,
        observe: Any = None,
        *,
        engine: str = "auto",
        samples: int = 10_000,
        seed: int = 0,
        budget: int | None = None,
        precision: float | None = None,
        measure: Callable[["Result"], Estimate] | None = None,
        seconds: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        on: Any = None,
    ) -> "Result":
        """Condition the prior on what the attacker sees.

        Args:
            observe: The observation; None takes the attack's own, if it has one.
            engine: The inference engine, or "auto"; "exact", "sample", "rare", "pymc" and "numpyro".
            samples: How many samples of the posterior are wanted.
            seed: The same seed gives the same result on any number of workers.
            budget: How many draws from the prior may be spent on the samples.
            precision: Samples are added until the interval of a measure extends no further than this to either side.
            measure: The measure of `precision`, a function of the result; the attack's first question or the mutual
                information if there is none.
            seconds: Limits the time, also of what the result is asked for later. What was found by then is returned
                with a remark, if it can be trusted.
            checkpoint: The path of a file that keeps samples as they are drawn. A run that was killed, interrupted or
                out of time continues from it, to the same result.
            on: A client of Dask, or the address of its scheduler, on which long computations run.

        Returns:
            What the attacker believes before and after the observation.

        Raises:
            ImpossibleObservation: The observation has probability zero.
            UnsuitableEngine: The engine cannot answer this question; the message names one that can.
            TooFewSamples: Too few samples agree with the observation.
            OutOfTime: The time ran out before anything could be trusted; the message says what was tried.
            CheckpointError: The file belongs to another question, or is damaged.
        """
        options = checked_options(samples=samples, seed=seed, budget=budget)
        limit, width = positive("seconds", seconds, "60"), positive("precision", precision, "0.01")
        observation = self.observe if observe is None else as_observation(observe)
        name = engines.choose(engine)[0]
        check_kind("run", "measure", measure, (Callable[..., Any], type(None)))
        kept = None
        if checkpoint is not None:
            asked = {"engine": name, **options, "precision": width, "the measure": measure if width else None}
            kept = checkpoint_of(checkpoint, self.question, observation, asked)
        with bounded(name, limit):
            if self.question.facts:
                with section_of(kept, "facts"):
                    engines.check_facts(self.question)
            check_answers(self.questions, self.question)
            if width is None:
                return Result(self, observation, name, options, limit, kept, on)
            return until_precise(
                lambda count: Result(self, observation, name, {**options, "samples": count}, limit, kept, on),
                measure or self._first_question,
                width,
                Result._remarked,
            )

    def replace(self, **changes: Any) -> "Attack":
        """Return the same attack with some of its parts changed; all others stay, facts and `on_error` too.

        Args:
            changes: The arguments of `Attack` that change, by their names. A name that was not given to the attack
                follows the program. `observe=None` and `questions=None` take away what was seen and what was asked.

        Returns:
            A new attack; this one stays as it is. If no more than `observe`, `questions` or `name` changes, both share
            what is known of their question, whatever is seen: a run of one makes the first run of the other faster.

        Raises:
            ArgumentError: If an argument is none of those of `Attack`, or is refused by it.

        >>> import privug as pv
        >>> attack = pv.Attack(lambda x, y: x + y, secret="x", assume=lambda x, y: x > y,
        ...                    prior={"x": pv.DiscreteUniform(0, 9), "y": pv.DiscreteUniform(0, 9)})
        >>> rounded = attack.replace(program=lambda x, y: (x + y) // 5 * 5)
        >>> print(pv.leakage.mutual_information(attack.run().joint))
        1.39 bit (exact)
        >>> print(pv.leakage.mutual_information(rounded.run().joint))
        0.843 bit (exact)
        """
        question = self.question
        kept: dict[str, Any] = {"program": question.program, "prior": question.prior, "secret": question.secret}
        kept |= {"observe": self.observe, "questions": self.questions, "assume": question.facts}
        kept |= {"name": "" if self.name == _name_of(question.program) else self.name}
        kept |= {"on_error": "exclude" if question.exclude_errors else "raise"}
        unknown = [name for name in changes if name not in kept]
        if unknown:
            raise ArgumentError(f"replace: {unknown[0]} is not an argument of Attack; give one of {', '.join(kept)}")
        made = Attack(**(kept | changes))
        if changes and changes.keys() <= {"observe", "questions", "name"}:
            made.question = question  # what is known of it already is known of the new attack
        return made

    def explore(self, **options: Any) -> Any:
        """Show this attack on a page where its numbers can be moved; in a notebook it appears below the cell.

        Args:
            options: `engine`, `samples`, `seed` and `seconds` of every run, as for `run`.

        Returns:
            A `pv.explorer.Explorer`, whose `address` a browser opens and whose `close()` ends it.

        Raises:
            ArgumentError: If Starlette and uvicorn are not installed: pip install 'privug[web]'.
        """
        return importlib.import_module("privug.explorer").explore(self, **options)

    def to_pymc(self, observe: Any = None) -> Any:
        """Return this attack as a PyMC model, with the observation as a potential; needs the extra 'pymc'."""
        observation = self.observe if observe is None else as_observation(observe)
        return engines.loaded("pymc").to_pymc(self.question, observation)

    def _first_question(self, result: "Result") -> Estimate:
        """Return the answer to the attack's first question; without questions, the mutual information."""
        for predicate in self.questions.values():
            return result.posterior.probability(predicate)
        return mutual_information(result.joint)

    def _repr_html_(self) -> str:
        return attack_html(self)

    def __repr__(self) -> str:
        return f"<Attack {self.name!r} on {', '.join(self.question.prior)}>"


def _name_of(program: Callable[..., Any]) -> str:
    """Return what an attack on a program is called unless it is given a name."""
    return str(getattr(program, "__name__", "program"))


class Result(Unchanging):
    """What an attacker believes before and after the observation; `formats` are the endings of files of reports.

    >>> import privug as pv
    >>> result = pv.Attack(lambda x: x, prior={"x": pv.Bernoulli(0.2)}, secret="x").run(pv.equals(1))
    >>> result.prior.mean().value, result.posterior.mean().value
    (0.2, 1.0)
    """

    formats: ClassVar[Mapping[str, Callable[..., str]]] = FORMATS

    def __init__(
        self,
        attack: Attack,
        observation: Observation | None,
        engine: str,
        options: Mapping[str, Any],
        seconds: float | None = None,
        checkpoint: Checkpoint | None = None,
        on: Any = None,
    ) -> None:
        self.attack = attack
        self._checkpoint = checkpoint
        output = "output" if attack.name == "<lambda>" else f"output of {attack.name}"
        self._names = (attack.question.secret_name, output)
        self.observation = observation
        self._options = dict(options)
        self._settings = {"rounding": settings.current().rounding, "on": on}
        self._seconds = seconds
        self._prepared = PreparedQuestion(attack.question, engine, self._options, partial(section_of, checkpoint))
        with self._as_asked():
            answer = self._prepared.condition(observation)
        kept = () if checkpoint is None else checkpoint.remarks
        self._answer = answer.noting(remarks=(*answer.diagnostics.remarks, *kept))
        self.engine = answer.engine or engine
        self.lifting = answer.lifting or attack.question.lifting()
        attack._latest = self.lifting

    @contextmanager
    def _as_asked(self) -> Iterator[None]:
        """Hold to what this was run with: rounding, where, and for how long at most."""
        with settings.limited(**self._settings), bounded(self._prepared.engine, self._seconds):
            yield

    def _remarked(self, remark: str) -> "Result":
        self._answer = self._answer.noting(remarks=(*self.diagnostics.remarks, remark))
        return self

    @property
    def diagnostics(self) -> Diagnostics:
        """How the run went."""
        return self._answer.diagnostics

    @cached_property
    def posterior(self) -> Belief:
        """What the attacker believes about the secret after the observation."""
        known = definition_of(self.attack.question, "secret", given=self.observation is not None)
        belief = self._answer.belief(SECRET, known)
        assert belief is not None
        return belief

    @cached_property
    def joint(self) -> Joint:
        """Secret and output together, before the observation."""
        before = self._before
        with self._as_asked():
            return self._prepared.joint(before).named(*self._names)

    @cached_property
    def _before(self) -> Answer:
        """The answer without the observation."""
        if self.observation is None and self._answer.is_independent:
            return self._answer
        with self._as_asked():
            return self._prepared.before()

    @cached_property
    def prior(self) -> Belief:
        """What the attacker believes about the secret before the observation: computed, where that can be done."""
        with settings.limited(**self._settings):
            known = self._prepared.prior()
        return (known or self._before_seeing(SECRET) or self.joint.secret).named(self._names[0])

    @property
    def prediction(self) -> Belief:
        """What the attacker believes about the output before the observation."""
        return (self._before_seeing(OUTPUT) or self.joint.output).named(self._names[1])

    def _before_seeing(self, position: int) -> Belief | None:
        return self._before.belief(position, UNDEFINED) if self._before.is_exact else None

    def belief(self, query: Callable[..., Any]) -> Belief:
        """Return the posterior belief about any function of the inputs and of `output`."""
        if not callable(query):
            raise ArgumentError(f"belief: a function of the inputs is needed, not {shown(query)}")
        with self._as_asked():
            return self._prepared.belief(self._answer, self.observation, query)

    def leakage(self) -> LeakageTable:
        """Return all measures that make sense for this question, with what each means for a person."""
        return self._leakage

    @cached_property
    def _leakage(self) -> LeakageTable:
        try:
            joint = self.joint
        except TooMuchWork as error:  # secrets and outputs together are too many numbers; beliefs may be known
            return leakage_of_observation(self.prior, self._after, str(error))
        return leakage_table(joint, self._after, self.prior)

    def to_dict(self) -> dict[str, Any]:
        """Return what the report says as plain values, numbers with all their digits."""
        return plain_values(self)

    @kinds_checked
    def to_json(self, indent: int | None = 2) -> str:
        """Return what the report says as JSON; infinite numbers as the strings 'inf' and '-inf'."""
        return as_json(self.to_dict(), indent)

    def to_frame(self) -> Any:
        """Return the leakage table as a pandas DataFrame."""
        return as_frame(self._leakage.to_dict())

    def to_arviz(self) -> Any:
        """Return samples before and after the observation, chain by chain, as ArviZ's InferenceData."""
        try:
            seam = importlib.import_module("privug.inference.chains.arviz_seam")
        except ImportError:
            raise ArgumentError("to_arviz needs ArviZ: pip install 'privug[numpyro]' or 'privug[pymc]'") from None
        groups = {"posterior": self._sampled(), "prior": self._sampled_before()}
        return seam.inference_data(groups, observed_values(self.observation))

    def _sampled(self) -> dict[str, Array]:
        """Return secret, output and inputs as equally weighted draws, as far as they are numbers."""
        answer = self._answer
        if not isinstance(answer, SampledAnswer):
            return drawn_from({"secret": self.posterior}, self._options["samples"])
        question, quantities = self.attack.question, dict(zip(("secret", "output"), answer.quantities, strict=False))
        for name in () if question.size_nodes else question.prior:
            quantities[name] = self._on_the_same_samples(answer, that_input(name))
        return chain_by_chain(quantities, answer.weights, answer.chains or 1)

    def _on_the_same_samples(self, answer: SampledAnswer, query: Callable[..., Any]) -> Batch:
        if answer.on_samples is not None:
            return answer.on_samples(query)
        with self._as_asked():
            found = PreparedQuestion(self.attack.question, self.engine, self._options).condition(
                self.observation, query
            )
        assert isinstance(found, SampledAnswer)
        return found.quantities[QUERY]

    def _sampled_before(self) -> dict[str, Array]:
        beliefs = {"secret": self.prior, "output": self.prediction}
        return drawn_from(beliefs, max(self._options["samples"], FEWEST_OF_PRIOR))

    @property
    def options(self) -> Mapping[str, Any]:
        """What this was run with: the engine that was asked for, samples, seed, budget and seconds."""
        known = {"engine": self._prepared.engine, **self._options, "seconds": self._seconds}
        return {name: value for name, value in known.items() if value is not None}

    @property
    def _after(self) -> Belief | None:
        return None if self.observation is None else self.posterior

    @cached_property
    def content(self) -> ReportSummary:
        """What a report says about this result, apart from how it looks."""
        merged = dict.fromkeys([*self.diagnostics.merged, *self._before.diagnostics.merged])
        return summary_of(self, self._answer, list(merged))

    def summary(self) -> str:
        """Return in one sentence what the attacker learns: about the question that changes most, or the secret."""
        return inert(self.content.sentences[0])

    @kinds_checked
    def plot(self, ax: Any = None, beside: Sequence["Result"] = ()) -> Any:
        """Draw the beliefs before and after, with those of other results; `ax` is matplotlib axes or a path."""
        for one in beside:
            check_kind("plot", "beside", one, (Result,))
        shown = [(one.attack.name, one.prior, one._after) for one in (self, *beside)]
        return plots().beliefs(shown, ax, self._names[0])

    def save(self, path: str | Path) -> Path:
        """Write the report to a file, in the format that its name ends in: .html, .txt or .json."""
        return written(path, FORMATS, [self], "")

    def __str__(self) -> str:
        return as_text(self.content)

    def _repr_html_(self) -> str:
        return result_html(self.content)

    def __reduce__(self) -> tuple[Any, ...]:  # the same seed gives the same result
        return methodcaller("run", self.observation, engine=self._prepared.engine, **self._options), (self.attack,)

    def __repr__(self) -> str:
        answer = self._answer
        sampled = how_many(self.diagnostics.accepted, "sample")
        what = answer.computed_from if isinstance(answer, ExactAnswer) else sampled
        return f"<Result of {self.attack.name!r}: engine {self.engine!r}, {what}>"
