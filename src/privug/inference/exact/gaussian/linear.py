"""Affine forms: a number as a constant plus a weighted sum of independent standard normal variables.

The weights are found by going back from the number through the operations that are linear, once; whole arrays
stay whole. A normal variable whose mean is itself affine in others passes its weight on to them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from privug.model.node import Array, ConstantValue, Node, Shape, ancestors
from privug.model.numpy_functions import Cast
from privug.model.operations import ArrayFunction, Elementwise, Index, Stack
from privug.model.plan import Plan
from privug.model.traits.traits import Role, Scope, Traits
from privug.prior.family import Draw, describe
from privug.prior.scalar import ScalarFamily

Weight = Any  # a float for a single number, else an array of the node's shape


class NotAffine(Exception):
    """A number is not an affine function of normal variables; the message says why."""


@dataclass(frozen=True)
class Form:
    """A constant, and the weights of the standard normal variables behind each root.

    `nodes` and `numbers` are how many nodes there are behind it, and how many numbers in them; `others` the weights
    of roots that are not normal.
    """

    constant: float
    weights: dict[Node, Weight]
    nodes: int
    numbers: int
    others: dict[Node, Weight] = field(default_factory=dict)


def affine_form(node: Node, *, any_family: bool = False) -> Form:
    """Return the affine form of a single number, or raise NotAffine.

    With `any_family`, roots with known parameters may be of any family, not only normal.
    """
    if node.shape != () or node.levels is not None or node.dtype.kind not in "bif":
        raise NotAffine("it is not a single number")
    order = ancestors([node])
    back = _Backward(order, any_family)
    back.reach(node, 1.0)
    for current in reversed(order):
        weight = back.weights.pop(current, None)
        if weight is not None:
            back.pass_on(current, weight)
    if not np.all(np.isfinite(back.constants)):
        raise NotAffine("some numbers in the program are not finite")
    numbers = sum(math.prod(node.shape) for node in order)
    return Form(math.fsum(back.constants), back.normals, len(order), numbers, back.others)


class _Backward:
    """The weights of the nodes reached so far, on the way back from a number to what it is made of."""

    def __init__(self, order: Sequence[Node], any_family: bool) -> None:
        self.others: dict[Node, Weight] = {}
        self._any_family = any_family
        self.weights: dict[Node, Weight] = {}
        self.normals: dict[Node, Weight] = {}
        self.constants: list[float] = []
        self._owned: set[Node] = set()
        self._random: set[Node] = set()
        for node in order:
            if node.operation.random or not self._random.isdisjoint(node.parents):
                self._random.add(node)

    def reach(self, node: Node, weight: Weight) -> None:
        """Add to the weight of a node; what is certain goes into the constant."""
        if node not in self._random:
            amount = weight * self._value(node)
            self.constants.append(amount if type(amount) is float else float(np.sum(amount)))
        elif node in self.weights:
            self.weights[node] = self.weights[node] + weight
            self._owned.add(node)
        else:
            self.weights[node] = weight
            self._owned.discard(node)

    def _reach_part(self, node: Node, key: tuple[Any, ...], weight: Weight) -> None:
        """Add to the weight of some elements of a node, in place."""
        if node not in self._random:
            self.constants.append(float(np.sum(weight * self._value(node)[key])))
            return
        if node not in self._owned:
            self.weights[node] = np.zeros(node.shape) + self.weights.get(node, 0.0)
            self._owned.add(node)
        self.weights[node][key] += weight

    def _value(self, node: Node) -> Any:
        """Return the value of a node that is certain."""
        if type(node.operation) is ConstantValue:
            value = node.operation.array[0]
        else:
            value = Plan([node]).run(1, np.random.Generator(np.random.SFC64(0)))[0][0]
        return value.item() if node.shape == () else value

    def _certain(self, node: Node) -> Any:
        if node in self._random:
            raise NotAffine("two random quantities are multiplied or divided")
        return self._value(node)

    def pass_on(self, node: Node, weight: Weight) -> None:
        """Hand the weight of a node on to what it is made of."""
        operation = node.operation
        if type(operation) is Elementwise:  # asking for the type alone is several times quicker than isinstance
            self._pass_through_operator(node, operation.traits, weight)
        elif type(operation) is Draw:
            self._pass_to_normals(node, weight)
        elif type(operation) is Index:
            if all(isinstance(part, int | np.integer | slice) for part in operation.key):
                self._reach_part(node.parents[0], operation.key, weight)
            else:
                self._rearrange(node, lambda array: array[(slice(None), *operation.key)], weight)
        elif type(operation) is Stack:
            for position, parent in enumerate(node.parents):
                part = weight[position]
                self.reach(parent, float(part) if parent.shape == () else part)
        elif type(operation) is ArrayFunction:
            self._pass_through_function(node, operation, weight)
        elif type(operation) is Cast and operation.dtype.kind == "f":
            self.reach(node.parents[0], weight)
        else:
            raise NotAffine(_reason(node))

    def _pass_through_operator(self, node: Node, traits: Traits, weight: Weight) -> None:
        parents = node.parents
        if traits.weights is not None:
            for parent, sign in zip(parents, traits.weights, strict=True):
                self.reach(parent, _summed(weight if sign > 0 else -weight, parent.shape))
        elif traits.factor == 1:
            random, factor = parents if parents[0] in self._random else parents[::-1]
            self.reach(random, _summed(weight * self._certain(factor), random.shape))
        elif traits.factor == -1:
            divisor = self._certain(parents[1])
            if not np.all(divisor):
                raise NotAffine("it divides by zero")
            self.reach(parents[0], _summed(weight / divisor, parents[0].shape))
        else:
            raise NotAffine(_reason(node))

    def _pass_to_normals(self, root: Node, weight: Weight) -> None:
        assert isinstance(root.operation, Draw)
        family = root.operation.family
        if family.gaussian:
            self.normals[root] = _summed(weight * self._certain_parameter(root, 1), root.shape)
        elif family.factor is not None:
            self.normals[root] = weight @ family.factor
        elif self._any_family and not any(parent in self._random for parent in root.parents):
            if not isinstance(family, ScalarFamily) and not family.listable:
                raise NotAffine(f"the distribution of a sum with a {family.name} in it is not known")
            self.others[root] = weight
            return
        else:
            raise NotAffine(f"{describe(root) or family.name} is not normal")
        self.reach(root.parents[0], _summed(weight, root.parents[0].shape))

    def _certain_parameter(self, root: Node, position: int) -> Any:
        if root.parents[position] in self._random:
            raise NotAffine("the deviation of a normal variable is random")
        return self._value(root.parents[position])

    def _pass_through_function(self, node: Node, function: ArrayFunction, weight: Weight) -> None:
        parents = node.parents
        options, traits = dict(function.options), function.traits
        if traits.adds_up:
            shape = parents[0].shape
            axes = options["axis"] if isinstance(options["axis"], tuple) else (options["axis"],)
            kept = tuple(1 if axis + 1 in axes else size for axis, size in enumerate(shape))
            count = math.prod(shape[axis - 1] for axis in axes) if traits.averages else 1
            self.reach(parents[0], np.broadcast_to(np.reshape(weight, kept) / count, shape))
        elif traits.role is Role.PRODUCT:
            self._pass_through_product(parents, weight)
        elif traits.role is Role.MOVE:
            self._rearrange(node, partial(function.function, **options), weight)
        else:
            raise NotAffine(_reason(node))

    def _pass_through_product(self, parents: Sequence[Node], weight: Weight) -> None:
        left, right = parents
        rows, columns = left.shape[0] if len(left.shape) == 2 else 1, right.shape[1] if len(right.shape) == 2 else 1
        grid = np.reshape(weight, (rows, columns))
        if left in self._random:
            factor = np.reshape(self._certain(right), (right.shape[0], columns))
            self.reach(left, (grid @ factor.T).reshape(left.shape))
        else:
            factor = np.reshape(self._value(left), (rows, left.shape[-1]))
            self.reach(right, (factor.T @ grid).reshape(right.shape))

    def _rearrange(self, node: Node, function: Callable[..., Array], weight: Weight) -> None:
        """Go back through a function that only moves elements, by moving their numbers along."""
        sizes = [math.prod(parent.shape) for parent in node.parents]
        starts = np.cumsum([0, *sizes])
        numbered = [
            np.arange(start, start + size).reshape(1, *parent.shape)
            for start, size, parent in zip(starts, sizes, node.parents, strict=False)
        ]
        sources = function(*numbered)[0]
        total = np.bincount(sources.reshape(-1), np.reshape(weight, -1), starts[-1])
        for start, size, parent in zip(starts, sizes, node.parents, strict=False):
            part = total[start : start + size].reshape(parent.shape)
            self.reach(parent, float(part) if parent.shape == () else part)


def _summed(weight: Weight, shape: Shape) -> Weight:
    """Return the weight of an argument that was stretched to the weight's shape, or stretch it to the argument's."""
    if shape == ():
        return weight if type(weight) is float else float(np.sum(weight))
    array = np.asarray(weight, float)
    extra = array.ndim - len(shape)
    if extra > 0:
        array = array.sum(axis=tuple(range(extra)))
    stretched = tuple(k for k, size in enumerate(shape) if k < array.ndim and size == 1 and array.shape[k] > 1)
    return np.broadcast_to(array.sum(axis=stretched, keepdims=True) if stretched else array, shape)


def _reason(node: Node) -> str:
    name = getattr(node.operation, "name", type(node.operation).__name__)
    traits = node.operation.traits
    if traits.role in (Role.COMPARISON, Role.CHOICE, Role.ORDER) or (traits.truth and traits.scope is Scope.FOLD):
        return "it branches on a continuous variable"
    return f"it uses '{name}' of a continuous variable"
