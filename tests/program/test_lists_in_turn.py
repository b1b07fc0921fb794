"""Lists to which every branch of a loop's body appends once: their length is fixed, and they are traced."""

import pytest

import privug as pv
from privug.program.traced.masks import holds, in_turn


def sparse_vector(queries):
    noisy_threshold = 2 + pv.sample(pv.DiscreteLaplace(1))
    found, answers = 0, []
    for query in queries:
        noisy = query + pv.sample(pv.DiscreteLaplace(2))
        if found >= 1:
            answers.append("-")
        elif noisy >= noisy_threshold:
            answers.append("T")
            found += 1
        else:
            answers.append("F")
    return answers


def two_lists(x, y):
    low, high = [], []
    for value in (x, y):
        if value < 2:
            low.append(value)
            high.append(None)
        else:
            low.append(None)
            high.append(value * 10)
    return low, high


def of_random_length(x, y):
    return [value for value in (x, y) if value > 1]


def twice_in_a_branch(x, y):
    answers = []
    for value in (x, y):
        answers.append(value)
        if value > 1:
            answers.append(0)
    return answers


INPUTS = {"x": pv.DiscreteUniform(0, 3), "y": pv.DiscreteUniform(0, 3)}


def test_the_sparse_vector_technique_is_traced():
    prior = {"queries": [pv.DiscreteUniform(0, 4) for _ in range(3)]}
    attack = pv.Attack(sparse_vector, prior=prior, secret=lambda queries: queries[0])
    result = attack.run(samples=2000, seed=1)
    assert attack.lifting.tier == "traced"
    for answers in result.prediction.distribution():
        assert len(answers) == 3
        assert "".join(answers).rstrip("-").strip("F") in ("", "T")


def test_lists_of_alternatives_give_what_plain_calls_give():
    assert pv.explain(two_lists, **INPUTS).tier == "traced"
    result = pv.Attack(two_lists, prior=INPUTS, secret="x").run(engine="exact")
    expected = {(tuple(low), tuple(high)) for low, high in (two_lists(x, y) for x in range(4) for y in range(4))}
    assert set(result.prediction.distribution()) == expected


@pytest.mark.parametrize("program", [of_random_length, twice_in_a_branch])
def test_lists_of_random_length_are_still_refused(program):
    with pv.limited(native=False):
        assert "a list of random length" in str(pv.explain(program, **INPUTS))


def test_items_that_may_be_there_together_are_not_one():
    above = INPUTS["x"] > 1
    assert in_turn([(1, above), (2, above)]) is None
    assert in_turn([(1, above)]) is None
    assert len(in_turn([(1, above), (2, ~above), (3, True)])) == 2
    assert holds(above | ~above)
