"""What pandas, polars and the dialects of SQL differ in: one record each, so that no code asks for a name."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """Answers to the questions on which libraries and engines do not agree."""

    name: str
    """As sqlglot has it, and messages."""
    missing_compares: bool = False
    """Whether a comparison with something missing is false (and `!=` true) instead of unknown."""
    mixed_types_compare: bool = False
    """Whether values of different types are compared: a text is never equal to a number."""
    null_is_key: bool = True
    """Whether rows whose key is missing form a group, instead of being left out."""
    nan_is_missing: bool = False
    """Whether zero divided by zero is missing, instead of a number that is none."""
    nulls_last: bool = False
    """Whether missing values come last in an order, if it is not said where."""
    engine: str = "duckdb"
    """Of SQL: the dialect of the engine that answers its queries."""
    has_booleans: bool = True
    """Whether truth values are a type of their own, instead of the numbers 0 and 1."""
    has_types: bool = True
    """Whether the cells of a plain table are of the type of their column, and dates are no texts."""
    has_batches: bool = True
    """Whether one statement can answer many samples, by LATERAL."""
    orders_aggregates: bool = True
    """Whether an aggregate can say in which order it takes its values."""
    takes_bare_columns: bool = False
    """Whether a column that is neither a key nor in a summary is taken from any row."""
    divides_floats: bool = True
    """Whether a quotient of integers keeps its fraction."""
    like_tells_case: bool = True
    """Whether LIKE tells capital letters from small ones."""
    fixed_digits: bool = False
    """Whether quotients and averages of integers keep a fixed number of digits."""
    rounds_by_type: bool = False
    """Whether the type of a number says where a half is rounded to."""

    @property
    def is_transpiled(self) -> bool:
        """Whether queries are asked in the engine of another dialect."""
        return self.engine != self.name


PANDAS = Dialect(
    "pandas", missing_compares=True, mixed_types_compare=True, null_is_key=False, nan_is_missing=True, nulls_last=True
)
POLARS = Dialect("polars")
OF_SQL = {
    one.name: one
    for one in (
        Dialect("duckdb"),
        Dialect(
            "sqlite", engine="sqlite", has_booleans=False, has_types=False, has_batches=False, orders_aggregates=False,
            takes_bare_columns=True, divides_floats=False, like_tells_case=False,
        ),
        Dialect("postgres", divides_floats=False, rounds_by_type=True),
        Dialect("bigquery"),
        Dialect("snowflake", fixed_digits=True),
    )
}  # fmt: skip
"""The dialects of queries, by their names."""
