"""The model graph in JAX: a density over standard normal numbers, with discrete roots summed out.

Behind every continuous root stand numbers that are standard normal before the observation: a normal root is its mean
plus so many deviations, a uniform one the normal distribution function of one. Chains then move where priors have no
walls and all directions are alike. Discrete roots, and which part of a mixture it is, are states: the density is the
sum over all of them.
"""

import math
from collections.abc import Callable, Sequence
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
from privug.inference.chains.translation import Backend, Functions, Untranslatable, log_density, resolved, translate
from privug.model.node import Array, Kind, Node, ancestors
from privug.model.traits.table import traits_of
from privug.prior.family import Family, family_of

MOST_STATES = 1024


def _resolved(name: str) -> Callable[..., Any]:
    return resolved(traits_of(name).jax or f"numpy.{name}", name, jax)


class JaxNumpy(Backend):
    """How expressions are written in JAX, which has NumPy's names for nearly all of them."""

    formulas = Functions(lambda name: getattr(special, name, None) or _resolved(name))

    def constant(self, array: Array | float) -> Any:
        return jnp.asarray(array)

    def cast(self, value: Any, dtype: np.dtype[Any]) -> Any:
        return value != 0 if dtype.kind == "b" and value.dtype != bool else jnp.asarray(value, dtype)

    def function(self, name: str) -> Callable[..., Any]:
        return _resolved(name)

    def own_density(self, family: Family, value: Any, parameters: Sequence[Any]) -> Any | None:
        named = family.numpyro(*parameters)
        return None if named is None else getattr(distributions, named[0])(**named[1]).log_prob(value)


def _of_normal(family: Family, z: Any, parameters: Sequence[Any]) -> tuple[Any, Any]:
    """Return the value that stands for standard normal numbers, and the logarithm of what they weigh beyond that."""
    value = family.quantiles(JaxNumpy.formulas, z, *parameters)
    if value is not None:
        return value, 0.0
    stretched = family.stretched(JaxNumpy.formulas, z, *parameters)
    if stretched is None:
        raise Untranslatable(f"the distribution {family.name}")
    value, log_slope = stretched
    weight = JaxNumpy().log_density(family, value, parameters) + log_slope - distributions.Normal().log_prob(z)
    return value, weight.sum()


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
    return bool(family_of(root).families) and root.kind is not Kind.DISCRETE


def _root_value(family: Family, z: Any, place: Any, parameters: Sequence[Any]) -> tuple[Any, Any]:
    if not family.families:
        return _of_normal(family, z, parameters)
    log_shares = jnp.log(parameters[0])
    value, weight = jnp.zeros(z.shape), log_shares[place].sum()
    for number, (part, own) in enumerate(family.parts(parameters)):
        one = part.quantiles(JaxNumpy.formulas, z, *own)
        if one is None:
            raise Untranslatable(f"a mixture of {part.name}")
        value = jnp.where(place == number, one, value)
    return value, weight


def _possible(root: Node) -> Array | None:
    """Return the values of a discrete root, or the parts of a mixture; None for what is continuous."""
    family = family_of(root)
    if _is_mixture(root):
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
