"""Why a policy is broken: the inputs, outputs and lines, against plain enumeration."""

import math

import pytest

import privug as pv

POLICY = pv.policy


def capped_total(x, y, z):
    total = x + y
    other = z + 1
    if total > 3:
        total = 3
    return total if other else 0


def attack():
    prior = {"x": pv.DiscreteUniform(0, 2), "y": pv.DiscreteUniform(0, 2), "z": pv.DiscreteUniform(0, 2)}
    return pv.Attack(capped_total, prior, "x")


def test_inputs_carry_what_outputs_tell_about_them():
    told = POLICY.explain(attack(), POLICY.max_belief(at_most=0.7))
    entropy = math.log2(9) - (1 * 0 + 2 * 1 + 3 * math.log2(3) + 3 * math.log2(3)) / 9
    given_x = (math.log2(3) + math.log2(3) + (math.log2(3) - 2 / 3)) / 3  # 2 and 3 and 3 for x = 2
    found = {one.name: one.information.value for one in told.carriers}
    assert found["x"] == found["y"] == pytest.approx(entropy - given_x, abs=1e-9)
    assert found["z"] == pytest.approx(0.0, abs=1e-12)


def test_dangerous_outputs_are_those_that_break_the_policy():
    told = POLICY.explain(attack(), POLICY.max_belief(at_most=0.6))
    # 0 gives x away, 3 leaves 1 or 2, the latter with probability 2/3; 1 and 2 leave one of two and of three.
    assert [one.output for one in told.outputs] == [0, 3]
    assert [one.excess for one in told.outputs] == pytest.approx([0.4, 2 / 3 - 0.6], abs=1e-12)
    assert told.danger == pytest.approx(4 / 9, abs=1e-12)


def test_lines_are_those_through_which_the_secret_goes():
    told = POLICY.explain(attack(), POLICY.max_belief(at_most=0.7))
    texts = [text for _, text in told.lines]
    assert "total = x + y" in texts
    assert not any("z + 1" in text for text in texts)


def test_the_repair_and_all_that_is_told_are_in_the_text():
    told = POLICY.explain(attack(), POLICY.max_belief(at_most=0.7))
    assert told.repair.verdict.holds
    text = str(told)
    for part in ("violated", "told by an output", "nothing", "0.1111", "total = x + y", "Smallest change"):
        assert part in text


def test_cells_of_tables_are_looked_at():
    prior = {"t": pv.Records(3, lambda i: pv.Row(ill=pv.Bernoulli(0.5), zip=pv.Choice(["a", "b"])))}
    question = pv.Attack(lambda t: sum(row.ill for row in t), prior, lambda t: t[0].ill)
    told = POLICY.explain(question, POLICY.belief(lambda ill: ill == 1, at_most=0.9))
    found = {one.name: one.information.value for one in told.carriers}
    # H(count) - H(count of two), of 1 3 3 1 and of 1 2 1
    information = (3 - 3 / 4 * math.log2(3)) - 1.5
    assert found["t[0].ill"] == pytest.approx(information, abs=1e-9)
    assert found["t[0].zip"] == pytest.approx(0.0, abs=1e-12)


def test_what_holds_has_no_dangerous_outputs():
    told = POLICY.explain(attack(), POLICY.max_belief(at_most=1.0))
    assert told.outputs == ()
    assert told.repair.repair == "none"


def test_a_prior_that_breaks_the_policy_is_told():
    told = POLICY.explain(attack(), POLICY.max_belief(at_most=0.2))
    assert told.repair is None
    assert any("the prior itself violates it" in note for note in told.notes)


def test_lines_of_programs_that_are_called_are_not_known():
    program = pv.Attack(lambda x: str(x // 2 + 0 * hash(x)), {"x": pv.DiscreteUniform(0, 4)}, "x")
    told = POLICY.explain(program, POLICY.max_belief(at_most=0.7))
    assert told.lines == ()
    assert any("lines" in note for note in told.notes)
    assert [one.output for one in told.outputs] == ["2"]
