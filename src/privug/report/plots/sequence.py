"""Pictures of a belief that changes with each release."""

from collections.abc import Sequence
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from privug.inference.belief import Belief
from privug.model.node import Kind
from privug.report.plots.canvas import (
    BLUE,
    COLOURS,
    DASHES,
    GREY,
    MARKERS,
    canvas,
    finished,
    label,
    legend,
    picture,
    plain,
    tick,
)

MOST_VALUES = 6
MOST_NAMED = 12
RANGES = ((0.95, 1.2, "95 %"), (0.5, 5.0, "50 %"))
LONGEST_STEP = 26


class Step(NamedTuple):
    """A release and the belief after it; one that was refused leaves the belief as it was."""

    name: str
    belief: Belief
    refused: bool = False


@picture
def sequence(steps: Sequence[tuple[Any, ...]], ax: Any = None, name: str = "secret") -> Any:
    """Draw a belief before all releases and after each: the median and ranges of a number, else probabilities."""
    taken = [Step(*step) for step in steps]
    (axes,) = canvas(ax, size=(max(5.0, 1.8 + 0.6 * min(len(taken), MOST_NAMED)), 4.0))
    values = _values(taken)
    if values is None:
        _ranges(axes, taken)
        axes.set_ylabel(label(name))
    else:
        _shares(axes, taken, values)
        axes.set_ylabel(label(f"probability of {name}"))
        axes.set_ylim(0.0, 1.02)
    for place, step in enumerate(taken):
        if step.refused:
            axes.axvspan(place - 0.5, place + 0.5, facecolor="none", edgecolor=GREY, hatch="//", alpha=0.4, linewidth=0)
    plain(axes, x=False)
    names = [label(step.name, LONGEST_STEP) + ("\n(refused)" if step.refused else "") for step in taken]
    if len(taken) > MOST_NAMED:
        axes.set_xlabel("number of the release")
    else:
        axes.set_xticks(range(len(taken)), names, rotation=35, ha="right", rotation_mode="anchor")
    axes.set_xlim(-0.5, len(taken) - 0.5)
    legend(axes)
    return finished([axes], ax)


def _values(steps: Sequence[Step]) -> list[Any] | None:
    """Return the values whose probabilities are drawn; None if the belief is about a number of many values."""
    first = steps[0].belief
    if first.batch.numbers() is not None and (first.kind is not Kind.DISCRETE or first.batch.distinct() > MOST_VALUES):
        return None
    best: dict[Any, float] = {}
    for step in steps:
        for value, share in step.belief.distribution(most=MOST_VALUES).items():
            best[value] = max(best.get(value, 0.0), share.value)
    return sorted(best, key=lambda value: -best[value])[:MOST_VALUES]


def _ranges(axes: Any, steps: Sequence[Step]) -> None:
    xs = np.arange(len(steps))
    axes.plot(xs, [step.belief.median().value for step in steps], "o-", color=BLUE, markersize=5, label="median")
    for probability, width, said in RANGES:
        ends = [step.belief.interval(probability) for step in steps]
        lows, highs = [float(end.low) for end in ends], [float(end.high) for end in ends]
        axes.vlines(xs, lows, highs, color=BLUE, linewidth=width, alpha=0.5, label=f"{said} of belief")


def _shares(axes: Any, steps: Sequence[Step], values: Sequence[Any]) -> None:
    looks = zip(cycle(COLOURS), cycle(DASHES), cycle(MARKERS), strict=False)
    for value, (colour, dashes, marker) in zip(values, looks, strict=False):
        shares = [step.belief.probability_of([value]).value for step in steps]
        axes.plot(range(len(steps)), shares, color=colour, linestyle=dashes, marker=marker, label=tick(value))
