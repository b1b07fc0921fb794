"""Auditing a log: is it whole, and would every decision in it be taken again?"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privug.digits import how_many
from privug.escaping import inert
from privug.policy.monitoring.log import Entry, LogError, decoded, read
from privug.policy.monitoring.monitor import Monitor, check_header, known_queries, query_of
from privug.policy.monitoring.queries import Answered, MonitoredQuery
from privug.policy.monitoring.sampled_decisions import SamplingPlan
from privug.policy.policies import Policy


@dataclass(frozen=True)
class LogAudit:
    """What an audit found: true if there is nothing wrong.

    `derived` is how many decisions were taken again, of `entries` in the log; `problems` says what is wrong.

    >>> import privug as pv
    >>> pv.policy.LogAudit(entries=2, answered=1, derived=2)
    LogAudit(entries=2, answered=1, derived=2, problems=())
    """

    entries: int
    answered: int
    derived: int
    problems: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        lines = [
            f"{how_many(self.entries, 'decision')}, {self.answered} of them answers; {self.derived} were taken again: "
            + (f"{len(self.problems)} problems" if self.problems else "all is well")
        ]
        return inert("\n".join([*lines, *(f"  {problem}" for problem in self.problems)]), keep="\n")


def audit_log(
    path: str | Path,
    prior: Mapping[str, Any],
    secret: Any,
    policy: Policy,
    *,
    queries: Mapping[str, Callable[..., Any]] | Sequence[Callable[..., Any]] = (),
    head: str = "",
    **options: Any,
) -> LogAudit:
    """Check that a log is whole and belongs to this question, and take every decision in it again.

    `queries` are the functions that were asked; refused queries that are not among them are left out. `head` is the
    hash of an entry that was kept elsewhere, by which to see that nothing was cut off at the end.

    >>> import os, tempfile
    >>> import privug as pv
    >>> question = {"day": pv.DiscreteUniform(1, 7)}, "day", pv.policy.max_belief(at_most=0.5)
    >>> def weekend(day):
    ...     return day > 5
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "queries.log")
    ...     with pv.policy.Monitor.load(path, *question, queries=[weekend]) as monitor:
    ...         answer = monitor.ask(weekend, truth={"day": 6})
    ...     print(bool(pv.policy.audit_log(path, *question, queries=[weekend])))
    True
    """
    try:
        entries = read(path)
    except LogError as error:
        return LogAudit(0, 0, 0, (str(error),))
    if not entries:
        return LogAudit(0, 0, 0, ("the log is empty",))
    monitor = Monitor(prior, secret, policy, **options)
    replay = _Replay(monitor, known_queries(queries, monitor.judge))
    try:
        check_header(entries[0], monitor.header)
    except LogError as error:
        replay.problems.append(str(error))
        return replay.told(entries)
    if head and head not in [entry["hash"] for entry in entries]:
        replay.problems.append("an entry that was known before is not in the log any more")
    for entry in entries[1:]:
        replay.take(entry)
    return replay.told(entries)


class _Replay:
    """The decisions of a log, taken again one after the other."""

    def __init__(self, monitor: Monitor, queries: Mapping[str, MonitoredQuery]) -> None:
        self.problems: list[str] = []
        self._monitor, self._queries = monitor, queries
        self._derived = 0
        self._lost = False

    def take(self, entry: Entry) -> None:
        """Take a decision again, and compare."""
        answered = entry["kind"] == "answered"
        try:
            query = query_of(entry, self._queries)
        except LogError as error:
            if answered:
                self.problems.append(str(error))
                self._lost = True
            return
        known = self._monitor.answers_known_to(entry["attacker"])
        if "verdict" in entry and not self._lost:
            self._compare(entry, query, known)
        if answered:
            known.append(Answered(query, decoded(entry["answer"]), entry["continuous"], entry["repeatable"]))

    def _compare(self, entry: Entry, query: MonitoredQuery, known: Sequence[Answered]) -> None:
        draws = SamplingPlan(*entry["draws"]) if entry["draws"] is not None else SamplingPlan(1, 0, 0.05)
        decision = self._monitor.judge.decide(query, known, draws)
        self._derived += 1
        found, logged = str(decision.verdict.status), entry["verdict"]["status"]
        if found != logged:
            self.problems.append(f"entry {entry['number']}: {entry['query']} is now {found}, and was {logged}")
        elif entry["kind"] == "answered" and not decision.accepted:
            self.problems.append(f"entry {entry['number']}: {entry['query']} was answered though the policy is {found}")
        elif entry["kind"] == "answered" and not decision.as_foreseen(decoded(entry["answer"])):
            self.problems.append(f"entry {entry['number']}: {entry['query']} never gives the answer that is logged")

    def told(self, entries: Sequence[Entry]) -> LogAudit:
        """Return what was found."""
        answered = sum(entry["kind"] == "answered" for entry in entries)
        return LogAudit(len(entries) - 1, answered, self._derived, tuple(self.problems))
