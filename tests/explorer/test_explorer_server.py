"""The server: whom it answers, what it does with bad requests and bad programs, and what it leaves behind."""

import contextlib
import http.client
import json
import os
import signal
import socket
import threading
import time
import uuid
from pathlib import Path

import pytest

import privug as pv

SURVEY = """
    import privug as pv

    spread = pv.parameter("spread", 0.5, 8, default=2.0)
    attack = pv.Attack(
        lambda x, y: x + y, {"x": pv.Normal(10, sd=spread), "y": pv.Normal(0, sd=1)}, "x",
        observe=pv.near(12.0, within=0.5), questions={"x is over 11": lambda x: x > 11}, name="sum",
    )
    limit = pv.policy.belief(lambda x: x > 11, at_most=0.95, claim="x is over 11")
"""


class Client:
    """A tab: a stream of events, and requests."""

    def __init__(self, running) -> None:
        self.running = running
        self.base = f"/{running.address.rsplit('/', 2)[1]}/"
        self.tab = uuid.uuid4().hex
        self.events: list[dict] = []
        self._stream = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
        self._stream.request("GET", f"{self.base}events?tab={self.tab}")
        self._answer = self._stream.getresponse()
        assert self._answer.status == 200
        assert self._answer.readline() == b"event: open\n"
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while line := self._answer.readline():
                if line.startswith(b"data: ") and line != b"data: {}\n":
                    self.events.append(json.loads(line[6:]))
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass

    def post(self, path, body, **headers):
        return request(self.running, "POST", self.base + path, json.dumps(body), **headers)

    def run(self, position, attack="attack"):
        status, text = self.post(f"run?tab={self.tab}", {"attack": attack, "position": position})
        assert status == 200
        return json.loads(text)["run"]

    def wait(self, run, seconds=60):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = [event for event in list(self.events) if event["run"] == run]
            if any(event.get("done") for event in found):
                merged = {}
                for event in found:
                    merged |= event
                return merged
            time.sleep(0.01)
        raise AssertionError("no answer")

    def close(self) -> None:
        if self._stream.sock is not None:
            with contextlib.suppress(OSError):  # it may be closed at the other end
                self._stream.sock.shutdown(socket.SHUT_RDWR)
        self._reader.join(10)
        self._answer.close()
        self._stream.close()


def request(running, method, path, body=None, **headers):
    sent = {"Origin": f"http://127.0.0.1:{running.port}"} if method == "POST" else {}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
    connection.request(method, path, body, {name: value for name, value in sent.items() if value is not None})
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def children_of(process):
    """Return the processes below a process, by what the system says."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                parents[int(entry.name)] = int(fields[1]) if fields[0] != "Z" else 0
            except OSError:
                continue
    below, found = {process}, True
    while found:
        found = {child for child, parent in parents.items() if parent in below} - below
        below |= found
    return below - {process}


def is_alive(process):
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False


def wait_until(holds, seconds=40.0):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_answers_are_those_of_the_library(explorer):
    client = Client(explorer(SURVEY))
    answer = client.wait(client.run({"spread": 3.0, "seen: value": 13.0}))
    prior = {"x": pv.Normal(10, sd=3.0), "y": pv.Normal(0, sd=1)}
    attack = pv.Attack(lambda x, y: x + y, prior, "x", observe=pv.near(13.0, within=0.5))
    result = attack.run()
    share = result.posterior.probability(lambda x: x > 11)
    assert answer["answer"]["questions"][0]["after"]["value"] == share.value
    assert answer["answer"]["questions"][0]["after"]["text"] == share.number()
    assert answer["answer"]["exact"]
    told = {row["measure"]: row["value"] for row in answer["leakage"]}
    assert told["mutual information"] == pv.leakage.mutual_information(result.joint).value
    limit = pv.policy.belief(lambda x: x > 11, at_most=0.95)
    assert answer["policies"][0]["status"] == pv.policy.check(attack, limit).status
    shares = [sum(row) for row in answer["joint"]["shares"]]
    assert sum(shares) == pytest.approx(1, abs=0.01)
    client.close()


def test_nobody_without_the_token_is_answered(explorer):
    running = explorer(SURVEY)
    base = f"/{running.address.rsplit('/', 2)[1]}/"
    for path in ("/", "/wrong/", "/wrong/state", "/state", base + "../", base + "nothing.js", base + "server.py"):
        assert request(running, "GET", path) == (404, b"")
    assert request(running, "GET", base)[0] == 200


def test_requests_from_elsewhere_are_not_answered(explorer):
    running = explorer(SURVEY)
    base = f"/{running.address.rsplit('/', 2)[1]}/"
    asked = json.dumps({"attack": "attack", "position": {}})
    assert request(running, "POST", base + "script", asked)[0] == 200
    for origin in ("http://evil.example", "null", None, f"http://127.0.0.1:{running.port + 1}"):
        assert request(running, "POST", base + "script", asked, Origin=origin) == (404, b"")
    for host in ("evil.example", f"evil.example:{running.port}", "127.0.0.1"):
        assert request(running, "GET", base, Host=host) == (404, b"")
    assert request(running, "GET", base + "state", Sec_Fetch_Mode="cors", Sec_Fetch_Site="cross-site") == (404, b"")


@pytest.mark.parametrize(
    "body",
    [
        "", "[]", "{", '{"attack": 7, "position": {}}', '{"attack": "attack"}',
        '{"attack": "attack", "position": {"spread": "__import__(\'os\')"}}',
        '{"attack": "attack", "position": {"spread": true}}',
    ],
)  # fmt: skip
def test_malformed_requests_are_refused(explorer, body):
    running = explorer(SURVEY)
    base = f"/{running.address.rsplit('/', 2)[1]}/"
    assert request(running, "POST", base + "script", body)[0] == 400
    assert request(running, "POST", base + "run?tab=unknown", '{"attack": "attack", "position": {}}')[0] == 400


def test_wrong_positions_are_told_in_one_line(explorer):
    client = Client(explorer(SURVEY))
    assert "there is no parameter 'other'" in client.wait(client.run({"other": 1}))["error"]
    assert "there is no attack 'other'" in client.wait(client.run({}, "other"))["error"]
    assert "positive" in client.wait(client.run({"y: Normal sd": -1}))["error"]
    assert "error" not in client.wait(client.run({}))
    client.close()


BAD = """
    import os, time
    import privug as pv

    kind = pv.parameter("kind", 0, 3, default=0)

    def program(x):
        if kind == 1:
            raise ValueError("no such thing\\nat all")
        if kind == 2:
            os._exit(3)
        while kind == 3:
            time.sleep(0.01)
        return str(x)[::-1]

    attack = pv.Attack(program, {"x": pv.DiscreteUniform(0, 30)}, "x", name="bad")
"""


def test_programs_that_raise_die_or_loop_leave_the_explorer_alive(explorer):
    client = Client(explorer(BAD, "--seconds", "2"))
    assert "no such thing" in (raised := client.wait(client.run({"kind": 1}))["error"])
    assert "\n" not in raised
    assert "ended" in client.wait(client.run({"kind": 2}))["error"]
    assert client.wait(client.run({"kind": 3}))["error"]
    assert client.wait(client.run({"kind": 0}))["answer"]["exact"]
    client.close()


def test_a_newer_position_ends_the_older_run(explorer):
    running = explorer(BAD)
    client = Client(running)
    nursery = children_of(running.process.pid)
    older = client.run({"kind": 3})
    wait_until(lambda: children_of(running.process.pid) - nursery)
    loops = children_of(running.process.pid) - nursery
    newer = client.run({"kind": 0})
    assert client.wait(newer)["answer"]
    wait_until(lambda: not any(map(is_alive, loops)))
    assert not [event for event in client.events if event["run"] == older and "answer" in event]
    client.close()


def test_fifty_quick_moves_end_in_one_answer(explorer):
    client = Client(explorer(SURVEY))
    runs = [client.run({"seen: value": 10 + number / 10}) for number in range(50)]
    last = client.wait(runs[-1])
    assert "14.9" in last["answer"]["seen"]
    time.sleep(0.3)
    finished = {event["run"] for event in client.events if event.get("done")}
    assert runs[-1] in finished
    assert len(finished) < 50
    client.close()


def client_with_a_kept_run(running, nursery):
    """A client that has asked once, and the processes kept beside the nursery's for its next."""
    client = Client(running)
    client.wait(client.run({}))
    wait_until(lambda: children_of(running.process.pid) - nursery)
    return client, children_of(running.process.pid) - nursery


def test_one_run_is_kept_for_what_else_may_be_seen(explorer):
    running = explorer(SURVEY, fresh=True)
    nursery = children_of(running.process.pid)
    client, kept = client_with_a_kept_run(running, nursery)
    assert len(kept) == 1
    for value in (13.0, 11.5):
        answer = client.wait(client.run({"seen: value": value}))
        attack = pv.Attack(
            lambda x, y: x + y, {"x": pv.Normal(10, sd=2), "y": pv.Normal(0, sd=1)}, "x",
            observe=pv.near(value, within=0.5),
        )  # fmt: skip
        share = attack.run().posterior.probability(lambda x: x > 11)
        assert answer["answer"]["questions"][0]["after"]["value"] == share.value
        assert all(map(is_alive, kept))
    other = client.wait(client.run({"y: Normal sd": 2.0}))  # another question
    assert other["answer"]["exact"]
    wait_until(lambda: not any(map(is_alive, kept)))
    client.close()
    wait_until(lambda: children_of(running.process.pid) == nursery)


def test_a_kept_run_that_dies_is_not_missed(explorer):
    running = explorer(SURVEY, fresh=True)
    client, kept = client_with_a_kept_run(running, children_of(running.process.pid))
    for process in kept:
        os.kill(process, signal.SIGKILL)
        wait_until(lambda process=process: not is_alive(process))
    assert client.wait(client.run({"seen: value": 13.0}))["answer"]["exact"]
    client.close()


def test_tabs_do_not_disturb_each_other(explorer):
    running = explorer(BAD)
    one, other = Client(running), Client(running)
    looping = one.run({"kind": 3})
    assert other.wait(other.run({"kind": 0}))["answer"]
    assert not [event for event in one.events if event["run"] != looping]
    assert {event["run"] for event in other.events}.isdisjoint({looping})
    status, _ = one.post(f"cancel?tab={one.tab}", {})
    assert status == 200
    assert one.wait(looping)["error"] == "cancelled"
    one.close()
    other.close()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left_behind(explorer, how):
    running = explorer(BAD, fresh=True)
    client = Client(running)
    client.run({"kind": 3})
    nursery = 1
    wait_until(lambda: len(children_of(running.process.pid)) > nursery)
    left = children_of(running.process.pid)
    running.end(how)
    wait_until(lambda: not any(map(is_alive, left)))
    client.close()


def test_closing_the_page_ends_its_run(explorer):
    running = explorer(BAD)
    nursery = children_of(running.process.pid)
    client = Client(running)
    client.run({"kind": 3})
    wait_until(lambda: children_of(running.process.pid) - nursery)
    client.close()
    wait_until(lambda: children_of(running.process.pid) == nursery)


def test_closing_the_page_ends_a_report(explorer):
    running = explorer(BAD)
    nursery = children_of(running.process.pid)
    client = Client(running)
    asking = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
    origin = {"Origin": f"http://127.0.0.1:{running.port}"}
    asking.request("POST", f"{client.base}report", json.dumps({"attack": "attack", "position": {"kind": 3}}), origin)
    wait_until(lambda: children_of(running.process.pid) - nursery)
    asking.close()
    wait_until(lambda: children_of(running.process.pid) == nursery)
    client.close()


def test_control_c_says_nothing_while_a_page_is_open(explorer):
    running = explorer(BAD, fresh=True)
    client = Client(running)
    client.run({"kind": 3})
    os.kill(running.process.pid, signal.SIGINT)
    assert "Traceback" not in running.process.communicate(timeout=40)[1]
    client.close()


FOLLOWING = """
    import privug as pv

    share = pv.parameter("share", 0.1, 0.9, default=0.5)
    prior = {"x": pv.Bernoulli(share), "y": pv.Bernoulli(1 - share * share)}
    attack = pv.Attack(lambda x, y: x + y, prior, "x", name="sum")
"""


def test_what_follows_a_declared_parameter_is_told(explorer):
    client = Client(explorer(FOLLOWING))
    answer = client.wait(client.run({"share": 0.6}))
    assert answer["asked"]["position"] == {"share": 0.6}
    assert {one["name"]: one["value"] for one in answer["parameters"]}["y: Bernoulli p"] == pytest.approx(0.64)
    status, text = client.post("answer", {"attack": "attack", "position": {"share": 0.6}})
    assert status == 200
    assert "answer" in json.loads(text)
    client.close()


SLOW = """
    import time
    import privug as pv

    def slow(x):
        time.sleep(0.0005)
        return str(round(x, 1))[-1]

    attack = pv.Attack(slow, {"x": pv.Normal(0, sd=1)}, "x", name="slow")
"""


def test_a_rough_answer_comes_first_where_the_other_takes_long(explorer):
    client = Client(explorer(SLOW, "--samples", "6000"))
    run = client.run({})
    answer = client.wait(run)
    client.close()
    order = [key for event in client.events if event["run"] == run for key in ("rough", "answer") if key in event]
    assert order[0] == "rough"  # of a hundred samples, and where there is time of a thousand
    assert order[-1] == "answer"
    assert set(order[:-1]) == {"rough"}
    assert not answer["answer"]["exact"]


def test_the_script_prints_the_same_numbers(explorer, tmp_path):
    import subprocess
    import sys

    client = Client(explorer(SURVEY))
    position = {"spread": 3.0, "y: Normal sd": 1.25}
    answer = client.wait(client.run(position))
    status, text = client.post("script", {"attack": "attack", "position": position})
    assert status == 200
    script = tmp_path / "again.py"
    script.write_text(json.loads(text)["script"], encoding="utf-8")
    printed = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    assert answer["answer"]["questions"][0]["after"]["text"] in printed
    for row in answer["leakage"]:
        assert row["text"] in printed
    client.close()


def test_the_report_is_the_report(explorer):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    client = Client(explorer(SURVEY))
    status, text = client.post("report", {"attack": "attack", "position": {}})
    assert status == 200
    assert json.loads(text)["report"].lower().startswith("<!doctype html>")
    client.close()


def test_a_file_without_attacks_is_refused_in_one_line(tmp_path):
    import subprocess
    import sys

    path = tmp_path / "empty.py"
    path.write_text("import privug as pv\n", encoding="utf-8")
    command = [sys.executable, "-m", "privug.cli.main", "explore", str(path), "--no-browser"]
    outcome = subprocess.run(command, capture_output=True, text=True)
    assert outcome.returncode == 2
    assert "there is no pv.Attack" in outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_an_attack_is_explored_in_the_background():
    pytest.importorskip("starlette", reason="the extra 'web' is not installed")
    attack = pv.Attack(lambda x: x, {"x": pv.Normal(0, sd=1)}, "x", observe=pv.noisy(1.0, sd=1.0), name="one")
    explorer = attack.explore(seed=3)
    try:
        assert explorer.address in explorer._repr_html_()
        connection = http.client.HTTPConnection("127.0.0.1", int(explorer.address.split(":")[2].split("/")[0]))
        connection.request("GET", "/" + explorer.address.split("/", 3)[3] + "state")
        state = json.loads(connection.getresponse().read())
        assert state["title"] == "one"
        assert state["attacks"]["attack"]["parameters"][0]["name"] == "seen: value"
        connection.close()
    finally:
        nursery = explorer._parts._nursery.process
        explorer.close()
    assert not is_alive(nursery)
    assert os.getpid()
    with pytest.raises(pv.ArgumentError, match="colour is not an option"):
        attack.explore(colour="red")
