"""Whether chains agree with each other: R-hat, effective draws and divergences, and the refusal of those that fail.

What is judged, and the limits (Vehtari, Gelman, Simpson, Carpenter and Bürkner, Bayesian Analysis 16, 2021):

* rank-normalised split R-hat at most 1.01, or what chance alone gives chains of so few effective draws;
* bulk and tail effective sample size at least 100 for each chain;
* at most one divergent transition in a hundred draws.

Passing is necessary, not sufficient: chains may agree on a part of the posterior that none of them left.
"""

import importlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy
from scipy.special import chdtri

from privug.errors import ArgumentError, NotConverged, ProgramError
from privug.estimate import Estimate
from privug.inference.answer import NAMES, Options, SampledAnswer, normalised
from privug.inference.belief import Belief
from privug.inference.case_plan import settled
from privug.inference.chains.problem import Problem
from privug.inference.diagnostics import LARGEST_PARETO_K, Diagnostics, pareto_k, refuse_heavy
from privug.inference.sampling import FEWEST_SAMPLES, generator
from privug.model.batch import Batch, Column
from privug.model.node import Array, Node
from privug.model.operations import SampleFailure
from privug.model.plan import Plan

LARGEST_R_HAT = 1.01
CHANCE = 1e-3
"""How often chains that agree may be refused for an R-hat above what chance gives."""
FEWEST_PER_CHAIN = 100
LARGEST_SHARE_OF_DIVERGENCES = 0.01
ROUNDING = 1e-11
MOST_PARTS = 12  # of an array, judged in place of all


@dataclass(frozen=True)
class Diagnosis:
    """How well chains agree, over all quantities judged: the worst of each."""

    chains: int
    draws: int
    r_hat: float
    bulk_ess: float
    tail_ess: float
    divergences: int
    worst: str
    """The quantity with the largest R-hat."""
    numbers: int = 1
    """How many numbers were judged."""

    @property
    def r_hat_by_chance(self) -> float:
        """What R-hat may be by chance, of the worst of so many numbers.

        R-hat of chains that agree exceeds 1 by half the variance of the means of their m halves, in units of the
        variance of a draw: by m / (2 ESS) times chi-squared over its m - 1 degrees of freedom.
        """
        halves = 2 * self.chains
        spread = float(chdtri(halves - 1, CHANCE / self.numbers)) / (halves - 1)
        return 1 + spread * halves / 2 / max(min(self.bulk_ess, self.tail_ess), 1.0)


def diagnose(quantities: Mapping[str, Array], divergences: int = 0) -> Diagnosis:
    """Judge draws by quantity, each an array of chains by draws by whatever shape one value has."""
    seam = importlib.import_module("privug.inference.chains.arviz_seam")
    parts = [(name, part) for name, array in quantities.items() for part in parts_of(array)]
    shape = parts[0][1].shape if parts else (0, 0)
    varied = [(name, part) for name, part in parts if varies(part)]
    rated = [(_told(seam.r_hat(part), math.inf), name) for name, part in varied]
    worst = max(rated, default=(1.0, ""))
    whole = float(math.prod(shape))
    bulk = min((_told(seam.bulk_ess(part), 0.0) for _, part in varied), default=whole)
    # A tail that is one value, as of a truth value, varies in no tail.
    tails = [seam.tail_ess(part) for _, part in varied]
    tail = min((one for one in tails if not math.isnan(one)), default=whole)
    return Diagnosis(shape[0], shape[1], worst[0], bulk, tail, divergences, worst[1], max(1, len(varied)))


def judged(diagnosis: Diagnosis, engine: str, advice: Sequence[str] = ()) -> Diagnosis:
    """Return a diagnosis that is good enough, or raise NotConverged with what is wrong and what to try."""
    complaint = _complaint(diagnosis)
    if complaint is None:
        return diagnosis
    tries = [*advice, "raise samples=", "choose another engine, such as engine='rare'"]
    raise NotConverged(f"engine={engine!r}: {complaint}, so no answer is given; " + ", or ".join(tries))


def _complaint(diagnosis: Diagnosis) -> str | None:
    chains, draws = diagnosis.chains, diagnosis.chains * diagnosis.draws
    fewest = min(FEWEST_PER_CHAIN * chains, draws / 2)
    if diagnosis.divergences > LARGEST_SHARE_OF_DIVERGENCES * draws:
        return f"{diagnosis.divergences:,} of {draws:,} draws are divergent: the posterior is too sharp for these steps"
    if diagnosis.r_hat > max(LARGEST_R_HAT, diagnosis.r_hat_by_chance) or diagnosis.bulk_ess < fewest:
        return (
            f"the {chains} chains do not agree about {diagnosis.worst} (R-hat {diagnosis.r_hat:.3g}, {draws:,} draws "
            f"worth {diagnosis.bulk_ess:.0f} independent ones)"
        )
    if diagnosis.tail_ess < fewest:
        return f"{draws:,} draws are worth only {diagnosis.tail_ess:.0f} independent ones in the tails"
    return None


def numbers_of(name: str, batch: Batch, chains: int) -> dict[str, Array]:
    """Return a quantity as numbers by chains by draws: categories by their codes, structured values part by part."""
    columns = {name if len(batch.columns) == 1 else f"{name}[{k}]": c for k, c in enumerate(batch.columns)}
    return {label: _numbers(column, chains) for label, column in columns.items()}


def _numbers(column: Column, chains: int) -> Array:
    array = column.array if column.array.dtype.kind in "bif" else column.distinct()[0]
    return np.asarray(array, float).reshape(chains, -1, *array.shape[1:])


def varies(*parts: Array) -> bool:
    """Say whether a number is not the same in all draws, up to rounding: an output that was seen exactly is."""
    low, high = min(part.min() for part in parts), max(part.max() for part in parts)
    return bool(high - low > ROUNDING * max(abs(low), abs(high)))


def parts_of(array: Array) -> list[Array]:
    """Return single numbers out of an array of them, evenly spread if there are many."""
    flat = np.asarray(array, float).reshape(*array.shape[:2], -1)
    if not flat.size:
        return []
    chosen = np.unique(np.linspace(0, flat.shape[2] - 1, MOST_PARTS).round().astype(int))
    # Infinite values are very large ones: ranks are all that matters.
    return [
        part if np.all(np.isfinite(part)) else np.nan_to_num(part, nan=0.0, posinf=1e300, neginf=-1e300)
        for part in (flat[:, :, place] for place in chosen)
    ]


def _told(value: float, otherwise: float) -> float:
    return otherwise if math.isnan(value) else float(value)


GROUPS_PER_CHAIN = 8
FEWEST_DRAWS = 1000  # of a chain: compiling takes longer, and chains are judged the better
FEWEST_LARGE_DRAWS = 250  # of a chain that takes much memory
MOST_EXTRA_BYTES = 64 << 20
MOST_BYTES = 6 << 30

Values = Mapping[Node, Array]
"""Draws of the random roots, one row a sample."""


@dataclass(frozen=True)
class Chains:
    """What a sampler leaves behind: draws of the random roots, each an array of chains by draws by one value's shape.

    `log_weights`, of chains by draws, correct for a target that is not quite the posterior; minus infinity leaves
    a draw out. `spent` counts draws with those that were thrown away. `evidence` is the probability of the observation,
    where the sampler can tell.
    """

    roots: Mapping[Node, Array]
    divergences: int = 0
    log_weights: Array | None = None
    spent: int = 0
    evidence: Estimate | None = None
    remarks: tuple[str, ...] = field(default=())

    @property
    def shape(self) -> tuple[int, int]:
        """How many chains of how many draws."""
        first = next(iter(self.roots.values()))
        return int(first.shape[0]), int(first.shape[1])

    def flat(self) -> dict[Node, Array]:
        """Return the draws one after the other, chain by chain."""
        chains, draws = self.shape
        return {node: array.reshape(chains * draws, *array.shape[2:]) for node, array in self.roots.items()}


def draws_of_each(roots: Sequence[Node], samples: int, chains: int, fewest: int = FEWEST_DRAWS) -> int:
    """Return how many draws of each chain to make: more than asked for, where those are few and small."""
    bytes_each = 8 * max(1, sum(math.prod(root.shape) for root in roots))
    if bytes_each * samples > MOST_BYTES:
        raise ArgumentError(
            f"samples: {samples:,} draws of {bytes_each // 8:,} numbers need too much memory; write at most "
            f"{MOST_BYTES // bytes_each:,}"
        )
    fewest = min(fewest, max(FEWEST_LARGE_DRAWS, MOST_EXTRA_BYTES // (bytes_each * chains)))
    return max(fewest, -(-samples // chains))


Evaluate = Callable[[Values, Callable[..., Any] | None], tuple[Batch, ...]]
"""From draws of the roots to secret and output on them, and to a further query."""


def finished(
    evaluate: Evaluate, chains: Chains, engine: str, started: float, options: Options, *, judging: bool = True
) -> SampledAnswer:
    """Return the answer that chains of draws are, or raise NotConverged if they do not agree."""
    count, draws = chains.shape
    samples, values = options["samples"], chains.flat()
    quantities = tuple(settled(batch) for batch in evaluate(values, options.get("extra")))
    asked: dict[str, Array] = {}
    for name, batch in zip(NAMES, quantities, strict=False):
        asked |= numbers_of(name, batch, count)
    roots = {f"input {position}": array for position, array in enumerate(chains.roots.values())}
    diagnosis = diagnose({**asked, **roots}, chains.divergences)
    if judging:
        judged(diagnosis, engine)
    weights = None if chains.log_weights is None else chains.log_weights.reshape(-1)
    shape, few = pareto_k(weights), f"engine={engine!r}: a few draws"
    refuse_heavy(shape, few, ", so no answer is given; raise samples=, or choose engine='rare'")
    groups = min(GROUPS_PER_CHAIN, max(1, draws // 2)) * count
    worth = Belief(quantities[0], normalised(weights), groups=groups).effective_samples  # of the secret
    if judging and worth < min(FEWEST_SAMPLES, samples):
        raise NotConverged(
            f"engine={engine!r}: {count * draws:,} draws of {count} chains are worth only {worth:.0f} independent "
            f"samples of the secret, fewer than {FEWEST_SAMPLES}, so no answer is given; raise samples=, or choose "
            "engine='rare'"
        )
    diagnostics = _diagnostics(chains, diagnosis, worth, shape, samples, time.perf_counter() - started)
    query = partial(_further, evaluate, values)
    return SampledAnswer(quantities, weights, diagnostics, groups=groups, engine=engine, on_samples=query, chains=count)


def _further(evaluate: Evaluate, values: Values, query: Callable[..., Any]) -> Batch:
    """Ask one more question about the same draws."""
    return settled(evaluate(values, query)[2])


def _diagnostics(
    chains: Chains, diagnosis: Diagnosis, worth: float, shape: float | None, samples: int, seconds: float
) -> Diagnostics:
    count, draws = chains.shape
    remarks = list(chains.remarks)
    if diagnosis.divergences:
        remarks.append(f"{diagnosis.divergences} of {count * draws:,} draws are divergent: corners may be missed")
    if worth < samples / 2:
        remarks.append(f"{count * draws:,} draws of {count} chains are worth {worth:,.0f} independent samples")
    return Diagnostics(
        chains.spent or count * draws,
        count * draws,
        worth,
        chains.evidence,
        0,
        seconds=seconds,
        remarks=tuple(remarks),
        chains=count,
        r_hat=diagnosis.r_hat,
        bulk_ess=diagnosis.bulk_ess,
        tail_ess=diagnosis.tail_ess,
        divergences=diagnosis.divergences,
        pareto_k=shape,
    )


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
CHANCE_BEYOND = 1e-5  # of draws beyond, at which they are no accident


def check_against_prior(problem: Problem, chains: Chains, engine: str) -> None:
    """Refuse chains that draws from the prior contradict: by their weights, or by where those lie that fit as well."""
    rounds = 0
    fits: list[tuple[dict[Node, Array], Array]] = []
    # The log weight that nearly all draws of the chains have.
    typical = float(np.quantile(problem.logs(chains.flat()), TYPICAL, method="lower"))
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


def _look_beyond(
    problem: Problem, chains: Chains, values: Mapping[Node, Array], logs: Array, typical: float, engine: str
) -> None:
    """Refuse chains that have never been where draws from the prior explain the observation as well as theirs.

    Draws whose weight is typical of the chains, each kept by its weight over the largest, follow the posterior there.
    Few of them tell whether a part of it lies beyond all draws of the chains.
    """
    if not len(logs):
        return
    rng = generator(problem.seed, 1 << 24)
    kept, _ = _selected(values, logs, np.log(rng.random(len(logs))) < logs - logs.max())
    for name, part, other in _side_by_side(problem, chains, kept):
        outside = int(np.count_nonzero((other < part.min()) | (other > part.max())))
        if scipy.special.bdtrc(outside - 1, other.size, BEYOND) < CHANCE_BEYOND:
            raise _missed(engine, f"{other.size:,} samples", name)


def _side_by_side(problem: Problem, chains: Chains, values: Mapping[Node, Array]) -> Iterator[tuple[str, Array, Array]]:
    """Yield the numbers that vary, by name: those of the chains, and those of draws from the prior."""
    try:
        expected = _numbers_of_problem(problem, values, 1)
    except ProgramError:  # on inputs that no chain came to
        return
    for name, array in _numbers_of_problem(problem, chains.flat(), chains.shape[0]).items():
        for part, other in zip(parts_of(array), parts_of(expected[name]), strict=True):
            if varies(part, other):
                yield name, part, other


def _compare(problem: Problem, chains: Chains, values: dict[Node, Array], logs: Array, engine: str) -> None:
    """Refuse chains that differ from weighted draws; where such draws are worth little, do nothing."""
    drawn = _weighted(values, logs)
    if drawn is None:
        return
    values, weights = drawn
    effective = 1.0 / float((weights**2).sum())
    for name, part, other in _side_by_side(problem, chains, values):
        if _score(part, other[0], weights, effective) > LARGEST_SCORE:
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
    try:
        arrays = Plan(roots).run(samples, generator(problem.seed, 1 << 23, number))
        values = problem.sized(dict(zip(roots, arrays, strict=True)))
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


def _numbers_of_problem(problem: Problem, values: Mapping[Node, Array], chains: int) -> dict[str, Array]:
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
