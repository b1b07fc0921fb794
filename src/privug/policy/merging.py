"""The release that tells the class of an output and not the output itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from privug.arguments import shown
from privug.errors import ProgramError
from privug.model.operations import constant
from privug.model.structure import random_leaves
from privug.model.variable import RandomVariable
from privug.observation.likelihood import equal_values
from privug.observation.observations import Equals
from privug.policy.classes import Class
from privug.program.logic import where

MOST_NAMED = 4  # outputs that the name of a class lists


@dataclass(frozen=True, eq=False)
class Merged:
    """A release that says to which of some classes an output belongs, by the name of the class."""

    classes: tuple[tuple[Any, ...], ...]
    names: tuple[str, ...]

    def __call__(self, output: Any) -> Any:
        if not random_leaves(output):
            return self.name_of(output)
        name: Any = self.names[0]
        for members, other in zip(self.classes[1:], self.names[1:], strict=True):
            name = where(reduce(lambda one, more: one | more, [_is(output, member) for member in members]), other, name)
        return name

    @property
    def alone(self) -> list[str]:
        """The names of classes of one output each."""
        return [name for members, name in zip(self.classes, self.names, strict=True) if len(members) == 1]

    def name_of(self, output: Any) -> str:
        """Return the name of the class of a plain output."""
        for members, name in zip(self.classes, self.names, strict=True):
            if any(equal_values(output, member) for member in members):
                return name
        raise ProgramError(f"{shown(output)} is none of the outputs that were thought possible: it is not released")


def _is(output: Any, value: Any) -> RandomVariable:
    """Return the condition that a random output is a value, up to rounding."""
    likelihood = Equals(value).likelihood(output)
    conditions = (constant(False),) if likelihood.impossible else likelihood.conditions or (constant(True),)
    return reduce(lambda one, other: one & other, map(RandomVariable, conditions))


def merged(outputs: Sequence[Any], classes: Sequence[Class]) -> Merged:
    """Return the release that merges outputs into classes, in the order in which these begin."""
    ordered = sorted(tuple(sorted(places)) for places in classes)
    names: list[str] = []
    for number, places in enumerate(ordered):
        name = _name(outputs, places)
        names.append(name if name not in names else f"{name} (class {number + 1})")
    return Merged(tuple(tuple(outputs[place] for place in places) for places in ordered), tuple(names))


def _name(outputs: Sequence[Any], places: Class) -> str:
    """Name a class after its members: neighbouring numbers by the ends, others one by one, as far as they are few."""
    members = [outputs[place] for place in places]
    neighbours = places[-1] - places[0] == len(places) - 1
    if len(members) > 2 and neighbours and all(isinstance(member, int | float) for member in members):
        return f"{_text(members[0])} to {_text(members[-1])}"
    listed = [_text(member) for member in members[:MOST_NAMED]]
    if len(members) > MOST_NAMED:
        listed[-1] = f"{len(members) - MOST_NAMED + 1} others"
    return " or ".join(listed)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.6g}" if isinstance(value, float) else shown(value)
