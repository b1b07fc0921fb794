"""Functions of probabilities that are only known from samples: what their plug-in value misses, and how sure it is.

Smooth functions, such as an entropy, are expanded to second order around the shares that were seen: the second order
gives the bias, and the variance where the first order vanishes, as it does for a uniform belief. Functions that choose
the best of many (the best order of guesses, the set that differs most) flatter themselves on the samples they chose
by; what was chosen on one half of the samples and is judged by the other half errs the other way.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from privug.estimate import CONFIDENCE, Estimate
from privug.leakage.finite import Pairs, Shares
from privug.model.batch import ranked
from privug.model.node import Array

SPLITS = 4
LN2 = math.log(2)

Chooser = Callable[[Sequence[Array]], Sequence[Array]]
"""From the probabilities of each belief to the coefficients of the best linear function of them."""


@dataclass(frozen=True)
class Dependence:
    """How a function depends on the probabilities of one sampled belief.

    `slope` is its derivative by each probability, `curvature` its second derivative times that probability.
    """

    shares: Shares
    slope: Array
    curvature: Array


def bias(dependence: Dependence) -> float:
    """Return by how much the plug-in value exceeds the truth on average (Miller, 1955, for any weights)."""
    shares, total = dependence.shares, float(dependence.shares.squares.sum())
    p, per_probability = shares.probability, _ratio(shares.squares, shares.probability)
    spread = per_probability * (1 - 2 * p) + p * total
    # Weights that are divided by their sum pull each share towards the values of small weight.
    drift = float(dependence.slope @ (p * total - shares.squares))
    return drift + float(dependence.curvature @ spread) / 2


def linear_variance(dependence: Dependence) -> float:
    """Return the variance of the plug-in value to first order."""
    shares, slope = dependence.shares, dependence.slope
    return float(shares.squares @ (slope - float(slope @ shares.probability)) ** 2)


def variance(dependences: Sequence[Dependence], twist: Array | None = None) -> float:
    """Return the variance of the plug-in value to second order.

    `twist` is the mixed derivative by the probabilities of two independent beliefs, times the root of both. Measured
    slopes vary even where the true one is flat, which makes the first order too large by twice the second.
    """
    linear = sum(linear_variance(dependence) for dependence in dependences)
    quadratic = sum(_trace(d.curvature, d.shares, d.shares) for d in dependences) / 2
    if twist is not None and len(dependences) == 2:
        quadratic += _trace(twist, *(dependence.shares for dependence in dependences))
    return linear + max(0.0, quadratic)


def _trace(scaled: Array, first: Shares, second: Shares) -> float:
    """Return the trace of the square of a diagonal second derivative times the covariance of the shares."""
    p, r = first.probability, second.probability
    diagonal = float((scaled**2) @ (1 - p - r))
    return (diagonal + float(scaled @ np.sqrt(p * r)) ** 2) / (first.samples * second.samples)


def exact_estimate(value: float, beliefs: Sequence[Shares], slopes: Sequence[Array], unit: str = "bit") -> Estimate:
    """Return an exact value; where probabilities are known to an error, with what that can change to first order."""
    off = sum(
        shares.error * float(np.ptp(slope)) for shares, slope in zip(beliefs, slopes, strict=True) if shares.error
    )
    method = max((shares.method for shares in beliefs), key=len)
    return Estimate(value, value - off, value + off, unit, method, exact=True)


def difference(first: Estimate, second: Estimate, unit: str = "bit") -> Estimate:
    """Subtract two independent estimates; their distances to the ends add as squares."""
    value = first.value - second.value
    low = value - math.hypot(first.value - first.low, second.high - second.value)
    high = value + math.hypot(first.high - first.value, second.value - second.low)
    method = first.method if first.method == second.method else f"{first.method}; {second.method}"
    return Estimate(value, low, high, unit, method, first.exact and second.exact)


def falling(estimate: Estimate, function: Callable[[float], float], unit: str) -> Estimate:
    """Return what a falling function makes of an estimate: a lower bound becomes an upper bound."""
    words = {"lower bound": "upper bound", "upper bound": "lower bound"}
    start = estimate.method[: len("lower bound")]
    method = words.get(start, start) + estimate.method[len(start) :]
    value, low, high = map(function, (estimate.value, estimate.high, estimate.low))
    return replace(estimate, value=value, low=low, high=high, unit=unit, method=method)


def _ratio(above: Array, below: Array) -> Array:
    return np.divide(above, below, out=np.zeros_like(below), where=below > 0)


def quantile(samples: float) -> float:
    """Return how many standard errors an interval reaches to each side."""
    return float(scipy.special.stdtrit(max(samples - 1, 1.0), 0.5 + CONFIDENCE / 2))


def seen_once(shares: Shares) -> float:
    """Return the share of values that were seen once: about the probability of all values not seen at all.

    I. J. Good, Biometrika 40, 237 (1953).
    """
    return float(shares.probability[_alone(shares)].sum())


def undersampled(shares: Shares) -> bool:
    """Say whether so many values were seen only once that little is known of how many there are.

    That is a tenth of all samples, or two fifths of those that do not hold the commonest value.
    """
    alone = _alone(shares)
    share, others = float(shares.probability[alone].sum()), 1 - float(shares.probability.max())
    return share > 0.1 or (share > 0.4 * others and int(alone.sum()) > 1)


def fewest_samples(shares: Shares) -> float:
    """Return of how many equally weighted samples the least known share is worth."""
    return float((1 / _ratio(shares.squares, shares.probability**2)).min())


def _alone(shares: Shares) -> Array:
    squared = shares.probability**2
    return np.asarray(shares.squares >= (1 - 1e-9) * squared) & (squared > 0) & (not shares.exact)


def rarest_missed(shares: Shares) -> float:
    """Return the probability from which on a value would be missed by all samples in less than one of 40 cases."""
    return 0.0 if shares.exact else 1 - ((1 - CONFIDENCE) / 2) ** (1 / shares.samples)


def most_unseen(shares: Shares) -> float:
    """Return a probability that all values not seen together hardly exceed."""
    once = seen_once(shares)
    return min(1.0, once + 2 * math.sqrt(once / shares.samples) + rarest_missed(shares))


def missed_entropy(shares: Shares) -> float:
    """Return how much entropy samples that are all the same may have missed; zero if they vary or are exact."""
    if shares.exact or np.count_nonzero(shares.probability) > 1:
        return 0.0
    missed = min(0.5, rarest_missed(shares))
    return float(scipy.special.entr([missed, 1 - missed]).sum() / math.log(2))


@dataclass(frozen=True)
class Choice:
    """The best of many linear functions: its value on the samples it was chosen by, on others, and the error of both.

    The first errs towards the better on average, the second towards the worse.
    """

    chosen: float
    judged: float
    error: float

    @property
    def value(self) -> float:
        """The middle of the two."""
        return (self.chosen + self.judged) / 2


def best_choice(beliefs: Sequence[Shares], choose: Chooser) -> Choice:
    """Choose by all samples, and again by one half to be judged by the other."""
    rng = np.random.default_rng(0)
    everything = [shares.probability for shares in beliefs]
    coefficients = choose(everything)
    chosen = _applied(coefficients, everything)
    if all(shares.exact for shares in beliefs):
        return Choice(chosen, chosen, 0.0)
    judged, variances = [], [_spread(beliefs, coefficients)]
    for _ in range(SPLITS):
        some, others = zip(*(_halves(shares, rng) for shares in beliefs), strict=True)
        for chosen_by, judged_by in ((some, others), (others, some)):
            coefficients = choose(chosen_by)
            judged.append(_applied(coefficients, judged_by))
            variances.append(_spread(beliefs, coefficients))
    return Choice(chosen, float(np.mean(judged)), math.sqrt(max(variances)))


def _spread(beliefs: Sequence[Shares], coefficients: Sequence[Array]) -> float:
    return sum(linear_variance(Dependence(s, c, c)) for s, c in zip(beliefs, coefficients, strict=True))


def _applied(coefficients: Sequence[Array], probabilities: Sequence[Array]) -> float:
    return float(sum(c @ p for c, p in zip(coefficients, probabilities, strict=True)))


def _halves(shares: Shares, rng: np.random.Generator) -> tuple[Array, Array]:
    """Send each sample to one of two halves by the toss of a coin."""
    p = shares.probability
    if shares.exact:
        return p, p
    # A value whose samples weigh differently is worth fewer of them.
    counts = np.maximum(np.round(_ratio(p**2, shares.squares)), 1).astype(np.int64)
    some = p * rng.binomial(counts, 0.5) / counts
    halves = [half / half.sum() if half.sum() > 0 else p for half in (some, p - some)]
    return halves[0], halves[1]


BLOCK = 1 << 22  # entries of a temporary array of tables or of shuffled samples


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


def shuffles(codes: Array, draws: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield the codes in random orders, several rows of them at a time."""
    step = max(1, BLOCK // len(codes))
    for start in range(0, draws, step):
        yield rng.permuted(np.tile(codes, (min(step, draws - start), 1)), axis=1)


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
        total: Array = terms.reshape(len(terms), -1).sum(axis=1)
        return total

    return _in_bits(content(tables) - content(tables.sum(axis=1)) - content(tables.sum(axis=2)), samples)


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
    bits: Array = np.stack(shares, axis=1) / (2 * np.log(2))
    return bits


def _scores(side: GroupedSide) -> list[Array]:
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


MOST_SHUFFLES, FEWEST_SHUFFLES, SHUFFLED = 200, 10, 1 << 22  # times, times and samples in all
FEW = 12  # samples of a term on average, below which its excess is not yet half a sample's share
CLEAR = 0.02  # bits that unseen pairs may change before a table counts as too sparse


@dataclass(frozen=True)
class PluginEstimate:
    """A value with its interval in bits; `unseen` is how much pairs that were not seen may change it."""

    value: float
    low: float
    high: float
    unseen: float

    @property
    def sparse(self) -> bool:
        """Whether the samples are too few for the table."""
        return abs(self.unseen) > max(CLEAR, (self.high - self.low - abs(self.unseen)) / 2)


@dataclass(frozen=True)
class _Sum:
    """The terms of one sum: probabilities, sums of squared weights, the term of each pair, and the sign."""

    probability: Array
    squares: Array
    places: Array
    sign: int

    @property
    def excess(self) -> float:
        """By how much the sum of p log p is too large on average, in nats."""
        return (float((self.squares / self.probability).sum()) - float(self.squares.sum())) / 2

    @property
    def further(self) -> tuple[float, float]:
        """By how much more terms of a few samples make it too large, in nats, and the variance of that."""
        counts = self.probability**2 / self.squares
        n = np.rint(counts)
        if counts.mean() > FEW or np.abs(counts - n).max() > 1e-6:  # many samples, or some that count for more
            return 0.0, 0.0
        expected = scipy.special.digamma(n) + (-1.0) ** n / 2 * (
            scipy.special.digamma((n + 1) / 2) - scipy.special.digamma(n / 2)
        )
        return float(self.probability @ (np.log(n) - expected - 0.5 / n)), float(
            ((self.probability / n) ** 2).sum()
        ) / 4

    @property
    def once(self) -> Array:
        """Which terms stand for a single sample."""
        single: Array = self.probability**2 < 1.5 * self.squares
        return single

    @property
    def missing(self) -> float:
        """How many terms were not seen, at least."""
        once = float(self.once.sum())
        twice = float((self.probability**2 < 2.5 * self.squares).sum()) - once
        return once * (once - 1) / (2 * (twice + 1))


def counted_information(pairs: Pairs) -> PluginEstimate:
    """Return the mutual information of sampled discrete quantities.

    Near zero the distribution is that of chi-square, whose variance grows with the information: the interval holds all
    values that are at most so many of *their* standard errors away (Chatzikokolakis, Chothia and Guha, 2010). A value
    that was seen once determines the other side by chance: the lower end takes all such values for one.
    """
    found = _counted(pairs, _sums(pairs, joint=1, secret=-1, output=-1), from_zero=True)
    if max(sides_seen_once(pairs)) == 0:
        return found
    merged = without_single(pairs)
    least = _counted(merged, _sums(merged, joint=1, secret=-1, output=-1), from_zero=True)
    return replace(found, low=min(found.low, least.low))


def counted_conditional_entropy(pairs: Pairs) -> PluginEstimate:
    """Return the entropy of the secret given the output, of sampled discrete quantities."""
    return _counted(pairs, _sums(pairs, joint=-1, secret=0, output=1), from_zero=False)


def exact_information(pairs: Pairs) -> tuple[float, Array]:
    """Return the mutual information of the pairs as they stand, in bits, and what each pair contributes."""
    surprise = np.log2(pairs.probability / pairs.prior[pairs.secret] / pairs.marginal[pairs.output])
    return max(0.0, math.fsum(pairs.total * surprise)), surprise


def exact_conditional_entropy(pairs: Pairs) -> tuple[float, Array]:
    """Return the entropy of the secret given the output of the pairs as they stand, in bits, and contributions."""
    surprise = -np.log2(pairs.probability / pairs.marginal[pairs.output])
    return max(0.0, math.fsum(pairs.total * surprise)), surprise


def sides_seen_once(pairs: Pairs) -> tuple[float, float]:
    """Return the shares of samples whose secret, and whose output, no other sample has."""
    secret, output = _sums(pairs, joint=0, secret=1, output=1)[1:]
    return float(secret.probability[secret.once].sum()), float(output.probability[output.once].sum())


def information_by_chance(secret: Array, output: Array) -> tuple[float, float]:
    """Return the mean and the upper limit of the plug-in information, in bits, of codes that have nothing in common.

    One side is shuffled, so that every value occurs as often as it did.
    """
    width = int(output.max()) + 1
    sizes = [np.bincount(codes) for codes in (secret, output)]
    draws = min(MOST_SHUFFLES, max(FEWEST_SHUFFLES, SHUFFLED // len(secret)))
    drawn = [
        sparse_information(secret * width + shuffled, sizes[0], sizes[1])
        for shuffled in shuffles(output, draws, np.random.default_rng(0))
    ]
    bits = np.concatenate(drawn)
    return float(bits.mean()), float(bits.mean() + 2 * bits.std(ddof=1))


def without_single(pairs: Pairs) -> Pairs:
    """Take all secrets that were seen once for one, and all such outputs: merging values cannot add information."""
    secret, output = (_merged(part)[part.places] for part in _sums(pairs, joint=0, secret=1, output=1)[1:])
    width = int(secret.max()) + 1
    cells, inverse = np.unique(output * width + secret, return_inverse=True)
    probability = np.bincount(inverse.reshape(-1), pairs.probability)
    squares = np.bincount(inverse.reshape(-1), pairs.squares)
    secrets, outputs = (list(range(int(codes.max()) + 1)) for codes in (secret, output))
    return Pairs(cells % width, cells // width, probability, secrets, outputs, pairs.samples, pairs.method, squares)


def _merged(part: "_Sum") -> Array:
    """Return a code for each value, one for all that were seen once."""
    single = part.once
    codes = np.cumsum(~single) - 1
    codes[single] = codes.max() + 1
    return codes


def _sums(pairs: Pairs, *, joint: int, secret: int, output: int) -> list[_Sum]:
    everything = np.arange(len(pairs.probability))
    return [
        _Sum(pairs.probability, pairs.squares, everything, joint),
        _Sum(pairs.prior, np.bincount(pairs.secret, pairs.squares, len(pairs.secrets)), pairs.secret, secret),
        _Sum(pairs.marginal, np.bincount(pairs.output, pairs.squares, len(pairs.outputs)), pairs.output, output),
    ]


def _counted(pairs: Pairs, sums: list[_Sum], *, from_zero: bool) -> PluginEstimate:
    terms = np.sum([part.sign * np.log(part.probability)[part.places] for part in sums], axis=0)
    plain = float(pairs.probability @ terms)
    variance = float(pairs.squares @ (terms - plain) ** 2)
    excess = sum(part.sign * part.excess for part in sums)
    unseen = sum(part.sign * part.missing for part in sums) / pairs.samples
    doubt = 2 * math.sqrt(sum(abs(part.sign) * part.missing for part in sums)) / pairs.samples
    further = sum(part.sign * part.further[0] for part in sums)
    second = abs(excess) / pairs.samples + sum(abs(part.sign) * part.further[1] for part in sums)
    growth = variance / (2 * plain) if from_zero and plain > 0 else 0.0
    middle = plain - excess - further
    high = _end(
        middle + max(0.0, further) - min(0.0, unseen - doubt), variance, second, growth, quantile(pairs.samples)
    )
    skewed = _skewed(excess, pairs.samples) if from_zero else second
    low = _end(
        middle + min(0.0, further) - max(0.0, unseen + doubt), variance, skewed, growth, -quantile(pairs.samples)
    )
    missed = _never_seen(pairs.samples)
    if min(len(pairs.secrets), len(pairs.outputs)) == 1:
        high += missed
    elif doubt == 0 and len(terms) < len(pairs.secrets) * len(pairs.outputs):
        low, high = (low - missed, high) if from_zero else (low, high + missed)
    ends = [max(0.0, number) / LN2 for number in (middle, low, high)]
    return PluginEstimate(ends[0], min(ends[1], ends[0]), max(ends[2], ends[0]), unseen / LN2)


def _end(middle: float, variance: float, second: float, growth: float, reach: float) -> float:
    """Return the value whose own error reaches the middle, if its variance grows with it; else the middle and error."""
    if growth == 0:
        return middle + reach * math.sqrt(variance + second)
    square = (reach * growth) ** 2 + 2 * growth * middle + second
    return middle + reach**2 * growth + reach * math.sqrt(max(0.0, square))


def _skewed(excess: float, samples: float) -> float:
    """Return the variance that a normal error would need for its upper tail to be that of chi-square."""
    freedom = 2 * samples * excess
    if freedom < 0.5:
        return abs(excess) / samples
    return float((scipy.special.chdtri(freedom, 0.025) - freedom) / (2 * samples) / quantile(samples)) ** 2


def _never_seen(samples: float) -> float:
    """Return the entropy of an event as likely as it can be without having been seen."""
    chance = min(0.5, 1 - 0.025 ** (1 / samples))
    return float(scipy.special.entr([chance, 1 - chance]).sum())
