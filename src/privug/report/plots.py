"""Pictures, drawn with matplotlib; this module is imported when one is asked for."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from privug.arguments import shown
from privug.errors import ArgumentError
from privug.escaping import inert
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.model.node import Kind

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#999999"  # told apart by the colour-blind too
COLOURS = (BLUE, ORANGE, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
DOTS_PER_INCH = 150
CURVE_POINTS = 400
WIDE_RANGE = 20.0
INVISIBLE = 1e-4
MOST_BARS = 40


def _label(text: str) -> str:
    """Return a text as matplotlib is to show it: as it stands, not as formulas between dollars."""
    return inert(text).replace("$", r"\$")


def _canvas(where: Any, panels: int = 1, size: tuple[float, float] = (5.0, 3.6)) -> list[Any]:
    """Return the axes to draw into: the ones given, or those of a new figure."""
    if isinstance(where, str | Path) or where is None:
        figure = Figure(figsize=(size[0] * panels, size[1]), layout="constrained")
        return list(np.atleast_1d(np.array(figure.subplots(1, panels), object)))
    axes = list(where.flat) if isinstance(where, np.ndarray) else [where] if isinstance(where, Axes) else where
    if not isinstance(axes, Iterable) or not all(isinstance(one, Axes) for one in axes):
        raise ArgumentError(f"plot: where must be the path of a picture or matplotlib axes, not {shown(where)}")
    if len(list(axes)) != panels:
        raise ArgumentError(f"plot: {panels} axes are needed, one for each measure, not {len(list(axes))}")
    return list(axes)


def _finished(axes: list[Any], where: Any) -> Any:
    """Write the picture if a path was given; return the axes, or the only ones."""
    if isinstance(where, str | Path):
        try:
            axes[0].figure.savefig(where, dpi=DOTS_PER_INCH)
        except (OSError, ValueError) as error:
            raise ArgumentError(f"plot: {where} cannot be written: {error}") from None
    return axes[0] if len(axes) == 1 else axes


def sweep_lines(
    name: str,
    points: Sequence[float],
    measures: Mapping[str, Mapping[str, Sequence[Any]]],
    where: Any,
) -> Any:
    """Draw a panel for each measure: a line for each label over the points, with a band for the intervals.

    Cells without a number are left out of the line.
    """
    panels = _canvas(where, len(measures))
    for axes, (measure, lines) in zip(panels, measures.items(), strict=True):
        for colour, (label, cells) in zip(itertools.cycle(COLOURS), lines.items(), strict=False):
            _line(axes, points, cells, label, colour)
        units = {cell.unit for cells in lines.values() for cell in cells if isinstance(cell, Estimate) and cell.unit}
        axes.set(xlabel=_label(name), ylabel=_label(f"{measure} [{units.pop()}]" if units else measure))
        _spaced_by_ratios(axes, points)
        if len(lines) > 1:
            axes.legend(frameon=False, fontsize="small")
        _plain(axes)
    return _finished(panels, where)


def _line(axes: Any, points: Sequence[float], cells: Sequence[Any], label: str, colour: str) -> None:
    usable = [(x, c) for x, c in zip(points, cells, strict=True) if isinstance(c, Estimate) and math.isfinite(c.value)]
    xs, found = [x for x, _ in usable], [cell for _, cell in usable]
    axes.plot(xs, [cell.value for cell in found], "o-", color=colour, label=_label(label) or None, markersize=4)
    # What exact numbers may be off by is mostly far below what can be seen.
    if any(cell.high - cell.low > INVISIBLE * max(abs(cell.value), 1e-300) for cell in found):
        axes.fill_between(xs, [c.low for c in found], [c.high for c in found], color=colour, alpha=0.2, linewidth=0)


def _spaced_by_ratios(axes: Any, points: Sequence[float]) -> None:
    if min(points) > 0 and max(points) / min(points) >= WIDE_RANGE:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")


def _plain(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)


def heat_map(
    title: str, rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[Any]], where: Any
) -> Any:
    """Draw a number for each row and column, darker where it is larger; hatched where there is none."""
    size = 2.2 + 1.3 * len(columns), 1.3 + 0.5 * len(rows)
    (axes,) = _canvas(where, 1, size)
    numbers = np.array([[c.value if isinstance(c, Estimate) else np.nan for c in row] for row in cells], float)
    finite = numbers[np.isfinite(numbers)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    low = min(low, 0.0)
    shades = np.clip(np.where(np.isposinf(numbers), high, numbers), low, high)
    axes.imshow(shades, cmap="Blues", vmin=low, vmax=high * 1.25 if high > 0 else 1.0, aspect="auto")
    for (i, j), number in np.ndenumerate(numbers):
        dark = np.isfinite(shades[i, j]) and shades[i, j] > (low + high * 1.25) * 0.55
        axes.text(j, i, _told(cells[i][j]), ha="center", va="center", color="white" if dark else "black", fontsize=9)
        if np.isnan(number):
            axes.add_patch(
                Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor="#eeeeee", edgecolor=GREY, hatch="//", zorder=0)
            )
    axes.set_xticks(range(len(columns)), [*map(_label, columns)])
    axes.set_yticks(range(len(rows)), [*map(_label, rows)])
    units = {c.unit for row in cells for c in row if isinstance(c, Estimate) and c.unit}
    axes.set_title(_label(f"{title} [{units.pop()}]" if units else title), fontsize="medium")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return _finished([axes], where)


def _told(cell: Any) -> str:
    if not isinstance(cell, Estimate):
        return "none"
    if math.isinf(cell.value):
        return "∞"
    return f"{cell.value:.3g}" if cell.exact else cell.number().replace(", ", "\n").replace(" [", "\n[")


def beliefs(before: Belief, after: Belief | None, where: Any = None, label: str = "secret") -> Any:
    """Draw a belief before and after an observation: curves of densities, or bars of probabilities."""
    (axes,) = _canvas(where)
    drawn = [("before", before, GREY), *([("after", after, BLUE)] if after is not None else [])]
    listed = all(
        belief.kind is Kind.DISCRETE and (belief.batch.distinct() <= MOST_BARS or belief.batch.numbers() is None)
        for _, belief, _ in drawn
    )
    if listed:
        _bars(axes, drawn)
    else:
        low, high = _shown_range([belief for _, belief, _ in drawn])
        for name, belief, colour in drawn:
            _density(axes, belief, low, high, name, colour)
        axes.set_ylabel("density")
    axes.set_xlabel(_label(label))
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize="small")
    _plain(axes)
    return _finished([axes], where)


def _bars(axes: Any, drawn: Sequence[tuple[str, Belief, str]]) -> None:
    shares = [belief.distribution() for _, belief, _ in drawn]
    values = list(dict.fromkeys(value for share in shares for value in share))
    if all(isinstance(value, bool | int | float) for value in values):
        values.sort()
    known = len(values)
    if known > MOST_BARS:
        values.sort(key=lambda value: -max(float(share[value]) if value in share else 0.0 for share in shares))
        del values[MOST_BARS:]
    width = 0.8 / len(drawn)
    for place, ((name, _, colour), share) in enumerate(zip(drawn, shares, strict=True)):
        found = [share.get(value, Estimate.exactly(0.0)) for value in values]
        errors = np.array([[e.value - e.low for e in found], [e.high - e.value for e in found]])
        at = np.arange(len(values)) + (place - (len(drawn) - 1) / 2) * width
        bars = errors if errors.any() else None
        axes.bar(at, [e.value for e in found], width, color=colour, label=name, yerr=bars, ecolor="black", capsize=2)
    shown = [f"{value:g}" if isinstance(value, float) else _label(str(value)) for value in values]
    axes.set_xticks(range(len(values)), shown, rotation=45 if max(map(len, shown)) > 6 else 0)
    axes.set_ylabel(f"probability of the {MOST_BARS} likeliest of {known}" if known > MOST_BARS else "probability")


def _shown_range(drawn: Sequence[Belief]) -> tuple[float, float]:
    """Return the range that holds nearly all of each belief."""
    ends = [belief.interval(0.998) for belief in drawn]
    low, high = min(float(e.low) for e in ends), max(float(e.high) for e in ends)
    margin = (0.05 if all(belief.curve is not None for belief in drawn) else 0.0) * (high - low) or 1e-3
    return low - margin, high + margin


def _density(axes: Any, belief: Belief, low: float, high: float, name: str, colour: str) -> None:
    if belief.curve is not None and not len(belief.curve.atoms):
        breaks = [b for b in belief.curve.breaks if low < b < high]
        near = [b + s * 1e-9 * (high - low) for b in breaks for s in (-1, 1)]
        xs = np.sort(np.concatenate([np.linspace(low, high, CURVE_POINTS), near]))
        heights = belief.curve.pdf(xs)
        axes.plot(xs, heights, color=colour, label=name)
        axes.fill_between(xs, heights, color=colour, alpha=0.15, linewidth=0)
        return
    histogram = belief.histogram(np.linspace(low, high, MOST_BARS + 1).tolist())
    axes.stairs(histogram.densities, histogram.edges, color=colour, label=name, fill=False)
    axes.stairs(histogram.densities, histogram.edges, color=colour, alpha=0.15, fill=True)


def convergence(
    samples: Sequence[int], estimates: Sequence[Estimate | float], where: Any = None, label: str = "estimate"
) -> Any:
    """Draw how an estimate, with its interval if it has one, settles as samples grow."""
    cells = [e if isinstance(e, Estimate) else Estimate(e, e, e) for e in estimates]
    return sweep_lines("samples", list(samples), {label: {"": cells}}, where)
