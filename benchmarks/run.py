"""Measure Privug and its peers: every task in every tool, by turns; a table, pictures and JSON of what was found.

A tool that crashes, takes too long or is wrong is reported; the run goes on. `--only` takes names of tasks or the start
of them.
"""

import argparse
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import tasks  # noqa: E402
from harness import measuring, pictures, results, text  # noqa: E402
from harness.tasks import QUICK, TOOLS, Task  # noqa: E402
from rich.console import Console  # noqa: E402


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="a task, or the start of the names of several")
    parser.add_argument("--tools", metavar="NAMES", help=f"tools, with commas between: {', '.join(TOOLS)}")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything works")
    parser.add_argument("--list", action="store_true", help="say which tasks there are, and run none")
    parser.add_argument("--minutes", type=float, default=20, help="tasks that have not begun by then are left out")
    parser.add_argument("--repeats", type=int, default=5, help="turns of each cell, at most")
    parser.add_argument("--limit", type=float, default=60, help="seconds that a cell may take for one turn")
    parser.add_argument("--output", type=Path, default=HERE.parent / ".benchmarks", help="folder of JSON and pictures")
    parser.add_argument("--from", dest="earlier", type=Path, action="append", metavar="JSON", help="show earlier runs")
    parser.add_argument("--write-readme", action="store_true", help="put what was found into benchmarks/README.md")
    return parser.parse_args()


def command() -> str:
    """Return what was typed, without the place where results go, which is this machine's business."""
    return re.sub(r" --output[ =]\S+", "", " ".join(["python benchmarks/run.py", *sys.argv[1:]]))


def chosen(known: dict[str, Task], options: argparse.Namespace) -> list[Task]:
    """Return the tasks that were asked for."""
    wanted = [task for name, task in known.items() if not options.only or name.startswith(tuple(options.only))]
    if not wanted:
        sys.exit(f"no such task: {', '.join(options.only)}; there are {', '.join(known)}")
    return wanted


def measure_all(wanted: list[Task], options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Measure task by task; what there is so far is written after each."""
    patience = measuring.Patience(options.repeats, 1.0 if options.quick else 5.0, options.limit)
    tools = options.tools.split(",") if options.tools else list(TOOLS)
    if unknown := [tool for tool in tools if tool not in TOOLS]:
        sys.exit(f"no such tool: {', '.join(unknown)}; there are {', '.join(TOOLS)}")
    started, load = time.monotonic(), os.getloadavg()[0]
    machine, found, written = results.machine(), [], {}
    for position, task in enumerate(wanted):
        spent = (time.monotonic() - started) / 60
        if spent > options.minutes:
            found.append(results.skipped(task))
        else:
            console.print(f"{position + 1} of {len(wanted)}, {spent:.1f} min", style="dim")
            found.append(measuring.measure(task, patience, tools, lambda said: console.print(said, style="dim")))
            for line in text.lines(found[-1]):
                console.print(line, soft_wrap=True)
        written = results.to_json(
            found,
            machine=machine,
            command=command(),
            quick=options.quick,
            load=[load, os.getloadavg()[0]],
            minutes=(time.monotonic() - started) / 60,
        )
        (options.output / "results.json").write_text(json.dumps(written, indent=1, allow_nan=False))
    return written


def main() -> int:
    options = arguments()
    if options.quick:
        os.environ[QUICK] = "1"  # before the tasks are imported: their sizes depend on it
    console = Console(highlight=False)
    if options.earlier:
        written = results.merged([json.loads(path.read_text()) for path in options.earlier])
    else:
        wanted = chosen(tasks.load(), options)
        if options.list:
            for task in wanted:
                console.print(f"{task.name}: {task.question}", soft_wrap=True)
            return 0
        options.output.mkdir(parents=True, exist_ok=True)
        written = measure_all(wanted, options, console)
    console.print(text.matrix(written["tasks"]))
    console.print(text.growth_table(written["growth"]))
    for path in pictures.draw(written, options.output):
        console.print(path, style="dim")
    if options.write_readme:
        text.write_readme(HERE / "README.md", written)
        pictures.draw(written, HERE)
    cells = (cell for task in written["tasks"].values() for cell in task["cells"].values())
    return 1 if any(cell["status"] == "crashed" for cell in cells) else 0


if __name__ == "__main__":
    sys.exit(main())
