"""`privug estimate`: what do recorded pairs of secret and output say about a leak?"""

from __future__ import annotations  # what they name is imported when it is needed

import textwrap
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

import privug as pv
from privug.cli import options, writing
from privug.cli.files import LAYOUTS, Observations, read
from privug.cli.refusal import reported
from privug.cli.terminal import doing
from privug.output import as_json as to_json

METHODS = ("auto", "frequentist", "nearest", "knn-log10", "knn-ln", "knn-sqrt")
WIDTH = 110
FORMATS = (".json", ".txt")
MANY_ROWS = 1_000_000


@click.command()
@click.argument("file", type=options.existing)
@click.option("--secret", help="The column with the secret (CSV, JSON lines, Parquet).")
@click.option("--output", "outputs", multiple=True, help="A column that the attacker sees; may be given several times.")
@click.option("--labels", multiple=True, help="A column of numbers that are names only; may be given several times.")
@click.option("--format", "layout", type=click.Choice(LAYOUTS), default="auto", show_default=True, help="Its layout.")
@click.option("--test", type=options.existing, help="A second file: learn to guess from FILE, be judged by this one.")
@click.option("--method", type=click.Choice(METHODS), default="auto", show_default=True, help="How guesses are learnt.")
@click.option("--rows", type=click.IntRange(1), help="Take so many rows at random, if there are more.")
@options.seed
@click.option(
    "-o",
    "--report",
    "reports",
    type=options.written,
    multiple=True,
    callback=options.endings(*FORMATS),
    help="Write a file: .json or .txt; may be given several times.",
)
@options.as_json
def estimate(
    file: Path,
    secret: str | None,
    outputs: tuple[str, ...],
    labels: tuple[str, ...],
    layout: str,
    test: Path | None,
    method: str,
    rows: int | None,
    seed: int,
    reports: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Measure the leakage in a FILE of recorded secrets and outputs.

    FILE is a CSV file with a header, JSON lines (an object in each line; .jsonl or .ndjson), a Parquet file,
    observations as leakiEst takes them, "(secret, output)" in every line, or examples as F-BLEAU takes them: no header,
    first the secret and then the numbers of the output.

    \b
    Examples:
      privug estimate log.csv --secret key --output milliseconds
      privug estimate log.csv --secret key --output time --output size --json
      privug estimate huge.csv --secret key --output time --rows 100000
      privug estimate train.csv --test test.csv -o estimate.json
    """
    with doing(f"reading {file}"), reported():
        train = read(file, layout, secret, outputs, labels).part(rows, seed)
        judge = None if test is None else read(test, layout, secret, outputs, labels).part(rows, seed)
    if len(train.secrets) > MANY_ROWS:
        told = f"{file}: {len(train.secrets):,} rows may take minutes; --rows 100000 takes so many of them at random"
        click.echo(told, err=True)
    with doing(f"measuring {len(train.secrets):,} rows"), reported():
        found = _EstimatedLeak(train, judge, method, seed)
    formats: dict[str, Callable[[], str]] = {".json": lambda: to_json(found.plain()), ".txt": found.text}
    click.echo(formats[".json" if as_json else ".txt"]())
    writing.write(reports, formats)


class _EstimatedLeak:
    """What recorded pairs say about a leak."""

    def __init__(self, train: Observations, judge: Observations | None, method: str, seed: int) -> None:
        everything = train if judge is None else train + judge
        joint = everything.joint()
        self.source = everything.source
        self.table = pv.leakage.leakage_table(joint)
        self.evidence = pv.leakage.evidence_of_leak(joint, seed=seed)
        self.risk: pv.Estimate | None = None
        self.convergence: pv.leakage.Convergence | None = None
        self.no_risk = ""
        if joint.secret.kind.value != "discrete":
            return
        learnt, test = (joint, None) if judge is None else (train.joint(), judge.joint())
        try:
            self.risk = pv.leakage.estimate_bayes_risk(learnt, method, test=test, seed=seed)
        except pv.TooFewSamples as error:
            self.no_risk = str(error)
            return
        if learnt.output.kind.value != "discrete":
            self.convergence = pv.leakage.convergence(learnt, method, test=test, seed=seed)

    def text(self) -> str:
        """Return the table, and under it what was found besides, in sentences."""
        lines = [f"{self.source}\n"]
        lines.append(f"{self.table}\n" if self.table.rows else "  there are too few rows for any measure\n")
        lines += [_wrapped(f"no {name}: {why.removeprefix(f'{name}: ')}") for name, why in self.table.left_out]
        lines.append(_wrapped(f"evidence: {self.evidence}"))
        if self.no_risk:
            lines.append(_wrapped(f"no guesses were learnt: {self.no_risk}"))
        if self.risk is not None:
            lines.append(_wrapped(f"an attacker who learns from examples is wrong with probability {self.risk}"))
        if self.convergence is not None:
            lines.append(_wrapped(str(self.convergence)))
        return "\n".join(lines)

    def plain(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return {
            "source": self.source,
            "leakage": self.table.to_dict(),
            "left_out": dict(self.table.left_out),
            "evidence": asdict(self.evidence),
            "estimate_bayes_risk": None if self.risk is None else asdict(self.risk),
            "convergence": None if self.convergence is None else str(self.convergence),
        }


def _wrapped(sentence: str) -> str:
    return textwrap.fill(sentence, WIDTH, initial_indent="  ", subsequent_indent="    ")
