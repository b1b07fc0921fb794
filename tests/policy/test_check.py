"""Checks against closed forms, against enumeration by hand and against published decisions."""

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest
from scipy.stats import norm

import privug as pv
from oracles.cases import CASES
from privug.policy.people import people_apart

P = pv.policy


def sum_of_two(high=2):
    prior = {"x": pv.DiscreteUniform(0, high), "y": pv.DiscreteUniform(0, high)}
    return pv.Attack(lambda x, y: x + y, prior=prior, secret="x")


# One observation, and every output.
def test_the_worst_output_decides():
    verdict = P.check(sum_of_two(), P.belief(lambda x: x == 2, at_most=0.6, claim="x is 2"))
    assert verdict.violated
    assert verdict.status == "violated"
    assert verdict.worst.value == 1
    assert verdict.worst.exact
    assert [one.output for one in verdict.evidence] == [4, 3, 2]
    assert [one.level.value for one in verdict.evidence] == pytest.approx([1, 1 / 2, 1 / 3], abs=1e-12)
    assert verdict.evidence[0].probability.value == pytest.approx(1 / 9, abs=1e-12)
    assert verdict.evidence[1].posterior.probability(lambda is_two: is_two).value == pytest.approx(0.5, abs=1e-12)


def test_one_observation_by_itself():
    policy = P.belief(lambda x: x == 2, at_most=0.6)
    assert P.check(sum_of_two(), policy, observe=pv.equals(3)).holds
    assert P.check(sum_of_two(), policy, observe=pv.equals(4)).violated
    assert P.check(sum_of_two(), policy, observe=pv.equals(3)).worst.value == pytest.approx(0.5, abs=1e-12)


def test_a_limit_that_is_met_exactly_holds():
    assert P.check(sum_of_two(), P.belief(lambda x: x == 1, at_most=0.5)).holds
    assert P.check(sum_of_two(), P.belief(lambda x: x == 1, at_most=0.5 - 1e-9)).violated


@pytest.mark.parametrize(
    ("policy", "worst"),
    [
        (P.max_belief(at_most=0.9), 1.0),
        (P.belief(lambda x: x < 2, at_least=0.1), 0.0),
        (P.change(lambda x: x == 2, at_most=0.5), 2 / 3),
        (P.change(lambda x: x == 2, at_most=2, by="factor"), math.inf),
        (P.change(lambda x: x > 2, at_most=2, by="factor"), 1.0),  # never before, never after
        (P.measure("kl_divergence", at_most=1), math.log2(3)),
        (P.measure("total_variation", at_most=0.5), 2 / 3),
        (P.measure("entropy_drop", at_most=1), math.log2(3)),
        (P.measure("bayes_vulnerability", at_most=0.5), 5 / 9),
    ],
)
def test_each_kind_of_limit(policy, worst):
    verdict = P.check(sum_of_two(), policy)
    assert verdict.worst.value == pytest.approx(worst, abs=1e-12)
    assert verdict.holds == (policy.limit.excess(worst) <= 0)
    assert verdict.violated != verdict.holds


def test_average_measures_are_judged_on_average():
    information = math.log2(3) - sum(p * h for p, h in [(2 / 9, 0), (4 / 9, 1), (3 / 9, math.log2(3))])
    verdict = P.check(sum_of_two(), P.measure("mutual_information", at_most=0.7))
    assert verdict.holds
    assert verdict.worst.value == pytest.approx(information, abs=1e-12)
    assert "on average" in str(verdict)


# Policies together.
def test_both_and_either():
    two, sure = P.belief(lambda x: x == 2, at_most=0.6), P.max_belief(at_most=0.6)
    small = P.belief(lambda x: x == 2, at_most=1.0)
    assert P.check(sum_of_two(), two & small).violated
    assert P.check(sum_of_two(), small & small).holds
    assert P.check(sum_of_two(), two | small).holds
    assert P.check(sum_of_two(), two | sure).violated
    # After 4 the attacker is sure of 2, after 0 of 0: each output breaks one limit only.
    zero = P.belief(lambda x: x == 0, at_most=0.6)
    assert P.check(sum_of_two(), two | zero).holds
    assert P.check(sum_of_two(), two & zero).violated
    assert len(P.check(sum_of_two(), two & zero).parts) == 2


def test_outputs_of_little_probability_may_be_left_out():
    policy = P.belief(lambda x: x == 2, at_most=0.6)
    assert P.check(sum_of_two(), policy, except_probability=0.12).holds
    assert P.check(sum_of_two(), policy, except_probability=0.11).violated


def test_an_output_may_be_none():
    prior = {"x": pv.Bernoulli(0.5), "y": pv.DiscreteUniform(0, 9)}
    attack = pv.Attack(lambda x, y: None if y == 0 else x, prior=prior, secret="x")
    assert P.check(attack, P.max_belief(at_most=0.6), except_probability=0.91).holds  # 0 and 1 tell all: 9 in 10
    assert P.check(attack, P.max_belief(at_most=0.6), except_probability=0.89).violated
    told = pv.Attack(lambda x, y: None if x == 1 else y, prior=prior, secret="x")
    assert P.check(told, P.belief(lambda x: x == 1, at_most=0.6), except_probability=0.51).holds
    assert P.check(told, P.belief(lambda x: x == 1, at_most=0.6), except_probability=0.49).violated


# What is no answer of yes or no.
def forgets_to_return(x):
    x == 1  # noqa: B015


def returns_text(x):
    return "yes" if x == 1 else ""


def returns_none_for_some(x):
    return True if x == 1 else None


def returns_a_fraction(x):
    return x / 4


def returns_a_pair(x):
    return (x == 1,)


@pytest.mark.parametrize(
    "predicate", [forgets_to_return, returns_text, returns_none_for_some, returns_a_fraction, returns_a_pair]
)
def test_predicates_must_answer_yes_or_no(predicate):
    for policy in (P.belief(predicate, at_most=0.9), P.change(predicate, at_most=0.5)):
        with pytest.raises(pv.ArgumentError, match="must return True or False for every secret"):
            P.check(sum_of_two(), policy)
    with pytest.raises(pv.ArgumentError, match="must return True or False for every secret"):
        P.check(sum_of_two(), P.belief(predicate, at_most=0.9), observe=pv.equals(1))
    with pytest.raises(pv.ArgumentError, match="must return True or False for every secret"):
        P.worst_attacker(sum_of_two(), P.belief(predicate, at_most=0.9), P.any_prior())


def fails_for_one_of_many(x):
    return 1 / (x - 77) > 0.3


def test_predicates_that_fail_are_not_excluded_with_the_program():
    prior = {"x": pv.DiscreteUniform(0, 300), "y": pv.DiscreteUniform(0, 1)}
    attack = pv.Attack(lambda x, y: x // y, prior=prior, secret="x", on_error="exclude")
    with pytest.raises(pv.ArgumentError, match="for some it gives a failure with ZeroDivisionError"):
        P.check(attack, P.belief(fails_for_one_of_many, at_most=0.9))
    # One that could fail, but never does, is answered exactly.
    verdict = P.check(attack, P.belief(lambda x: 1 / (x + 1) > 0.3, at_most=0.9))
    assert verdict.violated
    assert verdict.worst.exact


def test_words_that_would_lose_a_part_of_a_policy_are_refused():
    one, other = P.max_belief(at_most=0.5), P.max_belief(at_most=0.7)
    for made in (lambda: one and other, lambda: one or other, lambda: not one, lambda: not (one & other)):
        with pytest.raises(pv.ArgumentError, match=r"write p & q"):
            made()


def test_a_verdict_is_true_only_if_the_policy_holds_for_sure():
    assert P.check(sum_of_two(), P.max_belief(at_most=1.0))
    assert not P.check(sum_of_two(), P.max_belief(at_most=0.9))
    undecided = P.check(sum_of_two(), P.belief(lambda x: x == 1, at_most=0.5), engine="sample", samples=500)
    assert undecided.undecided
    assert not undecided


# Everyone in a table.
def total(records):
    return sum(row.ill for row in records)


def first_two(records):
    return records[0].ill + records[1].ill


def somebody(i):
    return pv.Row(name="Alice" if i == 0 else "somebody", ill=pv.Bernoulli(0.5 if i == 0 else 0.1))


def everyone(records):
    return [row.ill for row in records]


def test_people_who_are_alike_are_asked_about_once():
    policy = P.belief(lambda ill: ill == 1, at_most=0.9, for_each=everyone)
    of_all = pv.Attack(total, prior={"records": pv.Records(100, somebody)}, secret=everyone)
    assert people_apart(of_all, policy) == [0, 1]
    of_columns = P.belief(lambda ill: ill == 1, at_most=0.9, for_each=lambda records: records.ill)
    assert people_apart(of_all, of_columns) == [0, 1]
    by_place = pv.Attack(first_two, prior={"records": pv.Records(5, somebody)}, secret=everyone)
    assert people_apart(by_place, policy) == [0, 1, 2, 3, 4]


def test_everyone_is_protected_or_somebody_is_not():
    # Of five counted, all are ill after the output 5: everybody's belief is 1.
    attack = pv.Attack(total, prior={"records": pv.Records(5, somebody)}, secret=lambda records: records[0].ill)
    strict = P.belief(lambda ill: ill == 1, at_most=0.95, for_each=everyone)
    assert P.check(attack, strict).violated
    # The chance of an output after which somebody's belief exceeds 0.95, by hand.
    joint = defaultdict(lambda: np.zeros(6))
    for rows in itertools.product([0, 1], repeat=5):
        weight = 0.5 * math.prod(0.1 if ill else 0.9 for ill in rows[1:])
        joint[sum(rows)] += weight * np.array([1, *rows])
    broken = sum(sums[0] for sums in joint.values() if max(sums[1:] / sums[0]) > 0.95)
    assert P.check(attack, strict, except_probability=broken * 1.001).holds
    assert P.check(attack, strict, except_probability=broken * 0.999).violated


# Continuous outputs: closed forms.
def counted_with(noise):
    prior = {"x": pv.Bernoulli(0.3), "y": pv.Binomial(3, 0.5)}
    return pv.Attack(lambda x, y: x + y + pv.sample(noise), prior=prior, secret="x")


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0, 5.0])
def test_laplace_noise_bounds_the_belief(scale):
    worst = 0.3 * math.exp(1 / scale) / (0.3 * math.exp(1 / scale) + 0.7)
    for limit, status in ((worst + 1e-5, "holds"), (worst - 1e-5, "violated")):
        verdict = P.check(counted_with(pv.Laplace(0, scale)), P.belief(lambda x: x == 1, at_most=limit))
        assert verdict.status == status
        assert verdict.worst.value == pytest.approx(worst, abs=2e-6)
        assert verdict.worst.high >= worst - 1e-12
    assert "branch and bound" in verdict.worst.method


def test_laplace_noise_bounds_the_belief_from_below():
    least = 0.3 * math.exp(-1) / (0.3 * math.exp(-1) + 0.7)
    attack = counted_with(pv.Laplace(0, 1))
    assert P.check(attack, P.belief(lambda x: x == 1, at_least=least - 1e-5)).holds
    assert P.check(attack, P.belief(lambda x: x == 1, at_least=least + 1e-5)).violated


def test_normal_noise_bounds_nothing_far_out():
    attack = counted_with(pv.Normal(0, sd=2))
    assert P.check(attack, P.belief(lambda x: x == 1, at_most=0.999)).violated


def test_normal_noise_bounds_the_belief_but_for_outputs_of_little_probability():
    # One person's answer and normal noise: the belief exceeds 0.9 where the output is above some place.
    attack = pv.Attack(lambda x: x + pv.sample(pv.Normal(0, sd=2)), prior={"x": pv.Bernoulli(0.3)}, secret="x")
    place = 0.5 + 4 * math.log(0.9 / 0.1 * 0.7 / 0.3)
    beyond = 0.7 * norm.sf(place / 2) + 0.3 * norm.sf((place - 1) / 2)
    policy = P.belief(lambda x: x == 1, at_most=0.9)
    assert P.check(attack, policy).violated
    assert P.check(attack, policy, except_probability=beyond * 1.000001).holds
    assert P.check(attack, policy, except_probability=beyond * 0.999999).violated


def test_one_sided_and_bounded_noise():
    # Beyond all locations an exponential density gives odds of e^(1/scale); below the second location x is certainly 0.
    worst = 0.3 * math.exp(1 / 2) / (0.3 * math.exp(1 / 2) + 0.7)
    attack = counted_with(pv.Exponential(scale=2.0))
    assert P.check(attack, P.belief(lambda x: x == 1, at_most=worst + 1e-6)).holds
    assert P.check(attack, P.belief(lambda x: x == 1, at_most=worst - 1e-6)).violated
    assert P.check(attack, P.belief(lambda x: x == 1, at_least=0.01)).violated
    assert P.check(counted_with(pv.Uniform(-2, 2)), P.belief(lambda x: x == 1, at_most=0.99)).violated


@pytest.mark.parametrize(
    ("noise", "density"),
    [
        (pv.Laplace(0.5, 1.5), lambda d: np.exp(-np.abs(d - 0.5) / 1.5)),
        (pv.Normal(1, sd=0.7), lambda d: norm.pdf(d, 1, 0.7)),
    ],
)
def test_the_worst_of_random_mixtures_is_found(noise, density):
    rng = np.random.default_rng(5)
    values, p = sorted(rng.uniform(-3, 3, 4)), rng.dirichlet(np.ones(4))
    attack = pv.Attack(lambda x: x + pv.sample(noise), prior={"x": pv.Choice(values, p=p)}, secret="x")
    grid = np.linspace(-6, 7, 200_001)  # for normal noise, far out the outermost value is certain
    weights = p[:, np.newaxis] * density(grid - np.array(values)[:, np.newaxis])
    posterior = (weights / weights.sum(axis=0))[1]
    verdict = P.check(attack, P.belief(lambda x: x == values[1], at_most=0.999))
    assert verdict.holds
    assert verdict.worst.value == pytest.approx(posterior.max(), abs=1e-6)
    assert verdict.worst.high >= posterior.max() - 1e-12


def test_the_spread_of_a_normal_posterior_is_the_same_after_every_output():
    prior = {"a": pv.Normal(40, sd=10), "b": pv.Normal(40, sd=10)}
    attack = pv.Attack(lambda a, b: (a + b) / 2, prior=prior, secret="a")
    width = 2 * norm.ppf(0.975) * 10 / math.sqrt(2)
    assert P.check(attack, P.bounds(interval_width_at_least=width - 1e-6)).holds
    assert P.check(attack, P.bounds(interval_width_at_least=width + 1e-6)).violated


def test_a_magnitude_rule_after_one_total():
    # Of two incomes up to 100 the total is 190: each lies between 90 and 100, known to within 5 %.
    attack = pv.Attack(lambda a, b: a + b, prior={"a": pv.Uniform(0, 100), "b": pv.Uniform(0, 100)}, secret="a")
    rule = P.bounds(interval_width_at_least=0.2, relative=True, probability=0.9)
    verdict = P.check(attack, rule, observe=pv.equals(190.0))
    assert verdict.violated
    assert verdict.worst.value == pytest.approx(9 / 95.5, abs=1e-6)  # 91 to 100 is the shortest relative to its middle
    assert P.check(attack, rule, observe=pv.equals(100.0)).holds


def test_bounds_of_a_continuous_secret_after_each_discrete_output():
    attack = pv.Attack(lambda a: round(a / 10), prior={"a": pv.Uniform(0, 100)}, secret="a")
    verdict = P.check(attack, P.bounds(interval_width_at_least=4.7, probability=0.95))
    assert verdict.holds
    assert verdict.worst.value == pytest.approx(4.75, abs=1e-6)  # the first class is half as wide as the others
    assert verdict.worst_output in (0, 10)


@pytest.mark.slow
def test_what_cannot_be_proven_is_undecided():
    attack = pv.Attack(lambda x: x + pv.sample(pv.StudentT(3, 0, 1)), prior={"x": pv.Bernoulli(0.5)}, secret="x")
    verdict = P.check(attack, P.max_belief(at_most=0.99))
    assert verdict.undecided
    assert "proves" in verdict.reason
    assert P.check(attack, P.max_belief(at_most=0.6)).violated


def test_rare_outputs_of_endless_counts_may_be_left_out():
    prior = {"x": pv.Bernoulli(0.5), "y": pv.Poisson(3)}
    attack = pv.Attack(lambda x, y: x + y, prior=prior, secret="x")
    # P(x = 1 | o) = (o / 3) / (1 + o / 3) rises to one with the output.
    assert P.check(attack, P.belief(lambda x: x == 1, at_most=0.8)).violated
    strict = P.belief(lambda x: x == 1, at_most=0.999)
    assert not P.check(attack, strict).holds
    assert P.check(attack, strict, except_probability=1e-9).holds


# Samples.
def test_samples_decide_about_the_outputs_seen():
    verdict = P.check(sum_of_two(), P.belief(lambda x: x == 2, at_most=0.6), engine="sample", samples=20_000)
    assert verdict.violated
    assert "outputs seen" in verdict.scope
    held = P.check(sum_of_two(), P.belief(lambda x: x == 1, at_most=0.6), engine="sample", samples=20_000)
    assert held.holds
    assert "were not seen" in held.reason


def test_an_interval_across_the_limit_is_undecided_and_says_what_would_decide():
    policy = P.belief(lambda x: x == 1, at_most=0.505)
    verdict = P.check(sum_of_two(), policy, engine="sample", samples=2_000)
    assert verdict.undecided
    assert verdict.needed > 2_000
    assert P.check(sum_of_two(), P.belief(lambda x: x == 1, at_most=0.5), engine="sample", samples=500).undecided


@pytest.mark.parametrize("programs", [40, pytest.param(300, marks=pytest.mark.slow)])
def test_sampled_verdicts_are_right_or_undecided(programs):
    rng = np.random.default_rng(11)
    wrong = decided = 0
    for trial in range(programs):
        table = rng.integers(0, 4, (4, 5)).tolist()
        p = rng.dirichlet(np.ones(4)).tolist()
        limit = float(rng.uniform(0.2, 0.95))
        prior = {"x": pv.Choice([0, 1, 2, 3], p=p), "y": pv.DiscreteUniform(0, 4)}
        attack = pv.Attack(lambda x, y, table=table: table[x][y], prior=prior, secret="x")
        beliefs = np.zeros((4, 4))
        for x, y in itertools.product(range(4), range(5)):
            beliefs[table[x][y], x] += p[x] / 5
        seen = beliefs[beliefs.sum(axis=1) > 0]
        truth = "holds" if np.all((seen / seen.sum(axis=1, keepdims=True))[:, 1] <= limit) else "violated"
        status = P.check(
            attack, P.belief(lambda x: x == 1, at_most=limit), engine="sample", samples=1_000, seed=trial
        ).status
        decided += status != "undecided"
        wrong += status not in (truth, "undecided")
    assert decided > 0.6 * programs
    assert wrong <= 0.05 * programs


# Published decisions.
@pytest.mark.parametrize("name", ["dkbp-bday12-policy"])
def test_published_policy_decisions(name):
    case = CASES[name]
    threshold = case["policy"]["threshold"]
    prior = {"bday": pv.DiscreteUniform(0, 364), "byear": pv.DiscreteUniform(1956, 1992)}
    first = pv.Attack(lambda bday, byear: 260 <= bday < 267, prior=prior, secret="bday")
    assert P.check(first, P.max_belief(at_most=threshold)).holds
    second = pv.Attack(
        lambda bday, byear: 261 <= bday < 268,
        prior=prior,
        secret="bday",
        assume=lambda bday: not (260 <= bday < 267),
    )
    verdict = P.check(second, P.max_belief(at_most=threshold))
    assert verdict.violated
    assert verdict.worst_output is True
    assert verdict.worst.value == 1


def test_location_of_spire():
    prior = {"x": pv.DiscreteUniform(0, 6), "y": pv.DiscreteUniform(0, 6)}

    def published(x, y):
        return (0, 0) if (2 <= x <= 4 and 2 <= y <= 4) else (x, y)

    attack = pv.Attack(published, prior=prior, secret=["x", "y"])
    inside = P.belief(lambda place: 2 <= place[0] <= 4 and 2 <= place[1] <= 4, at_most=0.5)
    verdict = P.check(attack, inside)
    assert verdict.violated
    assert verdict.worst.value == pytest.approx(0.9, abs=1e-12)
    assert verdict.worst_output == (0, 0)


# Bad input.
@pytest.mark.parametrize(
    "made",
    [
        lambda: P.belief(lambda x: x, at_most=1.5),
        lambda: P.belief(lambda x: x),
        lambda: P.belief("x < 3", at_most=0.5),
        lambda: P.belief(lambda x: x, at_most=0.2, at_least=0.5),
        lambda: P.change(lambda x: x, at_most=0.5, by="ratio"),
        lambda: P.change(lambda x: x, at_most=0.5, by="factor"),
        lambda: P.measure("surprise", at_most=1),
        lambda: P.bounds(interval_width_at_least=-1),
        lambda: P.bounds(interval_width_at_least=1, probability=95),
        lambda: P.max_belief(at_most=0.5) & 3,
        lambda: P.check(sum_of_two(), "strict"),
        lambda: P.check(sum_of_two(), P.max_belief(at_most=0.5), except_probability=2),
        lambda: P.check(sum_of_two(), P.max_belief(at_most=0.5, for_each=lambda x: x)),
        lambda: P.check(sum_of_two(), P.max_belief(at_most=0.5), engine="magic"),
    ],
)
def test_bad_input_is_refused(made):
    with pytest.raises(pv.ArgumentError):
        made()


def test_a_verdict_tells_outputs_only_where_asked():
    verdict = P.check(sum_of_two(), P.belief(lambda x: x == 2, at_most=0.6))
    assert "evidence" not in verdict.to_dict()
    assert verdict.to_dict(secrets=True)["evidence"][0] == {
        "output": "4",
        "level": 1.0,
        "probability": pytest.approx(1 / 9),
    }
    assert "output 4" in str(verdict)
    assert "output 4" not in "\n".join(verdict.lines(secrets=False))


# Whole numbers without an end.
def test_discrete_noise_bounds_the_belief_after_every_output_however_rare():
    worst = 0.3 * math.exp(1 / 2) / (0.3 * math.exp(1 / 2) + 0.7)
    attack = counted_with(pv.DiscreteLaplace(2.0))
    for limit, status in ((worst + 1e-9, "holds"), (worst - 1e-9, "violated")):
        assert P.check(attack, P.belief(lambda x: x == 1, at_most=limit)).status == status
    least = 0.3 * math.exp(-1 / 2) / (0.3 * math.exp(-1 / 2) + 0.7)
    assert P.check(attack, P.belief(lambda x: x == 1, at_least=least - 1e-9)).holds
    assert P.check(attack, P.belief(lambda x: x == 1, at_least=least + 1e-9)).violated


def test_counts_whose_odds_rise_without_end_are_violated_far_out():
    # P(x = 1 | o) = (o / 3) / (1 + o / 3) for Poisson noise of rate 3 on one fair bit.
    attack = pv.Attack(lambda x, y: x + y, prior={"x": pv.Bernoulli(0.5), "y": pv.Poisson(3)}, secret="x")
    assert P.check(attack, P.belief(lambda x: x == 1, at_most=0.999)).violated


def ill_of_many(records):
    return sum(row.ill for row in records)


def test_outputs_whose_probability_underflows_leave_the_verdict_open():
    """After a count of k the belief is k in 1000, whatever the rate; below 1e-308 probabilities lose their digits."""
    many = pv.Records(1000, pv.Row(ill=pv.Bernoulli(0.01)))
    attack = pv.Attack(ill_of_many, {"records": many}, lambda records: records[0].ill)
    policy = pv.policy.belief(lambda ill: ill == 1, at_most=0.5)
    assert pv.policy.check(attack, policy).status is pv.policy.Status.UNDECIDED
    assert pv.policy.check(attack, policy, except_probability=1e-250).holds
    seen = attack.run(pv.equals(250), engine="exact").posterior.probability(lambda ill: ill == 1)
    assert seen.value == pytest.approx(0.25, rel=1e-9)
    beyond = attack.run(pv.equals(290), engine="exact")
    assert beyond.diagnostics.evidence.high <= 1e-300
    assert float(beyond.posterior.mean()) == pytest.approx(0.29, rel=1e-9)


@pytest.mark.parametrize(
    "statement",
    [
        lambda x: bool(x == 2),
        lambda x: True if x == 2 else False,  # noqa: SIM210
        lambda x: x == 2 and x > 0,
        lambda x: not x != 2,  # noqa: SIM202
    ],
)
def test_a_statement_that_asks_for_one_plain_truth_is_decided_under_noise(statement):
    noisy = pv.mechanisms.laplace(lambda x: x, sensitivity=1, epsilon=1)
    verdict = pv.policy.check(
        pv.Attack(noisy, {"x": pv.DiscreteUniform(0, 3)}, "x"), pv.policy.belief(statement, at_most=0.5)
    )
    # The worst output is 2 itself: the likelihoods of 0, 1, 2 and 3 are exp(-distance), up to a common factor.
    worst = 1 / (math.exp(-2) + 2 * math.exp(-1) + 1)
    assert verdict.violated
    assert verdict.worst.low - 1e-9 <= worst <= verdict.worst.high + 1e-9


@pytest.mark.parametrize("noise", [pv.DiscreteUniform(0, 3), pv.Poisson(3)])
@pytest.mark.parametrize("engine", ["exact", "sample"])
def test_the_measure_and_the_limit_of_the_likeliest_value_have_the_same_interval(noise, engine):
    attack = pv.Attack(lambda x, y: x + y, {"x": pv.DiscreteUniform(0, 3), "y": noise}, secret="x")
    result = attack.run(engine=engine, samples=3000)
    measured = pv.leakage.max_posterior_belief(result.joint)
    worst = P.check(attack, P.max_belief(at_most=0.9), engine=engine, samples=3000).worst
    assert (measured.value, measured.low) == (worst.value, worst.low)
