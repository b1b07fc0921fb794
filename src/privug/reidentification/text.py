"""Tables of a few columns as plain text."""

from collections.abc import Sequence

from privug.escaping import inert


def as_lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows under their heads: the first column to the left, the others to the right."""
    head, rows = [*map(inert, head)], [[*map(inert, row)] for row in rows]
    widths = [max(map(len, cells)) for cells in zip(head, *rows, strict=True)]
    lines = []
    for row in (head, *rows):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
