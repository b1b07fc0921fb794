"""Progress: silent at first, plain lines away from a terminal, a bar on one."""

import io

import pytest

import privug as pv
from privug import interruption, progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])

    def advance(seconds):
        now[0] += seconds

    return advance


def run(stream, monkeypatch, clock, steps):
    monkeypatch.setattr(progress.sys, "stderr", stream)
    with pv.limited(progress=True), progress.ProgressMeter("sampling", 100) as meter:
        for seconds, done in steps:
            clock(seconds)
            meter.update(done, f"{done} kept")
    return stream.getvalue()


def test_nothing_in_the_first_second(monkeypatch, clock):
    assert run(io.StringIO(), monkeypatch, clock, [(0.3, 10), (0.3, 20), (0.3, 30)]) == ""


def test_plain_lines_away_from_a_terminal(monkeypatch, clock):
    shown = run(io.StringIO(), monkeypatch, clock, [(2, 10), (2, 20), (2, 30), (8, 60)])
    assert shown.splitlines() == [
        "sampling: 10% 10 kept; about 18 s more",
        "sampling: 60% 60 kept; about 9 s more",
    ]


def test_progress_never_goes_back(monkeypatch, clock):
    shown = run(io.StringIO(), monkeypatch, clock, [(2, 40), (10, 30), (10, 10), (10, 50), (10, 45)])
    assert [line.split()[1] for line in shown.splitlines()] == ["40%", "40%", "40%", "50%", "50%"]


def test_of_meters_inside_of_each_other_the_outermost_counts(monkeypatch, clock):
    monkeypatch.setattr(progress.sys, "stderr", stream := io.StringIO())
    with pv.limited(progress=True), progress.ProgressMeter("tightening", 10) as outer:
        for done in (2, 5):
            with progress.ProgressMeter("sampling", 100) as inner:
                for drawn in (50, 100):
                    clock(10)
                    inner.update(drawn, f"{drawn} kept")
            clock(10)
            outer.update(done)
    shares = [line.split()[1].rstrip(";") for line in stream.getvalue().splitlines()]
    assert shares == ["0%", "0%", "20%", "20%", "20%", "50%"]
    assert "sampling: 100 kept" in stream.getvalue()


def test_a_run_of_bounded_time_says_how_long_it_may_take(monkeypatch, clock):
    with interruption.within(60):
        shown = run(io.StringIO(), monkeypatch, clock, [(2, 1)])
    assert shown == "sampling: 1% 1 kept; at most 58 s more\n"


def test_a_bar_on_a_terminal(monkeypatch, clock):
    shown = run(Terminal(), monkeypatch, clock, [(2, 10), (2, 50)])
    assert "sampling" in shown
    assert "50 kept" in shown


def test_progress_can_be_switched_off(monkeypatch, clock):
    monkeypatch.setattr(progress.sys, "stderr", stream := io.StringIO())
    with pv.limited(progress=False), progress.ProgressMeter("sampling", 100) as meter:
        clock(60)
        meter.update(50)
    assert stream.getvalue() == ""
