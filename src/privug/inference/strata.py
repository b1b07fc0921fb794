"""Draws split by the sizes that their tables have, and what it takes to get ready for each of these sizes."""

from collections.abc import Sequence

import numpy as np

from privug import interruption
from privug.inference.case_plan import CasePlan
from privug.inference.question import Question
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


def always_waits(question: Question, observation: Observation | None, known: Sequence[Node], sizes: int) -> bool:
    """Say whether draws are just waited for at every size, as at the typical one, because trying each takes too long.

    To find out for a size whether solving the observation pays takes a pilot run, of more draws than are made then.
    """
    if observation is None or sizes < 2:
        return False
    case = question.case(question.typical_sizes)
    nodes = random_nodes(case)
    if sizes * pilot_samples(nodes, PILOT_SAMPLES) * random_numbers(nodes) <= MOST_IN_PILOTS:
        return False
    return not CasePlan(case, observation, None, known, question.exclude_errors, points_only=False).is_solved
