"""The model graph in JAX: a density over standard normal numbers, with discrete roots summed out.

Behind every continuous root stand numbers that are standard normal before the observation: a normal root is its mean
plus so many deviations, a uniform one the normal distribution function of one. Chains then move where priors have no
walls and all directions are alike. Discrete roots, and which part of a mixture it is, are states: the density is the
sum over all of them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import special
from numpyro import distributions

from privug.errors import UnsuitableEngine
from privug.inference.chains.problem import Problem
from privug.inference.chains.states import joint_states, possible
from privug.inference.chains.translation import Untranslatable, log_density, translate
from privug.model.node import Array, Kind, Node, ancestors
from privug.prior.choice import ChoiceFamily
from privug.prior.family import Family, family_of
from privug.prior.mixture import MixtureFamily, MvNormalFamily, PointFamily

MOST_STATES = 1024
LOG_TWO = math.log(2.0)


class JaxNumpy:
    """How expressions are written in JAX, which has NumPy's names for nearly all of them."""

    def constant(self, array: Array | float) -> Any:
        return jnp.asarray(array)

    def cast(self, value: Any, dtype: np.dtype[Any]) -> Any:
        return value != 0 if dtype.kind == "b" and value.dtype != bool else jnp.asarray(value, dtype)

    def elementwise(self, name: str, arguments: Sequence[Any]) -> Any:
        return _function(name)(*arguments)

    def array_function(self, name: str, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
        if name in ("concatenate", "stack"):
            return _function(name)(list(arguments), axis=options["axis"])
        if name == "argsort":
            return jnp.lexsort(tuple(reversed(arguments)))
        return _function(name)(*arguments, **options)

    def take(self, table: Any, positions: Any) -> Any:
        return table[positions]

    def subscript(self, value: Any, key: tuple[Any, ...]) -> Any:
        return value[key]

    def log_density(self, family: Family, value: Any, parameters: Sequence[Any]) -> Any:
        if isinstance(family, PointFamily):
            return jnp.where(value == parameters[0], 0.0, -jnp.inf)
        if isinstance(family, ChoiceFamily):
            return _log_share(family, value, parameters)
        if family.name not in _DENSITIES:
            raise Untranslatable(f"the density of {family.name}")
        return _DENSITIES[family.name](*parameters).log_prob(value)


def _function(name: str) -> Callable[..., Any]:
    found = getattr(jnp, name, None)
    if not callable(found):
        raise Untranslatable(f"np.{name}")
    function: Callable[..., Any] = found
    return function


def _log_share(family: ChoiceFamily, value: Any, parameters: Sequence[Any]) -> Any:
    count = len(family.table)
    weights = parameters[0] if parameters else jnp.full(count, 1.0 / count)
    return jnp.log(((value[..., jnp.newaxis] == family.table) * weights).sum(axis=-1))


class _DiscreteLaplace:
    def __init__(self, scale: Any) -> None:
        self.scale = scale

    def log_prob(self, value: Any) -> Any:
        return jnp.log(jnp.tanh(0.5 / self.scale)) - jnp.abs(value) / self.scale


_DENSITIES: dict[str, Callable[..., Any]] = {
    "Uniform": distributions.Uniform,
    "Normal": distributions.Normal,
    "TruncatedNormal": lambda mean, sd, low, high: distributions.TruncatedNormal(mean, sd, low=low, high=high),
    "LogNormal": distributions.LogNormal,
    "StudentT": distributions.StudentT,
    "Cauchy": distributions.Cauchy,
    "Laplace": distributions.Laplace,
    "Exponential": lambda scale: distributions.Exponential(1.0 / scale),
    "Gamma": lambda shape, scale: distributions.Gamma(shape, 1.0 / scale),
    "Beta": distributions.Beta,
    "Bernoulli": lambda p: distributions.BernoulliProbs(p),
    "Binomial": lambda n, p: distributions.BinomialProbs(p, n),
    "Poisson": distributions.Poisson,
    "Geometric": lambda p: _Shifted(distributions.GeometricProbs(p)),
    "DiscreteUniform": lambda low, high: distributions.DiscreteUniform(low, high),
    "DiscreteLaplace": _DiscreteLaplace,
}


@dataclass(frozen=True)
class _Shifted:
    """NumPyro's geometric distribution counts failures, ours trials."""

    failures: Any

    def log_prob(self, value: Any) -> Any:
        return self.failures.log_prob(value - 1)


def _of_normal(family: Family, z: Any, parameters: Sequence[Any]) -> tuple[Any, Any]:
    """Return the value that stands for standard normal numbers, and the logarithm of what they weigh beyond that."""
    if isinstance(family, MvNormalFamily):
        return parameters[0] + z @ jnp.asarray(family.factor).T, 0.0
    if family.name in _QUANTILES:
        return _QUANTILES[family.name](z, *parameters), 0.0
    if family.name in _SHAPED:
        value, log_slope = _SHAPED[family.name](z, *parameters)
        weight = JaxNumpy().log_density(family, value, parameters) + log_slope - distributions.Normal().log_prob(z)
        return value, weight.sum()
    raise Untranslatable(f"the distribution {family.name}")


def _laplace(z: Any, loc: Any, scale: Any) -> Any:
    return loc - jnp.sign(z) * scale * (LOG_TWO + special.log_ndtr(-jnp.abs(z)))


def _cauchy(z: Any, loc: Any, scale: Any) -> Any:
    far = jnp.abs(z) > 1
    tail = jnp.sign(z) / jnp.tan(jnp.pi * special.ndtr(-jnp.where(far, jnp.abs(z), 1.0)))
    return loc + scale * jnp.where(far, tail, jnp.tan(jnp.pi * (special.ndtr(jnp.where(far, 0.0, z)) - 0.5)))


def _truncated_normal(z: Any, mean: Any, sd: Any, low: Any, high: Any) -> Any:
    start, end = (low - mean) / sd, (high - mean) / sd
    # In the upper tail the mirror image is computed, where small probabilities stay apart.
    mirrored = start > 0
    left, right = jnp.where(mirrored, -end, start), jnp.where(mirrored, -start, end)
    share = special.ndtr(jnp.where(mirrored, -z, z))
    standard = special.ndtri(special.ndtr(left) + share * (special.ndtr(right) - special.ndtr(left)))
    return mean + sd * jnp.where(mirrored, -standard, standard)


_QUANTILES: dict[str, Callable[..., Any]] = {
    "Normal": lambda z, mean, sd: mean + sd * z,
    "LogNormal": lambda z, mean, sd: jnp.exp(mean + sd * z),
    "Uniform": lambda z, low, high: low + (high - low) * special.ndtr(z),
    "Exponential": lambda z, scale: -scale * special.log_ndtr(-z),
    "Laplace": _laplace,
    "Cauchy": _cauchy,
    "TruncatedNormal": _truncated_normal,
}


def _gamma(z: Any, shape: Any, scale: Any) -> tuple[Any, Any]:
    spread = jnp.sqrt(special.polygamma(1, shape))
    value = scale * jnp.exp(special.digamma(shape) + spread * z)
    return value, jnp.log(value * spread)


def _beta(z: Any, a: Any, b: Any) -> tuple[Any, Any]:
    spread = jnp.sqrt(special.polygamma(1, a) + special.polygamma(1, b))
    value = jax.nn.sigmoid(special.digamma(a) - special.digamma(b) + spread * z)
    value = jnp.clip(value, 1e-300, 1.0 - 1e-16)
    return value, jnp.log(value) + jnp.log1p(-value) + jnp.log(spread)


_SHAPED: dict[str, Callable[..., tuple[Any, Any]]] = {
    "Gamma": _gamma,
    "Beta": _beta,
    "StudentT": lambda z, df, loc, scale: (loc + scale * z, jnp.broadcast_to(jnp.log(scale), jnp.shape(z))),
}


@dataclass(frozen=True)
class JaxModel:
    """The density of a problem over standard normal numbers, and the way from those to the roots."""

    problem: Problem

    @cached_property
    def roots(self) -> list[Node]:
        """The roots that matter: all continuous ones, and discrete ones on which they or the observation depend."""
        continuous = [root for root in self.problem.roots if root.kind is not Kind.DISCRETE]
        needed = {id(n) for n in ancestors([*continuous, self.problem.log_weight, *self.problem.conditions])}
        return [root for root in self.problem.roots if root.kind is not Kind.DISCRETE or id(root) in needed]

    @property
    def dimensions(self) -> int:
        """How many standard normal numbers there are."""
        return sum(math.prod(root.shape) for root in self.roots if root.kind is not Kind.DISCRETE)

    @cached_property
    def states(self) -> dict[Node, Array]:
        """For each discrete root its value in each joint state; for a mixture, which of its parts it is."""
        lists = {root: _possible(root) for root in self.roots}
        chosen = {root: values for root, values in lists.items() if values is not None}
        states = joint_states(chosen, MOST_STATES) if chosen else {}
        if states is None:
            raise UnsuitableEngine(
                f"engine='numpyro' sums over the joint states of discrete inputs, and here there are more than "
                f"{MOST_STATES} of them; choose engine='rare' or 'sample', or engine='pymc', which moves among them"
            )
        return states

    @property
    def state_count(self) -> int:
        """How many joint states there are; one if nothing is discrete."""
        return len(next(iter(self.states.values()))) if self.states else 1

    def log_density(self, z: Any) -> Any:
        """Return the logarithm of the density of standard normal numbers given the observation, up to a constant."""
        return special.logsumexp(self.log_densities(z))

    def log_densities(self, z: Any) -> Any:
        """Return it for each joint state of what is discrete."""
        own = distributions.Normal().log_prob(z).sum()
        return own + jax.vmap(lambda state: self._placed(z, state)[1])(jnp.arange(self.state_count))

    def values(self, z: Any, state: Any) -> list[Any]:
        """Return the values of the roots."""
        placed = self._placed(z, state)[0]
        return [placed[root] for root in self.roots]

    def _placed(self, z: Any, state: Any) -> tuple[dict[Node, Any], Any]:
        """Return all values given normal numbers and a state, and the log weight of both beyond the normal density."""
        backend, values, weight, start = JaxNumpy(), dict[Node, Any](), jnp.zeros(()), 0
        for root in self.roots:
            parameters = translate(root.parents, backend, values)
            discrete = self.states.get(root)
            place = None if discrete is None else jnp.asarray(discrete)[state]
            if root.kind is Kind.DISCRETE:
                values[root] = place
                weight += log_density(backend, family_of(root), place, parameters).sum()
                continue
            size = math.prod(root.shape)
            own = z[start : start + size].reshape(root.shape)
            start += size
            values[root], extra = _root_value(family_of(root), own, place, parameters)
            weight += extra
        seen, *conditions = translate([self.problem.log_weight, *self.problem.conditions], backend, values)
        for condition in conditions:
            seen = jnp.where(condition, seen, -jnp.inf)
        return values, weight + seen


def _is_mixture(root: Node) -> bool:
    return isinstance(family_of(root), MixtureFamily) and root.kind is not Kind.DISCRETE


def _root_value(family: Family, z: Any, place: Any, parameters: Sequence[Any]) -> tuple[Any, Any]:
    if not isinstance(family, MixtureFamily):
        return _of_normal(family, z, parameters)
    log_shares = jnp.log(parameters[0])
    value, weight = jnp.zeros(z.shape), log_shares[place].sum()
    for number, (part, own) in enumerate(family.parts(parameters)):
        if isinstance(part, PointFamily):
            one, extra = jnp.broadcast_to(own[0], z.shape), 0.0
        elif part.kind is Kind.DISCRETE or isinstance(part, MixtureFamily) or part.name in _SHAPED:
            raise Untranslatable(f"a mixture of {part.name}")
        else:
            one, extra = _of_normal(part, z, own)
        value = jnp.where(place == number, one, value)
        weight += extra
    return value, weight


def _possible(root: Node) -> Array | None:
    """Return the values of a discrete root, or the parts of a mixture; None for what is continuous."""
    family = family_of(root)
    if _is_mixture(root) and isinstance(family, MixtureFamily):
        return np.arange(len(family.families))
    if root.kind is not Kind.DISCRETE:
        return None
    values = possible(root)
    if values is None:
        raise UnsuitableEngine(
            f"engine='numpyro' sums over the values of discrete inputs, but those of {family.name} with random "
            "parameters cannot be listed; choose engine='rare' or 'sample'"
        )
    return values
