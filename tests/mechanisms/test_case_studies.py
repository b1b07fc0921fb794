"""The examples on noisy means and on reconstruction, against computations that share nothing with the engines."""

import importlib.util
import itertools
import math
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
WIDTH, POINTS = 400.0, 1 << 17


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def density(new, epsilon):
    """The density of a mean of 195 usual and some new incomes out of 200, with noise, by Fourier's transform."""
    t = 2 * np.pi * np.fft.rfftfreq(POINTS, WIDTH / POINTS)
    spread = np.sinc(10 / 200 * t / 2 / np.pi) ** 195 * np.sinc(190 / 200 * t / 2 / np.pi) ** new
    centre = (195 * 85 + new * 105) / 200
    noise = 1.0 if epsilon is None else 1 / (1 + (t / epsilon) ** 2)
    found = np.fft.irfft(spread * noise * np.exp(1j * t * WIDTH / 2)) * POINTS / WIDTH
    return centre - WIDTH / 2 + WIDTH / POINTS * np.arange(POINTS), np.maximum(found, 0.0)


def entropy(f):
    inside = f > 1e-13  # what the transform leaves of zeros
    return -float((f[inside] * np.log2(f[inside])).sum()) * WIDTH / POINTS


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 10.0])
def test_mean_income_with_laplace_noise(epsilon):
    row = example("differential_privacy").study(epsilon)
    (grid, whole), (places, rest) = density(5, epsilon), density(4, epsilon)
    assert row["mutual information"] == pytest.approx(entropy(whole) - entropy(rest), abs=1e-6)
    incomes = np.linspace(10, 200, 100_001)
    weights = np.interp(85.0 - incomes / 200, places, rest)
    weights[[0, -1]] /= 2
    mean = (incomes * weights).sum() / weights.sum()
    assert row["mean"] == pytest.approx(mean, abs=1e-4)
    assert row["sd"] == pytest.approx(math.sqrt((incomes**2 * weights).sum() / weights.sum() - mean**2), abs=1e-4)
    assert row["P(income < 50)"] == pytest.approx(weights[incomes < 50].sum() / weights.sum(), abs=1e-4)
    noiseless = density(5, None)[1]
    there = noiseless > 1e-12
    distance = (noiseless[there] * np.log2(noiseless[there] / whole[there])).sum() * WIDTH / POINTS
    assert row["KL"] == pytest.approx(distance, abs=1e-6)
    assert len(grid) == POINTS


@pytest.mark.slow
@pytest.mark.parametrize("name", ["differential_privacy", "reconstruction"])
def test_the_docs_show_the_real_output(name, capsys):
    example(name).main()
    page = (EXAMPLES.parent / "docs" / "how-to" / "mechanisms.md").read_text(encoding="utf-8")
    assert capsys.readouterr().out in page


def test_two_means_reveal_the_newcomer():
    result = example("reconstruction").differencing().run(engine="exact")
    assert [(age, p.value) for age, p in result.posterior.distribution().items()] == [(45, 1.0)]


def test_median_and_mean_reveal_three_users():
    result = example("reconstruction").small_group().run(engine="exact")
    assert [(visits, p.value) for visits, p in result.posterior.distribution().items()] == [((1, 1, 2), 1.0)]


@pytest.mark.parametrize(("fewer_than", "expected"), [(1, 1.0), (2, None)])
def test_margins_reveal_a_household(fewer_than, expected):
    module = example("reconstruction")
    chances = {"A": 0.8, "B": 0.15, "C": 0.05}
    homes = list(itertools.product([False, True], "ABC", [1, 2, 3]))

    def shown(households):
        counts = [
            [sum(origin == o for _, origin, _ in households) for o in "ABC"],
            [sum(owned and origin == o for owned, origin, _ in households) for o in "ABC"],
            [sum(size == s for _, _, size in households) for s in (1, 2, 3)],
        ]
        return [[count if count >= fewer_than else 0 for count in row] for row in counts]

    truth = [(True, "C", 1), (False, "A", 1), (False, "A", 2), (False, "A", 3)]
    weights = dict.fromkeys("ABC", 0.0)
    for first in homes:
        for others in itertools.combinations_with_replacement(homes, 3):
            households = [first, *others]
            if first[0] and shown(households) == shown(truth):
                orders = len(set(itertools.permutations(others)))
                weights[first[1]] += orders * math.prod(chances[origin] for _, origin, _ in households)
    table = dict(zip(("origin", "owners", "size"), shown(truth), strict=True))
    program = module.mechanisms.suppressed(module.census, fewer_than=fewer_than)
    posterior = module.block(program, table).run(engine="exact").posterior
    assert posterior.probability(lambda origin: origin == "C").value == pytest.approx(
        weights["C"] / sum(weights.values()) if expected is None else expected, abs=1e-9
    )
