"""Pictures of measures over a parameter, and of a belief that changes with each release."""

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from privug.errors import ArgumentError
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.model.node import Kind
from privug.report.plots.canvas import (
    BLACK,
    BLUE,
    COLOURS,
    DASHES,
    GREEN,
    GREY,
    MARKERS,
    canvas,
    digits,
    finished,
    is_given,
    label,
    legend,
    picture,
    plain,
    spaced_by_ratios,
    tick,
)

INVISIBLE = 1e-4
NEAR = 18.0  # pixels between points whose names would overlap
LONGEST_NOTE = 90
Cells = Sequence[Any]
"""Estimates, or in their place whatever says why there is none."""


def _finite(cell: Any) -> bool:
    return isinstance(cell, Estimate) and math.isfinite(cell.value)


def _is_drawn(lines: Mapping[str, Cells]) -> bool:
    return any(_finite(cell) for cells in lines.values() for cell in cells)


@picture
def sweep_lines(name: str, points: Sequence[float], measures: Mapping[str, Mapping[str, Cells]], ax: Any = None) -> Any:
    """Draw a panel for each measure: a line for each label over the points, with a band for the intervals.

    Cells without a finite number are left out of the line; measures that have none at all are left out and named, or
    said to be empty if the caller's own axes are drawn into.
    """
    drawn = {measure: lines for measure, lines in measures.items() if _is_drawn(lines)}
    if not drawn:
        raise ArgumentError(f"plot: none of {', '.join(measures)} has a finite value; print the table instead")
    left_out = [measure for measure in measures if measure not in drawn]
    if is_given(ax):
        drawn = dict(measures)
    panels = canvas(ax, len(drawn))
    for axes, (measure, lines) in zip(panels, drawn.items(), strict=True):
        for colour, dashes, marker, (one, cells) in zip(
            cycle(COLOURS), cycle(DASHES), cycle(MARKERS), lines.items(), strict=False
        ):
            _line(axes, points, cells, label(one), {"color": colour, "linestyle": dashes, "marker": marker})
        axes.set(xlabel=label(name), ylabel=label(_with_unit(measure, lines)))
        plain(axes)
        spaced_by_ratios(axes, points)
        _from_zero(axes)
        if len(lines) > 1:
            legend(axes)
    if left_out:
        note = label(f"not drawn, as never finite: {', '.join(left_out)}", LONGEST_NOTE)
        panels[-1].set_xlabel(f"{label(name)}\n{note}")
    return finished(panels, ax)


def _with_unit(measure: str, lines: Mapping[str, Cells]) -> str:
    units = {cell.unit for cells in lines.values() for cell in cells if isinstance(cell, Estimate) and cell.unit}
    return f"{measure} [{units.pop()}]" if units else measure


def _line(axes: Any, points: Sequence[float], cells: Cells, said: str, look: dict[str, Any]) -> None:
    usable = [(x, cell) for x, cell in zip(points, cells, strict=True) if _finite(cell)]
    xs, found = [x for x, _ in usable], [cell for _, cell in usable]
    axes.plot(xs, [cell.value for cell in found], label=said or None, markersize=4, **look)
    # What exact numbers may be off by is mostly far below what can be seen.
    if any(cell.high - cell.low > INVISIBLE * max(abs(cell.value), 1e-300) for cell in found):
        lows, highs = [cell.low for cell in found], [cell.high for cell in found]
        axes.fill_between(xs, lows, highs, color=look["color"], alpha=0.2, linewidth=0)


def _from_zero(axes: Any) -> None:
    """Begin at zero where that is near, so that a small change does not look like a large one."""
    low, high = axes.get_ylim()
    if 0 <= low < 0.5 * high or -0.1 * high < low < 0:
        axes.set_ylim(bottom=min(0.0, low))


@picture
def convergence(
    samples: Sequence[int],
    estimates: Sequence[Any],
    ax: Any = None,
    name: str = "estimate",
    over: str = "number of samples",
) -> Any:
    """Draw how an estimate, with its interval if it has one, settles as samples grow."""
    cells = [e if isinstance(e, Estimate) else Estimate(e, e, e) for e in estimates]
    return sweep_lines(over, list(samples), {name: {"": cells}}, ax)


@picture
def trade_off(
    name: str,
    points: Sequence[Any],
    across: tuple[str, Mapping[str, Cells]],
    up: tuple[str, Mapping[str, Cells]],
    ax: Any = None,
) -> Any:
    """Draw one measure against another, such as privacy against utility: a point for each value of a parameter."""
    (axes,) = canvas(ax)
    for colour, dashes, marker, (one, cells) in zip(
        cycle(COLOURS), cycle(DASHES), cycle(MARKERS), across[1].items(), strict=False
    ):
        pairs = [(p, x, y) for p, x, y in zip(points, cells, up[1][one], strict=True) if _finite(x) and _finite(y)]
        if not pairs:
            continue
        xs, ys = [x.value for _, x, _ in pairs], [y.value for _, _, y in pairs]
        look = {"color": colour, "linestyle": dashes, "marker": marker}
        axes.plot(xs, ys, markersize=4, label=label(one) or None, **look)
        off = {"xerr": _off([x for _, x, _ in pairs]), "yerr": _off([y for _, _, y in pairs])}
        axes.errorbar(xs, ys, fmt="none", ecolor=colour, elinewidth=0.8, **off)
        _name_points(axes, pairs)
    if not axes.lines:
        raise ArgumentError(f"plot: {across[0]} and {up[0]} are nowhere both finite; print the table instead")
    axes.set(xlabel=label(_with_unit(*across)), ylabel=label(_with_unit(*up)))
    plain(axes)
    axes.set_title(f"at the points: {label(name)}", loc="right", fontsize="small")
    if len(across[1]) > 1:
        legend(axes)
    return finished([axes], ax)


def _name_points(axes: Any, pairs: Sequence[tuple[Any, Estimate, Estimate]]) -> None:
    """Say the parameter at points, but not at two that are so near that the texts would overlap."""
    named: list[Any] = []
    axes.autoscale_view()
    for point, x, y in pairs:
        at = axes.transData.transform((x.value, y.value))
        if all(abs(at - other).max() > NEAR for other in named):
            named.append(at)
            said = digits(point, 4) if isinstance(point, int | float) else label(str(point), 12)
            axes.annotate(said, (x.value, y.value), (4, 4), textcoords="offset points", fontsize="small")


def _off(found: Sequence[Estimate]) -> Any:
    return [[max(0.0, e.value - e.low) for e in found], [max(0.0, e.high - e.value) for e in found]]


@picture
def calibration(
    name: str,
    tried: Sequence[tuple[float, Any]],
    limit: tuple[str, float | None],
    answer: tuple[float, tuple[float, float]],
    ax: Any = None,
) -> Any:
    """Draw a measure at all values that were tried, its limit across, and where the answer lies."""
    (axes,) = canvas(ax)
    measure, bound = limit
    found = sorted(((value, cell) for value, cell in tried), key=lambda one: one[0])
    values, cells = [value for value, _ in found], [cell for _, cell in found]
    _line(axes, values, cells, "measured", {"color": COLOURS[0], "marker": "o"})
    if bound is not None:
        axes.axhline(bound, color=BLACK, linestyle=DASHES[1], linewidth=1, label="limit")
    value, bracket = answer
    axes.axvline(value, color=GREEN, linestyle=DASHES[3], label=label(f"{name} = {digits(value, 4)}"))
    low, high = (min(max(end, values[0]), values[-1]) for end in bracket)
    axes.axvspan(low, high, color=GREEN, alpha=0.15, linewidth=0)
    axes.set(xlabel=label(name), ylabel=label(_with_unit(measure, {"": cells})))
    plain(axes)
    spaced_by_ratios(axes, values)
    _from_zero(axes)
    legend(axes)
    return finished([axes], ax)


MOST_VALUES = 6
MOST_NAMED = 12
RANGES = ((0.95, 1.2, "95 %"), (0.5, 5.0, "50 %"))
LONGEST_STEP = 26


class ReleaseStep(NamedTuple):
    """A release and the belief after it; one that was refused leaves the belief as it was."""

    name: str
    belief: Belief
    refused: bool = False


@picture
def sequence(steps: Sequence[tuple[Any, ...]], ax: Any = None, name: str = "secret") -> Any:
    """Draw a belief before all releases and after each: the median and ranges of a number, else probabilities."""
    taken = [ReleaseStep(*step) for step in steps]
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


def _values(steps: Sequence[ReleaseStep]) -> list[Any] | None:
    """Return the values whose probabilities are drawn; None if the belief is about a number of many values."""
    first = steps[0].belief
    if first.batch.numbers() is not None and (first.kind is not Kind.DISCRETE or first.batch.distinct() > MOST_VALUES):
        return None
    best: dict[Any, float] = {}
    for step in steps:
        for value, share in step.belief.distribution(most=MOST_VALUES).items():
            best[value] = max(best.get(value, 0.0), share.value)
    return sorted(best, key=lambda value: -best[value])[:MOST_VALUES]


def _ranges(axes: Any, steps: Sequence[ReleaseStep]) -> None:
    xs = np.arange(len(steps))
    axes.plot(xs, [step.belief.median().value for step in steps], "o-", color=BLUE, markersize=5, label="median")
    for probability, width, said in RANGES:
        ends = [step.belief.interval(probability) for step in steps]
        lows, highs = [float(end.low) for end in ends], [float(end.high) for end in ends]
        axes.vlines(xs, lows, highs, color=BLUE, linewidth=width, alpha=0.5, label=f"{said} of belief")


def _shares(axes: Any, steps: Sequence[ReleaseStep], values: Sequence[Any]) -> None:
    looks = zip(cycle(COLOURS), cycle(DASHES), cycle(MARKERS), strict=False)
    for value, (colour, dashes, marker) in zip(values, looks, strict=False):
        shares = [step.belief.probability_of([value]).value for step in steps]
        axes.plot(range(len(steps)), shares, color=colour, linestyle=dashes, marker=marker, label=tick(value))
