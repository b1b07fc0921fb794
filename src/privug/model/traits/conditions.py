"""Comparisons, logic, choices and extremes of two numbers."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from privug.model.traits import sizes
from privug.model.traits.traits import BackendName, Connective, Role, Traits


def _comparison(name: str, signs: set[int], python: str, pytensor: str, **known: Any) -> Traits:
    return Traits(
        name=name, role=Role.COMPARISON, signs=frozenset(signs), codomain=(0.0, 1.0),
        python=python, pytensor=pytensor, **known,
    )  # fmt: skip


def _logic(name: str, connective: Connective | None, pytensor: BackendName, **known: Any) -> Traits:
    return Traits(
        name=name, role=Role.LOGIC, connective=connective, takes_bools=True, pytensor=pytensor, **known
    )  # fmt: skip


_MAXIMUM = Traits(
    name="maximum", role=Role.ORDER, extreme=1, neutral=-math.inf, chooses=0, turns=((), ()), keeps_whole=True,
    derivative=lambda u, du: np.where(u[0] >= u[1], *du),
    size=sizes.unchanged, error=lambda a, e, r: np.maximum(*e), on_bools="logical_or", pytensor="maximum",
)  # fmt: skip
_MINIMUM = replace(
    _MAXIMUM, name="minimum", extreme=-1, neutral=math.inf, derivative=lambda u, du: np.where(u[0] <= u[1], *du),
    on_bools="logical_and", pytensor="minimum",
)  # fmt: skip
_NOT = _logic("bitwise_not", Connective.NOT, "invert", on_bools="logical_not")

CONDITIONS = (
    _comparison("less", {-1}, "lt", "lt"),
    _comparison("less_equal", {-1, 0}, "le", "le"),
    _comparison("greater", {1}, "gt", "gt"),
    _comparison("greater_equal", {1, 0}, "ge", "ge"),
    _comparison("equal", {0}, "eq", "eq", takes_bools=True),
    _comparison("not_equal", {-1, 1}, "ne", "neq", takes_bools=True),
    _logic("logical_and", Connective.AND, "and_", truth=True, neutral=True),
    _logic("logical_or", Connective.OR, "or_", truth=True, neutral=False),
    _logic("logical_not", Connective.NOT, "invert", truth=True),
    _logic("logical_xor", None, None, truth=True, on_bools="not_equal"),
    _logic("bitwise_and", Connective.AND, "and_", on_bools="logical_and"),
    _logic("bitwise_or", Connective.OR, "or_", on_bools="logical_or"),
    _logic("bitwise_xor", None, "xor", on_bools="not_equal"),
    _NOT,
    replace(_NOT, name="invert"),
    Traits(name="isnan", pytensor="isnan"),
    Traits(name="isinf", pytensor="isinf"),
    Traits(name="isfinite", pytensor=lambda pt, x: pt.invert(pt.or_(pt.isnan(x), pt.isinf(x)))),
    Traits(
        name="where", role=Role.CHOICE, chooses=1, takes_bools=True, size=sizes.unchanged,
        derivative=lambda u, du: np.where(u[0] != 0, du[1], du[2]),
        error=lambda a, e, r: np.where(a[0], e[1], e[2]), pytensor="where",
    ),
    _MAXIMUM,
    _MINIMUM,
    replace(_MAXIMUM, name="fmax", size=None, keeps_whole=False, on_bools=None),
    replace(_MINIMUM, name="fmin", size=None, keeps_whole=False, on_bools=None),
)  # fmt: skip
"""The rows."""
