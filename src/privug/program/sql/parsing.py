"""What a query says: parsed, qualified and completed by sqlglot; all but SELECTs of known functions are refused."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from keyword import iskeyword
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import traverse_scope

from privug.arguments import shown
from privug.errors import ArgumentError
from privug.program.traced.frames.dialects import OF_SQL, Dialect

Tree = Any
"""A node of sqlglot's, whose arguments are of any kind."""
Schema = tuple[tuple[str, tuple[str, ...]], ...]
"""The columns of each table."""
POSITIONAL = (exp.RowNumber, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue, exp.Ntile)
"""Functions of windows for which it makes a difference how equal rows are ordered."""
ALIKE = (
    exp.Connector, exp.Count, exp.CountIf, exp.Sum, exp.Min, exp.Max, exp.Stddev, exp.StddevSamp, exp.Variance,
    exp.Coalesce, exp.Nullif, exp.Case, exp.If, exp.Abs, exp.Floor, exp.Ceil, exp.Upper, exp.Lower, exp.Length,
    exp.Exists, exp.SafeDivide, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Lag, exp.Lead, exp.FirstValue,
    exp.LastValue, exp.Extract, exp.Year, exp.Month, exp.Day, exp.Rollup, exp.Cube, exp.GroupingSets,
)  # fmt: skip
"""Functions that mean the same in all of them."""
ORDERED = (exp.GroupConcat, exp.ArrayAgg, exp.First, exp.Last)
"""Aggregates whose value depends on the order of rows; they are completed by one."""
ARBITRARY = (exp.AnyValue, exp.Mode, exp.ArgMax, exp.ArgMin, exp.ApproxQuantile, exp.ApproxDistinct)
"""Aggregates that pick one of several values that would do."""
CLOCKS = ("current", "local", "utc", "sysdate", "systimestamp", "rand", "uuid")
"""How the names begin of functions that give another value each time."""
HARMFUL = (exp.Command, exp.DDL, exp.DML, exp.Pragma, exp.Set, exp.Use, exp.Attach, exp.Detach, exp.Copy, exp.Into)


@dataclass(frozen=True)
class Statement:
    """One statement, complete: its text, its tree, its columns, and whether it has one value by its form."""

    text: str
    tree: Tree
    columns: tuple[str, ...]
    is_value: bool
    unordered: str = ""
    """Its text for answers to many samples at once, with what rows are ordered by as further columns."""
    order: tuple[str, ...] = ()
    """By which of those columns, called c0, c1 and so on, rows are then ordered."""
    joined: tuple[str, ...] = ()
    """Columns that are joined to texts."""


@dataclass(frozen=True)
class Parsed:
    """The statements of a query."""

    statements: tuple[Tree, ...]
    tables: tuple[str, ...]
    dialect: Dialect

    @property
    def engine(self) -> Dialect:
        """The dialect that it is asked in."""
        return OF_SQL[self.dialect.engine]

    def completed(self, schema: Schema) -> tuple[Statement, ...]:
        """Return the statements, qualified by the columns that tables have, each with an order that is total."""
        return _completed(self.statements, schema, self.engine)


def of_relation(text: str) -> str:
    """Return the text of a relation of DuckDB, tables by their own names and frames by those that queries gave them."""
    (tree,) = _trees(text, "duckdb")
    for table in tree.find_all(exp.Table):
        common = table.find_ancestor(exp.CTE)
        if common is not None and table.name.startswith("__duckdb_source"):
            table.set("this", exp.to_identifier(common.alias))
    return with_models(tree.sql(dialect="duckdb"), {}, "duckdb")


def with_models(text: str, models: Mapping[str, str], dialect: str) -> str:
    """Return the text of a query that names other ones as tables, with these in their place."""
    sources: dict[str, str] = {}
    trees = [_without_schema(tree, models, dialect, (), sources) for tree in _trees(text, dialect)]
    return "; ".join(tree.sql(dialect=dialect) for tree in trees)


def statements_of(text: str) -> list[str]:
    """Return the statements of a log, which end in semicolons, or stand in lines of their own if there are none."""
    tokens = sqlglot.tokenize(text, dialect="duckdb")
    ends = [token.end + 1 for token in tokens if token.token_type == sqlglot.TokenType.SEMICOLON]
    if not ends and not _is_one_query(text):
        return [line for line in map(str.strip, text.splitlines()) if line and not line.startswith("--")]
    starts = [token.start for token in tokens if token.token_type != sqlglot.TokenType.SEMICOLON]
    bounds = list(zip([0, *ends], [*ends, len(text)], strict=True))
    pieces = [text[low:high] for low, high in bounds if any(low <= start < high for start in starts)]
    return [_without_comments(piece.strip().removesuffix(";").strip()) for piece in pieces]


def _without_comments(text: str) -> str:
    """Return a statement on one line; as it is if it is none."""
    try:
        return str(_trees(text, "duckdb")[0].sql(dialect="duckdb", comments=False))
    except ArgumentError:
        return text


def _is_one_query(text: str) -> bool:
    try:
        return len(_trees(text, "duckdb")) == 1
    except ArgumentError:
        return False


def _without_schema(
    tree: Tree, models: Mapping[str, str], dialect: str, within: tuple[str, ...], sources: dict[str, str]
) -> Tree:
    """Return a query whose tables have no schemas, and of which some are other queries; `within` are those around."""
    found = tree.copy()
    for table in [one for one in found.find_all(exp.Table) if not _is_common(one)]:
        name, whole = table.name, ".".join(part.name for part in table.parts)
        table.set("db", None)
        table.set("catalog", None)
        if name not in models:
            if sources.setdefault(name.lower(), whole) != whole:
                raise ArgumentError(f"sql: {sources[name.lower()]} and {whole} are two tables of one name")
            continue
        if name in within:
            raise ArgumentError(f"sql: the model {name!r} refers to itself")
        inner = _trees(models[name], dialect)
        if len(inner) != 1:
            raise ArgumentError(f"sql: the model {name!r} must be one query")
        made = _without_schema(inner[0], models, dialect, (*within, name), sources)
        table.replace(exp.Subquery(this=made, alias=exp.TableAlias(this=exp.to_identifier(table.alias_or_name))))
    return found


def _is_common(table: Tree) -> bool:
    """Say whether a name of a table is that of a common one (WITH) where it stands."""
    if table.args.get("db") is not None:
        return False
    name, child = table.name.lower(), table
    while (node := child.parent) is not None:
        if isinstance(node, exp.With):
            before = node.expressions[: node.expressions.index(child) + bool(node.recursive)]
        else:
            beside = None if isinstance(child, exp.With) else node.args.get("with_")
            before = [] if beside is None else beside.expressions
        if any(one.alias.lower() == name for one in before):
            return True
        child = node
    return False


def _trees(text: str, dialect: str) -> list[Tree]:
    logger = logging.getLogger("sqlglot")
    before, logger.disabled = logger.disabled, True  # what it would say of syntax is said by refusals
    try:
        trees = sqlglot.parse(text.removeprefix("\ufeff"), dialect=dialect)
    except SqlglotError as error:
        said = str(error).split("\n")[0]
        raise ArgumentError(f"sql: this is no query in the dialect {dialect!r}: {said}") from None
    finally:
        logger.disabled = before
    return [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]


@lru_cache(maxsize=256)
def parsed(text: str, name: str) -> Parsed:
    """Parse a query in a dialect; refuse what is none."""
    trees, dialect = _trees(text, name), OF_SQL[name]
    if not trees:
        raise ArgumentError("sql: there is no query in this text")
    tables: dict[str, str] = {}
    for tree in trees:
        _check(tree)
    if dialect.is_transpiled:
        trees = [_transpiled(tree, dialect) for tree in trees]
    for tree in trees:
        for table in [one for one in tree.find_all(exp.Table, bfs=False) if not _is_common(one)]:
            tables.setdefault(table.name.lower(), table.name)
    if not tables:
        raise ArgumentError("sql: the query asks no table, and so tells nothing about anybody")
    for name in tables.values():
        if not name.isidentifier() or iskeyword(name):
            raise ArgumentError(f"sql: the table {shown(name)} cannot be a parameter; give it another name")
    trees = [_apart(tree, tables) for tree in trees]
    return Parsed(tuple(trees), tuple(tables.values()), dialect)


def _apart(tree: Tree, tables: Collection[str]) -> Tree:
    """Return a query whose common tables have other names than those that are given."""
    found = tree.copy()
    common = [one for one in found.find_all(exp.Table) if one.name.lower() in tables and _is_common(one)]
    for table in common:
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name)))
        table.set("this", exp.to_identifier(f"{table.name.lower()}_of_query"))
    for one in found.find_all(exp.CTE):
        if one.alias.lower() in tables:
            one.args["alias"].set("this", exp.to_identifier(f"{one.alias.lower()}_of_query"))
    return found


def _transpiled(tree: Tree, dialect: Dialect) -> Tree:
    """Return a query of another dialect as DuckDB has it; what means something else there is refused."""
    name = dialect.name
    for node in tree.walk():
        if not _means_the_same(node, dialect):
            raise ArgumentError(f"sql: {node.sql(name)} is not known to mean the same in {name} and DuckDB")
        if isinstance(node, exp.Div) and not (_divides(node) and _is_of_floats(node, dialect)):
            raise ArgumentError(
                f"sql: the division {node.sql(name)} is not known to mean the same in {name} and DuckDB; "
                "divide by a number or NULLIF(..., 0), and multiply by 1.0"
            )
    return sqlglot.parse_one(tree.sql(dialect=dialect.engine), dialect=dialect.engine)


def _means_the_same(node: Tree, dialect: Dialect) -> bool:
    """Say whether one node of a query, given its parts, has the same value in a dialect and in DuckDB."""
    match node:
        case exp.SimilarTo() | exp.Collate() | exp.Lateral() | exp.Unnest():
            return False
        case exp.Mod():
            return _divides(node)
        case exp.Like() | exp.ILike():  # some dialects escape by backslashes
            return isinstance(node.expression, exp.Literal) and "\\" not in node.expression.this
        case exp.DPipe():  # the text of a number has other digits
            texts = (exp.Column, exp.DPipe, exp.Upper, exp.Lower, exp.Substring, exp.Paren)
            sides = (node.this, node.expression)
            return all(getattr(side, "is_string", False) or isinstance(side, texts) for side in sides)
        case exp.Cast():  # as text, numbers have other digits
            return bool(node.to.this == exp.DataType.Type.DOUBLE)
        case exp.Avg():
            return not dialect.fixed_digits
        case exp.Round():
            return not dialect.rounds_by_type
        case exp.Substring():
            start = node.args.get("start")
            return isinstance(start, exp.Literal) and start.this.isdigit() and int(start.this) > 0
    return isinstance(node, ALIKE) or not isinstance(node, exp.Func)


def _divides(node: Tree) -> bool:
    """Say whether a divisor is never zero."""
    divisor = node.args.get("expression")
    if isinstance(divisor, exp.Nullif):
        divisor = divisor.expression
        return isinstance(divisor, exp.Literal) and float(divisor.this) == 0
    return isinstance(divisor, exp.Literal) and not divisor.is_string and float(divisor.this) != 0


def _is_of_floats(node: Tree, dialect: Dialect) -> bool:
    """Say whether a quotient keeps its fraction, and all digits of it."""
    if dialect.fixed_digits:
        return False
    sides = [node.this.unnest(), node.expression]
    factors = [sides[0].this.unnest(), sides[0].expression.unnest()] if isinstance(sides[0], exp.Mul) else []
    return dialect.divides_floats or any(map(_is_fractional, (*sides, *factors)))


def _is_fractional(node: Tree) -> bool:
    """Say whether a value is of a type that has fractions, by its form."""
    fraction = isinstance(node, exp.Literal) and not node.is_string and not node.this.isdigit()
    return fraction or isinstance(node, exp.Avg) or (isinstance(node, exp.Cast) and node.is_type("double"))


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
        if isinstance(node, exp.TableSample) or (isinstance(node, exp.Func) and _tells_the_time(node)):
            raise ArgumentError(f"sql: {_called(node)} gives another value each time; put it into a table")
        if isinstance(node, exp.Parameter | exp.Placeholder | exp.Columns | exp.Pivot):
            raise ArgumentError(f"sql: {_called(node)} is not supported; write out what it stands for")
        if isinstance(node, ARBITRARY) or (isinstance(node, exp.First | exp.Last) and not node.find(exp.Order)):
            raise ArgumentError(f"sql: what {_called(node)} gives depends on the order of rows; write MIN or MAX")


def _called(node: Tree) -> str:
    return str(node.sql_name()) if isinstance(node, exp.Func) else str(node.key).upper()


def _tells_the_time(node: Tree) -> bool:
    """Say whether a function gives another value each time: clocks, and the dates of SQLite of 'now' or of nothing."""
    if node.key.startswith(CLOCKS):
        return True
    given = [one for one in node.find_all(exp.Literal) if one.is_string]
    is_date = isinstance(node, exp.Date | exp.TimeToStr | exp.TsOrDsToTimestamp | exp.TsOrDsToDate)
    return is_date and (not any(node.iter_expressions()) or any(one.this.strip().lower() == "now" for one in given))


@lru_cache(maxsize=256)
def _completed(statements: tuple[Tree, ...], schema: Schema, dialect: Dialect) -> tuple[Statement, ...]:
    return tuple(_complete(statement.copy(), schema, dialect) for statement in statements)


def _complete(tree: Tree, schema: Schema, dialect: Dialect) -> Statement:
    # Types are not asked for: any will do to find the owner of a column.
    written = list(tree.named_selects)
    known: Any = {name: dict.fromkeys(columns, "TEXT") for name, columns in schema}
    try:
        qualified = qualify(
            tree, schema=known, dialect=dialect.name, quote_identifiers=False, validate_qualify_columns=True,
            expand_alias_refs=True,
        )  # fmt: skip
    except SqlglotError as error:
        raise ArgumentError(f"sql: {str(error).splitlines()[0]}") from None
    for dot in list(qualified.find_all(exp.Dot)):  # a table of SEMI or ANTI JOIN, named like a column
        if isinstance(dot.this, exp.Column) and dot.this.table == dot.this.name:
            dot.replace(exp.column(dot.expression.copy(), table=dot.this.table))
    columns = _as_written(written, qualified.named_selects, schema)
    if len(set(columns)) < len(columns) or not all(columns):
        raise ArgumentError("sql: every column of the answer needs a name of its own; write AS")
    is_value = len(columns) == 1 and _has_one_row(qualified)
    if dialect.takes_bare_columns:
        _refuse_bare_columns(qualified)
    _complete_windows(qualified, schema)
    _complete_aggregates(qualified, dialect)
    for query in list(qualified.find_all(exp.Query)):
        if query is qualified or query.args.get("limit") is not None or query.args.get("offset") is not None:
            _put_in_order(query)
    sides = (side for joined in qualified.find_all(exp.DPipe) for side in (joined.this, joined.expression))
    names = tuple(side.name for side in sides if isinstance(side, exp.Column))
    text, unordered = qualified.sql(dialect=dialect.name), _unordered(qualified, dialect.name)
    return Statement(text, qualified, columns, is_value, *unordered, joined=names)


def _unordered(tree: Tree, dialect: str) -> tuple[str, tuple[str, ...]]:
    """Return the text of a query without its order, unless rows are counted in it, and columns that give the order."""
    inner, names, order = tree.copy(), list(tree.named_selects), []
    if tree.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None:  # DuckDB fails on these in LATERAL
        return "", ()
    if any(distinct.args.get("on") is not None for distinct in tree.find_all(exp.Distinct)):  # needs its order
        return "", ()
    for ordered in tree.args["order"].expressions:
        by = ordered.this
        if isinstance(by, exp.Literal) and not by.is_string:
            place = int(by.this) - 1
        elif isinstance(by, exp.Column) and not by.table and by.name in names:
            place = names.index(by.name)
        elif not isinstance(tree, exp.Select) or tree.args.get("distinct"):
            return "", ()
        else:
            place = len(inner.expressions)
            inner.append("expressions", exp.alias_(by.copy(), f"_order_{place}"))
        nulls = "FIRST" if ordered.args.get("nulls_first") else "LAST"
        order.append(f"c{place}{' DESC' if ordered.args.get('desc') else ''} NULLS {nulls}")
    if tree.args.get("limit") is None and tree.args.get("offset") is None:
        inner.set("order", None)
    return inner.sql(dialect=dialect), tuple(order)


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


def _complete_windows(tree: Tree, schema: Schema) -> None:
    """Add all columns to what windows are ordered by, where the order of equal rows makes a difference."""
    for scope in traverse_scope(tree):
        group = scope.expression.args.get("group")
        for window in scope.find_all(exp.Window):
            spec = window.args.get("spec")
            if not isinstance(window.this, POSITIONAL) and (spec is None or spec.args.get("kind") != "ROWS"):
                continue
            every = group.expressions if group is not None else _columns_in(scope, dict(schema))
            order = window.args.get("order")
            known = order.expressions if order is not None else ()
            rest = [exp.Ordered(this=one.copy(), desc=False, nulls_first=False) for one in every if one not in known]
            window.set("order", exp.Order(expressions=[*known, *rest]))


def _complete_aggregates(tree: Tree, dialect: Dialect) -> None:
    """Add the value itself to what lists and joined texts are ordered by: equal values are alike."""
    for node in list(tree.find_all(*ORDERED)):
        if not dialect.orders_aggregates:
            raise ArgumentError(
                f"sql: what {_called(node)} gives depends on the order of rows, which {dialect.name} leaves open"
            )
        inner = node.this
        known = inner.expressions if isinstance(inner, exp.Order) else []
        values = inner.this if isinstance(inner, exp.Order) else inner
        value = values.expressions[0] if isinstance(values, exp.Distinct) else values
        last = exp.Ordered(this=value.copy(), desc=False, nulls_first=False)
        node.set("this", exp.Order(this=values.copy(), expressions=[*(one.copy() for one in known), last]))


def _refuse_bare_columns(tree: Tree) -> None:
    """Refuse columns beside aggregates or groups that are neither: SQLite takes them from any row."""
    for select in tree.find_all(exp.Select):
        group = select.args.get("group")
        keys = [] if group is None else group.expressions
        stands_alone = partial(_stands_alone, keys=keys)
        walked = [node for one in select.selects for node in one.walk(prune=stands_alone)]
        if group is None and not any(isinstance(node, exp.AggFunc) for node in walked):
            continue
        bare = [node for node in walked if isinstance(node, exp.Column) and node not in keys]
        if bare:
            raise ArgumentError(f"sql: {bare[0].sql()} is neither a key of the groups nor inside a summary")


def _stands_alone(node: Tree, keys: Sequence[Tree]) -> bool:
    return isinstance(node, exp.AggFunc | exp.Filter | exp.Subquery | exp.Window) or node in keys


def _columns_in(scope: Tree, schema: Mapping[str, Sequence[str]]) -> list[Tree]:
    """Return all columns that the tables of a query have."""
    found = []
    for name, source in scope.selected_sources.items():
        inner = source[1]
        columns = schema[inner.name] if isinstance(inner, exp.Table) else inner.expression.named_selects
        found += [exp.column(column.lower(), table=name) for column in columns]
    return found


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
