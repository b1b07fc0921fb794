"""The names of the table in other libraries: each stands for the function that NumPy has."""

import jax
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode

from privug.inference.chains.numpyro_engine import JaxNumpy
from privug.inference.chains.pymc_engine import PyTensor
from privug.inference.chains.translation import Untranslatable
from privug.model.traits import OPERATIONS, Role, Scope

ROWS = [pytest.param(row, id=row.name) for row in OPERATIONS.values() if row.scope not in (Scope.LOOKUP, Scope.DRAW)]
WITHOUT_COUNTERPART = {"left_shift", "copysign", "round", "logical_xor", "quantile", "percentile", "nansum", "nanmean"}


def question(row):
    """Return arguments of an operation, its options, and what NumPy says."""
    rng = np.random.default_rng(3)
    shape = () if row.scope is Scope.ELEMENTWISE else (5,)
    arguments = [rng.uniform(max(row.domain[0], -2.0), min(row.domain[1], 2.0), (8, *shape)) for _ in range(3)]
    if row.role is Role.LOGIC:
        arguments = [argument > 0 for argument in arguments]
    if row.role is Role.POWER:
        arguments[0] = np.abs(arguments[0])
    if row.role is Role.CHOICE:
        return [arguments[0] > 0, *arguments[1:]], {}, np.where(arguments[0] > 0, *arguments[1:])
    if row.scope is Scope.ELEMENTWISE:
        arguments = arguments[: getattr(row.function, "nin", 1)]
        if row.name == "left_shift":
            arguments = [np.rint(np.abs(argument)).astype(int) for argument in arguments]
        return arguments, {}, row.function(*arguments)
    if row.joins:
        return arguments, {"axis": 1}, row.function(arguments, axis=1)
    match row.name:
        case "reshape":
            return arguments[:1], {"shape": (5, 8)}, arguments[0].reshape(5, 8)
        case "transpose":
            return arguments[:1], {}, arguments[0].T
        case "dot":
            return [arguments[0], arguments[1].T], {}, arguments[0] @ arguments[1].T
        case "argsort":
            keys = [np.rint(argument[0]) for argument in arguments]
            return keys, {}, np.lexsort(keys[::-1])
        case "quantile" | "percentile":
            return arguments[:1], {"q": 0.4, "axis": 1}, row.function(arguments[0], 0.4, axis=1)
    return arguments[:1], {"axis": 1}, row.function(arguments[0], axis=1)


def asked(backend, row, arguments, options):
    if row.scope is Scope.ELEMENTWISE:
        return backend.elementwise(row.name, arguments)
    return backend.array_function(row.name, arguments, options)


@pytest.mark.parametrize("row", ROWS)
def test_pytensor_has_the_function_under_this_name(row):
    arguments, options, expected = question(row)
    if row.pytensor is None:
        assert row.name in WITHOUT_COUNTERPART
        with pytest.raises(Untranslatable, match=row.name):
            asked(PyTensor(), row, arguments, options)
        return
    symbols = [pt.tensor(dtype=argument.dtype.name, shape=argument.shape) for argument in arguments]
    made = asked(PyTensor(), row, symbols, options)
    found = pytensor.function(symbols, made, mode=Mode(linker="py", optimizer=None))(*arguments)
    np.testing.assert_allclose(np.asarray(found, float), np.asarray(expected, float), rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS)
def test_jax_has_the_function_under_this_name(row):
    arguments, options, expected = question(row)
    with jax.enable_x64(True):
        found = asked(JaxNumpy(), row, [jax.numpy.asarray(argument) for argument in arguments], options)
    np.testing.assert_allclose(np.asarray(found, float), np.asarray(expected, float), rtol=1e-9, atol=1e-12)


def test_what_the_table_does_not_list_is_looked_up_in_jax_alone():
    with jax.enable_x64(True):
        assert float(JaxNumpy().elementwise("sinc", [jax.numpy.asarray(0.5)])) == pytest.approx(2 / np.pi)
    with pytest.raises(Untranslatable, match=r"np\.nobody"):
        JaxNumpy().elementwise("nobody", [jax.numpy.asarray(0.5)])
    with pytest.raises(Untranslatable, match=r"np\.sinc"):
        PyTensor().elementwise("sinc", [pt.dscalar()])
