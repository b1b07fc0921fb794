"""Every distribution of single numbers against SciPy, in all that engines ask about it: one row each."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, special, stats

import privug as pv
from oracles.families import ROWS, Row
from privug.inference.graph.support import exponent
from privug.model.node import ConstantValue
from privug.model.plan import Plan
from privug.prior.family import NUMPY, family_of
from privug.prior.learning import fitting_families
from privug.prior.scalar import _families

EVERY = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
DISCRETE = pytest.mark.parametrize("row", [row for row in ROWS if row.is_discrete], ids=lambda row: row.name)
DRAWS = 4000


def row_of(name: str) -> Row:
    return next(row for row in ROWS if row.name == name)


def density(row: Row, values: np.ndarray) -> np.ndarray:
    return row.reference.logpmf(values) if row.is_discrete else row.reference.logpdf(values)


def test_every_family_has_its_row_and_is_told_of():
    assert {row.name for row in ROWS} == set(_families)
    page = Path(__file__).parents[2].joinpath("docs", "reference", "distributions.md").read_text(encoding="utf-8")
    assert [row.name for row in ROWS if f"| `{row.name}(" not in page] == []


@EVERY
def test_density_ends_and_moments(row):
    family, parameters, values = row.family, row.parameters, row.values()
    np.testing.assert_allclose(family.log_density(values, parameters), density(row, values), rtol=1e-11)
    formula = family.formula(NUMPY, values, *parameters)
    if formula is not None:
        np.testing.assert_allclose(formula, density(row, values), rtol=1e-11)
    low, high = (np.asarray(end).item() for end in family.ends_of(parameters))
    if row.name not in ("Hypergeometric", "DiscreteGaussian"):  # fewer may be marked than drawn; a table ends somewhere
        assert [low, high] == pytest.approx(row.reference.support(), rel=1e-12)
    reach = family.reach([(array, None) for array in parameters])
    assert low <= reach.low + 1e-9
    assert high >= reach.high - 1e-9
    for order in (1, 2):
        with np.errstate(all="ignore"):
            moment = row.reference.moment(order) if row.name != "DiscreteGaussian" else row.reference.var()
        assert reach.has(order) is bool(np.isfinite(moment))


@EVERY
def test_draws(row):
    drawn = Plan([row.make().node]).run(DRAWS, np.random.default_rng(5))[0]
    if not row.is_discrete:
        assert stats.kstest(drawn, row.reference.cdf).pvalue > 1e-4
        return
    cells = row.reference.ppf(np.linspace(0, 1, 8)[1:-1])
    edges = np.unique(cells)
    expected = np.diff([0.0, *row.reference.cdf(edges), 1.0]) * DRAWS
    seen = np.bincount(np.searchsorted(edges, drawn), minlength=len(edges) + 1)
    kept = expected > 1
    assert np.sum((seen - expected)[kept] ** 2 / expected[kept]) < stats.chi2(max(1, kept.sum() - 1)).isf(1e-4)


@EVERY
def test_the_exact_engine_has_its_moments_and_entropy(row):
    belief = pv.Attack(lambda x: x, {"x": row.make()}, "x").run(engine="exact").prior
    if np.isfinite(row.reference.var()):
        assert belief.mean().value == pytest.approx(row.reference.mean(), abs=1e-8)
        assert belief.std().value == pytest.approx(row.reference.std(), rel=1e-8)
    measure = pv.leakage.entropy if row.is_discrete else pv.leakage.differential_entropy
    assert measure(belief).value == pytest.approx(float(row.reference.entropy()) / math.log(2), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("mode", [0.0, 1e-9, 0.5, 1.0])
def test_a_triangle_may_lean(mode):
    row = Row("Triangular", {"low": 0, "mode": mode, "high": 1}, stats.triang(mode, 0, 1))
    normals = np.linspace(-5, 5, 11)
    found = row.family.of_normals(normals, row.parameters)
    np.testing.assert_allclose(row.reference.cdf(found), special.ndtr(normals), rtol=1e-9)
    inside = np.linspace(0.01, 0.99, 7)
    np.testing.assert_allclose(
        row.family.formula(NUMPY, inside, 0.0, mode, 1.0), row.reference.logpdf(inside), rtol=1e-9
    )


@DISCRETE
def test_what_is_listed_is_all_but_a_negligible_probability(row):
    family, parameters = row.family, row.parameters
    listed = family.support(parameters, 1, exponent())
    np.testing.assert_allclose(listed.probabilities, row.reference.pmf(listed.values), rtol=1e-9)
    beyond = row.reference.cdf(listed.values.min() - 1) + row.reference.sf(listed.values.max())
    assert beyond <= 2.01 * math.exp(-exponent())
    assert family.is_cut(parameters) == (not np.all(np.isfinite([e for e in family.ends if not isinstance(e, str)])))
    assert family.sizes(parameters, exponent())[0] >= len(listed.values)


@EVERY
def test_the_exact_engine_adds_it_to_others(row):
    """P(X + Y <= s) for a like Y, by a plain sum, or for a normal one, by an integral."""
    other = row.make() if row.is_discrete else pv.Normal(0, sd=1)
    belief = pv.Attack(lambda x, y: x + y, {"x": row.make(), "y": other}, "x").run(engine="exact").prediction
    for s in (2 * row.reference.ppf(0.3), 2 * row.reference.ppf(0.6)):
        if row.is_discrete:
            values = np.arange(row.reference.ppf(1e-14), row.reference.isf(1e-14) + 1)
            truth = row.reference.pmf(values) @ row.reference.cdf(s - values)
        else:
            kinks = s - np.array([*row.family.kinks(*(p.item() for p in row.parameters)), *row.reference.support()])
            inside = sorted({-3.0, 0.0, 3.0, *kinks[np.abs(kinks) < 9].tolist()})
            truth = integrate.quad(
                lambda y, s=s: stats.norm.pdf(y) * row.reference.cdf(s - y), -9, 9, points=inside, limit=400
            )[0]
        assert belief.probability(lambda total, s=s: total <= s).value == pytest.approx(truth, abs=1e-8)


FITTED = [row for row in ROWS if row.name in fitting_families()]


def test_what_can_be_fitted_is_fitted():
    assert {row.name for row in ROWS} - {row.name for row in FITTED} == {"TruncatedNormal", "DiscreteGaussian"}


@pytest.mark.parametrize("row", FITTED, ids=lambda row: row.name)
def test_no_parameters_nearby_make_the_data_more_likely(row):
    data = Plan([row.make().node]).run(400, np.random.default_rng(11))[0].astype(float)
    node = pv.fit(row.name, data.tolist(), uncertainty=False, **row.known).node
    family = family_of(node)
    numbers = [float(p.operation.array.item()) for p in node.parents if isinstance(p.operation, ConstantValue)]

    def cost(parameters):
        arrays = [np.array([number]) for number in parameters]
        try:
            family.check(arrays)
        except pv.PriorError:
            return math.inf
        return -family.log_density(data, arrays).sum()

    whole = family.name in ("DiscreteUniform", "Binomial", "Hypergeometric")
    for place, number in enumerate(numbers):
        if family.names[place] in row.known:
            continue
        for step in (-1, 1):
            shift = step if whole and number == round(number) else step * 1e-2 * (abs(number) or 1.0)
            moved = [*numbers[:place], number + shift, *numbers[place + 1 :]]
            assert cost(moved) >= cost(numbers) - 1e-6


@pytest.mark.parametrize("row", FITTED, ids=lambda row: row.name)
def test_the_spread_of_fitted_parameters_covers_the_truth(row):
    data = Plan([row.make().node]).run(60, np.random.default_rng(12))[0].tolist()
    if row.name in ("DiscreteUniform", "Triangular"):
        with pytest.raises(pv.PriorError, match="uncertainty=False"):
            pv.fit(row.name, data, **row.known)
        return
    made = pv.fit(row.name, data, **row.known).node
    for parent, truth in zip(made.parents, row.parameters, strict=True):
        drawn = Plan([parent]).run(2000, np.random.default_rng(1))[0].astype(float)
        assert abs(drawn.mean() - truth.item()) <= 4 * drawn.std()


WRONG = {
    "Weibull": [({"shape": 0.01}, "shape"), ({"shape": math.nan}, "shape"), ({"scale": 0}, "scale")],
    "Pareto": [({"shape": -1}, "shape"), ({"low": 0}, "low"), ({"low": math.inf}, "low")],
    "Triangular": [
        ({"mode": 5}, "mode must be at most high"),
        ({"mode": -2}, "low must be at most mode"),
        ({"low": 4, "mode": 4}, "low must be below high"),
        ({"low": -math.inf}, "low"),
    ],
    "NegativeBinomial": [
        ({"n": 0}, "n must be"),
        ({"p": 0}, "p must be"),
        ({"p": 1.5}, "p must be"),
        ({"n": 1e12}, "n"),
    ],
    "Hypergeometric": [
        ({"marked": 41}, "marked must be at most population"),
        ({"drawn": 41}, "drawn must be at most population"),
        ({"drawn": 1.5}, "drawn must be a whole number"),
        ({"population": 1e12}, "population"),
    ],
}


@pytest.mark.parametrize(("name", "wrong", "words"), [(name, *case) for name, cases in WRONG.items() for case in cases])
def test_wrong_parameters_are_refused_by_their_names(name, wrong, words):
    with pytest.raises(pv.PriorError, match=f"{name}: .*{words}"):
        getattr(pv, name)(**{**row_of(name).arguments, **wrong})


def test_counts_by_their_mean():
    belief = pv.Attack(lambda x: x, {"x": pv.NegativeBinomial.of_mean(4, sd=3)}, "x").run(engine="exact").prior
    assert (belief.mean().value, belief.std().value) == pytest.approx((4, 3))
    with pytest.raises(pv.PriorError, match=r"variance must be larger than the mean; write pv.Poisson"):
        pv.NegativeBinomial.of_mean(4, var=4)


def test_fits_say_what_they_must_be_told():
    with pytest.raises(pv.PriorError, match="Triangular needs low= and high="):
        pv.fit("Triangular", [1, 2, 3])
    with pytest.raises(pv.PriorError, match="between low=0 and high=2"):
        pv.fit("Triangular", [1, 2, 3], low=0, high=2)
    with pytest.raises(pv.PriorError, match="Hypergeometric needs population="):
        pv.fit("Hypergeometric", [1, 2], population=5)
    with pytest.raises(pv.PriorError, match="likelihood has no maximum"):
        pv.fit("NegativeBinomial", [3, 4] * 50)
