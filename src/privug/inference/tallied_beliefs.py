"""What tallied draws say: shares, moments, histograms, and beliefs where the distinct values are few."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from privug.estimate import CONFIDENCE, Estimate
from privug.inference.answer import Definition, nodes_asked
from privug.inference.belief import Belief, Histogram
from privug.inference.intervals import (
    SKEWED,
    ends,
    heaviness_of_terms,
    infinite_mean,
    is_lopsided,
    known_heaviness,
    leaves_out,
    missing,
    proportion_estimate,
    share_of_sums,
    skewed_interval,
    spread_estimate,
    spread_within,
    student,
)
from privug.inference.question import Question
from privug.inference.tallying import SECRET, TABLES, Agreeing, Numbers, ValueTable
from privug.model.merging import merged
from privug.model.node import Array, Kind
from privug.prior.reach import Reach
from privug.program.predicates import holds


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
        return proportion_estimate(float(sums[0]) / n, n, method_of(agreeing), confidence)
    total, squares = agreeing.total
    hits, misses = sums[1] / total**2, max(0.0, squares - sums[1]) / total**2
    part, samples = share_of_sums(float(sums[0] / total), float(hits), float(misses))
    return proportion_estimate(part, samples, method_of(agreeing), confidence)


def sums_where(agreeing: Agreeing, question: Question, predicate: Callable[[Any], Any]) -> Array:
    """Return the sums of the draws whose secret, which was tallied value by value, meets a predicate."""
    table = agreeing.tables[TABLES.index(SECRET)]
    assert table is not None
    (secret,), sums = merged_table(SECRET, table, question).columns
    chosen: Array = sums[holds(predicate, secret)].sum(axis=0)
    return chosen


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
        return infinite_mean(numbers.low == -math.inf, numbers.high == math.inf, method, confidence)
    centre, heavy = float(numbers.moments[1, 0]), _heaviness(agreeing, numbers, reach, 1)
    unknown = _missing(numbers, reach, heavy, 1)
    if unknown is not None:
        return unknown
    samples, half = _error(agreeing, numbers, centre, confidence)
    if samples <= 1:
        return Estimate(centre, -math.inf, math.inf, method=method, confidence=confidence)
    low, high = centre - half, centre + half
    known = ends((numbers.low, numbers.high), centre, reach, heavy, 1)
    if _is_lopsided(numbers, samples) or leaves_out((numbers.low, numbers.high), samples, half, known):
        below, above, shares = _bins(numbers)
        low = skewed_interval(below, shares, samples, known, confidence)[0]
        high = skewed_interval(above, shares, samples, known, confidence)[1]
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
    found = spread_estimate(average, variance, samples, samples - 1, method, confidence)
    low, high = ends((numbers.low, numbers.high), centre, reach, heavy, 2)
    half = student(samples - 1, confidence) * math.sqrt(variance)
    return found if samples <= 2 else _within_bins(found, numbers, half, max(centre - low, high - centre) ** 2, heavy)


def _within_bins(found: Estimate, numbers: Numbers, half: float, end: float, heavy: float) -> Estimate:
    """Return a deviation with an interval from the histogram if Student's t is no good for the squared distances."""
    centre, samples = float(numbers.moments[1, 0]), _samples(numbers)
    below, above, shares = _bins(numbers)
    most = np.maximum((below - centre) ** 2, (above - centre) ** 2)
    least = np.maximum(np.maximum(below - centre, centre - above), 0.0) ** 2
    lopsided = (
        heavy > HEAVY if numbers.bins is None else is_lopsided((least + most) / 2, shares, samples, shares / samples)
    )
    if not lopsided and not leaves_out((0.0, float(most.max())), samples, half, (0.0, end)):
        return found
    low = skewed_interval(least, shares, samples, (0.0, end), found.confidence)[0]
    high = skewed_interval(most, shares, samples, (0.0, end), found.confidence)[1]
    return spread_within(found, (low, high))


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
    return samples, student(samples - 1, confidence) * math.sqrt(variance)


def _about(moments: Array, centre: float) -> tuple[float, float, float]:
    """Return the sums of the powers zero, two and four of the distance from another number than the mean."""
    total, mean, second, third, fourth = (float(moment) for moment in moments)
    shift = mean - centre
    squares = second + total * shift**2
    return total, squares, fourth + 4 * shift * third + 6 * shift**2 * second + total * shift**4


def _heaviness(agreeing: Agreeing, numbers: Numbers, reach: Reach, order: int) -> float:
    """Return how heavy the tails are, as `tails.heaviness` does."""
    known = known_heaviness(order, reach, weighted=agreeing.weighted)
    return heaviness_of_terms(numbers.tails[order - 1], numbers.samples) if known is None else known


def _missing(numbers: Numbers, reach: Reach, heavy: float, order: int) -> Estimate | None:
    """Return why there is no moment of that order, if there is none or the draws cannot tell it."""
    overflown = not np.isfinite(numbers.moments).all()
    return missing(order, reach, math.inf if overflown else heavy, "the draws", INSTEAD)


def _is_lopsided(numbers: Numbers, samples: float) -> bool:
    """Say whether Student's t is no good for a mean: by the same rule as for samples (`tails.is_lopsided`)."""
    total, _, second, third, _ = numbers.moments[:, 0]
    return bool(second > 0 and abs(third / total) / (second / total) ** 1.5 > SKEWED * math.sqrt(samples))


def _bins(numbers: Numbers) -> tuple[Array, Array, Array]:
    """Return the ends of the bins that hold something, and their shares: whatever lies in one may lie at either end."""
    if numbers.edges is None or numbers.bins is None:
        edges, shares = np.array([numbers.low, numbers.high]), np.ones(1)
    else:
        inner = np.clip(numbers.edges, numbers.low, numbers.high)
        edges = np.array([numbers.low, *inner, numbers.high])
        shares = numbers.bins[:, 0] / numbers.bins[:, 0].sum()
    return edges[:-1][shares > 0], edges[1:][shares > 0], shares[shares > 0]
