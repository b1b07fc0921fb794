"""Answers of engines: beliefs about secret, output and a query given an observation, computed exactly or sampled.

An exact answer satisfies the invariants of distributions, or it is refused where it is made. In either kind, values
that differ only by the rounding of arithmetic are merged before anything is measured.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from typing import Any, ClassVar, NamedTuple, NotRequired, Protocol, TypedDict

import numpy as np
import scipy

from privug.digits import how_many
from privug.errors import UnsuitableEngine
from privug.inference.belief import Belief
from privug.inference.case_plan import Quantity
from privug.inference.diagnostics import Diagnostics
from privug.inference.graph.support import reach_of_value
from privug.inference.joint import ChannelBlock, ImplicitChannel, Joint, WeightedCounter
from privug.inference.question import Question
from privug.model.batch import Batch
from privug.model.merging import MergedBatch, keeps_bits, merged
from privug.model.node import Array, Kind, Node
from privug.model.structure import random_leaves
from privug.prior.family import UNKNOWN, Reach
from privug.program.lifting import Lifting


class Options(TypedDict):
    """What every engine is told: samples that are wanted, the seed, draws that may be spent, and a further query."""

    samples: int
    seed: int
    budget: NotRequired[int | None]
    extra: NotRequired[Callable[..., Any] | None]


SECRET, OUTPUT, QUERY = range(3)
"""The positions of the quantities of an answer."""
NAMES = ("the secret", "the output", "the query")
Nodes = Sequence[Node] | None
Prior = Callable[[], Belief | None]


class Definition(NamedTuple):
    """What the definition of a quantity says: its name, whether it is discrete or continuous, and its reach."""

    spread: Kind | None = None
    reach: Reach = UNKNOWN
    quantity: str = ""


UNDEFINED = Definition()


def definition_of(question: Question, which: str, *, given: bool = False) -> Definition:
    """Return what is known of a question's secret or output, before an observation or given one."""
    name = question.secret_name if which == "secret" else which
    if question.size_nodes:
        return Definition(quantity=name)
    value = getattr(question.case(), which)
    kinds = {variable.node.kind for variable in random_leaves([value])}
    reach = reach_of_value(value)
    return Definition(kinds.pop() if len(kinds) == 1 else None, reach.given() if given else reach, name)


class Answer(Protocol):
    """What an engine found, given an observation or before any."""

    is_exact: ClassVar[bool]

    @property
    def diagnostics(self) -> Diagnostics:
        """How it went."""

    @property
    def lifting(self) -> Lifting | None:
        """How the program was lifted for it, if not as for one sample."""

    @property
    def engine(self) -> str:
        """The engine that served; empty if it is the one asked for."""

    @property
    def source(self) -> str:
        """What it was computed from, as a report says it."""

    def belief(self, position: int, known: Definition) -> Belief | None:
        """Return the belief about one of the quantities; None if only the joint has it."""

    def joint(
        self, secret: Definition = UNDEFINED, output: Definition = UNDEFINED, prior: Prior = lambda: None
    ) -> Joint:
        """Return secret and output together; `prior` gives the belief about the secret, where it is known exactly."""

    def further(self, query: Callable[..., Any], question: Question) -> Belief | None:
        """Return the belief about one more query on the samples of this answer, if that can be had."""

    @property
    def is_independent(self) -> bool:
        """Whether it is not made of samples that depend on one another."""

    def merged(self, question: Question, query: Callable[..., Any] | None) -> "Answer":
        """Return the same answer with values that differ only by rounding as one; its diagnostics say so."""

    def noting(self, **changes: Any) -> "Answer":
        """Return the same answer with other diagnostics."""

    def served_by(self, engine: str) -> "Answer":
        """Return the same answer as one of an engine that was chosen for it."""


@dataclass(frozen=True)
class ExactAnswer:
    """Beliefs that were computed, by one of the solvers; one that only the joint can give is None.

    `pairs` computes the joint of secret and output when it is first asked for, and may raise UnsuitableEngine.
    """

    solver: str
    computed_from: str
    beliefs: tuple[Belief | None, ...]
    pairs: Callable[[], Joint]
    diagnostics: Diagnostics

    is_exact: ClassVar[bool] = True
    is_independent: ClassVar[bool] = True
    lifting: ClassVar[None] = None

    def __post_init__(self) -> None:
        for name, belief in zip(NAMES, self.beliefs, strict=False):
            if belief is not None:
                # Far out, the output is known worse than what follows from it; its belief says so.
                checked_belief(name, belief, 1.0 if name == NAMES[OUTPUT] else MOST_ERROR)

    @property
    def engine(self) -> str:
        """The exact engine, with the solver that served."""
        return f"exact ({self.solver})"

    @property
    def source(self) -> str:
        """What it was computed from."""
        return f"exact inference ({self.computed_from})"

    def belief(self, position: int, known: Definition) -> Belief | None:
        """Return the belief about one of the quantities; None if only the joint has it."""
        found = self.beliefs[position]
        return None if found is None else found.named(known.quantity)

    def joint(
        self, secret: Definition = UNDEFINED, output: Definition = UNDEFINED, prior: Prior = lambda: None
    ) -> Joint:
        """Return the joint of an answer without an observation, once it is seen to agree with the beliefs in it."""
        return self._checked

    @cached_property
    def _checked(self) -> Joint:
        return checked_joint(self.pairs(), self.beliefs[SECRET], self.beliefs[OUTPUT])

    def further(self, query: Callable[..., Any], question: Question) -> Belief | None:
        """Return nothing: there are no samples."""
        return None

    def merged(self, question: Question, query: Callable[..., Any] | None) -> "ExactAnswer":
        """Return the same answer with values that differ only by rounding as one."""
        if keeps_bits():
            return self
        nodes = nodes_asked(question, query)
        beliefs, found = [], []
        for belief, own in zip(self.beliefs, nodes, strict=False):
            one = MergedBatch(Batch.of_values([])) if belief is None else _of_belief(belief, own)
            beliefs.append(belief if belief is None or not one.before else _belief(belief, one.batch))
            found.append(one)
        same = replace(self, beliefs=tuple(beliefs), pairs=lambda: _joint(self.pairs(), nodes))
        return same.noting(merged=_what_was_merged(found))

    def noting(self, **changes: Any) -> "ExactAnswer":
        """Return the same answer with other diagnostics."""
        return replace(self, diagnostics=replace(self.diagnostics, **changes))

    def served_by(self, engine: str) -> "ExactAnswer":
        """Return the same answer: it says which solver served."""
        return self


@dataclass(frozen=True)
class SampledAnswer:
    """Samples of secret, output and query given the observation."""

    quantities: tuple[Batch, ...]
    log_weights: Array | None
    diagnostics: Diagnostics
    lifting: Lifting | None = None
    groups: int | None = None
    """Samples that depend on each other come in so many consecutive groups of equal length; None: they do not."""
    engine: str = ""
    on_samples: Callable[[Callable[..., Any]], Batch] | None = None
    """Evaluates one more query on the very samples of this answer."""
    chains: int | None = None
    """How many chains of equal length the samples are, one after the other."""

    is_exact: ClassVar[bool] = False

    @property
    def source(self) -> str:
        """What it was computed from: how many samples, and how much they are worth."""
        known = self.diagnostics
        worth = f"worth {known.effective_samples:,.0f}"
        if known.r_hat is not None:
            chains = f"{known.accepted:,} draws of {known.chains} chains"
            return f"{chains}, {worth} independent ones; R-hat {known.r_hat:.3f}"
        if self.groups is not None:
            found = f"{known.accepted:,} samples of {self.groups} populations, {worth} independent ones"
            return f"{found}; {known.draws:,} runs of the program"
        drawn = f"{how_many(known.accepted, 'sample')} kept of {how_many(known.draws, 'draw')}"
        return drawn if self.log_weights is None else f"{drawn}, {worth} equally weighted ones"

    @cached_property
    def weights(self) -> Array | None:
        """Weights that sum to one; None if all are equal."""
        return normalised(self.log_weights)

    def belief(self, position: int, known: Definition) -> Belief:
        """Return the belief about one of the quantities."""
        return Belief(self.quantities[position], self.weights, groups=self.groups, **known._asdict())

    def joint(
        self, secret: Definition = UNDEFINED, output: Definition = UNDEFINED, prior: Prior = lambda: None
    ) -> Joint:
        """Return secret and output together, sample by sample."""
        return Joint(self.belief(SECRET, secret), self.belief(OUTPUT, output), prior=prior())

    def further(self, query: Callable[..., Any], question: Question) -> Belief | None:
        """Return the belief about one more query on the same samples, if this engine kept what that takes."""
        if self.on_samples is None:
            return None
        values = self.on_samples(query)
        found = values if keeps_bits() else merged(values, nodes_asked(question, query)[QUERY]).batch
        return Belief(found, self.weights, groups=self.groups)

    @property
    def is_independent(self) -> bool:
        """Whether samples do not depend on one another."""
        return self.groups is None

    def merged(self, question: Question, query: Callable[..., Any] | None) -> "SampledAnswer":
        """Return the same answer with values that differ only by rounding as one."""
        if keeps_bits():
            return self
        nodes = nodes_asked(question, query)
        found = [merged(batch, own) for batch, own in zip(self.quantities, nodes, strict=False)]
        same = replace(self, quantities=tuple(one.batch for one in found))
        return same.noting(merged=_what_was_merged(found))

    def noting(self, **changes: Any) -> "SampledAnswer":
        """Return the same answer with other diagnostics."""
        return replace(self, diagnostics=replace(self.diagnostics, **changes))

    def served_by(self, engine: str) -> "SampledAnswer":
        """Return the same answer as one of an engine, unless it says more."""
        return replace(self, engine=self.engine or engine)


def normalised(log_weights: Array | None) -> Array | None:
    """Return weights that sum to one, from their logarithms; None if all are equal."""
    if log_weights is None:
        return None
    weights = np.exp(log_weights - log_weights.max())
    normalised: Array = weights / weights.sum()
    return normalised


ROUNDING = 1e-9  # of probabilities that were computed in full
MOST_ERROR = 1e-3  # of probabilities that an answer may state and still be called exact
MOST_BITS = 0.05  # of error that an information may state and still be called exact


def checked_belief(what: str, belief: Belief, most_error: float = MOST_ERROR) -> Belief:
    """Return an exact belief if it is a distribution that is known well enough; refuse it otherwise."""
    _check_weights(what, belief.weights)
    if not 0 <= belief.error <= most_error:
        _refuse(f"{what} is known to no more than {belief.error:.0e}")
    return belief


def checked_joint(joint: Joint, secret: Belief | None, output: Belief | None) -> Joint:
    """Return an exact joint if it agrees with itself and with what is known about its sides; refuse it otherwise."""
    if joint.channel is None:
        _check_weights("the joint of secret and output", joint.weights)
        sides = _by_classes(joint) or (joint.secret, joint.output)
        for what, side, known in (("secret", sides[0], secret), ("output", sides[1], output)):
            checked_belief(f"the {what}", side)
            if known is not None:
                _check_marginal(what, side, known)
    if joint.information is not None:
        _check_information(joint)
    return joint


def _by_classes(joint: Joint) -> tuple[Belief, Belief] | None:
    """Return what classes of secrets say about the secret and the output, each by itself."""
    known = joint.classes
    if known is None:
        return None
    secret = replace(joint.secret, batch=known.secrets, weights=known.weights)
    return secret, replace(joint.output, batch=known.outputs, weights=known.marginal)


def _check_weights(what: str, weights: Array | None) -> None:
    if weights is None:
        return
    if not (np.all(np.isfinite(weights)) and np.all(weights >= 0) and abs(float(weights.sum()) - 1) <= ROUNDING):
        _refuse(f"the probabilities of {what} do not sum to one")


def _check_marginal(what: str, side: Belief, known: Belief) -> None:
    allowed = ROUNDING + side.error + known.error
    if known.curve is None and known.kind is Kind.DISCRETE:
        apart = _apart(side, known)
    else:
        apart, allowed = _apart_in_means(side, known), max(allowed, MOST_ERROR)
    if not apart <= allowed:
        _refuse(f"the joint has another distribution of the {what} than is known, by {apart:.0e}")


def _apart(side: Belief, known: Belief) -> float:
    """Return the total variation distance of two discrete beliefs."""
    if side.batch is known.batch and side.batch.each_once:
        same = side.weights is known.weights
        return 0.0 if same else float(np.abs(_weights(side) - _weights(known)).sum()) / 2
    weights = np.concatenate([_weights(side), -_weights(known)])
    codes, _ = Batch.concatenate([side.batch, known.batch]).coded()
    return float(np.abs(np.bincount(codes, weights)).sum()) / 2


def _apart_in_means(side: Belief, known: Belief) -> float:
    """Return by how much the expectations of smooth bounded functions differ between two beliefs about numbers.

    The functions are distribution functions of the normal distribution, which cells of quadrature integrate well.
    """
    here, there = side.batch.numbers(), known.batch.numbers()
    if here is None or there is None:
        return 0.0
    here, there = here.astype(float), there.astype(float)
    order = np.argsort(there, kind="stable")
    order = order[np.isfinite(there[order])]
    if not len(order):
        return 0.0
    shares = np.cumsum(_weights(known)[order])
    places = np.searchsorted(shares / shares[-1], (0.1, 0.25, 0.5, 0.75, 0.9))
    low, *middles, high = there[order][np.minimum(places, len(order) - 1)]
    unit = float(high - low) or 1.0
    sides = ((here, _weights(side)), (there, _weights(known)))
    apart = []
    for middle in (low, *middles, high):
        here, there = ((weights * scipy.special.ndtr((values - middle) / unit)).sum() for values, weights in sides)
        apart.append(abs(float(here - there)))
    return max(apart)


def _check_information(joint: Joint) -> None:
    told = joint.information
    assert told is not None
    if math.isnan(told.value) or told.low < 0 or told.high - told.value > MOST_BITS:
        _refuse(f"the information came out as {told}")
    for what, side in (("secret", joint.secret), ("output", joint.output)):
        if side.kind is Kind.DISCRETE and joint.channel is None:
            most = _entropy(side)
            if not told.value <= most + ROUNDING + 2 * (told.high - told.value):
                _refuse(
                    f"the information came out as {told.value:.6g} bit, above the {what}'s entropy of {most:.6g} bit"
                )


def _entropy(side: Belief) -> float:
    codes, _ = side.batch.coded()
    return float(scipy.special.entr(np.bincount(codes, _weights(side))).sum()) / math.log(2)


def _weights(belief: Belief) -> Array:
    count = len(belief.batch)
    return np.full(count, 1 / count) if belief.weights is None else belief.weights


def _refuse(what: str) -> None:
    raise UnsuitableEngine(f"engine='exact' cannot resolve this: {what}; engine='sample' can serve")


def merged_prior(belief: Belief, question: Question) -> Belief:
    """Return what is believed about the secret, with values that differ only by rounding as one."""
    found = _of_belief(belief, None if keeps_bits() else nodes_asked(question, None)[SECRET])
    return _belief(belief, found.batch) if found.before else belief


def nodes_asked(question: Question, query: Callable[..., Any] | None) -> list[Nodes]:
    """Return the nodes of secret, output and query; with tables of random size, at typical sizes."""
    case = question.case(question.typical_sizes)
    values = [case.secret, case.output]
    if query is not None:
        values.append(question.query(case, query))
    return [Quantity.of(value).nodes for value in values]


def _what_was_merged(found: Sequence[MergedBatch]) -> tuple[str, ...]:
    return tuple(
        f"{one.before:,} values of {name} are {one.after:,}: the others differ from those only by the rounding of "
        'arithmetic (pv.configure(rounding="bits") keeps them apart)'
        for name, one in zip_longest(NAMES[: len(found)], found)
        if one.before
    )


def _of_belief(belief: Belief, nodes: Nodes) -> MergedBatch:
    """Merge the values of an exact belief, unless they stand for a density."""
    if belief.curve is not None:
        return MergedBatch(belief.batch)
    return merged(belief.batch, nodes, sampled=not belief.exact)


def _belief(belief: Belief, batch: Batch) -> Belief:
    """Return an exact belief with other values, equal ones counted together."""
    (values,), weights = _tallied([batch], belief.weights)
    return replace(belief, batch=values, weights=weights)


def _tallied(quantities: Sequence[Batch], weights: Array | None) -> tuple[tuple[Batch, ...], Array]:
    shares = np.full(len(quantities[0]), 1 / len(quantities[0])) if weights is None else weights
    tally = WeightedCounter()
    tally.add(quantities, shares)
    return tally.result()


def _joint(joint: Joint, nodes: Sequence[Nodes]) -> Joint:
    secret, output = _of_belief(joint.secret, nodes[0]), _of_belief(joint.output, nodes[1])
    if not secret.before and not output.before:
        return joint
    if joint.channel is not None:
        return _channel(joint, joint.channel, secret, output)
    if joint.secret.curve is not None or joint.output.curve is not None:
        sides = replace(joint.secret, batch=secret.batch), replace(joint.output, batch=output.batch)
        return Joint(*sides)
    (secrets, outputs), weights = _tallied([secret.batch, output.batch], joint.weights)
    return Joint(
        replace(joint.secret, batch=secrets, weights=weights), replace(joint.output, batch=outputs, weights=weights)
    )


def _channel(joint: Joint, channel: ImplicitChannel, secret: MergedBatch, output: MergedBatch) -> Joint:
    """Return a joint whose pairs are too many to list, with the columns of equal outputs added up."""
    if secret.before:
        raise UnsuitableEngine(
            "engine='exact' cannot list the pairs of secret and output: they are too many, and values of the secret "
            "differ only by rounding; engine='sample' can draw some"
        )
    places = output.batch.factorized()[0]  # of outputs in ascending order, as the values that they stand for are

    def blocks() -> Any:
        for block in channel.blocks():
            own = places[block.first_output : block.first_output + block.probabilities.shape[1]]
            starts = np.flatnonzero(np.diff(own, prepend=-1))
            yield ChannelBlock(int(own[0]), np.add.reduceat(block.probabilities, starts, axis=1))

    outputs = _belief(joint.output, output.batch)
    return replace(
        joint,
        output=outputs,
        channel=ImplicitChannel(channel.secrets, len(outputs.batch), channel.states, blocks),
    )
