"""Panels of outputs on which every secret's density, and the information they carry together, are polynomials.

Panels begin where each secret's density begins, so that none falls between two nodes, and are split until nothing is
left to resolve. What the last coefficients say about the information is its error.
"""

from collections.abc import Callable

import numpy as np

from privug.inference.density import coefficients, panel_nodes
from privug.model.node import Array

DEEPEST = 60
RELATIVE = 1e-13
ABSOLUTE = 1e-15  # of a probability
BISECTIONS = 60
TIE = 1e-14  # the probability by which one secret must be likelier than another
GEOMETRIC = 1e-8  # relative size of last coefficients from which on they fall geometrically


def refined(densities: Callable[[Array], Array], prior: Array, edges: Array, most: int) -> tuple[Array, float]:
    """Split panels, up to so many pairs of secret and node, and return their edges and the error of the information.

    `densities` gives the density of outputs together with each secret, a row for each; `prior` has their probabilities.
    """
    low, high = edges[:-1], edges[1:]
    starts: list[Array] = []
    error, held = 0.0, 0
    for depth in range(DEEPEST):
        values = _on_panels(densities, low, high)
        widths = high - low
        rounding = 4 * np.finfo(float).eps * np.maximum(np.abs(low), np.abs(high)) / widths
        rough, tails = np.zeros(len(low), bool), np.zeros(len(low))
        for function in (*values, _information(values, prior)):
            found = np.abs(coefficients(function))
            last, largest = found[:, -3:].max(axis=1), found.max(axis=1)
            rough |= (last > np.maximum(RELATIVE, rounding) * largest) & (last * widths > ABSOLUTE)
            with np.errstate(invalid="ignore", divide="ignore"):
                tails = np.where(last < GEOMETRIC * largest, last**2 / largest, last)
        held += values.size
        done = ~rough | (rounding > 0.5) | (depth == DEEPEST - 1) | (held > most)
        error += float(np.nan_to_num(tails * widths)[done].sum())
        starts.append(low[done])
        if done.all():
            break
        middle = (low + high)[~done] / 2
        low, high = np.concatenate([low[~done], middle]), np.concatenate([middle, high[~done]])
    return np.append(np.sort(np.concatenate(starts)), edges[-1]), error


def _on_panels(densities: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Return densities at the nodes of separate panels: secrets, panels, nodes."""
    pairs = np.column_stack((low, high)).reshape(-1)
    nodes = panel_nodes(pairs)[0][::2]
    return densities(nodes.reshape(-1)).reshape(-1, *nodes.shape)


def _information(values: Array, prior: Array) -> Array:
    """Return what each output adds to the information, in bits."""
    whole = values.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        shares = (row * (np.log2(row) - np.log2(whole) - np.log2(p)) for row, p in zip(values, prior, strict=True))
        return sum((np.nan_to_num(share) for share in shares), np.zeros(whole.shape))


def best_guess_changes(densities: Callable[[Array], Array], nodes: Array) -> Array:
    """Return the outputs at which another secret becomes the likeliest: the best guess has a kink there."""
    points = np.sort(nodes.reshape(-1))
    known = densities(points)
    guesses = np.argmax(known, axis=0)
    place = np.flatnonzero(np.diff(guesses))
    # Secrets that are equally likely but for rounding take turns without a kink.
    left, right = guesses[place], guesses[place + 1]
    gaps = known[left, place] - known[right, place], known[right, place + 1] - known[left, place + 1]
    place = place[np.maximum(*gaps) * (points[place + 1] - points[place]) > TIE]
    low, high, before = points[place], points[place + 1], guesses[place]
    for _ in range(BISECTIONS if len(place) else 0):
        middle = (low + high) / 2
        same = np.argmax(densities(middle), axis=0) == before
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return np.asarray(high)
