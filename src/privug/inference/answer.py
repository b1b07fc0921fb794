"""What an exact engine returns instead of samples."""

from collections.abc import Callable
from dataclasses import dataclass

from privug.inference.belief import Belief
from privug.inference.invariants import MOST_ERROR, checked_belief, checked_joint
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

    def __post_init__(self) -> None:
        for name, belief in zip(("secret", "output", "query"), self.beliefs, strict=False):
            if belief is not None:
                # Far out, the output is known worse than what follows from it; its belief says so.
                checked_belief(f"the {name}", belief, 1.0 if name == "output" else MOST_ERROR)

    def joint_before(self) -> Joint:
        """Return the joint of an answer without an observation, once it is seen to agree with the beliefs in it."""
        return checked_joint(self.joint(), self.beliefs[0], self.beliefs[1])

    @property
    def engine(self) -> str:
        """The name of the engine with the part of it that served."""
        return f"exact ({self.part})"
