"""How far out discrete distributions are listed: what all of them lose in their tails together stays negligible."""

import math
from collections.abc import Sequence
from contextvars import ContextVar

from privug.model.node import Array, ConstantValue, Node
from privug.prior.family import Family, family_of
from privug.prior.support import Support
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
