"""Why a policy is broken: which inputs carry the leak, which outputs are dangerous, which lines they come from."""

import linecache
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from privug import leakage
from privug.arguments import check_kind, kinds_checked, shown
from privug.attack import Attack
from privug.digits import how_many
from privug.errors import PrivugError
from privug.escaping import inert
from privug.estimate import Estimate
from privug.model.structure import random_leaves
from privug.pictures import plots
from privug.policy.checking import check
from privug.policy.clause_questions import SAMPLES, RunOptions, about, listed_people, secret_of, with_inputs
from privug.policy.clauses import max_belief
from privug.policy.enforcement import Enforcement, enforce
from privug.policy.output_classes import ClauseJoints
from privug.policy.people import people_apart
from privug.policy.policies import Policy
from privug.policy.verdict import Verdict
from privug.prior.table import Records
from privug.report.page import lines_that_matter
from privug.report.text import grid_text

MOST_CELLS = 40  # of tables, for each of which an attack is run
MOST_SHOWN = 10
NOTHING = 1e-12  # bits, below which there is but rounding


@dataclass(frozen=True)
class Carrier:
    """An input, or a cell of a table, and how much an output tells about it on average, in bits.

    `alike` is how many rows of the table are treated like this one.
    """

    name: str
    information: Estimate
    alike: int = 1


@dataclass(frozen=True)
class DangerousOutput:
    """An output after which the policy does not hold: how likely it is, and by how much it breaks the limit."""

    output: Any
    probability: float
    excess: float


@dataclass(frozen=True)
class Explanation:
    """Why a policy is broken, and the smallest change that mends it.

    `carriers` are the inputs, the one first of which outputs tell most; `outputs` are the dangerous ones, the worst
    first, and `danger` their probability together; `lines` are those of the program through which the secret reaches
    the output, by number and text; `repair` is the smallest change found, and `notes` say what could not be told.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda a, b: a + b, {"a": pv.Bernoulli(0.5), "b": pv.Bernoulli(0.5)}, secret="a")
    >>> why = pv.policy.explain(attack, pv.policy.max_belief(at_most=0.7))
    >>> [(carrier.name, round(carrier.information.value, 3)) for carrier in why.carriers]
    [('a', 0.5), ('b', 0.5)]
    """

    verdict: Verdict
    carriers: tuple[Carrier, ...]
    outputs: tuple[DangerousOutput, ...]
    lines: tuple[tuple[int, str], ...]
    repair: Enforcement | None
    notes: tuple[str, ...] = ()

    @property
    def danger(self) -> float:
        """The probability that an output is dangerous, as far as they are known."""
        return math.fsum(one.probability for one in self.outputs)

    def plot(self, ax: Any = None) -> Any:
        """Draw how much outputs tell about each input; `ax` is matplotlib axes or the path of a picture to write."""
        rows = [(_carrier(one), one.information) for one in self.carriers]
        return plots().bars(rows, ax, "told by an output, on average")

    def __str__(self) -> str:
        parts = [inert(self.verdict.sentence())]
        if self.carriers:
            rows = [[_carrier(one), _bits(one.information)] for one in self.carriers]
            parts.append(_table(["input", "told by an output"], rows))
        if self.outputs:
            parts.append(f"After outputs of probability {self.danger:.4g} the policy is broken:")
            rows = [[shown(o.output), f"{o.probability:.4g}", f"{o.excess:.4g}"] for o in self.outputs]
            parts.append(_table(["output", "probability", "beyond the limit by"], rows))
        if self.lines:
            parts.append("The secret reaches the output through")
            parts += [inert(f"  line {number}: {text}") for number, text in self.lines]
        if self.repair is not None and self.repair.repair != "none":
            parts.append(f"Smallest change: {self.repair}")
        return "\n".join([*parts, *(f"Note: {inert(note)}" for note in self.notes)])


def _carrier(one: Carrier) -> str:
    return one.name if one.alike == 1 else f"{one.name} (and {how_many(one.alike - 1, 'row')} like it)"


def _table(header: list[str], rows: list[list[str]]) -> str:
    left_out = len(rows) - MOST_SHOWN
    return grid_text("", header, rows[:MOST_SHOWN], [f"and {left_out} more"] if left_out > 0 else []).strip("\n")


def _bits(information: Estimate) -> str:
    return "nothing" if information.exact and information.value < NOTHING else f"{information.number()} bit"


@kinds_checked
def explain(
    attack: Attack, policy: Policy, *, engine: str = "auto", samples: int = SAMPLES, seed: int = 0
) -> Explanation:
    """Explain why a policy is broken: by which inputs, after which outputs, through which lines, and what mends it.

    An input carries as much of the leak as outputs tell about it on average: its mutual information with the output, in
    bits; of a table, that of single cells, where rows that are alike are looked at once. It is about the input as such,
    whether it is secret or not: an input of which outputs tell nothing takes no part. Lines are those at which the
    program computed something from what the secret is made of, on the way to its output; they are known for programs
    that are traced. The repair is the one of `pv.policy.enforce` that leaves most of the output, without noise.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda a, b: a + b, {"a": pv.Bernoulli(0.5), "b": pv.Bernoulli(0.5)}, secret="a")
    >>> why = pv.policy.explain(attack, pv.policy.max_belief(at_most=0.7))
    >>> why.repair.words
    'its 3 outputs merged into 2 classes, optimal'
    """
    check_kind("explain", "attack", attack, (Attack,))
    check_kind("explain", "policy", policy, (Policy,))
    options, notes = RunOptions(engine, samples, seed), list[str]()
    verdict = check(attack, policy, engine=engine, samples=samples, seed=seed)
    repair = None
    try:
        repair = enforce(attack, policy, engine=engine, samples=samples, seed=seed)
    except PrivugError as error:
        notes.append(str(error))
    carriers = sorted(_carriers(attack, options, notes), key=lambda one: -one.information.value)
    outputs = _dangerous(attack, policy, verdict, options, notes)
    return Explanation(verdict, tuple(carriers), outputs, _lines(attack, policy, notes), repair, tuple(notes))


def _carriers(attack: Attack, options: RunOptions, notes: list[str]) -> Iterator[Carrier]:
    """Measure how much outputs tell about each input, and each cell of tables of fixed size."""
    for name, value in attack.question.prior.items():
        if isinstance(value, Records):
            yield from _cells(attack, name, value, options, notes)
        elif random_leaves(value):
            yield from _measured(attack, name, name, 1, options, notes)


def _cells(attack: Attack, name: str, table: Records, options: RunOptions, notes: list[str]) -> Iterator[Carrier]:
    if not table.is_fixed:
        notes.append(f"{name} has a random number of rows: its cells are not looked at")
        return
    columns, left = table.table()[0]._fields, MOST_CELLS
    for column in columns:
        clause = max_belief(at_most=1.0, for_each=with_inputs(lambda t, c=column: getattr(t, c), [name]))
        try:
            rows = [row for row in people_apart(attack, clause) if row is not None]
            count = len(listed_people(attack.question, clause.for_each))  # type: ignore[arg-type]
        except PrivugError as error:
            notes.append(f"{name}.{column}: {error}")
            continue
        if len(rows) > left:
            notes.append(f"{name}.{column}: only the first {left} of {len(rows)} rows that differ are looked at")
        for place, row in enumerate(rows[:left]):
            alike = (rows[place + 1] if place + 1 < len(rows) else count) - row if len(rows) < count else 1
            words = f"{name}[{row}].{column}"
            yield from _measured(attack, words, secret_of(attack, clause, row), alike, options, notes)
        left = max(0, left - len(rows))


def _measured(
    attack: Attack, words: str, secret: Any, alike: int, options: RunOptions, notes: list[str]
) -> Iterator[Carrier]:
    try:
        yield Carrier(words, leakage.mutual_information(options.run(about(attack, secret), None).joint), alike)
    except PrivugError as error:
        notes.append(f"{words}: {error}")


def _dangerous(
    attack: Attack, policy: Policy, verdict: Verdict, options: RunOptions, notes: list[str]
) -> tuple[DangerousOutput, ...]:
    """Return all outputs after which the policy does not hold; only the worst that were seen if they are not finite."""
    if verdict.holds:
        return ()
    try:
        views = ClauseJoints.of(attack, policy, options)
    except PrivugError:
        notes.append("not all outputs are known exactly: these are the worst of those that were looked at")
        return tuple(
            DangerousOutput(one.output, math.nan if one.probability is None else one.probability.value, math.nan)
            for one in verdict.evidence
        )
    alone = [(place,) for place in range(len(views.outputs))]
    found = zip(views.outputs, views.marginal, views.excess(alone), views.keep(alone), strict=True)
    broken = [DangerousOutput(o, float(p), float(excess)) for o, p, excess, keeps in found if not keeps]
    return tuple(sorted(broken, key=lambda one: (-one.excess, -one.probability)))


def _lines(attack: Attack, policy: Policy, notes: list[str]) -> tuple[tuple[int, str], ...]:
    """Return the lines at which something was computed from what the secret is made of, on the way to the output."""
    question = attack.question
    case = question.case(question.typical_sizes)
    made_at = question.lines(case)
    if not made_at:
        why = (
            "it computes nothing, or its lines cannot be found"
            if case.lifting.tier == "traced"
            else f"it is {case.lifting}"
        )
        notes.append(f"no lines of the program are told: {why}")
        return ()
    secrets = [case.secret, *(listed_people(question, c.for_each) for c in policy.clauses() if c.for_each is not None)]
    numbers = lines_that_matter(question, case, secrets)
    file = question.program.__code__.co_filename if hasattr(question.program, "__code__") else ""
    return tuple((number, linecache.getline(file, number).strip()) for number in numbers)
