"""Noise added to numbers: Laplace, Gaussian, and their versions for integers."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from privug.arguments import NumberRange, Positive, kinds_checked, shown
from privug.errors import ArgumentError, ProgramError
from privug.mechanisms.guarantee import Guarantee, gaussian_distance, rho_of
from privug.mechanisms.mechanism import Mechanism, remakeable
from privug.model.node import Kind
from privug.model.structure import flatten
from privug.model.variable import RandomVariable, stack_values
from privug.prior.continuous import Laplace, Normal
from privug.prior.discrete import DiscreteGaussian, DiscreteLaplace
from privug.prior.family import replicate
from privug.program.logic import sample

LARGEST_DISTANCE = 1e150  # its square is still a number
MOST_SINGLE_DRAWS = 256  # up to so many elements, each gets a noise of its own that an observation can be solved for


Delta = Annotated[float, NumberRange(0, 0.5, above=True)]


@dataclass(frozen=True)
class Added:
    """The release that adds independent noise to every number of an output."""

    noise: RandomVariable
    name: str
    whole: bool = False

    def __call__(self, output: Any) -> Any:
        structure, leaves = flatten(output)
        return structure.build([self._noisy(leaf) for leaf in leaves])

    def _noisy(self, value: Any) -> Any:
        shape = self._checked(value)
        if not shape:
            return value + sample(self.noise)
        if len(shape) > 1 or shape[0] > MOST_SINGLE_DRAWS:
            return value + sample(replicate(self.noise, shape))
        draws = [sample(self.noise) for _ in range(shape[0])]
        if isinstance(value, RandomVariable):
            return value + RandomVariable(stack_values(draws))
        return np.array([item + draw for item, draw in zip(value.tolist(), draws, strict=True)])

    def _checked(self, value: Any) -> tuple[int, ...]:
        """Return the shape of a value that noise can be added to."""
        if isinstance(value, RandomVariable):
            numeric = value.node.levels is None and value.node.dtype.kind in "bif"
            whole = value.node.dtype.kind in "bi" or value.node.kind is not Kind.CONTINUOUS
        else:
            array = np.asarray(value)
            numeric = array.dtype.kind in "biuf"
            whole = numeric and bool(np.all(array == np.round(array)))
        if not numeric:
            raise ProgramError(f"{self.name} is added to numbers, but the program returned {shown(value)}")
        if self.whole and not whole:
            raise ProgramError(
                f"{self.name} is added to integers, but the program returned {shown(value)}; round it first: "
                "pv.mechanisms.rounded(program, to=1)"
            )
        return tuple(value.shape) if isinstance(value, RandomVariable) else np.shape(value)


@remakeable
@kinds_checked
def laplace(program: Callable[..., Any], *, sensitivity: Positive, epsilon: Positive) -> Mechanism:
    """Add Laplace noise of scale sensitivity / epsilon to every number that the program returns.

    Dwork, McSherry, Nissim and Smith, TCC 2006.

    Args:
        program: The program, which returns a number or a container of numbers.
        sensitivity: The largest sum of changes of the numbers if one person's data changes. Only `pv.mechanisms.audit`
            checks it; too small a value makes the release look safer than it is.
        epsilon: The parameter of the guarantee; smaller values protect more.

    Returns:
        The program with noise, and its guarantee of epsilon-differential privacy.

    Raises:
        ArgumentError: `sensitivity` or `epsilon` is not a finite number above 0.

    >>> import privug as pv
    >>> count = laplace(lambda answers: sum(answers), sensitivity=1, epsilon=0.5)
    >>> prior = {"answers": pv.Array(pv.Bernoulli(0.5), 5)}
    >>> attack = pv.Attack(count, prior, secret=lambda answers: answers[0], observe=pv.equals(3.4))
    >>> round(attack.run().posterior.probability(lambda answer: answer == 1).value, 6)
    0.558694
    """
    noise = Laplace(0.0, sensitivity / epsilon)
    return Mechanism(program, Added(noise, "Laplace noise"), Guarantee(float(epsilon)), "Laplace noise")


@remakeable
@kinds_checked
def discrete_laplace(program: Callable[..., Any], *, sensitivity: Positive, epsilon: Positive) -> Mechanism:
    """Add two-sided geometric noise to integers: P(k) proportional to exp(-epsilon |k| / sensitivity).

    The Laplace mechanism for counts, without the traps of rounded fractions.
    Ghosh, Roughgarden and Sundararajan, STOC 2009.

    >>> print(discrete_laplace(len, sensitivity=1, epsilon=0.5).guarantee)
    0.5-differentially private
    """
    noise = DiscreteLaplace(sensitivity / epsilon)
    return Mechanism(program, Added(noise, "geometric noise", True), Guarantee(float(epsilon)), "geometric noise")


@remakeable
@kinds_checked
def gaussian(
    program: Callable[..., Any],
    *,
    sensitivity: Positive,
    epsilon: Positive | None = None,
    delta: Delta | None = None,
    rho: Positive | None = None,
    sd: Positive | None = None,
) -> Mechanism:
    """Add normal noise to every number that the program returns: by epsilon and delta, by rho, or by its deviation.

    `sensitivity` is by how much the numbers can change, as the root of the sum of squares, when one person's data
    changes. The deviation for epsilon and delta is the smallest that keeps them (Balle and Wang, ICML 2018).

    >>> mechanism = gaussian(lambda x: x, sensitivity=1, epsilon=1, delta=1e-5)
    >>> print(mechanism.guarantee)
    (1, 1e-05)-differentially private, 0.0359257-zCDP
    """
    deviation = _deviation("gaussian", sensitivity, epsilon, delta, rho, sd, exact=True)
    promise = _promise(sensitivity / deviation, epsilon, delta, rho)
    return Mechanism(program, Added(Normal(0.0, sd=deviation), "normal noise"), promise, "normal noise")


@remakeable
@kinds_checked
def discrete_gaussian(
    program: Callable[..., Any],
    *,
    sensitivity: Positive,
    epsilon: Positive | None = None,
    delta: Delta | None = None,
    rho: Positive | None = None,
    sd: Positive | None = None,
) -> Mechanism:
    """Add discrete normal noise to integers: P(k) proportional to exp(-k^2 / (2 sd^2)).

    It promises the rho that normal noise of the same deviation does; epsilon and delta are kept by way of rho.
    `sensitivity` is measured as for `gaussian`.
    Canonne, Kamath and Steinke, NeurIPS 2020.

    >>> print(discrete_gaussian(len, sensitivity=1, rho=0.125).guarantee)
    0.125-zCDP
    """
    deviation = _deviation("discrete_gaussian", sensitivity, epsilon, delta, rho, sd, exact=False)
    promise = _promise(sensitivity / deviation, epsilon, delta, rho)
    release = Added(DiscreteGaussian(deviation), "discrete normal noise", True)
    return Mechanism(program, release, promise, "discrete normal noise")


def _deviation(
    where: str,
    sensitivity: float,
    epsilon: float | None,
    delta: float | None,
    rho: float | None,
    sd: float | None,
    *,
    exact: bool,
) -> float:
    ways = [epsilon is not None or delta is not None, rho is not None, sd is not None]
    if sum(ways) != 1 or (epsilon is None) != (delta is None):
        raise ArgumentError(f"{where}: give either epsilon= and delta=, or rho=, or sd=, by name")
    if sd is not None:
        return float(sd)
    if rho is not None:
        return _usable(where, sensitivity, math.sqrt(2 * rho))
    assert epsilon is not None
    assert delta is not None
    distance = gaussian_distance(epsilon, delta) if exact else math.sqrt(2 * rho_of(epsilon, delta))
    return _usable(where, sensitivity, distance)


def _usable(where: str, sensitivity: float, distance: float) -> float:
    """Return the deviation that moves neighbours apart by so many deviations, if there is such a number."""
    deviation = sensitivity / distance if 0 < distance < LARGEST_DISTANCE else 0.0
    if not 0 < deviation < math.inf:
        raise ArgumentError(f"{where}: no noise is that small or large; write an epsilon or rho closer to 1, or sd=")
    return deviation


def _promise(distance: float, epsilon: float | None, delta: float | None, rho: float | None) -> Guarantee:
    concentrated = distance**2 / 2 if rho is None else float(rho)
    if epsilon is None or delta is None:
        return Guarantee(rho=concentrated)
    return Guarantee(float(epsilon), float(delta), concentrated)
