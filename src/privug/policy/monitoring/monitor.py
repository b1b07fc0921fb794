"""A monitor: answers queries on the same data one after the other, as long as a policy stays kept."""

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from privug.arguments import check_kind, kinds_checked, shown
from privug.checkpoints.fingerprints import fingerprint
from privug.errors import ArgumentError
from privug.escaping import inert
from privug.inference.belief import Belief
from privug.markup import paragraphs
from privug.output import as_json
from privug.pictures import plots
from privug.policy.clause_questions import SAMPLES
from privug.policy.monitoring.decisions import Decision, Judge
from privug.policy.monitoring.log import Entry, Log, LogError, decoded, encoded
from privug.policy.monitoring.queries import Answered, MonitoredQuery
from privug.policy.monitoring.sampled_decisions import SamplingPlan, share_of_error
from privug.policy.monitoring.true_inputs import check_against_answers, true_inputs
from privug.policy.policies import Policy
from privug.policy.verdict import Verdict

CLOSED = "the monitor has closed itself, because an answer came up that had not been foreseen"
UNFORESEEN = "the answer is not one of those that were judged: it is not handed out, and the monitor closes itself"


@dataclass(frozen=True)
class Answer:
    """What a monitor says to a query: it is true if the query was answered.

    `value` is the answer, None if there is none; `reason` says why not. `verdict` is what the decision rests on: the
    worst of all answers that were possible by then, so that it says nothing about the true one.

    >>> import privug as pv
    >>> monitor = pv.policy.Monitor({"day": pv.DiscreteUniform(1, 7)}, "day", pv.policy.max_belief(at_most=0.5))
    >>> answer = monitor.ask(lambda day: day > 5, truth={"day": 6}, name="is it the weekend?")
    >>> bool(answer), answer.value
    (True, True)
    """

    query: str
    answered: bool
    value: Any = None
    reason: str = ""
    verdict: Verdict | None = field(default=None, repr=False)
    attacker: str = ""

    def __bool__(self) -> bool:
        return self.answered

    def __str__(self) -> str:
        to = f" to {self.attacker}" if self.attacker else ""
        said = f"answered{to}: {shown(self.value)}" if self.answered else f"refused{to}: {self.reason}"
        return inert(f"{self.query} is {said}")


class Monitor:
    """Answers queries one after the other, refusing those after which a policy might be broken.

    A query is answered only if the policy holds after *every* answer that is still possible, given all earlier answers
    (Mardziel, Magill, Hicks, Srivatsa 2013). A refusal therefore reveals nothing: it is decided before the true data
    is read. It does not matter how queries are chosen, because each is judged with all earlier answers.

    Decisions are exact where possible. Elsewhere samples are drawn, and what cannot be decided is refused; over the
    whole life of the monitor, the probability that a refusal is missed by chance, or that an unforeseen answer occurs,
    is at most 5 %. Such an answer is not handed out, and the monitor refuses every query after it.

    Args:
        prior: What the attacker knows, as `pv.Attack` takes it.
        secret: The secret, as `pv.Attack` takes it.
        policy: The limits, which must hold after every answer.
        assume: Facts that the attacker knows, as `pv.Attack` takes them.
        log: The path of a log; an entry is on the disk before its answer is handed out.
        colluding: Whether all attackers know all answers; otherwise each knows only their own.
        samples: How many samples are drawn where no exact decision is possible.
        seed: Seeds the samples; by default they are unpredictable.
        seconds: Limits the time of each run.

    Raises:
        ArgumentError: An argument is not of its kind, or the policy limits an average over outputs.
        LogError: The log exists already, belongs to another monitor, or is in use.

    >>> import privug as pv
    >>> monitor = pv.policy.Monitor({"day": pv.DiscreteUniform(0, 364)}, "day", pv.policy.max_belief(at_most=0.2))
    >>> print(monitor.ask(lambda day: 260 <= day < 267, truth={"day": 100}, name="birthday this week?"))
    birthday this week? is answered: False
    >>> bool(monitor.ask(lambda day: 261 <= day < 268, truth={"day": 100}))
    False
    """

    def __init__(
        self,
        prior: Mapping[str, Any],
        secret: Any,
        policy: Policy,
        *,
        assume: Callable[..., Any] | Sequence[Callable[..., Any]] = (),
        log: str | Path | None = None,
        colluding: bool = True,
        samples: int = SAMPLES,
        seed: int | None = None,
        seconds: float | None = None,
    ) -> None:
        self.judge = _judge(prior, secret, policy, assume, seconds)
        check_kind("Monitor", "colluding", colluding, (bool,))
        self.colluding = colluding
        self._samples, self._seed = samples, seed
        self.history: list[Answer] = []
        self._known: dict[str, list[Answered]] = {}
        self._sampled = 0
        self._closed = ""
        self.judge.check()
        self._log = None if log is None else Log(log, self.header)

    @property
    def header(self) -> Entry:
        """What a log says of the monitor that it belongs to."""
        judge = self.judge
        return {
            "prior": fingerprint(judge.prior),
            "secret": fingerprint(judge.secret),
            "policy": fingerprint(judge.policy),
            "assume": fingerprint(judge.facts),
            "claim": str(judge.policy),
            "colluding": self.colluding,
        }

    def ask(self, query: Callable[..., Any], *, truth: Any, attacker: str = "", name: str = "") -> Answer:
        """Answer a query on the true data, or refuse; which of the two is decided before `truth` is looked at.

        `query` is a function whose parameters are inputs of the prior; `truth` maps inputs to their true values.
        """
        check_kind("ask", "attacker", attacker, (str,))
        check_kind("ask", "name", name, (str,))
        asked = MonitoredQuery.of(query, list(self.judge.prior), name)
        if self._closed:
            return self._refused(asked, attacker, None, self._closed)
        known = self.answers_known_to(attacker)
        draws = SamplingPlan(self._samples, self._next_seed(), share_of_error(self._sampled + 1))
        decision = self.judge.decide(asked, known, draws)
        if decision.draws is not None:
            self._sampled += 1
        if not decision.accepted:
            return self._refused(asked, attacker, decision, _reason(decision.verdict))
        try:
            inputs = true_inputs(truth, asked, self.judge.prior)
            check_against_answers(inputs, known)
            outcome = _outcome(asked, inputs, decision)
        except BaseException:  # nobody got an answer; that there was a try counts
            self._write("failed", asked, attacker, decision, {})
            raise
        if outcome is None:
            self._closed = CLOSED
            return self._refused(asked, attacker, decision, UNFORESEEN, kind="closed")
        return self._given(asked, attacker, decision, outcome)

    def answers_known_to(self, attacker: str) -> list[Answered]:
        """Return the answers that an attacker knows: all of them if attackers collude."""
        return self._known.setdefault("" if self.colluding else attacker, [])

    def _given(self, query: MonitoredQuery, attacker: str, decision: Decision, outcome: Answered) -> Answer:
        held = encoded(outcome.value) if self._log is not None else None
        self._write("answered", query, attacker, decision, {"answer": held, "repeatable": outcome.repeatable})
        self.answers_known_to(attacker).append(outcome)
        return self._told(Answer(query.name, True, outcome.value, "", decision.verdict, attacker))

    def _refused(
        self, query: MonitoredQuery, attacker: str, decision: Decision | None, reason: str, kind: str = "refused"
    ) -> Answer:
        self._write(kind, query, attacker, decision, {"reason": reason})
        verdict = None if decision is None else decision.verdict
        return self._told(Answer(query.name, False, None, reason, verdict, attacker))

    def _told(self, answer: Answer) -> Answer:
        self.history.append(answer)
        return answer

    def _write(self, kind: str, query: MonitoredQuery, attacker: str, decision: Decision | None, more: Entry) -> None:
        """Write an entry; should that fail, in whatever way, nothing is answered any more."""
        if self._log is None:
            return
        entry: Entry = {"kind": kind, "attacker": attacker, "query": query.name, "fingerprint": query.mark, **more}
        if decision is not None:
            entry["continuous"] = decision.foreseen is None
            entry["verdict"] = json.loads(as_json(decision.verdict.to_dict(), None))
            draws = decision.draws
            entry["draws"] = None if draws is None else [draws.samples, draws.seed, draws.error]
        before, self._closed = self._closed, "an entry could not be written to the log"
        self._log.append(entry)
        self._closed = before

    def _next_seed(self) -> int:
        if self._seed is None:
            return secrets.randbits(62)
        return int(
            np.random.SeedSequence([self._seed, len(self.history), self._sampled]).generate_state(1, np.uint64)[0] >> 2
        )

    @property
    def belief(self) -> Belief:
        """What the attacker believes about the secret after all answers."""
        return self.belief_of("")

    @kinds_checked
    def belief_of(self, attacker: str) -> Belief:
        """Return what one of several attackers believes about the secret."""
        return self.judge.belief(self.answers_known_to(attacker))

    def plot(self, ax: Any = None, attacker: str = "") -> Any:
        """Draw what an attacker believes after each answer; `ax` is matplotlib axes or the path of a picture."""
        known = self.answers_known_to(attacker)
        steps: list[tuple[Any, ...]] = [("before", self.judge.belief([]))]
        answered = 0
        for answer in self.history:
            if self.colluding or answer.attacker == attacker:
                answered += answer.answered
                belief = self.judge.belief(known[:answered]) if answer.answered else steps[-1][1]
                steps.append((answer.query, belief, not answer.answered))
        return plots().sequence(steps, ax, steps[0][1].quantity)

    @property
    def head(self) -> str:
        """The hash of the last entry of the log: who keeps it elsewhere sees if entries were cut off at its end."""
        return "" if self._log is None else self._log.head

    def close(self) -> None:
        """Close the log, so that another monitor can continue it; this one answers no more queries."""
        self._closed = self._closed or "the monitor is closed"
        if self._log is not None:
            self._log.close()
            self._log = None

    def __enter__(self) -> "Monitor":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @classmethod
    def load(
        cls,
        path: str | Path,
        prior: Mapping[str, Any],
        secret: Any,
        policy: Policy,
        *,
        queries: Mapping[str, Callable[..., Any]] | Sequence[Callable[..., Any]] = (),
        **options: Any,
    ) -> "Monitor":
        """Go on with a log: the attacker knows exactly the answers in it.

        `queries` are the functions that were answered. The log of another prior, secret or policy, changed queries and
        entries that were changed are refused.
        """
        monitor = cls(prior, secret, policy, **options)
        log = Log(path, monitor.header, reopen=True)
        try:
            monitor._restore(log.entries, known_queries(queries, monitor.judge))
        except BaseException:
            log.close()
            raise
        monitor._log = log
        return monitor

    def _restore(self, entries: Sequence[Entry], queries: Mapping[str, MonitoredQuery]) -> None:
        check_header(entries[0], self.header)
        for entry in entries[1:]:
            self._sampled += entry.get("draws") is not None
            if entry["kind"] == "failed":
                continue
            answer = None
            if entry["kind"] == "answered":
                query, answer = query_of(entry, queries), decoded(entry["answer"])
                known = Answered(query, answer, entry["continuous"], entry["repeatable"])
                self.answers_known_to(entry["attacker"]).append(known)
            elif entry["kind"] == "closed":
                self._closed = CLOSED
            answered = entry["kind"] == "answered"
            told = Answer(entry["query"], answered, answer, entry.get("reason", ""), None, entry["attacker"])
            self.history.append(told)

    def __str__(self) -> str:
        count = sum(answer.answered for answer in self.history)
        lines = [f"policy: {self.judge.policy}", f"{count} of {len(self.history)} queries were answered"]
        lines += [f"  {number}. {answer}" for number, answer in enumerate(self.history, 1)]
        return "\n".join(lines + ([f"closed: {self._closed}"] if self._closed else []))

    def _repr_html_(self) -> str:
        return paragraphs(str(self).splitlines())

    def __repr__(self) -> str:
        return f"<Monitor: {sum(answer.answered for answer in self.history)} of {len(self.history)} queries answered>"


def _judge(prior: Any, secret: Any, policy: Any, assume: Any, seconds: float | None) -> Judge:
    check_kind("Monitor", "policy", policy, (Policy,))
    check_kind("Monitor", "prior", prior, (Mapping,))
    for clause in policy.clauses():
        if clause.on_average:
            raise ArgumentError(
                f"Monitor: {clause.about} is an average over outputs, which says nothing of the answers that an "
                "attacker has seen; limit what each answer may tell, as by pv.policy.max_belief(at_most=...)"
            )
    facts = (assume,) if callable(assume) else tuple(assume)
    return Judge(dict(prior), secret, policy, facts, seconds)


def _outcome(query: MonitoredQuery, inputs: Mapping[str, Any], decision: Decision) -> Answered | None:
    """Return the answer on the true data, as it was foreseen; None if samples had not shown that it is possible."""
    try:
        value, repeatable = query.on(inputs)
        found, what = decision.as_foreseen(value), f"give {shown(value)}, which it never does"
    except Exception as error:
        found, what, repeatable = [], f"fail with {type(error).__name__}: {error}", False
    if found:
        return Answered(query, found[0], decision.foreseen is None, repeatable)
    if decision.draws is not None:
        return None
    raise ArgumentError(
        f"ask: truth is impossible under the prior, or contradicts earlier answers: {query.name} would {what}"
    )


def _reason(verdict: Verdict) -> str:
    worst = "" if verdict.worst is None else f"{verdict.about} may become {verdict.worst.number()}"
    if verdict.violated:
        return f"{worst}, but {verdict.claim}"
    return "it cannot be decided whether the policy would hold: " + (verdict.reason or worst or "too few samples")


def known_queries(queries: Any, judge: Judge) -> dict[str, MonitoredQuery]:
    """Return queries by their fingerprints."""
    named = queries.items() if isinstance(queries, Mapping) else [("", one) for one in queries]
    made = [MonitoredQuery.of(program, list(judge.prior), name) for name, program in named]
    return {query.mark: query for query in made}


def query_of(entry: Entry, queries: Mapping[str, MonitoredQuery]) -> MonitoredQuery:
    """Return the query that an entry is about, as it was when it was answered."""
    if entry["fingerprint"] in queries:
        return queries[entry["fingerprint"]]
    names = [query.name for query in queries.values()]
    problem = "has changed since then" if entry["query"] in names else "is not among the queries given"
    raise LogError(f"entry {entry['number']} of the log answers {shown(entry['query'])}, which {problem}")


def check_header(found: Entry, expected: Entry) -> None:
    """Refuse the log of a monitor of another question."""
    for name, value in expected.items():
        if found.get(name) != value:
            what = "told whether attackers collude" if name == "colluding" else f"of another {name}"
            raise LogError(f"this is the log of another monitor: it is {what}")
