"""Independent sums: sums over many equally distributed rows are replaced by quantities of their own.

A count over ten thousand rows depends on more states than can be listed, but has ten thousand values at most. The sum
becomes a root of the model whose distribution follows from what one row adds; what is left can be enumerated.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privug.inference.exact.finite.counting import SumLaw, sum_law
from privug.inference.exact.finite.plate_terms import RowLaw, row_law
from privug.inference.exact.finite.sum_roots import Shared, image_of, sum_root
from privug.inference.exact.request import Obstacle
from privug.inference.question import Case
from privug.inference.support import is_truncated, lost_in_each
from privug.model.graph import substitute
from privug.model.node import Array, ConstantValue, Node, ancestors
from privug.model.operations import ArrayFunction, Elementwise, Lookup, constant, elementwise
from privug.model.plates import Fold, Lane
from privug.model.structure import flatten
from privug.model.traits.traits import Connective, Traits
from privug.model.variable import RandomVariable, as_node
from privug.prior.conditional import Choose, Match
from privug.prior.family import Draw

MOST_SUMS = 3


@dataclass(frozen=True)
class RowSum:
    """A node that sums a term over the rows of a plate; `image` makes it of the whole-number sum."""

    node: Node
    term: Node
    lanes: tuple[Node, ...]
    columns: tuple[Node, ...]
    size: int
    traits: Traits


def reduced(case: Case, query: Any) -> tuple[Case, Any] | Obstacle:
    """Return the case and the query with sums over rows as roots of their own, or what stands in the way."""
    structure, leaves = flatten((case.secret, case.output, case.facts, query))
    targets = [as_node(leaf) for leaf in leaves if isinstance(leaf, RandomVariable)]
    sums = _row_sums(targets)
    if isinstance(sums, Obstacle):
        return sums
    replacements: dict[Node, Node] = {}
    for group in _groups(sums):
        images = _replaced(group)
        if isinstance(images, Obstacle):
            return images
        replacements.update(images)
    images_of = iter(substitute(targets, replacements))
    rest = [RandomVariable(next(images_of)) if isinstance(leaf, RandomVariable) else leaf for leaf in leaves]
    left = {id(node) for leaf in rest if isinstance(leaf, RandomVariable) for node in ancestors([leaf.node])}
    if any(id(column) in left for found in sums for column in found.columns):
        return Obstacle("the rows of its table are used in other ways than through sums")
    secret, output, facts, answer = structure.build(iter(rest))
    return replace(case, secret=secret, output=output, facts=facts), answer


def _row_sums(targets: Sequence[Node]) -> list[RowSum] | Obstacle:
    """Return the topmost sums over rows behind the targets."""
    found: dict[Node, RowSum] = {}
    pending, seen = list(targets), set[int]()
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        row_sum = _row_sum(node)
        if row_sum is None:
            pending.extend(node.parents)
        else:
            found[node] = row_sum
            inside = {id(column) for column in row_sum.columns}
            pending.extend(parent for parent in node.parents if id(parent) not in inside and not parent.shape)
    return list(found.values()) or Obstacle("it does not sum over rows that are alike", vague=True)


def _row_sum(node: Node) -> RowSum | None:
    operation = node.operation
    traits = operation.traits
    if isinstance(operation, Fold) and (traits.totals or traits.connective):
        term, lanes = _without_maps(operation.term, operation.lanes)
        return RowSum(node, term, lanes, _columns(lanes), operation.size, traits)
    adds = traits.adds_up or traits.connective
    if isinstance(operation, ArrayFunction) and adds and not node.shape:
        array = node.parents[0]
        element = _one_of(array, array.shape[0], {}) if len(array.shape) == 1 else None
        if element is None:
            return None
        term, lanes = _without_maps(element, tuple(n for n in ancestors([element]) if isinstance(n.operation, Lane)))
        return RowSum(node, term, lanes, _columns(lanes), array.shape[0], traits) if lanes else None
    return None


def _columns(lanes: Sequence[Node]) -> tuple[Node, ...]:
    return tuple(lane.operation.column for lane in lanes if isinstance(lane.operation, Lane))


def _one_of(array: Node, size: int, made: dict[Node, Node]) -> Node | None:
    """Return one element of an array that is computed element by element, in terms of lanes."""
    if array not in made:
        element = _element(array, size, made)
        if element is None:
            return None
        made[array] = element
    return made[array]


def _element(array: Node, size: int, made: dict[Node, Node]) -> Node | None:
    operation = array.operation
    if not array.shape:
        return array
    if array.shape != (size,):
        return None
    if isinstance(operation, Draw):
        return Node(Lane(array), (), (), array.dtype, array.levels, array.kind)
    if isinstance(operation, ConstantValue):
        equal = bool(np.all(operation.array == operation.array.reshape(-1)[0]))
        return constant(operation.array.reshape(-1)[0]) if equal and array.levels is None else None
    if isinstance(operation, Fold) and operation.how == "map":
        columns = [_one_of(column, size, made) for column in array.parents[: len(operation.lanes)]]
        if any(column is None for column in columns):
            return None
        lanes = {lane: column for lane, column in zip(operation.lanes, columns, strict=True) if column is not None}
        return substitute([operation.term], lanes)[0]
    if isinstance(operation, Elementwise | Lookup | Choose | Match):
        parents = [_one_of(parent, size, made) for parent in array.parents]
        known = [parent for parent in parents if parent is not None]
        if len(known) < len(parents):
            return None
        if isinstance(operation, Elementwise):
            return elementwise(operation, known)
        return Node(operation, tuple(known), (), array.dtype, array.levels, array.kind)
    return None


def _without_maps(term: Node, lanes: tuple[Node, ...]) -> tuple[Node, tuple[Node, ...]]:
    """Express a term in cells that are drawn, not computed from other cells of the row."""
    made: dict[Node, Node] = {}
    images: dict[Node, Node] = {}
    for lane in lanes:
        assert isinstance(lane.operation, Lane)
        column = lane.operation.column
        if isinstance(column.operation, Draw):
            made[column] = lane
    for lane in lanes:
        assert isinstance(lane.operation, Lane)
        element = _one_of(lane.operation.column, lane.operation.column.shape[0], made)
        if element is not None and element is not lane:
            images[lane] = element
    expressed = substitute([term], images)[0]
    left = tuple(node for node in ancestors([expressed]) if isinstance(node.operation, Lane))
    return expressed, left


def _groups(sums: Sequence[RowSum]) -> list[list[RowSum]]:
    """Put sums over the same columns together."""
    groups: list[list[RowSum]] = []
    for row_sum in sums:
        own = set(row_sum.columns)
        joined = [group for group in groups if any(own & set(other.columns) for other in group)]
        merged = [row_sum, *(other for group in joined for other in group)]
        groups = [group for group in groups if group not in joined] + [merged]
    return groups


def _replaced(group: Sequence[RowSum]) -> dict[Node, Node] | Obstacle:
    """Return the images of sums over the same rows, in terms of one new root."""
    if len(group) > MOST_SUMS:
        return Obstacle(f"it needs {len(group)} sums over the same rows at once (the limit is {MOST_SUMS})")
    terms, lanes, columns = _together(group)
    law = row_law(terms, lanes, columns)
    if isinstance(law, Obstacle):
        return law
    whole = np.rint(law.values.astype(float))
    if not np.all(np.abs(whole - law.values) <= 1e-12):
        return Obstacle("its sums are not of whole numbers", vague=True)
    laws = [sum_law(whole.astype(np.int64), line, group[0].size) for line in law.probabilities]
    if any(found is None for found in laws):
        return Obstacle("its sums over the same rows have too many values together")
    tails = group[0].size * sum(map(is_truncated, columns)) * lost_in_each()
    return _images(group, law, [found._replace(lost=found.lost + tails) for found in laws if found is not None])


def _together(group: Sequence[RowSum]) -> tuple[list[Node], list[Node], list[Node]]:
    """Return the terms of several sums as functions of the same lanes; a term counts how often `any` and `all` fail."""
    lanes: dict[Node, Node] = {}
    terms: list[Node] = []
    for row_sum in group:
        images = {lane: lanes.setdefault(c, lane) for lane, c in zip(row_sum.lanes, row_sum.columns, strict=True)}
        term = RandomVariable(substitute([row_sum.term], {a: b for a, b in images.items() if a is not b})[0])
        if row_sum.traits.truth and term.node.dtype != bool:
            term = term != 0
        terms.append((~term if row_sum.traits.connective is Connective.AND else term).node)
    return terms, list(lanes.values()), list(lanes)


def _images(group: Sequence[RowSum], law: RowLaw, laws: Sequence[SumLaw]) -> dict[Node, Node]:
    root, everything = sum_root(laws, Shared(law.shared, law.supports, law.classes))
    images: dict[Node, Node] = {}
    for position, row_sum in enumerate(group):
        total = everything[:, position]
        table: Array = total
        if row_sum.traits.truth:
            table = (total > 0) if row_sum.traits.connective is Connective.OR else (total == 0)
        elif row_sum.traits.averages:
            table = total / row_sum.size
        images[row_sum.node] = image_of(root, table.astype(row_sum.node.dtype))
    return images
