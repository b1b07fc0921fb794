"""Choosing in private: the exponential mechanism, the largest of noisy scores, the first above a threshold."""

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from privug.arguments import Positive, kinds_checked, shown
from privug.errors import ArgumentError, ProgramError
from privug.mechanisms import winning
from privug.mechanisms.guarantee import Guarantee
from privug.mechanisms.mechanism import Mechanism, remakeable
from privug.prior.choice import Choice
from privug.program.logic import sample
from privug.program.staged import Transparent, called

NOISES = {"exponential": winning.exponential, "laplace": winning.laplace, "gumbel": winning.gumbel}


@dataclass(frozen=True)
class Chosen:
    """The release that draws one of several choices with probabilities that follow from scores."""

    probabilities: winning.Probabilities
    rate: float
    shift: float = 0.0
    candidates: tuple[Any, ...] | None = None
    otherwise: bool = False
    """Whether there is one choice more than scores."""

    def __call__(self, scores: Any) -> Any:
        more = int(self.otherwise)
        weights = winning.weighed(scores, self.probabilities, rate=self.rate, shift=self.shift, more=more)
        count = weights.shape[0]
        candidates = tuple(range(count)) if self.candidates is None else self.candidates
        if len(candidates) != count:
            raise ProgramError(
                f"there are {len(candidates)} candidates, but the program returned {count - more} scores"
            )
        return sample(Choice(list(candidates), p=weights))


class Scores(Transparent):
    """A program that scores each candidate."""

    def __init__(self, score: Callable[..., Any], candidates: Sequence[Any]) -> None:
        functools.update_wrapper(self, score)
        self.score, self.candidates = score, candidates
        try:
            parameters = list(inspect.signature(score).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        if len(parameters) < 2:
            raise ArgumentError(
                "exponential: the score must be a function of the inputs and, last, of the candidate, such as "
                "`def score(records, candidate): ...`"
            )
        self.parameter = "candidate" if "candidate" in [p.name for p in parameters] else parameters[-1].name
        self.__signature__ = inspect.Signature([p for p in parameters if p.name != self.parameter])

    def __call__(self, *positional: Any, **named: Any) -> list[Any]:
        return [called(self.score, *positional, **named, **{self.parameter: value}) for value in self.candidates]


@remakeable
@kinds_checked
def exponential(
    score: Callable[..., Any],
    candidates: Sequence[Any],
    *,
    sensitivity: Positive,
    epsilon: Positive,
    monotone: bool = False,
) -> Mechanism:
    """Choose a candidate with probability proportional to exp(epsilon score / (2 sensitivity)).

    `score` is a function of the inputs and, last, of a candidate; one person's data may change it by at most
    `sensitivity`. If the scores of all candidates can only rise, or only fall, when a person is added (`monotone`),
    half the noise keeps the same promise. McSherry and Talwar, FOCS 2007.

    >>> import privug as pv
    >>> votes = exponential(lambda votes, candidate: sum(v == candidate for v in votes), ["a", "b"],
    ...                     sensitivity=1, epsilon=2)
    >>> attack = pv.Attack(votes, {"votes": [pv.Choice(["a", "b"]), "a"]}, secret=lambda votes: votes[0])
    >>> print(attack.run(observe=pv.equals("b")).posterior.probability(lambda vote: vote == "b"))
    0.807 (exact)
    """
    if isinstance(candidates, str) or not isinstance(candidates, Sequence) or not candidates:
        raise ArgumentError(f"exponential: candidates must be a list of values, not {shown(candidates)}")
    rate = epsilon / sensitivity / (1 if monotone else 2)
    release = Chosen(winning.gumbel, rate, candidates=tuple(candidates))
    return Mechanism(Scores(score, candidates), release, Guarantee(float(epsilon)), "the exponential mechanism")


@remakeable
@kinds_checked
def report_noisy_max(
    program: Callable[..., Any],
    *,
    sensitivity: Positive,
    epsilon: Positive,
    candidates: Sequence[Any] | None = None,
    noise: str = "exponential",
    monotone: bool = False,
) -> Mechanism:
    """Add noise to each of the scores that the program returns, and release only which is the largest.

    One person's data may change each score by at most `sensitivity`. The noise is "exponential" (the best of the
    three), "laplace" or "gumbel" (the exponential mechanism), of scale 2 sensitivity / epsilon, or half that for
    scores that are `monotone`. The output is the position of the winner, or its name in `candidates`.
    Dwork and Roth 2014, section 3.3; for exponential noise, Ding et al., 2021.

    >>> print(report_noisy_max(lambda votes: votes, sensitivity=1, epsilon=0.5).guarantee)
    0.5-differentially private
    """
    if noise not in NOISES:
        raise ArgumentError(f"report_noisy_max: noise must be one of {', '.join(map(repr, NOISES))}, not {noise!r}")
    rate = epsilon / sensitivity / (1 if monotone else 2)
    names = None if candidates is None else tuple(candidates)
    return Mechanism(program, Chosen(NOISES[noise], rate, candidates=names), Guarantee(float(epsilon)), "noisy max")


@remakeable
@kinds_checked
def sparse_vector(
    program: Callable[..., Any], *, threshold: float, sensitivity: Positive, epsilon: Positive, monotone: bool = False
) -> Mechanism:
    """Release the position of the first of the program's numbers that seems to lie above a threshold.

    The threshold gets Laplace noise of scale 2 sensitivity / epsilon, each number one of twice that scale (of half of
    both if the numbers are `monotone`). If none lies above, the output is how many there are. However many
    numbers there are, the promise is the same. Dwork and Roth 2014, section 3.6, AboveThreshold.

    >>> private = sparse_vector(lambda counts: counts, threshold=100, sensitivity=1, epsilon=10)
    >>> private([3, 5, 300, 400])
    2
    """
    rate = epsilon / sensitivity / (1 if monotone else 2)
    release = Chosen(winning.first_above, rate, float(threshold), otherwise=True)
    return Mechanism(program, release, Guarantee(float(epsilon)), "a noisy threshold")
