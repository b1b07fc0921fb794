"""Checks as SARIF 2.1.0, which code hosts show as alerts at the lines of programs (OASIS standard, 2020)."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from privug import __version__
from privug.escaping import inert
from privug.policy.checks import Outcome
from privug.policy.places import as_uri
from privug.policy.verdict import Status, Verdict
from privug.report.plain import as_json

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {Status.VIOLATED: "error", Status.UNDECIDED: "warning"}


def as_sarif(outcomes: Sequence[Outcome], source: Path | None, secrets: bool) -> str:
    """Return a log of one run: a rule for each policy, a result for each check that does not hold.

    Checks that hold are no results, because code hosts show each result as an alert.
    """
    rules = {_rule_id(outcome): _rule(outcome) for outcome in outcomes}
    places = list(rules)
    alerts = [
        _result(outcome, places.index(_rule_id(outcome)), source, secrets)
        for outcome in outcomes
        if outcome.verdict.status in LEVELS
    ]
    driver = {"name": "Privug", "semanticVersion": __version__, "rules": list(rules.values())}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True}],
        "results": alerts,
        "properties": {"checks": len(outcomes), "holds": len(outcomes) - len(alerts)},
    }
    return as_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, 2)


def _rule_id(outcome: Outcome) -> str:
    return inert(outcome.check.policy_name or outcome.name)


def _rule(outcome: Outcome) -> dict[str, Any]:
    claim = inert(str(outcome.check.policy))
    return {
        "id": _rule_id(outcome),
        "shortDescription": {"text": claim},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["privacy"]},
    }


def _result(outcome: Outcome, rule: int, source: Path | None, secrets: bool) -> dict[str, Any]:
    verdict, name = outcome.verdict, inert(outcome.name)
    told = "\n".join(verdict.lines(secrets=secrets))
    result: dict[str, Any] = {
        "ruleId": _rule_id(outcome),
        "ruleIndex": rule,
        "level": LEVELS[verdict.status],
        "message": {"text": f"{name}: {told}"},
        # Alerts are the same ones from run to run as long as the check has its name.
        "partialFingerprints": {"privugCheck/v1": hashlib.sha256(name.encode()).hexdigest()},
        "properties": _numbers(verdict) | {"check": name},
    }
    place = outcome.check.place or (None if source is None else (source, 1))
    if place is not None:
        file = {"uri": as_uri(place[0])}
        result["locations"] = [{"physicalLocation": {"artifactLocation": file, "region": {"startLine": place[1]}}}]
    return result


def _numbers(verdict: Verdict) -> dict[str, Any]:
    """Return what can be counted with: the number that decided, its interval, and how it was found."""
    plain = verdict.to_dict()
    kept = {key: plain[key] for key in ("status", "scope", "engine") if plain[key]}
    return kept | {key: plain["worst"][key] for key in ("value", "low", "high", "exact") if "worst" in plain}
