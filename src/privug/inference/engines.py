"""The engines by name, and the choice among them."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from privug.errors import ArgumentError, PrivugError, UnsuitableEngine
from privug.inference import sampling
from privug.inference.case_plan import CasePlan
from privug.inference.exact import engine as exact
from privug.inference.exact.request import Obstacle, Request
from privug.inference.question import Question
from privug.inference.sampling import Run
from privug.model.operations import SampleFailure
from privug.observation.observations import Observation

PILOT_SAMPLES = 1024
COST_OF_SAMPLING = 5e6  # of starting and judging a run, in elementary operations


class Engine(Protocol):
    """Draws or computes secret, output and one further quantity given an observation."""

    def __call__(
        self,
        question: Question,
        observation: Observation | None,
        *,
        samples: int,
        seed: int,
        budget: int | None = None,
        extra: Callable[..., Any] | None = None,
    ) -> Run:
        """Answer the question."""


ENGINES: dict[str, Engine] = {"exact": exact.infer, "sample": sampling.draw}
PLANNED = ("rare", "pymc", "numpyro")


def automatic(
    question: Question,
    observation: Observation | None,
    *,
    samples: int,
    extra: Callable[..., Any] | None = None,
    **options: Any,
) -> Run:
    """Answer exactly where that costs no more than the samples asked for would, else by sampling."""
    prepared = exact.prepare(Request(question, observation, extra))
    if not isinstance(prepared, Obstacle):
        affordable = (prepared.cost - COST_OF_SAMPLING) / max(1.0, prepared.cost_of_sample)
        if affordable <= samples or affordable <= samples * _draws_per_sample(question, observation):
            try:
                return prepared.run()
            except UnsuitableEngine:
                pass
    return sampling.draw(question, observation, samples=samples, extra=extra, **options)


def _draws_per_sample(question: Question, observation: Observation | None) -> float:
    """Return how many draws one sample that agrees with the observation takes, as far as a pilot run can tell."""
    if observation is None or question.size_nodes:
        return 1.0
    try:
        plan = CasePlan(question.case(), observation, None, [], question.exclude_errors)
        kept = plan.run(sampling.generator(0, 0), np.arange(PILOT_SAMPLES), {})
    except (SampleFailure, PrivugError):  # what is wrong shows again when the samples are drawn
        return 1.0
    return PILOT_SAMPLES / max(1, len(kept.positions))


def choose(name: str) -> tuple[str, Engine]:
    """Return the engine of that name; 'auto' is the best one there is for the question."""
    if name == "auto":
        return name, automatic
    if name in ENGINES:
        return name, ENGINES[name]
    if name in PLANNED:
        raise UnsuitableEngine(
            f"engine={name!r} is not part of this version of Privug; engine='sample' serves every question"
        )
    raise ArgumentError(f"engine must be one of 'auto', {', '.join(map(repr, ENGINES))}, not {name!r}")


def served(name: str, run: Run) -> str:
    """Return the name of the engine that gave an answer, where 'auto' was asked for too."""
    if run.exact is not None:
        return run.exact.engine
    return "sample" if name == "auto" else name
