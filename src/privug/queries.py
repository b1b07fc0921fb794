"""Where queries live: files of SQL with priors in TOML, logs of queries, compiled models of dbt."""

import ast
import operator
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import privug
from privug.arguments import shown
from privug.attack import Attack
from privug.errors import ArgumentError
from privug.model.table import Row
from privug.model.variable import RandomVariable
from privug.policy.monitoring.monitor import Answer, Monitor
from privug.policy.policy_files import function_of
from privug.prior.reading import read_columns
from privug.prior.table import Records
from privug.program.sql.query import Query, sql

__all__ = ["attack_on", "dbt_models", "read_prior", "read_rows", "replay", "secret_of", "statements"]

_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip


_BOOLEANS = {"true": True, "false": False}


def read_prior(path: str | Path) -> tuple[dict[str, Any], str | None]:
    """Return the prior of a TOML file, by the names of its tables, and the secret as it is written there.

    A table has `rows`, and each of its `columns` a distribution as in Python; one with `csv` is known to the attacker.

    Args:
        path: The TOML file.

    Raises:
        ArgumentError: The file cannot be read, or a line of it says something else.

    >>> import tempfile, privug as pv
    >>> text = "secret = 'people[0].ill'\\n[people]\\nrows = 20\\ncolumns.ill = 'Bernoulli(1/4)'"
    >>> with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
    ...     print(text, file=file, flush=True)
    ...     prior, secret = pv.queries.read_prior(file.name)
    >>> prior["people"][0].ill, secret
    (<RandomVariable: discrete int64>, 'people[0].ill')
    """
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ArgumentError(f"{path} is no TOML file: {error}") from None
    secret = content.pop("secret", None)
    if secret is not None and not isinstance(secret, str):
        raise ArgumentError(f"{path}, secret: a text is needed, such as 'people[0].ill', not {shown(secret)}")
    if not content:
        raise ArgumentError(f"{path} has no tables; write [people], rows = 100 and columns.age = 'Uniform(0, 100)'")
    return {name: _table(path, name, told) for name, told in content.items()}, secret


def _table(path: Path, name: str, told: Any) -> Any:
    where = f"{path}, [{name}]"
    if not isinstance(told, dict) or not ({"csv"} == told.keys() or {"rows", "columns"} == told.keys()):
        raise ArgumentError(f"{where}: a table has rows and columns, or else csv, the path of a plain table")
    if "csv" in told:
        return read_rows(path.parent / str(told["csv"]))
    columns = told["columns"]
    if not isinstance(columns, dict) or not columns:
        raise ArgumentError(f"{where}, columns: a distribution for each is needed, not {shown(columns)}")
    cells = {column: _quantity(f"{where}, {column}", text) for column, text in columns.items()}
    return Records(_quantity(f"{where}, rows", told["rows"]), Row(**cells))


def _quantity(where: str, text: Any) -> Any:
    """Return a number as it is, and a text as the distribution that it stands for."""
    if not isinstance(text, str):
        return text
    try:
        return _evaluated(where, ast.parse(text.strip(), mode="eval").body)
    except SyntaxError:
        raise ArgumentError(f"{where}: {shown(text)} is no distribution; write 'Uniform(0, 100)', say") from None


def _evaluated(where: str, node: ast.expr) -> Any:
    match node:
        case ast.Call(func=ast.Name(id=name)) if _is_distribution(name):
            named = {str(one.arg): _evaluated(where, one.value) for one in node.keywords}
            return getattr(privug, name)(*(_evaluated(where, one) for one in node.args), **named)
        case ast.BinOp() if type(node.op) in _ARITHMETIC:
            return _ARITHMETIC[type(node.op)](_evaluated(where, node.left), _evaluated(where, node.right))
        case ast.List() | ast.Tuple():
            return [_evaluated(where, one) for one in node.elts]
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise ArgumentError(f"{where}: {ast.unparse(node)!r} is neither a distribution nor a value") from None


def _is_distribution(name: str) -> bool:
    if name not in privug.__all__ or not name[0].isupper() or name == "Records":
        return False
    return str(getattr(privug, name).__module__).startswith("privug.prior.")


def read_rows(path: str | Path, like: Any = None) -> list[dict[str, Any]]:
    """Return the rows of a CSV or Parquet file, as queries take a plain table.

    Args:
        path: The file.
        like: The prior of the table: its texts and booleans are read as such.

    >>> import tempfile, privug as pv
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     print("zip,n\\n2300,1", file=file, flush=True)
    ...     pv.queries.read_rows(file.name, like=pv.Records(1, pv.Row(zip=pv.Choice(["2300"]), n=pv.Poisson(1))))
    [{'zip': '2300', 'n': 1}]
    """
    cells = {name: like[0][name] for name in like[0]._fields} if isinstance(like, Records) else {}
    texts = [name for name, cell in cells.items() if _is_text(cell)]
    columns = read_columns(path, list(cells) or None, labels=texts)
    lists = [
        [_plain(value) if name in texts or not cells else _BOOLEANS.get(str(value).lower(), _plain(value))
         for value in values]
        for name, values in columns.items()
    ]  # fmt: skip
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def _is_text(cell: Any) -> bool:
    levels = cell.node.levels if isinstance(cell, RandomVariable) else (cell,)
    return any(isinstance(level, str) for level in levels or ())


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def attack_on(
    query: Query | str | Path,
    *,
    prior: str | Path | None = None,
    learn: str | Path | None = None,
    secret: str | None = None,
    dialect: str | None = None,
) -> Attack:
    """Return the attack on a query, with a prior from a TOML file or learned from data.

    Args:
        query: The query, or the path of a file of SQL; one under `target/compiled` is a model of dbt.
        prior: A TOML file, as `read_prior` reads it.
        learn: A CSV or Parquet file; its name is that of the table, whose rows are drawn as rows of that file.
        secret: An expression of the tables, such as `people[0].ill`; by default that of the TOML file.
        dialect: The dialect of a query in a file.

    Raises:
        ArgumentError: Neither or both of `prior` and `learn` are given, there is no secret, or a table is not told of.

    >>> import tempfile, privug as pv
    >>> text = "[people]\\nrows = 20\\ncolumns.ill = 'Bernoulli(1/4)'"
    >>> with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
    ...     print(text, file=file, flush=True)
    ...     query = pv.sql("SELECT COUNT(*) FROM people WHERE ill")
    ...     attack = pv.queries.attack_on(query, prior=file.name, secret="people[0].ill")
    >>> print(attack.run(pv.equals(5)).posterior.mean())
    0.25 (exact)
    """
    if prior is not None and learn is not None:
        raise ArgumentError("give a prior in a TOML file or data to learn one from, not both")
    if prior is None and learn is None:
        raise ArgumentError("what does the attacker know? Give a prior in a TOML file, or data to learn one from")
    program = query if isinstance(query, Query) else _read(query, dialect)
    if prior is not None:
        tables, told = read_prior(prior)
        secret = secret or told
    else:
        data = Path(str(learn))
        tables = {data.stem: Records.from_frame(data)}
    missing = [name for name in program.tables if name not in tables]
    if missing:
        raise ArgumentError(f"the query asks for the table {missing[0]!r}; the prior has {', '.join(tables)}")
    used = {name: table for name, table in tables.items() if name in program.tables}
    return Attack(program, used, secret_of(secret))


def secret_of(text: str | None) -> Callable[..., Any]:
    """Return the secret that an expression of tables stands for.

    >>> import privug as pv
    >>> pv.queries.secret_of("people[0].ill")([pv.Row(ill=True)])
    True
    """
    if text is None:
        raise ArgumentError("what is the secret? Write an expression such as people[0].ill")
    return function_of(text, "secret")


def _read(path: str | Path, dialect: str | None = None) -> Query:
    """Return the query of a file: of a model of dbt, with other models in the place of what it refers to."""
    path = Path(path)
    if "compiled" not in path.parts:
        return sql(path, dialect)
    folder = Path(*path.parts[: path.parts.index("compiled") + 1])
    texts = {one.stem: one.read_text(encoding="utf-8-sig") for one in folder.rglob("models/**/*.sql")}
    try:
        return _model(path.read_text(encoding="utf-8-sig"), texts, dialect)
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror}") from None
    except ArgumentError as error:
        raise ArgumentError(f"{path.name}: {error}") from None


def dbt_models(folder: str | Path, dialect: str | None = None) -> dict[str, Query]:
    """Return the compiled models of a project of dbt as programs, whose parameters are the sources that they read.

    Args:
        folder: The folder `target/compiled` of the project.
        dialect: That of the warehouse.

    Returns:
        The models by their names; those that read no table, and those that are not understood, are left out.

    Raises:
        ArgumentError: There are no compiled models.

    >>> import tempfile, privug as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / "models").mkdir()
    ...     _ = (Path(folder) / "models" / "cases.sql").write_text('select count(*) as n from "wh"."raw"."people"')
    ...     print(pv.queries.dbt_models(folder)["cases"].tables)
    ('people',)
    """
    files = {path.stem: path for path in sorted(Path(folder).rglob("models/**/*.sql"))}
    if not files:
        raise ArgumentError(f"{folder} has no compiled models; run dbt compile")
    texts = {name: path.read_text(encoding="utf-8-sig") for name, path in files.items()}
    found = {}
    for name, text in texts.items():
        with suppress(ArgumentError):
            found[name] = _model(text, texts, dialect)
    return found


def _model(text: str, models: Mapping[str, str], dialect: str | None) -> Query:
    """Return a model of dbt as a query of sources alone."""
    parsing = import_module("privug.program.sql.parsing")
    return sql(parsing.with_models(text, models, dialect or "duckdb"), dialect)


def replay(monitor: Monitor, log: str | Path | Sequence[str], truth: Mapping[str, Any]) -> list[Answer]:
    """Ask a monitor all queries of a log, one after the other, and return which ones it answers.

    Args:
        monitor: What decides, by its policy and by what was answered before.
        log: A file of statements, or their texts.
        truth: The true tables; it is looked at only once a query is going to be answered.

    Returns:
        An answer to each statement; one that is no query is refused, with the reason.

    >>> import privug as pv
    >>> people = pv.Records(3, pv.Row(ill=pv.Bernoulli(0.5)))
    >>> policy = pv.policy.max_belief(at_most=0.8)
    >>> monitor = pv.policy.Monitor({"people": people}, lambda people: people[0].ill, policy)
    >>> rows = [{"ill": True}, {"ill": False}, {"ill": False}]
    >>> log = ["SELECT COUNT(*) >= 0 AS any FROM people", "SELECT COUNT(*) FROM people WHERE ill"]
    >>> [answer.answered for answer in pv.queries.replay(monitor, log, {"people": rows})]
    [True, False]
    """
    texts = statements(log) if isinstance(log, str | Path) else list(log)
    return [_asked(monitor, text, truth) for text in texts]


def _asked(monitor: Monitor, text: str, truth: Mapping[str, Any]) -> Answer:
    """Ask a monitor one statement; what is no query of the tables is refused, too."""
    name = " ".join(text.split())
    try:
        query = sql(text)
    except ArgumentError as error:
        return Answer(name, False, reason=str(error))
    return monitor.ask(query, truth=truth, name=name)


def statements(path: str | Path) -> list[str]:
    """Return the statements of a log of queries: a file in which each ends in a semicolon or a line.

    >>> import tempfile, privug as pv
    >>> with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
    ...     print("SELECT COUNT(*) FROM a; SELECT COUNT(*) FROM b", file=file, flush=True)
    ...     pv.queries.statements(file.name)
    ['SELECT COUNT(*) FROM a', 'SELECT COUNT(*) FROM b']
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror}") from None
    return import_module("privug.program.sql.parsing").statements_of(text)  # type: ignore[no-any-return]
