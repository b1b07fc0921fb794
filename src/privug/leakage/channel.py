"""Channels: what a program does to each secret, whatever the prior; capacity, and refinement."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy

from privug.arguments import check_takes, naming, shown
from privug.digits import how_many
from privug.errors import ArgumentError, InferenceError
from privug.estimate import Estimate
from privug.inference.belief import as_list, as_numbers
from privug.inference.joint import Joint
from privug.leakage import register
from privug.leakage.finite import Pairs, alike_pairs, pairs_of
from privug.leakage.register import POSITIVE, PROBABILITY, Of, capacity_range, measure
from privug.leakage.strategy import TELLING_DIGITS
from privug.leakage.vulnerability import RARE, in_bits
from privug.model.node import Array, Kind

MOST_CELLS = 50_000_000
MOST_ENUMERATED = 20  # secrets, whose subsets are a million
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Channel:
    """The probability of each output given each secret: a row for each secret, a column for each output.

    `discrete` says whether outputs are single values, not cells of a density; `error` bounds the error of each entry.

    >>> channel = Channel([[0.8, 0.2], [0.3, 0.7]], secrets=["ill", "well"])
    >>> channel.secrets, channel.outputs
    (('ill', 'well'), (0, 1))
    """

    matrix: Array
    secrets: Sequence[Any] = ()
    outputs: Sequence[Any] = ()
    discrete: bool = field(default=True, kw_only=True)
    error: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        matrix = as_numbers("a channel needs a matrix of probabilities, which", self.matrix)
        if matrix.ndim != 2 or not matrix.size:
            raise ArgumentError(
                f"a channel needs a row for each secret and a column for each output, not {shown(self.matrix)}"
            )
        if not np.all(matrix >= 0) or not np.all(np.abs(matrix.sum(axis=1) - 1) < ROUNDING):
            raise ArgumentError("a channel needs rows of probabilities that sum to one")
        object.__setattr__(self, "matrix", matrix / matrix.sum(axis=1, keepdims=True))
        if isinstance(self.error, bool) or not isinstance(self.error, int | float) or not 0 <= self.error <= 1:
            raise ArgumentError(f"a channel's error bounds that of its probabilities: 0 to 1, not {shown(self.error)}")
        if not isinstance(self.discrete, bool | np.bool_):
            raise ArgumentError(f"a channel's outputs are discrete or not: True or False, not {shown(self.discrete)}")
        for name, size in zip(("secrets", "outputs"), matrix.shape, strict=True):
            labels = tuple(as_list(f"the {name} of a channel", getattr(self, name))) or tuple(range(size))
            if len(labels) != size:
                raise ArgumentError(f"a channel with {size} {name} needs as many names for them, not {len(labels)}")
            object.__setattr__(self, name, labels)

    @classmethod
    def of(cls, joint: Joint) -> "Channel":
        """Take the channel of an exact joint; secrets of probability zero have no row in it."""
        return cls._of(joint, pairs_of)

    @classmethod
    def of_rows(cls, joint: Joint) -> "Channel":
        """Take the channel of an exact joint, of secrets that are alike perhaps one row only."""
        return cls._of(joint, alike_pairs)

    @classmethod
    def _of(cls, joint: Joint, collected: Callable[[Joint], Pairs]) -> "Channel":
        if not isinstance(joint, Joint):
            raise ArgumentError(
                f"a channel is taken of a Joint, or made of a matrix by Channel(matrix), not {shown(joint)}"
            )
        if not joint.exact:
            raise ArgumentError(
                "a channel holds for every prior, so samples, which show what is likely, cannot bound it: use "
                "engine='exact', or give the probabilities by Channel(matrix)"
            )
        if joint.secret.kind is not Kind.DISCRETE:
            raise ArgumentError("a channel needs a secret with finitely many values; round the secret")
        pairs = collected(joint)
        if len(pairs.secrets) * len(pairs.outputs) > MOST_CELLS:
            sizes = f"{how_many(len(pairs.secrets), 'secret')} and {how_many(len(pairs.outputs), 'output')}"
            raise ArgumentError(f"a channel of {sizes} is too large; group some of them")
        error = max(joint.secret.error, joint.output.error) / float(pairs.prior.min())
        matrix = pairs.matrix() / pairs.prior[:, np.newaxis]
        discrete = joint.output.kind is Kind.DISCRETE
        return cls(matrix, pairs.secrets, pairs.outputs, discrete=discrete, error=error)

    def joint(self, prior: Sequence[float]) -> Joint:
        """Return the joint of secret and output under a prior."""
        return Joint.from_channel(prior, self.matrix, secrets=self.secrets, outputs=self.outputs)

    def distinct_rows(self) -> Array:
        """Return each different row once, without outputs that never occur."""
        rows = np.unique(self.matrix, axis=0)
        return rows[:, rows.any(axis=0)]

    def __repr__(self) -> str:
        return f"<Channel: {how_many(len(self.secrets), 'secret')}, {how_many(len(self.outputs), 'output')}>"


def as_channel(channel: Any, every_secret: bool = True) -> Channel:
    """Take a channel as it is, or make one of an exact joint or a matrix; with every secret if all of them matter."""
    if isinstance(channel, Channel):
        return channel
    if not isinstance(channel, Joint):
        return Channel(channel)
    return Channel.of(channel) if every_secret else Channel.of_rows(channel)


@measure(Of.CHANNEL, capacity_range)
def bayes_capacity(channel: Channel | Joint) -> Estimate:
    """The most by which a channel can multiply the chance of the best guess, over all priors.

    sum_o max_s P(o | s): a ratio from 1 to the number of secrets or outputs, attained at the uniform prior. Its
    logarithm bounds the mutual information and the multiplicative leakage of every gain that is never negative. Exact.
    Braun et al., MFPS 2009; Alvim et al., CSF 2012.

    >>> print(bayes_capacity(Channel([[0.8, 0.2], [0.3, 0.7]])))
    1.5 (exact)
    """
    channel = as_channel(channel, every_secret=False)
    value = float(channel.matrix.max(axis=0).sum())
    if channel.discrete:
        return Estimate.exactly(value)
    # Between cells with different likeliest secrets the maximum has a kink, which sums over cells do not follow.
    best = channel.matrix.argmax(axis=0)
    cells = np.arange(len(best))
    lost = sum(
        float((channel.matrix[best[a], cells[a]] - channel.matrix[best[b], cells[a]]).sum())
        for a, b in ((slice(1, None), slice(-1)), (slice(-1), slice(1, None)))
    )
    return Estimate(value, max(1.0, value - lost), value + lost, method="cells of a density")


@measure(Of.CHANNEL, register.range_in_bits(capacity_range))
def min_capacity(channel: Channel | Joint) -> Estimate:
    """The greatest min-entropy leakage over all priors, in bits: the logarithm of the Bayes capacity. Exact.

    >>> print(min_capacity(Channel([[1, 0], [0, 1]])))
    1 bit (exact)
    """
    return in_bits(bayes_capacity(channel))


@measure(Of.CHANNEL, PROBABILITY)
def additive_bayes_capacity(channel: Channel | Joint) -> Estimate:
    """The most by which a channel can raise the chance of the best guess, over all priors.

    max over sets U of secrets of (sum_o max_{s in U} P(o | s) - 1) / |U|: a probability, attained at a prior uniform on
    U (between two such priors the gain is convex, so none in between gains more). Finding U is NP-hard: exact up
    to 20 different rows, beyond them the interval holds the truth. Alvim et al., CSF 2014.

    >>> print(additive_bayes_capacity(Channel([[0.8, 0.2], [0.3, 0.7]])))
    0.25 (exact)
    """
    channel = as_channel(channel, every_secret=False)
    if not channel.discrete:
        raise ArgumentError(
            "additive_bayes_capacity: cells of a density do not show where it is greatest; round the output"
        )
    rows = channel.distinct_rows()
    if len(rows) <= MOST_ENUMERATED:
        return Estimate.exactly(_best_subset(rows))
    low, high = _greedy_bounds(rows)
    return Estimate(
        low, low, max(low, high), method=f"greedy search over sets of {how_many(len(rows), 'secret')}; bounds hold"
    )


@measure(Of.CHANNEL, POSITIVE)
def epsilon(channel: Channel | Joint, adjacent: Callable[[Any, Any], Any] | None = None) -> Estimate:
    """The smallest epsilon for which the channel is (locally) differentially private.

    max over outputs and adjacent secrets of ln(P(o | s) / P(o | s')), in nats; infinite if an output is possible for
    one secret and impossible for another. All secrets are adjacent unless a function of two of them says otherwise.
    Exact; `method` names the secret and the output that attain it.
    Dwork, McSherry, Nissim and Smith, TCC 2006; Kasiviswanathan et al., FOCS 2008.

    >>> print(epsilon(Channel([[0.75, 0.25], [0.25, 0.75]])))
    1.10 nat (exact)
    """
    channel = as_channel(channel, every_secret=adjacent is not None)
    if not channel.discrete:
        raise ArgumentError("epsilon: cells of a density hide how large ratios get within them; round the output")
    if adjacent is not None and not callable(adjacent):
        raise ArgumentError(f"epsilon: adjacent must be a function of two secrets, not {shown(adjacent)}")
    if adjacent is not None:
        check_takes("epsilon: adjacent", adjacent, 2)
    largest, secret, output, sure = _largest_ratio(channel, adjacent)
    where = f"secret {shown(channel.secrets[secret])}, output {shown(channel.outputs[output])}"
    if sure:
        return Estimate.exactly(largest, "nat", where)
    rare = f"lower bound: {where}; what is less likely than {channel.error:.0e} may be impossible"
    return Estimate(largest, largest, math.inf, "nat", rare)


def _largest_ratio(channel: Channel, adjacent: Callable[[Any, Any], Any] | None) -> tuple[float, int, int, bool]:
    """Return the largest logarithm of a ratio, where it is attained, and whether no error can hide a larger one.

    Probabilities up to the error may be anything below it. Outputs not much more likely than that are left out.
    """
    outputs = np.flatnonzero(channel.matrix.max(axis=0) > RARE * channel.error)
    likely = channel.matrix[:, outputs]
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(likely, channel.error))
    unknown: Array = (likely <= channel.error) & (channel.error > 0)
    lowest: Array = logs.min(axis=0)
    open_below: Array = unknown.sum(axis=0) > 0
    largest, place, sure = 0.0, (0, 0), True
    for row, secret in enumerate(channel.secrets):
        if adjacent is not None:
            with naming("epsilon: adjacent"):
                near = np.array([bool(adjacent(secret, other) or adjacent(other, secret)) for other in channel.secrets])
            lowest, open_below = logs[near].min(axis=0, initial=math.inf), unknown[near].sum(axis=0) > 0
        possible = np.flatnonzero(likely[row] > channel.error)
        sure = sure and not open_below[possible].any()
        ratios = logs[row, possible] - lowest[possible]
        if ratios.max(initial=0.0) > largest:
            largest, place = float(ratios.max()), (row, int(outputs[possible[ratios.argmax()]]))
    return largest, *place, sure


def _best_subset(rows: Array) -> float:
    """Go through all sets of rows, as unions of sets from either half of them."""
    halves = [_subsets(rows[: len(rows) // 2]), _subsets(rows[len(rows) // 2 :])]
    best = 0.0
    for size, maxima in zip(*halves[0], strict=True):
        sizes = np.maximum(size + halves[1][0], 1)
        best = max(best, float(((np.maximum(maxima, halves[1][1]).sum(axis=1) - 1) / sizes).max()))
    return best


def _subsets(rows: Array) -> tuple[Array, Array]:
    """Return for each set of rows its size and its greatest entries."""
    sizes, maxima = np.zeros(1), np.zeros((1, rows.shape[1]))
    for row in rows:
        sizes = np.concatenate((sizes, sizes + 1))
        maxima = np.concatenate((maxima, np.maximum(maxima, row)))
    return sizes, maxima


def _greedy_bounds(rows: Array) -> tuple[float, float]:
    """Bound the best set of each size by the greedy one (Nemhauser, Wolsey and Fisher, 1978).

    The sum of greatest entries is monotone and submodular in the set: no set of k rows exceeds the greedy set by more
    than the k greatest gains from one more row. It exceeds neither k nor the sum over all rows.
    """
    most = float(rows.max(axis=0).sum())
    maxima = np.zeros(rows.shape[1])
    low = high = 0.0
    for size in range(1, len(rows) + 1):
        gains = np.maximum(rows - maxima, 0.0).sum(axis=1)
        maxima = np.maximum(maxima, rows[int(gains.argmax())])
        value = float(maxima.sum())
        gains = np.sort(np.maximum(rows - maxima, 0.0).sum(axis=1))[::-1]
        low = max(low, (value - 1) / size)
        high = max(high, (min(size, most, value + float(gains[:size].sum())) - 1) / size)
    return low, high


GAP = 1e-13  # in nats; below it rounding decides
ARIMOTO_STEPS = 30
MOST_ARIMOTO_STEPS = 5_000
NEWTON_STEPS = 100
MOST_NEWTON_ROWS = 1_500
CAPACITY_ROUNDING = 1e-14
RIDGE = 1e-15


class Certified(NamedTuple):
    """A prior, the information it gives, and a bound on what any prior gives; in nats."""

    prior: Array
    low: float
    high: float

    @property
    def gap(self) -> float:
        """How far the information may be below the capacity."""
        return self.high - self.low


@measure(Of.CHANNEL, register.range_in_bits(capacity_range))
def shannon_capacity(channel: Channel | Joint) -> Estimate:
    """The greatest mutual information of secret and output over all priors.

    C = max_prior I(S; O) = min_q max_s D(P(. | s) || q), in bits, from 0 to the logarithm of the number of secrets or
    outputs. The prior found gives the low end and its output distribution the high end, so the interval is sure to
    hold the truth; exact where it is narrower than 1e-9. Arimoto and Blahut, IEEE Trans. Inf. Theory 18 (1972);
    interior-point steps finish what their algorithm begins.

    >>> print(shannon_capacity(Channel([[0.9, 0.1], [0.1, 0.9]])))
    0.531 bit (exact)
    """
    found = capacity_achieving(as_channel(channel, every_secret=False).distinct_rows())
    low, high = sorted(nats / math.log(2) for nats in found[1:])
    low, value, high = (
        max(0.0, bits) for bits in (low - CAPACITY_ROUNDING, (low + high) / 2, high + CAPACITY_ROUNDING)
    )
    return Estimate(value, low, high, "bit", f"certified within {high - low:.0e}", exact=high - low < TELLING_DIGITS)


def capacity_achieving(rows: Array) -> Certified:
    """Return the prior on different rows of a channel that gives the most information, and a bound on any prior's."""
    if len(rows) == 1:
        return Certified(np.ones(1), 0.0, 0.0)
    found = _arimoto(rows, ARIMOTO_STEPS)
    if found.gap > GAP and min(rows.shape) > MOST_NEWTON_ROWS:
        return _arimoto(rows, MOST_ARIMOTO_STEPS)
    return found if found.gap <= GAP else _few_rows(rows, found)


def _few_rows(rows: Array, found: Certified) -> Certified:
    """Solve with a few rows and add those whose divergence exceeds the solution, until none does.

    No more rows than outputs are needed.
    """
    start = min(len(rows), 2 * rows.shape[1] + 10)
    chosen = np.sort(np.argsort(-found.prior, kind="stable")[:start])
    for _ in range(len(rows)):
        inner = _newton(rows[chosen])
        prior = np.zeros(len(rows))
        prior[chosen] = inner.prior
        divergences = _divergences(rows, prior)
        candidate = Certified(prior, inner.low, max(inner.high, float(divergences.max())))
        if candidate.gap < found.gap:
            found = candidate
        worse = np.flatnonzero(divergences > inner.high + GAP)
        worse = worse[np.argsort(-divergences[worse])][: len(chosen)]
        fresh = np.setdiff1d(worse, chosen)
        if found.gap <= GAP or not len(fresh):
            return found
        chosen = np.union1d(chosen, fresh)
    return found


def _divergences(rows: Array, prior: Array) -> Array:
    """Return the divergence of each row from the distribution of outputs under the prior."""
    marginal = prior @ rows
    with np.errstate(divide="ignore"):
        logs = np.log(marginal)
    possible = np.isfinite(logs)
    # An output that the prior makes impossible is infinitely telling.
    beyond = rows[:, ~possible].any(axis=1)
    within: Array = scipy.special.xlogy(rows, rows).sum(axis=1) - rows @ np.where(possible, logs, 0.0)
    return np.where(beyond, math.inf, within)


def _certified(rows: Array, prior: Array) -> tuple[Certified, Array]:
    divergences = _divergences(rows, prior)
    return Certified(prior, float(prior @ divergences), float(divergences.max())), divergences


def _arimoto(rows: Array, steps: int) -> Certified:
    """Multiply each probability of the prior by the exponential of its row's divergence."""
    prior = np.full(len(rows), 1 / len(rows))
    best, divergences = _certified(rows, prior)
    for _ in range(steps):
        if best.gap <= GAP:
            break
        prior = prior * np.exp(divergences - divergences.max())
        prior /= prior.sum()
        found, divergences = _certified(rows, prior)
        best = Certified(found.prior, max(best.low, found.low), min(best.high, found.high))
    return best


def _newton(rows: Array) -> Certified:
    """Solve the optimality conditions by a primal-dual interior-point method.

    Unknown are the prior p, the capacity c, and slacks z with divergence + z = c and p z = mu -> 0.
    """
    prior = np.full(len(rows), 1 / len(rows))
    best, divergences = _certified(rows, prior)
    capacity = best.high + 0.1
    slack = capacity - divergences
    for _ in range(NEWTON_STEPS):
        if best.gap <= GAP or float(prior @ slack) < GAP / 100:
            break
        target = 0.1 * float(prior @ slack) / len(rows)
        # Scaled by the root of the prior, the matrix has no entry above one but for the slacks.
        root = np.sqrt(prior)
        scaled = root[:, np.newaxis] * rows / np.sqrt(prior @ rows)
        system = scaled @ scaled.T + np.diag(slack + RIDGE)
        right = np.stack((root * (divergences - capacity) + target / root, root), axis=1)
        try:
            solved = scipy.linalg.cho_solve(scipy.linalg.cho_factor(system, lower=True), right)
        except np.linalg.LinAlgError:
            break
        rise = float(root @ solved[:, 0]) / float(root @ solved[:, 1])
        step = root * (solved[:, 0] - rise * solved[:, 1])
        slack_step = (target - slack * step) / prior - slack
        length = 0.99 / max(0.99, float(np.max(-step / prior)), float(np.max(-slack_step / slack)))
        prior = prior + length * step
        prior /= prior.sum()
        slack, capacity = slack + length * slack_step, capacity + length * rise
        found, divergences = _certified(rows, prior)
        if found.gap < best.gap:
            best = found
    return best


MOST_UNKNOWNS = 200_000


@dataclass(frozen=True, eq=False)
class Refinement:
    """Whether a channel is refined by another, and why.

    If so, `processing` is the matrix that turns the outputs of the first into those of the second: whoever sees the
    first could make the second of it. If not, `gain` (a row for each guess, a column for each secret) and `prior` are
    those of an attacker for whom the second is worth more than the first, by `advantage`.

    >>> import privug as pv
    >>> found = pv.leakage.refines([[1, 0], [0, 1]], [[0.9, 0.1], [0.1, 0.9]])
    >>> found.holds, found.processing.round(6).tolist()
    (True, [[0.9, 0.1], [0.1, 0.9]])
    """

    holds: bool
    processing: Array | None = None
    gain: Array | None = None
    prior: Array | None = None
    advantage: float = 0.0

    def __bool__(self) -> bool:
        return self.holds


def refines(channel: Channel | Joint, refined: Channel | Joint) -> Refinement:
    """Say whether `refined` never leaks more than `channel`, whatever the prior and the gain.

    It is so if and only if channel R = refined for a matrix R of probabilities: the refined channel is the other one
    followed by post-processing (the coriaceous theorem of McIver, Morgan, Smith, Espinoza and Meinicke, POST 2014). A
    linear program finds R, or else by duality a gain and a prior for which the leaks are ordered the other way.
    Differences below 1e-9 are taken for rounding.

    >>> noisy, noisier = Channel([[0.9, 0.1], [0.1, 0.9]]), Channel([[0.7, 0.3], [0.3, 0.7]])
    >>> bool(refines(noisy, noisier)), bool(refines(noisier, noisy))
    (True, False)
    """
    first, second = as_channel(channel), as_channel(refined)
    places = {secret: place for place, secret in enumerate(second.secrets)}
    if set(places) != set(first.secrets):
        raise ArgumentError("refines: both channels must have the same secrets")
    before, after = first.matrix, second.matrix[[places[secret] for secret in first.secrets]]
    if before.shape[1] * after.shape[1] > MOST_UNKNOWNS:
        raise ArgumentError(
            f"refines: {before.shape[1]} outputs turned into {after.shape[1]} are too many for a linear program; "
            "compare capacities or leakages instead"
        )
    processing, separating = _program(before, after)
    advantage = float((separating * after).sum() - (separating.T @ before).max(axis=0).sum())
    if advantage <= ROUNDING:
        return Refinement(True, processing)
    gain = separating.T - separating.min(axis=1)
    gain /= gain.max()
    prior = np.full(len(before), 1 / len(before))
    less, more = (float((gain @ matrix).max(axis=0).sum()) / len(matrix) for matrix in (before, after))
    return Refinement(False, None, gain, prior, more - less)


def _program(before: Array, after: Array) -> tuple[Array, Array]:
    """Minimise the sum of |before R - after|; return R and the prices of the equations, a row for each secret."""
    secrets, outputs = before.shape
    products = after.shape[1]
    sparse: Any = scipy.sparse
    rest = sparse.eye_array(secrets * products)
    equations = sparse.hstack((sparse.kron(before, sparse.eye_array(products)), rest, -rest))
    sums = sparse.hstack(
        (
            sparse.kron(sparse.eye_array(outputs), np.ones((1, products))),
            sparse.coo_array((outputs, 2 * secrets * products)),
        )
    )
    cost = np.concatenate((np.zeros(outputs * products), np.ones(2 * secrets * products)))
    solution = scipy.optimize.linprog(
        cost,
        A_eq=sparse.vstack((equations, sums)).tocsr(),
        b_eq=np.concatenate((after.reshape(-1), np.ones(outputs))),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if solution.status != 0 or solution.x is None:
        raise InferenceError(f"refines: the linear program was not solved: {solution.message}")
    processing = np.maximum(solution.x[: outputs * products].reshape(outputs, products), 0.0)
    prices = solution.eqlin.marginals[: secrets * products].reshape(secrets, products)
    return processing / processing.sum(axis=1, keepdims=True), prices
