"""`privug check`: do the policies of a file hold? The exit code says so, for continuous integration."""

import contextlib
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click

import privug as pv
from privug.cli.loading import loaded
from privug.cli.refusal import Refusal, Reported

FORMATS = {"text": ".txt", "json": ".json", "junit": ".xml", "sarif": ".sarif"}
SPEAKING_OF_VALUES = (pv.ProgramError, pv.InferenceError, pv.ObservationError)
"""Errors whose messages may name values of inputs and outputs."""
existing = click.Path(exists=True, dir_okay=False, path_type=Path)
written = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("file", type=existing)
@click.option(
    "--policies", type=existing, help="A TOML file of policies; default: FILE's name with .toml, privug.toml."
)
@click.option(
    "--format", "layout", type=click.Choice(list(FORMATS)), default="text", show_default=True, help="Printed."
)
@click.option("-o", "--output", "outputs", type=written, multiple=True, help="Also write .txt, .json, .xml or .sarif.")
@click.option("--show-secrets", is_flag=True, help="Show outputs that were found, and inputs in messages.")
@click.option("--engine", default=None, help="How to infer: auto, exact or sample.")
@click.option("--samples", type=click.IntRange(1), default=None, help="Samples where there is no exact answer.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Same seed, same result.")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), default=None, help="Most time for each run.")
def check(
    file: Path, policies: Path | None, layout: str, outputs: tuple[Path, ...], show_secrets: bool, **options: Any
) -> None:
    """Check the policies of a Python FILE: its Check objects, or each Policy with each Attack, and those in TOML.

    Exit codes: 0 all hold, 1 one is violated, 2 the question is wrong, 3 none is violated but not all can be decided.
    """
    with Reported():
        for path in outputs:
            if path.suffix.lower() not in pv.policy.Report.writers:
                known = ", ".join(pv.policy.Report.writers)
                raise pv.ArgumentError(f"--output {path}: a report of checks ends in one of {known}")
        # What the user's code prints must not get into a report.
        with contextlib.redirect_stdout(sys.stderr), _quiet_about_secrets(show_secrets):
            report = pv.policy.check_all(_checks(file, policies), source=file, **options)
        for path in outputs:
            report.save(path, secrets=show_secrets)
        click.echo(report.to(FORMATS[layout], show_secrets))
    click.get_current_context().exit(report.exit_code)


def _checks(file: Path, policies: Path | None) -> list[pv.policy.Check]:
    """Return the checks of a file and of the policies beside it."""
    module = loaded(file)
    found = pv.policy.checks_of(vars(module))
    beside = policies or next(filter(Path.is_file, (file.with_suffix(".toml"), file.with_name("privug.toml"))), None)
    if beside is not None:
        found += pv.policy.read_checks(beside, _attacks(module))
    if not found:
        raise pv.QuestionError(_nothing_to_check(file, module))
    twice = [name for name, count in Counter(check.name for check in found).items() if count > 1]
    if twice:
        raise pv.QuestionError(f"{file}: two checks are called {twice[0]!r}; give them names of their own")
    return found


def _attacks(module: ModuleType) -> dict[str, pv.Attack]:
    return {name: value for name, value in vars(module).items() if isinstance(value, pv.Attack)}


def _nothing_to_check(file: Path, module: ModuleType) -> str:
    has_policies = any(isinstance(value, pv.policy.Policy) for value in vars(module).values())
    missing = "no pv.Attack" if has_policies else "no policies"
    return f"{file} has {missing} at its top level, and there is no TOML file of policies beside it"


@contextlib.contextmanager
def _quiet_about_secrets(show_secrets: bool) -> Iterator[None]:
    """Keep values of inputs and outputs out of errors and warnings, unless they are to be shown."""
    with warnings.catch_warnings(record=not show_secrets) as heard:
        if not show_secrets:
            warnings.simplefilter("default")
        try:
            yield
        except pv.PrivugError as error:
            notes = getattr(error, "__notes__", [])
            if notes:  # it comes from a check, not from reading the files
                raise Refusal(f"{notes[0]}: {_told(error, show_secrets)}") from None
            raise
    for kind in dict.fromkeys(one.category.__name__ for one in heard or ()):
        click.echo(f"warning: {kind}; --show-secrets shows what it says", err=True)


def _told(error: pv.PrivugError, show_secrets: bool) -> str:
    """Return an error in one line; the first line of a program's failure says what, the next on which input."""
    lines = [line.strip() for line in str(error).splitlines()]
    if show_secrets or not isinstance(error, SPEAKING_OF_VALUES):
        return "; ".join(lines)
    return f"{type(error).__name__}; --show-secrets shows what it says"
