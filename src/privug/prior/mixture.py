"""Distributions made of others: mixtures, counts with more variance than independent trials, vectors.

Its parts come one after the other, each given those before it: so every engine that knows the single quantities knows
the vector.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy

from privug.arguments import as_floats, shown
from privug.errors import PriorError
from privug.model.node import Array, ConstantValue, Kind, Node, Shape, Whole
from privug.model.operations import aligned
from privug.model.variable import RandomVariable, as_node, stack_values
from privug.prior.choice import Choice, check_probabilities, constant_value, probabilities
from privug.prior.continuous import Beta
from privug.prior.discrete import COUNTS, Binomial, likely_successes
from privug.prior.family import Composed, Draw, Family, Reach, Support, draw, either, family_of, parameter_node
from privug.prior.scalar import COUNT, POSITIVE, Constraint, Fitted, ScalarFamily, deviation, positive_number


@dataclass(frozen=True)
class PointFamily(Family):
    """A quantity that is already there, as a component of a mixture; its parameter is the quantity."""

    kind: Kind
    dtype: np.dtype[Any]

    name = "Constant"
    latents = 1

    def draw(self, rng: np.random.Generator, samples: int, shape: Shape, parameters: Sequence[Array]) -> Array:
        return np.broadcast_to(parameters[0], (samples, *shape))

    def quantiles(self, xp: Any, normals: Any, *parameters: Any) -> Any:
        return xp.broadcast_to(parameters[0], normals.shape)

    def formula(self, xp: Any, value: Any, *parameters: Any) -> Any:
        return xp.where(xp.equal(value, parameters[0]), 0.0, -np.inf)

    def reach(self, parameters: Sequence[tuple[Array | None, Reach]]) -> Reach:
        return parameters[0][1]

    @property
    def listable(self) -> bool:
        return self.kind is Kind.DISCRETE

    def sizes(self, parameters: Sequence[Array], exponent: float) -> Array:
        return np.ones(1)

    def support(self, parameters: Sequence[Array], rows: int, exponent: float) -> Support:
        return Support(np.arange(rows), np.broadcast_to(parameters[0], (rows,)), np.ones(rows))

    def possible(self, parameters: Sequence[Array | None], exponent: float, most: int) -> Array | None:
        return None if parameters[0] is None or not self.listable else np.unique(parameters[0])


@dataclass(frozen=True)
class MixtureFamily(Family):
    """One of several families, chosen by weights; parameters are the weights and then those of each family."""

    families: tuple[Family, ...] = field()
    counts: tuple[int, ...] = field()

    name = "Mixture"

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        kinds = {family.kind for family in self.families}
        return kinds.pop() if len(kinds) == 1 else Kind.MIXED

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return np.result_type(*(family.dtype for family in self.families))

    @property
    def whole(self) -> Whole:  # type: ignore[override]
        return any(family.dtype.kind == "i" or family.whole for family in self.families)

    def parts(self, parameters: Sequence[Any]) -> list[tuple[Family, Sequence[Any]]]:
        starts = np.cumsum((1, *self.counts))
        return [
            (family, parameters[start : start + count])
            for family, start, count in zip(self.families, starts, self.counts, strict=False)
        ]

    @property
    def latents(self) -> int:  # type: ignore[override]
        behind = [family.latents for family in self.families]
        return 1 + max(behind) if all(behind) else 0

    @property
    def _chooser(self) -> Family:
        return family_of(Choice(range(len(self.families))).node)

    def of_normals(self, normals: Array, parameters: Sequence[Array]) -> Array:
        weights = parameters[0].reshape(len(parameters[0]), -1)
        chosen = self._chooser.of_normals(normals[..., 0], [weights])
        result = np.empty(chosen.shape, self.dtype)
        for position, (family, own) in enumerate(self.parts(parameters)):
            behind = normals[..., 1] if family.latents == 1 else normals[..., 1 : 1 + family.latents]
            np.copyto(result, family.of_normals(behind, own), where=chosen == position)
        return result

    def draw(self, rng: np.random.Generator, samples: int, shape: Shape, parameters: Sequence[Array]) -> Array:
        weights = parameters[0].reshape(len(parameters[0]), -1)
        chosen = self._chooser.draw(rng, samples, shape, [weights])
        result = np.empty((samples, *shape), self.dtype)
        for position, (family, own) in enumerate(self.parts(parameters)):
            np.copyto(result, family.draw(rng, samples, shape, own), where=chosen == position)
        return result

    def log_density(self, values: Array, parameters: Sequence[Array]) -> Array:
        weights = np.moveaxis(parameters[0].reshape(len(parameters[0]), *(1,) * (values.ndim - 1), -1), -1, 0)
        logs = [family.log_density(values, own) for family, own in self.parts(parameters)]
        with np.errstate(divide="ignore"):
            total: Array = scipy.special.logsumexp(np.stack(logs) + np.log(weights), axis=0)
        return total

    def reach(self, parameters: Sequence[tuple[Array | None, Reach]]) -> Reach:
        return either([family.reach(own) for family, own in self.parts(parameters)])

    @property
    def listable(self) -> bool:
        return all(family.listable for family in self.families)

    def is_cut(self, parameters: Sequence[Array | None]) -> bool:
        return any(family.is_cut([None] * count) for family, count in zip(self.families, self.counts, strict=True))

    def sizes(self, parameters: Sequence[Array], exponent: float) -> Array:
        sizes = [family.sizes(own, exponent) for family, own in self.parts(parameters)]
        return np.asarray(np.sum(np.broadcast_arrays(*sizes), axis=0))

    def support(self, parameters: Sequence[Array], rows: int, exponent: float) -> Support:
        weights = np.broadcast_to(parameters[0], (rows, len(self.families)))
        parts = [family.support(own, rows, exponent) for family, own in self.parts(parameters)]
        shares = [part.probabilities * weights[part.owner, k] for k, part in enumerate(parts)]
        owner = np.concatenate([part.owner for part in parts])
        order = np.argsort(owner, kind="stable")
        values = np.concatenate([part.values for part in parts])
        return Support(owner[order], values[order], np.concatenate(shares)[order]).possible()

    def possible(self, parameters: Sequence[Array | None], exponent: float, most: int) -> Array | None:
        parts = [family.possible(own, exponent, most) for family, own in self.parts(parameters)]
        listed = [part for part in parts if part is not None]
        return np.unique(np.concatenate(listed)) if len(listed) == len(parts) else None

    def check(self, parameters: Sequence[Array]) -> None:
        p = parameters[0]
        if not (np.all(np.isfinite(p)) and np.all(p >= 0) and np.all(np.abs(p.sum(axis=-1) - 1) < 1e-9)):
            raise PriorError("Mixture: weights must be probabilities that sum to one")
        for family, own in self.parts(parameters):
            family.check(own)


def Mixture(components: Sequence[Any], weights: Any = None) -> RandomVariable:
    """One of several distributions: each component is drawn anew, with the given probability.

    >>> import privug as pv
    >>> pv.Mixture([pv.Normal(20, sd=2), pv.Normal(60, sd=5)], weights=[0.3, 0.7])
    <RandomVariable: continuous float64>
    """
    if isinstance(components, RandomVariable) or not isinstance(components, Sequence) or not components:
        raise PriorError("Mixture: components must be a list of distributions")
    if weights is None:
        weights = np.full(len(components), 1.0 / len(components))
    weight_node = probabilities("Mixture", "weights", weights)
    if weight_node.shape != (len(components),):
        raise PriorError(f"Mixture: weights must be a list of {len(components)} probabilities, not {shown(weights)}")
    families: list[Family] = []
    parameters: list[Any] = [RandomVariable(weight_node)]
    counts = []
    for component in components:
        try:
            node = parameter_node("Mixture", "components", component)
        except PriorError as error:
            raise PriorError(f"{error}; for strings write pv.Choice or pv.given") from None
        if node.shape:
            raise PriorError("Mixture: components must be single numbers; wrap the mixture itself in pv.Array")
        is_draw = isinstance(node.operation, Draw)
        own = node.parents if is_draw else (node,)
        families.append(
            node.operation.family if isinstance(node.operation, Draw) else PointFamily(node.kind, node.dtype)
        )
        parameters.extend(RandomVariable(parent) for parent in own)
        counts.append(len(own))
    return draw(MixtureFamily(tuple(families), tuple(counts)), parameters, ())


@dataclass(frozen=True)
class MvNormalFamily(Family):
    """Jointly normal numbers with a fixed covariance; the parameter is the mean vector."""

    covariance: Array = field(compare=False)
    key: bytes

    name = "MvNormal"
    kind = Kind.CONTINUOUS
    dtype = np.dtype(np.float64)
    latents = 1

    @cached_property
    def factor(self) -> Array:  # type: ignore[override]
        """A matrix whose product with its transpose is the covariance, which may be singular."""
        values, vectors = np.linalg.eigh(self.covariance)
        factor: Array = vectors * np.sqrt(np.clip(values, 0.0, None))
        return factor

    def draw(self, rng: np.random.Generator, samples: int, shape: Shape, parameters: Sequence[Array]) -> Array:
        return self.of_normals(rng.standard_normal((samples, *shape)), parameters)

    def log_density(self, values: Array, parameters: Sequence[Array]) -> Array:
        mean = aligned([values, parameters[0]])[1]
        distribution = scipy.stats.multivariate_normal(cov=self.covariance, allow_singular=True)
        return np.asarray(distribution.logpdf(values - mean)).reshape(values.shape[:-1])

    def quantiles(self, xp: Any, normals: Any, *parameters: Any) -> Any:
        return parameters[0] + normals @ self.factor.T

    def reach(self, parameters: Sequence[tuple[Array | None, Reach]]) -> Reach:
        return Reach(least=parameters[0][1].least)

    def check(self, parameters: Sequence[Array]) -> None:
        if not np.all(np.isfinite(parameters[0])):
            raise PriorError("MvNormal: mean must hold finite numbers")


def MvNormal(mean: Any, cov: Any) -> RandomVariable:
    """A vector of jointly normal numbers with the given mean vector and covariance matrix.

    >>> import privug as pv
    >>> pays = {"pays": pv.MvNormal([50, 60], [[100, 80], [80, 100]])}
    >>> couple = pv.Attack(lambda pays: pays[1], prior=pays, secret=lambda pays: pays[0])
    >>> round(couple.run(pv.equals(70)).posterior.mean().value, 4)
    58.0
    """
    try:
        covariance = as_floats(cov)
    except (TypeError, ValueError):
        raise PriorError(f"MvNormal: cov must be a matrix of numbers, not {shown(cov)}") from None
    if not isinstance(mean, RandomVariable | list | tuple | np.ndarray):
        raise PriorError(f"MvNormal: mean must be a list of numbers, not {shown(mean)}")
    center = parameter_node("MvNormal", "mean", list(mean) if isinstance(mean, tuple) else mean)
    if len(center.shape) != 1:
        raise PriorError(f"MvNormal: mean must be a list of numbers, not {shown(mean)}")
    size = center.shape[0]
    if covariance.shape != (size, size):
        raise PriorError(f"MvNormal: cov must be a {size} by {size} matrix, not of shape {covariance.shape}")
    if not np.all(np.isfinite(covariance)) or not np.allclose(covariance, covariance.T, rtol=1e-10, atol=0):
        raise PriorError("MvNormal: cov must be symmetric and finite")
    smallest = float(np.linalg.eigvalsh(covariance).min())
    if smallest < -1e-10 * float(np.abs(covariance).max()):
        raise PriorError(f"MvNormal: cov must not have negative eigenvalues, but has {smallest:.3g}")
    return draw(MvNormalFamily(covariance, covariance.tobytes()), (RandomVariable(center),), (size,))


MODERATE_NUMBER = Constraint(lambda x: (x > 0) & (x <= 1e8), "a positive number up to 1e8")
MODERATE_PROBABILITY = Constraint(lambda x: (x >= 1e-8) & (x <= 1), "a probability of 1e-8 or more, at most 1", "logit")
PEOPLE = Constraint(lambda x: (x >= 0) & (x == np.floor(x)) & (x < 1e9), "a whole number from 0 to 999,999,999")
SOMEBODY = Constraint(lambda x: (x >= 1) & (x == np.floor(x)) & (x < 1e9), "a whole number from 1 to 999,999,999")
MOST_LISTED = 100_000  # people, of which each number may be the marked ones

NEGATIVE_BINOMIAL = ScalarFamily(
    "NegativeBinomial",
    (("n", MODERATE_NUMBER), ("p", MODERATE_PROBABILITY)),
    lambda rng, size, n, p: rng.negative_binomial(n, p, size),
    lambda n, p: scipy.stats.nbinom(n, p),
    Kind.DISCRETE,
    ends=(0, math.inf),
    pymc=lambda n, p: ("NegativeBinomial", {"n": n, "p": p}),
    formula=lambda xp, value, n, p: (
        xp.gammaln(value + n) - xp.gammaln(n) - xp.gammaln(value + 1) + n * xp.log(p) + xp.xlog1py(value, -p)
    ),
    data=COUNTS,
    start=lambda numbers: _start_of_negative_binomial(numbers),
)
HYPERGEOMETRIC = ScalarFamily(
    "Hypergeometric",
    (("population", SOMEBODY), ("marked", PEOPLE), ("drawn", PEOPLE)),
    lambda rng, size, population, marked, drawn: rng.hypergeometric(
        *(np.asarray(count, np.int64) for count in (marked, population - marked, drawn)), size
    ),
    lambda population, marked, drawn: scipy.stats.hypergeom(population, marked, drawn),
    Kind.DISCRETE,
    at_most=(("marked", "population"), ("drawn", "population")),
    ends=(0, "drawn"),
    largest=lambda population, marked, drawn: drawn,
    likely=lambda exponent, population, marked, drawn: _likely_marked(exponent, population, marked, drawn),
    trials="drawn",
    pymc=lambda population, marked, drawn: ("HyperGeometric", {"N": population, "k": marked, "n": drawn}),
    formula=lambda xp, value, population, marked, drawn: (
        _log_choose(xp, marked, value)
        + _log_choose(xp, population - marked, drawn - value)
        - _log_choose(xp, population, drawn)
    ),
    data=COUNTS,
    fitted=lambda numbers, population=None, drawn=None: _fitted_hypergeometric(numbers, population, drawn),
    given=("population", "drawn"),
)


def _likely_marked(exponent: float, population: Array, marked: Array, drawn: Array) -> tuple[Array, Array]:
    # Without replacement counts lie closer to their mean than with it (Hoeffding, 1963, section 6).
    low, high = likely_successes(exponent, drawn, marked / np.maximum(population, 1))
    return np.maximum(low, drawn + marked - population), np.minimum(high, marked)


def _log_choose(xp: Any, n: Any, k: Any) -> Any:
    """Return the log of a binomial coefficient, which is zero where there are fewer than k, or fewer than none."""
    inside = (k >= 0) & (k <= n)
    taken = xp.where(inside, k, 0)
    return xp.where(inside, xp.gammaln(n + 1.0) - xp.gammaln(taken + 1.0) - xp.gammaln(n - taken + 1.0), -np.inf)


def _start_of_negative_binomial(numbers: Array) -> tuple[float, float]:
    mean, extra = float(numbers.mean()), max(float(numbers.var() - numbers.mean()), 1e-3 * float(numbers.mean()))
    return mean**2 / extra, mean / (mean + extra)


def _fitted_hypergeometric(numbers: Array, population: Any, drawn: Any) -> Fitted:
    known = [isinstance(count, int) and not isinstance(count, bool) for count in (population, drawn)]
    if not all(known) or not numbers.max() <= drawn <= population <= MOST_LISTED:
        raise PriorError(
            f"fit: Hypergeometric needs population=, a whole number up to {MOST_LISTED}, and drawn=, one up to it and "
            f"no smaller than the data, not {shown(population)} and {shown(drawn)}"
        )
    marked = np.arange(population + 1)
    values, counts = np.unique(numbers, return_counts=True)
    logs = scipy.stats.hypergeom(population, marked[:, np.newaxis], drawn).logpmf(values) @ counts
    chances = scipy.special.softmax(logs)
    possible = chances > 0
    return Fitted(
        lambda: Hypergeometric(population, int(marked[np.argmax(logs)]), drawn),
        lambda: Hypergeometric(population, Choice(marked[possible].tolist(), chances[possible]), drawn),
    )


class NegativeBinomial:
    """The number of failures before the n-th success, in independent trials of probability `p`: 0, 1, 2, ...

    The mean is n (1 - p) / p; `n` need not be whole. `NegativeBinomial.of_mean` takes mean and deviation instead.

    >>> import privug as pv
    >>> pv.NegativeBinomial(3, 0.5)
    <RandomVariable: discrete int64>
    """

    def __new__(cls, n: Any, p: Any) -> RandomVariable:  # type: ignore[misc]
        """Make the random variable."""
        return draw(NEGATIVE_BINOMIAL, (n, p))

    @staticmethod
    def of_mean(mean: Any, *unnamed: Any, sd: Any = None, var: Any = None) -> RandomVariable:
        """Make counts of this mean and deviation, which is larger than that of a Poisson count of the same mean.

        >>> import privug as pv
        >>> visits = pv.NegativeBinomial.of_mean(4, sd=3)
        >>> print(pv.Attack(lambda x: x, prior={"x": visits}, secret="x").run(engine="exact").prior.mean())
        4 (exact)
        """
        name = "NegativeBinomial.of_mean"
        center = positive_number(name, "mean", mean)
        spread = positive_number(name, "sd", deviation(name, sd, var, unnamed))
        extra = spread * spread - center
        if not isinstance(extra, RandomVariable) and not np.all(extra > 0):
            raise PriorError(f"{name}: the variance must be larger than the mean; write pv.Poisson for equal ones")
        return NegativeBinomial(center * center / extra, center / (center + extra))


def Hypergeometric(population: Any, marked: Any, drawn: Any) -> RandomVariable:
    """How many of `drawn` people are marked, if they are drawn without replacement from a population.

    `marked` of the `population` are; the mean is drawn * marked / population.

    >>> import privug as pv
    >>> smokers = pv.Attack(lambda x: x, prior={"x": pv.Hypergeometric(10, 3, 2)}, secret="x").run().prior
    >>> round(smokers.probability(lambda x: x == 0).value, 4)
    0.4667
    """
    return draw(HYPERGEOMETRIC, (population, marked, drawn))


def Multinomial(n: Any, p: Any) -> RandomVariable:
    """How many of `n` people fall into each of several cells, of probabilities `p` that sum to one.

    Cell i has n * p[i] people on average; the counts are an array that sums to n. Random probabilities are taken
    relative to their sum.

    >>> import privug as pv
    >>> pv.Multinomial(100, [0.2, 0.3, 0.5])
    <RandomVariable: discrete int64, shape (3,)>
    """
    total = _checked("Multinomial", "n", parameter_node("Multinomial", "n", n), COUNT, ())
    node = probabilities("Multinomial", "p", p)
    if isinstance(node.operation, ConstantValue):
        check_probabilities("Multinomial", node.operation.array)
    shares = _parts("Multinomial", "p", node)
    rests = _sums_from(shares)
    left, counts = total, []
    for share, rest in zip(shares[:-1], rests[:-1], strict=True):
        # Rounding may take a last share beyond its rest, and where nothing is left any share will do.
        chance = np.minimum(share / rest, 1.0) if isinstance(rest, RandomVariable) or rest > 0 else 0.0
        count = Binomial(left, chance)
        if not isinstance(total, RandomVariable):
            count.node.bound = int(total)
        counts.append(count)
        left = left - count
    return Composed(stack_values([*counts, left]), partial(Multinomial, n, p), (as_node(total), node))


def Dirichlet(weights: Any) -> RandomVariable:
    """Shares that sum to one, such as unknown probabilities; share i is weights[i] / sum(weights) on average.

    The larger the sum of the weights, the closer shares are to their means; with weights of one all are equally likely.

    >>> import privug as pv
    >>> pv.Dirichlet([1, 1, 1])
    <RandomVariable: continuous float64, shape (3,)>
    """
    given = list(weights) if isinstance(weights, tuple) else weights
    node = parameter_node("Dirichlet", "weights", given)
    parts = _parts("Dirichlet", "weights", node)
    if isinstance(node.operation, ConstantValue):
        _checked("Dirichlet", "weights", node, POSITIVE, node.shape)
    left: Any = 1.0
    shares = []
    for weight, others in zip(parts[:-1], _sums_from(parts)[1:], strict=True):
        share = Beta(weight, others)
        shares.append(left * share)
        left = left * (1.0 - share)
    return Composed(stack_values([*shares, left]), partial(Dirichlet, weights), (node,))


def _checked(distribution: str, name: str, node: Node, limits: Constraint, shape: tuple[int, ...]) -> Any:
    """Return a parameter as plain numbers if it is known, and as a random variable otherwise."""
    if node.shape != shape:
        raise PriorError(f"{distribution}: {name} must be one number, not an array of shape {node.shape}")
    if not isinstance(node.operation, ConstantValue):
        return RandomVariable(node)
    array = node.operation.array
    if not np.all(limits.holds(array)):
        wrong = array[~limits.holds(array)][0].item()
        raise PriorError(f"{distribution}: {name} must be {limits.words}, not {shown(wrong)}")
    return constant_value(node)


def _parts(distribution: str, name: str, node: Node) -> list[Any]:
    if len(node.shape) != 1 or node.shape[0] < 2:
        raise PriorError(f"{distribution}: {name} must be a list of at least two numbers, one for each part")
    if isinstance(node.operation, ConstantValue):
        return [float(number) for number in node.operation.array[0]]
    return [RandomVariable(node)[place] for place in range(node.shape[0])]


def _sums_from(parts: Sequence[Any]) -> list[Any]:
    """Return for each part the sum of it and all after it."""
    sums = [parts[-1]]
    for part in reversed(parts[:-1]):
        sums.append(part + sums[-1])
    return sums[::-1]
