"""What the exact engine is asked, and what its solvers say to that: an offer of an answer at a cost, or an obstacle."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from privug.errors import UnsuitableEngine
from privug.estimate import Estimate
from privug.inference.answer import ExactAnswer
from privug.inference.belief import Belief
from privug.inference.case_plan import Quantity
from privug.inference.diagnostics import Diagnostics
from privug.inference.joint import Joint
from privug.inference.question import Case, Question, Sizes
from privug.model.node import Node
from privug.observation.observations import Observation

Way = Literal["finite", "elimination"]
CERTAIN_EVIDENCE = Estimate.exactly(1.0, method="exact")


@dataclass(frozen=True)
class Request:
    """A question, what was seen of the output, and a further query about inputs and output.

    `way` is how states are come by: all of them ('finite'), or round by round ('elimination').
    """

    question: Question
    observation: Observation | None = None
    extra: Callable[..., Any] | None = None
    way: Way = "finite"

    def case(self, sizes: Sizes = ()) -> Case:
        """Return the model for given sizes of the tables of random size."""
        return self.question.case(sizes)

    def query(self, case: Case) -> Any:
        """Return the further quantity in terms of a case's random variables; None if none was asked for."""
        return None if self.extra is None else self.question.query(case, self.extra)

    def asked(self, case: Case) -> list[Quantity]:
        """Return the secret and, if one was asked for, the further quantity."""
        return [Quantity.of(value) for value in (case.secret, *(() if self.extra is None else (self.query(case),)))]


@dataclass(frozen=True)
class Offer:
    """An exact answer that can be had at a cost, in elementary operations on numbers: about a nanosecond each.

    `cost_of_sample` is what drawing one sample of the same question would cost.
    """

    cost: float
    cost_of_sample: float
    run: Callable[[], ExactAnswer]


@dataclass(frozen=True)
class Obstacle:
    """Why a solver of the exact engine cannot serve, as the end of a sentence; a `vague` one says little of use.

    A `precise` one is of a solver that the output itself would suit, and `node` is where it stands, if that is known.
    """

    reason: str
    vague: bool = False
    precise: bool = False
    node: Node | None = None


def exact_answer(
    solver: str,
    source: str,
    beliefs: Sequence[Belief | None],
    joint: Callable[[], Joint],
    evidence: Estimate,
    counts: tuple[int, int, int],
    started: float,
) -> ExactAnswer:
    """Return what a solver found; `counts` are its states, those that agree with what was seen, and excluded ones."""
    (states, agreeing, excluded), seconds = counts, time.perf_counter() - started
    diagnostics = Diagnostics(states, agreeing, math.inf, evidence, 0, excluded, seconds)
    return ExactAnswer(solver, source, tuple(beliefs), joint, diagnostics)


class Refused(UnsuitableEngine):
    """A solver met an obstacle, when it prepared an answer or after all."""

    def __init__(self, reason: str, vague: bool = False, precise: bool = False, node: Node | None = None) -> None:
        super().__init__(f"engine='exact' cannot answer this: {reason}; engine='sample' can")
        self.obstacle = Obstacle(reason, vague, precise, node)


Solver = Callable[[Request], Offer]
"""Prepares an answer, or raises Refused."""
