"""Enumeration secret by secret: the joint as classes of secrets that the output treats alike, without listing pairs.

That is possible where the secret tells the values of all roots behind it, each of which is drawn from one distribution:
then every combination of their values is a secret of its own, and its outputs come one after the other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from privug.inference.belief import Belief
from privug.inference.case_plan import Kept, Quantity, settled
from privug.inference.classes import Classes, ClassTally
from privug.inference.exact.finite.combinations import Combinations
from privug.inference.exact.finite.elimination import Elimination
from privug.inference.exact.finite.enumeration import Evaluation, Setting
from privug.inference.exact.finite.states import CERTAIN, Roots, States
from privug.inference.joint import Joint
from privug.model.batch import Batch, DeferredBatch
from privug.model.node import Array, Kind
from privug.model.operations import constant
from privug.progress import ProgressMeter

FEWEST_STATES = 50_000  # below, listing pairs takes no time
MOST_SECRETS = 100_000_000
MOST_PAIRS = 20_000_000  # of classes with their outputs
MOST_EACH = 1 << 20  # states behind one secret


def secrets_of(setting: Setting) -> Combinations | None:
    """Return the secrets of a case, if each combination of the values of the roots behind them is one of its own."""
    if isinstance(setting.roots, Elimination) or setting.start is not CERTAIN:
        return None
    quantity = Quantity.of(setting.case.secret)
    return Combinations.of(quantity, Roots(quantity.nodes))


def is_secret_of_its_own(setting: Setting) -> bool:
    """Say whether every state of a case has another secret, in the order of its secrets."""
    secrets = secrets_of(setting)
    return secrets is not None and secrets.roots.nodes == setting.roots.nodes


@dataclass(frozen=True)
class ByClass:
    """The classes of a case, the belief about its secret, and how many states there were, in all and excluded."""

    classes: Classes
    probability: float
    states: int
    accepted: int
    excluded: int

    def of_secrets(self, secrets: Batch) -> "ByClass":
        """Return the same with secrets that are known already, where these were listed one by one in the same order."""
        if not secrets.each_once or len(secrets) != len(self.classes.secrets):
            return self
        return replace(self, classes=replace(self.classes, secrets=secrets))

    def beliefs(self, error: float) -> tuple[Belief, Belief]:
        """Return the beliefs about secret and output."""
        known = self.classes
        return _belief(known.secrets, known.weights, error), _belief(known.outputs, known.marginal, error)

    def joint(self, error: float) -> Joint:
        """Return the joint, whose pairs are listed when they are asked for."""
        known = self.classes
        if known.determine_output:
            outputs = DeferredBatch(known.outputs.structure, len(known.members), known.output_of)
            sides: tuple[Batch, Batch] = (known.secrets, outputs)
            weights = known.weights
        else:
            owner, places, weights = known.listed()
            sides = DeferredBatch.chosen(known.secrets, owner), DeferredBatch.chosen(known.outputs, places)
        secret, output = (_belief(side, weights, error) for side in sides)
        return Joint(secret, output, classes=known)


def _belief(batch: Batch, weights: Array, error: float) -> Belief:
    return Belief(batch, weights, True, spread=Kind.DISCRETE, error=error)


def by_class(settings: Sequence[Setting]) -> ByClass | None:
    """Find the classes of secrets, if the question is one of which that can be done and pays."""
    setting = settings[0]
    if len(settings) > 1 or setting.is_opaque or setting.count < FEWEST_STATES:
        return None
    secrets = secrets_of(setting)
    if secrets is None or len(secrets) > MOST_SECRETS:
        return None
    others = Roots(setting.targets, secrets.roots.nodes)
    each = others.count(MOST_EACH)
    if each > MOST_EACH:
        return None
    with ProgressMeter("enumerating", setting.count) as meter:
        return _Pass(setting, secrets, others, each).run(meter)


class _Pass:
    """One pass through all states of a case, in blocks of whole secrets."""

    def __init__(self, setting: Setting, secrets: Combinations, others: Roots, each: float) -> None:
        self._secrets, self._others = secrets, others
        self._evaluation = Evaluation(setting, None)
        self._step = max(1, int(self._evaluation.block // each))
        self._place = constant(0)  # stands for the place of the secret in its block, beside the roots
        self._states = self._accepted = self._excluded = 0

    def run(self, meter: ProgressMeter) -> ByClass | None:
        """Return what was found; None if no state is possible, or if hardly any secrets are alike."""
        tally = ClassTally()
        for start in self._blocks():
            parts = [self._kept(states) for states in self._others.blocks(start, self._evaluation.block)]
            places, outputs, weights = zip(*parts, strict=True)
            output = Batch.concatenate([settled(batch) for batch in outputs])
            tally.add(len(start), np.concatenate(places), output, np.concatenate(weights))
            if tally.pairs > MOST_PAIRS:
                return None
            meter.update(self._states, f"{self._states:,} states")
        if not tally.weight > 0:
            return None
        counts = self._states, self._accepted, self._excluded
        return ByClass(tally.result(self._secrets.batch), tally.weight, *counts)

    def _blocks(self) -> Iterator[States]:
        for block in self._secrets.roots.blocks(CERTAIN, self._step):
            for begin in range(0, len(block), self._step):
                part = block.take(slice(begin, begin + self._step)) if len(block) > self._step else block
                yield States({**part.arrays, self._place: np.arange(len(part))}, part.weights)

    def _kept(self, states: States) -> tuple[Array, Batch, Array]:
        kept: Kept = self._evaluation.kept(states)
        self._states += len(states)
        self._accepted += len(kept.positions)
        self._excluded += kept.excluded
        places, weights = states.arrays[self._place], states.weights
        if len(kept.positions) == len(states):
            return places, kept.quantities[1], weights
        return places[kept.positions], kept.quantities[1], weights[kept.positions]
