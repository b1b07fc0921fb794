"""Distributions over listed values: Constant, Choice and Empirical."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privug.errors import ArgumentError, PriorError
from privug.model.categories import encode
from privug.model.node import CODE_DTYPE, Array, ConstantValue, Kind, Node, Shape
from privug.model.operations import lookup
from privug.model.table import Row
from privug.model.variable import RandomVariable, as_node
from privug.prior.discrete import DiscreteUniform
from privug.prior.family import Family, draw

SUM_TOLERANCE = 1e-9


@dataclass(frozen=True)
class ChoiceFamily(Family):
    """A finite list of values; the parameter, if any, is the vector of their probabilities."""

    table: Array = field(compare=False)
    key: bytes  # the table again, in a form that can be compared
    levels: tuple[Any, ...] | None

    name = "Choice"
    kind = Kind.DISCRETE

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return self.table.dtype

    def draw(self, rng: np.random.Generator, samples: int, shape: Shape, parameters: Sequence[Array]) -> Array:
        result: Array = self.table[self._codes(rng, (samples, *shape), parameters)]
        return result

    def _codes(self, rng: np.random.Generator, size: Shape, parameters: Sequence[Array]) -> Array:
        if not parameters:
            return rng.integers(len(self.table), size=size)
        uniform = rng.random(size)
        cumulative = np.cumsum(parameters[0], axis=-1)
        # Scaling by the total makes the last value reach 1 exactly, whatever the rounding of the sum.
        cumulative /= cumulative[..., -1:]
        if cumulative.size == len(self.table):
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
            return np.log((matches * weights).sum(axis=-1))

    def check(self, parameters: Sequence[Array]) -> None:
        if not parameters:
            return
        p = parameters[0]
        if p.shape[-1] != len(self.table):
            raise PriorError(f"Choice: p has {p.shape[-1]} probabilities for {len(self.table)} values")
        if not (np.all(np.isfinite(p)) and np.all(p >= 0)):
            raise PriorError("Choice: p must hold probabilities, none negative and none NaN")
        off = np.abs(p.sum(axis=-1) - 1).max()
        if off > SUM_TOLERANCE:
            raise PriorError(f"Choice: the probabilities must sum to one, but are off by {off:.3g}")


def _family(values: Sequence[Any]) -> ChoiceFamily:
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray | set | frozenset | range):
        raise PriorError(f"Choice: values must be a list, not {values!r}")
    listed = [value.item() if isinstance(value, np.generic) else value for value in values]
    if not listed:
        raise PriorError("Choice: values must not be empty")
    if any(isinstance(value, RandomVariable) for value in listed):
        raise PriorError("Choice: values must be plain; to choose between distributions write pv.Mixture")
    if any(isinstance(value, float) and value != value for value in listed):
        raise PriorError("Choice: values must not be NaN")
    try:
        table, levels = encode(listed)
    except ArgumentError as error:
        raise PriorError(f"Choice: {error}") from None
    return ChoiceFamily(table, table.tobytes(), levels)


def Choice(values: Sequence[Any], p: Any = None) -> RandomVariable:
    """One of the listed values: numbers, strings, enums or tuples; equally likely unless `p` is given.

    >>> import privug as pv
    >>> pv.Choice(["ill", "healthy"], p=[0.2, 0.8]) == "ill"
    <RandomVariable: discrete bool>
    """
    family = _family(values)
    if p is None:
        return draw(family, (), ())
    if isinstance(p, Mapping):
        raise PriorError("Choice: p must be a list of probabilities in the order of the values")
    try:
        weights = as_node(p if isinstance(p, RandomVariable) else list(p))
    except TypeError:
        raise PriorError(f"Choice: p must be a list of probabilities, not {p!r}") from None
    if weights.levels is not None or len(weights.shape) != 1:
        raise PriorError("Choice: p must be a list of probabilities")
    return draw(family, (RandomVariable(weights),), ())


def Constant(value: Any) -> RandomVariable:
    """A value that the attacker knows."""
    if isinstance(value, RandomVariable):
        return value
    if isinstance(value, float) and value != value:
        raise PriorError("Constant: the value must not be NaN")
    return RandomVariable(as_node(value))


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
    """
    if hasattr(data, "columns") and hasattr(data, "iloc"):
        data = [Row(**dict(zip(map(str, data.columns), row, strict=True))) for row in data.itertuples(index=False)]
    values = data.tolist() if hasattr(data, "tolist") else list(data)
    if not values:
        raise PriorError("Empirical: the data must not be empty")
    if all(isinstance(value, Row | dict) for value in values):
        return _empirical_rows([value if isinstance(value, Row) else Row(**value) for value in values])
    if all(isinstance(value, list) for value in values):
        table = np.asarray(data, float)
        if np.isnan(table).any():
            raise PriorError("Empirical: the data must not hold NaN")
        return RandomVariable(lookup(DiscreteUniform(0, len(values) - 1).node, table))
    distinct: dict[Any, int] = {}
    for value in values:
        distinct[value] = distinct.get(value, 0) + 1
    if len(distinct) == len(values):
        return Choice(list(distinct))
    return Choice(list(distinct), np.array(list(distinct.values())) / len(values))


def _empirical_rows(rows: Sequence[Row]) -> Row:
    names = rows[0].keys()
    if any(row.keys() != names for row in rows):
        raise PriorError("Empirical: all rows must have the same columns")
    position = DiscreteUniform(0, len(rows) - 1).node
    columns = {}
    for name in names:
        table, levels = encode([_plain(row[name]) for row in rows])
        columns[name] = RandomVariable(lookup(position, table, levels))
    return Row(**columns)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
