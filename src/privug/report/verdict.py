"""What an attack comes to, in plain words: one sentence for each question, or one about the secret."""

from dataclasses import dataclass
from typing import Any

from privug.arguments import shown
from privug.digits import percent_text
from privug.errors import PrivugError
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.model.node import Kind
from privug.report.summary import shown_text

LONGEST_CLAUSE = 90
MOST_NUMBERS = 12  # that a secret may be, and still be thought of as one or the other
MOST_VALUES = 1000  # of a secret whose likeliest value is named
NOTHING_SEEN = "nothing was observed, so this says nothing about what leaks"


@dataclass(frozen=True)
class Attacker:
    """Who the sentences are about: what they know and what they see, as the ends of 'An attacker who ...'."""

    knows: str = ""
    sees: str = ""

    def __str__(self) -> str:
        seen = f"that {self.sees}{',' if ',' in self.sees or ';' in self.sees else ''}"
        sees = f"sees {seen if len(seen) <= LONGEST_CLAUSE else 'the output'}"
        clauses = [f"knows {self.knows}"] if self.knows else []
        clauses += [sees] if self.sees else []
        return "An attacker" + (f" who {' and '.join(clauses)}" if clauses else "")


def about_a_claim(attacker: Attacker, claim: str, before: Estimate, after: Estimate | None) -> str:
    """Say in plain words how the belief in a claim changed, or that nothing was observed that could change it.

    >>> seen = Attacker("a lot", "the output is 55.3")
    >>> print(about_a_claim(seen, "Alice is under 18", Estimate(0.18, 0.17, 0.19), Estimate(0.0044, 0.003, 0.006)))
    An attacker who knows a lot and sees that the output is 55.3 goes from 18 % to 0.44 % sure that Alice is under 18.
    """
    start = str(attacker)
    if after is None:
        return f"{start} is {percent_text(before.value)} sure that {claim}; {NOTHING_SEEN}."
    if before.low in after or after.low in before:
        values = f"{percent_text(before.value)} before and {percent_text(after.value)} after"
        return f"{start} is as sure as before that {claim}: {values}, no measurable change."
    end = percent_text(after.value)
    if after.value == 0 and not after.exact:
        end = f"less than {percent_text(after.high)}"
    elif after.value == 1 and not after.exact:
        end = f"more than {percent_text(after.low)}"
    return f"{start} goes from {percent_text(before.value)} to {end} sure that {claim}."


def about_the_secret(attacker: Attacker, name: str, before: Belief, after: Belief | None) -> str:
    """Say what became of the belief about a secret: of its likeliest value, or of the range in which it lies."""
    try:
        if _has_few_values(before) and (after is None or _has_few_values(after)):
            return _about_the_likeliest(attacker, name, before, after)
        if before.batch.numbers() is not None:
            return _about_the_range(attacker, name, before, after)
    except PrivugError:  # some beliefs have no numbers to tell
        pass
    told = f"has a belief about {name}; {NOTHING_SEEN}" if after is None else f"learns something about {name}"
    return f"{attacker} {told}."


def _has_few_values(belief: Belief) -> bool:
    most = MOST_NUMBERS if belief.batch.numbers() is not None else MOST_VALUES
    return belief.kind is Kind.DISCRETE and belief.curve is None and belief.batch.distinct() <= most


def _about_the_likeliest(attacker: Attacker, name: str, before: Belief, after: Belief | None) -> str:
    likeliest, share = next(iter((before if after is None else after).distribution().items()))
    claim = f"{name} is {shown(likeliest)}"
    if after is None:
        return about_a_claim(attacker, claim, share, None)
    known: Any = before.distribution()
    return about_a_claim(attacker, claim, known.get(likeliest, before.probability(lambda value: False)), share)


def _about_the_range(attacker: Attacker, name: str, before: Belief, after: Belief | None) -> str:
    start = f"{attacker} is 90 % sure that {name} lies between"
    old = range_text(before)
    if after is None:
        return f"{start} {old}; {NOTHING_SEEN}."
    return f"{start} {range_text(after)}, where it was between {old} before."


def range_text(belief: Belief) -> str:
    """Return the range that holds nine tenths of a belief, as a sentence has it."""
    return shown_text(belief.interval(0.9)).replace(" to ", " and ")
