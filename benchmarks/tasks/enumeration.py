"""Enumeration: yes/no questions about all states of a birthday, a gender and a place, against NumPy by hand."""

from collections.abc import Callable
from typing import Any

import numpy as np
from harness.tasks import Answer, Growth, Work, register, sized

import privug as pv

Array = np.ndarray


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


BY_HAND: dict[Callable[..., Any], Callable[..., Array]] = {
    birthday: lambda y, d, g, z: (d >= 260) & (d < 267),
    group: lambda y, d, g, z: (y >= 1980) & (y < 1991) & (g == 1) & (z >= 100) & (z < 109) & (d >= 260) & (d < 280),
    student: lambda y, d, g, z: (2010 - y >= 18) & (2010 - y <= 28) & ((z < 40) | (z >= 200)),
    decade: lambda y, d, g, z: (y % 10 == 0) & (d >= 100),
    either: lambda y, d, g, z: ((g == 0) & (y + z // 10 > 1990)) | ((g == 1) & (d * 2 + z < 90)),
}


def ranges(places: int) -> dict[str, tuple[int, int]]:
    return {"byear": (1956, 1992), "bday": (0, 364), "gender": (0, 1), "zip": (0, places - 1)}


def enumerated(places: int) -> Work:
    leak = pv.leakage
    measures = (leak.max_posterior_belief, leak.bayes_vulnerability, leak.min_entropy_leakage, leak.mutual_information)

    def work() -> list[float]:
        found = []
        for program in BY_HAND:
            prior = {name: pv.DiscreteUniform(*ends) for name, ends in ranges(places).items()}
            result = pv.Attack(program, prior, secret=list(prior)).run(engine="exact")
            found += [measure(result.joint).value for measure in measures]
        return found

    return work


def enumerated_by_hand(places: int) -> Work:
    """A grid of all states, the condition as arrays, and the distinct pairs of a state's number and the answer."""

    def work() -> list[float]:
        found = []
        for condition in BY_HAND.values():
            grid = np.meshgrid(*(np.arange(low, high + 1) for low, high in ranges(places).values()), indexing="ij")
            columns = [axis.ravel() for axis in grid]
            states = len(columns[0])
            pairs, counts = np.unique(np.arange(states) * 2 + condition(*columns), return_counts=True)
            answer, joint = pairs % 2, counts / states
            marginal = np.bincount(answer, counts, 2) / states
            likeliest = np.array([joint[answer == one].max(initial=0.0) for one in (0, 1)])
            information = float((joint * np.log2(joint * states / marginal[answer])).sum())
            vulnerable = float(likeliest.sum())
            with np.errstate(invalid="ignore"):
                belief = float(np.nanmax(likeliest / marginal))
            found += [belief, vulnerable, float(np.log2(vulnerable * states)), information]
        return found

    return work


def truth_of_enumeration(places: int) -> list[float]:
    """Return closed forms from how many states say yes: the program is a function and all states are alike."""
    axes = (np.arange(low, high + 1) for low, high in ranges(places).values())
    grid = np.meshgrid(*axes, indexing="ij", sparse=True)
    shape = tuple(high - low + 1 for low, high in ranges(places).values())
    states, found = int(np.prod(shape)), []
    for condition in BY_HAND.values():
        yes = int(np.broadcast_to(condition(*grid), shape).sum())
        shares = [count / states for count in (yes, states - yes) if count]
        entropy = -sum(share * np.log2(share) for share in shares)
        smallest = min(count for count in (yes, states - yes) if count)
        found += [1 / smallest, len(shares) / states, float(np.log2(len(shares))), float(entropy)]
    return found


def enumerated_by_loop(places: int) -> Work:
    """Go through the states of the first few years, for the first question alone."""
    from itertools import product

    def work() -> Answer:
        years, *others = (range(low, high + 1) for low, high in ranges(places).values())
        few = years[: max(1, 200_000 // (len(others[0]) * len(others[1]) * len(others[2])))]
        counts = [0, 0]
        for state in product(few, *others):
            counts[group(*state)] += 1
        return Answer(share=len(few) / len(years) / len(BY_HAND), note="counts only")

    return work


TASKS = register(
    Growth(
        "enumeration",
        "four measures of five yes/no questions about a birthday, a gender and one of n places",
        sized((4, 31, 248), (1, 4)),
        {"privug": enumerated, "loop": enumerated_by_loop, "numpy": enumerated_by_hand},
        truth_of_enumeration,
        within=1e-9,
        bars={"numpy": 1 / 2},
    ),
)
