"""Counting in bytes gives what adding whole numbers gives, bit for bit, and needs no more memory."""

import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privug as pv
from privug.model.node import Context, Node, ancestors
from privug.model.plan import ByteCounts, Plan, tallies
from privug.program.lifting import apply


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def one_by_one(targets: Sequence[Node], samples: int, seed: int = 0) -> list[np.ndarray]:
    """Compute each node by its own operation."""
    context, values = Context(samples, rng(seed)), {}
    for node in ancestors(targets):
        values[node] = node.operation.evaluate([values[parent] for parent in node.parents], context)
    return [np.broadcast_to(values[t], (samples, *values[t].shape[1:])) for t in targets]


def counted(targets: Sequence[Node], known: Sequence[Node] = ()) -> int:
    """How many nodes are computed in another way than their own."""
    return len(tallies(ancestors(targets), targets, {id(node) for node in known}))


def same(targets: Sequence[Node], samples: int = 50, seed: int = 0) -> None:
    for left, right in zip(Plan(targets).run(samples, rng(seed)), one_by_one(targets, samples, seed), strict=True):
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)


TERMS = [
    lambda p, total: total + p,
    lambda p, total: p + total,
    lambda p, total: total + pv.where(p, 1, 0),
    lambda p, total: total + pv.where(p, 3, 0),
    lambda p, total: pv.where(p, 200, 0) + total,
    lambda p, total: total + pv.where(p, 255, 0),
    lambda p, total: total + pv.where(p, 256, 0),
    lambda p, total: total + pv.where(p, -1, 0),
    lambda p, total: total + pv.where(p, 0, 0),
    lambda p, total: total + 2 * p,
    lambda p, total: total + p.astype(int),
    lambda p, total: total + pv.where(p, 1.5, 0),
    lambda p, total: total + (p & (total > 3)),
    lambda p, total: total - p,
    lambda p, total: total * 2,
    lambda p, total: total + total,
]
STARTS = [
    lambda x: 0,
    lambda x: -7,
    lambda x: x,
    lambda x: x > 4,
    lambda x: pv.where(x > 4, 1, 0),
    lambda x: 0.5,
    lambda x: np.zeros(2, int),
]
PIECES = st.lists(st.integers(0, len(TERMS) - 1), min_size=1, max_size=25)


def chain(start: int, pieces: Sequence[int]) -> list[pv.RandomVariable]:
    """Return all sums on the way."""
    ages = [pv.DiscreteUniform(0, 9) for _ in range(5)]
    sums = [STARTS[start](ages[0])]
    for position, piece in enumerate(pieces):
        total = sums[-1]
        if not isinstance(total, pv.RandomVariable):
            total = pv.Constant(total)
        sums.append(TERMS[piece](ages[position % 5] > position % 7, total))
    return sums[1:]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.integers(0, len(STARTS) - 1), PIECES, st.lists(st.integers(0, 24), max_size=2), st.sampled_from([1, 6]))
def test_every_chain_gives_what_its_additions_give(start, pieces, looked_at, samples):
    sums = chain(start, pieces)
    same([*(sums[k % len(sums)].node for k in looked_at), sums[-1].node], samples, seed=3)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(0, 2), PIECES, st.integers(0, 24))
def test_values_handed_in_are_used(start, pieces, handed):
    sums = chain(start, pieces)
    known = sums[handed % len(sums)].node
    expected, value = one_by_one([sums[-1].node, known], 6, seed=3)
    inputs = [node for node in ancestors([sums[-1].node]) if node.is_random]
    values = dict(zip([known, *inputs], [value, *one_by_one([sums[-1].node, *inputs], 6, seed=3)[1:]], strict=True))
    before = {node: array.copy() for node, array in values.items()}
    actual = Plan([sums[-1].node], list(values)).run(6, rng(99), values)[0]
    np.testing.assert_array_equal(actual, expected)
    assert all((values[node] == array).all() for node, array in before.items())


def test_a_term_handed_in_is_taken_as_it_is():
    ages = [pv.DiscreteUniform(0, 9) for _ in range(3)]
    terms = [pv.where(age > 4, 3, 0) for age in ages]
    total = sum(terms, pv.Constant(1))
    handed = {terms[1].node: np.array([70, 80])}
    assert counted([total.node], list(handed)) == 0
    values = {**handed, terms[0].node: np.array([0, 3]), terms[2].node: np.array([3, 3])}
    assert Plan([total.node], list(values)).run(2, rng(), values)[0].tolist() == [74, 87]


@pytest.mark.parametrize("links", [1, 2, 254, 255, 256, 257, 511, 1000])
def test_bytes_are_carried_before_they_wrap(links):
    ages = pv.Array(pv.DiscreteUniform(0, 9), links)
    total = sum((age >= 0 for age in ages), 0)
    assert counted([total.node]) == (links if links > 1 else 0)
    assert Plan([total.node]).run(4, rng())[0].tolist() == [links] * 4
    same([sum((age > 4 for age in ages), 0).node])


def test_weights_are_carried_before_they_wrap():
    counts = ByteCounts((2,))
    for weight in (200, 55, 1, 255, 254, 2, 1):
        counts.add(np.array([True, False]), weight)
    assert counts.total().tolist() == [768, 0]


def test_a_sum_that_is_looked_at_twice_ends_a_chain():
    ages = [pv.DiscreteUniform(0, 9) for _ in range(6)]
    first = sum((age > 5 for age in ages[:3]), 0)
    total = sum((age > 5 for age in ages[3:]), first)
    assert counted([total.node]) == 6
    product = total * first
    assert counted([product.node]) == 6
    same([product.node])
    same([total.node, first.node])


def test_what_a_chain_starts_from_is_not_overwritten_on_its_way():
    x = pv.DiscreteUniform(0, 1000)
    start = x + 1
    first = start + (x > 300)
    squared = start * start  # start is used for the last time here, in the middle of the chain
    total = first + (squared > 5000)
    assert counted([total.node]) == 2
    same([total.node])
    same([(total + squared).node])


def loop(records):
    count = 0
    for row in records:
        if row.age > 60:
            count += 1
    return count


def two_counters(records):
    old, young = 0, 0
    for row in records:
        if row.age > 60:
            old += 1
        elif row.age < 18:
            young += 2
    return old, young


PROGRAMS = {
    "loop": loop,
    "two counters": two_counters,
    "sum of ones": lambda records: sum(1 for row in records if row.age > 60),
    "sum of truth values": lambda records: sum(row.age > 60 for row in records),
    "sum of casts": lambda records: sum(int(row.age > 60) for row in records),
    "length": lambda records: len([row for row in records if row.age > 60]),
    "count": lambda records: pv.count(records, lambda row: row.age > 60),
    "count_nonzero": lambda records: np.count_nonzero([row.age > 60 for row in records]),
    "NumPy's sum": lambda records: np.sum([row.age > 60 for row in records]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_counting_programs_count_in_bytes(name):
    table = pv.Records(40, pv.Row(age=pv.DiscreteUniform(0, 99))).table()
    lifted = apply(PROGRAMS[name], [table])
    assert lifted.lifting.tier == "traced"
    outputs = lifted.output if isinstance(lifted.output, tuple) else (lifted.output,)
    nodes = [output.node for output in outputs]
    assert counted(nodes) >= 1
    assert len(Plan(nodes)._steps) < len(ancestors(nodes)) - 40  # no step for a constant, or for a one or zero
    same(nodes)


@pytest.mark.parametrize("shape", [(7,), (300,), (70_000,), (2, 3)])
def test_arrays_of_truth_values(shape):
    ages = pv.Array(pv.DiscreteUniform(0, 9), shape)
    for total in ((ages > 2).sum(), np.count_nonzero(ages), np.sum(ages > 2, axis=0), np.sum(ages > 2, axis=-1)):
        assert counted([total.node]) == 1
        same([total.node], samples=3)


def test_long_loops_need_no_more_memory():
    links, samples = 4_000, 2000
    ages = [pv.DiscreteUniform(0, 9) for _ in range(20)]
    total = 0
    for position in range(links):
        total = total + (ages[position % 20] > position % 10)
    plan = Plan([total.node])
    plan.run(samples, rng())
    tracemalloc.start()
    plan.run(samples, rng())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    roots, counter, condition = 20 * 8, 8 + 1 + 8, 1
    plans_own = 2 * 8 * 2 * links  # a list of the values, none of which grows with the samples
    assert peak < samples * (roots + counter + condition) * 1.1 + 2 * plans_own


def test_what_may_leave_64_bits_is_refused():
    large = pv.Choice([2**63 - 3, 5])
    fine, beyond = (sum((pv.DiscreteUniform(0, 9) >= 0 for _ in range(n)), large) for n in (2, 3))
    assert set(Plan([fine.node]).run(50, rng())[0].tolist()) == {2**63 - 1, 7}
    for total in (beyond, large + pv.DiscreteUniform(2, 3) * 2, (pv.DiscreteUniform(0, 9) >= 0) + (large + 2)):
        with pytest.raises(pv.ProgramError, match="64-bit range"):
            Plan([total.node]).run(50, rng())
