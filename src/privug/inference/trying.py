"""Engines tried one after the other in the time there is, and what came of each."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from privug import interruption
from privug.errors import InferenceError, OutOfTime
from privug.progress import tell


class Tried:
    """What was tried so far, how long it took and why it gave no answer."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._attempts: list[str] = []

    @contextmanager
    def attempt(self, engine: str, share: float, excused: type[InferenceError] = InferenceError) -> Iterator[None]:
        """Let an engine try in a share of the time left; an excused refusal, and no answer in time, are noted."""
        started, left = time.monotonic(), interruption.seconds_left()
        try:
            with interruption.within(None if left is None else share * left):
                yield
        except excused as error:
            self._note(engine, started, str(error))
        except interruption.TimeIsUp as error:
            self._note(engine, started, _no_answer(error))
            if interruption.is_time_up():
                raise OutOfTime(self._refusal()) from None

    @contextmanager
    def last_attempt(self, engine: str) -> Iterator[None]:
        """Let an engine try in all of the time left: what it refuses is refused."""
        started = time.monotonic()
        try:
            yield
        except interruption.TimeIsUp as error:
            self._note(engine, started, _no_answer(error))
            raise OutOfTime(self._refusal()) from None

    def tell(self, what: str) -> None:
        """Say what is tried next, in a run that takes its time."""
        left = interruption.seconds_left()
        tell(self._started, f"auto: now {what}" + ("" if left is None else f"; at most {left:.0f} s more"))

    def _note(self, engine: str, started: float, reason: str) -> None:
        self._attempts.append(f"'{engine}' gave up after {time.monotonic() - started:.0f} s: {reason}")

    def _refusal(self) -> str:
        return f"time was up before any engine had an answer ({'; '.join(self._attempts)}); {MORE_TIME}"

    def __str__(self) -> str:
        """The attempts that failed, to go with the reason for the engine that served."""
        return "".join(f"; {attempt}" for attempt in self._attempts)


MORE_TIME = "give more seconds=, or ask for fewer samples="


@contextmanager
def bounded(engine: str, seconds: float | None) -> Iterator[None]:
    """Refuse, after so many seconds, a question that an engine has no answer to by then."""
    try:
        with interruption.within(seconds):
            yield
    except interruption.TimeIsUp as error:
        if seconds is None:  # it is the time of a run around this one
            raise
        why = f"seconds={seconds:g} were over before engine={engine!r} had an answer: {_no_answer(error)}"
        raise OutOfTime(f"{why}; {MORE_TIME}") from None


def _no_answer(error: interruption.TimeIsUp) -> str:
    where = interruption.unanswered(error)
    return "it had no answer by then" if where is None else f"the program had not returned yet {where}"
