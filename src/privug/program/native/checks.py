# mypy: allow-untyped-calls, allow-untyped-decorators, allow-subclassing-any
"""Checks of compiled programs: variables that may be unset, and types on which Numba is not Python."""

from collections.abc import Mapping
from typing import Any

from numba.core import ir
from numba.core import types as numba_types
from numba.core.analysis import compute_cfg_from_blocks

from privug.program.native.arithmetic import BOOL, FLOAT, INT, scalar
from privug.program.native.builtins import ordered
from privug.program.native.records import CategoryType, RecordsType

types: Any = numba_types


def variable_that_may_be_unset(blocks: Mapping[int, Any]) -> str | None:
    """Return a variable that is used where it may have no value: Python would raise, compiled code would not."""
    graph = compute_cfg_from_blocks(blocks)
    everything = {s.target.name for block in blocks.values() for s in block.body if isinstance(s, ir.Assign)}
    after = dict.fromkeys(blocks, everything)
    changed = True
    while changed:
        changed = False
        for label, block in blocks.items():
            known = _known_before(graph, after, label)
            known = known | {s.target.name for s in block.body if isinstance(s, ir.Assign)}
            changed |= known != after[label]
            after[label] = known
    for label, block in blocks.items():
        known = set(_known_before(graph, after, label))
        for statement in block.body:
            for variable in _used(statement):
                if variable.name not in known:
                    return str(variable.name)
            if isinstance(statement, ir.Assign):
                known.add(statement.target.name)
    return None


def _known_before(graph: Any, after: Mapping[int, set[str]], label: int) -> set[str]:
    before = [after[previous] for previous, _ in graph.predecessors(label)]
    if label == graph.entry_point() or not before:
        return set()
    return set.intersection(*before)


def _used(statement: Any) -> list[Any]:
    if isinstance(statement, ir.Del):
        return []
    if isinstance(statement, ir.Assign):
        value = statement.value
        if isinstance(value, ir.Var):
            return [value]
        return list(value.list_vars()) if isinstance(value, ir.Expr) else []
    return list(statement.list_vars())


_METHODS = {
    types.Array: {"sum", "mean", "min", "max", "std", "var", "copy", "size", "shape", "ndim"},
    types.List: {"append", "pop", "extend", "insert", "reverse", "copy", "clear"},
    types.DictType: {"get", "items", "keys", "values", "pop", "setdefault"},
}
_INNER = (
    types.IteratorType, types.RangeType, types.Callable, types.Pair, types.NoneType, types.Omitted,
    types.DictItemsIterableType, types.DictKeysIterableType, types.DictValuesIterableType, types.SliceType,
    types.EnumerateType, types.ZipType, RecordsType, CategoryType, types.RecursiveCall,
)  # fmt: skip


def _type_obstacle(kind: Any) -> str | None:
    """Say what is wrong with a type, if anything."""
    if isinstance(kind, types.Optional):
        return "a value that may be None"
    if scalar(kind) is not None or isinstance(kind, _INNER):
        return None
    if isinstance(kind, types.BaseTuple):
        return next(filter(None, map(_type_obstacle, kind.types)), None)
    if isinstance(kind, types.Array) and kind.dtype in (INT, FLOAT, BOOL):
        return None
    if isinstance(kind, types.List):
        return _type_obstacle(kind.dtype)
    if isinstance(kind, types.DictType):
        keys = kind.key_type.types if isinstance(kind.key_type, types.BaseTuple) else [kind.key_type]
        if any(scalar(key) not in (INT, BOOL) and not isinstance(key, CategoryType) for key in keys):
            return f"a dictionary with keys of type {kind.key_type}"
        return _type_obstacle(kind.value_type)
    return f"a value of type {kind}"


def type_obstacle(func_ir: Any, typemap: Mapping[str, Any], calltypes: Mapping[Any, Any]) -> str | None:
    """Return what stands in the way of compiling a function, judged by the types of its variables."""
    for kind in typemap.values():
        obstacle = _type_obstacle(kind)
        if obstacle is not None:
            return f"it uses {obstacle}"
    for block in func_ir.blocks.values():
        for statement in block.body:
            value = statement.value if isinstance(statement, ir.Assign) else statement
            obstacle = _statement_obstacle(value, typemap, calltypes)
            if obstacle == ".sort" and func_ir.func_id.func.__code__ is ordered.__code__:
                continue
            if obstacle is not None:
                return f"it uses {obstacle}"
    return None


def _statement_obstacle(value: Any, typemap: Mapping[str, Any], calltypes: Mapping[Any, Any]) -> str | None:
    if isinstance(value, ir.SetItem | ir.StaticSetItem):
        target, item = typemap[value.target.name], typemap[value.value.name]
        if isinstance(target, types.Array) and isinstance(item, types.Array):
            item = item.dtype
        return _narrowing(item, getattr(target, "dtype", None))
    if not isinstance(value, ir.Expr):
        return None
    if value.op in ("getitem", "static_getitem", "getiter"):
        kind = typemap[value.value.name]
        if isinstance(kind, types.Array) and kind.dtype == BOOL:
            return "single elements of an array of truth values"
    if value.op == "getattr":
        kind = typemap[value.value.name]
        known = next((names for cls, names in _METHODS.items() if isinstance(kind, cls)), None)
        fields = getattr(kind, "fields", getattr(kind, "names", ())) if known is None else known
        return None if value.attr in fields or isinstance(kind, types.Module) else f".{value.attr}"
    if value.op == "call":
        signature = calltypes.get(value)
        actual = [typemap[argument.name] for argument in value.args]
        if signature is not None and len(signature.args) == len(actual):
            pairs = zip(actual, signature.args, strict=True)
            return next(filter(None, (_narrowing(kind, wanted) for kind, wanted in pairs)), None)
    return None


_WIDTH = {BOOL: 0, INT: 1, FLOAT: 2}


def _narrowing(kind: Any, wanted: Any) -> str | None:
    """Say whether a number would be cut to fit where it is put."""
    kind, wanted = scalar(kind), scalar(wanted) if wanted is not None else None
    if kind is None or wanted is None or _WIDTH[kind] <= _WIDTH[wanted]:
        return None
    return f"a {kind} where there are {wanted} values"
