"""Minima and maxima of independent quantities: their distribution functions are multiplied."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privug.inference.curve import Curve
from privug.inference.density import tabulate
from privug.inference.exact.convolution import Component
from privug.inference.exact.linear import Form, NotAffine, affine_form
from privug.inference.exact.terms import Slot, components, curve_of, slope_of, weighted
from privug.model.node import Array, ConstantValue, Node, ancestors
from privug.model.operations import ArrayFunction, Elementwise, Stack, index
from privug.model.plates import Fold, Lane
from privug.model.traits.traits import Role
from privug.prior.family import Draw, draw_node

MOST_ENTRIES = 4096
LEVELS = np.array([1e-40, 1e-30, 1e-20, 1e-12, 1e-6, 1e-3, 0.1, 0.5, 0.9])
BISECTIONS = 40


@dataclass(frozen=True, eq=False)
class Entry:
    """Independent quantities of one distribution among which the extreme is sought; `root` is the array of them."""

    form: Form
    count: int = 1
    root: Node | None = None

    @cached_property
    def _made_of(self) -> tuple[float, list[Component]]:
        return components(self.form, None)

    @cached_property
    def key(self) -> Any:
        """What is equal for entries of equal distribution."""
        sd, parts = self._made_of
        return self.form.constant, sd, tuple(part.key for part in parts)

    @cached_property
    def curve(self) -> Curve:
        """The distribution of one of them."""
        return curve_of(*self._made_of, self.form.constant)

    def has(self, slot: Slot) -> bool:
        """Say whether a number of a root is one of them, or goes into it."""
        if self.root is not None:
            return slot[0] is self.root
        return any(root is slot[0] and np.broadcast_to(w, root.shape)[slot[1]] != 0 for root, w in weighted(self.form))


@dataclass(frozen=True, eq=False)
class Extreme:
    """The largest of independent quantities, or the smallest if `sign` is negative."""

    sign: float
    entries: tuple[Entry, ...]

    @property
    def numbers(self) -> int:
        """How many quantities there are."""
        return sum(entry.count for entry in self.entries)

    @cached_property
    def curve(self) -> Curve:
        """The distribution of the extreme."""
        return self._of([(entry, entry.count) for entry in self.entries])

    def _of(self, entries: Sequence[tuple[Entry, int]]) -> Curve:
        groups: dict[Any, tuple[Entry, int]] = {}
        for entry, count in entries:
            groups[entry.key] = entry, count + groups.get(entry.key, (entry, 0))[1]
        curves = [(entry.curve.affine(self.sign, 0.0), count) for entry, count in groups.values() if count]
        return largest(curves).affine(self.sign, 0.0)

    def apart(self, slot: Slot) -> tuple[float, float, Curve, Curve | None] | None:
        """Return the entry that a number of a root goes into, as start, slope and rest, and the extreme of the others.

        None if the number goes into no entry; the others may be none.
        """
        own = next((entry for entry in self.entries if entry.has(slot)), None)
        if own is None:
            return None
        others = [(e, e.count - (e is own)) for e in self.entries if e is not own or e.count > 1]
        inner = slot if own.root is None else (weighted(own.form)[0][0], ())
        slope, offset = slope_of(own.form, inner)
        rest = curve_of(*components(own.form, inner))
        return own.form.constant + offset, slope, rest, self._of(others) if others else None


def largest(curves: Sequence[tuple[Curve, int]]) -> Curve:
    """Return the distribution of the largest of independent quantities, each curve so many times."""
    atoms = np.unique(np.concatenate([curve.atoms for curve, _ in curves]))
    with np.errstate(divide="ignore"):
        at = np.exp(_log_below(curves, atoms))
        before = np.exp(_log_below(curves, np.nextafter(atoms, -np.inf))) if len(atoms) else at
    masses = np.maximum(at - before, 0.0)
    share = 1.0 - float(masses.sum())
    if all(not curve.parts for curve, _ in curves):
        return Curve.discrete(atoms, masses)
    start = max(curve.support[0] for curve, _ in curves)
    total, error, table = tabulate(lambda x: _density(curves, x), _edges(curves, start), _kinks(curves, start))
    off = error + sum(count * curve.error for curve, count in curves)
    if table is None or total < 1e-15:
        return Curve.discrete(atoms, masses, off)
    there = masses > 0
    return Curve(((share, table),), atoms[there], masses[there], off + abs(share - total))


def _log_below(curves: Sequence[tuple[Curve, int]], x: Array) -> Array:
    """Return the log of the probability that all are at most x, from whichever tail has the digits."""
    total = np.zeros(x.shape)
    endless = np.full(x.shape, np.inf)
    with np.errstate(divide="ignore"):
        for curve, count in curves:
            above = curve.mass(np.nextafter(x, np.inf), endless)
            total += count * np.where(above < 0.5, np.log1p(-np.minimum(above, 0.5)), np.log(curve.cdf(x)))
    return total


def _density(curves: Sequence[tuple[Curve, int]], x: Array) -> Array:
    logs = _log_below(curves, x)
    total = np.zeros(x.shape)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        for curve, count in curves:
            if curve.parts:
                share = count * curve.pdf(x) * np.exp(logs - np.log(curve.cdf(x)))
                total += np.where(np.isfinite(share), share, 0.0)
    return total


def _kinks(curves: Sequence[tuple[Curve, int]], start: float) -> list[float]:
    points = np.unique(np.concatenate([[start], *(curve.breaks for curve, _ in curves), *(c.atoms for c, _ in curves)]))
    return [float(point) for point in points if np.isfinite(point) and point >= start]


def _edges(curves: Sequence[tuple[Curve, int]], start: float) -> Array:
    """Return edges from which to resolve the density: where it has kinks, and its quantiles in both tails."""
    ends = [curve.edges[[0, -1]] for curve, _ in curves if curve.parts] + [c.atoms for c, _ in curves if len(c.atoms)]
    low, high = (np.full(2 * len(LEVELS), pick(np.concatenate(ends))) for pick in (np.min, np.max))
    bottom, top = float(low[0]), float(high[0])
    wanted = np.concatenate([np.log(LEVELS), np.log1p(-LEVELS)])
    for _ in range(BISECTIONS):
        middle = low / 2 + high / 2
        short = _log_below(curves, middle) < wanted
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    points = np.concatenate([high, _kinks(curves, start), [max(start, bottom), top]])
    inner = points[(points >= max(start, bottom)) & (points <= top)]
    return np.unique(inner)


def extreme_form(node: Node) -> Extreme:
    """Return a number as the extreme of independent quantities, or raise NotAffine."""
    found = compared(node)
    if found is None:
        raise NotAffine("it is no extreme")
    sign, leaves = found
    entries = [entry for leaf in leaves for entry in _entries(leaf)]
    _refuse_shared(entries)
    return Extreme(sign, tuple(entries))


def compared(node: Node) -> tuple[float, list[Node]] | None:
    """Return the quantities of which a number is the largest, or the smallest if the sign is negative."""
    keys = _keys(node)
    for sign in (1.0, -1.0):
        leaves = _leaves(node, sign, keys)
        if leaves != [node]:
            return sign, leaves
    return None


def _keys(node: Node) -> dict[Node, int]:
    """Return numbers that are the same for nodes made in the same way: programs compare more than once."""
    keys: dict[Node, int] = {}
    names: dict[Any, int] = {}
    for other in ancestors([node]):
        operation = other.operation
        own: Any = id(other)
        if isinstance(operation, Elementwise):
            own = operation.name, *(keys[parent] for parent in other.parents)
        elif isinstance(operation, ConstantValue) and not other.shape:
            own = "constant", float(operation.array[0])
        keys[other] = names.setdefault(own, len(names))
    return keys


def _leaves(node: Node, sign: float, keys: dict[Node, int]) -> list[Node]:
    """Return the numbers and arrays of numbers of which a node is the largest, or the smallest."""
    leaves: list[Node] = []
    pending, seen = [node], set[int]()
    while pending:
        current = pending.pop()
        if keys[current] not in seen:
            seen.add(keys[current])
            inner = _inside(current, sign, keys)
            pending.extend(inner)
            if not inner:
                leaves.append(current)
    return leaves


def _inside(node: Node, sign: float, keys: dict[Node, int]) -> list[Node]:
    operation, parents = node.operation, node.parents
    traits = operation.traits
    if isinstance(operation, Stack) and len(node.shape) == 1:
        return list(parents)
    if node.shape:
        return []
    if isinstance(operation, Elementwise | ArrayFunction) and traits.extreme * sign > 0:
        return list(parents)
    if traits.role is Role.CHOICE:
        return list(parents[1:]) if _picks(parents, sign, keys) else []
    if isinstance(operation, Fold) and traits.extreme * sign > 0 and isinstance(operation.term.operation, Lane):
        return [operation.term.operation.column]
    return []


def _picks(parents: Sequence[Node], sign: float, keys: dict[Node, int]) -> bool:
    """Say whether a choice between two numbers takes the larger, or the smaller, one."""
    condition, yes, no = parents
    direction = condition.operation.traits.direction
    if not direction:
        return False
    left, right = (keys[parent] for parent in condition.parents)
    chosen = (left, right) if direction * sign > 0 else (right, left)
    return (keys[yes], keys[no]) == chosen


def _entries(leaf: Node) -> list[Entry]:
    if not leaf.shape:
        return [Entry(affine_form(leaf, any_family=True))]
    alike = all(isinstance(p.operation, ConstantValue) and p.operation.array.size == 1 for p in leaf.parents)
    if isinstance(leaf.operation, Draw) and alike:
        single = draw_node(leaf.operation.family, leaf.parents, ())
        return [Entry(affine_form(single, any_family=True), math.prod(leaf.shape), leaf)]
    if len(leaf.shape) != 1 or leaf.shape[0] > MOST_ENTRIES:
        raise NotAffine("it takes the extreme of an array whose elements are not alike")
    return [Entry(affine_form(index(leaf, place), any_family=True)) for place in range(leaf.shape[0])]


def _refuse_shared(entries: Sequence[Entry]) -> None:
    """Refuse entries that depend on each other."""
    arrays = [entry.root for entry in entries if entry.root is not None]
    whole, taken = set(arrays), set[Slot]()
    clash = len(whole) < len(arrays)
    for entry in entries:
        own = set() if entry.root is not None else _slots(entry.form)
        clash = clash or not taken.isdisjoint(own) or any(root in whole for root, _ in own)
        taken |= own
    if clash:
        raise NotAffine("it takes the extreme of quantities that depend on each other")


def _slots(form: Form) -> set[Slot]:
    return {
        (root, tuple(map(int, at)))
        for root, weight in weighted(form)
        for at in (np.argwhere(np.broadcast_to(weight, root.shape)) if root.shape else [()])
    }
