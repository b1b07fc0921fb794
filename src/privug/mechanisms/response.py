"""Randomized response: the truth with some probability, else any of the possible answers."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from privug.arguments import NumberRange, Positive, check_kind, kinds_checked, shown
from privug.errors import ArgumentError, ProgramError
from privug.mechanisms.guarantee import Guarantee
from privug.mechanisms.mechanism import Mechanism, remakeable
from privug.model.structure import flatten
from privug.model.variable import RandomVariable, stack_values
from privug.prior.choice import Choice
from privug.prior.discrete import Bernoulli
from privug.program.logic import sample, where


@dataclass(frozen=True)
class Responded:
    """The release that replaces every answer by a random one with some probability."""

    values: tuple[Any, ...]
    kept: float

    def __call__(self, answers: Any) -> Any:
        structure, leaves = flatten(answers)
        return structure.build([self._responded(leaf) for leaf in leaves])

    def _responded(self, answer: Any) -> Any:
        if isinstance(answer, RandomVariable) and answer.ndim:
            return RandomVariable(stack_values([self._responded(answer[k]) for k in range(answer.shape[0])]))
        if isinstance(answer, np.ndarray) and answer.ndim:
            return np.array([self._responded(item) for item in answer.tolist()])
        self._check(answer)
        return where(sample(Bernoulli(self.kept)), answer, sample(Choice(self.values)))

    def _check(self, answer: Any) -> None:
        random = isinstance(answer, RandomVariable)
        possible = (answer.node.levels or ()) if random else (answer,)
        unknown = [value for value in possible if value not in self.values]
        if unknown:
            raise ProgramError(f"the answer {shown(unknown[0])} is not one of the values of randomized_response")


@remakeable
@kinds_checked
def randomized_response(
    program: Callable[..., Any],
    *,
    values: Sequence[Any] = (False, True),
    epsilon: Positive | None = None,
    truth: float | None = None,
) -> Mechanism:
    """Give the true answer with probability `truth`, else one of the other values, all equally likely.

    With `epsilon`, the truth is told with probability exp(epsilon) / (exp(epsilon) + k - 1), for k values. A list of
    answers is randomized one by one: the promise is to a person who gives one of them. Warner, JASA 1965;
    Kairouz, Oh and Viswanath, NIPS 2014.

    >>> import privug as pv
    >>> smoker = randomized_response(lambda smokes: smokes, truth=0.75)
    >>> print(smoker.guarantee)
    1.09861-differentially private
    >>> attack = pv.Attack(smoker, {"smokes": pv.Bernoulli(0.2) == 1}, secret="smokes")
    >>> print(attack.run(observe=pv.equals(True)).posterior.probability(lambda smokes: smokes))
    0.429 (exact)
    """
    listed = isinstance(values, Sequence) and not isinstance(values, str)
    options = list(dict.fromkeys(values)) if listed and all(isinstance(value, Hashable) for value in values) else []
    if len(options) < 2 or len(options) != len(values):
        raise ArgumentError(
            f"randomized_response: values must be a list of two or more different values, not {shown(values)}"
        )
    if (epsilon is None) == (truth is None):
        raise ArgumentError("randomized_response: give exactly one of epsilon= and truth=, by name")
    if truth is not None:
        check_kind("randomized_response", "truth", truth, (Annotated[float, NumberRange(1 / len(options), 1)],))
        promise = math.log(truth * (len(options) - 1) / (1 - truth)) if truth < 1 else math.inf
    else:
        assert epsilon is not None
        truth, promise = 1 / (1 + (len(options) - 1) * math.exp(-epsilon)), float(epsilon)
    kept = (len(options) * truth - 1) / (len(options) - 1)
    release = Responded(tuple(options), min(1.0, max(0.0, kept)))
    return Mechanism(program, release, Guarantee(max(0.0, promise)), "randomized response")
