"""What an attack is given as a prior: which values surely mean something else than was written."""

import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

from privug.arguments import refuse_code
from privug.errors import QuestionError, RepeatedQuantityWarning
from privug.model.table import Row
from privug.prior.family import is_distribution


def check_prior(name: str, value: Any) -> None:
    """Refuse functions and classes in the prior of a parameter; warn of a list that holds one quantity several times.

    One object is one quantity wherever it stands, and to use it in two inputs says that they share it. But what is
    written as `[pv.DiscreteUniform(18, 90)] * 20` means twenty people, and is one person twenty times.
    """
    parts = list(_parts(f"prior[{name!r}]", value))
    for place, part in parts:
        refuse_code(place, part, QuestionError)
    if not isinstance(value, list | tuple | dict) or isinstance(value, Row):
        return
    times = Counter(id(part.node) for _, part in parts if is_distribution(part))
    most = max(times.values(), default=0)
    if most > 1:
        warnings.warn(
            f"prior[{name!r}] holds one random quantity {most} times, so that these are always equal; for independent "
            f"ones write pv.Array(distribution, {most}), or make each anew: "
            f"[pv.DiscreteUniform(18, 90) for _ in range({most})]",
            RepeatedQuantityWarning,
            stacklevel=5,
        )


def _parts(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what stands in lists, tuples and dictionaries, and where."""
    if isinstance(value, dict):
        items: Any = value.items()
    elif isinstance(value, list | tuple) and not isinstance(value, Row):
        items = enumerate(value)
    else:
        yield place, value
        return
    for key, part in items:
        yield from _parts(f"{place}[{key!r}]", part)
