"""A Dask cluster against this machine's own processes: `python benchmarks/cluster.py`.

The work is the attack of a program that is called, in blocks of about a second. Two ratios: the throughput of two
workers over that of one (2 is all that there is to gain), and the time of two Dask workers over that of two forked
processes on the same blocks (1 would be no overhead). Runs take turns; medians and ranges are shown.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import distributed

import privug as pv
from privug.inference.sampling import BlockEvaluation, DrawRound, blocks_of_equal_size
from privug.runtime.cluster import run_on
from privug.runtime.processes import run_forked

BLOCKS, CALLS, TURNS = 12, 400, 5


def spinning(ages):
    """Take about four milliseconds in the interpreter."""
    total = 0
    for number in range(450):
        total += len(str(ages[number % 3] * number)) * 7 % 5
    for number in range(45_000):
        total += number & 3
    return total % 11


def work() -> Callable[[Any], Any]:
    attack = pv.Attack(spinning, {"ages": [pv.DiscreteUniform(10, 99)] * 1 + [40, 50]}, secret=lambda ages: ages[0])
    with pv.limited(native=False):
        return partial(BlockEvaluation(attack.question, None, None, 1).run, DrawRound(0, 0))


def seconds(run: Callable[[], Any]) -> float:
    started = time.perf_counter()
    list(run())
    return time.perf_counter() - started


def cluster(workers: int) -> Any:
    return distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0)


def main() -> None:
    pv.configure(progress=False)
    blocks, job = blocks_of_equal_size(BLOCKS * CALLS, CALLS), work()
    job(blocks[0])
    with cluster(1) as one, cluster(2) as two, distributed.Client(one) as first, distributed.Client(two) as second:
        ways = {
            "forked": lambda: run_forked(job, blocks, 2),
            "one worker": lambda: run_on(first, blocks, job),
            "two workers": lambda: run_on(second, blocks, job),
        }
        for way in ways.values():  # workers import and lift what they need once
            list(way())
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(TURNS):
            for name, way in ways.items():
                times[name].append(seconds(way))
    block = statistics.median(times["one worker"]) / BLOCKS
    gains = [alone / both for alone, both in zip(times["one worker"], times["two workers"], strict=True)]
    costs = [both / here for both, here in zip(times["two workers"], times["forked"], strict=True)]
    print(f"{BLOCKS} blocks of {block:.2f} s")
    for name, ratios in (("two workers over one", gains), ("Dask over forked processes", costs)):
        print(f"{name}: {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")


if __name__ == "__main__":
    main()
