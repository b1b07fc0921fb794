"""Traced programs against plain calls on every table that there may be."""

import inspect
import itertools

import numpy as np

from privug.model.node import ancestors
from privug.prior.family import Draw
from privug.program import tracing
from privug.program.inputs import Arguments
from privug.program.lifting import _flattened, _rebuilt, in_their_forms


def columns_in(program, values):
    """Return those columns, with their values, that the text of a program names."""
    text = inspect.getsource(program)
    return {name: listed for name, listed in values.items() if name in text}


def difference_on_every_table(program, prior, monkeypatch, *, every=1):
    """Trace a program and compare it with plain calls on all values of its inputs; return what differs, or why not.

    With `every`, that is done on every second or third, and so on, of the values.
    """
    monkeypatch.setattr(tracing, "CHECKED_CELLS", 10**9)
    monkeypatch.setattr(tracing, "MOST_UNLIKELY", 0)
    positional, named = in_their_forms(program, (), prior)
    arguments = Arguments(*_flattened((list(positional), dict(named))))
    traced = tracing.trace(program, *_rebuilt(arguments), arguments.shared)
    if traced.obstacle is not None:
        return f"not traced: {traced.obstacle}"
    roots = [node for node in ancestors(arguments.nodes) if isinstance(node.operation, Draw)]
    given = {root: values[::every] for root, values in every_value(roots).items()}
    number = len(next(iter(given.values())))
    return tracing.difference_from_plain_calls(program, arguments, traced, number, True, given)


def every_value(roots):
    """Return all combinations of the values of some draws, with an array for each draw."""
    sizes = [int(np.prod(root.shape, dtype=int)) for root in roots]
    cells = [values_of(root) for root, size in zip(roots, sizes, strict=True) for _ in range(size)]
    combinations = np.array(list(itertools.product(*cells)))
    places = np.cumsum([0, *sizes])
    return {
        root: combinations[:, start:stop].reshape(-1, *root.shape).astype(root.dtype)
        for root, start, stop in zip(roots, places[:-1], places[1:], strict=True)
    }


def values_of(root):
    """Return the numbers that a draw of known parameters may give."""
    parameters = [parent.operation.array for parent in root.parents]
    return np.unique(root.operation.family.support(parameters, 1, np.inf).possible().values)
