"""Questions that were once answered wrongly, called impossible or never answered, with what they should give."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.stats import expon, laplace, lognorm, norm, pareto

import privug as pv
from tiers import tiered


def first(xs):
    return xs[0]


def large(xs):
    return max(xs) > 2.5


def largest(xs):
    return np.max(xs) > 2.5


def last(xs):
    return sorted(xs)[-1] > 2.5


FAMILIES = {
    "normal": (lambda: pv.Normal(0, sd=1), norm()),
    "lognormal": (lambda: pv.LogNormal(0, sd=1), lognorm(1)),
    "exponential": (lambda: pv.Exponential(scale=1), expon()),
    "Laplace": (lambda: pv.Laplace(0, 1), laplace()),
    "Pareto": (lambda: pv.Pareto(2, low=1), pareto(2)),
}


@pytest.mark.parametrize("program", [large, largest, last])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", tiered([18, 19, 20, 100], lambda size: size < 20))
def test_the_largest_of_many_unbounded_rows(program, family, size):
    draw, truth = FAMILIES[family]
    attack = pv.Attack(program, {"xs": pv.Array(draw(), size)}, first)
    below = float(truth.cdf(2.5))
    for seen, chance in ((True, 1 - below**size), (False, below**size)):
        result = attack.run(pv.equals(seen))
        assert result.engine == "exact (sums)"
        assert result.diagnostics.evidence.value == pytest.approx(chance, rel=1e-9)
        above = (1 - below) / chance if seen else 0.0
        assert result.posterior.probability(lambda x: x > 2.5).value == pytest.approx(above, rel=1e-8, abs=1e-12)


def rounded_largest(incomes):
    return round(max(incomes), -3)


def test_the_largest_income_in_thousands():
    attack = pv.Attack(rounded_largest, {"incomes": pv.Array(pv.LogNormal(10, sd=1), 30)}, lambda incomes: incomes[0])
    result = attack.run(pv.equals(100_000))
    low, high = lognorm(1, scale=math.exp(10)).cdf([99_500, 100_500])
    assert result.engine == "exact (sums)"
    assert result.diagnostics.evidence.value == pytest.approx(high**30 - low**30, rel=1e-8)


def all_and_the_others(xs):
    return round(sum(xs) / len(xs), 1), round(sum(xs[1:]) / (len(xs) - 1), 1)


def all_and_those_before(xs):
    return {"before": round(sum(xs) / len(xs), 1), "after": round(sum(xs[:-1]) / (len(xs) - 1), 1)}


def two_windows(rows):
    """The probability that both means lie in their windows, by quadrature over one person and the rest."""
    rest = norm(50 * (rows - 1), 15 * math.sqrt(rows - 1))
    density = lambda others, one: norm.pdf(one, 50, 15) * rest.pdf(others)
    low, high = (rows - 1) * 49.95, (rows - 1) * 50.05
    starts = lambda one: min(max(low, rows * 51.95 - one), high)
    stops = lambda one: max(min(high, rows * 52.05 - one), low)
    kinks = sorted({rows * end - other for end in (51.95, 52.05) for other in (low, high)})
    pieces = itertools.pairwise(kinks)
    return sum(dblquad(density, a, b, starts, lambda one: max(starts(one), stops(one)))[0] for a, b in pieces)


@pytest.mark.parametrize("rows", [3, 4, 7, 12])
@pytest.mark.parametrize("is_list", [True, False])
def test_with_and_without_one_person(rows, is_list):
    xs = [pv.Normal(50, sd=15) for _ in range(rows)] if is_list else pv.Array(pv.Normal(50, sd=15), rows)
    result = pv.Attack(all_and_the_others, {"xs": xs}, first).run(pv.equals((52.0, 50.0)))
    assert result.engine == "exact (sums)"
    assert result.diagnostics.evidence.value == pytest.approx(two_windows(rows), rel=1e-7)
    assert result.posterior.mean().value == pytest.approx(50 + 2 * rows, abs=0.05)
    other = pv.Attack(all_and_those_before, {"xs": xs}, lambda xs: xs[-1])
    seen = other.run(pv.equals({"before": 52.0, "after": 50.0}))
    assert seen.engine == "exact (sums)"
    assert seen.diagnostics.evidence.value == pytest.approx(result.diagnostics.evidence.value, rel=1e-9)


def rounded_before_and_after(xs):
    return {"before": round(sum(xs) / 20), "after": round(sum(xs[:19]) / 19)}


def test_a_list_of_twenty_is_as_soon_answered_as_an_array():
    given = [[pv.Normal(50, sd=15) for _ in range(20)], pv.Array(pv.Normal(50, sd=15), 20)]
    seen = {"before": pv.equals(51), "after": pv.equals(50)}
    results = [pv.Attack(rounded_before_and_after, {"xs": xs}, lambda xs: xs[19]).run(seen) for xs in given]
    assert [result.engine for result in results] == ["exact (sums)"] * 2
    one, other = (result.diagnostics.evidence.value for result in results)
    assert one == pytest.approx(other, rel=1e-11)
    assert one == pytest.approx(0.0272531504057, rel=1e-9)


def one_or_the_other(a, b, c):
    return (0.5, b) if c else (a, b)


def named_parts(a, b, c):
    return {"first": 0.5 if c else a, "second": b, "third": a + b}


def test_an_atom_beside_a_density_wins_in_a_pair_too():
    prior = {"a": pv.Uniform(0, 1), "b": pv.Uniform(0, 1), "c": pv.Bernoulli(0.1)}
    result = pv.Attack(one_or_the_other, prior, "c").run(pv.equals((0.5, 0.2)))
    assert result.posterior.probability(lambda c: c).value == 1
    assert result.diagnostics.evidence.value == pytest.approx(0.1, rel=1e-12)
    elsewhere = pv.Attack(one_or_the_other, prior, "c").run(pv.equals((0.4, 0.2)))
    assert elsewhere.posterior.probability(lambda c: c).value == 0
    third = pv.Attack(named_parts, prior, "c").run({"first": pv.equals(0.5), "third": pv.equals(0.9)})
    assert third.posterior.probability(lambda c: c).value == pytest.approx(1, rel=1e-12)


def of_equal_parts(b, s):
    return (b, b) if s == "q" else [b, b]


@pytest.mark.parametrize("engine", ["exact", "sample"])
def test_lists_and_tuples_of_the_same_parts_are_one_output(engine):
    attack = pv.Attack(of_equal_parts, {"b": pv.Bernoulli(0.5), "s": pv.Choice(["q", "r"])}, "s")
    result = attack.run(pv.equals((True, True)), engine=engine, samples=1000)
    assert result.diagnostics.evidence.low <= 0.5 <= result.diagnostics.evidence.high
    assert pv.leakage.mutual_information(result.joint).value < 1e-3
    assert pv.policy.check(attack, pv.policy.max_belief(at_most=0.6)).holds


def rounded_mean(xs):
    return round(sum(xs) / 5, 1)


@pytest.mark.parametrize("engine", ["exact", "sample"])
def test_no_number_is_rounded_to_more_digits(engine):
    attack = pv.Attack(rounded_mean, {"xs": pv.Array(pv.Normal(55, sd=5), 5)}, first)
    with pytest.raises(pv.ImpossibleObservation):
        attack.run(pv.equals(55.34), engine=engine, budget=20_000)


def wage_mean(xs):
    return sum(xs) / len(xs)


def test_what_is_published_under_facts_is_predicted_under_them():
    attack = pv.Attack(
        wage_mean, {"xs": [pv.Normal(0, sd=1) for _ in range(3)]}, first, assume=lambda xs: all(x > 0 for x in xs)
    )
    mean = attack.run(samples=20_000).prediction.mean()
    assert mean.low - 0.02 <= math.sqrt(2 / math.pi) <= mean.high + 0.02


def any_over(xs):
    return any(x > 2.5 for x in xs)


def none_over(xs):
    found = False
    for x in xs:
        if x > 2.5:
            found = True
    return not found


@pytest.mark.parametrize("program", [any_over, none_over])
@pytest.mark.parametrize("rows", [2, 20])
def test_whether_any_row_is_large(program, rows):
    result = pv.Attack(program, {"xs": [pv.Normal(0, sd=1) for _ in range(rows)]}, first).run(pv.equals(True))
    below = float(norm.cdf(2.5)) ** rows
    assert result.engine == "exact (sums)"
    assert result.diagnostics.evidence.value == pytest.approx(1 - below if program is any_over else below, rel=1e-10)


def product(a, b):
    return a * b


def test_the_product_of_two_uniforms_in_a_window():
    result = pv.Attack(product, {"a": pv.Uniform(0, 1), "b": pv.Uniform(0, 1)}, "a").run(pv.between(0.2, 0.3))
    cdf = lambda t: t - t * math.log(t)
    assert result.engine == "exact (sums)"
    assert result.diagnostics.evidence.value == pytest.approx(cdf(0.3) - cdf(0.2), rel=1e-9)


def largest_of_some(records):
    return max(row.v for row in records)


def largest_of_column(records):
    return np.max(records.v)


SOME_ROWS = {"records": pv.Records(pv.DiscreteUniform(1, 3), pv.Row(v=pv.Exponential(scale=5)))}


@pytest.mark.parametrize("program", [largest_of_some, largest_of_column])
def test_the_largest_of_a_random_number_of_rows_seen_exactly(program):
    """Draws of one row alone can be moved onto the value; that says nothing against what is known of two and three."""
    result = pv.Attack(program, SOME_ROWS, lambda records: len(records)).run(pv.equals(7.0))
    truth = expon(scale=5)
    terms = [n * truth.pdf(7) * truth.cdf(7) ** (n - 1) / 3 for n in (1, 2, 3)]
    assert result.engine == "exact (sums)"
    assert result.diagnostics.evidence.value == pytest.approx(sum(terms), rel=1e-9)
    assert result.posterior.mean().value == pytest.approx(np.dot([1, 2, 3], terms) / sum(terms), rel=1e-9)


@pytest.mark.parametrize("engine", ["sample", "rare"])
def test_a_density_that_is_known_for_some_sizes_only_is_no_answer(engine):
    attack = pv.Attack(largest_of_some, SOME_ROWS, lambda records: len(records))
    with pytest.raises(pv.ObservationError, match="cannot be solved"):
        attack.run(pv.equals(7.0), engine=engine, samples=500)


def smallest_or_seven(records):
    return min(row.v for row in records) if len(records) > 1 else 7.0


def test_a_value_with_a_probability_at_one_size_needs_no_densities_of_others():
    attack = pv.Attack(smallest_or_seven, SOME_ROWS, lambda records: len(records))
    result = attack.run(pv.equals(7.0), engine="sample", samples=2000, seed=1)
    assert result.posterior.probability(lambda size: size == 1).value == 1
    assert result.diagnostics.evidence.low <= 1 / 3 <= result.diagnostics.evidence.high


def middle(xs):
    return sorted(xs)[1]


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_an_order_statistic_seen_exactly_at_any_scale(scale):
    attack = pv.Attack(middle, {"xs": pv.Array(pv.Normal(0, sd=scale), 3)}, first)
    result = attack.run(pv.equals(0.5 * scale))
    below, density = norm.cdf(0.5), norm.pdf(0.5) / scale
    assert result.engine == "exact (sums)"
    assert result.diagnostics.evidence.value == pytest.approx(6 * density * below * (1 - below), rel=1e-9)


def one_and_the_larger(x, y):
    return x, max(x, y)


@pytest.mark.parametrize("engine", ["auto", "rare"])
def test_a_value_met_for_rounding_alone_is_no_probability(engine):
    """Seen as (0.5, 1.0), both numbers have densities; seen as (0.5, 0.5), the second is an atom given the first."""
    prior = {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}
    attack = pv.Attack(one_and_the_larger, prior, "y")
    with pytest.raises(pv.ObservationError, match="has a density"):
        attack.run(pv.equals((0.5, 1.0)), engine=engine, samples=500)
    result = attack.run(pv.equals((0.5, 0.5)), engine=engine, samples=2000, seed=1)
    truth = float(norm.pdf(0.5) * norm.cdf(0.5))
    assert result.diagnostics.evidence.widened(1.5).low <= truth <= result.diagnostics.evidence.widened(1.5).high
