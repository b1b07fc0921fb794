"""Strategies: what an attacker guesses after each output, and what the guesses are worth."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from privug.inference.joint import Joint
from privug.leakage.finite import Pairs
from privug.model.node import Array

CELLS = 1 << 20  # most entries of a temporary matrix


class Gain(ABC):
    """What a guess is worth to the attacker, by the secret that it meets."""

    @abstractmethod
    def on(self, joint: Joint) -> "tuple[Joint, Strategy]":
        """Return the joint that guesses are learned on, and the way to learn them."""


class Strategy(Gain):
    """A gain with a way to find the best guess for each output."""

    binary: ClassVar[bool] = False
    """Whether a guess is worth either nothing or one."""
    by_value: ClassVar[bool] = False
    """Whether it matters what the secrets are, so that those that are alike cannot be counted together."""

    @property
    def lowest(self) -> float:
        """The least that a guess can be worth."""
        return 0.0

    @property
    def highest(self) -> float:
        """The most that a guess can be worth."""
        return 1.0

    @property
    def certain(self) -> float:
        """What some guess is worth whatever the secret is."""
        return self.lowest

    @property
    def span(self) -> float:
        """How far apart the most and the least are."""
        return self.highest - self.lowest

    @abstractmethod
    def earned(self, pairs: Pairs, weights: Array) -> Array:
        """Return for each pair what the guesses earn there that are best for these weights of the pairs.

        Pairs without weight must not change the guesses: they may come from samples that the guesses are judged by. Of
        a pair that stands for several secrets it is the average over these.
        """

    def on(self, joint: Joint) -> "tuple[Joint, Strategy]":
        return joint, self


@dataclass(frozen=True)
class Tries(Strategy):
    """One if the secret is among the first guesses."""

    count: int
    binary = True

    def earned(self, pairs: Pairs, weights: Array) -> Array:
        if self.count == 1:
            return np.asarray(first_guesses(pairs, weights) / pairs.each)
        return np.asarray(np.clip(self.count - guessed_before(pairs, weights), 0, pairs.each) / pairs.each)


@dataclass(frozen=True)
class Patience(Strategy):
    """Minus the number of guesses until the secret is found, for a number of possible secrets."""

    secrets: int

    @property
    def lowest(self) -> float:
        return -float(self.secrets)

    @property
    def highest(self) -> float:
        return -1.0

    @property
    def certain(self) -> float:
        return -(self.secrets + 1) / 2

    def earned(self, pairs: Pairs, weights: Array) -> Array:
        return -(guessed_before(pairs, weights) + (pairs.each + 1) / 2)


@dataclass(frozen=True)
class Abstention(Strategy):
    """One for a right guess, minus the penalty for a wrong one, nothing for none."""

    penalty: float

    @property
    def lowest(self) -> float:
        return -self.penalty

    @property
    def certain(self) -> float:
        return 0.0

    def earned(self, pairs: Pairs, weights: Array) -> Array:
        right = first_guesses(pairs, weights) / pairs.each
        overall = np.bincount(pairs.secret, weights, len(pairs.secrets))
        total = np.add.reduceat(weights * pairs.each, pairs.starts)
        best = np.where(total > 0, np.maximum.reduceat(weights, pairs.starts), overall.max())
        total = np.where(total > 0, total, overall.sum())
        # A guess that is worth nothing but for rounding is not made.
        worthwhile = best * (1 + self.penalty) > total * self.penalty * (1 + 1e-12)
        return np.where(worthwhile[pairs.output], right - (1 - right) * self.penalty, 0.0)


@dataclass(frozen=True)
class Worths(Strategy):
    """The worth of each guess (row) against each secret (column) of the joint it is used on."""

    table: Array
    by_value = True

    @property
    def lowest(self) -> float:
        return float(self.table.min())

    @property
    def highest(self) -> float:
        return float(self.table.max())

    @property
    def certain(self) -> float:
        return float(self.table.min(axis=1).max())

    def earned(self, pairs: Pairs, weights: Array) -> Array:
        overall = np.bincount(pairs.secret, weights, len(pairs.secrets))
        best = np.full(len(pairs.outputs), int(np.argmax(self.table @ overall)))
        bounds = np.append(pairs.starts, len(pairs.output))
        joint = scipy.sparse.csc_array((weights, pairs.secret, bounds), shape=(len(overall), len(best)))
        step = max(1, CELLS // len(self.table))
        for start in range(0, len(best), step):
            part = joint[:, start : start + step]
            seen = part.sum(axis=0) > 0
            best[start : start + step][seen] = np.argmax(self.table @ part, axis=0)[seen]
        earned: Array = self.table[best[pairs.output], pairs.secret]
        return earned


def first_guesses(pairs: Pairs, weights: Array) -> Array:
    """Say of each pair whether its secret is the best guess for its output, given weights of the pairs.

    Secrets that are equally good for an output are told apart by their weight over all outputs. That weight alone
    decides for an output without any.
    """
    place = _overall_places(pairs, weights)
    best = np.maximum.reduceat(weights, pairs.starts)
    tied = (weights == best[pairs.output]) & (weights > 0)
    foremost = np.minimum.reduceat(np.where(tied, place, len(pairs.secrets)), pairs.starts)
    guessed: Array = np.where(best > 0, foremost, 0)[pairs.output] == place
    return guessed


def guessed_before(pairs: Pairs, weights: Array) -> Array:
    """Return for each pair how many secrets are guessed before the first of those that it stands for."""
    if pairs.copies is None:
        return guess_ranks(pairs, weights) - 1
    order = np.lexsort((-weights, pairs.output))
    copies = pairs.copies[pairs.secret[order]]
    earlier = np.cumsum(copies) - copies
    before = np.empty(len(order), np.int64)
    before[order] = earlier - earlier[pairs.starts[pairs.output[order]]]
    return before


def guess_ranks(pairs: Pairs, weights: Array) -> Array:
    """Return for each pair at which guess its secret is found: 1 for the best guess for the output, and so on.

    Secrets without weight for an output come last, in the order of their weight over all outputs.
    """
    place = _overall_places(pairs, weights)
    order = np.lexsort((place, -weights, pairs.output))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - pairs.starts[pairs.output[order]] + 1
    unseen = weights <= 0
    if not unseen.any():
        return rank
    # An unseen secret follows the seen ones of its output, and those unseen ones that are more likely overall.
    order = np.lexsort((-place, pairs.output))
    seen: Array = np.cumsum(~unseen[order])
    earlier = (seen - ~unseen[order])[pairs.starts]
    less_likely = np.empty(len(order), np.int64)
    less_likely[order] = seen - earlier[pairs.output[order]]
    rank[unseen] = (place + 1 + less_likely)[unseen]
    return rank


def _overall_places(pairs: Pairs, weights: Array) -> Array:
    """Return for each pair the place of its secret, from 0 on, in the order of the weight over all outputs."""
    overall = np.bincount(pairs.secret, weights, len(pairs.secrets))
    place = np.empty(len(overall), np.int64)
    place[np.argsort(-overall, kind="stable")] = np.arange(len(overall))
    places: Array = place[pairs.secret]
    return places
