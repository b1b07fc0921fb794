"""The distribution of a sum of independent quantities, each known as a curve.

Normals add in closed form, atoms by a discrete convolution, and atoms shift densities. Few densities are convolved on
panels, which keeps their kinks; many are multiplied as characteristic functions; Laplace noise is a filter.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import scipy

from privug.inference.curve import MOST_PARTS, Curve
from privug.inference.density import Analytic, Tabulated
from privug.inference.exact.curves.exponential_filter import blurred
from privug.inference.exact.curves.inverted_sums import inverted_sum
from privug.inference.exact.curves.panel_convolution import convolved
from privug.inference.exact.curves.panels import Panels, panels_of
from privug.inference.exact.curves.parts import discrete_part, smooth_part
from privug.inference.exact.curves.shifted_mixtures import Shifts, blended
from privug.inference.exact.curves.transforms import Term
from privug.model.node import Array
from privug.prior.standard import StandardNormal, StandardUniform

LARGEST_ERROR = 1e-9  # of a probability that is still called exact
FEW_FREQUENCIES = 512  # with which a transform is faster than panels
MOST_FREQUENCIES = 8192
MANY = 5  # so many quantities are tried as characteristic functions
MOST_PAIRS = 1 << 24  # of atoms that are added at a time
MOST_EDGES = 1 << 17  # of densities that are shifted by atoms
SAME = 1e-13  # atoms that differ by less, relative to the largest, are equal but for rounding
NEAR = 100.0  # times its width: so far from zero a density keeps its digits
NOTHING = 1e-20  # shares of a mixture that are left out

_known: "WeakKeyDictionary[Curve, Panels]" = WeakKeyDictionary()
"""The panels of the densities of curves; of those computed here the orders of the kinks are known."""

_origins: "WeakKeyDictionary[Curve, tuple[Panels, float]]" = WeakKeyDictionary()
"""The same about zero, and how far they were moved there."""


class Unsummable(Exception):
    """The distribution of a sum could not be had; the message says why."""


class Piece(NamedTuple):
    """A curve without atoms, how far it is shifted, and the share of each shift in a mixture."""

    curve: Curve
    by: Array
    shares: Array


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
        closed = _closed([(curve, k)])
        if closed is not None:
            return closed
        if curve.parts and k >= MANY:
            made = _transformed([(curve, k)], MOST_FREQUENCIES if len(curve.atoms) else FEW_FREQUENCIES)
            if made is not None:
                return made
        if curve.parts and len(curve.atoms):
            return self._classes(k)
        half = k // 2 if k > 3 else k - 1
        return added(self.sum(half), self.sum(k - half))

    def _classes(self, k: int) -> Curve:
        """Return the law of a sum by how many of the quantities lie at atoms."""
        smooth, discrete = self._split
        share = self._curve.continuous_share
        pieces = []
        for j in range(1, k + 1):
            weight = math.exp(_log_binomial(k, j, share))
            if weight > NOTHING:
                atoms = discrete.sum(k - j)
                pieces.append(Piece(smooth.sum(j), atoms.atoms, weight * atoms.masses))
        last = discrete.sum(k)
        return _mixed(pieces, last.atoms, (1 - share) ** k * last.masses)

    @cached_property
    def _split(self) -> "tuple[Powers, Powers]":
        return Powers(_smooth(self._curve)), Powers(discrete_part(self._curve))


def added(left: Curve, right: Curve) -> Curve:
    """The law of the sum of two independent quantities."""
    for one, other in ((left, right), (right, left)):
        if not one.parts and len(one.atoms) == 1:
            return _moved(other, float(one.atoms[0]))
    closed = _closed([(left, 1), (right, 1)]) or _with_noise(left, right) or _with_noise(right, left)
    if closed is not None:
        return closed
    if not left.parts and not right.parts:
        return _atoms_added(left, right)
    pieces = []
    for one, other in ((left, right), (right, left)):
        if one.parts and len(other.atoms):
            pieces.append(Piece(_smooth(one), other.atoms, one.continuous_share * other.masses))
    if left.parts and right.parts:
        share = left.continuous_share * right.continuous_share
        both = _densities_added(_smooth(left), _smooth(right))
        if not pieces:
            return both
        pieces.append(Piece(both, np.zeros(1), np.array([share])))
    if not len(left.atoms) or not len(right.atoms):
        return _mixed(pieces, np.empty(0), np.empty(0))
    atoms = _atoms_added(discrete_part(left), discrete_part(right))
    share = (1 - left.continuous_share) * (1 - right.continuous_share)
    return _mixed(pieces, atoms.atoms, share * atoms.masses)


def total(curves: Sequence[tuple[Curve, int]]) -> Curve:
    """The law of the sum of several quantities, each with its number of independent copies."""
    given = [(curve, count) for curve, count in curves if count]
    closed = [pair for pair in given if _family(pair[0]) == "normal"]
    noise = [pair for pair in given if _family(pair[0]) == "laplace" and pair[1] == 1]
    noise = noise if len(noise) == 1 else []
    discrete = [pair for pair in given if not pair[0].parts]
    apart = {id(curve) for curve, _ in (*closed, *noise, *discrete)}
    rest = [(curve, count) for curve, count in given if id(curve) not in apart]
    made = Curve.point(0.0)
    for curve, count in discrete:
        made = added(made, Powers(curve).sum(count))
    if len(rest) > 1 and sum(count for _, count in rest) >= MANY:
        smooth = _transformed(rest, FEW_FREQUENCIES)
        rest = rest if smooth is None else [(smooth, 1)]
    for curve, count in rest:
        made = added(made, Powers(curve).sum(count))
    normal = _closed(closed)
    made = made if normal is None else added(made, normal)
    for curve, _ in noise:
        made = added(made, curve)
    return made


def _family(curve: Curve) -> str | None:
    """Return the name of the family of a curve that is of one, and not cut."""
    if len(curve.parts) != 1 or len(curve.atoms):
        return None
    part = curve.parts[0][1]
    if not isinstance(part, Analytic) or part.is_cut:
        return None
    if isinstance(part.frozen, StandardNormal):
        return "normal"
    return getattr(getattr(part.frozen, "dist", None), "name", None)


def _closed(curves: Sequence[tuple[Curve, int]]) -> Curve | None:
    """Return the law of a sum of normal quantities, or of Cauchy's, with their numbers of copies."""
    names = {_family(curve) for curve, _ in curves}
    if names == {"normal"}:
        parts = [(_analytic(curve), count) for curve, count in curves]
        var = math.fsum(count * part.scale**2 for part, count in parts)
        return Curve.normal(math.fsum(count * part.shift for part, count in parts), math.sqrt(var))
    if names == {"cauchy"}:
        middle = math.fsum(count * curve.quantile(0.5) for curve, count in curves)
        half = math.fsum(count * (curve.quantile(0.75) - curve.quantile(0.5)) for curve, count in curves)
        return Curve(((1.0, Analytic(scipy.stats.cauchy(), half, middle)),))
    return None


def _analytic(curve: Curve) -> Analytic:
    part = curve.parts[0][1]
    assert isinstance(part, Analytic)
    return part


def _with_noise(curve: Curve, noise: Curve) -> Curve | None:
    """Add Laplace noise; nothing if it is none, or too narrow for a filter."""
    if _family(noise) != "laplace" or _family(curve) == "laplace":
        return None
    if not curve.parts and len(curve.atoms) <= MOST_PARTS:
        return None
    part: Any = _analytic(noise)
    scale = abs(part.scale) * float(part.frozen.std()) / math.sqrt(2)
    panels = _panels(curve) if curve.parts else None
    made = blurred(panels, curve.continuous_share, curve.atoms, curve.masses, scale)
    return None if made is None else _told(made.shifted(float(part.mean())))


def _transformed(curves: Sequence[tuple[Curve, int]], most: int) -> Curve | None:
    """Return the law of a sum from characteristic functions; nothing if it is not smooth, or all may be atoms."""
    if any(curve.parts and curve.error > 0 and curve.fine is None for curve, _ in curves):
        most = min(most, FEW_FREQUENCIES)
    if all(len(curve.atoms) for curve, _ in curves):
        discrete = sum(count * math.log(max(1 - curve.continuous_share, 1e-300)) for curve, count in curves)
        if discrete > math.log(NOTHING):
            return None
    terms = [
        Term(_panels(curve) if curve.parts else None, curve.continuous_share, curve.atoms, curve.masses, count)
        for curve, count in curves
    ]
    made = inverted_sum(terms, most)
    return None if made is None else _told(made)


def _log_binomial(k: int, j: int, share: float) -> float:
    ways = math.lgamma(k + 1) - math.lgamma(j + 1) - math.lgamma(k - j + 1)
    return ways + j * math.log(share) + (k - j) * math.log1p(-share)


def _smooth(curve: Curve) -> Curve:
    """Return the law given that the value is no atom."""
    if not len(curve.atoms):
        return curve
    made = smooth_part(curve)
    _known[made] = _panels(curve)
    if curve in _origins:
        _origins[made] = _origins[curve]
    return made


def _moved(curve: Curve, by: float) -> Curve:
    if by == 0:
        return curve
    made = curve.affine(1.0, by)
    if curve in _known:
        _known[made] = _known[curve].shifted(by)
    if curve in _origins:
        panels, origin = _origins[curve]
        _origins[made] = panels, origin + by
    return made


def _mixed(pieces: Sequence[Piece], atoms: Array, masses: Array) -> Curve:
    """Return a mixture of shifted curves and atoms: few as they are, more on panels of their own."""
    if sum(len(piece.by) * len(piece.curve.parts) for piece in pieces) <= MOST_PARTS:
        return _listed(pieces, atoms, masses)
    found = [(piece, *_anchored(piece.curve)) for piece in pieces]
    origin = found[0][2] + float(found[0][0].by[0])
    shifts = [Shifts(panels, piece.by + (start - origin), piece.shares) for piece, panels, start in found]
    if sum(len(one.by) * len(one.panels.edges) for one in shifts) > MOST_EDGES:
        raise Unsummable("a sum of point masses and densities has too many peaks to be followed")
    share = math.fsum(float(piece.shares.sum()) for piece in pieces)
    panels = blended(shifts).scaled(1 / share)
    curve = _told(panels.shifted(origin))
    table = curve.parts[0][1]
    there = masses > 0
    made = replace(curve, parts=((share, table),), atoms=atoms[there], masses=masses[there])
    _known[made], _origins[made] = _known[curve], (panels, origin)
    return made


def _listed(pieces: Sequence[Piece], atoms: Array, masses: Array) -> Curve:
    shares = [float(share) for piece in pieces for share in piece.shares]
    curves = [_moved(piece.curve, float(by)) for piece in pieces for by in piece.by]
    if len(atoms):
        shares.append(float(masses.sum()))
        curves.append(Curve((), atoms, masses / masses.sum()))
    made = Curve.mixture(shares, curves)
    fine = [(0.0, 0.0) if curve.error == 0 else curve.fine for curve in curves]
    known = [pair for pair in fine if pair is not None]
    if len(known) < len(fine):
        return made
    return replace(made, fine=(max(pair[0] for pair in known), max(pair[1] for pair in known)))


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
    closed = _closed([(left, 1), (right, 1)])
    if closed is not None:
        return closed
    keys = _value_of(left), _value_of(right)
    if None in keys:
        return _convolved(left, right)
    return _remembered(_ByValue(keys[0], left), _ByValue(keys[1], right))


@dataclass(frozen=True)
class _ByValue:
    """A curve that is known by its family and parameters."""

    value: tuple[Any, ...] | None
    curve: Curve = field(compare=False)


def _value_of(curve: Curve) -> tuple[Any, ...] | None:
    """Return what tells a curve of one standard distribution, stretched and shifted, from others."""
    if len(curve.parts) != 1 or len(curve.atoms) or curve.error:
        return None
    part = curve.parts[0][1]
    if not isinstance(part, Analytic) or not isinstance(part.frozen, StandardNormal | StandardUniform):
        return None
    return type(part.frozen), part.scale, part.shift, part.low, part.high, part.kinks


@lru_cache(maxsize=512)  # tables of random size ask for one sum a size, with and without an observation
def _remembered(left: _ByValue, right: _ByValue) -> Curve:
    return _convolved(left.curve, right.curve)


def _convolved(left: Curve, right: Curve) -> Curve:
    one, other = _anchored(left), _anchored(right)
    panels, origin = convolved(one[0], other[0]), one[1] + other[1]
    curve = _told(panels.shifted(origin) if origin else panels)
    _origins[curve] = panels, origin
    return curve


def _anchored(curve: Curve) -> tuple[Panels, float]:
    """Return panels about zero, where floats are dense, with a singular end just there; and how far they were moved."""
    if curve not in _origins:
        panels = _panels(curve)
        places = [place for place, order in panels.kinks if order < 0]
        origin = 0.0
        if places:
            origin = 0.0 if 0.0 in places else places[0]
        elif abs(panels.median) > panels.body:
            origin = panels.median
        moved = panels.shifted(-origin) if origin else panels
        if origin and _is_placed(curve, origin, panels.body):
            moved = replace(panels_of(curve.affine(1.0, -origin)), kinks=moved.kinks)
        _origins[curve] = moved, origin
    return _origins[curve]


def _is_placed(curve: Curve, origin: float, width: float) -> bool:
    """Say whether densities are shifted to where they are: moved back, they keep digits that rounding takes there."""
    shifts = [part.shift for _, part in curve.parts if not isinstance(part, Tabulated)]
    return len(shifts) == len(curve.parts) and all(abs(origin - shift) <= NEAR * width for shift in shifts)


def _panels(curve: Curve) -> Panels:
    if curve not in _known:
        _known[curve] = panels_of(curve)
    return _known[curve]


def _told(panels: Panels) -> Curve:
    """Return the curve of panels, unless it is not right."""
    curve = panels.curve()
    if not curve.error < LARGEST_ERROR:
        raise Unsummable(f"the distribution of a sum is known to {curve.error:.0e} only")
    _known[curve] = panels
    return curve
