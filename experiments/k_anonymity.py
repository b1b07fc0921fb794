"""How many rows match the governor's after 2-anonymity."""

import numpy as np
from scipy import stats

from .drawing import bars
from .findings import Findings, Line
from .governor import COMBINATIONS, none_alone
from .k_anonymous import ROWS, SAMPLES, K, sampled

PAPER = "Fig. 4 (k), (l)"
SEX = COMBINATIONS.index(("sex",))


def run() -> Findings:
    belief, seconds = sampled()
    # Sex is masked if no day occurs once, but some pair of day and sex does. The other sexes are fair coins.
    masked = none_alone(ROWS, 100) - none_alone(ROWS, 200)
    men = stats.binom(ROWS - 1, 0.5, loc=1)
    counts = np.array([0, *range(200, 301)])
    exact = [masked, *((1 - masked) * men.pmf(counts[1:])).tolist()]

    def probability(wanted):
        return belief.probability(lambda release: wanted(release[0]))

    lines = [
        Line("sex: P(no row matches, because it is masked)", probability(lambda n: n[SEX] == 0), masked, "about .035"),
        Line("sex: P(250 match)", probability(lambda n: n[SEX] == 250), exact[51]),
        Line(
            "sex: P(240 to 260 match)",
            probability(lambda n: (n[SEX] >= 240) & (n[SEX] <= 260)),
            (1 - masked) * float(men.cdf(260) - men.cdf(239)),
        ),
        Line(
            "any other combination: P(no row matches)",
            probability(lambda n: sum(n) == n[SEX]),
            1.0,
            "1",
            f"the truth misses 1 by less than {2 * none_alone(ROWS, 200):.0e}",
        ),
        Line(f"seconds for {SAMPLES:,} samples", f"{seconds:.1f} s", paper="80 h", note="scaled from 1,000 samples"),
    ]
    found = [float(probability(lambda n, count=count: n[SEX] == count)) for count in counts]
    none = [float(probability(lambda n: sum(n) == n[SEX])), float(probability(lambda n: sum(n) > n[SEX]))]
    figures = {
        f"(k) sex, k = {K}, {ROWS} rows": bars(counts.tolist(), found, exact=exact, x="matching rows"),
        f"(l) any other combination, k = {K}, {ROWS} rows": bars([0, 1], none, exact=[1.0, 0.0], x="matching rows"),
    }
    notes = [
        "The paper does not print its anonymiser. This one masks every column of a combination, small ones first, that "
        "has a value of fewer than k rows; with 200 zips and 100 days it masks sex as often as the paper tells.",
    ]
    return Findings(lines, figures, notes)
