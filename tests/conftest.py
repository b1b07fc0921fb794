import datetime
import gc
import importlib.util
import os
import sys
from pathlib import Path

# Workers of pytest share the processors: threads of libraries inside of each would only wait for one another.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(variable, "1")

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

import privug as pv  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))  # tests share the oracles
settings.register_profile("fixed", derandomize=True, deadline=None)  # the same examples every time
settings.load_profile("fixed")


@pytest.fixture(autouse=True)
def _quiet():
    """No progress lines in test output, and limits as they were after each test."""
    with pv.limited(progress=False):
        yield


@pytest.fixture(autouse=True)
def _no_contradiction(monkeypatch):
    """A draw that contradicts an exact answer is a failure, whichever engine would serve then."""

    def contradiction(request, what):
        pytest.fail(f"draws contradict an exact answer of {request}: {what}")

    monkeypatch.setattr("privug.inference.exact.engine.contradiction", contradiction)


def pytest_configure(config):
    """Note that ArviZ was imported today, before workers that do so at once take the note from each other."""
    if not hasattr(config, "workerinput") and importlib.util.find_spec("arviz") is not None:
        folder = Path(importlib.import_module("platformdirs").user_cache_dir("arviz", "arviz"))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "daily_warning").write_text(datetime.date.today().isoformat())


def pytest_collection_finish():
    """Spare the garbage collector from looking through all that was imported and collected, again and again."""
    gc.collect()
    gc.freeze()
