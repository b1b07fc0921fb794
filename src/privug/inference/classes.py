"""Classes: secrets that are equally likely and that the output treats alike, counted together.

Of millions of secrets a program that answers yes or no makes a handful of classes: the same probability, and the same
probability of each output given the secret. Sums over pairs of secret and output are sums over classes, each counted
as often as it has secrets; which secrets these are matters only to who asks for one of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privug.model.batch import Batch, first_places
from privug.model.distinct import combined, digits, ranked
from privug.model.node import Array


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
        row, column, share = _merged(place, codes, probability, len(outputs))
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


def _merged(place: Array, codes: Array, probability: Array, outputs: int) -> tuple[Array, Array, Array]:
    """Add up the probabilities of equal pairs; these come secret by secret, outputs in order."""
    if _ascends(place):
        return place, codes, probability
    keys, distinct = ranked(place * outputs + codes)
    return distinct // outputs, distinct % outputs, np.bincount(keys, probability, len(distinct))


def _ascends(places: Array) -> bool:
    """Say whether each number is greater than the one before it."""
    return bool(np.all(places[1:] > places[:-1]))
