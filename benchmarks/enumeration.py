"""Worst-case checks by enumeration: yes/no questions about millions of states, against NumPy by hand.

The questions are like those that Mardziel, Magill, Hicks and Srivatsa (JCS 2013) decide by: a birth year, a birthday, a
gender and a place, all equally likely, and a program that says whether somebody belongs to a group. By hand means a
grid of all states, the condition as an expression of arrays, and the distinct pairs of state and answer by `np.unique`,
from which four measures follow: once with a state's place in the grid for the state, which is as short as it gets and
what the ratio is taken of, and once with the rows of the grid, as one would write it first.
"""

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from measuring import Bar, Outcome, Timing, compare, seconds

import privug as pv
from privug import leakage

RANGES = {"byear": (1956, 1992), "bday": (0, 364), "gender": (0, 1), "zip": (0, 247)}
MEASURES = (
    leakage.max_posterior_belief,
    leakage.bayes_vulnerability,
    leakage.min_entropy_leakage,
    leakage.mutual_information,
)
ROUNDS = 5


def birthday(byear: Any, bday: Any, gender: Any, zip: Any) -> Any:
    return 260 <= bday < 267


def group(byear: Any, bday: Any, gender: Any, zip: Any) -> Any:
    return 1980 <= byear < 1991 and gender == 1 and 100 <= zip < 109 and 260 <= bday < 280


def student(byear: Any, bday: Any, gender: Any, zip: Any) -> Any:
    age = 2010 - byear
    return 18 <= age <= 28 and (zip < 40 or zip >= 200)


def decade(byear: Any, bday: Any, gender: Any, zip: Any) -> Any:
    return byear % 10 == 0 and bday >= 100


def either(byear: Any, bday: Any, gender: Any, zip: Any) -> Any:
    return (gender == 0 and byear + zip // 10 > 1990) or (gender == 1 and bday * 2 + zip < 90)


BY_HAND: dict[Callable[..., Any], Callable[..., Any]] = {
    birthday: lambda y, d, g, z: (d >= 260) & (d < 267),
    group: lambda y, d, g, z: (y >= 1980) & (y < 1991) & (g == 1) & (z >= 100) & (z < 109) & (d >= 260) & (d < 280),
    student: lambda y, d, g, z: (2010 - y >= 18) & (2010 - y <= 28) & ((z < 40) | (z >= 200)),
    decade: lambda y, d, g, z: (y % 10 == 0) & (d >= 100),
    either: lambda y, d, g, z: ((g == 0) & (y + z // 10 > 1990)) | ((g == 1) & (d * 2 + z < 90)),
}


def asked(program: Callable[..., Any]) -> list[float]:
    prior = {name: pv.DiscreteUniform(*ends) for name, ends in RANGES.items()}
    result = pv.Attack(program, prior, secret=list(RANGES)).run(engine="exact")
    return [measure(result.joint).value for measure in MEASURES]


def measured(answer: np.ndarray, counts: np.ndarray, states: int) -> list[float]:  # type: ignore[type-arg]
    """Return the four measures from the answer of each distinct pair, and how often it came up."""
    joint, prior = counts / states, 1 / states
    marginal = np.bincount(answer, counts, 2) / states
    likeliest = np.array([joint[answer == one].max(initial=0.0) for one in (0, 1)])
    bits = float((joint * np.log2(joint / prior / marginal[answer])).sum())
    return [float((likeliest / marginal).max()), float(likeliest.sum()), np.log2(likeliest.sum() / prior), bits]


def states_by_hand() -> list[np.ndarray]:  # type: ignore[type-arg]
    axes = (np.arange(low, high + 1) for low, high in RANGES.values())
    return [axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")]


def by_hand(program: Callable[..., Any]) -> list[float]:
    columns = states_by_hand()
    places = np.arange(len(columns[0]))
    pairs, counts = np.unique(places * 2 + BY_HAND[program](*columns), return_counts=True)
    return measured(pairs % 2, counts, len(places))


def by_rows(program: Callable[..., Any]) -> list[float]:
    columns = states_by_hand()
    rows = np.stack([*columns, BY_HAND[program](*columns)], axis=1)
    pairs, counts = np.unique(rows, axis=0, return_counts=True)
    return measured(pairs[:, -1], counts, len(rows))


def timed(program: Callable[..., Any]) -> Timing:
    if not np.allclose(asked(program), by_hand(program), rtol=1e-9, atol=1e-12):
        raise AssertionError(f"{program.__name__}: {asked(program)} is not {by_hand(program)}")
    return compare(partial(asked, program), partial(by_hand, program), ROUNDS)


def enumeration() -> Outcome:
    times = {program.__name__: timed(program) for program in BY_HAND}
    listed = "; ".join(f"{name} {one.ratio:.2f} ({one.left:.2f} s, {one.right:.2f} s)" for name, one in times.items())
    states = int(np.prod([high - low + 1 for low, high in RANGES.values()]))
    rows = seconds(lambda: by_rows(group)) / statistics.median(one.left for one in times.values())
    detail = f"{len(MEASURES)} measures of {states:,} states: {listed}; np.unique of rows takes {rows:.0f} times longer"
    return Outcome("enumeration", max(one.ratio for one in times.values()), Bar(2), detail)


BENCHMARKS = {"enumeration": enumeration}
