"""Nodes of the model graph: what a random quantity is computed from, and what its values look like."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt

from privug.errors import Untraceable
from privug.model.traits import Role, Traits, traits_of
from privug.scoping import Held

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
Whole = frozenset[float] | bool
"""Which values of a float quantity are whole numbers to a program: those listed, none, or all that are whole."""

CODE_DTYPE = np.dtype(np.int32)


class Kind(Enum):
    """How probability is spread over a quantity's values."""

    DISCRETE = "discrete"
    CONTINUOUS = "continuous"
    MIXED = "mixed"  # both, or not known before the values are seen


@dataclass(frozen=True, slots=True)
class Context:
    """What evaluation hands to an operation: how many samples, and where randomness comes from.

    Where failures are to be left out, `failed` marks the samples that failed so far, whose values mean nothing. An
    operation may mark more and go on with any values for those, or raise. Without it, a failure is an error.
    """

    samples: int
    rng: np.random.Generator
    failed: Array | None = None


class Operation(ABC):
    """How a node's values follow from its parents' values, on a whole batch at once.

    Arrays carry the sample axis first. A length of one there means "the same for every sample".
    """

    fresh: ClassVar[bool] = True
    """Whether `evaluate` returns an array of its own, not a view of an argument."""

    random: ClassVar[bool] = False
    """Whether `evaluate` draws random numbers."""

    opaque: ClassVar[bool] = False
    """Whether `evaluate` calls plain Python code for each sample."""

    selects: ClassVar[bool] = False
    """Whether each result is a number of one of the arguments, as it was."""

    absent: ClassVar[bool] = False
    """Whether some results are no numbers but say that there is none: nothing is computed from those."""

    @property
    def traits(self) -> Traits:
        """What is known of it: its row in the table."""
        return traits_of(type(self).__name__)

    @abstractmethod
    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        """Compute this operation on a batch."""

    @property
    def by_rows(self) -> bool:
        """Whether a batch holds a value for each row of tables of random size, and not for each sample.

        The number of rows is then the last parent, and the first length of the shape is no more than a typical one.
        """
        return False

    def can_fail(self, parents: Sequence["Node"]) -> bool:
        """Say whether `evaluate` fails for some samples, as far as is known of its arguments."""
        return False

    def kind(self, parents: Sequence["Node"]) -> Kind:
        """Say how probability is spread over the results: discrete if nothing continuous went in."""
        return Kind.DISCRETE if all(p.kind is Kind.DISCRETE for p in parents) else Kind.MIXED

    def whole(self, parents: Sequence["Node"]) -> Whole:
        """Say which of the results, if they are floats, a program gets as whole numbers."""
        return False


refusals: Held[list[str] | None] = Held(None)
"""While a program is traced: what it asked of a random variable that has no single answer."""

deciding: Held[Callable[["Node"], bool] | None] = Held(None)
"""While a program is followed along one of its paths: says whether a random condition (a node) holds there."""


def refuse(what: str) -> NoReturn:
    """Refuse to give one plain value; noted for the tracer, in case the program swallows the error."""
    noted = refusals.get()
    if noted is not None:
        noted.append(what)
    raise Untraceable(
        f"{what} needs one plain value, but a random variable stands for many; "
        "write pv.where(condition, a, b) for a choice, & | ~ for and/or/not, or wrap the code with pv.lift"
    )


fallible: Held[list["Node"] | None] = Held(None)
"""While a program is traced: the quantities that it computed and that cannot be had for some inputs."""

origins: Held[Callable[["Node"], None] | None] = Held(None)
"""While a program is traced to find out where it made what: takes down each quantity that it makes."""


class TraceTooLong(BaseException):
    """Tracing a program took more than it may; not an `Exception`, so that no program's own handler holds it up."""


class TraceBudget:
    """How many quantities a program may make while it is traced, and how many rounds of loops and calls it may take.

    `work` says how many arguments all quantities may have together, if that is limited.
    """

    def __init__(self, nodes: int, rounds: int, work: int | None = None) -> None:
        self._most = nodes, rounds
        self._work = work
        self._nodes = self._rounds = self._arguments = 0
        self.left_a_loop = False
        """Whether the rounds of a loop were too many to follow all of them."""
        self.called = 0
        """How many plain calls were made to learn what functions return that cannot be traced."""
        self.called_seconds = 0.0
        """The processor time that these took."""
        self.columns: dict[int, tuple[Any, list[Any], dict[str, Node]]] = {}
        """The columns of tables that were made so far, by the table's identity; with the table and its rows."""

    def take_node(self, arguments: int) -> None:
        """Count a quantity, and what it is computed of."""
        self._nodes += 1
        self._arguments += arguments
        if self._nodes > self._most[0]:
            raise TraceTooLong(f"it computes more than {self._most[0]:,} quantities")
        if self._work is not None and self._arguments > self._work:
            raise TraceTooLong("it takes less time to call it than to compute its quantities, row by row,")

    def take_round(self) -> None:
        """Count a round of a loop, or a call of a function."""
        self._rounds += 1
        if self._rounds > self._most[1]:
            raise TraceTooLong(f"it takes more than {self._most[1]:,} rounds of loops and calls")


trace_budget: Held[TraceBudget | None] = Held(None)
"""While a program is traced: what that may take."""

path_condition: Held[Any] = Held(None)
"""While a program is traced: the random condition under which the code at hand runs, a random variable, if any."""


class Node:
    """A random quantity: an operation on parent nodes.

    `levels` names the values of a category, whose batches hold codes into it. `bound` says how large whole numbers
    can get, if that follows from the definition: it spares looking for overflow in every batch. `numpy` says whether a
    plain call has a number of NumPy here, as elements of arrays are, and not of Python; None if that depends.
    `roundoff` holds how far rounding may have moved its values, once that was asked for.
    """

    __slots__ = ("bound", "dtype", "kind", "levels", "numpy", "operation", "parents", "roundoff", "shape")

    def __init__(
        self,
        operation: Operation,
        parents: tuple["Node", ...],
        shape: Shape,
        dtype: np.dtype[Any],
        levels: tuple[Any, ...] | None = None,
        kind: Kind | None = None,
    ) -> None:
        self.operation = operation
        self.parents = parents
        self.shape = shape
        self.dtype = dtype
        self.levels = levels
        if kind is None:
            kind = Kind.DISCRETE if levels is not None or dtype.kind in "bi" else operation.kind(parents)
        self.kind = kind
        self.bound: int | None = 1 if dtype.kind == "b" else None
        self.roundoff: tuple[Any] | None = None
        self.numpy: bool | None = False
        noted = fallible.get()
        if noted is not None:
            budget = trace_budget.get()
            if budget is not None and parents:  # constants are cheap
                budget.take_node(len(parents))
            if not operation.opaque and not operation.absent and any(parent.operation.absent for parent in parents):
                refuse("a number that may be missing")
            if operation.can_fail(parents):
                noted.append(self)
            note = origins.get()
            if note is not None:
                note(self)

    @property
    def whole(self) -> Whole:
        """Which of the values, if they are floats, a program gets as whole numbers."""
        return self.operation.whole(self.parents) if self.dtype.kind == "f" and self.levels is None else False

    @property
    def is_random(self) -> bool:
        """Whether this node itself draws random numbers."""
        return self.operation.random

    def __reduce__(self) -> tuple[Any, ...]:
        described = self.operation, self.parents, self.shape, self.dtype, self.levels, self.kind
        return _rebuilt, (*described, self.bound, self.numpy)

    def __repr__(self) -> str:
        return f"<{type(self.operation).__name__} node, shape {self.shape}, {self.dtype}>"


def _rebuilt(*described: Any) -> Node:
    *arguments, bound, numpy = described
    node = Node(*arguments)
    node.bound, node.numpy = bound, numpy
    return node


@dataclass(frozen=True, slots=True)
class ConstantValue(Operation):
    """A value that is the same in every sample."""

    array: Array

    fresh = False

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        return self.array


def of_numpy(name: str, parents: Sequence[Node]) -> bool | None:
    """Say whether the result of an operator is a number of NumPy, as it is if one of its operands is."""
    if traits_of(name).role is not Role.CHOICE:
        kinds = {parent.numpy for parent in parents}
        return True if True in kinds else None if None in kinds else False
    # A whole number that is written in the program does not settle it: they are alike where rounding is asked for.
    kinds = {p.numpy for p in parents[1:] if not (isinstance(p.operation, ConstantValue) and p.dtype.kind == "i")}
    return kinds.pop() if len(kinds) == 1 else None if kinds else False


def count_round() -> None:
    """Count a round of a loop or a call of a function against what tracing a program may take."""
    budget = trace_budget.get()
    if budget is not None:
        budget.take_round()


def leave_loop() -> None:
    """Take down that the rounds of a loop are too many to follow all of them."""
    budget = trace_budget.get()
    if budget is not None:
        budget.left_a_loop = True


def ancestors(targets: Iterable[Node]) -> list[Node]:
    """Return the targets and all they depend on, parents before children, each once.

    The order depends only on the graph and the order of the targets: random numbers are drawn in it.
    """
    done: set[int] = set()
    order: list[Node] = []
    for target in targets:
        stack: list[tuple[Node, bool]] = [(target, False)]
        while stack:
            node, expanded = stack.pop()
            if id(node) in done:
                continue
            if expanded or not node.parents:
                done.add(id(node))
                order.append(node)
                continue
            stack.append((node, True))
            stack.extend((parent, False) for parent in reversed(node.parents) if id(parent) not in done)
    return order


def reached(targets: Iterable[Node], ends: Callable[[Node], bool]) -> list[Node]:
    """Return the targets and what they depend on, each once, not looking behind nodes at which the search ends."""
    found: dict[Node, None] = {}
    frontier = list(targets)
    while frontier:
        node = frontier.pop()
        if node not in found:
            found[node] = None
            frontier.extend(() if ends(node) else node.parents)
    return list(found)
