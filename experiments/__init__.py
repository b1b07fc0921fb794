"""The paper's tables and figures, one module each, reproduced by `privug reproduce`.

An experiment is a module with a title (the first line of its docstring), `PAPER` (which table or figure it is) and
`run() -> Findings`. The folder is imported as `privug.experiments`, so modules import each other relatively. What is
not named in `ORDER`, or has no `PAPER`, is shared by experiments.
"""

# Experiments in the order in which they are run and shown: each is a module whose name begins with one of these.
ORDER = (
    "linking",
    "four_ages",
    "table_1",
    "alice_age",
    "differential_privacy",
    "quasi_identifiers",
    "table_2",
    "sensitive_attribute",
    "k_anonymity",
    "long_runs",
    "convergence",
    "leakwatch",
    "scalability",
    "table_3",
    "appendix",
)
