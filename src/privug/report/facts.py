"""How a run went, as the lines that head a report."""

from collections.abc import Callable, Sequence
from typing import Any

from privug.digits import how_many
from privug.estimate import Estimate
from privug.inference.answer import Answer
from privug.inference.question import Question
from privug.model.framed import rows_of
from privug.model.structure import flatten
from privug.model.variable import RandomVariable
from privug.prior.family import describe


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
    """Say what the attacker knows: the inputs, the sizes of tables, and how the secret is distributed."""
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
    """Say what is assumed, by the names of the facts, and how likely that was before."""
    names = [str(getattr(fact, "__name__", "<lambda>")) for fact in facts]
    named = [name.replace("_", " ") for name in names if name != "<lambda>"]
    unnamed = len(names) - len(named)
    shown = named + ([f"{unnamed} fact{'s' if unnamed > 1 else ''} about the inputs"] if unnamed else [])
    return f"{'; '.join(shown)} (of probability {probability.number()} under the prior alone)"
