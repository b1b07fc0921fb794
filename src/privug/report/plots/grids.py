"""Pictures of two things at once: secret and output together, attackers against programs."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from privug.errors import PrivugError
from privug.estimate import Estimate
from privug.inference.joint import Joint
from privug.observation.observations import Between, Equals, Near, Noisy, Observation
from privug.report.plots.canvas import (
    GREY,
    ORANGE,
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
from privug.report.shapes import CELLS, JointSide, cells_of

FEW_TICKS = 12
MOST_SHAPES = 200
"""From how many cells on they are an image inside the picture, not as many shapes."""
SEEN_SDS = 2.0
"""How many deviations of the noise around what was seen through it are marked."""


@picture
def heat_map(
    title: str, rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[Any]], ax: Any = None
) -> Any:
    """Draw a number for each row and column, darker where it is larger; hatched where there is none."""
    size = 2.2 + 1.3 * len(columns), 1.3 + 0.5 * len(rows)
    (axes,) = canvas(ax, 1, size)
    numbers = np.array([[c.value if isinstance(c, Estimate) else np.nan for c in row] for row in cells], float)
    finite = numbers[np.isfinite(numbers)]
    low, high = (min(0.0, float(finite.min())), float(finite.max())) if finite.size else (0.0, 1.0)
    top = low + 1.25 * ((high - low) or 1.0)  # the darkest blue is too dark for text
    shades = np.clip(np.where(np.isposinf(numbers), high, numbers), low, high)
    axes.imshow(shades, cmap="Blues", vmin=low, vmax=top, aspect="auto")
    for (i, j), number in np.ndenumerate(numbers):
        dark = np.isfinite(shades[i, j]) and shades[i, j] > low + 0.55 * (top - low)
        axes.text(j, i, _told(cells[i][j]), ha="center", va="center", color="white" if dark else "black", fontsize=9)
        if np.isnan(number):
            corners = [j - 0.5, j + 0.5, j + 0.5, j - 0.5], [i - 0.5, i - 0.5, i + 0.5, i + 0.5]
            axes.fill(*corners, facecolor="#eeeeee", edgecolor=GREY, hatch="//", zorder=0)
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xticks(range(len(columns)), [label(name, 20) for name in columns])
    axes.set_yticks(range(len(rows)), [label(name, 30) for name in rows])
    units = {c.unit for row in cells for c in row if isinstance(c, Estimate) and c.unit}
    axes.set_title(label(f"{title} [{units.pop()}]" if units else title), fontsize="medium")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return finished([axes], ax)


def _told(cell: Any) -> str:
    if not isinstance(cell, Estimate):
        return "none"
    if not math.isfinite(cell.value):
        return digits(cell.value)
    return digits(cell.value, 3) if cell.exact else cell.number().replace(", ", "\n").replace(" [", "\n[")


@picture
def joint(shown: Joint, ax: Any = None, observation: Observation | None = None) -> Any:
    """Draw how likely secret and output are together, output across and secret up; the observation is marked."""
    across, up, shares = cells_of(shown)
    (axes,) = canvas(ax, size=(5.8, 4.2))
    many = shares.size > MOST_SHAPES
    held = np.ma.masked_equal(shares, 0.0)
    mesh = axes.pcolormesh(across.edges, up.edges, held, cmap="Blues", vmin=0.0, rasterized=many)
    bar = axes.figure.colorbar(mesh, ax=axes, format=lambda value, _: digits(value, 3))
    bar.set_label("probability")
    bar.outline.set_visible(False)
    axes.set_xlabel(label(shown.output.quantity or "output"))
    axes.set_ylabel(label(shown.secret.quantity or "secret"))
    plain(axes)
    _ticks(axes.xaxis, across)
    _ticks(axes.yaxis, up)
    if observation is not None:
        _mark(axes, across, observation)
        legend(axes)
    return finished([axes], ax)


def _ticks(axis: Any, side: JointSide) -> None:
    if not side.numeric:
        axis.set_ticks(range(len(side.values)), [tick(value) for value in side.values])
        if axis.axis_name == "x" and max(len(tick(value)) for value in side.values) > 5:
            axis.set_tick_params(rotation=45)
            for text in axis.get_ticklabels():
                text.set(ha="right", rotation_mode="anchor")
    elif len(side.values) <= FEW_TICKS:
        axis.set_ticks(side.values, [digits(value) for value in side.values])
    else:
        whole_numbers(axis, side.values)


def _mark(axes: Any, side: JointSide, observation: Observation) -> None:
    """Mark what was seen of the output: a line, a range, or the cells that agree with it."""
    look: dict[str, Any] = {"edgecolor": ORANGE, "facecolor": "none", "hatch": "//", "linewidth": 1.5}
    span = _span(observation) if side.numeric else None
    low, high = axes.get_xlim()
    if span is not None:
        narrow = span[1] - span[0] < 0.004 * (high - low)
        if narrow and len(side.values) == CELLS:
            axes.axvline(sum(span) / 2, color=ORANGE, linestyle="--", label="seen")
            return
        if not narrow and max(low, span[0]) < min(high, span[1]):
            axes.axvspan(max(low, span[0]), min(high, span[1]), label="seen", **look)
            return
    found = [place for place, value in enumerate(side.values) if _agrees(observation, value)]
    for number, place in enumerate(found):
        axes.axvspan(side.edges[place], side.edges[place + 1], label="seen" if number == 0 else None, **look)
    axes.set_xlim(low, high)


def _span(observation: Observation) -> tuple[float, float] | None:
    match observation:
        case Equals(value=bool() | int() | float() as value):
            return float(value), float(value)
        case Between(low=low, high=high):
            return low, high
        case Near(value=value, within=within):
            return value - within, value + within
        case Noisy(value=value, sd=sd):
            return value - SEEN_SDS * sd, value + SEEN_SDS * sd
    return None


def _agrees(observation: Observation, value: Any) -> bool:
    try:
        return not observation.likelihood(value).impossible
    except (PrivugError, TypeError, ValueError, ArithmeticError):
        return False
