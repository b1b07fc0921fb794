"""Compiled and traced programs against plain calls on the same inputs; drawing is left out on all sides.

Compiled code works on arrays with the samples first, plain calls on rows. `native-loop` compares the code alone;
`native-arranged` also counts arranging the arrays, against plain calls on rows that lie ready; `native-end-to-end`
counts what either side has to do with what was drawn: arranging the arrays, making the rows.
"""

import gc
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from measuring import Bar, Outcome, seconds

import privug as pv
from privug.model.plan import Plan
from privug.model.structure import flatten
from privug.program.calls import Arguments
from privug.program.lifting import apply
from privug.program.native import program as native
from privug.program.native.arguments import encodings, layout, prepared

ROWS = 200
SAMPLES = 20_000
PLAIN_SAMPLES = 2_000  # 20,000 tables of rows would not fit into a small memory
PLAIN_BLOCK = 256  # as many rows as the python tier makes at a time
ROUNDS = 7


def older_than_60(records):  # type: ignore[no-untyped-def]
    count = 0
    for row in records:
        if row.age > 60:
            count += 1
    return count


class Inputs:
    """The ages of all samples, drawn beforehand: block by block as arrays, and some of them as plain tables."""

    def __init__(self, traced: bool = False, plated: bool = False) -> None:
        records = pv.Records(ROWS, pv.Row(age=pv.DiscreteUniform(0, 99)))
        table = records.plated() if plated else records.table()
        structure, leaves = flatten(([table], {}))
        self.arguments = Arguments(structure, tuple(leaves))
        self.nodes = list(self.arguments.nodes)
        self.lifted = apply(older_than_60, [table]) if traced else None
        block = Plan([self.lifted.output.node] if self.lifted else self.nodes).block  # as an engine takes them
        rng = np.random.Generator(np.random.SFC64(1))
        sizes = [min(block, SAMPLES - start) for start in range(0, SAMPLES, block)]
        self.blocks = [Plan(self.nodes).run(size, rng) for size in sizes]
        first = [np.concatenate(parts)[:PLAIN_SAMPLES] for parts in zip(*self.blocks, strict=True)]
        self.plain = [positional[0] for positional, _ in self.arguments.plain(first, PLAIN_SAMPLES)]

    def plain_seconds(self) -> float:
        """Time plain calls, counted up to all samples."""
        return seconds(lambda: [older_than_60(records) for records in self.plain]) * SAMPLES / PLAIN_SAMPLES

    def drawn_seconds(self) -> float:
        """Time plain calls together with making their rows of the arrays, counted up to all samples."""
        arrays = [array[:PLAIN_BLOCK] for array in self.blocks[0]]

        def made_and_called() -> list[Any]:
            return [older_than_60(*positional) for positional, _ in self.arguments.plain(arrays, PLAIN_BLOCK)]

        return seconds(made_and_called) * SAMPLES / PLAIN_BLOCK


def against_plain_calls(
    name: str,
    bar: Bar | None,
    inputs: Inputs,
    run: Callable[[], tuple[float, Any, str]],
    plain_seconds: Callable[[], float] | None = None,
) -> Outcome:
    """Compare; `run` evaluates all blocks and returns its time, the first outputs and a remark."""
    plainly = plain_seconds or inputs.plain_seconds
    gc.freeze()
    try:
        run(), plainly()
        turns = [(plainly(), *run()) for _ in range(ROUNDS)]
    finally:
        gc.unfreeze()
    ratios = [plain / ours for plain, ours, *_ in turns]
    _, _, outputs, remark = turns[-1]
    agrees = list(outputs[:PLAIN_SAMPLES]) == [older_than_60(records) for records in inputs.plain]
    best = [min(turn[k] for turn in turns) / SAMPLES for k in (0, 1)]
    detail = (
        f"{SAMPLES:,} samples of {ROWS} rows, one worker; {best[1] * 1e9:.0f} ns a sample against "
        f"{best[0] * 1e6:.3g} us; ratios {min(ratios):.3g} to {max(ratios):.3g}{remark}"
        f"{'' if agrees else '; OUTPUTS DIFFER from plain calls'}"
    )
    return Outcome(name, statistics.median(ratios), bar, detail)


def compiled_loop(name: str, bar: Bar | None, *, arranging_counts: bool = True, rows_count: bool = False) -> Outcome:
    inputs = Inputs()
    kernel = native.compile_program(older_than_60, inputs.arguments)
    if isinstance(kernel, str):
        raise RuntimeError(kernel)
    shape, codes = layout(inputs.arguments), encodings(kernel.code, inputs.arguments)

    def run() -> tuple[float, Any, str]:
        spent = arranging = 0.0
        outputs = []
        for arrays in inputs.blocks:
            started = time.perf_counter()
            ready = prepared(inputs.arguments, shape, codes, arrays, len(arrays[0]))
            arranged = time.perf_counter()
            outputs.append(kernel.run(ready, len(arrays[0]))[0][0])
            spent += time.perf_counter() - arranged
            arranging += arranged - started
        each = arranging / SAMPLES * 1e9
        remark = f"; {each:.0f} ns of it for arranging" if arranging_counts else f"; arranging takes {each:.0f} ns more"
        return spent + arranging * arranging_counts, np.concatenate(outputs), remark

    return against_plain_calls(name, bar, inputs, run, inputs.drawn_seconds if rows_count else None)


def traced_loop(name: str, plated: bool) -> Outcome:
    """Row by row, or once for all rows that are alike, as an attack does it."""
    inputs = Inputs(traced=True, plated=plated)
    lifted = inputs.lifted
    assert lifted is not None
    plan = Plan([lifted.output.node], inputs.nodes)

    def run() -> tuple[float, Any, str]:
        spent = 0.0
        outputs = []
        for arrays in inputs.blocks:
            known = dict(zip(inputs.nodes, arrays, strict=True))
            started = time.perf_counter()
            outputs.append(plan.run(len(arrays[0]), np.random.Generator(np.random.SFC64(0)), known)[0])
            spent += time.perf_counter() - started
        return spent, np.concatenate(outputs), f"; tier {lifted.lifting.tier}"

    return against_plain_calls(name, Bar(30, at_least=True), inputs, run)


BENCHMARKS = {
    "native-loop": partial(compiled_loop, "native-loop", Bar(100, at_least=True), arranging_counts=False),
    "native-arranged": partial(compiled_loop, "native-arranged", None),
    "native-end-to-end": partial(compiled_loop, "native-end-to-end", None, rows_count=True),
    "traced-loop": partial(traced_loop, "traced-loop", plated=False),
    "plated-loop": partial(traced_loop, "plated-loop", plated=True),
}
