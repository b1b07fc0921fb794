"""The solver for tables of counts: whether a question is about sums over discrete rows, and what it answers."""

import math
import time
from collections.abc import Hashable, Sequence
from functools import partial

import numpy as np

from privug.digits import how_many
from privug.errors import ImpossibleObservation, UnsuitableEngine
from privug.estimate import UNDERFLOW, Estimate
from privug.inference.answer import ExactAnswer
from privug.inference.belief import Belief
from privug.inference.case_plan import Quantity
from privug.inference.exact.counts.lattice import HOPEFUL, MOST_COST, TooManyCounts
from privug.inference.exact.counts.model import ContinuousRows, CountModel
from privug.inference.exact.finite.elements import TooManyElements
from privug.inference.exact.finite.solver import (
    COST_OF_NUMBER,
    FAR,
    checked_error,
    far_tails,
    is_answered,
    listed_belief,
    listed_joint,
    table_sizes,
)
from privug.inference.exact.finite.states import States
from privug.inference.exact.request import CERTAIN_EVIDENCE, Offer, Refused, Request, exact_answer
from privug.inference.exact.rows.regrouping import NotRows
from privug.inference.graph.support import lost_in_tails
from privug.inference.joint import Joint, WeightedCounter, marginal
from privug.inference.question import Sizes
from privug.inference.workload import numbers_computed
from privug.model.batch import Batch
from privug.model.node import Array, ancestors
from privug.model.plan import Plan

NEGLIGIBLE_SIZE = 1e-11  # a probability of sizes of the tables that may be left out
MOST_HALVINGS, SAME = 5, 1e-11  # of panels over what rows share; relative: by how much two of them may differ
TOO_MANY = "too many tables of counts fit what was seen"


def prepare_counts(request: Request) -> Offer:
    """Count the rows of a question about sums over discrete rows."""
    if request.question.exclude_errors:  # what fails in one row cannot be seen in a sum
        raise Refused("inputs on which it fails are to be excluded", vague=True)
    seen = _seen(request)
    if request.question.once(seen, lambda: False, bool):
        raise Refused(str(ContinuousRows()), vague=True)
    try:
        sized = _sized(request)
        cost = sum(one.cost for one in sized)
    except Refused:
        raise
    except ContinuousRows as problem:
        request.question.once(seen, lambda: True)
        raise Refused(str(problem), vague=True) from None
    except (NotRows, UnsuitableEngine) as problem:
        raise Refused(str(problem), vague=True) from None
    except TooManyElements:
        raise Refused("it has too many numbers to be looked at one by one", vague=True) from None
    except TooManyCounts:
        raise Refused("too many combinations of values matter to the output at once", vague=True) from None
    case = request.case(request.question.typical_sizes)
    parts = [node for value in (case.secret, case.output) for node in Quantity.of(value).nodes]
    cost_of_sample = COST_OF_NUMBER * numbers_computed(ancestors(parts))
    return Offer(cost if cost < MOST_COST else HOPEFUL, cost_of_sample, lambda: _run(request, sized))


def _seen(request: Request) -> Hashable:
    """Return what is equal for observations of the same parts of the output, whatever was seen of them."""
    if request.extra is not None:
        return object()
    case = request.case(request.question.typical_sizes)
    behind = set(ancestors(case.likelihood(request.observation).nodes))
    parts = [place for place, node in enumerate(Quantity.of(case.output).nodes) if node in behind]
    return "rows that are alike have a continuous quantity", request.observation is None, *parts


def _sized(request: Request, halvings: int = 1) -> list[CountModel]:
    """Return the models for all sizes of the tables; sizes that hardly ever are may be left out."""
    groups = table_sizes(request)
    # The likeliest size comes first: if it cannot be counted, no other need be looked at.
    likeliest = max(groups, key=lambda group: float(group[1].weights.sum()))
    first = _model(request, *likeliest, halvings)
    found = []
    for sizes, start in groups:
        try:
            found.append(first if sizes == likeliest[0] else _model(request, sizes, start, halvings))
        except NotRows:
            if start.weights.sum() > NEGLIGIBLE_SIZE:
                raise
    models = [one for one in found if one is not None]
    if not any(one.sums_up for one in models):
        raise NotRows("it does not sum over rows")
    return models


def _model(request: Request, sizes: Sizes, start: States, halvings: int) -> CountModel | None:
    """Return the model for some sizes of the tables; None if what was seen is impossible there."""
    case = request.case(sizes)
    likelihood = case.likelihood(request.observation)
    if likelihood.impossible is not None:
        return None
    query = request.query(case)
    if query is not None and not is_answered(query, case):
        raise NotRows("the query draws random numbers of its own")
    outputs = [Quantity.of(case.output)] if request.observation is None else []
    if case.facts and Plan(Quantity.of(case.output).nodes).can_fail:
        raise NotRows("it may fail on inputs that contradict what is assumed")
    return CountModel(likelihood, [*outputs, *request.asked(case)], len(outputs), start, halvings)


def _run(request: Request, sized: Sequence[CountModel]) -> ExactAnswer:
    started = time.perf_counter()
    try:
        found = _converged(request, sized) if any(one.continuous for one in sized) else FittingStates(sized)
        for _ in range(2):  # the first time may show how improbable the observation is
            if request.observation is not None and found.lost > FAR * found.probability:
                with far_tails(found.probability):
                    found = FittingStates(_sized(request))
        facts = _probability_of_facts(request) if request.question.facts else 1.0
    except TooManyCounts:
        raise Refused(TOO_MANY, precise=True) from None
    except NotRows as problem:
        raise Refused(str(problem)) from None
    return _answer(request, found, facts, started)


def _converged(request: Request, sized: Sequence[CountModel]) -> "FittingStates":
    """Integrate over what rows share with smaller and smaller panels, until that changes nothing."""
    found = FittingStates(sized)
    for halvings in range(2, MOST_HALVINGS):
        before, found = found, FittingStates(_sized(request, halvings))
        if not found.states or not before.states:
            continue
        position = len(found.batches[0]) - 1
        (_, old), (_, new) = before.tallied([position]), found.tallied([position])
        shares = [weights / weights.sum() for weights in (old, new)]
        off = abs(before.probability - found.probability) / found.probability
        if off <= SAME and len(old) == len(new) and np.abs(shares[0] - shares[1]).max() <= SAME:
            return found
    raise NotRows("what its rows share cannot be integrated out")


class FittingStates:
    """The states of all sizes that agree with what was seen: quantities, and weights relative to `exp(shift)`."""

    def __init__(self, sized: Sequence[CountModel]) -> None:
        batches, logs, orders, truncated, lost = [], [], [], 0, 0.0
        for one in sized:
            counted = one.lattice.states()
            truncated, lost = max(truncated, one.truncated), max(lost, one.lattice.lost)
            if len(counted):
                arrays, weights = one.read(counted)
                batches.append([q.batch(a, len(weights)) for q, a in zip(one.quantities, arrays, strict=True)])
                logs.append(weights)
                orders.append(one.density)
        lowest = min(orders, default=0)  # beside a value with a probability, one with a density weighs nothing
        self.batches = [some for some, order in zip(batches, orders, strict=True) if order == lowest]
        logs = [some for some, order in zip(logs, orders, strict=True) if order == lowest]
        self.shift = max((float(some.max()) for some in logs), default=0.0)
        self.weights = [np.exp(some - self.shift) for some in logs]
        self.lost, self.has_density = lost + lost_in_tails(truncated), lowest > 0

    @property
    def log_probability(self) -> float:
        """The logarithm of the probability, or density, of what was seen."""
        if not self.weights:
            return -math.inf
        return math.log(math.fsum(float(some.sum()) for some in self.weights)) + self.shift

    @property
    def probability(self) -> float:
        """The probability, or density, of what was seen; zero if it is less than floats can hold."""
        return math.exp(self.log_probability)

    @property
    def error(self) -> float:
        """How much of that was left out, relative to it."""
        return math.exp(min(0.0, math.log(self.lost) - self.log_probability)) if self.lost else 0.0

    @property
    def states(self) -> int:
        """How many states there are."""
        return sum(map(len, self.weights))

    def tallied(self, positions: Sequence[int]) -> tuple[tuple[Batch, ...], Array]:
        """Return the distinct values of some of the quantities, with their weights."""
        tally = WeightedCounter()
        for batches, weights in zip(self.batches, self.weights, strict=True):
            tally.add([batches[position] for position in positions], weights)
        return tally.result()


def _answer(request: Request, found: FittingStates, facts: float, started: float) -> ExactAnswer:
    if not found.states:
        less = f", or less likely than {found.lost:.0e}" if found.lost else ""
        raise ImpossibleObservation(
            f"this observation is impossible{less}: no table of counts agrees with it ({request.observation})"
        )
    error = checked_error(found.error, found.probability, found.lost)
    joint: Joint | None = None
    if request.observation is None and request.extra is None:
        pairs = found.tallied([1, 0])
        beliefs: list[Belief | None] = [listed_belief(*marginal(*pairs, side), error) for side in (0, 1)]
        joint = listed_joint(*pairs, error)
    else:
        first = 0 if request.observation is not None else 1
        output = None if first == 0 else listed_belief(*found.tallied([0]), error)
        beliefs = [listed_belief(*found.tallied([first + k]), error) for k in range(1 + (request.extra is not None))]
        beliefs.insert(1, output)
    evidence = _evidence(request, found, facts)
    source = f"{how_many(found.states, 'state')} of a table of counts"
    joined = partial(_joint, request) if joint is None else lambda: joint
    return exact_answer("counts", source, beliefs, joined, evidence, (found.states, found.states, 0), started)


def _evidence(request: Request, found: FittingStates, facts: float) -> Estimate:
    """Return the probability of what was seen, given the facts; a density where states are weighted by one."""
    if request.observation is None:
        return CERTAIN_EVIDENCE
    value, lost = found.probability / facts, found.lost / facts
    if value < UNDERFLOW:
        return Estimate(
            value, 0.0, UNDERFLOW, "density" if found.has_density else "", "exact, but for its digits", True
        )
    if found.has_density:
        return Estimate.exactly(value, "density", "exact")
    return Estimate(min(1.0, value), min(1.0, value), min(1.0, value + lost), method="exact", exact=True)


def _probability_of_facts(request: Request) -> float:
    total = 0.0
    for sizes, start in table_sizes(request):
        model = CountModel(request.case(sizes).likelihood(None), [], 0, start)
        total += float(np.exp(model.lattice.states().weights).sum())
    return total


def _joint(request: Request) -> Joint:
    """Return secret and output together, before any observation."""
    return prepare_counts(Request(request.question)).run().pairs()
