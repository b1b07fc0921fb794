"""Dictionaries of which some entries are there for some samples only, as a group-by over random groups gives them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from privug.model.maybe import Maybe
from privug.model.variable import RandomVariable


@dataclass(frozen=True)
class NoValue:
    """Stands where there is no value to look at; no observation agrees with it."""

    reason: str

    def __repr__(self) -> str:
        return f"<{self.reason}>"


ABSENT = NoValue("the output has no such part")


class SparseDict(dict[Any, Any]):
    """A dictionary whose values, where they are random, may be absent: their entries are then not there."""

    drops_empty = False
    """Whether entries that are dictionaries without entries are not there either."""

    @staticmethod
    def is_absent(value: RandomVariable) -> bool:
        """Say whether a value may be absent."""
        return isinstance(value.node.operation, Maybe) and value.node.operation.otherwise == ABSENT

    @classmethod
    def of(cls, keys: Iterable[Any], values: Iterable[Any]) -> dict[Any, Any]:
        """Put one together: of plain values, a plain dictionary of what is there."""
        pairs = list(zip(keys, values, strict=True))
        if any(isinstance(value, RandomVariable | SparseDict) for _, value in pairs):
            return cls(pairs)
        there = [pair for pair in pairs if not isinstance(pair[1], NoValue)]
        return dict(pair for pair in there if not (cls.drops_empty and pair[1] == {}))


class SparseColumns(SparseDict):
    """Columns that are there if anything is there in them."""

    drops_empty = True
