"""The real engines that answer queries on plain tables: DuckDB without access to anything else, and SQLite."""

import datetime
import decimal
import math
import os
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from privug.arguments import shown
from privug.errors import ArgumentError

_connections: dict[str, Any] = {}
_using = threading.Lock()
"""Held while a connection is used, of which there is one for each engine."""
_TYPES = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "VARCHAR", datetime.date: "DATE"}
_POLARS = {"Boolean": "BOOLEAN", "Float64": "DOUBLE", "Float32": "DOUBLE", "String": "VARCHAR", "Date": "DATE"}


@dataclass(frozen=True)
class PlainTable:
    """A table as an engine gets it: names and types of columns, and rows."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: Sequence[Sequence[Any]]


def columns_of(name: str, table: Any) -> PlainTable:
    """Return a frame of polars, or a list of dicts or rows, as a table."""
    if hasattr(table, "schema") and hasattr(table, "rows"):
        types = tuple(_POLARS.get(str(kind), "BIGINT") for kind in table.schema.values())
        return PlainTable(tuple(table.columns), types, table.rows())
    if not isinstance(table, list | tuple) or not table or not all(hasattr(row, "keys") for row in table):
        raise ArgumentError(f"sql: the table {name!r} must be a polars frame, or a list of dicts, not {shown(table)}")
    names = tuple(table[0].keys())
    rows = [[row[key] for key in names] for row in table]
    return PlainTable(names, tuple(map(_type_of, zip(*rows, strict=True))), rows)


def _type_of(column: Sequence[Any]) -> str:
    return next((_TYPES[type(value)] for value in column if type(value) in _TYPES), "VARCHAR")


def answer(statement: Any, tables: Mapping[str, PlainTable], dialect: str) -> Any:
    """Return the answer to a completed statement: a value, or a list of dicts."""
    named = {f"{name}({', '.join(table.names)})": table for name, table in tables.items()}
    given = ", ".join(f"{name} AS ({_values(table, dialect)})" for name, table in named.items())
    text = statement.text
    start = "WITH RECURSIVE " if text.startswith("WITH RECURSIVE ") else "WITH "
    whole = f"{start}{given}, {text[len(start) :]}" if text.startswith(start) else f"WITH {given} {text}"
    rows = [[_plain(value) for value in row] for row in _fetched(whole, dialect)]
    if statement.is_value:
        return rows[0][0]
    return [dict(zip(statement.columns, row, strict=True)) for row in rows]


def _fetched(text: str, dialect: str) -> Sequence[Sequence[Any]]:
    with _using:
        if dialect not in _connections:
            _connections[dialect] = _connected(dialect)
        try:
            return _connections[dialect].execute(text).fetchall()  # type: ignore[no-any-return]
        except (duckdb.CatalogException, duckdb.BinderException, sqlite3.OperationalError) as error:
            raise ArgumentError(f"sql: {str(error).splitlines()[0]}") from None


def _close() -> None:
    """Close all connections before the process forks: what DuckDB holds does not survive that."""
    _using.acquire()
    for connection in _connections.values():
        connection.close()
    _connections.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close, after_in_parent=_using.release, after_in_child=_using.release)


def _connected(dialect: str) -> Any:
    if dialect == "sqlite":
        return sqlite3.connect(":memory:", check_same_thread=False)
    limits: Any = {"enable_external_access": "false", "autoinstall_known_extensions": "false", "threads": "1"}
    connection = duckdb.connect(":memory:", config=limits)
    connection.execute("SET lock_configuration = true")
    return connection


def _values(table: PlainTable, dialect: str) -> str:
    typed = [f"CAST({{}} AS {kind})" if dialect == "duckdb" else "{}" for kind in table.types]
    if not table.rows:
        return f"SELECT {', '.join(cast.format('NULL') for cast in typed)} WHERE 1 = 0"
    first, *others = ([_literal(value) for value in row] for row in table.rows)
    lines = [", ".join(cast.format(value) for cast, value in zip(typed, first, strict=True)), *map(", ".join, others)]
    return "VALUES " + ", ".join(f"({line})" for line in lines)


def _literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case float():
            return repr(value) if math.isfinite(value) else f"CAST('{value}' AS DOUBLE)"
        case datetime.date():
            return f"DATE '{value.isoformat()}'"
    return "'" + str(value).replace("'", "''") + "'"


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, decimal.Decimal) else value
