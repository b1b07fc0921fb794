"""The leakage table: every measure that makes sense for a question, with what it means for a person."""

import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from privug.arguments import check_kind
from privug.digits import how_many, number_text, percent_text
from privug.errors import PrivugError
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.joint import Joint
from privug.leakage.divergence import entropy_drop, kl_divergence, total_variation
from privug.leakage.entropy import entropy, min_entropy
from privug.leakage.information import conditional_entropy, mutual_information
from privug.leakage.pointwise import max_posterior_belief
from privug.leakage.vulnerability import (
    bayes_risk,
    bayes_vulnerability,
    min_entropy_leakage,
    multiplicative_leakage,
    posterior_guessing_entropy,
)
from privug.model.node import Kind
from privug.pictures import plots

WIDTH = 110
NOTHING = 1e-9  # bits, or shares; less is rounding
_UNCERTAINTIES = {"entropy", "differential_entropy", "conditional_entropy", "entropy_drop"}
_MEANINGS = {
    ("bayes_vulnerability", "before"): "Before, the attacker's best guess is right with probability {percent}.",
    ("bayes_vulnerability", "after"): "After seeing an output, it is right with probability {percent}.",
    ("bayes_risk", "after"): "The person's value stays wrongly guessed with probability {percent}.",
    ("min_entropy_leakage", ""): "The same in bits: each bit doubles the chance of a right guess.",
    ("guessing_entropy", "after"): "Guessing value by value, the attacker needs {tries} on average.",
    ("max_posterior_belief", ""): "After the worst output, the attacker is {percent} sure of one value.",
    ("total_variation", "here"): "This observation moves {percent} of the attacker's belief to other values.",
}


@dataclass(frozen=True)
class LeakageRow:
    """One measure: its name as in `pv.leakage`, what it is about, its value and one sentence on what that means.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda x, y: x + y, prior={"x": pv.Bernoulli(0.5), "y": pv.Bernoulli(0.5)}, secret="x")
    >>> row = next(row for row in attack.run(pv.equals(2)).leakage() if row.name == "mutual_information")
    >>> row.estimate.value, row.estimate.unit
    (0.5, 'bit')
    """

    name: str
    about: str
    estimate: Estimate
    meaning: str

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain values."""
        number = self.estimate
        plain = {"value": number.value, "low": number.low, "high": number.high, "unit": number.unit}
        how = {"method": number.method, "exact": number.exact, "confidence": number.confidence}
        return {"measure": self.name, "about": self.about, **plain, **how, "meaning": self.meaning}


@dataclass(frozen=True)
class LeakageTable:
    """The measures of one question. `left_out` says why others are missing.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda x, y: x + y, prior={"x": pv.Bernoulli(0.5), "y": pv.Bernoulli(0.5)}, secret="x")
    >>> attack.run(pv.equals(2)).leakage()["mutual_information"].value
    0.5
    """

    rows: tuple[LeakageRow, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    warning: str = ""
    """Why there are no measures that average over outputs, if there are none."""

    def __iter__(self) -> Iterator[LeakageRow]:
        return iter(self.rows)

    def __getitem__(self, name: str) -> Estimate:
        """Return a measure by its name; where it stands before and after, the latter."""
        found = [row.estimate for row in self.rows if row.name == name]
        if not found:
            reasons = dict(self.left_out)
            raise KeyError(f"{name}: {reasons.get(name, 'not in this table')}")
        return found[-1]

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the rows as plain values."""
        return [row.to_dict() for row in self.rows]

    def plot(self, ax: Any = None) -> Any:
        """Draw the measures as bars, one panel for each unit; `ax` is matplotlib axes, one for each, or a path."""
        rows = [(f"{row.name.replace('_', ' ')} {row.about}".rstrip(), row.estimate) for row in self.rows]
        return plots().bars(rows, ax)

    def __str__(self) -> str:
        cells = [(f"{row.name} {row.about}".strip(), f"{row.estimate.number()} {row.estimate.unit}") for row in self]
        first = max((len(name) for name, _ in cells), default=0)
        second = max((len(number) for _, number in cells), default=0)
        lines = []
        for (name, number), row in zip(cells, self.rows, strict=True):
            head = f"  {name:<{first}}  {number:>{second}}  "
            lines += textwrap.wrap(row.meaning, WIDTH, initial_indent=head, subsequent_indent=" " * len(head))
        return "\n".join(lines)


@dataclass(frozen=True)
class _Entry:
    """A measure that may go into the table: how it is computed, and what is said of it beyond `_MEANINGS`."""

    name: str
    about: str
    compute: Callable[[], Estimate]
    sentence: Callable[[Estimate], str] | None = None

    def meaning(self, estimate: Estimate) -> str:
        """Return a sentence with the value in it, as a number or as a percentage."""
        if self.sentence is not None:
            return self.sentence(estimate)
        template = _MEANINGS[self.name, self.about]
        return template.format(tries=how_many(_number(estimate), "try", "tries"), percent=percent_text(estimate.value))


def leakage_table(joint: Joint, posterior: Belief | None = None, prior: Belief | None = None) -> LeakageTable:
    """Compute the measures that make sense for a joint; with a posterior, those of the observation too.

    `prior` is the belief about the secret before, where that is known better than from the joint.

    >>> table = leakage_table(Joint.from_channel([0.5, 0.5], [[1, 0], [0, 1]]))
    >>> print(table["mutual_information"], table["bayes_risk"])
    1 bit (exact) 0 (exact)
    """
    check_kind("leakage_table", "joint", joint, (Joint,))
    for name, belief in (("posterior", posterior), ("prior", prior)):
        check_kind("leakage_table", name, belief, (Belief, type(None)))
    before = prior if prior is not None and prior.kind is joint.secret.kind else joint.secret
    return _computed([*_observed(before, posterior), *_averaged(joint, before)])


def leakage_of_observation(prior: Belief, posterior: Belief | None, reason: str) -> LeakageTable:
    """Compute the measures of the observation alone, where for some reason there is no joint."""
    table = _computed(_observed(prior, posterior))
    return replace(
        table,
        left_out=(*table.left_out, ("mutual_information", reason)),
        warning=f"What outputs tell on average is not known: {reason}.",
    )


def _computed(entries: Sequence[_Entry]) -> LeakageTable:
    """Compute the measures that can be computed, those of uncertainty last, and say why others cannot."""
    rows: list[LeakageRow] = []
    left_out: list[tuple[str, str]] = []
    for entry in sorted(entries, key=lambda entry: entry.name in _UNCERTAINTIES):
        try:
            estimate = entry.compute()
        except PrivugError as error:
            left_out.append((entry.name, str(error)))
            continue
        if estimate.low <= 0 and estimate.high == math.inf and estimate.value < math.inf:
            left_out.append((entry.name, "the samples are too few to say anything: it may be zero, or as large as any"))
            continue
        rows.append(LeakageRow(entry.name, entry.about, estimate, entry.meaning(estimate)))
    return LeakageTable(tuple(rows), tuple(left_out))


def _averaged(joint: Joint, secret: Belief) -> list[_Entry]:
    """Return the measures that average over the outputs that may come."""
    discrete = secret.kind is Kind.DISCRETE
    name, after = ("entropy", "after") if discrete else ("differential_entropy", "after (differential)")
    return [
        *(_guesses(joint, secret) if discrete else ()),
        _Entry("mutual_information", "", lambda: mutual_information(joint), _told),
        _Entry(name, "before", lambda: entropy(secret), lambda e: _uncertainty(e, secret)),
        _Entry("conditional_entropy", after, lambda: conditional_entropy(joint), lambda e: _left(e, secret)),
    ]


def _guesses(joint: Joint, secret: Belief) -> list[_Entry]:
    """Return the measures of an attacker who guesses a discrete secret."""
    return [
        _Entry("bayes_vulnerability", "before", lambda: bayes_vulnerability(secret)),
        _Entry("bayes_vulnerability", "after", lambda: bayes_vulnerability(joint)),
        _Entry("bayes_risk", "after", lambda: bayes_risk(joint)),
        _Entry("multiplicative_leakage", "", lambda: multiplicative_leakage(joint), _likelier),
        _Entry("min_entropy_leakage", "", lambda: min_entropy_leakage(joint)),
        _Entry("guessing_entropy", "after", lambda: posterior_guessing_entropy(joint)),
        _Entry("max_posterior_belief", "", lambda: max_posterior_belief(joint)),
    ]


def _observed(prior: Belief, posterior: Belief | None) -> list[_Entry]:
    """Return the measures of what this one observation changed, if there is one."""
    if posterior is None:
        return []
    entries = [
        _Entry("kl_divergence", "here", lambda: kl_divergence(posterior, prior), _moved),
        _Entry("entropy_drop", "here", lambda: entropy_drop(prior, posterior), _dropped),
    ]
    if prior.kind is not Kind.DISCRETE:
        return entries
    return [
        _Entry("min_entropy", "here", lambda: min_entropy(posterior), _best_guess_here),
        _Entry("total_variation", "here", lambda: total_variation(posterior, prior)),
        *entries,
    ]


def _likelier(estimate: Estimate) -> str:
    if estimate.value <= 1 + NOTHING:
        return "A right guess does not become likelier."
    return f"A right guess becomes {_number(estimate)} times as likely."


def _moved(estimate: Estimate) -> str:
    if estimate.value <= NOTHING:
        return "The belief after this observation is the one before."
    if math.isinf(estimate.value):
        return "The belief after this observation is on single values that had no probability of their own before."
    return f"The belief after this observation is {how_many(_number(estimate), 'bit')} away from the one before."


def _uncertainty(estimate: Estimate, secret: Belief) -> str:
    if secret.kind is Kind.DISCRETE:
        return f"Before, finding the person's value takes some {how_many(_number(estimate), 'yes-or-no question')}."
    return "Before: the differential entropy of the secret, on a scale whose zero is one unit of the secret."


def _left(estimate: Estimate, secret: Belief) -> str:
    if secret.kind is Kind.DISCRETE:
        left = _number(estimate)
        are = "is" if left == "1" else "are"
        return f"After seeing an output, some {how_many(left, 'such question')} {are} left on average."
    return "After seeing an output, on the same scale and on average."


def _told(estimate: Estimate) -> str:
    if estimate.value == float("inf"):
        return f"The output tells the secret to any precision: {estimate.method}."
    if estimate.high <= 1e-12:
        return "The output tells nothing about the secret."
    return f"On average an output tells {how_many(_number(estimate), 'bit')} about the secret."


def _dropped(estimate: Estimate) -> str:
    if abs(estimate.value) <= NOTHING:
        return "This observation leaves the attacker as uncertain as before."
    if estimate.value == math.inf:
        return "This observation leaves the attacker no uncertainty: the secret is known to any precision."
    bits = number_text(abs(estimate.value))
    if estimate.value > 0:
        return f"This observation leaves the attacker {how_many(bits, 'bit')} less uncertain."
    return f"The belief is spread wider, by {how_many(bits, 'bit')}, which does not mean that nothing was learned."


def _best_guess_here(estimate: Estimate) -> str:
    return f"After this observation the best guess is right with probability {percent_text(2.0**-estimate.value)}."


def _number(estimate: Estimate) -> str:
    return number_text(estimate.value)
