"""The distribution of a sum of independent quantities, each known as a curve.

Normals add in closed form, atoms by a discrete convolution, and atoms shift densities. Few densities are convolved on
panels, which keeps their kinks; many are multiplied as characteristic functions.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from privug.errors import UnsuitableEngine
from privug.inference.curve import Curve
from privug.inference.density import Analytic
from privug.inference.exact.inverted_sums import inverted_sum
from privug.inference.exact.panel_convolution import convolved
from privug.inference.exact.panels import Panels, panels_of
from privug.inference.exact.transforms import Term
from privug.model.node import Array
from privug.prior.standard import StandardNormal

LARGEST_ERROR = 1e-9  # of a probability that is still called exact
FEW_FREQUENCIES = 512  # with which a transform is faster than panels
MOST_FREQUENCIES = 8192
MANY = 5  # so many quantities are tried as characteristic functions
MOST_PAIRS = 1 << 24  # of atoms that are added at a time
SAME = 1e-13  # atoms that differ by less, relative to the largest, are equal but for rounding
NOTHING = 1e-20  # shares of a mixture that are left out

_known: "WeakKeyDictionary[Curve, Panels]" = WeakKeyDictionary()
"""The panels of curves that were computed here, of which the orders of the kinks are known."""


class Unsummable(Exception):
    """The distribution of a sum could not be had; the message says why."""


class Powers:
    """The laws of sums of k independent copies of one quantity; each is computed once."""

    def __init__(self, curve: Curve) -> None:
        self._curve = curve
        self._sums: dict[int, Curve] = {0: Curve.point(0.0), 1: curve}

    def sum(self, k: int) -> Curve:
        """Return the law of the sum of k copies."""
        if k not in self._sums:
            self._sums[k] = self._sum(k)
        return self._sums[k]

    def _sum(self, k: int) -> Curve:
        curve = self._curve
        normal = _normal(curve)
        if normal is not None:
            return Curve.normal(k * normal[0], math.sqrt(k) * normal[1])
        if curve.parts and len(curve.atoms):
            return self._classes(k)
        if k >= MANY and curve.parts:
            made = inverted_sum([_term(curve, k)], FEW_FREQUENCIES)
            if made is not None:
                return _told(made)
        half = k // 2 if k > 3 else k - 1
        return added(self.sum(half), self.sum(k - half))

    def _classes(self, k: int) -> Curve:
        """Return the law of a sum by how many of the quantities lie at atoms."""
        share = self._curve.continuous_share
        if k * math.log(1 - share) < math.log(NOTHING):
            made = inverted_sum([_term(self._curve, k)], MOST_FREQUENCIES)
            if made is not None:
                return _told(made)
        weights = [math.comb(k, j) * share**j * (1 - share) ** (k - j) for j in range(k + 1)]
        chosen = [j for j in range(k + 1) if weights[j] > NOTHING]
        laws = [added(self._smooth.sum(j), self._discrete.sum(k - j)) for j in chosen]
        return _mixture([weights[j] for j in chosen], laws)

    @cached_property
    def _smooth(self) -> "Powers":
        return Powers(_split(self._curve)[0])

    @cached_property
    def _discrete(self) -> "Powers":
        return Powers(_split(self._curve)[1])


def added(left: Curve, right: Curve) -> Curve:
    """The law of the sum of two independent quantities."""
    for one, other in ((left, right), (right, left)):
        if not one.parts and len(one.atoms) == 1:
            return _moved(other, float(one.atoms[0]))
    known = _normal(left), _normal(right)
    if known[0] is not None and known[1] is not None:
        return Curve.normal(known[0][0] + known[1][0], math.hypot(known[0][1], known[1][1]))
    if not left.parts and not right.parts:
        return _atoms_added(left, right)
    if not len(left.atoms) and not len(right.atoms):
        return _densities_added(left, right)
    laws, weights = [], []
    for p, one in _pieces(left):
        for q, other in _pieces(right):
            weights.append(p * q)
            laws.append(_pieces_added(one, other))
    return _mixture(weights, laws)


def total(curves: Sequence[tuple[Curve, int]]) -> Curve:
    """The law of the sum of several quantities, each with its number of independent copies."""
    sums = [Powers(curve).sum(count) for curve, count in curves if count]
    if not sums:
        return Curve.point(0.0)
    normal = [one for one in sums if _normal(one) is not None]
    discrete = [one for one in sums if not one.parts]
    rest = [one for one in sums if one.parts and _normal(one) is None]
    made = Curve.point(0.0)
    for one in (*discrete, *rest, *normal):
        made = added(made, one)
    return made


def _normal(curve: Curve) -> tuple[float, float] | None:
    """Return mean and deviation of a curve that is normal."""
    if len(curve.parts) != 1 or len(curve.atoms):
        return None
    part = curve.parts[0][1]
    if isinstance(part, Analytic) and isinstance(part.frozen, StandardNormal) and not part.is_cut:
        return part.shift, abs(part.scale)
    return None


def _split(curve: Curve) -> tuple[Curve, Curve]:
    """Return the law given that the value is no atom, and given that it is one."""
    share = curve.continuous_share
    parts = tuple((weight / share, part) for weight, part in curve.parts)
    smooth = replace(curve, parts=parts, atoms=np.empty(0), masses=np.empty(0))
    return smooth, Curve((), curve.atoms, curve.masses / curve.masses.sum())


def _pieces(curve: Curve) -> list[tuple[float, Curve]]:
    if not len(curve.atoms):
        return [(1.0, curve)]
    if not curve.parts:
        return [(1.0, curve)]
    smooth, discrete = _split(curve)
    return [(curve.continuous_share, smooth), (1 - curve.continuous_share, discrete)]


def _pieces_added(one: Curve, other: Curve) -> Curve:
    if one.parts and other.parts:
        return added(one, other)
    if not one.parts and not other.parts:
        return _atoms_added(one, other)
    smooth, discrete = (one, other) if one.parts else (other, one)
    shifts = [_moved(smooth, float(atom)) for atom in discrete.atoms]
    return _mixture(discrete.masses, shifts)


def _term(curve: Curve, count: int) -> Term:
    smooth = _split(curve)[0] if len(curve.atoms) else curve
    return Term(_panels(smooth), curve.continuous_share, curve.atoms, curve.masses, count)


def _moved(curve: Curve, by: float) -> Curve:
    if by == 0:
        return curve
    made = curve.affine(1.0, by)
    if curve in _known:
        _known[made] = _known[curve].shifted(by)
    return made


def _mixture(weights: Sequence[float] | Array, curves: Sequence[Curve]) -> Curve:
    if len(curves) == 1:
        return curves[0]
    try:
        made = Curve.mixture(weights, curves)
    except UnsuitableEngine as error:
        raise Unsummable("a sum of point masses and narrow densities has too many peaks to be followed") from error
    fine = [curve.fine if curve.error else (0.0, 0.0) for curve in curves]
    if len(made.parts) == sum(len(curve.parts) for curve in curves) and all(fine):
        ends = [pair for pair in fine if pair is not None]
        return replace(made, fine=(max(pair[0] for pair in ends), max(pair[1] for pair in ends)))
    return made


def _atoms_added(left: Curve, right: Curve) -> Curve:
    """Add two discrete quantities; sums that are equal but for rounding are one."""
    if len(left.atoms) * len(right.atoms) > MOST_PAIRS:
        raise Unsummable("a sum of discrete quantities has too many values")
    sums = np.add.outer(left.atoms, right.atoms).reshape(-1)
    masses = np.multiply.outer(left.masses, right.masses).reshape(-1)
    order = np.argsort(sums, kind="stable")
    sums, masses = sums[order], masses[order]
    tolerance = SAME * float(np.abs(sums).max())
    codes = np.cumsum(np.diff(sums, prepend=sums[0]) > tolerance)
    values = sums[np.searchsorted(codes, np.arange(codes[-1] + 1))]
    return Curve.discrete(values, np.bincount(codes, masses), left.error + right.error)


def _densities_added(left: Curve, right: Curve) -> Curve:
    made = convolved(_panels(left), _panels(right))
    return _told(made)


def _panels(curve: Curve) -> Panels:
    if curve not in _known:
        _known[curve] = panels_of(curve)
    return _known[curve]


def _told(panels: Panels) -> Curve:
    """Return the curve of panels, unless it is not right."""
    curve = panels.curve()
    if not curve.error < LARGEST_ERROR:
        raise Unsummable(f"the distribution of a sum is not known to more than {curve.error:.0e}")
    _known[curve] = panels
    return curve
