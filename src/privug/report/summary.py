"""Summary: what a report says, apart from how it looks."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from privug.escaping import inert
from privug.estimate import Estimate
from privug.leakage.table import LeakageTable


@dataclass(frozen=True)
class Comparison:
    """One line of the table: a quantity before and after the observation, if there was one."""

    label: str
    before: str
    after: str | None

    def harmless(self) -> "Comparison":
        """Return the same line with all text such that it only shows."""
        after = None if self.after is None else inert(self.after)
        return Comparison(inert(self.label), inert(self.before), after)


@dataclass(frozen=True)
class Summary:
    """What was asked, what came out, and how sure it is."""

    title: str
    facts: Sequence[tuple[str, str]]
    comparisons: Sequence[Comparison]
    sentences: Sequence[str] = field(default=())
    leakage: LeakageTable | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """What the lines say: how things are before and after the observation, or before alone if there was none."""
        return ("before", "after") if any(line.after is not None for line in self.comparisons) else ("before",)

    def cells(self, line: Comparison) -> list[str]:
        """Return what a line says, column by column."""
        return [line.before, line.after or "-"][: len(self.columns)]

    def harmless(self) -> "Summary":
        """Return the same summary with all text such that it only shows, whatever names and values it came from."""
        return Summary(
            inert(self.title),
            [(inert(label), inert(text)) for label, text in self.facts],
            [line.harmless() for line in self.comparisons],
            [inert(sentence) for sentence in self.sentences],
            self.leakage,
        )


def percent(probability: float) -> str:
    """Return a probability as a percentage with as many digits as a reader needs.

    >>> percent(0.18), percent(0.0044), percent(0.0), percent(1.0)
    ('18 %', '0.44 %', '0 %', '100 %')
    """
    shown = 100 * probability
    if shown in (0, 100):
        return f"{shown:.0f} %"
    return f"{shown:.2g} %" if shown < 99 else f"{shown:.4g} %"


def change_sentence(claim: str, before: Estimate, after: Estimate | None) -> str:
    """Say in plain words how the belief in a claim changed, or that nothing was observed that could change it.

    >>> change_sentence("Alice is under 18", Estimate(0.18, 0.17, 0.19), Estimate(0.0044, 0.003, 0.006))
    "An attacker's belief that Alice is under 18 falls from 18 % to 0.44 %."
    """
    start = f"An attacker's belief that {claim}"
    if after is None:
        return f"{start} is {percent(before.value)}; nothing was observed, so this says nothing about what leaks."
    if before.low in after or after.low in before:
        return f"{start} does not change measurably: {percent(before.value)} before, {percent(after.value)} after."
    direction = "falls" if after.value < before.value else "rises"
    end = percent(after.value)
    if after.value == 0 and not after.exact:
        end = f"less than {percent(after.high)}"
    elif after.value == 1 and not after.exact:
        end = f"more than {percent(after.low)}"
    return f"{start} {direction} from {percent(before.value)} to {end}."
