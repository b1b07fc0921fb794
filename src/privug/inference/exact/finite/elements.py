"""Arrays and plates taken apart: every number of a model as a node of its own.

A sum over an array needs all its elements at once, where adding them one by one needs the sum so far and one element.
What goes through a model step by step, forgetting what is no longer needed, needs the second form.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, product
from typing import Any

import numpy as np

from privug.model.graph import remade
from privug.model.node import Array, ConstantValue, Node, Shape, ancestors
from privug.model.numpy_functions import Cast, where
from privug.model.operations import (
    ArrayFunction,
    AtExtreme,
    Elementwise,
    Gather,
    Index,
    Lookup,
    Stack,
    constant,
    elementwise,
    lookup,
)
from privug.model.plates import Fold, Lane
from privug.model.traits import Role, Scope, Traits, traits_of
from privug.prior.conditional import Choose, Match
from privug.prior.family import Draw, draw_node, family_of

# Looking at a number takes some 50 microseconds in all. A program that goes through its inputs one after the other
# makes a few quantities of each; one that makes many of each, as by comparing them in pairs, needs most of them at
# once: there is nothing to be had from a closer look at very many of those.
MOST_ELEMENTS = 200_000
MOST_ENTANGLED = 20_000
MOST_PER_INPUT = 20
At = tuple[int, ...]

_ADD = Elementwise("add", np.add, python=True)
_SUM = traits_of("sum")
_AND, _OR = Elementwise("logical_and", np.logical_and), Elementwise("logical_or", np.logical_or)
_NOT = Elementwise("logical_not", np.logical_not)


class TooManyElements(Exception):
    """A model has more numbers than can be looked at one by one."""


class Elements:
    """The nodes of single numbers that stand for a model's nodes."""

    def __init__(self, targets: Sequence[Node], kept: Sequence[Node] = ()) -> None:
        self._made: dict[tuple[Node, At], Node] = {(node, ()): node for node in kept if not node.shape}
        self._leads: dict[tuple[Any, ...], list[Node]] = {}
        self.origins: dict[Node, Node] = {}
        """The node that each of the new ones is an element of."""
        self.places: dict[Node, At] = {}
        """Which of its elements each of them is."""
        order = ancestors(targets)
        _check_size(order)
        for node in order:
            if not node.shape:
                self.of(node)

    def of(self, node: Node, at: At = ()) -> Node:
        """Return the node of one number of a node."""
        if isinstance(node.operation, ConstantValue):
            return node if not node.shape else _constant_at(node, at)
        made = self._made.get((node, at))
        if made is None:
            self._make_room(1)
            made = self._made[node, at] = self._element(node, at)
            self.origins.setdefault(made, node)
            self.places.setdefault(made, at)
        return made

    def all_of(self, node: Node) -> list[Node]:
        """Return the nodes of all numbers of a node, in their order."""
        self._make_room(math.prod(node.shape))
        return [self.of(node, at) for at in np.ndindex(node.shape)]

    def _make_room(self, numbers: int) -> None:
        """Give up before the first of so many numbers is looked at, if they are too many."""
        if len(self._made) + numbers > MOST_ELEMENTS:
            raise TooManyElements

    def _element(self, node: Node, at: At) -> Node:
        operation = node.operation
        if isinstance(operation, Draw):
            return self._drawn(node, at)
        if isinstance(operation, Elementwise | Choose | Match | Cast):
            return remade(node, [self.of(parent, _at_parent(parent.shape, at)) for parent in node.parents], ())
        if isinstance(operation, Index):
            return self._moved(node, lambda array: array[operation.key], at)
        if isinstance(operation, Stack):
            return self.of(node.parents[at[0]], at[1:])
        if isinstance(operation, Lookup):
            rank = len(node.parents[0].shape)
            return self._looked_up(node, operation, self.of(node.parents[0], at[:rank]), at[rank:])
        if isinstance(operation, ArrayFunction):
            return self._of_function(node, operation, at)
        if isinstance(operation, Fold):
            return self._folded(node, operation, at)
        if isinstance(operation, AtExtreme):
            values = [self.of(node.parents[1], (k, *at)) for k in range(node.parents[1].shape[0])]
            return self._best(node, [*([self.of(node.parents[3], at)] if operation.started else []), *values])
        if isinstance(operation, Gather):
            found = self._gathered(node.parents[0], node.parents[1], at)
            return self._from_whole(node, at) if found is None else found
        return self._from_whole(node, at)

    def _best(self, node: Node, parts: Sequence[Node]) -> Node:
        """Return what stands where the keys of a node are extreme, by comparing one after the other."""
        self._make_room(3 * len(parts))
        best = parts[0]
        for part, wins in zip(parts[1:], self._taking_the_lead(node), strict=True):
            best = best if part is best else where(wins, part, best)
        return best

    def _taking_the_lead(self, node: Node) -> list[Node]:
        """Return for each place but the first, or but the start, whether its key beats all before it."""
        operation, (column, _, *others) = node.operation, node.parents
        assert isinstance(operation, AtExtreme)
        counting = self.all_of(others[-1]) if operation.guarded else []
        if (column, operation, *others) not in self._leads:
            keys = self.all_of(column)
            top = self.of(others[0]) if operation.started else keys.pop(0)
            some = counting.pop(0) if counting and not operation.started else None
            leads = []
            for place, key in enumerate(keys):
                wins = elementwise(operation.beats, [key, top])
                if some is not None:
                    wins = elementwise(_OR, [elementwise(_NOT, [some]), wins])
                    some = elementwise(_OR, [some, counting[place]])
                wins = elementwise(_AND, [counting[place], wins]) if counting else wins
                top = where(wins, key, top)
                leads.append(wins)
            self._leads[column, operation, *others] = leads
        return self._leads[column, operation, *others]

    def _gathered(self, column: Node, position: Node, at: At) -> Node | None:
        """Return the element at a position that is one of several, or that of the best; None if it is anything else."""
        operation = position.operation
        if isinstance(operation, ConstantValue):
            return self.of(column, (int(operation.array[0]) % column.shape[0], *at))
        if isinstance(operation, AtExtreme):
            places, start = position.parents[1].operation, position.parents[3] if operation.started else None
            first = [] if start is None else [self._gathered(column, start, at)]
            if not isinstance(places, ConstantValue) or None in first:
                return None
            parts = [self.of(column, (place, *at)) for place in places.array[0].tolist()]
            return self._best(position, [*(part for part in first if part is not None), *parts])
        if not isinstance(operation, Elementwise) or operation.traits.role is not Role.CHOICE:
            return None
        yes, no = (self._gathered(column, parent, at) for parent in position.parents[1:])
        return None if yes is None or no is None else where(self.of(position.parents[0]), yes, no)

    def _drawn(self, node: Node, at: At) -> Node:
        family = family_of(node)
        if family.chooses:
            parents = [self.whole(parent) for parent in node.parents]
        else:
            parents = [self.of(parent, _at_parent(parent.shape, at)) for parent in node.parents]
        unchanged = all(new is old for new, old in zip(parents, node.parents, strict=True))
        return node if unchanged and not node.shape else draw_node(family, tuple(parents), ())

    def whole(self, node: Node) -> Node:
        """Return a node of the same shape, made of the nodes that stand for others."""
        if isinstance(node.operation, ConstantValue):
            return node
        if not node.shape:
            return self.of(node)
        if isinstance(node.operation, Draw | Fold):
            return _stacked(self.all_of(node), node)
        return remade(node, [self.whole(parent) for parent in node.parents])

    def _from_whole(self, node: Node, at: At) -> Node:
        key = node, (-1,)  # no element has this place
        if key not in self._made:
            self._made[key] = remade(node, [self.whole(parent) for parent in node.parents])
        whole = self._made[key]
        return whole if not node.shape else Node(Index(at), (whole,), (), node.dtype, node.levels, node.kind)

    def _looked_up(self, node: Node, operation: Lookup, code: Node, at: At) -> Node:
        if not at:
            return remade(node, [code], ())
        key: Any = (slice(None), *at)
        return lookup(code, operation.table[key], node.levels, operation.errors)

    def _of_function(self, node: Node, operation: ArrayFunction, at: At) -> Node:
        options, traits = dict(operation.options), operation.traits
        parent = node.parents[0]
        if traits.role is Role.MOVE:
            return self._moved(node, lambda *arrays: _of_batches(operation, arrays), at)
        if _is_chain(traits) and not options.get("keepdims"):
            axes = options["axis"] if isinstance(options["axis"], tuple) else (options["axis"],)
            self._make_room(math.prod(parent.shape) // max(1, math.prod(node.shape)))
            positions = _along(parent.shape, tuple(axis - 1 for axis in axes), at)
            if traits.scope is Scope.SCAN:
                return self._running(node, parent, axes[0] - 1, at)
            return self._reduced(traits, [self.of(parent, place) for place in positions], node)
        if traits.role is Role.PRODUCT:
            return self._product(node, at)
        return self._from_whole(node, at)

    def _reduced(self, traits: Traits, parts: Sequence[Node], node: Node) -> Node:
        total = _chain(traits, parts)[-1]
        if traits.averages:
            total = elementwise(Elementwise("true_divide", np.true_divide), [total, constant(len(parts))])
        return total

    def _running(self, node: Node, parent: Node, axis: int, at: At) -> Node:
        line = [(*at[:axis], k, *at[axis + 1 :]) for k in range(parent.shape[axis])]
        for place, made in zip(line, _chain(node.operation.traits, [self.of(parent, p) for p in line]), strict=True):
            self._made.setdefault((node, place), made)
        return self._made[node, at]

    def _product(self, node: Node, at: At) -> Node:
        left, right = node.parents
        row, column = at[: len(left.shape) - 1], at[len(left.shape) - 1 :]
        times = Elementwise("multiply", np.multiply, python=True)
        pairs = [(self.of(left, (*row, k)), self.of(right, (k, *column))) for k in range(right.shape[0])]
        return _chain(_SUM, [elementwise(times, pair) for pair in pairs])[-1]

    def _moved(self, node: Node, function: Callable[..., Array], at: At) -> Node:
        """Find an element of an array whose elements come from others, by moving their numbers along."""
        key = node, (-2,)
        starts = np.cumsum([0, *(int(np.prod(parent.shape)) for parent in node.parents)])
        if key not in self._made:
            shapes = [parent.shape for parent in node.parents]
            numbered = [np.arange(a, b).reshape(s) for a, b, s in zip(starts, starts[1:], shapes, strict=False)]
            self._made[key] = constant(np.asarray(function(*numbered)))
        places = self._made[key].operation
        assert isinstance(places, ConstantValue)
        number = int(places.array[0][at])
        which = int(np.searchsorted(starts, number, side="right")) - 1
        parent = node.parents[which]
        place = np.unravel_index(number - int(starts[which]), parent.shape)
        return self.of(parent, tuple(map(int, place)))

    def _folded(self, node: Node, fold: Fold, at: At) -> Node:
        if fold.how == "map":
            row = self.row(node, fold, at[0])
            return row if len(at) == 1 else Node(Index(at[1:]), (row,), (), row.dtype, row.levels, row.kind)
        if node.shape:
            return self._from_whole(node, at)
        self._make_room(fold.size)
        rows = [self.row(node, fold, position) for position in range(fold.size)]
        return self._reduced(fold.traits, rows, node)

    def row(self, node: Node, fold: Fold, position: int) -> Node:
        """Return what a fold computes for one row."""
        columns = node.parents[: len(fold.lanes)]
        images: dict[Node, Node] = {}
        for lane, column in zip(fold.lanes, columns, strict=True):
            images[lane] = self.of(column, (position,)) if not lane.shape else self._part(column, position)
        images.update((shared, self.whole(shared)) for shared in fold.shared)
        for inner in fold_order(fold):
            images[inner] = remade(inner, [images.get(parent, parent) for parent in inner.parents])
        return images[fold.term]

    def _part(self, column: Node, position: int) -> Node:
        whole = self.whole(column)
        return Node(Index((position,)), (whole,), column.shape[1:], column.dtype, column.levels, column.kind)


def _check_size(order: Sequence[Node]) -> None:
    """Give up before anything is taken apart, if that gives too many numbers."""
    numbers = sum(_steps(node) for node in order if not node.shape)
    inputs = sum(math.prod(node.shape) for node in order if node.is_random)
    if numbers > min(MOST_ELEMENTS, max(MOST_ENTANGLED, MOST_PER_INPUT * inputs)):
        raise TooManyElements


def _steps(node: Node) -> int:
    """Return how many numbers have to be computed for a single one, at least."""
    match node.operation:
        case Fold(how=how) as fold if how != "map":
            return fold.size * len(fold_order(fold))
        case AtExtreme():
            return 3 * node.parents[0].shape[0]
        case ArrayFunction(traits=traits) if _is_chain(traits) or traits.role is Role.PRODUCT:
            return math.prod(node.parents[0].shape)
        case _:
            return 1


def fold_order(fold: Fold) -> list[Node]:
    """Return the nodes of a fold that differ from row to row, its lanes aside, in order."""
    inside: dict[Node, None] = {}
    for node in ancestors([fold.term]):
        if isinstance(node.operation, Lane):
            continue
        if any(parent in inside or isinstance(parent.operation, Lane) for parent in node.parents):
            inside[node] = None
    return list(inside)


def _constant_at(node: Node, at: At) -> Node:
    assert isinstance(node.operation, ConstantValue)
    value = node.operation.array[0][at]
    return Node(ConstantValue(np.asarray(value)[np.newaxis]), (), (), node.dtype, node.levels, node.kind)


def _at_parent(shape: Shape, at: At) -> At:
    """Return the place in an argument that was stretched to the shape of the result."""
    own = at[len(at) - len(shape) :]
    return tuple(0 if size == 1 else place for place, size in zip(own, shape, strict=True))


def _along(shape: Shape, axes: tuple[int, ...], at: At) -> list[At]:
    """Return the places that a reduction over some axes puts together at one place of its result."""
    left = iter(at)
    fixed = [None if axis in axes else next(left) for axis in range(len(shape))]
    ranges = [range(size) if place is None else (place,) for place, size in zip(fixed, shape, strict=True)]
    return list(product(*ranges))


def _is_chain(traits: Traits) -> bool:
    """Say whether a function puts one number after another together."""
    return traits.folds is not None and (traits.scope is Scope.FOLD or traits.role is Role.SUM)


def _chain(traits: Traits, parts: Sequence[Node]) -> list[Node]:
    """Return the results of putting one number after another together."""
    step = traits_of(traits.folds or "")
    operation = Elementwise(step.name, step.function, python=step.role in (Role.SUM, Role.PRODUCT))
    if traits.truth:
        zero, differs = constant(0), Elementwise("not_equal", np.not_equal)
        parts = [part if part.dtype == bool else elementwise(differs, [part, zero]) for part in parts]
    elif step.role is Role.SUM:
        parts = [elementwise(_ADD, [constant(0), parts[0]]), *parts[1:]]
    return list(accumulate(parts, partial(_together, operation)))


def _together(operation: Elementwise, left: Node, right: Node) -> Node:
    return elementwise(operation, [left, right])


def _of_batches(operation: ArrayFunction, arrays: Sequence[Array]) -> Any:
    """Apply a function of batches to single values."""
    return operation.function(*(array[np.newaxis] for array in arrays), **dict(operation.options))[0]


def _stacked(nodes: Sequence[Node], like: Node) -> Node:
    stacked = Node(Stack(), tuple(nodes), (len(nodes),), like.dtype, like.levels, like.kind)
    if len(like.shape) == 1:
        return stacked
    reshaped = ArrayFunction("reshape", partial(_in_shape, like.shape))
    return Node(reshaped, (stacked,), like.shape, like.dtype, like.levels, like.kind)


def _in_shape(shape: Shape, array: Array) -> Array:
    return array.reshape((len(array), *shape))
