"""What changed about a quantity, line by line: means, ranges, and the likeliest values."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from privug.arguments import represented
from privug.digits import full_text
from privug.inference.belief import Belief, CredibleInterval
from privug.model.batch import Batch, Column
from privug.model.node import Kind
from privug.report.summary import Comparison, Shown

MOST_LISTED_VALUES = 6
MOST_VALUES = 100  # of a number whose likeliest values are listed
MOST_CATEGORIES = 1000  # of anything else
MOST_PARTS = 6
MOST_TOGETHER = 12  # values of several parts that are listed together


def comparisons(before: Belief, after: Belief | None, names: Sequence[str] = ()) -> list[Comparison]:
    """Compare a belief before and after an observation, if there was one; a structured quantity part by part.

    `names` are those of its parts.
    """
    parts = list(zip_longest(_parts(before, names), () if after is None else _parts(after, names)))
    if len(parts) < 2 or (before.kind is Kind.DISCRETE and before.batch.distinct() <= MOST_TOGETHER):
        return _single_comparisons(before, after)
    lines = []
    for old, new in parts[:MOST_PARTS]:
        if old is not None and (new is not None or after is None):
            found = _single_comparisons(old[1], None if new is None else new[1])
            found = found[:3] if old[1].batch.numbers() is not None else found[:MOST_LISTED_VALUES]
            lines += [replace(line, label=f"{old[0]}: {line.label}") for line in found]
    return lines


def _parts(belief: Belief, names: Sequence[str]) -> list[tuple[str, Belief]]:
    """Return the values that a structured quantity is made of, each as a belief of its own."""
    batch, parts = belief.batch, []
    named = len(names) == len(batch.columns)
    for position, column in enumerate(batch.columns):
        name = names[position] if named else f"part {position}"
        if column.array.ndim == 1:
            values = column.array if _is_number(column) else column.decoded()
            parts.append((name, _alone(belief, Batch.of_values(values))))
        elif _is_number(column):
            flat = column.array.reshape(len(batch), -1)
            for element in range(flat.shape[1]):
                parts.append((f"{name}[{element}]", _alone(belief, Batch.of_values(flat[:, element]))))
    return parts


def _is_number(column: Column) -> bool:
    return column.levels is None and column.array.dtype.kind in "bif"


def _alone(belief: Belief, batch: Batch) -> Belief:
    return replace(belief, batch=batch, spread=None, curve=None)


def _single_comparisons(before: Belief, after: Belief | None) -> list[Comparison]:
    lines: list[Comparison] = []
    beliefs = [before] if after is None else [before, after]
    numeric = all(belief.batch.numbers() is not None for belief in beliefs)
    if numeric and before.batch.distinct() > 2:
        lines = [
            _line("mean", [belief.mean() for belief in beliefs]),
            _line("standard deviation", [belief.std() for belief in beliefs]),
            _line("90 % of belief lies in", [_range(belief) for belief in beliefs]),
        ]
    if before.kind is Kind.CONTINUOUS or any(belief.curve is not None for belief in beliefs):
        return lines
    return lines + _value_comparisons(beliefs, MOST_VALUES if numeric else MOST_CATEGORIES)


def _range(belief: Belief) -> CredibleInterval:
    """Return the range of nine tenths, whose ends are shown as finely as the spread of the belief warrants."""
    low, high = (replace(end, resolution=belief.resolution) for end in belief.interval(0.9))
    return CredibleInterval(low, high, 0.9)


def _line(label: str, values: Sequence[Shown]) -> Comparison:
    return Comparison(label, values[0], values[1] if len(values) > 1 else None)


def _value_comparisons(beliefs: Sequence[Belief], most: int) -> list[Comparison]:
    """Compare the probabilities of the likeliest values, and of all others together."""
    if max(belief.batch.distinct() for belief in beliefs) > most:
        return []
    known = [belief.distribution() for belief in beliefs]
    never = [belief.probability(lambda value: False) for belief in beliefs]
    values = list(dict.fromkeys(value for distribution in reversed(known) for value in distribution))
    shown, others = values[:MOST_LISTED_VALUES], set(values[MOST_LISTED_VALUES:])
    lines = []
    for value in shown:
        shares = [distribution.get(value, none) for distribution, none in zip(known, never, strict=True)]
        lines.append(_line(f"P({_value_text(value)})", shares))
    if others:
        rest = [belief.probability_of(others) for belief in beliefs]
        lines.append(_line(f"P(one of {len(others)} other values)" if len(others) > 1 else "P(another value)", rest))
    return lines


def _value_text(value: Any) -> str:
    """Return a value as it is written in Python, but for floats, of which nobody needs the last digits."""
    return full_text(float(f"{value:.10g}")) if isinstance(value, float) else represented(value)
