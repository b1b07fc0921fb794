"""The joint of a secret and an output that is a function of a sum or an extreme."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from privug.errors import UnsuitableEngine
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.curve import Curve
from privug.inference.exact.core import Asked
from privug.inference.exact.grids import (
    MOST_PAIRS,
    PANEL,
    TOO_FINE,
    Classes,
    Grid,
    Outline,
    cells,
    information,
    merged,
    nodes,
    points,
    reach,
    spread,
)
from privug.inference.exact.image import Image, Listed
from privug.inference.exact.shifts import Kernel, Largest, Shift
from privug.inference.joint import Joint
from privug.model.batch import Batch
from privug.model.node import Array

ENTROPY_ERROR = 1e-10  # of entropies whose densities are polynomials but for rounding, with room to spare
KINK_ERROR = 1e-3  # of an information whose cells have kinks in them
MOST_KINKS = 4096
ITSELF = "given the output, only values with a probability of their own are left for the secret"
SOMETIMES = "with some probability the output gives the secret away to the last digit"
NO_JOINT = "engine='exact' has no joint of this secret and this output; engine='sample' has"


@dataclass(frozen=True, eq=False)
class Outward:
    """From the secret's root to the output: a kernel for each size of the tables, and the output as its function."""

    kernels: Sequence[Kernel]
    outers: Sequence[Image | Listed | None]

    @property
    def is_discrete(self) -> bool:
        """Whether all outputs have probabilities of their own."""
        return all(outer is not None and outer.is_discrete for outer in self.outers)

    @cached_property
    def labels(self) -> tuple[Batch, list[Array]]:
        """The distinct outputs of a discrete one, and for each kernel the number of the output on each piece."""
        batches = [outer.batch(outer.middles) for outer in self.outers if outer is not None]
        together = Batch.concatenate(batches)
        codes, values = together.factorized()
        first = np.zeros(len(values), np.intp)
        first[codes[::-1]] = np.arange(len(codes))[::-1]
        starts = np.cumsum([0, *(len(batch) for batch in batches)])
        parts = [codes[start:stop] for start, stop in pairwise(starts)]
        return together.take(first), parts

    def spans(self, secrets: Array) -> list[slice]:
        """Return the pieces that each kernel reaches, but for a negligible probability."""
        ends = [float(secrets.min()), float(secrets.max())]
        found = []
        for kernel, outer in zip(self.kernels, self.outers, strict=True):
            assert outer is not None
            (low, high), (starts, stops) = reach([kernel], ends), outer.bounds
            first, last = np.searchsorted(stops, low), np.searchsorted(starts, high, side="right")
            found.append(slice(int(first), max(int(last), int(first) + 1)))
        return found

    def chances(self, secrets: Array) -> Array:
        """Return the probability of each discrete output given values of the secret's root, a row for each."""
        batch, numbers = self.labels
        table = np.zeros((len(secrets), len(batch)))
        for kernel, outer, codes, span in zip(self.kernels, self.outers, numbers, self.spans(secrets), strict=True):
            assert outer is not None
            low, high = (end[span] for end in outer.bounds)
            masses = kernel.probability * kernel.mass(low, high, secrets[:, np.newaxis])
            np.add.at(table.T, codes[span], masses.T)
        return table

    def kinks(self) -> list[float]:
        """Return the values of the secret's root at which the chances of outputs have kinks; none if too many."""
        found: list[float] = []
        for kernel, outer in zip(self.kernels, self.outers, strict=True):
            if isinstance(outer, Image):
                found += kernel.kinks(outer.edges[1:-1]).reshape(-1).tolist()
            if len(found) > MOST_KINKS:
                return []
        return found


def joint_of(prior: Curve, asked: Asked, outward: Outward, output: Belief) -> Joint:
    """Return secret and output together, as pairs or as cells of quadrature."""
    secret = asked.belief(prior)
    if isinstance(asked.image, Image) and not asked.image.is_discrete and not asked.image.is_injective:
        raise UnsuitableEngine(NO_JOINT)
    if outward.is_discrete:
        return _with_discrete_output(prior, asked, outward, secret, output)
    outer = outward.outers[0]
    if any(other is not outer for other in outward.outers) or (outer is not None and outer.folds):
        raise UnsuitableEngine(NO_JOINT)
    if secret.curve is not None and any(_gives_away(kernel, outer) for kernel in outward.kernels):
        whole = all(isinstance(kernel, Shift) and not kernel.rest.parts for kernel in outward.kernels)
        return _given_away(prior, asked, outward, secret, output, ITSELF if whole else SOMETIMES)
    return _with_density(prior, asked, outward, secret, output)


def _gives_away(kernel: Kernel, outer: Image | Listed | None) -> bool:
    """Say whether the output is, with some probability, a function of the secret alone that gives the secret away."""
    own = kernel.own if isinstance(kernel, Largest) else kernel.rest
    return bool(kernel.slope) and bool(len(own.atoms)) and (outer is None or not outer.is_discrete)


def _given_away(prior: Curve, asked: Asked, outward: Outward, secret: Belief, output: Belief, reason: str) -> Joint:
    """Return the joint of a secret that the output, at least sometimes, is a function of: cells, and points."""
    outer = outward.outers[0]
    shape = Outline(asked.edges, None, outer if isinstance(outer, Image) else None)
    s, o, weights = points(prior, outward.kernels, asked.edges)
    rows, columns = [s], [o if outer is None else outer.values(o).astype(float)]
    shares = [weights]
    if any(kernel.rest.parts for kernel in outward.kernels):
        grid = cells(prior, outward.kernels, shape)
        row, column = np.nonzero(grid.probabilities)
        rows.append(grid.secrets[row])
        columns.append(grid.outputs[column])
        shares.append((1 - weights.sum()) * grid.probabilities[row, column])
    masses = np.concatenate(shares)
    pairs = (
        Belief(asked.values(np.concatenate(rows)), masses, True, spread=secret.kind, curve=secret.curve),
        Belief(Batch.of_values(np.concatenate(columns)), masses, True, spread=output.kind, curve=output.curve),
    )
    return Joint(*pairs, Estimate.exactly(math.inf, "bit", reason))


def _with_density(prior: Curve, asked: Asked, outward: Outward, secret: Belief, output: Belief) -> Joint:
    outer = outward.outers[0]
    shape = Outline(asked.edges, _classes(asked), outer if isinstance(outer, Image) else None)
    grid = cells(prior, outward.kernels, shape)
    if outer is None and len(outward.kernels) == 1 and _is_smooth(outward.kernels[0], output) and secret.curve:
        told = _entropy_difference(outward.kernels[0].rest, output)
    else:
        coarse = cells(prior, outward.kernels, shape, 2.0) if prior.parts else grid
        told = _compared(secret, outward, grid, coarse)
    return _joint(_rows(asked, grid), Batch.of_values(grid.outputs), grid, secret, output, told)


def _classes(asked: Asked) -> Classes | None:
    """Return the function that numbers the values of a discrete function of the secret's root."""
    image = asked.image
    if image is None or not image.is_discrete:
        return None
    distinct = np.unique(image.middles)
    return lambda s: np.searchsorted(distinct, image.values(s * asked.weight + asked.constant))


def _rows(asked: Asked, grid: Grid) -> Batch:
    """Return the secret of each row."""
    image = asked.image
    if image is None or not image.is_discrete:
        return asked.values(grid.secrets)
    return image.batch(np.unique(image.middles)[grid.secrets.astype(np.intp)])


def _is_smooth(kernel: Kernel, output: Belief) -> bool:
    smooth = output.curve is not None and not len(output.curve.atoms)
    return isinstance(kernel, Shift) and bool(kernel.slope) and not len(kernel.rest.atoms) and smooth


def _entropy_difference(rest: Curve, output: Belief) -> Estimate:
    """Return the mutual information of one shift: what the entropy of the output exceeds that of the rest by."""
    assert output.curve is not None
    return _told(max(0.0, output.curve.differential_entropy() - rest.differential_entropy()), ENTROPY_ERROR)


def _compared(secret: Belief, outward: Outward, fine: Grid, coarse: Grid) -> Estimate:
    """Return the mutual information of cells, and its error as far as coarser cells show it."""
    found = information(fine.probabilities)
    off = max(abs(found - information(coarse.probabilities)), fine.error, fine.missed)
    if secret.curve is not None and any(np.isfinite(kernel.rest.breaks).any() for kernel in outward.kernels):
        off = max(off, KINK_ERROR)
    return _told(found, off)


def _told(value: float, off: float) -> Estimate:
    method = "exact" if off < 1e-12 else f"exact to {off:.0e}"
    return Estimate(value, max(0.0, value - off), value + off, "bit", method, exact=True)


def _joint(rows: Batch, columns: Batch, grid: Grid, secret: Belief, output: Belief, told: Estimate | None) -> Joint:
    """Make the joint of a table of probabilities, a row a secret and a column an output."""
    row, column = np.nonzero(grid.probabilities)
    weights = grid.probabilities[row, column]
    pairs = (
        Belief(rows.take(row), weights, True, spread=secret.kind, curve=secret.curve, error=grid.missed),
        Belief(columns.take(column), weights, True, spread=output.kind, curve=output.curve, error=grid.missed),
    )
    return Joint(*pairs, told)


def _with_discrete_output(prior: Curve, asked: Asked, outward: Outward, secret: Belief, output: Belief) -> Joint:
    """Return the pairs of an output with finitely many values."""
    fine = _table(prior, asked, outward, 1.0)
    told = None
    if prior.parts:
        found = information(fine.probabilities)
        told = _told(found, abs(found - information(_table(prior, asked, outward, 2.0).probabilities)))
    return _joint(_rows(asked, fine), outward.labels[0], fine, secret, output, told)


def _table(prior: Curve, asked: Asked, outward: Outward, coarseness: float) -> Grid:
    steepest = max(abs(kernel.slope) for kernel in outward.kernels)
    narrowest = min(spread(kernel) for kernel in outward.kernels)
    width = coarseness * PANEL * narrowest / steepest if steepest else math.inf
    secrets, weights = nodes(prior, width, [*outward.kinks(), *asked.edges])
    reached = sum(span.stop - span.start for span in outward.spans(secrets))
    if len(secrets) * max(reached, len(outward.labels[0])) > MOST_PAIRS * coarseness:
        raise UnsuitableEngine(TOO_FINE)
    table = outward.chances(secrets) * weights[:, np.newaxis]
    missed = float(np.abs(table.sum(axis=1) - weights).sum())
    return merged(Grid(secrets, np.empty(0), table / table.sum(), missed=missed), _classes(asked))
