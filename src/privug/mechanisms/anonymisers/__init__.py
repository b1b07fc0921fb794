"""Programs that anonymise tables, and checks of what they achieve.

They take any table with named columns and give back one of the same kind: a pandas or polars frame for a frame, a list
of dicts for a list of dicts, and so on. What they were given stays as it is.
"""

from privug.mechanisms.anonymisers.columns import drop, generalise, keep, suppress
from privug.mechanisms.anonymisers.diversity import closeness, diversity, is_l_diverse, is_t_close
from privug.mechanisms.anonymisers.hierarchies import (
    MASK,
    Hierarchy,
    bands,
    cuts,
    everything,
    labels,
    month,
    prefix,
    year,
)
from privug.mechanisms.anonymisers.k_anonymity import anonymity, is_k_anonymous, k_ano
from privug.mechanisms.anonymisers.microaggregation import microaggregate
from privug.mechanisms.anonymisers.mondrian import mondrian
from privug.mechanisms.anonymisers.swapping import swap
from privug.mechanisms.anonymisers.synthetic import synthesise

__all__ = [
    "MASK",
    "Hierarchy",
    "anonymity",
    "bands",
    "closeness",
    "cuts",
    "diversity",
    "drop",
    "everything",
    "generalise",
    "is_k_anonymous",
    "is_l_diverse",
    "is_t_close",
    "k_ano",
    "keep",
    "labels",
    "microaggregate",
    "mondrian",
    "month",
    "prefix",
    "suppress",
    "swap",
    "synthesise",
    "year",
]


def __dir__() -> list[str]:
    return __all__
