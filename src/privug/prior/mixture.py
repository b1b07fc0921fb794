"""Mixtures of distributions, and the multivariate normal."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from privug.arguments import as_floats, shown
from privug.errors import PriorError
from privug.model.node import Array, Kind, Shape, Whole
from privug.model.operations import aligned
from privug.model.variable import RandomVariable
from privug.prior.choice import Choice, probabilities
from privug.prior.family import Draw, Family, draw, family_of, parameter_node
from privug.prior.reach import Reach, either
from privug.prior.support import Support


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
