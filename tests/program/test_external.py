"""Programs in other languages: one line of JSON in, one out, and what happens when that goes wrong."""

import os
import shutil
import sys
from pathlib import Path

import pytest

import privug as pv
from privug.runtime import processes

EXAMPLES = Path(__file__).parent.parent.parent / "examples"

LOOP = "import sys, json\nfor line in sys.stdin:\n    data = json.loads(line)\n    "


def external(body, **options):
    return pv.External([sys.executable, "-c", LOOP + body], **options)


def table():
    return pv.Records(3, pv.Row(name=pv.Choice(["Ann", "Bob"]), age=pv.DiscreteUniform(0, 9)))


def test_rows_are_objects_and_answers_are_values():
    program = external(
        "print(json.dumps([sum(r['age'] for r in data['records']), data['records'][0]['name']]), flush=True)"
    )
    attack = pv.Attack(
        program, {"records": table()}, secret=lambda records: (sum(r.age for r in records), records[0].name)
    )
    result = attack.run(samples=300, seed=1)
    assert attack.lifting.tier == "external"
    pairs = zip(result.joint.secret.batch.values(), result.joint.output.batch.values(), strict=True)
    assert all(list(secret) == output for secret, output in pairs)
    program.close()


def test_conditioning_on_an_external_output():
    program = external("print(data['x'] + data['y'], flush=True)")
    prior = {"x": pv.DiscreteUniform(0, 4), "y": pv.DiscreteUniform(0, 4)}
    result = pv.Attack(program, prior, secret="x").run(observe=pv.equals(8), samples=100, seed=1)
    assert result.posterior.distribution().keys() == {4}
    program.close()


def test_plain_calls_reuse_one_process():
    program = external("import os; print(os.getpid(), flush=True)")
    first = program(x=1)
    assert first == program(x=2) != os.getpid()
    program.close()


def test_same_samples_on_any_number_of_workers():
    program = external("import time; time.sleep(0.002); print(data['x'] * 2, flush=True)")
    attack = pv.Attack(program, {"x": pv.Uniform(0, 1)}, secret="x")
    runs = []
    for workers in (1, 2):
        with pv.limited(workers=workers):
            runs.append(attack.run(samples=600, seed=1).prediction.batch.values())
    assert runs[0] == runs[1]
    program.close()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("print('not json' if data['x'] == 3 else 1, flush=True)", "not JSON"),
        ("print(json.dumps({'error': 'no threes'}) if data['x'] == 3 else 1, flush=True)", "no threes"),
        ("sys.exit(7) if data['x'] == 3 else print(1, flush=True)", "exit code 7"),
        ("if data['x'] == 3: raise ValueError('three')\n    print(1, flush=True)", "three"),
        ("import time; time.sleep(60) if data['x'] == 3 else print(1, flush=True)", "did not answer within"),
    ],
    ids=["not json", "error", "exit", "raises", "hangs"],
)
def test_failures_name_the_input(body, message):
    program = external(body, timeout=2.0 if "sleep" in body else 60.0)
    attack = pv.Attack(program, {"x": pv.DiscreteUniform(0, 9)}, secret="x")
    with pytest.raises(pv.ProgramError, match=rf"(?s){message}.*x(\": | = )3"):
        attack.run(samples=200, seed=1)
    program.close()


def test_failures_can_be_excluded():
    program = external("print(json.dumps({'error': 'no threes'}) if data['x'] == 3 else data['x'], flush=True)")
    attack = pv.Attack(program, {"x": pv.DiscreteUniform(2, 4)}, secret="x", on_error="exclude")
    result = attack.run(samples=60, seed=1)
    assert result.posterior.distribution().keys() == {2, 4}
    assert result.diagnostics.excluded > 0
    program.close()


def test_a_process_that_dies_now_and_then_is_started_again():
    """It ends after every 50 answers, whatever the input: nothing is lost and nothing fails."""
    body = "count = globals().get('count', 0) + 1; print(data['x'], flush=True)\n    if count == 50: sys.exit(0)"
    program = external(body)
    result = pv.Attack(program, {"x": pv.DiscreteUniform(0, 9)}, secret="x").run(samples=300, seed=1)
    assert result.joint.secret.batch.values() == result.joint.output.batch.values()
    program.close()


def test_large_batches_do_not_fill_the_pipes():
    program = external("print(json.dumps(data['x']), flush=True)")
    attack = pv.Attack(program, {"x": pv.Array(pv.Uniform(0, 1), 500)}, secret=lambda x: x[0])
    result = attack.run(engine="sample", samples=50, seed=1)  # half a megabyte each way: a pipe holds 64 KiB
    assert len(result.prediction.batch) == 50
    program.close()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pv.External([]), "command"),
        (lambda: pv.External([3]), "command"),
        (lambda: pv.External(["x"], timeout=0), "timeout"),
        (lambda: pv.External(["x"], timeout="1"), "timeout"),
    ],
)
def test_wrong_arguments(make, message):
    with pytest.raises(pv.ArgumentError, match=message):
        make()


def test_missing_command_is_a_message():
    with pytest.raises(pv.ProgramError, match="cannot be started"):
        pv.External(["no-such-command-anywhere"])(x=1)


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_node_example():
    program = pv.External(["node", str(EXAMPLES / "mean_age.js")])
    assert program(records=[pv.Row(age=20), pv.Row(age=40)]) == 30
    program.close()


@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
def test_java_example():
    program = pv.External(["java", str(EXAMPLES / "MeanAge.java")], timeout=60)
    assert program(ages=[20, 40]) == 30.0
    program.close()


@pytest.mark.parametrize("on_error", ["raise", "exclude"])
def test_a_second_answer_is_never_taken_for_that_to_the_next_line(on_error):
    program = external("print(data['x'], flush=True); print(data['x'], flush=True)")
    attack = pv.Attack(program, {"x": pv.DiscreteUniform(0, 9)}, secret="x", on_error=on_error)
    with pytest.raises(pv.ProgramError, match="more than one line of answer"):
        attack.run(samples=50)
    program.close()


def test_what_is_written_to_standard_error_does_not_stop_the_program():
    program = external("print('x' * 200_000, file=sys.stderr, flush=True); print(2 * data['x'], flush=True)", timeout=5)
    assert [program(x=x) for x in (1, 2)] == [2, 4]
    program.close()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sys.stdout.write('1\\n'); import time; time.sleep(9)", r"within 0.3 s on .*; it must flush its output"),
        ("sys.stdout.buffer.write(b'\"\\xe9\"\\n'); sys.stdout.flush()", "not UTF-8"),
        ("while True: sys.stdout.write('x' * 65536)", "a line of more than 64 MiB"),
    ],
    ids=["no flush", "Latin-1", "no end of line"],
)
def test_what_is_wrong_is_said_soon(body, message, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    program = external(body, timeout=0.3 if "sleep" in body else 30)
    with pytest.raises(pv.ProgramError, match=message):
        program(x=1)
    program.close()


def test_the_limit_on_an_answer_holds_inside_a_run(tmp_path):
    started = tmp_path / "started"
    body = f"open({str(started)!r}, 'a').write('x'); import time; time.sleep(60)"
    attack = pv.Attack(external(body, timeout=0.3), {"x": pv.DiscreteUniform(0, 3)}, secret="x")
    with pytest.raises(pv.ProgramError, match=r'did not answer within 0.3 s on the input \{"x": 0\}; it must flush'):
        attack.run()
    assert started.read_text() == "x"  # it was asked once, not again and again to find out more


def test_the_user_is_told_which_line_has_no_answer_yet(monkeypatch, capsys):
    monkeypatch.setattr(processes, "PATIENCE", 0.1)
    program = external("import time; time.sleep(0.5 * (data['x'] == 2)); print(data['x'], flush=True)")
    with pv.limited(progress=True):
        assert [program(x=1), program(x=2)] == [1, 2]
    assert capsys.readouterr().err.splitlines() == [
        'the program has not returned yet on the input {"x": 2}; it must flush its output after each line'
    ]
