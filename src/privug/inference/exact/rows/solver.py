"""The solver for sums over rows: whether it can serve, and what it answers."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from privug.errors import ImpossibleObservation
from privug.estimate import Estimate
from privug.inference.answer import ExactAnswer
from privug.inference.belief import NEGLIGIBLE, Belief
from privug.inference.case_plan import Quantity
from privug.inference.exact.finite.solver import is_answered, table_sizes
from privug.inference.exact.finite.states import States
from privug.inference.exact.request import Offer, Refused, Request, exact_answer
from privug.inference.exact.rows.cells import Memory
from privug.inference.exact.rows.joint import PairTable, Source, approximately, shift_information, sources, tabulated
from privug.inference.exact.rows.likelihood import groups_of
from privug.inference.exact.rows.posterior import (
    BeliefPiece,
    ConditionalModel,
    Model,
    evidence,
    integrated,
    posterior,
    settled,
)
from privug.inference.exact.rows.regrouping import NotCounted, NotRows, check_followed
from privug.inference.graph.conditions import Unreadable
from privug.inference.joint import Joint
from privug.inference.measure.convolution import Unsummable
from privug.inference.measure.curve import Curve, NoSuchMoment
from privug.inference.measure.piecewise_map import Unfollowed
from privug.inference.question import Question
from privug.model.batch import Batch, Column, first_places, grouped
from privug.model.node import Array, Kind, Node, ancestors
from privug.model.traits import Role
from privug.prior.family import Draw, family_of

COMMON = 1e-5  # a probability from which on two ways to it are compared
SAME_TOTAL = 1e-7  # by how much two ways to the probability of what was seen may differ, relative to it
REFUSALS = (NotRows, Unfollowed, Unreadable, Unsummable, NoSuchMoment)
"""What is raised where something cannot be followed."""


Setting = tuple[float, ConditionalModel]
"""What rows share, and how likely that is."""
MOST_CHECKED = 6


def check_total(settings: Sequence[Setting], totals: Sequence[float], error: float) -> None:
    """Refuse an answer unless what was seen is as likely by all rows together as by one row and the rest.

    `totals` are how likely it is with each setting. Of many, such as sizes of a table, the likeliest are looked at.
    """
    if any(given.unknown is not None for _, given in settings):
        return  # integrated over already, which takes its time
    chosen = sorted(range(len(settings)), key=lambda place: -totals[place])[:MOST_CHECKED]
    total = math.fsum(totals[place] for place in chosen)
    settings = [settings[place] for place in chosen]
    try:
        pieces = [
            replace(piece, weight=weight * piece.weight) for weight, given in settings for piece in posterior(given, ())
        ]
    except REFUSALS:
        return
    left = settled(pieces)
    whole = sum(piece.weight for piece in left)
    scale = _scale([given for _, given in settings]) if left and left[0].density else 1.0
    if not whole * scale > COMMON:
        return  # in far tails the law of all rows is known less well than that of the rest
    if not abs(whole - total) <= SAME_TOTAL * max(whole, total) + error:
        raise NotRows(f"what was seen came out as {total:.6g} and as {whole:.6g} likely: a peak was missed")


def _scale(several: Sequence[ConditionalModel]) -> float:
    """Return how wide the widest law of a sum is, by which its density is to be judged; zero if that is not known."""
    laws = [law for given in several for law in given.tally(None).laws if law.parts]
    try:
        return max((law.std() for law in laws), default=0.0)
    except NoSuchMoment:
        return 0.0


UNLIKELY = 1e-17
NEGLIGIBLE_SIZE = 1e-11  # a probability of sizes of the tables that may be left out
COST_OF_CASE = 2e8  # elementary operations
COST_OF_SIZE = 1.5e7  # for each size of a table, which has its rows in common with others
COST_OF_ONE_NUMBER = 5e7  # the same where one number is all there is, such as a secret by itself
COST_OF_NUMBER = 10.0
FINE = 1e-11
MOST_HALVINGS = 3

Returned = TypeVar("Returned")


@dataclass(frozen=True, eq=False)
class SizedRows:
    """The model for some sizes of the tables, and how likely they are."""

    probability: float
    model: Model
    asked: Sequence[Quantity]
    """The secret, and the query if there is one."""
    output: Quantity

    def settings(self) -> list[tuple[float, ConditionalModel]]:
        """Return the model for each combination of values that rows share."""
        return [(self.probability * weight, given) for weight, given in self.model.settings()]

    def integrated(self) -> list[tuple[float, ConditionalModel]]:
        """Return the same with values of a continuous quantity that rows share."""
        return [(weight * share, inner) for weight, given in self.settings() for share, inner in integrated(given)]


def prepare_rows(request: Request) -> Offer:
    """Cut rows into cells, if the output is a function of sums over independent rows."""
    if request.question.exclude_errors:
        raise Refused("inputs on which it fails are to be excluded", vague=True)
    groups = table_sizes(request)
    try:
        sized = _all_sizes(request, groups)
    except REFUSALS as problem:
        raise _refused(problem, suits=isinstance(problem, NotCounted)) from None
    numbers = sum(row.count * len(row.roots) for row in sized[0].model.rows)
    cost = _cost(sized) if numbers > 1 else COST_OF_ONE_NUMBER
    return Offer(cost, COST_OF_NUMBER * numbers, partial(_followed, _run, request, sized))


def _cost(sized: Sequence[SizedRows]) -> float:
    """Return about what an answer takes: more for ranks of unlike rows, and for rows of several continuous numbers."""
    model = sized[0].model
    heavy = sum(5 * len(family.rows) for family in model.families if len(family.rows) > 1)
    heavy += sum(5 for family in model.families for _, ranks in family.picks if len(ranks) > 1)
    heavy += sum(
        10
        for row in model.rows
        if sum(isinstance(root.operation, Draw) and not family_of(root).listable for root in row.roots) > 1
    )
    return (COST_OF_CASE + COST_OF_SIZE * (len(sized) - 1)) * (1 + heavy)


def _all_sizes(request: Request, groups: Sequence[tuple[tuple[int, ...], States]]) -> list[SizedRows]:
    """Return the model for each size of the tables; sizes that hardly ever are may be left out."""
    found, memory = [], _memory(request.question)
    for sizes, start in groups:
        probability = float(start.weights.sum())
        try:
            if probability > UNLIKELY:
                found.append(_sized(request, sizes, probability, list(start.arrays), memory))
        except REFUSALS:
            if probability > NEGLIGIBLE_SIZE:
                raise
    return found


def _memory(question: Question) -> Memory:
    """Return what is known of a question's rows already."""
    held = question.once("rows", lambda: [Memory()])
    if held[0].is_full:
        held[0] = Memory()
    return held[0]


def _sized(
    request: Request, sizes: tuple[int, ...], probability: float, behind: Sequence[Node], memory: Memory
) -> SizedRows:
    case = request.case(sizes)
    likelihood = case.likelihood(request.observation)
    if likelihood.impossible is not None and not sizes:
        raise ImpossibleObservation(f"this observation is impossible: {likelihood.impossible}")
    asked, output = request.asked(case), Quantity.of(case.output)
    outputs = output.nodes if request.observation is None else ()
    order = ancestors([*likelihood.nodes, *outputs, *(node for one in asked for node in one.nodes)])
    check_followed(order)
    if request.extra is not None and not is_answered(request.query(case), case):
        raise NotRows("the query draws random numbers of its own")
    if any(root in order for root in behind):
        raise NotRows("the size of a table is a quantity that the program uses")
    listed = all(family_of(node).listable for node in order if isinstance(node.operation, Draw))
    if listed and not sizes and not any(node.operation.traits.role is Role.ORDER for node in order):
        raise NotRows("its quantities can be listed, and are better counted")
    model = Model(likelihood, outputs, [one.nodes for one in asked], len(case.facts), memory)
    return SizedRows(probability, model, asked, output)


def _followed(step: Callable[..., Returned], *arguments: object) -> Returned:
    """Do a step; what cannot be followed is a question for another engine."""
    try:
        return step(*arguments)
    except REFUSALS as problem:
        raise _refused(problem, suits=True) from None


def _refused(problem: Exception, *, suits: bool) -> Refused:
    """Return what stands in the way; it says most if the program as such is a function of sums over rows."""
    return Refused(str(problem), not suits, suits, getattr(problem, "node", None))


def _run(request: Request, sized: Sequence[SizedRows]) -> ExactAnswer:
    started = time.perf_counter()
    settings = [(one, setting) for one in sized for setting in one.settings()]
    beliefs: list[Belief | None] = []
    total, error = 1.0, 0.0
    for position, quantity in enumerate(sized[0].asked):
        found = [
            [replace(piece, weight=weight * piece.weight) for piece in posterior(given, one.model.asked[position])]
            for one, (weight, given) in settings
        ]
        pieces = settled([piece for some in found for piece in some])
        total = evidence(pieces)
        belief = _belief(quantity, pieces)
        error = belief.error * total
        beliefs.append(belief)
    is_density = any(piece.density for piece in pieces)
    if request.observation is not None:
        lowest = pieces[0].density
        totals = [math.fsum(piece.weight for piece in some if piece.density == lowest) for some in found]
        check_total([setting for _, setting in settings], totals, error)
    is_plain = request.observation is None and not request.question.facts  # else the joint tells what is published
    whole = [setting for one in sized for setting in one.integrated()] if is_plain else []
    beliefs.insert(1, _output(whole, sized[0].output) if is_plain else None)
    if request.question.facts:
        total = total / _probability_of_facts(request)
    estimate = _evidence(1.0 if request.observation is None else total, error, is_density)
    count = len(sized)
    source = "sums over rows, cut into cells" + (f", for {count} sizes of tables" if count > 1 else "")
    joint = partial(_followed, _joint, request, sized, beliefs[1])
    return exact_answer("sums", source, beliefs, joint, estimate, (count, count, 0), started)


def _probability_of_facts(request: Request) -> float:
    total = 0.0
    for sizes, start in table_sizes(request):
        case = request.case(sizes)
        model = Model(case.likelihood(None), (), (), len(case.facts))
        for weight, given in model.settings():
            pieces = list(posterior(given, ()))
            total += float(start.weights.sum()) * weight * sum(piece.weight for piece in pieces)
    return total


def _evidence(value: float, error: float, density: bool) -> Estimate:
    unit = "density" if density else ""
    if error <= NEGLIGIBLE * value:
        return Estimate.exactly(value if density else min(1.0, value), unit, "exact")
    return Estimate(value, max(0.0, value - error), value + error, unit, f"exact to {error:.0e}", exact=True)


def _belief(quantity: Quantity, pieces: Sequence[BeliefPiece]) -> Belief:
    """Return the belief about a quantity of a row from pieces of it."""
    weights = np.array([piece.weight for piece in pieces])
    shares = weights / weights.sum()
    error = max((piece.curve.error for piece in pieces if piece.curve is not None), default=0.0)
    if all(term.is_flat for piece in pieces for term in piece.cell.asked):
        table = np.array([[term.start for term in piece.cell.asked] for piece in pieces])
        distinct, masses = grouped(table.reshape(len(shares), -1), shares)
        return Belief.listed(_typed(quantity, distinct), masses / masses.sum(), error)
    if len(quantity.nodes) != 1:
        raise NotRows("the secret has several parts, and one of them is continuous")
    curves = []
    for piece in pieces:
        term = piece.cell.asked[0]
        assert piece.curve is not None
        curves.append(Curve.point(term.start) if term.is_flat else term.law(piece.curve))
    return Belief.of_curve(Curve.mixture(shares, curves))


def _typed(quantity: Quantity, values: Array) -> Batch:
    """Return values of a quantity, a line each, with the types that they have in the program."""
    return quantity.batch(
        [column.astype(node.dtype) for node, column in zip(quantity.nodes, values.T, strict=True)], len(values)
    )


def _output(settings: Sequence[tuple[float, ConditionalModel]], output: Quantity) -> Belief | None:
    """Return the belief about the output before any observation; None if only the joint can give it."""
    labels: dict[tuple[object, ...], float] = {}
    curves: list[tuple[float, Curve]] = []
    cut = False  # steps are followed as far as sums reach; all that is further out is put to the last one
    for weight, given in settings:
        tally = given.tally(None)
        cell = given.alone(())
        outcomes = given.outcomes(tally, [cell])
        outcomes.settle(tally.flats + cell.flats)
        for group in groups_of(tally, cell.flats, given.discrete):
            outcome = outcomes.at(group.key)
            if outcome.weights is None:
                share = weight * float(group.probabilities.sum())
                labels[outcome.label] = labels.get(outcome.label, 0.0) + share
                continue
            if outcome.steps is None and len(outcome.label) > 1:
                return None
            law = tally.law(outcome.weights, group.counts)
            starts = group.flats @ outcome.weights + outcome.constant
            if outcome.steps is not None:
                low, high, names = outcome.steps
                masses = law.mass(low - starts[:, np.newaxis], high - starts[:, np.newaxis])
                for name, mass in zip(names, group.probabilities @ masses, strict=True):
                    labels[name] = labels.get(name, 0.0) + weight * float(mass)
                cut = True
                continue
            image = outcome.images[0][1]
            for start, chance in zip(starts, group.probabilities, strict=True):
                if chance > UNLIKELY:
                    moved = law.affine(1.0, float(start))
                    curves.append((weight * float(chance), moved if image is None else image.curve(moved)))
    return _told(output, labels, curves, UNLIKELY if cut else 0.0)


def _told(
    output: Quantity, labels: dict[tuple[object, ...], float], curves: Sequence[tuple[float, Curve]], error: float
) -> Belief | None:
    there = {label: weight for label, weight in labels.items() if weight > 0}
    if not curves:
        return _labelled(output, list(there), np.array(list(there.values())), error)
    if len(output.nodes) > 1 or not all(isinstance(label[0], int | float) for label in there):
        return None
    points = [(weight, Curve.point(float(label[0]))) for label, weight in there.items()]  # type: ignore[arg-type]
    everything = [*curves, *points]
    return Belief.of_curve(Curve.mixture([w for w, _ in everything], [curve for _, curve in everything]))


def _labelled(quantity: Quantity, labels: Sequence[tuple[object, ...]], weights: Array, error: float) -> Belief:
    batch = labelled_batch(quantity, labels)
    codes, values = batch.factorized()
    masses = np.bincount(codes, weights, len(values))
    return Belief.listed(batch.take(first_places(codes)), masses / masses.sum(), error)


def labelled_batch(quantity: Quantity, labels: Sequence[tuple[object, ...]]) -> Batch:
    """Return outputs by their labels."""
    columns = []
    for place, node in enumerate(quantity.nodes):
        values = [label[place] for label in labels]
        if node.dtype == object:
            array = np.empty(len(values), object)
            array[:] = values
            columns.append(Column(array))
        else:
            columns.append(Column.of(node, np.array(values).astype(node.dtype)))
    return Batch(quantity.structure, tuple(columns), len(labels))


def _joint(request: Request, sized: Sequence[SizedRows], known: Belief | None) -> Joint:
    """Return secret and output together, before any observation."""
    if request.observation is not None:
        raise NotRows("secret and output together are known before an observation, not after it")
    if request.question.facts:
        raise NotRows("the joint of secret and output is not known under what is assumed")
    found: list[Source] = []
    for one in sized:
        found += sources(one.integrated(), one.model.asked[0])
    secret, output = sized[0].asked[0], sized[0].output
    table, told = _informed(found, len(secret.nodes), None if known is None else known.curve)
    return _assembled(secret, output, found, table, told)


def _informed(found: Sequence[Source], asked: int, output: Curve | None) -> tuple[PairTable, Estimate]:
    """Return a table of secrets and outputs, and their mutual information."""
    table = tabulated(found, asked, 0)
    if table.infinite is not None:
        return table, Estimate.exactly(math.inf, "bit", table.infinite)
    told = shift_information(found, output)
    if told is not None:
        return table, told
    off, halvings = table.error, 0
    moving = any(one.cell.curve is not None and one.cell.moving for one in found)
    if moving and table.unresolved < FINE:
        return table, approximately(table.information, off + table.unresolved)
    while moving and halvings < MOST_HALVINGS and not off < FINE * bool(halvings):
        halvings += 1
        finer = tabulated(found, asked, halvings)
        off = max(finer.error, abs(table.information - finer.information))
        table = finer
    return table, approximately(table.information, off)


def _assembled(secret: Quantity, output: Quantity, found: Sequence[Source], table: PairTable, told: Estimate) -> Joint:
    row, column = np.nonzero(table.probabilities)
    weights = table.probabilities[row, column]
    continuous = any(not term.is_flat for one in found for term in one.cell.asked)
    curve = None
    if continuous:
        curves = [one.cell.asked[0].law(one.cell.curve) for one in found if one.cell.curve is not None]
        curve = Curve.mixture([one.weight for one in found], curves)
        rows = Batch.of_values(table.secrets[:, 0])
    else:
        rows = _typed(secret, table.secrets)
    outputs = labelled_batch(output, table.labels)
    dense = any(outcome.steps is None for one in found for outcome, _, _ in one.formulas)
    certain = any(one.certain for one in found)
    kind = Kind.MIXED if dense and certain else Kind.CONTINUOUS if dense else Kind.DISCRETE
    pairs = (
        Belief(
            rows.take(row), weights, True, spread=Kind.CONTINUOUS if continuous else Kind.DISCRETE, curve=curve,
            error=table.missed,
        ),
        Belief(outputs.take(column), weights, True, spread=kind, error=table.missed),
    )  # fmt: skip
    return Joint(*pairs, told)
