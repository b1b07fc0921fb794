"""Secret and output in groups, few enough to count how often each pair of groups occurs."""

import math
from typing import NamedTuple

import numpy as np

from privug.errors import ArgumentError
from privug.inference.belief import Belief
from privug.inference.joint import Joint
from privug.leakage.contingency import Side, informations, observed_table, ordered, unordered
from privug.leakage.examples import Examples, coordinates
from privug.leakage.learning import Split, guesses
from privug.model.node import Array, Kind

SAMPLES_A_CELL = 4  # leakiEst's rule: below it, silence means nothing (Chothia, Kawamoto and Novakovic, CAV 2013)
CONTINUOUS_GROUPS = 4  # the fewest that show a change of place and of spread
MOST_GROUPS = 64  # of a continuous output, and of the coarser groups of any
MOST_SECRET_GROUPS = 16  # of a continuous secret
FEWEST_TO_LEARN = 8  # samples
FEW_CELLS = 1 << 12  # of a table that is drawn however few samples there are
MANY_CELLS = 1 << 17  # of the largest table that is drawn


class Pairing(NamedTuple):
    """Both sides in groups, the values of both if there are too many for a table, and how many samples are needed."""

    rows: Side
    columns: Side
    values: tuple[Array, Array] | None
    needed: int


def pairing_of(joint: Joint, rng: np.random.Generator) -> Pairing:
    """Group the two sides of a joint of equally weighted samples."""
    samples = len(joint.secret.batch)
    secret, outputs = _Values.of(joint.secret), _Values.of(joint.output)
    if secret.several and secret.continuous:
        raise ArgumentError("evidence_of_leak: the secret has several continuous numbers; ask about one of them")
    cells = min(max(FEW_CELLS, samples), MANY_CELLS)
    most_rows = secret.most(min(MOST_SECRET_GROUPS, math.sqrt(samples / SAMPLES_A_CELL)))
    many = outputs.continuous or outputs.distinct * secret.distinct > cells
    if outputs.several and many and samples >= FEWEST_TO_LEARN:
        return _learnt(secret.side(min(most_rows, MOST_SECRET_GROUPS)), outputs, rng)
    most_columns = outputs.most(min(MOST_GROUPS, samples / SAMPLES_A_CELL / min(most_rows, MOST_SECRET_GROUPS)))
    grouped = most_rows * most_columns > cells
    if grouped:
        few = 2 ** math.floor(math.log2(max(CONTINUOUS_GROUPS, math.sqrt(samples))))
        most_rows, most_columns = (min(most, few, MOST_GROUPS) for most in (most_rows, most_columns))
    rows, columns = secret.side(most_rows), outputs.side(most_columns)
    needed = SAMPLES_A_CELL * secret.needed * outputs.needed
    unwritten = rows.count * columns.count > cells or (grouped and not secret.continuous and not outputs.continuous)
    return Pairing(rows, columns, (secret.values(rows), outputs.values(columns)) if unwritten else None, needed)


class _Values(NamedTuple):
    """One quantity: a number for each distinct value, and coordinates if they are numbers."""

    codes: Array
    points: Array | None
    distinct: int
    continuous: bool

    @classmethod
    def of(cls, belief: Belief) -> "_Values":
        codes = belief.batch.factorized()[0]
        continuous = belief.kind is not Kind.DISCRETE
        numbers = None if continuous else belief.batch.numbers()
        points = coordinates(belief.batch) if numbers is None else numbers
        return cls(codes, points, int(codes.max()) + 1, continuous)

    @property
    def several(self) -> bool:
        return self.points is not None and self.points.ndim > 1

    @property
    def needed(self) -> int:
        return CONTINUOUS_GROUPS if self.continuous else self.distinct

    def most(self, groups: float) -> int:
        """Return how many groups there may be: all values, or for a continuous quantity a power of two."""
        return 2 ** max(1, math.floor(math.log2(max(groups, 2)))) if self.continuous else self.distinct

    def side(self, most: int) -> Side:
        if self.points is None or self.several:
            return unordered(self.codes)
        # The codes of numbers stand in their order, and are quicker to count.
        return ordered(self.points if self.continuous else self.codes, most, MOST_GROUPS)

    def values(self, side: Side) -> Array:
        return side.groups if self.continuous else self.codes


def _learnt(secret: Side, outputs: _Values, rng: np.random.Generator) -> Pairing:
    """Let what one half of the samples teaches stand for the output in the other half.

    That is a nearest-neighbour guess of the secret's group, together with the coordinate that tells most by itself.
    """
    order = rng.permutation(len(secret.groups))
    examples = Examples(secret.groups, outputs.codes, outputs.points, secret.count, Kind.CONTINUOUS)
    half = len(order) // 2
    method = "knn-sqrt" if half <= FEW_CELLS else "knn-ln"
    split = Split.of(examples.take(order[:half]), examples.take(order[half:]), method)
    guessed = guesses(method, *split).label
    coordinate = _most_telling_coordinate(split.train)
    assert split.judge.points is not None
    quarter = ordered(split.judge.points[:, coordinate], CONTINUOUS_GROUPS, CONTINUOUS_GROUPS)
    seen = np.unique(guessed * quarter.count + quarter.groups, return_inverse=True)[1].reshape(-1)
    needed = 2 * SAMPLES_A_CELL * secret.count * CONTINUOUS_GROUPS
    return Pairing(Side(split.judge.labels, secret.levels), unordered(seen), None, needed)


def _most_telling_coordinate(train: Examples) -> int:
    assert train.points is not None
    secret = unordered(train.labels)
    told = []
    for coordinate in train.points.T:
        quarter = ordered(coordinate, CONTINUOUS_GROUPS, CONTINUOUS_GROUPS)
        told.append(informations(observed_table(secret, quarter)[np.newaxis], secret, quarter)[0, -1])
    return int(np.argmax(told))
