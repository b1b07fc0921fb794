"""How many values the quantities of a model can take, at most: what going through it step by step will cost."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from privug.inference.support import exponent, support_sizes
from privug.model.node import Array, ConstantValue, Node
from privug.model.numpy_functions import Cast
from privug.model.operations import Elementwise, Lookup
from privug.model.traits.traits import Traits
from privug.prior.conditional import Choose, Match
from privug.prior.family import Draw, family_of
from privug.prior.scalar import ScalarFamily

MOST = 1e100  # as good as endless
DENOMINATORS = (1, 2, 4, 8, 10, 20, 100, 1000, 10_000, 100_000, 1_000_000)


@dataclass(frozen=True)
class Span:
    """How many values at most, between which numbers, and of what unit all are multiples; zero if that is not known."""

    size: float
    low: float = -math.inf
    high: float = math.inf
    unit: float = 0.0

    def limited(self) -> "Span":
        """Return the same with no more values than the unit leaves room for."""
        if self.unit > 0 and math.isfinite(self.high - self.low):
            return Span(min(self.size, (self.high - self.low) / self.unit + 1), self.low, self.high, self.unit)
        return Span(min(self.size, MOST), self.low, self.high, self.unit)


TRUTH = Span(2.0, 0.0, 1.0, 1.0)


def spans_of(order: Sequence[Node], given: Mapping[Node, Array]) -> dict[Node, Span]:
    """Return the span of each node; parents come before their children, and some nodes have given values."""
    spans = {node: _of_values(values) for node, values in given.items()}
    known: dict[tuple[object, ...], Span] = {}
    for node in order:
        if node in spans:
            continue
        if isinstance(node.operation, Draw):
            # Thousands of roots may have the same parameters.
            key = node.operation, *node.parents
            if key not in known:
                known[key] = _of_root(node, spans)
            spans[node] = known[key]
        else:
            spans[node] = _span(node, spans).limited()
    return spans


def _span(node: Node, spans: Mapping[Node, Span]) -> Span:
    operation, parents = node.operation, [spans[parent] for parent in node.parents]
    if isinstance(operation, ConstantValue):
        return _of_numbers(operation.array.reshape(-1) if not node.shape else np.zeros(0))
    if node.dtype == bool and not node.shape:
        return TRUTH
    combinations = math.prod(min(parent.size, MOST) for parent in parents)
    if isinstance(operation, Elementwise) and node.levels is None and not node.shape:
        return _of_operator(operation.traits, parents, combinations)
    if isinstance(operation, Choose) and node.levels is None and not node.shape:
        return _either(parents[1:])
    if isinstance(operation, Lookup) and operation.table.ndim == 1 and operation.table.dtype.kind in "bif":
        listed = _of_numbers(operation.table)
        return Span(min(combinations, listed.size), listed.low, listed.high, listed.unit)
    if isinstance(operation, Match):
        return Span(min(combinations, len(operation.keys)), 0, len(operation.keys) - 1, 1)
    if isinstance(operation, Cast) and operation.dtype.kind == "f":
        return parents[0]
    if node.levels is not None and not node.shape:
        return Span(min(combinations, len(node.levels)))
    return Span(combinations)


def _of_operator(traits: Traits, parents: Sequence[Span], combinations: float) -> Span:
    if traits.weights is not None:
        first, *others = (_scaled(span, weight) for span, weight in zip(parents, traits.weights, strict=True))
        for other in others:
            unit = _common(first.unit, other.unit)
            first = Span(combinations, first.low + other.low, first.high + other.high, unit)
        return first
    if traits.factor:
        left, right = parents
        if right.size == 1 and math.isfinite(right.low) and right.low:
            return _scaled(left, right.low if traits.factor == 1 else 1 / right.low)
        if traits.factor == 1:
            low, high = traits.image((left.low, left.high), (right.low, right.high))
            return Span(combinations, low, high, left.unit * right.unit)
    return Span(combinations) if traits.chooses is None else _either(parents[traits.chooses :])


def _scaled(span: Span, factor: float) -> Span:
    ends = sorted(end * factor if end else 0.0 for end in (span.low, span.high))
    return Span(span.size, ends[0], ends[1], span.unit * abs(factor))


def _either(spans: Sequence[Span]) -> Span:
    unit = spans[0].unit
    for other in spans[1:]:
        unit = _common(unit, other.unit)
    return Span(sum(s.size for s in spans), min(s.low for s in spans), max(s.high for s in spans), unit)


def _of_values(values: Array) -> Span:
    return _of_numbers(values) if values.ndim == 1 and values.dtype.kind in "bif" else Span(float(len(values)))


def _of_numbers(numbers: Array) -> Span:
    finite = np.unique(numbers[np.isfinite(numbers)].astype(float))
    if not len(finite):
        return Span(max(1.0, len(numbers)))
    return Span(float(len(finite)), float(finite[0]), float(finite[-1]), _unit(finite))


def _unit(numbers: Array) -> float:
    """Return a number of which all are multiples; zero if there is none of moderate size."""
    if np.abs(numbers).max() > 2**40:
        return 0.0
    for denominator in DENOMINATORS:
        scaled = numbers * denominator
        if np.abs(scaled - np.rint(scaled)).max() <= 1e-9:
            whole = int(np.gcd.reduce(np.rint(scaled).astype(np.int64)))
            return whole / denominator if whole else math.inf
    return 0.0


def _common(left: float, right: float) -> float:
    """Return a number of which all multiples of two others are multiples; all there is may be zero."""
    if not left or not right:
        return 0.0
    if math.isinf(left) or math.isinf(right):
        return min(left, right)
    return _unit(np.array([left, right]))


def _of_root(root: Node, spans: Mapping[Node, Span]) -> Span:
    family = family_of(root)
    if family.table is not None:
        listed = _of_numbers(family.table) if family.levels is None else Span(MOST)
        return Span(float(len(family.table)), listed.low, listed.high, listed.unit)
    if not isinstance(family, ScalarFamily):
        known = [p.operation.array for p in root.parents if isinstance(p.operation, ConstantValue)]
        return Span(float(np.max(support_sizes(family, known))) if len(known) == len(root.parents) else MOST)
    corners = list(product(*((spans[parent].low, spans[parent].high) for parent in root.parents)))
    if not np.all(np.isfinite(corners)):
        return Span(MOST)
    ends = [family.range([np.array(number) for number in corner], exponent()) for corner in corners]
    low, high = min(float(low) for low, _ in ends), max(float(high) for _, high in ends)
    return Span(high - low + 1, low, high, 1.0)
