"""Everything Privug raises on purpose.

PrivugError
  x ArgumentError            an argument has the wrong type, shape or value
    - PriorError             a distribution or a table is described wrongly
    - QuestionError          the prior or the secret does not fit the program
    - ObservationError       the observation does not fit the output
    - CheckpointError        a checkpoint is of another question, is damaged, or cannot be written
    - StudyError             a sweep, comparison or calibration is written wrongly
    - UnfitValue             a function of Privug's that a program calls got a value that it cannot take
  x NotAList                 a random number is used as a list
  x ProgramError             the program under analysis failed on some input
  x Untraceable              a program asked a random variable for one plain value
  x InferenceError           no trustworthy answer came out
    - ImpossibleObservation  the observation has probability zero, or no draw ever matched it
    - TooFewSamples          too few effective samples to say anything
    - NotConverged           chains or populations do not agree with each other
    - UnsuitableEngine       the engine asked for cannot serve this question
    - OutOfTime              the seconds given were over before there was an answer
  x ClusterError             the cluster that work was sent to cannot do it
  x NoRepair                 no change of the release satisfies the policy

Warnings, which do not stop anything:
  x LiftingWarning           the traced program differed from plain calls and moved down a tier, or its outputs depend
                             on earlier calls
  x RepeatedQuantityWarning  a list in the prior holds one random quantity several times
  x CheckpointWarning        a checkpoint cannot be written any more; the run goes on without it
"""

from privug.escaping import inert


class PrivugError(Exception):
    """The root of all errors that Privug raises on purpose.

    >>> import privug as pv
    >>> try:
    ...     pv.Normal(0, sd=-1)
    ... except pv.PrivugError as error:
    ...     print(error)
    Normal: sd must be a positive number, not -1
    """

    def __str__(self) -> str:
        return inert(super().__str__(), keep="\n")


class ArgumentError(PrivugError, ValueError):
    """An argument has the wrong type, shape or value.

    >>> import privug as pv
    >>> try:
    ...     pv.configure(workers=0)
    ... except pv.ArgumentError as error:
    ...     print(error)
    workers must be a positive integer below 2**63, not 0
    """


class NotAList(PrivugError, TypeError):
    """A random number is used as a list: a TypeError, because that is what programs expect of len()."""


class PriorError(ArgumentError):
    """A distribution or a table is described wrongly.

    >>> import privug as pv
    >>> try:
    ...     pv.Choice(["ill", "healthy"], p=[0.2, 0.7])
    ... except pv.PriorError as error:
    ...     print(error)
    Choice: the probabilities must sum to one, but are off by 0.1
    """


class QuestionError(ArgumentError):
    """The prior or the secret does not fit the program.

    >>> import privug as pv
    >>> try:
    ...     pv.Attack(lambda x: x, prior={"y": pv.Bernoulli(0.5)}, secret="y")
    ... except pv.QuestionError as error:
    ...     print(error)
    prior names 'y', which is not a parameter of the program; it has 'x'
    """


class ObservationError(ArgumentError):
    """The observation does not fit the output.

    >>> import privug as pv
    >>> try:
    ...     pv.near(55.3, within=0)
    ... except pv.ObservationError as error:
    ...     print(error)
    near: within must be positive, not 0; for an exact value write pv.equals(55.3)
    """


class CheckpointError(ArgumentError):
    """A checkpoint is of another question, is damaged, is in use, or cannot be written.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda x: x, prior={"x": pv.Bernoulli(0.5)}, secret="x")
    >>> try:
    ...     attack.run(checkpoint="no such folder/run.ckpt")
    ... except pv.CheckpointError as error:
    ...     print("there is no folder" in str(error))
    True
    """


class StudyError(ArgumentError):
    """A sweep, comparison or calibration is written wrongly, so that none of its attacks can have a number.

    What is wrong with one attack alone is told in its cell instead.

    >>> import privug as pv
    >>> try:
    ...     pv.sweep(lambda epsilon: epsilon, epsilon=[0.1, 1])
    ... except pv.StudyError as error:
    ...     print(error)
    attack_for must return a pv.Attack, not 0.1
    """


class UnfitValue(ArgumentError, TypeError):
    """A function of Privug's that programs call got a value that it cannot take: the program fails on that input."""


def is_own(error: BaseException) -> bool:
    """Return whether an error says that Privug cannot go on, rather than that a program failed on some input."""
    return isinstance(error, PrivugError) and not isinstance(error, UnfitValue)


class ProgramError(PrivugError):
    """The program under analysis failed on some input.

    >>> import privug as pv
    >>> try:
    ...     pv.Attack(lambda x: 1 // x, prior={"x": pv.Bernoulli(0.5)}, secret="x").run()
    ... except pv.ProgramError as error:
    ...     print(error)
    the program failed with ZeroDivisionError: integer division or modulo by zero
      on the input x = 0
      Give pv.Attack(..., on_error="exclude") to leave such inputs out and have them counted.
    """


class Untraceable(PrivugError, TypeError):
    """A program asked a random variable for one plain value, for example in an `if`.

    >>> import privug as pv
    >>> try:
    ...     bool(pv.Uniform(0, 1) < 0.5)
    ... except pv.Untraceable as error:
    ...     print(str(error).partition(";")[0])
    a condition (if, while, and, or, not, in) needs one plain value, but a random variable stands for many
    """


class InferenceError(PrivugError):
    """No trustworthy answer came out.

    >>> import privug as pv
    >>> try:
    ...     pv.Attack(lambda x: x, prior={"x": pv.Bernoulli(0.5)}, secret="x").run(pv.equals(2))
    ... except pv.InferenceError as error:
    ...     print(error)
    this observation is impossible: none of the 2 states of the inputs agrees with it (the output is 2)
    """


class ImpossibleObservation(InferenceError):
    """The observation has probability zero, or no draw ever matched it.

    >>> import privug as pv
    >>> try:
    ...     pv.Attack(lambda x: x, prior={"x": pv.Bernoulli(0.5)}, secret="x").run(pv.equals(2))
    ... except pv.ImpossibleObservation as error:
    ...     print(error)
    this observation is impossible: none of the 2 states of the inputs agrees with it (the output is 2)
    """


class TooFewSamples(InferenceError):
    """Too few effective samples came out to say anything.

    >>> import privug as pv
    >>> product = pv.Attack(lambda a, b: a * b, prior={"a": pv.Uniform(0, 1), "b": pv.Uniform(0, 1)}, secret="a")
    >>> try:
    ...     product.run(pv.such_that(lambda output: output > 0.95), engine="sample", budget=1000)
    ... except pv.TooFewSamples as error:
    ...     print("too few draws agree with what was seen")
    too few draws agree with what was seen
    """


class NotConverged(InferenceError):
    """Chains or populations do not agree with each other; the message says what to try.

    >>> import privug as pv
    >>> issubclass(pv.NotConverged, pv.InferenceError)
    True
    """


class UnsuitableEngine(InferenceError):
    """The engine asked for cannot serve this question.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda x, y: x / (x + y), {"x": pv.Uniform(0, 1), "y": pv.Uniform(0, 1)}, secret="x")
    >>> try:
    ...     attack.run(pv.near(0.5, within=0.1), engine="exact")
    ... except pv.UnsuitableEngine as error:
    ...     print(str(error).partition(": ")[0], "...", str(error).rpartition("; ")[2])
    engine='exact' cannot answer this ... engine='sample' can
    """


class OutOfTime(InferenceError):
    """The seconds given were over before there was an answer; the message says what was tried.

    >>> import privug as pv
    >>> total = pv.Attack(lambda xs: sum(xs), {"xs": pv.Array(pv.LogNormal(0, sd=1), 500)}, secret=lambda xs: xs[0])
    >>> try:
    ...     total.run(pv.between(1e6, 2e6), engine="rare", seconds=1e-3)
    ... except pv.OutOfTime as error:
    ...     print("time was up before there was an answer")
    time was up before there was an answer
    """


class ClusterError(PrivugError, RuntimeError):
    """The cluster that work was sent to cannot do it: it does not answer, has no workers, or lacks the program.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda x: len(str(x)), prior={"x": pv.Normal(0, sd=1)}, secret="x")
    >>> try:
    ...     attack.run(on="tcp://127.0.0.1:1")  # doctest: +SKIP
    ... except pv.ClusterError as error:
    ...     print(error)
    """


class NoRepair(PrivugError):
    """No change of the release, of the kinds searched, satisfies the policy; the message says why.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda a, b: a + b, {"a": pv.Bernoulli(0.5), "b": pv.Bernoulli(0.5)}, secret="a")
    >>> try:
    ...     pv.policy.enforce(attack, pv.policy.max_belief(at_most=0.4), repair="merge")
    ... except pv.policy.NoRepair as error:
    ...     print(str(error).split(":")[0])
    no release can satisfy this policy
    """


class LiftingWarning(UserWarning):
    """The traced program differed from plain calls and was moved down a tier.

    >>> import privug as pv
    >>> import warnings
    >>> calls = []
    >>> def forgetful(x):
    ...     calls.append(x)
    ...     return len(calls)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = pv.Attack(forgetful, prior={"x": pv.Bernoulli(0.5)}, secret="x").run(engine="sample", samples=100)
    >>> caught[0].category.__name__
    'LiftingWarning'
    """

    def __str__(self) -> str:
        return inert(super().__str__(), keep="\n")


class RepeatedQuantityWarning(UserWarning):
    """A list in the prior holds one random quantity several times, so that all of these are equal.

    >>> import warnings
    >>> import privug as pv
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = pv.Attack(lambda xs: sum(xs), prior={"xs": [pv.Bernoulli(0.5)] * 2}, secret=lambda xs: xs[0])
    >>> caught[0].category.__name__
    'RepeatedQuantityWarning'
    """

    def __str__(self) -> str:
        return inert(super().__str__(), keep="\n")


class CheckpointWarning(UserWarning):
    """A checkpoint cannot be written any more, because the disk is full, say; the run goes on without it.

    >>> import privug as pv
    >>> issubclass(pv.CheckpointWarning, UserWarning)
    True
    """
