"""Pictures of beliefs: what is drawn is what is believed."""

import math

import numpy as np
import pytest
from scipy import stats

import privug as pv
from privug.inference.belief import Belief
from privug.inference.measure.curve import Curve
from privug.report import plots


def sum_of_two():
    return pv.Attack(lambda x, y: x + y, prior={"x": pv.Uniform(0, 1), "y": pv.Normal(0, sd=0.2)}, secret="x")


def bars(axes):
    """Return the bars of a picture, those of one belief after the other."""
    return [[(patch.get_width(), patch.get_height()) for patch in container] for container in axes.containers
            if hasattr(container, "patches")]  # fmt: skip


def test_densities_are_lines_and_the_middle_of_the_last_is_shaded(tmp_path):
    result = sum_of_two().run(observe=pv.equals(0.9))
    axes = result.plot(tmp_path / "belief.png")
    assert (tmp_path / "belief.png").read_bytes().startswith(b"\x89PNG")
    before, after = axes.get_lines()
    xs = before.get_xdata()
    inside = (xs > 0.001) & (xs < 0.999)
    assert np.allclose(before.get_ydata()[inside], 1.0, rtol=0, atol=1e-9)
    assert np.all(before.get_ydata()[(xs < -0.001) | (xs > 1.001)] == 0)
    truth = stats.truncnorm(-0.9 / 0.2, 0.1 / 0.2, 0.9, 0.2)
    xs = after.get_xdata()
    off = np.abs(after.get_ydata() - truth.pdf(xs))[(np.abs(xs) > 1e-6) & (np.abs(xs - 1) > 1e-6)]
    assert off.max() < 1e-8
    (shaded,) = axes.collections
    across = shaded.get_paths()[0].vertices[:, 0]
    assert (across.min(), across.max()) == pytest.approx((truth.ppf(0.025), truth.ppf(0.975)), abs=1e-6)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x", "probability density")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["before", "after (shaded: 95%)"]


def test_a_narrow_peak_is_not_missed():
    axes = Belief.of_curve(Curve.mixture([0.5, 0.5], [Curve.normal(0, 100), Curve.normal(5, 0.001)])).plot()
    assert np.nanmax(axes.get_lines()[0].get_ydata()) == pytest.approx(0.5 * stats.norm(0, 0.001).pdf(0), rel=0.01)


def test_samples_are_histograms_of_total_area_one():
    result = sum_of_two().run(observe=pv.near(0.9, within=0.1), engine="sample", samples=2000)
    before, after = plots.beliefs([("", result.joint.secret, result.posterior)]).get_lines()
    for line in (before, after):
        area = np.trapezoid(line.get_ydata(), line.get_xdata())
        assert 0.99 < area <= 1 + 1e-9  # tails of one in a thousand to either side are not drawn
    assert before.get_linestyle() != after.get_linestyle()  # told apart without colours


def test_discrete_numbers_are_bars_that_sum_to_one():
    attack = pv.Attack(lambda n, m: n + m, {"n": pv.DiscreteUniform(0, 10), "m": pv.DiscreteUniform(0, 10)}, "n")
    axes = attack.run(observe=pv.equals(15)).plot()
    before, after = ([height for _, height in one] for one in bars(axes))
    assert before == pytest.approx([1 / 11] * 11)
    assert after == pytest.approx([1 / 6] * 6)
    assert [text.get_text() for text in axes.get_xticklabels()] == [str(value) for value in range(11)]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("n", "probability")
    hatches = [container.patches[0].get_hatch() for container in axes.containers]
    assert len(set(hatches)) == 2


def test_sampled_bars_have_the_intervals_of_their_probabilities():
    belief = pv.Attack(lambda bit: bit, {"bit": pv.Bernoulli(0.3)}, "bit").run(engine="sample", samples=500).posterior
    axes = belief.plot()
    drawn = [segment[:, 1] for segment in axes.collections[0].get_segments()]
    for value, ends in enumerate(drawn):
        share = belief.distribution()[value]
        assert ends == pytest.approx([share.low, share.high])


def test_a_yes_or_no_is_called_so():
    result = pv.Attack(lambda x: x > 2, {"x": pv.DiscreteUniform(0, 3)}, lambda x: x > 1).run(pv.equals(True))
    assert [text.get_text() for text in result.plot().get_xticklabels()] == ["False", "True"]
    assert {text.get_text() for text in result.joint.plot().get_xticklabels()} == {"False", "True"}


def test_many_values_are_steps_whose_heights_are_the_probabilities():
    axes = pv.Attack(lambda n: n, {"n": pv.Binomial(300, 0.3)}, "n").run().plot()
    assert max(axes.get_lines()[0].get_ydata()) == pytest.approx(stats.binom(300, 0.3).pmf(90), rel=1e-9)
    low, high = axes.get_xlim()
    assert 60 < low < high < 120


def test_mixed_beliefs_have_a_density_and_bars_on_an_axis_of_their_own():
    prior = {"x": pv.Mixture([pv.Constant(0.0), pv.Normal(50_000, sd=9000)], weights=[0.3, 0.7])}
    axes = pv.Attack(lambda x: x > 1e9, prior, lambda x: x).run().plot()
    line = axes.get_lines()[0]
    assert np.allclose(line.get_ydata(), 0.7 * stats.norm(50_000, 9000).pdf(line.get_xdata()), rtol=0, atol=1e-12)
    (beside,) = [other for other in axes.figure.axes if other is not axes]
    assert [height for _, height in bars(beside)[0]] == pytest.approx([0.3])
    assert beside.get_ylabel() == "probability of single values"


def test_mixed_samples_have_bars_where_values_come_up_again():
    rng = np.random.default_rng(1)
    values = np.where(rng.random(4000) < 0.6, 0.0, rng.normal(10, 1, 4000))
    axes = Belief.of(values).plot()
    (beside,) = [other for other in axes.figure.axes if other is not axes]
    assert [height for _, height in bars(beside)[0]] == pytest.approx([float(np.mean(values == 0))])
    line = axes.get_lines()[0]
    assert np.trapezoid(line.get_ydata(), line.get_xdata()) == pytest.approx(np.mean(values != 0), abs=0.01)


def test_of_many_categories_the_likeliest_have_bars_and_the_others_one():
    weights = np.arange(1, 101) / 5050
    belief = Belief.of([f"label {k}" for k in range(1, 101)], probabilities=weights.tolist())
    axes = belief.plot(name="diagnosis")
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names == [*(f"label {k}" for k in range(100, 89, -1)), "89 others"]
    shares = [width for width, _ in bars(axes)[0]]
    assert sum(shares) == pytest.approx(1.0)
    assert shares[0] == pytest.approx(100 / 5050)
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("diagnosis", "probability")


def test_tuples_are_categories_with_short_names():
    attack = pv.Attack(lambda a, z: a, {"a": pv.DiscreteUniform(20, 60), "z": pv.Choice(["x" * 50, "b"])}, ["a", "z"])
    axes = attack.run(observe=pv.between(30, 33)).plot()
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert "30, b" in names
    assert names[-1] == "71 others"
    assert max(map(len, names)) <= 24
    assert axes.get_ylabel() == "a, z"


def test_the_parts_of_continuous_tuples_have_panels():
    attack = pv.Attack(lambda x, y: x + y, {"x": pv.Normal(0, sd=1), "y": pv.Uniform(0, 1)}, ["x", "y"])
    axes = attack.run(observe=pv.near(1, within=0.1), samples=500).plot()
    assert [one.get_xlabel() for one in axes] == ["x", "y"]


def test_several_attackers_in_one_picture():
    vague, sure = (
        pv.Attack(lambda x: x + pv.sample(pv.Normal(0, sd=1)), {"x": pv.Normal(0, sd=sd)}, "x", name=name)
        for name, sd in (("vague", 3.0), ("sure", 0.5))
    )
    results = [attack.run(observe=pv.equals(2.0)) for attack in (vague, sure)]
    axes = results[0].plot(beside=results[1:])
    named = {line.get_label(): line for line in axes.get_lines()}
    assert list(named) == ["vague, before", "vague, after (shaded: 95%)", "sure, before", "sure, after (shaded: 95%)"]
    line = named["sure, after (shaded: 95%)"]
    truth = stats.norm(2 * 0.25 / 1.25, math.sqrt(0.25 / 1.25))
    assert np.allclose(line.get_ydata(), truth.pdf(line.get_xdata()), rtol=0, atol=1e-9)
    assert len({line.get_marker() for line in axes.get_lines()}) == 2


def test_heavy_tails_do_not_hide_the_middle():
    axes = pv.Attack(lambda x: 0, {"x": pv.Cauchy(0, 1)}, "x").run().plot()
    low, high = axes.get_xlim()
    assert -40 < low < -5 < 5 < high < 40


def test_certain_and_infinite_values_are_drawn():
    assert bars(Belief.of([5.0], probabilities=[1.0]).plot())[0][0][1] == 1.0
    values = np.concatenate([np.random.default_rng(1).normal(size=500), [math.inf]])
    assert plots.belief(Belief.of(values)).get_lines()


@pytest.mark.parametrize(
    ("secret", "name"),
    [
        ("x", "x"),
        (["x", "y"], "x, y"),
        (lambda records: records[0].age, "age of records[0]"),
        (lambda x: x, "x"),
        (lambda df: df["age"][0], "age of df[0]"),
        (lambda x, y: (x, y), "x, y"),
        (lambda x: x + x + x + x + x + x + x + x + x + x + x + x + x + x, "secret"),
    ],
)
def test_the_secret_is_called_by_its_input_or_as_its_function_reads(secret, name):
    row = pv.Row(age=pv.Uniform(0, 1))
    prior = {"x": pv.Uniform(0, 1), "y": pv.Uniform(0, 1), "records": pv.Records(2, row), "df": pv.Records(2, row)}
    attack = pv.Attack(lambda x, y, records, df: x, prior, secret)
    assert attack.question.secret_name == name


def test_a_secret_of_a_named_function():
    def years_of_service(x):
        return x

    result = pv.Attack(lambda x: x, {"x": pv.DiscreteUniform(0, 3)}, years_of_service, name="mean").run(pv.equals(1))
    assert result.plot().get_xlabel() == result.posterior.plot().get_xlabel() == "years of service"
    assert result.prediction.plot().get_xlabel() == "output of mean"
