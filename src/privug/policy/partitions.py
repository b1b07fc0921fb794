"""The finest way to merge outputs into classes such that a policy holds after each of them.

Of two ways to merge, the one with more classes is finer; of as many, the one that leaves an output as it is with the
greater probability. Both are sums over classes, so the finest way is a set partitioning problem with one variable for
each set of outputs after which the policy holds: an integer programme, solved to optimality for few outputs. For many,
the best of two searches is taken: the finest way to merge neighbours, where outputs are numbers (dynamic programming),
and a greedy one.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy.optimize
import scipy.sparse

from privug.errors import UnsuitableEngine
from privug.model.node import Array
from privug.policy.classes import CELLS, Class, Views

MOST_MERGED = 12  # outputs, whose subsets are 4,095
MOST_ENUMERATED = 8  # outputs, which are merged in 4,140 ways
MOST_SEARCHED = 1_000
RESOLUTION = 1_000  # the solver stops at a millionth: such a difference must not matter

OPTIMAL = "optimal"
NEIGHBOURS = "optimal among ways to merge neighbouring outputs"
GREEDY = "found by a greedy search, not proven to be the finest"


class Partition(NamedTuple):
    """Outputs merged into classes, and how good that is known to be."""

    classes: tuple[Class, ...]
    method: str


def finest(views: Views, neighbours: bool = False) -> Partition | None:
    """Return the finest way to merge outputs such that the policy holds; None if there is none, or none was found.

    With `neighbours`, only numbers that are next to each other are merged.
    """
    count = len(views.outputs)
    if neighbours:
        return _of_neighbours(views)
    if views.averages:
        if count > MOST_ENUMERATED:
            raise UnsuitableEngine(
                f"a limit on an average over outputs is enforced by merging for up to {MOST_ENUMERATED} outputs; here "
                f"are {count:,}: ask for repair='round', 'suppress' or 'noise'"
            )
        return _by_enumeration(views)
    if count <= MOST_MERGED:
        return _by_integer_programming(views)
    if count > MOST_SEARCHED:
        raise UnsuitableEngine(f"{count:,} outputs are too many to merge; round them: repair='round'")
    found = [partition for partition in (_by_neighbours(views), _greedily(views)) if partition is not None]
    return max(found, key=lambda partition: fineness(views, partition.classes), default=None)


def fineness(views: Views, classes: Sequence[Class]) -> float:
    """Return the number of classes and, as less than one, the probability that an output is alone in its class."""
    return float(np.sum(_weights(views, classes)))


def _weights(views: Views, classes: Sequence[Class]) -> Array:
    return np.array([1 + (0.5 * views.marginal[places[0]] if len(places) == 1 else 0.0) for places in classes])


def _by_integer_programming(views: Views) -> Partition | None:
    """Choose among all sets of outputs after which the policy holds, such that each output is in one."""
    count = len(views.outputs)
    subsets = [_places(mask, count) for mask in range(1, 2**count)]
    kept = [subset for subset, keeps in zip(subsets, views.keep(subsets), strict=True) if keeps]
    if not kept:
        return None
    cover = scipy.sparse.csr_array(views.members(kept).T)
    once = scipy.optimize.LinearConstraint(cover, np.ones(count), np.ones(count))
    solved = scipy.optimize.milp(
        -RESOLUTION * _weights(views, kept),
        integrality=np.ones(len(kept), int),
        bounds=scipy.optimize.Bounds(0, 1),
        constraints=once,
        options={"mip_rel_gap": 0.0},
    )
    if solved.x is None:
        return None
    return Partition(tuple(kept[place] for place in np.flatnonzero(solved.x > 0.5)), OPTIMAL)


def _places(mask: int, count: int) -> Class:
    return tuple(place for place in range(count) if mask >> place & 1)


def _by_enumeration(views: Views) -> Partition | None:
    """Try all ways to merge, the finest first."""
    ways = sorted(partitions_of(len(views.outputs)), key=lambda classes: -fineness(views, classes))
    return next((Partition(classes, OPTIMAL) for classes in ways if views.keep(classes).all()), None)


def partitions_of(count: int) -> Iterator[tuple[Class, ...]]:
    """Yield all ways to divide so many things into classes.

    >>> len(list(partitions_of(4)))
    15
    """
    if count == 0:
        yield ()
        return
    for classes in partitions_of(count - 1):
        yield (*classes, (count - 1,))
        for place, one in enumerate(classes):
            yield (*classes[:place], (*one, count - 1), *classes[place + 1 :])


def _of_neighbours(views: Views) -> Partition | None:
    """Merge neighbours only, or say why that cannot be done."""
    if views.averages or not _are_numbers(views) or not _few_runs(views):
        raise UnsuitableEngine(
            "neighbouring outputs are merged if they are numbers, not too many, and if no limit is on an average"
        )
    return _by_neighbours(views)


def _are_numbers(views: Views) -> bool:
    return all(isinstance(output, int | float) for output in views.outputs)


def _few_runs(views: Views) -> bool:
    return len(views.outputs) ** 3 <= 100 * CELLS


def _by_neighbours(views: Views) -> Partition | None:
    """Merge runs of neighbouring numbers: the finest way to divide each beginning of the outputs, one by one."""
    count = len(views.outputs)
    if not _are_numbers(views) or not _few_runs(views):
        return None
    order = sorted(range(count), key=lambda place: float(views.outputs[place]))
    runs = [(start, end) for end in range(1, count + 1) for start in range(end)]
    classes: list[Class] = [tuple(order[start:end]) for start, end in runs]
    worth = np.where(views.keep(classes), _weights(views, classes), -np.inf)
    best, begins = np.full(count + 1, -np.inf), np.zeros(count + 1, int)
    best[0] = 0.0
    for end in range(1, count + 1):
        whole = best[:end] + worth[end * (end - 1) // 2 : end * (end + 1) // 2]
        begins[end] = int(np.argmax(whole))
        best[end] = whole[begins[end]]
    if not np.isfinite(best[count]):
        return None
    found, end = [], count
    while end:
        found.append(tuple(order[begins[end] : end]))
        end = int(begins[end])
    return Partition(tuple(found[::-1]), NEIGHBOURS)


def _greedily(views: Views) -> Partition | None:
    """Merge the class that breaks the policy most with the one that helps most, until none does; then divide again."""
    classes: list[Class] = [(place,) for place in range(len(views.outputs))]
    excess = views.excess(classes)
    broken = ~views.keep(classes)
    while broken.any():
        if len(classes) == 1:
            return None
        worst = int(np.argmax(np.where(broken, excess, -np.inf)))
        others = [place for place in range(len(classes)) if place != worst]
        merged: list[Class] = [(*classes[worst], *classes[other]) for other in others]
        after, mended = views.excess(merged), views.keep(merged)
        losses = np.array([views.marginal[list(classes[other])].sum() for other in others])
        rank = np.lexsort((losses, ~broken[others], np.where(mended, 0.0, after), ~mended))
        chosen = int(rank[0])
        stay = [place for place in others if place != others[chosen]]
        classes = [*(classes[place] for place in stay), merged[chosen]]
        excess, broken = np.append(excess[stay], after[chosen]), np.append(broken[stay], not mended[chosen])
    return Partition(tuple(_divided_again(views, classes)), GREEDY)


def _divided_again(views: Views, classes: Sequence[Class]) -> list[Class]:
    """Take outputs out of their classes again, the likeliest first, where the policy holds without them too."""
    found: list[Class] = []
    for places in classes:
        rest = places
        for place in sorted(places, key=lambda one: -views.marginal[one]):
            without = tuple(one for one in rest if one != place)
            if without and views.keep([without, (place,)]).all():
                found.append((place,))
                rest = without
        found.append(rest)
    return found
