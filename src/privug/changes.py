"""Attacks that differ from others in some of their parts."""

from collections.abc import Callable, Mapping
from typing import Any, Self

from privug.errors import ArgumentError
from privug.inference.question import Question
from privug.observation.structured import Observation


class Changeable:
    """What an attack has to be changed by."""

    question: Question
    observe: Observation | None
    questions: Mapping[str, Callable[[Any], Any]]
    name: str

    def replace(self, **changes: Any) -> Self:
        """Return the same attack with some of its parts changed; all others stay, facts and `on_error` too.

        Args:
            changes: The arguments of `Attack` that change, by their names. A name that was not given to the attack
                follows the program. `observe=None` and `questions=None` take away what was seen and what was asked.

        Returns:
            A new attack; this one stays as it is.

        Raises:
            ArgumentError: If an argument is none of those of `Attack`, or is refused by it.

        >>> import privug as pv
        >>> attack = pv.Attack(lambda x, y: x + y, secret="x", assume=lambda x, y: x > y,
        ...                    prior={"x": pv.DiscreteUniform(0, 9), "y": pv.DiscreteUniform(0, 9)})
        >>> rounded = attack.replace(program=lambda x, y: (x + y) // 5 * 5)
        >>> print(pv.leakage.mutual_information(attack.run().joint))
        1.39 bit (exact)
        >>> print(pv.leakage.mutual_information(rounded.run().joint))
        0.843 bit (exact)
        """
        question = self.question
        kept: dict[str, Any] = {"program": question.program, "prior": question.prior, "secret": question.secret}
        kept |= {"observe": self.observe, "questions": self.questions, "assume": question.facts}
        kept |= {"name": "" if self.name == name_of(question.program) else self.name}
        kept |= {"on_error": "exclude" if question.exclude_errors else "raise"}
        unknown = [name for name in changes if name not in kept]
        if unknown:
            raise ArgumentError(f"replace: {unknown[0]} is not an argument of Attack; give one of {', '.join(kept)}")
        make: Callable[..., Self] = type(self)
        return make(**(kept | changes))


def name_of(program: Callable[..., Any]) -> str:
    """Return what an attack on a program is called unless it is given a name."""
    return str(getattr(program, "__name__", "program"))
