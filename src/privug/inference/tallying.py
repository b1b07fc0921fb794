"""Draws reduced to mergeable statistics block by block, and the shares, moments and beliefs read off those."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from privug.errors import ImpossibleObservation, TooFewSamples
from privug.estimate import CONFIDENCE, Estimate
from privug.inference import intervals, sampling
from privug.inference.answer import Definition, definition_of, nodes_asked
from privug.inference.belief import Belief, Histogram
from privug.inference.case_plan import Kept, settled
from privug.inference.diagnostics import Diagnostics, pareto_k_of_largest, refuse_heavy
from privug.inference.question import Question
from privug.inference.sampling import BlockEvaluation, DrawBlock, DrawRound, Sampler
from privug.inference.workload import Workload
from privug.model.batch import Batch, codes_of, first_places
from privug.model.merging import merged
from privug.model.node import Array, Kind
from privug.observation.observations import Observation
from privug.prior.family import UNKNOWN, Reach
from privug.program.lifting import Lifting
from privug.program.predicates import holds
from privug.progress import ProgressMeter
from privug.runtime.tasks import run_tasks

MOST_VALUES = 100_000  # distinct values, or pairs of them, that are tallied
MOST_PENDING = 1 << 18  # rows of tables before they are merged
MOST_LARGEST = 1 << 17
SECRET, OUTPUT, PAIRS = ("secret",), ("output",), ("secret", "output")
TABLES = (SECRET, OUTPUT, PAIRS)

Start = tuple[float, float]
Predicates = tuple[Callable[[Any], Any], ...]


@dataclass(frozen=True)
class TallyLayout:
    """What is counted of the draws, fixed once the first were seen."""

    predicates: Predicates
    edges: tuple[Array | None, Array | None]
    """Of the histograms of secret and output; None if they are not numbers."""
    starts: tuple[Start, Start]
    """Where the tails of secret and output begin."""
    tables: tuple[tuple[str, ...], ...] = TABLES
    """Of which quantities the values are tallied."""


def counted(sums: Array | None, samples: int) -> Array:
    """Return the sums of weights and of squared weights of samples; None: all weigh the same."""
    return np.array([samples, samples], float) if sums is None else sums.sum(axis=0)


def binned(codes: Array, sums: Array | None, bins: int) -> Array:
    """Return the sums for each code."""
    if sums is None:
        counts = np.bincount(codes, minlength=bins).astype(float)
        return np.column_stack([counts, counts])
    return np.column_stack([np.bincount(codes, column, bins) for column in sums.T])


def largest(terms: Array, samples: int) -> Array:
    """Return the largest of terms, as many as tell the tail of so many samples: twice what is looked at."""
    most = min(MOST_LARGEST, math.ceil(6 * math.sqrt(samples)) + 64)
    return terms if len(terms) <= most else np.partition(terms, len(terms) - most)[-most:]


@dataclass(frozen=True)
class ValueTable:
    """The sums for each distinct value of some quantities together, in parts until they are many."""

    parts: tuple[tuple[tuple[Batch, ...], Array], ...]
    rows: int
    merged_at: int = MOST_PENDING

    @classmethod
    def of(cls, quantities: Sequence[Batch], sums: Array | None) -> "ValueTable":
        """Tally samples."""
        codes = codes_of(quantities, len(quantities[0]))
        first = first_places(codes)
        return cls(((tuple(batch.take(first) for batch in quantities), binned(codes, sums, len(first))),), len(first))

    def plus(self, other: "ValueTable") -> "ValueTable | None":
        """Return both together; None if they have too many values."""
        together = ValueTable(self.parts + other.parts, self.rows + other.rows, self.merged_at)
        if together.rows <= together.merged_at:
            return together
        merged = together.merged()
        return None if merged.rows > MOST_VALUES else replace(merged, merged_at=MOST_PENDING + merged.rows)

    def scaled(self, factors: Array) -> "ValueTable":
        """Return all sums with their weights multiplied."""
        return replace(self, parts=tuple((quantities, sums * factors) for quantities, sums in self.parts))

    def merged(self) -> "ValueTable":
        """Return a table in which every value stands once, in ascending order if ordered."""
        if len(self.parts) == 1:
            return self
        quantities = [Batch.concatenate(batches) for batches in zip(*(q for q, _ in self.parts), strict=True)]
        return ValueTable.of(quantities, np.concatenate([sums for _, sums in self.parts]))

    @property
    def columns(self) -> tuple[tuple[Batch, ...], Array]:
        """The distinct values and their sums."""
        return self.merged().parts[0]


@dataclass(frozen=True)
class Numbers:
    """The moments of a number about its mean up to the fourth, its range, its histogram and its tails."""

    moments: Array
    """Total, mean, and the sums of the second to the fourth power of the distance from it; a column for each weight."""
    low: float
    high: float
    edges: Array | None
    bins: Array | None
    """Below the first edge, in each bin, above the last edge."""
    tails: tuple[Array, Array]
    """The largest terms that samples add to a mean and to a variance by lying in the tails."""
    samples: int

    @classmethod
    def of(cls, values: Array, sums: Array | None, samples: int, edges: Array, start: Start) -> "Numbers":
        """Reduce numbers: one for each of the samples, or distinct ones with the sums of those they stand for."""
        low, high, single = float(values.min()), float(values.max()), len(values) == samples
        values = values.astype(float)
        places = np.searchsorted(edges, values, side="right")
        places[values == edges[-1]] -= 1
        bins = binned(places, sums, len(edges) + 1)
        finite = np.isfinite(values)
        if not finite.all():
            values, sums = values[finite], None if sums is None else sums[finite]
        tails = np.empty(0), np.empty(0)
        if single:  # few distinct values have no tail
            with np.errstate(over="ignore"):
                distance = intervals.distances(values, start)
                terms = distance if sums is None else distance * sums[:, 0]
                tails = largest(terms, samples), largest(terms * distance, samples)
        return cls(_moments(values, sums), low, high, edges, bins, tails, samples)

    def plus(self, other: "Numbers") -> "Numbers":
        """Return both together; histograms of other edges cannot be added."""
        samples = self.samples + other.samples
        first, second = (largest(np.concatenate(both), samples) for both in zip(self.tails, other.tails, strict=True))
        same = self.edges is not None and other.edges is not None and np.array_equal(self.edges, other.edges)
        bins = self.bins + other.bins if same and self.bins is not None and other.bins is not None else None
        moments = merged_moments(self.moments, other.moments)
        low, high = min(self.low, other.low), max(self.high, other.high)
        return Numbers(moments, low, high, self.edges if same else None, bins, (first, second), samples)

    def scaled(self, factors: Array) -> "Numbers":
        """Return all sums with their weights multiplied."""
        moments = self.moments * np.stack([factors, [1.0, 1.0], factors, factors, factors])
        bins = None if self.bins is None else self.bins * factors
        first, second = (tail * factors[0] for tail in self.tails)
        return replace(self, moments=moments, bins=bins, tails=(first, second))


def _moments(values: Array, sums: Array | None) -> Array:
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if sums is None:
            column = _powers(values, None)
            return np.column_stack([column, column])
        return np.column_stack([_powers(values, weights) for weights in sums.T])


def _powers(values: Array, weights: Array | None) -> list[float]:
    """Return total, mean and sums of powers by plain sums, whose bits depend on nothing but the numbers."""
    total = float(len(values)) if weights is None else float(weights.sum())
    if total <= 0:
        return [0.0] * 5
    mean = float((values if weights is None else weights * values).sum()) / total
    distance = values - mean
    term = distance if weights is None else weights * distance
    sums = [total, mean]
    for _ in range(3):
        term = term * distance
        sums.append(float(term.sum()))
    return sums


def merged_moments(left: Array, right: Array) -> Array:
    """Return the moments of two samples together: rows are total, mean, and sums of powers of the distance from it."""
    (na, ma, a2, a3, a4), (nb, mb, b2, b3, b4) = left, right
    with np.errstate(over="ignore", invalid="ignore"):
        total, d = na + nb, np.where((na > 0) & (nb > 0), mb - ma, 0.0)
        fa, fb = (np.divide(n, total, out=np.zeros(2), where=total > 0) for n in (na, nb))
        mean = np.where(na > 0, ma + d * fb, mb)
        second = a2 + b2 + d**2 * na * fb
        third = a3 + b3 + d**3 * na * fb * (fa - fb) + 3 * d * (fa * b2 - fb * a2)
        fourth = a4 + b4 + d**4 * na * fb * (fa**2 - fa * fb + fb**2)
        fourth += 6 * d**2 * (fa**2 * b2 + fb**2 * a2) + 4 * d * (fa * b3 - fb * a3)
    return np.stack([total, mean, second, third, fourth])


@dataclass(frozen=True)
class Agreeing:
    """What is known of the draws that agree with the observation."""

    accepted: int
    density: int
    weighted: bool
    scale: float
    total: Array
    surprise: float
    """The sum of each weight times its logarithm, which tells over how many samples the weights are spread."""
    largest: Array
    """The largest logarithms of weights."""
    hits: Array
    """The sums where each of the predicates holds."""
    numbers: tuple[Numbers | None, Numbers | None]
    tables: tuple[ValueTable | None, ...]

    @classmethod
    def of(cls, kept: Kept, layout: TallyLayout) -> "Agreeing":
        """Reduce the samples of a block."""
        sides = [settled(batch) for batch in kept.quantities[:2]]
        samples, logs = len(kept.positions), kept.log_weights
        scale, surprise, sums = 0.0, 0.0, None
        if logs is not None:
            scale = float(logs.max())
            weights = np.exp(logs - scale)
            surprise = float((weights * (logs - scale)).sum())
            sums = np.stack([weights, weights * weights]).T  # each column in one piece
        wanted = dict(zip(PAIRS, sides, strict=True))
        tables = {names: _tallied([wanted[name] for name in names], sums) for names in layout.tables}
        entries = [_entries(tables.get((name,)), batch, sums) for name, batch in wanted.items()]
        secret, own = entries[0]
        masks = [holds(predicate, secret) for predicate in layout.predicates]
        hits = [counted(None if own is None else own[mask], int(mask.sum())) for mask in masks]
        places = zip(entries, layout.edges, layout.starts, strict=True)
        numbers = [_numbers(*entry, samples, edges, start) for entry, edges, start in places]
        total, top = counted(sums, samples), np.empty(0) if logs is None else largest(logs, samples)
        met, both = np.array(hits).reshape(len(hits), 2), (numbers[0], numbers[1])
        found, weighted = tuple(tables.get(names) for names in TABLES), logs is not None
        return cls(samples, kept.density, weighted, scale, total, surprise, top, met, both, found)

    def scaled(self, scale: float) -> "Agreeing":
        """Return the same with weights divided by another number, whose logarithm is given."""
        if scale == self.scale:
            return self
        factor = math.exp(self.scale - scale)
        factors = np.array([factor, factor * factor])
        first, second = (None if one is None else one.scaled(factors) for one in self.numbers)
        return replace(
            self,
            scale=scale,
            total=self.total * factors,
            surprise=factor * (self.surprise + (self.scale - scale) * self.total[0]),
            hits=self.hits * factors,
            numbers=(first, second),
            tables=tuple(None if table is None else table.scaled(factors) for table in self.tables),
        )

    def plus(self, other: "Agreeing") -> "Agreeing":
        """Return both together; where a value has a probability, draws with only a density weigh nothing."""
        if self.density != other.density:
            return self if self.density < other.density else other
        scale = max(self.scale, other.scale)
        one, two = self.scaled(scale), other.scaled(scale)
        accepted = one.accepted + two.accepted
        logs = [np.zeros(0) if part.weighted else np.zeros(min(part.accepted, MOST_LARGEST)) for part in (one, two)]
        weighted = one.weighted or two.weighted
        every = [one.largest, two.largest, *(logs if one.weighted != two.weighted else ())]
        top = largest(np.concatenate(every), accepted) if weighted else one.largest
        total, surprise, hits = one.total + two.total, one.surprise + two.surprise, one.hits + two.hits
        numbers: Any = tuple(map(_both, one.numbers, two.numbers))
        tables = tuple(map(_both, one.tables, two.tables))
        return Agreeing(accepted, one.density, weighted, scale, total, surprise, top, hits, numbers, tables)


def _both(one: Any, two: Any) -> Any:
    return None if one is None or two is None else one.plus(two)


def _tallied(quantities: Sequence[Batch], sums: Array | None) -> ValueTable | None:
    table = ValueTable.of(quantities, sums)
    return table if table.rows <= MOST_VALUES else None


def _entries(table: ValueTable | None, batch: Batch, sums: Array | None) -> tuple[Batch, Array | None]:
    """Return the distinct values of samples with their sums if these are few, else the samples themselves."""
    if table is None or table.rows > len(batch) / 2:
        return batch, sums
    (values,), sums = table.columns
    return values, sums


def _numbers(batch: Batch, sums: Array | None, samples: int, edges: Array | None, start: Start) -> Numbers | None:
    values = batch.numbers()
    return None if values is None or edges is None else Numbers.of(values, sums, samples, edges, start)


@dataclass(frozen=True)
class Statistics:
    """What is left of draws: how many there were, on how many the program failed, and what the others say."""

    draws: int = 0
    failed: int = 0
    contradicting: int = 0
    agreeing: Agreeing | None = None

    def plus(self, other: "Statistics") -> "Statistics":
        """Return both together."""
        parts = [part for part in (self.agreeing, other.agreeing) if part is not None]
        agreeing = parts[0].plus(parts[1]) if len(parts) == 2 else parts[0] if parts else None
        failed, contradicting = self.failed + other.failed, self.contradicting + other.contradicting
        return Statistics(self.draws + other.draws, failed, contradicting, agreeing)

    def with_tables_merged(self) -> "Statistics":
        """Return the same with each table in one part."""
        if self.agreeing is None:
            return self
        tables = tuple(_small(table) for table in self.agreeing.tables)
        return replace(self, agreeing=replace(self.agreeing, tables=tables))


def _small(table: ValueTable | None) -> ValueTable | None:
    merged = None if table is None else table.merged()
    return None if merged is None or merged.rows > MOST_VALUES else merged


FIRST_SAMPLES = 1_000  # that say where histograms begin and end
TAILS = 0.001, 0.999
FAR = 2.0  # of the range that all but the tails have: beyond, a histogram leaves the rest to its ends
MARGIN = 0.05  # of the range of the first samples
MOST_TOGETHER, MOST_OPAQUE_TOGETHER = 64, 8  # blocks that are reduced to one result
MANY_RESULTS = 4_096  # from so many results on, several blocks make one
MOST_RESULTS = 1 << 16  # beyond, as many blocks make one as it takes: all results pass through one process
FIRST_SLICE = 16  # results after which it is looked whether tables have become too large, and after twice as many...

Bins = int | Array


@dataclass(frozen=True)
class Reduction:
    """How blocks are reduced to statistics in whatever process they are sent to."""

    evaluation: BlockEvaluation
    layout: TallyLayout

    def run(self, of: DrawRound, blocks: Sequence[DrawBlock]) -> Statistics:
        """Evaluate blocks and reduce each."""
        found = Statistics()
        for block in blocks:
            found = found.plus(reduced(self.evaluation.run(of, block), len(block.positions), self.layout))
        return found.with_tables_merged()


def reduced(kept: Kept, draws: int, layout: TallyLayout) -> Statistics:
    """Return the statistics of a block of draws."""
    agreeing = Agreeing.of(kept, layout) if len(kept.positions) else None
    return Statistics(draws, kept.excluded, len(kept.contradicting), agreeing)


@dataclass(frozen=True)
class DrawSummary:
    """The statistics of some draws, and what is known of how they were made."""

    statistics: Statistics
    wanted: int
    lifting: Lifting
    density: bool
    moved: bool
    seconds: float
    remarks: tuple[str, ...]

    def plus(self, other: "DrawSummary") -> "DrawSummary":
        """Return both together."""
        return replace(
            self,
            statistics=self.statistics.plus(other.statistics).with_tables_merged(),
            wanted=self.wanted + other.wanted,
            density=self.density or other.density,
            seconds=self.seconds + other.seconds,
            remarks=tuple(dict.fromkeys(self.remarks + other.remarks)),
        )

    def diagnostics(self, question: Question, observation: Observation | None) -> Diagnostics:
        """Return how the draws went, or refuse what cannot be trusted."""
        found, evidence, k = self.statistics, Estimate.exactly(1.0), None
        agreeing = found.agreeing
        assert agreeing is not None
        if observation is not None:
            probability = partial(probability_of, agreeing, unit="density" if self.density else "")
            counts = found.draws, found.failed, found.contradicting
            evidence = sampling.among_possible(probability, question, *counts, moved=self.moved)
        if agreeing.weighted:
            k = pareto_k_of_largest(agreeing.largest, agreeing.accepted, perplexity(agreeing))
        worth, accepted = effective_samples(found), agreeing.accepted
        tail: Any = {"remarks": self.remarks, "pareto_k": k}
        return judged(
            Diagnostics(found.draws, accepted, worth, evidence, self.wanted, found.failed, self.seconds, **tail)
        )


class Tallier(Sampler):
    """One run that tallies draws."""

    def __init__(
        self,
        question: Question,
        observation: Observation | None,
        *,
        draws: int,
        seed: int,
        claims: Mapping[str, Callable[[Any], Any]],
        bins: Bins,
        not_compiled: str | None = None,
    ) -> None:
        super().__init__(question, observation, samples=draws, seed=seed, not_compiled=not_compiled)
        self._claims, self._bins = claims, bins
        self._layout: TallyLayout | None = None
        self._largest_round = min(draws, sampling.LARGEST_ROUND) if question.size_nodes else draws
        self._workload = Workload(keeps=False, times=draws / self._largest_round)
        self._statistics = Statistics()

    def tally(self) -> DrawSummary:
        """Make all draws, or as many as there is time for."""
        started = time.perf_counter()
        self._rounds("tallying", "draws tallied")
        return self._tallied(time.perf_counter() - started)

    def _next_round(self) -> int:
        return min(self._samples - self._statistics.draws, self._largest_round)

    def _worth(self) -> float:
        return effective_samples(self._statistics)

    def _round(self, number: int, samples: int, meter: ProgressMeter) -> None:
        """Add one more round to the statistics. If that is cut short, whole blocks of equal size are kept."""
        self._expected = self._samples if self._not_compiled is None else 0
        before = self._statistics
        self._draws = before.draws
        found = before
        for found in self._merged(number, samples):
            if not self._size_roots:
                self._statistics = found
            accepted = 0 if found.agreeing is None else found.agreeing.accepted
            meter.update(found.draws, f"{accepted:,} of {found.draws:,} draws kept")
        # Tables of some sizes may be known to be impossible: no block has them, but they were drawn.
        self._statistics = replace(found, draws=before.draws + samples)

    def _merged(self, number: int, samples: int) -> Iterator[Statistics]:
        """Yield the statistics of all draws so far whenever there are more."""
        found, blocks = self._statistics, self._blocks(number, samples)
        of, done = self._split.round(number, self._expected), 0
        if self._layout is None:
            found, done = self._first(of, blocks, found)
            yield found
        if self._layout is None:
            return
        together = self._together(len(blocks) - done)
        groups = sampling.Made(
            lambda place: blocks[done + place * together : done + (place + 1) * together],
            range(-(-(len(blocks) - done) // together)),
        )
        start, size = 0, FIRST_SLICE
        while start < len(groups):
            stop = start + size if self._layout.tables else len(groups)
            work = partial(Reduction(self._evaluation, self._layout).run, of)
            for part in self._run(groups[start:stop], work):
                found = found.plus(part)
                yield found
            self._layout = still_tallied(self._layout, found)
            start, size = stop, 2 * size

    def _blocks(self, number: int, samples: int) -> Sequence[DrawBlock]:
        """Return the blocks of a round; those of tables of different sizes in no particular order, so that all mix."""
        if self._question.size_nodes:
            tasks = list(self._tasks(number, samples))
            return [tasks[place] for place in np.random.default_rng(0).permutation(len(tasks))]
        of = self._split.round(number, self._expected)
        self._workload.add(self._evaluation.case((), of), samples)
        plan = self._plan((), of)
        if plan.impossible is not None:
            raise ImpossibleObservation(f"this observation is impossible: {plan.impossible}")
        return sampling.blocks_of_equal_size(samples, plan.block)

    def _first(self, of: DrawRound, blocks: Sequence[DrawBlock], found: Statistics) -> tuple[Statistics, int]:
        """Return the statistics with those of the first blocks, and how many these are; fix what is counted."""
        done, size, accepted = 0, 1, 0
        whole: list[Kept] = []
        try:
            while done < len(blocks) and accepted < FIRST_SAMPLES:
                some = blocks[done : done + size]
                for block, kept in zip(some, self._run(some, partial(self._evaluation.run, of)), strict=True):
                    counts = Statistics(len(block.positions), kept.excluded, len(kept.contradicting))
                    found, accepted = found.plus(counts), accepted + len(kept.positions)
                    if len(kept.positions):
                        whole.append(replace(kept, failed=kept.failed[:0], contradicting=kept.contradicting[:0]))
                done, size = done + len(some), 2 * size
        except KeyboardInterrupt:
            if accepted >= sampling.FEWEST_SAMPLES and not self._size_roots:
                self._statistics = self._with_layout(whole, found)
            raise
        return self._with_layout(whole, found), done

    def _with_layout(self, whole: list[Kept], found: Statistics) -> Statistics:
        """Return the statistics with the first samples, after which it is fixed what is counted."""
        if whole:
            layout = self._chosen_layout(whole)
            for kept in whole:
                found = found.plus(reduced(kept, 0, layout))
            self._layout = still_tallied(layout, found)
        return found

    def _chosen_layout(self, whole: list[Kept]) -> TallyLayout:
        """Say what is counted, from the first samples and from what the definitions of secret and output tell."""
        known = [definition_of(self._question, name) for name in PAIRS]
        listed = [self._bins, self._bins if isinstance(self._bins, int) else 100]
        edges, begun = [], []
        for position, (definition, bins) in enumerate(zip(known, listed, strict=True)):
            columns = [settled(kept.quantities[position]).numbers() for kept in whole]
            numbers = (
                None if any(one is None for one in columns) else np.concatenate([c for c in columns if c is not None])
            )
            edges.append(None if numbers is None else chosen_edges(numbers, bins, definition.reach))
            begun.append(chosen_start(numbers, definition.reach if self._observation is None else UNKNOWN))
        endless = [definition.spread is Kind.CONTINUOUS for definition in known]
        skipped = {SECRET: endless[0], OUTPUT: endless[1], PAIRS: any(endless)}
        tables = tuple(names for names in TABLES if not skipped[names])
        return TallyLayout(tuple(self._claims.values()), (edges[0], edges[1]), (begun[0], begun[1]), tables)

    def _run(self, tasks: Sequence[Any], work: Callable[[Any], Any]) -> Iterator[Any]:
        plans = [(case.plan, case.block) for case in self._plans.values()]
        opaque = any(plan.is_opaque for plan, _ in plans)
        return run_tasks(tasks, work, opaque=opaque, bytes_per_task=max(p.bytes_per_sample * b for p, b in plans))

    def _together(self, blocks: int) -> int:
        """Return how many blocks make one result, which depends on the model and the number of draws alone."""
        opaque = any(plan.plan.is_opaque for plan in self._plans.values())
        usual = min(MOST_OPAQUE_TOGETHER if opaque else MOST_TOGETHER, blocks // MANY_RESULTS)
        return max(1, usual, -(-blocks // MOST_RESULTS))

    def _tallied(self, seconds: float) -> DrawSummary:
        found = self._statistics.with_tables_merged()
        self._draws = found.draws
        if found.agreeing is None:
            raise self._nothing_accepted(found.failed)
        density, moved = (any(getattr(p, what) for p in self._plans.values()) for what in ("has_density", "is_moved"))
        return DrawSummary(found, self._samples, self._lifting(), density, moved, seconds, tuple(self._remarks))


def probability_of(agreeing: Agreeing, draws: int, unit: str) -> Estimate:
    """Return the probability or density of what so many draws were compared with."""
    if not agreeing.weighted:
        return intervals.proportion_estimate(agreeing.accepted / draws, draws, f"n={draws}")
    total, squares = agreeing.total
    return sampling.probability_of_sums(agreeing.scale, float(total), float(squares), agreeing.accepted, draws, unit)


def effective_samples(found: Statistics) -> float:
    """Return how many equally weighted samples the draws that agree are worth."""
    agreeing = found.agreeing
    return 0.0 if agreeing is None else float(agreeing.total[0] ** 2 / agreeing.total[1])


def perplexity(agreeing: Agreeing) -> float:
    """Return over how many samples the weights are spread."""
    total = float(agreeing.total[0])
    return total * math.exp(-agreeing.surprise / total)


def judged(diagnostics: Diagnostics) -> Diagnostics:
    """Refuse what cannot be trusted."""
    worth = diagnostics.effective_samples
    if worth < sampling.FEWEST_SAMPLES and worth < diagnostics.draws:
        raise TooFewSamples(
            f"only {worth:.0f} effective samples came out of {diagnostics.draws:,} draws (acceptance rate "
            f"{diagnostics.acceptance_rate:.2g}), too few to trust; raise draws=, or widen the observation"
        )
    prior = f"a few of {diagnostics.draws:,} draws from the prior"
    refuse_heavy(diagnostics.pareto_k, prior, ": raise draws=, or run the attack with engine='rare'")
    return diagnostics


def still_tallied(layout: TallyLayout, found: Statistics) -> TallyLayout:
    """Return what is counted from here on: no table that has become too large."""
    if found.agreeing is None:
        return layout
    small = {names for names, table in zip(TABLES, found.agreeing.tables, strict=True) if table is not None}
    return replace(layout, tables=tuple(names for names in layout.tables if names in small))


def chosen_edges(values: Array, bins: Bins, reach: Reach) -> Array | None:
    """Return the edges of a histogram: the range of the first values and a little more, without tails that go far."""
    if not isinstance(bins, int):
        return bins
    finite = values[np.isfinite(values)].astype(float)
    if not len(finite):
        return None
    low, high = float(finite.min()), float(finite.max())
    inner = np.quantile(finite, TAILS)
    if high - low > FAR * (inner[1] - inner[0]) > 0:
        low, high = float(inner[0]), float(inner[1])
    low, high = low - MARGIN * (high - low), high + MARGIN * (high - low)
    low, high = max(low, reach.low), min(high, reach.high)
    if not low < high:
        low, high = low - 0.5, low + 0.5
    edges = np.linspace(low, high, bins + 1)
    return edges if np.isfinite(edges).all() and np.all(np.diff(edges) > 0) else None


def chosen_start(values: Array | None, reach: Reach) -> tuple[float, float]:
    """Return where the tails of numbers begin."""
    finite = np.zeros(1) if values is None or not np.isfinite(values).any() else values[np.isfinite(values)]
    return intervals.starts(finite.astype(float), reach)


def tally(question: Question, observation: Observation | None, **options: Any) -> DrawSummary:
    """Tally draws, without compiling if it turns out that compiled code cannot hold all outputs."""
    return sampling.compiled_or_not(
        lambda reason: Tallier(question, observation, **options, not_compiled=reason).tally()
    )


def merged_table(names: Sequence[str], table: ValueTable, question: Question) -> ValueTable:
    """Return a table of values of secret, output or both, with values that differ only by rounding as one."""
    nodes = dict(zip(("secret", "output"), nodes_asked(question, None), strict=True))
    batches, sums = table.columns
    found = [merged(batch, nodes[name], sampled=False) for name, batch in zip(names, batches, strict=True)]
    return ValueTable.of([one.batch for one in found], sums) if any(one.before for one in found) else table


INSTEAD = "ask for histogram(), or for a question about the secret"
HEAVY = 0.5  # of what is averaged: beyond, its variance may be infinite


def method_of(agreeing: Agreeing) -> str:
    """Say in a few words how many samples numbers are from."""
    total, squares = agreeing.total
    return f"effective n={total**2 / squares:.0f}" if agreeing.weighted else f"n={agreeing.accepted}"


def share(agreeing: Agreeing, sums: Array, confidence: float = CONFIDENCE) -> Estimate:
    """Return the probability of what holds for draws with the given sums of weights and of squared weights."""
    if not agreeing.weighted:
        n = agreeing.accepted
        return intervals.proportion_estimate(float(sums[0]) / n, n, method_of(agreeing), confidence)
    total, squares = agreeing.total
    hits, misses = sums[1] / total**2, max(0.0, squares - sums[1]) / total**2
    part, samples = intervals.share_of_sums(float(sums[0] / total), float(hits), float(misses))
    return intervals.proportion_estimate(part, samples, method_of(agreeing), confidence)


def sums_where(agreeing: Agreeing, question: Question, predicate: Callable[[Any], Any]) -> Array:
    """Return the sums of the draws whose secret, which was tallied value by value, meets a predicate."""
    table = agreeing.tables[TABLES.index(SECRET)]
    assert table is not None
    (secret,), sums = merged_table(SECRET, table, question).columns
    return np.asarray(sums[holds(predicate, secret)].sum(axis=0))


def beliefs(
    agreeing: Agreeing, names: tuple[str, ...], question: Question, known: dict[str, Definition]
) -> list[Belief] | None:
    """Return the beliefs about some quantities, value by value; None if these were not tallied or hardly repeat."""
    table = agreeing.tables[TABLES.index(names)]
    if table is None:
        return None
    batches, sums = merged_table(names, table, question).columns
    for name, batch in zip(names, batches, strict=True):
        floats = any(column.levels is None and column.array.dtype.kind == "f" for column in batch.columns)
        if floats and known[name].spread is not Kind.DISCRETE and batch.distinct() > agreeing.accepted / 2:
            return None
    held, total = sums[:, 0] > 0, float(sums[:, 0].sum())
    weights, squares = sums[held, 0] / total, sums[held, 1] / total**2
    made = []
    for name, batch in zip(names, batches, strict=True):
        definition = known[name]._replace(spread=Kind.DISCRETE)
        made.append(Belief(batch.take(held), weights, squares=squares, **definition._asdict()))
    return made


def histogram(agreeing: Agreeing, numbers: Numbers) -> Histogram | None:
    """Return the probability of each bin, with an endless one at either end if anything lies there."""
    if numbers.edges is None or numbers.bins is None:
        return None
    edges, bins = np.array([-math.inf, *numbers.edges, math.inf]), numbers.bins
    first, last = int(bins[0, 0] == 0), len(bins) - int(bins[-1, 0] == 0)
    return Histogram(edges[first : last + 1], tuple(share(agreeing, sums) for sums in bins[first:last]))


def mean(agreeing: Agreeing, numbers: Numbers, reach: Reach, confidence: float = CONFIDENCE) -> Estimate:
    """Return the mean with its interval from the central limit theorem; of skewed samples from the histogram."""
    method = method_of(agreeing)
    if not math.isfinite(numbers.high - numbers.low):
        return intervals.infinite_mean(numbers.low == -math.inf, numbers.high == math.inf, method, confidence)
    centre, heavy = float(numbers.moments[1, 0]), _heaviness(agreeing, numbers, reach, 1)
    unknown = _missing(numbers, reach, heavy, 1)
    if unknown is not None:
        return unknown
    samples, half = _error(agreeing, numbers, centre, confidence)
    if samples <= 1:
        return Estimate(centre, -math.inf, math.inf, method=method, confidence=confidence)
    low, high = centre - half, centre + half
    known = intervals.ends((numbers.low, numbers.high), centre, reach, heavy, 1)
    if _is_lopsided(numbers, samples) or intervals.leaves_out((numbers.low, numbers.high), samples, half, known):
        below, above, shares = _bins(numbers)
        low = intervals.skewed_interval(below, shares, samples, known, confidence)[0]
        high = intervals.skewed_interval(above, shares, samples, known, confidence)[1]
    value = min(max(centre, numbers.low), numbers.high)
    return Estimate(value, min(low, value), max(high, value), method=method, confidence=confidence)


def std(agreeing: Agreeing, numbers: Numbers, reach: Reach, confidence: float = CONFIDENCE) -> Estimate:
    """Return the standard deviation with its interval; of skewed squares from the histogram, as for means."""
    method = method_of(agreeing)
    if not math.isfinite(numbers.high - numbers.low):
        return Estimate(math.inf, math.inf, math.inf, method=f"some values are infinite; {method}")
    heavy = _heaviness(agreeing, numbers, reach, 2)
    unknown = _missing(numbers, reach, heavy, 2)
    if unknown is not None:
        return unknown
    total, centre, second, _, _ = numbers.moments[:, 0]
    average, samples = second / total, _samples(numbers)
    whole, about, fourth = _about(numbers.moments[:, 1], centre)
    variance = max(0.0, fourth - 2 * average * about + average**2 * whole) / total**2
    if not agreeing.weighted and samples > 1:
        variance *= samples / (samples - 1)
    found = intervals.spread_estimate(average, variance, samples, samples - 1, method, confidence)
    low, high = intervals.ends((numbers.low, numbers.high), centre, reach, heavy, 2)
    half = intervals.student(samples - 1, confidence) * math.sqrt(variance)
    return found if samples <= 2 else _within_bins(found, numbers, half, max(centre - low, high - centre) ** 2, heavy)


def _within_bins(found: Estimate, numbers: Numbers, half: float, end: float, heavy: float) -> Estimate:
    """Return a deviation with an interval from the histogram if Student's t is no good for the squared distances."""
    centre, samples = float(numbers.moments[1, 0]), _samples(numbers)
    below, above, shares = _bins(numbers)
    most = np.maximum((below - centre) ** 2, (above - centre) ** 2)
    least = np.maximum(np.maximum(below - centre, centre - above), 0.0) ** 2
    lopsided = heavy > HEAVY
    if numbers.bins is not None:
        lopsided = intervals.is_lopsided((least + most) / 2, shares, samples, shares / samples)
    if not lopsided and not intervals.leaves_out((0.0, float(most.max())), samples, half, (0.0, end)):
        return found
    low = intervals.skewed_interval(least, shares, samples, (0.0, end), found.confidence)[0]
    high = intervals.skewed_interval(most, shares, samples, (0.0, end), found.confidence)[1]
    return intervals.spread_within(found, (low, high))


def _samples(numbers: Numbers) -> float:
    return float(numbers.moments[0, 0] ** 2 / numbers.moments[0, 1])


def _error(agreeing: Agreeing, numbers: Numbers, centre: float, confidence: float) -> tuple[float, float]:
    """Return the effective number of samples, and how far their mean may be off."""
    total, samples = float(numbers.moments[0, 0]), _samples(numbers)
    if samples <= 1:
        return samples, math.inf
    variance = _about(numbers.moments[:, 1], centre)[1] / total**2
    if not agreeing.weighted:
        variance *= samples / (samples - 1)
    return samples, intervals.student(samples - 1, confidence) * math.sqrt(variance)


def _about(moments: Array, centre: float) -> tuple[float, float, float]:
    """Return the sums of the powers zero, two and four of the distance from another number than the mean."""
    total, mean, second, third, fourth = (float(moment) for moment in moments)
    shift = mean - centre
    squares = second + total * shift**2
    return total, squares, fourth + 4 * shift * third + 6 * shift**2 * second + total * shift**4


def _heaviness(agreeing: Agreeing, numbers: Numbers, reach: Reach, order: int) -> float:
    """Return how heavy the tails are, as `tails.heaviness` does."""
    known = intervals.known_heaviness(order, reach, weighted=agreeing.weighted)
    return intervals.heaviness_of_terms(numbers.tails[order - 1], numbers.samples) if known is None else known


def _missing(numbers: Numbers, reach: Reach, heavy: float, order: int) -> Estimate | None:
    """Return why there is no moment of that order, if there is none or the draws cannot tell it."""
    overflown = not np.isfinite(numbers.moments).all()
    return intervals.missing(order, reach, math.inf if overflown else heavy, "the draws", INSTEAD)


def _is_lopsided(numbers: Numbers, samples: float) -> bool:
    """Say whether Student's t is no good for a mean: by the same rule as for samples (`tails.is_lopsided`)."""
    total, _, second, third, _ = numbers.moments[:, 0]
    return bool(second > 0 and abs(third / total) / (second / total) ** 1.5 > intervals.SKEWED * math.sqrt(samples))


def _bins(numbers: Numbers) -> tuple[Array, Array, Array]:
    """Return the ends of the bins that hold something, and their shares: whatever lies in one may lie at either end."""
    if numbers.edges is None or numbers.bins is None:
        edges, shares = np.array([numbers.low, numbers.high]), np.ones(1)
    else:
        inner = np.clip(numbers.edges, numbers.low, numbers.high)
        edges = np.array([numbers.low, *inner, numbers.high])
        shares = numbers.bins[:, 0] / numbers.bins[:, 0].sum()
    return edges[:-1][shares > 0], edges[1:][shares > 0], shares[shares > 0]
