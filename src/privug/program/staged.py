"""A program in two stages: what it computes, and the release, which is done to its output before anyone sees it.

Each stage is lifted on its own. So the noise of a release stays a node of the model graph, with a likelihood, even
where the program before it can only be called sample by sample.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.arguments import shown
from privug.errors import ArgumentError, ProgramError
from privug.model.node import Array, Context, Kind, Node, Operation, Shape
from privug.model.operations import SampleFailure
from privug.model.plan import Plan
from privug.model.structure import Structure, flatten
from privug.model.variable import RandomVariable
from privug.program.logic import recorded
from privug.program.outputs import FAILED, settled
from privug.program.traced.calling import call
from privug.program.traced.masks import without_masks
from privug.runtime.pickling import Portable

PILOT_CALLS = 8


class Transparent(Portable):
    """A program of Privug's own that calls a program of the user's by way of `called`."""


def called(program: Callable[..., Any], *positional: Any, **named: Any) -> Any:
    """Call a program of the user's from one of Privug's own, which may be traced."""
    if recorded.get() is None or isinstance(program, Transparent):
        return program(*positional, **named)
    return without_masks(settled(call(program, *positional, **named)))


class Staged(Transparent):
    """A program and the release of its output, with the signature of the program."""

    def __init__(self, program: Callable[..., Any], release: Callable[[Any], Any]) -> None:
        if not callable(program):
            raise ArgumentError(
                f"a program is needed, a function such as `def mean(records): ...`, not {shown(program)}"
            )
        functools.update_wrapper(self, program)
        self.program = program
        self.release = release

    def __call__(self, *positional: Any, **named: Any) -> Any:
        return called(self.release, called(self.program, *positional, **named))


class OtherForm(ProgramError):
    """A program that is called sample by sample returned something of another form than before."""


@dataclass(frozen=True, slots=True)
class OutputPart(Operation):
    """A number, or an array of numbers, in what a program that is called sample by sample returned."""

    structure: Structure
    position: int
    shape: Shape
    dtype: np.dtype[Any]

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        results = np.zeros((len(arguments[0]), *self.shape), self.dtype)
        for sample, value in enumerate(arguments[0]):
            if value is not FAILED:
                results[sample] = self._of(value)
        return results

    def _of(self, value: Any) -> Any:
        structure, leaves = flatten(value)
        if structure == self.structure:
            leaf = np.asarray(leaves[self.position])
            if leaf.shape == self.shape and np.can_cast(leaf.dtype, self.dtype, "safe"):
                return leaf
        raise OtherForm(
            f"the program returned {shown(value)}, which differs in form from what it returned before; a release needs "
            "numbers of one type, as many each time (write 0.0 instead of 0 where the others are fractions)"
        )

    def can_fail(self, parents: Sequence[Node]) -> bool:
        return True

    def kind(self, parents: Sequence[Node]) -> Kind:
        return Kind.MIXED


def taken_apart(output: Any) -> Any:
    """Turn an output of plain calls into random numbers, if it is made of as many numbers each time; else leave it."""
    if not isinstance(output, RandomVariable) or output.node.dtype != np.dtype(object):
        return output
    seen = _pilot(output.node)
    forms = [flatten(value) for value in seen]
    if not forms or any(form[0] != forms[0][0] for form in forms):
        return output
    parts = []
    for position, leaves in enumerate(zip(*(form[1] for form in forms), strict=True)):
        part = _part(forms[0][0], position, leaves)
        if part is None:
            return output
        node = Node(part, (output.node,), part.shape, part.dtype)
        parts.append(RandomVariable(node))
    return forms[0][0].build(parts)


def _pilot(node: Node) -> list[Any]:
    failed = np.zeros(PILOT_CALLS, np.bool_)
    try:
        values = Plan([node]).run(PILOT_CALLS, np.random.Generator(np.random.SFC64(0)), failed=failed)[0]
    except (SampleFailure, ProgramError):  # told when the program is run
        return []
    return [value for value in values[~failed] if value is not FAILED]


def _part(structure: Structure, position: int, leaves: Sequence[Any]) -> OutputPart | None:
    try:
        arrays = [np.asarray(leaf) for leaf in leaves]
        dtype = np.result_type(*(array.dtype for array in arrays))
    except (TypeError, ValueError):
        return None
    if dtype.kind not in "biuf" or len({array.shape for array in arrays}) > 1:
        return None
    return OutputPart(structure, position, arrays[0].shape, np.dtype(np.float64 if dtype.kind == "f" else np.int64))
