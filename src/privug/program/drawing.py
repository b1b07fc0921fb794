"""`pv.sample`: a draw inside a program, a node of the graph while lifted and a plain value otherwise."""

from contextvars import ContextVar
from typing import Any

import numpy as np

from privug.errors import PriorError
from privug.model.batch import Column
from privug.model.node import ConstantValue, Context, ancestors
from privug.model.plan import Plan
from privug.model.plates import current_plate
from privug.model.table import Row
from privug.model.variable import RandomVariable, path_condition, refuse
from privug.prior.choice import constant_value, is_constant
from privug.prior.family import is_distribution, parameters_of, replicate

recorded: ContextVar[list[tuple[RandomVariable, RandomVariable | None]] | None] = ContextVar("recorded", default=None)
"""While a program is traced: the draws it made, in order, each with the random condition it was made under."""

followed: ContextVar[list[RandomVariable] | None] = ContextVar("followed", default=None)
"""While a program is followed along one of its paths: the draws it made, in order."""

replayed: ContextVar[list[Any] | None] = ContextVar("replayed", default=None)
"""While a plain call is compared with the traced program: the values its draws must take, last one first."""

ambient_rng: ContextVar[np.random.Generator | None] = ContextVar("ambient_rng", default=None)
"""Where plain calls draw from while an engine makes them."""


def sample(distribution: Any) -> Any:
    """Draw from a distribution inside a program: every call is a draw of its own.

    >>> import privug as pv
    >>> def noisy_total(ages):
    ...     return sum(ages) + pv.sample(pv.Laplace(0, 100 / 0.5))
    >>> isinstance(noisy_total([30, 40]), float)
    True
    """
    if isinstance(distribution, Row):
        return Row(**{name: sample(cell) for name, cell in distribution._asdict().items()})
    if not isinstance(distribution, RandomVariable):
        return distribution
    if is_constant(distribution):
        return constant_value(distribution.node)
    if not is_distribution(distribution):
        raise PriorError(
            "sample: write pv.sample(pv.Laplace(0, 1)) with a distribution, not something computed from one"
        )
    noted = recorded.get()
    if noted is not None:
        if current_plate.get() is not None:
            refuse("a draw for each of many rows")
        drawn = replicate(distribution)
        noted.append((drawn, path_condition.get()))
        return drawn
    made = followed.get()
    if made is not None:
        made.append(replicate(distribution))
        return made[-1]
    values = replayed.get()
    if values is not None:
        if not values:
            raise PriorError("the program made more draws in a plain call than while it was traced")
        return values.pop()
    node = distribution.node
    if any(parent.is_random for parent in ancestors(parameters_of(distribution))):
        raise PriorError("sample: a parameter of this distribution is random; make it an input of the program")
    context = Context(1, ambient_rng.get() or np.random.default_rng())
    known = [parent.operation.array for parent in node.parents if isinstance(parent.operation, ConstantValue)]
    if len(known) == len(node.parents):  # what a plan would do, without the time it takes to make one
        array = node.operation.evaluate(known, context)
    else:
        array = Plan([node]).run(1, context.rng)[0]
    return Column.of(node, array).decoded()[0]
