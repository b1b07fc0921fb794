"""Single outputs: what the attacker believes after seeing one of them, and which of them reveals most."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy

from privug.arguments import represented
from privug.digits import how_many
from privug.errors import ArgumentError
from privug.estimate import CONFIDENCE, Estimate
from privug.inference.joint import Joint
from privug.leakage.finite import Pairs, alike_pairs, check_joint
from privug.leakage.ranges import Of, Row, belief_range, measure, pointwise_range
from privug.leakage.vulnerability import bayes_vulnerability, never_guessed
from privug.model.node import Array, Kind
from privug.pictures import plots

TAIL = (1 - CONFIDENCE) / 2
RARE = 1000  # times the error of probabilities, from which on beliefs given an output mean something


class Beliefs(NamedTuple):
    """The probability of the likeliest secret given each output, with its interval."""

    value: Array
    low: Array
    high: Array

    @property
    def worst(self) -> int:
        """Which output reveals most; of samples, which one surely reveals most."""
        return int(np.argmax(self.low))


@dataclass(frozen=True, eq=False, repr=False)
class PointwiseLeakage(Mapping[Any, Estimate]):
    """How much each output changes the chance of the attacker's best guess: output -> Estimate, in bits.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda x, y: x + y, prior={"x": pv.Bernoulli(0.5), "y": pv.Bernoulli(0.5)}, secret="x")
    >>> found = pv.leakage.pointwise_leakage(attack.run().joint)
    >>> found[2].value, found[1].value
    (1.0, 0.0)
    """

    outputs: Sequence[Any]
    bits: Beliefs
    method: str
    exact: bool

    @property
    def worst(self) -> Any:
        """The output that reveals most; of samples, the one that surely reveals most."""
        return self.outputs[self.bits.worst]

    def __getitem__(self, output: Any) -> Estimate:
        place = self._places[_key(output)]
        value, low, high = (float(numbers[place]) for numbers in self.bits)
        return Estimate(value, low, high, "bit", self.method, self.exact)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.outputs)

    def __len__(self) -> int:
        return len(self.outputs)

    def plot(self, ax: Any = None) -> Any:
        """Draw what each output tells, the surely most telling first; `ax` is matplotlib axes or a path to write to."""
        rows = sorted(((f"output {output}", self[output]) for output in self), key=lambda row: -row[1].low)
        return plots().bars(rows, ax, "pointwise leakage")

    def __repr__(self) -> str:
        worst = f"worst {represented(self.worst)} with {self[self.worst]}"
        return f"<PointwiseLeakage: {how_many(len(self), 'output')}, {worst}>"

    @cached_property
    def _places(self) -> dict[Hashable, int]:
        return {_key(output): place for place, output in enumerate(self.outputs)}


def _key(output: Any) -> Hashable:
    """Return what stands for an output in a dictionary: itself unless it is a list or the like."""
    try:
        hash(output)
    except TypeError:
        return represented(output)
    hashable: Hashable = output
    return hashable


@measure(
    Of.JOINT,
    belief_range,
    Row(26, "", "After the worst output, the attacker is {percent} sure of one value.", discrete=True),
)
def max_posterior_belief(joint: Joint) -> Estimate:
    """The greatest probability that the attacker can come to give any secret, over all outputs.

    max_o max_s P(s | o): a probability. From samples it is a lower bound, as outputs never or seldom seen may reveal
    more: a mistake looks safer than the truth. The low end allows for having looked at all pairs. This is what the
    policies of Mardziel, Magill, Hicks and Srivatsa (JCS 2013) limit.

    >>> print(max_posterior_belief(Joint.from_channel([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]])))
    0.778 (exact)
    """
    if isinstance(joint, Joint) and joint.secret.kind is Kind.CONTINUOUS:
        return never_guessed(joint)
    pairs = _pairs(joint, "max_posterior_belief")
    beliefs = _beliefs(joint, pairs, looks=len(pairs.secret))
    value, low = float(beliefs.value[beliefs.worst]), float(beliefs.low[beliefs.worst])
    if not pairs.exact:
        return Estimate(value, low, 1.0, method=f"lower bound: outputs seldom seen may reveal more, {pairs.method}")
    if joint.output.kind is not Kind.DISCRETE:
        return Estimate(value, low, 1.0, method="lower bound: outputs far out may reveal more")
    likely = pairs.marginal > RARE * joint.output.error
    high = max(value, float(beliefs.high[likely].max(initial=0.0)))
    method = f"for outputs of probability above {RARE * joint.output.error:.0e}" if joint.output.error else ""
    return Estimate(value, low, high, method=method, exact=high - low < 1 / RARE)


def worst_output(joint: Joint) -> Any:
    """Return the output after which the attacker gives some secret the greatest probability.

    Of samples it is the output for which that is surest.

    >>> worst_output(Joint.from_channel([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]]))
    1
    """
    pairs = _pairs(joint, "worst_output")
    return pairs.outputs[_beliefs(joint, pairs, looks=len(pairs.secret)).worst]


def pointwise_leakage(joint: Joint) -> PointwiseLeakage:
    """How much each single output changes the chance that the attacker's best guess is right.

    log2(max_s P(s | o) / max_s P(s)), in bits, at most the min-entropy of the secret; negative for an output that
    leaves the attacker less sure than before. From samples the value is too high for an output seldom seen, so a
    mistake looks riskier than the truth; its interval holds for each output by itself.
    Espinoza and Smith, Inf. Comput. 226 (2013).

    >>> leakage = pointwise_leakage(Joint.from_channel([0.75, 0.25], [[0.8, 0.2], [0.3, 0.7]]))
    >>> print(leakage.worst, leakage[0], leakage[1], sep="; ")
    0; 0.245 bit (exact); -0.478 bit (exact)
    """
    pairs = _pairs(joint, "pointwise_leakage")
    cells = np.diff(np.append(pairs.starts, len(pairs.secret)))
    beliefs, prior = _beliefs(joint, pairs, looks=cells), bayes_vulnerability(joint.secret)
    with np.errstate(divide="ignore"):
        ends = zip(beliefs, (prior.value, prior.high, prior.low), strict=True)
        bits = Beliefs(*(np.clip(np.log2(after) - np.log2(before), *pointwise_range(joint)) for after, before in ends))
    return PointwiseLeakage(pairs.outputs, bits, "exact" if pairs.exact else pairs.method, pairs.exact)


def _pairs(joint: Joint, what: str) -> Pairs:
    check_joint(joint, what)
    if joint.secret.kind is Kind.CONTINUOUS:
        raise ArgumentError(f"{what}: no value of a continuous secret has positive probability; round the secret")
    if not joint.exact and joint.output.kind is not Kind.DISCRETE:
        raise ArgumentError(f"{what}: a continuous output is never seen twice; round it, or use engine='exact'")
    return alike_pairs(joint)


def _beliefs(joint: Joint, pairs: Pairs, looks: int | Array) -> Beliefs:
    """Return the greatest belief for each output.

    An error of exact probabilities counts in proportion to how rare the output is. Of samples, the low end allows for
    having chosen the likeliest of so many pairs (Bonferroni); the high end need not, as the likeliest secret in truth
    was seen at most as often (Clopper and Pearson on the effective sample size).
    """
    value = np.minimum(np.maximum.reduceat(pairs.probability, pairs.starts) / pairs.marginal, 1.0)
    if pairs.exact:
        doubt = max(joint.secret.error, joint.output.error) / pairs.marginal
        return Beliefs(value, np.maximum(value - doubt, 0.0), np.minimum(value + doubt, 1.0))
    samples = pairs.marginal**2 / np.add.reduceat(pairs.squares, pairs.starts)
    hits, misses = value * samples, (1 - value) * samples
    low = scipy.special.betaincinv(hits, misses + 1, TAIL / looks)
    high = np.where(misses > 0, scipy.special.betaincinv(hits + 1, np.maximum(misses, 1e-300), 1 - TAIL), 1.0)
    return Beliefs(value, np.minimum(low, value), np.maximum(high, value))
