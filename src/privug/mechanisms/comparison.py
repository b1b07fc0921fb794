"""How far apart the outputs for two inputs are, computed exactly: from densities, or from all possible outputs."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from privug.attack import Attack
from privug.errors import UnsuitableEngine
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.graph.affine import affine_roots
from privug.inference.measure.curve import Curve
from privug.mechanisms.conversion import gaussian_delta, largest
from privug.mechanisms.guarantee import Guarantee
from privug.model.node import Array, Node, ancestors
from privug.model.plan import Plan
from privug.model.structure import flatten
from privug.model.variable import RandomVariable
from privug.prior.choice import constant_value
from privug.prior.discrete import Bernoulli
from privug.prior.family import Draw, Family, family_of
from privug.prior.scalar import Kernel, ScalarFamily

RARE = 1e-12  # outputs less likely than that for both inputs are left out where distributions had to be cut off
LARGEST = 1e4  # epsilons above this are as good as infinite
CELLS = 4000  # of outputs with a density; what differs within a cell is not seen
TAIL = 1e-6  # the probability of the outermost cells: smaller ones have few digits
ROUNDING = 1e-14  # of probabilities of cells
ABOVE_ONE = tuple(float(order) for order in np.geomspace(1 / 64, 1024, 65))  # by how much an order exceeds one


@dataclass(frozen=True)
class Noise:
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


def _noise_of(leaf: Any) -> Noise | None:
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
    return Noise(family_of(root), float(known[0]), abs(float(slope)) * scale)


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
    if delta_of(LARGEST) > delta:
        return math.inf
    return 0.0 if delta_of(0.0) <= delta else largest(lambda epsilon: delta_of(epsilon) > delta, 0.0, LARGEST)


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
