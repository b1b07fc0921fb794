"""Decisions by samples, wrong with a stated probability: where answers of a query cannot be listed exactly.

A first run says which outputs are foreseen. A second one, of other draws, judges them: how often each secret came up
with each output is binomial, so that intervals hold for all outputs together (Bonferroni), as their number was fixed
before. It also bounds the probability of an output that was not foreseen. Draws are made anew for every query: no
query, however it was chosen, can have been fitted to them.
"""

import math
from collections.abc import Hashable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import numpy as np
import scipy

from privug.attack import Attack
from privug.errors import UnsuitableEngine
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.joint import Joint
from privug.leakage.finite import Pairs, distinct_values, pairs_of, shares_of
from privug.model.node import Array, Kind
from privug.model.values import key_of
from privug.policy.clauses import BoundsClause
from privug.policy.monitoring.clause_tasks import ClauseTask
from privug.policy.output_levels import SEEN, ConstantLevel, ListedLevels, OutputLevels
from privug.policy.policies import Clause, allowing, error_allowed
from privug.policy.verdict import Evidence, Status

LIFELONG = 0.05
"""How likely a monitor may be wrong by chance, over all its decisions."""
MOST_SAMPLES = 4_000_000
MOST_OUTPUTS = 5_000


def share_of_error(decision: int) -> float:
    """Return how much of the lifelong probability of error a decision by samples gets, the first being number 1.

    The shares are proportional to 1 / k^2, so that those of all decisions, however many, add up to the whole.
    """
    return LIFELONG * 6 / (math.pi * decision) ** 2


@dataclass(frozen=True)
class SamplingPlan:
    """How a decision is sampled: how many draws, from which seed, and how likely it may be wrong."""

    samples: int
    seed: int
    error: float

    @property
    def enough(self) -> int:
        """So many draws that outputs that were not foreseen can be shown to be as unlikely as they must be."""
        return min(MOST_SAMPLES, max(self.samples, math.ceil(3 * math.log(4 / self.error) / self._mass)))

    @property
    def _mass(self) -> float:
        return self.error / 4

    def looks(self) -> list["SamplingPlan"]:
        """Return the draws to look at: fewer come first if these are many, as to refuse needs no certainty."""
        first = replace(self, error=LIFELONG)
        return [first, self] if first.enough < self.enough else [self]

    def foresee(self, attack: Attack, seconds: float | None) -> set[Hashable]:
        """Return the keys of the outputs that come up in a first run."""
        result = attack.run(None, engine="sample", samples=self.enough, seed=self.seed, seconds=seconds)
        outputs = shares_of(result.prediction).values
        if len(outputs) > MOST_OUTPUTS:
            raise UnsuitableEngine(f"it has more than {MOST_OUTPUTS:,} different outputs: round the answer")
        return set(map(key_of, outputs))

    def judge(
        self, tasks: Sequence[ClauseTask], foreseen: AbstractSet[Hashable], seconds: float | None
    ) -> dict[Clause, list[OutputLevels]]:
        """Return what samples say of each clause after each output that is foreseen.

        Half of the error is for intervals; a quarter for the bound on outputs that were not foreseen, which must be
        less likely than the last quarter.
        """
        found: dict[Clause, list[OutputLevels]] = {task.clause: [] for task in tasks}
        for number, task in enumerate(tasks):
            seed = self.seed + 1 + number
            result = task.question.run(None, engine="sample", samples=self.enough, seed=seed, seconds=seconds)
            joint = result.joint
            if joint.weights is not None or joint.secret.groups is not None:
                raise UnsuitableEngine("its samples are weighted")
            self._check_unforeseen(joint, foreseen, len(tasks))
            with allowing(self.error / 2 / len(tasks)):
                found[task.clause].append(_levels(task, joint, foreseen, result.engine))
        return found

    def _check_unforeseen(self, joint: Joint, foreseen: AbstractSet[Hashable], tasks: int) -> None:
        known = shares_of(joint.output)
        count = len(joint.output.batch)
        missed = sum(
            round(share * count)
            for value, share in zip(known.values, known.probability, strict=True)
            if key_of(value) not in foreseen
        )
        confidence = 1 - self._mass / tasks
        bound = float(scipy.special.betaincinv(missed + 1, max(count - missed, 1e-300), confidence))
        if bound > self._mass:
            raise UnsuitableEngine(
                f"outputs that are not foreseen may have a probability of {bound:.2g}, more than the {self._mass:.2g} "
                "that is left for them: round the answer, or take more samples"
            )


def _levels(task: ClauseTask, joint: Joint, foreseen: AbstractSet[Hashable], engine: str) -> OutputLevels:
    clause = task.since_the_start()
    if joint.secret.kind is Kind.DISCRETE:
        pairs = _among(pairs_of(joint), foreseen)
        levels = clause.levels(pairs, task.origin if task.compares else joint.secret)
        if levels is not None:
            return ListedLevels.of_pairs(clause, levels, pairs, engine).with_missing(foreseen)
    if isinstance(task.clause, BoundsClause):
        return _one_by_one(clause, joint, foreseen, engine).with_missing(foreseen)
    return ConstantLevel(clause, Status.UNDECIDED, SEEN, reason=f"{clause.about} is known only where it is exact")


def _among(pairs: Pairs, foreseen: AbstractSet[Hashable]) -> Pairs:
    """Return the pairs of secrets and outputs whose outputs are foreseen."""
    known = np.array([key_of(output) in foreseen for output in pairs.outputs])
    kept = known[pairs.output]
    return replace(
        pairs,
        secret=pairs.secret[kept],
        output=(np.cumsum(known) - 1)[pairs.output[kept]],
        probability=pairs.probability[kept],
        squares=pairs.squares[kept],
        outputs=[output for output, is_known in zip(pairs.outputs, known, strict=True) if is_known],
    )


def _one_by_one(clause: Clause, joint: Joint, foreseen: AbstractSet[Hashable], engine: str) -> ListedLevels:
    """Return the number of a clause that needs the posterior samples of each output."""
    codes, outputs = distinct_values(joint.output.batch)
    places = [place for place, output in enumerate(outputs) if key_of(output) in foreseen]
    evidence = [_evidence(clause, joint, outputs[place], codes == place, len(places)) for place in places]
    return ListedLevels.of_evidence(
        clause, SEEN, evidence, [float(np.mean(codes == place)) for place in places], engine
    )


def _evidence(clause: Clause, joint: Joint, output: object, which: Array, outputs: int) -> Evidence:
    posterior = Belief(joint.secret.batch.take(which))
    share = Estimate(float(which.mean()), 0.0, 1.0, method="samples")
    with allowing(error_allowed() / outputs):
        return Evidence(output, clause.after(joint.secret, posterior), share, posterior)
