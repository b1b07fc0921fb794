"""Pieces of HTML for pages and notebooks; every text that goes into them is escaped and only shows."""

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

from privug.escaping import inert


def text(words: object) -> str:
    """Return a text as HTML that shows it as it is.

    >>> text("<b>\\x1b[31m & co")
    '&lt;b&gt;\\\\x1b[31m &amp; co'
    """
    return escape(inert(str(words)))


def paragraphs(sentences: Iterable[object]) -> str:
    """Return sentences, each in a paragraph."""
    return "".join(f"<p>{text(sentence)}</p>" for sentence in sentences)


def table(header: Sequence[object], rows: Iterable[Sequence[object]], caption: object = "", numbers: int = 1) -> str:
    """Return a table whose first column heads the rows; so many columns after it are set as numbers.

    >>> print(table(["", "before"], [["P(a < b)", "0.5"]]).replace("><t", ">\\n<t"))
    <table>
    <thead>
    <tr>
    <td></td>
    <th scope="col" class="number">before</th></tr></thead>
    <tbody>
    <tr>
    <th scope="row">P(a &lt; b)</th>
    <td class="number">0.5</td></tr></tbody></table>
    """
    kinds = ["", *[' class="number"'] * numbers, *[""] * len(header)]
    head = "".join(
        f'<th scope="col"{kind}>{text(cell)}</th>' if cell else "<td></td>"
        for cell, kind in zip(header, kinds, strict=False)
    )
    body = "".join(
        f'<tr><th scope="row">{text(row[0])}</th>'
        + "".join(f"<td{kind}>{text(cell)}</td>" for cell, kind in zip(row[1:], kinds[1:], strict=False))
        + "</tr>"
        for row in rows
    )
    named = f"<caption>{text(caption)}</caption>" if caption else ""
    return f"<table>{named}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def definitions(terms: Iterable[tuple[object, object]]) -> str:
    """Return names with what they stand for."""
    return "<dl>" + "".join(f"<dt>{text(name)}</dt><dd>{text(meaning)}</dd>" for name, meaning in terms) + "</dl>"


# No script runs on such a page, and nothing is loaded from anywhere.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(title: str, body: str, style: str = "") -> str:
    """Return a page that needs nothing but itself, in the style of reports and of further rules of CSS."""
    css = files("privug.report").joinpath("templates", "report.css").read_text(encoding="utf-8") + style
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    head += f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    head += f"<title>{text(title)}</title><style>{css}</style>"
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>{body}</body></html>'
