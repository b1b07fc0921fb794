"""What came out of several checks: one report of them all, as text, JSON, JUnit XML or SARIF."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from privug.arguments import check_kind, shown
from privug.errors import ArgumentError, PrivugError
from privug.escaping import inert
from privug.pictures import plots
from privug.policy.checks import Check, Outcome
from privug.policy.junit import as_junit
from privug.policy.places import relative
from privug.policy.sarif import as_sarif
from privug.policy.verdict import Status, all_of
from privug.progress import ProgressMeter
from privug.report.files import written
from privug.report.plain import as_json

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
