# mypy: allow-untyped-calls, allow-untyped-decorators, allow-subclassing-any
"""Arithmetic, conversions and built-in functions in compiled programs: as Python does them, or not at all.

Whatever 64-bit numbers cannot do as Python does (overflow, inexact conversions, errors of the math module) raises; the
sample is then left to a plain call, so the kind of the error raised here never matters.
"""

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import errors
from numba.core import types as numba_types
from numba.core.extending import intrinsic

from privug.program.native.records import CategoryType

types: Any = numba_types

LARGEST_EXACT = 2**53  # whole numbers up to here are floats without rounding

INT, FLOAT, BOOL = types.int64, types.float64, types.boolean
Operator = Callable[..., Any]


def scalar(kind: Any) -> Any:
    """Return the plain number type that a Numba type stands for, or None."""
    kind = types.unliteral(kind)
    return kind if kind in (INT, FLOAT, BOOL) else None


def give_up(context: Any, builder: Any, condition: Any, error: type[Exception] = OverflowError) -> None:
    """Raise where a condition holds."""
    with builder.if_then(condition, likely=False):
        context.call_conv.return_user_exc(builder, error, ("left to a plain call",))


def converted(context: Any, builder: Any, value: Any, kind: Any, wanted: Any) -> Any:
    """Convert a number to a wider type, exactly or not at all."""
    kind = types.unliteral(kind)
    if kind == INT and wanted == FLOAT:
        shifted = builder.add(value, value.type(LARGEST_EXACT))
        give_up(context, builder, builder.icmp_unsigned(">", shifted, value.type(2 * LARGEST_EXACT)))
    return context.cast(builder, value, kind, wanted)


def refuse(name: str, *kinds: Any) -> Any:
    """Say that an operation is not compiled for these types."""
    listed = " and ".join(str(types.unliteral(kind)) for kind in kinds)
    raise errors.TypingError(f"{name} of {listed} is not compiled")


def _delegated(function: Operator, typing_context: Any, kinds: tuple[Any, ...]) -> Any:
    """Hand an operation to Numba as it is."""
    function_type = typing_context.resolve_value_type(function)
    signature = function_type.get_call_type(typing_context, kinds, {})

    def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return context.get_function(function_type, signature)(builder, values)

    return signature, generate


def _on_numbers(function: Operator, wanted: Any, result: Any, check: Any = None) -> Any:
    """Make an operation on numbers converted to one type; `check` may raise before it and look at its result."""

    def make(typing_context: Any, kinds: tuple[Any, ...]) -> Any:
        inner, generate_inner = _delegated(function, typing_context, (wanted,) * len(kinds))

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            numbers = [converted(context, builder, v, k, wanted) for v, k in zip(values, signature.args, strict=True)]
            if check is not None:
                check(context, builder, numbers)
            computed = generate_inner(context, builder, inner, numbers)
            return context.cast(builder, computed, inner.return_type, result)

        return result(*kinds), generate

    return make


def _with_overflow(instruction: str) -> Any:
    def make(typing_context: Any, kinds: tuple[Any, ...]) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            numbers = [converted(context, builder, v, k, INT) for v, k in zip(values, signature.args, strict=True)]
            pair = getattr(builder, instruction)(*numbers)
            give_up(context, builder, builder.extract_value(pair, 1))
            return builder.extract_value(pair, 0)

        return INT(*kinds), generate

    return make


def _no_smallest(context: Any, builder: Any, numbers: Any) -> None:
    """Keep the smallest whole number, whose negative does not exist, away from division."""
    give_up(context, builder, builder.icmp_signed("==", numbers[0], numbers[0].type(-(2**63))))


def _no_zero(context: Any, builder: Any, numbers: Any) -> None:
    give_up(context, builder, builder.fcmp_ordered("==", numbers[1], numbers[1].type(0.0)), ZeroDivisionError)


_CHECKED = {operator.add: "sadd_with_overflow", operator.sub: "ssub_with_overflow", operator.mul: "smul_with_overflow"}


def _number_operation(function: Operator, kinds: list[Any]) -> Any:
    """Return the maker of an operation on two single numbers."""
    floats = FLOAT in kinds
    if function in COMPARISONS:
        return _on_numbers(function, FLOAT if floats else INT, BOOL)
    if function in BITWISE:
        if floats:
            return None
        kind = BOOL if kinds == [BOOL, BOOL] else INT
        return _on_numbers(function, kind, kind)
    if function is operator.truediv:
        return _on_numbers(function, FLOAT, FLOAT, _no_zero)
    if function in (operator.floordiv, operator.mod):
        return (
            _on_numbers(function, FLOAT, FLOAT, _no_zero) if floats else _on_numbers(function, INT, INT, _no_smallest)
        )
    return _on_numbers(function, FLOAT, FLOAT) if floats else _with_overflow(_CHECKED[function])


COMPARISONS = {operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge}
BITWISE = {operator.and_, operator.or_, operator.xor}
_ON_ARRAYS = {operator.add, operator.sub, operator.mul, operator.truediv, *COMPARISONS}


def _fits_arrays(function: Operator, kinds: tuple[Any, ...]) -> bool:
    """Say whether NumPy and Numba do the same on these arrays."""
    dtypes = [kind.dtype if isinstance(kind, types.Array) else scalar(kind) for kind in kinds]
    if not any(isinstance(kind, types.Array) for kind in kinds) or None in dtypes:
        return False
    return (function in _ON_ARRAYS and BOOL not in dtypes) or (function in BITWISE and dtypes == [BOOL, BOOL])


def _fits_lists(function: Operator, kinds: tuple[Any, ...]) -> bool:
    left, right = kinds
    if not isinstance(left, types.List):
        return False
    return (function is operator.add and left == right) or (function is operator.mul and scalar(right) == INT)


def _changes_in_place(in_place: Operator, kinds: tuple[Any, ...]) -> bool:
    """Say whether an array or a list can be changed in place by such a value, as in NumPy."""
    left, right = kinds
    if isinstance(left, types.List):
        return _fits_lists(operator.add if in_place is operator.iadd else operator.sub, kinds)
    if not isinstance(left, types.Array) or not left.mutable or not _fits_arrays(operator.add, kinds):
        return False
    other = right.dtype if isinstance(right, types.Array) else scalar(right)
    return left.dtype == FLOAT or (other == INT and in_place is not operator.itruediv)


def _binary(function: Operator, in_place: Operator | None = None, containers: bool = True) -> Any:
    """Make the checked version of an operator; for containers it is the one of Numba."""

    def typed(typing_context: Any, left: Any, right: Any) -> Any:
        kinds = [scalar(left), scalar(right)]
        if None not in kinds:
            make = _number_operation(function, kinds)
            return make(typing_context, (left, right)) if make else refuse(function.__name__, left, right)
        if isinstance(left, CategoryType) and isinstance(right, CategoryType):
            if function in (operator.eq, operator.ne):
                return _delegated(function, typing_context, (left, right))
        elif in_place is not None:
            if _changes_in_place(in_place, (left, right)):
                return _delegated(in_place, typing_context, (left, right))
        elif containers and (_fits_arrays(function, (left, right)) or _fits_lists(function, (left, right))):
            return _delegated(function, typing_context, (left, right))
        return refuse(function.__name__, left, right)

    typed.__name__ = f"python_{function.__name__}"
    return intrinsic(typed)


def _contains(typing_context: Any, container: Any, item: Any) -> Any:
    # A float that is not a number is found by identity, which compiled code knows nothing of.
    if scalar(item) not in (INT, BOOL) and not isinstance(item, CategoryType):
        refuse("in", item)
    inner = list(container.types) if isinstance(container, types.BaseTuple) else []
    if isinstance(container, types.List | types.DictType):
        inner = [container.dtype if isinstance(container, types.List) else container.key_type]
    elif not isinstance(container, types.BaseTuple):
        refuse("in", container)
    categories = isinstance(item, CategoryType)
    if any(isinstance(kind, CategoryType) != categories or scalar(kind) == FLOAT for kind in inner):
        refuse("in", container)
    return _delegated(operator.contains, typing_context, (container, item))


def item_named(name: str) -> Any:
    """Make the subscript by a constant string: a cell of a row, a column of a table or an entry of a dictionary."""

    def typed(typing_context: Any, value: Any, key: Any) -> Any:
        if isinstance(value, types.BaseNamedTuple) and name in value.fields:
            k = value.fields.index(name)
            return value.types[k](value, key), lambda context, builder, signature, values: builder.extract_value(
                values[0], k
            )
        if isinstance(value, types.DictType):
            return _delegated(operator.getitem, typing_context, (value, key))
        return refuse(f"[{name!r}]", value)

    return intrinsic(typed)


def _negative(typing_context: Any, value: Any) -> Any:
    kind = scalar(value)
    if kind is None:
        if not isinstance(value, types.Array) or value.dtype == BOOL:
            refuse("negation", value)
        return _delegated(operator.neg, typing_context, (value,))
    if kind == FLOAT:
        return _delegated(operator.neg, typing_context, (FLOAT,))

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        number = converted(context, builder, values[0], signature.args[0], INT)
        pair = builder.ssub_with_overflow(number.type(0), number)
        give_up(context, builder, builder.extract_value(pair, 1))
        return builder.extract_value(pair, 0)

    return INT(value), generate


def _positive(typing_context: Any, value: Any) -> Any:
    kind = scalar(value) or refuse("+", value)
    kind = INT if kind == BOOL else kind
    return kind(value), lambda context, builder, signature, values: context.cast(
        builder, values[0], signature.args[0], kind
    )


def _invert(typing_context: Any, value: Any) -> Any:
    if scalar(value) != INT and not (isinstance(value, types.Array) and value.dtype == BOOL):
        refuse("~", value)
    return _delegated(operator.invert, typing_context, (types.unliteral(value),))


def truth(typing_context: Any, value: Any) -> Any:
    """Python's `bool(value)`."""
    kind = scalar(value)
    if isinstance(value, types.List | types.DictType):
        function_type = typing_context.resolve_value_type(builtins.len)
        signature = function_type.get_call_type(typing_context, (value,), {})

        def generate_length(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            length = context.get_function(function_type, signature)(builder, values)
            return builder.icmp_signed("!=", length, length.type(0))

        return BOOL(value), generate_length
    if kind is None:
        refuse("the truth", value)
    return BOOL(value), lambda context, builder, signature, values: context.cast(
        builder, values[0], types.unliteral(signature.args[0]), BOOL
    )


def _not(typing_context: Any, value: Any) -> Any:
    signature, generatetruth = truth(typing_context, value)
    return signature, lambda context, builder, signature, values: builder.not_(
        generatetruth(context, builder, signature, values)
    )


def finite_maker(function: Operator) -> Any:
    """Make a function of floats that gives up where its result is not a finite number."""

    def make(typing_context: Any, *kinds: Any) -> Any:
        if any(scalar(kind) is None for kind in kinds):
            refuse(function.__name__, *kinds)
        signature, generate_inner = _on_numbers(function, FLOAT, FLOAT)(typing_context, kinds)

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            result = generate_inner(context, builder, signature, values)
            difference = builder.fsub(result, result)  # not a number for infinity and for what is not a number
            give_up(context, builder, builder.fcmp_unordered("!=", difference, difference))
            return result

        return signature, generate

    return make


def _finite_power(typing_context: Any, base: Any, exponent: Any) -> Any:
    return finite_maker(operator.pow)(typing_context, base, exponent)


python_add = _binary(operator.add)
python_multiply = _binary(operator.mul)
python_negative = intrinsic(_negative)


def _unchecked_add(typing_context: Any, left: Any, right: Any) -> Any:
    """Add to a counter, which cannot overflow in any time that a program may take."""
    return _on_numbers(operator.add, INT, INT)(typing_context, (left, right))


def _int_power(base: Any, exponent: Any) -> Any:
    if exponent < 0:
        raise OverflowError("left to a plain call")
    result = 1
    while exponent > 0:
        if exponent & 1:
            result = python_multiply(result, base)
        exponent >>= 1
        if exponent > 0:
            base = python_multiply(base, base)
    return result


def _power(typing_context: Any, base: Any, exponent: Any) -> Any:
    kinds = [scalar(base), scalar(exponent)]
    if None in kinds:
        refuse("**", base, exponent)
    if FLOAT in kinds:
        return _finite_power(typing_context, base, exponent)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        numbers = [converted(context, builder, v, k, INT) for v, k in zip(values, signature.args, strict=True)]
        return context.compile_internal(builder, _int_power, INT(INT, INT), numbers)

    return INT(base, exponent), generate


UNCHECKED = {operator.add: intrinsic(_unchecked_add)}

BINARY: dict[Operator, Any] = {
    function: _binary(function)
    for function in (*COMPARISONS, *BITWISE, operator.truediv, operator.floordiv, operator.mod, operator.sub)
}
BINARY |= {operator.add: python_add, operator.mul: python_multiply, operator.contains: intrinsic(_contains)}
BINARY[operator.pow] = intrinsic(_power)

IN_PLACE: dict[Operator, Any] = {
    operator.add: _binary(operator.add, operator.iadd),
    operator.sub: _binary(operator.sub, operator.isub),
    operator.mul: _binary(operator.mul, operator.imul),
    operator.truediv: _binary(operator.truediv, operator.itruediv),
    operator.pow: BINARY[operator.pow],
    **{f: _binary(f, containers=False) for f in (*BITWISE, operator.floordiv, operator.mod)},
}

UNARY: dict[Operator, Any] = {
    operator.neg: python_negative,
    operator.pos: intrinsic(_positive),
    operator.invert: intrinsic(_invert),
    operator.not_: intrinsic(_not),
}


LARGEST_FLOAT = 2.0**62


def _whole(function: str | None) -> Any:
    """Make a conversion of floats to whole numbers after a rounding function of floats."""

    def typed(typing_context: Any, value: Any) -> Any:
        if scalar(value) is None:
            refuse("a conversion to int", value)
        if scalar(value) != FLOAT:
            return INT(value), lambda context, builder, signature, values: context.cast(
                builder, values[0], types.unliteral(signature.args[0]), INT
            )

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            number = values[0]
            small = builder.fcmp_ordered("<", number, number.type(LARGEST_FLOAT))
            large = builder.fcmp_ordered(">", number, number.type(-LARGEST_FLOAT))
            give_up(context, builder, builder.not_(builder.and_(small, large)))
            if function is not None:
                called = builder.module.declare_intrinsic(f"llvm.{function}", [ir.DoubleType()])
                number = builder.call(called, [number])
            return builder.fptosi(number, ir.IntType(64))

        return INT(value), generate

    return intrinsic(typed)


def _float(typing_context: Any, value: Any) -> Any:
    if scalar(value) is None:
        refuse("float", value)
    return FLOAT(value), lambda context, builder, signature, values: converted(
        context, builder, values[0], signature.args[0], FLOAT
    )


def _finite(function: Operator) -> Any:
    make = finite_maker(function)

    def one(typing_context: Any, value: Any) -> Any:
        return make(typing_context, value)

    def two(typing_context: Any, left: Any, right: Any) -> Any:
        return make(typing_context, left, right)

    return intrinsic(two if function in (math.atan2, math.hypot) else one)


FUNCTIONS: dict[Any, Any] = {
    bool: intrinsic(truth),
    int: _whole(None),
    float: intrinsic(_float),
    round: _whole("rint"),
    math.floor: _whole("floor"),
    math.ceil: _whole("ceil"),
    math.trunc: _whole(None),
}
for _function in (math.sqrt, math.exp, math.expm1, math.log, math.log10, math.log1p, math.sin, math.cos, math.tan,
                  math.atan, math.tanh, math.fabs, math.atan2, math.hypot):  # fmt: skip
    FUNCTIONS[_function] = _finite(_function)
