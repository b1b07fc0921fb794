"""Summaries as plain text."""

import io
import textwrap
from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as TextTable

from privug.escaping import inert
from privug.leakage.table import LeakageRow, LeakageTable
from privug.report.summary import Summary

WIDTH = 110


def as_text(summary: Summary, width: int = WIDTH) -> str:
    """Return a summary as text for a terminal or a file: what was learned first, then how that is known."""
    summary = summary.harmless()
    buffer = io.StringIO()
    console = _console(buffer, width)
    console.print(summary.title)
    console.print(_wrapped(summary.sentences, width))
    if summary.lines:
        table = TextTable(box=SIMPLE_HEAD, pad_edge=True)
        table.add_column("")
        for column in summary.columns:
            table.add_column(column, justify="right")
        for line in summary.lines:
            table.add_row(line.label, *summary.cells(line))
        console.print(table)
    if summary.leakage.rows:
        console.print(_leakage_grid(summary.leakage))
    console.print(_facts_grid(summary))
    return _lines(buffer)


def _wrapped(sentences: Iterable[str], width: int) -> str:
    return "\n".join(
        textwrap.fill(sentence, width, initial_indent="  ", subsequent_indent="    ") for sentence in sentences
    )


def _leakage_grid(leakage: LeakageTable) -> TextTable:
    table = TextTable(box=SIMPLE_HEAD, pad_edge=True)
    table.add_column("leakage")
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("what it means")
    for row in leakage:
        table.add_row(measure_title(row), measure_value(row), row.meaning)
    return table


def _leakages(summaries: Sequence[Summary]) -> TextTable:
    """Return the measures of several summaries side by side."""
    columns = [{measure_title(row): measure_value(row) for row in summary.leakage} for summary in summaries]
    table = TextTable(box=SIMPLE_HEAD, pad_edge=True)
    table.add_column("leakage")
    for summary in summaries:
        table.add_column(summary.title, justify="right")
    for title in dict.fromkeys(title for column in columns for title in column):
        table.add_row(title, *(column.get(title, "-") for column in columns))
    return table


def measure_title(row: LeakageRow) -> str:
    """Return the name of a measure as a table shows it."""
    return f"{row.name.replace('_', ' ')} {row.about}".rstrip()


def measure_value(row: LeakageRow) -> str:
    """Return the value of a measure with its unit, as a table shows it."""
    return f"{row.estimate.number()} {row.estimate.unit}".rstrip()


def _console(buffer: io.StringIO, width: int) -> Console:
    return Console(file=buffer, width=width, color_system=None, highlight=False, markup=False, emoji=False)


def _facts_grid(summary: Summary) -> TextTable:
    facts = TextTable.grid(padding=(0, 2))
    for label, text in summary.facts:
        facts.add_row(f"  {label}", text)
    return facts


def _lines(buffer: io.StringIO) -> str:
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines())


def side_by_side(title: str, summaries: Sequence[Summary], width: int = WIDTH) -> str:
    """Return several summaries next to each other: what each attacker learns first, then what all of them share."""
    summaries = [summary.harmless() for summary in summaries]
    buffer = io.StringIO()
    console = _console(buffer, width)
    console.print(inert(title))
    for summary in summaries:
        console.print(_wrapped([f"{summary.title}: {sentence}" for sentence in summary.sentences], width))
    console.print(_beside(summaries))
    if any(summary.leakage.rows for summary in summaries):
        console.print(_leakages(summaries))
    for summary in summaries:
        console.print(summary.title)
        console.print(_facts_grid(summary))
        console.print()
    return _lines(buffer)


def _beside(summaries: Sequence[Summary]) -> TextTable:
    """Return the lines that any of the summaries has, each with its values before and after."""
    table = TextTable(box=SIMPLE_HEAD, pad_edge=True)
    table.add_column("")
    found = []
    for summary in summaries:
        found.append({line.label: summary.cells(line) for line in summary.lines})
        for place, column in enumerate(summary.columns):
            table.add_column(f"{'' if place else summary.title}\n{column}", justify="right")
    for label in dict.fromkeys(label for lines in found for label in lines):
        nothing = [["-"] * len(summary.columns) for summary in summaries]
        cells = [lines.get(label, none) for lines, none in zip(found, nothing, strict=True)]
        table.add_row(label, *(cell for side in cells for cell in side))
    return table
