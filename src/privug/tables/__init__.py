"""Published tables, as published: totals, suppressed and rounded cells, and what they give away together."""

from privug.tables.disclosure_audit import AuditedCell, FurtherSuppression, Problem, TableAudit, audit
from privug.tables.published_table import Dimension, PublishedCell, Table
from privug.tables.table_files import read

__all__ = [
    "AuditedCell",
    "Dimension",
    "FurtherSuppression",
    "Problem",
    "PublishedCell",
    "Table",
    "TableAudit",
    "audit",
    "read",
]


def __dir__() -> list[str]:
    return __all__
