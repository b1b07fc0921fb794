"""Run the benchmarks and print a table. A bar that is missed is reported; only a crash is an error."""

import argparse
import os
import sys
import traceback
from collections.abc import Callable

import anonymisation
import discrete
import drawing
import enumeration
import exact
import frames
import grouping
import k_ano
import native
import nearest
import neighbours
import python_tier
import quasi_identifiers
import rejection
import rq3
import sizes
import solving
import typical_releases
from measuring import Outcome

import privug as pv

BENCHMARKS: dict[str, Callable[[], Outcome]] = {
    **anonymisation.BENCHMARKS,
    **discrete.BENCHMARKS,
    **drawing.BENCHMARKS,
    **enumeration.BENCHMARKS,
    **exact.BENCHMARKS,
    **exact.WITH_PYMC,
    **frames.BENCHMARKS,
    **grouping.BENCHMARKS,
    **k_ano.BENCHMARKS,
    **native.BENCHMARKS,
    **nearest.BENCHMARKS,
    **neighbours.BENCHMARKS,
    **python_tier.BENCHMARKS,
    **quasi_identifiers.BENCHMARKS,
    **rejection.BENCHMARKS,
    **sizes.BENCHMARKS,
    **solving.BENCHMARKS,
    **typical_releases.BENCHMARKS,
    **typical_releases.WITH_PYMC,
    **rq3.BENCHMARKS,
}
WITH_PYMC = {*rejection.BENCHMARKS, *exact.WITH_PYMC, *typical_releases.WITH_PYMC, *rq3.BENCHMARKS}


def verdict(outcome: Outcome) -> str:
    if outcome.bar is None:
        return "-"
    return "ok" if outcome.bar.holds(outcome.ratio) else "MISSED"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", choices=BENCHMARKS, help="; ".join(BENCHMARKS))
    parser.add_argument("--no-pymc", action="store_true", help="leave out the comparisons with PyMC")
    parser.add_argument("--plot", metavar="PATH", help="where to save the plot of exact-growth, such as growth.png")
    options = parser.parse_args()
    names = options.only or [n for n in BENCHMARKS if not (options.no_pymc and n in WITH_PYMC)]
    if options.plot:
        os.environ[exact.PLOT] = options.plot
    pv.configure(progress=False)
    crashed = False
    print(f"{'benchmark':<22}{'ratio':>9}  {'bar':<8}{'':<8}detail")
    for name in names:
        try:
            outcome = BENCHMARKS[name]()
        except Exception:
            crashed = True
            print(f"{name:<22}{'':>9}  {'':<8}CRASHED", flush=True)
            traceback.print_exc()
        else:
            bar = str(outcome.bar or "none")
            print(f"{name:<22}{outcome.ratio:>9.3g}  {bar:<8}{verdict(outcome):<8}{outcome.detail}", flush=True)
    return 1 if crashed else 0


if __name__ == "__main__":
    sys.exit(main())
