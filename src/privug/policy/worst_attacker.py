"""The worst attacker: the prior in a family of priors to whom a program tells most.

The belief in a set A of secrets after an output is sum_{s in A} p(s) c(s) / sum_s p(s) c(s), where c(s) is the
probability of the output given the secret. Its supremum over priors p within a total-variation distance d of a centre
is found twice. As a linear programme after the substitution of Charnes and Cooper, y = t p with t = 1 / sum p c, whose
dual solution bounds it from above. And by Dinkelbach's iteration: x is an upper bound if and only if no prior in the
ball makes sum_s p(s) (1[s in A] - x) c(s) positive, and the prior that makes it largest is known: mass d is moved from
the secrets where the factor is least to the one where it is greatest.
"""

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize

from privug import leakage
from privug.arguments import Probability, check_kind, is_number, kinds_checked, shown
from privug.attack import Attack
from privug.errors import ArgumentError
from privug.escaping import inert
from privug.inference.belief import Belief
from privug.leakage.channel import Channel, capacity_achieving
from privug.leakage.finite import pairs_of
from privug.model.node import Array
from privug.policy import clauses
from privug.policy.checking import check
from privug.policy.clause_questions import SAMPLES, RunOptions, about, secret_of
from privug.policy.people import people_apart
from privug.policy.policies import Clause, Policy
from privug.policy.verdict import Limit, Status


class Family:
    """A set of attackers to be searched for the worst one.

    >>> import privug as pv
    >>> isinstance(pv.policy.any_prior(), pv.policy.Family)
    True
    """


@dataclass(frozen=True)
class AnyPrior(Family):
    """All priors on the values of the secret that the attack holds possible."""

    def __str__(self) -> str:
        return "all priors on the secret"


@dataclass(frozen=True)
class Within(Family):
    """All priors on those values within a total-variation distance of the attack's own."""

    total_variation: float

    def __str__(self) -> str:
        return f"priors within a total variation of {self.total_variation:g} of the attacker's"


@dataclass(frozen=True, eq=False)
class Box(Family):
    """Priors that a function makes of parameters, each of which lies in a range."""

    prior: Callable[..., Mapping[str, Any]]
    ranges: Mapping[str, tuple[float, float]]

    def __str__(self) -> str:
        ends = [f"{name} from {low:g} to {high:g}" for name, (low, high) in self.ranges.items()]
        return f"priors with {', '.join(ends)}"


def any_prior() -> Family:
    """All priors on the values of the secret that the attack holds possible.

    What is not secret is distributed, given the secret, as in the attack: the channel is the same for all.

    >>> import privug as pv
    >>> print(pv.policy.any_prior())
    all priors on the secret
    """
    return AnyPrior()


@kinds_checked
def within(total_variation: Probability) -> Family:
    """All priors on the secret within a total-variation distance of the attack's own.

    That is half the sum of the absolute differences of probabilities: the share of belief that is moved.

    >>> import privug as pv
    >>> print(pv.policy.within(total_variation=0.1))
    priors within a total variation of 0.1 of the attacker's
    """
    return Within(float(total_variation))


@kinds_checked
def box(prior: Callable[..., Any], **ranges: tuple[float, float]) -> Family:
    """Make a family of the priors that a function returns for parameters, each of which lies in a range.

    >>> import privug as pv
    >>> print(box(lambda p: {"x": pv.Bernoulli(p)}, p=(0.1, 0.5)))
    priors with p from 0.1 to 0.5
    """
    if not ranges:
        raise ArgumentError("box: name the parameters with their ranges, such as p=(0.1, 0.5)")
    for name, ends in ranges.items():
        if not (isinstance(ends, list | tuple) and len(ends) == 2 and all(map(is_number, ends)) and ends[0] < ends[1]):
            raise ArgumentError(
                f"box: {name} must be a range such as (0.1, 0.5), the lower end first, not {shown(ends)}"
            )
    return Box(prior, {name: (float(low), float(high)) for name, (low, high) in ranges.items()})


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


WORDS = {
    Status.HOLDS: "it holds for all of them",
    Status.VIOLATED: "it is violated for this one",
    Status.UNDECIDED: "it is not violated for any that was tried, which proves nothing",
}
GRID = 64  # points of a box that are tried first, all dimensions together
FINEST = 1e-3  # of a range, down to which steps are halved
MOST_TRIED = 400
MOST_CELLS = 20_000_000
AGREEMENT = 1e-7  # to which two ways to the same number must agree


@dataclass(frozen=True)
class WorstAttacker:
    """The attacker of a family to whom a program tells most.

    `value` is what the policy limits, or the measure, for this attacker; `prior` is what they believe about the secret,
    or `parameters` are those of their prior; `output` is the output that tells so much, if one does. `bound` is what no
    attacker of the family exceeds; None where there is no such proof but only the `record` of a search. `attained` is
    False if attackers only come as near as one likes to the value, as `note` says.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda a, b: a + b, {"a": pv.Bernoulli(0.5), "b": pv.Bernoulli(0.5)}, secret="a")
    >>> worst = pv.policy.worst_attacker(attack, "mutual_information", pv.policy.any_prior())
    >>> round(worst.value, 4)
    0.5
    """

    about: str
    family: str
    value: float
    bound: float | None = None
    prior: Belief | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)
    output: Any = None
    attained: bool = True
    note: str = ""
    record: tuple[tuple[Mapping[str, float], float], ...] = ()
    limit: Limit | None = None

    @property
    def status(self) -> Status | None:
        """Whether the policy holds for all attackers of the family; None if there is no limit, but a measure."""
        if self.limit is None:
            return None
        if self.limit.excess(self.value) > 1e-9:
            return Status.VIOLATED
        kept = self.bound is not None and self.limit.excess(self.bound) <= 1e-9
        return Status.HOLDS if kept else Status.UNDECIDED

    def __str__(self) -> str:
        word = "is" if self.attained else "comes as near as one likes to"
        lines = [f"Worst attacker among {self.family}: {self.about} {word} {self.value:.6g}"]
        if self.output is not None:
            lines[0] += f" after output {shown(self.output)}"
        if self.parameters:
            lines.append("  at      " + ", ".join(f"{name} = {value:.6g}" for name, value in self.parameters.items()))
        if self.prior is not None:
            lines.append(f"  prior   {_listed(self.prior)}")
        sure = f"no attacker of the family exceeds {self.bound:.6g}" if self.bound is not None else ""
        lines.append(f"  proof   {sure or f'none: {len(self.record)} attackers were tried'}")
        if self.status is not None:
            lines.append(f"  limit   {self.limit}: {WORDS[self.status]}")
        if self.note:
            lines.append(f"  note    {self.note}")
        return inert("\n".join(lines), keep="\n")


def _listed(prior: Belief) -> str:
    shares = sorted(prior.distribution().items(), key=lambda one: -one[1].value)
    told = [f"{shown(value)}: {share.value:.4g}" for value, share in shares if share.value > 0]
    return ", ".join(told[:8]) + (f" and {len(told) - 8} more" if len(told) > 8 else "")


@kinds_checked
def worst_attacker(
    attack: Attack,
    target: Policy | str,
    family: Family,
    *,
    engine: str = "auto",
    samples: int = SAMPLES,
    seed: int = 0,
) -> WorstAttacker:
    """Find the attacker of a family to whom a program tells most: by a policy's number, or by a measure's name.

    Among all priors (`any_prior()`) that is a capacity: of the mutual information (Blahut and Arimoto, with bounds), of
    the min-entropy and multiplicative leakage (Bayes capacity); and of the change of a belief, by difference or factor,
    in closed form. The belief itself has the supremum one wherever the statement is possible, because an attacker may
    be sure of it beforehand. Near the attack's own prior (`within(total_variation=0.1)`) it is the largest belief, by
    linear-fractional programming with a dual bound. Secret and output must then be finite and known exactly; priors are
    on the secret, and what else is not known stays, given the secret, as it is. Parameters (`box(...)`) are searched,
    on a grid and then in steps that are halved: what is found is a lower bound.

    >>> import privug as pv
    >>> noisy = pv.mechanisms.randomized_response(lambda x: x, epsilon=1)
    >>> attack = pv.Attack(noisy, {"x": pv.Bernoulli(0.5)}, "x")
    >>> print(round(worst_attacker(attack, "multiplicative_leakage", pv.policy.any_prior()).value, 6))
    1.462117
    """
    check_kind("worst_attacker", "attack", attack, (Attack,))
    if not isinstance(target, Clause | str):
        told = "one part of a policy at a time" if isinstance(target, Policy) else f"not {shown(target)}"
        raise ArgumentError(f"worst_attacker: a policy or the name of a measure is needed, {told}")
    options = RunOptions(engine, samples, seed)
    match family:
        case Box():
            return _searched(attack, target, family, options)
        case AnyPrior() if isinstance(target, str):
            return _capacity(attack, target, family, options)
        case AnyPrior() | Within() if isinstance(target, Clause):
            return max((_of_person(attack, target, family, one, options) for one in people_apart(attack, target)),
                       key=lambda found: target.limit.excess(found.value))  # fmt: skip
        case Within():
            raise ArgumentError("worst_attacker: near a prior beliefs are bounded, not measures; give a policy")
    raise ArgumentError("worst_attacker: the family must be any_prior(), within(...) or box(...) of pv.policy")


def _channel(attack: Attack, secret: Any, options: RunOptions) -> tuple[Channel, Array]:
    """Return the channel from a secret to the output, and the attack's own prior."""
    joint = options.run(about(attack, secret), None).joint
    channel = Channel.of(joint)
    if not channel.discrete:
        raise ArgumentError("worst_attacker: the outputs must be finitely many; round them")
    return channel, pairs_of(joint).prior


def _capacity(attack: Attack, name: str, family: Family, options: RunOptions) -> WorstAttacker:
    """Return the capacity for a measure, with the prior that has it."""
    channel, _ = _channel(attack, attack.question.secret, options)
    words = f"the {name.replace('_', ' ')}"
    if name == "mutual_information":
        rows, first = np.unique(channel.matrix, axis=0, return_index=True)
        found = capacity_achieving(rows[:, rows.any(axis=0)])
        shares = np.zeros(len(channel.secrets))
        shares[first] = found.prior
        low, high = found.low / math.log(2), found.high / math.log(2)
        return WorstAttacker(words, str(family), low, high, _belief(channel, shares))
    measures = {"multiplicative_leakage": leakage.bayes_capacity, "min_entropy_leakage": leakage.min_capacity}
    if name not in measures:
        known = ", ".join(["mutual_information", *measures])
        raise ArgumentError(f"worst_attacker: the capacity is known of {known}, not of {shown(name)}")
    value = measures[name](channel).value
    uniform = np.full(len(channel.secrets), 1 / len(channel.secrets))
    return WorstAttacker(words, str(family), value, value, _belief(channel, uniform))


def _belief(channel: Channel, shares: Array) -> Belief:
    shares = np.clip(shares, 0.0, None)
    held = np.flatnonzero(shares).tolist()
    return Belief.of([channel.secrets[k] for k in held], probabilities=list(shares[held] / shares.sum()))


def _of_person(
    attack: Attack, clause: Clause, family: Family, person: int | None, options: RunOptions
) -> WorstAttacker:
    channel, centre = _channel(attack, secret_of(attack, clause, person), options)
    if isinstance(clause, clauses.ChangeClause):
        if isinstance(family, Within):
            raise ArgumentError(
                "worst_attacker: changes of beliefs are bounded over any_prior(), not within a distance"
            )
        return _largest_change(clause, family, channel)
    if isinstance(clause, clauses.BeliefClause):
        wanted = clauses.truths([clause.statement(secret) for secret in channel.secrets])[np.newaxis].astype(float)
    elif isinstance(clause, clauses.MaxBeliefClause):
        wanted = np.eye(len(channel.secrets))
        if wanted.size * len(channel.outputs) > MOST_CELLS:
            raise ArgumentError(f"worst_attacker: {len(wanted):,} secrets are too many for their best guess")
    else:
        raise ArgumentError("worst_attacker: beliefs and their changes are bounded; search other limits by box(...)")
    distance = family.total_variation if isinstance(family, Within) else 1.0
    ends = [(False, clause.limit.at_most), (True, clause.limit.at_least)]
    found = [
        _largest_belief(clause, family, channel, 1 - wanted if below else wanted, (centre, distance), below)
        for below, end in ends
        if end is not None
    ]
    return max(found, key=lambda one: clause.limit.excess(one.value))


def _largest_belief(
    clause: Clause, family: Family, channel: Channel, sets: Array, ball: tuple[Array, float], below: bool
) -> WorstAttacker:
    """Return the largest belief in one of some sets of secrets after any output; `below` asks for the complement."""
    tried = ((by_iteration(wanted, column, *ball), wanted, place)
             for wanted in sets for place, column in enumerate(channel.matrix.T))  # fmt: skip
    worst, wanted, place = max(tried, key=lambda one: one[0].value)
    programme = by_linear_programming(wanted, channel.matrix[:, place], *ball)
    note = ""
    if programme is not None:
        same = abs(programme.bound - worst.value) < AGREEMENT
        worst = worst._replace(bound=max(worst.bound, min(1.0, programme.bound)))
        note = "the dual of a linear programme has the same value" if same else ""
    if isinstance(family, AnyPrior):
        note = "an attacker may be sure beforehand; limit the change of a belief for a number that says more"
    value, bound = (1 - worst.value, 1 - worst.bound) if below else (worst.value, worst.bound)
    prior = _belief(channel, worst.prior)
    return WorstAttacker(clause.about, str(family), value, bound, prior, output=channel.outputs[place],
                         note=note, limit=clause.limit)  # fmt: skip


def _largest_change(clause: clauses.ChangeClause, family: Family, channel: Channel) -> WorstAttacker:
    """Return the supremum of the change of a belief over all priors.

    After an output the odds of the statement change by the factor r = P(o | A) / P(o | not A), which lies between the
    ratios of single secrets. A belief p becomes r p / (r p + 1 - p): its factor of change is largest, r or 1 / r, as p
    goes to zero; its difference is largest at p = 1 / (1 + sqrt r), where it is (sqrt r - 1) / (sqrt r + 1).
    """
    true = clauses.truths([clause.statement(secret) for secret in channel.secrets])
    none = 0.0 if clause.by == "difference" else 1.0
    best = (1.0, 0, 0, 0)  # the factor of the odds, the output, the secrets
    if true.any() and not true.all():
        for place, column in enumerate(channel.matrix.T):
            for one, other in ((true, ~true), (~true, true)):
                top, bottom = (int(np.flatnonzero(side)[pick(column[side])])
                               for side, pick in ((one, np.argmax), (other, np.argmin)))  # fmt: skip
                if column[top] > 0:
                    ratio = math.inf if column[bottom] == 0 else float(column[top] / column[bottom])
                    best = max(best, (ratio, place, top, bottom))
    ratio, place, top, bottom = best
    if ratio == 1.0:
        return WorstAttacker(clause.about, str(family), none, none, limit=clause.limit, note="no prior learns anything")
    root = math.sqrt(ratio)
    change = 1.0 if math.isinf(ratio) else (root - 1) / (root + 1)
    value = change if clause.by == "difference" else ratio
    attained = clause.by == "difference" and math.isfinite(ratio)
    likely = 1 / (1 + root) if attained else 1e-6
    shares = np.zeros(len(channel.secrets))
    shares[[top, bottom]] = (likely, 1 - likely) if clause.by == "difference" or true[top] else (1 - likely, likely)
    note = "" if attained else "attackers come nearer the less likely they hold what the output speaks for"
    return WorstAttacker(clause.about, str(family), value, value, _belief(channel, shares), {}, channel.outputs[place],
                         attained, note, limit=clause.limit)  # fmt: skip


def _searched(attack: Attack, target: Clause | str, family: Box, options: RunOptions) -> WorstAttacker:
    """Search a box: on a grid, then from its worst point in steps along the axes, which are halved."""
    tried: dict[tuple[float, ...], tuple[float, float]] = {}
    names = list(family.ranges)
    measured = _number(attack, target, family, options)

    def badness(point: tuple[float, ...]) -> float:
        if point not in tried:
            tried[point] = measured(dict(zip(names, point, strict=True)))
        return tried[point][0]

    count = max(3, math.floor(GRID ** (1 / len(names))))
    axes = [np.linspace(low, high, count).tolist() for low, high in family.ranges.values()]
    best = max(itertools.product(*axes), key=badness)
    step = 0.5 / (count - 1)
    while step >= FINEST and len(tried) < MOST_TRIED:
        around = max(_neighbours(best, family, step), key=badness)
        best, step = (around, step) if badness(around) > badness(best) else (best, step / 2)
    record = tuple((dict(zip(names, point, strict=True)), value) for point, (_, value) in tried.items())
    words, limit = (
        (f"the {target.replace('_', ' ')}", None) if isinstance(target, str) else (target.about, target.limit)
    )
    return WorstAttacker(words, str(family), tried[best][1], parameters=dict(zip(names, best, strict=True)),
                         record=record, limit=limit)  # fmt: skip


def _neighbours(point: tuple[float, ...], family: Box, step: float) -> list[tuple[float, ...]]:
    found = [point]
    for place, (low, high) in enumerate(family.ranges.values()):
        for sign in (-1, 1):
            moved = min(max(point[place] + sign * step * (high - low), low), high)
            found.append((*point[:place], moved, *point[place + 1 :]))
    return found


def _number(
    attack: Attack, target: Clause | str, family: Box, options: RunOptions
) -> Callable[..., tuple[float, float]]:
    """Return the function from parameters to how bad their attacker is, and the number to be told."""
    if isinstance(target, str):
        clauses.measure(target, at_most=0.0)  # refuses what is no measure of a joint
        if target in clauses.OF_ONE_OUTPUT:
            raise ArgumentError(f"worst_attacker: {target} is of one output; limit it by pv.policy.measure")

    def measured(parameters: Mapping[str, float]) -> tuple[float, float]:
        other = attack.replace(prior=family.prior(**parameters), observe=None, questions=None)
        if isinstance(target, str):
            value = float(getattr(leakage, target)(options.run(other, None).joint).value)
            return (value if value == value else -math.inf), value
        verdict = check(other, target, engine=options.engine, samples=options.samples, seed=options.seed)
        if verdict.worst is None or math.isnan(verdict.worst.value):
            return -math.inf, math.nan
        return target.limit.excess(verdict.worst.value), verdict.worst.value

    return measured
