"""Noise that a program adds last: an output that is a finite quantity plus a number of known density."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privug.inference.derived_questions import DerivedQuestion
from privug.inference.graph.affine import affine_roots
from privug.inference.question import Case, Question, Sizes
from privug.model.graph import substitute
from privug.model.node import Array, ConstantValue, Kind, Node, ancestors
from privug.model.operations import constant
from privug.model.structure import random_leaves
from privug.model.variable import RandomVariable
from privug.prior.family import Draw, Family
from privug.program.lifting import Lifting


@dataclass(frozen=True)
class AddedNoise:
    """A number of a family with known parameters, times a factor, that is added to what is left of the output."""

    family: Family
    parameters: tuple[float, ...]
    factor: float
    root: Node

    def log_density(self, distance: Array) -> Array:
        """Return the log density, but for a constant, at a distance from where the output would be without noise."""
        parameters = [np.array([number]) for number in self.parameters]
        with np.errstate(divide="ignore"):
            return self.family.log_density(np.ravel(distance) / self.factor, parameters).reshape(np.shape(distance))

    def ends(self) -> list[float]:
        """Return the distances between which there is a density."""
        low, high = (float(end) * self.factor for end in self.family.ends_of(self.parameters))
        return sorted([low, high])


def added_noise(question: Question, kind: Kind = Kind.CONTINUOUS) -> AddedNoise | None:
    """Return the noise of a log-concave family that is added to a finite quantity to make the output, if there is such.

    The secret and the facts must not depend on it, and everything else must be discrete.
    """
    if question.random_tables:
        return None
    case = question.case()
    if not isinstance(case.output, RandomVariable) or case.output.node.shape != ():
        return None
    others = [leaf.node for leaf in random_leaves((case.secret, case.facts))]
    for root, slope in affine_roots(case.output.node, kind).items():
        noise = _as_noise(root, slope)
        if noise is None or root in ancestors(others):
            continue
        location = substitute([case.output.node], {root: _nothing(root)})
        if all(node.kind is Kind.DISCRETE for node in ancestors([*location, *others]) if node.is_random):
            return noise
    return None


def _as_noise(root: Node, slope: Any) -> AddedNoise | None:
    operation = root.operation
    known = isinstance(slope, int | float | np.number) and float(slope) != 0
    if not known or not isinstance(operation, Draw) or not operation.family.log_concave or root.shape != ():
        return None
    if not all(isinstance(parent.operation, ConstantValue) for parent in root.parents):
        return None
    return AddedNoise(operation.family, _numbers(root.parents), float(slope), root)


def _nothing(root: Node) -> Node:
    return constant(0 if root.dtype.kind == "i" else 0.0)


def _numbers(parameters: Sequence[Node]) -> tuple[float, ...]:
    return tuple(float(p.operation.array.reshape(-1)[0]) for p in parameters if isinstance(p.operation, ConstantValue))


@dataclass
class QuestionOfLocation(DerivedQuestion):
    """What the output of another question's program is without the noise added to it."""

    noise: AddedNoise = field(kw_only=True)

    @classmethod
    def of(cls, question: Question, noise: AddedNoise) -> "QuestionOfLocation":
        """Return the question about another one's output without its noise."""
        return cls(question.program, question.prior, question.secret, facts=question.facts, whole=question, noise=noise)

    def case(self, sizes: Sizes = (), samples: int = 0) -> Case:
        """Return the model in which the noise is zero."""
        case = self.whole.case(sizes, samples)
        location = substitute([case.output.node], {self.noise.root: _nothing(self.noise.root)})[0]
        return Case(case.inputs, case.secret, RandomVariable(location), Lifting("traced"), case.facts)
