"""The three pictures of docs/explanation/exact.md: the cells, the tally and the pull-back of one worked example.

python tools/pictures_of_exact.py           # into docs/pictures, as SVG
python tools/pictures_of_exact.py FOLDER    # into another folder, as PNG too
"""

import sys
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import privug as pv
from privug.inference.case_plan import Quantity
from privug.inference.exact.rows.cells import Cell, CellCounts
from privug.inference.exact.rows.likelihood import Group, Reaching, Seen, groups_of
from privug.inference.exact.rows.posterior import Model

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
ROWS, SEEN = 8, 74
# Colours of Okabe and Ito, which are told apart with any colour vision.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#999999"
STYLE = {"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "privug"}


def mean_of_seniors(records):  # type: ignore[no-untyped-def]
    ages = [row.age for row in records if row.age >= 60]
    return round(sum(ages) / len(ages)) if len(ages) >= 2 else None


def worked_example() -> pv.Attack:
    person = pv.Row(age=pv.Normal(50, sd=15))
    prior = {"records": pv.Records(ROWS, person)}
    return pv.Attack(mean_of_seniors, prior, secret=lambda records: records[0].age, observe=pv.equals(SEEN))


class Parts:
    """What the exact engine makes of the worked example: cells of a row, a tally of the others, what was seen."""

    def __init__(self, attack: pv.Attack) -> None:
        case = attack.question.case(())
        model = Model(case.likelihood(pv.equals(SEEN)), (), [Quantity.of(case.secret).nodes])
        ((_, self._given),) = model.settings()
        row = model.exposed(model.asked[0])
        assert row is not None
        self.cells: list[Cell] = self._given.cells(row, model.asked[0])
        self.tally: CellCounts = self._given.tally(row)

    def seen(self, cell: Cell) -> list[tuple[Group, Seen]]:
        """Return what was seen, given in which cell Alice is, by how many other rows fell into which."""
        pullback, discrete = self._given.pullback, self._given.discrete
        reach = Reaching(self.tally, self.cells).reach
        factors = pullback.factors(self.tally.flats + cell.flats, discrete)
        groups = groups_of(self.tally, cell.flats, discrete, factors)
        return [(group, pullback.at(group.key, reach)) for group in groups]


def a_row_cut_into_cells(axes: Axes, parts: Parts) -> None:
    ages = np.linspace(5, 105, 401)
    below, above = parts.cells
    for cell, colour in ((below, BLUE), (above, ORANGE)):
        assert cell.curve is not None
        density = cell.weight * cell.curve.pdf(ages)
        axes.fill_between(ages, np.where(density > 0, density, np.nan), color=colour, alpha=0.75, linewidth=0)
    axes.axvline(60, color="black", linewidth=1, linestyle="--")
    axes.text(59, 0.0293, "cut at the threshold", ha="right")
    told = f"under 60\nprobability {below.weight:.3f}\nadds nothing"
    axes.text(44, 0.006, told, ha="center", color="white", weight="bold")
    told = f"60 and over\nprobability {above.weight:.3f}\nadds 1 to the count\nand its age to the sum"
    axes.annotate(told, (66, 0.012), (76, 0.0165), arrowprops={"arrowstyle": "-", "color": ORANGE}, va="center")
    axes.set(xlabel="age in one row", ylabel="density", xlim=(5, 105), ylim=(0, 0.032))


def a_tally(axes: Axes, parts: Parts) -> None:
    counts, chances = parts.tally.counts[:, 0], parts.tally.probabilities
    bars = axes.bar(counts, chances, color=[GREY if k < 2 else ORANGE for k in counts], width=0.8)
    axes.bar_label(bars, [f"{p:.3f}" if p >= 5e-4 else f"{p:.0e}" for p in chances], padding=2)
    axes.set(xticks=counts, ylim=(0, 1.18 * chances.max()))
    axes.set(xlabel=f"rows of 60 and over among the other {ROWS - 1}", ylabel="probability")
    axes.text(3.7, 0.8 * chances.max(), "grey: nothing is published\nif Alice is under 60 too", color="#444444")


def sums_that_fit(axes: Axes, parts: Parts) -> None:
    """Draw the density of the sum for each count, and the stretch of it that the published mean leaves."""
    below, _ = parts.cells
    x = np.linspace(100, 330, 1000)
    for group, seen in parts.seen(below):
        (count,), (constraint,) = group.counts, seen.constraints
        chance = float(group.probabilities.sum())
        if chance < 0.05:
            continue
        law = parts.tally.law(np.array([0.0, 1.0]), group.counts)
        density = chance * law.pdf(x)
        scale = constraint.weights[1]
        low, high = constraint.ranges[0][0] / scale, constraint.ranges[0][1] / scale
        axes.plot(x, np.where(density > 0, density, np.nan), color=BLUE, linewidth=1.5)
        inside = np.linspace(low, high, 50)
        axes.fill_between(inside, chance * law.pdf(inside), color=ORANGE)
        axes.axvspan(low, high, ymax=0.88, color=ORANGE, alpha=0.25, linewidth=0)
        top = float(density.max())
        axes.text(x[density.argmax()], top + 2e-4, f"{count} rows", ha="center", color=BLUE)
        axes.text((low + high) / 2, 0.0152, f"{low:g} to\n{high:g}", ha="center", size=9)
    axes.set(
        xlabel="sum of the ages of 60 and over", ylabel="probability times density", xlim=(105, 325), ylim=(0, 0.0167)
    )
    axes.set_title(f"A mean of {SEEN} as a stretch of the sum,\nfor each count (Alice under 60)", size=11)


def belief_about_alice(axes: Axes, attack: pv.Attack) -> None:
    posterior = attack.run(engine="exact").posterior.curve
    assert posterior is not None
    ages = np.concatenate([np.linspace(5, 59.999, 400), np.linspace(60, 110, 600)])
    axes.plot(
        ages, np.exp(-(((ages - 50) / 15) ** 2) / 2) / (15 * np.sqrt(2 * np.pi)), "--", color=GREY, label="before"
    )
    axes.plot(ages, posterior.pdf(ages), color=GREEN, linewidth=2, label="after")
    axes.legend(frameon=False, loc="upper right")
    axes.set(xlabel="Alice's age", ylabel="density", xlim=(5, 110), ylim=(0, None))
    axes.set_title("What that says about Alice", size=11)


def drawn() -> dict[str, Figure]:
    attack = worked_example()
    parts = Parts(attack)
    found = {}
    for name, draw in {"cells": a_row_cut_into_cells, "tally": a_tally}.items():
        found[name] = Figure(figsize=(7, 3.2), layout="constrained")
        draw(found[name].subplots(), parts)
    found["pull-back"] = Figure(figsize=(9.5, 3.8), layout="constrained")
    left, right = found["pull-back"].subplots(1, 2, width_ratios=(1.5, 1))
    sums_that_fit(left, parts)
    belief_about_alice(right, attack)
    return found


def main(arguments: list[str]) -> None:
    if any(argument.startswith("-") for argument in arguments):
        sys.exit(__doc__)
    folder = Path(arguments[0]) if arguments else PICTURES
    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE):
        for name, figure in drawn().items():
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
            if arguments:
                figure.savefig(folder / f"{name}.png", dpi=100)


if __name__ == "__main__":
    main(sys.argv[1:])
