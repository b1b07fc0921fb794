"""Functions of a continuous sum, against closed forms, quadrature and the sampling engine."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, special, stats

import privug as pv
from privug.model.node import Kind

OTHERS = 19
REST = stats.norm(OTHERS * 55.2, 3.5 * math.sqrt(OTHERS))  # the sum of all ages but the first


def person(position):
    return pv.Row(age=pv.Uniform(0, 100) if position == 0 else pv.Normal(55.2, sd=3.5))


def mean(records):
    return sum(r.age for r in records) / len(records)


def rounded(records):
    return round(sum(r.age for r in records) / len(records), 1)


def is_high(records):
    return sum(r.age for r in records) / len(records) > 55


def group(records):
    age = sum(r.age for r in records) / len(records)
    if age > 57:
        return "old"
    if age > 54:
        return "middle"
    return "young"


def first(records):
    return records[0].age


def attack(program, observe=None, secret=first, size=OTHERS + 1):
    return pv.Attack(program, {"records": pv.Records(size, person)}, secret, observe=observe)


def exact(program, observe=None, secret=first, part="sums", size=OTHERS + 1):
    result = attack(program, observe, secret, size).run(engine="exact")
    assert result.engine == f"exact ({part})"
    return result


def by_quadrature(low, high, function=lambda a: 1.0, size=OTHERS + 1):
    """Return the integral over Alice's age of a function times the probability that the mean lies in a range."""
    rest = stats.norm((size - 1) * 55.2, 3.5 * math.sqrt(size - 1))

    def integrand(a):
        return function(a) * (rest.cdf(size * high - a) - rest.cdf(size * low - a)) / 100

    return integrate.quad(integrand, 0, 100, epsabs=1e-13, epsrel=1e-12, limit=400)[0]


@pytest.mark.parametrize(
    ("program", "seen", "low", "high"),
    [
        (rounded, 55.3, 55.25, 55.35),
        (is_high, True, 55, math.inf),
        (is_high, False, -math.inf, 55),
        (group, "middle", 54, 57),
        (group, "young", -math.inf, 54),
        (lambda records: int(mean(records)), 55, 55, 56),
        (lambda records: math.floor(mean(records) / 5) * 5, 50, 50, 55),
        (lambda records: math.ceil(mean(records)), 55, 54, 55),
        (lambda records: mean(records) // 10, 5.0, 50, 60),
        (lambda records: 10 if mean(records) > 50 else 20, 10, 50, math.inf),
        (lambda records: np.rint(mean(records)), 55.0, 54.5, 55.5),
        (lambda records: not 54 < mean(records) < 56, False, 54, 56),
    ],
)
def test_steps(program, seen, low, high):
    result = exact(program, pv.equals(seen))
    evidence = by_quadrature(low, high)
    assert float(result.diagnostics.evidence) == pytest.approx(evidence, abs=1e-11)
    assert float(result.posterior.mean()) == pytest.approx(by_quadrature(low, high, lambda a: a) / evidence, abs=1e-8)
    assert result.prediction.kind is Kind.DISCRETE
    assert float(result.prediction.distribution()[seen]) == pytest.approx(evidence, abs=1e-11)
    assert sum(map(float, result.prediction.distribution().values())) == pytest.approx(1, abs=1e-12)


def test_information_of_one_bit():
    joint = exact(is_high).joint

    def given(a):
        high = REST.sf(55 * 20 - a)
        return high, 1 - high

    def entropy(chances):
        return -sum(p * math.log2(p) for p in chances if p > 0)

    average = integrate.quad(lambda a: entropy(given(a)) / 100, 0, 100, epsabs=1e-13)[0]
    whole = by_quadrature(55, math.inf)
    expected = entropy((whole, 1 - whole)) - average
    information = pv.leakage.mutual_information(joint)
    assert information.exact
    assert float(information) == pytest.approx(expected, abs=1e-9)


def test_rounding_of_a_sum_without_noise():
    """The output is a step function of the secret alone: it tells its own entropy."""
    prior = {"a": pv.Uniform(0, 100)}
    program = lambda a: round((a + 150) / 4)
    result = pv.Attack(program, prior, "a", observe=pv.equals(40)).run(engine="exact")
    assert float(result.diagnostics.evidence) == pytest.approx(0.04, abs=1e-12)
    assert float(result.posterior.mean()) == pytest.approx(10, abs=1e-9)
    assert float(pv.leakage.mutual_information(result.joint)) == pytest.approx(math.log2(25), abs=1e-9)


def test_tables_of_random_size():
    prior = {"records": pv.Records(1 + pv.Binomial(12, 0.4), person)}
    result = pv.Attack(rounded, prior, first, observe=pv.equals(55.3)).run(engine="exact")
    chances = stats.binom(12, 0.4)
    evidence = moment = 0.0
    for others in range(13):
        if others == 0:
            shares = 0.1 / 100, 0.1 / 100 * 55.3
        else:
            shares = tuple(by_quadrature(55.25, 55.35, f, others + 1) for f in (lambda a: 1.0, lambda a: a))
        evidence += chances.pmf(others) * shares[0]
        moment += chances.pmf(others) * shares[1]
    assert float(result.diagnostics.evidence) == pytest.approx(evidence, abs=1e-10)
    assert float(result.posterior.mean()) == pytest.approx(moment / evidence, abs=1e-6)


@pytest.mark.parametrize(
    ("program", "observe", "low", "high"),
    [
        (lambda records: math.log(mean(records)), pv.between(4.0, 4.02), math.exp(4.0), math.exp(4.02)),
        (lambda records: np.exp(mean(records) / 10), pv.near(245, within=5), 10 * math.log(240), 10 * math.log(250)),
        (lambda records: min(max(mean(records), 50), 56), pv.equals(56), 56, math.inf),
        (lambda records: np.clip(mean(records), 50, 56), pv.between(55, 60), 55, math.inf),
        (mean, pv.such_that(lambda o: round(o) == 56), 55.5, 56.5),
        (lambda records: mean(records) * 2 + 1, pv.such_that(lambda o: o // 2 == 55), 54.5, 55.5),
    ],
)
def test_ranges_of_continuous_functions(program, observe, low, high):
    result = exact(program, observe)
    evidence = by_quadrature(low, high)
    assert float(result.diagnostics.evidence) == pytest.approx(evidence, abs=1e-11)
    assert float(result.posterior.mean()) == pytest.approx(by_quadrature(low, high, lambda a: a) / evidence, abs=1e-8)


def test_value_of_a_function_that_turns():
    """|mean - 55| = 2 leaves two means, 53 and 57, each with its density."""
    result = exact(lambda records: abs(mean(records) - 55), pv.equals(2.0))
    densities = [integrate.quad(lambda a, m=m: 20 * REST.pdf(20 * m - a) / 100, 0, 100)[0] for m in (53, 57)]
    moments = [integrate.quad(lambda a, m=m: a * 20 * REST.pdf(20 * m - a) / 100, 0, 100)[0] for m in (53, 57)]
    assert float(result.diagnostics.evidence) == pytest.approx(sum(densities), abs=1e-10)
    assert float(result.posterior.mean()) == pytest.approx(sum(moments) / sum(densities), abs=1e-7)


def test_distribution_of_a_logarithm():
    prior = {"x": pv.Uniform(1, 3), "y": pv.Uniform(0, 1)}
    result = pv.Attack(lambda x, y: math.log(x), prior, "y").run(engine="exact")
    assert float(result.prediction.mean()) == pytest.approx((3 * math.log(3) - 2) / 2, abs=1e-10)
    assert float(result.prediction.quantile(0.5)) == pytest.approx(math.log(2), abs=1e-12)
    below = result.prediction.probability(lambda o: o < 0.5)
    assert float(below) == pytest.approx((math.exp(0.5) - 1) / 2, abs=1e-12)
    assert float(pv.leakage.mutual_information(result.joint)) == pytest.approx(0, abs=1e-9)


def test_clipping_has_atoms():
    prior = {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}
    result = pv.Attack(lambda x, y: np.clip(x + y, -1, 1), prior, "x", observe=pv.equals(1)).run(engine="exact")
    tail = stats.norm(0, math.sqrt(2)).sf(1)
    assert float(result.diagnostics.evidence) == pytest.approx(tail, abs=1e-12)
    prediction = pv.Attack(lambda x, y: np.clip(x + y, -1, 1), prior, "x").run(engine="exact").prediction
    assert prediction.kind is Kind.MIXED
    assert float(prediction.probability(lambda o: o == 1)) == pytest.approx(tail, abs=1e-12)
    assert float(prediction.mean()) == pytest.approx(0, abs=1e-10)


def test_information_through_an_injective_function():
    plain, logarithm = exact(mean), exact(lambda records: math.log(mean(records)))
    expected = float(pv.leakage.mutual_information(plain.joint))
    assert float(pv.leakage.mutual_information(logarithm.joint)) == pytest.approx(expected, abs=1e-8)


def test_clipping_tells_less():
    clipped = exact(lambda records: min(max(mean(records), 54), 56))
    whole, told = (float(pv.leakage.mutual_information(r.joint)) for r in (exact(mean), clipped))
    assert told < whole
    rows = pv.Joint.from_samples(*_draws(lambda m: np.clip(m, 54, 56)))
    assert told in pv.leakage.mutual_information(rows).widened(2)


def _draws(function, samples=20_000):
    rng = np.random.default_rng(5)
    ages = rng.uniform(0, 100, samples)
    return ages, function((ages + REST.rvs(samples, random_state=rng)) / 20)


def test_noise_on_a_rounded_output():
    result = exact(lambda records: round(mean(records)), pv.noisy(55.2, sd=1.0))
    weights = {k: stats.norm(k, 1).pdf(55.2) for k in range(40, 71)}
    evidence = sum(w * by_quadrature(k - 0.5, k + 0.5) for k, w in weights.items())
    assert float(result.diagnostics.evidence) == pytest.approx(evidence, abs=1e-10)


@pytest.mark.parametrize(
    ("secret", "classify"),
    [
        (lambda records: records[0].age < 18, lambda a: a < 18),
        (lambda records: records[0].age // 10, lambda a: a // 10),
        (lambda records: "old" if records[0].age > 65 else "young", lambda a: "old" if a > 65 else "young"),
    ],
)
def test_secrets_that_are_classes_of_an_age(secret, classify):
    result = exact(rounded, pv.equals(55.3), secret)
    evidence = by_quadrature(55.25, 55.35)
    edges = [0.0, 10, 18, 20, 30, 40, 50, 60, 65, 70, 80, 90, 100]
    expected: dict = {}
    for low, high in itertools.pairwise(edges):
        inside = integrate.quad(
            lambda a: (REST.cdf(20 * 55.35 - a) - REST.cdf(20 * 55.25 - a)) / 100, low, high, epsabs=1e-14
        )[0]
        expected[classify((low + high) / 2)] = expected.get(classify((low + high) / 2), 0) + inside / evidence
    for value, chance in result.posterior.distribution().items():
        assert float(chance) == pytest.approx(expected[value], abs=1e-9)


def test_class_and_mean_together():
    """Bayes risk and information of a class of ages and the mean, against a fine grid."""
    result = exact(mean, None, lambda records: records[0].age < 18)
    outputs = np.linspace(48, 62, 40_001)
    steps = outputs[1] - outputs[0]
    below = (REST.cdf(20 * outputs) - REST.cdf(20 * outputs - 18)) * 20 / 100
    above = (REST.cdf(20 * outputs - 18) - REST.cdf(20 * outputs - 100)) * 20 / 100
    risk = np.minimum(below, above).sum() * steps
    whole = below + above
    told = 0.0
    for part, share in ((below, 0.18), (above, 0.82)):
        there = part > 1e-300
        told += steps * float(part[there] @ np.log2(part[there] / (whole[there] * share)))
    assert float(pv.leakage.bayes_risk(result.joint)) == pytest.approx(risk, abs=1e-7)
    assert float(pv.leakage.mutual_information(result.joint)) == pytest.approx(told, abs=1e-7)


def test_secret_that_is_a_smooth_function():
    result = exact(rounded, pv.equals(55.3), lambda records: math.sqrt(records[0].age))
    evidence = by_quadrature(55.25, 55.35)
    expected = by_quadrature(55.25, 55.35, math.sqrt) / evidence
    assert float(result.posterior.mean()) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda x, y: math.sin(x + y), "'sin' of a continuous"),
        (lambda x, y: (x + y) ** 2 + (x + y), "rise and fall against each other"),
        (lambda x, y: round((x + y) * 1e9), "steps"),
        (lambda x, y: np.log(x + y), "NaN for some"),
    ],
)
def test_what_cannot_be_followed_is_named(program, message):
    prior = {"x": pv.Uniform(-1, 1), "y": pv.Uniform(-1, 1)}
    with pytest.raises(pv.UnsuitableEngine, match=message):
        pv.Attack(program, prior, "x").run(engine="exact")


def test_a_sum_of_rounded_quantities():
    prior = {"x": pv.Uniform(-1, 1), "y": pv.Uniform(-1, 1)}
    result = pv.Attack(lambda x, y: round(x) + round(y), prior, "x", observe=pv.equals(1)).run(engine="exact")
    assert float(result.diagnostics.evidence) == pytest.approx(2 * 0.25 * 0.5, abs=1e-13)
    assert float(result.posterior.mean()) == pytest.approx((0.75 + 0.0) / 2, abs=1e-12)


def test_impossible_values_are_refused():
    with pytest.raises(pv.ImpossibleObservation):
        exact(rounded, pv.equals(55.34))


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_scales(scale):
    prior = {"x": pv.Uniform(0, scale), "y": pv.Uniform(0, scale)}
    program = lambda x, y: (x + y) / scale > 1.5
    result = pv.Attack(program, prior, "x", observe=pv.equals(True)).run(engine="exact")
    assert float(result.diagnostics.evidence) == pytest.approx(0.125, abs=1e-11)
    assert float(result.posterior.mean()) / scale == pytest.approx(5 / 6, abs=1e-9)


@pytest.mark.parametrize("deviations", [2, 5, 7, 9])
def test_unlikely_sums_keep_their_digits(deviations):
    """The sum of many uniform quantities, far out: against the integral of its exact density, a spline."""
    n = 60
    prior = {"p": pv.Array(pv.Uniform(0, 1), n), "a": pv.Uniform(0, 1)}
    bound = (n + 1) / 2 + deviations * math.sqrt((n + 1) / 12)
    result = pv.Attack(lambda p, a: p.sum() + a, prior, "a", observe=pv.between(bound, 100)).run(engine="exact")
    expected = float(_irwin_hall_tail(n + 1, bound))
    assert float(result.diagnostics.evidence) == pytest.approx(expected, rel=1e-7)
    assert expected in result.diagnostics.evidence.widened(1)
    assert result.posterior.error < 1e-7


def _irwin_hall_tail(n, x):
    """P(sum > x) = sum_k (-1)^k (n - x - k)^n / (k! (n - k)!) over k < n - x."""
    return sum(
        (-1) ** k * (Fraction(n) - Fraction(x) - k) ** n / (math.factorial(k) * math.factorial(n - k))
        for k in range(math.ceil(n - x))
    )


def test_an_equal_sum_written_twice_is_one():
    program = lambda records: 1 if mean(records) > 56 or mean(records) < 54 else 0
    result = exact(program, pv.equals(1))
    evidence = 1 - by_quadrature(54, 56)
    assert float(result.diagnostics.evidence) == pytest.approx(evidence, abs=1e-11)


def test_a_logistic_function_of_a_sum():
    inputs = {"x": pv.Normal(0, sd=1), "y": pv.Normal(0.5, sd=1)}
    scored = pv.Attack(lambda x, y: special.expit(x + y), inputs, "x")
    total = stats.norm(0.5, math.sqrt(2))
    seen = scored.run(observe=pv.between(0.6, 0.9), engine="exact")
    expected = total.cdf(special.logit(0.9)) - total.cdf(special.logit(0.6))
    assert seen.diagnostics.evidence.value == pytest.approx(expected, rel=1e-12)
    known = scored.run(observe=pv.equals(0.7), engine="exact")
    assert known.posterior.mean().value == pytest.approx((special.logit(0.7) - 0.5) / 2, rel=1e-9)
