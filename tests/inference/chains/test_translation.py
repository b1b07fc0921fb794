"""Expressions in PyTensor have the values that the model graph itself gives."""

import math
import statistics

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode

import privug as pv
from privug.inference.chains.pymc_engine import PyTensor
from privug.inference.chains.translation import Untranslatable, log_density, translate
from privug.model.node import Node, ancestors
from privug.model.plan import Plan
from privug.model.structure import flatten
from privug.model.variable import as_node
from privug.prior.family import family_of
from privug.program import lifting

SAMPLES = 12
X = pv.Normal(0.3, sd=1)
Y = pv.Uniform(0.5, 2)
N = pv.DiscreteUniform(1, 6)
B = pv.Bernoulli(0.4)
V = pv.Array(pv.Normal(1, sd=2), 5)
M = pv.Array(pv.Normal(0, sd=1), (2, 3))
C = pv.Choice(["red", "green", "blue"])
ROWS = pv.Records(10, pv.Row(age=pv.Normal(40, sd=9), ill=pv.Bernoulli(0.3), kind=pv.Choice(["a", "b"])))


def mean_age_of_ill(rows):
    return sum(r.age for r in rows if r.ill == 1) / len(rows)


def old_and_ill(rows):
    return sum(r.age > 40 and r.ill == 1 for r in rows)


def of_kind_a(rows):
    return sum(r.age for r in rows if r.kind == "a")


def oldest(rows):
    return max(r.age for r in rows)


def spread(v):
    return statistics.stdev(v) + math.sqrt(abs(v[0])) + math.log(2 + v[1] ** 2)


PROGRAMS = {
    "arithmetic": lambda: (X + 2 * Y - 1) / Y - X**2 + abs(X) + (-X) // 1 + X % 1,
    "whole numbers": lambda: (N * 3 + B) // 2 + N % 4 - (N > 3) + (B == 1) * (N != 2),
    "truth values": lambda: ((X > 0) & (Y < 1)) | ~(N >= 3) ^ (B == 0),
    "adding truth values": lambda: (X > 0) + (Y > 1),
    "numpy adding truth values": lambda: np.add(X > 0, Y > 1),
    "functions": lambda: np.exp(X) + np.log(Y) + np.sqrt(Y) + np.sin(X) + np.arctan(X) + np.tanh(X) + np.expm1(X),
    "more functions": lambda: np.maximum(X, Y) - np.minimum(X, 0.1) + np.sign(X) + np.log1p(Y) + np.hypot(X, Y),
    "choices": lambda: pv.where(X > 0, Y, pv.where(N > 2, 5, -1)),
    "rounding": lambda: round(X, 1) + np.round(Y, 2) + round(X) + np.floor(X) + math.ceil(Y) + np.rint(X),
    "casting": lambda: X.astype(int) + (X > 0).astype(float) + N.astype(bool),
    "sums": lambda: V.sum() + V.mean() + V.std() + V.var(ddof=1) + V.min() - V.max() + np.median(V) + V.prod(),
    "axes": lambda: M.sum(axis=0) + M.mean(axis=1).sum() + np.ptp(M, axis=0),
    "any and all": lambda: (V > 0).any() + 2 * (V > -9).all() + (V > 1).sum(),
    "order": lambda: np.sort(V)[-2] + V.argmax() + np.cumsum(V)[3] + np.diff(V)[0],
    "shapes": lambda: M.T.reshape(6)[1:4] + np.concatenate([V, V])[3:6] + np.stack([X, Y, X]),
    "products": lambda: M @ np.arange(3.0) + (V @ V),
    "elements": lambda: V[1] + V[N - 3] + V[-1] + V[1:3].sum(),
    "categories": lambda: (C == "red") * 1 + pv.given(C, {"red": 1.5, "green": Y, "blue": X}),
    "tables": lambda: pv.given(N, {1: 2.0, 2: X, 3: Y, 4: 0.0, 5: 1.0, 6: X * Y}),
    "rows": lambda: lifted(mean_age_of_ill, ROWS.table()),
    "plates": lambda: lifted(mean_age_of_ill, ROWS.plated()),
    "counting plates": lambda: lifted(old_and_ill, ROWS.plated()),
    "categories in plates": lambda: lifted(of_kind_a, ROWS.plated()),
    "extremes of plates": lambda: lifted(oldest, ROWS.plated()),
    "statistics": lambda: lifted(spread, V),
}


def lifted(program, *arguments):
    return lifting.apply_traced(program, list(arguments)).output


def both_ways(nodes):
    """Evaluate nodes by themselves and by way of PyTensor, one sample at a time."""
    roots = [node for node in ancestors(nodes) if node.is_random]
    values = Plan(roots).run(SAMPLES, np.random.default_rng(5))
    expected = Plan(nodes, roots).run(SAMPLES, np.random.default_rng(0), dict(zip(roots, values, strict=True)))
    symbols = [pt.tensor(dtype=root.dtype.name, shape=root.shape) for root in roots]
    outputs = translate(nodes, PyTensor(), dict(zip(roots, symbols, strict=True)))
    quick = Mode(linker="py", optimizer=None)
    function = pytensor.function(symbols, outputs, mode=quick, on_unused_input="ignore")
    found = [function(*(value[sample] for value in values)) for sample in range(SAMPLES)]
    return expected, [np.stack(column) for column in zip(*found, strict=True)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_expressions_have_the_values_of_the_graph(name):
    nodes = [as_node(leaf) for leaf in flatten(PROGRAMS[name]())[1]]
    expected, found = both_ways(nodes)
    for node, ours, theirs in zip(nodes, expected, found, strict=True):
        assert theirs.shape == (SAMPLES, *node.shape)
        np.testing.assert_allclose(theirs.astype(float), ours.astype(float), rtol=1e-9, atol=1e-12)


DENSITIES = {
    "uniform": pv.Uniform(1, 4),
    "normal": pv.Normal(1, sd=3),
    "truncated normal": pv.TruncatedNormal(1, sd=3, low=0, high=5),
    "lognormal": pv.LogNormal(0.1, sd=0.5),
    "student": pv.StudentT(4, 1, 2),
    "cauchy": pv.Cauchy(1, 2),
    "laplace": pv.Laplace(1, 2),
    "exponential": pv.Exponential(scale=3),
    "gamma": pv.Gamma(2.5, scale=3),
    "beta": pv.Beta(2, 3),
    "bernoulli": pv.Bernoulli(0.3),
    "binomial": pv.Binomial(10, 0.3),
    "poisson": pv.Poisson(4),
    "geometric": pv.Geometric(0.3),
    "whole": pv.DiscreteUniform(-2, 5),
    "mixture": pv.Mixture([pv.Normal(0, sd=1), pv.Uniform(1, 2)], weights=[0.25, 0.75]),
}


@pytest.mark.parametrize("name", DENSITIES)
def test_densities_are_those_of_the_families(name):
    root = DENSITIES[name].node
    family, parameters = family_of(root), [parent.operation.array for parent in root.parents]
    values = Plan([root]).run(SAMPLES, np.random.default_rng(3))[0]
    at = pt.vector(dtype=root.dtype.name)
    expression = log_density(PyTensor(), family, at, [PyTensor().constant(array[0]) for array in parameters])
    function = pytensor.function([at], expression, mode=Mode(linker="py", optimizer=None))
    np.testing.assert_allclose(function(values), family.log_density(values, parameters), rtol=1e-7)


def test_what_cannot_be_written_is_named():
    def opaque(x):
        return float(str(x)[:3])

    node = lifting.apply(opaque, [X]).output.node
    with pytest.raises(Untranslatable, match="the program"):
        translate([node], PyTensor(), {X.node: pt.dscalar()})


def test_known_nodes_are_not_looked_behind():
    inner = X * 2
    outer = (inner + 1).node
    symbol = pt.dscalar()
    values: dict[Node, object] = {inner.node: symbol}
    expression = translate([outer], PyTensor(), values)[0]
    assert pytensor.function([symbol], expression, mode=Mode(linker="py", optimizer=None))(4.0) == 5.0
