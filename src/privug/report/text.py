"""How reports look: as plain text, as pieces of HTML, and as plain values for JSON and data frames."""

import importlib
import io
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as TextTable

from privug.arguments import kinds_checked
from privug.errors import ArgumentError
from privug.escaping import inert
from privug.leakage.register import LeakageRow, LeakageTable
from privug.markup import definitions, paragraphs, table, text
from privug.output import as_json
from privug.report.summary import ReportSummary, known_inputs


def as_frame(rows: list[dict[str, Any]]) -> Any:
    """Return rows as a pandas DataFrame."""
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        raise ArgumentError("to_frame needs pandas: pip install pandas; or use to_dict() or to_json()") from None
    return pandas.DataFrame(rows)


WIDTH = 110


def as_text(summary: ReportSummary, width: int = WIDTH) -> str:
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


def _leakages(summaries: Sequence[ReportSummary]) -> TextTable:
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
    name = row.name.replace("_", " ").replace("kl ", "KL ").replace("bayes", "Bayes")
    return f"{name} {_ABOUT.get(row.about, row.about)}".rstrip()


_ABOUT = {"here": "of this observation", "here (differential)": "of this observation (differential)"}


def measure_value(row: LeakageRow) -> str:
    """Return the value of a measure with its unit, as a table shows it."""
    return f"{row.estimate.number()} {row.estimate.unit}".rstrip()


def _console(buffer: io.StringIO, width: int) -> Console:
    return Console(file=buffer, width=width, color_system=None, highlight=False, markup=False, emoji=False)


def _facts_grid(summary: ReportSummary) -> TextTable:
    facts = TextTable.grid(padding=(0, 2))
    for label, fact in summary.facts:
        facts.add_row(f"  {label}", fact)
    return facts


def _lines(buffer: io.StringIO) -> str:
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines())


def side_by_side(title: str, summaries: Sequence[ReportSummary], width: int = WIDTH) -> str:
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


def _beside(summaries: Sequence[ReportSummary]) -> TextTable:
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


def grid_text(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """Return a table as text: a title, columns of which the first is set left, and numbered notes."""
    title, header, rows, notes = _harmless(title, header, rows, notes)
    buffer = io.StringIO()
    # Wide enough for every cell: numbers are never cut.
    console = Console(file=buffer, width=400, color_system=None, highlight=False, markup=False, emoji=False)
    table = TextTable(box=SIMPLE_HEAD, pad_edge=True)
    for place, name in enumerate(header):
        table.add_column(name, justify="left" if place == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console.print(table)
    lines = [line.rstrip() for line in buffer.getvalue().splitlines()]
    told = [f"({number}) {note}" for number, note in enumerate(notes, 1)]
    wrapped = [textwrap.fill(note, WIDTH, initial_indent="  ", subsequent_indent="      ") for note in told]
    return "\n".join([title, *lines, *wrapped]).rstrip()


def grid_html(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """Return a table as HTML to stand inside a page or a notebook."""
    foot = paragraphs(f"({number}) {note}" for number, note in enumerate(notes, 1))
    return f"<h3>{text(title)}</h3>{table(header, rows, numbers=len(header))}{foot}"


class Grids(ABC):
    """What is told as one or several tables of numbers, and given as rows of plain values."""

    @abstractmethod
    def to_dict(self) -> list[dict[str, Any]]:
        """Return a row of plain values for each number."""

    @abstractmethod
    def _tables(self) -> list[tuple[str, list[str], list[list[str]], list[str]]]:
        """Return the title, the header, the rows and the notes of each table."""

    @kinds_checked
    def to_json(self, indent: int | None = 2) -> str:
        """Return the rows as JSON; infinite numbers as the strings 'inf' and '-inf'."""
        return as_json(self.to_dict(), indent)

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        return as_frame(self.to_dict())

    def __str__(self) -> str:
        return "\n\n".join(grid_text(*table) for table in self._tables())

    def _repr_html_(self) -> str:
        return "".join(grid_html(*table) for table in self._tables())


def _harmless(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]
) -> tuple[str, list[str], list[list[str]], list[str]]:
    return (
        inert(title),
        [*map(inert, header)],
        [[*map(inert, row)] for row in rows],
        [inert(" ".join(note.split())) for note in notes],
    )


def result_html(summary: ReportSummary) -> str:
    """Return what a result says: the sentences first, then the tables, then how they were found."""
    pieces = [f"<h3>{text(summary.title)}</h3>", paragraphs(summary.sentences), changes_html(summary)]
    return "".join([*pieces, leakage_html(summary), definitions(summary.facts)])


def changes_html(summary: ReportSummary) -> str:
    """Return the table of what is believed before and after."""
    rows = [[line.label, *summary.cells(line)] for line in summary.lines]
    return table(["belief", *summary.columns], rows, numbers=len(summary.columns)) if rows else ""


def leakage_html(summary: ReportSummary) -> str:
    """Return the table of measures, with what each means and how it was obtained."""
    header = ["measure", "value", "what it means", "how it was obtained"]
    rows = [
        [measure_title(row), measure_value(row), row.meaning, how_obtained(row.estimate)] for row in summary.leakage
    ]
    return table(header, rows) if rows else ""


def how_obtained(estimate: Any) -> str:
    """Return how a number was obtained."""
    if estimate.exact:
        return estimate.method if estimate.method.startswith("exact") else "exact"
    return f"{estimate.method or 'sampled'}; 95 % interval"


def comparison_html(summaries: Sequence[ReportSummary]) -> str:
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
