"""The observations: equals, between, near, such_that, noisy, those of parts of an output, and facts about inputs."""

import dataclasses
import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from privug.arguments import is_truth, plain_number, shown
from privug.digits import full_text, how_many
from privug.errors import ObservationError
from privug.escaping import inert
from privug.model.integers import INTEGER_LIMIT, bound_beside
from privug.model.merging import analyse, keeps_bits, tolerance, within_rounding
from privug.model.node import Kind, Node
from privug.model.operations import constant
from privug.model.sparse import SparseDict, SparseFrame, SparseList, values_in
from privug.model.structure import flatten
from privug.model.table import Row
from privug.model.text import FormattedText, read
from privug.model.variable import RandomVariable
from privug.observation.likelihood import (
    ROUNDING,
    CloseTo,
    HasParts,
    Likelihood,
    ObjectBetween,
    ObjectEquals,
    PredicateAnswers,
    component,
    equal_values,
    is_opaque,
    may_be_missing,
    numbers,
    of_absent,
    of_lacking,
    of_order,
    of_present,
)
from privug.prior.continuous import NORMAL
from privug.prior.family import LogDensity
from privug.program import lifting
from privug.program.outputs import settled
from privug.runtime.pickling import Portable

MOST_WAYS = 1_000
"""In how many ways what was seen may be found among the items that there may be."""

Matching = Callable[[Any, Any], Likelihood]
"""What it says of an item that something was seen of it."""


def of_items(items: SparseList, seen: Sequence[Any], matching: Matching) -> Likelihood:
    """Return what it says that these items were seen, in their order, and no others."""
    ways = []
    for way in _ways(items, list(seen), matching):
        ways.append(way)
        if len(ways) > MOST_WAYS:
            raise ObservationError(
                "what was seen may be any of very many rows; have the program publish what tells its rows apart"
            )
    if not ways:
        return Likelihood(impossible=f"the output never is such a list of {len(seen)}")
    return ways[0] if len(ways) == 1 else _any_of(ways)


def _ways(items: list[Any], seen: list[Any], matching: Matching) -> Iterator[Likelihood]:
    """Yield the ways in which items are those that were seen: each is the next one that was, or is not there."""
    if len(seen) > len(items):
        return
    if not items:
        yield Likelihood()
        return
    if seen:
        found = _there(items[0]) & matching(items[0], seen[0])
        if found.impossible is None:
            yield from (found & rest for rest in _ways(items[1:], seen[1:], matching))
    lacking = of_lacking(values_in(items[0])[0])
    if lacking.impossible is None:
        yield from (lacking & rest for rest in _ways(items[1:], seen, matching))


def _there(item: Any) -> Likelihood:
    value = values_in(item)[0]
    absent = isinstance(value, RandomVariable) and SparseDict.is_absent(value)
    return of_present(value, lambda _: Likelihood()) if absent else Likelihood()


def _any_of(ways: list[Likelihood]) -> Likelihood:
    if any(way.points or way.log_weights for way in ways):
        raise ObservationError(
            "what was seen may be one or another of several rows with continuous values; have the program publish what "
            "tells its rows apart"
        )
    joined = [reduce(lambda one, other: one & other, map(RandomVariable, way.conditions)) for way in ways]
    return Likelihood(conditions=(reduce(lambda one, other: one | other, joined).node,))


def of_frame(
    frame: SparseFrame, seen: Mapping[str, Sequence[Any]], matching: Matching, value: Callable[[Any], Any] = lambda x: x
) -> Likelihood:
    """Return what it says that these columns were seen, in rows in their order, or in any if that means nothing.

    `value` gives the plain value that was seen, if that is known, by which rows are told apart.
    """
    names = [name for name in frame if name in seen]
    if len({len(seen[name]) for name in names}) > 1:
        return Likelihood(impossible="the columns of the output have as many rows as each other")
    wanted = list(zip(*(seen[name] for name in names), strict=True))
    if frame.order is not None:
        known = frame.order.columns
        if not set(known) <= set(names):
            which = f"rows that are equal in {', '.join(frame.order.keys)}" if frame.order.keys else "the rows"
            raise ObservationError(f"{which} have no order: say what was seen of {', '.join(known)}, too")
        told = [tuple(value(part) for part in row) for row in zip(*(seen[name] for name in known), strict=True)]
        wanted = [wanted[row] for row in frame.order.order(told)]
    rows = SparseList(zip(*(frame[name] for name in names), strict=True))

    def of_row(row: Any, parts: Any) -> Likelihood:
        return reduce(lambda one, other: one & other, map(matching, row, parts))

    return of_items(rows, wanted, of_row)


def of_whole_frame(frame: SparseFrame, seen: Any, matching: Matching) -> Likelihood:
    """Return what it says that just these columns were seen: those that have no rows may be left out."""
    if not isinstance(seen, Mapping) or not frame.keys() - frame.optional <= seen.keys() <= frame.keys():
        return Likelihood(impossible=f"the output is a frame of the columns {list(frame)}, not {shown(seen)}")
    if not all(isinstance(column, list | tuple) for column in seen.values()):
        return Likelihood(impossible=f"the columns of the output are lists, not {shown(seen)}")
    lacking = Likelihood()
    for name in frame.keys() - seen.keys():
        for value in frame[name]:
            lacking = lacking & of_lacking(value)
    in_order = Likelihood() if frame.is_open else of_order(frame, list(seen))
    return lacking & of_frame(frame, seen, matching) & in_order


class Observation(Portable, ABC):
    """What the attacker sees of the output.

    >>> import privug as pv
    >>> isinstance(pv.near(55.3, within=0.05), pv.Observation)
    True
    """

    @abstractmethod
    def likelihood(self, output: Any) -> Likelihood:
        """Return the likelihood of this observation, given the lifted program's output."""


@dataclass(frozen=True)
class Equals(Observation):
    """The output, or this part of it, is exactly this value."""

    value: Any
    distance: Callable[[Any], Any] | None = None

    def likelihood(self, output: Any) -> Likelihood:
        analyse(output)
        return _measured(_equals(output, self.value), output, self.distance, "equals")

    def __str__(self) -> str:
        plain = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        return f"the output is {full_text(self.value) if plain else shown(self.value)}"


def _equals(output: Any, value: Any) -> Likelihood:
    if may_be_missing(output):
        absent = value == output.node.operation.otherwise
        return of_absent(output) if absent else of_present(output, lambda number: _equals(number, value))
    if is_opaque(output):
        rounding = 0.0 if keeps_bits() else ROUNDING
        return Likelihood(conditions=(Node(ObjectEquals(value, rounding), (output.node,), (), np.dtype(bool)),))
    if isinstance(output, RandomVariable):
        return _leaf_equals(output, value)
    if isinstance(output, FormattedText):
        fields = read(output.template, value) if isinstance(value, str) else None
        if fields is None:
            return Likelihood(impossible=f"the output is a text that never reads {shown(value)}")
        return all_of(_equals(part, wanted) for part, wanted in zip(output.values, fields, strict=True))
    if isinstance(output, SparseFrame):
        return of_whole_frame(output, value, _equals)
    if isinstance(output, SparseList) and isinstance(value, list | tuple):
        return of_items(output, value, _equals)
    if isinstance(output, list | tuple | np.ndarray):
        if not isinstance(value, list | tuple | np.ndarray):
            return Likelihood(
                impossible=f"the output is a sequence of {how_many(len(output), 'part')}, not {shown(value)}"
            )
        if len(output) != len(value):
            return Likelihood(
                impossible=f"the output has {how_many(len(output), 'part')}, but the observed value has {len(value)}"
            )
        return all_of(_equals(part, wanted) for part, wanted in zip(output, value, strict=True))
    if isinstance(output, SparseDict) and isinstance(value, Mapping) and value.keys() <= output.keys():
        parts = (_equals(part, value[key]) if key in value else of_lacking(part) for key, part in output.items())
        return all_of(parts) & of_order(output, list(value))
    if isinstance(output, Mapping):
        if not isinstance(value, Mapping) or output.keys() != value.keys():
            return Likelihood(impossible=f"the output is a dict with the keys {list(output)}, not {shown(value)}")
        return all_of(_equals(output[key], value[key]) for key in output) & of_order(output, list(value))
    if dataclasses.is_dataclass(output) and type(output) is type(value):
        names = [field.name for field in dataclasses.fields(output)]
        return all_of(_equals(getattr(output, name), getattr(value, name)) for name in names)
    if equal_values(output, value, rounding=0.0 if keeps_bits() else ROUNDING):
        return Likelihood()
    return Likelihood(impossible=f"the output is always {shown(output)}, never {shown(value)}")


def _measured(likelihood: Likelihood, output: Any, distance: Callable[[Any], Any] | None, what: str) -> Likelihood:
    """Join to conditions the distance from them that the user gave."""
    if distance is None or not likelihood.conditions:
        return likelihood
    label = f"the distance of {what}"
    measured = lifting.apply(distance, [output], label=label).output
    if isinstance(measured, bool | int | float):
        raise ObservationError(f"{what}: distance is {shown(measured)} for every output, so it leads nowhere")
    if not isinstance(measured, RandomVariable) or measured.shape or measured.node.levels is not None:
        raise ObservationError(f"{what}: distance must return one number, zero or more, for an output")
    together = reduce(lambda one, other: one & other, map(RandomVariable, likelihood.conditions)).node
    return replace(likelihood, conditions=(together,), distances=((together, numbers(measured).node),))


def _leaf_equals(output: RandomVariable, value: Any) -> Likelihood:
    node = output.node
    if node.shape:
        array = np.asarray(value)
        if array.shape != node.shape:
            return Likelihood(impossible=f"the output has shape {node.shape}, the observed value {array.shape}")
        return all_of(_equals(part, wanted) for part, wanted in zip(output, array.tolist(), strict=True))
    if isinstance(value, np.generic):
        value = value.item()
    if node.levels is not None:
        if value not in node.levels:
            return Likelihood(impossible=f"the output is one of {_listed(node.levels)}, never {shown(value)}")
        return Likelihood(conditions=((output == value).node,))
    if not isinstance(value, int | float):
        return Likelihood(impossible=f"the output is a number, never {shown(value)}")
    if isinstance(value, int) and abs(value) > INTEGER_LIMIT:
        return Likelihood(impossible=f"the output is a number of 64 bits, never {shown(value)}")
    if math.isinf(value) and node.kind is Kind.CONTINUOUS:
        return Likelihood(impossible=f"the output has a density, and is never {value}")
    if math.isinf(value):  # nothing is near it
        return Likelihood(conditions=((output == value).node,))
    if node.dtype.kind == "f" and node.kind is not Kind.DISCRETE:
        return Likelihood(points=((node, float(value)),))
    if node.dtype.kind == "f":
        return Likelihood(conditions=(close(node, float(value)),))
    return Likelihood(conditions=((output == value).node,))


def close(node: Node, value: float) -> Node:
    """Make the condition that a float equals a value up to rounding."""
    return Node(CloseTo(value, tolerance(node, value)), (node,), (), np.dtype(bool))


def _listed(levels: Sequence[Any]) -> str:
    first = ", ".join(map(shown, levels[:8]))
    return first if len(levels) <= 8 else f"{first}, ..."


def all_of(parts: Iterable[Likelihood]) -> Likelihood:
    """Return what several likelihoods say together."""
    total = Likelihood()
    for part in parts:
        total = total & part
    return total


@dataclass(frozen=True)
class Between(Observation):
    """The output lies between two numbers, both included."""

    low: float
    high: float

    def likelihood(self, output: Any) -> Likelihood:
        if isinstance(output, int | float):
            if self.low <= output <= self.high:
                return Likelihood()
            return Likelihood(impossible=f"the output is always {shown(output)}")
        if _is_withheld(output):
            return Likelihood(impossible=f"the output is always {shown(output)}")
        if may_be_missing(output):
            return of_present(output, self.likelihood)
        if isinstance(output, FormattedText):
            return Likelihood(impossible="the output is a text, and no number")
        value = numbers(output)
        if is_opaque(output):
            inside = ObjectBetween(self.low, self.high, (_slack(value, self.low), _slack(value, self.high)))
            return Likelihood(conditions=(Node(inside, (output.node,), (), np.dtype(bool)),))
        within = (value >= self.low - _slack(value, self.low)) & (value <= self.high + _slack(value, self.high))
        return Likelihood(conditions=((within.all() if within.ndim else within).node,))

    def __str__(self) -> str:
        return f"the output is between {full_text(self.low)} and {full_text(self.high)}"


def _is_withheld(output: Any) -> bool:
    """Return whether there is None or a text in the place of a release, as for tables of too few rows."""
    return output is None or isinstance(output, str)


def _slack(output: RandomVariable, bound: float) -> float:
    """Return how far rounding may have moved an output beyond a bound; what has a density need not care."""
    node = output.node
    if node.dtype.kind != "f" or node.kind is Kind.CONTINUOUS or math.isinf(bound) or keeps_bits():
        return 0  # an integer, which added to a bound leaves it as it is
    return within_rounding(node, bound)


@dataclass(frozen=True)
class Near(Observation):
    """The output lies within a distance of a number."""

    value: float
    within: float

    def likelihood(self, output: Any) -> Likelihood:
        low, high = (bound_beside(self.value, self.within, upward) for upward in (False, True))
        return Between(low, high).likelihood(output)

    def __str__(self) -> str:
        return f"the output is {full_text(self.value)}, give or take {full_text(self.within)}"


@dataclass(frozen=True)
class SuchThat(Observation):
    """The output satisfies a predicate."""

    predicate: Callable[[Any], Any]
    distance: Callable[[Any], Any] | None = None

    def likelihood(self, output: Any) -> Likelihood:
        return _measured(self._judged(output), output, self.distance, "such_that")

    def _judged(self, output: Any) -> Likelihood:
        verdict = lifting.apply(self.predicate, [output], label="the predicate of such_that").output
        return judged(verdict, "such_that: the predicate", "the predicate is false for every output")

    def __str__(self) -> str:
        name = getattr(self.predicate, "__name__", "a predicate")
        return "the output satisfies a given predicate" if name == "<lambda>" else f"the output satisfies {inert(name)}"


def judged(verdict: Any, what: str, never: str) -> Likelihood:
    """Return what the answer of a lifted predicate says: samples for which it is false are out."""
    if is_truth(verdict):
        return Likelihood() if verdict else Likelihood(impossible=never)
    if is_opaque(verdict):
        return Likelihood(conditions=(Node(PredicateAnswers(what), (verdict.node,), (), np.dtype(bool)),))
    single = isinstance(verdict, RandomVariable) and not verdict.shape and verdict.node.levels is None
    if not single or verdict.node.dtype.kind not in "bi":
        raise ObservationError(f"{what} must return True or False, not {shown(verdict)}")
    return Likelihood(conditions=((verdict != 0).node,))


@dataclass(frozen=True)
class Noisy(Observation):
    """The output was seen through normal noise."""

    value: float
    sd: float

    def likelihood(self, output: Any) -> Likelihood:
        if isinstance(output, int | float):
            return Likelihood(log_weights=(_normal_log_density(constant(float(output)), self),))
        if _is_withheld(output):
            return Likelihood(impossible=f"the output is always {shown(output)}")
        if may_be_missing(output):
            return of_present(output, self.likelihood)
        value = numbers(output, otherwise=math.inf)
        weight = RandomVariable(_normal_log_density(value.node, self))
        return Likelihood(log_weights=((weight.sum() if weight.ndim else weight).node,))

    def __str__(self) -> str:
        return f"the output was seen as {full_text(self.value)} through normal noise of sd {full_text(self.sd)}"


def _normal_log_density(node: Node, seen: Noisy) -> Node:
    parents = (constant(seen.value), node, constant(seen.sd))
    return Node(LogDensity(NORMAL), parents, node.shape, np.dtype(np.float64), kind=Kind.MIXED)


def _number(name: str, argument: str, value: Any) -> Any:
    """Return a number of any kind as Python's own: whole ones stay whole, for they may lie beyond 2**53."""
    number = plain_number(value)
    if isinstance(value, bool | np.bool_) or not isinstance(number, int | float):
        raise ObservationError(f"{name}: {argument} must be a number, not {shown(value)}")
    if isinstance(number, int) and abs(number) > INTEGER_LIMIT:
        raise ObservationError(
            f"{name}: {argument} must fit into 64 bits, which {shown(number)} does not; write a float"
        )
    if math.isnan(number) or (math.isinf(number) and name != "between"):
        raise ObservationError(f"{name}: {argument} must be a finite number, not {number!r}")
    return number


def equals(value: Any, *, distance: Callable[[Any], Any] | None = None) -> Observation:
    """The attacker sees exactly this output: a number, a string, a tuple, a table, ...

    A value that the output takes with positive probability conditions on that event; where the
    output has a density instead, samples are weighted by it. A dict, series or frame was seen in this order; a dict of
    observations, `{"a": pv.equals(1)}`, says nothing about the order.

    `distance` is for rare observations: a function that says how far an output is from this value, zero or more. The
    engine `rare` looks for outputs closer and closer. By default numbers are as far as they differ, and tuples, lists,
    tables and dicts as many cells as differ.

    >>> import privug as pv
    >>> dice = pv.Attack(lambda a, b: a + b, {"a": pv.DiscreteUniform(1, 6), "b": pv.DiscreteUniform(1, 6)}, secret="a")
    >>> dice.run(pv.equals(11)).posterior.mean().value
    5.5
    """
    _check_distance("equals", distance)
    if isinstance(value, Observation | RandomVariable):
        raise ObservationError(f"equals: a plain value is needed, not {shown(value)}")
    plain = settled(value)
    if any(isinstance(part, float) and math.isnan(part) for part in flatten(plain)[1]):
        raise ObservationError(
            "equals: the value must not be NaN, by which a program has failed; let it return None, and observe that"
        )
    return Equals(plain, distance)


def _check_distance(name: str, distance: Any) -> None:
    if distance is not None and not callable(distance):
        raise ObservationError(f"{name}: distance must be a function from an output to a number, not {shown(distance)}")


def between(low: float, high: float) -> Observation:
    """The attacker sees that the output lies between `low` and `high`, both included.

    >>> import privug as pv
    >>> print(pv.between(18, 30))
    the output is between 18 and 30
    >>> attack = pv.Attack(lambda age: age, prior={"age": pv.Uniform(0, 100)}, secret="age")
    >>> round(attack.run(pv.between(18, 30)).posterior.mean().value, 4)
    24.0
    """
    low, high = _number("between", "low", low), _number("between", "high", high)
    if low > high:
        raise ObservationError(f"between: low must not be above high, but {shown(low)} > {shown(high)}")
    return Between(low, high)


def near(value: float, *unnamed: float, within: float | None = None) -> Observation:
    """The attacker sees a rounded output: it lies within the given distance of `value`.

    >>> import privug as pv
    >>> print(pv.near(55.3, within=0.05))
    the output is 55.3, give or take 0.05
    >>> attack = pv.Attack(lambda age: age, prior={"age": pv.Uniform(0, 100)}, secret="age")
    >>> round(attack.run(pv.near(55.3, within=0.05)).diagnostics.evidence.value, 4)
    0.001
    """
    if unnamed or within is None:
        raise ObservationError(f"near: give the distance by name: pv.near({value}, within=...)")
    value, within = _number("near", "value", value), _number("near", "within", within)
    if within <= 0:
        raise ObservationError(
            f"near: within must be positive, not {within}; for an exact value write pv.equals({value})"
        )
    return Near(value, within)


def such_that(predicate: Callable[[Any], Any], *, distance: Callable[[Any], Any] | None = None) -> Observation:
    """The attacker sees that the output satisfies a predicate.

    `distance` is for rare observations: how far an output is from satisfying it, zero or more. Without it, the engine
    `rare` reads it off the comparisons in a predicate that can be traced.

    >>> import privug as pv
    >>> dice = pv.Attack(lambda a, b: (a, b), {"a": pv.DiscreteUniform(1, 6), "b": pv.DiscreteUniform(1, 6)}, "a")
    >>> doubles = dice.run(pv.such_that(lambda pair: pair[0] == pair[1]))
    >>> round(doubles.diagnostics.evidence.value, 4)
    0.1667
    """
    _check_distance("such_that", distance)
    if not callable(predicate):
        raise ObservationError(f"such_that: a function of the output is needed, not {shown(predicate)}")
    return SuchThat(predicate, distance)


def noisy(value: float, *unnamed: float, sd: float | None = None) -> Observation:
    """The attacker sees the output through normal noise of the given standard deviation.

    >>> import privug as pv
    >>> weight = pv.Attack(lambda kg: kg, prior={"kg": pv.Normal(70, sd=10)}, secret="kg")
    >>> round(weight.run(pv.noisy(90, sd=10)).posterior.mean().value, 4)
    80.0
    """
    if unnamed or sd is None:
        raise ObservationError(f"noisy: give the deviation by name: pv.noisy({value}, sd=...)")
    value, sd = float(_number("noisy", "value", value)), float(_number("noisy", "sd", sd))
    if sd <= 0:
        raise ObservationError(f"noisy: sd must be positive, not {sd}")
    return Noisy(value, sd)


# those who ask for parts find it here


OWN = "the output's"
ORDINALS = ("first", "second", "third", "fourth", "fifth")
MOST_TOLD = 12


@dataclass(frozen=True)
class Structured(Observation):
    """Observations of parts of a structured output: by key, or by position. None means not seen."""

    parts: Mapping[Any, Observation | None]
    length: int | None = None

    def likelihood(self, output: Any) -> Likelihood:
        if isinstance(output, SparseList) and self.length is not None:
            return of_items(output, list(self.parts.values()), _seen_of)
        if isinstance(output, SparseFrame):
            return self._of_frame(output)
        if _is_withheld(output):
            return Likelihood(impossible=f"the output is always {shown(output)}")
        seen = Likelihood()
        if self.length is not None and is_opaque(output):
            seen = Likelihood(conditions=(Node(HasParts(self.length), (output.node,), (), np.dtype(bool)),))
        elif self.length is not None and (size := _parts_of(output)) != self.length:
            what = "is a single value" if size is None else f"has {how_many(size, 'part')}"
            hint = "; write pv.equals(...) for a single value" if size is None else ""
            return Likelihood(impossible=f"the output {what}, but a list of {self.length} was observed{hint}")
        looked_at = ((key, part) for key, part in self.parts.items() if part is not None)
        return seen & all_of(part.likelihood(self._part(output, key)) for key, part in looked_at)

    def _of_frame(self, output: SparseFrame) -> Likelihood:
        """Return what was seen of some columns of a frame, each a list of what was seen of its rows."""
        columns: dict[str, list[Observation | None]] = {}
        for name, part in self.parts.items():
            if name not in output:
                raise ObservationError(f"the observation names part {name!r}, but the output has {list(output)}")
            if isinstance(part, Equals) and isinstance(part.value, list | tuple):
                columns[name] = [equals(value) for value in part.value]
            elif isinstance(part, Structured) and part.length is not None:
                columns[name] = list(part.parts.values())
            elif part is not None:
                raise ObservationError(f"what was seen of the column {name!r} must be a list, one entry for each row")
        return of_frame(output, columns, _seen_of, _told) if columns else Likelihood()

    def _part(self, output: Any, key: Any) -> Any:
        if is_opaque(output):
            return component(output, key)
        try:
            return output[key]
        except (KeyError, IndexError, TypeError):
            known = list(output.keys()) if isinstance(output, Mapping | Row) else type(output).__name__
            raise ObservationError(f"the observation names part {key!r}, but the output has {known}") from None

    def __str__(self) -> str:
        told = [
            str(part).replace("the output", f"{'its' if place else OWN} {', '.join(path)}", 1)
            for place, (path, part) in enumerate(self._single_parts(()))
        ]
        more = f"; and {how_many(len(told) - MOST_TOLD, 'part')} more" if len(told) > MOST_TOLD else ""
        return "; ".join(told[:MOST_TOLD]) + more

    def _single_parts(self, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Observation]]:
        """Yield what was seen of each single part, with the way to it in words."""
        for key, part in self.parts.items():
            name = _entry(key) if self.length is None else _ordinal(key)
            if isinstance(part, Structured):
                yield from part._single_parts((*path, name))
            elif part is not None:
                yield (*path, name), part


def _entry(key: Any) -> str:
    return shown(key) if isinstance(key, str) else f"entry {shown(key)}"


def _ordinal(position: int) -> str:
    """Return the position of a part in words, counted from zero as lists are."""
    return f"{ORDINALS[position]} part" if position < len(ORDINALS) else f"part at position {position}"


def _seen_of(item: Any, part: Observation | None) -> Likelihood:
    return Likelihood() if part is None else part.likelihood(item)


def _told(part: Observation | None) -> Any:
    if isinstance(part, Equals):
        return part.value
    raise ObservationError(
        "rows that polars leaves in any order are told apart by their values: write those as values, "
        "pv.equals(None) for a missing one, or sort by what tells the rows apart"
    )


def _parts_of(output: Any) -> int | None:
    try:
        return len(output)
    except TypeError:
        return None


def as_observation(observe: Any) -> Observation:
    """Return an observation from what the user wrote: an observation, or a dict or list of observations."""
    if isinstance(observe, Observation):
        return observe
    if isinstance(observe, Mapping) and observe:
        return Structured({key: equals(None) if part is None else _part(part) for key, part in observe.items()})
    if isinstance(observe, list | tuple) and observe:
        return Structured({position: _part(part) for position, part in enumerate(observe)}, len(observe))
    if isinstance(observe, list | tuple):  # nothing was published, as of a query whose groups are all suppressed
        return equals(observe)
    raise ObservationError(
        f"observe must be an observation, or a dict or list of them, not {shown(observe)}; "
        f"write pv.equals({shown(observe)}) for an exact value"
    )


def _part(part: Any) -> Observation | None:
    if part is None or isinstance(part, Observation):
        return part
    return as_observation(part) if isinstance(part, Mapping | list | tuple) else equals(part)


class SeenAnswer(Portable):
    """The fact that another program gave this value on the same inputs, which it does with some probability."""

    def __init__(self, program: Callable[..., Any], value: Any) -> None:
        functools.update_wrapper(self, program)
        self.program = program
        self.value = value

    def __call__(self, *inputs: Any) -> bool:
        return equal_values(self.program(*inputs), self.value)


class StatedFact(Portable):
    """A fact in words, and the predicate on the inputs that says whether it is true."""

    def __init__(self, words: str, predicate: Callable[..., Any]) -> None:
        self.words = words
        self.predicate = predicate

    def __call__(self, *inputs: Any) -> Any:
        return self.predicate(*inputs)


def looked_at(fact: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of the inputs that a fact is about: a predicate is about itself."""
    match fact:
        case SeenAnswer():
            return fact.program
        case StatedFact():
            return fact.predicate
    return fact


def words_of(fact: Callable[..., Any]) -> str:
    """Return a fact in words: as it was given, or the name of the predicate; empty if it has none."""
    if isinstance(fact, StatedFact):
        return fact.words
    name = str(getattr(fact, "__name__", "<lambda>"))
    return "" if name == "<lambda>" else name.replace("_", " ")


def told_by(fact: Callable[..., Any], found: Any) -> Likelihood:
    """Return what a fact says, given what it looks at, lifted."""
    if not isinstance(fact, SeenAnswer):
        return judged(found, "assume: a fact", "a fact is false for every input")
    likelihood = Equals(fact.value).likelihood(found)
    if likelihood.points:
        raise ObservationError("the exact value of a continuous output has probability zero: it is no fact")
    return likelihood
