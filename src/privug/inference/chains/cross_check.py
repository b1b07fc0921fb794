"""Chains held against weighted draws from the prior: where those tell enough, modes that no chain found show."""

import importlib
import math
from collections.abc import Mapping

import numpy as np
import scipy

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
MOST_NUMBERS = 1 << 22  # drawn at a time
MOST_ROUNDS = 7
FEWEST_EFFECTIVE = 100.0
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
LARGEST_SCORE = 6.0  # standard errors between the two, over some hundred comparisons
TYPICAL = 0.1  # of the draws of chains explain the observation worse than what is taken for typical of them
BEYOND = 0.01  # of the posterior at most lies beyond all draws of chains worth eight hundred samples
ENOUGH = 400  # draws that fit as well as those of the chains
CHANCE = 1e-5  # of draws beyond, at which they are no accident


def check_against_prior(problem: Problem, chains: Chains, engine: str) -> None:
    """Refuse chains that draws from the prior contradict: by their weights, or by where those lie that fit as well."""
    rounds = 0
    fits: list[tuple[dict[Node, Array], Array]] = []
    typical = _typical(problem, chains)
    while rounds < MOST_ROUNDS and sum(len(logs) for _, logs in fits) < ENOUGH:
        values, logs = _drawn(problem, rounds)
        if rounds == 0:
            _compare(problem, chains, values, logs, engine)
        fits.append(_selected(values, logs, logs >= typical))
        rounds = MOST_ROUNDS if _is_opaque(problem) else rounds + 1
    joined = {root: np.concatenate([part[root] for part, _ in fits]) for root in fits[0][0]}
    _look_beyond(problem, chains, joined, np.concatenate([logs for _, logs in fits]), typical, engine)


def _selected(values: Mapping[Node, Array], logs: Array, which: Array) -> tuple[dict[Node, Array], Array]:
    return {root: array[which] for root, array in values.items()}, logs[which]


def _typical(problem: Problem, chains: Chains) -> float:
    """Return the log weight that nearly all draws of the chains have."""
    return float(np.quantile(problem.logs(chains.flat()), TYPICAL, method="lower"))


def _look_beyond(
    problem: Problem, chains: Chains, values: Mapping[Node, Array], logs: Array, typical: float, engine: str
) -> None:
    """Refuse chains that have never been where draws from the prior explain the observation as well as theirs.

    Draws whose weight is typical of the chains, each kept by its weight over the largest, follow the posterior there.
    Few of them tell whether a part of it lies beyond all draws of the chains.
    """
    if not len(logs):
        return
    rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence(problem.seed, spawn_key=(1 << 24,))))
    kept, _ = _selected(values, logs, np.log(rng.random(len(logs))) < logs - logs.max())
    try:
        expected = _numbers(problem, kept, 1)
    except ProgramError:  # on inputs that no chain came to
        return
    for name, array in _numbers(problem, chains.flat(), chains.shape[0]).items():
        for part, other in zip(parts_of(array), parts_of(expected[name]), strict=True):
            outside = int(np.count_nonzero((other < part.min()) | (other > part.max())))
            if varies(part, other) and scipy.special.bdtrc(outside - 1, other.size, BEYOND) < CHANCE:
                raise _missed(engine, f"{other.size:,} samples", name)


def _compare(problem: Problem, chains: Chains, values: dict[Node, Array], logs: Array, engine: str) -> None:
    """Refuse chains that differ from weighted draws; where such draws are worth little, do nothing."""
    drawn = _weighted(values, logs)
    if drawn is None:
        return
    values, weights = drawn
    effective = 1.0 / float((weights**2).sum())
    try:
        expected = _numbers(problem, values, 1)
    except ProgramError:  # on inputs that no chain came to
        return
    found = _numbers(problem, chains.flat(), chains.shape[0])
    for name, array in found.items():
        for part, other in zip(parts_of(array), parts_of(expected[name]), strict=True):
            if varies(part, other) and _score(part, other[0], weights, effective) > LARGEST_SCORE:
                raise _missed(engine, f"{effective:,.0f} samples", name)


def _missed(engine: str, samples: str, name: str) -> NotConverged:
    return NotConverged(
        f"engine={engine!r}: the chains agree with each other, but not with {samples} from the prior about {name}: "
        "they missed a part of the posterior, so no answer is given; choose engine='sample' or 'rare'"
    )


def _is_opaque(problem: Problem) -> bool:
    return Plan([problem.log_weight, *problem.conditions]).is_opaque


def _drawn(problem: Problem, number: int) -> tuple[dict[Node, Array], Array]:
    """Return draws from the prior that agree with the observation, and their log weights."""
    roots = list(problem.roots)
    size = sum(math.prod(root.shape) for root in roots)
    most = MOST_NUMBERS // max(1, size)
    samples = min(OPAQUE_DRAWS if _is_opaque(problem) else DRAWS << number, most)
    rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence(problem.seed, spawn_key=(1 << 23, number))))
    try:
        values = problem.sized(dict(zip(roots, Plan(roots).run(samples, rng), strict=True)))
        logs = np.where(problem.kept(values), problem.logs(values), -np.inf)
    except SampleFailure:
        return {root: np.empty((0, *root.shape), root.dtype) for root in roots}, np.empty(0)
    return _selected(values, logs, np.isfinite(logs))


def _weighted(values: dict[Node, Array], logs: Array) -> tuple[dict[Node, Array], Array] | None:
    """Return draws from the prior with their weights, if those are worth something."""
    if len(logs) < FEWEST_EFFECTIVE:
        return None
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    shape = pareto_k(logs)
    if (shape is not None and shape > LARGEST_PARETO_K) or (weights**2).sum() > 1 / FEWEST_EFFECTIVE:
        return None
    return values, weights


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
