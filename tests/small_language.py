"""Random finite distributions, and random well-typed programs of the language in examples/semantics.py."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from semantics import (
    Abstraction,
    Application,
    Case,
    Construct,
    Datum,
    Distribution,
    Environment,
    Term,
    Variable,
    uniform,
)

VALUES = range(3)
FIXED = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SEARCH = settings(FIXED, database=None, phases=[Phase.generate])


def distributions(outcomes: Sequence[Any]) -> st.SearchStrategy[Distribution[Any]]:
    weights = st.lists(st.integers(0, 5), min_size=len(outcomes), max_size=len(outcomes)).filter(any)
    return weights.map(
        lambda counts: uniform(o for o, count in zip(outcomes, counts, strict=True) for _ in range(count))
    )


def kernels(outcomes: Sequence[Any] = VALUES) -> st.SearchStrategy[dict[int, Distribution[Any]]]:
    return st.fixed_dictionaries({value: distributions(outcomes) for value in VALUES})


@dataclass(frozen=True)
class Arrow:
    source: "Type"
    target: "Type"


Type = str | Arrow
BUILT_BY: dict[str, dict[str, tuple[Type, ...]]] = {
    "Bool": {"False": (), "True": ()},
    "Colour": {"Red": (), "Green": (), "Blue": ()},
    "Maybe": {"Nothing": (), "Just": ("Colour",)},
    "Pair": {"Pair": ("Bool", "Maybe")},
    "Report": {"Report": ("Colour", "Colour", "Bool", "Pair"), "Short": ("Maybe", "Maybe")},
    "Rule": {"Rule": (Arrow("Bool", "Colour"),), "Always": ("Colour",)},
}
INPUTS = {"x": "Bool", "y": "Colour", "z": "Pair"}
FIRST_ORDER = ["Report", "Colour", "Pair"]
PARAMETERS = [*INPUTS, "f", "g"]  # few, so that names hide one another
ARROWS = [
    Arrow(source, target) for source in ("Bool", "Rule", Arrow("Colour", "Maybe")) for target in ("Colour", "Pair")
]
TYPES = [*BUILT_BY, *ARROWS]


def a_term(draw: Any, kind: Type, scope: Mapping[str, Type], size: int) -> Term:
    """Draw a term of a type: a name in scope, an application, or what builds values of the type."""
    names = [name for name, own in scope.items() if own == kind]
    ways = ["build"] + ["name"] * 2 * bool(names) + ["apply"] * 4 * (size > 0)
    match draw(st.sampled_from(ways)):
        case "name":
            return Variable(draw(st.sampled_from(names)))
        case "apply":
            source = draw(st.sampled_from(TYPES))
            operator = a_term(draw, Arrow(source, kind), scope, size - 1)
            return Application(operator, a_term(draw, source, scope, size - 1))
        case _:
            return a_value(draw, kind, scope, max(size - 1, 0))


def a_value(draw: Any, kind: Type, scope: Mapping[str, Type], size: int) -> Term:
    if isinstance(kind, str):
        constructor = draw(st.sampled_from(list(BUILT_BY[kind])))
        return Construct(constructor, tuple(a_term(draw, p, scope, size) for p in BUILT_BY[kind][constructor]))
    if isinstance(kind.source, str) and draw(st.booleans()):
        constructor = draw(st.sampled_from(list(BUILT_BY[kind.source])))
        matched: Type = kind.target
        for part in reversed(BUILT_BY[kind.source][constructor]):
            matched = Arrow(part, matched)
        return Case(constructor, a_term(draw, matched, scope, size), a_term(draw, kind.target, scope, size))
    name = draw(st.sampled_from(PARAMETERS))
    return Abstraction(name, a_term(draw, kind.target, {**scope, name: kind.source}, size))


@st.composite
def programs(draw: Any, inputs: Mapping[str, Type]) -> Term:
    """Draw a term, over some inputs, whose value holds no function: only those can be compared."""
    return a_term(draw, draw(st.sampled_from(FIRST_ORDER)), inputs, 3)


def data(kind: Type) -> list[Datum]:
    assert isinstance(kind, str)
    built: list[Datum] = []
    for constructor, parts in BUILT_BY[kind].items():
        choices: list[tuple[Datum, ...]] = [()]
        for part in parts:
            choices = [(*chosen, datum) for chosen in choices for datum in data(part)]
        built += [Construct(constructor, chosen) for chosen in choices]
    return built


@st.composite
def priors(draw: Any) -> Distribution[Environment]:
    """Draw what is known of the inputs; they may depend on one another."""
    environments = st.tuples(*(st.tuples(st.just(name), st.sampled_from(data(kind))) for name, kind in INPUTS.items()))
    return uniform(draw(st.lists(environments, min_size=2, max_size=6)))


bodies = programs(INPUTS)
