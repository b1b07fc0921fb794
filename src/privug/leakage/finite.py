"""Finite beliefs and joints: the distinct values, or pairs of secret and output, with their probabilities."""

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy

from privug.arguments import shown
from privug.errors import ArgumentError
from privug.estimate import ROUNDING, UNDERFLOW
from privug.inference.belief import Belief
from privug.inference.intervals import student
from privug.inference.joint import Classes, Joint
from privug.model.batch import Batch, Column, DeferredBatch, Values, ranked
from privug.model.node import Array
from privug.model.structure import LEAF, Structure
from privug.model.table import Row, Table
from privug.model.values import key_of

PLAIN = (tuple, list, dict, Row, Table)


def distinct_values(batch: Batch) -> tuple[Array, Sequence[Any]]:
    """Return a code for each sample and the distinct values; what Python holds equal, such as 1 and True, is one."""
    if batch.numbers() is not None:
        return batch.factorized()
    if _differ_by_columns(batch):
        codes, distinct = batch.coded()
        return codes, Values(distinct)
    codes, values = batch.factorized()
    places: dict[Hashable, int] = {}
    merged = [places.setdefault(key_of(value), len(places)) for value in values]
    if len(places) == len(values):
        return codes, values
    first = np.unique(merged, return_index=True)[1]
    return np.array(merged)[codes], [values[k] for k in first]


def _differ_by_columns(batch: Batch) -> bool:
    """Say whether values are equal just where all of their columns are, so that they need not be made to see it."""
    return _is_plain(batch.structure) and all(map(_tells_apart, batch.columns))


def _is_plain(structure: Structure) -> bool:
    return structure is LEAF or (structure.container in PLAIN and all(map(_is_plain, structure.children)))


def _tells_apart(column: Column) -> bool:
    if column.levels is None:
        return column.array.dtype != object
    return len({key_of(level) for level in column.levels}) == len(column.levels)


def number_columns(batch: Batch) -> Array | None:
    """Return a row of numbers for each sample; None if some part is not a number."""
    if any(column.levels is not None or column.array.dtype.kind not in "bif" for column in batch.columns):
        return None
    return np.column_stack([column.array.reshape(len(batch), -1).astype(float) for column in batch.columns])


def equally_weighing(weights: Array, rng: np.random.Generator) -> Array:
    """Mark samples to keep, each with a probability proportional to its weight, so that those kept weigh the same."""
    return np.asarray(rng.random(len(weights)) * weights.max() < weights)


LN2 = math.log(2)
PART = 1 << 15  # samples that stay in the cache

# Every measure of one joint or belief starts from the same values: they are collected once, and as long as it lives.
_known_pairs: "WeakKeyDictionary[Joint, Pairs]" = WeakKeyDictionary()
_known_shares: "WeakKeyDictionary[Belief, Shares]" = WeakKeyDictionary()


@dataclass(frozen=True)
class Shares:
    """The distinct values of a belief, each with a positive probability; numbers ascend.

    `squares` holds the sum of the squared weights of the samples of each value: `probability / samples` if all weigh
    the same, zero if the probabilities are exact. `samples` is the effective number of samples, infinite if exact;
    `error` bounds the error of exact probabilities. Where values of the same probability are counted together, `copies`
    says how many each entry stands for, and `probability` is that of one of them; the values are then not told.
    """

    values: Sequence[Any]
    probability: Array
    squares: Array
    samples: float
    method: str
    error: float = 0.0
    copies: Array | None = None

    @property
    def exact(self) -> bool:
        """Whether the probabilities are exact."""
        return bool(np.isinf(self.samples))

    @property
    def count(self) -> int:
        """How many values there are."""
        return len(self) if self.copies is None else int(self.copies.sum())

    def summed(self, terms: Array) -> float:
        """Return the sum of a term for each value, given those of the entries."""
        return float(terms.sum() if self.copies is None else terms @ self.copies)

    def __len__(self) -> int:
        return len(self.probability)


@dataclass(frozen=True)
class Pairs:
    """The distinct pairs of a joint, each with a positive probability, sorted by output and then by secret.

    `secret` and `output` hold positions in `secrets` and `outputs`; `probability` sums to one. `samples` is the
    effective number of samples behind the probabilities, infinite if they are exact. `squares` holds the sum of the
    squared weights of the samples of each pair: `probability / samples` if all weigh the same, zero if exact. Where
    secrets that are alike are counted together, `copies` says how many each of the `secrets` stands for, and
    `probability` is that of one of them with the output.
    """

    secret: Array
    output: Array
    probability: Array
    secrets: Sequence[Any]
    outputs: Sequence[Any]
    samples: float
    method: str
    squares: Array
    copies: Array | None = None

    @property
    def exact(self) -> bool:
        """Whether the probabilities are exact."""
        return bool(np.isinf(self.samples))

    @cached_property
    def prior(self) -> Array:
        """The probability of each secret."""
        return np.bincount(self.secret, self.probability, len(self.secrets))

    @property
    def count(self) -> int:
        """How many secrets there are."""
        return len(self.secrets) if self.copies is None else int(self.copies.sum())

    @cached_property
    def each(self) -> Array | float:
        """How many secrets each pair stands for."""
        return 1.0 if self.copies is None else self.copies[self.secret].astype(float)

    @cached_property
    def total(self) -> Array:
        """The probability of each pair, of all secrets that it stands for together."""
        return self.probability if self.copies is None else self.probability * self.each

    @cached_property
    def marginal(self) -> Array:
        """The probability of each output."""
        return np.bincount(self.output, self.total, len(self.outputs))

    @cached_property
    def starts(self) -> Array:
        """Where each output's pairs begin, for `np.ufunc.reduceat`."""
        return np.flatnonzero(np.diff(self.output, prepend=-1))

    def matrix(self) -> Array:
        """Return the joint probabilities as a dense matrix, a row for each secret."""
        dense = np.zeros((len(self.secrets), len(self.outputs)))
        dense[self.secret, self.output] = self.probability
        return dense


def check_joint(joint: Any, what: str, such_as: str = "result.joint") -> None:
    """Refuse what is not a joint."""
    if not isinstance(joint, Joint):
        raise ArgumentError(f"{what} averages over outputs: it needs a Joint such as {such_as}, not {shown(joint)}")


def pairs_of(joint: Joint) -> Pairs:
    """Collect the distinct pairs of a joint."""
    check_joint(joint, "this measure")
    if joint not in _known_pairs:
        _known_pairs[joint] = _collected(joint)
    return _known_pairs[joint]


def shares_of(belief: Belief) -> Shares:
    """Collect the distinct values of a belief."""
    if belief not in _known_shares:
        _known_shares[belief] = _counted(belief)
    return _known_shares[belief]


def keep_shares(belief: Belief, shares: Shares) -> None:
    """Remember the values of a belief that were collected on the way, unless they are known."""
    _known_shares.setdefault(belief, shares)


def _counted(belief: Belief) -> Shares:
    if belief.exact and belief.batch.each_once and belief.weights is not None:
        return _as_they_are(belief, belief.weights)
    codes, values = distinct_values(belief.batch)
    sums = _sums([codes], [len(values)], belief.weights, belief.squares)
    present, probability, squares = _normalised(*sums, belief.exact)
    held = values if len(present) == len(values) else _chosen(values, present)
    return made_shares(belief, held, probability, squares)


def _as_they_are(belief: Belief, weights: Array) -> Shares:
    """Return the values of a belief of which no two are equal."""
    held, batch = weights > 0, belief.batch
    if not held.all():
        batch, weights = batch.take(held), weights[held]
    return made_shares(belief, Values(batch), weights / weights.sum(), np.zeros(len(batch)))


def _chosen(values: Sequence[Any], places: Array) -> Sequence[Any]:
    return Values(values.batch.take(places)) if isinstance(values, Values) else [values[k] for k in places]


def made_shares(belief: Belief, values: Sequence[Any], probability: Array, squares: Array) -> Shares:
    """Return values with their probabilities, known as well as the belief is."""
    noise = squares if belief.groups is None else squares * belief.inflation
    return Shares(values, probability, noise, belief.effective_samples, belief.method, belief.error)


def _collected(joint: Joint) -> Pairs:
    weighted = joint.weights is not None  # which also refuses a joint whose pairs are not listed
    constant = constant_value(joint.output.batch)
    if constant is not None:
        return unseen(shares_of(joint.secret), constant)
    secret, secrets = distinct_values(joint.secret.batch)
    output, outputs = distinct_values(joint.output.batch)
    sums = _sums([output, secret], [len(outputs), len(secrets)], joint.weights, joint.secret.squares)
    cells, probability, squares = _normalised(*sums, joint.exact)
    if joint.secret.groups is not None:
        squares = squares * joint.secret.inflation
    output = cells // len(secrets)
    secret = cells - output * len(secrets)
    if weighted:  # a value whose samples all weigh nothing is in no pair
        secret, possible = ranked(secret)
        secrets = _chosen(secrets, possible)
        output, possible = ranked(output)
        outputs = _chosen(outputs, possible)
    samples, method = joint.effective_samples, joint.secret.method
    for belief, codes, values in ((joint.secret, secret, secrets), (joint.output, output, outputs)):
        share, noise = (np.bincount(codes, weights, len(values)) for weights in (probability, squares))
        keep_shares(belief, made_shares(belief, values, share, noise))
    return Pairs(secret, output, probability, secrets, outputs, samples, method, squares)


def unseen(shares: Shares, constant: list[Any]) -> Pairs:
    """Return the pairs of some values with the one output that there is."""
    secret, output = np.arange(len(shares)), np.zeros(len(shares), np.intp)
    secrets = shares.values if shares.copies is None else range(len(shares))
    known = shares.samples, shares.method, shares.squares, shares.copies
    return Pairs(secret, output, shares.probability, secrets, constant, *known)


def constant_value(batch: Batch) -> list[Any] | None:
    """Return the value of numbers that are all the same."""
    numbers = batch.numbers()
    if numbers is None or not len(numbers):
        return None
    repeated = numbers.strides == (0,)  # one number, shown many times
    same = repeated or (numbers[0] == numbers[-1] and numbers.min() == numbers.max())
    return numbers[:1].tolist() if same else None


def _sums(
    codes: Sequence[Array], widths: Sequence[int], weights: Array | None, squares: Array | None
) -> tuple[Array, Array, Array]:
    """Return cells in ascending order with the sums of the weights and of the squared weights of their samples."""
    cells = math.prod(widths)
    if weights is not None and squares is None:
        squares = weights**2
    if cells <= len(codes[0]) + PART:
        return np.arange(cells), *_in_table(codes, widths, weights, squares)
    return _in_order(_keys(codes, widths), weights, squares)


def _normalised(cells: Array, sums: Array, squares: Array, exact: bool) -> tuple[Array, Array, Array]:
    """Return the cells that hold any weight, their probabilities, and the noise of those."""
    held, total = sums > 0, sums.sum()
    noise = np.zeros(int(held.sum())) if exact else squares[held] / total**2
    return cells[held], sums[held] / total, noise


def _in_order(keys: Array, weights: Array | None, squares: Array | None) -> tuple[Array, Array, Array]:
    if weights is None or squares is None:
        keys = np.sort(keys)
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        counts = np.diff(starts, append=len(keys))
        return keys[starts], counts, counts
    order = _order(keys)
    keys = keys[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[starts], np.add.reduceat(weights[order], starts), np.add.reduceat(squares[order], starts)


def _order(keys: Array) -> Array:
    """Sort keys and positions as one number where both fit: twice as fast as `np.argsort`."""
    room = len(keys).bit_length()
    if int(keys.max()).bit_length() + room > 63:
        return np.argsort(keys)
    packed = np.sort((keys << room) | np.arange(len(keys)))
    return np.asarray(packed & ((1 << room) - 1))


def _in_table(
    codes: Sequence[Array], widths: Sequence[int], weights: Array | None, squares: Array | None
) -> tuple[Array, Array]:
    cells = math.prod(widths)
    sums, sums_of_squares = np.zeros((2, cells))
    step = max(PART, cells)
    for start in range(0, len(codes[0]), step):
        part = slice(start, start + step)
        keys = _keys([some[part] for some in codes], widths)
        sums += np.bincount(keys, None if weights is None else weights[part], cells)
        if squares is not None:
            sums_of_squares += np.bincount(keys, squares[part], cells)
    return sums, sums if squares is None else sums_of_squares


def _keys(codes: Sequence[Array], widths: Sequence[int]) -> Array:
    keys = codes[0]
    for some, width in zip(codes[1:], widths[1:], strict=True):
        keys = keys * width + some
    return keys


def aligned(beliefs: Sequence[Shares]) -> list[Shares]:
    """Express several beliefs over the values of all of them; a value that one of them lacks has probability zero.

    Values are the same where Python holds them equal, such as 1, 1.0 and True.
    """
    together = _concatenated(beliefs)
    if together is not None:
        places, found = together.coded()
        return _all_spread(beliefs, places, Values(found))
    everything = [value for shares in beliefs for value in shares.values]
    numbers = _as_numbers(everything)
    if numbers is not None:
        distinct, places = np.unique(numbers, return_inverse=True)
        union = distinct.tolist()
    else:
        known: dict[Hashable, int] = {}
        places = np.array([known.setdefault(key_of(value), len(known)) for value in everything])
        union = [everything[k] for k in np.unique(places, return_index=True)[1]]
    return _all_spread(beliefs, places, union)


def _all_spread(beliefs: Sequence[Shares], places: Array, union: Sequence[Any]) -> list[Shares]:
    ends = np.cumsum([len(shares) for shares in beliefs])[:-1]
    return [_spread(shares, some, union) for shares, some in zip(beliefs, np.split(places, ends), strict=True)]


def _concatenated(beliefs: Sequence[Shares]) -> Batch | None:
    """Return the values of several beliefs one after the other, if they are equal where their columns are."""
    batches = [shares.values.batch for shares in beliefs if isinstance(shares.values, Values)]
    if len(batches) < len(beliefs) or not all(batch.has_layout_of(batches[0]) for batch in batches):
        return None
    return Batch.concatenate(batches)


def _as_numbers(values: list[Any]) -> Array | None:
    """Return plain numbers as an array, if that keeps equal ones equal and others apart."""
    types = set(map(type, values))
    if not types <= {bool, int, float}:
        return None
    array = np.array(values)
    whole = types <= {bool, int}
    fits = array.dtype.kind in "bi" if whole else array.dtype.kind == "f" and bool(np.all(np.abs(array) < 2**53))
    return array if fits or types == {float} else None


def _spread(shares: Shares, places: Array, values: Sequence[Any]) -> Shares:
    probability, squares = np.zeros(len(values)), np.zeros(len(values))
    probability[places], squares[places] = shares.probability, shares.squares
    return replace(shares, values=values, probability=probability, squares=squares)


_pairs_of_classes: "WeakKeyDictionary[Joint, Pairs]" = WeakKeyDictionary()
_shares_of_classes: "WeakKeyDictionary[Belief, Shares]" = WeakKeyDictionary()


def alike_pairs(joint: Joint) -> Pairs:
    """Collect the pairs of a joint, those of secrets that are alike together where an engine found them so."""
    if not isinstance(joint, Joint) or not joint.exact or joint.channel is not None:
        return pairs_of(joint)
    if joint.classes is not None:
        if joint not in _pairs_of_classes:
            _pairs_of_classes[joint] = _of_classes(joint, joint.classes)
        return _pairs_of_classes[joint]
    constant = constant_value(joint.output.batch)
    return pairs_of(joint) if constant is None else unseen(alike_shares(joint.secret), constant)


def alike_shares(belief: Belief) -> Shares:
    """Collect the values of a belief, those of the same probability together if all are known to be different."""
    known = _shares_of_classes.get(belief)
    if known is None and belief.exact and belief.batch.each_once and belief.weights is not None:
        probability, copies = np.unique(belief.weights[belief.weights > 0], return_counts=True)
        known = _shares_of_classes[belief] = _together(belief, probability, copies)
    return shares_of(belief) if known is None else known


def _together(belief: Belief, probability: Array, copies: Array) -> Shares:
    return replace(made_shares(belief, (), probability, np.zeros(len(probability))), copies=copies)


def _of_classes(joint: Joint, known: Classes) -> Pairs:
    representatives, outputs = Values(_representatives(known)), Values(known.outputs)
    _shares_of_classes.setdefault(joint.secret, _together(joint.secret, known.prior, known.copies))
    keep_shares(joint.output, made_shares(joint.output, outputs, known.marginal, np.zeros(len(outputs))))
    secret, output, squares = known.secret, known.output, np.zeros(len(known.secret))
    samples, method = joint.effective_samples, joint.secret.method
    return Pairs(secret, output, known.probability, representatives, outputs, samples, method, squares, known.copies)


def _representatives(known: Classes) -> Batch:
    """Return one secret of each class, found and made when somebody asks for it."""

    def made(some: Array | None) -> Batch:
        return known.secrets.take(known.representatives if some is None else known.representatives[some])

    return DeferredBatch(known.secrets.structure, len(known.copies), made)


BLOCK = 1 << 22  # entries of a temporary array of tables or of shuffled samples


def shuffles(codes: Array, draws: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield the codes in random orders, several rows of them at a time."""
    step = max(1, BLOCK // len(codes))
    for start in range(0, draws, step):
        yield rng.permuted(np.tile(codes, (min(step, draws - start), 1)), axis=1)


def bits_of(nats: Array, samples: float) -> Array:
    """Return sums over samples in nats as bits for each sample."""
    return np.asarray(np.maximum(nats, 0.0) / (samples * np.log(2)))


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
    return bits_of(joint - margins, samples)


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
class SumPart:
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
        return np.asarray(self.probability**2 < 1.5 * self.squares)

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
    found = _estimated(pairs, _parts_of(pairs, joint=1, secret=-1, output=-1), from_zero=True)
    if max(sides_seen_once(pairs)) == 0:
        return found
    merged = without_single(pairs)
    least = _estimated(merged, _parts_of(merged, joint=1, secret=-1, output=-1), from_zero=True)
    return replace(found, low=min(found.low, least.low))


def counted_conditional_entropy(pairs: Pairs) -> PluginEstimate:
    """Return the entropy of the secret given the output, of sampled discrete quantities."""
    return _estimated(pairs, _parts_of(pairs, joint=-1, secret=0, output=1), from_zero=False)


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
    secret, output = _parts_of(pairs, joint=0, secret=1, output=1)[1:]
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
    secret, output = (_merged(part)[part.places] for part in _parts_of(pairs, joint=0, secret=1, output=1)[1:])
    width = int(secret.max()) + 1
    cells, inverse = np.unique(output * width + secret, return_inverse=True)
    probability = np.bincount(inverse.reshape(-1), pairs.probability)
    squares = np.bincount(inverse.reshape(-1), pairs.squares)
    secrets, outputs = (list(range(int(codes.max()) + 1)) for codes in (secret, output))
    return Pairs(cells % width, cells // width, probability, secrets, outputs, pairs.samples, pairs.method, squares)


def _merged(part: "SumPart") -> Array:
    """Return a code for each value, one for all that were seen once."""
    single = part.once
    codes = np.cumsum(~single) - 1
    codes[single] = codes.max() + 1
    return codes


def _parts_of(pairs: Pairs, *, joint: int, secret: int, output: int) -> list[SumPart]:
    everything = np.arange(len(pairs.probability))
    return [
        SumPart(pairs.probability, pairs.squares, everything, joint),
        SumPart(pairs.prior, np.bincount(pairs.secret, pairs.squares, len(pairs.secrets)), pairs.secret, secret),
        SumPart(pairs.marginal, np.bincount(pairs.output, pairs.squares, len(pairs.outputs)), pairs.output, output),
    ]


def _estimated(pairs: Pairs, sums: list[SumPart], *, from_zero: bool) -> PluginEstimate:
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
        middle + max(0.0, further) - min(0.0, unseen - doubt), variance, second, growth, student(pairs.samples - 1)
    )
    skewed = _skewed(excess, pairs.samples) if from_zero else second
    low = _end(
        middle + min(0.0, further) - max(0.0, unseen + doubt), variance, skewed, growth, -student(pairs.samples - 1)
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
    return float((scipy.special.chdtri(freedom, 0.025) - freedom) / (2 * samples) / student(samples - 1)) ** 2


def _never_seen(samples: float) -> float:
    """Return the entropy of an event as likely as it can be without having been seen."""
    chance = min(0.5, 1 - 0.025 ** (1 / samples))
    return float(scipy.special.entr([chance, 1 - chance]).sum())


def share_intervals(
    share: Array, pairs: Pairs, error: float, looks: tuple[int | Array, int], tail: float
) -> tuple[Array, Array, Array]:
    """Return probabilities of secrets given each output, with the ends of their intervals.

    Exact probabilities that are wrong by at most `error` are divided by the probability of the output, which may be
    wrong by as much: a probability given the output is wrong by at most twice the ratio. Of samples the intervals are
    those of Clopper and Pearson on the effective number of samples behind each output, each end outside with the
    probability `tail` divided by the number of `looks` (Bonferroni), for the low and for the high end.
    """
    share = np.clip(share, 0.0, 1.0)
    if pairs.exact:
        lost = UNDERFLOW / pairs.marginal
        doubt = 2 * (error / pairs.marginal + np.where(lost > ROUNDING, lost, 0.0))  # elsewhere zero is zero
        return share, np.maximum(share - doubt, 0.0), np.minimum(share + doubt, 1.0)
    samples = pairs.marginal**2 / np.add.reduceat(pairs.squares, pairs.starts)
    hits, misses = share * samples, (1 - share) * samples
    low = np.where(hits > 0, scipy.special.betaincinv(np.maximum(hits, 1e-300), misses + 1, tail / looks[0]), 0.0)
    high = scipy.special.betaincinv(hits + 1, np.maximum(misses, 1e-300), 1 - tail / looks[1])
    return share, np.minimum(low, share), np.maximum(np.where(misses > 0, high, 1.0), share)
