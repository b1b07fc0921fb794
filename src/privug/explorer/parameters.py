"""What can be moved in an attack: numbers of its prior, its observation, its mechanisms and its program.

Most are found: constant parameters of distributions, sizes of tables, numbers that were seen, numbers that mechanisms
were made with, and numeric defaults of the program. A file can declare others by `pv.parameter`, which then gives
the value that the explorer is at when it runs the file again.
"""

import functools
import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any

import numpy as np

from privug.arguments import check_kind, is_number, is_one_of, shown
from privug.attack import Attack
from privug.errors import ArgumentError
from privug.mechanisms.mechanism import Mechanism
from privug.model.graph import substitute
from privug.model.node import ConstantValue, Node, ancestors
from privug.model.operations import constant
from privug.model.structure import flatten
from privug.model.table import Row, row_maker
from privug.model.variable import RandomVariable
from privug.observation.observations import (
    Between,
    Equals,
    Near,
    Noisy,
    Observation,
    Structured,
    between,
    near,
    noisy,
)
from privug.prior.family import Draw, draw_node, family_of
from privug.prior.scalar import (
    COUNT,
    MODERATE,
    POSITIVE,
    POSITIVE_PROBABILITY,
    PROBABILITY,
    WHOLE,
    ScalarFamily,
    scalar_family,
)
from privug.prior.table import Records

ROWS_LOOKED_AT = 64
"""How many rows of a table are looked at for parameters of their distributions."""
MOST_ROWS = 10_000
SCALES = ("linear", "log")
POSITIVE_NUMBERS = (POSITIVE, MODERATE)
PROBABILITIES = (PROBABILITY, POSITIVE_PROBABILITY)
INTEGERS = (COUNT, WHOLE)
EPSILONS = ("epsilon", "rho", "delta", "sensitivity", "sd", "to")
"""Numbers of mechanisms that are positive, and that are moved on a logarithmic scale."""

Position = Mapping[str, float]
"""The values of parameters that differ from those in the attack, by their names."""


@dataclass(frozen=True)
class Parameter:
    """A number that can be moved, and between which ends.

    `group` says what it belongs to: 'declared', 'prior', 'seen', 'mechanism' or 'program'.
    """

    name: str
    low: float
    high: float
    value: float
    scale: str = "linear"
    unit: str = ""
    integer: bool = False
    group: str = "declared"

    def checked(self, value: Any) -> float:
        """Return a value that the parameter may have; raise ArgumentError for any other."""
        if not _is_finite(value):
            raise ArgumentError(f"{self.name} must be a finite number, not {shown(value)}")
        number = float(value)
        whole = number == int(number)
        if self.integer and not whole and self.group != "seen":  # what is seen may lie between what is likely
            raise ArgumentError(f"{self.name} must be an integer, not {shown(value)}")
        return int(number) if whole and isinstance(self.value, int) else number

    def to_dict(self) -> dict[str, Any]:
        """Return the parameter as plain values."""
        return {field: getattr(self, field) for field in self.__dataclass_fields__}


class _Declarations:
    """The parameters that a file declares while it runs, and the values that they are to have."""

    def __init__(self, values: Position) -> None:
        self.values = values
        self.found: dict[str, Parameter] = {}


_declaring: ContextVar[_Declarations | None] = ContextVar("declaring", default=None)


def parameter(
    name: str, low: float, high: float, *, default: float | None = None, scale: str = "linear", unit: str = ""
) -> float:
    """Declare a number that the explorer can move; return its present value.

    Args:
        name: What the page calls it; no two parameters of a file may have the same name.
        low: The lower end of the slider.
        high: The upper end of the slider.
        default: The value outside the explorer, and where it begins; the middle if it is not given.
        scale: "linear", or "log" for a number that spans orders of magnitude, such as epsilon.
        unit: What it is measured in, shown beside it.

    Returns:
        The default, or the value that the explorer is at. It is an integer if both ends and the default are.

    Raises:
        ArgumentError: If the ends are not finite numbers in ascending order, or the default does not lie between them.

    >>> import privug as pv
    >>> pv.parameter("epsilon", 0.1, 10, default=1, scale="log")
    1.0
    """
    check_kind("parameter", "name", name, (str,))
    check_kind("parameter", "unit", unit, (str,))
    if not is_one_of(scale, SCALES):
        raise ArgumentError(f"parameter: scale must be 'linear' or 'log', not {shown(scale)}")
    if not name.strip():
        raise ArgumentError("parameter: a name is needed, such as 'epsilon'")
    if not _is_finite(low) or not _is_finite(high) or not low < high:
        raise ArgumentError(f"parameter: {name!r} needs finite ends in ascending order, such as 0.1 and 10")
    if default is not None and not _is_finite(default):
        raise ArgumentError(f"parameter: the default of {name!r} must be a finite number, not {shown(default)}")
    given = [low, high] if default is None else [low, high, default]
    if scale == "log" and low <= 0:
        raise ArgumentError(f"parameter: the low end of {name!r} must be positive on a log scale, not {shown(low)}")
    integer = scale == "linear" and all(isinstance(number, int | np.integer) for number in given)
    middle = math.sqrt(low * high) if scale == "log" else (low + high) / 2
    start = (int(middle) if integer else middle) if default is None else default
    if not low <= start <= high:
        raise ArgumentError(f"parameter: the default of {name!r} must lie between {low:g} and {high:g}")
    start = int(start) if integer else float(start)
    state = _declaring.get()
    if state is None:
        return start
    if name in state.found:
        raise ArgumentError(f"parameter: two parameters are called {name!r}; give each a name of its own")
    found = Parameter(name, float(low), float(high), start, scale, unit, integer)
    state.found[name] = found
    return found.checked(state.values[name]) if name in state.values else start


def _is_finite(value: Any) -> bool:
    try:
        return is_number(value) and math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False


def _same_as(declared: Parameter, found: Sequence[Parameter]) -> list[Parameter]:
    """Return the parameters that a declared one stands behind: those of its value and name, or the one of its value."""
    equal = [one for one in found if one.group != "seen" and one.value == declared.value]
    named = [one for one in equal if one.name.rsplit(" ", 1)[-1].lower() == declared.name.lower()]
    return named or (equal if len(equal) == 1 else [])


def declared_by(run: Callable[[], Any], values: Position) -> tuple[Any, dict[str, Parameter]]:
    """Run something that declares parameters, with some of them at given values; return what it gave, and them."""
    state = _Declarations(values)
    token = _declaring.set(state)
    try:
        return run(), state.found
    finally:
        _declaring.reset(token)


@dataclass(frozen=True)
class _DrawParameter:
    """A constant parameter of distributions: of which input, column and family, and its value in the attack."""

    source: str
    cell: str
    family: str
    parameter: str
    value: float


class Variations:
    """An attack, and what can be moved in it.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda x: x, {"x": pv.Normal(5, sd=2)}, "x", observe=pv.near(6, within=0.5))
    >>> [parameter.name for parameter in Variations(attack).parameters.values()]
    ['seen: value', 'seen: within', 'x: Normal mean', 'x: Normal sd']
    """

    def __init__(self, attack: Attack, declared: Sequence[Parameter] = ()) -> None:
        check_kind("Variations", "attack", attack, (Attack,))
        self.attack = attack
        self._unobserved: tuple[dict[str, float], Attack] = {}, attack
        self._draws: dict[str, _DrawParameter] = {}
        found = [*_of_observation(attack.observe), *_of_program(attack), *self._of_prior()]
        hidden = {one.name for parameter in declared for one in _same_as(parameter, found)}
        self.parameters = {one.name: one for one in found if one.name not in hidden}

    def at(self, position: Position) -> Attack:
        """Return the attack with some of its parameters at other values; all others stay.

        Attacks at two positions in turn that differ in what is seen alone share what is known of their question.

        Raises:
            ArgumentError: If there is no such parameter, or a value is not a finite number.
        """
        check_kind("a position", "its values by name", position, (Mapping,))
        changed: dict[str, float] = {}
        for name, value in position.items():
            if name not in self.parameters:
                raise ArgumentError(f"there is no parameter {shown(name)}; there is {', '.join(self.parameters)}")
            number = self.parameters[name].checked(value)
            if number != self.parameters[name].value:
                changed[name] = number
        seen = {name: value for name, value in changed.items() if self.parameters[name].group == "seen"}
        asked = {name: value for name, value in changed.items() if name not in seen}
        if self._unobserved[0] != asked:
            self._unobserved = asked, self._asking(asked)
        attack = self._unobserved[1]
        return attack.replace(observe=_moved_observation(attack.observe, "seen", seen)) if seen else attack

    def _asking(self, changed: Position) -> Attack:
        """Return the attack with another question: of its program and prior, some parameters have other values."""
        if not changed:
            return self.attack
        parts: dict[str, Any] = {}
        if any(self.parameters[name].group in ("mechanism", "program") for name in changed):
            parts["program"] = _moved_program(self.attack.question.program, changed)
        if any(self.parameters[name].group == "prior" for name in changed):
            parts["prior"] = _MovedPrior(self._draws, changed).of(self.attack.question.prior)
        return self.attack.replace(name=self.attack.name, **parts)

    def _of_prior(self) -> Iterator[Parameter]:
        places: dict[_DrawParameter, set[int]] = {}
        order: list[Parameter] = []
        seen: set[Node] = set()
        for name, value in self.attack.question.prior.items():
            if isinstance(value, Records):
                order += _of_size(name, value, places, seen)
                for position, row in enumerate(_first_rows(value)):
                    for column, cell in zip(row.keys(), row, strict=True):
                        _look_at(_nodes(cell), name, f"{name}.{column}", places, seen, position)
            else:
                _look_at(_nodes(value), name, name, places, seen, -1)
        yield from order
        for place, rows in places.items():
            label = self._label(place, rows)
            self._draws[label] = place
            yield _of_draw(label, place, places)

    def _label(self, place: _DrawParameter, rows: set[int]) -> str:
        cell = place.cell
        if len(rows) == 1 and min(rows) >= 0 and "." in cell:
            source, _, column = cell.partition(".")
            value = self.attack.question.prior[source]
            if value.template is None and not (value.is_fixed and len(value) == 1):
                cell = f"{source}[{min(rows)}].{column}"
        label = f"{cell}: {place.family} {place.parameter}"
        return label if label not in self._draws else f"{label} ({place.value:g})"


def varied(attack: Attack, position: Position) -> Attack:
    """Return an attack with some of the parameters that the explorer finds at other values.

    Args:
        attack: The attack.
        position: Values by the names of parameters, as the explorer's page shows them.

    Returns:
        A new attack, or this one if nothing changes.

    Raises:
        ArgumentError: If there is no such parameter, or a value is not a finite number.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda x: x, {"x": pv.Normal(5, sd=2)}, "x")
    >>> varied(attack, {"x: Normal mean": 7}).run().prior.mean().value
    7.0
    """
    return Variations(attack).at(position)


def _nodes(value: Any) -> list[Node]:
    return [leaf.node for leaf in flatten(value)[1] if isinstance(leaf, RandomVariable)]


def _first_rows(records: Records) -> list[Row]:
    if records.template is not None:
        return [records.template]
    most = records.size if isinstance(records.size, int) else ROWS_LOOKED_AT
    return [records.row_at(position) for position in range(min(most, ROWS_LOOKED_AT))]


def _look_at(
    nodes: Sequence[Node], source: str, cell: str, places: dict[_DrawParameter, set[int]], seen: set[Node], row: int
) -> None:
    """Take note of the constant parameters of draws behind a cell that were not met before."""
    for node in ancestors(nodes):
        if node in seen:
            continue
        seen.add(node)
        for place in _constants(node, source, cell):
            places.setdefault(place, set()).add(row)


def _constants(node: Node, source: str, cell: str) -> Iterator[_DrawParameter]:
    if not isinstance(node.operation, Draw) or not isinstance(family_of(node), ScalarFamily):
        return
    family = family_of(node)
    for name, parent in zip(family.names, node.parents, strict=False):
        if isinstance(parent.operation, ConstantValue) and parent.operation.array.size == 1:
            number = float(parent.operation.array.item())
            if math.isfinite(number):
                yield _DrawParameter(source, cell, family.name, name, number)


def _of_size(
    name: str, records: Records, places: dict[_DrawParameter, set[int]], seen: set[Node]
) -> Iterator[Parameter]:
    if isinstance(records.size, RandomVariable):
        _look_at([records.size.node], name, f"{name} (rows)", places, seen, -1)
        return
    most = min(MOST_ROWS, max(20, 4 * records.size))
    yield Parameter(f"{name}: rows", 1, most, records.size, integer=True, group="prior")


def _of_draw(label: str, place: _DrawParameter, others: Mapping[_DrawParameter, Any]) -> Parameter:
    """Return the slider of a parameter of distributions: its ends follow from what it may be and how wide they are."""
    family = scalar_family(place.family)
    constraint = dict(family.parameters)[place.parameter]
    value = place.value
    if constraint in PROBABILITIES:
        return Parameter(label, 0.0 if constraint is PROBABILITY else 0.001, 1.0, value, group="prior")
    if constraint in INTEGERS:
        reach = max(10, 3 * abs(int(value)))
        least = 0 if constraint is COUNT else int(value) - reach
        return Parameter(label, least, int(value) + reach, int(value), integer=True, group="prior")
    if constraint in POSITIVE_NUMBERS:
        return Parameter(label, value / 20, value * 20, value, "log", group="prior")
    beside = {one.parameter: one.value for one in others if (one.cell, one.family) == (place.cell, place.family)}
    if family.ordered is not None and set(family.ordered) <= set(beside) and place.parameter in family.ordered:
        low, high = (beside[name] for name in family.ordered)
        width, gap = high - low, (high - low) / 1000
        is_low = place.parameter == family.ordered[0]
        return Parameter(
            label, *((low - width, high - gap) if is_low else (low + gap, high + width)), value, group="prior"
        )
    width = max([*(abs(other) for name, other in beside.items() if name != place.parameter), abs(value) / 4]) or 1.0
    return Parameter(label, value - 4 * width, value + 4 * width, value, group="prior")


class _MovedPrior:
    """A prior with parameters of its distributions at other values; quantities that inputs share stay shared."""

    def __init__(self, draws: Mapping[str, _DrawParameter], changed: Position) -> None:
        self._sizes = {name.removesuffix(": rows"): int(value) for name, value in changed.items() if name not in draws}
        self._values = {draws[name]: value for name, value in changed.items() if name in draws}
        self._images: dict[Node, Node] = {}
        self._seen: set[Node] = set()

    def of(self, prior: Mapping[str, Any]) -> dict[str, Any]:
        """Return the prior with the changes."""
        return {
            name: self._table(name, value) if isinstance(value, Records) else self._moved(value, name, name)
            for name, value in prior.items()
        }

    def _table(self, name: str, records: Records) -> Records:
        size: Any = self._sizes.get(name, records.size)
        if isinstance(size, RandomVariable):
            size = self._moved(size, name, f"{name} (rows)")
        template = records.template
        if template is not None:
            return records.replaced(size, self._row(name, template))
        rows: list[Row] = []

        def row(position: int) -> Row:
            while len(rows) <= position:  # in this order: what rows share is met in the first of them
                rows.append(self._row(name, records.row_at(len(rows))))
            return rows[position]

        return records.replaced(size, row)

    def _row(self, name: str, row: Row) -> Row:
        cells = [self._moved(cell, name, f"{name}.{column}") for column, cell in zip(row.keys(), row, strict=True)]
        made: Row = row_maker(tuple(row.keys()))(cells)
        return made

    def _moved(self, value: Any, source: str, cell: str) -> Any:
        structure, leaves = flatten(value)
        nodes = [leaf.node for leaf in leaves if isinstance(leaf, RandomVariable)]
        for node in ancestors(nodes):
            if node not in self._seen:
                self._seen.add(node)
                self._move(node, source, cell)
        images = iter(substitute(nodes, self._images))
        return structure.build(
            [RandomVariable(next(images)) if isinstance(leaf, RandomVariable) else leaf for leaf in leaves]
        )

    def _move(self, node: Node, source: str, cell: str) -> None:
        """Make a draw anew if one of its parameters is moved, or depends on one that was."""
        own = {
            place.parameter: self._values[place] for place in _constants(node, source, cell) if place in self._values
        }
        if own:
            family = family_of(node)
            parents = substitute(node.parents, self._images)
            for position, name in enumerate(family.names):
                if name in own:
                    old = node.parents[position]
                    parents[position] = constant(np.asarray(own[name]).reshape(old.shape))  # 2 may become 1.5
            family.check_known([_plain(parent) for parent in parents], len(node.shape))
            self._images[node] = draw_node(family, tuple(parents), node.shape)
        elif isinstance(node.operation, Draw) and any(parent in self._images for parent in ancestors(node.parents)):
            self._images[node] = draw_node(family_of(node), tuple(substitute(node.parents, self._images)), node.shape)


def _plain(node: Node) -> Any:
    return node.operation.array if isinstance(node.operation, ConstantValue) else None


def _of_observation(seen: Observation | None, name: str = "seen") -> Iterator[Parameter]:
    """Yield the numbers of an observation."""
    match seen:
        case Near(value=value, within=within):
            yield _location(f"{name}: value", value, 10 * within)
            yield Parameter(f"{name}: within", within / 100, within * 1000, within, "log", group="seen")
        case Noisy(value=value, sd=sd):
            yield _location(f"{name}: value", value, 4 * sd)
            yield Parameter(f"{name}: sd", sd / 50, sd * 50, sd, "log", group="seen")
        case Between(low=low, high=high):
            width = high - low if math.isfinite(high - low) else 0.0
            for end, number in (("low", low), ("high", high)):
                if math.isfinite(number):
                    yield _location(f"{name}: {end}", number, 4 * width)
        case Equals(value=int() | float() as value) if not isinstance(value, bool) and math.isfinite(value):
            location = _location(f"{name}: value", value, 0.0)
            yield replace(location, integer=isinstance(value, int))
        case Structured(parts=parts):
            for key, part in parts.items():
                yield from _of_observation(part, f"{name}[{key!r}]")


def _location(name: str, value: float, width: float) -> Parameter:
    reach = max(width, abs(value)) or 1.0
    if isinstance(value, int):
        reach = max(10, round(reach))
    return Parameter(name, value - reach, value + reach, value, group="seen")


def _moved_observation(seen: Observation | None, name: str, changed: Position) -> Any:
    fields = {
        field: changed[f"{name}: {field}"]
        for field in ("value", "within", "sd", "low", "high")
        if f"{name}: {field}" in changed
    }
    if fields and isinstance(seen, Near):
        return near(fields.get("value", seen.value), within=fields.get("within", seen.within))
    if fields and isinstance(seen, Noisy):
        return noisy(fields.get("value", seen.value), sd=fields.get("sd", seen.sd))
    if fields and isinstance(seen, Between):
        return between(fields.get("low", seen.low), fields.get("high", seen.high))
    if isinstance(seen, Structured):
        parts = {key: _moved_observation(part, f"{name}[{key!r}]", changed) for key, part in seen.parts.items()}
        return replace(seen, parts=parts)
    return replace(seen, **fields) if fields and seen is not None else seen  # type: ignore[type-var]


def _of_program(attack: Attack) -> Iterator[Parameter]:
    """Yield the numbers that mechanisms were made with, the outermost first, and numeric defaults of the program."""
    program: Any = attack.question.program
    taken: set[str] = set()
    while isinstance(program, Mechanism) and program.making is not None:
        for name, value in _numbers(program.making).items():
            label = f"{program.words}: {name}"
            if label not in taken:
                taken.add(label)
                yield _of_mechanism(label, name, value)
        program = protected(program)
    yield from _defaults(program, attack.question.prior)


def protected(mechanism: Mechanism) -> Any:
    """Return what a mechanism was made of: the first argument of its constructor, or its program."""
    if mechanism.making is None:
        return mechanism.program
    bound = inspect.signature(mechanism.making.func).bind(*mechanism.making.args, **mechanism.making.keywords)
    return next(iter(bound.arguments.values()))


def _numbers(making: "functools.partial[Any]") -> dict[str, float]:
    """Return the numeric arguments that a mechanism was made with."""
    bound = inspect.signature(making.func).bind(*making.args, **making.keywords)
    return {name: value for name, value in bound.arguments.items() if is_number(value) and math.isfinite(value)}


def _of_mechanism(label: str, name: str, value: float) -> Parameter:
    if name in EPSILONS and value > 0:
        return Parameter(label, value / 100, value * 100, value, "log", group="mechanism")
    if name in ("rate", "truth", "p"):
        return Parameter(label, 0.5 if name == "truth" else 0.0, 1.0, value, group="mechanism")
    reach = max(abs(value), 1)
    if isinstance(value, int):
        return Parameter(label, max(0, value - 4 * reach), value + 4 * reach, value, integer=True, group="mechanism")
    return Parameter(label, value - 2 * reach, value + 2 * reach, value, group="mechanism")


def _defaults(program: Any, prior: Mapping[str, Any]) -> Iterator[Parameter]:
    if not isinstance(program, FunctionType):
        return
    for name, one in inspect.signature(program).parameters.items():
        if name not in prior and is_number(one.default) and not isinstance(one.default, bool):
            value, integer = one.default, isinstance(one.default, int)
            reach = max(abs(value), 1 if integer else 1e-9)
            low = max(0, value - 4 * reach) if value >= 0 else value - 4 * reach
            yield Parameter(f"program: {name}", low, value + 4 * reach, value, integer=integer, group="program")


def _moved_program(program: Any, changed: Position) -> Any:
    """Return a program made anew with other numbers, with those that it protects."""
    if isinstance(program, Mechanism) and program.making is not None:
        making = program.making
        bound = inspect.signature(making.func).bind(*making.args, **making.keywords)
        first = next(iter(bound.arguments))
        bound.arguments[first] = _moved_program(bound.arguments[first], changed)
        for name in _numbers(making):
            label = f"{program.words}: {name}"
            if label in changed:
                bound.arguments[name] = changed[label]
        return making.func(*bound.args, **bound.kwargs)
    if not isinstance(program, FunctionType):
        return program
    return _with_defaults(program, {name.removeprefix("program: "): value for name, value in changed.items()})


def _with_defaults(program: FunctionType, values: Position) -> FunctionType:
    """Return a copy of a function with other defaults."""
    optional = [one for one in inspect.signature(program).parameters.values() if one.default is not one.empty]
    positional = tuple(
        values.get(one.name, one.default) for one in optional if one.kind is not inspect.Parameter.KEYWORD_ONLY
    )
    made = FunctionType(program.__code__, program.__globals__, program.__name__, positional, program.__closure__)
    functools.update_wrapper(made, program)
    del made.__dict__["__wrapped__"]
    named = {name: values.get(name, value) for name, value in (program.__kwdefaults__ or {}).items()}
    made.__kwdefaults__ = named or None
    return made
