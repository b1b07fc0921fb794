"""The log of a monitor: whatever was handed out is in it, and whatever was changed in it shows."""

import itertools
import json
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
from privug.checkpoints.fingerprints import fingerprint
from privug.policy.monitoring.log import decoded, encoded, read

OFFSET = 3


def prior():
    return {"x": pv.DiscreteUniform(0, 99)}


def policy():
    return pv.policy.max_belief(at_most=0.1)


def is_small(x):
    return x < 50


def is_odd(x):
    """Say whether a number is odd."""
    return helper(x) == 1


def helper(x):
    return x % 2


def is_shifted(x):
    return x + OFFSET < 30


def itself(x):
    return x


QUERIES = [is_small, is_odd, is_shifted, itself]


def asked(path, **options):
    monitor = pv.policy.Monitor(prior(), "x", policy(), log=path, **options)
    for query in QUERIES:
        monitor.ask(query, truth={"x": 12})
    return monitor


def loaded(path, queries=QUERIES, **options):
    return pv.policy.Monitor.load(path, prior(), "x", policy(), queries=queries, **options)


def test_a_log_is_reloaded_to_the_same_belief(tmp_path):
    path = tmp_path / "monitor.log"
    with asked(path) as monitor:
        decisions = [(one.query, one.answered, one.value) for one in monitor.history]
        known = {x: p.value for x, p in monitor.belief.distribution().items()}
    assert decisions == [
        ("is_small", True, True),
        ("is_odd", True, False),
        ("is_shifted", True, True),
        ("itself", False, None),
    ]
    with loaded(path, [is_small, is_odd, is_shifted]) as again:
        assert [(one.query, one.answered, one.value) for one in again.history] == decisions
        assert {x: p.value for x, p in again.belief.distribution().items()} == known
        assert not again.ask(lambda x: x == 12, truth={"x": 12})
        assert len(again.history) == 5
    assert len(path.read_text().splitlines()) == 6


def test_answers_are_in_the_log_before_they_are_handed_out(tmp_path, monkeypatch):
    path = tmp_path / "monitor.log"
    monitor = asked(path)

    def failing(descriptor):
        raise OSError(28, "no space left")

    monkeypatch.setattr("os.fsync", failing)
    with pytest.raises(OSError, match="no space"):
        monitor.ask(lambda x: x % 3 == 0, truth={"x": 12})
    monkeypatch.undo()
    assert not monitor.ask(is_small, truth={"x": 12})
    assert "could not be written" in monitor.history[-1].reason
    monitor.close()
    with loaded(path) as again:
        assert len(again.history) == 5  # nothing is left of the answer that nobody got; the refusal is there


def test_the_log_has_numbers_and_no_answer_of_a_refusal(tmp_path):
    asked(tmp_path / "monitor.log").close()
    entries = [json.loads(line) for line in (tmp_path / "monitor.log").read_text().splitlines()]
    assert [entry["kind"] for entry in entries] == ["monitor", "answered", "answered", "answered", "refused"]
    assert [entry["verdict"]["worst"]["value"] for entry in entries[1:]] == pytest.approx([1 / 50, 1 / 25, 1 / 11, 1.0])
    assert "answer" not in entries[4]
    assert entries[1]["fingerprint"] == fingerprint(is_small)
    assert all(one["previous"] == before["hash"] for before, one in itertools.pairwise(entries))


def test_a_try_on_wrong_data_is_logged_and_changes_nothing(tmp_path):
    path = tmp_path / "monitor.log"
    with pv.policy.Monitor(prior(), "x", policy(), log=path) as monitor:
        with pytest.raises(pv.ArgumentError, match="impossible"):
            monitor.ask(is_small, truth={"x": 200})
        assert monitor.ask(is_small, truth={"x": 12})
    assert [entry["kind"] for entry in read(path)] == ["monitor", "failed", "answered"]
    with loaded(path) as again:
        assert [one.query for one in again.history] == ["is_small"]
    assert pv.policy.audit_log(path, prior(), "x", policy(), queries=QUERIES).derived == 2


def test_a_closed_monitor_stays_closed_and_tries_by_samples_are_counted(tmp_path):
    path, wide = tmp_path / "monitor.log", {"x": pv.DiscreteUniform(0, 1_000_000), "y": pv.Normal(0, sd=1)}

    def is_77(x, y):
        return str(x) == "77" or y > 99

    def first_digit(x, y):
        return int(str(x)[0]) > 4 or y > 99

    limit = pv.policy.max_belief(at_most=0.5)
    with pv.policy.Monitor(wide, "x", limit, log=path, samples=2_000, seed=1) as monitor:
        assert monitor.ask(first_digit, truth={"x": 77, "y": 0.0}).value is True
        assert not monitor.ask(is_77, truth={"x": 77, "y": 0.0})
    queries = [first_digit, is_77]
    with pv.policy.Monitor.load(path, wide, "x", limit, queries=queries, samples=2_000) as again:
        assert not again.ask(first_digit, truth={"x": 77, "y": 0.0})
        assert again._sampled == 2
    assert pv.policy.audit_log(path, wide, "x", limit, queries=queries)


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_torn_last_line_is_dropped(tmp_path, cut):
    path = tmp_path / "monitor.log"
    asked(path).close()
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    with loaded(path) as monitor:
        assert [one.query for one in monitor.history] == ["is_small", "is_odd", "is_shifted"]
        monitor.ask(itself, truth={"x": 12})
    assert path.read_bytes() == whole


def test_a_log_that_was_hardly_begun_is_begun_anew(tmp_path):
    path = tmp_path / "monitor.log"
    path.write_bytes(b'{"assume": "4de8fd97')
    with loaded(path) as monitor:
        assert monitor.history == []
        assert monitor.ask(is_small, truth={"x": 12})
    with loaded(path) as monitor:
        assert len(monitor.history) == 1


def changed_answer(lines):
    lines[2] = lines[2].replace('"answer": false', '"answer": true')


def dropped(lines):
    del lines[2]


def swapped(lines):
    lines[1], lines[2] = lines[2], lines[1]


def garbage(lines):
    lines[3] = "garbage"


@pytest.mark.parametrize("change", [changed_answer, dropped, swapped, garbage])
def test_a_log_that_was_changed_is_refused(tmp_path, change):
    path = tmp_path / "monitor.log"
    asked(path).close()
    lines = path.read_text().splitlines()
    change(lines)
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(pv.policy.LogError, match="was changed: line"):
        loaded(path)
    found = pv.policy.audit_log(path, prior(), "x", policy(), queries=QUERIES)
    assert not found
    assert "was changed" in str(found)


def test_the_log_of_another_question_is_refused(tmp_path):
    path = tmp_path / "monitor.log"
    asked(path).close()
    others = [
        ("prior", {"x": pv.DiscreteUniform(0, 98)}, "x", policy()),
        ("secret", prior(), lambda x: x // 2, policy()),
        ("policy", prior(), "x", pv.policy.max_belief(at_most=0.2)),
    ]
    for what, *question in others:
        with pytest.raises(pv.policy.LogError, match=f"of another {what}"):
            pv.policy.Monitor.load(path, *question, queries=QUERIES)
    with pytest.raises(pv.policy.LogError, match="collude"):
        loaded(path, colluding=False)
    with pytest.raises(pv.policy.LogError, match="of another assume"):
        loaded(path, assume=lambda x: x < 98)


def test_a_changed_or_missing_query_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "monitor.log"
    asked(path).close()
    with pytest.raises(pv.policy.LogError, match="'is_odd', which is not among"):
        loaded(path, [is_small, is_shifted])
    monkeypatch.setattr(sys.modules[__name__], "OFFSET", 4)
    with pytest.raises(pv.policy.LogError, match="'is_shifted', which has changed"):
        loaded(path)
    monkeypatch.undo()
    monkeypatch.setattr(sys.modules[__name__], "helper", lambda x: 1 - x % 2)
    with pytest.raises(pv.policy.LogError, match="'is_odd', which has changed"):
        loaded(path)


def test_two_monitors_do_not_write_to_one_log(tmp_path):
    path = tmp_path / "monitor.log"
    with asked(path), pytest.raises(pv.policy.LogError, match="in use"):
        loaded(path)
    with pytest.raises(pv.policy.LogError, match="exists already"):
        pv.policy.Monitor(prior(), "x", policy(), log=path)
    loaded(path).close()
    with pytest.raises(pv.policy.LogError, match="cannot be written"):
        loaded(tmp_path / "folder" / "none.log")
    assert "cannot be read" in str(pv.policy.audit_log(tmp_path / "none.log", prior(), "x", policy()))


def test_an_audit_takes_every_decision_again(tmp_path):
    path = tmp_path / "monitor.log"
    monitor = asked(path)
    head = monitor.head
    monitor.close()
    found = pv.policy.audit_log(path, prior(), "x", policy(), queries=QUERIES, head=head)
    assert found
    assert (found.entries, found.answered, found.derived) == (4, 3, 4)
    assert "all is well" in str(found)
    some = pv.policy.audit_log(path, prior(), "x", policy(), queries=QUERIES[:3])
    assert some
    assert some.derived == 3
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    cut = pv.policy.audit_log(path, prior(), "x", policy(), queries=QUERIES, head=head)
    assert not cut
    assert "not in the log any more" in str(cut)
    other = pv.policy.audit_log(path, prior(), "x", pv.policy.max_belief(at_most=0.2), queries=QUERIES)
    assert "another policy" in str(other)


def test_a_decision_that_should_not_have_been_taken_shows_in_an_audit(tmp_path, monkeypatch):
    path = tmp_path / "monitor.log"
    with monkeypatch.context() as patched:
        patched.setattr("privug.policy.monitoring.decisions.Decision.accepted", True)
        asked(path).close()
    lines = path.read_text().splitlines()
    assert '"kind": "answered"' in lines[4]
    assert '"status": "violated"' in lines[4]
    found = pv.policy.audit_log(path, prior(), "x", policy(), queries=QUERIES)
    assert "itself was answered though" in str(found)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        2.5,
        float("inf"),
        "text",
        [1, (2.0, "a")],
        {"a": 1, 2: [3]},
        frozenset({1, 2}),
        (),
        pv.Row(a=1, b="c"),
    ],
    ids=repr,
)
def test_answers_come_back_as_they_were(value):
    back = decoded(json.loads(json.dumps(encoded(value))))
    assert back == value
    assert type(back) is type(value)


def test_answers_that_cannot_be_logged(tmp_path):
    with pytest.raises(pv.ArgumentError, match="cannot be logged"):
        encoded(object())


def test_fingerprints_do_not_depend_on_the_process_nor_on_comments():
    code = (
        "import privug as pv; from privug.checkpoints.fingerprints import fingerprint as f\n"
        "print(f({'x': pv.Records(3, pv.Row(age=pv.Normal(40, sd=10), sex=pv.Choice(['f', 'm'])))}))\n"
        "print(f(pv.policy.max_belief(0.2) & pv.policy.belief(print, at_most=0.5)), f({'a', 'b', 'c'}))"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout
        for env in ({"PYTHONHASHSEED": "1", "PYTHONPATH": PATH}, {"PYTHONHASHSEED": "2", "PYTHONPATH": PATH})
    ]
    assert runs[0] == runs[1]
    one = lambda x: x + 1
    same = lambda x: x + 1
    assert fingerprint(one) == fingerprint(same)
    assert fingerprint(pv.Normal(0, sd=1)) != fingerprint(pv.Normal(0, sd=2))


PATH = str(Path(pv.__file__).parents[1])
TRUTH = 2741


def bit(k):
    return lambda x: (x // 2**k) % 2


BITS = {f"bit {k}": bit(k) for k in range(12)}


def monitor_of_bits(path):
    prior, policy = {"x": pv.DiscreteUniform(0, 4095)}, pv.policy.max_belief(at_most=1.0)
    return pv.policy.Monitor.load(path, prior, "x", policy, queries=BITS)


def ask_until_killed(path, pipe):
    """Print each answer as soon as there is one, in a process of its own."""
    try:
        monitor = monitor_of_bits(path)
        os.write(pipe, b"ready\n")
        for name, query in BITS.items():
            answer = monitor.ask(query, truth={"x": TRUTH}, name=name)
            os.write(pipe, f"{name} = {answer.value}\n".encode())
    finally:
        os._exit(0)


def killed_after(seconds, path):
    """Return what a process wrote before it was killed, so long after it was ready."""
    reading, writing = os.pipe()
    with warnings.catch_warnings(action="ignore"):  # JAX, if another test imported it, warns of every fork
        child = os.fork()
    if child == 0:
        ask_until_killed(path, writing)
    os.close(writing)
    with open(reading, encoding="utf-8") as lines:
        assert lines.readline() == "ready\n"
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        printed = lines.read().splitlines()
    os.waitpid(child, 0)
    return printed


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_any_time_the_log_has_what_was_handed_out(tmp_path):
    rng, seen = random.Random(7), set()
    for attempt in range(15):
        path = tmp_path / f"{attempt}.log"
        printed = killed_after(rng.uniform(0, 0.6), path)
        with monitor_of_bits(path) as monitor:
            known = [f"{one.query} = {one.value}" for one in monitor.history]
            assert known[: len(printed)] == printed
            assert len(known) - len(printed) <= 1  # killed after it was written, before it was handed out
            assert known == [f"bit {k} = {TRUTH // 2**k % 2}" for k in range(len(known))]
            share = monitor.belief.probability(lambda x: x == TRUTH)
            assert share.value == pytest.approx(2 ** len(known) / 4096)
        seen.add(len(known))
    assert len(seen) > 1


def test_cut_at_every_byte_the_log_has_all_whole_lines(tmp_path):
    path = tmp_path / "monitor.log"
    asked(path).close()
    whole = path.read_bytes()
    for cut in range(0, len(whole), 13):
        path.write_bytes(whole[:cut])
        assert len(read(path)) == whole[:cut].count(b"\n")


def test_an_audit_of_an_open_log_leaves_it_locked(tmp_path):
    path = tmp_path / "monitor.log"
    with pv.policy.Monitor(prior(), "x", policy(), log=path):
        assert pv.policy.audit_log(path, prior(), "x", policy(), queries=QUERIES)
        command = (
            f"import privug as pv; from privug.policy.monitoring.log import Log; Log({str(path)!r}, {{}}, reopen=True)"
        )
        other = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False)
        assert "in use by another monitor" in other.stderr
