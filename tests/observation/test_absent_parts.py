"""An output that lacks what was observed disagrees with the observation: that is an answer, not an error."""

import math
from itertools import product

import numpy as np
import pytest

import privug as pv

LOW, HIGH = 0, 7


def suppressed(x):
    """Small groups are left out, as statistics offices do."""
    table = {"all": int(str(x))}
    if x > 2:
        table["large"] = x
    return table


def of_any_length(x):
    return [int(str(x))] * x


def of_any_kind(x):
    return {"large": x if x > 4 else ("few" if x > 2 else None)}


def single(x):
    return int(str(x)) + 0 * hash(x)


def weights(program, agrees):
    """Return the posterior by Bayes' rule over all inputs, from how likely each plain output makes the observation."""
    found = {x: agrees(program(x)) for x in range(LOW, HIGH + 1)}
    total = sum(found.values())
    return {x: weight / total for x, weight in found.items() if weight}


def normal(value, sd):
    return lambda seen: math.exp(-((seen - value) ** 2) / (2 * sd**2))


def number(value):
    return isinstance(value, int | float)


CASES = {
    "equals": (suppressed, {"large": 4}, lambda o: o.get("large") == 4),
    "between": (suppressed, {"large": pv.between(-math.inf, 5)}, lambda o: "large" in o and o["large"] <= 5),
    "endless": (suppressed, {"large": pv.between(3, math.inf)}, lambda o: "large" in o),
    "noisy": (suppressed, {"large": pv.noisy(3, sd=1)}, lambda o: "large" in o and normal(3, 1)(o["large"])),
    "such_that": (suppressed, {"large": pv.such_that(lambda n: n % 2 == 0)}, lambda o: o.get("large", 1) % 2 == 0),
    "nested": (lambda x: [suppressed(x)], [{"large": pv.near(5, within=1)}], lambda o: 4 <= o[0]["all"] <= 6),
    "length": (of_any_length, [pv.between(0, 9)] * 3, lambda o: len(o) == 3),
    "unseen": (of_any_length, [None, None], lambda o: len(o) == 2),
    "kind": (of_any_kind, {"large": pv.between(0, 5)}, lambda o: number(o["large"]) and o["large"] <= 5),
    "seen": (of_any_kind, {"large": pv.noisy(6, sd=1)}, lambda o: number(o["large"]) and normal(6, 1)(o["large"])),
    "text": (of_any_kind, {"large": "few"}, lambda o: o["large"] == "few"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("case", "engine"),
    [*product(CASES, ["auto", "exact", "sample"]), *product(["noisy", "length"], ["rare"])],
)
def test_outputs_that_lack_an_observed_part_disagree(case, engine):
    program, observe, agrees = CASES[case]
    attack = pv.Attack(program, {"x": pv.DiscreteUniform(LOW, HIGH)}, "x")
    found = attack.run(observe, engine=engine, samples=2_000, seed=1).posterior.distribution()
    expected = weights(program, agrees)
    assert set(found) <= set(expected)
    for value, share in expected.items():
        if engine in ("auto", "exact"):
            assert float(found[value]) == pytest.approx(share, abs=1e-12)
        elif share > 0.01:
            assert share in found[value].widened(2)


@pytest.mark.parametrize("program", [single, lambda x: x + 1], ids=["python", "traced"])
@pytest.mark.parametrize("observe", [[1], [pv.between(0, 9)], [1, 2]])
def test_a_single_number_is_no_list(program, observe):
    attack = pv.Attack(program, {"x": pv.DiscreteUniform(LOW, HIGH)}, "x")
    with pytest.raises(pv.ImpossibleObservation):
        attack.run(observe)


@pytest.mark.parametrize("engine", ["auto", "exact", "sample", "rare"])
def test_a_predicate_without_a_verdict_is_told_with_the_input(engine):
    attack = pv.Attack(single, {"x": pv.DiscreteUniform(LOW, HIGH)}, "x")
    with pytest.raises(pv.ProgramError, match="must return True or False"):
        attack.run(pv.such_that(lambda output: "yes"), engine=engine)


def test_an_observed_array_is_compared_with_lists_of_any_length():
    attack = pv.Attack(of_any_length, {"x": pv.DiscreteUniform(LOW, HIGH)}, "x")
    assert set(attack.run(pv.equals(np.array([2, 2]))).posterior.distribution()) == {2}
