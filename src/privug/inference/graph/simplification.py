"""Graphs with known values put in the place of some nodes: what then is constant is computed, what is moot left out."""

from collections.abc import Mapping, Sequence

import numpy as np

from privug.errors import PrivugError
from privug.model.graph import remade, rewritten
from privug.model.node import Array, ConstantValue, Context, Kind, Node
from privug.model.numpy_functions import Cast
from privug.model.operations import Elementwise, SampleFailure
from privug.model.traits.traits import Connective, Role
from privug.prior.conditional import Choose
from privug.program.traced.failures import Checked

_CONTEXT = Context(1, np.random.Generator(np.random.SFC64(0)))


def known_node(node: Node, value: object) -> Node:
    """Return a constant that stands for a node whose value is known."""
    array = np.asarray(value).astype(node.dtype, copy=False)
    return Node(ConstantValue(array[np.newaxis]), (), node.shape, node.dtype, node.levels, Kind.DISCRETE)


def is_known(node: Node) -> bool:
    """Say whether a node is a constant."""
    return isinstance(node.operation, ConstantValue)


def value_of(node: Node) -> Array:
    """Return the value of a constant, categories as codes."""
    assert isinstance(node.operation, ConstantValue)
    return node.operation.array[0]  # type: ignore[no-any-return]


def specialised(targets: Sequence[Node], values: Mapping[Node, object]) -> list[Node]:
    """Return targets with known values in the place of some nodes, simplified."""
    return rewritten(targets, _simpler, {node: known_node(node, value) for node, value in values.items()})


def _simpler(node: Node, parents: tuple[Node, ...]) -> Node | None:
    operation = node.operation
    if operation.random or operation.opaque or not parents:
        return None
    if all(map(is_known, parents)):
        return _evaluated(node, parents)
    if isinstance(operation, Checked):
        failing = parents[1 : 1 + len(operation.errors)]
        ruled_out = all(is_known(condition) and not value_of(condition).any() for condition in failing)
        return parents[0] if ruled_out else None
    if isinstance(operation, Elementwise | Choose) and not node.shape:
        return _chosen(node, parents) or _connected(node, parents)
    return None


def _evaluated(node: Node, parents: Sequence[Node]) -> Node | None:
    arrays = [parent.operation.array for parent in parents if isinstance(parent.operation, ConstantValue)]
    try:
        with np.errstate(all="ignore"):
            array = np.asarray(remade(node, parents).operation.evaluate(arrays, _CONTEXT))
    except (SampleFailure, PrivugError, ArithmeticError, ValueError, IndexError):
        return None  # a failure counts only where its value is asked for
    return Node(ConstantValue(array), (), node.shape, node.dtype, node.levels, Kind.DISCRETE)


def _chosen(node: Node, parents: Sequence[Node]) -> Node | None:
    """Return the branch of a choice whose condition, or position, is known."""
    is_choice = isinstance(node.operation, Choose) or node.operation.traits.role is Role.CHOICE
    if not is_choice or not is_known(parents[0]):
        return None
    chosen = int(value_of(parents[0])) if isinstance(node.operation, Choose) else int(not value_of(parents[0]))
    branch = parents[1 + chosen]
    if branch.dtype == node.dtype and branch.levels == node.levels:
        return branch
    if branch.levels is not None or node.levels is not None:
        return None
    return known_node(node, value_of(branch)) if is_known(branch) else Node(Cast(node.dtype), (branch,), (), node.dtype)


def _connected(node: Node, parents: Sequence[Node]) -> Node | None:
    """Return what a condition comes down to if one of those it is put together of is known."""
    connective = node.operation.traits.connective
    if connective not in (Connective.AND, Connective.OR) or any(parent.dtype != np.bool_ for parent in parents):
        return None
    for one, other in (parents, parents[::-1]):
        if is_known(one):
            settles = bool(value_of(one)) is (connective is Connective.OR)
            return known_node(node, value_of(one)) if settles else other
    return None
