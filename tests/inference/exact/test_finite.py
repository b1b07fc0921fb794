"""Finite enumeration, against algebra and against plain Python loops over all inputs."""

import itertools
import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import privug as pv
from oracles import cases
from privug.model.node import Kind


def exact(attack, **options):
    result = attack.run(engine="exact", **options)
    assert result.engine in ("exact (finite)", "exact (counts)")
    return result


def shares(belief):
    return {value: float(share) for value, share in belief.distribution().items()}


def sum_attack(n=10, **options):
    prior = {"x": pv.DiscreteUniform(0, n), "y": pv.DiscreteUniform(0, n)}
    return pv.Attack(lambda x, y: x + y, prior, "x", **options)


def summed_information(joint):
    weights = joint.weights
    secret, output = (side.batch.factorized()[0] for side in (joint.secret, joint.output))
    product = np.bincount(secret, weights)[secret] * np.bincount(output, weights)[output]
    return float(weights @ np.log2(weights / product))


def summed_vulnerability(joint):
    output = joint.output.batch.factorized()[0]
    best = np.zeros(output.max() + 1)
    np.maximum.at(best, output, joint.weights)
    return float(best.sum())


def test_sum_of_two():
    result = exact(sum_attack(), observe=pv.equals(10))
    assert float(result.diagnostics.evidence) == pytest.approx(1 / 11, rel=1e-14)
    assert result.diagnostics.draws == 121
    assert shares(result.posterior) == pytest.approx(dict.fromkeys(range(11), 1 / 11), rel=1e-14)
    assert result.posterior.kind is result.joint.output.kind is Kind.DISCRETE
    assert float(result.prior.mean()) == 5.0
    assert float(result.prediction.mean()) == pytest.approx(10.0)
    assert float(result.belief(lambda x, y: x * y).mean()) == pytest.approx(15.0)
    assert summed_information(result.joint) == pytest.approx(0.7106503409564713, abs=1e-12)
    assert 1 - summed_vulnerability(result.joint) == pytest.approx(1 - 21 / 121, rel=1e-12)


@pytest.mark.parametrize(("n", "information", "risk"), [(100, 0.721168, 0.980296), (500, 0.721339, 0.996012)])
def test_sums_of_the_paper(n, information, risk):
    result = exact(sum_attack(n), observe=pv.equals(n))
    assert float(result.diagnostics.evidence) == pytest.approx(1 / (n + 1), rel=1e-12)
    assert summed_information(result.joint) == pytest.approx(information, abs=5e-7)
    assert 1 - summed_vulnerability(result.joint) == pytest.approx(risk, abs=5e-7)


def information_of_sum(n):
    """H(x + y) - log2(n + 1), in closed form term by term."""
    counts = np.concatenate([np.arange(1, n + 2), np.arange(n, 0, -1)]).astype(float)
    p = counts / (n + 1) ** 2
    return math.fsum(-p * np.log2(p)) - math.log2(n + 1)


def test_pairs_too_many_to_list(monkeypatch):
    from privug.inference.exact.finite import solver

    monkeypatch.setattr(solver, "ALWAYS_LISTED", 1000)
    monkeypatch.setattr(solver, "MOST_PAIRS", 1000)
    joint = exact(sum_attack(300)).joint
    channel = joint.channel
    assert (channel.secrets, channel.outputs) == (301, 601)
    assert channel.mutual_information() == pytest.approx(information_of_sum(300), abs=1e-11)
    assert channel.bayes_vulnerability() == pytest.approx(601 / 301**2, rel=1e-12)
    assert float(joint.output.mean()) == pytest.approx(300)
    with pytest.raises(pv.ArgumentError, match="too many to list"):
        _ = joint.weights
    total = sum(block.probabilities.sum() for block in channel.blocks())
    assert total == pytest.approx(1.0, rel=1e-12)


def test_channel_of_secrets_that_several_inputs_share(monkeypatch):
    from privug.inference.exact.finite import solver

    prior = {"x": pv.Binomial(40, 0.3), "y": pv.DiscreteUniform(0, 60), "z": pv.Bernoulli(0.1)}
    attack = pv.Attack(lambda x, y, z: x + y / 2 - z, prior, lambda x, y: (x // 3, y > 20))
    listed = exact(attack).joint
    monkeypatch.setattr(solver, "ALWAYS_LISTED", 10)
    monkeypatch.setattr(solver, "MOST_PAIRS", 10)
    monkeypatch.setattr(solver, "BLOCK_CELLS", 1000)
    channel = exact(attack.replace()).joint.channel
    assert channel.mutual_information() == pytest.approx(summed_information(listed), abs=1e-11)
    assert channel.bayes_vulnerability() == pytest.approx(summed_vulnerability(listed), rel=1e-11)


@pytest.mark.slow
def test_a_hundred_million_states():
    result = exact(sum_attack(10_000), observe=pv.equals(10_000))
    assert float(result.diagnostics.evidence) == pytest.approx(1 / 10_001, rel=1e-10)
    channel = result.joint.channel
    assert channel.mutual_information() == pytest.approx(information_of_sum(10_000), abs=1e-9)
    assert 1 - channel.bayes_vulnerability() == pytest.approx(1 - 20_001 / 10_001**2, rel=1e-10)


ENUMERABLE = [name for name, case in cases.CASES.items() if not case.get("not_enumerable")]
MEASURES = {
    "posterior_probability": lambda case, result: result.belief(cases.query(case)).probability(lambda holds: holds),
    "evidence_probability": lambda case, result: result.diagnostics.evidence,
    "mutual_information": lambda case, result: summed_information(result.joint),
    "posterior_bayes_vulnerability": lambda case, result: summed_vulnerability(result.joint),
    "bayes_risk": lambda case, result: 1 - summed_vulnerability(result.joint),
    "posterior_mean": lambda case, result: result.posterior.mean(),
    "posterior_std": lambda case, result: result.posterior.std(),
}
MEASURED = [name for name in ENUMERABLE if cases.CASES[name]["measure"] in MEASURES]


@pytest.mark.parametrize("name", MEASURED)
def test_published_cases(name):
    case = cases.CASES[name]
    result = cases.attack(case).run(observe=cases.observation(case), engine="exact")
    assert result.engine == "exact (finite)"
    assert float(MEASURES[case["measure"]](case, result)) == pytest.approx(case["expected"], abs=1e-9)


def test_most_published_cases_are_measured():
    assert len(MEASURED) >= 20


def test_geometric_noise_is_cut_off_where_nothing_is_left():
    case = cases.CASES["geometric5-eps1-vuln"]
    result = exact(cases.attack(case))
    assert summed_vulnerability(result.joint) == pytest.approx(case["expected"], abs=1e-9)


@pytest.mark.slow
def test_a_million_plain_calls():
    case = cases.CASES["fbleau-geometric-nu0.01"]
    assert 1 - summed_vulnerability(exact(cases.attack(case)).joint) == pytest.approx(case["expected"], abs=1e-6)


@pytest.mark.parametrize(
    ("distribution", "truth"),
    [
        (pv.Poisson(7.5), stats.poisson(7.5)),
        (pv.Poisson(1e4), stats.poisson(1e4)),
        (pv.Geometric(0.01), stats.geom(0.01)),
        (pv.DiscreteLaplace(20.0), stats.dlaplace(1 / 20)),
        (pv.Binomial(300, 1 / 3), stats.binom(300, 1 / 3)),
        (pv.Binomial(10**6, 0.25), stats.binom(10**6, 0.25)),
    ],
)
def test_families_without_a_largest_value(distribution, truth):
    belief = exact(pv.Attack(lambda k: k, {"k": distribution}, "k")).prior
    assert belief.error < 1e-14
    assert float(belief.mean()) == pytest.approx(truth.mean(), rel=1e-9, abs=1e-9)
    assert float(belief.std()) == pytest.approx(truth.std(), rel=1e-9)
    values, weights = belief.batch.numbers(), belief.weights
    assert weights == pytest.approx(truth.pmf(values) / truth.pmf(values).sum(), rel=1e-10)


def test_lost_tails_bound_the_error_of_rare_observations():
    result = exact(pv.Attack(lambda k: k, {"k": pv.Poisson(1.0)}, "k"), observe=pv.between(8, 100))
    probability = stats.poisson.sf(7, 1.0)
    assert float(result.diagnostics.evidence) == pytest.approx(probability, rel=1e-9)
    assert result.posterior.error == pytest.approx(1e-15 / probability, rel=1e-6)
    assert "exact to" in result.posterior.mean().method
    likeliest = result.posterior.probability(lambda k: k == 8)
    assert likeliest.low < likeliest.value


def test_every_discrete_family_against_loops():
    prior = {
        "a": pv.Choice(["x", "y", "z"], p=[0.5, 0.25, 0.25]),
        "b": pv.Bernoulli(0.3),
        "c": pv.Binomial(3, 0.4),
        "d": pv.Empirical([1, 1, 2.5]),
        "e": pv.Mixture([pv.DiscreteUniform(0, 1), pv.Constant(1)], weights=[0.4, 0.6]),
    }
    chances = [
        {"x": 0.5, "y": 0.25, "z": 0.25},
        {0: 0.7, 1: 0.3},
        {k: stats.binom.pmf(k, 3, 0.4) for k in range(4)},
        {1: 2 / 3, 2.5: 1 / 3},
        {0: 0.2, 1: 0.8},
    ]

    def program(a, b, c, d, e):
        return (c + b * d, a) if a != "z" else (e, "other")

    result = exact(pv.Attack(program, prior, ["a", "e"]))
    truth, pairs = Counter(), Counter()
    for values in itertools.product(*chances):
        p = math.prod(chance[value] for chance, value in zip(chances, values, strict=True))
        truth[program(*values)] += p
        pairs[(values[0], values[4]), program(*values)] += p
    assert shares(result.prediction) == pytest.approx(dict(truth), rel=1e-12)
    joint = result.joint
    listed = zip(joint.secret.batch.values(), joint.output.batch.values(), strict=True)
    assert dict(zip(listed, joint.weights, strict=True)) == pytest.approx(dict(pairs), rel=1e-12)


def test_parameters_that_are_random():
    n = pv.DiscreteUniform(0, 3)
    k = pv.Binomial(n, 0.5)
    result = exact(pv.Attack(lambda n, k: k, {"n": n, "k": k}, "n"), observe=pv.equals(2))
    weights = np.array([0, 0, 0.25, 3 / 8])
    assert shares(result.posterior) == pytest.approx({2: weights[2] / weights.sum(), 3: weights[3] / weights.sum()})
    assert float(result.diagnostics.evidence) == pytest.approx(weights.sum() / 4)
    rate = pv.Choice([1.0, 5.0])
    result = exact(pv.Attack(lambda m: m, {"m": pv.Poisson(rate)}, "m"))
    assert float(result.prior.mean()) == pytest.approx(3.0, rel=1e-12)
    table = pv.given(pv.Bernoulli(0.25), {0: pv.DiscreteUniform(0, 1), 1: pv.Choice([5, 6])})
    assert shares(exact(pv.Attack(lambda t: t, {"t": table}, "t")).prior) == pytest.approx(
        {0: 3 / 8, 1: 3 / 8, 5: 1 / 8, 6: 1 / 8}
    )
    probabilities = pv.given(pv.Bernoulli(0.5), {0: pv.Constant(np.array([0.1, 0.9])), 1: np.array([0.5, 0.5])})
    drawn = exact(pv.Attack(lambda c: c, {"c": pv.Choice(["a", "b"], p=probabilities)}, "c"))
    assert shares(drawn.prior) == pytest.approx({"a": 0.3, "b": 0.7})


def test_arrays_of_few_values():
    prior = {"coins": pv.Array(pv.Bernoulli(0.25), 6), "dice": pv.Array(pv.DiscreteUniform(1, 3), (2, 2))}
    attack = pv.Attack(lambda coins, dice: coins.sum() + dice[0, 1], prior, lambda coins: coins[0])
    result = exact(attack, observe=pv.equals(4))
    one = sum(stats.binom.pmf(3 - d, 5, 0.25) for d in (1, 2, 3)) * 0.25
    zero = sum(stats.binom.pmf(4 - d, 5, 0.25) for d in (1, 2, 3)) * 0.75
    assert float(result.posterior.probability(lambda c: c == 1)) == pytest.approx(one / (one + zero), rel=1e-12)
    uneven = pv.Bernoulli(np.array([0.1, 0.5, 0.9]))
    result = exact(pv.Attack(lambda a: a.sum(), {"a": uneven}, lambda a: a[2]))
    assert float(result.prediction.mean()) == pytest.approx(1.5)
    assert float(result.prior.mean()) == pytest.approx(0.9)


def test_only_what_is_needed_is_enumerated():
    prior = {"x": pv.Bernoulli(0.5), "noise": pv.Normal(0, sd=1), "many": pv.Array(pv.Bernoulli(0.5), 1000)}
    result = exact(pv.Attack(lambda x, noise, many: 2 * x, prior, "x"))
    assert result.diagnostics.draws == 2
    walk = pv.Attack(lambda many: np.sin(many.cumsum()).sum(), {"many": prior["many"]}, lambda many: many[0])
    with pytest.raises(pv.UnsuitableEngine, match=r"more than 200,000,000 states.*engine='sample' can"):
        walk.run(engine="exact")


def test_tables_of_random_size():
    attack = pv.Attack(
        lambda records: sum(row.age for row in records),
        prior={"records": pv.Records(pv.DiscreteUniform(1, 4), pv.Row(age=pv.DiscreteUniform(0, 1)))},
        secret=lambda records: len(records),
        observe=pv.equals(0),
    )
    weights = np.array([0.5**n for n in range(1, 5)])
    result = exact(attack)
    assert shares(result.posterior) == pytest.approx(
        dict(zip(range(1, 5), weights / weights.sum(), strict=True)), rel=1e-12
    )
    assert float(result.diagnostics.evidence) == pytest.approx(weights.mean(), rel=1e-12)
    assert float(result.prior.mean()) == pytest.approx(2.5, rel=1e-15)
    assert sum(result.joint.weights) == pytest.approx(1.0)


def test_sizes_that_share_their_randomness_with_the_rows():
    half = pv.Choice([0.25, 0.75])
    rows = pv.Records(1 + pv.Binomial(2, half), lambda i: pv.Row(ill=pv.Bernoulli(half)))
    attack = pv.Attack(lambda rows: sum(row.ill for row in rows), {"rows": rows}, len)
    result = exact(attack, observe=pv.equals(3))
    assert shares(result.posterior) == {3: 1.0}
    truth = np.mean([p**2 * p**3 for p in (0.25, 0.75)])
    assert float(result.diagnostics.evidence) == pytest.approx(truth, rel=1e-12)


def test_noisy_observations_weigh_the_states():
    result = exact(sum_attack(3), observe=pv.noisy(2.2, sd=0.5))
    density = {x: sum(stats.norm.pdf(2.2, x + y, 0.5) for y in range(4)) / 16 for x in range(4)}
    total = sum(density.values())
    assert shares(result.posterior) == pytest.approx({x: d / total for x, d in density.items()}, rel=1e-11)
    assert float(result.diagnostics.evidence) == pytest.approx(total, rel=1e-11)
    assert result.diagnostics.evidence.unit == "density"
    far = exact(sum_attack(3), observe=pv.noisy(1000.0, sd=1.0))  # the density underflows everywhere
    assert shares(far.posterior)[3] == pytest.approx(1.0)


@pytest.mark.parametrize(
    "observe", [pv.equals(21), pv.between(20.5, 30), pv.such_that(lambda o: o < 0), pv.equals("a")]
)
def test_impossible_observations(observe):
    with pytest.raises(pv.ImpossibleObservation):
        sum_attack().run(engine="exact", observe=observe)


def test_programs_called_state_by_state():
    def report(x, y):
        hash(x)  # one plain value is needed: the program is called
        return str(x + y).zfill(3)

    attack = pv.Attack(report, {"x": pv.DiscreteUniform(0, 9), "y": pv.DiscreteUniform(0, 9)}, "x")
    result = exact(attack, observe=pv.equals("004"))
    assert attack.lifting.tier == "python"
    assert shares(result.posterior) == pytest.approx(dict.fromkeys(range(5), 0.2))
    assert summed_information(result.joint) == pytest.approx(information_of_sum(9), abs=1e-12)
    words = pv.Attack(lambda x: [x, {"half": str(x / 2)}], {"x": pv.DiscreteUniform(0, 3)}, "x")
    assert float(exact(words).joint.weights.sum()) == pytest.approx(1.0)
    huge = pv.Attack(report, {"x": pv.DiscreteUniform(0, 9999), "y": pv.DiscreteUniform(0, 999)}, "x")
    with pytest.raises(pv.UnsuitableEngine, match="called sample by sample and its inputs have 10,000,000 states"):
        huge.run(engine="exact")


def test_randomness_of_the_programs_own_is_noticed():
    def coin(x):
        return str(x) if random.random() < 0.5 or x < 7 else "?"

    def rare(x):
        return str(x) if x < 7 else str(np.random.default_rng().random()) if x < 0 else str(np.random.rand())

    def drawn(x):
        hash(x)
        return str(x + pv.sample(pv.Bernoulli(0.5)))

    for program in (coin, rare, drawn):
        attack = pv.Attack(program, {"x": pv.DiscreteUniform(0, 9)}, "x")
        with pytest.raises(pv.UnsuitableEngine, match="random numbers of its own"):
            attack.run(engine="exact")
        assert attack.run(samples=500).engine == "sample"


def test_draws_inside_a_traced_program_are_enumerated():
    attack = pv.Attack(lambda x: x + pv.sample(pv.Bernoulli(0.25)), {"x": pv.Bernoulli(0.5)}, "x")
    result = exact(attack, observe=pv.equals(1))
    assert float(result.posterior.mean()) == pytest.approx(0.75)


def test_failing_programs_name_the_input():
    attack = pv.Attack(lambda x, y: x / y, {"x": pv.Bernoulli(0.5), "y": pv.Choice([0, 1], p=[1e-12, 1 - 1e-12])}, "x")
    with pytest.raises(pv.ProgramError, match=r"(?s)ZeroDivisionError.*y = 0.*on_error"):
        attack.run(engine="exact")
    never = pv.Attack(lambda x, y: x / y, {"x": pv.Bernoulli(0.5), "y": pv.Choice([0, 1], p=[0.0, 1.0])}, "x")
    assert float(exact(never).prediction.mean()) == 0.5


def test_excluded_inputs():
    attack = pv.Attack(lambda x: 10 / x, {"x": pv.DiscreteUniform(0, 4)}, "x", on_error="exclude")
    result = exact(attack, observe=pv.equals(10.0))
    assert float(result.diagnostics.evidence) == pytest.approx(0.25)
    assert result.diagnostics.excluded == 1
    assert shares(result.prior) == pytest.approx(dict.fromkeys(range(1, 5), 0.25))
    assert len(result.joint.weights) == 4


def test_queries_draw_nothing_new():
    result = exact(sum_attack(), observe=pv.equals(10))
    belief = result.belief(lambda x: x + pv.sample(pv.Bernoulli(0.5)))
    assert not belief.exact
    assert "sampled" in belief.method
    with pytest.raises(pv.ProgramError, match="the query failed"):
        result.belief(lambda x: 1 / (x - 3))


def test_sums_are_as_good_as_fractions():
    thirds = [Fraction(1, 3)] * 12
    attack = pv.Attack(lambda c: c.sum(), {"c": pv.Array(pv.Bernoulli(1 / 3), 12)}, lambda c: c[0])
    found = shares(exact(attack).prediction)
    for k in range(13):
        truth = math.comb(12, k) * math.prod(thirds[:k]) * math.prod(1 - p for p in thirds[k:])
        assert found[k] == pytest.approx(float(truth), rel=1e-13)


def test_equal_values_of_any_shape_are_merged():
    prior = {"x": pv.DiscreteUniform(0, 5), "y": pv.Bernoulli(0.5)}
    for program in (
        lambda x, y: (x % 2, y > 0),
        lambda x, y: {"a": x % 2, "b": [y, 0.5 * (x % 2)]},
        lambda x, y: pv.where(x % 2 == 0, "even", "odd"),
        lambda x, y: (x % 2) * 1e9 * 3,
    ):
        result = exact(pv.Attack(program, prior, "x"))
        assert len(result.prediction.batch) in (2, 4)
        assert len(set(map(repr, result.prediction.batch.values()))) == len(result.prediction.batch)
        assert result.prediction.weights == pytest.approx(1 / len(result.prediction.batch))


def test_far_tails_are_followed_as_far_as_the_observation_lies():
    """Given their sum, one of two Poisson numbers is binomial, however improbable the sum."""
    prior = {"x": pv.Poisson(1.0), "y": pv.Poisson(2.0)}
    for seen in (20, 40):
        for engine in ("exact", "auto"):
            result = pv.Attack(lambda x, y: x + y, prior, "x").run(observe=pv.equals(seen), engine=engine)
            assert result.engine in ("exact (finite)", "exact (counts)")
            assert float(result.posterior.mean()) == pytest.approx(seen / 3, rel=1e-12)
            assert float(result.diagnostics.evidence) == pytest.approx(stats.poisson.pmf(seen, 3), rel=1e-12)
            assert result.posterior.error < 1e-12


def test_few_trials_lose_no_tails():
    prior = {"x": pv.Binomial(1000, 0.001), "y": pv.Binomial(1000, 0.001)}
    result = pv.Attack(lambda x, y: x + y, prior, "x").run(observe=pv.equals(30), engine="exact")
    assert float(result.posterior.mean()) == pytest.approx(15, rel=1e-12)
    assert result.posterior.error == 0


def test_what_is_not_found_in_cut_tails_is_not_called_impossible_without_reserve():
    attack = pv.Attack(lambda x: x, {"x": pv.Poisson(1.0)}, "x")
    with pytest.raises(pv.ImpossibleObservation, match="or less likely than 1e-60"):
        attack.run(observe=pv.equals(200), engine="exact")
