"""Privug: a debugger for privacy."""

import ast as _ast
from importlib import import_module as _import_module
from pathlib import Path as _Path

__version__ = "0.2.0"


def _homes() -> dict[str, str]:
    """Return the module of each public name, as the stub beside this file tells type checkers."""
    stub = _ast.parse(_Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    return {
        alias.name: f"{node.module}" for node in stub.body if isinstance(node, _ast.ImportFrom) for alias in node.names
    }


# Everything is imported when it is first asked for: `privug --help` needs none of it.
_HOMES = _homes()
__all__ = sorted(_HOMES, key=lambda name: (name[0].islower(), name))


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'privug' has no attribute {name!r}")
    home = _HOMES[name]
    value = _import_module(f"privug.{name}") if home == "privug" else getattr(_import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
