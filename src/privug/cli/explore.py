"""`privug explore`: move what the attackers of a file know and see, and watch what they learn."""

from __future__ import annotations  # what they name is imported when it is needed

import json
import sys
from typing import Any

import click

import privug as pv
from privug.cli import options
from privug.cli.finding import FileTarget
from privug.cli.loading import loaded
from privug.cli.refusal import reported


@click.command()
@options.target
@options.attacks
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="A port of this machine; default: any free one.")
@click.option("--token", default="", help="What stands in the address; default: a random one.")
@click.option("--no-browser", is_flag=True, help="Print the address, and open nothing.")
@options.engine
@options.samples(10_000)
@options.seed
@options.as_json
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), default=60.0, show_default=True, help="Most time for a run."
)
def explore(
    target: FileTarget, names: tuple[str, ...], port: int, token: str, no_browser: bool, as_json: bool, **settings: Any
) -> None:
    """Open a page on which the numbers in the attacks of a Python FILE can be moved.

    Parameters of priors, observations and mechanisms are found; a file declares others by pv.parameter. The page is
    on this machine alone, at an address with a random token. Ctrl-C ends it.

    \b
    Examples:
      privug explore survey.py
      privug explore survey.py::alice --no-browser --port 8765
    """

    output = sys.stdout  # what the file itself prints goes elsewhere

    def opened(address: str) -> None:
        told = json.dumps({"file": str(target.file), "address": address})
        click.echo(told if as_json else f"{target.file}: {address}\nCtrl-C ends the explorer.", file=output)
        output.flush()  # whoever reads a pipe wants the address now
        if not no_browser:
            click.launch(address)

    def read() -> dict[str, Any]:
        return vars(loaded(target.file))

    with reported(target.file):
        pv.explorer.serve(
            target.file, read=read, names=(*target.names, *names), port=port, token=token, opened=opened, **settings
        )
