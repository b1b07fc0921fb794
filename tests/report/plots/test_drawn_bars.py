"""Pictures of numbers with names: bars as long as the numbers, limits where they are."""

import math

import pytest

import privug as pv
from privug.report import plots


def drawn(axes):
    """Return the bars with their names."""
    names = [label.get_text().replace("\n", " ") for label in axes.get_yticklabels()]
    return dict(zip(names, [patch.get_width() for patch in axes.patches], strict=True))


def limits(axes):
    return [
        line.get_xdata()[0]
        for line in axes.get_lines()
        if len(set(line.get_xdata())) == 1 and len(line.get_xdata()) == 2
    ]


def attack():
    prior = {"a": pv.DiscreteUniform(0, 5), "b": pv.DiscreteUniform(0, 3), "c": pv.Bernoulli(0.5)}
    return pv.Attack(lambda a, b, c: a + b, prior, "a")


def test_the_leakage_table_has_a_panel_for_each_unit():
    table = pv.Attack(lambda bit: bit, {"bit": pv.Bernoulli(0.25)}, "bit").run().leakage()
    axes = table.plot()
    panels = {panel.get_xlabel(): panel for panel in axes}
    bits, shares = panels["bits"], panels["probability"]
    entropy = -0.25 * math.log2(0.25) - 0.75 * math.log2(0.75)
    assert drawn(bits)["mutual information"] == pytest.approx(entropy)
    assert drawn(shares)["bayes vulnerability before"] == pytest.approx(0.75)


def test_intervals_limits_infinite_and_undefined_numbers():
    rows = [
        ("a", pv.Estimate(0.4, 0.3, 0.6), 0.5),
        ("b", pv.Estimate.exactly(math.inf)),
        ("c", pv.Estimate.undefined("x")),
    ]
    axes = plots.bars([(name, e, *more) for name, e, *more in rows[:1]], name="belief")
    assert limits(axes) == [0.5]
    segment = axes.collections[0].get_segments()[0]
    assert segment[:, 0] == pytest.approx([0.3, 0.6])
    axes = plots.bars([rows[0], ("b", pv.Estimate.exactly(math.inf))])
    texts = [text.get_text().strip() for one in axes for text in one.texts]
    assert texts == ["0.4", "∞"]
    assert plots.bars(rows[2:]).texts[0].get_text().strip() == "undefined"
    with pytest.raises(pv.ArgumentError, match="no number to draw"):
        plots.bars([])


def test_of_many_only_the_first_are_drawn():
    axes = plots.bars([(f"row {k}", pv.Estimate.exactly(1 / (k + 1))) for k in range(100)], name="risk")
    assert len(axes.patches) == 15
    assert axes.get_xlabel() == "risk\n(the first 15 of 100)"


def test_leakage_by_input():
    axes = pv.policy.explain(attack(), pv.policy.max_belief(at_most=0.5)).plot()
    bars = drawn(axes)
    assert list(bars) == ["a", "b", "c"]
    output = [min(k, 8 - k, 3) + 1 for k in range(9)]  # ways to a sum
    entropy = -sum(w / 24 * math.log2(w / 24) for w in output)
    assert bars["a"] == pytest.approx(entropy - math.log2(4))
    assert bars["b"] == pytest.approx(entropy - math.log2(6))
    assert bars["c"] == pytest.approx(0, abs=1e-12)


def test_verdicts_stand_against_their_limits():
    policy = pv.policy.max_belief(at_most=0.5)
    axes = pv.policy.check(attack(), policy).plot()
    assert drawn(axes) == {"after 0": 1.0, "after 8": 1.0, "after 1": pytest.approx(0.5)}
    assert limits(axes) == [0.5] * 3
    both = policy & pv.policy.belief(lambda a: a >= 4, at_most=0.9)
    axes = pv.policy.check(attack(), both).plot()
    assert limits(axes) == [0.5, 0.9]
    assert len(axes.patches) == 2
    check = pv.policy.Check(attack(), policy, name="sums")
    assert drawn(pv.policy.check_all([check]).plot()) == {"sums": 1.0}
    repaired = pv.policy.enforce(attack(), policy)
    bars = drawn(repaired.plot())
    assert bars["before"] == 1.0
    assert bars["after"] <= 0.5 + 1e-12


def test_an_audit_stands_against_its_promise():
    laplace = pv.mechanisms.laplace(lambda x: x, sensitivity=1, epsilon=1.0)
    axes = pv.mechanisms.audit(laplace, [(0, 1), (0, 2)]).plot()
    assert drawn(axes) == {"0 and 2": pytest.approx(2.0), "0 and 1": pytest.approx(1.0)}
    assert limits(axes) == [1.0, 1.0]
    assert axes.get_xlabel() == "epsilon [nat]"


def test_reidentification():
    row = pv.Row(sex=pv.Choice(["f", "m"]), ill=pv.Bernoulli(0.5))
    table = pv.Records(3, row)
    found = pv.reidentification
    assert drawn(found.three_risks(table, "sex", "ill").plot())["singling out"] == pytest.approx(0.25)
    assert drawn(found.quasi_identifiers(table).plot())["sex + ill"] == pytest.approx(0.5625)
    matching = found.matching_rows(table, "sex").plot()
    assert [patch.get_height() for patch in matching.patches] == pytest.approx([0.25, 0.5, 0.25])
    assert matching.get_xlabel() == "number of matching rows"
    released = [{"zip": 1, "ill": True}, {"zip": 1, "ill": False}, {"zip": 2, "ill": False}]
    public = [{"name": "Ann", "zip": 1}, {"name": "Bo", "zip": 2}]
    assert drawn(found.link(released, public, "zip", "ill").plot()) == {"Bo": 1.0, "Ann": 0.5}


def test_pointwise_leakage_is_drawn_for_each_output():
    joint = pv.Joint.from_channel([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]])
    bars = drawn(pv.leakage.pointwise_leakage(joint).plot())
    assert bars == {
        "output 1": pytest.approx(math.log2(0.35 / 0.45 / 0.5)),
        "output 0": pytest.approx(math.log2(0.4 / 0.55 / 0.5)),
    }
