"""What stands in for a frame while a program is traced."""

from typing import Any

from privug.model.framed import Framed
from privug.model.table import Table
from privug.model.variable import refuse


def stand_in(value: Any) -> Any:
    """Return what a traced program gets for a frame; anything else as it is.

    A dict of columns is one of random arrays, and a table of rows has what a structured array has: columns by name and
    rows by position.
    """
    if not isinstance(value, Framed):
        return value
    if value.form == "columns":
        return {name: value.table[name] for name in value.names}
    return _rows(value) if value.form == "structured" else refuse(f"a frame of {value.form}")


def _rows(value: Framed) -> Table:
    return value.table
