"""Gain functions: what a guess is worth to the attacker, and how much an output adds to it."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privug.arguments import as_floats, check_takes, kinds_checked, naming, shown
from privug.errors import ArgumentError
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.joint import Joint
from privug.leakage.finite import distinct_values, pairs_of
from privug.leakage.ranges import g_leakage_range, ranging
from privug.leakage.strategy import (
    PRIOR_HINDSIGHT,
    Abstention,
    Gain,
    Strategy,
    Trial,
    Tries,
    Worths,
    try_guesses,
    unseen_output,
)
from privug.model.batch import Batch
from privug.model.node import Array, Kind

MOST_WORTHS = 20_000_000
LARGEST = 1e300  # of the numbers that a gain is described by


@dataclass(frozen=True)
class Function(Gain):
    """The worth of each guess by a function of guess and secret; the guesses are the secrets unless named."""

    worth: Callable[[Any, Any], Any]
    guesses: tuple[Any, ...] | None = None

    def on(self, joint: Joint) -> tuple[Joint, Strategy]:
        secrets = pairs_of(joint).secrets
        guesses = secrets if self.guesses is None else self.guesses
        if len(guesses) * len(secrets) > MOST_WORTHS:
            raise ArgumentError(
                f"gain: {len(guesses)} guesses for {len(secrets)} secrets are too many to tabulate; name fewer guesses"
            )
        with naming("gain: the function of guess and secret"):
            worths = [[self.worth(guess, secret) for secret in secrets] for guess in guesses]
        return joint, _tabulated(worths)


@dataclass(frozen=True)
class Matrix(Gain):
    """The worth of each guess, a row, against each secret, a column with a name."""

    table: Array
    secrets: tuple[Any, ...]

    def on(self, joint: Joint) -> tuple[Joint, Strategy]:
        columns = {secret: column for column, secret in enumerate(self.secrets)}
        found = pairs_of(joint).secrets
        missing = [secret for secret in found if secret not in columns]
        if missing:
            raise ArgumentError(
                f"gain: the matrix has no column for {shown(missing[0])}; name its columns by secrets=[...]"
            )
        return joint, _tabulated(self.table[:, [columns[secret] for secret in found]])


@dataclass(frozen=True)
class Property(Gain):
    """The worth of guessing a function of the secret."""

    function: Callable[[Any], Any]
    gain: Gain

    def on(self, joint: Joint) -> tuple[Joint, Strategy]:
        return self.gain.on(replace(joint, secret=mapped(joint.secret, self.function), prior=None, classes=None))


def identity() -> Gain:
    """One for the right guess: the gain of Bayes vulnerability.

    >>> g_vulnerability(Belief.of(list("abc"), probabilities=[0.5, 0.25, 0.25]), identity()).value
    0.5
    """
    return Tries(1)


@kinds_checked
def tries(count: int) -> Gain:
    """One if the secret is among `count` guesses, as for a password that locks after as many.

    >>> print(g_vulnerability(Belief.of(list("abc"), probabilities=[0.5, 0.25, 0.25]), tries(2)))
    0.75 (exact)
    """
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 1 <= count <= LARGEST:
        raise ArgumentError(f"tries: the number of guesses must be a positive whole number, not {shown(count)}")
    return Tries(int(count))


@kinds_checked
def distance(scale: float, metric: Callable[[Any, Any], float] | None = None) -> Gain:
    """One for the right guess, less in proportion to the distance, nothing from `scale` on.

    The metric is the absolute difference of numbers unless a function of guess and secret is given. The guesses are the
    possible secrets, among which the best guess of a number always is.

    >>> print(g_vulnerability(Belief.of([1, 2, 3], probabilities=[0.25, 0.5, 0.25]), distance(2)))
    0.75 (exact)
    """
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 < scale <= LARGEST:
        raise ArgumentError(f"distance: the scale must be a positive number, not {shown(scale)}")
    if metric is not None and not callable(metric):
        raise ArgumentError(f"distance: the metric must be a function of guess and secret, not {shown(metric)}")
    away = metric or _difference
    check_takes("distance: the metric of guess and secret", away, 2)
    return Function(lambda guess, secret: max(0.0, 1.0 - away(guess, secret) / scale))


@kinds_checked
def property_of(function: Callable[[Any], Any], gain: Gain | None = None) -> Gain:
    """One for guessing the value of a function of the secret, such as whether an age is below 18.

    With `gain` the guess of that value is worth what the gain says.

    >>> belief = Belief.of([1, 2, 3, 4], probabilities=[0.4, 0.3, 0.2, 0.1])
    >>> print(g_vulnerability(belief, property_of(lambda value: value > 1)))
    0.6 (exact)
    """
    if not callable(function):
        raise ArgumentError(f"property_of: a function of the secret is needed, not {shown(function)}")
    check_takes("property_of: the function of the secret", function, 1)
    return Property(function, identity() if gain is None else as_gain(gain))


@kinds_checked
def guess_or_abstain(penalty: float) -> Gain:
    """One for the right guess, minus the penalty for a wrong one, nothing for not guessing.

    >>> print(g_vulnerability(Belief.of(list("ab"), probabilities=[0.9, 0.1]), guess_or_abstain(5)))
    0.4 (exact)
    """
    if isinstance(penalty, bool) or not isinstance(penalty, int | float) or not 0 <= penalty <= LARGEST:
        raise ArgumentError(f"guess_or_abstain: the penalty must be a number, 0 or more, not {shown(penalty)}")
    return Abstention(float(penalty))


def as_gain(gain: Any, guesses: Sequence[Any] | None = None, secrets: Sequence[Any] | None = None) -> Gain:
    """Make a gain of a function of guess and secret, or of a matrix with a row for each guess.

    The guesses of a function are the possible secrets unless others are named. The columns of a matrix stand for
    `secrets`, which are 0, 1, 2 and so on unless named.
    """
    if isinstance(gain, Gain):
        if guesses is not None or secrets is not None:
            raise ArgumentError("gain: guesses and secrets are named for a function or a matrix only")
        return gain
    if callable(gain):
        if guesses is not None and not len(guesses):
            raise ArgumentError("gain: name at least one guess")
        check_takes("gain: a function of guess and secret", gain, 2)
        return Function(gain, None if guesses is None else tuple(guesses))
    try:
        matrix = as_floats(gain)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"gain: a Gain, a function of guess and secret, or a matrix is needed, not {shown(gain)}"
        ) from None
    if matrix.ndim != 2 or not matrix.size:
        raise ArgumentError(
            f"gain: a matrix needs a row for each guess and a column for each secret, not {shown(gain)}"
        )
    names = tuple(range(matrix.shape[1]) if secrets is None else secrets)
    if not all(isinstance(name, Hashable) for name in names):
        raise ArgumentError(f"gain: secrets must be values that the secret can have, not {shown(secrets)}")
    if len(names) != matrix.shape[1]:
        raise ArgumentError(f"gain: {matrix.shape[1]} columns need as many secrets, not {len(names)}")
    return Matrix(matrix, names)


@kinds_checked
def g_vulnerability(
    about: Belief | Joint,
    gain: Any,
    *,
    guesses: Sequence[Any] | None = None,
    secrets: Sequence[Any] | None = None,
) -> Estimate:
    """The expected worth of the attacker's best guess: of a belief, or of a joint after seeing the output.

    V_g(S) = max_w sum_s P(s) g(w, s) and V_g(S | O) = sum_o max_w sum_s P(s, o) g(w, s). The gain is one of this
    module, a function of guess and secret with a list of guesses, or a matrix (see `as_gain`); unit and range are its.
    From samples, the value is earned on samples that the guesses were not learned from: it is too low on average, a
    mistake looks safer than the truth. The interval reaches up to what is earned in hindsight, which is too high.
    Alvim, Chatzikokolakis, Palamidessi and Smith, CSF 2012.

    >>> joint = Joint.from_channel([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]])
    >>> print(g_vulnerability(joint, [[1, 0], [0, 2]]))
    1.1 (exact)
    """
    joint = unseen_output(about) if isinstance(about, Belief) else about
    return g_trial(joint, as_gain(gain, guesses, secrets), "g_vulnerability").vulnerability()


@kinds_checked
@ranging(g_leakage_range)
def g_leakage(
    joint: Joint,
    gain: Any,
    *,
    kind: str = "multiplicative",
    guesses: Sequence[Any] | None = None,
    secrets: Sequence[Any] | None = None,
) -> Estimate:
    """How much more the attacker's best guess is worth after seeing the output than before.

    `kind="multiplicative"`: log2(V_g(S | O) / V_g(S)), in bits, 0 or more, for gains that are never negative;
    `kind="additive"`: V_g(S | O) - V_g(S), 0 or more, in the gain's unit. From samples the value is too low on average:
    a mistake looks safer than the truth; the interval allows for it. Alvim et al., CSF 2012 and CSF 2014.

    >>> joint = Joint.from_channel([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]])
    >>> print(g_leakage(joint, identity()), g_leakage(joint, identity(), kind="additive"), sep="; ")
    0.585 bit (exact); 0.25 (exact)
    """
    if kind not in ("multiplicative", "additive"):
        raise ArgumentError(f"g_leakage: kind must be 'multiplicative' or 'additive', not {kind!r}")
    trial = g_trial(joint, as_gain(gain, guesses, secrets), "g_leakage")
    if kind == "additive":
        return trial.difference()
    if trial.gain.lowest < 0 or trial.mean[PRIOR_HINDSIGHT] <= 0:
        raise ArgumentError(
            "g_leakage: a ratio needs gains that are never negative and guesses that are worth something before the "
            "output is seen; use kind='additive'"
        )
    return in_bits(trial.ratio())


def g_trial(joint: Joint, gain: Gain, what: str) -> Trial:
    """Try the best guesses under a gain on a joint, if they can be learned from it."""
    if not isinstance(joint, Joint):
        raise ArgumentError(f"{what} averages over outputs: it needs a Joint such as result.joint, not {shown(joint)}")
    if joint.exact and joint.secret.kind is not Kind.DISCRETE:
        raise ArgumentError(
            f"{what}: the secret has a density; make what the attacker guesses the secret, such as "
            "secret=lambda age: age < 18, or use engine='sample'"
        )
    if not joint.exact and joint.output.kind is not Kind.DISCRETE:
        raise ArgumentError(
            f"{what}: a continuous output is never seen twice, so guesses cannot be learned from samples; round it, "
            "use engine='exact', or measure bayes_vulnerability, which learns from outputs near each other"
        )
    return try_guesses(joint, gain)


def in_bits(ratio: Estimate) -> Estimate:
    """Return the logarithm of a ratio to base 2."""
    value, low, high = (math.log2(number) for number in (ratio.value, ratio.low, ratio.high))
    return replace(ratio, value=value, low=low, high=high, unit="bit")


def mapped(belief: Belief, function: Callable[[Any], Any]) -> Belief:
    """Return the belief about a function of the quantity."""
    codes, values = distinct_values(belief.batch)
    with naming("property_of: the function of the secret"):
        images = Batch.of_values([function(value) for value in values])
    return replace(belief, batch=images.take(codes), spread=None)


def _difference(guess: Any, secret: Any) -> float:
    try:
        return float(abs(guess - secret))
    except TypeError:
        raise ArgumentError(f"distance: {shown(guess)} and {shown(secret)} are not numbers; give a metric") from None


def _tabulated(worths: Any) -> Strategy:
    try:
        table = as_floats(worths)
    except (TypeError, ValueError):
        table = np.array(np.nan)
    if table.ndim != 2 or not np.all(np.isfinite(table)):
        raise ArgumentError("gain: every guess must be worth a finite number against every secret")
    return Worths(table)
