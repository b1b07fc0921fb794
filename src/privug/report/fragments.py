"""Reports as pieces of HTML that stand inside a page or a notebook."""

from collections.abc import Sequence
from typing import Any

from privug.markup import definitions, paragraphs, table, text
from privug.report.facts import known_inputs
from privug.report.summary import Summary
from privug.report.text import measure_title, measure_value


def result_html(summary: Summary) -> str:
    """Return what a result says: the sentences first, then the tables, then how they were found."""
    pieces = [f"<h3>{text(summary.title)}</h3>", paragraphs(summary.sentences), changes_html(summary)]
    return "".join([*pieces, leakage_html(summary), definitions(summary.facts)])


def changes_html(summary: Summary) -> str:
    """Return the table of what is believed before and after."""
    rows = [[line.label, *summary.cells(line)] for line in summary.lines]
    return table(["belief", *summary.columns], rows, numbers=len(summary.columns)) if rows else ""


def leakage_html(summary: Summary) -> str:
    """Return the table of measures, with what each means and how it was obtained."""
    header = ["measure", "value", "what it means", "how it was obtained"]
    rows = [
        [measure_title(row), measure_value(row), row.meaning, how_obtained(row.estimate)] for row in summary.leakage
    ]
    return table(header, rows) if rows else ""


def how_obtained(estimate: Any) -> str:
    """Say how a number was obtained."""
    if estimate.exact:
        return estimate.method if estimate.method.startswith("exact") else "exact"
    return f"{estimate.method or 'sampled'}; 95 % interval"


def comparison_html(summaries: Sequence[Summary]) -> str:
    """Return what several attackers learn, next to each other."""
    columns = [summary.columns for summary in summaries]
    header = ["", *(f"{s.title}: {word}" for s, words in zip(summaries, columns, strict=True) for word in words)]
    found = [{line.label: summary.cells(line) for line in summary.lines} for summary in summaries]
    nothing = [["-"] * len(words) for words in columns]
    rows = []
    for label in dict.fromkeys(label for lines in found for label in lines):
        cells = [lines.get(label, none) for lines, none in zip(found, nothing, strict=True)]
        rows.append([label, *(cell for side in cells for cell in side)])
    measures = [{measure_title(row): measure_value(row) for row in summary.leakage} for summary in summaries]
    titles = dict.fromkeys(title for column in measures for title in column)
    told = [[title, *(column.get(title, "-") for column in measures)] for title in titles]
    named = [summary.title for summary in summaries]
    beliefs = table(header, rows, "What each attacker believes", len(header) - 1)
    return beliefs + table(["measure", *named], told, "What leaks to each attacker", len(named))


def attack_html(attack: Any) -> str:
    """Return the question that an attack asks."""
    facts = [("attacker knows", known_inputs(attack.question))]
    facts.append(("attacker sees", "nothing yet" if attack.observe is None else str(attack.observe)))
    facts += [("question", claim) for claim in attack.questions]
    return f"<h3>{text(f'Attack: {attack.name}')}</h3>" + definitions(facts)
