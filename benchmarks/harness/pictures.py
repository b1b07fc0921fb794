"""Pictures of what was measured, from the JSON: ratios on a log axis, time against error, and growth."""

import math
from pathlib import Path
from typing import Any

from harness.tasks import TOOLS

MARKERS = dict(zip(TOOLS, "ooosD^vPX*ph|", strict=True))
COLOURS = dict(
    zip(
        TOOLS,
        ("#1f3b9b", "#6f8fe8", "#a9bdf2", "#b2182b", "#e8743b", "#8c2d82", "#2a9d5c", "#00798c", "#9a6a00", "#4d4d4d",
         "#d1a000", "#7a7a7a", "#000000"),
        strict=True,
    )
)  # fmt: skip
SMALLEST = 1e-16  # errors below this are drawn here: rounding


def draw(found: dict[str, Any], folder: Path) -> list[Path]:
    """Draw all pictures that there is something for."""
    from matplotlib import rcParams

    rcParams["svg.hashsalt"] = "privug"  # the same numbers give the same file
    paths = []
    for name, make in (("ratios", ratios), ("errors", errors), ("growth", growth)):
        figure = make(found)
        if figure is not None:
            path = folder / f"{name}.svg"
            figure.savefig(path, metadata={"Date": None})
            paths.append(path)
    return paths


def new_figure(width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def panels_of(titles: list[str], **options: Any) -> tuple[Any, list[Any]]:
    """Return a figure with a small panel for each title, four in a line."""
    columns = min(4, len(titles))
    lines = math.ceil(len(titles) / columns)
    figure = new_figure(3 * columns, 0.8 + 2.5 * lines)
    grid = list(figure.subplots(lines, columns, squeeze=False, **options).ravel())
    for axes, title in zip(grid, titles, strict=False):
        axes.set_title(title, fontsize=9)
        axes.tick_params(labelsize=7)
        axes.grid(color="#e5e5e5", linewidth=0.5)
    for axes in grid[len(titles) :]:
        axes.set_axis_off()
    return figure, grid[: len(titles)]


def tool_style(tool: str, right: bool = True) -> dict[str, Any]:
    return {
        "marker": MARKERS[tool],
        "color": COLOURS[tool],
        "markerfacecolor": COLOURS[tool] if right else "white",
        "linestyle": "none",
        "markersize": 6,
    }


def legend(figure: Any, tools: list[str], columns: int) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=TOOLS[tool].label, **tool_style(tool)) for tool in tools]
    figure.legend(handles=handles, loc="outside upper center", ncols=columns, frameon=False, fontsize=9)


def ratios(found: dict[str, Any]) -> Any:
    """How many times as long as Privug each tool takes, a line for each task."""
    rows = [(name, task) for name, task in found["tasks"].items() if task["ratios"]]
    if not rows:
        return None
    figure = new_figure(9, 1.5 + 0.27 * len(rows))
    axes = figure.subplots()
    for place, (_, task) in enumerate(rows):
        for tool, (middle, low, high) in task["ratios"].items():
            right = task["cells"][tool]["status"] == "ok"
            spread = [[max(0.0, middle - low)], [max(0.0, high - middle)]]
            axes.errorbar([middle], [place], xerr=spread, elinewidth=1, **tool_style(tool, right))
    axes.axvline(1, color=COLOURS["privug"], linewidth=1.5)
    axes.set(
        xscale="log", ylim=(len(rows) - 0.4, -0.6), xlabel="times Privug's time for the same precision (log scale)"
    )
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    axes.set_yticks(range(len(rows)), [name for name, _ in rows], fontsize=9)
    axes.grid(axis="both", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title("right of the line: slower than Privug; quartiles as whiskers; hollow: wrong", fontsize=10)
    legend(figure, [tool for tool in TOOLS if any(tool in task["ratios"] for _, task in rows)], 6)
    return figure


def errors(found: dict[str, Any]) -> Any:
    """Seconds against the error, a panel for each task that two tools answered."""
    panels = []
    for name, task in found["tasks"].items():
        cells = {tool: cell for tool, cell in task["cells"].items() if cell.get("error") is not None}
        if len(cells) >= 2:
            panels.append((name, cells))
    if not panels:
        return None
    figure, grid = panels_of([name for name, _ in panels], sharey=True)
    for axes, (_, cells) in zip(grid, panels, strict=True):
        for tool, cell in cells.items():
            low, high = cell["quartiles"]
            spread = [[max(0.0, cell["median"] - low)], [max(0.0, high - cell["median"])]]
            at = max(cell["error"], SMALLEST)
            axes.errorbar([cell["median"]], [at], xerr=spread, **tool_style(tool, cell["status"] == "ok"))
        seconds = [cell["median"] for cell in cells.values()]
        axes.set(xscale="log", yscale="log", ylim=(SMALLEST / 10, 10), xlim=(min(seconds) / 4, max(seconds) * 4))
        axes.xaxis.set_minor_formatter("")
    figure.supxlabel("seconds", fontsize=9)
    figure.supylabel("error against the oracle", fontsize=9)
    legend(figure, [tool for tool in TOOLS if any(tool in cells for _, cells in panels)], 6)
    return figure


def growth(found: dict[str, Any]) -> Any:
    """Seconds over size in doubly logarithmic scale, a panel for each family."""
    curves = found["growth"]
    if not curves:
        return None
    figure, grid = panels_of(list(curves))
    for axes, tools in zip(grid, curves.values(), strict=True):
        for tool, curve in tools.items():
            axes.loglog(curve["sizes"], curve["seconds"], **{**tool_style(tool), "linestyle": "-", "linewidth": 1})
            style = {"textcoords": "offset points", "fontsize": 7, "color": COLOURS[tool], "va": "center"}
            axes.annotate(f"{curve['slope']:.2f}", (curve["sizes"][-1], curve["seconds"][-1]), (5, 0), **style)
        axes.margins(x=0.2, y=0.15)
    figure.supxlabel("size", fontsize=9)
    figure.supylabel("seconds; at each curve its exponent", fontsize=9)
    legend(figure, [tool for tool in TOOLS if any(tool in tools for tools in curves.values())], 6)
    return figure
