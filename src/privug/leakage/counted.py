"""Information and conditional entropy of discrete samples from the table of their counts, with honest intervals.

Both are sums of p log p over the pairs, the secrets and the outputs, with a sign each. Every such sum is too large by
half the number of its terms over the number of samples (Miller, 1955; over all possible pairs of an independent table
this is the correction of Chothia and Guha, 2011), and by more where terms stand for few samples each (Grassberger,
2003). How many terms were not seen at all is told by those that were seen
once or twice (Chao, 1984); the interval reaches to what they would change.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy

from privug.leakage.contingency import shuffles, sparse_information
from privug.leakage.finite import Pairs
from privug.leakage.plugin import quantile
from privug.model.node import Array

LN2 = math.log(2)
MOST_SHUFFLES, FEWEST_SHUFFLES, SHUFFLED = 200, 10, 1 << 22  # times, times and samples in all
FEW = 12  # samples of a term on average, below which its excess is not yet half a sample's share
CLEAR = 0.02  # bits that unseen pairs may change before a table counts as too sparse


@dataclass(frozen=True)
class Counted:
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


def counted_information(pairs: Pairs) -> Counted:
    """Return the mutual information of sampled discrete quantities.

    Near zero the distribution is that of chi-square, whose variance grows with the information: the interval holds all
    values that are at most so many of *their* standard errors away (Chatzikokolakis, Chothia and Guha, 2010). A value
    that was seen once determines the other side by chance: the lower end takes all such values for one.
    """
    found = _counted(pairs, _sums(pairs, joint=1, secret=-1, output=-1), from_zero=True)
    if max(seen_once(pairs)) == 0:
        return found
    merged = without_single(pairs)
    least = _counted(merged, _sums(merged, joint=1, secret=-1, output=-1), from_zero=True)
    return replace(found, low=min(found.low, least.low))


def counted_conditional_entropy(pairs: Pairs) -> Counted:
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


def seen_once(pairs: Pairs) -> tuple[float, float]:
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


def _counted(pairs: Pairs, sums: list[_Sum], *, from_zero: bool) -> Counted:
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
    return Counted(ends[0], min(ends[1], ends[0]), max(ends[2], ends[0]), unseen / LN2)


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
