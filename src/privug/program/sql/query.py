"""A SQL query as a program: its parameters are the tables that it names."""

import importlib
import importlib.util
import inspect
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from privug.arguments import is_one_of, shown
from privug.errors import ArgumentError
from privug.program.traced.frames.dialects import OF_SQL


class Query:
    """One or more SELECT statements. A table is a polars frame, or a list of dicts or rows.

    It holds its text alone, from which everything else is found again: programs are looked at and sent to processes.
    """

    def __init__(self, text: str, dialect: str = "duckdb", parameters: Sequence[str] = ()) -> None:
        self.text, self.dialect, self.parameters = text, dialect, tuple(parameters)
        self.__name__ = "query"
        self.tables: tuple[str, ...] = self._parsed.tables
        """The tables that the query names, in order of occurrence."""

    @property
    def _parsed(self) -> Any:
        return _module("parsing").parsed(self.text, self.dialect)

    @property
    def __signature__(self) -> inspect.Signature:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        names = self.parameters or self.tables
        return inspect.Signature([inspect.Parameter(name, kind, annotation="polars.DataFrame") for name in names])

    def with_parameters(self, names: Sequence[str]) -> "Query":
        """Return the query as a function of some tables, its own among them."""
        return Query(self.text, self.dialect, names)

    def _given(self, tables: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        given = self.__signature__.bind(*tables, **named).arguments
        return {name: given[name] for name in self.tables}

    def __call__(self, *tables: Any, **named: Any) -> Any:
        """Answer the query on plain tables, by a real engine."""
        return _module("answering").answer(self._parsed, self._given(tables, named))

    def call_many(self, calls: Iterable[tuple[Sequence[Any], Mapping[str, Any]]]) -> list[Any]:
        """Answer the query on the tables of many calls, as few statements as will do."""
        given = [self._given(tables, named) for tables, named in calls]
        found: list[Any] = _module("answering").answer_all(self._parsed, given)
        return found

    def traced(self, *frames: Any, **named: Any) -> Any:
        """Answer the query on what stands for frames of polars while a program is traced."""
        return _module("lowering").lowered(self._parsed, self._given(frames, named))

    def completed(self, columns: Mapping[str, Any]) -> str:
        """Return the query as it is asked, with an order that leaves nothing open.

        Args:
            columns: The names of the columns of each table.

        >>> import privug as pv
        >>> print(pv.sql("SELECT DISTINCT zip FROM people").completed({"people": ["zip", "age"]}))
        SELECT DISTINCT people.zip AS zip FROM people AS people ORDER BY 1 ASC
        """
        for name in self.tables:
            if name not in columns:
                raise ArgumentError(f"completed: say which columns the table {name!r} has")
        names = {name: tuple(columns[name]) for name in self.tables}
        return "; ".join(one.text for one in self._parsed.completed(tuple(names.items())))

    def __repr__(self) -> str:
        return f"<Query of {', '.join(self.tables)}: {shown(' '.join(self.text.split()))}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Query, (self.text, self.dialect, self.parameters)


def sql(query: Any, dialect: str | None = None) -> Query:
    """Return a SQL query as a program, whose parameters are the tables that it names, in order of occurrence.

    Its output is a list of dicts, one for each row, in an order that leaves nothing open: rows that `ORDER BY` does not
    tell apart are ordered by all columns. A query that by its form has one row of one column gives that value; several
    statements give a list of their answers. Columns that were not seen can be left out of an observation.

    Args:
        query: The text of one or more SELECT statements, the path of a file with it, a relation of DuckDB, or an
            expression of ibis.
        dialect: "duckdb", which is also the default; "sqlite"; or "postgres", "bigquery" or "snowflake", whose queries
            are asked in DuckDB if they mean the same there.

    Raises:
        ArgumentError: The text is no SQL, does something else than SELECT, or asks for a function that is not known.

    >>> import privug as pv
    >>> query = pv.sql("SELECT zip, COUNT(*) AS n FROM people WHERE ill GROUP BY zip HAVING COUNT(*) >= 2")
    >>> query([{"zip": "A", "ill": True}, {"zip": "A", "ill": True}, {"zip": "B", "ill": True}])
    [{'zip': 'A', 'n': 2}]
    >>> row = pv.Row(zip=pv.Choice(["A", "B"]), ill=pv.Bernoulli(0.2))
    >>> attack = pv.Attack(query, {"people": pv.Records(50, row)}, secret=lambda people: people[0].ill)
    >>> print(attack.run([{"zip": "A", "n": 4}, {"zip": "B", "n": 6}]).posterior.probability(lambda ill: ill == 1))
    0.2 (exact)
    """
    for library in ("sqlglot", "duckdb", "polars"):
        if importlib.util.find_spec(library) is None:
            raise ArgumentError(f"sql needs {library}: pip install 'privug[sql]'")
    query = _text_of(query)
    if dialect is not None and not is_one_of(dialect, tuple(OF_SQL)):
        raise ArgumentError(f"sql: dialect must be one of {', '.join(map(repr, OF_SQL))}, not {shown(dialect)}")
    return Query(query, dialect or "duckdb")


def _text_of(query: Any) -> str:
    """Return the text of a query, which may be in a file or an object of another library."""
    if isinstance(query, Path):
        try:
            return query.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ArgumentError(f"sql: {query} cannot be read: {error}") from None
    if hasattr(query, "sql_query"):  # a relation of DuckDB
        query = _module("parsing").of_relation(query.sql_query())
    elif type(query).__module__.partition(".")[0] == "ibis":
        query = str(importlib.import_module("ibis").to_sql(query, dialect="duckdb"))
    if not isinstance(query, str):
        raise ArgumentError(f"sql: a query must be a text, a path, or one of DuckDB or ibis, not {shown(query)}")
    return query


def _module(name: str) -> Any:
    """Return a part of this room that needs a library, which is imported when it is first asked for."""
    return importlib.import_module(f"privug.program.sql.{name}")
