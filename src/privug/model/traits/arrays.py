"""Functions of whole arrays: folds, scans, what sorts, and what only moves numbers."""

from typing import Any

from privug.model.traits import error_rules, sizes
from privug.model.traits.traits import Connective, Role, Scope, Traits


def _fold(name: str, folds: str | None = None, **known: Any) -> Traits:
    return Traits(**{"name": name, "scope": Scope.FOLD, "folds": folds, "pytensor": name, **known})


def _array(name: str, **known: Any) -> Traits:
    return Traits(**{"name": name, "scope": Scope.ARRAY, **known})


def _move(name: str, **known: Any) -> Traits:
    return _array(name, **{"role": Role.MOVE, "pytensor": name, **known})


def _ordered(name: str, **known: Any) -> Traits:
    return _fold(name, role=Role.ORDER, chooses=0, **{"array_error": error_rules.error_of_picked, **known})


def _sorted_in_turn(pt: Any, *keys: Any) -> Any:
    """Sort by the last key first, and then stably by those before it."""
    *others, last = keys
    order = pt.argsort(last, kind="stable")
    for key in reversed(others):
        order = order[pt.argsort(key[order], kind="stable")]
    return order


ARRAYS = (
    _fold(
        "sum", "add", role=Role.SUM, continuous=True, size=sizes.added_up, grows=True,
        array_error=error_rules.error_of_total,
    ),
    _fold("mean", "add", role=Role.SUM, averages=True, continuous=True, array_error=error_rules.error_of_mean),
    _fold("prod", "multiply", size=lambda s, count, _: sizes.power_of(s[0], count), grows=True),
    _ordered("min", folds="minimum", extreme=-1, ranks=True),
    _ordered("max", folds="maximum", extreme=1, ranks=True),
    _ordered("median", ranks=True, array_error=error_rules.error_of_median),
    _fold("any", "logical_or", role=Role.LOGIC, connective=Connective.OR, truth=True),
    _fold("all", "logical_and", role=Role.LOGIC, connective=Connective.AND, truth=True),
    _fold("std", continuous=True),
    _fold("var", continuous=True),
    _fold(
        "ptp", ranks=True, size=sizes.differenced, grows=True,
        pytensor=lambda pt, array, axis, **options: pt.max(array, axis, **options) - pt.min(array, axis, **options),
    ),
    _fold("nansum", size=sizes.added_up, grows=True, pytensor=None),
    _fold("nanmean", pytensor=None),
    _array("argmin", flattens=True, role=Role.ORDER, steps=True, pytensor="argmin"),
    _array("argmax", flattens=True, role=Role.ORDER, steps=True, pytensor="argmax"),
    _array(
        "argsort", steps=True, pytensor=_sorted_in_turn,
        jax=lambda jax, *keys: jax.numpy.lexsort(tuple(reversed(keys))),
    ),
    _array("sort", role=Role.ORDER, chooses=0, array_error=error_rules.error_of_picked, pytensor="sort"),
    _array("quantile", ranks=True, array_error=error_rules.error_of_quantile),
    _array("percentile", ranks=True, array_error=error_rules.error_of_quantile),
    _array(
        "cumsum", scope=Scope.SCAN, flattens=True, folds="add", role=Role.SUM, continuous=True,
        size=sizes.added_up, grows=True, array_error=error_rules.error_of_scan, pytensor="cumsum",
    ),
    _array(
        "cumprod", scope=Scope.SCAN, flattens=True, folds="multiply", grows=True,
        size=lambda s, count, _: sizes.power_of(s[0], count), pytensor="cumprod",
    ),
    _array("diff", role=Role.SUM, size=sizes.differenced, grows=True, pytensor="diff"),
    _array(
        "dot", role=Role.PRODUCT, continuous=True, size=lambda s, count, _: s[0] * s[1] * count, grows=True,
        pytensor="dot",
    ),
    _move("concatenate", joins=True, chooses=0),
    _move("stack", joins=True),
    _move("reshape", reshapes=True, pytensor=lambda pt, array, shape: pt.reshape(array, shape)),
    _move("transpose"),
    Traits(name="Index", scope=Scope.LOOKUP, role=Role.MOVE),
    Traits(name="Stack", scope=Scope.LOOKUP, role=Role.MOVE),
    Traits(name="Gather", scope=Scope.LOOKUP),
    Traits(name="Lookup", scope=Scope.LOOKUP),
    Traits(name="Draw", scope=Scope.DRAW),
)  # fmt: skip
"""The rows; of operations that are no functions of NumPy under the names of their classes."""
