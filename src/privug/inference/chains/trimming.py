"""Draws behind walls are dropped, and chains cut to one length; sizes of tables are drawn given the rest.

Of discrete roots without a largest value only the likely values are listed. Draws at the last one that is listed say
that the answer lies beyond; it is refused then.
"""

import math
from typing import Any

import numpy as np

from privug.errors import NotConverged, UnsuitableEngine
from privug.inference.chains.finishing import Chains
from privug.inference.chains.problem import Problem
from privug.model.node import Array, ConstantValue, Node
from privug.prior.family import family_of
from privug.prior.scalar import ScalarFamily

SMALLEST_SHARE = 0.02
LARGEST_SHARE_AT_END = 1e-3


def trimmed(problem: Problem, roots: dict[Node, Array], divergences: int, remarks: tuple[str, ...] = ()) -> Chains:
    """Return the chains of draws that count; `roots` are arrays of chains by draws."""
    chains, draws = next(iter(roots.values())).shape[:2]
    flat = {root: array.reshape(chains * draws, *array.shape[2:]) for root, array in roots.items()}
    flat = problem.sized(flat)
    for root, listed in problem.listed.items():
        if root in flat:
            _check_ends(root, listed, flat[root])
    kept = problem.kept(flat).reshape(chains, draws)
    length = int(kept.sum(axis=1).min())
    if length < max(2, SMALLEST_SHARE * draws):
        raise NotConverged(
            f"only {kept.mean():.2%} of the draws agree with the observation, so no answer is given; "
            "choose engine='rare' or 'sample'"
        )
    if length == draws:  # copying many draws of many numbers takes as much memory again
        cut = {root: array.reshape(chains, draws, *array.shape[1:]) for root, array in flat.items()}
    else:
        remarks = (*remarks, f"{1 - kept.mean():.1%} of the draws lay outside of what was seen, and were dropped")
        places = [chain * draws + np.flatnonzero(kept[chain])[:length] for chain in range(chains)]
        cut = {root: array[np.stack(places)] for root, array in flat.items()}
    return Chains(cut, divergences, spent=chains * draws, remarks=(*problem.remarks, *remarks))


def _check_ends(root: Node, listed: Array, draws: Array) -> None:
    """Refuse draws of a discrete root at the last value listed, if beyond it there are others."""
    for last, is_open in last_values(root, listed):
        if is_open and np.mean(draws == last) > LARGEST_SHARE_AT_END:
            raise UnsuitableEngine(
                f"the observation says that an input {family_of(root).name} is {last} or further out, where its prior "
                "has next to no probability, and chains list likely values only; choose engine='exact' or 'rare'"
            )


def last_values(root: Node, listed: Array) -> list[tuple[Any, bool]]:
    """Return the smallest and the largest value listed, and whether there are others beyond."""
    low, high = _ends(root)
    return [(listed.min(), bool(listed.min() > low)), (listed.max(), bool(listed.max() < high))]


def _ends(root: Node) -> tuple[float, float]:
    """Return the smallest and the largest value of a discrete root, as far as they are known."""
    family = family_of(root)
    if not isinstance(family, ScalarFamily):
        return math.inf, -math.inf
    low, high = family.ends_of(root.parents)
    return _known(low, math.inf), _known(high, -math.inf)


def _known(end: Node | float, otherwise: float) -> float:
    if not isinstance(end, Node):
        return end
    if not isinstance(end.operation, ConstantValue):
        return otherwise
    return float((np.min if otherwise > 0 else np.max)(end.operation.array))
