"""The worst case: the largest belief that any output leads to, found, proven, or promised by a mechanism."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from privug.attack import Attack
from privug.estimate import Estimate
from privug.leakage.vulnerability import bayes_vulnerability, max_posterior_belief
from privug.mechanisms.mechanism import promised
from privug.model.framed import rows_of
from privug.model.node import Kind, Node, ancestors
from privug.model.operations import Index
from privug.model.plated_tables import PlatedTable
from privug.model.plates import Plate
from privug.model.structure import random_leaves
from privug.model.table import Table
from privug.model.variable import RandomVariable
from privug.policy import clauses
from privug.policy.clause_questions import RunOptions, asked
from privug.policy.output_levels import output_levels
from privug.prior.family import Draw


def promised_belief(attack: Attack, before: float) -> float:
    """Return what the belief in a statement about the secret cannot exceed, whatever is seen; 1 if nothing is promised.

    An output of an epsilon-differentially private mechanism changes the odds of what is true of one row by at most
    exp(epsilon), and of what k rows depend on by exp(k epsilon): p becomes at most p e / (1 - p + p e). This holds if
    the other rows do not depend on those (Kifer and Machanavajjhala, TODS 2014): dependent rows are counted.
    """
    promise = promised(attack.question.program)
    if promise.delta > 0 or math.isinf(promise.epsilon):
        return 1.0
    rows = rows_behind_secret(attack)
    if rows is None or not 0 < before < 1:
        return before if before == 0 else 1.0
    return 1 / (1 + (1 - before) / before * math.exp(-promise.group(max(rows, 1)).epsilon))


def rows_behind_secret(attack: Attack) -> int | None:
    """Return how many rows of a table change if what the secret depends on changes; None if that is not known."""
    question = attack.question
    if question.facts:  # these tie rows together
        return None
    case = question.case(question.typical_sizes)
    order = ancestors([leaf.node for leaf in random_leaves(case.secret)])
    draws = {node for node in order if isinstance(node.operation, Draw)}
    known: set[Node] = set()
    touched = 0
    for cells, size in _people(case.inputs.values()):
        behind = {n for n in ancestors([leaf.node for leaf in random_leaves(cells)]) if isinstance(n.operation, Draw)}
        known |= behind
        if draws & behind:
            touched += 1 if size is None else _rows_among(size, order, draws & behind)
    return touched if draws <= known else None  # what stands in no row may be anybody's


def _people(inputs: Iterable[Any]) -> Iterator[tuple[list[Any], int | None]]:
    """Yield the cells of each row, or the columns of many rows that are alike, with their number."""
    for value in inputs:
        table = rows_of(value)
        if isinstance(table, RandomVariable) and len(table.node.shape) == 1:
            yield [table], table.node.shape[0]
        elif isinstance(table, Table):
            for segment in table.segments if isinstance(table, PlatedTable) else list(table):
                yield (list(segment.cells), segment.size) if isinstance(segment, Plate) else (list(segment), None)


def _rows_among(size: int, order: list[Node], draws: set[Node]) -> int:
    """Return of how many among many rows a secret takes single cells; all of them if it depends on them otherwise."""
    positions: set[int] = set()
    if any(draw.shape != (size,) for draw in draws):  # what all rows depend on
        return size
    for node in order:
        if not any(parent in draws for parent in node.parents):
            continue
        if not isinstance(node.operation, Index) or len(node.operation.key) != 1:
            return size
        positions.add(int(node.operation.key[0]) % size)
    return len(positions)


def worst_belief(attack: Attack, predicate: Callable[[Any], Any], options: Mapping[str, Any]) -> Estimate:
    """Return the largest probability that an attacker can come to give to a statement about the secret.

    That is the maximum over all outputs of P(statement | output). It is exact, or proven to some digits, where the
    posteriors of all outputs are known. Elsewhere what was found is a lower bound, and what the mechanism promises an
    upper one: then the interval reaches from the one to the other, and the value is its upper end.
    """
    clause = clauses.belief(predicate, at_most=1.0)
    question = asked(attack, clause)
    run_options = RunOptions(**options)
    result = run_options.run(question, None)
    found = output_levels(question, clause, result, run_options).sup()
    return _with_promise(question, found, result.prior.probability(bool))


def worst_guess(attack: Attack, options: Mapping[str, Any]) -> Estimate:
    """Return the largest probability that an attacker can come to give to any single value of the secret."""
    run_options = RunOptions(**options)
    result = run_options.run(attack, None)
    if result.joint.secret.kind is Kind.CONTINUOUS:
        return max_posterior_belief(result.joint)
    found = output_levels(attack, clauses.max_belief(at_most=1.0), result, run_options).sup()
    return _with_promise(attack, found, bayes_vulnerability(result.prior))


def _with_promise(question: Attack, found: Estimate, before: Estimate) -> Estimate:
    """Return the estimate with the upper end that the mechanism promises, unless that is known to be false."""
    if found.high < 1.0 or found.exact:
        return found
    # On average over outputs the belief stays what it was, so that some output leaves it at least as large.
    found = replace(found, value=max(found.value, before.value), low=max(found.low, before.low))
    bound = promised_belief(question, before.high)
    if bound >= 1.0:
        return found
    if found.low > bound:
        told = f"{found.method}, and more than the mechanism promises ({bound:.4g}): check its sensitivity"
        return replace(found, method=told)
    return Estimate(bound, found.low, bound, method="upper bound: what the mechanism promises")
