"""Everything Privug raises on purpose.

PrivugError
  x ArgumentError            an argument has the wrong type, shape or value
    - PriorError             a distribution or a table is described wrongly
    - QuestionError          the prior or the secret does not fit the program
    - ObservationError       the observation does not fit the output
  x NotAList                 a random number is used as a list
  x ProgramError             the program under analysis failed on some input
  x Untraceable              a program asked a random variable for one plain value
  x InferenceError           no trustworthy answer came out
    - ImpossibleObservation  the observation has probability zero, or no draw ever matched it
    - TooFewSamples          too few effective samples to say anything
    - NotConverged           chains or populations do not agree with each other
    - UnsuitableEngine       the engine asked for cannot serve this question
    - OutOfTime              the seconds given were over before there was an answer
  x NoRepair                 no change of a release that was looked for keeps the policy

Warnings, which do not stop anything:
  x LiftingWarning           the traced program differed from plain calls and moved down a tier, or its outputs depend
                             on earlier calls
  x RepeatedQuantityWarning  a list in the prior holds one random quantity several times
"""

from privug.escaping import inert


class PrivugError(Exception):
    """The root of all errors that Privug raises on purpose."""

    def __str__(self) -> str:
        return inert(super().__str__(), keep="\n")


class ArgumentError(PrivugError, ValueError):
    """An argument has the wrong type, shape or value."""


class NotAList(PrivugError, TypeError):
    """A random number is used as a list: a TypeError, because that is what programs expect of len()."""


class PriorError(ArgumentError):
    """A distribution or a table is described wrongly."""


class QuestionError(ArgumentError):
    """The prior or the secret does not fit the program."""


class ObservationError(ArgumentError):
    """The observation does not fit the output."""


class ProgramError(PrivugError):
    """The program under analysis failed on some input."""


class Untraceable(PrivugError, TypeError):
    """A program asked a random variable for one plain value, for example in an `if`."""


class InferenceError(PrivugError):
    """No trustworthy answer came out."""


class ImpossibleObservation(InferenceError):
    """The observation has probability zero, or no draw ever matched it."""


class TooFewSamples(InferenceError):
    """Too few effective samples came out to say anything."""


class NotConverged(InferenceError):
    """Chains or populations do not agree with each other; the message says what to try."""


class UnsuitableEngine(InferenceError):
    """The engine asked for cannot serve this question."""


class OutOfTime(InferenceError):
    """The seconds given were over before there was an answer; the message says what was tried."""


class NoRepair(PrivugError):
    """No change of a release that was looked for keeps the policy; the message says why."""


class LiftingWarning(UserWarning):
    """The traced program differed from plain calls and was moved down a tier."""

    def __str__(self) -> str:
        return inert(super().__str__(), keep="\n")


class RepeatedQuantityWarning(UserWarning):
    """A list in the prior holds one random quantity several times, so that all of these are equal."""

    def __str__(self) -> str:
        return inert(super().__str__(), keep="\n")
