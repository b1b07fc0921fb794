"""`privug explain`: how a program is lifted to distributions, line by line."""

import click

import privug as pv
from privug.cli import options
from privug.cli.finding import FileTarget, attacks_in
from privug.cli.loading import loaded
from privug.cli.refusal import reported
from privug.cli.terminal import doing
from privug.output import as_json as to_json


@click.command()
@options.target
@options.attacks
@options.of_queries
@options.as_json
def explain(target: FileTarget, names: tuple[str, ...], as_json: bool) -> None:
    """Show line by line how the programs of a Python FILE, or the query of a file of SQL, are lifted to distributions.

    Beside each line stands what it computes with random values; an arrow marks the line at which tracing stopped.

    \b
    Examples:
      privug explain survey.py
      privug explain survey.py::alice --json
      privug explain report.sql --prior people.toml
    """
    with doing(f"lifting the programs of {target.file}"):
        module = loaded(target.file)
        with reported(target.file):
            chosen = attacks_in(target.file, module, (*target.names, *names))
            found = {name: pv.explain(attack) for name, attack in chosen.items()}
    rows = [{"variable": name, **listing.to_dict()} for name, listing in found.items()]
    text = "\n\n".join(f"[{name}] {listing}" for name, listing in found.items())
    click.echo(to_json({"file": str(target.file), "attacks": rows}) if as_json else text)
