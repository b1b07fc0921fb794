"""From the tree of a query to expressions on the stand-ins of polars, where filters, groups and joins have one meaning.

Every node of the tree is read in full or refused: what a handler does not look at would be wrong in silence. Aggregates
and windows are computed first, each under its own text; an expression looks for its text among the columns before it is
taken apart, which is all there is to `SELECT age / 10 ... GROUP BY age / 10`.
"""

import fnmatch
import functools
import itertools
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars
from sqlglot import exp

from privug.model.variable import refuse
from privug.program.sql.answering import answer
from privug.program.sql.parsing import Parsed, Statement
from privug.program.traced.frames.cells import Cell, cell_of
from privug.program.traced.frames.columns import ONE, Column, is_truths, masks_of, single
from privug.program.traced.frames.dialects import Dialect
from privug.program.traced.frames.polars.column import OPERATORS as OF_COLUMNS
from privug.program.traced.frames.polars.column import of_values
from privug.program.traced.frames.polars.expressions import FUNCTIONS, Call, Expr, Scope, case
from privug.program.traced.frames.polars.frame import Frame, closed, standing, tell_apart
from privug.program.traced.frames.reductions import positive
from privug.program.traced.frames.relations import (
    LOOKED_UP,
    MOST_RANKED,
    RowSequence,
    can_look_up,
    in_order,
    is_among,
    joined,
    joined_by_lookup,
    stacked,
    unrolled,
)
from privug.program.traced.frames.rows import Rows
from privug.program.traced.masks import Mask, both, either

Tree = Any
"""A node of sqlglot's, whose arguments are of any kind."""
Expression = Any
"""An expression of the stand-ins, whose operators are made at run time."""
Known = Mapping[str, Expression]
"""What has been computed, by its text or its name."""
col, lit, when = FUNCTIONS["col"], FUNCTIONS["lit"], FUNCTIONS["when"]
OPERATORS: dict[type[Any], Callable[[Any, Any], Any]] = {
    exp.Add: operator.add, exp.Sub: operator.sub, exp.Mul: operator.mul, exp.EQ: operator.eq, exp.NEQ: operator.ne,
    exp.GT: operator.gt, exp.GTE: operator.ge, exp.LT: operator.lt, exp.LTE: operator.le,
}  # fmt: skip
CONNECTIVES = {exp.And: operator.and_, exp.Or: operator.or_}
SET_OPERATIONS: dict[type[Any], Callable[[Any, Any], Any]] = {
    exp.Union: operator.or_, exp.Intersect: operator.and_, exp.Except: lambda first, second: first & ~second,
}  # fmt: skip
JOINS = {"inner": "inner", "cross": "inner", "left": "left", "right": "right", "full": "full", "semi": "semi",
         "anti": "anti"}  # fmt: skip
ORDERED = {exp.RowNumber, exp.Rank, exp.DenseRank, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue}
METHODS: dict[type[Any], str] = {
    exp.Abs: "abs", exp.Floor: "floor", exp.Ceil: "ceil", exp.Upper: "str.to_uppercase",
    exp.Lower: "str.to_lowercase", exp.Length: "str.len_chars", exp.Trim: "str.strip_chars",
    exp.Year: "dt.year", exp.Month: "dt.month", exp.Day: "dt.day", exp.Quarter: "dt.quarter",
}  # fmt: skip
"""Functions of one value that are methods of expressions."""
SUMMARIES: dict[type[Any], str] = {
    exp.Avg: "mean", exp.Min: "min", exp.Max: "max", exp.Median: "median", exp.Stddev: "std", exp.StddevSamp: "std",
    exp.Variance: "var",
}  # fmt: skip
TYPES = {
    "INT": polars.Int64, "BIGINT": polars.Int64, "DOUBLE": polars.Float64, "FLOAT": polars.Float64,
    "BOOLEAN": polars.Boolean,
}  # fmt: skip
READ: dict[type[Any], str] = {
    exp.Select: "expressions from_ where group having order limit distinct joins with_ qualify offset",
    **dict.fromkeys((exp.Union, exp.Except, exp.Intersect), "this expression distinct order limit offset with_"),
    **dict.fromkeys((exp.Group, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Distinct), "expressions"),
    **dict.fromkeys((exp.Table, exp.Subquery), "this alias"), exp.Join: "this on side kind",
    exp.Ordered: "this desc nulls_first", exp.Limit: "expression", exp.Window: "this partition_by over order spec",
    exp.WindowSpec: "kind start start_side end end_side", **dict.fromkeys((exp.Lag, exp.Lead), "this offset default"),
    exp.Case: "this ifs default", exp.If: "this true", exp.In: "this expressions query", exp.Between: "this low high",
    exp.Cast: "this to", exp.Round: "this decimals", exp.Count: "this big_int", exp.Substring: "this start length",
    exp.Div: "this expression typed safe", exp.Coalesce: "this expressions",
    **dict.fromkeys((exp.Greatest, exp.Least), "this expressions ignore_nulls"),
    exp.Column: "this table", exp.Literal: "this is_string",
}  # fmt: skip
"""What is read of a node; of others, what all expressions have."""


def lowered(query: Parsed, frames: Mapping[str, Any]) -> Any:
    """Return the answer to a query on what stands for frames."""
    frames = {name: polars.DataFrame(one) if isinstance(one, list) else one for name, one in frames.items()}
    if not all(isinstance(frame, Frame | polars.DataFrame) for frame in frames.values()):
        refuse("a query of tables that are no frames")
    schema = tuple((name, _columns(frame)) for name, frame in frames.items())
    found = [_answered(statement, frames, query.engine) for statement in query.completed(schema)]
    return found if len(found) > 1 else found[0]


def _columns(frame: Any) -> tuple[str, ...]:
    """Return the names of the columns of a frame, which may be a plain one."""
    return tuple(frame.held if isinstance(frame, Frame) else frame.columns)


def _answered(statement: Statement, frames: Mapping[str, Frame], dialect: Dialect) -> Any:
    tables = {name.lower(): frame for name, frame in frames.items()}
    found = standing(Lowering(tables, dialect).frame(statement.tree, ordered=True))
    found = found.rename(dict(zip(found.held, statement.columns, strict=True)))
    if not dialect.has_booleans:
        truths = [name for name, column in found.held.items() if is_truths(column)]
        found = found.with_columns(*(col(name).cast(polars.Int64) for name in truths)) if truths else found
    return found.item() if statement.is_value else found.to_dicts()


def _read(node: Tree) -> Tree:
    """Return a node, unless it says more than is read of it."""
    known = READ.get(type(node), "this expression").split()
    more = [name for name, value in node.args.items() if value and name not in known]
    return refuse(f"{more[0].rstrip('_').replace('_', ' ')} of {node.key.upper()} in SQL") if more else node


class Lowering:
    """The tables of a query, by their names, and what each part of it comes to."""

    def __init__(self, tables: dict[str, Any], dialect: Dialect, outer: Known | None = None) -> None:
        self._tables, self._dialect = tables, dialect
        self._any = ""
        """A column of the table at hand, for values that are the same in all rows."""
        self._outer = outer or {}
        """The columns of the row around a subquery."""
        self._own: set[str] = set()
        """What the tables of the query at hand are called."""

    def frame(self, tree: Tree, ordered: bool = False) -> Any:
        """Return the answer to a query as a frame; what asks plain tables alone is a plain one."""
        if self._is_plain(tree):
            return self._plain(tree)
        if not isinstance(tree, exp.SetOperation | exp.Select):
            return refuse(f"{tree.key.upper()} in SQL")
        _read(tree)
        inner = Lowering(dict(self._tables), self._dialect, self._outer)
        common = tree.args.get("with_")
        if common is not None and common.args.get("recursive"):
            refuse("WITH RECURSIVE in SQL")
        for one in common.expressions if common is not None else ():
            inner._tables[one.alias] = inner.frame(one.this)
        return (inner._united if isinstance(tree, exp.SetOperation) else inner._selected)(tree, ordered)

    def _is_plain(self, tree: Tree) -> bool:
        own = {cte.alias for cte in tree.find_all(exp.CTE)}
        names = [table.name for table in tree.find_all(exp.Table) if table.name not in own]
        plain = all(isinstance(self._tables.get(name), polars.DataFrame) for name in names)
        return bool(names) and plain and not is_correlated(tree)

    def _plain(self, tree: Tree) -> polars.DataFrame:
        """Return the answer of the engine to a part of the query that asks plain tables alone."""
        names = {table.name for table in tree.find_all(exp.Table)} & self._tables.keys()
        query = Parsed((tree,), tuple(names), self._dialect)
        found = answer(query, {name: self._tables[name] for name in names})
        rows = found if isinstance(found, list) else [dict.fromkeys(tree.named_selects, found)]
        return polars.DataFrame(rows, schema=list(tree.named_selects))

    def _united(self, tree: Tree, ordered: bool) -> Frame:
        """Return the rows of two queries together, or those that are in both, or in the first alone."""
        sides = [self.frame(side) for side in (tree.this, tree.expression)]
        names = list(_columns(sides[0]))
        frames = [standing(side) for side in sides]
        named = [frame.rename(dict(zip(frame.held, names, strict=True))) for frame in frames]
        if not tree.args.get("distinct"):
            found = _stacked(named) if isinstance(tree, exp.Union) else refuse(f"{tree.key.upper()} ALL in SQL")
        else:
            found = _combined(named, names, SET_OPERATIONS[type(tree)])
        if not ordered and not _is_limited(tree):
            return found
        return _limited(tree, self._sorted(tree, found, {name: col(name) for name in names}, {}))

    def _selected(self, tree: Tree, ordered: bool) -> Frame:
        frame = self._from(tree)
        if any(is_correlated(one) for one in _subqueries(tree)):
            frame = Frame(*unrolled(frame.held, frame.kept))
        if tree.args.get("where") is not None:
            frame = frame.filter(self._condition(tree.args["where"].this, {}))
        frame, known = self._grouped(tree, frame)
        if tree.args.get("having") is not None:
            frame = frame.filter(self._condition(tree.args["having"].this, known))
        frame, known = self._windowed(tree, frame, known)
        if tree.args.get("qualify") is not None:
            frame = frame.filter(self._condition(tree.args["qualify"].this, known))
        outputs = {one.alias_or_name: self._expression(one, known) for one in tree.selects}
        if not (ordered or _is_limited(tree)) or frame.kept is ONE:
            found = _projected(frame, outputs)
            return found.unique() if tree.args.get("distinct") else found
        if tree.args.get("distinct"):
            _read(tree.args["distinct"])
            found = self._sorted(tree, _projected(frame, outputs).unique(), {name: col(name) for name in outputs}, {})
        else:
            found = self._sorted(tree, frame, outputs, known)
        return _limited(tree, found)

    def _sorted(self, tree: Tree, frame: Frame, outputs: Known, known: Known) -> Frame:
        """Return the columns in the order asked for, which all of them complete: equal rows are then the same."""
        names, keys, flags = list(outputs), {}, []
        for place, one in enumerate(tree.args["order"].expressions):
            by = _read(one).this
            if isinstance(by, exp.Literal) and not by.is_string:
                key = outputs[names[int(by.this) - 1]]
            elif isinstance(by, exp.Column) and not by.table and by.name in outputs:
                key = outputs[by.name]
            else:
                key = self._expression(by, known)
            keys[f"#o{place}"] = key
            flags.append(_flags(one))
        wide, needed = _projected(frame, {**outputs, **keys}), [*keys]
        for place in range(1, len(needed)):  # keys that come after all rows are told apart do not matter
            if tell_apart([wide.held[name] for name in needed[:place]]):
                needed = needed[:place]
                break
        rows = closed(wide.kept)
        columns = {name: column.on(rows) for name, column in wide.held.items()}
        order = [(columns[name], *pair) for name, pair in zip(needed, flags, strict=False)]
        return Frame(*in_order(columns, rows, order)).select(*names)

    def _from(self, tree: Tree) -> Frame:
        source = tree.args.get("from_")
        if source is None:
            refuse("SELECT without FROM in SQL")
        joins = tree.args.get("joins") or ()
        self._own = {one.this.alias_or_name for one in (source, *joins)}
        frame = standing(self._table(source.this))
        for join in joins:
            frame = self._joined(frame, _read(join))
        return frame

    def _table(self, node: Tree) -> Any:
        """Return a table, which may be a plain one, or a subquery, columns under their full names."""
        _read(node)
        match node:
            case exp.Table():
                found = self._tables[node.name]
            case exp.Subquery():
                found = self.frame(node.this)
            case _:
                return refuse(f"{node.key.upper()} in SQL")
        return found.rename({name: f"{node.alias_or_name}.{name.lower()}" for name in _columns(found)})

    def _joined(self, frame: Frame, join: Tree) -> Frame:
        how = (join.args.get("side") or join.args.get("kind") or "INNER").lower()
        if how not in JOINS:
            refuse(f"{how.upper()} JOIN in SQL")
        other, on = standing(self._table(join.this)), join.args.get("on")
        left, right, keys = (frame.held, frame.kept), (other.held, other.kept), _equal_columns(on)
        if how in LOOKED_UP and len(keys) == 1:
            mine, theirs = keys[0] if keys[0][0] in frame.held else keys[0][::-1]
            if mine in frame.held and theirs in other.held and can_look_up(frame.held[mine], other.held[theirs]):
                return Frame(*joined_by_lookup(left, right, frame.held[mine], other.held[theirs], how))

        def held(columns: Mapping[str, Column], rows: Rows) -> Sequence[Mask]:
            if on is None:
                return [True] * len(rows.there)
            return masks_of(self._condition(on, {}).one(Scope(columns, rows)).beside_rows(rows))

        return Frame(*joined(left, right, held, JOINS[how]))

    def _grouped(self, tree: Tree, frame: Frame) -> tuple[Frame, dict[str, Expression]]:
        """Return the groups with their aggregates, and expressions for what was computed, by its text."""
        clauses = [*tree.selects, *(tree.args[name] for name in ("having", "order", "qualify") if tree.args.get(name))]
        group = tree.args.get("group")
        summaries = {n.sql(): n for clause in clauses for n in _outside_subqueries(clause, (exp.Filter, exp.AggFunc))}
        if group is None and not summaries:
            return frame, {}
        self._any = next(iter(frame.held))
        made = {f"#a{place}": self._summary(node, {}) for place, node in enumerate(summaries.values())}
        known = {text: col(f"#a{place}") for place, text in enumerate(summaries)}
        if group is None:
            return frame.select(**made), known
        sets = _grouping_sets([_key(one, tree) for one in _read(group).expressions])
        keys = {key.sql(): key for one in sets for key in one}
        named = {text: f"#k{place}" for place, text in enumerate(keys)}
        known |= {text: col(name) for text, name in named.items()}
        values = {name: self._expression(keys[text], {}) for text, name in named.items()}
        found = [_by_keys(frame, {named[key.sql()] for key in one}, values, made) for one in sets]
        return found[0] if len(found) == 1 else _stacked(found), known

    def _windowed(self, tree: Tree, frame: Frame, known: Known) -> tuple[Frame, dict[str, Expression]]:
        """Return the table with what windows come to, each known by its text."""
        clauses = [*tree.selects, *(tree.args[name] for name in ("order", "qualify") if tree.args.get(name))]
        windows = {node.sql(): node for clause in clauses for node in _outside_subqueries(clause, exp.Window)}
        if any(_read(node).args.get("order") for node in windows.values()):
            frame = Frame(*unrolled(frame.held, frame.kept))
        self._any = next(iter(frame.held))
        made = {f"#w{place}": self._window(node, known) for place, node in enumerate(windows.values())}
        found = frame.with_columns(**made) if made else frame
        return found, {**known, **{text: col(f"#w{place}") for place, text in enumerate(windows)}}

    def _window(self, node: Tree, known: Known) -> Expression:
        """Return for each row what comes of the rows around it."""
        parts = [self._expression(one, known) for one in node.args.get("partition_by") or ()]
        order = node.args.get("order")
        if order is None:
            if node.args.get("spec") is not None or (isinstance(node.this, exp.Func) and type(node.this) in ORDERED):
                refuse(f"{node.this.key.upper()} without an order in SQL")
            return self._summary(node.this, known).over(*(parts or [lit(0)]))
        keys = [(self._expression(_read(one).this, known), *_flags(one)) for one in order.expressions]
        summary = None if type(node.this) in ORDERED else self._summary(node.this, known)
        return _computed(
            Window(node, parts, keys, self._dialect, lambda part: self._expression(part, known), summary).column
        )

    def _summary(self, node: Tree, known: Known) -> Expression:
        """Return an aggregate of the rows of a group."""
        if isinstance(node, exp.Filter):
            condition = self._condition(node.expression.this, known)
            if isinstance(node.this, exp.Count) and isinstance(node.this.this, exp.Star):
                return condition.sum().cast(polars.Int64)
            return self._aggregate(node.this, lambda value: value.filter(condition), known)
        return self._aggregate(node, lambda value: value, known)

    def _aggregate(self, node: Tree, chosen: Callable[[Expression], Expression], known: Known) -> Expression:
        _read(node)
        if not isinstance(node, exp.Count | exp.CountIf | exp.Sum | exp.PercentileCont) and type(node) not in SUMMARIES:
            refuse(f"{node.key.upper()} in SQL")
        if isinstance(node, exp.CountIf):
            return chosen(self._condition(node.this, known)).sum().cast(polars.Int64)
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
            return FUNCTIONS["len"]().cast(polars.Int64)
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct):
            (inner,) = _read(node.this).expressions
            return chosen(self._expression(inner, known)).drop_nulls().n_unique().cast(polars.Int64)
        value = self._expression(node.this, known)
        if (
            not {column.table for column in node.this.find_all(exp.Column)} & self._own
        ):  # a value that stands in every row
            value = when(col(self._any).is_null()).then(value).otherwise(value)
        value = chosen(value)
        match node:
            case exp.Count():
                return value.count().cast(polars.Int64)
            case exp.PercentileCont() if isinstance(node.expression, exp.Literal):
                return value.quantile(float(node.expression.this), "linear")
            case exp.PercentileCont():
                return refuse("a quantile that is not written out in SQL")
            case exp.Sum():  # of nothing, SQL has no sum
                return when(value.count() > 0).then(value.sum()).otherwise(None)
        return getattr(value, SUMMARIES[type(node)])()

    def _condition(self, node: Tree, known: Known) -> Expression:
        """Return what a condition says; numbers other than zero are true."""
        return self._expression(node, known).derived(_truth, "truth", [], {})

    def _expression(self, node: Tree, known: Known) -> Expression:
        """Return an expression; what has been computed is known by its text."""
        node = node.unalias() if isinstance(node, exp.Alias) else node
        if node.sql() in known:
            return known[node.sql()]
        if isinstance(node, exp.Paren):
            return self._expression(node.this, known)
        _read(node)

        def part(name: str = "this") -> Expression:
            return self._expression(node.args[name], known)

        kind = type(node)
        if kind in CONNECTIVES:
            sides = (self._condition(node.args[name], known) for name in ("this", "expression"))
            return CONNECTIVES[kind](*sides)
        if kind in OPERATORS:
            return OPERATORS[kind](part(), part("expression"))
        if kind in METHODS:
            return operator.attrgetter(METHODS[kind])(part())()
        several = [self._expression(one, known) for one in node.expressions]
        if kind in FORMS:
            return FORMS[kind](node, part, several)
        return self._other(node, known, part, several)

    def _other(
        self, node: Tree, known: Known, part: Callable[..., Expression], several: Sequence[Expression]
    ) -> Expression:
        match node:
            case exp.Column():
                name = f"{node.table}.{node.name}" if node.table else node.name
                return self._outer[name] if node.table not in self._own and name in self._outer else col(name)
            case exp.Not():
                return ~self._condition(node.this, known)
            case exp.Div() if self._dialect.divides_floats:
                return part() / part("expression")
            case exp.IntDiv() | exp.Mod() if isinstance(node.expression, exp.Literal) and _whole(node.expression):
                cut = _cut_quotient(part(), _whole(node.expression))
                return cut if isinstance(node, exp.IntDiv) else part() - cut * _whole(node.expression)
            case exp.In() if node.args.get("query") is not None:
                return self._within(part(), node.args["query"], known)
            case exp.In():
                return functools.reduce(operator.or_, [part() == one for one in several])
            case exp.Exists():
                return self._of_subquery(node.this, known, lambda found: Cell(positive(standing(found).kept.count)))
            case exp.Is() if isinstance(node.expression, exp.Null):
                return part().is_null()
            case exp.Like() if isinstance(node.expression, exp.Literal) and self._dialect.like_tells_case:
                pattern = _glob(node.expression.this)
                return part().derived(of_values(lambda text: fnmatch.fnmatchcase(text, pattern)), "like", [], {})
            case exp.StartsWith() if isinstance(node.expression, exp.Literal):
                return part().str.starts_with(node.expression.this)
            case exp.Case():
                return self._case(node, known)
            case exp.Cast() if node.to.sql() in TYPES:
                return part().cast(TYPES[node.to.sql()])
            case exp.Subquery():
                return self._of_subquery(node.this, known, _only)
            case exp.Substring() if node.args.get("length") is not None:
                return part().str.slice(_whole(node.args["start"]) - 1, _whole(node.args["length"]))
        return refuse(f"{node.key.upper()} in SQL")

    def _within(self, value: Expression, node: Tree, known: Known) -> Expression:
        """Say whether a value is among those of a subquery."""

        def among(found: Any, one: Column) -> Column:
            (listed,) = standing(found if has_few_rows(found) else found.unique()).held.values()
            return is_among(self._dialect, one, listed)

        tree = node.this if isinstance(node, exp.Subquery) else node
        if not is_correlated(tree):
            found = self.frame(tree)
            return value.derived(lambda column: among(found, column), "is_in", [], {})

        def within(scope: Scope) -> Column:
            pairs = zip(self._by_row(tree, known, scope), value.one(scope).beside_rows(scope.rows).cells, strict=True)
            return Column(tuple(among(found, single(cell)).cells[0] for found, cell in pairs), scope.rows)

        return _computed(within)

    def _of_subquery(self, tree: Tree, known: Known, value: Callable[[Any], Cell]) -> Expression:
        """Return a value of a subquery: one for all rows, or one for each."""
        if not is_correlated(tree):
            return _constant(single(value(self.frame(tree))))
        return _computed(lambda scope: Column(tuple(map(value, self._by_row(tree, known, scope))), scope.rows))

    def _by_row(self, tree: Tree, known: Known, scope: Scope) -> list[Any]:
        """Return the answers to a subquery, one for each row around it."""
        seen = {**scope.columns, **{text: one.one(scope) for text, one in known.items()}}
        answers = []
        for place in range(len(scope.rows.there)):
            row = {name: _constant(single(column.cells[place], name)) for name, column in seen.items()}
            answers.append(Lowering(self._tables, self._dialect, {**self._outer, **row}).frame(tree))
        return answers

    def _case(self, node: Tree, known: Known) -> Expression:
        branches = []
        for one in map(_read, node.args["ifs"]):
            if node.this is None:
                condition = self._condition(one.this, known)
            else:
                condition = self._expression(node.this, known) == self._expression(one.this, known)
            branches.append((condition, self._expression(one.args["true"], known)))
        default = node.args.get("default")
        return case(branches, lit(None) if default is None else self._expression(default, known))


def _projected(frame: Frame, outputs: Known) -> Frame:
    """Return some columns of all rows; what is the same in all of them stands in each."""
    return frame.with_columns(**outputs).select(*outputs)


def _is_limited(tree: Tree) -> bool:
    return tree.args.get("limit") is not None or tree.args.get("offset") is not None


def _limited(tree: Tree, frame: Frame) -> Frame:
    """Return those rows that a query asks for, of rows in order."""
    limit, offset = tree.args.get("limit"), tree.args.get("offset")
    if limit is None and offset is None:
        return frame
    number = None if limit is None else _whole(_read(limit).expression)
    return frame.slice(0 if offset is None else _whole(_read(offset).expression), number)


def _flags(ordered: Tree) -> tuple[bool, bool]:
    """Return whether an order goes down, and whether missing values are last."""
    return bool(ordered.args.get("desc")), not ordered.args.get("nulls_first")


def is_correlated(tree: Tree) -> bool:
    """Say whether a subquery asks for columns of what is around it."""
    own = {source.alias_or_name for source in tree.find_all(exp.Table, exp.Subquery, exp.CTE)}
    return any(column.table and column.table not in own for column in tree.find_all(exp.Column))


def _subqueries(tree: Tree) -> list[Tree]:
    """Return the queries inside the expressions of another."""
    clauses = [*tree.selects, *(tree.args[n] for n in ("where", "having", "order", "qualify") if tree.args.get(n))]
    return [node.this if isinstance(node, exp.Subquery) else node
            for clause in clauses for node in clause.find_all(exp.Select, exp.SetOperation)]  # fmt: skip


def _equal_columns(on: Tree | None) -> list[tuple[str, str]]:
    """Return the pairs of columns that a join asks to be equal, if it asks for nothing else."""
    clauses = [one.unnest() for one in (on.flatten() if isinstance(on, exp.And) else [on])] if on is not None else []
    if not all(isinstance(one, exp.EQ) and isinstance(one.this, exp.Column) and isinstance(one.expression, exp.Column)
               for one in clauses):  # fmt: skip
        return []
    return [(f"{one.this.table}.{one.this.name}", f"{one.expression.table}.{one.expression.name}") for one in clauses]


def _key(key: Tree, tree: Tree) -> Tree:
    """Return what rows are grouped by, which may be the place of a column."""
    return tree.selects[int(key.this) - 1].unalias() if isinstance(key, exp.Literal) and not key.is_string else key


def _grouping_sets(keys: Sequence[Tree]) -> list[list[Tree]]:
    """Return the sets of keys by which rows are grouped, as GROUP BY, ROLLUP, CUBE and GROUPING SETS have them."""
    found: list[list[Tree]] = [[]]
    for key in keys:
        _read(key)
        match key:
            case exp.Rollup():
                sets = [key.expressions[:length] for length in range(len(key.expressions), -1, -1)]
            case exp.Cube():
                whole = key.expressions
                sets = [list(some) for n in range(len(whole), -1, -1) for some in itertools.combinations(whole, n)]
            case exp.GroupingSets():
                sets = [one.expressions if isinstance(one, exp.Tuple) else [one.unnest()] for one in key.expressions]
            case _:
                sets = [[key]]
        found = [[*some, *more] for some in found for more in sets]
    return found


def _by_keys(frame: Frame, chosen: Collection[str], keys: Known, made: Known) -> Frame:
    """Return groups by some of the keys; the others are missing in them."""
    named = {name: key for name, key in keys.items() if name in chosen}
    found = frame.group_by(**named).agg(**made) if named else frame.select(**made)
    others = {name: lit(None) for name in keys if name not in chosen}
    return found.with_columns(**others).select(*keys, *made) if others else found


def _outside_subqueries(clause: Tree, kinds: Any) -> list[Tree]:
    """Return nodes of some kinds in a clause, those of subqueries left out: aggregates, or else windows."""
    found: list[Tree] = []
    pending = [clause]
    while pending:
        node = pending.pop()
        if isinstance(node, exp.Window) and kinds is not exp.Window:
            function = node.this.this if isinstance(node.this, exp.Filter) else node.this
            pending.extend([*function.iter_expressions(), *(node.args.get("partition_by") or ())])
            pending.extend([node.args["order"]] if node.args.get("order") else [])
        elif isinstance(node, kinds):
            found.append(node)
        elif not isinstance(node, exp.Subquery | exp.Select):
            pending.extend(node.iter_expressions())
    return found


def _stacked(frames: Sequence[Frame]) -> Frame:
    """Return the rows of several frames with the same columns, in any order."""
    return Frame(*stacked([(frame.held, frame.kept) for frame in frames]))


def _combined(frames: Sequence[Frame], names: Sequence[str], kept: Callable[[Any, Any], Any]) -> Frame:
    """Return distinct rows, by whether they are in the first and in the second of two frames."""
    marked = [frame.with_columns(**{"#t": lit(place)}) for place, frame in enumerate(frames)]
    within = {f"#{place}": (col("#t") == place).sum() for place in range(len(frames))}
    found: Frame = _stacked(marked).group_by(*names).agg(**within)
    return found.filter(kept(*(col(name) > 0 for name in within))).select(*names)


def _only(found: Any) -> Cell:
    """Return the only value of a subquery, which is missing if there is no row."""
    frame = standing(found)
    if len(frame.kept.there) > 1 or any(frame.kept.axis.plates) or len(frame.held) != 1:
        refuse("a subquery of several rows in SQL")
    (column,) = frame.held.values()
    if not frame.kept.there:
        return cell_of(None)
    (cell,), (there,) = column.cells, frame.kept.there
    return Cell(cell.value, both(there, cell.known))


def has_few_rows(found: Any) -> bool:
    """Say whether a table has so few rows that each is looked at."""
    return isinstance(found, polars.DataFrame) or (not found.kept.has_plates and len(found.kept.there) <= MOST_RANKED)


def _constant(column: Column) -> Expr:
    return _computed(lambda scope: column)


def _computed(column: Callable[[Scope], Column]) -> Expr:
    return Expr(lambda scope: [column(scope)], Call("sql"))


@dataclass(frozen=True)
class Window:
    """A function of the rows before and behind each row."""

    node: Tree
    partition: Sequence[Expression]
    keys: Sequence[tuple[Expression, bool, bool]]
    dialect: Dialect
    expression: Callable[[Tree], Expression]
    summary: Expression | None
    """What is computed of the rows around, if it is an aggregate."""

    def column(self, scope: Scope) -> Column:
        """Return its value in each row."""
        keys = tuple((key.one(scope).beside_rows(scope.rows), down, last) for key, down, last in self.keys)
        parts = tuple(one.one(scope).beside_rows(scope.rows) for one in self.partition)
        turns = RowSequence(self.dialect, scope.rows, parts, keys)
        if self.summary is not None:
            places = range(len(scope.rows.there))
            around = [self.summary.one(scope.on(scope.rows.among(self._around(turns, place)))) for place in places]
            return Column(tuple(one.cells[0] for one in around), scope.rows)
        return Column(tuple(self._ordered(turns, scope)), scope.rows)

    def _around(self, turns: RowSequence, place: int) -> Sequence[Mask]:
        spec = self.node.args.get("spec")
        if spec is None or self._bounds == ("RANGE", None, 0):
            return [either(one, two) for one, two in zip(turns.ahead[place], turns.peers[place], strict=True)]
        kind, first, last = self._bounds
        if kind != "ROWS" and (first, last) != (None, None):
            refuse(f"{kind} between bounds in SQL")
        return turns.between(place, first, last)

    @property
    def _bounds(self) -> tuple[str, int | None, int | None]:
        """What a frame goes by, and where it begins and ends, counted from the row itself."""
        spec = self.node.args.get("spec")
        if spec is None:
            return "RANGE", None, 0
        _read(spec)
        return str(spec.args["kind"]), _bound(spec, "start"), _bound(spec, "end")

    def _ordered(self, turns: RowSequence, scope: Scope) -> list[Cell]:
        node = _read(self.node.this)
        if node.args.get("this") is None:
            numbers = {exp.RowNumber: lambda: turns.numbers, exp.Rank: turns.ranks, exp.DenseRank: turns.dense_ranks}
            return [Cell(number) for number in numbers[type(node)]()]
        column = self.expression(node.this).one(scope).beside_rows(scope.rows)
        nothing = [cell_of(None)] * len(column.cells)
        match node:
            case exp.Lag() | exp.Lead():
                step = _whole(node.args["offset"]) if node.args.get("offset") is not None else 1
                step = -step if isinstance(node, exp.Lag) else step
                default = node.args.get("default")
                rest = self.expression(default).one(scope).beside_rows(scope.rows).cells if default else nothing
                return turns.at(column.cells, [number + step for number in turns.numbers], rest)
            case exp.FirstValue() if self._bounds[1] is None:
                return turns.at(column.cells, [1] * len(nothing), nothing)
            case exp.LastValue() if self._bounds[2] is None:
                return turns.at(column.cells, turns.sizes, nothing)
            case exp.LastValue() if self._bounds[2] == 0:  # the row itself, or one that is the same
                return list(column.cells)
        return refuse(f"{node.key.upper()} between such bounds in SQL")


def _bound(spec: Tree, side: str) -> int | None:
    value, direction = spec.args.get(side), spec.args.get(f"{side}_side")
    if value == "UNBOUNDED":
        return None
    if value == "CURRENT ROW" or value is None:
        return 0
    return -_whole(value) if direction == "PRECEDING" else _whole(value)


def _truth(column: Column) -> Column:
    return column if is_truths(column) or column.is_text else OF_COLUMNS["ne"](column, 0)


def _rounded(value: Expression, decimals: int) -> Expression:
    """Round halves away from zero, by the arithmetic of the engine."""
    scale = 10.0**decimals
    away = (value.abs() * scale + 0.5).floor() / scale
    return when(value < 0).then(-away).otherwise(away)


def _cut_quotient(value: Expression, divisor: int) -> Expression:
    """Divide by a number above zero, and cut towards zero."""
    return when(value < 0).then(-(-value // divisor)).otherwise(value // divisor)


def _whole(node: Tree) -> int:
    if not isinstance(node, exp.Literal) or not node.this.isdigit():
        return refuse("a number that is not written out in SQL")
    return int(node.this)


def _glob(pattern: str) -> str:
    """Return a pattern of LIKE as one of file names."""
    quoted = pattern.replace("[", "[[]").replace("*", "[*]").replace("?", "[?]")
    return quoted.replace("%", "*").replace("_", "?")


FORMS: dict[type[Any], Callable[[Tree, Callable[..., Expression], Sequence[Expression]], Expression]] = {
    exp.Literal: lambda node, part, several: (
        lit(node.this if node.is_string else (int if node.this.isdigit() else float)(node.this))),
    exp.Boolean: lambda node, part, several: lit(node.this),
    exp.Null: lambda node, part, several: lit(None),
    exp.Neg: lambda node, part, several: -part(),
    exp.Between: lambda node, part, several: part().is_between(part("low"), part("high")),
    exp.Coalesce: lambda node, part, several: (
        functools.reduce(lambda one, two: when(one.is_not_null()).then(one).otherwise(two), [part(), *several])),
    exp.Nullif: lambda node, part, several: (
        when(~(part() == part("expression")).fill_null(False)).then(part()).otherwise(None)),
    exp.Round: lambda node, part, several: (
        _rounded(part(), _whole(node.args["decimals"]) if node.args.get("decimals") else 0)),
    exp.Greatest: lambda node, part, several: FUNCTIONS["max_horizontal"](part(), *several),
    exp.Least: lambda node, part, several: FUNCTIONS["min_horizontal"](part(), *several),
}  # fmt: skip
"""What other nodes come to, by themselves, their parts and the list that they hold."""
