"""Finding the syntax of a function in its source file."""

import ast
import copy
import inspect
import linecache
import types
from collections import defaultdict
from functools import lru_cache

Definition = ast.FunctionDef | ast.Lambda


def source_of(code: types.CodeType) -> Definition | None:
    """Find the syntax of a function in its source file; it is the caller's own, and may be rewritten."""
    lines = linecache.getlines(code.co_filename)
    if not lines or _is_generator(code):
        return None
    found = _definitions("".join(lines)).get((code.co_name, code.co_firstlineno), [])
    if len(found) > 1:
        found = [node for node in found if _covers(node, code)]
    return copy.deepcopy(found[0]) if len(found) == 1 else None


@lru_cache(maxsize=4)  # programs of one file are lifted one after the other; a large file takes a while to parse
def _definitions(text: str) -> dict[tuple[str, int], list[Definition]]:
    """Return all functions of a file by what their code says: the name and the first line."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return {}
    found: defaultdict[tuple[str, int], list[Definition]] = defaultdict(list)
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            found["<lambda>", node.lineno].append(node)
        elif isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found[node.name, first].append(node)
    return dict(found)


def _is_generator(code: types.CodeType) -> bool:
    return bool(code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR))


def _covers(node: Definition, code: types.CodeType) -> bool:
    """Tell apart several lambdas on one line by the columns of their instructions."""
    body = node.body if isinstance(node, ast.Lambda) else node
    spots = [(p[0], p[2]) for p in code.co_positions() if p[0] is not None and p[2] is not None and p[3]]
    start, end = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
    inside = [spot for spot in spots if start <= spot < end]
    names = [argument.arg for argument in node.args.args]
    return (
        bool(inside)
        and len(inside) == len(spots) - spots.count((code.co_firstlineno, 0))
        and (tuple(names) == code.co_varnames[: len(names)])
    )
