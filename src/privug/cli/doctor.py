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
class Part:
    """Something that Privug can use: the libraries it is made of, what it serves, and the extra that installs it."""

    name: str
    libraries: tuple[str, ...]
    serves: str
    extra: str = ""


PARTS = (
    Part("exact", ("numpy", "scipy"), "exact inference"),
    Part("native", ("numba",), "compiled programs", "native"),
    Part("pandas", ("pandas",), "programs on pandas frames", "frames"),
    Part("polars", ("polars",), "programs on polars frames", "frames"),
    Part("sql", ("sqlglot", "duckdb", "polars"), "SQL queries", "sql"),
    Part("parquet", ("pyarrow",), "Parquet files", "parquet"),
    Part("plot", ("matplotlib",), "pictures", "plot"),
    Part("pymc", ("pymc", "arviz"), "engine 'pymc'", "pymc"),
    Part("numpyro", ("numpyro", "jax", "arviz"), "engine 'numpyro'", "numpyro"),
    Part("opendp", ("opendp",), "mechanisms of OpenDP", "opendp"),
    Part("dask", ("distributed",), "clusters", "dask"),
)


@dataclass(frozen=True)
class Found:
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
    """Say what is installed, and whether it works: each part is really used, in a process of its own.

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


def _line(one: Found) -> str:
    colour = {"works": "green", "missing": None}.get(one.state, "red")
    versions = ", ".join(f"{name} {version}" for name, version in one.versions.items())
    told = "; ".join(part for part in (versions, one.advice) if part)
    return f"  {click.style(f'{one.state:<8}', fg=colour)}  {one.name:<8}  {one.serves} ({told})"


def _tried(parts: list[Part], timeout: float) -> Iterator[Found]:
    for part in parts:
        with doing(f"trying {part.name}"):
            yield tried(part, timeout)


def tried(part: Part, timeout: float) -> Found:
    """Try a part in a process of its own."""
    versions = {library: _version(library) for library in part.libraries if util.find_spec(library) is not None}
    missing = [library for library in part.libraries if library not in versions]
    if missing:
        advice = f"no {' and '.join(missing)}: pip install 'privug[{part.extra}]'"
        return Found(part.name, "missing", part.serves, versions, 0.0, advice)
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
        return Found(part.name, "too slow", part.serves, versions, timeout, advice)
    seconds = round(time.monotonic() - started, 1)
    if outcome.returncode == 0:
        return Found(part.name, "works", part.serves, versions, seconds)
    last = (outcome.stderr.strip().splitlines() or [f"it ended with {outcome.returncode}"])[-1]
    return Found(part.name, "fails", part.serves, versions, seconds, str(pv.PrivugError(last[:200])))


def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "of unknown version"
