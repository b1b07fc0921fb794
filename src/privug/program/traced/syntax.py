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


def method(owner: str, name: str, *arguments: ast.expr) -> ast.Call:
    """Return a call of a method of what a variable holds."""
    return ast.Call(ast.Attribute(variable(owner), name, ast.Load()), list(arguments), [])


def within(block: ast.expr, runs: str, body: list[ast.stmt]) -> ast.stmt:
    """Return a block that a context manager says whether to run; Python nests no more than twenty of them."""
    inner = ast.If(variable(runs), body or [ast.Pass()], [])
    return ast.With([ast.withitem(block, variable(runs, store=True))], [inner])


class NotRewritable(Exception):
    """The function uses something that rewriting would get wrong."""


def pattern_test(pattern: ast.pattern, subject: str) -> ast.expr:
    """Return the test whether a variable matches a pattern."""
    match pattern:
        case ast.MatchValue(value=value):
            return ast.Compare(variable(subject), [ast.Eq()], [value])
        case ast.MatchSingleton(value=value):
            return ast.Compare(variable(subject), [ast.Is()], [ast.Constant(value)])
        case ast.MatchOr(patterns=patterns):
            return ast.BoolOp(ast.Or(), [pattern_test(part, subject) for part in patterns])
        case ast.MatchAs(pattern=None, name=None):
            return ast.Constant(True)
    raise NotRewritable("a structural pattern")
