"""What a release is: a program, what the attacker knows, whom it is about, what was published and what is asked."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import privug as pv


@dataclass(frozen=True)
class Release:
    """A typical release, to be answered exactly; its numbers are in `releases.json` under its name."""

    name: str
    program: Callable[..., Any]
    prior: Callable[[], dict[str, Any]]
    secret: Any
    observation: Any
    query: Callable[[Any], Any]
    assume: Any = None

    def attack(self) -> pv.Attack:
        """Return the attack, its prior made afresh."""
        if self.assume is None:
            return pv.Attack(self.program, prior=self.prior(), secret=self.secret)
        return pv.Attack(self.program, prior=self.prior(), secret=self.secret, assume=self.assume)


def alike(size: Any, **columns: Callable[[], Any]) -> pv.Records:
    """Return a table whose rows are all alike: each column is a function that makes its distribution."""
    return pv.Records(size, lambda i: pv.Row(**{name: make() for name, make in columns.items()}))
