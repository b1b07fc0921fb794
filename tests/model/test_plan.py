"""Evaluation: what is freed or overwritten never shows, seeds decide everything, whole numbers never wrap."""

import operator
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privug as pv
from privug.model.graph import substitute
from privug.model.node import Context, Node, Operation, ancestors
from privug.model.operations import SampleFailure
from privug.model.plan import Plan


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def naively(targets: Sequence[Node], samples: int, seed: int) -> list[np.ndarray]:
    """Compute each node on copies of its arguments, keep everything, overwrite nothing."""
    context = Context(samples, rng(seed))
    values: dict[Node, np.ndarray] = {}
    with np.errstate(all="ignore"):
        for node in ancestors(targets):
            arguments = [values[parent].copy() for parent in node.parents]
            values[node] = node.operation.evaluate(arguments, context).copy()
    return [np.broadcast_to(values[t], (samples, *values[t].shape[1:])) for t in targets]


UNARY = [
    lambda x: -x,
    lambda x: +x,
    lambda x: x + 1,
    lambda x: 2 * x,
    abs,
    np.round,
    np.square,
    lambda x: x[::-1],
    lambda x: x[1:][:1] + x,
    lambda x: x[::-1] + (x + 1),
    lambda x: x[[2, 0, 1]],
    lambda x: np.sort(x),
    lambda x: np.cumsum(x),
    lambda x: np.diff(x, n=0),
    lambda x: x.sum() + x,
    lambda x: x[0] - x,
    lambda x: np.sum(x, axis=()),
    lambda x: x.reshape(3, 1).ravel(),
    lambda x: np.transpose(x),
    lambda x: np.stack([x[0], x[1], x[0]]),
    lambda x: np.clip(x, -2, 2),
    lambda x: x.astype(float),
    lambda x: x.copy(),
    lambda x: np.concatenate([x[:1], x[1:]]),
]
BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    np.maximum,
    np.minimum,
    lambda x, y: np.where(x > y, x, y),
    lambda x, y: pv.where(x[0] > 0, x, y),
    lambda x, y: x + y[::-1],
    lambda x, y: x - y[0],
]

STEPS = st.lists(
    st.tuples(st.integers(0, len(UNARY) + len(BINARY) - 1), st.integers(0, 10**6), st.integers(0, 10**6)),
    min_size=1,
    max_size=14,
)


def grown(steps: Sequence[tuple[int, int, int]]) -> list[pv.RandomVariable]:
    """Grow an expression graph over three roots and a constant; newer nodes are likelier to be used."""
    pool = [
        pv.Array(pv.DiscreteUniform(-3, 3), 3),
        pv.Array(pv.Normal(0, sd=1), 3),
        pv.Array(pv.Uniform(pv.Normal(-5, sd=0.1), 1), 3),
        pv.Constant(np.array([1.0, -2.0, 3.0])),
    ]
    for which, first, second in steps:
        x, y = pool[-1 - first % min(5, len(pool))], pool[-1 - second % len(pool)]
        pool.append(UNARY[which](x) if which < len(UNARY) else BINARY[which - len(UNARY)](x, y))
    return pool


@settings(max_examples=250, deadline=None, derandomize=True)
@given(STEPS, st.lists(st.integers(0, 20), min_size=1, max_size=3), st.sampled_from([1, 4]))
def test_freed_and_overwritten_arrays_never_show(steps, chosen, samples):
    pool = grown(steps)
    targets = [pool[-1 - c % len(pool)].node for c in chosen]
    try:
        expected = naively(targets, samples, seed=5)
    except pv.ProgramError:
        with pytest.raises(pv.ProgramError):
            Plan(targets).run(samples, rng(5))
        return
    actual = Plan(targets).run(samples, rng(5))
    for left, right in zip(actual, expected, strict=True):
        assert left.shape == right.shape
        np.testing.assert_array_equal(left, right)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(STEPS)
def test_known_values_are_used_and_left_alone(steps):
    pool = grown(steps)
    known = [v.node for v in pool[:4]]
    try:
        values = dict(zip(known, naively(known, 4, seed=5), strict=True))
        expected = naively([*known, pool[-1].node], 4, seed=5)[-1]
    except pv.ProgramError:
        return
    handed = {node: array.copy() for node, array in values.items()}
    actual = Plan([pool[-1].node], known).run(4, rng(99), handed)[0]
    np.testing.assert_array_equal(actual, expected)
    for node, array in handed.items():
        np.testing.assert_array_equal(array, values[node])


class Forbidden(Operation):
    """An operation that must not be evaluated."""

    def evaluate(self, arguments, context):
        raise AssertionError("evaluated although the values are known")


def test_nothing_behind_a_known_value_is_computed():
    hidden = pv.RandomVariable(Node(Forbidden(), (), (), np.dtype(float)))
    known = hidden * 2
    values = np.array([1.0, 2.0])
    result = Plan([(known + 1).node], [known.node]).run(2, rng(), {known.node: values})[0]
    assert result.tolist() == [2.0, 3.0]


def test_extra_targets_at_the_end_change_no_earlier_number():
    x, y, z = pv.Normal(0, sd=1), pv.Poisson(3), pv.Gamma(2, scale=1)
    first = x + y
    alone = Plan([first.node]).run(100, rng(1))
    more = Plan([first.node, (z * x).node, pv.Normal(0, sd=1).node]).run(100, rng(1))
    np.testing.assert_array_equal(alone[0], more[0])


def test_a_target_asked_for_twice_or_shared_stays_whole():
    x = pv.Normal(0, sd=1)
    y = x + 1
    first, second, third, fourth = Plan([y.node, x.node, y.node, (y + 1).node]).run(10, rng())
    np.testing.assert_array_equal(first, second + 1)
    np.testing.assert_array_equal(first, third)
    np.testing.assert_array_equal(fourth, first + 1)


def test_a_view_outlives_the_array_it_looks_at():
    x = pv.Array(pv.DiscreteUniform(0, 9), 3)
    y = x * 1.0
    start, end = Plan([x.node, (y[::-1] + (y + 1)).node]).run(10, rng())
    np.testing.assert_array_equal(end, start[:, ::-1] + start + 1)


def test_constants_are_never_overwritten():
    constant = pv.Constant(np.array([1.0, 2.0]))
    plan = Plan([(constant + pv.Array(pv.Uniform(0, 1), 2)).node, (constant * 3).node])
    for samples in (1, 2, 1):
        assert (plan.run(samples, rng())[1] == [3.0, 6.0]).all()
    assert Plan([constant.node]).run(1, rng())[0].tolist() == [[1.0, 2.0]]


LINKS = 5_000


def test_long_chains_do_not_recurse():
    x = pv.DiscreteUniform(0, 9)
    total = x
    for _ in range(LINKS):
        total = total + 1
    start, end = Plan([x.node, total.node]).run(3, rng())
    assert (end == start + LINKS).all()
    assert x.node in ancestors([total.node])
    replaced = substitute([total.node], {x.node: pv.Constant(5).node})[0]
    assert Plan([replaced]).run(1, rng())[0].tolist() == [5 + LINKS]
    del total, replaced, start, end


def test_wide_sums_do_not_recurse():
    parts = [pv.DiscreteUniform(i, i) for i in range(3000)]
    assert Plan([sum(parts).node]).run(2, rng())[0].tolist() == [sum(range(3000))] * 2


def test_memory_is_counted_at_the_peak():
    x = pv.Array(pv.Normal(0, sd=1), 1000)
    chain = x
    for _ in range(50):
        chain = chain + 1
    assert Plan([chain.sum().node]).bytes_per_sample <= 3 * 8 * 1000
    assert Plan([chain.node, x.node]).random_numbers == 1000


def gathered(result: pv.Result) -> list[np.ndarray]:
    beliefs = (result.posterior, result.prior, result.prediction)
    return [column.array for belief in beliefs for column in belief.batch.columns]


def traced_program(x, y):
    return x.sum() + y


def branching_program(x, y):
    return round(float(x.sum())) if y > 0 else "low"


@pytest.mark.parametrize("program", [traced_program, branching_program])
@pytest.mark.parametrize("observed", [False, True])
def test_same_bits_whatever_the_limits(program, observed):
    prior = {"x": pv.Array(pv.Normal(0, sd=1), 5), "y": pv.Normal(1, sd=2)}
    attack = pv.Attack(program, prior=prior, secret=lambda y: y)
    observation = pv.such_that(lambda output: output != "low" and output > 0) if observed else None
    samples = 40_000 if program is traced_program else 300
    runs = []
    for workers, mebibytes in ((1, 256), (2, 256), (2, 4), (1, 3)):
        with pv.limited(workers=workers, memory_budget=mebibytes * 2**20):
            runs.append(gathered(attack.run(observe=observation, samples=samples, seed=11)))
    for other in runs[1:]:
        for left, right in zip(runs[0], other, strict=True):
            np.testing.assert_array_equal(left, right)


def test_another_seed_gives_other_numbers():
    attack = pv.Attack(traced_program, prior={"x": pv.Array(pv.Normal(0, sd=1), 5), "y": 1.0}, secret="x")
    first, second = (gathered(attack.run(samples=200, seed=seed))[0] for seed in (1, 2))
    assert (first != second).all()


BIG = 2**62
OVERFLOWS = {
    "add": lambda x: x + x,
    "add constant": lambda x: x + BIG,
    "subtract": lambda x: -x - x - 2,
    "multiply": lambda x: x * 2,
    "multiply itself": lambda x: x * x,
    "power": lambda x: x**2,
    "sum": lambda x: sum([x, x, x]),
    "array sum": lambda x: np.stack([x, x, x]).sum(),
    "array nansum": lambda x: np.nansum(np.stack([x, x, x])),
    "array prod": lambda x: np.prod(np.stack([x, x])),
    "array cumsum": lambda x: np.cumsum(np.stack([x, x, x])),
    "array cumprod": lambda x: np.cumprod(np.stack([x, x])),
    "array dot": lambda x: np.stack([x, x]) @ np.array([2, 2]),
    "array add": lambda x: np.stack([x, x]) + np.stack([x, x]),
    "array power": lambda x: np.stack([x, x]) ** 2,
    "square": lambda x: np.square(x),
    "left shift": lambda x: np.left_shift(x, 3),
    "diff": lambda x: np.diff(np.stack([-x, x])),
    "ptp": lambda x: np.ptp(np.stack([-x, x])),
    "negative": lambda x: -(-x - BIG),
    "absolute": lambda x: abs(-x - BIG),
}


@pytest.mark.parametrize("name", OVERFLOWS)
def test_whole_numbers_never_wrap(name):
    x = pv.Choice([BIG, BIG - 1])
    with pytest.raises(pv.ProgramError, match="64-bit range"):
        Plan([OVERFLOWS[name](x).node]).run(10, rng())


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(-(2**62), 2**62), st.integers(-(2**33), 2**33)), min_size=1, max_size=4),
    st.sampled_from([operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod]),
)
def test_whole_numbers_are_right_or_refused(pairs, function):
    left, right = (np.array(column) for column in zip(*pairs, strict=True))
    a, b = (pv.RandomVariable(Node(Forbidden(), (), (), np.dtype(np.int64))) for _ in range(2))
    known = {a.node: left, b.node: right}
    largest, factor = (max(abs(int(value)) for value in column) for column in (left, right))
    bound = largest * factor if function is operator.mul else largest + factor
    plan = Plan([function(a, b).node], list(known))
    if function in (operator.floordiv, operator.mod) and not right.all():
        with pytest.raises(SampleFailure) as failure:
            plan.run(len(pairs), rng(), known)
        assert right[failure.value.index] == 0
    elif function in (operator.add, operator.sub, operator.mul) and bound >= 2**63:
        with pytest.raises(pv.ProgramError, match="64-bit range"):
            plan.run(len(pairs), rng(), known)
    else:
        assert plan.run(len(pairs), rng(), known)[0].tolist() == [function(x, y) for x, y in pairs]


def test_a_constant_beyond_64_bits_is_refused():
    for value in (2**63, 2**64 - 1, 2**70):
        with pytest.raises(pv.ArgumentError, match=r"64 bits|a number"):
            pv.Poisson(3) + value


@pytest.mark.parametrize(
    "program", [lambda x, y: y / x, lambda x, y: y // x, lambda x, y: y % x, lambda x, y: divmod(y, x)[1]]
)
def test_division_by_zero_is_reported_with_the_input(program):
    prior = {"x": pv.DiscreteUniform(0, 2000), "y": pv.Constant(7)}
    with pytest.raises(pv.ProgramError, match=r"ZeroDivisionError.*\n  on the input x = 0, y = 7"):
        pv.Attack(program, prior=prior, secret="x").run(samples=40_000, seed=3)


def test_a_program_beyond_64_bits_is_called_as_it_is():
    attack = pv.Attack(lambda x: (x * 2**40) * 2**40, prior={"x": pv.DiscreteUniform(0, 9)}, secret="x")
    result = attack.run(samples=100, seed=1)
    assert attack.lifting.tier == "python"
    for secret, output in zip(result.prior.batch.values(), result.prediction.batch.values(), strict=True):
        assert output == secret * 2**80


def test_forgiving_puts_zeros():
    x = pv.DiscreteUniform(0, 0)
    assert Plan([(1 / x).node]).run(3, rng(), forgiving=True)[0].tolist() == [0.0] * 3
    with pytest.raises(SampleFailure):
        Plan([(1 / x).node]).run(3, rng())


def test_blocks_of_a_program_on_single_numbers_out_of_many_are_worth_starting():
    cells = pv.Array(pv.Normal(0, sd=1), 10_000)
    by_cell, at_once = Plan([sum(cells[i] for i in range(10_000)).node]), Plan([cells.sum().node])
    assert at_once.block == (2 << 20) // at_once.bytes_per_sample < 30  # a few large operations stay in the cache
    assert 256 <= by_cell.block <= 512
    assert by_cell.block * by_cell.bytes_per_sample < 128 << 20
