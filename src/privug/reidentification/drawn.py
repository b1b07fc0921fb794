"""A person in a table whose rows depend on one another: the whole table is a question for the engines."""

import operator
from collections.abc import Mapping, Sequence
from functools import partial, reduce
from typing import Any

from privug.attack import Attack, Result
from privug.errors import ArgumentError
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.observation.observations import equals, such_that
from privug.prior.discrete import DiscreteUniform
from privug.prior.table import Records
from privug.program.logic import count
from privug.reidentification.scenes import Person


class DrawnRows:
    """A person in any table, by an attack that counts the rows that match: exact where an engine is, else sampled."""

    def __init__(self, records: Records, person: Person, samples: int, seed: int) -> None:
        if isinstance(person, Mapping):
            raise ArgumentError(
                "person: this table has no closed form, so what is known of the person must be in the prior: "
                "put it into row 0 of pv.Records and write person=0"
            )
        if person == "anyone" and not records.is_fixed:
            raise ArgumentError("person='anyone' of a table without closed form needs a fixed number of rows")
        size = records.size if isinstance(records.size, int) else 0
        place = DiscreteUniform(0, size - 1) if person == "anyone" else person
        self._prior = {"records": records, "place": place}
        self._options: dict[str, Any] = {"samples": samples, "seed": seed}
        self._results: dict[Any, Result] = {}

    def _result(self, columns: Sequence[str], secret: str | None) -> Result:
        """Return the numbers of rows that match, and of those among them that have the person's secret."""
        key = (tuple(columns), secret)
        if key not in self._results:
            self._results[key] = self._attack(columns, secret).run(**self._options)
        return self._results[key]

    def _attack(self, columns: Sequence[str], secret: str | None) -> Attack:
        matched, shared = tuple(columns), (*columns, *([] if secret is None else [secret]))

        def numbers(records: Any, place: Any) -> Any:
            me = records[place]
            return count(records, lambda row: _agree(row, me, matched)), count(
                records, lambda row: _agree(row, me, shared)
            )

        return Attack(numbers, self._prior, lambda records, place: records[place][shared[-1]] if shared else 0)

    def unique(self, columns: Sequence[str]) -> Estimate:
        """Return the probability that no other row matches."""
        return self._result(columns, None).prediction.probability(lambda numbers: numbers[0] == 1)

    def disclosed(self, columns: Sequence[str], secret: str) -> Estimate:
        """Return the probability that all matching rows have the person's secret."""
        return self._result(columns, secret).prediction.probability(lambda numbers: numbers[0] == numbers[1])

    def expected(self, columns: Sequence[str]) -> Estimate:
        """Return the expected number of matching rows."""
        return self.matching(columns).mean()

    def linked(self, columns: Sequence[str]) -> Estimate:
        """Return the expected value of one over the number of matching rows."""
        return self._result(columns, None).belief(lambda output: 1 / output[0]).mean()

    def guessed(self, columns: Sequence[str], secret: str) -> Estimate:
        """Return the expected share of matching rows that have the person's secret."""
        return self._result(columns, secret).belief(lambda output: output[1] / output[0]).mean()

    def matching(self, columns: Sequence[str]) -> Belief:
        """Return the number of matching rows."""
        return self._result(columns, None).belief(lambda output: output[0])

    def sharing(self, columns: Sequence[str], secret: str, matching: int | None) -> Belief:
        """Return the number of matching rows with the person's secret."""
        observation = None if matching is None else such_that(lambda numbers: numbers[0] == matching)
        result = self._attack(columns, secret).run(observation, **self._options)
        return result.belief(lambda output: output[1])

    def posterior(self, columns: Sequence[str], secret: str, seen: Mapping[Any, int]) -> Belief:
        """Return the belief about the person's secret, given how many matching rows have each value."""
        matched, values = tuple(columns), tuple(seen)

        def numbers(records: Any, place: Any) -> Any:
            me = records[place]
            having = [count(records, partial(_has, me=me, columns=matched, secret=secret, value=v)) for v in values]
            return [count(records, lambda row: _agree(row, me, matched)), *having]

        attack = Attack(numbers, self._prior, lambda records, place: records[place][secret])
        return attack.run(equals([sum(seen.values()), *seen.values()]), **self._options).posterior


def _agree(row: Any, me: Any, columns: Sequence[str]) -> Any:
    return reduce(operator.and_, (row[name] == me[name] for name in columns), True)


def _has(row: Any, me: Any, columns: Sequence[str], secret: str, value: Any) -> Any:
    return _agree(row, me, columns) & (row[secret] == value)
