"""Programs on pandas frames as analysts write them: how they are lifted, and that all tiers give what pandas gives."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import privug as pv
from corpus import support_tables
from corpus.frames import EDGES, FRAME_CORPUS, large_groups_only, rate_of_inhabitants
from corpus.more_frames import MORE_THEMES
from corpus.table import assert_told_in_the_docs, lifting_of
from privug.inference.question import Question
from privug.inference.sampling import draw
from privug.model.structure import flatten
from privug.prior.table import as_input
from privug.program import lifting
from privug.program.inputs import Arguments
from privug.program.outputs import settled
from privug.program.tracing import Trace
from test_corpus import same

ALL = [*FRAME_CORPUS, *(entry for entries in MORE_THEMES.values() for entry in entries)]
NEVER = (large_groups_only, rate_of_inhabitants)  # have an answer if there is next to nothing


@pytest.fixture(autouse=True)
def _not_compiled():
    with pv.limited(native=False):
        yield


def by_name(entry):
    return entry.name


def plain_call(entry, records, rows):
    """Call a program as a user would, on the frame of some rows."""
    structure, leaves = flatten(as_input(records, rows))
    frame = next(Arguments(structure, tuple(leaves)).plain([], 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of divisions by zero
        return settled(entry.program(frame))


def differences(entry, prior, samples, seed):
    """Return the lifting and the inputs on which the lifted program differs from a plain call."""
    question = Question(entry.program, prior, secret="df", exclude_errors=entry.on_error == "exclude")
    run = draw(question, None, samples=samples, seed=seed)
    pairs = zip(run.quantities[0].values(), run.quantities[1].values(), strict=True)
    calls = [(rows, plain_call(entry, question.prior["df"], rows), output) for rows, output in pairs]
    return question.case().lifting, [call for call in calls if not same(call[1], call[2])]


@pytest.mark.parametrize("entry", ALL, ids=by_name)
def test_the_best_tier_gives_what_pandas_gives(entry):
    found, wrong = differences(entry, entry.prior(), samples=15, seed=1)
    assert found.tier == entry.tier, str(found)
    assert wrong == []
    assert_told_in_the_docs(entry, lifting_of(entry) if entry.on_error == "exclude" else found)


@pytest.mark.parametrize("entry", [entry for entry in ALL if entry.program not in NEVER], ids=by_name)
def test_edge_values_give_what_pandas_gives(entry):
    _, wrong = differences(entry, EDGES[entry.prior](), samples=8, seed=2)
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("entry", ALL, ids=by_name)
def test_the_best_tier_gives_what_pandas_gives_on_more_tables(entry):
    assert differences(entry, entry.prior(), samples=80, seed=4)[1] == []
    if entry.program not in NEVER:
        assert differences(entry, EDGES[entry.prior](), samples=30, seed=2)[1] == []


@pytest.mark.parametrize("entry", ALL, ids=by_name)
def test_the_python_tier_gives_what_pandas_gives(entry, monkeypatch):
    monkeypatch.setattr(lifting, "trace", lambda *arguments: Trace(obstacle="a test forbids it"))
    found, wrong = differences(entry, entry.prior(), samples=8, seed=3)
    assert found.tier == "python"
    assert wrong == []


def test_most_programs_are_traced():
    assert len(ALL) >= 100
    assert sum(entry.tier == "traced" for entry in ALL) >= 95
    assert len({entry.name for entry in ALL}) == len(ALL)


def test_the_page_of_supported_methods_is_that_of_the_code():
    """`python tests/corpus/support_tables.py` writes it anew."""
    # In a process of its own: what other tests register with polars would be among its methods.
    code = "from corpus import support_tables; print(support_tables.page(), end='')"
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    outcome = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True, env=environment
    )
    assert support_tables.PAGE.read_text(encoding="utf-8") == outcome.stdout
