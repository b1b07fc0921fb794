"""Rewriting a program's source so that control flow on random values builds the graph.

The rewritten function is ordinary Python that calls `control` and `functions`. On plain values it behaves
as the original does. What is not rewritten (try, with, del, yield, ...) stays as it is and is refused where it
would run under a random condition.
"""

import ast
import functools
import types

from privug.program.traced.source import source_of

RUNTIME = "__privug__"
FRAME = "__frame__"
INNER = "__rewritten__"


@functools.lru_cache(maxsize=512)
def rewritten_code(code: types.CodeType) -> types.CodeType | str | None:
    """Return the code of the rewritten function, what stood in the way, or None if its source is not at hand."""
    node = source_of(code)
    if node is None:
        return None
    try:
        function = _Rewriter().rewrite(node)
    except _NotRewritable as obstacle:
        return str(obstacle.args[0])
    names = [RUNTIME, *code.co_freevars]
    arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
    function.name = INNER  # under its own name it would hide the function that it may call itself by
    outer = ast.FunctionDef("outer", arguments, [function], [])
    module = ast.fix_missing_locations(ast.Module([outer], []))
    compiled = compile(module, code.co_filename, "exec")
    return _inner(_inner(compiled, "outer"), INNER)


def _inner(code: types.CodeType, name: str) -> types.CodeType:
    return next(const for const in code.co_consts if isinstance(const, types.CodeType) and const.co_name == name)


class _NotRewritable(Exception):
    """The function uses something that rewriting would get wrong."""


def _name(name: str, store: bool = False) -> ast.Name:
    return ast.Name(name, ast.Store() if store else ast.Load())


def _runtime(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(_name(RUNTIME), name, ast.Load()), list(arguments), [])


def _frame(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(_name(FRAME), name, ast.Load()), list(arguments), [])


def _thunk(body: ast.expr) -> ast.Lambda:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), body)


def _text(value: str) -> ast.Constant:
    return ast.Constant(value)


class _Rewriter(ast.NodeTransformer):
    """Rewrites one function; nested functions and lambdas too, each with a frame of its own."""

    def __init__(self) -> None:
        self._fresh = 0

    def rewrite(self, node: ast.FunctionDef | ast.Lambda) -> ast.FunctionDef:
        """Return the rewritten function."""
        if isinstance(node, ast.Lambda):
            body: list[ast.stmt] = [ast.Return(node.body)]
            node = ast.copy_location(ast.FunctionDef("rewritten_lambda", node.args, body, []), node)
        result = self.visit_FunctionDef(node)
        result.decorator_list = []
        return result

    # Functions.
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        body = [
            ast.Assign([_name(FRAME, store=True)], _runtime("Frame")),
            *self._block(node.body),
            ast.Return(_frame("result")),
        ]
        defaults = ast.arguments(
            node.args.posonlyargs, node.args.args, node.args.vararg, node.args.kwonlyargs,
            [self.visit(d) if d is not None else None for d in node.args.kw_defaults], node.args.kwarg,
            [self.visit(d) for d in node.args.defaults],
        )  # fmt: skip
        decorators = [self.visit(decorator) for decorator in node.decorator_list]
        return ast.copy_location(ast.FunctionDef(node.name, defaults, body, decorators), node)

    def _refuse(self, node: ast.AST) -> ast.AST:
        raise _NotRewritable(f"'{type(node).__name__.lower()}' in line {getattr(node, 'lineno', 0)}")

    visit_AsyncFunctionDef = visit_Yield = visit_YieldFrom = visit_Await = visit_NamedExpr = _refuse
    visit_Try = visit_TryStar = visit_With = visit_Global = visit_Nonlocal = _refuse

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    # Statements.
    def _block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Rewrite a block; what follows a statement that may leave runs only where it did not."""
        result: list[ast.stmt] = []
        for position, statement in enumerate(statements):
            visited = self.visit(statement)
            new = visited if isinstance(visited, list) else [visited]
            result.extend(ast.copy_location(part, statement) for part in new)
            rest = statements[position + 1 :]
            if rest and _may_leave(statement):
                result.append(self._rest(self._block(rest)))
                break
        return result

    def _rest(self, body: list[ast.stmt]) -> ast.stmt:
        runs = self._temporary()
        return ast.For(_name(runs, store=True), _frame("rest"), [ast.If(_name(runs), body, [])], [])

    def _branch(self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> ast.stmt:
        taken = self._temporary()
        inner = ast.If(_name(taken), body or [ast.Pass()], orelse)
        return ast.For(_name(taken, store=True), _frame("branches", test), [inner], [])

    def _temporary(self) -> str:
        self._fresh += 1
        return f"__privug_{self._fresh}__"

    def visit_If(self, node: ast.If) -> ast.stmt:
        return self._branch(self.visit(node.test), self._block(node.body), self._block(node.orelse))

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        value = self.visit(node.value) if node.value is not None else ast.Constant(None)
        return ast.Expr(_frame("give_back", value))

    def visit_Break(self, node: ast.Break) -> ast.stmt:
        return ast.Expr(_frame("break_off"))

    def visit_Continue(self, node: ast.Continue) -> ast.stmt:
        return ast.Expr(_frame("go_on"))

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        item = self._temporary()
        body = [self._rest([*self._assignment(node.target, _name(item)), *self._block(node.body)])]
        loop = ast.For(_name(item, store=True), _frame("loop", self.visit(node.iter)), body, [])
        return [loop, *self._after_loop(node.orelse)]

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        item = self._temporary()
        rounds = _frame("while_true", _thunk(self.visit(node.test)))
        loop = ast.For(_name(item, store=True), rounds, self._guarded(node.body), [])
        return [loop, *self._after_loop(node.orelse)]

    def _guarded(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [self._rest(self._block(body))]

    def _after_loop(self, orelse: list[ast.stmt]) -> list[ast.stmt]:
        if not orelse:
            return [ast.Expr(_frame("end_loop"))]
        unbroken = self._temporary()
        ended = ast.Assign([_name(unbroken, store=True)], _frame("end_loop"))
        return [ended, self._rest([self._branch(_name(unbroken), self._block(orelse), [])])]

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        match node:
            case ast.Assign(targets=[ast.Subscript(value=owner, slice=key)], value=ast.List() | ast.ListComp()):
                if not isinstance(key, ast.Slice):
                    fresh = self._temporary()
                    made = ast.Assign([_name(fresh, store=True)], self.visit(node.value))
                    parts = [self.visit(owner), self.visit(key), _name(fresh), ast.Constant(True)]
                    return [made, ast.Expr(_frame("set_item", *parts))]
        value = self._temporary()
        result: list[ast.stmt] = [ast.Assign([_name(value, store=True)], self.visit(node.value))]
        for target in node.targets:
            result.extend(self._assignment(target, _name(value)))
        return result

    def visit_AnnAssign(self, node: ast.AnnAssign) -> list[ast.stmt]:
        if node.value is None:
            return [ast.Pass()]
        return self.visit_Assign(ast.Assign([node.target], node.value))

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        if isinstance(node.op, ast.Add) and isinstance(node.target, ast.Name):
            # A list grows in place: everyone who holds it must see that.
            grown = _frame("grow", _name(node.target.id), self.visit(node.value))
            return self._assignment(node.target, grown)
        if isinstance(node.target, ast.Name):
            read = ast.BinOp(_name(node.target.id), node.op, node.value)
            return self.visit_Assign(ast.Assign([node.target], read))
        return self._changed_in_place(node.target, node.op, self.visit(node.value))

    def _changed_in_place(
        self, target: ast.Attribute | ast.Subscript, op: ast.operator, more: ast.expr
    ) -> list[ast.stmt]:
        """Change what an attribute or a subscript holds; owner and key are looked at once."""
        owner, key = self._temporary(), self._temporary()
        result: list[ast.stmt] = [ast.Assign([_name(owner, store=True)], self.visit(target.value))]
        if isinstance(target, ast.Attribute):
            read: ast.expr = ast.Attribute(_name(owner), target.attr, ast.Load())
            place: list[ast.expr] = [_name(owner), _text(target.attr)]
        else:
            result.append(ast.Assign([_name(key, store=True)], self.visit(target.slice)))
            read = _runtime("subscript", _name(owner), _name(key))
            place = [_name(owner), _name(key)]
        new = _frame("grow", read, more) if isinstance(op, ast.Add) else ast.BinOp(read, op, more)
        write = "set_attribute" if isinstance(target, ast.Attribute) else "set_item"
        return [*result, ast.Expr(_frame(write, *place, new))]

    def _assignment(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        match target:
            case ast.Name(id=name):
                new = _frame("assign", value, _thunk(_name(name)))
                return [ast.Assign([_name(name, store=True)], new)]
            case ast.Attribute(value=owner, attr=attribute):
                return [ast.Expr(_frame("set_attribute", self.visit(owner), _text(attribute), value))]
            case ast.Subscript(value=owner, slice=key) if not isinstance(key, ast.Slice):
                return [ast.Expr(_frame("set_item", self.visit(owner), self.visit(key), value))]
            case ast.Tuple(elts=parts) | ast.List(elts=parts) if not any(isinstance(p, ast.Starred) for p in parts):
                names = [self._temporary() for _ in parts]
                unpacked = ast.Tuple([_name(name, store=True) for name in names], ast.Store())
                result: list[ast.stmt] = [ast.Assign([unpacked], value)]
                for part, name in zip(parts, names, strict=True):
                    result.extend(self._assignment(part, _name(name)))
                return result
        return [ast.Expr(_frame("plainly", _text("this assignment"))), ast.Assign([target], value)]

    def _only_plainly(self, what: str, node: ast.stmt) -> list[ast.stmt]:
        visited = self.generic_visit(node)
        assert isinstance(visited, ast.stmt)
        return [ast.Expr(_frame("plainly", _text(what))), visited]

    def visit_Raise(self, node: ast.Raise) -> ast.stmt | list[ast.stmt]:
        if node.exc is None or node.cause is not None:
            return self._only_plainly("raise", node)
        return ast.Expr(_frame("fail", _thunk(self.visit(node.exc))))

    def visit_Delete(self, node: ast.Delete) -> list[ast.stmt]:
        return self._only_plainly("del", node)

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        failing = ast.Raise(ast.Call(_name("AssertionError"), [node.msg] if node.msg else [], []))
        return self.visit_If(ast.If(ast.UnaryOp(ast.Not(), node.test), [failing], []))

    def visit_Match(self, node: ast.Match) -> list[ast.stmt]:
        subject = self._temporary()
        chain: list[ast.stmt] = []
        for case in reversed(node.cases):
            test = _pattern_test(case.pattern, subject)
            if case.guard is not None:
                test = ast.BoolOp(ast.And(), [test, case.guard])
            chain = [ast.If(test, case.body, chain)]
        return [ast.Assign([_name(subject, store=True)], self.visit(node.subject)), *self._block(chain)]

    # Expressions.
    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        return ast.Lambda(node.args, self.visit(node.body))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return _runtime(name, *(_thunk(self.visit(value)) for value in node.values))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        operand = self.visit(node.operand)
        return _runtime("not_", operand) if isinstance(node.op, ast.Not) else ast.UnaryOp(node.op, operand)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        return _runtime("choose", self.visit(node.test), _thunk(self.visit(node.body)), _thunk(self.visit(node.orelse)))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        steps: list[ast.expr] = [
            ast.Tuple([_text(type(op).__name__), _thunk(self.visit(right))], ast.Load())
            for op, right in zip(node.ops, node.comparators, strict=True)
        ]
        return _runtime("compare", self.visit(node.left), *steps)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name) and node.func.id in ("super", "locals", "globals", "vars", "eval", "exec"):
            raise _NotRewritable(f"{node.func.id}() in line {node.lineno}")
        arguments = [self.visit(argument) for argument in node.args]
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr="setdefault"), args=[_, ast.List()], keywords=[]):
                return _runtime("setdefault", self.visit(owner), arguments[0], _thunk(arguments[1]))
            case ast.Call(func=ast.Name(id="next"), args=[ast.GeneratorExp(), *_], keywords=[]):
                return _runtime("first", *arguments)
        named = [ast.keyword(keyword.arg, self.visit(keyword.value)) for keyword in node.keywords]
        if isinstance(node.func, ast.Attribute):
            called = ast.Attribute(_name(RUNTIME), "method", ast.Load())
            return ast.Call(called, [self.visit(node.func.value), _text(node.func.attr), *arguments], named)
        called = ast.Attribute(_name(RUNTIME), "call", ast.Load())
        return ast.Call(called, [self.visit(node.func), *arguments], named)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        owner, key = self.visit(node.value), self.visit(node.slice)
        if not isinstance(node.ctx, ast.Load) or isinstance(node.slice, ast.Slice | ast.Tuple):
            return ast.Subscript(owner, key, node.ctx)
        return _runtime("subscript", owner, key)

    def visit_List(self, node: ast.List) -> ast.expr:
        items = [self.visit(item) for item in node.elts]
        return _runtime("List", ast.List(items, ast.Load())) if isinstance(node.ctx, ast.Load) else node

    def visit_Dict(self, node: ast.Dict) -> ast.expr:
        if any(key is None for key in node.keys):
            return ast.Dict([key and self.visit(key) for key in node.keys], [self.visit(v) for v in node.values])
        pairs = [(self.visit(key), self.visit(value)) for key, value in zip(node.keys, node.values, strict=True) if key]
        items: list[ast.expr] = [ast.Tuple([key, value], ast.Load()) for key, value in pairs]
        return _runtime("dictionary", _runtime("List", ast.List(items, ast.Load())))

    def visit_Set(self, node: ast.Set) -> ast.expr:
        return _runtime("set_of", _runtime("List", ast.List([self.visit(item) for item in node.elts], ast.Load())))

    def visit_DictComp(self, node: ast.DictComp) -> ast.expr:
        return _runtime(
            "dictionary", self._comprehension(ast.Tuple([node.key, node.value], ast.Load()), node.generators)
        )

    def visit_SetComp(self, node: ast.SetComp) -> ast.expr:
        return _runtime("set_of", self._comprehension(node.elt, node.generators))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        parts: list[ast.expr] = []
        for part in node.values:
            form: ast.expr = _text("")
            if isinstance(part, ast.FormattedValue):
                if part.conversion != -1:
                    conversion = _name({115: "str", 114: "repr", 97: "ascii"}[part.conversion])
                    value: ast.expr = _runtime("call", conversion, self.visit(part.value))
                else:
                    value = self.visit(part.value)
                form = self.visit(part.format_spec) if part.format_spec is not None else form
            else:
                value = part
            parts.append(ast.Tuple([value, form], ast.Load()))
        return _runtime("text", *parts)

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        return self._comprehension(node.elt, node.generators)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        return _runtime("stream", self._comprehension(node.elt, node.generators))

    def _comprehension(self, item: ast.expr, generators: list[ast.comprehension]) -> ast.expr:
        tests = [_thunk(self.visit(test)) for generator in generators for test in generator.ifs]
        condition = _runtime("and_", _thunk(ast.Constant(True)), *tests) if tests else ast.Constant(True)
        pair = ast.Tuple([condition, _thunk(self.visit(item))], ast.Load())
        loops = []
        for generator in generators:
            if generator.is_async:
                raise _NotRewritable("an asynchronous comprehension")
            loops.append(ast.comprehension(generator.target, _runtime("items", self.visit(generator.iter)), [], 0))
        return _runtime("filtered", ast.GeneratorExp(pair, loops))


def _may_leave(statement: ast.stmt) -> bool:
    """Say whether a statement may return, break, continue or raise for some samples."""
    leaving = ast.Return | ast.Break | ast.Continue | ast.Raise | ast.Assert
    return any(isinstance(node, leaving) for node in ast.walk(statement))


def _pattern_test(pattern: ast.pattern, subject: str) -> ast.expr:
    match pattern:
        case ast.MatchValue(value=value):
            return ast.Compare(_name(subject), [ast.Eq()], [value])
        case ast.MatchSingleton(value=value):
            return ast.Compare(_name(subject), [ast.Is()], [ast.Constant(value)])
        case ast.MatchOr(patterns=patterns):
            return ast.BoolOp(ast.Or(), [_pattern_test(part, subject) for part in patterns])
        case ast.MatchAs(pattern=None, name=None):
            return ast.Constant(True)
    raise _NotRewritable("a structural pattern")
