"""A person and the other rows of a table, where all rows are independent of one another."""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.digits import how_many
from privug.errors import ArgumentError
from privug.inference.exact.finite.states import CERTAIN, Roots
from privug.model.node import Array, Node, ancestors
from privug.model.plan import Plan
from privug.model.table import Row
from privug.model.variable import RandomVariable
from privug.prior.plating import nodes_of
from privug.prior.table import Records
from privug.reidentification.laws import Coding, NoClosedForm, RowLaw

MOST_KINDS = 400
MOST_SIZES = 100_000

Person = int | Mapping[str, Any] | str | None


@dataclass(frozen=True, eq=False)
class Scene:
    """A person and the kinds of the other rows.

    A line of `counts` says how many others there are of each kind, and `chances` how likely that is.
    """

    weight: float
    person: RowLaw
    kinds: tuple[RowLaw, ...]
    counts: Array
    chances: Array


def scenes_of(records: Records, person: Person, coding: Coding) -> list[Scene]:
    """Return the scenes of a table that together make up the attacker's prior, with their probabilities as weights."""
    sizes, chances = _sizes(records)
    first = person if isinstance(person, int) else 0
    there = sizes > first
    if not there.any():
        raise ArgumentError(
            f"person must be the position of a row: the table has at most {how_many(sizes.max(), 'row')}"
        )
    sizes, chances = sizes[there], chances[there] / chances[there].sum()
    kinds, kind_of_row = _kinds(records, int(sizes.max()), coding)
    counts = np.zeros((len(sizes), len(kinds)), np.int64)
    for line, size in enumerate(sizes):
        if kind_of_row is None:
            counts[line, 0] = size
        else:
            counts[line] = np.bincount(kind_of_row[:size], minlength=len(kinds))
    if person == "anyone":
        if len(kinds) > MOST_KINDS // 4:
            raise NoClosedForm(f"its rows have more than {MOST_KINDS // 4} different distributions")
        return _anyone(kinds, counts, chances)
    own = 0 if kind_of_row is None else int(kind_of_row[first])
    counts[:, own] -= 1
    law = kinds[own].knowing(person, coding) if isinstance(person, Mapping) else kinds[own]
    return [_scene(1.0, law, kinds, counts, chances)]


def _scene(weight: float, person: RowLaw, kinds: tuple[RowLaw, ...], counts: Array, chances: Array) -> Scene:
    """Make a scene of those kinds of rows that there are."""
    there: Array = np.asarray(counts.any(axis=0))
    there[0] |= not there.any()
    kept = tuple(kind for kind, is_there in zip(kinds, there, strict=True) if is_there)
    return Scene(weight, person, kept, counts[:, there], chances)


def _anyone(kinds: tuple[RowLaw, ...], counts: Array, chances: Array) -> list[Scene]:
    """Return a scene for each kind that a person taken at random can be of."""
    shares = chances[:, None] * counts / counts.sum(axis=1, keepdims=True)
    scenes = []
    for own, law in enumerate(kinds):
        weight = float(shares[:, own].sum())
        possible = shares[:, own] > 0
        others = counts[possible].copy()
        others[:, own] -= 1
        scenes.append(_scene(weight, law, kinds, others, shares[possible, own] / weight))
    return scenes


def _sizes(records: Records) -> tuple[Array, Array]:
    if not isinstance(records.size, RandomVariable):
        return np.array([records.size]), np.ones(1)
    node = records.size.node
    roots = Roots([node])
    if roots.endless is not None or roots.count(MOST_SIZES) > MOST_SIZES:
        raise NoClosedForm("the size of the table has too many values to list")
    found: Counter[int] = Counter()
    for states in roots.blocks(CERTAIN, MOST_SIZES + 1):
        values = Plan([node], roots.nodes).run(len(states), np.random.Generator(np.random.SFC64(0)), states.arrays)[0]
        for value, weight in zip(values.tolist(), states.weights.tolist(), strict=True):
            found[value] += weight
    return np.array(list(found)), np.array(list(found.values()))


def _kinds(records: Records, size: int, coding: Coding) -> tuple[tuple[RowLaw, ...], Array | None]:
    """Return the distinct distributions of rows, and which of them each row has; None if there is only one."""
    if records.template is not None:
        two = Records(2, records.template)
        _check_independence(records, two.alike().share_roots, two.table()[0])
        return (RowLaw.of(two.table()[0], coding),), None
    rows = records.table(size)
    likeness = records.alike(size)
    numbers: dict[Hashable, int] = {}
    kind_of_row = np.empty(size, np.int64)
    examples: list[Row] = []
    for position, (row, signature) in enumerate(zip(rows, likeness.signatures, strict=False)):
        key: Hashable = (signature if signature is not None or not nodes_of(row) else position, _plain_cells(row))
        if key not in numbers:
            numbers[key] = len(numbers)
            examples.append(row)
        kind_of_row[position] = numbers[key]
    if len(examples) > MOST_KINDS:
        raise NoClosedForm(f"its rows have more than {MOST_KINDS} different distributions")
    _check_independence(records, likeness.share_roots, *examples)
    return tuple(RowLaw.of(row, coding) for row in examples), kind_of_row


def _plain_cells(row: Row) -> Hashable:
    return tuple(value for value in row if not isinstance(value, RandomVariable))


def _check_independence(records: Records, share_roots: bool, *rows: Row) -> None:
    sized_by: list[Node] = [records.size.node] if isinstance(records.size, RandomVariable) else []
    behind_size = {id(node) for node in ancestors(sized_by) if node.is_random}
    behind_rows = {id(node) for row in rows for node in ancestors(nodes_of(row)) if node.is_random}
    if share_roots or not behind_size.isdisjoint(behind_rows):
        raise NoClosedForm("its rows depend on one another")
