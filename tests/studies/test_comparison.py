"""Attackers against programs: the matrix holds the numbers of single attacks, and tells what failed."""

import json

import pytest

import privug as pv
from privug.studies.comparison import compare
from privug.studies.measured import NoNumber

ATTACKERS = {
    "knows nothing": {"bits": pv.Array(pv.Bernoulli(0.5), 3)},
    "knows the rate": {"bits": pv.Array(pv.Bernoulli(0.9), 3)},
}
PROGRAMS = {"count": lambda bits: sum(bits), "majority": lambda bits: sum(bits) >= 2, "nothing": lambda bits: 0}


def matrix(**options):
    return compare(attackers=ATTACKERS, programs=PROGRAMS, secret=lambda bits: bits[0], **options)


def test_every_cell_is_what_the_attack_alone_gives():
    found = matrix()
    assert found.attackers == tuple(ATTACKERS)
    assert found.measures == ("mutual_information", "bayes_vulnerability")
    for attacker, prior in ATTACKERS.items():
        for program, function in PROGRAMS.items():
            alone = pv.Attack(function, prior=prior, secret=lambda bits: bits[0]).run()
            expected = float(pv.leakage.mutual_information(alone.joint))
            assert float(found[attacker, program, "mutual_information"]) == pytest.approx(expected, abs=1e-12)
    assert float(found["knows nothing", "nothing", "mutual_information"]) == 0.0
    assert float(found["knows nothing", "majority", "bayes_vulnerability"]) == pytest.approx(0.75, abs=1e-12)


def test_an_observation_for_each_program():
    seen = {"count": pv.equals(3), "majority": pv.equals(True), "nothing": pv.equals(0)}
    found = matrix(observe=seen, questions={"yes": lambda bit: bit == 1})
    assert float(found["knows nothing", "count", "yes"]) == pytest.approx(1.0, abs=1e-12)
    assert float(found["knows nothing", "majority", "yes"]) == pytest.approx(0.75, abs=1e-12)
    assert float(found["knows the rate", "nothing", "yes"]) == pytest.approx(0.9, abs=1e-12)


def test_one_observation_for_all_and_what_is_impossible_is_told_in_its_cell():
    found = matrix(observe=pv.equals(3))
    impossible = found["knows nothing", "nothing", "mutual_information"]
    assert isinstance(impossible, NoNumber)
    assert "agrees" in impossible.reason
    assert float(found["knows nothing", "count", "kl_divergence"]) == pytest.approx(1.0, abs=1e-12)
    assert "none (1)" in str(found)
    assert impossible.reason.split()[0] in str(found).split("(1) ", 1)[1]


def test_a_measure_that_fails_in_one_cell_only():
    def right_guess(result):
        if result.attack.name.endswith("majority"):
            raise pv.InferenceError("the majority is not to be measured")
        return pv.leakage.bayes_vulnerability(result.joint)

    found = matrix(measures={"right guess": right_guess})
    assert found["knows the rate", "majority", "right guess"] == NoNumber(
        "the majority is not to be measured", pv.InferenceError
    )
    assert float(found["knows the rate", "nothing", "right guess"]) == pytest.approx(0.9, abs=1e-12)


def test_an_interrupted_comparison_keeps_what_it_has():
    def stops(result):
        if result.attack.name.endswith("nothing"):
            raise KeyboardInterrupt
        return pv.leakage.bayes_risk(result.joint)

    with pv.limited(workers=1):
        found = matrix(measures={"risk": stops})
    assert float(found["knows nothing", "count", "risk"]) == pytest.approx(0.25, abs=1e-12)
    assert found["knows the rate", "count", "risk"] == NoNumber("interrupted before this cell")


def test_the_matrix_as_plain_values():
    found = matrix(measures=["bayes_risk"])
    rows = json.loads(found.to_json())
    assert len(rows) == 6
    assert rows[0]["attacker"] == "knows nothing"
    assert rows[0]["program"] == "count"
    assert rows[0]["value"] == pytest.approx(1 - 0.75, abs=1e-12)
    assert list(found.to_frame().columns[:3]) == ["attacker", "program", "measure"]
    assert '<th scope="row">knows nothing</th>' in found._repr_html_()
    assert str(found).splitlines()[0] == "bayes risk"
    with pytest.raises(KeyError, match="there are attackers"):
        found["nobody", "count", "bayes_risk"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attackers": {}}, "attackers must be a dict"),
        ({"programs": [len]}, "programs must be a dict"),
        ({"observe": {"count": pv.equals(3)}}, "an entry for each program, and no other: 'majority', 'nothing'"),
        ({"measures": ["magic"]}, "'magic' is neither one of the questions"),
    ],
)
def test_bad_arguments_are_refused_with_a_reason(options, message):
    arguments = {"attackers": ATTACKERS, "programs": PROGRAMS, "secret": lambda bits: bits[0], **options}
    with pytest.raises(pv.ArgumentError, match=message):
        compare(**arguments)
