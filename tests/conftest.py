import sys
from pathlib import Path

import pytest
from hypothesis import settings

import privug as pv

sys.path.insert(0, str(Path(__file__).parent))  # tests share the oracles
settings.register_profile("fixed", derandomize=True, deadline=None)  # the same examples every time
settings.load_profile("fixed")


@pytest.fixture(autouse=True)
def _quiet():
    """No progress lines in test output, and limits as they were after each test."""
    with pv.limited(progress=False):
        yield
