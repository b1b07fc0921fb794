"""The model graph as a PyMC model: one variable for each random root, the observation as a potential."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

from privug.errors import UnsuitableEngine
from privug.inference.chains.problem import Problem
from privug.inference.chains.translation import Backend, Functions, Untranslatable, log_density, resolved, translate
from privug.model.node import Array, Kind, Node
from privug.model.plan import Plan
from privug.model.traits.table import traits_of
from privug.prior.family import Family, family_of


class PyTensor(Backend):
    """How expressions are written in PyTensor."""

    formulas = Functions(lambda name: resolved(traits_of(name).pytensor or name, name, pt))

    def constant(self, array: Array | float) -> Any:
        return pt.as_tensor_variable(np.asarray(array))

    def cast(self, value: Any, dtype: np.dtype[Any]) -> Any:
        if value.dtype == dtype.name:
            return value
        return pt.neq(value, 0) if dtype.kind == "b" else pt.cast(value, dtype.name)

    def function(self, name: str) -> Callable[..., Any]:
        return resolved(traits_of(name).pytensor, name, pt)

    def own_density(self, family: Family, value: Any, parameters: Sequence[Any]) -> Any | None:
        named = family.pymc(*parameters)
        return None if named is None else pm.logp(getattr(pm, named[0]).dist(**named[1]), value)


def build(problem: Problem) -> tuple[Any, bool]:
    """Return the PyMC model of a problem, and whether the observation had to be left to a black box."""
    values: dict[Node, Any] = {}
    with pm.Model() as model:
        for name, root in zip(problem.names, problem.roots, strict=True):
            try:
                parameters = translate(root.parents, PyTensor(), values)
                values[root] = _variable(name, root, parameters)
            except Untranslatable as error:
                raise UnsuitableEngine(
                    f"engine='pymc' has no counterpart of {error}, on which the input {name!r} depends; "
                    "choose engine='sample' or 'rare'"
                ) from None
        opaque = _observe(problem, values)
    return model, opaque


def _variable(name: str, root: Node, parameters: Sequence[Any]) -> Any:
    """Make the PyMC variable of a root; the result is its value as it stands in our batches."""
    family = family_of(root)
    named = family.pymc(*parameters)
    if named is not None:
        return getattr(pm, named[0])(name, **named[1], shape=root.shape)
    if family.table is not None:
        weights = parameters[0] if parameters else np.full(len(family.table), 1.0 / len(family.table))
        return pt.as_tensor_variable(family.table)[pm.Categorical(name, p=weights, shape=root.shape)]
    if family.factor is not None:
        standard = pm.Normal(name, 0.0, 1.0, shape=root.shape)
        return parameters[0] + pt.dot(standard, family.factor.T)
    if family.kind is Kind.MIXED:
        raise Untranslatable(f"the distribution {family.name}")
    return _custom(name, root, family, parameters)


def _custom(name: str, root: Node, family: Family, parameters: Sequence[Any]) -> Any:
    """Make a PyMC variable with the log density and the draws of a family that PyMC does not have."""

    def logp(value: Any, *own: Any) -> Any:
        return log_density(PyTensor(), family, value, own)

    def random(*own: Any, rng: Any = None, size: Any = None) -> Any:
        arrays = [np.asarray(p)[np.newaxis] for p in own]
        shape = root.shape if size is None else tuple(size)
        generator = rng if rng is not None else np.random.default_rng(0)
        placed = [_at_rank(a, len(shape), family.chooses and k == 0) for k, a in enumerate(arrays)]
        return family.draw(generator, 1, shape, placed)[0]

    return pm.CustomDist(
        name, *parameters, logp=logp, random=random, shape=root.shape, dtype=family.dtype.name,
        ndims_params=[int(family.chooses), *(0 for _ in parameters[1:])], ndim_supp=0,
    )  # fmt: skip


def _at_rank(array: Array, rank: int, is_vector: bool) -> Array:
    return array if is_vector else array.reshape(1, *(1,) * max(0, rank - (array.ndim - 1)), *array.shape[1:])


def _observe(problem: Problem, values: dict[Node, Any]) -> bool:
    """Add the observation to the model at hand; say whether it had to be left to a black box."""
    try:
        weight, *conditions = translate([problem.log_weight, *problem.conditions], PyTensor(), dict(values))
    except Untranslatable:
        present = [root for root in problem.roots if root in values]
        pm.Potential("observation", BlackBox(problem, present)(*(values[root] for root in present)))
        return True
    for condition in conditions:
        weight = pt.where(condition, weight, -np.inf)
    pm.Potential("observation", weight)
    return False


class BlackBox(Op):  # type: ignore[misc]
    """The log weight of one sample as Privug itself computes it; nothing is known of its gradient."""

    def __init__(self, problem: Problem, roots: Sequence[Node]) -> None:
        self.roots = list(roots)
        self.plan = Plan([problem.log_weight, *problem.conditions], self.roots)
        self.rng = np.random.Generator(np.random.SFC64(0))

    def make_node(self, *inputs: Any) -> Any:
        """Describe inputs and output to PyTensor."""
        return Apply(self, [pt.as_tensor_variable(value) for value in inputs], [pt.dscalar()])

    def perform(self, node: Any, inputs: Sequence[Array], outputs: Any) -> None:
        """Compute the log weight."""
        values = {root: np.asarray(value)[np.newaxis] for root, value in zip(self.roots, inputs, strict=True)}
        failed = np.zeros(1, np.bool_)
        weight, *conditions = self.plan.run(1, self.rng, values, failed=failed)
        holds = not failed[0] and all(condition[0] for condition in conditions) and not np.isnan(weight[0])
        outputs[0][0] = np.asarray(weight[0] if holds else -np.inf, dtype=np.float64)
