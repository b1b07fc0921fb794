"""`privug reproduce`: the paper's tables and figures."""

import sys
from importlib import import_module, util
from pathlib import Path
from types import ModuleType

import click

import privug as pv
from privug.cli import options
from privug.cli.refusal import Refusal
from privug.output import as_json as to_json

PACKAGE = "privug.experiments"
FOLDER = Path(pv.__file__).parents[2] / "experiments"


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default="reproduction",
    show_default=True,
    help="The folder to write the page, the figures and the numbers to.",
)
@click.option("--list", "listed", is_flag=True, help="Say what there is, and run nothing.")
@options.as_json
def reproduce(names: tuple[str, ...], folder: Path, listed: bool, as_json: bool) -> None:
    """Reproduce the paper's tables and figures: all of them, or those named.

    The experiments are part of the source, so run this in a checkout. Each shows Privug's value, the exact one and the
    paper's side by side. The folder gets NAME.json and figures for each, and index.html for all.

    \b
    Examples:
      privug reproduce --list
      privug reproduce table_1
      privug reproduce -o paper

    Exit codes: 0 every exact value was met, 1 one was missed or an experiment failed, 2 there is no such experiment.
    """
    known = experiments("experiment").experiments()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise Refusal(f"reproduce: there is no experiment {unknown[0]!r}; there are {', '.join(known)}")
    chosen = [known[name] for name in dict.fromkeys(names or known)]
    if listed and as_json:
        click.echo(to_json([{"name": e.name, "paper": e.paper, "title": e.title} for e in chosen]))
    elif listed:
        width = max(len(e.name) for e in chosen)
        for e in chosen:
            click.echo(f"{e.name:{width}}  {e.title} ({e.paper})")
    else:
        try:
            code = experiments("runner").reproduce(chosen, folder, printed_json=as_json)
        except OSError as error:
            raise Refusal(f"{error.filename} cannot be written: {error.strerror}") from None
        raise click.exceptions.Exit(code)


def experiments(module: str) -> ModuleType:
    """Return a module of the experiments, which lie beside the source in a checkout and are not part of the package."""
    if PACKAGE not in sys.modules:
        spec = util.spec_from_file_location(PACKAGE, FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)])
        if spec is None or spec.loader is None or not FOLDER.is_dir():
            raise Refusal(
                "reproduce: the experiments are in the source of Privug, not in the installed package; in a checkout "
                "of it run: make reproduce"
            )
        package = util.module_from_spec(spec)
        sys.modules[PACKAGE] = package
        spec.loader.exec_module(package)
    return import_module(f"{PACKAGE}.{module}")
