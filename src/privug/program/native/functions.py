# mypy: allow-untyped-calls, allow-untyped-decorators, allow-subclassing-any
"""Conversions and functions of the math module in compiled programs, as Python does them or not at all."""

import math
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types as numba_types
from numba.core.extending import intrinsic

from privug.program.native.arithmetic import (
    FLOAT,
    INT,
    Operator,
    converted,
    finite_maker,
    give_up,
    refuse,
    scalar,
    truth,
)

types: Any = numba_types

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
