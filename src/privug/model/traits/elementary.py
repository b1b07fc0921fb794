"""Functions of one number, and others that are no operators: exponentials, logarithms, roots, angles."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from privug.model.traits.error_rules import UNIT, error_of_root
from privug.model.traits.traits import Array, Traits

_LOG_2, _LOG_10 = math.log(2), math.log(10)


def _monotone(name: str, derivative: Callable[[Array], Array], **known: Any) -> Traits:
    return Traits(**{
        "name": name, "turns": ((),), "continuous": True, "derivative": lambda u, du: derivative(u[0]) * du[0],
        "pytensor": name, **known,
    })  # fmt: skip


def _exponential(name: str, derivative: Callable[[Array], Array], **known: Any) -> Traits:
    return _monotone(name, derivative, error=lambda a, e, r: (np.abs(r) + 1) * e[0] + 2 * UNIT * np.abs(r), **known)


def _logarithm(name: str, derivative: Callable[[Array], Array], start: float = 0.0, **known: Any) -> Traits:
    return _monotone(
        name, derivative, domain=(start, math.inf), **known,
        error=lambda a, e, r: 1.5 * e[0] / np.abs(a[0] - start) + 2 * UNIT * np.abs(r),
    )  # fmt: skip


ELEMENTARY = (
    _exponential(
        "exp", np.exp, math="exp", codomain=(0.0, math.inf), positive=True, inverse=lambda v: (np.log(v), -np.log(v)),
    ),
    _exponential(
        "exp2", lambda u: np.exp2(u) * np.log(2), codomain=(0.0, math.inf), positive=True,
        inverse=lambda v: (np.log2(v), -np.log(v) - math.log(_LOG_2)),
    ),
    _exponential(
        "expm1", np.exp, math="expm1", codomain=(-1.0, math.inf), inverse=lambda v: (np.log1p(v), -np.log1p(v)),
    ),
    _logarithm("log", np.reciprocal, math="log", inverse=lambda v: (np.exp(v), v)),
    _logarithm(
        "log2", lambda u: 1 / (u * np.log(2)), math="log2",
        inverse=lambda v: (np.exp2(v), v * _LOG_2 + math.log(_LOG_2)),
    ),
    _logarithm(
        "log10", lambda u: 1 / (u * np.log(10)),
        math="log10", inverse=lambda v: (np.exp(v * _LOG_10), v * _LOG_10 + math.log(_LOG_10)),
    ),
    _logarithm(
        "log1p", lambda u: 1 / (1 + u), math="log1p", start=-1.0, inverse=lambda v: (np.expm1(v), v),
    ),
    _monotone(
        "sqrt", lambda u: 0.5 / np.sqrt(u), math="sqrt", domain=(0.0, math.inf), codomain=(0.0, math.inf),
        positive=False, inverse=lambda v: (v * v, np.log(2 * v)), error=error_of_root,
    ),
    _monotone(
        "cbrt", lambda u: 1 / (3 * np.cbrt(u) ** 2), inverse=lambda v: (v * v * v, np.log(3 * v * v)),
        pytensor=lambda pt, x: pt.sign(x) * pt.abs(x) ** (1 / 3),
    ),
    _monotone(
        "arctan", lambda u: 1 / (1 + u**2), codomain=(-math.pi / 2, math.pi / 2),
        inverse=lambda v: (np.tan(v), -2 * np.log(np.abs(np.cos(v)))),
    ),
    _monotone("sinh", np.cosh, inverse=lambda v: (np.arcsinh(v), -0.5 * np.log1p(v * v))),
    _monotone(
        "tanh", lambda u: 1 / np.cosh(u) ** 2, math="tanh", codomain=(-1.0, 1.0),
        inverse=lambda v: (0.5 * (np.log1p(v) - np.log1p(-v)), -np.log1p(-v * v)),
    ),
    _monotone(
        "arcsinh", lambda u: 1 / np.sqrt(1 + u**2), continuous=False,
        inverse=lambda v: (np.sinh(v), np.log(np.cosh(v))),
    ),
    _monotone(
        "expit", lambda u: 1 / (2 + np.exp(u) + np.exp(-u)), codomain=(0.0, 1.0), positive=True,
        inverse=lambda v: (np.log(v) - np.log1p(-v), -np.log(v) - np.log1p(-v)),
        numpy="scipy.special.expit", pytensor="sigmoid", jax="nn.sigmoid",
    ),
    _monotone("cosh", np.sinh, continuous=False, turns=((0.0,),), codomain=(1.0, math.inf)),
    Traits(name="sin", math="sin", continuous=True, codomain=(-1.0, 1.0), pytensor="sin"),
    Traits(name="cos", math="cos", continuous=True, codomain=(-1.0, 1.0), pytensor="cos"),
    Traits(name="tan", math="tan", continuous=True, pytensor="tan"),
    Traits(name="arcsin", domain=(-1.0, 1.0), codomain=(-math.pi / 2, math.pi / 2), pytensor="arcsin"),
    Traits(name="arccos", domain=(-1.0, 1.0), codomain=(0.0, math.pi), pytensor="arccos"),
    Traits(name="arctan2", codomain=(-math.pi, math.pi), pytensor="arctan2"),
    Traits(name="hypot", math="hypot", codomain=(0.0, math.inf), pytensor=lambda pt, x, y: pt.sqrt(x * x + y * y)),
    Traits(name="logaddexp", pytensor="logaddexp"),
)  # fmt: skip
"""The rows."""
