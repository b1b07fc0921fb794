"""The engines by name, and the choice among them."""

from collections.abc import Callable
from typing import Any, Protocol

from privug.errors import ArgumentError, UnsuitableEngine
from privug.inference import sampling
from privug.inference.exact import engine as exact
from privug.inference.exact.request import Obstacle, Request
from privug.inference.question import Question
from privug.inference.sampling import Run
from privug.observation.observations import Observation

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
    seed: int,
    budget: int | None = None,
    extra: Callable[..., Any] | None = None,
) -> Run:
    """Answer exactly where that costs no more than the samples asked for would, else by sampling."""
    prepared = exact.prepare(Request(question, observation, extra))
    if not isinstance(prepared, Obstacle) and prepared.cost <= prepared.cost_of_sample * samples + COST_OF_SAMPLING:
        try:
            return prepared.run()
        except UnsuitableEngine:
            pass
    return sampling.draw(question, observation, samples=samples, seed=seed, budget=budget, extra=extra)


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
