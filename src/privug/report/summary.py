"""Summary: what a report says, apart from how it looks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from privug.digits import number_text
from privug.escaping import inert
from privug.estimate import Estimate
from privug.inference.belief import CredibleInterval
from privug.leakage.table import LeakageTable

Shown = Estimate | CredibleInterval
LONGEST_LABEL, LONGEST_SENTENCE = 120, 1000


@dataclass(frozen=True)
class Comparison:
    """One line of the table: a quantity before and after the observation, if there was one."""

    label: str
    before: Shown
    after: Shown | None

    def to_dict(self) -> dict[str, Any]:
        """Return the line as plain values, with all digits."""
        after = None if self.after is None else _plain(self.after)
        return {"quantity": self.label, "before": _plain(self.before), "after": after}


@dataclass(frozen=True)
class Summary:
    """What was asked, what came out, and how sure it is.

    `sentences` say in words what changed, the most important one first; `questions` are the lines about the attack's
    questions, `comparisons` those about the secret; `facts` are what was asked of whom, and how the answer was found.
    """

    title: str
    sentences: Sequence[str]
    questions: Sequence[Comparison]
    comparisons: Sequence[Comparison]
    facts: Sequence[tuple[str, str]]
    leakage: LeakageTable

    @property
    def lines(self) -> list[Comparison]:
        """All lines of the table, those about the attack's questions first."""
        return [*self.questions, *self.comparisons]

    @property
    def columns(self) -> tuple[str, ...]:
        """What the lines say: how things are before and after the observation, or before alone if there was none."""
        return ("before", "after") if any(line.after is not None for line in self.lines) else ("before",)

    def cells(self, line: Comparison) -> list[str]:
        """Return what a line says, column by column."""
        both = [shown_text(line.before), "-" if line.after is None else shown_text(line.after)]
        return both[: len(self.columns)]

    def harmless(self) -> "Summary":
        """Return the same summary with text that only shows and is not endless, whatever data it came from."""
        return Summary(
            _short(self.title),
            [_short(sentence, LONGEST_SENTENCE) for sentence in self.sentences],
            [Comparison(_short(line.label), line.before, line.after) for line in self.questions],
            [Comparison(_short(line.label), line.before, line.after) for line in self.comparisons],
            [(_short(label), _short(text, LONGEST_SENTENCE)) for label, text in self.facts],
            self.leakage,
        )


def _short(text: str, longest: int = LONGEST_LABEL) -> str:
    return inert(text if len(text) <= longest else f"{text[:longest]}…")


def shown_text(value: Shown) -> str:
    """Return a number, or the two ends of a range, as a table shows it."""
    if isinstance(value, Estimate):
        return value.number()
    return " to ".join(number_text(end.value, end.resolution) for end in value)


def _plain(value: Shown) -> dict[str, Any]:
    if isinstance(value, Estimate):
        return {"value": value.value, "low": value.low, "high": value.high, "unit": value.unit, "exact": value.exact}
    ends = {"low": value.low.value, "high": value.high.value}
    return {**ends, "probability": value.probability, "exact": value.low.exact and value.high.exact}
