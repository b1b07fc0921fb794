"""What is told of a result: the sentences, tables and facts that every kind of report is made of."""

from collections.abc import Sequence
from typing import Any

from privug.inference import engines
from privug.inference.answer import Answer
from privug.inference.claims import probability_of
from privug.inference.question import Question
from privug.report.comparing import comparisons
from privug.report.facts import assumption, how_it_went, known_inputs, known_tables
from privug.report.summary import Comparison, Summary
from privug.report.verdict import Attacker, about_a_claim, about_the_secret

NOTHING_YET = "nothing yet: these are the attacker's predictions"
MOST_INPUTS_NAMED = 3


def summary_of(result: Any, answer: Answer, remarks: Sequence[str]) -> Summary:
    """Return what a report says about the result of an attack, which an engine gave."""
    attack, after = result.attack, None if result.observation is None else result.posterior
    question: Question = attack.question
    attacker = _attacker(result)
    lines, told = [], []
    for claim, predicate in attack.questions.items():
        old = probability_of(claim, predicate, result.prior)
        new = None if after is None else probability_of(claim, predicate, after)
        lines.append(Comparison(f"P({claim})", old, new))
        told.append((0.0 if new is None else abs(new.value - old.value), about_a_claim(attacker, claim, old, new)))
    sentences = [sentence for _, sentence in sorted(told, key=lambda one: -one[0])]
    if not sentences:
        sentences.append(about_the_secret(attacker, secret_words(question), result.prior, after))
    table = result.leakage()
    sentences += [table.warning] if table.warning else []
    names = question.secret if isinstance(question.secret, list | tuple) else ()
    changes = comparisons(result.prior, after, names)
    return Summary(f"Privug: {attack.name}", sentences, lines, changes, _facts(result, answer, remarks), table)


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
    return Attacker(knows, "" if result.observation is None else str(result.observation))


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
    summary: Summary = result.content
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
