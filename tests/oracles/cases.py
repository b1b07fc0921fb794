"""Known answers published by other tools or derived by algebra, as attacks that Privug can run."""

import json
from pathlib import Path
from typing import Any

import numpy as np

import privug as pv

CASES = {case["id"]: case for case in json.loads((Path(__file__).parent / "cases.json").read_text(encoding="utf-8"))}


def distribution(spec: dict[str, Any], variables: dict[str, Any]) -> Any:
    match spec["dist"]:
        case "uniform_int":
            return pv.DiscreteUniform(spec["low"], spec["high"])
        case "bernoulli":
            return pv.Bernoulli(spec["p"])
        case "categorical":
            return pv.Choice([_plain(value) for value in spec["values"]], p=spec["probs"])
        case "conditional":
            table = {_plain(value): distribution(inner, variables) for value, inner in spec["table"]}
            return pv.given(variables[spec["on"]], table)
        case "two_sided_geometric":
            return pv.DiscreteLaplace(-1 / np.log(spec["alpha"]))
        case "normal":
            one = pv.Normal(spec["mu"], sd=spec["sigma"])
            return pv.Array(one, spec["iid"]) if "iid" in spec else one
        case "uniform":
            return pv.Uniform(spec["low"], spec["high"])
        case "laplace":
            return pv.Laplace(spec["loc"], spec["scale"])
    raise AssertionError(spec)


def _plain(value: Any) -> Any:
    return tuple(map(_plain, value)) if isinstance(value, list) else value


def prior(case: dict[str, Any]) -> dict[str, Any]:
    variables: dict[str, Any] = {}
    for name, spec in case["prior"].items():
        if name == "__joint__":
            together = pv.Choice([_plain(value) for value in spec["support"]], p=spec["probs"])
            variables.update(zip(spec["vars"], together, strict=True))
        else:
            variables[name.split("_i ")[0]] = distribution(spec, variables)
    return variables


def program(case: dict[str, Any]) -> Any:
    namespace: dict[str, Any] = {}
    exec(case["program"], namespace)
    return namespace["program"]


def observation(case: dict[str, Any]) -> pv.Observation | None:
    match case["observation"]:
        case None:
            return None
        case {"equals": value}:
            return pv.equals(_plain(value))
        case {"interval": [low, high]}:
            return pv.between(low, high)
    raise AssertionError(case["observation"])


def attack(case: dict[str, Any]) -> pv.Attack:
    secret = case["secret"]
    return pv.Attack(program(case), prior(case), secret[0] if len(secret) == 1 else secret)


def query(case: dict[str, Any]) -> Any:
    """The case's query, as a function of the inputs that it names."""
    names = [name for name in prior(case) if name in case["query"]]
    return eval(f"lambda {', '.join(names)}: {case['query']}")
