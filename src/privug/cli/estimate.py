"""`privug estimate`: what do recorded pairs of secret and output say about a leak?"""

import textwrap
from pathlib import Path

import click

import privug as pv
from privug.cli.files import LAYOUTS, Observations, read
from privug.cli.refusal import Reported

METHODS = ("auto", "frequentist", "nearest", "knn-log10", "knn-ln", "knn-sqrt")
WIDTH = 110
existing = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("file", type=existing)
@click.option("--secret", help="The column with the secret (CSV, Parquet).")
@click.option("--output", "outputs", multiple=True, help="A column that the attacker sees; may be given several times.")
@click.option("--labels", multiple=True, help="A column of numbers that are names only; may be given several times.")
@click.option("--format", "layout", type=click.Choice(LAYOUTS), default="auto", show_default=True, help="Its layout.")
@click.option("--test", type=existing, help="A second file: learn to guess from FILE, be judged by this one.")
@click.option("--method", type=click.Choice(METHODS), default="auto", show_default=True, help="How guesses are learnt.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Same seed, same result.")
def estimate(
    file: Path,
    secret: str | None,
    outputs: tuple[str, ...],
    labels: tuple[str, ...],
    layout: str,
    test: Path | None,
    method: str,
    seed: int,
) -> None:
    """Measure the leakage in a FILE of recorded secrets and outputs.

    FILE is a CSV file with a header, a Parquet file, observations as leakiEst takes them, "(secret, output)" in every
    line, or examples as F-BLEAU takes them: no header, first the secret and then the numbers of the output.
    """
    with Reported():
        train = read(file, layout, secret, outputs, labels)
        judge = None if test is None else read(test, layout, secret, outputs, labels)
        everything = train if judge is None else train + judge
        joint = everything.joint()
        click.echo(f"{everything.source}\n")
        table = pv.leakage.leakage_table(joint)
        click.echo(f"{table}\n" if table.rows else "  there are too few rows for any measure\n")
        for name, reason in table.left_out:
            _say(f"no {name}: {reason.removeprefix(f'{name}: ')}")
        _say(f"evidence: {pv.leakage.evidence_of_leak(joint, seed=seed)}")
        if joint.secret.kind.value == "discrete":
            _show_learning(joint if judge is None else train.joint(), judge, method, seed)


def _show_learning(train: pv.Joint, judge: Observations | None, method: str, seed: int) -> None:
    """Print what an attacker achieves who learns from the examples, and whether more of them would help."""
    test = None if judge is None else judge.joint()
    try:
        risk = pv.leakage.estimate_bayes_risk(train, method, test=test, seed=seed)
    except pv.TooFewSamples as error:
        _say(f"no guesses were learnt: {error}")
        return
    _say(f"an attacker who learns from examples is wrong with probability {risk}")
    if train.output.kind.value != "discrete":
        _say(str(pv.leakage.convergence(train, method, test=test, seed=seed)))


def _say(sentence: str) -> None:
    click.echo(textwrap.fill(sentence, WIDTH, initial_indent="  ", subsequent_indent="    "))
