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
from dataclasses import replace
from typing import Any

import polars
from sqlglot import exp

from privug.model.variable import refuse
from privug.program.sql.answering import answer, columns_of
from privug.program.sql.parsing import Parsed, Statement
from privug.program.traced.frames.cells import cell_of
from privug.program.traced.frames.polars.accessors import of_values
from privug.program.traced.frames.polars.cellwise import ARITHMETIC
from privug.program.traced.frames.polars.column import ONE, Column, is_truths
from privug.program.traced.frames.polars.expressions import Expr
from privug.program.traced.frames.polars.frame import Frame
from privug.program.traced.frames.polars.functions import FUNCTIONS
from privug.program.traced.frames.polars.sorting import tell_apart
from privug.program.traced.frames.rows import Axis, Rows

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
METHODS: dict[type[Any], str] = {exp.Abs: "abs", exp.Floor: "floor", exp.Ceil: "ceil"}
TEXTS: dict[type[Any], str] = {
    exp.Upper: "to_uppercase", exp.Lower: "to_lowercase", exp.Length: "len_chars", exp.Trim: "strip_chars",
}  # fmt: skip
DATES: dict[type[Any], str] = {
    exp.Year: "year", exp.Month: "month", exp.Day: "day", exp.Quarter: "quarter",
}  # fmt: skip
SUMMARIES: dict[type[Any], str] = {
    exp.Avg: "mean", exp.Min: "min", exp.Max: "max", exp.Median: "median", exp.Stddev: "std", exp.StddevSamp: "std",
    exp.Variance: "var",
}  # fmt: skip
TYPES = {
    "INT": polars.Int64, "BIGINT": polars.Int64, "DOUBLE": polars.Float64, "FLOAT": polars.Float64,
    "BOOLEAN": polars.Boolean,
}  # fmt: skip
READ: dict[type[Any], frozenset[str]] = {
    exp.Select: frozenset(
        {"expressions", "from_", "where", "group", "having", "order", "limit", "distinct", "joins", "with_", "qualify"}
    ),
    exp.Group: frozenset({"expressions"}),
    exp.Rollup: frozenset({"expressions"}),
    exp.Cube: frozenset({"expressions"}),
    exp.GroupingSets: frozenset({"expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Join: frozenset({"this", "on", "side", "kind"}),
    exp.Table: frozenset({"this", "alias"}),
    exp.Subquery: frozenset({"this", "alias"}),
    exp.Window: frozenset({"this", "partition_by", "over"}),
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.In: frozenset({"this", "expressions", "query"}),
    **dict.fromkeys(
        (exp.Union, exp.Except, exp.Intersect), frozenset(["this", "expression", "distinct", "order", "limit"])
    ),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.Round: frozenset({"this", "decimals"}),
    exp.Count: frozenset({"this", "big_int"}),
    exp.Div: frozenset({"this", "expression", "typed", "safe"}),
    exp.Distinct: frozenset({"expressions"}),
    exp.Coalesce: frozenset({"this", "expressions"}),
    exp.Greatest: frozenset({"this", "expressions", "ignore_nulls"}),
    exp.Least: frozenset({"this", "expressions", "ignore_nulls"}),
    exp.If: frozenset({"this", "true"}),
    exp.Limit: frozenset({"expression"}),
    exp.Substring: frozenset({"this", "start", "length"}),
    exp.Column: frozenset({"this", "table"}),
    exp.Literal: frozenset({"this", "is_string"}),
}
"""What is read of a node; of others, what all expressions have."""


def lowered(query: Parsed, frames: Mapping[str, Any]) -> Any:
    """Return the answer to a query on what stands for frames."""
    if not all(isinstance(frame, Frame | polars.DataFrame) for frame in frames.values()):
        refuse("a query of tables that are no frames")
    schema = tuple((name, _columns(frame)) for name, frame in frames.items())
    found = [_answered(statement, frames, query.dialect) for statement in query.completed(schema)]
    return found if len(found) > 1 else found[0]


def _columns(frame: Any) -> tuple[str, ...]:
    """Return the names of the columns of a frame, which may be a plain one."""
    return tuple(frame.held if isinstance(frame, Frame) else frame.columns)


def _answered(statement: Statement, frames: Mapping[str, Frame], dialect: str) -> Any:
    tables = {name.lower(): frame for name, frame in frames.items()}
    found = Lowering(tables, dialect).frame(statement.tree, ordered=True)
    found = found.rename(dict(zip(found.held, statement.columns, strict=True)))
    if dialect == "sqlite":  # which has no truth values
        truths = [name for name, column in found.held.items() if is_truths(column)]
        found = found.with_columns(*(col(name).cast(polars.Int64) for name in truths)) if truths else found
    return found.item() if statement.is_value else found.to_dicts()


def _read(node: Tree) -> Tree:
    """Return a node, unless it says more than is read of it."""
    known = READ.get(type(node), frozenset({"this", "expression"}))
    more = [name for name, value in node.args.items() if value and name not in known]
    return refuse(f"{more[0].rstrip('_').replace('_', ' ')} of {node.key.upper()} in SQL") if more else node


class Lowering:
    """The tables of a query, by their names, and what each part of it comes to."""

    def __init__(self, tables: dict[str, Frame], dialect: str) -> None:
        self._tables, self._dialect = tables, dialect
        self._any = ""
        """A column of the table at hand, for values that are the same in all rows."""
        self._divides = dialect != "sqlite"  # which cuts quotients of integers, and has none by zero

    def frame(self, tree: Tree, ordered: bool = False) -> Any:
        """Return the answer to a query as a frame; what asks plain tables alone is a plain one."""
        if self._is_plain(tree):
            return self._plain(tree)
        if isinstance(tree, exp.SetOperation):
            return self._united(tree, ordered)
        if not isinstance(tree, exp.Select):
            return refuse(f"{tree.key.upper()} in SQL")
        _read(tree)
        inner = Lowering(dict(self._tables), self._dialect)
        common = tree.args.get("with_")
        if common is not None and common.args.get("recursive"):
            refuse("WITH RECURSIVE in SQL")
        for one in common.expressions if common is not None else ():
            inner._tables[one.alias] = inner.frame(one.this)
        return inner._selected(tree, ordered)

    def _is_plain(self, tree: Tree) -> bool:
        own = {cte.alias for cte in tree.find_all(exp.CTE)}
        names = [table.name for table in tree.find_all(exp.Table) if table.name not in own]
        return bool(names) and all(isinstance(self._tables.get(name), polars.DataFrame) for name in names)

    def _plain(self, tree: Tree) -> polars.DataFrame:
        """Return the answer of the engine to a part of the query that asks plain tables alone."""
        names = {table.name for table in tree.find_all(exp.Table)} & self._tables.keys()
        tables = {name: columns_of(name, self._tables[name]) for name in names}
        statement = Statement(tree.sql(dialect=self._dialect), tree, tuple(tree.named_selects), False)
        return polars.DataFrame(answer(statement, tables, self._dialect), schema=list(statement.columns))

    def _united(self, tree: Tree, ordered: bool) -> Frame:
        """Return the rows of two queries together, or those that are in both, or in the first alone."""
        _read(tree)
        sides = [self.frame(side) for side in (tree.this, tree.expression)]
        names = list(_columns(sides[0]))
        frames = [_standing(side) for side in sides]
        named = [frame.rename(dict(zip(frame.held, names, strict=True))) for frame in frames]
        if not tree.args.get("distinct"):
            found = stacked(named) if isinstance(tree, exp.Union) else refuse(f"{tree.key.upper()} ALL in SQL")
        else:
            found = _combined(named, names, SET_OPERATIONS[type(tree)])
        if not ordered and tree.args.get("limit") is None:
            return found
        found = self._sorted(tree, found, {name: col(name) for name in names}, {})
        return _limited(tree, found)

    def _selected(self, tree: Tree, ordered: bool) -> Frame:
        frame = self._from(tree)
        if tree.args.get("where") is not None:
            frame = frame.filter(self._condition(tree.args["where"].this, {}))
        frame, known = self._grouped(tree, frame)
        if tree.args.get("having") is not None:
            frame = frame.filter(self._condition(tree.args["having"].this, known))
        if tree.args.get("qualify") is not None:
            frame = frame.filter(self._condition(tree.args["qualify"].this, known))
        outputs = {one.alias_or_name: self._expression(one, known) for one in tree.selects}
        if not (ordered or tree.args.get("limit") is not None) or frame.kept is ONE:
            found = frame.select(**outputs)
            return found.unique() if tree.args.get("distinct") else found
        if tree.args.get("distinct"):
            _read(tree.args["distinct"])
            found = self._sorted(tree, frame.select(**outputs).unique(), {name: col(name) for name in outputs}, {})
        else:
            found = self._sorted(tree, frame, outputs, known)
        return _limited(tree, found)

    def _sorted(self, tree: Tree, frame: Frame, outputs: Known, known: Known) -> Frame:
        """Return the columns in the order asked for, which all of them complete."""
        names, keys, down, last = list(outputs), {}, [], []
        for place, one in enumerate(tree.args["order"].expressions):
            _read(one)
            by = one.this
            if isinstance(by, exp.Literal) and not by.is_string:
                key = outputs[names[int(by.this) - 1]]
            elif isinstance(by, exp.Column) and not by.table and by.name in outputs:
                key = outputs[by.name]
            else:
                key = self._expression(by, known)
            keys[f"#o{place}"] = key
            down.append(bool(one.args.get("desc")))
            last.append(not one.args.get("nulls_first"))
        wide, needed = frame.select(**outputs, **keys), [*keys]
        for place in range(1, len(needed)):  # keys that come after all rows are told apart do not matter
            if tell_apart([wide.held[name] for name in needed[:place]]):
                needed = needed[:place]
                break
        flags: Any = {"descending": down[: len(needed)], "nulls_last": last[: len(needed)]}
        return wide.sort(*needed, **flags).select(*names)

    def _from(self, tree: Tree) -> Frame:
        source = tree.args.get("from_")
        frame = self._table(source.this) if source is not None else None
        if not isinstance(frame, Frame):
            return refuse("a SELECT that does not start from a random table in SQL")
        for join in tree.args.get("joins") or ():
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
        on = join.args.get("on")
        if how not in ("inner", "left") or on is None:
            refuse(f"{how.upper()} JOIN in SQL")
        other = self._table(join.this)
        left, right = {}, {}
        for place, clause in enumerate(on.flatten() if isinstance(on, exp.And) else [on]):
            clause = clause.unnest()
            sides = [clause.this, clause.expression] if isinstance(clause, exp.EQ) else []
            if len(sides) != 2 or not all(isinstance(side, exp.Column) for side in sides):
                refuse("a JOIN by anything but equal columns in SQL")
            names = [f"{side.table}.{side.name}" for side in sides]
            mine, theirs = names if names[0] in frame.held else names[::-1]
            left[f"#l{place}"] = col(mine)
            right[f"#r{place}"] = col(theirs) if isinstance(other, Frame) else polars.col(theirs)
        made = frame.with_columns(**left).join(
            other.with_columns(**right), left_on=[*left], right_on=[*right], how=how, maintain_order="left"
        )
        return made.drop(*(name for name in made.held if name.startswith("#")))

    def _grouped(self, tree: Tree, frame: Frame) -> tuple[Frame, dict[str, Expression]]:
        """Return the groups with their aggregates, and expressions for what was computed, by its text."""
        clauses = [*tree.selects, *(tree.args[name] for name in ("having", "order", "qualify") if tree.args.get(name))]
        group = tree.args.get("group")
        summaries = {node.sql(): node for clause in clauses for node in _summaries(clause)}
        if group is None and not summaries:
            return frame, {}
        self._any = next(iter(frame.held))
        made = {f"#a{place}": self._summary(node) for place, node in enumerate(summaries.values())}
        known = {text: col(f"#a{place}") for place, text in enumerate(summaries)}
        if group is None:
            return frame.select(**made), known
        sets = _grouping_sets([_key(one, tree) for one in _read(group).expressions])
        keys = {key.sql(): key for one in sets for key in one}
        named = {text: f"#k{place}" for place, text in enumerate(keys)}
        known |= {text: col(name) for text, name in named.items()}
        values = {name: self._expression(keys[text], {}) for text, name in named.items()}
        found = [_by_keys(frame, {named[key.sql()] for key in one}, values, made) for one in sets]
        return found[0] if len(found) == 1 else stacked(found), known

    def _summary(self, node: Tree) -> Expression:
        """Return an aggregate of the rows of a group."""
        if isinstance(node, exp.Filter):
            condition = self._condition(node.expression.this, {})
            if isinstance(node.this, exp.Count) and isinstance(node.this.this, exp.Star):
                return condition.sum().cast(polars.Int64)
            return self._aggregate(node.this, lambda value: value.filter(condition))
        return self._aggregate(node, lambda value: value)

    def _aggregate(self, node: Tree, chosen: Callable[[Expression], Expression]) -> Expression:
        _read(node)
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
            return FUNCTIONS["len"]().cast(polars.Int64)
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct):
            (inner,) = _read(node.this).expressions
            return chosen(self._expression(inner, {})).drop_nulls().n_unique().cast(polars.Int64)
        value = self._expression(node.this, {})
        if node.this.find(exp.Column) is None:  # a value that stands in every row
            value = when(col(self._any).is_null()).then(value).otherwise(value)
        value = chosen(value)
        match node:
            case exp.Count():
                return value.count().cast(polars.Int64)
            case exp.Sum():  # of nothing, SQL has no sum
                return when(value.count() > 0).then(value.sum()).otherwise(None)
        name = SUMMARIES.get(type(node))
        found: Expression = refuse(f"{node.key.upper()} in SQL") if name is None else getattr(value, name)()
        return found

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
            return getattr(part(), METHODS[kind])()
        if kind in TEXTS:
            return getattr(part().str, TEXTS[kind])()
        if kind in DATES:
            return getattr(part().dt, DATES[kind])()
        return self._other(node, known, part)

    def _other(self, node: Tree, known: Known, part: Callable[..., Expression]) -> Expression:
        several = [self._expression(one, known) for one in node.expressions]
        match node:
            case exp.Column():
                return col(f"{node.table}.{node.name}" if node.table else node.name)
            case exp.Literal():
                return lit(node.this if node.is_string else _number(node.this))
            case exp.Boolean():
                return lit(node.this)
            case exp.Null():
                return lit(None)
            case exp.Neg():
                return -part()
            case exp.Not():
                return ~self._condition(node.this, known)
            case exp.Div():
                return part() / part("expression") if self._divides else refuse("division in SQLite")
            case exp.Between():
                value = part()
                return (value >= part("low")) & (value <= part("high"))
            case exp.In():
                return functools.reduce(operator.or_, [part() == one for one in several or self._listed(node)])
            case exp.Is() if isinstance(node.expression, exp.Null):
                return part().is_null()
            case exp.Like() if isinstance(node.expression, exp.Literal) and self._dialect != "sqlite":
                pattern = _glob(node.expression.this)
                return part().derived(of_values(lambda text: fnmatch.fnmatchcase(text, pattern)), "like", [], {})
            case exp.Coalesce():
                return functools.reduce(_or_else, [part(), *several])
            case exp.Nullif():
                return when(~(part() == part("expression")).fill_null(False)).then(part()).otherwise(None)
            case exp.Case():
                return self._case(node, known)
            case exp.Cast() if node.to.sql() in TYPES:
                return part().cast(TYPES[node.to.sql()])
            case exp.Round():
                return _rounded(part(), _whole(node.args["decimals"]) if node.args.get("decimals") else 0)
            case exp.Greatest():
                return FUNCTIONS["max_horizontal"](part(), *several)
            case exp.Least():
                return FUNCTIONS["min_horizontal"](part(), *several)
            case exp.Substring() if node.args.get("length") is not None:
                return part().str.slice(_whole(node.args["start"]) - 1, _whole(node.args["length"]))
            case exp.Window() if node.args.get("partition_by"):
                return self._aggregate(node.this, lambda value: value).over(
                    *(self._expression(one, known) for one in node.args["partition_by"])
                )
            case exp.Subquery():
                return _single(self.frame(node.this))
        return refuse(f"{node.key.upper()} in SQL")

    def _listed(self, node: Tree) -> list[Expression]:
        """Return the values that a subquery of plain tables gives."""
        inner = node.args["query"]
        found = self.frame(inner.this if isinstance(inner, exp.Subquery) else inner)
        if not isinstance(found, polars.DataFrame) or found.is_empty():
            return refuse("IN with a subquery of random tables in SQL")
        return [lit(value) for value in found.to_series().to_list()]

    def _case(self, node: Tree, known: Known) -> Expression:
        chain: Any = None
        for one in node.args["ifs"]:
            _read(one)
            if node.this is None:
                condition = self._condition(one.this, known)
            else:
                condition = self._expression(node.this, known) == self._expression(one.this, known)
            chain = (when(condition) if chain is None else chain.when(condition)).then(
                self._expression(one.args["true"], known)
            )
        default = node.args.get("default")
        return chain.otherwise(None if default is None else self._expression(default, known))


def _limited(tree: Tree, frame: Frame) -> Frame:
    """Return the first rows, as many as a query asks for."""
    limit = tree.args.get("limit")
    return frame if limit is None else frame.head(_whole(_read(limit).expression))


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


def _summaries(clause: Tree) -> Sequence[Tree]:
    """Return the aggregates in a clause, those of windows and of subqueries left out."""
    found: list[Tree] = []
    pending = [clause]
    while pending:
        node = pending.pop()
        if isinstance(node, exp.Filter | exp.AggFunc):
            found.append(node)
        elif isinstance(node, exp.Window):
            pending.extend(node.args.get("partition_by") or ())
        elif not isinstance(node, exp.Subquery):
            pending.extend(node.iter_expressions())
    return found


def _standing(frame: Any) -> Frame:
    """Return what stands for a frame, which may be a plain one."""
    if isinstance(frame, Frame):
        return frame
    data = {name: [cell_of(value) for value in frame[name].to_list()] for name in frame.columns}
    return Frame.of_cells(data, Rows.all_of(Axis((None,) * frame.height)))


def stacked(frames: Sequence[Frame]) -> Frame:
    """Return the rows of several frames with the same columns, in any order."""
    plates = tuple(plate for frame in frames for plate in frame.kept.axis.plates)
    there = tuple(mask for frame in frames for mask in frame.kept.there)
    rows = Rows(Axis(plates), there)
    data = {name: [cell for frame in frames for cell in frame.held[name].cells] for name in frames[0].held}
    return Frame.of_cells(data, rows)


def _combined(frames: Sequence[Frame], names: Sequence[str], kept: Callable[[Any, Any], Any]) -> Frame:
    """Return distinct rows, by whether they are in the first and in the second of two frames."""
    marked = [frame.with_columns(**{"#t": lit(place)}) for place, frame in enumerate(frames)]
    within = {f"#{place}": (col("#t") == place).sum() for place in range(len(frames))}
    found: Frame = stacked(marked).group_by(*names).agg(**within)
    return found.filter(kept(*(col(name) > 0 for name in within))).select(*names)


def _single(frame: Any) -> Expression:
    """Return the only value of a subquery."""
    if isinstance(frame, polars.DataFrame):
        return lit(frame.item()) if frame.shape == (1, 1) else refuse("a subquery of several rows in SQL")
    if frame.kept is not ONE or len(frame.held) != 1:
        refuse("a subquery of several rows in SQL")
    (column,) = frame.held.values()
    return Expr(lambda scope: [replace(column, single=True)], lambda: refuse("a subquery"))


def _truth(column: Column) -> Column:
    return column if is_truths(column) or column.is_text else ARITHMETIC["__ne__"](column, 0)


def _or_else(value: Expression, other: Expression) -> Expression:
    return when(value.is_not_null()).then(value).otherwise(other)


def _rounded(value: Expression, decimals: int) -> Expression:
    """Round halves away from zero, by the arithmetic of the engine."""
    scale = 10.0**decimals
    away = (value.abs() * scale + 0.5).floor() / scale
    return when(value < 0).then(-away).otherwise(away)


def _number(text: str) -> int | float:
    return int(text) if text.isdigit() else float(text)


def _whole(node: Tree) -> int:
    if not isinstance(node, exp.Literal) or not node.this.isdigit():
        return refuse("a number that is not written out in SQL")
    return int(node.this)


def _glob(pattern: str) -> str:
    """Return a pattern of LIKE as one of file names."""
    quoted = pattern.replace("[", "[[]").replace("*", "[*]").replace("?", "[?]")
    return quoted.replace("%", "*").replace("_", "?")
