"""Channel: a finite joint of secret and output whose pairs are too many to list, computed block by block."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from privug.model.node import Array


@dataclass(frozen=True)
class Block:
    """The probabilities of some secrets with a range of outputs: rows are secrets, which no other block has."""

    first_output: int
    probabilities: Array


@dataclass(frozen=True)
class Summary:
    """What one pass over all pairs gives: entropies in bits and the chance of a best guess."""

    joint_entropy: float
    secret_entropy: float
    output_entropy: float
    bayes_vulnerability: float


@dataclass(frozen=True, eq=False)
class Channel:
    """The pairs of a finite joint in blocks of whole secrets, computed anew whenever they are asked for."""

    secrets: int
    outputs: int
    states: int
    blocks: Callable[[], Iterator[Block]]

    @cached_property
    def summary(self) -> Summary:
        """The sums over all pairs that the measures need, from one pass."""
        marginal, best = np.zeros(self.outputs), np.zeros(self.outputs)
        joint, secret = [], []
        for block in self.blocks():
            cells = block.probabilities
            columns = slice(block.first_output, block.first_output + cells.shape[1])
            marginal[columns] += cells.sum(axis=0)
            np.maximum(best[columns], cells.max(axis=0), out=best[columns])
            joint.append(_entropy(cells))
            secret.append(_entropy(cells.sum(axis=1)))
        return Summary(math.fsum(joint), math.fsum(secret), _entropy(marginal), min(1.0, float(best.sum())))

    def mutual_information(self) -> float:
        """Return the mutual information of secret and output in bits."""
        known = self.summary
        return max(0.0, known.secret_entropy + known.output_entropy - known.joint_entropy)

    def bayes_vulnerability(self) -> float:
        """Return the probability of guessing the secret right in one try, after seeing the output."""
        return self.summary.bayes_vulnerability


def _entropy(probabilities: Array) -> float:
    return float(scipy.special.entr(probabilities).sum()) / math.log(2)
