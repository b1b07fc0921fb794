"""What engines return, with values that differ only by the rounding of arithmetic as one value."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np

from privug.errors import UnsuitableEngine
from privug.inference.belief import Belief
from privug.inference.case_plan import Quantity
from privug.inference.channel import Block, Channel
from privug.inference.joint import Joint
from privug.inference.question import Question
from privug.inference.sampling import Run
from privug.inference.statistics import Table
from privug.inference.tally import Tally
from privug.model.batch import Batch
from privug.model.merging import Merged, keeps_bits, merged
from privug.model.node import Array, Node

NAMES = ("the secret", "the output", "the query")
Nodes = Sequence[Node] | None


def with_values_merged(run: Run, question: Question, extra: Callable[..., Any] | None = None) -> Run:
    """Return a run whose secret, output and further quantity differ by more than rounding; it says what was merged."""
    if keeps_bits():
        return run
    nodes = _nodes(question, extra)
    if run.exact is None:
        found = [merged(batch, own) for batch, own in zip(run.quantities, nodes, strict=False)]
        return _told(replace(run, quantities=tuple(one.batch for one in found)), found)
    beliefs, found = [], []
    for belief, own in zip(run.exact.beliefs, nodes, strict=False):
        one = Merged(Batch.of_values([])) if belief is None else _of_belief(belief, own)
        beliefs.append(belief if belief is None or not one.before else _belief(belief, one.batch))
        found.append(one)
    joint = run.exact.joint
    exact = replace(run.exact, beliefs=tuple(beliefs), joint=lambda: _joint(joint(), nodes))
    return _told(replace(run, exact=exact), found)


def merged_query(batch: Batch, question: Question, query: Callable[..., Any]) -> Batch:
    """Return the answers of one more query, with values that differ only by rounding as one."""
    return batch if keeps_bits() else merged(batch, _nodes(question, query)[2]).batch


def merged_prior(belief: Belief, question: Question) -> Belief:
    """Return what is believed about the secret, with values that differ only by rounding as one."""
    found = _of_belief(belief, None if keeps_bits() else _nodes(question, None)[0])
    return _belief(belief, found.batch) if found.before else belief


def merged_table(names: Sequence[str], table: Table, question: Question) -> Table:
    """Return a table of values of secret, output or both, with values that differ only by rounding as one."""
    nodes = dict(zip(("secret", "output"), _nodes(question, None), strict=True))
    batches, sums = table.columns
    found = [merged(batch, nodes[name], sampled=False) for name, batch in zip(names, batches, strict=True)]
    return Table.of([one.batch for one in found], sums) if any(one.before for one in found) else table


def _nodes(question: Question, extra: Callable[..., Any] | None) -> list[Nodes]:
    """Return the nodes of secret, output and query; with tables of random size, at typical sizes."""
    case = question.case(question.typical_sizes)
    values = [case.secret, case.output]
    if extra is not None:
        values.append(question.query(case, extra))
    return [Quantity.of(value).nodes for value in values]


def _told(run: Run, found: Sequence[Merged]) -> Run:
    remarks = [
        f"{one.before:,} values of {name} are {one.after:,}: the others differ from those only by the rounding of "
        'arithmetic (pv.configure(rounding="bits") keeps them apart)'
        for name, one in zip_longest(NAMES[: len(found)], found)
        if one.before
    ]
    if not remarks:
        return run
    return replace(run, diagnostics=replace(run.diagnostics, merged=tuple(remarks)))


def _of_belief(belief: Belief, nodes: Nodes) -> Merged:
    """Merge the values of an exact belief, unless they stand for a density."""
    return Merged(belief.batch) if belief.curve is not None else merged(belief.batch, nodes, sampled=not belief.exact)


def _belief(belief: Belief, batch: Batch) -> Belief:
    """Return an exact belief with other values, equal ones counted together."""
    (values,), weights = _tallied([batch], belief.weights)
    return replace(belief, batch=values, weights=weights)


def _tallied(quantities: Sequence[Batch], weights: Array | None) -> tuple[tuple[Batch, ...], Array]:
    shares = np.full(len(quantities[0]), 1 / len(quantities[0])) if weights is None else weights
    tally = Tally()
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


def _channel(joint: Joint, channel: Channel, secret: Merged, output: Merged) -> Joint:
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
            yield Block(int(own[0]), np.add.reduceat(block.probabilities, starts, axis=1))

    outputs = _belief(joint.output, output.batch)
    return replace(
        joint,
        output=outputs,
        channel=Channel(channel.secrets, len(outputs.batch), channel.states, blocks),
    )
