"""Laws of sums: by squaring, by counts, by Fourier transforms, all the same."""

import math

import numpy as np
import pytest
from scipy import stats

import privug as pv
from privug.inference.measure import lattice_law
from privug.inference.measure.lattice_law import SumLaw, sum_law, total_law


def uniform(count, step=1, start=0):
    return SumLaw(start + step * np.arange(count)[:, np.newaxis], np.full(count, 1 / count))


def table(law):
    return {tuple(value): p for value, p in zip(law.values.tolist(), law.probabilities.tolist(), strict=True)}


@pytest.mark.parametrize("chance", [0.0, 1e-12, 0.3, 1.0])
def test_binomials(chance):
    law = sum_law(np.array([[0], [1]]), np.array([1 - chance, chance]), 700)
    truth = stats.binom.pmf(law.values[:, 0], 700, chance)
    assert law.probabilities == pytest.approx(truth, rel=1e-10)
    assert law.probabilities.sum() == pytest.approx(1.0, abs=1e-12)


def test_many_values_to_a_power():
    """A thousand values, three times: no power of the number of values is ever formed."""
    law = uniform(1000, step=5, start=-7)
    found = sum_law(law.values, law.probabilities, 3)
    truth = np.convolve(np.convolve(law.probabilities, law.probabilities), law.probabilities)
    assert found.values[:, 0].tolist() == list(range(-21, -21 + 5 * len(truth), 5))
    assert found.probabilities == pytest.approx(truth, rel=1e-11)


def test_ways_agree(monkeypatch):
    values, chances = np.array([[0, 0], [1, 0], [1, 1], [3, 2]]), np.array([0.4, 0.3, 0.2, 0.1])
    quick = table(sum_law(values, chances, 12))
    monkeypatch.setattr(lattice_law, "MOST_PRODUCTS", 0.0)
    assert table(sum_law(values, chances, 12)) == pytest.approx(quick, rel=1e-10)
    monkeypatch.setattr(lattice_law, "MOST_COUNTS", 1)
    transformed = sum_law(values, chances, 12)
    assert transformed.lost > 0
    for value, p in table(transformed).items():
        assert quick[value] == pytest.approx(p, abs=1e-13)


def test_different_laws_in_two_directions(monkeypatch):
    laws = [
        SumLaw(np.array([[0, 0], [2, -4]]), np.array([0.25, 0.75])),
        SumLaw(np.array([[6, 0], [8, 4], [6, 8]]), np.array([0.5, 0.25, 0.25])),
        SumLaw(np.array([[-2, 4]]), np.array([1.0])),
    ]
    truth: dict[tuple[int, ...], float] = {}
    for a, p in table(laws[0]).items():
        for b, q in table(laws[1]).items():
            key = tuple(x + y + z for x, y, z in zip(a, b, (-2, 4), strict=True))
            truth[key] = truth.get(key, 0.0) + p * q
    assert table(total_law(laws)) == pytest.approx(truth, rel=1e-13)
    monkeypatch.setattr(lattice_law, "MOST_PRODUCTS", 0.0)
    assert table(total_law(laws)) == pytest.approx(truth, abs=1e-13)


def test_what_is_too_large_is_refused():
    wide = SumLaw(np.array([[0], [10**12], [10**12 + 1]]), np.full(3, 1 / 3))
    assert total_law([wide, wide]) is None


def test_ages_of_a_thousand_people_in_one_plate():
    """Ninety values each, all alike: the sum's law is a power, the secret's part stays apart."""
    rows = pv.Records(1000, pv.Row(age=pv.DiscreteUniform(1, 90)))

    def total(rows):
        return sum(row.age for row in rows)

    result = pv.Attack(total, {"rows": rows}, lambda rows: rows[3].age).run(engine="exact", observe=pv.equals(45_500))
    assert float(result.posterior.mean()) == pytest.approx(45.5, rel=1e-9)
    assert float(result.prediction.std()) == pytest.approx(math.sqrt(1000 * (90**2 - 1) / 12), rel=1e-9)


def test_parts_that_never_change_need_no_dimension_of_an_array():
    # One step and a hundred parts that stay: NumPy's arrays have 64 dimensions at most.
    values = np.hstack([[[0], [1]], np.full((2, 100), 7)])
    for law in (
        sum_law(values, np.array([0.5, 0.5]), 3),
        lattice_law._by_transform(values, np.array([0.5, 0.5]), 3, 1e9),
        total_law([SumLaw(values, np.array([0.5, 0.5]))] * 3),
    ):
        assert law.values[:, 0].tolist() == [0, 1, 2, 3]
        assert (law.values[:, 1:] == 21).all()
        assert law.probabilities == pytest.approx([1 / 8, 3 / 8, 3 / 8, 1 / 8], abs=1e-12)
