"""What has no single answer is refused, and noted while a program is traced."""

from collections.abc import Callable
from typing import Any, NoReturn

from privug.errors import Untraceable
from privug.scoping import Held

refusals: Held[list[str] | None] = Held(None)
"""While a program is traced: what it asked of a random variable that has no single answer."""

deciding: Held[Callable[[Any], bool] | None] = Held(None)
"""While a program is followed along one of its paths: says whether a random condition (a node) holds there."""


def refuse(what: str) -> NoReturn:
    """Refuse to give one plain value; noted for the tracer, in case the program swallows the error."""
    noted = refusals.get()
    if noted is not None:
        noted.append(what)
    raise Untraceable(
        f"{what} needs one plain value, but a random variable stands for many; "
        "write pv.where(condition, a, b) for a choice, & | ~ for and/or/not, or wrap the code with pv.lift"
    )
