"""The operators on numbers: sums, products, powers, rounding, magnitudes."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from privug.model.traits import error_rules, sizes
from privug.model.traits.traits import Array, Role, Traits

_ADD = Traits(
    name="add", role=Role.SUM, weights=(1.0, 1.0), turns=((), ()), continuous=True, positive=False, keeps_whole=True,
    neutral=0, size=lambda s, *_: s[0] + s[1], grows=True, error=error_rules.error_of_sum, on_bools="logical_or",
    python="add", pytensor="add",
)  # fmt: skip
_NEGATIVE = Traits(
    name="negative", role=Role.SUM, weights=(-1.0,), turns=((),), continuous=True, keeps_whole=True,
    size=sizes.unchanged, grows=True, error=error_rules.error_kept, python="neg", pytensor="neg",
)  # fmt: skip
_ABSOLUTE = Traits(
    name="absolute", role=Role.ORDER, turns=((0.0,),), continuous=True, codomain=(0.0, math.inf), keeps_whole=True,
    derivative=lambda u, du: np.sign(u[0]) * du[0],
    size=sizes.unchanged, grows=True, error=error_rules.error_kept, pytensor="abs",
)  # fmt: skip


def _slope_of_power(u: Sequence[Array], du: Sequence[Array]) -> Array:
    rising = np.where(du[1] != 0, np.log(np.where(du[1] != 0, u[0], 1.0)) * du[1], 0.0)
    return np.asarray(u[1] * np.power(u[0], u[1] - 1) * du[0] + np.power(u[0], u[1]) * rising)


def _root(value: Any, exponent: float) -> tuple[Any, Any]:
    return np.exp(np.log(value) / exponent), np.log(value) * (1 / exponent - 1) - math.log(abs(exponent))


_POWER = Traits(
    name="power", role=Role.POWER, turns=((0.0,), ()), positive=False, keeps_whole=True,
    derivative=_slope_of_power, inverse=_root,
    size=lambda s, *_: sizes.power_of(*s), grows=True, error=error_rules.error_of_power, pytensor="pow",
)  # fmt: skip


_OF_FLOATS: dict[str, Any] = {"size": None, "grows": False, "keeps_whole": False}


def _rounding(name: str, **known: Any) -> Traits:
    return Traits(name=name, steps=True, turns=((),), error=error_rules.no_error, **known)


ARITHMETIC = (
    _ADD,
    replace(
        _ADD, name="subtract", weights=(1.0, -1.0), positive=None, error=error_rules.error_of_difference,
        neutral=None, on_bools=None, python="sub", pytensor="sub",
    ),
    _NEGATIVE,
    replace(_NEGATIVE, name="positive", weights=(1.0,), grows=False, python="pos", pytensor=lambda pt, x: x),
    Traits(
        name="multiply", role=Role.PRODUCT, factor=1, neutral=1, turns=((), ()), positive=False, keeps_whole=True,
        derivative=lambda u, du: du[0] * u[1] + u[0] * du[1],
        size=lambda s, *_: s[0] * s[1], grows=True, error=error_rules.error_of_product, on_bools="logical_and",
        python="mul", pytensor="mul",
    ),
    Traits(
        name="true_divide", role=Role.PRODUCT, factor=-1, turns=((), (0.0,)), positive=False, divides=True,
        derivative=lambda u, du: (du[0] - u[0] / u[1] * du[1]) / u[1], inverse_in=1,
        inverse=lambda v, c: (c / v, math.log(abs(c)) - 2 * np.log(np.abs(v))),
        error=error_rules.error_of_ratio, python="truediv", pytensor="true_div",
    ),
    Traits(
        name="floor_divide", steps=True, turns=((), None), divides=True, keeps_whole=True,
        error=error_rules.no_error, pytensor="floor_div",
    ),
    Traits(
        name="remainder", turns=((), None), jumps=np.floor_divide, divides=True, keeps_whole=True,
        derivative=lambda u, du: du[0] - np.floor_divide(u[0], u[1]) * du[1], python="mod", pytensor="mod",
    ),
    _POWER,
    replace(_POWER, name="pow", **_OF_FLOATS, math="pow", numpy="numpy.power", jax="numpy.power"),
    replace(_POWER, name="float_power", **_OF_FLOATS, jax="numpy.power"),
    Traits(
        name="square", turns=((0.0,),), continuous=True, codomain=(0.0, math.inf),
        derivative=lambda u, du: 2 * u[0] * du[0],
        size=lambda s, *_: s[0] ** 2, grows=True, error=error_rules.error_of_square, pytensor="sqr",
    ),
    Traits(
        name="reciprocal", turns=((0.0,),), continuous=True, derivative=lambda u, du: -1 / u[0] ** 2 * du[0],
        inverse=lambda v: (1.0 / v, -2 * np.log(np.abs(v))), pytensor="reciprocal",
    ),
    Traits(name="left_shift", size=lambda s, *_: s[0] << min(s[1], 64), grows=True),
    Traits(name="copysign", error=error_rules.error_kept),
    _ABSOLUTE,
    replace(_ABSOLUTE, name="fabs", **_OF_FLOATS, math="fabs", jax="numpy.absolute", continuous=False),
    _rounding("sign", role=Role.ORDER, codomain=(-1.0, 1.0), pytensor="sign"),
    _rounding("floor", preimage=lambda value, unit: (value, value + unit), pytensor="floor"),
    _rounding("ceil", preimage=lambda value, unit: (value - unit, value), pytensor="ceil"),
    _rounding(
        "trunc", preimage=lambda value, unit: (value - (value <= 0), value + (value >= 0)), pytensor="trunc",
    ),
    _rounding(
        "rint", preimage=lambda value, unit: (value - unit / 2, value + unit / 2),
        pytensor=lambda pt, x: pt.round(x, mode="half_to_even"),
    ),
    _rounding("round", preimage=lambda value, unit: (value - unit / 2, value + unit / 2), decimals=True),
)  # fmt: skip
"""The rows."""
