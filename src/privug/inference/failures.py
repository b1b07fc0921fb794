"""Failures of programs as users are told of them: on which input, what may be behind it, and what to write."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from privug.arguments import listed_names, shortened
from privug.errors import ProgramError
from privug.model.operations import SampleFailure
from privug.model.table import NoColumn, Row

_NAMES = re.compile(r"""['"]([^'"]+)['"]|not found: (\S+)""")


class NotANumber(Exception):
    """A secret or an output is NaN: not a number, as what is missing in frames is."""


def failure_of_program(
    failure: SampleFailure, inputs: Mapping[str, Any] | None = None, *, everywhere: bool = False
) -> ProgramError:
    """Say what failed, on which input if that is known, and what to do.

    What fails `everywhere`, on every input that was tried, or for want of a column, is wrong in the program, and no
    input is to blame.
    """
    cause = failure.cause
    if isinstance(cause, NotANumber):
        said = [f"{failure.label} is NaN: missing, or not a number"]
    else:
        said = [f"{failure.label} failed with {described(cause)}"]
    if inputs is None:
        said.append("on some inputs that the prior allows")
    else:
        said.append(f"on the input {', '.join(f'{name} = {shortened(value)}' for name, value in inputs.items())}")
    if isinstance(cause, NotANumber):
        said.append("Write None if pd.isna(x) else x to make that a value of its own.")
    if everywhere:
        said += ["It fails on every input that was tried.", *_columns(cause, inputs or {})]
    elif not isinstance(cause, NoColumn):
        said.append('Give pv.Attack(..., on_error="exclude") to leave such inputs out and have them counted.')
    return ProgramError("\n  ".join(said))


def described(error: BaseException) -> str:
    """Return what Python calls an error of this kind, and what it says."""
    kind = next(kind.__name__ for kind in type(error).__mro__ if not issubclass(kind, NoColumn))
    return f"{kind}: {error}"


def _columns(cause: BaseException, inputs: Mapping[str, Any]) -> Iterator[str]:
    """Say which columns tables have, if the error is about a name that none of them has and does not say so itself."""
    wanted = _name_not_found(cause)
    for name, value in inputs.items():
        columns = _names_of_columns(value)
        if wanted and columns and wanted not in columns and not all(column in str(cause) for column in columns):
            yield f"{name} has the columns {listed_names(columns, wanted)}"


def _name_not_found(cause: BaseException) -> str:
    """Return the name that was looked for in vain, if an error is about one."""
    is_named = isinstance(cause, KeyError) or type(cause).__name__ == "ColumnNotFoundError"  # of polars
    if not (is_named or isinstance(cause, AttributeError)) or not cause.args:
        return ""
    text = str(cause.args[0])
    quoted = ["".join(found) for found in _NAMES.findall(text)] or [text]
    return quoted[0] if is_named else quoted[-1]  # 'DataFrame' object has no attribute 'agee'


def _names_of_columns(value: Any) -> list[str]:
    """Return the names of a table's columns, in whatever form a program gets it; none of anything else."""
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, Row):
        return list(value.keys())
    names = getattr(value, "columns", None)  # of pandas or polars
    if names is None:
        names = value if isinstance(value, Mapping) else getattr(getattr(value, "dtype", None), "names", None)
    return [name for name in names if isinstance(name, str)] if names is not None else []
