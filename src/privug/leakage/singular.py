"""Whether samples of continuous quantities show a relation without noise, which makes their information infinite.

Around a sample, a smooth relation looks linear: the closer the neighbours, the better. Noise does not: the closer the
neighbours, the more it shows. So the angle between what the two sides span among a few neighbours is compared with the
angle among the neighbours in an eighth of the samples.
"""

import numpy as np
import scipy

from privug import settings
from privug.leakage.sides import Side
from privug.model.node import Array

FEWEST = 64  # samples below which nothing is said
LOOKED_AT = 400
SHARE = 0.1  # of the samples that must lie on the relation
ROUNDING = 1e-7
CLOSER = 0.6  # the angle in all samples, relative to that in an eighth of them: an eighth on a smooth curve


def is_singular(secret: Side, output: Side) -> bool:
    """Say whether part of the joint lies on a smooth relation of both sides, so that their information is infinite."""
    if not (secret.raw.size and output.raw.size):
        return False
    loose = np.flatnonzero(_vary(secret.raw) & _vary(output.raw))
    if len(loose) < max(FEWEST, SHARE * len(secret.raw)):
        return False
    order = np.random.default_rng(0).permutation(loose)
    some = order[: len(order) // 8 if len(order) >= 8 * FEWEST else len(order) // 4]
    fine, coarse = (float(np.quantile(_sines(secret, output, rows), SHARE)) for rows in (order, some))
    return fine < ROUNDING or (fine < 0.2 and fine < CLOSER * coarse)


def _vary(raw: Array) -> Array:
    """Say which samples hold finite numbers that no other sample holds."""
    single: Array = np.all(np.isfinite(raw), axis=1)
    for part in raw.T:
        _, inverse, counts = np.unique(part, return_inverse=True, return_counts=True)
        single &= counts[inverse.reshape(-1)] == 1
    return single


def _sines(secret: Side, output: Side, rows: Array) -> Array:
    """Return the sine of the smallest angle between the spans of both sides among the neighbours of some rows."""
    points = np.hstack((secret.points[rows], output.points[rows]))
    wanted = 2 * (secret.raw.shape[1] + output.raw.shape[1]) + 2
    tree = scipy.spatial.cKDTree(points)
    around = tree.query(points[:LOOKED_AT], wanted + 1, p=np.inf, workers=settings.current().workers)[1]
    around = rows[np.asarray(around)]
    left, right = (_span(side.raw[around[:, 1:]] - side.raw[around[:, :1]]) for side in (secret, output))
    rest = right - left @ (np.swapaxes(left, 1, 2) @ right)
    sines: Array = np.linalg.svd(rest, compute_uv=False).min(axis=1)
    return sines


def _span(steps: Array) -> Array:
    """Return an orthonormal basis of the columns of each matrix; columns are scaled first, so that units are equal."""
    largest = np.abs(steps).max(axis=1, keepdims=True)
    basis: Array = np.linalg.svd(steps / np.where(largest > 0, largest, 1), full_matrices=False)[0]
    return basis
