"""Plain tables with notes: as text and as HTML."""

import io
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as TextTable

from privug.arguments import kinds_checked
from privug.escaping import inert
from privug.markup import paragraphs, text
from privug.markup import table as html_table
from privug.report.plain import as_frame, as_json

WIDTH = 110


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
    return f"<h3>{text(title)}</h3>{html_table(header, rows, numbers=len(header))}{foot}"


def grid_page(title: str, body: str) -> str:
    """Return a page of its own around pieces of HTML, in the style of reports."""
    style = files("privug.report").joinpath("templates", "report.css").read_text(encoding="utf-8")
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    head += f"<title>{text(title)}</title><style>{style}</style>"
    return f'<!DOCTYPE html><html lang="en"><head>{head}</head><body><main>{body}</main></body></html>'


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
