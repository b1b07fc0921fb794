"""Questions about another question: whether its facts hold, and what its secret is before anything is seen."""

import functools
import operator
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from privug.inference.question import Case, Question, Sizes
from privug.model.node import ConstantValue, Node
from privug.model.operations import Index
from privug.model.structure import flatten
from privug.model.variable import RandomVariable
from privug.prior.family import Draw
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

    @classmethod
    def of(cls, question: Question) -> "QuestionOfSecret | None":
        """Return the question about another one's secret; none if that may depend on the sizes of its tables."""
        if question.size_nodes and (question.facts or not _is_one_secret(question)):
            return None
        return cls(question.program, question.prior, question.secret, facts=question.facts, whole=question)

    @property
    def random_tables(self) -> list[str]:
        """No tables: whatever their sizes, the secret is the same."""
        return []

    def case(self, sizes: Sizes = (), samples: int = 0) -> Case:
        """Return the model in which the output is the secret; the program is not run."""
        case = self.whole.case(self.whole.typical_sizes, samples)
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
