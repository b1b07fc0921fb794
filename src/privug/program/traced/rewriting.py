"""Rewriting a program's source so that control flow on random values builds the graph.

The rewritten function is ordinary Python that calls `control` and `functions`. On plain values it behaves
as the original does. What is not rewritten (with, del, yield, ...) stays as it is and is refused where it
would run under a random condition.
"""

import ast
import copy
import functools
import inspect
import linecache
import types
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

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


_SCOPES = ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.FunctionDef | ast.ClassDef


class LoopVariables:
    """The variables that a loop assigns.

    `handed_on` are those that some round may read before it assigns them; `temporary` the others;
    `containers` those whose items are changed in place; `numbered` those of which it looks at the items one by one, in
    `for i in range(...)`, by their positions.
    """

    def __init__(self, loop: ast.For) -> None:
        stored = dict.fromkeys(name for node in (loop.target, *loop.body) for name in _stored(node))
        read: set[str] = set()
        _follow(loop.body, set(_stored(loop.target)), read)
        self.handed_on = [name for name in stored if name in read]
        self.temporary = [name for name in stored if name not in read]
        changed = dict.fromkeys(name for node in loop.body for name in _changed(node))
        self.containers = [name for name in changed if name not in stored]
        self.numbered = [name for name in _numbered(loop) if name not in stored]


def _stored(node: ast.AST) -> list[str]:
    """Return the variables that a statement assigns, in functions inside it aside."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, _SCOPES):
        return []
    own = [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else []
    return own + [name for child in ast.iter_child_nodes(node) for name in _stored(child)]


_CHANGING = {"add", "update", "setdefault", "pop", "clear"}
"""Methods of dictionaries and sets that change them."""


def _changed(node: ast.AST) -> list[str]:
    """Return the variables whose items a statement sets, or of which it calls a method that changes them."""
    found = []
    for inner in ast.walk(node):
        match inner:
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                found.append(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if method in _CHANGING:
                found.append(name)
    return found


def _numbered(loop: ast.For) -> list[str]:
    """Return the variables that a loop over a range subscripts by its counter."""
    match loop:
        case ast.For(target=ast.Name(id=counter), iter=ast.Call(func=ast.Name(id="range"))):
            inside = (inner for part in loop.body for inner in ast.walk(part))
            return list(dict.fromkeys(name for inner in inside for name in _subscripted(inner, counter)))
    return []


def _subscripted(node: ast.AST, counter: str) -> list[str]:
    match node:
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Name(id=key)) if key == counter:
            return [name]
    return []


def _loaded(nodes: Iterable[ast.AST]) -> set[str]:
    return {
        inner.id
        for node in nodes
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)
    }


def _follow(block: Sequence[ast.stmt], assigned: set[str], read: set[str]) -> set[str]:
    """Go through a block; collect what is read that may not be assigned yet; return what is assigned for sure."""
    assigned = set(assigned)
    for statement in block:
        match statement:
            case ast.If(test=test, body=body, orelse=orelse):
                read |= _loaded([test]) - assigned
                assigned = _follow(body, assigned, read) & _follow(orelse, assigned, read)
            case ast.For(target=target, iter=items, body=body, orelse=orelse):
                read |= _loaded([items]) - assigned
                _follow([*body, *orelse], assigned | set(_stored(target)), read)
            case ast.While() | ast.Match():
                read |= _loaded([statement]) - assigned
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=last):
                ends = [_follow(orelse, _follow(body, assigned, read), read)]
                for handler in handlers:
                    read |= _loaded([handler.type] if handler.type else []) - assigned
                    ends.append(_follow(handler.body, assigned, read))
                assigned = set.intersection(*ends) | _follow(last, assigned, read)
            case ast.AugAssign(target=target, value=value):
                read |= (_loaded([target, value]) | set(_stored(target))) - assigned
            case _:
                read |= _loaded([statement]) - assigned
                assigned |= set(_stored(statement))
    return assigned


def prepared(variables: LoopVariables) -> list[ast.stmt]:
    """Prepare the variables of a loop for a round that stands for many rows."""
    steps = _assigned_by("carried", variables.handed_on) + _assigned_by("set_aside", variables.temporary)
    return _if("for_many", steps + _told("changing", variables.containers)) + _apart(variables)


def finished(variables: LoopVariables) -> list[ast.stmt]:
    """Bring the variables of a loop to what they are after a round that stood for many rows."""
    steps = _assigned_by("folded", [*variables.handed_on, *variables.temporary])
    return _if("for_many", steps) + _apart(variables)


def _apart(variables: LoopVariables) -> list[ast.stmt]:
    return _if("by_parts", _assigned_by("lost", variables.temporary))


def _if(condition: str, steps: list[ast.stmt]) -> list[ast.stmt]:
    return [ast.If(ast.Attribute(variable(FRAME), condition, ast.Load()), steps, [])] if steps else []


def _assigned_by(method: str, names: list[str]) -> list[ast.stmt]:
    targets = ast.Tuple([variable(name, store=True) for name in names], ast.Store())
    return [ast.Assign([targets], frame(method, *(thunk(variable(name)) for name in names)))] if names else []


def _told(method: str, names: list[str]) -> list[ast.stmt]:
    return [ast.Expr(frame(method, *(thunk(variable(name)) for name in names)))] if names else []


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


INNER = "__rewritten__"
_JOINING = {ast.And: "and_", ast.Or: "or_"}


@functools.lru_cache(maxsize=512)
def rewritten_code(code: types.CodeType, filename: str) -> types.CodeType | str | None:
    """Return the code of the rewritten function, what stood in the way, or None if its source is not at hand."""
    node = source_of(code)
    if node is None:
        return None
    try:
        function = _Rewriter().rewrite(node)
    except NotRewritable as obstacle:
        return str(obstacle.args[0])
    names = [RUNTIME, *code.co_freevars]
    arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
    function.name = INNER  # under its own name it would hide the function that it may call itself by
    outer = ast.FunctionDef("outer", arguments, [function], [])
    module = ast.fix_missing_locations(ast.Module([outer], []))
    compiled = compile(module, filename, "exec")
    return _inner(_inner(compiled, "outer"), INNER)


def _inner(code: types.CodeType, name: str) -> types.CodeType:
    return next(const for const in code.co_consts if isinstance(const, types.CodeType) and const.co_name == name)


class _Rewriter(TryStatements):
    """Rewrites one function; nested functions and lambdas too, each with a frame of its own."""

    def rewrite(self, node: ast.FunctionDef | ast.Lambda) -> ast.FunctionDef:
        """Return the rewritten function."""
        if isinstance(node, ast.Lambda):
            body: list[ast.stmt] = [ast.Return(node.body)]
            node = ast.copy_location(ast.FunctionDef("rewritten_lambda", node.args, body, []), node)
        result = self.visit_FunctionDef(node)
        result.decorator_list = []
        return result

    def visit(self, node: ast.AST) -> Any:
        """Rewrite a part of the program; what it becomes stands at the same line."""
        result = super().visit(node)
        return _placed(result, node) if isinstance(result, ast.expr) and isinstance(node, ast.expr) else result

    # Functions.
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        check_errors(node)
        body = [
            ast.Assign([variable(FRAME, store=True)], runtime("Activation")),
            *self.block(node.body),
            ast.Return(frame("result")),
        ]
        defaults = ast.arguments(
            node.args.posonlyargs, node.args.args, node.args.vararg, node.args.kwonlyargs,
            [self.visit(d) if d is not None else None for d in node.args.kw_defaults], node.args.kwarg,
            [self.visit(d) for d in node.args.defaults],
        )  # fmt: skip
        decorators = [self.visit(decorator) for decorator in node.decorator_list]
        return ast.copy_location(ast.FunctionDef(node.name, defaults, body, decorators), node)

    def _refuse(self, node: ast.AST) -> ast.AST:
        raise NotRewritable(f"'{type(node).__name__.lower()}' in line {getattr(node, 'lineno', 0)}")

    visit_AsyncFunctionDef = visit_Yield = visit_YieldFrom = visit_Await = visit_NamedExpr = _refuse
    visit_TryStar = visit_With = visit_Global = visit_Nonlocal = _refuse

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    # Statements.
    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Rewrite a block; what follows a statement that may leave runs only where it did not."""
        result: list[ast.stmt] = []
        for position, statement in enumerate(statements):
            visited = self.visit(statement)
            new = visited if isinstance(visited, list) else [visited]
            result.extend(_placed(part, statement) for part in new)
            rest = statements[position + 1 :]
            if rest and _may_leave(statement):
                result.append(self._rest(self.block(rest)))
                break
        return result

    def _rest(self, body: list[ast.stmt]) -> ast.stmt:
        return within(frame("rest"), self.temporary(), body)

    def _branch(self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> list[ast.stmt]:
        choice = self.temporary()
        made = ast.Assign([variable(choice, store=True)], frame("choice", test, ast.Constant(bool(orelse))))
        result: list[ast.stmt] = [made, within(method(choice, "yes"), self.temporary(), body)]
        return [*result, within(method(choice, "no"), self.temporary(), orelse)] if orelse else result

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        return self._branch(self._test(node.test), self.block(node.body), self.block(node.orelse))

    def _test(self, node: ast.expr) -> ast.expr:
        """Rewrite an expression of which only the truth matters: what `and` and `or` give is then a condition, too."""
        visited: ast.expr
        if isinstance(node, ast.BoolOp):
            truths = [runtime("truth", self._test(value)) for value in node.values]
            visited = _placed(runtime(_JOINING[type(node.op)], *map(thunk, truths)), node)
        else:
            visited = self.visit(node)
        return visited

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        value = self.visit(node.value) if node.value is not None else ast.Constant(None)
        return ast.Expr(frame("give_back", value))

    def visit_Break(self, node: ast.Break) -> ast.stmt:
        return ast.Expr(frame("break_off"))

    def visit_Continue(self, node: ast.Continue) -> ast.stmt:
        return ast.Expr(frame("go_on"))

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        item, variables = self.temporary(), LoopVariables(node)
        inner = self._rest([*self._assignment(node.target, variable(item)), *self.block(node.body)])
        body = [*prepared(variables), inner, *finished(variables)]
        items = frame("loop", self.visit(node.iter), *(thunk(variable(name)) for name in variables.numbered))
        loop = ast.For(variable(item, store=True), items, body, [])
        return [loop, *self._after_loop(node.orelse)]

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        item = self.temporary()
        rounds = frame("while_true", thunk(self.visit(node.test)))
        loop = ast.For(variable(item, store=True), rounds, self._guarded(node.body), [])
        return [loop, *self._after_loop(node.orelse)]

    def _guarded(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [self._rest(self.block(body))]

    def _after_loop(self, orelse: list[ast.stmt]) -> list[ast.stmt]:
        if not orelse:
            return [ast.Expr(frame("end_loop"))]
        unbroken = self.temporary()
        ended = ast.Assign([variable(unbroken, store=True)], frame("end_loop"))
        return [ended, self._rest(self._branch(variable(unbroken), self.block(orelse), []))]

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        match node:
            case ast.Assign(targets=[ast.Subscript(value=owner, slice=key)], value=ast.List() | ast.ListComp()):
                if not isinstance(key, ast.Slice):
                    fresh = self.temporary()
                    made = ast.Assign([variable(fresh, store=True)], self.visit(node.value))
                    parts = [self.visit(owner), self.visit(key), variable(fresh), ast.Constant(True)]
                    return [made, ast.Expr(frame("set_item", *parts))]
        value = self.temporary()
        result: list[ast.stmt] = [ast.Assign([variable(value, store=True)], self.visit(node.value))]
        for target in node.targets:
            result.extend(self._assignment(target, variable(value)))
        return result

    def visit_AnnAssign(self, node: ast.AnnAssign) -> list[ast.stmt]:
        if node.value is None:
            return [ast.Pass()]
        return self.visit_Assign(ast.Assign([node.target], node.value))

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        if isinstance(node.op, ast.Add) and isinstance(node.target, ast.Name):
            # A list grows in place: everyone who holds it must see that.
            grown = frame("grow", variable(node.target.id), self.visit(node.value))
            return self._assignment(node.target, grown)
        if isinstance(node.target, ast.Name):
            read = ast.BinOp(variable(node.target.id), node.op, node.value)
            return self.visit_Assign(ast.Assign([node.target], read))
        return self._changed_in_place(node.target, node.op, self.visit(node.value))

    def _changed_in_place(
        self, target: ast.Attribute | ast.Subscript, op: ast.operator, more: ast.expr
    ) -> list[ast.stmt]:
        """Change what an attribute or a subscript holds; owner and key are looked at once."""
        owner, key = self.temporary(), self.temporary()
        result: list[ast.stmt] = [ast.Assign([variable(owner, store=True)], self.visit(target.value))]
        if isinstance(target, ast.Attribute):
            read: ast.expr = ast.Attribute(variable(owner), target.attr, ast.Load())
            place: list[ast.expr] = [variable(owner), text(target.attr)]
        else:
            result.append(ast.Assign([variable(key, store=True)], self.visit(target.slice)))
            read = runtime("subscript", variable(owner), variable(key))
            place = [variable(owner), variable(key)]
        new = frame("grow", read, more) if isinstance(op, ast.Add) else ast.BinOp(read, op, more)
        write = "set_attribute" if isinstance(target, ast.Attribute) else "set_item"
        return [*result, ast.Expr(frame(write, *place, new))]

    def _assignment(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        match target:
            case ast.Name(id=name):
                new = frame("assign", value, thunk(variable(name)))
                return [ast.Assign([variable(name, store=True)], new)]
            case ast.Attribute(value=owner, attr=attribute):
                return [ast.Expr(frame("set_attribute", self.visit(owner), text(attribute), value))]
            case ast.Subscript(value=owner, slice=key) if not isinstance(key, ast.Slice):
                return [ast.Expr(frame("set_item", self.visit(owner), self.visit(key), value))]
            case ast.Tuple(elts=parts) | ast.List(elts=parts) if not any(isinstance(p, ast.Starred) for p in parts):
                names = [self.temporary() for _ in parts]
                unpacked = ast.Tuple([variable(name, store=True) for name in names], ast.Store())
                result: list[ast.stmt] = [ast.Assign([unpacked], value)]
                for part, name in zip(parts, names, strict=True):
                    result.extend(self._assignment(part, variable(name)))
                return result
        return [ast.Expr(frame("plainly", text("this assignment"))), ast.Assign([target], value)]

    def _only_plainly(self, what: str, node: ast.stmt) -> list[ast.stmt]:
        visited = self.generic_visit(node)
        assert isinstance(visited, ast.stmt)
        return [ast.Expr(frame("plainly", text(what))), visited]

    def visit_Raise(self, node: ast.Raise) -> ast.stmt | list[ast.stmt]:
        again = self.raised_again(node)
        if again is not None:
            return again
        if node.exc is None:
            return self._only_plainly("raise", node)
        kind = [self.visit(node.exc.func)] if isinstance(node.exc, ast.Call) else []
        return ast.Expr(frame("fail", thunk(self.visit(node.exc)), *kind))

    def visit_Delete(self, node: ast.Delete) -> list[ast.stmt]:
        return self._only_plainly("del", node)

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        failing = ast.Raise(ast.Call(variable("AssertionError"), [node.msg] if node.msg else [], []))
        return self.visit_If(ast.If(ast.UnaryOp(ast.Not(), node.test), [failing], []))

    def visit_Match(self, node: ast.Match) -> list[ast.stmt]:
        subject = self.temporary()
        chain: list[ast.stmt] = []
        for case in reversed(node.cases):
            test = pattern_test(case.pattern, subject)
            if case.guard is not None:
                test = ast.BoolOp(ast.And(), [test, case.guard])
            chain = [ast.If(test, case.body, chain)]
        return [ast.Assign([variable(subject, store=True)], self.visit(node.subject)), *self.block(chain)]

    # Expressions.
    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        return ast.Lambda(node.args, self.visit(node.body))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        return runtime(_JOINING[type(node.op)], *(thunk(self.visit(value)) for value in node.values))

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        left, right = self.visit(node.left), self.visit(node.right)
        is_text = isinstance(node.left, ast.JoinedStr) or isinstance(getattr(node.left, "value", None), str)
        if isinstance(node.op, ast.Mod) and isinstance(node.left, ast.JoinedStr | ast.Constant) and is_text:
            return runtime("percent", left, right)
        return ast.BinOp(left, node.op, right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        operand = self.visit(node.operand)
        return runtime("not_", operand) if isinstance(node.op, ast.Not) else ast.UnaryOp(node.op, operand)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        return runtime("choose", self._test(node.test), thunk(self.visit(node.body)), thunk(self.visit(node.orelse)))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        steps: list[ast.expr] = [
            ast.Tuple([text(type(op).__name__), thunk(self.visit(right))], ast.Load())
            for op, right in zip(node.ops, node.comparators, strict=True)
        ]
        return runtime("compare", self.visit(node.left), *steps)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name) and node.func.id in ("super", "locals", "globals", "vars", "eval", "exec"):
            raise NotRewritable(f"{node.func.id}() in line {node.lineno}")
        arguments = self._arguments(node)
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr="setdefault"), args=[_, ast.List()], keywords=[]):
                return runtime("setdefault", self.visit(owner), arguments[0], thunk(arguments[1]))
            case ast.Call(func=ast.Name(id="next"), args=[ast.GeneratorExp(), *_], keywords=[]):
                return runtime("first", *arguments)
        named = [ast.keyword(keyword.arg, self.visit(keyword.value)) for keyword in node.keywords]
        if isinstance(node.func, ast.Attribute):
            called = ast.Attribute(variable(RUNTIME), "method", ast.Load())
            return ast.Call(called, [self.visit(node.func.value), text(node.func.attr), *arguments], named)
        called = ast.Attribute(variable(RUNTIME), "call", ast.Load())
        return ast.Call(called, [self.visit(node.func), *arguments], named)

    def _arguments(self, node: ast.Call) -> list[ast.expr]:
        match node:
            case ast.Call(func=ast.Name() as taker, args=[ast.GeneratorExp() | ast.ListComp() as made], keywords=[]):
                held = self._comprehension(made.elt, made.generators, taker)
                return [_placed(held if isinstance(made, ast.ListComp) else runtime("stream", held), made)]
        return [self.visit(argument) for argument in node.args]

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        owner, key = self.visit(node.value), self.visit(node.slice)
        if not isinstance(node.ctx, ast.Load) or isinstance(node.slice, ast.Slice | ast.Tuple):
            return ast.Subscript(owner, key, node.ctx)
        return runtime("subscript", owner, key)

    def visit_List(self, node: ast.List) -> ast.expr:
        items = [self.visit(item) for item in node.elts]
        return runtime("List", ast.List(items, ast.Load())) if isinstance(node.ctx, ast.Load) else node

    def visit_Dict(self, node: ast.Dict) -> ast.expr:
        if any(key is None for key in node.keys):
            return ast.Dict([key and self.visit(key) for key in node.keys], [self.visit(v) for v in node.values])
        pairs = [(self.visit(key), self.visit(value)) for key, value in zip(node.keys, node.values, strict=True) if key]
        items: list[ast.expr] = [ast.Tuple([key, value], ast.Load()) for key, value in pairs]
        return runtime("dictionary", runtime("List", ast.List(items, ast.Load())))

    def visit_Set(self, node: ast.Set) -> ast.expr:
        return runtime("set_of", runtime("List", ast.List([self.visit(item) for item in node.elts], ast.Load())))

    def visit_DictComp(self, node: ast.DictComp) -> ast.expr:
        pair = ast.Tuple([node.key, node.value], ast.Load())
        match node:
            case ast.DictComp(key=ast.Name(id=key), generators=[ast.comprehension(target=target, iter=source)]):
                of_pairs = isinstance(target, ast.Tuple)
                first = target.elts[0] if isinstance(target, ast.Tuple) else target
                if isinstance(first, ast.Name) and first.id == key:  # the keys of another dictionary, if it is one
                    name = self.temporary()
                    taken = ast.comprehension(target, variable(name), node.generators[0].ifs, 0)
                    made = ast.Lambda(_one_argument(name), self._comprehension(pair, [taken]))
                    return runtime("by_key", self.visit(source), ast.Constant(of_pairs), made)
        return runtime("dictionary", self._comprehension(pair, node.generators))

    def visit_SetComp(self, node: ast.SetComp) -> ast.expr:
        return runtime("set_of", self._comprehension(node.elt, node.generators))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        parts: list[ast.expr] = []
        for part in node.values:
            form: ast.expr = text("")
            if isinstance(part, ast.FormattedValue):
                if part.conversion != -1:
                    conversion = variable({115: "str", 114: "repr", 97: "ascii"}[part.conversion])
                    value: ast.expr = runtime("call", conversion, self.visit(part.value))
                else:
                    value = self.visit(part.value)
                form = self.visit(part.format_spec) if part.format_spec is not None else form
            else:
                value = part
            parts.append(ast.Tuple([value, form], ast.Load()))
        return runtime("text", *parts)

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        return self._comprehension(node.elt, node.generators)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        return runtime("stream", self._comprehension(node.elt, node.generators))

    def _comprehension(
        self, item: ast.expr, generators: list[ast.comprehension], taker: ast.expr | None = None
    ) -> ast.expr:
        """Rewrite a comprehension; what takes it may not care for the order of its items."""
        tests = [thunk(self._test(test)) for generator in generators for test in generator.ifs]
        condition = runtime("and_", thunk(ast.Constant(True)), *tests) if tests else ast.Constant(True)
        pair = ast.Tuple([condition, thunk(self.visit(item))], ast.Load())
        loops = []
        for generator in generators:
            if generator.is_async:
                raise NotRewritable("an asynchronous comprehension")
            taken = runtime("items", self.visit(generator.iter), *([] if taker is None else [taker]))
            loops.append(ast.comprehension(generator.target, taken, [], 0))
        return runtime("filtered", ast.GeneratorExp(pair, loops))


def _one_argument(name: str) -> ast.arguments:
    return ast.arguments([], [ast.arg(name)], None, [], [], None, [])


def _placed(new: Any, old: ast.expr | ast.stmt) -> Any:
    """Put a new node where an old one begins: Python takes what spans several lines to be at the last of them."""
    if new is not old and hasattr(old, "lineno"):
        new.lineno = new.end_lineno = old.lineno
        new.col_offset = new.end_col_offset = old.col_offset
    return new


def _may_leave(statement: ast.stmt) -> bool:
    """Say whether a statement may return, break, continue or raise for some samples."""
    leaving = ast.Return | ast.Break | ast.Continue | ast.Raise | ast.Assert
    return any(isinstance(node, leaving) for node in ast.walk(statement))
