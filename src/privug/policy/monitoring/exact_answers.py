"""Exact values of continuous answers: normal inputs are moved onto them, which leaves a prior that knows them.

Let answers q = b + W z be affine in independent standard normal numbers z. Given q = a they are z + W+ (a - q), with W+
the right inverse of W, in distribution (Matheron's rule). So what an attacker knows after such answers is again a prior
of the same inputs, without any condition of probability zero, and every engine takes it.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from privug.errors import UnsuitableEngine
from privug.inference.exact.gaussian import Form, Normal, NotAffine, affine_form, aligned, length, product
from privug.inference.graph.conditions import Unreadable
from privug.model.graph import substitute
from privug.model.node import Array, Node, ancestors
from privug.model.plan import Plan
from privug.model.structure import flatten
from privug.model.variable import RandomVariable, as_node
from privug.policy.monitoring.queries import MonitoredQuery
from privug.prior.family import Draw
from privug.prior.table import Records, form_of
from privug.program import lifting

DETERMINED = 1e-9  # what is left of a quantity that follows from earlier answers, relative to its deviation


class NotNormal(Exception):
    """An answer is not affine in normal inputs; the message says why."""


def form_of_answer(query: MonitoredQuery, prior: Mapping[str, Any]) -> tuple[Node, Form]:
    """Return a query's output, which must be one number, as an affine function of normal inputs."""
    try:
        output = lifting.apply(query.program, [], {name: prior[name] for name in query.names}).output
        leaves = flatten(output)[1]
        if len(leaves) != 1:
            raise NotNormal("it has several parts")
        node = as_node(leaves[0])
        form = affine_form(node)
    except (NotAffine, Unreadable) as problem:
        raise NotNormal(str(problem)) from None
    for root in form.weights:
        if any(one.is_random for parent in root.parents for one in ancestors([parent])):
            raise NotNormal("the mean of a normal quantity is itself random")
    return node, form


def knowing(prior: Mapping[str, Any], answers: Sequence[tuple[MonitoredQuery, float]]) -> dict[str, Any]:
    """Return the prior of an attacker who also knows exact values of continuous answers."""
    if not answers:
        return dict(prior)
    try:
        found = [(*form_of_answer(query, prior), value) for query, value in answers]
    except NotNormal as problem:
        raise UnsuitableEngine(f"an earlier answer cannot be conditioned on: {problem}") from None
    told = [found[place] for place in _independent([form for _, form, _ in found])]
    left = [RandomVariable(node) * -1.0 + value for node, _, value in told]
    images = {root: _moved(root, gains, left) for root, gains in _gains([form for _, form, _ in told]).items()}
    return {name: _rebuilt(value, images) for name, value in prior.items()}


def is_determined(
    query: MonitoredQuery, prior: Mapping[str, Any], answers: Sequence[tuple[MonitoredQuery, float]]
) -> bool:
    """Return whether an answer follows from earlier exact values: it then tells nothing new."""
    if not answers:
        return False
    try:
        forms = [form_of_answer(one, prior)[1] for one in [*(earlier for earlier, _ in answers), query]]
    except NotNormal:
        return False
    return len(forms) - 1 not in _independent(forms)


def _independent(forms: Sequence[Form]) -> list[int]:
    """Return the places of the forms that do not follow from those before them."""
    places: list[int] = []
    basis: list[Array] = []
    for place, normal in enumerate(aligned(forms)):
        rest = normal.weights
        for _ in range(2):
            for axis in basis:
                rest = rest - product(axis, rest) * axis
        if length(rest) > DETERMINED * normal.sd:
            places.append(place)
            basis.append(rest / length(rest))
    return places


def _gains(forms: Sequence[Form]) -> dict[Node, list[Array]]:
    """Return by how much each root moves for a unit that is missing to each of the values."""
    normals: list[Normal] = aligned(forms)
    basis, triangle = np.linalg.qr(np.array([one.weights for one in normals]).T)
    inverse = np.linalg.solve(triangle, basis.T).T  # one column for each value
    roots = dict.fromkeys(root for form in forms for root in form.weights)
    gains, start = {}, 0
    for root in roots:
        size = int(np.prod(root.shape, dtype=int))
        part = inverse[start : start + size]
        gains[root] = [_deviation(root, column).reshape(root.shape) for column in part.T]
        start += size
    return gains


def _deviation(root: Node, moves: Array) -> Array:
    """Return how far a root moves if the standard normal numbers behind it do."""
    assert isinstance(root.operation, Draw)
    family = root.operation.family
    if family.factor is not None and not family.gaussian:
        return np.asarray(family.factor @ moves)
    sd = Plan([root.parents[1]]).run(1, np.random.default_rng(0))[0][0]
    return np.asarray(np.broadcast_to(sd, root.shape).reshape(-1) * moves)


def _moved(root: Node, gains: Sequence[Array], left: Sequence[RandomVariable]) -> Node:
    shifts = [missing * (gain if root.shape else float(gain)) for gain, missing in zip(gains, left, strict=True)]
    moved: RandomVariable = reduce(lambda one, other: one + other, shifts, RandomVariable(root))
    return moved.node


def _rebuilt(value: Any, images: Mapping[Node, Node]) -> Any:
    """Return a value of the prior with other nodes in the place of some."""
    if isinstance(value, Records):
        if not value.is_fixed:
            return value
        rows = _rebuilt(list(value.table()), images)
        made = Records(len(rows), _picked(rows))
        form = form_of(value)
        return made if form is None else made.as_frame(form)
    structure, leaves = flatten(value)
    random = [leaf.node for leaf in leaves if isinstance(leaf, RandomVariable)]
    new = iter(substitute(random, images))
    return structure.build(RandomVariable(next(new)) if isinstance(leaf, RandomVariable) else leaf for leaf in leaves)


def _picked(rows: Sequence[Any]) -> Callable[[int], Any]:
    return lambda place: rows[place]
