"""What a block of draws costs: processor time where it is drawn, bytes that come back, and time to hand it out.

`python tools/block_costs.py` prints the table of docs/explanation/planning.md, for 10**12 draws on 1,000 cores.
"""

import argparse
import pickle
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import privug as pv
from privug.inference import tallying
from privug.runtime import cluster

DRAWS, CORES = 10**12, 1_000
TRIED = 2_000_000, 40_000  # draws of array code, and of programs that are called


def mean_of_ages(ages):
    return ages.mean()


def initials(ages):
    return max(int(str(age)[::-1]) for age in ages)


def noisy_count(ages):
    return sum(age > 60 for age in ages) + pv.sample(pv.Laplace(0, scale=2))


def attacks() -> dict[str, tuple[pv.Attack, int]]:
    """Return programs of three prices, each with the draws to try it on."""
    few = [pv.DiscreteUniform(20, 80) for _ in range(5)]
    many = pv.Array(pv.Normal(45, sd=15), 200)
    return {
        "noisy count of 5 people (traced)": (pv.Attack(noisy_count, {"ages": few}, lambda ages: ages[0]), TRIED[0]),
        "mean of 200 people (traced)": (pv.Attack(mean_of_ages, {"ages": many}, lambda ages: ages[0]), TRIED[0] // 10),
        "text of 5 people (called)": (pv.Attack(initials, {"ages": few}, lambda ages: ages[0]), TRIED[1]),
    }


@contextmanager
def noted(results: list[int]) -> Iterator[None]:
    """Take down how many bytes each result of a tally's tasks has."""
    before: Callable[..., Any] = tallying.run_tasks

    def counting(*arguments: Any, **options: Any) -> Iterator[Any]:
        for result in before(*arguments, **options):
            results.append(len(pickle.dumps(result)))
            yield result

    tallying.run_tasks = counting
    try:
        yield
    finally:
        tallying.run_tasks = before


def seconds_a_batch(batches: int = 300) -> float:
    """Return how long a scheduler and a client take to hand out a batch that does nothing, and to take it back."""
    import distributed

    options: Any = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    with distributed.LocalCluster(**options) as local, distributed.Client(local) as client:
        cluster.BATCH_SECONDS = 0.0  # every task by itself
        list(cluster.run_on(client, range(20), abs))
        started = time.perf_counter()
        list(cluster.run_on(client, range(batches), abs))
        return (time.perf_counter() - started) / batches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-cluster", action="store_true", help="leave out the cost of handing out batches")
    options = parser.parse_args()
    pv.configure(progress=False, workers=1)
    print("| program | ns a draw | bytes a result | results | core-hours | hours on 1,000 cores | through the client |")
    print("|---|---|---|---|---|---|---|")
    for name, (attack, draws) in attacks().items():
        attack.tally(draws=draws // 20, seed=0)  # lifting and compiling are paid once
        found: list[int] = []
        with noted(found):
            started = time.process_time()
            attack.tally(draws=draws, seed=1)
            spent = (time.process_time() - started) / draws
        size = max(found[len(found) // 2 :])
        results, hours = min(DRAWS / 2**20, tallying.MOST_RESULTS), DRAWS * spent / 3600
        print(
            f"| {name} | {spent * 1e9:,.0f} | {size:,} | {results:,.0f} | {hours:,.0f} | {hours / CORES:,.1f} "
            f"| {results * size / 1e9:,.1f} GB |"
        )
    if not options.no_cluster:
        print(f"\nhanding out a batch: {seconds_a_batch() * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
