"""Evidence of a leak: could samples look like these if secret and output had nothing to do with each other?"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from privug.arguments import kinds_checked, shown
from privug.errors import ArgumentError
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.joint import Joint
from privug.leakage.black_box import Examples, Split, coordinates, guesses, thinned
from privug.leakage.finite import BLOCK, bits_of, check_joint, shuffles, sparse_information
from privug.leakage.information import mutual_information
from privug.model.batch import ranked
from privug.model.node import Array, Kind

SAMPLES_A_CELL = 4  # leakiEst's rule: below it, silence means nothing (Chothia, Kawamoto and Novakovic, CAV 2013)
CONTINUOUS_GROUPS = 4  # the fewest that show a change of place and of spread
MOST_GROUPS = 64  # of a continuous output, and of the coarser groups of any
MOST_SECRET_GROUPS = 16  # of a continuous secret
FEWEST_TO_LEARN = 8  # samples
FEW_CELLS = 1 << 12  # of a table that is drawn however few samples there are
MANY_CELLS = 1 << 17  # of the largest table that is drawn


@dataclass(frozen=True)
class GroupedSide:
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


def unordered(codes: Array) -> GroupedSide:
    """Return a side with a group for each value and no coarser ones."""
    return GroupedSide(codes, (np.arange(int(codes.max()) + 1),))


def ordered(values: Array, most: int, coarsest: int) -> GroupedSide:
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
    return GroupedSide(groups, (*levels, np.arange(len(starts))), ranks)


def observed_table(rows: GroupedSide, columns: GroupedSide) -> Array:
    """Return the counts of the finest groups."""
    cells = np.bincount(rows.groups * columns.count + columns.groups, minlength=rows.count * columns.count)
    return cells.reshape(rows.count, columns.count)


def drawn_tables(rows: GroupedSide, columns: GroupedSide, draws: int, rng: np.random.Generator) -> Iterator[Array]:
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


def informations(tables: Array, rows: GroupedSide, columns: GroupedSide) -> Array:
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
        return np.asarray(terms.reshape(len(terms), -1).sum(axis=1))

    return bits_of(content(tables) - content(tables.sum(axis=1)) - content(tables.sum(axis=2)), samples)


def trends(tables: Array, rows: GroupedSide, columns: GroupedSide) -> Array:
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
    return np.asarray(np.stack(shares, axis=1) / (2 * np.log(2)))


def _scores(side: GroupedSide) -> list[Array]:
    """Return the scores of the groups, of variance one: ranks and distances from the middle, or each group's own."""
    if side.ranks is None:
        return [np.diag(1 / np.sqrt(np.maximum(side.sizes, 1)))]
    return [_standardised(values, side.sizes)[np.newaxis] for values in (side.ranks, np.abs(side.ranks - 0.5))]


def _standardised(values: Array, sizes: Array) -> Array:
    centred = values - np.average(values, weights=sizes)
    norm = np.sqrt((sizes * centred**2).sum())
    return np.asarray(centred / norm if norm > 0 else centred)


class Pairing(NamedTuple):
    """Both sides in groups, the values of both if there are too many for a table, and how many samples are needed."""

    rows: GroupedSide
    columns: GroupedSide
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

    def side(self, most: int) -> GroupedSide:
        if self.points is None or self.several:
            return unordered(self.codes)
        # The codes of numbers stand in their order, and are quicker to count.
        return ordered(self.points if self.continuous else self.codes, most, MOST_GROUPS)

    def values(self, side: GroupedSide) -> Array:
        return side.groups if self.continuous else self.codes


def _learnt(secret: GroupedSide, outputs: _Values, rng: np.random.Generator) -> Pairing:
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
    return Pairing(GroupedSide(split.judge.labels, secret.levels), unordered(seen), None, needed)


def _most_telling_coordinate(train: Examples) -> int:
    assert train.points is not None
    secret = unordered(train.labels)
    told = []
    for coordinate in train.points.T:
        quarter = ordered(coordinate, CONTINUOUS_GROUPS, CONTINUOUS_GROUPS)
        told.append(informations(observed_table(secret, quarter)[np.newaxis], secret, quarter)[0, -1])
    return int(np.argmax(told))


LEAK = "there is evidence of a leak"
NO_LEAK = "no evidence of a leak"
TOO_FEW = "not enough samples"
POWER = 0.8
FEWEST_DRAWS = 99
MOST_DRAWN = 5e6  # cells of tables in all, above which fewer tables are drawn
MOST_SHUFFLED = 3e7  # samples in all, above which there are fewer shuffles
LEAST = 1e-12  # level, power or bits, below which no number of samples would do
NEGLIGIBLE = 1e-9  # bits, up to which an exact joint counts as independent


@dataclass(frozen=True)
class Evidence:
    """Whether samples show a leak.

    `p_value` is the probability of samples as telling as these if nothing leaked. `statistic` is how much the grouped
    samples tell, less what they would tell by chance. `needed_samples` is how many samples it takes before finding
    nothing means something; with the samples at hand, a leak of `detectable` bits is found in four of five cases.

    >>> import numpy as np
    >>> import privug as pv
    >>> secrets = np.random.default_rng(1).integers(0, 2, 500)
    >>> pv.leakage.evidence_of_leak(pv.Joint.from_samples(secrets, secrets)).verdict
    'there is evidence of a leak'
    """

    verdict: str
    p_value: float
    statistic: Estimate
    samples: float
    needed_samples: int
    detectable: float

    def __bool__(self) -> bool:
        return self.verdict == LEAK

    def __str__(self) -> str:
        if self.verdict == TOO_FEW:
            return f"{TOO_FEW}: there are {self.samples:.0f}, and {self.needed_samples} are needed"
        if math.isinf(self.samples):
            return f"{self.verdict} (exact)" if self.verdict == LEAK else "no leak (exact)"
        remark = "" if self.verdict == LEAK else f"; a leak of {self.detectable:.2g} bit would most likely be seen"
        return f"{self.verdict} (p = {self.p_value:.2g}, n={self.samples:.0f}{remark})"


@kinds_checked
def evidence_of_leak(joint: Joint, *, level: float = 0.05, permutations: int = 999, seed: int = 0) -> Evidence:
    """Test whether the output depends on the secret at all.

    Secret and output are put into groups, numbers into 2, 4, 8... of equal size. Each table's information, and trends
    of numbers in place and spread, are compared with those of shuffled samples; the most telling of them counts,
    against the most telling of each shuffle. So any relation is found if there are samples enough. The p-value,
    (1 + shuffles as telling) / (1 + shuffles), is valid for any number of samples: without a leak it is at most `level`
    with at most that probability. Outputs of several numbers are first turned into a guess of the secret, learnt from
    one half of the samples, and the other half is tested.

    The verdict is "there is evidence of a leak", "no evidence of a leak", or "not enough samples" if nothing was
    found among fewer than four samples for each pair of a secret and an output. Finding nothing is no proof of safety:
    a mistake in that direction looks safer than the truth.

    >>> str(evidence_of_leak(Joint.from_samples([0, 1] * 50, [0, 1] * 50)))
    'there is evidence of a leak (p = 0.001, n=100)'
    >>> evidence_of_leak(Joint.from_samples([0, 0, 1, 1] * 50, [0, 1] * 100)).verdict
    'no evidence of a leak'
    """
    _check(joint, level, permutations)
    if joint.exact:
        information = mutual_information(joint)
        leaks = information.value > NEGLIGIBLE
        return Evidence(LEAK if leaks else NO_LEAK, 0.0 if leaks else 1.0, information, math.inf, 0, 0.0)
    rng = np.random.default_rng((seed, 3))
    pairing = pairing_of(thinned(joint, seed), rng)
    observed, null = _statistics(pairing, permutations, rng)
    p_value, column = _most_telling(observed, null)
    samples = len(pairing.rows.groups)
    verdict = LEAK if p_value <= level else TOO_FEW if samples < pairing.needed else NO_LEAK
    degrees = (pairing.rows.count - 1) * (pairing.columns.count - 1)
    detectable = _noncentrality(degrees, level, POWER) / (2 * math.log(2) * samples) if degrees else math.inf
    statistic = _told(observed[column], null[:, column], samples)
    return Evidence(verdict, p_value, statistic, samples, pairing.needed, detectable)


@kinds_checked
def samples_to_detect(bits: float, secrets: int, outputs: int, *, level: float = 0.05, power: float = POWER) -> int:
    """Return how many samples show a leak of so many bits with the given probability, for so many values of each.

    By the noncentral chi-square distribution of the information between secret and output: n = lambda / (2 ln 2 bits).

    >>> samples_to_detect(0.01, secrets=2, outputs=2)
    567
    """
    for name, share in (("level", level), ("power", power)):
        _check_share("samples_to_detect", name, share)
    if not bits >= LEAST or secrets < 2 or outputs < 2:
        raise ArgumentError(
            f"samples_to_detect: bits must be positive ({LEAST:g} or more) and there must be two secrets and outputs "
            f"or more, not {bits}, {secrets} and {outputs}"
        )
    noncentrality = _noncentrality((secrets - 1) * (outputs - 1), level, power)
    return max(SAMPLES_A_CELL * secrets * outputs, math.ceil(noncentrality / (2 * math.log(2) * bits)))


def _check_share(where: str, name: str, share: float) -> None:
    if not LEAST <= share < 1:
        raise ArgumentError(
            f"{where}: {name} must lie between 0 and 1 and be at least {LEAST:g}, such as 0.05, not {shown(share)}"
        )


def _check(joint: Joint, level: float, permutations: int) -> None:
    check_joint(joint, "evidence_of_leak", "Joint.from_samples(...)")
    _check_share("evidence_of_leak", "level", level)
    if isinstance(permutations, bool) or not isinstance(permutations, int) or (permutations + 1) * level < 1:
        raise ArgumentError(
            f"evidence_of_leak: a level of {level:g} needs at least {math.ceil(1 / level) - 1} permutations, "
            f"not {shown(permutations)}"
        )


def _statistics(pairing: Pairing, permutations: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return what each table tells, of the samples and of shuffled ones."""
    rows, columns, values, _ = pairing
    if values is None:
        draws = _affordable(permutations, MOST_DRAWN / (rows.count * columns.count))
        observed = _told_by(observed_table(rows, columns)[np.newaxis], rows, columns)
        blocks = (_told_by(tables, rows, columns) for tables in drawn_tables(rows, columns, draws, rng))
    else:
        draws = _affordable(permutations, MOST_SHUFFLED / len(rows.groups))
        observed = _shuffled_statistics(pairing, values, values[0][np.newaxis])
        blocks = (_shuffled_statistics(pairing, values, block) for block in shuffles(values[0], draws, rng))
    return observed[0], np.concatenate(list(blocks))


def _affordable(permutations: int, most: float) -> int:
    return min(permutations, max(FEWEST_DRAWS, int(most)))


def _shuffled_statistics(pairing: Pairing, values: tuple[Array, Array], block: Array) -> Array:
    """Return the information of each table for rows of shuffled secrets, and last that of the table of all values."""
    rows, columns = pairing.rows, pairing.columns
    secrets, outputs = (np.bincount(side) for side in values)
    sparse = sparse_information(block * len(outputs) + values[1], secrets, outputs)
    cells = rows.count * columns.count
    if cells > MANY_CELLS:
        return sparse[:, np.newaxis]
    group = np.zeros(len(secrets), np.int64)
    group[values[0]] = rows.groups
    places = group[block] * columns.count + columns.groups + cells * np.arange(len(block))[:, np.newaxis]
    tables = np.bincount(places.reshape(-1), minlength=cells * len(block)).reshape(-1, rows.count, columns.count)
    return np.column_stack((_told_by(tables, rows, columns), sparse))


def _told_by(tables: Array, rows: GroupedSide, columns: GroupedSide) -> Array:
    return np.column_stack((informations(tables, rows, columns), trends(tables, rows, columns)))


def _most_telling(observed: Array, null: Array) -> tuple[float, int]:
    """Return the p-value of the most telling table among several, and which table that is.

    Cube roots of the informations are nearly normal (Wilson and Hilferty, 1931), so in units of their deviation they
    can be compared; that of the samples among those of the shuffles, all treated alike, keeps the p-value valid.
    """
    roots = np.cbrt(np.round(np.vstack((observed, null)), 12))
    deviation = roots.std(axis=0)
    scores = (roots - roots.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    most = np.round(scores.max(axis=1), 9)
    return float((most >= most[0]).mean()), int(scores[0].argmax())


def _told(observed: float, null: Array, samples: int) -> Estimate:
    """Return the information less its average under shuffling.

    The variance of the observed one is that of chance, and 4 I / n nats for what is beyond it: twice the
    noncentrality of the chi-square distribution, twice.
    """
    excess = max(0.0, float(observed - null.mean()))
    deviation = math.sqrt(float(null.var()) + 2 * excess / (samples * math.log(2)))
    low, high = max(0.0, excess - 1.96 * deviation), excess + 1.96 * deviation
    return Estimate(excess, low, high, "bit", f"information between groups less that by chance, n={samples}")


def _noncentrality(degrees: int, level: float, power: float) -> float:
    critical = scipy.special.chdtri(degrees, level)
    return float(scipy.special.chndtrinc(critical, degrees, 1 - power))
