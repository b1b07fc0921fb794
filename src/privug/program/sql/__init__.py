"""SQL queries as programs: parsed by sqlglot, answered by DuckDB or SQLite, traced on the stand-ins of polars."""
