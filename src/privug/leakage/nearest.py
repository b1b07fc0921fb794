"""Nearest-neighbour votes on plain arrays: which label do the k nearest training points vote for?

All training points no farther than the k-th nearest vote, so points at the same distance vote together whatever their
order; the smallest label wins among equally many votes. Where no distances tie, the winners are those of
scikit-learn's `KNeighborsClassifier`. On a line the neighbours of a point are a window of the sorted training points,
found in O(n log n) whatever k is.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy

from privug import settings
from privug.errors import ArgumentError
from privug.model.node import Array

CELLS = 1 << 21  # most entries of a temporary matrix
FARTHEST = {1: 1e307, 2: 1e150}  # beyond it distances, or their squares, could overflow; infinite values are moved here


class Votes(NamedTuple):
    """The label that wins at each test point, and its share of the votes there."""

    label: Array
    share: Array


def nearest_votes(train: Array, labels: Array, test: Array, k: int) -> Votes:
    """Let the k nearest training points vote at each test point.

    `train` and `test` hold a number or a row of coordinates for each point, `labels` whole numbers from zero on.
    The time grows with the number of labels, unless k is smaller. Distances are Euclidean.

    >>> nearest_votes(np.array([0.0, 1.0, 5.0]), np.array([0, 1, 1]), np.array([0.2, 4.0]), k=2).share
    array([0.5, 1. ])
    """
    known, codes, asked = _checked(train, labels, test, k)
    if known.ndim == 1:
        return _votes_on_line(known, codes, asked, min(k, len(known)))
    label, share = np.empty(len(asked), np.int64), np.empty(len(asked))
    for part, votes in _votes_in_space(known, codes, asked, min(k, len(known))):
        label[part] = votes.argmax(axis=1)
        share[part] = votes.max(axis=1) / votes.sum(axis=1)
    return Votes(label, share)


def nearest_support(train: Array, labels: Array, test: Array, claims: Array, k: int) -> Array:
    """Return the share of the k nearest training points' votes that each test point's own label, its claim, gets.

    >>> nearest_support(np.array([0.0, 1.0, 5.0]), np.array([0, 1, 1]), np.array([0.2, 4.0]), np.array([0, 0]), k=2)
    array([0.5, 0. ])
    """
    known, codes, asked = _checked(train, labels, test, k)
    if known.ndim == 1:
        return _support_on_line(known, codes, asked, claims, min(k, len(known)))
    support = np.zeros(len(asked))
    for part, votes in _votes_in_space(known, codes, asked, min(k, len(known))):
        present = np.flatnonzero(claims[part] < votes.shape[1])
        support[part][present] = votes[present, claims[part][present]] / votes[present].sum(axis=1)
    return support


def _checked(train: Array, labels: Array, test: Array, k: int) -> tuple[Array, Array, Array]:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ArgumentError(f"k must be a positive whole number of neighbours, not {k!r}")
    known, asked = _points(train, "train"), _points(test, "test")
    if len(known) != len(labels) or known.shape[1:] != asked.shape[1:]:
        raise ArgumentError(
            f"train, labels and test must fit together, not have shapes {train.shape}, {labels.shape}, {test.shape}"
        )
    if not len(known):
        raise ArgumentError("train must hold at least one point")
    return known, labels.astype(np.int64, copy=False), asked


def _points(values: Array, name: str) -> Array:
    points = np.asarray(values, float)
    points = points[:, 0] if points.ndim == 2 and points.shape[1] == 1 else points
    if points.ndim not in (1, 2) or np.isnan(points).any():
        raise ArgumentError(f"{name} must hold a number or a row of numbers for each point, none of them missing")
    farthest = FARTHEST[points.ndim]
    clipped: Array = np.clip(points, -farthest, farthest)
    return clipped


def _votes_on_line(train: Array, labels: Array, test: Array, k: int) -> Votes:
    known, order = _ascending(train)
    asked, back = _ascending(test)
    low, high = _windows(known, asked, k)
    winner, count = _winners(labels if order is None else labels[order], low, high)
    share = count / (high - low)
    if back is None:
        return Votes(winner, share)
    label, shares = np.empty_like(winner), np.empty_like(share)
    label[back], shares[back] = winner, share
    return Votes(label, shares)


def _support_on_line(train: Array, labels: Array, test: Array, claims: Array, k: int) -> Array:
    known, order = _ascending(train)
    asked, back = _ascending(test)
    low, high = _windows(known, asked, k)
    voters = labels if order is None else labels[order]
    claimed = claims if back is None else claims[back]
    support = np.zeros(len(test))
    for label in np.unique(claimed):
        mine = np.flatnonzero(claimed == label)
        before = np.append(0, np.cumsum(voters == label))
        support[mine if back is None else back[mine]] = (before[high[mine]] - before[low[mine]]) / (high - low)[mine]
    return support


def _ascending(values: Array) -> tuple[Array, Array | None]:
    """Return the values in ascending order, and that order unless they had it already."""
    if np.all(values[1:] >= values[:-1]):
        return values, None
    order = np.argsort(values)
    return values[order], order


def _windows(train: Array, test: Array, k: int) -> tuple[Array, Array]:
    """Return where the voters of each test point begin and end in the training points; both are sorted.

    A window of k starts after every point that lies farther away than the point k places later, that is, after as
    many points as there are such pairs with their middle below the test point.
    """
    last = len(train) - 1
    low = np.searchsorted((train[:-k] + train[k:]) / 2, test)
    high = low + k
    left, right = test - train[low], train[high - 1] - test
    radius = np.maximum(left, right)
    tied = np.flatnonzero((left == radius) & (train[np.maximum(low - 1, 0)] == train[low]))
    following = train[np.minimum(high, last)]
    beyond = np.flatnonzero((high <= last) & (following - test <= radius))
    low[tied] = np.searchsorted(train, train[low[tied]], "left")
    high[beyond] = np.searchsorted(train, following[beyond], "right")
    return low, high


def _winners(labels: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Return the most frequent label in each window of the sorted training points, and how often it occurs."""
    sizes = high - low
    winner, count = labels[low], np.ones(len(low), np.int64)
    many = np.flatnonzero(sizes > 1)
    if not len(many):
        return winner, count
    narrow = sizes[many] < int(labels.max()) + 1
    for chosen, vote in ((many[narrow], _vote_by_runs), (many[~narrow], _vote_by_label)):
        if len(chosen):
            winner[chosen], count[chosen] = vote(labels, low[chosen], high[chosen])
    return winner, count


def _vote_by_label(labels: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Count each label in all windows at once by differences of its cumulative count."""
    winner, count = np.zeros(len(low), np.int64), np.zeros(len(low), np.int64)
    before: Array = np.zeros(len(labels) + 1, np.int32 if len(labels) < 2**31 else np.int64)
    for label in np.flatnonzero(np.bincount(labels)):
        np.cumsum(labels == label, out=before[1:])
        votes = before[high] - before[low]
        better = votes > count
        np.copyto(winner, label, where=better)
        np.copyto(count, votes, where=better)
    return winner, count


def _vote_by_runs(labels: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Sort the labels of each window, narrower than there are labels, and find the longest run."""
    winner, count = np.zeros(len(low), np.int64), np.zeros(len(low), np.int64)
    width = int((high - low).max())
    step = max(1, CELLS // width)
    for start in range(0, len(low), step):
        part = slice(start, start + step)
        places = low[part, np.newaxis] + np.arange(width)
        inside = places < high[part, np.newaxis]
        # Places beyond a window's end hold labels of their own that never win.
        filled = np.where(inside, labels[np.minimum(places, len(labels) - 1)], -1 - np.arange(width))
        ordered = np.sort(filled, axis=1).T.copy()
        run = np.zeros(ordered.shape[1], np.int64)
        for place, row in enumerate(ordered):
            run = np.where((row == ordered[place - 1]) & (place > 0), run + 1, 1)
            better = (run > count[part]) & (row >= 0)
            np.copyto(winner[part], row, where=better)
            np.copyto(count[part], run, where=better)
    return winner, count


def _votes_in_space(train: Array, labels: Array, test: Array, k: int) -> Iterator[tuple[slice, Array]]:
    """Search a tree of the distinct training points; equal points vote together. Yields votes for each label in parts.

    Distinct points at the same distance beyond the k-th vote only as far as the search met them.
    """
    points, place = np.unique(train, axis=0, return_inverse=True)
    place = place.reshape(-1)
    classes = int(labels.max()) + 1
    ballots = scipy.sparse.csr_array((np.ones(len(labels)), (place, labels)), shape=(len(points), classes))
    counts = np.bincount(place)
    tree = scipy.spatial.cKDTree(points)
    nearest = np.arange(1, min(k, len(points)) + 1)
    step = max(1, CELLS // max(len(nearest), classes))
    for start in range(0, len(test), step):
        part = slice(start, start + step)
        answer = tree.query(test[part], nearest, workers=settings.current().workers)
        distance, found = np.asarray(answer[0]), np.asarray(answer[1])
        reached = np.argmax(np.cumsum(counts[found], axis=1) >= k, axis=1)
        voting = distance <= np.take_along_axis(distance, reached[:, np.newaxis], axis=1)
        rows = np.arange(0, found.size + 1, len(nearest))
        shape = (len(found), len(points))
        voters = scipy.sparse.csr_array((voting.reshape(-1).astype(float), found.reshape(-1), rows), shape=shape)
        yield part, (voters @ ballots).toarray()
