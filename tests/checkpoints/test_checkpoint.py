"""What a checkpoint keeps, and which it refuses."""

import contextlib
import math
import os
import resource
import warnings
from enum import Enum
from typing import NamedTuple

import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

import privug as pv
from checkpoints.long_runs import bits
from privug.checkpoints import checkpoint
from privug.checkpoints.checkpoint import MAGIC, RecordFile
from privug.inference.case_plan import CasePlan
from privug.studies.measured import StudySettings as Study


class Colour(Enum):
    RED = 1
    BLUE = 2


class Pair(NamedTuple):
    first: int
    second: str


OFFSET = 7


def reversed_digits(x):
    return int(str(int(x))[::-1]) + OFFSET


def other_digits(x):
    return int(str(int(x))[::-1]) + 8


PRIOR = {"x": pv.DiscreteUniform(10, 99_999)}


def attack(program=reversed_digits, prior=PRIOR, secret="x", **options):
    return pv.Attack(program, prior, secret, **options)


def run(path, of=None, observe=None, **options):
    given = {"engine": "sample", "samples": 1000, "seed": 1, **options}
    with pv.limited(workers=1, progress=False):
        return (of or attack()).run(observe, checkpoint=path, **given)


@pytest.fixture
def blocks(monkeypatch):
    """The blocks that were computed."""
    found, original = [], CasePlan.run

    def counted(self, *arguments, **named):
        found.append(arguments)
        return original(self, *arguments, **named)

    monkeypatch.setattr(CasePlan, "run", counted)
    return found


def test_a_finished_checkpoint_gives_the_result_without_computing_a_block(tmp_path, blocks):
    expected = bits(run(None))
    assert bits(run(tmp_path / "run")) == expected
    assert len(blocks) >= 8
    blocks.clear()
    assert bits(run(tmp_path / "run")) == expected
    assert not blocks


def test_what_a_result_is_asked_for_later_is_kept_too(tmp_path, blocks):
    def asked():
        result = run(tmp_path / "run", observe=pv.between(20, 5000))
        return result.belief(lambda x, output: output - x).mean()

    first = asked()
    blocks.clear()
    assert asked() == first
    assert not blocks


DIFFERENT = {
    "the program differs": {"of": attack(other_digits)},
    "the prior of 'x' differs": {"of": attack(prior={"x": pv.DiscreteUniform(10, 99_998)})},
    "the secret differs": {"of": attack(secret=lambda x: x % 10)},
    "assume differs": {"of": attack(assume=lambda x: x > 11)},
    "on_error is 'raise' in the file and 'exclude' here": {"of": attack(on_error="exclude")},
    "the observation differs": {"observe": pv.between(0, 10_000)},
    "seed is 1 in the file and 2 here": {"seed": 2},
    "samples is 1000 in the file and 1001 here": {"samples": 1001},
    "budget is None in the file and 5000 here": {"budget": 5000},
    "engine is 'sample' in the file and 'auto' here": {"engine": "auto"},
}


@pytest.mark.parametrize("message", DIFFERENT)
def test_a_checkpoint_of_another_question_is_refused(tmp_path, message):
    run(tmp_path / "run", samples=1000)
    before = (tmp_path / "run").read_bytes()
    with pytest.raises(pv.CheckpointError, match="belongs to another question") as caught:
        run(tmp_path / "run", **DIFFERENT[message])
    assert message in str(caught.value)
    assert (tmp_path / "run").read_bytes() == before


def test_what_programs_take_from_around_them_is_part_of_the_question(tmp_path, monkeypatch):
    run(tmp_path / "run")
    monkeypatch.setitem(globals(), "OFFSET", 8)
    with pytest.raises(pv.CheckpointError, match="the program differs"):
        run(tmp_path / "run")


@pytest.mark.parametrize(("name", "value"), [("rounding", "bits"), ("native", False), ("exact_seconds", 1.0)])
def test_settings_that_change_results_are_part_of_the_question(tmp_path, name, value):
    run(tmp_path / "run")
    with pv.limited(**{name: value}), pytest.raises(pv.CheckpointError, match=f"{name} is "):
        run(tmp_path / "run")


def test_a_command_is_told_by_the_files_that_it_names(tmp_path):
    script = tmp_path / "double.py"
    line = "import sys, json\nfor l in sys.stdin: print({} * json.loads(l)['x'], flush=True)\n"
    script.write_text(line.format(2))
    of = attack(pv.External(["python3", str(script)]))
    first = run(tmp_path / "run", of, samples=100)
    assert bits(run(tmp_path / "run", of, samples=100)) == bits(first)
    script.write_text(line.format(3))
    with pytest.raises(pv.CheckpointError, match="the program differs"):
        run(tmp_path / "run", attack(pv.External(["python3", str(script)])), samples=100)


def test_enums_and_named_tuples_of_the_question_are_kept(tmp_path):
    def painted(colour, x):
        return Pair(int(str(int(x))[::-1]), colour.name), colour

    prior = {"colour": pv.Choice(list(Colour)), **PRIOR}
    of = attack(painted, prior, "colour")
    first, again = run(tmp_path / "run", of), run(tmp_path / "run", of)
    assert bits(first) == bits(again)
    assert not again.diagnostics.remarks
    assert {type(value) for value in again.posterior.samples(10)} == {Colour}


def test_values_that_cannot_be_written_are_computed_again(tmp_path):
    def made(x):
        return frozenset([complex(int(str(int(x))[::-1]))]), type("Local", (tuple,), {})((x,))

    result = run(tmp_path / "run", attack(made))
    assert any("leaves out values of type Local" in remark for remark in result.diagnostics.remarks)
    assert run(tmp_path / "run", attack(made)).diagnostics.accepted == 1000


def test_two_runs_on_one_file_are_refused(tmp_path):
    records = RecordFile(tmp_path / "run")
    try:
        with pytest.raises(pv.CheckpointError, match="another run"):
            run(tmp_path / "run")
        with warnings.catch_warnings(action="ignore"):  # JAX, if another test imported it, warns of every fork
            process = os.fork()
        if process == 0:  # another process
            try:
                from privug.checkpoints import append_only as module

                module._in_use.clear()
                run(tmp_path / "run")
                os._exit(1)
            except pv.CheckpointError:
                os._exit(0)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    finally:
        records.close()
    run(tmp_path / "run")


@pytest.mark.parametrize("content", [b"age,sex\n42,f\n", b"SQLite format 3\0", bytes(1000), MAGIC[:-2] + b"2\n"])
def test_files_of_another_kind_are_refused_and_left_alone(tmp_path, content):
    (tmp_path / "run").write_bytes(content)
    with pytest.raises(pv.CheckpointError, match="is not a checkpoint"):
        run(tmp_path / "run")
    assert (tmp_path / "run").read_bytes() == content


@pytest.mark.parametrize("path", ["", "missing/run", "x\0y", 3, b"run"])
def test_paths_that_are_none(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(pv.ArgumentError, match="checkpoint"):
        run(path)


def small():
    return attack(prior={"x": pv.DiscreteUniform(10, 99)})


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("written") / "run"
    expected = bits(run(path, small(), samples=120))
    return path.read_bytes(), expected


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_changed_byte_is_refused(written, tmp_path_factory, data):
    content, _ = written
    place = data.draw(st.integers(0, len(content) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != content[place]))
    path = tmp_path_factory.mktemp("changed") / "run"
    path.write_bytes(content[:place] + bytes([byte]) + content[place + 1 :])
    with pytest.raises(pv.CheckpointError):
        run(path, small(), samples=120)


@settings(max_examples=10, deadline=None)
@given(share=st.floats(0, 1))
def test_a_file_that_ends_too_soon_goes_on_from_its_last_whole_record(written, tmp_path_factory, share):
    content, expected = written
    path = tmp_path_factory.mktemp("cut") / "run"
    path.write_bytes(content[: int(share * len(content))])
    assert bits(run(path, small(), samples=120)) == expected
    assert path.read_bytes() == content


def limited_file_size(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def test_a_full_disk_ends_the_checkpoint_and_not_the_run(tmp_path, monkeypatch, blocks):
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.0)
    expected = bits(run(None))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    limited_file_size(20_000)
    try:
        with pytest.warns(pv.CheckpointWarning, match="could not be written any more"):
            result = run(tmp_path / "run")
    finally:
        limited_file_size(before)
    assert bits(result) == expected
    assert any("the run goes on without it" in remark for remark in result.diagnostics.remarks)
    computed = len(blocks) // 2
    blocks.clear()
    assert bits(run(tmp_path / "run")) == expected  # on from what could be written
    assert 0 < len(blocks) < computed


def test_time_that_is_up_leaves_a_checkpoint_to_go_on_from(tmp_path):
    def slow(x):
        total = 0
        for digit in str(int(x)) * 40:
            total += int(digit)
        return total

    of, options = attack(slow), {"samples": 3000}
    with pv.limited(native=False):
        expected = bits(run(None, of, **options))
        with contextlib.suppress(pv.OutOfTime):
            run(tmp_path / "run", of, seconds=0.4, **options)
        assert bits(run(tmp_path / "run", of, **options)) == expected


def released(epsilon):
    return pv.Attack(lambda x: x + pv.sample(pv.DiscreteLaplace(1 / epsilon)), {"x": pv.Bernoulli(0.5)}, "x")


def test_studies_keep_their_cells(tmp_path, monkeypatch):
    programs = {"plain": lambda x: x, "nothing": lambda x: 0}
    attackers = {"fair": {"x": pv.Bernoulli(0.5)}, "biased": {"x": pv.Bernoulli(0.9)}}

    def studies():
        swept = pv.sweep(released, epsilon=[0.5, 1.0], measures=["bayes_risk"], checkpoint=tmp_path / "sweep")
        compared = pv.compare(attackers=attackers, programs=programs, secret="x", checkpoint=tmp_path / "compare")
        chosen = pv.calibrate(
            released,
            measure="bayes_risk",
            at_least=0.4,
            epsilon=(0.1, 2),
            grid=3,
            tolerance=0.5,
            checkpoint=tmp_path / "c",
        )
        return swept, compared, chosen

    with pv.limited(workers=1, progress=False):
        first = studies()
        monkeypatch.setattr(Study, "outcome", None)
        assert studies() == first
        with pytest.raises(pv.CheckpointError, match="parameters differs"):
            pv.sweep(released, epsilon=[0.5, 2.0], measures=["bayes_risk"], checkpoint=tmp_path / "sweep")
        with pytest.raises(pv.CheckpointError, match="the study is 'sweep' in the file and 'comparison' here"):
            pv.compare(attackers=attackers, programs=programs, secret="x", checkpoint=tmp_path / "sweep")


def test_every_engine_may_be_given_a_checkpoint(tmp_path):
    of = pv.Attack(lambda x, y: x + y, {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}, "x")
    exact = run(tmp_path / "exact", of, pv.near(0.5, within=0.1), engine="exact")
    again = run(tmp_path / "exact", of, pv.near(0.5, within=0.1), engine="exact")
    total = scipy.stats.truncnorm(0.4 / math.sqrt(2), 0.6 / math.sqrt(2), scale=math.sqrt(2))  # the mean of x is half
    assert float(exact.posterior.mean()) == float(again.posterior.mean()) == pytest.approx(total.mean() / 2, rel=1e-9)
