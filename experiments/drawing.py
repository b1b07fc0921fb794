"""Figures of experiments: what draws bars and curves into axes, in the style of Privug's own pictures.

Matplotlib is needed when something is drawn, not before.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

import privug as pv

Draw = Callable[[Any], None]


def canvas() -> Any:
    """Return Privug's own module about axes, colours and legends, which needs matplotlib."""
    return import_module("privug.report.plots.canvas")


def drawn(draw: Draw, alt: str) -> str:
    """Return a figure as SVG; `alt` says what it shows."""
    axes = canvas().canvas("figure.svg")[0]  # any path: the figure is to be written, not shown
    canvas().picture(draw)(axes)
    svg: str = canvas().inline_svg(axes, alt)
    return svg


def density(belief: pv.Belief, edges: np.ndarray) -> np.ndarray:
    """Return the mean density of a belief between edges that follow each other."""
    return np.array([float(share) for share in belief.histogram(list(edges)).probabilities]) / np.diff(edges)


def bars(
    values: Sequence[float],
    heights: Sequence[float],
    *,
    exact: Sequence[float] | None = None,
    x: str,
    y: str = "probability",
) -> Draw:
    """Return what draws bars; the exact heights, where they are given, are marked by points."""

    def draw(axes: Any) -> None:
        style = canvas()
        axes.bar(values, heights, width=0.8, color=style.SKY, label="Privug")
        if exact is not None:
            axes.plot(values, exact, "o", markersize=3, color=style.ORANGE, label="exact")
        axes.set(xlabel=x, ylabel=y, ylim=(0, None))
        style.whole_numbers(axes.xaxis, values)
        style.plain(axes)
        style.legend(axes)

    return draw


def curves(
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    x: str,
    y: str,
    bands: Mapping[str, tuple[Sequence[float], Sequence[float]]] | None = None,
    points: Mapping[str, tuple[Sequence[float], Sequence[float]]] | None = None,
    log: str = "",
) -> Draw:
    """Return what draws curves by name, with bands (low and high) around some of them, points, and scales of ratios."""

    def draw(axes: Any) -> None:
        style = canvas()
        for place, (name, (across, up)) in enumerate(lines.items()):
            colour, dashes = style.COLOURS[place % len(style.COLOURS)], style.DASHES[place % len(style.DASHES)]
            axes.plot(across, up, color=colour, linestyle=dashes, label=style.label(name))
            if bands and name in bands:
                axes.fill_between(across, *bands[name], color=colour, alpha=0.2, linewidth=0)
        for place, (name, (across, up)) in enumerate((points or {}).items(), len(lines)):
            colour, marker = style.COLOURS[place % len(style.COLOURS)], style.MARKERS[place % len(style.MARKERS)]
            axes.plot(across, up, marker, markersize=4, color=colour, label=style.label(name))
        axes.set(xlabel=x, ylabel=y)
        if "x" in log:
            axes.set_xscale("log")
        if "y" in log:
            axes.set_yscale("log")
        style.plain(axes)
        style.legend(axes)

    return draw
