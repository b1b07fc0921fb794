"""`privug check`: do the policies of a file hold? The exit code says so, for continuous integration."""

from __future__ import annotations  # what they name is imported when it is needed

import contextlib
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import click

import privug as pv
from privug.cli import options
from privug.cli.finding import FileTarget
from privug.cli.loading import loaded
from privug.cli.refusal import Refusal, reported
from privug.cli.terminal import doing

FORMATS = {"text": ".txt", "json": ".json", "junit": ".xml", "sarif": ".sarif"}
SPEAKING_OF_VALUES = (pv.ProgramError, pv.InferenceError, pv.ObservationError)
"""Errors whose messages may name values of inputs and outputs."""


@click.command()
@options.target
@options.of_queries
@click.option(
    "--policies", type=options.existing, help="A TOML file of policies; default: FILE's name with .toml, privug.toml."
)
@click.option(
    "--format", "layout", type=click.Choice(list(FORMATS)), default="text", show_default=True, help="Printed."
)
@options.outputs(*FORMATS.values())
@click.option("--show-secrets", is_flag=True, help="Show outputs that were found, and inputs in messages.")
@click.option("--engine", default=None, help="How to infer: auto, exact or sample.")
@click.option("--samples", type=click.IntRange(1), default=None, help="Samples where there is no exact answer.")
@options.seed
@click.option("--seconds", type=click.FloatRange(0, min_open=True), default=None, help="Most time for each run.")
@options.as_json
def check(
    target: FileTarget,
    policies: Path | None,
    layout: str,
    outputs: tuple[Path, ...],
    show_secrets: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Check the policies of a Python FILE: its Check objects, or each Policy with each Attack, and those in TOML.

    \b
    Examples:
      privug check survey.py
      privug check survey.py --policies limits.toml --json
      privug check survey.py -o results.xml -o results.sarif
      privug check report.sql --prior people.toml --policies limits.toml

    FILE::NAME checks what is so called, or belongs to the attack of that name.

    Exit codes: 0 all hold, 1 one is violated, 2 the question is wrong, 3 none is violated but not all can be decided.
    """
    file = target.file
    with doing(f"checking {file}"), reported(file, secrets=show_secrets), _quiet_about_secrets(show_secrets):
        report = pv.policy.check_all(_checks(target, policies), source=file, **settings)
    with reported():
        for path in outputs:
            report.save(path, secrets=show_secrets)
    click.echo(report.to(FORMATS["json" if as_json else layout], show_secrets))
    click.get_current_context().exit(report.exit_code)


def _checks(target: FileTarget, policies: Path | None) -> list[pv.policy.Check]:
    """Return the checks of a file and of the policies beside it."""
    file = target.file
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
    return [check for check in found if not target.names or _is_meant(check, target.names)] or _none_meant(
        target, found
    )


def _is_meant(check: pv.policy.Check, names: Sequence[str]) -> bool:
    return any(name in (check.name, check.attack_name, check.policy_name) for name in names)


def _none_meant(target: FileTarget, found: Sequence[pv.policy.Check]) -> NoReturn:
    known = ", ".join(check.name for check in found)
    raise Refusal(f"{target.file} has no check, attack or policy {target.names[0]!r}; there is {known}")


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
