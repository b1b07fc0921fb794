"""Questions about people in tables: which columns single them out, and what the rows that match them give away."""

from privug.reidentification.linking import Link, LinkedTable, Risks, link, three_risks
from privug.reidentification.questions import (
    UniqueRow,
    UniqueRows,
    matching_rows,
    positive_disclosure,
    secret_posterior,
    sharing_rows,
    unique_rows,
    uniqueness,
)
from privug.reidentification.search import QuasiIdentifier, QuasiIdentifiers, quasi_identifiers

__all__ = [
    "Link",
    "LinkedTable",
    "QuasiIdentifier",
    "QuasiIdentifiers",
    "Risks",
    "UniqueRow",
    "UniqueRows",
    "link",
    "matching_rows",
    "positive_disclosure",
    "quasi_identifiers",
    "secret_posterior",
    "sharing_rows",
    "three_risks",
    "unique_rows",
    "uniqueness",
]


def __dir__() -> list[str]:
    return __all__
