"""The mean of 200 incomes with Laplace noise: what it is worth and what it tells, by epsilon."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.interpolate import make_interp_spline

import privug as pv

from .drawing import curves, density
from .findings import Findings, Line

PAPER = "Fig. 4 (o), (p), (q)"
ROWS, NEW, LARGEST = 200, 5, 200.0
SEEN = 85.0
EPSILONS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)
DRAWN = (0.1, 0.5, 1.0, 5.0)
"""Those of which the belief about an income is drawn."""
HIGH = 100.0


def income(position):
    return pv.Row(income=pv.Uniform(10, 200) if position < NEW else pv.Uniform(80, 90))


def mean_income(records):
    return sum(row.income for row in records) / len(records)


def attack(program) -> pv.Attack:
    return pv.Attack(program, {"records": pv.Records(ROWS, income)}, secret=lambda records: records[0].income)


def with_noise(epsilon: float) -> pv.Attack:
    def noisy_mean(records):
        return mean_income(records) + pv.sample(pv.Laplace(0, LARGEST / len(records) / epsilon))

    return attack(noisy_mean)


@dataclass(frozen=True)
class Spectrum:
    """The density of a sum of uniform incomes over 200, with noise of a scale, by inversion of its spectrum."""

    new: int
    scale: float

    @cached_property
    def on_grid(self) -> tuple[np.ndarray, np.ndarray]:
        """The density on a grid wide enough for the noise and fine enough for the 195 known incomes (sd 0.2)."""
        step, wide = 0.02, 60 + 90 * self.scale
        points = 2 ** int(np.ceil(np.log2(wide / step)))
        t = 2 * np.pi * np.fft.rfftfreq(points, step)
        # numpy's sinc(x) is sin(pi x) / (pi x), so a uniform quantity of some width has sinc(width t / (2 pi)).
        known, unknown = (np.sinc(width / ROWS * t / (2 * np.pi)) for width in (10, 190))
        spectrum = known ** (ROWS - NEW) * unknown**self.new / (1 + (self.scale * t) ** 2)
        densities = np.fft.fftshift(np.fft.irfft(spectrum, points)) / step
        centre = ((ROWS - NEW) * 85 + self.new * 105) / ROWS
        return centre + step * (np.arange(points) - points // 2), np.maximum(densities, 0)

    def at(self, outputs: np.ndarray) -> np.ndarray:
        """Return the density at outputs between points of the grid, whose splines of seventh order are exact enough."""
        grid, densities = self.on_grid
        near = (grid > outputs.min() - 2) & (grid < outputs.max() + 2)
        return make_interp_spline(grid[near], densities[near], k=7)(outputs)

    @property
    def entropy(self) -> float:
        """The differential entropy in bits."""
        grid, densities = self.on_grid
        some = densities > 1e-18  # below that rounding is all that is left
        return float(-(densities[some] * np.log2(densities[some])).sum() * (grid[1] - grid[0]))

    def divergence_from(self, other: "Spectrum") -> float:
        """Return the Kullback-Leibler divergence in bits from another density, of the same incomes and more noise."""
        (grid, densities), (_, others) = self.on_grid, other.on_grid
        start = (len(others) - len(densities)) // 2  # the grids have their centre and their step in common
        some = densities > 1e-12  # the rest is rounding of the transform
        ratio = densities[some] / others[start : start + len(densities)][some]
        return float((densities[some] * np.log2(ratio)).sum() * (grid[1] - grid[0]))


def belief_above(epsilon: float, income: float) -> float:
    """Return the probability that a new income is higher, after 85 was seen: quadrature of Bayes' rule."""
    rest = Spectrum(NEW - 1, 1 / epsilon)
    nodes, weights = np.polynomial.legendre.leggauss(60)

    def integral(low, high):
        incomes = low + (high - low) * (nodes + 1) / 2
        return float((weights * rest.at(SEEN - incomes / ROWS)).sum() * (high - low))

    above, below = integral(income, 200.0), integral(10.0, income)
    return above / (above + below)


def run() -> Findings:
    plain = attack(mean_income).run(seed=1)
    baseline = pv.leakage.mutual_information(plain.joint)
    without = Spectrum(NEW, 0.0)
    before = plain.prior.probability(lambda income: income > HIGH)
    lines = [
        Line("no noise: I(income; mean)", baseline, without.entropy - Spectrum(NEW - 1, 0.0).entropy),
        Line(f"before: P(income > {HIGH:g})", before, 100 / 190),
    ]
    found: dict[str, list[tuple[float, float]]] = {"utility": [], "information": [], "belief": []}
    edges = np.linspace(10, 200, 96)
    middles = (edges[:-1] + edges[1:]) / 2
    beliefs = {"before": (middles, density(plain.prior, edges))}
    for epsilon in EPSILONS:
        result = with_noise(epsilon).run(observe=pv.equals(SEEN), seed=1)
        noisy = Spectrum(NEW, 1 / epsilon)
        values = {
            "utility": pv.leakage.kl_divergence(plain.prediction, result.prediction),
            "information": pv.leakage.mutual_information(result.joint),
            "belief": result.posterior.probability(lambda income: income > HIGH),
        }
        truths = {
            "utility": without.divergence_from(noisy),
            "information": noisy.entropy - Spectrum(NEW - 1, 1 / epsilon).entropy,
            "belief": belief_above(epsilon, HIGH),
        }
        names = ("KL(without noise || with noise)", "I(income; output)", f"P(income > {HIGH:g} | output = {SEEN:g})")
        for what, name in zip(values, names, strict=True):
            found[what].append((float(values[what]), truths[what]))
            lines.append(Line(f"epsilon {epsilon:g}: {name}", values[what], truths[what]))
        if epsilon in DRAWN:
            beliefs[f"epsilon {epsilon:g}"] = (middles, density(result.posterior, edges))
    return Findings(lines, _figures(found, beliefs, float(baseline), float(before)), _notes(found, float(baseline)))


def _figures(found, beliefs, baseline: float, before: float):
    def over_epsilon(what: str, y: str, level: tuple[str, float] | None = None):
        values, truths = zip(*found[what], strict=True)
        lines = {"Privug": (EPSILONS, values)}
        if level is not None:
            lines[level[0]] = (EPSILONS[:1] + EPSILONS[-1:], (level[1], level[1]))
        return curves(lines, x="epsilon", y=y, points={"exact": (EPSILONS, truths)}, log="x")

    return {
        "(o) Utility: how far noise moves the output": over_epsilon("utility", "KL divergence (bit)"),
        "(p) What the output tells of one new income": over_epsilon(
            "information", "mutual information (bit)", ("without noise", baseline)
        ),
        f"(q) Belief that a new income is above {HIGH:g}, after {SEEN:g} was seen": over_epsilon(
            "belief", "probability", ("before", before)
        ),
        f"(q) Belief about a new income after {SEEN:g} was seen": curves(beliefs, x="income", y="density"),
    }


def _notes(found, baseline: float) -> list[str]:
    information = dict(zip(EPSILONS, (value for value, _ in found["information"]), strict=True))
    return [
        "The divergence is that of the output without noise from the output with noise, which says what is lost. "
        "The other way round it is infinite: noise reaches values that no mean of these incomes can have.",
        "The paper says that mutual information grows linearly with epsilon. It grows with the square at first "
        f"({information[0.05]:.2g} bit at 0.05, {information[0.5]:.2g} at 0.5) "
        f"and levels off at {baseline:.3f} bit, which is what the mean without noise tells.",
        "The paper does not name its values of epsilon; its 0.1, 0.5 and 1 are among these.",
    ]
