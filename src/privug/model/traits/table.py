"""The table of operations, by name."""

from functools import lru_cache

from privug.model.traits.arithmetic import ARITHMETIC
from privug.model.traits.arrays import ARRAYS
from privug.model.traits.conditions import CONDITIONS
from privug.model.traits.elementary import ELEMENTARY
from privug.model.traits.traits import Traits

OPERATIONS: dict[str, Traits] = {row.name: row for row in (*ARITHMETIC, *ELEMENTARY, *CONDITIONS, *ARRAYS)}
"""Everything that is known, one row for each operation."""


def traits_of(name: str) -> Traits:
    """Return what is known of an operation; of one that is not in the table that is its name."""
    return OPERATIONS.get(name) or _unknown(name)


@lru_cache(maxsize=1024)
def _unknown(name: str) -> Traits:
    return Traits(name=name)
