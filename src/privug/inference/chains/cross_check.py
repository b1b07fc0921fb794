"""Chains held against weighted draws from the prior: where those tell enough, modes that no chain found show."""

import importlib
import math
from collections.abc import Mapping

import numpy as np

from privug.errors import NotConverged, ProgramError
from privug.inference.chains.diagnosis import numbers_of, parts_of, varies
from privug.inference.chains.finishing import Chains
from privug.inference.chains.problem import Problem
from privug.inference.diagnostics import LARGEST_PARETO_K, pareto_k
from privug.model.node import Array, Node
from privug.model.operations import SampleFailure
from privug.model.plan import Plan

DRAWS = 20_000
OPAQUE_DRAWS = 2_000
MOST_NUMBERS = 1 << 22
FEWEST_EFFECTIVE = 100.0
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
LARGEST_SCORE = 6.0  # standard errors between the two, over some hundred comparisons


def check_against_prior(problem: Problem, chains: Chains, engine: str) -> None:
    """Refuse chains that weighted draws from the prior contradict; where such draws are worth little, do nothing."""
    drawn = _weighted(problem)
    if drawn is None:
        return
    values, weights = drawn
    effective = 1.0 / float((weights**2).sum())
    count = chains.shape[0]
    try:
        expected = _numbers(problem, values, 1)
    except ProgramError:  # on inputs that no chain came to
        return
    found = _numbers(problem, chains.flat(), count)
    for name, array in found.items():
        for part, other in zip(parts_of(array), parts_of(expected[name]), strict=True):
            if varies(part, other) and _score(part, other[0], weights, effective) > LARGEST_SCORE:
                raise NotConverged(
                    f"engine={engine!r}: the chains agree with each other, but not with {effective:,.0f} samples from "
                    f"the prior about {name}: they missed a part of the posterior, so no answer is given; "
                    "choose engine='sample'"
                )


def _weighted(problem: Problem) -> tuple[dict[Node, Array], Array] | None:
    """Return draws from the prior that agree with the observation and their weights, if those are worth something."""
    roots = list(problem.roots)
    size = sum(math.prod(root.shape) for root in roots)
    opaque = Plan([problem.log_weight, *problem.conditions]).is_opaque
    samples = min(OPAQUE_DRAWS if opaque else DRAWS, MOST_NUMBERS // max(1, size))
    rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence(problem.seed, spawn_key=(1 << 23,))))
    try:
        values = problem.sized(dict(zip(roots, Plan(roots).run(samples, rng), strict=True)))
        logs = np.where(problem.kept(values), problem.logs(values), -np.inf)
    except SampleFailure:
        return None
    possible = np.isfinite(logs)
    if possible.sum() < FEWEST_EFFECTIVE:
        return None
    weights = np.exp(logs[possible] - logs[possible].max())
    weights /= weights.sum()
    shape = pareto_k(logs[possible])
    if (shape is not None and shape > LARGEST_PARETO_K) or (weights**2).sum() > 1 / FEWEST_EFFECTIVE:
        return None
    return {root: array[possible] for root, array in values.items()}, weights


def _numbers(problem: Problem, values: Mapping[Node, Array], chains: int) -> dict[str, Array]:
    secret, output = problem.evaluate(values)
    found = {**numbers_of("the secret", secret, chains), **numbers_of("the output", output, chains)}
    for name, root in zip(problem.names, problem.roots, strict=True):
        array = values.get(root)
        if array is not None:
            found[name] = array.reshape(chains, -1, *array.shape[1:])
    return found


def _score(part: Array, other: Array, weights: Array, effective: float) -> float:
    """Return by how many standard errors the shares below some values differ, at most."""
    worst = 0.0
    for cut in np.quantile(part, LEVELS):
        for below, under in ((part < cut, other < cut), (part <= cut, other <= cut)):
            share, expected = float(below.mean()), float(weights @ under)
            pooled = min(max((share + expected) / 2, 1 / effective), 1 - 1 / effective)
            independent = _effective(below)
            error = math.sqrt(pooled * (1 - pooled) * (1 / effective + 1 / independent))
            worst = max(worst, abs(share - expected) / error)
    return worst


def _effective(below: Array) -> float:
    """Return how many independent draws tell as much about a share."""
    if below.all() or not below.any():
        return float(below.size)
    seam = importlib.import_module("privug.inference.chains.arviz_seam")
    found = seam.bulk_ess(below.astype(float))
    return min(float(below.size), max(found, 1.0)) if math.isfinite(found) else 1.0
