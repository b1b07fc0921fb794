"""The exact joint of a published case with finite randomness, by plain calls on its whole support."""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np

import privug as pv
from oracles.cases import CASES, _plain, program
from privug.inference.belief import Belief
from privug.model.batch import Batch
from privug.model.node import Kind

LOST_MASS = 1e-12


def support(spec: dict[str, Any], values: dict[str, Any]) -> list[tuple[Any, float]]:
    """The values of one variable with their probabilities, given the variables before it."""
    match spec["dist"]:
        case "uniform_int":
            whole = range(spec["low"], spec["high"] + 1)
            return [(value, 1 / len(whole)) for value in whole]
        case "bernoulli":
            return [(0, 1 - spec["p"]), (1, spec["p"])]
        case "categorical":
            return list(zip(map(_plain, spec["values"]), spec["probs"], strict=True))
        case "conditional":
            return support({_plain(key): inner for key, inner in spec["table"]}[values[spec["on"]]], values)
        case "two_sided_geometric":
            alpha = spec["alpha"]
            farthest = int(np.ceil(np.log(LOST_MASS) / np.log(alpha)))
            return [(k, (1 - alpha) / (1 + alpha) * alpha ** abs(k)) for k in range(-farthest, farthest + 1)]
    raise NotImplementedError(f"{spec['dist']} has no finite support")


def worlds(case: dict[str, Any]) -> Iterable[tuple[dict[str, Any], float]]:
    """Every assignment of the case's variables, with its probability."""
    pending: Iterable[tuple[dict[str, Any], float]] = [({}, 1.0)]
    for name, spec in case["prior"].items():
        pending = _with_rows(pending, spec) if name == "__joint__" else _with_variable(pending, name, spec)
    return pending


def _with_rows(pending: Iterable[Any], spec: dict[str, Any]) -> Iterator[tuple[dict[str, Any], float]]:
    rows = [dict(zip(spec["vars"], _plain(values), strict=True)) for values in spec["support"]]
    for (world, mass), (row, p) in itertools.product(pending, zip(rows, spec["probs"], strict=True)):
        yield {**world, **row}, mass * p


def _with_variable(pending: Iterable[Any], name: str, spec: dict[str, Any]) -> Iterator[tuple[dict[str, Any], float]]:
    for world, mass in pending:
        for value, p in support(spec, world):
            yield {**world, name: value}, mass * p


def is_finite(case: dict[str, Any]) -> bool:
    """Whether `exact_joint` can enumerate the case."""

    def finite(spec: dict[str, Any]) -> bool:
        if spec.get("dist") == "conditional":
            return all(finite(inner) for _, inner in spec["table"])
        return spec.get("dist") in {"uniform_int", "bernoulli", "categorical", "two_sided_geometric", "joint"}

    return all(isinstance(spec, dict) and finite(spec) for spec in case["prior"].values())


def exact_joint(case: dict[str, Any]) -> pv.Joint:
    """The joint of the case's secret and output: a single variable as itself, several as a tuple."""
    return _exact_joint(case["id"])


@cache
def _exact_joint(name: str) -> pv.Joint:
    case = CASES[name]
    run, secret = program(case), case["secret"]
    mass: dict[tuple[Any, Any], float] = defaultdict(float)
    for world, probability in worlds(case):
        hidden = world[secret[0]] if len(secret) == 1 else tuple(world[part] for part in secret)
        mass[hidden, run(**world)] += probability
    weights = np.fromiter(mass.values(), float, len(mass))
    secrets, outputs = (_batch([pair[side] for pair in mass]) for side in (0, 1))
    weights /= weights.sum()
    return pv.Joint(*(Belief(batch, weights, True, spread=Kind.DISCRETE) for batch in (secrets, outputs)))


def _batch(values: list[Any]) -> Batch:
    return Batch.of_values(np.array(values) if {type(value) for value in values} == {int} else values)
