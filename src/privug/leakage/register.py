"""The register of measures, the range that each can have, and the leakage table, with what each means for a person.

A measure registers itself where it is defined, and is then found by its name: by policies, studies, the command line
and the leakage table: every measure that makes sense for a question. Estimates and their intervals keep to the range.

A discrete secret whose prior is known has a known entropy and a known chance of being guessed unseen, and these bound
what an output can add. Of samples alone, the number of different values is taken as known if another one, to be missed,
would have to be much rarer than all that were seen.
"""

import inspect
import math
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial, wraps
from typing import Any, NamedTuple, ParamSpec

import numpy as np
import scipy

from privug.arguments import check_kind, is_one_of, shown
from privug.digits import how_many, number_text, percent_text
from privug.errors import ArgumentError, InferenceError, PrivugError
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.joint import Joint
from privug.leakage.finite import Shares, aligned, alike_shares, shares_of
from privug.leakage.plugin import rarest_missed
from privug.model.node import Kind
from privug.pictures import plots

NOTHING = 1e-9  # bits, or shares; less is rounding
NUMERICAL_ERROR = 1e-9  # of exact measures, with room to spare: they are sums of up to millions of terms
FEWEST_ROUNDINGS = 16  # in a sum of few terms: each is a product of some probabilities, a quotient and a logarithm
NEGLIGIBLE_SHARE = 0.01  # of the rarest value seen: a value that is rarer is taken not to exist

Arguments = ParamSpec("Arguments")
Measure = Callable[Arguments, Estimate]


class Of(StrEnum):
    """What a measure takes: one belief; those before and after; secret and output together; the channel of these."""

    BELIEF = "belief"
    BELIEFS = "beliefs"
    JOINT = "joint"
    CHANNEL = "channel"


class Placement(NamedTuple):
    """A place of a measure in the leakage table: its order, what it is about there, and what the number means.

    `meaning` is a sentence with {percent} or {tries} in it, or a function of the estimate and the prior belief.
    """

    order: int
    about: str
    meaning: str | Callable[[Estimate, Belief], str]
    discrete: bool = False
    """Whether it makes sense for discrete secrets alone."""
    label: str = ""
    """What it is called there, where that is not its name."""


class Registered(NamedTuple):
    """A measure, what it takes, and its places in the leakage table."""

    function: Callable[..., Estimate]
    of: Of
    rows: tuple[Placement, ...]


REGISTER: dict[str, Registered] = {}


def measures(of: str | None = None) -> list[str]:
    """Return the names of the measures that take a joint ("joint"), and so on; of all, if nothing is said.

    The others are of one belief ("belief"), of those before and after an observation ("beliefs"), and of a channel or
    the channel of a joint ("channel"). Measures that need an argument besides are not among them.

    >>> measures("beliefs")
    ['cohens_d', 'entropy_drop', 'jensen_shannon', 'kl_divergence', 'total_variation']
    """
    if of is not None and not is_one_of(of, [*Of]):
        raise ArgumentError(f"of must be one of {', '.join(map(repr, map(str, Of)))}, not {shown(of)}")
    return sorted(name for name, known in REGISTER.items() if of is None or known.of == of)


def measure_of_change(name: str, prior: Belief, posterior: Belief) -> Estimate:
    """Return one of the measures that compare the beliefs before and after."""
    return REGISTER[name].function(prior=prior, posterior=posterior)


class Range(NamedTuple):
    """The numbers that a measure can be."""

    low: float
    high: float


def ranging(
    range_of: Callable[..., Range] | Range, *, difference: bool = False
) -> Callable[[Measure[Arguments]], Measure[Arguments]]:
    """Return a decorator that keeps a measure within its range, which may depend on what it is a measure of.

    An exact value far out of it is a mistake, not rounding. One that is a `difference` of sums, or the logarithm of
    their ratio, is nothing where rounding cannot tell it from that: sums over n probabilities are off by up to n eps.

    >>> @ranging(PROBABILITY)
    ... def risk(right):
    ...     return Estimate.exactly(1 - right)
    >>> print(risk(1 + 3e-15))
    0 (exact)
    """

    def decorated(measure: Measure[Arguments]) -> Measure[Arguments]:
        signature = inspect.signature(measure)

        @wraps(measure)
        def kept(*arguments: Arguments.args, **options: Arguments.kwargs) -> Estimate:
            found = measure(*arguments, **options)
            if difference and found.exact and abs(found.value) <= _rounding(arguments):
                found = replace(found, value=0.0, low=min(found.low, 0.0), high=max(0.0, found.high - abs(found.value)))
            given = signature.bind(*arguments, **options)
            low, high = range_of if isinstance(range_of, Range) else range_of(*given.args, **given.kwargs)
            slack = NUMERICAL_ERROR + (found.high - found.low if math.isfinite(found.value) else 0.0)
            if found.exact and not low - slack <= found.value <= high + slack:
                raise InferenceError(
                    f"{measure.__name__} came out as {found.value:g}, which it cannot be: please report this as a "
                    "mistake of Privug's, with the attack"
                )
            return found.clipped(low, max(low, high))

        return kept

    return decorated


def measure(
    of: Of, range_of: "Callable[..., Range] | Range", *rows: Placement, difference: bool = False
) -> Callable[[Measure[Arguments]], Measure[Arguments]]:
    """Return a decorator that registers a measure, and keeps it within its range."""

    def decorated(function: Measure[Arguments]) -> Measure[Arguments]:
        kept = ranging(range_of, difference=difference)(function)
        REGISTER[function.__name__] = Registered(kept, of, rows)
        return kept

    return decorated


def _rounding(arguments: tuple[Any, ...]) -> float:
    """Return how far rounding may move the sums over what a measure was given, whose terms add up to one."""
    terms = FEWEST_ROUNDINGS
    for one in arguments:
        if isinstance(one, Joint):
            terms += len(one.secret.batch) if one.channel is None else one.channel.states
        elif isinstance(one, Belief):
            terms += len(one.batch)
    return terms * sys.float_info.epsilon


PROBABILITY = Range(0.0, 1.0)
CHANGE = Range(-1.0, 1.0)
POSITIVE = Range(0.0, math.inf)
ANY = Range(-math.inf, math.inf)


def entropy_range(belief: Belief, *_: Any) -> Range:
    """From nothing to the logarithm of the number of values; of densities anything."""
    if belief.kind is not Kind.DISCRETE:
        return Range(-math.inf, math.inf)
    known = _known(belief)
    if known is None or known.error:
        return Range(0.0, math.log2(_values(belief)))
    bits = max(0.0, known.summed(scipy.special.entr(known.probability))) / math.log(2)
    return Range(bits, bits)


def renyi_range(belief: Belief, *_: Any, **__: Any) -> Range:
    """From nothing to the logarithm of the number of values."""
    return Range(0.0, math.log2(_values(belief)))


def min_entropy_range(belief: Belief) -> Range:
    """What the chance of guessing a value is, in bits."""
    low, high = vulnerability_range(belief)
    return Range(-math.log2(high), math.inf if low == 0 else -math.log2(low))


def information_range(joint: Joint, *_: Any, **__: Any) -> Range:
    """From nothing to the smaller entropy."""
    return Range(0.0, min(_most_bits(_prior(joint)), _most_bits(joint.output)))


def rest_range(joint: Joint, *_: Any, **__: Any) -> Range:
    """From what the entropy of the output cannot explain to the entropy of the secret."""
    low, high = entropy_range(_prior(joint))
    return Range(max(0.0, low - _most_bits(joint.output)) if math.isfinite(low) else low, high)


def drop_range(prior: Belief, posterior: Belief) -> Range:
    """The entropy before less that after, as far as these are known."""
    before, after = entropy_range(prior), entropy_range(posterior)
    return Range(before.low - after.high, before.high - after.low)


def kl_range(posterior: Belief, prior: Belief) -> Range:
    """From nothing to the surprise at the least likely value of a known prior."""
    known = _known(prior)
    if known is None or known.error or posterior.kind is not Kind.DISCRETE:
        return POSITIVE
    after, before = aligned([shares_of(posterior), shares_of(prior)])
    possible = bool(np.all(before.probability[after.probability > 0] > 0))
    return Range(0.0, -math.log2(known.probability.min()) if possible else math.inf)


def vulnerability_range(about: Belief | Joint) -> Range:
    """Of a belief, from that of equally likely values on; of a joint, from that of the secret before on."""
    if isinstance(about, Joint):
        low, high = vulnerability_range(_prior(about))
        return Range(low, min(1.0, _values(about.output) * high))
    known = _known(about)
    if known is None:
        return Range(1 / _values(about), 1.0)
    likeliest = min(1.0, float(known.probability.max()))
    return Range(max(0.0, likeliest - known.error), min(1.0, likeliest + known.error))


def risk_range(about: Belief | Joint, *_: Any, **__: Any) -> Range:
    """What is left of certainty."""
    low, high = vulnerability_range(about)
    return Range(1 - high, 1 - low)


def ratio_range(joint: Joint) -> Range:
    """From one to the number of outputs, or to what makes the guess certain."""
    before = vulnerability_range(_prior(joint)).low
    return Range(1.0, min(_values(joint.output), math.inf if before == 0 else 1 / before))


def g_leakage_range(joint: Joint, *_: Any, kind: str = "multiplicative", **__: Any) -> Range:
    """A ratio is at most the number of secrets or of outputs, whatever the gain (Alvim et al., CSF 2012)."""
    if kind == "additive":
        return POSITIVE
    return Range(0.0, math.log2(min(_values(_prior(joint)), _values(joint.output))))


def difference_range(joint: Joint) -> Range:
    """From nothing to what is left before the output is seen."""
    return Range(0.0, 1 - vulnerability_range(_prior(joint)).low)


def guesses_range(about: Belief | Joint) -> Range:
    """From one to what equally likely values need; after an output, to what is needed before it."""
    belief = _prior(about) if isinstance(about, Joint) else about
    known = _known(belief)
    if known is None or known.error:
        return Range(1.0, (_values(belief) + 1) / 2)
    needed = max(1.0, _guesses(known))
    return Range(1.0 if isinstance(about, Joint) else needed, needed)


def pointwise_range(joint: Joint) -> Range:
    """From an output after which all values are equally likely to one that gives the secret away."""
    low, high = vulnerability_range(_prior(joint))
    return Range(-math.log2(high * _values(_prior(joint))), math.inf if low == 0 else -math.log2(low))


def belief_range(joint: Joint) -> Range:
    """At least as sure as before, for some output."""
    return Range(vulnerability_range(_prior(joint)).low, 1.0)


def capacity_range(channel: Any) -> Range:
    """The same ratio, for all priors."""
    if isinstance(channel, Joint):
        secrets, outputs = _values(_prior(channel)), _values(channel.output)
    else:
        secrets, outputs = np.shape(getattr(channel, "matrix", channel))
        outputs = outputs if getattr(channel, "discrete", True) else math.inf
    return Range(1.0, min(secrets, outputs))


def range_in_bits(range_of: Callable[..., Range]) -> Callable[..., Range]:
    """Return the range of the logarithm of a ratio, given that of the ratio."""
    return lambda about: Range(0.0, math.log2(range_of(about).high))


def _most_bits(belief: Belief) -> float:
    return entropy_range(belief).high


def _prior(joint: Joint) -> Belief:
    """Return the belief about the secret before the output is seen, as well as that is known."""
    known = joint.prior is not None and joint.prior.kind is joint.secret.kind
    return joint.prior if joint.prior is not None and known else joint.secret


def _known(belief: Belief) -> Shares | None:
    """Return the probabilities of a discrete quantity, if they are known."""
    return alike_shares(belief) if belief.exact and belief.kind is Kind.DISCRETE else None


def _guesses(known: Shares) -> float:
    """Return how many guesses are needed on average, the likeliest value first."""
    order = np.argsort(-known.probability, kind="stable")
    copies = np.ones(len(known)) if known.copies is None else known.copies[order].astype(float)
    mean_rank = np.cumsum(copies) - (copies - 1) / 2
    return float((known.probability[order] * copies) @ mean_rank)


def _values(belief: Belief) -> float:
    """Return how many values a quantity can have, infinitely many if that is not known."""
    if belief.kind is not Kind.DISCRETE:
        return math.inf
    known = _known(belief)
    if known is not None:
        return math.inf if known.error else known.count
    seen = shares_of(belief)
    # Samples that are all the same do not show what else there may be: a leak would sit in the very values not seen.
    well_known = len(seen) > 1 and rarest_missed(seen) <= NEGLIGIBLE_SHARE * float(seen.probability.min())
    return len(seen) if well_known else math.inf


WIDTH = 110


@dataclass(frozen=True)
class LeakageRow:
    """One measure: its name as in `pv.leakage`, what it is about, its value and one sentence on what that means.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda x, y: x + y, prior={"x": pv.Bernoulli(0.5), "y": pv.Bernoulli(0.5)}, secret="x")
    >>> row = next(row for row in attack.run(pv.equals(2)).leakage() if row.name == "mutual_information")
    >>> row.estimate.value, row.estimate.unit
    (0.5, 'bit')
    """

    name: str
    about: str
    estimate: Estimate
    meaning: str

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain values."""
        return {"measure": self.name, "about": self.about, **self.estimate.to_dict(), "meaning": self.meaning}


@dataclass(frozen=True)
class LeakageTable:
    """The measures of one question. `left_out` says why others are missing.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda x, y: x + y, prior={"x": pv.Bernoulli(0.5), "y": pv.Bernoulli(0.5)}, secret="x")
    >>> attack.run(pv.equals(2)).leakage()["mutual_information"].value
    0.5
    """

    rows: tuple[LeakageRow, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    warning: str = ""
    """Why there are no measures that average over outputs, if there are none."""

    def __iter__(self) -> Iterator[LeakageRow]:
        return iter(self.rows)

    def __getitem__(self, name: str) -> Estimate:
        """Return a measure by its name; where it stands before and after, the latter."""
        found = [row.estimate for row in self.rows if row.name == name]
        if not found:
            reasons = dict(self.left_out)
            raise KeyError(f"{name}: {reasons.get(name, 'not in this table')}")
        return found[-1]

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the rows as plain values."""
        return [row.to_dict() for row in self.rows]

    def plot(self, ax: Any = None) -> Any:
        """Draw the measures as bars, one panel for each unit; `ax` is matplotlib axes, one for each, or a path."""
        rows = [(f"{row.name.replace('_', ' ')} {row.about}".rstrip(), row.estimate) for row in self.rows]
        return plots().bars(rows, ax)

    def __str__(self) -> str:
        cells = [(f"{row.name} {row.about}".strip(), f"{row.estimate.number()} {row.estimate.unit}") for row in self]
        first = max((len(name) for name, _ in cells), default=0)
        second = max((len(number) for _, number in cells), default=0)
        lines = []
        for (name, number), row in zip(cells, self.rows, strict=True):
            head = f"  {name:<{first}}  {number:>{second}}  "
            lines += textwrap.wrap(row.meaning, WIDTH, initial_indent=head, subsequent_indent=" " * len(head))
        return "\n".join(lines)


def leakage_table(joint: Joint, posterior: Belief | None = None, prior: Belief | None = None) -> LeakageTable:
    """Compute the measures that make sense for a joint; with a posterior, those of the observation too.

    `prior` is the belief about the secret before, where that is known better than from the joint.

    >>> table = leakage_table(Joint.from_channel([0.5, 0.5], [[1, 0], [0, 1]]))
    >>> print(table["mutual_information"], table["bayes_risk"])
    1 bit (exact) 0 (exact)
    """
    check_kind("leakage_table", "joint", joint, (Joint,))
    for name, belief in (("posterior", posterior), ("prior", prior)):
        check_kind("leakage_table", name, belief, (Belief, type(None)))
    before = prior if prior is not None and prior.kind is joint.secret.kind else joint.secret
    return _computed(before, posterior, joint)


def leakage_of_observation(prior: Belief, posterior: Belief | None, reason: str) -> LeakageTable:
    """Compute the measures of the observation alone, where for some reason there is no joint."""
    table = _computed(prior, posterior, None)
    return replace(
        table,
        left_out=(*table.left_out, ("mutual_information", reason)),
        warning=f"What outputs tell on average is not known: {reason}.",
    )


def _computed(prior: Belief, posterior: Belief | None, joint: Joint | None) -> LeakageTable:
    """Compute the measures that can be computed, in the order of their places, and say why others cannot."""
    rows: list[LeakageRow] = []
    left_out: list[tuple[str, str]] = []
    for name, row, known in sorted(_places(prior), key=lambda place: place[1].order):
        compute = _computation(row, known, prior, posterior, joint)
        if compute is None:
            continue
        name, about = _called(row.label or name, row.about, prior)
        try:
            estimate = compute()
        except PrivugError as error:
            left_out.append((name, str(error)))
            continue
        if estimate.low <= 0 and estimate.high == math.inf and estimate.value < math.inf:
            left_out.append((name, "the samples are too few to say anything: it may be zero, or as large as any"))
            continue
        rows.append(LeakageRow(name, about, estimate, _meaning(row, estimate, prior)))
    return LeakageTable(tuple(rows), tuple(left_out))


def _places(prior: Belief) -> Iterator[tuple[str, Placement, Registered]]:
    """Yield the places in the table that make sense for a secret."""
    for name, known in REGISTER.items():
        for row in known.rows:
            if prior.kind is Kind.DISCRETE or not row.discrete:
                yield name, row, known


def _computation(
    row: Placement, known: Registered, prior: Belief, posterior: Belief | None, joint: Joint | None
) -> Callable[[], Estimate] | None:
    """Return how a measure is computed at a place: of this observation, or of all outputs; None if there is no such."""
    if row.about == "here":
        if posterior is None:
            return None
        if known.of is Of.BELIEF:
            return partial(known.function, posterior)
        return partial(known.function, prior=prior, posterior=posterior)
    if joint is None:
        return None
    return partial(known.function, prior if row.about == "before" else joint)


def _called(name: str, about: str, prior: Belief) -> tuple[str, str]:
    """Return what a measure is called, and about: entropies of continuous secrets are differential ones."""
    if prior.kind is Kind.DISCRETE or not name.endswith("entropy"):
        return name, about
    return ("differential_entropy", about) if name == "entropy" else (name, f"{about} (differential)")


def _meaning(row: Placement, estimate: Estimate, prior: Belief) -> str:
    """Return a sentence with the value in it, as a number or as a percentage."""
    if not isinstance(row.meaning, str):
        return row.meaning(estimate, prior)
    tries = how_many(number_text(estimate.value), "try", "tries")
    return row.meaning.format(tries=tries, percent=percent_text(estimate.value))
