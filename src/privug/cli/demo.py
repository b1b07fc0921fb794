"""`privug demo`: the running example for two attackers, side by side."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

import privug as pv
from privug.cli import options, writing
from privug.cli.refusal import reported
from privug.cli.terminal import doing

TITLE = "The mean age of a table is published as 55.3. What about Alice's age?"
SOURCE = Path(__file__).with_name("running_example.py")


@click.command()
@click.option("--code", is_flag=True, help="Print the example's source instead, to start from.")
@options.of_runs
@options.outputs(*writing.REPORTS)
@options.as_json
def demo(code: bool, outputs: tuple[Path, ...], as_json: bool, **settings: Any) -> None:
    """Analyse the running example for two attackers, side by side.

    \b
    Examples:
      privug demo
      privug demo -o report.html
      privug demo --code > example.py
    """
    if code:
        click.echo(SOURCE.read_text(encoding="utf-8"))
        return
    with doing("analysing the running example"), reported(), _keeping_everything():
        from privug.cli import running_example

        found = {"lot": running_example.lot, "bit": running_example.bit}
        results = {name: attack.run(**settings) for name, attack in found.items()}
        formats = writing.report(TITLE, results)
        printed = formats[".json"]() if as_json else pv.side_by_side(TITLE, list(results.values()))
        writing.write(outputs, formats)
    click.echo(printed)


@contextmanager
def _keeping_everything() -> Iterator[None]:
    """Do without the collector of reference cycles: the example is small, and nearly all that it makes is needed."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
