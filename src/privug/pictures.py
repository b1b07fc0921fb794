"""The way to the package that draws, which needs matplotlib and is imported when a picture is asked for."""

import importlib
from typing import Any

from privug.errors import ArgumentError


def plots() -> Any:
    """Return the module that draws."""
    try:
        return importlib.import_module("privug.report.plots")
    except ImportError:
        raise ArgumentError("plot needs matplotlib: pip install 'privug[plot]'") from None
