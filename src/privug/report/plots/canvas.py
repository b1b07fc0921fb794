"""What every picture is drawn on, and where it goes: axes, a file, or a page. The one file that needs matplotlib."""

import io
import math
import re
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from html import escape
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from privug.arguments import shown
from privug.errors import ArgumentError
from privug.escaping import inert

# Okabe and Ito's colours, which the colour-blind tell apart; the order leaves neighbours apart in greyscale too.
BLUE, ORANGE, GREEN, PINK, SKY, BLACK, GREY = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#000000", "#767676",
)  # fmt: skip
# Ink, paper and the first colour follow those of the page that a picture stands in, if it has such.
PAGE_COLOURS = {BLACK: "currentColor", "#ffffff": "var(--paper, #ffffff)", BLUE: f"var(--blue, {BLUE})"}
COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, BLACK)
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P")
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++")
DOTS_PER_INCH = 150
PANEL = (5.0, 3.6)
MOST_ACROSS = 2
"""How many panels stand beside each other, before the next row of them begins."""
LONGEST_LABEL = 60
WIDEST_ENTRY = 36
"""Of a legend in two columns."""
LONGEST_TICK = 24
_SEED = "privug"
_STYLE = {
    "text.usetex": False,
    "text.parse_math": True,
    "font.family": "sans-serif",
    "font.size": 10.0,
    "axes.titlesize": "medium",
    "axes.facecolor": "white",
    "figure.facecolor": "white",
    "hatch.linewidth": 0.6,
    "svg.fonttype": "none",
    "svg.hashsalt": _SEED,
    "path.simplify": True,
}
Arguments = ParamSpec("Arguments")
Drawn = TypeVar("Drawn")


def picture(draw: Callable[Arguments, Drawn]) -> Callable[Arguments, Drawn]:
    """Make a function draw in the house's style, whatever the user's settings of matplotlib are."""

    @wraps(draw)
    def drawn(*arguments: Arguments.args, **named: Arguments.kwargs) -> Drawn:
        with _styled():
            return draw(*arguments, **named)

    return drawn


@contextmanager
def _styled() -> Iterator[None]:
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # Labels come from data: characters that the font lacks are shown as boxes.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support", category=UserWarning)
        yield


def label(text: str, longest: int = LONGEST_LABEL) -> str:
    """Return a text as a picture is to show it: as it stands, cut to a readable length, and never a formula.

    >>> print(label("in $ or in $"), label("a" * 100, 5))
    in \\$ or in \\$ aaaa…
    """
    text = inert(text)
    text = text if len(text) <= longest else f"{text[: longest - 1]}…"
    # What begins with an underscore is left out of legends.
    return (f" {text}" if text.startswith("_") else text).replace("$", r"\$")


def wrapped(text: str, width: int) -> str:
    """Return a text as a picture is to show it on at most two lines."""
    lines = textwrap.wrap(inert(text), width) or [""]
    rest = [" ".join(lines[1:])] if len(lines) > 1 else []
    return "\n".join(label(line, width) for line in [lines[0], *rest])


def tick(value: Any) -> str:
    """Return a value as a tick says it: numbers in plain digits, texts without quotes, other values cut short."""
    if isinstance(value, float):
        return digits(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if abs(value) < 10**15 else shown(value)
    if isinstance(value, tuple):
        return label(", ".join(map(tick, value)).replace(r"\$", "$"), LONGEST_TICK)
    return label(value if isinstance(value, str) else str(value), LONGEST_TICK)


def digits(value: float, significant: int = 8) -> str:
    """Return a number in plain digits with separators of thousands; only what is tiny or huge has an exponent.

    >>> digits(96840.0), digits(0.1 + 0.2), digits(1e-9), digits(-2.5)
    ('96,840', '0.3', '1e-09', '-2.5')
    """
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞" if value < 0 else "undefined"
    short = float(f"{value:.{significant}g}")
    if short and not 1e-6 <= abs(short) < 1e15:
        return f"{short:g}"
    whole, _, rest = np.format_float_positional(short, trim="-").partition(".")
    return f"{int(whole):,}".replace("0", "-0", int(whole == "-0")) + (f".{rest}" if rest else "")


def is_given(ax: Any) -> bool:
    """Return whether a picture is drawn into the caller's own axes, not into a figure made for it."""
    return not (ax is None or isinstance(ax, str | Path))


def canvas(
    ax: Any, panels: int = 1, size: tuple[float, float] = PANEL, heights: Sequence[float] | None = None
) -> list[Any]:
    """Return the axes to draw into: the ones given, or those of a new figure, at most two beside each other.

    With `heights`, in inches, the panels stand below each other.
    """
    if not is_given(ax) and heights is not None:
        figure = _figure((size[0], sum(heights)), shown_at_once=ax is None)
        return list(np.atleast_1d(figure.subplots(panels, 1, height_ratios=heights)))
    if not is_given(ax):
        across = min(panels, MOST_ACROSS)
        down = math.ceil(panels / across)
        figure = _figure((size[0] * across, size[1] * down), shown_at_once=ax is None)
        return [figure.add_subplot(down, across, place + 1) for place in range(panels)]
    axes = list(ax.flat) if isinstance(ax, np.ndarray) else [ax] if isinstance(ax, Axes) else ax
    if not isinstance(axes, Iterable) or not all(isinstance(one, Axes) for one in axes):
        raise ArgumentError(f"plot: ax must be matplotlib axes or the path of a picture to write, not {shown(ax)}")
    if len(list(axes)) != panels:
        raise ArgumentError(f"plot: {panels} axes are needed, one for each panel, not {len(list(axes))}")
    return list(axes)


def _figure(size: tuple[float, float], *, shown_at_once: bool) -> Any:
    """Make a figure: one of pyplot's where a notebook or a prompt shows those by itself."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if shown_at_once and pyplot is not None and matplotlib.is_interactive():
        return pyplot.figure(figsize=size, layout="constrained")
    return Figure(figsize=size, layout="constrained")


def finished(axes: list[Any], ax: Any) -> Any:
    """Write the picture if a path was given; return the axes, or the only ones."""
    if isinstance(ax, str | Path):
        metadata = {"Date": None} if Path(ax).suffix.lower() in (".svg", ".svgz") else None
        try:
            axes[0].figure.savefig(ax, dpi=DOTS_PER_INCH, metadata=metadata)
        except (OSError, ValueError) as error:
            raise ArgumentError(f"plot: {ax} cannot be written: {error}") from None
    shown: Any = axes[0] if len(axes) == 1 else Panels(axes)
    if ax is None and not hasattr(axes[0].figure, "number"):  # which pyplot does not show by itself
        shown._repr_png_ = partial(_png, axes[0].figure)
    return shown


class Panels(list[Any]):
    """The axes of a picture of several panels, which a notebook shows as one."""


def _png(figure: Any) -> bytes:
    """Return a figure as a notebook shows it."""
    buffer = io.BytesIO()
    with _styled():
        figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH)
    return buffer.getvalue()


def plain(axes: Any, *, x: bool = True, y: bool = True) -> None:
    """Take away what says nothing, and write the numbers on the axes in plain digits."""
    axes.spines[["top", "right"]].set_visible(False)
    for axis, wanted in ((axes.xaxis, x), (axes.yaxis, y)):
        if wanted:
            axis.set_major_formatter(lambda value, _: digits(value))


def whole_numbers(axis: Any, values: Any) -> None:
    """Put ticks at integers only, if there are no others."""
    if np.all(np.asarray(values, float) % 1 == 0):
        axis.get_major_locator().set_params(integer=True)


def spaced_by_ratios(axes: Any, points: Sequence[float], wide: float = 20.0) -> None:
    """Make the scale below logarithmic if the points span a wide range."""
    if points and min(points) > 0 and max(points) / min(points) >= wide:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: digits(value))
        axes.xaxis.set_minor_formatter(lambda value, _: "")


def legend(axes: Any) -> None:
    """Say above the axes, where it hides nothing, what is what."""
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    across = 1 if max(map(len, labels)) > WIDEST_ENTRY else min(2, len(labels))
    place: dict[str, Any] = {
        "loc": "lower left",
        "bbox_to_anchor": (0.0, 1.0),
        "borderaxespad": 0.2,
        "handlelength": 3.0,
    }
    axes.legend(handles, labels, frameon=False, fontsize="small", ncols=across, **place)


def inline_svg(axes: Any, alt: str) -> str:
    """Return the figure of some axes as SVG to stand inside a page: the same bytes each time, nothing from elsewhere.

    `alt` is what the picture says, for those who cannot see it. Texts stay texts, in the page's font without serifs.
    """
    figure: Any = (axes if isinstance(axes, Axes) else axes[0]).figure
    alt = inert(alt)
    buffer = io.StringIO()
    salted = {"svg.hashsalt": f"{_SEED} {alt}"}  # so that the ids of several pictures of a page differ
    metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with _styled(), matplotlib.rc_context(salted):
        figure.savefig(buffer, format="svg", dpi=DOTS_PER_INCH, metadata=metadata)
    text = buffer.getvalue()
    body = text[text.index("<svg") :]
    body = re.sub(r"\s*<metadata>.*?</metadata>", "", body, count=1, flags=re.DOTALL)
    body = re.sub(r"\s*<style type=.*?</style>", "", body, count=1, flags=re.DOTALL)  # it would hold for the whole page
    used = set(re.findall(r"(?:url\(|href=\")#([^)\"]+)", body))
    body = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in used else "", body)
    body = re.sub(r"font: ([^;\"]*?)'?DejaVu Sans'?[^;\"]*", r"font: \1system-ui, 'DejaVu Sans', sans-serif", body)
    for drawn, on_page in PAGE_COLOURS.items():
        body = body.replace(f": {drawn}", f": {on_page}")
    width, height = (f"{inches * 72:g}" for inches in figure.get_size_inches())
    head = f'<svg role="img" aria-label="{escape(alt)}" viewBox="0 0 {width} {height}" width="{width}" '
    head += 'style="max-width:100%;height:auto;fill:currentColor;stroke-linejoin:round;stroke-linecap:butt" '
    head += 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    return f"{head}<title>{escape(alt)}</title>{body[body.index('>') + 1 :]}".strip()
