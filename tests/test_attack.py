"""Attack and Result: the contract, the report, and errors that say what to write instead."""

import functools

import numpy as np
import pytest

import privug as pv

PAIR = {"x": pv.DiscreteUniform(0, 4), "y": pv.DiscreteUniform(0, 4)}


def add(x, y):
    return x + y


def test_the_contract():
    attack = pv.Attack(add, prior=PAIR, secret="x")
    result = attack.run(observe=pv.equals(8), engine="sample", samples=500, seed=1)
    assert result.engine == "sample"
    assert float(result.posterior.mean()) == 4.0
    assert float(result.posterior.quantile(0.9)) == 4.0
    assert 2.0 in result.prior.mean().widened(2)
    assert 4.0 in result.prediction.mean().widened(2)
    assert result.diagnostics.acceptance_rate == pytest.approx(500 / result.diagnostics.draws)
    assert float(result.belief(lambda x, y: x * y).mean()) == 16.0
    assert float(result.belief(lambda x, output: output - x).mean()) == 4.0


def test_the_prior_is_independent_of_the_observation():
    attack = pv.Attack(add, prior=PAIR, secret="x")
    seen, unseen = attack.run(observe=pv.equals(8), samples=200, seed=1), attack.run(samples=10_000, seed=2)
    for result in (seen, unseen):
        assert 2.0 in result.prior.mean().widened(2)


def test_report_says_who_what_before_after_how_and_how_sure():
    attack = pv.Attack(
        add, prior=PAIR, secret="x", observe=pv.equals(7), name="curious", questions={"x is large": lambda x: x >= 3}
    )
    text = str(attack.run(engine="sample", samples=2000, seed=1))
    for part in ("curious", "the output is 7", "traced", "engine 'sample'", "2,000 samples kept", "before", "after"):
        assert part in text
    assert "becomes more than 99." in " ".join(text.split())
    text = " ".join(str(attack.run()).split())
    for part in (
        "engine 'exact (finite)'",
        "computed from exact inference (finite enumeration of 25 states)",
        "becomes 100 % sure (was 40 %) that x is large",
    ):
        assert part in text


def test_report_of_text_secrets_lists_values():
    attack = pv.Attack(lambda d: d == "ill", prior={"d": pv.Choice(["ill", "well"])}, secret="d")
    text = str(attack.run(observe=pv.equals(True), samples=300, seed=1))
    assert "P('ill')" in text
    assert "P('well')" in text


def test_report_as_html_is_escaped(tmp_path):
    attack = pv.Attack(add, prior=PAIR, secret="x", observe=pv.equals(7), name="<script>")
    result = attack.run(samples=200, seed=1)
    page = result.save(tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "&lt;script&gt;" in page
    assert "<script>" not in page
    assert "<table>" in result._repr_html_()
    assert "before" in result.save(tmp_path / "report.txt").read_text(encoding="utf-8")


def test_secret_may_be_a_name_several_names_or_a_function():
    for secret in ("x", ["x", "y"], lambda y: y, lambda x, y: (x, y), lambda x, y: {"sum": x + y}):
        attack = pv.Attack(add, prior=PAIR, secret=secret)
        assert len(attack.run(engine="sample", samples=50).posterior.batch) == 50
        assert len(attack.run().posterior.batch) in (5, 9, 25)


def test_programs_of_every_signature():
    def keyword_only(x, *, y):
        return x - y

    def with_default(x, y, scale=2):
        return (x + y) * scale

    def many(first, *rest, **named):
        return first + sum(rest) + named["extra"]

    prior = {"x": 1, "y": pv.Constant(2)}
    for program, expected in ((keyword_only, -1), (with_default, 6), (functools.partial(add), 3)):
        assert pv.Attack(program, prior, "x").run(samples=10).prediction.batch.values() == [expected]
    prior = {"first": 1, "rest": pv.Array(pv.Uniform(1, 1.0001), 2), "named": {"extra": 10}}
    outputs = pv.Attack(many, prior, "first").run(samples=10).prediction.batch.numbers()
    assert np.allclose(outputs, 13, rtol=1e-4)


def test_plain_inputs_stay_plain():
    def power(x, k):
        return sum(x for _ in range(k))

    assert pv.Attack(power, {"x": pv.Uniform(0, 1), "k": 3}, "x").lifting.tier == "traced"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pv.Attack(3, PAIR, "x"), "program must be an ordinary function"),
        (lambda: pv.Attack(add, [1, 2], "x"), "prior must be a dict"),
        (lambda: pv.Attack(add, {"x": 1, "z": 2}, "x"), "'z'.*not a parameter.*'x', 'y'"),
        (lambda: pv.Attack(add, {"x": 1}, "x"), "says nothing about.*'y'"),
        (lambda: pv.Attack(add, PAIR, "z"), "secret names 'z'"),
        (lambda: pv.Attack(add, PAIR, lambda z: z), "secret asks for 'z'"),
        (lambda: pv.Attack(add, PAIR, 3), "secret must be"),
        (lambda: pv.Attack(add, PAIR, []), "secret must be"),
        (lambda: pv.Attack(add, PAIR, "x", questions={"a": 3}), "questions"),
        (lambda: pv.Attack(add, PAIR, "x", on_error="ignore"), "on_error"),
        (lambda: pv.Attack(add, PAIR, "x", observe=3), r"pv\.equals\(3\)"),
        (lambda: pv.Attack(add, PAIR, "x").run(samples=0), "samples"),
        (lambda: pv.Attack(add, PAIR, "x").run(samples=1e4), "samples"),
        (lambda: pv.Attack(add, PAIR, "x").run(seed=-1), "seed"),
        (lambda: pv.Attack(add, PAIR, "x").run(budget=0), "budget"),
        (lambda: pv.Attack(add, PAIR, "x").run(engine="magic"), "engine must be one of"),
        (lambda: pv.Attack(add, PAIR, "x").run().belief(3), "function"),
        (lambda: pv.Attack(add, PAIR, "x").run().belief(lambda q: q), "query asks for 'q'"),
    ],
)
def test_wrong_questions(make, message):
    with pytest.raises(pv.ArgumentError, match=message):
        make()


def test_settings_refuse_nonsense():
    for wrong in ({"workers": 0}, {"memory_budget": -1}, {"workers": True}, {"workers": 1.5}):
        with pytest.raises(pv.ArgumentError):
            pv.configure(**wrong)


def test_an_attack_that_sees_something_else_shares_what_is_known_of_its_question():
    prior = {"x": pv.DiscreteUniform(0, 3), "y": pv.DiscreteUniform(0, 3)}
    attack = pv.Attack(lambda x, y: x + y, prior, "x", observe=pv.equals(3))
    changed = attack.replace(observe=pv.equals(0), name="none", questions={"x is 3": lambda x: x == 3})
    assert changed.question is attack.question
    assert changed.run().posterior.distribution()[0].value == 1
    assert attack.run().posterior.distribution()[0].value == 0.25
    for other in (attack.replace(), attack.replace(secret="y"), attack.replace(observe=None, on_error="exclude")):
        assert other.question is not attack.question


def test_an_attack_with_a_part_replaced_keeps_all_others():
    def halved(x, y):
        return (x + y) // 2

    prior = {"x": pv.DiscreteUniform(0, 3), "y": pv.DiscreteUniform(0, 3)}
    fact, claim = (lambda x, y: x > y), (lambda x: x == 3)
    options = {"observe": pv.equals(3), "questions": {"x is 3": claim}, "assume": fact, "on_error": "exclude"}
    attack = pv.Attack(lambda x, y: x + y, prior, "x", **options)
    for name, other in {"program": halved, "prior": {**prior, "x": pv.Constant(3)}, "secret": "y"}.items():
        changed, written = attack.replace(**{name: other}), {"program": attack.question.program, "prior": prior}
        anew = pv.Attack(**{**written, "secret": "x", **options, name: other})
        assert changed.question == anew.question
        assert (changed.name, changed.observe, changed.questions) == (anew.name, anew.observe, anew.questions)
    assert attack.replace(on_error="raise", assume=(), questions=None, observe=None).questions == {}
    assert attack.replace(name="mine").replace(program=halved).name == "mine"
    assert attack.replace(program=halved).name == "halved"
    # Of x > y with x + y = 3 there are (2, 1) and (3, 0).
    assert attack.replace().run().posterior.distribution()[3].value == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"facts": ()}, "facts is not an argument of Attack; give one of program, prior"),
        ({"on_error": "skip"}, "on_error must be 'raise' or 'exclude'"),
    ],
)
def test_a_part_that_an_attack_does_not_have_is_refused(changes, words):
    attack = pv.Attack(lambda x: x, {"x": pv.Bernoulli(0.5)}, "x")
    with pytest.raises(pv.ArgumentError, match=words):
        attack.replace(**changes)
