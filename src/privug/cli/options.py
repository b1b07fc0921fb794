"""The arguments and options that commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

import privug as pv
from privug.cli.finding import TargetType

Command = TypeVar("Command", bound=Callable[..., Any])
ENGINES = ("auto", "exact", "sample", "rare", "pymc", "numpyro")


class MeasureType(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """The name of a measure of joints, which are looked up when one is given."""

    name = "measure"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self._known():
            self.fail(f"{value!r} is not one of {', '.join(map(repr, self._known()))}.", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in self._known() if name.startswith(incomplete)]

    @staticmethod
    def _known() -> list[str]:
        return [*pv.leakage.measures("joint"), *pv.leakage.measures("channel")]


existing = click.Path(exists=True, dir_okay=False, path_type=Path)
written = click.Path(dir_okay=False, path_type=Path)
target = click.argument("target", metavar="FILE[::NAME]", type=TargetType())
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, with numbers in full.")
seed = click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Same seed, same result.")
observe = click.option(
    "--observe", metavar="VALUE", help="What is seen instead: 55.3, 'near(55.3, within=0.05)', a name of FILE."
)
attacks = click.option(
    "--attack", "names", multiple=True, metavar="NAME", help="An attack of FILE; may be given several times."
)
measures = click.option(
    "--measure",
    "measures",
    multiple=True,
    type=MeasureType(),
    metavar="NAME",
    help="A measure by the name of its function in pv.leakage; may be given several times.",
)


def _engines(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in ENGINES if name.startswith(incomplete)]


engine = click.option(
    "--engine",
    default="auto",
    show_default=True,
    shell_complete=_engines,
    help=f"How to infer: {', '.join(ENGINES[:-1])} or {ENGINES[-1]}.",
)


def samples(default: int) -> Callable[[Command], Command]:
    """Return the option that says how many samples are wanted."""
    return click.option("--samples", type=click.IntRange(1), default=default, show_default=True, help="Samples wanted.")


def outputs(*known: str) -> Callable[[Command], Command]:
    """Return the option that writes files, in the formats that their names end in."""
    told = f"Write a file: {', '.join(known[:-1])} or {known[-1]}; may be given several times."
    return click.option("-o", "--output", "outputs", type=written, multiple=True, callback=endings(*known), help=told)


def endings(*known: str) -> Callable[[click.Context, click.Parameter, tuple[Path, ...]], tuple[Path, ...]]:
    """Return what refuses files of other formats, and in folders that are not there, before anything is run."""

    def checked(ctx: click.Context, param: click.Parameter, paths: tuple[Path, ...]) -> tuple[Path, ...]:
        for path in paths:
            if path.suffix.lower() not in known:
                raise click.BadParameter(f"{path.name}: a report ends in one of {', '.join(known)}")
            if not path.absolute().parent.is_dir():
                raise click.BadParameter(f"{path}: there is no such folder")
        return paths

    return checked


def _work_on(ctx: click.Context, param: click.Parameter, address: str | None) -> None:
    """Do what takes long on a cluster, until the command ends."""
    if address is not None:
        try:
            ctx.with_resource(pv.configure(on=address))
        except pv.ArgumentError as error:
            raise click.BadParameter(str(error)) from None


on = click.option(
    "--on",
    default=None,
    metavar="ADDRESS",
    expose_value=False,
    callback=_work_on,
    help="Do what takes long on a Dask cluster, such as tcp://10.0.0.1:8786.",
)
checkpoint = click.option(
    "--checkpoint", type=written, default=None, metavar="PATH", help="Keep what is found there, and go on from there."
)


def _of_queries(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Keep what is said of a query until its file is read."""
    ctx.meta.setdefault("privug.queries", {})[str(param.name)] = value


def of_queries(command: Command) -> Command:
    """Add the options that say what an attacker on a file of SQL knows."""
    known: Any = {"expose_value": False, "callback": _of_queries, "default": None}
    for option in (
        click.option("--dialect", metavar="NAME", help="Of a file of SQL: its dialect, duckdb by default.", **known),
        click.option("--secret", metavar="EXPRESSION", help="Of a file of SQL: the secret, 'people[0].ill'.", **known),
        click.option("--learn", type=existing, help="Of a file of SQL: a CSV file to learn a prior from.", **known),
        click.option("--prior", type=existing, help="Of a file of SQL: a TOML file with the prior.", **known),
    ):
        command = option(command)
    return command


def of_runs(command: Command) -> Command:
    """Add the options that every run of an attack takes."""
    for option in (
        click.option("--budget", type=click.IntRange(1), default=None, help="Most draws to spend."),
        click.option("--seconds", type=click.FloatRange(0, min_open=True), default=None, help="Most time for each."),
        seed,
        samples(10_000),
        engine,
    ):
        command = option(command)
    return command
