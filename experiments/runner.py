"""Runs experiments one after the other: prints their tables, writes their JSON, their figures and one page of all."""

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from privug.escaping import inert
from privug.output import as_json, write_whole

from .drawing import drawn
from .experiment import Experiment, summary
from .page import HEADER, page

MISSED, INTERRUPTED = 1, 130
WIDTH = 140  # of tables that go to a file or a pipe


def reproduce(chosen: Sequence[Experiment], folder: Path, *, printed_json: bool = False) -> int:
    """Run experiments, show and write what they find; return 1 if one failed or missed an exact value."""
    folder.mkdir(parents=True, exist_ok=True)
    code, console, said = 0, Console(width=None if sys.stdout.isatty() else WIDTH), set[str]()
    try:
        for place, experiment in enumerate(chosen, 1):
            click.echo(f"[{place}/{len(chosen)}] {experiment.name}: {experiment.title} ...", err=True)
            experiment.run()
            said |= _drawn(experiment, folder)
            write_whole(folder / f"{experiment.name}.json", as_json(experiment.to_dict()) + "\n")
            if not printed_json:
                show(experiment, console)
    except KeyboardInterrupt:
        code = INTERRUPTED
    done = [experiment for experiment in chosen if experiment.seconds]
    write_whole(folder / "index.html", f"{page(done)}\n")
    if printed_json:
        click.echo(as_json([experiment.to_dict() for experiment in done]))
    for words in said:
        click.echo(f"no figures: {words}; the numbers are there", err=True)
    click.echo(f"wrote {folder / 'index.html'}; {summary(done)}", err=True)
    return code or (0 if all(experiment.is_fine for experiment in done) else MISSED)


def _drawn(experiment: Experiment, folder: Path) -> set[str]:
    """Draw the figures of an experiment and write them; return why there are none."""
    figures = experiment.findings.figures if experiment.findings is not None else {}
    try:
        for place, (caption, draw) in enumerate(figures.items(), 1):
            svg = drawn(draw, f"{experiment.title}: {caption}")
            experiment.pictures[caption] = svg
            (folder / f"{experiment.name}-{place}.svg").write_text(svg, encoding="utf-8")
    except ModuleNotFoundError as error:
        return {f"{error}: pip install 'privug[report]'"}
    except Exception as error:
        experiment.failure = inert(f"a figure cannot be drawn: {type(error).__name__}: {error}")
        traceback.print_exc()
    return set()


def show(experiment: Experiment, console: Console) -> None:
    """Print the table of an experiment."""
    console.print(Text(f"\n{experiment.title} ({experiment.paper}; {experiment.seconds:.1f} s)", style="bold"))
    if experiment.failure:
        console.print(Text(f"failed: {experiment.failure}", style="red"))
    if experiment.findings is None:
        return
    lines = [line.texts for line in experiment.findings.lines]
    wanted = [place for place, name in enumerate(HEADER) if any(line[place] for line in lines) or name == "quantity"]
    table = Table(*(HEADER[place] for place in wanted))
    for line in lines:
        table.add_row(*(Text(line[place], style="red" if line[place] == "NO" else "") for place in wanted))
    console.print(table)
    for note in experiment.findings.notes:
        console.print(Text(f"- {note}"))
