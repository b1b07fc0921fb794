"""Tables of counts of two quantities, from coarse to fine, and what they look like when the two have nothing in common.

Rows and columns are groups of values. A permutation of one quantity keeps the counts of rows and columns, so tables
can be drawn with those counts fixed, at a cost that does not depend on the number of samples.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy

from privug.model.distinct import ranked
from privug.model.node import Array

BLOCK = 1 << 22  # entries of a temporary array of tables or of shuffled samples


@dataclass(frozen=True)
class Side:
    """One quantity in groups: each sample's group, and for each level the first groups of the coarser ones.

    `ranks` are the middle ranks of ordered groups, between 0 and 1; None if the groups have no order.
    """

    groups: Array
    levels: tuple[Array, ...]
    ranks: Array | None = None

    @property
    def count(self) -> int:
        """How many groups there are."""
        return len(self.levels[-1])

    @property
    def sizes(self) -> Array:
        """How many samples each group has."""
        return np.bincount(self.groups, minlength=self.count)


def unordered(codes: Array) -> Side:
    """Return a side with a group for each value and no coarser ones."""
    return Side(codes, (np.arange(int(codes.max()) + 1),))


def ordered(values: Array, most: int, coarsest: int) -> Side:
    """Return a side with equal values in one group and at most so many groups, and levels of 2, 4, 8... coarser ones.

    Groups hold about as many samples each; a value that occurs often may leave fewer. The coarser levels end with
    `coarsest` groups, the finest level are the groups themselves.
    """
    codes, distinct = ranked(values)
    counts = np.bincount(codes)
    middle = (np.cumsum(counts) - counts / 2) / len(values)
    finest = np.arange(len(distinct))
    if len(distinct) > most:
        finest = np.unique((middle * most).astype(np.int64), return_inverse=True)[1].reshape(-1)
    starts = np.flatnonzero(np.diff(finest, prepend=-1))
    levels = []
    coarse = 2
    while coarse < len(starts) and coarse <= coarsest:
        merged = (middle[starts] * coarse).astype(np.int64)
        levels.append(np.flatnonzero(np.diff(merged, prepend=-1)))
        coarse *= 2
    groups = finest[codes]
    sizes = np.bincount(groups)
    ranks = (np.cumsum(sizes) - sizes / 2) / len(values)
    return Side(groups, (*levels, np.arange(len(starts))), ranks)


def observed_table(rows: Side, columns: Side) -> Array:
    """Return the counts of the finest groups."""
    cells = np.bincount(rows.groups * columns.count + columns.groups, minlength=rows.count * columns.count)
    return cells.reshape(rows.count, columns.count)


def drawn_tables(rows: Side, columns: Side, draws: int, rng: np.random.Generator) -> Iterator[Array]:
    """Draw tables with the same counts of rows and columns, as if one side had been shuffled; several at a time."""
    step = max(1, BLOCK // (rows.count * columns.count))
    for start in range(0, draws, step):
        yield _drawn(rows.sizes, columns.sizes, min(step, draws - start), rng)


def _drawn(row_sizes: Array, column_sizes: Array, draws: int, rng: np.random.Generator) -> Array:
    if len(row_sizes) == 2:
        first = rng.multivariate_hypergeometric(column_sizes, row_sizes[0], draws)
        return np.stack((first, column_sizes - first), axis=1)
    tables = np.zeros((draws, len(row_sizes), len(column_sizes)), np.int64)
    left = np.tile(row_sizes, (draws, 1))
    for column, size in enumerate(column_sizes[:-1]):
        wanted = np.full(draws, size)
        others = left.sum(axis=1)
        for row in range(len(row_sizes) - 1):
            others -= left[:, row]
            taken = rng.hypergeometric(left[:, row], others, wanted)
            tables[:, row, column] = taken
            wanted -= taken
        tables[:, -1, column] = wanted
        left -= tables[:, :, column]
    tables[:, :, -1] = left
    return tables


def shuffles(codes: Array, draws: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield the codes in random orders, several rows of them at a time."""
    step = max(1, BLOCK // len(codes))
    for start in range(0, draws, step):
        yield rng.permuted(np.tile(codes, (min(step, draws - start), 1)), axis=1)


def informations(tables: Array, rows: Side, columns: Side) -> Array:
    """Return the information in bits between the sides of each table, for every pair of a row and a column level."""
    samples = float(tables[0].sum())
    bits = [
        _information(np.add.reduceat(np.add.reduceat(tables, first, axis=1), second, axis=2), samples)
        for first in rows.levels
        for second in columns.levels
    ]
    return np.stack(bits, axis=1)


def _information(tables: Array, samples: float) -> Array:
    def content(counts: Array) -> Array:
        terms: Array = scipy.special.xlogy(counts, counts / samples)
        total: Array = terms.reshape(len(terms), -1).sum(axis=1)
        return total

    return _in_bits(content(tables) - content(tables.sum(axis=1)) - content(tables.sum(axis=2)), samples)


def trends(tables: Array, rows: Side, columns: Side) -> Array:
    """Return how much place and spread of one side change with the other, as the bits that a normal relation has.

    That is near r^2 / (2 ln 2) for the correlation r of ranks, or of their distances from the middle; with unordered
    groups r^2 is the share of the variance that lies between them, as in Kruskal and Wallis' test. It takes fewer
    samples to find such trends than to find any relation there may be.
    """
    if rows.ranks is None and columns.ranks is None:
        return np.empty((len(tables), 0))
    shares = []
    for left in _scores(rows):
        partly = np.einsum("ar,brc->bac", left, tables)
        shares += [(np.einsum("bac,dc->bad", partly, right) ** 2).sum(axis=(1, 2)) for right in _scores(columns)]
    bits: Array = np.stack(shares, axis=1) / (2 * np.log(2))
    return bits


def _scores(side: Side) -> list[Array]:
    """Return the scores of the groups, of variance one: ranks and distances from the middle, or each group's own."""
    if side.ranks is None:
        return [np.diag(1 / np.sqrt(np.maximum(side.sizes, 1)))]
    return [_standardised(values, side.sizes)[np.newaxis] for values in (side.ranks, np.abs(side.ranks - 0.5))]


def _standardised(values: Array, sizes: Array) -> Array:
    centred = values - np.average(values, weights=sizes)
    norm = np.sqrt((sizes * centred**2).sum())
    scores: Array = centred / norm if norm > 0 else centred
    return scores


def _in_bits(nats: Array, samples: float) -> Array:
    bits: Array = np.maximum(nats, 0.0) / (samples * np.log(2))
    return bits


def sparse_information(cells: Array, row_sizes: Array, column_sizes: Array) -> Array:
    """Return the information in bits for each row of `cells`, the cell of each sample in a table too large to write."""
    samples = cells.shape[1]
    arranged = np.sort(cells, axis=1)
    new = np.ones(cells.shape, bool)
    new[:, 1:] = arranged[:, 1:] != arranged[:, :-1]
    starts = np.flatnonzero(new)
    counts = np.diff(starts, append=cells.size)
    every = np.arange(int(counts.max()) + 1)
    terms = scipy.special.xlogy(every, every / samples)[counts]
    joint = np.bincount(starts // samples, terms, len(cells))
    margins = sum(float(scipy.special.xlogy(size, size / samples).sum()) for size in (row_sizes, column_sizes))
    return _in_bits(joint - margins, samples)
