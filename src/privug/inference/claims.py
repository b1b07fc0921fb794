"""The attack's own questions: claims in words with predicates on the secret, tried before anything is run."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from privug.arguments import check_takes, is_truth, shown
from privug.errors import ArgumentError, PrivugError, QuestionError
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.case_plan import Quantity
from privug.inference.question import Question
from privug.model.operations import SampleFailure
from privug.model.plan import Plan

Predicate = Callable[[Any], Any]
TRIED = 8
"""On how many secrets a question is tried."""


def as_claims(questions: Any) -> dict[str, Predicate]:
    """Return the questions of an attack, if they are such."""
    if questions is None:
        return {}
    if not isinstance(questions, Mapping) or not all(callable(predicate) for predicate in questions.values()):
        raise QuestionError("questions must map claims in words to predicates on the secret")
    for claim, predicate in questions.items():
        check_takes(f"questions: {claim!r}", predicate, 1, QuestionError)
    return dict(questions)


def check_answers(claims: Mapping[str, Predicate], question: Question) -> None:
    """Refuse a question that answers something else than yes or no on a few secrets.

    One that fails is left to be told with its answer: these secrets may contradict what is assumed.
    """
    for secret in _some_secrets(question) if claims else ():
        for claim, predicate in claims.items():
            try:
                verdict = predicate(secret)
            except Exception:
                continue
            if not is_truth(verdict):
                hint = "is a return missing?" if verdict is None else "compare it, such as secret > 18"
                raise QuestionError(
                    f"questions: {claim!r} must return True or False, but it returned {shown(verdict)} for the secret "
                    f"{shown(secret)}; {hint}"
                )


def _some_secrets(question: Question) -> list[Any]:
    """Return a few secrets as the prior has them; none if that takes more than drawing them."""
    try:
        secret = Quantity.of(question.case(question.typical_sizes).secret)
        arrays = Plan(secret.nodes).run(TRIED, np.random.Generator(np.random.SFC64(0)))
    except (PrivugError, SampleFailure):  # which the run tells
        return []
    return secret.batch(arrays, TRIED).values()


def probability_of(claim: str, predicate: Predicate, belief: Belief) -> Estimate:
    """Return the answer to a question; what is wrong with it is told with its name."""
    try:
        return belief.probability(predicate)
    except ArgumentError as error:
        raise QuestionError(f"questions: {claim!r}: {error}") from error
