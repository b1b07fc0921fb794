"""Audit: does a mechanism keep what it promises on given neighbouring inputs? Computed, or from samples.

Half of the samples serve to choose an event, a set of outputs that is much likelier for one input than for the other.
The other half says how likely it is, with intervals of Clopper and Pearson. Whatever the event, the result is a lower
bound that holds with the stated confidence. As in Bichsel et al., DP-Sniper, IEEE S&P 2021; Ding et al., CCS 2018.
"""

import inspect
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
import scipy

from privug.arguments import LARGEST, NumberRange, is_number, kinds_checked, shortened, shown
from privug.attack import Attack
from privug.errors import ArgumentError, ProgramError, UnsuitableEngine
from privug.estimate import CONFIDENCE, Estimate
from privug.inference.belief import Belief
from privug.inference.graph.affine import affine_roots
from privug.inference.measure.curve import Curve
from privug.mechanisms.guarantee import Guarantee, gaussian_delta, largest
from privug.mechanisms.mechanism import promised
from privug.mechanisms.paths.comparisons import Conditions, Forest, PathDensity, Uncomparable, largest_log_ratio
from privug.mechanisms.paths.log_laws import Unintegrable
from privug.model.batch import Batch, Column
from privug.model.node import Array, Node, ancestors
from privug.model.operations import SampleFailure
from privug.model.plan import Plan
from privug.model.structure import flatten
from privug.model.variable import RandomVariable, as_node
from privug.pictures import plots
from privug.prior.choice import constant_value
from privug.prior.discrete import Bernoulli
from privug.prior.family import Draw, Family, family_of
from privug.prior.scalar import Kernel, ScalarFamily
from privug.program.lifting import apply
from privug.program.paths import NotFollowed, Path, paths
from privug.program.staged import OtherForm, taken_apart

RARE = 1e-12  # outputs less likely than that for both inputs are left out where distributions had to be cut off
LARGEST_EPSILON = 1e4  # epsilons above this are as good as infinite
CELLS = 4000  # of outputs with a density; what differs within a cell is not seen
TAIL = 1e-6  # the probability of the outermost cells: smaller ones have few digits
ROUNDING = 1e-14  # of probabilities of cells
ABOVE_ONE = tuple(float(order) for order in np.geomspace(1 / 64, 1024, 65))  # by how much an order exceeds one


@dataclass(frozen=True)
class LocatedNoise:
    """A number with continuous noise: where it lies, how wide it is."""

    family: Any
    centre: float
    scale: float


Masses = Mapping[Hashable, float]


def compare(one: Any, other: Any, promise: Guarantee) -> Estimate | None:
    """Return how far apart two outputs are by the measure of a promise, or None if that cannot be had exactly.

    That is the smallest epsilon for the promised delta, in nats; where only rho is promised, the smallest rho.
    """
    random = [pair for pair in _pairs(one, other) if not _is_certain(pair)]
    return compare_certain(one, other) or _by_noise(random, promise) or _by_masses(one, other, promise)


def compare_certain(one: Any, other: Any) -> Estimate | None:
    """Compare what is certain in two outputs; return None if what is random in them matters."""
    pairs = _pairs(one, other)
    if flatten(one)[0] != flatten(other)[0] or any(_shape(left) != _shape(right) for left, right in pairs):
        return Estimate.exactly(math.inf, "nat", "exact: the outputs differ in form")
    certain = [pair for pair in pairs if _is_certain(pair)]
    if not all(np.array_equal(left, right) for left, right in certain):
        return Estimate.exactly(math.inf, "nat", "exact: a part of the output has no noise")
    return Estimate.exactly(0.0, "nat") if len(certain) == len(pairs) else None


def _shape(leaf: Any) -> tuple[int, ...]:
    return tuple(leaf.shape) if isinstance(leaf, RandomVariable) else np.shape(leaf)


def _pairs(one: Any, other: Any) -> list[tuple[Any, Any]]:
    return list(zip(flatten(one)[1], flatten(other)[1], strict=False))


def _is_certain(pair: tuple[Any, Any]) -> bool:
    return not any(isinstance(leaf, RandomVariable) for leaf in pair)


def _by_noise(pairs: Sequence[tuple[Any, Any]], promise: Guarantee) -> Estimate | None:
    """Compare numbers each of which has Laplace or normal noise of its own."""
    noises = [(_noise_of(left), _noise_of(right)) for left, right in pairs]
    for side in (0, 1):
        roots = [root for pair in pairs for root in _roots(pair[side])]
        if len(roots) != len(set(roots)):
            return None
    shifts: dict[bool, list[float]] = {True: [], False: []}  # of normal noise, and of Laplace noise
    for left, right in noises:
        if left is None or right is None or left.family is not right.family:
            return None
        if left.scale != right.scale:
            return _estimate(math.inf, promise) if promise.delta == 0 else None
        if not (math.isfinite(left.centre) and math.isfinite(right.centre)):  # no noise hides what is not a number
            if left.centre != right.centre:
                return _estimate(math.inf, promise)
            continue
        shifts[left.family.gaussian].append(abs(left.centre - right.centre) / left.scale)
    moved = [shift for shift in shifts[False] if shift > 0]
    if len(moved) > 1 and promise.delta > 0:
        return None
    return _of_shifts(sum(moved), math.hypot(*shifts[True]), promise)


def _of_shifts(laplace: float, normal: float, promise: Guarantee) -> Estimate | None:
    """Compare noise by how many scales the Laplace part, and by how many deviations the normal part was moved."""
    if _only_rho(promise):
        return _estimate(normal**2 / 2, promise) if laplace == 0 else None
    if normal == 0 and promise.delta == 0:
        return _estimate(laplace, promise)
    if normal == 0:  # delta = 1 - exp((epsilon - shift) / 2) for Laplace noise, solved for epsilon
        return _estimate(max(0.0, laplace + 2 * math.log1p(-promise.delta)), promise)
    if promise.delta == 0:
        return _estimate(math.inf, promise)
    if laplace > 0:
        return None
    return _estimate(_smallest(lambda epsilon: gaussian_delta(normal, epsilon), promise.delta), promise)


def _is_known_noise(family: Family) -> bool:
    return family.gaussian or (isinstance(family, ScalarFamily) and family.kernel is Kernel.TWO_SIDED_EXPONENTIAL)


def _noise_of(leaf: Any) -> LocatedNoise | None:
    """Take a number apart into a known part and Laplace or normal noise, if it is made of these."""
    if not isinstance(leaf, RandomVariable) or leaf.ndim:
        return None
    roots = _roots(leaf)
    if len(roots) != 1 or not _is_known_noise(family_of(roots[0])) or _is_opaque(leaf.node):
        return None
    root, slope = roots[0], affine_roots(leaf.node).get(roots[0])
    if root.shape or not isinstance(slope, int | float | np.number):
        return None
    if any(node.is_random for node in ancestors(root.parents)):
        return None
    centre, scale = (float(constant_value(parent)) for parent in root.parents)
    rng = np.random.Generator(np.random.SFC64(0))
    known = Plan([leaf.node], [root]).run(1, rng, {root: np.array([centre])})[0]
    return LocatedNoise(family_of(root), float(known[0]), abs(float(slope)) * scale)


def _roots(leaf: Any) -> list[Node]:
    if not isinstance(leaf, RandomVariable):
        return []
    return [node for node in ancestors([leaf.node]) if isinstance(node.operation, Draw)]


def _is_opaque(node: Node) -> bool:
    return any(part.operation.opaque for part in ancestors([node]))


def _by_masses(one: Any, other: Any, promise: Guarantee) -> Estimate | None:
    """Compare outputs by the probabilities of all their values, or of cells of them where they have a density."""
    first, second = _belief(one), _belief(other)
    if first is None or second is None:
        return None
    if first.curve is not None and second.curve is not None:
        p, q = _cells(first.curve, second.curve)
        error = max(ROUNDING, first.curve.error, second.curve.error)
        value = _distance(p, q, promise, error)
        return Estimate(value, value, math.inf, _unit(promise), f"{CELLS:,} cells of outputs", confidence=1.0)
    if first.curve is not None or second.curve is not None:
        return None
    left, right = _masses(first), _masses(second)
    values = list(dict.fromkeys([*left, *right]))
    p, q = (np.array([side.get(value, 0.0) for value in values]) for side in (left, right))
    cut = max(first.error, second.error) > 0
    if cut:
        likely = np.maximum(p, q) > RARE
        p, q = p[likely], q[likely]
    return _estimate(_distance(p, q, promise), promise, cut)


def _belief(output: Any) -> Belief | None:
    """Return the distribution of an output if that is known exactly."""
    prior = {"coin": Bernoulli(0.5), "output": output}
    try:
        return Attack(lambda coin, output: output, prior, "coin").run(engine="exact").prediction
    except UnsuitableEngine:
        return None


def _masses(belief: Belief) -> Masses:
    """List the possible outputs with their probabilities."""
    codes, values = belief.batch.factorized()
    sums = np.bincount(codes, belief.weights, len(values))
    return {hashable(value): float(mass) for value, mass in zip(values, sums, strict=True)}


def _cells(one: Curve, other: Curve) -> tuple[Array, Array]:
    """Return the probabilities of values that have one, and of cells between common edges, for either curve."""
    ends = [end for curve in (one, other) for end in _extent(curve)]
    atoms = np.union1d(one.atoms, other.atoms)
    breaks = [np.asarray(curve.breaks, float) for curve in (one, other)]
    places = np.unique(np.concatenate([np.linspace(min(ends), max(ends), CELLS), *breaks, atoms]))
    places = places[np.isfinite(places)]
    rows = []
    for curve in (one, other):
        single = np.zeros(len(places))
        single[np.searchsorted(places, curve.atoms)] = curve.masses
        below = np.concatenate([[0.0], curve.cdf(places), [1.0]])
        between = np.diff(below) - np.concatenate([single, [0.0]])
        rows.append(np.concatenate([single, np.maximum(between, 0.0)]))
    return rows[0], rows[1]


def _extent(curve: Curve) -> tuple[float, float]:
    """Return a range that all but the outermost tails of a curve lie in."""
    values, probabilities = curve.cells()
    order = np.argsort(values)
    inner = np.abs(np.cumsum(probabilities[order]) - 0.5) <= 0.5 - TAIL
    inside = values[order][inner] if inner.any() else values
    return float(inside.min()), float(inside.max())


def _distance(p: Array, q: Array, promise: Guarantee, error: float = 0.0) -> float:
    """Return how far apart two lists of probabilities are at least, if they are off by some error."""
    pairs = [(np.maximum(left - error, 0.0), right + error) for left, right in ((p, q), (q, p))]
    if _only_rho(promise):
        return max(_concentration(*pair) for pair in pairs)
    return max(_epsilon(*pair, promise.delta) for pair in pairs)


def hashable(value: Any) -> Hashable:
    """Return what is equal for equal outputs, and can be looked up."""
    structure, leaves = flatten(value)
    return structure, tuple(leaf.tobytes() if isinstance(leaf, np.ndarray) else leaf for leaf in leaves)


def compare_log_masses(one: Array, other: Array, promise: Guarantee) -> Estimate:
    """Compare two lists of probabilities given by their logarithms, which may be too small for floats."""
    if promise.delta > 0 or _only_rho(promise):
        return _estimate(_distance(np.exp(one), np.exp(other), promise), promise)
    with np.errstate(invalid="ignore"):
        apart = np.where(one == other, 0.0, np.abs(one - other))
    return _estimate(float(np.max(apart, initial=0.0)), promise)


def _epsilon(p: Array, q: Array, delta: float) -> float:
    """Return the smallest epsilon so that p <= exp(epsilon) q + delta on all sets of outputs."""
    if delta == 0:
        with np.errstate(divide="ignore"):
            return float(np.max(np.log(p[p > 0]) - np.log(q[p > 0]), initial=0.0))
    return _smallest(lambda epsilon: float(np.maximum(p - math.exp(min(700.0, epsilon)) * q, 0).sum()), delta)


def _smallest(delta_of: Callable[[float], float], delta: float) -> float:
    """Return the smallest epsilon whose delta is at most the given one."""
    if delta_of(LARGEST_EPSILON) > delta:
        return math.inf
    return 0.0 if delta_of(0.0) <= delta else largest(lambda epsilon: delta_of(epsilon) > delta, 0.0, LARGEST_EPSILON)


def _concentration(p: Array, q: Array) -> float:
    """Return the largest of Rényi's divergences divided by their orders, in nats."""
    if np.any((p > 0) & (q == 0)):
        return math.inf
    there = p > 0
    logs_p, logs_q = np.log(p[there]), np.log(q[there])

    def rate(above_one: float) -> float:
        exponents = logs_p + above_one * (logs_p - logs_q)
        return float(np.logaddexp.reduce(exponents)) / above_one / (1 + above_one)

    rates = [rate(order) for order in ABOVE_ONE]
    best = int(np.argmax(rates))
    low, high = (math.log(ABOVE_ONE[max(0, min(best + side, len(rates) - 1))]) for side in (-1, 1))
    refined = scipy.optimize.minimize_scalar(lambda log: -rate(math.exp(log)), bounds=(low, high), method="bounded")
    return max(float((p[there] * (logs_p - logs_q)).sum()), rates[best], -float(refined.fun))


def _only_rho(promise: Guarantee) -> bool:
    return math.isinf(promise.epsilon) and promise.rho is not None


def _unit(promise: Guarantee) -> str:
    return "" if _only_rho(promise) else "nat"


def _estimate(value: float, promise: Guarantee, cut: bool = False) -> Estimate:
    if not cut:
        return Estimate.exactly(value, _unit(promise))
    return Estimate(value, value, value, _unit(promise), f"outputs rarer than {RARE:g} left out")


MOST_VALUES = 2000  # up to so many distinct values, sets of them are events
BINS = 100


@dataclass(frozen=True)
class Feature:
    """Something to tell outputs by: a number or a code for each sample of either input."""

    words: str
    one: Array
    other: Array
    listed: bool
    """Whether sets of single values are events."""


@dataclass(frozen=True)
class OutputEvent:
    """A set of outputs: those whose feature lies in one of some bins, or is one of some values."""

    feature: Feature
    edges: Array
    chosen: Array
    single: bool

    def share(self, values: Array) -> tuple[int, int]:
        """Return how many values lie in the event, and how many there are."""
        return int(self.chosen[_places(self.edges, values, self.single)].sum()), len(values)


def _places(edges: Array, values: Array, single: bool) -> Array:
    """Return which bin each value lies in; of single values the last bin holds those that were never seen."""
    if not single:
        return np.searchsorted(edges, values, side="right")
    places = np.minimum(np.searchsorted(edges, values), len(edges) - 1)
    return np.where(edges[places] == values, places, len(edges))


def lower_bound(one: Sequence[Column], other: Sequence[Column], delta: float, confidence: float) -> Estimate:
    """Return an epsilon that the smallest one for this delta is not below, with the given confidence."""
    half = len(one[0].array) // 2
    level = (1 - confidence) / 4  # two inputs may be the likelier one, and each needs two intervals
    best = Estimate(0.0, 0.0, math.inf, "nat", "no event tells them apart")
    for first, second in ((one, other), (other, one)):
        event = _best_event(_features(first, second), half, delta, level)
        if event is None:
            continue
        counts = event.share(event.feature.one[half:]), event.share(event.feature.other[half:])
        found = _bound(*counts[0], *counts[1], delta, level)
        if found > best.value:
            rates = f"{counts[0][0] / counts[0][1]:.3g} and {counts[1][0] / counts[1][1]:.3g}"
            method = f"{event.feature.words}: probabilities {rates}"
            best = Estimate(found, found, math.inf, "nat", method, confidence=confidence)
    return best


def _features(one: Sequence[Column], other: Sequence[Column]) -> Iterator[Feature]:
    """Yield ways to tell outputs apart: each number, its last digits, and the output as a whole."""
    whole = _codes(one, other)
    if whole is not None:
        yield Feature("the output's value", *whole, listed=True)
    for position, (left, right) in enumerate(zip(one, other, strict=True)):
        if left.levels is not None or left.array.dtype.kind not in "bif":
            continue
        name = f"number {position + 1} of the output" if len(one) > 1 else "the output"
        for element, (a, b) in enumerate(zip(_flat(left.array).T, _flat(right.array).T, strict=True)):
            label = f"{name}[{element}]" if left.array.ndim > 1 else name
            yield Feature(f"the size of {label}", a.astype(float), b.astype(float), listed=False)
            if left.array.dtype.kind == "f":
                yield Feature(f"the last digit of {label}", _last_bit(a), _last_bit(b), listed=True)


def _flat(array: Array) -> Array:
    return np.asarray(array.reshape(len(array), -1))


def _codes(one: Sequence[Column], other: Sequence[Column]) -> tuple[Array, Array] | None:
    """Return codes for outputs as a whole, if there are few enough of them."""
    if any(column.array.dtype.kind in "bif" and len(np.unique(column.array)) > MOST_VALUES for column in one):
        return None
    values = [list(zip(*(_keys(column) for column in side), strict=True)) for side in (one, other)]
    codes, distinct = Batch.of_values([repr(value) for side in values for value in side]).factorized()
    if len(distinct) > MOST_VALUES:
        return None
    return codes[: len(values[0])], codes[len(values[0]) :]


def _keys(column: Column) -> list[Any]:
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in column.decoded()]


def _last_bit(values: Array) -> Array:
    """Return the power of two that the last binary digit of a number stands for, which betrays how it was rounded."""
    mantissas, exponents = np.frexp(np.where(np.isfinite(values), values, 0.0))
    whole = np.abs(np.ldexp(mantissas, 53)).astype(np.int64)
    lowest = np.where(whole == 0, 1, whole & -whole)
    return np.asarray((exponents - 53 + np.log2(lowest).astype(np.int64)) * (whole != 0))


def _best_event(features: Iterator[Feature], half: int, delta: float, level: float) -> OutputEvent | None:
    best, chosen = 0.0, None
    for feature in features:
        for event in _events(feature, half):
            counts = event.share(feature.one[:half]), event.share(feature.other[:half])
            found = _bound(*counts[0], *counts[1], delta, level)
            if found > best:
                best, chosen = found, event
    return chosen


def _events(feature: Feature, half: int) -> Iterator[OutputEvent]:
    """Yield sets of values or bins, by how much likelier they are for one input than for the other."""
    a, b = feature.one[:half], feature.other[:half]
    pooled = np.concatenate([a, b])
    values = np.unique(pooled)
    single = feature.listed or len(values) <= BINS
    edges = values if single else np.unique(np.quantile(pooled, np.linspace(0, 1, BINS + 1)))
    counts = [np.bincount(_places(edges, side, single), minlength=len(edges) + 1) for side in (a, b)]
    order = np.argsort((counts[1] + 1) / (counts[0] + 1), kind="stable")
    order = order[order < len(edges)] if single else order
    chosen = np.zeros(len(edges) + 1, np.bool_)
    sizes = set(np.unique(np.geomspace(1, len(order), 40).astype(int)).tolist())
    for size, place in enumerate(order, start=1):
        chosen[place] = True
        if size in sizes:
            yield OutputEvent(feature, edges, chosen.copy(), single)


def _bound(hits: int, samples: int, other_hits: int, other_samples: int, delta: float, level: float) -> float:
    """Return what the logarithm of the ratio of two probabilities is at least."""
    low = float(scipy.special.betaincinv(hits, samples - hits + 1, level)) if hits else 0.0
    missed = other_samples - other_hits
    high = float(scipy.special.betaincinv(other_hits + 1, missed, 1 - level)) if missed else 1.0
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0


Arguments = tuple[Sequence[Any], Mapping[str, Any]]


class _Released:
    """Stands for a number with a density in an output."""


@dataclass(frozen=True)
class OutputPaths:
    """The paths that lead to one output, numbers with a density aside: those paths share these."""

    log_probability: float
    paths: tuple[Path, ...]
    moving: bool


class ProgramPaths:
    """What a program may return for one input."""

    def __init__(self, program: Callable[..., Any], arguments: Arguments) -> None:
        self._conditions = Conditions()
        self.all: dict[Hashable, OutputPaths] = {}
        for path in paths(program, *arguments, self._conditions.possible):
            log = Forest.of(self._conditions, path.decisions).log_probability()
            if np.isneginf(log):
                continue
            structure, leaves = flatten(path.output)
            moving = any(isinstance(leaf, RandomVariable) for leaf in leaves)
            plain = [_Released if isinstance(leaf, RandomVariable) else hashable(leaf) for leaf in leaves]
            key = structure, tuple(plain)
            known = self.all.get(key, OutputPaths(-math.inf, (), moving))
            self.all[key] = OutputPaths(float(np.logaddexp(known.log_probability, log)), (*known.paths, path), moving)

    def logs(self, keys: Iterable[Hashable]) -> Array:
        """Return the logarithms of the probabilities of some outputs."""
        return np.array([self.all[key].log_probability if key in self.all else -np.inf for key in keys])

    def density(self, key: Hashable) -> PathDensity:
        """Return the density of an output's numbers."""
        outcome = self.all[key]
        if len(outcome.paths) > 1:
            raise Uncomparable("several paths release numbers in the same form")
        path = outcome.paths[0]
        released = [leaf.node for leaf in flatten(path.output)[1] if isinstance(leaf, RandomVariable)]
        return PathDensity.of(self._conditions, path.decisions, released)


def compare_paths(program: Callable[..., Any], one: Arguments, other: Arguments, promise: Guarantee) -> Estimate | str:
    """Return how far apart the outputs for two inputs are by the measure of a promise, or why that is not known."""
    try:
        first, second = ProgramPaths(program, one), ProgramPaths(program, other)
        keys = dict.fromkeys([*first.all, *second.all])
        outcomes = [first.all.get(key) or second.all[key] for key in keys]
        moving = [key for key, outcome in zip(keys, outcomes, strict=True) if outcome.moving]
        p, q = first.logs(keys), second.logs(keys)
        if not moving or np.isneginf([p, q]).any():
            return compare_log_masses(p, q, promise)
        if promise.delta > 0 or (math.isinf(promise.epsilon) and promise.rho is not None):
            return "numbers with a density are compared by epsilon alone"
        within = [place for place, outcome in enumerate(outcomes) if not outcome.moving]
        largest = compare_log_masses(p[within], q[within], promise).value
        for key in moving:
            densities = first.density(key), second.density(key)
            largest = max(largest, largest_log_ratio(*densities), largest_log_ratio(*densities[::-1]))
        return Estimate.exactly(largest, "nat")
    except (NotFollowed, Uncomparable, Unintegrable) as problem:
        return str(problem)


SLACK = 1e-9  # by how much rounding may make an exact result exceed a promise that is kept exactly
TRIED = 8  # draws of an output that are looked at for NaN
DELTA = 1e-6  # where a promise of rho is tested on samples


@dataclass(frozen=True)
class Finding:
    """How far apart the outputs for two neighbouring inputs are, against what was promised for them.

    >>> from privug import mechanisms
    >>> found = mechanisms.audit(mechanisms.laplace(lambda x: x, sensitivity=1, epsilon=0.5), [(0, 2)])
    >>> found.worst.broken, found.worst.measured.value, found.worst.limit
    (True, 1.0, 0.5)
    """

    one: Any
    other: Any
    measured: Estimate
    limit: float

    @property
    def broken(self) -> bool:
        """Whether the promise is broken: surely if computed, with the audit's confidence if sampled."""
        return self.measured.low > self.limit * (1 + SLACK) + SLACK

    @property
    def bound(self) -> bool:
        """Whether this is a lower bound only, from samples or from cells of outputs."""
        return self.measured.high != self.measured.low


@dataclass(frozen=True)
class Audit:
    """What an audit found: one finding for each pair of neighbours.

    >>> from privug import mechanisms
    >>> found = mechanisms.audit(mechanisms.laplace(lambda x: x, sensitivity=1, epsilon=0.5), [(0, 1)])
    >>> found.broken, found.measured.value
    (False, 0.5)
    """

    name: str
    promise: Guarantee
    findings: tuple[Finding, ...]

    @property
    def worst(self) -> Finding:
        """The pair of neighbours that the mechanism tells apart best."""
        return max(self.findings, key=lambda finding: finding.measured.low)

    @property
    def measured(self) -> Estimate:
        """The smallest epsilon (or rho) that fits what was found; a lower bound where it comes from samples."""
        return self.worst.measured

    @property
    def broken(self) -> bool:
        """Whether some pair shows that the promise is broken."""
        return any(finding.broken for finding in self.findings)

    @property
    def verdict(self) -> str:
        """What follows, in words."""
        worst, pairs = self.worst, len(self.findings)
        known = f"{'this pair' if pairs == 1 else f'these {pairs} pairs'} of neighbours"
        if self.promise.is_empty:
            return f"nothing is promised; {self._found()} for {known}"
        if self.broken:
            shown = f"{shortened(worst.one, 60)} and {shortened(worst.other, 60)}"
            return f"BROKEN: {self._found()}, more than {worst.limit:.6g}, for the neighbours {shown}"
        if any(finding.bound for finding in self.findings):
            return f"no violation found for {known}; a lower bound cannot show that there is none"
        return f"kept for {known}"

    def _found(self) -> str:
        what = "epsilon" if self.measured.unit == "nat" else "rho"
        number = "infinite" if math.isinf(self.measured.value) else f"{self.measured.value:.6g}"
        return f"{what} is {'at least ' if self.worst.bound else ''}{number}"

    def __str__(self) -> str:
        how = "exact" if self.measured.exact else self.measured.method
        if self.worst.bound and self.measured.confidence < 1:
            how = f"{self.measured.confidence:.0%} sure, by {how}"
        lines = [f"Audit of {self.name!r}", f"  promised  {self.promise}", f"  measured  {self._found()} ({how})"]
        return "\n".join([*lines, f"  verdict   {self.verdict}"])

    def plot(self, ax: Any = None) -> Any:
        """Draw how far apart each pair of neighbours is, against what was promised; `ax` is axes or a path."""
        rows = [
            (f"{shortened(one.one, 15)} and {shortened(one.other, 15)}", one.measured, one.limit)
            for one in sorted(self.findings, key=lambda finding: -finding.measured.value)
        ]
        return plots().bars(rows, ax, "epsilon" if self.measured.unit == "nat" else "rho")

    def to_dict(self) -> dict[str, Any]:
        """Return what was found as plain values."""
        return {
            "mechanism": self.name,
            "promise": {"epsilon": self.promise.epsilon, "delta": self.promise.delta, "rho": self.promise.rho},
            "measured": self.measured.value,
            "lower_bound": self.worst.bound,
            "broken": self.broken,
            "verdict": self.verdict,
        }


@kinds_checked
def audit(
    mechanism: Callable[..., Any],
    neighbours: Sequence[tuple[Any, Any]],
    *,
    guarantee: Guarantee | None = None,
    engine: Literal["auto", "exact", "sample"] = "auto",
    samples: Annotated[int, NumberRange(100)] = 100_000,
    seed: int = 0,
    confidence: Annotated[float, NumberRange(0.5, 1, below=True)] = CONFIDENCE,
) -> Audit:
    """Measure how far apart a mechanism's outputs are for neighbouring inputs, against what it promises.

    `neighbours` lists pairs of inputs that differ in one person's data: the value of the only parameter, or dicts of
    all of them. Where the outputs' distributions are known, the epsilon of a pair is exact, in exact arithmetic; so it
    is for programs that compare what they draw with `pv.sample`, path by path. Of densities of any form it is a lower
    bound from fine cells of outputs. Else, and with `engine="sample"`, it is a
    lower bound from `samples` runs on each input, which also sees what floating-point arithmetic does to the noise.
    An audit can break a promise; it proves it for the given pairs only. `guarantee` is the promise of a program that
    is not a mechanism of Privug's.

    >>> from privug.mechanisms import laplace
    >>> total = laplace(sum, sensitivity=1, epsilon=0.5)
    >>> print(audit(total, [([0, 1], [1, 1]), ([0, 1], [0, 3])]))
    Audit of 'sum with Laplace noise'
      promised  0.5-differentially private
      measured  epsilon is 1 (exact)
      verdict   BROKEN: epsilon is 1, more than 0.5, for the neighbours [0, 1] and [0, 3]
    """
    pairs = _neighbouring_pairs(neighbours)
    promise = _promise(mechanism, guarantee)
    findings = []
    for place, pair in enumerate(pairs):
        arguments = _arguments(mechanism, pair[0]), _arguments(mechanism, pair[1])
        lifted = [_output(mechanism, of_one, data) for of_one, data in zip(arguments, pair, strict=True)]
        sampled = partial(_sampled, promise, samples, 1 - (1 - confidence) / len(pairs), [seed, place])
        question = _NeighbourPair(mechanism, pair, arguments, promise, engine, sampled)
        try:
            findings.append(question.finding([taken_apart(output) for output in lifted]))
        except OtherForm:  # such as now a number, and now None
            findings.append(question.finding(lifted))
    return Audit(str(getattr(mechanism, "__name__", "program")), promise, tuple(findings))


@dataclass(frozen=True)
class _NeighbourPair:
    """Two neighbouring inputs, and how what they lead to is compared."""

    mechanism: Callable[..., Any]
    data: tuple[Any, Any]
    arguments: tuple[Arguments, Arguments]
    promise: Guarantee
    engine: str
    sampled: Callable[[Sequence[Any]], tuple[Estimate, float]]

    def finding(self, outputs: Sequence[Any]) -> Finding:
        """Compare two outputs: exactly where that can be done and was asked for, else on samples."""
        promise, (one, other) = self.promise, outputs
        exact = compare_certain(one, other) if self.engine == "sample" else compare(one, other, promise)
        if exact is None and self.engine != "sample":
            exact = _by_paths(self.mechanism, self.arguments, promise, self.engine == "exact")
        if exact is None:
            return Finding(*self.data, *self.sampled(outputs))
        limit = promise.rho if math.isinf(promise.epsilon) and promise.rho is not None else promise.epsilon
        return Finding(*self.data, exact, limit)


def _promise(mechanism: Callable[..., Any], guarantee: Any) -> Guarantee:
    if guarantee is not None and not isinstance(guarantee, Guarantee):
        raise ArgumentError(f"audit: guarantee must be a pv.mechanisms.Guarantee, not {shown(guarantee)}")
    return promised(mechanism) if guarantee is None else guarantee


def _neighbouring_pairs(neighbours: Any) -> list[tuple[Any, Any]]:
    pairs = list(neighbours) if isinstance(neighbours, Sequence) and not isinstance(neighbours, str) else []
    if not pairs or not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
        raise ArgumentError(
            "audit: neighbours must be a list of pairs of inputs, such as [(data, other_data)], "
            f"not {shown(neighbours)}"
        )
    return [tuple(pair) for pair in pairs]


def _arguments(mechanism: Callable[..., Any], data: Any) -> Arguments:
    """Return the arguments of a call on one input: the only one, or all by their names."""
    try:
        parameters = list(inspect.signature(mechanism).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    needed = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    if len(needed) <= 1:
        return [data], {}
    if not isinstance(data, dict) or set(data) != {parameter.name for parameter in needed}:
        names = ", ".join(repr(parameter.name) for parameter in needed)
        raise ArgumentError(f"audit: the program has several inputs; write each neighbour as a dict with {names}")
    return [], data


def _output(mechanism: Callable[..., Any], arguments: Arguments, data: Any) -> Any:
    """Return the output for one input: what is random in it is the mechanism's own randomness."""
    output = apply(mechanism, *arguments).output
    if _is_nan(output):
        raise ProgramError(
            f"audit: the output for {shown(data)} is NaN, so that how far apart outputs are is undefined; write None "
            "if math.isnan(x) else x to make that a value of its own"
        )
    return output


def _is_nan(output: Any) -> bool:
    """Return whether a number in an output is NaN in the first draws."""
    leaves = [leaf for leaf in flatten(output)[1] if isinstance(leaf, float | np.ndarray | RandomVariable)]
    nodes = [node for node in map(as_node, leaves) if node.dtype.kind == "f"]
    try:
        arrays = Plan(nodes).run(TRIED, np.random.default_rng(0))
    except (SampleFailure, ProgramError):  # told when the program is run
        return False
    return any(np.isnan(array).any() for array in arrays)


def _by_paths(
    mechanism: Callable[..., Any], arguments: tuple[Arguments, Arguments], promise: Guarantee, required: bool
) -> Estimate | None:
    """Compare a program's paths for two inputs; None if they cannot be followed, or an error where they have to be."""
    found = compare_paths(mechanism, *arguments, promise)
    if isinstance(found, Estimate):
        return found
    if required:
        raise UnsuitableEngine(
            f"audit: the outputs have no distribution that is known exactly ({found}); write engine='sample'"
        )
    return None


def _sampled(
    promise: Guarantee, samples: int, confidence: float, seed: Sequence[int], outputs: Sequence[Any]
) -> tuple[Estimate, float]:
    """Return how far apart samples of two outputs are at least, and what was promised."""
    tested = promise if math.isfinite(promise.epsilon) or promise.is_empty else promise.at(DELTA)
    rng = np.random.default_rng(seed)
    first, second = _drawn(outputs[0], samples, rng), _drawn(outputs[1], samples, rng)
    if all(len(columns) == 1 and _are_numbers_or_none(columns[0]) for columns in (first, second)):
        first, second = _presence_and_number(first[0]), _presence_and_number(second[0])
    return lower_bound(first, second, tested.delta, confidence), tested.epsilon


def _are_numbers_or_none(column: Column) -> bool:
    return column.array.dtype == object and all(
        value is None or (is_number(value) and abs(value) <= LARGEST) for value in column.decoded()
    )


def _presence_and_number(column: Column) -> list[Column]:
    """Return outputs that are a number or None as whether there is a number, and which."""
    values = column.decoded()
    numbers = np.array([0.0 if value is None else float(value) for value in values])
    return [Column(np.array([value is not None for value in values])), Column(numbers)]


def _drawn(output: Any, samples: int, rng: np.random.Generator) -> list[Column]:
    nodes = [as_node(leaf) for leaf in flatten(output)[1]]
    arrays = Plan(nodes).run(samples, rng)
    full = [array if len(array) == samples else np.repeat(array, samples, axis=0) for array in arrays]
    return [Column.of(node, array) for array, node in zip(full, nodes, strict=True)]
