"""Finding the syntax of a function in its source file."""

import ast
import inspect
import linecache
import types


def source_of(code: types.CodeType) -> ast.FunctionDef | ast.Lambda | None:
    """Find the syntax of a function in its source file."""
    lines = linecache.getlines(code.co_filename)
    if not lines:
        return None
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return None
    found = [node for node in ast.walk(tree) if _is_definition(node, code)]
    if len(found) > 1:
        found = [node for node in found if _covers(node, code)]
    if len(found) != 1 or _is_generator(code):
        return None
    node = found[0]
    assert isinstance(node, ast.FunctionDef | ast.Lambda)
    return node


def _is_generator(code: types.CodeType) -> bool:
    return bool(code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR))


def _is_definition(node: ast.AST, code: types.CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        return code.co_name == "<lambda>" and node.lineno == code.co_firstlineno
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:
        return False
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return first == code.co_firstlineno


def _covers(node: ast.AST, code: types.CodeType) -> bool:
    """Tell apart several lambdas on one line by the columns of their instructions."""
    assert isinstance(node, ast.Lambda | ast.FunctionDef)
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
