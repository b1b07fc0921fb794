"""Pictures of two things at once: secret and output together, attackers against programs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.errors import PrivugError
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.joint import Joint
from privug.model.node import Array, Kind
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
from privug.report.plots.shapes import is_truth, shown_range

CELLS = 40
MOST_LISTED = 12
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


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a joint in cells: the cell of each pair, the edges of the cells, and names where they have some."""

    codes: Array
    edges: Array
    values: Sequence[Any]
    """What stands in the middle of each cell; the last may stand for all others."""
    numeric: bool
    spread: Array | None = None
    """Where pairs stand for ranges of values: how each range, which `codes` then tell, is spread over the cells."""

    def onto_cells(self, shares: Array) -> Array:
        """Return the shares of cells, given those that `codes` tell apart, along the first axis."""
        return shares if self.spread is None else self.spread.T @ shares

    @property
    def size(self) -> int:
        """How many places `codes` tell apart."""
        return len(self.edges) - 1 if self.spread is None else len(self.spread)


@picture
def joint(shown: Joint, ax: Any = None, observation: Observation | None = None) -> Any:
    """Draw how likely secret and output are together, output across and secret up; the observation is marked."""
    weights = shown.weights
    samples = len(shown.secret.batch)
    weights = np.full(samples, 1 / samples) if weights is None else weights
    across, up = _side(shown.output, weights), _side(shown.secret, weights)
    inside = (across.codes >= 0) & (up.codes >= 0)
    flat = np.bincount((up.codes * across.size + across.codes)[inside], weights[inside], up.size * across.size)
    shares = across.onto_cells(up.onto_cells(flat.reshape(up.size, across.size)).T).T
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


def _side(belief: Belief, weights: Array) -> Side:
    numbers = belief.batch.numbers()
    if numbers is None or is_truth(belief):
        return _categories(belief, weights)
    numbers = numbers.astype(float)
    values = np.unique(numbers[np.isfinite(numbers)])
    if belief.kind is Kind.DISCRETE and len(values) <= CELLS:
        gap = float(np.diff(values).min()) if len(values) > 1 else 1.0
        if np.allclose(np.diff(values) / gap, np.round(np.diff(values) / gap)) and np.ptp(values) / gap < CELLS:
            edges = np.arange(values[0] - gap / 2, values[-1] + gap, gap)
            return Side(_placed(numbers, edges), edges, (edges[:-1] + gap / 2).tolist(), True)
        edges = np.arange(len(values) + 1) - 0.5
        return Side(np.searchsorted(values, numbers), edges, values.tolist(), False)
    edges = np.linspace(*shown_range([belief]), CELLS + 1)
    if belief.exact and belief.kind is not Kind.DISCRETE:
        return _of_ranges(numbers, weights, edges, belief)
    return Side(_placed(numbers, edges), edges, ((edges[1:] + edges[:-1]) / 2).tolist(), True)


def _of_ranges(numbers: Array, weights: Array, edges: Array, belief: Belief) -> Side:
    """Spread values that stand for ranges of a density, each of as much probability as it has, over the cells."""
    values, codes = np.unique(numbers, return_inverse=True)
    held = np.bincount(codes.reshape(-1), weights, len(values))
    ends = np.concatenate([[0.0], np.cumsum(held)]) / held.sum()
    if belief.curve is not None:
        below = belief.curve.cdf(edges)
    else:  # each value stands for what is nearer to it than to others
        below = np.interp(edges, (values[1:] + values[:-1]) / 2, ends[1:-1], 0.0, 1.0)
    common = np.minimum(ends[1:, None], below[None, 1:]) - np.maximum(ends[:-1, None], below[None, :-1])
    spread = np.maximum(common, 0.0) / np.maximum(np.diff(ends), 1e-300)[:, None]
    return Side(codes.reshape(-1), edges, ((edges[1:] + edges[:-1]) / 2).tolist(), True, spread)


def _placed(numbers: Array, edges: Array) -> Array:
    codes = np.searchsorted(edges, numbers, side="right") - 1
    return np.where((codes < 0) | (codes >= len(edges) - 1), -1, codes)


def _categories(belief: Belief, weights: Array) -> Side:
    """Return a cell for each of the likeliest values, and one for all others."""
    codes, support = belief.batch.factorized()
    order = np.argsort(-np.bincount(codes, weights, len(support)), kind="stable")
    many = len(support) > MOST_LISTED
    listed = order[: MOST_LISTED - 1] if many else order
    places = np.full(len(support), len(listed))
    places[listed] = np.arange(len(listed))
    values = [support[place] for place in listed] + ([f"{len(support) - len(listed):,} others"] if many else [])
    return Side(places[codes], np.arange(len(values) + 1) - 0.5, values, False)


def _ticks(axis: Any, side: Side) -> None:
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


def _mark(axes: Any, side: Side, observation: Observation) -> None:
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
