"""The pieces of syntax that rewritten programs are made of."""

import ast

RUNTIME = "__privug__"
FRAME = "__frame__"


def variable(name: str, store: bool = False) -> ast.Name:
    """Return a variable, to be read or assigned."""
    return ast.Name(name, ast.Store() if store else ast.Load())


def runtime(name: str, *arguments: ast.expr) -> ast.Call:
    """Return a call of what rewritten code finds at run time."""
    return ast.Call(ast.Attribute(variable(RUNTIME), name, ast.Load()), list(arguments), [])


def frame(name: str, *arguments: ast.expr) -> ast.Call:
    """Return a call of a method of the function's frame."""
    return ast.Call(ast.Attribute(variable(FRAME), name, ast.Load()), list(arguments), [])


def thunk(body: ast.expr) -> ast.Lambda:
    """Return a function without parameters."""
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), body)


def text(value: str) -> ast.Constant:
    """Return a string."""
    return ast.Constant(value)
