"""Questions that follow from others: about their facts, their secret, or their output without its noise."""

import functools
import operator
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privug.inference.graph.affine import affine_roots
from privug.inference.question import Case, Question, Sizes
from privug.model.graph import substitute
from privug.model.node import Array, ConstantValue, Kind, Node, ancestors
from privug.model.operations import Index, constant
from privug.model.structure import flatten, random_leaves
from privug.model.variable import RandomVariable
from privug.prior.family import Draw, Family
from privug.program.lifting import Lifting


@dataclass
class DerivedQuestion(Question):
    """A question about another one, the whole."""

    whole: Question = field(kw_only=True)


@dataclass
class QuestionOfFacts(DerivedQuestion):
    """Whether all facts of another question hold, as if that were the output of its program."""

    @classmethod
    def of(cls, question: Question) -> "QuestionOfFacts":
        """Return the question about another one's facts."""
        return cls(question.program, question.prior, question.secret, whole=question)

    def case_of_all_sizes(self, largest: Sizes) -> Case | None:
        """Return nothing: facts are looked at size by size."""
        return None

    def case(self, sizes: Sizes = (), samples: int = 0) -> Case:
        """Return the model in which the output says whether all facts hold, and nothing is secret."""
        case = self.whole.case(sizes, samples)
        verdicts = map(RandomVariable, case.likelihood_of_facts().conditions)
        return Case(case.inputs, 0, functools.reduce(operator.and_, verdicts, True), Lifting("traced"))


@dataclass
class QuestionOfSecret(DerivedQuestion):
    """What another question's secret is before anything is seen, as if that were the output of its program."""

    sized: bool = field(kw_only=True)
    """Whether the secret may depend on the sizes of the tables."""

    @classmethod
    def of(cls, question: Question) -> "QuestionOfSecret":
        """Return the question about another one's secret."""
        sized = bool(question.size_nodes) and (bool(question.facts) or not _is_one_secret(question))
        parts = question.program, question.prior, question.secret
        return cls(*parts, facts=question.facts, whole=question, sized=sized)

    @property
    def random_tables(self) -> list[str]:
        """No tables, where the secret is the same whatever their sizes."""
        return self.whole.random_tables if self.sized else []

    def case_of_all_sizes(self, largest: Sizes) -> Case | None:
        """Return nothing: secrets are looked at size by size."""
        return None

    def case(self, sizes: Sizes = (), samples: int = 0) -> Case:
        """Return the model in which the output is the secret; the program is not run."""
        case = self.whole.case(sizes if self.sized else self.whole.typical_sizes, samples)
        return Case(case.inputs, case.secret, case.secret, Lifting("traced"), case.facts)


def _is_one_secret(question: Question) -> bool:
    """Say whether the secret is the same quantity for small, typical and large sizes of the tables, or one like it."""
    drawn = np.sort(question.drawn_sizes, axis=1)
    sizes = {tuple(map(int, drawn[:, place])) for place in (0, drawn.shape[1] // 2, -1)}
    found = [flatten(question.secret_at(one)) for one in sizes]
    known = [[leaf for leaf in leaves if not isinstance(leaf, RandomVariable)] for _, leaves in found]
    alike = [_likeness([leaf.node for leaf in leaves if isinstance(leaf, RandomVariable)]) for _, leaves in found]
    return all(
        (structure, plain, likeness) == (found[0][0], known[0], alike[0])
        for (structure, _), plain, likeness in zip(found, known, alike, strict=True)
    )


def _likeness(nodes: Sequence[Node]) -> tuple[Hashable, ...]:
    """Return what is equal for the same quantities, or for as many that are drawn from the same families."""
    found: list[Hashable] = []
    drawn: list[tuple[Node, str]] = []
    for node in nodes:
        column = node.parents[0] if isinstance(node.operation, Index) else node
        operation, parameters = column.operation, [parent.operation for parent in column.parents]
        known = [p.array for p in parameters if isinstance(p, ConstantValue) and p.array.size == 1]
        if not isinstance(operation, Draw) or len(known) < len(parameters):
            found.append(node)
            continue
        drawn.append((column, "" if column is node else str(node.operation)))
        # Which of several are the same matters too.
        found.append((operation.family, tuple(array.tobytes() for array in known), drawn.index(drawn[-1])))
    return tuple(found)


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
