"""Programs made by a factory: other libraries' objects, OpenDP's among them."""

import math
import pickle
import random
import secrets

import pytest

import privug as pv
from privug import mechanisms as m

made = []


def coarse_total():
    made.append(1)
    return lambda data: 10 * round(sum(data) / 10)


def test_it_is_made_once_in_a_process_and_never_sent():
    made.clear()
    program = m.from_factory(coarse_total)
    assert not made
    assert program([12, 30]) == 40
    assert program([12, 50]) == 60
    assert len(made) == 1
    copy = pickle.loads(pickle.dumps(program.program))
    assert copy([12, 30]) == 40
    assert len(made) == 2


def test_prior_names_its_parameters():
    program = m.from_factory(lambda: lambda a, b: a + b, parameters=["a", "b"])
    prior = {"b": pv.DiscreteUniform(0, 1), "a": 10}
    result = pv.Attack(program, prior, "b", observe=pv.equals(11)).run(samples=100, seed=1)
    assert result.posterior.mean().value == 1
    assert result.lifting.tier == "python"


@pytest.mark.parametrize("noise", [random.random, lambda: secrets.randbelow(10) / 10])
def test_hidden_randomness_is_never_taken_for_exact(noise):
    program = m.from_factory(lambda: lambda data: data + noise())
    result = pv.Attack(program, {"data": pv.DiscreteUniform(0, 3)}, "data").run(samples=300, seed=1)
    assert result.engine == "sample"
    own = pv.Attack(lambda x: len(str(x)) + secrets.randbelow(1000), {"x": pv.DiscreteUniform(0, 3)}, "x")
    assert own.run(samples=300, seed=1).engine == "sample"
    with pytest.raises(pv.UnsuitableEngine, match="random numbers of its own"):
        own.run(engine="exact")


def test_promises():
    assert m.from_factory(coarse_total).guarantee.is_empty
    promise = m.Guarantee(epsilon=2)
    assert m.from_factory(coarse_total, guarantee=promise).guarantee is promise
    assert (
        m.from_factory(coarse_total, guarantee=lambda program: m.Guarantee(epsilon=program([12]))).guarantee.epsilon
        == 10
    )


def test_bad_arguments():
    for call, words in (
        (lambda: m.from_factory(3), "a function that makes the program"),
        (lambda: m.from_factory(coarse_total, parameters=[]), "parameters must be names"),
        (lambda: m.from_factory(coarse_total, guarantee=1.0), "guarantee must be a Guarantee"),
        (lambda: m.from_factory(lambda: 3)([1]), "must return something to call, not 3"),
    ):
        with pytest.raises(pv.ArgumentError, match=words):
            call()


def test_opendp_releases_a_mean_of_known_size_without_noise():
    dp = pytest.importorskip("opendp.prelude")

    def mean_of_five(contributions):
        def make():
            dp.enable_features("contrib")
            domain = dp.vector_domain(dp.atom_domain(bounds=(0.0, 100.0), nan=False), size=5)
            mean = (domain, dp.symmetric_distance()) >> dp.t.then_mean()
            return dp.binary_search_chain(lambda scale: mean >> dp.m.then_laplace(scale), contributions, 1.0)

        return m.from_factory(make, guarantee=lambda measurement: m.Guarantee(epsilon=measurement.map(contributions)))

    neighbours = [([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 4.0, 90.0])]
    trap = mean_of_five(1)
    assert trap.guarantee.epsilon == pytest.approx(1.0)
    assert trap([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(3.0, abs=1e-9)
    found = m.audit(trap, neighbours, samples=600)  # OpenDP's noise has no seed: 200 were too few one time in twenty
    assert found.broken
    assert found.measured.value > math.log(10)
    assert not m.audit(mean_of_five(2), neighbours, samples=200).broken
