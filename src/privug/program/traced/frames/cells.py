"""Cells of traced columns: values that may be missing, and functions of them."""

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from privug.model.categories import map_levels
from privug.model.maybe import Maybe
from privug.model.node import ConstantValue, Node, ancestors
from privug.model.operations import Elementwise, almost_never_zero
from privug.model.propositions import implies
from privug.model.traits import OPERATIONS, Role
from privug.model.variable import RandomVariable, as_node, refuse
from privug.prior.frame import is_missing
from privug.program.logic import where
from privug.program.traced.keys import alternatives
from privug.program.traced.masks import Mask, both, either, negated


class Cell(NamedTuple):
    """A value, and the condition under which it is known: elsewhere it is missing, and the value means nothing."""

    value: Any
    known: Mask = True


MISSING = Cell(0.0, False)


def cell_of(value: Any) -> Cell:
    """Return a cell of a table, or a number at hand, as a value that may be missing."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        refuse("a time of NumPy")
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, RandomVariable):
        return MISSING if is_missing(value) else Cell(value)
    node = value.node
    if isinstance(node.operation, Maybe):
        if isinstance(node.operation.otherwise, str):
            return Cell(value)
        if node.operation.otherwise is not None:
            refuse("a column of numbers and texts")
        return Cell(RandomVariable(node.parents[1]), RandomVariable(node.parents[0]))
    found = _unless_missing(value)
    if found is not None:
        return found
    if node.levels is not None and any(map(is_missing, node.levels)):
        there = [level for level in node.levels if not is_missing(level)]
        if not there:
            return MISSING
        filled = RandomVariable(map_levels(node, lambda level: there[0] if is_missing(level) else level))
        return Cell(filled, RandomVariable(map_levels(node, lambda level: not is_missing(level))))
    return Cell(value)


def _unless_missing(value: RandomVariable) -> Cell | None:
    """Take apart a number that is NaN under a condition, as `number` makes it."""
    operation, parents = value.node.operation, value.node.parents
    if not isinstance(operation, Elementwise) or operation.traits.chooses != 1 or len(parents) != 3:
        return None
    other = parents[2].operation
    if not isinstance(other, ConstantValue) or other.array.dtype.kind != "f" or not np.isnan(other.array).all():
        return None
    return Cell(RandomVariable(parents[1]), RandomVariable(parents[0]))


def computed(value: Any) -> Cell:
    """Return what a function of the program gave as a cell: zero divided by zero is missing."""
    return without_nan(cell_of(value))


def without_nan(cell: Cell) -> Cell:
    """Return a cell that is missing where it would be NaN: zero divided by zero. The same one, if it cannot be."""
    if not isinstance(cell.value, RandomVariable) or cell.value.node.dtype.kind != "f" or cell.known is False:
        return cell
    if all(_gives_numbers(node) for node in ancestors([cell.value.node])):
        return cell
    return Cell(cell.value, both(cell.known, negated(np.isnan(cell.value))))


def _gives_numbers(node: Node) -> bool:
    """Say whether an operation makes no NaN of numbers."""
    operation = node.operation
    if isinstance(operation, ConstantValue):
        return operation.array.dtype.kind != "f" or bool(np.isfinite(operation.array).all())
    if not isinstance(operation, Elementwise):
        return True
    traits = operation.traits
    if traits.is_partial or (isinstance(operation.function, np.ufunc) and operation.name not in OPERATIONS):
        return False  # nothing is known of the latter
    if traits.role is Role.POWER:
        return node.dtype.kind == "i"
    return not traits.divides or _is_safe(node.parents[1])


def _is_safe(divisor: Node) -> bool:
    """Say whether a divisor is never zero: or one where it would be, as `reductions` makes them."""
    if almost_never_zero(divisor):
        return True
    operation, parents = divisor.operation, divisor.parents
    chosen_one = isinstance(operation, Elementwise) and operation.traits.chooses == 1 and len(parents) == 3
    return chosen_one and isinstance(parents[2].operation, ConstantValue) and almost_never_zero(parents[2])


def kind(value: Any) -> str:
    """Return the kind of a value's type as NumPy has it: that of objects for texts."""
    if isinstance(value, RandomVariable):
        return "O" if value.node.levels is not None else value.node.dtype.kind
    found = np.asarray(value).dtype.kind
    return found if found in "bif" else "O"


def is_number(value: Any) -> bool:
    """Say whether a value is a random number, and neither a truth value nor a text."""
    return isinstance(value, RandomVariable) and kind(value) in "if"


def is_category(value: Any) -> bool:
    """Say whether a value is a random text, or another category."""
    return isinstance(value, RandomVariable) and value.node.levels is not None


def is_truth(value: Any) -> bool:
    """Say whether a value is a truth value, random or plain."""
    return kind(value) == "b"


def is_mixed(value: Any) -> bool:
    """Say whether a value is a number or a text, as the case may be: it can be released, but not computed with."""
    return isinstance(value, RandomVariable) and value.node.levels is None and value.node.dtype.kind == "O"


def refuse_mixed(*values: Any) -> None:
    """Refuse to compute with what is a number or a text, as the case may be."""
    if any(map(is_mixed, values)):
        refuse("a column of numbers and texts")


def applied(function: np.ufunc, *cells: Cell) -> Cell:
    """Apply a function of numbers to cells; what is computed of something missing is missing."""
    known: Mask = True
    for cell in cells:
        known = both(known, cell.known)
    if known is False:
        return MISSING
    values = [cell.value for cell in cells]
    refuse_mixed(*values)
    if function in (np.floor_divide, np.remainder) and not almost_never_zero(as_node(values[1])):
        refuse("a whole division by what may be zero")
    if any(isinstance(value, str) or is_category(value) for value in values):
        own = _PYTHON.get(function) if len(values) == 2 else None
        return Cell(refuse(f"np.{function.__name__} of texts") if own is None else own(*values), known)
    if not any(isinstance(value, RandomVariable) for value in values):
        return Cell(function(*values).item(), known)
    return Cell(function(*values), known)


_PYTHON: dict[Any, Callable[..., Any]] = {
    np.equal: operator.eq, np.not_equal: operator.ne, np.less: operator.lt, np.less_equal: operator.le,
    np.greater: operator.gt, np.greater_equal: operator.ge, np.add: operator.add,
}  # fmt: skip


def chosen(mask: Mask, yes: Cell, no: Cell) -> Cell:
    """Return one cell where a condition holds, and another elsewhere."""
    if isinstance(mask, bool):
        return yes if mask else no
    known = either(both(mask, yes.known), both(negated(mask), no.known)) if yes.known is not no.known else yes.known
    if yes.known is False or no.known is False:
        return Cell(no.value if yes.known is False else yes.value, known)
    return Cell(where(mask, yes.value, no.value), known)


def mapped(function: Callable[[Any], Any], cell: Cell) -> Cell:
    """Apply a plain function to each value that a cell may have; where it gives None or NaN, a value is missing."""
    if cell.known is False:
        return cell
    refuse_mixed(cell.value)
    if not isinstance(cell.value, RandomVariable):
        found = cell_of(function(cell.value))
        return Cell(found.value, both(cell.known, found.known))
    if is_category(cell.value):
        results = RandomVariable(map_levels(cell.value.node, lambda level: _plain(function(level))))
        found = cell_of(results)
        return Cell(found.value, both(cell.known, found.known))
    total = MISSING
    for level, hit in alternatives(cell.value).items():
        total = chosen(hit, cell_of(_plain(function(level))), total)
    return Cell(total.value, both(cell.known, total.known))


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and value != value else value


def hits_of(cell: Cell) -> dict[Any, Mask]:
    """Return the plain values that a cell may have, each with the condition under which it is known and has it."""
    if cell.known is False:
        return {}
    return {level: both(cell.known, hit) for level, hit in alternatives(cell.value).items()}


def surely_known(cell: Cell, there: Mask) -> bool:
    """Say whether a cell is known wherever its row is there."""
    known = cell.known
    if isinstance(known, RandomVariable) and isinstance(there, RandomVariable):
        return implies(there.node, known.node)
    return known is True or there is False


def rounded(cell: Cell, decimals: int) -> Cell:
    """Return a number rounded as NumPy does."""
    if cell.known is False:
        return cell
    value = np.round(cell.value, decimals)
    return Cell(value.item() if isinstance(value, np.generic) else value, cell.known)


def converted(cell: Cell, dtype: Any) -> Cell:
    """Return a cell in another type."""
    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", str(dtype))
    if name == "str":
        return _as_text(cell)
    kinds = {"int": int, "int64": int, "float": float, "float64": float, "bool": bool}
    if name not in kinds:
        refuse(f"astype({name})")
    wanted = kinds[name]
    if wanted is not float and cell.known is not True:
        refuse(f"astype({name}) of a column with missing values")
    refuse_mixed(cell.value)
    if is_category(cell.value) or not isinstance(cell.value, RandomVariable):
        return mapped(wanted, cell)
    return Cell(cell.value.astype(wanted), cell.known)


def _as_text(cell: Cell) -> Cell:
    """Return a cell as a text: whole numbers in a column that had gaps are floats in pandas, and another text."""
    levels = cell.value.node.levels if is_category(cell.value) else (cell.value,)
    if all(isinstance(level, str) for level in levels):
        return cell
    random = isinstance(cell.value, RandomVariable) and not is_category(cell.value)
    if cell.known is not True or had_gaps(cell) or not (random or isinstance(cell.value, int | float)):
        refuse("astype(str) of numbers with gaps, or of dates")
    return mapped(str, cell)


def had_gaps(cell: Cell) -> bool:
    """Say whether a value may come from a column in which something was missing, which pandas holds in another type."""
    nodes = ancestors([cell.value.node]) if isinstance(cell.value, RandomVariable) else ()
    return any(
        _chooses(node) or isinstance(node.operation, Maybe) or any(map(is_missing, node.levels or ())) for node in nodes
    )


def _chooses(node: Node) -> bool:
    return isinstance(node.operation, Elementwise) and node.operation.traits.chooses is not None


def with_gaps(cell: Cell) -> Cell:
    """Return a cell as it is in a column in which something is missing: a whole number is a float there."""
    if isinstance(cell.value, RandomVariable) and kind(cell.value) == "i":
        return Cell(cell.value.astype(float), cell.known)
    return Cell(float(cell.value), cell.known) if type(cell.value) is int else cell


def was_filled(cell: Cell) -> bool:
    """Say whether a truth value may stand in a column in which others were missing and had something put in place."""
    return isinstance(cell.value, RandomVariable) and _chooses(cell.value.node)


def harmless(cell: Cell) -> Cell:
    """Return a cell that is zero where it is missing: the largest of no whole numbers is one of 64 bits."""
    value, known = cell
    whole = isinstance(known, RandomVariable) and isinstance(value, RandomVariable) and kind(value) == "i"
    return Cell(where(known, value, 0), known) if whole else cell
