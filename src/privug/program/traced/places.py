"""The order of a container's entries as part of what is published: fixed, or a place for each entry."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from privug.model.node import Array, ancestors
from privug.model.operations import ArrayFunction, array_function
from privug.model.plan import Plan
from privug.model.variable import RandomVariable, refuse, stack_values
from privug.program.logic import where
from privug.program.traced.masks import Mask

MOST_PLACED = 200


def fixed_order(ranks: Sequence[Any]) -> list[int] | None:
    """Return the positions of entries in the order of their ranks; None if that is random."""
    nodes = [rank.node for rank in ranks if isinstance(rank, RandomVariable)]
    if any(node.is_random for node in ancestors(nodes)) and len(ranks) > 1:
        return None
    known = iter(Plan(nodes).run(1, np.random.default_rng(0))) if nodes else iter(())
    values = [next(known)[0] if isinstance(rank, RandomVariable) else rank for rank in ranks]
    return sorted(range(len(values)), key=values.__getitem__)


def places_of(ranks: Sequence[Any], there: Sequence[Mask]) -> list[Any]:
    """Return how many entries stand before each one, by their ranks; -1 for one that is not there.

    These tell the order, and nothing else: ranks themselves may tell at which row an entry came in.
    """
    if len(ranks) > MOST_PLACED:
        refuse(f"the order of more than {MOST_PLACED} entries")
    keys = stack_values([where(mask, rank, np.inf) for rank, mask in zip(ranks, there, strict=True)])
    order = array_function(ArrayFunction("argsort", _in_turn), [keys])
    places = RandomVariable(array_function(ArrayFunction("argsort", _in_turn), [order]))
    return [where(mask, places[entry], -1) for entry, mask in enumerate(there)]


def _in_turn(keys: Array) -> Array:
    order: Array = np.argsort(keys, axis=-1, kind="stable")
    return order
