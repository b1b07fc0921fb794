"""A question made ready for an engine: prior, joint and every posterior come from one preparation.

What does not depend on an observation is found out once for a question, and serves all observations of it: the models
for the sizes of its tables, the outputs of a program that is called, the belief about the secret before anything is
seen, and the exact joint of secret and output.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from operator import itemgetter
from typing import Any

from privug import settings
from privug.errors import UnsuitableEngine
from privug.inference import engines
from privug.inference.answer import QUERY, UNDEFINED, Answer, definition_of, merged_prior
from privug.inference.belief import Belief
from privug.inference.joint import Joint
from privug.inference.question import Question
from privug.inference.workload import enough_samples
from privug.observation.observations import Observation

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
        self.engine, self._serve = engines.choose(engine)
        self._options = options
        self._section = section

    def condition(self, observation: Observation | None, query: Callable[..., Any] | None = None) -> Answer:
        """Return what the engine finds, given an observation."""
        return self._asked(self._serve, observation, {} if query is None else {"extra": query})

    def _asked(self, serve: engines.Engine, observation: Observation | None, changes: Mapping[str, Any]) -> Answer:
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
        return self._asked(engines.before(engine or self.engine), None, changes)

    def prior(self) -> Belief | None:
        """Return what is believed about the secret before anything is seen, where that can be computed."""
        known = settings.current()

        def found() -> Belief | None:
            belief = engines.known_prior(self.question)
            return None if belief is None else merged_prior(belief, self.question)

        return self.question.once(("prior", known.rounding, known.exact_seconds), found)

    def joint(self, before: Answer) -> Joint:
        """Return secret and output together: of an answer without an observation, or of samples if that has none."""
        sides = definition_of(self.question, "secret"), definition_of(self.question, "output")
        try:
            with engines.effort_of_joint(self.engine):
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
            found = self._asked(engines.ENGINES["sample"], observation, {"extra": query})
        belief = found.belief(QUERY, UNDEFINED)
        assert belief is not None
        is_exception = answer.is_exact and not found.is_exact
        return replace(belief, label="sampled, though the posterior is exact, ") if is_exception else belief
