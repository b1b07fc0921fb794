"""The standard normal numbers behind the roots of a model: a space in which every prior looks the same."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from privug.inference.rare.scattering import Steps
from privug.model.node import Array, ConstantValue, Context, Kind, Node, Operation, Shape, ancestors
from privug.prior.family import Draw, Family, OfNormals, family_of

MOST_VALUES = 1000


class Given(Operation):
    """Standard normal numbers, whose values evaluation is handed."""

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        raise AssertionError("latent numbers were not given")


class Latent(NamedTuple):
    """The node of the normal numbers behind one root, and the root."""

    node: Node
    root: Node

    @property
    def size(self) -> int:
        """How many normal numbers there are."""
        return math.prod(self.node.shape)

    def steps(self) -> list[Steps]:
        """Return for each number whether and where it steps from value to value."""
        family = family_of(self.root)
        chances = _chances(family, self.root.parents)
        known = None if chances is None else np.concatenate([[0.0], np.cumsum(chances)])
        chooser = Steps(bool(family.families) or self.root.kind is Kind.DISCRETE, known)
        others = Steps(self.root.kind is Kind.DISCRETE)
        return [others if place % family.latents else chooser for place in range(self.size)]

    def states(self, normals: Array, values: Array) -> list[Array]:
        """Return which value a discrete root took at some points, or a mixture which component, column by column."""
        if self.root.kind is Kind.DISCRETE:
            return [np.unique(cells, return_inverse=True)[1] for cells in values.reshape(len(values), -1).T]
        columns = zip(normals.reshape(len(normals), -1).T, self.steps(), strict=True)
        return [
            np.searchsorted(steps.levels[1:-1], scipy.special.ndtr(cells), side="right")
            for cells, steps in columns
            if steps.levels is not None
        ]


@dataclass(frozen=True)
class Latents:
    """Nodes as functions of normal numbers: the numbers, one latent for each root, and the images of the nodes."""

    latents: list[Latent]
    images: dict[Node, Node]

    def of(self, nodes: Sequence[Node]) -> list[Node]:
        """Return nodes in terms of normal numbers."""
        return [self.images.get(node, node) for node in nodes]


def with_latents(targets: Sequence[Node]) -> Latents:
    """Replace every root whose family has quantiles by those of normal numbers; other roots are still drawn."""
    latents: list[Latent] = []
    images: dict[Node, Node] = {}
    for node in ancestors(targets):
        operation = node.operation
        parents = tuple(images.get(parent, parent) for parent in node.parents)
        if isinstance(operation, Draw) and operation.family.latents:
            shape = _latent_shape(node.shape, operation.family.latents)
            given = Node(Given(), (), shape, np.dtype(np.float64), kind=Kind.CONTINUOUS)
            latents.append(Latent(given, node))
            image = Node(OfNormals(operation), (given, *parents), node.shape, node.dtype, node.levels, node.kind)
        elif any(new is not old for new, old in zip(parents, node.parents, strict=True)):
            image = Node(operation, parents, node.shape, node.dtype, node.levels, node.kind)
        else:
            continue
        image.bound = node.bound
        images[node] = image
    return Latents(latents, images)


def _chances(family: Family, parents: Sequence[Node]) -> Array | None:
    """Return the probabilities of the values that a number chooses among, in their order, if there are few."""
    constants = [parent.operation for parent in parents[:1] if isinstance(parent.operation, ConstantValue)]
    if not family.chooses or not constants or constants[0].array.ndim != 2:
        return None
    chances: Array = constants[0].array.reshape(-1)
    return chances / chances.sum() if 1 < len(chances) <= MOST_VALUES and np.all(chances > 0) else None


def _latent_shape(shape: Shape, latents: int) -> Shape:
    return shape if latents == 1 else (*shape, latents)


class Layout:
    """Which columns of a matrix hold the normal numbers behind the k-th root, in models of any size.

    Models of different sizes share columns root by root. What a larger model needs beyond is added at the end.
    """

    def __init__(self) -> None:
        self._columns: list[Array] = []
        self.width = 0

    def columns(self, position: int, count: int) -> Array:
        """Return the first `count` columns of the root at a position."""
        while len(self._columns) <= position:
            self._columns.append(np.empty(0, np.intp))
        missing = count - len(self._columns[position])
        if missing > 0:
            more = np.arange(self.width, self.width + missing)
            self._columns[position] = np.concatenate([self._columns[position], more])
            self.width += missing
        return self._columns[position][:count]
