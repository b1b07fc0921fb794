"""Finite enumeration: every combination of values that the random inputs can take, weighted by its probability.

The states go through the program as a batch, whatever tier it is lifted to, and equal values of secret, output and
query are merged as they come out. Distributions without a largest value are cut where less than 1e-15 is lost.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from privug.digits import how_many
from privug.errors import ImpossibleObservation, ProgramError, UnsuitableEngine
from privug.estimate import ROUNDING, UNDERFLOW, Estimate
from privug.inference.answer import Exact
from privug.inference.belief import Belief
from privug.inference.case_plan import Kept, Quantity
from privug.inference.diagnostics import Diagnostics
from privug.inference.exact.finite.by_class import FEWEST_STATES, ByClass, by_class, is_secret_of_its_own
from privug.inference.exact.finite.combinations import Combinations
from privug.inference.exact.finite.elements import TooManyElements
from privug.inference.exact.finite.elimination import Elimination
from privug.inference.exact.finite.enumeration import COST_OF_NUMBER, Evaluation, Setting, nodes_of, settings_of
from privug.inference.exact.finite.listing import ALWAYS_LISTED, finite_joint, listed_joint
from privug.inference.exact.finite.rounds import full, value_of
from privug.inference.exact.finite.states import CERTAIN, Roots, States
from privug.inference.exact.request import Obstacle, Prepared, Request
from privug.inference.joint import Joint
from privug.inference.sampling import Run
from privug.inference.support import longer_tails
from privug.inference.tally import Tally, marginal
from privug.model.batch import Batch
from privug.model.node import Array, Kind, ancestors
from privug.progress import ProgressMeter

FAR = 1e-9  # the share of an observation's probability from which on what is left out matters
LEAST_SOUGHT = 1e-60  # the probability down to which an observation is sought that was not found
LEAST_LOST = 1e-250
MOST_ERROR = 0.01  # of a probability, beyond which an answer is none
CHEAP = 1e9  # elementary operations that may always be spent on far tails


def prepare_finite(request: Request) -> Prepared | Obstacle:
    """Find out whether the states can be enumerated, and at what cost."""
    settings = settings_of(request)
    if isinstance(settings, Obstacle):
        return settings
    cost, states = sum(setting.cost for setting in settings), sum(setting.count for setting in settings)
    return Prepared(cost, cost / states, lambda: _enumerated(request, settings))


def prepare_elimination(request: Request) -> Prepared | Obstacle:
    """Find out whether the states can be gone through round by round, and at what cost."""
    if request.question.exclude_errors:
        return Obstacle("inputs on which it fails are to be excluded", vague=True)
    return _at_cost_of_case(request, prepare_finite(replace(request, way="elimination")))


def _at_cost_of_case(request: Request, prepared: Prepared | Obstacle) -> Prepared | Obstacle:
    """Say what a sample of the whole model costs, of which only some states were looked at."""
    if isinstance(prepared, Obstacle):
        return prepared
    case = request.case(request.question.typical_sizes)
    numbers = sum(math.prod(node.shape) for node in ancestors(nodes_of(case.secret, case.output)))
    return replace(prepared, cost_of_sample=COST_OF_NUMBER * numbers)


class Sums:
    """What has been enumerated so far: the weights of what agrees with the observation, relative to `exp(shift)`.

    Each group of quantities is tallied together: secret, output and query are 0, 1 and 2.
    """

    def __init__(self, groups: Sequence[tuple[int, ...]], secret_once: bool = False) -> None:
        """Make ready; `secret_once` says that no secret comes twice."""
        self.tallies = {group: Tally(each_once=secret_once and group == (0,)) for group in groups}
        self.states = self.accepted = self.excluded = 0
        self.is_weighted = False
        self._shift = -math.inf
        self._weights: list[float] = []
        self._agreeing: list[float] = []
        self._valid: list[float] = []

    def skip(self, states: int, valid: float) -> None:
        """Count states of which none agrees, and the probability of those that the program accepts."""
        self.states += states
        self._valid.append(valid)

    def add(self, states: States, kept: Kept, valid: float) -> None:
        """Count a block of states and those of them that agree."""
        self.skip(len(states), valid)
        probabilities = states.weights[kept.positions]
        self.accepted += len(kept.positions)
        self.excluded += kept.excluded
        self._agreeing.append(float(probabilities.sum()))
        if not len(kept.positions):
            return
        weights = probabilities
        if kept.log_weights is not None:
            self.is_weighted = True
            self._raise_shift(float(kept.log_weights.max()))
            weights = probabilities * np.exp(kept.log_weights - self._shift)
        self._weights.append(float(weights.sum()))
        for group, tally in self.tallies.items():
            tally.add([kept.quantities[position] for position in group], weights)

    def _raise_shift(self, largest: float) -> None:
        if largest <= self._shift:
            return
        factor = math.exp(self._shift - largest)
        self._weights = [weight * factor for weight in self._weights]
        for tally in self.tallies.values():
            tally.scale(factor)
        self._shift = largest

    @property
    def probability(self) -> float:
        """The probability of the states that agree, not counting how well."""
        return math.fsum(self._agreeing)

    @property
    def weight(self) -> float:
        """The total weight of what agrees."""
        return math.fsum(self._weights)

    def evidence(self, lost: float) -> Estimate:
        """Return the probability of the observation, or its density where states are weighted by one."""
        share = self.weight / math.fsum(self._valid)
        if self.is_weighted:
            return Estimate.exactly(share * math.exp(self._shift), "density", "exact")
        return Estimate(min(1.0, share), min(1.0, share), min(1.0, share + lost), method="exact", exact=True)


def _enumerated(request: Request, settings: Sequence[Setting]) -> Run:
    started = time.perf_counter()
    apart = _apart(request, settings)
    if apart is not None:
        return _answered_apart(request, settings, apart, time.perf_counter() - started)
    if request.observation is None and request.extra is None:
        classes = by_class(settings)
        if classes is not None:
            return _answered_by_class(request, settings, classes, time.perf_counter() - started)
    found = _found(request, settings)
    for _ in range(2):  # the first time may show how improbable the observation is
        if request.observation is not None and found.lost > FAR * found.sums.probability and not found.reasons:
            found = _found_further_out(request, found) or found
    return _answer(request, found, time.perf_counter() - started)


def _found_further_out(request: Request, found: "Found") -> "Found | None":
    """Enumerate again, with so much of the far tails that what is lost does not matter, if that costs little."""
    probability = found.sums.probability
    with longer_tails(max(LEAST_LOST, probability * FAR**2) if probability else LEAST_SOUGHT):
        settings = settings_of(request)
        most = max(10 * sum(setting.cost for setting in found.settings), CHEAP)
        if isinstance(settings, Obstacle) or sum(setting.cost for setting in settings) > most:
            return None
        return _found(request, settings)


@dataclass(frozen=True)
class Found:
    """What enumeration found, why some sizes of tables cannot be, and how much probability was left out."""

    settings: Sequence[Setting]
    sums: Sums
    reasons: set[str]
    lost: float


def _found(request: Request, settings: Sequence[Setting]) -> Found:
    sums = Sums(_groups(request, settings), len(settings) == 1 and is_secret_of_its_own(settings[0]))
    reasons: set[str] = set()
    with ProgressMeter("enumerating", sum(setting.count for setting in settings)) as meter:
        for setting in settings:
            evaluation = Evaluation(setting, request.observation, setting.query)
            if evaluation.impossible is None:
                _add(sums, evaluation, Evaluation(setting, None) if setting.excludes else None, meter)
            else:
                reasons.add(evaluation.impossible)
                _skip(sums, setting)
    return Found(settings, sums, reasons, max(setting.roots.lost for setting in settings))


def _groups(request: Request, settings: Sequence[Setting]) -> list[tuple[int, ...]]:
    """Return which quantities to tally together: before any observation, the pairs, unless they may be too many."""
    if request.extra is not None:
        return [(0,), (1,), (2,)]
    few = request.way == "elimination" or sum(setting.count for setting in settings) <= ALWAYS_LISTED
    return [(0, 1)] if request.observation is None and few else [(0,), (1,)]


def _add(sums: Sums, evaluation: Evaluation, accepting: Evaluation | None, meter: ProgressMeter) -> None:
    for states, kept in evaluation.results():
        accepted = states.weights if accepting is None else states.weights[accepting.kept(states).positions]
        sums.add(states, kept, float(accepted.sum()))
        meter.update(sums.states, f"{sums.states:,} states")


def _skip(sums: Sums, setting: Setting) -> None:
    """Count the states of a case in which the observation cannot be made."""
    if not setting.excludes:
        sums.skip(round(setting.count), float(setting.start.weights.sum()))
        return
    accepting = Evaluation(setting, None)
    for states in accepting.blocks():
        sums.skip(len(states), float(states.weights[accepting.kept(states).positions].sum()))


def _answer(request: Request, found: Found, seconds: float) -> Run:
    sums, lost = found.sums, found.lost
    if not sums.weight > 0:
        raise _nothing(request, found)
    if ROUNDING * sums.probability < UNDERFLOW:
        lost += UNDERFLOW
    error = min(1.0, lost / sums.probability)
    if error > MOST_ERROR:
        raise UnsuitableEngine(
            f"engine='exact' cannot answer this: the observation is as improbable ({sums.probability:.0e}) as the far "
            f"tails that are left out ({lost:.0e}); engine='rare' may"
        )
    seen = request.observation is not None
    evidence = sums.evidence(lost) if seen else Estimate.exactly(1.0, method="exact")
    tallied = {group: tally.result() for group, tally in sums.tallies.items()}
    together = tallied.pop((0, 1), None)
    if together is not None:
        tallied = {(side,): marginal(*together, side) for side in (0, 1)}
    beliefs = tuple(_belief(*one, error) for one in tallied.values())
    joint = None if together is None else listed_joint(*together, error)
    diagnostics = Diagnostics(sums.states, sums.accepted, math.inf, evidence, 0, sums.excluded, seconds)
    source = _source(request, found.settings, sums.states)
    exact = Exact(request.way, source, beliefs, lambda: joint or _joint(request, beliefs))
    return Run((), None, diagnostics, exact=exact)


def _source(request: Request, settings: Sequence[Setting], states: int) -> str:
    if request.way == "elimination":
        roots = max(len(setting.roots.roots) for setting in settings if isinstance(setting.roots, Elimination))
        return f"elimination of {roots:,} random quantities one after the other, down to {how_many(states, 'state')}"
    return f"finite enumeration of {how_many(states, 'state')}"


def _nothing(request: Request, found: Found) -> ImpossibleObservation | ProgramError:
    sums, reasons = found.sums, found.reasons
    if sums.excluded and sums.excluded >= sums.states:
        return ProgramError("the program failed on every input that the prior allows")
    hint = f" ({reasons.pop()})" if len(reasons) == 1 else ""
    less = f", or less likely than {found.lost:.0e}" if found.lost and not reasons else ""
    return ImpossibleObservation(
        f"this observation is impossible{less}: none of the {sums.states:,} states of the inputs agrees with it "
        f"({request.observation}){hint}"
    )


def _belief(quantities: Sequence[Batch], weights: Array, error: float) -> Belief:
    return Belief(quantities[0], weights / weights.sum(), True, spread=Kind.DISCRETE, error=error)


def _apart(request: Request, settings: Sequence[Setting]) -> tuple[Belief, Belief] | None:
    """Return what is believed of secret and output before any observation, each by itself, if that is much cheaper."""
    setting = settings[0]
    if request.observation is not None or request.extra is not None or request.way == "elimination":
        return None
    if len(settings) > 1 or setting.count < FEWEST_STATES or setting.excludes or setting.is_opaque:
        return None
    quantities = [Quantity.of(value) for value in (setting.case.secret, setting.case.output)]
    told = [_told(quantity) if setting.start is CERTAIN else None for quantity in quantities]
    if None in told and setting.count <= ALWAYS_LISTED:
        return None
    beliefs = []
    for quantity, known in zip(quantities, told, strict=True):
        belief = _alone(quantity, setting) if known is None else known.belief(known.roots.lost)
        if belief is None:
            return None
        beliefs.append(belief)
    return beliefs[0], beliefs[1]


def _told(quantity: Quantity) -> Combinations | None:
    """Return the values of a quantity that is made of inputs as they are, and so cannot fail."""
    found = Combinations.of(quantity, Roots(quantity.nodes))
    return found if found is not None and found.are_inputs else None


def _alone(quantity: Quantity, setting: Setting) -> Belief | None:
    """Return the belief about a quantity by elimination of all others, if that is much cheaper than all states."""
    try:
        alone = Elimination(quantity.nodes, setting.start)
    except TooManyElements:
        return None
    if alone.schedule.cost > setting.cost / 10:
        return None
    known, rows = alone.states.arrays, len(alone.states)
    arrays = [full(value_of(node, known), rows) for node in quantity.nodes]
    tally = Tally()
    tally.add([quantity.batch(arrays, rows)], alone.states.weights)
    return _belief(*tally.result(), alone.lost)


def _answered_apart(
    request: Request, settings: Sequence[Setting], beliefs: tuple[Belief, Belief], seconds: float
) -> Run:
    states = round(settings[0].count)
    diagnostics = Diagnostics(
        states, states, math.inf, Estimate.exactly(1.0, method="exact"), budget=0, excluded=0, seconds=seconds
    )
    source = _source(request, settings, states)
    exact = Exact(request.way, source, beliefs, lambda: finite_joint(settings, *beliefs))
    return Run((), None, diagnostics, exact=exact)


def _answered_by_class(request: Request, settings: Sequence[Setting], found: ByClass, seconds: float) -> Run:
    error = min(1.0, settings[0].roots.lost / found.probability)
    certain = Estimate.exactly(1.0, method="exact")
    diagnostics = Diagnostics(found.states, found.accepted, math.inf, certain, 0, found.excluded, seconds)
    source = _source(request, settings, found.states)
    beliefs = found.beliefs(error)
    exact = Exact(request.way, source, beliefs, lambda: finite_joint(settings, *beliefs, found))
    return Run((), None, diagnostics, exact=exact)


def _joint(request: Request, beliefs: Sequence[Belief]) -> Joint:
    settings = settings_of(Request(request.question, way=request.way))
    assert not isinstance(settings, Obstacle)  # what was enumerated together with a query can be without it
    if request.observation is not None:
        exact = _enumerated(Request(request.question, way=request.way), settings).exact
        assert exact is not None
        return exact.joint()
    return finite_joint(settings, beliefs[0], beliefs[1])
