"""Random dictionary keys and set elements: the plain values they may have, and when."""

from typing import Any

from privug.model.categories import constant_category, map_levels, map_pairs
from privug.model.conditions import Mask, either
from privug.model.node import Node
from privug.model.variable import RandomVariable, as_node, refuse
from privug.program.logic import where
from privug.program.traced.listing import PossibleValues

MOST_KEYS = 64


def has_random(value: Any) -> bool:
    """Say whether a key is random or a tuple with something random in it."""
    return isinstance(value, RandomVariable) or (isinstance(value, tuple) and any(map(has_random, value)))


def alternatives(key: Any) -> dict[Any, Mask]:
    """Return the plain values a key may have, each with the condition under which it has it."""
    if not has_random(key):
        return {key: True}
    category = _category(key)
    hits: dict[Any, Mask] = {}
    for value in possible_values(category):
        hits[value] = either(hits.get(value, False), category == value)
    return hits


def possible_values(value: RandomVariable) -> list[Any]:
    """Return the plain values that a quantity may have."""
    node, found = value.node, PossibleValues().values(value.node)
    if found is None or len(found) > MOST_KEYS:
        refuse("a random dictionary key or set element whose possible values are not known")
    values: list[Any] = found.tolist() if node.levels is None else [node.levels[code] for code in found]
    if any(one != one for one in values):
        refuse("NaN as a dictionary key or set element")
    return values


def positioned(key: Any, position: int, length: int) -> Mask:
    """Return when a random subscript means a position, counted from either end."""
    return (key == position) | (key == position - length)


def _category(key: Any) -> RandomVariable:
    """Return a random key as one quantity: tuples as the category of all their combinations."""
    if isinstance(key, RandomVariable):
        return key
    joined = as_node(())
    for part in key:
        node = _as_single(_category(part)) if has_random(part) else as_node((part,))
        joined = map_pairs(joined, node, lambda left, right: (*left, *right))
    return RandomVariable(joined)


def _as_single(part: RandomVariable) -> Node:
    """Return a part of a tuple as a category of tuples of one: of a number, those of the values that it may have."""
    if part.node.levels is not None:
        return map_levels(part.node, lambda level: (level,))
    first, *others = possible_values(part)
    found = RandomVariable(constant_category((first,)))
    for value in others:
        found = where(part == value, RandomVariable(constant_category((value,))), found)
    return found.node
