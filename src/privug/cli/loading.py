"""The user's file, run as a module."""

import ast
import sys
from importlib import util
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType

import click

import privug as pv
from privug.cli.refusal import Refusal, reported


def loaded(file: Path) -> ModuleType:
    """Run the user's file as a module; its own errors are shown with its own lines only. A file of SQL is an attack."""
    if file.suffix == ".sql":
        return _attack_on(file)
    # A name of its own: the file may be called as a library is, numpy.py for one.
    name = f"_privug_file_{file.stem}"
    loader = SourceFileLoader(name, str(file))
    module = util.module_from_spec(ModuleSpec(name, loader, origin=str(file)))
    module.__file__ = str(file)
    sys.modules[name] = module
    folder = str(file.parent)
    # Its neighbours come first, as for `python FILE`, unless it would itself be taken for a library.
    sys.path.insert(len(sys.path) if PathFinder.find_spec(file.stem) else 0, folder)
    try:
        with reported(file):
            loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    _check_names(file)
    return module


def _attack_on(file: Path) -> ModuleType:
    """Return a module with the attack on a query, by the prior that the options of the command name."""
    module = ModuleType(file.stem)
    with reported(file):
        given = click.get_current_context().meta.get("privug.queries", {})
        setattr(module, file.stem, pv.queries.attack_on(file, **given))
    return module


def _check_names(file: Path) -> None:
    """Refuse a file in which an attack takes the name of another one, which would be lost without a word."""
    taken: dict[str, int] = {}
    for statement in ast.parse(file.read_bytes()).body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            continue
        function = statement.value.func
        if getattr(function, "attr", getattr(function, "id", "")) != "Attack":
            continue
        for name in [target.id for target in statement.targets if isinstance(target, ast.Name)]:
            if name in taken:
                raise Refusal(
                    f"{file}, line {statement.lineno}: {name!r} is already the name of the attack at line "
                    f"{taken[name]}, which would be lost; give them names of their own"
                )
            taken[name] = statement.lineno
