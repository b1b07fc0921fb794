import sys
from pathlib import Path

import pytest

import privug as pv

sys.path.insert(0, str(Path(__file__).parent))  # tests share the oracles


@pytest.fixture(autouse=True)
def _quiet():
    """No progress lines in test output, and limits as they were after each test."""
    with pv.limited(progress=False):
        yield
