"""Piecewise polynomials by their Legendre coefficients, a row for each piece."""

import numpy as np

from privug.inference.effort import COST_OF_CALL, COST_OF_POINT, spend
from privug.model.node import Array

CHUNK = 1 << 13  # points whose intermediate values stay in the processor's cache


def legendre_values(columns: Array, piece: Array, t: Array) -> Array:
    """Return the values of polynomials at places of their pieces' own coordinate, from -1 to 1, by Clenshaw's rule.

    `columns` holds the coefficients, a row for each degree and a column for each piece.
    """
    spend(COST_OF_CALL + COST_OF_POINT * len(t))
    result = np.empty(len(t))
    for start in range(0, len(t), CHUNK):
        part = slice(start, start + CHUNK)
        result[part] = _clenshaw(columns, piece[part], t[part])
    return result


def _clenshaw(columns: Array, piece: Array, t: Array) -> Array:
    degree = len(columns) - 1
    below, above = columns[degree - 1][piece], columns[degree][piece]
    scaled = np.empty_like(t)
    for k in range(degree, 1, -1):
        np.multiply(above, t, out=scaled)
        scaled *= (2 * k - 1) / k
        scaled += below
        above *= -(k - 1) / k
        above += columns[k - 2][piece]
        below, above, scaled = above, scaled, below
    return np.asarray(below + above * t)
