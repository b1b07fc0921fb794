"""Blocks of draws, evaluated in whatever process they are sent to: each makes its own model of the question."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar, overload

import numpy as np

from privug.inference.case_plan import CasePlan, Kept, explained
from privug.inference.question import Case, Question, Sizes
from privug.model.node import Array, Node, ancestors
from privug.model.operations import SampleFailure
from privug.model.pickling import Shared
from privug.observation.observations import Observation

Item = TypeVar("Item")


def generator(seed: int, *key: int) -> np.random.Generator:
    """Return the random generator of one block."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=key)))


@dataclass(frozen=True)
class Round:
    """What all blocks of a round have in common."""

    number: int
    expected: int
    """Draws in all, to tell whether compiling the program pays."""
    largest: Sizes | None = None
    """The sizes up to which there is one model for tables of all sizes; None: each size has its own."""
    waits: bool = False
    """Whether it is known that solving conditions does not pay."""


@dataclass(frozen=True)
class Block:
    """Some draws of a round, of tables of the same sizes where each size has its model."""

    number: int
    sizes: Sizes
    positions: Array | range
    known: tuple[Array, ...]
    """What was drawn to know the sizes, in the order of `Evaluation.size_roots`."""


class Made(Sequence[Item], Generic[Item]):
    """A sequence whose items are made when they are asked for: of billions, only those at hand are there."""

    def __init__(self, make: Callable[[int], Item], places: range) -> None:
        self._make, self._places = make, places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> Item: ...
    @overload
    def __getitem__(self, place: slice) -> "Made[Item]": ...
    def __getitem__(self, place: int | slice) -> "Item | Made[Item]":
        if isinstance(place, slice):
            return Made(self._make, self._places[place])
        return self._make(self._places[place])

    def __reduce__(self) -> tuple[Any, ...]:
        """Send how the items are made, if that takes no more than what it says; else those at hand."""
        return (Made, (self._make, self._places)) if isinstance(self._make, partial) else (list, (list(self),))


def blocks_of_equal_size(draws: int, block: int) -> Made[Block]:
    """Return the blocks of a round of draws that one model serves, the same ones as if they were cut from a list."""
    return Made(partial(_block, draws, block), range(-(-draws // block)))


def _block(draws: int, block: int, place: int) -> Block:
    return Block(1 + place, (), range(place * block, min(draws, (place + 1) * block)), ())


@dataclass(eq=False)
class Evaluation(Shared):
    """How blocks of draws are evaluated: the question, what was seen, and a further query."""

    question: Question
    observation: Observation | None
    query: Callable[..., Any] | None
    seed: int
    plans: dict[Sizes, CasePlan] = field(default_factory=dict, repr=False)
    """The latest plan for each combination of sizes."""
    _cases: dict[Sizes, tuple[Case, bool]] = field(default_factory=dict, repr=False)

    found_again: ClassVar[Mapping[str, Callable[[], Any]]] = {"plans": dict, "_cases": dict}

    @property
    def size_roots(self) -> list[Node]:
        """What is drawn to know the sizes of the tables of random size."""
        return [node for node in ancestors(self.question.size_nodes) if node.is_random]

    def case(self, sizes: Sizes, of: Round) -> Case:
        """Return the model for tables of some sizes, or of all."""
        case = None if sizes or of.largest is None else self.question.case_of_all_sizes(of.largest)
        return case or self.question.case(sizes, of.expected)

    def plan(self, sizes: Sizes, of: Round) -> CasePlan:
        """Return how blocks of some sizes are evaluated."""
        case = self.case(sizes, of)
        known, waits = self._cases.get(sizes, (None, False))
        if known is not case or waits != of.waits:
            query = None if self.query is None else self.question.query(case, self.query)
            exclude = self.question.exclude_errors
            plan = CasePlan(case, self.observation, query, self.size_roots, exclude, points_only=of.waits)
            self.prepare(sizes, case, of.waits, plan)
        return self.plans[sizes]

    def prepare(self, sizes: Sizes, case: Case, waits: bool, plan: CasePlan) -> None:
        """Take note of a plan that was made before."""
        self.plans[sizes], self._cases[sizes] = plan, (case, waits)

    def run(self, of: Round, block: Block) -> Kept:
        """Evaluate a block."""
        known = dict(zip(self.size_roots, block.known, strict=True))
        which = block.positions
        positions = np.arange(which.start, which.stop) if isinstance(which, range) else which
        rng = generator(self.seed, of.number, block.number)
        try:
            return self.plan(block.sizes, of).run(rng, positions, known)
        except SampleFailure as failure:
            again = generator(self.seed, of.number, block.number)
            case = self.case(block.sizes, of)
            raise explained(case, failure, again, positions, known) from failure.cause
