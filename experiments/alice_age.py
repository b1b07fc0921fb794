"""Alice's age before and after the mean was seen."""

from collections.abc import Callable

import numpy as np

import privug as pv

from .ages import KnowsABit, knows_a_bit, knows_a_lot
from .drawing import curves, density
from .findings import Findings, Line

PAPER = "Fig. 4 (m), (n)"
LEVELS = (0.05, 0.5, 0.95)


def run() -> Findings:
    lot, bit, belief = knows_a_lot(), knows_a_bit(3.5), KnowsABit(3.5)
    lines = [
        *(Line(f"knows a lot: {q:.0%} quantile", lot.posterior.quantile(q), 55.58 + 0.04 * q) for q in LEVELS),
        *(Line(f"knows a bit: {q:.0%} quantile", bit.posterior.quantile(q), belief.quantile(q)) for q in LEVELS),
    ]

    def uniform(ages):
        return np.where((ages > 55.58) & (ages < 55.62), 25.0, 0.0)

    figures = {
        "The attacker who knows a lot: density of Alice's age": _drawn(lot, np.linspace(55.5, 55.7, 401), uniform),
        "The attacker who knows a bit: density of Alice's age": _drawn(bit, np.linspace(0, 100, 201), belief.density),
        "The attacker who reads 3.5 as a standard deviation": _drawn(
            knows_a_bit(3.5**2), np.linspace(0, 100, 201), KnowsABit(3.5**2).density
        ),
    }
    return Findings(
        lines,
        figures,
        ["Both axes of each figure fit its attacker: what is left of a hundred years is 0.04 for the first of them."],
    )


def _drawn(result: pv.Result, edges: np.ndarray, exact: Callable) -> Callable:
    middles = (edges[:-1] + edges[1:]) / 2
    lines = {"after": (middles, density(result.posterior, edges)), "before": (middles, density(result.prior, edges))}
    some = middles[::10]
    return curves(lines, x="age", y="density", points={"after, by quadrature": (some, exact(some))})
