"""Work on a Dask cluster of real processes: the same bits as on this machine, whatever becomes of the workers."""

import json
import os
import signal
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from click.testing import CliRunner

import privug as pv
from privug.cli.main import main as cli
from privug.runtime import cluster as sending
from privug.runtime.cluster import opened, parcel, run_on

distributed = pytest.importorskip("distributed")


@contextmanager
def two_workers():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


@pytest.fixture
def doomed():
    """A cluster of its own for a test that kills workers."""
    with two_workers() as client:
        yield client


def digits(x, y):
    """A program that can only be called."""
    total = 0
    for letter in f"{x:.3f}{y}":
        total += ord(letter)
    return total % 7


def bits(result):
    run = result._answer
    values = [column.array for batch in run.quantities for column in batch.columns]
    return values, run.log_weights, result.diagnostics.evidence


def assert_same_bits(here, there):
    values, log_weights, evidence = bits(here)
    others, their_weights, their_evidence = bits(there)
    assert all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(values, others, strict=True))
    assert (log_weights is None) == (their_weights is None)
    assert log_weights is None or np.array_equal(log_weights, their_weights)
    assert evidence == their_evidence


CALLED = pv.Attack(digits, {"x": pv.Normal(0, sd=1), "y": pv.DiscreteUniform(0, 9)}, secret="y")
SIZES = pv.Attack(
    lambda records: len(str(7 ** sum(r.age for r in records))) % 5 if len(records) > 2 else -1,
    {"records": pv.Records(pv.DiscreteUniform(1, 4), lambda k: pv.Row(age=pv.DiscreteUniform(0, 9)))},
    secret=lambda records: records[0].age,
)
FAILING = pv.Attack(
    lambda x: 1 / (x - 3) if len(str(x)) else 0, {"x": pv.DiscreteUniform(0, 9)}, secret="x", on_error="exclude"
)
ASSUMING = pv.Attack(
    digits, {"x": pv.Normal(0, sd=1), "y": pv.DiscreteUniform(0, 9)}, secret="y", assume=lambda x, y: y > x
)


@pytest.mark.parametrize("attack", [CALLED, SIZES, FAILING, ASSUMING], ids=["called", "sizes", "failing", "assuming"])
def test_samples_are_the_same_to_the_bit(client, attack):
    options = {"engine": "sample", "samples": 1500, "seed": 4}
    here, there = attack.run(**options), attack.run(**options, on=client)
    assert_same_bits(here, there)
    assert here.diagnostics.excluded == there.diagnostics.excluded


def test_observed_samples_and_later_questions_are_the_same_too(client):
    options = {"observe": pv.equals(3), "engine": "sample", "samples": 300, "seed": 1}
    here = CALLED.run(**options)
    with pv.configure(on=client) as settings:
        assert settings.on is client
        there = CALLED.run(**options)
        query = there.belief(lambda x, y: x > y)
    assert pv.configure().on == "local"
    assert_same_bits(here, there)
    assert query.probability(bool) == here.belief(lambda x, y: x > y).probability(bool)


def test_array_code_is_sent_where_it_takes_long(client, monkeypatch):
    monkeypatch.setattr("privug.runtime.tasks.SECONDS_WORTH_SENDING", 0.0)
    sent = []
    monkeypatch.setattr(sending._Cluster, "send", _counting(sending._Cluster.send, sent))
    attack = pv.Attack(lambda x, y: x + y > 1, {"x": pv.Normal(0, sd=1), "y": pv.Uniform(0, 1)}, secret="x")
    options = {"engine": "sample", "samples": 200_000, "seed": 1}
    there = attack.run(**options, on=client)
    assert sent
    assert_same_bits(attack.run(**options), there)


def _counting(send, sent):
    def counted(self, tasks):
        sent.append(len(tasks))
        assert len(self._waiting) <= 2 * sending.AHEAD  # however many tasks there are
        send(self, tasks)

    return counted


def test_populations_are_the_same_to_the_bit(client, monkeypatch):
    monkeypatch.setattr("privug.runtime.tasks.SECONDS_WORTH_SENDING", 0.0)
    attack = pv.Attack(lambda x, y: x + y, {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}, secret="x")
    options = {"observe": pv.such_that(lambda o: o > 6), "engine": "rare", "samples": 200, "seed": 2}
    assert_same_bits(attack.run(**options), attack.run(**options, on=client))


def test_studies_are_the_same(client):
    def attack_for(epsilon):
        def release(bit):
            return bit + pv.sample(pv.DiscreteLaplace(1 / epsilon))

        return pv.Attack(release, {"bit": pv.Bernoulli(0.5)}, "bit", questions={"it is one": lambda bit: bit == 1})

    options = {"epsilon": [0.5, 1.0, 2.0], "engine": "sample", "samples": 2000, "seed": 1}
    here = pv.sweep(attack_for, **options)
    with pv.limited(on=client):
        there = pv.sweep(attack_for, **options)
    assert [float(e) for e in here["bayes_vulnerability"]] == [float(e) for e in there["bayes_vulnerability"]]
    attackers = {"even": {"bit": pv.Bernoulli(0.5)}, "sure": {"bit": pv.Bernoulli(0.9)}}
    programs = {"flip": lambda bit: 1 - bit, "nothing": lambda bit: 0}
    compared = {"attackers": attackers, "programs": programs, "secret": "bit", "engine": "sample", "samples": 1000}
    with pv.limited(on=client):
        there = pv.compare(**compared)
    assert str(there) == str(pv.compare(**compared))


def test_mechanisms_and_commands_are_made_in_the_worker(client, tmp_path):
    def double():
        made_in = os.getpid()
        return lambda data: (2 * data, made_in)[0]

    script = tmp_path / "add.py"
    script.write_text("import json, sys\nfor line in sys.stdin:\n    print(json.loads(line)['data'] + 1, flush=True)\n")
    programs = [
        pv.mechanisms.from_factory(double),
        pv.mechanisms.laplace(lambda data: data, sensitivity=1, epsilon=1.0),
        pv.mechanisms.randomized_response(lambda data: data > 4, epsilon=1.0),
        pv.External(["python3", str(script)]),
    ]
    for program in programs:
        attack = pv.Attack(program, {"data": pv.DiscreteUniform(0, 9)}, secret="data")
        options = {"engine": "sample", "samples": 600, "seed": 1}
        assert_same_bits(attack.run(**options), attack.run(**options, on=client))
        assert opened(parcel(program)) is not program


def slow_square(task):
    time.sleep(0.1)
    return task * task


@pytest.mark.slow
@pytest.mark.parametrize("victims", [1, 2])
def test_lost_workers_cost_only_time(doomed, victims):
    options = {"engine": "sample", "samples": 20_000, "seed": 4}
    here, seen = CALLED.run(**options), []

    def kill():
        time.sleep(1.0)
        for pid in list(doomed.run(os.getpid).values())[:victims]:
            os.kill(pid, signal.SIGKILL)
            seen.append(pid)

    killer = threading.Thread(target=kill)
    killer.start()
    assert_same_bits(here, CALLED.run(**options, on=doomed))
    killer.join()
    assert len(seen) == victims


def test_a_lost_worker_costs_only_its_tasks(doomed):
    pids = list(doomed.run(os.getpid).values())
    results = run_on(doomed, range(24), slow_square)
    assert [next(results) for _ in range(3)] == [0, 1, 4]
    os.kill(pids[0], signal.SIGKILL)
    assert list(results) == [n * n for n in range(3, 24)]


@pytest.mark.slow
def test_a_program_that_kills_its_process_is_reported_with_the_input(doomed):
    def deadly(x):
        if x == 777:
            os.kill(os.getpid(), signal.SIGSEGV)
        return len(str(x))

    attack = pv.Attack(deadly, {"x": pv.DiscreteUniform(0, 999)}, secret="x")
    with pytest.raises(pv.ProgramError, match=r"ended the process .*signal 11, SIGSEGV.*\n  on the input x = 777"):
        attack.run(engine="sample", samples=3000, seed=1, on=doomed)


def test_a_failing_program_is_reported_as_here(client):
    def fails(x):
        if len(str(x)) and x == 7:
            raise ValueError("no sevens")
        return x % 3

    attack = pv.Attack(fails, {"x": pv.DiscreteUniform(0, 9)}, secret="x")
    told = []
    for on in ("local", client):
        with pytest.raises(pv.ProgramError, match=r"no sevens\n  on the input x = 7") as caught:
            attack.run(engine="sample", samples=1000, seed=1, on=on)
        assert isinstance(caught.value.__cause__, ValueError)
        told.append(str(caught.value))
    assert told[0] == told[1]


def test_time_that_is_up_ends_the_wait(client):
    def endless(x):
        time.sleep(0.05 * len(str(x)))
        return x

    attack = pv.Attack(endless, {"x": pv.DiscreteUniform(0, 9)}, secret="x")
    started = time.monotonic()
    with pytest.raises(pv.OutOfTime):
        attack.run(engine="sample", samples=10_000, seed=1, seconds=3, on=client)
    assert time.monotonic() - started < 60


def test_what_is_shared_is_made_once():
    question = CALLED.question
    first, second = parcel([question, 1]), parcel([question, 2])
    assert first.shared == second.shared
    assert opened(first)[0] is opened(second)[0] is not question
    assert opened(first, keep=False)[1] == 1


@pytest.mark.parametrize("wrong", [3, "somewhere", object(), ["tcp://127.0.0.1:1"]])
def test_a_place_that_is_none_is_refused(wrong):
    with pytest.raises(pv.ArgumentError, match="on must be a client of"):
        CALLED.run(samples=100, on=wrong)


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr(sending, "CONNECT_SECONDS", 1.0)
    with pytest.raises(pv.ClusterError, match=r"there is no Dask scheduler at 'tcp://127\.0\.0\.1:9'"):
        CALLED.run(engine="sample", samples=1000, on="tcp://127.0.0.1:9")


def tallied(tallies):
    agreeing = tallies._agreeing
    numbers = [(n.moments.tobytes(), n.bins.tobytes()) for n in agreeing.numbers if n is not None]
    tables = [table.columns[1].tobytes() for table in agreeing.tables if table is not None]
    return tallies.draws, agreeing.total.tobytes(), agreeing.hits.tobytes(), numbers, tables


@pytest.mark.parametrize("attack", [CALLED, SIZES], ids=["called", "sizes"])
def test_tallies_are_the_same_to_the_bit(client, attack):
    asking = pv.Attack(
        attack.question.program, attack.question.prior, attack.question.secret, questions={"small": lambda y: y < 3}
    )
    here, there = asking.tally(draws=3000, seed=4), asking.tally(draws=3000, seed=4, on=client)
    assert tallied(here) == tallied(there)
    assert here.probability("small") == there.probability("small")


def test_weighted_tallies_are_the_same_to_the_bit(client, monkeypatch):
    monkeypatch.setattr("privug.runtime.tasks.SECONDS_WORTH_SENDING", 0.0)
    prior = {"x": pv.Normal(40, sd=10), "y": pv.Normal(0, sd=5)}
    questions = {"old": lambda x: x > 50}
    attack = pv.Attack(lambda x, y: x + y, prior, "x", observe=pv.noisy(55, sd=3), questions=questions)
    here, there = attack.tally(draws=100_000), attack.tally(draws=100_000, on=client)
    assert tallied(here) == tallied(there)


def test_the_command_line_takes_an_address(client, tmp_path):
    file = tmp_path / "digits.py"
    file.write_text(
        "import privug as pv\n"
        "attack = pv.Attack(lambda x: len(str(7 ** x)), {'x': pv.DiscreteUniform(0, 30)}, 'x', observe=pv.equals(4))\n"
    )
    asked = ["analyze", str(file), "--engine", "sample", "--samples", "300", "--json"]
    here, there = (CliRunner().invoke(cli, [*asked, *on]) for on in ([], ["--on", client.scheduler.address]))
    assert here.exit_code == there.exit_code == 0
    first, second = (json.loads(outcome.stdout)["attacks"][0] for outcome in (here, there))
    assert [first["beliefs"], first["leakage"]] == [second["beliefs"], second["leakage"]]
    assert pv.configure().on == "local"
    wrong = CliRunner().invoke(cli, [*asked, "--on", "somewhere"])
    assert wrong.exit_code == 2
    assert "on must be a client of" in wrong.stderr


def test_a_client_that_is_not_the_default_serves(client):
    with distributed.Client(client.scheduler.address, set_as_default=False) as other:
        there = CALLED.run(engine="sample", samples=1500, seed=4, on=other)
    assert_same_bits(CALLED.run(engine="sample", samples=1500, seed=4), there)
    with pytest.raises(pv.ClusterError, match="does not answer"):
        CALLED.run(engine="sample", samples=1500, seed=4, on=other)


@pytest.mark.slow
def test_a_cluster_that_is_closed_is_told_in_our_words():
    with two_workers() as client:
        results = run_on(client, range(40), slow_square)
        assert next(results) == 0
        client.cluster.close()
        with pytest.raises(pv.ClusterError, match="Dask cluster"):
            list(results)
