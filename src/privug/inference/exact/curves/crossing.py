"""Where monotone functions take given values, for many values at once."""

from collections.abc import Callable

import numpy as np

from privug.model.node import Array

MOST_STEPS = 2200  # twice what halves any range of doubles to its last bit
NEARER = 2.0 ** -np.arange(0, 1072, 4)


class Crossing:
    """The inverse of a function that is monotone between `low` and `high`."""

    def __init__(self, function: Callable[[Array], Array], low: float, high: float) -> None:
        steps = (high / 2 - low / 2) * NEARER  # a function may be steep at its ends, and around zero
        points = np.concatenate([[low, high], low + steps, high - steps, steps, -steps])
        points = np.unique(points[(points >= low) & (points <= high)])
        values = np.asarray(function(points), float)
        rising = values[-1] >= values[0]
        self._function = function
        self._points = points if rising else points[::-1]
        self._values = np.maximum.accumulate(values if rising else values[::-1])

    def __call__(self, y: Array) -> Array:
        """Return where the function takes the values y, or the nearest end.

        Chandrupatla's method: inverse quadratic interpolation where that is safe, halving elsewhere.
        """
        after = np.minimum(np.maximum(np.searchsorted(self._values, y), 1), len(self._points) - 1)
        before = np.maximum(after - 1, 0)
        a, b = self._points[after], self._points[before]
        fa, fb = _apart(self._values[after], y), _apart(self._values[before], y)
        found = np.where(fa <= 0, a, b)
        active = np.flatnonzero(np.sign(fa) * np.sign(fb) < 0)
        a, b, fa, fb = (array[active] for array in (a, b, fa, fb))
        share = np.full(len(active), 0.5)
        for _ in range(MOST_STEPS if len(active) else 0):
            x = a * (1 - share) + b * share
            f = _apart(np.asarray(self._function(x), float), y[active])
            same = np.sign(f) == np.sign(fa)
            c, fc = np.where(same, a, b), np.where(same, fa, fb)
            b, fb = np.where(same, b, a), np.where(same, fb, fa)
            a, fa = x, f
            best = np.where(np.abs(fa) < np.abs(fb), a, b)
            found[active] = best
            closest = np.spacing(np.abs(best))
            left = (np.minimum(np.abs(fa), np.abs(fb)) > 0) & (np.abs(b - a) > 2 * closest)
            if not left.any():
                break
            active = active[left]
            a, b, c, fa, fb, fc, closest = (array[left] for array in (a, b, c, fa, fb, fc, closest))
            share = _share(a, b, c, fa, fb, fc, closest / np.abs(b - a))
        return found


def _apart(values: Array, y: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.where(values == y, 0.0, values - y)  # infinite ones may be equal, too


def _share(a: Array, b: Array, c: Array, fa: Array, fb: Array, fc: Array, least: Array) -> Array:
    """Return how far on the way from a to b to look next, given the place c that was left before."""
    with np.errstate(all="ignore"):
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        safe = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
        curved = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return np.clip(np.where(safe & np.isfinite(curved), curved, 0.5), least, 1 - least)
