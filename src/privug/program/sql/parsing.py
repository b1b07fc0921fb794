"""What a query says: parsed, qualified and completed by sqlglot; all but SELECTs of known functions are refused."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify

from privug.arguments import shown
from privug.errors import ArgumentError

Tree = Any
"""A node of sqlglot's, whose arguments are of any kind."""
Schema = tuple[tuple[str, tuple[str, ...]], ...]
"""The columns of each table."""
HARMFUL = (exp.Command, exp.DDL, exp.DML, exp.Pragma, exp.Set, exp.Use, exp.Attach, exp.Detach, exp.Copy, exp.Into)


@dataclass(frozen=True)
class Statement:
    """One statement, complete: its text, its tree, its columns, and whether it has one value by its form."""

    text: str
    tree: Tree
    columns: tuple[str, ...]
    is_value: bool


@dataclass(frozen=True)
class Parsed:
    """The statements of a query."""

    statements: tuple[Tree, ...]
    tables: tuple[str, ...]
    dialect: str

    def completed(self, schema: Schema) -> tuple[Statement, ...]:
        """Return the statements, qualified by the columns that tables have, each with an order that is total."""
        return _completed(self.statements, schema, self.dialect)

    def answered(self, tables: Mapping[str, Any]) -> Any:
        """Return the answer of a real engine on plain tables."""
        from privug.program.sql.answering import answer

        schema = tuple((name, tuple(table.names)) for name, table in tables.items())
        found = [answer(statement, tables, self.dialect) for statement in self.completed(schema)]
        return found if len(found) > 1 else found[0]


@lru_cache(maxsize=256)
def parsed(text: str, dialect: str) -> Parsed:
    """Parse a query; refuse what is none."""
    try:
        trees: list[Tree] = [tree for tree in sqlglot.parse(text, dialect=dialect) if tree is not None]
    except SqlglotError as error:
        said = str(error).split("\n")[0]
        raise ArgumentError(f"sql: this is no query in the dialect {dialect!r}: {said}") from None
    if not trees:
        raise ArgumentError("sql: there is no query in this text")
    tables: dict[str, None] = {}
    for tree in trees:
        _check(tree)
        own = {cte.alias for cte in tree.find_all(exp.CTE)}
        tables |= dict.fromkeys(table.name for table in tree.find_all(exp.Table, bfs=False) if table.name not in own)
    if not tables:
        raise ArgumentError("sql: the query asks no table, and so tells nothing about anybody")
    return Parsed(tuple(trees), tuple(tables), dialect)


def _check(tree: Tree) -> None:
    """Refuse whatever reads or writes anything but the tables that are given, before any engine sees it."""
    if not isinstance(tree, exp.Query):
        raise ArgumentError(f"sql: only SELECT statements are answered, not {tree.key.upper()}")
    for node in tree.walk():
        if isinstance(node, HARMFUL):
            raise ArgumentError(f"sql: only SELECT statements are answered, not {node.key.upper()}")
        if isinstance(node, exp.Anonymous | exp.ReadCSV) or (isinstance(node, exp.Func) and "read" in node.key):
            raise ArgumentError(f"sql: the function {node.name or node.key} is not known here")
        if isinstance(node, exp.Table) and (not isinstance(node.this, exp.Identifier) or node.db or node.catalog):
            raise ArgumentError(f"sql: a table must be one of those that are given, not {shown(node.sql())}")
        if isinstance(node, exp.Table) and any(mark in node.name for mark in "./\\:*"):
            raise ArgumentError(f"sql: a table must be one of those that are given, not the file {shown(node.name)}")
        if isinstance(node, exp.Rand | exp.Uuid | exp.CurrentTimestamp | exp.CurrentDate | exp.CurrentTime):
            raise ArgumentError(f"sql: {node.key} gives another value each time; put it into a table")


@lru_cache(maxsize=256)
def _completed(statements: tuple[Tree, ...], schema: Schema, dialect: str) -> tuple[Statement, ...]:
    return tuple(_complete(statement.copy(), schema, dialect) for statement in statements)


def _complete(tree: Tree, schema: Schema, dialect: str) -> Statement:
    # Types are not asked for: any will do to find the owner of a column.
    written = list(tree.named_selects)
    known: Any = {name: dict.fromkeys(columns, "TEXT") for name, columns in schema}
    try:
        qualified = qualify(
            tree, schema=known, dialect=dialect, quote_identifiers=False, validate_qualify_columns=True,
            expand_alias_refs=True,
        )  # fmt: skip
    except SqlglotError as error:
        raise ArgumentError(f"sql: {str(error).splitlines()[0]}") from None
    columns = _as_written(written, qualified.named_selects, schema)
    if len(set(columns)) < len(columns) or not all(columns):
        raise ArgumentError("sql: every column of the answer needs a name of its own; write AS")
    is_value = len(columns) == 1 and _has_one_row(qualified)
    for query in list(qualified.find_all(exp.Query)):
        if query is qualified or query.args.get("limit") is not None or query.args.get("offset") is not None:
            _put_in_order(query)
    return Statement(qualified.sql(dialect=dialect), qualified, columns, is_value)


def _as_written(written: Sequence[str], qualified: Sequence[str], schema: Schema) -> tuple[str, ...]:
    """Return the names of columns as the query, or the table, writes them: qualified, all are in small letters."""
    if "*" in written or len(written) != len(qualified):
        known = {column.lower(): column for _, columns in schema for column in columns}
        return tuple(known.get(name, name) for name in qualified)
    return tuple(one or other for one, other in zip(written, qualified, strict=True))


def _has_one_row(tree: Tree) -> bool:
    """Say whether a query has one row by its form: summaries of all rows."""
    if not isinstance(tree, exp.Select) or tree.args.get("group") or tree.args.get("having") or tree.args.get("limit"):
        return False
    return any(
        (isinstance(node, exp.AggFunc) and not isinstance(node.parent, exp.Window | exp.Filter))
        or isinstance(node, exp.Filter)
        for one in tree.selects
        for node in one.walk(prune=lambda n: isinstance(n, exp.Subquery | exp.Window))
    )  # fmt: skip


def _put_in_order(query: Tree) -> None:
    """Add all columns to what rows are ordered by."""
    if not isinstance(query, exp.Query) or isinstance(query, exp.Subquery):
        return
    order = query.args.get("order")
    known: Sequence[Tree] = order.expressions if order is not None else ()
    every = [
        exp.Ordered(this=exp.Literal.number(place + 1), desc=False, nulls_first=False)
        for place in range(len(query.named_selects))
    ]
    query.set("order", exp.Order(expressions=[*known, *every]))
