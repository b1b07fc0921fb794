"""Draws behind walls are dropped, and chains cut to one length; sizes of tables are drawn given the rest."""

import numpy as np

from privug.errors import NotConverged
from privug.inference.chains.finishing import Chains
from privug.inference.chains.problem import Problem
from privug.model.node import Array, Node

SMALLEST_SHARE = 0.02


def trimmed(problem: Problem, roots: dict[Node, Array], divergences: int, remarks: tuple[str, ...] = ()) -> Chains:
    """Return the chains of draws that count; `roots` are arrays of chains by draws."""
    chains, draws = next(iter(roots.values())).shape[:2]
    flat = {root: array.reshape(chains * draws, *array.shape[2:]) for root, array in roots.items()}
    flat = problem.sized(flat)
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
