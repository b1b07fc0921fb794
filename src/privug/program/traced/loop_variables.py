"""The variables of a loop: which of them one round hands on to the next."""

import ast
from collections.abc import Iterable, Sequence

from privug.program.traced.syntax import FRAME, frame, thunk, variable

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
