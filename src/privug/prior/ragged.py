"""Columns of tables of random size: as many draws as there are rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privug.model.node import Array, Context, Kind, Node, Operation, Shape
from privug.model.ragged import RaggedPlate
from privug.model.segments import Segments
from privug.prior.family import Draw, Family, at_rank, draw_node


@dataclass(frozen=True, slots=True, eq=False)
class RaggedDraw(Operation):
    """Fresh random quantities, one for each of a random number of rows, given parameters that rows share or not."""

    family: Family
    shape: Shape
    """Of what one row has."""
    by_row: tuple[bool, ...]
    """Which of the parameters each row has its own of."""

    random = True

    @property
    def by_rows(self) -> bool:
        return True

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        segments = Segments(arguments[-1], context.samples)
        if segments.total == 0:
            return np.empty((0, *self.shape), self.family.dtype)
        parameters = self.of_rows(arguments, context.samples)
        if any(len(parameter) > 1 for parameter in parameters):
            self.family.check(parameters)
        return self.family.draw(context.rng, segments.total, self.shape, parameters)

    def of_rows(self, arguments: Sequence[Array], samples: int) -> Sequence[Array]:
        """Return the parameters of each row."""
        segments = Segments(arguments[-1], samples)
        own = [
            array if by_row else segments.spread(array)
            for array, by_row in zip(arguments[:-1], self.by_row, strict=True)
        ]
        return at_rank(own, len(self.shape) + 1)

    def kind(self, parents: Sequence[Node]) -> Kind:
        return self.family.kind

    def single(self, parents: Sequence[Node]) -> Node | None:
        """Return what one row's quantity is like, if rows share all parameters."""
        return None if any(self.by_row) else draw_node(self.family, tuple(parents[:-1]), self.shape)


def drawn_by_rows(root: Node, parameters: Sequence[Node], plate: RaggedPlate) -> Node:
    """Return the column of a plate whose cells are each drawn as a root is."""
    assert isinstance(root.operation, Draw)
    family = root.operation.family
    operation = RaggedDraw(family, root.shape, tuple(parameter.operation.by_rows for parameter in parameters))
    shape = plate.typical, *root.shape
    node = Node(operation, (*parameters, plate.size.node), shape, family.dtype, family.levels, family.kind)
    node.bound = root.bound
    return node
