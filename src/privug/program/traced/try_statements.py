"""Rewriting of `try` statements: a body under a `TryStatement`, then what runs where it failed and where it did not."""

import ast
from abc import abstractmethod

from privug.program.traced.syntax import NotRewritable, frame, method, thunk, variable, within

_LEAVING = ast.Return | ast.Break | ast.Continue | ast.Raise | ast.Assert


class TryStatements(ast.NodeTransformer):
    """The part of rewriting that is about `try`."""

    def __init__(self) -> None:
        self._fresh = 0
        self._handlers: list[tuple[str, int, str | None]] = []
        """The handlers that the code at hand stands in: the statement, the position, the name of the error."""

    @abstractmethod
    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Rewrite a block."""

    def temporary(self) -> str:
        """Return a name that the program does not have."""
        self._fresh += 1
        return f"__privug_{self._fresh}__"

    def visit_Try(self, node: ast.Try) -> list[ast.stmt]:
        """Rewrite a statement: the body, then `else` and the handlers, and `finally` whatever happened."""
        _check_last(node.finalbody)
        statement = self.temporary()
        kinds = [thunk(self.visit(h.type)) if h.type is not None else ast.Constant(None) for h in node.handlers]
        made = ast.Assign([variable(statement, store=True)], frame("attempt", *kinds))
        body: list[ast.stmt] = [ast.With([ast.withitem(variable(statement))], self.block(node.body))]
        if node.orelse:
            rest = within(frame("rest"), self.temporary(), self.block(node.orelse))
            body.append(within(method(statement, "otherwise"), self.temporary(), [rest]))
        for place, handler in enumerate(node.handlers):
            self._handlers.append((statement, place, handler.name))
            caught = method(statement, "caught", ast.Constant(place))
            body.append(within(caught, self.temporary(), self.block(handler.body)))
            self._handlers.pop()
        if not node.finalbody:
            return [made, *body]
        last = within(method(statement, "finally_"), self.temporary(), self.block(node.finalbody))
        return [made, ast.Try(body, [], [], [last])]

    def raised_again(self, node: ast.Raise) -> ast.stmt | None:
        """Return what raises the error of the handler at hand once more, if the statement does that."""
        if not self._handlers or node.cause is not None:
            return None
        statement, place, name = self._handlers[-1]
        if node.exc is None or (isinstance(node.exc, ast.Name) and node.exc.id == name):
            return ast.Expr(frame("fail_again", variable(statement), ast.Constant(place)))
        return None


def check_errors(function: ast.FunctionDef) -> None:
    """Refuse a function that looks at an error it caught, or has another use for its name."""
    handlers = [node for node in ast.walk(function) if isinstance(node, ast.ExceptHandler) and node.name]
    names = {handler.name for handler in handlers}
    handed_on = {id(name) for handler in handlers for name in _handed_on(handler)}
    for node in ast.walk(function) if names else ():
        if isinstance(node, ast.Name) and node.id in names and id(node) not in handed_on:
            raise NotRewritable(f"a look at the error '{node.id}' in line {node.lineno}")


def _handed_on(handler: ast.ExceptHandler) -> list[ast.expr]:
    """Return the names in `raise error` and `raise ... from error`, of which nothing is seen."""
    raised = [inner for inner in ast.walk(handler) if isinstance(inner, ast.Raise)]
    names = [name for inner in raised for name in (inner.exc, inner.cause) if isinstance(name, ast.Name)]
    return [name for name in names if name.id == handler.name]


def _check_last(block: list[ast.stmt]) -> None:
    """Refuse to leave by way of `finally`, which would make an error undone."""
    for inner in (inner for part in block for inner in ast.walk(part)):
        if isinstance(inner, _LEAVING):
            raise NotRewritable(f"'{type(inner).__name__.lower()}' inside 'finally' in line {inner.lineno}")
