"""Programs that branch on their own noise are audited exactly: the sparse vector technique in six published forms.

Lyu, Su and Li, Understanding the Sparse Vector Technique for Differential Privacy, VLDB 2017: the first two keep their
promise, the others do not. The oracle integrates over the threshold's noise with SciPy.
"""

import itertools
import math
import random

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import privug as pv
from privug.mechanisms import Guarantee, audit, from_factory
from privug.mechanisms.paths.comparisons import Uncomparable
from privug.mechanisms.privacy_audit import ProgramPaths
from privug.model.structure import flatten
from privug.program.paths import NotFollowed

EPSILON = 1.0
KEPT = Guarantee(epsilon=EPSILON)
FAR = 60.0  # scales of noise
DRAWS = 200_000


def sparse(queries, threshold=0.0, most=2, of_threshold=2.0, of_query=8.0, refreshed=None, released=False):
    """The technique with all that the published forms differ in: scales of noise, and what is released."""
    rho = pv.sample(pv.Laplace(0, of_threshold))
    found, count = [], 0
    for query in queries:
        noise = pv.sample(pv.Laplace(0, of_query)) if of_query else 0.0
        if query + noise >= threshold + rho:
            found.append(query + noise if released else True)
            count += 1
            if refreshed:
                rho = pv.sample(pv.Laplace(0, refreshed))
            if count == most:
                break
        else:
            found.append(None if released else False)
    return found


def form(number, most=2):
    """Return the scales of noise of one of the published forms, for a promise of one and a sensitivity of one."""
    return {
        1: {"of_threshold": 2.0, "of_query": 4.0 * most, "most": most},
        2: {"of_threshold": 2.0 * most, "of_query": 4.0 * most, "refreshed": 2.0 * most, "most": most},
        3: {"of_threshold": 2.0, "of_query": 2.0 * most, "released": True, "most": most},
        4: {"of_threshold": 4.0, "of_query": 4 / 3, "most": most},
        5: {"of_threshold": 2.0, "of_query": 0.0, "most": math.inf},
        6: {"of_threshold": 2.0, "of_query": 2.0, "most": math.inf},
    }[number]


def program(number, most=2, threshold=0.0):
    options = form(number, most)
    return lambda queries: sparse(queries, threshold, **options)


NEIGHBOURS = [([0.0, 1.0, 0.5], [1.0, 0.0, 1.5]), ([0, 0, 0, 0, 0], [1, 1, 1, 1, 1]), ([0, 0, 0, 1], [1, 1, 1, 0])]


def stretch(flags, queries, threshold, scale, noise):
    """Return the probability that queries compare with one noisy threshold as they do, by quadrature."""

    def below(x):
        return 0.5 * math.exp(x / noise) if x < 0 else 1 - 0.5 * math.exp(-x / noise)

    def integrand(rho):
        value = math.exp(-abs(rho) / scale) / (2 * scale)
        for flag, query in zip(flags, queries, strict=True):
            value *= below(query - threshold - rho) if flag else below(threshold + rho - query)
        return value

    kinks = sorted({0.0, *(query - threshold for query in queries)})
    edges = [kinks[0] - FAR * max(scale, noise), *kinks, kinks[-1] + FAR * max(scale, noise)]
    parts = [
        scipy.integrate.quad(integrand, *ends, epsabs=0, epsrel=1e-13, limit=400)[0]
        for ends in itertools.pairwise(edges)
    ]
    return math.fsum(parts)


def oracle(flags, queries, number, most, threshold=0.0):
    options = form(number, most)
    scale, noise = options["of_threshold"], options["of_query"]
    if number != 2:
        return stretch(flags, queries[: len(flags)], threshold, scale, noise)
    ends = [place + 1 for place, flag in enumerate(flags) if flag]
    product = 1.0
    for low, high in itertools.pairwise(sorted({0, *ends, len(flags)})):
        product *= stretch(flags[low:high], queries[low:high], threshold, scale, noise)
    return product


def outputs(length, most):
    """List all outputs: flags that end with the last positive one that is allowed."""
    for flags in itertools.product([True, False], repeat=length):
        places = [place for place, flag in enumerate(flags) if flag]
        yield flags if len(places) < most else flags[: places[int(most) - 1] + 1]


def probabilities(mechanism, data):
    """Return the logarithms of the probabilities of all outputs, by the flags in them."""
    found = ProgramPaths(mechanism, ([data], {})).all
    return {tuple(flatten(outcome.paths[0].output)[1]): outcome.log_probability for outcome in found.values()}


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("number", [1, 2, 4, 6])
def test_probabilities_of_all_outputs(number, most):
    queries = [0.0, 1.0, -0.5, 1.0]
    most = math.inf if number == 6 else most
    found = probabilities(program(number, most), queries)
    expected = {flags: oracle(flags, queries, number, most) for flags in outputs(4, most)}
    assert found.keys() == expected.keys()
    for flags, probability in expected.items():
        assert math.exp(found[flags]) == pytest.approx(probability, rel=1e-9)


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize("number", [1, 2, 4, 6])
@pytest.mark.parametrize("pair", NEIGHBOURS)
def test_epsilon_is_the_largest_ratio(number, pair):
    most = math.inf if number == 6 else 2
    found = audit(program(number, most), [pair], guarantee=KEPT, engine="exact")
    ratios = [
        math.log(oracle(flags, pair[0], number, most) / oracle(flags, pair[1], number, most))
        for flags in outputs(len(pair[0]), most)
    ]
    assert found.measured.exact
    assert found.measured.value == pytest.approx(max(map(abs, ratios)), abs=1e-9)
    assert not found.worst.bound


@pytest.mark.parametrize(("number", "broken"), [(1, False), (2, False), (3, True), (4, True), (5, True), (6, True)])
def test_verdicts(number, broken):
    found = audit(program(number, math.inf if number > 4 else 2), NEIGHBOURS, guarantee=KEPT)
    assert found.broken is broken
    assert found.measured.exact
    assert "(exact)" in str(found)
    assert found.verdict.startswith("BROKEN" if broken else "kept")
    assert math.isinf(found.measured.value) is (number == 5)


@pytest.mark.parametrize("most", [1, 2])
def test_the_fourth_form_keeps_what_its_readers_proved(most):
    """It is (1 + 6 c) / 4 times as bad as promised, at worst; and comes near that."""
    far = [0] * 8 + [1] * most, [1] * 8 + [0] * most
    found = audit(program(4, most), [far], guarantee=KEPT, engine="exact").measured.value
    assert 0.85 * (1 + 6 * most) / 4 < found <= (1 + 6 * most) / 4 + 1e-9


def test_the_sixth_form_has_no_bound():
    """Of 2 m queries, half moved up and half down: epsilon grows with m."""
    found = [audit(program(6, math.inf), [([0] * m + [1] * m, [1] * m + [0] * m)], guarantee=KEPT) for m in (1, 2, 3)]
    values = [one.measured.value for one in found]
    assert values[0] < values[1] - 0.3 < values[2] - 0.6


def log_density(queries, place, y, scale, noise):
    """Return the log density of a third form's output: nothing before a place, and there a number."""
    below = scipy.stats.laplace(0, noise)

    def integrand(back):  # the threshold's noise, counted back from the number
        rho = y - back
        return math.exp(-(abs(rho) - abs(y)) / scale + sum(below.logcdf(rho - query) for query in queries[:place]))

    edges = sorted({0.0, *(max(0.0, y - kink) for kink in (0.0, *queries[:place])), max(0.0, y) + FAR * scale})
    parts = [scipy.integrate.quad(integrand, *ends, epsabs=0, epsrel=1e-12)[0] for ends in itertools.pairwise(edges)]
    return math.log(math.fsum(parts)) - abs(y) / scale - math.log(2 * scale) + below.logpdf(y - queries[place])


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize("pair", [([0, 0, 0], [1, 1, 0]), ([0.0, 0.5], [1.0, 1.5]), ([0, 1, 0], [1, 0, 1])])
def test_released_numbers(pair):
    """The largest ratio lies at a kink, or where the number is so low that it tells all about the threshold."""
    found = audit(program(3, 1), [pair], guarantee=KEPT, engine="exact")
    places = range(len(pair[0]))
    ratios = [
        log_density(pair[0], place, y, 2.0, 2.0) - log_density(pair[1], place, y, 2.0, 2.0)
        for place in places
        for y in (-30.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 30.0)
    ]
    nothing = [stretch([False for _ in side], side, 0.0, 2.0, 2.0) for side in pair]
    assert found.measured.exact
    assert found.measured.value == pytest.approx(max(map(abs, [*ratios, math.log(nothing[0] / nothing[1])])), abs=1e-9)


@pytest.mark.parametrize("count", [2, 4, 6])
def test_a_released_number_has_no_bound(count):
    """Each query below a released number that may be arbitrarily low counts with its full shift: 1 / scale each."""
    found = audit(program(3, 1), [([0] * (count + 1), [1] * count + [0])], guarantee=KEPT, engine="exact")
    assert found.measured.value == pytest.approx(count / 2, abs=1e-9)
    assert found.broken is (count > 2)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [([0] * 5, [1] * 5, 1.25), ([1, 0, -1, -1], [0, -1, -2, -2], 1.0), ([1, 2, 0, 1], [2, 3, 0, 1], 0.5)],
)
def test_two_released_numbers(one, other, expected):
    """With noise of scale four, all that moved at or below a threshold that a low number tells: a quarter each."""
    found = audit(program(3, 2), [(one, other)], guarantee=KEPT, engine="exact")
    assert found.measured.value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("distance", [30.0, 300.0, 3000.0])
def test_tiny_probabilities_keep_their_digits(distance):
    """Far below the threshold, both a larger query and a lower threshold are exponentially rare."""
    found = probabilities(program(6, math.inf), [-distance])
    # Two Laplace numbers of scale two: the difference exceeds d with probability (2 + d / 2) exp(-d / 2) / 4.
    assert found[True,] == pytest.approx(math.log((2 + distance / 2) / 4) - distance / 2, rel=1e-13, abs=1e-11)
    pair = [-distance, -distance], [1 - distance, 1 - distance]
    measured = audit(program(1, 2), [pair], guarantee=KEPT, engine="exact").measured.value
    assert 0 < measured <= EPSILON


def test_nothing_moves():
    for number in (1, 2, 3, 4, 5, 6):
        assert audit(program(number, 2), [([1, 0, 2], [1, 0, 2])], guarantee=KEPT).measured.value == 0


@pytest.mark.parametrize("length", [1, 5, 8])
def test_probabilities_sum_to_one(length):
    queries = np.random.default_rng(length).normal(0, 3, length).tolist()
    for number in (1, 2, 4, 5):
        found = probabilities(program(number, 2), queries)
        assert math.fsum(map(math.exp, found.values())) == pytest.approx(1.0, abs=1e-12)


def compared(noise):
    def mechanism(queries):
        threshold = pv.sample(noise)
        return [query + pv.sample(noise) >= threshold for query in queries]

    return mechanism


def test_normal_noise_in_closed_form():
    """One comparison of two normal numbers is a normal distribution function; two are one of two dimensions."""
    found = probabilities(compared(pv.Normal(0, sd=1.5)), [0.7, -1.0])
    law = scipy.stats.norm(0, 1.5 * math.sqrt(2))
    assert np.logaddexp(found[True, True], found[True, False]) == pytest.approx(law.logcdf(0.7), abs=1e-12)
    assert np.logaddexp(found[True, True], found[False, True]) == pytest.approx(law.logcdf(-1.0), abs=1e-12)
    both = scipy.integrate.quad(
        lambda t: scipy.stats.norm.pdf(t, 0, 1.5) * np.prod(scipy.stats.norm.sf(t - np.array([0.7, -1.0]), 0, 1.5)),
        -20, 20, epsabs=0, epsrel=1e-13, points=[-1.0, 0.7],
    )[0]  # fmt: skip
    assert math.exp(found[True, True]) == pytest.approx(both, rel=1e-10)
    far = probabilities(compared(pv.Normal(0, sd=1)), [-50.0])
    assert far[True,] == pytest.approx(scipy.stats.norm(0, math.sqrt(2)).logcdf(-50.0), rel=1e-12)


def test_discrete_noise_against_a_sum():
    found = probabilities(compared(pv.DiscreteLaplace(3.0)), [1, -2])
    k = np.arange(-300, 301)
    mass = np.tanh(1 / 6) * np.exp(-np.abs(k) / 3)
    above = [np.array([mass[k + query >= t].sum() for t in k]) for query in (1, -2)]
    for flags, log in found.items():
        factors = [side if flag else 1 - side for side, flag in zip(above, flags, strict=True)]
        assert math.exp(log) == pytest.approx((mass * factors[0] * factors[1]).sum(), rel=1e-9)


def test_discrete_noise_is_compared_strictly_where_the_program_does():
    def mechanism(x):
        one, other = pv.sample(pv.DiscreteUniform(0, 3)), pv.sample(pv.DiscreteUniform(0, 3))
        return "more" if one + x > other else "same" if one + x >= other else "less"

    found = probabilities(mechanism, 0)
    assert {key: math.exp(log) for (key,), log in found.items()} == pytest.approx(
        {"more": 6 / 16, "same": 4 / 16, "less": 6 / 16}
    )


def test_coins_and_comparisons():
    def mechanism(x):
        if pv.sample(pv.Bernoulli(0.25)):
            return pv.sample(pv.Bernoulli(0.5))
        noisy = x + pv.sample(pv.Laplace(0, 1))
        return 2 if 0 <= noisy <= 1 and noisy != 0.5 else 3

    found = probabilities(mechanism, 0.0)
    inside = 0.5 - 0.5 * math.exp(-1)
    expected = {0: 0.125, 1: 0.125, 2: 0.75 * inside, 3: 0.75 * (1 - inside)}
    assert {key: math.exp(log) for (key,), log in found.items()} == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("family", [scipy.stats.norm, scipy.stats.laplace])
def test_the_largest_of_noisy_numbers(family):
    """`max` compares one after the other, in a chain of draws."""
    noise = {scipy.stats.norm: pv.Normal(0, sd=1), scipy.stats.laplace: pv.Laplace(0, 1)}[family]

    def mechanism(scores):
        noisy = [score + pv.sample(noise) for score in scores]
        return max(range(len(noisy)), key=lambda place: noisy[place])

    scores = np.array([0.0, 1.0, 0.3, -2.0])
    found = probabilities(mechanism, scores.tolist())
    for (winner,), log in found.items():
        others = np.delete(scores, winner)
        expected = scipy.integrate.quad(
            lambda t, own=scores[winner], others=others: family.pdf(t - own) * np.prod(family.cdf(t - others)),
            -40, 40, epsabs=0, epsrel=1e-12, limit=400, points=[-2, 0, 0.3, 1],
        )[0]  # fmt: skip
        assert math.exp(log) == pytest.approx(expected, rel=1e-9)


def mixed(centre):
    """One draw, compared with draws of four other families; some combinations of flags are impossible."""
    t, x, u = pv.sample(pv.Laplace(centre, 2)), pv.sample(pv.Normal(0.2, sd=1)), pv.sample(pv.Uniform(-3, 3))
    g, k = pv.sample(pv.Gamma(2, scale=1)), pv.sample(pv.Poisson(3))
    flags = [2 * x > t + 1, u - t < 0.5, 3 - g >= -t / 2, k > t, k > 6]
    return [bool(flag) for flag in flags] + [-1 < x < 1.5]


def test_draws_of_many_families_against_simulation():
    found = probabilities(mixed, 0.5)
    assert math.fsum(map(math.exp, found.values())) == pytest.approx(1.0, abs=1e-12)
    rng = np.random.default_rng(1)
    t, x, u = rng.laplace(0.5, 2, DRAWS), rng.normal(0.2, 1, DRAWS), rng.uniform(-3, 3, DRAWS)
    g, k = rng.gamma(2, 1, DRAWS), rng.poisson(3, DRAWS)
    drawn = np.stack([2 * x > t + 1, u - t < 0.5, 3 - g >= -t / 2, k > t, k > 6, (x > -1) & (x < 1.5)], axis=1)
    values, counts = np.unique(drawn, axis=0, return_counts=True)
    seen = {tuple(flags): count for flags, count in zip(values.tolist(), counts.tolist(), strict=True)}
    assert seen.keys() <= found.keys()
    for flags, log in found.items():
        expected = DRAWS * math.exp(log)
        assert abs(seen.get(flags, 0) - expected) < 4.5 * math.sqrt(expected) + 5


def test_a_promise_with_a_delta():
    pair = ([0, 0, 1], [1, 1, 0])
    first, second = (probabilities(program(4), data) for data in pair)
    for delta in (1e-3, 0.05):
        found = audit(program(4), [pair], guarantee=Guarantee(1.0, delta), engine="exact").measured.value
        exceeded = [
            sum(max(0.0, math.exp(one[key]) - math.exp(found + other[key])) for key in first)
            for one, other in ((first, second), (second, first))
        ]
        assert max(exceeded) == pytest.approx(delta, rel=1e-6)


def test_normal_noise_on_a_released_number_hides_nothing():
    def mechanism(x):
        threshold, noisy = pv.sample(pv.Normal(0, sd=1)), x + pv.sample(pv.Normal(0, sd=1))
        return noisy if noisy > threshold else None

    assert math.isinf(audit(mechanism, [(0.0, 1.0)], guarantee=KEPT, engine="exact").measured.value)


def own_randomness(x):
    return "more" if x + pv.sample(pv.Laplace(0, 1)) > random.random() else "less"


def three_draws(x):
    return x + pv.sample(pv.Laplace(0, 1)) + pv.sample(pv.Laplace(0, 1)) > pv.sample(pv.Laplace(0, 1)) or [x]


def endless(x):
    count = 0
    while pv.sample(pv.Laplace(0, 1)) > x:
        count += 1
    return [count] * count


def by_type(x):
    noisy = x + pv.sample(pv.Laplace(0, 1))
    return ["a"] if isinstance(noisy, float) else ["b"] if noisy > 1 else []


def in_a_circle(x):
    a, b, c = (pv.sample(pv.Laplace(x, 1)) for _ in range(3))
    return [1] if a + b > 0 and b + c > 0 and a - c > 1 else [1, 2]


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (own_randomness, "random numbers of its own"),
        (lambda x: "more" if x + random.random() > 1 else "less", "nothing with pv.sample"),
        (from_factory(lambda: lambda x: x), "hidden"),
        (three_draws, "more than two draws"),
        (endless, "more than 400 conditions|paths"),
        (by_type, "plain call"),
        (in_a_circle, "in a circle"),
        (lambda x: [1] * int(x + pv.sample(pv.Laplace(0, 1))), "int"),
        (lambda x: [1] if abs(x + pv.sample(pv.Laplace(0, 1))) > 2 else [], "no comparison of sums"),
    ],
)
def test_what_is_not_followed(mechanism, words):
    with pytest.raises((NotFollowed, Uncomparable), match=words):
        probabilities(mechanism, 0)


def test_probabilities_that_may_have_underflowed_are_refused():
    """Far tails of most distributions are known down to 1e-308 only: zero would look like a broken promise."""
    noise = pv.Exponential(scale=1)
    assert probabilities(compared(noise), [-20.0])[True,] == pytest.approx(-20 - math.log(2), rel=1e-12)
    with pytest.raises(Uncomparable, match="too small"):
        probabilities(compared(noise), [-2000.0])
    with pytest.raises(Uncomparable, match="too small"):
        probabilities(compared(pv.DiscreteLaplace(1.0)), [-2000])
    assert (True,) not in probabilities(compared(pv.Uniform(0, 1)), [-2.0])


def test_what_is_not_followed_is_said_and_sampled():
    with pytest.raises(pv.UnsuitableEngine, match="random numbers of its own"):
        audit(own_randomness, [(0, 1)], guarantee=KEPT, engine="exact")
    found = audit(own_randomness, [(0, 9)], guarantee=KEPT, samples=2000)
    assert found.broken
    assert found.worst.bound


def test_memory_and_generators_are_left_alone():
    calls = []

    def counting(x):
        calls.append(x)
        return [1] if x + pv.sample(pv.Laplace(0, 1)) > 0 else []

    state = random.getstate()
    assert audit(counting, [(0, 1)], guarantee=Guarantee(epsilon=9), engine="exact").measured.exact
    assert calls == []
    assert random.getstate() == state
