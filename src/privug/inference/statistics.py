"""Statistics of draws that can be merged: what is left of a block whose samples are not kept.

Every sum comes twice, in two columns: of weights, and of squared weights, which tell how well the first is known.
Weights are divided by the largest of them, whose logarithm is the `scale`. Moments are merged by the formulas of Chan,
Golub and LeVeque (1983), those of higher order by Pébay's (2008). Sums are merged in the order of the blocks, so that
the bits of a result do not depend on who did what.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privug.inference.case_plan import Kept, settled
from privug.inference.tails import distances
from privug.model.batch import Batch, codes_of, first_places
from privug.model.node import Array
from privug.program.predicates import holds

MOST_VALUES = 100_000  # distinct values, or pairs of them, that are tallied
MOST_PENDING = 1 << 18  # rows of tables before they are merged
MOST_LARGEST = 1 << 17
SECRET, OUTPUT, PAIRS = ("secret",), ("output",), ("secret", "output")
TABLES = (SECRET, OUTPUT, PAIRS)

Start = tuple[float, float]
Predicates = tuple[Callable[[Any], Any], ...]


@dataclass(frozen=True)
class Layout:
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
class Table:
    """The sums for each distinct value of some quantities together, in parts until they are many."""

    parts: tuple[tuple[tuple[Batch, ...], Array], ...]
    rows: int
    merged_at: int = MOST_PENDING

    @classmethod
    def of(cls, quantities: Sequence[Batch], sums: Array | None) -> "Table":
        """Tally samples."""
        codes = codes_of(quantities, len(quantities[0]))
        first = first_places(codes)
        return cls(((tuple(batch.take(first) for batch in quantities), binned(codes, sums, len(first))),), len(first))

    def plus(self, other: "Table") -> "Table | None":
        """Return both together; None if they have too many values."""
        together = Table(self.parts + other.parts, self.rows + other.rows, self.merged_at)
        if together.rows <= together.merged_at:
            return together
        merged = together.merged()
        return None if merged.rows > MOST_VALUES else replace(merged, merged_at=MOST_PENDING + merged.rows)

    def scaled(self, factors: Array) -> "Table":
        """Return all sums with their weights multiplied."""
        return replace(self, parts=tuple((quantities, sums * factors) for quantities, sums in self.parts))

    def merged(self) -> "Table":
        """Return a table in which every value stands once, in ascending order if ordered."""
        if len(self.parts) == 1:
            return self
        quantities = [Batch.concatenate(batches) for batches in zip(*(q for q, _ in self.parts), strict=True)]
        return Table.of(quantities, np.concatenate([sums for _, sums in self.parts]))

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
                distance = distances(values, start)
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
    tables: tuple[Table | None, ...]

    @classmethod
    def of(cls, kept: Kept, layout: Layout) -> "Agreeing":
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
        hits = [counted(_chosen(own, mask := holds(p, secret)), int(mask.sum())) for p in layout.predicates]
        places = zip(entries, layout.edges, layout.starts, strict=True)
        numbers = [_numbers(*entry, samples, edges, start) for entry, edges, start in places]
        return cls(
            samples,
            kept.density,
            logs is not None,
            scale,
            counted(sums, samples),
            surprise,
            np.empty(0) if logs is None else largest(logs, samples),
            np.array(hits).reshape(len(hits), 2),
            (numbers[0], numbers[1]),
            tuple(tables.get(names) for names in TABLES),
        )

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
        pairs = [None if a is None or b is None else a.plus(b) for a, b in zip(one.numbers, two.numbers, strict=True)]
        logs = [np.zeros(0) if part.weighted else np.zeros(min(part.accepted, MOST_LARGEST)) for part in (one, two)]
        weighted = one.weighted or two.weighted
        every = [one.largest, two.largest, *(logs if one.weighted != two.weighted else ())]
        return Agreeing(
            accepted,
            one.density,
            weighted,
            scale,
            one.total + two.total,
            one.surprise + two.surprise,
            largest(np.concatenate(every), accepted) if weighted else one.largest,
            one.hits + two.hits,
            (pairs[0], pairs[1]),
            tuple(_both(a, b) for a, b in zip(one.tables, two.tables, strict=True)),
        )


def _both(one: Table | None, two: Table | None) -> Table | None:
    return None if one is None or two is None else one.plus(two)


def _chosen(sums: Array | None, mask: Array) -> Array | None:
    return None if sums is None else sums[mask]


def _tallied(quantities: Sequence[Batch], sums: Array | None) -> Table | None:
    table = Table.of(quantities, sums)
    return table if table.rows <= MOST_VALUES else None


def _entries(table: Table | None, batch: Batch, sums: Array | None) -> tuple[Batch, Array | None]:
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


def _small(table: Table | None) -> Table | None:
    merged = None if table is None else table.merged()
    return None if merged is None or merged.rows > MOST_VALUES else merged
