"""Pictures of beliefs: before and after an observation, of one attacker or of several."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

import numpy as np

from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.model.batch import Batch
from privug.model.node import Kind
from privug.report.plots.canvas import (
    BLUE,
    COLOURS,
    GREY,
    HATCHES,
    MARKERS,
    canvas,
    digits,
    finished,
    label,
    legend,
    picture,
    plain,
    tick,
    whole_numbers,
)
from privug.report.shapes import MOST_ATOMS, Shape, is_truth, shape_of, shown_range

INTERVAL = 0.95
MOST_LISTED = 12
"""How many categories are drawn; the others are one bar."""
MOST_PARTS = 6
FEW_TICKS = 12
MOST_BARS = 40
"""How many values of a number have bars; more are drawn as steps."""
Change = tuple[str, Belief, Belief | None]


@dataclass(frozen=True, eq=False)
class DrawnBelief:
    """One belief in a picture: what it is called and how it looks, so that it is told apart without colours too."""

    label: str
    belief: Belief
    colour: str
    marker: str = ""
    hatch: str = ""
    shaded: bool = True

    @property
    def line(self) -> dict[str, Any]:
        """How a line looks: broken for what was believed before."""
        dashes: Any = "-" if self.shaded else (0, (4, 2))
        return {"color": self.colour, "linestyle": dashes, "marker": self.marker, "markersize": 4, "markevery": 0.15}

    @property
    def bar(self) -> dict[str, Any]:
        """How a bar looks: filled, or hatched on white for what was believed before."""
        if self.shaded:
            return {"facecolor": self.colour, "edgecolor": "white", "hatch": self.hatch, "linewidth": 0.6}
        return {"facecolor": "white", "edgecolor": self.colour, "hatch": self.hatch, "linewidth": 0.8}


@picture
def beliefs(shown: Sequence[Change], ax: Any = None, name: str = "secret") -> Any:
    """Draw what attackers believe before and after an observation, with the middle 95 % shaded.

    `shown` has each attacker's name, which is not told if there is one attacker, with the two beliefs; the second may
    be None.
    """
    alone = len(shown) == 1
    series = []
    looks = zip(cycle(COLOURS), cycle(MARKERS), cycle(HATCHES), strict=False)
    for (who, before, after), (colour, marker, hatch) in zip(shown, looks, strict=False):
        said, mark = ("", "") if alone else (f"{who}, ", marker)
        series.append(DrawnBelief(f"{said}before", before, GREY if alone else colour, mark, "////", after is None))
        if after is not None:
            series.append(DrawnBelief(f"{said}after", after, colour, mark, hatch))
    return _drawn(series, ax, name)


@picture
def belief(one: Belief, ax: Any = None, name: str = "value") -> Any:
    """Draw one belief, with the middle 95 % shaded."""
    return _drawn([DrawnBelief("", one, BLUE)], ax, name)


def _drawn(series: Sequence[DrawnBelief], ax: Any, name: str) -> Any:
    if all(_is_number(one.belief) for one in series):
        (axes,) = canvas(ax)
        _numbers(axes, series, name)
        return finished([axes], ax)
    if all(one.belief.kind is Kind.DISCRETE for one in series):
        rows = _listed(series)
        (axes,) = canvas(ax, size=(5.6, 1.3 + (0.14 + 0.13 * len(series)) * len(rows)))
        _categories(axes, series, rows, name)
        return finished([axes], ax)
    parts = [_parts(one, name) for one in series]
    shared = [key for key in parts[0] if all(key in other for other in parts)][:MOST_PARTS]
    panels = canvas(ax, len(shared))
    for axes, key in zip(panels, shared, strict=True):
        _numbers(axes, [part[key] for part in parts], key)
    return finished(panels, ax)


def _is_number(one: Belief) -> bool:
    return one.batch.numbers() is not None


def _parts(series: DrawnBelief, name: str) -> dict[str, DrawnBelief]:
    """Return the numbers that a structured quantity is made of, each as a belief of its own."""
    batch, found = series.belief.batch, {}
    names = name.split(", ") if len(name.split(", ")) == len(batch.columns) else []
    for place, column in enumerate(batch.columns):
        if column.levels is not None or column.array.dtype.kind not in "bif":
            continue
        flat = column.array.reshape(len(batch), -1)
        for element in range(flat.shape[1]):
            title = names[place] if names else f"{name}, part {place + 1}"
            title += f"[{element}]" if column.array.ndim > 1 else ""
            part = replace(series.belief, batch=Batch.of_values(flat[:, element]), spread=None)
            found[title] = replace(series, belief=part)
    return found


def _numbers(axes: Any, series: Sequence[DrawnBelief], name: str) -> None:
    """Draw beliefs about a number: lines for densities, bars for values that have probability."""
    low, high = shown_range([one.belief for one in series])
    ends = [one.belief.interval(INTERVAL) for one in series]
    shapes = [
        shape_of(one.belief, low, high, (float(at.low), float(at.high))) for one, at in zip(series, ends, strict=True)
    ]
    dense = any(shape.has_density for shape in shapes)
    held = any(len(shape.atoms) for shape in shapes)
    beside = axes.twinx() if dense and held else axes
    for one, shape, at in zip(series, shapes, ends, strict=True):
        if shape.has_density:
            _density(axes, one, shape, float(at.low), float(at.high), dense and held)
    if held:
        _bars(beside, series, shapes, named=not dense)
        beside.set_ylabel("probability of single values" if dense else "probability")
        beside.set_ylim(bottom=0)
    if dense:
        axes.set_ylabel("probability density")
    if dense:
        axes.set_xlim(low, high)
    elif max(len(shape.atoms) for shape in shapes) > FEW_TICKS:
        values = np.unique(np.concatenate([shape.atoms for shape in shapes]))
        near = values[(values >= low) & (values <= high)]
        axes.set_xlim(near[0] - 0.6 * np.diff(values).min(), near[-1] + 0.6 * np.diff(values).min())
    axes.set_ylim(bottom=0)
    axes.set_xlabel(label(name))
    plain(axes)
    if beside is not axes:
        plain(beside, x=False)
        beside.spines["right"].set_visible(True)
    _ticks(axes, shapes, dense, truth=all(is_truth(one.belief) for one in series))
    _told_apart(axes, series)


def _told_apart(axes: Any, series: Sequence[DrawnBelief]) -> None:
    if len(series) > 1:
        legend(axes)


def _density(axes: Any, one: DrawnBelief, shape: Shape, low: float, high: float, mixed: bool) -> None:
    axes.plot(shape.xs, shape.heights, label=label(one.label if mixed else _said(one)), **one.line)
    inside = (shape.xs >= low) & (shape.xs <= high)
    if one.shaded and inside.any():
        axes.fill_between(shape.xs[inside], shape.heights[inside], color=one.colour, alpha=0.2, linewidth=0)


def _said(one: DrawnBelief) -> str:
    return f"{one.label} (shaded: {INTERVAL:.0%})" if one.shaded and one.label else one.label


def _bars(axes: Any, series: Sequence[DrawnBelief], shapes: Sequence[Shape], *, named: bool) -> None:
    """Draw bars at the values of a number, those of several beliefs beside each other; of many values, steps."""
    values = np.unique(np.concatenate([shape.atoms for shape in shapes]))
    low, high = axes.get_xlim() if not named else (values.min(), values.max())
    gap = float(np.diff(values).min()) if len(values) > 1 else 1.0
    gap = max(gap, (high - low) / (4 * MOST_ATOMS)) if named else (high - low) / 25
    width = 0.8 * gap / len(series)
    for place, (one, shape) in enumerate(zip(series, shapes, strict=True)):
        if named and len(values) > MOST_BARS:
            _steps(axes, one, shape, gap)
        elif len(shape.atoms):
            at = shape.atoms + (place - (len(series) - 1) / 2) * width
            axes.bar(at, shape.masses, width, label=label(one.label) if named else None, **one.bar)
            off = _off(one.belief, shape)
            if off is not None:
                axes.errorbar(at, shape.masses, off, fmt="none", ecolor="black", elinewidth=0.8, capsize=2)


def _steps(axes: Any, one: DrawnBelief, shape: Shape, gap: float) -> None:
    xs = np.repeat(shape.atoms, 4) + np.tile([-0.5, -0.5, 0.5, 0.5], len(shape.atoms)) * gap
    heights = np.repeat(shape.masses, 4) * np.tile([0, 1, 1, 0], len(shape.atoms))
    # Between neighbours the line stays up.
    joined = np.append(np.isclose(np.diff(shape.atoms), gap), False)
    keep = np.ones(len(xs), bool)
    keep[3::4] = ~joined
    keep[4::4] = ~joined[:-1]
    axes.plot(xs[keep], heights[keep], label=label(_said(one)), **one.line)
    low, high = one.belief.interval(INTERVAL)
    inside = keep & (xs >= float(low) - gap / 2) & (xs <= float(high) + gap / 2)
    if one.shaded:
        axes.fill_between(xs[inside], heights[inside], color=one.colour, alpha=0.2, linewidth=0)


def _off(belief: Belief, shape: Shape) -> Any:
    """Return how far the probabilities of values may be off, if that can be seen and told."""
    if belief.exact or belief.kind is not Kind.DISCRETE or len(shape.atoms) > MOST_BARS:
        return None
    found = [belief.probability_of([value]) for value in shape.atoms]
    return np.array([[max(0.0, e.value - e.low) for e in found], [max(0.0, e.high - e.value) for e in found]])


def _ticks(axes: Any, shapes: Sequence[Shape], dense: bool, *, truth: bool) -> None:
    values = np.unique(np.concatenate([shape.atoms for shape in shapes]))
    if not dense and len(values) <= FEW_TICKS:
        axes.set_xticks(values, [str(bool(value)) if truth else digits(value) for value in values])
    elif not dense:
        whole_numbers(axes.xaxis, values)


def _listed(series: Sequence[DrawnBelief]) -> list[Any]:
    """Return the values to be drawn, the likeliest first; those after the observation count."""
    best: dict[Any, float] = {}
    for one in series:
        for value, share in one.belief.distribution(most=MOST_LISTED + 1).items():
            best[value] = max(best.get(value, 0.0), share.value)
    ranked = sorted(best, key=lambda value: -best[value])
    known = max(one.belief.batch.distinct() for one in series)
    return ranked if len(ranked) <= MOST_LISTED and known <= MOST_LISTED else [*ranked[: MOST_LISTED - 1], _Others]


class _Others:
    """Stands for all values that have no bar of their own."""


def _categories(axes: Any, series: Sequence[DrawnBelief], rows: Sequence[Any], name: str) -> None:
    """Draw a bar for each category, the likeliest on top and the rest together at the bottom."""
    height = 0.8 / len(series)
    known = max(one.belief.batch.distinct() for one in series)
    for place, one in enumerate(series):
        listed = [one.belief.probability_of([value]) for value in rows if value is not _Others]
        if len(listed) < len(rows):
            listed.append(Estimate.exactly(max(0.0, 1.0 - sum(share.value for share in listed))))
        at = np.arange(len(rows)) + (place - (len(series) - 1) / 2) * height
        axes.barh(at, [share.value for share in listed], height, label=label(one.label) or None, **one.bar)
        off = np.array([[max(0.0, e.value - e.low) for e in listed], [max(0.0, e.high - e.value) for e in listed]])
        if off.max() > 1e-4:
            axes.errorbar([e.value for e in listed], at, xerr=off, fmt="none", ecolor="black", elinewidth=0.8)
    named = [tick(value) if value is not _Others else f"{known - len(rows) + 1:,} others" for value in rows]
    axes.set_yticks(range(len(rows)), named)
    axes.invert_yaxis()
    axes.set_xlabel("probability")
    axes.set_ylabel(label(name))
    axes.set_xlim(left=0)
    plain(axes, y=False)
    _told_apart(axes, series)
