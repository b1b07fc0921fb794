"""Facts: what is known of the inputs before the program runs, as predicates or as outputs of other programs."""

import functools
from collections.abc import Callable
from typing import Any

from privug.errors import ObservationError
from privug.model.pickling import Portable
from privug.observation.likelihood import Likelihood, equal_values
from privug.observation.observations import Equals, judged


class Seen(Portable):
    """The fact that another program gave this value on the same inputs, which it does with some probability."""

    def __init__(self, program: Callable[..., Any], value: Any) -> None:
        functools.update_wrapper(self, program)
        self.program = program
        self.value = value

    def __call__(self, *inputs: Any) -> bool:
        return equal_values(self.program(*inputs), self.value)


def looked_at(fact: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of the inputs that a fact is about: a predicate is about itself."""
    return fact.program if isinstance(fact, Seen) else fact


def told_by(fact: Callable[..., Any], found: Any) -> Likelihood:
    """Return what a fact says, given what it looks at, lifted."""
    if not isinstance(fact, Seen):
        return judged(found, "assume: a fact", "a fact is false for every input")
    likelihood = Equals(fact.value).likelihood(found)
    if likelihood.points:
        raise ObservationError("the exact value of a continuous output has probability zero: it is no fact")
    return likelihood
