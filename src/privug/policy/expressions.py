"""Expressions in files of policies, as functions that can only look at the values they are given."""

import ast
import builtins
import linecache
import symtable
from collections.abc import Callable, Iterator
from typing import Any

from privug.arguments import shortened
from privug.errors import ArgumentError

FUNCTIONS = frozenset(
    function.__name__
    for function in (
        abs, all, any, bool, enumerate, float, int, len, list, max, min, range, round, set, sorted, str, sum, tuple, zip
    )
)  # fmt: skip
"""The built-in functions that an expression may call."""
LONGEST = 2_000

_ALLOWED = (
    ast.Expression, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Name, ast.Constant, ast.Attribute,
    ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.Set, ast.ListComp, ast.SetComp, ast.GeneratorExp,
    ast.comprehension, ast.Call, ast.keyword, ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop,
)  # fmt: skip


def function_of(text: str, where: str, names: tuple[str, ...] | None = None) -> Callable[..., Any]:
    """Return an expression as a function of the names in it: of those given, or of whatever it asks for.

    `where` says where the expression stands, for messages. Its source is registered in `linecache`, where tracing looks
    for it, under a name that holds all of it: a file that is read anew never changes what an older function was.

    >>> function_of("18 <= secret < 65 and secret != 40", "here", ("secret",))(40)
    False
    """
    tree = _parsed(text, where)
    for node in ast.walk(tree):
        if (wrong := _forbidden(node)) is not None:
            raise ArgumentError(f"{where}: {wrong} in {shortened(repr(text))}")
    source = ast.unparse(tree)
    asked = _free_names(source)
    if names is not None and (unknown := [name for name in asked if name not in names]):
        raise ArgumentError(f"{where}: {unknown[0]!r} is not known in {shortened(repr(text))}; use {', '.join(names)}")
    return _compiled(f"lambda {', '.join(names if names is not None else asked)}: ({source})\n", where)


def _parsed(text: str, where: str) -> ast.Expression:
    if len(text) > LONGEST:
        raise ArgumentError(f"{where}: an expression of {len(text):,} characters; at most {LONGEST:,} are read")
    try:
        return ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else type(error).__name__
        raise ArgumentError(f"{where}: {shortened(repr(text))} is no Python expression: {reason}") from None


def _forbidden(node: ast.AST) -> str | None:
    """Say what is wrong with a part of an expression, if anything is."""
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in FUNCTIONS:
            return None
        case ast.Call(func=function):
            return f"{ast.unparse(function)}(...) is called, but only {', '.join(sorted(FUNCTIONS))} can be,"
        case ast.Attribute(attr=name) if name.startswith("_"):
            return f"the attribute {name!r} begins with an underscore"
        case ast.Name(id=name, ctx=ast.Store()) if name in FUNCTIONS:
            return f"{name!r} is the name of a function and cannot be that of a value"
        case ast.Name(id=name) if name.startswith("__"):
            return f"the name {name!r} begins with underscores"
        case ast.comprehension(is_async=1):
            return "async is used"
    return None if isinstance(node, _ALLOWED) else f"{type(node).__name__} is used, which is not allowed"


def _free_names(source: str) -> tuple[str, ...]:
    """Return the names that an expression takes from outside, in alphabetical order, without built-in functions."""
    table = symtable.symtable(source, "<policy>", "eval")
    found = {symbol.get_name() for scope in _scopes(table) for symbol in scope.get_symbols() if symbol.is_global()}
    return tuple(sorted(found - FUNCTIONS))


def _scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _scopes(child)


def _compiled(source: str, where: str) -> Callable[..., Any]:
    file = f"<{where}: {source.strip()}>"
    linecache.cache[file] = (len(source), None, [source], file)  # without a time: not dropped as out of date
    function: Callable[..., Any] = eval(
        compile(source, file, "eval"), {"__builtins__": builtins, "__name__": "__policies__"}
    )
    return function
