"""The processor time of `privug demo` beside that of an earlier commit, by turns: imports and printing included.

python benchmarks/demo.py [--since 01ebd78] [--turns 5]
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def seconds(tree: Path, cache: Path) -> float:
    """Return the processor time of one run of a tree's code, whose bytecode lies in a folder of its own."""
    known = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "privug.cli.main", "demo"],
        env=known | {"PYTHONPATH": str(tree / "src"), "PYTHONPYCACHEPREFIX": str(cache)},
        capture_output=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--since", default="01ebd78", help="the commit to compare with")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        earlier = Path(folder) / "earlier"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", earlier, options.since], cwd=ROOT, check=True)
        try:
            trees = {options.since: earlier, "this tree": ROOT}
            turns = [
                {name: seconds(tree, Path(folder) / name) for name, tree in trees.items()}
                for _ in range(options.turns + 1)
            ][1:]  # the first one writes bytecode
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", earlier], cwd=ROOT, check=True)
    for name in trees:
        found = sorted(turn[name] for turn in turns)
        print(f"{name}: median {statistics.median(found):.2f} s of processor time ({found[0]:.2f} to {found[-1]:.2f})")
    ratios = sorted(turn["this tree"] / turn[options.since] for turn in turns)
    print(f"ratio: median {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})")


if __name__ == "__main__":
    main()
