"""The exact engine: its parts are asked in order, and the cheapest serves."""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from privug import interruption
from privug.errors import UnsuitableEngine
from privug.inference import effort
from privug.inference.exact.counts.lattice import HOPEFUL
from privug.inference.exact.counts.solver import prepare_counts
from privug.inference.exact.finite.part import prepare_elimination, prepare_finite
from privug.inference.exact.gaussian.part import prepare_gaussian
from privug.inference.exact.obstacles import telling, told
from privug.inference.exact.request import Obstacle, Part, Prepared, Refused, Request
from privug.inference.exact.rows.part import COST_OF_CASE, prepare_rows
from privug.inference.exact.witness import witnessed
from privug.inference.question import Question
from privug.inference.sampling import Run
from privug.model.garbage import without_garbage_collection
from privug.observation.observations import Observation

CHEAP = 5e6  # elementary operations that no other part need be asked to spare
MOST_COST = 3e11  # elementary operations: many minutes

PARTS: tuple[Part, ...] = (
    prepare_finite,
    prepare_gaussian,
    prepare_counts,
    prepare_elimination,
    prepare_rows,
)
LEAST: dict[Part, float] = {prepare_rows: COST_OF_CASE}
"""What a part takes at least: it need not be asked beside one that takes less."""


def prepare(request: Request) -> Prepared | Obstacle:
    """Return the cheapest prepared answer, the first one that is cheap, or an obstacle that says something."""
    best, obstacles = _asked(request)
    return best or telling(obstacles)


def _asked(request: Request) -> tuple[Prepared | None, list[Obstacle]]:
    found: list[Prepared] = []
    obstacles: list[Obstacle] = []
    is_counted = False
    for part in PARTS:
        least = min((one.cost for one in found), default=math.inf)
        if least <= CHEAP:
            break
        if least <= LEAST.get(part, 0.0) or (part is prepare_elimination and is_counted):
            continue  # rows that are alike need not be taken apart
        with without_garbage_collection():
            prepared = _affordable(part(request))
        if isinstance(prepared, Obstacle):
            obstacles.append(prepared)
        else:
            found.append(prepared)
            is_counted |= part is prepare_counts and prepared.cost < HOPEFUL
    ranked = sorted(found, key=lambda one: one.cost)
    return replace(ranked[0], run=partial(_in_turn, ranked)) if ranked else None, obstacles


def _in_turn(ranked: Sequence[Prepared]) -> Run:
    """Return the answer of the first solver that does not meet an obstacle after all."""
    for prepared in ranked[:-1]:
        with suppress(Refused):
            return prepared.run()
    return ranked[-1].run()


def _affordable(prepared: Prepared | Obstacle) -> Prepared | Obstacle:
    """Return what was prepared, if it takes no longer than anybody waits; who says how long may have it tried."""
    if isinstance(prepared, Obstacle) or prepared.cost <= MOST_COST or interruption.seconds_left() is not None:
        return prepared
    return Obstacle(f"it would take some {prepared.cost:.0e} operations (the limit is {MOST_COST:.0e})")


def answer(request: Request, prepared: Prepared) -> Run:
    """Return what was prepared, unless draws of the model contradict it."""
    return witnessed(request, prepared, prepare)


def infer(
    question: Question,
    observation: Observation | None,
    *,
    extra: Callable[..., Any] | None = None,
    **_: Any,
) -> Run:
    """Answer exactly, or say what stands in the way; samples, seed and budget change nothing."""
    request = Request(question, observation, extra)
    prepared, obstacles = _asked(request)
    if prepared is not None:
        try:
            with effort.limited(None, prepared.cost):
                return answer(request, prepared)
        except Refused as refused:
            obstacles.append(refused.obstacle)
    raise UnsuitableEngine(f"engine='exact' cannot answer this: {told(request, obstacles)}; engine='sample' can")
