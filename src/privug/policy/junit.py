"""Checks as JUnit XML, which CI systems show as test results: violated is a failure, undecided an error."""

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from privug.escaping import inert
from privug.policy.checks import Outcome
from privug.policy.places import relative
from privug.policy.verdict import Status

# Undecided is no `skipped`: the command fails then, and a red job without a red test is a riddle.
TAGS = {Status.VIOLATED: "failure", Status.UNDECIDED: "error"}


def as_junit(outcomes: Sequence[Outcome], source: Path | None, secrets: bool) -> str:
    """Return one test suite with a test case for each check."""
    counts = {tag: sum(one.verdict.status is status for one in outcomes) for status, tag in TAGS.items()}
    took = sum(outcome.took for outcome in outcomes)
    totals = {"tests": str(len(outcomes)), "failures": str(counts["failure"]), "errors": str(counts["error"])}
    totals |= {"skipped": "0", "time": f"{took:.3f}"}
    root = ElementTree.Element("testsuites", {"name": "privug"} | totals)
    suite = ElementTree.SubElement(
        root, "testsuite", {"name": "privug" if source is None else relative(source)} | totals
    )
    for outcome in outcomes:
        _add_case(suite, outcome, source, secrets)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _add_case(suite: ElementTree.Element, outcome: Outcome, source: Path | None, secrets: bool) -> None:
    verdict, place = outcome.verdict, outcome.check.place
    names = {"classname": "privug" if source is None else inert(source.stem), "name": inert(outcome.name)}
    where = {} if place is None else {"file": relative(place[0]), "line": str(place[1])}
    case = ElementTree.SubElement(suite, "testcase", names | where | {"time": f"{outcome.took:.3f}"})
    lines = "\n".join(verdict.lines(secrets=secrets))
    if verdict.status in TAGS:
        told = {"type": str(verdict.status), "message": verdict.sentence(secrets=secrets)}
        ElementTree.SubElement(case, TAGS[verdict.status], told).text = lines
    else:
        ElementTree.SubElement(case, "system-out").text = lines
