"""Results as text: a line for each cell as it is known, a table of ratios, and the README."""

from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from harness.results import CellResult, Spread, TaskResult
from harness.tasks import TOOLS

STATUS = {"wrong": "WRONG", "crashed": "CRASHED", "exceeded": "TIMED OUT", "skipped": "left out"}
MARKS = ("<!-- measured: start -->", "<!-- measured: stop -->")


def duration(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"


def number(ratio: float) -> str:
    """Return a ratio in two digits, as nobody can measure more."""
    if ratio >= 100:
        digits = len(str(int(ratio))) - 2
        return f"{round(ratio, -digits):,.0f}"
    return f"{ratio:.2g}"


def spread(ratio: Spread) -> str:
    if ratio.low == ratio.high:
        return f"{number(ratio.median)} (one turn)"
    return f"{number(ratio.median)} ({number(ratio.low)} to {number(ratio.high)})"


def lines(result: TaskResult) -> list[Text]:
    """Return a line for each cell that was tried."""
    found = [Text(f"{result.task.name}: {result.task.question}", style="bold")]
    for tool, cell in result.cells.items():
        if cell.status != "cannot":
            found.append(Text(f"  {TOOLS[tool].label:<18}{described(cell, result.ratio(tool))}", style=style(cell)))
    for bar in result.bars():
        wanted = f"at least {bar['at_least']:.3g} times Privug" if "at_least" in bar else f"at most {bar['at_most']:g}"
        verdict = {True: "holds", False: "MISSED", None: "not measured"}[bar["holds"]]
        found.append(Text(f"  bar: {bar['of']} {wanted}: {verdict}", style="red" if bar["holds"] is False else "dim"))
    return found


def style(cell: CellResult) -> str:
    return {"ok": "", "skipped": "dim"}.get(cell.status, "red")


def described(cell: CellResult, ratio: Spread | None) -> str:
    if not cell.measured:
        return f"{STATUS.get(cell.status, '')} {cell.reason}".strip()
    times = Spread.of(cell.seconds)
    parts = [
        f"{duration(times.median):>8} ({duration(times.low)} to {duration(times.high)}, {len(cell.seconds)} turns)"
    ]
    parts.append("" if cell.error is None else f"error {cell.error:.1e}")
    parts.append("" if cell.memory is None else f"{cell.memory / 2**20:+.0f} MiB")
    parts.append("" if ratio is None else f"{spread(ratio)} times Privug's time")
    parts.append(f"{STATUS[cell.status]}: {cell.reason}" if cell.status in STATUS else "")
    return "; ".join(part for part in (*parts, cell.note) if part)


def matrix(tasks: dict[str, Any]) -> Table:
    """Return a table with a row for each task and a column for each tool: Privug's time, and ratios to it."""
    tools = [tool for tool in TOOLS if any(task["cells"][tool]["status"] != "cannot" for task in tasks.values())]
    table = Table("task", *(TOOLS[tool].label for tool in tools), title="Times Privug's time, for the same precision")
    for name, task in tasks.items():
        table.add_row(name, *(entry(task, tool) for tool in tools))
    return table


def entry(task: dict[str, Any], tool: str) -> Text:
    cell = task["cells"][tool]
    if "median" not in cell:
        return Text(cell["reason"], style="dim" if cell["status"] in ("cannot", "skipped") else "red")
    shown = number(task["ratios"][tool][0]) if tool in task["ratios"] else duration(cell["median"])
    wrong = cell["status"] != "ok"
    return Text(f"{shown} {STATUS[cell['status']]}" if wrong else shown, style="red" if wrong else "")


def growth_table(curves: dict[str, dict[str, dict[str, Any]]]) -> Table:
    table = Table("task", "tool", "sizes", "seconds", "exponent", "last step", title="Growth")
    for family, tools in curves.items():
        for tool, curve in tools.items():
            seconds = ", ".join(duration(value) for value in curve["seconds"])
            sizes = f"{curve['sizes'][0]:,} to {curve['sizes'][-1]:,}"
            table.add_row(family, TOOLS[tool].label, sizes, seconds, exponent(curve), f"{curve['last']:.2f}")
    return table


def exponent(curve: dict[str, Any]) -> str:
    return f"{curve['slope']:.2f}" + ("" if curve["error"] is None else f" ± {curve['error']:.2f}")


def measured(found: dict[str, Any]) -> str:
    """Return the part of the README that holds what was measured, from the JSON: ratios only."""
    about = found["machine"]
    loads = " and ".join(f"{load:.1f}" for load in found["load"])
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    said = [
        f"Commit `{about['commit']}`, {about['date']}, `{found['command']}`: {about['cores']} cores, "
        f"{about['system']}, {about['architecture']}, Python {about['python']}, {versions}.",
        f"Load of the machine (processes that wanted a core, on average over a minute): {loads}; "
        f"{about['cores']} cores are busy at {about['cores']}. It took {found['minutes']:.0f} minutes.",
        "### Ratios",
        *ratio_table(found["tasks"]),
        "### Empty cells",
        *empty_cells(found["tasks"]),
        "### Bars",
        *bar_table(found["tasks"]),
        "### Growth",
        *growth_rows(found["growth"]),
        "![Ratios](ratios.svg)",
        "![Time and error](errors.svg)",
        "![Growth](growth.svg)",
    ]
    return "\n\n".join(said)


def ratio_table(tasks: dict[str, Any]) -> list[str]:
    rows = ["| task | tool | times Privug's time (quartiles) | error | Privug's error |", "|---|---|---|---|---|"]
    for name, task in tasks.items():
        ours = next((task["cells"][tool] for tool in TOOLS if "error" in task["cells"][tool]), {})
        for tool, ratio in task["ratios"].items():
            cell = task["cells"][tool]
            verdict = "" if cell["status"] == "ok" else f" **{cell['status']}**"
            share = "" if cell["share"] == 1 else ", part of the task"
            note = f", {cell['note']}" if cell["note"] else ""
            shown = f"{spread(Spread(*ratio))}{verdict}{share}{note}"
            rows.append(f"| `{name}` | {TOOLS[tool].label} | {shown} | {off(cell)} | {off(ours)} |")
    return ["\n".join(rows)]


def off(cell: dict[str, Any]) -> str:
    return "" if cell.get("error") is None else f"{cell['error']:.0e}"


def empty_cells(tasks: dict[str, Any]) -> list[str]:
    """List what crashed, took too long or was left out; what tools cannot do is in the JSON and the table."""
    late = [name for name, task in tasks.items() if any(c["status"] == "skipped" for c in task["cells"].values())]
    rows = [
        f"* `{name}`, {TOOLS[tool].label}: {cell['status']}, {cell['reason']}"
        for name, task in tasks.items()
        for tool, cell in task["cells"].items()
        if cell["status"] in ("crashed", "exceeded", "wrong")
    ]
    rows += [f"* left out, as there was no more time: {', '.join(f'`{name}`' for name in late)}"] if late else []
    return ["\n".join(rows) or "None but those of tools that cannot do a task."]


def bar_table(tasks: dict[str, Any]) -> list[str]:
    rows = ["| task | bar | found | |", "|---|---|---|---|"]
    for name, task in tasks.items():
        for bar in (bar for bar in task["bars"] if bar["found"] is not None):
            if "at_least" in bar:
                limit = f"{TOOLS[bar['of']].label} takes at least {number(bar['at_least'])} times as long"
                value = number(bar["found"])
            else:
                unit = 2**30 if bar["of"] == "memory" else 1
                limit = f"at most {bar['at_most'] / unit:g} {'GiB' if unit > 1 else 's'}"
                value = f"{bar['found'] / bar['at_most']:.2g} of it"
            verdict = "ok" if bar["holds"] else "**missed**"
            rows.append(f"| `{name}` | {limit} | {value} | {verdict} |")
    return ["\n".join(rows)]


def growth_rows(curves: dict[str, dict[str, dict[str, Any]]]) -> list[str]:
    rows = ["| task | tool | sizes | exponent of all | of the last step |", "|---|---|---|---|---|"]
    for family, tools in curves.items():
        for tool, curve in tools.items():
            sizes = f"{curve['sizes'][0]:,} to {curve['sizes'][-1]:,}"
            rows.append(f"| `{family}` | {TOOLS[tool].label} | {sizes} | {exponent(curve)} | {curve['last']:.2f} |")
    return ["\n".join(rows)]


def write_readme(path: Path, found: dict[str, Any]) -> None:
    """Put what was measured between the marks."""
    before, _, rest = path.read_text().partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    path.write_text(f"{before}{MARKS[0]}\n\n{measured(found)}\n\n{MARKS[1]}{after}")
