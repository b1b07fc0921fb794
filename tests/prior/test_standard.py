"""Standard distributions that SciPy lacks, against quadrature."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from privug.prior.scalar import UniformPlusNormal

WIDTHS = [0.25, 1.0, 2.8, 50.0]


def tail_by_quadrature(x, width):
    """P(normal + uniform <= x), for x in the lower tail, integrated over where the uniform part lies."""
    found, _ = integrate.quad(lambda u: stats.norm.cdf(x - u), 0, min(width, 10.0), epsrel=1e-13, epsabs=0)
    return found / width


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("x", [-25.0, -8.0, -3.0, -0.5])
def test_tails_keep_their_digits(x, width):
    law = UniformPlusNormal(width)
    lower = tail_by_quadrature(x, width)
    assert float(law.cdf(x)) == pytest.approx(lower, rel=1e-11)
    assert float(law.sf(width - x)) == pytest.approx(lower, rel=1e-11)
    density = (stats.norm.cdf(x) - stats.norm.cdf(x - width)) / width
    assert float(law.pdf(x)) == pytest.approx(density, rel=1e-12)
    assert float(law.logpdf(width - x)) == pytest.approx(math.log(density), rel=1e-13)


@pytest.mark.parametrize("width", WIDTHS)
def test_quantiles_are_inverse(width):
    law = UniformPlusNormal(width)
    shares = np.array([1e-250, 1e-9, 0.2, 0.5, 0.99, 1 - 1e-9])
    assert law.cdf(law.ppf(shares)) == pytest.approx(shares, rel=1e-10)
    assert law.sf(law.isf(shares)) == pytest.approx(shares, rel=1e-10)
    assert law.ppf(np.array([0.0, 1.0])).tolist() == [-math.inf, math.inf]
    assert law.cdf(np.array([-math.inf, math.inf])).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("width", WIDTHS)
def test_moments(width):
    law = UniformPlusNormal(width)
    mean, _ = integrate.quad(lambda x: x * law.pdf(x), -40, width + 40, points=[0, width])
    var, _ = integrate.quad(lambda x: (x - mean) ** 2 * law.pdf(x), -40, width + 40, points=[0, width])
    assert law.mean() == pytest.approx(mean, rel=1e-9)
    assert law.std() == pytest.approx(math.sqrt(var), rel=1e-9)
