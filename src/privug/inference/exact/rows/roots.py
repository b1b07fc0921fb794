"""Which random quantities what is computed of a row depends on."""

from collections.abc import Collection, Sequence

from privug.model.node import Node, ancestors


def _behind(nodes: Sequence[Node], roots: Collection[Node]) -> dict[Node, frozenset[Node]]:
    behind: dict[Node, frozenset[Node]] = {}
    for node in ancestors(nodes):
        own = frozenset([node] if node in roots else ())
        behind[node] = own.union(*(behind[parent] for parent in node.parents))
    return behind


def meeting(nodes: Sequence[Node], roots: Collection[Node]) -> Node | None:
    """Return the first thing that is computed of several random quantities."""
    return next((node for node, own in _behind(nodes, roots).items() if len(own) > 1), None)


def alone(nodes: Sequence[Node], root: Node) -> list[Node]:
    """Return the functions of one random quantity alone through which it enters everything else."""
    behind = _behind(nodes, [node for node in ancestors(nodes) if node.is_random])
    used = {parent for node, own in behind.items() if own != {root} for parent in node.parents}
    return [node for node, own in behind.items() if own == {root} and (node in used or node in nodes)]
