"""Summaries as plain text and as HTML."""

import io
from collections.abc import Sequence
from html import escape

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as TextTable

from privug.escaping import inert
from privug.leakage.table import LeakageRow, LeakageTable
from privug.report.summary import Summary

WIDTH = 110


def as_text(summary: Summary, width: int = WIDTH) -> str:
    """Return a summary as text for a terminal or a file."""
    summary = summary.harmless()
    buffer = io.StringIO()
    console = _console(buffer, width)
    console.print(summary.title)
    console.print(_facts_grid(summary))
    table = TextTable(box=SIMPLE_HEAD, pad_edge=True)
    table.add_column("")
    for column in summary.columns:
        table.add_column(column, justify="right")
    for line in summary.comparisons:
        table.add_row(line.label, *summary.cells(line))
    console.print(table)
    for sentence in summary.sentences:
        console.print(f"  {sentence}")
    if summary.leakage is not None:
        console.print(_leakage_grid(summary.leakage))
    return _lines(buffer)


def _leakage_grid(leakage: LeakageTable) -> TextTable:
    table = TextTable(box=SIMPLE_HEAD, pad_edge=True)
    table.add_column("leakage")
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("what it means")
    for row in leakage:
        table.add_row(_titled(row), f"{row.estimate.number()} {row.estimate.unit}".rstrip(), row.meaning)
    return table


def _leakages(summaries: Sequence[Summary]) -> TextTable:
    """Return the measures of several summaries side by side."""
    columns = [{_titled(row): row.estimate for row in summary.leakage or ()} for summary in summaries]
    table = TextTable(box=SIMPLE_HEAD, pad_edge=True)
    table.add_column("leakage")
    for summary in summaries:
        table.add_column(summary.title, justify="right")
    for title in dict.fromkeys(title for column in columns for title in column):
        found = [column.get(title) for column in columns]
        table.add_row(title, *("-" if e is None else f"{e.number()} {e.unit}".rstrip() for e in found))
    return table


def _titled(row: LeakageRow) -> str:
    return f"{row.name.replace('_', ' ')} {row.about}".rstrip()


def _console(buffer: io.StringIO, width: int) -> Console:
    return Console(file=buffer, width=width, color_system=None, highlight=False, markup=False, emoji=False)


def _facts_grid(summary: Summary) -> TextTable:
    facts = TextTable.grid(padding=(0, 2))
    for label, text in summary.facts:
        facts.add_row(f"  {label}", text)
    return facts


def _lines(buffer: io.StringIO) -> str:
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines())


_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;margin:1rem 0}"
    "td,th{padding:.25rem .9rem .25rem 0;text-align:left;vertical-align:top}"
    "th{border-bottom:1px solid #999}td.number,th.number{text-align:right;white-space:nowrap}"
    "dt{float:left;width:9rem;color:#666}dd{margin-left:9rem}"
)


def as_html_fragment(summary: Summary) -> str:
    """Return a summary as HTML to stand inside a page or a notebook."""
    summary = summary.harmless()
    facts = "".join(f"<dt>{escape(label)}</dt><dd>{escape(text)}</dd>" for label, text in summary.facts)
    lines = "".join(
        f"<tr><td>{escape(line.label)}</td>{_numbers_as_html('td', summary.cells(line))}</tr>"
        for line in summary.comparisons
    )
    head = f"<tr><th></th>{_numbers_as_html('th', summary.columns)}</tr>"
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in summary.sentences)
    leakage = "" if summary.leakage is None else _leakage_as_html(summary.leakage)
    return f"<h2>{escape(summary.title)}</h2><dl>{facts}</dl><table>{head}{lines}</table>{sentences}{leakage}"


def _numbers_as_html(tag: str, cells: Sequence[str]) -> str:
    return "".join(f'<{tag} class="number">{escape(cell)}</{tag}>' for cell in cells)


def _leakage_as_html(leakage: LeakageTable) -> str:
    head = '<tr><th>leakage</th><th class="number"></th><th>what it means</th><th>how it was obtained</th></tr>'
    lines = "".join(
        f'<tr><td>{escape(_titled(row))}</td><td class="number">'
        f"{escape(f'{row.estimate.number()} {row.estimate.unit}'.rstrip())}</td><td>{escape(row.meaning)}</td>"
        f"<td>{escape('exact' if row.estimate.exact else row.estimate.method)}</td></tr>"
        for row in leakage
    )
    return f"<table>{head}{lines}</table>"


def as_html_page(summary: Summary) -> str:
    """Return a summary as a page of its own."""
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width, initial-scale=1"><title>{escape(inert(summary.title))}</title>'
        f"<style>{_STYLE}</style></head><body>{as_html_fragment(summary)}</body></html>"
    )


def side_by_side(title: str, summaries: Sequence[Summary], width: int = WIDTH) -> str:
    """Return several summaries of the same quantities next to each other."""
    summaries = [summary.harmless() for summary in summaries]
    buffer = io.StringIO()
    console = _console(buffer, width)
    console.print(inert(title))
    table = TextTable(box=SIMPLE_HEAD, pad_edge=True)
    table.add_column("")
    for summary in summaries:
        for place, column in enumerate(summary.columns):
            table.add_column(f"{'' if place else summary.title}\n{column}", justify="right")
    for lines in zip(*(summary.comparisons for summary in summaries), strict=True):
        cells = (cell for summary, line in zip(summaries, lines, strict=True) for cell in summary.cells(line))
        table.add_row(lines[0].label, *cells)
    console.print(table)
    if any(summary.leakage is not None for summary in summaries):
        console.print(_leakages(summaries))
    for summary in summaries:
        console.print(summary.title)
        console.print(_facts_grid(summary))
        for sentence in summary.sentences:
            console.print(f"  {sentence}")
        console.print()
    return _lines(buffer)
