# mypy: allow-untyped-calls, allow-untyped-decorators, allow-subclassing-any
"""What a program may do to be compiled: Numba's intermediate code is checked, rewritten, or refused.

Only what is known to give the same values as Python gets through. Errors need not be the same: a sample on which the
compiled program raises is left to a plain call.
"""

import operator
import types as python_types
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
from numba.core import errors, ir, ir_utils, postproc
from numba.core import types as numba_types
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typed_passes import NopythonTypeInference
from numba.core.untyped_passes import InlineClosureLikes

from privug.program.native.arithmetic import (
    BINARY,
    BOOL,
    FLOAT,
    FUNCTIONS,
    IN_PLACE,
    INT,
    UNARY,
    UNCHECKED,
    item_named,
    scalar,
)
from privug.program.native.builtins import BUILTINS, ordered
from privug.program.native.records import CategoryType, Level, RecordsType
from privug.program.traced.calling import is_users_own

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


SMALL_STEP = 1024
OPTIONS: dict[str, Any] = {"boundscheck": True, "error_model": "python"}


@dataclass
class Compilation:
    """One program on its way through the compiler."""

    mark: str = ""
    """Part of the names of compiled functions: code of the same name is the same code, stored code too."""
    codes: dict[str, int] = field(default_factory=dict)
    """The strings of program and arguments, and the codes that stand for them."""
    recursive: set[python_types.CodeType] = field(default_factory=set)
    guards: tuple[Any, ...] = ()
    """What recursive functions call when they start and when they return."""
    dispatchers: dict[Any, Any] = field(default_factory=dict)
    refusal: str | None = None

    def refuse(self, reason: str) -> Any:
        """Stop compiling."""
        self.refusal = self.refusal or reason
        raise errors.UnsupportedError(reason)

    def dispatcher(self, function: Any) -> Any:
        """Return the compiled version of a function, to be compiled when it is first used."""
        if function not in self.dispatchers:
            self.dispatchers[function] = numba.njit(pipeline_class=_Compiler, **OPTIONS)(self._twin(function))
        return self.dispatchers[function]

    def _twin(self, function: Any) -> Any:
        """Return the same function under a name of its own."""
        inside = function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        twin = python_types.FunctionType(*inside)
        twin.__qualname__ = f"{function.__qualname__}_{self.mark}"
        return twin

    def code(self, string: str) -> int:
        """Return the code that stands for a string."""
        return self.codes.setdefault(string, len(self.codes))

    def encoded(self, value: Any) -> Any:
        """Return a constant as the compiled program sees it: numbers as they are, strings as codes."""
        if isinstance(value, bool | float) or value is None:
            return value
        if type(value) is int:
            return value if abs(value) < 2**63 else self.refuse("it uses a whole number beyond 64 bits")
        if type(value) is str:
            return Level(self.code(value))
        if type(value) is tuple:
            return tuple(self.encoded(part) for part in value)
        if isinstance(value, np.ndarray) and value.dtype in (np.int64, np.float64):
            return value.copy()
        return self.refuse(f"it uses a constant of type {type(value).__name__}")


compilation: ContextVar[Compilation] = ContextVar("compilation")


class _Compiler(CompilerBase):
    """Numba's compiler with two steps more."""

    def define_pipelines(self) -> list[Any]:
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.add_pass_after(_Rewriting, InlineClosureLikes)
        manager.add_pass_after(_TypeCheck, NopythonTypeInference)
        manager.finalize()
        return [manager]


@register_pass(mutates_CFG=False, analysis_only=False)
class _Rewriting(FunctionPass):
    _name = "privug_rewriting"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        _IRRewriter(state.func_ir, compilation.get()).rewrite()
        state.typingctx.refresh()  # some functions may be new
        return True


@register_pass(mutates_CFG=False, analysis_only=True)
class _TypeCheck(FunctionPass):
    _name = "privug_type_check"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        obstacle = type_obstacle(state.func_ir, state.typemap, state.calltypes)
        if obstacle is not None:
            compilation.get().refuse(obstacle)
        return False


_UNTOUCHED = {
    len, range, enumerate, zip, slice,
    np.sum, np.mean, np.min, np.max, np.std, np.var, np.zeros, np.ones, np.arange, np.sqrt, np.exp, np.log,
    np.floor, np.ceil,
}  # fmt: skip
_EXPRESSIONS = {
    "getiter", "iternext", "pair_first", "pair_second", "exhaust_iter", "static_getitem", "getitem", "getattr",
    "build_tuple", "build_list", "build_map", "cast", "call", "binop", "inplace_binop", "unary",
}  # fmt: skip
_STATEMENTS = ir.Assign, ir.Return, ir.Jump, ir.Branch, ir.Del, ir.SetItem, ir.StaticSetItem, ir.Raise
_WORDS = {
    "make_function": "a function inside a function", "yield": "yield", "build_set": "a set", "EnterWith": "try or with",
    "PopBlock": "try or with", "DelItem": "del", "SetAttr": "an assignment to an attribute", "Print": "print",
}  # fmt: skip
_FUNCTIONS = (type, python_types.ModuleType, python_types.FunctionType, python_types.BuiltinFunctionType, np.ufunc)
LOCAL = object()


class _IRRewriter:
    """The rewriting of one function's intermediate code."""

    def __init__(self, func_ir: Any, compiled: Compilation) -> None:
        self._ir = func_ir
        self._compiled = compiled
        self._placeholders: set[str] = set()  # variables that held functions and modules
        func_ir._definitions = ir_utils.build_definitions(func_ir.blocks)
        self._steps = {id(step) for name in func_ir._definitions for step in self._counter_steps(name)}

    def rewrite(self) -> None:
        """Rewrite the function in place."""
        unset = variable_that_may_be_unset(self._ir.blocks)
        if unset is not None:
            what = "a value" if unset.startswith("$") else f"the variable {unset!r}"
            self._compiled.refuse(f"{what} may be used before it is set")
        # All is looked up before anything is replaced.
        bodies = [
            (block, [list(self._rewritten(s, block.scope)) for s in block.body]) for block in self._ir.blocks.values()
        ]
        for block, body in bodies:
            block.body = [statement for part in body for statement in part]
        self._refuse_functions_as_values()
        self._guard_recursion()
        self._ir._definitions = ir_utils.build_definitions(self._ir.blocks)
        postproc.PostProcessor(self._ir).run()

    def _rewritten(self, statement: Any, scope: Any) -> Iterator[Any]:
        if not isinstance(statement, _STATEMENTS):
            name = type(statement).__name__
            self._compiled.refuse(f"it uses {_WORDS.get(name, name)}")
        if isinstance(statement, ir.Raise):
            yield ir.StaticRaise(ValueError, None, statement.loc)
        elif isinstance(statement, ir.Assign):
            call = self._call_in_place_of(statement.value) if isinstance(statement.value, ir.Expr) else None
            if call is None:
                value = self._plain_value(statement)
            else:
                function, arguments, named = call
                callee = scope.redefine("$privug", statement.loc)
                name = getattr(function, "__name__", "function")
                yield ir.Assign(ir.Global(name, function, statement.loc), callee, statement.loc)
                value = ir.Expr.call(callee, arguments, named, statement.loc)
            yield ir.Assign(value, statement.target, statement.loc)
        elif not isinstance(statement, ir.Del):
            yield statement

    def _plain_value(self, statement: Any) -> Any:
        """Return the value of an assignment that needs no call: constants encoded, functions put aside."""
        value, loc = statement.value, statement.loc
        if isinstance(value, ir.Const):
            return ir.Const(self._compiled.encoded(value.value), loc)
        found = self._found(value)
        if found is LOCAL:
            return value
        if isinstance(found, _FUNCTIONS) or callable(found):
            self._placeholders.add(statement.target.name)
            return ir.Const(0, loc)
        encoded = self._compiled.encoded(found)
        return ir.Global(value.name, encoded, loc) if isinstance(encoded, np.ndarray) else ir.Const(encoded, loc)

    def _found(self, value: Any) -> Any:
        """Return the object outside of the function that an expression names, or LOCAL."""
        if isinstance(value, ir.Var):
            definition = ir_utils.guard(ir_utils.get_definition, self._ir, value)
            return LOCAL if definition is None else self._found(definition)
        if isinstance(value, ir.Global | ir.FreeVar):
            return value.value
        if isinstance(value, ir.Expr) and value.op == "getattr":
            owner = self._found(value.value)
            if isinstance(owner, python_types.ModuleType):
                if owner.__name__ not in ("math", "numpy"):
                    self._compiled.refuse(f"it uses the module {owner.__name__}")
                return getattr(owner, value.attr)
        if isinstance(value, ir.Expr) and value.op == "call":
            called = self._found(value.func)
            if isinstance(called, type) and issubclass(called, BaseException):
                return called  # only ever raised
        return LOCAL

    def _call_in_place_of(self, value: Any) -> tuple[Any, list[Any], Any] | None:
        """Return the function, arguments and named arguments of the call that an expression becomes."""
        if value.op not in _EXPRESSIONS:
            self._compiled.refuse(f"it uses {_WORDS.get(value.op, value.op)}")
        match value.op:
            case "binop":
                return self._operator(BINARY, value.fn), [value.lhs, value.rhs], ()
            case "inplace_binop":
                plain = value.immutable_fn
                table = UNCHECKED if id(value) in self._steps else IN_PLACE
                return self._operator(table, plain), [value.lhs, value.rhs], ()
            case "unary":
                return self._operator(UNARY, _UNARY_OPERATORS.get(value.fn, value.fn)), [value.value], ()
            case "call":
                return self._called(value)
            case "getitem":
                index = ir_utils.guard(ir_utils.get_definition, self._ir, value.index)
                if isinstance(index, ir.Const) and type(index.value) is str:
                    return item_named(index.value), [value.value, value.index], ()
        return None

    def _operator(self, table: dict[Any, Any], function: Any) -> Any:
        if function not in table:
            self._compiled.refuse(f"it uses the operator {getattr(function, '__name__', function)}")
        return table[function]

    def _called(self, value: Any) -> tuple[Any, list[Any], Any] | None:
        if value.vararg is not None or getattr(value, "varkwarg", None) is not None:
            self._compiled.refuse("it calls a function with * or **")
        function = self._found(value.func)
        if function is LOCAL:
            definition = ir_utils.guard(ir_utils.get_definition, self._ir, value.func)
            if not isinstance(definition, ir.Expr) or definition.op != "getattr":
                self._compiled.refuse("it calls a function that it computes")
            return None
        if isinstance(function, type) and issubclass(function, BaseException):
            return None
        if isinstance(function, python_types.FunctionType) and is_users_own(function):
            return self._compiled.dispatcher(function), value.args, value.kws
        name = getattr(function, "__name__", repr(function))
        if name == "mark_try_block":
            self._compiled.refuse("it uses try or with")
        try:
            known = FUNCTIONS.get(function)
            own = BUILTINS.get((function, len(value.args)))
        except TypeError:
            known = own = None
        if own is not None:
            known = self._compiled.dispatcher(own)
        elif known is None and function in _UNTOUCHED:
            known = function
        if known is None or value.kws:
            self._compiled.refuse(f"it calls {name}{' with named arguments' if known else ''}")
        return known, value.args, ()

    def _counter_steps(self, name: str) -> list[Any]:
        """Return the additions to a variable that only ever counts: it starts small and moves by small steps."""
        steps = []
        for definition in self._ir._definitions[name]:
            value = definition
            if isinstance(value, ir.Var):
                value = ir_utils.guard(ir_utils.get_definition, self._ir, value)
            if isinstance(value, ir.Expr) and value.op == "inplace_binop" and value.immutable_fn is operator.add:
                if value.lhs.name != name or not self._is_small(value.rhs):
                    return []
                steps.append(value)
            elif not self._is_small(value):
                return []
        return steps

    def _is_small(self, value: Any) -> bool:
        if isinstance(value, ir.Var):
            value = ir_utils.guard(ir_utils.get_definition, self._ir, value)
        return isinstance(value, ir.Const) and type(value.value) is int and abs(value.value) <= SMALL_STEP

    def _refuse_functions_as_values(self) -> None:
        for block in self._ir.blocks.values():
            for statement in block.body:
                value = statement.value if isinstance(statement, ir.Assign) else statement
                used = [value] if isinstance(value, ir.Var) else getattr(value, "list_vars", list)()
                if any(variable.name in self._placeholders for variable in used):
                    self._compiled.refuse("it uses a function or a module as a value")

    def _guard_recursion(self) -> None:
        if self._ir.func_id.func.__code__ not in self._compiled.recursive:
            return
        first = self._ir.blocks[min(self._ir.blocks)]
        places = [(first, sum(_takes_argument(statement) for statement in first.body), self._compiled.guards[0])]
        for block in self._ir.blocks.values():
            if isinstance(block.body[-1], ir.Return):
                places.append((block, -1, self._compiled.guards[1]))
        for block, position, guard in reversed(places):
            loc = block.loc
            callee, ignored = (block.scope.redefine("$guard", loc) for _ in range(2))
            position = position if position >= 0 else len(block.body) - 1
            block.body[position:position] = [
                ir.Assign(ir.Global("guard", guard, loc), callee, loc),
                ir.Assign(ir.Expr.call(callee, (), (), loc), ignored, loc),
            ]


_UNARY_OPERATORS = {"-": operator.neg, "+": operator.pos, "~": operator.invert, "not": operator.not_}


def _takes_argument(statement: Any) -> bool:
    return isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Arg)
