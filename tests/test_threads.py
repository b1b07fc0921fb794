"""Runs in threads: what a run needs is its own, so that runs side by side give what they give one after the other."""

import functools
import random
import sys
import threading
import warnings

import numpy as np
import pytest

import privug as pv
from privug import settings
from privug.runtime import tasks
from privug.runtime.critical import critical_section, quietly
from privug.runtime.processes import run_forked
from privug.runtime.tasks import run_tasks

THREADS = 8
DOUBLER = "import sys, json\nfor l in sys.stdin: print(2 * json.loads(l)['x'] + 1, flush=True)"
doubler = pv.External([sys.executable, "-c", DOUBLER])


def side_by_side(*jobs):
    """Return what each job returns, each run in a thread of its own, all started together."""
    found, failed = [None] * len(jobs), []
    together = threading.Barrier(len(jobs))

    def work(position):
        try:
            together.wait(60)
            found[position] = jobs[position]()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(position,)) for position in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not failed, failed
    return found


@pytest.fixture
def forking(monkeypatch):
    """Fork for the smallest piece of work."""
    monkeypatch.setattr(tasks, "SECONDS_WORTH_A_FORK", 0.0)
    monkeypatch.setattr(tasks, "may_fork", lambda: True)  # though another test may have imported polars


def labelled(number):
    def program(x):
        str(x)
        return number

    return program


def traced(x, y):
    return x + y if x > y else 2 * y


def dice(x):
    str(x)
    return x + random.randrange(6) + 10 * int(np.random.randint(3))


def noisy(x):
    str(x)
    return x + pv.sample(pv.Normal(0, sd=1))


def counted(x):
    total = 0
    for k in range(x):
        total += k * k
    return total


PAIR = {"x": pv.Normal(0, sd=1), "y": pv.Uniform(0, 1)}
FEW = {"x": pv.DiscreteUniform(0, 9)}


def run(program, prior, seen=None, limits=None, **options):
    """Return the bits of a run: its samples and weights, or its exact numbers."""
    with pv.limited(workers=2, progress=False, **(limits or {})):
        result = pv.Attack(program, prior, secret="x").run(observe=seen, seed=3, **options)
    if result.engine.startswith("exact"):
        return [(value, p.value) for value, p in result.posterior.distribution().items()]
    arrays = [column.array.tolist() for batch in result._answer.quantities for column in batch.columns]
    weights = result._answer.log_weights
    return arrays, None if weights is None else weights.tolist(), result.lifting.tier


JOBS = {
    "traced": functools.partial(run, traced, PAIR, pv.near(1, within=0.1), engine="sample", samples=4000),
    "weighted": functools.partial(run, traced, PAIR, pv.noisy(1, sd=0.5), engine="sample", samples=2000),
    "native": functools.partial(run, counted, FEW, limits={"native": True}, engine="sample", samples=40_000),
    "python": functools.partial(run, labelled(200), FEW, engine="sample", samples=2000),
    "random": functools.partial(run, dice, FEW, engine="sample", samples=2000),
    "noisy": functools.partial(run, noisy, FEW, pv.between(3, 5), engine="sample", samples=300),
    "external": functools.partial(run, doubler, FEW, engine="sample", samples=1000),
    "exact": functools.partial(run, traced, {"x": pv.DiscreteUniform(0, 30), "y": pv.Binomial(9, 0.5)}, pv.equals(8)),
    "exact by calls": functools.partial(run, lambda x: str(x // 2), FEW, pv.equals("3"), engine="exact"),
    "explained": lambda: str(pv.explain(dice, **FEW)) + str(pv.explain(traced, **PAIR)),
}


LONG_JOBS = {
    "rare": functools.partial(run, traced, PAIR, pv.between(4, np.inf), engine="rare", samples=200),
    "rare by calls": functools.partial(run, noisy, FEW, pv.between(9, np.inf), engine="rare", samples=100),
}


@pytest.mark.parametrize("jobs", [JOBS, pytest.param({**JOBS, **LONG_JOBS}, marks=pytest.mark.slow)], ids=len)
def test_runs_side_by_side_give_the_bits_of_runs_one_after_the_other(forking, jobs):
    before = random.getstate(), np.random.get_state()[1].tolist()
    alone = {name: job() for name, job in jobs.items()}
    assert alone["native"][2] == "native"
    names = list(jobs)

    def half_of_them(first):
        chosen = (names + names)[first : first + len(names) // 2]
        return {name: jobs[name]() for name in chosen}

    found = side_by_side(*(functools.partial(half_of_them, k * len(names) // THREADS) for k in range(THREADS)))
    for bits in found:
        for name, seen in bits.items():
            assert seen == alone[name], name
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


def averaged(x, y):
    return (x + y) / 2


CHAINS = {
    name: functools.partial(run, averaged, PAIR, pv.noisy(seen, sd=0.3), engine=name, samples=500)
    for name, seen in (("pymc:nuts", 0.5), ("numpyro", 1))
}


@pytest.mark.slow
def test_chains_side_by_side_give_the_bits_of_chains_one_after_the_other():
    """Two threads for each engine, so that engines run beside themselves and beside each other."""
    pytest.importorskip("pymc")
    pytest.importorskip("numpyro")
    alone = {name: job() for name, job in CHAINS.items()}
    names = [*CHAINS, *CHAINS]
    found = side_by_side(*(CHAINS[name] for name in names))
    for name, bits in zip(names, found, strict=True):
        assert bits == alone[name], name


def test_threads_that_fork_run_their_own_programs(forking):
    def outputs(number):
        attack = pv.Attack(labelled(number), FEW, secret="x")
        with pv.limited(workers=2):
            return set(attack.run(engine="sample", samples=3000).prediction.distribution())

    numbers = [100 * k for k in range(1, THREADS + 1)]
    assert side_by_side(*(functools.partial(outputs, k) for k in numbers)) == [{number} for number in numbers]


def test_threads_may_share_one_attack(forking):
    attack = pv.Attack(dice, FEW, secret="x")

    def bits():
        return attack.run(engine="sample", samples=1000, seed=5).posterior.distribution()

    alone = pv.Attack(dice, FEW, secret="x").run(engine="sample", samples=1000, seed=5).posterior.distribution()
    assert side_by_side(*[bits] * THREADS) == [alone] * THREADS


def test_limits_are_those_of_the_thread_that_set_them():
    inside, outside = threading.Event(), threading.Event()
    default = settings.current().workers

    def limiting():
        with pv.limited(workers=7):
            inside.set()
            assert outside.wait(60)
            return settings.current().workers

    def looking():
        assert inside.wait(60)
        found = settings.current().workers
        outside.set()
        return found

    assert side_by_side(limiting, looking) == [7, default]
    assert settings.current().workers == default


def test_limits_reach_the_workers_of_a_run():
    def budget(task):
        return settings.current().memory_budget

    for opaque in (False, True):
        with pv.limited(workers=2, memory_budget=12345):
            assert list(run_tasks(range(6), budget, opaque=opaque, bytes_per_task=1)) == [12345] * 6
    with pv.limited(memory_budget=12345):
        assert list(run_forked(budget, range(3), 2)) == [12345] * 3


def test_what_is_configured_holds_in_every_thread_and_inside_limits():
    before = settings.current().memory_budget
    try:
        with pv.limited(memory_budget=1 << 20):
            assert pv.configure(memory_budget=1 << 21).memory_budget == 1 << 21  # the latest word counts
            assert side_by_side(lambda: settings.current().memory_budget) == [1 << 21]
        assert settings.current().memory_budget == 1 << 21
    finally:
        pv.configure(memory_budget=before)


def test_nothing_is_forked_while_another_thread_holds_what_a_worker_needs():
    """A worker would wait for ever for a lock whose holder it does not have."""
    stop = threading.Event()

    def holding():
        while not stop.is_set():
            with critical_section():
                np.random.random(1000)

    def drawing(task):
        with critical_section():
            np.random.seed(task)
            return float(np.random.random())

    thread = threading.Thread(target=holding)
    thread.start()
    try:
        for _ in range(5):
            found = list(run_forked(drawing, range(6), 2))
            assert found == [np.random.RandomState(task).random_sample() for task in range(6)]
    finally:
        stop.set()
        thread.join()


def test_a_worker_does_not_wait_for_an_answer_that_another_thread_is_computing(forking):
    """Cached properties of Python 3.11 lock all objects of a class while one is computed."""
    computing, done = threading.Event(), threading.Event()
    attack = pv.Attack(labelled(1), FEW, secret="x")
    slow, quick = attack.run(engine="sample", samples=500), attack.run(engine="sample", samples=500, seed=1)

    def slowly(*arguments, **options):
        computing.set()
        done.wait(60)
        raise pv.InferenceError("given up")

    slow._prepared.before = slowly
    slow.observation = pv.equals(1)

    def refused():
        with pytest.raises(pv.InferenceError):
            _ = slow.joint

    thread = threading.Thread(target=refused)
    thread.start()
    try:
        assert computing.wait(60)
        assert list(run_forked(lambda task: len(quick.joint.secret.batch), range(2), 2)) == [500, 500]
    finally:
        done.set()
        thread.join()


def test_filters_of_warnings_are_as_they_were():
    before = list(warnings.filters)

    def often():
        for _ in range(300):
            with quietly():
                warnings.warn("nobody hears this", stacklevel=1)

    side_by_side(*[often] * THREADS)
    assert list(warnings.filters) == before
