"""Measure Privug and its peers: every task in every tool, by turns; a table, pictures and JSON of what was found.

A tool that crashes, takes too long or is wrong is reported; the run goes on. `--only` takes names of tasks or the start
of them.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from harness.tasks import QUICK, TOOLS  # noqa: E402


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
    parser.add_argument("--write-readme", action="store_true", help="put what was found into benchmarks/README.md")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    if options.quick:
        os.environ[QUICK] = "1"
    # Imported here, as sizes depend on what was asked for.
    import tasks
    from harness import measuring, pictures, results, text
    from rich.console import Console

    console = Console(highlight=False)
    known = tasks.load()
    wanted = [name for name in known if not options.only or any(name.startswith(one) for one in options.only)]
    if not wanted:
        sys.exit(f"no such task: {', '.join(options.only)}; there are {', '.join(known)}")
    if options.list:
        for name in wanted:
            console.print(f"{name}: {known[name].question}")
        return 0
    patience = measuring.Patience(options.repeats, 1.0 if options.quick else 5.0, options.limit)
    asked = options.tools.split(",") if options.tools else list(TOOLS)
    if unknown := [tool for tool in asked if tool not in TOOLS]:
        sys.exit(f"no such tool: {', '.join(unknown)}; there are {', '.join(TOOLS)}")
    started, load = time.monotonic(), os.getloadavg()[0]
    found: list[results.TaskResult] = []
    options.output.mkdir(parents=True, exist_ok=True)
    for position, name in enumerate(wanted):
        spent = (time.monotonic() - started) / 60
        console.print(f"[dim]{position + 1} of {len(wanted)}, {spent:.1f} min[/dim]")
        if spent > options.minutes:
            late = {tool: results.CellResult(tool, "skipped", "out of time") for tool in TOOLS}
            found.append(results.TaskResult(known[name], late))
            continue
        found.append(measuring.measure(known[name], patience, asked, lambda said: console.print(said, style="dim")))
        for line in text.lines(found[-1]):
            console.print(line, soft_wrap=True)
    about: dict[str, Any] = {
        "machine": results.machine(),
        "command": " ".join(["python benchmarks/run.py", *sys.argv[1:]]),
        "quick": options.quick,
        "load": [load, os.getloadavg()[0]],
        "minutes": (time.monotonic() - started) / 60,
    }
    written = results.to_json(found, **about)
    (options.output / "results.json").write_text(json.dumps(written, indent=1, allow_nan=False))
    console.print(text.matrix(found))
    console.print(text.growth_table(written["growth"]))
    for path in pictures.draw(written, options.output):
        console.print(f"[dim]{path}[/dim]")
    if options.write_readme:
        text.write_readme(HERE / "README.md", written)
        pictures.draw(written, HERE)
    return 1 if any(cell.status == "crashed" for result in found for cell in result.cells.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
