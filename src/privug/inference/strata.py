"""Draws split by the sizes that their tables have, and what it takes to get ready for each of these sizes."""

import itertools
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from privug import interruption
from privug.inference.case_plan import CasePlan
from privug.inference.question import Case, Question, Sizes
from privug.inference.solving import PILOT_SAMPLES
from privug.inference.workload import (
    MOST_RANDOM_NUMBERS,
    TooMuchWork,
    pilot_samples,
    quantities_in_all,
    random_nodes,
    random_numbers,
)
from privug.model.node import Array, Node
from privug.observation.observations import Observation

MOST_QUANTITIES = 5_000_000  # of a program that is lifted anew for every size: some minutes
MOST_IN_PILOTS = MOST_RANDOM_NUMBERS // 10


def equal_groups(columns: list[Array]) -> list[Array]:
    """Return the positions of each distinct combination of whole numbers, in ascending order of the combination."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        low = int(column.min())
        codes = codes * (int(column.max()) - low + 1) + (column - low)
        if int(codes.max()) >= 1 << 16:
            codes = np.unique(codes, return_inverse=True)[1]
    # NumPy sorts 16-bit numbers by counting, which is several times faster than comparing.
    order = np.argsort(codes.astype(np.uint16) if int(codes.max()) < 1 << 16 else codes, kind="stable")
    counts = np.bincount(codes)
    return np.split(order, np.cumsum(counts[counts > 0])[:-1])


def check_sizes(question: Question, sizes: int) -> None:
    """Refuse tables of more sizes than a program can be lifted for, before it is for the second one."""
    if interruption.seconds_left() is None and quantities_in_all(question, sizes) > MOST_QUANTITIES:
        raise TooMuchWork(
            f"the samples have tables of {sizes:,} different sizes, and the program has to be lifted for each of them, "
            "which would take very long; ask for samples=100, for smaller tables, or for a size that varies less"
        )


class AllSizes:
    """One model for draws of all sizes of their tables, if there is one that serves."""

    def __init__(self, question: Question, observation: Observation | None, known: Sequence[Node]) -> None:
        self._question = question
        self._observation = observation
        self._known = known
        self._largest: list[int] = [0] * len(question.size_nodes)
        self._prepared: tuple[Case, CasePlan] | None = None

    @property
    def largest(self) -> Sizes:
        """The sizes up to which the model serves."""
        return tuple(self._largest)

    def case(self, sizes: list[Array]) -> Case | None:
        """Return the model for draws whose tables have such sizes, and those of all rounds before."""
        if min(int(array.min()) for array in sizes) < 0:
            return None
        tables = [self._question.prior[name] for name in self._question.random_tables]
        for place, (table, array) in enumerate(zip(tables, sizes, strict=True)):
            if array.max() > self._largest[place]:
                self._largest[place] = table.looked_at(int(array.max()))
        if self.waits:
            return self._question.case_of_all_sizes(self.largest)
        case = self._question.case_of_all_sizes(self.largest) if self._may_be_solved else None
        return case if case is not None and self._is_solved(case) else None

    @cached_property
    def waits(self) -> bool:
        """Whether draws that agree with the observation are just waited for."""
        return self._observation is None or waits(self._question, self._observation, self._known)

    @cached_property
    def _may_be_solved(self) -> bool:
        """Whether there are conditions alone to solve: values with a density are moved onto for each size by itself."""
        assert self._observation is not None
        return not self._question.case(self._question.typical_sizes).likelihood(self._observation).points

    def _is_solved(self, case: Case) -> bool:
        if self._prepared is None or self._prepared[0] is not case:
            exclude = self._question.exclude_errors
            plan = CasePlan(case, self._observation, None, self._known, exclude, points_only=False)
            self._prepared = case, plan
        return self._prepared[1].is_solved

    def prepared(self, case: Case) -> CasePlan | None:
        """Return how a case is evaluated, without a further query, if that was found out before."""
        return self._prepared[1] if self._prepared is not None and self._prepared[0] is case else None


def waits(question: Question, observation: Observation, known: Sequence[Node]) -> bool:
    """Say whether draws that agree with an observation are just waited for, as far as the typical size tells."""
    case = question.case(question.typical_sizes)
    if case.likelihood(observation).points:
        return False
    return not CasePlan(case, observation, None, known, question.exclude_errors, points_only=False).is_solved


def cuts(sizes: list[Array], typical: Sequence[int], block: int) -> list[slice]:
    """Cut draws, in order, into blocks that hold as many rows as a block of draws of typical sizes."""
    work = np.ones(len(sizes[0]))
    for array, usual in zip(sizes, typical, strict=True):
        np.maximum(work, array / max(1, usual), out=work)
    edges = np.flatnonzero(np.diff(np.cumsum(work) // block)) + 1
    ends = [0, *edges.tolist(), len(work)]
    return [slice(first, last) for first, last in itertools.pairwise(ends)]


def always_waits(question: Question, observation: Observation | None, known: Sequence[Node], sizes: int) -> bool:
    """Say whether draws are just waited for at every size, as at the typical one, because trying each takes too long.

    To find out for a size whether solving the observation pays takes a pilot run, of more draws than are made then.
    """
    if observation is None or sizes < 2:
        return False
    nodes = random_nodes(question.case(question.typical_sizes))
    if sizes * pilot_samples(nodes, PILOT_SAMPLES) * random_numbers(nodes) <= MOST_IN_PILOTS:
        return False
    return waits(question, observation, known)
