"""Roots of a model that stand for sums: their distributions may depend on what is shared with the rest of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privug.inference.exact.finite.counting import SumFamily, SumLaw
from privug.model.node import Array, Node
from privug.model.operations import Elementwise, constant, elementwise, lookup
from privug.prior.conditional import Match
from privug.prior.family import draw_node


@dataclass(frozen=True)
class Shared:
    """Quantities, the values that each can take, and the class of each combination of values."""

    nodes: tuple[Node, ...]
    supports: tuple[Array, ...]
    classes: Array


def sum_root(laws: Sequence[SumLaw], shared: Shared) -> tuple[Node, Array]:
    """Return a new root with a law for each class, and the vectors that its values stand for, a line for each."""
    everything = _distinct(np.concatenate([law.values for law in laws]))
    chances = np.zeros((len(laws), len(everything)))
    for line, law in zip(chances, laws, strict=True):
        line[_positions(everything, law.values)] = law.probabilities
    codes = np.arange(len(everything))
    family = SumFamily(codes, codes.tobytes(), None, lost=max(law.lost for law in laws), chances=chances)
    return draw_node(family, (_class(shared),) if len(laws) > 1 else (), ()), everything


def image_of(root: Node, table: Array) -> Node:
    """Return the number that each value of a root stands for."""
    return lookup(root, table)


def _distinct(values: Array) -> Array:
    """Return different vectors in order; single numbers many times as fast."""
    return np.unique(values)[:, np.newaxis] if values.shape[1] == 1 else np.unique(values, axis=0)


def _positions(everything: Array, values: Array) -> Array:
    """Return where vectors stand among sorted ones."""
    if values.shape[1] == 1:
        return np.searchsorted(everything[:, 0], values[:, 0])
    _, inverse = np.unique(np.concatenate([everything, values]), axis=0, return_inverse=True)
    return np.asarray(inverse).reshape(-1)[len(everything) :]


def _class(shared: Shared) -> Node:
    """Return the node of the class of what is shared."""
    position = constant(0)
    for node, values in zip(shared.nodes, shared.supports, strict=True):
        place = node if node.levels is not None else Node(Match(values), (node,), (), np.dtype(np.int64))
        scaled = elementwise(Elementwise("multiply", np.multiply), [position, constant(len(values))])
        position = elementwise(Elementwise("add", np.add), [scaled, place])
    return lookup(position, shared.classes.reshape(-1))
