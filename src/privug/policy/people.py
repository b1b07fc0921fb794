"""People who are alike: whom a policy for everyone has to be checked for."""

from typing import Any

from privug.attack import Attack
from privug.inference.question import Case
from privug.model.framed import rows_of
from privug.model.node import Node, ancestors
from privug.model.operations import Index
from privug.model.plated_tables import PlatedTable
from privug.model.plates import Fold, Plate
from privug.model.structure import random_leaves
from privug.model.traits import Scope
from privug.policy.clause_questions import listed_people, number_of_people
from privug.policy.policies import Clause


def people_apart(attack: Attack, clause: Clause) -> list[int | None]:
    """Return whom to ask about: nobody in particular, or one of each kind of people that the program treats alike.

    Rows of a table are alike if they are independent copies of one another in the prior and if neither the program nor
    the facts tell them apart: all that is computed of their columns are sums, counts, extremes and the like over all
    of them, which stay the same if two rows change places.
    """
    if clause.for_each is None:
        return [None]
    count = number_of_people(attack, clause)
    question = attack.question
    case = question.case()
    plate_of = _plates_told_apart_by_nothing(case)
    kinds: dict[Any, int] = {}
    for person, secret in enumerate(listed_people(question, clause.for_each)):
        kinds.setdefault(_kind_of(secret, plate_of) or person, person)
    assert len(kinds) <= count
    return list(kinds.values())


def _plates_told_apart_by_nothing(case: Case) -> dict[Node, Plate]:
    """Return the columns of rows that output and facts treat alike, each with its rows."""
    targets = [leaf.node for leaf in random_leaves((case.output, case.facts))]
    order = ancestors(targets)
    found: dict[Node, Plate] = {}
    for value in case.inputs.values():
        table = rows_of(value)
        for plate in table.segments if isinstance(table, PlatedTable) else ():
            if isinstance(plate, Plate):
                columns = [leaf.node for leaf in random_leaves(list(plate.cells)) if leaf.node.shape == (plate.size,)]
                if _treats_alike(order, targets, columns):
                    found |= dict.fromkeys(columns, plate)
    return found


def _treats_alike(order: list[Node], targets: list[Node], columns: list[Node]) -> bool:
    """Return whether nothing among the targets changes if two rows of some columns change places."""
    by_row = set(columns)  # what has one number for each row, in the order of the rows
    for node in order:
        if node in by_row or by_row.isdisjoint(node.parents):
            continue
        if _keeps_rows(node, by_row):
            by_row.add(node)
        elif not _folds_rows(node, by_row):
            return False
    return by_row.isdisjoint(targets)


def _keeps_rows(node: Node, by_row: set[Node]) -> bool:
    operation = node.operation
    if isinstance(operation, Fold):
        return operation.keeps_rows and by_row.isdisjoint(node.parents[len(operation.lanes) :])
    elementwise = operation.traits.scope is Scope.ELEMENTWISE
    return elementwise and all(parent in by_row or parent.shape == () for parent in node.parents)


def _folds_rows(node: Node, by_row: set[Node]) -> bool:
    operation = node.operation
    if isinstance(operation, Fold):
        return not operation.keeps_rows and by_row.isdisjoint(node.parents[len(operation.lanes) :])
    traits = operation.traits
    any_order = traits.scope is Scope.FOLD and (traits.folds is not None or traits.ranks)
    return any_order and node.shape == () and len(node.parents) == 1


def _kind_of(secret: Any, plate_of: dict[Node, Plate]) -> Any:
    """Return what people have in common whose secrets are the same cells of rows that are alike; None if nothing."""
    cells = [_cell(leaf.node) for leaf in random_leaves(secret)]
    plates = {id(plate_of.get(column)) for column, _ in cells if column is not None}
    positions = {position for _, position in cells}
    if any(column not in plate_of for column, _ in cells) or len(plates) != 1 or len(positions) != 1:
        return None
    return tuple(id(column) for column, _ in cells)


def _cell(node: Node) -> tuple[Node | None, int]:
    """Return the column that a node is a cell of, and its position there, through columns put one after another."""
    if not isinstance(node.operation, Index) or len(node.operation.key) != 1 or len(node.parents[0].shape) != 1:
        return None, 0
    column, position = node.parents[0], int(node.operation.key[0]) % node.parents[0].shape[0]
    while column.operation.traits.joins and all(len(part.shape) == 1 for part in column.parents):
        for part in column.parents:
            if position < part.shape[0]:
                column = part
                break
            position -= part.shape[0]
    return column, position
