"""`privug audit`: does a mechanism keep its promise of differential privacy?"""

from __future__ import annotations  # what they name is imported when it is needed

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import click

import privug as pv
from privug.cli import options, writing
from privug.cli.finding import FileTarget, chosen, found_in
from privug.cli.loading import loaded
from privug.cli.refusal import UNDECIDED, Refusal, reported
from privug.cli.sweep import named_function
from privug.cli.terminal import doing
from privug.cli.values import literal
from privug.output import as_json as to_json

BROKEN = 1
FORMATS = (".json", ".txt")
PAIRS = "neighbours"


@click.command()
@options.target
@click.option("--mechanism", "names", multiple=True, metavar="NAME", help="A mechanism, or any function, of FILE.")
@click.option("--neighbours", default=PAIRS, show_default=True, metavar="NAME", help="The list of pairs in FILE.")
@click.option("--pair", "pairs", nargs=2, multiple=True, metavar="ONE OTHER", help="Two neighbouring inputs instead.")
@click.option("--epsilon", type=click.FloatRange(0), help="What is promised, for a function that is no mechanism.")
@click.option("--delta", type=click.FloatRange(0, 1), default=0.0, show_default=True, help="And its delta.")
@click.option(
    "--engine", type=click.Choice(("auto", "exact", "sample")), default="auto", show_default=True, help="How."
)
@options.samples(100_000)
@options.seed
@options.outputs(*FORMATS)
@options.as_json
def audit(
    target: FileTarget,
    names: tuple[str, ...],
    neighbours: str,
    pairs: tuple[tuple[str, str], ...],
    epsilon: float | None,
    delta: float,
    outputs: tuple[Path, ...],
    as_json: bool,
    **settings: Any,
) -> None:
    """Measure how far apart the outputs of a mechanism are for neighbouring inputs, against what it promises.

    FILE has mechanisms at its top level, as pv.mechanisms.laplace makes them, and a list `neighbours` of pairs of
    inputs that differ in one person's data; or a dict from the names of mechanisms to such lists.

    \b
    Examples:
      privug audit release.py
      privug audit release.py::noisy_count --pair '[0, 1]' '[1, 1]'
      privug audit release.py --mechanism my_own_noise --epsilon 0.5 --engine sample

    Exit codes: 0 kept for these neighbours, 1 broken, 2 the file or the question is wrong, 3 samples found no
    violation, which does not show that there is none.
    """
    with doing(f"auditing {target.file}"):
        module = loaded(target.file)
        with reported(target.file):
            guarantee = None if epsilon is None else pv.mechanisms.Guarantee(epsilon=epsilon, delta=delta)
            found = {}
            for name, mechanism in _mechanisms(target, module, names).items():
                close = [(literal(one), literal(other)) for one, other in pairs]
                close = close or _neighbours(target.file, module, neighbours, name)
                found[name] = pv.mechanisms.audit(mechanism, close, guarantee=guarantee, **settings)
    formats: dict[str, Callable[[], str]] = {
        ".json": lambda: to_json(
            {"file": str(target.file), "audits": [{"variable": name, **one.to_dict()} for name, one in found.items()]}
        ),
        ".txt": lambda: "\n\n".join(f"[{name}] {one}" for name, one in found.items()),
    }
    click.echo(formats[".json" if as_json else ".txt"]())
    writing.write(outputs, formats)
    click.get_current_context().exit(max(map(_exit_code, found.values()), key=(0, UNDECIDED, BROKEN).index))


def _exit_code(audit: pv.mechanisms.Audit) -> int:
    if audit.broken:
        return BROKEN
    open_ones = any(finding.bound for finding in audit.findings) and not audit.promise.is_empty
    return UNDECIDED if open_ones else 0


def _mechanisms(target: FileTarget, module: ModuleType, names: Sequence[str]) -> dict[str, Callable[..., Any]]:
    """Return the mechanisms of a file; any function will do if it is named."""
    found: dict[str, Callable[..., Any]] = dict(found_in(module, pv.mechanisms.Mechanism))
    wanted = (*target.names, *names)
    functions = {name: named_function(target.file, module, name) for name in wanted if name in vars(module)}
    if not found and not functions:
        raise Refusal(
            f"{target.file} has no mechanism at its top level, such as pv.mechanisms.laplace makes; "
            "--mechanism names any function of it"
        )
    return chosen(target.file, {**found, **functions}, wanted, "mechanism")


def _neighbours(file: Path, module: ModuleType, variable: str, mechanism: str) -> Any:
    pairs = vars(module).get(variable)
    if isinstance(pairs, dict):
        pairs = pairs.get(mechanism)
    if pairs is None:
        raise Refusal(
            f"{file} has no list {variable!r} of neighbouring inputs for {mechanism}; write "
            f"{variable} = [(data, other_data)], or --pair DATA OTHER_DATA"
        )
    return pairs
