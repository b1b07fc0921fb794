"""Programs that anonymise tables, and checks of what they achieve.

They take any table with named columns and give back one of the same kind: a pandas or polars frame for a frame, a list
of dicts for a list of dicts, and so on. What they were given stays as it is.
"""

from privug.mechanisms.anonymisers.coarsening import (
    MASK,
    Hierarchy,
    bands,
    cuts,
    drop,
    everything,
    generalise,
    keep,
    labels,
    month,
    prefix,
    suppress,
    swap,
    synthesise,
    year,
)
from privug.mechanisms.anonymisers.k_anonymity import (
    anonymity,
    closeness,
    diversity,
    is_k_anonymous,
    is_l_diverse,
    is_t_close,
    k_ano,
    microaggregate,
    mondrian,
)

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
