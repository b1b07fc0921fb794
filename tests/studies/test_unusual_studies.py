"""Studies, fits and frames on input that nobody meant to give."""

import polars
import pytest

import privug as pv
from privug.errors import PriorError, PrivugError


def attack_for(epsilon):
    return pv.Attack(
        lambda x: x + pv.sample(pv.DiscreteLaplace(1 / epsilon)), prior={"x": pv.Bernoulli(0.5)}, secret="x"
    )


@pytest.mark.parametrize(
    "refused",
    [
        lambda: pv.sweep(5, epsilon=[1]),
        lambda: pv.sweep(attack_for(1.0), epsilon=[1]),
        lambda: pv.sweep(attack_for, people=[1]),
        lambda: pv.calibrate(attack_for, measure="bayes_risk", at_least=0.3, people=(1, 2)),
    ],
)
def test_what_makes_no_attack_is_refused(refused):
    with pytest.raises(PrivugError, match="attack_for must be a function"):
        refused()


def test_a_sweep_without_numbers_does_not_call_them_exact():
    assert "exact" not in str(pv.sweep(attack_for, epsilon=[-1.0])).splitlines()[0]


def test_a_cell_of_a_comparison_has_three_names():
    matrix = pv.compare(attackers={"a": {"x": pv.Bernoulli(0.5)}}, programs={"p": lambda x: x}, secret="x")
    with pytest.raises(KeyError, match="attackers"):
        matrix["a"]


@pytest.mark.parametrize("data", [[1e300, 2e300, 3e300], [1e-300, 2e-300, 3e-300], [10**400, 1], [[1, 2], [3, 4]]])
@pytest.mark.parametrize("family", [pv.Normal, pv.Gamma, pv.StudentT])
def test_data_beyond_arithmetic_is_refused(family, data):
    with pytest.raises(PriorError):
        pv.fit(family, data)


@pytest.mark.parametrize(
    "arguments",
    [{"labels": None}, {"labels": "zip"}, {"values": {"zip": None}, "smoothing": 1}, {"families": pv.Normal}],
)
def test_arguments_of_the_wrong_kind_are_named(arguments):
    with pytest.raises(PriorError, match=next(iter(arguments))):
        pv.Records.from_frame({"zip": ["a", "b"]}, **arguments)


def test_lazy_frames_are_collected():
    frame = polars.DataFrame({"zip": ["a", "b"]})
    assert pv.Records.from_frame(frame.lazy())[0]._fields == pv.Records.from_frame(frame)[0]._fields
