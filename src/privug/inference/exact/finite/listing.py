"""The joint of secret and output from an enumeration: its pairs listed, or a channel where they are too many."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from privug.errors import UnsuitableEngine
from privug.inference.belief import Belief
from privug.inference.case_plan import Quantity
from privug.inference.channel import Block, Channel
from privug.inference.exact.finite.by_class import ByClass, by_class
from privug.inference.exact.finite.enumeration import Evaluation, Setting, nodes_of
from privug.inference.exact.finite.states import Roots, States
from privug.inference.joint import Joint
from privug.inference.tally import Tally
from privug.model.batch import Batch, codes_of
from privug.model.node import Array, Kind
from privug.model.operations import constant
from privug.model.plan import Plan

ALWAYS_LISTED = 10_000_000  # states: their pairs are listed whatever they are
MOST_PAIRS = 20_000_000
BLOCK_CELLS = 1 << 21


def finite_joint(settings: Sequence[Setting], secret: Belief, output: Belief, found: ByClass | None = None) -> Joint:
    """Return the joint of all cases, given the beliefs about secret and output before any observation.

    `found` holds the classes of secrets, if those have been looked for.
    """
    found = found or by_class(settings)
    if found is not None and (found.classes.determine_output or found.classes.pairs <= MOST_PAIRS):
        return found.of_secrets(secret.batch).joint(secret.error)
    if len(secret.batch) * len(output.batch) <= MOST_PAIRS:
        return _listed(settings, secret.error)
    return _channel(settings, secret, output, sum(setting.count for setting in settings))


def _listed(settings: Sequence[Setting], error: float) -> Joint:
    pairs = Tally()
    for setting in settings:
        evaluation = Evaluation(setting, None)
        for states, kept in evaluation.results():
            pairs.add(kept.quantities, states.weights[kept.positions])
    return listed_joint(*pairs.result(), error)


def listed_joint(pair: Sequence[Batch], weights: Array, error: float) -> Joint:
    """Make the joint of pairs with their weights."""
    (secret, output), shares = pair, weights / weights.sum()
    return Joint(
        Belief(secret, shares, True, spread=Kind.DISCRETE, error=error),
        Belief(output, shares, True, spread=Kind.DISCRETE, error=error),
    )


def _channel(settings: Sequence[Setting], secret: Belief, output: Belief, states: float) -> Joint:
    secrets, outputs = len(secret.batch), output.batch.numbers()
    if len(settings) > 1 or settings[0].excludes or outputs is None:
        raise UnsuitableEngine(
            f"engine='exact' cannot list the pairs of secret and output: {secrets:,} secrets with "
            f"{len(output.batch):,} outputs are too many; engine='sample' can draw some"
        )
    pairs = _Pairs(settings[0], outputs)
    channel = Channel(secrets, len(outputs), round(states), pairs.blocks)
    return Joint(secret, output, channel=channel)


class _Pairs:
    """The pairs of one case, secret by secret."""

    def __init__(self, setting: Setting, outputs: Array) -> None:
        self._setting = setting
        self._outputs = outputs
        self._is_range = outputs.dtype.kind == "i" and int(outputs[-1]) - int(outputs[0]) + 1 == len(outputs)
        self._evaluation = Evaluation(setting, None)
        self._behind_secret = Roots(nodes_of(setting.case.secret), list(setting.start.arrays))
        self._others = Roots(setting.targets, [*setting.start.arrays, *self._behind_secret.nodes])
        self._place = constant(0)  # stands for the place of the secret, beside the roots

    def blocks(self) -> Iterator[Block]:
        """Yield the probabilities of all pairs, in blocks of whole secrets."""
        states = self._by_secret()
        places = states.arrays[self._place]
        each = self._others.count(math.inf)
        secrets = int(max(1, min(self._evaluation.block // each, BLOCK_CELLS // len(self._outputs))))
        for first in range(0, int(places[-1]) + 1, secrets):
            begin, end = np.searchsorted(places, [first, first + secrets])
            yield self._block(states.take(slice(begin, end)), first, min(secrets, int(places[-1]) + 1 - first))

    def _by_secret(self) -> States:
        """Return the states of the roots behind the secret, ordered by the secret."""
        states = next(iter(self._behind_secret.blocks(self._setting.start, 1 << 40)))
        quantity = Quantity.of(self._setting.case.secret)
        rng = np.random.Generator(np.random.SFC64(0))
        batch = quantity.batch(
            Plan(quantity.nodes, list(states.arrays)).run(len(states), rng, states.arrays), len(states)
        )
        places = codes_of([batch], len(states))
        order = np.argsort(places, kind="stable")
        return States({**states.arrays, self._place: places}, states.weights).take(order)

    def _block(self, start: States, first: int, secrets: int) -> Block:
        total: Array | None = None
        low = high = 0
        for states in self._others.blocks(start, self._evaluation.block):
            kept = self._evaluation.kept(states)
            columns, rows = self._columns(kept.quantities[1]), states.arrays[self._place][kept.positions] - first
            begin, end = int(columns.min()), int(columns.max()) + 1
            places = rows * (end - begin) + (columns - begin)
            cells = np.bincount(places, states.weights[kept.positions], secrets * (end - begin)).reshape(secrets, -1)
            if total is None:
                total, low, high = cells, begin, end
                continue
            wider = np.zeros((secrets, max(high, end) - min(low, begin)))
            start_of_all = min(low, begin)
            wider[:, low - start_of_all : high - start_of_all] = total
            wider[:, begin - start_of_all : end - start_of_all] += cells
            total, low, high = wider, start_of_all, max(high, end)
        assert total is not None
        return Block(low, total)

    def _columns(self, output: Batch) -> Array:
        """Return the place of each output."""
        numbers = output.numbers()
        assert numbers is not None
        if self._is_range:
            return np.asarray(np.subtract(numbers, self._outputs[0], dtype=np.intp))
        return np.asarray(np.searchsorted(self._outputs, numbers))
