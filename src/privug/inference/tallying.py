"""Tallying: draws that are reduced to statistics where they are made, so that any number of them fits into memory.

The blocks are those of the sampling engine. The first ones come back whole, until there are enough samples to say where
histograms begin and end; of all others only statistics come back, of several blocks at a time where there are many.
Tables of random size are drawn in rounds, as their sizes are drawn first; all other blocks are one round, so that no
worker waits for the slowest one at its end.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from privug import interruption
from privug.errors import ImpossibleObservation, NotConverged, TooFewSamples
from privug.estimate import Estimate
from privug.inference.blocks import Block, Evaluation, Made, Round, blocks_of_equal_size
from privug.inference.case_plan import Kept, settled
from privug.inference.diagnostics import LARGEST_PARETO_K, Diagnostics, pareto_k_of_largest
from privug.inference.evidence import among_possible, probability_of_sums
from privug.inference.intervals import proportion_estimate
from privug.inference.question import Question
from privug.inference.reach import definition_of
from privug.inference.sampling import FEWEST_SAMPLES, LARGEST_ROUND, Sampler, compiled_or_not
from privug.inference.statistics import OUTPUT, PAIRS, SECRET, TABLES, Agreeing, Layout, Statistics
from privug.inference.tails import starts
from privug.inference.workload import Workload
from privug.model.execution import run_tasks
from privug.model.node import Array, Kind
from privug.observation.observations import Observation
from privug.prior.reach import UNKNOWN, Reach
from privug.program.lifting import Lifting
from privug.progress import ProgressMeter

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

    evaluation: Evaluation
    layout: Layout

    def run(self, of: Round, blocks: Sequence[Block]) -> Statistics:
        """Evaluate blocks and reduce each."""
        found = Statistics()
        for block in blocks:
            found = found.plus(reduced(self.evaluation.run(of, block), len(block.positions), self.layout))
        return found.with_tables_merged()


def reduced(kept: Kept, draws: int, layout: Layout) -> Statistics:
    """Return the statistics of a block of draws."""
    agreeing = Agreeing.of(kept, layout) if len(kept.positions) else None
    return Statistics(draws, kept.excluded, len(kept.contradicting), agreeing)


@dataclass(frozen=True)
class Tally:
    """The statistics of some draws, and what is known of how they were made."""

    statistics: Statistics
    wanted: int
    lifting: Lifting
    density: bool
    moved: bool
    seconds: float
    remarks: tuple[str, ...]

    def plus(self, other: "Tally") -> "Tally":
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
            evidence = among_possible(probability, question, *counts, moved=self.moved)
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
        self._layout: Layout | None = None
        self._largest_round = min(draws, LARGEST_ROUND) if question.size_nodes else draws
        self._workload = Workload(keeps=False, times=draws / self._largest_round)
        self._statistics = Statistics()

    def tally(self) -> Tally:
        """Make all draws, or as many as there is time for."""
        started, number = time.perf_counter(), 0
        with ProgressMeter("tallying", self._samples) as meter:
            while (left := self._samples - self._statistics.draws) > 0:
                try:
                    self._statistics = self._tallied_round(number, min(left, self._largest_round), meter)
                except KeyboardInterrupt:
                    if self._worth() < FEWEST_SAMPLES:
                        raise
                    self._remarks.append(interruption.taken_note("the draws tallied so far were kept"))
                    break
                number += 1
        return self._tallied(time.perf_counter() - started)

    def _worth(self) -> float:
        return effective_samples(self._statistics)

    def _tallied_round(self, number: int, samples: int, meter: ProgressMeter) -> Statistics:
        """Return the statistics with one more round. If that is cut short, whole blocks of equal size are kept."""
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
        return replace(found, draws=before.draws + samples)

    def _merged(self, number: int, samples: int) -> Iterator[Statistics]:
        """Yield the statistics of all draws so far whenever there are more."""
        found, blocks = self._statistics, self._blocks(number, samples)
        of, done = self._terms(number), 0
        if self._layout is None:
            found, done = self._first(of, blocks, found)
            yield found
        if self._layout is None:
            return
        together = self._together(len(blocks) - done)
        groups = Made(
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

    def _blocks(self, number: int, samples: int) -> Sequence[Block]:
        """Return the blocks of a round; those of tables of different sizes in no particular order, so that all mix."""
        if self._question.size_nodes:
            tasks = list(self._tasks(number, samples))
            return [tasks[place] for place in np.random.default_rng(0).permutation(len(tasks))]
        of = self._terms(number)
        self._workload.add(self._evaluation.case((), of), samples)
        plan = self._plan((), of)
        if plan.impossible is not None:
            raise ImpossibleObservation(f"this observation is impossible: {plan.impossible}")
        return blocks_of_equal_size(samples, plan.block)

    def _first(self, of: Round, blocks: Sequence[Block], found: Statistics) -> tuple[Statistics, int]:
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
            if accepted >= FEWEST_SAMPLES and not self._size_roots:
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

    def _chosen_layout(self, whole: list[Kept]) -> Layout:
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
        return Layout(tuple(self._claims.values()), (edges[0], edges[1]), (begun[0], begun[1]), tables)

    def _run(self, tasks: Sequence[Any], work: Callable[[Any], Any]) -> Iterator[Any]:
        plans = [(case.plan, case.block) for case in self._plans.values()]
        opaque = any(plan.is_opaque for plan, _ in plans)
        return run_tasks(tasks, work, opaque=opaque, bytes_per_task=max(p.bytes_per_sample * b for p, b in plans))

    def _together(self, blocks: int) -> int:
        """Return how many blocks make one result, which depends on the model and the number of draws alone."""
        opaque = any(plan.plan.is_opaque for plan in self._plans.values())
        usual = min(MOST_OPAQUE_TOGETHER if opaque else MOST_TOGETHER, blocks // MANY_RESULTS)
        return max(1, usual, -(-blocks // MOST_RESULTS))

    def _tallied(self, seconds: float) -> Tally:
        found = self._statistics.with_tables_merged()
        self._draws = found.draws
        if found.agreeing is None:
            raise self._nothing_accepted(found.failed)
        lifting = self._of_all_sizes.lifting if self._of_all_sizes else self._question.lifting(self._expected)
        if self._not_compiled is not None:
            lifting = replace(lifting, not_compiled=self._not_compiled)
        density, moved = (any(getattr(p, what) for p in self._plans.values()) for what in ("has_density", "is_moved"))
        return Tally(found, self._samples, lifting, density, moved, seconds, tuple(self._remarks))


def probability_of(agreeing: Agreeing, draws: int, unit: str) -> Estimate:
    """Return the probability or density of what so many draws were compared with."""
    if not agreeing.weighted:
        return proportion_estimate(agreeing.accepted / draws, draws, f"n={draws}")
    total, squares = agreeing.total
    return probability_of_sums(agreeing.scale, float(total), float(squares), agreeing.accepted, draws, unit)


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
    worth, k = diagnostics.effective_samples, diagnostics.pareto_k
    if worth < FEWEST_SAMPLES and worth < diagnostics.draws:
        raise TooFewSamples(
            f"only {worth:.0f} effective samples came out of {diagnostics.draws:,} draws (acceptance rate "
            f"{diagnostics.acceptance_rate:.2g}), too few to trust; raise draws=, or widen the observation"
        )
    if k is not None and k > LARGEST_PARETO_K:
        raise NotConverged(
            f"a few of {diagnostics.draws:,} draws from the prior hold most of the weight (Pareto k {k:.2f}, more than "
            f"{LARGEST_PARETO_K}): raise draws=, or run the attack with engine='rare'"
        )
    return diagnostics


def still_tallied(layout: Layout, found: Statistics) -> Layout:
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
    return starts(finite.astype(float), reach)


def tally(question: Question, observation: Observation | None, **options: Any) -> Tally:
    """Tally draws, without compiling if it turns out that compiled code cannot hold all outputs."""
    return compiled_or_not(lambda reason: Tallier(question, observation, **options, not_compiled=reason).tally())
