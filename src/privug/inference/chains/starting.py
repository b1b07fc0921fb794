"""Where chains start: at draws from the prior that agree with the observation, apart from each other.

Half of the chains start at any draws, the others among those that fit best: chains that all started at the best one
would agree with each other about the mode that it belongs to.
"""

import numpy as np

from privug.errors import ImpossibleObservation, NotConverged
from privug.inference.chains.problem import Problem
from privug.model.node import Array, Node
from privug.model.operations import SampleFailure
from privug.model.plan import Plan

ROUND = 1000
FEWEST_EACH = 20  # draws to choose from for each chain
BEST = 0.1  # of the draws
MOST_DRAWS = 200_000
MOST_OPAQUE_DRAWS = 20_000


def starting_points(problem: Problem, chains: int, seed: int) -> list[dict[Node, Array]]:
    """Return a starting point for each chain."""
    roots = list(problem.roots)
    plan = Plan(roots)
    rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(1 << 21,))))
    judged = Plan([problem.log_weight, *problem.conditions])
    most = MOST_OPAQUE_DRAWS if judged.is_opaque else MOST_DRAWS
    size = max(chains, min(ROUND, plan.block))
    found: dict[Node, list[Array]] = {root: [] for root in roots}
    logs: list[Array] = []
    tried = 0
    while tried < most and sum(map(len, logs)) < FEWEST_EACH * chains:
        tried += size
        try:
            values = dict(zip(roots, plan.run(size, rng), strict=True))
        except SampleFailure:
            continue
        weights = problem.logs(values)
        possible = np.isfinite(weights)
        logs.append(weights[possible])
        for root in roots:
            found[root].append(values[root][possible])
    together = np.concatenate(logs) if logs else np.zeros(0)
    if not len(together):
        raise _no_start(problem, tried)
    return [{root: np.concatenate(found[root])[place] for root in roots} for place in dispersed(together, chains)]


def dispersed(logs: Array, chains: int) -> Array:
    """Return which of some draws chains start at, by how well they fit; draws come in no order.

    >>> dispersed(np.array([0.0, -9.0, -5.0, -1.0]), 4)
    array([0, 0, 3, 3])
    """
    order = np.argsort(-logs, kind="stable")
    best = order[: max(chains // 2, round(BEST * len(logs)))]
    halves = np.linspace(0, len(best) - 1, chains // 2), np.linspace(0, len(logs) - 1, chains - chains // 2)
    return np.sort(np.concatenate([best[halves[0].astype(int)], halves[1].astype(int)]))


def _no_start(problem: Problem, tried: int) -> ImpossibleObservation | NotConverged:
    if not problem.conditions:
        return NotConverged(
            f"none of {tried:,} draws from the prior has a finite log density at the observation, so no chain "
            "can start; check the observation, or choose engine='rare'"
        )
    return ImpossibleObservation(
        f"none of {tried:,} draws from the prior agrees with the observation, so no chain can start: it is "
        "impossible or too rare for this engine; engine='rare' searches for rare observations"
    )
