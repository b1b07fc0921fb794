"""Joint: secret and output together, listed as pairs, as classes of secrets that are alike, or as a channel."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from privug.arguments import check_kind, kinds_checked
from privug.errors import ArgumentError
from privug.estimate import Estimate
from privug.inference.belief import Belief, as_list, as_numbers
from privug.inference.case_plan import settled
from privug.model.batch import Batch, codes_of, combined, digits, first_places, ranked
from privug.model.node import Array
from privug.model.structure import LEAF, described, incomparable
from privug.observation.observations import Observation
from privug.pictures import plots

LARGEST_SPAN = 1 << 22
MOST_PENDING = 1 << 21


class WeightedCounter:
    """The weights of the distinct values of some quantities together; those that come `each_once` need no merging."""

    def __init__(self, *, each_once: bool = False) -> None:
        self._each_once = each_once
        self._pending: list[tuple[tuple[Batch, ...], Array]] = []
        self._rows = 0
        self._most = MOST_PENDING
        self._grid: Grid | None = Grid()

    def add(self, quantities: Sequence[Batch], weights: Array) -> None:
        """Count the values of some states."""
        if not len(weights):
            return
        quantities = [settled(batch) for batch in quantities]
        if self._each_once:
            self._append(tuple(quantities), weights)
            return
        if self._grid is not None and len(quantities) == 1:
            if self._grid.add(quantities[0], weights):
                return
            self._pending.extend(self._grid.merged())
        self._grid = None
        self._append(*_merged(quantities, weights))
        if self._rows > self._most:
            self._condense()
            self._most = max(MOST_PENDING, 2 * self._rows)  # what is all distinct is not gone through again and again

    def scale(self, factor: float) -> None:
        """Multiply all weights so far."""
        self._pending = [(quantities, weights * factor) for quantities, weights in self._pending]
        if self._grid is not None:
            self._grid.weights *= factor

    def _append(self, quantities: tuple[Batch, ...], weights: Array) -> None:
        self._pending.append((quantities, weights))
        self._rows += len(weights)

    def _condense(self) -> None:
        if len(self._pending) > 1:
            quantities = [Batch.concatenate(parts) for parts in zip(*(q for q, _ in self._pending), strict=True)]
            weights = np.concatenate([weights for _, weights in self._pending])
            self._pending, self._rows = [], 0
            self._append(*((tuple(quantities), weights) if self._each_once else _merged(quantities, weights)))

    def result(self) -> tuple[tuple[Batch, ...], Array]:
        """Return the distinct values, in ascending order if ordered, and their weights."""
        if self._grid is not None:
            self._pending.extend(self._grid.merged())
            self._grid = None
        self._condense()
        quantities, weights = self._pending[0]
        there = weights > 0
        if not there.all():
            quantities, weights = tuple(batch.take(there) for batch in quantities), weights[there]
        return tuple(replace(batch, each_once=self._each_once) for batch in quantities), weights


class Grid:
    """The weights of whole numbers of a moderate range, by their distance from the smallest."""

    def __init__(self) -> None:
        self._like: Batch | None = None
        self._low = 0
        self.weights: Array = np.zeros(0)

    def add(self, batch: Batch, weights: Array) -> bool:
        """Count some numbers; say whether that could be done."""
        column = batch.columns[0] if batch.structure is LEAF else None
        if column is None or column.array.dtype.kind not in "bi" or column.array.ndim > 1:
            return False
        like = self._like.columns[0] if self._like is not None else column
        if (like.levels, like.array.dtype) != (column.levels, column.array.dtype):
            return False
        low, high = int(column.array.min()), int(column.array.max())
        start, stop = low, high + 1
        if len(self.weights):
            start, stop = min(low, self._low), max(stop, self._low + len(self.weights))
        if stop - start > LARGEST_SPAN:
            return False
        if stop - start > len(self.weights):
            grown = np.zeros(stop - start)
            grown[self._low - start : self._low - start + len(self.weights)] = self.weights
            self.weights, self._low = grown, start
        counts = np.bincount(np.subtract(column.array, low, dtype=np.intp), weights, high - low + 1)
        self.weights[low - self._low : high + 1 - self._low] += counts
        self._like = batch.take(np.zeros(1, np.intp))
        return True

    def merged(self) -> list[tuple[tuple[Batch, ...], Array]]:
        """Return the numbers that have weight, with it."""
        if self._like is None:
            return []
        held = np.flatnonzero(self.weights)
        column = self._like.columns[0]
        numbers = (held + self._low).astype(column.array.dtype)
        batch = Batch(LEAF, (type(column)(numbers, column.levels),), len(numbers))
        return [((batch,), self.weights[held])]


def marginal(quantities: Sequence[Batch], weights: Array, position: int) -> tuple[tuple[Batch, ...], Array]:
    """Return the distinct values of one of several quantities, with their weights."""
    tally = WeightedCounter()
    tally.add([quantities[position]], weights)
    return tally.result()


def _merged(quantities: Sequence[Batch], weights: Array) -> tuple[tuple[Batch, ...], Array]:
    """Merge equal combinations of values."""
    codes = codes_of(quantities, len(weights))
    first = first_places(codes)
    return tuple(batch.take(first) for batch in quantities), np.bincount(codes, weights, len(first))


@dataclass(frozen=True)
class ChannelBlock:
    """The probabilities of some secrets with a range of outputs: rows are secrets, which no other block has."""

    first_output: int
    probabilities: Array


@dataclass(frozen=True)
class Summary:
    """What one pass over all pairs gives: entropies in bits and the chance of a best guess."""

    joint_entropy: float
    secret_entropy: float
    output_entropy: float
    bayes_vulnerability: float


@dataclass(frozen=True, eq=False)
class ImplicitChannel:
    """The pairs of a finite joint in blocks of whole secrets, computed anew whenever they are asked for."""

    secrets: int
    outputs: int
    states: int
    blocks: Callable[[], Iterator[ChannelBlock]]

    @cached_property
    def summary(self) -> Summary:
        """The sums over all pairs that the measures need, from one pass."""
        marginal, best = np.zeros(self.outputs), np.zeros(self.outputs)
        joint, secret = [], []
        for block in self.blocks():
            cells = block.probabilities
            columns = slice(block.first_output, block.first_output + cells.shape[1])
            marginal[columns] += cells.sum(axis=0)
            np.maximum(best[columns], cells.max(axis=0), out=best[columns])
            joint.append(_entropy(cells))
            secret.append(_entropy(cells.sum(axis=1)))
        return Summary(math.fsum(joint), math.fsum(secret), _entropy(marginal), min(1.0, float(best.sum())))

    def mutual_information(self) -> float:
        """Return the mutual information of secret and output in bits."""
        known = self.summary
        return max(0.0, known.secret_entropy + known.output_entropy - known.joint_entropy)

    def bayes_vulnerability(self) -> float:
        """Return the probability of guessing the secret right in one try, after seeing the output."""
        return self.summary.bayes_vulnerability


def _entropy(probabilities: Array) -> float:
    return float(scipy.special.entr(probabilities).sum()) / math.log(2)


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of secrets of a finite joint.

    `secret` and `output` hold, for each pair of a class and an output that it can give, their places; `probability` is
    that of one secret of the class together with the output. `copies` is how many secrets each class has, `members` the
    class of each of the `secrets`. Pairs are sorted by output and then by class, and probabilities of all secrets sum
    to one.
    """

    secret: Array
    output: Array
    probability: Array
    copies: Array
    outputs: Batch
    secrets: Batch
    members: Array

    @cached_property
    def prior(self) -> Array:
        """The probability of one secret of each class."""
        return np.bincount(self.secret, self.probability, len(self.copies))

    @cached_property
    def marginal(self) -> Array:
        """The probability of each output."""
        return np.bincount(self.output, self.probability * self.copies[self.secret], len(self.outputs))

    @cached_property
    def weights(self) -> Array:
        """The probability of each secret."""
        return self.prior[self.members]

    @property
    def pairs(self) -> int:
        """How many pairs of one secret and one output there are."""
        return int(self.copies[self.secret].sum())

    @property
    def determine_output(self) -> bool:
        """Whether every secret has one output, so that pairs are as many as secrets."""
        return len(self.secret) == len(self.copies)

    @cached_property
    def representatives(self) -> Array:
        """The place of one secret of each class."""
        return first_places(self.members)

    def output_of(self, which: Array | None) -> Batch:
        """Return the outputs of some secrets, or of all, where each has one."""
        only = np.empty(len(self.copies), np.intp)
        only[self.secret] = self.output
        return self.outputs.take(only[self.members if which is None else self.members[which]])

    def listed(self) -> tuple[Array, Array, Array]:
        """Return the place of the secret, that of the output, and the probability of each single pair."""
        order = np.argsort(self.secret, kind="stable")
        lengths = np.bincount(self.secret, minlength=len(self.copies))
        each = lengths[self.members]
        owner = np.repeat(np.arange(len(self.members)), each)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(each) - each, each)
        pair = order[(np.cumsum(lengths) - lengths)[self.members][owner] + within]
        return owner, self.output[pair], self.probability[pair]


class ClassTally:
    """Classes of secrets, found while secrets come in, each once and with all of its outputs."""

    def __init__(self) -> None:
        self._members: list[Array] = []
        self._copies: list[Array] = []
        self._rows: list[Array] = []
        self._outputs: list[Batch] = []
        self._shares: list[Array] = []
        self._classes = 0
        self.weight = 0.0
        """The probability of all secrets so far."""

    def add(self, secrets: int, place: Array, output: Batch, probability: Array) -> None:
        """Count so many new secrets: pairs of the place of one, from zero on, with an output."""
        held = probability > 0
        if not held.all():
            place, output, probability = place[held], output.take(held), probability[held]
        if not len(place):
            self._members.append(np.full(secrets, -1, np.int8))
            return
        self.weight += float(probability.sum())
        codes, outputs = output.coded()
        row, column, share = _merged_pairs(place, codes, probability, len(outputs))
        members, kept = rows_alike(row, column, share, secrets)
        copies = np.bincount(members[members >= 0] if members.min() < 0 else members)
        self._members.append(self._numbered(members, len(copies)))
        self._copies.append(copies)
        self._rows.append(members[row[kept]] + self._classes)
        self._outputs.append(outputs.take(column[kept]))
        self._shares.append(share[kept])
        self._classes += len(copies)

    @property
    def pairs(self) -> int:
        """How many pairs of a class and an output were found so far."""
        return sum(map(len, self._shares))

    def _numbered(self, members: Array, classes: int) -> Array:
        """Return the classes of secrets among all so far, in as few bytes as they need."""
        moved = members + np.where(members < 0, 0, self._classes) if self._classes else members
        return moved.astype(np.min_scalar_type(-(self._classes + classes)))

    def result(self, secrets: Callable[[Array | None], Batch]) -> Classes:
        """Return the classes; `secrets` makes the batch of all secrets, or of those that a mask chooses."""
        column, outputs = Batch.concatenate(self._outputs).coded()
        row, share, copies = (np.concatenate(parts) for parts in (self._rows, self._shares, self._copies))
        if not _ascends(row):
            order = np.lexsort((column, row))
            row, column, share = row[order], column[order], share[order]
        alike, kept = rows_alike(row, column, share, self._classes)
        secret, output, share = alike[row[kept]], column[kept], share[kept] / self.weight
        order = np.lexsort((secret, output))
        counts = np.bincount(alike, copies).astype(np.int64)
        members, there = self._members_of(alike, len(counts))
        return Classes(secret[order], output[order], share[order], counts, outputs, secrets(there), members)

    def _members_of(self, alike: Array, classes: int) -> tuple[Array, Array | None]:
        """Return the class of each secret that is possible, and which those are unless all are."""
        table = np.append(alike, -1).astype(np.min_scalar_type(-classes))  # -1 finds the last entry
        members = np.concatenate([table[some] for some in self._members])
        there = members >= 0
        return (members, None) if there.all() else (members[there], there)


def rows_alike(row: Array, column: Array, share: Array, rows: int) -> tuple[Array, Array]:
    """Find sparse rows that are equal, entry by entry; the entries come row by row, columns in order.

    Return the class of each row, -1 for one without entries, and a mask of the entries of one row of each class.
    """
    kinds = combined([digits(column), digits(share)])
    most = int(kinds.max()) + 1
    classes = np.full(rows, -1, np.intp)
    if _ascends(row):
        classes[row] = kinds
    else:
        lengths = np.bincount(row, minlength=rows)
        starts = np.cumsum(lengths) - lengths
        fresh = 0
        going_on = np.flatnonzero(lengths)
        for step in range(int(lengths.max())):
            going_on = going_on[lengths[going_on] > step]
            if not len(going_on):
                break
            # Rows that end here keep their class; those that go on get new ones, which no other row has.
            keys = (classes[going_on] + 1) * most + kinds[starts[going_on] + step]
            codes, distinct = ranked(keys)
            classes[going_on] = codes + fresh
            fresh += len(distinct)
            # A row that no other equals so far is a class of its own: the rest of it need not be looked at.
            going_on = going_on[np.bincount(codes)[codes] > 1]
        classes[lengths > 0] = ranked(classes[lengths > 0])[0]
    shown = np.zeros(rows, bool)
    shown[row[first_places(classes[row])]] = True
    return classes, shown[row]


def _merged_pairs(place: Array, codes: Array, probability: Array, outputs: int) -> tuple[Array, Array, Array]:
    """Add up the probabilities of equal pairs; these come secret by secret, outputs in order."""
    if _ascends(place):
        return place, codes, probability
    keys, distinct = ranked(place * outputs + codes)
    return distinct // outputs, distinct % outputs, np.bincount(keys, probability, len(distinct))


def _ascends(places: Array) -> bool:
    """Say whether each number is greater than the one before it."""
    return bool(np.all(places[1:] > places[:-1]))


@dataclass(frozen=True, eq=False)
class Joint:
    """The joint distribution of secret and output: weighted pairs, exact or sampled.

    Pairs of an exact joint are its support, or cells of quadrature where a side has a `curve`: sums over them are
    exact up to rounding. `information` is the mutual information in bits where that is known in closed form; if
    it is infinite, its method says why. A `channel` stands in for pairs that are too many to list; `secret` and
    `output` are then the marginal beliefs, each with values of its own. `prior` is the exact belief about the secret of
    a sampled joint, where that is known. `classes` holds the same pairs, with secrets that are alike counted together,
    where an engine found them so.

    >>> joint = Joint.from_channel([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]])
    >>> print(joint.output.probability(lambda o: o == 0))
    0.55 (exact)
    """

    secret: Belief
    output: Belief
    information: Estimate | None = None
    channel: ImplicitChannel | None = None
    prior: Belief | None = None
    classes: Classes | None = None

    def __post_init__(self) -> None:
        for side in (self.secret, self.output):
            if not isinstance(side, Belief):
                raise ArgumentError(f"a joint is made of two beliefs, not of {side!r:.80}; see Joint.from_samples")
        if self.channel is None and len(self.secret.batch) != len(self.output.batch):
            counts = f"{len(self.secret.batch)} and {len(self.output.batch)}"
            raise ArgumentError(f"secrets and outputs must come in pairs, but there are {counts}")

    @property
    def exact(self) -> bool:
        """Whether the pairs are the whole support with its probabilities."""
        return self.secret.exact

    @property
    def weights(self) -> Array | None:
        """The probability of each pair; None means all equal."""
        if self.channel is not None:
            raise ArgumentError(
                f"this joint has some {self.channel.states:,} pairs of secret and output, too many to list; ask for "
                "mutual_information, bayes_vulnerability or bayes_risk, or for joint.secret and joint.output"
            )
        return self.secret.weights

    @property
    def effective_samples(self) -> float:
        """How many independent, equally weighted pairs this joint is worth."""
        return self.secret.effective_samples

    @classmethod
    def from_samples(cls, secrets: Sequence[Any], outputs: Sequence[Any]) -> "Joint":
        """Make a joint of observed pairs."""
        secrets, outputs = as_list("from_samples: secrets", secrets), as_list("from_samples: outputs", outputs)
        if not len(secrets) or len(secrets) != len(outputs):
            counts = f"{len(secrets)} and {len(outputs)}"
            raise ArgumentError(f"from_samples: secrets and outputs must be equally many and not empty, not {counts}")
        for name, values in dict[str, Any](secrets=secrets, outputs=outputs).items():
            part = incomparable(values if isinstance(values, np.ndarray) else list(values))
            if part is not None:
                raise ArgumentError(f"from_samples: {name} hold {described(part)}")
        return cls(Belief(Batch.of_values(secrets)), Belief(Batch.of_values(outputs)))

    @classmethod
    def from_channel(
        cls,
        prior: Sequence[float],
        matrix: Any,
        *,
        secrets: Sequence[Any] | None = None,
        outputs: Sequence[Any] | None = None,
    ) -> "Joint":
        """Make an exact joint of a prior and a channel: row s of the matrix holds P(output | secret s)."""
        pi, channel = as_numbers("from_channel: the prior", prior), as_numbers("from_channel: the matrix", matrix)
        if pi.ndim != 1 or channel.ndim != 2 or len(pi) != len(channel) or not channel.size:
            raise ArgumentError(
                f"from_channel: a prior of n numbers needs n rows, not shapes {pi.shape} and {channel.shape}"
            )
        sums = np.append(channel.sum(axis=1), pi.sum())
        if not (np.all(pi >= 0) and np.all(channel >= 0) and np.all(np.abs(sums - 1) < 1e-9)):
            raise ArgumentError(
                "from_channel: the prior and every row of the matrix must be probabilities that sum to one"
            )
        names = list(as_list("from_channel: secrets", range(channel.shape[0]) if secrets is None else secrets))
        labels = list(as_list("from_channel: outputs", range(channel.shape[1]) if outputs is None else outputs))
        if (len(names), len(labels)) != channel.shape:
            raise ArgumentError(f"from_channel: {channel.shape} values of secret and output must be named")
        weights = (pi[:, np.newaxis] * channel).reshape(-1)
        rows, columns = (index.reshape(-1) for index in np.indices(channel.shape))
        possible = weights > 0
        pairs = weights[possible]
        return cls(
            Belief.listed(Batch.of_values([names[i] for i in rows[possible]]), pairs),
            Belief.listed(Batch.of_values([labels[j] for j in columns[possible]]), pairs),
        )

    @kinds_checked
    def named(self, secret: str, output: str) -> "Joint":
        """Return the same joint with what its two quantities are called."""
        return replace(self, secret=self.secret.named(secret), output=self.output.named(output))

    def plot(self, ax: Any = None, observation: Observation | None = None) -> Any:
        """Draw how likely secret and output are together, darker where more; `observation` is marked if one is given.

        `ax` is matplotlib axes or the path of a picture to write.
        """
        if observation is not None:
            check_kind("plot", "observation", observation, (Observation,))
        return plots().joint(self, ax, observation)

    def __repr__(self) -> str:
        return f"<Joint: {self.secret.kind.value} secret, {self.output.kind.value} output, {self.secret.method}>"
