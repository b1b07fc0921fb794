"""Programs as analysts write them: how they are lifted, and that all tiers give what Python gives."""

import math

import numpy as np
import pytest

import privug as pv
from corpus.programs import CORPUS, THEMES
from corpus.table import ALL_THEMES, PAGE, START, UPDATE, assert_told_in_the_docs, lifting_of
from privug.inference.question import Question
from privug.inference.sampling import draw
from privug.program import lifting
from privug.program.tracing import Trace

SAMPLES = 300


@pytest.fixture(autouse=True)
def _not_compiled():
    """What is not traced is called as it is: whether compiling it pays depends on the machine."""
    with pv.limited(native=False):
        yield


def same(left, right):
    """Floats equal up to 1e-9 relative, everything else exactly."""
    if isinstance(left, np.ndarray):
        left = left.tolist()
    if isinstance(right, np.ndarray):
        right = right.tolist()
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, float) or isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9) or (left != left and right != right)
    return left == right and isinstance(left, str) == isinstance(right, str)


def inputs_and_outputs(entry, exclude_errors, seed):
    prior = entry.prior()
    question = Question(entry.program, prior, secret=list(prior), exclude_errors=exclude_errors)
    run = draw(question, None, samples=SAMPLES, seed=seed)
    secret, output = run.quantities[0].values(), run.quantities[1].values()
    return question.case().lifting.tier, [
        (dict(zip(prior, s, strict=True)), o) for s, o in zip(secret, output, strict=True)
    ]


def by_name(entry):
    return entry.name


@pytest.mark.parametrize("entry", CORPUS, ids=by_name)
def test_tier_is_as_expected(entry):
    found = lifting_of(entry)
    assert found.tier == entry.tier, str(found)
    assert (found.reason is None) == (entry.tier == "traced")
    assert_told_in_the_docs(entry, found)


@pytest.mark.parametrize("entry", CORPUS, ids=by_name)
def test_the_best_tier_gives_what_python_gives(entry):
    tier, pairs = inputs_and_outputs(entry, entry.on_error == "exclude", seed=1)
    assert tier == ("traced" if entry.on_error == "exclude" else entry.tier)  # only errors kept those from being traced
    for inputs, output in pairs:
        assert same(entry.program(**inputs), output), (inputs, entry.program(**inputs), output)


@pytest.mark.parametrize("entry", CORPUS, ids=by_name)
def test_the_python_tier_gives_what_python_gives(entry, monkeypatch):
    monkeypatch.setattr(lifting, "trace", lambda *arguments: Trace(obstacle="a test forbids it"))
    tier, pairs = inputs_and_outputs(entry, True, seed=2)
    assert tier == "python"
    for inputs, output in pairs:
        assert same(entry.program(**inputs), output), (inputs, output)


def test_most_programs_are_traced():
    assert len(CORPUS) >= 64
    assert sum(entry.tier == "traced" for entry in CORPUS) >= 45


def test_every_program_is_described_once():
    names = [entry.name for entry in CORPUS]
    assert len(set(names)) == len(names)
    assert all("\n" not in entry.program.__doc__ for entry in CORPUS)
    assert sum(map(len, THEMES.values())) == len(CORPUS)


def test_the_table_in_the_docs_has_every_program():
    written = PAGE.read_text(encoding="utf-8").partition(START)[2]
    in_order = [line.split("`")[1] for line in written.splitlines() if line.startswith("| `")]
    assert in_order == [entry.name for entries in ALL_THEMES.values() for entry in entries], UPDATE
    assert [line[3:] for line in written.splitlines() if line.startswith("## ")] == list(ALL_THEMES), UPDATE
