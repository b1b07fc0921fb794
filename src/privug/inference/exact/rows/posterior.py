"""What is known of a row, of what all rows share, or of the whole table, given what was seen."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from privug.inference.density import followed, panel_nodes, resolved
from privug.inference.exact.rows.cells import Row, SeveralContinuous, Term
from privug.inference.exact.rows.likelihood import RowLikelihood
from privug.inference.exact.rows.model import UNLIKELY, Given, Piece, conditioned
from privug.inference.exact.rows.order.counted import Counted
from privug.inference.exact.rows.order.several import Several
from privug.inference.exact.rows.outcomes import Outcomes
from privug.inference.exact.rows.quadrature import curve_of, quadrature
from privug.inference.exact.rows.reaching import Reaching
from privug.inference.exact.rows.reductions import NotRows
from privug.inference.exact.rows.specialisation import is_known, specialised
from privug.model.node import Array, Node, ancestors
from privug.prior.family import family_of


def posterior(given: Given, asked: Sequence[Node]) -> Iterator[Piece]:
    """Yield what is known of a row, given what was seen: its cells with weights, and the number in each."""
    if given.unknown is not None:
        return _over_unknown(given, asked)
    if given.model.is_of_table(asked):
        return _of_table(given, asked)
    if any(len(family.picks) > 1 for family in given.model.families):
        return Several(given, asked).pieces()
    row = given.model.exposed(asked)
    family = None if row is None else given.orders.family(row)
    if row is not None and family is not None:
        return Counted(given, family, row, asked).pieces()
    return _of_row(given, row, asked)


def _of_row(given: Given, row: Row | None, asked: Sequence[Node]) -> Iterator[Piece]:
    try:
        cells = [given.alone(asked)] if row is None else given.cells(row, asked)
    except SeveralContinuous as problem:
        yield from _one_by_one(given, asked, problem)
        return
    tally = given.tally(row)
    reach = Reaching(tally, cells).reach
    for cell in cells:
        likelihood = RowLikelihood(tally, cell, given.pullback, given.discrete, reach)
        yield from conditioned(cell, likelihood)


def _one_by_one(given: Given, asked: Sequence[Node], problem: SeveralContinuous) -> Iterator[Piece]:
    """Yield what is known of a row with several continuous quantities, one of which is then taken as known."""
    behind = [node for node in ancestors(asked) if node.is_random and node not in given.known]
    endless = [root for root in behind if not family_of(root).listable]
    if len(behind) != 1 or not endless or not all(map(is_known, endless[0].parents)):
        raise NotRows(str(problem), problem.node)
    yield from posterior(Given(given.model, given.known, endless[0]), asked)


def _of_table(given: Given, asked: Sequence[Node]) -> Iterator[Piece]:
    """Yield what is known of a function of the whole table."""
    tally, cell = given.tally(None), given.alone(())
    reach = Reaching(tally, [cell]).reach
    likelihood = RowLikelihood(tally, cell, given.pullback, given.discrete, reach, by_key=True)
    outcomes = Outcomes(specialised(asked, given.known), given.model.sum_nodes)
    for one in likelihood.by_order():
        for group, weight in one.by_group():
            if weight > 0:
                outcome = outcomes.at(group.key, reach)
                if not outcome.is_certain:
                    raise NotRows("the secret is a continuous function of the whole table")
                terms = tuple(Term(0.0, float(value)) for value in outcome.label)  # type: ignore[arg-type]
                yield Piece(weight, replace(cell, asked=terms), None, one.density)


def _over_unknown(given: Given, asked: Sequence[Node]) -> Iterator[Piece]:
    """Yield what is known if rows share a continuous quantity, which is integrated over or asked for."""
    assert given.unknown is not None
    if _uses(asked, given.unknown):
        row = Row((), (given.unknown,), 1)
        for cell in given.cells(row, asked):
            assert cell.curve is not None
            if not given.model.told:
                yield Piece(cell.weight, cell, cell.curve)
                continue
            share, found = cell.curve.reweighted(lambda values: _evidence(given, values))
            if found is not None and share > 0:
                yield Piece(cell.weight * share, cell, found)
        return
    for weight, inner in integrated(given):
        for piece in posterior(inner, asked):
            yield replace(piece, weight=weight * piece.weight)


def _uses(asked: Sequence[Node], root: Node) -> bool:
    """Say whether quantities are functions of a root, and not only of others that are drawn by it."""
    seen: set[Node] = set()
    pending = list(asked)
    while pending:
        node = pending.pop()
        if node is root:
            return True
        if node not in seen and not node.is_random:
            seen.add(node)
            pending.extend(node.parents)
    return False


def _evidence(given: Given, values: Array) -> Array:
    """Return the probability of what was seen for some values of the continuous quantity that rows share."""
    return np.array([sum(piece.weight for piece in posterior(given.at(float(v)), ())) for v in values])


def integrated(given: Given) -> list[tuple[float, Given]]:
    """Return the model for values of the continuous quantity that rows share, and what each stands for."""
    if given.unknown is None:
        return [(1.0, given)]
    parameters = specialised(given.unknown.parents, given.known)
    curve = curve_of(family_of(given.unknown), parameters)
    if not given.model.told:
        return [(float(w), given.at(float(x))) for x, w in zip(*quadrature(curve), strict=True)]
    found = []
    for share, part in curve.parts:
        weighted = _Weighted(given, part.pdf)
        edges, _, _ = resolved(weighted, followed(part, part.breaks))
        found += [(share * weight, given.at(x)) for x, weight in weighted.nodes(edges)]
    return found


@dataclass(frozen=True, eq=False)
class _Weighted:
    """The density of a continuous quantity that rows share, together with what was seen."""

    given: Given
    density: Callable[[Array], Array]

    def __call__(self, values: Array) -> Array:
        return _evidence(self.given, values) * self.density(values)

    def nodes(self, edges: Array) -> Iterator[tuple[float, float]]:
        """Yield the nodes of panels with the probabilities that they stand for."""
        grid, steps = panel_nodes(edges)
        weights = self.density(grid.reshape(-1)) * steps.reshape(-1)
        for x, weight in zip(grid.reshape(-1), weights, strict=True):
            if weight > UNLIKELY:
                yield float(x), float(weight)
