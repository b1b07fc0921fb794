"""Belief: the distribution of one quantity, before or after an observation."""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from privug.arguments import (
    MOST_SAMPLES,
    Random,
    as_floats,
    check_kind,
    kinds_checked,
    plain_number,
    refuse_masked,
    represented,
    shown,
)
from privug.errors import ArgumentError, PrivugError
from privug.estimate import CONFIDENCE, Estimate
from privug.inference import intervals as tails
from privug.inference.intervals import (
    Groups,
    Weighting,
    effective_size,
    mean_estimate,
    quantile_estimate,
    share_estimate,
    shifted,
    std_estimate,
)
from privug.inference.measure.curve import Curve, NoSuchMoment
from privug.markup import table
from privug.model.batch import Batch, Column
from privug.model.node import Array, Kind
from privug.model.values import key_of, shown_key
from privug.pictures import plots
from privug.prior.family import UNKNOWN, Reach
from privug.program.predicates import holds

MOST_DESCRIBED = 6


@dataclass(frozen=True)
class CredibleInterval:
    """The range that holds the quantity with the given probability, with equal tails."""

    low: Estimate
    high: Estimate
    probability: float

    def __iter__(self) -> Any:
        return iter((self.low, self.high))

    def __str__(self) -> str:
        return f"{self.probability:.0%} between {self.low.number()} and {self.high.number()}"


@dataclass(frozen=True)
class Histogram:
    """The probability of each bin, the last one closed on both sides."""

    edges: Array
    probabilities: tuple[Estimate, ...]

    @property
    def densities(self) -> Array:
        """Probability divided by the width of the bin."""
        return np.array([float(p) for p in self.probabilities]) / np.diff(self.edges)


def described(belief: Any) -> list[tuple[str, str]]:
    """Return what is to be said of a belief that stands alone, each with its name."""
    lines: list[tuple[str, str]] = []
    if belief.batch.numbers() is not None:
        lines = [("mean", belief.mean().number()), ("standard deviation", belief.std().number())]
        low, high = belief.interval(0.9)
        lines.append(("90 % credible interval", f"{low.number()} to {high.number()}"))
    if belief.curve is None and (not lines or belief.batch.distinct() <= MOST_DESCRIBED):
        try:
            likeliest = list(belief.distribution().items())[:MOST_DESCRIBED]
        except PrivugError:  # too many to be listed
            return lines
        lines += [(f"P({represented(value)})", share.number()) for value, share in likeliest]
    return lines


def as_numbers(what: str, given: Any) -> Array:
    """Return numbers as an array, a copy of what was given; `what` begins the sentence that refuses anything else."""
    try:
        return as_floats(given)
    except (TypeError, ValueError):
        raise ArgumentError(f"{what} must be numbers, not {shown(given)}") from None


def as_list(what: str, given: Any) -> Sequence[Any]:
    """Return values that have a length and an order; `what` begins the sentence that refuses anything else."""
    refuse_masked(given)
    single = isinstance(given, np.ndarray | Random) and getattr(given, "shape", None) == ()
    if single or isinstance(given, dict | set | frozenset | str | bytes) or not hasattr(given, "__len__"):
        raise ArgumentError(f"{what} must be a list of values, not {shown(given)}")
    values: Sequence[Any] = given
    return values


MOST_LISTED = 1000
MOST_BINS = 1_000_000
TIED_DIGITS = 12
NEGLIGIBLE = 1e-12  # an error that exact answers do not mention
TAILS = (1e-4, 1 - 1e-4)  # where a histogram of an endless range begins and ends
MOST_JUDGED = 8  # parts of a quantity that tell how much samples in groups are worth
SAMPLES_OF_CURVE = 200_000  # where a predicate on an exactly known curve can only be sampled


@dataclass(frozen=True, eq=False)
class Belief:
    """The distribution of one quantity: values with weights, exact or sampled.

    Every answer is an `Estimate`. On samples its interval follows from the effective sample size. An exact belief
    about a quantity with a density has a `curve`, from which all answers come; its values and weights are
    then cells that stand for the curve in sums. `error` bounds the error of an exact belief's probabilities.
    Samples that depend on each other come in that many consecutive `groups` of equal length, alike and nearly
    independent of each other; intervals then follow from how the groups differ.

    >>> belief = Belief.of([1, 2, 3, 6], probabilities=[0.1, 0.2, 0.3, 0.4])
    >>> print(belief.mean())
    3.8 (exact)
    >>> print(belief.probability(lambda value: value > 2))
    0.7 (exact)
    """

    batch: Batch
    weights: Array | None = None
    exact: bool = False
    label: str = ""
    spread: Kind | None = None
    curve: Curve | None = None
    error: float = 0.0
    groups: int | None = None
    reach: Reach = UNKNOWN
    """What the quantity's definition says about its range and its moments."""
    quantity: str = ""
    """What the quantity is called, for the axes of pictures."""
    squares: Array | None = None
    """Where each value stands for several samples: the sums of the squared weights of those."""

    def __post_init__(self) -> None:
        if self.groups is not None and self.groups < 2:
            raise ArgumentError(f"groups must be 2 or more, so that they can be compared, not {shown(self.groups)}")

    @classmethod
    def listed(cls, batch: Batch, weights: Array, error: float = 0.0) -> "Belief":
        """Make the exact belief of a discrete quantity, all of whose values are listed with their probabilities."""
        return cls(batch, weights, True, spread=Kind.DISCRETE, error=error)

    @classmethod
    def of_curve(cls, curve: Curve) -> "Belief":
        """Make the exact belief of a curve."""
        if not curve.parts:
            return cls.listed(Batch.of_values(curve.atoms), curve.masses, curve.error)
        values, weights = curve.cells()
        spread = Kind.MIXED if len(curve.atoms) else Kind.CONTINUOUS
        return cls(Batch.of_values(values), weights, True, spread=spread, curve=curve, error=curve.error)

    @classmethod
    def of(cls, values: Sequence[Any], *, probabilities: Sequence[float] | None = None) -> "Belief":
        """Make a belief of samples, or an exact one of values and their probabilities."""
        batch = Batch.of_values(as_list("the values of a belief", values))
        if not len(batch):
            raise ArgumentError("a belief needs at least one value")
        if probabilities is None:
            return cls(batch)
        weights = as_numbers("probabilities", probabilities)
        if weights.shape != (len(batch),) or not np.all(weights >= 0) or not math.isclose(weights.sum(), 1.0):
            raise ArgumentError("probabilities must be one for each value, not negative, and sum to one")
        return cls.listed(batch, weights)

    @property
    def effective_samples(self) -> float:
        """How many independent, equally weighted samples this belief is worth."""
        if self.exact:
            return math.inf
        return self._independent_samples if self._grouping is None else self._grouping.worth

    @property
    def inflation(self) -> float:
        """How many times larger variances are than if the samples were independent of each other."""
        return 1.0 if self._grouping is None else self._independent_samples / self._grouping.worth

    @property
    def _independent_samples(self) -> float:
        if self.weights is None:
            return float(len(self.batch))
        return 1.0 / float((self.weights**2 if self.squares is None else self.squares).sum())

    @property
    def _weighs_alike(self) -> bool:
        """Whether values stand for several samples each, all of one weight."""
        if self.squares is None or self.weights is None:
            return False
        return np.allclose(self.squares * self._independent_samples, self.weights)

    @cached_property
    def _grouping(self) -> Groups | None:
        """How the samples come in groups, and what they are worth: as much as the least known part of the quantity."""
        if self.groups is None or self.exact:
            return None
        parts = [part for column in self.batch.columns for part in _scores(column, len(self.batch))]
        places = np.unique(np.linspace(0, len(parts) - 1, MOST_JUDGED).round().astype(int)) if parts else ()
        sizes = [effective_size(parts[place], self.weights, self.groups) for place in places]
        return Groups(self.groups, min(sizes, default=self._independent_samples))

    @property
    def _weighting(self) -> Weighting:
        return Weighting(self.weights, self._grouping, self.squares)

    @cached_property
    def kind(self) -> Kind:
        """Whether the quantity is discrete, continuous or mixed; from its definition, else from its samples."""
        if self.spread is not None and (self.spread is not Kind.MIXED or self.exact):
            return self.spread
        if not any(column.levels is None and column.array.dtype.kind == "f" for column in self.batch.columns):
            return Kind.DISCRETE
        samples = len(self.batch)
        ties = samples - self.batch.distinct()
        if ties == 0 and samples > 1:
            return Kind.CONTINUOUS
        return Kind.DISCRETE if ties >= samples / 2 else Kind.MIXED

    @property
    def method(self) -> str:
        """How the belief was obtained, in a few words."""
        if self.exact:
            return "exact" if self.error <= NEGLIGIBLE else f"exact to {self.error:.0e}"
        if self.groups is None and (self.weights is None or self._weighs_alike):
            return f"{self.label}n={self._independent_samples:.0f}"
        return f"{self.label}effective n={self.effective_samples:.0f}"

    @kinds_checked
    def probability(self, predicate: Callable[[Any], Any], confidence: float = CONFIDENCE) -> Estimate:
        """Return the probability that the predicate holds, with its exact binomial interval."""
        if not callable(predicate):
            raise ArgumentError(f"probability: a function of the value is needed, not {shown(predicate)}")
        if self.curve is None:
            return self._share(holds(predicate, self.batch), confidence)
        share = self.curve.probability(predicate)
        if share is not None:
            return self._exact_share(share)
        sampled = Belief(Batch.of_values(self.samples(SAMPLES_OF_CURVE)), label="sampled from an exact belief, ")
        return sampled.probability(predicate, confidence)

    def _share(self, hits: Array, confidence: float = CONFIDENCE) -> Estimate:
        if self.exact:
            return self._exact_share(min(1.0, float(self.shares[hits].sum())))
        return share_estimate(hits, self._weighting, self.method, confidence)

    def _exact_share(self, share: float) -> Estimate:
        return self._exactly(share, max(0.0, share - self.error), min(1.0, share + self.error))

    def _exactly(self, value: float, low: float, high: float, resolution: float = 0.0) -> Estimate:
        """Return an exact answer, with the bounds of its error if that is worth mentioning."""
        if self.error <= NEGLIGIBLE or math.isinf(value):
            low = high = value
        return Estimate(value, min(low, value), max(high, value), method=self.method, exact=True, resolution=resolution)

    @cached_property
    def resolution(self) -> float:
        """To what precision values of an exactly known quantity are shown: a hundredth of its standard deviation."""
        try:
            std = self.std().value
        except PrivugError:
            return 0.0
        return std / 100 if math.isfinite(std) else 0.0

    @kinds_checked
    def mean(self, confidence: float = CONFIDENCE) -> Estimate:
        """Return the expected value; undefined if it does not exist, or if samples cannot tell it."""
        values = self._numbers("mean")
        if self.exact and (self.curve is not None or np.all(np.isfinite(values))):
            try:
                mean = self._mean(values) if self.curve is None else float(self.curve.mean())
            except NoSuchMoment as error:
                return Estimate.undefined(str(error))
            return self._exactly(mean, mean - self._off(values), mean + self._off(values), self.resolution)
        return self._moment(values, 1, mean_estimate, confidence)

    def _moment(self, values: Array, order: int, estimate: Callable[..., Estimate], confidence: float) -> Estimate:
        """Return the estimate of a moment from samples; undefined if there is none or samples cannot tell it."""
        known = self.reach.low, self.reach.high
        if not self.exact and np.all(np.isfinite(values)):
            heavy = self._heaviness(values, order)
            missing = tails.missing(order, self.reach, heavy, "samples", "ask for median() or quantile()")
            if missing is not None:
                return missing
            seen = tails.furthest(values, self.weights, self._independent_samples)
            known = tails.ends(seen, self._mean(values), self.reach, heavy, order)
        return estimate(values, self._weighting, self.method, confidence, reach=known)

    def _heaviness(self, values: Array, order: int) -> float:
        if self.squares is None or self.reach.is_bounded:
            return tails.heaviness(values, self.weights, order, self.reach)
        drawn = np.random.default_rng(0).choice(len(values), SAMPLES_OF_CURVE, p=self.weights)
        return tails.heaviness(values[drawn], None, order, self.reach)  # what is judged is single samples

    @kinds_checked
    def std(self, confidence: float = CONFIDENCE) -> Estimate:
        """Return the standard deviation; undefined if it does not exist, or if samples cannot tell it."""
        values = self._numbers("std")
        if self.exact and (self.curve is not None or np.all(np.isfinite(values))):
            try:
                if self.curve is not None and math.isinf(self.curve.mean()):
                    return Estimate.exactly(math.inf, method=f"some values are infinite; {self.method}")
                std = float(self._standard_deviation(values) if self.curve is None else self.curve.std())
            except NoSuchMoment as error:
                return Estimate.undefined(str(error), 0.0)
            return self._exactly(std, max(0.0, std - self._off(values)), std + self._off(values))
        return self._moment(values, 2, std_estimate, confidence)

    def _mean(self, values: Array) -> float:
        values, shift = shifted(values)
        return float(self.shares @ values) + shift

    def _standard_deviation(self, values: Array) -> float:
        values, _ = shifted(values)
        mean = float(self.shares @ values)
        return math.sqrt(float(self.shares @ (values - mean) ** 2))

    def _off(self, values: Array) -> float:
        """Return how far a moment may be off if a probability of `error` lies elsewhere within the range of values."""
        seen = values[np.isfinite(values)]
        return self.error * float(np.max(seen) - float(np.min(seen))) if len(seen) else 0.0

    @kinds_checked
    def quantile(self, level: float, confidence: float = CONFIDENCE) -> Estimate:
        """Return the smallest value that is not exceeded with the given probability."""
        if not isinstance(level, int | float) or not 0 < level < 1:
            raise ArgumentError(f"quantile: the level must lie between 0 and 1, not {level!r}")
        values = self._numbers("quantile")
        if not self.exact:
            return quantile_estimate(values, self._weighting, level, self.method, confidence)
        if self.error <= NEGLIGIBLE:  # the bounds would not be mentioned
            value = self._exact_quantile(values, level)
            return self._exactly(value, value, value, self.resolution)
        shares = [min(max(share, 1e-300), 1.0) for share in (level, level - self.error, level + self.error)]
        value, low, high = (self._exact_quantile(values, share) for share in shares)
        return self._exactly(value, low, high, self.resolution)

    def _exact_quantile(self, values: Array, level: float) -> float:
        if self.curve is not None:
            return self.curve.quantile(level)
        return quantile_estimate(values, Weighting(self.weights), min(level, 1 - 1e-16), self.method).value

    @kinds_checked
    def median(self, confidence: float = CONFIDENCE) -> Estimate:
        """Return the middle value."""
        return self.quantile(0.5, confidence)

    @kinds_checked
    def interval(self, probability: float = 0.95) -> CredibleInterval:
        """Return the range that holds the quantity with the given probability, with equal tails."""
        if not isinstance(probability, int | float) or not 0 < probability < 1:
            raise ArgumentError(f"interval: the probability must lie between 0 and 1, not {probability!r}")
        tail = (1 - probability) / 2
        return CredibleInterval(self.quantile(tail), self.quantile(1 - tail), probability)

    def histogram(self, bins: int | Sequence[float] = 20) -> Histogram:
        """Return the probability of each bin; `bins` is their number or their edges."""
        values = self._numbers("histogram").astype(float)
        if not np.all(np.isfinite(values)):
            raise ArgumentError("histogram: some values are infinite")
        check_kind("histogram", "bins", bins, (int, Sequence[float]))
        bins = plain_number(bins)
        if not 0 < bins <= MOST_BINS if isinstance(bins, int) else len(bins) < 2:
            wanted = f"a positive whole number up to {MOST_BINS:,}, or a list of edges"
            raise ArgumentError(f"histogram: bins must be {wanted}, not {shown(bins)}")
        if not isinstance(bins, int) and not np.all(np.diff(as_numbers("histogram: the edges", bins)) > 0):
            raise ArgumentError("histogram: the edges must increase")
        if self.curve is not None:
            return self._histogram_of_curve(self.curve, bins)
        edges = np.histogram_bin_edges(values, bins)
        positions = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
        inside = (values >= edges[0]) & (values <= edges[-1])
        return Histogram(edges, tuple(self._share((positions == k) & inside) for k in range(len(edges) - 1)))

    def _histogram_of_curve(self, curve: Curve, bins: int | Sequence[float]) -> Histogram:
        low, high = (e if math.isfinite(e) else curve.quantile(p) for e, p in zip(curve.support, TAILS, strict=True))
        edges = np.linspace(low, high, bins + 1) if isinstance(bins, int) else np.asarray(bins, float)
        shares = curve.mass(edges[:-1], edges[1:], closed=False)
        shares[-1] = curve.mass(edges[-2], edges[-1])
        return Histogram(edges, tuple(self._exact_share(float(share)) for share in shares))

    @kinds_checked
    def distribution(self, most: int | None = None) -> dict[Any, Estimate]:
        """Return the probability of each value of a discrete quantity, or of the `most` likely; likeliest first."""
        places, codes = self._keys()
        if most is None and len(places) > MOST_LISTED:
            few = "use histogram, or distribution(most=20)"
            raise ArgumentError(f"distribution: {len(places)} distinct values are too many to list; {few}")
        likely = np.argsort(-_without_rounding(np.bincount(codes, self.weights, len(places))), kind="stable")[:most]
        keys = list(places)
        shares = {keys[place]: self._share(codes == place) for place in likely}
        return {key: share for key, share in shares.items() if share.high > 0}

    def probability_of(self, values: Collection[Any]) -> Estimate:
        """Return the probability of some values together, each written as `distribution` has it."""
        if isinstance(values, str) or not isinstance(values, Collection):
            raise ArgumentError(f"probability_of: the values must be a list or a set, not {shown(values)}")
        places, codes = self._keys()
        return self._share(np.isin(codes, [place for key, place in places.items() if key in values]))

    def _keys(self) -> tuple[dict[Any, int], Array]:
        """Return the places of the values of a discrete quantity, and the place of each sample's value."""
        if self.curve is not None:
            raise ArgumentError("distribution: a quantity with a density has too many values to list; use histogram")
        codes, support = self.batch.factorized()
        first: dict[Any, Any] = {}  # of equal dicts with their keys in another order
        keys = [first.setdefault(key_of(value), shown_key(value)) for value in support]
        # Values that Python holds equal, such as 1 and True, are one value of the distribution.
        places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        return places, np.array([places[key] for key in keys])[codes]

    @kinds_checked
    def samples(self, n: int, seed: int = 0) -> Any:
        """Return `n` equally weighted samples: an array of numbers, or a list of other values."""
        if not 0 < n <= MOST_SAMPLES:
            raise ArgumentError(f"samples: n must be a positive whole number up to {MOST_SAMPLES:,}, not {shown(n)}")
        rng = np.random.default_rng(seed)
        if self.curve is not None:
            return self.curve.sample(n, rng)
        chosen = self.batch.take(rng.choice(len(self.batch), n, p=self.weights))
        numbers = chosen.numbers()
        return chosen.values() if numbers is None else numbers

    @property
    def shares(self) -> Array:
        """The weight of each value, the same for all unless they have their own."""
        return np.full(len(self.batch), 1 / len(self.batch)) if self.weights is None else self.weights

    def _numbers(self, what: str) -> Array:
        numbers = self.batch.numbers()
        if numbers is None:
            raise ArgumentError(
                f"{what} needs single numbers, but this belief is about {shown(self.batch.values()[0])} and the like; "
                "ask for distribution() or probability(), or for result.belief(lambda ...: a number)"
            )
        return numbers

    def _repr_html_(self) -> str:
        return table(["belief", self.method], described(self))

    @kinds_checked
    def named(self, quantity: str) -> "Belief":
        """Return the same belief with what its quantity is called."""
        return replace(self, quantity=quantity)

    @kinds_checked
    def plot(self, ax: Any = None, name: str = "") -> Any:
        """Draw the belief; `ax` is matplotlib axes or the path of a picture, `name` what the quantity is called."""
        return plots().belief(self, ax, name or self.quantity or "value")

    def __repr__(self) -> str:
        return f"<Belief: {self.kind.value}, {self.method}>"


def _scores(column: Column, samples: int) -> list[Array]:
    """Return the parts of a column, each as the place of its values among all: no outlier hides how chains moved."""
    codes = column.distinct()[0] if column.levels is not None or column.array.dtype.kind not in "bif" else None
    flat = column.array.reshape(samples, -1) if codes is None else codes.reshape(samples, 1)
    chosen = np.unique(np.linspace(0, flat.shape[1] - 1, MOST_JUDGED).round().astype(int)) if flat.shape[1] else ()
    return [np.unique(flat[:, place], return_inverse=True)[1].reshape(-1).astype(float) for place in chosen]


def _without_rounding(weights: Array) -> Array:
    """Return weights of which those that differ by the rounding of arithmetic alone are equal."""
    fractions, exponents = np.frexp(weights)
    return np.ldexp(np.round(fractions, TIED_DIGITS), exponents)
