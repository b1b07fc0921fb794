"""Programs that remember earlier calls: never exact unless that changes nothing, and left as they were."""

import functools
import itertools
import types
from collections import Counter, defaultdict, deque

import numpy as np
import pytest

import privug as pv
from privug.errors import LiftingWarning
from privug.program.lifting import apply
from privug.program.reachable import MOST_OBJECTS, Memory, reached
from privug.program.tracing import trace

SEEN = {}
COUNT = 0
LOG = []
CACHE = {}
QUEUE = deque(maxlen=3)
TOTALS = np.zeros(2)
LOADED = None
MADE = itertools.count()
MODULE = types.ModuleType("helpers")
MODULE.count = 0


class Meter:
    calls = 0

    def __init__(self):
        self.count = 0
        self.log = []

    def counted(self, a):
        self.count += 1
        return a + self.count

    def counted_by_class(self, a):
        Meter.calls += 1
        return a + Meter.calls

    def logged(self, a):
        self.log.append(a)
        self.last = a
        return a * 2


class Slotted:
    __slots__ = ("count",)

    def __init__(self):
        self.count = 0

    def counted(self, a):
        self.count += 1
        return a + self.count


def seen(a):
    SEEN[a] = 1
    return len(SEEN)


def counted(a):
    global COUNT
    COUNT += 1
    return a + COUNT


def new_global(a):
    global NEVER_SET_BEFORE
    NEVER_SET_BEFORE = globals().get("NEVER_SET_BEFORE", 0) + 1
    return a + NEVER_SET_BEFORE


def by_default(a, calls=[]):  # noqa: B006
    calls.append(a)
    return a + len(calls)


def by_module(a):
    MODULE.count += 1
    return a + MODULE.count


def by_function_attribute(a):
    by_function_attribute.calls = getattr(by_function_attribute, "calls", 0) + 1
    return a + by_function_attribute.calls


def by_array(a):
    TOTALS[0] += 1
    return a + int(TOTALS[0])


def by_queue(a):
    QUEUE.append(a)
    return sum(QUEUE)


def by_iterator(a):
    return a + next(MADE)


def seldom(a):
    if a == 70:
        SEEN["calls"] = SEEN.get("calls", 0) + 1
        return SEEN["calls"]
    return 0


def around():
    count = 0

    def by_closure(a):
        nonlocal count
        count += 1
        return a + count

    return by_closure


REMEMBERING = {
    program.__qualname__: program
    for program in (
        seen, counted, new_global, by_default, by_module, by_function_attribute, by_array, by_queue, around(),
        Meter().counted, Meter().counted_by_class, Slotted().counted, seldom,
    )
}  # fmt: skip


def attack_on(program, most=99):
    return pv.Attack(program, {"a": pv.DiscreteUniform(0, most)}, "a")


@pytest.mark.parametrize("program", REMEMBERING.values(), ids=REMEMBERING)
def test_programs_that_remember_earlier_calls_are_not_functions(program):
    memory = Memory(program)
    attack = attack_on(program)
    with pytest.raises(pv.UnsuitableEngine, match=r"not a function of its inputs: for \d+ it answered"):
        attack.run(engine="exact")
    assert not memory.has_changed()
    # Each sample is what a first call gives, in a process that has just started.
    first = {}
    for a in range(100):
        first[a] = program(a)
        memory.restore()
    with pytest.warns(pv.LiftingWarning, match="depend on earlier calls"):
        result = attack.run(samples=1000, seed=1)
    pairs = list(zip(result.joint.secret.batch.values(), result.joint.output.batch.values(), strict=True))
    assert result.engine == "sample"
    assert "not a function of its inputs" in result.diagnostics.chosen_because
    assert all(first[a] == output for a, output in pairs)
    assert not memory.has_changed()


def test_what_cannot_be_put_back_is_not_a_function_either():
    with (
        pytest.warns(pv.LiftingWarning, match="tracing it gave wrong values"),
        pytest.raises(pv.UnsuitableEngine, match="not a function of its inputs"),
    ):
        attack_on(by_iterator).run(engine="exact")


@functools.lru_cache
def cached(a):
    return str(a % 3)


def cached_by_hand(a):
    if a not in CACHE:
        CACHE[a] = str(a % 3)
    return CACHE[a]


def loaded_when_needed(a):
    global LOADED
    if LOADED is None:
        LOADED = {k: str(k % 3) for k in range(9)}
    return LOADED[a]


def logged_text(a):
    LOG.append(a)
    return str(a % 3)


@pytest.mark.parametrize("program", [cached, cached_by_hand, loaded_when_needed, logged_text])
def test_caches_and_logs_that_change_no_output_are_fine(program):
    result = attack_on(program, 8).run()
    assert result.engine == "exact (finite)"
    # Nine values in three groups of three: log2(3) bit.
    assert float(pv.leakage.mutual_information(result.joint)) == pytest.approx(np.log2(3), abs=1e-12)
    sampled = attack_on(program, 8).run(engine="sample", samples=500, seed=1)
    assert sampled.prediction.distribution().keys() == {"0", "1", "2"}
    assert (LOG, CACHE, LOADED) == ([], {}, None)


def logged(a):
    LOG.append(a)
    return a + 1


def tallied(a):
    CACHE["last"] = a
    SEEN.setdefault("all", []).append(a * 2)
    return a + 1


def fails_midway(a):
    LOG.append(a)
    CACHE["before"] = a
    return str(a) + f"{a:.1f}"


def counted_and_logged(a):
    global COUNT
    COUNT = COUNT + 1
    LOG.append((COUNT, a))
    return a + 1


METER = Meter()


@pytest.mark.parametrize("program", [logged, tallied, fails_midway, counted_and_logged, METER.logged])
@pytest.mark.parametrize("prior", [pv.Uniform(0, 1), pv.DiscreteUniform(0, 5)], ids=["continuous", "discrete"])
def test_tracing_leaves_nothing_behind(program, prior):
    pv.Attack(program, {"a": prior}, "a").run(samples=200, seed=1)
    trace(program, [prior], {})
    assert (LOG, CACHE, SEEN, COUNT, METER.log, METER.count) == ([], {}, {}, 0, [], 0)
    assert not hasattr(METER, "last")


@pytest.mark.parametrize("program", [logged, METER.logged])
def test_programs_that_only_write_are_traced(program):
    assert apply(program, [pv.Uniform(0, 1)]).lifting.tier == "traced"


def test_tracing_notices_what_outputs_depend_on():
    meter = Meter()
    assert apply(meter.counted, [pv.Uniform(0, 1)]).lifting.reason == "its output depends on earlier calls"
    assert meter.count == 0


def test_arguments_that_all_calls_share_are_left_alone():
    class Config:
        def __init__(self):
            self.uses = 0

    config = Config()

    def program(a, config):
        config.uses += 1
        config.last = a
        return a * config.uses

    attack = pv.Attack(program, {"a": pv.DiscreteUniform(1, 3), "config": config}, "a")
    with pytest.raises(pv.UnsuitableEngine, match="not a function"):
        attack.run(engine="exact")
    assert vars(config) == {"uses": 0}


def test_containers_of_all_kinds_are_put_back():
    held = {
        "list": [1, [2]],
        "set": {1},
        "counter": Counter("aab"),
        "default": defaultdict(list, a=[1]),
        "queue": deque([1], maxlen=2),
        "bytes": bytearray(b"ab"),
        "array": np.arange(3.0),
    }
    expected = {key: repr(value) for key, value in held.items()}

    def change():
        held["list"][1].append(3)
        held["set"].add(2)
        held["counter"].update("b")
        held["default"]["b"].append(1)
        held["queue"].extend([4, 5])
        held["bytes"][0] = 0
        held["array"][1] = 7
        held["new"] = 1

    memory = Memory(change)
    assert not memory.has_changed()
    change()
    assert memory.has_changed()
    memory.restore()
    assert {key: repr(value) for key, value in held.items()} == expected


def test_memory_does_not_depend_on_the_workers(monkeypatch):
    monkeypatch.setattr("privug.runtime.tasks.SECONDS_WORTH_A_FORK", 0.0)
    monkeypatch.setattr("privug.runtime.tasks.may_fork", lambda: True)  # though polars may be imported

    def outputs(workers):
        with pv.limited(workers=workers), pytest.warns(pv.LiftingWarning):
            return attack_on(counted).run(samples=10_000, seed=1, engine="sample").joint.output.batch.values()

    assert outputs(1) == outputs(2)


DATA = list(range(500_000))
ROWS = [(k, [k]) for k in range(20_000)]
EMBEDDING = np.zeros((2000, 2000))


def test_large_data_is_neither_walked_through_nor_copied():
    def program(a):
        place = int(f"{a}")  # called, not traced
        return DATA[place] + ROWS[place][0] + int(EMBEDDING[place, place])

    assert len(reached(program).own) <= MOST_OBJECTS
    assert not Memory(program).has_changed()
    result = attack_on(program).run(engine="exact")
    assert float(pv.leakage.mutual_information(result.joint)) == pytest.approx(np.log2(100), abs=1e-12)


RUNNING = [0]


def remainder_of_all(a):
    RUNNING[0] += a
    return str(RUNNING[0] % 3)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_memory_of_few_states_is_noticed_in_every_block(seed):
    """After a block the memory may be back where it was, by chance: calls by themselves tell."""
    attack = pv.Attack(remainder_of_all, {"a": pv.DiscreteUniform(0, 2)}, "a")
    with pytest.warns(LiftingWarning, match="depend on earlier calls"):
        result = attack.run(engine="sample", samples=2000, seed=seed)
    secrets, outputs = result._answer.quantities[0].values(), result._answer.quantities[1].values()
    assert [str(secret) for secret in secrets] == outputs
