"""Tallies: what draws say that were counted and not kept."""

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from privug import settings
from privug.arguments import check_kind, is_one_of, kinds_checked, plain_number, represented, shown
from privug.checkpoints.checkpoint import parts_of
from privug.checkpoints.fingerprints import fingerprint
from privug.errors import ArgumentError
from privug.escaping import inert
from privug.estimate import CONFIDENCE, Estimate
from privug.inference import engines, tallying
from privug.inference.answer import Definition, definition_of
from privug.inference.belief import Belief, Histogram, as_numbers
from privug.inference.engines import bounded, checked_whole, positive
from privug.inference.joint import Joint
from privug.inference.tallying import MOST_VALUES, OUTPUT, PAIRS, SECRET, Agreeing, Bins, DrawSummary, Numbers, tally
from privug.markup import paragraphs, table
from privug.model.node import Array, Kind
from privug.observation.observations import Observation, as_observation
from privug.output import as_json
from privug.runtime.pickling import Portable

Predicate = Callable[[Any], Any]

MOST_DRAWS = 10**15  # counts are floats, which are integers up to nine times that
MOST_BINS = 10_000
MOST_SHOWN = 6
MOST_WRITTEN = 1_000


class Tallies(Portable):
    """What any number of draws says about the secret: statistics of all, of which none was kept.

    It holds what was asked for before: the answers to the attack's questions, mean, standard deviation and histogram of
    secret and output, and, as long as they have no more than 100,000 distinct values, how often each of those, and each
    pair of them, was drawn. Tallies of the same attack with other seeds can be added.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda x: x % 2, {"x": pv.DiscreteUniform(0, 9)}, "x", questions={"small": lambda x: x < 5})
    >>> tallies = attack.tally(pv.equals(1), draws=200_000) + attack.tally(pv.equals(1), draws=100_000, seed=1)
    >>> tallies.draws, 0.4 in tallies.probability("small"), 0.5 in tallies.evidence
    (300000, True, True)
    """

    def __init__(
        self,
        attack: Any,
        observation: Observation | None,
        predicates: dict[str, Predicate],
        seeds: tuple[int, ...],
        run: DrawSummary,
    ) -> None:
        self.attack = attack
        self.observation = observation
        self.seeds = seeds
        self.lifting = run.lifting
        self._claims = tuple(predicates)
        self._predicates = predicates
        self._run = run
        self.diagnostics = run.diagnostics(attack.question, observation)

    @property
    def draws(self) -> int:
        """How many draws from the prior were made."""
        return self.diagnostics.draws

    @property
    def accepted(self) -> int:
        """How many of them agree with the observation."""
        return self.diagnostics.accepted

    @property
    def effective_samples(self) -> float:
        """How many independent, equally weighted samples those are worth."""
        return self.diagnostics.effective_samples

    @property
    def evidence(self) -> Estimate:
        """How likely the observation is; its density, where draws were weighted by one."""
        assert self.diagnostics.evidence is not None
        return self.diagnostics.evidence

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is to be said of how it went."""
        return (*self.diagnostics.remarks, *self._limits)

    @property
    def _agreeing(self) -> Agreeing:
        found = self._run.statistics.agreeing
        assert found is not None
        return found

    @cached_property
    def _known(self) -> dict[str, Definition]:
        given = self.observation is not None
        return {name: definition_of(self.attack.question, name, given=given) for name in PAIRS}

    @cached_property
    def _beliefs(self) -> dict[tuple[str, ...], list[Belief] | None]:
        """The beliefs about secret, output and both, where their values were tallied."""
        question = self.attack.question
        return {
            names: tallying.beliefs(self._agreeing, names, question, self._known) for names in (SECRET, OUTPUT, PAIRS)
        }

    @cached_property
    def _limits(self) -> tuple[str, ...]:
        """What was not tallied value by value, though nothing says that it is continuous."""
        words = {SECRET: "the secret", OUTPUT: "the output", PAIRS: "pairs of secret and output"}
        endless = {name for name in PAIRS if self._known[name].spread is Kind.CONTINUOUS}
        missing = [words[names] for names, found in self._beliefs.items() if found is None and not endless & set(names)]
        return (f"too many distinct values to be tallied one by one: {', '.join(missing)}",) if missing else ()

    @kinds_checked
    def probability(self, claim: str, confidence: float = CONFIDENCE) -> Estimate:
        """Return the probability that one of the attack's questions is true, with its exact binomial interval."""
        if claim not in self._claims:
            known = ", ".join(map(repr, self._claims)) or "it has none"
            raise ArgumentError(
                f"probability: {shown(claim)} is not one of the attack's questions ({known}): a tally holds only what "
                "was asked before the draws were made; give Attack(..., questions={...})"
            )
        sums = self._agreeing.hits[self._claims.index(claim)]
        if self._beliefs[SECRET] is not None:  # values that differ only by rounding are one by now
            sums = tallying.sums_where(self._agreeing, self.attack.question, self._predicates[claim])
        return tallying.share(self._agreeing, sums, confidence)

    @kinds_checked
    def mean(self, of: str = "secret", confidence: float = CONFIDENCE) -> Estimate:
        """Return the expected value of the secret or of the output."""
        belief = self._belief(of)
        if belief is not None:
            return belief.mean(confidence)
        return tallying.mean(self._agreeing, self._numbers(of, "mean"), self._known[of].reach, confidence)

    @kinds_checked
    def std(self, of: str = "secret", confidence: float = CONFIDENCE) -> Estimate:
        """Return the standard deviation of the secret or of the output."""
        belief = self._belief(of)
        if belief is not None:
            return belief.std(confidence)
        return tallying.std(self._agreeing, self._numbers(of, "std"), self._known[of].reach, confidence)

    @kinds_checked
    def histogram(self, of: str = "secret") -> Histogram:
        """Return the probability of each bin, those beyond the edges last and first; `tally(bins=)` has set them."""
        self._belief(of)
        found = tallying.histogram(self._agreeing, self._numbers(of, "histogram"))
        if found is None:
            raise ArgumentError(
                "histogram: the tallies that were added have different edges; give those of the first to the second: "
                "attack.tally(bins=first.edges, ...)"
            )
        return found

    @property
    def edges(self) -> Array | None:
        """The edges of the secret's histogram, to be given to another tally that is to be added."""
        numbers = self._agreeing.numbers[0]
        return None if numbers is None else numbers.edges

    @kinds_checked
    def distribution(self, of: str = "secret", most: int | None = None) -> dict[Any, Estimate]:
        """Return the probability of each value of a discrete quantity, or of the `most` likely; likeliest first."""
        belief = self._belief(of)
        if belief is None:
            raise ArgumentError(
                f"distribution: the {of} has too many distinct values to tally (more than {MOST_VALUES:,}, or hardly "
                "any twice); ask for histogram()"
            )
        return belief.distribution(most)

    @cached_property
    def joint(self) -> Joint:
        """Secret and output together, for the measures of `pv.leakage`; before an observation."""
        if self.observation is not None:
            raise ArgumentError(
                "joint: these draws were tallied given an observation, but leakage is about secret and output before "
                "one; tally an attack without observe="
            )
        beliefs = self._beliefs[PAIRS]
        if beliefs is None:
            raise ArgumentError(
                f"joint: secret and output have too many distinct pairs to tally (more than {MOST_VALUES:,}, or hardly "
                "any twice); run the attack, or round what it returns"
            )
        return Joint(beliefs[0], beliefs[1])

    def merge(self, other: "Tallies") -> "Tallies":
        """Return the tallies of both: of the same attack and observation, with other seeds."""
        check_kind("merge", "other", other, (Tallies,))
        if self._asked != other._asked:
            raise ArgumentError("merge: the tallies answer different questions; only those of one attack can be added")
        if set(self.seeds) & set(other.seeds):
            seeds = ", ".join(str(seed) for seed in sorted(set(self.seeds) & set(other.seeds)))
            raise ArgumentError(f"merge: both tallies hold the draws of seed {seeds}; give each tally(seed=) its own")
        return Tallies(
            self.attack, self.observation, self._predicates, self.seeds + other.seeds, self._run.plus(other._run)
        )

    @property
    def _asked(self) -> str:
        """The question, the observation and the claims, told alike in every process."""
        return fingerprint([parts_of(self.attack.question, self.observation), self._predicates])

    def __add__(self, other: "Tallies") -> "Tallies":
        return self.merge(other)

    def _belief(self, of: str) -> Belief | None:
        if not is_one_of(of, PAIRS):
            raise ArgumentError(f"of must be 'secret' or 'output', not {shown(of)}")
        beliefs = self._beliefs[(of,)]
        return None if beliefs is None else beliefs[0]

    def _numbers(self, of: str, what: str) -> Numbers:
        numbers = self._agreeing.numbers[PAIRS.index(of)]
        if numbers is None:
            raise ArgumentError(f"{what} needs single finite numbers, but the {of} is none; ask for distribution()")
        return numbers

    @property
    def _answers(self) -> dict[str, Estimate]:
        """The numbers that a report shows."""
        answers = {f"P({claim})": self.probability(claim) for claim in self._claims}
        for of in PAIRS:
            if self._agreeing.numbers[PAIRS.index(of)] is not None:
                answers |= {f"mean of the {of}": self.mean(of), f"standard deviation of the {of}": self.std(of)}
        belief = self._belief("secret")
        if belief is not None and len(belief.batch) <= MOST_SHOWN:
            answers |= {f"P({represented(value)})": share for value, share in self.distribution().items()}
        if self.observation is not None:
            answers["evidence"] = self.evidence
        return answers

    @property
    def _facts(self) -> list[tuple[str, str]]:
        seen = "nothing yet" if self.observation is None else str(self.observation)
        worth = f", worth {self.effective_samples:,.0f} samples" if self._agreeing.weighted else ""
        failed = f"; the program failed on {self.diagnostics.excluded:,}" if self.diagnostics.excluded else ""
        counts = f"{self.draws:,}, of which {self.accepted:,} agree{worth}{failed}"
        return [("attacker sees", seen), ("draws", counts), *(("note", remark) for remark in self.remarks)]

    def to_dict(self) -> dict[str, Any]:
        """Return all that was tallied as plain values, numbers with all their digits."""
        plain: dict[str, Any] = {
            "attack": self.attack.name,
            "observation": None if self.observation is None else str(self.observation),
            "draws": self.draws,
            "accepted": self.accepted,
            "excluded": self.diagnostics.excluded,
            "effective_samples": self.effective_samples,
            "seeds": list(self.seeds),
            "answers": {name: estimate.to_dict() for name, estimate in self._answers.items()},
            "remarks": list(self.remarks),
        }
        for of in PAIRS:
            numbers, belief = self._agreeing.numbers[PAIRS.index(of)], self._belief(of)
            if numbers is not None and numbers.bins is not None:
                found = self.histogram(of)
                shares = [share.to_dict() for share in found.probabilities]
                plain[f"histogram of the {of}"] = {"edges": found.edges.tolist(), "probabilities": shares}
            if belief is not None:
                listed = self.distribution(of, most=MOST_WRITTEN)
                plain[f"distribution of the {of}"] = [
                    {
                        "value": value if isinstance(value, bool | int | float | str) else represented(value),
                        **share.to_dict(),
                    }
                    for value, share in listed.items()
                ]
        return plain

    @kinds_checked
    def to_json(self, indent: int | None = 2) -> str:
        """Return all that was tallied as JSON; infinite numbers as the strings 'inf' and '-inf'."""
        return as_json(self.to_dict(), indent)

    def __str__(self) -> str:
        rows = [*((name, f"{e.number()} {e.unit}".rstrip()) for name, e in self._answers.items()), *self._facts]
        width = max(len(name) for name, _ in rows)
        return inert(f"Privug: {self.attack.name}, tallied") + "".join(
            f"\n  {inert(n):<{width}}  {inert(t)}" for n, t in rows
        )

    def _repr_html_(self) -> str:
        rows = [(name, f"{e.number()} {e.unit}".rstrip()) for name, e in self._answers.items()]
        return table(["tallied", "value"], rows) + paragraphs(f"{name}: {text}" for name, text in self._facts)

    def __repr__(self) -> str:
        return f"<Tallies of {self.attack.name!r}: {self.accepted:,} of {self.draws:,} draws>"


class Tallied:
    """What an attack has to be tallied by."""

    def tally(
        self,
        observe: Any = None,
        *,
        draws: int = 1_000_000,
        seed: int = 0,
        bins: int | Sequence[float] = 100,
        seconds: float | None = None,
        on: Any = None,
    ) -> Tallies:
        """Count what so many draws from the prior say, given what the attacker sees; the draws are not kept.

        `bins` are those of the histogram of the secret: their number, or edges. `seconds` and `on` are as in `run`.
        """
        return tallied(self, observe, draws=draws, seed=seed, bins=bins, seconds=seconds, on=on)


def tallied(attack: Any, observe: Any, *, draws: Any, seed: Any, bins: Any, seconds: Any, on: Any) -> Tallies:
    """Tally draws of an attack."""
    draws, seed = checked_whole("draws", draws, 1, MOST_DRAWS), checked_whole("seed", seed, 0)
    limit = positive("seconds", seconds, "60")
    edges = checked_bins(bins)
    observation = attack.observe if observe is None else as_observation(observe)
    claims = dict(attack.questions)
    with settings.limited(on=on), bounded("tally", limit):
        if attack.question.facts:
            engines.check_facts(attack.question)
        run = tally(attack.question, observation, draws=draws, seed=seed, claims=claims, bins=edges)
    return Tallies(attack, observation, claims, (seed,), run)


def checked_bins(bins: Any) -> Bins:
    """Return a number of bins, or their edges."""
    check_kind("tally", "bins", bins, (int, Sequence[float]))
    bins = plain_number(bins)
    if isinstance(bins, int):
        return checked_whole("bins", bins, 1, MOST_BINS)
    edges: Array = as_numbers("tally: the edges", bins)
    increase = edges.ndim == 1 and len(edges) > 1 and np.all(np.isfinite(edges)) and np.all(np.diff(edges) > 0)
    if not increase or len(edges) > MOST_BINS or not math.isfinite(edges[-1] - edges[0]):
        raise ArgumentError(
            f"tally: bins must be a positive integer up to {MOST_BINS:,}, or as many finite edges that increase"
        )
    return edges
