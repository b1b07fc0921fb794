"""The `privug` command."""

import sys
import traceback
from collections.abc import Callable
from importlib import util
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import click

import privug as pv
from privug.cli import running_example
from privug.cli.estimate import estimate
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
        attacks = {n: value for n, value in vars(_loaded(file)).items() if isinstance(value, pv.Attack)}
        if not attacks:
            raise pv.QuestionError(f"{file} has no pv.Attack at its top level")
        for name, attack in attacks.items():
            result = attack.run(**options)
            click.echo(f"[{name}] {result}\n")
        if save is not None:
            click.echo(f"saved {result.save(save)}")


def _loaded(file: Path) -> ModuleType:
    """Run the user's file as a module; its own errors are shown with its own lines only."""
    # A name of its own: the file may be called as a library is, numpy.py for one.
    name = f"_privug_analyze_{file.stem}"
    loader = SourceFileLoader(name, str(file))
    module = util.module_from_spec(ModuleSpec(name, loader, origin=str(file)))
    module.__file__ = str(file)
    sys.modules[name] = module
    folder = str(file.parent)
    # Its neighbours come first, as for `python FILE`, unless it would itself be taken for a library.
    sys.path.insert(len(sys.path) if PathFinder.find_spec(file.stem) else 0, folder)
    try:
        loader.exec_module(module)
    except pv.PrivugError:
        raise
    except (Exception, SystemExit) as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == file]
        line = f", line {frames[-1].lineno}" if frames else ""
        raise pv.ProgramError(f"{file}{line}: {type(error).__name__}: {error}") from None
    finally:
        sys.path.remove(folder)
    return module


main.add_command(estimate)


if __name__ == "__main__":
    main()
