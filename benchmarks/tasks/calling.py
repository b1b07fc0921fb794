"""Programs that can only be called, sample by sample, against a plain loop that draws its inputs; compiled programs."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from harness.tasks import Answer, Task, Work, register, sized

import privug as pv

ROWS = 100
COLLATZ = 1_000
SAMPLES = sized(3_000, 300)
POSTCODES = ["2300", "2400", "2500", "2600"]
Rng = np.random.Generator


class Person(NamedTuple):
    """A row as one would write it by hand."""

    postcode: str
    age: float


# The text of a number keeps these programs in the python tier.
def nested_loops(arr, c):  # type: ignore[no-untyped-def]
    """The paper's f(arr, c), with a decision on each value."""
    total = len(str(arr[0])) - 1
    for _ in range(c):
        for value in arr:
            if value % 2:
                total += value
    return total


def group_by(records):  # type: ignore[no-untyped-def]
    """The largest mean age of a postcode."""
    groups = {}
    str(records[0].age)
    for row in records:
        groups.setdefault(row.postcode, []).append(row.age)
    return max(sum(ages) / len(ages) for ages in groups.values())


def one_branch(x):  # type: ignore[no-untyped-def]
    return 1 if str(x)[0] != "-" and x > 1 else 0


def collatz(numbers):  # type: ignore[no-untyped-def]
    """How many steps all numbers take to 1: a loop of random length, compiled and not traced."""
    steps = 0
    for number in numbers:
        while number != 1:
            number = number // 2 if number % 2 == 0 else 3 * number + 1
            steps += 1
    return steps


def by_privug(
    program: Callable[..., Any], prior: Callable[[], dict[str, Any]], secret: Any, tier: str, samples: int
) -> Work:
    """Return the work of a run, of an attack that has been lifted before, with one worker."""
    pv.configure(workers=1, native=tier == "native")
    attack = pv.Attack(program, prior(), secret)

    def work() -> Answer:
        result = attack.run(engine="sample", samples=samples, seed=1)
        assert attack.lifting.tier == tier, attack.lifting.tier
        return Answer([float(result.prediction.mean())], samples)

    return work


def by_loop(program: Callable[..., Any], draw: Callable[[Rng], tuple[Any, ...]], samples: int) -> Work:
    def work() -> Answer:
        rng = np.random.Generator(np.random.SFC64(1))
        outputs = [program(*draw(rng)) for _ in range(samples)]
        return Answer([math.fsum(outputs) / samples], samples)

    return work


def people(rng: Rng) -> tuple[list[Person]]:
    codes, ages = rng.integers(4, size=ROWS).tolist(), rng.normal(55, 3.5, ROWS).tolist()
    return ([Person(POSTCODES[code], age) for code, age in zip(codes, ages, strict=True)],)


def called(
    program: Callable[..., Any],
    prior: Callable[[], dict[str, Any]],
    secret: Any,
    draw: Callable[[Rng], tuple[Any, ...]],
    *,
    samples: int = SAMPLES,
    few: int | None = None,
    tier: str = "python",
    bar: float | None = 1 / 1.3,
    **truth: Any,
) -> Task:
    name = f"{tier}-{program.__name__.replace('_', '-')}"
    cells = {
        "privug": partial(by_privug, program, prior, secret, tier, samples),
        "loop": partial(by_loop, program, draw, few or samples),
    }
    question = f"{samples:,} calls of {program.__name__} in the {tier} tier, inputs drawn, one worker"
    return Task(name, question, cells, samples=samples, bars={} if bar is None else {"loop": bar}, **truth)


def normal_people() -> dict[str, Any]:
    row = pv.Row(postcode=pv.Choice(POSTCODES), age=pv.Normal(55, sd=3.5))
    return {"records": pv.Records(ROWS, row)}


def lengths() -> list[int]:
    return [collatz([number]) for number in range(1, COLLATZ + 1)]


def above_one() -> float:
    return math.erfc(1 / math.sqrt(2)) / 2


TASKS = register(
    called(
        nested_loops,
        lambda: {"arr": pv.Array(pv.DiscreteUniform(0, 9), ROWS), "c": 10},
        lambda arr: arr[0],
        lambda rng: (rng.integers(10, size=ROWS).tolist(), 10),
        oracle=lambda: [10 * ROWS * 2.5],  # 1 + 3 + 5 + 7 + 9 of ten values
        scale=10 * math.sqrt(ROWS * (16.5 - 2.5**2)),
    ),
    called(group_by, normal_people, lambda records: records[0].age, people),
    called(
        one_branch,
        lambda: {"x": pv.Normal(0, sd=1)},
        "x",
        lambda rng: (rng.standard_normal(),),
        samples=50 * SAMPLES,
        bar=None,
        oracle=lambda: [above_one()],
        scale=math.sqrt(above_one() * (1 - above_one())),
    ),
    called(
        collatz,
        lambda: {"numbers": pv.Array(pv.DiscreteUniform(1, COLLATZ), 20)},
        lambda numbers: numbers[0],
        lambda rng: (rng.integers(1, COLLATZ + 1, 20).tolist(),),
        samples=20_000,
        few=500,
        tier="native",
        bar=30,
        oracle=lambda: [float(sum(lengths())) / COLLATZ * 20],
        scale=float(np.std(lengths())) * math.sqrt(20),
    ),
)
