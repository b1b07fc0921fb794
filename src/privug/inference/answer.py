"""What an exact engine returns instead of samples."""

from collections.abc import Callable
from dataclasses import dataclass

from privug.inference.belief import Belief
from privug.inference.joint import Joint


@dataclass(frozen=True)
class Exact:
    """Beliefs about secret, output and a further quantity given the observation, and the joint of the first two.

    A belief that only the joint can give is None. `part` is the way it was computed, such as 'finite'; `source`
    says from what, as a report would. `joint` computes the joint when it is asked for, and may raise UnsuitableEngine.
    """

    part: str
    source: str
    beliefs: tuple[Belief | None, ...]
    joint: Callable[[], Joint]

    @property
    def engine(self) -> str:
        """The name of the engine with the part of it that served."""
        return f"exact ({self.part})"
