"""Engines by name, what they need, and the choice among them."""

import importlib.util
import sys

import numpy as np
import pytest

import privug as pv
from privug import interruption, progress
from privug.errors import NotConverged
from privug.inference import engines, sampling

PAIR = {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=2)}


def curved(x, y):
    return np.exp(x) + y * y


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(pv.ArgumentError, match="'auto', 'exact', 'sample', 'rare', 'pymc', 'numpyro'"):
        engines.choose("nuts")
    with pytest.raises(pv.ArgumentError, match="only 'pymc' and 'numpyro' have samplers"):
        engines.choose("rare:nuts")
    with pytest.raises(pv.ArgumentError):
        engines.choose(None)


@pytest.mark.parametrize(("name", "known"), [("pymc:foo", "'pymc:nutpie'"), ("numpyro:foo", "'numpyro:nuts'")])
def test_unknown_samplers_are_refused_before_their_library_is_imported(name, known, monkeypatch):
    monkeypatch.setattr(engines, "loaded", lambda name: pytest.fail(f"{name} was imported"))
    with pytest.raises(pv.ArgumentError, match=known):
        pv.Attack(curved, PAIR, "x").run(engine=name)


@pytest.mark.parametrize("name", ["pymc", "numpyro"])
def test_what_is_missing_is_named(name, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda library: None)
    with pytest.raises(pv.UnsuitableEngine, match=rf"pip install 'privug\[{name}\]'"):
        pv.Attack(curved, PAIR, "x").run(engine=name)


def test_importing_privug_loads_no_other_library():
    loaded = {"pymc", "numpyro", "jax", "arviz"} & set(sys.modules)
    if not loaded:
        engines.choose("rare")
    assert not ({"pymc", "numpyro", "jax", "arviz"} & set(sys.modules)) - loaded


def test_a_wrong_sampler_is_refused():
    pytest.importorskip("numpyro")
    with pytest.raises(pv.ArgumentError, match="'numpyro:gibbs'"):
        pv.Attack(curved, PAIR, "x").run(pv.near(6, within=1), engine="numpyro:gibbs")


def test_auto_is_exact_where_it_can_be():
    result = pv.Attack(lambda x, y: x + y, PAIR, "x").run(pv.equals(1.0))
    assert result.engine == "exact (gaussian)"
    assert result.diagnostics.chosen_because == "the answer can be computed without sampling"


def test_auto_samples_where_draws_from_the_prior_are_worth_enough():
    with pv.limited(exact_seconds=0):
        result = pv.Attack(curved, PAIR, "x").run(pv.near(6, within=1), samples=1000)
    assert result.engine == "sample"
    assert "draws from the prior are worth 1,000 samples" in result.diagnostics.chosen_because
    assert "engine chosen   'sample' because" in str(result)


def test_auto_without_an_observation_samples():
    with pv.limited(exact_seconds=0):
        result = pv.Attack(curved, PAIR, "x").run(samples=1000)
    assert result.engine == "sample"
    assert "nothing was observed" in result.diagnostics.chosen_because


def test_auto_searches_for_what_is_rare():
    attack = pv.Attack(curved, {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}, "x")
    with pv.limited(exact_seconds=0):
        result = attack.run(pv.between(150, np.inf), samples=1000, seed=2)
    assert result.engine == "rare"
    assert "draws from the prior are worth only" in result.diagnostics.chosen_because
    # Nearly all of it is x > log 150.
    assert float(result.posterior.mean()) == pytest.approx(5.2, abs=0.1)


def test_auto_never_shows_what_did_not_converge(monkeypatch):
    def disagreeing(*_, **__):
        raise NotConverged("the chains do not agree")

    monkeypatch.setattr(engines, "loaded", lambda name: type("Module", (), {"infer": staticmethod(disagreeing)}))
    attack = pv.Attack(curved, PAIR, "x")
    with pytest.raises(pv.InferenceError):
        attack.run(pv.near(1e4, within=1), samples=1000, budget=20_000)


def test_a_pilot_run_gives_up_early(monkeypatch):
    drawn = []
    original = sampling.Sampler._round
    monkeypatch.setattr(
        sampling.Sampler,
        "_round",
        lambda self, number, samples, meter: drawn.append(samples) or original(self, number, samples, meter),
    )
    question = pv.Attack(curved, PAIR, "x").question
    with pytest.raises(sampling.TooRare, match="worth only 0 samples"):
        sampling.draw(question, pv.near(1e6, within=1), samples=1000, seed=0, abandon=True)
    assert sum(drawn) == sampling.LARGEST_PILOT


def test_a_few_heavy_weights_are_refused():
    attack = pv.Attack(lambda xs: xs, {"xs": pv.Array(pv.Normal(0, sd=1), 12)}, lambda xs: xs[0])
    with pytest.raises(pv.InferenceError):
        attack.run(pv.noisy(1.5, sd=0.35), engine="sample", samples=150, budget=20_000)


def test_dependent_samples_do_not_become_the_joint():
    table = pv.Records(1 + pv.Bernoulli(0.5), lambda i: pv.Row(age=pv.Normal(50, sd=5)))
    attack = pv.Attack(lambda records: max(r.age for r in records), {"records": table}, lambda records: records[0].age)
    result = attack.run(pv.between(60, 90), engine="rare", samples=500)
    assert result.posterior.groups is not None
    assert result.joint.secret.groups is None
    assert len(result.joint.secret.batch) >= 10_000


MANY = {"xs": pv.Array(pv.Normal(0, sd=1), 25)}


@pytest.mark.parametrize(
    ("program", "seen", "first"),
    [
        (lambda xs: sum(xs), pv.noisy(40, sd=0.1), "numpyro"),
        (lambda xs: sum(x > 2 for x in xs), pv.equals(20), "rare"),  # walls that gradients do not lead over
        (lambda xs: sum(xs) > 30, pv.equals(True), "rare"),
    ],
)
def test_an_engine_that_cannot_lead_to_the_observation_is_not_tried_first(program, seen, first, monkeypatch):
    monkeypatch.setattr(engines._Elsewhere, "is_installed", True)
    question = pv.Attack(program, MANY, secret=lambda xs: xs[0]).question
    order = list(engines._searching(question, seen, 0, 100))
    assert order[0] == first
    assert order.index("rare") <= 1  # after one engine that follows gradients the other one fares no better
    assert sorted(order) == ["numpyro", "pymc", "rare"]


def test_auto_tells_what_it_tries_and_what_came_of_it(monkeypatch, capsys):
    tried = []

    def refusing(name):
        def infer(*arguments, **options):
            tried.append(name)
            if name == "rare":
                return sampling.draw(arguments[0], None, **options)  # stands for an answer
            raise pv.NotConverged("the chains do not agree; raise samples=")

        return type("module", (), {"infer": staticmethod(infer)})

    monkeypatch.setattr(engines._Elsewhere, "is_installed", True)
    monkeypatch.setattr(engines, "loaded", refusing)
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
    attack = pv.Attack(lambda xs: sum(xs) ** 2, MANY, secret=lambda xs: xs[0])
    with pv.limited(progress=True):
        result = attack.run(observe=pv.noisy(900, sd=5), samples=200, seed=1)
    assert tried == ["numpyro", "rare"]
    assert "'numpyro' gave up after 0 s: the chains do not agree" in result.diagnostics.chosen_because
    said = capsys.readouterr().err
    assert "auto: now 'numpyro', because" in said
    assert "auto: now 'rare', because" in said


def test_time_that_is_up_is_told_with_what_was_tried(monkeypatch):
    def waiting(name):
        def infer(*arguments, **options):
            while True:
                interruption.check()

        return type("module", (), {"infer": staticmethod(infer)})

    def hopeless(*arguments, **options):
        raise sampling.TooRare("draws from the prior are worth nothing")

    monkeypatch.setattr(engines._Elsewhere, "is_installed", True)
    monkeypatch.setattr(engines, "loaded", waiting)
    monkeypatch.setattr(sampling, "draw", hopeless)
    attack = pv.Attack(lambda xs: sum(xs) ** 2, MANY, secret=lambda xs: xs[0])
    assert attack.lifting.tier == "traced"
    with pytest.raises(pv.OutOfTime) as refusal:
        attack.run(observe=pv.noisy(900, sd=5), samples=200, seed=1, seconds=4)
    for name in ("numpyro", "rare", "pymc"):
        assert f"'{name}' gave up after" in str(refusal.value)
