"""The sampling engine: reproducible, honest about budgets, loud when it cannot answer."""

import numpy as np
import pytest
from scipy import stats

import privug as pv


def sum_attack(**options):
    prior = {"x": pv.DiscreteUniform(0, 10), "y": pv.DiscreteUniform(0, 10)}
    # The absolute value keeps the sum from being solved for: agreement is waited for.
    return pv.Attack(lambda x, y: abs(x + y), prior=prior, secret="x", **options)


def values(result):
    return result.posterior.batch.numbers()


def table_attack():
    row = pv.Row(age=pv.Normal(40, sd=10), ill=pv.Bernoulli(0.3))
    return pv.Attack(
        lambda records: sum(r.age * r.ill for r in records) / len(records),
        prior={"records": pv.Records(1 + pv.Poisson(3), row)},
        secret=lambda records: records[0].age,
        observe=pv.between(10, 14),
    )


@pytest.mark.parametrize("attack", [lambda: sum_attack(observe=pv.equals(7)), table_attack])
def test_same_seed_same_bits_on_any_number_of_workers(attack):
    runs = []
    for workers, budget in ((1, 256 << 20), (2, 256 << 20), (3, 8 << 20)):
        with pv.limited(workers=workers, memory_budget=budget):
            runs.append(values(attack().run(engine="sample", samples=30_000, seed=5)))
    assert np.array_equal(runs[0], runs[1])
    assert np.array_equal(runs[0], runs[2])


def test_other_seed_other_samples():
    attack = sum_attack()
    assert not np.array_equal(values(attack.run(engine="sample", seed=1)), values(attack.run(engine="sample", seed=2)))


def test_a_further_query_sees_the_same_samples():
    result = table_attack().run(engine="sample", samples=5000, seed=3)
    again = result.belief(lambda records: records[0].age)
    assert np.array_equal(again.batch.numbers(), values(result))


def test_python_tier_gives_the_same_bits_on_any_number_of_workers():
    def formatting(x, y):
        hash(x)  # one plain value is needed: the program is called
        return float(f"{max(x, y):.6f}")

    prior = {"x": pv.Uniform(0, 1), "y": pv.Uniform(0, 1)}
    attack = pv.Attack(formatting, prior=prior, secret="x", observe=pv.between(0.9, 1.0))
    runs = []
    for workers in (1, 2):
        with pv.limited(workers=workers):
            result = attack.run(engine="sample", samples=2000, seed=5)
            runs.append(values(result))
    assert attack.lifting.tier == "python"
    assert np.array_equal(*runs)


def test_exactly_the_wanted_number_of_samples():
    result = sum_attack(observe=pv.equals(20)).run(engine="sample", samples=777, seed=1)
    assert len(values(result)) == 777 == result.diagnostics.accepted
    assert result.diagnostics.draws > 777
    assert 1 / 121 in result.diagnostics.evidence.widened(2)


def test_no_observation_means_the_prior():
    result = sum_attack().run(engine="sample", samples=5000, seed=1)
    assert result.diagnostics.draws == 5000
    assert 5.0 in result.posterior.mean().widened(2)
    assert result.diagnostics.evidence.exact


def test_budget_is_kept_and_stated():
    result = sum_attack(observe=pv.equals(20)).run(engine="sample", samples=10_000, seed=1, budget=50_000)
    assert result.diagnostics.draws == 50_000
    assert 300 < result.diagnostics.accepted < 500
    assert "50,000 draws" in str(result)


def test_too_few_samples_is_an_error_with_advice():
    with pytest.raises(pv.TooFewSamples, match=r"raise budget=.*widen"):
        sum_attack(observe=pv.equals(20)).run(engine="sample", samples=10_000, seed=1, budget=5000)


def test_impossible_observation_by_structure():
    with pytest.raises(pv.ImpossibleObservation, match="never 'seven'"):
        sum_attack(observe=pv.equals("seven")).run(engine="sample")


def test_impossible_observation_by_trying():
    with pytest.raises(pv.ImpossibleObservation, match="none of 200,000 draws"):
        sum_attack(observe=pv.equals(21)).run(engine="sample", budget=200_000)


def test_one_sample():
    result = sum_attack(observe=pv.equals(20)).run(engine="sample", samples=1, seed=1)
    assert values(result).tolist() == [10]
    assert result.posterior.mean().low == -np.inf


def test_a_million_samples():
    result = pv.Attack(lambda x: x, prior={"x": pv.Normal(3, sd=2)}, secret="x").run(
        engine="sample", samples=1_000_000, seed=1
    )
    assert 3.0 in result.posterior.mean().widened(2)
    assert 2.0 in result.posterior.std().widened(2)


def test_atom_wins_over_density():
    """Half the probability on the value 3, half on a density there: seeing 3 is the atom's doing."""
    attack = pv.Attack(
        lambda honest, x: pv.where(honest, 3.0, x),
        prior={"honest": pv.Bernoulli(0.5), "x": pv.Uniform(0, 4)},
        secret="honest",
    )
    result = attack.run(engine="sample", observe=pv.equals(3.0), samples=2000, seed=1)
    assert result.posterior.distribution().keys() == {1}


def test_atom_wins_when_the_noise_is_switched_off():
    attack = pv.Attack(
        lambda noisy, x, noise: x + noisy * noise,
        prior={"noisy": pv.Bernoulli(0.9), "x": pv.DiscreteUniform(0, 4), "noise": pv.Laplace(0, 1)},
        secret="noisy",
    )
    result = attack.run(engine="sample", observe=pv.equals(3), samples=500, seed=1)
    assert result.posterior.distribution().keys() == {0}


def test_laplace_noise_of_the_program_weights_samples():
    """Posterior of one bit after a noisy count: closed form by Bayes' rule on the Laplace density."""

    def noisy_count(bit):
        return bit + pv.sample(pv.Laplace(0, 2.0))

    result = pv.Attack(noisy_count, prior={"bit": pv.Bernoulli(0.3)}, secret="bit").run(
        engine="sample", observe=pv.equals(1.7), samples=20_000, seed=2
    )
    one, zero = 0.3 * stats.laplace.pdf(0.7, 0, 2), 0.7 * stats.laplace.pdf(1.7, 0, 2)
    assert one / (one + zero) in result.posterior.probability(lambda bit: bit == 1).widened(2)
    assert one + zero in result.diagnostics.evidence.widened(2)
    assert result.diagnostics.draws < 100_000


def test_exact_value_far_in_the_tail():
    """Seen 40 deviations away from what was expected: normal roots are moved there, not waited for."""
    prior = {"ages": pv.Array(pv.Normal(50, sd=2), 10)}
    attack = pv.Attack(lambda ages: ages.mean(), prior=prior, secret=lambda ages: ages[0])
    result = attack.run(engine="sample", observe=pv.equals(75.0), samples=5000, seed=2)
    assert 75.0 in result.posterior.mean().widened(2)
    assert 2 * 0.9**0.5 in result.posterior.std().widened(2)


def test_two_exact_values_at_once():
    prior = {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1), "z": pv.Normal(0, sd=1)}
    attack = pv.Attack(lambda x, y, z: (x + y, y + z), prior=prior, secret="y")
    result = attack.run(engine="sample", observe=[pv.equals(1.0), pv.equals(2.0)], samples=20_000, seed=2)
    # y given x+y=1, y+z=2: precision 1+1+1, mean (1+2)/3.
    assert 1.0 in result.posterior.mean().widened(2)
    assert (1 / 3) ** 0.5 in result.posterior.std().widened(2)


def test_exact_value_of_a_continuous_output_that_cannot_be_solved():
    attack = pv.Attack(lambda x, y: x * y, prior={"x": pv.Uniform(1, 2), "y": pv.Uniform(1, 2)}, secret="x")
    exact = attack.run(
        engine="sample", observe=pv.equals(2.0), samples=20_000, seed=2
    )  # affine in either, given the other
    # p(x | xy = 2) is proportional to 1/x on (1, 2).
    assert 1 / np.log(2) in exact.posterior.mean().widened(2)
    curved = pv.Attack(lambda x: np.exp(x) + x, prior={"x": pv.Uniform(0, 1)}, secret="x")
    with pytest.raises(pv.ObservationError, match="within="):
        curved.run(engine="sample", observe=pv.equals(2.0))


def test_hierarchical_size_shares_its_randomness_with_the_rows():
    """The rate of the table's size is also the mean of its rows: both must see the same draw."""
    rate = pv.Gamma(4, scale=1.0)
    records = pv.Records(1 + pv.Poisson(rate), lambda i: pv.Row(age=pv.Normal(rate, sd=0.01)))
    attack = pv.Attack(lambda records: len(records), prior={"records": records}, secret=lambda records: records[0].age)
    result = attack.run(engine="sample", observe=pv.equals(9), samples=20_000, seed=2)
    assert (4 + 8) / 2 in result.posterior.mean().widened(2)  # gamma prior, one Poisson observation of 8


def test_two_tables_of_random_size():
    one, other = (pv.Records(pv.DiscreteUniform(0, 2), pv.Row(x=pv.Bernoulli(1.0))) for _ in range(2))
    attack = pv.Attack(lambda a, b: len(a) + len(b), prior={"a": one, "b": other}, secret=lambda a: len(a))
    result = attack.run(engine="sample", observe=pv.equals(3), samples=4000, seed=2)
    assert result.posterior.distribution().keys() == {1, 2}
    assert 0.5 in result.posterior.probability(lambda n: n == 1).widened(2)


def test_program_failing_on_some_inputs():
    attack = pv.Attack(lambda x, y: x / y, prior={"x": pv.Uniform(1, 2), "y": pv.DiscreteUniform(0, 2)}, secret="y")
    with pytest.raises(pv.ProgramError, match=r"(?s)ZeroDivisionError.*y = 0.*on_error"):
        attack.run(engine="sample")


def test_program_failing_on_some_inputs_excluded():
    prior = {"x": pv.Uniform(1, 2), "y": pv.DiscreteUniform(0, 2)}
    attack = pv.Attack(lambda x, y: x / y, prior=prior, secret="y", on_error="exclude")
    result = attack.run(engine="sample", samples=3000, seed=1)
    assert result.posterior.distribution().keys() == {1, 2}
    assert 0.5 in result.posterior.probability(lambda y: y == 1).widened(2)
    assert "on which the program failed" in str(result)


def test_empty_table_is_shown_as_the_failing_input():
    records = pv.Records(pv.Poisson(1.0), pv.Row(age=pv.Uniform(0, 100)))
    attack = pv.Attack(lambda records: sum(r.age for r in records) / len(records), {"records": records}, secret=len)
    with pytest.raises(pv.ProgramError, match=r"(?s)ZeroDivisionError.*records = \[\]"):
        attack.run(engine="sample")


def test_nan_output_is_an_error_not_a_number():
    attack = pv.Attack(lambda x: np.log(x), prior={"x": pv.Uniform(-1, 1)}, secret="x")
    with pytest.raises(pv.ProgramError, match="NaN"):
        attack.run(engine="sample")


def test_memory_budget_too_small_for_one_block():
    attack = pv.Attack(lambda x: x.sum(), prior={"x": pv.Array(pv.Normal(0, sd=1), 100_000)}, secret=lambda x: x[0])
    with pv.limited(memory_budget=1 << 20), pytest.raises(pv.ArgumentError, match="memory_budget"):
        attack.run(engine="sample", samples=100)


def test_ctrl_c_keeps_what_is_done(monkeypatch):
    from privug.inference.sampling import Sampler

    original = Sampler._round

    def interrupted(self, number, samples, meter):
        if number == 2:
            raise KeyboardInterrupt
        return original(self, number, samples, meter)

    monkeypatch.setattr(Sampler, "_round", interrupted)
    result = sum_attack(observe=pv.equals(10)).run(engine="sample", samples=20_000, seed=1)
    assert result.diagnostics.accepted > 1000
    assert "interrupted" in str(result)
