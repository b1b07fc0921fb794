"""What programs are called with: arguments taken apart into leaves, and put together again from batches of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from privug.model.batch import Column
from privug.model.node import Array, Node
from privug.model.row_offsets import RowOffsets
from privug.model.structure import Structure
from privug.model.variable import RandomVariable

PLAIN = (int, float, complex, str, bytes, type(None), np.generic, np.ndarray, RandomVariable)


@dataclass(frozen=True, slots=True)
class Arguments:
    """Positional and keyword arguments of a call, taken apart into leaves, some of them random."""

    structure: Structure
    leaves: tuple[Any, ...]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes of the random leaves."""
        return tuple(leaf.node for leaf in self.leaves if isinstance(leaf, RandomVariable))

    @property
    def shared(self) -> list[Any]:
        """The objects that all calls are given, which a program may change."""
        return [leaf for leaf in self.leaves if not isinstance(leaf, PLAIN)]

    def plain(self, arrays: Sequence[Array], samples: int) -> Iterator[Any]:
        """Yield the plain arguments of each call, given the values of the random leaves."""
        return self.structure.build_each(self._columns(arrays, samples), samples)

    def _columns(self, arrays: Sequence[Array], samples: int) -> Iterator[Iterable[Any]]:
        values = dict(zip(self.nodes, arrays, strict=True))
        for leaf in self.leaves:
            if isinstance(leaf, RandomVariable):
                array = values[leaf.node]
                if leaf.node.operation.by_rows:
                    decoded = Column.of(leaf.node, array).decoded_array()
                    yield RowOffsets(values[leaf.node.parents[-1]], samples).split(decoded)
                    continue
                if len(array) != samples:
                    array = np.repeat(array, samples, axis=0)
                # Programs may write into the arrays they get: they must not share ours.
                yield Column.of(leaf.node, array.copy() if array.ndim > 1 else array)
            elif isinstance(leaf, np.ndarray):
                yield [leaf.copy() for _ in range(samples)]
            else:
                yield repeat(leaf, samples)
