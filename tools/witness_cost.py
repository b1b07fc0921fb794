"""What the witness of exact answers costs, and how often it can tell anything: over the releases and random questions.

python tools/witness_cost.py             # the releases
python tools/witness_cost.py --random 500
"""

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import privug as pv
from oracles.releases import RELEASES
from privug.inference.exact import engine
from random_questions import restored, written

spent: list[float] = []
decided: Counter[str] = Counter()


def timed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes down how much processor time it took."""

    def measured(*arguments: Any) -> Any:
        started = time.process_time()
        try:
            return function(*arguments)
        finally:
            spent.append(time.process_time() - started)

    return measured


def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that counts its calls."""

    def called(*arguments: Any) -> Any:
        decided[name] += 1
        return function(*arguments)

    return called


def questions(random: int) -> Iterator[tuple[pv.Attack, Any]]:
    """Yield attacks with what was seen: the releases, or questions written at random."""
    if not random:
        yield from ((release.attack(), release.observation) for release in RELEASES.values())
    for seed in range(random):
        question = written(seed)
        yield question.attack(), restored(question.seen(), question.source)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=0)
    random = parser.parse_args().random
    engine._confirmed = timed(engine._confirmed)
    engine._check_nearby = counted("a window or the prediction in its place", engine._check_nearby)
    engine.contradiction = counted("contradicted", engine.contradiction)
    shares = []
    for attack, seen in questions(random):
        spent.clear()
        with warnings.catch_warnings(), pv.limited(progress=False):
            warnings.simplefilter("ignore")
            attack.lifting  # noqa: B018  # traced before
            started = time.process_time()
            try:
                attack.run(seen, engine="exact")
            except pv.PrivugError:
                decided["refused"] += 1
                continue
        shares.append(sum(spent) / (time.process_time() - started))
    told = np.percentile(shares, [25, 50, 75]).round(3).tolist()
    print(f"{len(shares)} exact answers; share of the processor time, quartiles: {told}; {dict(decided)}")


if __name__ == "__main__":
    main()
