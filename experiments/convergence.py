"""How fast estimates converge, and whether their intervals hold.

Probability queries, mutual information and Bayes risk of the paper's synthetic programs by the sampling engine, over
the number of samples and with repetitions. Each figure shows the median and the band of nine in ten repetitions around
the exact value. How often the intervals cover it is counted over all repetitions and sizes.
"""

from functools import partial

import privug as pv

from .drawing import Draw
from .findings import Findings, Line
from .repetitions import Measure, Repeated, coverage, coverage_over_samples, over_samples, repeated
from .synthetic import Mean, Sum

PAPER = "Fig. 4 (r), (s), (t), and RQ2"

SIZES = (100, 300, 1_000, 5_000, 20_000)
MEANS, SUMS = (Mean(8, 1), Mean(20, 20)), (Sum(100), Sum(500), Sum(1_000), Sum(10_000))


def below_55(result: pv.Result) -> pv.Estimate:
    return result.prediction.probability(lambda output: output < 55)


def equal_to(n: int, result: pv.Result) -> pv.Estimate:
    return result.prediction.probability(lambda output: output == n)


def information(result: pv.Result) -> pv.Estimate:
    return pv.leakage.mutual_information(result.joint)


def risk(result: pv.Result) -> pv.Estimate:
    return pv.leakage.bayes_risk(result.joint)


def questions() -> list[tuple[str, Mean | Sum, Measure, float, str]]:
    """The quantity, the program, the measure, the exact value, and what the paper says."""
    paper = "below 0.01"
    asked: list[tuple[str, Mean | Sum, Measure, float, str]] = []
    asked += [("P(o < 55)", mean, below_55, mean.below_55, paper) for mean in MEANS]
    for some in SUMS:
        asked += [("P(o = n)", some, partial(equal_to, some.n), some.middle, paper if some.n in (100, 1_000) else "")]
    for mean in MEANS:
        asked += [("I(s; o)", mean, information, mean.information, "below 0.02" if mean.sd_secret == 8 else "")]
    asked += [("I(x; o)", some, information, some.information, "converged (LeakiEst)") for some in SUMS]
    asked += [("Bayes risk", some, risk, some.risk, "converged (F-BLEAU)") for some in SUMS]
    return asked


def figures(found: dict[str, dict[str, Repeated]]) -> dict[str, Draw]:
    right = {name: some.relative(lambda wrong: 1 - wrong) for name, some in found["Bayes risk"].items()}
    shares = {name: some.relative() for name, some in found["P(o = n)"].items()}
    return {
        "Probability query, continuous": over_samples(found["P(o < 55)"], "P(o < 55)"),
        "Probability query, discrete": over_samples(shares, "P(o = n), divided by the exact value"),
        "Mutual information, continuous": over_samples(found["I(s; o)"], "I(s; o) in bits"),
        "Mutual information, discrete": over_samples(found["I(x; o)"], "I(x; o) in bits"),
        "Chance of a right guess, 1 - Bayes risk": over_samples(right, "1 - risk, divided by the exact value"),
        "How often intervals cover the exact value": coverage_over_samples(kinds(found)),
    }


def kinds(found: dict[str, dict[str, Repeated]]) -> dict[str, list[Repeated]]:
    """What was found about quantities of the same kind."""
    names = {"P": "probability queries", "I": "mutual information", "B": "Bayes risk"}
    return {name: [r for q in found if q[0] == first for r in found[q].values()] for first, name in names.items()}


def run(repetitions: int = 100, sizes: tuple[int, ...] = SIZES) -> Findings:
    found: dict[str, dict[str, Repeated]] = {}
    findings = Findings()
    for place, (quantity, program, measure, exact, paper) in enumerate(questions()):
        asked, times = (sizes, repetitions) if quantity.startswith("P") else (sizes[1:], max(2, repetitions // 3))
        some = repeated(program.attack, exact, measure, asked, lambda size, times=times: times, 1_000 * place)
        found.setdefault(quantity, {})[str(program)] = some
        findings.lines.append(Line(f"{program}: {quantity}", some.typical, exact))
        if 5_000 in asked:
            note = f"errors fall as n^{some.exponent():.2f}"
            findings.lines.append(Line("   error from 5,000 samples", some.most_error(5_000), None, paper, note))
    for kind, several in kinds(found).items():
        share, note = coverage(*several)
        findings.lines.append(Line(f"{kind}: intervals that cover the exact value", share, None, "no intervals", note))
    findings.figures = figures(found)
    findings.notes += [
        f"Values are the median of {repetitions} repetitions (a third of that for information and risk) with "
        f"{sizes[-1]:,} samples; errors are those that 95 of 100 repetitions keep below.",
        "The Bayes risk of x + y is so close to one (without any output it is 1 - 1/(n + 1)) that every estimate looks "
        "converged after 1,000 samples, as the paper says. What the output changes is the chance of a right guess, "
        "which nearly doubles: the figure shows that one, and Privug's intervals say how little samples tell of it.",
    ]
    return findings
