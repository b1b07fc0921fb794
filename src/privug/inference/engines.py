"""The engines by name, and the choice among them."""

from collections.abc import Callable
from typing import Any, Protocol

from privug.errors import ArgumentError, UnsuitableEngine
from privug.inference import sampling
from privug.inference.question import Question
from privug.inference.sampling import Run
from privug.observation.observations import Observation


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


ENGINES: dict[str, Engine] = {"sample": sampling.draw}
PLANNED = ("exact", "rare", "pymc", "numpyro")


def choose(name: str) -> tuple[str, Engine]:
    """Return the engine of that name; 'auto' is the best one there is for the question."""
    if name == "auto":
        name = "sample"
    if name in ENGINES:
        return name, ENGINES[name]
    if name in PLANNED:
        raise UnsuitableEngine(
            f"engine={name!r} is not part of this version of Privug; engine='sample' serves every question"
        )
    raise ArgumentError(f"engine must be one of 'auto', {', '.join(map(repr, ENGINES))}, not {name!r}")
