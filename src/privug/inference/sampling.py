"""The sampling engine: draw from the prior, run the program, keep or weight what agrees with the observation.

Rounds of draws are cut into blocks. Block k of round r draws from SeedSequence(seed, spawn_key=(r, k)), and
block sizes depend on the model alone: the same seed gives the same samples on any number of workers.
"""

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Generic, TypeVar, Unpack, overload

import numpy as np

from privug import interruption, settings
from privug.digits import how_many
from privug.errors import ImpossibleObservation, PriorError, ProgramError, TooFewSamples
from privug.estimate import CONFIDENCE, Estimate
from privug.inference import workload
from privug.inference.answer import Options, SampledAnswer
from privug.inference.case_plan import CasePlan, Kept, explained, settled
from privug.inference.diagnostics import Diagnostics, effective_sample_size, pareto_k, refuse_heavy
from privug.inference.intervals import proportion_estimate, student
from privug.inference.question import Case, Question, Sizes
from privug.inference.solving import PILOT_SAMPLES
from privug.model.batch import Batch
from privug.model.node import Array, Node, ancestors
from privug.model.operations import SampleFailure
from privug.model.plan import Plan
from privug.observation.observations import Observation
from privug.program.lifting import Lifting
from privug.program.native.arguments import OutputMisfit
from privug.progress import ProgressMeter
from privug.runtime.pickling import Shared
from privug.runtime.tasks import run_tasks

Item = TypeVar("Item")


def generator(seed: int, *key: int) -> np.random.Generator:
    """Return the random generator of one block."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=key)))


@dataclass(frozen=True)
class DrawRound:
    """What all blocks of a round have in common."""

    number: int
    expected: int
    """Draws in all, to tell whether compiling the program pays."""
    largest: Sizes | None = None
    """The sizes up to which there is one model for tables of all sizes; None: each size has its own."""
    waits: bool = False
    """Whether it is known that solving conditions does not pay."""


@dataclass(frozen=True)
class DrawBlock:
    """Some draws of a round, of tables of the same sizes where each size has its model."""

    number: int
    sizes: Sizes
    positions: Array | range
    known: tuple[Array, ...]
    """What was drawn to know the sizes, in the order of `BlockEvaluation.size_roots`."""


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


def blocks_of_equal_size(draws: int, block: int) -> Made[DrawBlock]:
    """Return the blocks of a round of draws that one model serves, the same ones as if they were cut from a list."""
    return Made(partial(_block, draws, block), range(-(-draws // block)))


def _block(draws: int, block: int, place: int) -> DrawBlock:
    return DrawBlock(1 + place, (), range(place * block, min(draws, (place + 1) * block)), ())


@dataclass(eq=False)
class BlockEvaluation(Shared):
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

    def case(self, sizes: Sizes, of: DrawRound) -> Case:
        """Return the model for tables of some sizes, or of all."""
        case = None if sizes or of.largest is None else self.question.case_of_all_sizes(of.largest)
        return case or self.question.case(sizes, of.expected)

    def plan(self, sizes: Sizes, of: DrawRound) -> CasePlan:
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

    def run(self, of: DrawRound, block: DrawBlock) -> Kept:
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


MOST_QUANTITIES = 5_000_000  # of a program that is lifted anew for every size: some minutes
MOST_IN_PILOTS = workload.MOST_RANDOM_NUMBERS // 10


def by_sizes(sizes: list[Array]) -> list[tuple[Sizes, Array]]:
    """Return the positions of each combination of sizes that draws have, in ascending order of the combination."""
    if not len(sizes[0]):
        return []
    least = min(int(array.min()) for array in sizes)
    if least < 0:
        raise PriorError(f"the size of a table must not be negative, but {least} was drawn")
    codes = np.zeros(len(sizes[0]), np.int64)
    for array in sizes:
        low = int(array.min())
        codes = codes * (int(array.max()) - low + 1) + (array - low)
        if int(codes.max()) >= 1 << 16:
            codes = np.unique(codes, return_inverse=True)[1]
    # NumPy sorts 16-bit numbers by counting, which is several times faster than comparing.
    order = np.argsort(codes.astype(np.uint16) if int(codes.max()) < 1 << 16 else codes, kind="stable")
    counts = np.bincount(codes)
    groups = np.split(order, np.cumsum(counts[counts > 0])[:-1])
    return [(tuple(int(array[members[0]]) for array in sizes), members) for members in groups]


def cuts(sizes: list[Array], typical: Sequence[int], block: int) -> list[slice]:
    """Cut draws, in order, into blocks that hold as many rows as a block of draws of typical sizes."""
    work = np.ones(len(sizes[0]))
    for array, usual in zip(sizes, typical, strict=True):
        np.maximum(work, array / max(1, usual), out=work)
    edges = np.flatnonzero(np.diff(np.cumsum(work) // block)) + 1
    return [slice(first, last) for first, last in itertools.pairwise([0, *edges.tolist(), len(work)])]


class SizeSplit:
    """How draws are split by the sizes of their tables: one model serves all if there is such, else each has its own.

    `known` is what is drawn to know the sizes.
    """

    def __init__(self, question: Question, observation: Observation | None, known: Sequence[Node]) -> None:
        self._question, self._observation, self._known = question, observation, known
        self._sizes: list[Array] = []  # of the draws at hand
        self._largest = [0] * len(question.size_nodes)
        self._each_waits = False
        self._prepared: tuple[Case, CasePlan] | None = None
        self.one: Case | None = None
        """The model for tables of all sizes, if there is one that serves."""

    def groups(self, sizes: list[Array], *, first: bool) -> list[tuple[Sizes, Array]]:
        """Return the sizes of which there is a model each, and the positions of their draws; no sizes where one serves.

        Later draws are split as the first ones were, unless their tables are too large for that.
        """
        groups, self._sizes = by_sizes(sizes), sizes
        if first or self.one is not None:
            self.one = self._serving(sizes)
        if self.one is not None:
            return [((), np.concatenate([members for _, members in groups]))]
        if first:
            self._check(len(groups))
            self._each_waits = self._waits_at_each(len(groups))
        return groups

    def round(self, number: int, expected: int) -> DrawRound:
        """Return what the blocks of a round have in common."""
        if self.one is None:
            return DrawRound(number, expected, None, self._each_waits)
        return DrawRound(number, expected, tuple(self._largest), self._waits)

    def cut(self, members: Array, block: int) -> list[slice]:
        """Cut draws, in order, into blocks; those of all sizes so that none holds too many rows."""
        if self.one is None:
            return [slice(start, start + block) for start in range(0, len(members), block)]
        return cuts([array[members] for array in self._sizes], self._question.typical_sizes, block)

    def prepared(self, case: Case) -> CasePlan | None:
        """Return how a case is evaluated, without a further query, if that was found out before."""
        return self._prepared[1] if self._prepared is not None and self._prepared[0] is case else None

    def _serving(self, sizes: list[Array]) -> Case | None:
        """Return the model for draws whose tables have such sizes, and those of all rounds before."""
        tables = [self._question.prior[name] for name in self._question.random_tables]
        for place, (table, array) in enumerate(zip(tables, sizes, strict=True)):
            if array.max() > self._largest[place]:
                self._largest[place] = table.looked_at(int(array.max()))
        if not self._waits and self._has_points:  # values with a density are moved onto for each size by itself
            return None
        case = self._question.case_of_all_sizes(tuple(self._largest))
        if case is None or self._waits:
            return case
        if self.prepared(case) is None:
            self._prepared = case, self._solving(case)
        return case if self._prepared is not None and self._prepared[1].is_solved else None

    @property
    def _typical(self) -> Case:
        return self._question.case(self._question.typical_sizes)

    @cached_property
    def _has_points(self) -> bool:
        return bool(self._typical.likelihood(self._observation).points)

    @cached_property
    def _waits(self) -> bool:
        """Whether draws that agree with the observation are just waited for, as far as the typical size tells."""
        return self._observation is None or not (self._has_points or self._solving(self._typical).is_solved)

    def _solving(self, case: Case) -> CasePlan:
        return CasePlan(case, self._observation, None, self._known, self._question.exclude_errors, points_only=False)

    def _check(self, sizes: int) -> None:
        """Refuse tables of more sizes than a program can be lifted for, before it is for the second one."""
        if interruption.seconds_left() is None and workload.quantities_in_all(self._question, sizes) > MOST_QUANTITIES:
            raise workload.TooMuchWork(
                f"the samples have tables of {sizes:,} different sizes, and the program has to be lifted for each of "
                "them, which would take very long; ask for samples=100, for smaller tables, or for a size that varies "
                "less"
            )

    def _waits_at_each(self, sizes: int) -> bool:
        """Say whether draws are just waited for at every size, as at the typical one: trying each would take too long.

        To find out for a size whether solving the observation pays takes a pilot run, of more draws than are made then.
        """
        if self._observation is None or sizes < 2:
            return False
        nodes = workload.random_nodes(self._typical)
        tried = sizes * workload.pilot_samples(nodes, PILOT_SAMPLES) * workload.random_numbers(nodes)
        return tried > MOST_IN_PILOTS and self._waits


ALIKE = 1e-13  # of the mean's square: a variance that is only rounding


def log_weights_of(blocks: list[Kept]) -> Array | None:
    """Return the log weights of the samples in some blocks; None if they agree with what was seen, or do not."""
    if all(kept.log_weights is None for kept in blocks):
        return None
    # For some sizes of the tables agreement may have been waited for, for others not.
    logs = [np.zeros(len(k.positions)) if k.log_weights is None else k.log_weights for k in blocks]
    return np.concatenate(logs)


def probability_of_observation(
    log_weights: Array | None, accepted: int, draws: int, unit: str, confidence: float = CONFIDENCE
) -> Estimate:
    """Return the probability of the observation, or its density where samples are weighted by one."""
    if log_weights is None:
        return proportion_estimate(accepted / draws, draws, f"n={draws}", confidence)
    scale = float(log_weights.max())
    weights = np.exp(log_weights - scale)
    sums = float(weights.sum()), float((weights**2).sum())
    return probability_of_sums(scale, *sums, len(weights), draws, unit, confidence)


def probability_of_sums(
    scale: float, total: float, squares: float, kept: int, draws: int, unit: str, confidence: float = CONFIDENCE
) -> Estimate:
    """Return the same from the sums of the weights and of their squares, all divided by e to the power of `scale`."""
    # Of draws moved onto the observation, more may be left than there are draws on which the program does not fail.
    samples = max(draws, kept)
    mean = total / samples
    variance = squares / samples - mean**2
    if samples < 2:
        return Estimate(total * math.exp(scale), 0.0, math.inf, unit, f"n={draws}")
    if variance <= ALIKE * mean**2:
        variance = 0.0
    half = student(samples - 1, confidence) * math.sqrt(variance / (samples - 1))
    value, reach = (number * float(np.exp(scale)) * samples / draws for number in (mean, half))
    return Estimate(value, max(0.0, value - reach), value + reach, unit, f"n={draws}")


def among_possible(
    probability: Callable[[int], Estimate],
    question: Question,
    draws: int,
    excluded: int,
    contradicting: int,
    *,
    moved: bool,
) -> Estimate:
    """Return a probability, told by so many draws, given that the program does not fail and that all facts hold.

    Where draws are moved onto the observation, those that contradict a fact are among what it was told by.
    """
    valid = max(1, draws - excluded - contradicting)
    if contradicting and moved:
        known = None if question.exclude_errors else question.probability_of_facts
        return probability(draws).divided_by(known or proportion_estimate(valid / draws, draws, ""))
    return probability(valid)


Outcome = TypeVar("Outcome")

FEWEST_SAMPLES = 100
FEWEST_PILOT, LARGEST_PILOT = 1_000, 1 << 18
LARGEST_ROUND = 1 << 22
LARGEST_BUDGET = 200_000_000
LARGEST_OPAQUE_BUDGET = 1_000_000
MOST_FUTILE = 1_000_000  # draws after which it is asked whether there is any hope
LARGEST_WEIGHTED_BUDGET = 4_000_000  # weighted draws are all kept
DEFAULT_RANDOM_NUMBERS = 5_000_000_000  # about a minute on two cores


class TooRare(TooFewSamples):
    """A pilot run shows that the whole budget would not give enough samples."""


class Sampler:
    """One run of the sampling engine. With `abandon` it gives up once it can tell that the budget is too small."""

    def __init__(
        self,
        question: Question,
        observation: Observation | None,
        *,
        not_compiled: str | None = None,
        abandon: bool = False,
        **options: Unpack[Options],
    ) -> None:
        self._abandon = abandon
        self._question = question
        self._not_compiled = not_compiled
        self._expected = 0  # draws, to tell whether compiling the program pays
        self._observation = observation
        self._samples, self._seed, self._budget = options["samples"], options["seed"], options.get("budget")
        self._evaluation = BlockEvaluation(question, observation, options.get("extra"), self._seed)
        self._plans = self._evaluation.plans
        self._size_roots = self._evaluation.size_roots
        self._kept: list[Kept] = []
        self._draws = 0
        self._workload = workload.Workload()
        self._split = SizeSplit(question, observation, self._size_roots)
        self._remarks: list[str] = []

    def run(self) -> SampledAnswer:
        """Draw rounds until there are enough samples or the budget is spent."""
        started = time.perf_counter()
        label = "trying to sample" if self._abandon else "sampling"
        self._rounds(label if self._not_compiled is None else f"{label}, not compiled", "samples drawn")
        self._refuse_unsolved()
        if not self._counted():
            raise self._nothing_accepted(sum(kept.excluded for kept in self._kept))
        run = self._found(time.perf_counter() - started)
        return replace(run, diagnostics=self._judged(run.diagnostics))

    def _rounds(self, label: str, made: str) -> None:
        """Make rounds until there are enough draws, or until the time is up if what was made is worth something."""
        with ProgressMeter(label, self._samples) as meter:
            for number in itertools.count():
                samples = self._next_round()
                if samples <= 0:
                    return
                try:
                    self._round(number, samples, meter)
                except KeyboardInterrupt:
                    if self._worth() < FEWEST_SAMPLES:
                        raise
                    self._remarks.append(interruption.taken_note(f"the {made} so far were kept"))
                    return
                self._consider()

    def once(self) -> SampledAnswer | None:
        """Draw one round and return what it left, however little that is; None if nothing agrees with what was seen."""
        with ProgressMeter("looking at draws", self._samples) as meter:
            self._round(0, self._samples, meter)
        self._refuse_unsolved()
        return self._found(0.0) if self._counted() else None

    def _plan(self, sizes: Sizes, of: DrawRound) -> CasePlan:
        case = self._evaluation.case(sizes, of)
        known = self._split.prepared(case) if self._evaluation.query is None else None
        if known is not None:
            self._evaluation.prepare(sizes, case, of.waits, known)
        return self._evaluation.plan(sizes, of)

    def _next_round(self) -> int:
        """Return how many draws to make next: enough for the samples still missing, as far as can be told."""
        wanted, worth = self._samples, self._worth()
        if self._draws == 0:
            return min(wanted, LARGEST_ROUND, self._budget or wanted)
        budget = self._stated_budget()
        if worth >= wanted or self._draws >= budget or self._is_futile(budget):
            return 0
        missing = 1.1 * (wanted - worth) * self._draws / worth if worth else 8 * self._draws
        cautious = int(min(missing, 8 * self._draws, LARGEST_ROUND))
        ahead = self._pilot - self._draws if self._abandon else 0
        return min(max(cautious, wanted), budget - self._draws, *([ahead] if ahead > 0 else ()))

    def _is_futile(self, budget: int) -> bool:
        """Say whether so many draws show that the whole budget would not give an answer, or that all draws fail."""
        if self._draws < MOST_FUTILE:
            return False
        impossible = sum(kept.excluded + len(kept.contradicting) for kept in self._kept)
        agreeing = sum(len(kept.positions) for kept in self._counted())
        likeliest = proportion_estimate(agreeing / self._draws, self._draws, "").high
        return impossible == self._draws or likeliest * budget < min(FEWEST_SAMPLES, self._samples)

    @property
    def _pilot(self) -> int:
        """How many draws tell whether the budget will do."""
        return min(max(self._stated_budget() // 100, FEWEST_PILOT), LARGEST_PILOT)

    def _consider(self) -> None:
        """Give up if a pilot run was long enough to tell that the budget gives less than half of what is asked for."""
        if not self._abandon or self._draws < self._pilot:
            return
        worth = self._worth()
        if worth / self._draws * self._stated_budget() < self._samples / 2:
            raise TooRare(f"{self._draws:,} draws from the prior are worth only {worth:.3g} samples")

    def _stated_budget(self) -> int:
        if self._budget is not None:
            return self._budget
        plan = max((p.plan for p in self._plans.values()), key=lambda p: p.random_numbers)
        largest = LARGEST_OPAQUE_BUDGET if plan.is_opaque else LARGEST_BUDGET
        if any(p.is_weighted for p in self._plans.values()):
            largest = min(largest, LARGEST_WEIGHTED_BUDGET)
        return max(self._samples, min(largest, DEFAULT_RANDOM_NUMBERS // max(1, plan.random_numbers)))

    def _counted(self) -> list[Kept]:
        """Return the blocks that count: where a value has a probability, those with only a density do not."""
        some = [kept for kept in self._kept if len(kept.positions)]
        lowest = min((kept.density for kept in some), default=0)
        return [kept for kept in some if kept.density == lowest]

    def _refuse_unsolved(self) -> None:
        """Refuse an answer that leaves out sizes of the tables at which a value has a density that is not known.

        Where the value has a probability at another size, such sizes weigh nothing.
        """
        unsolved = next((plan.unsolved for plan in self._plans.values() if plan.unsolved is not None), None)
        if unsolved is not None and not any(kept.density == 0 for kept in self._counted()):
            raise unsolved

    def _worth(self) -> float:
        counted = self._counted()
        return effective_sample_size(log_weights_of(counted), sum(len(kept.positions) for kept in counted))

    def _round(self, number: int, samples: int, meter: ProgressMeter) -> None:
        """Draw one round. If it is cut short, whole blocks are kept, unless they would favour some sizes of tables."""
        drawn, blocks = self._draws, len(self._kept)
        self._expected = drawn + samples if self._not_compiled is None else 0
        try:
            self._run_tasks(number, samples, meter)
        except BaseException:
            if self._size_roots:
                del self._kept[blocks:]
                self._draws = drawn
            raise
        self._draws = drawn + samples

    def _run_tasks(self, number: int, samples: int, meter: ProgressMeter) -> None:
        tasks = list(self._tasks(number, samples))
        if not tasks:
            return
        plans = [self._plans[task.sizes].plan for task in tasks]
        opaque = any(plan.is_opaque for plan in plans)
        largest = max(plan.bytes_per_sample * len(task.positions) for plan, task in zip(plans, tasks, strict=True))
        total = sum(len(kept.positions) for kept in self._kept)
        work = partial(self._evaluation.run, self._split.round(number, self._expected))
        name = f"sampling {self._seed} {number} {samples} {self._abandon} {self._not_compiled}"
        results = run_tasks(tasks, work, opaque=opaque, bytes_per_task=largest, name=name)
        for task, block in zip(tasks, results, strict=True):
            self._kept.append(block)
            self._draws += len(task.positions)
            total += len(block.positions)
            progress = total if self._observation is not None or self._question.facts else self._draws
            meter.update(progress, f"{total:,} of {self._draws:,} draws kept")

    def _tasks(self, number: int, samples: int) -> Iterator[DrawBlock]:
        counter, start_of_round = 1, self._draws
        for sizes, members, known in self._strata(number, samples):
            of = self._split.round(number, self._expected)
            if number == 0:  # later rounds keep to the budget, which follows from how large the model is
                self._workload.add(self._evaluation.case(sizes, of), len(members))
            plan = self._plan(sizes, of)
            if plan.impossible is not None:
                if not sizes:
                    raise ImpossibleObservation(f"this observation is impossible: {plan.impossible}")
                if not self._question.facts and not self._question.exclude_errors:
                    continue  # else it is to be seen how many of these draws are possible at all
            for chosen in self._split.cut(members, plan.block):
                part = tuple(array[chosen] for array in known)
                yield DrawBlock(counter, sizes, start_of_round + members[chosen], part)
                counter += 1

    def _strata(self, number: int, samples: int) -> Iterator[tuple[Sizes, Array, list[Array]]]:
        """Split the draws of a round by the sizes of the tables of random size."""
        sizes = self._question.size_nodes
        if not sizes:
            yield (), np.arange(samples), []
            return
        arrays = Plan([*sizes, *self._size_roots]).run(samples, generator(self._seed, number, 0))
        for values, members in self._split.groups(arrays[: len(sizes)], first=number == 0):
            yield values, members, [array[members] for array in arrays[len(sizes) :]]

    def _found(self, seconds: float) -> SampledAnswer:
        counted = self._counted()
        total = sum(len(kept.positions) for kept in counted)
        quantities = [Batch.concatenate([k.quantities[i] for k in counted]) for i in range(len(counted[0].quantities))]
        positions = np.concatenate([kept.positions for kept in counted])
        log_weights = log_weights_of(counted)
        order = np.argsort(positions, kind="stable")
        draws = self._draws
        if log_weights is None and total > self._samples:
            order = order[: self._samples]
            draws = int(positions[order[-1]]) + 1
        weights = log_weights[order] if log_weights is not None else None
        # Inputs on which the program failed or that contradict a fact are no possibility: the observation's
        # probability is given the others.
        excluded = sum(int(np.count_nonzero(kept.failed < draws)) for kept in self._kept)
        contradicting = sum(int(np.count_nonzero(kept.contradicting < draws)) for kept in self._kept)
        worth = effective_sample_size(weights, len(order))
        evidence = self._evidence(weights, len(order), draws, excluded, contradicting)
        budget, remarks, shape = self._stated_budget(), tuple(self._remarks), pareto_k(weights)
        diagnostics = Diagnostics(
            draws, len(order), worth, evidence, budget, excluded, seconds, remarks, pareto_k=shape
        )
        kept = tuple(settled(batch.take(order)) for batch in quantities)
        return SampledAnswer(kept, weights, diagnostics, self._lifting())

    def _lifting(self) -> Lifting:
        lifting = self._split.one.lifting if self._split.one else self._question.lifting(self._expected)
        return lifting if self._not_compiled is None else replace(lifting, not_compiled=self._not_compiled)

    def _evidence(
        self, log_weights: Array | None, accepted: int, draws: int, excluded: int, contradicting: int
    ) -> Estimate:
        """Return how likely the observation is among draws on which the program does not fail and all facts hold."""
        if self._observation is None:
            return Estimate.exactly(1.0)
        unit = "density" if any(plan.has_density for plan in self._plans.values()) else ""
        probability = partial(probability_of_observation, log_weights, accepted, unit=unit)
        moved = any(plan.is_moved for plan in self._plans.values())
        return among_possible(probability, self._question, draws, excluded, contradicting, moved=moved)

    def _judged(self, diagnostics: Diagnostics) -> Diagnostics:
        """Refuse too few samples; remark on fewer than were asked for."""
        worth = diagnostics.effective_samples
        if worth < FEWEST_SAMPLES and worth < self._samples:
            raise self._too_few(diagnostics)
        prior = f"a few of {diagnostics.draws:,} draws from the prior"
        refuse_heavy(diagnostics.pareto_k, prior, ": raise samples=, or choose engine='rare'")
        if worth >= self._samples or self._remarks:
            return diagnostics
        budget = f"{diagnostics.budget:,}"
        remark = f"the budget of {budget} draws gave {worth:,.0f} of {self._samples:,} samples asked for"
        return replace(diagnostics, remarks=(*diagnostics.remarks, remark))

    def _nothing_accepted(self, excluded: int) -> ImpossibleObservation | ProgramError:
        if excluded and excluded >= self._draws:
            return ProgramError("the program failed on every input drawn from the prior")
        bound = proportion_estimate(0.0, self._draws, "").high
        reasons = {plan.impossible for plan in self._plans.values() if plan.impossible is not None}
        hint = f" ({reasons.pop()})" if len(reasons) == 1 else ""
        return ImpossibleObservation(
            f"none of {self._draws:,} draws from the prior agrees with the observation ({self._observation}): its "
            f"probability is below {bound:.2g} if it is possible at all{hint}. Check the value, widen the observation "
            "(a larger within=), or raise budget="
        )

    def _too_few(self, diagnostics: Diagnostics) -> TooFewSamples:
        worth = how_many(diagnostics.effective_samples, "effective sample")
        return TooFewSamples(
            f"only {worth} came out of {diagnostics.draws:,} draws "
            f"(acceptance rate {diagnostics.acceptance_rate:.2g}), too few to trust; raise budget= (now "
            f"{diagnostics.budget:,} draws), or widen the observation (a larger within= or sd=)"
        )


def compiled_or_not(run: Callable[[str | None], Outcome]) -> Outcome:
    """Run, once more without compiling if it turns out that compiled code cannot hold all outputs: for that reason."""
    try:
        return run(None)
    except ProgramError as error:
        if not isinstance(error.__cause__, OutputMisfit) or settings.current().native is True:
            raise
        reason = error.__cause__.reason
    return run(reason)


def draw(question: Question, observation: Observation | None, **options: Any) -> SampledAnswer:
    """Run the sampling engine."""
    return compiled_or_not(lambda reason: Sampler(question, observation, **options, not_compiled=reason).run())
