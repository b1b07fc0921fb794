"""Going through a model round by round: bring a root in, compute what can be computed, forget, merge what is equal."""

from collections.abc import Mapping, Sequence

import numpy as np

from privug.errors import UnsuitableEngine
from privug.inference.effort import spend
from privug.inference.exact.finite.ordering import COST_OF_CELL, Round, Schedule
from privug.inference.exact.finite.states import States, crossed
from privug.inference.failures import failure_of_program
from privug.inference.support import support
from privug.model.distinct import ranked
from privug.model.node import Array, ConstantValue, Context, Node, ancestors
from privug.model.operations import SampleFailure
from privug.prior.family import family_of
from privug.prior.support import Support

BLOCK = 1 << 20  # combinations of values that are computed at a time
MOST_COMBINATIONS = 20_000_000
MOST_WORK = 2e9  # cells computed in all rounds, where there are no more than so many for sure
HOPEFUL_WORK = 1e8  # where equal states must turn out to be many
MANY = 1 << 17  # combinations, beyond which those of negligible probability are left out
NEGLIGIBLE = 1e-17  # the probability that one round may leave out
TOO_MANY = (
    "engine='exact' cannot answer this: too many combinations of values matter to the output at once; "
    "engine='sample' can"
)


def eliminated(start: States, plan: Schedule) -> tuple[States, float]:
    """Go through all rounds; return the states that are left and how much probability was left out."""
    states, lost, work = start, 0.0, 0.0
    most = MOST_WORK if plan.cost <= COST_OF_CELL * MOST_WORK else HOPEFUL_WORK
    supports: dict[tuple[object, ...], Support] = {}
    for one in plan.rounds:
        parts: list[States] = []
        fixed = None if one.root is None else _fixed(one.root, states, supports)
        step = BLOCK if one.root is None else max(1, BLOCK // max(1, _values_of(one.root, fixed)))
        cells = len(one.computed) + len(one.kept) + 1
        if fixed is not None and work + len(states) * len(fixed.values) * cells > most:
            raise UnsuitableEngine(TOO_MANY)
        for begin in range(0, len(states), step):
            part = states if len(states) <= step else states.take(slice(begin, begin + step))
            grown = part if one.root is None else _brought_in(part, one.root, fixed)
            work += len(grown) * cells
            spend(COST_OF_CELL * len(grown) * cells)
            parts.append(_merged(_computed(grown, one), one.kept))
            if sum(map(len, parts)) > MOST_COMBINATIONS or work > most:
                raise UnsuitableEngine(TOO_MANY)
        states = parts[0] if len(parts) == 1 else _merged(_concatenated(parts, one.kept), one.kept)
        states, cut = _without_negligible(states)
        lost += cut
    return states, lost


def _fixed(root: Node, states: States, supports: dict[tuple[object, ...], Support]) -> Support | None:
    """Return the values of a root whose parameters are the same in all states."""
    parameters = [p.operation.array for p in root.parents if isinstance(p.operation, ConstantValue)]
    if len(parameters) < len(root.parents) or any(parent in states.arrays for parent in root.parents):
        return None
    key = root.operation, *root.parents
    if key not in supports:
        supports[key] = support(family_of(root), parameters, 1)
    return supports[key]


def _values_of(root: Node, fixed: Support | None) -> int:
    return len(fixed.values) if fixed is not None else 64


def _brought_in(states: States, root: Node, fixed: Support | None) -> States:
    """Combine each state with every value of a root."""
    arrays, values, weights = crossed(
        states, family_of(root), fixed, lambda: [value_of(parent, states.arrays) for parent in root.parents]
    )
    arrays[root] = values.astype(root.dtype, copy=False)
    return States(arrays, weights)


def value_of(node: Node, arrays: Mapping[Node, Array]) -> Array:
    """Return the values of a node, one for all where it is certain."""
    found = arrays.get(node)
    if found is not None:
        return found
    if isinstance(node.operation, ConstantValue):
        return node.operation.array
    return _certain(node)


def _certain(node: Node) -> Array:
    """Return the value of a node that is made of constants."""
    values: dict[Node, Array] = {}
    for inner in ancestors([node]):
        arguments = [values[parent] for parent in inner.parents]
        values[inner] = inner.operation.evaluate(arguments, _context(1))
    return values[node]


def _context(samples: int) -> Context:
    return Context(samples, np.random.Generator(np.random.SFC64(0)))


def _computed(states: States, one: Round) -> States:
    """Compute the nodes of a round."""
    if not one.computed:
        return states
    arrays, context = dict(states.arrays), _context(len(states))
    try:
        with np.errstate(all="ignore"):
            for node in one.computed:
                arguments = [value_of(parent, arrays) for parent in node.parents]
                arrays[node] = node.operation.evaluate(arguments, context)
    except SampleFailure as failure:
        raise failure_of_program(failure) from failure.cause
    return States(arrays, states.weights)


def full(array: Array, rows: int) -> Array:
    """Return one value for each row."""
    return array if len(array) == rows else np.repeat(array, rows, axis=0)


def _concatenated(parts: Sequence[States], kept: Sequence[Node]) -> States:
    arrays = {node: np.concatenate([part.arrays[node] for part in parts]) for node in kept}
    return States(arrays, np.concatenate([part.weights for part in parts]))


def _merged(states: States, kept: Sequence[Node]) -> States:
    """Forget all but some nodes, and add up the probabilities of what is then equal."""
    rows = len(states)
    arrays = {node: full(states.arrays[node], rows) for node in kept}
    codes, span = np.zeros(rows, np.intp), 1
    for array in arrays.values():
        for column in array.reshape(rows, -1).T if array.ndim > 1 else (array,):
            places, count = _places(column)
            if span * count >= 1 << 62:
                codes, distinct = ranked(codes)
                span = len(distinct)
            codes = places if span == 1 else codes * count + places
            span *= count
    if span > 4 * rows + 1024:
        codes, distinct = ranked(codes)
        span = len(distinct)
    weights = np.bincount(codes, states.weights, span)
    one_of = np.empty(span, np.intp)
    one_of[codes] = np.arange(rows)
    possible = np.flatnonzero(weights)
    return States({node: array[one_of[possible]] for node, array in arrays.items()}, weights[possible])


def _places(column: Array) -> tuple[Array, int]:
    """Return whole numbers from zero on that are equal where the column is, and a number above them all."""
    if column.dtype.kind in "bi" and len(column):
        low, high = int(column.min()), int(column.max())
        if high - low < 4 * len(column) + 1024:
            return np.subtract(column, low, dtype=np.intp), high - low + 1
    places, distinct = ranked(column)
    return places, max(1, len(distinct))


def _without_negligible(states: States) -> tuple[States, float]:
    if len(states) <= MANY:
        return states, 0.0
    kept = states.weights > NEGLIGIBLE / len(states)
    lost = float(states.weights[~kept].sum())
    return (states.take(kept), lost) if lost else (states, 0.0)
