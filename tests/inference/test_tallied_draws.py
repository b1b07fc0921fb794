"""Tallies: the statistics of draws that are not kept are those of the samples, whoever merged them."""

import json
import math
import pickle

import numpy as np
import pytest
from scipy import stats

import privug as pv
from privug.inference import tallying
from privug.inference.tallying import merged_moments


def total(x, y):
    return x + y


def parities(observe=None, **options):
    prior = {"x": pv.DiscreteUniform(0, 9), "y": pv.DiscreteUniform(0, 3)}
    questions = {"small": lambda x: x < 5, "three": lambda x: x == 3}
    return pv.Attack(lambda x, y: abs(x + y), prior, "x", observe=observe, questions=questions, **options)


def normals(observe=None):
    prior = {"x": pv.Normal(40, sd=10), "y": pv.Normal(0, sd=5)}
    return pv.Attack(total, prior, "x", observe=observe, questions={"old": lambda x: x > 50})


def random_tables():
    row = pv.Row(age=pv.Normal(40, sd=10), ill=pv.Bernoulli(0.3))
    return pv.Attack(
        lambda records: sum(r.age * r.ill for r in records) / len(records),
        prior={"records": pv.Records(1 + pv.Poisson(3), row)},
        secret=lambda records: records[0].age,
        observe=pv.between(10, 14),
        questions={"old": lambda age: age > 50},
    )


def drawn(attack, draws, **options):
    """The same draws, kept."""
    return attack.run(engine="sample", samples=draws, budget=draws, **options)


def bits(tallies):
    """All that was tallied, to the bit."""
    agreeing = tallies._agreeing
    numbers = [(n.moments.tobytes(), n.low, n.high, n.bins.tobytes()) for n in agreeing.numbers if n is not None]
    tables = [table.columns[1].tobytes() for table in agreeing.tables if table is not None]
    return agreeing.total.tobytes(), agreeing.hits.tobytes(), agreeing.surprise, numbers, tables


@pytest.mark.parametrize("observe", [None, pv.equals(7)])
def test_values_are_counted_as_often_as_they_were_drawn(observe):
    attack, draws = parities(observe), 40_000
    tallies, result = attack.tally(draws=draws, seed=3), drawn(attack, draws, seed=3)
    kept = result.posterior
    assert (tallies.draws, tallies.accepted) == (draws, len(kept.batch))
    for claim, predicate in attack.questions.items():
        assert tallies.probability(claim) == kept.probability(predicate)
    assert {v: p.value for v, p in tallies.distribution().items()} == {
        v: p.value for v, p in kept.distribution().items()
    }
    assert tallies.evidence == result.diagnostics.evidence
    mine, theirs = tallies.mean(), kept.mean()
    assert (mine.value, mine.low, mine.high) == pytest.approx((theirs.value, theirs.low, theirs.high), rel=1e-6)
    assert tallies.std().value == pytest.approx(kept.std().value, rel=1e-4)
    counts = np.bincount(kept.batch.numbers(), minlength=10)
    (values,), sums = tallies._agreeing.tables[0].columns
    assert dict(zip(values.values(), sums[:, 0], strict=True)) == {k: c for k, c in enumerate(counts) if c}


@pytest.mark.parametrize("attack", [normals, lambda: normals(pv.noisy(55, sd=3)), random_tables])
def test_numbers_have_the_moments_and_answers_of_their_samples(attack):
    attack, draws = attack(), 40_000
    tallies, result = attack.tally(draws=draws, seed=5), drawn(attack, draws, seed=5)
    kept = result.posterior
    (predicate,) = attack.questions.values()
    weights = kept.weights if kept.weights is not None else np.full(len(kept.batch), 1 / len(kept.batch))
    for mine, theirs in [
        (tallies.probability("old"), kept.probability(predicate)),
        (tallies.mean(), kept.mean()),
        (tallies.std(), kept.std()),
        (tallies.evidence, result.diagnostics.evidence),
    ]:
        assert (mine.value, mine.low, mine.high) == pytest.approx((theirs.value, theirs.low, theirs.high), rel=1e-6)
    assert tallies.effective_samples == pytest.approx(result.diagnostics.effective_samples)
    values, histogram = kept.batch.numbers(), tallies.histogram()
    expected, _ = np.histogram(values, histogram.edges, weights=weights)
    assert [share.value for share in histogram.probabilities] == pytest.approx(expected.tolist(), abs=1e-12)
    assert sum(share.value for share in histogram.probabilities) == pytest.approx(1)


def test_answers_cover_closed_forms():
    tallies = normals(pv.noisy(55, sd=3)).tally(draws=100_000, seed=1)
    precision = 1 / 100 + 1 / 34
    posterior = stats.norm((40 / 100 + 55 / 34) / precision, precision**-0.5)
    assert posterior.mean() in tallies.mean().widened(2)
    assert posterior.std() in tallies.std().widened(2)
    assert posterior.sf(50) in tallies.probability("old").widened(2)
    assert stats.norm(40, math.sqrt(134)).pdf(55) in tallies.evidence.widened(2)
    histogram = tallies.histogram()
    exact = np.diff(posterior.cdf(histogram.edges))
    assert all(p in share.widened(2.5) for p, share in zip(exact, histogram.probabilities, strict=True))


def test_a_point_of_a_density_is_solved_for():
    attack = normals(pv.equals(55.0))
    tallies = attack.tally(draws=20_000)
    precision = 1 / 100 + 1 / 25
    assert (40 / 100 + 55 / 25) / precision in tallies.mean().widened(2)
    assert tallies.evidence.value == pytest.approx(stats.norm(40, math.sqrt(125)).pdf(55), rel=1e-12)
    assert tallies.evidence.unit == "density"


def test_pairs_serve_all_measures():
    attack = parities()
    tallies, exact = attack.tally(draws=200_000), attack.run(engine="exact").joint
    joint = tallies.joint
    for measure in (pv.leakage.mutual_information, pv.leakage.conditional_entropy, pv.leakage.bayes_vulnerability):
        assert measure(exact).value in measure(joint).widened(1.5)
    sampled = drawn(attack, 200_000).joint
    assert pv.leakage.mutual_information(joint) == pv.leakage.mutual_information(sampled)
    with pytest.raises(pv.ArgumentError, match="given an observation"):
        parities(pv.equals(7)).tally(draws=10_000).joint  # noqa: B018


@pytest.mark.parametrize("attack", [lambda: normals(pv.noisy(55, sd=3)), parities, random_tables])
def test_bits_do_not_depend_on_who_does_the_work(attack):
    found = []
    for workers in (1, 2):
        with pv.limited(workers=workers):
            found.append(bits(attack().tally(draws=50_000, seed=2)))
    assert found[0] == found[1]


def test_processes_that_are_forked_give_the_same_bits(monkeypatch):
    from privug.runtime import tasks as execution

    def by_text(x, y):
        return int(f"{x + y}")

    prior = {"x": pv.DiscreteUniform(0, 9), "y": pv.DiscreteUniform(0, 3)}
    attack = pv.Attack(by_text, prior, "x", questions={"small": lambda x: x < 5})
    with pv.limited(native=False, workers=1):
        alone = bits(attack.tally(draws=3_000))
    monkeypatch.setattr(execution, "SECONDS_WORTH_A_FORK", 0.0)
    monkeypatch.setattr(execution, "may_fork", lambda: True)
    with pv.limited(native=False, workers=2):
        assert bits(attack.tally(draws=3_000)) == alone


def test_many_blocks_make_one_result(monkeypatch):
    alone = parities().tally(draws=150_000)
    monkeypatch.setattr(tallying, "MANY_RESULTS", 2)
    together = parities().tally(draws=150_000)
    assert together.distribution() == alone.distribution()
    assert together._agreeing.hits.tolist() == alone._agreeing.hits.tolist()
    ours, theirs = (t._agreeing.numbers[0].moments for t in (together, alone))
    assert ours == pytest.approx(theirs, rel=1e-12)


def test_tallies_of_other_seeds_are_added():
    attack = normals(pv.noisy(55, sd=3))
    first = attack.tally(draws=20_000, seed=1)
    second = attack.tally(draws=30_000, seed=2, bins=first.edges)
    both = first + second
    assert (both.draws, both.seeds) == (50_000, (1, 2))
    hits = [t._agreeing.hits[0, 0] * math.exp(t._agreeing.scale) for t in (first, second, both)]
    assert hits[2] == pytest.approx(hits[0] + hits[1])
    low, high = sorted(t.mean().value for t in (first, second))
    assert low < both.mean().value < high
    assert len(both.histogram().probabilities) >= 100
    other = first + attack.tally(draws=30_000, seed=2)  # has edges of its own
    with pytest.raises(pv.ArgumentError, match=r"bins=first\.edges"):
        other.histogram()
    with pytest.raises(pv.ArgumentError, match="seed 1"):
        first.merge(attack.tally(draws=10_000, seed=1))
    with pytest.raises(pv.ArgumentError, match="different questions"):
        first.merge(normals(pv.noisy(55, sd=4)).tally(draws=10_000, seed=4))


def test_moments_merge_as_those_of_all_samples():
    rng = np.random.default_rng(1)
    values, weights = rng.exponential(size=3000) + 1e6, rng.random(3000)
    sums = np.column_stack([weights, weights**2])
    whole = tallying._moments(values, sums)
    parts = [tallying._moments(values[a:b], sums[a:b]) for a, b in ((0, 10), (10, 1700), (1700, 3000))]
    assert merged_moments(merged_moments(parts[0], parts[1]), parts[2]) == pytest.approx(whole, rel=1e-9)
    assert merged_moments(np.zeros((5, 2)), whole) == pytest.approx(whole, rel=1e-12)


def test_what_is_held_does_not_grow_with_the_draws():
    def held(draws):
        return len(pickle.dumps(normals().tally(draws=draws)._run.statistics))

    assert held(400_000) < 1.5 * held(200_000) < 200_000


def test_too_many_pairs_are_given_up_and_the_rest_goes_on(monkeypatch):
    monkeypatch.setattr(tallying, "MOST_VALUES", 25)
    monkeypatch.setattr(tallying, "MOST_PENDING", 25)
    tallies = parities().tally(draws=50_000)
    assert "pairs of secret and output" in tallies.remarks[0]
    assert 0.5 in tallies.probability("small").widened(2)
    assert len(tallies.distribution()) == 10
    with pytest.raises(pv.ArgumentError, match="too many distinct pairs"):
        tallies.joint  # noqa: B018


def test_facts_and_failures_are_counted():
    prior = {"x": pv.DiscreteUniform(0, 9), "y": pv.DiscreteUniform(0, 9)}
    attack = pv.Attack(
        lambda x, y: 10 // abs(x - y), prior, "x", assume=lambda x, y: x >= y, on_error="exclude", observe=pv.equals(10)
    )
    tallies, result = attack.tally(draws=20_000), drawn(attack, 20_000)
    assert tallies.diagnostics.excluded == result.diagnostics.excluded > 0
    assert tallies.evidence == result.diagnostics.evidence
    assert 9 / 45 in tallies.evidence.widened(2)


def test_a_mean_that_does_not_exist_is_not_told():
    attack = pv.Attack(lambda x, y: x / y, {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}, "x")
    tallies = attack.tally(draws=50_000)
    assert math.isnan(tallies.mean("output").value)
    assert 0.0 in tallies.mean().widened(2)
    inner = tallies.histogram("output")
    assert inner.edges[0] == -math.inf
    exact = np.diff(stats.cauchy.cdf(inner.edges))
    assert all(p in share.widened(2.5) for p, share in zip(exact, inner.probabilities, strict=True))


def test_an_end_in_time_keeps_whole_blocks(monkeypatch):
    tasks = tallying.run_tasks

    def interrupted(these, work, **options):
        for place, one in enumerate(tasks(these, work, **options)):
            if len(these) > 1 and place == 3:
                raise KeyboardInterrupt
            yield one

    monkeypatch.setattr(tallying, "run_tasks", interrupted)
    tallies = parities().tally(draws=200_000)
    assert tallies.draws == 4 * 16_384 == tallies.accepted
    assert "interrupted: the draws tallied so far were kept" in tallies.remarks


def test_runs_that_take_long_are_refused_with_advice():
    with pytest.raises(pv.UnsuitableEngine, match=r"draws=10,000,000,000 are too many.*seconds=.*on="):
        normals().tally(draws=10_000_000_000)
    limited = normals().tally(draws=10_000_000_000, seconds=1.5)
    assert 16_384 <= limited.draws < 10_000_000_000
    assert "time was up" in limited.remarks[0]


def test_what_was_not_asked_for_is_refused():
    tallies = normals().tally(draws=10_000)
    with pytest.raises(pv.ArgumentError, match=r"'young' is not one of the attack's questions \('old'\)"):
        tallies.probability("young")
    with pytest.raises(pv.ArgumentError, match="too many distinct values"):
        tallies.distribution()
    with pytest.raises(pv.ArgumentError, match="'secret' or 'output'"):
        tallies.mean("input")
    named = pv.Attack(lambda x: x, {"x": pv.Choice(["a", "b"])}, "x").tally(draws=1_000)
    with pytest.raises(pv.ArgumentError, match="needs single finite numbers"):
        named.histogram()
    for options in ({"draws": 0}, {"draws": 1.5}, {"bins": 0}, {"bins": [2, 1]}, {"seconds": -1}, {"seed": -1}):
        with pytest.raises(pv.ArgumentError):
            normals().tally(**options)
    with pytest.raises(pv.TooFewSamples, match="raise draws="):
        parities(pv.equals(0)).tally(draws=2_000)


def test_reports_say_what_was_tallied():
    tallies = parities(pv.equals(7)).tally(draws=20_000)
    plain = json.loads(tallies.to_json())
    assert (plain["draws"], plain["accepted"]) == (20_000, tallies.accepted)
    assert plain["answers"]["P(small)"]["value"] == tallies.probability("small").value
    assert "P(small)" in str(tallies)
    assert "20,000, of which" in str(tallies)
    assert "<table>" in tallies._repr_html_()


def test_tallies_are_added_by_what_they_answer_not_by_who_made_them():
    def made():
        return pv.Attack(lambda x: x + 1, {"x": pv.Normal(0, sd=1)}, "x", questions={"positive": lambda x: x > 0})

    above, below = pv.such_that(lambda o: o > 1), pv.such_that(lambda o: o < -1)
    first = made().tally(above, draws=5_000, seed=1)
    other = pickle.loads(pickle.dumps(made().tally(above, draws=5_000, seed=2, bins=first.edges)))
    assert (first + other).draws == 10_000
    with pytest.raises(pv.ArgumentError, match="different questions"):
        first + made().tally(below, draws=5_000, seed=3)


def test_intervals_of_the_spread_of_a_fair_coin_cover_it():
    attack = pv.Attack(lambda x: x, {"x": pv.Bernoulli(0.5)}, "x")
    spreads = [attack.tally(draws=400, seed=seed).std() for seed in range(200)]
    sampled = [attack.run(engine="sample", samples=400, seed=seed).posterior.std() for seed in range(100)]
    assert sum(0.5 in one for one in spreads) >= 182
    assert sum(0.5 in one for one in sampled) >= 89
