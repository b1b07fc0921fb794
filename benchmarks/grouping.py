"""Group-bys in plain Python: traced once for all rows, against plain calls of the same program."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from measuring import Bar, Outcome, compare

import privug as pv
from privug import settings

SAMPLES = 1_000
ZIPS = ["1000", "2000", "3000", "4000"]


def counts(rs: Any) -> Any:
    """How many people live in each zip."""
    found: dict[str, int] = {}
    for r in rs:
        found[r.zip] = found.get(r.zip, 0) + 1
    return found


def most_common(rs: Any) -> Any:
    """The most common zip."""
    return Counter(r.zip for r in rs).most_common(1)


def called(program: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same program; the text of an age keeps it in the python tier."""

    def calling(rs: Any) -> Any:
        str(rs[0].age)
        return program(rs)

    return calling


def measured(name: str, program: Callable[[Any], Any], rows: int) -> Outcome:
    """Tracing, checks and samples of a new attack, over a tenth of the samples by calls."""
    people = pv.Records(rows, pv.Row(zip=pv.Choice(ZIPS), age=pv.DiscreteUniform(18, 90)))

    def run(function: Callable[[Any], Any], samples: int) -> Any:
        attack = pv.Attack(function, prior={"rs": people}, secret=lambda rs: rs[0].age)
        return attack.run(engine="sample", samples=samples, seed=1)

    with settings.limited(workers=1):
        timing = compare(partial(run, program, SAMPLES), partial(run, called(program), SAMPLES // 10), rounds=3)
    detail = f"{SAMPLES:,} samples of {rows:,} rows, tracing included, against a tenth of them by calls; {timing}"
    return Outcome(name, timing.ratio, Bar(1.0), detail)


BENCHMARKS = {
    name: partial(measured, name, program, rows)
    for program, label in ((counts, "counts"), (most_common, "most-common"))
    for rows in (500, 5_000)
    for name in (f"group-by-{label}-{rows}",)
}
