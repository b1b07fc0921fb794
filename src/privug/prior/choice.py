"""Distributions over listed values: Constant, Choice and Empirical."""

import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from privug.arguments import as_floats, plain_number, refuse_code, refuse_masked, shown
from privug.digits import how_many
from privug.errors import ArgumentError, PriorError
from privug.model.categories import encode
from privug.model.integers import largest
from privug.model.node import CODE_DTYPE, Array, ConstantValue, Kind, Node, Shape, Whole
from privug.model.numpy_functions import cast
from privug.model.operations import lookup
from privug.model.table import Row
from privug.model.variable import RandomVariable, as_node
from privug.prior.discrete import DiscreteUniform
from privug.prior.family import Family, Reach, Support, another, draw, of_numbers, parameter_node

SUM_TOLERANCE = 1e-9
MOST_COMPARED = 32  # probabilities: to compare with each of so few takes less time than to search among them


@dataclass(frozen=True)
class ChoiceFamily(Family):
    """A finite list of values; the parameter, if any, is the vector of their probabilities."""

    table: Array = field(compare=False)
    key: bytes  # the table again, in a form that can be compared
    levels: tuple[Any, ...] | None
    whole: Whole = False

    name = "Choice"
    kind = Kind.DISCRETE
    latents = 1

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return self.table.dtype

    def weights(self, parameters: Sequence[Array]) -> Array:
        """Return the probabilities of all values, a line for each row of parameters."""
        if not parameters:
            return np.full((1, len(self.table)), 1 / len(self.table))
        return np.asarray(parameters[0] / parameters[0].sum(axis=-1, keepdims=True))

    def draw(self, rng: np.random.Generator, samples: int, shape: Shape, parameters: Sequence[Array]) -> Array:
        size = (samples, *shape)
        if parameters:
            codes = self._codes(rng.random(size), parameters)
        else:
            codes = rng.integers(len(self.table), size=size, dtype=CODE_DTYPE)
        return codes.astype(CODE_DTYPE, copy=False) if self._is_numbered else np.take(self.table, codes)

    @cached_property
    def _is_numbered(self) -> bool:
        """Whether the values are their own positions, as the codes of a category are."""
        return self.table.dtype == CODE_DTYPE and np.array_equal(self.table, np.arange(len(self.table)))

    def of_normals(self, normals: Array, parameters: Sequence[Array]) -> Array:
        uniform = scipy.special.ndtr(normals)
        codes = self._codes(uniform, parameters) if parameters else (uniform * len(self.table)).astype(np.intp)
        result: Array = self.table[np.minimum(codes, len(self.table) - 1)]
        return result

    def _codes(self, uniform: Array, parameters: Sequence[Array]) -> Array:
        size = uniform.shape
        cumulative = np.cumsum(parameters[0], axis=-1)
        # Scaling by the total makes the last value reach 1 exactly, whatever the rounding of the sum.
        cumulative /= cumulative[..., -1:]
        if cumulative.size == len(self.table) > MOST_COMPARED:
            positions: Array = np.searchsorted(cumulative.reshape(-1), uniform, side="right")
            return positions
        cumulative = cumulative.reshape(len(cumulative), *(1,) * (len(size) - 1), -1)
        codes = np.zeros(size, CODE_DTYPE)
        for position in range(len(self.table) - 1):
            codes += uniform >= cumulative[..., position]
        return codes

    def log_density(self, values: Array, parameters: Sequence[Array]) -> Array:
        matches = values[..., np.newaxis] == self.table
        weights = parameters[0] if parameters else np.full((1, len(self.table)), 1.0 / len(self.table))
        weights = weights.reshape(len(weights), *(1,) * (values.ndim - 1), -1)
        with np.errstate(divide="ignore"):
            logs: Array = np.log((matches * weights).sum(axis=-1))
        return logs

    def formula(self, xp: Any, value: Any, *parameters: Any) -> Any:
        weights = parameters[0] if parameters else np.full(len(self.table), 1.0 / len(self.table))
        return xp.log((xp.equal(value[..., None], self.table) * weights).sum(axis=-1))

    def bound(self, parameters: Sequence[Array] | None) -> int | None:
        return largest(self.table)

    def reach(self, parameters: Sequence[tuple[Array | None, Reach]]) -> Reach:
        return of_numbers(self.table)

    def sizes(self, parameters: Sequence[Array], exponent: float) -> Array:
        return np.full(1, float(len(self.table)))

    def support(self, parameters: Sequence[Array], rows: int, exponent: float) -> Support:
        count = len(self.table)
        probabilities = np.broadcast_to(self.weights(parameters), (rows, count)).reshape(-1)
        return Support(np.repeat(np.arange(rows), count), np.tile(self.table, rows), probabilities).possible()

    def possible(self, parameters: Sequence[Array | None], exponent: float, most: int) -> Array | None:
        return np.unique(self.table)

    def check(self, parameters: Sequence[Array]) -> None:
        if not parameters:
            return
        p = parameters[0]
        if p.shape[-1] != len(self.table):
            raise PriorError(
                f"Choice: p has {how_many(p.shape[-1], 'probability', 'probabilities')} for "
                f"{how_many(len(self.table), 'value')}"
            )
        check_probabilities("Choice", p)


def check_probabilities(distribution: str, p: Array) -> None:
    """Raise PriorError if lists of numbers are no probabilities that sum to one."""
    if not (np.all(np.isfinite(p)) and np.all(p >= 0)):
        raise PriorError(f"{distribution}: p must hold probabilities, none negative and none NaN")
    off = np.abs(p.sum(axis=-1) - 1).max()
    if off > SUM_TOLERANCE:
        raise PriorError(f"{distribution}: the probabilities must sum to one, but are off by {off:.3g}")


# A table's rows are often made from the same list again and again: its family is the same as long as its items are.
MOST_RECENT = 64
_recent: dict[int, tuple[list[Any], ChoiceFamily]] = {}


def _family(values: Sequence[Any]) -> ChoiceFamily:
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray | set | frozenset | range):
        raise PriorError(f"Choice: values must be a list, not {shown(values)}")
    if isinstance(values, set | frozenset):
        values = sorted(values, key=repr)  # a set of strings has another order in every process
    known = _recent.get(id(values))
    if known is not None and len(known[0]) == len(values) and all(map(operator.is_, known[0], values)):
        return known[1]
    family = _checked_family([_plain(value) for value in values])
    if len(_recent) >= MOST_RECENT:
        _recent.clear()
    _recent[id(values)] = list(values), family
    return family


def _checked_family(listed: list[Any]) -> ChoiceFamily:
    if not listed:
        raise PriorError("Choice: values must not be empty")
    if any(isinstance(value, RandomVariable) for value in listed):
        raise PriorError("Choice: values must be plain; to choose between distributions write pv.Mixture")
    if any(isinstance(value, float) and value != value for value in listed):
        raise PriorError("Choice: values must not be NaN; write None for a value that is missing")
    for value in listed:
        refuse_code("Choice: one of the values", value, PriorError)
    try:
        table, levels, whole = encode(listed, keep_types=True)
    except ArgumentError as error:
        raise PriorError(f"Choice: {error}") from None
    return ChoiceFamily(table, table.tobytes(), levels, whole)


def Choice(values: Sequence[Any], p: Any = None) -> RandomVariable:
    """One of the listed values: numbers, strings, enums or tuples; equally likely unless `p` is given.

    >>> import privug as pv
    >>> pv.Choice(["ill", "healthy"], p=[0.2, 0.8]) == "ill"
    <RandomVariable: discrete bool>
    """
    if isinstance(p, np.ndarray):
        p = p.tolist()
    key = _content(values, p)
    known = _roots.get(key) if key is not None else None
    if known is not None:
        return RandomVariable(another(known))
    made = _choice(values, p)
    if key is not None:
        if len(_roots) >= MOST_ROOTS:
            _roots.clear()
        _roots[key] = made.node
    return made


MOST_ROOTS = 4096
MOST_PLAIN_VALUES = 256
_roots: dict[Any, Node] = {}
"""Roots made lately, by their values and probabilities: a table makes the same ones for each of its rows."""
_SIMPLE = {bool, int, float, str}


def _content(values: Any, p: Any) -> Any:
    """Return what is equal for choices that are the same, if that is quickly told."""
    if type(values) not in (list, tuple) or type(p) not in (list, tuple, type(None)) or len(values) > MOST_PLAIN_VALUES:
        return None
    types = tuple(map(type, values))  # one, 1.0 and True are equal
    if not _SIMPLE.issuperset(types) or (p is not None and not _SIMPLE.issuperset(map(type, p))):
        return None
    return types, tuple(values), None if p is None else tuple(p)


def _choice(values: Sequence[Any], p: Any) -> RandomVariable:
    family = _family(values)
    if p is None:
        return draw(family, (), ())
    if isinstance(p, Mapping) or isinstance(values, set | frozenset):
        raise PriorError("Choice: p must be a list of probabilities in the order of the values, which must be a list")
    weights = probabilities("Choice", "p", p)
    if weights.shape != (len(family.table),):
        raise PriorError(
            f"Choice: p must be a list of {how_many(len(family.table), 'probability', 'probabilities')}, not {shown(p)}"
        )
    return draw(family, (RandomVariable(weights),), ())


def probabilities(distribution: str, name: str, value: Any) -> Node:
    """Return the node of a list of probabilities, which may be random; its shape is still to be checked."""
    wrong = PriorError(f"{distribution}: {name} must be a list of probabilities, not {shown(value)}")
    if isinstance(value, str | bytes | Mapping | set | frozenset):
        raise wrong
    try:
        given: Any = value if isinstance(value, RandomVariable) else [plain_number(part) for part in value]
        if isinstance(given, list) and not any(isinstance(part, RandomVariable) for part in given):
            given = as_floats(given)
        node = parameter_node(distribution, name, given)
    except (TypeError, ValueError, OverflowError):
        raise wrong from None
    # Probabilities are divided by their sum: those of a coin or a comparison are whole numbers or bools.
    return node if node.dtype.kind == "f" else cast(node, np.dtype(np.float64))


def Constant(value: Any) -> RandomVariable:
    """A value that the attacker knows.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda x, y: x + y, prior={"x": pv.DiscreteUniform(0, 9), "y": pv.Constant(5)}, secret="x")
    >>> attack.run(pv.equals(12)).posterior.mean().value
    7.0
    """
    if isinstance(value, RandomVariable):
        return value
    refuse_code("Constant: the value", value, PriorError)
    if isinstance(value, float | np.ndarray) and np.any(np.asarray(value) != value):
        raise PriorError("Constant: the value must not be NaN")
    try:
        return RandomVariable(as_node(value))
    except (TypeError, ValueError) as error:
        raise PriorError(f"Constant: {shown(value)} cannot be a value: {error}") from None


def is_constant(value: Any) -> bool:
    """Say whether a random variable is a known single value."""
    return isinstance(value, RandomVariable) and isinstance(value.node.operation, ConstantValue)


def constant_value(node: Node) -> Any:
    """Return the plain value of a constant node."""
    assert isinstance(node.operation, ConstantValue)
    value = node.operation.array[0]
    if node.levels is not None:
        return node.levels[value]
    return value.item() if node.shape == () else value


def Empirical(data: Any) -> Any:
    """A value drawn from data: every observation equally likely.

    A list or array of single values gives one quantity; a two-dimensional array gives rows as
    arrays; a data frame or a list of rows or dicts gives a `Row` whose columns stay together.

    >>> import privug as pv
    >>> city = pv.Attack(lambda x: x, prior={"x": pv.Empirical(["Oslo", "Oslo", "Bergen"])}, secret="x").run().prior
    >>> round(city.probability(lambda x: x == "Oslo").value, 4)
    0.6667
    >>> pv.Empirical([{"zip": "2300", "ill": True}, {"zip": "2100", "ill": False}])
    Row(zip=<RandomVariable: discrete category>, ill=<RandomVariable: discrete bool>)
    """
    if hasattr(data, "columns") and hasattr(data, "iloc"):
        data = [Row(**dict(zip(map(str, data.columns), row, strict=True))) for row in data.itertuples(index=False)]
    refuse_masked(data, PriorError)
    values = data.tolist() if hasattr(data, "tolist") else data
    if isinstance(values, str | bytes | Mapping | Row) or not isinstance(values, Iterable):
        raise PriorError(f"Empirical: data must be a list, an array or a data frame, not {shown(data)}")
    values = list(values)
    if not values:
        raise PriorError("Empirical: the data must not be empty")
    if any(_is_nan(value) for value in values):
        raise PriorError("Empirical: the data must not hold NaN; leave out or fill what is missing")
    if all(isinstance(value, Row | dict) for value in values):
        return _empirical_rows([value if isinstance(value, Row) else Row(**value) for value in values])
    if all(isinstance(value, list) for value in values):
        return RandomVariable(lookup(DiscreteUniform(0, len(values) - 1).node, _matrix(values)))
    try:
        # The type keeps 1 and True apart.
        distinct = Counter((type(value), value) for value in values)
    except TypeError as error:
        raise PriorError(f"Empirical: data must hold numbers, strings, tuples or rows ({error})") from None
    listed = [value for _, value in distinct]
    if len(distinct) == len(values):
        return Choice(listed)
    return Choice(listed, np.array(list(distinct.values())) / len(values))


def _matrix(rows: list[Any]) -> Array:
    try:
        table = np.asarray(rows)
    except ValueError:
        raise PriorError("Empirical: the rows of data must all have the same length") from None
    if table.dtype.kind not in "bif":
        raise PriorError("Empirical: rows of data must hold numbers; write pv.Row or a data frame for other columns")
    if np.isnan(table).any():
        raise PriorError("Empirical: the data must not hold NaN; leave out or fill what is missing")
    return table


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and bool(value != value)


def _empirical_rows(rows: Sequence[Row]) -> Row:
    names = rows[0].keys()
    if any(row.keys() != names for row in rows):
        raise PriorError("Empirical: all rows must have the same columns")
    position = DiscreteUniform(0, len(rows) - 1).node
    columns = {}
    for name in names:
        cells = [_plain(row[name]) for row in rows]
        if any(_is_nan(cell) for cell in cells):
            raise PriorError(f"Empirical: column {name!r} must not hold NaN; leave out or fill what is missing")
        try:
            table, levels, whole = encode(cells, keep_types=True)
        except ArgumentError as error:
            raise PriorError(f"Empirical: column {name!r}: {error}") from None
        columns[name] = RandomVariable(lookup(position, table, levels, whole=whole))
    return Row(**columns)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
