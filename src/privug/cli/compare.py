"""`privug compare`: the attacks of a file side by side."""

from pathlib import Path
from typing import Any

import click

import privug as pv
from privug.cli import options
from privug.cli.finding import FileTarget, attacks_in
from privug.cli.loading import loaded
from privug.cli.refusal import reported
from privug.cli.sweep import FORMATS, shown
from privug.cli.terminal import doing
from privug.cli.values import observation


@click.command()
@options.target
@options.attacks
@options.measures
@options.observe
@options.engine
@options.samples(10_000)
@options.seed
@options.checkpoint
@options.on
@options.outputs(*FORMATS)
@options.as_json
def compare(
    target: FileTarget,
    names: tuple[str, ...],
    measures: tuple[str, ...],
    observe: str | None,
    outputs: tuple[Path, ...],
    as_json: bool,
    **settings: Any,
) -> None:
    """Set the attacks of a Python FILE side by side: a row for each, a column for each measure.

    \b
    Examples:
      privug compare survey.py
      privug compare survey.py --attack plain --attack rounded --measure mutual_information
      privug compare survey.py -o comparison.html

    Exit codes: 0 every attack has an answer, 2 the file or a question is wrong, 3 some attack could not be decided.
    """
    with doing(f"comparing the attacks of {target.file}"):
        module = loaded(target.file)
        with reported(target.file):
            chosen = attacks_in(target.file, module, (*target.names, *names))
            seen = None if observe is None else observation(observe, vars(module))
            wanted: Any = {**settings, "attack": list(chosen)}
            found = pv.sweep(lambda attack: chosen[attack], measures=list(measures) or None, observe=seen, **wanted)
    shown(f"Attacks of {target.file}", found, outputs, as_json)
