"""The two sides of a curve: its density, and its values with a probability."""

from dataclasses import replace

import numpy as np

from privug.inference.curve import Curve


def smooth_part(curve: Curve) -> Curve:
    """Return the distribution given that the value is none of those with a probability."""
    if not len(curve.atoms):
        return curve
    parts = tuple((weight / curve.continuous_share, part) for weight, part in curve.parts)
    return replace(curve, parts=parts, atoms=np.empty(0), masses=np.empty(0))


def discrete_part(curve: Curve) -> Curve:
    """Return the distribution given that the value is one of those with a probability."""
    return Curve((), curve.atoms, curve.masses / curve.masses.sum())
