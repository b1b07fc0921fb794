"""Pictures of numbers with names, as bars: leakage by measure and by input, risks, findings against their limits."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from privug.errors import ArgumentError
from privug.estimate import Estimate
from privug.report.plots.canvas import (
    BLACK,
    BLUE,
    ORANGE,
    canvas,
    digits,
    finished,
    label,
    legend,
    picture,
    plain,
    whole_numbers,
    wrapped,
)

MOST_ROWS = 15
MOST_RANGES = 40
INVISIBLE = 1e-4
WIDEST_NAME = 30


class Bar(NamedTuple):
    """A number with its name, and the limit that it must not exceed, or not fall below, if it has one."""

    name: str
    estimate: Estimate
    limit: float | None = None


@picture
def bars(rows: Sequence[tuple[Any, ...]], ax: Any = None, name: str = "") -> Any:
    """Draw a bar for each number, with its interval and its limit; numbers of different units in panels of their own.

    `rows` are names with estimates, and limits if there are some. `name` is what all of them are; without it their
    units are said.
    """
    if not rows:
        raise ArgumentError("plot: there is no number to draw")
    groups: dict[str, list[Bar]] = {}
    for row in (Bar(*one) for one in rows):
        groups.setdefault(_scale(row.estimate), []).append(row)
    heights = [1.0 + 0.3 * min(MOST_ROWS, len(group)) for group in groups.values()]
    panels = canvas(ax, len(groups), (5.6, 0.0), heights)
    for axes, (scale, group) in zip(panels, groups.items(), strict=True):
        _panel(axes, group, _titled(name, scale))
    return finished(panels, ax)


@picture
def ranges(rows: Sequence[tuple[str, float, float, bool]], ax: Any = None, name: str = "") -> Any:
    """Draw a line from the least to the largest value of each row, apart in colour and shape for those marked.

    A range without an end is an arrow; a point is a mark alone.
    """
    if not rows:
        raise ArgumentError("plot: there is no range to draw")
    shown = rows[:MOST_RANGES]
    (axes,) = canvas(ax, 1, (5.6, 1.0 + 0.25 * len(shown)))
    ends = [end for _, low, high, _ in shown for end in (low, high) if math.isfinite(end)]
    far = 1.15 * max([*ends, 1.0])
    for place, (_, low, high, marked) in enumerate(shown):
        look: dict[str, Any] = {"color": ORANGE if marked else BLUE, "marker": "D" if marked else "o", "markersize": 4}
        first = not any(row[3] == marked for row in shown[:place])
        said = ("gives way" if marked else "holds") if first else None
        axes.plot([low, min(high, far)], [place, place], linewidth=2, label=said, **look)
        if math.isinf(high):
            axes.plot([far], [place], marker=">", color=look["color"])
    axes.set_yticks(range(len(shown)), [wrapped(row[0], WIDEST_NAME) for row in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    left_out = len(rows) - len(shown)
    axes.set_xlabel(label(name) + (f"\n(the first {len(shown)} of {len(rows):,})" if left_out else ""))
    whole_numbers(axes.xaxis, ends)
    plain(axes, y=False)
    legend(axes)
    return finished([axes], ax)


def _scale(estimate: Estimate) -> str:
    return estimate.unit or ("probability" if 0 <= estimate.value <= 1 else "number")


def _titled(name: str, scale: str) -> str:
    if not name:
        return "bits" if scale == "bit" else scale
    return name if scale in ("probability", "number") else f"{name} [{scale}]"


def _panel(axes: Any, rows: Sequence[Bar], title: str) -> None:
    shown = rows[:MOST_ROWS]
    finite = [end for row in shown for end in (row.estimate.value, row.estimate.high, row.limit)
              if end is not None and math.isfinite(end)]  # fmt: skip
    lows = [row.estimate.value for row in shown if math.isfinite(row.estimate.value)]
    far = max([*finite, 0.0]) or 1.0
    near = min([*lows, 0.0])
    for place, row in enumerate(shown):
        _bar(axes, place, row, near, far)
    limits = [(place, row.limit) for place, row in enumerate(shown) if row.limit is not None]
    for number, (place, limit) in enumerate(limits):
        said = "limit" if number == 0 else None
        axes.plot([limit, limit], [place - 0.45, place + 0.45], color=BLACK, linewidth=2, label=said)
    left_out = len(rows) - len(shown)
    axes.set_yticks(range(len(shown)), [wrapped(row.name, WIDEST_NAME) for row in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlim(near * 1.25, far * 1.25)
    if near == 0 and 0.5 < far <= 1 and shown[0].estimate.unit == "":
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axes.set_xlabel(label(title) + (f"\n(the first {len(shown)} of {len(rows):,})" if left_out else ""))
    plain(axes, y=False)
    legend(axes)


def _bar(axes: Any, place: int, row: Bar, near: float, far: float) -> None:
    estimate = row.estimate
    if math.isnan(estimate.value):
        axes.text(0, place, " undefined", va="center", fontsize="small")
        return
    if math.isinf(estimate.value):
        end = 1.1 * far if estimate.value > 0 else 1.1 * near
        axes.barh(place, end, 0.6, facecolor="white", edgecolor=BLUE, hatch="////")
        axes.text(end, place, f" {digits(estimate.value)}", va="center", fontsize="small")
        return
    axes.barh(place, estimate.value, 0.6, color=BLUE)
    below, above = estimate.value - estimate.low, min(estimate.high, 1.2 * far) - estimate.value
    if max(below, above) > INVISIBLE * far:
        axes.errorbar(estimate.value, place, xerr=[[min(below, far)], [max(0.0, above)]], fmt="none", ecolor=BLACK,
                      elinewidth=1, capsize=2)  # fmt: skip
    end = max(estimate.value, estimate.value + above if math.isfinite(above) else 0.0, 0.0)
    if row.limit is not None and end <= row.limit < end + 0.15 * far:
        end = row.limit
    axes.text(end + 0.01 * far, place, digits(estimate.value, 3), va="center", fontsize="small")
