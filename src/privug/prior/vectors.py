"""Vectors whose parts sum to a whole: counts of a table's cells, and shares. Each is made of single quantities.

Its parts come one after the other, each given those before it: so every engine that knows the single quantities knows
the vector.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from privug.arguments import shown
from privug.errors import PriorError
from privug.model.node import ConstantValue, Node
from privug.model.variable import RandomVariable, as_node, stack_values
from privug.prior.choice import check_probabilities, constant_value, probabilities
from privug.prior.continuous import Beta
from privug.prior.discrete import Binomial
from privug.prior.family import Composed, parameter_node
from privug.prior.parameters import COUNT, POSITIVE, Constraint


def Multinomial(n: Any, p: Any) -> RandomVariable:
    """How many of `n` people fall into each of several cells, of probabilities `p` that sum to one.

    Cell i has n * p[i] people on average; the counts are an array that sums to n. Random probabilities are taken
    relative to their sum.

    >>> import privug as pv
    >>> pv.Multinomial(100, [0.2, 0.3, 0.5])
    <RandomVariable: discrete int64, shape (3,)>
    """
    total = _checked("Multinomial", "n", parameter_node("Multinomial", "n", n), COUNT, ())
    node = probabilities("Multinomial", "p", p)
    if isinstance(node.operation, ConstantValue):
        check_probabilities("Multinomial", node.operation.array)
    shares = _parts("Multinomial", "p", node)
    rests = _sums_from(shares)
    left, counts = total, []
    for share, rest in zip(shares[:-1], rests[:-1], strict=True):
        # Rounding may take a last share beyond its rest, and where nothing is left any share will do.
        chance = np.minimum(share / rest, 1.0) if isinstance(rest, RandomVariable) or rest > 0 else 0.0
        count = Binomial(left, chance)
        if not isinstance(total, RandomVariable):
            count.node.bound = int(total)
        counts.append(count)
        left = left - count
    return Composed(stack_values([*counts, left]), partial(Multinomial, n, p), (as_node(total), node))


def Dirichlet(weights: Any) -> RandomVariable:
    """Shares that sum to one, such as unknown probabilities; share i is weights[i] / sum(weights) on average.

    The larger the sum of the weights, the closer shares are to their means; with weights of one all are equally likely.

    >>> import privug as pv
    >>> pv.Dirichlet([1, 1, 1])
    <RandomVariable: continuous float64, shape (3,)>
    """
    given = list(weights) if isinstance(weights, tuple) else weights
    node = parameter_node("Dirichlet", "weights", given)
    parts = _parts("Dirichlet", "weights", node)
    if isinstance(node.operation, ConstantValue):
        _checked("Dirichlet", "weights", node, POSITIVE, node.shape)
    left: Any = 1.0
    shares = []
    for weight, others in zip(parts[:-1], _sums_from(parts)[1:], strict=True):
        share = Beta(weight, others)
        shares.append(left * share)
        left = left * (1.0 - share)
    return Composed(stack_values([*shares, left]), partial(Dirichlet, weights), (node,))


def _checked(distribution: str, name: str, node: Node, limits: Constraint, shape: tuple[int, ...]) -> Any:
    """Return a parameter as plain numbers if it is known, and as a random variable otherwise."""
    if node.shape != shape:
        raise PriorError(f"{distribution}: {name} must be one number, not an array of shape {node.shape}")
    if not isinstance(node.operation, ConstantValue):
        return RandomVariable(node)
    array = node.operation.array
    if not np.all(limits.holds(array)):
        wrong = array[~limits.holds(array)][0].item()
        raise PriorError(f"{distribution}: {name} must be {limits.words}, not {shown(wrong)}")
    return constant_value(node)


def _parts(distribution: str, name: str, node: Node) -> list[Any]:
    if len(node.shape) != 1 or node.shape[0] < 2:
        raise PriorError(f"{distribution}: {name} must be a list of at least two numbers, one for each part")
    if isinstance(node.operation, ConstantValue):
        return [float(number) for number in node.operation.array[0]]
    return [RandomVariable(node)[place] for place in range(node.shape[0])]


def _sums_from(parts: Sequence[Any]) -> list[Any]:
    """Return for each part the sum of it and all after it."""
    sums = [parts[-1]]
    for part in reversed(parts[:-1]):
        sums.append(part + sums[-1])
    return sums[::-1]
