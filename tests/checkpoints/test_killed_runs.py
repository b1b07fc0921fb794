"""Runs that are killed go on from their checkpoints, to the same bits as if nothing had happened."""

import os
import random
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

import privug as pv
from checkpoints import long_runs
from privug.checkpoints import checkpoint

SOURCES = str(Path(pv.__file__).parents[1])


def started(name, path):
    """Start a run in a process of its own, forked from this one."""
    with warnings.catch_warnings(action="ignore"):  # JAX, if another test imported it, warns of every fork
        process = os.fork()
    if process == 0:
        try:
            checkpoint.SECONDS_BETWEEN = 0.0
            with pv.limited(workers=2, progress=False):
                long_runs.RUNS[name](path)
        finally:
            os._exit(0)
    return process


def killed_at(size, path, process):
    """Kill a process when its file has grown to a size; say whether it was still at work."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if path.exists() and path.stat().st_size >= size:
            os.kill(process, signal.SIGKILL)
            break
        if os.waitpid(process, os.WNOHANG)[0]:
            return False
        time.sleep(0.002)
    _, status = os.waitpid(process, 0)
    return os.WIFSIGNALED(status)


def test_a_run_killed_twice_ends_with_the_same_bits(tmp_path, monkeypatch):
    name = "called"
    monkeypatch.setattr(long_runs, "SCALE", 4)
    whole, path = tmp_path / "whole", tmp_path / "killed"
    with pv.limited(progress=False):
        expected = long_runs.RUNS[name](None)
        assert long_runs.RUNS[name](whole) == expected
        for share in (0.3, 0.7):
            assert killed_at(share * whole.stat().st_size, path, started(name, path))
        before = path.stat().st_size
        assert long_runs.RUNS[name](path) == expected
        assert path.stat().st_size > before
        assert long_runs.RUNS[name](path) == expected


def environment(seed):
    return {**os.environ, "PYTHONPATH": SOURCES, "PYTHONHASHSEED": str(seed)}


def command(name, *path):
    return [sys.executable, long_runs.__file__, name, *map(str, path)]


@pytest.mark.slow
@pytest.mark.parametrize("name", long_runs.RUNS)
def test_a_run_killed_at_ten_random_points_ends_with_the_same_bits(tmp_path, name):
    whole, path = tmp_path / "whole", tmp_path / "killed"

    def finished(*where):
        return subprocess.run(
            command(name, *where), capture_output=True, text=True, check=True, env=environment(0)
        ).stdout.strip()

    expected = finished()
    assert finished(whole) == expected
    rng = random.Random(name)
    size = whole.stat().st_size
    points = sorted(rng.uniform(0, 0.95) * size for _ in range(10))
    hits = 0
    for number, point in enumerate(points):
        process = subprocess.Popen(command(name, path), env=environment(number), stdout=subprocess.DEVNULL)
        hits += killed_at(point, path, process.pid)
        process.returncode = 0  # it was waited for
    assert hits >= 8  # a run may end before it is seen that the file has grown
    assert finished(path) == expected
    assert finished(path) == expected
