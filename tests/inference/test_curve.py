"""Curves: exactly known distributions of one number, against SciPy and closed forms."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

import privug as pv
from privug.inference.belief import Belief
from privug.inference.measure.curve import Curve
from privug.inference.measure.density import NODES, Tabulated, integrals, panel_nodes, resolved, tabulate, united
from privug.model.node import Kind
from privug.prior import continuous as families
from privug.prior.continuous import EXPONENTIAL, GAMMA


def of_density(density, edges):
    """A curve of a density function between the outermost edges, which need not be normalised."""
    total, error, table = tabulate(density, edges, tuple(edges))
    return Curve(((1.0, table),), error=error / total)


CASES = {
    "uniform": (families.UNIFORM, (0.0, 100.0)),
    "normal": (families.NORMAL, (42.0, 8.0)),
    "truncated normal": (families.TRUNCATED_NORMAL, (0.0, 1.0, -0.5, math.inf)),
    "log-normal": (families.LOG_NORMAL, (1.0, 2.0)),
    "Student's t": (families.STUDENT_T, (3.0, 1.0, 2.0)),
    "Laplace": (families.LAPLACE, (3.0, 2.0)),
    "exponential": (EXPONENTIAL, (5.0,)),
    "gamma, infinite at zero": (GAMMA, (0.3, 2.0)),
    "gamma": (GAMMA, (7.0, 2.0)),
    "beta": (families.BETA, (2.0, 5.0)),
    "tiny": (families.NORMAL, (0.0, 1e-150)),
    "huge": (families.UNIFORM, (-1e150, 1e150)),
}
LEVELS = np.array([1e-6, 0.01, 0.3, 0.5, 0.9, 0.999])


@pytest.mark.parametrize("name", CASES)
class TestFamilies:
    def both(self, name):
        family, parameters = CASES[name]
        return Curve.of_family(family, *parameters), family.frozen(*parameters)

    def test_distribution_function_and_quantiles(self, name):
        curve, truth = self.both(name)
        points = truth.ppf(LEVELS)
        assert curve.cdf(points) == pytest.approx(LEVELS, rel=1e-10)
        assert curve.quantiles(LEVELS) == pytest.approx(points, rel=1e-10)
        assert curve.pdf(points) == pytest.approx(truth.pdf(points), rel=1e-10)

    def test_predicates(self, name):
        curve, truth = self.both(name)
        low, high = truth.ppf(0.2), truth.ppf(0.7)
        assert curve.probability(lambda x: x < low) == pytest.approx(0.2, rel=1e-10)
        assert curve.probability(lambda x: low < x <= high) == pytest.approx(0.5, rel=1e-10)
        assert curve.probability(lambda x: x < low or x > high) == pytest.approx(0.5, rel=1e-10)
        assert curve.probability(lambda x: True) == pytest.approx(1.0, rel=1e-12)

    def test_cells_stand_for_the_curve_in_sums(self, name):
        curve, truth = self.both(name)
        values, weights = curve.cells()
        assert weights.sum() == pytest.approx(1.0, rel=1e-12)
        middle, width = truth.ppf(0.5), truth.ppf(0.75) - truth.ppf(0.25)
        expected = curve.expectation(lambda x: np.tanh((x - middle) / width))
        assert weights @ np.tanh((values - middle) / width) == pytest.approx(expected, abs=1e-9)

    def test_tabulated_it_is_the_same(self, name):
        curve, truth = self.both(name)
        table = of_density(curve.pdf, curve.edges)
        points = truth.ppf(LEVELS[1:])
        assert table.cdf(points) == pytest.approx(LEVELS[1:], rel=1e-9)
        width = truth.ppf(0.7) - truth.ppf(0.3)
        assert table.quantiles(LEVELS[1:]) == pytest.approx(points, rel=1e-9, abs=1e-9 * width)
        assert table.pdf(points) == pytest.approx(truth.pdf(points), rel=1e-9)
        assert table.error < 1e-12

    def test_samples_follow_it(self, name):
        curve, truth = self.both(name)
        sample = curve.sample(20_000, np.random.default_rng(1))
        assert stats.kstest(truth.cdf(sample), "uniform").pvalue > 1e-4


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("tiny", "huge", "truncated normal")])
def test_entropy(name):
    family, parameters = CASES[name]
    truth = float(family.frozen(*parameters).entropy()) / math.log(2)
    assert Curve.of_family(family, *parameters).differential_entropy() == pytest.approx(truth, abs=1e-10)


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("tiny", "huge")])
def test_moments_by_quadrature_agree_with_the_closed_ones(name):
    family, parameters = CASES[name]
    truth = family.frozen(*parameters)
    curve = Curve.of_family(family, *parameters)
    assert curve.mean() == pytest.approx(truth.mean(), rel=1e-12)
    assert curve.std() == pytest.approx(truth.std(), rel=1e-12)
    assert curve.expectation(lambda x: x) == pytest.approx(truth.mean(), rel=1e-8)
    if name != "Student's t":  # its tail of the square falls off too slowly to be integrated numerically
        assert curve.expectation(np.square) == pytest.approx(truth.mean() ** 2 + truth.var(), rel=1e-8)


def test_edges_that_are_whole_numbers_are_united_as_others_are():
    assert united([np.array([0, 1, 3])]).tolist() == united([np.array([0.0, 1.0, 3.0])]).tolist() == [0.0, 3.0]


def test_a_mean_that_does_not_exist_is_refused():
    for family, parameters in ((families.CAUCHY, (1.0, 2.0)), (families.STUDENT_T, (0.5, 0.0, 1.0))):
        curve = Curve.of_family(family, *parameters)
        with pytest.raises(pv.ArgumentError, match="does not exist"):
            curve.mean()
        with pytest.raises(pv.ArgumentError, match="does not exist"):
            curve.std()
        assert curve.quantile(0.5) == pytest.approx(parameters[-2], abs=1e-12)
    # A likelihood that says little leaves the tails as heavy as they were.
    _, posterior = Curve.of_family(families.CAUCHY, 0.0, 1.0).reweighted(lambda x: 1 + 1 / (1 + x**2))
    with pytest.raises(pv.ArgumentError, match="does not exist"):
        posterior.mean()
    assert math.isinf(Curve.of_family(families.STUDENT_T, 1.5, 0.0, 1.0).std())


def test_far_tails_keep_their_digits():
    curve = Curve.normal(0.0, 1.0)
    assert curve.probability(lambda x: x > 8) == pytest.approx(stats.norm.sf(8), rel=1e-10)
    assert curve.mass(20.0, 21.0) == pytest.approx(stats.norm.sf(20) - stats.norm.sf(21), rel=1e-10)
    probability, tail = curve.restricted(20.0, math.inf)
    assert probability == pytest.approx(stats.norm.sf(20), rel=1e-12)
    assert tail.mean() == pytest.approx(stats.norm.pdf(20) / stats.norm.sf(20), rel=1e-9)
    assert tail.cdf(20.05) == pytest.approx(1 - stats.norm.sf(20.05) / stats.norm.sf(20), rel=1e-9)


def test_uniform_restricted_is_uniform():
    probability, curve = Curve.of_family(families.UNIFORM, 0.0, 100.0).restricted(55.58, 55.62)
    assert probability == pytest.approx(4e-4, rel=1e-10)
    assert curve.mean() == pytest.approx(55.6, rel=1e-12)
    assert curve.std() == pytest.approx(0.011547005383792516, rel=1e-9)
    assert curve.differential_entropy() == pytest.approx(math.log2(0.04), abs=1e-9)
    assert curve.kl_to(Curve.of_family(families.UNIFORM, 0.0, 100.0)) == pytest.approx(11.287712379549449, abs=1e-9)
    assert Curve.of_family(families.UNIFORM, 0.0, 1.0).restricted(2.0, 3.0) == (0.0, None)


def test_divergence_of_normals():
    one, other = Curve.normal(1.0, 2.0), Curve.normal(-3.0, 0.5)
    nats = math.log(0.5 / 2) + (4 + 16) / (2 * 0.25) - 0.5
    assert one.kl_to(other) == pytest.approx(nats / math.log(2), rel=1e-10)
    far = Curve.normal(100.0, 1.0)  # its density underflows where the other has its mass
    assert Curve.normal(0.0, 1.0).kl_to(far) == pytest.approx(5000 / math.log(2), rel=1e-10)
    assert one.kl_to(one) == 0.0
    assert one.kl_to(Curve.of_family(families.UNIFORM, -1e3, 1e3)) > 0
    assert math.isinf(one.kl_to(Curve.of_family(families.UNIFORM, 0.0, 1e3)))
    gap = Curve.mixture([1, 1], [Curve.of_family(families.UNIFORM, k, k + 1.0) for k in (0.0, 2.0)])
    assert math.isinf(Curve.of_family(families.UNIFORM, 0.0, 3.0).kl_to(gap))


def test_posterior_by_a_likelihood():
    """A uniform prior under normal noise is a truncated normal; a normal one stays normal."""
    evidence, posterior = Curve.of_family(families.UNIFORM, 0.0, 1.0).reweighted(lambda x: stats.norm.pdf(0.9, x, 0.05))
    truth = stats.truncnorm(-18, 2, loc=0.9, scale=0.05)
    assert evidence == pytest.approx(stats.norm.cdf(2) - stats.norm.cdf(-18), rel=1e-10)
    assert posterior.mean() == pytest.approx(truth.mean(), rel=1e-10)
    assert posterior.cdf(0.8) == pytest.approx(truth.cdf(0.8), rel=1e-9)
    _, posterior = Curve.normal(0.0, 2.0).reweighted(lambda x: np.exp(-0.5 * (x - 3) ** 2))
    assert posterior.mean() == pytest.approx(12 / 5, rel=1e-10)
    assert posterior.std() == pytest.approx(math.sqrt(4 / 5), rel=1e-10)
    assert posterior.quantile(0.9) == pytest.approx(stats.norm.ppf(0.9, 12 / 5, math.sqrt(4 / 5)), rel=1e-10)


def test_likelihood_with_jumps():
    evidence, posterior = Curve.of_family(families.UNIFORM, 0.0, 1.0).reweighted(lambda x: (x < 1 / 3) * 1.0, [1 / 3])
    assert evidence == pytest.approx(1 / 3, rel=1e-12)
    assert posterior.mean() == pytest.approx(1 / 6, rel=1e-12)
    nowhere, nothing = Curve.of_family(families.UNIFORM, 0.0, 1.0).reweighted(lambda x: 0.0 * x)
    assert (nowhere, nothing) == (0.0, None)


@pytest.mark.parametrize("count", [2, 40])
def test_mixtures(count):
    weights = np.arange(1.0, count + 1)
    curve = Curve.mixture(weights, [Curve.normal(k, 1.0 + k / 10) for k in range(count)])
    shares = weights / weights.sum()
    spread = 1 + np.arange(count) / 10
    points = np.linspace(-2, count + 2, 50)
    truth = stats.norm.cdf(points[:, np.newaxis], np.arange(count), spread) @ shares
    assert curve.cdf(points) == pytest.approx(truth, rel=1e-9)
    assert curve.mean() == pytest.approx(shares @ np.arange(count), rel=1e-10)
    second = shares @ (spread**2 + np.arange(count) ** 2)
    assert curve.std() == pytest.approx(math.sqrt(second - (shares @ np.arange(count)) ** 2), rel=1e-9)
    assert curve.cdf(curve.quantile(0.37)) == pytest.approx(0.37, rel=1e-10)


def test_atoms_and_densities_together():
    """Clipped at zero: half the probability is on the value zero."""
    curve = Curve.mixture([0.5, 0.5], [Curve.point(0.0), Curve.normal(0.0, 1.0).restricted(0.0, math.inf)[1]])
    assert curve.probability(lambda x: x == 0) == pytest.approx(0.5, abs=1e-12)
    assert curve.probability(lambda x: x > 0) == pytest.approx(0.5, rel=1e-12)
    assert curve.quantile(0.3) == 0.0
    assert curve.quantile(0.75) == pytest.approx(stats.norm.ppf(0.75), rel=1e-10)
    assert curve.mean() == pytest.approx(1 / math.sqrt(2 * math.pi), rel=1e-10)
    with pytest.raises(pv.ArgumentError, match="point masses"):
        curve.differential_entropy()
    assert math.isinf(curve.kl_to(Curve.normal(0.0, 1.0)))
    assert curve.kl_to(curve) == pytest.approx(0.0, abs=1e-12)
    mirrored = curve.affine(-2.0, 1.0)
    assert mirrored.probability(lambda x: x == 1) == pytest.approx(0.5, abs=1e-12)
    assert mirrored.mean() == pytest.approx(1 - 2 / math.sqrt(2 * math.pi), rel=1e-10)


def test_atoms_alone():
    curve = Curve.discrete([3, 1, 1], [0.5, 0.25, 0.25])
    assert curve.quantiles(np.array([0.2, 0.5, 0.51])).tolist() == [1.0, 1.0, 3.0]
    assert (curve.mean(), curve.std()) == (2.0, 1.0)
    assert curve.mass(1.0, 3.0, closed=False) == 0.5
    assert Belief.of_curve(curve).kind is Kind.DISCRETE
    assert float(Belief.of_curve(curve).distribution()[3.0]) == 0.5


@pytest.mark.parametrize(("scale", "shift"), [(2.0, 1.0), (-3.0, 5.0), (1e-8, 1e3)])
def test_linear_functions(scale, shift):
    for curve in (Curve.of_family(GAMMA, 2.0, 3.0), of_density(np.exp, [-1.0, 0.5])):
        image = curve.affine(scale, shift)
        assert image.mean() == pytest.approx(shift + scale * curve.mean(), rel=1e-10)
        assert image.std() == pytest.approx(abs(scale) * curve.std(), rel=1e-7)
        at = curve.quantile(0.2)
        below = float(image.cdf(shift + scale * at))
        assert below == pytest.approx(0.2 if scale > 0 else 0.8, abs=1e-4 if abs(scale) < 1e-3 else 1e-10)
    assert Curve.normal(0.0, 1.0).affine(0.0, 7.0).mean() == 7.0


def test_panels_by_hand():
    edges = np.array([0.0, 1.0, 2.0])
    nodes, weights = panel_nodes(edges)
    assert nodes.shape == (2, NODES)
    curve = Curve(((1.0, Tabulated(np.asarray(edges, float), 7 * np.abs(nodes - 1.0), (1.0,))),))
    assert curve.cdf(1.5) == pytest.approx(0.625, rel=1e-12)
    assert curve.mean() == pytest.approx(1.0, rel=1e-12)
    assert float((weights * nodes**2).sum()) == pytest.approx(8 / 3)


def test_narrow_events_named_in_the_predicate_are_found():
    curve = Curve.of_family(families.UNIFORM, 0.0, 1.0)
    assert curve.probability(lambda x: abs(x - 0.123456) < 1e-9) == pytest.approx(2e-9, rel=1e-5)
    assert curve.probability(lambda x: 0.2 < x < 0.2000001) == pytest.approx(1e-7, rel=1e-5)
    assert curve.probability(lambda x: 1 / x > 4) == pytest.approx(0.25, rel=1e-12)


SLIVERS = [
    (lambda: pv.Uniform(0, 1_000_000), lambda v: v < 1, 1e-6),
    (lambda: pv.Uniform(0, 1), lambda v: v < 5e-6, 5e-6),
    (lambda: pv.Uniform(0, 1), lambda v: v * v < 1e-14, 1e-7),
    (lambda: pv.Uniform(0, 1), lambda v: math.log(v) > -1e-6, -math.expm1(-1e-6)),
    (lambda: pv.Exponential(scale=1), lambda v: v < 1e-6, -math.expm1(-1e-6)),
    (lambda: pv.Beta(1, 50), lambda v: v < 1e-7, stats.beta.cdf(1e-7, 1, 50)),
    (lambda: pv.TruncatedNormal(0, sd=1, low=0), lambda v: v < 1e-5, math.erf(1e-5 / math.sqrt(2))),
    (lambda: pv.Triangular(0, 1, 2), lambda v: v > 1.9999, stats.triang.sf(1.9999, 0.5, 0, 2)),
    (lambda: pv.Normal(0, sd=1), lambda v: v > 20, stats.norm.sf(20)),
    (lambda: pv.StudentT(2), lambda v: v < -1e9, stats.t.sf(1e9, 2)),
]


@pytest.mark.parametrize(("make", "event", "truth"), SLIVERS)
def test_slivers_at_the_ends_of_the_values_count(make, event, truth):
    result = pv.Attack(lambda x: x, prior={"x": make()}, secret="x").run(engine="exact")
    assert result.prior.probability(event).value == pytest.approx(truth, rel=1e-8)
    assert result.prior.probability(lambda v: not event(v)).value == pytest.approx(1 - truth, rel=1e-12)


@pytest.mark.parametrize("shape", [1e-9, 1e-5, 1e-3])
def test_a_beta_that_is_nearly_all_at_its_ends(shape):
    result = pv.Attack(lambda x: x, prior={"x": pv.Beta(shape, shape)}, secret="x").run(engine="exact")
    assert result.prior.probability(lambda v: v < 0.3).value == pytest.approx(stats.beta(shape, shape).cdf(0.3))
    assert result.prior.mean().value == pytest.approx(0.5)


def test_many_changes_are_followed_or_sampled():
    wide = Curve.of_family(families.UNIFORM, 0.0, 100.0)
    assert wide.probability(lambda x: int(x) % 2 == 0) == pytest.approx(0.5, rel=1e-10)
    assert Curve.of_family(families.UNIFORM, 0.0, 1e9).probability(lambda x: int(x) % 2 == 0) is None
    belief = Belief.of_curve(Curve.of_family(families.UNIFORM, 0.0, 1e9))
    estimate = belief.probability(lambda x: int(x) % 2 == 0)
    assert not estimate.exact
    assert "sampled" in estimate.method
    assert 0.5 in estimate.widened(2)


def test_unresolved_integrals_state_an_error():
    edges, values, error = resolved(lambda x: np.sin(1 / x), [1e-12, 1.0])
    assert 0 < error < 1e-4
    assert abs(integrals(edges, values).sum() - 0.504067061906928) < error
    edges, values, error = resolved(lambda x: np.sin(1 / x), [1e-3, 1.0])
    truth = integrate.quad(lambda u: np.sin(u) / u**2, 1, 1000, limit=2000)[0]
    assert integrals(edges, values).sum() == pytest.approx(truth, abs=1e-9)
    assert error == 0.0


class TestBeliefOfACurve:
    belief = Belief.of_curve(Curve.normal(40.0, 3.0))

    def test_every_answer_is_exact(self):
        answers = [
            (self.belief.mean(), 40.0),
            (self.belief.std(), 3.0),
            (self.belief.quantile(0.9), stats.norm.ppf(0.9, 40, 3)),
            (self.belief.median(), 40.0),
            (self.belief.probability(lambda x: x > 46), stats.norm.sf(2)),
            (self.belief.interval(0.95).high, stats.norm.ppf(0.975, 40, 3)),
        ]
        for estimate, truth in answers:
            assert estimate.exact
            assert float(estimate) == pytest.approx(truth, rel=1e-12)
            assert estimate.low == estimate.value == estimate.high
        assert self.belief.kind is Kind.CONTINUOUS
        assert str(self.belief.mean()) == "40 (exact)"

    def test_histogram(self):
        histogram = self.belief.histogram([37.0, 40.0, 43.0])
        assert [float(p) for p in histogram.probabilities] == pytest.approx([stats.norm.cdf(1) - 0.5] * 2, rel=1e-12)
        shares = [float(p) for p in self.belief.histogram(10).probabilities]
        assert len(shares) == 10
        assert sum(shares) == pytest.approx(1 - 2e-4, rel=1e-9)

    def test_samples(self):
        samples = self.belief.samples(5000, seed=3)
        assert stats.kstest(samples, stats.norm(40, 3).cdf).pvalue > 1e-4

    def test_values_cannot_be_listed(self):
        with pytest.raises(pv.ArgumentError, match="histogram"):
            self.belief.distribution()

    def test_an_error_bound_widens_what_it_says(self):
        rough = Belief.of_curve(Curve(Curve.normal(0.0, 1.0).parts, error=1e-6))
        estimate = rough.probability(lambda x: x < 0)
        assert estimate.exact
        assert estimate.high - estimate.low == pytest.approx(2e-6)
        assert str(estimate) == "0.5 (exact to 1e-06)"
        assert rough.quantile(0.5).low < 0 < rough.quantile(0.5).high
        assert rough.mean().low < 0 < rough.mean().high
