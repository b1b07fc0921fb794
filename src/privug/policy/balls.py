"""The worst belief over all priors near a given one: linear-fractional programming.

The belief in a set A of secrets after an output is sum_{s in A} p(s) c(s) / sum_s p(s) c(s), where c(s) is the
probability of the output given the secret. Its supremum over priors p within a total-variation distance d of a centre
is found twice. As a linear programme after the substitution of Charnes and Cooper, y = t p with t = 1 / sum p c, whose
dual solution bounds it from above. And by Dinkelbach's iteration: x is an upper bound if and only if no prior in the
ball makes sum_s p(s) (1[s in A] - x) c(s) positive, and the prior that makes it largest is known: mass d is moved from
the secrets where the factor is least to the one where it is greatest.
"""

from typing import NamedTuple

import numpy as np
import scipy.optimize

from privug.model.node import Array

MOST_STEPS = 100
ROUNDING = 1e-13


class Worst(NamedTuple):
    """The largest belief over a ball, the prior that has it, and a bound that no prior in the ball exceeds."""

    value: float
    bound: float
    prior: Array


def largest_linear(weights: Array, centre: Array, distance: float) -> Array:
    """Return the prior within a total-variation distance of a centre that makes a weighted sum largest."""
    prior = centre.copy()
    best = int(np.argmax(weights))
    left = distance
    for place in np.argsort(weights, kind="stable"):
        if left <= 0 or weights[place] >= weights[best]:
            break
        moved = min(left, prior[place])
        prior[place] -= moved
        prior[best] += moved
        left -= moved
    return prior


def belief_in(wanted: Array, channel: Array, prior: Array) -> float:
    """Return the belief in a set of secrets after an output: zero if that is impossible."""
    total = float(prior @ channel)
    return float(prior @ (channel * wanted)) / total if total > 0 else 0.0


def by_iteration(wanted: Array, channel: Array, centre: Array, distance: float) -> Worst:
    """Find the largest belief by Dinkelbach's iteration, and the bound that its last step proves."""
    prior, value = centre, belief_in(wanted, channel, centre)
    for _ in range(MOST_STEPS):
        candidate = largest_linear((wanted - value) * channel, centre, distance)
        gain = float(candidate @ ((wanted - value) * channel))
        if gain <= ROUNDING * float(candidate @ channel):
            break
        prior, value = candidate, belief_in(wanted, channel, candidate)
    return Worst(value, min(1.0, value + ROUNDING), prior)


def by_linear_programming(wanted: Array, channel: Array, centre: Array, distance: float) -> Worst | None:
    """Find the largest belief as a linear programme, and its bound from the dual; None if the solver gives up.

    The unknowns are y = t p, the mass z that each secret gains, scaled alike, and t.
    """
    count = len(centre)
    gained = np.hstack([np.eye(count), -np.eye(count), -centre[:, np.newaxis]])
    spent = np.hstack([np.zeros(count), np.ones(count), [-distance]])
    seen = np.hstack([channel, np.zeros(count), [0.0]])
    summed = np.hstack([np.ones(count), np.zeros(count), [-1.0]])
    solved = scipy.optimize.linprog(
        -np.hstack([channel * wanted, np.zeros(count + 1)]),
        A_ub=np.vstack([gained, spent]),
        b_ub=np.zeros(count + 1),
        A_eq=np.vstack([seen, summed]),
        b_eq=[1.0, 0.0],
        method="highs",
    )
    if solved.status != 0 or solved.x is None or not solved.x[-1] > 0:
        return None
    prior = np.clip(solved.x[:count], 0.0, None)
    prior /= prior.sum()
    # Of the right-hand sides only that of the first equation is not zero: its multiplier is the dual objective.
    return Worst(belief_in(wanted, channel, prior), -float(solved.eqlin.marginals[0]), prior)
