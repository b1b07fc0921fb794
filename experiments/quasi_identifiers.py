"""How many rows match the governor's."""

import math

import numpy as np

from .drawing import bars
from .findings import Findings, Line
from .governor import COLUMNS, COMBINATIONS, alike, heights, matching_rows, named, share_of
from .governor import run as attacked

PAPER = "Fig. 4 (a)-(i)"
LETTERS = {
    1_000: dict(zip(COMBINATIONS, "abcdefg", strict=True)),
    14_000: {("zip", "day"): "h", COLUMNS: "i"},
}
# The paper's words on some of these, by rows and columns, and the number of rows they are about.
PAPER_SAYS = {
    (1_000, ("zip",), 5): "about 5 are likeliest",
    (1_000, ("sex",), 500): "about 500 are likeliest",
    (14_000, ("zip", "day"), 1): ".51",
    (14_000, COLUMNS, 1): ".71",
}
SHOWN = 1e-4  # probability of the tails that figures leave out
WORTH_TELLING = 1e-12


def run() -> Findings:
    findings = Findings(
        notes=["How many zips and days there are the paper does not say: 200 and 100 give the counts of its figures."]
    )
    for rows in LETTERS:
        for columns in COMBINATIONS:
            _asked(findings, rows, columns)
    return findings


def _asked(findings: Findings, rows: int, columns) -> None:
    belief = attacked(alike(columns), rows).prediction
    truth = matching_rows(rows, columns)
    likeliest = max(1, math.ceil(rows * share_of(columns)))  # the mode of one and a binomial number of `rows - 1`
    who = f"{rows:,} rows, {named(columns)}"
    findings.lines.append(Line(f"{who}: mean number", belief.mean(), float(truth.mean())))
    for count in dict.fromkeys((likeliest, 1)):
        exact, note = float(truth.pmf(count)), "the most likely number" if count == likeliest else "his alone"
        if exact > WORTH_TELLING:
            said = PAPER_SAYS.get((rows, columns, count), "")
            findings.lines.append(Line(f"{who}: P({count})", belief.probability_of([count]), exact, said, note))
    values = np.arange(max(1, int(truth.ppf(SHOWN))), int(truth.isf(SHOWN)) + 1)
    letter = LETTERS[rows].get(columns)
    caption = f"{f'({letter}) ' if letter else ''}{named(columns)}, {rows:,} rows"
    findings.figures[caption] = bars(
        values.tolist(), heights(belief, values), exact=truth.pmf(values).tolist(), x="matching rows"
    )
