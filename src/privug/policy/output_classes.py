"""Classes of outputs: what the attacker believes who is only told to which class the output belongs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privug.attack import Attack, Result
from privug.errors import UnsuitableEngine
from privug.inference.belief import Belief
from privug.inference.joint import Joint
from privug.leakage.finite import Pairs, pairs_of
from privug.model.node import Array, Kind
from privug.model.values import key_of
from privug.policy.clause_questions import RunOptions, asked
from privug.policy.people import people_apart
from privug.policy.policies import Clause, Policy
from privug.policy.verdict import Status, all_of

CELLS = 2_000_000  # numbers that are looked at together
MOST_CELLS = 50_000_000

Class = tuple[int, ...]
"""A class of outputs, by their places."""


@dataclass(frozen=True, eq=False)
class ClauseJoint:
    """What one clause asks about, of one person, together with the outputs: a matrix with a row for each of these."""

    matrix: Array
    secrets: Sequence[Any]
    prior: Belief
    method: str

    def classes(self, members: Array) -> Pairs:
        """Return the joint probabilities of classes of outputs, which may overlap: `members` has a row for each."""
        merged = members @ self.matrix
        output, secret = np.nonzero(merged)
        places = list(range(len(members)))
        probability = merged[output, secret]
        noise = np.zeros(len(probability))
        return Pairs(secret, output, probability, self.secrets, places, np.inf, self.method, noise)

    def joint(self, members: Array) -> Joint:
        """Return the joint of the secret and the class of the output."""
        merged = (members @ self.matrix).T
        prior = merged.sum(axis=1)
        return Joint.from_channel(prior / prior.sum(), merged / prior[:, np.newaxis], secrets=self.secrets)


@dataclass(frozen=True, eq=False)
class ClauseJoints:
    """All that a policy asks about a program with finitely many outputs, known exactly."""

    policy: Policy
    outputs: Sequence[Any]
    marginal: Array
    of_clause: Mapping[Clause, list[ClauseJoint]]

    @classmethod
    def of(cls, attack: Attack, policy: Policy, options: RunOptions) -> "ClauseJoints":
        """Compute the joints of the outputs and what each clause asks about, or refuse."""
        places: dict[Any, int] = {}
        outputs: Sequence[Any] = []
        marginal = np.zeros(0)
        found: dict[Clause, list[ClauseJoint]] = {}
        for clause in dict.fromkeys(policy.clauses()):
            for person in people_apart(attack, clause):
                result = options.run(asked(attack, clause, person), None)
                pairs = _exact_pairs(result)
                if not outputs:
                    outputs, marginal = pairs.outputs, pairs.marginal
                    places = {key_of(output): place for place, output in enumerate(outputs)}
                order = [places.get(key_of(output), -1) for output in pairs.outputs]
                if sorted(order) != list(range(len(outputs))):
                    raise UnsuitableEngine("the outputs differ from one part of the policy to the other; round them")
                matrix = np.zeros((len(outputs), len(pairs.secrets)))
                matrix[order] = pairs.matrix().T
                found.setdefault(clause, []).append(ClauseJoint(matrix, pairs.secrets, result.prior, pairs.method))
        return cls(policy, outputs, marginal, found)

    @cached_property
    def averages(self) -> bool:
        """Whether a part of the policy is about all outputs together, so that classes cannot be judged one by one."""
        return any(clause.on_average for clause in self.of_clause)

    def members(self, classes: Sequence[Class]) -> Array:
        """Return which output belongs to which class: a row for each class."""
        rows = np.zeros((len(classes), len(self.outputs)))
        for row, places in zip(rows, classes, strict=True):
            row[list(places)] = 1.0
        return rows

    def keep(self, classes: Sequence[Class]) -> Array:
        """Return for each class whether the policy holds after it; for averages the classes are a partition."""
        return np.concatenate([[status is Status.HOLDS for status, _ in some] for some in self._judged(classes)])

    def excess(self, classes: Sequence[Class]) -> Array:
        """Return of each class by how much it breaks the policy: not positive where it does not."""
        return np.concatenate([[excess for _, excess in some] for some in self._judged(classes)])

    def _judged(self, classes: Sequence[Class]) -> Iterator[list[tuple[Status, float]]]:
        """Judge classes, some at a time."""
        width = max(view.matrix.shape[1] for views in self.of_clause.values() for view in views)
        step = len(classes) if self.averages else max(1, CELLS // max(width, len(self.outputs)))
        for start in range(0, len(classes), step):
            members = self.members(classes[start : start + step])
            known = {clause: self._of_clause(clause, members) for clause in self.of_clause}
            yield [self._of_class(place, known) for place in range(len(members))]

    def _of_class(self, place: int, known: Mapping[Clause, list[tuple[Status, float]]]) -> tuple[Status, float]:
        status = self.policy.judge(lambda clause: known[clause][place][0])
        return status, self.policy.excess(lambda clause: known[clause][place][1])

    def _of_clause(self, clause: Clause, members: Array) -> list[tuple[Status, float]]:
        """Return whether a clause holds after each class, for everyone, and by how much it is broken."""
        everyone = [self._of_view(clause, view, members) for view in self.of_clause[clause]]
        return [
            (all_of([status for status, _ in one]), max(excess for _, excess in one))
            for one in zip(*everyone, strict=True)
        ]

    def _of_view(self, clause: Clause, view: ClauseJoint, members: Array) -> list[tuple[Status, float]]:
        if clause.on_average:
            number = clause.average(view.joint(members))
            return [(clause.limit.judge(number), clause.limit.excess(number.value))] * len(members)
        pairs = view.classes(members)
        found = clause.levels(pairs, view.prior)
        assert found is not None  # the joint is exact
        numbers = [found.at(place, pairs) for place in range(len(members))]
        return [(clause.limit.judge(number), clause.limit.excess(number.value)) for number in numbers]


def _exact_pairs(result: Result) -> Pairs:
    joint = result.joint
    if not joint.exact or joint.output.kind is not Kind.DISCRETE or joint.secret.kind is not Kind.DISCRETE:
        raise UnsuitableEngine(
            "outputs are merged where secret and output have finitely many values and their probabilities are known "
            "exactly, which they are not here; round the output, or ask for repair='round' or repair='noise'"
        )
    pairs = pairs_of(joint)
    if len(pairs.secrets) * len(pairs.outputs) > MOST_CELLS:
        raise UnsuitableEngine(
            f"{len(pairs.outputs):,} outputs of {len(pairs.secrets):,} secrets are too many to merge"
        )
    return pairs
