"""The real engines that answer queries on plain tables: DuckDB without access to anything else, and SQLite."""

import datetime
import decimal
import math
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import polars

from privug.arguments import shown
from privug.errors import ArgumentError
from privug.program.sql.parsing import Parsed, Schema, Statement
from privug.program.traced.frames.dialects import Dialect

ROWS_AT_ONCE = 100_000
"""How many rows of all samples together are asked about at once."""
_connections: dict[str, Any] = {}
_using = threading.Lock()
"""Held while a connection is used, of which there is one for each engine."""
_TYPES: dict[type, str] = {
    bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "VARCHAR", decimal.Decimal: "DOUBLE",
    datetime.datetime: "TIMESTAMP", datetime.date: "DATE", datetime.time: "TIME",
}  # fmt: skip
"""A class stands before those that it is a subclass of."""
_POLARS = {
    "Boolean": "BOOLEAN", "Float": "DOUBLE", "String": "VARCHAR", "Categorical": "VARCHAR", "Enum": "VARCHAR",
    "Decimal": "DOUBLE", "Date": "DATE", "Datetime": "TIMESTAMP", "Time": "TIME", "Int": "BIGINT", "UInt": "BIGINT",
    "Null": "BIGINT",
}  # fmt: skip
"""By how the names of types begin, without how many bits they have."""
_MEANINGLESS = (duckdb.CatalogException, duckdb.BinderException, duckdb.ParserException, sqlite3.OperationalError)
"""What engines raise where a query has no meaning, whatever the rows are."""
_READ_FROM_TEXTS = ("VARCHAR", "DATE", "TIMESTAMP", "TIME")


@dataclass(frozen=True)
class PlainTable:
    """A table as an engine gets it: names and types of columns, and rows."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: Sequence[Sequence[Any]]


def plain_table(name: str, table: Any) -> PlainTable:
    """Return a frame of polars, or a list of dicts or rows, as a table."""
    if hasattr(table, "schema") and hasattr(table, "rows"):
        types = tuple(_type_of_polars(name, column, str(kind)) for column, kind in table.schema.items())
        return PlainTable(tuple(table.columns), types, table.rows())
    if not isinstance(table, list | tuple) or not table or not all(hasattr(row, "keys") for row in table):
        raise ArgumentError(f"sql: the table {name!r} must be a polars frame, or a list of dicts, not {shown(table)}")
    names = tuple(table[0].keys())
    odd = [row for row in table if set(row.keys()) != set(names)]
    if odd:
        raise ArgumentError(f"sql: all rows of {name!r} need the columns {', '.join(names)}, unlike {shown(odd[0])}")
    rows = [[value.item() if isinstance(value := row[key], np.generic) else value for key in names] for row in table]
    columns = zip(names, zip(*rows, strict=True), strict=True)
    return PlainTable(names, tuple(_type_of(name, column, values) for column, values in columns), rows)


def _type_of(name: str, column: str, values: Sequence[Any]) -> str:
    """Return the type of a column: of texts alone, of numbers of one kind or two, or of another kind alone."""
    kinds = {
        next((kind for known, kind in _TYPES.items() if isinstance(value, known)), type(value).__name__)
        for value in values
        if value is not None
    }
    kinds = kinds - {"BIGINT"} if kinds == {"BIGINT", "DOUBLE"} else kinds
    if len(kinds) > 1 or not kinds <= set(_TYPES.values()):
        raise ArgumentError(
            f"sql: the column {column!r} of {name!r} holds {' and '.join(sorted(kinds))}; a column has booleans, "
            "integers, floats, texts, dates or times"
        )
    return kinds.pop() if kinds else "VARCHAR"


def _type_of_polars(name: str, column: str, kind: str) -> str:
    found = _POLARS.get(kind.partition("(")[0].rstrip("0123456789"))
    if found is None:
        raise ArgumentError(f"sql: the column {column!r} of {name!r} is of the type {kind}, which queries do not take")
    return found


def answer(query: Parsed, tables: Mapping[str, Any]) -> Any:
    """Return the answer to a query on plain tables: of each of its statements a value, or a list of dicts."""
    plain = {name: plain_table(name, table) for name, table in tables.items()}
    given = {_named(name, table): _values(table, query.engine) for name, table in plain.items()}
    found = []
    for statement in query.completed(_schema(plain)):
        if query.dialect.is_transpiled:
            _check_texts(statement, plain.values(), query.dialect.name)
        try:
            rows = _fetched(_beside(statement.text, given), query.dialect.engine)
        except (duckdb.Error, sqlite3.Error) as error:  # of these rows: other ones may be answered
            raise ValueError(f"sql: {str(error).splitlines()[0]}") from None
        found.append(_answer(statement, rows))
    return found if len(found) > 1 else found[0]


def _check_texts(statement: Statement, tables: Iterable[PlainTable], dialect: str) -> None:
    """Refuse numbers with fractions that are joined to texts: dialects write them in different ways."""
    kinds = [(name.lower(), kind) for table in tables for name, kind in zip(table.names, table.types, strict=True)]
    joined = [name for name in statement.joined if (name.lower(), "DOUBLE") in kinds]
    if joined:
        raise ArgumentError(f"sql: {joined[0]} as a text is not known to mean the same in {dialect} and DuckDB")


def answer_all(query: Parsed, calls: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the answers to a query on many tables, a block of samples in each statement that the engine gets."""
    if not query.engine.has_batches or len(calls) < 2:
        return [answer(query, tables) for tables in calls]
    first = {name: plain_table(name, table) for name, table in calls[0].items()}
    statements = query.completed(_schema(first))
    if not all(statement.unordered for statement in statements):
        return [answer(query, tables) for tables in calls]
    rows = max(1, sum(len(table.rows) for table in first.values()))
    block = max(2, ROWS_AT_ONCE // rows)
    try:
        blocks = (_block(statements, calls[k : k + block], query.dialect.engine) for k in range(0, len(calls), block))
        found = [one for block in blocks for one in block]
    except duckdb.Error:  # of one sample, or of a query that cannot be asked in this way
        return [answer(query, tables) for tables in calls]
    looked_at = (0, len(calls) // 2, len(calls) - 1)
    same = all(repr(found[place]) == repr(answer(query, calls[place])) for place in looked_at)
    return found if same else [answer(query, tables) for tables in calls]


def _block(statements: Sequence[Statement], calls: Sequence[Mapping[str, Any]], engine: str) -> list[Any]:
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
        for row in _fetched(f"{text} ORDER BY {', '.join(['sample.k', *statement.order])}", engine, data):
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
        if kind in _READ_FROM_TEXTS:
            found[f"c{place}"] = column.cast(polars.String).to_numpy()
        else:
            filled = column.fill_null(False if kind == "BOOLEAN" else 0).to_numpy()
            found[f"c{place}"] = np.ma.masked_array(filled, column.is_null().to_numpy())
    return first, found


def _schema(tables: Mapping[str, PlainTable]) -> Schema:
    return tuple((name, table.names) for name, table in tables.items())


def _named(name: str, table: PlainTable) -> str:
    return f"{_quoted(name)}({', '.join(_quoted(column) for column in table.names)})"


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


def _fetched(text: str, engine: str, data: Mapping[str, Any] | None = None) -> Sequence[Sequence[Any]]:
    with _using:
        if engine not in _connections:
            _connections[engine] = _CONNECTED[engine]()
        connection = _connections[engine]
        try:
            for name, arrays in (data or {}).items():
                connection.register(name, arrays)
            return connection.execute(text).fetchall()  # type: ignore[no-any-return]
        except _MEANINGLESS as error:
            raise ArgumentError(f"sql: {str(error).splitlines()[0]}") from None
        except (duckdb.FatalException, duckdb.InternalException):  # after which it answers nothing more
            _connections.pop(engine).close()
            raise


def _close() -> None:
    """Close all connections before the process forks: what DuckDB holds does not survive that."""
    _using.acquire()
    for connection in _connections.values():
        connection.close()
    _connections.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close, after_in_parent=_using.release, after_in_child=_using.release)


def _duckdb() -> Any:
    limits: Any = {"enable_external_access": "false", "autoinstall_known_extensions": "false", "threads": "1"}
    connection = duckdb.connect(":memory:", config=limits)
    connection.execute("SET lock_configuration = true")
    return connection


_CONNECTED: dict[str, Callable[[], Any]] = {
    "duckdb": _duckdb,
    "sqlite": lambda: sqlite3.connect(":memory:", check_same_thread=False),
}
"""How engines are connected to."""


def _values(table: PlainTable, engine: Dialect) -> str:
    typed = [f"CAST({{}} AS {kind})" if engine.has_types else "{}" for kind in table.types]
    if not table.rows:
        return f"SELECT {', '.join(cast.format('NULL') for cast in typed)} WHERE 1 = 0"
    first, *others = ([_literal(value, engine) for value in row] for row in table.rows)
    lines = [", ".join(cast.format(value) for cast, value in zip(typed, first, strict=True)), *map(", ".join, others)]
    return "VALUES " + ", ".join(f"({line})" for line in lines)


def _literal(value: Any, engine: Dialect) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case float():
            return repr(value) if math.isfinite(value) else f"CAST('{value}' AS DOUBLE)"
        case decimal.Decimal():
            return str(value)
        case datetime.date() | datetime.time() if not engine.has_types:
            return f"'{value}'"
        case datetime.datetime():
            return f"TIMESTAMP '{value}'"
        case datetime.date():
            return f"DATE '{value}'"
        case datetime.time():
            return f"TIME '{value}'"
    return "'" + str(value).replace("'", "''") + "'"


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, decimal.Decimal) else value
