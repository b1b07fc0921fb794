"""One case of a question made ready for evaluation: what to compute, and how to read it off the arrays."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privug.arguments import listed_names, shortened
from privug.errors import ObservationError, ProgramError
from privug.inference.question import LABELS, Case
from privug.inference.solving import Solved, solve_all
from privug.model.batch import Batch, Column
from privug.model.node import Array, Node, ancestors, reached
from privug.model.operations import SampleFailure
from privug.model.plan import Plan
from privug.model.row_offsets import RowOffsets
from privug.model.structure import LEAF, Structure, flatten, random_leaves
from privug.model.table import NoColumn, Row
from privug.model.variable import RandomVariable, as_node
from privug.observation.observations import Observation
from privug.program.calls import call
from privug.program.external import Unanswered
from privug.program.inputs import Arguments

_NAMES = re.compile(r"""['"]([^'"]+)['"]|not found: (\S+)""")


class NotANumber(Exception):
    """A secret or an output is NaN: not a number, as what is missing in frames is."""


def failure_of_program(
    failure: SampleFailure, inputs: Mapping[str, Any] | None = None, *, everywhere: bool = False
) -> ProgramError:
    """Say what failed, on which input if that is known, and what to do.

    What fails `everywhere`, on every input that was tried, or for want of a column, is wrong in the program, and no
    input is to blame.
    """
    cause = failure.cause
    if isinstance(cause, NotANumber):
        said = [f"{failure.label} is NaN: missing, or not a number"]
    else:
        said = [f"{failure.label} failed with {described(cause)}"]
    if inputs is None:
        said.append("on some inputs that the prior allows")
    else:
        said.append(f"on the input {', '.join(f'{name} = {shortened(value)}' for name, value in inputs.items())}")
    if isinstance(cause, NotANumber):
        said.append("Write None if pd.isna(x) else x to make that a value of its own.")
    if everywhere:
        said += ["It fails on every input that was tried.", *_columns(cause, inputs or {})]
    elif not isinstance(cause, NoColumn):
        said.append('Give pv.Attack(..., on_error="exclude") to leave such inputs out and have them counted.')
    return ProgramError("\n  ".join(said))


def described(error: BaseException) -> str:
    """Return what Python calls an error of this kind, and what it says."""
    kind = next(kind.__name__ for kind in type(error).__mro__ if not issubclass(kind, NoColumn))
    return f"{kind}: {error}"


def _columns(cause: BaseException, inputs: Mapping[str, Any]) -> Iterator[str]:
    """Say which columns tables have, if the error is about a name that none of them has and does not say so itself."""
    wanted = _name_not_found(cause)
    for name, value in inputs.items():
        columns = _names_of_columns(value)
        if wanted and columns and wanted not in columns and not all(column in str(cause) for column in columns):
            yield f"{name} has the columns {listed_names(columns, wanted)}"


def _name_not_found(cause: BaseException) -> str:
    """Return the name that was looked for in vain, if an error is about one."""
    is_named = isinstance(cause, KeyError) or type(cause).__name__ == "ColumnNotFoundError"  # of polars
    if not (is_named or isinstance(cause, AttributeError)) or not cause.args:
        return ""
    text = str(cause.args[0])
    quoted = ["".join(found) for found in _NAMES.findall(text)] or [text]
    return quoted[0] if is_named else quoted[-1]  # 'DataFrame' object has no attribute 'agee'


def _names_of_columns(value: Any) -> list[str]:
    """Return the names of a table's columns, in whatever form a program gets it; none of anything else."""
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, Row):
        return list(value.keys())
    names = getattr(value, "columns", None)  # of pandas or polars
    if names is None:
        names = value if isinstance(value, Mapping) else getattr(getattr(value, "dtype", None), "names", None)
    return [name for name in names if isinstance(name, str)] if names is not None else []


INPUTS_TRIED = 32
"""On how many inputs a program that failed is tried, before it is said to fail on every one."""


@dataclass(frozen=True)
class Quantity:
    """A possibly nested quantity taken apart into nodes."""

    structure: Structure
    nodes: tuple[Node, ...]

    @classmethod
    def of(cls, value: Any) -> "Quantity":
        """Take a nested value apart."""
        structure, leaves = flatten(value)
        return cls(structure, tuple(as_node(leaf) for leaf in leaves))

    def batch(self, arrays: Sequence[Array], samples: int) -> Batch:
        """Return the values of this quantity from the arrays of its nodes."""
        columns = tuple(Column.of(node, array) for array, node in zip(arrays, self.nodes, strict=True))
        return Batch(self.structure, columns, samples)


@dataclass(frozen=True)
class Kept:
    """What one block of samples left behind: the samples that agree with the observation."""

    positions: Array
    quantities: tuple[Batch, ...]
    log_weights: Array | None
    failed: Array
    """The positions of draws on which the program failed, where such are left out."""
    contradicting: Array
    """The positions of draws that contradict what the attacker assumes: the prior does not hold them."""
    density: int
    """How many exact values were seen of continuous outputs: beside one of lower order, such samples weigh nothing."""

    @property
    def excluded(self) -> int:
        """How many draws were left out."""
        return len(self.failed)


class ConditionedCase:
    """A case given an observation: what was seen of it, and its secret, its output and a further query to read off."""

    def __init__(self, case: Case, observation: Observation | None, query: Any = None) -> None:
        self.case, self.secret, self.output = case, Quantity.of(case.secret), Quantity.of(case.output)
        self.query = None if query is None else Quantity.of(query)
        self.judged = [*self.secret.nodes, *self.output.nodes]
        self.carried = [] if self.query is None else needed_by(self.query, case)
        """What the query must be given."""
        self.likelihood = case.likelihood(observation)

    def not_a_number(self, arrays: Sequence[Array], kept: Array, exclude: bool) -> Array:
        """Find samples whose secret or output, the first arrays, is NaN: an error, unless those are excluded."""
        bad = np.zeros(len(kept), bool)
        for position, array in enumerate(arrays[: len(self.judged)]):
            if array.dtype.kind == "f":
                bad |= np.isnan(array).any(axis=tuple(range(1, array.ndim))) & kept
            elif array.dtype == object:
                bad |= np.fromiter((isinstance(x, float) and x != x for x in array), bool, len(array)) & kept
            if bad.any() and not exclude:
                what = LABELS["secret"] if position < len(self.secret.nodes) else "the output"
                raise SampleFailure(int(np.flatnonzero(bad)[0]), NotANumber(), what)
        return bad

    def read(
        self, arrays: Sequence[Array], carried: Sequence[Array], which: Any, samples: int, rng: np.random.Generator
    ) -> list[Batch]:
        """Return secret, output and the answer to the query on chosen samples."""
        split, chosen = len(self.secret.nodes), [array[which] for array in arrays]
        batches = [self.secret.batch(chosen[:split], samples), self.output.batch(chosen[split:], samples)]
        if self.query is not None:
            given = of_samples(dict(zip(self.carried, carried, strict=True)), which)
            batches.append(answer(self.query, given, samples, rng))
        return batches


class CasePlan(ConditionedCase):
    """The evaluation of one case: secret, output and a further query, conditioned on an observation."""

    def __init__(
        self,
        case: Case,
        observation: Observation | None,
        query: Any,
        known: Sequence[Node],
        exclude: bool,
        *,
        points_only: bool = True,
    ) -> None:
        """Make ready; unless `points_only`, conditions are solved too where waiting for them would take longer."""
        super().__init__(case, observation, query)
        likelihood, facts = self.likelihood, case.likelihood_of_facts().conditions
        self.impossible = likelihood.impossible
        targets = [*self.judged, *self.carried]
        before = len(likelihood.log_weights)
        solved = Solved(likelihood, targets, 0)
        self.unsolved: ObservationError | None = None
        """Why a value that was seen cannot be solved for at this size: then its density is not known."""
        try:
            solved = solve_all(likelihood, targets, fixed=known, points_only=points_only)
        except ObservationError as error:
            if not known:  # no other size of the tables could explain the observation
                raise
            self.impossible, self.unsolved = str(error), error
        likelihood, targets = solved.likelihood, solved.targets
        moved = len(likelihood.log_weights) > before
        if not moved:  # facts come first: they say which draws there are
            likelihood = replace(likelihood, conditions=likelihood.conditions[len(facts) :])
        self.is_solved = moved
        """Whether draws are moved onto some of what was seen, rather than waited for."""
        self._density = solved.densities
        self.has_density = before + self._density > 0
        self._conditions, self._weights = len(likelihood.conditions), len(likelihood.log_weights)
        self._exclude = exclude
        judged = len(self.judged)
        primary = [*targets[:judged], *likelihood.conditions, *likelihood.log_weights]
        self._split = judged, len(primary)
        self._admission = Admission(facts, known) if facts and not moved else None
        given = known if self._admission is None else self._admission.known
        # What the query needs comes last and does not change the size of a block: the samples stay the same.
        self.plan = Plan([*primary, *targets[judged:]], given, excused=targets[:judged])
        self.block = self.plan.block if self.query is None else Plan(primary, given).block
        if self._admission is not None:
            self.block = min(self.block, self._admission.block)
        self._unmoved = Unmoved(facts, self.judged if exclude else [], known) if moved and (exclude or facts) else None

    @property
    def is_moved(self) -> bool:
        """Whether draws are moved onto the observation, rather than waited for."""
        return self._unmoved is not None

    @property
    def is_weighted(self) -> bool:
        """Whether samples have weights, rather than only agreeing or not."""
        return self._weights > 0

    def run(
        self, rng: np.random.Generator, positions: Array, known: Mapping[Node, Array], *, forgiving: bool = False
    ) -> Kept:
        """Evaluate one block and keep the samples that agree with the observation."""
        drawn = positions
        if self._admission is not None:
            positions, known = self._admission.admitted(rng, positions, known)
        samples = len(positions)
        failed = np.zeros(samples, np.bool_)
        arrays = self.plan.run(samples, rng, known, forgiving=forgiving, failed=failed if self._exclude else None)
        judged, primary = self._split
        log_weights = total_log_weight(arrays[judged + self._conditions :][: self._weights], samples)
        kept = np.full(samples, self.impossible is None)
        for condition in arrays[judged : judged + self._conditions]:
            kept &= condition
        if not forgiving:
            failed |= self.not_a_number(arrays, kept & ~failed, self._exclude)
        kept &= ~failed
        if log_weights is not None:
            kept &= log_weights > -np.inf
        count = int(np.count_nonzero(kept))
        which: Any = kept if count < samples else slice(None)  # copying takes longer than most programs
        weights = log_weights[which] if log_weights is not None else None
        quantities = self.read(arrays[:judged], arrays[primary:], which, count, rng)
        admitted, failing = positions, positions[failed]
        if self._unmoved is not None:
            admitted, failing = self._unmoved.counted(rng, drawn, known)
        contradicting = drawn[:0] if admitted is drawn else np.setdiff1d(drawn, admitted, assume_unique=True)
        return Kept(positions[which], tuple(quantities), weights, failing, contradicting, self._density)


class Admission:
    """Draws from the prior that agree with what the attacker assumes.

    The program is run on those alone: it need not make sense on inputs that contradict a fact.
    """

    def __init__(self, facts: Sequence[Node], known: Sequence[Node]) -> None:
        self._roots = Plan(facts, known).roots
        self._facts = len(facts)
        self._plan = Plan([*facts, *self._roots], known)
        self.known = [*known, *self._roots]
        self.block = self._plan.block

    def admitted(
        self, rng: np.random.Generator, positions: Array, known: Mapping[Node, Array]
    ) -> tuple[Array, dict[Node, Array]]:
        """Return the positions of such draws, and what is known of them: the roots behind the facts."""
        arrays = self._plan.run(len(positions), rng, known)
        holds: Array = np.logical_and.reduce(arrays[: self._facts])
        values = {**known, **dict(zip(self._roots, arrays[self._facts :], strict=True))}
        return positions[holds], {node: array[holds] for node, array in values.items()}


class Unmoved:
    """Draws that were not moved onto an observation: how many contradict a fact, and on how many the program fails."""

    def __init__(self, facts: Sequence[Node], targets: Sequence[Node], known: Sequence[Node]) -> None:
        self._admission = Admission(facts, known) if facts else None
        self._plan = Plan(targets, known if self._admission is None else self._admission.known)

    def counted(self, rng: np.random.Generator, positions: Array, known: Mapping[Node, Array]) -> tuple[Array, Array]:
        """Return the positions of draws that contradict no fact, and of those on which the program fails."""
        if self._admission is not None:
            positions, known = self._admission.admitted(rng, positions, known)
        failed = np.zeros(len(positions), np.bool_)
        if self._plan.can_fail:
            self._plan.run(len(positions), rng, known, failed=failed)
        return positions, positions[failed]


def answer(query: Quantity, known: Mapping[Node, Array], samples: int, rng: np.random.Generator) -> Batch:
    """Evaluate a query on samples that were kept: it need not make sense on others."""
    try:
        return query.batch(Plan(query.nodes, list(known)).run(samples, rng, known), samples)
    except SampleFailure as failure:
        raise ProgramError(f"the query failed with {described(failure.cause)}") from failure.cause


def total_log_weight(arrays: Sequence[Array], samples: int) -> Array | None:
    """Add up the log weights of samples; what is not a number weighs nothing."""
    if not arrays:
        return None
    total = np.zeros(samples)
    for array in arrays:
        total += array
    total[np.isnan(total)] = -np.inf
    return total


def needed_by(query: Quantity, case: Case) -> list[Node]:
    """Return the nodes whose values a query must be given: inputs, output, and randomness it shares with them."""
    leaves = {variable.node for variable in random_leaves((dict(case.inputs), case.output))}
    shared = {node for node in ancestors(leaves) if node.is_random}
    given = leaves | shared
    needed = [node for node in reached(query.nodes, given.__contains__) if node in given]
    sizes = [node.parents[-1] for node in needed if node.operation.by_rows]
    return list(dict.fromkeys([*needed, *sizes]))


def of_samples(arrays: Mapping[Node, Array], which: Any) -> dict[Node, Array]:
    """Return the values for some samples; of columns of tables of random size, their rows."""
    return {
        node: RowOffsets(arrays[node.parents[-1]]).chosen(array, which) if node.operation.by_rows else array[which]
        for node, array in arrays.items()
    }


def explained(
    case: Case, failure: SampleFailure, rng: np.random.Generator, positions: Array, known: Mapping[Node, Array]
) -> ProgramError:
    """Say on which input the program failed, by evaluating the block again with the inputs kept."""
    if isinstance(failure.cause, Unanswered):
        return ProgramError(str(failure.cause))
    if failure.label == LABELS["assume"]:
        return ProgramError(
            f"{failure.label} failed with {described(failure.cause)}\n"
            "  A fact must say True or False for every input that the prior allows."
        )
    plan = CasePlan(case, None, _to_be_shown(case.inputs), list(known), exclude=False)
    inputs = plan.run(rng, positions, known, forgiving=True).quantities[2]
    shown = inputs.take(np.array([failure.index % len(positions)])).values()[0]
    return failure_of_program(failure, shown, everywhere=_fails_everywhere(case))


def _fails_everywhere(case: Case) -> bool:
    """Say whether a program that failed does so on every one of some draws that contradict no fact."""
    plan, rng = CasePlan(case, None, None, [], exclude=False), np.random.Generator(np.random.SFC64(0))
    for _ in range(INPUTS_TRIED):
        try:
            if len(plan.run(rng, np.zeros(1, np.int64), {}).positions):
                return False
        except SampleFailure:
            continue
    return True


def _to_be_shown(inputs: Mapping[str, Any]) -> Any:
    """Return the inputs as a quantity; tables of random size make them one of plain values."""
    structure, leaves = flatten(([], dict(inputs)))
    if not any(isinstance(leaf, RandomVariable) and leaf.node.operation.by_rows for leaf in leaves):
        return dict(inputs)
    return call(dict, Arguments(structure, tuple(leaves)), exclude_errors=False)


def settled(batch: Batch) -> Batch:
    """Give the outputs of programs called sample by sample the best form that their values allow."""
    if batch.structure == LEAF and batch.columns[0].array.dtype == object:
        return Batch.of_values(list(batch.columns[0].array))
    return batch
