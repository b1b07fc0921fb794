"""Programs on polars frames as analysts write them: how they are lifted, and that all tiers give what polars gives."""

import polars as pl
import pytest

import privug as pv
from corpus.frames import EDGES
from corpus.polars_frames import POLARS_CORPUS, pl_sentence
from corpus.table import assert_told_in_the_docs, lifting_of
from privug.inference.question import Question
from privug.inference.sampling import draw
from privug.model.sparse import Labels
from privug.model.structure import flatten
from privug.prior.table import as_input
from privug.program import lifting
from privug.program.inputs import Arguments
from privug.program.outputs import settled
from privug.program.tracing import Trace
from test_corpus import same

pytestmark = pytest.mark.filterwarnings("ignore:.*cut.* is deprecated:DeprecationWarning")
TYPES = {"zip": pl.String, "cost": pl.Float64, "visit": pl.Date}  # also of columns in which all is missing


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
    return settled(entry.program(frame.cast({name: TYPES[name] for name in frame.columns if name in TYPES})))


def in_any_order(output):
    """Return a frame of groups with its rows in the order of their keys: polars gives them in any."""
    keys = [name for name in ("zip", "band") if isinstance(output, dict) and name in output]
    if len(keys) != 1 or not isinstance(output[keys[0]], list):
        return output
    labels = sorted({(label,) for label in output[keys[0]]}, key=lambda one: (one[0] is not None, one[0] or ""))
    return Labels((keys[0],), tuple(labels)).sorted(output)


UNORDERED = ("pl_means_by_zip", "pl_frequency_table", "pl_bands_by_when", "pl_by_zip_or_none")


def differences(entry, prior, samples, seed):
    """Return the lifting and the inputs on which the lifted program differs from a plain call."""
    question = Question(entry.program, prior, secret="df", exclude_errors=entry.on_error == "exclude")
    run = draw(question, None, samples=samples, seed=seed)
    arranged = in_any_order if entry.name in UNORDERED else lambda output: output
    pairs = zip(run.quantities[0].values(), run.quantities[1].values(), strict=True)
    calls = [
        (rows, arranged(plain_call(entry, question.prior["df"], rows)), arranged(output)) for rows, output in pairs
    ]
    return question.case().lifting, [call for call in calls if not same(call[1], call[2])]


@pytest.mark.parametrize("entry", POLARS_CORPUS, ids=by_name)
def test_the_best_tier_gives_what_polars_gives(entry):
    found, wrong = differences(entry, entry.prior(), samples=30, seed=1)
    assert found.tier == entry.tier, str(found)
    assert wrong == []
    assert_told_in_the_docs(entry, lifting_of(entry) if entry.on_error == "exclude" else found)


@pytest.mark.parametrize("entry", [entry for entry in POLARS_CORPUS if entry.program is not pl_sentence], ids=by_name)
def test_edge_values_give_what_polars_gives(entry):
    found, wrong = differences(entry, EDGES[entry.prior](), samples=30, seed=2)
    assert found.tier == entry.tier, str(found)
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("entry", POLARS_CORPUS, ids=by_name)
def test_the_best_tier_gives_what_polars_gives_on_more_tables(entry):
    assert differences(entry, entry.prior(), samples=80, seed=4)[1] == []


@pytest.mark.parametrize("entry", POLARS_CORPUS, ids=by_name)
def test_the_python_tier_gives_what_polars_gives(entry, monkeypatch):
    monkeypatch.setattr(lifting, "trace", lambda *arguments: Trace(obstacle="a test forbids it"))
    found, wrong = differences(entry, entry.prior(), samples=8, seed=3)
    assert found.tier == "python"
    assert wrong == []


def test_most_programs_are_traced():
    assert len(POLARS_CORPUS) >= 30
    assert sum(entry.tier == "traced" for entry in POLARS_CORPUS) >= 28
    assert len({entry.name for entry in POLARS_CORPUS}) == len(POLARS_CORPUS)
