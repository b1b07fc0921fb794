"""What a command is about: the attacks, functions and mechanisms of a file, found by what they are and by name."""

from __future__ import annotations  # what they name is imported when it is needed

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import click
from click.shell_completion import CompletionItem

import privug as pv
from privug.cli.refusal import Refusal

MOST_IN_LIST = 10_000  # a longer list is data
Kind = TypeVar("Kind")


class FileTarget(NamedTuple):
    """A file, and the names after its `::`, if there are any."""

    file: Path
    names: tuple[str, ...] = ()


class TargetType(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """An argument such as survey.py or survey.py::alice."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> FileTarget:
        if isinstance(value, FileTarget):
            return value
        path, _, name = str(value).partition("::")
        file = click.Path(exists=True, dir_okay=False, path_type=Path).convert(path, param, ctx)
        return FileTarget(Path(file), (name,) if name else ())

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


def found_in(module: ModuleType, kind: type[Kind]) -> dict[str, Kind]:
    """Return the objects of a kind at the top level of a module, also those in lists and dicts, by all their names."""
    named = (pair for name, value in vars(module).items() if not name.startswith("__") for pair in _named(name, value))
    return {label: one for label, one in named if isinstance(one, kind)}


def _named(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    yield name, value
    if isinstance(value, list | tuple | dict) and len(value) <= MOST_IN_LIST:
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        yield from ((f"{name}[{key!r}]", one) for key, one in inner)


def chosen(file: Path, found: Mapping[str, Kind], names: Sequence[str], what: str = "attack") -> dict[str, Kind]:
    """Return what was asked for, each once, or all: a variable, a list or dict, an element, or an object's own name."""
    picked: dict[str, Kind] = {}
    for name in names:
        same = {label: one for label, one in found.items() if label == name or label.startswith(f"{name}[")}
        own = _once({label: one for label, one in found.items() if getattr(one, "name", None) == name})
        if not same and len(own) > 1:
            raise Refusal(f"{file}: {len(own)} {what}s are called {name!r}; choose one of {', '.join(own)}")
        if not same and not own:
            raise Refusal(f"{file} has no {what} {name!r}; there is {', '.join(_once(found))}")
        picked |= same or own
    return _once(picked or found)


def _once(found: Mapping[str, Kind]) -> dict[str, Kind]:
    """Return each object under the first of its names."""
    first: dict[int, tuple[str, Kind]] = {}
    for label, one in found.items():
        first.setdefault(id(one), (label, one))
    return dict(first.values())


def attacks_in(file: Path, module: ModuleType, names: Sequence[str]) -> dict[str, pv.Attack]:
    """Return the attacks of a file that were asked for."""
    found = found_in(module, pv.Attack)
    if not found:
        raise Refusal(f"{file} has no pv.Attack at its top level; 'privug new' writes a file that has one")
    return chosen(file, found, names)
