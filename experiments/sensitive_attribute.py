"""How many are ill of the five who share the governor's zip."""

from scipy import stats

import privug as pv

from .drawing import bars
from .findings import Findings, Line
from .governor import ILL
from .governor import run as attacked

PAPER = "Fig. 4 (j)"
SHARING = 5
PRINTED = {1: "about .50", 2: "about .35"}


def sharing_zip(records):
    return sum(row.zip == "2000" for row in records)


def ill_of_them(records):
    return sum(row.zip == "2000" and row.ill for row in records)


def run() -> Findings:
    belief = attacked(sharing_zip, 1_000, secret=ill_of_them, observe=pv.equals(SHARING)).posterior
    counts = list(range(1, SHARING + 1))
    found = [belief.probability_of([count]) for count in counts]
    exact = stats.binom(SHARING - 1, ILL, loc=1).pmf(counts).tolist()  # he is ill, and so is each other with 0.2
    lines = [
        Line(f"P({count} of {SHARING} are ill)", value, truth, PRINTED.get(count, ""))
        for count, value, truth in zip(counts, found, exact, strict=True)
    ]
    caption = "(j) The belief that he is ill is the number of ill rows in five"
    return Findings(
        lines,
        {caption: bars(counts, list(map(float, found)), exact=exact, x="rows that are ill")},
        ["The paper's first two bars are off: .4096 each, so that the belief grows beyond .2 with probability .59."],
    )
