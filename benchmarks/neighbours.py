"""Neighbours: mutual information of two continuous quantities, against scikit-learn's on the same arrays."""

import math
from functools import partial

import numpy as np
from measuring import Bar, Outcome, compare

from privug.leakage.neighbours import ksg

NEIGHBOURS = 3


def pair(samples: int) -> tuple[np.ndarray, np.ndarray]:
    x, noise = np.random.default_rng(0).normal(size=(2, samples))
    y = 0.6 * x + 0.8 * noise
    return x / x.std(), y / y.std()


def information(samples: int, bar: Bar, rounds: int) -> Outcome:
    from sklearn.feature_selection._mutual_info import _compute_mi_cc

    x, y = pair(samples)
    ours, theirs = ksg(x, y, NEIGHBOURS)[0], _compute_mi_cc(x, y, NEIGHBOURS) / math.log(2)
    timing = compare(partial(_compute_mi_cc, x, y, NEIGHBOURS), partial(ksg, x, y, NEIGHBOURS), rounds)
    detail = f"scikit-learn's time over ours, {samples:,} samples, k={NEIGHBOURS}; {timing}"
    return Outcome(f"ksg-{samples // 1000}k", timing.ratio, bar, f"{detail}; values differ by {abs(ours - theirs):.0e}")


BENCHMARKS = {
    "ksg-100k": lambda: information(100_000, Bar(3, at_least=True), 5),
    "ksg-1000k": lambda: information(1_000_000, Bar(6, at_least=True), 3),
}
