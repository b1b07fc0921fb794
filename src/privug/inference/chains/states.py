"""Discrete roots with few values summed out, so that gradients lead through all that is left."""

import itertools
import math
from typing import Any

import numpy as np

from privug.errors import UnsuitableEngine
from privug.inference.chains.problem import Problem
from privug.inference.chains.sizes import constant_array, in_terms_of, together
from privug.model.node import ConstantValue, Kind, Node
from privug.prior.choice import ChoiceFamily
from privug.prior.discrete import BERNOULLI
from privug.prior.family import ScalarFamily, family_of

MOST_STATES = 300


def summed_out(problem: Problem) -> Problem:
    """Return the problem over its continuous roots alone, if the values of the discrete ones can be listed."""
    discrete = [root for root in problem.roots if root.kind is Kind.DISCRETE]
    if not discrete or len(discrete) == len(problem.roots) or problem.strata[0].sizes:
        return problem
    supports = [_support(root) for root in discrete]
    listed = [support for support in supports if support is not None]
    if len(listed) < len(discrete) or math.prod(map(len, listed)) > MOST_STATES:
        return problem
    only = problem.strata[0]
    strata = []
    for values in itertools.product(*listed):
        state = dict(zip(discrete, values, strict=True))
        images = {root: _fixed(root, value) for root, value in state.items()}
        strata.append(in_terms_of(only, images, state))
    try:
        return together(problem.question, only.case, strata, problem.seed, problem.remarks)
    except UnsuitableEngine:
        return problem


def _support(root: Node) -> list[Any] | None:
    """Return the values of a discrete root as they stand in a batch, if they are few and known."""
    family = family_of(root)
    if root.shape:
        return None
    if isinstance(family, ChoiceFamily):
        return list(dict.fromkeys(family.table.tolist()))
    if family is BERNOULLI:
        return [0, 1]
    if not isinstance(family, ScalarFamily) or not all(isinstance(p.operation, ConstantValue) for p in root.parents):
        return None
    low, high = family.frozen(*(constant_array(parent)[0] for parent in root.parents)).support()
    return list(range(int(low), int(high) + 1)) if high - low < MOST_STATES else None


def _fixed(root: Node, value: Any) -> Node:
    """Return a constant in place of a root."""
    return Node(ConstantValue(np.array([value], root.dtype)), (), (), root.dtype, root.levels, Kind.DISCRETE)
