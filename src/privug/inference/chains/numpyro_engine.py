"""The engine 'numpyro': the No-U-Turn sampler of NumPyro in JAX, in 64 bits, all chains side by side."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Unpack

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random
from jax.scipy import special
from numpyro import distributions
from numpyro.infer import NUTS

from privug import interruption
from privug.errors import NotConverged, UnsuitableEngine
from privug.inference.answer import Options, SampledAnswer
from privug.inference.chains import sizes
from privug.inference.chains.diagnosis import check_against_prior, draws_of_each, finished
from privug.inference.chains.problem import Problem
from privug.inference.chains.sizes import possible
from privug.inference.chains.translation import Backend, Functions, Untranslatable, log_density, resolved, translate
from privug.inference.question import Question
from privug.model.node import Array, Kind, Node, ancestors, reached
from privug.model.traits import traits_of
from privug.observation.observations import Observation
from privug.prior.family import Family, family_of
from privug.progress import ProgressMeter

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
        states = sizes.joint_states(chosen, MOST_STATES) if chosen else {}
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
    if root.kind is not Kind.DISCRETE:
        return np.arange(len(family.families)) if family.families else None
    values = possible(root)
    if values is None:
        raise UnsuitableEngine(
            f"engine='numpyro' sums over the values of discrete inputs, but those of {family.name} with random "
            "parameters cannot be listed; choose engine='rare' or 'sample'"
        )
    return values


CHAINS = 8  # so many that all of them seldom start towards the same one of several modes
WARM_UP = 800
TARGET = 0.9  # share of accepted steps: small steps, few divergences
STEPS = 50  # of all chains between two looks at the clock
STARTS = 512  # draws from the prior among which chains start
MOST_STARTS = 20
FEWEST_LEFT = 250  # draws of a chain that are kept after an interruption
BLOCK = 4096  # draws turned into values of the roots at a time


def infer(
    question: Question,
    observation: Observation | None,
    *,
    sampler: str | None = None,
    chains: int = CHAINS,
    **options: Unpack[Options],
) -> SampledAnswer:
    """Answer by chains that follow gradients; discrete inputs are summed out and drawn afterwards."""
    started, samples, seed = time.perf_counter(), options["samples"], options["seed"]
    problem = sizes.prepare(question, observation, seed, samples)
    direct = sizes.directly(problem, chains, draws_of_each(problem.roots, samples, chains)) if sampler is None else None
    if direct is not None:
        return finished(problem.evaluate, direct, "numpyro", started, options)
    problem = sizes.summed_out(problem)
    problem = replace(problem, listed={**problem.listed, **sizes.listed_values(problem.roots)})
    _check(problem)
    with jax.enable_x64(True):
        try:
            roots, divergences, remarks = _drawn(problem, samples, seed, chains)
        except Untranslatable as error:
            raise UnsuitableEngine(
                f"engine='numpyro' has no counterpart of {error}; choose engine='rare' or 'sample'"
            ) from None
    cut = sizes.trimmed(problem, roots, divergences, remarks)
    check_against_prior(problem, cut, "numpyro")
    return finished(problem.evaluate, cut, "numpyro", started, options)


def _check(problem: Problem) -> None:
    """Refuse what gradients do not lead through."""
    if not any(root.kind is not Kind.DISCRETE for root in problem.roots):
        raise UnsuitableEngine("engine='numpyro' follows gradients, and no input is continuous; choose engine='exact'")
    behind = reached(problem.conditions, lambda node: node.is_random)
    if any(node.is_random and node.kind is not Kind.DISCRETE for node in behind):
        raise UnsuitableEngine(
            "engine='numpyro' follows gradients, but whether the observation holds jumps with continuous inputs; "
            "choose engine='rare' or 'sample'"
        )


def _drawn(problem: Problem, samples: int, seed: int, chains: int) -> tuple[dict[Node, Array], int, tuple[str, ...]]:
    """Return draws of the roots as arrays of chains by draws, and how many of them are divergent."""
    model = JaxModel(problem)
    draws = draws_of_each(problem.roots, samples, chains)
    keys = random.split(random.key(int(np.random.SeedSequence(seed).generate_state(1)[0])), 3)
    run = _Chains(model, chains, keys[0])
    remarks: tuple[str, ...] = ()
    with ProgressMeter("numpyro (nuts)", WARM_UP + draws) as meter:
        try:
            run.advance(WARM_UP, meter)
            run.forget()
            run.advance(draws, meter, done=WARM_UP)
        except KeyboardInterrupt:
            if not run.warmed_up or run.draws < FEWEST_LEFT:
                raise
            remarks = (interruption.taken_note("the draws made so far were kept"),)
    positions, divergences = run.result()
    states = _states(model, positions, keys[1])
    return _values(model, positions, states), divergences, remarks


class _Chains:
    """Chains under way, a few steps at a time."""

    def __init__(self, model: JaxModel, chains: int, key: Any) -> None:
        def potential(z: Any) -> Any:
            return -model.log_density(z)

        starts = _starts(potential, model.dimensions, chains, key)
        kernel = NUTS(potential_fn=potential, target_accept_prob=TARGET)
        begin = jax.jit(lambda keys, places: kernel.init(keys, WARM_UP, places, (), {}))
        self._state = begin(random.split(key, chains), starts)

        def step(state: Any, _: Any) -> tuple[Any, tuple[Any, Any]]:
            following = kernel.sample(state, (), {})
            return following, (following.z, following.diverging)

        # Compiled without optimisation, XLA gives wrong numbers for some models: it must not be spared.
        self._steps = jax.jit(lambda state: lax.scan(step, state, None, length=STEPS))
        self._positions: list[Array] = []
        self._diverging: list[Array] = []
        self.warmed_up = False

    @property
    def draws(self) -> int:
        """How many draws of each chain there are."""
        return STEPS * len(self._positions)

    def advance(self, steps: int, meter: ProgressMeter, done: int = 0) -> None:
        """Go on by so many steps, or a few more."""
        while self.draws < steps:
            self._state, (positions, diverging) = self._steps(self._state)
            self._positions.append(np.asarray(positions))
            self._diverging.append(np.asarray(diverging))
            meter.update(done + self.draws, "warming up" if not self.warmed_up else f"{self.draws:,} draws a chain")

    def forget(self) -> None:
        """Throw away the draws made so far: they served to adapt the steps."""
        self._positions, self._diverging, self.warmed_up = [], [], True

    def result(self) -> tuple[Array, int]:
        """Return the draws, by chain and draw, and how many are divergent."""
        positions = np.concatenate(self._positions).swapaxes(0, 1)
        return positions, int(np.concatenate(self._diverging).sum())


def _starts(potential: Callable[[Any], Any], dimensions: int, chains: int, key: Any) -> Any:
    """Return where chains start: at draws from the prior, which is wider than the posterior.

    Half of them are any draws, the others are among those that fit the observation best.
    """
    judge = jax.jit(jax.vmap(potential))
    for attempt in range(MOST_STARTS):
        drawn = np.asarray(random.normal(random.fold_in(key, attempt), (STARTS, dimensions)))
        energy = np.asarray(judge(drawn))
        possible = np.isfinite(energy)
        if possible.sum() >= chains:
            fit = 0.5 * (drawn[possible] ** 2).sum(axis=1) - energy[possible]
            return jnp.asarray(drawn[possible][sizes.dispersed(fit, chains)])
    raise NotConverged(
        f"engine='numpyro': next to none of {MOST_STARTS * STARTS} draws from the prior has a finite density given the "
        "observation, so no chain can start; check the observation, or choose engine='rare'"
    )


def _states(model: JaxModel, positions: Array, key: Any) -> Array:
    """Draw the joint state of what is discrete, given each draw of what is continuous."""
    flat = positions.reshape(-1, positions.shape[2])
    if model.state_count == 1:
        return np.zeros(len(flat), np.int64)
    logs = jax.jit(jax.vmap(model.log_densities))
    block = max(1, BLOCK * 8 // model.state_count)
    parts = [
        random.categorical(random.fold_in(key, start), logs(flat[start : start + block]))
        for start in range(0, len(flat), block)
    ]
    return np.concatenate([np.asarray(part) for part in parts])


def _values(model: JaxModel, positions: Array, states: Array) -> dict[Node, Array]:
    flat = positions.reshape(-1, positions.shape[2])
    convert = jax.jit(jax.vmap(model.values))
    blocks = [
        [np.asarray(part) for part in convert(flat[start : start + BLOCK], states[start : start + BLOCK])]
        for start in range(0, len(flat), BLOCK)
    ]
    arrays = [np.concatenate(pieces) for pieces in zip(*blocks, strict=True)]
    return {
        root: array.astype(root.dtype, copy=False).reshape(*positions.shape[:2], *root.shape)
        for root, array in zip(model.roots, arrays, strict=True)
    }
