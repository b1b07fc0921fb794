"""What a report says, apart from how it looks: sentences, tables of what changed, and how the run went."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from privug.arguments import represented, shown
from privug.digits import full_text, how_many, number_text, percent_text
from privug.errors import PrivugError
from privug.escaping import inert
from privug.estimate import Estimate
from privug.inference import engines
from privug.inference.answer import Answer
from privug.inference.belief import Belief, CredibleInterval
from privug.inference.engines import probability_of
from privug.inference.question import Question
from privug.leakage.register import LeakageTable
from privug.model.batch import Batch, Column
from privug.model.framed import rows_of
from privug.model.node import Kind
from privug.model.structure import flatten
from privug.model.variable import RandomVariable
from privug.observation.observations import StatedFact, words_of
from privug.prior.family import describe

Shown = Estimate | CredibleInterval
LONGEST_LABEL, LONGEST_SENTENCE = 120, 1000


@dataclass(frozen=True)
class BeforeAndAfter:
    """One line of the table: a quantity before and after the observation, if there was one."""

    label: str
    before: Shown
    after: Shown | None

    def to_dict(self) -> dict[str, Any]:
        """Return the line as plain values, with all digits."""
        after = None if self.after is None else _plain(self.after)
        return {"quantity": self.label, "before": _plain(self.before), "after": after}


@dataclass(frozen=True)
class ReportSummary:
    """What was asked, what came out, and how sure it is.

    `sentences` say in words what changed, the most important one first; `questions` are the lines about the attack's
    questions, `comparisons` those about the secret; `facts` are what was asked of whom, and how the answer was found.
    """

    title: str
    sentences: Sequence[str]
    questions: Sequence[BeforeAndAfter]
    comparisons: Sequence[BeforeAndAfter]
    facts: Sequence[tuple[str, str]]
    leakage: LeakageTable

    @property
    def lines(self) -> list[BeforeAndAfter]:
        """All lines of the table, those about the attack's questions first."""
        return [*self.questions, *self.comparisons]

    @property
    def columns(self) -> tuple[str, ...]:
        """What the lines say: how things are before and after the observation, or before alone if there was none."""
        return ("before", "after") if any(line.after is not None for line in self.lines) else ("before",)

    def cells(self, line: BeforeAndAfter) -> list[str]:
        """Return what a line says, column by column."""
        both = [shown_text(line.before), "-" if line.after is None else shown_text(line.after)]
        return both[: len(self.columns)]

    def harmless(self) -> "ReportSummary":
        """Return the same summary with text that only shows and is not endless, whatever data it came from."""
        return ReportSummary(
            _short(self.title),
            [_short(sentence, LONGEST_SENTENCE) for sentence in self.sentences],
            [BeforeAndAfter(_short(line.label), line.before, line.after) for line in self.questions],
            [BeforeAndAfter(_short(line.label), line.before, line.after) for line in self.comparisons],
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
        return value.to_dict()
    ends = {"low": value.low.value, "high": value.high.value}
    return {**ends, "probability": value.probability, "exact": value.low.exact and value.high.exact}


def how_it_went(answer: Answer, *, observed: bool) -> list[tuple[str, str]]:
    """Return what was computed from what, why so, how likely the observation was, and what is to be said besides."""
    diagnostics = answer.diagnostics
    facts = [("computed from", answer.source)]
    if diagnostics.chosen_because and not answer.is_exact:
        facts.append(("engine chosen", f"'{answer.engine}' because {diagnostics.chosen_because}"))
    if observed and diagnostics.evidence is not None:
        evidence = diagnostics.evidence
        facts.append(("P(observation)" if not evidence.unit else "density there", evidence.number()))
    if diagnostics.excluded:
        facts.append(("excluded", f"{how_many(diagnostics.excluded, 'input')} on which the program failed"))
    return facts + [("note", remark) for remark in diagnostics.remarks]


def known_inputs(question: Question) -> str:
    """Return what the attacker knows: the inputs, the sizes of tables, and how the secret is distributed."""
    leaf = flatten(question.case(question.typical_sizes).secret)[1]
    secret = describe(leaf[0].node) if len(leaf) == 1 and isinstance(leaf[0], RandomVariable) else None
    shown = []
    for name, size in _rows_of_inputs(question).items():
        words: Any = size
        if name in question.random_tables:
            words = describe(question.prior[name].size.node) or "a random number of"
        shown.append(name if size is None else f"{name}: {how_many(words, 'row')}")
    return ", ".join(shown) + (f"; secret ~ {secret}" if secret else "")


def known_tables(question: Question) -> list[str]:
    """Return the inputs as a sentence names them, tables with how many rows they have."""
    about = {name: "about " if name in question.random_tables else "" for name in question.prior}
    sizes = _rows_of_inputs(question)
    return [name if size is None else f"{name} ({about[name]}{how_many(size, 'row')})" for name, size in sizes.items()]


def _rows_of_inputs(question: Question) -> dict[str, int | None]:
    """Return how many rows each input has, typically; None for what is no table."""
    inputs = question.case(question.typical_sizes).inputs
    tables = {name: rows_of(value) for name, value in inputs.items()}
    return {name: len(table) if isinstance(table, list) else None for name, table in tables.items()}


def assumption(facts: Sequence[Callable[..., Any]], probability: Estimate) -> str:
    """Return what is assumed, by the names of the facts, and how likely that was before."""
    return f"{'; '.join(facts_in_words(facts))} (of probability {probability.number()} under the prior alone)"


def facts_in_words(facts: Sequence[Callable[..., Any]]) -> list[str]:
    """Return facts in words, and how many there are without."""
    words = [words_of(fact) for fact in facts]
    unnamed = words.count("")
    return [word for word in words if word] + ([how_many(unnamed, "fact") + " about the inputs"] if unnamed else [])


LONGEST_CLAUSE = 90
MOST_NUMBERS = 12  # that a secret may be, and still be thought of as one or the other
MOST_VALUES = 1000  # of a secret whose likeliest value is named
NOTHING_SEEN = "nothing was observed, so this says nothing about what leaks"


@dataclass(frozen=True)
class Attacker:
    """Who the sentences are about: what they know, what else, and what they see: the ends of 'An attacker who ...'."""

    knows: str = ""
    sees: str = ""
    facts: str = ""

    def __str__(self) -> str:
        seen = f"that {self.sees}{',' if ',' in self.sees or ';' in self.sees else ''}"
        sees = f"sees {seen if len(seen) <= LONGEST_CLAUSE else 'the output'}"
        clauses = [f"knows {known}" for known in (self.knows, self.facts) if known] + ([sees] if self.sees else [])
        return "An attacker" + (f" who {listed(clauses)}" if clauses else "")


def listed(clauses: Sequence[str]) -> str:
    """Return clauses as one: 'a', 'a and b', 'a, b and c'."""
    return " and ".join([", ".join(clauses[:-1]), clauses[-1]]) if len(clauses) > 1 else "".join(clauses)


def about_a_claim(attacker: Attacker, claim: str, before: Estimate, after: Estimate | None) -> str:
    """Say in plain words how the belief in a claim changed, or that nothing was observed that could change it.

    >>> seen = Attacker("a lot", "the output is 55.3")
    >>> print(about_a_claim(seen, "Alice is under 18", Estimate(0.18, 0.17, 0.19), Estimate(0.0044, 0.003, 0.006)))
    An attacker who knows a lot and sees that the output is 55.3 becomes 0.44 % sure (was 18 %) that Alice is under 18.
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
    return f"{start} becomes {end} sure (was {percent_text(before.value)}) that {claim}."


def about_the_secret(attacker: Attacker, name: str, before: Belief, after: Belief | None) -> str:
    """Return what became of the belief about a secret: of its likeliest value, or of the range in which it lies."""
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


MOST_LISTED_VALUES = 6
MOST_NUMBERS_COUNTED = 100  # distinct ones, of a number whose likeliest values are listed
MOST_CATEGORIES = 1000  # of anything else
MOST_PARTS = 6
MOST_TOGETHER = 12  # values of several parts that are listed together


def comparisons(before: Belief, after: Belief | None, names: Sequence[str] = ()) -> list[BeforeAndAfter]:
    """Compare a belief before and after an observation, if there was one; a structured quantity part by part.

    `names` are those of its parts.
    """
    parts = list(zip_longest(parts_of(before, names), () if after is None else parts_of(after, names)))
    if len(parts) < 2 or (before.kind is Kind.DISCRETE and before.batch.distinct() <= MOST_TOGETHER):
        return _single_comparisons(before, after)
    lines = []
    for old, new in parts[:MOST_PARTS]:
        if old is not None and (new is not None or after is None):
            found = _single_comparisons(old[1], None if new is None else new[1])
            found = found[:3] if old[1].batch.numbers() is not None else found[:MOST_LISTED_VALUES]
            lines += [replace(line, label=f"{old[0]}: {line.label}") for line in found]
    return lines


def parts_of(belief: Belief, names: Sequence[str]) -> list[tuple[str, Belief]]:
    """Return the values that a structured quantity is made of, each as a belief of its own."""
    batch, parts = belief.batch, []
    named = len(names) == len(batch.columns)
    for position, column in enumerate(batch.columns):
        name = names[position] if named else f"part {position}"
        if column.array.ndim == 1:
            values = column.array if _is_number(column) else column.decoded()
            parts.append((name, _alone(belief, Batch.of_values(values))))
        elif _is_number(column):
            flat = column.array.reshape(len(batch), -1)
            for element in range(flat.shape[1]):
                parts.append((f"{name}[{element}]", _alone(belief, Batch.of_values(flat[:, element]))))
    return parts


def _is_number(column: Column) -> bool:
    return column.levels is None and column.array.dtype.kind in "bif"


def _alone(belief: Belief, batch: Batch) -> Belief:
    return replace(belief, batch=batch, spread=None, curve=None)


def _single_comparisons(before: Belief, after: Belief | None) -> list[BeforeAndAfter]:
    lines: list[BeforeAndAfter] = []
    beliefs = [before] if after is None else [before, after]
    numeric = all(belief.batch.numbers() is not None for belief in beliefs)
    if numeric and before.batch.distinct() > 2:
        lines = [
            _line("mean", [belief.mean() for belief in beliefs]),
            _line("standard deviation", [belief.std() for belief in beliefs]),
            _line("90 % credible interval", [_range(belief) for belief in beliefs]),
        ]
    if before.kind is Kind.CONTINUOUS or any(belief.curve is not None for belief in beliefs):
        return lines
    return lines + _value_comparisons(beliefs, MOST_NUMBERS_COUNTED if numeric else MOST_CATEGORIES)


def _range(belief: Belief) -> CredibleInterval:
    """Return the range of nine tenths, whose ends are shown as finely as the spread of the belief warrants."""
    low, high = (replace(end, resolution=belief.resolution) for end in belief.interval(0.9))
    return CredibleInterval(low, high, 0.9)


def _line(label: str, values: Sequence[Shown]) -> BeforeAndAfter:
    return BeforeAndAfter(label, values[0], values[1] if len(values) > 1 else None)


def _value_comparisons(beliefs: Sequence[Belief], most: int) -> list[BeforeAndAfter]:
    """Compare the probabilities of the likeliest values, and of all others together."""
    if max(belief.batch.distinct() for belief in beliefs) > most:
        return []
    known = [belief.distribution() for belief in beliefs]
    never = [belief.probability(lambda value: False) for belief in beliefs]
    values = list(dict.fromkeys(value for distribution in reversed(known) for value in distribution))
    shown, others = values[:MOST_LISTED_VALUES], set(values[MOST_LISTED_VALUES:])
    lines = []
    for value in shown:
        shares = [distribution.get(value, none) for distribution, none in zip(known, never, strict=True)]
        lines.append(_line(f"P({_value_text(value)})", shares))
    if others:
        rest = [belief.probability_of(others) for belief in beliefs]
        lines.append(_line(f"P(one of {len(others)} other values)" if len(others) > 1 else "P(another value)", rest))
    return lines


def _value_text(value: Any) -> str:
    """Return a value as it is written in Python, but for floats, of which nobody needs the last digits."""
    return full_text(float(f"{value:.10g}")) if isinstance(value, float) else represented(value)


NOTHING_YET = "nothing yet: these are the attacker's predictions"
MOST_INPUTS_NAMED = 3

Claim = tuple[str, Estimate, Estimate | None]
"""A question of an attack, and its probability before and after."""


def summary_of(result: Any, answer: Answer, remarks: Sequence[str]) -> ReportSummary:
    """Return what a report says about the result of an attack, which an engine gave."""
    question: Question = result.attack.question
    claims = claims_of(result)
    lines = [BeforeAndAfter(f"P({claim})", old, new) for claim, old, new in claims]
    sentences, table = sentences_of(result, claims), result.leakage()
    sentences += [table.warning] if table.warning else []
    names = question.secret if isinstance(question.secret, list | tuple) else ()
    changes = comparisons(result.prior, _after(result), names)
    title = f"Privug: {result.attack.name}"
    return ReportSummary(title, sentences, lines, changes, _facts(result, answer, remarks), table)


def claims_of(result: Any) -> list[Claim]:
    """Return the attack's questions, with the probabilities before and after."""
    prior, after = result.prior, _after(result)
    return [
        (
            claim,
            probability_of(claim, predicate, prior),
            None if after is None else probability_of(claim, predicate, after),
        )
        for claim, predicate in result.attack.questions.items()
    ]


def sentences_of(result: Any, claims: Sequence[Claim]) -> list[str]:
    """Return what an attack comes to: a sentence for each question, the largest change first, or about the secret."""
    attacker = _attacker(result)
    ranked = sorted(claims, key=lambda one: 0.0 if one[2] is None else -abs(one[2].value - one[1].value))
    told = [about_a_claim(attacker, *claim) for claim in ranked]
    return told or [about_the_secret(attacker, secret_words(result.attack.question), result.prior, _after(result))]


def _after(result: Any) -> Belief | None:
    """Return the posterior of a result; None if nothing was seen."""
    return None if result.observation is None else result.posterior


def secret_words(question: Question) -> str:
    """Return what the secret is called in a sentence."""
    name = question.secret_name
    return f"the {name}" if name == "secret" or " of " in name else name


def _attacker(result: Any) -> Attacker:
    """Return who the sentences are about."""
    names = known_tables(result.attack.question)
    if len(names) > MOST_INPUTS_NAMED:
        knows = f"the distributions of {len(names)} inputs"
    else:
        knows = f"the distribution{'s' * (len(names) > 1)} of {' and '.join(names)}"
    sees = "" if result.observation is None else str(result.observation)
    return Attacker(knows, sees, _known_facts(result.attack.question.facts))


def _known_facts(facts: Sequence[Callable[..., Any]]) -> str:
    """Return what an attacker knows besides distributions, as the end of 'An attacker who knows'."""
    stated = [f"that {fact.words}" for fact in facts if isinstance(fact, StatedFact)]
    if len(stated) == len(facts) and len(told := listed(stated)) <= LONGEST_CLAUSE:
        return told
    return how_many(len(facts), "fact") + " about the inputs"


def _facts(result: Any, answer: Answer, remarks: Sequence[str]) -> list[tuple[str, str]]:
    """Return who attacked what, what was seen, and how the answer was found."""
    question: Question = result.attack.question
    seen = NOTHING_YET if result.observation is None else str(result.observation)
    facts = [("attacker knows", known_inputs(question))]
    if question.facts:
        facts.append(("attacker assumes", assumption(question.facts, engines.check_facts(question))))
    facts += [("attacker sees", seen), ("program", f"{result.lifting.tier}; engine '{result.engine}'")]
    notes = [("note", remark) for remark in remarks]
    return facts + how_it_went(answer, observed=result.observation is not None) + notes


def plain_values(result: Any) -> dict[str, Any]:
    """Return what a report says as plain values, numbers with all their digits."""
    summary: ReportSummary = result.content
    evidence = result.diagnostics.evidence
    return {
        "attack": result.attack.name,
        "summary": summary.sentences[0],
        "sentences": list(summary.sentences),
        "beliefs": [line.to_dict() for line in summary.lines],
        "leakage": summary.leakage.to_dict(),
        "engine": result.engine,
        "options": dict(result.options),
        "evidence": None if result.observation is None or evidence is None else evidence.value,
        "facts": {label: text for label, text in summary.facts if label != "note"},
        "notes": [text for label, text in summary.facts if label == "note"],
    }
