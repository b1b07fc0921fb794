"""Privug beside direct sampling: the same number of samples, the same questions.

Direct sampling is what LeakWatch does: the program is called on drawn inputs, and the pairs of secret and output go to
an estimator. The corrections are those of LeakiEst and of Miller and Madow, continuous information is scikit-learn's,
Bayes risk is that of F-BLEAU's rules. Privug gets as many samples, and an answer without samples where there is one.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

import privug as pv

from . import direct_sampling as direct
from .convergence import below_55, equal_to, information, risk
from .drawing import Draw
from .findings import Findings, Line
from .repetitions import Measure, Repeated, coverage, over_samples, repeated
from .synthetic import Mean, Sum

PAPER = "Fig. 4 (u) to (aa)"

Estimator = Callable[[np.ndarray, np.ndarray], float]


@dataclass(frozen=True)
class Comparison:
    """A quantity of a program, Privug's measure of it, and the estimators that it is compared with."""

    caption: str
    quantity: str
    program: Mean | Sum
    measure: Measure
    exact: float
    estimators: dict[str, Estimator]
    sizes: tuple[int, ...]
    paper: str

    def by_direct_sampling(self, estimator: Estimator, times: Callable[[int], int]) -> Repeated:
        estimates = [
            tuple(
                estimator(*self.program.draw(size, np.random.default_rng((seed, size)))) for seed in range(times(size))
            )
            for size in self.sizes
        ]
        return Repeated(self.exact, self.sizes, tuple(estimates))


def share_equal(n: int, secret: np.ndarray, output: np.ndarray) -> float:
    return float(np.mean(output == n))


def share_below(secret: np.ndarray, output: np.ndarray) -> float:
    return float(np.mean(output < 55))


def comparisons() -> list[Comparison]:
    comparable, many = "comparable", (1_000, 10_000, 100_000, 500_000)
    large, mean = Sum(10_000), Mean(8, 1)
    counted: dict[str, Estimator] = {"direct": partial(share_equal, 10_000)}
    tables: dict[str, Estimator] = {"direct, LeakiEst": direct.leakiest, "direct, Miller-Madow": direct.miller_madow}
    near: dict[str, Estimator] = {"direct, scikit-learn": direct.neighbours} if find_spec("sklearn") else {}
    rules: dict[str, Estimator] = {"direct, F-BLEAU": direct.fbleau}
    few, most = (100, 1_000, 5_000, 20_000), (1_000, 10_000, 100_000)
    equal = partial(equal_to, 10_000)
    said = {500: "LeakWatch needs more samples", 1_000: "300,000 samples fewer than LeakWatch"}
    return [
        Comparison("(u) P(o = 10,000)", "P(o = n)", large, equal, large.middle, counted, many, comparable),
        Comparison(
            "(v) P(o < 55)", "P(o < 55)", mean, below_55, mean.below_55, {"direct": share_below}, few, comparable
        ),
        *(
            Comparison(
                f"({letter}) I(x; o)", "I(x; o) in bits", Sum(n), information, Sum(n).information, tables, many, said[n]
            )
            for letter, n in (("w", 500), ("x", 1_000))
        ),
        Comparison("(y) I(s; o)", "I(s; o) in bits", mean, information, mean.information, near, few[1:], comparable),
        *(
            Comparison(f"({letter}) Bayes risk", "Bayes risk", Sum(n), risk, Sum(n).risk, rules, most, comparable)
            for letter, n in (("z", 500), ("aa", 1_000))
        ),
    ]


def compared(comparison: Comparison, times: Callable[[int], int], first: int) -> tuple[list[Line], Draw, Repeated]:
    """The lines and the figure of one comparison, and what Privug found."""
    program, exact = comparison.program, comparison.exact
    found = {"Privug": repeated(program.attack, exact, comparison.measure, comparison.sizes, times, first)}
    found |= {name: comparison.by_direct_sampling(rule, times) for name, rule in comparison.estimators.items()}
    most = comparison.sizes[-1]
    title = f"{comparison.caption}, {program}"
    lines = [Line(f"{title}: Privug, {most:,} samples", found["Privug"].typical, exact, comparison.paper)]
    for name, some in found.items():
        if name != "Privug":
            note = f"typical error {some.typical_error(most):.2g}, Privug's {found['Privug'].typical_error(most):.2g}"
            lines.append(Line(f"   {name}, {most:,} samples", _plain(some.typical), None, "", note))
    started = time.perf_counter()
    answer = comparison.measure(program.attack.run())
    lines.append(Line("   Privug, without samples", answer, exact, "", f"{time.perf_counter() - started:.2g} s"))
    figure = over_samples(found, comparison.quantity)
    return lines, near_exact(figure, exact) if "direct, LeakiEst" in found else figure, found["Privug"]


def near_exact(figure: Draw, exact: float, reach: float = 3.0) -> Draw:
    """Return what draws a figure as far as so many bits from the exact value: wrong corrections lie a hundred away."""

    def draw(axes: Any) -> None:
        figure(axes)
        axes.set_ylim(exact - reach, exact + reach)

    return draw


def _plain(value: pv.Estimate | float) -> str:
    return f"{float(value):.6g}"


def run(few: int = 20, many: int = 5, most: int = 500_000) -> Findings:
    findings = Findings()
    privug = []
    for place, comparison in enumerate(comparisons()):
        kept = Comparison(**{**vars(comparison), "sizes": tuple(s for s in comparison.sizes if s <= most)})
        lines, figure, found = compared(kept, lambda size: few if size <= 20_000 else many, 1_000 * place)
        findings.lines += lines
        findings.figures[f"{kept.caption}, {kept.program}"] = figure
        privug.append(found)
    share, note = coverage(*privug)
    findings.lines.append(Line("Privug: intervals that cover the exact value", share, None, "no intervals", note))
    findings.notes += [
        "Samples are the same on both sides: independent draws of the inputs, pushed through the program. What differs "
        "is the estimator, that Privug states an interval, and that it needs no samples for these programs.",
        "LeakiEst's correction assumes that every secret can lead to every output, which is far from true of x + y: it "
        "takes away too much, and Miller and Madow's, which counts the pairs that were seen, too little. Both need "
        "more samples than there are pairs (251,001 and 1,002,001): this is what the paper sees below half a "
        "million samples. Privug takes sums for numbers, and measures distances between them.",
    ]
    if find_spec("sklearn") is None:
        findings.notes.append("scikit-learn is not installed, so (y) has no curve of direct sampling.")
    return findings
