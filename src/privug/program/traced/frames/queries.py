"""The expressions of DataFrame.query."""

import ast
import operator
from collections.abc import Callable, Container
from typing import Any

from privug.model.variable import refuse
from privug.program.traced.frames.dates import no_text_beside_timestamps

_COMPARED: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.In: lambda one, many: one.isin(many), ast.NotIn: lambda one, many: ~one.isin(many),
}  # fmt: skip
_COMPUTED: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
}  # fmt: skip


def queried(expression: str, names: Container[Any], column: Callable[[Any], Any]) -> Any:
    """Return the column of truth values that an expression of columns and constants stands for."""
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    except SyntaxError:
        return refuse("query() of variables of the program")

    def value(node: ast.expr) -> Any:
        match node:
            case ast.Constant():
                return node.value
            case ast.Name() if node.id in names:
                return column(node.id)
            case ast.List() | ast.Tuple():
                return [value(part) for part in node.elts]
            case ast.BoolOp():
                parts = [value(part) for part in node.values]
                total = parts[0]
                for part in parts[1:]:
                    total = total & part if isinstance(node.op, ast.And) else total | part
                return total
            case ast.UnaryOp(op=ast.Not() | ast.Invert()):
                return ~value(node.operand)
            case ast.UnaryOp(op=ast.USub()):
                return -value(node.operand)
            case ast.BinOp() if type(node.op) in _COMPUTED:
                return _COMPUTED[type(node.op)](value(node.left), value(node.right))
            case ast.Compare():
                sides = [value(side) for side in (node.left, *node.comparators)]
                return _chain(node.ops, sides)
        return refuse(f"query() with {ast.unparse(node)!r}")

    return value(tree)


def _chain(operators: list[ast.cmpop], sides: list[Any]) -> Any:
    total: Any = None
    for place, one in enumerate(operators):
        function = _COMPARED.get(type(one))
        if function is None:
            refuse("query() with such a comparison")
        left, right = sides[place], sides[place + 1]
        no_text_beside_timestamps(left, right)
        listed = isinstance(right, list) and type(one) in (ast.Eq, ast.NotEq)
        verdict = (
            _COMPARED[ast.In if isinstance(one, ast.Eq) else ast.NotIn](left, right)
            if listed
            else function(left, right)
        )
        total = verdict if total is None else total & verdict
    return total
