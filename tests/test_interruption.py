"""Runs that are to stop: by the keyboard, because their time is up, because the program exits or its worker dies."""

import contextlib
import functools
import logging
import math
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import privug as pv
from privug import interruption
from privug.program import calls, lifting
from privug.program.tracing import evaluate_on, trace
from privug.runtime import processes, tasks
from privug.runtime.processes import run_forked

PARENT = os.getpid()
FEW = {"x": pv.DiscreteUniform(0, 9)}
MANY_SECONDS = 60  # far above what anything here takes, and far below for ever


def by_text(x):
    return int(str(x + 0 * hash(x))) * 2


def loops_in_workers(x):
    while os.getpid() != PARENT:
        pass
    return by_text(x)


def loops(x):
    while by_text(x) >= 0:
        pass


def exits(x):
    if x == int("7"):
        sys.exit("no more")
    return by_text(x)


@pytest.fixture
def forking(monkeypatch):
    monkeypatch.setattr(tasks, "SECONDS_WORTH_A_FORK", 0.0)
    monkeypatch.setattr(tasks, "may_fork", lambda: True)  # though another test may have imported polars


def interrupted_after(script: str, seconds: float) -> tuple[str, str]:
    """Run a script in a process group of its own, press Ctrl-C there once it is ready, and return what it says."""
    started = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        time.sleep(seconds)
        os.killpg(started.pid, signal.SIGINT)
        return started.communicate(timeout=MANY_SECONDS)
    finally:
        started.kill()
        started.wait()


SCRIPT = """
    import os, sys, threading, time
    import privug as pv
    from privug.runtime import tasks
    tasks.SECONDS_WORTH_A_FORK = 0.0
    PARENT = os.getpid()
    {program}
    print("ready", flush=True)
    try:
        with pv.limited(workers=3, progress=False):
            attack = pv.Attack(program, {{"x": pv.DiscreteUniform(0, 9)}}, secret="x")
            result = attack.run(samples={samples}, engine="sample")
        print(*result.diagnostics.remarks, result.diagnostics.accepted)
    except KeyboardInterrupt:
        print("interrupted")
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        print("no process is left")
"""


@pytest.mark.parametrize("seconds", [0.3, 1.0])
def test_a_program_that_loops_in_workers_is_interrupted(seconds):
    program = "def program(x):\n        while os.getpid() != PARENT: pass\n        return len(str(x)) + 0 * hash(x)"
    said, errors = interrupted_after(SCRIPT.format(program=program, samples=2000), seconds)
    # The first block is drawn in the process itself, and is enough to be kept.
    kept = ["interrupted: the samples drawn so far were kept 256", "no process is left"]
    assert said.splitlines() in (kept, ["interrupted", "no process is left"])
    assert "Traceback" not in errors


def test_a_consumer_that_stops_leaves_no_process():
    results = run_forked(lambda task: os.getpid(), range(100), 2)
    worker = next(results)
    results.close()
    with pytest.raises(OSError, match="No such process"):
        os.kill(worker, 0)


def test_what_cannot_be_sent_is_computed_here():
    class Local:
        def __init__(self, number):
            self.number = number

        def __eq__(self, other):
            return self.number == other.number

        def __hash__(self):
            return hash(self.number)

    assert [found.number for found in run_forked(Local, range(20), 2)] == list(range(20))


class Stubborn(Exception):
    def __init__(self, one, two):
        super().__init__("it cannot be made again from its message")


def test_what_a_task_raises_is_raised_here_whatever_it_is():
    def work(task):
        if task == 3:
            raise Stubborn(1, 2)
        raise_from = ValueError("because")
        if task == 1:
            raise KeyError("wrong") from raise_from
        return task

    results = run_forked(work, [0, 1], 2)
    assert next(results) == 0
    with pytest.raises(KeyError) as found:
        next(results)
    assert isinstance(found.value.__cause__, ValueError)
    with pytest.raises(Stubborn):
        list(run_forked(work, [0, 3], 2))


def test_a_task_is_done_again_if_its_worker_dies_and_refused_if_that_happens_twice(tmp_path):
    def dies_once(task):
        mark = tmp_path / str(task)
        if task == 2 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return task

    assert list(run_forked(dies_once, range(5), 2)) == [0, 1, 2, 3, 4]
    results = run_forked(lambda task: os.kill(os.getpid(), signal.SIGKILL) if task == 2 else task, range(5), 2)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(pv.ProgramError, match=r"ended the process that ran it \(signal 9, SIGKILL\), twice"):
        next(results)


def test_a_program_that_exits_has_failed_on_that_input(forking):
    for workers in (1, 2):
        attack = pv.Attack(exits, FEW, secret="x")
        with pv.limited(workers=workers), pytest.raises(pv.ProgramError, match=r"SystemExit: no more\n.*x = 7"):
            attack.run(engine="sample", samples=3000)
    excluding = pv.Attack(exits, FEW, secret="x", on_error="exclude").run(engine="sample", samples=3000, seed=1)
    assert 7 not in excluding.posterior.distribution()
    assert abs(excluding.diagnostics.excluded / excluding.diagnostics.draws - 0.1) < 0.05

    @pv.batched
    def exits_in_batches(x):
        if (x == 7).any():
            sys.exit(1)
        return x

    with pytest.raises(pv.ProgramError, match="SystemExit"):
        pv.Attack(exits_in_batches, {"x": pv.DiscreteUniform(0, 99)}, secret="x").run(engine="sample", samples=9000)
    with pytest.raises(pv.ArgumentError, match="the predicate failed with SystemExit"):
        pv.Attack(by_text, FEW, secret="x").run(seed=1).posterior.probability(exits)


IN_A_POOL = """
import multiprocessing
import privug as pv
from privug.runtime import tasks

tasks.SECONDS_WORTH_A_FORK = 0.0

def by_text(x):
    return len(str(x)) + 0 * hash(x) + x

def counted(seed):
    attack = pv.Attack(by_text, {"x": pv.DiscreteUniform(5, 14)}, secret="x")
    result = attack.run(engine="sample", samples=2000, seed=seed)
    assert result.lifting.tier == "python"
    return {value: p.value for value, p in result.prediction.distribution().items()}

expected = [counted(seed) for seed in range(3)]
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(counted, range(3)) == expected
print("equal")
"""


def test_runs_inside_of_a_pool_of_processes(tmp_path):
    """In a process of its own: JAX, which other tests load, has threads that a fork leaves behind."""
    script = tmp_path / "script.py"
    script.write_text(IN_A_POOL, encoding="utf-8")
    outcome = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=MANY_SECONDS)
    assert outcome.stdout.strip() == "equal", outcome.stderr


def within(seconds, **options):
    started = time.monotonic()
    try:
        return pv.Attack(**options.pop("attack")).run(seconds=seconds, **options)
    finally:
        assert time.monotonic() - started < MANY_SECONDS


LOOPING = {"program": loops, "prior": FEW, "secret": "x"}
IN_WORKERS = {"program": loops_in_workers, "prior": FEW, "secret": "x"}


@pytest.mark.parametrize("engine", ["auto", "exact", "sample", "rare", "numpyro", "pymc"])
def test_a_program_that_never_ends_is_refused_when_the_time_is_up(engine):
    with pytest.raises(pv.OutOfTime, match="seconds"):
        within(0.5, attack=LOOPING, engine=engine, observe=pv.equals(4), samples=500)


def test_what_must_not_be_left_half_done_is_finished_when_the_time_is_up():
    finished = []

    def half_done():
        start = time.monotonic()
        while time.monotonic() - start < 0.2:
            pass
        finished.append(True)

    def work():
        interruption.undisturbed(half_done)
        while True:
            pass

    with pytest.raises(interruption.TimeIsUp), interruption.within(0.02):
        work()
    assert finished


@pytest.mark.slow  # its deadline is missed on a busy machine
def test_forks_leave_no_lock_behind_in_a_thread_whose_time_is_up(forking):
    """Logging takes its lock for a fork, and gives it back in the thread that forks."""

    def run():
        for seconds in (0.002, 0.008, 0.032):
            with contextlib.suppress(interruption.TimeIsUp), interruption.within(seconds):
                while True:
                    list(run_forked(by_text, range(2), 2))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(MANY_SECONDS)
    assert not thread.is_alive()
    assert logging._lock.acquire(timeout=MANY_SECONDS)
    logging._lock.release()


def test_threads_that_start_when_the_time_is_up_are_not_waited_for_forever():
    """CPython takes a thread that is just being started for the one that starts it, and ends it instead."""

    def often():
        for attempt in range(1500):
            with contextlib.suppress(interruption.TimeIsUp), interruption.within(1e-6 * (attempt % 300)):
                for _ in range(3):
                    interruption.thread_started(int)

    thread = threading.Thread(target=often, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()


def test_the_time_of_a_run_holds_in_any_thread_and_for_any_worker(forking):
    found = []

    def run():
        with pv.limited(workers=2):
            for attack in (LOOPING, IN_WORKERS):
                with pytest.raises(pv.OutOfTime) as refusal:
                    within(1, attack=attack, engine="rare", observe=pv.equals(4), samples=50)
                found.append(refusal.value)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(MANY_SECONDS)
    assert len(found) == 2


def test_what_there_is_when_the_time_is_up_is_kept_with_a_remark(forking):
    with pv.limited(workers=2):
        result = within(
            3, attack={"program": slow_in_workers, "prior": FEW, "secret": "x"}, samples=10**6, engine="sample"
        )
    assert result.diagnostics.remarks == ("time was up after 3 s: the samples drawn so far were kept",)
    assert 256 <= result.diagnostics.accepted < 10**6
    assert 4.5 in result.posterior.mean().widened(3)


def slow_in_workers(x):
    time.sleep(0.0005)
    return by_text(x)


def test_array_code_in_threads_stops_in_time():
    prior = {"xs": pv.Array(pv.Normal(0, sd=1), 200)}
    attack = {"program": lambda xs: xs.max(), "prior": prior, "secret": lambda xs: xs[0]}
    with pv.limited(workers=2):
        result = within(2, attack=attack, engine="sample", samples=10**7)
    assert "time was up after 2 s" in result.diagnostics.remarks[0]
    assert 0.0 in result.posterior.mean().widened(3)
    with pv.limited(workers=2), pytest.raises(pv.OutOfTime):
        within(0.5, attack=attack, engine="rare", observe=pv.between(7, math.inf), samples=10**5)


def test_a_precision_that_takes_too_long_gives_the_latest_result():
    attack = {"program": lambda x, y: x + y, "prior": {"x": pv.Uniform(0, 1), "y": pv.Uniform(0, 1)}, "secret": "x"}
    measure = functools.partial(lambda result: result.posterior.mean())
    options = {"engine": "sample", "observe": pv.between(1, 2), "precision": 1e-6, "measure": measure}
    result = within(3, attack=attack, **options)
    assert any("to either side" in remark for remark in result.diagnostics.remarks)
    assert 2 / 3 in result.posterior.mean().widened(3)


def test_time_enough_changes_nothing():
    attack = pv.Attack(by_text, FEW, secret="x")
    free = attack.run(engine="sample", samples=500, seed=2)
    bounded = attack.run(engine="sample", samples=500, seed=2, seconds=1000)
    assert bounded.posterior.distribution() == free.posterior.distribution()
    assert bounded.diagnostics.remarks == free.diagnostics.remarks


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf, "60", True, [1]])
def test_seconds_must_be_a_positive_number(seconds):
    with pytest.raises(pv.ArgumentError, match="seconds must be a positive number, such as 60, not"):
        pv.Attack(by_text, FEW, secret="x").run(seconds=seconds)


def test_an_interruption_never_comes_late():
    """However the end of a block and of its time meet, nothing is raised after the block."""
    for k in range(200):
        try:
            with interruption.within(0.002):
                stop = time.monotonic() + 0.0015 + k * 5e-6
                while time.monotonic() < stop:
                    pass
        except interruption.TimeIsUp:
            pass
    for _ in range(1000):
        time.sleep(0)


def test_the_time_of_a_part_does_not_end_the_whole():
    with interruption.within(1000):
        with pytest.raises(interruption.TimeIsUp), interruption.within(0.05):
            loops(1)
        assert not interruption.is_time_up()
        interruption.check()


def test_answers_that_an_interrupted_run_has_not_read_are_nobodys():
    slow = """
import sys, json, time
for line in sys.stdin:
    x = json.loads(line)["x"]
    time.sleep(2.0 * (x > 5))
    print(x, flush=True)
"""
    program = pv.External([sys.executable, "-c", slow])
    assert program(x=0) == 0
    with pytest.raises(interruption.TimeIsUp), interruption.within(0.3):
        program.call_many([{"x": 1}, {"x": 9}, {"x": 2}])
    assert program.call_many([{"x": 3}, {"x": 4}]) == [3, 4]


def lingers_on_seven(x):
    x = int(str(x + 0 * hash(x)))
    if x == 7:
        time.sleep(0.6)
    return x


def never_returns_on_seven(x):
    x = int(str(x + 0 * hash(x)))
    while x == 7:
        time.sleep(0.01)
    return x


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(processes, "PATIENCE", 0.1)


@pytest.mark.parametrize("forked", [False, True])
def test_the_user_is_told_on_which_input_a_program_has_not_returned(forked, impatient, monkeypatch, capsys):
    monkeypatch.setattr(lifting, "rehearse", lambda *_: None)
    monkeypatch.setattr("privug.runtime.processes.POLL_SECONDS", 0.05)
    with pv.limited(progress=True, native=False):
        node = pv.Attack(lingers_on_seven, FEW, secret="x").question.case().output.node
        capsys.readouterr()

        def called(x):
            return evaluate_on([node], {FEW["x"].node: np.array([x])}, 1)[0].tolist()

        assert list(run_forked(called, [3, 7], 1) if forked else map(called, [3, 7])) == [[3], [7]]
    assert capsys.readouterr().err == "the program has not returned yet on the input x = 7\n"


@pytest.mark.parametrize("rehearsed", [True, False])
def test_a_run_out_of_time_names_the_input_on_which_the_program_had_not_returned(rehearsed, monkeypatch):
    monkeypatch.setattr(calls, "may_fork", lambda: rehearsed)
    attack = pv.Attack(never_returns_on_seven, FEW, secret="x")
    with pv.limited(native=False, progress=False), pytest.raises(pv.OutOfTime, match="on the input x = 7"):
        attack.run(seconds=2, samples=100)


def test_the_user_is_told_of_a_program_that_does_not_return_while_it_is_traced(impatient, capsys):
    def waits(x):
        time.sleep(0.3)
        return x + 1

    with pv.limited(progress=True):
        trace(waits, [pv.DiscreteUniform(0, 9)], {})
    assert capsys.readouterr().err == "the program has not returned yet while it is traced\n"


class Stopped(BaseException):
    """What a user's own alarm raises."""


@pytest.mark.parametrize("on_error", ["raise", "exclude"])
def test_what_stops_a_plain_call_that_a_trace_is_compared_with_is_no_failure_of_it(on_error):
    def program(x):
        if not isinstance(x, pv.RandomVariable):
            raise Stopped
        return x + 1

    with pytest.raises(Stopped):
        pv.Attack(program, FEW, secret="x", on_error=on_error).run(samples=10)


def test_an_alarm_that_stops_a_program_while_it_is_traced_is_heard():
    def waits(x):
        time.sleep(MANY_SECONDS)
        return x + 1

    def stop(*_):
        raise Stopped

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(Stopped):
            trace(waits, [pv.DiscreteUniform(0, 9)], {})
    finally:
        signal.signal(signal.SIGALRM, before)


def test_what_stops_a_program_that_is_called_stops_the_run():
    def program(x):
        if int(str(x + 0 * hash(x))) == 7:
            raise Stopped
        return x

    with pytest.raises(Stopped), pv.limited(native=False):
        pv.Attack(program, FEW, secret="x", on_error="exclude").run(samples=100)


def test_a_program_that_ends_its_process_does_not_end_this_one():
    """In a process without JAX, whose threads would not survive a fork."""
    script = """
        import ctypes, os
        import privug as pv

        def crashes(x, others):
            return ctypes.string_at(0) if int(str(x + 0 * hash(x))) > 6 else x

        def leaves(x, others):
            return os._exit(4) if int(str(x + 0 * hash(x))) == 3 else x + sum(others)

        for program in (crashes, leaves):
            for cells in (1, 300):
                prior = {"x": pv.DiscreteUniform(0, 9), "others": [pv.Bernoulli(0.5) for _ in range(cells)]}
                try:
                    pv.Attack(program, prior, secret="x").run(samples=100)
                except pv.ProgramError as error:
                    print(str(error).splitlines()[:2])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=MANY_SECONDS
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert len(said) == 4
    for line, (how, given) in zip(
        said, [("signal 11, SIGSEGV", "[789]")] * 2 + [("exit code 4", "3")] * 2, strict=True
    ):
        assert re.fullmatch(rf"\['the program ended the process .*{how}.* on the input x = {given}, others.*", line)
