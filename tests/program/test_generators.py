"""Programs that draw random numbers, from wherever they hold a generator: never exact, and following the seed."""

import functools
import os
import random
import secrets
import types
import uuid

import numpy as np
import pytest

import privug as pv
from privug.program.reachable import Generators, entropy_source
from privug.runtime import tasks

GENERATOR = np.random.default_rng(3)
STATE = np.random.RandomState(3)
PYTHON = random.Random(3)
SYSTEM = random.SystemRandom()
BOX = {"deep": [(np.random.default_rng(3),)]}
DRAW = np.random.default_rng(3).integers
MODULE = types.ModuleType("helpers")
MODULE.RNG = np.random.default_rng(3)


class Holder:
    shared = random.Random(3)

    def __init__(self):
        self.rng = np.random.default_rng(3)

    def by_attribute(self, a):
        return a + int(self.rng.integers(0, 2))

    def by_class(self, a):
        return a + self.shared.randint(0, 1)

    def __call__(self, a):
        return self.by_attribute(a)


class Slotted:
    __slots__ = ("rng",)

    def __init__(self):
        self.rng = np.random.RandomState(3)

    def coin(self, a):
        return a + int(self.rng.randint(0, 2))


def by_generator(a):
    return a + GENERATOR.integers(0, 2)


def by_state(a):
    return a + int(STATE.randint(0, 2))


def by_random(a):
    return a + PYTHON.randint(0, 1)


def by_container(a):
    return a + int(BOX["deep"][0][0].integers(0, 2))


def by_bound_method(a):
    return a + int(DRAW(0, 2))


def by_module(a):
    return a + int(MODULE.RNG.integers(0, 2))


def by_default(a, rng=np.random.default_rng(3)):  # noqa: B008
    return a + int(rng.integers(0, 2))


def by_keyword(a, *, rng=np.random.default_rng(3)):  # noqa: B008
    return a + int(rng.integers(0, 2))


def by_helper(a):
    return by_state(a)


def by_function_attribute(a):
    return a + by_function_attribute.rng.randint(0, 1)


by_function_attribute.rng = random.Random(3)


def around():
    rng = np.random.default_rng(3)

    def by_closure(a):
        return a + int(rng.integers(0, 2))

    return by_closure


def by_argument(rng, a):
    return a + int(rng.integers(0, 2))


HELD = {
    program.__name__: program
    for program in (
        by_generator, by_state, by_random, by_container, by_bound_method, by_module, by_default, by_keyword, by_helper,
        by_function_attribute, around(), Holder().by_attribute, Holder().by_class, Slotted().coin,
    )
} | {"partial": functools.partial(by_argument, np.random.default_rng(3)), "callable": Holder()}  # fmt: skip


def attack_on(program, most=1):
    return pv.Attack(program, {"a": pv.DiscreteUniform(0, most)}, "a")


@pytest.mark.parametrize("program", HELD.values(), ids=HELD)
def test_generators_are_found_wherever_they_are_held(program):
    attack = attack_on(program)
    generators = Generators(program)
    before = generators.states()
    with pytest.raises(pv.UnsuitableEngine, match="draws random numbers of its own"):
        attack.run(engine="exact")
    result = attack.run(samples=2000, seed=1)
    assert result.engine == "sample"
    assert attack.lifting.reason == "it draws random numbers of its own"
    # Outputs 0, 1, 2 have the probabilities 1/4, 1/2, 1/4: 1.5 bit, of which one is the coin's.
    information = pv.leakage.mutual_information(result.joint)
    assert information.low < 0.5 < information.high
    assert not generators.have_moved(before)
    outputs = result.joint.output.batch.values()
    assert attack.run(samples=2000, seed=1).joint.output.batch.values() == outputs
    assert attack.run(samples=2000, seed=2).joint.output.batch.values() != outputs


def local_import(a):
    import secrets as hidden

    return a + hidden.randbelow(2)


def local_name(a):
    from os import urandom

    return a + urandom(1)[0] % 2


def device(a):
    with open("/dev/urandom", "rb") as file:
        return a + file.read(1)[0] % 2


def seldom(a):
    return a + (secrets.randbelow(2) if a == 700 else 0)


def seldom_called(a):
    return a + (secrets.randbelow(2) if str(a) == "700" else 0)


SOURCE = types.SimpleNamespace(make=uuid.uuid4)


ENTROPY = {
    "secrets": lambda a: a + secrets.randbelow(2),
    "secrets.choice": lambda a: a + secrets.choice([0, 1]),
    "uuid4": lambda a: a + uuid.uuid4().int % 2,
    "SystemRandom": lambda a: a + SYSTEM.randint(0, 1),
    "a new SystemRandom": lambda a: a + random.SystemRandom().randint(0, 1),
    "urandom": lambda a: a + os.urandom(1)[0] % 2,
    "default_rng": lambda a: a + int(np.random.default_rng().integers(0, 2)),
    "RandomState": lambda a: a + int(np.random.RandomState().randint(0, 2)),
    "Random": lambda a: a + random.Random().randint(0, 1),
    "bit generator": lambda a: a + int(np.random.Generator(np.random.PCG64()).integers(0, 2)),
    "attribute": lambda a: a + SOURCE.make().int % 2,
    "local import": local_import,
    "local name": local_name,
    "device": device,
    "seldom": seldom,
    "seldom, called": seldom_called,
}


@pytest.mark.parametrize("program", ENTROPY.values(), ids=ENTROPY)
def test_randomness_of_the_operating_system_is_found_by_its_name(program):
    attack = attack_on(program)
    assert entropy_source(program) is not None
    with pytest.raises(pv.UnsuitableEngine, match="draws random numbers of its own"):
        attack.run(engine="exact")
    assert attack.lifting.tier == "python"
    assert attack.run(samples=200, seed=1).engine == "sample"


def test_generators_with_a_seed_inside_the_program_are_functions():
    def noisy(a):
        return a + int(np.random.default_rng(5).integers(0, 2)) + random.Random(str(a)).randint(0, 1)

    assert entropy_source(noisy) is None
    information = pv.leakage.mutual_information(attack_on(noisy, 3).run(engine="exact").joint)
    outputs = [noisy(a) for a in range(4)]
    shares = np.array([outputs.count(value) / 4 for value in set(outputs)])
    assert float(information) == pytest.approx(float(-(shares * np.log2(shares)).sum()), abs=1e-12)


@pytest.mark.parametrize("inside", [lambda a: a, str], ids=["traced", "called"])
def test_a_rarely_taken_random_branch_is_noticed(inside):
    def seldom(a):
        if a == 700:
            return inside(a + int(GENERATOR.integers(0, 2)))
        return inside(a)

    attack = attack_on(seldom, 999)
    with pytest.raises(pv.UnsuitableEngine, match="draws random numbers of its own"):
        attack.run(engine="exact")
    assert attack.run(samples=300, seed=1).engine == "sample"


def test_workers_do_not_repeat_each_others_draws(monkeypatch):
    monkeypatch.setattr(tasks, "SECONDS_WORTH_A_FORK", 0.0)
    monkeypatch.setattr(tasks, "may_fork", lambda: True)  # though another test may have imported polars

    def noise(a):
        return len(str(a)) + GENERATOR.random()

    def outputs(workers):
        with pv.limited(workers=workers):
            return attack_on(noise).run(samples=20_000, seed=1, engine="sample").joint.output.batch.values()

    one, two = outputs(1), outputs(2)
    assert one == two
    assert len(set(one)) == len(one)
    values = np.array(one) - 1.0
    # Independent uniform numbers: mean 1/2 within five standard errors, and neighbours uncorrelated.
    assert abs(values.mean() - 0.5) < 5 / np.sqrt(12 * len(values))
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 5 / np.sqrt(len(values))


def test_random_batched_programs_are_refused():
    noisy = pv.batched(lambda a: a + GENERATOR.integers(0, 2, size=len(a)))
    with pytest.raises(pv.ProgramError, match="batched program draws random numbers of its own"):
        attack_on(noisy).run(engine="exact")

    @pv.batched
    def seldom(a):
        return a + np.where(a == 700, GENERATOR.integers(0, 2, size=len(a)), 0) if (a == 700).any() else a

    with pytest.raises(pv.UnsuitableEngine, match=r"own|not a function"):
        attack_on(seldom, 999).run(engine="exact")


def test_staged_programs_are_looked_into():
    noisy = pv.mechanisms.randomized_response(by_container, truth=0.9, values=[0, 1, 2])
    with pytest.raises(pv.UnsuitableEngine, match="random numbers of its own"):
        attack_on(noisy).run(engine="exact")
