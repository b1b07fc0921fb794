"""`privug monitor`: which queries of a log may be answered, after what was answered before?"""

from __future__ import annotations  # what they name is imported when it is needed

import functools
import operator
from pathlib import Path

import click

import privug as pv
from privug.cli import options
from privug.cli.refusal import reported
from privug.cli.terminal import doing
from privug.output import as_json as to_json


@click.command()
@click.argument("log", type=options.existing)
@click.option("--prior", type=options.existing, required=True, help="A TOML file of tables and their secret.")
@click.option("--policies", type=options.existing, required=True, help="A TOML file of policies, all to be kept.")
@click.option(
    "--data", "data", type=options.existing, multiple=True, required=True,
    help="A CSV file of true rows, named as its table; may be given several times.",
)  # fmt: skip
@click.option("--secret", default=None, metavar="EXPRESSION", help="The secret, such as 'people[0].ill'.")
@options.seed
@options.as_json
def monitor(
    log: Path, prior: Path, policies: Path, data: tuple[Path, ...], secret: str | None, seed: int, as_json: bool
) -> None:
    """Ask the queries of a LOG one after the other, and say which are answered and which refused.

    Statements end in a semicolon, or each is a line. A query is refused if a policy might be broken by some answer that
    is possible by then; so a refusal tells nothing.

    \b
    Examples:
      privug monitor queries.sql --prior people.toml --policies limits.toml --data people.csv

    Exit codes: 0 all are answered, 1 one is refused, 2 the question is wrong.
    """
    with doing(f"reading {log}"), reported(log):
        asked = pv.queries.statements(log)
        tables, told = pv.queries.read_prior(prior)
        known = functools.reduce(operator.and_, pv.policy.read(policies).values())
        judge = pv.policy.Monitor(tables, pv.queries.secret_of(secret or told), known, seed=seed)
        truth = {name: table for name, table in tables.items() if isinstance(table, list)}
        truth |= {path.stem: pv.queries.read_rows(path, tables.get(path.stem)) for path in data}
        answers = pv.queries.replay(judge, asked, truth)
    if as_json:
        said = [{"query": one.query, "answered": one.answered, "reason": one.reason} for one in answers]
        click.echo(to_json(said))
    else:
        for one in answers:
            click.echo(f"{'answered' if one else 'refused '}  {one.query}{'' if one else f': {one.reason}'}")
    click.get_current_context().exit(0 if all(answers) else 1)
