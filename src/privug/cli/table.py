"""`privug table`: what can be found out about the suppressed cells of published tables?"""

from __future__ import annotations  # what they name is imported when it is needed

from pathlib import Path
from typing import Any

import click

import privug as pv
from privug.cli import options
from privug.cli.refusal import UNDECIDED, reported
from privug.cli.sweep import FORMATS, PICTURES
from privug.cli.terminal import doing

BROKEN = 1
PRIORS = ("uniform", "poisson", "multinomial", "none")


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=options.existing)
@click.option("--suppressed", multiple=True, metavar="MARK", help="A mark of suppressed cells; x, * and <5 by default.")
@click.option(
    "--primary", multiple=True, metavar="MARK", help="A mark of cells that must be protected, if not all must."
)
@click.option("--nil", multiple=True, metavar="MARK", help="A mark that stands for zero, such as -.")
@click.option("--threshold", type=click.IntRange(1), help="The primary rule: marks stand for counts below this.")
@click.option("--zeros/--no-zeros", default=None, help="Are zeros published? By default if the table shows one.")
@click.option("--no-margins", is_flag=True, help="The tables have no totals.")
@click.option("--total", multiple=True, metavar="LABEL", help="What totals are called, such as 'Both sexes'.")
@click.option("--rows", multiple=True, metavar="COLUMN", help="A column of labels; the first one by default.")
@click.option("--count", metavar="COLUMN", help="The column of figures of a long table.")
@click.option("--base", type=click.IntRange(1), help="Figures are rounded to a multiple of this.")
@click.option("--rounding", type=click.Choice(("nearest", "random")), default="nearest", show_default=True, help="How.")
@click.option("--part", "parts", multiple=True, metavar="WHOLE=A,B", help="A category that is the sum of others.")
@click.option("--partial", multiple=True, metavar="NAME", help="A dimension whose categories are not all there are.")
@click.option("--magnitude", is_flag=True, help="The figures are amounts, not counts.")
@click.option(
    "--prior", type=click.Choice(PRIORS), default="uniform", show_default=True, help="What is believed before."
)
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="The expected count of the poisson prior.")
@click.option("--width", type=click.FloatRange(0), help="How far apart the ends of an interval must lie.")
@click.option("--max-belief", type=click.FloatRange(0, 1, min_open=True), help="How sure anyone may be of a count.")
@click.option("--p-percent", type=click.FloatRange(0, min_open=True), help="The p of the p % rule, for amounts.")
@click.option("--repair", type=click.Choice(("cells", "sum", "none")), default="cells", show_default=True,
              help="What further suppression minimises.")  # fmt: skip
@options.outputs(*FORMATS)
@options.as_json
def table(
    files: tuple[Path, ...],
    no_margins: bool,
    parts: tuple[str, ...],
    outputs: tuple[Path, ...],
    as_json: bool,
    prior: Any,
    repair: Any,
    primary: tuple[str, ...],
    rate: float | None,
    width: float | None,
    max_belief: float | None,
    p_percent: float | None,
    **reading: Any,
) -> None:
    """Report what can be found out about the suppressed or rounded cells of published tables.

    Each FILE is a CSV file with one table as it is published: labels first, then a column for each category, totals
    included; or a row for each cell, with a last column of counts. Several tables are about the same people, and are
    linked by the names of their dimensions and categories.

    \b
    Examples:
      privug table published.csv
      privug table region.csv region-by-sex.csv --threshold 5 --max-belief 0.8
      privug table rounded.csv --base 5 --json
      privug table published.csv --part North=Aston,Byley -o audit.html -o audit.svg

    Exit codes: 0 every cell holds, 1 some cell gives way, 2 a table or an option is wrong, 3 a belief that is limited
    takes too long to compute.
    """
    hierarchy = dict(_part(text) for text in parts)
    given = {name: value for name, value in reading.items() if value not in ((), None)}
    with doing(f"auditing {', '.join(file.name for file in files)}"), reported():
        tables = [pv.tables.read(file, margins=not no_margins, hierarchy=hierarchy, **given) for file in files]
        found = pv.tables.audit(
            tables,
            prior=None if prior == "none" else prior,
            rate=rate,
            width=width,
            max_belief=max_belief,
            p_percent=p_percent,
            primary=primary or None,
            repair=None if repair == "none" else repair,
        )
    click.echo(found.to_json() if as_json else str(found))
    with reported():
        for path in outputs:
            found.plot(path) if path.suffix.lower() in PICTURES else found.save(path)
            click.echo(f"wrote {path}", err=True)
    click.get_current_context().exit({"holds": 0, "violated": BROKEN, "undecided": UNDECIDED}[found.status])


def _part(text: str) -> tuple[str, list[str]]:
    whole, sign, parts = text.partition("=")
    if not sign or not parts:
        raise click.BadParameter(f"{text!r}: write WHOLE=A,B", param_hint="--part")
    return whole.strip(), [part.strip() for part in parts.split(",")]
