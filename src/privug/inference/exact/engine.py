"""The exact engine: its parts are asked in order, and the cheapest serves."""

from collections.abc import Callable, Sequence
from typing import Any

from privug.errors import UnsuitableEngine
from privug.inference.exact.additive import prepare_additive
from privug.inference.exact.finite import prepare_counts, prepare_finite
from privug.inference.exact.gaussian import prepare_gaussian
from privug.inference.exact.request import Obstacle, Part, Prepared, Request
from privug.inference.question import Question
from privug.inference.sampling import Run
from privug.observation.observations import Observation

CHEAP = 5e6  # elementary operations that no other part need be asked to spare

PARTS: tuple[Part, ...] = (prepare_finite, prepare_gaussian, prepare_counts, prepare_additive)


def prepare(request: Request) -> Prepared | Obstacle:
    """Return the cheapest prepared answer, the first one that is cheap, or the obstacle that says most."""
    best: Prepared | None = None
    obstacles: list[Obstacle] = []
    for part in PARTS:
        prepared = part(request)
        if isinstance(prepared, Obstacle):
            obstacles.append(prepared)
        elif best is None or prepared.cost < best.cost:
            best = prepared
        if best is not None and best.cost <= CHEAP:
            break
    return best or _telling(obstacles)


def _telling(obstacles: Sequence[Obstacle]) -> Obstacle:
    return next((obstacle for obstacle in obstacles if not obstacle.vague), obstacles[0])


def infer(
    question: Question,
    observation: Observation | None,
    *,
    extra: Callable[..., Any] | None = None,
    **_: Any,
) -> Run:
    """Answer exactly, or say what stands in the way; samples, seed and budget change nothing."""
    prepared = prepare(Request(question, observation, extra))
    if isinstance(prepared, Obstacle):
        raise UnsuitableEngine(f"engine='exact' cannot answer this: {prepared.reason}; engine='sample' can")
    return prepared.run()
