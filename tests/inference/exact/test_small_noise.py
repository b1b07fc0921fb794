"""Noise of every size on sums of discrete numbers: what is called exact is right, however narrow the noise is.

The oracle is an integral of its own: I = h(S + R + N) - h(R + N) with the entropies of mixtures, by quadrature between
points that lie at the scale of the noise around every atom.
"""

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import privug as pv
from privug.leakage.entropy import entropy
from privug.leakage.information import conditional_entropy, mutual_information
from privug.leakage.vulnerability import bayes_risk

POINTS, WEIGHTS = np.polynomial.legendre.leggauss(32)
STEPS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 14, 20, 28, 40])
SCALES = [1e-4, 1e-3, 0.02, 0.1, 1.0, 100.0]
MORE = [1e-6, 1e-5, 0.005, 0.01, 0.05, 0.2, 0.5, 3.0, 10.0]

NOISES = {
    "normal": (lambda scale: pv.Normal(0, sd=scale), lambda z: np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi), 12),
    "laplace": (lambda scale: pv.Laplace(0, scale), lambda z: np.exp(-np.abs(z)) / 2, 40),
    "uniform": (lambda scale: pv.Uniform(-scale, scale), lambda z: (np.abs(z) <= 1) * 0.5, 1),
}


def added(*tables):
    """The distribution of a sum of independent fractions."""
    total = Counter({Fraction(0): 1.0})
    for table in tables:
        pairs = itertools.product(total.items(), table.items())
        total = Counter()
        for (left, p), (right, q) in pairs:
            total[left + right] += p * q
    return dict(total)


def uniform(low, high, divisor=1):
    return {Fraction(value, divisor): 1 / (high - low + 1) for value in range(low, high + 1)}


def table_entropy(table):
    return -sum(p * math.log2(p) for p in table.values())


def mixture_entropy(atoms, noise, scale):
    """The differential entropy of atoms with noise, in bits."""
    _, density, reach = NOISES[noise]
    places, shares = np.array([float(atom) for atom in atoms]), np.array(list(atoms.values()))
    steps = np.array([step for step in STEPS if step <= reach]) * scale
    edges = np.unique((places[:, np.newaxis] + np.concatenate([-steps, steps])).reshape(-1))
    half = np.diff(edges)[:, np.newaxis] / 2
    x, weights = ((edges[1:] + edges[:-1])[:, np.newaxis] / 2 + half * POINTS).reshape(-1), (half * WEIGHTS).reshape(-1)
    f = np.zeros(len(x))
    for place, share in zip(places, shares, strict=True):
        near = slice(*np.searchsorted(x, (place - reach * scale, place + reach * scale)))
        f[near] += share * density((x[near] - place) / scale) / scale
    f, weights = f[f > 0], weights[f > 0]
    return -float((weights * f * np.log2(f)).sum())


def information(secret, rest, noise, scale):
    return mixture_entropy(added(secret, rest), noise, scale) - mixture_entropy(rest, noise, scale)


def information_without_noise(secret, rest):
    return table_entropy(added(secret, rest)) - table_entropy(rest)


def mean_of_three(noise, scale):
    make = NOISES[noise][0]

    def release(a):
        return sum(a) / len(a) + pv.sample(make(scale))

    return pv.Attack(release, prior={"a": [pv.DiscreteUniform(20, 60) for _ in range(3)]}, secret=lambda a: a[0])


@cache
def joint_with_normal_noise(sd):
    return mean_of_three("normal", sd).run(engine="exact").joint


def agrees(found, truth):
    """Say whether a number is the truth within what it states, or within the oracle's own rounding."""
    return found.exact and abs(found.value - truth) <= max(5e-9, found.high - found.value)


class TestTheMeanOfThree:
    SECRET, REST = uniform(20, 60, 3), added(uniform(20, 60, 3), uniform(20, 60, 3))

    @pytest.mark.parametrize("sd", [*SCALES, *(pytest.param(sd, marks=pytest.mark.slow) for sd in MORE)])
    def test_with_normal_noise(self, sd):
        joint = joint_with_normal_noise(sd)
        told = mutual_information(joint)
        assert agrees(told, information(self.SECRET, self.REST, "normal", sd))
        assert told.value <= information_without_noise(self.SECRET, self.REST) + 1e-9
        assert entropy(joint.secret).value == pytest.approx(math.log2(41), abs=1e-9)
        assert conditional_entropy(joint).value == pytest.approx(math.log2(41) - told.value, abs=1e-8)

    def test_less_noise_tells_more(self):
        """Noise of a larger deviation is noise of a smaller one, and some more: data processing."""
        joints = [joint_with_normal_noise(sd) for sd in (1e-4, 0.1, 1.0, 100.0)]
        told = [mutual_information(joint).value for joint in joints]
        risks = [bayes_risk(joint).value for joint in joints]
        assert all(left >= right - 1e-9 for left, right in itertools.pairwise(told))
        assert all(left <= right + 1e-9 for left, right in itertools.pairwise(risks))
        # Without noise the best guess is right with probability sum over outputs of the likeliest pair.
        totals = added(self.SECRET, self.REST)
        right = sum(max(p * self.REST.get(o - s, 0) for s, p in self.SECRET.items()) for o in totals)
        assert risks[0] == pytest.approx(1 - right, abs=1e-8)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("scale", [1e-6, 1e-3, 0.03, 0.3, 1.0, 30.0])
def test_a_count_and_a_choice(noise, scale):
    make = NOISES[noise][0]
    flags = [{Fraction(0): 0.7, Fraction(1): 0.3}] * 12
    count = pv.Attack(
        lambda a: sum(a) + pv.sample(make(scale)),
        prior={"a": [pv.Bernoulli(0.3) for _ in range(12)]},
        secret=lambda a: a[0],
    )
    told = mutual_information(count.run(engine="exact").joint)
    assert agrees(told, information(flags[0], added(*flags[1:]), noise, scale))
    chosen = {Fraction(0): 0.4, Fraction(1): 0.3, Fraction(5): 0.2, Fraction(6): 0.1}
    choice = pv.Attack(
        lambda x: x + pv.sample(make(scale)), prior={"x": pv.Choice([0, 1, 5, 6], p=[0.4, 0.3, 0.2, 0.1])}, secret="x"
    )
    told = mutual_information(choice.run(engine="exact").joint)
    assert agrees(told, information(chosen, {Fraction(0): 1.0}, noise, scale))


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1e6, 1e12])
def test_units_change_nothing(noise, unit):
    make = NOISES[noise][0]
    attack = pv.Attack(
        lambda x: x * unit + pv.sample(make(unit / 2)), prior={"x": pv.DiscreteUniform(0, 3)}, secret="x"
    )
    assert agrees(
        mutual_information(attack.run(engine="exact").joint),
        information(uniform(0, 3), {Fraction(0): 1.0}, noise, 0.5),
    )


@pytest.mark.parametrize("sd", [1e-12, 1e-9, 1e-6, 1e-3])
def test_four_values_behind_hardly_any_noise_are_two_bits(sd):
    attack = pv.Attack(lambda x: x + pv.sample(pv.Normal(0, sd=sd)), prior={"x": pv.DiscreteUniform(0, 3)}, secret="x")
    told = mutual_information(attack.run(engine="exact").joint)
    assert 2.0 in told or told.value == pytest.approx(2.0, abs=1e-12)
    assert told.high - told.low < 1e-3


@pytest.mark.parametrize("sd", [0.5, 1.3, 2.0])
def test_sums_that_level_out_hide_no_peaks(sd):
    """Ten secrets fill the gap between two values of the rest: outputs are spread evenly, but not given a secret."""
    rest = {Fraction(0): 0.5, Fraction(10): 0.5}
    attack = pv.Attack(
        lambda x, d: x + 10 * d + pv.sample(pv.Normal(0, sd=sd)),
        prior={"x": pv.DiscreteUniform(0, 9), "d": pv.Bernoulli(0.5)},
        secret="x",
    )
    assert agrees(mutual_information(attack.run(engine="exact").joint), information(uniform(0, 9), rest, "normal", sd))


@pytest.mark.parametrize("sd", [1e-9, 1e-6, 1e-3, 0.1, 1.0])
@pytest.mark.parametrize("engine", ["exact", "auto"])
def test_a_continuous_secret_beside_narrow_noise_is_right_or_refused(sd, engine):
    """Uniform noise on a uniform secret: h of the trapezoid minus h of the noise, in closed form."""
    attack = pv.Attack(lambda x: x + pv.sample(pv.Uniform(-sd, sd)), prior={"x": pv.Uniform(0, 1)}, secret="x")
    wide, narrow = max(1.0, 2 * sd), min(1.0, 2 * sd)
    truth = math.log2(wide) + narrow / (2 * wide * math.log(2)) - math.log2(2 * sd)
    result = attack.run(engine=engine, samples=2000, seed=1)
    if engine == "exact" and sd < 1e-2:
        with pytest.raises(pv.UnsuitableEngine, match="engine='sample'"):
            mutual_information(result.joint)
    else:
        told = mutual_information(result.joint)
        assert told.low - 1e-9 <= truth <= told.high + 1e-9 or (not told.exact and truth in told.widened(2))
