"""Random finite distributions, channels and joints for Hypothesis, with zeros, ties and point masses among them."""

import numpy as np
from hypothesis import strategies as st

import privug as pv

MOST_VALUES = 5


@st.composite
def distributions(draw, size):
    """Probabilities of `size` values: mostly ties and zeros at first, then anything."""
    whole = st.lists(st.integers(0, 3), min_size=size, max_size=size)
    real = st.lists(st.floats(0, 1, width=16), min_size=size, max_size=size)
    masses = np.array(draw((whole | real).filter(lambda masses: sum(masses) > 0.01)), float)
    return masses / masses.sum()


@st.composite
def matrices(draw, rows=None, columns=None):
    """A channel's matrix: a row of probabilities for each secret."""
    rows = draw(st.integers(1, MOST_VALUES)) if rows is None else rows
    columns = draw(st.integers(1, MOST_VALUES)) if columns is None else columns
    return np.array([draw(distributions(columns)) for _ in range(rows)])


@st.composite
def priors_and_matrices(draw):
    matrix = draw(matrices())
    return draw(distributions(len(matrix))), matrix


@st.composite
def degraded_pairs(draw):
    """A channel's matrix and what post-processing makes of it."""
    matrix = draw(matrices())
    return matrix, matrix @ draw(matrices(rows=matrix.shape[1]))


@st.composite
def gains(draw, secrets):
    """A gain that is never negative: a row for each guess, a column for each secret."""
    guesses = draw(st.integers(1, MOST_VALUES))
    worths = st.lists(st.floats(0, 1, width=16), min_size=secrets, max_size=secrets)
    return np.array([draw(worths) for _ in range(guesses)])


@st.composite
def joints(draw):
    return pv.Joint.from_channel(*draw(priors_and_matrices()))
