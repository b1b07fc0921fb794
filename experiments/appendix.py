"""Half the sum of two numbers, lifted."""

from fractions import Fraction
from itertools import product

import privug as pv

from .drawing import bars
from .findings import Findings, Line

PAPER = "Appendix A"
VALUES = (0, 1, 2)


def half_sum(x, y):
    return (x + y) / 2


def run() -> Findings:
    prior = {"x": pv.DiscreteUniform(0, 2), "y": pv.DiscreteUniform(0, 2)}
    belief = pv.Attack(half_sum, prior, secret="x").run().prediction
    outputs = sorted({half_sum(x, y) for x, y in product(VALUES, VALUES)})
    exact = [Fraction(sum(half_sum(x, y) == o for x, y in product(VALUES, VALUES)), 9) for o in outputs]
    found = [belief.probability(lambda output, o=o: output == o) for o in outputs]
    paper = {2.0: "3/9"}
    return Findings(
        [
            Line(f"P(o = {o:g})", estimate, float(truth), paper.get(o, ""))
            for o, estimate, truth in zip(outputs, found, exact, strict=True)
        ],
        {
            "What is predicted of (x + y) / 2": bars(
                [2 * o for o in outputs], list(map(float, found)), exact=list(map(float, exact)), x="x + y"
            )
        },
        ["The paper's P(o = 2) = 3/9 counts the three pairs whose sum is 2. Their half sum is 1; only (2, 2) gives 2."],
    )
