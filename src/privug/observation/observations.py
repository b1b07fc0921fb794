"""The observations: equals, between, near, such_that, noisy."""

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from privug.arguments import is_truth, plain_number, shown
from privug.digits import full_text, how_many
from privug.errors import ObservationError
from privug.escaping import inert
from privug.model.merging import analyse, keeps_bits, tolerance, within_rounding
from privug.model.node import Kind, Node
from privug.model.operations import constant
from privug.model.overflow import INTEGER_LIMIT
from privug.model.pickling import Portable
from privug.model.sparse import SparseDict, SparseFrame, SparseList
from privug.model.structure import flatten
from privug.model.text import FormattedText, read
from privug.model.variable import RandomVariable
from privug.model.whole_numbers import bound_beside
from privug.observation.likelihood import (
    ROUNDING,
    CloseTo,
    Likelihood,
    ObjectBetween,
    ObjectEquals,
    Verdict,
    equal_values,
    is_opaque,
    may_be_missing,
    numbers,
    of_absent,
    of_lacking,
    of_order,
    of_present,
)
from privug.observation.rows import of_items, of_whole_frame
from privug.prior.continuous import NORMAL
from privug.prior.family import LogDensity
from privug.program import lifting
from privug.program.outputs import settled


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


def _slack(output: RandomVariable, bound: float) -> float:
    """Return how far rounding may have moved an output beyond a bound; what has a density need not care."""
    node = output.node
    if node.dtype.kind != "f" or node.kind is Kind.CONTINUOUS or math.isinf(bound) or keeps_bits():
        return 0  # a whole number, which added to a bound leaves it as it is
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
        return Likelihood(conditions=(Node(Verdict(what), (verdict.node,), (), np.dtype(bool)),))
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
