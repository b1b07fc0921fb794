"""Audit: does a mechanism keep what it promises on given neighbouring inputs?"""

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from privug.arguments import LARGEST, is_number, kinds_checked, shortened, shown
from privug.errors import ArgumentError, ProgramError, UnsuitableEngine
from privug.estimate import CONFIDENCE, Estimate
from privug.mechanisms.branching import Arguments, compare_paths
from privug.mechanisms.checks import check_number, check_whole
from privug.mechanisms.comparison import compare, compare_certain
from privug.mechanisms.events import lower_bound
from privug.mechanisms.guarantee import Guarantee
from privug.mechanisms.mechanism import promised
from privug.model.batch import Column
from privug.model.operations import SampleFailure
from privug.model.plan import Plan
from privug.model.structure import flatten
from privug.model.variable import RandomVariable, as_node
from privug.pictures import plots
from privug.program.lifting import apply
from privug.program.staged import OtherForm, taken_apart

ENGINES = ("auto", "exact", "sample")
SLACK = 1e-9  # by how much rounding may make an exact result exceed a promise that is kept exactly
TRIED = 8  # draws of an output that are looked at for NaN
DELTA = 1e-6  # where a promise of rho is tested on samples


@dataclass(frozen=True)
class Finding:
    """How far apart the outputs for two neighbouring inputs are, against what was promised for them.

    >>> from privug import mechanisms
    >>> found = mechanisms.audit(mechanisms.laplace(lambda x: x, sensitivity=1, epsilon=0.5), [(0, 2)])
    >>> found.worst.broken, found.worst.measured.value, found.worst.limit
    (True, 1.0, 0.5)
    """

    one: Any
    other: Any
    measured: Estimate
    limit: float

    @property
    def broken(self) -> bool:
        """Whether the promise is broken: surely if computed, with the audit's confidence if sampled."""
        return self.measured.low > self.limit * (1 + SLACK) + SLACK

    @property
    def bound(self) -> bool:
        """Whether this is a lower bound only, from samples or from cells of outputs."""
        return self.measured.high != self.measured.low


@dataclass(frozen=True)
class Audit:
    """What an audit found: one finding for each pair of neighbours.

    >>> from privug import mechanisms
    >>> found = mechanisms.audit(mechanisms.laplace(lambda x: x, sensitivity=1, epsilon=0.5), [(0, 1)])
    >>> found.broken, found.measured.value
    (False, 0.5)
    """

    name: str
    promise: Guarantee
    findings: tuple[Finding, ...]

    @property
    def worst(self) -> Finding:
        """The pair of neighbours that the mechanism tells apart best."""
        return max(self.findings, key=lambda finding: finding.measured.low)

    @property
    def measured(self) -> Estimate:
        """The smallest epsilon (or rho) that fits what was found; a lower bound where it comes from samples."""
        return self.worst.measured

    @property
    def broken(self) -> bool:
        """Whether some pair shows that the promise is broken."""
        return any(finding.broken for finding in self.findings)

    @property
    def verdict(self) -> str:
        """What follows, in words."""
        worst, pairs = self.worst, len(self.findings)
        known = f"{'this pair' if pairs == 1 else f'these {pairs} pairs'} of neighbours"
        if self.promise.is_empty:
            return f"nothing is promised; {self._found()} for {known}"
        if self.broken:
            shown = f"{shortened(worst.one, 60)} and {shortened(worst.other, 60)}"
            return f"BROKEN: {self._found()}, more than {worst.limit:.6g}, for the neighbours {shown}"
        if any(finding.bound for finding in self.findings):
            return f"no violation found for {known}; a lower bound cannot show that there is none"
        return f"kept for {known}"

    def _found(self) -> str:
        what = "epsilon" if self.measured.unit == "nat" else "rho"
        number = "infinite" if math.isinf(self.measured.value) else f"{self.measured.value:.6g}"
        return f"{what} is {'at least ' if self.worst.bound else ''}{number}"

    def __str__(self) -> str:
        how = "exact" if self.measured.exact else self.measured.method
        if self.worst.bound and self.measured.confidence < 1:
            how = f"{self.measured.confidence:.0%} sure, by {how}"
        lines = [f"Audit of {self.name!r}", f"  promised  {self.promise}", f"  measured  {self._found()} ({how})"]
        return "\n".join([*lines, f"  verdict   {self.verdict}"])

    def plot(self, ax: Any = None) -> Any:
        """Draw how far apart each pair of neighbours is, against what was promised; `ax` is axes or a path."""
        rows = [
            (f"{shortened(one.one, 15)} and {shortened(one.other, 15)}", one.measured, one.limit)
            for one in sorted(self.findings, key=lambda finding: -finding.measured.value)
        ]
        return plots().bars(rows, ax, "epsilon" if self.measured.unit == "nat" else "rho")

    def to_dict(self) -> dict[str, Any]:
        """Return what was found as plain values."""
        return {
            "mechanism": self.name,
            "promise": {"epsilon": self.promise.epsilon, "delta": self.promise.delta, "rho": self.promise.rho},
            "measured": self.measured.value,
            "lower_bound": self.worst.bound,
            "broken": self.broken,
            "verdict": self.verdict,
        }


@kinds_checked
def audit(
    mechanism: Callable[..., Any],
    neighbours: Sequence[tuple[Any, Any]],
    *,
    guarantee: Guarantee | None = None,
    engine: str = "auto",
    samples: int = 100_000,
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> Audit:
    """Measure how far apart a mechanism's outputs are for neighbouring inputs, against what it promises.

    `neighbours` lists pairs of inputs that differ in one person's data: the value of the only parameter, or dicts of
    all of them. Where the outputs' distributions are known, the epsilon of a pair is exact, in exact arithmetic; so it
    is for programs that compare what they draw with `pv.sample`, path by path. Of densities of any form it is a lower
    bound from fine cells of outputs. Else, and with `engine="sample"`, it is a
    lower bound from `samples` runs on each input, which also sees what floating-point arithmetic does to the noise.
    An audit can break a promise; it proves it for the given pairs only. `guarantee` is the promise of a program that
    is not a mechanism of Privug's.

    >>> from privug.mechanisms import laplace
    >>> total = laplace(sum, sensitivity=1, epsilon=0.5)
    >>> print(audit(total, [([0, 1], [1, 1]), ([0, 1], [0, 3])]))
    Audit of 'sum with Laplace noise'
      promised  0.5-differentially private
      measured  epsilon is 1 (exact)
      verdict   BROKEN: epsilon is 1, more than 0.5, for the neighbours [0, 1] and [0, 3]
    """
    if engine not in ENGINES:
        raise ArgumentError(f"audit: engine must be one of {', '.join(map(repr, ENGINES))}, not {engine!r}")
    check_whole("audit", "samples", samples, 100)
    check_whole("audit", "seed", seed, 0)
    check_number("audit", "confidence", confidence, 0.5, 1 - 1e-12)
    pairs = _pairs(neighbours)
    promise = _promise(mechanism, guarantee)
    findings = []
    for place, pair in enumerate(pairs):
        arguments = _arguments(mechanism, pair[0]), _arguments(mechanism, pair[1])
        lifted = [_output(mechanism, of_one, data) for of_one, data in zip(arguments, pair, strict=True)]
        sampled = partial(_sampled, promise, samples, 1 - (1 - confidence) / len(pairs), [seed, place])
        question = _Pair(mechanism, pair, arguments, promise, engine, sampled)
        try:
            findings.append(question.finding([taken_apart(output) for output in lifted]))
        except OtherForm:  # such as now a number, and now None
            findings.append(question.finding(lifted))
    return Audit(str(getattr(mechanism, "__name__", "program")), promise, tuple(findings))


@dataclass(frozen=True)
class _Pair:
    """Two neighbouring inputs, and how what they lead to is compared."""

    mechanism: Callable[..., Any]
    data: tuple[Any, Any]
    arguments: tuple[Arguments, Arguments]
    promise: Guarantee
    engine: str
    sampled: Callable[[Sequence[Any]], tuple[Estimate, float]]

    def finding(self, outputs: Sequence[Any]) -> Finding:
        """Compare two outputs: exactly where that can be done and was asked for, else on samples."""
        promise, (one, other) = self.promise, outputs
        exact = compare_certain(one, other) if self.engine == "sample" else compare(one, other, promise)
        if exact is None and self.engine != "sample":
            exact = _by_paths(self.mechanism, self.arguments, promise, self.engine == "exact")
        if exact is None:
            return Finding(*self.data, *self.sampled(outputs))
        limit = promise.rho if math.isinf(promise.epsilon) and promise.rho is not None else promise.epsilon
        return Finding(*self.data, exact, limit)


def _promise(mechanism: Callable[..., Any], guarantee: Any) -> Guarantee:
    if guarantee is not None and not isinstance(guarantee, Guarantee):
        raise ArgumentError(f"audit: guarantee must be a pv.mechanisms.Guarantee, not {shown(guarantee)}")
    return promised(mechanism) if guarantee is None else guarantee


def _pairs(neighbours: Any) -> list[tuple[Any, Any]]:
    pairs = list(neighbours) if isinstance(neighbours, Sequence) and not isinstance(neighbours, str) else []
    if not pairs or not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
        raise ArgumentError(
            "audit: neighbours must be a list of pairs of inputs, such as [(data, other_data)], "
            f"not {shown(neighbours)}"
        )
    return [tuple(pair) for pair in pairs]


def _arguments(mechanism: Callable[..., Any], data: Any) -> Arguments:
    """Return the arguments of a call on one input: the only one, or all by their names."""
    try:
        parameters = list(inspect.signature(mechanism).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    needed = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    if len(needed) <= 1:
        return [data], {}
    if not isinstance(data, dict) or set(data) != {parameter.name for parameter in needed}:
        names = ", ".join(repr(parameter.name) for parameter in needed)
        raise ArgumentError(f"audit: the program has several inputs; write each neighbour as a dict with {names}")
    return [], data


def _output(mechanism: Callable[..., Any], arguments: Arguments, data: Any) -> Any:
    """Return the output for one input: what is random in it is the mechanism's own randomness."""
    output = apply(mechanism, *arguments).output
    if _is_nan(output):
        raise ProgramError(
            f"audit: the output for {shown(data)} is NaN, so that how far apart outputs are is undefined; write None "
            "if math.isnan(x) else x to make that a value of its own"
        )
    return output


def _is_nan(output: Any) -> bool:
    """Say whether a number in an output is NaN in the first draws."""
    leaves = [leaf for leaf in flatten(output)[1] if isinstance(leaf, float | np.ndarray | RandomVariable)]
    nodes = [node for node in map(as_node, leaves) if node.dtype.kind == "f"]
    try:
        arrays = Plan(nodes).run(TRIED, np.random.default_rng(0))
    except (SampleFailure, ProgramError):  # told when the program is run
        return False
    return any(np.isnan(array).any() for array in arrays)


def _by_paths(
    mechanism: Callable[..., Any], arguments: tuple[Arguments, Arguments], promise: Guarantee, required: bool
) -> Estimate | None:
    """Compare a program's paths for two inputs; None if they cannot be followed, or an error where they have to be."""
    found = compare_paths(mechanism, *arguments, promise)
    if isinstance(found, Estimate):
        return found
    if required:
        raise UnsuitableEngine(
            f"audit: the outputs have no distribution that is known exactly ({found}); write engine='sample'"
        )
    return None


def _sampled(
    promise: Guarantee, samples: int, confidence: float, seed: Sequence[int], outputs: Sequence[Any]
) -> tuple[Estimate, float]:
    """Return how far apart samples of two outputs are at least, and what was promised."""
    tested = promise if math.isfinite(promise.epsilon) or promise.is_empty else promise.at(DELTA)
    rng = np.random.default_rng(seed)
    first, second = _drawn(outputs[0], samples, rng), _drawn(outputs[1], samples, rng)
    if all(len(columns) == 1 and _are_numbers_or_none(columns[0]) for columns in (first, second)):
        first, second = _presence_and_number(first[0]), _presence_and_number(second[0])
    return lower_bound(first, second, tested.delta, confidence), tested.epsilon


def _are_numbers_or_none(column: Column) -> bool:
    return column.array.dtype == object and all(
        value is None or (is_number(value) and abs(value) <= LARGEST) for value in column.decoded()
    )


def _presence_and_number(column: Column) -> list[Column]:
    """Return outputs that are a number or None as whether there is a number, and which."""
    values = column.decoded()
    numbers = np.array([0.0 if value is None else float(value) for value in values])
    return [Column(np.array([value is not None for value in values])), Column(numbers)]


def _drawn(output: Any, samples: int, rng: np.random.Generator) -> list[Column]:
    nodes = [as_node(leaf) for leaf in flatten(output)[1]]
    arrays = Plan(nodes).run(samples, rng)
    full = [array if len(array) == samples else np.repeat(array, samples, axis=0) for array in arrays]
    return [Column.of(node, array) for array, node in zip(full, nodes, strict=True)]
