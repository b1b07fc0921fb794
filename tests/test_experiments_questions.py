"""The paper's research questions: the estimators that Privug is compared with, exact values, and the experiments."""

import ast
import math
from itertools import product

import numpy as np
import pytest

import privug as pv
from privug.cli.reproduce import experiments

direct, repetitions, synthetic, table = (
    experiments(name) for name in ("direct_sampling", "repetitions", "synthetic", "table_3")
)


def uniform_pairs(copies: int = 1):
    """Every pair of two bits and of their sum, as often as expected."""
    pairs = np.array([(x, x + y) for x, y in product(range(2), range(2))] * copies)
    return pairs[:, 0], pairs[:, 1]


def test_the_plug_in_value_is_that_of_the_shares():
    information, pairs, secrets, outputs = direct.plug_in(*uniform_pairs(5))
    assert information == pytest.approx(0.5)  # the sum tells the bit in half of all cases
    assert (pairs, secrets, outputs) == (4, 2, 3)


def test_corrections_are_those_of_their_authors():
    secret, output = uniform_pairs(5)
    assert direct.leakiest(secret, output) == pytest.approx(0.5 - 1 * 2 / (2 * 20 * math.log(2)))
    assert direct.miller_madow(secret, output) == pytest.approx(0.5 - (4 - 2 - 3 + 1) / (2 * 20 * math.log(2)))


def test_rules_are_learned_from_one_half_and_judged_by_the_other():
    secret, output = np.array([1, 1, 2, 7] * 2), np.array([5, 5, 5, 9] * 2)
    assert direct.frequentist_risk(secret, output) == 1 / 4  # 2 is mistaken for 1
    unseen = np.array([1, 1, 2, 7, 1, 1, 1, 7]), np.array([5, 5, 5, 9, 6, 6, 6, 8])
    assert direct.frequentist_risk(*unseen) == 1 / 4  # all are guessed by the most frequent secret
    assert direct.nearest_neighbour_risk(*unseen) in (0, 3 / 4)  # 9 is nearest to 8, one of the fives to 6
    assert direct.fbleau(*unseen) <= 1 / 4


def test_scikit_learn_finds_the_information_of_normals():
    mean = synthetic.Mean(8, 1)
    found = direct.neighbours(*mean.draw(4_000, np.random.default_rng(1)))
    assert found == pytest.approx(mean.information, abs=0.05)  # three times the spread of this estimator


@pytest.mark.parametrize("n", [1, 2, 9])
def test_exact_values_of_sums_by_enumeration(n):
    pairs = [(x, x + y) for x, y in product(range(n + 1), repeat=2)]
    some = synthetic.Sum(n)
    secret, output = np.array(pairs).T
    assert some.information == pytest.approx(direct.plug_in(secret, output)[0])
    assert some.middle == pytest.approx(np.mean(output == n))
    assert some.risk == pytest.approx(1 - (2 * n + 1) / len(pairs))


def test_the_mean_in_a_window_of_a_sum_by_enumeration():
    total = synthetic.Total(2)
    low, high = 150, 170
    seen = [x for x, y, z in product(range(101), repeat=3) if low <= x + y + z <= high]
    assert total.mean_given(low, high) == pytest.approx(np.mean(seen), abs=1e-9)


def test_the_mean_in_a_window_of_a_mean_is_that_of_the_posterior():
    mean = synthetic.Mean(8, 1, 30)
    posterior = mean.attack.run(pv.between(54.5, 54.6), engine="exact").posterior
    assert mean.mean_given(54.5, 54.6) == pytest.approx(posterior.mean().value, abs=1e-9)


def test_too_few_intervals_that_cover_are_told():
    def of(hits):
        cover, miss = pv.Estimate(1.0, 0.5, 1.5), pv.Estimate(2.0, 1.5, 2.5)
        return repetitions.Repeated(1.0, (10,), ((cover,) * hits + (miss,) * (100 - hits),))

    assert repetitions.coverage(of(95)) == ("95 of 100 (95%)", "95 % is claimed: as claimed")
    assert "FEWER" in repetitions.coverage(of(80))[1]


def test_growth_is_the_exponent():
    assert repetitions.growth([1, 10, 100], [3, 300, 30_000]) == pytest.approx(2)


def test_errors_of_repetitions():
    found = repetitions.Repeated(1.0, (100, 400), ((0.8, 1.2), (0.9, 1.1)))
    assert found.exponent() == pytest.approx(-0.5)
    assert found.most_error(400) == pytest.approx(0.1)


def test_convergence_of_few_repetitions():
    findings = experiments("convergence").run(repetitions=6, sizes=(100, 300))
    assert len(findings.figures) == 6
    assert all(line.agrees for line in findings.lines if line.exact is not None)


def test_every_test_that_backs_a_cell_is_there():
    named = [feature.test for feature in table.FEATURES]
    for test in named:
        path, *names = test.split("::")
        inside = ast.parse((table.ROOT / path).read_text(encoding="utf-8"))
        for name in names:
            (inside,) = (node for node in inside.body if getattr(node, "name", None) == name)
    assert all(len(table.cells(tool)) == len(named) for tool in table.TOOLS)


def test_a_cell_is_yes_only_if_every_case_of_its_test_passes():
    printed = "PASSED a.py::one\nPASSED a.py::two[1]\nFAILED a.py::two[2] - assert 1 == 2\nSKIPPED [1] a.py:3: no\n"
    tests = ["a.py::one", "a.py::two", "a.py::three"]
    assert [*table.verdicts(tests, printed).values()] == ["yes", "no", "no"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["convergence", "leakwatch", "scalability_variables", "scalability_program", "scalability_leakwatch", "table_3"],
)
def test_experiments_meet_every_exact_value(name):
    findings = experiments(name).run()
    assert not findings.missed
    assert not [line for line in findings.lines if "FEWER" in line.note]
