"""The attack's own questions answer yes or no, or are refused before anything is run."""

import pytest

import privug as pv


def attack(question, calls=None):
    def program(x):
        if calls is not None:
            calls.append(x)
        return x + 1

    return pv.Attack(program, {"x": pv.DiscreteUniform(0, 5)}, "x", questions={"is x large": question})


def no_return(x):
    x > 3  # noqa: B015


def returns_now_and_then(x):
    if x > 3:
        return True


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (
            no_return,
            "'is x large' must return True or False, but it returned None for the secret .; is a return missing",
        ),
        (returns_now_and_then, "returned None for the secret [0-3]; is a return missing"),
        (lambda x: "yes", "returned 'yes' for the secret .; compare it, such as secret > 18"),
    ],
)
def test_a_question_that_is_none_is_refused_by_run(question, message):
    with pytest.raises(pv.QuestionError, match=message):
        attack(question).run()


def test_a_question_of_two_arguments_is_refused_at_once():
    with pytest.raises(pv.QuestionError, match="'is x large' must take one argument"):
        attack(lambda x, y: x > y)


def test_a_question_that_fails_is_told_by_its_name():
    result = attack(lambda x: 1 / x > 0.5).run()
    with pytest.raises(pv.QuestionError, match="'is x large': the predicate failed with ZeroDivisionError"):
        result.summary()


def test_a_question_need_not_make_sense_where_facts_forbid_it():
    known = pv.Attack(
        lambda x: x,
        {"x": pv.DiscreteUniform(0, 5)},
        "x",
        questions={"is x one": lambda x: 1 / x == 1},
        assume=lambda x: x > 0,
    ).run()
    assert "is 20 % sure that is x one" in known.summary()
