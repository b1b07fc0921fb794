"""Samples of a run as arrays of chains by draws, as other libraries want them: numbers only, all equally likely."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from privug.inference.belief import Belief
from privug.model.batch import Batch, Column
from privug.model.node import Array
from privug.observation.observations import Between, Equals, Near, Noisy, Observation, Structured


def that_input(name: str) -> Callable[..., Any]:
    """Return a query that asks for an input as it is."""

    def query(value: Any) -> Any:
        return value

    only = inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    query.__signature__ = inspect.Signature([only])  # type: ignore[attr-defined]
    return query


def chain_by_chain(quantities: Mapping[str, Batch], weights: Array | None, chains: int) -> dict[str, Array]:
    """Return quantities of a run; weighted samples are drawn anew by their weights, the same ones of each."""
    samples = len(next(iter(quantities.values())))
    chosen = np.arange(samples) if weights is None else _by_weight(weights, chains)
    found: dict[str, Array] = {}
    for name, batch in quantities.items():
        found |= _numbers(name, batch.take(chosen))
    return {name: array.reshape(chains, -1, *array.shape[1:]) for name, array in found.items()}


def _by_weight(weights: Array, chains: int) -> Array:
    rng = np.random.default_rng(0)
    length = len(weights) // chains
    parts = [weights[chain * length : (chain + 1) * length] for chain in range(chains)]
    return np.concatenate(
        [chain * length + rng.choice(length, length, p=part / part.sum()) for chain, part in enumerate(parts)]
    )


def drawn_from(beliefs: Mapping[str, Belief], samples: int) -> dict[str, Array]:
    """Return independent draws of some beliefs, as one chain."""
    found: dict[str, Array] = {}
    for name, belief in beliefs.items():
        values = belief.samples(samples)
        found |= _numbers(name, Batch.of_values(values))
    return {name: array[np.newaxis] for name, array in found.items()}


def _numbers(name: str, batch: Batch) -> dict[str, Array]:
    columns = {name if len(batch.columns) == 1 else f"{name}[{k}]": c for k, c in enumerate(batch.columns)}
    return {label: column.array for label, column in columns.items() if _is_number(column)}


def _is_number(column: Column) -> bool:
    return column.levels is None and column.array.dtype.kind in "bif"


def observed_values(observation: Observation | None) -> dict[str, Array]:
    """Return the numbers that were seen: a value, or the two ends between which it lies."""
    match observation:
        case Equals(value=value) if isinstance(value, int | float):
            return {"output": np.array(value)}
        case Near(value=value) | Noisy(value=value):
            return {"output": np.array(value)}
        case Between(low=low, high=high):
            return {"output": np.array([low, high])}
        case Structured(parts=parts):
            nested = {f"[{key!r}]": observed_values(part) for key, part in parts.items()}
            return {f"output{key}": array for key, found in nested.items() for array in found.values()}
    return {}
