"""Which question a checkpoint belongs to, part by part."""

from collections.abc import Mapping
from typing import Any

from privug.checkpoints.checkpoint import Checkpoint
from privug.checkpoints.vocabulary import vocabulary_for
from privug.inference.question import Question
from privug.observation.observations import Observation


def parts_of(question: Question, observation: Observation | None) -> dict[str, Any]:
    """Return what makes a question, by the names that users know."""
    return {
        "the program": (question.program,),
        **{f"the prior of {name!r}": (prior,) for name, prior in question.prior.items()},
        "what ties the inputs together": (dict(question.prior),),
        "the secret": (question.secret,),
        "assume": question.facts,
        "on_error": "exclude" if question.exclude_errors else "raise",
        "the observation": (observation,),
    }


def checkpoint_of(
    path: Any, question: Question, observation: Observation | None, options: Mapping[str, Any]
) -> Checkpoint:
    """Return the checkpoint of one attack."""
    parts = {**parts_of(question, observation), **options}
    known = vocabulary_for(question.program, question.secret, question.facts, dict(question.prior), observation)
    return Checkpoint(path, parts, known)
