"""The information in an output that the secret only shifts: how much its entropy exceeds that of the rest."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import scipy.special

from privug.estimate import Estimate
from privug.inference.curve import Curve
from privug.inference.exact.curves.parts import smooth_part
from privug.inference.exact.rows.channel import Source
from privug.inference.exact.rows.likelihood import Own

ENTROPY_ERROR = 1e-10  # of entropies whose densities are polynomials but for rounding, with room to spare
EXACT = 1e-10  # an error in bits that is not worth a word


def shift_information(found: Sequence[Source], output: Curve | None) -> Estimate | None:
    """Return the mutual information of a continuous secret and an output whose distribution it shifts.

    Nothing if it is no such secret and output, or if values of the secret leave several ways to the output.
    """
    if output is None or not output.parts:
        return None
    given = [_given(one) for one in found]
    if not _are_apart(found) or any(curve is None for curve in given):
        return None
    weights = np.array([one.weight for one in found])
    left = sum(weight * _entropy(curve) for weight, curve in zip(weights, given, strict=True) if curve is not None)
    error = ENTROPY_ERROR + output.error + max(curve.error for curve in given if curve is not None)
    return approximately(max(0.0, _entropy(output) - left / float(weights.sum())), error)


def approximately(value: float, off: float) -> Estimate:
    """Return an information that is known but for an error."""
    method = "exact" if off <= EXACT else f"exact to {off:.0e}"
    return Estimate(value, max(0.0, value - off), value + off, "bit", method, exact=True)


def _given(one: Source) -> Curve | None:
    """Return the distribution of the output given a number of the row in a cell, but for where it lies."""
    curve, terms = one.cell.curve, one.cell.asked
    if curve is None or len(curve.atoms) or len(terms) != 1 or terms[0].is_flat or one.certain or not one.formulas:
        return None
    laws = []
    for outcome, _, law in one.formulas:
        same = outcome.weights is not None and np.array_equal(outcome.weights, one.formulas[0][0].weights)  # type: ignore[arg-type]
        if not same or len(outcome.label) > 1 or outcome.images[0][1] is not None or not isinstance(law, Curve):
            return None
        if Own(one.cell, outcome.weights).is_flat or len(law.atoms):  # type: ignore[arg-type]
            return None
        laws.append(law)
    return laws[0] if len(laws) == 1 else Curve.mixture([chance for _, chance, _ in one.formulas], laws)


def _are_apart(found: Sequence[Source]) -> bool:
    """Say whether each number of the row lies in one cell only, and no two of them ask for the same value."""
    edges = sorted(
        tuple(np.sort(one.cell.asked[0].at(one.cell.curve.edges[[0, -1]])).tolist())
        for one in found
        if one.cell.curve is not None
    )
    return all(first[1] <= second[0] for first, second in pairwise(edges))


def _entropy(curve: Curve) -> float:
    """Return the entropy of a density, and of values with probabilities, in bits."""
    share = curve.continuous_share
    smooth_bits = share * (smooth_part(curve).differential_entropy() - math.log2(share))
    return smooth_bits + float(scipy.special.entr(curve.masses).sum()) / math.log(2)
