"""Refinement: whether one channel is safer than another for every prior and every gain, with the proof of it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from privug.errors import ArgumentError, InferenceError
from privug.inference.joint import Joint
from privug.leakage.channel import Channel, as_channel
from privug.model.node import Array

ROUNDING = 1e-9
MOST_UNKNOWNS = 200_000


@dataclass(frozen=True, eq=False)
class Refinement:
    """Whether a channel is refined by another, and why.

    If so, `processing` is the matrix that turns the outputs of the first into those of the second: whoever sees the
    first could make the second of it. If not, `gain` (a row for each guess, a column for each secret) and `prior` are
    those of an attacker for whom the second is worth more than the first, by `advantage`.

    >>> import privug as pv
    >>> found = pv.leakage.refines([[1, 0], [0, 1]], [[0.9, 0.1], [0.1, 0.9]])
    >>> found.holds, found.processing.round(6).tolist()
    (True, [[0.9, 0.1], [0.1, 0.9]])
    """

    holds: bool
    processing: Array | None = None
    gain: Array | None = None
    prior: Array | None = None
    advantage: float = 0.0

    def __bool__(self) -> bool:
        return self.holds


def refines(channel: Channel | Joint, refined: Channel | Joint) -> Refinement:
    """Say whether `refined` never leaks more than `channel`, whatever the prior and the gain.

    It is so if and only if channel R = refined for a matrix R of probabilities: the refined channel is the other one
    followed by post-processing (the coriaceous theorem of McIver, Morgan, Smith, Espinoza and Meinicke, POST 2014). A
    linear program finds R, or else by duality a gain and a prior for which the leaks are ordered the other way.
    Differences below 1e-9 are taken for rounding.

    >>> noisy, noisier = Channel([[0.9, 0.1], [0.1, 0.9]]), Channel([[0.7, 0.3], [0.3, 0.7]])
    >>> bool(refines(noisy, noisier)), bool(refines(noisier, noisy))
    (True, False)
    """
    first, second = as_channel(channel), as_channel(refined)
    before, after = first.matrix, second.matrix[_same_order(first, second)]
    if before.shape[1] * after.shape[1] > MOST_UNKNOWNS:
        raise ArgumentError(
            f"refines: {before.shape[1]} outputs turned into {after.shape[1]} are too many for a linear program; "
            "compare capacities or leakages instead"
        )
    processing, separating = _program(before, after)
    advantage = float((separating * after).sum() - (separating.T @ before).max(axis=0).sum())
    if advantage <= ROUNDING:
        return Refinement(True, processing)
    gain = separating.T - separating.min(axis=1)
    gain /= gain.max()
    prior = np.full(len(before), 1 / len(before))
    return Refinement(False, None, gain, prior, _advantage(gain, before, after))


def _advantage(gain: Array, before: Array, after: Array) -> float:
    """Return by how much more the second channel is worth than the first, at the uniform prior."""
    first, second = (float((gain @ matrix).max(axis=0).sum()) / len(matrix) for matrix in (before, after))
    return second - first


def _program(before: Array, after: Array) -> tuple[Array, Array]:
    """Minimise the sum of |before R - after|; return R and the prices of the equations, a row for each secret."""
    secrets, outputs = before.shape
    products = after.shape[1]
    sparse: Any = scipy.sparse
    rest = sparse.eye_array(secrets * products)
    equations = sparse.hstack((sparse.kron(before, sparse.eye_array(products)), rest, -rest))
    sums = sparse.hstack(
        (
            sparse.kron(sparse.eye_array(outputs), np.ones((1, products))),
            sparse.coo_array((outputs, 2 * secrets * products)),
        )
    )
    cost = np.concatenate((np.zeros(outputs * products), np.ones(2 * secrets * products)))
    solution = scipy.optimize.linprog(
        cost,
        A_eq=sparse.vstack((equations, sums)).tocsr(),
        b_eq=np.concatenate((after.reshape(-1), np.ones(outputs))),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if solution.status != 0 or solution.x is None:
        raise InferenceError(f"refines: the linear program was not solved: {solution.message}")
    processing = np.maximum(solution.x[: outputs * products].reshape(outputs, products), 0.0)
    prices = solution.eqlin.marginals[: secrets * products].reshape(secrets, products)
    return processing / processing.sum(axis=1, keepdims=True), prices


def _same_order(first: Channel, second: Channel) -> list[int]:
    """Return the rows of the second channel in the order of the secrets of the first."""
    places = {secret: place for place, secret in enumerate(second.secrets)}
    if set(places) != set(first.secrets):
        raise ArgumentError("refines: both channels must have the same secrets")
    return [places[secret] for secret in first.secrets]
