"""Alice's diagnosis, found by joining two tables."""

import privug as pv

from .findings import Findings, Line

PAPER = "Fig. 1"
COLUMNS = ["zip", "birthday", "sex"]
RECORDS = [
    {"name": "Alice", "zip": 2300, "birthday": "15.06.1954", "sex": "F", "diagnosis": "ill"},
    {"name": "Bob", "zip": 2305, "birthday": "15.06.1954", "sex": "M", "diagnosis": "healthy"},
    {"name": "Carol", "zip": 2300, "birthday": "09.10.1925", "sex": "F", "diagnosis": "healthy"},
    {"name": "Dave", "zip": 2310, "birthday": "01.01.2000", "sex": "M", "diagnosis": "ill"},
]
PUBLIC = [
    {"name": "Mark", "zip": 2450, "birthday": "30.09.1977", "sex": "M"},
    {"name": "Rose", "zip": 2870, "birthday": "24.12.1985", "sex": "F"},
    {"name": "Alice", "zip": 2300, "birthday": "15.06.1954", "sex": "F"},
    {"name": "Dave", "zip": 2310, "birthday": "01.01.2000", "sex": "M"},
]


def anonymised(records):
    return [{column: row[column] for column in (*COLUMNS, "diagnosis")} for row in records]


def matching(person, columns) -> list[str]:
    """Return the diagnoses of the released rows that have a person's values."""
    return [row["diagnosis"] for row in RECORDS if all(row[column] == person[column] for column in columns)]


def run() -> Findings:
    lines = []
    for columns in (["zip"], ["zip", "sex"], COLUMNS):
        linked = pv.reidentification.link(anonymised(RECORDS), PUBLIC, columns, "diagnosis")
        for person in PUBLIC:
            found, truth = linked[person["name"]], matching(person, columns)
            who = f"{person['name']}, by {', '.join(columns)}"
            lines.append(Line(f"{who}: matching rows", float(found.matching), float(len(truth))))
            if found.secret is not None:
                told = "ill" if person["name"] == "Alice" and columns == COLUMNS else ""
                belief = found.secret.probability(lambda diagnosis: diagnosis == "ill")
                lines.append(Line(f"{who}: P(ill)", belief, truth.count("ill") / len(truth), told))
    caption = "How likely each person's row is found, by zip, birthday and sex"
    return Findings(
        lines,
        {caption: linked.plot},
        ["Alice is found as the paper says, and Dave with her: his row is in both tables, too."],
    )
