"""How arguments are handed to a compiled program: as arrays over samples, one for each column of a table."""

import inspect
import keyword
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from privug.errors import ProgramError
from privug.model.node import Array
from privug.model.structure import LEAF, Structure
from privug.model.table import Row, Table
from privug.model.variable import RandomVariable
from privug.program.inputs import Arguments
from privug.program.traced.calling import is_users_own

DTYPES = {"f": np.dtype(np.float64), "i": np.dtype(np.int64), "b": np.dtype(bool), "c": np.dtype(np.int64)}


class OutputMisfit(ProgramError):
    """A plain call returned something that does not fit among the compiled program's outputs."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}; pv.configure(native=False) takes any outputs")
        self.reason = reason


class Refused(Exception):
    """The program or its arguments are not fit for compilation."""


@dataclass(frozen=True)
class Parameter:
    """How one argument is handed over: one array over samples for a number or an array, one a column for a table."""

    kinds: str
    """A dtype's letter, or `c` for a category, for each array."""
    names: tuple[str, ...] | None = None
    """The columns of a table."""
    rank: int = 0
    rows: int = field(default=0, compare=False)
    """Of a table; compiled code does not depend on it."""


def _kind_of_leaf(leaf: Any) -> tuple[str, int]:
    """Return the letter of a leaf's kind and how many axes it has."""
    if isinstance(leaf, RandomVariable):
        node = leaf.node
        if node.levels is not None:
            if node.shape or not all(type(level) is str for level in node.levels):
                raise Refused("it has categories that are not single strings")
            return "c", 0
        if node.dtype not in (np.float64, np.int64, np.bool_):
            raise Refused(f"it has an argument of type {node.dtype}")
        return node.dtype.kind, len(node.shape)
    if isinstance(leaf, np.ndarray) and leaf.ndim and leaf.dtype in (np.float64, np.int64, np.bool_):
        return leaf.dtype.kind, leaf.ndim
    if isinstance(leaf, bool | np.bool_):
        return "b", 0
    if isinstance(leaf, int | np.int64) and abs(int(leaf)) < 2**63:
        return "i", 0
    if isinstance(leaf, float):
        return "f", 0
    if type(leaf) is str:
        return "c", 0
    raise Refused(f"it has an argument of type {type(leaf).__name__}")


def _kind_of_column(cells: Sequence[Any]) -> str:
    kinds = {_kind_of_leaf(cell) for cell in cells}
    if kinds == {("i", 0), ("f", 0)}:
        whole = [cell for cell in cells if _kind_of_leaf(cell)[0] == "i"]
        if all(isinstance(cell, int) and abs(cell) <= 2**53 for cell in whole):
            return "f"
    if len(kinds) > 1 or next(iter(kinds))[1]:
        raise Refused("it has a table with a column of several types")
    return next(iter(kinds))[0]


def _unusable_names(names: Sequence[str]) -> list[str]:
    """Return the names of columns that cannot be attributes of a row."""
    taken = {*dir(tuple), *vars(Row), "count", "index"}
    return [n for n in names if not n.isidentifier() or keyword.iskeyword(n) or n.startswith("_") or n in taken]


def _read(structure: Structure, leaves: Sequence[Any]) -> Parameter:
    """Return how an argument is handed over."""
    if structure is LEAF or structure == LEAF:
        kind, rank = _kind_of_leaf(leaves[0])
        return Parameter(kind, None, rank)
    rows = structure.children
    if structure.container is not Table or not rows:
        name = "a table without rows" if structure.container is Table else getattr(structure.container, "__name__", "?")
        raise Refused(f"it has an argument that is {name}, not a number, an array or a table")
    if any(row != rows[0] for row in rows) or rows[0].container is not Row or any(c != LEAF for c in rows[0].children):
        raise Refused("it has a table whose cells are not single values")
    names = rows[0].keys
    if _unusable_names(names):
        raise Refused(f"it has a table with a column named {_unusable_names(names)[0]!r}")
    width = len(names)
    return Parameter("".join(_kind_of_column(leaves[k::width]) for k in range(width)), names, 1, len(rows))


def _count_leaves(structure: Structure) -> int:
    return 1 if structure.container is None else sum(map(_count_leaves, structure.children))


@dataclass(frozen=True)
class Layout:
    """How all arguments are handed over; `names` are those of the arguments that are passed by name."""

    parameters: tuple[Parameter, ...]
    names: tuple[str, ...]


def layout(arguments: Arguments) -> Layout:
    """Return how the arguments of a call are handed over, or raise `Refused`."""
    positional, named = arguments.structure.children
    parameters, start = [], 0
    for child in (*positional.children, *named.children):
        count = _count_leaves(child)
        parameters.append(_read(child, arguments.leaves[start : start + count]))
        start += count
    return Layout(tuple(parameters), named.keys)


def refusal(program: Callable[..., Any], arguments: Arguments) -> str | None:
    """Say why a program cannot be compiled, as far as that can be told without a compiler."""
    if not isinstance(program, FunctionType) or not is_users_own(program):
        return "it is not a plain Python function"
    kinds = {parameter.kind for parameter in inspect.signature(program).parameters.values()}
    if not kinds <= {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}:
        return "it has parameters with * or after one"
    try:
        layout(arguments)
    except Refused as refused:
        return str(refused)
    return None


def encodings(code: Callable[[str], int], arguments: Arguments) -> list[Array | None]:
    """Return the codes in the program of each leaf's levels; None for numbers. All strings get their codes here."""
    known: dict[tuple[str, ...], Array] = {}
    made: list[Array | None] = []
    for leaf in arguments.leaves:
        levels = leaf.node.levels if isinstance(leaf, RandomVariable) else (leaf,) if type(leaf) is str else None
        if levels is not None and levels not in known:
            known[levels] = np.array([code(level) for level in levels], np.int64)
        made.append(None if levels is None else known[levels])
    return made


def prepared(
    arguments: Arguments, shape: Layout, codes: Sequence[Array | None], arrays: Sequence[Array], samples: int
) -> list[Array]:
    """Return what the kernel works on, from the values of the random leaves."""
    values = iter(arrays)
    leaves = map(partial(_encoded, values), arguments.leaves, codes)
    made = []
    for parameter in shape.parameters:
        if parameter.names is None:
            made.append(_repeated(next(leaves), samples, DTYPES[parameter.kinds]))
            continue
        columns = [np.empty((samples, parameter.rows), DTYPES[kind]) for kind in parameter.kinds]
        for row in range(parameter.rows):
            for column in columns:
                column[:, row] = next(leaves)
        made += columns
    return made


def _repeated(values: Array, samples: int, dtype: np.dtype[Any]) -> Array:
    """Return an array of its own with a value for each sample: programs may write into it."""
    made = np.empty((samples, *values.shape[1:]), dtype)
    made[:] = values
    return made


def _encoded(values: Iterator[Array], leaf: Any, codes: Array | None) -> Array:
    if not isinstance(leaf, RandomVariable):
        return np.asarray(leaf)[np.newaxis] if codes is None else codes
    array = next(values)
    if codes is None:
        return array
    encoded: Array = codes[array]
    return encoded
