"""Reports of several checks as text, JSON, JUnit XML or SARIF, and assertions in tests."""

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote
from xml.etree import ElementTree

from privug import __version__
from privug.arguments import check_kind, shown
from privug.attack import Attack
from privug.errors import ArgumentError, PrivugError
from privug.escaping import inert
from privug.output import as_json
from privug.pictures import plots
from privug.policy.declared_checks import Check, Outcome
from privug.policy.policies import Policy
from privug.policy.verdict import Status, Verdict, all_of
from privug.progress import ProgressMeter
from privug.report.files import written


def relative(path: Path) -> str:
    """Return a path relative to the working directory, with forward slashes; the whole path if it lies elsewhere."""
    whole, here = path.resolve(), Path.cwd().resolve()
    return inert((whole.relative_to(here) if whole.is_relative_to(here) else whole).as_posix())


def as_uri(path: Path) -> str:
    """Return the relative URI of a file below the working directory, or else its whole `file:` URI.

    >>> as_uri(Path("a folder/survey.py"))
    'a%20folder/survey.py'
    """
    whole, here = path.resolve(), Path.cwd().resolve()
    return quote(whole.relative_to(here).as_posix()) if whole.is_relative_to(here) else whole.as_uri()


listeners: list[Callable[[Outcome], None]] = []
"""Who is told of every assertion, whether it holds or not: reports of test runs."""


def assert_private(
    attack: Attack,
    policy: Policy,
    *,
    observe: Any = None,
    engine: str | None = None,
    samples: int | None = None,
    seed: int = 0,
    seconds: float | None = None,
    except_probability: float = 0.0,
    name: str = "",
    allow_undecided: bool = False,
    secrets: bool = True,
) -> Verdict:
    """Raise an AssertionError unless a policy holds; its message is the verdict with the worst outputs.

    What is undecided fails, too, unless `allow_undecided`. `secrets=False` leaves the outputs out of the message. The
    other options are those of `pv.policy.check`.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda x: x > 1, {"x": pv.DiscreteUniform(0, 3)}, "x")
    >>> assert_private(attack, pv.policy.max_belief(at_most=0.5)).holds
    True
    """
    __tracebackhide__ = True  # pytest shows the line of the test, which is what failed
    check = Check(attack, policy, observe, name, except_probability, engine, samples, seconds)
    outcome = Outcome(check, check.run(seed=seed))
    for listener in listeners:
        listener(outcome)
    verdict = outcome.verdict
    if not verdict.holds and not (verdict.undecided and allow_undecided):
        raise AssertionError("\n".join([f"{outcome.name}: {verdict.status}", *verdict.lines(secrets=secrets)]))
    return verdict


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


Writer = Callable[[Sequence[Outcome], Path | None, bool], str]


def _as_text(outcomes: Sequence[Outcome], source: Path | None, secrets: bool) -> str:
    """Return a line for each check, its status first, and one that counts them."""
    lines = []
    for outcome in outcomes:
        first, *more = outcome.verdict.lines(secrets=secrets)
        status = str(outcome.verdict.status)
        lines.append(f"{status}: {inert(outcome.name)}: {first.removeprefix(f'{status}: ')}")
        lines += more if secrets else []
    counts = [(sum(one.verdict.status is status for one in outcomes), status) for status in Status]
    told = ", ".join(f"{count} {status}" for count, status in counts if count)
    lines.append(f"{len(outcomes)} check{'s' if len(outcomes) != 1 else ''}: {told}")
    return "\n".join(lines)


def _as_json(outcomes: Sequence[Outcome], source: Path | None, secrets: bool) -> str:
    """Return what `Verdict.to_dict` has of each check, with its name and where its program is."""
    status = all_of([outcome.verdict.status for outcome in outcomes])
    plain: dict[str, Any] = {"file": None if source is None else relative(source), "status": str(status)}
    plain["checks"] = [_plain(outcome, secrets) for outcome in outcomes]
    return as_json(plain, 2)


def _plain(outcome: Outcome, secrets: bool) -> dict[str, Any]:
    check = outcome.check
    names = {"name": outcome.name, "attack": check.attack_name or check.attack.name, "policy": check.policy_name}
    place = check.place
    program = None if place is None else {"file": relative(place[0]), "line": place[1]}
    return names | {"program": program} | outcome.verdict.to_dict(secrets=secrets)


@dataclass(frozen=True)
class Report:
    """What came out of several checks; `save` writes it as text, JSON, JUnit XML or SARIF.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda a, b: a + b, {"a": pv.Bernoulli(0.5), "b": pv.Bernoulli(0.5)}, secret="a")
    >>> report = pv.policy.check_all([pv.policy.Check(attack, pv.policy.max_belief(at_most=0.8))])
    >>> report.status.value, report.exit_code
    ('violated', 1)
    """

    outcomes: tuple[Outcome, ...]
    source: Path | None = None

    writers: ClassVar[Mapping[str, Writer]] = {
        ".txt": _as_text,
        ".json": _as_json,
        ".xml": as_junit,
        ".sarif": as_sarif,
    }
    """How a report is written, by what the name of a file ends in."""

    @property
    def status(self) -> Status:
        """Whether all policies hold, one is violated, or neither can be told."""
        return all_of([outcome.verdict.status for outcome in self.outcomes])

    @property
    def exit_code(self) -> int:
        """0 if all policies hold, 1 if one is violated, 3 if none is but not all can be decided."""
        return {Status.HOLDS: 0, Status.VIOLATED: 1, Status.UNDECIDED: 3}[self.status]

    def count(self, status: Status) -> int:
        """Return how many checks came out so."""
        return sum(outcome.verdict.status is status for outcome in self.outcomes)

    def save(self, path: str | Path, *, secrets: bool = False) -> Path:
        """Write the report in the format that the file's name ends in: .txt, .json, .xml or .sarif."""
        ending = Path(path).suffix.lower() if isinstance(path, str | Path) else ""
        return written(path, dict.fromkeys(self.writers, lambda report: report.to(ending, secrets)), self)

    def to(self, ending: str, secrets: bool = False) -> str:
        """Return the report in the format of files that end so; outputs are shown only if `secrets` are asked for."""
        if ending not in self.writers:
            raise ArgumentError(f"a report of checks ends in one of {', '.join(self.writers)}, not {shown(ending)}")
        return self.writers[ending](self.outcomes, self.source, secrets).rstrip("\n")

    def plot(self, ax: Any = None) -> Any:
        """Draw the worst number of each check against its limit; `ax` is matplotlib axes or a path to write to."""
        found = [(outcome.name, outcome.verdict.worst, outcome.verdict.bound) for outcome in self.outcomes]
        return plots().bars([row for row in found if row[1] is not None], ax)

    def __str__(self) -> str:
        return self.to(".txt")


def check_all(
    checks: Iterable[Check],
    *,
    engine: str | None = None,
    samples: int | None = None,
    seed: int = 0,
    seconds: float | None = None,
    source: str | Path | None = None,
) -> Report:
    """Run several checks; an error names the check that it comes from, and ends them all.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda x: x > 1, {"x": pv.DiscreteUniform(0, 3)}, "x")
    >>> print(check_all([Check(attack, pv.policy.max_belief(0.5), name="large")]))
    holds: large: the belief in the likeliest value of the secret must be at most 0.5, after every output; at worst 0.5 (exact)
    1 check: 1 holds
    """  # noqa: E501
    wanted = list(checks)
    for one in wanted:
        check_kind("check_all", "checks", one, (Check,))
    outcomes: list[Outcome] = []
    with ProgressMeter("policies", len(wanted)) as meter:
        for one in wanted:
            started = time.monotonic()
            try:
                verdict = one.run(engine=engine, samples=samples, seed=seed, seconds=seconds)
            except PrivugError as error:
                error.add_note(one.name or one.attack.name)
                raise
            outcomes.append(Outcome(one, verdict, time.monotonic() - started))
            meter.update(len(outcomes), one.name)
    return Report(tuple(outcomes), None if source is None else Path(source))
