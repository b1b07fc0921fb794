"""The page docs/reference/supported-tables.md. `python tests/corpus/support_tables.py` writes it anew.

What is traced is what the code has an entry for: the tables of functions of SQL, and the methods of the stand-ins.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

import pandas as pd
import polars as pl

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
    yield "| construct | query |\n|---|---|"
    yield from (f"| {name} | `{' '.join(query.split())}` |" for name, query in CALLED.items())
    yield ""


def _functions() -> set[str]:
    kinds = {*lowering.METHODS, *lowering.SUMMARIES, *lowering.ORDERED}
    named = {kind.sql_names()[0] for kind in kinds}
    return named | {"COUNT", "COUNT_IF", "SUM", "COALESCE", "NULLIF", "ROUND", "GREATEST", "LEAST", "SUBSTRING"}


def methods(title: str, standing: Iterable[str], library: Any) -> Iterable[str]:
    """Return which public names of a library are traced, and which are not."""
    public = {name for name in dir(library) if not name.startswith("_")}
    traced = sorted(public & set(standing))
    yield f"### {title}\n"
    yield f"Traced: {', '.join(f'`{name}`' for name in traced)}.\n"
    others = ", ".join(f"`{name}`" for name in sorted(public - set(traced)))
    yield f"<details><summary>Not traced: {len(public) - len(traced)} names</summary>{others}</details>\n"


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
