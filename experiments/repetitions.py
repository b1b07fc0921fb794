"""Estimates over the number of samples, many times each: their bands, their errors, and how often intervals hold."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

import privug as pv

from .drawing import Draw, curves

Measure = Callable[[pv.Result], pv.Estimate]
Curve = tuple[Sequence[float], Sequence[float]]


@dataclass(frozen=True)
class Repeated:
    """Estimates of one quantity: for each number of samples those of all repetitions."""

    exact: float
    sizes: tuple[int, ...]
    estimates: tuple[tuple[pv.Estimate | float, ...], ...]

    @property
    def typical(self) -> pv.Estimate | float:
        """The median among the estimates from the most samples."""
        return sorted(self.estimates[-1], key=float)[len(self.estimates[-1]) // 2]

    def errors(self, size: int) -> np.ndarray:
        """How far the estimates from so many samples are from the exact value."""
        return np.abs([float(estimate) - self.exact for estimate in self.estimates[self.sizes.index(size)]])

    def most_error(self, size: int) -> float:
        """The error that 95 of 100 estimates from so many samples keep below."""
        return float(np.quantile(self.errors(size), 0.95))

    def typical_error(self, size: int) -> float:
        """The root mean square error of the estimates from so many samples."""
        return float(np.sqrt(np.mean(self.errors(size) ** 2)))

    def exponent(self) -> float:
        """The power of the number of samples by which the typical error falls."""
        return growth(self.sizes, [self.typical_error(size) for size in self.sizes])

    def covered(self, *sizes: int) -> tuple[int, int]:
        """How many intervals cover the exact value, and how many there are; of all sizes unless some are given."""
        intervals = [
            estimate
            for size, some in zip(self.sizes, self.estimates, strict=True)
            for estimate in some
            if isinstance(estimate, pv.Estimate) and (not sizes or size in sizes)
        ]
        return sum(self.exact in estimate for estimate in intervals), len(intervals)

    def relative(self, to: Callable[[float], float] = float) -> "Repeated":
        """A function of the estimates, divided by that of the exact value."""
        whole = to(self.exact)
        return Repeated(1.0, self.sizes, tuple(tuple(to(float(e)) / whole for e in some) for some in self.estimates))

    def middle(self) -> Curve:
        """The median of the repetitions, over the number of samples."""
        return self.sizes, self._quantile(0.5)

    def band(self) -> Curve:
        """From where to where nine in ten repetitions lie."""
        return self._quantile(0.05), self._quantile(0.95)

    def _quantile(self, share: float) -> Sequence[float]:
        return [float(np.quantile([float(estimate) for estimate in some], share)) for some in self.estimates]


def repeated(
    attack: pv.Attack, exact: float, measure: Measure, sizes: Sequence[int], times: Callable[[int], int], first: int
) -> Repeated:
    """Ask the sampling engine for a quantity, `times(samples)` times with each number of samples."""
    estimates = [
        tuple(measure(attack.run(engine="sample", samples=size, seed=first + seed)) for seed in range(times(size)))
        for size in sizes
    ]
    return Repeated(exact, tuple(sizes), tuple(estimates))


def coverage(*several: Repeated) -> tuple[str, str]:
    """How many intervals cover the exact value, and whether that is compatible with what they claim."""
    hits, of = (sum(numbers) for numbers in zip(*(some.covered() for some in several), strict=True))
    by_chance = stats.binom.cdf(hits, of, 0.95)
    verdict = "as claimed" if by_chance > 0.01 else "FEWER THAN CLAIMED"
    return f"{hits} of {of} ({hits / of:.0%})", f"95 % is claimed: {verdict}"


def growth(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """The exponent of a power law, fitted by least squares on logarithmic scales."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def over_samples(several: Mapping[str, Repeated], quantity: str) -> Draw:
    """Return what draws estimates by name over the number of samples, and their exact values."""
    lines = {name: found.middle() for name, found in several.items()}
    ends = min(found.sizes[0] for found in several.values()), max(found.sizes[-1] for found in several.values())
    truths = {f"{found.exact:.3g}": found.exact for found in several.values()}
    lines |= {f"exact: {text}": (ends, (truth, truth)) for text, truth in truths.items()}
    bands = {name: found.band() for name, found in several.items()}
    return curves(lines, bands=bands, x="samples", y=quantity, log="x")


def coverage_over_samples(kinds: Mapping[str, Sequence[Repeated]]) -> Draw:
    """Return what draws which share of intervals covers the exact value, over the number of samples."""
    lines = {}
    for kind, several in kinds.items():
        sizes = several[0].sizes
        counts = [np.sum([found.covered(size) for found in several], axis=0) for size in sizes]
        lines[kind] = sizes, [hits / of for hits, of in counts]
    ends = [end(size for sizes, _ in lines.values() for size in sizes) for end in (min, max)]
    lines["claimed"] = ends, (0.95, 0.95)
    return curves(lines, x="samples", y="intervals that cover the exact value", log="x")
