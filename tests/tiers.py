"""Two tiers of tests: `make test` runs the quick ones, `make test-all` the slow ones as well."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def tiered(values: Iterable[Any], is_slow: Callable[[Any], bool]) -> list[Any]:
    """Return what a test is run on; the slow ones are left to the second tier. One that is a tuple is several."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=[pytest.mark.slow] * is_slow(value))
        for value in values
    ]
