"""Boxes and arrows for the pictures of the docs that show how things hang together."""

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

BLUE, ORANGE, GREEN, GREY, PALE = "#0072b2", "#d55e00", "#009e73", "#767676", "#eaf2f8"


def box(axes: Axes, x: float, y: float, words: str, size: tuple[float, float], colour: str = BLUE) -> None:
    width, height = size
    shape = FancyBboxPatch(
        (x - width / 2, y - height / 2), width, height, boxstyle="round,pad=0.02,rounding_size=0.08",
        facecolor=PALE, edgecolor=colour, linewidth=1.6,
    )  # fmt: skip
    axes.add_patch(shape)
    axes.text(x, y, words, ha="center", va="center", fontsize=10.5, linespacing=1.35)


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], words: str = "") -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": GREY, "linewidth": 1.4})
    if words:
        x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
        beside = start[0] == end[0]
        offset, across, up = (0.1, "left", "center") if beside else (0.0, "center", "bottom")
        axes.text(x + offset, y if beside else y + 0.06, words, fontsize=9.5, color=GREY, ha=across, va=up)


def plain(axes: Axes, width: float, height: float) -> None:
    axes.set(xlim=(0, width), ylim=(0, height), aspect="equal")
    axes.axis("off")


def method(axes: Axes) -> None:
    """The five steps, from what is known to what was learned."""
    plain(axes, 13, 3.2)
    steps = [
        ("1. prior", "what the\nattacker knows"),
        ("2. program", "lifted, not\nchanged"),
        ("3. observation", "what the\nattacker sees"),
        ("4. posterior", "what the attacker\nbelieves then"),
        ("5. leakage", "how much\nthat is"),
    ]
    for place, (name, words) in enumerate(steps):
        x = 1.3 + 2.6 * place
        box(axes, x, 1.5, words, (2.05, 1.3), ORANGE if place == 2 else BLUE)
        axes.text(x, 2.5, name, ha="center", fontsize=11.5, weight="bold")
        if place:
            arrow(axes, (x - 1.5, 1.5), (x - 1.08, 1.5))


def lifting(axes: Axes) -> None:
    """The four tiers, from fast to slow."""
    plain(axes, 12, 3.6)
    tiers = [
        ("traced", "run once on random\nvariables: a formula"),
        ("native", "compiled, looped\nover samples"),
        ("python", "called once for\neach sample"),
        ("external", "another process,\nover a pipe"),
    ]
    for place, (name, words) in enumerate(tiers):
        x = 1.5 + 3 * place
        box(axes, x, 1.9, words, (2.45, 1.2), GREEN if place == 0 else BLUE)
        axes.text(x, 2.85, name, ha="center", fontsize=11.5, weight="bold")
        if place:
            arrow(axes, (x - 1.72, 1.9), (x - 1.28, 1.9))
    axes.text(1.5, 0.75, "exact answers,\narray speed", ha="center", va="center", fontsize=10, color=GREEN)
    axes.text(7.5, 0.75, "sampled answers, whatever the program does", ha="center", va="center", color=GREY)
    axes.text(6, 0.15, "each is compared with plain calls before it is used", ha="center", fontsize=10, style="italic")


def engines(axes: Axes) -> None:
    """How `auto` chooses."""
    plain(axes, 12, 6.2)
    questions = [
        (5.5, "exact in a few seconds?", "exact"),
        (4.0, "do enough draws from the\nprior agree with what was seen?", "sample"),
        (2.5, "twenty or more continuous inputs,\nand gradients lead there?", "numpyro, pymc"),
    ]
    for y, words, engine in questions:
        box(axes, 3.2, y, words, (4.9, 0.95))
        arrow(axes, (5.72, y), (7.9, y), "yes")
        box(axes, 9.4, y, engine, (2.7, 0.8), GREEN)
        arrow(axes, (3.2, y - 0.52), (3.2, y - 0.98), "no")
    box(axes, 3.2, 1.0, "search for it: rare", (4.9, 0.9), GREEN)
    axes.text(
        6.0, 0.25, "an answer that did not converge is refused, and the next engine asked", ha="center", fontsize=9.5
    )


def answers(axes: Axes) -> None:
    """The path from a question to a report: each box is a type, with its file."""
    plain(axes, 13.4, 5.6)
    size = (2.9, 1.05)
    boxes = {
        "question": (1.7, 4.4, "Question", "inference/question.py"),
        "prepared": (5.0, 4.4, "PreparedQuestion", "inference/engines.py"),
        "answer": (8.4, 4.4, "Answer", "inference/answer.py"),
        "solver": (5.0, 1.4, "Offer", "inference/exact/request.py"),
        "belief": (11.75, 4.4, "Belief", "inference/belief.py"),
        "joint": (11.75, 2.75, "Joint", "inference/joint.py"),
        "measures": (11.75, 1.1, "Estimate", "estimate.py"),
        "report": (8.4, 1.1, "Summary", "report/summary.py"),
    }
    for name, (x, y, kind, file) in boxes.items():
        box(axes, x, y + 0.12, kind, size, GREEN if name in ("prepared", "answer") else BLUE)
        axes.text(x, y - 0.24, file, ha="center", va="center", fontsize=8, color=GREY, family="monospace")
    arrow(axes, (3.17, 4.5), (3.52, 4.5))
    arrow(axes, (6.48, 4.5), (6.92, 4.5))
    axes.text(6.7, 5.25, "condition(observation)", ha="center", fontsize=9.5, color=GREY)
    arrow(axes, (5.0, 3.95), (5.0, 2.08), "solvers offer an answer\nat a cost; the cheapest\nserves, samples else")
    arrow(axes, (9.88, 4.5), (10.27, 4.5))
    arrow(axes, (9.6, 3.95), (10.6, 3.3), "")
    arrow(axes, (11.75, 2.28), (11.75, 1.78), "measures")
    arrow(axes, (10.27, 1.2), (9.88, 1.2))
    axes.text(3.35, 5.25, "once", ha="center", fontsize=9.5, color=GREY)
    axes.text(8.4, 0.3, "what a report shows is read off; it starts nothing but the joint", ha="center", fontsize=9)


def bits(axes: Axes) -> None:
    """Each bit halves what is possible."""
    plain(axes, 9.6, 4.6)
    for row, left in enumerate((8, 4, 2, 1)):
        y = 4.0 - row * 1.1
        for column in range(8):
            possible = column < left
            face, edge = (BLUE, BLUE) if possible else ("white", "#c8c8c8")
            axes.add_patch(FancyBboxPatch((0.2 + column * 0.7, y - 0.22), 0.5, 0.5, boxstyle="round,pad=0.02",
                                          facecolor=face, edgecolor=edge))  # fmt: skip
        words = "nothing learned" if row == 0 else f"{row} bit{'s' if row > 1 else ''} learned"
        axes.text(6.0, y, f"{words}: {left} of 8 possible", va="center", fontsize=10.5)


def black_box(axes: Axes) -> None:
    """The pipe between Privug and a command."""
    plain(axes, 12, 3)
    box(axes, 1.5, 1.5, "Privug", (2.2, 1.4))
    box(axes, 10.5, 1.5, "your command", (2.4, 1.4), ORANGE)
    arrow(axes, (2.75, 1.95), (9.15, 1.95))
    arrow(axes, (9.15, 1.05), (2.75, 1.05))
    mono = {"family": "monospace", "fontsize": 10, "ha": "center"}
    axes.text(5.95, 2.15, '{"records": [{"age": 31}, {"age": 58}]}', **mono)
    axes.text(5.95, 0.55, "44        (then flush)", **mono)
    axes.text(5.95, 2.6, "one line of JSON on standard input", ha="center", fontsize=10, color=GREY)
    axes.text(5.95, 0.15, "one line of JSON on standard output", ha="center", fontsize=10, color=GREY)
