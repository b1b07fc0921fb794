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
import numpy as np
import polars

from privug.arguments import shown
from privug.errors import ArgumentError
from privug.program.sql.parsing import Parsed, Schema, Statement

ROWS_AT_ONCE = 100_000
"""How many rows of all samples together are asked about at once."""
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


def plain_table(name: str, table: Any) -> PlainTable:
    """Return a frame of polars, or a list of dicts or rows, as a table."""
    if hasattr(table, "schema") and hasattr(table, "rows"):
        types = tuple(_POLARS.get(str(kind), "BIGINT") for kind in table.schema.values())
        return PlainTable(tuple(table.columns), types, table.rows())
    if not isinstance(table, list | tuple) or not table or not all(hasattr(row, "keys") for row in table):
        raise ArgumentError(f"sql: the table {name!r} must be a polars frame, or a list of dicts, not {shown(table)}")
    names = tuple(table[0].keys())
    rows = [[row[key] for key in names] for row in table]
    columns = zip(*rows, strict=True)
    found = [next((_TYPES[type(one)] for one in column if type(one) in _TYPES), "VARCHAR") for column in columns]
    return PlainTable(names, tuple(found), rows)


def answer(query: Parsed, tables: Mapping[str, Any]) -> Any:
    """Return the answer to a query on plain tables: of each of its statements a value, or a list of dicts."""
    plain = {name: plain_table(name, table) for name, table in tables.items()}
    given = {_named(name, table): _values(table, query.dialect) for name, table in plain.items()}
    found = []
    for statement in query.completed(_schema(plain)):
        rows = _fetched(_beside(statement.text, given), query.dialect)
        found.append(_answer(statement, rows))
    return found if len(found) > 1 else found[0]


def answer_all(query: Parsed, calls: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the answers to a query on many tables, a block of samples in each statement that the engine gets."""
    if query.dialect == "sqlite" or len(calls) < 2:
        return [answer(query, tables) for tables in calls]
    first = {name: plain_table(name, table) for name, table in calls[0].items()}
    statements = query.completed(_schema(first))
    if not all(statement.unordered for statement in statements):
        return [answer(query, tables) for tables in calls]
    rows = max(1, sum(len(table.rows) for table in first.values()))
    block = max(2, ROWS_AT_ONCE // rows)
    try:
        found = [one for k in range(0, len(calls), block) for one in _block(statements, calls[k : k + block])]
    except duckdb.Error:  # of one sample, or of a query that cannot be asked in this way
        return [answer(query, tables) for tables in calls]
    looked_at = (0, len(calls) // 2, len(calls) - 1)
    same = all(repr(found[place]) == repr(answer(query, calls[place])) for place in looked_at)
    return found if same else [answer(query, tables) for tables in calls]


def _block(statements: Sequence[Statement], calls: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Ask one statement for all samples: with each table restricted to the rows of its sample."""
    data, given = {}, {}
    for place, name in enumerate(calls[0]):
        first, data[f"samples_of_{place}"] = _arrays(name, [tables[name] for tables in calls])
        casts = (f"CAST(c{k} AS {kind})" for k, kind in enumerate(first.types))
        given[_named(name, first)] = f"SELECT {', '.join(casts)} FROM samples_of_{place} WHERE k = sample.k"
    found: list[list[Any]] = []
    for statement in statements:
        width = len(statement.columns)
        inner = _beside(statement.unordered, given)
        made = {part.split()[0] for part in statement.order} | {f"c{k}" for k in range(width)}
        names = ", ".join(sorted(made, key=lambda one: int(one[1:])))
        text = f"SELECT sample.k, answer.* FROM range({len(calls)}) AS sample(k), LATERAL ({inner}) AS answer({names})"
        by_sample: list[list[Any]] = [[] for _ in calls]
        for row in _fetched(f"{text} ORDER BY {', '.join(['sample.k', *statement.order])}", "duckdb", data):
            by_sample[row[0]].append(row[1 : width + 1])
        found.append([_answer(statement, rows) for rows in by_sample])
    return [list(several) for several in zip(*found, strict=True)] if len(found) > 1 else found[0]


def _arrays(name: str, tables: Sequence[Any]) -> tuple[PlainTable, dict[str, Any]]:
    """Return the first of many tables, and the rows of all as arrays, with the number of the table that each is of."""
    if all(isinstance(table, polars.DataFrame) for table in tables):
        sizes, first = [table.height for table in tables], plain_table(name, tables[0].head(0))
        whole = polars.concat(tables, how="vertical_relaxed")
    else:
        plain = [plain_table(name, table) for table in tables]
        sizes, first = [len(table.rows) for table in plain], plain[0]
        rows = [row for table in plain for row in table.rows]
        whole = polars.DataFrame(rows, schema=list(first.names), orient="row", infer_schema_length=None)
    found: dict[str, Any] = {"k": np.repeat(np.arange(len(tables)), sizes)}
    for place, (column, kind) in enumerate(zip(whole.iter_columns(), first.types, strict=True)):
        if kind in ("VARCHAR", "DATE"):  # dates are read from texts
            found[f"c{place}"] = column.cast(polars.String).to_numpy()
        else:
            filled = column.fill_null(False if kind == "BOOLEAN" else 0).to_numpy()
            found[f"c{place}"] = np.ma.masked_array(filled, column.is_null().to_numpy())
    return first, found


def _schema(tables: Mapping[str, PlainTable]) -> Schema:
    return tuple((name, table.names) for name, table in tables.items())


def _named(name: str, table: PlainTable) -> str:
    return f"{name}({', '.join(_quoted(column) for column in table.names)})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _beside(text: str, given: Mapping[str, str]) -> str:
    """Return the text of a query with its tables as common ones."""
    tables = ", ".join(f"{name} AS ({rows})" for name, rows in given.items())
    start = "WITH RECURSIVE " if text.startswith("WITH RECURSIVE ") else "WITH "
    return f"{start}{tables}, {text[len(start) :]}" if text.startswith(start) else f"WITH {tables} {text}"


def _answer(statement: Statement, rows: Sequence[Sequence[Any]]) -> Any:
    plain = [[_plain(value) for value in row] for row in rows]
    return plain[0][0] if statement.is_value else [dict(zip(statement.columns, row, strict=True)) for row in plain]


def _fetched(text: str, dialect: str, data: Mapping[str, Any] | None = None) -> Sequence[Sequence[Any]]:
    with _using:
        if dialect not in _connections:
            _connections[dialect] = _connected(dialect)
        connection = _connections[dialect]
        try:
            for name, arrays in (data or {}).items():
                connection.register(name, arrays)
            return connection.execute(text).fetchall()  # type: ignore[no-any-return]
        except (duckdb.CatalogException, duckdb.BinderException, sqlite3.OperationalError) as error:
            raise ArgumentError(f"sql: {str(error).splitlines()[0]}") from None
        except (duckdb.FatalException, duckdb.InternalException):  # after which it answers nothing more
            _connections.pop(dialect).close()
            raise


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
