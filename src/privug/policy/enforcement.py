"""Enforcing a policy: the smallest change of a release after which it holds, and what that costs.

Of two ways to merge, the one with more classes is finer; of as many, the one that leaves an output as it is with the
greater probability. Both are sums over classes, so the finest way is a set partitioning problem with one variable for
each set of outputs after which the policy holds: an integer programme, solved to optimality for few outputs. For many,
the best of two searches is taken: the finest way to merge neighbours, where outputs are numbers (dynamic programming),
and a greedy one.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.optimize
import scipy.sparse

from privug import leakage
from privug.arguments import InnerProbability, check_kind, is_number, kinds_checked, shown
from privug.attack import Attack
from privug.digits import how_many
from privug.errors import ArgumentError, InferenceError, NoRepair, PrivugError, ProgramError, UnsuitableEngine
from privug.escaping import inert
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.joint import Joint
from privug.mechanisms.disclosure import rounded, suppressed
from privug.model.batch import Batch
from privug.model.node import Array, Kind
from privug.model.operations import constant
from privug.model.structure import flatten, random_leaves
from privug.model.variable import RandomVariable
from privug.observation.likelihood import equal_values
from privug.observation.observations import Equals
from privug.pictures import plots
from privug.policy.boundary import BoundarySearch, BoundaryTrial, rounded_inwards, spaced
from privug.policy.checking import check
from privug.policy.clause_questions import SAMPLES, RunOptions
from privug.policy.output_classes import CELLS, Class, ClauseJoints
from privug.policy.policies import Policy
from privug.policy.verdict import Status, Verdict
from privug.program.logic import where
from privug.program.staged import Staged, called
from privug.report.text import grid_text

MOST_MERGED = 12  # outputs, whose subsets are 4,095
MOST_ENUMERATED = 8  # outputs, which are merged in 4,140 ways
MOST_SEARCHED = 1_000
RESOLUTION = 1_000  # the solver stops at a millionth: such a difference must not matter

OPTIMAL = "optimal"
NEIGHBOURS = "optimal among ways to merge neighbouring outputs"
GREEDY = "found by a greedy search, not proven to be the finest"


class OutputPartition(NamedTuple):
    """Outputs merged into classes, and how good that is known to be."""

    classes: tuple[Class, ...]
    method: str


def finest(views: ClauseJoints, neighbours: bool = False) -> OutputPartition | None:
    """Return the finest way to merge outputs such that the policy holds; None if there is none, or none was found.

    With `neighbours`, only numbers that are next to each other are merged.
    """
    count = len(views.outputs)
    if neighbours:
        return _of_neighbours(views)
    if views.averages:
        if count > MOST_ENUMERATED:
            raise UnsuitableEngine(
                f"a limit on an average over outputs is enforced by merging for up to {MOST_ENUMERATED} outputs; here "
                f"are {count:,}: ask for repair='round', 'suppress' or 'noise'"
            )
        return _by_enumeration(views)
    if count <= MOST_MERGED:
        return _by_integer_programming(views)
    if count > MOST_SEARCHED:
        raise UnsuitableEngine(f"{count:,} outputs are too many to merge; round them: repair='round'")
    found = [partition for partition in (_by_neighbours(views), _greedily(views)) if partition is not None]
    return max(found, key=lambda partition: fineness(views, partition.classes), default=None)


def fineness(views: ClauseJoints, classes: Sequence[Class]) -> float:
    """Return the number of classes and, as less than one, the probability that an output is alone in its class."""
    return float(np.sum(_weights(views, classes)))


def _weights(views: ClauseJoints, classes: Sequence[Class]) -> Array:
    return np.array([1 + (0.5 * views.marginal[places[0]] if len(places) == 1 else 0.0) for places in classes])


def _by_integer_programming(views: ClauseJoints) -> OutputPartition | None:
    """Choose among all sets of outputs after which the policy holds, such that each output is in one."""
    count = len(views.outputs)
    subsets = [_places(mask, count) for mask in range(1, 2**count)]
    kept = [subset for subset, keeps in zip(subsets, views.keep(subsets), strict=True) if keeps]
    if not kept:
        return None
    cover = scipy.sparse.csr_array(views.members(kept).T)
    once = scipy.optimize.LinearConstraint(cover, np.ones(count), np.ones(count))
    solved = scipy.optimize.milp(
        -RESOLUTION * _weights(views, kept),
        integrality=np.ones(len(kept), int),
        bounds=scipy.optimize.Bounds(0, 1),
        constraints=once,
        options={"mip_rel_gap": 0.0},
    )
    if solved.x is None:
        return None
    return OutputPartition(tuple(kept[place] for place in np.flatnonzero(solved.x > 0.5)), OPTIMAL)


def _places(mask: int, count: int) -> Class:
    return tuple(place for place in range(count) if mask >> place & 1)


def _by_enumeration(views: ClauseJoints) -> OutputPartition | None:
    """Try all ways to merge, the finest first."""
    ways = sorted(partitions_of(len(views.outputs)), key=lambda classes: -fineness(views, classes))
    return next((OutputPartition(classes, OPTIMAL) for classes in ways if views.keep(classes).all()), None)


def partitions_of(count: int) -> Iterator[tuple[Class, ...]]:
    """Yield all ways to divide so many things into classes.

    >>> len(list(partitions_of(4)))
    15
    """
    if count == 0:
        yield ()
        return
    for classes in partitions_of(count - 1):
        yield (*classes, (count - 1,))
        for place, one in enumerate(classes):
            yield (*classes[:place], (*one, count - 1), *classes[place + 1 :])


def _of_neighbours(views: ClauseJoints) -> OutputPartition | None:
    """Merge neighbours only, or say why that cannot be done."""
    if views.averages or not _are_numbers(views) or not _few_runs(views):
        raise UnsuitableEngine(
            "neighbouring outputs are merged if they are numbers, not too many, and if no limit is on an average"
        )
    return _by_neighbours(views)


def _are_numbers(views: ClauseJoints) -> bool:
    return all(isinstance(output, int | float) for output in views.outputs)


def _few_runs(views: ClauseJoints) -> bool:
    return len(views.outputs) ** 3 <= 100 * CELLS


def _by_neighbours(views: ClauseJoints) -> OutputPartition | None:
    """Merge runs of neighbouring numbers: the finest way to divide each beginning of the outputs, one by one."""
    count = len(views.outputs)
    if not _are_numbers(views) or not _few_runs(views):
        return None
    order = sorted(range(count), key=lambda place: float(views.outputs[place]))
    runs = [(start, end) for end in range(1, count + 1) for start in range(end)]
    classes: list[Class] = [tuple(order[start:end]) for start, end in runs]
    worth = np.where(views.keep(classes), _weights(views, classes), -np.inf)
    best, begins = np.full(count + 1, -np.inf), np.zeros(count + 1, int)
    best[0] = 0.0
    for end in range(1, count + 1):
        whole = best[:end] + worth[end * (end - 1) // 2 : end * (end + 1) // 2]
        begins[end] = int(np.argmax(whole))
        best[end] = whole[begins[end]]
    if not np.isfinite(best[count]):
        return None
    found, end = [], count
    while end:
        found.append(tuple(order[begins[end] : end]))
        end = int(begins[end])
    return OutputPartition(tuple(found[::-1]), NEIGHBOURS)


def _greedily(views: ClauseJoints) -> OutputPartition | None:
    """Merge the class that breaks the policy most with the one that helps most, until none does; then divide again."""
    classes: list[Class] = [(place,) for place in range(len(views.outputs))]
    excess = views.excess(classes)
    broken = ~views.keep(classes)
    while broken.any():
        if len(classes) == 1:
            return None
        worst = int(np.argmax(np.where(broken, excess, -np.inf)))
        others = [place for place in range(len(classes)) if place != worst]
        merged: list[Class] = [(*classes[worst], *classes[other]) for other in others]
        after, mended = views.excess(merged), views.keep(merged)
        losses = np.array([views.marginal[list(classes[other])].sum() for other in others])
        rank = np.lexsort((losses, ~broken[others], np.where(mended, 0.0, after), ~mended))
        chosen = int(rank[0])
        stay = [place for place in others if place != others[chosen]]
        classes = [*(classes[place] for place in stay), merged[chosen]]
        excess, broken = np.append(excess[stay], after[chosen]), np.append(broken[stay], not mended[chosen])
    return OutputPartition(tuple(_divided_again(views, classes)), GREEDY)


def _divided_again(views: ClauseJoints, classes: Sequence[Class]) -> list[Class]:
    """Take outputs out of their classes again, the likeliest first, where the policy holds without them too."""
    found: list[Class] = []
    for places in classes:
        rest = places
        for place in sorted(places, key=lambda one: -views.marginal[one]):
            without = tuple(one for one in rest if one != place)
            if without and views.keep([without, (place,)]).all():
                found.append((place,))
                rest = without
        found.append(rest)
    return found


MOST_NAMED = 4  # outputs that the name of a class lists


@dataclass(frozen=True, eq=False)
class OutputMerging:
    """A release that says to which of some classes an output belongs, by the name of the class."""

    classes: tuple[tuple[Any, ...], ...]
    names: tuple[str, ...]

    def __call__(self, output: Any) -> Any:
        if not random_leaves(output):
            return self.name_of(output)
        name: Any = self.names[0]
        for members, other in zip(self.classes[1:], self.names[1:], strict=True):
            name = where(reduce(lambda one, more: one | more, [_is(output, member) for member in members]), other, name)
        return name

    @property
    def alone(self) -> list[str]:
        """The names of classes of one output each."""
        return [name for members, name in zip(self.classes, self.names, strict=True) if len(members) == 1]

    def name_of(self, output: Any) -> str:
        """Return the name of the class of a plain output."""
        for members, name in zip(self.classes, self.names, strict=True):
            if any(equal_values(output, member) for member in members):
                return name
        raise ProgramError(f"{shown(output)} is none of the outputs that were thought possible: it is not released")


def _is(output: Any, value: Any) -> RandomVariable:
    """Return the condition that a random output is a value, up to rounding."""
    likelihood = Equals(value).likelihood(output)
    conditions = (constant(False),) if likelihood.impossible else likelihood.conditions or (constant(True),)
    return reduce(lambda one, other: one & other, map(RandomVariable, conditions))


def merged(outputs: Sequence[Any], classes: Sequence[Class]) -> OutputMerging:
    """Return the release that merges outputs into classes, in the order in which these begin."""
    ordered = sorted(tuple(sorted(places)) for places in classes)
    names: list[str] = []
    for number, places in enumerate(ordered):
        name = _name(outputs, places)
        names.append(name if name not in names else f"{name} (class {number + 1})")
    return OutputMerging(tuple(tuple(outputs[place] for place in places) for places in ordered), tuple(names))


def _name(outputs: Sequence[Any], places: Class) -> str:
    """Name a class after its members: neighbouring numbers by the ends, others one by one, as far as they are few."""
    members = [outputs[place] for place in places]
    neighbours = places[-1] - places[0] == len(places) - 1
    if len(members) > 2 and neighbours and all(isinstance(member, int | float) for member in members):
        return f"{_text(members[0])} to {_text(members[-1])}"
    listed = [_text(member) for member in members[:MOST_NAMED]]
    if len(members) > MOST_NAMED:
        listed[-1] = f"{len(members) - MOST_NAMED + 1} others"
    return " or ".join(listed)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.6g}" if isinstance(value, float) else shown(value)


Release = Callable[[Any], Any]


@dataclass(frozen=True)
class Utility:
    """What is left of the original output in what is released, on average over the attacker's prior.

    `information` is the mutual information of the two, of which there were `available` bits, the entropy of the
    original output; `unchanged` is the probability that an output is released as it is: alone in its class, or as the
    same number; `error` is the expected distance of single numbers. What cannot be told is None.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda a, b: a + b, {"a": pv.Bernoulli(0.5), "b": pv.Bernoulli(0.5)}, secret="a")
    >>> mended = pv.policy.enforce(attack, pv.policy.max_belief(at_most=0.7), repair="merge")
    >>> round(mended.utility.information.value, 4), mended.utility.available.value
    (1.0, 1.5)
    """

    information: Estimate | None = None
    available: Estimate | None = None
    unchanged: Estimate | None = None
    error: Estimate | None = None

    def __str__(self) -> str:
        told = []
        if self.information is not None:
            of_all = "" if self.available is None else f" of {self.available.number()}"
            told.append(f"the release preserves {self.information.number()}{of_all} bits of the output")
        if self.unchanged is not None:
            told.append(f"the output is unchanged with probability {self.unchanged.number()}")
        if self.error is not None:
            told.append(f"its mean absolute error is {self.error.number()}")
        return "; ".join(told)


@dataclass(frozen=True, eq=False)
class _Beside:
    """The release of an output together with itself."""

    release: Release

    def __call__(self, output: Any) -> Any:
        return output, called(self.release, output)


@dataclass(frozen=True, eq=False)
class _Distance:
    """The release of by how much a single number changes."""

    release: Release

    def __call__(self, output: Any) -> Any:
        difference = called(self.release, output) - output
        return where(difference < 0, -difference, difference) if random_leaves(difference) else abs(difference)


def utility_of(attack: Attack, release: Release, options: RunOptions) -> Utility:
    """Measure what a release leaves of an attack's output."""
    try:
        belief = options.run(_released(attack, release, _Beside), None).prediction
        if belief.kind is Kind.DISCRETE:
            return _of_pairs(belief, release)
    except PrivugError:  # outputs that cannot be told together with themselves; distances may be known all the same
        pass
    return Utility(error=_error(attack, release, options))


def _released(attack: Attack, release: Release, how: Callable[[Release], Release]) -> Attack:
    return attack.replace(program=Staged(attack.question.program, how(release)), observe=None, questions=None)


def _of_pairs(belief: Belief, release: Release) -> Utility:
    """Measure pairs of an output and what was released in its place."""
    originals, released = zip(*belief.batch.values(), strict=True)
    before, after = (_alike(belief, Batch.of_values(list(values))) for values in (originals, released))
    merges = isinstance(release, OutputMerging)
    alone = set(release.alone) if isinstance(release, OutputMerging) else set()
    unchanged = belief.probability(lambda pair: pair[1] in alone if merges else equal_values(*pair))
    error = None
    if not merges and all(isinstance(value, int | float) for value in (*originals, *released)):
        distances = np.abs(np.subtract(released, originals, dtype=float))
        error = _alike(belief, Batch.of_values(distances)).mean()
    return Utility(leakage.mutual_information(Joint(before, after)), leakage.entropy(before), unchanged, error)


def _alike(belief: Belief, batch: Batch) -> Belief:
    """Return a belief about something else on the same samples or states."""
    kept = belief.weights, belief.exact, belief.label
    return Belief(batch, *kept, Kind.DISCRETE, error=belief.error, groups=belief.groups)


def _error(attack: Attack, release: Release, options: RunOptions) -> Estimate | None:
    """Return the expected distance of single numbers; None if they are none."""
    try:
        belief = options.run(_released(attack, release, _Distance), None).prediction
        return None if belief.batch.numbers() is None else belief.mean()
    except (PrivugError, TypeError):
        return None


MOST_TRIED = 200
STEPS = (1, 2, 5)
FINEST = 20  # steps of rounding in the range of outputs that have a density
GRID = 9  # amounts of noise that are tried first
NEGLIGIBLE = 1e-12
"""Noise without end is cut where 1e-15 of it is left. Outputs that rare cannot be judged and are left out of account;
the verdict says how likely they are."""

Program = Callable[..., Any]
Trials = tuple[tuple[float, Status], ...]


@dataclass(frozen=True)
class Repair:
    """A changed program after every output of which the policy holds, in words, and what was tried on the way.

    `value` is the step of rounding, the threshold or the parameter of the noise; `bracket` are that value and the
    nearest one tried that is less protection and breaks the policy, or leaves it open.
    """

    kind: str
    words: str
    program: Staged
    verdict: Verdict
    value: float | None = None
    bracket: tuple[float, float] | None = None
    trials: Trials = ()
    merged: OutputMerging | None = None
    method: str = ""


@dataclass(frozen=True)
class RepairTask:
    """What is to be repaired, and how programs are checked."""

    attack: Attack
    policy: Policy
    options: RunOptions

    @property
    def program(self) -> Program:
        """The program whose output is released."""
        return self.attack.question.program

    def attack_on(self, program: Program) -> Attack:
        """Return the same attack on another program."""
        return self.attack.replace(program=program, observe=None, name=self.attack.name)

    def check(self, program: Program, except_probability: float = 0.0) -> Verdict:
        """Check the policy on another program."""
        attack = self.attack_on(program)
        return check(attack, self.policy, **asdict(self.options), except_probability=except_probability)


def by_merging(task: RepairTask, neighbours: bool) -> Repair:
    """Merge outputs into the finest classes after which the policy holds."""
    views = ClauseJoints.of(task.attack, task.policy, task.options)
    found = finest(views, neighbours)
    if found is None:
        raise NoRepair("no merging of outputs satisfies the policy")
    release = merged(views.outputs, found.classes)
    program = Staged(task.program, release)
    classes = how_many(len(found.classes), "class", "classes")
    words = f"its {len(views.outputs)} outputs merged into {classes}, {found.method}"
    return _checked(Repair("merge", words, program, task.check(program), merged=release, method=found.method))


def _checked(repair: Repair) -> Repair:
    if not repair.verdict.holds:
        raise NoRepair(f"with {repair.words} it is not certain that the policy holds: {repair.verdict.sentence()}")
    return repair


@dataclass
class Ladder:
    """Candidates in the order of their protection, the least first; the first that satisfies the policy is taken."""

    task: RepairTask
    kind: str
    made: Callable[[float], Staged]
    words: str
    trials: list[tuple[float, Status]] = field(default_factory=list)

    def climbed(self, candidates: Iterable[float]) -> Repair:
        """Try the candidates one by one."""
        for value in candidates:
            program = self.made(value)
            verdict = self.task.check(program)
            if verdict.holds:
                before = self.trials[-1][0] if self.trials else -math.inf
                self.trials.append((value, verdict.status))
                words, bracket = self.words.format(value), (before, value)
                return Repair(self.kind, words, program, verdict, value, bracket, tuple(self.trials), method="finest")
            self.trials.append((value, verdict.status))
        tried = ", ".join(f"{value:g}" for value, _ in self.trials[:8]) + (", ..." if len(self.trials) > 8 else "")
        raise NoRepair(f"{self.words.format(math.nan).replace('nan', 'any of ' + tried)} does not satisfy the policy")


def by_rounding(task: RepairTask, steps: Sequence[float] | None) -> Repair:
    """Round to the finest step for which the policy holds."""
    candidates = sorted(_numbers("steps", steps)) if steps is not None else _steps(task)
    return Ladder(
        task, "round", lambda step: rounded(task.program, to=step), "numbers rounded to multiples of {:g}"
    ).climbed(candidates)


def by_suppression(task: RepairTask, thresholds: Sequence[float] | None) -> Repair:
    """Leave out counts below the smallest threshold for which the policy holds."""
    candidates = sorted(_numbers("thresholds", thresholds)) if thresholds is not None else _thresholds(task)
    return Ladder(
        task, "suppress", lambda least: suppressed(task.program, fewer_than=int(least)), "counts below {:g} left out"
    ).climbed(candidates)


def _numbers(name: str, values: Any) -> list[float]:
    listed = list(values) if isinstance(values, list | tuple | range | np.ndarray) else []
    if not listed or not all(is_number(value) and value > 0 for value in listed):
        raise ArgumentError(f"enforce: {name} must be a list of positive numbers, not {shown(values)}")
    return [float(value) for value in listed]


def _numbers_of_outputs(task: RepairTask) -> list[float]:
    """Return the numbers that the outputs are made of, as far as they are listed or seen."""
    batch = task.options.run(task.attack, None).prediction.batch
    plain = batch.numbers()
    if plain is not None and plain.dtype.kind in "bif":
        numbers: list[float] = np.unique(plain).astype(float).tolist()
        return numbers
    leaves = [leaf for value in batch.factorized()[1] for leaf in flatten(value)[1]]
    arrays = [np.asarray(leaf) for leaf in leaves]
    if not arrays or any(array.dtype.kind not in "biuf" for array in arrays):
        raise ArgumentError("enforce: rounding and suppression need outputs that are made of numbers")
    return sorted({float(number) for array in arrays for number in array.reshape(-1)})


def _steps(task: RepairTask) -> list[float]:
    """Return 1, 2 or 5 times powers of ten, from the least distance of outputs to beyond their range."""
    numbers = [number for number in _numbers_of_outputs(task) if math.isfinite(number)]
    span = 2 * max(map(abs, numbers), default=0.0) or 1.0
    gaps = np.diff(numbers)
    finest = max(float(gaps.min(initial=span)), span / FINEST)
    powers = range(math.floor(math.log10(finest)) - 1, math.ceil(math.log10(span)) + 2)
    steps = [float(f"{step}e{power}") for power in powers for step in STEPS]
    beyond = next(place for place, step in enumerate(steps) if step > span)
    return [step for step in steps[: beyond + 1] if step > finest * (1 + 1e-9)]


def _thresholds(task: RepairTask) -> list[float]:
    numbers = _numbers_of_outputs(task)
    if any(number != round(number) or number < 0 for number in numbers):
        raise ArgumentError("enforce: suppression is for counts, and the outputs are others")
    largest = int(max(numbers))
    if largest > MOST_TRIED:
        raise ArgumentError(f"enforce: counts up to {largest:,} have too many thresholds to try; give thresholds=[...]")
    return [float(threshold) for threshold in range(2, largest + 2)]


@dataclass(frozen=True)
class NoiseRange:
    """A mechanism with one parameter, its range, and which end of it is the less noise."""

    made: Callable[[Program, float], Any]
    parameter: str
    ends: tuple[float, float]
    find: str = "largest"
    tolerance: float = 0.01

    def on(self, program: Program, value: float) -> Staged:
        """Return a program with so much noise."""
        noisy = self.made(program, value)
        if not isinstance(noisy, Staged):
            raise ArgumentError(
                "enforce: noise must take the program and a number and return a mechanism, such as "
                "lambda program, epsilon: pv.mechanisms.laplace(program, sensitivity=1, epsilon=epsilon), not "
                f"{shown(noisy)}"
            )
        return noisy


def noise_of(made: Any, parameter: Mapping[str, Any], find: str, tolerance: float) -> NoiseRange:
    """Take what a user says about noise: a function of a program and a number, and the range of that."""
    if len(parameter) != 1:
        named = ", ".join(parameter) or "none"
        raise ArgumentError(
            f"enforce: name the parameter of the noise with its range, as epsilon=(0.01, 10), not {named}"
        )
    ((name, ends),) = parameter.items()
    if not (isinstance(ends, list | tuple) and len(ends) == 2 and all(map(is_number, ends)) and ends[0] < ends[1]):
        raise ArgumentError(
            f"enforce: {name} must be a range such as (0.01, 10), the lower end first, not {shown(ends)}"
        )
    return NoiseRange(made, name, (float(ends[0]), float(ends[1])), find, tolerance)


def by_noise(task: RepairTask, noise: NoiseRange) -> Repair:
    """Add the least noise of a mechanism for which the policy holds."""
    least = noise.ends[1] if noise.find == "largest" else noise.ends[0]
    program = noise.on(task.program, least)
    verdict = task.check(program, NEGLIGIBLE)
    words = f"noise of {noise.parameter} = {{}}"
    if verdict.holds:
        told = f"{words.format(f'{least:g}')}, the least in its range"
        return Repair("noise", told, program, verdict, least, None, ((least, verdict.status),), method="least in range")

    def judge(values: Sequence[float]) -> list[BoundaryTrial]:
        statuses = [task.check(noise.on(task.program, value), NEGLIGIBLE).status for value in values]
        return [BoundaryTrial(value, None, status) for value, status in zip(values, statuses, strict=True)]

    search = BoundarySearch(judge, noise.parameter, "the policy holds", noise.find, noise.tolerance)
    try:
        found = search.run(spaced(*noise.ends, GRID))
    except InferenceError as error:
        raise NoRepair(f"no noise in the range satisfies the policy: {error}") from None
    value, again = found.holds.value, found.again
    program = noise.on(task.program, value)
    remark = "" if again is None else f". It holds again at {noise.parameter} = {again.value:.6g}"
    rounded = rounded_inwards(value, found.bracket, noise.find)
    told = f"{words.format(rounded)}, the {noise.find} that satisfies the policy{remark}"
    trials = tuple((trial.value, trial.status) for trial in found.trials)
    verdict = task.check(program, NEGLIGIBLE)
    return _checked(Repair("noise", told, program, verdict, value, found.bracket, trials, method="bisection"))


ANY = "any"
MOST_SHOWN = 20  # classes in the text of an enforcement


@dataclass(frozen=True)
class Enforcement:
    """The smallest change of a release, of a given kind, after which a policy holds.

    `program` is the changed program, which is called on plain inputs as the original is, and `attack` the same attack
    on it; `verdict` is what a check of that found, and `before` what one of the original did. `repair` is the kind of
    change: 'merge', 'round', 'suppress' or 'noise', or 'none' if the policy held as it was. `classes` are the outputs
    that are told apart no longer, with the name that is released for each class; `value` is the step of rounding, the
    threshold, or the parameter of the noise, and `bracket` joins the nearest value tried with less protection. `method`
    says how sure it is that no smaller change will do, `utility` what is left of the output, `others` are the changes
    of other kinds that were found, and `notes` say why there are none of some kinds.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda a, b: a + b, {"a": pv.Bernoulli(0.5), "b": pv.Bernoulli(0.5)}, secret="a")
    >>> mended = pv.policy.enforce(attack, pv.policy.max_belief(at_most=0.7), repair="merge")
    >>> mended.program(1, 1), mended.verdict.status.value
    ('0 or 2', 'holds')
    """

    repair: str
    words: str
    program: Program
    attack: Attack
    before: Verdict
    verdict: Verdict
    utility: Utility
    classes: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    value: float | None = None
    bracket: tuple[float, float] | None = None
    trials: Trials = ()
    method: str = ""
    others: tuple["Enforcement", ...] = ()
    notes: tuple[str, ...] = ()

    def plot(self, ax: Any = None) -> Any:
        """Draw the number that the policy limits before and after the change; `ax` is matplotlib axes or a path."""
        verdicts = {"before": self.before, "after": self.verdict}
        rows = [(said, one.worst, one.bound) for said, one in verdicts.items() if one.worst is not None]
        return plots().bars(rows, ax, self.verdict.about)

    def __str__(self) -> str:
        if self.repair == "none":
            return inert(f"No change is needed: {self.verdict.sentence()}")
        lines = [f"{self.attack.name} with {self.words}", f"  before  {self.before.sentence()}"]
        lines += [f"  after   {self.verdict.sentence()}", f"  cost    {self.utility}"]
        lines += [f"  or      {other.words}: {other.utility}" for other in self.others]
        lines += [f"  note    {note}" for note in self.notes]
        return "\n".join([inert("\n".join(lines), keep="\n"), *self._table()])

    def _table(self) -> list[str]:
        if not self.classes:
            return []
        rows = [[", ".join(map(shown, members)), name] for name, members in self.classes[:MOST_SHOWN]]
        rows = [[text if len(text) <= 60 else f"{text[:56]} ...", name] for text, name in rows]
        left_out = len(self.classes) - len(rows)
        more = [f"and {left_out} more classes"] if left_out else []
        return [grid_text("", ["output", "released as"], rows, more).strip("\n")]


@kinds_checked
def enforce(
    attack: Attack,
    policy: Policy,
    *,
    repair: Literal["any", "merge", "round", "suppress", "noise"] = "any",
    noise: Callable[..., Any] | None = None,
    find: Literal["largest", "smallest"] = "largest",
    tolerance: InnerProbability = 0.01,
    steps: Sequence[float] | None = None,
    thresholds: Sequence[float] | None = None,
    neighbours: bool = False,
    engine: str = "auto",
    samples: int = SAMPLES,
    seed: int = 0,
    seconds: float | None = None,
    **parameter: tuple[float, float],
) -> Enforcement:
    """Find the smallest change of a release after which a policy holds after every output.

    The changed program is always checked, by the same rules as the original.

    Args:
        attack: The program, the attacker's prior and the secret.
        policy: The limits.
        repair: "merge" releases the class of an output: as many classes as possible and, of as many, such that outputs
            stay alone with the greatest probability; optimal for up to 12 outputs. "round" takes the finest of some
            steps, "suppress" the smallest threshold of counts, "noise" the least noise. "any" takes whichever
            preserves most of the information about the original output.
        noise: A function of the program and a parameter that adds noise.
        find: Whether the "largest" or the "smallest" value of the parameter is the least noise. The search assumes that
            less noise protects less.
        tolerance: How narrow the bracket of the parameter becomes, relative to its value.
        steps: The steps of rounding; by default 1, 2 and 5 times powers of ten.
        thresholds: The thresholds of counts; by default all.
        neighbours: Merge only numbers next to each other, which is optimal for any number of them.
        engine: The inference engine, or "auto".
        samples: How many samples are drawn where no exact answer is possible.
        seed: Seeds the samples.
        seconds: Limits the time of each run.
        parameter: The name of the noise's parameter with its range, such as `epsilon=(0.01, 10)`.

    Returns:
        The changed program, the verdicts before and after, and what the change costs.

    Raises:
        NoRepair: No change satisfies the policy; the message says so if even releasing nothing would not, because the
            prior itself violates it.
        ArgumentError: An argument is not of its kind.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda x, y: x + y, secret="x",
    ...                    prior={"x": pv.DiscreteUniform(0, 2), "y": pv.DiscreteUniform(0, 2)})
    >>> mended = enforce(attack, pv.policy.max_belief(at_most=0.7), repair="merge")
    >>> [name for name, outputs in mended.classes]
    ['0 or 4', '1', '2', '3']
    >>> mended.program(2, 2)
    '0 or 4'
    """
    check_kind("enforce", "attack", attack, (Attack,))
    check_kind("enforce", "policy", policy, (Policy,))
    given = _asked_for(repair, noise, find, tolerance, parameter)
    task = RepairTask(attack, policy, RunOptions(engine, samples, seed, seconds))
    return _mended(task, repair, given, steps, thresholds, neighbours)


def _asked_for(
    repair: str, noise: Callable[..., Any] | None, find: str, tolerance: float, parameter: Mapping[str, Any]
) -> NoiseRange | None:
    """Return the noise that may be added, if any, or say what is wrong with what was asked for."""
    if noise is not None:
        return noise_of(noise, parameter, find, tolerance)
    if repair == "noise" or parameter:
        raise ArgumentError(
            "enforce: noise must say how it is made, such as noise=lambda program, epsilon: "
            "pv.mechanisms.laplace(program, sensitivity=1, epsilon=epsilon), epsilon=(0.01, 10)"
        )
    return None


def _mended(task: RepairTask, repair: str, *options: Any) -> Enforcement:
    """Return the best of the repairs that there are."""
    program = task.program
    before = task.check(program)
    if before.holds:
        return Enforcement("none", "no change", program, task.attack, before, before, Utility(), method="optimal")
    found, notes = _found(task, repair, *options)
    if not found:
        raise NoRepair(_why_none(task, notes))
    mended = [_enforcement(task, before, one) for one in found]
    best = max(mended, key=_information)
    others = tuple(one for one in mended if one is not best)
    return replace(best, others=others, notes=tuple(notes))


def _found(
    task: RepairTask, repair: str, noise: NoiseRange | None, steps: Any, thresholds: Any, neighbours: bool
) -> tuple[list[Repair], list[str]]:
    """Return the repairs of the kinds asked for, and why there are none of others."""
    ways: dict[str, Callable[[], Repair]] = {
        "merge": lambda: by_merging(task, neighbours),
        "round": lambda: by_rounding(task, steps),
        "suppress": lambda: by_suppression(task, thresholds),
    }
    if noise is not None:
        ways["noise"] = lambda: by_noise(task, noise)
    if repair != ANY:
        try:
            return [ways[repair]()], []
        except NoRepair as error:
            return [], [str(error)]
    found, notes = [], []
    for kind, way in ways.items():
        try:
            found.append(way())
        except (NoRepair, InferenceError, ArgumentError) as error:
            notes.append(f"{kind}: {str(error).removeprefix('enforce: ')}")
    return found, notes


def _enforcement(task: RepairTask, before: Verdict, repair: Repair) -> Enforcement:
    utility = utility_of(task.attack, repair.program.release, task.options)
    release = repair.merged
    classes = () if release is None else tuple(zip(release.names, release.classes, strict=True))
    attack = task.attack_on(repair.program)
    return Enforcement(
        repair.kind, repair.words, repair.program, attack, before, repair.verdict, utility, classes,
        repair.value, repair.bracket, repair.trials, repair.method,
    )  # fmt: skip


def _information(mended: Enforcement) -> float:
    """Return how much of the output is left, for the choice among repairs; what cannot be told comes last."""
    return -1.0 if mended.utility.information is None else mended.utility.information.value


def _nothing(output: Any) -> int:
    return 0


def _why_none(task: RepairTask, notes: Sequence[str]) -> str:
    """Return why there is no repair: because of the prior alone, or because of what was looked for."""
    told = "; ".join(notes)
    try:
        silent = task.check(Staged(task.program, _nothing))
    except PrivugError:
        return told
    if silent.holds:
        return f"{told}. Releasing nothing would satisfy it"
    found = "" if silent.worst is None else f" ({silent.worst})"
    verb = "violates" if silent.violated else "may violate"
    return f"no release can satisfy this policy: the prior itself {verb} it{found}, even if nothing is released. {told}"
