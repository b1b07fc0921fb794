"""`privug doctor`: what is installed, and does it work? Each part is tried in a process of its own."""

import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata, util

import click

import privug as pv
from privug.cli import options
from privug.cli.terminal import doing
from privug.output import as_json as to_json

BROKEN = 1


@dataclass(frozen=True)
class OptionalPart:
    """Something that Privug can use: the libraries it is made of, what it serves, and the extra that installs it."""

    name: str
    libraries: tuple[str, ...]
    serves: str
    extra: str = ""


PARTS = (
    OptionalPart("exact", ("numpy", "scipy"), "exact inference"),
    OptionalPart("native", ("numba",), "compiled programs", "native"),
    OptionalPart("pandas", ("pandas",), "programs on pandas frames", "frames"),
    OptionalPart("polars", ("polars",), "programs on polars frames", "frames"),
    OptionalPart("sql", ("sqlglot", "duckdb", "polars"), "SQL queries", "sql"),
    OptionalPart("parquet", ("pyarrow",), "Parquet files", "parquet"),
    OptionalPart("plot", ("matplotlib",), "pictures", "plot"),
    OptionalPart("pymc", ("pymc", "arviz"), "engine 'pymc'", "pymc"),
    OptionalPart("numpyro", ("numpyro", "jax", "arviz"), "engine 'numpyro'", "numpyro"),
    OptionalPart("opendp", ("opendp",), "mechanisms of OpenDP", "opendp"),
    OptionalPart("dask", ("distributed",), "clusters", "dask"),
)


@dataclass(frozen=True)
class PartStatus:
    """What came of trying a part."""

    name: str
    state: str
    """'works', 'missing', 'fails' or 'too slow'"""
    serves: str
    versions: dict[str, str]
    seconds: float
    advice: str = ""


@click.command()
@click.option("--only", multiple=True, type=click.Choice([part.name for part in PARTS]), help="Try this part only.")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), default=60.0, show_default=True, help="Seconds.")
@options.as_json
def doctor(only: tuple[str, ...], timeout: float, as_json: bool) -> None:
    """Report what is installed, and whether it works: each part is used, in a process of its own.

    \b
    Examples:
      privug doctor
      privug doctor --only pymc --timeout 120
      privug doctor --json

    Exit codes: 0 whatever is installed works, 1 something that is installed does not.
    """
    about = {
        "privug": pv.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
    }
    if not as_json:
        click.echo("  ".join(f"{name} {value}" for name, value in about.items()))
    found = []
    for one in _tried([part for part in PARTS if not only or part.name in only], timeout):
        found.append(one)
        if not as_json:
            click.echo(_line(one))
    if as_json:
        click.echo(to_json({**about, "parts": [asdict(one) for one in found]}))
    if any(one.state in ("fails", "too slow") for one in found):
        click.get_current_context().exit(BROKEN)


def _line(one: PartStatus) -> str:
    colour = {"works": "green", "missing": None}.get(one.state, "red")
    versions = ", ".join(f"{name} {version}" for name, version in one.versions.items())
    told = "; ".join(part for part in (versions, one.advice) if part)
    return f"  {click.style(f'{one.state:<8}', fg=colour)}  {one.name:<8}  {one.serves} ({told})"


def _tried(parts: list[OptionalPart], timeout: float) -> Iterator[PartStatus]:
    for part in parts:
        with doing(f"trying {part.name}"):
            yield tried(part, timeout)


def tried(part: OptionalPart, timeout: float) -> PartStatus:
    """Try a part in a process of its own."""
    versions = {library: _version(library) for library in part.libraries if util.find_spec(library) is not None}
    missing = [library for library in part.libraries if library not in versions]
    if missing:
        advice = f"no {' and '.join(missing)}: pip install 'privug[{part.extra}]'"
        return PartStatus(part.name, "missing", part.serves, versions, 0.0, advice)
    started = time.monotonic()
    try:
        outcome = subprocess.run(
            [sys.executable, "-m", "privug.cli.trials", part.name],
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        advice = f"not ready after {timeout:g} s: try --timeout {4 * timeout:g}"
        return PartStatus(part.name, "too slow", part.serves, versions, timeout, advice)
    seconds = round(time.monotonic() - started, 1)
    if outcome.returncode == 0:
        return PartStatus(part.name, "works", part.serves, versions, seconds)
    last = (outcome.stderr.strip().splitlines() or [f"it ended with {outcome.returncode}"])[-1]
    return PartStatus(part.name, "fails", part.serves, versions, seconds, str(pv.PrivugError(last[:200])))


def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "of unknown version"
