"""Work and memory: what samples take, told from the model, and the work of exact inference as it is done."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from privug import interruption, settings
from privug.errors import UnsuitableEngine
from privug.inference.question import Case, Question
from privug.model.node import Node, ancestors
from privug.model.plates import Fold
from privug.model.structure import random_leaves
from privug.progress import ProgressMeter
from privug.scoping import holding

OPERATIONS = 1e9  # elementary ones in a second
COST_OF_CALL, COST_OF_POINT = 7e4, 130.0  # of a function of numbers, and of each number


class Exhausted(UnsuitableEngine):
    """An attempt at an exact answer took more work than it was allowed."""


class Effort:
    """How much work an attempt has done, in elementary operations, of how much it may do; None is no limit."""

    def __init__(self, limit: float | None, meter: ProgressMeter | None) -> None:
        self.spent = 0.0
        self.limit = limit
        self._meter = meter

    def spend(self, operations: float) -> None:
        """Count some work, show how far it has come, and refuse to go on beyond the limit."""
        self.spent += operations
        if self.limit is not None and self.spent > self.limit:
            raise Exhausted(f"no exact answer was found by the work of about {self.limit / OPERATIONS:.2g} s")
        if self._meter is not None:
            self._meter.update(min(self.spent, self._meter.total))


_current: ContextVar[Effort | None] = ContextVar("effort", default=None)


@contextmanager
def limited(limit: float | None, expected: float = OPERATIONS) -> Iterator[Effort]:
    """Bound the work done inside the block; what is done, and for how long at most, is said after a second.

    Without a limit, it is shown how much of the `expected` work is done.
    """
    seconds = None if limit is None else limit / OPERATIONS
    with ProgressMeter("computing the exact answer", limit or expected, seconds) as meter:
        effort = Effort(limit, meter)
        with holding(_current, effort):
            yield effort


@contextmanager
def at_most(operations: float) -> Iterator[None]:
    """Bound the work done inside the block, which is a part of the attempt at hand."""
    whole = _current.get()
    left = math.inf if whole is None or whole.limit is None else whole.limit - whole.spent
    part = Effort(min(operations, left), None)
    try:
        with holding(_current, part):
            yield
    finally:
        if whole is not None:
            whole.spent += part.spent


def spend(operations: float) -> None:
    """Count some work of the attempt at hand."""
    effort = _current.get()
    if effort is not None:
        effort.spend(operations)


MOST_RANDOM_NUMBERS = 5_000_000_000  # about a minute on two cores
MOST_PLAIN_NUMBERS = 500_000_000  # that are handed to a program one by one: some minutes
MOST_KEPT = 1 << 29  # numbers of secrets and outputs, 4 GiB
MOST_PILOT_NUMBERS = 1 << 26
FEWEST_PILOT = 32
FEWEST_OF_PRIOR = 10_000
CELLS_A_QUANTITY = 20  # that plain calls go through in the time in which tracing makes a quantity


def numbers_computed(nodes: Iterable[Node]) -> int:
    """Return how many numbers one sample of a model computes, what it computes for each row of a table included."""
    total = 0
    for node in nodes:
        total += math.prod(node.shape)
        if isinstance(node.operation, Fold):
            total += node.operation.size * len(ancestors([node.operation.term]))
    return max(1, total)


class TooMuchWork(UnsuitableEngine):
    """The samples asked for would take far longer, or far more memory, than anybody waits for or has."""


class Workload:
    """What the samples of a run take in all, for tables of any size together.

    Draws that are only counted take no memory: then `keeps` is False. Those that are told of may be only a part of all,
    one in `times`.
    """

    def __init__(self, *, keeps: bool = True, times: float = 1.0) -> None:
        self._keeps, self._times = keeps, times
        self._samples = 0.0
        self._drawn = self._plain = self._kept = 0.0

    def add(self, case: Case, samples: int) -> None:
        """Count samples of a case before they are drawn, or refuse if that makes too many."""
        drawn, plain, kept = _numbers_of_sample(case)
        many = samples * self._times
        self._samples += many
        self._drawn += many * drawn
        self._plain += many * plain
        self._kept += many * kept
        if self._keeps and self._kept > MOST_KEPT:
            raise self._refused(self._kept / MOST_KEPT, f"secret and output are {kept:,} numbers, too many to keep")
        if interruption.seconds_left() is not None or settings.current().on != settings.HERE:
            return  # the user has said how long it may take, or has more machines
        if self._plain > MOST_PLAIN_NUMBERS:
            reason = f"the program is called sample by sample, with {drawn:,} random numbers each time"
            raise self._refused(self._plain / MOST_PLAIN_NUMBERS, f"{reason}, which would take hours")
        if self._drawn > MOST_RANDOM_NUMBERS:
            reason = f"each is made of {drawn:,} random numbers, which would take very long"
            raise self._refused(self._drawn / MOST_RANDOM_NUMBERS, reason)

    def _refused(self, times: float, reason: str) -> TooMuchWork:
        fewer, name = max(1, round_down(self._samples / times)), "samples" if self._keeps else "draws"
        instead = "for a table of fewer rows, or for an output of fewer numbers"
        if not self._keeps:
            instead = "say how long it may take (seconds=), or have it done by a Dask cluster (on=)"
        return TooMuchWork(
            f"{name}={self._samples:,.0f} are too many here: {reason}; ask for {name}={fewer} or fewer, {instead}"
        )


def quantities_in_all(question: Question, sizes: int) -> int:
    """Return how many quantities a program makes, or what takes as long, if lifted for so many sizes of its tables."""
    if sizes < 2:
        return 0
    order = ancestors(random_nodes(question.case(question.typical_sizes)))
    # Each time it is compared with a few plain calls, in which every cell of the table is used.
    return sizes * (len(order) + random_numbers(order) // CELLS_A_QUANTITY)


def round_down(number: float) -> int:
    """Return a whole number of one digit and zeros, at most as large."""
    if number < 1:
        return 0
    power = 10 ** math.floor(math.log10(number))
    return int(number // power * power)


def enough_samples(question: Question, wanted: int) -> int:
    """Return how many samples of the prior to draw where so many are wanted of the posterior."""
    return max(wanted, affordable_samples(question, FEWEST_OF_PRIOR)) if wanted < FEWEST_OF_PRIOR else wanted


def affordable_samples(question: Question, wanted: int) -> int:
    """Return how many samples of a question can be had, at most as many as wanted; any, if its tables vary in size."""
    if question.size_nodes:
        return wanted
    limits = MOST_RANDOM_NUMBERS, MOST_PLAIN_NUMBERS, MOST_KEPT
    return min(
        wanted, *(limit // max(1, n) for limit, n in zip(limits, _numbers_of_sample(question.case()), strict=True))
    )


def _numbers_of_sample(case: Case) -> tuple[int, int, int]:
    """Return how many numbers are drawn for one sample, handed to the program one by one, and kept."""
    nodes = random_nodes(case)
    drawn = random_numbers(nodes)
    return drawn, drawn if case.lifting.tier in ("python", "external") else 0, _numbers(nodes)


def pilot_samples(nodes: list[Node], wanted: int) -> int:
    """Return how many samples a pilot run may have, so that it is quick."""
    return min(wanted, max(FEWEST_PILOT, MOST_PILOT_NUMBERS // max(1, random_numbers(nodes))))


def random_nodes(case: Case) -> list[Node]:
    """Return the nodes that secret and output of a case hold."""
    held: Any = (case.secret, case.output)
    return [variable.node for variable in random_leaves(held)]


def random_numbers(nodes: list[Node]) -> int:
    """Return how many random numbers one sample of some nodes is made of."""
    return _numbers([node for node in ancestors(nodes) if node.is_random and not node.operation.opaque])


def _numbers(nodes: list[Node]) -> int:
    return sum(math.prod(node.shape) for node in nodes)
