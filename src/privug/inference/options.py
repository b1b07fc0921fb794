"""The options of a run, checked."""

from typing import Any

import numpy as np

from privug.arguments import LARGEST, is_number, shown
from privug.errors import ArgumentError


def checked_options(*, samples: Any, seed: Any, budget: Any) -> dict[str, Any]:
    """Return what every engine is told, as plain whole numbers."""
    for label, number, least in (("samples", samples, 1), ("seed", seed, 0), ("budget", budget, 1)):
        if number is None and label == "budget":
            continue
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < least:
            raise ArgumentError(f"{label} must be a whole number, {least} or more, not {shown(number)}")
    return {"samples": int(samples), "seed": int(seed), "budget": budget}


def positive(name: str, value: Any, example: str) -> float | None:
    """Return a positive number, if one was given."""
    if value is None:
        return None
    if not is_number(value) or not 0 < value <= LARGEST:
        raise ArgumentError(f"{name} must be a positive number, such as {example}, not {shown(value)}")
    return float(value)
