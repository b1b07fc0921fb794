"""Pictures of a belief that changes with each answer."""

import pytest

import privug as pv


def test_probabilities_after_each_answer_and_refusals():
    policy = pv.policy.max_belief(at_most=0.8)
    monitor = pv.policy.Monitor({"party": pv.Choice(["red", "blue", "green"])}, "party", policy)
    assert monitor.ask(lambda party: party == "gold", truth={"party": "blue"}, name="is it gold?")
    assert not monitor.ask(lambda party: party == "red", truth={"party": "blue"}, name="is it red?")
    axes = monitor.plot()
    for line in axes.get_lines():
        assert line.get_ydata() == pytest.approx([1 / 3] * 3)
    assert {line.get_label() for line in axes.get_lines()} == {"red", "blue", "green"}
    names = [text.get_text() for text in axes.get_xticklabels()]
    assert names == ["before", "is it gold?", "is it red?\n(refused)"]
    assert axes.get_ylabel() == "probability of party"


def test_numbers_have_a_median_and_ranges():
    monitor = pv.policy.Monitor({"day": pv.DiscreteUniform(1, 100)}, "day", pv.policy.max_belief(at_most=0.2))
    monitor.ask(lambda day: day <= 50, truth={"day": 20}, name="first half?")
    monitor.ask(lambda day: day <= 25, truth={"day": 20}, name="first quarter?")
    axes = monitor.plot()
    (median,) = axes.get_lines()
    assert median.get_ydata().tolist() == [50, 25, 13]
    wide, narrow = (collection.get_segments() for collection in axes.collections)
    assert [(low, high) for low, high in (segment[:, 1] for segment in narrow)] == [(25, 75), (13, 38), (7, 19)]
    assert wide[2][:, 1].tolist() == [1, 25]
    assert axes.get_ylabel() == "day"
