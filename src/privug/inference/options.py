"""The options of a run, checked."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from privug.arguments import LARGEST, MOST_SAMPLES, is_number, shown
from privug.errors import ArgumentError, QuestionError


def checked_options(*, samples: Any, seed: Any, budget: Any) -> dict[str, Any]:
    """Return what every engine is told, as plain whole numbers."""
    checked_whole("samples", samples, 1, MOST_SAMPLES)
    checked_whole("seed", seed, 0)
    if budget is not None:
        checked_whole("budget", budget, 1)
    return {"samples": int(samples), "seed": int(seed), "budget": budget}


def checked_whole(label: str, number: Any, least: int, most: float = math.inf) -> int:
    """Return a whole number within limits."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or not least <= number <= most:
        limits = f"{least} or more" if most == math.inf else f"from {least} to {most:,}"
        raise ArgumentError(f"{label} must be a whole number, {limits}, not {shown(number)}")
    return int(number)


def positive(name: str, value: Any, example: str) -> float | None:
    """Return a positive number, if one was given."""
    if value is None:
        return None
    if not is_number(value) or not 0 < value <= LARGEST:
        raise ArgumentError(f"{name} must be a positive number, such as {example}, not {shown(value)}")
    return float(value)


def checked_facts(assume: Any) -> tuple[Callable[..., Any], ...]:
    """Return predicates on the inputs, of which there may be one."""
    facts = (assume,) if callable(assume) else assume
    if not isinstance(facts, list | tuple) or not all(callable(fact) for fact in facts):
        raise QuestionError(f"assume must be a predicate on the inputs, or a list of them, not {shown(assume)}")
    return tuple(facts)
