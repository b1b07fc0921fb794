"""From the draws of chains to a run: what the program gives on them, whether they agree, and what they are worth."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from privug.errors import ArgumentError, NotConverged
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.case_plan import settled
from privug.inference.chains.diagnosis import Diagnosis, diagnose, judged, numbers_of
from privug.inference.diagnostics import LARGEST_PARETO_K, Diagnostics, pareto_k
from privug.inference.run_beliefs import normalised
from privug.inference.sampling import FEWEST_SAMPLES, Run
from privug.model.batch import Batch
from privug.model.node import Array, Node

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
    evaluate: Evaluate,
    chains: Chains,
    *,
    engine: str,
    samples: int,
    seconds: float,
    extra: Callable[..., Any] | None = None,
    judging: bool = True,
) -> Run:
    """Return the run that chains of draws are, or raise NotConverged if they do not agree."""
    count, draws = chains.shape
    values = chains.flat()
    quantities = tuple(settled(batch) for batch in evaluate(values, extra))
    asked: dict[str, Array] = {}
    for name, batch in zip(("the secret", "the output", "the query"), quantities, strict=False):
        asked |= numbers_of(name, batch, count)
    roots = {f"input {position}": array for position, array in enumerate(chains.roots.values())}
    diagnosis = diagnose({**asked, **roots}, chains.divergences)
    if judging:
        judged(diagnosis, engine)
    weights = None if chains.log_weights is None else chains.log_weights.reshape(-1)
    shape = _judged_weights(weights, engine)
    groups = min(GROUPS_PER_CHAIN, max(1, draws // 2)) * count
    worth = _worth(quantities, weights, groups)
    if judging and worth < min(FEWEST_SAMPLES, samples):
        raise NotConverged(
            f"engine={engine!r}: {count * draws:,} draws of {count} chains are worth only {worth:.0f} independent "
            f"samples of the secret, fewer than {FEWEST_SAMPLES}, so no answer is given; raise samples=, or choose "
            "engine='rare'"
        )
    diagnostics = _diagnostics(chains, diagnosis, worth, shape, samples, seconds)
    query = partial(_further, evaluate, values)
    return Run(quantities, weights, diagnostics, groups=groups, engine=engine, further=query, chains=count)


def _further(evaluate: Evaluate, values: Values, query: Callable[..., Any]) -> Batch:
    """Ask one more question about the same draws."""
    return settled(evaluate(values, query)[2])


def _worth(quantities: tuple[Batch, ...], log_weights: Array | None, groups: int) -> float:
    """Return of how many independent samples the secret is known."""
    return Belief(quantities[0], normalised(log_weights), groups=groups).effective_samples


def _judged_weights(log_weights: Array | None, engine: str) -> float | None:
    shape = pareto_k(log_weights)
    if shape is not None and shape > LARGEST_PARETO_K:
        raise NotConverged(
            f"engine={engine!r}: a few draws hold most of the weight (Pareto k {shape:.2f}, more than "
            f"{LARGEST_PARETO_K}), so no answer is given; raise samples=, or choose engine='rare'"
        )
    return shape


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
