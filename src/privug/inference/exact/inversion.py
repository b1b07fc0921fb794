"""Densities from their characteristic functions, with digits in the tails as well.

A Fourier series has the same absolute error everywhere, which leaves nothing of a density of 1e-13. The series of the
tilted density e^(ux) f(x) / M(u) has its digits where f is small: dividing by e^(ux) gives them back. Each place takes
the value whose error is the smallest there.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from privug.inference.curve import Curve
from privug.inference.density import panel_nodes
from privug.model.node import Array

ERROR = 1e-13  # what rounding in some thousand terms of a Fourier series leaves
ROUNDING = 1e-15  # of one term, relative to it
TILTS = (6.0, -6.0)  # how many deviations the mean of the tilted density is away, about
FADED = 1e-13  # what a tilted density may have left at the ends of its range, relative to its largest value
TRUSTED = 1e-8  # relative errors up to here make a density worth having

Transform = Callable[[Array], Array]


@dataclass(frozen=True)
class Shape:
    """What is known of a distribution with mean zero: its deviation, its support, and how far it may be tilted."""

    spread: float
    support: tuple[float, float]
    limits: tuple[float, float]


def inverted(transform: Transform, terms: int, radius: float, shape: Shape) -> Curve:
    """Return the density within a radius around zero; so many terms of its Fourier series are needed."""
    panels = 2 * max(4, math.ceil(terms / 6))  # 24 nodes for at most one and a half oscillations
    edges = np.linspace(-radius, radius, panels + 1)
    nodes = panel_nodes(edges)[0]
    coefficients = transform(np.pi / radius * np.arange(terms))
    density = _series(coefficients, radius, panels)
    noise = np.full(density.shape, _noise(coefficients, radius))
    for tilt in TILTS:
        u = min(max(tilt / shape.spread, shape.limits[0]), shape.limits[1])
        found = _tilted(transform, terms, radius, panels, u)
        if found is not None:
            with np.errstate(all="ignore"):
                factor = np.exp(found[2] - u * nodes)
                better = found[1] * factor < noise
                density = np.where(better, found[0] * factor, density)
                noise = np.where(better, found[1] * factor, noise)
    outside = (nodes < shape.support[0]) | (nodes > shape.support[1])
    density, noise = np.where(outside, 0.0, np.maximum(density, 0.0)), np.where(outside, 0.0, noise)
    doubtful = noise > TRUSTED * density
    lost = 2 * radius * float(noise[doubtful].max(initial=0.0))
    return replace(Curve.of_panels(edges, density, error=ERROR), fine=(2 * TRUSTED, lost))


def _series(coefficients: Array, radius: float, panels: int) -> Array:
    """Return the density, at the nodes of equally wide panels, whose Fourier series has these coefficients."""
    # The nodes at one place in each of the panels form a grid, on which the series is a transform.
    places = panel_nodes(np.linspace(-radius, radius, panels + 1))[0].reshape(panels, -1)[0]
    halved = np.concatenate([0.5 * coefficients[:1], coefficients[1:]])
    frequencies = np.pi / radius * np.arange(len(coefficients))
    terms = halved * np.exp(-1j * np.multiply.outer(places, frequencies))
    folded = np.pad(terms, ((0, 0), (0, -len(halved) % panels))).reshape(len(places), -1, panels).sum(axis=1)
    return np.asarray(np.fft.fft(folded, axis=1).real.T / radius)


def _noise(coefficients: Array, radius: float) -> float:
    return ROUNDING * float(np.abs(coefficients).sum()) / radius


def _tilted(
    transform: Transform, terms: int, radius: float, panels: int, u: float
) -> tuple[Array, float, float] | None:
    """Return the tilted density, its error, and the logarithm of what it was divided by; None if it does not fit."""
    wide = 2 * radius
    with np.errstate(all="ignore"):
        total = transform(np.array([-1j * u]))[0].real
        coefficients = transform(np.pi / wide * np.arange(2 * terms) - 1j * u) / total
    if not (total > 0 and np.isfinite(coefficients).all() and abs(coefficients[-1]) < FADED):
        return None
    density = _series(coefficients, wide, 2 * panels)
    if max(abs(density[0, 0]), abs(density[-1, -1])) > FADED * density.max():
        return None
    first = panels // 2
    return density[first : first + panels], _noise(coefficients, wide), math.log(total)
