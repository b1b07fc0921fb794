"""One-dimensional conditioning: the output is a shift by the secret's root, plus a rest of known distribution."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from privug.errors import ImpossibleObservation, UnsuitableEngine
from privug.inference.curve import Curve
from privug.inference.density import panel_nodes
from privug.inference.exact.constraints import Constraint, Value
from privug.model.node import Array

MOST_PAIRS = 20_000_000
BISECTIONS = 60
FAR = 1e-14  # the probability of the tails that the joint's quadrature leaves out
MOST_BENDS = 64
PANEL = 3.0
"""How many deviations of the rest a panel of the joint's quadrature spans: 24 nodes resolve a normal density there."""


@dataclass(frozen=True)
class Shift:
    """The output for given sizes of the tables: `start + slope * s + rest`, with the probability of these sizes."""

    probability: float
    start: float
    slope: float
    rest: Curve


def likelihood(shifts: Sequence[Shift], seen: Constraint, s: Array) -> Array:
    """Return the probability, or the density, of what was seen for values of the secret's root."""
    total = np.zeros(np.shape(s))
    for shift in shifts:
        here = shift.start + shift.slope * np.asarray(s, float)
        if isinstance(seen, Value):
            total += shift.probability * shift.rest.pdf(seen.value - here)
        else:
            for low, high in seen.ranges:
                total += shift.probability * shift.rest.mass(low - here, high - here)
    return total


def _kinks(shifts: Sequence[Shift], seen: Constraint) -> Array:
    """Return the values of the secret's root at which the likelihood may have a kink."""
    ends = [seen.value] if isinstance(seen, Value) else [end for r in seen.ranges for end in r if math.isfinite(end)]
    kinks: list[float] = []
    for shift in shifts:
        if shift.slope:
            points = [*shift.rest.breaks[np.isfinite(shift.rest.breaks)], *shift.rest.atoms]
            kinks += [(end - shift.start - point) / shift.slope for end in ends for point in points]
    return np.unique(kinks)


def conditioned(prior: Curve, shifts: Sequence[Shift], seen: Constraint) -> tuple[float, Curve]:
    """Return the probability or density of what was seen, and the posterior of the secret's root."""
    if isinstance(seen, Value) and any(not shift.rest.parts for shift in shifts):
        return _solved(prior, shifts, seen.value)
    error = max(shift.rest.error for shift in shifts)
    evidence, posterior = prior.reweighted(partial(likelihood, shifts, seen), _kinks(shifts, seen), error)
    if posterior is None:
        raise ImpossibleObservation("this observation has probability zero")
    return evidence, posterior


def _solved(prior: Curve, shifts: Sequence[Shift], value: float) -> tuple[float, Curve]:
    """Condition on the exact value of an output that the secret determines up to finitely many values."""
    if any(shift.rest.parts for shift in shifts) or not prior.parts or any(not shift.slope for shift in shifts):
        raise UnsuitableEngine(
            "engine='exact' cannot weigh values that have a density against values that have a probability; "
            "engine='sample' can"
        )
    points = [
        ((value - shift.start - atom) / shift.slope, shift.probability * mass / abs(shift.slope))
        for shift in shifts
        for atom, mass in zip(shift.rest.atoms, shift.rest.masses, strict=True)
    ]
    places = np.array([place for place, _ in points])
    weights = np.array([weight for _, weight in points]) * prior.pdf(places)
    if not weights.sum() > 0:
        raise ImpossibleObservation(f"this observation has probability zero: the output is never {value:g}")
    return float(weights.sum()), Curve.discrete(places, weights / weights.sum())


def output_given(whole: Curve, seen: Constraint | None) -> Curve:
    """Return the distribution of the output itself, given what was seen of it."""
    if seen is None:
        return whole
    if isinstance(seen, Value) and seen.sd == 0:
        return Curve.point(seen.value)
    if isinstance(seen, Value):
        known = whole.reweighted(partial(_normal_density, seen.value, seen.sd))[1]
    else:
        parts = [whole.restricted(low, high) for low, high in seen.ranges]
        there = [(share, curve) for share, curve in parts if curve is not None]
        known = Curve.mixture([share for share, _ in there], [curve for _, curve in there]) if there else None
    if known is None:
        raise ImpossibleObservation("this observation has probability zero")
    return known


def _normal_density(value: float, sd: float, x: Array) -> Array:
    return np.exp(-0.5 * ((x - value) / sd) ** 2) / (sd * math.sqrt(2 * math.pi))


def cells(prior: Curve, shifts: Sequence[Shift], coarseness: float = 1.0) -> tuple[Array, Array, Array]:
    """Return values of the secret's root and of the output, and the probabilities of their cells, a row a secret."""
    width = coarseness * PANEL * min(shift.rest.std() for shift in shifts)
    steepest = max(abs(shift.slope) for shift in shifts)
    secrets, weights = _nodes(prior, width / steepest if steepest else math.inf)
    ends = [secrets.min(), secrets.max()]
    low = min(s.start + min(s.slope * end for end in ends) + s.rest.quantile(FAR) for s in shifts)
    high = max(s.start + max(s.slope * end for end in ends) + s.rest.quantile(1 - FAR) for s in shifts)
    kinks = _output_kinks(prior, shifts, low, high)
    kinks = np.union1d(kinks, _narrow_panels(shifts, ends, coarseness * width, (low, high)))
    if not prior.parts:
        kinks = np.union1d(kinks, _best_guess_changes(secrets, weights, shifts, panel_nodes(_panels(kinks, width))[0]))
    grid, widths = panel_nodes(_panels(kinks, width))
    outputs, steps = grid.reshape(-1), widths.reshape(-1)
    if len(secrets) * len(outputs) * len(shifts) > MOST_PAIRS * coarseness:
        raise UnsuitableEngine(
            "engine='exact' would need too fine a grid for the joint of secret and output; engine='sample' can serve"
        )
    table = _densities(secrets, shifts, outputs) * weights[:, np.newaxis] * steps
    return secrets, outputs, table / table.sum()


def _densities(secrets: Array, shifts: Sequence[Shift], outputs: Array) -> Array:
    """Return the density of outputs given secrets, a row for each secret."""
    table = np.zeros((len(secrets), len(outputs)))
    for shift in shifts:
        here = shift.start + shift.slope * secrets
        for row, shifted in zip(table, here, strict=True):
            row += shift.probability * shift.rest.pdf(outputs - shifted)
    return table


def _best_guess_changes(secrets: Array, weights: Array, shifts: Sequence[Shift], nodes: Array) -> Array:
    """Return the outputs at which another secret becomes the likeliest: the best guess has a kink there."""

    def best(outputs: Array) -> Array:
        return np.asarray(np.argmax(_densities(secrets, shifts, outputs) * weights[:, np.newaxis], axis=0))

    points = np.sort(nodes.reshape(-1))
    guesses = best(points)
    place = np.flatnonzero(np.diff(guesses))
    low, high, before = points[place], points[place + 1], guesses[place]
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        same = best(middle) == before
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return high


def _nodes(prior: Curve, width: float) -> tuple[Array, Array]:
    """Return values that stand for the prior in sums, close enough to each other, and their probabilities."""
    if not prior.parts:
        return prior.atoms, prior.masses
    low, high = prior.quantile(FAR), prior.quantile(1 - FAR)
    inner = prior.breaks[(prior.breaks > low) & (prior.breaks < high)]
    nodes, steps = panel_nodes(_panels(np.array([low, *inner, high]), min(width, prior.std())))
    weights = prior.pdf(nodes.reshape(-1)) * steps.reshape(-1)
    return nodes.reshape(-1), weights / weights.sum()


def _output_kinks(prior: Curve, shifts: Sequence[Shift], low: float, high: float) -> Array:
    """Return the ends of the outputs' range, and where the density of the output given a secret has a kink."""
    kinks = [low, high]
    if len(prior.atoms) * len(shifts) <= 64 and not prior.parts:
        for shift in shifts:
            breaks = shift.rest.breaks[np.isfinite(shift.rest.breaks)]
            kinks += [shift.start + shift.slope * atom + point for atom in prior.atoms for point in breaks]
    return np.unique([kink for kink in kinks if low <= kink <= high])


def _narrow_panels(shifts: Sequence[Shift], ends: Sequence[float], width: float, within: tuple[float, float]) -> Array:
    """Return the edges of panels narrower than a width on which the rest was tabulated, where the outputs have them.

    Wide noise on a narrow quantity is smooth but for a narrow bend in its middle.
    """
    edges: list[float] = []
    for shift in shifts:
        own = shift.rest.edges
        bends = own[:-1][np.diff(own) < width / 4]
        if 0 < len(bends) * len(shifts) <= MOST_BENDS:
            start, stop = sorted(shift.start + shift.slope * end for end in ends)
            pieces = math.ceil(
                (stop - start + bends[-1] - bends[0]) / max(np.diff(bends).min(initial=width), width / 256)
            )
            edges += list(np.linspace(start + bends[0], stop + bends[-1], min(pieces, MOST_BENDS) + 1))
    return np.array([edge for edge in edges if within[0] < edge < within[1]])


def _panels(kinks: Array, width: float) -> Array:
    """Cut the ranges between kinks into panels of some width at most."""
    parts = [
        np.linspace(start, end, max(1, math.ceil((end - start) / width)) + 1)[:-1] for start, end in pairwise(kinks)
    ]
    return np.append(np.concatenate(parts), kinks[-1])


def information(probabilities: Array) -> float:
    """Return the mutual information of rows and columns in bits."""
    rows, columns = probabilities.sum(axis=1, keepdims=True), probabilities.sum(axis=0, keepdims=True)
    there = probabilities > 0
    expected = np.broadcast_to(rows, probabilities.shape)[there] * np.broadcast_to(columns, probabilities.shape)[there]
    shares = probabilities[there]
    return max(0.0, float(shares @ np.log2(shares / expected)))
