"""Samples that depend on each other: intervals follow from how their groups differ."""

import math

import numpy as np
import pytest
from scipy import stats

import privug as pv
from privug.inference.belief import Belief
from privug.inference.intervals import effective_size
from privug.model.batch import Batch, Column
from privug.model.structure import flatten

RUNS = 200
LEAST = 0.95 - 4 * math.sqrt(0.95 * 0.05 / RUNS)


def chains(rng, correlation, chains=4, draws=500):
    """Chains of normal numbers, each correlated with the one before."""
    noise = rng.normal(size=(chains, draws)) * math.sqrt(1 - correlation**2)
    state = rng.normal(size=chains)
    values = np.empty((chains, draws))
    for k in range(draws):
        state = values[:, k] = correlation * state + noise[:, k]
    return values.reshape(-1)


ASKED = {
    "mean": (lambda belief: belief.mean(), 0.0),
    "std": (lambda belief: belief.std(), 1.0),
    "probability": (lambda belief: belief.probability(lambda x: x < -1), stats.norm.cdf(-1)),
    "quantile": (lambda belief: belief.quantile(0.9), stats.norm.ppf(0.9)),
}


@pytest.mark.parametrize("name", ASKED)
def test_intervals_cover_the_truth(name):
    ask, truth = ASKED[name]
    beliefs = [Belief(Batch.of_values(chains(np.random.default_rng(k), 0.8)), groups=32) for k in range(RUNS)]
    assert np.mean([truth in ask(belief) for belief in beliefs]) >= LEAST


def test_taking_them_as_independent_would_not():
    beliefs = [Belief(Batch.of_values(chains(np.random.default_rng(k), 0.8))) for k in range(RUNS)]
    assert np.mean([0.0 in belief.mean() for belief in beliefs]) < 0.75


def test_effective_samples_follow_the_correlation():
    belief = Belief(Batch.of_values(chains(np.random.default_rng(0), 0.8, draws=20_000)), groups=64)
    expected = 80_000 * (1 - 0.8) / (1 + 0.8)
    assert belief.effective_samples == pytest.approx(expected, rel=4 * math.sqrt(2 / 63))
    assert belief.inflation == pytest.approx(80_000 / belief.effective_samples)
    assert "effective n=" in belief.mean().method


def test_groups_of_independent_samples_change_little():
    values = np.random.default_rng(1).normal(size=3200)
    alone, grouped = Belief(Batch.of_values(values)), Belief(Batch.of_values(values), groups=32)
    assert float(grouped.mean()) == float(alone.mean())
    ratio = (grouped.mean().high - float(grouped.mean())) / (alone.mean().high - float(alone.mean()))
    assert 0.99 <= ratio <= 1.6


def test_populations_that_disagree_are_worth_as_many_samples_as_there_are_populations():
    values = np.repeat(np.random.default_rng(2).normal(size=10), 300)
    belief = Belief(Batch.of_values(values), groups=10)
    assert belief.effective_samples <= 10
    spread = values[::300].std(ddof=1) / math.sqrt(10) * stats.t(9).ppf(0.975)
    assert belief.mean().high - float(belief.mean()) == pytest.approx(spread, rel=0.1)


def test_weights_of_groups_count():
    values = np.concatenate([np.zeros(500), np.ones(500)])
    weights = np.concatenate([np.full(500, 1.5), np.full(500, 0.5)]) / 1000
    belief = Belief(Batch.of_values(values), weights, groups=10)
    assert float(belief.mean()) == pytest.approx(0.25)
    assert effective_size(values, weights, 10) == pytest.approx(
        0.1875 / (10 / 9 * (5 * (0.15 * 0.25) ** 2 + 5 * (0.05 * 0.75) ** 2))
    )


def test_what_was_never_seen_is_bounded_by_what_all_samples_are_worth():
    belief = Belief(Batch.of_values(chains(np.random.default_rng(3), 0.9)), groups=32)
    never = belief.probability(lambda x: x > 50)
    assert float(never) == 0
    assert never.high > 3.0 / belief.effective_samples
    assert belief.effective_samples < 300


def test_one_part_that_hardly_moves_decides_what_a_structured_quantity_is_worth():
    rng = np.random.default_rng(4)
    quick, slow = rng.normal(size=1000), np.repeat(rng.normal(size=10), 100)
    structure, _ = flatten((0.0, 0.0))
    belief = Belief(Batch(structure, (Column(quick), Column(slow)), 1000), groups=10)
    assert belief.effective_samples < 20


def test_categories_have_an_effective_size_too():
    labels = ["a"] * 500 + ["b"] * 500
    belief = Belief(Batch.of_values(labels), groups=10)
    assert belief.effective_samples == pytest.approx(9.0)
    assert belief.distribution()["a"].low < 0.2


def test_a_value_that_never_changes():
    belief = Belief(Batch.of_values(np.full(100, 3.0)), groups=4)
    assert belief.mean().low == belief.mean().high == 3.0
    assert belief.std().value == 0.0


def test_one_group_is_refused():
    with pytest.raises(pv.ArgumentError, match="groups must be 2 or more"):
        Belief(Batch.of_values(np.zeros(10)), groups=1)


def test_leakage_measures_use_the_effective_size():
    rng = np.random.default_rng(5)
    prior = Belief(Batch.of_values(rng.integers(0, 4, 20_000)))
    repeated = np.repeat(rng.choice([0, 0, 1], 100), 50)
    alone, grouped = Belief(Batch.of_values(repeated)), Belief(Batch.of_values(repeated), groups=50)
    wide, narrow = (pv.leakage.kl_divergence(belief, prior) for belief in (grouped, alone))
    assert wide.high - wide.low > 4 * (narrow.high - narrow.low)
    widths = [pv.leakage.entropy(belief) for belief in (grouped, alone)]
    assert widths[0].high - widths[0].low > 4 * (widths[1].high - widths[1].low)


def test_continuous_measures_thin_samples_that_depend_on_each_other():
    rng = np.random.default_rng(6)
    posterior = Belief(Batch.of_values(0.5 * chains(rng, 0.9, draws=2500)), groups=32)
    prior = Belief(Batch.of_values(rng.normal(size=10_000)))
    truth = -math.log2(0.5) + (0.25 - 1) / 2 / math.log(2)
    assert truth in pv.leakage.kl_divergence(posterior, prior).widened(2)
    entropy = pv.leakage.differential_entropy(posterior)
    assert 0.5 * math.log2(2 * math.pi * math.e * 0.25) in entropy.widened(2)
    assert "dependent samples" in entropy.method
