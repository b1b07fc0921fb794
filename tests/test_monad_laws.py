"""`pv.unit`, `pv.bind` and `pv.lift` obey the monad laws, by exact enumeration of the model graph."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from semantics import Distribution, bind, lift

import privug as pv
from privug.model.batch import Column
from privug.model.node import Node
from privug.model.plan import Plan
from privug.prior.choice import ChoiceFamily
from privug.prior.conditional import BindDraw, Choose
from privug.prior.family import Draw
from privug.program.calls import Call
from small_language import FIXED, VALUES, distributions, kernels


def law(*variables: pv.RandomVariable) -> dict[Any, float]:
    """Return the exact joint distribution of quantities that depend on finitely many random values."""
    nodes = [variable.node for variable in variables]
    total: dict[Any, float] = {}
    for known, share in worlds(nodes, {}):
        outcome = tuple(Column(evaluate(node, known), node.levels).decoded()[0] for node in nodes)
        total[outcome] = total.get(outcome, 0.0) + share
    return total


def worlds(targets: Sequence[Node], known: Mapping[Node, Any]) -> Iterator[tuple[Mapping[Node, Any], float]]:
    """Go through the values that the random nodes behind the targets can take together."""
    node = next(filter(None, (undecided(target, known) for target in targets)), None)
    if node is None:
        yield known, 1.0
        return
    for value, share in outcomes(node, known):
        for rest, inner in worlds(targets, {**known, node: value}):
            yield rest, share * inner


def undecided(node: Node, known: Mapping[Node, Any]) -> Node | None:
    """Return a random node that the value still depends on; of a choice, only what is chosen counts."""
    if node in known:
        return None
    needed = list(node.parents)
    if isinstance(node.operation, Choose) and undecided(node.parents[0], known) is None:
        needed = [node.parents[1 + evaluate(node.parents[0], known).item()]]
    elif isinstance(node.operation, Choose):
        needed = [node.parents[0]]
    found = next(filter(None, (undecided(parent, known) for parent in needed)), None)
    return node if found is None and node.is_random else found


def outcomes(node: Node, known: Mapping[Node, Any]) -> Iterator[tuple[Any, float]]:
    if isinstance(node.operation, BindDraw):
        target = node.operation.function(evaluate(node.parents[0], known).item()).node
        yield from ((evaluate(target, inner), share) for inner, share in worlds([target], known))
        return
    if isinstance(node.operation, Call):  # of a program that draws nothing itself
        yield evaluate(node, known), 1.0
        return
    assert isinstance(node.operation, Draw)
    family, parameters = node.operation.family, [evaluate(parent, known) for parent in node.parents]
    if isinstance(family, ChoiceFamily):
        support = np.unique(family.table)
    else:
        low, high = family.frozen(*parameters).support()
        support = np.arange(int(np.min(low)), int(np.max(high)) + 1)
    for value in support:
        share = math.exp(family.log_density(np.array([value]), parameters).item())
        if share > 0:
            yield np.array([value], node.dtype), share


def evaluate(node: Node, known: Mapping[Node, Any]) -> Any:
    return Plan([node], list(known)).run(1, np.random.default_rng(0), known)[0]


def privug(distribution: Distribution[Any]) -> Any:
    """The same distribution as a random variable; one that is certain is a unit."""
    values = list(distribution.probabilities)
    if len(values) == 1:
        return pv.unit(values[0])
    return pv.Choice(values, p=[float(share) for share in distribution.probabilities.values()])


def kernel_of(table: Mapping[Any, Distribution[Any]]) -> Callable[[Any], Any]:
    return lambda value: privug(table[value])


def exactly(distribution: Distribution[Any]) -> Any:
    return pytest.approx({(o,): float(share) for o, share in distribution.probabilities.items()}, abs=1e-12)


NAMES = ("a", "b", "c")
FEW = settings(FIXED, max_examples=25)


@FEW
@given(distributions(VALUES), kernels(NAMES))
def test_bind_of_privug_is_bind(distribution, table):
    bound = pv.bind(privug(distribution), kernel_of(table))
    assert law(bound) == exactly(bind(distribution, table.__getitem__))


@FEW
@given(st.sampled_from(VALUES), kernels(NAMES), distributions(NAMES))
def test_unit_of_privug_is_neutral(value, table, distribution):
    assert law(pv.bind(pv.unit(value), kernel_of(table))) == exactly(table[value])
    assert law(pv.bind(privug(distribution), pv.unit)) == exactly(distribution)
    assert law(pv.bind(privug(distribution), lambda v: pv.unit(f"{v}"))) == exactly(distribution)


@FEW
@given(distributions(VALUES), kernels(), kernels(NAMES))
def test_bind_of_privug_is_associative(distribution, first, second):
    expected = exactly(bind(bind(distribution, first.__getitem__), second.__getitem__))
    source, inner, outer = privug(distribution), kernel_of(first), kernel_of(second)
    assert law(pv.bind(pv.bind(source, inner), outer)) == expected
    assert law(pv.bind(source, lambda value: pv.bind(inner(value), outer))) == expected


def add_half(value: Any) -> Any:
    return value + pv.Bernoulli(0.5)


def coins(value: Any) -> Any:
    return pv.Binomial(2, value / 4)


def branching(value: Any) -> Any:
    return pv.Binomial(2, 0.25) if value > 1 else pv.unit(value)


@pytest.mark.parametrize("second", [add_half, coins, branching])
@pytest.mark.parametrize("first", [add_half, coins, branching])
def test_bind_is_associative_whichever_way_kernels_are_applied(first, second):
    """Kernels that compute with the quantity itself, that need its values, and both mixed."""
    source = pv.DiscreteUniform(0, 2)
    stepwise, nested = pv.bind(pv.bind(source, first), second), pv.bind(source, lambda v: pv.bind(first(v), second))
    assert law(source, stepwise) == pytest.approx(law(source, nested), abs=1e-12)
    expected: dict[Any, float] = {}
    for start in range(3):
        for (middle,), share in law(pv.bind(pv.unit(start), first)).items():
            for (end,), inner in law(pv.bind(pv.unit(middle), second)).items():
                expected[start, end] = expected.get((start, end), 0.0) + share * inner / 3
    assert law(source, stepwise) == pytest.approx({pair: share for pair, share in expected.items() if share}, abs=1e-12)


def test_an_inner_function_of_bind_sees_the_value_of_the_outer_one():
    """The values that an inner function takes from around it are those of this sample, not new draws."""
    source = pv.DiscreteUniform(0, 4)
    kernel = lambda v: pv.bind(pv.Binomial(3, v / 4), lambda w: pv.unit(10 * v + w) if w > 1 else pv.unit(-1))
    bound = pv.bind(source, kernel)
    assert isinstance(bound.node.operation, BindDraw)
    expected = {}
    for v in range(5):
        shares = [math.comb(3, w) * (v / 4) ** w * (1 - v / 4) ** (3 - w) / 5 for w in range(4)]
        expected |= {(v, -1): shares[0] + shares[1], (v, 10 * v + 2): shares[2], (v, 10 * v + 3): shares[3]}
    expected = {pair: share for pair, share in expected.items() if share}
    assert law(source, bound) == pytest.approx(expected, abs=1e-12)
    drawn = zip(*Plan([source.node, bound.node]).run(2000, np.random.default_rng(1)), strict=True)
    assert {(int(v), int(o)) for v, o in drawn} == set(expected)


def test_a_continuous_bind_keeps_quantities_from_outside():
    outside, source = pv.Normal(0, sd=1), pv.Uniform(0, 1)
    bound = pv.bind(source, lambda v: outside + 10 if v > 0.5 else pv.unit(0))
    assert bound.node.kind.value == "mixed"
    v, kept, o = Plan([source.node, outside.node, bound.node]).run(500, np.random.default_rng(1))
    assert (o == np.where(v > 0.5, kept + 10, 0)).all()


def test_a_quantity_from_outside_that_is_rarely_used_is_never_drawn_anew():
    outside, source = pv.Normal(0, sd=1), pv.Uniform(0, 1)
    bound = pv.bind(source, lambda v: outside if v > 0.999 else pv.Normal(0, sd=1))
    with pytest.raises(pv.PriorError, match="make that quantity inside the function"):
        Plan([bound.node]).run(5000, np.random.default_rng(1))


CONTINUOUS_KERNELS = [lambda v: pv.Normal(v, sd=1), lambda v: pv.Normal(0, sd=2) if v > 0 else pv.Normal(v, sd=1)]


@pytest.mark.parametrize("kernel", CONTINUOUS_KERNELS)
def test_unit_is_neutral_for_continuous_quantities_with_the_same_bits(kernel):
    def bits(variable: pv.RandomVariable) -> list[float]:
        return Plan([variable.node]).run(100, np.random.default_rng(7))[0].tolist()

    assert bits(pv.bind(pv.unit(1.5), kernel)) == bits(kernel(1.5))
    assert bits(pv.bind(kernel(1.5), pv.unit)) == bits(kernel(1.5))


def test_bind_is_associative_for_continuous_quantities_with_the_same_bits():
    source, first, second = pv.Normal(0, sd=1), CONTINUOUS_KERNELS[0], lambda v: pv.Laplace(v, 2)
    stepwise, nested = pv.bind(pv.bind(source, first), second), pv.bind(source, lambda v: pv.bind(first(v), second))
    bits = [Plan([bound.node]).run(100, np.random.default_rng(7))[0].tolist() for bound in (stepwise, nested)]
    assert bits[0] == bits[1]


LIFTED = {
    "computed": (lambda v: v * v - v, lambda v: v % 3),
    "by branches": (lambda v: 10 if v > 1 else v, lambda v: "many" if v > 5 else "few"),
    "by a table": (lambda v: [3, 1, 1][v], lambda v: {0: "a", 1: "b", 3: "c"}[v]),
    "sample by sample": (lambda v: int(f"{v}") + 1, lambda v: v // 2),
}


@pytest.mark.parametrize("functions", LIFTED.values(), ids=LIFTED)
@settings(FIXED, max_examples=10)
@given(distribution=distributions(VALUES))
def test_lift_of_privug_is_lift(functions, distribution):
    first, second = functions
    source = privug(distribution)
    once = pv.unit(pv.lift(first)(source))
    assert law(once) == exactly(lift(first)(distribution))
    assert law(once) == pytest.approx(law(pv.bind(source, lambda v: pv.unit(pv.lift(first)(v)))), abs=1e-12)
    twice, composed = pv.lift(second)(once), pv.lift(lambda v: second(first(v)))(source)
    assert law(pv.unit(twice)) == exactly(lift(second)(lift(first)(distribution)))
    assert law(pv.unit(composed)) == exactly(lift(second)(lift(first)(distribution)))


def test_privug_draws_a_variable_once_however_often_it_is_used():
    x = pv.Bernoulli(0.5)
    assert law(pv.lift(lambda v, w: 10 * v + w)(x, x)) == {(0,): 0.5, (11,): 0.5}


def test_the_mean_of_two_numbers_is_two_with_probability_one_ninth():
    x, y = pv.DiscreteUniform(0, 2), pv.DiscreteUniform(0, 2)
    expected = {(k / 2,): count / 9 for k, count in enumerate([1, 2, 3, 2, 1])}
    assert law(pv.lift(lambda x, y: (x + y) / 2)(x, y)) == pytest.approx(expected, abs=1e-12)
