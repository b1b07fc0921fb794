"""Published tables, as published: totals, suppressed and rounded cells, and what they give away together."""

from privug.tables.auditing import AuditedCell, FurtherSuppression, Problem, TableAudit, audit
from privug.tables.reading import read
from privug.tables.table import Dimension, PublishedCell, Table

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
