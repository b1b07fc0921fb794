"""What a quantity is called that a function of the inputs computes: the function's name, or as it reads."""

import ast
from typing import Any

from privug.program.traced.source import source_of

LONGEST = 40


def name_of(function: Any) -> str:
    """Return what a function computes, in a few words: its name, or as its lambda reads; nothing if that is unknown.

    >>> def years_of_service(records): ...
    >>> name_of(years_of_service), name_of(len)
    ('years of service', '')
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    if code.co_name != "<lambda>":
        return str(code.co_name).replace("_", " ").strip()
    found = source_of(code)
    return in_words(found.body) if isinstance(found, ast.Lambda) else ""


def in_words(expression: ast.expr) -> str:
    """Return an expression as a reader says it; nothing for one that is too long to be a name.

    >>> [in_words(ast.parse(text, mode="eval").body) for text in ("records[0].age", "df['age'][0]", "a.b, c")]
    ['age of records[0]', 'age of df[0]', 'b of a, c']
    """
    match expression:
        case ast.Attribute(value=whole, attr=part):
            words = f"{part} of {in_words(whole)}"
        case ast.Subscript(value=ast.Subscript(value=whole, slice=ast.Constant(value=str(part))), slice=row):
            words = f"{part} of {in_words(whole)}[{ast.unparse(row)}]"
        case ast.Subscript(value=whole, slice=ast.Constant(value=str(part))):
            words = f"{part} of {in_words(whole)}"
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            words = ", ".join(map(in_words, parts))
        case _:
            words = ast.unparse(expression)
    return words if len(words) <= LONGEST else ""
