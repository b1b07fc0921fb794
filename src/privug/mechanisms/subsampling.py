"""What is done to rows before a program sees them: taking a sample of them, and swapping cells between them."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from privug.arguments import Probability, kinds_checked, shown
from privug.errors import ArgumentError, ProgramError
from privug.mechanisms.guarantee import NO_GUARANTEE
from privug.mechanisms.mechanism import Mechanism, promised, remakeable, unchanged
from privug.mechanisms.plain_rows import changed
from privug.model.plated_tables import PlatedTable
from privug.model.table import Table
from privug.model.variable import RandomVariable, refuse
from privug.prior.discrete import Bernoulli
from privug.prior.family import replicate
from privug.program.logic import sample, where
from privug.program.staged import Transparent, called
from privug.program.traced.masks import MaskedList


class OnRows(Transparent):
    """A program one of whose inputs, a table or a list of rows, is changed before the program sees it."""

    def __init__(self, where_from: str, program: Callable[..., Any], of: str | None, rate: Probability) -> None:
        functools.update_wrapper(self, program)
        self.program, self.rate, self.__name__ = program, float(rate), getattr(program, "__name__", "program")
        self.signature = inspect.signature(program)
        names = list(self.signature.parameters)
        if not names:
            raise ArgumentError(f"{where_from}: the program must be a function of rows, but it takes nothing")
        if of is not None and of not in names:
            raise ArgumentError(f"{where_from}: of={of!r} is not a parameter of the program; it has {', '.join(names)}")
        self.of = of or names[0]

    def __call__(self, *positional: Any, **named: Any) -> Any:
        arguments = self.signature.bind(*positional, **named)
        rows = arguments.arguments[self.of]
        if isinstance(rows, PlatedTable):
            refuse("a draw for each of many rows")
        if isinstance(rows, str) or not isinstance(rows, Iterable):
            raise ProgramError(f"{self.__name__}: {self.of!r} must be a list of rows or a table, not {shown(rows)}")
        arguments.arguments[self.of] = self.changed(rows)
        return called(self.program, *arguments.args, **arguments.kwargs)

    def changed(self, rows: Any) -> Any:
        """Return the rows as the program sees them."""
        raise NotImplementedError

    def _coins(self, count: int) -> Any:
        return sample(replicate(Bernoulli(self.rate), (count,)))


class SubsampledRows(OnRows):
    """Rows taken into account with some probability each."""

    def changed(self, rows: Any) -> Any:
        """Return some of the rows; while random, all of them with the condition under which each is there."""
        items = list(rows)
        coins = self._coins(len(items))
        if isinstance(coins, RandomVariable):
            return MaskedList.of_pairs((row, coins[k] == 1) for k, row in enumerate(items))
        kept = [row for row, coin in zip(items, coins, strict=True) if coin]
        if isinstance(rows, np.ndarray):
            return np.array(kept)
        return Table(kept) if isinstance(rows, Table) else kept


class Swapped(OnRows):
    """Cells of a column exchanged between the rows of a pair with some probability."""

    column = ""

    def changed(self, rows: Any) -> Any:
        """Return the rows with the cells of some pairs exchanged."""
        items = list(rows)
        coins = self._coins(len(items) // 2)
        for pair in range(len(items) // 2):
            first, second = items[2 * pair], items[2 * pair + 1]
            own, other = self._cell(first), self._cell(second)
            items[2 * pair] = changed(first, {self.column: where(coins[pair] == 1, other, own)})
            items[2 * pair + 1] = changed(second, {self.column: where(coins[pair] == 1, own, other)})
        return Table(items) if isinstance(rows, Table) else items

    def _cell(self, row: Any) -> Any:
        try:
            return row[self.column]
        except (TypeError, KeyError, IndexError):
            raise ProgramError(f"swapped: the row {shown(row)} has no column {self.column!r}") from None


@remakeable
@kinds_checked
def subsample(program: Callable[..., Any], *, rate: Probability, of: str | None = None) -> Mechanism:
    """Run a program on a random sample of rows: each is used with probability `rate`, whatever the others are.

    `of` names the parameter that takes the rows; without it, it is the first. A mechanism inside promises more on a
    sample, as long as nobody knows who is in it. Li, Qardaji and Su, ASIACCS 2012.

    >>> from privug.mechanisms import laplace
    >>> print(subsample(laplace(len, sensitivity=1, epsilon=1), rate=0.1).guarantee)
    0.158565-differentially private
    """
    sampled = SubsampledRows("subsample", program, of, rate)
    return Mechanism(sampled, unchanged, promised(program).sampled(sampled.rate), f"a {rate:.0%} sample")


@remakeable
@kinds_checked
def swapped(program: Callable[..., Any], *, column: str, rate: Probability, of: str | None = None) -> Mechanism:
    """Exchange a column's cells between the first and the second row, the third and the fourth, and so on.

    Each pair is exchanged with probability `rate`. This keeps every statistic of the column alone, and promises
    nothing: what it hides depends on who stands next to whom.

    >>> people = [{"age": 20, "ill": True}, {"age": 60, "ill": False}]
    >>> swapped(lambda people: people[0]["ill"], column="ill", rate=1)(people)
    False
    """
    exchanging = Swapped("swapped", program, of, rate)
    exchanging.column = column
    return Mechanism(exchanging, unchanged, NO_GUARANTEE, f"swapped {column}")
