"""The synthetic programs of the paper's research questions, and what is known about them without Privug."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import stats

import privug as pv


def mean_of(s, p):
    return (s + p.sum()) / (1 + len(p))


def sum_of(x, y):
    return x + y


def total_of(x, y):
    return x + y.sum()


@dataclass(frozen=True)
class Mean:
    """P(a, b): the mean of one secret number, Normal(42, sd=a), and `others` more, Normal(55, sd=b)."""

    sd_secret: float
    sd_others: float
    others: int = 200

    def __str__(self) -> str:
        return f"P({self.sd_secret},{self.sd_others})"

    @property
    def attack(self) -> pv.Attack:
        others = pv.Array(pv.Normal(55, sd=self.sd_others), self.others)
        return pv.Attack(mean_of, {"s": pv.Normal(42, sd=self.sd_secret), "p": others}, secret="s")

    @property
    def output(self) -> tuple[float, float]:
        """Mean and standard deviation of the output, which is normal."""
        size = self.others + 1
        return (42 + 55 * self.others) / size, math.hypot(
            self.sd_secret, self.sd_others * math.sqrt(self.others)
        ) / size

    @property
    def below_55(self) -> float:
        mean, sd = self.output
        return float(stats.norm.cdf(55, mean, sd))

    @property
    def information(self) -> float:
        """The information in bits of a normal number about its sum with another."""
        return 0.5 * math.log2(1 + self.sd_secret**2 / (self.others * self.sd_others**2))

    def mean_given(self, low: float, high: float) -> float:
        """The mean of the secret, given that the output lies in a range: linear in the mean of the output there."""
        mean, sd = self.output
        seen = stats.truncnorm.mean((low - mean) / sd, (high - mean) / sd, mean, sd)
        slope = self.sd_secret**2 / (self.others + 1) / sd**2
        return float(42 + slope * (seen - mean))

    def draw(self, samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Secrets and outputs of as many calls of the program on drawn inputs."""
        secret = rng.normal(42, self.sd_secret, samples)
        others = np.concatenate(
            [rng.normal(55, self.sd_others, (len(part), self.others)).sum(1) for part in batches(samples)]
        )
        return secret, (secret + others) / (self.others + 1)


def batches(samples: int, size: int = 5_000) -> list[range]:
    """Split samples into batches that fit the memory."""
    return [range(start, min(samples, start + size)) for start in range(0, samples, size)]


@dataclass(frozen=True)
class Sum:
    """P_n: the sum of a secret x and of y, both uniform on 0..n."""

    n: int

    def __str__(self) -> str:
        return f"x + y on 0..{self.n:,}"

    @property
    def attack(self) -> pv.Attack:
        prior = {"x": pv.DiscreteUniform(0, self.n), "y": pv.DiscreteUniform(0, self.n)}
        return pv.Attack(sum_of, prior, secret="x")

    @property
    def middle(self) -> float:
        """P(x + y = n): n + 1 pairs of (n + 1)^2."""
        return 1 / (self.n + 1)

    @cached_property
    def information(self) -> float:
        """H(x + y) - H(x + y | x), where the latter is the entropy of y."""
        ways = np.concatenate((np.arange(1, self.n + 2), np.arange(self.n, 0, -1)))
        share = ways / (self.n + 1) ** 2
        return -math.fsum(share * np.log2(share)) - math.log2(self.n + 1)

    @property
    def risk(self) -> float:
        """Each of 2n + 1 outputs has equally likely secrets, one of which is guessed: 1 - (2n + 1) / (n + 1)^2."""
        return 1 - (2 * self.n + 1) / (self.n + 1) ** 2

    def draw(self, samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Secrets and outputs of as many calls of the program on drawn inputs."""
        secret, other = rng.integers(0, self.n + 1, (2, samples))
        return secret, secret + other


@dataclass(frozen=True)
class Total:
    """x + y_1 + ... + y_n: the discrete program that grows, every number uniform on 0..100."""

    others: int

    @property
    def attack(self) -> pv.Attack:
        prior = {"x": pv.DiscreteUniform(0, 100), "y": pv.Array(pv.DiscreteUniform(0, 100), self.others)}
        return pv.Attack(total_of, prior, secret="x")

    @property
    def window(self) -> tuple[int, int]:
        """From the mean of the sum to one standard deviation above: about a third of all outputs."""
        mean, sd = 50 * (self.others + 1), math.sqrt((101**2 - 1) / 12 * (self.others + 1))
        return mean, math.floor(mean + sd)

    def mean_given(self, low: int, high: int) -> float:
        """The mean of x given the range of the sum, by the law of the others: a power of one characteristic function.

        One period of the transform is as long as 24 standard deviations of the sum, around its mean: what wraps around
        it is smaller than rounding.
        """
        sd = math.sqrt((101**2 - 1) / 12 * self.others)
        length = 1 << math.ceil(math.log2(min(24 * sd, 101 * self.others) + 512))
        angle = 2 * math.pi * np.arange(length // 2 + 1) / length
        with np.errstate(invalid="ignore"):  # at angle zero, where the quotient is one
            kernel = np.where(angle == 0, 1.0, np.sin(101 * angle / 2) / (101 * np.sin(angle / 2)))
        # The law of the sum less its mean is symmetric, so that its transform is real.
        law = np.fft.irfft(kernel**self.others, length)
        below = np.cumsum(np.roll(law, length // 2))
        reached = np.array([[end - x - 50 * self.others + length // 2 for end in (low - 1, high)] for x in range(101)])
        weight = np.diff(below[reached], axis=1)[:, 0]
        return float(np.arange(101) @ weight / weight.sum())
