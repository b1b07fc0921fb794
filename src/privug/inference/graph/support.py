"""The support of nodes: which values discrete ones are listed at, and the range and moments of any number.

Discrete distributions are listed so far out that what all of them lose in their tails together stays negligible.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import reduce
from typing import Any

import numpy as np

from privug.model.node import Array, ConstantValue, Node, Shape, ancestors
from privug.model.numpy_functions import Cast
from privug.model.operations import ArrayFunction, Elementwise, Index, Lookup, Stack
from privug.model.structure import random_leaves
from privug.model.traits import Role, Traits, unchanged
from privug.model.variable import RandomVariable
from privug.prior.conditional import Choose
from privug.prior.family import UNKNOWN, Draw, Family, Reach, Support, at_rank, either, family_of, of_numbers
from privug.scoping import holding

LOST = 1e-15  # the probability that distributions without a largest value lose together
_lost: ContextVar[float] = ContextVar("lost", default=LOST)


def longer_tails(lost: float) -> holding[float]:
    """List values so far out that only so much probability is lost."""
    return holding(_lost, lost)


def lost_in_tails(truncated: int) -> float:
    """Return the probability that so many distributions lose together."""
    return _lost.get() * math.ceil(truncated / 1000)


def exponent() -> float:
    """Return the logarithm of how rare values are that are left out."""
    return math.log(1e3 / _lost.get())  # a thousand truncated distributions lose no more than that together


def is_truncated(root: Node) -> bool:
    """Say whether far tails are left out of the values of a root."""
    operations = [parent.operation for parent in root.parents]
    return family_of(root).is_cut([o.array if isinstance(o, ConstantValue) else None for o in operations])


def support_sizes(family: Family, parameters: Sequence[Array]) -> Array:
    """Return how many values are possible for each row of parameters, at most."""
    return family.sizes(parameters, exponent())


def support(family: Family, parameters: Sequence[Array], rows: int) -> Support:
    """List the possible values for each row of parameters, which hold one row for all or one for each."""
    return family.support(parameters, rows, exponent())


TRUTH = Reach(0.0, 1.0, math.inf)
Known = tuple[Array | None, Reach]
"""What is known of a parameter: its numbers, if it is constant, and its reach."""
OfRoot = Callable[[Draw, Sequence[Known]], Reach]


def reach_of(node: Node) -> Reach:
    """Return what is known about the range and the moments of a node."""
    reach = _followed(node, lambda root, parameters: root.family.reach(parameters))
    core = reach if reach.is_bounded else _followed(node, _without_tails)
    return reach._replace(core=(core.low, core.high))


def _followed(node: Node, of_root: OfRoot) -> Reach:
    """Return the reach of a node by those of the roots that it is made of."""
    found: dict[Node, Reach] = {}
    for one in ancestors([node]):
        reach = _reach(one, found, of_root)
        found[one] = reach._replace(least=math.inf) if reach.is_bounded else reach
    return found[node]


def _without_tails(root: Draw, parameters: Sequence[Known]) -> Reach:
    """Return the reach of a root whose endless tails end in the middle."""
    return either([_cut(one, own, root.shape) for one, own in root.family.parts(parameters)])


def _cut(family: Family, parameters: Sequence[Known], shape: Shape) -> Reach:
    reach, known = family.reach(parameters), [array for array, _ in parameters if array is not None]
    if reach.is_bounded or family.latents != 1 or len(known) < len(parameters):
        return reach
    middle = family.of_normals(np.zeros((1, *shape)), at_rank(known, len(shape) + 1))
    low, high = float(np.min(middle)), float(np.max(middle))
    return Reach(low if reach.low == -math.inf else reach.low, high if reach.high == math.inf else reach.high)


def reach_of_value(value: Any) -> Reach:
    """Return what is known about the range and the moments of a value, if it is a single number."""
    leaves = random_leaves([value])
    return reach_of(leaves[0].node) if len(leaves) == 1 and isinstance(value, RandomVariable) else UNKNOWN


def _reach(node: Node, found: Mapping[Node, Reach], of_root: OfRoot) -> Reach:
    operation, parents = node.operation, [found[parent] for parent in node.parents]
    if node.levels is not None:
        return UNKNOWN
    if node.dtype == bool:
        return TRUTH
    match operation:
        case ConstantValue():
            return of_numbers(operation.array)
        case Draw():
            known = [p.operation.array if isinstance(p.operation, ConstantValue) else None for p in node.parents]
            return of_root(operation, list(zip(known, parents, strict=True)))
        case Choose():
            return either(parents[1:])
        case Lookup():
            return of_numbers(operation.table)
        case Stack():
            return either(parents)
        case Cast() if operation.dtype.kind == "f":
            return parents[0]
        case Index():
            return either(parents[:1])
        case Elementwise():
            return _of_operator(operation.traits, parents)
        case ArrayFunction(traits=traits) if traits.totals:
            return Reach(least=min(parent.least for parent in parents))
        case ArrayFunction(traits=traits) if traits.averages or (traits.chooses == 0 and traits.role is Role.ORDER):
            return either(parents)
        case _:
            return UNKNOWN


def _of_operator(traits: Traits, parents: Sequence[Reach]) -> Reach:
    if traits.weights is not None:
        return reduce(_sum, map(_scaled, parents, traits.weights))
    if traits.factor == 1:
        return _product(traits, *parents)
    if traits.factor == -1 and parents[1].low == parents[1].high != 0:
        return _scaled(parents[0], 1 / parents[1].low)
    if traits.size is not unchanged:
        return UNKNOWN
    # Results are no further from zero than the arguments, and so have their moments.
    low, high = traits.image(*((parent.low, parent.high) for parent in parents))
    return either(parents[traits.chooses or 0 :])._replace(low=low, high=high)


def _sum(left: Reach, right: Reach) -> Reach:
    """Return the reach of a sum: it is as heavy as one of its terms if the other has lighter tails."""
    most = min(left.most if left.most < right.least else math.inf, right.most if right.most < left.least else math.inf)
    return Reach(left.low + right.low, left.high + right.high, min(left.least, right.least), most)


def _scaled(one: Reach, factor: float) -> Reach:
    if factor == 0:
        return Reach(0.0, 0.0, math.inf)
    low, high = sorted((one.low * factor, one.high * factor))
    return Reach(low, high, one.least, one.most)


def _product(traits: Traits, left: Reach, right: Reach) -> Reach:
    """Return the reach of a product; its moments by Hölder's inequality."""
    for one, other in ((left, right), (right, left)):
        if one.low == one.high:
            return _scaled(other, one.low)
    low, high = traits.image((left.low, left.high), (right.low, right.high))
    inverse = sum(math.inf if one.least == 0 else 1 / one.least for one in (left, right))
    return Reach(low, high, math.inf if inverse == 0 else 1 / inverse)
