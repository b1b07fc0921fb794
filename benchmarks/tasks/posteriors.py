"""Posteriors: what a published mean says about one of the numbers in it, by Privug, by chains and by hand.

Gradients cannot see a window, so the models of PyMC and NumPyro are written as an expert would: the mean is uniform on
the window, and the secret is what the other numbers leave of it. The posterior is the same one.
"""

import itertools
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from harness.tasks import Answer, Growth, Task, Work, register, sized
from scipy import stats

import privug as pv
from tasks.chains import by_numpyro, by_nutpie, by_pymc

Array = np.ndarray


def by_privug(attack: Callable[[], pv.Attack], **options: Any) -> Work:
    """Return the work of a new attack each time, traced afresh."""

    def work() -> Answer:
        result = attack().run(**options, seed=1)
        return Answer([float(result.posterior.mean())], result.diagnostics.effective_samples)

    return work


def by_all(
    attack: Callable[[], pv.Attack], in_pymc: Callable[[Any], None], in_numpyro: Callable[[Any, Any], None]
) -> dict[str, Callable[[], Work]]:
    """Return the cells of Privug and of the chains, which know the same model in their own words."""
    return {
        "privug": lambda: by_privug(attack),
        "privug-sampling": lambda: by_privug(attack, engine="sample", samples=sized(1_000_000, 20_000)),
        "pymc": lambda: by_pymc(in_pymc),
        "nutpie": lambda: by_nutpie(in_pymc),
        "numpyro": lambda: by_numpyro(in_numpyro),
    }


def on_grid(edges: tuple[float, ...], density: Callable[[Array], Array], count: int = 200) -> tuple[float, float]:
    """Return mean and deviation of a density that is smooth between its edges, by Gauss's quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    panels = [(low, high - low) for low, high in itertools.pairwise(edges)]
    points = np.concatenate([low + (nodes + 1) / 2 * width for low, width in panels])
    mass = np.concatenate([weights * width for _, width in panels]) * density(points)
    mean = float(points @ mass / mass.sum())
    return mean, math.sqrt(float((points - mean) ** 2 @ mass / mass.sum()))


def probability_between(low: Array, high: Array, mean: Any, sd: Any) -> Array:
    return stats.norm.cdf(high, mean, sd) - stats.norm.cdf(low, mean, sd)  # type: ignore[no-any-return]


# ages: one unusual age and n that are alike, all normal; their mean is seen to two decimals.
WITHIN = 0.005


def seen_mean(n: int) -> float:
    return round((42 + 55 * n) / (n + 1), 2)


def ages(n: int) -> pv.Attack:
    prior = {"s": pv.Normal(42, sd=8), "p": pv.Array(pv.Normal(55, sd=1), n)}
    seen = pv.near(seen_mean(n), within=WITHIN)
    return pv.Attack(lambda s, p: (s + p.sum()) / (n + 1), prior, "s", observe=seen)


@cache
def truth_of_ages(n: int) -> tuple[float, float]:
    """Return posterior mean and deviation: regression on the mean, which is a normal number cut to the window."""
    mean, sd = (42 + 55 * n) / (n + 1), math.sqrt(64 + n) / (n + 1)
    slope = 64 / (n + 1) / sd**2
    ends = [(seen_mean(n) + side * WITHIN - mean) / sd for side in (-1, 1)]
    window = stats.truncnorm(*ends, loc=mean, scale=sd)
    return float(42 + slope * (window.mean() - mean)), math.sqrt(64 - (slope * sd) ** 2 + slope**2 * window.var())


def ages_in_pymc(n: int) -> Callable[[Any], None]:
    def model(pm: Any) -> None:
        others = pm.Normal("others", 0.0, 1.0, shape=n)
        mean = pm.Uniform("mean", seen_mean(n) - WITHIN, seen_mean(n) + WITHIN)
        secret = pm.Deterministic("secret", (n + 1) * mean - 55 * n - others.sum())
        pm.Potential("prior", pm.logp(pm.Normal.dist(42.0, 8.0), secret))

    return model


def ages_in_numpyro(n: int) -> Callable[[Any, Any], None]:
    def model(numpyro: Any, dist: Any) -> None:
        others = numpyro.sample("others", dist.Normal(0.0, 1.0).expand([n]))
        mean = numpyro.sample("mean", dist.Uniform(seen_mean(n) - WITHIN, seen_mean(n) + WITHIN))
        secret = numpyro.deterministic("secret", (n + 1) * mean - 55 * n - others.sum())
        numpyro.factor("prior", dist.Normal(42.0, 8.0).log_prob(secret))

    return model


def ages_by_hand(n: int) -> Work:
    """Draw, and keep what agrees."""
    draws = max(1_000, 4_000_000 // n)

    def work() -> Answer:
        rng = np.random.Generator(np.random.SFC64(1))
        secrets = rng.normal(42, 8, draws)
        sums = np.concatenate([rng.normal(55, 1, (500, n)).sum(axis=1) for _ in range(draws // 500)])
        agree = np.abs((secrets[: len(sums)] + sums) / (n + 1) - seen_mean(n)) <= WITHIN
        return Answer([secrets[: len(sums)][agree].mean()], np.count_nonzero(agree))

    return work


AGES = Growth(
    "ages",
    "posterior mean of one age, given the mean of it and n others within 0.005",
    sized((200, 2_000, 20_000), (200, 2_000)),
    {
        "privug": lambda n: by_privug(lambda: ages(n)),
        "privug-sampling": lambda n: by_privug(
            lambda: ages(n), engine="sample", samples=min(100_000, 200_000_000 // n)
        ),
        "pymc": lambda n: by_pymc(ages_in_pymc(n)),
        "nutpie": lambda n: by_nutpie(ages_in_pymc(n)),
        "numpyro": lambda n: by_numpyro(ages_in_numpyro(n)),
        "numpy": ages_by_hand,
    },
    lambda n: truth_of_ages(n)[:1],
    up_to={"pymc": 200},
    scale=lambda n: truth_of_ages(n)[1],
    bars={"nutpie": 1_000, "numpyro": 100, "numpy": 10},
)

# rejection: four ages, one of them unknown, and a window that a draw in a hundred falls into.
SEEN, WINDOW = 55.0, 0.125


def four_ages() -> pv.Attack:
    prior = {"first": pv.Uniform(0, 100), "others": pv.Array(pv.Normal(55.2, sd=3.5), 3)}
    seen = pv.near(SEEN, within=WINDOW)
    return pv.Attack(lambda first, others: (first + others.sum()) / 4, prior, "first", observe=seen)


def truth_of_four_ages() -> tuple[float, float]:
    def window(age: Array) -> Array:
        low, high = 4 * (SEEN - WINDOW) - age, 4 * (SEEN + WINDOW) - age
        return probability_between(low, high, 3 * 55.2, 3.5 * math.sqrt(3))

    return on_grid((0, 100), window)


def four_ages_in_pymc(pm: Any) -> None:
    others = pm.Normal("others", 55.2, 3.5, shape=3)
    mean = pm.Uniform("mean", SEEN - WINDOW, SEEN + WINDOW)
    secret = pm.Deterministic("secret", 4 * mean - others.sum())
    pm.Potential("prior", pm.logp(pm.Uniform.dist(0.0, 100.0), secret))


def four_ages_in_numpyro(numpyro: Any, dist: Any) -> None:
    others = numpyro.sample("others", dist.Normal(55.2, 3.5).expand([3]))
    mean = numpyro.sample("mean", dist.Uniform(SEEN - WINDOW, SEEN + WINDOW))
    secret = numpyro.deterministic("secret", 4 * mean - others.sum())
    numpyro.factor("prior", dist.Uniform(0.0, 100.0, validate_args=False).log_prob(secret))


def four_ages_by_loop() -> Work:
    import random

    def work() -> Answer:
        draw = random.Random(1)
        kept = []
        for _ in range(200_000):
            first = draw.uniform(0, 100)
            if abs((first + sum(draw.gauss(55.2, 3.5) for _ in range(3))) / 4 - SEEN) <= WINDOW:
                kept.append(first)
        return Answer([sum(kept) / len(kept)], len(kept))

    return work


REJECTION = Task(
    "rejection",
    "posterior mean of one age of four, given their mean within 0.125",
    {
        **by_all(four_ages, four_ages_in_pymc, four_ages_in_numpyro),
        "loop": four_ages_by_loop,
    },
    lambda: truth_of_four_ages()[:1],
    scale=6.069,  # posterior deviations, as of the truth
    bars={"pymc": 10, "nutpie": 10},
)

# running-example: a table of random size, of which only the mean is published.
SIZE, CHANCE, VARIANCE = 300, 0.3, 3.5


def running_example() -> pv.Attack:
    from privug.cli.running_example import knows_a_bit, mean_age

    records = pv.Records(pv.Binomial(SIZE, CHANCE), knows_a_bit)
    seen = pv.near(55.3, within=WITHIN)
    return pv.Attack(mean_age, {"records": records}, lambda records: records[0].age, observe=seen)


def truth_of_running_example() -> tuple[float, float]:
    sizes = np.arange(2, SIZE + 1)[:, np.newaxis]
    chances = stats.binom.pmf(sizes, SIZE, CHANCE)

    def window(age: Array) -> Array:
        ends = [sizes * end - age for end in (55.295, 55.305)]
        others = probability_between(*ends, 55.2 * (sizes - 1), np.sqrt(VARIANCE * (sizes - 1)))
        return (chances * others).sum(axis=0)  # type: ignore[no-any-return]

    return on_grid((0, 100), window)


def running_example_by_loop() -> Work:
    from privug.cli.running_example import mean_age

    class Person:
        def __init__(self, age: float) -> None:
            self.age = age

    def work() -> Answer:
        rng = np.random.Generator(np.random.SFC64(1))
        kept = []
        for _ in range(sized(30_000, 6_000)):
            size = rng.binomial(SIZE, CHANCE)
            ages = [rng.uniform(0, 100), *rng.normal(55.2, math.sqrt(VARIANCE), size - 1).tolist()]
            if abs(mean_age([Person(age) for age in ages]) - 55.3) <= WITHIN:
                kept.append(ages[0])
        return Answer([sum(kept) / len(kept)], len(kept))

    return work


RUNNING_EXAMPLE = Task(
    "running-example",
    "posterior mean of Alice's age, given the mean of a table of random size within 0.005",
    {
        "privug": lambda: by_privug(running_example),
        "privug-sampling": lambda: by_privug(running_example, engine="sample", samples=sized(100_000, 5_000)),
        "loop": running_example_by_loop,
        **dict.fromkeys(("pymc", "nutpie", "numpyro"), "random size"),
    },
    lambda: truth_of_running_example()[:1],
    scale=16.67,
)

# dp-mean: the mean of 200 incomes, of which five may be anything, with Laplace noise.
INCOME, UNUSUAL, USUAL = 85.0, 4, 195


def private_mean() -> pv.Attack:
    prior = {
        "new": pv.Uniform(10, 200),
        "unusual": pv.Array(pv.Uniform(10, 200), UNUSUAL),
        "usual": pv.Array(pv.Uniform(80, 90), USUAL),
        "noise": pv.Laplace(0, 1),
    }

    def release(new, unusual, usual, noise):  # type: ignore[no-untyped-def]
        return (new + unusual.sum() + usual.sum()) / 200 + noise

    return pv.Attack(release, prior, "new", observe=pv.equals(INCOME))


def truth_of_private_mean() -> tuple[float, float]:
    """Invert the characteristic function of what is left when the new income is known."""
    t, step = np.linspace(0, 200, 20_001, retstep=True)
    wide, narrow = np.sinc(190 / 400 * t / np.pi), np.sinc(10 / 400 * t / np.pi)
    size = wide**UNUSUAL * narrow**USUAL / (1 + t**2)
    centre = (UNUSUAL * 105 + USUAL * 85) / 200

    def density(new: Array) -> Array:
        return np.array([np.trapezoid(size * np.cos(t * (INCOME - one / 200 - centre)), dx=step) for one in new])

    return on_grid((10, 200), density, 100)


def private_mean_in_pymc(pm: Any) -> None:
    unusual = pm.Uniform("unusual", 10.0, 200.0, shape=UNUSUAL + 1)
    usual = pm.Uniform("usual", 80.0, 90.0, shape=USUAL)
    pm.Deterministic("secret", unusual[0])
    pm.Laplace("seen", (unusual.sum() + usual.sum()) / 200, 1.0, observed=INCOME)


def private_mean_in_numpyro(numpyro: Any, dist: Any) -> None:
    unusual = numpyro.sample("unusual", dist.Uniform(10.0, 200.0).expand([UNUSUAL + 1]))
    usual = numpyro.sample("usual", dist.Uniform(80.0, 90.0).expand([USUAL]))
    numpyro.deterministic("secret", unusual[0])
    numpyro.sample("seen", dist.Laplace((unusual.sum() + usual.sum()) / 200, 1.0), obs=INCOME)


PRIVATE_MEAN = Task(
    "dp-mean",
    "posterior mean of an income, given the mean of 200 with Laplace noise",
    by_all(private_mean, private_mean_in_pymc, private_mean_in_numpyro),
    lambda: truth_of_private_mean()[:1],
    scale=53.89,
    bars={"pymc": 1},
)

# clamped-mean: 15 ages, clamped to 18..90; their mean has normal noise and is seen within 0.5.
PEOPLE, NOISE, CLAMPED = 15, 4.8, (18.0, 90.0)


def clamped_ages() -> pv.Attack:
    def release(ages, noise):  # type: ignore[no-untyped-def]
        return np.clip(ages, *CLAMPED).mean() + noise

    prior = {"ages": pv.Array(pv.Normal(40, sd=25), PEOPLE), "noise": pv.Normal(0, sd=NOISE)}
    return pv.Attack(release, prior, lambda ages: ages[0], observe=pv.near(50, within=0.5))


def truth_of_clamped_ages() -> tuple[float, float]:
    """Invert the characteristic function of the other ages and the noise, times that of the window."""
    t, step = np.linspace(1e-9, 2.5, 5_001, retstep=True)
    age, low, high = stats.norm(40, 25), *CLAMPED
    nodes, weights = np.polynomial.legendre.leggauss(200)
    inside = low + (nodes + 1) / 2 * (high - low)
    between = np.exp(1j * np.outer(t, inside) / PEOPLE) @ (weights * (high - low) / 2 * age.pdf(inside))
    one = between + age.cdf(low) * np.exp(1j * t * low / PEOPLE) + age.sf(high) * np.exp(1j * t * high / PEOPLE)
    all_others = one ** (PEOPLE - 1) * np.exp(-((NOISE * t) ** 2) / 2) * np.sin(0.5 * t) / t

    def density(ages: Array) -> Array:
        left = 50 - np.clip(ages, low, high) / PEOPLE
        seen = [np.trapezoid((all_others * np.exp(-1j * t * one)).real, dx=step) for one in left]
        return np.array(seen) * age.pdf(ages)

    return on_grid((-160, low, high, 240), density, 100)


def clamped_ages_in_pymc(pm: Any) -> None:
    ages = pm.Normal("ages", 40.0, 25.0, shape=PEOPLE)
    pm.Deterministic("secret", ages[0])
    mean, scale = pm.math.clip(ages, *CLAMPED).mean(), NOISE * math.sqrt(2)
    seen = pm.math.erf((50.5 - mean) / scale) - pm.math.erf((49.5 - mean) / scale)
    pm.Potential("seen", pm.math.log(seen))


def clamped_ages_in_numpyro(numpyro: Any, dist: Any) -> None:
    import jax

    ages = numpyro.sample("ages", dist.Normal(40.0, 25.0).expand([PEOPLE]))
    numpyro.deterministic("secret", ages[0])
    mean, scale = jax.numpy.clip(ages, *CLAMPED).mean(), NOISE * math.sqrt(2)
    erf = jax.scipy.special.erf
    numpyro.factor("seen", jax.numpy.log(erf((50.5 - mean) / scale) - erf((49.5 - mean) / scale)))


CLAMPED_MEAN = Task(
    "clamped-mean",
    "posterior mean of one age of 15, given their clamped mean with normal noise within 0.5",
    by_all(clamped_ages, clamped_ages_in_pymc, clamped_ages_in_numpyro),
    lambda: truth_of_clamped_ages()[:1],
    scale=25.2,
    bars={"numpyro": 100},
)

TASKS = register(AGES, REJECTION, RUNNING_EXAMPLE, PRIVATE_MEAN, CLAMPED_MEAN)
