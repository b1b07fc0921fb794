"""Whether discrete numbers may be seen as steps of continuous ones: neighbouring values must be about equally likely.

A relation that jumps from one value to the next, such as a remainder or a hash, looks like no relation at all from a
distance, and its information would be far too small. Samples tell: such relations repeat the same pairs too often, or
tie the remainders of both numbers.
"""

import math

import numpy as np
import scipy

from privug.leakage.sides import FEWEST_STEPS, Side
from privug.model.node import Array

REMAINDERS = (2, 3, 5, 7)
PLENTY = 32  # samples of a value for each neighbour, from which its label serves better than its place among others
MOST = 0.9  # of the samples
DOUBT = 1e-6  # probability of refusing independent remainders


def continuous_side(side: Side, k: int, rng: np.random.Generator, *, table: bool = False) -> Side | None:
    """Return a discrete side as its neighbours see it: continuous, or labels that each have enough samples.

    In a sparse table every ordered side is made continuous, else only one whose values have too few samples. None
    means that it is neither ordered nor known well enough.
    """
    ordered = side.steps is not None and np.issubdtype(side.steps.dtype, np.number) and side.levels >= FEWEST_STEPS
    counts = np.bincount(side.codes)[side.codes]
    if ordered and (table or float((counts > PLENTY * k).mean()) < MOST):
        return side.as_continuous(rng)
    return side if float((counts > k).mean()) >= MOST else None


def is_smooth(secret: Side, output: Side, terms: Array) -> bool:
    """Say whether equal pairs are as rare as the information at each sample says, and remainders independent.

    Two samples fall on the pair of sample i with a probability of p(s) p(o) 2^i, where i is its information.
    """
    samples = len(terms)
    pairs = np.unique(secret.codes * output.levels + output.codes, return_counts=True)[1]
    repeated = float((pairs * (pairs - 1)).sum()) / 2
    others = [np.bincount(side.codes)[side.codes] - 1.0 for side in (secret, output)]
    expected = float((others[0] * others[1] * np.exp2(terms)).sum()) / (samples - 1) / 2
    if repeated > 1.25 * expected + 3 * math.sqrt(expected) + 2:
        return False
    lattices = [_lattice(side) for side in (secret, output)]
    return all(_independent(lattices[0] % m, lattices[1] % m, m) for m in REMAINDERS)


def _lattice(side: Side) -> Array:
    """Return each value as a multiple of the smallest difference between two; zeros if it is none."""
    steps, nothing = side.steps, np.zeros(len(side.codes), np.int64)
    if steps is None:
        return nothing
    with np.errstate(all="ignore"):
        # Differences of whole numbers are right modulo 2^64, and so as they are; as floats they might all be zero.
        numbers = steps.astype(np.uint64 if steps.dtype.kind in "iu" else float)
        offsets = (numbers - numbers[steps.argmin()]).astype(float)
        gaps = np.diff(np.unique(offsets))
        if not len(gaps):
            return nothing
        multiples = offsets / gaps.min()
        whole = np.round(multiples)
        fits = np.all(np.isfinite(multiples)) and np.all(np.abs(multiples - whole) < 1e-3) and whole.max() < 2**53
    return whole.astype(np.int64) if fits else nothing


def _independent(left: Array, right: Array, base: int) -> bool:
    """Say whether the remainders show no dependence, by the statistic of the likelihood ratio."""
    table = np.bincount(left * base + right, minlength=base**2).reshape(base, base).astype(float)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    content = scipy.special.xlogy
    twice = 2 * float(content(table, table).sum() + content(table.sum(), table.sum()))
    twice -= 2 * float(content(table.sum(axis=0), table.sum(axis=0)).sum())
    twice -= 2 * float(content(table.sum(axis=1), table.sum(axis=1)).sum())
    freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
    return freedom == 0 or float(scipy.special.chdtrc(freedom, max(0.0, twice))) > DOUBT
