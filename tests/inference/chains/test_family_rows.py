"""Every distribution of single numbers in PyMC and NumPyro: densities by SciPy, and posteriors by quadrature."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import integrate, special, stats

import privug as pv
from oracles.families import ROWS
from privug.inference.chains.pymc_engine import PyTensor

jax = pytest.importorskip("jax")
pytest.importorskip("numpyro")

from privug.inference.chains.numpyro_engine import JaxNumpy  # noqa: E402

QUICK = ("DiscreteGaussian", "Hypergeometric", "NegativeBinomial", "Pareto", "Triangular", "Weibull")


def marked(rows):
    return [row if row.name in QUICK else pytest.param(row, marks=pytest.mark.slow) for row in rows]


def log_density(row):
    values = row.values()
    return values, row.reference.logpmf(values) if row.is_discrete else row.reference.logpdf(values)


@pytest.mark.parametrize("row", marked(ROWS), ids=lambda row: row.name)
def test_the_density_in_pymc(row):
    values, expected = log_density(row)
    parameters = [pt.as_tensor_variable(array[0]) for array in row.parameters]
    log = PyTensor().log_density(row.family, pt.as_tensor_variable(values.astype(row.family.dtype)), parameters)
    found = pytensor.function([], log, mode=pytensor.compile.mode.Mode(linker="py", optimizer=None))()
    np.testing.assert_allclose(found, expected, rtol=1e-7)  # PyMC's truncated normal density is off by 7e-9


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_density_and_the_quantiles_in_numpyro(row):
    values, expected = log_density(row)
    z = np.array([-2.5, -0.7, 0.1, 1.3, 3.0])
    with jax.enable_x64(True):
        parameters = [jax.numpy.asarray(array[0]) for array in row.parameters]
        log = np.asarray(JaxNumpy().log_density(row.family, jax.numpy.asarray(values), parameters))
        quantiles = row.family.quantiles(JaxNumpy.formulas, jax.numpy.asarray(z), *parameters)
        stretched = row.family.stretched(JaxNumpy.formulas, jax.numpy.asarray(z), *parameters)
        steps = row.family.stretched(JaxNumpy.formulas, jax.numpy.asarray(z) + 1e-6, *parameters)
    np.testing.assert_allclose(log, expected, rtol=1e-9, atol=1e-12)
    assert row.is_discrete == (quantiles is None and stretched is None)
    if quantiles is not None:
        np.testing.assert_allclose(row.reference.cdf(np.asarray(quantiles)), special.ndtr(z), rtol=1e-9)
    if stretched is not None:
        slopes = (np.asarray(steps[0]) - np.asarray(stretched[0])) / 1e-6
        np.testing.assert_allclose(np.exp(np.asarray(stretched[1])), slopes, rtol=1e-5)


def truth(row, seen):
    """The mean of X given that X plus standard normal noise is a number."""
    if row.is_discrete:
        values = np.arange(row.reference.ppf(1e-12), row.reference.isf(1e-12) + 1)
        weights = row.reference.pmf(values) * stats.norm(values).pdf(seen)
        return values @ weights / weights.sum()
    low, high = max(row.reference.support()[0], seen - 9), min(row.reference.support()[1], seen + 9)
    total, first = (
        integrate.quad(lambda x, k=k: x**k * row.reference.pdf(x) * stats.norm(x).pdf(seen), low, high, limit=300)[0]
        for k in (0, 1)
    )
    return first / total


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["pymc", "numpyro", "rare", "sample"])
@pytest.mark.parametrize("row", [row for row in ROWS if row.name in QUICK], ids=lambda row: row.name)
def test_engines_agree_with_quadrature(row, engine):
    seen = float(row.reference.ppf(0.8)) + 0.3
    attack = pv.Attack(lambda x, noise: x + noise, {"x": row.make(), "noise": pv.Normal(0, sd=1)}, "x")
    result = attack.run(pv.equals(seen), engine=engine, samples=2000, seed=5)
    assert truth(row, seen) in result.posterior.mean().widened(2)
    exact = attack.run(pv.equals(seen), engine="exact").posterior.mean()
    assert exact.value == pytest.approx(truth(row, seen), rel=1e-8)
