"""Sums of independent quantities against closed forms and integrals that share no code with them."""

import itertools
import math
from fractions import Fraction
from functools import partial, reduce

import numpy as np
import pytest
import scipy
from scipy import stats
from scipy.integrate import quad
from scipy.special import ndtr

from privug.inference.measure.convolution import Powers, Unsummable, added
from privug.inference.measure.curve import Curve, Pushforward
from privug.inference.measure.density import Analytic
from privug.prior.continuous import (
    BETA,
    CAUCHY,
    EXPONENTIAL,
    GAMMA,
    LAPLACE,
    LOG_NORMAL,
    PARETO,
    STUDENT_T,
    TRUNCATED_NORMAL,
    UNIFORM,
)
from privug.prior.standard import StandardNormal

MEAN, SD, LOW, HIGH = 40.0, 25.0, 18.0, 90.0
UNIT = Curve.of_family(UNIFORM, 0.0, 1.0)
AGES = Curve.of_family(TRUNCATED_NORMAL, MEAN, SD, LOW, HIGH)
EXPONENTIAL_ONE = Curve.of_family(EXPONENTIAL, 1.0)
LAPLACE_ONE = Curve.of_family(LAPLACE, 0.0, 1.0)
SQUARE = Pushforward(
    Analytic(StandardNormal(), 1.0, 0.0, 0.0, math.inf),
    np.square,
    lambda y: np.sqrt(np.maximum(y, 0)),
    lambda x: 2 * x,
    True,
)


def above(curve, x):
    return float(curve.mass(x, np.inf))


def clamped(curve, low, high):
    """The distribution of a quantity whose values outside of a range are put to its ends."""
    share, inside = curve.restricted(low, high)
    parts = tuple((share * weight, part) for weight, part in inside.parts)
    return Curve(parts, np.array([low, high]), np.array([float(curve.cdf(low)), above(curve, high)]))


def irwin_hall(n, x):
    """P(sum of n uniform numbers <= x), in fractions."""
    x = min(max(Fraction(x), Fraction(0)), Fraction(n))
    terms = ((-1) ** k * math.comb(n, k) * (x - k) ** n for k in range(math.floor(x) + 1))
    return sum(terms, Fraction(0)) / math.factorial(n)


def is_whole(curve, k, one):
    """Whether the mass is one, and mean and variance are those of a sum."""
    assert float(curve.mass(-np.inf, np.inf)) == pytest.approx(1, abs=1e-14)
    assert curve.error < 1e-12
    assert curve.mean() == pytest.approx(k * one.mean(), rel=1e-11, abs=1e-11)
    assert curve.std() == pytest.approx(math.sqrt(k) * one.std(), rel=1e-10)


def total(curves):
    """Return the law of the sum of several quantities, each with its number of independent copies."""
    return reduce(added, [Powers(curve).sum(count) for curve, count in curves])


class TestClosedForms:
    @pytest.mark.parametrize("k", [2, 3, 4, 7, 12, 30])
    def test_uniform(self, k):
        found = Powers(UNIT).sum(k)
        is_whole(found, k, UNIT)
        assert found.support == (0, k)
        for x in (0.3, 1.0, 0.4 * k, k / 2, 0.9 * k):
            assert float(found.cdf(x)) == pytest.approx(float(irwin_hall(k, Fraction(x))), abs=1e-13)

    @pytest.mark.parametrize("k", [2, 3, 5, 10, 50, 1000])
    def test_exponential(self, k):
        found, truth = Powers(EXPONENTIAL_ONE).sum(k), stats.gamma(k)
        is_whole(found, k, EXPONENTIAL_ONE)
        for p in (0.001, 0.3, 0.9):
            assert float(found.cdf(truth.ppf(p))) == pytest.approx(p, abs=2e-12 if k == 1000 else 2e-13)

    @pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 50])
    def test_squares_of_normals(self, k):
        one = Curve(((1.0, SQUARE),))
        found, truth = Powers(one).sum(k), stats.chi2(k)
        assert found.support[0] == 0
        for x in (0.02 * k, 0.5 * k, k, 2 * k, 3 * k):
            assert float(found.cdf(x)) == pytest.approx(truth.cdf(x), abs=1e-12)

    def test_shifted_squares_of_normals(self):
        found = Powers(Curve(((1.0, SQUARE),)).affine(2.0, 18.0)).sum(3)
        assert float(found.cdf(60.0)) == pytest.approx(stats.chi2(3).cdf(3.0), abs=1e-10)

    def test_normals(self):
        found = total([(Curve.normal(1.0, 3.0), 5), (Curve.normal(-2.0, 4.0), 2)])
        assert (found.mean(), found.std()) == pytest.approx((1.0, math.sqrt(77.0)), rel=1e-15)
        assert isinstance(found.parts[0][1], Analytic)
        assert Powers(Curve.normal(1.0, 3.0)).sum(10**6).std() == pytest.approx(3000.0, rel=1e-15)

    def test_laplace(self):
        powers = Powers(LAPLACE_ONE)
        for x in (0.0, 0.5, 3.0, 12.0, 25.0):
            decay = math.exp(-x)
            assert above(powers.sum(2), x) == pytest.approx((2 + x) * decay / 4, rel=1e-10)
            assert above(powers.sum(3), x) == pytest.approx((8 + 5 * x + x * x) * decay / 16, rel=1e-10)
        is_whole(powers.sum(20), 20, LAPLACE_ONE)

    @pytest.mark.parametrize("k", [2, 7, 1000])
    def test_cauchy(self, k):
        found = Powers(Curve.of_family(CAUCHY, 1.0, 2.0)).sum(k)
        for x in (-3.0 * k, k, 1e6 * k):
            assert above(found, x) == pytest.approx(stats.cauchy(k, 2 * k).sf(x), rel=1e-12)

    def test_student(self):
        # The density of two with three degrees of freedom, by the characteristic function (1 + a|t|) exp(-a|t|).
        a = math.sqrt(3)
        found = Powers(Curve.of_family(STUDENT_T, 3.0, 0.0, 1.0)).sum(2)
        for x in (0.0, 1.0, 10.0):
            integral, _ = quad(lambda t: (1 + a * t) ** 2 * math.exp(-2 * a * t) * math.cos(t * x), 0, 30, epsabs=1e-13)  # noqa: B023
            assert float(found.pdf(x)) == pytest.approx(integral / math.pi, abs=1e-12)

    def test_heavy_tail_of_a_sum(self):
        # Twice the integral over the smaller of both, in its logarithm.
        one = stats.pareto(1.5)
        found = Powers(Curve.of_family(PARETO, 1.5, 1.0)).sum(2)
        for x in (4.0, 1e3, 1e7):
            by_logarithm = partial(lambda x, v: math.exp(v) * one.pdf(math.exp(v)) * one.pdf(x - math.exp(v)), x)
            truth = quad(by_logarithm, 0, math.log(x / 2), epsabs=0, epsrel=1e-12)[0]
            assert float(found.pdf(x)) == pytest.approx(2 * truth, rel=1e-9)


class TestIntegrals:
    @staticmethod
    def density(y):
        inside = (y >= LOW) & (y <= HIGH)
        share = ndtr((HIGH - MEAN) / SD) - ndtr((LOW - MEAN) / SD)
        return inside * np.exp(-0.5 * ((y - MEAN) / SD) ** 2) / (SD * math.sqrt(2 * math.pi) * share)

    @classmethod
    def two(cls, x):
        """The density of a sum of two truncated normals: a normal one times the share of the first's values."""
        share = ndtr((HIGH - MEAN) / SD) - ndtr((LOW - MEAN) / SD)
        low, high = max(LOW, x - HIGH), min(HIGH, x - LOW)
        width = SD / math.sqrt(2)
        inside = ndtr((high - x / 2) / width) - ndtr((low - x / 2) / width)
        return stats.norm.pdf(x, 2 * MEAN, SD * math.sqrt(2)) * max(inside, 0.0) / share**2

    def test_truncated_normals(self):
        powers = Powers(AGES)
        for x in (40.0, 90.0, 108.0, 130.0, 175.0):
            assert float(powers.sum(2).pdf(x)) == pytest.approx(self.two(x), rel=1e-12)
        for x in (60.0, 126.0, 180.0, 230.0, 265.0):
            kinks = sorted(y for y in (x - 2 * LOW, x - LOW - HIGH, x - 2 * HIGH) if LOW < y < HIGH)
            truth = quad(lambda y: self.density(y) * self.two(x - y), LOW, HIGH, points=kinks or None, epsabs=1e-15)[0]  # noqa: B023
            assert float(powers.sum(3).pdf(x)) == pytest.approx(truth, rel=1e-11)

    @pytest.mark.parametrize("k", [4, 6, 9, 15, 1000])
    def test_many_truncated_normals(self, k):
        is_whole(Powers(AGES).sum(k), k, AGES)

    def test_panels_and_characteristic_functions_agree(self):
        powers = Powers(AGES)
        by_panels = added(powers.sum(8), powers.sum(8))
        x = np.linspace(400.0, 1200.0, 41)
        assert powers.sum(16).cdf(x) == pytest.approx(by_panels.cdf(x), abs=1e-13)

    @pytest.mark.parametrize("k", [2, 7])
    def test_lognormals(self, k):
        # The density has all derivatives zero at zero: the trapezoidal rule is exact but for rounding.
        step, points = 0.02, 1 << 14
        x = step * np.arange(points)
        density = np.zeros(points)
        density[1:] = stats.lognorm(0.5).pdf(x[1:])
        sums = np.fft.irfft(np.fft.rfft(density, 8 * points) ** k)[:points] * step ** (k - 1)
        found = Powers(Curve.of_family(LOG_NORMAL, 0.0, 0.5)).sum(k)
        where = np.searchsorted(x, np.array([0.6, 1.0, 1.5, 3.0]) * k)
        assert found.pdf(x[where]) == pytest.approx(sums[where], abs=1e-13)

    @pytest.mark.slow
    def test_beta_with_singular_ends(self):
        found = Powers(Curve.of_family(BETA, 0.5, 0.5)).sum(2)
        for x in (0.1, 0.7, 1.3):
            # Twice the sine of half the angle: the first angle is uniform, the second follows.
            def inner(angle):
                left = x - math.sin(angle) ** 2  # noqa: B023
                return 2 / math.pi * math.asin(math.sqrt(min(max(left, 0.0), 1.0)))

            kinks = [math.asin(math.sqrt(y)) for y in (x, x - 1) if 0 < y < 1]
            truth = quad(inner, 0, math.pi / 2, points=kinks, epsabs=1e-12, limit=400)[0] * 2 / math.pi
            assert float(found.cdf(x)) == pytest.approx(truth, abs=1e-9)


class TestScales:
    @pytest.mark.parametrize("sd", [1e-6, 1e-3, 0.1, 1.0, 30.0, 1e3, 1e6])
    def test_normal_with_uniform(self, sd):
        found = added(UNIT, Curve.normal(0.0, sd))
        assert found.mean() == pytest.approx(0.5, abs=1e-12 * max(1, sd))
        for x in (-3 * sd, 0.0, 0.2 * sd, 0.5):
            truth = sd * (x / sd * ndtr(x / sd) + stats.norm.pdf(x / sd)) - sd * (
                (x - 1) / sd * ndtr((x - 1) / sd) + stats.norm.pdf((x - 1) / sd)
            )
            assert float(found.cdf(x)) == pytest.approx(truth, abs=1e-12 + 1e-15 * sd)

    @pytest.mark.parametrize("scale", [1e-6, 1e-3, 0.1, 1.0, 30.0, 1e6])
    def test_laplace_with_uniform(self, scale):
        found = added(Curve.of_family(LAPLACE, 3.0, scale), UNIT)
        noise = stats.laplace(3.0, scale)
        for x in (3 - 2 * scale, 3.0, 3.5):
            assert float(found.pdf(x)) == pytest.approx(noise.cdf(x) - noise.cdf(x - 1), rel=1e-8, abs=1e-12)

    @pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
    def test_exponential_with_uniform(self, scale):
        found = added(Curve.of_family(EXPONENTIAL, scale), UNIT)
        for x in (0.3 * min(1, scale), 0.5, 1.0):
            truth = x - scale * -math.expm1(-x / scale)
            assert float(found.cdf(x)) == pytest.approx(truth, abs=1e-13)


class TestAtoms:
    def test_points_shift(self):
        assert float(added(UNIT, Curve.point(3.0)).cdf(3.25)) == pytest.approx(0.25, abs=1e-15)
        assert Powers(UNIT).sum(0).atoms.tolist() == [0.0]
        assert Powers(UNIT).sum(1) is UNIT

    def test_equal_atoms_are_merged(self):
        tenths = Powers(Curve.discrete([0.1, 0.2, 0.3], [0.2, 0.3, 0.5])).sum(40)
        assert len(tenths.atoms) == 81
        assert tenths.mean() == pytest.approx(40 * 0.23, rel=1e-13)

    def test_a_binomial_number(self):
        found = Powers(Curve.discrete([0.0, 1.0], [0.7, 0.3])).sum(50)
        assert found.masses == pytest.approx(stats.binom(50, 0.3).pmf(found.atoms), rel=1e-12)

    @pytest.mark.parametrize("k", [2, 5, 12])
    def test_clamped_uniform(self, k):
        # By how many lie at the lower end, at the upper end and between them.
        low, high = Fraction(1, 4), Fraction(7, 8)
        shares = low, high - low, 1 - high
        found = Powers(clamped(UNIT, 0.25, 0.875)).sum(k)
        for x in (Fraction(k, 3), Fraction(k, 2), Fraction(5 * k, 8) + Fraction(1, 64)):
            truth = Fraction(0)
            for a, b in itertools.product(range(k + 1), repeat=2):
                j = k - a - b
                if j >= 0:
                    ways = math.factorial(k) // (math.factorial(a) * math.factorial(b) * math.factorial(j))
                    left = x - a * low - b * high - j * low
                    inner = irwin_hall(j, left / shares[1]) if j else Fraction(int(left >= 0))
                    truth += ways * shares[0] ** a * shares[1] ** j * shares[2] ** b * inner
            assert float(found.cdf(float(x))) == pytest.approx(float(truth), abs=1e-12)

    @pytest.mark.parametrize("k", [12, 50])
    def test_clamped_normal(self, k):
        one = clamped(Curve.normal(MEAN, SD), LOW, HIGH)
        found = Powers(one).sum(k)
        is_whole(found, k, one)
        assert found.support == (k * LOW, k * HIGH)
        if k == 12:
            assert found.masses[0] == pytest.approx(float(ndtr((LOW - MEAN) / SD)) ** 12, rel=1e-12)

    def test_laplace_noise_on_atoms_and_densities(self):
        one = clamped(UNIT, 0.25, 0.875)
        found = added(one, Curve.of_family(LAPLACE, 0.0, 0.3))
        noise = stats.laplace(0.0, 0.3)
        for x in (-0.5, 0.25, 0.5, 1.2):
            inner = quad(lambda y: noise.cdf(x - y), 0.25, 0.875, points=[min(max(x, 0.25), 0.875)], epsabs=1e-14)[0]  # noqa: B023
            truth = 0.25 * noise.cdf(x - 0.25) + 0.125 * noise.cdf(x - 0.875) + inner
            assert float(found.cdf(x)) == pytest.approx(truth, abs=1e-13)

    def test_many_atoms_with_noise(self):
        counts = Powers(Curve.discrete([0.0, 1.0], [0.6, 0.4])).sum(30)
        for noise, truth in ((Curve.normal(0.0, 0.7), stats.norm(0, 0.7)), (LAPLACE_ONE, stats.laplace())):
            found = added(counts, noise)
            for x in (3.0, 12.5, 20.0):
                expected = stats.binom(30, 0.4).pmf(np.arange(31)) @ truth.cdf(x - np.arange(31))
                assert float(found.cdf(x)) == pytest.approx(expected, abs=1e-13)

    def test_too_many_values_are_refused(self):
        rng = np.random.default_rng(0)
        one = Curve.discrete(rng.random(5000), np.ones(5000))
        with pytest.raises(Unsummable, match="too many values"):
            added(one, Curve.discrete(rng.random(5000), np.ones(5000)))


class TestTails:
    """Probabilities near 1e-12 have six digits at least, and the curve says so."""

    @pytest.mark.parametrize("k", [3, 10, 50])
    def test_exponential(self, k):
        found, truth = Powers(EXPONENTIAL_ONE).sum(k), stats.gamma(k)
        for p in (1e-6, 1e-9, 1e-12):
            assert above(found, truth.isf(p)) == pytest.approx(p, rel=1e-7)
            assert float(found.cdf(truth.ppf(p))) == pytest.approx(p, rel=1e-6)
            assert found.error_of(p) < 1e-6 * p

    @pytest.mark.parametrize("k", [4, 12, 20])
    def test_uniform(self, k):
        found = Powers(UNIT).sum(k)
        for p in (1e-8, 1e-12):
            x = Fraction((p * math.factorial(k)) ** (1 / k))
            truth = float(irwin_hall(k, x))
            assert float(found.cdf(float(x))) == pytest.approx(truth, rel=1e-7)
            assert above(found, k - float(x)) == pytest.approx(truth, rel=1e-6)

    def test_gammas(self):
        found = total([(Curve.of_family(GAMMA, 2.5, 1.0), 3), (Curve.of_family(GAMMA, 0.5, 1.0), 9)])
        truth = stats.gamma(12.0)
        for p in (1e-9, 1e-12):
            assert above(found, truth.isf(p)) == pytest.approx(p, rel=1e-6)

    def test_normal_with_uniform(self):
        found = added(UNIT, Curve.normal(0.0, 1.0))
        truth = quad(lambda y: stats.norm.sf(7.5 - y), 0, 1, epsabs=0, epsrel=1e-12)[0]
        assert above(found, 7.5) == pytest.approx(truth, rel=1e-9)


class TestSeveral:
    def test_different_quantities(self):
        curves = [(UNIT, 4), (clamped(UNIT, 0.25, 0.875), 2), (LAPLACE_ONE, 1), (Curve.normal(2.0, 0.3), 3)]
        found = total([*curves, (Curve.discrete([0, 1, 2], [0.2, 0.3, 0.5]), 6)])
        mean = 4 * 0.5 + 2 * clamped(UNIT, 0.25, 0.875).mean() + 6.0 + 6 * 1.3
        assert found.mean() == pytest.approx(mean, rel=1e-12)
        assert float(found.mass(-np.inf, np.inf)) == pytest.approx(1, abs=1e-13)

    def test_many_different_uniforms(self):
        found = total([(Curve.of_family(UNIFORM, 0.0, 1 + i / 10), 1) for i in range(12)])
        assert found.mean() == pytest.approx(sum(1 + i / 10 for i in range(12)) / 2, rel=1e-13)
        assert found.std() == pytest.approx(math.sqrt(sum((1 + i / 10) ** 2 for i in range(12)) / 12), rel=1e-12)


def test_kinks_are_told():
    assert Powers(UNIT).sum(3).breaks.tolist() == [0, 1, 2, 3]
    assert added(UNIT, LAPLACE_ONE).breaks[1:-1].tolist() == [0, 1]
    assert scipy.integrate.quad(lambda x: float(Powers(UNIT).sum(2).pdf(x)), 0, 1)[0] == pytest.approx(0.5)
