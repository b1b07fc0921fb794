"""The leakage table: every measure that makes sense for a question, with what it means for a person."""

import math
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from privug.arguments import check_kind
from privug.digits import how_many, number_text, percent_text
from privug.errors import PrivugError
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.joint import Joint
from privug.leakage.ranges import REGISTER, Of, Registered, Row
from privug.model.node import Kind
from privug.pictures import plots

WIDTH = 110


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
    return _computed(before, posterior, joint)


def leakage_of_observation(prior: Belief, posterior: Belief | None, reason: str) -> LeakageTable:
    """Compute the measures of the observation alone, where for some reason there is no joint."""
    table = _computed(prior, posterior, None)
    return replace(
        table,
        left_out=(*table.left_out, ("mutual_information", reason)),
        warning=f"What outputs tell on average is not known: {reason}.",
    )


def _computed(prior: Belief, posterior: Belief | None, joint: Joint | None) -> LeakageTable:
    """Compute the measures that can be computed, in the order of their places, and say why others cannot."""
    rows: list[LeakageRow] = []
    left_out: list[tuple[str, str]] = []
    for name, row, known in sorted(_places(prior), key=lambda place: place[1].order):
        compute = _computation(row, known, prior, posterior, joint)
        if compute is None:
            continue
        name, about = _called(row.label or name, row.about, prior)
        try:
            estimate = compute()
        except PrivugError as error:
            left_out.append((name, str(error)))
            continue
        if estimate.low <= 0 and estimate.high == math.inf and estimate.value < math.inf:
            left_out.append((name, "the samples are too few to say anything: it may be zero, or as large as any"))
            continue
        rows.append(LeakageRow(name, about, estimate, _meaning(row, estimate, prior)))
    return LeakageTable(tuple(rows), tuple(left_out))


def _places(prior: Belief) -> Iterator[tuple[str, Row, Registered]]:
    """Yield the places in the table that make sense for a secret."""
    for name, known in REGISTER.items():
        for row in known.rows:
            if prior.kind is Kind.DISCRETE or not row.discrete:
                yield name, row, known


def _computation(
    row: Row, known: Registered, prior: Belief, posterior: Belief | None, joint: Joint | None
) -> Callable[[], Estimate] | None:
    """Return how a measure is computed at a place: of this observation, or of all outputs; None if there is no such."""
    if row.about == "here":
        if posterior is None:
            return None
        if known.of is Of.BELIEF:
            return partial(known.function, posterior)
        return partial(known.function, prior=prior, posterior=posterior)
    if joint is None:
        return None
    return partial(known.function, prior if row.about == "before" else joint)


def _called(name: str, about: str, prior: Belief) -> tuple[str, str]:
    """Return what a measure is called, and about: entropies of continuous secrets are differential ones."""
    if prior.kind is Kind.DISCRETE or not name.endswith("entropy"):
        return name, about
    return ("differential_entropy", about) if name == "entropy" else (name, f"{about} (differential)")


def _meaning(row: Row, estimate: Estimate, prior: Belief) -> str:
    """Return a sentence with the value in it, as a number or as a percentage."""
    if not isinstance(row.meaning, str):
        return row.meaning(estimate, prior)
    tries = how_many(number_text(estimate.value), "try", "tries")
    return row.meaning.format(tries=tries, percent=percent_text(estimate.value))
