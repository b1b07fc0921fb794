"""What changed about a quantity, line by line: means, ranges, and the likeliest values."""

from dataclasses import replace
from typing import Any

from privug.inference.belief import Belief
from privug.model.batch import Batch
from privug.model.node import Kind
from privug.report.summary import Comparison

MOST_LISTED_VALUES = 6


def comparisons(before: Belief, after: Belief) -> list[Comparison]:
    """Compare a belief before and after an observation; a structured quantity part by part."""
    parts = list(zip(_parts(before), _parts(after), strict=False))
    if len(parts) > 1 and any(part.kind is not Kind.DISCRETE for (_, part), _ in parts):
        lines = []
        for (name, old), (_, new) in parts[:MOST_LISTED_VALUES]:
            lines += [replace(line, label=f"{name}: {line.label}") for line in comparisons(old, new)[:2]]
        return lines
    return _single_comparisons(before, after)


def _parts(belief: Belief) -> list[tuple[str, Belief]]:
    """Return the numbers that a structured quantity is made of, each as a belief of its own."""
    batch, parts = belief.batch, []
    for position, column in enumerate(batch.columns):
        if column.levels is not None or column.array.dtype.kind not in "bif":
            continue
        flat = column.array.reshape(len(batch), -1)
        for element in range(flat.shape[1]):
            name = f"part {position}" + (f"[{element}]" if column.array.ndim > 1 else "")
            parts.append((name, replace(belief, batch=Batch.of_values(flat[:, element]), spread=None)))
    return parts


def _single_comparisons(before: Belief, after: Belief) -> list[Comparison]:
    lines: list[Comparison] = []
    numeric = before.batch.numbers() is not None and after.batch.numbers() is not None
    if numeric and len(_distinct(before.batch)) > 2:
        lines = [
            Comparison("mean", before.mean().number(), after.mean().number()),
            Comparison("standard deviation", before.std().number(), after.std().number()),
        ]
        ranges = [belief.interval(0.9) for belief in (before, after)]
        texts = [f"{float(low):.4g} to {float(high):.4g}" for low, high in ranges]
        lines.append(Comparison("90 % of belief lies in", *texts))
    return lines if before.kind is Kind.CONTINUOUS else lines + _value_comparisons(before, after)


def _value_comparisons(before: Belief, after: Belief) -> list[Comparison]:
    """Compare the probabilities of the likeliest values."""
    if max(len(_distinct(before.batch)), len(_distinct(after.batch))) > 100:
        return []
    prior, posterior = before.distribution(), after.distribution()
    missing_before = before.probability(lambda value: False)
    missing_after = after.probability(lambda value: False)
    lines = []
    for value in list(dict.fromkeys([*posterior, *prior]))[:MOST_LISTED_VALUES]:
        old, new = prior.get(value, missing_before), posterior.get(value, missing_after)
        lines.append(Comparison(f"P({value!r})", old.number(), new.number()))
    return lines


def _distinct(batch: Batch) -> list[Any]:
    return batch.factorized()[1]
