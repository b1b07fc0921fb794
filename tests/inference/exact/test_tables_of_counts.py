"""Tables of counts, answered exactly by `auto`, against an oracle that goes through count vectors by itself."""

import math
import warnings
from collections import Counter
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import privug as pv
from oracles.count_tables import TABLES, answer

LONG = {
    "linked by zip and by age",
    "linked, one table within the other",
    "size and mean of a score by group",
    "sums of arrays",
}
"""Tables that the oracle takes seconds for."""

NAMES = [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in TABLES]


@cache
def told(name):
    table = TABLES[name]
    seen = table.observed()
    with warnings.catch_warnings():
        warnings.simplefilter("error", pv.LiftingWarning)
        return table.attack().run(pv.equals(seen)), answer(table, seen)


def test_there_are_many_kinds_of_tables():
    assert len(TABLES) >= 45


@pytest.mark.parametrize("name", NAMES)
def test_belief_and_probability(name):
    result, truth = told(name)
    assert result.engine.startswith("exact")
    assert float(result.diagnostics.evidence) == pytest.approx(truth.probability, rel=1e-9)
    found = {value: float(result.posterior.probability(lambda s, v=value: s == v)) for value in truth.posterior}
    assert found == pytest.approx(truth.posterior, abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_information(name):
    result, truth = told(name)
    information = pv.leakage.mutual_information(result.joint)
    assert information.exact
    assert float(information) == pytest.approx(truth.information, abs=1e-9)


# Sizes at which no state can be listed: closed forms.


def by_zip_and_illness(rows):
    return {(z, i): sum(1 for r in rows if r.zip == z and r.ill == i) for z in "AB" for i in (0, 1)}


def cases_with_total(rows):
    found = dict.fromkeys("ABC", 0)
    for r in rows:
        if r.ill:
            found[r.zip] += 1
    shown = {z: (n if n >= 3 else "*") for z, n in found.items()}
    shown["total"] = sum(found.values())
    return shown


def first_ill(rows):
    return rows[0].ill


def people(size, rate):
    return {"rows": pv.Records(size, pv.Row(zip=pv.Choice(["A", "B", "C"], [0.5, 0.3, 0.2]), ill=pv.Bernoulli(rate)))}


def test_a_table_of_five_hundred_is_one_multinomial_term():
    prior = {"rows": pv.Records(500, pv.Row(zip=pv.Choice(["A", "B"], [0.6, 0.4]), ill=pv.Bernoulli(0.1)))}
    seen = {("A", 0): 270, ("A", 1): 30, ("B", 0): 180, ("B", 1): 20}
    result = pv.Attack(by_zip_and_illness, prior, first_ill).run(pv.equals(seen))
    assert result.engine == "exact (counts)"
    assert float(result.posterior.mean()) == pytest.approx(50 / 500, rel=1e-12)
    term = stats.multinomial.pmf([270, 30, 180, 20], 500, [0.54, 0.06, 0.36, 0.04])
    assert float(result.diagnostics.evidence) == pytest.approx(term, rel=1e-10)


@pytest.mark.parametrize("size", [300, 3_000, 30_000])
def test_suppressed_counts_with_their_total_at_any_size(size):
    rate = 20 / size
    result = pv.Attack(cases_with_total, people(size, rate), first_ill).run(
        pv.equals({"A": 16, "B": "*", "C": "*", "total": 20})
    )
    shares = [0.5 * rate, 0.3 * rate, 0.2 * rate, 1 - rate]
    terms = [stats.multinomial.pmf([16, b, 4 - b, size - 20], size, shares) for b in (2,)]
    assert result.engine == "exact (counts)"
    assert float(result.posterior.mean()) == pytest.approx(20 / size, rel=1e-11)
    assert float(result.diagnostics.evidence) == pytest.approx(sum(terms), rel=1e-9)


def test_noise_on_every_cell_of_a_table():
    def noisy(rows):
        return [sum(r.zip == z for r in rows) + pv.sample(pv.Laplace(0, 2.0)) for z in "ABC"]

    attack = pv.Attack(noisy, people(60, 0.1), lambda rows: rows[0].zip)
    seen, shares = (32.5, 17.0, 11.25), {"A": 0.5, "B": 0.3, "C": 0.2}
    result = attack.run([pv.equals(value) for value in seen])
    pdf = [[math.exp(-abs(value - n) / 2) / 4 for n in range(61)] for value in seen]
    density = dict.fromkeys("ABC", 0.0)
    for a in range(60):
        for b in range(60 - a):
            c = 59 - a - b
            term = math.comb(59, a) * math.comb(59 - a, b) * 0.5**a * 0.3**b * 0.2**c
            for k, z in enumerate("ABC"):
                x, y, w = (n + (j == k) for j, n in enumerate((a, b, c)))
                density[z] += shares[z] * term * pdf[0][x] * pdf[1][y] * pdf[2][w]
    total = sum(density.values())
    assert result.engine == "exact (counts)"
    assert float(result.diagnostics.evidence) == pytest.approx(total, rel=1e-9)
    assert float(result.posterior.probability(lambda z: z == "B")) == pytest.approx(density["B"] / total, rel=1e-9)


def test_noise_clipped_at_zero():
    def noisy(rows):
        return [max(0.0, sum(r.zip == z and r.ill for r in rows) + pv.sample(pv.Laplace(0, 1.0))) for z in "AB"]

    result = pv.Attack(noisy, people(20, 0.1), first_ill).run([pv.equals(0.0), pv.equals(1.5)])
    ill, healthy = 0.0, 0.0
    for a in range(20):
        for b in range(20 - a):
            term = stats.multinomial.pmf([a, b, 19 - a - b], 19, [0.05, 0.03, 0.92])
            for share, own in ((0.05, (1, 0)), (0.03, (0, 1)), (0.02, (0, 0)), (0.9, (0, 0))):
                seen = stats.laplace.cdf(0, a + own[0]) * stats.laplace.pdf(1.5, b + own[1])
                if share == 0.9:
                    healthy += share * term * seen
                else:
                    ill += share * term * seen
    assert float(result.posterior.mean()) == pytest.approx(ill / (ill + healthy), rel=1e-9)
    assert float(result.diagnostics.evidence) == pytest.approx(ill + healthy, rel=1e-9)


@pytest.mark.parametrize("size", [12, 400])
def test_a_rate_that_all_rows_share(size):
    """Beta-binomial: the count alone tells the rate, and the first person's illness."""
    rate = pv.Beta(2, 8)
    prior = {"rows": pv.Records(size, pv.Row(ill=pv.Bernoulli(rate)))}
    result = pv.Attack(lambda rows: sum(r.ill for r in rows) // 2, prior, first_ill).run(pv.equals(2))
    counts = [stats.betabinom.pmf(k, size, 2, 8) for k in (4, 5)]
    assert float(result.diagnostics.evidence) == pytest.approx(sum(counts), rel=1e-9)
    mean = (4 * counts[0] + 5 * counts[1]) / sum(counts) / size
    assert float(result.posterior.mean()) == pytest.approx(mean, rel=1e-9)


def test_a_program_that_fails_on_some_table_says_so():
    def mean_of_the_ill(rows):
        return sum(r.ill * r.age for r in rows) / sum(r.ill for r in rows)

    prior = {"rows": pv.Records(40, pv.Row(ill=pv.Bernoulli(0.3), age=pv.Choice([20, 40])))}
    with pytest.raises(pv.ProgramError, match="ZeroDivisionError"):
        pv.Attack(mean_of_the_ill, prior, first_ill).run(pv.equals(30.0), engine="exact")


def test_an_impossible_table():
    with pytest.raises(pv.ImpossibleObservation, match="impossible"):
        pv.Attack(cases_with_total, people(300, 0.1), first_ill).run(
            pv.equals({"A": 5, "B": 5, "C": 5, "total": 14}), engine="exact"
        )


def test_rows_that_depend_on_different_shared_quantities_are_not_alike():
    """Two households with risks of their own: the members of one are not exchangeable with those of the other."""
    risks = [pv.Choice([0.1, 0.9]), pv.Choice([0.1, 0.9])]
    prior = {"rows": pv.Records(6, lambda i: pv.Row(x=pv.Normal(0, sd=1), ill=pv.Bernoulli(risks[i // 3])))}
    result = pv.Attack(lambda rows: sum(r.ill and r.x > 0 for r in rows), prior, first_ill).run(pv.equals(3))
    total, ill = 0.0, 0.0
    for p in (0.1, 0.9):
        for q in (0.1, 0.9):
            others = [stats.binom.pmf(k, 2, p / 2) for k in range(3)]
            second = [stats.binom.pmf(k, 3, q / 2) for k in range(4)]
            both = [sum(others[a] * second[k - a] for a in range(3) if 0 <= k - a <= 3) for k in range(6)]
            total += (p / 2 * both[2] + (1 - p / 2) * both[3]) / 4
            ill += (p / 2 * both[2] + p / 2 * both[3]) / 4
    assert float(result.diagnostics.evidence) == pytest.approx(total, rel=1e-9)
    assert float(result.posterior.mean()) == pytest.approx(ill / total, rel=1e-9)


# What an attack from the documentation alone found, mended.


def test_a_row_that_adds_what_depends_on_all_rows_is_no_row_of_a_table():
    def above_the_mean(rows):
        mean = sum(r.score for r in rows) / len(rows)
        return sum(r.score > mean for r in rows)

    prior = {"rows": pv.Records(12, pv.Row(score=pv.Choice([1, 2, 5])))}
    result = pv.Attack(above_the_mean, prior, lambda rows: rows[0].score).run(pv.equals(3))
    total, five = 0, 0
    for ones in range(13):
        for twos in range(13 - ones):
            fives = 12 - ones - twos
            mean = (ones + 2 * twos + 5 * fives) / 12
            if ones * (mean < 1) + twos * (mean < 2) + fives * (mean < 5) == 3:
                ways = math.comb(12, ones) * math.comb(12 - ones, twos)
                total, five = total + ways, five + ways * fives / 12
    assert result.engine.startswith("exact")
    assert float(result.posterior.probability(lambda score: score == 5)) == pytest.approx(five / total, rel=1e-9)


def test_a_fact_that_rules_out_whole_blocks_of_states():
    def single_zips(rows):
        return sum(sum(r.zip == z for r in rows) == 1 for z in "ABC")

    prior = {"rows": pv.Records(8, pv.Row(zip=pv.Choice(["A", "B", "C"], [0.5, 0.3, 0.2]), ill=pv.Bernoulli(0.3)))}
    attack = pv.Attack(
        single_zips, prior, lambda rows: [rows[0].zip, rows[1].ill], assume=lambda rows: rows[0].zip != "B"
    )
    result = attack.run(engine="exact")
    assert float(result.prior.probability(lambda secret: secret == ["A", 1])) == pytest.approx(
        0.5 / 0.7 * 0.3, rel=1e-12
    )


def test_a_table_that_the_prior_holds_hardly_possible_still_tells_about_people():
    prior = {"rows": pv.Records(10_000, pv.Row(zip=pv.Choice(["A", "B"], [0.5, 0.5]), ill=pv.Bernoulli(0.2)))}
    seen = {("A", 0): 2_000, ("A", 1): 1_000, ("B", 0): 4_000, ("B", 1): 3_000}
    result = pv.Attack(by_zip_and_illness, prior, first_ill).run(pv.equals(seen))
    assert float(result.posterior.mean()) == pytest.approx(0.4, rel=1e-10)
    assert result.diagnostics.evidence.high <= 1e-300


@pytest.mark.parametrize(
    ("size", "chances"),
    [(lambda: pv.Choice([0, 3]), {0: 0.5, 3: 0.5}), (lambda: pv.Binomial(2, 0.5), {0: 0.25, 1: 0.5, 2: 0.25})],
)
def test_noise_on_a_count_of_a_table_that_may_be_empty(size, chances):
    def program(rows):
        return sum(1 for row in rows if row.ill) + pv.sample(pv.Laplace(0, 1.5))

    rows = pv.Records(size(), lambda i: pv.Row(ill=pv.Bernoulli(0.35)))
    result = pv.Attack(program, {"rows": rows}, len).run(pv.equals(0.5))
    weights = {
        n: chance * sum(stats.binom(n, 0.35).pmf(k) * stats.laplace(k, 1.5).pdf(0.5) for k in range(n + 1))
        for n, chance in chances.items()
    }
    assert result.engine == "exact (counts)"
    assert result.diagnostics.evidence.value == pytest.approx(sum(weights.values()), rel=1e-9)
    for n, weight in weights.items():
        found = float(result.posterior.probability(lambda size, n=n: size == n))
        assert found == pytest.approx(weight / sum(weights.values()), rel=1e-9)


# The same whole table, however it is written: one multinomial term.

SEEN = {("a", "x"): 24, ("a", "y"): 16, ("b", "x"): 21, ("b", "y"): 14, ("c", "x"): 15, ("c", "y"): 10}
GROUPS = pv.Row(g=pv.Choice(["a", "b", "c"], p=[0.4, 0.35, 0.25]), k=pv.Choice(["x", "y"], p=[0.6, 0.4]))


def reindexed(rows: pd.DataFrame):
    return pd.crosstab(rows.g, rows.k).reindex(index=["a", "b", "c"], columns=["x", "y"], fill_value=0)


def unstacked(rows: pd.DataFrame):
    return rows.groupby(["g", "k"]).size().unstack(fill_value=0).reindex(["a", "b", "c"], fill_value=0)


def sorted_counter(rows):
    return dict(sorted(Counter((r.g, r.k) for r in rows).items()))


@pytest.mark.parametrize("program", [reindexed, unstacked, sorted_counter])
def test_a_table_that_was_put_in_order_is_one_multinomial_term(program):
    seen = SEEN
    if program is not sorted_counter:
        seen = {k: {g: SEEN[g, k] for g in "abc"} for k in "xy"}
    secret = (lambda rows: rows[0].g) if program is sorted_counter else (lambda rows: rows.g[0])
    result = pv.Attack(program, {"rows": pv.Records(100, GROUPS)}, secret).run(pv.equals(seen), engine="exact")
    term = stats.multinomial.pmf(list(SEEN.values()), 100, [0.24, 0.16, 0.21, 0.14, 0.15, 0.1])
    assert result.engine == "exact (counts)"
    assert float(result.diagnostics.evidence) == pytest.approx(term, rel=1e-9)
    assert float(result.posterior.probability(lambda g: g == "b")) == pytest.approx(0.35, rel=1e-9)


def counted_by_bincount(rows):
    return dict(enumerate(np.bincount(rows.z, minlength=3).tolist()))


def counted_by_unique(rows):
    values, counts = np.unique(rows.z, return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


@pytest.mark.parametrize("program", [counted_by_bincount, counted_by_unique])
def test_numpy_counts_columns_of_any_length(program):
    row = pv.Row(z=pv.Choice([0, 1, 2], p=[0.2, 0.3, 0.5]))
    attack = pv.Attack(program, {"rows": pv.Records(3000, row)}, lambda rows: rows[0].z)
    result = attack.run(pv.equals({0: 610, 1: 880, 2: 1510}), engine="exact")
    assert result.engine == "exact (counts)"
    truth = stats.multinomial.pmf([610, 880, 1510], 3000, [0.2, 0.3, 0.5])
    assert float(result.diagnostics.evidence) == pytest.approx(truth, rel=1e-9)
    assert float(result.posterior.probability(lambda z: z == 0)) == pytest.approx(610 / 3000, rel=1e-9)


def test_sizes_of_groups_filter_what_other_group_bys_by_the_same_key_give():
    def cases(rows: pd.DataFrame):
        sizes, ill = rows.groupby("g").size(), rows.groupby("g").ill.sum()
        return ill[sizes >= 3]

    row = pv.Row(g=pv.Choice(["a", "b"], p=[0.7, 0.3]), ill=pv.Bernoulli(0.3))
    attack = pv.Attack(cases, {"rows": pv.Records(12, row)}, lambda rows: rows.ill[0])
    result = attack.run(pv.equals({"a": 4}), engine="exact")
    chance = {True: 0.0, False: 0.0}
    for a in range(10, 13):  # two or fewer people are in group b, which is left out
        for b_ill in range(13 - a):
            share = stats.binom.pmf(a, 12, 0.7) * stats.binom.pmf(4, a, 0.3) * stats.binom.pmf(b_ill, 12 - a, 0.3)
            chance[True] += share * (4 + b_ill) / 12
            chance[False] += share * (8 - b_ill) / 12
    assert result.engine.startswith("exact")
    assert float(result.diagnostics.evidence) == pytest.approx(sum(chance.values()), rel=1e-9)
    assert float(result.posterior.mean()) == pytest.approx(chance[True] / sum(chance.values()), rel=1e-9)


def test_the_prior_of_a_count_in_a_table_of_random_size():
    """A thinned Poisson number is a Poisson number."""

    def totals(rows):
        found = Counter(r.zip for r in rows if r.ill)
        return {z: (found[z] if found[z] >= 3 else "*") for z in "ABC"}

    prior = people(pv.Poisson(30), 0.2)
    attack = pv.Attack(totals, prior, lambda rows: sum(1 for r in rows if r.zip == "B" and r.ill))
    result = attack.run(pv.equals({"A": 4, "B": "*", "C": "*"}))
    assert result.prior.exact
    assert float(result.prior.mean()) == pytest.approx(1.8, rel=1e-9)
    shares = [stats.poisson.pmf(k, 1.8) for k in range(3)]
    assert float(result.posterior.mean()) == pytest.approx((shares[1] + 2 * shares[2]) / sum(shares), rel=1e-9)
