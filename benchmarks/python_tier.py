"""The python tier: programs that cannot be traced, against a plain loop over the same inputs."""

import gc
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from measuring import Bar, Outcome, compare

import privug as pv
from privug import settings

ROWS = 100
SAMPLES = 3_000
TIER_BAR = Bar(1.3)
POSTCODES = ["2300", "2400", "2500", "2600"]


class Person(NamedTuple):
    """A row as one would write it by hand."""

    postcode: str
    age: float


# `try` keeps these programs in the python tier, whatever the traced tier learns to do.
def nested_loops(arr, c):  # type: ignore[no-untyped-def]
    """The paper's f(arr, c) of RQ3, with a decision on each value."""
    total = 0
    try:
        for _ in range(c):
            for value in arr:
                if value % 2:
                    total += value
    except TypeError:
        return None
    return total


def group_by(records):  # type: ignore[no-untyped-def]
    """The largest mean age of a postcode."""
    groups = {}
    try:
        for row in records:
            groups.setdefault(row.postcode, []).append(row.age)
    except TypeError:
        return None
    return max(sum(ages) / len(ages) for ages in groups.values())


def one_branch(x):  # type: ignore[no-untyped-def]
    try:
        return "high" if x > 1 else "low"
    except TypeError:
        return None


def person() -> pv.Row:
    return pv.Row(postcode=pv.Choice(POSTCODES), age=pv.Normal(55, sd=3.5))


def overhead(
    program: Callable[..., Any],
    prior: dict[str, Any],
    secret: Any,
    inputs: Callable[..., tuple[Any, ...]],
    samples: int = SAMPLES,
    bar: Bar | None = TIER_BAR,
) -> Outcome:
    """Time a run against plain calls; `inputs` is the query that gives the arguments of each call."""
    attack = pv.Attack(program, prior, secret)
    run = partial(attack.run, engine="sample", samples=samples, seed=1)
    with settings.limited(workers=1):
        result = run()
        # Quantities asked for later do not change the draws: these are the very inputs of the run.
        calls = result.belief(inputs).batch.values()
        agrees = [program(*arguments) for arguments in calls] == result.prediction.batch.values()
        gc.freeze()  # or the run would pay for collecting garbage among the inputs of the plain calls
        try:
            timing = compare(run, lambda: [program(*arguments) for arguments in calls], rounds=9)
        finally:
            gc.unfreeze()
    each = f"{timing.left / samples * 1e6:.3g} us a call against {timing.right / samples * 1e6:.3g} us"
    checked = "" if agrees else "; OUTPUTS DIFFER from plain calls"
    detail = f"tier {attack.lifting.tier}, {samples:,} calls, one worker; {each}; {timing}{checked}"
    return Outcome(f"python-{program.__name__.replace('_', '-')}", timing.ratio, bar, detail)


def nested_loops_overhead() -> Outcome:
    prior = {"arr": pv.Array(pv.DiscreteUniform(0, 9), ROWS), "c": 10}
    return overhead(nested_loops, prior, lambda arr: arr[0], lambda arr, c: (arr, c))


def group_by_overhead() -> Outcome:
    """Against rows that lie ready: says what building the rows costs, which such a cheap program cannot hide."""
    prior = {"records": pv.Records(ROWS, person())}
    return overhead(group_by, prior, lambda records: records[0].age, lambda records: (records,), bar=None)


def group_by_drawn_overhead() -> Outcome:
    """Against a plain loop that draws its inputs with NumPy and makes named tuples of them, as one would by hand."""
    prior = {"records": pv.Records(ROWS, person())}
    attack = pv.Attack(group_by, prior, secret=lambda records: records[0].age)

    def by_hand() -> list[float]:
        rng = np.random.Generator(np.random.SFC64(1))
        outputs = []
        for _ in range(SAMPLES):
            codes, ages = rng.integers(4, size=ROWS).tolist(), rng.normal(55, 3.5, ROWS).tolist()
            rows = [Person(POSTCODES[code], age) for code, age in zip(codes, ages, strict=True)]
            outputs.append(group_by(rows))
        return outputs

    with settings.limited(workers=1):
        timing = compare(partial(attack.run, engine="sample", samples=SAMPLES, seed=1), by_hand, rounds=9)
    detail = f"drawing and rows included on both sides, {SAMPLES:,} calls, one worker; {timing}"
    return Outcome("python-group-by-drawn", timing.ratio, TIER_BAR, detail)


def one_branch_overhead() -> Outcome:
    return overhead(one_branch, {"x": pv.Normal(0, sd=1)}, "x", lambda x: (x,), 50 * SAMPLES, None)


BENCHMARKS = {
    "python-nested-loops": nested_loops_overhead,
    "python-group-by": group_by_overhead,
    "python-group-by-drawn": group_by_drawn_overhead,
    "python-one-branch": one_branch_overhead,
}
