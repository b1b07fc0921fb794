"""The `privug` command."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

import privug as pv
from privug.cli import running_example
from privug.cli.check import check
from privug.cli.estimate import estimate
from privug.cli.loading import loaded
from privug.cli.refusal import Reported
from privug.cli.terminal import never_fail_to_show

Command = TypeVar("Command", bound=Callable[..., Any])


def _options(command: Command) -> Command:
    """Add the options that every analysis takes."""
    for option in (
        click.option("--samples", type=click.IntRange(1), default=10_000, show_default=True, help="Samples wanted."),
        click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Same seed, same result."),
        click.option("--engine", default="auto", show_default=True, help="How to infer: auto, exact or sample."),
        click.option("--budget", type=click.IntRange(1), default=None, help="Most draws to spend."),
    ):
        command = option(command)
    return command


@click.group()
@click.version_option(pv.__version__, prog_name="privug")
def main() -> None:
    """Privug: what does an attacker learn from the output of your program?"""
    never_fail_to_show()


@main.command()
@click.option("--code", is_flag=True, help="Print the example's source instead, to start from.")
@_options
def demo(code: bool, **options: Any) -> None:
    """Analyse the running example for two attackers, side by side."""
    if code:
        click.echo(Path(running_example.__file__).read_text(encoding="utf-8"))
        return
    with Reported():
        results = [attack.run(**options) for attack in (running_example.lot, running_example.bit)]
        click.echo(pv.side_by_side("The mean age of a table is published as 55.3. What about Alice's age?", results))


@main.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--save", type=click.Path(dir_okay=False, path_type=Path), help="Write the last report: .html, .txt or .json."
)
@_options
def analyze(file: Path, save: Path | None, **options: Any) -> None:
    """Run the Attack objects at the top level of a Python FILE and print what each attacker learns."""
    with Reported():
        if save is not None and save.suffix.lower() not in pv.Result.formats:
            raise pv.ArgumentError(f"--save {save}: a report ends in one of {', '.join(pv.Result.formats)}")
        attacks = {n: value for n, value in vars(loaded(file)).items() if isinstance(value, pv.Attack)}
        if not attacks:
            raise pv.QuestionError(f"{file} has no pv.Attack at its top level")
        for name, attack in attacks.items():
            result = attack.run(**options)
            click.echo(f"[{name}] {result}\n")
        if save is not None:
            click.echo(f"saved {result.save(save)}")


main.add_command(check)
main.add_command(estimate)


if __name__ == "__main__":
    main()
