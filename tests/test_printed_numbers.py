"""What a report prints makes sense: every number lies in its interval and in its range, and nothing is said twice."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privug as pv
from privug import leakage
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.intervals import Weighting, mean_estimate, std_estimate
from privug.leakage.register import PROBABILITY, ranging
from privug.report.summary import MOST_LISTED_VALUES
from strategies import joints

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|-?infinite")

THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")


def numbers_in(text):
    text = THOUSANDS.sub("", text.replace("minus infinite", "-infinite"))
    return [float(found.replace("infinite", "inf")) for found in NUMBER.findall(text)]


ends = st.one_of(st.just(0.0), st.floats(0, 1e6), st.floats(0, 1e-6), st.just(math.inf))


@settings(deadline=None)
@given(st.floats(-1e6, 1e6), ends, ends)
def test_what_is_printed_of_an_estimate_is_the_estimate(value, below, above):
    estimate = Estimate(value, value - below, value + above)
    below, above = estimate.value - estimate.low, estimate.high - estimate.value  # tiny ones are lost in the value
    text = estimate.number()
    shown = numbers_in(text)
    assert "[0, infinite]" not in text
    for number in shown if "±" not in text else shown[:1]:
        assert any(
            number == pytest.approx(known, rel=5e-3, abs=max(1e-9, 0.51 * min(w for w in (below, above, 1e9) if w > 0)))
            for known in (estimate.low, estimate.value, estimate.high)
        )
    if "[" in text:
        middle, low, high = shown
        assert low <= middle <= high
    elif ", at least" in text or text.startswith("at most"):
        assert shown[-1] <= shown[0]
    elif ", at most" in text or text.startswith("at least"):
        assert shown[-1] >= shown[0]


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(1.0, 0.6, 1.0), "1.00 [0.60, 1.00]"),
        (Estimate(1.0, 0.997, 1.0), "1.000, at least 0.997"),
        (Estimate(0.0, 0.0, 0.0004), "0, at most 0.0004"),
        (Estimate(0.0, 0.0, math.inf, "bit"), "at least 0"),
        (Estimate(2.5, 2.0, math.inf, "bit"), "2.5, at least 2"),
        (Estimate(2.5, -math.inf, 3.0, "bit"), "2.5, at most 3"),
        (Estimate(2.5, -math.inf, math.inf), "2.5, but it may be anything"),
        (Estimate(math.inf, 3.0, math.inf), "infinite, at least 3"),
        (Estimate(-math.inf, -math.inf, 3.0), "minus infinite, at most 3"),
        (Estimate.exactly(math.inf), "infinite"),
    ],
)
def test_intervals_in_words(estimate, text):
    assert estimate.number() == text


RANGES = {
    "bayes_vulnerability": (0, 1),
    "bayes_risk": (0, 1),
    "multiplicative_leakage": (1, math.inf),
    "min_entropy_leakage": (0, math.inf),
    "additive_leakage": (0, 1),
    "bayes_security": (0, 1),
    "posterior_guessing_entropy": (1, math.inf),
    "mutual_information": (0, math.inf),
    "conditional_entropy": (0, math.inf),
    "max_posterior_belief": (0, 1),
}


@settings(deadline=None, max_examples=40)
@given(joints())
def test_measures_lie_in_their_ranges(joint):
    for name, (low, high) in RANGES.items():
        found = getattr(leakage, name)(joint)
        assert low <= found.low <= found.value <= found.high <= high, name
    for name in ("entropy", "min_entropy"):
        assert getattr(leakage, name)(joint.secret).low >= 0


def test_an_identity_has_no_negative_risk():
    """Probabilities of 49 secrets add up to a little more than one."""
    for count in range(2, 200):
        joint = pv.Joint.from_channel(np.full(count, 1 / count), np.eye(count))
        risk = leakage.bayes_risk(joint)
        assert 0 <= risk.low <= risk.value <= risk.high <= 1
        assert risk.value == pytest.approx(0, abs=1e-12)
        assert not risk.number().startswith("-")


def test_a_value_far_out_of_its_range_is_not_shown():
    @ranging(PROBABILITY)
    def broken():
        return Estimate.exactly(-0.5)

    with pytest.raises(pv.PrivugError, match=r"broken came out as -0\.5"):
        broken()


@pytest.mark.parametrize("groups", [None, 10])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_constant_has_no_error(groups, weighted):
    rng = np.random.default_rng(1)
    weights = rng.random(1000) if weighted else None
    weights = None if weights is None else weights / weights.sum()
    for value in (300.0, 0.1, -7e9, 1e-30):
        jitter = value * (1 + rng.integers(-3, 4, 1000) * 2.0**-53)
        for values in (np.full(1000, value), jitter):
            belief = Belief(pv.Joint.from_samples(values, values).secret.batch, weights, groups=groups)
            assert belief.mean().number() == {300.0: "300", 0.1: "0.1", -7e9: "-7,000,000,000", 1e-30: "1e-30"}[value]
            assert belief.std().number() == "0"
    assert mean_estimate(np.array([1.0, 1.0 + 1e-9]), Weighting()).low < 1.0
    assert std_estimate(np.array([1.0, 1.0 + 1e-9, 1.0]), Weighting()).value > 0


def total(a, b):
    return a + b


AGES = {"a": pv.DiscreteUniform(18, 80), "b": pv.DiscreteUniform(0, 1)}


@pytest.mark.parametrize("engine", ["exact", "sample", "rare"])
def test_few_values_are_listed_and_the_others_together(engine):
    attack = pv.Attack(total, prior=AGES, secret="a")
    result = attack.run(observe=pv.equals(30), engine=engine, samples=500)
    lines = [line for line in result.content.comparisons if line.label.startswith("P(")]
    assert len(lines) <= MOST_LISTED_VALUES + 1
    assert [line.label for line in lines][-1] == "P(one of 57 other values)"
    assert sum(float(line.before) for line in lines) == pytest.approx(1, abs=1e-12)
    if engine == "exact":
        assert set(result.posterior.distribution()) == {29, 30}
        assert lines[-1].after.number() == "0"


ENGINES = ["sample", "rare", *(pytest.param(engine, marks=pytest.mark.slow) for engine in ("pymc", "numpyro"))]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_prior_is_computed_and_not_drawn(engine):
    """Before: the mean, deviation and tail of the secret's own family, in closed form."""
    attack = pv.Attack(
        lambda x, y: x + y,
        prior={"x": pv.Normal(2, sd=3), "y": pv.Exponential(scale=2)},
        secret="x",
        questions={"x is positive": lambda x: x > 0},
    )
    if engine in ("pymc", "numpyro"):
        pytest.importorskip(engine)
    result = attack.run(observe=pv.near(4, within=0.5), engine=engine, samples=400)
    assert result.prior.exact
    assert result.prior.mean().value == pytest.approx(2, abs=1e-9)
    assert result.prior.std().value == pytest.approx(3, abs=1e-9)
    truth = 0.5 * math.erfc(-2 / 3 / math.sqrt(2))
    assert result.prior.probability(lambda x: x > 0).value == pytest.approx(truth, abs=1e-9)
    if engine == "sample":
        (line,) = result.content.questions
        assert line.before.value == pytest.approx(truth, abs=1e-9)
        assert line.before.number() == f"{truth:.3g}"
    assert leakage.entropy(result.prior).value == pytest.approx(0.5 * math.log2(2 * math.pi * math.e * 9), abs=1e-6)


def test_the_prior_of_a_row_of_a_table_of_random_size():
    attack = pv.Attack(
        lambda records: sum(row.age for row in records),
        prior={
            "records": pv.Records(pv.Binomial(6, 0.5) + 2, lambda i: pv.Row(age=pv.DiscreteUniform(18, 80 + i // 9)))
        },
        secret=lambda records: records[1].age,
    )
    result = attack.run(observe=pv.between(200, 300), engine="sample", samples=300)
    assert result.prior.exact
    assert result.prior.mean().value == pytest.approx(49)
    last = pv.Attack(
        lambda records: sum(row.age for row in records),
        prior={"records": pv.Records(pv.Binomial(6, 0.5) + 2, lambda i: pv.Row(age=pv.DiscreteUniform(18 + i, 80)))},
        secret=lambda records: records[-1].age,
    ).run(engine="sample", samples=500)
    # The last row's age depends on how many rows there are: E = (98 + i) / 2 with i = 1 + Binomial(6, 0.5).
    assert 51.0 in last.prior.mean().widened(2)


def test_the_prior_is_given_facts_and_leaves_failures_out():
    attack = pv.Attack(total, prior=AGES, secret="a", assume=lambda a, b: a + b >= 80)
    result = attack.run(observe=pv.equals(80), engine="sample", samples=200)
    assert result.prior.distribution()[80].value == pytest.approx(2 / 3) if result.prior.exact else True
    assert 2 / 3 in result.prior.probability(lambda a: a == 80).widened(2)
    failing = pv.Attack(lambda a, b: 1 // b, prior=AGES, secret="b", on_error="exclude")
    found = failing.run(observe=pv.equals(1), engine="sample", samples=200)
    assert found.prior.probability(lambda b: b == 1).value == 1


def test_nothing_observed_is_not_a_change():
    attack = pv.Attack(total, prior=AGES, secret="a", questions={"Alice is under 30": lambda a: a < 30})
    for engine in ("exact", "sample"):
        result = attack.run(engine=engine)
        text = " ".join(str(result).split())
        assert "does not change" not in text
        assert "nothing was observed" in text
        assert "before" in str(result)
        assert not re.search(r"^\s+before\s+after", str(result), re.MULTILINE)
        assert ">before</th>" in result._repr_html_()
        assert ">after</th>" not in result._repr_html_()
        assert all(line["after"] is None for line in result.to_dict()["beliefs"])
    seen = attack.run(observe=pv.equals(40))
    assert re.search(r"^\s+before\s+after", str(seen), re.MULTILINE)


@pytest.mark.parametrize("engine", ["sample", "rare", pytest.param("numpyro", marks=pytest.mark.slow)])
def test_answers_are_worth_a_hundred_samples_or_all_that_were_asked_for(engine):
    if engine == "numpyro":
        pytest.importorskip("numpyro")
    prior = {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}
    attack = pv.Attack(lambda x, y: x + y, prior=prior, secret="x")
    result = attack.run(observe=pv.near(2, within=0.1), engine=engine, samples=1000)
    assert result.diagnostics.effective_samples >= 100


def test_one_of_a_kind_is_singular():
    def person(i):
        return pv.Row(ill=pv.Bernoulli(0.5))

    attack = pv.Attack(
        lambda records: records[0].ill, {"records": pv.Records(1, person)}, lambda records: records[0].ill
    )
    told = " ".join(f"{attack.run()} {attack.run(pv.equals(1), engine='sample', samples=200, seed=1)}".split())
    assert "records (1 row)" in told
    assert "takes some 1 yes-or-no question." in told
    assert "needs 1 try on average" in told
    assert "tells 1 bit about" in told
    assert not re.search(r"(?<![\d.,])1 (?:\w+ )?(rows|bits|tries|questions|samples|draws|states|inputs)\b", told)
    with pytest.raises(pv.PriorError, match="list of 1 probability, not"):
        pv.Choice(["a"], p=[0.5, 0.5])
    with pytest.raises(pv.ImpossibleObservation, match="the output has 1 part, but"):
        pv.Attack(lambda x: [x], {"x": pv.Bernoulli(0.5)}, "x").run(pv.equals([1, 2]))
