"""`privug sweep`: an attack for many values of its parameters."""

from __future__ import annotations  # what they name is imported when it is needed

import inspect
from collections.abc import Callable, Collection
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import click

import privug as pv
from privug.cli import options, writing
from privug.cli.finding import FileTarget
from privug.cli.loading import loaded
from privug.cli.refusal import Refusal, exit_code, reported
from privug.cli.terminal import doing
from privug.cli.values import observation, parameter
from privug.markup import page
from privug.output import as_json as to_json

PICTURES = (".png", ".svg", ".pdf")
FORMATS = (*writing.REPORTS, *PICTURES)


@click.command()
@options.target
@click.option("--over", multiple=True, required=True, metavar="NAME=VALUES", help="A parameter: epsilon=0.1,1,10.")
@click.option("--attack", "function", metavar="NAME", help="The function of FILE that makes the attack.")
@options.measures
@click.option("--utility", metavar="NAME", help="The program of FILE without protection: what does protection cost?")
@options.observe
@options.engine
@options.samples(10_000)
@options.seed
@options.checkpoint
@options.on
@options.outputs(*FORMATS)
@options.as_json
def sweep(
    target: FileTarget,
    over: tuple[str, ...],
    function: str | None,
    measures: tuple[str, ...],
    utility: str | None,
    observe: str | None,
    outputs: tuple[Path, ...],
    as_json: bool,
    **settings: Any,
) -> None:
    """Run an attack for every combination of parameters, and measure each.

    FILE has a function that takes the parameters and returns a pv.Attack. The one whose parameters are those of --over
    is found; FILE::NAME or --attack NAME names it.

    \b
    Examples:
      privug sweep noisy.py --over epsilon=0.1,1,10
      privug sweep noisy.py::attack_for --over epsilon=0.1,1,10 --over people=5,50 --measure mutual_information
      privug sweep noisy.py --over epsilon=0.1,1,10 --utility mean -o sweep.svg -o sweep.json

    Exit codes: 0 every point has an answer, 2 the file or a question is wrong, 3 some point could not be decided.
    """
    parameters = dict(map(parameter, over))
    with doing(f"sweeping over {', '.join(parameters)}"):
        module = loaded(target.file)
        with reported(target.file):
            attack_for = _function(target, module, function, parameters)
            wanted: Any = {**settings, **parameters}
            found = pv.sweep(
                attack_for,
                measures=list(measures) or None,
                utility=None if utility is None else named_function(target.file, module, utility),
                observe=None if observe is None else observation(observe, vars(module)),
                **wanted,
            )
    shown(f"{target.file}::{attack_for.__name__}", found, outputs, as_json)


def named_function(file: Path, module: ModuleType, name: str) -> Callable[..., Any]:
    """Return the function of a file with a given name."""
    found = vars(module).get(name)
    if not callable(found):
        known = ", ".join(key for key, value in vars(module).items() if _is_own(module, value)) or "none"
        raise Refusal(f"{file} has no function {name!r}; its functions are {known}")
    return found  # type: ignore[no-any-return]


def _function(target: FileTarget, module: ModuleType, name: str | None, parameters: Collection[str]) -> Any:
    """Return the function that makes the attack: the one named, or the only one of these parameters."""
    names = [*target.names, *([] if name is None else [name])]
    if names:
        return named_function(target.file, module, names[-1])
    fitting = {key: one for key, one in vars(module).items() if _is_own(module, one) and _takes(one, set(parameters))}
    if len(fitting) != 1:
        many = f"several functions of {', '.join(parameters)}: {', '.join(fitting)}"
        which = many if fitting else f"no function of {', '.join(parameters)} that could return a pv.Attack"
        raise Refusal(f"{target.file} has {which}; name the one that makes the attack: {target.file}::NAME")
    return next(iter(fitting.values()))


def _is_own(module: ModuleType, value: Any) -> bool:
    return isinstance(value, FunctionType) and value.__module__ == module.__name__


def _takes(function: FunctionType, names: set[str]) -> bool:
    """Return whether a function can be called with these parameters, and no others."""
    try:
        inspect.signature(function).bind(**dict.fromkeys(names))
    except TypeError:
        return False
    return True


def shown(title: str, found: pv.Sweep, outputs: tuple[Path, ...], as_json: bool) -> None:
    """Print a study and write it to files; leave with a code of `analyze` if some attack has no answer."""
    rows: Any = {"about": title, "rows": found.to_dict()}
    told = f"{title}: {str(found).partition(': ')[2]}"
    formats: dict[str, Callable[[], str]] = {
        ".html": lambda: page(title, f"<main>{found._repr_html_()}</main>"),
        ".json": lambda: to_json(rows),
        ".txt": lambda: told,
    }
    click.echo(formats[".json" if as_json else ".txt"]())
    with reported():
        writing.write([path for path in outputs if path.suffix.lower() not in PICTURES], formats)
        for path in outputs:
            if path.suffix.lower() in PICTURES:
                found.plot(path)
                click.echo(f"wrote {path}", err=True)
    refusals = [outcome.unanswered for outcome in found.outcomes if outcome.unanswered is not None]
    if refusals:
        click.get_current_context().exit(min(exit_code(refusal.error) for refusal in refusals))
