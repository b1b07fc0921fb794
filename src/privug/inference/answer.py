"""What an exact engine returns instead of samples, and the invariants that it has to satisfy."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy

from privug.errors import UnsuitableEngine
from privug.inference.belief import Belief
from privug.inference.joint import Joint
from privug.model.batch import Batch
from privug.model.node import Array, Kind

ROUNDING = 1e-9  # of probabilities that were computed in full
MOST_ERROR = 1e-3  # of probabilities that an answer may state and still be called exact
MOST_BITS = 0.05  # of error that an information may state and still be called exact


def checked_belief(what: str, belief: Belief, most_error: float = MOST_ERROR) -> Belief:
    """Return an exact belief if it is a distribution that is known well enough; refuse it otherwise."""
    _check_weights(what, belief.weights)
    if not 0 <= belief.error <= most_error:
        _refuse(f"{what} is known to no more than {belief.error:.0e}")
    return belief


def checked_joint(joint: Joint, secret: Belief | None, output: Belief | None) -> Joint:
    """Return an exact joint if it agrees with itself and with what is known about its sides; refuse it otherwise."""
    if joint.channel is None:
        _check_weights("the joint of secret and output", joint.weights)
        sides = _by_classes(joint) or (joint.secret, joint.output)
        for what, side, known in (("secret", sides[0], secret), ("output", sides[1], output)):
            checked_belief(f"the {what}", side)
            if known is not None:
                _check_marginal(what, side, known)
    if joint.information is not None:
        _check_information(joint)
    return joint


def _by_classes(joint: Joint) -> tuple[Belief, Belief] | None:
    """Return what classes of secrets say about the secret and the output, each by itself."""
    known = joint.classes
    if known is None:
        return None
    secret = replace(joint.secret, batch=known.secrets, weights=known.weights)
    return secret, replace(joint.output, batch=known.outputs, weights=known.marginal)


def _check_weights(what: str, weights: Array | None) -> None:
    if weights is None:
        return
    if not (np.all(np.isfinite(weights)) and np.all(weights >= 0) and abs(float(weights.sum()) - 1) <= ROUNDING):
        _refuse(f"the probabilities of {what} do not sum to one")


def _check_marginal(what: str, side: Belief, known: Belief) -> None:
    allowed = ROUNDING + side.error + known.error
    if known.curve is None and known.kind is Kind.DISCRETE:
        apart = _apart(side, known)
    else:
        apart, allowed = _apart_in_means(side, known), max(allowed, MOST_ERROR)
    if not apart <= allowed:
        _refuse(f"the joint has another distribution of the {what} than is known, by {apart:.0e}")


def _apart(side: Belief, known: Belief) -> float:
    """Return the total variation distance of two discrete beliefs."""
    if side.batch is known.batch and side.batch.each_once:
        same = side.weights is known.weights
        return 0.0 if same else float(np.abs(_weights(side) - _weights(known)).sum()) / 2
    weights = np.concatenate([_weights(side), -_weights(known)])
    codes, _ = Batch.concatenate([side.batch, known.batch]).coded()
    return float(np.abs(np.bincount(codes, weights)).sum()) / 2


def _apart_in_means(side: Belief, known: Belief) -> float:
    """Return by how much the expectations of smooth bounded functions differ between two beliefs about numbers.

    The functions are distribution functions of the normal distribution, which cells of quadrature integrate well.
    """
    here, there = side.batch.numbers(), known.batch.numbers()
    if here is None or there is None:
        return 0.0
    here, there = here.astype(float), there.astype(float)
    order = np.argsort(there, kind="stable")
    order = order[np.isfinite(there[order])]
    if not len(order):
        return 0.0
    shares = np.cumsum(_weights(known)[order])
    places = np.searchsorted(shares / shares[-1], (0.1, 0.25, 0.5, 0.75, 0.9))
    low, *middles, high = there[order][np.minimum(places, len(order) - 1)]
    unit = float(high - low) or 1.0
    sides = ((here, _weights(side)), (there, _weights(known)))
    apart = [
        float(np.subtract(*(weights @ scipy.special.ndtr((values - middle) / unit) for values, weights in sides)))
        for middle in (low, *middles, high)
    ]
    return max(map(abs, apart))


def _check_information(joint: Joint) -> None:
    told = joint.information
    assert told is not None
    if math.isnan(told.value) or told.low < 0 or told.high - told.value > MOST_BITS:
        _refuse(f"the information came out as {told}")
    for what, side in (("secret", joint.secret), ("output", joint.output)):
        if side.kind is Kind.DISCRETE and joint.channel is None:
            most = _entropy(side)
            if not told.value <= most + ROUNDING + 2 * (told.high - told.value):
                _refuse(
                    f"the information came out as {told.value:.6g} bit, above the {what}'s entropy of {most:.6g} bit"
                )


def _entropy(side: Belief) -> float:
    codes, _ = side.batch.coded()
    return float(scipy.special.entr(np.bincount(codes, _weights(side))).sum()) / math.log(2)


def _weights(belief: Belief) -> Array:
    count = len(belief.batch)
    return np.full(count, 1 / count) if belief.weights is None else belief.weights


def _refuse(what: str) -> None:
    raise UnsuitableEngine(f"engine='exact' cannot resolve this: {what}; engine='sample' can serve")


@dataclass(frozen=True)
class Exact:
    """Beliefs about secret, output and a further quantity given the observation, and the joint of the first two.

    A belief that only the joint can give is None. `part` is the way it was computed, such as 'finite'; `source`
    says from what, as a report would. `joint` computes the joint when it is asked for, and may raise UnsuitableEngine.
    """

    part: str
    source: str
    beliefs: tuple[Belief | None, ...]
    joint: Callable[[], Joint]

    def __post_init__(self) -> None:
        for name, belief in zip(("secret", "output", "query"), self.beliefs, strict=False):
            if belief is not None:
                # Far out, the output is known worse than what follows from it; its belief says so.
                checked_belief(f"the {name}", belief, 1.0 if name == "output" else MOST_ERROR)

    def joint_before(self) -> Joint:
        """Return the joint of an answer without an observation, once it is seen to agree with the beliefs in it."""
        return checked_joint(self.joint(), self.beliefs[0], self.beliefs[1])

    @property
    def engine(self) -> str:
        """The name of the engine with the part of it that served."""
        return f"exact ({self.part})"
