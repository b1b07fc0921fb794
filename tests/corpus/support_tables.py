"""The page docs/reference/supported-tables.md. `python tests/corpus/support_tables.py` writes it anew.

What is traced is what the code has an entry for: the tables of functions of SQL, and the methods of the stand-ins.
"""

import sys
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

import pandas as pd
import polars as pl

import privug as pv
from corpus.queries import CALLED, TRACED
from privug.program.sql import lowering
from privug.program.traced.frames.pandas import frame as pandas_frame
from privug.program.traced.frames.pandas import functions as pandas_functions
from privug.program.traced.frames.pandas import group as pandas_group
from privug.program.traced.frames.pandas.functions import DATES, TEXTS, VERDICTS, Dates, Texts
from privug.program.traced.frames.pandas.series import Series
from privug.program.traced.frames.polars import column, expressions
from privug.program.traced.frames.polars import frame as polars_frame

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "supported-tables.md"
START = """# Supported SQL, pandas and polars

What is listed as traced is computed on random variables, and compared with the library or the engine before it is used.
Everything else works as well: it is called, many samples at once in SQL and sample by sample in pandas and polars, and
`attack.lifting` names what was not traced; arguments that are not known are named there, too.

"""


def sql() -> Iterable[str]:
    """Return the constructs of SQL, with a query each, and the functions."""
    yield "## SQL\n"
    yield "| construct | query |\n|---|---|"
    yield from (f"| {name} | `{' '.join(query.split())}` |".replace("|| ", "\\|\\| ") for name, query in TRACED.items())
    yield "\nFunctions: " + ", ".join(f"`{name}`" for name in sorted(_functions())) + ".\n"
    yield "Not traced, and answered by DuckDB:\n"
    yield "| construct | query | not traced |\n|---|---|---|"
    yield from (f"| {name} | `{' '.join(query.split())}` | {_obstacle(query)} |" for name, query in CALLED.items())
    yield ""


def _obstacle(query: str) -> str:
    """Return why a query is not traced."""
    row = pv.Row(zip=pv.Choice(["A", "B"]), age=pv.Choice([20, 40]), pay=pv.Choice([10, 30]))
    attack = pv.Attack(pv.sql(query), {"people": pv.Records(2, row)}, lambda people: people[0].age)
    return str(attack.lifting.reason)


def _functions() -> set[str]:
    kinds = {*lowering.METHODS, *lowering.SUMMARIES, *lowering.ORDERED}
    named = {kind.sql_names()[0] for kind in kinds}
    others = "COUNT COUNT_IF SUM COALESCE NULLIF ROUND GREATEST LEAST SUBSTRING STARTS_WITH QUANTILE_CONT"
    return named | set(others.split())


REASONS = {
    "reads or writes files and other libraries": "to_* write_* from_* serialize deserialize info show glimpse inspect",
    "draws a picture or a page": "plot hist boxplot style",
    "draws at random, or only nearly": "sample shuffle approx_*",
    "says how data are stored": (
        "attrs flags set_flags memory_usage nbytes estimated_size dtype dtypes schema collect_schema infer_objects "
        "convert_dtypes axes ndim sparse is_sorted set_sorted flags n_chunks chunk_lengths get_chunks rechunk shrink_* "
        "reinterpret ext meta match_to_schema select_dtypes new_from_index as_unit unit cast_time_unit freq hasnans "
        "extend_constant index_of clear cast qyear"
    ),
    "changes a table where it stands": (
        "insert pop update isetitem append extend drop_in_place insert_column replace_column scatter set"
    ),
    "gives or takes lists, structures and bytes": (
        "list struct arr bin cat explode implode unnest reshape rle rle_id repeat repeat_by hstack vstack dot "
        "partition_by iter_slices split* rsplit partition rpartition extract* findall find_many replace_many join "
        "get_dummies to_dummies encode decode json_* wrap concat_list groups indices rows_by_key hash components "
        "hash_rows isocalendar timetz sql fold ohlc factorize divmod rdivmod unique_counts"
    ),
    "asks for a pattern": "fullmatch match contains_any count_matches escape_regex find",
    "is computed of neighbouring rows, whose number is random after a filter": (
        "rolling* ewm* expanding resample asfreq asof join_asof group_by_dynamic upsample interpolate* bfill ffill "
        "backward_fill forward_fill pct_change autocorr cum* diff shift peak_* cumulative_eval shift first_valid_index "
        "last_valid_index truncate at_time between_time iter_columns is_first_distinct is_last_distinct arg_* argsort "
        "searchsorted search_sorted merge_sorted take gather* get reverse tail head limit slice nth item extend "
        "is_monotonic_* compare rank bin_* qcut"
    ),
    "goes by time zones, clocks or calendars": (
        "tz* time *_time_zone dst_offset base_utc_offset *business_day* to_period end_time start_time microsecond* "
        "millisecond* nanosecond* second* minute* hour* day* days* date epoch timestamp total_* offset_by strptime "
        "is_leap_year is_month_* is_quarter_* is_year_* month_* week* century millennium combine round floor ceil "
        "level normalize add_business_days"
    ),
    "is an attribute or a helper without an entry": "name size str dt index map lower_bound upper_bound is_empty keys",
    "gives a table or a column of another form": (
        "melt pivot transpose T unpivot unstack stack swaplevel reorder_levels droplevel xs set_axis rename_axis align "
        "reindex_like add_prefix add_suffix squeeze combine_first keys items map_* join_where remove drop "
        "drop_duplicates select select_seq select with_columns_seq value_counts filter describe pipe having "
        "all get_column_index pipe_with_dtype"
    ),
}
"""Why a method is not traced, by patterns of names; the first that fits is given. A name that none fits is one of a
function of cells that nobody has asked for yet."""
OTHERS = "is a function of cells or groups that has no entry yet"


def reason(name: str) -> str:
    """Return why a method is not traced."""
    fitting = (why for why, names in REASONS.items() if any(fnmatchcase(name, one) for one in names.split()))
    return next(fitting, OTHERS)


def methods(title: str, standing: Iterable[str], library: Any) -> Iterable[str]:
    """Return which public names of a library are traced, and which are not and why."""
    public = {name for name in dir(library) if not name.startswith("_")}
    traced = sorted(public & set(standing))
    yield f"### {title}\n"
    yield f"Traced: {', '.join(f'`{name}`' for name in traced)}.\n"
    yield f"<details><summary>Not traced: {len(public) - len(traced)} names</summary>\n"
    others = {why: [name for name in sorted(public - set(traced)) if reason(name) == why] for why in (*REASONS, OTHERS)}
    yield from (f"- {why}: {', '.join(f'`{name}`' for name in names)}" for why, names in others.items() if names)
    yield "</details>\n"


def page() -> str:
    """Return the whole page."""
    example, table = pd.Series(["a"]), pd.DataFrame({"a": [1]})
    parts = [
        *sql(),
        "## pandas\n",
        *methods("DataFrame", dir(pandas_frame.Frame), pd.DataFrame),
        *methods("Series", dir(Series), pd.Series),
        *methods("groupby", dir(pandas_group.GroupBy), type(table.groupby("a"))),
        *methods("Series.str", {*dir(Texts), *TEXTS, *VERDICTS}, type(example.str)),
        *methods("Series.dt", {*dir(Dates), *DATES}, pd.Series.dt),
        f"Functions of pandas: {', '.join(f'`pd.{name}`' for name in sorted(pandas_functions.FUNCTIONS))}.\n",
        "## polars\n",
        *methods("DataFrame", dir(polars_frame.Frame), pl.DataFrame),
        *methods("Expr", dir(expressions.Expr), pl.Expr),
        *methods("Series", dir(polars_frame.Series), pl.Series),
        *methods("group_by", dir(polars_frame.GroupBy), type(pl.DataFrame({"a": [1]}).group_by("a"))),
        *methods("Expr.str", column.ACCESSORS["str"], type(pl.col("a").str)),
        *methods("Expr.dt", column.ACCESSORS["dt"], type(pl.col("a").dt)),
        f"Functions of polars: {', '.join(f'`pl.{name}`' for name in sorted(expressions.FUNCTIONS))}.",
    ]
    return START + "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
