"""What changed about a quantity, line by line: means, ranges, and the likeliest values."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from privug.inference.belief import Belief
from privug.model.batch import Batch
from privug.model.node import Kind
from privug.report.summary import Comparison

MOST_LISTED_VALUES = 6
MOST_VALUES = 100  # of a quantity whose likeliest values are listed


def comparisons(before: Belief, after: Belief | None) -> list[Comparison]:
    """Compare a belief before and after an observation, if there was one; a structured quantity part by part."""
    parts = list(zip_longest(_parts(before), () if after is None else _parts(after)))
    if len(parts) > 1 and any(part[0] is not None and part[0][1].kind is not Kind.DISCRETE for part in parts):
        lines = []
        for old, new in parts[:MOST_LISTED_VALUES]:
            if old is not None and (new is not None or after is None):
                found = comparisons(old[1], None if new is None else new[1])[:2]
                lines += [replace(line, label=f"{old[0]}: {line.label}") for line in found]
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


def _single_comparisons(before: Belief, after: Belief | None) -> list[Comparison]:
    lines: list[Comparison] = []
    beliefs = [before] if after is None else [before, after]
    if all(belief.batch.numbers() is not None for belief in beliefs) and before.batch.distinct() > 2:
        lines = [
            _line("mean", [belief.mean().number() for belief in beliefs]),
            _line("standard deviation", [belief.std().number() for belief in beliefs]),
        ]
        ranges = [belief.interval(0.9) for belief in beliefs]
        lines.append(_line("90 % of belief lies in", [f"{float(a):.4g} to {float(b):.4g}" for a, b in ranges]))
    return lines if before.kind is Kind.CONTINUOUS else lines + _value_comparisons(beliefs)


def _line(label: str, texts: Sequence[str]) -> Comparison:
    return Comparison(label, texts[0], texts[1] if len(texts) > 1 else None)


def _value_comparisons(beliefs: Sequence[Belief]) -> list[Comparison]:
    """Compare the probabilities of the likeliest values, and of all others together."""
    if max(belief.batch.distinct() for belief in beliefs) > MOST_VALUES:
        return []
    known = [belief.distribution() for belief in beliefs]
    never = [belief.probability(lambda value: False) for belief in beliefs]
    values = list(dict.fromkeys(value for distribution in reversed(known) for value in distribution))
    shown, others = values[:MOST_LISTED_VALUES], set(values[MOST_LISTED_VALUES:])
    lines = []
    for value in shown:
        shares = [distribution.get(value, none) for distribution, none in zip(known, never, strict=True)]
        lines.append(_line(f"P({value!r})", [share.number() for share in shares]))
    if others:
        rest = [belief.probability_of(others).number() for belief in beliefs]
        lines.append(_line(f"P(one of {len(others)} other values)" if len(others) > 1 else "P(another value)", rest))
    return lines
