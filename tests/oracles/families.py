"""One row for each distribution of single numbers: arguments to make it with, and the same distribution in SciPy.

A row is all that tests need to hold a new family against SciPy in every engine.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

import privug as pv
from privug.prior.family import Family, family_of


@dataclass(frozen=True)
class Row:
    name: str
    arguments: dict[str, Any]
    reference: Any
    known: dict[str, Any] = field(default_factory=dict)
    """What a fit must be told besides the data."""

    def make(self) -> pv.RandomVariable:
        maker: Callable[..., pv.RandomVariable] = getattr(pv, self.name)
        return maker(**self.arguments)

    @property
    def family(self) -> Family:
        return family_of(self.make().node)

    @property
    def parameters(self) -> list[np.ndarray]:
        return [parent.operation.array for parent in self.make().node.parents]

    @property
    def is_discrete(self) -> bool:
        return hasattr(self.reference, "pmf")

    def values(self) -> np.ndarray:
        """Values all over the distribution, its ends and what lies beyond them left out."""
        levels = np.linspace(0.02, 0.98, 9)
        return np.unique(self.reference.ppf(levels))


class TwoSided(stats.rv_discrete):
    """Probabilities proportional to exp(-k^2 / (2 sd^2)) on the whole numbers, summed plainly."""

    def _pmf(self, k, sd):
        every = np.arange(-200, 201).reshape(-1, *(1,) * np.ndim(sd))
        return np.exp(-0.5 * (k / sd) ** 2) / np.exp(-0.5 * (every / sd) ** 2).sum(axis=0)


ROWS = [
    Row("Uniform", {"low": -1, "high": 3}, stats.uniform(-1, 4)),
    Row("Normal", {"mean": 1, "sd": 2}, stats.norm(1, 2)),
    Row("TruncatedNormal", {"mean": 1, "sd": 2, "low": 0, "high": 4}, stats.truncnorm(-0.5, 1.5, 1, 2)),
    Row("LogNormal", {"mean": 0, "sd": 0.6}, stats.lognorm(0.6)),
    Row("StudentT", {"df": 5, "loc": 1, "scale": 2}, stats.t(5, 1, 2)),
    Row("Cauchy", {"loc": 1, "scale": 2}, stats.cauchy(1, 2)),
    Row("Laplace", {"loc": 1, "scale": 2}, stats.laplace(1, 2)),
    Row("Exponential", {"scale": 3}, stats.expon(scale=3)),
    Row("Gamma", {"shape": 2.5, "scale": 2}, stats.gamma(2.5, scale=2)),
    Row("Weibull", {"shape": 1.7, "scale": 3}, stats.weibull_min(1.7, scale=3)),
    Row("Pareto", {"shape": 3.5, "low": 2}, stats.pareto(3.5, scale=2)),
    Row("Beta", {"a": 1.5, "b": 2.5}, stats.beta(1.5, 2.5)),
    Row("Triangular", {"low": -1, "mode": 0.5, "high": 4}, stats.triang(0.3, -1, 5), {"low": -1.0, "high": 4.0}),
    Row("Bernoulli", {"p": 0.3}, stats.bernoulli(0.3)),
    Row("Binomial", {"n": 10, "p": 0.3}, stats.binom(10, 0.3), {"n": 10}),
    Row("Poisson", {"rate": 4}, stats.poisson(4)),
    Row("Geometric", {"p": 0.2}, stats.geom(0.2)),
    Row("NegativeBinomial", {"n": 2.5, "p": 0.4}, stats.nbinom(2.5, 0.4)),
    Row(
        "Hypergeometric",
        {"population": 40, "marked": 12, "drawn": 15},
        stats.hypergeom(40, 12, 15),
        {"population": 40, "drawn": 15},
    ),
    Row("DiscreteUniform", {"low": -3, "high": 5}, stats.randint(-3, 6)),
    Row("DiscreteLaplace", {"scale": 2.0}, stats.dlaplace(0.5)),
    Row("DiscreteGaussian", {"sd": 1.5}, TwoSided(a=-60, b=60, name="two_sided")(1.5)),
]
