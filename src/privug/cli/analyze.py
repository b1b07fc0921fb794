"""`privug analyze`: what do the attackers of a file learn?"""

from __future__ import annotations  # what they name is imported when it is needed

from collections.abc import Collection
from pathlib import Path
from typing import Any

import click

import privug as pv
from privug.cli import options, writing
from privug.cli.finding import FileTarget, attacks_in
from privug.cli.loading import loaded
from privug.cli.refusal import Refusal, reported
from privug.cli.terminal import doing
from privug.cli.values import observation


@click.command()
@options.target
@options.of_queries
@options.attacks
@options.observe
@options.of_runs
@options.checkpoint
@options.on
@options.outputs(*writing.REPORTS)
@options.as_json
def analyze(
    target: FileTarget,
    names: tuple[str, ...],
    observe: str | None,
    outputs: tuple[Path, ...],
    as_json: bool,
    **settings: Any,
) -> None:
    """Run the attacks of a Python FILE, or the one on a query in a file of SQL, and print what each attacker learns.

    Attacks are found as pytest finds tests: every pv.Attack at the top level of FILE, by itself or in a list or dict.

    \b
    Examples:
      privug analyze survey.py
      privug analyze survey.py::alice --observe 'near(55.3, within=0.05)'
      privug analyze survey.py --samples 100000 --seed 7 -o report.html -o report.json
      privug analyze survey.py --json | jq '.attacks[].leakage'
      privug analyze report.sql --prior people.toml

    Exit codes: 0 all attacks have an answer, 2 the file or a question is wrong, 3 an attack could not be decided.
    """
    with doing(f"reading {target.file}"):
        module = loaded(target.file)
        with reported(target.file):
            chosen = attacks_in(target.file, module, (*target.names, *names))
            seen = None if observe is None else observation(observe, vars(module))
            _check_alone(settings["checkpoint"], chosen)
    results: dict[str, pv.Result] = {}
    refusals: list[Refusal] = []
    for name, attack in chosen.items():
        try:
            with doing(f"analysing {name}"), reported(target.file):
                results[name] = attack.run(seen, **settings)
                text = writing.headed(name, results[name])
        except Refusal as refusal:
            results.pop(name, None)
            refusals.append(_named(name, refusal) if len(chosen) > 1 else refusal)
            continue
        if not as_json:
            click.echo(f"{text}\n")
    _write(target.file, results, outputs, as_json)
    for one in refusals:
        one.show()
    if refusals:
        click.get_current_context().exit(min(one.exit_code for one in refusals))


def _write(file: Path, results: dict[str, pv.Result], outputs: tuple[Path, ...], as_json: bool) -> None:
    formats = writing.report(str(file), results)
    with reported(file):
        printed = formats[".json"]() if as_json and results else None
        if results:
            writing.write(outputs, formats)
    if printed is not None:
        click.echo(printed)


def _check_alone(checkpoint: Path | None, chosen: Collection[str]) -> None:
    if checkpoint is not None and len(chosen) > 1:
        raise Refusal(f"--checkpoint is for one attack: name one of {', '.join(chosen)} as FILE::NAME")


def _named(name: str, refusal: Refusal) -> Refusal:
    return Refusal(f"{name}: {refusal.message}", refusal.exit_code)
